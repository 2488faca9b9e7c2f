# Replicates of the releases of several sites and groups: their moments, and what is refused.

asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))

# mean and sd of n p (1 - p) and of the noise, over draws of p
moments <- function(p, n, noise) c(mean(n * p), sqrt(mean(n * p * (1 - p)) + var(n * p) + noise^2))

expect_moments <- function(check, p, n, noise, draws) {
  exact <- moments(p, n, noise)
  expect_lt(abs(check$mean - exact[1]), 5 * exact[2] / sqrt(draws))
  expect_lt(abs(check$sd / exact[2] - 1), 5 / sqrt(draws))
}

test_that("each site is checked by records from its own parameters", {
  skip_on_cran()
  sites <- list(north = as_release(c("smoke=yes" = 7), asked, mech_laplace(scale = 2), n = 30), south = as_release(c("smoke=yes" = 31), asked, mech_gaussian(sd = 3), n = 60))
  for (pool in c("partial", "complete", "none")) {
    fit <- suppressWarnings(sample_posterior(sites, model_bernoulli(), pool = pool, chains = 2, iter = 600, seed = 1))
    check <- check_of(fit, draws = 300, seed = 2)
    expect_identical(check$site, c("north", "south"))
    expect_identical(check$value, c(7, 31))
    for (site in 1:2) {
      p <- posterior::extract_variable(site_draws(fit, names(sites)[site]), "prob[yes]")
      expect_moments(check[site, ], p, c(30, 60)[site], c(2 * sqrt(2), 3)[site], 300)
    }
    expect_identical(check_of(fit, draws = 300, seed = 2), check)
  }
  plot <- bayesplot::pp_check(fit, draws = 20, seed = 1)
  expect_identical(levels(plot$layers[[2]]$data$component), c("south: smoke=yes", "north: smoke=yes"))
})

test_that("sites and groups of unknown size are checked with the sizes of the draws", {
  skip_on_cran()
  noise <- mech_laplace(scale = 3)
  sites <- list(a = as_release(c("smoke=no" = 20, "smoke=yes" = 10), asked, noise, n = NULL), b = as_release(c("smoke=no" = 40, "smoke=yes" = 31), asked, noise, n = NULL))
  fit <- suppressMessages(suppressWarnings(sample_posterior(sites, model_bernoulli(), pool = "complete", chains = 2, iter = 1000, seed = 1)))
  check <- check_of(fit, draws = 300, seed = 1)
  draws <- posterior::as_draws_df(fit)
  yes <- check[check$site == "b" & check$component == "smoke=yes", ]
  expect_moments(yes, draws$`prob[yes]`, draws$`n[b]`, 3 * sqrt(2), 300)
  by <- list(smoke = c("no", "yes"), ward = c("x", "y"))
  cells <- as_release(c(20, 30, 10, 25), stat_counts(~ smoke:ward, by), noise, n = 85)
  groups <- suppressWarnings(sample_posterior(cells, model_bernoulli(smoke ~ ward), chains = 2, iter = 1000, seed = 1))
  check <- check_of(groups, draws = 300, seed = 1)
  expect_identical(check$component, c("smoke=no:ward=x", "smoke=yes:ward=x", "smoke=no:ward=y", "smoke=yes:ward=y"))
  totals <- posterior::as_draws_df(denoise(groups))
  n <- totals$`smoke=no:ward=x` + totals$`smoke=yes:ward=x`
  expect_moments(check[2, ], posterior::as_draws_df(groups)$`prob[yes,x]`, n, 3 * sqrt(2), 300)
})

test_that("groups are checked with the noise of the release", {
  arms <- list(arm = c("a", "b"))
  total <- stat_by(stat_sums(~ y + I(y^2), bounds = list(y = c(0, 10))), arms)
  value <- list(size = c(43.1, 48.2), total = c(-3, 9, 12, 20))
  noise <- list(size = mech_laplace(epsilon = 0.1), total = mech_laplace(epsilon = 0.05))
  rel <- as_release(value, list(size = stat_counts(~ arm, arms), total = total), noise, n = 100)
  fit <- suppressMessages(suppressWarnings(sample_posterior(rel, model_normal(~ arm), chains = 1, iter = 200, seed = 1)))
  check <- check_of(fit, draws = 400, seed = 1)
  # noise far above what the records add: a record replaced moves two counts by 1, and the scaled sums of two groups
  expect_equal(sqrt(2) * c(2 / 0.1, sensitivity(total, "L1") / 0.05), c(mean(check$sd[c(1, 4)]), mean(check$sd[-c(1, 4)])), tolerance = 0.15)
})

test_that("a site whose parameters are not all reported is refused, and its prior is checked all the same", {
  skip_on_cran()
  set.seed(1)
  st <- stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-4, 4)))
  x <- rnorm(60)
  sites <- lapply(c(a = 1, b = 2), function(k) simulate_release(data.frame(y = x + rnorm(60), x), st, mech_laplace(epsilon = 20)))
  fit <- sample_posterior(sites, model_lm(), pool = "partial", method = "augment", chains = 2, iter = 200, seed = 1) |>
    suppressWarnings() |> suppressMessages()
  expect_error(check_of(fit), "mean\\[x\\]", class = "noiseaware_error_pool")
  expect_false("diagnostic" %in% vapply(fit$troubles, `[[`, "", "kind"))
  scores <- internal("fit_scores")(fit)
  expect_true(all(is.finite(scores$log_prior)))
  expect_gt(sd(scores$log_prior), 0)
  skip_if_not_installed("insight")
  expect_identical(insight::find_parameters(fit)$conditional, c("(Intercept)", "x"))
  skip_if_not_installed("bayestestR")
  expect_identical(bayestestR::describe_posterior(fit)$Parameter, names(insight::get_parameters(fit)))
})

test_that("histograms of replicates have panels for what is shown alone", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ a:b, list(a = letters[1:4], b = LETTERS[1:4]))
  fit <- suppressWarnings(sample_posterior(as_release(rep(10, 16), st, mech_laplace(scale = 2), n = 160), model_table(), chains = 1, iter = 50, seed = 1))
  plot <- bayesplot::pp_check(fit, type = "hist", draws = 20, seed = 1)
  expect_identical(as.character(ggplot2::ggplot_build(plot)$layout$layout$panel), plot$data$component[1:12])
  expect_identical(nrow(plot$data), 16L)
  # of many panels a column is wide enough for names
  expect_identical(max(ggplot2::ggplot_build(plot(fit, "trace"))$layout$layout$COL), 4L)
  expect_identical(max(ggplot2::ggplot_build(plot(fit, "prior"))$layout$layout$COL), 4L)
})

test_that("data sets that are drawn and added up in pieces are those of one at a time", {
  st <- stat_crossprod(log(y) ~ x + g, list(y = c(1, 50), x = c(0, 10), g = c("a", "b", "c")))
  set.seed(1)
  x <- runif(40, 0, 10)
  data <- data.frame(y = exp(0.2 * x + rnorm(40, 1, 0.3)), x = x, g = factor(rep_len(c("a", "b", "c", "c"), 40), c("a", "b", "c")))
  release <- simulate_release(data, st, mech_laplace(epsilon = 4), neighbours = "add_remove")
  fit <- suppressWarnings(sample_posterior(release, model_lm(), prior_n = prior_n("uniform", lower = 5, upper = 80), chains = 2, iter = 200, seed = 1))
  draws <- noiseaware:::all_parameters(fit)[1:9, ]
  expect_gt(length(unique(draws[, "n"])), 2L)
  theta <- noiseaware:::draws_theta(fit$bound, draws[, fit$bound$parameters])
  expect_identical(theta[, 4], noiseaware:::bound_theta(fit$bound, draws[4, fit$bound$parameters]))
  for (bad in list(c(x = NA), c(x = Inf), c(sigma = -1))) {
    spoilt <- draws[, fit$bound$parameters]
    spoilt[7, names(bad)] <- bad
    expect_error(noiseaware:::draws_theta(fit$bound, spoilt), class = "noiseaware_error_argument")
  }
  alone <- noiseaware:::with_seed(3, lapply(1:9, function(i) noiseaware:::simulated_records(fit, draws[i, ])))
  for (most in c(10, 100, 1e6)) {
    drawn <- function(of) noiseaware:::with_seed(3, noiseaware:::of_drawn(fit, draws, of, most))
    expect_identical(unname(unlist(drawn(noiseaware:::split_sets), recursive = FALSE)), alone)
    totals <- drawn(function(data, sizes) noiseaware:::set_totals(st, data, sizes, NULL))
    expect_identical(do.call(rbind, totals), t(vapply(alone, noiseaware:::statistic_total, numeric(length(st$components)), statistic = st)))
  }
})

test_that("replicates of several parts have the noise of their own components, in the parts' order", {
  st <- list(size = stat_counts(~ g, list(g = c("a", "b"))), y = stat_sums(~ y + I(y^2), list(y = c(0, 10))))
  value <- list(size = c(8, 12), y = c(90, 450))
  noise <- list(size = mech_custom(log_density = function(noise) -abs(noise), r = function(total) total + 1e6 * seq_along(total), sd = 3), y = mech_gaussian(sd = 1e-6))
  release <- as_release(value, st, noise, n = 20)
  data <- data.frame(g = factor(rep(c("a", "b"), c(3, 2))), y = c(1, 2, 3, 10, 0))
  parts <- noiseaware:::release_parts(release)
  again <- do.call(rbind, lapply(parts, noiseaware:::replicates_of, data, c(3L, 2L), NULL))
  expect_equal(again, cbind(c(3 + 1e6, 2e6, -1.8, 1.16), c(1e6, 2 + 2e6, 0, 2)), tolerance = 1e-5) # sums of (y - 5) / 5
})

test_that("a hidden number's replicates stand at the threshold, never below", {
  st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
  part <- noiseaware:::release_parts(as_release(c(60, NA), st, published(mech_discrete_laplace(scale = 2), threshold = 10), n = 70))[[1]]
  data <- data.frame(smoke = factor(rep(c("no", "yes"), c(60, 10)), c("no", "yes")))[rep(1:70, 200), , drop = FALSE]
  set.seed(1)
  again <- noiseaware:::replicates_of(part, data, rep(70L, 200), NULL)
  expect_identical(min(again[2, ]), 10)
  expect_gt(mean(again[2, ] == 10), 0.4)
})
