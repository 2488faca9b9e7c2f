# Moves of a mean and a standard deviation that hold a released total: src/records/held_total.c.

clamp <- function(x) pmin(pmax(x, 0), 1)

total_of <- function(mean, sd, n) {
  total <- 0
  for (i in seq_len(max(n))) total <- total + (i <= n) * clamp(mean + sd * rnorm(length(mean)))
  total
}

# from a few to most of the records are inside the bounds
spread_widely <- prior_nig(precision = 0.25, shape = 1, rate = 0.1)

test_that("an unknown number of records: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(1)
  draws <- 1.5e5
  release <- as_release(5.2, stat_sums(~ x, list(x = c(0, 1))), mech_laplace(scale = 0.1), n = NULL)
  fit <- sample_posterior(release, model_normal(prior = spread_widely), prior_n = prior_n("uniform", lower = 5, upper = 7), method = "augment", iter = 2400, seed = 1)
  sd <- sqrt(0.1 / rgamma(draws, 1))
  mean <- 0.5 + 2 * sd * rnorm(draws)
  n <- sample(5:7, draws, TRUE)
  log_weight <- log_noise("absolute", 0.1, 5.2, cbind(total_of(mean, sd, n)))
  expect_weighted_mean(atan(parameter_draws(fit, "mean")), atan(mean), log_weight)
  expect_weighted_mean(log(parameter_draws(fit, "sd")), log(sd), log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd") < 0.35, sd < 0.35, log_weight)
  expect_weighted_mean(parameter_draws(fit, "n"), n, log_weight)
})

test_that("two sites of a partial pool: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(2)
  draws <- 1.5e5
  site <- function(total, n) as_release(total, stat_sums(~ x, list(x = c(0, 1))), mech_laplace(scale = 0.2), n = n)
  fit <- sample_posterior(list(a = site(3.4, 5), b = site(4.8, 6)), model_normal(prior = spread_widely), method = "augment", iter = 2400, seed = 1,
                          pool = partial_pooling(sd = list(mean = prior_half_normal(0.2), sd = prior_half_normal(0.4))))
  sd <- sqrt(0.1 / rgamma(draws, 1))
  mean <- 0.5 + 2 * sd * rnorm(draws)
  between <- abs(cbind(0.2 * rnorm(draws), 0.4 * rnorm(draws)))
  own <- lapply(1:2, function(j) cbind(mean + between[, 1] * rnorm(draws), sd * exp(between[, 2] * rnorm(draws))))
  log_weight <- log_noise("absolute", 0.2, 3.4, cbind(total_of(own[[1]][, 1], own[[1]][, 2], 5))) +
    log_noise("absolute", 0.2, 4.8, cbind(total_of(own[[2]][, 1], own[[2]][, 2], 6)))
  for (j in 1:2) {
    expect_weighted_mean(atan(parameter_draws(fit, sprintf("mean[%s]", c("a", "b")[j]))), atan(own[[j]][, 1]), log_weight)
    expect_weighted_mean(log(parameter_draws(fit, sprintf("sd[%s]", c("a", "b")[j]))), log(own[[j]][, 2]), log_weight)
  }
  expect_weighted_mean(log(parameter_draws(fit, "sd")), log(sd), log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd[log(sd)]"), between[, 2], log_weight)
})

test_that("little noise binds a mean to its standard deviation: chains of four sites meet", {
  skip_on_cran()
  set.seed(1)
  sites <- lapply(c(a = 0.3, b = 0.45, c = 0.5, d = 0.6), function(mean) {
    simulate_release(data.frame(x = rnorm(60, mean, 0.15)), stat_sums(~ x, list(x = c(0, 1))), mech_laplace(epsilon = 20))
  })
  fit <- suppressWarnings(sample_posterior(sites, model_normal(), pool = "partial", method = "augment", iter = 800, seed = 1))
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.05)
})

test_that("held are totals whose records' scatter nothing tells of", {
  of <- function(statistic, model = model_normal("x")) {
    release <- as_release(rep(1, length(statistic$components)), statistic, mech_laplace(scale = 1), n = 5)
    internal("held_bounds")(internal("bind_model")(model, statistic), internal("component_parts")(release))
  }
  bounds <- list(x = c(2, 5))
  expect_identical(of(stat_sums(~ x, bounds)), c(2, 5))
  expect_identical(of(stat_crossprod(x ~ 1, bounds), model_lm(x ~ 1)), double())
  expect_identical(of(stat_sums(~ x + I(x^2), bounds)), double())
  expect_identical(of(stat_sums(~ x, bounds, outside = "none")), double())
  expect_identical(of(stat_sums(~ x, bounds), model_normal("x", prior = list(mean = prior_normal(), sd = fixed(1)))), double())
})
