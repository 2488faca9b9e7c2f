simulator <- function(release, model, replicates = 2000, records = NULL) internal("new_simulator")(release, model, records, replicates, 1)

# mean and covariance of the replicates are those that the statistic is made of
expect_moments <- function(sim, point = sim$middle, within = 5) {
  z <- internal("simulate_values")(sim, point)
  moments <- internal("moments_at")(sim, cbind(point))[[1L]]
  sd <- sqrt(diag(moments$cov))
  pilot <- if (is.null(sim$known_moments)) sim$release$n / sqrt(3000) / sqrt(sim$release$n) else 0
  expect_lt(max(abs(colMeans(z) - moments$mean) / sd), within * (1 / sqrt(nrow(z)) + pilot))
  expect_equal(unname(stats::cov(z) / outer(sd, sd)), unname(moments$cov / outer(sd, sd)), tolerance = 0.25)
}

test_that("replicates have the moments that the model says", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x, bounds = list(y = c(-2, 4), x = c(-1, 1)))
  expect_moments(simulator(as_release(c(1, 2, 3, 4, 50), statistic, mech_laplace(epsilon = 5), n = 60), model_lm()))
  natural <- stat_crossprod(y ~ x, bounds = list(y = c(-20, 40), x = c(-10, 10)), outside = "none")
  expect_moments(simulator(as_release(c(1, 2, 3, 4, 50), natural, mech_gaussian(sd = 5), n = 60), model_lm()))
  table <- stat_counts(~ a:b, list(a = c("0", "1"), b = c("0", "1", "2")))
  expect_moments(simulator(as_release(c(9, 2, 3, 4, 5, 7), table, mech_discrete_laplace(epsilon = 1), n = 30), model_table()))
  hidden <- mech_laplace(epsilon = 1) |> published(threshold = 3)
  expect_moments(simulator(as_release(c(9, NA, 3, 4, 5, 7), table, hidden, n = 30), model_table()), within = 12)
  queries <- stat_linear(table, list(first = c("a=0:b=0" = 1, "a=0:b=1" = 1), last = c("a=1:b=2" = 1)))
  expect_moments(simulator(as_release(c(first = 9, last = 7), queries, mech_laplace(epsilon = 1), n = 30), model_table()))
})

test_that("replicates are what simulate_release() makes", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x + f, bounds = list(y = c(-2, 4), x = c(-1, 1), f = c("a", "b", "c")))
  model <- model_lm(factors = "independent")
  set.seed(1)
  release <- simulate_release(model, statistic, mech_laplace(epsilon = 5), n = 40)
  sim <- simulator(release, model)
  values <- internal("point_values")(sim, sim$middle)[, 1L]
  z <- internal("simulate_values")(sim, sim$middle)
  again <- t(vapply(1:200, function(i) simulate_release(model, statistic, mech_laplace(epsilon = 5), n = 40, parameters = values)$value, release$value))
  p <- vapply(seq_len(ncol(z)), function(j) suppressWarnings(stats::ks.test(z[, j], again[, j]))$p.value, 0)
  expect_gt(min(p) * ncol(z), 1e-3)
})

test_that("two points have the same random numbers", {
  statistic <- stat_sums(~ y, list(y = c(-50, 50)), outside = "none")
  sim <- simulator(as_release(c(y = 30), statistic, mech_laplace(epsilon = 1), n = 50), model_normal(), 99)
  shifted <- internal("bound_theta")(sim$bound, c(mean = 1, sd = 2))
  there <- internal("bound_theta")(sim$bound, c(mean = 3, sd = 2))
  expect_equal(internal("simulate_values")(sim, there) - internal("simulate_values")(sim, shifted), matrix(100, 99L, 1L))
})

test_that("the unit of a hidden number is its threshold", {
  expect_equal(internal("shown_value")(c(a = 1, b = NA), list(list(mechanism = list(after = list(threshold = 7)), index = 1:2))), c(1, 7))
})

# of one replicate by stats::optim(), and of many their mean and covariance
test_that("coefficients of a perturbed objective are simulated by minimising it", {
  skip_on_cran()
  n <- 150
  statistic <- stat_objective(y ~ x, list(y = c(0, 1), x = c(-2, 2)))
  model <- model_logistic(covariates = fixed(list(mean = 0.3, cov = 0.5)))
  for (mechanism in list(mech_objective(scale = 2, ridge = 3), mech_objective(scale = 2, ridge = 3, norm = "Linf"), mech_objective(sd = 3, ridge = 3))) {
    release <- as_release(c(0.4, 0.8), statistic, mechanism, n = n)
    sim <- internal("new_simulator")(release, model, NULL, 600, 1)
    point <- internal("bound_theta")(sim$bound, c("(Intercept)" = 0.2, x = 1))[sim$bound$unknown]
    z <- internal("simulate_values")(sim, point)
    part <- sim$parts[[1L]]
    for (r in 1:3) {
      x <- internal("records_of_seed")(sim, internal("points_theta")(sim, cbind(point)), n, sim$streams[[r]])
      y <- x[, match("y", sim$bound$columns$name)]
      row <- cbind(1, pmin(pmax(x[, match("x", sim$bound$columns$name)], -2), 2) / 2)
      loss <- function(b) sum(log1p(exp(row %*% b)) - y * (row %*% b)) + 3 * sum(b^2) / 2 + sum(part$perturbation[r, ] * b)
      expect_equal(z[r, ], stats::optim(c(0, 0), loss, method = "BFGS", control = list(reltol = 1e-14))$par, tolerance = 1e-4)
    }
    expect_equal(diag(stats::cov(part$perturbation)), rep(part$variance, 2), tolerance = 0.25)
    moments <- internal("moments_at")(sim, cbind(point))[[1L]]
    expect_lt(max(abs(colMeans(z) - moments$mean) / sqrt(diag(moments$cov))), 0.3)
    expect_equal(diag(stats::cov(z)), diag(moments$cov), tolerance = 0.3)
    expect_lt(abs(stats::cov(z)[2L] / sqrt(prod(diag(stats::cov(z)))) - moments$cov[2L] / sqrt(prod(diag(moments$cov)))), 0.15)
  }
  p <- function(slope) p_value(release, model, c(x = slope), replicates = 59, seed = 1)$p
  expect_gt(p(1), 0.05)
  expect_lt(p(-3), 0.05)
  # with totals as well, of the same records: the total of y is nearly minus the gradient's intercept
  both <- list(fit = statistic, total = stat_sums(~ y, list(y = c(0, 1))))
  release <- as_release(c(0.4, 0.8, 90), both, list(fit = mech_objective(scale = 0.01, ridge = 0.1), total = mech_laplace(scale = 0.01)), n = n)
  sim <- internal("new_simulator")(release, model, NULL, 100, 1)
  z <- internal("simulate_values")(sim, point)
  moments <- internal("moments_at")(sim, cbind(point))[[1L]]
  expect_gt(stats::cor(z[, 1L], z[, 3L]), 0.6)
  expect_lt(abs(stats::cor(z[, 1L], z[, 3L]) - stats::cov2cor(moments$cov)[1L, 3L]), 0.2)
})
