# Widths that records would give, against the widths of the exact posteriors of the same simulated databases.

counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
fit <- sample_posterior(as_release(c(31, 18), counts, mech_laplace(epsilon = 0.5), 50), model_bernoulli(prior = prior_beta(2, 3)), chains = 2, iter = 2000, seed = 1)

test_that("the width without noise is that of the beta distributions of simulated counts", {
  skip_on_cran() # takes long; `make test` runs it
  cost <- noise_cost(fit, databases = 30, level = 0.8, seed = 4)
  seeds <- internal("replicate_seeds")(4, 30)
  widths <- vapply(seeds, function(seed) {
    successes <- sum(simulate(fit, 1, seed)[[1]]$g == "b")
    diff(qbeta(c(0.1, 0.9), 2 + successes, 53 - successes))
  }, 0)
  # an end of an interval from 2,000 draws is known up to 4 per cent of its width
  expect_equal(cost$without, exp(mean(log(widths))), tolerance = 0.03)
  expect_equal(cost$without_mcse, cost$without * sd(log(widths)) / sqrt(30), tolerance = 0.6)
  expect_equal(cost$width, unname(diff(confint(fit, level = 0.8)[1, ])))
  expect_equal(cost$ratio, cost$width / cost$without)
  # two ends of an interval, each with the error of a quantile
  draws <- posterior::extract_variable_matrix(fit$draws, "prob[b]")
  ends <- sqrt(posterior::mcse_quantile(draws, 0.1)^2 + posterior::mcse_quantile(draws, 0.9)^2)[[1]]
  expect_equal(cost$ratio_mcse, cost$ratio * sqrt((ends / cost$width)^2 + (cost$without_mcse / cost$without)^2))
  shown <- cost
  shown[c("width", "ratio")] <- c(1115.005, 12.3456)
  text <- capture.output(print(shown))
  expect_match(text, "widths of 80% intervals", fixed = TRUE, all = FALSE)
  expect_match(text, "1,115.* 12[.]35", all = FALSE)
  expect_no_match(text, "e+", fixed = TRUE)
  expect_gt(cost$ratio, 1.2)
  expect_identical(noise_cost(fit, 30, 0.8, 4), cost)
})

test_that("hardly any noise costs hardly anything, and an unknown number of records has no row", {
  exact <- sample_posterior(as_release(c(300, 200), counts, mech_laplace(epsilon = 1e6), 500), model_bernoulli(), chains = 2, iter = 2000, seed = 1)
  expect_equal(noise_cost(exact, seed = 1)$ratio, 1, tolerance = 0.05)
  unknown <- sample_posterior(as_release(c(31, 18), counts, mech_laplace(epsilon = 1), NULL, "add_remove"), model_categorical(), chains = 2, iter = 400, seed = 1)
  expect_identical(noise_cost(unknown, 3, seed = 1)$variable, c("prob[a]", "prob[b]"))
})

test_that("databases of a hardly known sd decide nothing by themselves", {
  skip_on_cran()
  means <- stat_means(stat_sums(~ x, list(x = c(0, 10))), 50)
  vague <- suppressMessages(sample_posterior(as_release(c("mean(x)" = 3.2), means, mech_laplace(scale = 0.1), 50), model_normal(), chains = 2, iter = 1000, seed = 1))
  expect_match(paste(capture.output(print(vague)), collapse = " "), "only means or sums were released")
  ratios <- vapply(1:5, function(seed) noise_cost(vague, seed = seed)$ratio, numeric(2))
  expect_lt(max(apply(ratios, 1, max) / apply(ratios, 1, min)), 1.5)
})

test_that("widths from many records are scaled, unless those of a quarter of a database contradict", {
  skip_on_cran() # takes long; `make test` runs it
  many <- sample_posterior(as_release(c(3e7, 7e7), counts, mech_laplace(epsilon = 1), 1e8), model_bernoulli(), chains = 2, iter = 2000, seed = 1)
  exact <- diff(qbeta(c(0.025, 0.975), 7e7, 3e7))
  cost <- noise_cost(many, databases = 10, seed = 1)
  expect_equal(cost$without, exact, tolerance = 0.03)
  # as many as there are: the same to the last digit
  expect_identical(noise_cost(fit, 3, seed = 1, records = 1000), noise_cost(fit, 3, seed = 1))
  three <- stat_counts(~ g, levels = list(g = c("a", "b", "rare")))
  rare <- sample_posterior(as_release(c(299980, 7e5, 20), three, mech_laplace(scale = 1), 1e6), model_categorical(), chains = 2, iter = 400, seed = 1)
  expect_message(cost <- noise_cost(rare, 5, seed = 1, records = 2000), "rare", class = "noiseaware_message_scaled")
  expect_identical(is.na(cost$without), c(FALSE, FALSE, TRUE))
  expect_identical(is.na(cost$ratio), is.na(cost$without))
  expect_equal(cost$without[1], diff(qbeta(c(0.025, 0.975), 3e5, 7e5)), tolerance = 0.05)
  expect_match(internal("cost_words")(cost), "as wide as from the records")
  expect_match(internal("cost_words")(cost[3, ]), "not known")
  expect_error(noise_cost(fit, records = 10), class = "noiseaware_error_argument")
})

test_that("bad arguments are refused", {
  expect_error(noise_cost(1), class = "noiseaware_error_argument")
  expect_error(noise_cost(fit, 1), class = "noiseaware_error_argument")
  expect_error(noise_cost(fit, 3e6), "at most 10\\^8", class = "noiseaware_error_argument")
  expect_error(noise_cost(fit, level = 2), class = "noiseaware_error_argument")
  alone <- nonprivate_posterior(data.frame(g = c("a", "b")), model_bernoulli(), counts, iter = 20)
  expect_error(noise_cost(alone), "fit to a release", class = "noiseaware_error_argument")
})

test_that("denoised numbers are those of denoise(), beside what was published", {
  data <- plot(fit, "denoised", level = 0.8)$data
  draws <- posterior::as_draws_matrix(denoise(fit))
  expect_identical(data$component, c("g=a", "g=b"))
  expect_identical(data$published, c(31, 18))
  expect_equal(data$noise_sd, unname(noise_sd(fit$release)))
  expect_equal(data$mean, unname(colMeans(draws)))
  expect_equal(data$lower, unname(apply(draws, 2, quantile, 0.1, type = 6)))
  plot <- plot(fit, "denoised", level = 0.8)
  drawn <- plot$layers[[1]]$data
  expect_equal(drawn$at, (data$mean - data$published) / data$noise_sd)
  expect_equal(drawn$upper, (data$upper - data$published) / data$noise_sd)
  expect_identical(drawn$from, c(-2, -2))
  # a hidden number has nothing to be measured from, an exact one no noise
  cells <- stat_counts(~ g, levels = list(g = c("a", "b", "c")))
  hidden <- sample_posterior(as_release(c(31, 18, NA), cells, published(mech_laplace(epsilon = 1), threshold = 4), 50), model_categorical(), chains = 2, iter = 400, seed = 1)
  shown <- plot(hidden, "denoised")$layers[[1]]$data
  expect_identical(shown$from, c(-2, -2, 0))
  expect_identical(shown$at[3], 0)
  expect_error(plot(fit, "denoised", level = 1), class = "noiseaware_error_argument")
  expect_error(plot(sample_posterior(fit$release, model_bernoulli(), method = "naive", chains = 1, iter = 20), "denoised"), class = "noiseaware_error_argument")
})

test_that("a database without records has the prior's intervals", {
  size <- as_release(list(size = c(n = 1), x = c(x = 0.2)), list(size = stat_size(), x = stat_sums(~ x, bounds = list(x = c(0, 30)))),
                     list(size = mech_discrete_laplace(epsilon = 1), x = mech_gaussian(sd = 30)), n = NULL, neighbours = "add_remove")
  few <- sample_posterior(size, model_poisson(prior = prior_gamma(3, 2)), prior_n = prior_n("uniform", lower = 0, upper = 3), chains = 2, iter = 600, seed = 1)
  expect_gt(mean(as.matrix(few)[, "n"] == 0), 0.1)
  expect_true(is.finite(noise_cost(few, databases = 12, seed = 1)$without))
  prior <- internal("widths_of_prior")
  expect_equal(mean(replicate(20, prior(few$bound, 0.9, "rate"))), diff(qgamma(c(0.05, 0.95), 3, 2)), tolerance = 0.03)
})

test_that("sites without pooling cost what each costs alone, those with the same parameters what all cost together", {
  skip_on_cran()
  sums <- stat_sums(~ x, list(x = c(0, 30)))
  noise <- mech_gaussian(sd = 30)
  releases <- list(a = as_release(90, sums, noise, 40), b = as_release(81, sums, noise, 20))
  pool <- function(how) sample_posterior(releases, model_poisson(), pool = how, chains = 2, iter = 2000, seed = 1)
  none_of <- function(count) structure(list(pool = "none", release = rep(releases[1], count)), class = c("noiseaware_pool", "noiseaware_fit"))
  none <- noise_cost(pool("none"), 40, seed = 1)
  expect_identical(none$variable, c("rate[a]", "rate[b]"))
  # without noise a rate has a gamma posterior: its width is about 3.92 sqrt(rate / n), for rates that the fit holds plausible
  rate <- c(90 / 40, 81 / 20)
  expect_lt(max(abs(none$without / (3.92 * sqrt(rate / c(40, 20))) - 1)), 0.1)
  together <- noise_cost(pool("complete"), 40, seed = 1)
  large <- list(a = as_release(9e5, sums, noise, 4e5), b = as_release(8.1e5, sums, noise, 2e5))
  scaled <- noise_cost(sample_posterior(large, model_poisson(), pool = "complete", chains = 2, iter = 2000, seed = 1), 20, seed = 1)
  expect_lt(abs(scaled$without / (3.92 * sqrt(1.71 / 0.6 / 6e5)) - 1), 0.05)
  expect_error(internal("cost_page")(none_of(7), 2, 1), "7 sites", class = "noiseaware_error_size")
  expect_identical(together$variable, "rate")
  expect_lt(abs(together$without / (3.92 * sqrt(171 / 60 / 60)) - 1), 0.1)
  expect_error(noise_cost(pool("partial")), "share all parameters or none", class = "noiseaware_error_pool")
  none <- pool("none")
  data <- plot(none, "denoised")$data
  expect_identical(data$component, c("x[a]", "x[b]"))
  expect_identical(data$published, c(90, 81))
  expect_equal(data$noise_sd, c(30, 30))
  expect_error(plot(none, "prior"), "fit\\$fits", class = "noiseaware_error_pool")
})
