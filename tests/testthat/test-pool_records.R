# Partial pooling and walks by imputing the records of all sites: R/pool_records.R, src/method_pool_records.c.

imputed <- function(..., iter = 3000) sample_posterior(..., method = "augment", iter = iter, seed = 1)

test_that("rates of three sites agree with those whose totals are summed out: partial, walks, covariates, correlations of none", {
  skip_on_cran()
  sites <- c(two_yes(), list(west = as_release(c("smoke=yes" = 9.3), smoking(), mech_laplace(scale = 1), n = 30)))
  rural <- data.frame(site = names(sites), rural = c(1, 0, 0))
  for (pool in list("partial", "walk", partial_pooling(~ . | rural, sites = rural, sd = prior_half_t(4, 0.7)))) {
    by_totals <- sample_posterior(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = pool, method = "collapse", iter = 3000, seed = 2)
    by_records <- imputed(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = pool, iter = 6000)
    expect_true(by_records$exact)
    expect_identical(posterior::variables(by_records$draws), posterior::variables(by_totals$draws))
    for (name in posterior::variables(by_totals$draws)) expect_agreement(parameter_draws(by_records, name), parameter_draws(by_totals, name), label = name)
    new <- if (identical(pool, "walk")) "next" else "new"
    expect_lt(abs(mean(site_draws(by_records, new, seed = 1)) - mean(site_draws(by_totals, new, seed = 1))), 0.03)
  }
})

test_that("a spread that is known to be none is complete pooling", {
  skip_on_cran()
  none <- imputed(two_yes(), model_bernoulli(), pool = partial_pooling(sd = prior_exponential(1e4)), iter = 4000)
  complete <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", iter = 4000, seed = 2)
  expect_agreement(parameter_draws(none, "prob[yes]"), parameter_draws(complete, "prob[yes]"))
  expect_agreement(parameter_draws(none, "prob[yes][south]"), parameter_draws(complete, "prob[yes]"))
})

test_that("categories of one and of two records: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(1)
  draws <- 1e5
  levels <- list(k = c("a", "b", "c"))
  z <- list(c(0.9, -0.4, 0.6), c(0.4, 1.7, 0.1))
  sites <- list(north = as_release(z[[1]], stat_counts(~ k, levels = levels), mech_laplace(scale = 0.6), n = 1),
                south = as_release(z[[2]], stat_counts(~ k, levels = levels), mech_gaussian(sd = 0.8), n = 2))
  model <- model_categorical(prior = prior_dirichlet(c(2, 1, 1.5)))
  # sticks of a Dirichlet distribution are independent
  mean <- cbind(qlogis(rbeta(draws, 2, 2.5)), qlogis(rbeta(draws, 1, 1.5)))
  sd <- abs(matrix(rnorm(2 * draws), draws))
  probabilities <- function() {
    t <- mean + sd * rnorm(2 * draws)
    first <- plogis(t[, 1])
    cbind(first, (1 - first) * plogis(t[, 2]), (1 - first) * plogis(-t[, 2]))
  }
  count <- function(p, n) {
    total <- matrix(0, draws, 3)
    for (i in seq_len(n)) {
      u <- runif(draws)
      total <- total + cbind(u < p[, 1], u >= p[, 1] & u < p[, 1] + p[, 2], u >= p[, 1] + p[, 2])
    }
    total
  }
  north <- probabilities()
  south <- probabilities()
  log_weight <- log_noise("absolute", 0.6, z[[1]], count(north, 1)) + log_noise("squared", 0.8, z[[2]], count(south, 2))
  fit <- imputed(sites, model, pool = "partial", iter = 6000)
  expect_weighted_mean(parameter_draws(fit, "prob[a]"), plogis(mean[, 1]), log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd[logit(prob[b])]"), sd[, 2], log_weight)
  for (k in 1:3) expect_weighted_mean(parameter_draws(fit, sprintf("prob[%s][north]", levels$k[k])), north[, k], log_weight)
  for (k in 1:3) expect_weighted_mean(parameter_draws(fit, sprintf("prob[%s][south]", levels$k[k])), south[, k], log_weight)
})

test_that("logistic regression whose slope is the same in both sites: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(2)
  draws <- 2e5
  clamp <- function(x, by) pmin(pmax(x, -by), by)
  intercept <- rnorm(draws)
  slope <- rnorm(draws)
  sd <- abs(rnorm(draws, 0, 0.8))
  own <- list(intercept + sd * rnorm(draws), intercept + sd * rnorm(draws))
  site <- function(at, n, by) Reduce(`+`, lapply(seq_len(n), function(i) {
    x <- rnorm(draws, 0.3, sqrt(0.8))
    y <- rbinom(draws, 1, plogis(at + slope * x))
    cbind(y, clamp(x, by), y * clamp(x, by))
  }))
  statistic <- function(by) stat_sums(~ y + x + I(y * x), bounds = list(y = c(0, 1), x = c(-by, by)))
  z <- list(c(0.8, 1.1, 1.4), c(0.3, -0.9, -0.8))
  sites <- list(north = as_release(z[[1]], statistic(2), mech_laplace(scale = 0.7), n = 1), south = as_release(z[[2]], statistic(2), mech_laplace(scale = 1), n = 2))
  model <- model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = fixed(list(mean = 0.3, cov = matrix(0.8))))
  fit <- imputed(sites, model, pool = partial_pooling(~ (Intercept), sd = prior_half_normal(0.8)), iter = 6000)
  log_weight <- log_noise("absolute", 0.7, z[[1]], site(own[[1]], 1, 2)) + log_noise("absolute", 1, z[[2]], site(own[[2]], 2, 2))
  expect_weighted_mean(parameter_draws(fit, "(Intercept)"), intercept, log_weight)
  expect_weighted_mean(parameter_draws(fit, "x"), slope, log_weight)
  expect_weighted_mean(parameter_draws(fit, "x")^2, slope^2, log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd[(Intercept)]"), sd, log_weight)
  expect_weighted_mean(parameter_draws(fit, "(Intercept)[south]"), own[[2]], log_weight)
})

test_that("releases drawn anew leave the prior: regressions of three sites, correlated, and in a walk (Geweke 2004)", {
  skip_on_cran()
  set.seed(4)
  statistic <- function(by) stat_crossprod(y ~ x, list(y = c(-by, by), x = c(-by, by)), rescale = FALSE)
  model <- model_lm(prior = prior_normal(0.3, 1), sigma = prior_inverse_gamma(4, 5), covariates = prior_niw(0.2, 2, 2, 6))
  sites <- Map(function(n, by, mechanism) simulate_release(model, statistic(by), mechanism, n = n), c(a = 3, b = 4, c = 5), c(1, 2, 3),
               list(mech_laplace(scale = 1), mech_gaussian(sd = 1.5), mech_laplace(scale = 2)))
  bound <- internal("bind_sites")(model, sites, NULL)
  prior <- prior_draws(model, statistic(3))
  for (pool in list(partial_pooling(sd = prior_half_normal(0.5), correlation = prior_lkj(2)), walk_pooling(~ x, sd = prior_half_normal(0.5)))) {
    words <- internal("seed_words")()
    problem <- internal("pool_augment_problem")(sites, bound, words, 1L, list(), NULL)
    problem <- internal("pooled_records_problem")(problem, pool, bound, sites, NULL)
    draws <- geweke_records(problem, internal("start_pool")(problem, bound, words, 1L, NULL), 8000)
    walk <- pool$kind == "walk"
    colnames(draws)[colnames(draws) == if (walk) "x[a]" else "x"] <- "x"
    expect_prior(draws[, c("(Intercept)", "x", "sigma")[if (walk) 2 else 1:3], drop = FALSE], prior)
    spread <- abs(rnorm(1e5, 0, 0.5))
    expect_prior(draws[, "sd[x]", drop = FALSE], cbind("sd[x]" = spread))
    steps <- if (walk) rnorm(1e5, 0, spread) + rnorm(1e5, 0, spread) else rnorm(1e5, 0, spread)
    expect_prior(draws[, "x[c]", drop = FALSE], cbind("x[c]" = rnorm(1e5, 0.3, 1) + steps))
    if (!walk) expect_prior(draws[, "cor[(Intercept),x]", drop = FALSE], cbind("cor[(Intercept),x]" = 2 * rbeta(1e5, 2.5, 2.5) - 1))
  }
})

test_that("a chain cut in two is the same chain; what ran is told; sites and predictions", {
  skip_on_cran()
  set.seed(5)
  asked <- stat_crossprod(y ~ x + f, list(y = c(-3, 3), x = c(-2, 2), f = c("u", "v")))
  sites <- lapply(c(north = 30, south = 40), function(n) {
    x <- rnorm(n)
    f <- sample(c("u", "v"), n, TRUE)
    simulate_release(data.frame(y = 0.5 + x + (f == "v") + rnorm(n), x, f), asked, mech_laplace(epsilon = 8))
  })
  whole <- imputed(sites, model_lm(), pool = "partial", chains = 2, iter = 250, warmup = 120)
  part <- imputed(sites, model_lm(), pool = "partial", chains = 2, iter = 200, warmup = 120)
  expect_identical(extend(part, 50)$draws, whole$draws)
  expect_output(print(whole), "normal about a mean .exact: the records of all sites are imputed")
  expect_output(print(acceptance(whole)), "what they share with their parameters, given the records")
  expect_identical(rownames(coef(whole)), c("north", "south"))
  expect_equal(posterior::ndraws(site_draws(whole, "new", seed = 1)), posterior::ndraws(whole$draws))
  expect_length(predict(whole, data.frame(x = c(-1, 1), f = c("u", "v")), site = "new", seed = 1), 2L)
  expect_identical(posterior::variables(denoise(whole, site = "south"))[1L], "y[south]")
  expect_equal(nrow(shrinkage_data(whole, "x", alone = imputed(sites, model_lm(), pool = "none", chains = 1, iter = 100))), 2L)
})

test_that("what cannot be pooled by records is refused", {
  set.seed(6)
  asked <- stat_counts(~ k, levels = list(k = c("a", "b", "c")))
  sites <- list(north = as_release(c(1.5, 2, 3), asked, mech_laplace(scale = 1), n = 6), south = as_release(c(2.5, 2, 1), asked, mech_laplace(scale = 1), n = 5))
  expect_error(imputed(sites, model_categorical(), pool = ~ `prob[a]`), "All parameters must vary", class = "noiseaware_error_pool")
  expect_error(imputed(sites, model_categorical(), pool = partial_pooling(covariates = "shared")), "shared", class = "noiseaware_error_method")
  numbers <- stat_crossprod(y ~ x, list(x = c(-3, 3), y = c(-3, 3)))
  pairs <- lapply(c(a = 20, b = 30), function(n) simulate_release(data.frame(x = rnorm(n), y = rnorm(n)), numbers, mech_laplace(epsilon = 1)))
  expect_error(imputed(pairs, model_mvnormal(prior = prior_niw(within = TRUE)), pool = "partial"), class = "noiseaware_error_method")
})
