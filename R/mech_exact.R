# Numbers without noise, kernel "exact": a constraint on the records, never noise of a tiny scale. Methods ask
# is_exact() of a part's mechanism; where it is true the part's values are what its totals are.

#' Exact numbers
#'
#' Some numbers are published without noise: totals that a law wants exact (the state populations of the US Census), a sample
#' size per stratum, the sum of a column that everybody knows. Beside noisy numbers of the same records they are
#' a constraint: whatever the posterior says, it agrees with them exactly.
#'
#' @param ... Must be empty.
#'
#' @details
#' Exact numbers are a statistic of their own in a list of several, with a mechanism of their own: see the examples. [stat_subset()]
#' and [stat_linear()] say which numbers of a table they are.
#'
#' **No guarantee.** A number without noise is outside of the guarantee of differential privacy: that holds for the noisy numbers alone, among
#' databases with the same exact numbers. So `privacy()` of a release, its print and a [budget()] count the noisy parts, and the print
#' says what they leave out. [release()] refuses exact numbers alone.
#'
#' **Where it works.** Method `"collapse"` keeps exact counts of one variable, or of the class of a naive Bayes model, by moving
#' records between cells that are in the same exact numbers; with few records it draws all counts at once, and then
#' also keeps single cells of features. For [model_table()] it keeps any exact counts and sums of them, such as exact margins that
#' overlap, by transfers that leave them as they are; of up to 20,000 combinations of the levels that they are about. Of normal
#' records it keeps exact totals of variables and of their squares, so exact means and
#' variances, and moves the others alone. All of this holds for sites in a [pool][pooling], too. Other methods and models refuse.
#'
#' **Contradictions.** [as_release()] refuses exact numbers that no records have, and tells which of them contradict each other. An
#' exact number of records is `n`.
#'
#' @return A mechanism: an object of class `mech_exact`.
#' @section Errors: `noiseaware_error_value` from [as_release()] with exact numbers that no records have; `noiseaware_error_method` from
#'   methods that cannot keep them; `noiseaware_error_mechanism` from [release()] where every number is exact.
#' @seealso [published()] for noisy numbers that were hidden, rounded or set to a limit.
#' @examples
#' area <- stat_counts(~ area, levels = list(area = c("north", "east", "south", "west")))
#' # the north and the east together have 60 persons, by law; the four counts are noisy
#' rel <- as_release(list(law = c(upper = 60), counts = c(41, 23, 11, 31)),
#'   list(law = stat_linear(area, list(upper = c("area=north", "area=east"))), counts = area),
#'   list(law = mech_exact(), counts = mech_discrete_gaussian(sd = 5)), n = 100)
#' rel
#' denoise(sample_posterior(rel, model_categorical(), chains = 2, iter = 400, seed = 1))
#' @export
mech_exact <- function(...) {
  count <- ...length()
  if (count > 0L) stop_classed("mechanism", "{.fn mech_exact} takes no arguments, but got {count}: exact numbers have no noise to describe.")
  new_mechanism("exact", "exact", class = "mech_exact")
}

is_exact <- function(mechanism) mechanism$kernel == "exact"

#' @export
mechanism_scale.mech_exact <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  numeric(length(statistic$components))
}

#' @export
mechanism_sd.mech_exact <- function(mechanism, scale) scale

#' @export
add_noise.mech_exact <- function(mechanism, statistic, total, uniform, scale) total

#' @rdname privacy
#' @export
privacy.mech_exact <- function(x, ...) privacy_row(Inf, 0, Inf, Inf)

#' @export
format.mech_exact <- function(x, ...) "exact numbers, without noise"

#' @export
check_pair.mech_exact <- function(statistic, mechanism, call) {
  if (statistic$kind %in% c("totals", "cells")) return(invisible())
  stop_classed("mechanism", c("{.fn mech_exact} is for totals and counts.", x = "The statistic is {describe_statistic(statistic)}."), call = call)
}

# They go beside noisy numbers, and are no noise.
#' @export
mechanism_takes.mech_exact <- function(mechanism, statistic, kinds) FALSE

#' @export
log_noise.mech_exact <- function(part, data) 0

has_exact <- function(release) any(vapply(release_parts(release), function(p) is_exact(p$mechanism), TRUE))

# for methods that cannot keep exact numbers
check_no_exact <- function(parts, method, call) {
  for (p in parts) if (is_exact(p$mechanism)) {
    name <- if (p$name == "") "" else paste0(" ", p$name, ",")
    stop_classed("method", c("Method {.val {method}} cannot keep numbers exact.", x = "The release has{name} {describe_statistic(p$statistic)}, without noise.",
                             i = "Method {.val collapse} keeps exact counts, and exact totals of normal records: see {.help mech_exact}."), call = call)
  }
}

# "collapse" alone keeps them: why it does not
check_keeps_exact <- function(release, bound, call = caller_env()) {
  fault <- tryCatch({
    collapse_distribution(release, bound, check = TRUE)
    NULL
  }, noiseaware_error_method = identity)
  if (is.null(fault)) return(invisible())
  reasons <- c(fault$message, fault$body[names(fault$body) != "i"])
  reasons <- stats::setNames(reasons, rep("x", length(reasons)))
  stop_classed("method", c("No method keeps the exact numbers of this release under this model.", gsub("([{}])", "\\1\\1", reasons)), call = call)
}

# ---- contradictions ------------------------------------------------------------------------

# Exact numbers that no n records have are refused, and the smallest set of them that contradicts itself is told.
check_invariants <- function(parts, n, call = caller_env()) {
  parts <- Filter(function(p) is_exact(p$mechanism), parts)
  for (p in parts) check_possible(p, n, call)
  tables <- Filter(function(p) inherits(p$statistic, "stat_size") || is_table(table_of(p$statistic)), parts)
  if (length(tables)) check_tables(tables, n, call)
}

table_of <- function(statistic) if (inherits(statistic, "stat_linear")) statistic$statistic else statistic

# each number for itself
check_possible <- function(part, n, call) {
  value <- part$value
  names(value) <- part_components(part$statistic, n, part$name)
  stop_impossible <- function(which, why) {
    shown <- paste(names(value)[which], "=", format_number(value[which], 15L))
    stop_classed("value", c("Exact numbers must be possible.", x = "{shown[1L]}: {why}."), call = call)
  }
  broken <- integer_valued(part$statistic) & value != round(value)
  if (any(broken)) stop_impossible(broken, "it must be a whole number")
  limits <- component_limits(part$statistic)
  if (is.null(limits)) return(invisible())
  if (is.null(n)) limits <- cbind(ifelse(limits[, 1L] < 0, -Inf, 0), ifelse(limits[, 2L] > 0, Inf, 0)) else limits <- limits * n
  slack <- 1e-9 * pmax(1, abs(value))
  beyond <- value < limits[, 1L] - slack | value > limits[, 2L] + slack
  if (any(beyond)) {
    ends <- format_number(limits[which(beyond)[1L], ])
    stop_impossible(beyond, sprintf("%s records give from %s to %s", if (is.null(n)) "any" else format_size(n), ends[1L], ends[2L]))
  }
}

# All counts together: linear equations in the cells of the table of all their variables.
check_tables <- function(parts, n, call) {
  system <- exact_system(parts, n)
  if (is.null(system)) return(invisible())
  if (length(system$value) > most_compared) {
    # whether equations agree is quickly seen, unlike which do not
    if (max(abs(qr.resid(qr(system$rows), system$value))) > 1e-6 * max(1, abs(system$value))) {
      stop_classed("value", "Exact numbers must not contradict each other, but no table of counts has all of these.", call = call)
    }
  } else if (!is_feasible(system$rows, system$value)) {
    needed <- conflict(system$rows, system$value)
    shown <- paste(names(system$value)[needed], "=", format_number(system$value[needed], 15L))
    stop_classed("value", c("Exact numbers must not contradict each other, but no table of counts has {cli::qty(length(shown))}{?this/all of these}.",
                            x = "{shown}."), call = call)
  }
  if (!is.null(n)) return(invisible())
  weight <- qr.coef(qr(t(system$rows)), rep(1, ncol(system$rows)))
  weight[is.na(weight)] <- 0
  if (max(abs(drop(weight %*% system$rows) - 1)) < 1e-9) {
    stop_argument("n", paste("given where exact numbers tell it:", format_number(sum(weight * system$value), 15L)), "NULL", call = call)
  }
}

# Rows: exact numbers, and the number of records where it is known; columns: cells that differ in some row. NULL where the
# table is too large to be looked at.
exact_system <- function(parts, n) {
  sizes <- do.call(c, unname(lapply(parts, function(p) if (!inherits(p$statistic, "stat_size")) lengths(cell_labels(table_of(p$statistic))))))
  # bins of one number, cut in two ways
  if (length(sizes) && any(tapply(sizes, names(sizes), function(s) length(unique(s))) > 1L)) return(NULL)
  sizes <- sizes[!duplicated(names(sizes))]
  count <- sum(vapply(parts, function(p) length(p$value), 0))
  if (prod(sizes) > most_exact_cells || prod(sizes) * count > 1e6) return(NULL)
  codes <- as.matrix(expand.grid(lapply(sizes, function(k) seq_len(k) - 1)))
  rows <- do.call(rbind, lapply(parts, function(p) {
    if (inherits(p$statistic, "stat_size")) return(matrix(1, 1L, max(1, nrow(codes))))
    statistic <- p$statistic
    if (!inherits(statistic, "stat_linear")) {
      all <- seq_along(statistic$components)
      statistic <- linear_of(statistic, list(names = statistic$components, length = rep(1L, length(all)), column = all, weight = rep(1, length(all))))
    }
    of <- sizes[names(cell_labels(statistic$statistic))]
    combination <- drop(codes[, names(of), drop = FALSE] %*% cumprod(c(1, of))[seq_along(of)]) + 1
    t(record_queries(statistic)[combination, , drop = FALSE])
  }))
  value <- unlist(lapply(parts, function(p) stats::setNames(p$value, part_components(p$statistic, n, p$name))))
  if (!is.null(n)) {
    rows <- rbind(rows, 1)
    value <- c(value, "number of records" = n)
  }
  list(rows = unique(rows, MARGIN = 2L), value = value)
}

most_exact_cells <- 20000
most_compared <- 60L

# Are there x >= 0 with rows x = value?
is_feasible <- function(rows, value) length(nonnegative_solution(rows, value)) > 0L

# Such x, most of them 0, or none. Non-negative least squares (Lawson & Hanson 1974, chapter 23).
nonnegative_solution <- function(rows, value) {
  size <- pmax(1, abs(value))
  a <- rows / size
  b <- value / size
  x <- numeric(ncol(a))
  passive <- logical(ncol(a))
  solve_passive <- function() {
    s <- numeric(ncol(a))
    s[passive] <- qr.coef(qr(a[, passive, drop = FALSE]), b)
    replace(s, is.na(s), 0)
  }
  for (step in seq_len(30L * length(b))) {
    residual <- b - drop(a %*% x)
    gain <- drop(residual %*% a)
    gain[passive] <- 0
    if (max(abs(residual)) < 1e-9 || max(gain) < 1e-10) break
    passive[which.max(gain)] <- TRUE
    s <- solve_passive()
    while (any(s[passive] <= 0)) {
      low <- which(passive & s <= 0)
      part <- x[low] / (x[low] - s[low])
      x <- x + min(part[is.finite(part)], 1) * (s - x)
      passive[passive & x <= 1e-12] <- FALSE
      x[!passive] <- 0
      s <- solve_passive()
    }
    x <- s
  }
  if (max(abs(b - drop(a %*% x))) < 1e-7) x else numeric()
}

# rows that contradict each other and would not without any one of them
conflict <- function(rows, value) {
  needed <- seq_along(value)
  for (k in rev(seq_along(value))) {
    rest <- setdiff(needed, k)
    if (!is_feasible(rows[rest, , drop = FALSE], value[rest])) needed <- rest
  }
  needed
}
