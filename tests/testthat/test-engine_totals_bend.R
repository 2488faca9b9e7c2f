# Coordinates of means as distances from where they are most likely: src/totals/mean_sd_ridge.c, R/engine_totals_bend.R.

# totals of x and of its squares in its own units, from far off the mean
far_statistic <- function(bounds = c(4, 8)) stat_sums(~ x + I(x^2), list(x = bounds), rescale = FALSE)

# bends of `columns` columns that mean nothing: any are as exact as those that are chosen
any_bend <- function(columns) {
  x <- seq(-6, 4, length.out = 64)
  unlist(lapply(seq_len(columns), function(i) c(x[1], x[2] - x[1], sin(i + x), cos(i + x))))
}

test_that("moments of a clamped normal distribution, and their slopes in its mean, are those of quadrature", {
  moments <- function(mean, sd, lower, upper) {
    moment <- function(power) stats::integrate(function(u) pmin(pmax(mean + sd * u, lower), upper)^power * stats::dnorm(u), -9, 9, rel.tol = 1e-10, subdivisions = 1000L)$value
    c(moment(1), moment(2))
  }
  for (case in list(c(0.3, 1.2, -1, 2), c(4.6, 0.8, 4, 7), c(-2, 0.5, -1, 1), c(1, 0.1, -50, 50))) {
    got <- internal("clamped_moments")(case[1], case[2], case[3], case[4])
    expect_equal(c(got$first, got$second), moments(case[1], case[2], case[3], case[4]), tolerance = 1e-6)
    h <- 1e-4
    slopes <- (moments(case[1] + h, case[2], case[3], case[4]) - moments(case[1] - h, case[2], case[3], case[4])) / (2 * h)
    expect_equal(c(got$slope_first, got$slope_second), slopes, tolerance = 1e-4)
  }
})

test_that("a band goes through the most likely means, clamped and not, and only where it is narrow", {
  set.seed(1)
  bend <- function(release, clamped = TRUE) {
    terms <- t(rbind(c(0, 0, 0, 1, 0, 0), c(0, 0, 0, 0, 0, 1)))
    internal("totals_bend")(terms, release$value, 2 * release$mechanism$scale^2 * c(1, 1), 4, 8, release$n, clamped)
  }
  release <- as_release(c(925, 4310), far_statistic(), mech_laplace(scale = 5), 200)
  energy <- function(mean, sd, lower, upper) {
    at <- internal("clamped_moments")(mean, sd, lower, upper)
    sum((release$value - 200 * c(at$first, at$second))^2)
  }
  for (clamped in c(TRUE, FALSE)) {
    told <- bend(release, clamped)
    expect_length(told, 130)
    for (knot in c(40, 45, 48)) {
      sd <- exp(told[1] + (knot - 1) * told[2])
      wide <- if (clamped) 0 else 1e4
      expect_equal(told[2 + knot], stats::optimize(function(mean) energy(mean, sd, 4 - wide, 8 + wide), c(3, 6), tol = 1e-9)$minimum, tolerance = 1e-5)
    }
  }
  expect_identical(bend(as_release(c(925, 4310), far_statistic(), mech_laplace(scale = 0.01), 200)), double()) # both are known
  expect_false(identical(bend(release, TRUE), bend(release, FALSE)))
})

test_that("with a bend gradients are those of finite differences, and its Jacobian is 1", {
  set.seed(2)
  bounds <- list(y = c(4, 8), x = c(2, 6))
  statistic <- stat_crossprod(y ~ x, bounds, rescale = FALSE)
  data <- data.frame(y = stats::rnorm(60, 5, 0.7), x = stats::rnorm(60, 4, 0.8))
  for (mechanism in list(mech_laplace(scale = 4), mech_gaussian(sd = 4))) {
    release <- simulate_release(data, statistic, mechanism)
    bound <- internal("bind_model")(model_lm(prior = prior_nig()), statistic)
    chain <- function(bend) {
      problem <- internal("augment_problem")(release, bound, NULL, c(1, 2), 1)
      if (is.null(bend)) expect_length(problem$surrogate$bend, 2 * 130) else problem$surrogate$bend <- bend
      list(problem = problem, state = internal("start_chain")(problem, bound, c(1, 2), 1, NULL))
    }
    for (exact in c(FALSE, TRUE)) {
      at <- function(of, q) .Call(internal("ffi_augment_density"), of$problem, of$state, exact, q)
      bent <- chain(NULL)
      told <- at(bent, numeric())
      size <- (length(told) - 1) / 2
      q <- told[1 + size + seq_len(size)] + stats::rnorm(size, 0, 0.01)
      expect_equal(at(bent, q)[1 + seq_len(size)], difference_slopes(function(q) at(bent, q), q, 1e-6 * (1 + abs(q))), tolerance = 1e-4)
    }
  }
  collapse <- function(field, q = NULL) {
    problem <- internal("collapse_problem")(release, bound)
    problem$fields$bend <- if (field) internal("collapse_bend")(problem, bound, FALSE) else double()
    state <- internal("start_chain")(problem, bound, c(1, 2), 1, NULL)
    list(state = state, bend = problem$fields$bend, density = function(q) .Call(internal("ffi_collapse_density"), problem, state, q))
  }
  bent <- collapse(TRUE)
  q <- bent$state$store[1:5] + 0.01
  expect_equal(bent$density(q)[-1], difference_slopes(bent$density, q, 1e-6 * (1 + abs(q))), tolerance = 1e-5)
  # the same totals without the bend: M moved by sqrt(n) g(log(S_ii / n) / 2), S of rows of F with log F_ii; y comes last
  square <- exp(2 * q[c(3, 5)]) * c(1, 1 + q[4]^2)
  knots <- matrix(bent$bend, 130)[, 2:1]
  g <- vapply(1:2, function(i) {
    stats::splinefunH(knots[1, i] + (0:63) * knots[2, i], knots[2 + 1:64, i], knots[66 + 1:64, i])(log(square[i] / 60) / 2)
  }, 0)
  straight <- q + c(sqrt(60) * g, 0, 0, 0)
  expect_equal(bent$density(q)[1], collapse(FALSE)$density(straight)[1], tolerance = 1e-8)
})

test_that("any bend leaves the joint distribution as it is", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  model <- model_normal(prior = prior_nig(5, 2, 3, 1))
  expect_prior(geweke_totals(model, far_statistic(), mech_laplace(scale = 3), 8, 6000, fields = list(bend = any_bend(1))), prior_draws(model, far_statistic()))
  old <- set_constant("surrogate_bend", function(...) any_bend(1))
  on.exit(set_constant("surrogate_bend", old))
  for (exact in 0:1) {
    # the mean goes slowly: 3,000 iterations have a handful of effective draws, and do not tell so
    draws <- geweke(model, far_statistic(), mech_laplace(scale = 3), n = 12, iterations = 40000, passes = NULL, warmup = 300L, prepare = function(state, problem) {
      state$surrogate[c(2, 4)] <- c(1, exact)
      state
    })
    expect_prior(draws, prior_draws(model, far_statistic()))
  }
})

test_that("totals from far off have the posterior of quadrature, whatever the noise", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  statistic <- far_statistic(c(0, 10))
  for (scale in c(15, 3)) {
    release <- as_release(c(951, 4560), statistic, mech_gaussian(sd = scale), 200)
    model <- model_normal(prior = prior_nig(5, 1, 2, 1))
    # the totals' mean m and scatter s: given sigma they are normal and sigma^2 times chi-squared
    log_sd <- seq(log(0.05), log(4), length.out = 2001)
    marginal <- function(m) {
      s <- 200 * exp(2 * log_sd)
      b <- 1 + s / 2 + 200 * (m - 5)^2 / (2 * 201)
      log_p <- 199 / 2 * log(s) - (2 + 100) * log(b)
      misfit <- ((release$value[1] - 200 * m) / scale)^2 / 2 + ((release$value[2] - s - 200 * m^2) / scale)^2 / 2
      log_p - misfit
    }
    means <- seq(4.4, 5, length.out = 3001)
    log_p <- vapply(means, marginal, log_sd)
    weight <- rowSums(exp(log_p - max(log_p)))
    quantile <- function(p) exp(log_sd[which(cumsum(weight) >= p * sum(weight))[1]])
    for (method in c("collapse", "augment")) {
      fit <- suppressWarnings(sample_posterior(release, model, method = method, chains = 4, iter = 3000, seed = 1))
      sd <- vapply(fit$chains, function(chain) sqrt(chain$statistic[, 2] / 200 - (chain$statistic[, 1] / 200)^2), numeric(1500))
      expect_distribution(sd, quantile)
      expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.03) # 1.4 and more without a bend
    }
  }
})

test_that("one record, and bounds of one column that do not meet, have no bend", {
  release <- as_release(c(5.2, 27), far_statistic(), mech_laplace(scale = 0.3), 1)
  for (method in c("augment", "collapse")) {
    fit <- suppressWarnings(sample_posterior(release, model_normal(), method = method, chains = 1, iter = 200, seed = 1))
    expect_true(all(is.finite(fit$draws)))
  }
  apart <- as_release(list(low = c(225, 1013), high = c(275, 1513)), list(low = far_statistic(c(4, 4.5)), high = far_statistic(c(5.5, 7))),
                      list(low = mech_laplace(scale = 5), high = mech_laplace(scale = 5)), 50)
  fit <- suppressWarnings(sample_posterior(apart, model_normal(), method = "augment", chains = 1, iter = 60, seed = 1))
  expect_true(all(is.finite(fit$draws)))
})

test_that("totals at their bounds with hardly any noise have a bend, or none, but no error", {
  bend <- internal("column_bend")
  both <- rbind(c(1, 0), c(0, 1))
  for (upper in c(1, 1e9)) for (clamped in c(TRUE, FALSE)) for (share in c(0, 1, 1.01)) {
    told <- expect_no_error(bend(both, share * 100 * c(upper, upper^2), c(1e-2, 1e-2), 0, upper, 100, clamped))
    expect_true(is.null(told) || all(is.finite(told)))
  }
})
