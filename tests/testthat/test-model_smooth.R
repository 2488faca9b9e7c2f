# Smooths, y ~ s(x, k = 10): the splines and their totals against package splines, moments against quadrature, posteriors given records by quadrature over
# both standard deviations, "augment" by the joint-distribution test and both methods against each other.

bounds <- list(y = c(-3, 5), x = c(2, 10))
smooth <- function(k = 7, ...) stat_crossprod(as.formula(bquote(y ~ s(x, k = .(k)))), bounds, ...)
bound_of <- function(model, statistic) internal("bind_model")(model, statistic)
stream <- function(k) internal("new_stream")(c(1, k))

# all splines at x, without anything of the package
splines_of <- function(x, k, ends = bounds$x) {
  h <- diff(ends) / (k - 3)
  x <- pmin(pmax(x, ends[1]), ends[2])
  # inside by a hair, where a spline's last interval ends
  splines::splineDesign(ends[1] + h * (-3:k), pmin(x, ends[2] - 1e-12 * diff(ends)))
}

components_of <- function(y, x, k, b = splines_of(x, k)) {
  y <- pmin(pmax(y, -3), 5) / 4 - 1 / 4
  pairs <- expand.grid(second = seq_len(k), first = seq_len(k))
  pairs <- pairs[pairs$second >= pairs$first & pairs$second <= pairs$first + 2, ]
  unname(cbind(b[, pairs$first, drop = FALSE] * b[, pairs$second, drop = FALSE], y * b, y^2))
}

test_that("totals are those of splines, and records at and beyond the bounds are clamped", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  for (k in c(6, 7, 50)) {
    x <- c(runif(200, 1, 11), bounds$x, 2 + 8 * seq(0, 1, length.out = k - 2), -Inf, 1e300)
    y <- c(rnorm(200, 1, 3), rep(c(-Inf, Inf, 5), length.out = length(x) - 200))
    got <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(smooth(k)), cbind(y, x))
    expect_equal(got, components_of(y, x, k), tolerance = 1e-9)
    expect_equal(.Call(internal("ffi_stat_total"), internal("statistic_spec")(smooth(k)), cbind(y, x)), colSums(got), tolerance = 1e-12)
    expect_length(smooth(k)$components, 4 * k - 2)
    limits <- internal("component_limits")(smooth(k))
    fine <- seq(2, 10, length.out = 200 * (k - 3) + 1)
    grid <- components_of(rep(c(5, -3), each = length(fine)), rep(fine, 2), k)
    expect_equal(unname(limits), unname(cbind(c(apply(grid[, -ncol(grid)], 2, min), 0), apply(grid, 2, max))), tolerance = 1e-5)
  }
  expect_equal(smooth(6)$components[c(1, 2, 3, 16, 22)], c("s(x)1^2", "s(x)1:s(x)2", "s(x)1:s(x)3", "y:s(x)1", "y^2"))
})

test_that("sensitivities are bounds, and are attained but for L2 of a replaced record", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  components <- function(v) components_of(4 * v[1] + 1, 0, 10, internal("spline_basis")(v[2], 0, 1, 10))
  climb <- function(f, v) -optim(v, function(v) -f(v), method = "L-BFGS-B", lower = rep(c(-1, 0), length(v) / 2), upper = 1)$value
  largest <- function(f, start) max(vapply(start, climb, 0, f = f))
  starts <- function(records) {
    at_knots <- lapply(1:5, function(i) as.vector(rbind(sample(c(-1, 0.5, 1), records, TRUE), sample(0:7, records, TRUE) / 7)))
    c(at_knots, list(c(1, 3 / 7, 0.5, 0)[seq_len(2 * records)]))
  }
  norms <- list(L1 = function(t) sum(abs(t)), L2 = function(t) sqrt(sum(t^2)))
  st <- smooth(10)
  for (norm in names(norms)) {
    added <- largest(function(v) norms[[norm]](components(v)), starts(1))
    expect_equal(sensitivity(st, norm, "add_remove"), added, tolerance = 1e-8)
    replaced <- largest(function(v) norms[[norm]](components(v[1:2]) - components(v[3:4])), starts(2))
    expect_gte(sensitivity(st, norm), replaced * (1 - 1e-9))
    expect_lte(sensitivity(st, norm), replaced * if (norm == "L1") 1 + 1e-6 else 1.05)
  }
  expect_equal(sensitivity(st, "L1"), 3.75)
  expect_equal(sensitivity(st, "L1", "add_remove"), 2.75)
})

test_that("the curve is a line and second differences of coefficients", {
  k <- 8
  e <- internal("spline_expansion")(2, 10, k)
  x <- seq(2, 10, 0.1)
  expect_equal(drop(splines_of(x, k) %*% e[, 1:2] %*% c(3, -0.5)), 3 - 0.5 * (x - 6), tolerance = 1e-9)
  expect_equal(diff(e, differences = 2), cbind(0, 0, diag(k - 2)), tolerance = 1e-9, ignore_attr = TRUE)
  expect_equal(internal("spline_basis")(c(1, x, 11), 2, 10, k), splines_of(c(1, x, 11), k), tolerance = 1e-9)
})

test_that("moments are those of quadrature, and slopes those of differences, bounds that bind among them", {
  skip_on_cran() # takes long; `make test` runs it
  k <- 7
  for (outside in c("clamp", "none", "above")) {
    st <- smooth(k, outside = c(y = outside, x = "none"))
    release <- as_release(numeric(4 * k - 2), st, mech_laplace(epsilon = 1), 100)
    bound <- bound_of(model_lm(), st)
    spec <- internal("clt_distribution")(bound, release, NULL)$spec
    set.seed(3)
    beta <- c(2, -1, 2, 4, 1, 5.5, 2)
    coefficients <- solve(internal("spline_expansion")(2, 10, k), beta)
    sigma <- 1.1
    p <- rgamma(8, 2)
    p <- p / sum(p)
    coefficients[1] <- coefficients[1] - 6 * coefficients[2] # at 0
    values <- stats::setNames(c(coefficients, sigma, 0.7, p), bound$parameters)
    theta <- internal("bound_theta")(bound, values)
    got <- .Call(internal("ffi_clt_moments"), spec, as.matrix(theta))[[1]]
    # midpoints of x, and of quantiles of y
    at <- (seq_len(400) - 0.5) / 400
    limits <- c(if (outside != "clamp") -Inf else -3, if (outside == "none") Inf else 5)
    mean <- drop(splines_of(2 + 8 * at, k) %*% beta)
    z <- seq(-6, 6, length.out = 301)
    z <- (z[-1] + z[-301]) / 2
    y <- rep(mean, each = 300) + sigma * rep(z, 400)
    weight <- rep(rep(p, each = 50) / 50, each = 300) * rep(dnorm(z) / sum(dnorm(z)), 400)
    y <- pmin(pmax(y, limits[1]), limits[2]) / 4 - 1 / 4
    b <- splines_of(2 + 8 * at, k)[rep(1:400, each = 300), ]
    pairs <- internal("spline_pairs")(k)
    t <- cbind(b[, pairs$first] * b[, pairs$second], y * b, y^2)
    first <- colSums(weight * t)
    expect_equal(got$mean, first, tolerance = 1e-5)
    expect_equal(got$cov, crossprod(t, weight * t) - tcrossprod(first), tolerance = 1e-4)
    u <- rnorm(4 * k - 2)
    r <- rnorm(4 * k - 2)
    total <- function(theta) sum(r * .Call(internal("ffi_clt_form"), spec, theta, 50, matrix(u), r)$total)
    slopes <- .Call(internal("ffi_clt_form"), spec, theta, 50, matrix(u), r)$gradient
    expect_equal(slopes, difference_slopes(total, theta, 1e-5), tolerance = 1e-5)
  }
})

# Draws of sigma, tau and the curve at x_0 given records: mixtures over a grid of sigma and tau of normal distributions.
given_records <- function(y, x, k, at) {
  half <- 4
  e <- internal("spline_expansion")(2, 10, k)
  design <- splines_of(x, k) %*% e
  new <- splines_of(at, k) %*% e
  grid <- expand.grid(sigma = exp(seq(log(0.1), log(4), length.out = 40)), tau = exp(seq(log(0.01), log(60), length.out = 40)))
  each <- t(apply(grid, 1, function(s) {
    prior <- c(half^2, (4 * half / 8)^2, rep(s[["tau"]]^2, k - 2))
    cov <- design %*% (prior * t(design)) + diag(s[["sigma"]]^2, length(y))
    root <- chol(cov)
    white <- backsolve(root, y - 1, transpose = TRUE)
    across <- backsolve(root, design %*% (prior * t(new)), transpose = TRUE)
    log_weight <- -sum(log(diag(root))) - sum(white^2) / 2 + dexp(s[["sigma"]], log = TRUE) + log(s[["sigma"]]) +
      dt(s[["tau"]] / (half / 4), 3, log = TRUE) + log(s[["tau"]])
    c(log_weight, 1 + sum(across * white), sqrt(sum(prior * new^2) - sum(across^2)))
  }))
  weight <- exp(each[, 1] - max(each[, 1]))
  list(weight = weight / sum(weight), grid = grid, mean = each[, 2], sd = each[, 3])
}

test_that("the posterior given records is the one of quadrature", {
  skip_on_cran()
  set.seed(4)
  k <- 8
  x <- 2 + 8 * rbeta(60, 2, 3)
  y <- 1 + sin(x) + rnorm(60, 0, 0.4)
  model <- model_lm(y ~ s(x, k = 8), sigma = prior_exponential(1))
  fit <- nonprivate_posterior(data.frame(y, x), model, smooth(k), chains = 2, iter = 3000, seed = 1)
  exact <- given_records(y, x, k, 5)
  quantile_of <- function(p) uniroot(function(v) sum(exact$weight * pnorm(v, exact$mean, exact$sd)) - p, c(-5, 8), tol = 1e-9)$root
  expect_distribution(matrix(predict(fit, data.frame(x = 5), type = "expected"), ncol = 2), quantile_of, sum(exact$weight * exact$mean))
  for (name in c("sigma", "tau")) {
    expect_same_mean(log(parameter_draws(fit, name)), sum(exact$weight * log(exact$grid[[name]])))
  }
  # the cells of x: Dirichlet
  counts <- table(cut(x, internal("bind_model")(model, smooth(k))$breaks[[1]]))
  expect_same_mean(parameter_draws(fit, fit$bound$parameters[k + 3]), (1 + counts[[1]]) / (60 + length(counts)))
})

test_that("augment: with z drawn again and again the parameters follow their prior", {
  skip_on_cran()
  set.seed(5)
  model <- model_lm(y ~ s(x, k = 6))
  for (passes in c(0, 3)) {
    draws <- geweke(model, smooth(6), mech_laplace(epsilon = 4), 6, 3000, passes)
    expect_prior(draws, prior_draws(model, smooth(6)))
  }
  # and where records keep a part of their innovations
  draws <- geweke(model, smooth(6), mech_laplace(epsilon = 4), 6, 4000, -1, warmup = 300L, kinds = c(1, 1, 0, 0))
  expect_prior(draws, prior_draws(model, smooth(6)))
})

test_that("augment and clt agree, and find a curve", {
  skip_on_cran()
  set.seed(6)
  data <- data.frame(x = 2 + 8 * rbeta(120, 2, 2))
  data$y <- 1 + 2 * sin(data$x) + rnorm(120, 0, 0.5)
  release <- simulate_release(data, smooth(7), mech_laplace(epsilon = 8))
  at <- data.frame(x = c(3, 5, 6.5, 9))
  curve <- function(method, iter, ...) {
    fit <- suppressWarnings(sample_posterior(release, model_lm(), method = method, chains = 2, iter = iter, seed = 2, ...))
    lapply(seq_len(4), function(j) matrix(suppressWarnings(predict(fit, at, type = "expected"))[, j], ncol = 2))
  }
  exact <- curve("augment", 2600)
  near <- curve("clt", 600)
  for (j in 1:4) {
    # in addition to Monte Carlo error, a normal approximation's
    expect_lt(abs(mean(exact[[j]]) - mean(near[[j]])), 0.15 * sd(exact[[j]]) + 5 * posterior::mcse_mean(near[[j]]))
    expect_lt(abs(log(sd(exact[[j]]) / sd(near[[j]]))), 0.25)
    expect_lt(abs(mean(exact[[j]]) - 1 - 2 * sin(at$x[j])), 4 * sd(exact[[j]]))
  }
})

test_that("files, other models, functions and the statistic's own formula", {
  set.seed(7)
  data <- data.frame(wage = exp(rnorm(200, 2, 0.4)), x = runif(200, 2, 10))
  st <- stat_crossprod(log(wage) ~ s(sqrt(x), k = 6), list(wage = c(0.5, 60), x = c(1, 16)))
  expect_equal(st$columns$upper, c(log(60), 4))
  release <- simulate_release(data, st, mech_gaussian(mu = 3))
  file <- withr::local_tempfile()
  write_release(release, file)
  expect_identical(read_release(file)$statistic, st)
  expect_equal(read_release(file), release)
  expect_output(print(st), "splines of log\\(wage\\) ~ s\\(sqrt\\(x\\), k = 6\\)")
  own <- sample_posterior(release, model_lm(), chains = 1, iter = 40, seed = 1, method = "clt")
  said <- sample_posterior(release, model_lm(log(wage) ~ s(sqrt(x), k = 6)), chains = 1, iter = 40, seed = 1, method = "clt")
  expect_identical(own$draws, said$draws)
  expect_equal(dim(predict(own, data.frame(x = c(1, 4, 9)), type = "expected")), c(20L, 3L))
  expect_equal(formula(own), log(wage) ~ s(sqrt(x), k = 6), ignore_formula_env = TRUE)
  # any model of the variables, and any number of splines, by "augment"; other totals, too
  expect_s3_class(sample_posterior(release, model_mvnormal(), "augment", chains = 1, iter = 20, seed = 1), "noiseaware_fit")
  expect_s3_class(sample_posterior(release, model_lm(log(wage) ~ s(sqrt(x), k = 9)), "augment", chains = 1, iter = 20, seed = 1), "noiseaware_fit")
  other <- simulate_release(data, stat_crossprod(wage ~ x, list(wage = c(0, 60), x = c(1, 16))), mech_laplace(epsilon = 5))
  fit <- sample_posterior(other, model_lm(wage ~ s(x)), chains = 1, iter = 20, seed = 1)
  expect_identical(fit$bound$parameters[c(1:3, 11:12)], c("(Intercept)", "x", "s(x)1", "sigma", "tau"))
  expect_equal(ncol(model.matrix(fit)), 10L)
})

test_that("emmeans and brms see the curve", {
  skip_if_not_installed("emmeans")
  set.seed(8)
  data <- data.frame(y = rnorm(100), x = runif(100, 2, 10))
  fit <- suppressWarnings(sample_posterior(simulate_release(data, smooth(6), mech_gaussian(mu = 4)), model_lm(), "augment", chains = 1, iter = 200, seed = 1))
  at <- data.frame(x = c(3, 8))
  expected <- suppressWarnings(predict(fit, at, type = "expected"))
  seen <- as.data.frame(summary(emmeans::emmeans(fit, ~ x, at = as.list(at)), frequentist = TRUE))
  expect_equal(seen$emmean, colMeans(expected), tolerance = 1e-9)
  curve <- internal("conditional_effects.noiseaware_fit")(fit)[[1]]
  expect_equal(curve$estimate__[1], median(suppressWarnings(predict(fit, data.frame(x = 2), type = "expected"))), tolerance = 1e-9)
})

test_that("what is refused says why", {
  skip_on_cran() # takes long; `make test` runs it
  st <- smooth(7)
  release <- as_release(numeric(26), st, mech_laplace(epsilon = 1), 100)
  both <- as_release(numeric(35), stat_crossprod(y ~ s(x, k = 7) + z, list(y = c(-3, 5), x = c(2, 10), z = 0:1)), mech_laplace(epsilon = 1), 100)
  other <- as_release(rep(1, 26), st, mech_laplace(epsilon = 1), 100)
  refused <- c(
    refusals("formula", alist(model_lm(y ~ s(x) + x), model_lm(y ~ s(x) + s(x, k = 7)), model_lm(y ~ s(x) + y), model_lm(y ~ s(x) + z:x),
                              model_lm(y ~ s(x) + z:s(w)), model_lm(y ~ s(x) + (1 | g)), model_lm(y ~ s(x) * g), model_lm(y ~ s(x) - 1),
                              stat_crossprod(y ~ s(a, k = 50) + s(b, k = 50) + s(c, k = 50) + s(d, k = 50) + s(e, k = 50),
                                             stats::setNames(rep(list(0:1), 6), c("y", letters[1:5]))),
                              model_lm(y ~ s(x, z)), model_lm(y ~ s(x, k = 3)), model_lm(y ~ s(x, k = m)),
                              model_lm(y ~ s(x, bs = "cr")), model_lm(y ~ s(y)), model_lm(y ~ s(foo(x))), model_glm(y ~ s(x), binomial()),
                              stat_sums(~ s(x), bounds["x"]))),
    refusals("argument", alist(smooth(7, rescale = FALSE), smooth(7, weights = ~ w))),
    refusals("bounds", alist(stat_crossprod(y ~ s(x), list(y = c(0, 1), x = c("a", "b"))),
                             stat_crossprod(y ~ s(x) + g, list(y = c("a", "b"), x = 0:1, g = c("a", "b"))))),
    refusals("prior", alist(model_lm(y ~ s(x), prior_nig()), model_lm(y ~ s(x), sigma = fixed(1)), model_lm(y ~ s(x), errors = student()),
                            model_lm(y ~ s(x), covariates = list(x = covariate_beta())))),
    refusals("variables", alist(sample_posterior(release, model_lm(y ~ s(x) + z)))),
    refusals("method", alist(sample_posterior(both, model_lm(), "clt"), sample_posterior(release, model_lm(y ~ s(x, k = 9)), "clt"),
                             sample_posterior(release, model_lm(), "collapse"), p_value(both, model_lm(), "z"), confidence_set(both, model_lm(), "z"),
                             sample_posterior(list(a = release, b = other), model_lm(), "clt", pool = "partial"))))
  expect_snapshot(cat(refused, sep = "\n"))
})

test_that("a smooth has a variable and k, by name", {
  b <- list(y = c(0, 1), x = c(0, 1))
  for (formula in c(y ~ s(x, m = 8), y ~ s(x, 8), y ~ s(k = 8, x), y ~ s(x, k = 8, m = 2), y ~ s(x = x))) {
    expect_error(stat_crossprod(formula, b), "It must be `s\\(x\\)`", class = "noiseaware_error_formula")
  }
})

# ---- several terms -----------------------------------------------------------------------

ends <- list(y = c(-3, 5), x = c(2, 10), u = c(0, 1), z = c(-4, 4))
several <- y ~ s(x, k = 7) + s(u, k = 6) + z
dependent <- function(n, correlation = 0.7) {
  p <- pnorm(matrix(rnorm(3 * n), n) %*% chol(matrix(correlation, 3, 3) + diag(1 - correlation, 3)))
  data <- data.frame(x = 2 + 8 * qbeta(p[, 1], 2, 2), u = qbeta(p[, 2], 2, 2), z = 8 * p[, 3] - 4)
  cbind(y = 1 + sin(data$x) + 6 * (data$u - 0.5)^2 + 0.25 * data$z + rnorm(n, 0, 0.4), data)
}

test_that("several terms: every hook of the model keeps shapes, streams, sums and distributions", {
  skip_on_cran()
  for (formula in list(several, y ~ s(x, k = 6) + s(u, k = 7))) {
    result <- with_trials(800L, debug_model(model_lm(formula), stat_crossprod(formula, ends[all.vars(formula)]), n = 300))
    expect_false(any(result$ok %in% FALSE), info = paste(result$hook[result$ok %in% FALSE], collapse = " "))
  }
})

test_that("several terms: the curves are those of each smooth, and numbers have slopes", {
  set.seed(11)
  st <- stat_crossprod(several, ends)
  bound <- bound_of(model_lm(), st)
  values <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, stream(1), 1L)$theta)[1, ]
  beta <- values[internal("coefficients_of")(bound)]
  x <- cbind(x = c(1, 3, 9.5), u = c(0.2, 0.9, 1.5), z = c(-1, 0, 3))
  inside <- cbind(pmin(pmax(x[, 1:2], rep(c(2, 0), each = 3)), rep(c(10, 1), each = 3)), z = x[, "z"])
  curve <- function(v, k) splines_of(inside[, v], k, ends[[v]]) %*% internal("spline_expansion")(ends[[v]][1], ends[[v]][2], k)[, -(1:2)]
  expected <- beta[["(Intercept)"]] + inside %*% beta[c("x", "u", "z")] + curve("x", 7) %*% beta[sprintf("s(x)%d", 1:5)] + curve("u", 6) %*% beta[sprintf("s(u)%d", 1:4)]
  expect_equal(drop(cbind(1, internal("term_values")(bound, x)) %*% beta), drop(expected), tolerance = 1e-9)
  # and those of C: records whose sd is next to nothing
  values[["sigma"]] <- 1e-6
  made <- .Call(internal("ffi_model_records"), bound$spec, internal("bound_theta")(bound, values), 50L, stream(2))$records
  made <- matrix(unlist(made), 50)
  expect_equal(made[, 1], drop(cbind(1, internal("term_values")(bound, `colnames<-`(made[, -1], c("x", "u", "z")))) %*% beta), tolerance = 1e-4)
})

test_that("several terms: the posterior given records is the one of quadrature, and at no noise gam() agrees", {
  skip_on_cran()
  set.seed(12)
  data <- dependent(60)
  st <- stat_crossprod(several, ends)
  model <- model_lm(several, sigma = prior_exponential(1))
  fit <- nonprivate_posterior(data, model, st, chains = 2, iter = 2600, seed = 1)
  bound <- bound_of(model, st)
  design <- cbind(1, internal("term_values")(bound, as.matrix(data[-1])))
  at <- data.frame(x = c(3, 6), u = c(0.4, 0.6), z = c(1, -1))
  new <- rbind(cbind(1, internal("term_values")(bound, as.matrix(at))), replace(numeric(13), 4, 1))
  # centred, as the prior is: the intercept is that in the middle of the bounds
  middle <- c(6, 0.5, 0)
  centre <- function(m) cbind(m[, 1], m[, 2:4] - outer(m[, 1], middle), m[, -(1:4)])
  unit <- 4 / 2 * 2 / (sqrt(3) * c(2, 0.25, 2))
  design <- centre(design)
  new <- centre(new)
  grid <- expand.grid(sigma = exp(seq(log(0.25), log(0.8), length.out = 10)), tau_x = exp(seq(log(0.05), log(40), length.out = 16)),
                      tau_u = exp(seq(log(0.05), log(40), length.out = 16)))
  each <- t(apply(grid, 1, function(s) {
    prior <- c(4^2, unit^2, rep(s[["tau_x"]]^2, 5), rep(s[["tau_u"]]^2, 4))
    root <- chol(crossprod(design) / s[["sigma"]]^2 + diag(1 / prior))
    right <- backsolve(root, crossprod(design, data$y - 1) / s[["sigma"]]^2, transpose = TRUE)
    log_weight <- -60 * log(s[["sigma"]]) - sum((data$y - 1)^2) / (2 * s[["sigma"]]^2) + sum(right^2) / 2 - sum(log(diag(root))) - sum(log(prior)) / 2 +
      sum(dt(s[-1], 3, log = TRUE) + log(s[-1])) + dexp(s[["sigma"]], log = TRUE) + log(s[["sigma"]])
    c(log_weight, new %*% backsolve(root, right))
  }))
  weight <- exp(each[, 1] - max(each[, 1]))
  weight <- weight / sum(weight)
  exact <- colSums(weight * each[, -1]) + c(1, 1, 0)
  draws <- predict(fit, at, type = "expected")
  for (j in 1:2) expect_same_mean(matrix(draws[, j], ncol = 2), exact[j])
  expect_same_mean(parameter_draws(fit, "z"), exact[3])
  expect_same_mean(log(parameter_draws(fit, "sigma")), sum(weight * log(grid$sigma)))
  expect_same_mean(log(parameter_draws(fit, "tau[u]")), sum(weight * log(grid$tau_u)))
  skip_if_not_installed("mgcv")
  data <- dependent(1000)
  fit <- nonprivate_posterior(data, model_lm(several), st, chains = 2, iter = 800, seed = 1)
  # P-splines with the same knots
  knots <- list(x = 2 + 2 * (-3:7), u = (-3:6) / 3)
  gam <- mgcv::gam(y ~ s(x, bs = "ps", k = 7) + s(u, bs = "ps", k = 6) + z, data = data, knots = knots, method = "REML")
  at <- data.frame(x = c(3, 4, 6, 8, 5, 5, 5, 5), u = c(0.5, 0.5, 0.5, 0.5, 0.2, 0.4, 0.6, 0.8), z = 1)
  expected <- predict(fit, at, type = "expected")
  expect_lt(max(abs(colMeans(expected) - predict(gam, at)) / apply(expected, 2, sd)), 0.2)
  expect_lt(abs(mean(parameter_draws(fit, "z")) - coef(gam)[["z"]]) / sd(parameter_draws(fit, "z")), 0.2)
})

test_that("several terms: cells given records are those of all assignments to classes", {
  skip_on_cran()
  data <- data.frame(y = c(0, 1, 2), x = c(2.1, 2.2, 9), z = c(-3.9, -3.8, 3))
  formula <- y ~ s(x, k = 6) + z
  fit <- nonprivate_posterior(data, model_lm(formula), stat_crossprod(formula, ends[c("y", "x", "z")]), chains = 2, iter = 6000, seed = 1)
  classes <- internal("classes_of_covariates")
  cells <- list(x = list(count = 6, of = c(1, 1, 6)), z = list(count = 16, of = c(1, 1, 15)))
  assignments <- as.matrix(expand.grid(rep(list(seq_len(classes)), 3)))
  each <- t(apply(assignments, 1, function(class) {
    log_weight <- sum(lgamma(1 + tabulate(class, classes)))
    margin <- lapply(cells, function(v) matrix(0, classes, v$count))
    for (v in names(cells)) for (k in seq_len(classes)) {
      alpha <- rep(1 / classes, cells[[v]]$count)
      counts <- tabulate(cells[[v]]$of[class == k], cells[[v]]$count)
      log_weight <- log_weight + sum(lgamma(alpha + counts) - lgamma(alpha)) + lgamma(sum(alpha)) - lgamma(sum(alpha + counts))
      margin[[v]][k, ] <- (alpha + counts) / sum(alpha + counts) * (1 + sum(class == k)) / (classes + 3)
    }
    c(log_weight, sum(margin$x[, 1]), sum(margin$z[, 1]), sum(margin$z[, 8]))
  }))
  weight <- exp(each[, 1] - max(each[, 1]))
  exact <- colSums(weight * each[, -1]) / sum(weight)
  names <- grep("^prob", posterior::variables(fit$draws), value = TRUE)
  for (j in 1:3) expect_same_mean(parameter_draws(fit, names[c(1, 7, 14)][j]), exact[j])
})

test_that("several terms, augment: with z drawn again and again the parameters follow their prior", {
  skip_on_cran()
  set.seed(13)
  formula <- y ~ s(x, k = 6) + s(u, k = 6) + z
  st <- stat_crossprod(formula, ends)
  model <- model_lm(formula)
  prior <- prior_draws(model, st, 20000L)
  for (passes in c(0, 3)) expect_prior(geweke(model, st, mech_laplace(epsilon = 15), 6, 2400, passes), prior)
  expect_prior(geweke(model, st, mech_laplace(epsilon = 15), 6, 3200, -1, warmup = 300L, kinds = c(1, 1, 0, 0)), prior)
})

test_that("several terms: draws have the cells' probabilities over all classes, and fits do what those of one smooth do", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(14)
  data <- dependent(150)
  st <- stat_crossprod(several, ends, outside = "none")
  release <- simulate_release(data, st, mech_gaussian(mu = 4))
  fit <- suppressWarnings(sample_posterior(release, model_lm(), chains = 2, iter = 100, seed = 1))
  expect_identical(fit$method, "augment")
  names <- posterior::variables(fit$draws)
  expect_identical(names[1:13], c("(Intercept)", "x", "u", "z", sprintf("s(x)%d", 1:5), sprintf("s(u)%d", 1:4)))
  expect_identical(names[14:16], c("sigma", "tau[x]", "tau[u]"))
  expect_length(names, 16 + 8 + 6 + 16)
  expect_false(any(grepl("class", c(names, posterior::variables(fit), summary(fit)$variable, colnames(as.matrix(fit)), capture.output(print(fit))))))
  for (v in c("x", "u", "z")) expect_equal(unname(rowSums(as.matrix(fit)[, grep(sprintf("^prob\\[%s=", v), names)])), rep(1, 100), tolerance = 1e-9)
  # from the classes
  own <- internal("own_parameters")(fit)
  class <- own[, sprintf("class[%d]", 1:8)]
  first <- own[, grep("^prob\\[z=.*class", colnames(own))[16 * (0:7) + 1]]
  expect_equal(rowSums(class * first), own[, grep("^prob\\[z=", colnames(own))[1]], tolerance = 1e-9)
  # new records are as dependent as the model's
  made <- simulate(fit, 20, seed = 1)
  expect_gt(cor(do.call(rbind, made)[c("x", "z")])[1, 2], 0.2)
  expect_identical(names(synthesize(fit, 2, seed = 1)[[1]]), c("y", "x", "u", "z"))
  expect_identical(extend(fit, 10)$hidden[1:50, , ], fit$hidden[1:50, , ])
  expect_equal(formula(fit), y ~ s(x, k = 7) + s(u, k = 6) + z, ignore_formula_env = TRUE)
  expect_equal(dim(predict(fit, data[1:3, ], interval = "predictive")), c(3L, 4L))
  said <- sample_posterior(release, model_lm(y ~ z + s(x, k = 7) + s(u, k = 6)), "augment", chains = 1, iter = 40, seed = 1)
  expect_setequal(posterior::variables(said$draws), names)
  shown <- internal("prior_summary.noiseaware_fit")(fit)
  expect_s3_class(shown, "data.frame")
  # with a fit as if bounds were natural limits
  expect_identical(internal("both_answers")(fit, fit)$parameter, names)
  expect_s3_class(plot(fit, "predictive", covariate = "u"), "ggplot")
  effects <- internal("conditional_effects.noiseaware_fit")(fit)
  expect_named(effects, c("x", "u", "z"))
  expect_equal(effects$u$estimate__[1], median(suppressWarnings(predict(fit, data.frame(x = 6, u = 0, z = 0), type = "expected"))), tolerance = 1e-9)
  expect_equal(diff(range(effects$z$estimate__)), 8 * abs(median(parameter_draws(fit, "z"))), tolerance = 0.2)
  skip_if_not_installed("emmeans")
  at <- list(x = c(3, 8), u = 0.5, z = 1)
  seen <- as.data.frame(summary(emmeans::emmeans(fit, ~ x, at = at), frequentist = TRUE))
  expect_equal(seen$emmean, colMeans(suppressWarnings(predict(fit, expand.grid(at), type = "expected"))), tolerance = 1e-9)
})

test_that("several terms: a sampled prior, two releases and calibration leave classes out", {
  skip_on_cran()
  formula <- y ~ s(x, k = 6) + z
  st <- stat_crossprod(formula, ends[c("y", "x", "z")])
  checked <- calibrate(model_lm(formula), st, mech_laplace(epsilon = 10), n = 20, replicates = 4, chains = 1, iter = 60, seed = 1)
  expect_false(any(grepl("class", coverage(checked)$variable)))
  set.seed(15)
  data <- dependent(60)
  releases <- lapply(1:2, function(i) simulate_release(data, st, mech_laplace(epsilon = 10)))
  pooled <- suppressWarnings(sample_posterior(stats::setNames(releases, c("a", "b")), model_lm(), pool = "complete", chains = 1, iter = 40, seed = 1))
  expect_false(any(grepl("class", posterior::variables(pooled$draws))))
  expect_equal(ncol(predict(pooled, data[1:3, ], type = "expected")), 3L)
  apart <- suppressWarnings(sample_posterior(stats::setNames(releases, c("a", "b")), model_lm(), pool = "none", chains = 1, iter = 40, seed = 1))
  expect_false(any(grepl("class", posterior::variables(apart$fits$a$draws))))
})

test_that("several terms: moved records change their class with its probability, and refreshed ones as their innovations do", {
  formula <- y ~ s(x, k = 6) + z
  bound <- bound_of(model_lm(formula), stat_crossprod(formula, ends[c("y", "x", "z")]))
  values <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, stream(1), 1L)$theta)[1, ]
  # two classes, one in the lower halves of x and z, one in the upper halves
  theta_of <- function(first) {
    values[sprintf("class[%d]", 1:8)] <- c(first, 1 - first, rep(1e-12, 6))
    for (v in c("x", "z")) for (class in 1:2) {
      at <- grep(sprintf("^prob\\[%s=.*class=%d", v, class), names(values))
      values[at] <- rep(if (class == 1) c(1 - 1e-12, 1e-12) else c(1e-12, 1 - 1e-12), each = length(at) / 2) / (length(at) / 2)
    }
    internal("bound_theta")(bound, values)
  }
  n <- 20000L
  records <- .Call(internal("ffi_model_records"), bound$spec, theta_of(0.5), n, stream(2))$records
  low <- function(x) {
    x <- matrix(unlist(x), n)
    expect_identical(x[, 2] < 6, x[, 3] < 0)
    x[, 2] < 6
  }
  moved <- .Call(internal("ffi_model_move"), bound$spec, theta_of(0.5), theta_of(0.2), records, stream(3))
  expect_equal(mean(low(moved)), 0.2, tolerance = 0.05)
  expect_false(any(low(moved) & !low(records)))
  expect_equal(mean(low(moved)[low(records)]), 0.4, tolerance = 0.05)
  fresh <- .Call(internal("ffi_model_refresh"), bound$spec, theta_of(0.5), 0.8, records, stream(4))$records
  expect_equal(mean(low(fresh) == low(records)), 0.5 + asin(0.8) / pi, tolerance = 0.02)
})

test_that("a smooth of few records is sampled exactly by default", {
  release <- as_release(numeric(62), stat_crossprod(accel ~ s(times, k = 16), list(accel = c(-150, 100), times = c(0, 60))), mech_laplace(epsilon = 8), n = 133)
  bound <- internal("bind_model")(model_lm(), release$statistic)
  # cells, products of splines at most three apart, of splines with the response, and its square
  expect_equal(internal("counted_size")(bound), 2 * 13 + (16 + 15 + 14 + 13) + 16 + 1)
  expect_identical(internal("auto_method")(release, bound, list(chains = 4, iter = 50000), list())$method, "augment")
})
