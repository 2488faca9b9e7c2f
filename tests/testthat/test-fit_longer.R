# Runs whose length was left open, and that are too short

st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
births <- withr::with_seed(1, simulate_release(MASS::birthwt[1:60, ], st, mech_laplace(epsilon = 2)))
fit_births <- function(...) suppressMessages(sample_posterior(births, model_lm(), "collapse", ..., chains = 2, seed = 1))

local_constant <- function(name, value, frame = parent.frame()) {
  old <- set_constant(name, value)
  withr::defer(set_constant(name, old), envir = frame)
}

test_that("runs are longer by a power of 2 that brings 500 effective draws and a low R-hat", {
  times <- internal("times_longer")
  expect_identical(times(c(1.001, 1.01), c(400, 900)), 1)
  expect_identical(times(c(1.001, 1.002), c(399, 900)), 2)
  expect_identical(times(c(1.001, 1.002), c(126, 900)), 4)
  expect_identical(times(c(1.001, 1.002), c(60, 900)), 16)
  expect_identical(times(c(1.001, 1.002), c(3, 900)), 32)
  expect_identical(times(c(1.011, 1.002), c(600, 900)), 2)
  expect_identical(times(c(1.03, 1.002), c(600, 900)), 4)
  expect_identical(times(c(2, 1), c(600, 900)), 32)
  expect_identical(times(c(NA, 1), c(600, 900)), 1)
  expect_identical(times(1, NA_real_), 1)
})

test_that("a run that is too short is made again, as a longer one that keeps as many draws", {
  skip_on_cran() # takes long; `make test` runs it
  local_constant("fewest_effective", 1e5)
  expect_message(fit <- sample_posterior(births, model_lm(), "collapse", chains = 2, seed = 1), "2000 iterations were too few \\(as few as [0-9]+ effective",
                 class = "noiseaware_message_longer") |> suppressMessages()
  expect_identical(fit$run[c("iter", "warmup", "thin")], list(iter = 4000, warmup = 2000, thin = 2))
  asked <- fit_births(iter = 4000, thin = 2)
  expect_identical(fit$draws, asked$draws)
  expect_identical(posterior::ndraws(fit$draws), 2000L)
  expect_identical(update(fit)$draws, fit$draws) |> suppressMessages()
  local_constant("highest_r_hat", 1 - 1e-6)
  expect_message(sample_posterior(births, model_lm(), "collapse", chains = 2, seed = 1), "R-hat up to 1", class = "noiseaware_message_longer") |> suppressMessages()
})

test_that("a length that the user gave is kept", {
  local_constant("fewest_effective", 1e5)
  start <- rep(list(c("(Intercept)" = 3000, age = 0, sigma = 700, "mean[age]" = 25, "cov[age,age]" = 30)), 2)
  for (fit in list(fit_births(iter = 2000), fit_births(warmup = 1000), fit_births(thin = 1), fit_births(init = start))) {
    expect_identical(fit$run[c("iter", "warmup", "thin")], list(iter = 2000, warmup = 1000, thin = 1))
  }
})

test_that("it is not made again where that takes long", {
  local_constant("fewest_effective", 1e5)
  local_constant("longest_again", 0)
  expect_identical(fit_births()$run$iter, 2000)
  local_constant("longest_again", 45)
  expect_identical(fit_births()$run$iter, 4000)
  again <- function(run) stop("is not run")
  fit <- fit_births(iter = 2000)
  longer <- internal("longer_if_short")
  local_constant("longest_again", 1.9 * 2 * 2000 * internal("counted_seconds")(fit))
  expect_identical(longer(fit, again), fit)
})

test_that("chains count their work, which says what an iteration costs", {
  local_constant("fewest_effective", 1e5)
  longer <- internal("longer_if_short")
  fits <- list(sample_posterior(births, model_lm(), "augment", chains = 2, iter = 400, seed = 1), fit_births(iter = 400),
               sample_posterior(births, model_lm(), "clt", chains = 2, iter = 400, seed = 1)) |> suppressMessages()
  for (fit in fits) {
    work <- vapply(fit$chains, function(chain) chain$work, 0)
    expect_true(all(work > 400 * 100 & work < 400 * 1e7))
    expect_equal(internal("counted_seconds")(fit), 1e-9 * mean(work) / 400)
    local_constant("longest_again", 1.9 * 2 * 1e-9 * mean(work))
    expect_identical(longer(fit, function(run) stop("is not run")), fit)
    local_constant("longest_again", 2.1 * 2 * 1e-9 * mean(work))
    expect_message(longer(fit, function(run) fit), "400 iterations were too few .* again, with 800", class = "noiseaware_message_longer")
  }
  long <- suppressMessages(extend(fits[[2L]], iter = 400))
  expect_identical(internal("counted_seconds")(long), internal("counted_seconds")(fit_births(iter = 800, warmup = 200)))
})

test_that("chains of R functions are not made again: their time would decide, which is not the same twice", {
  local_constant("fewest_effective", 1e5)
  model <- model_custom(r_prior = function() c(mu = rnorm(1, 0, 3)), r_records = function(theta, n) cbind(bwt = rnorm(n, theta["mu"], 1)),
                        r_theta = function(records, theta) c(mu = rnorm(1, mean(records), 1 / sqrt(nrow(records)))), variables = "bwt")
  totals <- as_release(c(bwt = 4), stat_sums(~ bwt, list(bwt = c(-5, 5))), mech_laplace(scale = 10), n = 5)
  expect_identical(sample_posterior(totals, model, chains = 1, seed = 1)$run$iter, 2000)
  fit <- fit_births(iter = 2000)
  fit$bound$callbacks <- TRUE
  expect_identical(internal("longer_if_short")(fit, function(run) stop("is not run")), fit)
})

test_that("nothing is lost where the longer run fails or is interrupted", {
  local_constant("fewest_effective", 1e5)
  fit <- fit_births(iter = 2000)
  longer <- function(again) suppressMessages(internal("longer_if_short")(fit, again))
  expect_identical(longer(function(run) stop("broken")), fit)
  broken <- fit
  broken$draws <- NULL # no diagnostic can read that
  expect_identical(longer(function(run) fit), fit)
  expect_identical(suppressMessages(internal("longer_if_short")(broken, function(run) fit)), broken)
  part <- fit_births(iter = 1500)
  expect_silent(interrupted <- longer(function(run) {
    warning(structure(class = c("noiseaware_warning_interrupted", "warning", "condition"), list(message = "interrupted", call = NULL)))
    part
  }))
  expect_identical(interrupted, fit)
  expect_identical(longer(function(run) fit_births(iter = run$iter, thin = run$thin))$run$iter, 4000)
})

test_that("pools and regressions on public covariates run again as well", {
  skip_on_cran() # takes long; `make test` runs it
  local_constant("fewest_effective", 1e5)
  local_constant("most_longer", 2)
  other <- withr::with_seed(2, simulate_release(MASS::birthwt[61:120, ], st, mech_laplace(epsilon = 2)))
  sites <- list(a = births, b = other)
  arm <- list(arm = c("a", "b"))
  of_arms <- list(size = stat_counts(~ arm, arm), totals = stat_by(stat_sums(~ y, list(y = c(0, 20)), outside = "none"), arm))
  arms <- withr::with_seed(1, simulate_release(data.frame(arm = rep(arm$arm, 40), y = rpois(80, 3)), of_arms, list(size = mech_laplace(epsilon = 2), totals = mech_laplace(epsilon = 2))))
  public <- data.frame(x = seq(-3, 3, length.out = 80))
  given <- as_release(c(y = 4, "y:x" = 60), stat_sums(~ y + y:x, list(y = c(-9, 9), x = c(-3, 3)), rescale = FALSE), mech_laplace(scale = 9), public = public)
  fits <- list(
    function(...) sample_posterior(sites, model_lm(), pool = "complete", chains = 1, seed = 1, ...),
    function(...) sample_posterior(sites, model_lm(), pool = "partial", chains = 1, seed = 1, ...),
    function(...) sample_posterior(sites, model_lm(), pool = ~ 1, chains = 1, seed = 1, ...),
    function(...) sample_posterior(arms, model_poisson(~ arm), pool = "partial", chains = 1, seed = 1, ...),
    function(...) sample_posterior(given, model_lm(y ~ x), chains = 1, seed = 1, ...))
  for (fit_of in fits) {
    fit <- suppressMessages(fit_of())
    expect_identical(fit$run[c("iter", "warmup", "thin")], list(iter = 4000, warmup = 2000, thin = 2))
    expect_identical(dim(fit$draws)[1:2], c(1000L, 1L))
    expect_identical(suppressMessages(fit_of(iter = 200))$run$iter, 200)
    if (identical(fit_of, fits[[1L]])) expect_identical(fit$draws, suppressMessages(fit_of(iter = 4000, thin = 2))$draws)
  }
})
