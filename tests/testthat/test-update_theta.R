# Models that give a density and no update: theta moves by random walks given the records
# (src/mcmc/theta_metropolis.c).

# a normal mean and log sd, the records' density known; `update`: with one of their own too
normal_walk <- function(..., density = function(theta, records) sum(dnorm(records[, "y"], theta[["mu"]], exp(theta[["log_sd"]]), log = TRUE))) {
  model_custom(
    r_prior = function() c(mu = rnorm(1, 0, 2), log_sd = rnorm(1, 0, 0.5)),
    r_records = function(theta, n) cbind(y = rnorm(n, theta[["mu"]], exp(theta[["log_sd"]]))),
    variables = "y",
    log_prior = function(theta) dnorm(theta[["mu"]], 0, 2, log = TRUE) + dnorm(theta[["log_sd"]], 0, 0.5, log = TRUE),
    log_density = density, ...)
}
total_of_y <- stat_sums(~ y, bounds = list(y = c(-1e4, 1e4)))

test_that("the posterior is exact, by quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 4
  z <- 7
  tau <- 3
  rel <- as_release(z, total_of_y, mech_gaussian(sd = tau), n = n)
  mu <- seq(-7, 9, length.out = 400)
  log_sd <- seq(-2.5, 2.5, length.out = 200)
  joint <- outer(mu, log_sd, function(m, s) dnorm(z, n * m, sqrt(n * exp(2 * s) + tau^2)) * dnorm(m, 0, 2) * dnorm(s, 0, 0.5))
  fit <- sample_posterior(rel, normal_walk(), chains = 2, iter = 1700, warmup = 500, seed = 3)
  expect_distribution(parameter_draws(fit, "mu"), grid_quantile(mu, rowSums(joint)), sum(mu * rowSums(joint)) / sum(joint))
  expect_distribution(parameter_draws(fit, "log_sd"), grid_quantile(log_sd, colSums(joint)), sum(log_sd * colSums(joint)) / sum(joint))
  # the prior is elsewhere: a walk without it would show
  expect_gt(abs(sum(mu * rowSums(joint)) / sum(joint) - z / n), 0.2)
  update <- fit$chains[[1]]$state$update
  expect_gt(update[5] / update[4], 0.1)
  expect_lt(update[5] / update[4], 0.6)
})

test_that("the sampler leaves the joint distribution of parameters and release (Geweke 2004)", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  draws <- geweke(normal_walk(), total_of_y, mech_laplace(scale = 3), n = 5, iterations = 1600, passes = 0)
  expect_prior(draws, data.frame(mu = rnorm(1e5, 0, 2), log_sd = rnorm(1e5, 0, 0.5)))
})

test_that("the posterior given the records is that of the conjugate update", {
  skip_on_cran() # takes long; `make test` runs it
  data <- data.frame(y = c(0.3, 1.9, 2.2, -0.4, 1.1, 0.8))
  known <- model_custom(function() c(mu = rnorm(1, 0, 2)), function(theta, n) cbind(y = rnorm(n, theta)), variables = "y",
                        log_prior = function(theta) dnorm(theta, 0, 2, log = TRUE),
                        log_density = function(theta, records) sum(dnorm(records, theta, log = TRUE)))
  fit <- nonprivate_posterior(data, known, total_of_y, chains = 2, iter = 1400, warmup = 500, seed = 2)
  precision <- 1 / 4 + 6
  expect_distribution(parameter_draws(fit, "mu"), function(p) qnorm(p, sum(data$y) / precision, 1 / sqrt(precision)), sum(data$y) / precision)
})

test_that("widths are learned in warmup alone, and a run continues bit for bit", {
  rel <- as_release(7, total_of_y, mech_gaussian(sd = 3), n = 200)
  run <- function(iter) suppressWarnings(sample_posterior(rel, normal_walk(), chains = 1, iter = iter, warmup = 60, seed = 8))
  first <- run(80)
  longer <- suppressWarnings(extend(first, 40))
  expect_identical(longer$draws, run(120)$draws)
  learned <- function(fit) fit$chains[[1]]$state$update[c(1:3, 6:15)]
  expect_identical(learned(longer), learned(first))
  expect_lt(learned(first)[1], learned(run(61))[1] + 1e-12)
})

test_that("debug_model() compares the density with the draw", {
  skip_on_cran() # takes long; `make test` runs it
  # with so many records at a time
  debugged <- function(model, records) {
    model$records <- records
    debug_model(model, total_of_y, n = 60)
  }
  failures <- function(result) result$hook[result$ok %in% FALSE]
  failed <- function(model, records) failures(debugged(model, records))
  quick <- function(code) with_trials(500L, code)
  # with an update, too, which changes nothing here; below, all else is right without one
  expect_identical(quick(failed(normal_walk(r_theta = function(records, theta) theta), 20L)), character())
  # small faults: a standard deviation that is a tenth too wide, of many records, and records that count twice
  wide <- function(theta, records) sum(dnorm(records[, "y"], theta[["mu"]], 1.1 * exp(theta[["log_sd"]]), log = TRUE))
  expect_identical(quick(failed(normal_walk(density = wide), 100L)), "log_density")
  twice <- function(theta, records) 2 * sum(dnorm(records[, "y"], theta[["mu"]], exp(theta[["log_sd"]]), log = TRUE))
  result <- quick(debugged(normal_walk(density = twice), 20L))
  expect_identical(failures(result), "log_density")
  expect_output(print(result), "log_density +is the density of r_records +FAILED +p below 1e-6")
  # a prior density that differs from the draws' density, without a move
  prior <- normal_walk()
  prior$functions$log_prior <- function(theta) dnorm(theta[["mu"]], 0, 4, log = TRUE) + dnorm(theta[["log_sd"]], 0, 0.5, log = TRUE)
  result <- quick(debugged(prior, 2L))
  expect_identical(failures(result), "dprior")
  expect_output(print(result), "log_density +is the density of r_records +- +not tried: first fix log_prior")
  prior$functions$log_prior <- function(theta) dnorm(theta[["mu"]], 0, 1.5, log = TRUE) + dnorm(theta[["log_sd"]], 0, 0.5, log = TRUE)
  expect_identical(quick(failed(prior, 2L)), "dprior")
})

test_that("what is missing or wrong is refused by name", {
  refused <- function(code, pattern) expect_error(code, pattern, class = "noiseaware_error_custom")
  r_prior <- function() c(mu = rnorm(1))
  r_records <- function(theta, n) cbind(y = rnorm(n, theta))
  density <- function(theta, records) sum(dnorm(records, theta, log = TRUE))
  refused(model_custom(r_prior, r_records, variables = "y"), "r_theta` or `log_density")
  refused(model_custom(r_prior, r_records, variables = "y", log_density = density), "log_prior` must be given with `log_density")
  refused(model_custom(r_prior, r_records, variables = "y", log_prior = dnorm, log_density = function(theta) 1), "2 arguments")
  rel <- as_release(7, total_of_y, mech_gaussian(sd = 3), n = 4)
  refused(sample_posterior(rel, normal_walk(density = function(theta, records) c(1, 2)), iter = 10), "log_density.*must return a number or -Inf")
  refused(sample_posterior(rel, normal_walk(density = function(theta, records) stop("oh")), iter = 10), "log_density.*failed")
  late <- local({
    calls <- 0
    function(theta, records) if ((calls <<- calls + 1) > 30) NaN else 0
  })
  refused(sample_posterior(rel, normal_walk(density = late), chains = 1, iter = 10), "log_density.*must return a number or -Inf")
  expect_output(print(normal_walk()), "random walks by log_density")
})

# regressions whose coefficients have Newton proposals, bound to a statistic of y, x and a factor
newton_bounds <- local({
  levels <- c("low", "mid", "high")
  cases <- list(cloglog = list(binomial("cloglog"), c(FALSE, TRUE)), poisson = list(poisson(), c(0, 6)), negative_binomial = list(family_object("negative_binomial"), c(0, 6)),
                gamma = list(Gamma("log"), c(0, 6)), logit = list(family_object("cumulative"), levels), probit = list(family_object("cumulative_probit"), levels),
                categorical = list(family_object("categorical"), levels))
  lapply(cases, function(case) {
    statistic <- stat_crossprod(y ~ x + g, list(y = case[[2]], x = c(-2, 2), g = c("a", "b")))
    internal("bind_model")(model_glm(family = case[[1]]), statistic)
  })
})
newton_stream <- function(seed) internal("new_stream")(c(41, seed))
newton_theta <- function(bound, count, seed) .Call(internal("ffi_model_prior"), bound$spec, newton_stream(seed), as.integer(count))$theta
newton_records <- function(bound, theta, n, seed) .Call(internal("ffi_model_records"), bound$spec, theta, as.integer(n), newton_stream(seed))$records
# walks of no length; the last three are the Newton proposals' own
newton_still <- function(bound) {
  d <- length(bound$walks)
  c(-50, rep(0, 4 + d), rep(0, d^2), diag(d), 1, 0, 0)
}
# `steps` updates by Newton proposals
newton_updates <- function(bound, records, theta, steps, seed) {
  internal("gibbs")(bound, records, nrow(records), list(theta = theta, state = newton_stream(seed), walk = newton_still(bound)), c(1L, steps))
}

test_that("Newton proposals leave the joint distribution of parameters and records, of few of these", {
  skip_on_cran()
  set.seed(11)
  for (bound in newton_bounds) {
    replicates <- 600L
    before <- newton_theta(bound, replicates, 1L)
    own <- bound$walks
    after <- vapply(seq_len(replicates), function(k) {
      newton_updates(bound, newton_records(bound, before[, k], 8L, 10L + k), before[, k], 3L, 5000L + k)$theta[own]
    }, numeric(length(bound$walks)))
    expect_gt(mean(after[1, ] != before[1, ]), 0.3)
    prior <- newton_theta(bound, 10000L, 2L)[own, ]
    for (j in own) expect_gt(suppressWarnings(stats::ks.test(after[j, ], prior[j, ])$p.value), 1e-5)
  }
})

test_that("a Newton proposal keeps the coordinates that it does not move, so that two updates are one after the other", {
  for (bound in newton_bounds) {
    theta <- newton_theta(bound, 1L, 6L)[, 1]
    records <- newton_records(bound, theta, 8L, 7L)
    both <- newton_updates(bound, records, theta, 40L, 8L)
    from <- list(theta = theta, state = newton_stream(8L), walk = newton_still(bound))
    for (k in 1:40) from <- internal("gibbs")(bound, records, nrow(records), from, c(1L, 1L))
    expect_identical(from, both)
  }
})

test_that("Newton proposals of many records are nearly all accepted", {
  skip_on_cran() # takes long; `make test` runs it
  for (bound in newton_bounds) {
    theta <- newton_theta(bound, 1L, 3L)
    theta[bound$walks, 1] <- 0.3 * theta[bound$walks, 1]
    updated <- newton_updates(bound, newton_records(bound, theta, 2000L, 4L), theta, 200L, 5L)
    expect_gt(utils::tail(updated$walk, 1L), 160)
  }
})

# lower triangles of so many rows as symmetric matrices
newton_matrix <- function(lower) {
  m <- matrix(lower, sqrt(length(lower)), byrow = TRUE)
  m[upper.tri(m)] <- t(m)[upper.tri(m)]
  m
}

test_that("slopes of Newton proposals are those of the densities, their matrices what is expected of second differences", {
  for (bound in newton_bounds) {
    own <- bound$walks
    for (seed in 1:3) {
      theta <- newton_theta(bound, 1L, seed)[, 1]
      at <- internal("curve_at")(bound, theta, newton_records(bound, theta, 300L, seed))
      expect_equal(at$curve, at$log_density)
      expect_equal(at$gradient, at$slopes, tolerance = 1e-7)
      expect_equal(at$prior_gradient, at$prior_slopes, tolerance = 1e-7)
    }
    theta[own] <- 0.3 * theta[own]
    records <- newton_records(bound, theta, 5000L, 4L)
    shifts <- cbind(0, 1e-3 * diag(length(theta))[, own], -1e-3 * diag(length(theta))[, own])
    at <- .Call(internal("ffi_model_curve"), bound$spec, theta + shifts, records)
    fall <- (at$gradient[, 1 + length(own) + own] - at$gradient[, 1 + own]) / 2e-3
    said <- newton_matrix(at$matrix[, 1])
    unit <- 1 / sqrt(diag(said))
    expect_lt(max(abs(unit * (said - fall) %*% diag(unit))), 0.1)
    expect_true(all(eigen(said)$values > 0))
  }
})

test_that("debug_model() tries the slopes of Newton proposals", {
  skip_on_cran()
  levels <- c("low", "mid", "high")
  for (family in list(stats::poisson(), family_object("cumulative"))) {
    y <- if (family$family == "poisson") c(0, 6) else levels
    result <- with_trials(100L, debug_model(model_glm(family = family), stat_crossprod(y ~ x, list(y = y, x = c(-2, 2))), n = 60))
    expect_identical(result$ok[result$hook %in% c("curve", "prior_curve")], c(TRUE, TRUE))
  }
  without <- with_trials(100L, debug_model(model_normal(), stat_sums(~ y, c(-3, 3)), n = 60))
  expect_identical(without$ok[without$hook %in% c("curve", "prior_curve")], c(NA, NA))
})

test_that("acceptance() tells what became of Newton proposals", {
  skip_on_cran()
  set.seed(12)
  x <- stats::rnorm(200)
  statistic <- stat_crossprod(y ~ x, list(y = c(0, 20), x = c(-3, 3)))
  release <- simulate_release(data.frame(y = stats::rpois(200, exp(0.5 + 0.5 * x)), x = x), statistic, mech_laplace(epsilon = 5))
  fit <- suppressWarnings(sample_posterior(release, model_glm(family = stats::poisson()), method = "augment", chains = 2, iter = 300, seed = 1))
  counts <- vapply(fit$chains, function(chain) utils::tail(chain$state$update, 2L), numeric(2))
  expect_identical(counts[1, ], 150 * acceptance(fit)$rounds)
  expect_equal(acceptance(fit)$newton, counts[2, ] / counts[1, ])
  expect_output(print(acceptance(fit)), "by Newton steps: accepted 0")
  walks <- sample_posterior(simulate_release(model_exponential(), stat_sums(~ x, c(0, 5)), mech_laplace(epsilon = 1), n = 20), model_exponential(),
                            method = "augment", chains = 1, iter = 100, seed = 1)
  expect_identical(acceptance(walks)$newton, NaN)
})
