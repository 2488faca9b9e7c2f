# What works on a fit, in one table. works_with() and vignette("with-other-packages") show it, the tests evaluate each row, and functions that do not work
# raise an error with the note of their row.

no_records <- "It needs the individual confidential records; a release has only noisy numbers. `bayesplot::pp_check()` compares the fit with its release."
no_parts <- "A release is a single observation, of sums over all records, so no record can be left out; for pooled sites, each site is a unit. See `bayes_factor()`."
own_bridge <- "It needs the density of the parameters, which has no closed form. `log_evidence()` has its own bridge sampling."
no_likelihood <- "The probability of the published numbers given the parameters is an integral over all databases, which has no closed form."

no_residuals <- "A posterior has no degrees of freedom: its draws include the uncertainty of `sigma`, and intervals are quantiles of the draws."
no_checks <- "It plots residuals of the records, which a release does not have. `bayesplot::pp_check()` compares the fit with its release, and `summary()` has R-hat."
no_p_value <- "A posterior has none. `p_value(release, model, null)` tests a null hypothesis, and `model_parameters(fit)` has the probability of direction."
no_tests <- "It compares likelihoods or sums of squares, which a release does not have. `test_hypothesis()` and `bayes_factor()` compare models with and without a term."

no_delta <- "It reads one number for each coefficient, where a fit has draws. `contrast(fit, \"age - lwt\")` compares coefficients, with intervals."

no_one_parameter <- "A fit has several parameters: `coef()` gives posterior means, `summary()` medians and quantiles of all of them."
no_call <- "A fit keeps its release and its model, not the call: `update(fit)` samples again."

no_densities <- "It estimates prior and posterior densities at a point from draws. `test_hypothesis()` and `bayes_factor()` compute the Bayes factor without that."

#' Functions of other packages that work on a fit
#'
#' A table of the functions of other packages that were tried on fits, and whether they work.
#'
#' @return A data frame with a row for each function. Functions that do not work raise an error of class `noiseaware_error_meaningless`. The columns are:
#'
#' | column | meaning |
#' | --- | --- |
#' | `package` | the package that has the function |
#' | `call` | an example: `fit` is a fit of a regression, `newdata` a data frame of its covariates, `pool` a fit of sites, `survival_fit` of [model_survival()] |
#' | `works` | whether it works |
#' | `note` | any peculiarities or, if the function does not work, the reason |
#' @details The methods are registered when the package with the function is loaded; this package needs none of these packages.
#' @family package interfaces
#' @examples
#' subset(works_with(), package == "emmeans")
#' subset(works_with(), !works, c(package, call))
#' @export
works_with <- function() {
  row <- function(package, call, note, works = TRUE) data.frame(package = package, call = call, works = works, note = note)
  rbind(
    row("stats", "formula(fit)", "the model's formula"),
    row("stats", "family(fit)", "with its link"),
    row("stats", "sigma(fit)", "of a linear regression"),
    row("stats", "fitted(fit)", "at the rows of a grid of the covariates instead of data, with intervals"),
    row("stats", "predict(fit, newdata)", "means, intervals, draws"),
    row("stats", "residuals(fit)", no_records, FALSE),
    row("stats", "model.frame(fit)", no_records, FALSE),
    row("stats", "logLik(fit)", no_likelihood, FALSE),
    row("stats", "deviance(fit)", no_likelihood, FALSE),
    row("stats", "terms(fit)", "of the model's formula"),
    row("stats", "model.matrix(fit, newdata)", "a column for each coefficient; without `newdata` at the rows of `insight::get_data(fit)`"),
    row("stats", "weights(fit)", no_records, FALSE),
    row("stats", "df.residual(fit)", no_residuals, FALSE),
    row("stats", "anova(fit)", no_tests, FALSE),
    row("stats", "drop1(fit)", no_tests, FALSE),
    row("stats", "extractAIC(fit)", no_tests, FALSE),
    row("stats", "profile(fit)", no_likelihood, FALSE),
    row("stats", "hatvalues(fit)", no_records, FALSE),
    row("stats", "influence(fit)", no_records, FALSE),
    row("stats", "case.names(fit)", no_records, FALSE),
    row("stats", "variable.names(fit)", "of the coefficients"),
    row("stats", "getCall(fit)", no_call, FALSE),
    row("stats", "median(fit)", no_one_parameter, FALSE),
    row("base", "mean(fit)", no_one_parameter, FALSE),
    row("base", "labels(fit)", "of the formula's terms"),
    row("posterior", "as_draws_rvars(fit)", "and the other formats of draws"),
    row("posterior", "ndraws(fit)", "`nchains()`, `niterations()`, `variables()`, `nvariables()`"),
    row("posterior", "rhat(fit)", "`ess_bulk()`, `ess_tail()`: by name of the parameter"),
    row("posterior", "summarise_draws(fit)", "any summary"),
    row("bayesplot", "mcmc_areas(fit, regex_pars = \"smoke\")", "and the other `mcmc_` functions"),
    row("bayesplot", "mcmc_rhat(rhat(fit))", "`neff_ratio()`"),
    row("bayesplot", "pp_check(fit)", "the published numbers compared with replicates of the release; `type = \"hist\"`"),
    row("coda", "as.mcmc.list(fit)", "`as.mcmc()` with all chains concatenated"),
    row("rstantools", "posterior_predict(fit, newdata)", "`posterior_epred()`, `posterior_linpred()`, with `ndraws`, `seed`, `re_formula`"),
    row("rstantools", "posterior_interval(fit)", "equal-tailed"),
    row("rstantools", "predictive_interval(fit, newdata = newdata)", "of a new response"),
    row("rstantools", "bayes_R2(fit)", "for the population, or for the rows of `newdata`"),
    row("rstantools", "prior_summary(fit)", "in the units of the data"),
    row("rstantools", "predictive_error(fit)", no_records, FALSE),
    row("rstantools", "log_lik(fit)", no_parts, FALSE),
    row("stats", "update(fit, . ~ . - age)", "samples the new regression given the whole release"),
    row("nlme", "fixef(pool)", "means of the sites; for a fit of one release, `coef()`"),
    row("nlme", "ranef(pool)", "deviation of each site from the mean"),
    row("nlme", "VarCorr(pool)", "variances between sites, in the format of lme4's `as.data.frame()`"),
    row("brms", "conditional_effects(fit)", "with `plot()` and `print()` of brms"),
    row("brms", "hypothesis(fit, \"age > 0\")", "for names with `=`, such as cells of a table, use `contrast()`"),
    row("survival", "survfit(survival_fit)", "curves with posterior intervals, for `plot()`, `summary()` and `quantile()`"),
    row("generics", "tidy(fit, conf.int = TRUE)", "arguments and columns as in broom.mixed"),
    row("generics", "glance(fit)", "one row"),
    row("generics", "augment(fit)", no_records, FALSE),
    row("broom", "tidy(fit)", "the generic is from the package generics, as in broom.mixed"),
    row("emmeans", "emmeans(fit, ~ smoke)", "numbers at the posterior mean of their mean, all declared levels; intervals from the draws"),
    row("emmeans", "emtrends(fit, ~ smoke, var = \"age\")", "slopes"),
    row("emmeans", "contrast(fit, \"age > 0\")", "noiseaware's own `contrast()`, whichever package is attached last"),
    row("marginaleffects", "predictions(fit, newdata = newdata)", "without `newdata` over `insight::get_data(fit)`"),
    row("marginaleffects", "comparisons(fit, variables = \"smoke\", newdata = newdata)", "`avg_comparisons()` likewise"),
    row("marginaleffects", "slopes(fit, variables = \"age\", newdata = newdata)", "`avg_slopes()` likewise"),
    row("marginaleffects", "hypotheses(fit, \"age = 0\")", no_delta, FALSE),
    row("tidybayes", "add_epred_draws(newdata, fit, ndraws = 10)", "`ndraws`, `seed` and `re_formula` are honoured"),
    row("tidybayes", "add_linpred_draws(newdata, fit, ndraws = 10)", ""),
    row("tidybayes", "add_predicted_draws(newdata, fit, seed = 1)", ""),
    row("tidybayes", "gather_draws(fit, age, sigma)", "`spread_draws()` likewise"),
    row("ggdist", "mean_qi(posterior::as_draws_df(fit), age)", "`stat_halfeye()` and others accept the draws"),
    row("bayestestR", "describe_posterior(fit)", "of the coefficients; `component = \"all\"` for all parameters; a ROPE with `rope_range`"),
    row("bayestestR", "hdi(fit)", "`eti()`, `ci()`, `point_estimate()`"),
    row("bayestestR", "p_direction(fit)", ""),
    row("bayestestR", "simulate_prior(fit)", "of the coefficients"),
    row("bayestestR", "describe_prior(fit)", "location and scale are the median and mad unless the distribution states them"),
    row("bayestestR", "map_estimate(fit)", "`p_map()`, `estimate_density()`"),
    row("bayestestR", "spi(fit)", "`bci()`"),
    row("bayestestR", "diagnostic_posterior(fit)", "`effective_sample()`, `mcse()`"),
    row("bayestestR", "p_significance(fit, threshold = 100)", "with a threshold that you choose"),
    row("bayestestR", "rope(fit, range = c(-100, 100))", "`p_rope()`, `p_significance()`, with a range or threshold that you choose"),
    row("bayestestR", "rope_range(fit)", no_records, FALSE),
    row("bayestestR", "bayesfactor_parameters(fit)", no_densities, FALSE),
    row("bayestestR", "si(fit)", no_densities, FALSE),
    row("bayestestR", "equivalence_test(fit, range = c(-100, 100))", ""),
    row("insight", "is_model_supported(fit)", "`FALSE`: insight looks the class up in its own list; the functions below have methods"),
    row("insight", "get_parameters(fit)", "`find_parameters()`, `model_info()`"),
    row("insight", "get_priors(fit)", "location and scale are the median and mad unless the distribution states them"),
    row("insight", "get_predicted(fit, newdata)", "without `newdata` at the rows of `insight::get_data(fit)`"),
    row("insight", "get_data(fit)", "a grid of the covariates between their bounds, without the response: `get_response()` finds no such column and stops"),
    row("insight", "get_datagrid(fit)", "of the covariates, between their bounds"),
    row("insight", "get_intercept(fit)", "its draws"),
    row("insight", "get_df(fit)", no_residuals, FALSE),
    row("insight", "get_residuals(fit)", no_records, FALSE),
    row("insight", "get_deviance(fit)", no_likelihood, FALSE),
    row("insight", "get_statistic(fit)", no_p_value, FALSE),
    row("parameters", "model_parameters(fit)", "of the coefficients; `component = \"all\"`, `exponentiate = TRUE`"),
    row("parameters", "p_value(fit)", no_p_value, FALSE),
    row("see", "plot(bayestestR::hdi(fit))", "plots of what bayestestR and parameters return"),
    row("performance", "r2(fit)", "`model_performance()`; see `bayes_R2()`"),
    row("performance", "check_predictions(fit)", "is `pp_check(fit)`"),
    row("performance", "check_model(fit)", no_checks, FALSE),
    row("performance", "performance_mae(fit)", no_records, FALSE),
    row("performance", "performance_mse(fit)", no_records, FALSE),
    row("gtsummary", "tbl_regression(fit)", "also with `exponentiate = TRUE`"),
    row("modelsummary", "modelsummary(fit, output = \"data.frame\")", "medians, from `model_parameters()`; `statistic = \"conf.int\"` adds intervals"),
    row("priorsense", "powerscale_sensitivity(fit)", "powers of the prior's density, and of the likelihood (for a rate) or of the noise at the imputed totals"),
    row("SBC", "SBC_fit(noiseaware::sbc_backend(noiseaware::model_lm(), iter = 50), fit$release, cores = 1)",
        "a backend for `compute_SBC()`; untested against SBC itself, which is not on CRAN"),
    row("bridgesampling", "bridge_sampler(fit)", own_bridge, FALSE),
    row("rstantools", "loo_R2(fit)", no_parts, FALSE),
    row("loo", "loo(fit)", no_parts, FALSE),
    row("loo", "waic(fit)", no_parts, FALSE))
}

# the error of a method for a function that cannot work
refuse_meaningless <- function(name, call = caller_env()) {
  table <- works_with()
  note <- table$note[!table$works & startsWith(table$call, paste0(name, "("))][1L]
  stop_classed("meaningless", c("{.fn {name}} is not meaningful for a fit to a release.", x = "{note}"), call = call)
}

#' @importFrom stats residuals
#' @export
residuals.noiseaware_fit <- function(object, ...) refuse_meaningless("residuals")

#' @importFrom stats model.frame
#' @export
model.frame.noiseaware_fit <- function(formula, ...) refuse_meaningless("model.frame")

#' @importFrom stats logLik
#' @export
logLik.noiseaware_fit <- function(object, ...) refuse_meaningless("logLik")

#' @importFrom stats deviance
#' @export
deviance.noiseaware_fit <- function(object, ...) refuse_meaningless("deviance")

#' @importFrom stats weights
#' @export
weights.noiseaware_fit <- function(object, ...) refuse_meaningless("weights")

#' @importFrom stats df.residual
#' @export
df.residual.noiseaware_fit <- function(object, ...) refuse_meaningless("df.residual")

#' @importFrom stats anova
#' @export
anova.noiseaware_fit <- function(object, ...) refuse_meaningless("anova")

#' @importFrom stats drop1
#' @export
drop1.noiseaware_fit <- function(object, ...) refuse_meaningless("drop1")

#' @importFrom stats extractAIC
#' @export
extractAIC.noiseaware_fit <- function(fit, ...) refuse_meaningless("extractAIC")

#' @importFrom stats profile
#' @export
profile.noiseaware_fit <- function(fitted, ...) refuse_meaningless("profile")

#' @importFrom stats hatvalues
#' @export
hatvalues.noiseaware_fit <- function(model, ...) refuse_meaningless("hatvalues")

#' @importFrom stats influence
#' @export
influence.noiseaware_fit <- function(model, ...) refuse_meaningless("influence")

#' @importFrom stats case.names
#' @export
case.names.noiseaware_fit <- function(object, ...) refuse_meaningless("case.names")

#' @importFrom stats variable.names
#' @export
variable.names.noiseaware_fit <- function(object, ...) {
  check_no_dots(...)
  colnames(coefficient_draws(object))
}

#' @importFrom stats getCall
#' @export
getCall.noiseaware_fit <- function(x, ...) refuse_meaningless("getCall")

#' @importFrom stats median
#' @export
median.noiseaware_fit <- function(x, na.rm = FALSE, ...) refuse_meaningless("median")

#' @export
mean.noiseaware_fit <- function(x, ...) refuse_meaningless("mean")

#' @export
labels.noiseaware_fit <- function(object, ...) {
  check_no_dots(...)
  labels(stats::terms(object))
}

#' @exportS3Method rstantools::log_lik
log_lik.noiseaware_fit <- function(object, ...) refuse_meaningless("log_lik")

#' @exportS3Method rstantools::loo_R2
loo_R2.noiseaware_fit <- function(object, ...) refuse_meaningless("loo_R2")

#' @exportS3Method rstantools::predictive_error
predictive_error.noiseaware_fit <- function(object, ...) refuse_meaningless("predictive_error")

#' @exportS3Method generics::augment
augment.noiseaware_fit <- function(x, ...) refuse_meaningless("augment")

#' @exportS3Method loo::loo
loo.noiseaware_fit <- function(x, ...) refuse_meaningless("loo")

#' @exportS3Method loo::waic
waic.noiseaware_fit <- function(x, ...) refuse_meaningless("waic")

#' @exportS3Method bayestestR::bayesfactor_parameters
bayesfactor_parameters.noiseaware_fit <- function(posterior, ...) refuse_meaningless("bayesfactor_parameters")

#' @exportS3Method bayestestR::si
si.noiseaware_fit <- function(posterior, ...) refuse_meaningless("si")

#' @exportS3Method bridgesampling::bridge_sampler
bridge_sampler.noiseaware_fit <- function(samples, ...) refuse_meaningless("bridge_sampler")
