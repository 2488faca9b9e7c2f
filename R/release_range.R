# Implausible published totals: troubles, see fit_diagnostics.R

# By factor, how many records each of its levels has, where exact numbers say so.
exact_sizes <- function(parts) {
  told <- Filter(function(part) is_exact(part$mechanism) && inherits(part$statistic, "stat_counts") && identical(lengths(part$statistic$margins), 1L), parts)
  stats::setNames(lapply(told, `[[`, "value"), vapply(told, function(part) part$statistic$margins[[1L]], ""))
}

# Laplace noise is as far out as this many of its sds with probability 4e-7
far_out <- 10

# components that no n records have, unless the noise were that far out
impossible_components <- function(release) {
  unlist(lapply(release_parts(release), function(part) {
    limits <- part_limits(part, release$n)
    if (is.null(limits)) return(NULL)
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    ends <- noisy_ends(part)
    names(release$value)[part$index][c(beyond_limits(limits, ends, sd), odd_margins(part, ends, sd, release$n))]
  }))
}

beyond_limits <- function(limits, ends, sd) {
  which(pmax(ends$lower - limits[, 2L], limits[, 1L] - ends$upper) > far_out * sd + 1e-9 * max(abs(limits)))
}

# Where n is not known: components that need more records than any method can count.
check_few_enough <- function(release, call = caller_env()) {
  if (!is.null(release$n)) return(invisible())
  for (part in release_parts(release)) {
    limits <- part_limits(part, most_records - 1)
    if (is.null(limits)) next
    limits <- cbind(pmin(limits[, 1L], 0), pmax(limits[, 2L], 0)) # of fewer records as well
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    ends <- noisy_ends(part)
    many <- names(release$value)[part$index][union(beyond_limits(limits, ends, sd), larger_margins(part, ends, sd, most_records - 1))]
    if (length(many) == 0L) next
    stop_classed("value", "{.arg value} must describe at most 2147483647 (2^31 - 1) records, but component{?s} {.val {many}} would need more.", call = call)
  }
}

# Squares whose total does not go with the total of their variable, unless the noise were that far out: within [l, u] a record has
# x^2 <= (l + u) x - l u, and n records have a total of squares of at least the square of their total over n. Not where the total is `odd` itself.
impossible_squares <- function(release, odd) {
  n <- release$n
  unlist(lapply(component_parts(release), function(part) {
    degree <- if (part$mechanism$kernel %in% c("absolute", "squared") && !is_dropped(part$statistic)) monomial_degrees(part$statistic)
    square <- which(degree$first == degree$second)
    single <- match(degree$first[square], ifelse(is.na(degree$second), degree$first, NA))
    at <- matrix(match(c(single, square), part$at), ncol = 2L)
    known <- rowSums(is.na(at)) == 0
    at <- at[known, , drop = FALSE]
    if (nrow(at) == 0L) return(NULL)
    limits <- component_limits(part$statistic)[single[known], , drop = FALSE]
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    total <- part$value[at[, 1L]]
    squares <- part$value[at[, 2L]]
    slope <- rowSums(limits)
    spread <- function(slope) far_out * sqrt(sd[at[, 2L]]^2 + slope^2 * sd[at[, 1L]]^2)
    rounding <- 1e-9 * n * apply(limits^2, 1L, max)
    above <- squares - (slope * total - n * limits[, 1L] * limits[, 2L]) > spread(slope) + rounding
    below <- total^2 / n - squares > spread(2 * total / n) + far_out^2 * sd[at[, 1L]]^2 / n + rounding
    named <- matrix(names(release$value)[part$index[at]], ncol = 2L)
    named[(above | below) & !named[, 1L] %in% odd, 2L]
  }))
}

# every record is in one cell of a margin
odd_margins <- function(part, ends, sd, n) sort(union(larger_margins(part, ends, sd, n), larger_margins(part, list(lower = -ends$upper), sd, -n)))

# cells of the margins whose counts come to more than n
larger_margins <- function(part, ends, sd, n) {
  if (!is_table(part$statistic)) return(NULL)
  margin <- cell_margins(part$statistic)
  off <- tapply(ends$lower, margin, sum) - n > far_out * sqrt(tapply(sd^2, margin, sum))
  which(margin %in% which(off))
}

# Totals of one number that are, up to noise that is small relative to their range, those
# of records all at the same bound: it clamps every record, or the units differ.
limit_components <- function(release) {
  unlist(lapply(release_parts(release), function(part) {
    single <- single_components(part$statistic)
    if (length(single) == 0L) return(NULL)
    limits <- component_limits(part$statistic)[single, , drop = FALSE] * release$n
    value <- part$value[single]
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))[single]
    clear <- 3 * sd <= 0.01 * (limits[, 2L] - limits[, 1L])
    near <- function(inside) inside <= 3 * sd & inside >= -far_out * sd
    names(release$value)[part$index][single][which(clear & (near(value - limits[, 1L]) | near(limits[, 2L] - value)))]
  }))
}

# What is odd about published totals: troubles, see fit_diagnostics.R
release_troubles <- function(release) {
  if (is.null(release$n)) return(NULL)
  odd <- impossible_components(release)
  odd <- unique(c(odd, impossible_squares(release, odd)))
  at_limit <- unique(limit_components(release))
  who <- if (release$n == 1) "record" else paste("data set of", format(release$n, big.mark = ",", decimal.mark = ".", scientific = FALSE), "records")
  c(if (length(odd)) list(list(kind = "impossible", text = sprintf(
      "No %s has totals like these, whatever the noise: %s (is n right? are they in the statistic's units?)", who, shorten_list(odd, 5L)))),
    if (length(at_limit)) list(list(kind = "limit", text = sprintf(
      "At the limit that the bounds allow, as if every record were at a bound or beyond: %s (are the bounds in the data's units?)",
      shorten_list(at_limit, 5L)))), units_trouble(release))
}

warn_units <- function(release, call = caller_env()) {
  if (session$quiet) return(invisible())
  for (trouble in units_trouble(release) %||% beyond_rescaled(release)) rlang::warn(trouble$text, class = "noiseaware_warning_units", call = call)
}

# What no records have if numbers are rescaled, however large the noise is. A fit with a known number of records says so as well: see release_troubles(). An
# unknown number is at most what a noisy size may be.
beyond_rescaled <- function(release) {
  parts <- release_parts(release)
  sizes <- Filter(function(part) inherits(part$statistic, "stat_size"), parts)
  most <- vapply(sizes, function(part) part$value + far_out * mechanism_sd(part$mechanism, part$scale), 0)
  release$n <- release$n %||% if (length(most)) max(0, ceiling(min(most)))
  rescaled <- vapply(parts, function(part) isTRUE((part$statistic$statistic %||% part$statistic)$rescale), TRUE)
  of <- unlist(lapply(parts[rescaled], function(part) names(release$value)[part$index]))
  odd <- intersect(if (!is.null(release$n)) impossible_components(release), of)
  if (length(odd) == 0L) return(NULL)
  list(list(kind = "units", text = c(
    sprintf("No set of records has totals like these if variables are rescaled to [-1, 1], as the statistic says: %s.", shorten_list(odd, 5L)),
    i = "Use rescale = FALSE in the statistic for totals in the variables' units.")))
}

release_marks <- function(release) {
  for (trouble in release_troubles(release)) cat("! ", trouble$text, "\n", sep = "")
}
