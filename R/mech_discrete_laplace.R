#' Discrete Laplace (geometric) noise
#'
#' Adds an independent integer k to every component, with P(k) = tanh(1 / (2 b))
#' exp(-|k| / b), for statistics whose components are integers, such as counts.
#' With a budget `epsilon` the scale b is the statistic's L1 sensitivity divided by epsilon, which gives pure epsilon-differential privacy (Ghosh, Roughgarden &
#' Sundararajan 2012).
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget, a positive number.
#' @param scale Instead of `epsilon`: the scale b; one value, or one for each
#'   component, either in the statistic's order or named.
#' @return A mechanism: an object of class `mech_discrete_laplace`.
#' @details The released numbers are integers, so no fractional bits can leak, as they can with [mech_laplace()].
#' @section Errors: `noiseaware_error_mechanism`, also from [release()] and
#'   [as_release()] with a statistic that may have fractional components; `noiseaware_error_value` from [as_release()] with published values that are not
#'   integers.
#' @references
#' Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). Universally
#' utility-maximizing privacy mechanisms. \doi{10.1137/09076828X}
#' @family mechanisms
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' release(MASS::birthwt, st, mech_discrete_laplace(epsilon = 1))
#' @export
mech_discrete_laplace <- function(..., epsilon = NULL, scale = NULL) {
  check_all_named(...)
  given <- check_one_of(list(epsilon = epsilon, scale = scale))
  if (given == "epsilon") epsilon <- check_positive(epsilon, "epsilon", "mechanism")
  if (given == "scale") scale <- check_scale(scale, "scale")
  new_mechanism("discrete_laplace", "absolute", epsilon = epsilon, scale = scale, class = "mech_discrete_laplace")
}

#' @export
mechanism_scale.mech_discrete_laplace <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  scale <- mechanism$scale %||% (grid_sensitivity(statistic, "L1", unit, neighbours, call) / mechanism$epsilon)
  expand_scale(scale, statistic, "scale", call)
}

# variance 2 r / (1 - r)^2 with r = exp(-1 / b)
#' @export
mechanism_sd.mech_discrete_laplace <- function(mechanism, scale) 1 / (sqrt(2) * sinh(1 / (2 * scale)))

#' @export
guarantee_of.mech_discrete_laplace <- function(x, statistic = NULL, ..., unit = 0, neighbours = "replace") {
  epsilon <- x$epsilon
  if (is.null(epsilon) && !is.null(statistic)) epsilon <- grid_sensitivity(statistic, "L1", unit, neighbours) / min(x$scale)
  epsilon <- epsilon %||% NA_real_
  privacy_row(epsilon = epsilon, delta = 0, rho = epsilon^2 / 2)
}

#' @export
format.mech_discrete_laplace <- function(x, ...) {
  if (is.null(x$epsilon)) paste0("discrete Laplace noise, scale ", format_scales(x$scale))
  else paste0("discrete Laplace noise, epsilon = ", format_number(x$epsilon))
}

#' @export
check_pair.mech_discrete_laplace <- function(statistic, mechanism, call) check_integer_valued(statistic, call)

#' @export
check_noisy.mech_discrete_laplace <- function(mechanism, statistic, value, call = caller_env()) check_whole(value, call)

# ---- what discrete noise asks of a statistic ----------------------------------

#' @export
integer_valued.default <- function(statistic) statistic$kind == "cells"

check_integer_valued <- function(statistic, call) {
  if (integer_valued(statistic)) return(invisible())
  stop_classed("mechanism", c("Discrete noise is for statistics with integer components, such as counts.",
                              x = "The statistic is {describe_statistic(statistic)}.",
                              i = "Use {.fn mech_laplace} or {.fn mech_gaussian}.",
                              i = "To read totals of whole numbers: {.code mech_tabulated(function(e) exp(-abs(round(e)) / scale))} has the same density."),
               call = call)
}

check_whole <- function(value, call) {
  bad <- value != floor(value)
  if (!any(bad)) return(invisible())
  stop_classed("value", c("{.arg value} must be integers, as the noise is discrete, but is {describe_bad(value, bad)}.",
                          i = "If integers were published, were these rescaled? If the noise is not discrete, use {.fn mech_laplace} or {.fn mech_gaussian}."),
                 call = call)
}

#' @export
mechanism_takes.mech_discrete_laplace <- function(mechanism, statistic, kinds) "code" %in% kinds || inherits(statistic, "stat_histogram")
