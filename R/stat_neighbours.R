# What a guarantee is about: which databases are neighbours. They differ in one record, replaced or added; or in one person with several
# records, at most k of which are used. Whatever else is in the database, a person's used records are k or fewer and depend on no other
# person, so each norm of a change is at most k times the largest norm of one record's contribution:
#   sensitivity(persons) = k sensitivity("add_remove")
# This holds for any choice that looks at one person's records alone. The choice is random so that it favours no kind of record.
#
# If one person takes another one's place, each has k used records or fewer: neighbours are k steps apart, in each of which a record is replaced,
# added or removed. If all records of each are alike, the steps add up:
#   sensitivity(replaced persons) = k max(sensitivity("replace"), sensitivity("add_remove"))
# Numbers of records differ, so that n is confidential there as well.
#
# Within the package such neighbours are "add_remove" with attributes: `contributions`, k; `replaced`, TRUE where a person is; and until the records
# have been chosen `person`, the column with the persons' names.

#' Guarantees for persons with several records
#'
#' If one person can have several records, such as visits, purchases or answers, a guarantee for one record does not protect the person. With
#' `neighbours = persons("id", contributions = 5)`, neighbouring databases differ in one person, with all of that person's records. [release()] uses at most
#' `contributions` records of each person, chosen at random, and scales the noise for all of them.
#'
#' @param person Name of the column that identifies persons. `NULL` where no records are read: in [as_release()], [sensitivity()], [budget()] and
#'   simulations from a model.
#' @param contributions The largest number of records of one person that are used: a whole number, at least 1.
#' @param neighbours `"add_remove"`: one person more or less. `"replace"`: one person replaced by another, each with any number of records. The number of
#'   persons is then public, but releases do not state it. The number of records is confidential in both cases.
#' @details
#' **Sensitivity.** It is `contributions` times the sensitivity to one record added or removed, in both the L1 and the L2 norm: a person's records may all move
#' a total in the same direction. Noise for `contributions = 5` and an `epsilon` is the noise for one record and `epsilon / 5` (for `mu` likewise; `rho` is
#' divided by 25), and [design()] has the argument `neighbours` as well. A small number keeps the noise small but leaves records out.
#'
#' With `neighbours = "replace"`, it is `contributions` times the sensitivity to one record replaced, added or removed, whichever is the largest, because the other
#' person may have fewer records, or none. It is at most twice as large: for a sum of values from 0 to 12 it is the same, for counts of levels twice as large in the
#' L1 norm. Such a guarantee also holds for one person added or removed. Conversely, if one person is added or removed, the guarantee for one
#' replaced person has twice the `epsilon` or `mu`, and four times the `rho`.
#'
#' **Which records are used.** For a data frame and for files, random bits from the operating system decide, without regard to values. In a database, its own
#' generator decides: the guarantee does not depend on how records are chosen, as long as only the person's own records matter. All statistics of one
#' [release()] use the same records. Each release chooses again, so [add_release()] does not combine such releases. Files are read twice, and the names
#' of persons have to fit into memory. The chunks of a function ([record_source()]) and Arrow records are read once, and the chosen records have to fit into
#' memory. [partial_total()] is refused, because several owners may have records of the same person.
#'
#' **The analyst** learns the limit from the release, its printed form and its JSON file. The number of records is unknown (as with
#' `neighbours = "add_remove"`); it is the number of records that were used. Persons with more records than the limit have less weight
#' among the used records than among all. Models treat records as independent. If a person's records resemble each other, posteriors describe the used
#' records correctly, but are too certain about the population.
#'
#' **Totals of persons.** If each person's total matters, or if records of a person resemble each other, make one record of each person first:
#' `aggregate(hours ~ id, visits, sum)`. The bounds of a statistic then clamp the total of a person, all records of a person count, and the usual neighbours
#' protect persons. A model describes persons, who are independent.
#'
#' **Budgets** for persons (`budget(neighbours = persons("id", 5))`) are charged by releases for persons only, with the same `neighbours` and any number of
#' contributions.
#' @return An object of class `noiseaware_persons`, for the argument `neighbours`.
#' @section Errors: `noiseaware_error_argument`; in [release()] `noiseaware_error_data` if the column is missing or has missing values, and
#'   `noiseaware_error_neighbours` for statistics and mechanisms without a guarantee for persons: [mech_randomized_response()], [stat_records()], [mech_objective()].
#' @references
#' Wilson, R. J., Zhang, C. Y., Lam, W., Desfontaines, D., Simmons-Marengo, D. and Gipson, B. (2020). Differentially private SQL with bounded user
#' contribution. \doi{10.2478/popets-2020-0025}
#' @family guarantees
#' @examples
#' visits <- data.frame(id = c("a", "a", "a", "b", "c"), hours = c(2, 3, 4, 8, 1))
#' hours <- stat_sums(~ hours, bounds = list(hours = c(0, 12)))
#' each <- persons("id", contributions = 2)
#' sensitivity(hours, neighbours = each)
#' sensitivity(hours, neighbours = persons("id", contributions = 2, neighbours = "replace"))
#' noise <- list(hours = mech_laplace(epsilon = 1), visits = mech_laplace(epsilon = 1))
#' release(visits, list(hours = hours, visits = stat_size()), noise, neighbours = each)
#' # totals of persons instead: one record for each, clamped to 20 hours
#' persons_hours <- aggregate(hours ~ id, visits, sum)
#' release(persons_hours, stat_sums(~ hours, list(hours = c(0, 20))), mech_laplace(epsilon = 1))
#' # a published total, of at most 3 records per person
#' as_release(312.5, hours, mech_laplace(epsilon = 1), n = NULL,
#'            neighbours = persons(contributions = 3))
#' @concept user-level privacy
#' @concept bounded contributions
#' @concept repeated measurements
#' @export
persons <- function(person = NULL, contributions, neighbours = c("add_remove", "replace")) {
  check_given()
  if (!is.null(person) && !checkmate::test_string(person, min.chars = 1L)) stop_argument("person", "NULL or the name of a column", describe(person))
  neighbours <- if (missing(neighbours)) "add_remove" else check_choice(neighbours, "neighbours", neighbour_kinds)
  structure(list(person = person, contributions = check_count(contributions, "contributions"), neighbours = neighbours), class = "noiseaware_persons")
}

#' @export
format.noiseaware_persons <- function(x, ...) {
  paste0("<neighbours> ", neighbours_words(match_neighbours(x)), if (!is.null(x$person)) paste0("; persons are in the column ", x$person))
}

#' @export
print.noiseaware_persons <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  invisible(x)
}

# ---- kinds of neighbours --------------------------------------------------

neighbour_kinds <- c("replace", "add_remove")

match_neighbours <- function(neighbours, call = caller_env()) {
  if (identical(neighbours, neighbour_kinds)) return("replace")
  if (inherits(neighbours, "noiseaware_persons")) {
    return(structure("add_remove", contributions = neighbours$contributions, person = neighbours$person, replaced = if (neighbours$neighbours == "replace") TRUE))
  }
  if (of_persons(neighbours)) return(neighbours)
  if (!checkmate::test_choice(neighbours, neighbour_kinds)) {
    stop_argument("neighbours", "\"replace\", \"add_remove\" or persons()", describe(neighbours), call = call)
  }
  neighbours
}

replaces <- function(neighbours, call = caller_env()) match_neighbours(neighbours, call) == "replace"

# Why a statistic cannot be released for such neighbours: an error's lines. NULL if it can.
neighbours_fault <- function(statistic, neighbours) UseMethod("neighbours_fault")

#' @export
neighbours_fault.default <- function(statistic, neighbours) NULL

check_neighbours <- function(statistic, neighbours, call = caller_env()) {
  fault <- neighbours_fault(statistic, match_neighbours(neighbours, call))
  if (!is.null(fault)) stop_classed("neighbours", fault, call = call)
}

# what a guarantee is about, in words
neighbours_text <- c(replace = "one replaced record", add_remove = "one record added or removed", person = "one person added or removed",
                     person_replaced = "one replaced person")

of_persons <- function(neighbours) !is.null(attr(neighbours, "contributions"))

# how many records neighbours differ in
contributions_of <- function(neighbours) attr(neighbours, "contributions") %||% 1

# as a release states them: which column had the persons is not published
stated_neighbours <- function(neighbours) {
  attr(neighbours, "person") <- NULL
  neighbours
}

# what a budget distinguishes
neighbour_kind <- function(neighbours) {
  if (!of_persons(neighbours)) neighbours else if (replaces_person(neighbours)) "person_replaced" else "person"
}

replaces_person <- function(neighbours) !is.null(attr(neighbours, "replaced"))

# what a guarantee is about, in words
neighbours_words <- function(neighbours) {
  if (!of_persons(neighbours)) return(neighbours_text[[neighbours]])
  count <- contributions_of(neighbours)
  records <- paste("with at most", format_size(count), if (count == 1) "record" else "records")
  if (replaces_person(neighbours)) paste("one replaced person,", records) else paste0("one person, ", records, ", added or removed")
}

# why no release for persons can be made of such a pair; NULL if one can
persons_fault <- function(part) {
  if (part$mechanism$kernel %in% c("match", "objective") || identical(part$statistic$kind, "records")) {
    of <- if (!is.null(part$statistic)) paste(" of", describe_statistic(part$statistic))
    paste0("{.fn persons} is for totals with noise, but the mechanism is ", escape_braces(paste0(format(part$mechanism), of)), ".")
  }
}

check_persons <- function(parts, neighbours, call) {
  if (!of_persons(neighbours)) return(invisible())
  for (part in parts) {
    fault <- persons_fault(part)
    if (!is.null(fault)) stop_classed("neighbours", fault, call = call)
  }
}
