# Method "clt": its moments against exact sums, its sampler against quadrature of
# the normal law, restarts.

clt_law_of <- function(model, release) {
  bound <- internal("bind_model")(model, release$statistic)
  c(internal("clt_law")(bound, release, NULL), list(bound = bound))
}

clt_moments <- function(law, theta) .Call(internal("ffi_clt_moments"), law$spec, as.matrix(theta))

yes_no <- stat_counts(~ x, levels = list(x = c("a", "b")))

# ---- counts: moments by enumeration of the records -----------------------------

test_that("moments of margins are sums over all records", {
  levels <- list(y = c("1", "2", "3"), u = c("1", "2"), v = c("1", "2", "3"))
  cases <- list(~ y:u + y:v, ~ u:y + v, ~ u + v + y, ~ u:v + y, ~ y:u:v + u:v)
  for (formula in cases) {
    st <- stat_counts(formula, levels)
    rel <- as_release(rep(5, length(st$components)), st, mech_laplace(epsilon = 1), 30)
    law <- clt_law_of(model_naive_bayes("y"), rel)
    set.seed(1)
    theta <- matrix(rnorm(2 * law$bound$sizes$parameters), ncol = 2)
    records <- as.matrix(expand.grid(y = 0:2, u = 0:1, v = 0:2))
    indicator <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), records[, st$columns$name] + 0)
    complete <- t(vapply(seq_len(nrow(records)), function(i) {
      .Call(internal("ffi_model_complete"), law$bound$spec, records[i, law$bound$columns$name, drop = FALSE] + 0, 1)
    }, numeric(law$bound$sizes$complete)))
    released <- seq_along(st$components)
    for (k in 1:2) {
      p <- internal("reported")(law$bound, theta[, k])[1, ]
      at <- function(v, row) p[sprintf("p[%s=%d|y=%d]", v, records[, v] + 1L, records[, "y"] + 1L)]
      weight <- p[sprintf("p[y=%d]", records[, "y"] + 1L)] * at("u") * at("v")
      m <- clt_moments(law, theta)[[k]]
      expect_equal(m$mean[released], colSums(indicator * weight), tolerance = 1e-13)
      expect_equal(m$cov[released, released], crossprod(indicator * weight, indicator) - tcrossprod(colSums(indicator * weight)),
                   tolerance = 1e-12)
      # the mean total stands for the mean complete-data counts
      back <- .Call(internal("ffi_clt_complete"), law$spec, 1, m$mean)
      expect_true(back$valid)
      expect_equal(back$complete, colSums(complete * weight), tolerance = 1e-13)
      expect_equal(back$projected, back$complete, tolerance = 1e-13)
    }
  }
})

test_that("impossible counts are found and projected", {
  rel <- as_release(c(1, 2), yes_no, mech_laplace(epsilon = 1), 10)
  law <- clt_law_of(model_bernoulli(), rel)
  bad <- .Call(internal("ffi_clt_complete"), law$spec, 10, c(-1, 11))
  expect_false(bad$valid)
  expect_equal(bad$projected, c(0, 10))
})

# ---- the sampler against quadrature of its own target ----------------------------

# p(theta | z) where z_2 - n p is normal plus noise: one component, by a grid
test_that("without the conjugate step it samples the normal law exactly", {
  n <- 60
  p <- seq(0.0005, 0.9995, length.out = 2000)
  # a total over two cells whose noise is independent: (s, n - s) with s normal
  s <- seq(-60, 120, length.out = 1501)
  for (mechanism in list(mech_laplace(scale = 4), mech_gaussian(sd = 4), mech_laplace(scale = 60), mech_discrete_laplace(scale = 4))) {
    z <- c(14, 51)
    rel <- as_release(z, yes_no, mechanism, n)
    noise <- exp(log_noise(mechanism$kernel, unname(rel$scale), z, cbind(n - s, s)))
    density <- vapply(p, function(q) sum(noise * dnorm(s, n * q, sqrt(n * q * (1 - q)))), 0) * dbeta(p, 2, 3)
    fit <- sample_posterior(rel, model_bernoulli(prior = prior_beta(2, 3)), method = "clt", chains = 2, iter = 60000, warmup = 2000,
                            seed = 5, control = list(conjugate = FALSE))
    expect_law(parameter_draws(fit, "prob"), grid_quantile(p, density))
  }
})

test_that("a run goes on bit for bit, and a seed fixes it", {
  rel <- as_release(c(300, 712), yes_no, mech_laplace(epsilon = 0.1), 1000)
  for (control in list(list(), list(sampler = "gibbs"), list(conjugate = FALSE, passes = 2))) {
    run <- function(iter) sample_posterior(rel, model_bernoulli(), method = "clt", chains = 2, iter = iter, warmup = 200, seed = 3, control = control)
    whole <- run(1000)
    expect_identical(extend(run(500), 500)$draws, whole$draws)
    expect_identical(denoise(extend(run(500), 500)), denoise(whole))
  }
})
