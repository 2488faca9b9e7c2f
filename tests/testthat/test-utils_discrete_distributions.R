# The discrete Laplace and Gaussian distributions against sums of their terms.

scales <- c(1e-3, 0.03, 0.2, 0.45, 0.5, 0.7, 1, 3, 7.9, 8, 8.1, 50, 400)
locations <- c(0, 0.5, 0.3, -0.3, 7.25, -1000.75, 0.999)
distributions <- list(
  laplace = list(d = ddiscrete_laplace, p = pdiscrete_laplace, q = qdiscrete_laplace, widths = 60,
                 log_kernel = function(k, m, s) -abs(k - m) / s),
  gaussian = list(d = ddiscrete_gaussian, p = pdiscrete_gaussian, q = qdiscrete_gaussian, widths = 12,
                  log_kernel = function(k, m, s) -(k - m)^2 / (2 * s^2)))

support <- function(distribution, m, s, widths = distribution$widths) seq(floor(m - widths * s) - 4, ceiling(m + widths * s) + 4)

# log of a sum of exp(): the smallest first, in long double
log_sum <- function(a) if (length(a)) max(a) + log(sum(sort(exp(a - max(a))))) else -Inf

# the worst of f(distribution, m, s) over all scales and locations
worst <- function(distribution, f) max(vapply(scales, function(s) max(vapply(locations, function(m) f(distribution, m, s), 0)), 0))

# errors in units of what is compared, and of the exponents that the sums here are made from
relative <- function(got, expected, kernel) {
  finite <- is.finite(expected)
  max(abs(got - expected)[finite] / pmax(1, abs(expected[finite]), abs(max(kernel))), 0)
}

test_that("densities are the kernel over its sum", {
  for (distribution in distributions) {
    expect_lt(worst(distribution, function(distribution, m, s) {
      k <- support(distribution, m, s)
      kernel <- distribution$log_kernel(k, m, s)
      relative(distribution$d(k, m, s, log = TRUE), kernel - log_sum(kernel), kernel)
    }), 1e-13)
    expect_lt(worst(distribution, function(distribution, m, s) abs(sum(distribution$d(support(distribution, m, s), m, s)) - 1)), 1e-13)
  }
})

test_that("at location 0 the Laplace constant is tanh(1 / (2 b))", {
  for (b in c(scales, 1e4, 1e6, 1e9)) {
    k <- c(0, 1, -1, 7, round(3 * b))
    expect_equal(ddiscrete_laplace(k, 0, b, log = TRUE), log(tanh(1 / (2 * b))) - abs(k) / b, tolerance = 1e-13)
  }
})

test_that("tails are sums of the kernel, also the far ones", {
  skip_on_cran() # takes long; `make test` runs it
  for (distribution in distributions) {
    # beyond the sum's range only the nearer tail is known in full
    steps <- c(if (distribution$widths < 40) c(-35, 35), -8, -2.4, -1, -0.1, 0, 0.3, 2, 9)
    expect_lt(worst(distribution, function(distribution, m, s) {
      k <- support(distribution, m, s, 45)
      kernel <- distribution$log_kernel(k, m, s)
      total <- log_sum(kernel)
      at <- floor(m + steps * s)
      tail <- function(lower) vapply(at, function(x) log_sum(kernel[if (lower) k <= x else k > x]) - total, 0)
      max(vapply(c(TRUE, FALSE), function(lower) {
        got <- distribution$p(at, m, s, lower.tail = lower, log.p = TRUE)
        max(relative(got, tail(lower), kernel), abs(distribution$p(at, m, s, lower.tail = lower) / exp(got) - 1)[got > -700])
      }, 0))
    }), 1e-13)
  }
})

test_that("Gaussian tails of a very large scale are sums of the kernel", {
  skip_on_cran() # takes long; `make test` runs it
  s <- 1e6
  m <- 0.4
  for (at in c(-3e6, 5e5)) {
    # the side that is summed, in pieces; the constant is the integral's to all digits
    side <- if (at < m) seq(at - 8 * s, at, by = 5e5) else seq(at, at + 8 * s, by = 5e5)
    pieces <- vapply(seq_along(side)[-1], function(i) sum(dnorm(seq(side[i - 1] + 1, side[i]), m, s)), 0)
    expect_equal(pdiscrete_gaussian(at, m, s, lower.tail = at < m), sum(sort(pieces)), tolerance = 1e-12)
  }
})

test_that("large scales approach the continuous distributions", {
  for (s in c(1e5, 1e6, 1e9)) {
    x <- round(s * c(-30, -4, -1, 0, 0.2, 3))
    expect_equal(pdiscrete_gaussian(x, 0.25, s, log.p = TRUE), pnorm(x + 0.5, 0.25, s, log.p = TRUE), tolerance = 1e-8)
    expect_equal(pdiscrete_laplace(x, 0, s), ifelse(x < 0, exp((x + 0.5) / s) / 2, 1 - exp(-(x + 0.5) / s) / 2), tolerance = 1e-9)
    expect_equal(ddiscrete_gaussian(x, 0.25, s), dnorm(x, 0.25, s), tolerance = 1e-13)
  }
})

test_that("tiny scales leave the nearest integer", {
  for (distribution in distributions) {
    for (s in c(1e-300, 1e-9, 1e-3)) {
      expect_equal(distribution$d(-1:2, 0.3, s), c(0, 1, 0, 0), tolerance = 1e-14)
      expect_equal(distribution$d(-1:2, 0.5, s), c(0, 0.5, 0.5, 0), tolerance = 1e-14)
      expect_identical(distribution$q(c(0.01, 0.99), 12.7, s), c(13, 13))
    }
  }
  # odds of a neighbour, far below the smallest double
  expect_equal(ddiscrete_gaussian(1, 0, 1e-3, log = TRUE), -5e5, tolerance = 1e-14)
  expect_equal(pdiscrete_laplace(-2, 0, 1e-3, log.p = TRUE), -2000, tolerance = 1e-14)
})

test_that("quantiles undo probabilities", {
  skip_on_cran() # takes long; `make test` runs it
  for (distribution in distributions) {
    expect_identical(worst(distribution, function(distribution, m, s) {
      x <- unique(floor(m + s * c(-20, -6, -3, -1, -0.4, 0, 0.2, 1, 2.5, 7, 25)))
      errors <- 0
      for (lower in c(TRUE, FALSE)) {
        for (log in c(TRUE, FALSE)) {
          p <- distribution$p(x, m, s, lower, log)
          # none can be distinguished from a neighbour, or from infinity, whose probability is the same to the last bit
          apart <- p != distribution$p(x - 1, m, s, lower, log) & p != distribution$p(Inf, m, s, lower, log)
          errors <- errors + sum(distribution$q(p[apart], m, s, lower, log) != x[apart])
        }
      }
      u <- c(1e-300, 1e-12, 0.001, 0.2, 0.5, 0.77, 0.999)
      q <- distribution$q(u, m, s)
      errors <- errors + sum(distribution$p(q, m, s) < u | distribution$p(q - 1, m, s) >= u)
      q <- distribution$q(u, m, s, lower.tail = FALSE)
      errors + sum(distribution$p(q, m, s, lower.tail = FALSE) > u | distribution$p(q - 1, m, s, lower.tail = FALSE) <= u)
    }), 0)
  }
})

test_that("quantiles of extreme scales and probabilities end", {
  skip_on_cran() # takes long; `make test` runs it
  for (distribution in distributions) {
    for (s in c(1e6, 1e12, 3e15, 1e17, 1e100, 1e300, 1e-100)) {
      for (m in c(0, 1e5 + 0.5, -1e17)) {
        q <- distribution$q(c(1e-300, 0.3, 0.5, 1 - 1e-16), m, s)
        expect_true(all(is.finite(q)) && !is.unsorted(q) && all(q == floor(q)))
      }
    }
    expect_identical(distribution$q(c(0, 1), 0, 2), c(-Inf, Inf))
    expect_identical(distribution$q(c(0, 1), 0, 2, lower.tail = FALSE), c(Inf, -Inf))
    expect_identical(distribution$q(c(-Inf, 0), 0, 2, log.p = TRUE), c(-Inf, Inf))
    far <- distribution$q(-1e6, 0.2, 3, log.p = TRUE)
    expect_true(distribution$p(far, 0.2, 3, log.p = TRUE) >= -1e6 && distribution$p(far - 1, 0.2, 3, log.p = TRUE) < -1e6)
  }
})

test_that("locations shift and reflect the distribution", {
  for (distribution in distributions) {
    for (s in c(0.1, 1.7, 30)) {
      x <- -40:40
      expect_equal(distribution$d(x + 12, 12.375, s, log = TRUE), distribution$d(x, 0.375, s, log = TRUE), tolerance = 1e-13)
      expect_equal(distribution$d(-x, -0.375, s, log = TRUE), distribution$d(x, 0.375, s, log = TRUE), tolerance = 1e-13)
      expect_equal(distribution$p(-x - 1, -0.375, s, log.p = TRUE), distribution$p(x, 0.375, s, lower.tail = FALSE, log.p = TRUE), tolerance = 1e-12)
    }
  }
})

test_that("arguments are recycled, names and missing values kept", {
  skip_on_cran() # takes long; `make test` runs it
  for (distribution in distributions) {
    expect_identical(distribution$d(c(a = 1, b = NA, c = 3), 0, 2), c(a = distribution$d(1, 0, 2), b = NA, c = distribution$d(3, 0, 2)))
    expect_identical(dim(distribution$p(matrix(1:4, 2), 0, 2)), c(2L, 2L))
    expect_identical(distribution$d(1, c(0, 0.5), c(1, 2)), c(distribution$d(1, 0, 1), distribution$d(1, 0.5, 2)))
    expect_identical(distribution$p(c(-Inf, Inf), 0, 1), c(0, 1))
    expect_identical(distribution$p(c(-Inf, Inf), 0, 1, lower.tail = FALSE, log.p = TRUE), c(0, -Inf))
    expect_identical(distribution$d(c(-Inf, Inf), 0, 1), c(0, 0))
    expect_identical(distribution$d(NA, 0, 1), NA_real_)
    expect_identical(distribution$d(numeric(), 0, 1), numeric())
    expect_identical(distribution$p(2.7, 0, 1), distribution$p(2, 0, 1))
    expect_identical(distribution$d(c(1.5, -0.5), 0, 1), c(0, 0))
  }
})

test_that("the mechanisms' noise is that of the distributions at location 0", {
  k <- -30:30
  u <- c(1e-12, 0.001, 0.3, 0.5, 0.6, 0.999)
  for (name in names(distributions)) {
    for (s in c(0.3, 2, 20)) {
      plugin <- paste0("discrete_", name)
      expect_identical(.Call(internal("ffi_mech_log_density"), plugin, as.double(k), rep(s, 61)), distributions[[name]]$d(k, 0, s, log = TRUE))
      expect_identical(.Call(internal("ffi_mech_quantile"), plugin, u, rep(s, 6)), distributions[[name]]$q(u, 0, s))
    }
  }
})
