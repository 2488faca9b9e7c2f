# Evidence by enumeration against quadrature over the parameter, with normalised densities of the noise.

yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))

short_fit <- function(release, model) suppressWarnings(sample_posterior(release, model, method = "collapse", chains = 1, iter = 100, seed = 1))

test_that("one probability: quadrature, by every kind of noise", {
  s <- 0:30
  noises <- list(
    list(mech_laplace(scale = 2), 7.3, dexp(abs(7.3 - s), 1 / 2) / 2),
    list(mech_gaussian(sd = 3), 7.3, dnorm(7.3, s, 3)),
    list(mech_discrete_laplace(scale = 2), 7, (1 - exp(-1 / 2)) / (1 + exp(-1 / 2)) * exp(-abs(7 - s) / 2)),
    list(mech_discrete_gaussian(sd = 3), 7, exp(-(7 - s)^2 / 18) / sum(exp(-(-200:200)^2 / 18))),
    list(mech_exact(), 7, as.numeric(s == 7)))
  for (noise in noises) {
    fit <- short_fit(as_release(c("smoke=yes" = noise[[2]]), yes, noise[[1]], n = 30), model_bernoulli(prior = prior_beta(2, 3)))
    p <- vapply(s, function(s) integrate(function(p) dbinom(s, 30, p) * dbeta(p, 2, 3), 0, 1, rel.tol = 1e-9)$value, 0)
    expect_equal(as.numeric(log_evidence(fit)), log(sum(p * noise[[3]])), tolerance = 1e-7)
    expect_identical(attr(log_evidence(fit), "error"), 0)
  }
})

test_that("both counts of one variable are two noisy numbers of one total", {
  s <- 0:30
  fit <- short_fit(as_release(c("smoke=yes" = 7.3, "smoke=no" = 21.2), yes, mech_laplace(scale = 2), n = 30), model_bernoulli())
  expect_equal(as.numeric(log_evidence(fit)), log(sum(exp(-(abs(7.3 - s) + abs(21.2 - 30 + s)) / 2) / 16 / 31)), tolerance = 1e-7)
  expect_output(print(log_evidence(fit)), "<log evidence> -[0-9.]+ \\(exact\\)")
})

test_that("a Poisson rate: quadrature", {
  fit <- short_fit(as_release(31.4, stat_sums(~ x, bounds = list(x = c(0, 20))), mech_laplace(scale = 6), n = 8), model_poisson(prior = prior_gamma(2, 0.4)))
  s <- 0:300
  of_rate <- function(rate) vapply(rate, function(rate) sum(dpois(s, 8 * rate) * dexp(abs(31.4 - s), 1 / 6) / 2), 0) * dgamma(rate, 2, 0.4)
  expect_equal(as.numeric(log_evidence(fit)), log(integrate(of_rate, 0, 40, rel.tol = 1e-9)$value), tolerance = 1e-6)
})

test_that("numbers that were hidden, rounded or clipped have the probability of what was done to them", {
  s <- 0:30
  prior <- model_bernoulli(prior = prior_beta(2, 3))
  p <- vapply(s, function(s) integrate(function(p) dbinom(s, 30, p) * dbeta(p, 2, 3), 0, 1, rel.tol = 1e-9)$value, 0)
  hidden <- as_release(c("smoke=yes" = NA), stat_subset(yes, "smoke=yes"), published(mech_laplace(scale = 2), threshold = 10), n = 30)
  below <- function(x) ifelse(x < 0, exp(x / 2) / 2, 1 - exp(-x / 2) / 2)
  expect_equal(as.numeric(log_evidence(short_fit(hidden, prior))), log(sum(p * below(10 - s))), tolerance = 1e-7)
  rounded <- as_release(c("smoke=yes" = 10), yes, published(mech_gaussian(sd = 3), round = 5), n = 30)
  expect_equal(as.numeric(log_evidence(short_fit(rounded, prior))), log(sum(p * (pnorm(12.5, s, 3) - pnorm(7.5, s, 3)))), tolerance = 1e-7)
  shown <- as_release(c("smoke=yes" = 14.2), yes, published(mech_laplace(scale = 2), threshold = 10, listed = FALSE), n = 30)
  expect_equal(as.numeric(log_evidence(short_fit(shown, prior))), log(sum(p * dexp(abs(14.2 - s), 1 / 2) / 2 / (1 - below(10 - s)))), tolerance = 1e-7)
})

test_that("a Bayes factor is the ratio; what has no evidence is refused", {
  release <- as_release(c("smoke=yes" = 7.3), yes, mech_laplace(scale = 2), n = 30)
  other <- as_release(c("smoke=yes" = 8.3), yes, mech_laplace(scale = 2), n = 30)
  a <- short_fit(release, model_bernoulli())
  b <- short_fit(release, model_bernoulli(prior = prior_beta(1, 9)))
  expect_equal(as.numeric(bayes_factor(a, b)), exp(as.numeric(log_evidence(a)) - as.numeric(log_evidence(b))))
  expect_equal(as.numeric(bayes_factor(a, b)) * as.numeric(bayes_factor(b, a)), 1)
  expect_error(bayes_factor(a, short_fit(other, model_bernoulli())), class = "noiseaware_error_argument")
  expect_error(log_evidence(1), class = "noiseaware_error_argument")
})

test_that("errors of the evidences of separate sites add up by their squares", {
  skip_on_cran()
  statistic <- stat_sums(~ x + I(x^2), list(x = c(-4, 4)))
  sites <- list(a = as_release(c(3, 20), statistic, mech_laplace(scale = 3), 20), b = as_release(c(-5, 60), statistic, mech_laplace(scale = 2), 30))
  fit <- suppressMessages(suppressWarnings(sample_posterior(sites, model_normal(), pool = "none", method = "collapse", chains = 2, iter = 1000, seed = 1)))
  each <- lapply(fit$fits, log_evidence, draws = 1000, seed = 1)
  errors <- vapply(each, attr, 0, "error")
  expect_true(all(errors > 0))
  together <- log_evidence(fit, draws = 1000, seed = 1)
  expect_equal(as.numeric(together), sum(vapply(each, as.numeric, 0)))
  expect_equal(attr(together, "error"), sqrt(sum(errors^2)))
})

test_that("names of other packages work, whichever was attached last", {
  skip_on_cran()
  yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
  release <- as_release(c("smoke=yes" = 7), yes, mech_laplace(scale = 2), n = 30)
  a <- suppressWarnings(sample_posterior(release, model_bernoulli(), chains = 1, iter = 100, seed = 1))
  b <- suppressWarnings(sample_posterior(release, model_bernoulli(prior = prior_beta(1, 9)), chains = 1, iter = 100, seed = 1))
  expect_error(bayes_factor(1, a), class = "noiseaware_error_argument")
  expect_error(bayes_factor(a, 1), "`fit2` must be a fit", class = "noiseaware_error_argument")
  expect_error(bayes_factor(a, b, log = TRUE), class = "noiseaware_error_argument")
  brms_family <- function(...) structure(list(...), class = c("brmsfamily", "family"))
  expect_identical(model_glm(family = brms_family(family = "negbinomial", link = "log")), model_glm(family = "negative_binomial"))
  expect_identical(model_glm(family = brms_family(family = "bernoulli", link = "probit")), model_glm(family = binomial("probit")))
  expect_identical(model_glm(family = "bernoulli"), model_glm(family = binomial()))
  expect_error(fixed(1, ignore_case = TRUE), class = "noiseaware_error_argument")
  skip_if_not_installed("stringr")
  suppressMessages(withr::local_package("stringr"))
  expect_identical(noiseaware::fixed("a.b", ignore_case = TRUE), stringr::fixed("a.b", ignore_case = TRUE))
  expect_error(model_lm(sigma = suppressWarnings(stringr::fixed(700))), "noiseaware::fixed()", fixed = TRUE, class = "noiseaware_error_prior")
  skip_if_not_installed("bridgesampling")
  expect_identical(bridgesampling::bayes_factor(a, b, seed = 1), bayes_factor(a, b, seed = 1))
  bridge <- function(log) structure(list(logml = log, niter = 1, method = "normal", q11 = 0, q12 = 0, q21 = 0, q22 = 0), class = "bridge")
  expect_equal(bayes_factor(bridge(1), bridge(0))$bf, exp(1))
  # log evidences as numbers are theirs; of ours nothing says whether they are of the same numbers, whichever package was attached last
  expect_equal(bayes_factor(10, 5)$bf, exp(5))
  evidence <- structure(-3, error = 0, class = "noiseaware_evidence")
  for (compare in list(bayes_factor, bridgesampling::bayes_factor)) {
    testthat::expect_error(compare(evidence, evidence), "of the same numbers", class = "noiseaware_error_argument")
  }
})
