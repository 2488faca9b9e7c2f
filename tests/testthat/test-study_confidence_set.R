two_levels <- stat_counts(~ y, list(y = c("no", "yes")))
counted <- as_release(c(no = 40, yes = 61), two_levels, mech_discrete_laplace(epsilon = 1), n = 100)

test_that("the set holds the values that are not rejected", {
  set <- confidence_set(counted, model_bernoulli(), "prob[yes]", level = 0.9)
  p <- function(value) p_value(counted, model_bernoulli(), c("prob[yes]" = value))$p
  width <- set$upper - set$lower
  expect_lt(p(set$lower - 0.005 * width), 0.1)
  expect_gte(p(set$lower + 0.03 * width), 0.1)
  expect_gte(p(set$upper - 0.03 * width), 0.1)
  expect_lt(p(set$upper + 0.005 * width), 0.1)
  expect_equal(set$error, c(0, 0))
  expect_equal(set$estimate, (100 + 61 - 40) / 200)
  expect_equal(set$range, c(0, 1))
  expect_output(print(set), "exact under the model")
})

test_that("without noise the set is near that of the score test", {
  release <- as_release(c(no = 400, yes = 600), two_levels, mech_discrete_laplace(scale = 0.05), n = 1000)
  set <- confidence_set(release, model_bernoulli(), "prob[yes]")
  expect_equal(c(set$lower, set$upper), as.vector(stats::prop.test(600, 1000)$conf.int), tolerance = 2e-3)
})

test_that("with little noise a normal mean has the interval of Student's t", {
  skip_on_cran()
  set.seed(1)
  y <- rnorm(20, 1)
  statistic <- stat_sums(~ y + I(y^2), list(y = c(-20, 20)), outside = "none")
  release <- simulate_release(data.frame(y = y), statistic, mech_gaussian(sd = 0.01))
  set <- confidence_set(release, model_normal(), "mean", seed = 1)
  expect_lt(max(abs(c(set$lower, set$upper) - stats::t.test(y)$conf.int)), 0.06)
  expect_gt(set$upper - set$lower, diff(stats::t.test(y)$conf.int))
})

test_that("a parameter that the release does not tell has its whole range", {
  skip_on_cran()
  statistic <- stat_sums(~ y, list(y = c(-10, 10)), outside = "none")
  release <- as_release(c(y = 30), statistic, mech_laplace(epsilon = 1), n = 100)
  set <- confidence_set(release, model_normal(), "sd", seed = 1, replicates = 99)
  expect_false(set$informative)
  expect_equal(c(set$lower, set$upper), c(0, Inf))
  bootstrap <- confidence_set(release, model_normal(), "sd", method = "bootstrap", seed = 1, replicates = 99)
  expect_equal(c(bootstrap$lower, bootstrap$upper), c(0, Inf))
  expect_output(print(set), "nothing    the release rules out no value")
  # a mean alone, clamped: any sd is possible
  alone <- as_release(52.3, stat_means(stat_sums(~ age, list(age = c(18, 90))), n = 400), mech_laplace(epsilon = 1), n = 400)
  expect_output(print(private_test(alone, ~ age, null = 20, replicates = 99, seed = 1)), "rules out no value.*A test of a mean needs a released sum of squares")
  expect_equal(p_value(release, model_normal(), c(sd = 2), seed = 1, replicates = 99)$p, 1)
  expect_error(plot(set), class = "noiseaware_error_argument")
})

test_that("a release of noise alone leaves the range of a proportion", {
  release <- as_release(c(no = 3, yes = 4), two_levels, mech_laplace(epsilon = 0.01), n = 7)
  set <- confidence_set(release, model_bernoulli(), "prob[yes]")
  expect_equal(c(set$lower, set$upper), c(0, 1))
  expect_output(print(set), "no test rejects")
})

test_that("bad input is refused", {
  refused <- function(..., kind = "argument") expect_error(confidence_set(counted, model_bernoulli(), ...), class = paste0("noiseaware_error_", kind))
  refused("pro")
  refused(1)
  refused("prob[yes]", level = 1)
  refused("prob[yes]", level = 0.99, replicates = 50)
  refused("prob[yes]", fit = 1)
  refused(function(p) c(1, 2), kind = "custom")
})

test_that("the credible interval is beside, and the plot draws both", {
  skip_on_cran()
  fit <- sample_posterior(counted, model_bernoulli(), seed = 1, chains = 2, iter = 1000)
  set <- confidence_set(counted, model_bernoulli(), "prob[yes]", fit = fit)
  expect_equal(set$credible, unname(confint(fit)["prob[yes]", ]), tolerance = 1e-6, ignore_attr = TRUE)
  expect_output(print(set), "credible")
  drawn <- plot(set)
  expect_s3_class(drawn, "ggplot")
  expect_equal(nrow(ggplot2::layer_data(drawn, 4L)), 2L)
  logit <- confidence_set(counted, model_bernoulli(), function(p) stats::qlogis(p[["prob[yes]"]]), replicates = 199, seed = 1)
  plain <- confidence_set(counted, model_bernoulli(), "prob[yes]")
  expect_lt(max(abs(stats::plogis(c(logit$lower, logit$upper)) - c(plain$lower, plain$upper))), 0.02)
  skip_if_not_installed("generics")
  expect_named(generics::tidy(set), c("term", "estimate", "conf.low", "conf.high", "conf.level", "mc.error"))
})

test_that("sets of a clamped mean cover it", {
  skip_on_cran()
  statistic <- stat_sums(~ y + I(y^2), list(y = c(0, 3)))
  covers <- vapply(1:25, function(i) {
    set.seed(i)
    release <- simulate_release(data.frame(y = rnorm(50, 1)), statistic, mech_laplace(epsilon = 2))
    set <- confidence_set(release, model_normal(), "mean", level = 0.8, replicates = 99, seed = i)
    set$lower <= 1 && set$upper >= 1
  }, TRUE)
  expect_gte(sum(covers), 16)
})

test_that("the parametric bootstrap of a normal mean with little noise is the normal interval at the best fit", {
  skip_on_cran()
  set.seed(1)
  y <- rnorm(80, 2, 1.5)
  sums <- simulate_release(data.frame(y), stat_sums(~ y + I(y^2), list(y = c(-8, 12)), outside = "none"), mech_gaussian(sd = 1e-3))
  set <- confidence_set(sums, model_normal(), "mean", level = 0.9, method = "bootstrap", replicates = 1999, seed = 1)
  se <- sqrt(mean((y - mean(y))^2) / 80)
  expect_lt(max(abs(c(set$lower, set$upper) - mean(y) - qnorm(c(0.05, 0.95)) * se) / set$error), 4)
  expect_equal(set$error[1L], sqrt(0.05 * 0.95 / 2000) / dnorm(qnorm(0.05)) * se, tolerance = 0.1)
  expect_equal(set$estimate, mean(y), tolerance = 0.01)
  # and the set of the sd has the standard error of an sd
  sd <- confidence_set(sums, model_normal(), "sd", level = 0.9, method = "bootstrap", replicates = 1999, seed = 1)
  expect_equal((sd$upper - sd$lower) / (2 * qnorm(0.95)), sqrt(mean((y - mean(y))^2) / 160), tolerance = 0.1)
  below <- confidence_set(sums, model_normal(), "mean", alternative = "less", method = "bootstrap", replicates = 1999, seed = 1)
  expect_identical(below$lower, -Inf)
  expect_equal(below$upper, set$upper)
  expect_output(print(set), "approximate")
  expect_error(plot(set), class = "noiseaware_error_argument")
  expect_error(confidence_set(sums, model_normal(), "mean", method = "jackknife"), class = "noiseaware_error_argument")
})

test_that("means beyond natural limits are impossible, and so are spreads that make them", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ y + I(y^2), bounds = list(y = c(0, 100)), outside = "none", rescale = FALSE)
  few <- as_release(c(900, 40000), st, mech_laplace(scale = c(400, 40000)), 20)
  mean <- confidence_set(few, model_normal(), "mean", seed = 1)
  # with the margin of a hundredth
  expect_true(mean$lower >= -1.5 && mean$upper <= 101.5)
  sd <- confidence_set(few, model_normal(), "sd", seed = 1)
  expect_lte(sd$upper, 101.5) # the root of the largest mean square
  clamped <- confidence_set(declare_outside(few, "clamp"), model_normal(), "mean", seed = 1)
  expect_gt(clamped$upper - clamped$lower, 1.1 * (mean$upper - mean$lower))

  # two means with any spreads: those that explain equal means are impossible
  site <- function(m, q) as_release(c(20 * m, 20 * q), st, mech_laplace(scale = c(100, 10000)), 20)
  two <- list(A = site(42, 1900), B = site(61, 3800))
  p <- p_value(two, model_normal(), function(p) p[["mean[A]"]] - p[["mean[B]"]], seed = 1)
  expect_lt(p$p, 0.3)
  expect_true(all(p$values[c("sd[A]", "sd[B]")] < 102))
})
