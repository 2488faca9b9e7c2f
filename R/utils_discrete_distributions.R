#' Discrete Laplace and discrete Gaussian distributions
#'
#' Density, distribution function, quantile function and random numbers for the distributions of [mech_discrete_laplace()] and [mech_discrete_gaussian()]. Their
#' support is the integers, with
#' \deqn{P(k) \propto \exp(-|k - m| / b) \quad\mbox{and}\quad
#'       P(k) \propto \exp(-(k - m)^2 / (2 s^2)),}
#'
#' Here m is the `location`, which may be any real number, b the `scale` and s the `sd`. At location 0 the normalising constant of the Laplace distribution is
#' tanh(1 / (2 b)).
#'
#' @param x,q Vector of values. A value that is not an integer has density 0.
#' @param p Vector of probabilities.
#' @param n Number of draws; if it is a vector, its length is used.
#' @param location Location, finite.
#' @param scale,sd Scale, positive: as in the continuous distribution with the same kernel.
#'   The standard deviation of the discrete Gaussian distribution is close to `sd` for values above 1, and smaller than `sd` below.
#' @param log,log.p Whether probabilities are given as logarithms.
#' @param lower.tail Whether probabilities refer to values up to x, or to values beyond x.
#'
#' @details All arguments are recycled to the longest. The values have high relative accuracy in both tails, for scales from 1e-3 to 1e6 and beyond. The
#'   quantile is the smallest integer at which the distribution function reaches `p`. Random numbers are drawn by inversion from R's generator: not for
#'   publication.
#'
#' @return A numeric vector: densities, probabilities, integers.
#' @section Errors: `noiseaware_error_argument`. Densities of values that are not
#'   integers raise a warning of class `noiseaware_warning_integer`.
#' @references
#' Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for
#' differential privacy. \doi{10.48550/arXiv.2004.00010}
#'
#' Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). Universally
#' utility-maximizing privacy mechanisms. \doi{10.1137/09076828X}
#' @family mechanisms
#' @examples
#' ddiscrete_laplace(-2:2, scale = 1)
#' pdiscrete_gaussian(3, sd = 2, lower.tail = FALSE)
#' qdiscrete_gaussian(c(0.025, 0.975), sd = 1e6)
#' set.seed(1)
#' rdiscrete_laplace(5, location = 10.5, scale = 3)
#' @name discrete_distributions
NULL

#' @rdname discrete_distributions
#' @export
ddiscrete_laplace <- function(x, location = 0, scale, log = FALSE) {
  check_given()
  discrete_density(FALSE, x, location, scale, "scale", log)
}

#' @rdname discrete_distributions
#' @export
pdiscrete_laplace <- function(q, location = 0, scale, lower.tail = TRUE, log.p = FALSE) {
  check_given()
  discrete_distribution("cumulative", FALSE, q, "q", location, scale, "scale", lower.tail, log.p)
}

#' @rdname discrete_distributions
#' @export
qdiscrete_laplace <- function(p, location = 0, scale, lower.tail = TRUE, log.p = FALSE) {
  check_given()
  discrete_distribution("quantile", FALSE, p, "p", location, scale, "scale", lower.tail, log.p)
}

#' @rdname discrete_distributions
#' @export
rdiscrete_laplace <- function(n, location = 0, scale) {
  check_given()
  discrete_draws(FALSE, n, location, scale, "scale")
}

#' @rdname discrete_distributions
#' @export
ddiscrete_gaussian <- function(x, location = 0, sd, log = FALSE) {
  check_given()
  discrete_density(TRUE, x, location, sd, "sd", log)
}

#' @rdname discrete_distributions
#' @export
pdiscrete_gaussian <- function(q, location = 0, sd, lower.tail = TRUE, log.p = FALSE) {
  check_given()
  discrete_distribution("cumulative", TRUE, q, "q", location, sd, "sd", lower.tail, log.p)
}

#' @rdname discrete_distributions
#' @export
qdiscrete_gaussian <- function(p, location = 0, sd, lower.tail = TRUE, log.p = FALSE) {
  check_given()
  discrete_distribution("quantile", TRUE, p, "p", location, sd, "sd", lower.tail, log.p)
}

#' @rdname discrete_distributions
#' @export
rdiscrete_gaussian <- function(n, location = 0, sd) {
  check_given()
  discrete_draws(TRUE, n, location, sd, "sd")
}

discrete_density <- function(gaussian, x, location, scale, name, log, call = caller_env()) {
  check_flag(log, "log", call)
  density <- discrete_distribution("log_density", gaussian, x, "x", location, scale, name, TRUE, TRUE, call)
  if (any(is.finite(x) & x != floor(x))) {
    cli::cli_warn("{.arg x} has values that are not integers; their density is 0.", class = "noiseaware_warning_integer", call = call)
  }
  if (log) density else exp(density)
}

# as numbered in src/r/discrete.c
discrete_functions <- c(log_density = 0L, cumulative = 1L, quantile = 2L)

discrete_distribution <- function(which, gaussian, x, x_name, location, scale, name, lower, log, call = caller_env()) {
  # all NA is logical
  if (!is.numeric(x) && !(is.logical(x) && all(is.na(x)))) stop_argument(x_name, "numbers", describe(x), call = call)
  check_each(location, "location", "finite numbers", is.finite, call)
  check_each(scale, name, "positive finite numbers", function(s) is.finite(s) & s > 0, call)
  check_flag(lower, "lower.tail", call)
  check_flag(log, "log.p", call)
  if (which == "quantile") {
    bad <- !is.na(x) & if (log) x > 0 else x < 0 | x > 1
    if (any(bad)) stop_argument("p", if (log) "logarithms of probabilities" else "probabilities", describe_bad(x, bad), call = call)
  }
  size <- c(length(x), length(location), length(scale))
  size <- if (any(size == 0L)) 0L else max(size)
  argument <- function(a) rep_len(as.double(a), size)
  out <- .Call(ffi_discrete_distribution, discrete_functions[[which]], argument(x), argument(location), argument(scale),
               as.integer(c(gaussian, lower, log)))
  if (length(x) == size) attributes(out) <- attributes(x)[intersect(c("names", "dim", "dimnames"), names(attributes(x)))]
  out
}

check_each <- function(x, name, must, valid, call) {
  if (!is.numeric(x)) stop_argument(name, must, describe(x), call = call)
  bad <- !valid(x)
  if (any(bad)) stop_argument(name, must, describe_bad(x, bad), call = call)
}

# A fair choice of the tail, then inversion inside it: with 27 bits more than one
# number of R's generator has, so that extreme values are not cut off.
discrete_draws <- function(gaussian, n, location, scale, name, call = caller_env()) {
  if (length(n) > 1L) n <- length(n)
  n <- check_count(n, "n", lower = 0, call = call)
  discrete_distribution("cumulative", gaussian, numeric(), "n", location, scale, name, TRUE, FALSE, call) # refuses before anything is drawn
  lower <- stats::runif(n) < 0.5
  p <- (floor(stats::runif(n) * 2^27) + stats::runif(n)) / 2^28
  draw <- function(tail) {
    discrete_distribution("quantile", gaussian, p[lower == tail], "p", rep_len(location, n)[lower == tail],
                 rep_len(scale, n)[lower == tail], name, tail, FALSE, call)
  }
  out <- numeric(n)
  out[lower] <- draw(TRUE)
  out[!lower] <- draw(FALSE)
  out
}
