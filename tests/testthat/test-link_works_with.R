covariate_grid <- internal("covariate_grid")

# What other packages make of a regression with a number and a factor; two rows to predict for.
bounds <- list(bwt = c(500, 5500), age = c(14, 50), smoke = c("0", "1"))
st <- stat_crossprod(bwt ~ age + smoke, bounds)
set.seed(1)
rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 5))
fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
newdata <- data.frame(age = c(20, 30), smoke = factor(c("0", "1")))
beta <- as.matrix(fit)[, c("(Intercept)", "age", "smoke1")]
expected <- cbind(beta %*% c(1, 20, 0), beta %*% c(1, 30, 1))
pool <- sample_posterior(list(north = as_release(c(21.2, 7.3), stat_counts(~ smoke, list(smoke = c("no", "yes"))), mech_laplace(scale = 2), n = 30),
                              south = as_release(c(9.1, 11), stat_counts(~ smoke, list(smoke = c("no", "yes"))), mech_laplace(scale = 3), n = 20)),
                         model_bernoulli(), pool = "partial", chains = 2, iter = 400, seed = 1)
weeks <- c(0, 5, 10, 15, 20, 36)
exits <- survival_exits(MASS::gehan, Surv(time, cens) ~ treat, weeks, list(treat = c("6-MP", "control")))
survival_fit <- sample_posterior(simulate_release(exits, stat_survival(~ treat, weeks, list(treat = c("6-MP", "control"))), mech_discrete_laplace(epsilon = 2)),
                                 model_survival(), chains = 1, iter = 200, seed = 1)
medians <- function(draws) unname(apply(as.matrix(draws), 2, median))
# draws of the linear predictor of a regression on age alone
coefficients_at <- function(fit, age) as.matrix(fit)[, 1:2] %*% rbind(1, age)

# marginaleffects 1.0.0 calls an operator of R 4.4's without importing it
needs_operator <- function(frame = parent.frame()) {
  if (getRversion() >= "4.4") return(invisible())
  attach(list("%||%" = rlang::`%||%`), name = "operator of R 4.4", warn.conflicts = FALSE)
  withr::defer(detach("operator of R 4.4"), frame)
}

test_that("each row of the table does what it says", {
  skip_on_cran()
  table <- works_with()
  expect_identical(anyDuplicated(paste(table$package, table$call)), 0L)
  pdf(NULL)
  withr::defer(dev.off())
  needs_operator()
  absent <- character()
  for (i in seq_len(nrow(table))) {
    row <- table[i, ]
    label <- paste0(row$package, ": ", row$call)
    if (!requireNamespace(row$package, quietly = TRUE)) {
      absent <- union(absent, row$package)
      next
    }
    inside <- list2env(mget(getNamespaceExports(row$package), asNamespace(row$package), inherits = TRUE))
    list2env(list(fit = fit, newdata = newdata, pool = pool, survival_fit = survival_fit), inside)
    got <- tryCatch(suppressMessages(suppressWarnings(eval(str2lang(row$call), inside))), error = identity)
    # of what gtsummary suggests
    if (inherits(got, "rlib_error_package_not_found")) {
      absent <- union(absent, paste("a package that", row$package, "needs"))
      next
    }
    if (row$works) {
      expect_false(inherits(got, "condition"), label = paste(label, if (inherits(got, "condition")) conditionMessage(got)))
      expect_gt(length(got), 0L, label = label)
    } else {
      expect_s3_class(got, "noiseaware_error_meaningless")
      expect_match(cli::ansi_strip(got$message), sub("[(].*", "()", row$call), fixed = TRUE)
      expect_match(cli::ansi_strip(paste(got$body, collapse = " ")), substr(row$note, 1, 40), fixed = TRUE)
    }
  }
  if (length(absent)) skip(paste("not installed:", paste(absent, collapse = ", ")))
})

test_that("stats and posterior", {
  expect_equal(formula(fit), bwt ~ age + smoke, ignore_attr = TRUE)
  expect_identical(family(fit)$link, "identity")
  expect_identical(labels(fit), c("age", "smoke"))
  expect_identical(variable.names(fit), colnames(beta))
  expect_identical(sigma(fit), mean(as.matrix(fit)[, "sigma"]))
  expect_identical(sigma(update(fit, model = model_lm(sigma = fixed(700)), iter = 20)), 700)
  expect_identical(c(posterior::ndraws(fit), posterior::nchains(fit), posterior::niterations(fit)), c(400L, 2L, 200L))
  expect_identical(posterior::variables(fit), colnames(as.matrix(fit)))
  expect_identical(posterior::nvariables(fit), length(posterior::variables(fit)))
  expect_identical(names(as.data.frame(fit)), posterior::variables(fit))
  expect_identical(unname(as.array(fit)[, 2, "age"]), as.vector(fit$draws[, 2, "age"]))
  table <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk", "ess_tail")
  expect_equal(unname(posterior::rhat(fit)), as.double(table$rhat))
  expect_identical(bayesplot::rhat(fit), posterior::rhat(fit))
  expect_equal(posterior::ess_bulk(fit)[["age"]], as.double(table$ess_bulk[2]))
  expect_equal(unname(posterior::ess_tail(fit)), as.double(table$ess_tail))
  expect_equal(bayesplot::neff_ratio(fit)[["sigma"]], as.double(table$ess_bulk[4]) / 400)
})

test_that("a grid stands for data", {
  skip_on_cran()
  grid <- covariate_grid(fit)
  expect_identical(grid, data.frame(age = rep(c(32, 14, 50), 2), smoke = factor(rep(c("0", "1"), each = 3))))
  three <- stat_crossprod(y ~ a + b + g, list(y = c(0, 1), a = c(0, 2), b = c(-1, 5), g = c("u", "v", "w")))
  own <- covariate_grid(sample_posterior(as_release(rep(0, 17), three, mech_laplace(epsilon = 1), n = 10), model_lm(), iter = 10, seed = 1))
  expect_identical(dim(own), c(15L, 3L))
  expect_identical(c(colMeans(own[1:2]), range(own$a), range(own$b)), c(a = 1, b = 2, 0, 2, -1, 5))
  expect_identical(anyDuplicated(own), 0L)
  shown <- fitted(fit, newdata, level = 0.8)
  expect_equal(unname(as.matrix(shown[3:5])), unname(cbind(colMeans(expected), t(apply(expected, 2, quantile, c(0.1, 0.9), type = 6)))))
  expect_identical(fitted(fit)[names(grid)], grid)
  alone <- sample_posterior(as_release(3, stat_sums(~ x, list(x = c(0, 1))), mech_laplace(epsilon = 1), n = 10), model_normal(), iter = 10, seed = 1)
  for (f in list(covariate_grid, formula, family, sigma, fitted)) expect_error(f(alone), class = "noiseaware_error_method")
  many <- stat_crossprod(stats::reformulate(letters[2:18], "a"), stats::setNames(c(list(c(0, 1)), rep(list(c("u", "v")), 17)), letters[1:18]))
  many <- as_release(rep(0, length(many$components)), many, mech_laplace(epsilon = 1), n = 10)
  many <- sample_posterior(many, model_lm(), method = "naive", iter = 10, seed = 1)
  expect_error(covariate_grid(many), class = "noiseaware_error_argument")
})

test_that("rstantools: predictors, expectations, numbers of draws", {
  expect_equal(rstantools::posterior_linpred(fit, newdata), unname(expected))
  expect_identical(rstantools::posterior_epred(fit, newdata, ndraws = 10, re_formula = NA), rstantools::posterior_epred(fit, newdata, 10))
  expect_identical(rstantools::posterior_predict(fit, newdata, ndraws = 10, seed = 2), rstantools::posterior_predict(fit, newdata, 10, 2))
  expect_error(rstantools::posterior_epred(fit, newdata, re_formula = ~ 1), class = "noiseaware_error_argument")
  expect_error(rstantools::posterior_linpred(fit), class = "noiseaware_error_data")
  counted <- stat_crossprod(low ~ age, list(low = c("0", "1"), age = c(14, 50)))
  set.seed(2)
  logistic <- simulate_release(MASS::birthwt, counted, mech_laplace(epsilon = 5))
  logistic <- sample_posterior(logistic, model_logistic(), chains = 1, iter = 60, seed = 1)
  expect_equal(rstantools::posterior_linpred(logistic, newdata), unname(coefficients_at(logistic, c(20, 30))))
  expect_equal(rstantools::posterior_linpred(logistic, newdata, transform = TRUE), plogis(unname(coefficients_at(logistic, c(20, 30)))))
  expect_identical(family(logistic)$link, "logit")
  expect_error(sigma(logistic), class = "noiseaware_error_method")
  skip_if_not_installed("emmeans")
  means <- as.data.frame(emmeans::emmeans(logistic, ~ age, at = list(age = c(20, 30)), type = "response"))
  expect_equal(means$prob, medians(plogis(coefficients_at(logistic, c(20, 30)))))
})

test_that("emmeans", {
  skip_if_not_installed("emmeans")
  means <- as.data.frame(emmeans::emmeans(fit, ~ smoke))
  # ages are held where conditional_effects() and plots hold them
  age <- mean(as.matrix(fit)[, "mean[age]"])
  expect_equal(means$emmean, medians(cbind(beta %*% c(1, age, 0), beta %*% c(1, age, 1))))
  expect_identical(as.data.frame(emmeans::emmeans(fit, ~ age, cov.reduce = range))$age, c(14, 50))
  expect_equal(as.data.frame(pairs(emmeans::emmeans(fit, ~ smoke)))$estimate, median(-beta[, "smoke1"]))
  expect_equal(as.data.frame(emmeans::emtrends(fit, ~ smoke, var = "age"))$age.trend, rep(median(beta[, "age"]), 2))
  at <- as.data.frame(emmeans::emmeans(fit, ~ age, at = list(age = 20), data = newdata))
  expect_equal(at$emmean, medians(beta %*% c(1, 20, 0.5)))
  expect_identical(attr(emmeans::ref_grid(fit)@post.beta, "n.chains"), 2L)
})

test_that("marginaleffects", {
  skip_if_not_installed("marginaleffects")
  needs_operator()
  predicted <- marginaleffects::predictions(fit, newdata = newdata)
  expect_equal(predicted$estimate, medians(expected))
  expect_equal(cbind(predicted$conf.low, predicted$conf.high), unname(t(apply(expected, 2, quantile, c(0.025, 0.975)))), tolerance = 1e-6)
  expect_identical(nrow(marginaleffects::predictions(fit)), nrow(covariate_grid(fit)))
  compared <- marginaleffects::comparisons(fit, variables = "smoke", newdata = newdata)
  expect_equal(compared$estimate, rep(median(beta[, "smoke1"]), 2))
  expect_equal(marginaleffects::slopes(fit, variables = "age", newdata = newdata)$estimate, rep(median(beta[, "age"]), 2), tolerance = 1e-5)
  expect_error(marginaleffects::get_predict(fit, newdata, type = "probs"), class = "noiseaware_error_argument")
})

test_that("tidybayes", {
  skip_if_not_installed("tidybayes")
  drawn <- tidybayes::add_epred_draws(newdata, fit, ndraws = 10)
  expect_equal(matrix(drawn$.epred, 10), unname(rstantools::posterior_epred(fit, newdata, ndraws = 10)))
  linear <- tidybayes::add_linpred_draws(newdata, fit, ndraws = 5, re_formula = NA)
  expect_equal(matrix(linear$.linpred, 5), unname(rstantools::posterior_linpred(fit, newdata, ndraws = 5)))
  expect_identical(tidybayes::add_predicted_draws(newdata, fit, ndraws = 5, seed = 1), tidybayes::add_predicted_draws(newdata, fit, ndraws = 5, seed = 1))
  expect_equal(tidybayes::spread_draws(fit, age)$age, unname(beta[, "age"]))
})

test_that("bayestestR and insight", {
  skip_if_not_installed("bayestestR")
  described <- bayestestR::describe_posterior(fit)
  expect_identical(described$Parameter, colnames(beta))
  expect_equal(described$Median, medians(beta))
  expect_identical(bayestestR::describe_posterior(fit, component = "all")$Parameter, posterior::variables(fit))
  expect_equal(as.numeric(bayestestR::p_direction(fit, parameters = "age")$pd), max(mean(beta[, "age"] > 0), mean(beta[, "age"] < 0)))
  expect_equal(bayestestR::eti(fit)$CI_low, unname(apply(beta, 2, quantile, 0.025)))
  expect_identical(insight::get_parameters(fit), as.data.frame(fit)[1:3])
  expect_identical(insight::get_parameters(fit, summary = TRUE)$Estimate, unname(coef(fit)))
  expect_identical(insight::find_parameters(fit)$sigma, "sigma")
  drawn <- bayestestR::simulate_prior(fit, n = 200)
  expect_identical(dim(drawn), c(200L, 3L))
  expect_named(drawn, colnames(beta))
  # of what sites share
  expect_named(bayestestR::simulate_prior(pool, n = 20), "prob[yes]")
  expect_error(bayestestR::simulate_prior(update(pool, pool = "none", iter = 20)), class = "noiseaware_error_pool")
  expect_identical(insight::find_parameters(fit, flatten = TRUE), posterior::variables(fit))
  expect_identical(insight::get_priors(fit)$Distribution, rstantools::prior_summary(fit)$prior)
  # the numbers of a location and a scale; of other priors the medians and spreads of draws
  priors <- insight::get_priors(fit)
  summary <- as.data.frame(rstantools::prior_summary(fit, seed = 1))
  stated <- grepl("^normal\\([^ ]*, [^ ]*\\)$", priors$Distribution)
  expect_gt(sum(stated), 0)
  expect_gt(sum(!stated), 0)
  expect_identical(priors$Distribution[stated], sprintf("normal(%.5g, %.5g)", priors$Location[stated], priors$Scale[stated]))
  expect_identical(unname(priors[!stated, c("Location", "Scale")]), unname(summary[!stated, c("median", "mad")]))
  expect_true(insight::model_info(fit)$is_bayesian)
  expect_identical(insight::get_data(fit), covariate_grid(fit))
})

test_that("negative binomial and Gamma responses", {
  skip_on_cran()
  skip_if_not_installed("insight")
  skip_if_not_installed("emmeans")
  counted <- stat_crossprod(days ~ age, list(days = c(0, 60), age = c(14, 50)))
  for (family in list(family_object("negative_binomial"), Gamma("log"))) {
    set.seed(3)
    shaped <- simulate_release(model_glm(family = family), counted, mech_laplace(epsilon = 5), n = 50)
    shaped <- suppressWarnings(sample_posterior(shaped, model_glm(family = family), chains = 1, iter = 60, seed = 1))
    info <- insight::model_info(shaped)
    expect_identical(info$link_function, "log")
    expect_identical(c(info$is_negbin, info$is_count, info$is_binomial), family$family == c("negative_binomial", "negative_binomial", "binomial"))
    expect_identical(insight::find_parameters(shaped)$sigma, "cv")
    means <- as.data.frame(emmeans::emmeans(shaped, ~ age, at = list(age = c(20, 30)), type = "response"))
    expect_equal(means[[if (family$family == "Gamma") "response" else "rate"]], medians(exp(coefficients_at(shaped, c(20, 30)))))
    expect_true("cv" %in% levels(plot(shaped)$data$parameter))
    expect_error(update(shaped, prior = fixed(c(1, 0))), class = "noiseaware_error_prior")
    expect_identical(suppressMessages(update(shaped, prior = prior_normal(0, 3)))$asked$model$cv, prior_half_normal(1))
  }
})

test_that("insight: what a response of levels is", {
  skip_if_not_installed("insight")
  graded <- stat_crossprod(y ~ x, list(y = c("low", "mid", "high"), x = c(-1, 1)))
  set.seed(4)
  rel <- simulate_release(model_glm(family = "categorical"), graded, mech_laplace(scale = 2), n = 30)
  info <- function(family) {
    fit <- suppressWarnings(sample_posterior(rel, model_glm(family = family), chains = 1, iter = 20, seed = 1))
    unlist(insight::model_info(fit)[c("is_cumulative", "is_ordinal", "is_multinomial", "is_categorical", "is_binomial", "is_bernoulli", "is_logit", "is_probit")], use.names = FALSE)
  }
  expect_identical(info("cumulative"), rep(c(TRUE, FALSE, TRUE, FALSE), c(2, 4, 1, 1)))
  expect_identical(info("cumulative_probit"), rep(c(TRUE, FALSE, TRUE), c(2, 5, 1)))
  expect_identical(info("categorical"), rep(c(FALSE, TRUE, FALSE, TRUE, FALSE), c(2, 2, 2, 1, 1)))
})

test_that("priorsense", {
  # in natural values: Beta(2, 5) of the probability
  y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  counts <- sample_posterior(as_release(c(4.2, 6.1), y, mech_laplace(epsilon = 1), n = 10), model_bernoulli(prior = prior_beta(2, 5)), chains = 2, iter = 50, seed = 1)
  density <- internal("prior_log_density")(counts)
  expect_equal(density - density[1], dbeta(as.matrix(counts)[, 1], 2, 5, log = TRUE) - dbeta(as.matrix(counts)[1, 1], 2, 5, log = TRUE))
  skip_if_not_installed("priorsense")
  data <- priorsense::create_priorsense_data(fit)
  expect_identical(as.vector(data$log_lik), as.vector(internal("log_noise_draws")(fit)))
  expect_identical(priorsense::powerscale_sensitivity(fit)$variable, posterior::variables(fit))
  naive <- sample_posterior(rel, model_lm(), method = "naive", iter = 20, seed = 1)
  expect_error(priorsense::log_lik_draws(naive), class = "noiseaware_error_argument")
  expect_message(prior <- priorsense::powerscale_sensitivity(naive, component = "prior"), class = "noiseaware_message_likelihood")
  expect_true(all(is.finite(prior$prior)) && all(is.na(prior$likelihood)))
  for (plot in c("powerscale_plot_dens", "powerscale_plot_ecdf", "powerscale_plot_quantities")) {
    drawn <- getExportedValue("priorsense", plot)(counts, variable = "prob[yes]", help_text = FALSE)
    expect_s3_class(drawn, "ggplot")
  }
  sites <- list(a = counts$release, b = as_release(c(7.2, 3.1), y, mech_laplace(epsilon = 1), n = 10))
  pooled <- sample_posterior(sites, counts$bound$model, pool = "complete", chains = 2, iter = 400, seed = 1)
  expect_true(all(is.finite(priorsense::powerscale_sensitivity(pooled)$likelihood)))
  apart <- sample_posterior(sites, counts$bound$model, pool = "none", chains = 1, iter = 50, seed = 1)
  expect_error(priorsense::powerscale_sensitivity(apart), class = "noiseaware_error_pool")
})

test_that("the likelihood for priorsense of a probability sums out the total", {
  y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  release <- as_release(c("y=yes" = 4.2), y, mech_laplace(scale = 2), n = 10)
  fit <- sample_posterior(release, model_bernoulli(), chains = 1, iter = 40, seed = 1)
  p <- as.matrix(fit)[, 1]
  exact <- log(sum_of_totals(p, 10, function(s) -abs(4.2 - s) / 2))
  got <- internal("release_log_lik")(fit)
  expect_equal(unname(got - got[1]), unname(exact - exact[1]))
})

test_that("SBC", {
  backend <- sbc_backend(model_lm(), chains = 2, iter = 400, seed = 1)
  drawn <- internal("SBC_fit.SBC_backend_noiseaware")(backend, rel, cores = 1)
  # SBC takes the draws by posterior::as_draws_matrix()
  expect_identical(posterior::as_draws_matrix(drawn), posterior::as_draws_matrix(fit))
  expect_identical(names(attr(simulate_release(model_lm(), st, mech_laplace(epsilon = 5), n = 10), "truth")$parameters), posterior::variables(drawn))
  expect_error(sbc_backend(3), class = "noiseaware_error_argument")
  expect_error(sbc_backend(model_lm(), itr = 5), class = "noiseaware_error_argument")
  expect_error(sbc_backend(model_lm(), release = rel), class = "noiseaware_error_argument")
  expect_output(print(backend), "sample_posterior")
})

test_that("model matrices, predictions with intervals, and ranges that must be given", {
  design <- model.matrix(fit, newdata)
  expect_equal(unname(design[, ]), cbind(1, c(20, 30), 0:1))
  expect_identical(attr(design, "assign"), 0:2)
  expect_identical(nrow(model.matrix(fit)), nrow(covariate_grid(fit)))
  expect_identical(attr(terms(fit), "term.labels"), c("age", "smoke"))
  skip_if_not_installed("bayestestR")
  told <- insight::get_predicted(fit, newdata, ci = 0.8)
  expect_equal(as.numeric(told), colMeans(expected))
  table <- as.data.frame(told, keep_iterations = FALSE)[1:4]
  expect_equal(unname(as.matrix(table[3:4])), unname(predict(fit, newdata, interval = "credible", level = 0.8)[, 2:3]))
  share <- mean(abs(beta[, "smoke1"]) < 100)
  inside <- bayestestR::p_rope(fit, range = c(-100, 100), parameters = "smoke")
  # ROPE_Percentage since 0.16
  expect_equal(inside[[intersect(c("p_ROPE", "ROPE_Percentage"), names(inside))]], share)
  for (name in c("rope", "equivalence_test", "p_rope", "p_significance")) {
    expect_error(getExportedValue("bayestestR", name)(fit), class = "noiseaware_error_argument")
  }
  expect_null(bayestestR::describe_posterior(fit)$ROPE_low)
  expect_equal(bayestestR::describe_posterior(fit, rope_range = c(-3, 4))$ROPE_low, rep(-3, 3))
})
