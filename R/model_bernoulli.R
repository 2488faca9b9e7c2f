#' A yes-or-no variable
#'
#' A factor of two levels; the parameter is the probability of the second one.
#'
#' @param variable The variable's name; `NULL` takes the release's only variable.
#' @param prior Of that probability: [prior_beta()].
#'
#' @return A model: an object of class `model_bernoulli`. Its parameter is
#'   `prob[level]`, such as `prob[yes]`.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @seealso [model_categorical()] for more levels, [stat_counts()].
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' @export
model_bernoulli <- function(variable = NULL, prior = prior_beta(1, 1)) {
  check_variable(variable, "variable", null = TRUE)
  check_class(prior, "prior", "prior_beta", "prior_beta()", "prior")
  new_model("bernoulli", variable = variable, prior = prior, class = "model_bernoulli")
}

#' @export
format.model_bernoulli <- function(x, ...) {
  c("<model> Bernoulli",
    paste0("  variable  ", x$variable %||% "the release's"),
    paste0("  prob      ", format(x$prior)))
}

#' @export
variable_kinds.model_bernoulli <- function(x) "code"

#' @export
bind_columns.model_bernoulli <- function(model, columns, levels, formula, call) {
  columns <- bind_only_column(model$variable, columns, call)
  levels <- coded_levels(columns, levels, call)
  if (length(levels[[1L]]) != 2L) {
    stop_classed("variables", c("The variable of {.fn model_bernoulli} must have two levels, but {.var {columns$name}} has {length(levels[[1L]])}.",
                                i = "Use {.fn model_categorical}."), call = call)
  }
  weights <- list(matrix(c(model$prior$b, model$prior$a), 1L))
  bind_categorical(model, columns, levels, weights, list(NULL), parameters = paste0("prob[", levels[[1L]][2L], "]"), class = "bound_bernoulli", last_alone = TRUE)
}

#' @export
describe_model.bound_bernoulli <- function(bound) {
  paste("Bernoulli", bound$columns$name)
}
