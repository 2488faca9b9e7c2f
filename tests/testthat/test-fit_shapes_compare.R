# What skewed covariates would say: against fits with these distributions, and the identities that the answers rest on.

bounds <- list(y = c(0, 1), x = c(0, 8), g = c("a", "b"))
records <- local({
  set.seed(2)
  x <- pmin(rlnorm(400, 0, 0.8), 8)
  data.frame(y = rbinom(400, 1, plogis(-2 + 2 * x)), x = x, z = rnorm(400, 5) + x / 4, g = rep(c("a", "b"), length.out = 400))
})
fit_of <- function(formula, model = model_logistic(), outside = "none", limits = c(bounds, list(z = c(0, 12)))) {
  rel <- with_test_seed(3, simulate_release(records, stat_crossprod(formula, limits[all.vars(formula)], outside = outside), mech_laplace(epsilon = 20)))
  told(sample_posterior(rel, model, chains = 2, iter = 500, seed = 1))
}
with_test_seed <- function(seed, code) {
  set.seed(seed)
  code
}
warned_fit <- function(...) {
  warned <- character()
  fit <- withCallingHandlers(fit_of(...), warning = function(w) {
    warned <<- c(warned, class(w)[1L])
    invokeRestart("muffleWarning")
  })
  list(fit = fit, warned = warned)
}

test_that("skewed answers are near those of fits with these distributions, and are told where they differ", {
  skip_on_cran()
  made <- warned_fit(y ~ x)
  expect_true("noiseaware_warning_covariates" %in% made$warned)
  table <- made$fit$shapes
  refits <- suppressWarnings(refit_covariates(made$fit, iter = 2000))
  of <- function(kind) refits$mean[refits$distribution == kind & refits$coefficient == "x"]
  expect_lt(table$mean[2L], table$lowest[2L])
  expect_lt(abs(table$lowest[2L] - of("beta")) / table$sd[2L], 0.6)
  expect_lt(abs(table$highest[2L] - of("lognormal")) / table$sd[2L], 1.5)
  expect_equal(table$difference, (c(table$lowest[1L], table$highest[2L]) - table$mean) / table$sd)
  expect_true(all(table$error > 0 & table$error < 1))
  # the records' own
  own <- coef(glm(y ~ x, binomial, records))[["x"]]
  expect_gt(own, table$mean[2L] + 3 * table$sd[2L])
  expect_lt(abs(table$highest[2L] - own), own - table$mean[2L])
  expect_match(paste(capture.output(print(made$fit)), collapse = "\n"), "covariates +x: [0-9.]+ \\(sd [0-9.]+\\) with normal covariates, about [0-9.]+ to [0-9.]+ with skewed ones")
})

test_that("recoloured records have the covariances and the means by level", {
  skip_on_cran()
  fit <- suppressWarnings(fit_of(y ~ x + g + z))
  data <- internal("raw_records")(data.frame(x = 1 + records$z / 2 - records$x / 4, z = records$z, g = factor(records$g)))
  for (kind in c("beta", "lognormal")) {
    other <- internal("with_skewed")(fit, data, c("x", "z"), kind)
    a <- cbind(1, data$g == "b", data$x, data$z)
    b <- cbind(1, other$g == "b", other$x, other$z)
    expect_equal(crossprod(b), crossprod(a))
    expect_identical(other$g, data$g)
    expect_gt(cor(other$x, data$x), 0.9)
    expect_gt(max(abs(other$x - data$x)), 0.1)
  }
})

test_that("values have the order and the moments of a distribution within limits", {
  x <- sort(rnorm(5000, 2, 1))
  values <- internal("skewed_values")
  beta <- values(x, 0, 8, "beta")
  expect_false(is.unsorted(beta))
  expect_equal(c(mean(beta), var(beta)), c(mean(x), var(x)), tolerance = 0.01)
  expect_gt(min(beta), 0)
  expect_lt(max(beta), 8)
  share <- mean(x) / 8
  size <- share * (1 - share) * 64 / var(x) - 1
  expect_equal(beta[c(500, 2500)], 8 * qbeta(c(499.5, 2499.5) / 5000, size * share, size * (1 - share)))
  skewness <- function(v) mean((v - mean(v))^3) / sd(v)^3
  # a log-normal distribution of that coefficient of variation
  cv <- sd(x) / mean(x)
  low <- values(x, 0, 8, "lognormal")
  expect_equal(skewness(low), cv^3 + 3 * cv, tolerance = 0.15)
  expect_equal(c(mean(low), sd(low)), c(mean(x), sd(x)), tolerance = 0.02)
  high <- values(8 - rev(x), 0, 8, "lognormal")
  expect_equal(high, 8 - rev(low))
  expect_true(is.na(values(x - 5, 0, 8, "beta")))
  expect_true(is.na(values(rep(c(0.01, 7.99), 100), 0, 8, "beta")))
})

posterior_epred_by_hand <- function(fit, data) {
  beta <- colMeans(internal("coefficient_draws")(fit))
  one <- internal("with_coefficients")(fit, rbind(beta))
  internal("expected_response")(one, data)[1L, , ]
}

test_that("with the same records the coefficients stay where they are", {
  skip_on_cran()
  three <- transform(records, y = cut(x + z + rnorm(400), c(-Inf, 5, 7, Inf), c("l", "m", "h")))
  limits <- list(y = c("l", "m", "h"), x = c(0, 8), z = c(0, 12))
  for (family in c("categorical", "cumulative")) {
    rel <- with_test_seed(1, simulate_release(three, stat_crossprod(y ~ x + z, limits, outside = "none"), mech_laplace(epsilon = 20)))
    fit <- told(suppressMessages(suppressWarnings(sample_posterior(rel, model_glm(family = family), chains = 2, iter = 300, seed = 1))))
    data <- data.frame(x = records$x, z = records$z)
    beta <- colMeans(internal("coefficient_draws")(fit))
    scale <- apply(internal("coefficient_draws")(fit), 2L, sd)
    target <- internal("products_of")(fit, data, rbind(beta))
    expect_equal(internal("solve_products")(fit, data, target[1L, ], beta + scale * rep(c(0.5, -0.5), length.out = length(beta)), scale), beta, tolerance = 0.05)
    # products with each level's probability, by a loop
    p <- posterior_epred_by_hand(fit, data)
    standard <- cbind(1, scale(as.matrix(data)))
    expect_equal(unname(target[1L, ]), as.vector(crossprod(standard, p)) / 400)
    expect_false(is.null(fit$shapes))
  }
})

test_that("a fit with an unknown number of records is compared as well", {
  skip_on_cran()
  rel <- with_test_seed(3, simulate_release(records, stat_crossprod(y ~ x, bounds[c("y", "x")], outside = "none"), mech_laplace(epsilon = 20), neighbours = "add_remove"))
  fit <- told(suppressMessages(suppressWarnings(sample_posterior(rel, model_logistic(), chains = 2, iter = 300, seed = 1))))
  expect_identical(fit$shapes$coefficient, c("(Intercept)", "x"))
})

test_that("nothing is compared where the answer does not hang on it or the limits are not natural", {
  skip_on_cran()
  expect_null(suppressWarnings(fit_of(y ~ x, outside = "clamp"))$shapes)
  expect_null(suppressWarnings(fit_of(y ~ x, model_lm()))$shapes)
  expect_null(suppressWarnings(fit_of(y ~ x, model_logistic(covariates = list(x = covariate_beta()))))$shapes)
  expect_null(suppressWarnings(fit_of(y ~ g))$shapes)
  # a covariate that is normal, far from its limits
  symmetric <- warned_fit(y ~ z)
  expect_lt(max(abs(symmetric$fit$shapes$difference)), 1)
  expect_false("noiseaware_warning_covariates" %in% symmetric$warned)
  expect_false(any(grepl("skewed", capture.output(print(symmetric$fit)))))
})
