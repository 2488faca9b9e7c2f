# Draws of a fit in every format of the posterior package.

test_that("every format has the same draws of the same variables", {
  rel <- as_release(c(30, 20), stat_counts(~ x, list(x = c("a", "b"))), mech_laplace(epsilon = 1), 50)
  fit <- sample_posterior(rel, model_categorical(), chains = 2, iter = 40, seed = 1)
  for (format in c("array", "df", "list", "matrix", "rvars")) {
    convert <- getExportedValue("posterior", paste0("as_draws_", format))
    drawn <- convert(fit)
    expect_s3_class(drawn, paste0("draws_", format))
    expect_equal(posterior::as_draws_array(drawn), fit$draws, info = format)
  }
  expect_identical(posterior::as_draws(fit), fit$draws)
})
