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

# ---- intervals ---------------------------------------------------------------------------

# Of S independent uniform draws the k-th in order is k / (S + 1) on average. Ends are linear in these, so that an interval of the averages
# is as wide as intervals are on average: what it should hold.
average_draws <- function(count) sample(seq_len(count) / (count + 1))

test_that("intervals of independent draws hold their probability on average, exactly", {
  set.seed(1)
  for (count in c(60, 300, 1001)) for (level in c(0.5, 0.8, 0.95)) {
    ends <- internal("draws_interval")(cbind(average_draws(count), average_draws(count)), level)
    expect_equal(ends, matrix((1 + c(-1, 1) * level) / 2, 2, 2), tolerance = 1e-12)
  }
})

test_that("so do those of calibrations, designs, fits and their prints", {
  sampler <- function(release, model) cbind(mean = average_draws(300))
  cal <- calibrate_known(sampler, replicates = 3, level = 0.9)
  expect_equal(cal$results$lower, rep(0.05, 3), tolerance = 1e-12)
  expect_equal(cal$results$upper, rep(0.95, 3), tolerance = 1e-12)
  plan <- design(known$model, known$statistic, mech_laplace, 3, 10, replicates = 3, method = sampler, level = 0.9, seed = 1)
  expect_equal(plan$width, 0.9, tolerance = 1e-12)
  rel <- as_release(c(30, 20), stat_counts(~ x, list(x = c("a", "b"))), mech_laplace(epsilon = 1), 50)
  fit <- sample_posterior(rel, model_categorical(), chains = 1, iter = 600, seed = 1)
  for (v in posterior::variables(fit$draws)) fit$draws[, , v] <- average_draws(300)
  expect_equal(unname(confint(fit, level = 0.9)), matrix(c(0.05, 0.95), 2, 2, byrow = TRUE), tolerance = 1e-12)
  expect_match(capture.output(print(fit)), "0.02500 0.9750", fixed = TRUE, all = FALSE)
})

test_that("a response has a uniform quantile among predictive draws of its distribution", {
  st <- stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(0, 1)))
  fit <- sample_posterior(simulate_release(data.frame(y = runif(20), x = runif(20)), st, mech_laplace(epsilon = 5)), model_lm(), chains = 1, iter = 600, seed = 1)
  fit$draws[, , "(Intercept)"] <- average_draws(300)
  fit$draws[, , c("x", "sigma")] <- 0
  # 95% of 301 ranks, 0 to 300, are all of 8 to 292, and 7 and 293 with probability 0.475 each
  held <- function(rank) coverage(fit, 0.95, newdata = data.frame(y = rep((rank + 0.5) / 301, 400), x = 0), seed = 1)$coverage
  expect_identical(vapply(c(6, 8, 292, 294), held, 0), c(0, 1, 1, 0))
  for (rank in c(7, 293)) expect_lt(abs(held(rank) - 0.475), 5 * sqrt(0.475 * 0.525 / 400))
})
