# Noise: its scale, its distribution, and what it guarantees.

st <- stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-10, 10))) # L1 16 / 3, L2 2 sqrt(2)
scale_of <- function(mechanism, statistic = st) internal("mechanism_scale")(mechanism, statistic)

test_that("Laplace noise has scale sensitivity / epsilon, or the one given", {
  expect_equal(scale_of(mech_laplace(epsilon = 2)), rep(16 / 3 / 2, 5), tolerance = 1e-14)
  expect_identical(scale_of(mech_laplace(scale = 3)), rep(3, 5))
  expect_identical(scale_of(mech_laplace(scale = 1:5)), as.double(1:5))
})

test_that("Gaussian noise has the standard deviation its budget asks for", {
  delta2 <- 2 * sqrt(2)
  expect_equal(scale_of(mech_gaussian(rho = 0.5)), rep(delta2, 5), tolerance = 1e-14)
  expect_equal(scale_of(mech_gaussian(rho = 2)), rep(delta2 / 2, 5), tolerance = 1e-14)
  expect_equal(scale_of(mech_gaussian(mu = 0.25)), rep(4 * delta2, 5), tolerance = 1e-14)
  expect_identical(scale_of(mech_gaussian(sd = 7)), rep(7, 5))
  # OpenDP's tests state 3.730632 for epsilon 1, delta 1e-5 and sensitivity 1
  expect_equal(scale_of(mech_gaussian(epsilon = 1, delta = 1e-5)), rep(3.730632 * delta2, 5), tolerance = 1e-6)
})

test_that("scales with names go to the components of these names", {
  given <- c("x^2" = 5, y = 1, x = 2, "y:x" = 4, "y^2" = 3)
  expect_identical(scale_of(mech_laplace(scale = given)), as.double(1:5))
  expect_identical(scale_of(mech_gaussian(sd = given)), as.double(1:5))
  rel <- as_release(1:5, st, mech_laplace(scale = given), 9)
  expect_identical(as_release(1:5, st, mech_laplace(scale = rel$scale), 9)$scale, rel$scale)
})

# delta at epsilon of two normals mu apart, from its definition as an integral over the records' privacy loss
hockey_stick <- function(epsilon, mu) {
  t <- epsilon / mu - mu / 2
  # phi(t + s) (1 - exp(-mu s)) over s > 0; exp(-t^2 / 2) apart if t > 0, so that nothing underflows
  height <- if (t > 0) t^2 / 2 else 0
  f <- function(s) exp(height - (t + s)^2 / 2) / sqrt(2 * pi) * -expm1(-mu * s)
  width <- if (t > 1) 1 / t else 1
  cuts <- sort(unique(pmax(0, c(width * c(0, 0.5, 1, 2, 4, 8, 16, 40), if (t < 0) -t + c(-8, -4, -2, 0, 2, 4, 8, 40)))))
  pieces <- mapply(function(a, b) integrate(f, a, b, rel.tol = 1e-12, stop.on.error = FALSE)$value, cuts[-length(cuts)], cuts[-1])
  sum(pieces) * exp(-height)
}

test_that("the analytic calibration spends delta exactly, also at the extremes", {
  for (epsilon in 10^(-6:3)) {
    for (delta in c(1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.4)) {
      mu <- sensitivity(st, "L2") / scale_of(mech_gaussian(epsilon = epsilon, delta = delta))[1]
      expect_equal(hockey_stick(epsilon, mu) / delta, 1, tolerance = 1e-9)
    }
  }
  # where the two terms of the closed form cancel almost entirely
  for (budget in list(c(1e-10, 1e-16), c(1e-30, 1e-18), c(1e-300, 1e-300), c(1, 1e-300))) {
    expect_equal(hockey_stick(budget[1], internal("analytic_mu")(budget[1], budget[2])) / budget[2], 1, tolerance = 1e-9)
  }
})

test_that("the analytic calibration agrees with closed forms and stays below the classical bound", {
  mu_of <- internal("analytic_mu")
  # at epsilon = mu^2 / 2 the first term is 1/2
  for (mu in c(0.01, 0.5, 1, 3, 8)) {
    expect_equal(mu_of(mu^2 / 2, 0.5 - exp(mu^2 / 2 + pnorm(-mu, log.p = TRUE))), mu, tolerance = 1e-9)
  }
  # epsilon -> 0: the total variation distance 2 Phi(mu / 2) - 1
  for (mu in c(1e-3, 0.1, 1, 4)) expect_equal(mu_of(1e-14, 2 * pnorm(mu / 2) - 1), mu, tolerance = 1e-9)
  for (epsilon in c(0.01, 0.1, 0.9)) {
    for (delta in c(1e-9, 1e-5, 1e-2)) expect_lt(1 / mu_of(epsilon, delta), sqrt(2 * log(1.25 / delta)) / epsilon)
  }
  # more budget, less noise
  expect_true(all(diff(sapply(10^(-6:3), mu_of, 1e-6)) > 0))
  expect_true(all(diff(sapply(10^(-12:-1), function(d) mu_of(1, d))) > 0))
})

test_that("privacy() converts between guarantees", {
  row <- function(epsilon = NA_real_, delta = NA_real_, rho = NA_real_, mu = NA_real_) data.frame(epsilon, delta, rho, mu)
  expect_equal(privacy(mech_laplace(epsilon = 2)), row(epsilon = 2, delta = 0, rho = 2))
  expect_equal(privacy(mech_gaussian(mu = 3)), row(rho = 4.5, mu = 3))
  expect_equal(privacy(mech_gaussian(rho = 4.5)), row(rho = 4.5, mu = 3))
  both <- privacy(mech_gaussian(epsilon = 1, delta = 1e-5))
  expect_equal(both$mu, 1 / 3.730632, tolerance = 1e-6)
  expect_equal(both, row(1, 1e-5, both$mu^2 / 2, both$mu))
  # a scale guarantees something only of a statistic
  expect_equal(privacy(mech_laplace(scale = 2)), row(delta = 0))
  expect_equal(privacy(mech_laplace(scale = c(4, 2, 8, 8, 8)), statistic = st), row(16 / 3 / 2, 0, (16 / 3 / 2)^2 / 2))
  expect_equal(privacy(mech_gaussian(sd = 3)), row())
  expect_equal(privacy(mech_gaussian(sd = sqrt(2)), statistic = st), row(mu = 2, rho = 2))
  for (mechanism in list(mech_laplace(epsilon = 0.7), mech_gaussian(rho = 0.3), mech_gaussian(epsilon = 2, delta = 1e-7))) {
    rel <- as_release(1:5, st, mechanism, 9)
    expect_identical(privacy(rel), privacy(mechanism))
    # the same noise, given as its scale
    again <- if (mechanism$name == "laplace") mech_laplace(scale = rel$scale) else mech_gaussian(sd = rel$scale)
    expect_equal(privacy(again, statistic = st)[c("rho", "mu")], privacy(mechanism)[c("rho", "mu")])
  }
  # for a delta: by the conversion from zCDP, by the guarantee's own pair, by a pure guarantee that holds for every delta
  converted <- internal("zcdp_epsilon")
  expect_equal(privacy(mech_gaussian(rho = 0.5), delta = 1e-6), row(converted(0.5, 1e-6), 1e-6, 0.5, 1))
  expect_equal(privacy(mech_gaussian(epsilon = 1, delta = 1e-5), delta = 1e-5), row(1, 1e-5, both$rho, both$mu))
  expect_equal(privacy(mech_gaussian(epsilon = 1, delta = 1e-5), delta = 1e-7)$epsilon, converted(both$rho, 1e-7))
  expect_equal(privacy(mech_laplace(epsilon = 0.1), delta = 1e-9)$epsilon, 0.1)
  expect_equal(privacy(mech_laplace(scale = 2), delta = 1e-6), row())
  expect_equal(privacy(mech_exact(), delta = 1e-6)$epsilon, Inf)
  for (bad in list(0, 1, "a", c(0.1, 0.2))) expect_error(privacy(mech_laplace(epsilon = 1), delta = bad), class = "noiseaware_error_argument")
})

test_that("noise_sd() is the standard deviation of the noise", {
  expect_equal(noise_sd(as_release(1:5, st, mech_laplace(scale = 1:5), 9)),
               c(y = 1, x = 2, "y^2" = 3, "y:x" = 4, "x^2" = 5) * sqrt(2))
  expect_equal(unname(noise_sd(as_release(1:5, st, mech_gaussian(sd = 1:5), 9))), 1:5)
})

# ---- the distributions ----------------------------------------------------------------

distributions <- list(laplace = list(mechanism = mech_laplace(scale = 1), sd = sqrt(2)), gaussian = list(mechanism = mech_gaussian(sd = 1), sd = 1))
log_density <- function(name, x, scale) .Call(internal("ffi_mech_log_density"), name, as.double(x), rep_len(as.double(scale), length(x)))
quantiles <- function(name, u, scale) .Call(internal("ffi_mech_quantile"), name, as.double(u), rep_len(as.double(scale), length(u)))

test_that("densities integrate to one, have the stated spread, and the quantiles belong to them", {
  for (name in names(distributions)) {
    for (scale in c(0.01, 1, 250)) {
      half <- function(f, from = 0, to = Inf) integrate(function(x) f(x) * exp(log_density(name, x * scale, scale)) * scale, from, to, rel.tol = 1e-10)$value
      expect_equal(2 * half(function(x) 1), 1, tolerance = 1e-8)
      expect_equal(2 * half(function(x) (x * scale)^2), (distributions[[name]]$sd * scale)^2, tolerance = 1e-8)
      expect_equal(distributions[[name]]$sd * scale, internal("mechanism_sd")(distributions[[name]]$mechanism, scale))
      expect_identical(log_density(name, c(-3, 0.5) * scale, scale), log_density(name, c(3, -0.5) * scale, scale))
      for (u in c(0.5, 0.6, 0.9, 0.999)) {
        q <- quantiles(name, u, scale)
        expect_equal(0.5 + half(function(x) 1, 0, q / scale), u, tolerance = 1e-8)
        expect_equal(quantiles(name, 1 - u, scale), -q, tolerance = 1e-9)
      }
    }
  }
})

test_that("quantiles keep their tails", {
  for (name in names(distributions)) {
    u <- c(.Machine$double.xmin, 1e-300, 1e-100, 2^-54, 1e-10, 0.1, 0.5, 0.9, 1 - 1e-10, 1 - 2^-53)
    q <- quantiles(name, u, 1)
    expect_true(all(is.finite(q)) && all(diff(q) > 0))
  }
  expect_equal(quantiles("laplace", c(1e-300, 1 - 2^-53), 2), 2 * c(log(2e-300), 52 * log(2)), tolerance = 1e-14)
  expect_equal(quantiles("gaussian", 1e-300, 2), 2 * qnorm(1e-300), tolerance = 1e-14)
})

test_that("Laplace noise keeps the privacy ratio below exp(epsilon) on neighbours", {
  set.seed(40)
  epsilon <- 0.8
  scale <- scale_of(mech_laplace(epsilon = epsilon))
  spec <- internal("statistic_spec")(st)
  # random pairs, and the pair that attains the sensitivity, (1, 1) and -(1, 1) / 3 in rescaled units
  records <- function(first) rbind(first, matrix(sample(c(-10, 10, -10 / 3, 10 / 3, 0, 7), 2 * 3000, TRUE), ncol = 2))
  a <- .Call(internal("ffi_stat_eval"), spec, records(c(10, 10)))
  b <- .Call(internal("ffi_stat_eval"), spec, records(-c(10, 10) / 3))
  z <- matrix(rnorm(length(a), 0, 20), nrow(a))
  z[1, ] <- 50
  ratio <- rowSums(matrix(log_density("laplace", z - a, rep(scale, each = nrow(a))), nrow(a)) -
                     matrix(log_density("laplace", z - b, rep(scale, each = nrow(a))), nrow(a)))
  expect_lte(max(abs(ratio)), epsilon + 1e-12)
  expect_equal(abs(ratio[1]), epsilon)
})

test_that("mechanisms print their budget", {
  local_reproducible_output()
  expect_snapshot({
    mech_laplace(epsilon = 2)
    mech_laplace(scale = 1:9)
    mech_gaussian(rho = 0.1)
    mech_gaussian(epsilon = 1, delta = 1e-6)
    mech_gaussian(mu = 1)
    mech_gaussian(sd = 2.5)
  })
})
