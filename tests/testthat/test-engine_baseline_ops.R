ops_posterior <- internal("ops_posterior")

test_that("one-posterior sampling draws from the flattened posterior", {
  skip_on_cran()
  st <- stat_counts(~ x, levels = list(x = c("no", "yes")))
  data <- data.frame(x = rep(c("no", "yes"), c(30, 70)))
  model <- model_bernoulli(prior = prior_beta(2, 3))
  for (epsilon in c(1e9, 1e5, 1)) {
    count <- 20000
    fit <- ops_posterior(data, model, st, epsilon, draws = count, a0 = 0.2, seed = 7)
    w <- min(1, epsilon / count / (2 * log(4)))
    expect_equal(fit$info$weight, w)
    a <- 1 + w * (2 - 1 + 70)
    b <- 1 + w * (3 - 1 + 30)
    limits <- pbeta(c(0.2, 0.8), a, b)
    prob <- as.numeric(fit$draws)
    expect_gt(suppressWarnings(ks.test(prob, function(q) (pbeta(q, a, b) - limits[1]) / diff(limits)))$p.value, 1e-6)
    expect_true(all(prob >= 0.2 & prob <= 0.8))
  }
  expect_identical(dim(ops_posterior(data, model, st, 1)$draws), c(100L, 1L, 1L))
  expect_output(print(fit), "overdispersed")
  expect_error(ops_posterior(data, model_categorical(), st, 1), class = "noiseaware_error_method")
  expect_error(ops_posterior(data, model, st, -1), class = "noiseaware_error_argument")
  expect_error(ops_posterior(data, model, st, 1, a0 = 0.5), class = "noiseaware_error_argument")
})
