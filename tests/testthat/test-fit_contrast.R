# Comparisons against beta posteriors, against measures of a table draw by draw, and expressions whose names do not parse.

asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
exact_site <- function(yes, n) as_release(c("smoke=yes" = yes), asked, mech_exact(), n = n)
sites <- list(north = exact_site(12, 30), south = exact_site(25, 45), "far west" = exact_site(9, 40))
fit <- sample_posterior(sites, model_bernoulli(), pool = "none", chains = 2, iter = 3600, seed = 1)
rate <- function(site) posterior::extract_variable(fit$draws, sprintf("prob[yes,%s]", site))

test_that("separate sites have the comparisons of beta distributions", {
  found <- as.data.frame(contrast(fit, level = 0.9))
  expect_identical(found$contrast, c("north - south", "north - far west", "south - far west"))
  expect_identical(unique(found$of), "prob[yes]")
  above <- function(a, b) integrate(function(p) dbeta(p, a[1] + 1, a[2] + 1) * pbeta(p, b[1] + 1, b[2] + 1), 0, 1)$value
  exact <- c(above(c(12, 18), c(25, 20)), above(c(12, 18), c(9, 31)), above(c(25, 20), c(9, 31)))
  expect_lt(max(abs(found$p_above - exact)), 5 * 0.5 / sqrt(1000))
  expect_identical(found$p_direction, pmax(found$p_above, 1 - found$p_above))
  mean <- function(yes, n) (yes + 1) / (n + 2)
  variance <- function(yes, n) mean(yes, n) * (1 - mean(yes, n)) / (n + 3)
  expect_lt(abs(found$estimate[1] - (mean(12, 30) - mean(25, 45))), 0.02)
  expect_lt(abs(found$sd[1] / sqrt(variance(12, 30) + variance(25, 45)) - 1), 0.1)
  expect_equal(c(found$lower[1], found$upper[1]), unname(quantile(rate("north") - rate("south"), c(0.05, 0.95), type = 6)))
})

test_that("measures, references and choices are those that were asked for", {
  odds <- function(p) p / (1 - p)
  found <- contrast(fit, measure = "odds_ratio", reference = "north")
  expect_identical(as.data.frame(found)$contrast, c("south / north", "far west / north"))
  expect_equal(as.data.frame(found)$estimate[2], median(odds(rate("far west")) / odds(rate("north"))))
  ratio <- contrast(fit, "prob[yes]", "ratio", among = c("far west", "south"))
  expect_equal(c(posterior::extract_variable(posterior::as_draws(ratio), "far west / south")), rate("far west") / rate("south"))
  expect_equal(as.data.frame(ratio)$p_above, mean(rate("far west") > rate("south")))
  # a quotient of positive numbers that is written out, too, but no other expression
  quotient <- contrast(fit, "(prob[yes,far west] / prob[yes,south])")
  expect_equal(as.data.frame(quotient)$p_above, as.data.frame(ratio)$p_above)
  expect_match(capture.output(print(quotient)), "P(> 1)", fixed = TRUE, all = FALSE)
  expect_equal(as.data.frame(contrast(fit, "log(prob[yes,far west] / prob[yes,south])"))$p_above, as.data.frame(ratio)$p_above)
  expect_identical(as.data.frame(contrast(fit, c("prob[yes,south] / prob[yes,north]", "prob[yes,south] - 2")))$p_above,
                   c(mean(rate("south") > rate("north")), 0))
  expect_match(capture.output(print(ratio))[1], "ratios of prob[yes], posterior medians with 95% intervals", fixed = TRUE)
  expect_match(capture.output(print(ratio)), "P(> 1)", fixed = TRUE, all = FALSE)
  expect_identical(plot(ratio)$data, as.data.frame(ratio))
  expect_identical(plot(found)$labels$x, "odds ratio of prob[yes] (log scale)")
})

# narrow intervals about 0, a third of what the first breaks would reach
contrast_of_levels <- function(levels) {
  pairs <- c("ward=x - ward=y", "ward=x - ward=z")
  table <- data.frame(of = rep(paste0("smoke=", levels$smoke), each = 2), contrast = pairs, estimate = 0, sd = 0.1, lower = -0.4, upper = 0.45, p_above = 0.5)
  structure(list(table = table, measure = "difference", level = 0.95), class = "noiseaware_contrast")
}

test_that("cells of a table are compared given others, or with each other", {
  cells <- as_release(c(20, 30, 12, 10, 25, 31), stat_counts(~ smoke:ward, list(smoke = c("no", "yes"), ward = c("x", "y", "z"))), mech_laplace(scale = 3), n = 130)
  table <- suppressMessages(sample_posterior(cells, model_table(), chains = 2, iter = 400, seed = 1))
  odds <- contrast(table, ~ smoke | ward, "odds_ratio", reference = "ward=x", all_levels = TRUE)
  own <- posterior::as_draws_matrix(table_measures(table, ~ smoke:ward, "odds_ratio"))
  ours <- posterior::as_draws_matrix(posterior::as_draws(odds))
  expect_equal(as.vector(ours[, "ward=y / ward=x|smoke=yes"]), as.vector(own[, 1]))
  expect_equal(as.vector(ours[, "ward=z / ward=x|smoke=no"]), 1 / as.vector(own[, 2]))
  p <- posterior::as_draws_matrix(table$draws)
  between <- as.data.frame(contrast(table, ~ smoke:ward, among = c("smoke=no:ward=x", "smoke=yes:ward=z")))
  expect_equal(between$estimate, median(p[, 1] - p[, 6]))
  # panels in the order of the levels, with ticks enough; one comparison alone has rows
  panels <- plot(contrast(table, ~ ward | smoke, all_levels = TRUE, among = c("yes", "no")))
  expect_identical(levels(panels$layers[[2]]$data$row), c("ward=z", "ward=y", "ward=x"))
  expect_identical(panels$labels$x, "smoke=yes - smoke=no")
  levels <- list(smoke = c("never", "daily", "a bit"), ward = c("x", "y", "z"))
  drawn <- ggplot2::ggplot_build(plot(contrast_of_levels(levels)))
  expect_identical(as.character(drawn$layout$layout[[4]]), paste0("smoke=", levels$smoke))
  for (panel in drawn$layout$panel_params) expect_gte(sum(!is.na(panel$x$breaks)), 3)
  expect_identical(drawn$plot$labels$x, "difference")
  # levels without their variable
  expect_identical(contrast(table, ~ smoke | ward, among = c("z", "ward=x"), reference = "x"), contrast(table, ~ smoke | ward, among = c("ward=z", "ward=x"), reference = "ward=x"))
  expect_identical(contrast(table, ~ ward, reference = "y"), contrast(table, ~ ward, reference = "ward=y"))
  expect_error(contrast(table, ~ smoke | ward, among = c("z", "no")), class = "noiseaware_error_argument")
  # of two levels the second is shown, of more all
  second <- as.data.frame(contrast(table, ~ smoke | ward, "odds_ratio", reference = "ward=x"))
  expect_identical(second, `rownames<-`(subset(as.data.frame(odds), of == "smoke=yes"), NULL))
  expect_identical(nrow(as.data.frame(contrast(table, ~ ward | smoke))), 3L)
  expect_error(contrast(table, ~ smoke | ward, all_levels = 2), class = "noiseaware_error_argument")
  expect_error(contrast(table, ~ smoke | town), class = "noiseaware_error_variables")
  expect_error(contrast(table), "~ smoke | ward", fixed = TRUE, class = "noiseaware_error_argument")
  expect_error(contrast(table, "prob[a]"), "prob\\[a\\]", class = "noiseaware_error_argument")
})

test_that("of sites with two levels the second is compared, and of a table each site apart", {
  two <- sample_posterior(sites, model_categorical(), pool = "none", chains = 1, iter = 400, seed = 1)
  expect_identical(as.data.frame(contrast(two)), as.data.frame(contrast(two, "prob[yes]")))
  table <- sample_posterior(sites, model_table(), pool = "none", chains = 1, iter = 400, seed = 1)
  expect_identical(unique(as.data.frame(contrast(table))$of), "prob[smoke=yes]")
  expect_error(contrast(table, ~ smoke), class = "noiseaware_error_pool")
  expect_error(table_measures(table), class = "noiseaware_error_pool")
})

test_that("expressions take names as they are printed", {
  texts <- c("prob[yes,north] - prob[yes,far west]", "log(prob[yes,south]) > -1", "(prob[yes,north] + prob[yes,south]) / 2 < 0.5", "prob[yes,north] = prob[yes,south]")
  found <- as.data.frame(contrast(fit, texts))
  # what the number is, for comparisons
  expect_identical(found$contrast, c(texts[1], "log(prob[yes,south]) - -1", "0.5 - (prob[yes,north] + prob[yes,south])/2", "prob[yes,north] - prob[yes,south]"))
  expect_identical(as.data.frame(contrast(fit, c("prob[yes,north] > 0", "prob[yes,north] < 0")))[2:3],
                   data.frame(contrast = c("prob[yes,north]", "0 - prob[yes,north]"), estimate = c(1, -1) * median(rate("north"))))
  expect_equal(found$estimate, c(median(rate("north") - rate("far west")), median(log(rate("south"))) + 1, 0.5 - median((rate("north") + rate("south")) / 2),
                                 median(rate("north") - rate("south"))))
  # a quotient that is compared with 0 is none that is compared with 1, and what is known for certain has no error
  expect_identical(as.data.frame(contrast(fit, "prob[yes,south] / prob[yes,north] > 0"))$p_above, 1)
  expect_identical(as.data.frame(contrast(fit, "prob[yes,south] * 0 + 1"))$p_mcse, 0)
  # a name within a name
  draws <- fit
  posterior::variables(draws$draws) <- c("age", "mean[age]", "age:lwt")
  draws <- structure(draws, class = "noiseaware_fit")
  found <- as.data.frame(contrast(draws, c("age - mean[age]", "age:lwt * 2", "exp(age)")))
  expect_equal(found$estimate, c(median(rate("north") - rate("south")), 2 * median(rate("far west")), median(exp(rate("north")))))
})

test_that("what has no comparison is refused", {
  skip_on_cran()
  expect_error(contrast(1), class = "noiseaware_error_argument")
  expect_error(contrast(fit, measure = "risk"), class = "noiseaware_error_argument")
  expect_error(contrast(fit, "prob[yes"), "cannot be read", class = "noiseaware_error_argument")
  expect_error(contrast(fit, "beta + 1"), "beta", class = "noiseaware_error_argument")
  expect_error(contrast(fit, "TRUE"), "no number for each draw", class = "noiseaware_error_argument")
  expect_error(contrast(fit, "prob[yes,north]", "ratio"), class = "noiseaware_error_argument")
  expect_error(contrast(fit, among = "north"), class = "noiseaware_error_argument")
  expect_error(contrast(fit, among = c("north", "east")), class = "noiseaware_error_argument")
  expect_error(contrast(fit, reference = "east"), class = "noiseaware_error_argument")
  expect_error(contrast(fit, level = 1), class = "noiseaware_error_argument")
  expect_error(contrast(fit, sites = 1), class = "noiseaware_error_argument")
  expect_error(contrast(fit, ~ smoke), class = "noiseaware_error_argument")
  together <- sample_posterior(sites, model_bernoulli(), pool = "complete", chains = 1, iter = 100, seed = 1) |> suppressWarnings()
  expect_error(contrast(together), class = "noiseaware_error_pool")
  # what sites share is an expression like any other
  shared <- contrast(together, c("prob[yes]"))
  expect_equal(c(posterior::as_draws_matrix(shared$draws)), c(posterior::as_draws_matrix(together$draws)[, "prob[yes]"]), ignore_attr = TRUE)
  expect_identical(shared$measure, "expression")
  expect_error(internal("check_measured")(c(-1, 1), "ratio", NULL), class = "noiseaware_error_argument")
  expect_error(internal("check_measured")(c(0.5, 1), "odds_ratio", NULL), class = "noiseaware_error_argument")
})

test_that("probabilities have Monte Carlo errors, and tidy() has broom's columns", {
  found <- contrast(fit)
  table <- as.data.frame(found)
  draws <- posterior::extract_variable_matrix(posterior::as_draws(found), "north - south")
  expect_equal(table$p_mcse[1], as.double(posterior::mcse_mean(draws > 0 | FALSE)))
  expect_match(capture.output(print(found)), sprintf("Monte Carlo error of the probabilities: at most %.1g", max(table$p_mcse)), fixed = TRUE, all = FALSE)
  expect_equal(as.data.frame(contrast(fit, "prob[yes,south] + 2"))$p_mcse, 1 / as.double(posterior::ess_mean(posterior::extract_variable_matrix(fit$draws, "prob[yes,south]"))))
  skip_if_not_installed("generics")
  tidied <- generics::tidy(found)
  expect_named(tidied, c("term", "contrast", "estimate", "std.error", "conf.low", "conf.high"))
  expect_identical(unname(as.list(tidied)), unname(as.list(table[c("of", "contrast", "estimate", "sd", "lower", "upper")])))
})

test_that("emmeans's generic finds the same method", {
  skip_if_not_installed("emmeans")
  expect_identical(emmeans::contrast(fit), contrast(fit))
})

test_that("correlations of a covariance matrix, in either order of the names", {
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-4, 4)))
  rel <- as_release(c(3, 2, 20, 4, 30), st, mech_laplace(scale = 1), n = 50)
  fit <- suppressWarnings(sample_posterior(rel, model_mvnormal(), chains = 1, iter = 400, seed = 1))
  by_hand <- as.data.frame(contrast(fit, "cov[x,y] / sqrt(cov[x,x] * cov[y,y])"))
  for (text in c("cor[x,y]", "cor[y,x]")) expect_equal(as.data.frame(contrast(fit, text))[-2], by_hand[-2])
  expect_error(contrast(fit, "cor[x,z]"), class = "noiseaware_error_argument")
})

test_that("bayestestR's rope of a contrast is the share of its draws", {
  skip_if_not_installed("bayestestR")
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-4, 4)))
  fit <- suppressWarnings(sample_posterior(as_release(c(3, 2, 20, 4, 30), st, mech_laplace(scale = 1), n = 50), model_lm(), chains = 1, iter = 400, seed = 1))
  of <- contrast(fit, "2 * x")
  draws <- as.vector(posterior::as_draws(of))
  expect_equal(bayestestR::rope(of, range = c(-0.2, 0.2), ci = 1)$ROPE_Percentage, mean(abs(draws) <= 0.2))
  expect_error(bayestestR::rope(of), "range", class = "noiseaware_error_argument")
})

test_that("records = TRUE compares the records themselves: totals over sizes, in the units of the data", {
  quiet <- function(code) suppressWarnings(suppressMessages(code))
  asked <- stat_counts(~ smoke, list(smoke = c("no", "yes")))
  sites <- quiet(lapply(c(north = 73.2, south = 31.7), function(yes) as_release(c("smoke=yes" = yes), asked, mech_laplace(scale = 3), n = 189)))
  for (pool in c("partial", "none", "complete")) {
    fit <- quiet(sample_posterior(sites, model_bernoulli(), pool = pool, chains = 2, iter = 400, seed = 1))
    held <- internal("plain_matrix")(denoise(fit))
    found <- quiet(contrast(fit, records = TRUE))
    expect_equal(as.vector(posterior::as_draws_matrix(found)), unname(held[, 1] - held[, 2]) / 189, tolerance = 1e-12)
    expect_output(print(found), "smoke=yes among the records")
  }
  expect_error(contrast(fit, "age", records = TRUE), "smoke=yes", class = "noiseaware_error_argument")
  expect_error(contrast(quiet(sample_posterior(sites[[1]], model_bernoulli(), seed = 1)), records = TRUE), class = "noiseaware_error_argument")
  # hardly any noise: what the data say, though totals are rescaled and have bounds about 1
  set.seed(1)
  data <- data.frame(g = rep(c("a", "b"), c(40, 60)), x = runif(100, -1, 3))
  data$y <- 2 * data$x + rnorm(100, 3)
  levels <- list(g = c("a", "b"))
  asked <- list(size = stat_counts(~ g, levels), total = stat_by(stat_crossprod(y ~ x, list(y = c(-10, 30), x = c(-4, 6))), levels))
  release <- simulate_release(data, asked, list(size = mech_exact(), total = mech_laplace(scale = 0.002)))
  groups <- quiet(sample_posterior(release, model_lm(y ~ x + (1 | g)), chains = 1, iter = 300, seed = 1))
  for (name in c("y", "x")) {
    found <- as.data.frame(quiet(contrast(groups, name, records = TRUE)))
    means <- tapply(data[[name]], data$g, mean)
    expect_equal(found$estimate, means[["a"]] - means[["b"]], tolerance = 0.01)
    ratio <- as.data.frame(quiet(contrast(groups, name, "ratio", records = TRUE)))
    expect_equal(ratio$estimate, means[["a"]] / means[["b"]], tolerance = 0.01)
  }
  expect_identical(quiet(contrast(groups, records = TRUE))$table$of, "y")
  # a table: shares of the counts given the level after the bar
  crossed <- stat_counts(~ smoke:g, list(smoke = c("no", "yes"), g = c("a", "b")))
  fit <- quiet(sample_posterior(as_release(c(30, 40, 20, 60), crossed, mech_laplace(epsilon = 1), n = 150), model_table(), chains = 2, iter = 400, seed = 1))
  counts <- internal("plain_matrix")(denoise(fit, ~ g:smoke))
  share <- counts[, c(2, 4)] / (counts[, c(1, 3)] + counts[, c(2, 4)])
  expect_equal(as.vector(posterior::as_draws_matrix(quiet(contrast(fit, ~ smoke | g, records = TRUE)))), unname(share[, 1] - share[, 2]), tolerance = 1e-12)
  found <- quiet(contrast(fit, ~ smoke:g, "ratio", reference = "smoke=no:g=a", records = TRUE))
  expect_equal(as.vector(posterior::as_draws_matrix(found)[, 3]), unname(counts[, 4] / counts[, 1]), tolerance = 1e-12)
})

test_that("exp() is compared with 1, and other expressions beside it with 0", {
  draws <- fit
  posterior::variables(draws$draws) <- c("age", "mean[age]", "age:lwt")
  draws <- structure(draws, class = "noiseaware_fit")
  above <- mean(rate("north") > 0.6)
  expect_true(above > 0 && above < 1)
  hazard <- contrast(draws, "exp(age - 0.6)")
  expect_identical(hazard$table$p_above, above)
  expect_match(capture.output(print(hazard)), "P(> 1)", fixed = TRUE, all = FALSE)
  both <- contrast(draws, c("(exp(age - 0.6))", "age - 0.6", "exp(age - 0.6) > 1", "2 * exp(age - 0.6) - 2"))
  expect_equal(both$table$p_above, rep(above, 4L))
  expect_match(capture.output(print(both)), "P\\(> null\\) +null", all = FALSE)
  expect_identical(unique(ggplot2::layer_data(plot(both), 1)$xintercept), c(1, 0))
})

test_that("naive Bayes: a feature given the class, and the class given features, by Bayes's rule", {
  levels <- list(low = c("0", "1"), smoke = c("no", "yes"), race = c("w", "b", "o"))
  st <- stat_counts(~ low:smoke + low:race, levels)
  rel <- as_release(stats::setNames(c(40, 60, 30, 15, 50, 20, 30, 15, 20, 10), st$components), st, mech_laplace(epsilon = 2), n = 145)
  for (prior in list(prior_dirichlet(1), fixed(c(0.7, 0.3)))) {
    fit <- suppressWarnings(sample_posterior(rel, model_naive_bayes("low", prior = prior), chains = 2, iter = 100, seed = 1))
    p <- posterior::as_draws_matrix(fit$draws)
    low <- if (inherits(prior, "fixed")) matrix(c(0.7, 0.3), nrow(p), 2, byrow = TRUE) else p[, c("prob[low=0]", "prob[low=1]")]
    of <- function(x) unname(c(posterior::as_draws_matrix(x$draws)))
    expect_equal(of(contrast(fit, ~ smoke | low)), unname(c(p[, "prob[smoke=yes|low=0]"] - p[, "prob[smoke=yes|low=1]"])))
    given <- function(smoke, race) {
      joint <- vapply(1:2, function(k) c(low[, k] * p[, sprintf("prob[smoke=%s|low=%d]", smoke, k - 1L)] * p[, sprintf("prob[race=%s|low=%d]", race, k - 1L)]), numeric(nrow(p)))
      joint[, 2] / rowSums(joint)
    }
    odds <- p[, "prob[smoke=yes|low=1]"] * p[, "prob[smoke=no|low=0]"] / p[, "prob[smoke=no|low=1]"] / p[, "prob[smoke=yes|low=0]"]
    expect_equal(c(posterior::as_draws_matrix(table_measures(fit, ~ low:smoke, "odds_ratio"))), unname(c(odds)))
    found <- contrast(fit, ~ low | smoke:race, among = c("smoke=no:race=b", "smoke=yes:race=o"))
    expect_equal(of(found), given("no", "b") - given("yes", "o"))
  }
  expect_error(contrast(fit), "must be a formula such as ~ low | smoke", fixed = TRUE, class = "noiseaware_error_argument")
})
