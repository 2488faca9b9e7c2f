# Groups whose covariates vary far less than the noise on their sums of squares. Oracle: sums of squares of the records, and the slope by which they were made.

narrow <- function(seed = 1) {
  set.seed(seed)
  g <- rep(sprintf("g%02d", 1:20), each = 30)
  x <- rnorm(600)
  y <- 1 + x + rnorm(20, 0, 0.3)[as.integer(factor(g))] + rnorm(600)
  data.frame(g, x = pmin(pmax(x, -8), 8), y = pmin(pmax(y, -10), 10))
}

released <- function(data, epsilon) {
  levels <- list(g = sort(unique(data$g)))
  total <- stat_by(stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-8, 8)), outside = "none"), levels)
  set.seed(1)
  simulate_release(data, list(size = stat_counts(~ g, levels), total = total), list(size = mech_exact(), total = mech_laplace(epsilon = epsilon)))
}

fitted_to <- function(release, ways = "separate", ..., iter = 400) {
  suppressMessages(sample_posterior(release, model_lm(y ~ x + (1 | g)), pool = partial_pooling(covariates = ways), seed = 1, chains = 2, iter = iter, ...))
}

test_that("slopes are doubted where noise hides how much a covariate varies within groups", {
  skip_on_cran() # takes long; `make test` runs it
  data <- narrow()
  release <- released(data, 10)
  warned <- expect_warning(fit <- suppressWarnings(told(fitted_to(release)), classes = paste0("noiseaware_warning_", c("convergence", "divergences", "contextual"))),
                           class = "noiseaware_warning_hidden")
  ratio <- internal("hidden_scatter")(fit)
  expect_match(conditionMessage(warned), sprintf("(median over groups): x %s.", format(ratio[["x"]], digits = 2)), fixed = TRUE)
  expect_output(print(fit), "covariates each group has a distribution of its own")
  # the remedy that it names has an interval that holds the slope
  expect_match(conditionMessage(warned), "partial_pooling(covariates = \"pooled\"), method = \"collapse\")", fixed = TRUE)
  for (remedy in list(list("pooled", method = "collapse"), list("shared", method = "clt"))) {
    other <- suppressWarnings(do.call(fitted_to, c(list(release), remedy)))
    expect_null(internal("hidden_trouble")(other))
    assumed <- c(pooled = "one covariance in all groups; their means", shared = "one distribution in all groups")
    expect_output(print(other), paste("  covariates", assumed[[remedy[[1L]]]]))
    slope <- stats::quantile(posterior::extract_variable(other$draws, "x"), c(0.025, 0.975))
    expect_lt(slope[[1L]], 1)
    expect_gt(slope[[2L]], 1)
  }
})

test_that("the ratio is that of the noise to the records' squares about their means", {
  skip_on_cran() # takes long; `make test` runs it
  data <- narrow()
  release <- released(data, 150)
  fit <- suppressWarnings(fitted_to(release, iter = 150))
  squares <- tapply(data$x / 8, data$g, function(x) sum((x - mean(x))^2))
  scale <- unique(release$scale[grepl("x^2", names(release$value), fixed = TRUE)])
  expect_length(scale, 1L)
  expect_equal(internal("hidden_scatter")(fit)[["x"]], stats::median(sqrt(2) * scale / squares), tolerance = 0.05)
  expect_null(internal("hidden_trouble")(fit))
})
