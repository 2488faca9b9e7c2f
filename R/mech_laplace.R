#' Laplace noise
#'
#' Adds independent Laplace noise to every component. With a budget `epsilon` the scale is the statistic's L1 sensitivity divided by epsilon, which gives pure
#' epsilon-differential privacy (Dwork et al. 2006).
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget, a positive number.
#' @param scale Instead of `epsilon`: the scale b of the noise, density
#'   exp(-|x| / b) / (2 b); one value, or one for each component, either in the
#'   statistic's order or named.
#' @return A mechanism: an object of class `mech_laplace`.
#' @section Errors: `noiseaware_error_mechanism`.
#' @references
#' Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to sensitivity in private data analysis. *Theory of Cryptography*, 265-284.
#' \doi{10.1007/11681878_14}
#' @family mechanisms
#' @examples
#' mech_laplace(epsilon = 2)
#' @export
mech_laplace <- function(..., epsilon = NULL, scale = NULL) {
  check_all_named(...)
  given <- check_one_of(list(epsilon = epsilon, scale = scale))
  if (given == "epsilon") epsilon <- check_positive(epsilon, "epsilon", "mechanism")
  if (given == "scale") scale <- check_scale(scale, "scale")
  new_mechanism("laplace", "absolute", epsilon = epsilon, scale = scale, class = "mech_laplace")
}

#' @export
mechanism_scale.mech_laplace <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  scale <- mechanism$scale %||% (grid_sensitivity(statistic, "L1", unit, neighbours, call) / mechanism$epsilon)
  expand_scale(scale, statistic, "scale", call)
}

#' @export
mechanism_sd.mech_laplace <- function(mechanism, scale) sqrt(2) * scale

#' @export
guarantee_of.mech_laplace <- function(x, statistic = NULL, ..., unit = 0, neighbours = "replace") {
  epsilon <- x$epsilon
  if (is.null(epsilon) && !is.null(statistic)) epsilon <- grid_sensitivity(statistic, "L1", unit, neighbours) / min(x$scale)
  epsilon <- epsilon %||% NA_real_
  privacy_row(epsilon = epsilon, delta = 0, rho = epsilon^2 / 2)
}

#' @export
format.mech_laplace <- function(x, ...) {
  if (is.null(x$epsilon)) paste0("Laplace noise, scale ", format_scales(x$scale))
  else paste0("Laplace noise, epsilon = ", format_number(x$epsilon))
}
