# Refits with other distributions of a covariate: that they are what they say, and what hangs on them.

bounds <- list(y = c(0, 1), x = c(0, 8), g = c("a", "b"))
skewed <- function(n = 400) {
  set.seed(2)
  x <- pmin(rlnorm(n, 0, 0.8), 8)
  data.frame(y = rbinom(n, 1, plogis(-2 + 2 * x)), x = x, g = rep(c("a", "b"), length.out = n))
}
logistic_fit <- function(formula = y ~ x) {
  rel <- simulate_release(skewed(), stat_crossprod(formula, bounds[all.vars(formula)], outside = "none"), mech_laplace(epsilon = 20))
  sample_posterior(rel, model_logistic(), chains = 2, iter = 500, seed = 1)
}

test_that("refits are fits of the model with that covariate, and a range over them is told", {
  skip_on_cran()
  fit <- logistic_fit()
  warned <- capture_warnings(found <- refit_covariates(fit, iter = 1000, seed = 3))
  expect_identical(unique(found$distribution), c("mixture", "lognormal", "beta"))
  expect_identical(unique(found$coefficient), c("(Intercept)", "x"))
  direct <- sample_posterior(fit$release, model_logistic(covariates = list(x = covariate_beta())), "augment", chains = 2, iter = 1000, seed = 3)
  beta <- found[found$distribution == "beta", ]
  expect_equal(beta$mean, unname(coef(direct)))
  expect_equal(beta$sd, unname(sqrt(diag(vcov(direct)))))
  expect_equal(beta$difference, unname((coef(direct) - coef(fit)) / sqrt(diag(vcov(fit)))))
  ranges <- internal("refit_ranges")(found)
  means <- c(coef(fit)[["x"]], found$mean[found$coefficient == "x" & is.na(found$left_out)])
  expect_equal(c(ranges$lowest[2L], ranges$highest[2L]), range(means))
  # the records have this one, and a slope of 2: the normal fit is far off
  expect_true(is.na(found$left_out[found$distribution == "lognormal"][1L]))
  expect_gt(ranges$range[2L], 3)
  expect_lt(ranges$mean[2L] + 3 * ranges$sd[2L], 2)
  expect_match(warned, "depends on the distribution of the covariates", all = FALSE)
  expect_match(paste(capture.output(print(found)), collapse = " "), "! Depend on the covariates' distribution: .*x")
})

test_that("in a linear regression within natural limits nothing hangs on it", {
  skip_on_cran()
  data <- skewed()
  data$y <- 0.2 + 0.05 * data$x + runif(400, -0.1, 0.1)
  rel <- simulate_release(data, stat_crossprod(y ~ x, bounds[c("y", "x")], outside = "none"), mech_laplace(epsilon = 20))
  fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 500, seed = 1)
  expect_warning(found <- refit_covariates(fit, "x", iter = 1500, seed = 1), NA)
  expect_true(all(is.na(found$left_out)))
  expect_lt(max(internal("refit_ranges")(found)$range), 0.5)
})

test_that("distributions that the bounds or the release rule out are not compared", {
  bound <- internal("bind_model")(model_logistic(covariates = list(x = covariate_beta())), stat_crossprod(y ~ x + z, list(y = c(0, 1), x = c(0, 8), z = c(-1, 1))))
  expect_identical(internal("other_distributions")(bound, "x"), c("normal", "mixture", "lognormal"))
  expect_identical(internal("other_distributions")(bound, "z"), c("mixture", "beta"))
  expect_identical(internal("with_distribution")(bound$model, "x", "normal")$covariates, model_logistic()$covariates)
  refits <- structure(data.frame(covariate = "x", distribution = c("beta", "mixture"), coefficient = "x", mean = c(9, 1.2), sd = 1, difference = 0,
                                 error = 0.01, left_out = c("contradicted", NA)),
                      fit = data.frame(coefficient = "x", mean = 1, sd = 0.1, error = 0.01), class = c("noiseaware_refits", "data.frame"))
  ranges <- internal("refit_ranges")(refits)
  expect_equal(unlist(ranges[c("lowest", "highest", "range")]), c(lowest = 1, highest = 1.2, range = 2))
  expect_warning(internal("warn_refits")(refits), "x: 1 to 1.2, compared with 1", class = "noiseaware_warning_covariates")
  expect_match(paste(capture.output(print(refits)), collapse = " "), "left out, contradicted by the release: x beta")
  # as far apart as Monte Carlo error allows
  attr(refits, "fit")$sd <- 0.19
  refits$error <- 0.1
  expect_warning(internal("warn_refits")(refits), NA)
})

test_that("a fit without numbers to vary is refused", {
  skip_on_cran()
  fit <- logistic_fit(y ~ g)
  expect_error(refit_covariates(fit), "numeric covariates", class = "noiseaware_error_argument")
  expect_error(refit_covariates(1), class = "noiseaware_error_argument")
  fit <- logistic_fit(y ~ x + g)
  expect_error(refit_covariates(fit, "g"), class = "noiseaware_error_argument")
  expect_error(refit_covariates(fit, model = model_lm()), class = "noiseaware_error_argument")
})
