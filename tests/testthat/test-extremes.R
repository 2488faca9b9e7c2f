# Budgets, units and bounds far from 1, and as few records as can be: what each method
# makes of them.

# a short run, whose draws the model can have
sound_fit <- function(release, model, ...) {
  fit <- sample_posterior(release, model, chains = 1, iter = 120, seed = 1, ...)
  draws <- posterior::as_draws_matrix(fit$draws)
  expect_true(all(is.finite(draws)))
  of <- function(pattern) as.vector(draws[, grep(pattern, colnames(draws))])
  expect_true(all(of("^sigma$|^cov\\[(.*),\\1\\]$") > 0))
  expect_true(all(of("^prob") >= 0 & of("^prob") <= 1))
  fit
}

test_that("budgets from 1e-6 to 1e6", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)))
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  set.seed(1)
  data <- data.frame(y = stats::rnorm(30), x = stats::rnorm(30), g = rep(c("a", "b", "b"), 10))
  for (epsilon in 10^c(-6, 3, 6)) {
    for (mechanism in list(mech_laplace(epsilon = epsilon), mech_gaussian(mu = epsilon), mech_gaussian(rho = epsilon))) {
      for (method in c("augment", "collapse", "clt")) sound_fit(simulate_release(data, st, mechanism), model_lm(), method = method)
      expect_true(all(is.finite(release(data, st, mechanism)$value)))
    }
    for (mechanism in list(mech_laplace(epsilon = epsilon), mech_discrete_laplace(epsilon = epsilon), mech_gaussian(rho = epsilon))) {
      for (method in c("augment", "collapse", "clt")) sound_fit(simulate_release(data, counts, mechanism), model_bernoulli(), method = method)
      expect_true(all(is.finite(release(data, counts, mechanism)$value)))
    }
  }
})

test_that("hardly any noise leaves the share, endless noise the prior", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  for (method in c("augment", "collapse", "clt")) {
    known <- sample_posterior(as_release(c(1, 2) * 100, counts, mech_laplace(epsilon = 1e6), n = 300), model_bernoulli(), method = method, chains = 2, iter = 1800, seed = 1)
    beta <- summary(known)
    expect_lt(abs(beta$mean - 201 / 302), 5 * posterior::mcse_mean(posterior::extract_variable_matrix(known$draws, beta$variable)) + if (method == "clt") 0.01 else 0)
    unknown <- sample_posterior(as_release(c(1, 2) * 100, counts, mech_laplace(epsilon = 1e-6), n = 30), model_bernoulli(), method = method, chains = 2, iter = 1800, seed = 1)
    draws <- posterior::extract_variable_matrix(unknown$draws, beta$variable)
    expect_lt(abs(mean(draws) - 0.5), 5 * posterior::mcse_mean(draws))
    expect_lt(abs(stats::sd(draws) - sqrt(1 / 12)), 5 * posterior::mcse_sd(draws))
  }
})

test_that("endless noise leaves a regression its prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)))
  rel <- as_release(c(3, -2, 11, 4, 9), st, mech_gaussian(mu = 1e-6), n = 20)
  # "clt" does not reach the upper tail of the default prior of sigma, and warns of divergences
  for (case in list(list("augment", prior_normal()), list("collapse", prior_normal()), list("clt", prior_nig()))) {
    model <- model_lm(prior = case[[2]])
    fit <- sample_posterior(rel, model, method = case[[1]], chains = 1, iter = 4200, seed = 1)
    expect_prior(posterior::as_draws_matrix(fit$draws), prior_draws(model, st))
  }
})

test_that("units from 1e-8 to 1e8 give the same posterior, scaled", {
  skip_on_cran() # takes long; `make test` runs it
  fit_in <- function(unit, method) {
    st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3) * unit, x = c(-2, 2) * unit))
    prior <- prior_nig(mean = 0, precision = diag(c(1, unit^2)) / c(1, 1), shape = 2, rate = 2 * unit^2)
    model <- model_lm(prior = prior, covariates = prior_niw(mean = 0, kappa = 1, df = 4, scale = unit^2))
    fit <- sample_posterior(as_release(c(3, -2, 11, 4, 9), st, mech_gaussian(sd = 2), n = 25), model, method = method, chains = 1, iter = 1000, seed = 1)
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

test_that("bounds far from zero", {
  far <- stat_crossprod(y ~ x, bounds = list(y = c(1e6, 1e6 + 5), x = c(-1e6 - 1, -1e6 + 1)))
  set.seed(2)
  data <- data.frame(y = 1e6 + stats::runif(40, 1, 4), x = -1e6 + stats::runif(40, -1, 1))
  for (method in c("augment", "collapse", "clt", "naive")) {
    fit <- sound_fit(simulate_release(data, far, mech_gaussian(sd = 0.01)), model_lm(), method = method)
    expect_lt(abs(mean(posterior::extract_variable(fit$draws, "mean[x]")) - mean(data$x)), 0.6)
  }
})

test_that("covariates that are nearly the same: their effects together are known, or a warning says what is not", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  twins <- data.frame(y = stats::rnorm(40), a = stats::rnorm(40))
  twins$b <- twins$a + 1e-7 * stats::rnorm(40)
  st <- stat_crossprod(y ~ a + b, bounds = list(y = c(-4, 4), a = c(-4, 4), b = c(-4, 4)))
  set.seed(1)
  rel <- simulate_release(twins, st, mech_laplace(epsilon = 1e5))
  both <- summary(stats::lm(y ~ a, twins))$coefficients["a", ]
  for (method in c("collapse", "clt", "naive")) {
    draws <- posterior::as_draws_matrix(sound_fit(rel, model_lm(), method = method)$draws)
    effect <- as.vector(draws[, "a"] + draws[, "b"])
    expect_lt(abs(mean(effect) - both[["Estimate"]]) / both[["Std. Error"]], 0.5)
    expect_lt(abs(log(stats::sd(effect) / both[["Std. Error"]])), log(1.5))
  }
  # records can hardly move when their totals are known to six digits
  expect_warning(told(sound_fit(rel, model_lm(), method = "augment")), class = "noiseaware_warning_convergence")
})

test_that("one record: a regression", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)))
  rel <- as_release(c(0.2, 0.1, -0.6, 0, -0.9), st, mech_laplace(epsilon = 20), n = 1)
  # the prior's draws, each with a record of its own, weighted by the noise
  set.seed(4)
  theta <- prior_draws(model_lm(), st, 200000L)
  x <- stats::rnorm(nrow(theta), theta[, "mean[x]"], sqrt(theta[, "cov[x,x]"]))
  y <- stats::rnorm(nrow(theta), theta[, "(Intercept)"] + theta[, "x"] * x, theta[, "sigma"])
  weight <- exp(log_noise("absolute", rel$scale, rel$value, r_components(st, cbind(y, x))))
  weight <- weight / sum(weight)
  exact <- function(inside) {
    share <- sum(weight * inside)
    c(share, sqrt(sum(weight^2 * (inside - share)^2)))
  }
  events <- list(function(d) d[, "sigma"] < 0.6, function(d) abs(d[, "mean[x]"]) < 0.4, function(d) d[, "(Intercept)"] > 0)
  fit <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 7200, seed = 1)
  draws <- posterior::as_draws_matrix(fit$draws)
  for (event in events) {
    share <- exact(event(theta) + 0)
    seen <- event(draws) + 0
    expect_lt(abs(mean(seen) - share[1L]), 5 * sqrt(posterior::mcse_mean(seen)^2 + share[2L]^2))
  }
  # without what the bounds do to the record
  for (method in c("collapse", "naive")) sound_fit(rel, model_lm(), method = method)
  expect_error(sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = 120), "at least two records", class = "noiseaware_error_method")
})

test_that("one record: a factor", {
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  rel <- as_release(c(0, 1), counts, mech_laplace(epsilon = 1), n = 1)
  # it is b, or it is a and both counts are off by one: a mixture of Beta(2, 1) and Beta(1, 2)
  other <- exp(-2 / 2)
  for (method in c("augment", "collapse")) {
    fit <- sample_posterior(rel, model_bernoulli(), method = method, chains = 2, iter = 1800, seed = 1)
    expect_same_mean(parameter_draws(fit, "prob[b]"), (2 / 3 + other / 3) / (1 + other))
  }
  fit <- sample_posterior(rel, model_bernoulli(), method = "naive", chains = 2, iter = 1800, seed = 1)
  expect_same_mean(parameter_draws(fit, "prob[b]"), 2 / 3)
  expect_error(sample_posterior(rel, model_bernoulli(), method = "clt", chains = 1, iter = 120), "at least two records", class = "noiseaware_error_method")
})
