#' Poisson model
#'
#' x ~ Poisson(rate): counts, with an unknown rate.
#'
#' @param variable Name of the variable; `NULL` means the release's only variable. Or a formula such as `visits ~ ward` or `~ ward` for the groups of one
#'   release, see [groups].
#' @param prior Prior for the rate: [prior_gamma()]. The defaults are shape 1 and a mean derived from the middle of the public bounds, E(rate) = middle.
#'
#' @return A model: an object of class `model_poisson`. Its parameter is `rate`,
#'   the mean of a record.
#' @section Errors: `noiseaware_error_prior` (also if a prior scaled by the bounds is used and their middle is not positive), `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @references
#' Steutel, F. W. and van Harn, K. (1979). Discrete analogues of
#' self-decomposability and stability. *The Annals of Probability* 7, 893--899
#' (thinning, the way records move with the rate).
#' @family models
#' @examples
#' model_poisson()
#' st <- stat_sums(~ visits, bounds = list(visits = c(0, 20)))
#' set.seed(1)
#' rel <- simulate_release(data.frame(visits = rpois(200, 4)), st, mech_laplace(epsilon = 1))
#' sample_posterior(rel, model_poisson(prior = prior_gamma(1, 0.2)), chains = 2, iter = 400, seed = 1)
#' @export
model_poisson <- function(variable = NULL, prior = prior_gamma()) {
  of <- read_variable(variable, "model_poisson")
  check_class(prior, "prior", "prior_gamma", "prior_gamma()", "prior")
  new_model("poisson", variable = of$variable, group = of$group, prior = prior, class = "model_poisson")
}

#' @export
format.model_poisson <- function(x, ...) {
  c("<model> Poisson",
    variable_line(x),
    paste0("  rate      ", format(x$prior)))
}

#' @export
variable_kinds.model_poisson <- function(x) "number"

#' @export
bind_columns.model_poisson <- function(model, columns, levels, formula, call) {
  columns <- bind_number(model$variable, columns, levels, call)
  fields <- rate_prior(model$prior, columns, function(middle) middle, call)
  structure(list(model = model, columns = columns, levels = list(), spec = list(name = "poisson", fields = fields),
                 parameters = "rate"), class = c("bound_poisson", "noiseaware_bound"))
}

#' @export
describe_model.bound_poisson <- function(bound) paste("Poisson model of", bound$columns$name)

#' @export
value_of.bound_poisson <- function(bound) {
  list(mean = function(parameters) parameters[, 1L], draw = function(expected, parameters) stats::rpois(length(expected), expected))
}
