# The range of each component of totals: limits, degrees, and the effect of rounding.

# The least and the largest contribution of a record to each component, a row each;
# NULL where that is not known.
component_limits <- function(statistic) UseMethod("component_limits")

#' @export
component_limits.default <- function(statistic) NULL

# The degree of each component, a monomial; NULL where it is none.
component_degrees <- function(statistic) UseMethod("component_degrees")

#' @export
component_degrees.default <- function(statistic) NULL

# least and largest value that n records can give to each number of a part, NULL
# where that, or n, is not known
part_limits <- function(part, n) {
  limits <- component_limits(part$statistic)
  # noise on every record has none
  if (is.null(limits) || is.null(n) || part$mechanism$kernel == "records") return(NULL)
  if (counts_answers(part$statistic)) return(cbind(numeric(length(part$index)), n))
  if (part$statistic$kind == "records") limits[rep(seq_len(nrow(limits)), each = n), , drop = FALSE] else limits * n
}

# part_limits() of totals by the levels of one factor whose sizes are known
group_limits <- function(part, sizes) {
  by <- names(part$statistic$levels)[1L]
  if (!inherits(part$statistic, "stat_by")) return(NULL)
  limits <- component_limits(part$statistic$statistic)
  n <- sizes[[by]]
  if (is.null(limits) || length(n) != length(part$statistic$levels[[1L]])) return(NULL)
  limits[rep(seq_len(nrow(limits)), each = length(n)), , drop = FALSE] * rep(unname(n), nrow(limits))
}

component_ranges <- function(statistic) {
  limits <- component_limits(statistic)
  limits[, 2L] - limits[, 1L]
}

# components that are the total of a variable that is a number
single_components <- function(statistic) UseMethod("single_components")

#' @export
single_components.default <- function(statistic) integer()

# columns whose product each component is the total of, `second` NA where it is
# one alone; NULL if there are others
monomial_degrees <- function(statistic) {
  if (inherits(statistic, "stat_crossprod")) {
    q <- nrow(statistic$columns)
    return(list(first = c(seq_len(q), statistic$pairs$first), second = c(rep(NA, q), statistic$pairs$second)))
  }
  if (!inherits(statistic, "stat_sums") || any(rowSums(statistic$powers) > 2)) return(NULL)
  factors <- apply(statistic$powers, 1L, function(p) c(rep(seq_along(p), p), NA)[1:2])
  list(first = factors[1L, ], second = factors[2L, ])
}

# How far the last bits of doubles can move the difference of two records, and the range that
# the sensitivity was computed from, in each component. Variables are clamped last, so they
# are inside their bounds exactly. A monomial of degree k that is at most M takes k - 1
# products, each off by at most e = M 2^-53: 2 (k - 1) e for two records. Each end of the range
# takes at most k - 1 products, and powers that are off by at most 2 k e: (6 k - 2) e for both
# ends; their difference is off by at most 2 e. That is less than 8 k e in all, and nothing
# of it where k = 1.
product_error <- function(statistic) UseMethod("product_error")

#' @export
product_error.default <- function(statistic) {
  degree <- component_degrees(statistic)
  limits <- component_limits(statistic)
  if (is.null(degree) || is.null(limits)) return(0)
  ifelse(degree > 1, 8 * degree * 2^-53 * pmax(abs(limits[, 1L]), abs(limits[, 2L])), 0)
}
