# Partial pooling and walks by method "clt": quadrature, gradients, limits, comparison with the exact engine, restarts, what is reported.

clt_choices <- function() {
  covariates <- data.frame(site = c("north", "south", "west"), rural = c(1, 0, 1))
  list(partial_pooling(~ . | rural, sites = covariates), partial_pooling(correlation = prior_lkj(3), covariates = "shared"), partial_pooling(walk = TRUE),
       partial_pooling(~ x, covariates = "shared", walk = TRUE), partial_pooling(walk = 2), partial_pooling(~ (Intercept)))
}

clt_parts <- function(sites, model, pooling) {
  bound <- internal("bind_sites")(model, sites, NULL)
  problem <- internal("clt_sites_problem")(sites, bound, c(1, 2), 2L, list(), NULL)
  list(bound = bound, problem = internal("partial_problem")(problem, pooling, bound, sites, NULL))
}

expect_slopes <- function(sites, model, pooling) {
  parts <- clt_parts(sites, model, pooling)
  state <- internal("start_pool")(parts$problem, parts$bound, c(1, 2), 1L, NULL)
  q <- state$store[seq_len(length(.Call(internal("ffi_pool_density"), parts$problem, state, state$store)) - 1L)]
  at <- function(q) .Call(internal("ffi_pool_density"), parts$problem, state, q)
  testthat::expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
}

test_that("the gradient is that of the density, in all coordinates", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  sites <- lapply(logistic_sites(), function(release) {
    release$mechanism <- mech_gaussian(sd = 4) # kinks have rounded slopes
    release$scale[] <- 4
    release
  })
  for (pooling in clt_choices()) expect_slopes(sites, model_logistic(y ~ x), pooling)
})

test_that("two logistic regressions with one slope: quadrature over the intercepts, the slope and the spread", {
  skip_on_cran()
  set.seed(5)
  known <- fixed(list(mean = 0.2, cov = matrix(0.49)))
  sites <- lapply(c(north = -0.8, south = 0.5), function(intercept) {
    x <- rnorm(120, 0.2, 0.7)
    simulate_release(data.frame(y = rbinom(120, 1, plogis(intercept + 0.8 * x)), x), stat_crossprod(y ~ x, pooled_bounds()), mech_gaussian(sd = 3))
  })
  model <- model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = known)
  parts <- clt_parts(sites, model, partial_pooling(~ (Intercept), sd = prior_half_normal(0.7)))
  at <- seq(-5, 5, by = 0.125)
  slope <- seq(-2, 3.5, by = 0.125)
  theta <- .Call(internal("ffi_model_prior"), parts$bound$spec, internal("new_stream")(c(3, 4)), 1L)$theta
  likelihood <- lapply(parts$problem$sites, function(site) {
    each <- theta[, rep(1L, length(at) * length(slope))]
    each[1:2, ] <- t(expand.grid(at, slope))
    value <- vapply(.Call(internal("ffi_clt_moments"), site$alone$moments, each), function(m) {
      root <- chol(site$alone$n * m$cov + diag(site$alone$scale^2))
      -sum(log(diag(root))) - sum(backsolve(root, site$alone$released - site$alone$n * m$mean, transpose = TRUE)^2) / 2
    }, 0)
    matrix(exp(value - max(value)), length(at))
  })
  log_sd <- seq(-4, 1.6, by = 0.1)
  prior <- outer(dnorm(at), dnorm(slope))
  joint <- vapply(log_sd, function(u) {
    kernel <- outer(at, at, function(a, m) dnorm(a, m, exp(u)))
    kernel <- sweep(kernel, 2, colSums(kernel), "/")
    prior * crossprod(kernel, likelihood[[1L]]) * crossprod(kernel, likelihood[[2L]]) * dnorm(exp(u), 0, 0.7) * exp(u)
  }, prior)
  fit <- suppressMessages(sample_posterior(sites, model, pool = partial_pooling(~ (Intercept), sd = prior_half_normal(0.7)), method = "clt", iter = 1200, seed = 1))
  expect_identical(posterior::variables(fit$draws), c("(Intercept)", "x", "sd[(Intercept)]", "(Intercept)[north]", "(Intercept)[south]"))
  # the middle of the bounds of x is 0, so coordinates are natural values
  expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(at, apply(joint, 1, sum)))
  expect_distribution(parameter_draws(fit, "x"), grid_quantile(slope, apply(joint, 2, sum)))
  expect_distribution(log(parameter_draws(fit, "sd[(Intercept)]")), grid_quantile(log_sd, apply(joint, 3, sum)))
  expect_identical(fit$exact, FALSE)
})

same_posterior <- function(a, b, of, apart = 0.12, wide = 0.12) {
  # of means and sds of three sites the tails are so heavy that the draws' own sd says little
  a <- posterior::summarise_draws(internal("exactly")(a, of[[1L]]), "mean", "mad")
  b <- posterior::summarise_draws(internal("exactly")(b, of[[2L]]), "mean", "mad")
  testthat::expect_lt(max(abs(a$mean - b$mean) / a$mad), apart)
  testthat::expect_lt(max(abs(b$mad / a$mad - 1)), wide)
}

test_that("sites that hardly differ are pooled completely, and sites that may differ at will are fitted separately", {
  skip_on_cran()
  set.seed(6)
  sites <- logistic_sites(c(north = 200, south = 300))
  model <- model_logistic(y ~ x)
  alike <- suppressMessages(sample_posterior(sites, model, pool = partial_pooling(sd = prior_half_normal(1e-4), covariates = "shared"), method = "clt", iter = 2000, seed = 1))
  complete <- suppressMessages(sample_posterior(sites, model, pool = "complete", method = "clt", iter = 1800, seed = 1))
  same_posterior(complete$draws, alike$draws, list(c("(Intercept)", "x"), c("(Intercept)", "x")))
  same_posterior(complete$draws, alike$draws, list(c("(Intercept)", "x"), c("(Intercept)[south]", "x[south]")))

  # far apart, so that small standard deviations are out of the question
  sites <- lapply(c(north = -1.5, south = 1.5), function(slope) {
    x <- rnorm(5000, 0.2, 0.7)
    simulate_release(data.frame(y = rbinom(5000, 1, plogis(slope * (x + 1))), x), stat_crossprod(y ~ x, pooled_bounds()), mech_laplace(scale = 2))
  })
  apart <- suppressMessages(sample_posterior(sites, model, pool = partial_pooling(sd = prior_half_normal(100)), method = "clt", iter = 2000, seed = 1))
  # the sites' parameters have the prior N(mean, 1e4), about
  wide <- model_logistic(y ~ x, prior = prior_normal(0, 50))
  separate <- suppressMessages(sample_posterior(sites, wide, pool = "none", method = "clt", iter = 1800, seed = 1))
  names <- c("(Intercept)[north]", "x[north]", "(Intercept)[south]", "x[south]")
  same_posterior(separate$draws, apart$draws, list(names, names))
})

test_that("a linear regression by clt is what the exact engine says, also in a walk", {
  skip_on_cran()
  set.seed(7)
  sites <- lapply(c(a = 0.5, b = 1, c = 0.7), function(slope) {
    x <- rnorm(600, 0.3)
    simulate_release(data.frame(y = slope * x + rnorm(600), x), stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-8, 8))), mech_laplace(scale = 1))
  })
  for (walk in c(FALSE, TRUE)) {
    pool <- partial_pooling(walk = walk, covariates = "separate")
    exact <- suppressMessages(sample_posterior(sites, model_lm(), pool = pool, chains = 2, iter = 1500, warmup = 500, seed = 1))
    fit <- suppressMessages(sample_posterior(sites, model_lm(), pool = pool, method = "clt", chains = 2, iter = 1500, warmup = 500, seed = 1))
    expect_identical(posterior::variables(fit$draws), posterior::variables(exact$draws))
    names <- posterior::variables(fit$draws)
    same_posterior(exact$draws, fit$draws, list(names, names), apart = 0.2, wide = 0.2)
  }
})

test_that("what is drawn, told and continued", {
  skip_on_cran()
  set.seed(8)
  sites <- logistic_sites()
  fit <- approximately(sites, model_logistic(y ~ x), pool = "partial", iter = 600, chains = 2)
  expect_identical(fit$problem$family, "clt")
  expect_output(print(fit), "approximate: a normal distribution for the totals")
  expect_output(print(fit), "valid if no record|NOT valid: records may lie outside")
  expect_output(print(acceptance(fit)), "Hamiltonian")
  expect_identical(posterior::variables(denoise(fit, site = "south")), paste0(names(sites$south$value), "[south]"))
  expect_identical(rownames(coef(fit)), names(sites))
  expect_identical(dim(predict(fit, data.frame(x = 0:1), site = "west")), dim(predict(fit, data.frame(x = 0:1), site = "new", seed = 1)))
  expect_identical(shrinkage_data(fit, "x")$site, names(sites))
  expect_identical(nrow(as.data.frame(site_ranks(fit, "x"))), 3L)
  expect_error(log_evidence(fit), class = "noiseaware_error_method")

  long <- approximately(sites, model_logistic(y ~ x), pool = "walk", iter = 300, warmup = 150, chains = 1)
  short <- approximately(sites, model_logistic(y ~ x), pool = "walk", iter = 220, warmup = 150, chains = 1)
  expect_identical(extend(short, 80)$draws, long$draws)
  expect_output(print(long), "walk: parameters of each site")
  expect_identical(posterior::variables(site_draws(long, "next", seed = 1)), c("(Intercept)", "x"))
})

test_that("covariates whose prior is cut off: as imputed records say", {
  skip_on_cran()
  set.seed(11)
  sites <- lapply(c(north = 200, south = 300), function(n) {
    x <- rnorm(n, 0.3, 0.4)
    simulate_release(data.frame(y = rbinom(n, 1, plogis(x)), x), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-4, 4))), mech_gaussian(sd = 20))
  })
  model <- model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = prior_niw(within = c(0, 1)))
  by <- function(method, iter) suppressWarnings(sample_posterior(sites, model, pool = "partial", method = method, chains = 2, iter = iter, seed = 1))
  approximate <- by("clt", 700)
  exact <- by("augment", 600)
  for (name in c("(Intercept)", "x", "sd[x]", "x[south]")) expect_agreement(parameter_draws(approximate, name), parameter_draws(exact, name), label = name)
  expect_error(sample_posterior(sites, model, pool = partial_pooling(covariates = "shared"), method = "clt"), "truncated", class = "noiseaware_error_pool")
})

test_that("other regressions: counts and factors", {
  skip_on_cran()
  set.seed(9)
  sites <- lapply(c(north = 0.3, south = 0.5), function(slope) {
    x <- rnorm(300, 0, 0.7)
    simulate_release(data.frame(y = rpois(300, exp(0.7 + slope * x)), x), stat_crossprod(y ~ x, list(y = c(0, 15), x = c(-4, 4))), mech_gaussian(sd = 0.5))
  })
  fit <- approximately(sites, model_glm(y ~ x, family = "poisson"), pool = "partial", iter = 500)
  expect_lt(max(abs(coef(fit) - rbind(c(0.7, 0.3), c(0.7, 0.5)))), 0.25)
  expect_slopes(sites, model_glm(y ~ x, family = "poisson"), partial_pooling())

  bounds <- list(y = c(-5, 5), x = c(-4, 4), f = c("u", "v"))
  sites <- lapply(c(north = 0.6, south = 1), function(effect) {
    x <- rnorm(400, 0, 0.7)
    f <- sample(c("u", "v"), 400, TRUE)
    simulate_release(data.frame(y = 0.5 + x + effect * (f == "v") + rnorm(400, 0, 0.5), x, f), stat_crossprod(y ~ x + f, bounds), mech_gaussian(sd = 1))
  })
  fit <- approximately(sites, model_lm(), pool = "partial", iter = 500)
  expect_lt(max(abs(coef(fit) - rbind(c(0.5, 1, 0.6, 0.5), c(0.5, 1, 1, 0.5)))), 0.3)
  expect_slopes(sites, model_lm(), partial_pooling(walk = TRUE))
  expect_slopes(sites, model_lm(), partial_pooling(covariates = "shared"))
})

count_sites <- function(variables, levels, asked, noise = mech_laplace(scale = 3)) {
  lapply(c(a = 0.2, b = 0.3, c = 0.4), function(share) {
    data <- lapply(levels, function(own) sample(own, 300, TRUE, c(share, rep(1, length(own) - 1L))))
    simulate_release(as.data.frame(data), stat_counts(asked, levels = levels), noise)
  })
}

test_that("categories and naive Bayes: totals are made of innovations by a factor of their covariance", {
  skip_on_cran()
  set.seed(11)
  three <- count_sites("k", list(k = c("u", "v", "w")), ~ k, mech_gaussian(sd = 3))
  expect_slopes(three, model_categorical(), partial_pooling())
  levels <- list(y = c("m", "f"), k = c("u", "v", "w"), l = c("no", "yes"))
  bayes <- count_sites(names(levels), levels, ~ y:k + y:l, mech_gaussian(sd = 3))
  expect_slopes(bayes, model_naive_bayes("y"), partial_pooling(walk = TRUE))

  # the covariance of counts is singular: the innovations give it, and the same total
  bound <- internal("bind_sites")(model_categorical(), three, NULL)
  plain <- internal("clt_distribution")(bound, three$a, NULL)
  spec <- internal("with_innovations")(plain, bound)
  theta <- matrix(c(-1, 0.3))
  cov <- .Call(internal("ffi_clt_moments"), plain$spec, theta)[[1]]$cov[1:3, 1:3]
  root <- vapply(1:3, function(k) {
    made <- .Call(internal("ffi_clt_form"), spec, theta, 100, cbind(as.double(1:3 == k), 0), double(3))$total
    (made[, 1L] - made[, 2L]) / 10
  }, double(3))
  expect_equal(tcrossprod(root), cov)

  fit <- approximately(three, model_categorical(), pool = "partial", iter = 800)
  expect_identical(head(posterior::variables(fit$draws), 8L), c("prob[u]", "prob[v]", "prob[w]", "sd[logit(prob[u])]", "sd[logit(prob[v]|rest)]",
                                                                "prob[u,a]", "prob[v,a]", "prob[w,a]"))
  expect_equal(rowSums(coef(fit)), c(a = 1, b = 1, c = 1))
  expect_equal(posterior::variables(site_draws(fit, "new", seed = 1)), c("prob[u]", "prob[v]", "prob[w]"))
  expect_identical(shrinkage_data(fit, "prob[w]")$site, names(three))
  rows <- approximately(bayes, model_naive_bayes("y"), pool = "partial", iter = 400, chains = 2)
  expect_length(grep("^sd\\[", posterior::variables(rows$draws)), 1 + 2 * 2 + 2 * 1)
})

test_that("one probability, one rate: as the exact engine says", {
  skip_on_cran()
  set.seed(12)
  two <- count_sites("k", list(k = c("u", "v")), ~ k)
  exact <- sample_posterior(two, model_bernoulli(), pool = "partial", iter = 2000, seed = 1)
  fit <- approximately(two, model_bernoulli(), pool = "partial", iter = 2000)
  both <- approximately(two, model_categorical(), pool = "partial", iter = 2000)
  names <- posterior::variables(exact$draws)
  expect_identical(posterior::variables(fit$draws), names)
  same_posterior(exact$draws, fit$draws, list(names, names))
  same_posterior(exact$draws, both$draws, list(names, sub("prob\\[v\\]\\)", "prob[u])", names)))
  # two categories are one probability
  rates <- sample_posterior(two, model_categorical(), pool = "partial", iter = 2000, seed = 1)
  expect_identical(posterior::variables(rates$draws), posterior::variables(both$draws))
  same_posterior(exact$draws, rates$draws, list(names[-2L], names[-2L]))

  counts <- lapply(c(a = 2, b = 3, c = 5), function(rate) {
    simulate_release(data.frame(x = rpois(150, rate)), stat_sums(~ x, bounds = list(x = c(0, 60))), mech_laplace(scale = 20))
  })
  exact <- sample_posterior(counts, model_poisson(), pool = "walk", iter = 2000, seed = 1)
  fit <- approximately(counts, model_poisson(), pool = "walk", iter = 2000)
  names <- posterior::variables(exact$draws)
  expect_identical(posterior::variables(fit$draws), names)
  same_posterior(exact$draws, fit$draws, list(names, names))
})

test_that("what cannot be pooled partially is refused", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(10)
  sites <- logistic_sites()
  expect_error(sample_posterior(sites, model_logistic(y ~ x), pool = "partial", method = "collapse"), class = "noiseaware_error_method")
  expect_error(sample_posterior(totals_sites(), model_mvnormal(prior = prior_niw(within = TRUE)), pool = "partial", method = "clt"), "truncated",
               class = "noiseaware_error_method")
  expect_error(sample_posterior(sites, model_logistic(y ~ x), pool = "partial", method = "clt", init = list()), class = "noiseaware_error_argument")
  expect_error(sample_posterior(two_yes(), model_bernoulli(), pool = partial_pooling(covariates = "shared")), class = "noiseaware_error_pool")
  expect_error(sample_posterior(totals_sites(), model_lm(), pool = partial_pooling(covariates = "shared")), "asks for that method", class = "noiseaware_error_pool")
  expect_error(partial_pooling(covariates = "all"), class = "noiseaware_error_argument")
  for (walk in list(3, 0, NA, "2", 1:2)) expect_error(partial_pooling(walk = walk), "walk", class = "noiseaware_error_argument")
})
