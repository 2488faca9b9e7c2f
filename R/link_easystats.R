# parameters, performance and gtsummary: tables of coefficients, and which measures need records.

#' @exportS3Method parameters::model_parameters
model_parameters.noiseaware_fit <- function(model, ..., component = "conditional", exponentiate = FALSE, diagnostic = c("Rhat", "ESS")) {
  check_flag(exponentiate, "exponentiate")
  effects <- coefficient_terms(model)
  if (exponentiate && is.null(effects)) stop_argument("exponentiate", "FALSE if the model has no coefficients", "TRUE")
  remind_troubles(model)
  table <- parameters::model_parameters(posterior::as_draws_df(get_parameters.noiseaware_fit(model, component)), ...)
  checks <- diagnostic_posterior.noiseaware_fit(model, component = component)
  shown <- if (identical(diagnostic, "all")) c("Rhat", "ESS") else intersect(c("Rhat", "ESS"), diagnostic)
  table[shown] <- checks[match(table$Parameter, checks$Parameter), shown]
  # the probability of direction stays the coefficient's
  if (exponentiate) {
    at <- table$Parameter %in% effects
    ends <- intersect(c("Median", "Mean", "MAP", "CI_low", "CI_high"), names(table))
    table[at, ends] <- exp(table[at, ends])
    # the spread by the delta method, as in tidy()
    for (of in list(c("Median", "MAD"), c("Mean", "SD"))) if (all(of %in% names(table))) table[at, of[2L]] <- table[at, of[1L]] * table[at, of[2L]]
  }
  table
}

#' @exportS3Method performance::r2_posterior
r2_posterior.noiseaware_fit <- function(model, verbose = TRUE, ..., seed = 1) {
  r2 <- bayes_R2.noiseaware_fit(model, ..., seed = seed)
  list(R2_Bayes = stats::setNames(r2, rep("R2", length(r2))))
}

#' @exportS3Method performance::r2
r2.noiseaware_fit <- function(model, ci = 0.95, ...) performance::r2_bayes(model, ci = ci %||% 0.95, ...)

#' @exportS3Method performance::model_performance
model_performance.noiseaware_fit <- function(model, ...) {
  r2 <- bayes_R2.noiseaware_fit(model, seed = 1)
  table <- data.frame(R2 = stats::median(r2))
  if (regression_of(model)$family$family == "gaussian") table$Sigma <- stats::sigma(model)
  structure(table, class = c("performance_model", "data.frame"))
}

#' @exportS3Method performance::check_predictions
check_predictions.noiseaware_fit <- function(object, ...) pp_check.noiseaware_fit(object)

#' @exportS3Method performance::check_model
check_model.noiseaware_fit <- function(x, ...) refuse_meaningless("check_model")

#' @exportS3Method performance::performance_mae
performance_mae.noiseaware_fit <- function(model, ...) refuse_meaningless("performance_mae")

#' @exportS3Method performance::performance_mse
performance_mse.noiseaware_fit <- function(model, ...) refuse_meaningless("performance_mse")

# ---- gtsummary, which asks broom.helpers -----------------------------------------------------

#' @exportS3Method gtsummary::tbl_regression
tbl_regression.noiseaware_fit <- function(x, tidy_fun = tidy.noiseaware_fit, ...) {
  if (is.null(response_of(x$bound))) {
    stop_classed("method", c("The table shows the coefficients of a regression, but this is a fit of {describe_model(x$bound)}.", i = "{.fn tidy} shows all parameters."))
  }
  if (inherits(x$bound, "bound_categories") && !is_ordered_family(x$bound$model)) {
    stop_classed("method", c("The table has one coefficient for each term, but {.val categorical} has one for each level except the first.",
                             i = "{.fn tidy} shows all of them."))
  }
  NextMethod(tidy_fun = tidy_fun)
}

#' @exportS3Method broom.helpers::model_get_xlevels
model_get_xlevels.noiseaware_fit <- function(model) {
  levels <- model$bound$levels
  if (!is.null(response_of(model$bound))) levels <- levels[intersect(names(levels), covariate_columns(model$bound)$variable)]
  if (length(levels)) levels
}
