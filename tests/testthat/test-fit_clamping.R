# Both answers where it matters: what is compared, that it is right, and that it changes nothing else.

# scores in two lumps, with natural limits that a normal distribution takes for clamps
lumps <- function(n = 400) data.frame(y = c(rep(c(0.5, 1), n / 4), rep(c(9, 9.5), n / 4)))
lumpy_release <- function(outside = "clamp", bounds = c(0, 10)) {
  set.seed(1)
  simulate_release(lumps(), stat_crossprod(y ~ 1, list(y = bounds), outside = outside), mech_laplace(epsilon = 5))
}
lumpy_fit <- function(release = lumpy_release(), method = "augment", ...) {
  told(suppressMessages(suppressWarnings(sample_posterior(release, model_normal(), method, chains = 2, iter = 1500, seed = 2, ...))))
}
kinds <- function(fit) vapply(fit$troubles, `[[`, "", "kind")

test_that("an answer that hangs on clamping is told with both numbers", {
  skip_on_cran()
  fit <- lumpy_fit()
  expect_true("clamping" %in% kinds(fit))
  warned <- tryCatch(told(internal("tell_troubles")(list(troubles = fit$troubles[kinds(fit) == "clamping"]), NULL)), warning = identity)
  expect_s3_class(warned, "noiseaware_warning_clamping")
  table <- fit$clamping$table
  expect_identical(table$parameter, c("mean", "sd"))
  expect_gt(fit$clamping$share, 0.1)
  # the answers are those of the fits themselves
  none <- lumpy_fit(lumpy_release("none"), "collapse")
  draws <- posterior::as_draws_matrix(none$draws)
  expect_lt(max(abs(table$none - colMeans(draws)) / apply(draws, 2L, sd)), 0.25)
  expect_equal(table$clamp, unname(colMeans(posterior::as_draws_matrix(fit$draws))))
  # which is right for these: the sd of the records, which are all within
  expect_lt(abs(table$none[2L] - sd(lumps()$y)), 3 * table$none_sd[2L])
  expect_gt(abs(table$clamp[2L] - sd(lumps()$y)), 3 * table$clamp_sd[2L])
  text <- paste(unlist(fit$troubles[kinds(fit) == "clamping"][[1L]]$text), collapse = " ")
  expect_match(text, "% of the records are expected: y [0-9.]+%\\.")
  expect_match(text, sprintf("sd: %s \\(sd", format(table$clamp[2L], digits = 3)))
  expect_match(paste(capture.output(print(summary(fit))), collapse = " "), "depends on records outside the bounds")
  expect_match(paste(capture.output(print(fit)), collapse = " "), "if no record lies outside")
  expect_match(paste(internal("diagnosis")(fit), collapse = " "), "declare_outside")
  expect_no_match(paste(capture.output(print(fit)), collapse = " "), "only means")
  # nothing to compare
  expect_null(none$clamping)
  expect_null(lumpy_fit(method = "collapse")$clamping)
})

test_that("a method that accounts for clamping by a normal distribution is compared, too", {
  fit <- told(suppressWarnings(sample_posterior(lumpy_release(), model_lm(), "clt", chains = 2, iter = 1500, seed = 2)))
  expect_true("clamping" %in% kinds(fit))
  expect_true("sigma" %in% internal("differing_answers")(fit)$parameter)
})

test_that("draws and R's generator are the same with and without it", {
  skip_on_cran()
  run <- function(control) {
    set.seed(9)
    list(draws = told(suppressWarnings(sample_posterior(lumpy_release(), model_normal(), "augment", chains = 2, iter = 300, control = control)))$draws, after = runif(1))
  }
  expect_identical(run(list()), run(list(beside = FALSE)))
  expect_null(lumpy_fit(control = list(beside = FALSE))$clamping)
  expect_identical(lumpy_fit()$clamping, lumpy_fit()$clamping)
  expect_error(lumpy_fit(control = list(beside = 1)), class = "noiseaware_error_argument")
})

test_that("where means agree, the print says by how much intervals differ", {
  fit <- lumpy_fit()
  parameter <- fit$clamping$table$parameter[1]
  length_of <- function(fit) diff(quantile(parameter_draws(fit, parameter), c(0.05, 0.95), names = FALSE))
  none <- internal("fit_beside")(fit)
  expect_equal(fit$clamping$table$ratio[1], length_of(fit) / length_of(none))
  fit$clamping$table$difference <- 0
  fit$clamping$table$ratio <- rep_len(c(1 / 1.6, 1.5), nrow(fit$clamping$table))
  expect_null(internal("clamping_trouble")(fit))
  expect_match(internal("clamping_lines")(fit), "means are about the same, and 90% intervals differ in length by a factor of up to 1.6", fixed = TRUE)
  fit$clamping$table$ratio <- 0.9
  expect_match(internal("clamping_lines")(fit), "the answer is about the same if no record lies outside", fixed = TRUE)
})

test_that("where next to nothing lies beyond nothing is fitted", {
  wide <- lumpy_fit(lumpy_release(bounds = c(-30, 40)))
  expect_null(wide$clamping)
  expect_false("clamping" %in% kinds(wide))
})

test_that("a comparison that would cost more than the fit is skipped with a reason", {
  fit <- lumpy_fit()
  fit$run$iter <- 1
  old <- set_constant("beside_seconds", 0)
  withr::defer(set_constant("beside_seconds", old))
  skipped <- internal("compare_clamping")(fit)
  expect_match(skipped$skipped, "would take")
  fit$clamping <- skipped
  expect_match(internal("clamping_lines")(fit), "not compared with natural limits: that would take")
  expect_null(internal("clamping_trouble")(fit))
})

test_that("shares beyond the bounds are those of the model", {
  fit <- lumpy_fit()
  draws <- posterior::as_draws_matrix(fit$draws)
  expected <- mean(pnorm((0 - draws[, "mean"]) / draws[, "sd"]) + pnorm((10 - draws[, "mean"]) / draws[, "sd"], lower.tail = FALSE))
  expect_lt(abs(internal("share_beyond")(fit) - expected), 5 * sqrt(expected / 4000) + 0.01)
  # of each variable
  set.seed(1)
  wide <- data.frame(y = rnorm(300, 9, 3), x = rnorm(300, 5, 2))
  release <- simulate_release(wide, stat_crossprod(y ~ x, list(y = c(0, 10), x = c(0, 8))), mech_laplace(epsilon = 50))
  fit <- told(suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), "augment", chains = 1, iter = 600, seed = 1))))
  shares <- internal("shares_beyond")(fit)
  expect_named(shares, c("y", "x"))
  expect_equal(shares[["x"]], pnorm(-2.5) + pnorm(1.5, lower.tail = FALSE), tolerance = 0.4)
  expect_equal(shares[["y"]], pnorm(1 / 3, lower.tail = FALSE) + pnorm(-3), tolerance = 0.2)
  expect_match(internal("shares_words")(c(x = 0.02, z = 0, y = 0.345)), ": y 34%, x 2%")
})
