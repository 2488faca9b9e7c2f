# Priors of mean and sd that bounds cut off: their draws and densities, the
# update by rejection and by slice sampling, and the posterior by quadrature.

box <- list(x = c(-1, 3))
within_statistic <- stat_sums(~ x + I(x^2), box, rescale = FALSE)
within_bind <- function(model, statistic = within_statistic) internal("bind_model")(model, statistic)
within_prior <- function(bound, draws, seed = 1) {
  .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(37, seed)), as.integer(draws))$theta
}
cut_nig <- model_normal(prior = prior_nig(0.5, 0.5, 2, 3, within = TRUE))

# posterior of (mean, log sd) on a grid inside the box, given log likelihoods;
# the grid is made once more where the mass is
within_grid <- function(log_likelihood, m0 = 0.5, kappa = 0.5, shape = 2, rate = 3, points = 301) {
  range <- list(mean = c(-1, 3), log_sd = log(c(0.02, 2)))
  for (zoom in 1:2) {
    axis <- lapply(range, function(r) seq(r[1], r[2], length.out = points))
    grid <- expand.grid(axis)
    prior <- with(grid, dnorm(mean, m0, exp(log_sd) / sqrt(kappa), log = TRUE) - 2 * shape * log_sd - rate * exp(-2 * log_sd))
    density <- prior + log_likelihood(grid$mean, exp(grid$log_sd))
    density <- matrix(exp(density - max(density)), points)
    range <- lapply(1:2, function(k) range(axis[[k]][apply(density, k, max) > 1e-12]))
    names(range) <- names(axis)
  }
  list(mean = grid_quantile(axis$mean, rowSums(density)), log_sd = grid_quantile(axis$log_sd, colSums(density)))
}

test_that("prior draws are those of the whole prior that lie within", {
  cut <- within_prior(within_bind(cut_nig), 1e5)
  expect_true(all(cut[1, ] >= -1 & cut[1, ] <= 3 & cut[2, ] <= log(2)))
  whole <- within_prior(within_bind(model_normal(prior = prior_nig(0.5, 0.5, 2, 3))), 3e5, seed = 2)
  whole <- whole[, whole[1, ] >= -1 & whole[1, ] <= 3 & whole[2, ] <= log(2)]
  for (j in 1:2) expect_gt(suppressWarnings(ks.test(cut[j, ], whole[j, ]))$p.value, 1e-6)
  density <- .Call(internal("ffi_model_log_prior"), within_bind(cut_nig)$spec, cbind(c(0, 0), c(3.1, 0), c(0, 0.7), c(-1.01, -1), c(2.9, 0.69)))
  expect_identical(is.finite(density), c(TRUE, FALSE, FALSE, FALSE, TRUE))
})

gibbs_draws <- function(bound, x, draws = 20000L, steps = 3L) {
  complete <- .Call(internal("ffi_model_complete"), bound$spec, x)
  start <- list(theta = within_prior(bound, 1), state = internal("new_stream")(c(38, 1)))
  internal("gibbs")(bound, complete, nrow(x), start, c(draws, steps), NULL)$theta
}

test_that("given the records the distribution is the conjugate one, cut off", {
  skip_on_cran() # takes long; `make test` runs it
  # near the bound: rejection; far outside, where no draw lies within: slices
  set.seed(2)
  for (centre in c(2.8, 9)) {
    x <- cbind(rnorm(6, centre, 1))
    exact <- within_grid(function(mean, sd) -6 * log(sd) - rowSums(outer(mean, drop(x), function(m, v) (v - m)^2)) / (2 * sd^2))
    theta <- gibbs_draws(within_bind(cut_nig), x, 15000L, if (centre > 5) 5L else 1L)
    expect_true(all(theta[1, ] <= 3 & theta[2, ] <= log(2)))
    expect_distribution(theta[1, ], exact$mean)
    expect_distribution(theta[2, ], exact$log_sd)
  }
})

test_that("the same distribution as normal-inverse-Wishart, with a known mean or covariance", {
  skip_on_cran() # takes long; `make test` runs it
  # IW(df, psi) of one variable: sd^2 ~ IG(df / 2, psi / 2)
  set.seed(3)
  cut <- function(mean, cov) model_mvnormal(prior = list(mean = mean, cov = cov))
  niw <- prior_niw(0.5, 0.5, 6, 4, within = TRUE)
  for (centre in c(2.8, 9)) {
    x <- cbind(rnorm(6, centre, 1))
    likelihood <- function(mean, sd) -6 * log(sd) - rowSums(outer(mean, drop(x), function(m, v) (v - m)^2)) / (2 * sd^2)
    exact <- within_grid(likelihood)
    theta <- gibbs_draws(within_bind(model_mvnormal(prior = niw)), x, 15000L, if (centre > 5) 5L else 1L)
    expect_distribution(theta[1, ], exact$mean)
    expect_distribution(theta[2, ], exact$log_sd)
    # mean alone: a normal cut off
    theta <- gibbs_draws(within_bind(cut(niw, fixed(matrix(1.2)))), x, 15000L)
    kappa <- 6.5
    m <- (0.5 * 0.5 + sum(x)) / kappa
    s <- sqrt(1.2 / kappa)
    exact <- function(p) {
      tail <- pnorm(c(-1, 3), m, s, log.p = TRUE)
      qnorm(tail[2] + log(p + (1 - p) * exp(tail[1] - tail[2])), m, s, log.p = TRUE)
    }
    expect_distribution(theta[1, ], exact)
    # sd alone: an inverse gamma cut off
    theta <- gibbs_draws(within_bind(cut(fixed(0.5), niw)), x, 15000L)
    rate <- 3 + sum((x - 0.5)^2) / 2
    least <- pgamma(rate / 4, 5, lower.tail = FALSE, log.p = TRUE) # sd <= 2
    exact <- function(p) 0.5 * log(rate / qgamma(least + log(p), 5, lower.tail = FALSE, log.p = TRUE))
    expect_distribution(theta[2, ], exact)
  }
})

test_that("covariates of a regression whose mean or variance is known: the same cut distributions", {
  st <- stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-1, 3)), rescale = FALSE)
  niw <- prior_niw(0.5, 0.5, 6, 4, within = TRUE)
  set.seed(6)
  records <- cbind(rnorm(6), rnorm(6, 2.8))
  x <- records[, 2L]
  draws_of <- function(mean, cov) {
    bound <- within_bind(model_lm(covariates = list(mean = mean, cov = cov)), st)
    internal("reported")(bound, gibbs_draws(bound, records, 6000L))
  }
  # the mean is normal, the variance inverse gamma
  m <- (0.5 * 0.5 + sum(x)) / 6.5
  s <- sqrt(1.2 / 6.5)
  ends <- pnorm(c(-1, 3), m, s)
  expect_distribution(draws_of(niw, fixed(matrix(1.2)))[, "mean[x]"], function(p) qnorm(ends[1] + p * diff(ends), m, s))
  rate <- 3 + sum((x - 0.5)^2) / 2
  least <- pgamma(rate / 4, 5, lower.tail = FALSE) # a variance of at most 4
  expect_distribution(draws_of(fixed(0.5), niw)[, "cov[x,x]"], function(p) rate / qgamma(least * p, 5, lower.tail = FALSE))
})

test_that("the slice sampler's step leaves the distribution of two variables as it is", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x + z, list(x = c(-1, 3), z = c(0, 2)), rescale = FALSE)
  prior <- prior_niw(c(1, 1), 1, matrix(c(2, 0.3, 0.3, 1), 2), 5)
  cut <- prior_niw(c(1, 1), 1, matrix(c(2, 0.3, 0.3, 1), 2), 5, within = list(z = c(0, 2), x = c(-1, 3)))
  set.seed(4)
  x <- cbind(rnorm(5, 4.2, 0.8), rnorm(5, 2.3, 0.8))
  inside <- function(v) v[, 1] >= -1 & v[, 1] <= 3 & v[, 2] >= 0 & v[, 2] <= 2 & v[, 3] <= 4 & v[, 5] <= 1
  whole <- within_bind(model_mvnormal(prior = prior), st)
  reference <- internal("reported")(whole, gibbs_draws(whole, x, 250000L, 1L))
  reference <- reference[inside(reference), ]
  expect_gt(nrow(reference), 500)
  expect_lt(nrow(reference), 4000) # so that fifty draws often fail
  bound <- within_bind(model_mvnormal(prior = cut), st)
  draws <- internal("reported")(bound, gibbs_draws(bound, x, 20000L, 2L))
  expect_true(all(inside(draws)))
  for (j in 1:5) {
    for (p in c(0.2, 0.5, 0.8)) {
      q <- quantile(reference[, j], p)
      below <- (draws[, j] <= q) + 0
      expect_lt(abs(mean(below) - p) / sqrt(posterior::mcse_mean(below)^2 + p * (1 - p) / nrow(reference)), 5)
    }
  }
})

test_that("one record and a noisy total: quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(c(2.6, 7.5), within_statistic, mech_laplace(scale = c(0.5, 2)), 1)
  v <- seq(-12, 14, length.out = 651)
  clamped <- pmin(pmax(v, -1), 3)
  noise <- exp(-abs(clamped - 2.6) / 0.5 - abs(clamped^2 - 7.5) / 2)
  likelihood <- function(mean, sd) log(vapply(seq_along(mean), function(i) {
    inner <- c(-Inf, v[-1] - diff(v) / 2, Inf) # the distribution's share of each cell
    sum(diff(pnorm(inner, mean[i], sd[i])) * noise)
  }, 0))
  exact <- within_grid(likelihood, points = 75)
  for (model in list(cut_nig, model_mvnormal(prior = prior_niw(0.5, 0.5, 6, 4, within = c(-1, 3))))) {
    for (passes in c(0, 2)) {
      fit <- sample_posterior(rel, model, chains = 2, iter = 5500, warmup = 400, seed = 1, control = list(passes = passes))
      expect_distribution(parameter_draws(fit, if ("mean" %in% fit$bound$parameters) "mean" else "mean[x]"), exact$mean)
      sd <- if ("sd" %in% fit$bound$parameters) parameter_draws(fit, "sd") else sqrt(parameter_draws(fit, "cov[x,x]"))
      expect_distribution(log(sd), exact$log_sd)
    }
  }
})

test_that("covariates of a regression stay within", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-1, 1)))
  model <- model_lm(covariates = prior_niw(within = TRUE))
  bound <- within_bind(model, st)
  prior <- internal("reported")(bound, within_prior(bound, 20000))
  expect_true(all(abs(prior[, "mean[x]"]) <= 1 & prior[, "cov[x,x]"] <= 1))
  set.seed(5)
  for (passes in c(0, 2)) {
    draws <- geweke(model, st, mech_gaussian(sd = 1), 5, 2500, passes)
    expect_true(all(abs(draws[, "mean[x]"]) <= 1 & draws[, "cov[x,x]"] <= 1))
    expect_prior(draws[, c("mean[x]", "cov[x,x]", "x")], prior)
  }
})

test_that("bounds of a prior are checked, and shown", {
  skip_on_cran() # takes long; `make test` runs it
  for (within in list(FALSE, 1, c(1, 1), c(2, 1), c(0, NA), c(0, Inf), "x", list(c(0, 1)), list(x = c(1, 0)), list(x = c(0, 1), x = c(0, 1)))) {
    expect_error(prior_nig(within = within), class = "noiseaware_error_prior")
    expect_error(prior_niw(within = within), class = "noiseaware_error_prior")
  }
  expect_identical(format(prior_nig(within = TRUE)), "nig(scaled by the bounds; within the bounds)")
  expect_identical(format(prior_nig(0, 1, 2, 3, within = c(0, 1))), "nig(mean = 0, precision = 1, shape = 2, rate = 3; within [0, 1])")
  expect_match(format(prior_niw(within = list(x = c(0, 1)))), "; within x [0, 1])", fixed = TRUE)
  prior <- function(code) expect_error(code, class = "noiseaware_error_prior")
  prior(model_lm(prior = prior_nig(within = TRUE)))
  prior(within_bind(model_normal(prior = prior_nig(within = list(z = c(0, 1))))))
  prior(within_bind(model_normal(prior = prior_nig(100, 100, 2, 3, within = TRUE)))) # no mass there
  prior(within_bind(model_mvnormal(prior = prior_niw(100, 100, 1, 5, within = TRUE))))
  theta <- function(...) internal("bound_theta")(within_bind(cut_nig), c(...))
  expect_length(theta(mean = 1, sd = 1), 2)
  for (values in list(c(mean = 3.1, sd = 1), c(mean = 0, sd = 2.1))) expect_error(theta(values), class = "noiseaware_error_argument")
  bound <- within_bind(model_mvnormal(prior = prior_niw(within = TRUE)))
  expect_error(internal("bound_theta")(bound, c("mean[x]" = 0, "cov[x,x]" = 5)), class = "noiseaware_error_argument")
})
