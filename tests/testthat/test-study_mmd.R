# by definition, with R's own exponential
reference_mmd <- function(x, y, bandwidth = 1) {
  kernel <- function(a, b) {
    distances <- as.matrix(stats::dist(rbind(a, b)))[seq_len(nrow(a)), nrow(a) + seq_len(nrow(b)), drop = FALSE]
    exp(-distances^2 / (2 * bandwidth^2))
  }
  own <- function(a) {
    k <- kernel(a, a)
    (sum(k) - sum(diag(k))) / (nrow(a) * (nrow(a) - 1))
  }
  between <- kernel(x, y)
  cross <- if (nrow(x) == nrow(y)) (sum(between) - sum(diag(between))) / (nrow(x) * (nrow(x) - 1)) else mean(between)
  own(x) + own(y) - 2 * cross
}

test_that("two draws a side, computed by hand", {
  # k = exp(-d^2 / 2) at distances 1 (within x), 2 (within y), x1-y2: 4, x2-y1: 1
  expect_equal(mmd(c(0, 1), c(2, 4)), (2 * exp(-0.5) + 2 * exp(-2) - 2 * exp(-8) - 2 * exp(-0.5)) / 2)
  expect_equal(mmd(c(0, 1), c(2, 4), bandwidth = 2), (2 * exp(-1 / 8) + 2 * exp(-0.5) - 2 * exp(-2) - 2 * exp(-1 / 8)) / 2)
})

test_that("it is its definition for any numbers of draws and variables, over tiles and their ends", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  for (size in list(c(255, 255, 1), c(256, 257, 2), c(512, 512, 3), c(3, 700, 4), c(300, 300, 11))) {
    x <- matrix(rnorm(size[1] * size[3]), size[1])
    y <- matrix(rnorm(size[2] * size[3], 0.2, 1.5), size[2])
    expect_lt(abs(mmd(x, y) - reference_mmd(x, y)), 1e-14)
    expect_lt(abs(mmd(x, y, 2) - reference_mmd(x, y, 2)), 1e-14)
  }
})

test_that("the kernel is right from no distance to an endless one", {
  distance <- c(0, 1e-9, 10^seq(-3, 1.5, length.out = 200), 37.1, 37.2, 100, 1e10, 1e150)
  values <- vapply(distance, function(d) .Call(internal("ffi_mmd"), matrix(0), matrix(d), 1)[3], 0)
  expect_equal(values, pmax(exp(-distance^2 / 2), 0), tolerance = 1e-13)
  near <- values > 1e-290
  expect_lt(max(abs(values[near] / exp(-distance[near]^2 / 2) - 1)), 1e-13)
})

test_that("it is unbiased: about 0 for one distribution, positive for two", {
  set.seed(2)
  same <- replicate(200, mmd(rnorm(50), rnorm(50)))
  expect_lt(abs(mean(same)) / (sd(same) / sqrt(200)), 5)
  expect_lt(min(same), 0)
  # E k for unit normals at distance delta in one dimension: exp(-delta^2 / 6) / sqrt(3)
  apart <- replicate(200, mmd(rnorm(50), rnorm(50, 1)))
  expect_lt(abs(mean(apart) - 2 * (1 - exp(-1 / 6)) / sqrt(3)) / (sd(apart) / sqrt(200)), 5)
})

test_that("variables are found by name", {
  set.seed(3)
  x <- cbind(a = rnorm(20), b = rnorm(20))
  y <- cbind(b = rnorm(30), a = rnorm(30), c = 1)
  expect_equal(mmd(x, y), reference_mmd(x, y[, c("a", "b")]))
  expect_equal(mmd(posterior::as_draws_matrix(x), as.data.frame(y), variables = "b"), reference_mmd(x[, "b", drop = FALSE], y[, "b", drop = FALSE]))
  expect_error(mmd(x, y, variables = "c"), class = "noiseaware_error_argument")
  expect_error(mmd(x, cbind(d = 1:3)), class = "noiseaware_error_argument")
  expect_error(mmd(x, 1:3), class = "noiseaware_error_argument")
  expect_error(mmd(x, "a"), class = "noiseaware_error_argument")
  expect_error(mmd(c(1, NA), 1:3), class = "noiseaware_error_argument")
  expect_error(mmd(1, 1:3), class = "noiseaware_error_argument")
  expect_error(mmd(x, y, 0), class = "noiseaware_error_argument")
  expect_warning(mmd(c(0, 100, 300), c(900, 1200, 1700)), class = "noiseaware_warning_bandwidth")
  expect_error(mmd(1:3, 1:3, bandwidth = 1e-308), class = "noiseaware_error_argument")
  expect_no_warning(mmd(c(0, 100, 300), c(900, 1200, 1700), bandwidth = 100))
})
