two_levels <- stat_counts(~ y, list(y = c("no", "yes")))
counted <- as_release(c(no = 40, yes = 61), two_levels, mech_discrete_laplace(epsilon = 1), n = 100)
crossed <- stat_crossprod(y ~ x, bounds = list(y = c(-6, 6), x = c(-3, 3)))
regression <- function(seed = 1, slope = 0.5, mechanism = mech_laplace(epsilon = 5), ...) {
  set.seed(seed)
  x <- rnorm(150)
  simulate_release(data.frame(x = x, y = 1 + slope * x + rnorm(150)), crossed, mechanism, ...)
}

test_that("null hypotheses are values of parameters that the model can have", {
  skip_on_cran() # takes long; `make test` runs it
  refused <- function(null, kind = "argument", ...) expect_error(p_value(counted, model_bernoulli(), null, ...), class = paste0("noiseaware_error_", kind))
  refused(c("prob[yes]" = 1.2))
  refused(c("prob[yes]" = -0.1))
  refused(0.5)
  refused(c(pro = 0.5))
  refused(c("prob[yes]" = NA))
  refused(c("prob[yes]" = 0.5, "prob[yes]" = 0.6))
  refused("prob[yes]")
  refused(function(p) "a", "custom")
  refused(function(p) stop("no"), "custom")
  refused(c("prob[yes]" = 0.5), replicates = 5)
  refused(c("prob[yes]" = 0.5), seed = 0.5)
  refused(c("prob[yes]" = 0.5), prior_n = prior_n("poisson", mean = 100))
  expect_error(p_value(counted, model_lm(), c(x = 0)), class = "noiseaware_error")
  expect_error(p_value(1, model_bernoulli(), c("prob[yes]" = 0.5)), class = "noiseaware_error_argument")
  expect_error(p_value(regression(), model_lm(), c(sigma = -1), replicates = 99), class = "noiseaware_error_argument")
  single <- release(data.frame(y = factor(c("no", "yes"))), stat_records(~ y, levels = list(y = c("no", "yes"))), mech_randomized_response(epsilon = 1))
  expect_error(p_value(single, model_bernoulli(), c("prob[yes]" = 0.5)), class = "noiseaware_error_method")
})

test_that("a seed fixes everything and leaves the generator alone", {
  skip_on_cran() # takes long; `make test` runs it
  release <- regression()
  set.seed(3)
  before <- .Random.seed
  one <- p_value(release, model_lm(), c(x = 0), replicates = 99, seed = 2)
  expect_identical(.Random.seed, before)
  expect_equal(p_value(release, model_lm(), c(x = 0), replicates = 99, seed = 2), one)
  expect_output(print(one), "seed 2; the largest over the nuisance parameters, plus 0.01")
  expect_equal(one$error, sqrt(one$p * (1 - one$p) / 100))
  expect_equal(one$values[["x"]], 0, tolerance = 1e-6)
  skip_if_not_installed("generics")
  expect_named(generics::tidy(one), c("term", "p.value", "mc.error"))
})

test_that("a named value and a function of the parameters are the same null hypothesis", {
  skip_on_cran() # takes long; `make test` runs it
  release <- regression()
  named <- p_value(release, model_lm(), c(x = 0.1), replicates = 99, seed = 2)
  expect_equal(p_value(release, model_lm(), function(p) p[["x"]] - 0.1, replicates = 99, seed = 2)$p, named$p)
  # and numbers that repeat each other are one
  expect_equal(p_value(release, model_lm(), function(p) c(1, 2) * (p[["x"]] - 0.1), replicates = 99, seed = 2)$p, named$p)
})

test_that("one parameter of several is rejected where it is wrong, and several at once", {
  skip_on_cran()
  release <- regression(slope = 1.5, mechanism = mech_laplace(epsilon = 50))
  expect_lte(p_value(release, model_lm(), c(x = 0), replicates = 199, seed = 1)$p, 0.01)
  expect_gt(p_value(release, model_lm(), c(x = 1.5), replicates = 199, seed = 1)$p, 0.05)
  expect_gt(p_value(release, model_lm(), c(x = 1.5, "(Intercept)" = 1), replicates = 199, seed = 1)$p, 0.05)
  expect_lte(p_value(release, model_lm(), c(x = 1.5, "(Intercept)" = 3), replicates = 199, seed = 1)$p, 0.01)
})

test_that("any model, noise and number of records that can be simulated is served", {
  skip_on_cran()
  p <- function(...) p_value(..., replicates = 59, seed = 1)$p
  set.seed(1)
  yes <- function(n, share) factor(c("no", "yes")[1 + rbinom(n, 1, share)], c("no", "yes"))
  # thresholds; an unknown number of records; noise of the user's own
  hidden <- simulate_release(data.frame(y = yes(100, 0.9)), two_levels, mech_discrete_laplace(epsilon = 1) |> published(threshold = 20))
  expect_true(anyNA(hidden$value))
  expect_gt(p(hidden, model_bernoulli(), c("prob[yes]" = 0.9)), 0.05)
  expect_lt(p(hidden, model_bernoulli(), c("prob[yes]" = 0.5)), 0.05)
  unsized <- simulate_release(data.frame(y = yes(200, 0.5)), two_levels, mech_discrete_laplace(epsilon = 1), neighbours = "add_remove")
  expect_gt(p(unsized, model_bernoulli(), c("prob[yes]" = 0.5)), 0.05)
  expect_lt(p(unsized, model_bernoulli(), c("prob[yes]" = 0.7)), 0.05)
  expect_gt(p(unsized, model_bernoulli(), c(n = 200)), 0.05)
  expect_lt(p(unsized, model_bernoulli(), c(n = 300)), 0.05)
  own <- mech_custom(log_density = function(noise) -sum(abs(noise)) / 3, r = function(total) total + rexp(length(total), 1 / 3) - rexp(length(total), 1 / 3))
  customs <- as_release(c(no = 30, yes = 70), two_levels, own, n = 100)
  expect_lt(p(customs, model_bernoulli(), c("prob[yes]" = 0.5)), 0.05)
  expect_gt(p(customs, model_bernoulli(), c("prob[yes]" = 0.7)), 0.05)
  # a rate; a logistic regression; a table
  rates <- simulate_release(data.frame(k = rpois(100, 3)), stat_sums(~ k, list(k = c(0, 10))), mech_laplace(epsilon = 2))
  expect_gt(p(rates, model_poisson(), c(rate = 3)), 0.05)
  expect_lt(p(rates, model_poisson(), c(rate = 5)), 0.05)
  x <- rnorm(400)
  binary <- stat_crossprod(low ~ x, bounds = list(low = c(0, 1), x = c(-3, 3)))
  logistic <- simulate_release(data.frame(x = x, low = rbinom(400, 1, plogis(x))), binary, mech_laplace(epsilon = 20))
  expect_gt(p(logistic, model_logistic(), c(x = 1)), 0.05)
  expect_lt(p(logistic, model_logistic(), c(x = 0)), 0.05)
})

test_that("many records are approximate, and the print says so", {
  statistic <- stat_sums(~ k, list(k = c(0, 10)))
  release <- as_release(c(k = 90100), statistic, mech_laplace(epsilon = 1), n = 30000)
  many <- p_value(release, model_poisson(), c(rate = 3), replicates = 199, seed = 1)
  expect_output(print(many), "approximate")
  expect_gt(many$p, 0.05)
})

test_that("a name without its level is enough if there is one", {
  own <- p_value(counted, model_bernoulli(), c("prob[yes]" = 0.5), seed = 1)
  expect_identical(p_value(counted, model_bernoulli(), c(prob = 0.5), seed = 1), own)
  expect_error(p_value(counted, model_bernoulli(), c(prob = 0.5, "prob[yes]" = 0.6)), class = "noiseaware_error_argument")
  expect_error(p_value(counted, model_categorical(), c(prob = 0.5)), class = "noiseaware_error_argument")
  set <- function(parameter) confidence_set(counted, model_bernoulli(), parameter, replicates = 99, seed = 1)
  expect_identical(set("prob"), set("prob[yes]"))
  both <- sample_posterior(counted, model_categorical(), chains = 2, iter = 100, seed = 1)
  expect_identical(rownames(confint(both, "prob")), c("prob[no]", "prob[yes]"))
  expect_error(confint(both, "pro"), class = "noiseaware_error_argument")
})

test_that("the least p-value is told as such", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("no", "yes"))
  rel <- as_release(c("y=no" = 20, "y=yes" = 180), stat_counts(~ y, levels), mech_gaussian(sd = 3), n = NULL)
  far <- p_value(rel, model_bernoulli(), c(prob = 0.4), replicates = 99, seed = 1)
  expect_equal(far$p, 1 / 100 + far$gamma)
  expect_match(capture.output(print(far)), "p-value .*; the smallest that 99 replicates can give", all = FALSE)
  near <- p_value(rel, model_bernoulli(), c(prob = 0.9), replicates = 99, seed = 1)
  expect_false(any(grepl("the least", capture.output(print(near)))))
  table <- as_release(c("a=1:b=1" = 90, "a=1:b=2" = 5, "a=2:b=1" = 5, "a=2:b=2" = 90), stat_counts(~ a:b, list(a = c("1", "2"), b = c("1", "2"))),
                      mech_gaussian(sd = 3), n = 190)
  test <- private_test(table, ~ a + b, replicates = 99, seed = 1, bayes_factor = FALSE)
  expect_match(capture.output(print(test)), "Note: this p-value is the smallest that 99 replicates can give", all = FALSE)
  expect_match(capture.output(print(test$test)), "null       difference in the proportion with a=2, .* = 0", all = FALSE)
})
