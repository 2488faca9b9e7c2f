# Users' own models in R.

custom_mean <- function(move = TRUE, ...) {
  model_custom(
    r_prior = function() c(mu = rnorm(1, 0.5, 2)),
    r_records = function(theta, n) cbind(y = rnorm(n, theta["mu"], 1.5)),
    r_theta = function(records, theta) {
      precision <- 1 / 4 + nrow(records) / 1.5^2
      c(mu = rnorm(1, (0.5 / 4 + sum(records[, "y"]) / 1.5^2) / precision, 1 / sqrt(precision)))
    },
    variables = "y",
    move = if (move) function(theta, theta_new, records) records + (theta_new["mu"] - theta["mu"]),
    log_prior = if (move) function(theta) dnorm(theta["mu"], 0.5, 2, log = TRUE), ...)
}

test_that("a model in R has the distribution of the built-in one", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ 1, bounds = list(y = c(-2, 3)))
  built_in <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5))
  set.seed(3)
  rel <- simulate_release(built_in, st, mech_laplace(scale = 0.4), n = 300)
  reference <- sample_posterior(rel, built_in, chains = 2, iter = 7200, seed = 1)
  exact <- parameter_draws(reference, "(Intercept)")
  for (move in c(TRUE, FALSE)) {
    fit <- sample_posterior(rel, custom_mean(move), chains = 2, iter = if (move) 3000 else 12000, seed = 2)
    got <- parameter_draws(fit, "mu")
    error <- sqrt(posterior::mcse_mean(got)^2 + posterior::mcse_mean(exact)^2)
    expect_lt(abs(mean(got) - mean(exact)) / error, 5)
    expect_lt(abs(sd(got) / sd(exact) - 1), 0.15)
  }
  expect_output(print(fit), "the model has no move, mixing may be slow")
})

test_that("seed fixes a custom model's draws, extend continues them, the user's generator is left alone", {
  st <- stat_crossprod(y ~ 1, bounds = list(y = c(-2, 3)))
  rel <- as_release(c(1, 2), st, mech_laplace(scale = 0.4), n = 10)
  run <- function(iter = 60) sample_posterior(rel, custom_mean(), chains = 2, iter = iter, warmup = 20, seed = 5)
  set.seed(1)
  before <- .Random.seed
  a <- run()
  expect_identical(.Random.seed, before)
  runif(3)
  expect_identical(run()$draws, a$draws)
  expect_identical(extend(a, 40)$draws, run(100)$draws)
  # no replayed numbers: every draw differs
  expect_identical(anyDuplicated(as.numeric(a$draws[, 1, ])), 0L)
  expect_false(identical(a$draws[, 1, ], a$draws[, 2, ]))
  expect_output(print(a), "custom model")
})

test_that("an interrupt inside a user's function undoes what was begun: the chain goes on as if there had been none", {
  skip_on_cran()
  st <- stat_crossprod(y ~ 1, bounds = list(y = c(-2, 3)))
  rel <- as_release(c(1, 2), st, mech_laplace(scale = 0.4), n = 10)
  # the model, and how often its function `name` was called; the `stop_at`-th call is interrupted
  run <- function(name, stop_at = Inf) {
    count <- new.env() # a variable itself would be copied
    count$calls <- 0
    functions <- custom_mean()$functions
    true <- functions[[name]]
    functions[[name]] <- function(...) {
      value <- true(...) # the generator has gone on
      count$calls <- count$calls + 1
      if (count$calls == stop_at) rlang::interrupt()
      value
    }
    model <- do.call(model_custom, c(functions, variables = "y"))
    fit <- sample_posterior(rel, model, chains = 1, iter = 400, warmup = 20, seed = 5, control = list(passes = 2))
    list(fit = fit, calls = count$calls)
  }
  for (name in c("r_records", "r_theta", "move", "log_prior")) {
    whole <- run(name)
    expect_warning(part <- run(name, round(0.95 * whole$calls))$fit, class = "noiseaware_warning_interrupted")
    kept <- posterior::ndraws(part$draws)
    expect_lt(kept, 380)
    expect_identical(extend(part, 380 - kept)$draws, whole$fit$draws)
  }
})

test_that("what a function returns is checked before a run, its errors are shown", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ 1, bounds = list(y = c(-2, 3)))
  rel <- as_release(c(1, 2), st, mech_laplace(scale = 0.4), n = 10)
  broken <- function(...) {
    parts <- utils::modifyList(custom_mean()$functions, list(...))
    sample_posterior(rel, do.call(model_custom, c(parts, variables = "y")), chains = 1, iter = 10)
  }
  show(refusals("custom", alist(
    broken(r_prior = function() 1),
    broken(r_prior = function() c(mu = NA_real_)),
    broken(r_records = function(theta, n) rnorm(n + 1)),
    broken(r_records = function(theta, n) rep("a", n)),
    broken(r_theta = function(records, theta) c(a = 1, b = 2)),
    broken(r_theta = function(records, theta) c(b = 1)),
    broken(r_records = function(theta, n) cbind(z = rnorm(n))),
    broken(r_theta = function(records, theta) stop("no such luck")),
    broken(log_prior = function(theta) NA),
    broken(move = function(theta) 1)
  )))
  for (bad in list(list(r_prior = function() 1), list(r_theta = function(records, theta) stop("x")),
                   list(r_records = function(theta, n) matrix(NA_real_, n, 1)))) {
    expect_error(do.call(broken, bad), class = "noiseaware_error_custom")
  }
  # an error in the midst of a run
  calls <- 0
  failing <- function(records, theta) {
    calls <<- calls + 1
    if (calls > 5) stop("late trouble")
    theta
  }
  set.seed(4)
  before <- .Random.seed
  error <- tryCatch(broken(r_theta = failing), error = identity)
  expect_match(conditionMessage(error$parent %||% error), "late trouble")
  # and a value that is no parameter
  calls <- 0
  expect_error(broken(r_theta = function(records, theta) if ((calls <<- calls + 1) > 5) theta * NA else theta), "r_theta", class = "noiseaware_error_custom")
  expect_error(model_custom(1, 2, 3, "y"), class = "noiseaware_error_custom")
  expect_error(sample_posterior(rel, model_custom(function() c(a = 1), function(t, n) n, function(r, t) t, "z")),
               class = "noiseaware_error_variables")
})
