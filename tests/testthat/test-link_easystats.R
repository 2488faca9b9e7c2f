bounds <- list(bwt = c(500, 5500), age = c(14, 50), smoke = c("0", "1"))
set.seed(1)
rel <- simulate_release(MASS::birthwt, stat_crossprod(bwt ~ age + smoke, bounds), mech_laplace(epsilon = 5))
fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
draws <- as.matrix(fit)
beta <- draws[, c("(Intercept)", "age", "smoke1")]
median_of <- function(x) unname(apply(x, 2, median))
y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
rate <- sample_posterior(as_release(c(4.2, 6.1), y, mech_laplace(epsilon = 1), n = 10), model_bernoulli(), chains = 1, iter = 40, seed = 1)

test_that("bayestestR: arguments by position, priors, modes and diagnostics", {
  skip_if_not_installed("bayestestR")
  expect_equal(bayestestR::hdi(fit, 0.5)$CI, rep(0.5, 3))
  expect_equal(bayestestR::hdi(fit, 0.5)$CI_low, bayestestR::hdi(as.data.frame(beta), 0.5)$CI_low)
  expect_equal(bayestestR::rope(fit, c(-100, 100))$ROPE_low, rep(-100, 3))
  expect_equal(bayestestR::map_estimate(fit)[[2]], bayestestR::map_estimate(as.data.frame(beta))[[2]])
  expect_equal(bayestestR::p_map(fit)$p_MAP, bayestestR::p_map(as.data.frame(beta))$p_MAP, ignore_attr = TRUE)
  expect_equal(bayestestR::spi(fit)$CI_low, bayestestR::spi(as.data.frame(beta))$CI_low)
  prior <- bayestestR::describe_prior(fit)
  expect_identical(prior$Prior_Location, insight::get_priors(fit)$Location)
  expect_identical(names(prior), c("Parameter", "Prior_Distribution", "Prior_Location", "Prior_Scale"))
  checks <- bayestestR::diagnostic_posterior(fit)
  expect_equal(checks$Rhat, unname(posterior::rhat(fit)[colnames(beta)]))
  expect_equal(bayestestR::effective_sample(fit)$ESS, unname(posterior::ess_bulk(fit)[colnames(beta)]))
  expect_equal(bayestestR::mcse(fit)$MCSE[2], posterior::mcse_mean(posterior::extract_variable_matrix(fit, "age")))
  expect_error(bayestestR::rope_range(fit), class = "noiseaware_error_meaningless")
  expect_error(bayestestR::rope(fit), "`range` must be given, in the units of the estimates.", fixed = TRUE, class = "noiseaware_error_argument")
})

test_that("insight: of a model without a response its family, and that it is Bayesian", {
  skip_if_not_installed("insight")
  info <- insight::model_info(rate)
  expect_true(info$is_bayesian)
  expect_true(info$is_binomial && info$is_bernoulli)
  expect_false(any(unlist(info[c("is_linear", "is_count", "is_mixed")])))
  pool <- sample_posterior(two_yes(), model_bernoulli(), pool = "partial", chains = 1, iter = 40, seed = 1)
  expect_true(insight::model_info(pool)$is_bernoulli)
  expect_identical(insight::get_priors(pool)$Parameter, c("prob[yes]", "sd[logit(prob[yes])]"))
})

test_that("terms and model matrices say which column is of which term", {
  expect_identical(attr(terms(fit), "dataClasses"), c(bwt = "numeric", age = "numeric", smoke = "factor"))
  expect_identical(attr(model.matrix(fit), "assign"), 0:2)
  expect_identical(attr(model.matrix(fit), "contrasts"), list(smoke = "contr.treatment"))
})

test_that("parameters", {
  skip_if_not_installed("parameters")
  table <- parameters::model_parameters(fit)
  expect_identical(table$Parameter, colnames(beta))
  expect_equal(table$Median, median_of(beta))
  expect_equal(table$Rhat, unname(posterior::rhat(fit)[colnames(beta)]))
  expect_identical(parameters::model_parameters(fit, component = "all")$Parameter, colnames(draws))
  small <- fit
  small$draws <- small$draws / 1000
  odds <- parameters::model_parameters(small, exponentiate = TRUE)
  expect_equal(odds$Median, exp(median_of(beta) / 1000))
  # the probability that the coefficient, not the odds ratio, is above 0
  expect_equal(odds$pd, table$pd)
  # as modelsummary asks
  spread <- parameters::model_parameters(small, exponentiate = TRUE, diagnostic = NULL, dispersion = TRUE)
  expect_identical(intersect(c("Rhat", "ESS"), names(spread)), character())
  expect_equal(spread$MAD, unname(apply(beta, 2, mad)) / 1000 * odds$Median)
  expect_error(parameters::model_parameters(rate, exponentiate = TRUE), class = "noiseaware_error_argument")
})

test_that("modelsummary", {
  skip_if_not_installed("modelsummary")
  table <- suppressWarnings(modelsummary::modelsummary(fit, output = "data.frame", fmt = NULL, statistic = "conf.int"))
  shown <- table[table$statistic == "estimate", ]
  expect_identical(shown$term, colnames(beta))
  expect_equal(as.numeric(shown[[ncol(shown)]]), median_of(beta))
})

test_that("performance", {
  skip_if_not_installed("performance")
  r2 <- internal("bayes_R2.noiseaware_fit")(fit, seed = 1)
  expect_equal(performance::r2(fit)$R2_Bayes, median(r2), ignore_attr = TRUE)
  expect_equal(as.data.frame(performance::model_performance(fit)), data.frame(R2 = median(r2), Sigma = sigma(fit)), ignore_attr = TRUE)
  expect_error(performance::check_model(fit), class = "noiseaware_error_meaningless")
})

test_that("gtsummary", {
  for (package in c("gtsummary", "broom", "broom.helpers")) skip_if_not_installed(package)
  body <- gtsummary::tbl_regression(fit)$table_body
  expect_identical(unname(body$label), c("age", "smoke", "0", "1"))
  expect_equal(body$estimate[c(1, 4)], unname(colMeans(beta)[2:3]))
  expect_identical(body$reference_row[3], TRUE)
  expect_error(gtsummary::tbl_regression(rate), class = "noiseaware_error_method")
})

test_that("predictions for marginaleffects are means over draws, whether it is installed or not", {
  get_predict <- internal("get_predict.noiseaware_fit")
  newdata <- data.frame(age = c(20, 30), smoke = factor(c("0", "1")))
  link <- beta %*% rbind(1, newdata$age, c(0, 1))
  for (type in c("response", "link")) {
    found <- get_predict(fit, newdata, type = type)
    expect_equal(found$estimate, unname(colMeans(link)))
    expect_equal(attr(found, "posterior_draws"), t(link), ignore_attr = TRUE)
  }
})

test_that("insight: only kinds of parameters that there are", {
  skip_if_not_installed("insight")
  cells <- stat_counts(~ low:smoke, list(low = c("no", "yes"), smoke = c("no", "yes")))
  odds <- sample_posterior(as_release(c(40, 20, 30, 25), cells, mech_laplace(epsilon = 1), n = 115), model_logistic(low ~ smoke), chains = 1, iter = 40, seed = 1)
  expect_named(insight::find_parameters(odds), c("conditional", "covariates"))
  expect_named(insight::find_parameters(fit), c("conditional", "sigma", "covariates"))
})
