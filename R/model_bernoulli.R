#' Bernoulli model for a binary variable
#'
#' The variable is a factor with two levels, and the parameter is the probability of the second one. Or it is a 0/1 number, declared by the bounds `c(0, 1)`,
#' and the parameter is the probability of 1.
#'
#' One published number is enough: the count of one level, or the total of a 0/1 variable.
#'
#' @param variable The variable's name; `NULL` means the release's only variable. Or a formula such as `visits ~ ward` or `~ ward` for the groups of one
#'   release, see [groups].
#' @param prior Prior for that probability: [prior_beta()].
#'
#' @return A model: an object of class `model_bernoulli`. Its parameter is
#'   `prob[level]`, such as `prob[yes]`.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @seealso [model_categorical()] for more levels, [stat_counts()].
#' @family models
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' rel <- as_release(c(118.3, 69.1), st, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(rel, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#'
#' # the same variable as a number, of which the total is published
#' smokers <- stat_sums(~ smoke, bounds = list(smoke = c(0, 1)))
#' total <- as_release(69.1, smokers, mech_laplace(epsilon = 0.5), n = 189)
#' sample_posterior(total, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' @concept rate
#' @concept proportion
#' @concept percentage
#' @export
model_bernoulli <- function(variable = NULL, prior = prior_beta(1, 1)) {
  of <- read_variable(variable, "model_bernoulli")
  check_class(prior, "prior", "prior_beta", "prior_beta()", "prior")
  new_model("bernoulli", variable = of$variable, group = of$group, prior = prior, class = "model_bernoulli")
}

#' @export
format.model_bernoulli <- function(x, ...) {
  c("<model> Bernoulli",
    variable_line(x),
    paste0("  prob      ", format(x$prior)))
}

#' @export
variable_kinds.model_bernoulli <- function(x) c("code", "number")

#' @export
bind_columns.model_bernoulli <- function(model, columns, levels, formula, call) {
  columns <- bind_only_column(model$variable, columns, levels, call)
  number <- !columns$variable %in% names(levels)
  if (number && !(columns$lower == 0 && columns$upper == 1)) {
    stop_classed("variables", c("The variable of {.fn model_bernoulli} must have two levels, or be a number with bounds 0 and 1.",
                                x = "{.var {columns$name}} has the bounds {format_number(columns$lower)} and {format_number(columns$upper)}."), call = call)
  }
  levels <- if (number) stats::setNames(list(c("0", "1")), columns$name) else coded_levels(columns, levels, call)
  if (length(levels[[1L]]) != 2L) {
    stop_classed("variables", c("The variable of {.fn model_bernoulli} must have two levels, but {.var {columns$name}} has {length(levels[[1L]])}.",
                                i = "Use {.fn model_categorical}."), call = call)
  }
  weights <- list(matrix(c(model$prior$b, model$prior$a), 1L))
  bound <- bind_categorical(model, columns, levels, weights, list(NULL), parameters = paste0("prob[", levels[[1L]][2L], "]"),
                            class = "bound_bernoulli", last_alone = TRUE)
  bound$number <- number
  bound
}

#' @export
describe_model.bound_bernoulli <- function(bound) {
  paste("Bernoulli", bound$columns$name)
}

#' @export
value_of.bound_bernoulli <- function(bound) {
  list(mean = function(parameters) parameters[, 1L], draw = function(expected, parameters) stats::rbinom(length(expected), 1L, expected))
}
