# The baselines against closed forms.

x_sums <- stat_sums(~ x + I(x^2), list(x = c(0, 20)), rescale = FALSE)

test_that("naive is the conjugate distribution at the noisy totals", {
  skip_on_cran()
  st <- stat_counts(~ x, levels = list(x = c("a", "b", "c")))
  rel <- as_release(c(20.5, -3.1, 31), st, mech_laplace(epsilon = 1), 50)
  fit <- sample_posterior(rel, model_categorical(prior = prior_dirichlet(2)), method = "naive", chains = 2, iter = 7000, warmup = 0, seed = 1)
  # -3.1 becomes 0, the others shrink to 50
  counts <- c(20.5, 0, 31) * 50 / 51.5
  for (k in 1:3) expect_distribution(parameter_draws(fit, sprintf("prob[%s]", letters[k])), function(p) qbeta(p, 2 + counts[k], 54 - counts[k]))
  expect_true(fit$info$projected)
  expect_output(print(fit), "moved to the nearest valid ones")
  start <- c("prob[a]" = 0.2, "prob[b]" = 0.3, "prob[c]" = 0.5)
  expect_message(sample_posterior(rel, model_categorical(), method = "naive", init = start), "not used", class = "noiseaware_message_init")

  rel <- as_release(c(130, 900), x_sums, mech_laplace(epsilon = 1), 30)
  fit <- sample_posterior(rel, model_poisson(prior = prior_gamma(2, 1)), method = "naive", chains = 2, iter = 7000, warmup = 0, seed = 2)
  expect_distribution(parameter_draws(fit, "rate"), function(p) qgamma(p, 132, 31))
  fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(2, 1)), method = "naive", chains = 2, iter = 7000, warmup = 0, seed = 3)
  expect_distribution(parameter_draws(fit, "rate"), function(p) qgamma(p, 32, 131))
  expect_false(fit$info$projected)
})

test_that("naive with hardly any noise is the non-private posterior, whatever the units of the release", {
  set.seed(4)
  data <- data.frame(x = stats::rgamma(200, 6))
  cases <- list(model_poisson(prior = prior_gamma(1, 1)), model_exponential(prior = prior_gamma(1, 1)), model_normal(),
                model_normal(prior = list(mean = prior_normal(5, 3), sd = fixed(2))))
  for (model in cases) for (st in list(x_sums, stat_crossprod(x ~ 1, list(x = c(-1, 30))))) {
    rel <- simulate_release(data, st, mech_laplace(epsilon = 1e9))
    naive <- sample_posterior(rel, model, method = "naive", chains = 1, iter = 300, seed = 5)
    expect_equal(naive$draws, nonprivate_posterior(data, model, st, chains = 1, iter = 300, seed = 5)$draws, tolerance = 1e-5)
  }
})

test_that("what naive cannot update with is refused", {
  skip_on_cran()
  refused <- function(release, model, text) {
    expect_error(sample_posterior(release, model, method = "naive", chains = 1), text, class = "noiseaware_error_method")
  }
  refused(as_release(3, stat_sums(~ x, list(x = c(0, 9))), mech_laplace(epsilon = 1), 4), model_normal(), "is not in the release")
  refused(as_release(c(3, 3), stat_records(~ x, list(x = c(0, 9))), mech_laplace(epsilon = 1), 2), model_normal(), "cannot be updated")
  refused(as_release(c(3, 3), x_sums, mech_laplace(epsilon = 1), 2), model_lm(x ~ 1), "cannot be updated")
  st <- stat_counts(~ y + u, levels = list(y = c("1", "2"), u = c("1", "2")))
  refused(as_release(c(1, 2, 3, 4), st, mech_laplace(epsilon = 1), 5), model_naive_bayes("y"), "margins")
})

test_that("the non-private posterior of a model of R functions", {
  skip_on_cran()
  model <- model_custom(
    r_prior = function() c(mu = stats::rnorm(1, 0, 3)),
    r_records = function(theta, n) cbind(x = stats::rnorm(n, theta["mu"], 1)),
    r_theta = function(records, theta) {
      precision <- 1 / 9 + nrow(records)
      c(mu = stats::rnorm(1, sum(records[, "x"]) / precision, 1 / sqrt(precision)))
    }, variables = "x")
  data <- data.frame(x = c(1.5, 0.2, 2.2))
  st <- stat_sums(~ x, list(x = c(-1, 1)))
  fit <- nonprivate_posterior(data, model, st, chains = 2, iter = 5000, warmup = 100, seed = 1)
  precision <- 3 + 1 / 9
  expect_distribution(parameter_draws(fit, "mu"), function(p) stats::qnorm(p, 3.9 / precision, 1 / sqrt(precision)))
  expect_identical(nonprivate_posterior(data, model, st, chains = 2, iter = 5000, warmup = 100, seed = 1)$draws, fit$draws)
})
