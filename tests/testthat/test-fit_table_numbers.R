# Quantiles, means and standard deviations of a number in bins: against interpolation of the distribution function, the Dirichlet posterior of an exact
# table, and truths drawn from the prior.

breaks <- c(0, 10, 25, 30, 60, 100)
waits <- stat_histogram(~ wait, breaks)
exact <- as_release(c(12, 20, 9, 30, 7), waits, mech_exact(), n = 78)
fit <- sample_posterior(exact, model_table(), chains = 2, iter = 8000, seed = 1)
probs <- c(0.05, 0.5, 0.9)
weights <- c(12, 20, 9, 30, 7) + 1
matrix_of <- function(draws) unclass(posterior::as_draws_matrix(draws))

test_that("draw by draw they are those of a distribution that is even within bins", {
  p <- matrix_of(fit$draws)[c(1, 77, 1000), ]
  quantiles <- matrix_of(table_measures(fit, measure = "quantile", probs = probs))
  expect_identical(colnames(quantiles), c("5%", "50%", "90%"))
  for (i in 1:3) {
    row <- c(1, 77, 1000)[i]
    expect_equal(unname(quantiles[row, ]), stats::approx(c(0, cumsum(p[i, ])), breaks, probs)$y)
    density <- function(x) p[i, findInterval(x, breaks, rightmost.closed = TRUE)] / diff(breaks)[findInterval(x, breaks, rightmost.closed = TRUE)]
    moment <- function(k) sum(mapply(function(a, b) stats::integrate(function(x) x^k * density(x), a, b)$value, breaks[-6], breaks[-1]))
    expect_equal(matrix_of(table_measures(fit, measure = "mean"))[row, ], moment(1), ignore_attr = TRUE)
    expect_equal(matrix_of(table_measures(fit, measure = "sd"))[row, ], sqrt(moment(2) - moment(1)^2), ignore_attr = TRUE)
  }
})

test_that("of an exact table they have the Dirichlet posterior, and with many records the quantiles of the records", {
  middle <- breaks[-6] + diff(breaks) / 2
  share <- weights / sum(weights)
  means <- matrix_of(table_measures(fit, measure = "mean"))
  variance <- (sum(share * middle^2) - sum(share * middle)^2) / (sum(weights) + 1)
  expect_lt(abs(mean(means) - sum(share * middle)), 5 * sqrt(variance / 8000))
  expect_lt(abs(stats::sd(means) / sqrt(variance) - 1), 0.05)
  # the median is below a break if the bins before it have half of the probability
  medians <- matrix_of(table_measures(fit, measure = "quantile", probs = 0.5))
  below <- stats::pbeta(0.5, cumsum(weights)[2:3], sum(weights) - cumsum(weights)[2:3], lower.tail = FALSE)
  expect_lt(max(abs(c(mean(medians <= 25), mean(medians <= 30)) - below)), 5 * 0.5 / sqrt(8000))
  counts <- 1e7 * c(0.2, 0.3, 0.1, 0.15, 0.25)
  many <- quantile(sample_posterior(as_release(counts, waits, mech_exact(), n = 1e7), model_table(), chains = 1, iter = 1000, seed = 1), probs)
  expect_equal(many$estimate, stats::approx(cumsum(c(0, counts)) / 1e7, breaks, probs)$y, tolerance = 1e-3)
})

test_that("quantile() has medians and intervals of the draws, of each level behind a bar", {
  found <- quantile(fit, probs, level = 0.9)
  draws <- matrix_of(table_measures(fit, ~ wait, "quantile", probs))
  expect_equal(found$estimate, apply(draws, 2L, stats::median), ignore_attr = TRUE)
  expect_equal(as.matrix(found[c("lower", "upper")]), t(apply(draws, 2L, stats::quantile, c(0.05, 0.95), type = 6)), ignore_attr = TRUE)
  # the bins that the ends are in
  expect_equal(found$bins_from, vapply(found$lower, function(x) max(breaks[breaks <= x]), 0))
  expect_equal(found$bins_to, vapply(found$upper, function(x) min(breaks[breaks > x]), 0))
  shown <- capture.output(print(found))
  expect_identical(shown[1:2], c("<quantiles> of wait, posterior medians with 90% intervals", "  records are assumed to be spread evenly within each bin; otherwise, only bins_from and bins_to hold"))
  expect_output(print(found[1:2, ]), "0.05")
  two_bins <- stat_counts(~ cut(wait, c(0, 20, 50), right = FALSE):ward, list(ward = c("x", "y")))
  rel <- as_release(stats::setNames(c(10, 30, 20, 5), two_bins$components), two_bins, mech_exact(), n = 65)
  two <- sample_posterior(rel, model_table(), chains = 1, iter = 1000, seed = 1)
  of_ward <- quantile(two, c(0.25, 0.5), ~ wait | ward)
  expect_identical(lapply(as.list(of_ward)[1:2], as.character), list(ward = c("x", "x", "y", "y"), probability = c("0.25", "0.5", "0.25", "0.5")))
  p <- matrix_of(table_measures(two, ~ wait | ward))
  expect_equal(of_ward$estimate[3:4], c(stats::median(0.25 / p[, 3] * 20), stats::median(pmin(0.5 / p[, 3], 1) * 20 + pmax(0.5 - p[, 3], 0) / p[, 4] * 30)))
  expect_error(quantile(two, margin = ~ wait:ward), "but has 2", class = "noiseaware_error_formula")
  # without a margin: the only variable with bins
  expect_equal(quantile(two)$estimate, quantile(two, margin = ~ wait)$estimate)
})

test_that("bins of a histogram are levels for models of factors, some of them and queries too", {
  counts <- stat_counts(~ wait, list(wait = waits$bins$wait))
  noisy <- function(st, value = c(12.4, 20.1, 9.7, 30.2, 7.5)) as_release(stats::setNames(value, st$components), st, mech_laplace(scale = 2), n = 78)
  for (model in list(model_table(), model_categorical())) {
    same <- lapply(list(waits, counts), function(st) sample_posterior(noisy(st), model, chains = 1, iter = 200, seed = 1) |> suppressWarnings())
    expect_identical(same[[1]]$draws, same[[2]]$draws)
    queried <- lapply(list(waits, counts), function(st) sample_posterior(noisy(stat_cumulative(st), c(12, 33, 41, 70)), model, chains = 1, iter = 200, seed = 1) |> suppressWarnings())
    expect_identical(queried[[1]]$draws, queried[[2]]$draws)
  }
  mixed <- stat_histogram(~ wait:ward, c(0, 30, 100), list(ward = c("x", "y")))
  bayes <- sample_posterior(as_release(stats::setNames(c(9, 20, 11, 3), mixed$components), mixed, mech_laplace(scale = 1), n = 43), model_naive_bayes("ward"),
                            chains = 1, iter = 200, seed = 1) |> suppressWarnings()
  expect_true("prob[wait=[0,30)|ward=x]" %in% posterior::variables(bayes$draws))
  expect_s3_class(calibrate(model_table(), waits, mech_laplace(scale = 2), n = 20, replicates = 3, chains = 1, seed = 1), "calibration")
})

test_that("open bins and levels that are not intervals need breaks", {
  open <- stat_histogram(~ wait, c(-Inf, 10, 20, Inf))
  three <- sample_posterior(as_release(c(10, 20, 15), open, mech_exact(), n = 45), model_table(), chains = 1, iter = 1000, seed = 1)
  expect_identical(quantile(three, c(0.01, 0.99))$estimate, c(-Inf, Inf))
  expect_true(is.finite(quantile(three, 0.5)$estimate))
  expect_error(table_measures(three, measure = "mean"), "two are open", class = "noiseaware_error_argument")
  closed <- c(0, 10, 20, 40)
  expect_true(all(is.finite(quantile(three, c(0.01, 0.99), breaks = closed)$estimate)))
  decades <- stat_counts(~ age, list(age = c("0-19", "20-39", "40+")))
  ages <- sample_posterior(as_release(c(10, 20, 15), decades, mech_exact(), n = 45), model_table(), chains = 1, iter = 1000, seed = 1)
  expect_error(quantile(ages), "0-19, 20-39, 40+", fixed = TRUE, class = "noiseaware_error_argument")
  expect_error(quantile(ages, margin = ~ age), "0-19, 20-39, 40+", fixed = TRUE, class = "noiseaware_error_argument")
  expect_error(quantile(ages, breaks = c(0, 20, 40)), class = "noiseaware_error_argument")
  expect_identical(quantile(ages, margin = ~ age, breaks = c(0, 20, 40, 100))$probability, c(0.25, 0.5, 0.75))
  for (bad in list(quote(quantile(three, 2)), quote(quantile(three, c(0.5, 0.5))), quote(quantile(three, NA_real_)), quote(quantile(three, level = 1)),
                   quote(quantile(three, sites = 1)), quote(quantile(three, breaks = 4:1)), quote(table_measures(three, measure = "median")))) {
    expect_error(eval(bad), class = "noiseaware_error_argument")
  }
  expect_error(quantile(sample_posterior(as_release(c(10, 20), stat_counts(~ a, list(a = c("x", "y"))), mech_exact(), n = 30), model_table(), chains = 1, iter = 200)),
               "x, y", class = "noiseaware_error_argument")
  normal <- suppressWarnings(sample_posterior(as_release(c(10, 20, 15), open, mech_laplace(scale = 1), n = 45), model_normal(), method = "clt", chains = 1, iter = 400, seed = 1))
  expect_error(quantile(normal), "model_table", class = "noiseaware_error_argument")
  read <- internal("interval_breaks")
  expect_identical(read(c("(-Inf,1.5]", "(1.5,2e3]", "(2e3,Inf)")), c(-Inf, 1.5, 2000, Inf))
  for (levels in list(c("a", "b"), c("[0,1)", "[2,3)"), c("[0,x)", "[x,3)"), "[0,1)", c("[3,2)", "[2,1)"))) expect_null(read(levels))
})

test_that("intervals cover truths drawn from the prior", {
  skip_on_cran()
  set.seed(7)
  hit <- vapply(1:60, function(i) {
    p <- stats::rexp(5)
    p <- p / sum(p)
    bin <- sample(5, 60, TRUE, p)
    rel <- simulate_release(data.frame(wait = stats::runif(60, breaks[bin], breaks[bin + 1])), waits, mech_laplace(epsilon = 0.3))
    found <- sample_posterior(rel, model_table(), chains = 1, iter = 1000, seed = i) |> suppressMessages() |> suppressWarnings() |> quantile(probs, level = 0.8)
    true <- stats::approx(c(0, cumsum(p)), breaks, probs)$y
    found$lower < true & true < found$upper
  }, logical(3))
  expect_true(all(rowSums(hit) >= stats::qbinom(1e-4, 60, 0.8) & rowSums(hit) <= stats::qbinom(1 - 1e-4, 60, 0.8)))
})
