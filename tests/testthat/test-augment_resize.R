# Steps of an unknown number of records that move all records at once. What they share with other moves, the posterior where
# bounds bind, calibration and restarts, is in test-surrogate.R.

resize_cases <- function() {
  bounds <- list(y = c(-10, 10), x = c(-3, 3), g = c("a", "b", "c"))
  crossed <- stat_crossprod(y ~ x + g, bounds)
  all <- crossed$components
  list(
    factor = list(statistic = crossed, at = all, model = model_lm(prior = prior_nig(), covariates = prior_niw())),
    # totals without those in each level, products of some pairs alone
    subset = list(statistic = crossed, at = c("y", "x", "gb", "y^2", "x:gb"), model = model_lm(prior = prior_normal(), sigma = prior_half_normal(3))),
    totals = list(statistic = stat_crossprod(y ~ x, bounds[1:2], rescale = FALSE), at = c("y", "x", "x^2"), model = model_lm(prior = prior_normal(), sigma = prior_exponential(1))),
    normal = list(statistic = stat_sums(~ x + I(x^2), list(x = c(10, 20))), at = c("x", "x^2"), model = model_normal(prior = prior_nig(15, 1, 3, 12)))
  )
}

test_that("where noise drowns everything n has its prior, whatever was published", {
  skip_on_cran()
  cases <- resize_cases()
  for (case in names(cases)) {
    one <- cases[[case]]
    told <- stats::setNames(c(3, -2, 1, 40, 20, 5, 7, 9, 30, 4, 1)[seq_along(one$at)], one$at)
    release <- as_release(told, one$statistic, mech_gaussian(sd = 1e7), n = NULL, neighbours = "add_remove")
    fit <- suppressWarnings(sample_posterior(release, one$model, method = "augment", records = prior_negative_binomial(30, 6), chains = 2, iter = 6500,
                                             warmup = 500, thin = 4, seed = 1))
    expect_gt(min(acceptance(fit)$tilted), 0.1, label = case)
    n <- posterior::extract_variable_matrix(fit$draws, "n")
    for (cut in stats::qnbinom(stats::ppoints(8), 6, mu = 30)) {
      below <- n <= cut
      expect_lt(abs(mean(below) - stats::pnbinom(cut, 6, mu = 30)), 5 * posterior::mcse_mean(below + 0), label = paste(case, cut))
    }
  }
})

test_that("real data of unknown number: chains agree by default", {
  skip_on_cran()
  births <- transform(MASS::birthwt, smoke = factor(smoke))
  statistic <- stat_crossprod(bwt ~ age + smoke, list(bwt = c(500, 5500), age = c(14, 50), smoke = c("0", "1")))
  published <- with_seed(1, simulate_release(births, statistic, mech_laplace(epsilon = 10), neighbours = "add_remove"))
  release <- as_release(published$value, statistic, mech_laplace(epsilon = 10), n = NULL, neighbours = "add_remove")
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), seed = 1)))
  expect_lt(max(rhat(fit)), 1.1)
  expect_gt(min(ess_bulk(fit)), 100)
})

test_that("chains start at a number of records that totals can have", {
  statistic <- stat_sums(~ x + I(x^2), list(x = c(40, 100)))
  release <- as_release(c(12891, 1414283), statistic, mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  size <- typical_size(release, prior_log_uniform())
  expect_gt(size$n, 1414283 / 1e4) # every square is at most 10,000, and at least 1,600
  expect_lt(size$n, 1414283 / 1600)
  expect_lt(size$sd, size$n)
  expect_lt(abs(typical_size(release, prior_poisson(200))$n - 200), 30)
  # no total tells: as before, somewhere above what it takes
  even <- as_release(c(x = 300), stat_sums(~ x, list(x = c(-3, 3))), mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  expect_gt(typical_size(even, prior_log_uniform())$n, 97)
  falling <- as_release(c(x = -300), stat_sums(~ x, list(x = c(-3, -1))), mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  expect_gt(typical_size(falling, prior_log_uniform())$n, 97)
  expect_lt(typical_size(falling, prior_log_uniform())$n, 310)
})
