# no drawing in the twins' tests; every plot is built once below
drawn <- function(plot) suppressWarnings(ggplot2::ggplot_build(plot))

cal <- calibrate_known(known_sampler(), 60)
quantiles <- cal$results$quantile[cal$results$variable == "mean"]

test_that("ECDF and its difference are those of the quantiles, with the band", {
  data <- calibration_data(cal, "ecdf", "mean", prob = 0.9)
  band <- internal("ecdf_band")(60, prob = 0.9)
  inner <- data[2:(nrow(data) - 1), ]
  expect_equal(inner$value, ecdf(quantiles)(inner$at))
  # without steps, and the same counts inside
  expect_equal(inner$at, band$at)
  expect_equal(ceiling(60 * inner$lower - 1e-6), 60 * band$lower)
  expect_equal(floor(60 * inner$upper + 1e-6), 60 * band$upper)
  difference <- calibration_data(cal, "ecdf_diff", "mean", prob = 0.9)
  expect_equal(difference$value, data$value - data$at)
  expect_equal(difference$lower, data$lower - data$at)
})

test_that("bars count all replicates, with their binomial interval", {
  data <- calibration_data(cal, "rank", "mean", prob = 0.95, bins = 5)
  expect_identical(sum(data$value), 60L)
  expect_equal(data$value[1], sum(quantiles <= 0.2))
  expect_equal(unique(data$lower), qbinom(0.005, 60, 0.2))
  expect_equal(data$to - data$from, rep(0.2, 5))
})

test_that("coverage and quantiles are counted", {
  data <- calibration_data(cal, "coverage", "mean")
  expect_equal(data$value[data$at == 0.5], mean(abs(quantiles - 0.5) <= 0.25))
  expect_equal(data$value[26], coverage(cal, 0.5, "mean")$coverage)
  expect_equal(floor(60 * data$upper[26] + 1e-6), qbinom(0.995, 60, 0.5))
  data <- calibration_data(cal, "qq", "mean", prob = 0.9)
  expect_identical(data$value, sort(quantiles))
  expect_equal(data$lower[7], qbeta(0.05, 7, 54))
})

test_that("every type draws", {
  skip_on_cran()
  for (type in c("ecdf_diff", "ecdf", "rank", "coverage", "qq")) {
    built <- drawn(plot(cal, type))
    expect_identical(nlevels(factor(built$layout$layout$variable)), 2L)
    expect_true(all(nzchar(unlist(plot(cal, type)$labels[c("x", "y")]))))
  }
  built <- drawn(plot(coverage(cal)))
  expect_identical(nrow(built$data[[2]]), 8L)
  expect_error(plot(cal, "histogram"), class = "noiseaware_error_argument")
  expect_error(plot(cal, variables = "sigma"), class = "noiseaware_error_argument")
})

test_that("replicates that failed are told", {
  suppressWarnings(some <- calibrate_known(function(release, model) {
    if (release$value > 0) stop("no")
    known_draws(release$value)
  }, 20))
  expect_match(plot(some)$labels$caption, "that failed and are omitted")
})

test_that("panels are in the order of the variables", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-5, 5), x = c(-2, 2)))
  cal <- suppressWarnings(calibrate(model_lm(prior = prior_nig()), st, mech_laplace(epsilon = 5), 50, 3, method = "clt", chains = 1, iter = 100, seed = 1))
  expect_identical(as.character(ggplot2::ggplot_build(plot(cal))$layout$layout$variable), unique(cal$results$variable))
})
