# Plots of a fit: what is drawn is what the draws say.

st <- stat_crossprod(y ~ x + w + g, bounds = list(y = c(-6, 6), x = c(-2, 2), w = c(10, 20), g = c("a", "b")))
set.seed(1)
n <- 2000
records <- data.frame(x = rnorm(n, 0, 0.5), w = rnorm(n, 15), g = sample(c("a", "b"), n, replace = TRUE))
records$y <- 1 + records$x - 0.1 * records$w + (records$g == "b") + rnorm(n, 0, 0.5)
fit <- sample_posterior(simulate_release(records, st, mech_laplace(epsilon = 50)), model_lm(), chains = 2, iter = 400, seed = 1)
level <- 0.8
# other numbers are at their posterior means, factors at their first level
held <- function(name) mean(posterior::extract_variable(fit$draws, sprintf("mean[%s]", name)))

test_that("a regression on numbers and a factor is found again", {
  expect_lt(max(abs(coef(fit) - c(1, 1, -0.1, 1)) / sqrt(diag(vcov(fit)))), 5)
})

test_that("the predictive band is that of predict()", {
  data <- predictive_data(fit, level = level, points = 5)
  expect_identical(data$covariate, rep("x", 5))
  expect_equal(data$x, seq(-2, 2, length.out = 5))
  newdata <- data.frame(x = data$x, w = held("w"), g = "a")
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
  expect_equal(other$mean, predict(fit, data.frame(x = held("x"), w = other$x, g = "a")))
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
  expect_identical(plot$labels$caption, "x held at the posterior mean; g = a")
  # chain by chain, in order
  traces <- plot(fit, "trace", variables = "x")
  expect_equal(traces$data$value, as.numeric(fit$draws[, , "x"]))
  expect_s3_class(plot(fit, "density"), "ggplot")
  shown <- unique(as.character(plot(fit)$data$parameter))
  expect_identical(shown, c("(Intercept)", "x", "w", "gb", "sigma"))
})

test_that("the default shows the prior behind the posterior, cut off where it is much wider", {
  data <- plot(fit, level = level)$data
  skip_if_not_installed("rstantools")
  prior <- rstantools::prior_summary(fit)
  wide <- data$hh - data$ll
  expect_true(all(data$prior_lower >= data$ll - 0.5 * wide - 1e-8 & data$prior_upper <= data$hh + 0.5 * wide + 1e-8))
  own <- internal("prior_intervals")(fit, as.character(data$parameter), 0.9)
  at <- match(data$parameter, prior$variable)
  expect_equal(unname(own[, 2] - own[, 1]), prior$q95[at] - prior$q5[at], tolerance = 0.15)
  narrow <- internal("plot_intervals")(fit$draws[, , 1:2], level, rbind(data$m[1] + c(-1, 1) * wide[1] / 4, data$m[2] + c(-1, 1) * wide[2] / 4))$data
  expect_equal(narrow$prior_upper - narrow$prior_lower, wide[1:2] / 2)
  pool <- sample_posterior(two_yes(), model_bernoulli(), pool = "partial", chains = 1, iter = 40, seed = 1)
  expect_identical(is.na(plot(pool)$data$prior_lower), !plot(pool)$data$parameter %in% c("prob[yes]", "sd[logit(prob[yes])]"))
  expect_false("prior_lower" %in% names(plot(sample_posterior(two_yes(), model_bernoulli(), pool = "none", chains = 1, iter = 40, seed = 1))$data))
})

built <- function(plot) suppressWarnings(ggplot2::ggplot_build(plot))

test_that("intervals are those of the draws, on scales of their own where widths differ", {
  skip_on_cran()
  plot <- plot(fit, "intervals", level = level)
  expect_equal(plot$data$m, unname(apply(internal("parameter_matrix")(fit)[, as.character(plot$data$parameter)], 2L, median)))
  expect_equal(cbind(plot$data$ll, plot$data$hh), unname(confint(fit, as.character(plot$data$parameter), level)), tolerance = 1e-6)
  expect_equal(cbind(plot$data$l, plot$data$h), unname(confint(fit, as.character(plot$data$parameter), 0.5)), tolerance = 1e-6)
  expect_match(plot$labels$x, "50% and 80% interval", fixed = TRUE)
  expect_identical(nrow(built(plot)$layout$layout), 5L)
  areas <- built(plot(fit, "areas", variables = c("x", "gb")))
  for (k in 1:2) { # each row has all draws, and in darker shades its intervals
    v <- c("x", "gb")[k]
    of <- function(layer) areas$data[[layer]][areas$data[[layer]]$group == 3 - k, ]
    expect_equal(range(of(1)$x), range(parameter_draws(fit, v)))
    expect_equal(range(of(2)$x), unname(confint(fit, v, 0.95)[1, ]), tolerance = 1e-6)
    expect_equal(range(of(3)$x), unname(confint(fit, v, 0.5)[1, ]), tolerance = 1e-6)
    expect_equal(min(of(1)$ymin), 3 - k)
    expect_equal(areas$data[[4]]$x[k], median(parameter_draws(fit, v)), tolerance = 1e-6)
  }
  for (argument in list(list(prob_outer = 1), list(prob = 0.5), list(adj = 2))) {
    expect_error(do.call(graphics::plot, c(list(fit, "areas"), argument)), names(argument), class = "noiseaware_error_argument")
  }
  # but for tails that would hide the rest
  tails <- internal("plot_areas")(posterior::as_draws_array(array(stats::qcauchy(stats::ppoints(400)), c(400, 1, 1), list(NULL, NULL, "a"))), 0.95)
  expect_lt(max(tails$data$x), 6 * stats::qcauchy(0.975))
  expect_match(tails$labels$caption, "tails")
})

test_that("pairs are of draws, with the correlations", {
  skip_on_cran()
  plot <- plot(fit, "pairs", variables = c("x", "w", "gb"))
  layers <- built(plot)$data
  expect_identical(nrow(built(plot)$layout$layout), 9L)
  draws <- internal("parameter_matrix")(fit)
  text <- plot$layers[[3]]$data
  expect_identical(text$label[text$row == "x" & text$column == "gb"], sprintf("%.2f", cor(draws[, "x"], draws[, "gb"])))
  points <- plot$layers[[2]]$data
  one <- points[points$row == "gb" & points$column == "x", ]
  expect_equal(one$x, unname(draws[, "x"]))
  expect_equal(one$y, unname(draws[, "gb"]))
  expect_s3_class(plot(fit, "pairs", variables = "x"), "ggplot")
})

test_that("pairs of many variables are those of the first 8, with a message", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(g = paste0("l", 1:9))
  many <- sample_posterior(as_release(rep(5, 9), stat_counts(~ g, levels = levels), mech_laplace(epsilon = 5), 45), model_categorical(), chains = 1, iter = 100, seed = 1)
  expect_message(plot <- plot(many, "pairs"), "first 8 of 9", class = "noiseaware_message_panels")
  expect_identical(nrow(built(plot)$layout$layout), 64L)
  # names too long for the columns stand once
  labels <- plot$facet$params$labeller(data.frame(column = c("prob[l1]", "prob[l8]")))
  expect_identical(unlist(labels, use.names = FALSE), c("1", "8"))
  expect_no_message(plot <- plot(many, "pairs", variables = names(coef(many))))
  expect_identical(nrow(built(plot)$layout$layout), 81L)
  # intervals of like widths have one scale
  expect_identical(nrow(built(plot(many, "intervals"))$layout$layout), 1L)
})

# posteriors that differ only in where and how narrow they are
with_draws <- function(...) {
  values <- cbind(...)
  fit <- list(draws = posterior::as_draws_array(array(values, c(nrow(values), 1, ncol(values)), list(NULL, NULL, colnames(values)))))
  structure(fit, class = "noiseaware_fit")
}

test_that("an area is not flattened by a much higher one", {
  skip_on_cran() # takes long; `make test` runs it
  z <- stats::qnorm(stats::ppoints(400))
  heights <- function(...) {
    area <- internal("plot_areas")(with_draws(...)$draws, 0.95)$layers[[1]]$data
    as.vector(tapply(area$top - area$row, area$row, max))
  }
  expect_equal(heights(a = z, b = z / 3), c(0.85, 0.85 / 3), tolerance = 0.02) # rows count from below
  expect_equal(heights(a = 0.9 + z / 20, b = z, c = z / 2), rep(0.85, 3), tolerance = 0.02)
})

test_that("a prior far above the posterior is cut off in the picture, not in its data", {
  skip_on_cran()
  cells <- as_release(c(0, 40, 30, 20, 20, 20, 10, 10), stat_counts(~ g, list(g = letters[1:8])), mech_laplace(scale = 1), n = 150)
  fit <- suppressMessages(suppressWarnings(sample_posterior(cells, model_categorical(prior = prior_dirichlet(0.1)), chains = 1, iter = 1000, seed = 1)))
  plot <- plot(fit, "prior", "prob[b]")
  whole <- plot$data
  peak <- max(whole$density[whole$distribution == "posterior"])
  line <- plot$layers[[2]]$data
  expect_gt(max(whole$density[whole$distribution == "prior"]), 2 * peak)
  expect_lte(max(line$density), 1.5 * peak)
  expect_setequal(line$distribution, "prior")
  expect_gt(nrow(line), 100L)
})

test_that("panels are those of the first 16 variables, unless they are named", {
  draws <- matrix(stats::qnorm(stats::ppoints(17 * 40)), 40, dimnames = list(NULL, paste0("v", 1:17)))
  expect_message(first <- internal("first_variables")(colnames(draws), 16L), "first 16 of 17", class = "noiseaware_message_panels")
  expect_identical(first, paste0("v", 1:16))
  expect_no_message(internal("first_variables")(first, 16L))
})

test_that("intervals have one scale unless some would be too short, or most of it empty", {
  comparable <- internal("comparable")
  expect_true(comparable(3, 4))
  expect_true(comparable(1:8, 2:9))
  expect_true(comparable(c(0, 0), c(1, 14)))
  expect_false(comparable(c(0, 0), c(1, 16)))
  expect_false(comparable(c(0, 9), c(1, 10)))
})

test_that("the predictive of a factor is that of predict() at each level", {
  data <- predictive_data(fit, "g", level = level)
  expect_identical(data$x, factor(c("a", "b")))
  newdata <- data.frame(x = held("x"), w = held("w"), g = c("a", "b"))
  expect_equal(data$mean, predict(fit, newdata))
  interval <- predict(fit, newdata, interval = "credible", level = level)
  expect_equal(data$credible_upper, unname(interval[, "upper"]))
  layers <- built(plot(fit, "predictive", covariate = "g", level = level))$data
  expect_equal(layers[[1]]$ymin, data$predictive_lower)
  expect_equal(layers[[3]]$y, data$mean)
  # alone, and of a logistic regression, with dummies or codes
  coded <- stat_counts(~ y:g, levels = list(y = c("no", "yes"), g = c("a", "b", "c")))
  rel <- as_release(c(10, 20, 30, 25, 15, 5), coded, mech_laplace(epsilon = 5), 105)
  logit <- suppressWarnings(sample_posterior(rel, model_logistic(y ~ g), chains = 1, iter = 200, seed = 1))
  data <- predictive_data(logit)
  expect_identical(as.character(data$x), c("a", "b", "c"))
  expect_equal(data$mean, predict(logit, data.frame(g = c("a", "b", "c"))))
  plot <- plot(logit, "predictive")
  expect_identical(plot$labels$y, "P(y = yes)")
})

test_that("what cannot be drawn is refused", {
  skip_on_cran()
  for (call in alist(plot(fit, "other"), plot(fit, variables = "z"), predictive_data(fit, "h"), plot(fit, level = 0), predictive_data(fit, points = 1), predictive_data(fit, points = 1e5),
                     predictive_data(fit, level = 1), predictive_data(1))) {
    expect_error(eval(call), class = "noiseaware_error_argument", label = deparse(call))
  }
  for (other in c("pars", "regex_pars", "parm")) {
    expect_error(do.call(plot, stats::setNames(list(fit, "x"), c("x", other))), "`variables` has the names", class = "noiseaware_error_argument")
  }
  alone <- sample_posterior(as_release(c(3, 4), stat_crossprod(y ~ 1, bounds = list(y = c(-6, 6))), mech_laplace(epsilon = 1), 20), model_lm(), chains = 1, iter = 20, seed = 1)
  expect_error(predictive_data(alone), "no covariate", class = "noiseaware_error_argument")
  counts <- sample_posterior(as_release(c(3, 4), stat_counts(~ g, levels = list(g = c("a", "b"))), mech_laplace(epsilon = 1), 7), model_bernoulli(), chains = 1, iter = 20, seed = 1)
  expect_error(predictive_data(counts), "this model is: Bernoulli g", class = "noiseaware_error_argument")
  expect_error(plot(counts, "predictive"), "pp_check", class = "noiseaware_error_argument")
})

test_that("a new count has a band of its own, and far bounds are not drawn", {
  skip_on_cran()
  set.seed(1)
  data <- data.frame(x = runif(200, 0, 10))
  data$y <- rpois(200, exp(0.5 + 0.2 * data$x))
  rel <- simulate_release(data, stat_crossprod(y ~ x, list(y = c(0, 500), x = c(0, 10)), outside = "none"), mech_laplace(epsilon = 50))
  counts <- sample_posterior(rel, model_glm(family = poisson()), chains = 2, iter = 600, seed = 1)
  band <- predictive_data(counts, "x", points = 5)
  expect_true(all(band$predictive_lower < band$credible_lower & band$predictive_upper > band$credible_upper))
  # as predict() has it: quantiles of whole numbers
  ends <- predict(counts, data.frame(x = band$x), interval = "predictive", seed = 3)
  expect_lte(max(abs(band$predictive_upper - ends[, "upper"])), 2)
  expect_lte(max(abs(band$predictive_lower - ends[, "lower"])), 1)
  expect_no_match(plot(counts, "predictive")$labels$subtitle, "dotted")
})
