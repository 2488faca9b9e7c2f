# Products, powers and offsets in a model's formula: columns and names against model.matrix(), known records against lm() and glm(),
# the sampler against importance sampling from the prior in plain R, joint-distribution tests, limits of the noise.

terms_bounds <- list(y = c(-4, 12), x = c(1, 4), z = c(-2, 1), g = c("u", "v", "w"), h = c("no", "yes"))
terms_statistic <- stat_crossprod(y ~ x + z + g + h, terms_bounds)
terms_formulas <- list(y ~ x * g + z + h, y ~ (x + z + g)^2 + h, y ~ x * z * g + h, y ~ x + z + I(z^2) + g * h, y ~ I(x^2) * g + x + z + h, y ~ x:z + g + h,
                       y ~ x + x:g + z + h, y ~ I(x^3) + z + g:h + g + h, y ~ h * x + g * z + I(x^2) + I(x^2):h)
terms_data <- function(n, seed = 1) {
  set.seed(seed)
  data.frame(y = rnorm(n, 3), x = runif(n, 1, 4), z = runif(n, -2, 1), g = factor(sample(c("u", "v", "w"), n, TRUE)), h = factor(sample(c("no", "yes"), n, TRUE)))
}

test_that("columns and names are those of lm(), and centred coefficients give natural ones", {
  skip_on_cran()
  data <- terms_data(40)
  for (formula in terms_formulas) {
    bound <- internal("bind_model")(model_lm(formula), terms_statistic)
    x <- model.matrix(formula, data)
    expect_identical(internal("coefficient_names")(bound$design), colnames(x))
    records <- internal("record_matrix")(data, bound$base[-1, ], bound$levels)
    expect_equal(cbind(1, internal("term_values")(bound, records)), x, ignore_attr = TRUE)
    centring <- bound$terms$centring
    expect_equal(centring$matrix %*% centring$inverse, diag(ncol(x)))
    # C: the expected response of a record, from natural coefficients
    natural <- seq(0.3, by = 0.2, length.out = ncol(x))
    fixed <- internal("bind_model")(model_lm(formula, fixed(natural), fixed(1e-9)), terms_statistic)
    theta <- .Call(internal("ffi_model_prior"), fixed$spec, internal("new_stream")(c(1, 2)), 1L)$theta
    made <- .Call(internal("ffi_model_records"), fixed$spec, theta[, 1], 50L, internal("new_stream")(c(3, 4)))$records
    seen <- internal("term_values")(fixed, made[, -1])
    expect_equal(made[, 1], drop(natural[1] + seen %*% natural[-1]), tolerance = 1e-6)
  }
})

test_that("with the records known: lm() and glm()", {
  skip_on_cran()
  data <- terms_data(60)
  model <- model_lm(y ~ x * g + z + I(x^2) + h, prior_normal(0, 1e5), prior_inverse_gamma(1e-3, 1e-3))
  fit <- nonprivate_posterior(data, model, terms_statistic, chains = 2, iter = 900, seed = 1)
  truth <- lm(formula(fit), data)
  for (name in names(coef(truth))) expect_same_mean(parameter_draws(fit, name), coef(truth)[[name]])
  expect_equal(sqrt(diag(vcov(fit)))[names(coef(truth))], sqrt(diag(vcov(truth)))[names(coef(truth))], tolerance = 0.08)
  expect_equal(predict(fit, data), unname(fitted(truth)), tolerance = 0.02)

  set.seed(2)
  counts <- data.frame(x = runif(200, 0, 2), g = factor(sample(c("u", "v"), 200, TRUE)), e = runif(200, 1, 5))
  counts$y <- rpois(200, counts$e * exp(0.2 + 0.3 * counts$x))
  counts$b <- rbinom(200, 1, plogis(-1 + counts$x * (counts$g == "v") + log(counts$e)))
  exposure <- list(e = covariate_beta())
  st <- stat_crossprod(y ~ x + g + e, list(y = c(0, 30), x = c(0, 2), g = c("u", "v"), e = c(1, 5)))
  for (family in list(poisson(), binomial(), binomial("probit"))) {
    if (family$family == "binomial") st <- stat_crossprod(b ~ x + g + e, list(b = c(0, 1), x = c(0, 2), g = c("u", "v"), e = c(1, 5)))
    formula <- if (family$family == "poisson") y ~ x * g + offset(log(e)) else b ~ x * g + offset(log(e))
    fit <- nonprivate_posterior(counts, model_glm(formula, family, covariates = exposure), st, chains = 2, iter = 1000, seed = 1)
    truth <- glm(formula, family, counts)
    # the default prior is weak
    expect_lt(max(abs(coef(fit)[names(coef(truth))] - coef(truth)) / sqrt(diag(vcov(truth)))), 0.5)
    expect_lt(max(abs(predict(fit, counts) / fitted(truth) - 1)), 0.35)
  }
})

# Draws of records in plain R, weighted by the noise
weigh_records <- function(statistic, released, scale, n, coefficients, predictor, respond, k) {
  total <- 0
  for (i in seq_len(n)) {
    x <- rnorm(k, 2, 0.8)
    g <- rbinom(k, 1, 0.4)
    e <- 1 + 2 * rbeta(k, 2, 2)
    y <- respond(predictor(coefficients, x, g, e))
    columns <- cbind(y, x, g, e)[, seq_len(nrow(statistic$columns))]
    total <- total + r_components(statistic, columns)
  }
  exp(log_noise("absolute", scale, released, total))
}

expect_weighted_mean <- function(fit, exact, weight, errors = 5) {
  size <- sum(weight)^2 / sum(weight^2)
  expect_gt(size, 300)
  for (name in colnames(exact)) {
    draws <- parameter_draws(fit, name)
    centre <- sum(weight * exact[, name]) / sum(weight)
    spread <- sqrt(sum(weight * (exact[, name] - centre)^2) / sum(weight))
    error <- sqrt(posterior::mcse_mean(draws)^2 + spread^2 / size)
    expect_lt(abs(mean(draws) - centre) / error, errors, label = name)
    expect_lt(abs(sd(draws) / spread - 1), 0.1 + 5 / sqrt(size), label = paste("sd of", name))
  }
}

test_that("one and two records: importance sampling from the prior", {
  skip_on_cran()
  set.seed(3)
  k <- 1.5e5
  mean <- c(0.5, 0.4, -0.3, 0.1, 0.6)
  sd <- c(1, 0.5, 0.8, 0.2, 0.4)
  coefficients <- sapply(1:5, function(j) rnorm(k, mean[j], sd[j]))
  covariates <- fixed(list(mean = 2, cov = matrix(0.64)))
  levels <- prior_dirichlet(c(6e7, 4e7))
  for (n in 1:2) {
    st <- stat_crossprod(y ~ x + g, list(y = c(-4, 12), x = c(1, 4), g = c("u", "v")))
    released <- rep(0.2 * n, length(st$components))
    weight <- weigh_records(st, released, 0.5, n, coefficients, function(b, x, g, e) b[, 1] + b[, 2] * x + b[, 3] * g + b[, 4] * x^2 + b[, 5] * x * g,
                            function(eta) eta + 0.7 * rnorm(k), k)
    model <- model_lm(y ~ x * g + I(x^2), prior_normal(mean, sd), fixed(0.7), covariates, levels)
    release <- as_release(stats::setNames(released, st$components), st, mech_laplace(scale = 0.5), n)
    fit <- sample_posterior(release, model, "augment", chains = 2, iter = 1700, warmup = 600, seed = n)
    colnames(coefficients) <- c("(Intercept)", "x", "gv", "I(x^2)", "x:gv")
    expect_weighted_mean(fit, coefficients, weight)

    # counts, with an exposure
    st <- stat_crossprod(y ~ x + g + e, list(y = c(0, 8), x = c(1, 4), g = c("u", "v"), e = c(1, 3)))
    released <- rep(0.2 * n, length(st$components))
    weight <- weigh_records(st, released, 1, n, 0.4 * coefficients, function(b, x, g, e) b[, 1] + b[, 2] * x + b[, 3] * g + b[, 4] * x^2 + b[, 5] * x * g + log(e),
                            function(eta) rpois(k, pmin(exp(eta), 132)), k)
    model <- model_glm(y ~ x * g + I(x^2) + offset(log(e)), poisson(), prior_normal(0.4 * mean, 0.4 * sd),
                       list(covariates, e = covariate_beta(fixed(0.5), fixed(4))), levels)
    release <- as_release(stats::setNames(released, st$components), st, mech_laplace(scale = 1), n)
    fit <- sample_posterior(release, model, "augment", chains = 2, iter = 1700, warmup = 600, seed = n)
    expect_weighted_mean(fit, 0.4 * coefficients, weight)
  }
})

test_that("updates and moves leave the joint distribution", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x + z + g, list(y = c(-4, 12), x = c(1, 4), z = c(1, 3), g = c("u", "v", "w")))
  binary <- stat_crossprod(y ~ x + z + g, list(y = c(0, 1), x = c(1, 4), z = c(1, 3), g = c("u", "v", "w")))
  lognormal <- list(z = covariate_lognormal())
  cases <- list(list(model_lm(y ~ x * g + I(x^2) + z:x + z), st), list(model_lm(y ~ x + z + z:g + g, prior_normal(0, 1), prior_half_normal(1)), st),
                list(model_glm(y ~ x * g + offset(log(z)), covariates = lognormal), binary),
                list(model_glm(y ~ x * g + offset(z), binomial("probit")), binary))
  for (case in cases) {
    expect_false(any(!with_trials(1000L, debug_model(case[[1]], case[[2]], seed = 5))$ok, na.rm = TRUE))
  }
})

test_that("limits: no noise, infinite noise, a term whose coefficient is 0, a term that the release does not see", {
  skip_on_cran()
  data <- terms_data(40)
  st <- stat_crossprod(y ~ x + g, list(y = c(-4, 12), x = c(1, 4), g = c("u", "v", "w")))
  prior <- prior_normal(sd = c("x:gv" = 1e-7, "x:gw" = 1e-7, "I(x^2)" = 1e-7))
  set.seed(4)
  release <- simulate_release(data, st, mech_laplace(epsilon = 5))
  with <- sample_posterior(release, model_lm(y ~ x * g + I(x^2), prior, fixed(1)), "augment", chains = 2, iter = 1100, seed = 1)
  # the default scales are those of as many terms
  scale <- sqrt(2 / 4)
  without <- model_lm(y ~ x + g, prior_normal(sd = NULL), fixed(1))
  said <- internal("bind_model")(model_lm(y ~ x * g + I(x^2), prior_normal(), fixed(1)), st)
  sds <- internal("prior_summary.noiseaware_model")(model_lm(y ~ x * g + I(x^2), prior_normal(), fixed(1)), st)
  plain <- internal("prior_summary.noiseaware_model")(without, st)
  expect_equal(said$design$name[-1], c("x", "gv", "gw", "I(x^2)", "x:gv", "x:gw"))
  slope <- function(table, name) as.numeric(sub(".*, ([0-9.]+)\\).*", "\\1", table$prior[table$variable == name]))
  expect_equal(slope(sds, "x") / slope(plain, "x"), scale, tolerance = 1e-3)
  narrow <- model_lm(y ~ x + g, prior_normal(sd = c(x = slope(sds, "x"), gv = slope(sds, "gv"), gw = slope(sds, "gw"))), fixed(1))
  alone <- sample_posterior(release, narrow, "augment", chains = 2, iter = 1100, seed = 2)
  for (name in c("(Intercept)", "x", "gv", "gw", "mean[x]")) expect_agreement(parameter_draws(with, name), parameter_draws(alone, name), label = name)

  blind <- simulate_release(data, st, mech_laplace(scale = 1e6))
  model <- model_lm(y ~ x * g + I(x^2), prior_normal(0, 1), fixed(1))
  fit <- sample_posterior(blind, model, "augment", chains = 2, iter = 1000, seed = 3)
  for (name in c("x", "x:gw", "I(x^2)")) expect_distribution(parameter_draws(fit, name), qnorm)

  # hardly any noise, all products of the model among the totals of a custom statistic
  fun <- function(r) {
    x <- r[, "x"] - 2.5
    y <- r[, "y"] - 3
    cbind(x, x^2, x^3, x^4, y, x * y, x^2 * y, y^2)
  }
  own <- stat_custom(fun, letters[1:8], list(replace = c(L1 = 2000, L2 = 2000)), list(y = c(-9, 15), x = c(1, 4)))
  sharp <- simulate_release(data, own, mech_gaussian(sd = 0.1))
  model <- model_lm(y ~ x + I(x^2), prior_normal(0, 3), fixed(1))
  fit <- sample_posterior(sharp, model, "augment", chains = 2, iter = 1500, seed = 4)
  known <- nonprivate_posterior(data, model, own, chains = 2, iter = 1500, seed = 5)
  for (name in c("x", "I(x^2)")) {
    expect_lt(abs(coef(fit)[[name]] - coef(known)[[name]]), 0.2 * sqrt(vcov(known)[name, name]))
    expect_lt(abs(log(vcov(fit)[name, name] / vcov(known)[name, name])), 0.25)
  }
})

test_that("ranks are uniform", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x + g, list(y = c(-6, 14), x = c(1, 4), g = c("u", "v")))
  cal <- suppressWarnings(calibrate(model_lm(y ~ x * g + I(x^2)), st, mech_laplace(epsilon = 4), n = 15, replicates = 22, method = "augment", chains = 1, iter = 250, seed = 7))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("what is done with a fit", {
  skip_on_cran()
  data <- terms_data(60)
  data$y <- data$y + data$x * (data$g == "v")
  set.seed(7)
  release <- simulate_release(data, terms_statistic, mech_gaussian(sd = 0.5))
  fit <- suppressWarnings(sample_posterior(release, model_lm(y ~ x * g + I(z^2) + z + h), chains = 2, iter = 400, seed = 1))
  expect_identical(names(coef(fit)), c("(Intercept)", "x", "gv", "gw", "I(z^2)", "z", "hyes", "x:gv", "x:gw"))
  expect_output(print(fit), "x \\* g \\+ I\\(z\\^2\\)")
  new <- data[1:3, ]
  expect_equal(unname(colMeans(predict(fit, new, type = "expected"))), unname(predict(fit, new)))
  x <- model.matrix(~ x * g + I(z^2) + z + h, new)
  expect_equal(unname(predict(fit, new)), unname(drop(x %*% coef(fit)[colnames(x)])))
  expect_s3_class(plot(fit), "ggplot")
  expect_equal(nrow(simulate(fit, seed = 1)[[1]]), 60)
  skip_if_not_installed("emmeans")
  means <- as.data.frame(emmeans::emmeans(fit, ~ g, at = list(x = 2)))
  expect_equal(nrow(means), 3)
})

test_that("bad formulas and methods that do not serve are refused", {
  skip_on_cran()
  y <- terms_statistic
  for (formula in list(y ~ x + foo(x), y ~ I(x + z), y ~ I(x^9), y ~ x %in% g, y ~ x - 1, y ~ x * ., y ~ x + I(x^2):x, y ~ x * y, y ~ x + offset(x + 1), y ~ poly(x, 2)))
    expect_error(model_lm(formula), class = "noiseaware_error_formula")
  expect_error(internal("bind_model")(model_lm(y ~ x:g + z + h), y), class = "noiseaware_error_formula")
  expect_error(internal("bind_model")(model_lm(y ~ I(g^2) + x + z + h), y), class = "noiseaware_error_formula")
  expect_error(internal("bind_model")(model_lm(y ~ x * z + g), y), class = "noiseaware_error_variables")
  expect_error(internal("bind_model")(model_lm(y ~ x + z + g + offset(h)), y), class = "noiseaware_error_formula")
  set.seed(8)
  release <- simulate_release(terms_data(30), y, mech_laplace(epsilon = 1))
  model <- model_lm(y ~ x * g + z + h)
  for (method in c("collapse", "clt", "naive")) expect_error(sample_posterior(release, model, method), class = "noiseaware_error_method")
  expect_error(stan_program(release, model), class = "noiseaware_error_method")
  expect_error(internal("bind_model")(model_lm(y ~ x * g + z + h, prior_student_t(3, 0, 1)), y), class = "noiseaware_error_prior")
  counts <- stat_crossprod(y ~ x + e, list(y = c(0, 9), x = c(1, 4), e = c(0, 3)))
  bind <- function(...) internal("bind_model")(model_glm(y ~ x + offset(log(e)), poisson(), ...), counts)
  expect_error(bind(), class = "noiseaware_error_variables")
  expect_error(bind(covariates = list(e = covariate_count())), class = "noiseaware_error_variables")
  expect_error(bind(covariates = list(e = fixed(2))), class = "noiseaware_error_variables")
  expect_s3_class(bind(covariates = list(e = covariate_beta())), "bound_glm")
})
