# brms: conditional effects in its format, so that its print() and plot() show them.

#' Conditional effects of covariates
#'
#' The expected response, or a new response, over the range of each covariate with the others held fixed. The result has the format of brms, so its `plot()`
#' method works.
#'
#' @param x A fit of a regression.
#' @param effects Names of covariates, or pairs of them as `"age:smoke"`. `NULL`: each covariate, and each pair with a product in the formula.
#' @param conditions A data frame with values of the other covariates, one row per condition, with titles as row names. `NULL`: numbers at the posterior mean of
#'   their mean (or at the middle of their bounds if the model has no mean), factors at their first level.
#' @param int_conditions A named list of values for the second of two covariates; by default all levels, or the points at a quarter, half and three quarters of
#'   the way between the bounds.
#' @param prob Probability inside the intervals.
#' @param method `"posterior_epred"`: the expected response; `"posterior_predict"`: a new response; `"posterior_linpred"`: the linear predictor.
#' @param resolution Number of points between the bounds of a numeric covariate.
#' @param seed Fixes predictive draws; see [sample_posterior()].
#' @param ... For a fit of several sites: `site`, and `sites` for a new one, as in [predict()][pool_methods]. With partial pooling and no `site`, the effects
#'   are for a site with the mean parameters, as in brms.
#' @return An object of class `brms_conditional_effects`, a list with a data frame for each effect. The data frame has the covariates and `estimate__`
#'   (posterior median), `se__` (standard deviation), `lower__`, `upper__`; for a response with several levels, it has a row for each level, `cats__`.
#' @details The generic is from brms. Without brms, `plot(fit, "predictive")` shows the same for one covariate.
#' @section Errors: `noiseaware_error_argument`, and those of [predict()][predict.noiseaware_fit].
#' @family package interfaces
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' if (requireNamespace("brms", quietly = TRUE)) plot(brms::conditional_effects(fit), ask = FALSE)
#' @exportS3Method brms::conditional_effects
conditional_effects.noiseaware_fit <- function(x, effects = NULL, conditions = NULL, int_conditions = NULL, prob = 0.95,
                                               method = c("posterior_epred", "posterior_predict", "posterior_linpred"), resolution = 100, seed = NULL, ...) {
  check_site_dots(x, ...)
  method <- if (missing(method)) "posterior_epred" else check_choice(method, "method", c("posterior_epred", "posterior_predict", "posterior_linpred"))
  prob <- check_number(prob, "prob", "a number between 0 and 1", 0, 1, strict = TRUE)
  resolution <- check_count(resolution, "resolution", lower = 2)
  seed <- check_seed(seed)
  remind_troubles(x)
  call <- environment()
  effects <- chosen_effects(x, effects)
  x <- with_seed(seed, if (has_average(x) && is.null(list(...)$site)) average_site(x) else one_of_sites(x, ..., call = call))
  conditions <- check_conditions(x, conditions)
  shown <- lapply(effects, effect_table, fit = x, conditions = conditions, int_conditions = int_conditions, prob = prob, method = method, points = resolution,
                  seed = seed, call = call)
  structure(shown, names = vapply(effects, paste, "", collapse = ":"), class = "brms_conditional_effects")
}

# a list of one or two names each
chosen_effects <- function(fit, effects, call = caller_env()) {
  all <- plotted_covariates(fit, call)
  if (is.null(effects)) {
    terms <- strsplit(attr(stats::terms(fixed_formula(fit)), "term.labels"), ":", fixed = TRUE)
    return(c(as.list(all), Filter(function(term) length(term) == 2L && all(term %in% all), terms)))
  }
  if (!is.character(effects) || length(effects) == 0L) stop_argument("effects", "NULL or names of covariates", describe(effects), call = call)
  lapply(strsplit(effects, ":", fixed = TRUE), function(names) {
    if (length(names) > 2L) stop_argument("effects", "of one or two covariates each", paste(names, collapse = ":"), call = call)
    check_names_of(names, "effects", "covariates of the fit", all, call)
  })
}

check_conditions <- function(fit, conditions, call = caller_env()) {
  if (is.null(conditions)) return(data.frame(row.names = "1"))
  if (!is.data.frame(conditions) || nrow(conditions) == 0L) stop_argument("conditions", "a data frame with at least one row", describe_shape(conditions), call = call)
  check_names_of(names(conditions), "conditions", "covariates of the fit", plotted_covariates(fit, call), call)
  conditions
}

effect_table <- function(fit, names, conditions, int_conditions, prob, method, points, seed, call) {
  values <- stats::setNames(list(covariate_range(fit, names[1L], points)), names[1L])
  if (length(names) == 2L) {
    other <- covariate_range(fit, names[2L], 5L)
    values[[names[2L]]] <- int_conditions[[names[2L]]] %||% if (is.factor(other)) other else other[2:4]
  }
  rows <- do.call(rbind, lapply(seq_len(nrow(conditions)), function(k) {
    held <- as.list(conditions[k, setdiff(base::names(conditions), names), drop = FALSE])
    cbind(covariate_rows(fit, c(values, held)), cond__ = factor(rownames(conditions)[k], rownames(conditions)))
  }))
  of <- switch(method, posterior_epred = posterior_epred.noiseaware_fit, posterior_predict = posterior_predict.noiseaware_fit,
               posterior_linpred = posterior_linpred.noiseaware_fit)
  draws <- of(fit, rows[base::names(rows) != "cond__"], seed = seed)
  categorical <- length(dim(draws)) == 3L
  if (categorical) {
    if (length(names) == 2L) stop_argument("effects", "of one covariate each: each level of the response has a curve", paste(names, collapse = ":"), call = call)
    levels <- dimnames(draws)[[3L]]
    rows <- cbind(rows[rep(seq_len(nrow(rows)), length(levels)), ], cats__ = factor(rep(levels, each = nrow(rows)), levels))
    draws <- matrix(draws, nrow(draws))
    names <- c(names, "cats__")
  }
  rows$effect1__ <- rows[[names[1L]]]
  if (length(names) == 2L) rows$effect2__ <- if (is.factor(rows[[names[2L]]])) rows[[names[2L]]] else factor(format_number(rows[[names[2L]]], 4))
  ends <- draws_interval(draws, prob)
  rows[c("estimate__", "se__")] <- list(apply(draws, 2L, stats::median), apply(draws, 2L, stats::sd))
  rows[c("lower__", "upper__")] <- list(ends[1L, ], ends[2L, ])
  response <- fit$bound$columns$variable[1L]
  structure(rows, row.names = seq_len(nrow(rows)), effects = names, response = response, surface = FALSE, categorical = categorical, ordinal = FALSE,
            catscale = if (categorical) "Probability", points = data.frame())
}
