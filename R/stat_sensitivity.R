#' How far one record can move a statistic
#'
#' The largest change of the totals, over all pairs of neighbouring databases: databases that differ in one replaced record, or in one record added or removed.
#' It is computed only from declared bounds and levels.
#'
#' @param statistic A statistic, such as [stat_crossprod()].
#' @param norm `"L1"` (sum of absolute changes, for Laplace noise) or `"L2"`
#'   (root of the sum of squares, for Gaussian noise).
#' @param neighbours Which databases are neighbours. `"replace"`: those that differ in one replaced record; the number of records is public. `"add_remove"`:
#'   those that differ in one record added or removed; the number of records is confidential. The sensitivity is then the largest norm of a single record's
#'   contribution. [persons()]: those that differ in one person with several records, who is added, removed or replaced.
#' @return A non-negative number, in the units of the released totals.
#' @section Errors: `noiseaware_error_argument`; `noiseaware_error_neighbours` if the statistic has no sensitivity to a record added or removed:
#'   [stat_records()], which reveals the number of records, and a [stat_custom()] that declares none.
#' @family guarantees
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' sensitivity(st, "L1")
#' sensitivity(st, "L2")
#' sensitivity(st, "L1", neighbours = "add_remove")
#' @export
sensitivity <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  check_given()
  check_statistic(statistic)
  if (!identical(neighbours, neighbour_kinds)) {
    neighbours <- match_neighbours(neighbours)
    if (of_persons(neighbours)) {
      one <- sensitivity(statistic, norm, "add_remove")
      return(contributions_of(neighbours) * if (replaces_person(neighbours)) max(one, sensitivity(statistic, norm, "replace")) else one)
    }
  }
  UseMethod("sensitivity")
}

match_norm <- function(norm, call = caller_env()) {
  if (identical(norm, c("L1", "L2"))) return("L1")
  check_choice(norm, "norm", c("L1", "L2"), call = call)
}

# the L1 or L2 norm, of changes or of what a record contributes
length_of <- function(x, norm) if (norm == "L1") sum(abs(x)) else sqrt(sum(x^2))

# sensitivity of totals that were rounded to units; integers are not changed by a
# unit that divides 1
grid_sensitivity <- function(statistic, norm, unit, neighbours = "replace", call = caller_env()) {
  exact <- sensitivity(statistic, norm, neighbours)
  if (all(unit == 0) || (integer_valued(statistic) && all(unit <= 1))) return(exact)
  unit <- rep_len(unit, length(statistic$components))
  # and a hair for the last bits of a record's products, or what they can be
  added <- (1 + pmax(2^-20, product_error(statistic) / unit)) * unit
  exact + contributions_of(match_neighbours(neighbours, call)) * length_of(added, norm)
}

# largest absolute value of a record's contribution to any component; where it
# is not known, what the sensitivity says, or far beyond what it suggests
component_size <- function(statistic, neighbours) {
  limits <- component_limits(statistic)
  if (!is.null(limits)) return(max(abs(limits)))
  (if (replaces(neighbours)) 2^20 else 1) * sensitivity(statistic, "L1", neighbours)
}

#' @export
format.noiseaware_statistic <- function(x, ...) {
  numeric_columns <- x$columns[is.na(x$columns$level), ]
  bounds <- sprintf("%s in [%s, %s]", numeric_columns$name, format_number(numeric_columns$lower),
                    format_number(numeric_columns$upper))
  factors <- sprintf("%s in {%s}", names(x$levels), vapply(x$levels, paste, "", collapse = ", "))
  statistic_lines(x, paste0("  bounds      ", paste(c(bounds, factors), collapse = ", ")))
}

# what a statistic prints, with a line about its variables
statistic_lines <- function(x, variables) {
  c(statistic_title(x), variables, sprintf("  components  %d: %s", length(x$components), shorten_list(x$components)), sensitivity_line(x))
}

statistic_title <- function(x) paste0("<statistic> ", describe_statistic(x))

sensitivity_line <- function(x) sprintf("  sensitivity L1 %s, L2 %s", format_number(sensitivity(x, "L1")), format_number(sensitivity(x, "L2")))

# Of a part's statistic. Where a record may be added, there may be none: the empty database is a
# neighbour of one with a single record.
part_records <- function(part, data, call = caller_env()) {
  statistic_records(part$statistic, data, call, empty = !replaces(part$neighbours))
}
