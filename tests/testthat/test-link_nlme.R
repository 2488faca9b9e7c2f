set.seed(1)
sites <- totals_sites(c(first = 40, second = 70, third = 50))
where <- data.frame(site = c("first", "second", "third"), rural = c(1, 0, 0))
fit <- sample_posterior(sites, model_lm(y ~ x), pool = partial_pooling(~ . | rural, sites = where, correlation = prior_lkj(2)), chains = 1, iter = 200, seed = 1)
draws <- as.matrix(fit)
fixef <- internal("fixef.noiseaware_fit")
ranef <- internal("ranef.noiseaware_fit")
VarCorr <- internal("VarCorr.noiseaware_fit")

test_that("a site is the common part, what its covariates add, and its deviation", {
  common <- fixef(fit)
  expect_equal(common[c("(Intercept)", "x")], colMeans(draws[, c("(Intercept)", "x")]))
  expect_equal(common[["log(sigma)"]], mean(log(draws[, "sigma"])))
  expect_equal(common[c("rural[(Intercept)]", "rural[x]")], colMeans(draws[, c("rural[(Intercept)]", "rural[x]")]))
  deviation <- ranef(fit)
  expect_identical(dimnames(deviation), list(names(sites), c("(Intercept)", "x", "log(sigma)")))
  # the intercept varies where x is at the middle of its bounds
  middle <- mean(sites[[1]]$statistic$columns$lower[2], sites[[1]]$statistic$columns$upper[2])
  centred <- fit$bound$design$centre[2]
  for (site in names(sites)) {
    x <- where$rural[where$site == site] - 1 / 3
    own <- draws[, sprintf("%s[%s]", c("(Intercept)", "x", "sigma"), site)]
    at_centre <- own[, 1] + centred * own[, 2] - draws[, "(Intercept)"] - centred * draws[, "x"] - x * draws[, "rural[(Intercept)]"]
    expect_equal(deviation[site, "(Intercept)"] + centred * deviation[site, "x"], mean(at_centre))
    expect_equal(deviation[site, "x"], mean(own[, 2] - draws[, "x"] - x * draws[, "rural[x]"]))
    expect_equal(deviation[site, "log(sigma)"], mean(log(own[, 3] / draws[, "sigma"]) - x * draws[, "rural[log(sigma)]"]))
  }
})

test_that("variances and correlations are lme4's table", {
  table <- VarCorr(fit, level = 0.8)
  expect_identical(names(table), c("grp", "var1", "var2", "vcov", "sdcor", "lower", "upper"))
  expect_identical(table$grp, c(rep("site", 6), "Residual"))
  sd <- draws[, "sd[x]"]
  expect_equal(unlist(table[2, 4:7], use.names = FALSE), c(mean(sd^2), mean(sd), quantile(sd, c(0.1, 0.9), type = 6)), ignore_attr = TRUE)
  pair <- table[table$var1 %in% "(Intercept)" & table$var2 %in% "x", ]
  cor <- draws[, "cor[(Intercept),x]"]
  # at x of 0
  centred <- fit$bound$design$centre[2]
  expect_identical(any(grepl("VarCorr() gives them with covariates at 0", capture.output(print(fit)), fixed = TRUE)), centred != 0)
  covariance <- cor * draws[, "sd[(Intercept)]"] * sd - centred * sd^2
  at_zero <- sqrt(draws[, "sd[(Intercept)]"]^2 - 2 * centred * cor * draws[, "sd[(Intercept)]"] * sd + centred^2 * sd^2)
  expect_equal(c(pair$vcov, pair$sdcor), c(mean(covariance), mean(covariance / sd / at_zero)))
  expect_equal(c(table$vcov[1], table$sdcor[1]), c(mean(at_zero^2), mean(at_zero)))
  expect_equal(table$sdcor[7], mean(draws[, "sigma"]))
})

test_that("rates are on the coordinate in which sites are normal", {
  pooled <- sample_posterior(two_yes(), model_bernoulli(), pool = "partial", chains = 1, iter = 200, seed = 1)
  d <- as.matrix(pooled)
  expect_equal(fixef(pooled), c("logit(prob[yes])" = mean(qlogis(d[, "prob[yes]"]))))
  expect_equal(ranef(pooled)["south", 1], mean(qlogis(d[, "prob[yes,south]"]) - qlogis(d[, "prob[yes]"])))
  expect_false(any(grepl("VarCorr", capture.output(print(pooled)), fixed = TRUE)))
  expect_equal(VarCorr(pooled)$sdcor, mean(d[, "sd[logit(prob[yes])]"]))
  if (requireNamespace("nlme", quietly = TRUE)) expect_identical(nlme::ranef(pooled), ranef(pooled))
})

test_that("groups of a normal variable have a mean and log(sd)", {
  arms <- list(arm = c("a", "b", "c"))
  statistic <- list(size = stat_counts(~ arm, arms), total = stat_by(stat_sums(~ y + I(y^2), bounds = list(y = c(0, 10)), rescale = FALSE), arms))
  value <- list(size = c(40, 50, 60), total = c(160, 250, 360, 700, 1400, 2300))
  rel <- as_release(value, statistic, list(size = mech_exact(), total = mech_laplace(scale = 5)), n = 150)
  groups <- suppressWarnings(sample_posterior(rel, model_normal(~ arm), pool = "partial", chains = 1, iter = 200, seed = 1))
  d <- as.matrix(groups)
  expect_equal(fixef(groups), c(mean = mean(d[, "mean"]), "log(sd)" = mean(log(d[, "sd"]))))
  expect_equal(ranef(groups)["b", ], data.frame(mean = mean(d[, "mean[b]"] - d[, "mean"]), "log(sd)" = mean(log(d[, "sd[b]"] / d[, "sd"])),
                                                row.names = "b", check.names = FALSE))
  table <- VarCorr(groups)
  expect_identical(table$var1, c("mean", "log(sd)", NA))
  expect_equal(table$sdcor, colMeans(d[, c("sd[mean]", "sd[log(sd)]", "sd")]), ignore_attr = TRUE)
  means <- suppressWarnings(sample_posterior(rel, model_normal(~ arm), pool = partial_pooling(~ mean), chains = 1, iter = 60, seed = 1))
  expect_identical(names(fixef(means)), "mean")
  expect_identical(names(ranef(means)), "mean")
})

test_that("fits without a common mean say so", {
  skip_on_cran()
  complete <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", chains = 1, iter = 60, seed = 1)
  expect_identical(fixef(complete), coef(complete))
  for (f in list(ranef, VarCorr)) expect_error(f(complete), "complete", class = "noiseaware_error_pool")
  apart <- sample_posterior(two_yes(), model_bernoulli(), pool = "none", chains = 1, iter = 60, seed = 1)
  for (f in list(fixef, ranef, VarCorr)) expect_error(f(apart), "none", class = "noiseaware_error_pool")
  walk <- sample_posterior(two_yes(), model_bernoulli(), pool = "walk", chains = 1, iter = 60, seed = 1)
  expect_error(ranef(walk), "common mean", class = "noiseaware_error_pool")
  expect_identical(nrow(VarCorr(walk)), 1L)
  one <- sample_posterior(two_yes()[[1]], model_bernoulli(), chains = 1, iter = 60, seed = 1)
  expect_identical(fixef(one), coef(one))
  expect_error(ranef(one), "one release", class = "noiseaware_error_pool")
})

test_that("what all sites share is reported once, and shown for a site at the mean of all", {
  own <- function(vary) {
    alone <- sample_posterior(sites, model_lm(y ~ x), pool = partial_pooling(vary), chains = 1, iter = 40, seed = 1)
    list(fit = alone, sites = grep("[first]", posterior::variables(alone), fixed = TRUE, value = TRUE), deviation = names(ranef(alone)))
  }
  intercepts <- own(~ `(Intercept)`)
  expect_identical(intercepts$sites, "(Intercept)[first]")
  expect_identical(intercepts$deviation, "(Intercept)")
  expect_identical(colnames(coef(intercepts$fit)), c("(Intercept)", "x", "sigma"))
  expect_identical(unique(coef(intercepts$fit)[, "x"]), mean(as.matrix(intercepts$fit)[, "x"]))
  expect_identical(own(~ x)$sites, "x[first]")
  # slopes that vary about the middle of the bounds move an intercept at 0
  st <- stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(0, 1)), rescale = FALSE)
  off <- lapply(c(first = 40, second = 70), function(n) simulate_release(data.frame(y = runif(n), x = runif(n)), st, mech_laplace(epsilon = 9)))
  off <- sample_posterior(off, model_lm(y ~ x), pool = partial_pooling(~ x), chains = 1, iter = 40, seed = 1)
  expect_false(off$bound$design$centre[2] == 0)
  expect_identical(setdiff(posterior::variables(off), posterior::variables(off)[1:4]), c("(Intercept)[first]", "x[first]", "(Intercept)[second]", "x[second]"))
  expect_identical(own(~ sigma)$sites, "sigma[first]")

  effects <- internal("conditional_effects.noiseaware_fit")(intercepts$fit, resolution = 2)$x
  draws <- as.matrix(intercepts$fit)
  expect_equal(effects$estimate__, apply(draws[, "(Intercept)"] + outer(draws[, "x"], effects$x), 2, median))
  expect_identical(plot(intercepts$fit, "predictive")$labels$subtitle, "A site at the mean of all")
  skip_if_not_installed("emmeans")
  means <- as.data.frame(emmeans::emmeans(intercepts$fit, ~ x))
  expect_equal(means$emmean, median(draws[, "(Intercept)"] + means$x * draws[, "x"]))
  alone <- sample_posterior(sites, model_lm(y ~ x), pool = "none", chains = 1, iter = 20)
  expect_error(internal("recover_data.noiseaware_fit")(alone), class = "noiseaware_error_pool")
})

test_that("the formula has the bars, and insight the groups", {
  places <- list(town = c("a", "b", "c"))
  asked <- list(size = stat_counts(~ town, places), sums = stat_by(stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(0, 1))), places))
  set.seed(4)
  records <- data.frame(town = rep(places$town, each = 20), x = runif(60), y = runif(60))
  grouped <- sample_posterior(simulate_release(records, asked, list(size = mech_exact(), sums = mech_laplace(epsilon = 9))), model_lm(y ~ x + (1 | town)), chains = 1, iter = 40, seed = 1)
  expect_identical(deparse(formula(grouped)), "y ~ x + (1 | town)")
  expect_identical(attr(terms(grouped), "term.labels"), "x")
  expect_identical(deparse(formula(update(grouped, . ~ . - x, iter = 20))), "y ~ (1 | town)")
  skip_if_not_installed("insight")
  expect_identical(insight::find_random(grouped), list(random = "town"))
  parts <- insight::find_parameters(grouped)
  expect_identical(parts$conditional, c("(Intercept)", "x"))
  expect_identical(parts$random, c("sd[(Intercept)]", sprintf("(Intercept)[%s]", places$town)))
  expect_setequal(unlist(parts), posterior::variables(grouped))
  expect_identical(names(insight::get_parameters(grouped, component = "random")), parts$random)
})
