#' Privacy guarantee of a mechanism or a release
#'
#' The guarantee, as epsilon and delta, as rho (zero-concentrated differential privacy) or as mu (Gaussian differential privacy).
#'
#' @param x A mechanism or a release.
#' @param statistic Needed only for a mechanism that was given its noise scale
#'   instead of a budget: the guarantee then depends on the sensitivity.
#' @param unit The granularity of a release; rounding to it adds to the sensitivity.
#' @param neighbours With `statistic`: as in [sensitivity()].
#' @param delta `NULL`, or a number in (0, 1): `epsilon` is then the smallest one known for this delta.
#'
#' @details
#' rho-zCDP implies (epsilon, delta)-differential privacy for a whole curve of pairs. With `delta`, `epsilon` follows from `rho` by Corollary 13 of Canonne,
#' Kamath & Steinke (2020): delta = inf over alpha > 1 of exp((alpha - 1) (alpha rho - epsilon)) / (alpha - 1) (1 - 1 / alpha)^alpha. If the guarantee
#' has an `epsilon` of its own for a delta that is not larger, the smaller of the two is returned.
#' @return A data frame with one row and the columns `epsilon` and `delta`
#'   (approximate differential privacy), `rho` (zero-concentrated, Bun & Steinke
#'   2016) and `mu` (Gaussian, Dong, Roth & Su 2022). A column is `NA` if the mechanism gives no such guarantee, or none that is known without a further choice.
#'   If a fit uses only some numbers of a release, its release (`fit$release`) has the guarantee of the whole.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_neighbours`.
#' @references
#' Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for
#' differential privacy. \doi{10.48550/arXiv.2004.00010}
#' @family guarantees
#' @examples
#' privacy(mech_laplace(epsilon = 2))
#' privacy(mech_gaussian(mu = 1))
#' # rho = 0.5 as epsilon and delta
#' privacy(mech_gaussian(rho = 0.5), delta = 1e-6)
#' @export
privacy <- function(x, statistic = NULL, unit = 0, neighbours = "replace", delta = NULL) {
  check_given()
  check_class(x, "x", c("noiseaware_mechanism", "noiseaware_release"), "a mechanism or a release")
  if (!is.null(statistic)) check_statistic(statistic)
  neighbours <- match_neighbours(neighbours)
  if (inherits(x, "noiseaware_mechanism")) check_persons(list(list(mechanism = x, statistic = statistic)), neighbours, environment())
  guarantee <- guarantee_of(x, statistic = statistic, unit = unit, neighbours = neighbours)
  if (is.null(delta)) return(guarantee)
  delta <- check_number(delta, "delta", "a number strictly between 0 and 1", 0, 1, strict = TRUE)
  found <- c(if (isTRUE(guarantee$delta <= delta)) guarantee$epsilon, if (!is.na(guarantee$rho)) zcdp_epsilon(guarantee$rho, delta))
  known <- !all(is.na(found))
  guarantee$epsilon <- if (known) min(found, na.rm = TRUE) else NA_real_
  guarantee$delta <- if (known) delta else NA_real_
  guarantee
}

# the row of privacy(), of a mechanism or a release
guarantee_of <- function(x, ...) UseMethod("guarantee_of")

format_privacy <- function(guarantee) {
  if (all(is.na(guarantee))) return("not known")
  if (identical(guarantee$epsilon, Inf)) return("none: there is no noise")
  parts <- c(
    if (!is.na(guarantee$epsilon) && identical(guarantee$delta, 0)) paste0("epsilon = ", format_number(guarantee$epsilon)),
    if (!is.na(guarantee$epsilon) && !identical(guarantee$delta, 0))
      sprintf("(epsilon, delta) = (%s, %s)", format_number(guarantee$epsilon), format_number(guarantee$delta)),
    if (!is.na(guarantee$mu)) paste0("mu = ", format_number(guarantee$mu), " (Gaussian DP)"),
    if (!is.na(guarantee$rho)) paste0("rho = ", format_number(guarantee$rho), " (zCDP)")
  )
  paste(parts, collapse = ", ")
}

design_privacy <- function(parts) {
  # exact numbers are outside of the guarantee
  noisy <- Filter(function(p) !is_noiseless(p$mechanism), parts)
  if (length(noisy)) parts <- noisy
  rows <- lapply(parts, function(p) guarantee_of(p$mechanism, statistic = p$statistic, unit = p$granularity %||% 0, neighbours = p$neighbours))
  if (length(rows) == 1L) return(rows[[1L]])
  # all parts see the same records: basic composition, and for mu Dong, Roth & Su
  total <- do.call(rbind, rows)
  privacy_row(sum(total$epsilon), sum(total$delta), sum(total$rho), sqrt(sum(total$mu^2)))
}

# The smallest epsilon for a delta, by Canonne, Kamath & Steinke (2020), Corollary 13: see privacy().
zcdp_epsilon <- function(rho, delta) {
  if (rho == 0 || rho == Inf) return(rho)
  # epsilon as a function of log(alpha - 1): one minimum
  epsilon <- function(l) {
    a <- exp(l)
    within_doubles((1 + a) * rho - (log(delta) + l) / a + (1 + a) / a * (l - log1p(a)))
  }
  best <- log(max(sqrt(-log(delta)) / sqrt(rho), 1e-3)) # of the leading terms
  max(0, stats::optimize(epsilon, best + c(-6, 6), tol = 1e-10)$objective)
}

# optimize() mistakes -Inf for a maximum, and accepts Inf with a warning
within_doubles <- function(x) max(min(x, .Machine$double.xmax), -.Machine$double.xmax)
