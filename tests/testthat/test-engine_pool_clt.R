# Complete pooling by a normal distribution for the totals of each site: src/clt/several_sites.c.

pooled_parts <- function(sites, model) {
  bound <- internal("bind_sites")(model, sites, NULL)
  list(bound = bound, problem = internal("pool_clt_problem")(sites, bound, c(1, 2), 2L, NULL))
}

test_that("moments of all sites are those of each, side by side, and so are innovations and gradients", {
  set.seed(1)
  parts <- pooled_parts(logistic_sites(), model_logistic(y ~ x))
  moments <- parts$problem$moments
  theta <- matrix(c(0.2, 0.7, 0.1, -0.3))
  expect_length(theta, length(parts$bound$unknown))
  all <- .Call(internal("ffi_clt_moments"), moments, theta)[[1]]
  n <- c(60, 90, 40)
  each <- lapply(moments$sites, function(site) .Call(internal("ffi_clt_moments"), site, theta)[[1]])
  expect_equal(190 * all$mean, unlist(Map(function(e, n) n * e$mean, each, n)))
  size <- lengths(lapply(each, `[[`, "mean"))
  first <- cumsum(size) - size
  whole <- matrix(0, sum(size), sum(size))
  for (j in 1:3) whole[first[j] + 1:size[j], first[j] + 1:size[j]] <- n[j] * each[[j]]$cov
  expect_equal(190 * all$cov, whole)

  # three sites of one regression have as many innovations each
  r <- rnorm(sum(size))
  u <- matrix(rnorm(3 * length(.Call(internal("ffi_clt_form"), moments$sites[[1]], theta, 1, matrix(0, 50), r)$pull)), ncol = 3)
  joint <- .Call(internal("ffi_clt_form"), moments, theta, 190, matrix(u), r)
  form <- lapply(1:3, function(j) .Call(internal("ffi_clt_form"), moments$sites[[j]], theta, n[j], u[, j, drop = FALSE], r[first[j] + 1:size[j]]))
  expect_equal(drop(joint$total), unlist(lapply(form, `[[`, "total")))
  expect_equal(joint$gradient, Reduce(`+`, lapply(form, `[[`, "gradient")))
  expect_equal(sqrt(190) * joint$pull, unlist(Map(function(f, n) sqrt(n) * f$pull, form, n)))
})

test_that("logistic regression of three sites: draws from the prior, weighted by the density of all releases", {
  skip_on_cran()
  set.seed(2)
  sites <- logistic_sites()
  sites$west$mechanism <- sites$south$mechanism
  sites$west$scale[] <- 5
  # no draw far beyond the bounds, where there are no moments
  model <- model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = prior_niw(kappa = 1 / 4, scale = 1, df = 3))
  parts <- pooled_parts(sites, model)
  theta <- .Call(internal("ffi_model_prior"), parts$bound$spec, internal("new_stream")(c(3, 4)), 30000L)$theta
  log_weight <- numeric(ncol(theta))
  for (j in 1:3) {
    # without draws that the sites before have as good as ruled out
    kept <- log_weight > max(log_weight) - 30
    theta <- theta[, kept]
    log_weight <- log_weight[kept]
    release <- sites[[j]]
    n <- release$n
    each <- .Call(internal("ffi_clt_moments"), parts$problem$moments$sites[[j]], theta)
    log_weight <- log_weight + vapply(each, function(m) {
      root <- chol(n * m$cov + diag(parts$problem$scale[parts$problem$first[j] + seq_along(m$mean)]^2))
      -sum(log(diag(root))) - sum(backsolve(root, release$value - n * m$mean, transpose = TRUE)^2) / 2
    }, 0)
  }
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  effective <- 1 / sum(weight^2)
  expect_gt(effective, 300)
  fit <- sample_posterior(sites, model, pool = "complete", method = "clt", iter = 1800, seed = 1)
  values <- internal("parameter_matrix")(fit)[, 1:2]
  for (k in 1:2) {
    mean <- sum(weight * theta[k, ])
    sd <- sqrt(sum(weight * (theta[k, ] - mean)^2))
    expect_lt(abs(mean(values[, k]) - mean), 4 * sd / sqrt(effective))
    expect_lt(abs(sd(values[, k]) / sd - 1), 4 / sqrt(2 * effective))
  }
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.01)
})

test_that("one probability of two sites: near the exact posterior", {
  sites <- list(north = as_release(c("smoke=yes" = 113.2), smoking(), mech_laplace(scale = 4), n = 300),
                south = as_release(c("smoke=yes" = 61), smoking(), mech_gaussian(sd = 9), n = 200))
  exact <- sample_posterior(sites, model_bernoulli(), pool = "complete", iter = 1800, seed = 1)
  fit <- sample_posterior(sites, model_bernoulli(), pool = "complete", method = "clt", iter = 1800, seed = 1)
  a <- posterior::summarise_draws(exact$draws)
  b <- posterior::summarise_draws(fit$draws)
  expect_lt(abs(a$mean - b$mean) / a$sd, 0.1)
  expect_lt(abs(b$sd / a$sd - 1), 0.08)
  expect_true(exact$exact)
  expect_false(fit$exact)
})

test_that("bounds of the prior that contradict the data: as imputed records say, and what is told where trajectories end there", {
  skip_on_cran()
  set.seed(2)
  sites <- lapply(c(north = 300, south = 400), function(n) {
    x <- rnorm(n, 1.2, 0.7)
    simulate_release(data.frame(y = rbinom(n, 1, plogis(0.8 * x - 0.3)), x), stat_crossprod(y ~ x, pooled_bounds()), mech_laplace(epsilon = 1))
  })
  model <- model_logistic(y ~ x, covariates = prior_niw(within = c(-1.5, 0.8)))
  complete <- approximately(sites, model, iter = 2000)
  expect_identical(complete$problem$sampler, "noncentred")
  expect_lt(max(posterior::summarise_draws(complete$draws, "rhat")$rhat), 1.02)
  exact <- sample_posterior(sites, model, pool = "complete", method = "augment", iter = 600, seed = 1)
  for (name in posterior::variables(exact$draws)) expect_agreement(parameter_draws(complete, name), parameter_draws(exact, name), label = name)
  partial <- approximately(sites, model, pool = "partial", iter = 200, chains = 1)
  expect_match(internal("trajectory_troubles")(partial)[[1]]$text, "prior is truncated, and trajectories end at its bounds", all = FALSE)
})

test_that("categories, a regression with factors and counts are pooled; what is drawn, told and continued", {
  skip_on_cran()
  set.seed(3)
  asked <- stat_counts(~ k, levels = list(k = c("a", "b", "c")))
  sites <- lapply(c(north = 300, south = 500), function(n) simulate_release(data.frame(k = sample(c("a", "b", "c"), n, TRUE, c(0.2, 0.3, 0.5))), asked, mech_laplace(epsilon = 1)))
  fit <- approximately(sites, model_categorical(), iter = 400)
  expect_equal(fit$problem$method, "clt")
  expect_identical(posterior::variables(denoise(fit, site = "south")), paste0(c("k=a", "k=b", "k=c"), "[south]"))
  expect_output(print(fit), "approximate: a normal distribution for the totals")
  expect_output(print(acceptance(fit)), "statistic integrated out")
  expect_lt(max(abs(coef(fit) - c(0.2, 0.3, 0.5))), 0.1)
  again <- approximately(sites, model_categorical(), iter = 500, warmup = 200)
  short <- approximately(sites, model_categorical(), iter = 400, warmup = 200)
  expect_identical(extend(short, 100)$draws, again$draws)

  bounds <- list(y = c(-5, 5), x = c(-4, 4), f = c("u", "v"))
  sites <- lapply(c(north = 300, south = 400), function(n) {
    x <- rnorm(n, 0, 0.7)
    f <- sample(c("u", "v"), n, TRUE)
    simulate_release(data.frame(y = 0.5 + x + 0.6 * (f == "v") + rnorm(n, 0, 0.5), x, f), stat_crossprod(y ~ x + f, bounds), mech_gaussian(sd = 1))
  })
  fit <- approximately(sites, model_lm(), iter = 600)
  expect_lt(max(abs(coef(fit) - c(0.5, 1, 0.6))), 0.25)

  sites <- lapply(c(north = 300, south = 400), function(n) {
    x <- rnorm(n, 0, 0.7)
    simulate_release(data.frame(y = rpois(n, exp(0.7 + 0.4 * x)), x), stat_crossprod(y ~ x, list(y = c(0, 15), x = c(-4, 4))), mech_gaussian(sd = 0.5))
  })
  fit <- approximately(sites, model_glm(y ~ x, family = "poisson"), iter = 600)
  expect_lt(max(abs(coef(fit) - c(0.7, 0.4))), 0.2)
})

test_that("what a normal distribution cannot pool is refused", {
  skip_on_cran()
  set.seed(4)
  sites <- logistic_sites()
  expect_error(sample_posterior(sites, model_logistic(y ~ x), pool = "complete", method = "collapse"), "Sites can be pooled under", class = "noiseaware_error_method")
  fit <- approximately(sites, model_logistic(y ~ x), iter = 100, chains = 1)
  expect_error(log_evidence(fit), class = "noiseaware_error_method")
  bound <- internal("bind_sites")(model_logistic(y ~ x), sites, NULL)
  expect_error(internal("check_pool_size")("nuts", list(index = 1:3000), bound, 500L, 6L, NULL), "at most", class = "noiseaware_error_method")
})

test_that("auto leaves totals where records are outside the bounds: for imputed records, or for what accounts for bounds", {
  skip_on_cran()
  set.seed(31)
  of <- function(upper) lapply(c(a = 60, b = 40), function(n) {
    x <- rnorm(n)
    simulate_release(data.frame(y = x + rnorm(n), x), stat_crossprod(y ~ x, list(y = c(-upper, upper), x = c(-upper, upper))), mech_laplace(scale = 3))
  })
  model <- model_lm(covariates = prior_niw(0, 2, 10, 6))
  fit <- function(sites, model, ...) suppressMessages(told(sample_posterior(sites, model, chains = 1, iter = 100, seed = 1, ...)))
  for (pool in c("complete", "partial")) {
    expect_identical(fit(of(60), model, pool = pool)$problem$family, "totals")
    expect_identical(fit(of(1.5), model, pool = pool)$problem$family, "records")
    # asked for, it stays
    expect_identical(fit(of(1.5), model, pool = pool, method = "collapse")$problem$family, "totals")
  }
  visits <- lapply(c(a = 2, b = 3), function(rate) as_release(rate * 1e7, stat_sums(~ visits, list(visits = c(0, 4))), mech_laplace(scale = 100), n = 1e7))
  expect_warning(many <- suppressMessages(told(sample_posterior(visits, model_poisson(), pool = "complete", chains = 1, iter = 200, seed = 1))),
                 "accounts|approximate", class = "noiseaware_warning_method")
  expect_identical(many$problem$method, "clt")
})

test_that("what imputing the records of sites costs grows with sites, records and parameters", {
  sites <- logistic_sites()
  bound <- internal("bind_sites")(model_logistic(y ~ x), sites, NULL)
  cost <- function(sites, partial) internal("pool_augment_cost")(sites, bound, partial)
  expect_gt(cost(sites, TRUE), cost(sites, FALSE))
  expect_gt(cost(sites, TRUE), cost(sites[1:2], TRUE))
  constants <- internal("pool_cost_constants")$partial
  single <- internal("predict_cost")(internal("pool_cost_features")(sites, bound))$thousand
  expect_equal(log(cost(sites, TRUE) / single), sum(constants * c(1, log(3), log(190 / 3), log(2), 1)))
})
