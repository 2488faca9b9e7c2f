# Objects of dapper::new_privacy(), made by hand: the class and its functions.

normal_object <- function(n = 12, scale = 1.5, ...) {
  parts <- list(
    posterior_f = function(dmat, theta) {
      precision <- 1 / 4 + nrow(dmat)
      rnorm(1, (0.5 / 4 + sum(dmat[, "y"])) / precision, 1 / sqrt(precision))
    },
    latent_f = function(theta) cbind(y = rnorm(n, theta, 1)),
    mechanism_f = function(sdp, sx) sum(-abs(sdp - sx)) / scale,
    statistic_f = function(xi, sdp, i) min(max(xi, -2), 3),
    npar = 1, varnames = "mu")
  structure(utils::modifyList(parts, list(...)), class = "privacy")
}

test_that("its functions give the posterior of the built-in parts", {
  skip_on_cran() # takes long; `make test` runs it
  model <- as_model(normal_object(), sdp = 9, init_par = 0)
  expect_output(print(model), "dapper.*records +12")
  fit <- sample_posterior(model$release, model, chains = 2, iter = 1700, warmup = 500, seed = 1)
  st <- stat_sums(~ y, bounds = list(y = c(-2, 3)))
  built_in <- model_normal(prior = list(mean = prior_normal(0.5, 2), sd = fixed(1)))
  reference <- sample_posterior(as_release(9, st, mech_laplace(scale = 1.5), n = 12), built_in, chains = 2, iter = 7700, warmup = 600, seed = 2)
  expect_agreement(parameter_draws(fit, "mu"), parameter_draws(reference, "mean"))
  # and it continues, seeds fix it
  run <- function(iter) sample_posterior(model$release, model, chains = 1, iter = iter, warmup = 20, seed = 3)
  expect_identical(extend(run(40), 20)$draws, run(60)$draws)
})

test_that("a matrix of one noisy value a record, names, and the first versions' functions", {
  skip_on_cran() # takes long; `make test` runs it
  z <- matrix(c(1.2, -0.3, 2.2, 0.4, 1.9), dimnames = list(NULL, "y"))
  local_object <- normal_object(
    n = 5, varnames = NULL,
    latent_f = function(theta) cbind(y = rnorm(5, theta[["centre"]], 1)),
    statistic_f = function(xi, sdp, i) {
      out <- 0 * sdp
      out[i, "y"] <- min(max(xi[["y"]], -2), 3)
      out
    },
    mechanism_f = function(sdp, sx) -sum(abs(sdp[, "y"] - sx[, "y"])) / 1.5)
  model <- as_model(local_object, sdp = z, init_par = c(centre = 0))
  fit <- sample_posterior(model$release, model, chains = 2, iter = 1700, warmup = 500, seed = 1)
  st <- stat_records(~ y, bounds = list(y = c(-2, 3)))
  built_in <- model_normal(prior = list(mean = prior_normal(0.5, 2), sd = fixed(1)))
  reference <- sample_posterior(as_release(as.vector(z), st, mech_laplace(scale = 1.5), n = 5), built_in, chains = 2, iter = 7700, warmup = 600, seed = 2)
  expect_agreement(parameter_draws(fit, "centre"), parameter_draws(reference, "mean"), spread = FALSE)

  new <- normal_object()
  old <- structure(list(post_f = new$posterior_f, latent_f = new$latent_f, priv_f = function(sdp, tx) new$mechanism_f(sdp, tx),
                        st_f = function(i, xi, sdp) new$statistic_f(xi, sdp, i), npar = 1, varnames = "mu"), class = "privacy")
  draws <- lapply(list(new, old), function(object) {
    model <- as_model(object, sdp = 9, init_par = 0)
    sample_posterior(model$release, model, chains = 1, iter = 30, seed = 3)$draws
  })
  expect_identical(draws[[1]], draws[[2]])
})

test_that("what is wrong is refused with the function's name", {
  refused <- function(..., pattern) expect_error(as_model(normal_object(...), sdp = 9, init_par = 0), pattern, class = "noiseaware_error_custom")
  refused(statistic_f = 1, pattern = "statistic_f")
  refused(latent_f = function(theta) rnorm(12), pattern = "latent_f")
  refused(latent_f = function(theta) stop("no such luck"), pattern = "latent_f")
  refused(statistic_f = function(xi, sdp, i) c(1, 2), pattern = "statistic_f")
  run <- function(...) {
    model <- as_model(normal_object(...), sdp = 9, init_par = 0)
    sample_posterior(model$release, model, chains = 1, iter = 10)
  }
  expect_error(run(posterior_f = function(dmat, theta) c(1, 2)), class = "noiseaware_error_custom")
  expect_error(run(posterior_f = function(dmat, theta) "a"), class = "noiseaware_error_custom")
  expect_error(run(mechanism_f = function(sdp, sx) c(1, 2)), class = "noiseaware_error_custom")
  expect_error(run(mechanism_f = function(sdp, sx) NA_real_), class = "noiseaware_error_custom")
  expect_error(as_model(normal_object(), init_par = 0), class = "noiseaware_error_argument")
  expect_error(as_model(normal_object(), sdp = "a", init_par = 0), class = "noiseaware_error_argument")
  expect_error(as_model(normal_object(), sdp = 9), class = "noiseaware_error_argument")
  expect_error(as_model(normal_object(), sdp = 9, init_par = c(1, 2)), class = "noiseaware_error_argument")
  expect_error(as_model(1), class = "noiseaware_error_argument")
  model <- as_model(normal_object(), sdp = 9, init_par = 0)
  expect_identical(as_model(model), model)
  # the number of records is that of latent_f
  other <- as_release(9, model$release$statistic, model$release$mechanism, n = 13)
  expect_error(sample_posterior(other, model, chains = 1, iter = 10), class = "noiseaware_error_custom")
})
