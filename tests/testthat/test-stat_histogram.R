# Counts of a number in declared bins.

ages <- stat_histogram(~ age, breaks = c(0, 20, 40, Inf))
crossed <- stat_histogram(~ age:sex + sex + age, breaks = list(age = c(0, 18, 65, 100)), levels = list(sex = c("f", "m")))

test_that("every record is in the bin that R's cut() says, beyond the ends in the end bins", {
  set.seed(1)
  for (right in c(FALSE, TRUE)) {
    for (breaks in list(c(0, 20, 40, 60), c(-Inf, 0.5, 1, 7), c(3, 5, 6))) {
      st <- stat_histogram(~ x, breaks, right = right)
      inner <- breaks[-c(1, length(breaks))]
      x <- c(runif(900, -10, 70), breaks[is.finite(breaks)], -1e300, 1e300)
      expected <- table(cut(x, c(-Inf, inner, Inf), right = right))
      expect_identical(unname(internal("statistic_total")(st, data.frame(x = x))), as.double(expected))
      expect_true(all(grepl(if (right) "\\]$|\\)$" else "^x=\\[|^x=\\(", st$components)))
    }
  }
  data <- data.frame(age = c(3, 17, 18, 40, 80, 200), sex = c("f", "m", "f", "f", "m", "f"))
  totals <- internal("statistic_total")(crossed, data)
  expect_identical(totals[c("age=[0,18):sex=f", "age=[18,65):sex=f", "age=[65,100]:sex=m", "sex=f", "age=[65,100]")],
                   c(`age=[0,18):sex=f` = 1, `age=[18,65):sex=f` = 2, `age=[65,100]:sex=m` = 1, `sex=f` = 4, `age=[65,100]` = 2))
  expect_identical(ages$components, c("age=[0,20)", "age=[20,40)", "age=[40,Inf)"))
  expect_identical(stat_histogram(~ age, c(-Inf, 0, 1), right = TRUE)$components, c("age=(-Inf,0]", "age=(0,1]"))
})

test_that("sensitivity, limits, subsets and cumulative counts are those of a table", {
  expect_identical(sensitivity(crossed, "L1"), 6)
  expect_identical(sensitivity(crossed, "L2", "add_remove"), sqrt(3))
  expect_identical(sensitivity(stat_subset(ages, "age=[0,20)"), "L1"), 1)
  expect_identical(stat_cumulative(ages)$components, c("age<20", "age<40"))
  data <- data.frame(age = c(1, 25, 30, 70))
  expect_identical(internal("statistic_total")(stat_cumulative(ages), data), c(`age<20` = 1, `age<40` = 3))
  few <- as_release(c(`[20,40)` = 7), ages, mech_discrete_laplace(scale = 2), 30)
  expect_identical(few$value, c(`age=[20,40)` = 7))
  rows <- data.frame(age = c("[40,Inf)", "[0,20)"), value = 3:4)
  expect_identical(as_release(rows, ages, mech_laplace(scale = 2), 30)$value, c(`age=[0,20)` = 4, `age=[40,Inf)` = 3))
})

test_that("releases are made, printed, written and read", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  data <- data.frame(age = runif(300, 0, 120), sex = sample(c("f", "m"), 300, TRUE))
  for (st in list(ages, crossed, stat_histogram(~ age, c(-Inf, 0, 1, Inf), right = TRUE), stat_subset(ages, "age=[20,40)"))) {
    rel <- release(data, st, mech_discrete_laplace(epsilon = 1))
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
    expect_s3_class(plot(rel), "ggplot")
  }
  show(capture.output(print(ages), print(crossed)))
  write_release(as_release(1:3, ages, mech_laplace(scale = 1), 6), path)
  text <- readLines(path)
  for (change in list(c("0, 20, 40", "0, 40, 20"), c("\\[false, true\\]", "[false]"), c("\"open\"", "\"opened\""))) {
    changed <- gsub(change[1], change[2], text)
    expect_false(identical(changed, text))
    writeLines(changed, path)
    expect_error(read_release(path), class = "noiseaware_error_file")
  }
})

test_that("breaks that are none are refused", {
  show(refusals("bounds", alist(
    stat_histogram(~ x, breaks = 3),
    stat_histogram(~ x, breaks = c(3, 2, 5)),
    stat_histogram(~ x, breaks = c(3, 5)),
    stat_histogram(~ x, breaks = c(-Inf, 0, Inf)),
    stat_histogram(~ x, breaks = c(0, Inf, 3)),
    stat_histogram(~ x, breaks = c(0, NA, 3)),
    stat_histogram(~ x, breaks = list(y = 1:3)),
    stat_histogram(~ x:y, breaks = 1:3),
    stat_histogram(~ x, breaks = list(x = 1:3), levels = list(x = c("a", "b")))
  )))
  expect_error(stat_histogram(~ x:y, breaks = list(x = 1:3)), class = "noiseaware_error_levels")
  expect_error(stat_histogram(y ~ x, breaks = 1:3), class = "noiseaware_error_formula")
})

# Posterior quantile function of one parameter given noisy counts of n records in bins of these probabilities.
histogram_posterior <- function(grid, prior, probabilities, value, scale, n) {
  tables <- as.matrix(expand.grid(rep(list(0:n), length(value))))
  tables <- tables[rowSums(tables) == n, , drop = FALSE]
  noise <- exp(log_noise("absolute", scale, value, tables)) * exp(-rowSums(lgamma(tables + 1)))
  density <- vapply(grid, function(theta) {
    p <- pmax(probabilities(theta), 1e-300)
    prior(theta) * sum(noise * exp(drop(tables %*% log(p))))
  }, 0)
  grid_quantile(grid, density)
}

test_that("posteriors given a histogram are exact", {
  skip_on_cran()
  value <- c(1.2, 2.6, 0.4)
  scale <- rep(0.7, 3)
  st <- stat_histogram(~ x, breaks = c(-1, 0, 1, 3))
  rel <- as_release(value, st, mech_laplace(scale = 0.7), 4)
  fit <- sample_posterior(rel, model_normal(prior = list(mean = prior_normal(0, 2), sd = fixed(1))), method = "augment", chains = 2, iter = 7700, warmup = 600, seed = 1)
  exact <- histogram_posterior(seq(-6, 6, 0.01), function(mu) dnorm(mu, 0, 2), function(mu) diff(pnorm(c(-Inf, 0, 1, Inf), mu)), value, scale, 4)
  expect_distribution(parameter_draws(fit, posterior::variables(fit$draws)[1]), exact)
  counts <- stat_histogram(~ x, breaks = c(0, 1, 3, 9))
  rel <- as_release(value, counts, mech_laplace(scale = 0.7), 4)
  fit <- sample_posterior(rel, model_poisson(prior = prior_gamma(2, 1)), method = "augment", chains = 2, iter = 7700, warmup = 600, seed = 2)
  exact <- histogram_posterior(seq(0.001, 12, 0.005), function(rate) dgamma(rate, 2, 1), function(rate) diff(c(0, ppois(c(0, 2), rate), 1)), value, scale, 4)
  expect_distribution(parameter_draws(fit, "rate"), exact)
})

test_that("the normal distribution of a histogram's counts has the moments of its bins", {
  moments <- function(st, model, values) {
    bound <- internal("bind_model")(model, st)
    rel <- as_release(rep(1, length(st$components)), st, mech_laplace(scale = 1), 30)
    theta <- internal("bound_theta")(bound, values)
    .Call(internal("ffi_clt_moments"), internal("clt_distribution")(bound, rel, NULL)$spec, as.matrix(theta))[[1]]
  }
  check <- function(found, p) {
    k <- seq_along(p)
    expect_equal(found$mean[k], p)
    expect_equal(found$cov[k, k], diag(p) - outer(p, p))
  }
  for (right in c(FALSE, TRUE)) {
    st <- stat_histogram(~ x, c(0, 2, 3, 7, Inf), right = right)
    check(moments(st, model_poisson(), c(rate = 2.5)), diff(c(0, ppois(c(2, 3, 7) - !right, 2.5), 1)))
    check(moments(st, model_exponential(), c(rate = 0.3)), diff(c(0, pexp(c(2, 3, 7), 0.3), 1)))
    found <- moments(st, model_normal(prior = list(mean = prior_normal(0, 2), sd = fixed(2))), c(mean = 1))
    check(found, diff(c(0, pnorm(c(2, 3, 7), 1, 2), 1)))
  }
})

test_that("clt agrees with augment, and a regression takes a histogram of its response", {
  skip_on_cran()
  set.seed(3)
  st <- stat_histogram(~ x, breaks = c(0, 2, 4, 6, 8))
  rel <- simulate_release(data.frame(x = rnorm(400, 4, 1.5)), st, mech_laplace(epsilon = 1))
  fits <- lapply(c("augment", "clt"), function(method) sample_posterior(rel, model_normal(), method = method, chains = 2, iter = 1800, seed = 4))
  expect_equal(coef(fits[[1]]), coef(fits[[2]]), tolerance = 0.03)
  expect_identical(posterior::variables(denoise(fits[[1]])), st$components)
  both <- simulate_release(data.frame(y = rnorm(200, 5), x = runif(200)), list(h = stat_histogram(~ y, c(2, 4, 5, 6, 8)), c = stat_sums(~ x + y:x, list(x = c(0, 1), y = c(0, 10)), rescale = FALSE)),
                           list(h = mech_laplace(epsilon = 1), c = mech_laplace(epsilon = 1)))
  fit <- sample_posterior(both, model_lm(y ~ x), chains = 2, iter = 1000, seed = 5)
  expect_identical(fit$method, "augment")
  expect_true(all(is.finite(coef(fit))))
})

test_that("labels have few digits, but tell breaks apart", {
  components <- function(breaks) stat_histogram(~ x, breaks)$components
  expect_identical(components(c(0, 1 / 3, 1)), c("x=[0,0.3333333)", "x=[0.3333333,1]"))
  expect_identical(components(c(-Inf, 0.1 + 0.2, 12345678, 123456789.5)), c("x=(-Inf,0.3)", "x=[0.3,12345678)", "x=[12345678,123456789.5]"))
  expect_identical(components(c(1, 1 + 1e-9, 2)), c("x=[1,1.000000001)", "x=[1.000000001,2]"))
  exits <- internal("exit_levels")(c(0, 1 / 3, 2 / 3))
  expect_identical(exits[1:3], c("event[0,0.3333333)", "censored[0,0.3333333)", "event[0.3333333,0.6666667)"))
  expect_equal(internal("breaks_of_exits")(exits), c(0, 0.3333333, 0.6666667), tolerance = 1e-15)
})
