# Bridge sampling over normal totals: against quadrature over the totals (one variable), and against the mean
# density of the noise at totals of records that are drawn from the prior (regressions).

totals_evidence <- function(release, model, method = "collapse", draws = 2500, seed = 1) {
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, method = method, chains = 2, iter = 500, seed = seed)))
  suppressMessages(log_evidence(fit, draws = draws, seed = seed))
}

expect_evidence <- function(got, want, beside = 0) {
  expect_lt(attr(got, "error"), 0.05)
  expect_lt(abs(as.numeric(got) - want), 4.5 * sqrt(attr(got, "error")^2 + beside^2))
}

squares <- stat_sums(~ x + I(x^2), bounds = list(x = c(-50, 50)), rescale = FALSE)
published <- as_release(c(12.3, 61.5), squares, mech_laplace(scale = 4), n = 20)

# log density of the two numbers, for the total t and the scatter S of 20 records with density m(t, S)
over_totals <- function(log_m) {
  scatter <- exp(seq(log(0.05), log(500), length.out = 150))
  at <- expand.grid(t = seq(-70, 90, length.out = 101), s = scatter)
  cell <- log(1.6) + log(at$s) + log(diff(log(scatter))[1])
  internal("log_sum_exp")(cell + log_m(at$t, at$s) - abs(12.3 - at$t) / 4 - abs(61.5 - at$s - at$t^2 / 20) / 4 - 2 * log(8))
}

given_theta <- function(mean, sd) {
  over_totals(function(t, s) dnorm(t, 20 * mean, sqrt(20) * sd, log = TRUE) + dchisq(s / sd^2, 19, log = TRUE) - 2 * log(sd))
}

test_that("one variable, a normal-inverse-gamma prior: quadrature over the totals", {
  skip_on_cran() # takes long; `make test` runs it
  want <- over_totals(function(t, s) {
    rate <- 6 + s / 2 + (20 * 0.25 / 20.25) * (t / 20 - 0.5)^2 / 2
    # records in terms of t and s, and their density with mean and sd integrated out
    -log(20) / 2 + 19 / 2 * log(pi) - lgamma(19 / 2) + 17 / 2 * log(s) +
      -10 * log(2 * pi) + log(0.25 / 20.25) / 2 + 2 * log(6) - 12 * log(rate) + lgamma(12) - lgamma(2)
  })
  prior <- prior_nig(0.5, 1 / 4, 2, 6)
  got <- totals_evidence(published, model_normal(prior = prior))
  expect_evidence(got, want)
  expect_null(attr(got, "note"))
  # the same prior as a normal-inverse-Wishart one; and imputed records, whose totals are moved instead
  expect_evidence(totals_evidence(published, model_mvnormal(prior = prior_niw(0.5, 1 / 4, 12, 4))), want)
  expect_evidence(totals_evidence(published, model_normal(prior = prior), "augment"), want)
})

test_that("one variable, independent priors, known or not: quadrature over totals and parameters", {
  skip_on_cran() # takes long; `make test` runs it
  mean <- seq(-4, 5, length.out = 46)
  log_sd <- seq(log(0.6), log(6), length.out = 30)
  log_ig <- function(u) log(2) + 3 * log(6) - lgamma(3) - 6 * u - 6 * exp(-2 * u)
  known_sd <- log(0.2) + vapply(mean, given_theta, 0, sd = 1.7) + dnorm(mean, 0.5, 1.2, log = TRUE)
  expect_evidence(totals_evidence(published, model_normal(prior = list(mean = prior_normal(0.5, 1.2), sd = fixed(1.7)))), internal("log_sum_exp")(known_sd))
  known_mean <- log(diff(log_sd)[1]) + vapply(exp(log_sd), given_theta, 0, mean = 0.3) + log_ig(log_sd)
  expect_evidence(totals_evidence(published, model_normal(prior = list(mean = fixed(0.3), sd = prior_inverse_gamma(3, 6)))), internal("log_sum_exp")(known_mean))
  skip_on_cran() # takes long; `make test` runs it
  both <- expand.grid(mean = mean[seq(1, 46, 2)], u = log_sd[seq(1, 30, 2)])
  both <- log(0.8 * diff(log_sd)[1]) + mapply(function(m, u) given_theta(m, exp(u)), both$mean, both$u) + dnorm(both$mean, 0.5, 1.2, log = TRUE) + log_ig(both$u)
  expect_evidence(totals_evidence(published, model_normal(prior = list(mean = prior_normal(0.5, 1.2), sd = prior_inverse_gamma(3, 6)))), internal("log_sum_exp")(both))
})

# log of the mean density of Laplace noise at the totals of `n` records from the prior, and its error; what is known is in `known`
from_prior <- function(release, model, known, scale, bounds = NULL, draws = 3e4) {
  bound <- internal("bind_model")(model, release$statistic)
  theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(1, 2, 3, 4)), as.integer(draws))$theta
  values <- t(.Call(internal("ffi_model_report"), bound$spec, theta))
  colnames(values) <- bound$parameters
  value <- function(name) if (name %in% colnames(values)) values[, name] else known[[name]]
  names <- bound$columns$name[-1]
  n <- release$n
  set.seed(2)
  x <- list(value(paste0("mean[", names[1], "]")) + sqrt(value(paste0("cov[", names[1], ",", names[1], "]"))) * matrix(rnorm(draws * n), draws))
  if (length(names) == 2) {
    between <- paste0("cov[", names[2], ",", names[1], "]")
    slope <- value(between) / value(paste0("cov[", names[1], ",", names[1], "]"))
    left <- sqrt(value(paste0("cov[", names[2], ",", names[2], "]")) - slope * value(between))
    x[[2]] <- value(paste0("mean[", names[2], "]")) + slope * (x[[1]] - value(paste0("mean[", names[1], "]"))) + left * matrix(rnorm(draws * n), draws)
  }
  columns <- c(list(value("(Intercept)") + Reduce(`+`, Map(function(x, name) value(name) * x, x, names)) + value("sigma") * matrix(rnorm(draws * n), draws)), x)
  if (!is.null(bounds)) columns <- Map(function(x, b) pmin(pmax(x, b[1]), b[2]), columns, bounds)
  pairs <- release$statistic$pairs
  totals <- cbind(vapply(columns, rowSums, numeric(draws)), mapply(function(i, j) rowSums(columns[[i]] * columns[[j]]), pairs$first, pairs$second))
  log_density <- -colSums(abs(t(totals) - release$value)) / scale - length(release$value) * log(2 * scale)
  weight <- exp(log_density - max(log_density))
  list(value = max(log_density) + log(mean(weight)), error = sd(weight) / mean(weight) / sqrt(draws))
}

test_that("a regression on one covariate: records from the prior, whatever is known", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-40, 40), x = c(-30, 30)), rescale = FALSE)
  release <- as_release(c(y = 5, x = 2, "y^2" = 60, "y:x" = 20, "x^2" = 30), st, mech_laplace(scale = 25), n = 8)
  niw <- prior_niw(0.2, 2, 6, 6)
  normal <- prior_normal(c(0.2, 0.4), c(1, 0.8))
  known <- list("(Intercept)" = 0.2, x = 0.4, sigma = 1.5, "mean[x]" = 0.1, "cov[x,x]" = 2)
  models <- list(
    model_lm(prior = prior_nig(c(0.3, 0.5), c(1, 2), 4, 12), covariates = niw),
    model_lm(prior = normal, sigma = prior_half_normal(2), covariates = niw),
    model_lm(prior = fixed(c(0.2, 0.4)), sigma = prior_half_t(4, 2), covariates = list(mean = niw, cov = fixed(matrix(2)))),
    model_lm(prior = fixed(c(0.2, 0.4)), sigma = prior_inverse_gamma(4, 9), covariates = list(mean = fixed(0.1), cov = niw)),
    model_lm(prior = normal, sigma = fixed(1.5), covariates = niw),
    model_lm(prior = prior_student_t(5, c(0.2, 0.4), c(1, 0.8)), sigma = fixed(1.5), covariates = niw),
    model_lm(prior = normal, sigma = prior_inverse_gamma(3, 6), covariates = fixed(list(mean = 0.1, cov = matrix(2)))))
  for (model in models) {
    want <- from_prior(release, model, known, 25)
    expect_evidence(totals_evidence(release, model), want$value, want$error)
  }
  want <- from_prior(release, models[[1]], known, 25)
  expect_evidence(totals_evidence(release, models[[1]], "clt"), want$value, want$error)
})

test_that("a regression on two covariates: records from the prior", {
  skip_on_cran()
  st <- stat_crossprod(y ~ a + b, bounds = list(y = c(-40, 40), a = c(-30, 30), b = c(-30, 30)), rescale = FALSE)
  release <- as_release(c(y = 5, a = 2, b = -3, "y^2" = 60, "y:a" = 20, "y:b" = -8, "a^2" = 30, "a:b" = 4, "b^2" = 25), st, mech_laplace(scale = 25), n = 8)
  model <- model_lm(prior = prior_nig(c(0.3, 0.5, 0), c(1, 2, 2), 4, 12), covariates = prior_niw(c(0.2, 0), 2, diag(c(6, 5)), 8))
  want <- from_prior(release, model, NULL, 25)
  expect_evidence(totals_evidence(release, model), want$value, want$error)
})

test_that("clamping by method \"clt\": records from the prior, clamped", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(y = c(-3, 3), x = c(-2.5, 2.5)) # about 1.5 standard deviations
  st <- stat_crossprod(y ~ x, bounds = bounds, rescale = FALSE)
  release <- as_release(c(y = 2, x = -3, "y^2" = 90, "y:x" = 25, "x^2" = 60), st, mech_laplace(scale = 15), n = 40)
  model <- model_lm(prior = prior_nig(c(0, 0.4), c(2, 4), 10, 30), covariates = prior_niw(0, 4, 30, 15))
  got <- totals_evidence(release, model, "clt")
  want <- from_prior(release, model, NULL, 15, bounds)
  expect_evidence(got, want$value, want$error)
  expect_match(attr(got, "note"), "approximate")
  # which is far from what it is without bounds
  expect_gt(abs(want$value - from_prior(release, model, NULL, 15)$value), 0.3)
})

test_that("the error is about as large as the evidence varies by", {
  skip_on_cran() # takes long; `make test` runs it
  told <- vapply(1:20, function(seed) {
    fit <- suppressWarnings(sample_posterior(published, model_normal(), method = "collapse", chains = 2, iter = 500, seed = seed))
    got <- log_evidence(fit, draws = 500, seed = seed)
    c(got, attr(got, "error"))
  }, double(2))
  # 20 repeats determine a standard deviation within 16 per cent
  expect_lt(abs(log(sqrt(mean(told[2, ]^2)) / sd(told[1, ]))), log(2))
})

test_that("the error counts dependent draws, and a note says where they are few", {
  skip_on_cran()
  normal <- function(x) dnorm(x, log = TRUE)
  other <- function(x) dnorm(x, 0.5, 1.3, log = TRUE)
  told <- function(rho) {
    vapply(1:60, function(seed) {
      set.seed(seed)
      x <- replicate(4, as.vector(arima.sim(list(ar = rho), 500, sd = sqrt(1 - rho^2))))
      y <- rnorm(2000, 0.5, 1.3)
      got <- internal("bridge_ratio")(normal(as.vector(x)) - other(as.vector(x)), normal(y) - other(y), chains = 4)
      c(got$value, got$error, !is.null(got$note))
    }, double(3))
  }
  for (rho in c(0.2, 0.95)) {
    seen <- told(rho)
    expect_lt(abs(mean(seen[1, ])), 4.5 * sd(seen[1, ]) / sqrt(60))
    expect_lt(abs(log(sqrt(mean(seen[2, ]^2)) / sd(seen[1, ]))), log(1.6))
    expect_identical(mean(seen[3, ]), as.numeric(rho > 0.5))
  }
})

test_that("a density that no normal distribution fits: a funnel whose integral is 1, by chains that move slowly", {
  skip_on_cran() # takes long; `make test` runs it
  funnel <- function(q) dnorm(q[, 1], 0, 1.5, log = TRUE) + dnorm(q[, 2], 0.5 * q[, 3], exp(q[, 1]), log = TRUE) + dnorm(q[, 3], log = TRUE)
  chain <- function(count) {
    v <- 1.5 * as.vector(arima.sim(list(ar = 0.9), count, sd = sqrt(1 - 0.9^2)))
    z <- rnorm(count)
    cbind(v, 0.5 * z + exp(v) * rnorm(count), z)
  }
  told <- vapply(1:25, function(seed) {
    set.seed(seed)
    unlist(internal("bridge_mixture")(aperm(replicate(4, chain(1000)), c(1, 3, 2)), funnel)[c("value", "error")])
  }, double(2))
  expect_lt(abs(mean(told[1, ])), 4.5 * sd(told[1, ]) / 5)
  expect_lt(abs(log(sqrt(mean(told[2, ]^2)) / sd(told[1, ]))), log(1.6))
  # 0.06 with one normal distribution
  expect_lt(sqrt(mean(told[2, ]^2)), 0.025)
})

test_that("a mixture's draws have its density, and few or equal points have one", {
  set.seed(1)
  points <- rbind(matrix(rnorm(3000), ncol = 2) %*% matrix(c(1, 0.8, 0, 0.6), 2), matrix(rnorm(1000, 8, 3), ncol = 2))
  parts <- internal("fit_normals")(points)
  expect_length(parts, 4)
  fresh <- internal("draw_normals")(parts, 4e4)
  # the density of draws is 1 / volume on average, in a box where it is not 0
  inside <- abs(fresh[, 1]) < 1 & abs(fresh[, 2]) < 1
  within <- exp(-internal("log_normals")(parts, fresh[inside, ]))
  expect_lt(abs(sum(within) / 4e4 - 4), 5 * sd(c(within, numeric(sum(!inside)))) / 200)
  expect_equal(weighted.mean(vapply(parts, function(p) p$mean[1], 0), vapply(parts, `[[`, 0, "weight")), mean(points[, 1]), tolerance = 0.05)
  expect_length(internal("fit_normals")(points[1:50, ]), 1)
  expect_true(all(is.finite(unlist(internal("fit_normals")(points[rep(1:3, 400), ])))))
})

test_that("what has no evidence says why; prints and messages", {
  skip_on_cran()
  fit <- suppressWarnings(sample_posterior(published, model_normal(), method = "augment", chains = 1, iter = 100, seed = 1))
  expect_message(got <- log_evidence(fit, draws = 400, seed = 1), class = "noiseaware_message_evidence")
  expect_identical(suppressMessages(log_evidence(fit, draws = 400, seed = 1)), got)
  expect_output(print(got), "<log evidence> -[0-9.]+ \\(Monte Carlo error 0[.][0-9]+\\)")
  expect_output(print(suppressMessages(bayes_factor(fit, fit, draws = 400, seed = 1))), "<Bayes factor> 1\n  log  0")
  expect_error(log_evidence(fit, draws = 10), class = "noiseaware_error_argument")
  expect_error(log_evidence(fit, seed = "a"), class = "noiseaware_error_argument")
  refused <- list(
    list(published, model_normal(prior = prior_nig(within = TRUE)), "truncated"),
    list(as_release(c(1, 2), squares, mech_laplace(scale = 4), n = 1), model_normal(), "more records than variables"),
    list(as_release(c(12, 80), squares, mech_exact(), n = 20), model_normal(), "without noise"))
  for (one in refused) {
    fit <- suppressMessages(suppressWarnings(sample_posterior(one[[1]], one[[2]], method = "collapse", chains = 1, iter = 100, seed = 1)))
    expect_error(log_evidence(fit), one[[3]], class = "noiseaware_error_method")
  }
  factors <- stat_crossprod(y ~ g, bounds = list(y = c(-4, 4), g = c("a", "b")))
  fit <- suppressMessages(suppressWarnings(sample_posterior(simulate_release(data.frame(y = rnorm(30), g = rep(c("a", "b"), 15)), factors, mech_laplace(epsilon = 2)),
                                                            model_lm(), method = "collapse", chains = 1, iter = 100, seed = 1)))
  expect_error(log_evidence(fit), "factors", class = "noiseaware_error_method")
  expect_error(log_evidence(nonprivate_posterior(data.frame(x = rnorm(9)), model_normal(), squares)), "of records", class = "noiseaware_error_method")
})
