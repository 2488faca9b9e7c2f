# Families given by R functions: moments against closed forms of the gamma and
# the Weibull distribution, fits against quadrature.

gamma_family <- function(shape = 3, ...) {
  model_expfam(
    log_density = function(x, theta) stats::dgamma(x, shape, theta["rate"], log = TRUE),
    statistic = function(x) x,
    r_prior = function() c(rate = stats::rgamma(1, 2, 1)),
    log_prior = function(theta) stats::dgamma(theta["rate"], 2, 1, log = TRUE),
    r_theta = function(total, n) c(rate = stats::rgamma(1, 2 + shape * n, 1 + total)),
    project = function(total, n) pmax(total, 0), support = c(0, Inf), ...)
}

expfam_moments <- function(model, statistic, theta) {
  rel <- as_release(rep(1, length(statistic$components)), statistic, mech_laplace(epsilon = 1), 10)
  bound <- internal("bind_model")(model, statistic)
  .Call(internal("ffi_clt_moments"), internal("clt_distribution")(bound, rel, NULL)$spec, as.matrix(theta))[[1]]
}

test_that("moments of a gamma distribution that is dropped or clamped outside bounds, at any scale", {
  skip_on_cran() # takes long; `make test` runs it
  for (shape in c(0.6, 1, 3, 40)) for (rate in c(1e-3, 0.1, 1, 10, 1000)) {
    power <- function(p, to = Inf) exp(lgamma(shape + p) - lgamma(shape)) / rate^p * stats::pgamma(to, shape + p, rate)
    m <- expfam_moments(gamma_family(shape), stat_sums(~ x + I(x^2), list(x = c(0, 3)), "drop", rescale = FALSE), rate)
    product <- outer(1:3, 1:3, Vectorize(function(i, j) power(c(1, 2, 1)[i] + c(1, 2, 1)[j], if (i < 3 || j < 3) 3 else Inf)))
    mean <- c(power(1, 3), power(2, 3), power(1))
    expect_equal(m$mean, mean, tolerance = 1e-7)
    expect_equal(m$cov, product - outer(mean, mean), tolerance = 1e-6)
    m <- expfam_moments(gamma_family(shape), stat_sums(~ x, list(x = c(0, 3))), rate)
    above <- stats::pgamma(3, shape, rate, lower.tail = FALSE)
    mean <- c(power(1, 3) + 3 * above, power(1))
    product <- c(power(2, 3) + 9 * above, power(2, 3) + 3 * (power(1) - power(1, 3)), power(2))
    expect_equal(m$mean, mean, tolerance = 1e-7)
    expect_equal(m$cov[c(1, 2, 4)], product - mean[c(1, 1, 2)] * mean[c(1, 2, 2)], tolerance = 1e-6)
  }
})

test_that("a normal family far from the origin, as the built-in model has it", {
  family <- model_expfam(
    log_density = function(x, theta) -(x - theta)^2 / 8, statistic = function(x) cbind(x - 5, (x - 5)^2),
    r_prior = function() c(mean = stats::rnorm(1)), log_prior = function(theta) 0, r_theta = function(total, n) c(mean = total[1] / n))
  st <- stat_sums(~ x + I(x^2), list(x = c(0, 10)), rescale = FALSE)
  for (at in c(4, -30, 3000)) {
    built_in <- internal("clt_distribution")(internal("bind_model")(model_normal(), st), as_release(c(1, 1), st, mech_laplace(epsilon = 1), 10), NULL)
    expected <- .Call(internal("ffi_clt_moments"), built_in$spec, as.matrix(c(at, log(2))))[[1]]
    m <- expfam_moments(family, st, at)
    expect_equal(m$mean, expected$mean, tolerance = 1e-8)
    expect_equal(m$cov, expected$cov, tolerance = 1e-6)
  }
})

test_that("statistics in R functions have moments too", {
  st <- stat_custom(function(r) log(pmin(pmax(r[, "x"], 0.1), 10)), "log", log(100), list(x = c(0.1, 10)))
  m <- expfam_moments(gamma_family(3), st, 2)
  f <- function(x) log(pmin(pmax(x, 0.1), 10))
  expect_equal(m$mean[1], integrate(function(x) f(x) * dgamma(x, 3, 2), 0, 0.1)$value + integrate(function(x) f(x) * dgamma(x, 3, 2), 0.1, 20)$value,
               tolerance = 1e-6)
})

test_that("both methods agree with quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  # wide bounds: the total is gamma
  st <- stat_sums(~ x, list(x = c(0, 1e4)))
  rel <- as_release(900, st, mech_gaussian(sd = 80), 400)
  rate <- seq(0.6, 3, length.out = 600)
  s <- seq(300, 1800, length.out = 3000)
  likelihood <- vapply(rate, function(r) sum(dgamma(s, 1200, r) * dnorm(900, s, 80)), 0)
  quantile <- grid_quantile(rate, likelihood * dgamma(rate, 2, 1))
  fit <- sample_posterior(rel, gamma_family(), method = "clt", chains = 2, iter = 500, warmup = 200, seed = 1)
  expect_distribution(parameter_draws(fit, "rate"), quantile)
  expect_identical(sample_posterior(rel, gamma_family(), method = "clt", chains = 2, iter = 30, seed = 1)$draws,
                   extend(sample_posterior(rel, gamma_family(), method = "clt", chains = 2, iter = 20, warmup = 15, seed = 1), 10)$draws)
  # two records, the noise matters
  rel <- as_release(1.8, st, mech_laplace(scale = 1.5), 2)
  s <- seq(0.001, 60, length.out = 6000)
  rate <- seq(0.02, 9, length.out = 600)
  likelihood <- vapply(rate, function(r) sum(dgamma(s, 6, r) * exp(-abs(1.8 - s) / 1.5)), 0)
  family <- gamma_family(r_records = function(theta, n) stats::rgamma(n, 3, theta["rate"]))
  fit <- sample_posterior(rel, family, method = "augment", chains = 2, iter = 900, warmup = 250, seed = 2)
  expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, likelihood * dgamma(rate, 2, 1)))
})

test_that("the non-private posterior, fixed by its seed", {
  skip_on_cran() # takes long; `make test` runs it
  x <- c(0.5, 1.4, 2)
  run <- function() nonprivate_posterior(data.frame(x = x), gamma_family(), stat_sums(~ x, list(x = c(0, 1))), chains = 2, iter = 2100, seed = 3)
  expect_distribution(parameter_draws(run(), "rate"), function(p) qgamma(p, 11, 4.9))
  expect_identical(run()$draws, run()$draws)
})

test_that("functions that cannot be are refused", {
  st <- stat_sums(~ x, list(x = c(0, 3)))
  rel <- as_release(3, st, mech_laplace(epsilon = 1), 10)
  custom <- function(code, text) expect_error(code, text, class = "noiseaware_error_custom")
  custom(model_expfam(1, identity, identity, identity, identity), "log_density")
  custom(model_expfam(function(x) 0, identity, function() 1, identity, function(total, n) 1), "2 arguments")
  with_function <- function(...) {
    model <- gamma_family()
    model$functions <- utils::modifyList(model$functions, list(...))
    sample_posterior(rel, model, method = "clt", chains = 1, iter = 10)
  }
  custom(with_function(log_density = function(x, theta) 0), "log_density")
  custom(with_function(statistic = function(x) "a"), "statistic")
  custom(with_function(r_prior = function() 1), "r_prior")
  custom(with_function(r_theta = function(total, n) c(a = 1, b = 2)), "r_theta")
  custom(with_function(log_prior = function(theta) NA), "log_prior")
  custom(with_function(project = function(total, n) c(total, 1)), "project")
  custom(with_function(log_density = function(x, theta) stop("so it is")), "failed")
  custom(sample_posterior(rel, gamma_family(), method = "augment", chains = 1), "r_records")
  expect_error(gamma_family(variable = 3), class = "noiseaware_error_argument")
  expect_error(sample_posterior(as_release(rep(1, 10), stat_records(~ x, list(x = c(0, 3))), mech_laplace(epsilon = 1), 10), gamma_family(), method = "clt"),
               "moments", class = "noiseaware_error_method")
  expect_output(print(gamma_family()), "only method clt")
})
