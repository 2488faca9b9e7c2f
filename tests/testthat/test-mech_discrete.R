# Discrete noise on counts: scales, guarantees, distributions, exact posteriors.

yes_no <- stat_counts(~ y, levels = list(y = c("no", "yes")))
margins <- stat_counts(~ y + y:g, levels = list(y = c("no", "yes"), g = c("a", "b", "c"))) # L1 4, L2 2
totals <- stat_crossprod(y ~ 1, list(y = c(0, 1)))
scale_of <- function(mechanism, statistic = margins) internal("mechanism_scale")(mechanism, statistic)

test_that("the budget gives the scale, from the norm of the kernel", {
  expect_equal(scale_of(mech_discrete_laplace(epsilon = 0.5)), rep(8, 8))
  expect_equal(scale_of(mech_discrete_gaussian(rho = 0.5)), rep(2, 8))
  expect_equal(scale_of(mech_discrete_gaussian(rho = 2)), rep(1, 8))
  expect_identical(scale_of(mech_discrete_laplace(scale = 3)), rep(3, 8))
  given <- stats::setNames(8:1, rev(margins$components))
  expect_identical(scale_of(mech_discrete_gaussian(sd = given)), as.double(1:8))
  expect_error(scale_of(mech_discrete_laplace(scale = 1:3)), class = "noiseaware_error_mechanism")
})

test_that("privacy() is that of the continuous twins, but for what integers lack", {
  expect_equal(privacy(mech_discrete_laplace(epsilon = 2)), privacy(mech_laplace(epsilon = 2)))
  expect_equal(privacy(mech_discrete_laplace(scale = 2), statistic = margins), privacy(mech_laplace(scale = 2), statistic = margins))
  row <- privacy(mech_discrete_gaussian(rho = 0.3))
  expect_equal(row$rho, 0.3)
  expect_true(is.na(row$mu) && is.na(row$epsilon))
  expect_equal(privacy(mech_discrete_gaussian(sd = 4), statistic = margins)$rho, 1 / 8)
})

test_that("noise on neighbours keeps the guarantee: privacy loss, and Renyi divergences", {
  k <- seq(-3000, 3000)
  for (b in c(0.3, 1, 7)) {
    loss <- ddiscrete_laplace(k, 0, b, log = TRUE) - ddiscrete_laplace(k, 2, b, log = TRUE)
    expect_equal(max(abs(loss)), 2 / b)
  }
  for (s in c(0.4, 1, 6)) {
    for (alpha in c(1.5, 2, 5)) {
      a <- alpha * ddiscrete_gaussian(k, 0, s, log = TRUE) + (1 - alpha) * ddiscrete_gaussian(k, 2, s, log = TRUE)
      divergence <- (max(a) + log(sum(exp(a - max(a))))) / (alpha - 1)
      expect_lte(divergence, alpha * 2^2 / (2 * s^2) * (1 + 1e-9))
      if (alpha == 5) expect_equal(divergence, alpha * 2^2 / (2 * s^2), tolerance = 1e-9)
    }
  }
})

test_that("discrete Gaussian noise is as near to rounded continuous noise as ?release says", {
  for (s in c(1, 2, 5, 64, 1024)) {
    k <- 0:ceiling(12 * s)
    discrete <- ddiscrete_gaussian(k, 0, s)
    rounded <- pnorm((0.5 - k) / s) - pnorm((-0.5 - k) / s)
    distance <- sum(c(1, rep(2, length(k) - 1)) * abs(discrete - rounded)) / 2
    expect_lt(distance, 1 / (49 * s^2))
    expect_gt(distance, 1 / (62 * s^2))
  }
})

test_that("noise_sd() is the standard deviation of the discrete distribution", {
  cases <- list(list(mech_discrete_laplace(scale = 1), ddiscrete_laplace), list(mech_discrete_gaussian(sd = 1), ddiscrete_gaussian))
  for (case in cases) {
    for (s in c(0.05, 0.3, 0.499999, 0.500001, 1, 2.5, 7.9999, 8.0001, 30)) {
      k <- seq(0, ceiling(60 * s) + 5)
      expect_equal(internal("mechanism_sd")(case[[1]], s), sqrt(2 * sum(rev(k^2 * case[[2]](k, 0, s)))), tolerance = 1e-10)
    }
    expect_equal(internal("mechanism_sd")(case[[1]], c(1e-9, 1e9)), c(0, if (case[[1]]$kernel == "absolute") sqrt(2e18) else 1e9), tolerance = 1e-9)
  }
  rel <- as_release(c(3, 9), yes_no, mech_discrete_laplace(scale = c(1, 0.5)), 12)
  expect_equal(noise_sd(rel), c("y=no" = 1 / sqrt(2) / sinh(0.5), "y=yes" = 1 / sqrt(2) / sinh(1)))
})

test_that("noise is integer and has the distribution", {
  skip_on_cran() # takes long; `make test` runs it
  data <- data.frame(y = rep(c("no", "yes"), c(60, 40)))
  cases <- list(list(mech_discrete_laplace(scale = 3), pdiscrete_laplace), list(mech_discrete_gaussian(sd = 2.2), pdiscrete_gaussian))
  for (case in cases) {
    set.seed(3)
    for (make in list(release, simulate_release)) {
      noise <- as.vector(replicate(2000, make(data, yes_no, case[[1]])$value - c(60, 40)))
      expect_true(all(noise == round(noise)))
      cells <- -5:5
      observed <- tabulate(findInterval(noise, cells, left.open = TRUE) + 1, 12)
      expected <- diff(c(0, case[[2]](cells, 0, internal("mechanism_scale")(case[[1]], yes_no)[1]), 1))
      expect_gt(chisq.test(observed, p = expected)$p.value, 1e-6)
    }
  }
})

test_that("discrete noise is refused where components may be fractions", {
  data <- data.frame(y = c("no", "yes"), v = 0:1)
  for (mechanism in list(mech_discrete_laplace(epsilon = 1), mech_discrete_gaussian(rho = 1))) {
    for (st in list(totals, stat_records(~ v, list(v = c(0, 1))))) {
      expect_error(release(data, st, mechanism), class = "noiseaware_error_mechanism")
      expect_error(as_release(1:2, st, mechanism, 2), class = "noiseaware_error_mechanism")
    }
    expect_error(as_release(c(1, 2.5), yes_no, mechanism, 3), class = "noiseaware_error_value")
    expect_silent(as_release(c(-7, 2e9), yes_no, mechanism, 3))
  }
  show(refusals("mechanism", alist(as_release(1:2, totals, mech_discrete_laplace(epsilon = 1), 2))))
  show(refusals("value", alist(as_release(c(1, 2.5), yes_no, mech_discrete_gaussian(rho = 1), 3))))
})

test_that("bad budgets are refused", {
  for (call in list(quote(mech_discrete_laplace()), quote(mech_discrete_laplace(epsilon = 1, 1)), quote(mech_discrete_laplace(epsilon = -1)),
                    quote(mech_discrete_laplace(scale = 0)), quote(mech_discrete_gaussian()), quote(mech_discrete_gaussian(rho = Inf)),
                    quote(mech_discrete_gaussian(sd = "a")))) {
    expect_error(eval(call), class = "noiseaware_error_mechanism")
  }
})

test_that("they print, and survive their file", {
  local_reproducible_output()
  cases <- list(list(c(3, 9), yes_no, mech_discrete_laplace(epsilon = 0.1 + 0.2), 12),
                list(c(-3, 9e15), yes_no, mech_discrete_laplace(scale = c(1 / 3, 2)), 12),
                list(c(3, 9), yes_no, mech_discrete_gaussian(rho = 1 / 7), 12),
                list(c(3, 9), yes_no, mech_discrete_gaussian(sd = c("y=yes" = 1, "y=no" = 3)), 12))
  for (case in cases) {
    rel <- do.call(as_release, case)
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
  }
  expect_snapshot({
    mech_discrete_laplace(epsilon = 2)
    mech_discrete_laplace(scale = c(1, 2))
    mech_discrete_gaussian(rho = 0.1)
    mech_discrete_gaussian(sd = 2.5)
    do.call(as_release, cases[[1]])
  })
})

# ---- posteriors of counts ------------------------------------------------------

# mixture over the confidential count of "yes" among n
count_posterior <- function(rel, a, b, log_density) {
  count <- 0:rel$n
  weight <- lchoose(rel$n, count) + lbeta(a + count, b + rel$n - count) +
    log_density(rel$value[1], rel$n - count, rel$scale[1]) + log_density(rel$value[2], count, rel$scale[2])
  weight <- exp(weight - max(weight))
  weight <- weight / sum(weight)
  list(count = weight, cdf = function(p) sum(weight * pbeta(p, a + count, b + rel$n - count)),
       mean = sum(weight * (a + count) / (a + b + rel$n)))
}

test_that("the posterior of a probability is the exact mixture", {
  skip_on_cran()
  cases <- list(list(mech_discrete_laplace(scale = 2), function(z, s, b) ddiscrete_laplace(z, s, b, log = TRUE)),
                list(mech_discrete_gaussian(sd = 1.5), function(z, s, b) ddiscrete_gaussian(z, s, b, log = TRUE)))
  for (case in cases) {
    rel <- as_release(c(4, 9), yes_no, case[[1]], 10) # does not add up, and 9 yes against 4 no
    exact <- count_posterior(rel, 2, 1.5, case[[2]])
    quantile <- function(p) uniroot(function(x) exact$cdf(x) - p, 0:1, tol = 1e-12)$root
    for (control in list(list(passes = 0), list())) {
      fit <- sample_posterior(rel, model_bernoulli(prior = prior_beta(2, 1.5)), method = "augment", chains = 2, iter = 7400, warmup = 600, seed = 4,
                              control = control)
      expect_distribution(parameter_draws(fit, "prob[yes]"), quantile, exact$mean)
      count <- denoise(fit)[, , "y=yes"]
      for (k in c(4, 7, 9)) expect_same_mean((matrix(count, ncol = 2) == k) + 0, exact$count[k + 1])
    }
  }
})

test_that("discrete noise shares the kernel, bit for bit, of its continuous twin", {
  draws <- function(mechanism) sample_posterior(as_release(c(4, 9), yes_no, mechanism, 10), model_bernoulli(), method = "augment", chains = 1, iter = 200, seed = 4)$draws
  expect_identical(draws(mech_discrete_laplace(scale = 2)), draws(mech_laplace(scale = 2)))
  expect_identical(draws(mech_discrete_gaussian(sd = 2)), draws(mech_gaussian(sd = 2)))
})
