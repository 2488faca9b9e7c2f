covariate_grid <- internal("covariate_grid")

# Functions of released variables in a model's formula: columns against model.matrix() and C's predictor against them, known records against
# lm(), the sampler against importance sampling from the prior in plain R, joint-distribution tests.

functions_bounds <- list(y = c(-4, 12), x = c(1, 4), z = c(-2, 1), g = c("u", "v"))
functions_statistic <- stat_crossprod(y ~ x + z + g, functions_bounds)
within_bounds <- list(x = covariate_beta(), z = covariate_beta())
functions_data <- function(n) {
  set.seed(1)
  data.frame(y = rnorm(n, 3), x = runif(n, 1, 4), z = runif(n, -2, 1), g = factor(sample(c("u", "v"), n, TRUE)))
}

test_that("columns are those of lm(), in R and in C", {
  skip_on_cran()
  data <- functions_data(40)
  formulas <- list(y ~ x + pmax(x - 2, 0) + z + g, y ~ sin(x) * g + z, y ~ cut(x, c(1, 2, 3, 4)) * z + x + g, y ~ x + I(x > 2) + I(x <= 3):z + z + g,
                   y ~ cut(x, c(0, 2, 4), right = FALSE):g + cut(x, c(0, 2, 4), right = FALSE) + g + z, y ~ pmin(x, 3) + I(pmin(x, 3)^2) + x:pmin(x, 3) + I(x^2) + x + z + g)
  all <- y ~ log(x) + log1p(x) + sqrt(x) + exp(x) + expm1(x) + qlogis(x / 5) + plogis(x) + asinh(x) + cos(x) + abs(x - 2) + I(3 / x) + I(2^x) + I(x^-2) + I(x^0.5) +
    pmax(2, x) + log2(x) + log(x, 3) + log10(x) + I(3 - x) + I((x + 1) / 2) + I(x >= 2) + I(2 > x) + z + g
  for (formula in c(formulas, all)) {
    of <- if (identical(formula, all)) within_bounds else prior_niw()
    bound <- internal("bind_model")(model_lm(formula, covariates = of), functions_statistic)
    x <- model.matrix(formula, data)
    expect_identical(internal("coefficient_names")(bound$design), colnames(x))
    records <- internal("record_matrix")(data, bound$base[-1, ], bound$levels)
    expect_equal(cbind(1, internal("term_values")(bound, records)), x, ignore_attr = TRUE)
    expect_equal(bound$terms$centring$matrix %*% bound$terms$centring$inverse, diag(ncol(x)))
    natural <- seq(0.3, by = 0.2, length.out = ncol(x))
    if (inherits(of, "prior_niw")) of <- fixed(list(mean = c(2.5, -0.5), cov = diag(2))) # on both sides of every break
    fixed <- internal("bind_model")(model_lm(formula, fixed(natural), fixed(1e-9), of), functions_statistic)
    theta <- .Call(internal("ffi_model_prior"), fixed$spec, internal("new_stream")(c(1, 2)), 1L)$theta
    made <- .Call(internal("ffi_model_records"), fixed$spec, theta[, 1], 50L, internal("new_stream")(c(3, 4)))$records
    expect_equal(made[, 1], drop(natural[1] + internal("term_values")(fixed, made[, -1]) %*% natural[-1]), tolerance = 1e-6)
  }
})

test_that("splines: columns are those of the package splines, in R and in C, also beyond the knots, and ranges are the largest and least values", {
  skip_on_cran()
  ns <- splines::ns
  bs <- splines::bs
  data <- functions_data(40)
  formulas <- list(y ~ ns(x, knots = c(2, 3), Boundary.knots = c(1, 4)) + z + g, y ~ bs(x, knots = 2.5, Boundary.knots = c(1, 4)) * g + z,
                   y ~ bs(x, knots = c(1.5, 2.5), degree = 1, Boundary.knots = c(1, 4)) + x:z + x + z + g,
                   y ~ bs(x, degree = 2, Boundary.knots = c(1, 4)) + ns(z, Boundary.knots = c(-2, 1)) + g,
                   y ~ ns(sqrt(x), knots = 1.5, Boundary.knots = c(1.1, 1.9)) + z + g)
  for (formula in formulas) {
    of <- if (any(grepl("sqrt", formula))) within_bounds else prior_niw()
    bound <- internal("bind_model")(model_lm(formula, covariates = of), functions_statistic)
    x <- model.matrix(formula, data)
    expect_identical(internal("coefficient_names")(bound$design), colnames(x))
    records <- internal("record_matrix")(data, bound$base[-1, ], bound$levels)
    expect_equal(cbind(1, internal("term_values")(bound, records)), x, ignore_attr = TRUE, tolerance = 1e-12)
    expect_identical(internal("describe_model")(bound), paste("linear regression", paste(trimws(deparse(formula, 500)), collapse = " ")))
    fine <- data.frame(x = seq(1, 4, length.out = 1e4), z = seq(-2, 1, length.out = 1e4), y = 0, g = factor(rep(c("u", "v"), 5e3)))
    range <- apply(model.matrix(formula, fine)[, bound$terms$functions$name, drop = FALSE], 2, range)
    beyond <- rbind(range[1, ] - bound$terms$functions$lower, bound$terms$functions$upper - range[2, ])
    expect_true(all(beyond > -1e-12 & beyond < 2e-4))
    natural <- seq(0.3, by = 0.2, length.out = ncol(x))
    if (inherits(of, "prior_niw")) of <- fixed(list(mean = c(2.5, -0.5), cov = diag(4, 2))) # on both sides of every knot, and beyond
    fixed <- internal("bind_model")(model_lm(formula, fixed(natural), fixed(1e-9), of), functions_statistic)
    theta <- .Call(internal("ffi_model_prior"), fixed$spec, internal("new_stream")(c(1, 2)), 1L)$theta
    made <- .Call(internal("ffi_model_records"), fixed$spec, theta[, 1], 50L, internal("new_stream")(c(3, 4)))$records
    expect_equal(made[, 1], drop(natural[1] + internal("term_values")(fixed, made[, -1]) %*% natural[-1]), tolerance = 1e-6)
    # natural splines, and others, as R has them beyond the knots
    far <- data.frame(x = c(0.2, 5), z = c(-4, 3), y = 0, g = factor(c("u", "v")))
    if (!any(grepl("sqrt", formula))) {
      ours <- cbind(1, internal("term_values")(bound, internal("record_matrix")(far, bound$base[-1, ], bound$levels)))
      expect_equal(ours, suppressWarnings(model.matrix(formula, far)), ignore_attr = TRUE, tolerance = 1e-10)
    }
  }
})

test_that("splines with the records known: lm(), and predictions", {
  skip_on_cran()
  ns <- splines::ns
  data <- functions_data(80)
  data$y <- data$y + sin(2 * data$x)
  model <- model_lm(y ~ ns(x, knots = c(2, 3), Boundary.knots = c(1, 4)) + z + g, prior_normal(0, 1e5), prior_inverse_gamma(1e-3, 1e-3))
  fit <- suppressMessages(suppressWarnings(nonprivate_posterior(data, model, functions_statistic, chains = 2, iter = 1000, seed = 1)))
  truth <- lm(y ~ ns(x, knots = c(2, 3), Boundary.knots = c(1, 4)) + z + g, data)
  for (name in names(coef(truth))) expect_same_mean(parameter_draws(fit, name), coef(truth)[[name]])
  expect_equal(predict(fit, data), unname(fitted(truth)), tolerance = 0.03)
  expect_named(covariate_grid(fit), c("x", "z", "g"), ignore.order = TRUE)
})

test_that("a spline's posterior from totals: one record, importance sampling from the prior", {
  skip_on_cran()
  set.seed(4)
  k <- 1e5
  b <- sapply(1:4, function(j) rnorm(k, c(0.5, 1, -1, 2)[j], 1))
  x <- rnorm(k, 2, 0.8)
  columns <- splines::ns(x, knots = 2, Boundary.knots = c(1, 4))
  y <- b[, 1] + b[, 2] * columns[, 1] + b[, 3] * columns[, 2] + 0.7 * rnorm(k)
  st <- stat_crossprod(y ~ x, functions_bounds[c("y", "x")])
  released <- rep(0.2, length(st$components))
  totals <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), internal("statistic_records")(st, data.frame(y, x), NULL, FALSE))
  log_weight <- -rowSums(abs(sweep(totals, 2, released))) / 0.5
  model <- model_lm(y ~ ns(x, knots = 2, Boundary.knots = c(1, 4)), prior_normal(c(0.5, 1, -1), 1), fixed(0.7), fixed(list(mean = 2, cov = matrix(0.64))))
  fit <- suppressMessages(suppressWarnings(sample_posterior(as_release(stats::setNames(released, st$components), st, mech_laplace(scale = 0.5), 1), model,
                                                            chains = 2, iter = 2400, seed = 1)))
  expect_identical(fit$method, "augment")
  for (j in 1:3) expect_weighted_mean(parameter_draws(fit, fit$bound$parameters[j]), b[, j], log_weight)
})

test_that("splines with knots outside the bounds, or that are no constants, are refused", {
  skip_on_cran()
  of_x <- function(formula) internal("bind_model")(model_lm(formula), stat_crossprod(y ~ x, functions_bounds[c("y", "x")]))
  expect_error(of_x(y ~ ns(x, knots = 2, Boundary.knots = c(0, 4))), "0 does not", class = "noiseaware_error_bounds")
  expect_error(of_x(y ~ bs(x, knots = c(2, 4.5), Boundary.knots = c(1, 5))), "4.5 and 5 do not", class = "noiseaware_error_bounds")
  refusals("formula", list(quote(model_lm(y ~ ns(x, df = 4))), quote(model_lm(y ~ ns(x, knots = 2))), quote(model_lm(y ~ ns(x, knots = 5, Boundary.knots = c(1, 4)))),
                           quote(model_lm(y ~ ns(x, knots = c(3, 2), Boundary.knots = c(1, 4)))), quote(model_lm(y ~ ns(x, knots = k, Boundary.knots = c(1, 4)))),
                           quote(model_lm(y ~ bs(x, degree = 4, Boundary.knots = c(1, 4)))), quote(model_lm(y ~ bs(x, intercept = TRUE, Boundary.knots = c(1, 4)))),
                           quote(model_lm(y ~ I(ns(x, Boundary.knots = c(1, 4))^2))), quote(model_lm(y ~ log(bs(x, Boundary.knots = c(1, 4))))),
                           quote(model_lm(y ~ poly(x, 2))), quote(stat_crossprod(y ~ ns(x, knots = 2, Boundary.knots = c(1, 4)), functions_bounds[c("y", "x")]))))
})

test_that("with the records known: lm(), and predictions", {
  skip_on_cran()
  data <- functions_data(60)
  model <- model_lm(y ~ x + pmax(x - 2.5, 0) + I(z > -1) * g, prior_normal(0, 1e5), prior_inverse_gamma(1e-3, 1e-3))
  fit <- suppressMessages(suppressWarnings(nonprivate_posterior(data, model, functions_statistic, chains = 2, iter = 1000, seed = 1)))
  truth <- lm(formula(fit), data)
  for (name in names(coef(truth))) expect_same_mean(parameter_draws(fit, name), coef(truth)[[name]])
  expect_equal(sqrt(diag(vcov(fit)))[names(coef(truth))], sqrt(diag(vcov(truth)))[names(coef(truth))], tolerance = 0.1)
  expect_equal(predict(fit, data), unname(fitted(truth)), tolerance = 0.03)
  expect_named(covariate_grid(fit), c("x", "z", "g"), ignore.order = TRUE)
})

test_that("one record: importance sampling from the prior", {
  skip_on_cran()
  set.seed(3)
  k <- 1e5
  mean <- c(0.5, 0.4, -0.3, 0.9, 0.6, 0.1)
  sd <- c(1, 0.5, 0.8, 0.7, 0.6, 0.2)
  b <- sapply(1:6, function(j) rnorm(k, mean[j], sd[j]))
  x <- rnorm(k, 2, 0.8)
  g <- rbinom(k, 1, 0.4)
  y <- b[, 1] + b[, 2] * x + b[, 3] * g + b[, 4] * pmax(x - 2, 0) + b[, 5] * (x > 1.5) + b[, 6] * x^2 + 0.7 * rnorm(k)
  # the release has x^2 and its products too, so that all responses move at once
  for (formula in c(y ~ x + g, y ~ x + I(x^2) + g)) {
    st <- stat_crossprod(formula, functions_bounds[c("y", "x", "g")])
    released <- rep(0.2, length(st$components))
    made <- data.frame(y, x, g = c("u", "v")[g + 1])
    totals <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), internal("statistic_records")(st, made, NULL, FALSE))
    log_weight <- -rowSums(abs(sweep(totals, 2, released))) / 0.5
    weight <- exp(log_weight - max(log_weight))
    model <- model_lm(y ~ x + g + pmax(x - 2, 0) + I(x > 1.5) + I(x^2), prior_normal(mean, sd), fixed(0.7), fixed(list(mean = 2, cov = matrix(0.64))), prior_dirichlet(c(6e7, 4e7)))
    fit <- suppressMessages(suppressWarnings(sample_posterior(as_release(stats::setNames(released, st$components), st, mech_laplace(scale = 0.5), 1), model, "augment",
                                                              chains = 2, iter = 1500, seed = 1)))
    for (j in 1:6) {
      draws <- parameter_draws(fit, c("(Intercept)", "x", "gv", "pmax(x - 2, 0)", "I(x > 1.5)TRUE", "I(x^2)")[j])
      centre <- sum(weight * b[, j]) / sum(weight)
      spread <- sqrt(sum(weight * (b[, j] - centre)^2) / sum(weight))
      error <- sqrt(posterior::mcse_mean(draws)^2 + spread^2 * sum(weight^2) / sum(weight)^2)
      expect_lt(abs(mean(draws) - centre) / error, 5)
      expect_lt(abs(sd(draws) / spread - 1), 0.12)
    }
  }
})

test_that("updates and moves leave the joint distribution", {
  skip_on_cran()
  binary <- stat_crossprod(y ~ x + z + g, replace(functions_bounds, "y", list(c(0, 1))))
  for (case in list(list(model_lm(y ~ x + pmax(x - 2, 0) * g + z), functions_statistic), list(model_glm(y ~ log(x) + I(z > 0) * g, covariates = within_bounds), binary))) {
    expect_false(any(!debug_model(case[[1]], case[[2]], seed = 5)$ok, na.rm = TRUE))
  }
})

test_that("functions that no model can have are refused", {
  skip_on_cran()
  rel <- as_release(stats::setNames(numeric(13), functions_statistic$components), functions_statistic, mech_laplace(scale = 1), 9)
  ask <- function(formula, ...) sample_posterior(rel, model_lm(formula, ...), "augment")
  for (formula in c(y ~ log(x) + x + z + g, y ~ I(1 / x) + z + g, y ~ exp(x) + x + z + g, y ~ asinh(y) + x + z + g, asinh(y) ~ x + z + g, y ~ x + z + I(g == "u"), y ~ x + z + g + w,
                    y ~ x + z + g + I(x == 2))) {
    expect_error(ask(formula), class = "noiseaware_error")
  }
  expect_error(ask(y ~ log(x) + x + z + g), "covariate_beta", class = "noiseaware_error_variables")
  expect_error(ask(asinh(y) ~ x + z + g), "Release", class = "noiseaware_error_variables")
  expect_error(ask(y ~ log(z) + x + g, covariates = within_bounds), "finite", class = "noiseaware_error_bounds")
  expect_error(ask(y ~ I(I(x > 2)^2) + x + z + g), class = "noiseaware_error_formula")
  for (method in c("clt", "collapse")) expect_error(sample_posterior(rel, model_lm(y ~ x + pmax(x - 2, 0) + z + g), method), "pmax", class = "noiseaware_error_method")
})

test_that("totals with the response are those of its products with the right columns", {
  st <- stat_crossprod(y ~ x + I(x^2), list(y = c(-2, 2), x = c(-1, 1)))
  bound <- internal("bind_settled")(model_lm(y ~ x + I(x^2) + pmax(x - 0.3, 0)), st, "augment")
  terms <- internal("product_terms")(list(statistic = st, at = seq_along(st$components)), bound)
  by <- internal("response_design")(bound)$name[terms[, 2L] + 1]
  expect_identical(stats::setNames(by, st$components)[c("y^2", "y:x", "y:x^2")], c("y^2" = "y", "y:x" = "x", "y:x^2" = "I(x^2)"))
  expect_identical(terms[, 4L] != 0, st$components == "y")
  expect_identical(terms[, 6L] != 0, st$components %in% c("y^2", "y:x", "y:x^2"))
})
