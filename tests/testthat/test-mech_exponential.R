# Quantiles by the exponential mechanism, against enumeration of all records, brute force over neighbours, and simulated releases.

# Distances from ranks by their definition, of points 0, ..., steps; x is in steps.
distances <- function(x, share, steps) {
  rank <- share * length(x)
  vapply(0:steps, function(g) max(0, sum(x < g) - rank, rank - sum(x <= g)), 0)
}

# log probability of published points
log_chance <- function(at, x, share, steps, scale) {
  sum(vapply(seq_along(at), function(k) {
    u <- -distances(x, share[k], steps) / scale
    u[at[k] + 1] - log(sum(exp(u)))
  }, 0))
}

density_of <- function(counts, at, share, slope) {
  .Call(internal("ffi_density"), list(name = "exponential", fields = list(slope = slope, share = as.double(share), at = as.double(at))), rbind(-as.double(counts)))
}

test_that("points of the grid are the nearest, records beyond the bounds at the ends", {
  st <- stat_quantiles(~ x, bounds = c(-1, 3), steps = 8)
  expect_identical(internal("grid_points")(st, 0:8), seq(-1, 3, by = 0.5))
  x <- c(-Inf, -1e300, -1, -0.76, -0.74, 0.2, 0.3, 2.74, 2.76, 3, 1e300, Inf)
  nearest <- pmin(pmax(round((x + 1) * 2), 0), 8)
  counts <- tabulate(nearest + 1, 9)
  expect_identical(internal("point_counts")(st, cbind(x)), as.double(counts))
  spec <- internal("statistic_spec")(st)
  expect_identical(.Call(internal("ffi_stat_eval"), spec, cbind(x)), outer(nearest, 0:8, `==`) + 0)
  expect_identical(st$components, c("25%", "50%", "75%"))
})

test_that("the density is that of its definition, for few points and many, ranks between records and at the ends", {
  set.seed(1)
  for (i in 1:200) {
    steps <- sample(c(1, 2, 3, 5, 7, 8, 30), 1)
    n <- sample(c(0, 1, 2, 5, 20), 1)
    x <- sample(0:steps, n, replace = TRUE)
    share <- sample(c(0, 0.25, 0.5, 0.75, 1, 3 / 8, 1 / 1024), sample(1:4, 1))
    at <- sample(0:steps, length(share), replace = TRUE)
    slope <- sample(c(0.01, 0.5, 3), 1)
    expect_equal(density_of(tabulate(x + 1, steps + 1), at, share, slope), log_chance(at, x, share, steps, 1 / slope), tolerance = 1e-12)
  }
  # neither overflow nor underflow: all records at one point, or ranks far from the published points
  expect_equal(density_of(c(0, 1e6, 0), 1, 0.5, 100), 0)
  expect_equal(density_of(c(0, 1e6, 0), 2, 0.5, 2), -1e6)
  expect_equal(density_of(c(5e5, 0, 0, 5e5), c(0, 3), c(0.5, 0.5), 1e5), -2 * log(4))
  expect_equal(density_of(rep(1, 2^12), rep(2^11, 1000), seq(0, 1, length.out = 1001)[-1], 1e-9), -1000 * log(2^12), tolerance = 1e-6)
})

test_that("four records on six points: the posterior is that of enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_quantiles(~ x, bounds = c(0, 5), probs = c(0.25, 0.6), steps = 5)
  chance <- c(0.3, 0.1, 0.25, 0.05, 0.1, 0.2)
  # a prior of two values of theta, each with its distribution on the points
  shares <- cbind(chance, rev(chance)^2 / sum(chance^2))
  records <- as.matrix(expand.grid(rep(list(0:5), 4)))
  likelihood <- function(k, at, scale) sum(apply(records, 1, function(x) prod(shares[x + 1, k]) * exp(log_chance(at, x, round(st$probs * 2^20) / 2^20, 5, scale))))
  model <- model_custom(function() c(high = stats::rbinom(1, 1, 0.5)),
                        function(theta, n) cbind(x = sample(0:5, n, TRUE, shares[, theta + 1])),
                        function(records, theta) {
                          l <- colSums(log(shares[records[, "x"] + 1, , drop = FALSE]))
                          c(high = stats::rbinom(1, 1, 1 / (1 + exp(l[1] - l[2]))))
                        }, "x")
  for (at in list(c(1, 2), c(4, 5), c(5, 0))) {
    rel <- as_release(at, st, mech_exponential(epsilon = 6), n = 4)
    expect_equal(unname(rel$scale), c(2, 2) / 3, tolerance = 1e-8)
    fit <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 12000, warmup = 200, seed = 3)
    both <- c(likelihood(1, at, 2 / 3), likelihood(2, at, 2 / 3))
    expect_same_mean(parameter_draws(fit, "high"), both[2] / sum(both))
  }
})
