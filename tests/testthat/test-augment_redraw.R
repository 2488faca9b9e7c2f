# Shapes of all records drawn again while the clamped totals stay: src/records/redraw_steps.c.

redraw_bounds <- list(y = c(-1.5, 1.5), x1 = c(-1.2, 1), x2 = c(-0.6, 1.5))
redraw_statistic <- function() stat_crossprod(y ~ x1 + x2, redraw_bounds)

# A third of the records lie beyond a bound.
redraw_model <- function(sigma = fixed(0.8)) {
  model_lm(prior = prior_normal(0, 0.7), sigma = sigma, covariates = prior_niw(mean = c(0, 0.5), kappa = 4, scale = 6 * diag(2), df = 10))
}

# A chain whose sweeps are said to accept little, and steps of these kinds much; `guide`: what is taken to be known of the totals.
redraw_chain <- function(release, taken, guide, iterations, warmup = 300L, model = redraw_model()) {
  bound <- internal("bind_model")(model, redraw_statistic())
  words <- internal("seed_words")()
  problem <- internal("augment_problem")(release, bound, NULL, words, 1)
  state <- internal("start_chain")(problem, bound, words, 1, NULL)
  run <- list(warmup = warmup, thin = 1)
  .Call(internal("ffi_run"), problem, state, .Call(internal("ffi_block"), problem, warmup, 0L), run)
  state$redraw[] <- c(0, taken, 1000)
  state$guide[] <- guide
  state$surrogate[9] <- 0 # the surrogate has bounds
  block <- .Call(internal("ffi_block"), problem, iterations, iterations)
  .Call(internal("ffi_run"), problem, state, block, run)
  t(block$draws)
}

# Any guide is right: these are a poor one, of nine totals and products.
redraw_guide <- c(rep(1, 9), rep(c(-3, 1, 2), 3), 0.5 * diag(9) + 0.1)

test_that("it draws from the posterior that other moves draw from, whether totals stay or come from the noise, with a guide or without", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  release <- simulate_release(redraw_model(), redraw_statistic(), mech_laplace(scale = 0.3), n = 12)
  told <- function(taken, guide, iterations) {
    as.matrix(posterior::summarise_draws(redraw_chain(release, taken, guide, iterations), "mean", "sd", "mcse_mean", "mcse_sd")[-1])
  }
  usual <- told(c(0, 0), 0, 10000L) # no new shapes
  for (one in list(list(c(1, 0), 0), list(c(0, 0.4), 0), list(c(0, 0.4), redraw_guide))) {
    drawn <- told(one[[1]], one[[2]], 5000L)
    expect_lt(max(abs(drawn[, 1:2] - usual[, 1:2]) / sqrt(drawn[, 3:4]^2 + usual[, 3:4]^2)), 5)
  }
})

test_that("a residual standard deviation that the model keeps goes with the records", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  model <- redraw_model(prior_half_normal(0.8))
  release <- simulate_release(redraw_model(), redraw_statistic(), mech_laplace(scale = 0.3), n = 12)
  told <- function(taken, iterations) {
    as.matrix(posterior::summarise_draws(redraw_chain(release, taken, 0, iterations, model = model), "mean", "sd", "mcse_mean", "mcse_sd")[-1])
  }
  usual <- told(c(0, 0), 7000L)
  drawn <- told(c(0.5, 0.5), 4000L)
  expect_lt(max(abs(drawn[, 1:2] - usual[, 1:2]) / sqrt(drawn[, 3:4]^2 + usual[, 3:4]^2)), 5)
})

test_that("records beyond the bounds mix where noise is small", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  known <- list(mean = c(0.9, -1.17), cov = diag(2))
  truth <- model_lm(prior = fixed(c(-1.8, -2.9, -0.7)), sigma = fixed(sqrt(2)), covariates = fixed(known))
  bounds <- list(y = c(-10, 10), x1 = c(-10, 10), x2 = c(-10, 10))
  release <- simulate_release(truth, stat_crossprod(y ~ x1 + x2, bounds), mech_laplace(scale = 0.01), n = 60)
  fit <- suppressWarnings(sample_posterior(release, model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)), covariates = fixed(known)),
                                           method = "augment", chains = 2, iter = 1000, seed = 5))
  expect_lt(max(summary(fit)$rhat), 1.05)
  for (chain in fit$chains) {
    expect_lt(chain$state$redraw[1], 0.5) # sweeps are accepted too seldom,
    expect_gt(chain$state$redraw[3], 0.5) # and new totals often
    expect_true(any(chain$state$guide != 0))
    expect_equal(chain$state$surrogate[1], 0) # the surrogate was not needed
  }
})

# Oracle: draws from the prior, weighted by the density of the noise.
test_that("the mean of five records, clamped on either side, is that of weighted draws from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  value <- c(1.6, 3.1)
  release <- as_release(value, stat_sums(~ x + I(x^2), list(x = c(-0.5, 1)), rescale = FALSE), mech_laplace(scale = 0.04), 5)
  fit <- sample_posterior(release, model_normal(prior = list(mean = prior_normal(0.3, 1), sd = fixed(1))), method = "augment", chains = 4, iter = 2100, seed = 3)
  for (chain in fit$chains) expect_gt(max(chain$state$redraw[2:3]), 0.02) # new shapes are drawn
  prior <- rnorm(2e6, 0.3, 1)
  sum <- square <- numeric(2e6)
  for (record in 1:5) {
    x <- pmin(pmax(rnorm(2e6, prior), -0.5), 1)
    sum <- sum + x
    square <- square + x^2
  }
  log_weight <- log_noise("absolute", 0.04, value, cbind(sum, square))
  drawn <- parameter_draws(fit, "mean")
  for (power in 1:2) expect_weighted_mean(drawn^power, prior^power, log_weight)
})

# Three records and next to no noise: their sum T and sum of squares Q are known. Either none is clamped, and they lie on a circle
# that does not depend on the mean, T ~ N(3 mean, 3) and Q - T^2 / 3 ~ chi-square with 2 degrees of freedom; or one lies above its bound, which is all that
# is known of it, and the other two solve x + y = T - 1, x^2 + y^2 = Q - 1, at |d(T, Q) / d(x, y)| = 2 |y - x|. No other number of clamped records solves both.
test_that("with next to no noise the mean of three records has the density of those that are clamped and those that are not", {
  skip_on_cran()
  bounds <- c(-0.5, 1)
  value <- c(1.7, 1.37)
  angle <- (seq_len(1e4) - 0.5) / 1e4 * 2 * pi
  left <- value[2] - value[1]^2 / 3
  circle <- outer(angle, 2 * pi / 3 * (0:2), function(a, by) value[1] / 3 + sqrt(2 / 3 * left) * cos(a + by))
  inside <- mean(apply(circle > bounds[1] & circle < bounds[2], 1, all))
  pair <- (value[1] - 1) / 2 + c(-1, 1) * sqrt((value[2] - 1) / 2 - ((value[1] - 1) / 2)^2)
  grid <- seq(-4, 5, by = 0.001)
  none <- dnorm(value[1], 3 * grid, sqrt(3)) * dchisq(left, 2) * inside
  one <- 3 * pnorm(1, grid, lower.tail = FALSE) * 2 * dnorm(pair[1], grid) * dnorm(pair[2], grid) / (2 * diff(pair))
  density <- dnorm(grid, 0.3, 1) * (none + one)
  density <- density / sum(density)
  release <- as_release(value, stat_sums(~ x + I(x^2), list(x = bounds), rescale = FALSE), mech_laplace(scale = 0.003), 3)
  fit <- sample_posterior(release, model_normal(prior = list(mean = prior_normal(0.3, 1), sd = fixed(1))), method = "augment", chains = 4, iter = 4200, seed = 1)
  for (chain in fit$chains) expect_gt(max(chain$state$redraw[2:3]), 0.02)
  drawn <- parameter_draws(fit, "mean")
  for (power in 1:2) expect_same_mean(drawn^power, sum(density * grid^power))
})

# Oracle: draws from the prior, weighted by the density of the noise.
test_that("a sum alone, clamped, tells of mean and standard deviation what weighted draws from the prior do", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  value <- 1.4
  release <- as_release(value, stat_sums(~x, list(x = c(-0.5, 1))), mech_laplace(scale = 0.05), 5)
  prior <- prior_nig(mean = 0.2, precision = 0.5, shape = 3, rate = 2)
  fit <- sample_posterior(release, model_normal(prior = prior), method = "augment", chains = 4, iter = 7200, seed = 4)
  for (chain in fit$chains) expect_gt(chain$state$redraw[3], 0.3) # new totals and new scales are drawn
  count <- 8e5
  variance <- 1 / rgamma(count, 3, 2)
  mean <- rnorm(count, 0.2, sqrt(variance / 0.5))
  sum <- 0
  for (record in 1:5) sum <- sum + pmin(pmax(rnorm(count, mean, sqrt(variance)), -0.5), 1)
  log_weight <- log_noise("absolute", 0.05, value, cbind(sum))
  for (power in 1:2) expect_weighted_mean(parameter_draws(fit, "mean")^power, mean^power, log_weight)
  for (f in list(log, identity)) expect_weighted_mean(f(parameter_draws(fit, "sd")), f(sqrt(variance)), log_weight)
})

# A normal prior of the mean that is not in units of sd: the model keeps log sd, which goes with the new scales.
test_that("a sum alone, clamped, moves a standard deviation whose prior does not depend on the mean as weighted draws from the prior do", {
  skip_on_cran() # takes long; `make test` runs it
  release <- as_release(1.4, stat_sums(~x, list(x = c(-0.5, 1))), mech_laplace(scale = 0.05), 5)
  prior <- list(mean = prior_normal(0.2, 0.8), sd = prior_inverse_gamma(2, 1))
  fit <- sample_posterior(release, model_normal(prior = prior), method = "augment", chains = 4, iter = 3600, seed = 3)
  for (chain in fit$chains) expect_gt(chain$state$redraw[3], 0.3) # new totals and new scales are drawn
  count <- 8e5
  set.seed(2)
  sd <- sqrt(1 / rgamma(count, 2, 1))
  mean <- rnorm(count, 0.2, 0.8)
  sum <- 0
  for (record in 1:5) sum <- sum + pmin(pmax(rnorm(count, mean, sd), -0.5), 1)
  log_weight <- log_noise("absolute", 0.05, 1.4, cbind(sum))
  for (power in 1:2) expect_weighted_mean(parameter_draws(fit, "mean")^power, mean^power, log_weight)
  for (f in list(log, identity)) expect_weighted_mean(f(parameter_draws(fit, "sd")), f(sd), log_weight)
})

test_that("with many records and little noise it goes along the means and standard deviations of a clamped sum", {
  release <- as_release(120, stat_sums(~x, list(x = c(0, 1)), rescale = FALSE), mech_laplace(scale = 0.05), 200)
  fit <- sample_posterior(release, model_normal(prior = list(mean = prior_normal(0.5, 0.5), sd = prior_inverse_gamma(1, 1 / 64))), seed = 1)
  expect_lt(max(summary(fit)$rhat), 1.02)
  expect_gt(min(summary(fit)$ess_bulk), 1000)
})

test_that("sums of two numbers tell of their distribution what weighted draws from the prior do", {
  skip_on_cran() # takes long; `make test` runs it
  value <- c(1.4, -0.5)
  bounds <- list(a = c(-0.5, 1), b = c(-1, 1))
  release <- as_release(value, stat_sums(~ a + b, bounds, rescale = FALSE), mech_laplace(scale = 0.2), 5)
  fit <- sample_posterior(release, model_mvnormal(prior = prior_niw(mean = c(0.2, -0.1), kappa = 0.5, scale = diag(c(2, 1)), df = 5)),
                          method = "augment", chains = 4, iter = 3600, seed = 4)
  taken <- vapply(fit$chains, function(chain) chain$state$redraw[3], 0)
  expect_gt(max(taken), 0.3)
  count <- 4e5
  inverse <- rWishart(count, 5, diag(c(1 / 2, 1)))
  det <- inverse[1, 1, ] * inverse[2, 2, ] - inverse[1, 2, ]^2
  variance_a <- inverse[2, 2, ] / det
  covariance <- -inverse[1, 2, ] / det
  variance_b <- inverse[1, 1, ] / det
  draw <- function(mean_a, mean_b, times) {
    a <- rnorm(count) * sqrt(variance_a)
    b <- covariance / variance_a * a + rnorm(count) * sqrt(variance_b - covariance^2 / variance_a)
    cbind(mean_a + a * times, mean_b + b * times)
  }
  mean <- draw(0.2, -0.1, sqrt(2))
  sum <- 0
  for (record in 1:5) {
    x <- draw(mean[, 1], mean[, 2], 1)
    sum <- sum + cbind(pmin(pmax(x[, 1], -0.5), 1), pmin(pmax(x[, 2], -1), 1))
  }
  log_weight <- log_noise("absolute", 0.2, value, sum)
  drawn <- function(name) parameter_draws(fit, name)
  expect_weighted_mean(drawn("mean[a]"), mean[, 1], log_weight)
  expect_weighted_mean(drawn("mean[b]"), mean[, 2], log_weight)
  expect_weighted_mean(log(drawn("cov[a,a]")), log(variance_a), log_weight)
  expect_weighted_mean(log(drawn("cov[b,b]")), log(variance_b), log_weight)
  correlation <- drawn("cov[b,a]") / sqrt(drawn("cov[a,a]") * drawn("cov[b,b]"))
  expect_weighted_mean(correlation, covariance / sqrt(variance_a * variance_b), log_weight)
})
