# Sites next to each other: shrinkage against quadrature, ranks against draws whose order is known, looks, errors.

asked_of <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
four_sites <- function() {
  list(north = as_release(c("smoke=yes" = 7.3, "smoke=no" = 21.2), asked_of, mech_laplace(scale = 2), n = 30),
       south = as_release(c("smoke=yes" = 11), asked_of, mech_discrete_gaussian(sd = 3), n = 20),
       west = as_release(c("smoke=yes" = -1.4), asked_of, mech_laplace(scale = 1), n = 25),
       east = as_release(c("smoke=yes" = 30), asked_of, mech_exact(), n = 60))
}
four <- sample_posterior(four_sites(), model_bernoulli(prior = prior_beta(2, 3)), pool = "partial", chains = 2, iter = 600, seed = 1)

# draws x sites of `prob[yes]`, put into a fit with separate or pooled sites
with_rates <- function(values) {
  names <- paste0("prob[yes,", colnames(values), "]")
  chains <- array(values, c(nrow(values) / 2, 2, ncol(values)), list(NULL, NULL, names))
  for (k in seq_along(names)) four$draws[, , names[k]] <<- chains[, , k]
  four
}

test_that("what a site tells alone is its own posterior: sums over all totals", {
  p <- seq(0.0005, 0.9995, by = 0.0005)
  total <- function(n, log_noise) vapply(p, function(p) sum(dbinom(0:n, n, p) * exp(log_noise(0:n))), 0)
  likelihood <- list(total(30, function(s) -abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2), total(20, function(s) -(11 - s)^2 / 18),
                     total(25, function(s) -abs(-1.4 - s)), dbinom(30, 60, p))
  exact <- t(vapply(likelihood, function(l) {
    weight <- l * dbeta(p, 2, 3)
    c(sum(weight * p) / sum(weight), grid_quantile(p, weight)(c(0.1, 0.9)))
  }, numeric(3)))
  data <- shrinkage_data(four, level = 0.8)
  expect_identical(data$site, c("north", "south", "west", "east"))
  expect_identical(data$n, c(30, 20, 25, 60))
  expect_equal(unname(as.matrix(data[c("alone", "alone_lower", "alone_upper")])), exact, tolerance = 2e-3)
  expect_equal(data$pooled, unname(coef(four)[, 1]))
  rates <- posterior::subset_draws(four$draws, variable = sprintf("prob[yes,%s]", data$site))
  expect_equal(data$pooled_lower, unname(apply(posterior::as_draws_matrix(rates), 2, quantile, 0.1, type = 6)))
  # an estimate from separate fits instead
  alone <- sample_posterior(four_sites(), model_bernoulli(prior = prior_beta(2, 3)), pool = "none", chains = 2, iter = 400, seed = 1)
  expect_equal(shrinkage_data(four, alone = alone)$alone, unname(coef(alone)[, 1]))
})

test_that("a Poisson rate, and a strong prior", {
  totals <- stat_sums(~ x, bounds = list(x = c(0, 20)))
  sites <- list(a = as_release(31.4, totals, mech_laplace(scale = 6), n = 8), b = as_release(77, totals, mech_gaussian(sd = 50), n = 15))
  fit <- sample_posterior(sites, model_poisson(prior = prior_gamma(4000, 1000)), pool = "complete", chains = 1, iter = 200, seed = 3)
  grid <- seq(3.5, 4.5, by = 0.001)
  weight <- dgamma(grid, 4000, 1000) * vapply(grid, function(rate) sum(dpois(0:200, 8 * rate) * exp(-abs(31.4 - 0:200) / 6)), 0)
  data <- shrinkage_data(fit)
  expect_equal(data$alone[1], sum(grid * weight) / sum(weight), tolerance = 1e-4)
  expect_equal(data$alone_upper[1], grid_quantile(grid, weight)(0.975), tolerance = 1e-3)
  expect_equal(data$pooled[1], data$pooled[2])
})

test_that("ranks of draws whose order is known", {
  n <- posterior::ndraws(four$draws)
  step <- seq_len(n)
  # north is above west in a quarter of the draws; south is always the largest
  fit <- with_rates(cbind(north = 0.2 + 0.2 * (step %% 4 == 0), south = 0.9, west = 0.3, east = 0.01))
  ranks <- site_ranks(fit, "prob[yes]")
  expect_identical(ranks$table$site, c("south", "west", "north", "east"))
  expect_equal(ranks$table$rank, c(1, 2.25, 2.75, 4))
  expect_equal(ranks$table$largest, c(1, 0, 0, 0))
  expect_equal(ranks$table$smallest, c(0, 0, 0, 1))
  expect_equal(ranks$table$lower, c(1, 2, 2, 4))
  expect_equal(ranks$table$upper, c(1, 3, 3, 4))
  expect_equal(unname(ranks$probability), rbind(c(1, 0, 0, 0), c(0, 0.75, 0.25, 0), c(0, 0.25, 0.75, 0), c(0, 0, 0, 1)))
  expect_equal(dimnames(ranks$probability), list(ranks$table$site, c("1", "2", "3", "4")))
  expect_identical(as.data.frame(ranks), ranks$table)
  expect_equal(site_ranks(fit, level = 0.4)$table$upper, c(1, 2, 3, 4))
  show(capture.output(print(ranks)))
})

test_that("ranks and shrinkage are drawn", {
  skip_on_cran()
  ranks <- site_ranks(four)
  expect_equal(nrow(ggplot2::layer_data(plot(ranks), 2)), 4)
  tiles <- ggplot2::layer_data(plot(ranks, "probabilities"))
  expect_equal(nrow(tiles), 16)
  data <- shrinkage_data(four)
  points <- ggplot2::layer_data(plot(four, "shrinkage"), 3)
  expect_setequal(round(points$x, 8), round(c(data$alone, data$pooled), 8))
  # the largest estimate at the top; of a walk its first site
  alone <- function(points) points$x[points$shape == 1][order(-points$y[points$shape == 1])]
  expect_equal(alone(points), data$alone[order(-data$pooled, -data$alone)])
  in_time <- replace(four, "pool", "walk")
  expect_equal(alone(ggplot2::layer_data(plot(in_time, "shrinkage"), 3)), data$alone)
  expect_equal(ggplot2::layer_data(plot(four, "shrinkage"), 1)$xintercept, mean(parameter_draws(four, "prob[yes]")))
  many <- data.frame(site = paste0("s", 1:70), n = 9, alone = 1:70, alone_lower = 0:69, alone_upper = 2:71, pooled = 1:70, pooled_lower = 0:69, pooled_upper = 2:71)
  expect_match(internal("draw_shrinkage")(many, "rate", 0.9)$labels$caption, "10 more sites")
})

test_that("the parameters of one site, and of a new one", {
  expect_equal(c(posterior::extract_variable_matrix(site_draws(four, "west"), "prob[yes]")), c(parameter_draws(four, "prob[yes,west]")))
  new <- site_draws(four, "new", seed = 4)
  expect_identical(new, site_draws(four, "new", seed = 4))
  expect_equal(dim(new), c(300, 2, 1))
  # normal about the mean by the standard deviation, on the logit
  away <- (qlogis(new) - qlogis(posterior::subset_draws(four$draws, variable = "prob[yes]"))) / posterior::subset_draws(four$draws, variable = "sd[logit(prob[yes])]")
  expect_gt(ks.test(c(away), pnorm)$p.value, 1e-6)
})

test_that("a pool of means says what the spread of records rests on, and marks heavy tails", {
  means <- stat_means(stat_sums(~ x, list(x = c(0, 10))), 50)
  one <- function(mean) as_release(c("mean(x)" = mean), means, mech_laplace(scale = 0.1), 50)
  sites <- list(a = one(3), b = one(4), c = one(5))
  for (pool in c("complete", "partial")) {
    fit <- suppressMessages(suppressWarnings(sample_posterior(sites, model_normal(), pool = pool, chains = 2, iter = 400, seed = 1)))
    expect_output(print(fit), "  spread     only means or sums were released", fixed = TRUE)
    fit$draws[, , "sd"] <- qcauchy(ppoints(length(fit$draws[, , "sd"])))
    expect_output(print(fit), " sd[*] .*means and standard deviations of .*sd.* are unreliable; [*] marks medians and mads instead")
  }
})

test_that("what sites cannot be asked is refused", {
  skip_on_cran()
  sites <- four_sites()[1:2]
  complete <- sample_posterior(sites, model_bernoulli(), pool = "complete", chains = 1, iter = 100, seed = 1)
  none <- sample_posterior(sites, model_bernoulli(), pool = "none", chains = 1, iter = 100, seed = 1)
  single <- none$fits$north
  show(c(
    refusals("pool", list(quote(site_ranks(single)), quote(site_ranks(complete)), quote(plot(none, "shrinkage")),
                          quote(plot(none, "predictive")),
                          quote(sample_posterior(list(new = sites$north, old = sites$south), model_bernoulli(), pool = "partial")))),
    refusals("argument", list(quote(site_ranks(four, "rate")), quote(site_ranks(four, level = 1)), quote(plot(four, "shrinkage", alone = complete)),
                              quote(site_draws(four, "up")), quote(site_draws(complete, "new")), quote(plot(four, "shrink")),
                              quote(plot(four, "shrinkage", colour = 2)), quote(plot(site_ranks(four), "rank")), quote(site_draws(four))))))
})

test_that("what separate fits warn of shows a short call, and is not said again by the shrinkage plot", {
  skip_on_cran()
  line <- stat_crossprod(y ~ x, list(y = c(-1, 1), x = c(-1, 1)))
  sites <- lapply(c(north = 1, south = 2), function(seed) as_release(c(y = 3, x = 1, "y^2" = 20, "y:x" = 4, "x^2" = 18) * seed, line, mech_laplace(epsilon = 5), 60))
  calls <- NULL
  withCallingHandlers(told(sample_posterior(sites, model_lm(), pool = "none", method = "collapse", chains = 2, iter = 2000, seed = 1)),
                      warning = function(w) {
                        calls <<- c(calls, list(conditionCall(w)))
                        invokeRestart("muffleWarning")
                      })
  expect_length(calls, 2L)
  expect_lt(max(nchar(vapply(calls, function(call) paste(deparse(call), collapse = ""), ""))), 400)
  pooled <- sample_posterior(sites, model_lm(), pool = "complete", chains = 1, iter = 400, seed = 1)
  expect_no_warning(told(shrinkage_data(pooled, "x")))
})

test_that("exact numbers beside a prior that is cut off: what is told serves", {
  skip_on_cran()
  asked <- list(law = stat_sums(~ x, list(x = c(-4, 4))), noisy = stat_sums(~ I(x^2), list(x = c(-4, 4))))
  sites <- lapply(c(a = 1, b = 2), function(k) {
    as_release(list(law = 3 + k, noisy = 30 + k), asked, list(law = mech_exact(), noisy = mech_laplace(scale = 3)), n = 20)
  })
  model <- model_normal(prior = prior_nig(0, 1, 3, 2, within = c(-1, 1)))
  fit <- function(...) suppressMessages(sample_posterior(sites, chains = 1, iter = 4, seed = 1, ...))
  for (pool in c("complete", "partial")) {
    error <- expect_error(fit(model, pool = pool), "exact numbers cannot be pooled under a truncated prior", class = "noiseaware_error_method")
    expect_no_match(conditionMessage(error), "augment")
  }
  expect_error(fit(model, pool = "partial", method = "clt"), "exact numbers cannot be pooled", class = "noiseaware_error_method")
  # as it says
  expect_identical(posterior::ndraws(fit(model, pool = "none")$draws), 2L)
  expect_identical(fit(model_normal(prior = prior_nig(0, 1, 3, 2)), pool = "partial")$problem$family, "totals")
})

test_that("parameters are shown as a formula has them", {
  expect_identical(unname(internal("as_typed")(c("(Intercept)", "prob[yes]", "x:z", "prob[in poverty]", "armdrug b"))),
                   c("(Intercept)", "prob[yes]", "x:z", "`prob[in poverty]`", "`armdrug b`"))
})

test_that("predictions of sites say what is doubtful once, from the call that was made", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x, bounds = list(y = c(0, 10), x = c(-2, 2)))
  set.seed(1)
  sites <- lapply(c(a = 1, b = 2), function(k) simulate_release(data.frame(y = runif(30, 0, 10), x = runif(30)), st, mech_laplace(epsilon = 5)))
  for (pool in c("partial", "none")) {
    calls <- texts <- list()
    listen <- function(code) told(withCallingHandlers(code, warning = function(w) {
      calls[[length(calls) + 1L]] <<- conditionCall(w)
      texts[[length(texts) + 1L]] <<- conditionMessage(w)
      invokeRestart("muffleWarning")
    }))
    fit <- listen(suppressMessages(sample_posterior(sites, model_lm(), pool = pool, chains = 1, iter = 40, seed = 1)))
    expect_identical(unique(calls), list(quote(sample_posterior(sites, model_lm(), pool = pool, chains = 1, iter = 40, seed = 1))))
    expect_identical(all(grepl("^[ab]: ", texts)), pool == "none")
    calls <- texts <- list()
    site <- if (pool == "partial") "new" else "a"
    asked <- list(quote(predict(fit, data.frame(x = 0), site = site)), if (pool == "partial") quote(predict(fit, data.frame(x = 0), re_formula = NA)))
    for (k in 1:2) for (call in asked) listen(eval(call))
    expect_identical(unique(calls), asked[1])
    expect_identical(anyDuplicated(texts), 0L) # each doubt once
  }
})

test_that("plots of pools have a panel for each parameter, and the prior of what sites share", {
  drawn <- plot(four)
  panels <- ggplot2::ggplot_build(drawn)$layout$layout
  expect_identical(nrow(panels), 2L)
  names <- as.character(drawn$data$parameter)
  expect_identical(names[1:5], c("prob[yes]", sprintf("prob[yes,%s]", names(four$release))))
  expect_match(names[6], "^sd\\[logit\\(prob")
  # what is not shared has no bar; the bar of the probability is the beta distribution's, cut off
  expect_identical(is.na(drawn$data$prior_lower), c(FALSE, rep(TRUE, 4), FALSE))
  expect_equal(drawn$data$prior_upper[6], qnorm(1 - 0.025 / 2), tolerance = 0.1) # half-normal
  heights <- ggplot2::ggplotGrob(drawn)
  rows <- sort(unique(heights$layout$t[startsWith(heights$layout$name, "panel")]))
  expect_identical(as.numeric(heights$heights[rows]), c(5, 1))
  densities <- plot(four, "prior")
  expect_identical(levels(densities$data$variable), c("prob[yes]", names[6]))
  alone <- plot(four, "prior", "prob[yes]")$data
  at <- alone[alone$distribution == "prior" & alone$at > 0.1 & alone$at < 0.9, ]
  expect_lt(max(abs(at$density - dbeta(at$at, 2, 3))), 0.2)
  expect_error(plot(four, "prior", "prob[yes,a]"), "They share", class = "noiseaware_error_pool")
  # a panel of one area names no other
  ends <- ggplot2::ggplot_build(plot(four, "areas"))$layout$panel_params[[2]]$y.range
  expect_true(ends[1] < 1 && ends[2] > 1 && ends[2] < 2)
})
