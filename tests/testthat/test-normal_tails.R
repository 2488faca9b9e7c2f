# src/base/normal_tails.c against R's own functions

normal_tails <- function(x) .Call(internal("ffi_normal_tails"), x)

test_that("normal densities and tails are those of R", {
  x <- seq(-8.999, 8.999, length.out = 4000)
  told <- normal_tails(x)
  expect_lt(max(abs(told[, 1] / stats::dnorm(x) - 1)), 1e-12)
  expect_lt(max(abs(told[, 2] / stats::pnorm(x) - 1)), 1e-12)
  # the slope of the one is the other, also next to 0, where the tail goes over into what is left of it
  near <- seq(-0.02, 0.02, length.out = 400)
  expect_lt(max(abs(diff(normal_tails(near)[, 2]) / diff(near) / stats::dnorm(near[-1] - diff(near) / 2) - 1)), 1e-5)
})

test_that("there is nothing beyond nine standard deviations, and the order is that of the points", {
  told <- normal_tails(c(-Inf, -9, 9, Inf, 30, -30, 1, -1))
  expect_identical(told[1:6, 1], double(6))
  expect_identical(told[1:6, 2], c(0, 0, 1, 1, 1, 0))
  expect_equal(told[7:8, 2], stats::pnorm(c(1, -1)))
})
