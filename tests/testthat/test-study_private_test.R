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
  expect_identical(private_test(wide, ~ y + g, seed = 1)$p.value, tested$p.value)
  expect_null(tested$conf.int)
  expect_output(print(tested), "simulated releases = 999, p-value")
  levels <- counted(~ g, list(g = c("a", "b", "c")), c(30, 45, 60), 135, 0.05)
  expect_lt(abs(private_test(levels, ~ g, seed = 1)$p.value - stats::chisq.test(c(30, 45, 60))$p.value), 0.01)
  expect_lt(abs(private_test(levels, ~ g, null = c(0.25, 0.3, 0.45), seed = 1)$p.value - stats::chisq.test(c(30, 45, 60), p = c(0.25, 0.3, 0.45))$p.value), 0.05)
})

test_that("counts of exits with little noise have the p-values of the log-rank test", {
  skip_on_cran() # takes long; `make test` runs it
  exits <- function(data, formula, breaks, levels, epsilon = 1e3) {
    set.seed(1)
    simulate_release(survival_exits(data, formula, breaks, levels), stat_survival(formula, breaks, levels), mech_discrete_laplace(epsilon = epsilon))
  }
  times <- c(0, 30, 60, 120, 240, 480, 1000)
  log_rank <- function(test, factors) stats::pchisq(test$chisq, factors - 1, lower.tail = FALSE)
  types <- list(celltype = levels(survival::veteran$celltype)[c(2, 4)])
  lung_cancer <- subset(survival::veteran, celltype %in% types$celltype)
  asked <- Surv(time, status) ~ celltype
  released <- exits(lung_cancer, asked, times, types)
  two <- private_test(released, asked, interval = FALSE, seed = 1)
  expect_lt(abs(two$p.value - log_rank(survival::survdiff(survival::Surv(time, status) ~ celltype, lung_cancer), 2)), 0.02)
  # other log hazard ratios than 0, with the estimate and the interval of Cox's model
  cox <- survival::coxph(survival::Surv(time, status) ~ factor(celltype, types$celltype), lung_cancer)
  at <- function(null) private_test(released, asked, null = null, interval = FALSE, seed = 1)$p.value
  expect_gt(at(stats::coef(cox)), 0.4)
  expect_lt(max(at(stats::confint(cox)[1L]), at(stats::confint(cox)[2L])), 0.15)
  expect_output(print(two), "Two hazards, proportional, from a private release")
  # no difference between treatments
  treated <- transform(survival::veteran, trt = factor(trt))
  several <- private_test(exits(treated, Surv(time, status) ~ trt, times, list(trt = c("1", "2"))), Surv(time, status) ~ trt, interval = FALSE, replicates = 499, seed = 1)
  expect_lt(abs(several$p.value - log_rank(survival::survdiff(survival::Surv(time, status) ~ trt, treated), 2)), 0.06)
  four <- list(celltype = levels(survival::veteran$celltype))
  all <- private_test(exits(survival::veteran, asked, times, four, 0.1), asked, seed = 1, replicates = 199)
  expect_gt(all$p.value, 0.05) # noise hides what the log-rank test finds
  expect_output(print(all), "Equal hazards, from a private release")
  noisy <- exits(survival::veteran, asked, times, four)
  expect_lt(private_test(noisy, asked, seed = 1, replicates = 199)$p.value, 0.02)
  expect_error(private_test(noisy, Surv(time, status) ~ 1), "groups", class = "noiseaware_error_formula")
  expect_error(private_test(noisy, asked, null = 1), class = "noiseaware_error_argument")
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
  expect_error(private_test(list(a = 1, b = 2), ~ y), "`test_hypothesis\\(\\)` compares their rates", class = "noiseaware_error_argument")
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
  skip_on_cran()
  set.seed(1)
  data <- data.frame(y = rnorm(50), x = rnorm(50), z = rnorm(50))
  wide <- simulate_release(data, stat_crossprod(y ~ x + z, list(y = c(-4, 4), x = c(-4, 4), z = c(-4, 4)), outside = "none"), mech_laplace(epsilon = 5))
  heard <- 0
  withCallingHandlers(private_test(wide, y ~ x, replicates = 19, seed = 1), noiseaware_message_components = function(m) {
    heard <<- heard + 1
    rlang::cnd_muffle(m)
  })
  expect_identical(heard, 1)
})

test_that("the total of a 0/1 variable tests its proportion", {
  skip_on_cran()
  rel <- as_release(c(event = 130), stat_sums(~ event, list(event = c(0, 1))), mech_laplace(epsilon = 0.5), n = 400)
  test <- private_test(rel, ~ event, null = 0.3, seed = 1, replicates = 199)
  expect_match(test$method, "One proportion")
  expect_identical(test$p.value, p_value(rel, model_bernoulli(), c(`prob[1]` = 0.3), seed = 1, replicates = 199)$p)
  # a share, whose squares were released as well, has a mean
  both <- stat_sums(~ event + I(event^2), list(event = c(0, 1)), rescale = FALSE)
  expect_match(private_test(as_release(c(event = 130, `event^2` = 90), both, mech_laplace(epsilon = 5), n = 400), ~ event, seed = 1, replicates = 99)$method, "One mean")
})

test_that("one-sided tests of a proportion are exact: all counts, and the noise's tail", {
  n <- 40
  s <- 0:n
  # noise of at least d
  tail_of <- function(d, scale) ifelse(d > 0, exp(-d / scale) / 2, 1 - exp(d / scale) / 2)
  one <- as_release(c(yes = 17.3), stat_subset(stat_counts(~ y, list(y = c("no", "yes"))), "y=yes"), mech_laplace(scale = 2), n = n)
  more <- function(p) sum(dbinom(s, n, p) * tail_of(17.3 - s, 2))
  greater <- private_test(one, ~ y, null = 0.3, alternative = "greater")
  less <- private_test(one, ~ y, null = 0.3, alternative = "less")
  expect_equal(greater$p.value, more(0.3), tolerance = 1e-8)
  expect_equal(less$p.value, 1 - more(0.3), tolerance = 1e-8)
  expect_identical(greater$alternative, "greater")
  # limits: where these are 5 per cent, and the end of the range
  limit <- uniroot(function(p) more(p) - 0.05, c(0.05, 0.6), tol = 1e-10)$root
  expect_lt(abs(greater$conf.int[1L] - limit), 0.002)
  expect_identical(greater$conf.int[2L], 1)
  limit <- uniroot(function(p) 1 - more(p) - 0.05, c(0.2, 0.9), tol = 1e-10)$root
  expect_lt(abs(less$conf.int[2L] - limit), 0.002)
  expect_identical(less$conf.int[1L], 0)
  expect_output(print(less$set), "upper limit")
  expect_output(print(less$test), "against smaller values")
})

test_that("one-sided tests with little noise have the p-values and limits of R's tests", {
  skip_on_cran()
  set.seed(4)
  data <- data.frame(x = rnorm(60))
  data$y <- 0.3 + 0.2 * data$x + rnorm(60)
  range <- list(y = c(-8, 8), x = c(-8, 8))
  sums <- simulate_release(data, stat_sums(~ y + I(y^2), range["y"], outside = "none"), mech_gaussian(sd = 1e-3))
  for (side in c("less", "greater")) {
    mean <- private_test(sums, ~ y, null = 0.2, alternative = side, seed = 1)
    usual <- t.test(data$y, mu = 0.2, alternative = side)
    expect_lt(abs(mean$p.value - usual$p.value), 0.04)
    expect_lt(max(abs(mean$conf.int - usual$conf.int)[is.finite(usual$conf.int)]), 0.08)
    expect_identical(mean$conf.int[is.infinite(usual$conf.int)], usual$conf.int[is.infinite(usual$conf.int)])
    products <- simulate_release(data, stat_crossprod(y ~ x, range, outside = "none"), mech_gaussian(sd = 1e-3))
    slope <- private_test(products, y ~ x, alternative = side, interval = FALSE, seed = 1)
    t <- summary(lm(y ~ x, data))$coefficients["x", "t value"]
    expect_lt(abs(slope$p.value - pt(t, 58, lower.tail = side == "less")), 0.05)
  }
})

test_that("a one-sided p-value of a true null hypothesis is small no more often than it should be, on either side", {
  skip_on_cran()
  statistic <- stat_sums(~ y + I(y^2), list(y = c(0, 4)))
  p <- matrix(vapply(1:120, function(k) {
    set.seed(k)
    release <- simulate_release(data.frame(y = rnorm(30, 1, 1)), statistic, mech_laplace(epsilon = 2))
    p_value(release, model_normal(), c(mean = 1), c("less", "greater")[2L - k %% 2L], replicates = 59, seed = k)$p
  }, 0), 2L)
  for (side in 1:2) {
    expect_lte(mean(p[side, ] <= 0.1), 0.1 + 2.6 * sqrt(0.1 * 0.9 / 60))
    expect_gte(mean(p[side, ] <= 0.3), 0.1) # nor never
  }
})

test_that("trends and standard deviations with little noise have the p-values of R's tests", {
  skip_on_cran()
  counts <- matrix(c(35, 15, 30, 20, 24, 26), 2, dimnames = list(y = c("no", "yes"), g = c("a", "b", "c")))
  release <- counted(~ y:g, list(y = c("no", "yes"), g = c("a", "b", "c")), as.table(counts), 150, 0.05)
  usual <- prop.trend.test(counts[2, ], colSums(counts), c(0, 1, 4))$p.value
  tested <- private_test(release, y ~ g, scores = c(0, 1, 4), seed = 1)
  expect_lt(abs(tested$p.value - usual), 0.03)
  cells <- data.frame(p = counts[2, ] / colSums(counts), w = colSums(counts), s = c(0, 1, 4))
  expect_equal(unname(tested$estimate), unname(coef(lm(p ~ s, cells, weights = w))[2L]), tolerance = 0.05) # the search for the best fit knows the prior
  up <- private_test(release, y ~ g, scores = c(0, 1, 4), alternative = "greater", interval = FALSE, seed = 1)
  expect_lt(abs(up$p.value - usual / 2), 0.03)
  expect_gt(private_test(release, y ~ g, scores = -c(0, 1, 4), alternative = "greater", interval = FALSE, seed = 1)$p.value, 0.9)
  at_slope <- private_test(release, y ~ g, null = unname(tested$estimate), scores = c(0, 1, 4), interval = FALSE, seed = 1)
  expect_gt(at_slope$p.value, 0.9)

  set.seed(5)
  y <- rnorm(50, 1, 1.3)
  sums <- simulate_release(data.frame(y), stat_sums(~ y + I(y^2), list(y = c(-8, 10)), outside = "none"), mech_gaussian(sd = 1e-3))
  for (side in c("less", "greater")) {
    sd <- private_test(sums, ~ y, null = 1.4, alternative = side, of = "sd", seed = 1)
    chi <- pchisq(49 * var(y) / 1.4^2, 49, lower.tail = side == "less")
    expect_lt(abs(sd$p.value - chi), 0.05)
    limit <- sqrt(49 * var(y) / qchisq(if (side == "less") 0.05 else 0.95, 49))
    expect_lt(abs(sd$conf.int[if (side == "less") 2L else 1L] - limit), 0.06)
  }
  expect_equal(unname(sd$estimate), sd(y), tolerance = 0.02)
})

test_that("sides, scores and standard deviations that cannot be are refused", {
  release <- counted(~ y, list(y = c("no", "yes")), c(70, 65), 135)
  refused <- function(release, ..., kind = "argument") expect_error(private_test(release, ...), class = paste0("noiseaware_error_", kind))
  refused(release, ~ y, alternative = "more")
  refused(release, ~ y, of = "variance")
  refused(release, ~ y, of = "sd", null = 1)
  refused(release, ~ y, scores = 1:2, kind = "formula")
  table <- counted(~ y:g, list(y = c("no", "yes"), g = c("a", "b", "c")), rep(5, 6), 30)
  refused(table, y ~ g, scores = 1:2)
  refused(table, y ~ g, scores = c(1, 1, 1))
  refused(table, y ~ g, scores = c(1, NA, 2))
  refused(table, y ~ g, of = "sd", null = 1)
  refused(table, y ~ g, alternative = "less") # two numbers
  refused(table, g ~ y, scores = 1:2, kind = "formula")
  sums <- as_release(c("y" = 3, "y^2" = 5), stat_sums(~ y + I(y^2), list(y = c(-2, 2)), rescale = FALSE), mech_laplace(scale = 1), n = 10)
  refused(sums, ~ y, of = "sd")
  refused(sums, ~ y, of = "sd", null = -1)
})
