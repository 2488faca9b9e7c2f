# update(fit, prior = ): weights against fits that are sampled with the new prior, and known posteriors.

y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
rel <- as_release(c("y=yes" = 13.4), y, mech_laplace(scale = 2), n = 40)

test_that("weighted draws have the posterior with the new prior", {
  skip_on_cran()
  fit <- sample_posterior(rel, model_bernoulli(), iter = 1800, seed = 1)
  expect_message(new <- update(fit, prior = prior_beta(6, 6), seed = 2), class = "noiseaware_message_weighted")
  # by the sum over all totals and a quadrature
  p <- seq(0.0005, 0.9995, by = 0.001)
  density <- dbeta(p, 6, 6) * sum_of_totals(p, 40, function(s) -abs(13.4 - s) / 2)
  density <- density / sum(density)
  mean <- sum(p * density)
  draws <- posterior::extract_variable_matrix(new$draws, "prob[yes]")
  expect_lt(abs(mean(draws) - mean) / posterior::mcse_mean(draws), 5)
  expect_lt(abs(sd(draws) - sqrt(sum(p^2 * density) - mean^2)) / posterior::mcse_sd(draws), 5)
  expect_gt(abs(coef(fit) - mean) / posterior::mcse_mean(draws), 5)
  # everything that goes along with a draw does so
  totals <- denoise(new)
  expect_identical(posterior::ndraws(totals), posterior::ndraws(new))
  key <- function(fit) paste(as.matrix(fit)[, 1], posterior::as_draws_matrix(denoise(fit))[, 1])
  expect_true(all(key(new) %in% key(fit)))
  # p(s | z), the probability summed out
  s <- 0:40
  weight <- exp(lbeta(s + 6, 46 - s) + lchoose(40, s) - abs(13.4 - s) / 2)
  own <- posterior::extract_variable_matrix(totals, posterior::variables(totals)[1])
  expect_lt(abs(mean(own) - sum(s * weight) / sum(weight)) / posterior::mcse_mean(own), 5)
})

test_that("a regression: weights and sampling agree, and all that a fit does works", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(0, 6500), age = c(0, 60)))
  set.seed(1)
  release <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 5))
  fit <- sample_posterior(release, model_lm(), method = "collapse", seed = 1)
  prior <- prior_nig(c(2500, 0), diag(c(0.1, 0.1)), 3, 3 * 700^2)
  expect_message(new <- update(fit, prior = prior, seed = 3), class = "noiseaware_message_weighted")
  sampled <- sample_posterior(release, model_lm(prior = prior), method = "collapse", seed = 4)
  expect_same_draws <- function(a, b) {
    for (v in posterior::variables(a)) {
      x <- posterior::extract_variable_matrix(a$draws, v)
      z <- posterior::extract_variable_matrix(b$draws, v)
      expect_lt(abs(mean(x) - mean(z)) / sqrt(posterior::mcse_mean(x)^2 + posterior::mcse_mean(z)^2), 5, label = v)
      expect_lt(abs(sd(x) - sd(z)) / sqrt(posterior::mcse_sd(x)^2 + posterior::mcse_sd(z)^2), 5, label = v)
    }
  }
  expect_same_draws(new, sampled)
  expect_identical(dim(new$draws), dim(fit$draws))
  expect_output(print(new), "weights    resampled for another prior: .* of 4,000 draws effective")
  expect_identical(names(coef(new)), names(coef(fit)))
  expect_length(predict(new, data.frame(age = 25:30)), 6L)
  expect_identical(new$asked$model, model_lm(prior = prior))
  expect_identical(update(fit, prior = prior, seed = 3), new)
  # what would go on with the old prior
  expect_error(extend(new, 10), class = "noiseaware_error_argument")
  expect_message(again <- update(new, prior = prior_nig()), class = "noiseaware_message_sampled")
  expect_null(again$weighted)
  expect_message(update(fit, prior = prior, iter = 20), class = "noiseaware_message_sampled")
  # far away
  expect_message(far <- update(fit, prior = prior_nig(0, 1, 2, 2)), "effective|Pareto k")
  expect_null(far$weighted)
  expect_identical(far$draws, sample_posterior(release, model_lm(prior = prior_nig(0, 1, 2, 2)), method = "collapse", seed = 1)$draws)
  expect_message(log_evidence(new, draws = 400, seed = 1), class = "noiseaware_message_evidence")
})

test_that("weights and Pareto k are those of package loo", {
  skip_if_not_installed("loo")
  set.seed(1)
  for (heavy in c(0.3, 1, 2)) {
    ratio <- heavy * rexp(2000)
    got <- internal("smooth_weights")(ratio)
    loo <- suppressWarnings(loo::psis(ratio, r_eff = NA))
    expect_equal(got$k, unname(loo$diagnostics$pareto_k))
    expect_equal(got$weight, unname(as.vector(weights(loo, log = FALSE))))
  }
})

test_that("weights that are no good are seen: few effective draws, and a heavy tail", {
  fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 2000, seed = 1)
  expect_message(update(fit, prior = prior_beta(300, 1)), class = "noiseaware_message_sampled")
  # a tail of index 1 / 2: finite mean, no variance
  set.seed(2)
  expect_gt(internal("smooth_weights")(-log(runif(4000)))$k, 0.7)
  expect_lt(internal("smooth_weights")(0.3 * -log(runif(4000)))$k, 0.6)
})

test_that("few draws have a lower limit of Pareto k, even where a good share of them is effective", {
  # none of 40, hardly any noise: p near 0, where the ratio p^(-1/2) of the priors is heavy
  none <- as_release(c("y=yes" = 0), y, mech_laplace(scale = 0.1), n = 40)
  few <- function(seed) sample_posterior(none, model_bernoulli(), chains = 2, iter = 100, seed = seed)
  # k of 0.62 and 54 effective draws of 100, whose limits are 1 - 1 / log10(100) and 20
  expect_message(update(few(10), prior = prior_beta(0.5, 1)), "Pareto k is 0.62, above 0.5", class = "noiseaware_message_sampled")
  expect_message(update(few(2), prior = prior_beta(0.5, 1)), "Pareto k 0.36", class = "noiseaware_message_weighted")
})

test_that("every model with an argument `prior` takes another, and keeps the rest", {
  changed <- function(model, prior) internal("with_prior")(model, prior, NULL)
  expect_identical(changed(model_bernoulli("y"), prior_beta(2, 3)), model_bernoulli("y", prior_beta(2, 3)))
  expect_identical(changed(model_poisson("y"), prior_gamma(2, 3)), model_poisson("y", prior_gamma(2, 3)))
  expect_identical(changed(model_exponential("y"), prior_gamma(2, 3)), model_exponential("y", prior_gamma(2, 3)))
  expect_identical(changed(model_normal("y"), prior_nig(1, 2, 3, 4)), model_normal("y", prior_nig(1, 2, 3, 4)))
  expect_identical(changed(model_categorical("y"), prior_dirichlet(2)), model_categorical("y", prior_dirichlet(2)))
  expect_identical(changed(model_table(~ a:b + b:c), prior_dirichlet(2)), model_table(~ a:b + b:c, prior_dirichlet(2)))
  expect_identical(changed(model_naive_bayes("y", conditional = prior_dirichlet(3)), prior_dirichlet(2)),
                   model_naive_bayes("y", prior = prior_dirichlet(2), conditional = prior_dirichlet(3)))
  expect_identical(changed(model_mvnormal(c("a", "b")), prior_niw(1, 2)), model_mvnormal(c("a", "b"), prior_niw(1, 2)))
  expect_identical(changed(model_logistic(y ~ x), prior_normal(0, 2)), model_logistic(y ~ x, prior = prior_normal(0, 2)))
  normal <- model_lm(y ~ x, prior = prior_normal(0, 2), sigma = prior_half_t(3, 2))
  expect_identical(changed(normal, prior_normal(0, 5)), model_lm(y ~ x, prior = prior_normal(0, 5), sigma = prior_half_t(3, 2)))
  expect_identical(changed(normal, prior_nig()), model_lm(y ~ x, prior_nig()))
  expect_identical(changed(model_lm(y ~ x, sigma = fixed(2)), prior_normal(0, 5)), model_lm(y ~ x, prior = prior_normal(0, 5), sigma = fixed(2)))
  own <- model_custom(function() c(p = rbeta(1, 1, 1)), function(theta, n) cbind(y = rbinom(n, 1, theta)),
                      function(records, theta) c(p = rbeta(1, 1 + sum(records), 1 + sum(1 - records))), "y")
  expect_error(internal("with_prior")(own, prior_beta(), NULL), class = "noiseaware_error_argument")
})

test_that("update() refuses what makes no sense with another prior", {
  fit <- sample_posterior(rel, model_bernoulli(), chains = 1, iter = 40, seed = 1)
  expect_error(update(fit, prior = prior_gamma()), class = "noiseaware_error_prior")
  expect_error(update(fit, prior = prior_beta(2, 2), model = model_bernoulli()), class = "noiseaware_error_argument")
  expect_error(update(fit, prior = prior_beta(2, 2), add = rel), class = "noiseaware_error_argument")
  # sites, baselines and unknown numbers of records
  sites <- list(a = rel, b = as_release(c("y=yes" = 3.1), y, mech_laplace(scale = 2), n = 20))
  pooled <- sample_posterior(sites, model_bernoulli(), pool = "complete", chains = 1, iter = 40, seed = 1)
  expect_message(new <- update(pooled, prior = prior_beta(2, 2)), class = "noiseaware_message_sampled")
  expect_s3_class(new, "noiseaware_pool")
  naive <- sample_posterior(rel, model_bernoulli(), method = "naive", iter = 40, seed = 1)
  expect_message(update(naive, prior = prior_beta(2, 2)), class = "noiseaware_message_sampled")
  open <- sample_posterior(as_release(c(13.4, 27.2), y, mech_laplace(scale = 2), n = NULL), model_bernoulli(), chains = 2, iter = 600, seed = 1)
  expect_message(new <- update(open, prior = prior_beta(2, 2)), class = "noiseaware_message_weighted")
  expect_identical(posterior::variables(new), c("prob[yes]", "n"))
})

test_that("the limit of Pareto k is 0.7, and lower for fewer than 2,155 draws", {
  expect_equal(vapply(c(100, 1000, 2000), internal("pareto_limit"), 0), c(1 / 2, 2 / 3, 1 - 1 / log10(2000)))
  expect_identical(vapply(c(2200, 1e4, 1e6), internal("pareto_limit"), 0), rep(0.7, 3))
})

test_that("warnings of an update show the names of its arguments, not a release", {
  st <- stat_counts(~ y, list(y = c("no", "yes")))
  fit <- sample_posterior(as_release(c(20, 30), st, mech_laplace(scale = 2), n = 50), model_bernoulli(), chains = 2, iter = 400, seed = 1)
  warned <- tryCatch(told(update(fit, iter = 10)), noiseaware_warning_convergence = identity)
  expect_identical(as.list(warned$call)[c("release", "iter")], list(release = quote(release), iter = quote(iter)))
})
