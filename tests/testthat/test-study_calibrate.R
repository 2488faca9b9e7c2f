test_that("the exact posterior passes, for parameters and for log eta", {
  skip_on_cran() # takes long; `make test` runs it
  table <- summary(calibrate_known(known_sampler(), 100))
  expect_identical(table$variable, c("mean", "log_eta"))
  expect_true(all(table$in_band))
  expect_true(all(table$p.value > 1e-3))
})

test_that("the prior fails on log eta only", {
  skip_on_cran() # takes long; `make test` runs it
  table <- summary(calibrate_known(known_sampler(prior = TRUE), 100))
  expect_identical(table$in_band, c(TRUE, FALSE))
  expect_gt(table$p.value[1], 1e-3)
  expect_lt(table$p.value[2], 1e-6)
})

test_that("a posterior too narrow, too wide or biased is seen at 100 replicates", {
  skip_on_cran() # takes long; `make test` runs it
  for (fault in list(list(scale = 0.6), list(scale = 2), list(bias = 0.5))) {
    table <- summary(calibrate_known(do.call(known_sampler, fault), 100))
    expect_false(table$in_band[1])
  }
})

test_that("coverage of a posterior too narrow follows its binomial distribution", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate_known(known_sampler(scale = 0.5), seed = 2)
  levels <- c(0.5, 0.9)
  table <- coverage(cal, levels, "mean")
  true <- 2 * pnorm(0.5 * qnorm((1 + levels) / 2)) - 1
  for (k in seq_along(levels)) {
    expect_gt(binom.test(round(table$coverage[k] * 200), 200, true[k])$p.value, 1e-6)
    expect_lt(binom.test(round(table$coverage[k] * 200), 200, levels[k])$p.value, 1e-6)
  }
})

test_that("the interval of coverage is that of Clopper and Pearson", {
  table <- internal("coverage_rows")(0.9, c(0, 7, 20), 20, 0.95)
  for (k in 1:3) {
    exact <- binom.test(c(0, 7, 20)[k], 20)$conf.int
    expect_equal(c(table$lower[k], table$upper[k]), exact[1:2])
  }
})

test_that("built-in samplers are calibrated, log eta too", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  bernoulli <- calibrate(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 20, replicates = 50, chains = 1, iter = 500, seed = 1)
  expect_true(all(summary(bernoulli)$in_band))
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-3, 3)))
  lm <- calibrate(model_lm(), st, mech_laplace(epsilon = 1), n = 20, replicates = 24, method = "augment", chains = 1, iter = 400, seed = 2)
  expect_true(all(summary(lm)$in_band))
  expect_setequal(summary(lm)$variable, c("(Intercept)", "x", "sigma", "mean[x]", "cov[x,x]", "log_eta"))
  expect_false(any(lm$runs$failed))
  expect_output(print(bernoulli), " inside ")
  # ranks of chains that have not converged, or among too few draws, show nothing
  bernoulli$results$rhat[bernoulli$results$replicate <= 20] <- 1.5
  expect_output(print(bernoulli), " unclear ")
  lm$results$draws[lm$results$replicate <= 10] <- 30
  expect_output(print(lm), " unclear ")
})

test_that("the naive analysis is not calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-3, 3)))
  cal <- calibrate(model_lm(), st, mech_laplace(epsilon = 1), n = 100, replicates = 60, "naive", chains = 1, iter = 300, seed = 1)
  expect_false(all(summary(cal)$in_band))
  expect_false("log_eta" %in% cal$results$variable)
})

test_that("the confidential data are given to the non-private posterior and to functions that ask", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate_known("nonprivate", 100, chains = 1, iter = 300)
  expect_true(summary(cal)$in_band)
  sizes <- calibrate_known(function(release, model, data) {
    expect_identical(attr(release, "truth"), NULL)
    cbind(mean = rep(nrow(data), 5))
  }, replicates = 2)
  expect_identical(sizes$results$mean, c(10, 10))
})

test_that("summaries of draws are those of the posterior package, with quantiles of type 6", {
  set.seed(1)
  cases <- list(
    matrix(rnorm(400), 200),
    matrix(rnorm(303, 10, 0.1), 101),                                        # odd number: the middle draw is left out
    matrix(as.double(arima.sim(list(ar = 0.98), 3000)), 1000),               # slow
    matrix(as.double(arima.sim(list(ar = -0.7), 1000)), 500),                # better than independent
    cbind(rnorm(100), rnorm(100, 3)), cbind(rnorm(100), rnorm(100, sd = 5)), # chains differ in mean, in spread
    matrix(rpois(600, 2) + 0, 200), matrix(rnorm(50), 50), matrix(rcauchy(400), 100)
  )
  for (draws in cases) {
    got <- .Call(internal("ffi_diagnostics"), array(draws, c(dim(draws), 1)), 0.05)
    limits <- quantile(draws, c(0.05, 0.95), type = 6, names = FALSE)
    expected <- c(mean = mean(draws), sd = sd(draws), lower = limits[1], upper = limits[2],
                  rhat = posterior::rhat(draws), ess = suppressWarnings(posterior::ess_bulk(draws)))
    expect_equal(drop(got), expected, tolerance = 1e-10)
  }
  constant <- .Call(internal("ffi_diagnostics"), array(2, c(10, 2, 1)), 0.05)
  expect_identical(drop(constant), c(mean = 2, sd = 0, lower = 2, upper = 2, rhat = NaN, ess = NaN))
})

test_that("ranks and quantiles are those of thinned draws", {
  set.seed(1)
  values <- array(0, c(1000, 2, 2), list(NULL, NULL, c("a", "b")))
  values[, , 1] <- rnorm(2000)
  values[, , 2] <- arima.sim(list(ar = 0.95), 2000)
  rows <- internal("rank_variables")(values, c(a = 0.3, b = -1), 0.9)
  for (v in 1:2) {
    step <- ceiling(2000 / posterior::ess_bulk(values[, , v]))
    kept <- values[seq(step, 1000, by = step), , v]
    expect_identical(rows$draws[v], as.double(length(kept)))
    expect_identical(rows$rank[v], sum(kept < c(0.3, -1)[v]) + 0)
    expect_true(rows$quantile[v] >= rows$rank[v] / (rows$draws[v] + 1) && rows$quantile[v] <= (rows$rank[v] + 1) / (rows$draws[v] + 1))
  }
  # slow mixing leaves few draws, nearly independent
  expect_lt(rows$draws[2], 150)
  expect_lt(abs(acf(kept[, 1], plot = FALSE)$acf[2]), 0.35)
  expect_equal(rows$upper, apply(values, 3, quantile, 0.95, type = 6, names = FALSE), ignore_attr = TRUE)
})

test_that("ties are broken at random, rounding or not", {
  set.seed(1)
  draws <- rep(c(1, 2, 3), each = 3) * (1 + c(-1e-13, 0, 1e-13))
  ranks <- replicate(400, internal("rank_among")(draws, 2))
  expect_setequal(ranks, c(3, 4, 5, 6))
  expect_gt(chisq.test(table(ranks))$p.value, 1e-6)
})

test_that("log eta of the truth is the noise density of the release, up to a constant", {
  counts <- stat_counts(~ y, levels = list(y = c("a", "b")))
  sums <- stat_records(~ y, levels = list(y = c("a", "b")))
  problem <- list(model = model_bernoulli(), neighbours = "replace", n = 30, parameters = NULL,
                  statistic = list(a = counts, b = sums), mechanism = list(a = mech_laplace(epsilon = 1), b = mech_randomized_response(epsilon = 1)))
  set.seed(3)
  simulated <- internal("simulate_design")(problem)
  total <- table(simulated$data$y)
  kept <- simulated$release$value[-(1:2)] == as.integer(simulated$data$y) - 1
  expect_equal(simulated$log_eta, -sum(abs(simulated$release$value[1:2] - total)) / 2 - sum(!kept))
})

test_that("noise with a density of its own is ranked too", {
  skip_on_cran() # takes long; `make test` runs it
  cauchy <- mech_custom(log_density = function(noise) rowSums(dcauchy(noise, scale = 4, log = TRUE)), r = function(s) s + rcauchy(length(s), scale = 4))
  cal <- calibrate(known$model, known$statistic, cauchy, 10, 20, chains = 1, iter = 400, seed = 1)
  expect_identical(summary(cal)$variable, c("mean", "log_eta"))
  expect_true(all(summary(cal)$in_band))
})

test_that("the seed fixes the result, and more replicates begin with the same ones", {
  before <- runif(1)
  a <- calibrate_known(known_sampler(), 8)
  b <- calibrate_known(known_sampler(), 5)
  expect_identical(a$results[a$results$replicate <= 5, ], b$results)
  expect_identical(extend(b, 3)$results, a$results)
  expect_false(identical(calibrate_known(known_sampler(), 5, seed = 2)$results, b$results))
  set.seed(9)
  c <- calibrate_known(known_sampler(), 3, seed = NULL)
  set.seed(9)
  expect_identical(calibrate_known(known_sampler(), 3, seed = NULL)$results, c$results)
})

test_that("calibrations of one design bind together", {
  a <- calibrate_known(known_sampler(), 4)
  b <- calibrate_known(known_sampler(), 3, seed = 2)
  both <- c(a, b)
  expect_identical(both, rbind(a, b))
  expect_identical(both$runs$replicate, 1:7)
  expect_identical(both$results$quantile, c(a$results$quantile, b$results$quantile))
  expect_identical(nrow(extend(both, 2)$runs), 9L)
  expect_identical(anyDuplicated(extend(both, 2)$runs$seed), 0L)
  expect_error(c(a, a), class = "noiseaware_error_argument")
  expect_error(c(a, calibrate_known(known_sampler(), 3, seed = 2, level = 0.5)), "level", class = "noiseaware_error_argument")
})

test_that("a failed replicate is kept and counted, and so are warnings", {
  fails <- function(release, model) {
    if (release$value > 0) stop("above zero")
    warning("below zero")
    known_draws(release$value)
  }
  expect_warning(cal <- calibrate_known(fails, 20), class = "noiseaware_warning_failed")
  failed <- cal$runs$replicate[cal$runs$failed]
  expect_gt(length(failed), 2)
  expect_lt(length(failed), 18)
  expect_setequal(cal$results$replicate, setdiff(1:20, failed))
  expect_identical(cal$conditions$replicate[cal$conditions$type == "error"], failed)
  expect_identical(nrow(cal$conditions), 20L)
  printed <- capture.output(print(cal))
  expect_match(printed, paste(length(failed), "failed"), all = FALSE)
  expect_match(printed, "with an error", all = FALSE)
  expect_match(printed, "with a warning", all = FALSE)
  expect_warning(none <- calibrate_known(function(release, model) stop("no"), 3), class = "noiseaware_warning_failed")
  expect_match(capture.output(print(none)), "3 failed", all = FALSE)
  expect_error(coverage(none), class = "noiseaware_error_argument")
})

test_that("draws without a parameter, or not finite, are an error of the replicate", {
  expect_warning(cal <- calibrate_known(function(release, model) cbind(other = 1:5), 1), "must return draws")
  expect_warning(cal <- calibrate_known(function(release, model) cbind(mean = c(1, NA)), 1), "finite")
})

test_that("bad arguments are refused before anything runs", {
  skip_on_cran() # takes long; `make test` runs it
  expect_error(calibrate(1, known$statistic, known$mechanism, 10), class = "noiseaware_error_argument")
  expect_error(calibrate_known("guess"), class = "noiseaware_error_method")
  expect_error(calibrate_known(function(x) x), class = "noiseaware_error_method")
  expect_error(calibrate_known("augment", iter = 10, warmup = 20), class = "noiseaware_error_argument")
  expect_error(calibrate_known("augment", itr = 10), class = "noiseaware_error_argument")
  expect_error(calibrate_known("augment", 0), class = "noiseaware_error_argument")
  expect_error(calibrate_known("augment", parameters = c(mu = 1)), class = "noiseaware_error_argument")
  expect_error(calibrate_known("augment", level = 1), class = "noiseaware_error_argument")
  expect_error(calibrate_known("augment", file = file.path(tempfile(), "a")), class = "noiseaware_error_file")
})

test_that("a fixed truth stays fixed", {
  cal <- calibrate_known(known_sampler(), 5, parameters = c(mean = 1.5))
  expect_identical(unique(cal$results$truth[cal$results$variable == "mean"]), 1.5)
})

test_that("an interrupt returns what is there", {
  count <- 0
  stops <- function(release, model) {
    count <<- count + 1
    if (count == 4) rlang::interrupt()
    known_draws(release$value)
  }
  expect_warning(cal <- calibrate_known(stops, 10), class = "noiseaware_warning_interrupted")
  expect_identical(nrow(cal$runs), 3L)
  expect_identical(extend(cal, 2)$results, calibrate_known(known_sampler(), 5)$results)
  count <- 3
  expect_error(calibrate_known(stops, 10), class = "noiseaware_error_interrupted")
})

test_that("some parameters may be fixed, the others are drawn from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-4, 4)))
  cal <- calibrate(model_lm(), st, mech_laplace(epsilon = 5), n = 10, replicates = 3, method = "naive", parameters = c(x = 0.5, sigma = 1), chains = 1,
                   iter = 60, seed = 1)
  truth <- function(v) cal$results$truth[cal$results$variable == v]
  expect_equal(truth("x"), rep(0.5, 3))
  expect_equal(truth("sigma"), rep(1, 3))
  expect_length(unique(truth("(Intercept)")), 3L)
  set.seed(1)
  truth <- attr(simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 5, parameters = c(sigma = 2)), "truth")$parameters
  expect_equal(truth[["sigma"]], 2)
  expect_length(truth, 5L)
  for (bad in list(c(sigma = -1), c(sigma = 1, sigma = 2), c(sigma = 1, s = 2), 1, c(sigma = NA))) {
    expect_error(calibrate(model_lm(), st, mech_laplace(epsilon = 1), n = 5, parameters = bad), class = "noiseaware_error_argument")
  }
})

# ---- the owner's own check ---------------------------------------------------------

# normal noise of sd 3 on a total of ten records with a known sd: the posterior of the mean is normal, its mean is normal over releases
known_records <- data.frame(x = c(-1, 0, 0.5, 1, 1, 1.5, 2, 2, 3, 4))
calibrate_records <- function(method = "augment", replicates = 40, ...) {
  calibrate(known$model, known$statistic, known$mechanism, replicates = replicates, method = method, ..., seed = 3, data = known_records)
}

test_that("on records the truth is their own estimate, and each replicate is a release of them", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate_records(chains = 2, iter = 500)
  table <- summary(cal)
  expect_identical(names(table), c("variable", "estimate", "replicates", "coverage", "z", "sd", "own_sd", "rhat", "ess"))
  expect_equal(table$estimate, sum(known_records$x) / (10 + 1 / 4), tolerance = 0.02)
  expect_equal(table$own_sd, 1 / sqrt(10 + 1 / 4), tolerance = 0.05)
  # given z the mean is N(10 z / 19 v, v), 1 / v = 1 / 4 + 100 / 19, and z is N(14, 9)
  v <- 1 / (1 / 4 + 100 / 19)
  expect_equal(table$sd, sqrt(v), tolerance = 0.1)
  over <- cal$results$mean
  expect_lt(abs(mean(over) - 10 / 19 * v * 14), 5 * 10 / 19 * v * 3 / sqrt(40))
  expect_gt(pchisq(sum((over - 10 / 19 * v * 14)^2) / (10 / 19 * v * 3)^2, 40), 1e-6)
  expect_gt(table$coverage, 0.9)
  expect_identical(coverage(cal, 0.5)$variable, "mean") # the noise is not ranked
  expect_output(print(cal), "records' own estimates (never publish", fixed = TRUE)
})

test_that("an analysis that misses the records' estimate is seen", {
  cal <- calibrate_records(known_sampler(bias = 4))
  expect_identical(summary(cal)$coverage, 0)
  expect_gt(summary(cal)$z, 3)
  points <- calibration_data(cal, "intervals")
  expect_false(any(points$held))
  expect_identical(order(points$value), seq_len(40))
  expect_s3_class(plot(cal), "ggplot")
})

test_that("estimates of the owner's own are taken, and warnings of fits are counted", {
  warns <- function(release, model) {
    warning(structure(class = c("noiseaware_warning_bounds", "warning", "condition"), list(message = "beyond", call = NULL)))
    known_draws(unname(release$value))
  }
  cal <- calibrate_records(warns, 3, parameters = c(mean = 7))
  expect_identical(summary(cal)$estimate, 7)
  expect_identical(cal$conditions$class, rep("noiseaware_warning_bounds", 3))
  expect_output(print(cal), "3 of 3 fits report (warning_bounds): beyond", fixed = TRUE)
})

test_that("an unknown number of records is covered, too", {
  st <- list(size = stat_size(), y = stat_counts(~ y, levels = list(y = c("no", "yes"))))
  noise <- mech_laplace(epsilon = 1)
  cal <- calibrate(model_bernoulli(), st, list(size = noise, y = noise), replicates = 3, chains = 2, iter = 400, seed = 1, neighbours = "add_remove",
                   data = data.frame(y = rep(c("no", "yes"), c(30, 70))))
  expect_identical(cal$results$truth[cal$results$variable == "n"], rep(100, 3))
})

test_that("files of such a check hold no record, and belong to these records", {
  path <- tempfile()
  on.exit(unlink(path))
  secret <- data.frame(x = known_records$x + 0.123456)
  check <- function(data) {
    calibrate(known$model, known$statistic, known$mechanism, replicates = 2, method = known_sampler(), parameters = c(mean = 1), seed = 1, file = path, data = data)
  }
  check(secret)
  expect_false(any(grepl("123456", readLines(path))))
  expect_error(check(known_records), "data", class = "noiseaware_error_file")
})

test_that("bad records are refused", {
  expect_error(calibrate(known$model, known$statistic, known$mechanism, data = 1:3), class = "noiseaware_error_argument")
  expect_error(calibrate(known$model, known$statistic, known$mechanism, 10, data = known_records), class = "noiseaware_error_argument")
  expect_error(calibrate(known$model, known$statistic, known$mechanism), "n.*must be given", class = "noiseaware_error_argument")
  expect_error(calibrate(known$model, known$statistic, known$mechanism, data = data.frame(z = 1)), class = "noiseaware_error_data")
})

test_that("a fit stands for its design", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  noise <- mech_discrete_laplace(epsilon = 1)
  model <- model_bernoulli(prior = prior_beta(2, 3))
  fit <- sample_posterior(as_release(c(12, 8), st, noise, n = 20), model, chains = 2, iter = 500, seed = 1)
  of_fit <- calibrate(fit, replicates = 4, chains = 1, iter = 400, seed = 1)
  expect_identical(of_fit$results, calibrate(model, st, noise, 20, replicates = 4, chains = 1, iter = 400, seed = 1)$results)
  expect_identical(calibrate(fit, n = 9, replicates = 1, chains = 1, iter = 400, seed = 1)$problem$n, 9)
  unknown <- sample_posterior(as_release(c(12, 8), st, noise, n = NULL, neighbours = "add_remove"), model, prior_n = prior_n("poisson", mean = 20),
                              chains = 2, iter = 500, seed = 1)
  expect_true("n" %in% calibrate(unknown, replicates = 1, chains = 1, iter = 400, seed = 1)$results$variable)
  confidential <- nonprivate_posterior(data.frame(y = c("no", "yes")), model, st, chains = 1, iter = 20, seed = 1)
  expect_error(calibrate(confidential), "fit", class = "noiseaware_error_argument")
})

test_that("the owner's numbers are put into the bins that a table has as levels", {
  skip_on_cran() # takes long; `make test` runs it
  data <- data.frame(age = c(-5, 0, 19, 20, 39, 40, 150), sex = c("f", "m", "m", "f", "m", "f", "m"))
  binned <- list(c("a", "a", "a", "b", "b", "c", "c"), c("a", "a", "a", "a", "b", "b", "c"))
  for (right in c(FALSE, TRUE)) {
    ages <- stat_histogram(~ age:sex, list(age = c(0, 20, 40, 60)), levels = list(sex = c("f", "m")), right = right)
    run <- function(statistic, data) {
      calibrate(model_table(~ age:sex), statistic, mech_laplace(scale = 1e-3), replicates = 2, iter = 40, seed = 1, data = data)
    }
    of_bins <- run(ages, data)
    of_levels <- run(stat_counts(~ age:sex, list(age = c("a", "b", "c"), sex = c("f", "m"))), transform(data, age = binned[[1 + right]]))
    expect_equal(unname(of_bins$problem$data$estimates), unname(of_levels$problem$data$estimates), tolerance = 1e-10)
    expect_false(any(of_bins$runs$failed))
    expect_identical(as.integer(of_bins$problem$data$records$age), match(binned[[1 + right]], c("a", "b", "c")))
  }
})
