# Plots of a fit: what is drawn is what the draws say.

st <- stat_crossprod(y ~ x + w + g, bounds = list(y = c(-6, 6), x = c(-2, 2), w = c(10, 20), g = c("a", "b")))
set.seed(1)
n <- 2000
records <- data.frame(x = rnorm(n, 0, 0.5), w = rnorm(n, 15), g = sample(c("a", "b"), n, replace = TRUE))
records$y <- 1 + records$x - 0.1 * records$w + (records$g == "b") + rnorm(n, 0, 0.5)
fit <- sample_posterior(simulate_release(records, st, mech_laplace(epsilon = 50)), model_lm(), chains = 2, iter = 400, seed = 1)
level <- 0.8

test_that("a regression on numbers and a factor is found again", {
  expect_lt(max(abs(coef(fit) - c(1, 1, -0.1, 1)) / sqrt(diag(vcov(fit)))), 5)
})

test_that("the predictive band is that of predict()", {
  data <- predictive_data(fit, level = level, points = 5)
  expect_identical(data$covariate, rep("x", 5))
  expect_equal(data$x, seq(-2, 2, length.out = 5))
  # other numbers at the middle of their bounds, factors at their first level
  newdata <- data.frame(x = data$x, w = 15, g = "a")
  expect_equal(data$mean, predict(fit, newdata))
  interval <- predict(fit, newdata, interval = "credible", level = level)
  expect_equal(data$credible_lower, unname(interval[, "lower"]))
  expect_equal(data$credible_upper, unname(interval[, "upper"]))
  expect_true(all(data$predictive_lower < data$credible_lower & data$predictive_upper > data$credible_upper))
  # a new record scatters by sigma about 0.5: the interval of that probability is 2 * 1.28 sigma wide
  sigma <- mean(parameter_draws(fit, "sigma"))
  expect_equal(data$predictive_upper - data$predictive_lower, rep(2 * qnorm(0.9) * sigma, 5), tolerance = 0.15)
  other <- predictive_data(fit, "w", points = 3)
  expect_equal(other$x, c(10, 15, 20))
  expect_equal(other$mean, predict(fit, data.frame(x = 0, w = other$x, g = "a")))
})

test_that("plots show it, with the bounds and what is held", {
  plot <- plot(fit, "predictive", covariate = "w", level = level)
  built <- suppressWarnings(ggplot2::ggplot_build(plot))
  data <- predictive_data(fit, "w", level)
  expect_equal(built$data[[1]]$ymin, data$predictive_lower)
  expect_equal(built$data[[2]]$ymax, data$credible_upper)
  expect_equal(built$data[[3]]$y, data$mean)
  expect_equal(built$data[[4]]$yintercept, c(-6, 6))
  expect_match(plot$labels$subtitle, "80% bands")
  expect_identical(plot$labels$caption, "x held at the middle of the bounds; g = a")
  # chain by chain, in order
  traces <- plot(fit, variables = "x")
  expect_equal(traces$data$value, as.numeric(fit$draws[, , "x"]))
  expect_s3_class(plot(fit, "density"), "ggplot")
  shown <- unique(as.character(plot(fit)$data$parameter))
  expect_identical(shown, c("(Intercept)", "x", "w", "gb", "sigma"))
  grDevices::pdf(NULL) # the grid opens a device
  withr::defer(grDevices::dev.off())
  expect_s3_class(suppressWarnings(plot(fit, "pairs", variables = c("x", "w"))), "bayesplot_grid")
})

test_that("what cannot be drawn is refused", {
  for (call in alist(plot(fit, "other"), plot(fit, variables = "z"), predictive_data(fit, "g"), predictive_data(fit, points = 1), predictive_data(fit, points = 1e5),
                     predictive_data(fit, level = 1), predictive_data(1))) {
    expect_error(eval(call), class = "noiseaware_error_argument", label = deparse(call))
  }
  alone <- stat_crossprod(y ~ g, bounds = list(y = c(-6, 6), g = c("a", "b")))
  factors <- sample_posterior(simulate_release(records[1:20, ], alone, mech_laplace(epsilon = 1)), model_lm(), chains = 1, iter = 20, seed = 1)
  expect_error(predictive_data(factors), class = "noiseaware_error_argument")
})
