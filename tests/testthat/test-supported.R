skip_on_cran() # takes long; `make test` runs it

# The table of combinations is true: what it lists runs, what it leaves out is
# refused with a classed error.

number_statistics <- list(
  crossprod = stat_crossprod(x ~ 1, bounds = list(x = c(0, 1))),
  moments4 = stat_moments4(~ x, bounds = list(x = c(0, 1))),
  sums = stat_sums(~ x + I(x^2), bounds = list(x = c(0, 1))),
  records = stat_records(~ x, bounds = list(x = c(0, 1))),
  custom = stat_custom(function(r) pmin(pmax(r[, "x"], 0), 1), "x", 1, list(x = c(0, 1))),
  objective = stat_objective(x ~ 1, bounds = list(x = c(0, 1)))
)
# a total that another one beside it would spoil
alone_statistics <- list(sums = stat_sums(~ x, bounds = list(x = c(0, 1))))
code_statistics <- list(
  counts = stat_counts(~ x, levels = list(x = c("a", "b"))),
  records = stat_records(~ x, levels = list(x = c("a", "b")))
)
mechanisms <- list(
  laplace = mech_laplace(epsilon = 1), gaussian = mech_gaussian(mu = 1), discrete_laplace = mech_discrete_laplace(epsilon = 1),
  discrete_gaussian = mech_discrete_gaussian(rho = 0.5), randomized_response = mech_randomized_response(epsilon = 1),
  custom = mech_custom(function(noise) -rowSums(abs(noise))), objective = mech_objective(epsilon = 1)
)
models <- list(
  lm = model_lm(x ~ 1), logistic = model_logistic(x ~ 1), mvnormal = model_mvnormal(), bernoulli = model_bernoulli(), categorical = model_categorical(), poisson = model_poisson(),
  exponential = model_exponential(), normal = model_normal(),
  expfam = model_expfam(function(x, theta) -(x - theta)^2 / 2, function(x) x, function() c(mu = 1), function(theta) 0,
                        function(total, n) c(mu = total / n), function(theta, n) rep(0.5, n)),
  custom = model_custom(function() c(mu = 1), function(theta, n) cbind(x = stats::rbinom(n, 1, 0.5)), function(records, theta) theta, "x")
)

runs <- function(model, statistic, mechanism, method) {
  tryCatch({
    rel <- as_release(rep(1, sum(internal("value_size")(statistic, 3))), statistic, mechanism, 3)
    sample_posterior(rel, model, method = method, chains = 1, iter = 4, warmup = 2)
    TRUE
  }, noiseaware_error = function(e) FALSE)
}

test_that("supported() says what runs", {
  table <- supported()
  expect_named(table, c("model", "statistic", "mechanism", "method", "exact"))
  expect_false(anyDuplicated(table) > 0)
  listed <- do.call(paste, table[c("model", "statistic", "mechanism", "method")])
  # the naive Bayes model needs two variables: it has tests of its own
  for (model in names(models)) for (mechanism in names(mechanisms)) for (method in c("augment", "collapse", "clt", "naive")) {
    for (statistic in c("crossprod", "moments4", "sums", "counts", "records", "custom", "objective")) {
      candidates <- list(number_statistics[[statistic]], code_statistics[[statistic]], alone_statistics[[statistic]])
      candidates <- candidates[!vapply(candidates, is.null, TRUE)]
      ran <- any(vapply(candidates, function(st) runs(models[[model]], st, mechanisms[[mechanism]], method), TRUE))
      expect_identical(ran, paste(model, statistic, mechanism, method) %in% listed,
                       info = paste(model, statistic, mechanism, method))
    }
  }
})
