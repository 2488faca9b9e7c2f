# Factors next to smooths, y ~ s(x) + g: the posterior given records by quadrature, a small release by importance sampling from a prior written in R,
# "augment" by the joint-distribution test, and what fits do. Totals and sensitivities: test-stat_smooth.R.

ends <- list(y = c(-3, 5), x = c(2, 10), z = c(-4, 4), g = c("a", "b"), h = c("r", "s", "t"))
bound_of <- function(model, statistic) internal("bind_model")(model, statistic)
stream <- function(k) internal("new_stream")(c(1, k))
sum_of <- function(formula, ...) stat_crossprod(formula, ends[all.vars(formula)], ...)
both <- y ~ s(x, k = 6) + z + g + h

splines_of <- function(x, k = 6) {
  width <- 8 / (k - 3)
  splines::splineDesign(2 + width * (-3:k), pmin(pmax(x, 2), 10 - 1e-11))
}

# levels of g and h depend on x and z
mixed_records <- function(n) {
  u <- pnorm(matrix(rnorm(4 * n), n) %*% chol(matrix(0.6, 4, 4) + diag(0.4, 4)))
  data <- data.frame(x = 2 + 8 * qbeta(u[, 1], 2, 2), z = 8 * u[, 2] - 4, g = ifelse(u[, 3] < 0.4, "b", "a"), h = factor(c("t", "r", "s")[ceiling(3 * u[, 4])], ends$h))
  cbind(y = 1 + sin(data$x) + 0.25 * data$z + 0.8 * (data$g == "b") + c(r = 0, s = -0.5, t = 0.5)[as.character(data$h)] + rnorm(n, 0, 0.4), data)
}

test_that("every hook of the model keeps shapes, streams, sums and distributions", {
  skip_on_cran()
  for (formula in list(both, y ~ s(x, k = 6) + g)) {
    result <- with_trials(700L, debug_model(model_lm(formula), sum_of(formula), n = 60))
    expect_false(any(result$ok %in% FALSE), info = paste(result$hook[result$ok %in% FALSE], collapse = " "))
  }
})

test_that("records have one level of each factor, with its probability, and the mean of their dummies", {
  bound <- bound_of(model_lm(), sum_of(both))
  values <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, stream(1), 1L)$theta)[1, ]
  expect_identical(internal("coefficients_of")(bound), c("(Intercept)", "x", "z", "gb", "hs", "ht", sprintf("s(x)%d", 1:4)))
  values[["sigma"]] <- 1e-6
  theta <- internal("bound_theta")(bound, values)
  n <- 20000L
  made <- matrix(unlist(.Call(internal("ffi_model_records"), bound$spec, theta, n, stream(2))$records), n, dimnames = list(NULL, bound$columns$name))
  expect_identical(bound$columns$name, c("y", "x", "z", "gb", "hs", "ht"))
  expect_true(all(made[, 4:6] %in% 0:1) && all(made[, "hs"] + made[, "ht"] <= 1))
  beta <- values[internal("coefficients_of")(bound)]
  expected <- cbind(1, internal("term_values")(bound, made[, -1])) %*% beta
  expect_equal(made[, "y"], drop(expected), tolerance = 1e-4)
  expect_equal(drop(expected), drop(cbind(1, made[, -1]) %*% beta[1:6] + splines_of(made[, "x"]) %*% internal("spline_expansion")(2, 10, 6)[, -(1:2)] %*% beta[7:10]),
               tolerance = 1e-9)
  share <- c(values["prob[g=b]"], values[sprintf("prob[h=%s]", c("s", "t"))])
  expect_lt(max(abs(colMeans(made[, 4:6]) - share) / sqrt(share * (1 - share) / n)), 4)
  # under other probabilities of the levels, a record keeps its quantile
  other <- replace(values, grep("^prob\\[g=.*class", names(values)), rep(c(0.3, 0.7), 8))
  now <- replace(values, grep("^prob\\[g=.*class", names(values)), rep(c(0.6, 0.4), 8))
  records <- .Call(internal("ffi_model_records"), bound$spec, internal("bound_theta")(bound, now), n, stream(3))$records
  moved <- .Call(internal("ffi_model_move"), bound$spec, internal("bound_theta")(bound, now), internal("bound_theta")(bound, other), records, stream(4))
  before <- matrix(unlist(records), n)[, 4]
  after <- matrix(unlist(moved), n)[, 4]
  expect_false(any(after < before))
  expect_lt(abs(mean(after[before == 0]) - 0.5), 4 * 0.5 / sqrt(0.6 * n))
  fresh <- .Call(internal("ffi_model_refresh"), bound$spec, internal("bound_theta")(bound, now), 0.8, records, stream(5))$records
  # both of two normal innovations, with correlation .8, on one side
  edge <- qnorm(0.6)
  above <- integrate(function(v) dnorm(v) * pnorm((0.8 * v - edge) / 0.6), edge, Inf)$value
  expect_lt(abs(mean(matrix(unlist(fresh), n)[before == 1, 4]) - above / 0.4), 4 * 0.5 / sqrt(0.4 * n))
})

test_that("the posterior given records is the one of quadrature, and at no noise gam() and lm() agree", {
  skip_on_cran()
  set.seed(1)
  data <- mixed_records(60)
  st <- sum_of(both)
  model <- model_lm(both, sigma = prior_exponential(1))
  fit <- nonprivate_posterior(data, model, st, chains = 2, iter = 2500, seed = 1)
  # with slopes about the middles of bounds, which are 6 and 0
  line <- with(data, cbind(1, x - 6, z, g == "b", h == "s", h == "t"))
  design <- cbind(line, splines_of(data$x) %*% internal("spline_expansion")(2, 10, 6)[, -(1:2)])
  unit <- 2 * 2 / (sqrt(4) * c(2, 2, 1, 1, 1))
  grid <- expand.grid(sigma = exp(seq(log(0.25), log(0.8), length.out = 30)), tau = exp(seq(log(0.05), log(40), length.out = 50)))
  each <- t(apply(grid, 1, function(s) {
    prior <- c(4^2, unit^2, rep(s[["tau"]]^2, 4))
    root <- chol(crossprod(design) / s[["sigma"]]^2 + diag(1 / prior))
    right <- backsolve(root, crossprod(design, data$y - 1) / s[["sigma"]]^2, transpose = TRUE)
    log_weight <- -60 * log(s[["sigma"]]) - sum((data$y - 1)^2) / (2 * s[["sigma"]]^2) + sum(right^2) / 2 - sum(log(diag(root))) - sum(log(prior)) / 2 +
      dt(s[["tau"]], 3, log = TRUE) + log(s[["tau"]]) + dexp(s[["sigma"]], log = TRUE) + log(s[["sigma"]])
    c(log_weight, backsolve(root, right))
  }))
  weight <- exp(each[, 1] - max(each[, 1]))
  exact <- colSums(weight * each[, -1]) / sum(weight)
  for (j in 3:6) expect_same_mean(parameter_draws(fit, c("z", "gb", "hs", "ht")[j - 2]), exact[j])
  at <- data.frame(x = 6, z = 0, g = c("a", "b"), h = c("r", "t"))
  curve <- exact[1] + drop(splines_of(6) %*% internal("spline_expansion")(2, 10, 6)[, -(1:2)] %*% exact[7:10])
  draws <- predict(fit, at, type = "expected")
  for (j in 1:2) expect_same_mean(matrix(draws[, j], ncol = 2), 1 + curve + (j == 2) * (exact[4] + exact[6]))
  skip_if_not_installed("mgcv")
  data <- mixed_records(1000)
  fit <- nonprivate_posterior(data, model_lm(both), st, chains = 2, iter = 1000, seed = 1)
  gam <- mgcv::gam(y ~ s(x, bs = "ps", k = 6) + z + g + h, data = data, knots = list(x = 2 + 8 / 3 * (-3:6)), method = "REML")
  for (name in c("z", "gb", "hs", "ht")) expect_lt(abs(mean(parameter_draws(fit, name)) - coef(gam)[[name]]) / sd(parameter_draws(fit, name)), 0.2, label = name)
  # and where the curve is straight
  data$y <- data$y - sin(data$x) - 0.3 * data$x
  fit <- nonprivate_posterior(data, model_lm(both), st, chains = 2, iter = 1000, seed = 1)
  own <- coef(lm(y ~ x + z + g + h, data))
  for (name in c("z", "gb", "hs", "ht")) expect_lt(abs(mean(parameter_draws(fit, name)) - own[[name]]) / sd(parameter_draws(fit, name)), 0.2, label = name)
})

# `count` draws of the parameters and n records of the prior, and their totals, with nothing of the package but E
prior_with_totals <- function(count, n) {
  classes <- 8
  urn <- function(weight, earlier) {
    # one draw for each row, given earlier ones of these rows that count
    size <- matrix(weight, count, length(weight), byrow = TRUE)
    for (e in earlier) size[cbind(seq_len(count), e$at)] <- size[cbind(seq_len(count), e$at)] + e$counts
    total <- t(apply(size, 1, cumsum))
    1L + rowSums(runif(count) * total[, ncol(total)] > total)
  }
  class <- x_cell <- level <- matrix(0L, count, n)
  for (i in seq_len(n)) {
    before <- seq_len(i - 1)
    class[, i] <- urn(rep(1, classes), lapply(before, function(j) list(at = class[, j], counts = 1)))
    x_cell[, i] <- urn(rep(1 / classes, 6), lapply(before, function(j) list(at = x_cell[, j], counts = class[, j] == class[, i])))
    level[, i] <- urn(rep(1 / classes, 2), lapply(before, function(j) list(at = level[, j], counts = class[, j] == class[, i])))
  }
  x <- 2 + 8 / 6 * (x_cell - runif(count * n))
  theta <- cbind(rnorm(count, 0, 4), rnorm(count, 0, 4 / (sqrt(2) * 2)), rnorm(count, 0, 4 / sqrt(2)))
  tau <- abs(rt(count, 3))
  sigma <- rexp(count)
  bend <- matrix(rnorm(4 * count), count) * tau
  expand <- internal("spline_expansion")(2, 10, 6)
  totals <- 0
  for (i in seq_len(n)) {
    b <- splines_of(x[, i])
    y <- 1 + rowSums((b %*% expand) * cbind(theta[, 1:2], bend)) + theta[, 3] * (level[, i] == 2) + sigma * rnorm(count)
    y <- pmin(pmax(y / 4 - 1 / 4, -1), 1)
    pairs <- expand.grid(second = 1:6, first = 1:6)
    pairs <- pairs[pairs$second >= pairs$first & pairs$second <= pairs$first + 2, ]
    totals <- totals + cbind(b[, pairs$first] * b[, pairs$second], y * b, y^2, do.call(cbind, lapply(1:2, function(l) (level[, i] == l) * cbind(b, y))))
  }
  list(totals = totals, parameters = cbind(gb = theta[, 3], `log sigma` = log(sigma), `log tau` = log(tau), x = theta[, 2]), levels = rowMeans(level == 2))
}

test_that("a small release: importance sampling from the prior", {
  skip_on_cran()
  set.seed(2)
  formula <- y ~ s(x, k = 6) + g
  st <- sum_of(formula)
  data <- data.frame(y = c(3, -1, 2.5), x = c(3, 5, 8), g = c("b", "a", "b"))
  release <- as_release(internal("statistic_total")(st, data) + 0.2 * sin(1:36), st, mech_laplace(scale = 0.7), n = 3)
  prior <- prior_with_totals(60000, 3)
  log_weight <- -colSums(abs(t(prior$totals) - release$value)) / 0.7
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  expect_gt(1 / sum(weight^2), 1000)
  fit <- suppressWarnings(sample_posterior(release, model_lm(formula, sigma = prior_exponential(1)), "augment", chains = 2, iter = 12000, seed = 1))
  draws <- c(lapply(c(gb = "gb", x = "x"), parameter_draws, fit = fit), lapply(c(`log sigma` = "sigma", `log tau` = "tau"), function(v) log(parameter_draws(fit, v))))
  for (name in names(draws)) {
    v <- prior$parameters[, name]
    exact <- sum(weight * v)
    error <- sqrt(sum(weight^2 * (v - exact)^2) + posterior::mcse_mean(draws[[name]])^2)
    expect_lt(abs(mean(draws[[name]]) - exact), 4.5 * error, label = name)
    # the error is a small part of what the release says
    expect_lt(error, 0.1 * sd(v), label = name)
  }
})

test_that("augment: with z drawn again and again the parameters follow their prior", {
  skip_on_cran()
  set.seed(3)
  formula <- y ~ s(x, k = 6) + h + g
  st <- sum_of(formula)
  model <- model_lm(formula)
  prior <- prior_draws(model, st, 20000L)
  for (passes in c(0, 3)) expect_prior(geweke(model, st, mech_laplace(epsilon = 15), 6, 2000, passes), prior)
  expect_prior(geweke(model, st, mech_laplace(epsilon = 15), 6, 2600, -1, warmup = 300L, kinds = c(1, 1, 0, 0)), prior)
})

test_that("files, narrow questions, and what fits do", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  data <- mixed_records(150)
  st <- stat_crossprod(y ~ g + s(x, k = 6) + h + z, ends, outside = c(z = "none"))
  expect_identical(st$formula, "y ~ s(x, k = 6) + z + g + h")
  release <- simulate_release(data, st, mech_gaussian(mu = 4))
  file <- withr::local_tempfile()
  write_release(release, file)
  expect_identical(read_release(file)$statistic, st)
  expect_equal(read_release(file), release)
  expect_output(print(st), "g in \\{a, b\\}")
  fit <- suppressWarnings(sample_posterior(release, model_lm(), chains = 2, iter = 100, seed = 1))
  names <- posterior::variables(fit$draws)
  expect_identical(names[1:6], c("(Intercept)", "x", "z", "gb", "hs", "ht"))
  expect_identical(utils::tail(names, 5), c("prob[g=a]", "prob[g=b]", "prob[h=r]", "prob[h=s]", "prob[h=t]"))
  for (v in c("g", "h")) expect_equal(unname(rowSums(as.matrix(fit)[, grep(sprintf("^prob\\[%s=", v), names)])), rep(1, 100), tolerance = 1e-9)
  expect_output(print(fit), "hs")
  expected <- suppressWarnings(predict(fit, data.frame(x = 4, z = 1, g = c("a", "b"), h = c("r", "t")), type = "expected"))
  draws <- as.matrix(fit)
  expect_equal(expected[, 2] - expected[, 1], unname(draws[, "gb"] + draws[, "ht"]), tolerance = 1e-9)
  made <- suppressWarnings(synthesize(fit, 2, seed = 1))[[1]]
  expect_identical(names(made), c("y", "x", "z", "g", "h"))
  expect_identical(levels(made$h), ends$h)
  said <- suppressWarnings(sample_posterior(release, model_lm(y ~ h + z + s(x, k = 6) + g), "augment", chains = 1, iter = 40, seed = 1))
  expect_setequal(posterior::variables(said$draws), names)
  shown <- internal("prior_summary.noiseaware_fit")(fit)
  expect_true(all(c("gb", "hs", "ht") %in% shown$variable))
  expect_true("gb" %in% generics::tidy(fit)$term)
  for (v in c("x", "g")) expect_s3_class(plot(fit, "predictive", covariate = v), "ggplot")
  effects <- internal("conditional_effects.noiseaware_fit")(fit)
  expect_named(effects, c("x", "z", "g", "h"))
  expect_equal(nrow(effects$h), 3L)
  expect_message(one <- internal("narrow_release")(release, model_lm(y ~ s(x) + h)), class = "noiseaware_message_components")
  expect_identical(one$statistic$formula, "y ~ s(x, k = 6) + h")
  expect_identical(unname(one$value), unname(release$value[match(one$statistic$components, st$components)]))
  expect_message(one <- internal("narrow_release")(release, model_lm(y ~ s(x) + z)), class = "noiseaware_message_components")
  expect_identical(one$statistic$outside, c(y = "clamp", x = "clamp", z = "none"))
  # other models of the variables, and other totals under this one
  expect_s3_class(suppressWarnings(sample_posterior(release, model_lm(y ~ x + z + g + h), "augment", chains = 1, iter = 20, seed = 1)), "noiseaware_fit")
  other <- simulate_release(data, sum_of(y ~ x + g), mech_laplace(epsilon = 5))
  expect_identical(suppressWarnings(sample_posterior(other, model_lm(y ~ s(x) + g), chains = 1, iter = 20, seed = 1))$bound$parameters[1:3], c("(Intercept)", "x", "gb"))
  checked <- calibrate(model_lm(y ~ s(x, k = 6) + g), sum_of(y ~ s(x, k = 6) + g), mech_laplace(epsilon = 10), n = 20, replicates = 2, chains = 1, iter = 60, seed = 1)
  expect_true(all(c("gb", "prob[g=b]") %in% coverage(checked)$variable))
  skip_if_not_installed("emmeans")
  at <- list(x = 4, z = 0, h = "s")
  seen <- as.data.frame(summary(emmeans::emmeans(fit, ~ g, at = at), frequentist = TRUE))
  expect_equal(seen$emmean, colMeans(suppressWarnings(predict(fit, expand.grid(c(at, list(g = c("a", "b")))), type = "expected"))), tolerance = 1e-9)
})

test_that("functions that give levels, two-valued factors and levels of an owner", {
  set.seed(5)
  data <- data.frame(y = rnorm(40), x = runif(40, 2, 10), z = runif(40, -4, 4), f = rep(c(TRUE, FALSE), 20))
  st <- stat_crossprod(y ~ s(x, k = 6) + cut(z, c(-4, 0, 4)) + f + I(w > 2), list(y = c(-3, 5), x = c(2, 10), z = c(-4, 4), f = c(FALSE, TRUE), w = c(0, 5)))
  expect_identical(st$columns$name, c("y", "x", "cut(z, c(-4, 0, 4))(0,4]", "fTRUE", "I(w > 2)TRUE"))
  data$w <- rep(c(1, 3), c(10, 30))
  release <- simulate_release(data, st, mech_laplace(epsilon = 5))
  expect_equal(internal("statistic_total")(st, data)[["I(w > 2)TRUE:y"]], sum((data$y[11:40] - 1) / 4))
  file <- withr::local_tempfile()
  write_release(release, file)
  expect_equal(read_release(file), release)
  fit <- suppressWarnings(sample_posterior(release, model_lm(), chains = 1, iter = 20, seed = 1))
  expect_equal(dim(suppressWarnings(predict(fit, data[1:3, ], type = "expected"))), c(10L, 3L))
  expect_error(simulate_release(transform(data, f = "maybe"), st, mech_laplace(epsilon = 5)), "declared levels", class = "noiseaware_error_levels")
})

test_that("what is refused says why", {
  skip_on_cran() # takes long; `make test` runs it
  release <- as_release(numeric(36), sum_of(y ~ s(x, k = 6) + g), mech_laplace(epsilon = 1), 100)
  codes <- as_release(list(a = numeric(36), b = c(50, 50)), list(a = sum_of(y ~ s(x, k = 6) + g), b = stat_counts(~ g, list(g = ends$g))),
                      list(a = mech_laplace(epsilon = 1), b = mech_laplace(epsilon = 1)), 100)
  data <- data.frame(y = 1, x = 3, g = "c")
  refused <- c(
    refusals("formula", alist(model_lm(y ~ s(x) + g:z), model_lm(y ~ s(x) * g),
                              stat_crossprod(y ~ s(x) + g, list(y = 0:1, x = 0:1, g = paste(1:1000))))),
    refusals("bounds", alist(stat_crossprod(y ~ s(x) + h, list(y = ends$g, x = 0:1, h = ends$h)), stat_crossprod(y ~ s(g) + h, ends[c("y", "g", "h")]))),
    refusals("levels", alist(stat_crossprod(y ~ s(x) + g, list(y = 0:1, x = 0:1, g = "a")))),
    refusals("levels", alist(simulate_release(data, sum_of(y ~ s(x, k = 6) + g), mech_laplace(epsilon = 1)))),
    refusals("variables", alist(sample_posterior(release, model_lm(y ~ s(g) + x)), sample_posterior(codes, model_lm()))),
    refusals("method", alist(sample_posterior(release, model_lm(), "clt"), sample_posterior(release, model_lm(), "collapse"), p_value(release, model_lm(), "gb"))))
  expect_snapshot(cat(refused, sep = "\n"))
})
