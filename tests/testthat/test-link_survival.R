# survfit() of survival curves: survival_measures() and denoise() are the oracles.

quiet <- function(code) suppressWarnings(suppressMessages(code))
weeks <- c(1, 5, 10, 20)
groups <- list(arm = c("a", "b"), sex = c("f", "m", "x"))
set.seed(1)
people <- data.frame(time = 1 + rexp(120, 0.08), event = rbinom(120, 1, 0.8), arm = sample(groups$arm, 120, TRUE), sex = sample(groups$sex, 120, TRUE, 3:1))
release <- simulate_release(survival_exits(people, Surv(time, event) ~ arm + sex, weeks, groups), stat_survival(~ arm + sex, weeks, groups), mech_laplace(epsilon = 1))

test_that("a survfit object has the curves, and the numbers of persons, of each group", {
  skip_if_not_installed("survival")
  for (model in list(model_survival(~ arm + sex), model_survival(~ arm, "piecewise"), model_table())) {
    # 199 draws: quantiles at 0.1, 0.5 and 0.9 are draws
    fit <- quiet(sample_posterior(release, model, chains = 1, iter = 398, seed = 1))
    curves <- quiet(survival::survfit(fit, conf.int = 0.8))
    expect_length(curves$strata, 6L)
    draws <- internal("plain_matrix")(quiet(survival_measures(fit)))
    at <- summary(curves, times = weeks[-1])
    of_curve <- function(name) unname(apply(draws, 2, quantile, name, type = 6))
    expect_equal(at$surv, of_curve(0.5), tolerance = 1e-12)
    expect_equal(at$lower, of_curve(0.1), tolerance = 1e-12)
    expect_equal(at$upper, of_curve(0.9), tolerance = 1e-12)
    expect_equal(at$std.err, unname(apply(draws, 2, sd)), tolerance = 1e-12)
    expect_identical(paste0("survival[5]|", gsub(", ", ":", names(curves$strata))), colnames(draws)[seq(1, by = 3, length.out = 6)])
    counts <- colMeans(internal("plain_matrix")(denoise(fit, ~ arm:sex + exit:arm:sex)))
    expect_equal(unname(curves$n), unname(counts[1:6]), tolerance = 1e-12)
    expect_equal(at$n.event[at$time == 10 & at$strata == "arm=b, sex=f"], counts[["exit=event[5,10):arm=b:sex=f"]], tolerance = 1e-12)
    expect_equal(at$n.risk[at$time == 10], at$n.risk[at$time == 5] - at$n.event[at$time == 5] - at$n.censor[at$time == 5], tolerance = 1e-9)
    # but for steps, the limits of a quantile are quantiles of the times
    if (!inherits(model, "model_survival")) next
    times <- internal("plain_matrix")(quiet(survival_measures(fit, "median")))
    medians <- quantile(curves, 0.5)
    for (end in list(list("lower", 0.1), list("quantile", 0.5), list("upper", 0.9))) {
      exact <- apply(times, 2, quantile, end[[2]], type = 6)
      found <- medians[[end[[1]]]][, 1]
      inside <- exact < 19.9
      expect_true(all(is.na(found[exact > 20])))
      expect_true(all(abs(found - exact)[inside] < 0.1 + 1e-9))
    }
  }
  expect_output(print(curves), "0.8LCL")
  grDevices::pdf(NULL)
  expect_error(plot(curves, conf.int = TRUE), NA)
  grDevices::dev.off()
})

test_that("one group has no strata, and other fits are refused", {
  skip_if_not_installed("survival")
  one <- simulate_release(survival_exits(people, Surv(time, event) ~ 1, weeks), stat_survival(~ 1, weeks), mech_laplace(epsilon = 1))
  fit <- quiet(sample_posterior(one, model_survival(), chains = 1, iter = 100, seed = 1))
  curves <- quiet(survival::survfit(fit, times = c(20, 2)))
  expect_identical(curves$time, c(2, 20))
  expect_null(curves$strata)
  expect_error(survival::survfit(fit, conf.int = 2), class = "noiseaware_error_argument")
  expect_error(survival::survfit(fit, times = 0), class = "noiseaware_error_argument")
  expect_error(survival::survfit(fit, newdata = people), class = "noiseaware_error_argument")
  counted <- as_release(12, stat_sums(~ x, list(x = c(0, 1))), mech_laplace(epsilon = 1), n = 40)
  rate <- quiet(sample_posterior(counted, model_bernoulli(), chains = 1, iter = 100, seed = 1))
  expect_error(survival::survfit(rate), class = "noiseaware_error_argument")
  two <- simulate_release(survival_exits(people, Surv(time, event) ~ 1, weeks), stat_survival(~ 1, weeks), mech_laplace(epsilon = 1))
  pool <- quiet(sample_posterior(list(a = one, b = two), model_survival(), pool = "none", chains = 1, iter = 100, seed = 1))
  expect_error(survival::survfit(pool), class = "noiseaware_error_argument")
})
