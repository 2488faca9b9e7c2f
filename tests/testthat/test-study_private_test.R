counted <- function(formula, levels, value, n, scale = 1) as_release(value, stat_counts(formula, levels), mech_discrete_laplace(scale = scale), n = n)

test_that("counts with little noise have the p-values of R's tests", {
  skip_on_cran()
  table <- matrix(c(40, 20, 30, 45), 2, dimnames = list(y = c("no", "yes"), g = c("a", "b")))
  release <- counted(~ y:g, list(y = c("no", "yes"), g = c("a", "b")), as.table(table), 135, 0.05)
  tested <- private_test(release, y ~ g, seed = 1)
  asymptotic <- stats::prop.test(table[2, ], colSums(table), correct = FALSE)
  expect_lt(abs(tested$p.value - asymptotic$p.value), 0.02)
  expect_lt(max(abs(sort(abs(tested$conf.int)) - sort(abs(asymptotic$conf.int)))), 0.05)
  expect_equal(unname(tested$estimate), 45 / 75 - 20 / 60, tolerance = 0.03)
  one <- private_test(counted(~ y, list(y = c("no", "yes")), c(70, 65), 135, 0.05), ~ y, null = 0.4)
  expect_lt(abs(one$p.value - stats::prop.test(65, 135, 0.4, correct = FALSE)$p.value), 0.02)
  expect_output(print(one), "One proportion, from a private release")
  three <- matrix(c(15, 35, 29, 21, 25, 25), 2)
  wide <- counted(~ y:g, list(y = c("no", "yes"), g = c("a", "b", "c")), as.table(`dimnames<-`(three, list(y = c("no", "yes"), g = c("a", "b", "c")))), 150, 0.05)
  tested <- private_test(wide, y ~ g, seed = 1)
  expect_lt(abs(tested$p.value - stats::chisq.test(three)$p.value), 0.03)
  expect_null(tested$conf.int)
  expect_output(print(tested), "simulated releases = 999, p-value")
  levels <- counted(~ g, list(g = c("a", "b", "c")), c(30, 45, 60), 135, 0.05)
  expect_lt(abs(private_test(levels, ~ g, seed = 1)$p.value - stats::chisq.test(c(30, 45, 60))$p.value), 0.01)
  expect_lt(abs(private_test(levels, ~ g, null = c(0.25, 0.3, 0.45), seed = 1)$p.value - stats::chisq.test(c(30, 45, 60), p = c(0.25, 0.3, 0.45))$p.value), 0.05)
})

test_that("totals with little noise have the p-values of R's tests", {
  skip_on_cran()
  set.seed(2)
  data <- data.frame(x = rnorm(60), g = factor(rep(c("a", "b", "c"), 20)), h = factor(rep(c("a", "b"), 30)))
  data$y <- 0.3 + 0.2 * data$x + 0.3 * (data$g == "b") + rnorm(60)
  range <- list(y = c(-8, 8), x = c(-8, 8), g = c("a", "b", "c"), h = c("a", "b"))
  test <- function(formula, of = formula, ...) {
    statistic <- stat_crossprod(of, bounds = range[all.vars(of)], outside = "none")
    private_test(simulate_release(data, statistic, mech_gaussian(sd = 1e-3)), formula, ..., interval = FALSE, seed = 1)$p.value
  }
  of <- function(formula) stats::anova(lm(formula, data))[1L, "Pr(>F)"]
  expect_lt(abs(test(y ~ x) - of(y ~ x)), 0.06)
  expect_lt(abs(test(y ~ h) - of(y ~ h)), 0.06)
  expect_lt(abs(test(y ~ g) - of(y ~ g)), 0.06)
  sums <- simulate_release(data, stat_sums(~ y + I(y^2), range["y"], outside = "none"), mech_gaussian(sd = 1e-3))
  mean <- private_test(sums, ~ y, null = 0.1, seed = 1)
  expect_lt(abs(mean$p.value - stats::t.test(data$y, mu = 0.1)$p.value), 0.04)
  expect_lt(max(abs(mean$conf.int - stats::t.test(data$y)$conf.int)), 0.08)
})

test_that("questions that cannot be asked are refused", {
  release <- counted(~ y, list(y = c("no", "yes")), c(70, 65), 135)
  refused <- function(..., kind = "formula") expect_error(private_test(release, ...), class = paste0("noiseaware_error_", kind))
  refused("y")
  refused(~ z)
  refused(~ 1)
  refused(y ~ z)
  refused(~ y, null = 2, kind = "argument")
  refused(~ y, level = 2, kind = "argument")
  refused(~ y, interval = NA, kind = "argument")
  many <- counted(~ y:g, list(y = c("a", "b", "c"), g = c("a", "b")), rep(5, 6), 30)
  expect_error(private_test(many, y ~ g, null = 1), class = "noiseaware_error_argument")
  expect_error(private_test(counted(~ g, list(g = c("a", "b", "c")), rep(5, 3), 15), ~ g, null = c(1, 1, 1)), class = "noiseaware_error_argument")
})

test_that("numbers that are left out are named once", {
  set.seed(1)
  data <- data.frame(y = rnorm(50), x = rnorm(50), z = rnorm(50))
  wide <- simulate_release(data, stat_crossprod(y ~ x + z, list(y = c(-4, 4), x = c(-4, 4), z = c(-4, 4))), mech_laplace(epsilon = 5))
  heard <- 0
  withCallingHandlers(private_test(wide, y ~ x, replicates = 19, seed = 1), noiseaware_message_components = function(m) {
    heard <<- heard + 1
    rlang::cnd_muffle(m)
  })
  expect_identical(heard, 1)
})

test_that("the total of a 0/1 variable tests its proportion", {
  rel <- as_release(c(event = 130), stat_sums(~ event, list(event = c(0, 1))), mech_laplace(epsilon = 0.5), n = 400)
  test <- private_test(rel, ~ event, null = 0.3, seed = 1, replicates = 199)
  expect_match(test$method, "One proportion")
  expect_identical(test$p.value, p_value(rel, model_bernoulli(), c(`prob[1]` = 0.3), seed = 1, replicates = 199)$p)
  # a share, whose squares were released as well, has a mean
  both <- stat_sums(~ event + I(event^2), list(event = c(0, 1)), rescale = FALSE)
  expect_match(private_test(as_release(c(event = 130, `event^2` = 90), both, mech_laplace(epsilon = 5), n = 400), ~ event, seed = 1, replicates = 99)$method, "One mean")
})
