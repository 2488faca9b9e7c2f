# Sites of unknown numbers of records, pooled by method "clt": src/pool/nuts_site_clt.c.

of_two <- function() stat_counts(~ k, levels = list(k = c("u", "v")))

unsized_two <- function() {
  both <- list(k = of_two(), size = stat_size())
  list(a = as_release(c("k: k=u" = 47, "k: k=v" = 83, "size: n" = 117), both, list(k = mech_gaussian(sd = 4), size = mech_laplace(scale = 8)), n = NULL,
                      neighbours = "add_remove"),
       b = as_release(c("k=v" = 41), of_two(), mech_gaussian(sd = 2), n = NULL), # its share trades off with n
       c = as_release(c("k=u" = 20, "k=v" = 38), of_two(), mech_gaussian(sd = 20), n = 60))
}

sizes_of_two <- list(a = prior_n("uniform", lower = 80, upper = 160), b = prior_n("uniform", lower = 50, upper = 140))

# P(z_j, n | p) of the normal distribution of the totals, rows n, columns p of "v"
likelihood_of_two <- function(z, sd, n, log_prior, p) {
  table <- outer(n, p, function(n, p) {
    if (length(z) == 1L) return(dnorm(z, n * p, sqrt(n * p * (1 - p) + sd^2), log = TRUE))
    # the sum of both counts has the sampling variance 0, their difference 4 n p (1 - p)
    dnorm(z[[1]] + z[[2]], n, sqrt(2) * sd, log = TRUE) + dnorm(z[[2]] - z[[1]], n * (2 * p - 1), sqrt(4 * n * p * (1 - p) + 2 * sd^2), log = TRUE)
  })
  exp(table + log_prior)
}

test_that("two categories: quadrature over the parameters, sums over the numbers of records", {
  skip_on_cran()
  sites <- unsized_two()
  logit <- seq(-3.5, 4, by = 0.04)
  p <- plogis(logit)
  n <- list(a = 80:160, b = 50:140, c = 60)
  log_prior <- list(a = -abs(117 - n$a) / 8, b = 0, c = 0)
  each <- Map(function(site, sd, n, log_prior) likelihood_of_two(head(site$value, 2L), sd, n, log_prior, p), sites, c(4, 2, 20), n, log_prior)
  told <- lapply(each, colSums)
  log_sd <- seq(-7.5, 1.7, by = 0.2)
  mean_prior <- dlogis(logit)
  kernels <- lapply(log_sd, function(u) {
    kernel <- outer(logit, logit, function(to, from) dnorm(to, from, exp(u)))
    sweep(kernel, 2, colSums(kernel), "/")
  })
  sd_prior <- dnorm(exp(log_sd), 0, 0.7) * exp(log_sd)
  # of the mean, or of the first site; of the sds; of b, by p
  exact <- list(
    complete = list(mean = mean_prior * told$a * told$b * told$c),
    partial = Reduce(function(sum, i) {
      of <- lapply(told, function(t) colSums(kernels[[i]] * t))
      w <- mean_prior * sd_prior[i]
      list(mean = sum$mean + w * of$a * of$b * of$c, sd = c(sum$sd, sum(w * of$a * of$b * of$c)),
           b = sum$b + told$b * drop(kernels[[i]] %*% (w * of$a * of$c)))
    }, seq_along(log_sd), list(mean = 0, sd = NULL, b = 0)),
    walk = Reduce(function(sum, i) {
      ends <- colSums(kernels[[i]] * told$c)
      b <- drop(kernels[[i]] %*% (mean_prior * told$a)) * sd_prior[i] * told$b * ends
      a <- mean_prior * sd_prior[i] * told$a * colSums(kernels[[i]] * (told$b * ends))
      list(mean = sum$mean + a, sd = c(sum$sd, sum(b)), b = sum$b + b)
    }, seq_along(log_sd), list(mean = 0, sd = NULL, b = 0)))
  for (pool in names(exact)) {
    of <- exact[[pool]]
    pooling <- switch(pool, complete = pool, partial = partial_pooling(sd = prior_half_normal(0.7)), walk = partial_pooling(sd = prior_half_normal(0.7), walk = TRUE))
    fit <- approximately(sites, model_bernoulli(prior = prior_beta(1, 1)), pool = pooling, prior_n = sizes_of_two, iter = 1100)
    first <- if (pool == "walk") "prob[v,a]" else "prob[v]"
    expect_distribution(qlogis(parameter_draws(fit, first)), grid_quantile(logit, of$mean))
    # of n given p the sums, weighted by p of all else
    by_p <- if (pool == "complete") of$mean else of$b
    share <- sweep(each$b, 2, told$b, "/")
    of_n <- drop(share %*% by_p) / sum(by_p)
    at <- parameter_draws(fit, "n[b]")
    for (power in 1:2) expect_lt(abs(mean(at^power) - sum(of_n * n$b^power)) / posterior::mcse_mean(at^power), 5)
    if (pool == "complete") {
      of_n <- drop(sweep(each$a, 2, told$a, "/") %*% by_p) / sum(by_p)
      at <- parameter_draws(fit, "n[a]")
      expect_lt(abs(mean(at) - sum(of_n * n$a)) / posterior::mcse_mean(at), 5)
      expect_identical(posterior::variables(fit$draws), c("prob[v]", "n[a]", "n[b]"))
      next
    }
    expect_distribution(log(parameter_draws(fit, "sd[logit(prob[v])]")), grid_quantile(log_sd, of$sd))
    expect_distribution(qlogis(parameter_draws(fit, "prob[v,b]")), grid_quantile(logit, of$b))
  }
  # of second order: draws from the prior, weighted by the likelihood
  set.seed(2)
  count <- 2e5
  sd <- abs(rnorm(count, 0, 0.7))
  phi <- matrix(rlogis(count), count, 3)
  phi[, 2] <- phi[, 1] + rnorm(count)
  phi[, 3] <- 2 * phi[, 2] - phi[, 1] + sd * rnorm(count)
  at <- function(of, x) stats::approx(logit, of, x, rule = 2)$y
  log_weight <- Reduce(`+`, lapply(1:3, function(j) at(log(told[[j]]), phi[, j])))
  log_weight[rowSums(phi < -3.5 | phi > 4) > 0] <- -Inf
  fit <- approximately(sites, model_bernoulli(prior = prior_beta(1, 1)), pool = partial_pooling(sd = prior_half_normal(0.7), walk = 2), prior_n = sizes_of_two, iter = 1100)
  expect_weighted_mean(log(parameter_draws(fit, "sd[logit(prob[v])]")), log(sd), log_weight)
  for (j in 1:3) expect_weighted_mean(qlogis(parameter_draws(fit, sprintf("prob[v,%s]", names(told)[j]))), phi[, j], log_weight)
  for (site in c("a", "b")) {
    mean_n <- colSums(each[[site]] * n[[site]]) / told[[site]]
    expect_weighted_mean(parameter_draws(fit, sprintf("n[%s]", site)), at(mean_n, phi[, match(site, names(told))]), log_weight)
  }
})

# a noisy number of records with the totals
sized_regressions <- function(scale, sizes = c(a = 60, b = 90)) {
  asked <- list(totals = stat_crossprod(y ~ x, pooled_bounds()), size = stat_size())
  lapply(sizes, function(n) {
    x <- rnorm(n, 0.2, 0.7)
    simulate_release(data.frame(y = rbinom(n, 1, plogis(0.8 * x - 0.3)), x), asked, list(totals = mech_gaussian(sd = 5), size = mech_laplace(scale = scale)),
                     neighbours = "add_remove")
  })
}

test_that("logistic regressions: as imputed records say, and without noise on the numbers as if these were known", {
  skip_on_cran()
  set.seed(2)
  sites <- sized_regressions(20)
  model <- model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = prior_niw(0.2, 2, 6, 3))
  sizes <- prior_n("negative_binomial", mean = 80, size = 4)
  for (pool in c("complete", "partial")) {
    fit <- approximately(sites, model, pool = pool, prior_n = sizes, iter = 1000)
    exact <- sample_posterior(sites, model, pool = pool, method = "augment", prior_n = sizes, iter = 700, seed = 1)
    expect_identical(posterior::variables(fit$draws), posterior::variables(exact$draws))
    for (name in c("(Intercept)", "x", "n[a]", "n[b]")) expect_agreement(parameter_draws(fit, name), parameter_draws(exact, name), label = name)
  }
  expect_identical(posterior::variables(denoise(fit, site = "a")), paste0(names(sites$a$value)[1:5], "[a]"))

  settled <- sized_regressions(1e-3)
  known <- lapply(settled, function(site) {
    parts <- names(site$value) != "size: n"
    value <- stats::setNames(site$value[parts], sub("^totals: ", "", names(site$value)[parts]))
    as_release(value, stat_crossprod(y ~ x, pooled_bounds()), mech_gaussian(sd = 5), n = round(site$value[["size: n"]]), neighbours = "add_remove")
  })
  for (pool in c("complete", "walk")) {
    a <- approximately(settled, model, pool = pool, prior_n = sizes, iter = 800)
    b <- approximately(known, model, pool = pool, iter = 800)
    for (name in posterior::variables(b$draws)) expect_agreement(parameter_draws(a, name), parameter_draws(b, name), label = name)
  }
})

test_that("sites far apart are separate fits; a chain cut in two is the same; what is shown and refused", {
  skip_on_cran()
  sites <- unsized_two()
  sizes <- sizes_of_two
  wide <- partial_pooling(sd = prior_half_normal(1e4))
  apart <- approximately(sites, model_bernoulli(), pool = wide, prior_n = sizes, iter = 1000)
  alone <- approximately(sites, model_bernoulli(), pool = "none", prior_n = sizes, iter = 1000)
  expect_agreement(parameter_draws(apart, "n[a]"), parameter_draws(alone, "n[a]"))
  expect_identical(parameter_draws(alone, "n[a]"), parameter_draws(alone$fits$a, "n"))

  for (pool in c("complete", "walk")) {
    chain <- function(iter) approximately(sites, model_bernoulli(), pool = pool, prior_n = sizes, iter = iter, warmup = 100, chains = 2)
    whole <- suppressWarnings(chain(140))
    expect_identical(suppressWarnings(extend(suppressWarnings(chain(120)), 20))$draws, whole$draws)
    expect_output(print(whole), "not known .n.: a, b")
    expect_output(print(acceptance(whole)), "unknown numbers of records: accepted")
  }
  expect_output(print(whole), "approximate: a normal distribution for the totals")
  sites$b <- as_release(c("k=v" = 1), of_two(), mech_gaussian(sd = 2), n = NULL)
  expect_warning(few <- told(approximately(sites, model_bernoulli(), pool = "complete", prior_n = list(b = prior_n("uniform", lower = 0, upper = 3)), iter = 400)),
                 "needs two or more", class = "noiseaware_warning_few_records")
  expect_output(print(few), "at least 2 assumed")
  cut <- model_logistic(y ~ x, covariates = prior_niw(within = c(0, 1)))
  expect_error(approximately(sized_regressions(20), cut), "truncated", class = "noiseaware_error_method")
  expect_error(approximately(sites, model_bernoulli(), pool = "partial", init = list()), "init", class = "noiseaware_error_argument")
})
