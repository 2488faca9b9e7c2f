# What totals of n records can be, and published values that are far from it.

# The least and the largest contribution of a record to each component, a row each;
# NULL where that is not known.
component_limits <- function(statistic) UseMethod("component_limits")

#' @export
component_limits.default <- function(statistic) NULL

component_ranges <- function(statistic) {
  limits <- component_limits(statistic)
  limits[, 2L] - limits[, 1L]
}

# largest absolute value of a record's contribution to any component; where it
# is not known, far beyond what the sensitivity suggests
component_size <- function(statistic) {
  limits <- component_limits(statistic)
  if (is.null(limits)) 2^20 * sensitivity(statistic, "L1") else max(abs(limits))
}

# Laplace noise is as far out as this many of its sds with probability 4e-7
far_out <- 10

# components that no n records have, unless the noise were that far out
impossible_components <- function(release) {
  unlist(lapply(release_parts(release), function(part) {
    limits <- component_limits(part$statistic)
    if (is.null(limits)) return(NULL)
    records <- part$statistic$kind == "records"
    limits <- if (records) limits[rep(seq_len(nrow(limits)), each = release$n), ] else limits * release$n
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    rounding <- 1e-9 * max(abs(limits))
    beyond <- pmax(part$value - limits[, 2L], limits[, 1L] - part$value) > far_out * sd + rounding
    names(release$value)[part$index][c(which(beyond), odd_margins(part, sd, release$n))]
  }))
}

# every record is in one cell of a margin
odd_margins <- function(part, sd, n) {
  if (!inherits(part$statistic, "stat_counts")) return(NULL)
  margin <- rep(seq_along(part$statistic$margins), vapply(part$statistic$margins, function(m) prod(lengths(part$statistic$levels)[m]), 0))
  off <- abs(tapply(part$value, margin, sum) - n) > far_out * sqrt(tapply(sd^2, margin, sum))
  which(margin %in% which(off))
}

impossible_line <- function(release) {
  odd <- unique(impossible_components(release))
  if (length(odd)) {
    who <- if (release$n == 1) "record has" else paste(format(release$n, big.mark = ",", scientific = FALSE), "records have")
    sprintf("! No %s totals like these, whatever the noise: %s (is n right? are they in the statistic's units?)\n", who, shorten_list(odd, 5L))
  }
}
