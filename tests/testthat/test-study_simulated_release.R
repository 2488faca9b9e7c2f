simulator <- function(release, model, replicates = 2000, records = NULL) internal("new_simulator")(release, model, records, replicates, 1)

# mean and covariance of the replicates are those that the statistic is made of
expect_moments <- function(sim, point = sim$middle, within = 5) {
  z <- internal("simulate_values")(sim, point)
  moments <- internal("point_moments")(sim, point)
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
  again <- t(vapply(1:600, function(i) simulate_release(model, statistic, mech_laplace(epsilon = 5), n = 40, parameters = values)$value, release$value))
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
