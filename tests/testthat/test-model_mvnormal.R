# The multivariate normal model; its parts are the same as a regression's
# covariates, tested there.

mv_sums <- function(lower = -2, upper = 2) {
  stat_sums(~ x + z + I(x^2) + I(x * z) + I(z^2), list(x = c(lower, upper), z = c(lower, upper)), rescale = FALSE)
}
mv_bind <- function(model, statistic = mv_sums()) internal("bind_model")(model, statistic)
mv_prior <- function(bound, draws, seed = 1) {
  theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(29, seed)), as.integer(draws))$theta
  list(theta = theta, natural = internal("reported")(bound, theta))
}
mv_models <- list(
  both = model_mvnormal(prior = prior_niw(c(0.5, -1), 2, matrix(c(2, 0.5, 0.5, 1), 2), 6)),
  mean = model_mvnormal(prior = list(mean = prior_niw(0.5, 2), cov = fixed(matrix(c(2, 0.5, 0.5, 1), 2)))),
  cov = model_mvnormal(prior = list(mean = fixed(c(1, 0)), cov = prior_niw(scale = 2, df = 5)))
)

test_that("draws are reported by name, and bound_theta inverts them", {
  expect_identical(mv_bind(mv_models$both)$parameters, c("mean[x]", "mean[z]", "cov[x,x]", "cov[z,x]", "cov[z,z]"))
  expect_identical(mv_bind(model_mvnormal(c("z", "x")))$parameters[1:2], c("mean[z]", "mean[x]"))
  for (model in mv_models) {
    bound <- mv_bind(model)
    prior <- mv_prior(bound, 5)
    expect_identical(nrow(prior$theta[bound$moves, ]), length(bound$parameters))
    for (i in 1:5) expect_equal(internal("bound_theta")(bound, prior$natural[i, ]), prior$theta[, i], tolerance = 1e-8)
  }
})

test_that("records follow the model and keep their innovations in a move", {
  bound <- mv_bind(mv_models$both)
  prior <- mv_prior(bound, 2, seed = 3)
  records <- .Call(internal("ffi_model_records"), bound$spec, prior$theta[, 1], 50000L, internal("new_stream")(c(1, 2)))$records
  white <- function(x, i) {
    v <- prior$natural[i, ]
    t(solve(t(chol(matrix(v[c(3, 4, 4, 5)], 2))), t(x) - v[1:2]))
  }
  u <- white(records, 1)
  for (j in 1:2) expect_gt(ks.test(u[, j], "pnorm")$p.value, 1e-6)
  expect_lt(abs(cor(u)[1, 2]), 5 / sqrt(50000))
  moved <- .Call(internal("ffi_model_move"), bound$spec, prior$theta[, 1], prior$theta[, 2], records, internal("new_stream")(c(1, 3)))
  expect_equal(white(moved, 2), u, tolerance = 1e-8)
})

test_that("given the records it is the conjugate posterior", {
  set.seed(4)
  data <- data.frame(x = rnorm(9, 1), z = rnorm(9, -1, 2))
  fit <- nonprivate_posterior(data, mv_models$both, mv_sums(), chains = 2, iter = 7200, warmup = 10, seed = 1)
  kappa <- 2 + 9
  m0 <- c(0.5, -1)
  mean_n <- (2 * m0 + colSums(data)) / kappa
  psi <- matrix(c(2, 0.5, 0.5, 1), 2) + crossprod(scale(data, scale = FALSE)) + 2 * 9 / kappa * tcrossprod(colMeans(data) - m0)
  for (j in 1:2) {
    t_sd <- sqrt(psi[j, j] / (kappa * (6 + 9 - 1)))
    draws <- parameter_draws(fit, paste0("mean[", c("x", "z")[j], "]"))
    expect_gt(ks.test((draws - mean_n[j]) / t_sd, "pt", df = 6 + 9 - 1)$p.value, 1e-6)
  }
  expect_same_mean(parameter_draws(fit, "cov[z,x]"), psi[1, 2] / (6 + 9 - 3))
})

test_that("totals with Gaussian noise and wide bounds: closed form of the mean", {
  skip_on_cran() # takes long; `make test` runs it
  cov <- matrix(c(2, 0.5, 0.5, 1), 2)
  st <- stat_sums(~ x + z, list(x = c(-60, 60), z = c(-60, 60)), rescale = FALSE)
  rel <- as_release(c(31, -12), st, mech_gaussian(sd = c(6, 9)), 25)
  # mean ~ N(0.5, cov / 2), z | mean ~ N(25 mean, 25 cov + Omega)
  prior <- solve(cov / 2)
  noise <- solve(25 * cov + diag(c(36, 81)))
  variance <- solve(prior + 25^2 * noise)
  centre <- drop(variance %*% (prior %*% c(0.5, 0.5) + 25 * noise %*% c(31, -12)))
  for (passes in list(0, NULL)) {
    fit <- sample_posterior(rel, mv_models$mean, chains = 2, iter = 4400, warmup = 600, seed = 1, control = list(passes = passes))
    for (j in 1:2) {
      draws <- parameter_draws(fit, fit$bound$parameters[j])
      expect_distribution(draws, function(p) qnorm(p, centre[j], sqrt(variance[j, j])), centre[j])
    }
    expect_same_mean((parameter_draws(fit, "mean[x]") - centre[1]) * (parameter_draws(fit, "mean[z]") - centre[2]), variance[1, 2])
  }
})

test_that("two records and bounds that bind: weighted prior draws", {
  skip_on_cran() # takes long; `make test` runs it
  st <- mv_sums(-1, 1.5)
  rel <- as_release(c(0.4, -0.9, 1.2, -0.2, 1.6), st, mech_laplace(scale = 0.6), 2)
  for (name in c("both", "cov")) {
    bound <- mv_bind(mv_models[[name]], st)
    nat <- mv_prior(bound, 1.5e5, seed = 6)$natural
    set.seed(7)
    v <- function(parameter, otherwise) if (parameter %in% colnames(nat)) nat[, parameter] else otherwise
    l <- sqrt(nat[, "cov[x,x]"])
    s <- 0
    for (i in 1:2) {
      u <- rnorm(1.5e5)
      x <- v("mean[x]", 1) + l * u
      z <- v("mean[z]", 0) + nat[, "cov[z,x]"] / l * u + sqrt(nat[, "cov[z,z]"] - nat[, "cov[z,x]"]^2 / l^2) * rnorm(1.5e5)
      x <- pmin(pmax(x, -1), 1.5)
      z <- pmin(pmax(z, -1), 1.5)
      s <- s + cbind(x, z, x^2, x * z, z^2)
    }
    weight <- exp(log_noise("absolute", rep(0.6, 5), unname(rel$value), s))
    fits <- lapply(c(0, 2), function(passes) sample_posterior(rel, mv_models[[name]], chains = 2, iter = 5600, warmup = 600, seed = 1, control = list(passes = passes)))
    for (parameter in bound$parameters) {
      for (q in quantile(nat[, parameter], c(0.2, 0.5, 0.8))) {
        below <- nat[, parameter] <= q
        exact <- sum(weight * below) / sum(weight)
        error <- sqrt(sum(weight^2 * (below - exact)^2)) / sum(weight)
        for (fit in fits) expect_estimated_mean((parameter_draws(fit, parameter) <= q) + 0, exact, error)
      }
    }
  }
})

test_that("models print what they believe, and what cannot be is refused", {
  skip_on_cran()
  expect_identical(format(mv_models$cov)[2:3], c("  variables  the release's", "  mean       fixed at (1, 0)"))
  expect_identical(internal("describe_model")(mv_bind(model_mvnormal())), "multivariate normal model of x, z")
  prior <- function(code) expect_error(code, class = "noiseaware_error_prior")
  prior(model_mvnormal(prior = prior_nig()))
  prior(model_mvnormal(prior = fixed(list(mean = 0, cov = 1))))
  prior(mv_bind(model_mvnormal(prior = list(mean = fixed(1), cov = prior_niw()))))
  prior(mv_bind(model_mvnormal(prior = prior_niw(df = 1))))
  for (variables in list(1, "", c("x", "x"), character(), NA_character_)) {
    expect_error(model_mvnormal(variables), class = "noiseaware_error_argument")
  }
  misfit <- function(model, statistic) expect_error(mv_bind(model, statistic), class = "noiseaware_error_variables")
  misfit(model_mvnormal("x"), mv_sums())
  misfit(model_mvnormal(c("x", "w")), mv_sums())
  misfit(model_mvnormal(), stat_crossprod(y ~ g, list(y = c(0, 1), g = c("a", "b"))))
  misfit(model_mvnormal(), stat_counts(~ g, list(g = c("a", "b"))))
  values <- mv_prior(mv_bind(mv_models$both), 1)$natural[1, ]
  expect_error(internal("bound_theta")(mv_bind(mv_models$both), replace(values, "cov[z,x]", 100)), class = "noiseaware_error_argument")
})
