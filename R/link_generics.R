# Generics of other packages, registered when those are loaded.

#' Methods for generics from other packages
#'
#' Each method is registered only if the package with the generic is installed.
#'
#' @param object,x A fit from [sample_posterior()]; for `prior_summary()` also a model.
#' @param statistic The statistic that a model will be fitted with.
#' @param newdata A data frame with the covariates, as in [predict()][predict.noiseaware_fit].
#' @param draws,ndraws Number of draws, evenly spread over the draws of the fit; all by default. The name differs between packages.
#' @param seed Fixes predictive draws; see [sample_posterior()].
#' @param re_formula `NULL` or `NA`, as in brms. It matters only for groups: see [predict()][pool_methods].
#' @param transform Whether to return the expected response instead of the linear predictor.
#' @param prob Probability inside the interval.
#' @param variables Names of variables; all by default. For `tidy()`, `"coefficients"` or `"all"`, as for [confint()][fit_methods]: for example, only `"all"`
#'   includes the standard deviation of a linear regression.
#' @param measure,margin For table models: the measure that `tidy()` reports instead of the parameters, see [table_measures()]. Odds ratios have the
#'   median as their estimate and the median absolute deviation (times 1.4826) as their error.
#' @param conf.int Whether `tidy()` adds intervals: `conf.low`, `conf.high`.
#' @param conf.level Their probability.
#' @param exponentiate Whether `tidy()` exponentiates coefficients and the ends of their intervals, for example to odds ratios; `std.error` is then the estimate
#'   times the coefficient's standard deviation.
#' @param ... For predictions from a fit of several sites: `site`, and `sites` for a new one, as in [predict()][pool_methods]. Otherwise empty, with two
#'   exceptions: `tidy()` ignores the arguments `effects` and `component` of broom.mixed, and `glance()` ignores arguments that functions of other packages pass
#'   to every model.
#'
#' @details
#' **Predictions.** `add_predicted_draws()`, `add_epred_draws()` and `add_linpred_draws()` of tidybayes use the corresponding functions of rstantools.
#' For a response with several levels, `posterior_epred()` is a draws x rows x levels array of the levels' probabilities and `posterior_predict()` a matrix of
#' their indices. `posterior_linpred()` then has a third dimension if levels have separate predictors.
#'
#' **Priors.** `rstantools::prior_summary()` shows the prior that was used, including priors scaled by the bounds, in the units of the data. Numbers are in the
#' order of the arguments in [priors], so the second number of a normal distribution is its standard deviation. `inverse_gamma(2, 3) of sigma^2` is a prior of
#' `sigma^2`, not of `sigma`. For a model without a release, use `rstantools::prior_summary(model, statistic)`.
#'
#' **Power-scaling.** The prior component is the density of the model's prior in natural values (with partial pooling, of the mean over sites). The likelihood
#' component is the likelihood of the published numbers if it is known: for one rate or probability, including pooled sites. Otherwise it is the density of the
#' noise at the imputed totals; its powers show the effect of more or less noise. If neither is available (method `"naive"`, noisy records, pooled regressions), a
#' message of class `noiseaware_message_likelihood` says that only `component = "prior"` works. priorsense itself does not accept a constant prior, such as
#' `prior_beta(1, 1)`.
#' @return Depends on the function:
#'
#' | package | function | value |
#' | --- | --- | --- |
#' | rstantools | `posterior_predict()` | a draws x rows matrix of a new record's response |
#' | | `posterior_epred()` | the same for the expected response |
#' | | `posterior_linpred()` | the same for the linear predictor |
#' | | `posterior_interval()` | a matrix with a row for each parameter |
#' | | `prior_summary()` | a data frame: `variable`, `prior`, and `median`, `mad`, `q5`, `q95` of 10,000 draws |
#' | generics, broom | `tidy()` | a data frame, rows as in `confint()`: `term`, `estimate` (posterior mean), `std.error` (posterior SD), interval, `rhat`, `ess` (bulk) |
#' | | `glance()` | one row: `method`, `exact`, `nobs`, `epsilon`, `chains`, `draws`, `rhat` (largest), `ess` (bulk, smallest) |
#' | priorsense | `powerscale_sensitivity()` and its plots | as for other models, with the two components described in Details |
#' | coda | `as.mcmc.list()` | the draws of each chain |
#' | | `as.mcmc()` | the draws of all chains, concatenated |
#' @family package interfaces
#' @name interop
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' if (requireNamespace("generics", quietly = TRUE)) generics::tidy(fit)
#' if (requireNamespace("rstantools", quietly = TRUE)) {
#'   rstantools::prior_summary(fit)
#'   dim(rstantools::posterior_predict(fit, data.frame(age = c(20, 30))))
#' }
NULL

#' @rdname interop
#' @exportS3Method rstantools::posterior_predict
posterior_predict.noiseaware_fit <- function(object, newdata, draws = NULL, seed = NULL, ..., ndraws = draws, re_formula = NULL) {
  check_site_dots(object, ...)
  check_no_groups(re_formula)
  thin_rows(predict_draws(object, newdata, "draws", seed, re_formula, ...), ndraws)
}

#' @rdname interop
#' @exportS3Method rstantools::posterior_epred
posterior_epred.noiseaware_fit <- function(object, newdata, draws = NULL, ..., ndraws = draws, seed = NULL, re_formula = NULL) {
  check_site_dots(object, ...)
  check_no_groups(re_formula)
  thin_rows(predict_draws(object, newdata, "expected", seed, re_formula, ...), ndraws)
}

#' @rdname interop
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.noiseaware_fit <- function(object, newdata, transform = FALSE, draws = NULL, ..., ndraws = draws, seed = NULL, re_formula = NULL) {
  check_site_dots(object, ...)
  check_flag(transform, "transform")
  check_no_groups(re_formula)
  call <- environment()
  if (transform) return(rstantools::posterior_epred(object, newdata, ndraws = ndraws, seed = seed, re_formula = re_formula, ...))
  if (inherits(object, "noiseaware_pool") && !is.null(re_formula)) {
    stop_argument("re_formula", "NULL for a linear predictor of groups or sites", describe(re_formula))
  }
  check_newdata(if (!missing(newdata)) newdata)
  seed <- check_seed(seed)
  remind_troubles(object)
  object <- with_seed(seed, one_of_sites(object, ..., call = call))
  thin_rows(linear_predictor(object, newdata), ndraws)
}

#' @rdname interop
#' @exportS3Method rstantools::predictive_interval
predictive_interval.noiseaware_fit <- function(object, prob = 0.9, newdata, ..., seed = NULL) {
  check_site_dots(object, ...)
  prob <- check_number(prob, "prob", "a number between 0 and 1", 0, 1, strict = TRUE)
  draws <- stats::predict(object, newdata, type = "draws", seed = seed, ...)
  if (!is.null(attr(draws, "levels"))) {
    stop_classed("method", c("There is no interval for the levels of a response.",
                             i = "{.code predict(interval = \"predictive\")} gives the smallest set of levels that contains a new response."))
  }
  ends <- t(draws_interval(draws, prob))
  dimnames(ends) <- list(NULL, paste0(format(50 + c(-50, 50) * prob, trim = TRUE, digits = 3), "%"))
  ends
}

# the fit of one site, if there are several
one_of_sites <- function(fit, site = NULL, sites = NULL, call = caller_env()) if (inherits(fit, "noiseaware_pool")) site_fit(fit, site, sites, call) else fit

# of a fit of several sites, which one is meant; see predict.noiseaware_pool()
check_site_dots <- function(fit, ..., call = caller_env()) {
  given <- list(...)
  known <- setdiff(names(formals(sys.function(sys.parent()))), "...")
  check_argument_names(given, c(if (inherits(fit, "noiseaware_pool")) c("site", "sites", "allow_new_levels"), if (length(given)) known), call = call)
}

# the draws of predict(); a fit of groups alone has effects to leave out
predict_draws <- function(object, newdata, type, seed, re_formula, ..., call = caller_env()) {
  if (!inherits(object, "noiseaware_pool")) {
    newdata <- if (missing(newdata)) default_newdata(object, call) else newdata
    check_newdata(newdata, call)
    return(stats::predict(object, newdata, type = type, seed = seed, ...))
  }
  stats::predict(object, newdata, type = type, seed = seed, re_formula = re_formula, ...)
}

# brms's way to leave out effects of groups
check_no_groups <- function(re_formula, call = caller_env()) {
  if (!is.null(re_formula) && !identical(re_formula, NA)) {
    stop_argument("re_formula", "NULL or NA", describe(re_formula), call = call)
  }
}

# that many rows, evenly spread
thin_rows <- function(x, draws, call = caller_env()) {
  if (is.null(draws)) return(x)
  draws <- check_count(draws, "ndraws", call = call)
  if (draws > nrow(x)) stop_argument("ndraws", paste("at most", nrow(x)), describe(draws), call = call)
  at <- round(seq(1, nrow(x), length.out = draws))
  if (length(dim(x)) == 3L) return(x[at, , , drop = FALSE])
  structure(x[at, , drop = FALSE], levels = attr(x, "levels"))
}

#' @rdname interop
#' @exportS3Method rstantools::posterior_interval
posterior_interval.noiseaware_fit <- function(object, prob = 0.9, variables = NULL, ...) {
  check_no_dots(...)
  stats::confint(object, check_names_of(variables, "variables", "variables of the fit", posterior::variables(object$draws)), prob)
}

#' @rdname interop
#' @exportS3Method generics::tidy
tidy.noiseaware_fit <- function(x, conf.int = TRUE, conf.level = 0.95, exponentiate = FALSE, ..., variables = "coefficients", measure = NULL, margin = NULL) {
  # broom.mixed's, which modelsummary hands on
  check_argument_names(list(...), c("conf.int", "conf.level", "exponentiate", "variables", "measure", "margin", "effects", "component"))
  variables <- check_choice(variables, "variables", c("coefficients", "all"))
  check_flag(conf.int, "conf.int")
  check_flag(exponentiate, "exponentiate")
  conf.level <- check_number(conf.level, "conf.level", "a number between 0 and 1", 0, 1, strict = TRUE)
  effects <- coefficient_terms(x)
  if (exponentiate && is.null(effects)) stop_argument("exponentiate", "FALSE if the model has no coefficients", "TRUE")
  remind_troubles(x)
  if (!is.null(measure) || !is.null(margin)) x$draws <- table_measures(x, margin, measure %||% "probability")
  else if (variables == "coefficients" && !is.null(effects)) x$draws <- exactly(x$draws, effects)
  # the mean of a ratio may be infinite
  location <- if (identical(measure, "odds_ratio")) c("median", "mad") else c("mean", "sd")
  table <- without_capping(posterior::summarise_draws(x$draws, location, "rhat", "ess_bulk"))
  table[-1L] <- lapply(table[-1L], as.double)
  out <- data.frame(term = table$variable, estimate = table[[2L]], std.error = table[[3L]])
  if (conf.int) out[c("conf.low", "conf.high")] <- as.data.frame(t(draws_interval(parameter_matrix(x), conf.level)))
  if (exponentiate) {
    at <- out$term %in% effects
    out[at, -(1:3)] <- exp(out[at, -(1:3)])
    out$estimate[at] <- exp(out$estimate[at])
    out$std.error[at] <- out$estimate[at] * out$std.error[at]
  }
  cbind(out, rhat = table$rhat, ess = table$ess_bulk)
}

#' @rdname interop
#' @exportS3Method generics::glance
glance.noiseaware_fit <- function(x, ...) {
  table <- without_capping(posterior::summarise_draws(x$draws, "rhat", "ess_bulk"))
  # each site is a population of its own: what one person risks is the most of all
  releases <- if (inherits(x, "noiseaware_pool")) x$release else list(x$release)
  epsilon <- max(vapply(releases, function(r) if (is.null(r)) NA_real_ else as.double(privacy(r)$epsilon), 0))
  data.frame(method = x$method, exact = x$exact, nobs = nobs(x), epsilon = epsilon, chains = dim(x$draws)[2L],
             draws = posterior::ndraws(x$draws), rhat = as.double(max(table$rhat)), ess = as.double(min(table$ess_bulk)))
}

#' @rdname interop
#' @exportS3Method coda::as.mcmc.list
as.mcmc.list.noiseaware_fit <- function(x, ...) {
  check_no_dots(...)
  start <- x$run$warmup + x$run$thin
  chains <- lapply(seq_len(dim(x$draws)[2L]), function(k) {
    coda::mcmc(matrix(x$draws[, k, ], nrow(x$draws), dimnames = list(NULL, posterior::variables(x$draws))), start = start, thin = x$run$thin)
  })
  coda::mcmc.list(chains)
}

#' @rdname interop
#' @exportS3Method coda::as.mcmc
as.mcmc.noiseaware_fit <- function(x, ...) {
  check_no_dots(...)
  coda::mcmc(parameter_matrix(x))
}

# ---- our functions under a generic of another package -----------------------------------------

#' @exportS3Method survey::calibrate
calibrate.noiseaware_model <- function(design, ...) calibrate(design, ...)

#' @exportS3Method survey::calibrate
calibrate.noiseaware_fit <- calibrate.noiseaware_model

#' @exportS3Method parameters::p_value
p_value.noiseaware_release <- function(model, ...) p_value(model, ...)

#' @exportS3Method parameters::p_value
p_value.noiseaware_fit <- function(model, ...) refuse_meaningless("p_value")
