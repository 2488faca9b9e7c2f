#' Exponential model
#'
#' x ~ Exponential(rate): waiting times, with an unknown rate.
#'
#' @param variable Name of the variable; `NULL` means the release's only variable. Or a formula such as `visits ~ ward` or `~ ward` for the groups of one
#'   release, see [groups].
#' @param prior Prior for the rate: [prior_gamma()]. The defaults are shape 1 and a mean derived from the middle of the public bounds, E(rate) = 1 / middle.
#'
#' @return A model: an object of class `model_exponential`. Its parameter is
#'   `rate`, one over the mean of a record.
#' @details If records outside the bounds are left out (`outside = "drop"`), the
#'   total of `~ time` alone is small both for short times and for long times that are mostly left out. The posterior may then have two modes, and the chains
#'   may not move between them. Clamp, or release a second total such as `I(time^2)`.
#'
#' @section Errors: `noiseaware_error_prior` (also if a prior scaled by the bounds is used and their middle is not positive), `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @references
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian
#' inference for exponential families. *Advances in Neural Information
#' Processing Systems* 31 (the model of their section 4, with records outside
#' the bounds left out; here the inference is exact).
#' @family models
#' @examples
#' model_exponential()
#' st <- stat_sums(~ time, bounds = list(time = c(0, 10)))
#' set.seed(1)
#' rel <- simulate_release(data.frame(time = rexp(200, 0.5)), st, mech_laplace(epsilon = 1))
#' sample_posterior(rel, model_exponential(), chains = 2, iter = 400, seed = 1)
#' @export
model_exponential <- function(variable = NULL, prior = prior_gamma()) {
  of <- read_variable(variable, "model_exponential")
  check_class(prior, "prior", "prior_gamma", "prior_gamma()", "prior")
  new_model("exponential", variable = of$variable, group = of$group, prior = prior, class = "model_exponential")
}

#' @export
format.model_exponential <- function(x, ...) {
  c("<model> exponential",
    variable_line(x),
    paste0("  rate      ", format(x$prior)))
}

#' @export
variable_kinds.model_exponential <- function(x) "number"

#' @export
bind_columns.model_exponential <- function(model, columns, levels, formula, call) {
  columns <- bind_number(model$variable, columns, levels, call)
  fields <- rate_prior(model$prior, columns, function(middle) 1 / middle, call)
  structure(list(model = model, columns = columns, levels = list(), spec = list(name = "exponential", fields = fields),
                 parameters = "rate"), class = c("bound_exponential", "noiseaware_bound"))
}

#' @export
describe_model.bound_exponential <- function(bound) paste("exponential model of", bound$columns$name)

#' @export
value_of.bound_exponential <- function(bound) {
  list(mean = function(parameters) 1 / parameters[, 1L], draw = function(expected, parameters) stats::rexp(length(expected), 1 / expected))
}
