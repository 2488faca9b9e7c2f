# Evidence under the normal distribution of the statistic: against the evidence under the totals' own distribution where
# records are many, against quadrature, and against records that are drawn from the prior.

clt_evidence <- function(release, model, ..., draws = 3000) {
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, method = "clt", chains = 2, iter = 700, seed = 1, ...)))
  log_evidence(fit, draws = draws, seed = 1)
}

# log of the mean density of Laplace noise at totals, a row each, and its error
mean_noise <- function(totals, release, scale) {
  log_density <- -colSums(abs(t(totals) - release$value)) / scale - ncol(totals) * log(2 * scale)
  weight <- exp(log_density - max(log_density))
  list(value = max(log_density) + log(mean(weight)), error = sd(weight) / mean(weight) / sqrt(length(weight)))
}

test_that("400 normal records: as the totals' own distribution has it", {
  skip_on_cran() # takes long; `make test` runs it
  squares <- stat_sums(~ x + I(x^2), bounds = list(x = c(-50, 50)), rescale = FALSE)
  priors <- list(prior_nig(0, 1 / 4, 2, 6), list(mean = prior_normal(0, 2), sd = prior_inverse_gamma(2, 6)), list(mean = fixed(0.3), sd = prior_inverse_gamma(2, 6)))
  for (noise in list(mech_laplace(scale = 40), mech_gaussian(sd = 40))) {
    release <- as_release(c(123, 3075), squares, noise, n = 400)
    for (prior in priors[if (noise$kernel == "absolute") 1:3 else 1]) {
      exact <- sample_posterior(release, model_normal(prior = prior), method = "collapse", chains = 2, iter = 800, seed = 1) |> suppressWarnings() |> log_evidence(draws = 2000, seed = 2)
      got <- clt_evidence(release, model_normal(prior = prior))
      expect_match(attr(got, "note"), "approximate")
      expect_lt(attr(got, "error"), 0.03)
      expect_lt(abs(as.numeric(got) - as.numeric(exact)), 0.02 + 4.5 * sqrt(attr(got, "error")^2 + attr(exact, "error")^2))
    }
  }
})

test_that("regressions by every sampler: as the totals' own distribution has it", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-40, 40), x = c(-30, 30)), rescale = FALSE)
  release <- as_release(c(y = 160, x = 90, "y^2" = 1090, "y:x" = 660, "x^2" = 1230), st, mech_laplace(scale = 25), n = 300)
  niw <- prior_niw(0.2, 2, 6, 6)
  models <- list(model_lm(prior = prior_nig(c(0.3, 0.5), c(1, 2), 4, 12), covariates = niw),
                 model_lm(prior = prior_normal(c(0.2, 0.4), c(1, 0.8)), sigma = prior_half_normal(2), covariates = niw),
                 model_lm(prior = prior_student_t(3, c(0.2, 0.4), c(1, 0.8)), sigma = prior_exponential(1), covariates = fixed(list(mean = 0.3, cov = matrix(4)))),
                 model_lm(prior = prior_normal(c(0.2, 0.4), c(1, 0.8)), sigma = prior_lognormal(0.4, 0.6), covariates = niw))
  samplers <- c("noncentred", "nuts", "marginal", "noncentred")
  for (k in seq_along(models)) {
    totals <- clt_evidence(release, models[[k]])
    # not approximate; that chains are seen to move slowly is chance here
    expect_identical(grep("^rough: ", attr(totals, "note"), value = TRUE, invert = TRUE), character())
    got <- clt_evidence(release, models[[k]], control = list(sampler = samplers[k]))
    # what the normal distribution is off by with 300 records
    expect_lt(abs(as.numeric(got) - as.numeric(totals)), 0.06 + 4.5 * sqrt(attr(got, "error")^2 + attr(totals, "error")^2))
  }
})

test_that("exponential records: quadrature over the rate and the total", {
  skip_on_cran()
  release <- as_release(810, stat_sums(~ x, bounds = list(x = c(0, 1e4))), mech_laplace(scale = 20), n = 400)
  total <- seq(400, 1400, length.out = 2001)
  log_total <- 399 * log(total) - lgamma(400) + 3 * log(2) - lgamma(3) + lgamma(403) - 403 * log(2 + total)
  want <- log(0.5 * sum(exp(log_total - abs(810 - total) / 20) / 40))
  got <- clt_evidence(release, model_exponential(prior = prior_gamma(3, 2)))
  expect_lt(abs(as.numeric(got) - want), 0.02 + 4.5 * attr(got, "error"))
})

test_that("a regression on a factor, and a logistic one: records from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  draws <- 2e4
  n <- 100
  set.seed(1)
  factors <- stat_crossprod(y ~ g, bounds = list(y = c(-30, 30), g = c("a", "b")), rescale = FALSE)
  release <- as_release(setNames(c(30, 45, 260, 25), factors$components), factors, mech_laplace(scale = 15), n = n)
  sigma <- sqrt(12 / rgamma(draws, 6))
  intercept <- 0.2 + sigma * rnorm(draws)
  slope <- 0.3 + sigma / sqrt(2) * rnorm(draws)
  g <- matrix(runif(n * draws), draws) < rbeta(draws, 3, 3)
  y <- intercept + slope * g + sigma * matrix(rnorm(n * draws), draws)
  want <- mean_noise(cbind(rowSums(y), rowSums(g), rowSums(y^2), rowSums(y * g)), release, 15)
  got <- clt_evidence(release, model_lm(prior = prior_nig(c(0.2, 0.3), c(1, 2), 6, 12), levels = prior_dirichlet(3)))
  expect_lt(abs(as.numeric(got) - want$value), 0.05 + 4.5 * sqrt(attr(got, "error")^2 + want$error^2))

  binary <- stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(-20, 20)), rescale = FALSE)
  release <- as_release(setNames(c(55, 20, 40, 130), setdiff(binary$components, "y^2")), binary, mech_laplace(scale = 10), n = n)
  x <- 0.1 + sqrt(1.5) * matrix(rnorm(n * draws), draws)
  y <- matrix(runif(n * draws), draws) < plogis(0.2 + 0.5 * rnorm(draws) + (0.4 + 0.8 * rnorm(draws)) * x)
  want <- mean_noise(cbind(rowSums(y), rowSums(x), rowSums(y * x), rowSums(x^2)), release, 10)
  got <- clt_evidence(release, model_logistic(prior = prior_normal(c(0.2, 0.4), c(0.5, 0.8)), covariates = fixed(list(mean = 0.1, cov = matrix(1.5)))))
  expect_lt(abs(as.numeric(got) - want$value), 0.05 + 4.5 * sqrt(attr(got, "error")^2 + want$error^2))
})

test_that("inverse Gaussian draws fit their distribution, an infinite mean included", {
  set.seed(1)
  distribution <- function(x, mean, shape) pnorm(sqrt(shape / x) * (x / mean - 1)) + exp(2 * shape / mean) * pnorm(-sqrt(shape / x) * (x / mean + 1))
  for (mean in c(0.1, 2, 30)) expect_gt(ks.test(internal("inverse_gaussian")(rep(mean, 2e4), rep(1.5, 2e4)), distribution, mean, 1.5)$p.value, 1e-4)
  infinite <- internal("inverse_gaussian")(rep(Inf, 2e4), rep(1.5, 2e4))
  expect_gt(ks.test(1.5 / infinite, pchisq, 1)$p.value, 1e-4)
})

test_that("imputed records that bounds clamp get this evidence; what has none is refused", {
  skip_on_cran()
  set.seed(2)
  release <- simulate_release(data.frame(x = rnorm(150, 0, 2)), stat_sums(~ x + I(x^2), bounds = list(x = c(-3, 3)), rescale = FALSE), mech_laplace(epsilon = 1))
  fit <- suppressWarnings(sample_posterior(release, model_normal(), method = "augment", chains = 1, iter = 100, seed = 1))
  expect_message(got <- log_evidence(fit, draws = 1000, seed = 1), "clt", class = "noiseaware_message_evidence")
  expect_match(attr(got, "note"), "clt")
  fit <- suppressWarnings(sample_posterior(release, model_normal(), method = "clt", control = list(sampler = "gibbs"), chains = 1, iter = 100, seed = 1))
  expect_error(log_evidence(fit), "gibbs", class = "noiseaware_error_method")
  fit <- suppressWarnings(sample_posterior(release, model_normal(prior = prior_nig(within = TRUE)), method = "clt", chains = 1, iter = 100, seed = 1))
  expect_error(log_evidence(fit), "truncated", class = "noiseaware_error_method")
  three <- as_release(c(5, 9, 6), stat_counts(~ k, levels = list(k = c("u", "v", "w"))), mech_laplace(scale = 2), n = 20)
  fit <- suppressWarnings(sample_posterior(three, model_categorical(), method = "clt", chains = 1, iter = 100, seed = 1))
  # counts have an exact one, whatever the method of the fit
  expect_identical(attr(log_evidence(fit), "error"), 0)
})
