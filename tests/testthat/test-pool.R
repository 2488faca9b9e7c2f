# Several sites: exact posteriors, joint-distribution tests, limits, restarts, errors.

smoking <- function() stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))

# P(z | p) by the sum over all totals; `log_noise` of z given s
sum_of_totals <- function(p, n, log_noise) {
  s <- 0:n
  vapply(p, function(p) sum(dbinom(s, n, p) * exp(log_noise(s))), 0)
}

two_yes <- function() {
  list(north = as_release(c("smoke=yes" = 7.3, "smoke=no" = 21.2), smoking(), mech_laplace(scale = 2), n = 30),
       south = as_release(c("smoke=yes" = 11), smoking(), mech_discrete_gaussian(sd = 3), n = 20))
}

yes_likelihood <- function(p) {
  sum_of_totals(p, 30, function(s) -abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2) * sum_of_totals(p, 20, function(s) -(11 - s)^2 / 18)
}

test_that("one probability for two sites: quadrature", {
  grid <- seq(0.0005, 0.9995, by = 0.0005)
  quantile <- grid_quantile(grid, yes_likelihood(grid) * dbeta(grid, 2, 3))
  fit <- sample_posterior(two_yes(), model_bernoulli(prior = prior_beta(2, 3)), pool = "complete", iter = 4000, seed = 1)
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
  fit <- sample_posterior(sites, model_bernoulli(), pool = "complete", iter = 4000, seed = 2)
  expect_distribution(parameter_draws(fit, "prob[1]"), quantile)
})

test_that("an exact number beside a noisy one", {
  sites <- list(exact = as_release(c("smoke=yes" = 9), smoking(), mech_exact(), n = 25), noisy = two_yes()$south)
  grid <- seq(0.0005, 0.9995, by = 0.0005)
  quantile <- grid_quantile(grid, dbinom(9, 25, grid) * sum_of_totals(grid, 20, function(s) -(11 - s)^2 / 18))
  fit <- sample_posterior(sites, model_bernoulli(), pool = "complete", iter = 4000, seed = 2)
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
  fit <- sample_posterior(sites, model_poisson(prior = prior_gamma(2, 0.4)), pool = "complete", iter = 4000, seed = 3)
  expect_distribution(parameter_draws(fit, "rate"), grid_quantile(grid, density))
})

test_that("a mean with known standard deviation: the normal distribution in closed form, sites of other bounds", {
  model <- model_normal(prior = list(mean = prior_normal(1, 2), sd = fixed(1.5)))
  sites <- list(a = as_release(13.1, stat_sums(~ x, bounds = list(x = c(-40, 40))), mech_gaussian(sd = 4), n = 9),
                b = as_release(41.9, stat_sums(~ x, bounds = list(x = c(-30, 60))), mech_gaussian(sd = 9), n = 25))
  n <- c(9, 25)
  variance <- n * 1.5^2 + c(4, 9)^2
  precision <- 1 / 4 + sum(n^2 / variance)
  mean <- (1 / 4 + sum(n * c(13.1, 41.9) / variance)) / precision
  fit <- sample_posterior(sites, model, pool = "complete", iter = 4000, seed = 4)
  expect_distribution(parameter_draws(fit, "mean"), function(p) qnorm(p, mean, 1 / sqrt(precision)), mean)
})

totals_models <- list(
  conjugate = model_lm(prior = prior_nig(0.3, 1, 4, 5), covariates = prior_niw(0.2, 2, 2, 6)),
  kept = model_lm(prior = prior_normal(0.3, 1), sigma = prior_half_t(6, 1.5), covariates = prior_niw(0.2, 2, 2, 6)),
  student = model_lm(prior = prior_student_t(6, 0.3, 0.8), sigma = prior_inverse_gamma(4, 5), covariates = prior_niw(0.2, 2, 2, 6))
)

wide <- function(low = -300) stat_crossprod(y ~ x, list(y = c(low, 300), x = c(low, 300)), rescale = FALSE)

totals_sites <- function(sizes = c(first = 4, second = 7, third = 5)) {
  mechanisms <- list(mech_laplace(scale = 3), mech_gaussian(sd = 4), mech_laplace(scale = c(2, 3, 2, 3, 2)))
  Map(function(n, mechanism, low) {
    x <- rnorm(n, 0.3)
    simulate_release(data.frame(y = 0.5 + 0.8 * x + rnorm(n), x), wide(low), mechanism)
  }, sizes, mechanisms[seq_along(sizes)], c(-300, -200, -300)[seq_along(sizes)])
}

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
    here <- at(q)
    step <- 1e-5
    numeric <- vapply(seq_len(size), function(j) {
      e <- replace(numeric(size), j, step)
      (at(q + e)[1L] - at(q - e)[1L]) / (2 * step)
    }, 0)
    expect_equal(here[-1L], numeric, tolerance = 1e-5)
  }
})

test_that("sampler and releases together keep the prior (Geweke)", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(6)
  for (model in totals_models[c("conjugate", "kept")]) {
    parts <- pool_parts(totals_sites(), model)
    problem <- parts$problem
    state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
    run <- list(warmup = 600, thin = 1)
    internal("run_blocks")(problem, state, 600, run, function(...) NULL)
    draws <- matrix(0, 20000, length(problem$names), dimnames = list(NULL, problem$names))
    for (i in seq_len(nrow(draws))) {
      block <- .Call(internal("ffi_block"), problem, 1L, 1L)
      .Call(internal("ffi_run"), problem, state, block, run)
      draws[i, ] <- block$draws
      noise <- lapply(problem$sites, function(s) {
        u <- runif(s$components)
        ifelse(seq_len(s$components) <= s$absolute, internal("mechanism_noise")(mech_laplace(scale = 1), u, rep(1, s$components)), qnorm(u)) / s$weight
      })
      problem$released <- drop(block$statistic) + unlist(noise, use.names = FALSE)
    }
    bound <- parts$bound
    prior <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 100000L)$theta)
    expect_prior(draws, prior)
  }
})

test_that("one site is what it is alone; almost no noise, and all records together", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  sites <- totals_sites()
  alone <- sample_posterior(sites$first, totals_models$conjugate, method = "collapse", iter = 4000, seed = 1)
  pooled <- sample_posterior(sites["first"], totals_models$conjugate, pool = "complete", iter = 4000, seed = 2)
  for (name in c("(Intercept)", "x", "mean[x]")) expect_agreement(parameter_draws(pooled, name), parameter_draws(alone, name), label = name)

  data <- lapply(c(a = 60, b = 90), function(n) {
    x <- rnorm(n, 0.3)
    data.frame(y = 0.5 + 0.8 * x + rnorm(n), x)
  })
  exact <- nonprivate_posterior(do.call(rbind, data), totals_models$conjugate, wide(), chains = 2, iter = 10000, warmup = 1000, seed = 1)
  fit <- sample_posterior(lapply(data, simulate_release, wide(), mech_gaussian(sd = 1e-3)), totals_models$conjugate, pool = "complete", seed = 1)
  for (name in c("(Intercept)", "x", "sigma", "mean[x]", "cov[x,x]")) expect_agreement(parameter_draws(fit, name), parameter_draws(exact, name), label = name)
})

test_that("sites in another order of variables, and with fewer components, have one posterior", {
  set.seed(8)
  data <- data.frame(y = rnorm(12), x = rnorm(12, 1))
  full <- stat_sums(~ x + y + I(x^2) + x:y + I(y^2), bounds = list(x = c(-300, 300), y = c(-300, 300)))
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
  expect_s3_class(acceptance(whole), "noiseaware_acceptance")
})

test_that("separate fits are the fits of each site", {
  sites <- two_yes()
  fit <- sample_posterior(sites, model_bernoulli(), pool = "none", chains = 2, iter = 200, seed = 1)
  expect_identical(posterior::variables(fit$draws), c("prob[yes][north]", "prob[yes][south]"))
  expect_equal(unname(c(coef(fit))), c(mean(fit$fits$north$draws), mean(fit$fits$south$draws)))
  expect_identical(fit$fits$south$release, sites$south)
  expect_identical(posterior::variables(denoise(fit, site = "south")), "smoke=yes[south]")
  expect_equal(nobs(fit), 50)
})

test_that("predictions, and what a fit prints", {
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
  a <- two_yes()$north
  b <- two_yes()$south
  other <- as_release(c(11, 9), stat_counts(~ smoke, levels = list(smoke = c("never", "daily"))), mech_laplace(scale = 2), n = 20)
  three <- as_release(c(5, 9, 6), stat_counts(~ k, levels = list(k = c("u", "v", "w"))), mech_laplace(scale = 2), n = 20)
  unknown <- as_release(c("smoke=yes" = 3.2), smoking(), mech_laplace(scale = 2), n = NULL)
  line <- simulate_release(data.frame(y = rnorm(9), x = rnorm(9)), wide(), mech_laplace(scale = 2))
  show(c(
    refusals("pool", list(
      quote(sample_posterior(list(north = a, south = b), model_bernoulli())),
      quote(sample_posterior(list(a, b), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, north = b), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = a), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "partly")),
      quote(sample_posterior(list(north = a, south = other), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = line), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = unknown), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(a, model_bernoulli(), pool = "complete")))),
    refusals("argument", list(
      quote(sample_posterior(list(north = a, south = 3), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(), model_bernoulli(), pool = "complete")),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "complete", records = prior_poisson(20))),
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "complete", control = list(passes = 2))))),
    refusals("method", list(
      quote(sample_posterior(list(north = a, south = b), model_bernoulli(), pool = "complete", method = "augment")),
      quote(sample_posterior(list(north = three), model_categorical(), pool = "complete")),
      quote(sample_posterior(list(north = line), model_lm(covariates = prior_niw(within = TRUE)), pool = "complete"))))))
  fit <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", chains = 1, iter = 100, seed = 1)
  expect_equal(dim(vcov(sample_posterior(two_yes(), model_bernoulli(), pool = "none", chains = 1, iter = 100, seed = 1))), c(2, 2))
  show(c(refusals("argument", list(quote(denoise(fit, site = "west")), quote(denoise(sample_posterior(a, model_bernoulli(), iter = 100, seed = 1), site = "north")))),
         refusals("pool", list(quote(simulate(fit)), quote(bayesplot::pp_check(fit))))))
})
