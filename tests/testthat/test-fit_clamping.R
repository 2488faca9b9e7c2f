# Both answers where it matters: what is compared, that it is right, and that it changes nothing else.

# scores in two lumps, with natural limits that a normal distribution takes for clamps
lumps <- function(n = 400) data.frame(y = c(rep(c(0.5, 1), n / 4), rep(c(9, 9.5), n / 4)))
lumpy_release <- function(outside = "clamp", bounds = c(0, 10)) {
  set.seed(1)
  simulate_release(lumps(), stat_crossprod(y ~ 1, list(y = bounds), outside = outside), mech_laplace(epsilon = 5))
}
lumpy_fit <- function(release = lumpy_release(), method = "augment", ...) {
  told(suppressMessages(suppressWarnings(sample_posterior(release, model_normal(), method, chains = 2, iter = 800, seed = 2, ...))))
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
  # the answers agree with the fits themselves
  none <- lumpy_fit(lumpy_release("none"), "collapse")
  draws <- posterior::as_draws_matrix(none$draws)
  expect_lt(max(abs(table$other - colMeans(draws)) / apply(draws, 2L, sd)), 0.25)
  expect_equal(table$mean, unname(colMeans(posterior::as_draws_matrix(fit$draws))))
  # which is right for these: the sd of the records, which are all within
  expect_lt(abs(table$other[2L] - sd(lumps()$y)), 3 * table$other_sd[2L])
  expect_gt(abs(table$mean[2L] - sd(lumps()$y)), 3 * table$sd[2L])
  text <- paste(unlist(fit$troubles[kinds(fit) == "clamping"][[1L]]$text), collapse = " ")
  expect_match(text, "% of the records are expected: y [0-9.]+%\\.")
  expect_match(text, sprintf("sd: %s \\(sd", format(table$mean[2L], digits = 3)))
  expect_match(paste(capture.output(print(summary(fit))), collapse = " "), "depends on records outside the bounds")
  expect_match(paste(capture.output(print(fit)), collapse = " "), "if no record lies outside")
  expect_match(paste(internal("diagnosis")(fit), collapse = " "), "declare_outside")
  expect_no_match(paste(capture.output(print(fit)), collapse = " "), "only means")
  expect_output(print(fit), "if the bounds are natural limits, fit declare_outside(release, \"none\")", fixed = TRUE)
  # nothing to compare
  expect_null(none$clamping)
  expect_null(lumpy_fit(method = "collapse")$clamping)
})

test_that("a method that accounts for clamping by a normal distribution is compared, too", {
  fit <- told(suppressWarnings(sample_posterior(lumpy_release(), model_lm(), "clt", chains = 2, iter = 1500, seed = 2)))
  expect_true("clamping" %in% kinds(fit))
  expect_true("sigma" %in% internal("differing_answers")(fit$clamping$table, internal("hangs_on"))$parameter)
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
  length_of <- function(fit) diff(quantile(parameter_draws(fit, parameter), c(0.05, 0.95), type = 6, names = FALSE))
  none <- internal("fit_beside")(fit)
  expect_equal(fit$clamping$table$ratio[1], length_of(fit) / length_of(none))
  fit$clamping$table$difference <- 0
  fit$clamping$table$ratio <- rep_len(c(1 / 1.6, 1.5), nrow(fit$clamping$table))
  expect_null(internal("clamping_trouble")(fit))
  expect_match(internal("clamping_lines")(fit)[1], "means are about the same, and 90% intervals differ in length by a factor of up to 1.6", fixed = TRUE)
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
  skip_on_cran() # takes long; `make test` runs it
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

# ---- pools -------------------------------------------------------------------------------

lumpy_sites <- function(outside = "clamp", bounds = c(0, 10)) {
  asked <- stat_sums(~ y + I(y^2), list(y = bounds), outside = outside)
  set.seed(1)
  lapply(list(small = lumps(120), large = lumps(400)), simulate_release, asked, mech_laplace(epsilon = 20))
}
pool_lumps <- function(release, pool, model = model_normal(), iter = 600) {
  told(suppressMessages(suppressWarnings(sample_posterior(release, model, pool = pool, chains = 2, iter = iter, seed = 2))))
}

test_that("pools of sites and groups are compared, too", {
  skip_on_cran() # takes long; `make test` runs it
  for (pool in c("complete", "partial")) {
    fit <- pool_lumps(lumpy_sites(), pool)
    expect_true("clamping" %in% kinds(fit), info = pool)
    table <- fit$clamping$table
    sd <- if (pool == "complete") "sd" else "sd[large]"
    of <- table[table$parameter == sd, ]
    expect_lt(abs(of$other - sd(lumps()$y)), 3 * of$other_sd)
    expect_gt(of$mean - sd(lumps()$y), 3 * of$sd)
    # the other answer agrees with the fit itself
    none <- pool_lumps(lumpy_sites("none"), pool)
    expect_lt(abs(of$other - mean(parameter_draws(none, sd))) / of$other_sd, 0.3)
    expect_null(none$clamping)
    expect_match(paste(capture.output(print(fit)), collapse = " "), "if no record lies outside")
  }
  levels <- list(site = c("small", "large"))
  data <- data.frame(lumps(), site = rep(levels$site, c(100, 300)))
  asked <- list(size = stat_counts(~ site, levels), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(0, 10))), levels))
  set.seed(1)
  grouped <- simulate_release(data, asked, list(size = mech_laplace(epsilon = 5), total = mech_laplace(epsilon = 20)))
  expect_true("clamping" %in% kinds(pool_lumps(grouped, "partial", model_normal(~ site))))
})

test_that("shares beyond the bounds are those of the sites, by their sizes", {
  skip_on_cran() # takes long; `make test` runs it
  fit <- pool_lumps(lumpy_sites(), "partial")
  of <- function(site) {
    value <- function(name) parameter_draws(fit, sprintf("%s[%s]", name, site))
    mean(pnorm((0 - value("mean")) / value("sd")) + pnorm((10 - value("mean")) / value("sd"), lower.tail = FALSE))
  }
  expect_equal(internal("share_beyond")(fit), (120 * of("small") + 400 * of("large")) / 520, tolerance = 0.1)
  # where the covariates' distribution is not among the draws, both are fitted
  set.seed(1)
  sites <- lapply(1:2, function(i) {
    data <- data.frame(lumps(120), x = rnorm(120, 5))
    simulate_release(data, stat_crossprod(y ~ x, list(y = c(0, 10), x = c(0, 10))), mech_laplace(epsilon = 20))
  })
  fit <- pool_lumps(stats::setNames(sites, c("a", "b")), "partial", model_lm())
  expect_identical(fit$clamping$share, NA_real_)
  text <- paste(unlist(internal("clamping_trouble")(fit)[[1L]]$text), collapse = " ")
  expect_match(text, "records outside the bounds. ", fixed = TRUE)
  expect_match(text, "sigma")
})

test_that("in pools where next to nothing lies beyond nothing is fitted", {
  skip_on_cran() # takes long; `make test` runs it
  fit <- pool_lumps(lumpy_sites(bounds = c(-30, 40)), "partial")
  expect_null(fit$clamping)
  expect_false("clamping" %in% kinds(fit))
})
