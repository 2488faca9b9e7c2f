# Totals in integers of the release's grid, of some of the records: what chunks of a file, tables of a
# database and several owners add up before noise is added once. A list:
#   totals      for each part of the design a matrix, a row a component: high * 10^9 + low units
#   unit        for each part, one a component: the release's, but at most 1 for counts
#   n           how many records it is of
#   statistic, mechanism, neighbours

#' Joint release by several owners
#'
#' Owners who may pool their records before anything is published can add up exact totals instead. Each computes the partial total of its own records; one of
#' them passes all of these to [release()], which adds the noise once. For the same noise, the release is bit for bit the one that [release()] would make from
#' all records in one data frame.
#'
#' **A partial total is confidential**: it has no noise. When printed, it says so and shows none of its numbers. How it is stored and sent, encrypted or not, is
#' up to the owners.
#'
#' @param data Some of the records: a data frame, or other input that [release()] accepts.
#' @param statistic,mechanism,neighbours The design, the same for all owners: see [release()]. The mechanism determines the unit that records are rounded to.
#' @param n The public number of records of all owners together. Needed only for [stat_custom()], and if the unit depends on it because there is very little
#'   noise for the size of the data; an error says so.
#' @return An object of class `noiseaware_partial`. [release()] of a list of these returns a release.
#' @section Errors: The errors of [release()]; `noiseaware_error_partial` if totals do not belong together.
#' @seealso [record_source()] for data that are larger than memory.
#' @family making releases
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' ours <- partial_total(MASS::birthwt[1:100, ], st, mech_laplace(epsilon = 2))
#' theirs <- partial_total(MASS::birthwt[101:189, ], st, mech_laplace(epsilon = 2))
#' ours
#' release(list(ours, theirs))
#' @export
partial_total <- function(data, statistic, mechanism, n = NULL, neighbours = c("replace", "add_remove")) {
  check_given()
  neighbours <- match_neighbours(neighbours)
  if (of_persons(neighbours)) {
    stop_classed("neighbours", c("Partial totals have no guarantee for persons, because several owners may have records of the same person.",
                                 i = "Use {.fn release} on all records together."))
  }
  check_design(statistic, mechanism, neighbours)
  check_exact(design_parts(statistic, mechanism, neighbours))
  if (!is.null(n)) n <- check_count(n, "n")
  source_total(readable_source(data), statistic, mechanism, neighbours, n)
}

#' @export
print.noiseaware_partial <- function(x, ...) {
  parts <- design_parts(x$statistic, x$mechanism, x$neighbours)
  cat("<partial total> CONFIDENTIAL: exact, without noise\n")
  for (p in parts) cat("  statistic  ", describe_statistic(p$statistic), "\n  mechanism  ", format(p$mechanism), "\n", sep = "")
  cat("  neighbours ", neighbours_words(x$neighbours), "\n", sep = "")
  invisible(x)
}

#' @export
format.noiseaware_partial <- function(x, ...) "<partial total> CONFIDENTIAL"

#' @export
summary.noiseaware_partial <- function(object, ...) object
