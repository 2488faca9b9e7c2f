#' Discrete Gaussian noise
#'
#' Adds an independent integer k to every component, with P(k) proportional to
#' exp(-k^2 / (2 tau^2)), for statistics whose components are integers, such as
#' counts. With a budget `rho`, tau^2 = Delta^2 / (2 rho), where Delta is the statistic's L2 sensitivity. This gives the same zero-concentrated differential
#' privacy as continuous noise (Canonne, Kamath & Steinke 2020).
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param rho Privacy budget, a positive number.
#' @param sd Instead of `rho`: tau; one value, or one for each component, either in the statistic's order or named. If tau is 1 or more, it is almost equal to
#'   the noise's standard deviation, which is smaller than tau if tau is below 1; [noise_sd()] gives the exact value.
#' @return A mechanism: an object of class `mech_discrete_gaussian`.
#' @details The released numbers are integers, so no fractional bits can leak, as they can with [mech_gaussian()].
#' @section Errors: `noiseaware_error_mechanism`, also from [release()] and
#'   [as_release()] with a statistic that may have fractional components; `noiseaware_error_value` from [as_release()] with published values that are not
#'   integers.
#' @references
#' Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for
#' differential privacy. \doi{10.48550/arXiv.2004.00010}
#' @family mechanisms
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' release(MASS::birthwt, st, mech_discrete_gaussian(rho = 0.1))
#' @export
mech_discrete_gaussian <- function(..., rho = NULL, sd = NULL) {
  check_all_named(...)
  given <- check_one_of(list(rho = rho, sd = sd))
  if (given == "rho") rho <- check_positive(rho, "rho", "mechanism")
  if (given == "sd") sd <- check_scale(sd, "sd")
  new_mechanism("discrete_gaussian", "squared", rho = rho, sd = sd, class = "mech_discrete_gaussian")
}

#' @export
mechanism_scale.mech_discrete_gaussian <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  sd <- mechanism$sd %||% (grid_sensitivity(statistic, "L2", unit, neighbours, call) / sqrt(2 * mechanism$rho))
  expand_scale(sd, statistic, "sd", call)
}

# From the sum of the masses over k, or from its derivative in the scale after
# Poisson summation (see src/base/dist_discrete.c): either has few terms.
#' @export
mechanism_sd.mech_discrete_gaussian <- function(mechanism, scale) {
  k <- 1:6
  vapply(scale, function(s) {
    if (s < 0.5) {
      mass <- exp(-k^2 / s / s / 2)
      sqrt(2 * sum(k^2 * mass) / (1 + 2 * sum(mass)))
    } else if (s < 8) {
      t <- 2 * (pi * k * s)^2
      s * sqrt(1 - 4 * sum(t * exp(-t)) / (1 + 2 * sum(exp(-t))))
    } else {
      s
    }
  }, 0)
}

#' @export
guarantee_of.mech_discrete_gaussian <- function(x, statistic = NULL, ..., unit = 0, neighbours = "replace") {
  rho <- x$rho
  if (is.null(rho) && !is.null(statistic)) rho <- (grid_sensitivity(statistic, "L2", unit, neighbours) / min(x$sd))^2 / 2
  privacy_row(rho = rho %||% NA_real_)
}

#' @export
format.mech_discrete_gaussian <- function(x, ...) {
  if (is.null(x$rho)) paste0("discrete Gaussian noise, sd ", format_scales(x$sd))
  else paste0("discrete Gaussian noise, rho = ", format_number(x$rho))
}

#' @export
check_pair.mech_discrete_gaussian <- function(statistic, mechanism, call) check_integer_valued(statistic, call)

#' @export
check_noisy.mech_discrete_gaussian <- function(mechanism, statistic, value, call = caller_env()) check_whole(value, call)

#' @export
mechanism_takes.mech_discrete_gaussian <- function(mechanism, statistic, kinds) "code" %in% kinds || inherits(statistic, "stat_histogram")
