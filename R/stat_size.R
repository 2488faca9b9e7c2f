#' The number of records
#'
#' The number of records as a statistic, to be released with other statistics of the same records when that number is confidential
#' (`neighbours = "add_remove"`).
#'
#' @details
#' **Components.** One, called `n`. In a list with other statistics, `list(size = stat_size(), ...)`, it is called `size: n`.
#'
#' **Sensitivity.** 1 in both norms for a record added or removed. A replaced record does not change the number: the sensitivity is 0 and n is public, so
#' [release()] and [as_release()] do not accept the statistic for such neighbours; publish n itself.
#'
#' A margin of [stat_counts()] also informs the analyst about n, since it adds up to n; `stat_size()` is then not needed.
#'
#' @return A statistic: an object of class `stat_size`.
#' @family statistics of counts
#' @examples
#' st <- list(size = stat_size(), smoke = stat_counts(~ smoke, levels = list(smoke = c("0", "1"))))
#' half <- mech_discrete_laplace(epsilon = 0.5)
#' release(MASS::birthwt, st, list(size = half, smoke = half), neighbours = "add_remove")
#' @export
stat_size <- function() {
  columns <- data.frame(name = character(), lower = numeric(), upper = numeric(), variable = character(), level = character())
  new_statistic("size", "cells", columns = columns, levels = list(), components = "n", class = "stat_size")
}

#' @export
statistic_fields.stat_size <- function(statistic) list()

# it has no variables
#' @export
variable_kinds.stat_size <- function(x) character()

#' @export
describe_statistic.stat_size <- function(statistic) "the number of records"

#' @export
format.stat_size <- function(x, ...) {
  c("<statistic> the number of records", "  components  1: n", "  sensitivity L1 1, L2 1, for a record added or removed")
}

#' @export
sensitivity.stat_size <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  match_norm(norm)
  if (replaces(neighbours)) 0 else 1
}

#' @export
neighbours_fault.stat_size <- function(statistic, neighbours) {
  if (neighbours == "replace") {
    c("The number of records is public if neighbours differ in a replaced record: there is nothing to release.",
      i = "A noisy number of records needs {.code neighbours = \"add_remove\"} and {.code n = NULL}.")
  }
}

#' @export
component_limits.stat_size <- function(statistic) cbind(1, 1)

#' @export
statistic_json.stat_size <- function(statistic) list(name = "size")

stat_size_from_json <- function(x, refuse, claim) {
  require_fields(x, "name", "statistic", refuse)
  claim(1)
  stat_size()
}
