#' Privacy guarantee of a mechanism or a release
#'
#' The guarantee, as epsilon and delta, as rho (zero-concentrated differential privacy) or as mu (Gaussian differential privacy).
#'
#' @param x A mechanism or a release.
#' @param statistic Needed only for a mechanism that was given its noise scale
#'   instead of a budget: the guarantee then depends on the sensitivity.
#' @param unit The granularity of a release; rounding to it adds to the sensitivity.
#' @param neighbours With `statistic`: as in [sensitivity()].
#' @param ... Must be empty.
#'
#' @return A data frame with one row and the columns `epsilon` and `delta`
#'   (approximate differential privacy), `rho` (zero-concentrated, Bun & Steinke
#'   2016) and `mu` (Gaussian, Dong, Roth & Su 2022). A column is `NA` if the mechanism gives no such guarantee, or none that is known without a further choice.
#'   If a fit uses only some numbers of a release, its release (`fit$release`) has the guarantee of the whole.
#' @family guarantees
#' @examples
#' privacy(mech_laplace(epsilon = 2))
#' privacy(mech_gaussian(mu = 1))
#' @export
privacy <- function(x, ...) {
  check_given()
  check_class(x, "x", c("noiseaware_mechanism", "noiseaware_release"), "a mechanism or a release")
  given <- setdiff(names(substitute(list(...))), "")
  check_argument_names(stats::setNames(nm = given), c("statistic", "unit", "neighbours"))
  statistic <- list(...)$statistic
  if (!is.null(statistic)) check_statistic(statistic)
  neighbours <- list(...)$neighbours
  if (!is.null(neighbours)) {
    neighbours <- match_neighbours(neighbours)
    if (inherits(x, "noiseaware_mechanism")) check_persons(list(list(mechanism = x, statistic = statistic)), neighbours, environment())
  }
  UseMethod("privacy")
}

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
  rows <- lapply(parts, function(p) privacy(p$mechanism, statistic = p$statistic, unit = p$granularity %||% 0, neighbours = p$neighbours))
  if (length(rows) == 1L) return(rows[[1L]])
  # all parts see the same records: basic composition, and for mu Dong, Roth & Su
  total <- do.call(rbind, rows)
  privacy_row(sum(total$epsilon), sum(total$delta), sum(total$rho), sqrt(sum(total$mu^2)))
}
