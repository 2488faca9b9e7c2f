# Noise whose density is the user's R function.

laplace_of_noise <- mech_custom(log_density = function(noise) -rowSums(abs(noise)) / 1.5, r = function(s) s + rexp(length(s), 1 / 1.5) - rexp(length(s), 1 / 1.5),
                                sd = sqrt(2) * 1.5)
laplace_of_both <- mech_custom(log_density = function(z, s) rowSums(dexp(abs(z - s), 1 / 1.5, log = TRUE)))

test_that("with the Laplace density the chain is that of mech_laplace(), record by record", {
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-2, 2), x = c(-1, 1)))
  value <- c(4, 1, 9, -3, 6)
  run <- function(mechanism, ...) sample_posterior(as_release(value, st, mechanism, n = 30), model_lm(), chains = 1, iter = 60, seed = 3, ...)
  built_in <- run(mech_laplace(scale = 1.5))
  for (mechanism in list(laplace_of_noise, laplace_of_both)) {
    fit <- run(mechanism)
    expect_equal(as.numeric(fit$draws), as.numeric(built_in$draws), tolerance = 1e-6)
    expect_identical(fit$chains[[1]]$state$accepted, built_in$chains[[1]]$state$accepted)
    expect_equal(as.numeric(denoise(fit)), as.numeric(denoise(built_in)), tolerance = 1e-6)
    expect_equal(fit$chains[[1]]$log_noise, built_in$chains[[1]]$log_noise, tolerance = 1e-6)
  }
  # many refused, so that other decisions are foreseen
  sharp <- mech_custom(log_density = function(noise) -rowSums(abs(noise)) / 0.02)
  a <- run(sharp, control = list(passes = 0))
  b <- run(mech_laplace(scale = 0.02), control = list(passes = 0))
  expect_identical(a$chains[[1]]$state$accepted, b$chains[[1]]$state$accepted)
  expect_lt(mean(a$chains[[1]]$acceptance), 0.5)
})

test_that("counts, local noise and several parts give the built-in chain too", {
  skip_on_cran() # takes long; `make test` runs it
  same_chain <- function(value, statistic, custom, built_in, n, model) {
    runs <- lapply(list(custom, built_in), function(m) {
      rel <- as_release(value, statistic, m, n = n)
      sample_posterior(rel, model, chains = 1, iter = 60, seed = 3)
    })
    expect_equal(as.numeric(runs[[1]]$draws), as.numeric(runs[[2]]$draws), tolerance = 1e-6)
  }
  own <- mech_custom(log_density = function(noise) -rowSums(abs(noise)) / 2)
  built_in <- mech_laplace(scale = 2)
  x <- stat_sums(~ x, bounds = list(x = c(0, 5)))
  each <- stat_records(~ x, bounds = list(x = c(0, 5)))
  set.seed(2)
  same_chain(runif(300, -2, 6), each, own, built_in, 300, model_exponential())
  # two values of each record
  pairs <- stat_records(~ x + y, bounds = list(x = c(0, 5), y = c(-2, 2)))
  same_chain(c(runif(80, -2, 6), rnorm(80)), pairs, own, built_in, 80, model_mvnormal())
  both <- list(total = x, each = each)
  same_chain(c(200, runif(300, -2, 6)), both, list(total = own, each = own), list(total = built_in, each = built_in), 300, model_exponential())
  same_chain(c(200, runif(300, -2, 6)), both, list(total = own, each = built_in), list(total = built_in, each = built_in), 300, model_exponential())
  twice <- list(a = x, b = stat_sums(~ I(x^2), bounds = list(x = c(0, 5))))
  same_chain(c(200, 600), twice, list(a = own, b = mech_gaussian(sd = 20)), list(a = built_in, b = mech_gaussian(sd = 20)), 300, model_exponential())
  # counts: the same distribution, by another path of random numbers
  counts <- stat_counts(~ x, levels = list(x = c("a", "b")))
  fits <- lapply(list(own, built_in), function(m) sample_posterior(as_release(c(9, 3), counts, m, n = 10), model_bernoulli(), method = "augment", chains = 2, iter = 2100, seed = 3))
  draws <- lapply(fits, parameter_draws, "prob[b]")
  error <- sqrt(posterior::mcse_mean(draws[[1]])^2 + posterior::mcse_mean(draws[[2]])^2)
  expect_lt(abs(mean(draws[[1]]) - mean(draws[[2]])) / error, 5)
})

test_that("heavy tails, correlated noise and noise that depends on the totals: the exact posterior", {
  skip_on_cran() # takes long; `make test` runs it
  # one record, x ~ Exponential(rate), x in [0, 60] for all that matters
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 60)), rescale = FALSE)
  z <- c(3, 15)
  rate <- seq(0.01, 12, by = 0.01)
  x <- seq(0.001, 60, by = 0.01)
  s <- cbind(x, x^2)
  cases <- list(
    cauchy = mech_custom(log_density = function(noise) rowSums(stats::dcauchy(noise, scale = 0.7, log = TRUE))),
    correlated = mech_custom(log_density = function(noise) -0.5 * (noise[, 1]^2 + noise[, 2]^2 / 25 - 0.32 * noise[, 1] * noise[, 2]) / 0.36),
    dependent = mech_custom(log_density = function(z, s) rowSums(stats::dnorm(z, s, 0.3 + 0.2 * s, log = TRUE)))
  )
  noise <- sweep(-s, 2, z, "+")
  log_eta <- list(
    cauchy = rowSums(dcauchy(noise, scale = 0.7, log = TRUE)),
    correlated = -0.5 * (noise[, 1]^2 + noise[, 2]^2 / 25 - 0.32 * noise[, 1] * noise[, 2]) / 0.36,
    dependent = dnorm(z[1], s[, 1], 0.3 + 0.2 * s[, 1], log = TRUE) + dnorm(z[2], s[, 2], 0.3 + 0.2 * s[, 2], log = TRUE)
  )
  for (name in names(cases)) {
    rel <- as_release(z, st, cases[[name]], n = 1)
    fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(3, 2)), chains = 2, iter = 3500, warmup = 600, seed = 8)
    density <- vapply(rate, function(r) dgamma(r, 3, 2) * sum(dexp(x, r) * exp(log_eta[[name]])), 0)
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density), sum(rate * density) / sum(density))
  }
})

test_that("noise of bounded support: chains start and stay in it, whatever the method is asked for", {
  skip_on_cran()
  st <- stat_sums(~ x, bounds = list(x = c(0, 5)))
  inside <- mech_custom(log_density = function(noise) ifelse(abs(noise[, 1]) <= 3, 0, -Inf))
  rel <- as_release(c(x = 400), st, inside, n = 100) # far from where the prior starts
  for (control in list(list(), list(passes = 0))) {
    fit <- sample_posterior(rel, model_exponential(), chains = 2, iter = 60, warmup = 2, seed = 1, control = control) |> suppressWarnings()
    expect_true(all(abs(as.numeric(denoise(fit)) - 400) <= 3))
    expect_true(all(is.finite(fit$chains[[1]]$log_noise)))
  }
  # two totals, of which the noise is little together
  both <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 5)), rescale = FALSE)
  little <- mech_custom(log_density = function(noise) ifelse(rowSums(abs(noise)) <= 0.3, 0, -Inf))
  fit <- suppressWarnings(sample_posterior(as_release(c(30, 60), both, little, n = 20), model_normal(), chains = 4, iter = 60, warmup = 2, seed = 1))
  expect_true(all(abs(sweep(posterior::as_draws_matrix(denoise(fit)), 2, c(30, 60))) %*% c(1, 1) <= 0.3 + 1e-9))
  # on every record, and at several sites
  each <- stat_records(~ x, bounds = list(x = c(0, 5)))
  value <- seq(0.5, 4.5, length.out = 20)
  narrow <- mech_custom(log_density = function(noise) ifelse(abs(noise[, 1]) <= 0.1, 0, -Inf))
  local_records <- function() sample_posterior(as_release(value, each, narrow, n = 20), model_exponential(), chains = 2, iter = 40, warmup = 2, seed = 1)
  told <- capture_warnings(fit <- local_records())
  expect_false(any(grepl("non-missing", told)))
  expect_true(all(is.finite(fit$chains[[1]]$log_noise)))
  sites <- list(a = rel, b = as_release(c(x = 60), st, inside, n = 30), c = as_release(c(x = 100), st, inside, n = 30))
  fit <- suppressWarnings(sample_posterior(sites, model_poisson(), pool = "partial", method = "augment", chains = 2, iter = 40, warmup = 2, seed = 1))
  expect_true(all(is.finite(fit$chains[[2]]$log_noise)))
  # noise that is never 0, as `r` says
  away <- mech_custom(log_density = function(noise) ifelse(noise[, 1] >= 50 & noise[, 1] <= 52, 0, -Inf), r = function(s) s + runif(length(s), 50, 52))
  fit <- suppressWarnings(sample_posterior(as_release(c(x = 90), st, away, n = 10), model_exponential(), chains = 2, iter = 40, warmup = 2, seed = 1))
  expect_true(all(abs(as.numeric(denoise(fit)) - 39) <= 1))
  none <- mech_custom(log_density = function(noise) ifelse(noise[, 1] %% 1 == 0, 0, -Inf)) # no sum of such records is whole
  expect_error(sample_posterior(as_release(c(x = 10.5), st, none, n = 4), model_exponential(), chains = 1, iter = 40, seed = 1),
               class = "noiseaware_error_impossible")
})

test_that("noise of bounded support: the exact posterior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x, bounds = list(x = c(0, 60)))
  inside <- mech_custom(log_density = function(noise) ifelse(abs(noise[, 1]) <= 0.4, -noise[, 1], -Inf))
  fit <- sample_posterior(as_release(3, st, inside, n = 1), model_exponential(prior = prior_gamma(3, 2)), chains = 2, iter = 3500, warmup = 600, seed = 8)
  rate <- seq(0.01, 12, by = 0.01)
  x <- seq(2.6005, 3.4, by = 0.001)
  density <- vapply(rate, function(r) dgamma(r, 3, 2) * sum(dexp(x, r) * exp(x - 3)), 0)
  expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density), sum(rate * density) / sum(density))
})

test_that("a density sees totals that records can have, and a value that is no number is shown with them", {
  bounds <- list(x = c(0, 5))
  root <- mech_custom(log_density = function(z, s) rowSums(dnorm(z, s, 0.1 + sqrt(s) + sqrt(20 - s), log = TRUE)))
  fit <- sample_posterior(as_release(19.9, stat_sums(~ x, bounds = bounds), root, n = 4), model_exponential(), chains = 1, iter = 40, seed = 1) |> suppressWarnings()
  expect_true(all(is.finite(fit$chains[[1]]$log_noise)))
  bad <- mech_custom(log_density = function(z, s) ifelse(s[, 1] < 3, NaN, 0))
  expect_error(sample_posterior(as_release(3.2, stat_sums(~ x, bounds = bounds), bad, n = 4), model_exponential(), chains = 1, iter = 40, seed = 1),
               "NaN for `s` = x = 2.7", class = "noiseaware_error_custom")
  bad <- mech_custom(log_density = function(noise) ifelse(noise[, 1] > 0.2, NaN, 0))
  expect_error(sample_posterior(as_release(3.2, stat_sums(~ x, bounds = bounds), bad, n = 4), model_exponential(), chains = 1, iter = 40, seed = 1),
               "NaN for `noise` = x = 0.5", class = "noiseaware_error_custom")
})

test_that("what an R function costs is measured before a run is said to take no time", {
  slow <- mech_custom(log_density = function(noise) {
    Sys.sleep(0.002)
    -rowSums(abs(noise))
  })
  rel <- as_release(c(x = 6), stat_sums(~ x, bounds = list(x = c(0, 5))), slow, n = 4)
  fit <- suppressWarnings(sample_posterior(rel, model_exponential(), chains = 1, iter = 20, seed = 1))
  expect_no_match(fit$why, "under 0.1 seconds")
  expect_match(fit$why, "seconds|minute")
})

test_that("a density that is next to 0 at the published numbers themselves is heard elsewhere", {
  # of a statistic's numbers only one was published
  second <- mech_custom(log_density = function(z, s) ifelse(rowSums(s) == 4, -1e22, dnorm(s[, 2], z[, 2], 1, log = TRUE)))
  rel <- as_release(c(0, 4), stat_counts(~ x, levels = list(x = c("a", "b"))), second, n = 8)
  fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 2000, seed = 1)
  k <- 0:8
  expect_same_mean(posterior::extract_variable_matrix(denoise(fit), "x=b"), 4)
  expect_same_mean(posterior::extract_variable_matrix(denoise(fit), "x=b")^2, weighted.mean(k^2, dnorm(k, 4)))
})

test_that("simulated releases use r, and only they", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x, bounds = list(x = c(0, 5)))
  data <- data.frame(x = rep(2, 50))
  set.seed(1)
  noise <- replicate(2000, simulate_release(data, st, laplace_of_noise)$value) - 100
  expect_gt(ks.test(abs(noise), "pexp", 1 / 1.5)$p.value, 1e-6)
  rel <- simulate_release(data, st, laplace_of_noise)
  expect_equal(noise_sd(rel), c(x = sqrt(2) * 1.5))
  expect_true(is.na(noise_sd(as_release(3, st, laplace_of_both, n = 2))))
  expect_output(print(rel), "guarantee  not known")
  expect_output(print(laplace_of_noise), "custom density.*slower")
  # counted work knows nothing of R functions
  fit <- suppressWarnings(sample_posterior(rel, model_poisson(), chains = 1, iter = 40, seed = 1))
  expect_no_match(utils::capture.output(print(fit)), "iterations of a chain")
  expect_error(simulate_release(data, st, laplace_of_both), class = "noiseaware_error_mechanism")
  expect_error(simulate_release(data, st, mech_custom(log_density = function(noise) -rowSums(abs(noise)), r = function(s) c(s, 1))), class = "noiseaware_error_custom")
  expect_error(release(data, st, laplace_of_noise), class = "noiseaware_error_mechanism")
  expect_error(write_release(rel, tempfile()), class = "noiseaware_error_file")
  expect_true(all(is.na(privacy(laplace_of_noise))))
  # no environment that could carry data
  carrying <- function(secret) mech_custom(log_density = function(noise) -rowSums(abs(noise)), r = function(s) s)
  expect_identical(environment(carrying(123)$log_density), globalenv())
  expect_identical(environment(carrying(123)$r), globalenv())
})

test_that("what a density returns is checked, its errors are shown", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 5)), rescale = FALSE)
  run <- function(f) sample_posterior(as_release(c(9, 20), st, mech_custom(log_density = f), n = 5), model_exponential(), chains = 1, iter = 20, seed = 1)
  show(refusals("custom", alist(
    run(function(noise) rep(NA_real_, nrow(noise))),
    run(function(noise) -abs(noise)),
    run(function(noise) -sum(abs(noise))),
    run(function(noise) "a"),
    run(function(noise) stop("no such luck")),
    run(function(noise) -rowSums(abs(noise)) - nrow(noise))
  )))
  for (bad in list(function(noise) rep(NA_real_, nrow(noise)), function(z, s) 1, function(noise) stop("x"), function(noise) rep(Inf, nrow(noise)))) {
    expect_error(run(bad), class = "noiseaware_error_custom")
  }
  expect_error(mech_custom(log_density = 1), class = "noiseaware_error_custom")
  expect_error(mech_custom(log_density = function() 1), class = "noiseaware_error_custom")
  expect_error(mech_custom(log_density = function(a, b, c) 1), class = "noiseaware_error_custom")
  expect_error(mech_custom(log_density = function(noise) 1, r = 1), class = "noiseaware_error_custom")
  expect_error(mech_custom(log_density = function(noise) 1, sd = -1), class = "noiseaware_error_mechanism")
  each <- stat_records(~ x, bounds = list(x = c(0, 5)))
  expect_error(as_release(c(1, 2), each, laplace_of_both, n = 2), class = "noiseaware_error_mechanism")
  expect_error(as_release(c(1, 2), st, mech_custom(log_density = function(noise) 1, sd = c(1, 2, 3)), n = 2), class = "noiseaware_error_mechanism")
})
