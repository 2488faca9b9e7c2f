skip_on_cran() # takes long; `make test` runs it

# Budgets, units and bounds far from 1: right, or an error of ours.

finite_fit <- function(release, model, ...) {
  fit <- sample_posterior(release, model, chains = 1, iter = 120, seed = 1, ...)
  expect_true(all(is.finite(unclass(fit$draws))))
  fit
}

test_that("budgets from 1e-6 to 1e6", {
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)))
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  set.seed(1)
  data <- data.frame(y = stats::rnorm(30), x = stats::rnorm(30), g = rep(c("a", "b", "b"), 10))
  for (epsilon in 10^c(-6, -3, 3, 6)) {
    for (mechanism in list(mech_laplace(epsilon = epsilon), mech_gaussian(mu = epsilon), mech_gaussian(rho = epsilon))) {
      for (method in c("augment", "collapse", "clt")) finite_fit(simulate_release(data, st, mechanism), model_lm(), method = method)
      expect_true(all(is.finite(release(data, st, mechanism)$value)))
    }
    for (mechanism in list(mech_laplace(epsilon = epsilon), mech_discrete_laplace(epsilon = epsilon), mech_gaussian(rho = epsilon))) {
      for (method in c("augment", "collapse", "clt")) finite_fit(simulate_release(data, counts, mechanism), model_bernoulli(), method = method)
      expect_true(all(is.finite(release(data, counts, mechanism)$value)))
    }
  }
})

test_that("hardly any noise leaves the share, endless noise the prior", {
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  for (method in c("augment", "collapse", "clt")) {
    known <- sample_posterior(as_release(c(1, 2) * 100, counts, mech_laplace(epsilon = 1e6), n = 300), model_bernoulli(), method = method, chains = 2, iter = 4000, seed = 1)
    beta <- summary(known)
    expect_lt(abs(beta$mean - 201 / 302), 5 * posterior::mcse_mean(posterior::extract_variable_matrix(known$draws, beta$variable)) + if (method == "clt") 0.01 else 0)
    unknown <- sample_posterior(as_release(c(1, 2) * 100, counts, mech_laplace(epsilon = 1e-6), n = 30), model_bernoulli(), method = method, chains = 2, iter = 4000, seed = 1)
    draws <- posterior::extract_variable_matrix(unknown$draws, beta$variable)
    expect_lt(abs(mean(draws) - 0.5), 5 * posterior::mcse_mean(draws))
    expect_lt(abs(stats::sd(draws) - sqrt(1 / 12)), 5 * posterior::mcse_sd(draws))
  }
})

test_that("units from 1e-8 to 1e8 give the same posterior, scaled", {
  fit_in <- function(unit, method) {
    st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3) * unit, x = c(-2, 2) * unit))
    prior <- prior_nig(mean = 0, precision = diag(c(1, unit^2)) / c(1, 1), shape = 2, rate = 2 * unit^2)
    model <- model_lm(prior = prior, covariates = prior_niw(mean = 0, kappa = 1, df = 4, scale = unit^2))
    fit <- sample_posterior(as_release(c(3, -2, 11, 4, 9), st, mech_gaussian(sd = 2), n = 25), model, method = method, chains = 1, iter = 2000, seed = 1)
    posterior::as_draws_matrix(fit$draws)
  }
  for (method in c("augment", "collapse", "clt")) {
    reference <- fit_in(1, method)
    for (unit in c(1e-8, 1e8)) {
      scaled <- fit_in(unit, method)
      # the slope has no unit
      expect_gt(stats::ks.test(posterior::thin_draws(reference, 20)[, "x"], posterior::thin_draws(scaled, 20)[, "x"])$p.value, 1e-6)
      expect_gt(stats::ks.test(posterior::thin_draws(reference, 20)[, "mean[x]"], posterior::thin_draws(scaled, 20)[, "mean[x]"] / unit)$p.value, 1e-6)
    }
  }
})

test_that("bounds far from zero, and nearly dependent covariates", {
  far <- stat_crossprod(y ~ x, bounds = list(y = c(1e6, 1e6 + 5), x = c(-1e6 - 1, -1e6 + 1)))
  set.seed(2)
  data <- data.frame(y = 1e6 + stats::runif(40, 1, 4), x = -1e6 + stats::runif(40, -1, 1))
  for (method in c("augment", "collapse", "clt", "naive")) {
    fit <- finite_fit(simulate_release(data, far, mech_gaussian(sd = 0.01)), model_lm(), method = method)
    centre <- mean(posterior::extract_variable(fit$draws, "mean[x]"))
    if (method != "naive") expect_lt(abs(centre - mean(data$x)), 0.6)
  }
  twins <- data.frame(y = stats::rnorm(40), a = stats::rnorm(40))
  twins$b <- twins$a + 1e-7 * stats::rnorm(40)
  st <- stat_crossprod(y ~ a + b, bounds = list(y = c(-4, 4), a = c(-4, 4), b = c(-4, 4)))
  for (method in c("augment", "collapse", "clt")) {
    outcome <- tryCatch(finite_fit(simulate_release(twins, st, mech_laplace(epsilon = 1e5)), model_lm(), method = method), noiseaware_error = identity)
    expect_true(inherits(outcome, "noiseaware_fit") || inherits(outcome, "noiseaware_error_numerical"))
  }
})

test_that("one record", {
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)))
  for (method in c("augment", "collapse", "clt")) {
    outcome <- tryCatch(finite_fit(as_release(c(1, 0, 1, 0, 0), st, mech_laplace(epsilon = 1), n = 1), model_lm(), method = method), noiseaware_error = identity)
    expect_true(inherits(outcome, "noiseaware_fit") || inherits(outcome, "noiseaware_error"), label = method)
  }
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  for (method in c("augment", "collapse")) finite_fit(as_release(c(0, 1), counts, mech_laplace(epsilon = 1), n = 1), model_bernoulli(), method = method)
})
