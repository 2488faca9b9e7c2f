# Sites that do not tell their number of records: check_site_priors() in R/engine_pool.R, R/engine_pool_augment.R, src/records/n_birth_death.c.

waiting <- function(by) stat_sums(~ t, bounds = list(t = c(0, by)))

# draws from the prior of rates, numbers of records and clamped totals
waiting_total <- function(rate, n, by) {
  record <- rep(seq_along(n), n)
  totals <- numeric(length(n))
  of <- rowsum(pmin(rexp(length(record), rate[record]), by), record)
  totals[as.integer(rownames(of))] <- of
  totals
}

waiting_sites <- function() {
  list(north = as_release(c(t = 3.2), waiting(3), mech_laplace(scale = 0.7), n = NULL),
       middle = as_release(c(t = 1.5), waiting(2), mech_laplace(scale = 0.6), n = 2),
       south = as_release(c(t = 2.9), waiting(4), mech_gaussian(sd = 0.8), n = NULL))
}

test_that("numbers of few records and shared, partly pooled and walking rates: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(1)
  draws <- 1e5
  sites <- waiting_sites()
  sizes <- list(north = prior_n("poisson", mean = 2), south = prior_n("uniform", lower = 1, upper = 4))
  n <- cbind(rpois(draws, 2), 2, sample(1:4, draws, TRUE))
  rate <- rgamma(draws, 3, 2)
  sd <- abs(rnorm(draws, 0, 0.6))
  for (pool in list("complete", partial_pooling(sd = prior_half_normal(0.6)), partial_pooling(sd = prior_half_normal(0.6), walk = TRUE))) {
    kind <- if (is.list(pool)) pool$kind else pool
    z <- matrix(rnorm(3 * draws), draws)
    shift <- switch(kind, complete = 0 * z, partial = sd * z, walk = sd * cbind(0, z[, 2], z[, 2] + z[, 3]))
    own <- rate * exp(shift)
    s <- vapply(1:3, function(j) waiting_total(own[, j], n[, j], c(3, 2, 4)[j]), numeric(draws))
    log_weight <- log_noise("absolute", c(0.7, 0.6), c(3.2, 1.5), s[, 1:2]) + log_noise("squared", 0.8, 2.9, s[, 3, drop = FALSE])
    fit <- sample_posterior(sites, model_exponential(prior = prior_gamma(3, 2)), pool = pool, prior_n = sizes, iter = 900, seed = 2)
    expect_true(fit$exact)
    expect_weighted_mean(parameter_draws(fit, "n[north]"), n[, 1], log_weight)
    expect_weighted_mean(parameter_draws(fit, "n[north]")^2, n[, 1]^2, log_weight)
    expect_weighted_mean(parameter_draws(fit, "n[south]"), n[, 3], log_weight)
    if (kind != "walk") expect_weighted_mean(parameter_draws(fit, "rate"), rate, log_weight)
    if (kind != "complete") {
      expect_weighted_mean(parameter_draws(fit, "sd[log(rate)]"), sd, log_weight)
      expect_weighted_mean(parameter_draws(fit, "rate[south]"), own[, 3], log_weight)
      expect_weighted_mean(parameter_draws(fit, "rate[north]"), own[, 1], log_weight)
    }
  }
})

# A step of the north's number takes the rate along, and with it the records of the south.
test_that("a number and the rate that it shares with another site: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(6)
  wide <- waiting(60) # nothing is clamped
  sites <- list(north = as_release(c(t = 14), wide, mech_laplace(scale = 1), n = NULL), south = as_release(c(t = 33), wide, mech_laplace(scale = 1), n = 40))
  fit <- sample_posterior(sites, model_exponential(prior = prior_gamma(3, 2)), pool = "complete", prior_n = prior_n("negative_binomial", mean = 20, size = 2), iter = 4400, seed = 3)
  rate <- rgamma(4e5, 3, 2)
  n <- rnbinom(4e5, 2, mu = 20)
  total <- cbind(rgamma(4e5, n, rate), rgamma(4e5, 40, rate))
  log_weight <- log_noise("absolute", c(1, 1), c(14, 33), total)
  for (power in 1:2) {
    expect_weighted_mean(parameter_draws(fit, "n[north]")^power, n^power, log_weight)
    expect_weighted_mean(parameter_draws(fit, "rate")^power, rate^power, log_weight)
    expect_weighted_mean(matrix(as.numeric(denoise(fit, site = "south")), ncol = 4)^power, total[, 2]^power, log_weight)
  }
})

test_that("noise that drowns all leaves each number its prior, none at all included", {
  skip_on_cran()
  set.seed(3)
  asked <- stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-2, 2)))
  sites <- lapply(c(a = 1, b = 2), function(k) as_release(rnorm(5, 0, 1e6), asked, mech_laplace(scale = 1e6), n = NULL))
  sizes <- list(a = prior_n("uniform", lower = 0, upper = 3), b = prior_n("negative_binomial", mean = 15, size = 2))
  prior <- cbind("n[a]" = sample(0:3, 4e4, TRUE), "n[b]" = rnbinom(4e4, 2, mu = 15))
  model <- model_lm(prior = prior_normal(0, 1), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(0, 2, 2, 6))
  for (pool in list("complete", "partial")) {
    fit <- suppressWarnings(sample_posterior(sites, model, pool = pool, prior_n = sizes, iter = 1100, seed = 4))
    draws <- sapply(colnames(prior), function(name) c(parameter_draws(fit, name)))
    for (name in colnames(prior)) {
      at <- parameter_draws(fit, name)
      expect_lt(abs(mean(at) - mean(prior[, name])) / posterior::mcse_mean(at), 5)
      below <- (at <= median(prior[, name])) + 0
      expect_lt(abs(mean(below) - mean(prior[, name] <= median(prior[, name]))) / posterior::mcse_mean(below), 5)
    }
    x <- parameter_draws(fit, "x")
    expect_lt(abs(mean(x)) / posterior::mcse_mean(x), 5)
  }
})

test_that("one site is a fit of its release; separate fits take each site's prior; a chain cut in two is the same", {
  skip_on_cran()
  sites <- waiting_sites()
  model <- model_exponential(prior = prior_gamma(3, 2))
  alone <- sample_posterior(sites$north, model, method = "augment", prior_n = prior_n("poisson", mean = 2), iter = 1800, seed = 5)
  pooled <- sample_posterior(sites["north"], model, pool = "complete", prior_n = prior_n("poisson", mean = 2), iter = 1800, seed = 6)
  expect_agreement(parameter_draws(pooled, "rate"), parameter_draws(alone, "rate"))
  expect_agreement(parameter_draws(pooled, "n[north]"), parameter_draws(alone, "n"))
  none <- sample_posterior(sites, model, pool = "none", prior_n = list(south = prior_n("uniform", lower = 3, upper = 3)), iter = 200, seed = 7)
  expect_true(all(parameter_draws(none, "n[south]") == 3))
  expect_identical(nobs(none), NA_real_)
  for (pool in c("complete", "partial")) {
    part <- suppressWarnings(sample_posterior(sites, model, pool = pool, prior_n = prior_n("poisson", mean = 3), iter = 150, warmup = 100, chains = 2, seed = 8))
    whole <- suppressWarnings(sample_posterior(sites, model, pool = pool, prior_n = prior_n("poisson", mean = 3), iter = 200, warmup = 100, chains = 2, seed = 8))
    expect_identical(suppressWarnings(extend(part, 50))$draws, whole$draws)
    expect_output(print(whole), "records    not known .n.: north, south")
    # more room: no draw depends on it
    state <- whole$chains[[1]]$state
    wider <- internal("give_room")(state, whole$problem)
    expect_identical(wider$room, state$room * c(2, 1, 2))
    run <- list(warmup = 100, thin = 1)
    go <- function(state) internal("run_blocks")(whole$problem, state, 20, run, function(...) NULL)$draws
    copy <- .Call(internal("ffi_duplicate"), state)
    expect_identical(go(wider), go(copy))
  }
})

test_that("priors of numbers of records are for sites that do not tell them", {
  skip_on_cran()
  sites <- waiting_sites()
  fit <- function(...) sample_posterior(sites, model_exponential(), pool = "complete", chains = 1, iter = 4, ...)
  expect_error(fit(prior_n = list(middle = prior_n("poisson", mean = 2))), "middle", class = "noiseaware_error_argument")
  expect_error(fit(prior_n = list(prior_n("poisson", mean = 2))), "named list", class = "noiseaware_error_argument")
  expect_error(fit(prior_n = list(north = 3)), "prior of the number", class = "noiseaware_error_argument")
  expect_error(fit(method = "collapse"), "needs to know", class = "noiseaware_error_pool")
  expect_error(sample_posterior(sites["middle"], model_exponential(), pool = "complete", prior_n = prior_n("poisson", mean = 2)), "known for all sites",
               class = "noiseaware_error_argument")
})

# ---- normal totals: src/pool/nuts_site_totals.c ---------------------------------------------------

test_that("totals of normal sites of unknown numbers of records, pooled by method collapse: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(9)
  draws <- 3e5
  asked <- stat_sums(~ x + I(x^2), list(x = c(-1000, 1000)), rescale = FALSE)
  z <- list(a = c(x = 7, "x^2" = 11), b = c(x = 5, "x^2" = 12), c = c(x = -2, "x^2" = 9))
  sites <- Map(function(z, n, noise) as_release(z, asked, noise, n = n), z, list(NULL, 6, NULL),
               list(mech_gaussian(sd = 3), mech_laplace(scale = 3), mech_laplace(scale = 3)))
  sizes <- list(a = prior_n("uniform", lower = 3, upper = 12), c = prior_n("poisson", mean = 9))
  n <- cbind(sample(3:12, draws, TRUE), 6, rpois(draws, 9))
  n <- pmax(n, 2) # which method "collapse" assumes
  possible <- n[, 3] > 2 | runif(draws) < dpois(2, 9) / ppois(2, 9)
  model <- model_normal(prior = prior_nig(0.3, 1, 4, 5))
  sd <- 1 / sqrt(rgamma(draws, 4, 5))
  mean <- rnorm(draws, 0.3, sd)
  spread <- abs(matrix(rnorm(2 * draws, 0, 0.4), draws))
  for (pool in c("complete", "partial")) {
    own <- lapply(1:3, function(j) {
      shift <- if (pool == "partial") spread * rnorm(2 * draws) else 0 * spread
      m <- mean + shift[, 1]
      s <- sd * exp(shift[, 2])
      total <- rnorm(draws, n[, j] * m, s * sqrt(n[, j]))
      list(mean = m, totals = cbind(total, total^2 / n[, j] + s^2 * rchisq(draws, n[, j] - 1)))
    })
    log_weight <- ifelse(possible, 0, -Inf) + log_noise("squared", 3, z$a, own[[1]]$totals) + log_noise("absolute", 3, z$b, own[[2]]$totals) +
      log_noise("absolute", 3, z$c, own[[3]]$totals)
    pooling <- if (pool == "partial") partial_pooling(sd = prior_half_normal(0.4)) else pool
    fit <- sample_posterior(sites, model, pool = pooling, method = "collapse", prior_n = sizes, iter = 1200, seed = 2)
    expect_identical(fit$problem$family, "totals")
    expect_weighted_mean(parameter_draws(fit, "n[a]"), n[, 1], log_weight)
    expect_weighted_mean(parameter_draws(fit, "n[a]")^2, n[, 1]^2, log_weight)
    expect_weighted_mean(parameter_draws(fit, "n[c]"), n[, 3], log_weight)
    expect_weighted_mean(parameter_draws(fit, "mean"), mean, log_weight)
    expect_weighted_mean(log(parameter_draws(fit, "sd")), log(sd), log_weight)
    if (pool == "complete") next
    expect_weighted_mean(parameter_draws(fit, "mean[a]"), own[[1]]$mean, log_weight)
    expect_weighted_mean(parameter_draws(fit, "sd[log(sd)]"), spread[, 2], log_weight)
    several <- sample_posterior(sites, model_mvnormal(prior = prior_niw(0.3, 1, 10, 8)), pool = pooling,
                                method = "collapse", prior_n = sizes, iter = 1200, seed = 2)
    expect_weighted_mean(parameter_draws(several, "n[a]"), n[, 1], log_weight)
    expect_weighted_mean(parameter_draws(several, "n[c]"), n[, 3], log_weight)
    expect_weighted_mean(parameter_draws(several, "mean[x,a]"), own[[1]]$mean, log_weight)
  }
})

test_that("totals of sites of unknown numbers of records: chosen where there are many, restarted, shown", {
  skip_on_cran()
  set.seed(10)
  asked <- list(totals = stat_crossprod(y ~ x, list(y = c(-6, 8), x = c(-5, 5))), size = stat_size())
  of <- function(n) {
    x <- rnorm(n, 0.3)
    simulate_release(data.frame(y = 0.5 + 0.8 * x + rnorm(n), x), asked,
                     list(totals = mech_laplace(epsilon = 0.5), size = mech_laplace(epsilon = 0.5)), neighbours = "add_remove")
  }
  sites <- list(a = of(2000), b = of(900), c = totals_sites()$first)
  chain <- function(iter, ...) suppressWarnings(sample_posterior(sites, model_lm(), pool = "partial", chains = 2, iter = iter, warmup = 100, seed = 1, ...))
  whole <- chain(140)
  expect_identical(whole$problem$family, "totals")
  expect_identical(utils::tail(posterior::variables(whole$draws), 2), c("n[a]", "n[b]"))
  expect_identical(suppressWarnings(extend(chain(120), 20))$draws, whole$draws)
  expect_output(print(whole), "not known \\(n\\): a, b")
  expect_output(print(acceptance(whole)), "unknown numbers of records: accepted")
  expect_true(all(is.finite(posterior::as_draws_matrix(site_draws(whole, "new", seed = 1)))))
  expect_identical(dim(denoise(whole, site = "a"))[3], 6L)
  sites$b <- of(100)
  expect_identical(chain(110)$problem$family, "records")
})

test_that("few records: totals and imputed records agree where all have more than columns, and totals warn where fewer are likely", {
  skip_on_cran()
  asked <- stat_sums(~ y + x + I(y^2) + y:x + I(x^2), list(y = c(-300, 300), x = c(-300, 300)), rescale = FALSE)
  of <- function(...) as_release(stats::setNames(c(...), c("y", "x", "y^2", "y:x", "x^2")), asked, mech_laplace(scale = 5), n = NULL)
  sites <- list(a = of(6, 3, 9, 8, 14), b = of(2, 4, 7, 5, 9))
  model <- model_lm(y ~ x, prior = prior_normal(0, 1), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(0, 2, 5, 6))
  fit <- function(method, least, iter) sample_posterior(sites, model, pool = "complete", method = method, prior_n = prior_n("uniform", lower = least, upper = 9), iter = iter, seed = 1)
  totals <- fit("collapse", 3, 2000)
  expect_null(internal("few_records_trouble")(totals))
  records <- fit("augment", 3, 2000)
  for (name in c("n[a]", "n[b]", "x", "sigma")) expect_agreement(parameter_draws(totals, name), parameter_draws(records, name), label = name)
  for (k in 3:5) {
    below <- function(fit) (parameter_draws(fit, "n[b]") <= k) + 0
    expect_agreement(below(totals), below(records), spread = FALSE, label = paste("n[b] <=", k))
  }
  expect_warning(few <- told(fit("collapse", 0, 1000)), "n\\[a\\], n\\[b\\], but are excluded", class = "noiseaware_warning_few_records")
  expect_output(print(few), "upper = 9., at least 3 assumed")
  expect_no_match(paste(capture.output(print(totals)), collapse = " "), "at least . assumed")
  expect_warning(alone <- told(sample_posterior(sites$b, model, method = "collapse", prior_n = prior_n("poisson", mean = 5), chains = 2, iter = 900, seed = 1)),
                 "plausible for n, ", class = "noiseaware_warning_few_records")
  expect_output(print(alone), "prior poisson.*, at least 3 assumed")
})
