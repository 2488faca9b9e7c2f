# The expected response of a fit for given covariates.

# draws x rows of the expected response; of a response of several levels draws x rows x levels of their probabilities
expected_response <- function(fit, newdata, call = caller_env()) {
  if (!is.null(value_of(fit$bound))) return(expected_value(fit, newdata, call))
  regression_of(fit, call)
  expected_of(fit$bound, fit, newdata, call)
}

expected_of <- function(bound, fit, newdata, call) UseMethod("expected_of")

#' @export
expected_of.default <- function(bound, fit, newdata, call) response_of(bound)$mean(linear_predictor(fit, newdata, call))

# the same without covariates
expected_value <- function(fit, newdata, call) {
  if (!is.data.frame(newdata)) stop_argument("newdata", "a data frame", describe(newdata), "data", call)
  matrix(value_of(fit$bound)$mean(own_parameters(fit)), posterior::ndraws(fit$draws), nrow(newdata))
}

# draws x rows of beta' x; draws x rows x predictors where there are several
linear_predictor <- function(fit, newdata, call = caller_env()) {
  regression_of(fit, call)
  linear_predictor_of(fit$bound, fit, newdata, call)
}

linear_predictor_of <- function(bound, fit, newdata, call) UseMethod("linear_predictor_of")

#' @export
linear_predictor_of.default <- function(bound, fit, newdata, call) {
  x <- covariate_values(fit, newdata, call)
  eta <- unname(coefficient_values(fit) %*% t(cbind(1, term_values(fit$bound, x))))
  offset <- offset_values(fit$bound, x)
  if (is.null(offset)) eta else eta + rep(offset, each = nrow(eta))
}

# draws x coefficients, also where they are fixed
coefficient_values <- function(fit) {
  fields <- fit$bound$spec$fields
  if (is.null(fields[["beta"]])) return(coefficient_draws(fit))
  centring <- bound_centring(fit$bound)
  matrix(centring$matrix %*% fields[["beta"]] + centring$shift, posterior::ndraws(fit$draws), length(fields[["beta"]]), byrow = TRUE)
}

regression_of <- function(fit, call = caller_env()) {
  response_of(fit$bound) %||%
    stop_classed("method", c("Only a fit of a regression, such as {.fn model_lm} or {.fn model_glm}, can predict a response.",
                             i = "Without covariates, {.fn simulate} draws new records from the posterior predictive distribution."), call = call)
}

covariate_values <- function(fit, newdata, call = caller_env()) {
  record_matrix(newdata, (fit$bound$base %||% fit$bound$design)[-1L, ], fit$bound$levels, call, "newdata")
}

# a row for each of `newdata`, a column for each coefficient
design_matrix <- function(fit, newdata, call = caller_env()) {
  x <- covariate_values(fit, newdata, call)
  cbind("(Intercept)" = rep(1, nrow(x)), term_values(fit$bound, x))
}
