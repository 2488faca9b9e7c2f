#' Gaussian noise
#'
#' Adds independent normal noise to every component. Its standard deviation tau can be given directly, or follows from the statistic's L2 sensitivity Delta and
#' one of three budgets. With zero-concentrated differential privacy, rho = Delta^2 / (2 tau^2) (Bun & Steinke 2016). With Gaussian differential privacy, mu =
#' Delta / tau (Dong, Roth & Su 2022). Approximate differential privacy (epsilon, delta) uses the analytic calibration of Balle & Wang (2018), which is valid
#' for every epsilon.
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param rho,mu Privacy budgets, positive numbers.
#' @param epsilon,delta Privacy budget, given together; `delta` in (0, 1).
#' @param sd Instead of a budget: the standard deviation, one value or one for
#'   each component, either in the statistic's order or named.
#' @return A mechanism: an object of class `mech_gaussian`.
#' @section Errors: `noiseaware_error_mechanism`.
#' @references
#' Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for
#' differential privacy. \doi{10.48550/arXiv.1805.06530}
#'
#' Bun, M. and Steinke, T. (2016). Concentrated differential privacy: simplifications, extensions, and lower bounds. \doi{10.48550/arXiv.1605.02065}
#'
#' Dong, J., Roth, A. and Su, W. J. (2022). Gaussian differential privacy. *Journal of the Royal Statistical Society B* 84, 3-37. \doi{10.1111/rssb.12454}
#' @family mechanisms
#' @examples
#' mech_gaussian(mu = 1)
#' mech_gaussian(epsilon = 1, delta = 1e-6)
#' @export
mech_gaussian <- function(..., rho = NULL, epsilon = NULL, delta = NULL, mu = NULL, sd = NULL) {
  check_all_named(...)
  if (is.null(epsilon) != is.null(delta)) {
    stop_classed("mechanism", "{.arg epsilon} and {.arg delta} must be given together.")
  }
  given <- check_one_of(list(rho = rho, `epsilon and delta` = epsilon, mu = mu, sd = sd))
  if (given == "rho") rho <- check_positive(rho, "rho", "mechanism")
  if (given == "mu") mu <- check_positive(mu, "mu", "mechanism")
  if (given == "sd") sd <- check_scale(sd, "sd")
  if (given == "epsilon and delta") {
    # beyond it the calibration has no correct digits, and no privacy is left
    epsilon <- check_number(epsilon, "epsilon", "a positive number below 1e8", 0, 1e8, strict = TRUE, kind = "mechanism")
    delta <- check_number(delta, "delta", "a number strictly between 0 and 1", 0, 1, strict = TRUE, kind = "mechanism")
  }
  new_mechanism("gaussian", "squared", rho = rho, epsilon = epsilon, delta = delta, mu = mu, sd = sd,
                class = "mech_gaussian")
}

# mu = Delta / tau that a budget allows; NULL when the sd was given
gaussian_mu <- function(mechanism) {
  if (!is.null(mechanism$mu)) return(mechanism$mu)
  if (!is.null(mechanism$rho)) return(sqrt(2 * mechanism$rho))
  if (!is.null(mechanism$epsilon)) return(analytic_mu(mechanism$epsilon, mechanism$delta))
  NULL
}

# delta that Gaussian noise of that mu gives at epsilon (Balle & Wang, Theorem 8)
gaussian_delta <- function(epsilon, mu) {
  t <- epsilon / mu - mu / 2
  if (mu > 1e-4) {
    return(stats::pnorm(-t) - exp(epsilon + stats::pnorm(-t - mu, log.p = TRUE)))
  }
  # The two terms nearly cancel when mu is small. Their difference is the integral over s > 0 of
  # phi(t + s) (1 - exp(-mu s)): here by the first three powers of mu.
  if (t > 40) return(0) # below the smallest double
  tail <- stats::pnorm(-t)
  density <- stats::dnorm(t)
  mu * (density - t * tail) - mu^2 / 2 * ((1 + t^2) * tail - t * density) +
    mu^3 / 6 * ((t^2 + 2) * density - t * (t^2 + 3) * tail)
}

# largest mu whose delta does not exceed the given one
analytic_mu <- function(epsilon, delta) {
  excess <- function(log_mu) gaussian_delta(epsilon, exp(log_mu)) - delta
  low <- log(2 * delta) # delta is below 0.4 mu for every epsilon
  high <- log(10 + 10 * sqrt(epsilon) + 2 * epsilon)
  root <- stats::uniroot(excess, c(low, high), extendInt = "upX", tol = 1e-13, maxiter = 1000L)
  exp(root$root)
}

#' @export
mechanism_scale.mech_gaussian <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  sd <- mechanism$sd %||% (grid_sensitivity(statistic, "L2", unit, neighbours, call) / gaussian_mu(mechanism))
  expand_scale(sd, statistic, "sd", call)
}

#' @export
mechanism_sd.mech_gaussian <- function(mechanism, scale) scale

#' @export
guarantee_of.mech_gaussian <- function(x, statistic = NULL, ..., unit = 0, neighbours = "replace") {
  mu <- gaussian_mu(x)
  if (is.null(mu) && !is.null(statistic)) mu <- grid_sensitivity(statistic, "L2", unit, neighbours) / min(x$sd)
  mu <- mu %||% NA_real_
  privacy_row(epsilon = x$epsilon %||% NA_real_, delta = x$delta %||% NA_real_, rho = mu^2 / 2, mu = mu)
}

#' @export
format.mech_gaussian <- function(x, ...) {
  budget <- if (!is.null(x$rho)) paste0("rho = ", format_number(x$rho))
  else if (!is.null(x$mu)) paste0("mu = ", format_number(x$mu))
  else if (!is.null(x$epsilon)) sprintf("epsilon = %s, delta = %s", format_number(x$epsilon), format_number(x$delta))
  else paste0("sd ", format_scales(x$sd))
  paste0("Gaussian noise, ", budget)
}
