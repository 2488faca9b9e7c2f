# Curves: totals by intervals of a number, and a parameter drawn over them.

test_that("a statistic by a function is the one by the computed factor", {
  d <- MASS::mcycle
  bounds <- list(accel = c(-150, 100))
  by_call <- stat_by(stat_sums(~ accel + I(accel^2), bounds), ~ cut(times, c(0, 15, 30, 60)))
  d$bin <- cut(d$times, c(0, 15, 30, 60))
  by_name <- stat_by(stat_sums(~ accel + I(accel^2), bounds), list(bin = levels(d$bin)))
  totals <- function(st) unname(internal("statistic_total")(st, d))
  expect_identical(totals(by_call), totals(by_name))
  expect_identical(by_call$components, gsub("bin=", "cut(times, c(0, 15, 30, 60))=", by_name$components, fixed = TRUE))
  for (norm in c("L1", "L2")) for (neighbours in c("replace", "add_remove")) {
    expect_identical(sensitivity(by_call, norm, neighbours), sensitivity(by_name, norm, neighbours))
  }
  # the function of the summed variable and the function of the groups
  roots <- stat_by(stat_sums(~ sqrt(y), list(y = c(0, 9))), ~ cut(x, c(0, 1, 2)))
  expect_equal(unname(internal("statistic_total")(roots, data.frame(x = c(0.5, 1.5, 1.7), y = c(4, 1, 100)))), c(2, 1 + 3))
  rel <- as_release(c(3, 4), roots, mech_laplace(scale = 1), n = 5)
  expect_identical(model_normal(sqrt(y) ~ cut(x, c(0, 1, 2)))[c("variable", "group")], list(variable = "sqrt(y)", group = "cut(x, c(0, 1, 2))"))
  file <- withr::local_tempfile(fileext = ".json")
  write_release(rel, file)
  expect_equal(read_release(file)$statistic, rel$statistic)
})

test_that("levels of groups that are no levels are refused", {
  sums <- stat_sums(~ y, list(y = c(0, 9)))
  expect_error(stat_by(sums, ~ x), "or a formula such as", class = "noiseaware_error_levels")
  expect_error(stat_by(sums, y ~ cut(x, 1:3)), class = "noiseaware_error_levels")
  expect_error(stat_by(sums, ~ cut(x, 1:3) + cut(z, 1:3)), class = "noiseaware_error_levels")
  expect_error(stat_by(sums, ~ log(x)), "must have levels", class = "noiseaware_error_levels")
  expect_error(stat_by(sums, ~ cut(y, c(0, 5, 9))), "not summed", class = "noiseaware_error_levels")
  expect_error(stat_by(sums, c(g = "a")), class = "noiseaware_error_levels")
})

test_that("intervals are at their middles, other sites at their numbers", {
  middles <- internal("interval_middles")
  expect_identical(middles("cut(x, c(0, 1000.5, 3000))", levels(cut(0, c(0, 1000.5, 3000)))), c(500.25, 2000.25))
  expect_identical(middles("cut(x, c(-Inf, 2, 6, Inf))", levels(cut(0, c(-Inf, 2, 6, Inf)))), c(0, 4, 8))
  expect_identical(middles("bin", c("(0,3]", "(3,7]")), c(1.5, 5))
  expect_identical(middles("bin", c("[-1.5,3e+00)", "[3, 7)")), c(0.75, 5))
  expect_null(middles("bin", c("(0,3]", "(4,7]")))
  expect_null(middles("bin", c("(3,0]", "(0,-1]")))
  expect_null(middles("bin", c("(0,3]", "more")))
  expect_null(middles(NULL, c("north", "south")))
})

test_that("a curve has the means and the intervals of the groups' draws", {
  set.seed(1)
  st <- stat_counts(~ cut(age, seq(10, 50, by = 10)):low, list(low = c("0", "1")))
  rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 5))
  fit <- suppressMessages(sample_posterior(rel, model_bernoulli(low ~ cut(age, seq(10, 50, by = 10))), pool = "walk", chains = 2, iter = 600, seed = 1))
  curve <- plot(fit, "curve", level = 0.8)
  expect_identical(curve$data$x, c(15, 25, 35, 45))
  expect_identical(curve$labels$x, "age")
  expect_match(curve$labels$subtitle, "80% intervals")
  own <- posterior::extract_variable(site_draws(fit, "(20,30]"), "prob[1]")
  expect_equal(unlist(curve$data[2L, c("estimate", "lower", "upper")], use.names = FALSE), c(mean(own), unname(quantile(own, c(0.1, 0.9), type = 6))))
  expect_s3_class(curve, "ggplot")
  # by the variable itself, in the order of the rows
  at <- predict(fit, data.frame(age = c(35, 12, 35)), interval = "credible", level = 0.8)
  expect_equal(at[, "fit"], curve$data$estimate[c(3, 1, 3)], ignore_attr = TRUE)
  expect_equal(predict(fit, data.frame(age = 25), interval = "credible", level = 0.8)[, c("lower", "upper")], unlist(curve$data[2L, c("lower", "upper")]),
               ignore_attr = TRUE)
  expect_equal(predict(fit), curve$data$estimate, ignore_attr = TRUE)
  expect_error(predict(fit, data.frame(ages = 25)), "names the group", class = "noiseaware_error_data")
  expect_error(predict(fit, data.frame(age = "a")), class = "noiseaware_error_data")
  expect_error(plot(fit, "curve", parameter = "rate"), class = "noiseaware_error_argument")
  expect_error(plot(fit, "curve", level = 2), class = "noiseaware_error_argument")
  expect_error(plot(fit, "curve", colour = 1), class = "noiseaware_error_argument")
  whole <- suppressMessages(sample_posterior(rel, model_bernoulli(low ~ cut(age, seq(10, 50, by = 10))), pool = "complete", chains = 1, iter = 300, seed = 1))
  expect_error(plot(whole, "curve"), "no curve", class = "noiseaware_error_pool")
})

test_that("means of groups are predicted without new data, and in intervals by the number", {
  st <- list(size = stat_counts(~ cut(x, c(0, 1, 2))), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(0, 9))), ~ cut(x, c(0, 1, 2))))
  set.seed(2)
  rel <- simulate_release(data.frame(x = runif(60, 0, 2), y = runif(60, 2, 8)), st, list(size = mech_exact(), total = mech_laplace(epsilon = 4)))
  fit <- suppressMessages(suppressWarnings(sample_posterior(rel, model_normal(~ cut(x, c(0, 1, 2))), pool = "none", chains = 2, iter = 300, seed = 1)))
  means <- suppressWarnings(plot(fit, "curve")$data$estimate)
  expect_equal(suppressWarnings(predict(fit)), means, ignore_attr = TRUE)
  expect_equal(suppressWarnings(predict(fit, data.frame(x = c(1.2, 0.3)))), means[2:1], ignore_attr = TRUE)
})
