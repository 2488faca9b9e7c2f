# Several sites: exact posteriors, joint-distribution tests, limits, restarts, errors.

yes_likelihood <- function(p) {
  sum_of_totals(p, 30, function(s) -abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2) * sum_of_totals(p, 20, function(s) -(11 - s)^2 / 18)
}

test_that("one probability for two sites: quadrature", {
  grid <- seq(0.0005, 0.9995, by = 0.0005)
  quantile <- grid_quantile(grid, yes_likelihood(grid) * dbeta(grid, 2, 3))
  fit <- sample_posterior(two_yes(), model_bernoulli(prior = prior_beta(2, 3)), pool = "complete", iter = 2400, seed = 1)
  expect_distribution(parameter_draws(fit, "prob[yes]"), quantile)
  expect_true(fit$exact)
  # the totals given the releases
  d <- denoise(fit)
  expect_identical(posterior::variables(d), c("smoke=no[north]", "smoke=yes[north]", "smoke=yes[south]"))
  s <- posterior::extract_variable_matrix(d, "smoke=yes[north]")
  expect_equal(unname(c(s)), 30 - unname(c(posterior::extract_variable_matrix(d, "smoke=no[north]"))))
  p <- seq(0.0025, 0.9975, by = 0.005)
  joint <- outer(0:30, p, function(s, p) dbinom(s, 30, p) * exp(-abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2)) %*%
    (sum_of_totals(p, 20, function(s) -(11 - s)^2 / 18) * dbeta(p, 2, 3))
  expect_same_mean(s, sum(0:30 * joint) / sum(joint))
})

test_that("a total of 0 and 1, and one that was hidden because it was small", {
  total <- stat_sums(~ smoke, bounds = list(smoke = c(0, 1)))
  sites <- list(shown = as_release(9.4, total, mech_laplace(scale = 1.5), n = 25),
                hidden = as_release(NA, total, published(mech_laplace(scale = 1.5), threshold = 5), n = 25))
  grid <- seq(0.0005, 0.9995, by = 0.0005)
  below <- function(s) {
    away <- (5 - s) / 1.5
    log(ifelse(away > 0, 1 - exp(-away) / 2, exp(away) / 2))
  }
  quantile <- grid_quantile(grid, sum_of_totals(grid, 25, function(s) -abs(9.4 - s) / 1.5) * sum_of_totals(grid, 25, below))
  fit <- sample_posterior(sites, model_bernoulli(), pool = "complete", iter = 2400, seed = 2)
  expect_distribution(parameter_draws(fit, "prob[1]"), quantile)
})

test_that("an exact number beside a noisy one", {
  sites <- list(exact = as_release(c("smoke=yes" = 9), smoking(), mech_exact(), n = 25), noisy = two_yes()$south)
  grid <- seq(0.0005, 0.9995, by = 0.0005)
  quantile <- grid_quantile(grid, dbinom(9, 25, grid) * sum_of_totals(grid, 20, function(s) -(11 - s)^2 / 18))
  fit <- sample_posterior(sites, model_bernoulli(), pool = "complete", iter = 2400, seed = 2)
  expect_distribution(parameter_draws(fit, "prob[yes]"), quantile)
  expect_true(all(posterior::extract_variable_matrix(denoise(fit), "smoke=yes[exact]") == 9))
})

test_that("a Poisson rate: quadrature", {
  total <- stat_sums(~ x, bounds = list(x = c(0, 20)))
  sites <- list(a = as_release(31.4, total, mech_laplace(scale = 6), n = 8), b = as_release(77, total, mech_gaussian(sd = 5), n = 15))
  grid <- seq(0.01, 15, by = 0.01)
  s <- 0:400
  likelihood <- function(n, log_noise) vapply(grid, function(rate) sum(dpois(s, n * rate) * exp(log_noise)), 0)
  density <- likelihood(8, -abs(31.4 - s) / 6) * likelihood(15, -(77 - s)^2 / 50) * dgamma(grid, 2, 0.4)
  fit <- sample_posterior(sites, model_poisson(prior = prior_gamma(2, 0.4)), pool = "complete", iter = 2400, seed = 3)
  expect_distribution(parameter_draws(fit, "rate"), grid_quantile(grid, density))
})

# p(z | rate) of the total of n exponential records, by R's own integration
exponential_likelihood <- function(rate, n, noise, ends) {
  vapply(rate, function(rate) {
    f <- function(s) stats::dgamma(s, n, rate) * noise(s)
    sum(vapply(seq_len(length(ends) - 1L), function(k) stats::integrate(f, ends[k], ends[k + 1L], rel.tol = 1e-9, subdivisions = 1000L)$value, 0))
  }, 0)
}

waits <- function() {
  total <- stat_sums(~ x, bounds = list(x = c(0, 200)))
  list(a = as_release(31.4, total, mech_laplace(scale = 6), n = 8), b = as_release(77, total, mech_gaussian(sd = 5), n = 15),
       c = as_release(-2, total, mech_laplace(scale = 9), n = 3))
}

# rows: rates; columns: the sites
waits_likelihood <- function(rate) {
  cbind(exponential_likelihood(rate, 8, function(s) exp(-abs(31.4 - s) / 6), c(0, 10, 31.4, 60, 150, 400)),
        exponential_likelihood(rate, 15, function(s) exp(-(77 - s)^2 / 50), c(0, 20, 60, 77, 95, 130)),
        exponential_likelihood(rate, 3, function(s) exp(-abs(-2 - s) / 9), c(0, 1, 5, 20, 150, 500)))
}

test_that("an exponential rate: R's integration over the totals", {
  skip_on_cran() # takes long; `make test` runs it
  grid <- exp(seq(log(0.03), log(3), length.out = 400))
  likelihood <- waits_likelihood(grid)
  model <- model_exponential(prior = prior_gamma(2, 4))
  fit <- sample_posterior(waits(), model, pool = "complete", iter = 2400, seed = 3)
  # the nodes' own error
  state <- internal("start_pool")(fit$problem, fit$bound, c(1, 2), 1L, NULL)
  told <- vapply(log(grid), function(t) .Call(internal("ffi_pool_density"), fit$problem, state, t), c(0, 0))
  exact <- rowSums(log(likelihood)) + dgamma(grid, 2, 4, log = TRUE) + log(grid)
  expect_lt(diff(range((told[1, ] - exact)[exact > max(exact) - 20])), 1e-3)
  expect_equal(told[2, 200], diff(told[1, c(199, 201)]) / diff(log(grid[c(199, 201)])), tolerance = 1e-3)
  expect_distribution(log(parameter_draws(fit, "rate")), grid_quantile(log(grid), exp(exact)))
  expect_true(is.na(fit$exact))
  expect_output(print(fit), "exact if no record lies outside the bounds")
  # the total of the first, given its release and a rate
  s <- seq(0.1, 200, by = 0.1)
  noise <- exp(-abs(31.4 - s) / 6)
  expected <- vapply(grid, function(rate) stats::weighted.mean(s, dgamma(s, 8, rate) * noise), 0)
  away <- posterior::extract_variable_matrix(denoise(fit), "x[a]") - approx(grid, expected, parameter_draws(fit, "rate"))$y
  expect_same_mean(away, 0)
})

test_that("many exponential records: nodes are as dense as their total is sure", {
  skip_on_cran() # takes long; `make test` runs it
  total <- stat_sums(~ x, bounds = list(x = c(0, 200)))
  for (scale in c(1e2, 1e4, 1e6)) {
    sites <- list(a = as_release(2.1e6, total, mech_laplace(scale = scale), n = 1e6))
    fit <- sample_posterior(sites, model_exponential(prior = prior_gamma(2, 4)), pool = "complete", chains = 1, iter = 60, seed = 1)
    grid <- seq(log(0.475), log(0.478), length.out = 6)
    state <- internal("start_pool")(fit$problem, fit$bound, c(1, 2), 1L, NULL)
    told <- vapply(grid, function(t) .Call(internal("ffi_pool_density"), fit$problem, state, t)[1L], 0)
    exact <- log(vapply(exp(grid), function(rate) {
      sd <- sqrt(1e6) / rate
      f <- function(s) stats::dgamma(s, 1e6, rate) * exp(-abs(2.1e6 - s) / scale)
      ends <- sort(c(1e6 / rate + c(-9, 0, 9) * sd, 2.1e6))
      sum(vapply(1:3, function(k) stats::integrate(f, ends[k], ends[k + 1L], rel.tol = 1e-10, subdivisions = 2000L)$value, 0))
    }, 0)) + dgamma(exp(grid), 2, 4, log = TRUE) + grid
    expect_lt(diff(range(told - exact)), 2e-3)
  }
})

test_that("many records, much noise: the rate may be in many stretches of its density", {
  skip_on_cran()
  sites <- list(north = as_release(c("smoke=yes" = 1300), smoking(), mech_laplace(scale = 600), n = 4000),
                south = as_release(c("smoke=yes" = 2100), smoking(), mech_laplace(scale = 900), n = 3000))
  fit <- sample_posterior(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = "complete", iter = 2400, seed = 1)
  at <- seq(-7, 7, by = 0.02)
  density <- sum_of_totals(plogis(at), 4000, function(s) -abs(1300 - s) / 600) * sum_of_totals(plogis(at), 3000, function(s) -abs(2100 - s) / 900)
  expect_distribution(qlogis(parameter_draws(fit, "prob[yes]")), grid_quantile(at, density * dbeta(plogis(at), 2, 3) * dlogis(at)))
})

test_that("Poisson records outside the bounds are told of", {
  total <- stat_sums(~ x, bounds = list(x = c(0, 6)))
  sites <- list(a = as_release(31.4, total, mech_laplace(scale = 6), n = 8), b = as_release(77, total, mech_gaussian(sd = 5), n = 15))
  fit <- sample_posterior(sites, model_poisson(prior = prior_gamma(2, 0.4)), pool = "complete", method = "collapse", chains = 1, iter = 2000, seed = 1)
  expect_true(is.na(fit$exact))
  expect_output(print(fit), "NOT exact: records may lie outside the bounds")
  expect_equal(internal("outside_bounds")(fit)[["share"]], mean(ppois(6, parameter_draws(fit, "rate"), lower.tail = FALSE)), tolerance = 1e-3)
})

test_that("a mean with known standard deviation: the normal distribution in closed form, sites of other bounds", {
  model <- model_normal(prior = list(mean = prior_normal(1, 2), sd = fixed(1.5)))
  sites <- list(a = as_release(13.1, stat_sums(~ x, bounds = list(x = c(-40, 40))), mech_gaussian(sd = 4), n = 9),
                b = as_release(41.9, stat_sums(~ x, bounds = list(x = c(-30, 60))), mech_gaussian(sd = 9), n = 25))
  n <- c(9, 25)
  variance <- n * 1.5^2 + c(4, 9)^2
  precision <- 1 / 4 + sum(n^2 / variance)
  mean <- (1 / 4 + sum(n * c(13.1, 41.9) / variance)) / precision
  fit <- sample_posterior(sites, model, pool = "complete", iter = 2400, seed = 4)
  expect_distribution(parameter_draws(fit, "mean"), function(p) qnorm(p, mean, 1 / sqrt(precision)), mean)
})

pool_parts <- function(sites, model) {
  bound <- internal("bind_sites")(model, sites, NULL)
  list(bound = bound, problem = internal("pool_problem")(sites, bound, NULL))
}

test_that("the gradient is that of the density", {
  set.seed(5)
  sites <- totals_sites()
  for (model in totals_models) {
    parts <- pool_parts(sites, model)
    state <- internal("start_pool")(parts$problem, parts$bound, internal("seed_words")(), 1L, NULL)
    keeps <- length(state$store) # more than there are coordinates
    size <- 3 * 5 + c(0, 1, 3)[match(list(model), totals_models)]
    expect_gt(keeps, size)
    q <- state$store[seq_len(size)] + rnorm(size, 0, 0.05)
    at <- function(q) .Call(internal("ffi_pool_density"), parts$problem, state, q)
    expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
  }
})

test_that("sampler and releases together keep the prior (Geweke)", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(6)
  # a sigma, or a covariance, near 0 holds such a chain: priors keep away from there
  kept <- model_lm(prior = prior_normal(0.3, 1), sigma = prior_inverse_gamma(6, 5), covariates = prior_niw(0.2, 2, 6, 8))
  for (model in list(totals_models$conjugate, kept)) {
    parts <- pool_parts(totals_sites(wider = 10), model)
    problem <- parts$problem
    state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
    internal("run_blocks")(problem, state, 600, list(warmup = 600, thin = 1), function(...) NULL)
    draws <- geweke_sites(problem, state, 5500)
    bound <- parts$bound
    prior <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 100000L)$theta)
    expect_prior(draws, prior)
  }
})

test_that("one site is what it is alone; almost no noise, and all records together", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  sites <- totals_sites()
  alone <- sample_posterior(sites$first, totals_models$conjugate, method = "collapse", iter = 2400, seed = 1)
  pooled <- sample_posterior(sites["first"], totals_models$conjugate, pool = "complete", iter = 2400, seed = 2)
  for (name in c("(Intercept)", "x", "mean[x]")) expect_agreement(parameter_draws(pooled, name), parameter_draws(alone, name), label = name)

  data <- lapply(c(a = 60, b = 90), function(n) {
    x <- rnorm(n, 0.3)
    data.frame(y = 0.5 + 0.8 * x + rnorm(n), x)
  })
  exact <- nonprivate_posterior(do.call(rbind, data), totals_models$conjugate, wide_totals(), chains = 2, iter = 10000, warmup = 1000, seed = 1)
  fit <- sample_posterior(lapply(data, simulate_release, wide_totals(), mech_gaussian(sd = 1e-3)), totals_models$conjugate, pool = "complete", seed = 1)
  for (name in c("(Intercept)", "x", "sigma", "mean[x]", "cov[x,x]")) expect_agreement(parameter_draws(fit, name), parameter_draws(exact, name), label = name)
})

test_that("sites in another order of variables, and with fewer components, have one posterior", {
  set.seed(8)
  data <- data.frame(y = rnorm(12), x = rnorm(12, 1))
  full <- stat_sums(~ x + y + I(x^2) + x:y + I(y^2), bounds = list(x = c(-300, 300), y = c(-300, 300)), rescale = FALSE)
  a <- simulate_release(data, full, mech_gaussian(sd = 1))
  b <- as_release(c(y = 3.2, x = 11.1), full, mech_gaussian(sd = 1), n = 12)
  fit <- sample_posterior(list(a = a, b = b), model_mvnormal(), pool = "complete", iter = 1000, seed = 1)
  expect_identical(posterior::variables(denoise(fit, site = "b")), c("x[b]", "y[b]"))
  expect_named(fit$release, c("a", "b"))
  expect_lt(max(posterior::summarise_draws(fit$draws)$rhat), 1.05)
})

test_that("a run cut in two is the same run; a seed fixes the draws", {
  set.seed(9)
  sites <- totals_sites()
  whole <- sample_posterior(sites, totals_models$kept, pool = "complete", chains = 2, iter = 300, warmup = 100, seed = 1)
  part <- sample_posterior(sites, totals_models$kept, pool = "complete", chains = 2, iter = 200, warmup = 100, seed = 1)
  expect_identical(extend(part, 100)$draws, whole$draws)
  expect_identical(update(part, iter = 300, warmup = 100)$draws, whole$draws)
})

test_that("what the chains of several sites report of their moves is possible", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  st <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1)))
  data <- data.frame(y = runif(20), x = runif(20))
  lines <- list(a = simulate_release(data, st, mech_laplace(epsilon = 3)), b = simulate_release(data, st, mech_laplace(epsilon = 3)))
  for (method in c("collapse", "clt", "augment")) for (pool in c("complete", "partial")) for (k in 1:2) {
    fit <- suppressWarnings(sample_posterior(list(two_yes(), lines)[[k]], list(model_bernoulli(), model_lm())[[k]], pool = pool, method = method, chains = 1, iter = 60, warmup = 30, seed = 1))
    expect_possible_moves(fit)
    expect_s3_class(acceptance(fit), "noiseaware_acceptance")
  }
})

test_that("separate fits are the fits of each site", {
  sites <- two_yes()
  fit <- sample_posterior(sites, model_bernoulli(), pool = "none", chains = 2, iter = 200, seed = 1)
  expect_true(fit$exact)
  expect_identical(posterior::variables(fit$draws), c("prob[yes,north]", "prob[yes,south]"))
  expect_equal(unname(c(coef(fit))), c(mean(fit$fits$north$draws), mean(fit$fits$south$draws)))
  expect_identical(fit$fits$south$release, sites$south)
  expect_identical(posterior::variables(denoise(fit, site = "south")), "smoke=yes[south]")
  expect_equal(nobs(fit), 50)
})

test_that("predictions, and what a fit prints", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(10)
  sites <- totals_sites()
  fit <- sample_posterior(sites, totals_models$conjugate, pool = "complete", chains = 2, iter = 400, seed = 1)
  new <- data.frame(x = c(0, 1))
  expect_equal(predict(fit, new), unname(drop(cbind(1, 0:1) %*% coef(fit))))
  expect_equal(predict(fit, new, site = "second"), predict(fit, new))
  separate <- sample_posterior(sites[1:2], totals_models$conjugate, pool = "none", chains = 2, iter = 200, seed = 1)
  expect_equal(predict(separate, new, site = "second"), predict(separate$fits$second, new))
  expect_output(print(fit), "3 sites.*complete: one set of parameters, each site with its own noise.*first, second, third; 16 records, 4 to 7 a site")
  expect_output(print(separate), "none: separate fits")
  expect_s3_class(plot(fit, "intervals"), "ggplot")
})

test_that("small numbers that agree by chance are taken, and long ones are not", {
  whole <- function(value) as_release(c("smoke=yes" = value), smoking(), mech_discrete_laplace(scale = 2), n = 30)
  fit <- sample_posterior(list(a = whole(9), b = whole(9)), model_bernoulli(), pool = "complete", chains = 1, iter = 100, seed = 1)
  expect_equal(nobs(fit), 60)
})

test_that("what cannot be pooled is refused", {
  skip_on_cran() # takes long; `make test` runs it
  a <- two_yes()$north
  b <- two_yes()$south
  other <- as_release(c(11, 9), stat_counts(~ smoke, levels = list(smoke = c("never", "daily"))), mech_laplace(scale = 2), n = 20)
  three <- as_release(c(5, 9, 6), stat_counts(~ k, levels = list(k = c("u", "v", "w"))), mech_laplace(scale = 2), n = 20)
  more <- as_release(c(7, 8, 9), stat_counts(~ k, levels = list(k = c("u", "v", "w"))), mech_laplace(scale = 2), n = 25)
  visits <- function(n) as_release(3.2 + length(n), stat_sums(~ visits, list(visits = c(0, 9))), mech_laplace(scale = 2), n = n)
  known <- visits(9)
  unknown <- visits(NULL)
  line <- simulate_release(data.frame(y = rnorm(9), x = rnorm(9)), wide_totals(), mech_laplace(scale = 2))
  show(c(
    refusals("pool", list(
      quote(sample_posterior(list(north = a, south = b), model_bernoulli())),
      quote(sample_posterior(list(a, b), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, north = b), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(stats::setNames(list(a, b), c("north", NA)), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = a), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "partly")),
      quote(sample_posterior(list(north = a, south = other), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = line), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = known, south = unknown), model_poisson(), pool = "complete", method = "collapse")),
      quote(sample_posterior(a, model_bernoulli(), pool = "complete")))),
    refusals("argument", list(
      quote(sample_posterior(list(north = a, south = 3), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "complete", prior_n = prior_n("poisson", mean = 20))),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "complete", control = list(passes = 2))))),
    refusals("method", list(
      quote(sample_posterior(list(north = line), model_lm(covariates = prior_niw(within = TRUE)), pool = "complete", method = "collapse"))))))
  fit <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", chains = 1, iter = 100, seed = 1)
  expect_equal(dim(vcov(sample_posterior(two_yes(), model_bernoulli(), pool = "none", chains = 1, iter = 100, seed = 1))), c(2, 2))
  show(c(refusals("argument", list(quote(denoise(fit, site = "west")), quote(denoise(sample_posterior(a, model_bernoulli(), iter = 100, seed = 1), site = "north")))),
         refusals("pool", list(quote(simulate(fit))))))
})

# ---- partial pooling -------------------------------------------------------------------------

# p(mean, sd | z) on a grid, the sites' parameters integrated out: `likelihood` has a column for each site, a row
# for each value of `at`
hyper_density <- function(at, likelihood, mean, log_sd, log_prior_mean, log_prior_sd) {
  step <- at[2] - at[1]
  vapply(exp(log_sd), function(sd) {
    vapply(mean, function(m) {
      weight <- dnorm(at, m, sd) * step
      prod(colSums(likelihood * weight / sum(weight)))
    }, 0)
  }, mean) * outer(exp(log_prior_mean(mean)), exp(log_prior_sd(exp(log_sd)) + log_sd))
}

test_that("two sites, one probability: quadrature over the mean, its spread and the sites", {
  skip_on_cran() # takes long; `make test` runs it
  at <- seq(-7, 7, by = 0.04)
  first <- sum_of_totals(plogis(at), 30, function(s) -abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2)
  second <- sum_of_totals(plogis(at), 20, function(s) -(11 - s)^2 / 18)
  mean <- seq(-5, 5, by = 0.1)
  log_sd <- seq(-6, 2, by = 0.1)
  joint <- hyper_density(at, cbind(first, second), mean, log_sd, function(m) dbeta(plogis(m), 2, 3, log = TRUE) + dlogis(m, log = TRUE),
                         function(sd) dnorm(sd, 0, 0.8, log = TRUE))
  fit <- sample_posterior(two_yes(), model_bernoulli(prior = prior_beta(2, 3)), pool = partial_pooling(sd = prior_half_normal(0.8)), iter = 3000, seed = 1)
  quantile <- function(grid, density) grid_quantile(grid, density)
  expect_distribution(qlogis(parameter_draws(fit, "prob[yes]")), quantile(mean, rowSums(joint)))
  expect_distribution(log(parameter_draws(fit, "sd[logit(prob[yes])]")), quantile(log_sd, colSums(joint)))
  # a site's own: its likelihood times what the mean, the spread and the other site say of it
  own <- rowSums(vapply(seq_along(log_sd), function(k) {
    prior <- exp(dbeta(plogis(mean), 2, 3, log = TRUE) + dlogis(mean, log = TRUE) + dnorm(exp(log_sd[k]), 0, 0.8, log = TRUE) + log_sd[k])
    normal <- outer(at, mean, function(a, m) dnorm(a, m, exp(log_sd[k])))
    normal <- sweep(normal, 2, pmax(colSums(normal), 1e-300), "/")
    drop(normal %*% (prior * colSums(normal * second)))
  }, at))
  expect_distribution(qlogis(parameter_draws(fit, "prob[yes,north]")), quantile(at, own * first))
  # and one that released nothing
  new <- qlogis(internal("new_site_draws")(fit))
  expect_gt(sd(new), sd(qlogis(parameter_draws(fit, "prob[yes]"))))
})

test_that("three exponential rates: quadrature over the mean, its spread and the sites", {
  skip_on_cran() # takes long; `make test` runs it
  at <- seq(-7, 6, by = 0.05)
  likelihood <- waits_likelihood(exp(at))
  mean <- seq(-5, 2.5, by = 0.05)
  log_sd <- seq(-6, 1.2, by = 0.1)
  log_prior <- function(m) dgamma(exp(m), 2, 4, log = TRUE) + m
  # a spread below the grid's step is as none
  joint <- vapply(exp(log_sd), function(sd) {
    vapply(mean, function(m) {
      weight <- dnorm(at, m, max(sd, 0.02)) * 0.05
      prod(colSums(likelihood * weight / sum(weight)))
    }, 0)
  }, mean) * outer(exp(log_prior(mean)), exp(dnorm(exp(log_sd), 0, 0.6, log = TRUE) + log_sd))
  fit <- sample_posterior(waits(), model_exponential(prior = prior_gamma(2, 4)), pool = partial_pooling(sd = prior_half_normal(0.6)), iter = 2400, seed = 1)
  expect_distribution(log(parameter_draws(fit, "rate")), grid_quantile(mean, rowSums(joint)))
  expect_distribution(log(parameter_draws(fit, "sd[log(rate)]")), grid_quantile(log_sd, colSums(joint)))
  told <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  expect_lt(max(told$rhat), 1.01)
})

test_that("means with known standard deviation: a grid over the spread alone", {
  skip_on_cran() # takes long; `make test` runs it
  sd_of <- c(2, 3, 1.5)
  n <- c(9, 25, 12)
  z <- c(13.1, 80.4, -4.2)
  statistic <- stat_sums(~ x, bounds = list(x = c(-40, 40)))
  sites <- Map(function(z, n, sd) as_release(z, statistic, mech_gaussian(sd = 4 * sd), n = n), c(a = z[1], b = z[2], c = z[3]), n, sd_of)
  variance <- (n * 1.5^2 + (4 * sd_of)^2) / n^2
  log_sd <- seq(-6, 4, by = 0.02)
  # mean ~ N(1, 2^2) integrates out
  density <- vapply(exp(log_sd), function(sd) {
    v <- diag(variance + sd^2) + 4
    away <- z / n - 1
    exp(-0.5 * sum(away * solve(v, away))) / sqrt(det(v)) * dexp(sd, 0.7) * sd
  }, 0)
  model <- model_normal(prior = list(mean = prior_normal(1, 2), sd = fixed(1.5)))
  fit <- sample_posterior(sites, model, pool = partial_pooling(~ mean, sd = prior_exponential(0.7)), iter = 6000, warmup = 2000, seed = 2)
  expect_identical(posterior::variables(fit$draws), c("mean", "sd[mean]", "mean[a]", "mean[b]", "mean[c]"))
  expect_distribution(log(parameter_draws(fit, "sd[mean]")), grid_quantile(log_sd, density))
})

test_that("three sites of which little is known converge by default", {
  skip_on_cran()
  asked <- stat_counts(~ smoke, list(smoke = c("0", "1")))
  sites <- Map(function(value, n) as_release(value, asked, mech_discrete_laplace(epsilon = 0.5), n = n),
               list(north = c(61, 42), south = c(55, 19), west = c(38, 40)), c(105, 80, 75))
  for (seed in 1:3) {
    fit <- sample_posterior(sites, model_bernoulli(), pool = "partial", seed = seed)
    told <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk", "ess_tail")
    expect_lt(max(told$rhat), 1.01)
    expect_gt(min(told$ess_bulk, told$ess_tail), 400)
    expect_lte(sum(acceptance(fit)$divergent), 5)
  }
})

# ---- exact totals of normal records ------------------------------------------------------------

squares_of <- function() stat_sums(~ x + I(x^2), list(x = c(-1000, 1000)), rescale = FALSE)

squares_site <- function(exact, value, noise, n) {
  rest <- setdiff(names(value), exact)
  as_release(list(law = value[exact], noisy = value[rest]), list(law = stat_subset(squares_of(), exact), noisy = stat_subset(squares_of(), rest)),
             list(law = mech_exact(), noisy = noise), n = n)
}

test_that("one mean for two sites, an exact total at one and exact squares at the other: quadrature", {
  skip_on_cran()
  sites <- list(a = squares_site("x", c(x = 20, "x^2" = 90), mech_laplace(scale = 25), 12), b = squares_site("x^2", c(x = 15, "x^2" = 60), mech_gaussian(sd = 9), 9))
  fit <- sample_posterior(sites, model_normal(prior = prior_nig(0, 1, 3, 4)), pool = "complete", chains = 2, iter = 3000, warmup = 600, seed = 1)
  square <- seq(20^2 / 12 + 1e-3, 700, length.out = 1001)
  total <- seq(-23.23, 23.23, length.out = 401)
  joint <- outer(square, total, function(q, t) {
    rate <- 4 + (q + 60 - (20 + t)^2 / 21) / 2 + (20 + t)^2 / 21 / (2 * 22)
    exp(9 / 2 * log(q - 20^2 / 12) + 3 * log(60 - t^2 / 9) - 13.5 * log(rate) - abs(q - 90) / 25 - (t - 15)^2 / 162)
  })
  totals <- denoise(fit)
  of <- function(name) posterior::extract_variable_matrix(totals, name)
  expect_distribution(of("noisy: x^2[a]"), grid_quantile(square, rowSums(joint)))
  expect_distribution(of("noisy: x[b]"), grid_quantile(total, colSums(joint)))
  expect_same_mean(parameter_draws(fit, "mean"), sum(outer(square, total, function(q, t) (20 + t) / 22) * joint) / sum(joint))
  expect_true(all(of("law: x[a]") == 20) && all(of("law: x^2[b]") == 60))
  expect_equal(sum(acceptance(fit)$divergent), 0)
})

test_that("exact and noisy totals at sites with parameters of their own: quadrature, and the gradient", {
  skip_on_cran()
  sites <- list(a = as_release(c("x^2" = 60), stat_subset(squares_of(), "x^2"), mech_exact(), n = 9),
                b = as_release(c(x = 25), stat_subset(squares_of(), "x"), mech_exact(), n = 6),
                c = as_release(c("x^2" = 34), stat_subset(squares_of(), "x^2"), mech_gaussian(sd = 1), n = 12))
  model <- model_normal(prior = list(mean = fixed(1), sd = prior_inverse_gamma(3, 4)))
  fit <- sample_posterior(sites, model, pool = partial_pooling(sd = prior_half_normal(0.6)), chains = 2, iter = 3000, warmup = 600, seed = 1)
  at <- seq(-4, 4, by = 0.02)
  square <- seq(30, 38, by = 0.1)
  of_square <- function(p, n) dchisq(p / exp(2 * at), n, n / exp(2 * at)) / exp(2 * at)
  likelihood <- cbind(of_square(60, 9), dnorm(25, 6, exp(at) * sqrt(6)), rowSums(vapply(square, function(p) of_square(p, 12) * dnorm(34, p), at)))
  mean <- seq(-3, 3, by = 0.05)
  log_sd <- seq(-6, 1.5, by = 0.05)
  joint <- hyper_density(at, likelihood, mean, log_sd, function(m) -6 * m - 4 * exp(-2 * m), function(sd) dnorm(sd, 0, 0.6, log = TRUE))
  expect_distribution(log(parameter_draws(fit, "sd")), grid_quantile(mean, rowSums(joint)))
  expect_distribution(log(parameter_draws(fit, "sd[log(sd)]")), grid_quantile(log_sd, colSums(joint)))

  st <- wide_totals()
  of_regression <- function(law, sd, n) {
    x <- rnorm(n, 0.3)
    value <- simulate_release(data.frame(y = 0.5 + 0.8 * x + rnorm(n), x), st, mech_gaussian(sd = 0.01))$value
    rest <- setdiff(names(value), law)
    as_release(list(law = value[law], noisy = value[rest]), list(law = stat_subset(st, law), noisy = stat_subset(st, rest)),
               list(law = mech_exact(), noisy = mech_gaussian(sd = sd)), n = n)
  }
  set.seed(21)
  sites <- list(a = of_regression(c("x^2", "y"), 4, 9), b = of_regression(c("y^2", "y"), 3, 12), c = totals_sites()$second)
  for (parts in list(pool_parts(sites, totals_models$kept), partial_parts(sites, totals_models$kept, partial_pooling()))) {
    state <- internal("start_pool")(parts$problem, parts$bound, c(1, 2), 1L, NULL)
    size <- if (is.null(parts$problem$partial)) 1 + 3 * 5 else 7 + 3 * 8
    q <- state$store[seq_len(size)] + rnorm(size, 0, 0.05)
    at <- function(q) .Call(internal("ffi_pool_density"), parts$problem, state, q)
    expect_true(is.finite(at(q)[1L]))
    expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
  }
})

test_that("a spread that is known to be none is complete pooling", {
  skip_on_cran() # takes long; `make test` runs it
  none <- sample_posterior(two_yes(), model_bernoulli(), pool = partial_pooling(sd = prior_exponential(1e4)), iter = 2400, seed = 1)
  complete <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", iter = 2400, seed = 2)
  expect_agreement(parameter_draws(none, "prob[yes]"), parameter_draws(complete, "prob[yes]"))
  expect_agreement(parameter_draws(none, "prob[yes,south]"), parameter_draws(complete, "prob[yes]"))
})

test_that("the gradient of partial pooling is that of the density, in all coordinates", {
  skip_on_cran()
  set.seed(11)
  sites <- totals_sites()
  for (pooling in list(partial_pooling(), partial_pooling(~ x, sd = prior_half_t(4, 0.7)), partial_pooling(~ sigma, sd = prior_exponential()))) {
    for (parts in lapply(totals_models[1:2], partial_parts, sites = sites, pooling = pooling)) for (choice in 0:3) {
      problem <- with_coordinates(parts$problem, choice %% 2, choice >= 2)
      state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
      varying <- length(problem$partial$which)
      size <- 4 + varying + 3 * (5 + varying)
      q <- state$store[seq_len(size)] + rnorm(size, 0, 0.05)
      at <- function(q) .Call(internal("ffi_pool_density"), problem, state, q)
      expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
    }
  }
})

test_that("the posterior does not depend on the coordinates", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(15)
  data <- lapply(c(a = 300, b = 500, c = 200, d = 400), function(n) {
    x <- rnorm(n, 0.2, 0.5)
    data.frame(y = rnorm(1, 1, 0.4) + 0.5 * x + rnorm(n, 0, 0.4), x)
  })
  st <- stat_crossprod(y ~ x, list(y = c(-3, 5), x = c(-3, 3)))
  parts <- partial_parts(lapply(data, simulate_release, st, mech_gaussian(mu = 1)), model_lm(), partial_pooling(~ (Intercept) + sigma))
  run <- function(told, innovates) {
    problem <- with_coordinates(parts$problem, told, innovates)
    chains <- lapply(1:2, function(k) {
      state <- internal("start_pool")(problem, parts$bound, c(3, 4), k, NULL)
      internal("run_blocks")(problem, state, 850, list(warmup = 350, thin = 1), function(...) NULL)$draws
    })
    internal("chains_array")(lapply(chains, `colnames<-`, problem$names))
  }
  fits <- list(run(0, TRUE), run(c(1, 0), TRUE), run(0, FALSE))
  for (name in c("(Intercept)", "x", "sigma", "sd[(Intercept)]", "(Intercept)[b]", "sigma[c]")) {
    draws <- lapply(fits, posterior::extract_variable_matrix, name)
    expect_agreement(draws[[2]], draws[[1]], spread = FALSE, label = name)
    expect_agreement(draws[[3]], draws[[1]], spread = FALSE, label = name)
  }
})

test_that("five sites of a regression: sampler and releases together keep the prior (Geweke)", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(12)
  model <- model_lm(prior = prior_nig(0.3, 2, 6, 5), covariates = prior_niw(0.2, 2, 2, 6))
  pooling <- partial_pooling(sd = prior_half_normal(0.4))
  for (innovates in c(FALSE, TRUE)) {
    parts <- partial_parts(stats::setNames(totals_sites(c(a = 5, b = 8, c = 6), wider = 10)[c(1, 2, 3, 1, 2)], letters[1:5]), model, pooling)
    problem <- with_coordinates(parts$problem, 0, innovates)
    state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
    internal("run_blocks")(problem, state, 600, list(warmup = 600, thin = 1), function(...) NULL)
    # releases will be further apart than the one that the step size was learned from
    step <- 5 * 4 * ceiling((6 + 5 * 8) / 4) + 1
    state$store[step] <- state$store[step] / 3
    # so that they are short, too
    draws <- geweke_sites(problem, state, 400, thin = 5)
    bound <- parts$bound
    mean <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 50000L)$theta)
    coordinates <- internal("site_coordinates")(bound, mean[, c("(Intercept)", "x", "sigma")])
    sd <- matrix(abs(rnorm(150000, 0, 0.4)), ncol = 3)
    site <- internal("site_natural")(bound, coordinates + sd * rnorm(150000))
    prior <- cbind(mean[, c("(Intercept)", "x", "sigma")], sd, site)
    colnames(prior) <- c("(Intercept)", "x", "sigma", "sd[(Intercept)]", "sd[x]", "sd[log(sigma)]", "(Intercept)[d]", "x[d]", "sigma[d]")
    expect_prior(draws[, colnames(prior)], prior)
  }
})

test_that("partial pooling lies between complete and none, and predicts for a site and for a new one", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(13)
  sites <- totals_sites(c(first = 40, second = 70, third = 50))
  fit <- sample_posterior(sites, totals_models$conjugate, pool = ~ (Intercept), chains = 2, iter = 600, seed = 1)
  expect_identical(fit$problem$names[1:5], c("(Intercept)", "x", "sigma", "sd[(Intercept)]", "(Intercept)[first]"))
  expect_equal(dim(coef(fit)), c(3, 3))
  expect_equal(dimnames(coef(fit)), list(names(sites), c("(Intercept)", "x", "sigma")))
  new <- data.frame(x = c(0, 1))
  expect_equal(predict(fit, new, site = "second"), unname(drop(cbind(1, 0:1) %*% coef(fit)["second", 1:2])))
  wide <- predict(fit, new, site = "new", interval = "credible", seed = 1)
  expect_identical(wide, predict(fit, new, site = "new", interval = "credible", seed = 1))
  narrow <- predict(fit, new, site = "second", interval = "credible")
  expect_true(all(wide[, "upper"] - wide[, "lower"] > narrow[, "upper"] - narrow[, "lower"]))
  expect_output(print(fit), "partial: parameters of sites are normal about a mean")
  expect_identical(extend(fit, 20)$draws[1:300, , ], fit$draws[, , ])
  expect_output(print(partial_pooling(~ x)), "vary  ~x")
})

test_that("a run of partial pooling cut in two is the same run", {
  skip_on_cran()
  set.seed(16)
  sites <- totals_sites(c(first = 40, second = 70, third = 50))
  whole <- sample_posterior(sites, totals_models$conjugate, pool = "partial", chains = 2, iter = 50, warmup = 30, seed = 1)
  part <- sample_posterior(sites, totals_models$conjugate, pool = "partial", chains = 2, iter = 40, warmup = 30, seed = 1)
  expect_identical(extend(part, 10)$draws, whole$draws)
})

test_that("what partial pooling cannot do is refused", {
  skip_on_cran() # takes long; `make test` runs it
  a <- two_yes()$north
  b <- two_yes()$south
  fit <- sample_posterior(two_yes(), model_bernoulli(), pool = "partial", chains = 1, iter = 100, seed = 1)
  apart <- sample_posterior(two_yes(), model_bernoulli(), pool = "none", chains = 1, iter = 20, seed = 1)
  levels <- sample_posterior(two_yes(), model_categorical(), pool = "complete", chains = 1, iter = 40, seed = 1)
  several <- stat_sums(~ x + z + I(x^2) + x:z + I(z^2), bounds = list(x = c(-300, 300), z = c(-300, 300)), rescale = FALSE)
  set.seed(14)
  two <- list(a = simulate_release(data.frame(x = rnorm(5), z = rnorm(5)), several, mech_laplace(scale = 2)),
              b = simulate_release(data.frame(x = rnorm(5), z = rnorm(5)), several, mech_laplace(scale = 2)))
  show(c(
    refusals("pool", list(
      quote(sample_posterior(list(north = a), model_bernoulli(), pool = "partial")),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = ~ rate)),
      quote(partial_pooling(y ~ x)),
      quote(plot(apart, type = "predictive")))),
    refusals("prior", list(
      quote(partial_pooling(sd = prior_normal(0, 1))),
      quote(partial_pooling(sd = list(prior_half_normal()))),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = partial_pooling(sd = list(rate = prior_half_normal())))))),
    refusals("argument", list(
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "partial", init = list(c("prob[yes]" = 0.2)))),
      quote(plot(fit, type = "predictive")),
      quote(predict(fit, data.frame(x = 1))))),
    refusals("method", list(
      quote(predict(levels, data.frame(x = 1))),
      quote(sample_posterior(two, model_mvnormal(prior = prior_niw(within = TRUE)), pool = "partial", method = "collapse"))))))
})

test_that("what is odd about the releases of several sites is said once, with their names", {
  asked <- stat_sums(~ y, list(y = c(0, 1)))
  total <- function(value) as_release(c(y = value), asked, mech_laplace(scale = 0.001), n = 50)
  found <- internal("site_troubles")(list(north = total(50), south = total(20), west = total(50), east = total(70)))
  expect_identical(vapply(found, `[[`, "", "kind"), c("limit", "impossible"))
  expect_match(found[[1]]$text[[1]], "^Sites north, west: At the limit")
  expect_match(found[[2]]$text[[1]], "^Site east: No data set of 50 records has")
  expect_identical(internal("site_troubles")(list(south = total(20))), list())
})
