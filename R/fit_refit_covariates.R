# Refits with other distributions of a covariate. A release of cross-products has two moments of a covariate. In a linear regression without clamping the
# coefficients depend on nothing else: X'y | X'X, beta, sigma contains no other function of X. In any other regression they do, and the distribution that the
# model assumes for the covariate decides between answers that the release cannot distinguish.
#
# Each of the distributions of model_covariate.R is tried for one covariate at a time. A refit is an alternative answer to the same release, if it fits.
# Refits that the release contradicts (fit_contradiction.R), or whose chains have not converged, do not count.
#
# Cost: a fit by "augment" for each covariate and distribution.

# iterations: other distributions mix more slowly than normal ones; chains that differ are doubled so often
least_refit <- 2000
most_doublings <- 3L

#' Sensitivity of a regression to the covariates' distributions
#'
#' Fits a regression again with other distributions for its covariates, one covariate at a time, and compares the coefficients. A release of cross-products
#' contains only two moments of a covariate, its total and the total of its squares. Given these, a logistic or other nonlinear regression still depends on the
#' shape of the covariate's distribution: normal, bimodal, skewed, or spread out to its bounds. If coefficients differ by more than their posterior standard
#' deviation, the result depends on the model's assumption rather than on the data.
#'
#' @param fit A fit of a regression, from [sample_posterior()], with numeric covariates: [model_glm()], [model_logistic()], [model_lm()].
#' @param covariates Names of the covariates to vary; `NULL`: all numeric covariates.
#' @param ... Arguments of [sample_posterior()] for the refits, such as `chains` and `iter`; by default as in the fit, with at least 2,000 iterations.
#'   Chains that differ are extended, up to eight times. The method is `"augment"`, the only one available.
#' @param x The value of `refit_covariates()`.
#'
#' @return A data frame of class `noiseaware_refits`, with a row for each refit and coefficient. The printed table shows the range of each coefficient, including
#'   the original fit. The columns are:
#'
#' | column | meaning |
#' | --- | --- |
#' | `covariate` | the covariate whose distribution was changed |
#' | `distribution` | "normal", "mixture", "lognormal" (if the lower bound is not negative) or "beta", except the fit's own |
#' | `coefficient`, `mean`, `sd` | a coefficient, its mean and standard deviation in the refit |
#' | `difference` | the refit's mean minus the fit's, in posterior standard deviations of the fit |
#' | `error` | the Monte Carlo error of the difference, in the same units |
#' | `left_out` | why a refit does not count: "contradicted" by the release or "chains differ" (R-hat above 1.05), otherwise `NA` |
#' @details
#' The distributions have default priors: [covariate_mixture()], [covariate_lognormal()], [covariate_beta()], each **independent of the other
#' covariates**. With several covariates, a refit therefore ignores their dependence. If the release shows such dependence, it contradicts the refit, which then
#' does not count.
#'
#' In a linear regression with bounds that are natural limits ([declare_outside()]), the coefficients hardly differ. In other regressions with such limits,
#' [sample_posterior()] computes approximately what skewed covariates would change, and warns. `refit_covariates()` samples from the exact posteriors.
#'
#' One remedy is a release with more information about the covariate, such as [stat_counts()] of the covariate cut into classes by the response, or a
#' [stat_histogram()] of it. Another is a known distribution, given to the model as in `covariates = list(age = covariate_beta())`.
#' @section Warnings: `noiseaware_warning_covariates`: the range of a coefficient exceeds its posterior standard deviation, by more than Monte Carlo error.
#' @section Errors: `noiseaware_error_argument`, and those of [sample_posterior()].
#' @family summaries of fits
#' @examples
#' st <- stat_crossprod(low ~ lwt, list(low = c(0, 1), lwt = c(80, 260)), outside = "none")
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 5))
#' fit <- sample_posterior(rel, model_logistic(), chains = 2, iter = 300, seed = 1)
#' refit_covariates(fit)
#' @export
refit_covariates <- function(fit, covariates = NULL, ...) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  able <- inherits(fit$bound, "bound_regression") && !inherits(fit, "noiseaware_pool") && is.null(fit$bound$moments) && !is.null(fit$asked) && !is.null(fit$words)
  numbers <- if (able) number_covariates(fit$bound)
  if (length(numbers) == 0L) {
    stop_classed("argument", c("{.arg fit} must be a fit of a regression with numeric covariates, made by {.fn sample_posterior}.",
                               x = "Its model is: {describe_model(fit$bound)}."))
  }
  covariates <- if (is.null(covariates)) numbers else check_names_of(covariates, "covariates", "numeric covariates", numbers)
  given <- list(...)
  check_argument_names(given, setdiff(names(formals(sample_posterior)), c("release", "model", "method", "...")))
  given$iter <- given$iter %||% max(fit$asked$iter, least_refit)
  each <- do.call(rbind, lapply(covariates, function(name) data.frame(covariate = name, distribution = other_distributions(fit$bound, name))))
  rows <- lapply(seq_len(nrow(each)), function(k) {
    seed <- if (is.null(given$seed)) chain_seed(fit$words, 4300L + k) else given$seed
    model <- with_distribution(fit$asked$model, each$covariate[k], each$distribution[k])
    with_refit(fit, each[k, ], refit_quietly(fit, c(list(model = model, method = "augment", seed = seed), given[names(given) != "seed"])))
  })
  result <- structure(do.call(rbind, rows), fit = refit_answers(fit), class = c("noiseaware_refits", "data.frame"))
  warn_refits(result)
  result
}

other_distributions <- function(bound, name) {
  row <- bound$base[match(name, bound$base$name), ]
  setdiff(c("normal", "mixture", if (row$lower >= 0) "lognormal", "beta"), distribution_of(bound$model, name))
}

with_distribution <- function(model, name, distribution) {
  model$covariates$lone[[name]] <- switch(distribution, mixture = covariate_mixture(), lognormal = covariate_lognormal(), beta = covariate_beta())
  if (length(model$covariates$lone) == 0L) model$covariates$lone <- NULL
  model
}

# `init` and `control` of the fit are for its own method and parameters
refit_quietly <- function(fit, given) {
  if (!"init" %in% names(given)) given["init"] <- list(NULL)
  if (!"control" %in% names(given)) given$control <- list()
  without_troubles(without_progress(suppressMessages({
    again <- refit(fit, given)
    for (doubling in seq_len(most_doublings)) if (!refit_mixed(again)) again <- extend(again, given$iter * 2^(doubling - 1L))
    again
  })))
}

refit_mixed <- function(again) isTRUE(max(mixing_diagnostics(again)$rhat[colnames(coefficient_draws(again))]) <= apart_r_hat)

refit_answers <- function(fit) {
  draws <- coefficient_draws(fit)
  data.frame(coefficient = colnames(draws), mean = unname(colMeans(draws)), sd = unname(apply(draws, 2L, stats::sd)),
             error = unname(monte_carlo_error(fit, colnames(draws))))
}

with_refit <- function(fit, of, again) {
  a <- refit_answers(fit)
  b <- refit_answers(again)
  left_out <- if (!refit_mixed(again)) "chains differ" else if (!is.null(contradiction_trouble(again))) "contradicted" else NA_character_
  data.frame(of, coefficient = b$coefficient, mean = b$mean, sd = b$sd, difference = (b$mean - a$mean) / a$sd,
             error = sqrt(a$error^2 + b$error^2) / a$sd, left_out = left_out, row.names = NULL)
}

# Of each coefficient the least and the greatest mean of the fit and of the refits that count, and how far apart they are in the fit's sds.
refit_ranges <- function(refits) {
  own <- attr(refits, "fit")
  rows <- lapply(seq_len(nrow(own)), function(k) {
    of <- refits[is.na(refits$left_out) & refits$coefficient == own$coefficient[k], ]
    means <- c(own$mean[k], of$mean)
    data.frame(coefficient = own$coefficient[k], mean = own$mean[k], sd = own$sd[k], lowest = min(means), highest = max(means),
               range = diff(range(means)) / own$sd[k], error = max(0, of$error))
  })
  do.call(rbind, rows)
}

hanging_coefficients <- function(ranges) ranges[which(ranges$range - 2 * ranges$error > 1), ]

warn_refits <- function(refits) {
  found <- hanging_coefficients(refit_ranges(refits))
  if (nrow(found) == 0L) return(invisible())
  each <- sprintf("%s: %s to %s, compared with %s (sd %s) in the fit.", found$coefficient, format_number(found$lowest, 3), format_number(found$highest, 3),
                  format_number(found$mean, 3), format_number(found$sd, 2))
  rlang::warn(c("The answer depends on the distribution of the covariates, which a release of cross-products does not show.",
                stats::setNames(utils::head(each, 4L), rep("x", min(4L, length(each)))),
                i = "Specify the distribution if you know it, as in `covariates = list(x = covariate_beta())`; or release counts of covariate classes by response."),
              class = "noiseaware_warning_covariates")
}

#' @rdname refit_covariates
#' @export
print.noiseaware_refits <- function(x, ...) {
  ranges <- refit_ranges(x)
  each <- unique(x[c("covariate", "distribution", "left_out")])
  words <- paste(each$covariate, each$distribution)
  line <- function(text, at) if (any(at)) cat(text, ": ", paste(words[at], collapse = ", "), "\n", sep = "")
  line("<refits> with other distributions of covariates", is.na(each$left_out))
  line("left out, contradicted by the release", each$left_out %in% "contradicted")
  line("left out, chains differ (a larger `iter` may help)", each$left_out %in% "chains differ")
  cat("\n")
  shown <- ranges[c("coefficient", "mean", "sd", "lowest", "highest", "range")]
  shown[-1L] <- lapply(shown[-1L], function(v) formatC(v, digits = 3, format = "g", flag = "#"))
  print(shown, row.names = FALSE)
  cat("\nlowest and highest mean of the fit and the refits; range: in posterior standard deviations of the fit\n")
  found <- hanging_coefficients(ranges)
  if (nrow(found)) cat("! Depend on the covariates' distribution: ", shorten_list(found$coefficient, 5L), "\n", sep = "")
  invisible(x)
}
