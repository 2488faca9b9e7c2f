#' How far one record can move a statistic
#'
#' The largest change of the totals, over all pairs of databases that differ in
#' one replaced record. It is computed from declared bounds and levels alone.
#'
#' @param statistic A statistic, such as [stat_crossprod()].
#' @param norm `"L1"` (sum of absolute changes, for Laplace noise) or `"L2"`
#'   (root of the sum of squares, for Gaussian noise).
#' @return A positive number, in the units of the released totals.
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' sensitivity(st, "L1")
#' sensitivity(st, "L2")
#' @export
sensitivity <- function(statistic, norm = c("L1", "L2")) {
  check_given()
  check_statistic(statistic)
  UseMethod("sensitivity")
}

match_norm <- function(norm, call = caller_env()) {
  if (identical(norm, c("L1", "L2"))) return("L1")
  check_choice(norm, "norm", c("L1", "L2"), call = call)
}
