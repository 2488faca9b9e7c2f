# The log likelihood of sites' releases: against sums over their totals, and quadrature over their parameter.

yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))

counted <- list(north = as_release(c("smoke=yes" = 7.3), yes, mech_laplace(scale = 2), n = 30),
                south = as_release(c("smoke=yes" = 22), yes, mech_gaussian(sd = 3), n = 45),
                west = as_release(c("smoke=yes" = 1), yes, mech_discrete_laplace(scale = 1), n = 12),
                east = as_release(c("smoke=yes" = 412), yes, mech_laplace(scale = 1), n = 1000))

noise <- list(function(s) dexp(abs(7.3 - s), 1 / 2) / 2, function(s) dnorm(22, s, 3),
              function(s) (1 - exp(-1)) / (1 + exp(-1)) * exp(-abs(1 - s)), function(s) dexp(abs(412 - s)) / 2)

likelihood <- function(k, p) vapply(p, function(p) sum(dbinom(0:counted[[k]]$n, counted[[k]]$n, p) * noise[[k]](0:counted[[k]]$n)), 0)

pooled <- function(pool, releases = counted, model = model_bernoulli()) {
  suppressMessages(suppressWarnings(sample_posterior(releases, model, pool = pool, chains = 2, iter = 400, seed = 1)))
}

test_that("complete pooling: each draw's probability", {
  skip_if_not_installed("rstantools")
  fit <- pooled("complete")
  got <- rstantools::log_lik(fit)
  p <- as.matrix(fit)[, 1]
  expect_identical(dim(got), c(400L, 4L))
  expect_identical(colnames(got), names(counted))
  for (k in 1:4) expect_equal(got[, k], log(likelihood(k, p)), tolerance = 1e-9, ignore_attr = TRUE)
})

test_that("exponential sites, and one with many records", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("rstantools")
  total <- stat_sums(~ x, bounds = list(x = c(0, 100)))
  sites <- list(a = as_release(31.4, total, mech_laplace(scale = 6), n = 8), b = as_release(2.1e5, total, mech_gaussian(sd = 80), n = 1e5))
  fit <- pooled("partial", sites, model_exponential())
  got <- rstantools::log_lik(fit)
  draws <- as.matrix(fit)
  for (row in c(5, 200, 390)) {
    prior <- function(u) dnorm(u, log(draws[row, 1]), draws[row, 2])
    # given u, a total of many records is normal
    u <- seq(log(1e5 / 2.1e5) - 0.05, log(1e5 / 2.1e5) + 0.05, length.out = 4001)
    many <- sum(dnorm(2.1e5, 1e5 / exp(u), sqrt(1e5 / exp(2 * u) + 80^2)) * prior(u)) * (u[2] - u[1])
    expect_equal(got[[row, 2]], log(many), tolerance = 1e-3)
    s <- seq(0.05, 140, by = 0.05)
    u <- seq(-6, 4, by = 0.05)
    few <- vapply(u, function(u) sum(dgamma(s, 8, exp(u)) * exp(-abs(31.4 - s) / 6) / 12) * 0.05, 0)
    expect_equal(got[[row, 1]], log(sum(few * prior(u)) * 0.05), tolerance = 1e-3)
  }
})

test_that("partial pooling: the site's own probability is integrated out", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("rstantools")
  fit <- pooled("partial")
  got <- rstantools::log_lik(fit)
  draws <- as.matrix(fit)
  for (row in c(1, 120, 399)) {
    centre <- qlogis(draws[row, 1])
    sd <- draws[row, 2]
    for (k in 1:4) {
      of_site <- function(u) likelihood(k, plogis(u)) * dnorm(u, centre, sd)
      at <- seq(centre - 10 * sd, centre + 10 * sd, length.out = 1001)
      expect_equal(got[row, k], log(sum(of_site(at)) * (at[2] - at[1])), tolerance = 1e-6, ignore_attr = TRUE)
    }
  }
})

test_that("rates: totals summed out", {
  skip_if_not_installed("rstantools")
  totals <- stat_sums(~ x, bounds = list(x = c(0, 20)))
  sites <- list(a = as_release(31.4, totals, mech_laplace(scale = 6), n = 8), b = as_release(90, totals, mech_laplace(scale = 5), n = 11))
  fit <- pooled("complete", sites, model_poisson())
  rate <- as.matrix(fit)[, 1]
  want <- vapply(rate, function(r) sum(dpois(0:600, 11 * r) * dexp(abs(90 - 0:600), 1 / 5) / 2), 0)
  expect_equal(rstantools::log_lik(fit)[, "b"], log(want), tolerance = 1e-9, ignore_attr = TRUE)
})

test_that("loo() takes sites for units: as quadrature leaves them out", {
  skip_if_not_installed("loo")
  similar <- counted[c("north", "west", "south")]
  similar$west <- as_release(c("smoke=yes" = 4), yes, mech_discrete_laplace(scale = 1), n = 12)
  got <- suppressWarnings(loo::loo(pooled("complete", similar)))
  expect_s3_class(got, "psis_loo")
  p <- seq(5e-4, 1 - 5e-4, by = 1e-3)
  each <- cbind(likelihood(1, p), vapply(p, function(p) sum(dbinom(0:12, 12, p) * (1 - exp(-1)) / (1 + exp(-1)) * exp(-abs(4 - 0:12))), 0), likelihood(2, p))
  want <- vapply(1:3, function(k) log(sum(apply(each, 1, prod)) / sum(apply(each[, -k], 1, prod))), 0)
  expect_equal(unname(got$pointwise[, "elpd_loo"]), want, tolerance = 0.03)
})

test_that("one release has no records to leave out, and separate sites share nothing", {
  skip_if_not_installed("rstantools")
  alone <- suppressWarnings(sample_posterior(counted$north, model_bernoulli(), chains = 1, iter = 100, seed = 1))
  expect_error(rstantools::log_lik(alone), "sums over all", class = "noiseaware_error_meaningless")
  expect_error(rstantools::log_lik(pooled("none")), "share nothing", class = "noiseaware_error_method")
  squares <- stat_sums(~ x + I(x^2), bounds = list(x = c(-50, 50)), rescale = FALSE)
  normal <- list(a = as_release(c(12.3, 61.5), squares, mech_laplace(scale = 4), n = 20), b = as_release(c(9.3, 71.5), squares, mech_laplace(scale = 4), n = 20))
  expect_error(rstantools::log_lik(pooled("complete", normal, model_normal())), "one rate or probability", class = "noiseaware_error_method")
  expect_error(rstantools::log_lik(pooled("complete"), 3))
  skip_if_not_installed("loo")
  expect_error(loo::loo(alone), "sums over all", class = "noiseaware_error_meaningless")
})
