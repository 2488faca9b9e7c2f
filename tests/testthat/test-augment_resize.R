# Steps of an unknown number of records that move all records at once. What they share with other moves, the posterior where
# bounds bind, calibration and restarts, is in test-engine_surrogate.R.

resize_cases <- function() {
  bounds <- list(y = c(-10, 10), x = c(-3, 3), g = c("a", "b", "c"))
  crossed <- stat_crossprod(y ~ x + g, bounds)
  all <- crossed$components
  list(
    factor = list(statistic = crossed, at = all, model = model_lm(prior = prior_nig(), covariates = prior_niw())),
    # totals without those in each level, products of some pairs alone
    subset = list(statistic = crossed, at = c("y", "x", "gb", "y^2", "x:gb"), model = model_lm(prior = prior_normal(), sigma = prior_half_normal(3))),
    totals = list(statistic = stat_crossprod(y ~ x, bounds[1:2], rescale = FALSE), at = c("y", "x", "x^2"),
                  model = model_lm(prior = prior_normal(), sigma = prior_exponential(1))),
    normal = list(statistic = stat_sums(~ x + I(x^2), list(x = c(10, 20)), rescale = FALSE), at = c("x", "x^2"), model = model_normal(prior = prior_nig(15, 1, 3, 12))),
    counts = list(statistic = stat_sums(~ x + I(x^2), list(x = c(0, 12)), rescale = FALSE), at = c("x", "x^2"), model = model_poisson(prior = prior_gamma(3, 0.5)))
  )
}

# before the others: a density that grows with n! would never end where nothing bounds n
test_that("where noise drowns everything n is between the ends of its prior, wherever that is likely", {
  skip_on_cran()
  one <- resize_cases()$factor
  release <- as_release(stats::setNames(seq_along(one$at), one$at), one$statistic, mech_gaussian(sd = 1e7), n = NULL, neighbours = "add_remove")
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, one$model, method = "augment", prior_n = prior_n("uniform", lower = 10, upper = 60), chains = 1, iter = 1400, warmup = 300, seed = 1)))
  n <- posterior::extract_variable_matrix(fit$draws, "n")
  expect_lt(abs(mean(n) - 35), 5 * posterior::mcse_mean(n))
  expect_lt(max(abs(range(n) - c(10, 60))), 4)
})

test_that("where noise drowns everything n has its prior, whatever was published", {
  skip_on_cran()
  cases <- resize_cases()
  for (case in names(cases)) {
    one <- cases[[case]]
    told <- stats::setNames(c(3, -2, 1, 40, 20, 5, 7, 9, 30, 4, 1)[seq_along(one$at)], one$at)
    release <- as_release(told, one$statistic, mech_gaussian(sd = 1e7), n = NULL, neighbours = "add_remove")
    fit <- suppressWarnings(sample_posterior(release, one$model, method = "augment", prior_n = prior_n("negative_binomial", mean = 30, size = 6), chains = 2, iter = 800,
                                             warmup = 500, thin = 2, seed = 1))
    expect_gt(min(acceptance(fit)$tilted), 0.1, label = case)
    n <- posterior::extract_variable_matrix(fit$draws, "n")
    for (cut in stats::qnbinom(stats::ppoints(8), 6, mu = 30)) {
      below <- n <= cut
      expect_lt(abs(mean(below) - stats::pnbinom(cut, 6, mu = 30)), 5 * posterior::mcse_mean(below + 0), label = paste(case, cut))
    }
  }
})

test_that("few records: no step leaves what no step comes back to", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-3, 3)))
  release <- as_release(c(1, 2, 3, 1, 3), statistic, mech_gaussian(sd = 1e7), n = NULL, neighbours = "add_remove")
  model <- model_lm(prior = prior_nig(), covariates = prior_niw())
  fit <- suppressWarnings(sample_posterior(release, model, method = "augment", prior_n = prior_n("uniform", lower = 1, upper = 8), chains = 2, iter = 3500, warmup = 500, seed = 1))
  n <- posterior::extract_variable_matrix(fit$draws, "n")
  for (cut in 1:7) expect_lt(abs(mean(n <= cut) - cut / 8), 5 * posterior::mcse_mean((n <= cut) + 0), label = cut)
})

test_that("real data of unknown number: chains agree by default", {
  skip_on_cran()
  births <- transform(MASS::birthwt, smoke = factor(smoke))
  statistic <- stat_crossprod(bwt ~ age + smoke, list(bwt = c(500, 5500), age = c(14, 50), smoke = c("0", "1")))
  published <- with_seed(1, simulate_release(births, statistic, mech_laplace(epsilon = 10), neighbours = "add_remove"))
  release <- as_release(published$value, statistic, mech_laplace(epsilon = 10), n = NULL, neighbours = "add_remove")
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), seed = 1)))
  expect_lt(max(posterior::rhat(fit)), 1.1)
  expect_gt(min(posterior::ess_bulk(fit)), 100)
})

test_that("chains start at a number of records that totals can have", {
  statistic <- stat_sums(~ x + I(x^2), list(x = c(40, 100)), rescale = FALSE)
  release <- as_release(c(12891, 1414283), statistic, mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  size <- typical_size(release, prior_n("log_uniform"))
  expect_gt(size$n, 1414283 / 1e4) # every square is at most 10,000, and at least 1,600
  expect_lt(size$n, 1414283 / 1600)
  expect_lt(size$sd, size$n)
  expect_lt(abs(typical_size(release, prior_n("poisson", mean = 200))$n - 200), 30)
  # no total tells: as before, somewhere above what it takes
  even <- as_release(c(x = 300), stat_sums(~ x, list(x = c(-3, 3))), mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  expect_gt(typical_size(even, prior_n("log_uniform"))$n, 97)
  falling <- as_release(c(x = -300), stat_sums(~ x, list(x = c(-3, -1))), mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  expect_gt(typical_size(falling, prior_n("log_uniform"))$n, 97)
  expect_lt(typical_size(falling, prior_n("log_uniform"))$n, 310)
})

# Draws of everything from the prior, the records' totals without the package's C code, and the weights that a release gives.
weighted_resize <- function(statistic, model, z, kernel, scale, size, draws = 40000) {
  p <- prior_draws(model, statistic, draws)
  n <- stats::rnbinom(draws, size[[2]], mu = size[[1]])
  of <- rep(seq_len(draws), n)
  if (length(z) == 1) {
    t <- cbind(pmin(stats::rpois(length(of), p[of, "rate"]), 4))
  } else if (length(z) == 2) {
    x <- pmin(pmax(stats::rnorm(length(of), p[of, "mean"], p[of, "sd"]), -1), 2)
    t <- cbind(x, x^2)
  } else {
    x <- stats::rnorm(length(of), p[of, "mean[x]"], sqrt(p[of, "cov[x,x]"]))
    mean <- p[of, "(Intercept)"] + p[of, "x"] * x
    g <- NULL
    if ("gb" %in% colnames(p)) {
      g <- stats::runif(length(of)) < p[of, "prob[g=b]"]
      mean <- mean + p[of, "gb"] * g
    }
    t <- r_components(statistic, cbind(y = stats::rnorm(length(of), mean, p[of, "sigma"]), x, g))
  }
  s <- matrix(0, draws, length(z))
  s[unique(of), ] <- rowsum(t, of, reorder = FALSE)
  log_weight <- log_noise(kernel, rep(scale, length(z)), z, s)
  colnames(s) <- paste("total of", statistic$components)
  list(exact = data.frame(p, n = n, s, check.names = FALSE), weight = exp(log_weight - max(log_weight)))
}

# Draws of n, the parameters and the totals against those of weighted_resize(): the shares of them below some values.
expect_weighted_draws <- function(fit, prior, case) {
  totals <- posterior::as_draws_array(denoise(fit))
  posterior::variables(totals) <- paste("total of", posterior::variables(totals))
  all <- posterior::bind_draws(posterior::as_draws_array(fit$draws), totals)
  size <- sum(prior$weight)^2 / sum(prior$weight^2)
  expect_gt(size, 300)
  for (name in setdiff(names(prior$exact), "prob[g=b]")) {
    draws <- posterior::extract_variable_matrix(all, name)
    order <- order(prior$exact[[name]])
    cumulative <- cumsum(prior$weight[order]) / sum(prior$weight)
    for (p in c(0.1, 0.5, 0.9)) {
      at <- prior$exact[[name]][order][which(cumulative >= p)[1]]
      below <- draws <= at
      share <- sum(prior$weight[prior$exact[[name]] <= at]) / sum(prior$weight) # more than p where values are whole numbers
      error <- sqrt(posterior::mcse_mean(below + 0)^2 + p * (1 - p) / size)
      expect_lt(abs(mean(below) - share) / error, 5, label = paste(case, name, p))
    }
  }
}

test_that("bounds that bind, moderate noise: all draws of the prior, weighted", {
  skip_on_cran()
  cases <- list(
    normal = list(statistic = stat_sums(~ x + I(x^2), list(x = c(-1, 2)), rescale = FALSE), model = model_normal(prior = prior_nig(0.5, 1, 3, 3)),
                  mechanism = mech_laplace(scale = 1), kernel = "absolute", scale = 1, z = c(15, 25)),
    counts = list(statistic = stat_sums(~ x, list(x = c(0, 4))), model = model_poisson(prior = prior_gamma(2, 0.5)),
                  mechanism = mech_laplace(scale = 2), kernel = "absolute", scale = 2, z = 60),
    factor = list(statistic = stat_crossprod(y ~ x + g, list(y = c(-1, 1), x = c(-0.8, 0.8), g = c("a", "b"))),
                  model = model_lm(prior = prior_nig(0, 1, 3, 1), covariates = prior_niw()),
                  mechanism = mech_gaussian(sd = 7), kernel = "squared", scale = 7, z = c(10, 3, 4, 22, 6, 8, 20, 5))
  )
  for (case in names(cases)) {
    one <- cases[[case]]
    told <- as_release(stats::setNames(one$z, one$statistic$components), one$statistic, one$mechanism, n = NULL, neighbours = "add_remove")
    fit <- with_seed(1, suppressWarnings(sample_posterior(told, one$model, method = "augment", prior_n = prior_n("negative_binomial", mean = 25, size = 4), chains = 2, iter = 1000,
                                                          warmup = 500, seed = 1)))
    prior <- with_seed(2, weighted_resize(one$statistic, one$model, one$z, one$kernel, one$scale, c(25, 4)))
    expect_weighted_draws(fit, prior, case)
  }
})

test_that("scatters that are drawn anew: all draws of the prior, weighted, under noise that is wide beside them", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-3, 3)), rescale = FALSE)
  model <- model_lm(prior = prior_nig(0, 1, 3, 3), covariates = prior_niw())
  z <- c(3, 2, 40, 15, 30)
  told <- as_release(stats::setNames(z, statistic$components), statistic, mech_gaussian(sd = 15), n = NULL, neighbours = "add_remove")
  fit <- suppressWarnings(sample_posterior(told, model, method = "augment", prior_n = prior_n("negative_binomial", mean = 25, size = 4), chains = 2, iter = 2500, warmup = 500, seed = 1))
  prior <- with_seed(2, weighted_resize(statistic, model, z, "squared", 15, c(25, 4), 80000))
  expect_weighted_draws(fit, prior, "wide noise")
})

test_that("bounds that bind: records with the totals that were solved for", {
  skip_on_cran()
  cases <- list(
    normal = list(statistic = stat_sums(~ x + I(x^2), list(x = c(-1, 2)), rescale = FALSE), model = model_normal(prior = prior_nig(0.5, 1, 3, 3)), scale = 0.12, z = c(5, 8)),
    regression = list(statistic = stat_crossprod(y ~ x, list(y = c(-1, 1), x = c(-0.8, 0.8))),
                      model = model_lm(prior = prior_nig(0, 1, 3, 1), covariates = prior_niw()), scale = 1, z = c(2, 1, 4, 2, 3))
  )
  for (case in names(cases)) {
    one <- cases[[case]]
    told <- as_release(stats::setNames(one$z, one$statistic$components), one$statistic, mech_laplace(scale = one$scale), n = NULL, neighbours = "add_remove")
    fit <- suppressWarnings(sample_posterior(told, one$model, method = "augment", prior_n = prior_n("negative_binomial", mean = 7, size = 4), chains = 2, iter = 520,
                                             warmup = 500, seed = 1))
    for (k in seq_along(fit$chains)) {
      if (case == "normal") expect_lt(fit$chains[[k]]$state$size[14], 0.5 * fit$chains[[k]]$state$size[15]) # so it is chosen
      fit$chains[[k]]$state$size[14:15] <- c(0, 1) # and here in any case
    }
    fit <- suppressWarnings(extend(fit, 1500))
    prior <- with_seed(2, weighted_resize(one$statistic, one$model, one$z, "absolute", one$scale, c(7, 4), 1.5e5))
    expect_weighted_draws(fit, prior, case)
  }
})

test_that("where noise drowns everything n has its prior by steps that solve for totals, too", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x, list(y = c(-1, 1), x = c(-0.8, 0.8)))
  release <- as_release(c(2, 1, 9, 3, 6), statistic, mech_gaussian(sd = 1e7), n = NULL, neighbours = "add_remove")
  model <- model_lm(prior = prior_nig(0, 1, 3, 1), covariates = prior_niw())
  fit <- suppressWarnings(sample_posterior(release, model, method = "augment", prior_n = prior_n("uniform", lower = 4, upper = 43), chains = 2, iter = 700, warmup = 500, seed = 3))
  for (k in 1:2) fit$chains[[k]]$state$size[14:15] <- c(0, 1)
  fit <- suppressWarnings(extend(fit, 7000))
  expect_gt(min(acceptance(fit)$tilted), 0.2)
  n <- posterior::extract_variable_matrix(fit$draws, "n")
  for (cut in seq(5, 41, 4)) expect_lt(abs(mean(n <= cut) - (cut - 3) / 40), 5 * posterior::mcse_mean((n <= cut) + 0), label = cut)
})

test_that("noise of the size of the totals, n as unknown as they are: as by the distribution of the totals", {
  skip_on_cran() # takes long; `make test` runs it
  sums <- function(terms, lower, upper) stat_sums(terms, list(x = c(lower, upper)), rescale = FALSE)
  normal <- as_release(c(150, 520), sums(~ x + I(x^2), -8, 8), mech_laplace(scale = 25), n = NULL, neighbours = "add_remove")
  counts <- as_release(400, sums(~ x, 0, 60), mech_laplace(scale = 60), n = NULL, neighbours = "add_remove")
  draw <- function(release, model, method, iter) {
    fit <- suppressWarnings(sample_posterior(release, model, method = method, prior_n = prior_n("uniform", lower = 100, upper = 900), chains = 2, iter = iter, warmup = 500, seed = 2))
    totals <- posterior::as_draws_array(denoise(fit))
    posterior::variables(totals) <- paste("total of", posterior::variables(totals))
    posterior::summarise_draws(posterior::bind_draws(posterior::as_draws_array(fit$draws), totals), "mean", "sd", "mcse_mean", "mcse_sd")
  }
  for (case in list(list(normal, model_normal(prior = prior_nig(0.4, 1, 4, 4))), list(counts, model_poisson(prior = prior_gamma(2, 1))))) {
    records <- draw(case[[1]], case[[2]], "augment", 3000)
    totals <- draw(case[[1]], case[[2]], "collapse", 8000)
    expect_lt(max(abs(records$mean - totals$mean) / sqrt(records$mcse_mean^2 + totals$mcse_mean^2)), 5)
    expect_lt(max(abs(records$sd - totals$sd) / sqrt(records$mcse_sd^2 + totals$mcse_sd^2)), 5)
  }
})

test_that("records that came and went are in no order of their levels: sweeps visit them in theirs", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x + g, list(y = c(-4, 4), x = c(-3, 3), g = c("a", "b")))
  data <- with_seed(1, data.frame(y = rnorm(120), x = rnorm(120), g = sample(c("a", "b"), 120, TRUE)))
  noise <- mech_laplace(epsilon = 2)
  value <- with_seed(1, simulate_release(data, statistic, noise, neighbours = "add_remove"))$value
  release <- as_release(value, statistic, noise, n = NULL, neighbours = "add_remove")
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), method = "augment", prior_n = prior_n("negative_binomial", mean = 120, size = 5), chains = 16,
                                                            iter = 400, warmup = 200, seed = 1)))
  n <- utils::tail(posterior::extract_variable_matrix(fit$draws, "n"), 1)
  # changes of level from a record to the next: their mean and variance in a random order (Wald & Wolfowitz 1940)
  off <- vapply(seq_along(fit$chains), function(k) {
    g <- matrix(fit$chains[[k]]$state$x, ncol = 3)[seq_len(n[k]), 3]
    mean <- 2 * sum(g) * sum(1 - g) / length(g)
    c(sum(diff(g) != 0) - mean, mean * (mean - 1) / (length(g) - 1))
  }, c(0, 0))
  expect_lt(abs(sum(off[1, ])) / sqrt(sum(off[2, ])), 3.5)
})

test_that("more records than are solved for: steps of n are made all the same", {
  skip_on_cran()
  set.seed(5)
  data <- data.frame(x = rnorm(30000), y = rnorm(30000))
  release <- simulate_release(data, stat_crossprod(y ~ x, list(y = c(-1, 1), x = c(-1, 1))), mech_laplace(scale = 2), neighbours = "add_remove")
  release["n"] <- list(NULL)
  model <- model_lm(prior = prior_nig())
  fit <- suppressWarnings(sample_posterior(release, model, method = "augment", prior_n = prior_n("uniform", lower = 20001, upper = 40000), chains = 1, iter = 600, warmup = 500, seed = 1))
  expect_gt(acceptance(fit)$tilted, 0.05)
  n <- posterior::extract_variable(fit$draws, "n")
  expect_lt(max(abs(n - 30000)), 5000)
})

test_that("where n is by margins and the prior: their average with the weights of their precision", {
  levels <- list(a = c("p", "q"), b = c("u", "v", "w"))
  of <- function(mechanism) as_release(c("a=p" = 40, "a=q" = 52, "b=u" = 30, "b=v" = 31, "b=w" = 37), stat_counts(~ a + b, levels), mechanism, n = NULL, neighbours = "add_remove")
  average <- function(n, sd) list(n = round(sum(n / sd^2) / sum(1 / sd^2)), sd = 1 / sqrt(sum(1 / sd^2)))
  # a Laplace scale of 2 is a variance of 8 for each count
  expect_equal(typical_size(of(mech_laplace(scale = 2)), prior_n("log_uniform")), average(c(92, 98), sqrt(c(16, 24))))
  expect_equal(typical_size(of(mech_gaussian(sd = 2)), prior_n("poisson", mean = 120)), average(c(92, 98, 120), sqrt(c(8, 12, 120))))
  expect_identical(typical_size(of(mech_laplace(scale = 2)), prior_n("uniform", lower = 60, upper = 80))$n, 80)
})
