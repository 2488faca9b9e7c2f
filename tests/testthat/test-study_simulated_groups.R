null_difference <- function(first, second, by = 0) internal("new_null")(function(values) values[second, , drop = FALSE] - values[first, , drop = FALSE], by)
arms <- list(arm = c("a", "b"))
sums_by_arm <- function(bounds, outside = "none") {
  list(size = stat_counts(~ arm, arms), total = stat_by(stat_sums(~ y + I(y^2), list(y = bounds), outside = outside, rescale = FALSE), arms))
}
exact_sizes <- function(total) list(size = mech_exact(), total = total)

test_that("the score of two means is Welch's, wherever the nuisance parameters are", {
  n <- c(a = 12, b = 20)
  records_mean <- c(a = 1, b = 1.5)
  s2 <- c(a = 1.2, b = 2.6)
  value <- c(n, n * records_mean, n * (s2 + records_mean^2))
  release <- as_release(unname(value), sums_by_arm(c(-20, 20)), exact_sizes(mech_gaussian(sd = 1e-3)), n = sum(n))
  sim <- internal("new_simulator")(release, model_normal(y ~ arm), NULL, 19, 1)
  at_means <- function(common, variance) {
    groups <- lapply(variance, function(v) internal("bound_theta")(sim$bound, c(mean = common, sd = sqrt(v)))[sim$bound$unknown])
    at <- internal("score_at")(sim, null_difference("mean[a]", "mean[b]"), unlist(groups))
    # of the null hypothesis's common mean, which variances at theta weight
    weight <- n / variance
    v <- s2 + (records_mean - sum(weight * records_mean) / sum(weight))^2
    c(internal("observed_score")(sim, at)$tested, unname(diff(records_mean)^2 / sum(v / n)))
  }
  for (common in c(0.6, 1.2, 1.8)) for (scale in c(0.8, 1, 1.3)) {
    found <- at_means(common, scale * s2)
    expect_lt(abs(found[1L] / found[2L] - 1), 0.05) # the third order is left out
  }
})

test_that("at given parameters the p-value of two groups' proportions is that of enumeration", {
  skip_on_cran()
  n <- c(2, 3)
  scale <- 0.7
  answers <- list(size = stat_counts(~ arm, arms), answer = stat_counts(~ arm:y, c(arms, list(y = c("no", "yes")))))
  release <- as_release(c(n, 2, 0, 1, 3), answers, list(size = mech_exact(), answer = mech_discrete_laplace(scale = scale)), n = 5)
  sim <- internal("new_simulator")(release, model_bernoulli(y ~ arm), NULL, 3999, 1)
  null <- null_difference("prob[yes,a]", "prob[yes,b]")
  at <- internal("score_at")(sim, null, internal("move_to_null")(sim, null, sim$middle + 0.3))
  p <- internal("point_values")(sim, at$point)[, 1L]
  expect_equal(p[["prob[yes,a]"]], p[["prob[yes,b]"]], tolerance = 1e-6)
  yes <- expand.grid(a = 0:2, b = 0:3)
  weight <- dbinom(yes$a, 2, p[[1L]]) * dbinom(yes$b, 3, p[[1L]])
  noise <- as.matrix(expand.grid(rep(list(-7:7), 4L)))
  density <- apply(matrix(ddiscrete_laplace(noise, 0, scale), ncol = 4L), 1L, prod)
  observed <- internal("score_values")(at, matrix(sim$value, 1L))$tested
  exact <- sum(vapply(seq_along(weight), function(i) {
    z <- noise + rep(c(2 - yes$a[i], yes$a[i], 3 - yes$b[i], yes$b[i]), each = nrow(noise))
    weight[i] * sum(density[internal("score_values")(at, z)$tested >= observed * (1 - 1e-9)])
  }, 0))
  expect_lt(abs(internal("point_test")(sim, at)$p - exact), 4 * sqrt(exact * (1 - exact) / 4000) + 2e-3)
})

test_that("with little noise groups have the p-values of R's tests", {
  skip_on_cran()
  three <- list(arm = c("a", "b", "c"))
  set.seed(3)
  data <- data.frame(arm = rep(three$arm, c(60, 90, 70)))
  data$y <- rnorm(220, 1 + 0.25 * (data$arm != "a"), 1 + 0.6 * (data$arm != "a"))
  data$w <- rbinom(220, 1, 0.3 + 0.15 * (data$arm != "a"))
  test <- function(data, statistic, formula, coded, ...) {
    statistic <- list(size = stat_counts(~ arm, coded), total = stat_by(statistic, coded))
    private_test(simulate_release(data, statistic, exact_sizes(mech_gaussian(sd = 1e-3))), formula, ..., seed = 1)
  }
  sums <- stat_sums(~ y + I(y^2), list(y = c(-8, 10)), outside = "none")
  answers <- stat_sums(~ w, list(w = 0:1))
  two <- data[data$arm != "c", ]

  welch <- test(two, sums, y ~ arm, arms, level = 0.9)
  usual <- t.test(y ~ arm, two, conf.level = 0.9)
  expect_match(welch$method, "Two means, any variances")
  expect_lt(abs(welch$p.value - usual$p.value), 0.02)
  expect_gt(abs(t.test(y ~ arm, two, var.equal = TRUE)$p.value - usual$p.value), 0.02) # a question of its own
  expect_lt(max(abs(welch$conf.int - rev(-usual$conf.int))), 0.08)
  less <- test(two, sums, y ~ arm, arms, null = 0.4, alternative = "less", interval = FALSE)
  expect_lt(abs(less$p.value - t.test(y ~ arm, two, mu = -0.4, alternative = "greater")$p.value), 0.02)

  ratio <- test(two, sums, y ~ arm, arms, of = "sd", null = 1.3)
  usual <- var.test(y ~ arm, two, ratio = 1 / 1.3^2)
  expect_lt(abs(ratio$p.value - usual$p.value), 0.05)
  expect_equal(unname(ratio$estimate), sqrt(1 / unname(usual$estimate)), tolerance = 0.02)
  expect_lt(max(abs(ratio$conf.int - rev(sqrt(1 / usual$conf.int)))), 0.1)

  expect_lt(abs(test(data, sums, y ~ arm, three)$p.value - oneway.test(y ~ arm, data)$p.value), 0.03)
  expect_lt(bartlett.test(y ~ arm, data)$p.value, 1e-4)
  expect_lt(test(data, sums, y ~ arm, three, of = "sd")$p.value, 0.01)
  equal <- test(data, answers, w ~ arm, three)
  expect_lt(abs(equal$p.value - chisq.test(table(data$w, data$arm))$p.value), 0.03)
  difference <- test(two, answers, w ~ arm, arms)
  usual <- prop.test(table(two$arm, two$w)[, 2:1], correct = FALSE)
  expect_lt(abs(difference$p.value - usual$p.value), 0.03)
  expect_lt(max(abs(difference$conf.int - rev(-usual$conf.int))), 0.03)
})

test_that("true null hypotheses about groups are not rejected too often, sizes with noise too", {
  skip_on_cran()
  sizes <- list(size = mech_discrete_laplace(epsilon = 1), total = mech_laplace(epsilon = 3))
  for (mechanism in list(exact_sizes(mech_laplace(epsilon = 3)), sizes)) {
    p <- vapply(1:16, function(k) {
      set.seed(k)
      data <- data.frame(arm = rep(arms$arm, c(20, 40)), y = rnorm(60, 1, rep(c(0.5, 1.5), c(20, 40))))
      release <- simulate_release(data, sums_by_arm(c(-2, 4), "clamp"), mechanism)
      private_test(release, y ~ arm, replicates = 39, interval = FALSE, seed = k)$p.value
    }, 0)
    expect_lte(mean(p <= 0.1), 0.1 + 3 * sqrt(0.1 * 0.9 / 16))
    expect_gte(mean(p <= 0.5), 0.1)
  }
})

test_that("sites have parameters of their own, and sites that are equal are not rejected", {
  answer <- stat_counts(~ y, list(y = c("no", "yes")))
  site <- function(value, n) as_release(value, answer, mech_discrete_laplace(epsilon = 1), n = n)
  sites <- list(north = site(c(61, 42), 105), south = site(c(54, 27), 80))
  # what one of them says of itself it says alone
  alone <- p_value(sites$north, model_bernoulli(), c("prob[yes]" = 0.3))$p
  expect_lt(abs(p_value(sites, model_bernoulli(), c("prob[yes,north]" = 0.3), seed = 1)$p - alone), 0.03)
  equal <- p_value(sites, model_bernoulli(), function(p) p[["prob[yes,north]"]] - p[["prob[yes,south]"]], seed = 1)
  expect_output(print(equal), "by site, 185 records")
  expect_lt(abs(equal$p - prop.test(c(42, 27), c(103, 81), correct = FALSE)$p.value), 0.1)
  far <- list(north = site(c(80, 25), 105), south = site(c(27, 53), 80))
  expect_lte(p_value(far, model_bernoulli(), function(p) diff(p), replicates = 199, seed = 1)$p, 0.01)
})

test_that("questions about groups that cannot be asked are refused", {
  three <- list(arm = c("a", "b", "c"))
  statistic <- list(size = stat_counts(~ arm, three), total = stat_by(stat_sums(~ w, list(w = 0:1)), three))
  release <- as_release(c(20, 20, 20, 5, 6, 7), statistic, exact_sizes(mech_laplace(epsilon = 1)), n = 60)
  refused <- function(code, kind) expect_error(code, class = paste0("noiseaware_error_", kind))
  refused(private_test(release, w ~ arm, null = 1), "argument")
  refused(private_test(release, w ~ arm, of = "sd"), "argument")
  refused(private_test(release, w ~ arm, alternative = "less"), "argument")
  refused(p_value(release, model_lm(w ~ 1 + (1 | arm)), c(sigma = 1)), "groups")
  one <- as_release(c(20, 5), stat_counts(~ y, list(y = c("no", "yes"))), mech_laplace(epsilon = 1), n = 25)
  other <- as_release(c(10, 15), stat_counts(~ y, list(y = c("no", "yes"))), mech_laplace(epsilon = 1), n = 25)
  refused(p_value(list(a = one, b = other), model_bernoulli(~ y), c("prob[yes]" = 0.5)), "groups")
  unsized <- as_release(c(5, 6, 7), statistic$total, mech_laplace(epsilon = 1), n = 60)
  refused(private_test(unsized, w ~ arm), "groups")
  two <- as_release(c(20, 20, 5, 6, 8, 9), sums_by_arm(c(0, 3)), exact_sizes(mech_laplace(epsilon = 1)), n = 40)
  refused(private_test(two, y ~ arm, of = "sd", null = -1), "argument")
})
