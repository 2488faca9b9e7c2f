two_levels <- stat_counts(~ y, list(y = c("no", "yes")))
one_count <- stat_subset(two_levels, "y=yes")

# by simulation of the counts themselves
simulated_p <- function(value, n, probability, noise, replicates = 1e5) {
  set.seed(1)
  s <- stats::rbinom(replicates, n, probability)
  counts <- if (length(value) == 2L) cbind(n - s + noise(replicates), s + noise(replicates)) else cbind(s + noise(replicates))
  w <- function(z) if (length(value) == 2L) z[, 2L] + n - z[, 1L] else z[, 1L]
  k <- length(value)
  statistic <- function(w) (w - k * n * probability)^2 - (w - pmin(pmax(w, 0), k * n))^2
  mean(statistic(w(counts)) >= statistic(w(matrix(value, 1L))) - 1e-9)
}

laplace <- function(scale) function(m) stats::rexp(m, 1 / scale) * sample(c(-1, 1), m, TRUE)

test_that("p-values are those of simulated counts", {
  skip_on_cran()
  check <- function(value, mechanism, noise, statistic = two_levels) {
    release <- as_release(value, statistic, mechanism, n = 20)
    for (probability in c(0.1, 0.5)) {
      p <- p_value(release, model_bernoulli(), stats::setNames(probability, "prob[yes]"))
      expect_equal(p$error, 0)
      expect_lt(abs(p$p - simulated_p(value, 20, probability, noise)), 4 * 0.5 / sqrt(1e5))
    }
  }
  both <- c(no = 12, yes = 7)
  check(c(no = 24, yes = -3), mech_laplace(scale = 3), laplace(3))
  check(c(yes = 23), mech_gaussian(sd = 3), function(m) stats::rnorm(m, 0, 3), one_count)
  check(both, mech_laplace(scale = 3), laplace(3))
  check(both, mech_gaussian(sd = 3), function(m) stats::rnorm(m, 0, 3))
  check(both, mech_discrete_laplace(scale = 3), function(m) rdiscrete_laplace(m, 0, 3))
  check(c(yes = 7), mech_laplace(scale = 3), laplace(3), one_count)
  check(c(yes = 7), mech_discrete_laplace(scale = 3), function(m) rdiscrete_laplace(m, 0, 3), one_count)
  check(c(yes = 7), mech_discrete_gaussian(sd = 3), function(m) rdiscrete_gaussian(m, 0, 3), one_count)
  check(c(yes = 7), mech_gaussian(sd = 3), function(m) stats::rnorm(m, 0, 3), one_count)
})

test_that("exact sets of many records are quick and near the normal ones", {
  release <- as_release(c(no = 4e5, yes = 6e5), two_levels, mech_discrete_laplace(epsilon = 1), n = 1e6)
  set <- confidence_set(release, model_bernoulli(), "prob[yes]")
  expect_equal(set$upper - set$lower, 2 * 1.96 * sqrt(0.24 / 1e6), tolerance = 0.03)
})

test_that("the ends of the range can be tested", {
  release <- as_release(c(no = 0, yes = 20), two_levels, mech_discrete_laplace(epsilon = 1), n = 20)
  expect_equal(p_value(release, model_bernoulli(), c("prob[yes]" = 1))$p, 1)
  expect_lt(p_value(release, model_bernoulli(), c("prob[yes]" = 0))$p, 1e-6)
})

test_that("exact p-values of true proportions are at most uniform", {
  skip_on_cran()
  set.seed(1)
  p <- vapply(1:250, function(i) {
    s <- stats::rbinom(1, 8, 0.3)
    release <- as_release(c(no = 8 - s, yes = s) + rdiscrete_laplace(2, 0, 1), two_levels, mech_discrete_laplace(scale = 1), n = 8)
    p_value(release, model_bernoulli(), c("prob[yes]" = 0.3))$p
  }, 0)
  for (a in c(0.01, 0.05, 0.1, 0.5)) expect_lte(mean(p <= a), a + 4 * sqrt(a * (1 - a) / 250))
})
