null_of <- function(name, value) internal("new_null")(function(values) values[name, , drop = FALSE], value)
simulator <- function(release, model, replicates, seed = 1, records = NULL) internal("new_simulator")(release, model, records, replicates, seed)

two_levels <- stat_counts(~ y, list(y = c("no", "yes")))
square <- stat_counts(~ a:b, list(a = c("0", "1"), b = c("0", "1")))

# of counts of both levels: T = |w - 2 n p|, w = n + (yes - no) with noise, or T of Feldman & Cousins; over all 2^n records and noise from -reach to reach
enumerated_p <- function(value, n, probability, scale, nearest = FALSE, reach = 60) {
  records <- as.matrix(expand.grid(rep(list(0:1), n)))
  yes <- rowSums(records)
  weight <- probability^yes * (1 - probability)^(n - yes)
  noise <- ddiscrete_laplace(-reach:reach, 0, scale)
  grid <- expand.grid(no = -reach:reach, yes = -reach:reach)
  density <- outer(noise, noise)
  statistic <- function(w) (w - 2 * n * probability)^2 - if (nearest) (w - pmin(pmax(w, 0), 2 * n))^2 else 0
  t_observed <- statistic(n + value[["yes"]] - value[["no"]])
  sum(vapply(seq_along(yes), function(i) {
    t <- statistic(n + yes[i] + grid$yes - (n - yes[i]) - grid$no)
    weight[i] * sum(density[t >= t_observed - 1e-9])
  }, 0))
}

test_that("the p-value of a count is that of enumeration, computed and simulated", {
  skip_on_cran()
  for (n in c(1, 4, 6)) for (value in list(c(no = 1, yes = 4), c(no = 5, yes = -2))) {
    release <- as_release(value, two_levels, mech_discrete_laplace(epsilon = 1), n = n)
    for (probability in c(0.2, 0.5, 0.9)) {
      exact <- enumerated_p(value, n, probability, release$scale[[1L]], nearest = TRUE)
      expect_equal(p_value(release, model_bernoulli(), c("prob[yes]" = probability))$p, exact, tolerance = 1e-8)
      exact <- enumerated_p(value, n, probability, release$scale[[1L]])
      sim <- simulator(release, model_bernoulli(), 1999)
      simulated <- internal("null_p")(sim, null_of("prob[yes]", probability))$p
      expect_lt(abs(simulated - exact), 4 * sqrt(exact * (1 - exact) / 2000) + 1 / 2000)
    }
  }
})

test_that("at given parameters of a 2 by 2 table the p-value is that of enumeration", {
  skip_on_cran()
  n <- 4
  scale <- 1
  release <- as_release(c(2, 0, 1, 3), square, mech_discrete_laplace(scale = scale), n = n)
  sim <- simulator(release, model_table(), 3999)
  log_odds <- function(values) matrix(log(values[1L, ] * values[4L, ] / (values[2L, ] * values[3L, ])), 1L)
  null <- internal("new_null")(log_odds, 0)
  point <- internal("move_to_null")(sim, null, sim$middle)
  at <- internal("score_at")(sim, null, point)
  p <- internal("point_values")(sim, point)[, 1L][1:4]
  expect_equal(p[[1L]] * p[[4L]], p[[2L]] * p[[3L]], tolerance = 1e-6)
  tables <- as.matrix(expand.grid(rep(list(0:n), 4L)))
  tables <- tables[rowSums(tables) == n, ]
  weight <- apply(tables, 1L, stats::dmultinom, prob = p)
  noise <- as.matrix(expand.grid(rep(list(-9:9), 4L)))
  density <- apply(matrix(ddiscrete_laplace(noise, 0, scale), ncol = 4L), 1L, prod)
  observed <- internal("score_values")(at, matrix(sim$value, 1L))$tested
  exact <- sum(vapply(seq_along(weight), function(i) {
    t <- internal("score_values")(at, noise + rep(tables[i, ], each = nrow(noise)))$tested
    weight[i] * sum(density[t >= observed * (1 - 1e-9)])
  }, 0))
  simulated <- internal("point_test")(sim, at)$p
  expect_gt(simulated, 0)
  expect_lt(abs(simulated - exact), 4 * sqrt(exact * (1 - exact) / 4000) + 2e-3)
})

test_that("the observed number is one of those that it is ranked among", {
  rank_p <- internal("rank_p")
  expect_equal(rank_p(5, 1:4), 1 / 5)
  expect_equal(rank_p(3, c(1, 3, 3, 4)), 4 / 5)
  expect_equal(rank_p(0, 1:4), 1)
})

# The whole of it: at the truth p is uniform on 1 / 20, .., 1. Also where release and test have the same seed.
test_that("at the truth p-values are uniform", {
  skip_on_cran()
  statistic <- stat_sums(~ y + I(y^2), list(y = c(0, 3)))
  p <- vapply(1:150, function(i) {
    set.seed(i)
    release <- simulate_release(data.frame(y = rnorm(12, 1)), statistic, mech_laplace(epsilon = 2))
    sim <- simulator(release, model_normal(), 19, seed = i)
    point <- internal("bound_theta")(sim$bound, c(mean = 1, sd = 1))
    at <- internal("score_at")(sim, null_of("mean", 1), point)
    z <- internal("simulate_values")(sim, point)
    internal("rank_p")(internal("observed_score")(sim, at)$tested, internal("score_values")(at, z)$tested)
  }, 0)
  counts <- tabulate(round(20 * p), 20L)
  expect_gt(stats::chisq.test(counts)$p.value, 1e-4)
  expect_lte(mean(p <= 0.05), 0.05 + 4 * sqrt(0.05 * 0.95 / 150))
  expect_gte(mean(p <= 0.1), 0.1 - 4 * sqrt(0.1 * 0.9 / 150))
})

test_that("true null hypotheses with nuisance parameters are not rejected too often", {
  skip_on_cran()
  statistic <- stat_sums(~ y + I(y^2), list(y = c(0, 3)))
  p <- vapply(1:60, function(i) {
    set.seed(i)
    release <- simulate_release(data.frame(y = rnorm(20, 1)), statistic, mech_laplace(epsilon = 2))
    p_value(release, model_normal(), c(mean = 1), replicates = 99, seed = i)$p
  }, 0)
  expect_lte(mean(p <= 0.1), 0.1 + 3 * sqrt(0.1 * 0.9 / 60))
  expect_gte(mean(p <= 0.5), 0.15)
})

# A total alone says nothing of the standard deviation. With a large one any mean is possible; at the best fit it is not.
test_that("the p-value is the largest over nuisance parameters", {
  statistic <- stat_sums(~ y, list(y = c(-10, 10)), outside = "none")
  release <- as_release(300, statistic, mech_laplace(epsilon = 1), n = 100)
  sim <- simulator(release, model_normal(), 199)
  null <- null_of("mean", 0)
  point <- internal("best_fit")(sim, null)$point
  plugged_in <- internal("point_test")(sim, internal("score_at")(sim, null, point))$p
  expect_lt(plugged_in, 0.6)
  expect_gt(internal("null_p")(sim, null)$p, max(0.9, plugged_in))
})

test_that("replicates have streams of their own, and pilot records another", {
  release <- as_release(c(no = 1, yes = 4), two_levels, mech_discrete_laplace(epsilon = 1), n = 5)
  sim <- simulator(release, model_bernoulli(), 199)
  expect_false(anyDuplicated(t(sim$seeds)) > 0)
  streams <- apply(sim$seeds, 2L, function(words) paste(internal("new_stream")(words), collapse = ""))
  expect_false(paste(sim$pilot, collapse = "") %in% streams)
  expect_false(anyDuplicated(as.vector(sim$uniform)) > 0)
  expect_equal(simulator(release, model_bernoulli(), 199), sim)
  # replicates differ, and not by their noise alone
  totals <- internal("simulate_values")(replace(sim, "uniform", list(sim$uniform * 0 + 0.5)), sim$middle)
  expect_gt(stats::sd(totals[, 2L]), 0.5)
})

test_that("the region of nuisance parameters is near that of the likelihood ratio", {
  n <- 30
  length_at <- function(z, statistic, model, null, values, scale) {
    sim <- simulator(as_release(z[1L, ], statistic, mech_gaussian(sd = scale), n = n), model, 19)
    at <- internal("score_at")(sim, null, internal("bound_theta")(sim$bound, values)[sim$bound$unknown])
    internal("score_values")(at, z)$nuisance
  }
  # a variance that z has over that of theta
  x <- c(0.25, 0.5, 0.8, 1, 1.5, 2.5)
  sums <- stat_sums(~ y + I(y^2), list(y = c(-20, 20)), outside = "none", rescale = FALSE)
  found <- length_at(cbind(0, n * x), sums, model_normal(), null_of("mean", 0), c(mean = 0, sd = 1), 1e-3)
  exact <- n * (x - 1 - log(x))
  expect_lt(max(abs(found - exact) / (exact + 0.01)), 0.12)
})

# two means on a circle: T is the statistic of the distance to it, from each of its points
test_that("the score of a null hypothesis that bends is that of the way to it", {
  n <- 400
  s2 <- 1.1
  radius <- 2
  at_angle <- function(length, angle) length * c(cos(angle), sin(angle))
  arms <- list(arm = c("a", "b"))
  statistic <- list(size = stat_counts(~ arm, arms), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(-20, 20)), outside = "none", rescale = FALSE), arms))
  records_mean <- at_angle(2.15, 0.7)
  value <- c(n, n, n * records_mean, n * (s2 + records_mean^2))
  release <- as_release(value, statistic, list(size = mech_exact(), total = mech_gaussian(sd = 1e-3)), n = 2 * n)
  sim <- internal("new_simulator")(release, model_normal(y ~ arm), NULL, 19, 1)
  circle <- internal("new_null")(function(p) p["mean[a]", , drop = FALSE]^2 + p["mean[b]", , drop = FALSE]^2, radius^2)
  for (angle in c(0.5, 0.7, 0.85)) {
    point <- unlist(Map(function(one, mean) internal("bound_theta")(one$bound, c(mean = mean, sd = sqrt(s2))), sim$groups, at_angle(radius, angle)))
    found <- internal("observed_score")(sim, internal("score_at")(sim, circle, point))$tested
    expect_equal(found, (2.15 - radius)^2 * n / s2, tolerance = 0.1)
  }
})
