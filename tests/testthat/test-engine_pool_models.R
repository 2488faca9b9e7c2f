# Partial pooling and walks of tables, log-linear models and multivariate normal records: src/pool/parameters_nuts.c, src/model/mvnormal.c.

pooled <- function(..., chains = 2, iter = 1800) suppressWarnings(suppressMessages(sample_posterior(..., chains = chains, iter = iter, seed = 1)))

# sites of normal (y, x) from draws of the prior, their spread on mean and log-Cholesky factor with half-normal standard deviations
spread_mvnormal <- function(model, draws, scale) {
  prior <- prior_draws(model, wide_totals(), draws)
  first <- sqrt(prior[, 3])
  middle <- prior[, 4] / first
  mean <- cbind(prior[, 1:2], log(first), middle, log(sqrt(prior[, 5] - middle^2)))
  sd <- abs(matrix(rnorm(5 * draws, 0, scale), draws))
  site <- function(n) {
    at <- mean + sd * rnorm(5 * draws)
    totals <- matrix(0, draws, 5)
    for (i in seq_len(n)) {
      u <- rnorm(draws)
      y <- at[, 1] + exp(at[, 3]) * u
      x <- at[, 2] + at[, 4] * u + exp(at[, 5]) * rnorm(draws)
      totals <- totals + cbind(y, x, y^2, y * x, x^2)
    }
    list(at = at, totals = totals, cov = cbind(exp(2 * at[, 3]), exp(at[, 3]) * at[, 4], at[, 4]^2 + exp(2 * at[, 5])))
  }
  list(prior = prior, sd = sd, site = site)
}

test_that("multivariate normal sites: draws from the prior, weighted by the noise, by totals and by records", {
  skip_on_cran()
  set.seed(1)
  model <- model_mvnormal(prior = prior_niw(0.2, 2, 2, 6))
  from <- spread_mvnormal(model, 1e5, 0.4)
  z <- list(c(y = 1.7, x = 2.3, "y^2" = 4.1, "y:x" = 1.9, "x^2" = 3.2), c(y = -0.8, x = 0.4, "y^2" = 2.2, "y:x" = -0.5, "x^2" = 4.4))
  sites <- list(north = as_release(z[[1]], wide_totals(), mech_laplace(scale = 2), n = 3), south = as_release(z[[2]], wide_totals(), mech_gaussian(sd = 2.5), n = 4))
  own <- list(from$site(3), from$site(4))
  log_weight <- log_noise("absolute", 2, z[[1]], own[[1]]$totals) + log_noise("squared", 2.5, z[[2]], own[[2]]$totals)
  pooling <- partial_pooling(sd = prior_half_normal(0.4))
  innovations <- function() {
    parts <- partial_parts(sites, model, pooling)
    problem <- with_coordinates(parts$problem, 1, 2L)
    chains <- lapply(1:2, function(k) {
      state <- internal("start_pool")(problem, parts$bound, c(3, 4), k, NULL)
      colnames <- list(NULL, problem$names)
      `dimnames<-`(internal("run_blocks")(problem, state, 3000, list(warmup = 1000, thin = 1), function(...) NULL)$draws, colnames)
    })
    list(draws = internal("chains_array")(chains))
  }
  draws_of <- function(fit, name) posterior::extract_variable_matrix(fit$draws, name)
  for (method in c("collapse", "innovations", "augment")) {
    fit <- if (method == "innovations") innovations() else pooled(sites, model, pool = pooling, method = method, iter = 2000)
    if (method != "innovations") expect_identical(fit$problem$family, if (method == "collapse") "totals" else "records")
    for (k in 1:5) expect_weighted_mean(draws_of(fit, colnames(from$prior)[k]), from$prior[, k], log_weight)
    expect_weighted_mean(draws_of(fit, "sd[mean[y]]"), from$sd[, 1], log_weight)
    expect_weighted_mean(draws_of(fit, "sd[log_chol(cov[x,x])]"), from$sd[, 5], log_weight)
    expect_weighted_mean(draws_of(fit, "sd[chol(cov[x,y])]"), from$sd[, 4], log_weight)
    for (j in 1:2) {
      expect_weighted_mean(draws_of(fit, sprintf("mean[x,%s]", names(sites)[j])), own[[j]]$at[, 2], log_weight)
      expect_weighted_mean(log(draws_of(fit, sprintf("cov[x,x,%s]", names(sites)[j]))), log(own[[j]]$cov[, 3]), log_weight)
      expect_weighted_mean(draws_of(fit, sprintf("cov[x,y,%s]", names(sites)[j])), own[[j]]$cov[, 2], log_weight)
    }
  }
})

test_that("ten sites of normal pairs whose noise hides their spread converge by default, without divergent trajectories", {
  skip_on_cran()
  set.seed(2)
  asked <- stat_crossprod(a ~ b, list(a = c(-5, 5), b = c(-5, 5)))
  sites <- lapply(stats::setNames(nm = paste0("s", 1:10)), function(site) {
    mean <- rnorm(2, 0, 0.3)
    z <- matrix(rnorm(400), 200)
    simulate_release(data.frame(a = mean[1] + z[, 1], b = mean[2] + 0.5 * z[, 1] + z[, 2]), asked, mech_laplace(epsilon = 1))
  })
  fit <- sample_posterior(sites, model_mvnormal(), pool = "partial", chains = 2, seed = 1)
  expect_lt(sum(acceptance(fit)$divergent), 3)
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.02)
})

test_that("the gradient of multivariate normal sites, a known mean or covariance among them, is that of the density", {
  skip_on_cran()
  set.seed(2)
  priors <- list(prior_niw(0.2, 2, 2, 6), list(mean = fixed(c(0.4, 0.1)), cov = prior_niw(0.2, 2, 2, 6)),
                 list(mean = prior_niw(0.2, 2, 2, 6), cov = fixed(matrix(c(1.5, 0.3, 0.3, 0.8), 2))))
  for (prior in priors) for (pooling in list(partial_pooling(correlation = prior_lkj(2)), partial_pooling(walk = TRUE))) {
    parts <- partial_parts(totals_sites(), model_mvnormal(prior = prior), pooling)
    for (innovates in c(0L, 2L)) {
      problem <- with_coordinates(parts$problem, 1, innovates)
      state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
      partial <- problem$partial
      varying <- length(partial$which)
      size <- 2 * varying + problem$begin$pairs + (3 - (partial$walk > 0)) * varying + 3 * 5
      q <- state$store[seq_len(size)] + rnorm(size, 0, 0.1)
      at <- function(q) .Call(internal("ffi_pool_density"), problem, state, q)
      expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
    }
  }
})

test_that("log-linear models of one and of two records: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(3)
  draws <- 1e5
  levels <- list(a = c("p", "q"), b = c("u", "v", "w"))
  asked <- stat_counts(~ a:b, levels = levels)
  z <- list(c(0.9, -0.4, 0.6, 0.2, 1.1, -0.3), c(0.4, 1.7, 0.1, 0.9, -0.8, 0.3))
  sites <- list(north = as_release(z[[1]], asked, mech_laplace(scale = 0.8), n = 1), south = as_release(z[[2]], asked, mech_gaussian(sd = 0.9), n = 2))
  cells <- strsplit(sub("^a=(.):b=(.)$", "\\1 \\2", asked$components), " ")
  design <- t(vapply(cells, function(cell) c(cell[1] == "q", cell[2] == "v", cell[2] == "w") + 0, numeric(3)))
  mean <- matrix(rnorm(3 * draws), draws)
  sd <- abs(matrix(rnorm(3 * draws, 0, 0.7), draws))
  site <- function(n) {
    at <- mean + sd * rnorm(3 * draws)
    p <- exp(at %*% t(design))
    upto <- t(apply(p / rowSums(p), 1, cumsum))
    count <- matrix(0, draws, 6)
    for (i in seq_len(n)) {
      cell <- 1 + rowSums(runif(draws) > upto)
      count[cbind(seq_len(draws), cell)] <- count[cbind(seq_len(draws), cell)] + 1
    }
    list(at = at, count = count)
  }
  own <- list(site(1), site(2))
  log_weight <- log_noise("absolute", 0.8, z[[1]], own[[1]]$count) + log_noise("squared", 0.9, z[[2]], own[[2]]$count)
  for (method in c("augment", "collapse")) {
    fit <- pooled(sites, model_table(~ a + b, prior = prior_normal(0, 1)), pool = partial_pooling(sd = prior_half_normal(0.7)), method = method, iter = 1800)
    expect_identical(fit$problem$family, if (method == "collapse") "tables" else "records")
    names <- fit$bound$parameters
    expect_length(names, 3L)
    for (k in 1:3) {
      expect_weighted_mean(parameter_draws(fit, names[k]), mean[, k], log_weight)
      expect_weighted_mean(parameter_draws(fit, sprintf("sd[%s]", names[k])), sd[, k], log_weight)
      for (j in 1:2) expect_weighted_mean(parameter_draws(fit, sprintf("%s[%s]", names[k], names(sites)[j])), own[[j]]$at[, k], log_weight)
    }
  }
})

test_that("an exponential family of R functions agrees with the rate that it is", {
  skip_on_cran()
  set.seed(4)
  asked <- stat_sums(~ x, bounds = list(x = c(0, 60)))
  sites <- lapply(c(a = 0.6, b = 1, c = 1.8), function(rate) simulate_release(data.frame(x = rexp(20, rate)), asked, mech_laplace(scale = 2)))
  family <- model_expfam(log_density = function(x, theta) theta[["log_rate"]] - exp(theta[["log_rate"]]) * x, statistic = function(x) x,
                         r_prior = function() c(log_rate = log(rgamma(1, 2, 2))), log_prior = function(theta) 2 * theta[["log_rate"]] - 2 * exp(theta[["log_rate"]]),
                         r_theta = function(total, n) c(log_rate = log(rgamma(1, 2 + n, 2 + total))),
                         r_records = function(theta, n) rexp(n, exp(theta[["log_rate"]])), support = c(0, Inf))
  pool <- partial_pooling(sd = prior_half_normal(0.7))
  fit <- pooled(sites, family, pool = pool, chains = 2, iter = 850)
  expect_identical(fit$problem$family, "records")
  exact <- pooled(sites, model_exponential(prior = prior_gamma(2, 2)), pool = pool)
  expect_agreement(exp(parameter_draws(fit, "log_rate")), parameter_draws(exact, "rate"))
  expect_agreement(parameter_draws(fit, "sd[log_rate]"), parameter_draws(exact, "sd[log(rate)]"))
  expect_agreement(exp(parameter_draws(fit, "log_rate[c]")), parameter_draws(exact, "rate[c]"))
})
