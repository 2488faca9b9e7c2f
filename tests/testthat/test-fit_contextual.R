# Groups whose intercepts depend on their means of x, which y ~ x + (1 | g) leaves out: the slope is then between the slope within groups, and the slope of the groups'
# means. Oracle: least squares on the records with an intercept for each group.

of_groups <- function(effect, seed) {
  set.seed(seed)
  g <- rep(sprintf("g%02d", 1:12), each = 30)
  m <- rep(stats::runif(12, -1, 1), each = 30)
  x <- pmin(pmax(m + stats::rnorm(360, 0, 0.5), -3), 3)
  y <- x + effect * m + stats::rnorm(12, 0, 0.3)[as.integer(factor(g))] + stats::rnorm(360)
  data.frame(g, x, y = pmin(pmax(y, -8), 8))
}

fitted_to <- function(data) {
  levels <- list(g = sort(unique(data$g)))
  statistic <- list(size = stat_counts(~ g, levels), total = stat_by(stat_crossprod(y ~ x, list(y = c(-8, 8), x = c(-3, 3)), outside = "none"), levels))
  set.seed(1)
  release <- simulate_release(data, statistic, list(size = mech_exact(), total = mech_laplace(epsilon = 10)))
  suppressMessages(sample_posterior(release, model_lm(y ~ x + (1 | g)), seed = 1, chains = 2, iter = 240))
}

test_that("slopes that rest on differences between groups are told", {
  skip_on_cran() # takes long; `make test` runs it
  data <- of_groups(2, 1)
  warned <- expect_warning(fit <- suppressWarnings(told(fitted_to(data)), classes = paste0("noiseaware_warning_", c("convergence", "divergences"))),
                           class = "noiseaware_warning_contextual")
  both <- "x: [0-9.]+ \\(sd [0-9.]+\\) if intercepts do not depend on the covariates' means, -?[0-9.]+ \\(sd [0-9.]+\\) if they may"
  expect_match(conditionMessage(warned), paste0(both, "\\."))
  expect_match(conditionMessage(warned), "partial_pooling(~ . | x, sites = fit$contextual$means)", fixed = TRUE)
  expect_match(utils::capture.output(print(fit)), paste0("^  intercepts ", both, "$"), all = FALSE)
  within <- stats::coef(stats::lm(y ~ x + g, data))[["x"]]
  table <- fit$contextual$table
  expect_identical(table$parameter, "x")
  # the first answer does not cover it, the second does
  expect_gt(abs(table$mean - within), 3 * table$sd)
  expect_lt(abs(table$other - within), 3 * table$other_sd)
  # means in units of half the bounds
  means <- tapply(data$x, data$g, mean) / 3
  expect_identical(rownames(fit$contextual$means), names(means))
  expect_gt(stats::cor(fit$contextual$means$x, means), 0.9)
})

test_that("groups whose intercepts do not depend on their means give no such warning", {
  skip_on_cran() # takes long; `make test` runs it
  expect_no_warning(fit <- suppressWarnings(told(fitted_to(of_groups(0, 1))), classes = paste0("noiseaware_warning_", c("convergence", "divergences"))))
  expect_named(fit$contextual, c("means", "table"))
  # a print has no line of a comparison that shows no difference
  expect_null(internal("answer_lines")("intercepts", fit$contextual$table[0L, ], c("if so", "if not")))
  # nor a comparison where the intercepts depend on covariates of the groups as they are
  fit$problem$partial$design <- as.matrix(fit$contextual$means)
  expect_null(internal("contextual_means")(fit))
})

test_that("so are those of sites", {
  skip_on_cran() # takes long; `make test` runs it
  data <- of_groups(2, 1)
  statistic <- stat_crossprod(y ~ x, list(y = c(-8, 8), x = c(-3, 3)), outside = "none")
  set.seed(1)
  sites <- lapply(split(data, data$g), simulate_release, statistic, mech_laplace(epsilon = 10))
  expect_warning(fit <- suppressWarnings(told(suppressMessages(sample_posterior(sites, model_lm(), pool = ~ (Intercept), seed = 1, chains = 1, iter = 200))),
                                         classes = paste0("noiseaware_warning_", c("convergence", "divergences"))),
                 "sites' intercepts may depend on the sites' means", class = "noiseaware_warning_contextual")
  # statistics in other units
  sites[[1L]]$statistic$columns$upper[2L] <- 4
  fit$release <- sites
  expect_null(internal("contextual_means")(fit))
})
