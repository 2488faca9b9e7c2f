# Priors: what is accepted, and what it stands for once dimensions are known.

test_that("priors keep their numbers", {
  expect_identical(unclass(prior_normal(1L, 2))[c("mean", "sd")], list(mean = 1, sd = 2))
  expect_identical(prior_nig(c(a = 1, b = 2), 3, 4, 5)$mean, c(1, 2))
  precision <- matrix(c(2, 1, 1, 2), 2)
  expect_identical(prior_nig(precision = precision)$precision, precision)
  expect_identical(prior_nig(precision = diag(2L))$precision, diag(2))
  expect_null(prior_nig()$mean)
  expect_identical(prior_niw()$kappa, 1)
  expect_identical(prior_niw(scale = 2, df = 4)$scale, 2)
  expect_identical(prior_dirichlet(c(1, 2, 3))$alpha, c(1, 2, 3))
  expect_identical(prior_inverse_gamma(2, 3)$rate, 3)
  expect_identical(fixed(list(mean = 1:2, cov = diag(2)))$value, list(mean = 1:2, cov = diag(2)))
  for (prior in list(prior_normal(0, 1), prior_nig(), prior_niw(), prior_dirichlet(), prior_inverse_gamma(1, 1), fixed(1))) {
    expect_s3_class(prior, "noiseaware_prior")
  }
})

test_that("one number stands for all coordinates, a vector for a diagonal", {
  expand_prior <- internal("expand_prior")
  expand_matrix <- internal("expand_matrix")
  expect_identical(expand_prior(2, 3, "mean"), c(2, 2, 2))
  expect_identical(expand_prior(c(1, 2, 3), 3, "mean"), c(1, 2, 3))
  expect_error(expand_prior(c(1, 2), 3, "mean"), class = "noiseaware_error_prior")
  expect_identical(expand_matrix(2, 3, "scale"), diag(2, 3))
  expect_identical(expand_matrix(c(1, 2), 2, "scale"), diag(c(1, 2)))
  expect_identical(expand_matrix(5, 1, "scale"), matrix(5))
  named <- matrix(c(2, 1, 1, 2), 2, dimnames = list(c("a", "b"), c("a", "b")))
  expect_identical(expand_matrix(named, 2, "scale"), unname(named))
  expect_error(expand_matrix(diag(2), 3, "scale"), class = "noiseaware_error_prior")
})

test_that("bad hyperparameters are refused where they are given", {
  bad <- alist(
    prior_normal(0), prior_normal(0, -1), prior_normal(0, 0), prior_normal(0, c(1, NA)), prior_normal(Inf, 1),
    prior_normal("0", 1), prior_normal(0, NULL), prior_normal(numeric(), 1), prior_normal(matrix(0, 2, 1), 1),
    prior_normal(0, diag(2)), prior_normal(factor(1), 1),
    prior_nig(precision = -1), prior_nig(precision = c(1, 0)), prior_nig(precision = matrix(c(1, 2, 2, 1), 2)),
    prior_nig(precision = matrix(c(1, 0, 0.5, 1), 2)), prior_nig(precision = matrix(1, 2, 3)),
    prior_nig(precision = matrix(c(1, NaN, NaN, 1), 2)), prior_nig(precision = matrix("a")), prior_nig(precision = matrix(1, 0, 0)),
    prior_nig(shape = 0), prior_nig(rate = c(1, 2)), prior_nig(shape = NA), prior_nig(rate = TRUE),
    prior_niw(kappa = 0), prior_niw(kappa = NULL), prior_niw(df = -1), prior_niw(scale = 0), prior_niw(scale = matrix(0, 2, 2)),
    prior_inverse_gamma(0, 1), prior_inverse_gamma(1, Inf), prior_dirichlet(0), prior_dirichlet(c(1, -1)), prior_dirichlet(NULL),
    fixed(NULL), fixed(NA), fixed("1"), fixed(list()), fixed(list(1, "a")), fixed(c(1, Inf))
  )
  for (call in bad) expect_error(eval(call), class = "noiseaware_error_prior", label = deparse(call))
})

test_that("priors print", {
  local_reproducible_output()
  expect_snapshot({
    prior_normal(0, 2)
    prior_nig()
    prior_nig(mean = c(1, 2, 3), precision = diag(3), shape = 2, rate = 1 / 3)
    prior_niw()
    prior_inverse_gamma(2, 0.5)
    prior_dirichlet(1:9)
    fixed(sqrt(2))
    fixed(list(mean = c(0.9, -1.17), cov = diag(2)))
  })
})
