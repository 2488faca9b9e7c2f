# Method "collapse" for the total of a Poisson or exponential variable: the rate's
# posterior is a mixture over the total, computed by summation or quadrature.

wide <- list(x = c(0, 1e6))
total_fit <- function(release, model, ...) sample_posterior(release, model, method = "collapse", chains = 2, iter = 4700, warmup = 1200, ...)

# noise's log density at the totals s
noise_at <- function(rel, mechanism, s) log_noise(mechanism$kernel, unname(rel$scale), unname(rel$value), cbind(s))

check_mixture <- function(fit, s, log_weight, shape, rate) {
  likely <- log_weight > max(log_weight) - 40
  s <- s[likely]
  shape <- shape[likely]
  rate <- rate[likely]
  p <- exp(log_weight[likely] - max(log_weight))
  p <- p / sum(p)
  cumulative <- function(x) sum(p * stats::pgamma(x, shape, rate))
  ends <- range(stats::qgamma(c(1e-6, 1 - 1e-6), shape[which.max(p)], rate[which.max(p)]), parameter_draws(fit, "rate")) * c(0.5, 2)
  quantile <- function(q) stats::uniroot(function(x) cumulative(x) - q, ends, tol = 1e-12 * ends[2])$root
  expect_distribution(parameter_draws(fit, "rate"), quantile, sum(p * shape / rate))
  total <- posterior::extract_variable_matrix(denoise(fit), "x")
  expect_same_mean(total, sum(p * s))
  expect_same_mean((total - sum(p * s))^2, sum(p * (s - sum(p * s))^2))
}

test_that("Poisson: the closed mixture", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~x, bounds = wide)
  model <- model_poisson(prior = prior_gamma(1.7, 0.4))
  for (mechanism in list(mech_laplace(scale = 6), mech_gaussian(sd = 0.7), mech_laplace(scale = 300))) {
    for (n in c(1, 20)) {
      rel <- as_release(if (n == 1) 4.3 else 61.2, st, mechanism, n)
      s <- 0:20000
      weight <- stats::dnbinom(s, 1.7, 0.4 / (0.4 + n), log = TRUE) + noise_at(rel, mechanism, s)
      check_mixture(total_fit(rel, model, seed = 1), s, weight, 1.7 + s, rep(0.4 + n, length(s)))
    }
  }
})

test_that("exponential: quadrature over the total", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~x, bounds = wide)
  model <- model_exponential(prior = prior_gamma(3.2, 0.9))
  for (mechanism in list(mech_laplace(scale = 2), mech_gaussian(sd = 0.3), mech_laplace(scale = 100))) {
    for (n in c(1, 15)) {
      rel <- as_release(if (n == 1) 0.8 else 7.5, st, mechanism, n)
      s <- sort(c(exp(seq(log(1e-8), log(1e6), length.out = 8000)), rel$value + seq(-5, 5, length.out = 4001) * rel$scale))
      s <- s[s > 0]
      width <- c(diff(s), 0) / 2 + c(0, diff(s)) / 2
      weight <- (n - 1) * log(s) - (3.2 + n) * log(0.9 + s) + noise_at(rel, mechanism, s) + log(width)
      fit <- total_fit(rel, model, seed = 2)
      if (mechanism$kernel == "absolute" && rel$scale > 50) { # a total with long tails
        p <- exp(weight - max(weight))
        expect_distribution(log(posterior::extract_variable_matrix(denoise(fit), "x")), function(q) log(s[findInterval(q, cumsum(p) / sum(p)) + 1]))
      } else {
        check_mixture(fit, s, weight, rep(3.2 + n, length(s)), 0.9 + s)
      }
    }
  }
})

test_that("a thousand million records", {
  n <- 1e9
  rel <- as_release(c(2.5 * n), stat_sums(~x, bounds = list(x = c(0, 100))), mech_laplace(epsilon = 0.01), n)
  for (model in list(model_poisson(prior = prior_gamma(2, 1)), model_exponential(prior = prior_gamma(2, 1)))) {
    fit <- total_fit(rel, model, seed = 3)
    total <- posterior::extract_variable_matrix(denoise(fit), "x")
    expect_same_mean(total - 2.5 * n, 0)
    # the prior is flat at the scale of the noise: the total has the noise's distribution
    expect_distribution((total - 2.5 * n) / rel$scale, function(p) ifelse(p < 0.5, log(2 * p), -log(2 - 2 * p)))
    expect_lt(posterior::rhat(parameter_draws(fit, "rate")), 1.01)
  }
})

test_that("two noisy totals of the same variable, against imputed records", {
  st <- list(a = stat_sums(~x, bounds = list(x = c(0, 400))), b = stat_sums(~x, bounds = list(x = c(0, 300)), outside = "drop"))
  mechanism <- list(a = mech_laplace(scale = 5), b = mech_gaussian(sd = 4))
  for (model in list(model_poisson(prior = prior_gamma(2, 0.8)), model_exponential(prior = prior_gamma(6, 8)))) {
    rel <- as_release(c(25, 31), st, mechanism, 8)
    exact <- parameter_draws(sample_posterior(rel, model, method = "augment", chains = 2, iter = 4400, warmup = 600, seed = 1), "rate")
    draws <- parameter_draws(total_fit(rel, model, seed = 2), "rate")
    keep <- function(draws) as.vector(draws)[unique(round(seq(1, length(draws), length.out = posterior::ess_basic(draws) / 2)))]
    expect_gt(suppressWarnings(stats::ks.test(keep(draws), keep(exact)))$p.value, 1e-6)
  }
})

test_that("the share of records outside the bounds, restarts, refusals", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(30, stat_sums(~x, bounds = list(x = c(1, 6))), mech_laplace(scale = 3), 10)
  for (model in list(model_poisson(prior = prior_gamma(2, 1)), model_exponential(prior = prior_gamma(2, 4)))) {
    run <- function(iter, ...) sample_posterior(rel, model, method = "collapse", chains = 2, iter = iter, warmup = 200, seed = 4, ...)
    fit <- run(600)
    rate <- parameter_draws(fit, "rate")[, 1]
    share <- if (inherits(model, "model_poisson")) ppois(0, rate) + ppois(6, rate, lower.tail = FALSE) else pexp(1, rate) + pexp(6, rate, lower.tail = FALSE)
    expect_equal(fit$chains[[1]]$outside, share, tolerance = 1e-10)
    expect_output(print(fit), "NOT exact: records may lie outside the bounds\n +expected share of records outside")
    expect_identical(fit$exact, NA)
    expect_identical(extend(run(400), 200)$draws, fit$draws)
    expect_identical(extend(run(201), 399)$chains, fit$chains)
    expect_error(run(300, control = list(passes = 1)), class = "noiseaware_error_argument")
    expect_named(acceptance(fit), c("chain", "mean", "fresh"))
    expect_false(identical(run(400, init = list(c(rate = 9), c(rate = 9)))$draws, run(400)$draws))
    squares <- as_release(c(30, 90), stat_sums(~ x + I(x^2), bounds = list(x = c(0, 6)), rescale = FALSE), mech_laplace(scale = 3), 10)
    expect_error(sample_posterior(squares, model, method = "collapse"), "only the total of its variable", class = "noiseaware_error_method")
  }
})

test_that("joint-distribution test", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(33)
  for (model in list(model_poisson(prior = prior_gamma(3, 1)), model_exponential(prior = prior_gamma(3, 1)))) {
    st <- stat_sums(~x, bounds = wide)
    prior <- matrix(stats::qgamma(stats::ppoints(1e5), 3, 1), dimnames = list(NULL, "rate"))
    for (mechanism in list(mech_laplace(scale = 8), mech_gaussian(sd = 3))) {
      expect_prior(geweke_totals(model, st, mechanism, 10, 3200), prior)
    }
  }
})

# ---- the number of records is unknown --------------------------------------------------------

# a release of a total, and of n if `size` is given
sized_release <- function(total, noise, size = NULL, size_noise = NULL) {
  st <- stat_sums(~ x, bounds = wide)
  if (is.null(size)) return(as_release(total, st, noise, n = NULL, neighbours = "add_remove"))
  as_release(list(t = total, size = size), list(t = st, size = stat_size()), list(t = noise, size = size_noise), n = NULL, neighbours = "add_remove")
}

check_sized <- function(fit, s, n, log_weight, shape, rate, total) {
  p <- exp(log_weight - max(log_weight))
  p <- p / sum(p)
  drawn <- list(parameter_draws(fit, "n"), posterior::extract_variable_matrix(denoise(fit), total), parameter_draws(fit, "rate"))
  expect_same_mean(drawn[[1]], sum(p * n))
  expect_same_mean(drawn[[1]]^2, sum(p * n^2))
  expect_same_mean(drawn[[2]], sum(p * s))
  expect_same_mean(drawn[[2]]^2, sum(p * s^2))
  expect_same_mean(drawn[[1]] * drawn[[2]], sum(p * n * s))
  expect_same_mean(drawn[[3]], sum(p * shape / rate))
}

test_that("unknown n, Poisson: every total and number of records", {
  skip_on_cran() # takes long; `make test` runs it
  grid <- expand.grid(s = 0:150, n = 0:60)
  one <- stats::dnbinom(grid$s, 1.7, 0.4 / (0.4 + grid$n), log = TRUE)
  one[grid$n == 0] <- ifelse(grid$s[grid$n == 0] == 0, 0, -Inf)
  cases <- list(
    list(sized_release(12.3, mech_laplace(scale = 6), 5, mech_gaussian(sd = 3)), prior_n("poisson", mean = 7), dpois(grid$n, 7, log = TRUE),
         -abs(grid$s - 12.3) / 6 - (grid$n - 5)^2 / 18, "t: x"),
    list(sized_release(30.2, mech_gaussian(sd = 1), 20, mech_discrete_laplace(scale = 4)), prior_n("negative_binomial", mean = 15, size = 2),
         dnbinom(grid$n, 2, mu = 15, log = TRUE), -(grid$s - 30.2)^2 / 2 - abs(grid$n - 20) / 4, "t: x"),
    # nothing is released of n; the total may be 0
    list(sized_release(-0.4, mech_laplace(scale = 1.5)), prior_n("uniform", lower = 0, upper = 6), ifelse(grid$n <= 6, 0, -Inf), -abs(grid$s + 0.4) / 1.5, "x")
  )
  for (case in cases) {
    fit <- sample_posterior(case[[1]], model_poisson(prior = prior_gamma(1.7, 0.4)), method = "collapse", prior_n = case[[2]], chains = 2,
                            iter = 9400, warmup = 1000, seed = 1)
    expect_identical(fit$problem$family, "total")
    check_sized(fit, grid$s, grid$n, one + case[[3]] + case[[4]], 1.7 + grid$s, 0.4 + grid$n, case[[5]])
  }
  expect_true("records" %in% names(acceptance(fit)))
})

test_that("unknown n, exponential: quadrature over the total, every number of records", {
  skip_on_cran() # takes long; `make test` runs it
  grid <- expand.grid(s = seq(0.01, 120, by = 0.04), n = 1:60)
  one <- lgamma(30 + grid$n) - lgamma(grid$n) + (grid$n - 1) * log(grid$s) - (30 + grid$n) * log(20 + grid$s)
  rel <- sized_release(11.1, mech_laplace(scale = 4), 25, mech_gaussian(sd = 8))
  # the prior knows the rate, about 1.5, so that n and the total go together
  fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(30, 20)), method = "collapse", prior_n = prior_n("poisson", mean = 20), chains = 2,
                          iter = 9400, warmup = 1000, seed = 1)
  weight <- one + dpois(grid$n, 20, log = TRUE) - abs(grid$s - 11.1) / 4 - (grid$n - 25)^2 / 128
  check_sized(fit, grid$s, grid$n, weight, 30 + grid$n, 20 + grid$s, "t: x")
})

test_that("unknown n of a total: the limit of n known, restarts, refusals", {
  rel <- sized_release(61.2, mech_laplace(scale = 6), 20, mech_gaussian(sd = 0.01))
  ask <- function(iter, ..., of = rel) sample_posterior(of, model_poisson(), method = "collapse", chains = 2, iter = iter, warmup = 300, seed = 1, ...)
  long <- ask(8000)
  expect_true(all(parameter_draws(long, "n") == 20))
  known <- sample_posterior(as_release(61.2, stat_sums(~ x, wide), mech_laplace(scale = 6), 20), model_poisson(), method = "collapse", chains = 2,
                            iter = 3100, warmup = 300, seed = 2)
  expect_agreement(parameter_draws(long, "rate"), parameter_draws(known, "rate"))
  expect_identical(extend(ask(400), 100)$draws, ask(500)$draws)
  loose <- sized_release(61.2, mech_laplace(scale = 6), 20, mech_gaussian(sd = 3))
  expect_identical(extend(ask(400, of = loose), 100)$draws, ask(500, of = loose)$draws)
  expect_match(paste(capture.output(print(ask(400))), collapse = " "), "not known \\(n\\)")
  expect_error(ask(400, prior_n = prior_n("uniform", lower = 0, upper = 0)), "allows at least one record", class = "noiseaware_error_method")
  # one engine for n known with its noisy value as well
  both <- as_release(list(t = 61.2, size = 19), list(t = stat_sums(~ x, wide), size = stat_size()),
                     list(t = mech_laplace(scale = 6), size = mech_laplace(scale = 3)), n = 20, neighbours = "add_remove")
  fit <- sample_posterior(both, model_poisson(), method = "collapse", chains = 1, iter = 50, seed = 1)
  expect_true(all(posterior::extract_variable_matrix(denoise(fit), "size: n") == 20))
})

test_that("unknown n of a total: calibrated, n drawn too", {
  skip_on_cran() # takes long; `make test` runs it
  st <- list(t = stat_sums(~ x, bounds = wide), size = stat_size())
  for (model in list(model_poisson(prior = prior_gamma(3, 1)), model_exponential(prior = prior_gamma(3, 1)))) {
    cal <- calibrate(model, st, list(t = mech_laplace(scale = 5), size = mech_gaussian(sd = 4)), n = prior_n("poisson", mean = 15), replicates = 50,
                     method = "collapse", chains = 1, iter = 700, warmup = 200, seed = 4, neighbours = "add_remove")
    expect_gt(min(summary(cal)$p.value), 1e-4)
  }
})
