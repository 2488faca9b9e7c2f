# Slopes of what a surrogate expects (src/mcmc/online_least_squares.c), against least squares.

slopes <- function(changes, responses) .Call(internal("ffi_tilt_slopes"), changes, responses)

test_that("slopes are those of least squares through the origin", {
  set.seed(1)
  size <- 5
  truth <- matrix(stats::rnorm(3 * size), 3)
  units <- c(1e-3, 1, 1, 1, 1e3)
  changes <- t(chol(0.8^abs(outer(1:size, 1:size, "-")))) %*% matrix(stats::rnorm(size * 200), size) * units
  exact <- (truth / rep(units, each = 3)) %*% changes
  expect_equal(slopes(changes, exact) * rep(units, each = 3), truth, tolerance = 1e-3) # a ridge of 1e-4
  noisy <- exact + matrix(stats::rnorm(3 * 200), 3)
  fitted <- noisy %*% t(changes) %*% solve(tcrossprod(changes) + diag(1e-4 * rowSums(changes^2)))
  expect_equal(slopes(changes, noisy), fitted, tolerance = 1e-8)
})

test_that("too few pairs, or pairs that see nothing, give none", {
  set.seed(2)
  changes <- matrix(stats::rnorm(4 * 7), 4)
  expect_null(slopes(changes, changes))
  expect_false(is.null(slopes(cbind(changes, 1:4), cbind(changes, 1:4))))
  expect_null(slopes(matrix(0, 4, 20), matrix(1, 2, 20)))
})
