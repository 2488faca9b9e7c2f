drawn <- function(plot) suppressWarnings(ggplot2::ggplot_build(plot))

st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-3, 3)))
set.seed(1)
records <- data.frame(x = rnorm(60))
records$y <- records$x + rnorm(60)
fit_at <- function(epsilon, method = "auto") {
  release <- simulate_release(records, st, mech_laplace(epsilon = epsilon))
  sample_posterior(release, model_lm(), method, chains = 2, iter = 200, seed = 1)
}
fits <- list(a = fit_at(1), a = fit_at(10), b = fit_at(1, "naive"))
confidential <- nonprivate_posterior(records, model_lm(), st, chains = 2, iter = 200, seed = 1)

test_that("prior against posterior", {
  skip_on_cran() # takes long; `make test` runs it
  data <- internal("prior_data")(fits[[1]], c("x", "sigma"), 400, 20000, 1, NULL)
  expect_identical(unique(data$distribution), c("prior", "posterior"))
  area <- function(distribution, variable) {
    d <- data[data$distribution == distribution & data$variable == variable, ]
    sum(d$density) * diff(d$at[1:2])
  }
  expect_equal(area("posterior", "x"), 1, tolerance = 0.02)
  expect_equal(area("prior", "x"), 0.92, tolerance = 0.08)
  # the prior of sigma: log-normal, its median an eighth of the width
  sigma <- data[data$distribution == "prior" & data$variable == "sigma" & data$at > 0.6 & data$at < 2, ]
  expect_lt(max(abs(sigma$density / dlnorm(sigma$at, log(0.75), 0.8) - 1)), 0.1)
  drawn(plot(fits[[1]], "prior"))
  # a distribution that does not end in a tail: 2 (1 - p), high at 0 (three levels)
  counts <- as_release(c(4, 3, 3), stat_counts(~ g, levels = list(g = c("a", "b", "c"))), mech_laplace(epsilon = 1), 10)
  prior <- internal("prior_data")(sample_posterior(counts, flat_categorical(), chains = 1, iter = 400, seed = 1), "prob[c]", 201, 20000, 1, NULL)
  prior <- prior[prior$distribution == "prior", ]
  expect_lt(max(abs(prior$density - 2 * (1 - prior$at))), 0.12)
  expect_error(prior_data(fits[[1]], "z"), class = "noiseaware_error_argument")
})

test_that("variables are named, and there", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate(known$model, known$statistic, mech_laplace(epsilon = 1), 10, 2, chains = 1, iter = 40, seed = 1)
  for (variables in list("z", NA_character_, 1, -Inf, ~ mean, mean, character(), list("mean"), c("mean", "\xe4"))) {
    expect_error(calibration_data(cal, variables = variables), class = "noiseaware_error_argument")
    expect_error(prior_data(fits[[1]], variables), class = "noiseaware_error_argument")
    expect_error(plot(fits[[1]], variables = variables), class = "noiseaware_error_argument")
  }
})

test_that("predictive coverage counts the responses inside", {
  skip_on_cran() # takes long; `make test` runs it
  table <- coverage(fits$a, c(0.5, 0.9), newdata = records, seed = 1)
  expect_match(capture.output(print(table)), sprintf("y +0.9 +%.2f \\(%.2f, %.2f\\)", table$coverage[2], table$lower[2], table$upper[2]), all = FALSE)
  expect_match(capture.output(print(table[1:2, c("level", "coverage")])), "^1 ", all = FALSE)
  inside <- function(level) {
    interval <- predict(fits$a, records, interval = "predictive", level = level, seed = 1)
    mean(records$y >= interval[, "lower"] & records$y <= interval[, "upper"])
  }
  # interval ends are interpolated between 200 draws: a few responses may change sides
  expect_lt(max(abs(table$coverage - c(inside(0.5), inside(0.9)))), 4.5 / 60)
  expect_identical(table$replicates, c(60L, 60L))
  both <- coverage(fits, 0.9, newdata = list(records, records[1:10, ], records), seed = 1)
  expect_identical(both$variable, c("a", "b"))
  expect_identical(both$replicates, c(70L, 60L))
  expect_error(coverage(fits$a, newdata = records["x"]), class = "noiseaware_error_data")
  expect_error(coverage(fits$a), class = "noiseaware_error_argument")
  expect_error(coverage(unname(fits), newdata = records), class = "noiseaware_error_argument")
  expect_error(coverage(1), class = "noiseaware_error_argument")
  yes_no <- as_release(c(-3, 1, 60, 2, 20), stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(-3, 3))), mech_laplace(epsilon = 1), 60)
  logistic <- sample_posterior(yes_no, model_logistic(), chains = 1, iter = 20, seed = 1)
  expect_error(coverage(logistic, newdata = records), "model_lm", class = "noiseaware_error_argument")
})

test_that("analyses stand side by side", {
  skip_on_cran() # takes long; `make test` runs it
  both <- compare_analyses(fits[[1]]$release, model_lm(), records, chains = 2, iter = 200, seed = 1)
  expect_identical(names(both$fits), c("noise-aware", "naive", "confidential"))
  expect_equal(both$table$mean[both$table$analysis == "naive" & both$table$variable == "x"], coef(both$fits$naive)[["x"]])
  expect_identical(both$fits$`noise-aware`$draws, fits[[1]]$draws)
  expect_match(capture.output(print(both)), "confidential", all = FALSE)
  expect_identical(nrow(drawn(plot(both, "x"))$data[[2]]), 3L)
  counts <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  alone <- compare_analyses(as_release(c(7, 4), counts, mech_laplace(epsilon = 1), 12), model_bernoulli(), chains = 1, iter = 200)
  expect_identical(names(alone$fits)[1], "noise-aware")
  expect_error(compare_analyses(fits[[1]]$release, model_lm(), methods = 1), class = "noiseaware_error_argument")
  # of a fit: itself, next to other analyses with its settings
  fit <- alone$fits[["noise-aware"]]
  again <- compare_analyses(fit)
  expect_identical(names(again$fits), names(alone$fits))
  expect_identical(again$fits[["noise-aware"]], fit)
  expect_equal(dim(again$fits$naive$draws), dim(fit$draws))
  expect_identical(dim(compare_analyses(fit, iter = 100, seed = 1)$fits[["noise-aware"]]$draws)[1L], 50L)
  expect_error(compare_analyses(fit, model_bernoulli()), "`model` must be left out", class = "noiseaware_error_argument")
  # what only one of the analyses can use
  short <- compare_analyses(fits[[1]]$release, model_lm(), records, chains = 1, iter = 20, seed = 1, control = list(passes = 2))
  expect_identical(short$fits$`noise-aware`$problem$passes, 2)
  expect_identical(short$fits$confidential$run$iter, 20)
  expect_error(compare_analyses(fits[[1]]$release, model_lm(), chain = 1), class = "noiseaware_error_argument")
  expect_error(compare_analyses(fits[[1]]$release, model_lm(), records[-1, ]), "as many rows", class = "noiseaware_error_data")
})

test_that("a design is a calibration for each cell", {
  skip_on_cran() # takes long; `make test` runs it
  narrow <- stat_sums(~ x, bounds = list(x = c(-10, 10)))
  wide <- stat_sums(~ x, bounds = list(x = c(-100, 100)))
  expect_warning(design(known$model, wide, epsilon = 1e-4, n = 5, replicates = 4, chains = 1, iter = 1000, seed = 1), "epsilon = 1e-04, n = 5: mean",
                 class = "noiseaware_warning_prior")
  plan <- suppressWarnings(design(known$model, list(narrow = narrow, wide = wide), epsilon = c(0.5, 5), n = c(20, 80), replicates = 4, chains = 1,
                                  iter = 200, seed = 1), classes = "noiseaware_warning_prior")
  expect_identical(nrow(plan), 8L)
  cell <- plan[plan$statistic == "wide" & plan$epsilon == 5 & plan$n == 80, ]
  cal <- calibrate(known$model, wide, mech_laplace(epsilon = 5), 80, 4, chains = 1, iter = 200, seed = 1)
  r <- cal$results[cal$results$variable == "mean", ]
  expect_equal(cell$sd, mean(r$sd))
  expect_equal(cell$rmse, sqrt(mean((r$mean - r$truth)^2)))
  expect_equal(cell$coverage, coverage(cal, 0.95, "mean")$coverage)
  # the prior's interval, see `known`
  expect_equal(cell$of_prior, cell$width / (2 * 2 * stats::qnorm(0.975)), tolerance = 0.03)
  # less noise is better
  expect_lt(plan$sd[plan$statistic == "narrow" & plan$epsilon == 5 & plan$n == 80], plan$sd[plan$statistic == "wide" & plan$epsilon == 0.5 & plan$n == 80])
  drawn(plot(plan))
  # rows that were picked still print and plot; other columns as a data frame
  shown <- capture.output(print(plan))
  expect_match(shown, "^ +statistic +epsilon +n +variable +sd +\\(mcse\\) +width +ratio +coverage$", all = FALSE)
  expect_lte(max(nchar(shown)), 80L)
  narrow_only <- plan[plan$statistic == "narrow", ]
  expect_no_match(capture.output(print(narrow_only)), "statistic")
  attr(narrow_only, "budget") <- NULL
  expect_identical(plot(narrow_only)$labels$x, "privacy budget epsilon (log scale)")
  expect_match(capture.output(print(plan[c("n", "sd")])), "^1 ", all = FALSE)
  # a budget of another kind keeps its name; a mechanism's argument epsilon is used by name
  rho <- design(known$model, wide, function(rho) mech_gaussian(rho = rho), epsilon = 0.5, n = 5, replicates = 2, chains = 1, iter = 100, seed = 1)
  expect_identical(names(rho)[1:3], c("statistic", "rho", "n"))
  expect_identical(plot(rho)$labels$x, "privacy budget rho (log scale)")
  expect_error(design(known$model, wide, mech_gaussian, epsilon = 1, n = 5), class = "noiseaware_error_mechanism")
  expect_error(design(known$model, wide, function() mech_laplace(epsilon = 1), epsilon = 1, n = 5), class = "noiseaware_error_argument")
  expect_error(design(known$model, 1, epsilon = 1, n = 5), class = "noiseaware_error_argument")
  expect_error(design(known$model, wide, epsilon = 1, n = 0.5), class = "noiseaware_error_argument")
  expect_error(design(known$model, wide, epsilon = 1, n = prior_n("poisson", mean = 5)), "calibrate", class = "noiseaware_error_argument")
  expect_error(design(known$model, wide, 3, epsilon = 1, n = 5), class = "noiseaware_error_argument")
})
