# What plots look like, of data that are the same everywhere: no draw of a sampler or of a generator of random
# numbers. Other versions of ggplot2 draw other text and lines; the data twins are tested in the other files.

skip_on_cran()
skip_if_not_installed("vdiffr")
skip_if_not(numeric_version("3.4") <= packageVersion("ggplot2") && packageVersion("ggplot2") < "3.5", "pictures are of ggplot2 3.4")

looks <- function(title, plot) vdiffr::expect_doppelganger(title, plot)

# normal quantiles in an order that mixes them, 2 chains of 40
spread <- function(mean, sd, stride) mean + sd * stats::qnorm((stride * seq_len(80)) %% 81 / 81)
with_draws <- function(fit, means, sds) {
  values <- mapply(spread, means, sds, c(2, 4, 5, 7, 8, 10, 11, 13)[seq_along(means)])
  names <- posterior::variables(fit$draws)
  fit$draws <- posterior::as_draws_array(array(values, c(40, 2, length(names)), list(NULL, NULL, names)))
  fit
}

st <- stat_crossprod(y ~ x + g, bounds = list(y = c(-6, 6), x = c(-2, 2), g = c("a", "b")))
rel <- as_release(c(12, -31, 48, 20, 4, 9, 26, -12), st, mech_laplace(epsilon = 2), 100)
fit <- with_draws(sample_posterior(rel, model_lm(), method = "augment", chains = 2, iter = 80, warmup = 40, seed = 1), c(1, 0.8, -0.3, 1.2, 0.1, 1, 0.4, 0.6),
                  c(0.3, 0.2, 0.4, 0.1, 0.2, 0.3, 0.1, 0.1))

test_that("a release", {
  looks("release in several units", plot(rel))
  cells <- stat_counts(~ g, levels = list(g = c("a", "b", "c")))
  looks("release with a hidden number", plot(as_release(c(31, 18, NA), cells, published(mech_laplace(epsilon = 1), threshold = 4), 50)))
})

test_that("a fit", {
  skip_on_cran() # takes long; `make test` runs it
  looks("fit traces", plot(fit, "trace"))
  looks("fit intervals", internal("plot_intervals")(posterior::subset_draws(fit$draws, internal("plot_variables")(fit, NULL)), 0.9))
  looks("fit pairs", plot(fit, "pairs", variables = c("x", "sigma")))
  predicted <- transform(data.frame(covariate = "x", x = seq(-2, 2, length.out = 9)), mean = x, credible_lower = x - 0.3, credible_upper = x + 0.4,
                         predictive_lower = x - 2, predictive_upper = x + 2)
  looks("prediction over a number", internal("plot_predictive")(predicted, fit, 0.9))
  levels <- transform(predicted[1:2, ], covariate = "g", x = factor(c("a", "b")))
  looks("prediction over levels", internal("plot_predictive")(levels, fit, 0.9))
})

test_that("published numbers against replicates, and against the fit", {
  check <- data.frame(component = c("y", "x", "y^2"), value = c(1, 40, 12), mean = c(0, 20, 10), sd = c(2, 5, 0), lower = c(-3, 12, 10), upper = c(3, 28, 10))
  looks("release check", internal("plot_release_check")(structure(check, level = 0.9)))
  fit$chains <- lapply(1:2, function(k) {
    chain <- fit$chains[[k]]
    chain$statistic <- outer(stats::qnorm(seq_len(40) / 41), 1:8) + rep(rel$value + k, each = 40)
    chain
  })
  looks("denoised numbers", plot(fit, "denoised"))
})

test_that("designs and comparisons", {
  skip_on_cran() # takes long; `make test` runs it
  plan <- expand.grid(variable = c("x", "sigma"), epsilon = c(0.1, 1, 10), n = c(100, 1000), statistic = "statistic", stringsAsFactors = FALSE)
  plan$sd <- 1 / sqrt(plan$n * plan$epsilon)
  plan$sd_mcse <- plan$sd / 20
  looks("design", plot(structure(plan, class = c("noiseaware_design", "data.frame"), budget = "epsilon")))
  table <- expand.grid(analysis = c("noise-aware", "naive", "confidential"), variable = c("x", "sigma"), stringsAsFactors = FALSE)
  table$mean <- c(1, 1.4, 1.1, 2, 2.5, 2.1)
  table$lower <- table$mean - c(0.8, 0.2, 0.1)
  table$upper <- table$mean + c(0.8, 0.2, 0.1)
  looks("analyses side by side", plot(structure(list(table = table, fits = list(fit), level = 0.95), class = "noiseaware_comparison")))
  tried <- data.frame(trial = rep(1:2, each = 2), variable = c("x", "sigma"), width = c(2, 1, 1.5, 0.9))
  looks("trials of the app", internal("plot_widths")(tried))
})
