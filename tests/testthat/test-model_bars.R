# Bars in the formula of a regression: what varies between the groups of one release.

by <- list(g = c("a", "b", "c"))
bounds <- list(y = c(-10, 10), x = c(0, 4))
products <- stat_crossprod(y ~ x, bounds, outside = "none")
set.seed(1)
people <- data.frame(g = rep(by$g, c(30, 45, 60)), x = runif(135, 0, 4))
people$k <- rep(c("low", "middle", "high"), 45)
people$y <- rnorm(135, c(a = -1, b = 0, c = 2)[people$g] + 0.5 * people$x)
grouped <- function(statistic, sizes, noise) {
  set.seed(2)
  simulate_release(people, list(size = stat_counts(~ g, by), total = stat_by(statistic, by)), list(size = sizes, total = noise))
}
# the same numbers, a release a group
apart <- function(release, statistic, noise, size = NULL) {
  lapply(stats::setNames(seq_along(by$g), by$g), function(k) {
    numbers <- unname(release$value[-(1:3)])[seq(k, by = 3, length.out = length(statistic$components))]
    if (is.null(size)) return(as_release(numbers, statistic, noise, n = release$value[[k]]))
    as_release(list(part1 = release$value[[k]], part2 = numbers), list(part1 = stat_size(), part2 = statistic), list(part1 = size, part2 = noise), n = NULL,
               neighbours = "add_remove")
  })
}

test_that("a bar is read as in lme4 and brms", {
  skip_on_cran()
  read <- function(f) unlist(internal("split_bars")(f)$bars)
  expect_identical(read(y ~ x + (x | g)), read(y ~ (1 + x | g) + x))
  expect_identical(read(y ~ x + (x || g)), read(y ~ x + (1 | g) + (0 + x | g)))
  expect_identical(internal("split_bars")(y ~ x * z + (z:x + x | g))$bars, list(labels = c("(Intercept)", "x", "x:z"), correlated = TRUE))
  expect_identical(internal("split_bars")(log(y) ~ log(x) + (0 + log(x) | g))$bars$labels, "log(x)")
  expect_identical(deparse(internal("split_bars")(y ~ (1 | g))$formula), "y ~ 1")
  expect_output(print(model_lm(y ~ x + (x || g))), "(1 + x || g)", fixed = TRUE)
  show(c(refusals("formula", expression(
    model_lm(y ~ x + 1 | g), model_lm(y ~ x + (1 | g) + (1 | h)), model_lm(y ~ x + (1 | g / h)), model_lm(y ~ 1 + (x | g)), model_lm(y ~ x + (0 | g)),
    model_lm(y ~ x + (. | g)), model_lm(y ~ x + (1 | g) + (x | g)), model_lm(y ~ x + (1 | g) + (1 | g)))),
    refusals("groups", expression(sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 1)), model_lm(y ~ x + (1 | h))),
                                  sample_posterior(list(a = grouped(products, mech_exact(), mech_gaussian(sd = 1))), model_lm(y ~ x + (1 | g)), pool = "partial"))),
    refusals("pool", expression(sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 1)), model_lm(y ~ x + (1 | g)), pool = ~ x),
                                sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 1)), model_lm(y ~ x + (x || g)),
                                                 pool = partial_pooling(correlation = prior_lkj())))),
    refusals("method", expression(sample_posterior(grouped(stat_crossprod(k ~ x, list(k = c("low", "middle", "high"), x = c(0, 4))), mech_exact(),
                                                           mech_gaussian(sd = 1)), model_glm(k ~ x + (1 | g), family = "cumulative"))))))
})

test_that("bars say what partial_pooling() says of a list of releases", {
  skip_on_cran() # takes long; `make test` runs it
  noise <- mech_gaussian(sd = 0.5)
  rel <- grouped(products, mech_exact(), noise)
  sites <- apart(rel, products, noise)
  draws <- function(release, model, ...) sample_posterior(release, model, chains = 1, iter = 30, seed = 1, ...)$draws
  expect_same <- function(formula, pool) expect_identical(draws(rel, model_lm(formula)), draws(sites, model_lm(y ~ x), pool = pool))
  expect_same(y ~ x + (1 | g), ~ (Intercept))
  expect_same(y ~ x + (0 + x | g), ~ x)
  expect_same(y ~ x + (x | g), partial_pooling(~ (Intercept) + x, correlation = prior_lkj(1)))
  expect_same(y ~ x + (x || g), partial_pooling(~ (Intercept) + x))
  expect_identical(draws(rel, model_lm(y ~ x + (1 | g)), pool = "complete"), draws(sites, model_lm(y ~ x), pool = "complete"))
  expect_identical(draws(rel, model_lm(y ~ x + (1 | g)), pool = "none"), draws(sites, model_lm(y ~ x), pool = "none"))
  expect_identical(draws(rel, model_lm(y ~ x + (1 | g)), pool = partial_pooling(sd = prior_exponential(2))),
                   draws(sites, model_lm(y ~ x), pool = partial_pooling(~ (Intercept), sd = prior_exponential(2))))
  # noisy sizes, and less than was released
  rel <- grouped(products, mech_gaussian(sd = 2), noise)
  expect_identical(draws(rel, model_lm(y ~ x + (x | g)), method = "augment"),
                   draws(apart(rel, products, noise, mech_gaussian(sd = 2)), model_lm(y ~ x), method = "augment",
                         pool = partial_pooling(~ (Intercept) + x, correlation = prior_lkj(1))))
  # sites are compared by what differs between them
  varying <- suppressWarnings(sample_posterior(rel, model_lm(y ~ x + (1 | g)), method = "augment", chains = 1, iter = 60, seed = 1))
  intercept <- function(g) posterior::extract_variable(varying$draws, sprintf("(Intercept)[%s]", g))
  expect_identical(unique(as.data.frame(contrast(varying))$of), "(Intercept)")
  expect_equal(as.data.frame(contrast(varying))$estimate[1], median(intercept("a") - intercept("b")))
  expect_message(sample_posterior(rel, model_lm(y ~ (1 | g)), chains = 1, iter = 20, seed = 1), class = "noiseaware_message_components") |> suppressWarnings()
  # counts of all combinations
  people$z <- cut(people$x, c(0, 2, 4), c("u", "v"), include.lowest = TRUE)
  people$s <- ifelse(people$y > 1, "yes", "no")
  levels <- c(list(z = c("u", "v")), by, list(s = c("no", "yes")))
  cells <- stat_counts(~ g:z:s, levels)
  rel <- simulate_release(people, cells, mech_laplace(epsilon = 1))
  own <- stat_counts(~ z:s, levels[-2L])
  sites <- lapply(stats::setNames(nm = by$g), function(g) {
    as_release(unname(rel$value[grep(paste0("g=", g), names(rel$value))]), own, mech_laplace(scale = rel$scale[[1L]]), n = NULL)
  })
  expect_identical(draws(rel, model_logistic(s ~ z + (z | g))),
                   draws(sites, model_logistic(s ~ z), pool = partial_pooling(~ (Intercept) + zv, correlation = prior_lkj(1))))
})

test_that("predictions are for the groups of the rows", {
  skip_on_cran()
  fit <- sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 0.5)), model_lm(y ~ x + (x | g)), chains = 1, iter = 100, seed = 1)
  new <- data.frame(g = c("c", "a", "c"), x = c(0, 1, 2))
  expect_identical(predict(fit, new), c(predict(fit, new[1, ], site = "c"), predict(fit, new[2, ], site = "a"), predict(fit, new[3, ], site = "c")))
  expect_equal(predict(fit, new), coef(fit)[new$g, "(Intercept)"] + coef(fit)[new$g, "x"] * new$x, ignore_attr = TRUE)
  expect_identical(predict(fit, new, interval = "credible")[2, ], predict(fit, new[2, ], site = "a", interval = "credible")[1, ])
  expect_identical(predict(fit, new, type = "expected")[, 3], predict(fit, new[3, ], site = "c", type = "expected")[, 1])
  expect_identical(update(fit, formula. = . ~ . + (1 | g))$problem$partial$vary, "(Intercept)")
  expect_error(update(fit, formula. = . ~ 1), "`x` is not", class = "noiseaware_error_formula")
  draws <- as.matrix(fit)
  expect_equal(predict(fit, new, re_formula = NA), mean(draws[, "(Intercept)"]) + mean(draws[, "x"]) * new$x)
  expect_equal(colMeans(rstantools::posterior_epred(fit, new, re_formula = NA)), unname(predict(fit, new, re_formula = NA)), ignore_attr = TRUE)
  expect_equal(colMeans(rstantools::posterior_epred(fit, new)), unname(predict(fit, new)), ignore_attr = TRUE)
  expect_error(rstantools::posterior_linpred(fit, new, re_formula = NA), "linear predictor", class = "noiseaware_error_argument")
  more <- data.frame(g = c("a", "d", "e", "d"), x = 2)
  told <- predict(fit, more, type = "expected", allow_new_levels = TRUE, seed = 1)
  expect_identical(told[, 2], told[, 4])
  expect_gt(stats::sd(told[, 2] - told[, 3]), 0.1)
  expect_identical(told[, 1], predict(fit, more[1, ], type = "expected")[, 1])
  show(c(refusals("data", expression(predict(fit, more), predict(fit, more["x"]), predict(fit))),
         refusals("argument", expression(predict(fit, new, re_formula = ~ 0), predict(fit, new, site = "a", re_formula = NA), predict(fit, new, allow_new_levels = 1)))))
})

# Posterior means against restricted likelihood: they differ by part of a posterior standard deviation, of spreads by the prior.
test_that("with little noise the answer is lme4's", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("lme4")
  sets <- list(list(data = lme4::sleepstudy, formula = Reaction ~ Days + (Days | Subject), bounds = list(Reaction = c(100, 600), Days = c(0, 9))),
               list(data = subset(as.data.frame(nlme::Orthodont), Sex == "Male"), formula = distance ~ age + (1 | Subject), bounds = list(distance = c(10, 40), age = c(6, 16))))
  for (set in sets) {
    split <- internal("split_bars")(set$formula)
    data <- as.data.frame(set$data)[c(names(set$bounds), split$group)]
    data[[split$group]] <- as.character(data[[split$group]])
    levels <- stats::setNames(list(sort(unique(data[[split$group]]))), split$group)
    total <- stat_by(stat_crossprod(split$formula, set$bounds, outside = "none"), levels)
    set.seed(1)
    rel <- simulate_release(data, list(size = stat_counts(stats::reformulate(split$group), levels), total = total),
                            list(size = mech_exact(), total = mech_gaussian(mu = 300)))
    fit <- sample_posterior(rel, model_lm(set$formula), chains = 2, iter = 320, seed = 1)
    mixed <- lme4::lmer(set$formula, data)
    draws <- as.matrix(fit)
    near <- function(told, truth, sd, by = 0.6) expect_lt(max(abs(told - truth) / sd), by)
    coefficients <- names(lme4::fixef(mixed))
    near(internal("fixef.noiseaware_fit")(fit), lme4::fixef(mixed), apply(draws[, coefficients], 2, sd))
    deviations <- internal("ranef.noiseaware_fit")(fit)
    of_lme4 <- lme4::ranef(mixed)[[1]][rownames(deviations), , drop = FALSE]
    near(as.matrix(deviations[names(of_lme4)]), as.matrix(of_lme4), sqrt(mean(unlist(of_lme4)^2)), 0.5)
    expect_gt(cor(deviations[["(Intercept)"]], of_lme4[["(Intercept)"]]), 0.98)
    spread <- internal("VarCorr.noiseaware_fit")(fit)
    truth <- as.data.frame(lme4::VarCorr(mixed))
    sds <- is.na(spread$var2)
    expect_identical(spread$var1, truth$var1)
    expect_true(all(truth$sdcor > spread$lower & truth$sdcor < spread$upper))
    near(spread$sdcor[sds], truth$sdcor[sds], (spread$upper - spread$lower)[sds] / 4, 1.5)
  }
})

# Two arms: noisy count, sum and sum of squares. The oracle draws parameters, sizes and totals from their prior, and weights them by the density of the noise.
arms <- list(arm = c("a", "b"))
arm_noise <- c(2, 4, 12) # of a size, a sum, a sum of squares
trial <- as_release(list(size = c(8.3, 12.6), total = c(3.1, 21.4, 14.2, 70.5)),
                    list(size = stat_counts(~ arm, arms), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(-20, 20)), "none", rescale = FALSE), arms)),
                    list(size = mech_gaussian(sd = 2), total = mech_gaussian(sd = rep(arm_noise[2:3], each = 2))), n = NULL, neighbours = "add_remove")
arm_prior <- prior_nig(mean = 0, precision = 1, shape = 3, rate = 6)
# log weights of draws of an arm's mean and sd
arm_weight <- function(k, mean, sd) {
  n <- stats::rpois(length(mean), 10)
  sum <- n * mean + sqrt(n) * sd * stats::rnorm(length(mean))
  square <- ifelse(n > 0, sum^2 / pmax(n, 1), 0) + sd^2 * stats::rchisq(length(mean), pmax(n - 1, 0))
  list(n = n, log = dnorm(trial$value[k], n, arm_noise[[1L]], TRUE) + dnorm(trial$value[2 + k], sum, arm_noise[[2L]], TRUE) +
    dnorm(trial$value[4 + k], square, arm_noise[[3L]], TRUE))
}
weighted_quantile <- function(x, log_weight) {
  order <- order(x)
  share <- cumsum(exp(log_weight - max(log_weight))[order])
  function(p) x[order][which(share >= p * share[length(share)])[1L]]
}

# the shares of draws below quantiles; both sides have Monte Carlo errors, as 1 in 170 of the weighted draws counts
expect_weighted_shares <- function(draws, values, log_weight) {
  for (p in c(0.05, 0.25, 0.5, 0.75, 0.95)) {
    q <- weighted_quantile(values, log_weight)(p)
    expect_weighted_mean((draws <= q) + 0, (values <= q) + 0, log_weight)
  }
}

test_that("means of groups whose sizes have noise: importance sampling from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  draws <- 4e5
  sd <- 1 / sqrt(rgamma(draws, 3, 6))
  fit <- sample_posterior(trial, model_normal(~ arm, prior = arm_prior), prior_n = prior_n("poisson", mean = 10), iter = 700, seed = 1)
  expect_true(all(vapply(fit$fits, `[[`, TRUE, "exact")))
  mean <- rnorm(draws, 0, sd)
  for (k in 1:2) {
    weight <- arm_weight(k, mean, sd)
    for (of in list(list("mean", mean), list("sd", sd))) {
      expect_weighted_shares(parameter_draws(fit, sprintf("%s[%s]", of[[1]], arms$arm[k])), of[[2]], weight$log)
    }
    share <- exp(weight$log - max(weight$log))
    expect_same_mean(parameter_draws(fit, sprintf("n[%s]", arms$arm[k])), sum(share * weight$n) / sum(share))
  }
  # the same sd, means about a common one
  spread <- abs(rnorm(draws, 0, 2))
  own <- lapply(1:2, function(k) rnorm(draws, mean, spread))
  weight <- arm_weight(1, own[[1]], sd)$log + arm_weight(2, own[[2]], sd)$log
  pooled <- sample_posterior(trial, model_lm(y ~ 1 + (1 | arm), prior = arm_prior), pool = partial_pooling(sd = prior_half_normal(2)),
                             prior_n = prior_n("poisson", mean = 10), iter = 900, seed = 1)
  for (of in list(list("(Intercept)", mean), list("sigma", sd), list("sd[(Intercept)]", spread), list("(Intercept)[a]", own[[1]]), list("(Intercept)[b]", own[[2]]))) {
    expect_weighted_shares(parameter_draws(pooled, of[[1]]), of[[2]], weight)
  }
})

test_that("a coefficient that all groups share is printed and plotted once, and a missing bar is named", {
  skip_on_cran()
  rel <- grouped(products, mech_exact(), mech_gaussian(sd = 0.5))
  fit <- sample_posterior(rel, model_lm(y ~ x + (1 | g)), chains = 1, iter = 60, seed = 1) |> suppressWarnings()
  printed <- capture.output(print(fit))
  expect_length(grep("^ *x\\[", printed), 0L)
  expect_length(grep("^ *x ", printed), 1L)
  expect_length(grep("^ *\\(Intercept\\)\\[[abc]\\]", printed), 3L)
  expect_identical(as.character(plot(fit)$data$parameter), c("(Intercept)", "x", "sigma", "sd[(Intercept)]"))
  expect_identical(as.character(plot(fit, variables = "x")$data$parameter), "x")
  every <- stats::setNames(rep(1, posterior::nvariables(fit$draws)), posterior::variables(fit$draws))
  slopes <- grepl("^x", names(every))
  expect_match(internal("mixing_lines")(fit, every + slopes, 1000 * every), "R-hat above 1.01 for x (up to", fixed = TRUE)
  expect_identical(contrast(fit, "x")$measure, "expression")
  expect_identical(colnames(contrast(fit)$draws), colnames(contrast(fit, "(Intercept)")$draws))
  # both vary: nothing is a copy
  fit <- sample_posterior(rel, model_lm(y ~ x + (x | g)), chains = 1, iter = 60, seed = 1) |> suppressWarnings()
  expect_length(grep("^ *x\\[", capture.output(print(fit))), 3L)
  expect_error(sample_posterior(rel, model_lm(y ~ x)), "(1 | g)", fixed = TRUE, class = "noiseaware_error_variables")
})

test_that("a bar in the formula of one variable is answered with models that have the same groups", {
  expect_error(model_normal(y ~ 1), 'model_normal("y")', fixed = TRUE, class = "noiseaware_error_argument")
  expect_error(model_normal(y ~ x + (1 | g)), "model_lm()", fixed = TRUE, class = "noiseaware_error_argument")
  expect_error(model_poisson(~ (1 | g)), "model_poisson(~ g)", fixed = TRUE, class = "noiseaware_error_argument")
  error <- expect_error(model_normal(y ~ 1 + (1 | g)), class = "noiseaware_error_argument")
  for (remedy in c("model_normal(y ~ g)", "model_lm(y ~ 1 + (1 | g))")) expect_match(gsub("\n *", " ", cli::ansi_strip(conditionMessage(error))), remedy, fixed = TRUE)
  set.seed(1)
  data <- data.frame(g = rep(c("a", "b", "c"), c(40, 50, 60)), y = rnorm(150))
  levels <- list(g = c("a", "b", "c"))
  asked <- list(size = stat_counts(~ g, levels), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(-10, 10))), levels))
  release <- simulate_release(data, asked, list(size = mech_exact(), total = mech_laplace(epsilon = 5)))
  fits <- suppressWarnings(suppressMessages(list(sample_posterior(release, model_normal(y ~ g), pool = "partial", chains = 1, iter = 40, seed = 1),
                                                 sample_posterior(release, model_lm(y ~ 1 + (1 | g)), chains = 1, iter = 40, seed = 1))))
  expect_true(all(c("mean[a]", "sd[mean]") %in% posterior::variables(fits[[1]]$draws)))
  expect_true(all(c("(Intercept)[a]", "sd[(Intercept)]", "sigma") %in% posterior::variables(fits[[2]]$draws)))
})
