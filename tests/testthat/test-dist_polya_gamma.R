# PG(1, c) against its known moments, Laplace transform and distribution.

pg_draws <- function(tilt, n, seed = 1) draw_stream(internal("new_stream")(c(5, seed)), "polya_gamma", n, tilt)$values

# both sides of the change of the inverse Gaussian's sampler (tilt 3.1), the end
# of the table (16), and where nothing is left of the right piece
tilts <- c(0, 0.1, 1, -2.5, 3.1, 3.2, 6, 15.9, 16.1, 40, 100, 1e4)

test_that("moments and Laplace transform are those of PG(1, c)", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 2e5
  for (tilt in tilts) {
    x <- pg_draws(tilt, n)
    expect_true(all(x > 0))
    z <- abs(tilt)
    mean <- if (z == 0) 1 / 4 else tanh(z / 2) / (2 * z)
    variance <- if (z < 0.01) 1 / 24 else if (z > 50) 1 / (2 * z^3) else (sinh(z) - z) / (4 * z^3 * cosh(z / 2)^2)
    expect_lt(abs(mean(x) - mean) / (sd(x) / sqrt(n)), 5)
    square <- (x - mean)^2
    expect_lt(abs(mean(square) - variance) / (sd(square) / sqrt(n)), 5)
    # E exp(-s x) = cosh(z / 2) / cosh(sqrt((z^2 / 2 + s) / 2)), at scales of its own
    for (s in c(0.3, 1, 3) / mean) {
      g <- exp(-s * x)
      log_cosh <- function(a) a + log1p(exp(-2 * a)) - log(2)
      exact <- exp(log_cosh(z / 2) - log_cosh(sqrt((z^2 / 2 + s) / 2)))
      expect_lt(abs(mean(g) - exact) / (sd(g) / sqrt(n)), 5)
    }
  }
})

test_that("draws have the distribution function that inverts the transform", {
  skip_on_cran() # takes long; `make test` runs it
  # PG(1, 0): P(X <= x) from two series, j = 4 x
  cdf <- function(x) {
    n <- 0:60
    vapply(4 * x, function(j) {
      if (j > 0.5) 1 - sum((-1)^n * 4 / (pi * (2 * n + 1)) * exp(-(2 * n + 1)^2 * pi^2 * j / 8)) else
        4 * sum((-1)^n * pnorm(-(2 * n + 1) / sqrt(j)))
    }, 0)
  }
  # the two series agree where they meet
  n <- 0:60
  j <- 0.5
  left <- sum((-1)^n * 4 * pnorm(-(2 * n + 1) / sqrt(j)))
  right <- 1 - sum((-1)^n * 4 / (pi * (2 * n + 1)) * exp(-(2 * n + 1)^2 * pi^2 * j / 8))
  expect_equal(left, right, tolerance = 1e-12)
  x <- pg_draws(0, 1e5, seed = 2)
  expect_gt(ks.test(x, cdf)$p.value, 1e-6)
  # what the series rejects is less than 1% of the candidates, and more on one side of 0.64
  below <- mean(vapply(1:4, function(seed) mean(pg_draws(0, 2e6, seed = seed) <= 0.16), 0))
  exact <- cdf(0.16)
  expect_lt(abs(below - exact) / sqrt(exact * (1 - exact) / 8e6), 5)
  # tilted: the same density times cosh(c / 2) exp(-c^2 x / 2), by quadrature
  grid <- seq(0, 6, length.out = 20001)
  flat <- diff(cdf(grid))
  tilted <- function(tilt) {
    p <- flat * exp(-tilt^2 * (grid[-1] + grid[-length(grid)]) / 4)
    stats::approxfun(grid, c(0, cumsum(p)) / sum(p), rule = 2)
  }
  for (tilt in c(1, 3, 4)) expect_gt(ks.test(pg_draws(tilt, 1e5, seed = 3), tilted(tilt))$p.value, 1e-6)
})
