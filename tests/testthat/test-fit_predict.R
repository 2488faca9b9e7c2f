# Predictions of models without covariates, against draws and distributions; those of regressions are with their models.

yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
hospital <- function(count, n) as_release(c("smoke=yes" = count), yes, mech_laplace(scale = 2), n = n)

test_that("a probability is predicted as that of a new record", {
  fit <- sample_posterior(hospital(27.3, 90), model_bernoulli(), chains = 2, iter = 1000, seed = 1)
  draws <- parameter_draws(fit, "prob[yes]")
  expect_equal(predict(fit), mean(draws))
  expect_equal(predict(fit, data.frame(a = 1:3)), rep(mean(draws), 3))
  expect_equal(predict(fit, interval = "credible", level = 0.8)[1, ],
               c(fit = mean(draws), lower = quantile(draws, 0.1, type = 6, names = FALSE), upper = quantile(draws, 0.9, type = 6, names = FALSE),
                 mcse = posterior::mcse_mean(posterior::extract_variable_matrix(fit$draws, "prob[yes]"))))
  expect_equal(drop(predict(fit, type = "expected")), as.vector(draws))
  new <- predict(fit, data.frame(a = 1:200), type = "draws", seed = 1)
  expect_true(all(new %in% 0:1))
  expect_lt(abs(mean(new) - mean(draws)), 0.01)
  for (call in expression(predict(fit, type = "link"), predict(fit, type = "median"))) expect_error(eval(call), class = "noiseaware_error_argument")
  expect_error(predict(fit, 3), class = "noiseaware_error_data")
})

test_that("values of other models have their distributions", {
  total <- stat_sums(~ x, list(x = c(0, 50)))
  each <- function(model, statistic = total, value = 60) {
    suppressMessages(suppressWarnings(sample_posterior(as_release(value, statistic, mech_laplace(scale = 1), n = 20), model, chains = 2, iter = 400, seed = 1)))
  }
  counts <- each(model_poisson())
  rate <- parameter_draws(counts, "rate")
  expect_equal(predict(counts), mean(rate))
  many <- data.frame(a = 1:2000)
  expect_equal(mean(predict(counts, many, type = "draws", seed = 1) == 0), mean(exp(-rate)), tolerance = 0.02)
  times <- each(model_exponential())
  rate <- parameter_draws(times, "rate")
  expect_equal(predict(times), mean(1 / rate))
  expect_equal(mean(predict(times, many, type = "draws", seed = 1) > 2), mean(exp(-2 * rate)), tolerance = 0.02)
  known <- each(model_normal(prior = list(mean = prior_normal(3, 2), sd = fixed(1.5))))
  mean <- parameter_draws(known, "mean")
  expect_equal(base::mean(predict(known, many, type = "draws", seed = 1) > 4), base::mean(pnorm(4, mean, 1.5, lower.tail = FALSE)), tolerance = 0.02)
})

test_that("sites are predicted, new ones too", {
  skip_on_cran()
  pooled <- function(pool, ...) {
    suppressMessages(suppressWarnings(sample_posterior(list(north = hospital(27.3, 90), south = hospital(15.1, 40)), model_bernoulli(), pool = pool, chains = 2,
                                                       iter = 600, seed = 1)))
  }
  partial <- pooled("partial")
  quietly <- function(code) suppressWarnings(code)
  expect_equal(quietly(predict(partial, site = "south")), mean(posterior::as_draws_matrix(partial$draws)[, "prob[yes,south]"]))
  wide <- quietly(predict(partial, site = "new", interval = "credible", seed = 1))
  narrow <- quietly(predict(partial, site = "north", interval = "credible"))
  expect_gt(diff(wide[1, 2:3]), diff(narrow[1, 2:3]))
  expect_error(predict(partial), "north, south", class = "noiseaware_error_argument")
  expect_length(predict(pooled("complete")), 1L)
})
