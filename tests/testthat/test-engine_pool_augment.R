# Complete pooling by imputing the records of all sites: R/engine_pool_augment.R, src/records/augment_chain.c.

two_sites <- function(first, second) list(north = first, south = second)

pooled_records <- function(..., iter = 2200) sample_posterior(..., pool = "complete", method = "augment", iter = iter, seed = 1)

test_that("one site is a single release, bit for bit", {
  single <- sample_posterior(two_yes()$north, model_bernoulli(), method = "augment", iter = 200, seed = 3)
  site <- sample_posterior(two_yes()["north"], model_bernoulli(), pool = "complete", method = "augment", iter = 200, seed = 3)
  expect_identical(as.numeric(site$draws), as.numeric(single$draws))
  expect_identical(lapply(site$chains, `[[`, "statistic"), lapply(single$chains, `[[`, "statistic"))
  expect_warning(acceptance(site), NA)
})

test_that("categories of one and of two records: enumeration of all of them", {
  skip_on_cran()
  levels <- list(k = c("a", "b", "c"))
  sites <- two_sites(as_release(c(0.9, -0.4, 0.6), stat_counts(~ k, levels = levels), mech_laplace(scale = 1), n = 1),
                     as_release(c(0.4, 1.7, 1.1), stat_counts(~ k, levels = levels), mech_gaussian(sd = 1.3), n = 2))
  alpha <- c(2, 1, 1.5)
  codes <- as.matrix(expand.grid(1:3, 1:3, 1:3))
  counts <- function(columns) t(apply(codes[, columns, drop = FALSE], 1, tabulate, 3))
  north <- counts(1)
  south <- counts(2:3)
  all <- north + south
  log_weight <- log_noise("absolute", 1, c(0.9, -0.4, 0.6), north) +
    rowSums(matrix(dnorm(rep(c(0.4, 1.7, 1.1), each = 27), south, 1.3, log = TRUE), 27)) + rowSums(lgamma(rep(alpha, each = 27) + all))
  weight <- exp(log_weight) / sum(exp(log_weight))
  fit <- pooled_records(sites, model_categorical(prior = prior_dirichlet(alpha)))
  expect_true(fit$exact)
  for (k in 1:3) expect_same_mean(parameter_draws(fit, sprintf("prob[%s]", levels$k[k])), sum(weight * (alpha[k] + all[, k]) / (sum(alpha) + 3)))
  for (k in 1:3) expect_same_mean(parameter_draws(fit, "prob[a]") * parameter_draws(fit, sprintf("prob[%s]", levels$k[k])),
                                  sum(weight * (alpha[1] + all[, 1]) * (alpha[k] + all[, k] + (k == 1)) / (7.5 * 8.5)))
  totals <- denoise(fit, site = "south")
  for (k in 1:3) expect_same_mean(posterior::extract_variable_matrix(totals, sprintf("k=%s[south]", levels$k[k])), sum(weight * south[, k]))
})

test_that("randomised response of one site, counts of another: all records", {
  skip_on_cran()
  levels <- list(smoke = c("no", "yes"))
  asked <- stat_records(~ smoke, levels = levels)
  set.seed(1)
  local <- simulate_release(data.frame(smoke = c("yes", "no", "yes")), asked, mech_randomized_response(epsilon = 1))
  sites <- two_sites(local, as_release(c("smoke=yes" = 1.2), smoking(), mech_laplace(scale = 1), n = 2))
  yes <- as.matrix(expand.grid(rep(list(0:1), 5)))
  keep <- exp(1) / (exp(1) + 1)
  said <- matrix(rep(as.numeric(local$value) == 1, each = 32), 32)
  log_weight <- rowSums(ifelse(said == (yes[, 1:3] == 1), log(keep), log(1 - keep))) - abs(1.2 - rowSums(yes[, 4:5])) + lbeta(2 + rowSums(yes), 3 + 5 - rowSums(yes))
  weight <- exp(log_weight) / sum(exp(log_weight))
  fit <- pooled_records(sites, model_bernoulli(prior = prior_beta(2, 3)))
  expect_same_mean(parameter_draws(fit, "prob[yes]"), sum(weight * (2 + rowSums(yes)) / 10))
})

test_that("logistic regression with other bounds at each site: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(2)
  draws <- 2e5
  clamp <- function(x, by) pmin(pmax(x, -by), by)
  noise <- function(z, total, scale) log_noise("absolute", scale, z, total)
  covariates <- fixed(list(mean = 0.3, cov = matrix(0.8)))

  beta <- matrix(rnorm(2 * draws), draws)
  record <- function() {
    x <- rnorm(draws, 0.3, sqrt(0.8))
    cbind(rbinom(draws, 1, plogis(beta[, 1] + beta[, 2] * x)), x)
  }
  site <- function(n, by) Reduce(`+`, lapply(seq_len(n), function(i) (function(r) cbind(r[, 1], clamp(r[, 2], by), r[, 1] * clamp(r[, 2], by)))(record())))
  statistic <- function(by) stat_sums(~ y + x + I(y * x), bounds = list(y = c(0, 1), x = c(-by, by)), rescale = FALSE)
  z <- list(c(0.8, 1.1, 1.4), c(0.3, -0.9, -0.8))
  sites <- two_sites(as_release(z[[1]], statistic(1), mech_laplace(scale = 0.7), n = 1), as_release(z[[2]], statistic(2), mech_laplace(scale = 1), n = 2))
  fit <- pooled_records(sites, model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = covariates))
  log_weight <- noise(z[[1]], site(1, 1), 0.7) + noise(z[[2]], site(2, 2), 1)
  for (k in 1:2) expect_weighted_mean(parameter_draws(fit, c("(Intercept)", "x")[k]), beta[, k], log_weight)
  expect_weighted_mean(parameter_draws(fit, "x")^2, beta[, 2]^2, log_weight)
})

test_that("where nothing is clamped, moved totals and imputed records agree", {
  skip_on_cran()
  set.seed(3)
  sites <- totals_sites()
  by_totals <- sample_posterior(sites, totals_models$conjugate, pool = "complete", method = "collapse", iter = 2000, seed = 1)
  by_records <- pooled_records(sites, totals_models$conjugate, iter = 1800)
  for (name in c("(Intercept)", "x", "sigma")) expect_agreement(parameter_draws(by_totals, name), parameter_draws(by_records, name))
})

test_that("noise without limit leaves the prior, almost none the posterior of all records", {
  skip_on_cran()
  asked <- stat_counts(~ k, levels = list(k = c("a", "b", "c")))
  counts <- list(c(3, 5, 2), c(9, 2, 4))
  sites <- function(sd) Map(function(n, name) as_release(n, asked, mech_gaussian(sd = sd), n = sum(n)), stats::setNames(counts, c("north", "south")))
  prior <- c(2, 2, 2)
  sharp <- pooled_records(sites(0.2), model_categorical(prior = prior_dirichlet(prior)), iter = 2000)
  alpha <- prior + Reduce(`+`, counts)
  vague <- pooled_records(sites(1e4), model_categorical(prior = prior_dirichlet(prior)), iter = 2000)
  for (k in 1:3) {
    name <- sprintf("prob[%s]", c("a", "b", "c")[k])
    expect_distribution(parameter_draws(sharp, name), function(p) qbeta(p, alpha[k], sum(alpha) - alpha[k]), alpha[k] / sum(alpha))
    expect_distribution(parameter_draws(vague, name), function(p) qbeta(p, 2, 4), 1 / 3)
  }
})

test_that("releases drawn anew leave the prior: three sites, moves and refreshes learned and frozen (Geweke 2004)", {
  skip_on_cran()
  set.seed(4)
  statistic <- function(by) stat_crossprod(y ~ x, list(y = c(-by, by), x = c(-by, by)), rescale = FALSE)
  model <- model_lm(prior = prior_normal(0.3, 1), sigma = prior_inverse_gamma(4, 5), covariates = prior_niw(0.2, 2, 2, 6))
  sites <- Map(function(n, by, mechanism) simulate_release(model, statistic(by), mechanism, n = n), c(a = 3, b = 4, c = 5), c(1, 2, 3),
               list(mech_laplace(scale = 1), mech_gaussian(sd = 1.5), mech_laplace(scale = 2)))
  bound <- internal("bind_sites")(model, sites, NULL)
  problem <- internal("pool_augment_problem")(sites, bound, internal("seed_words")(), 1L, list(), NULL)
  state <- internal("start_pool")(problem, bound, internal("seed_words")(), 1L, NULL)
  draws <- geweke_records(problem, state, 3500)
  expect_prior(draws, prior_draws(model, statistic(3)))
})

test_that("models of R functions are pooled and extended bit for bit; what ran is told", {
  skip_on_cran()
  model <- model_custom(
    r_prior = function() c(at = rnorm(1, 0, 2)), log_prior = function(theta) dnorm(theta["at"], 0, 2, log = TRUE), variables = "x",
    r_records = function(theta, n) cbind(x = rnorm(n, theta["at"])), log_density = function(theta, records) sum(dnorm(records[, "x"], theta["at"], log = TRUE)))
  asked <- stat_sums(~ x, bounds = list(x = c(-3, 3)))
  sites <- two_sites(as_release(4.1, asked, mech_laplace(scale = 1), n = 5), as_release(c(7), asked, mech_gaussian(sd = 2), n = 8))
  whole <- pooled_records(sites, model, chains = 2, iter = 150, warmup = 60)
  part <- pooled_records(sites, model, chains = 2, iter = 100, warmup = 60)
  expect_identical(extend(part, 50)$draws, whole$draws)
  expect_output(print(whole), "exact: the records of all sites are imputed")
  for (pool in c("complete", "partial")) {
    chosen <- suppressWarnings(sample_posterior(sites, model, pool = pool, chains = 1, iter = 60, seed = 1))
    expect_true(all(is.finite(chosen$draws)))
    expect_identical(chosen$problem$family, "records")
  }
  expect_output(print(acceptance(whole)), "updates  accepted")
})

test_that("slow chains of several sites make more rounds", {
  skip_on_cran()
  asked <- stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-3, 3)))
  set.seed(7)
  sites <- lapply(stats::setNames(nm = letters[1:12]), function(site) {
    x <- stats::rnorm(50)
    simulate_release(data.frame(x, y = x + stats::rnorm(50)), asked, mech_laplace(epsilon = 5))
  })
  # at one round an effective draw of the covariate's variance takes some five to twenty
  expect_gte(mean(acceptance(pooled_records(sites, model_lm(), iter = 400))$rounds), 2)
})

test_that("\"auto\" imputes records where that is bearable, and says where it does not", {
  skip_on_cran()
  set.seed(5)
  asked <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-4, 4)))
  sites <- function(n) lapply(c(north = 1, south = 2), function(k) as_release(rep(0.1 * k, 5) * n, asked, mech_laplace(scale = 5), n = n))
  bound <- internal("bind_sites")(model_logistic(y ~ x), sites(100), NULL)
  expect_equal(internal("pooled_method")(sites(100), bound, "auto", FALSE, TRUE, NULL), "augment")
  expect_warning(chosen <- internal("pooled_method")(sites(1e7), bound, "auto", FALSE, TRUE, NULL), "approximate.*Method \"augment\" is exact",
                 class = "noiseaware_warning_method")
  expect_equal(chosen, "clt")
  exact <- c(sites(100), list(east = as_release(c(3, 4), stat_sums(~ y + x, list(y = c(0, 1), x = c(-4, 4)), rescale = FALSE), mech_exact(), n = 9)))
  expect_error(pooled_records(exact, model_logistic(y ~ x), iter = 20), class = "noiseaware_error_method")
})
