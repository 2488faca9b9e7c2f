# A release: the published totals and the public facts around them.
#   value      named totals with noise
#   statistic, mechanism
#   n          public number of records; NULL where it is not known
#   scale      noise scale of every component
#   granularity  of every component: its value is a multiple of it; 0 if that is
#              not known
#   noise      where the noise came from: "entropy", "simulation", "published"
#   spent       the guarantee of the whole release, where these are only the numbers that a model uses
#   neighbours, missing  what the guarantee is about ("replace" or "add_remove"), and the rule for
#              missing values

missing_rule <- "refused"

new_release <- function(value, statistic, mechanism, n, scale, granularity, noise, neighbours) {
  mechanism <- sized_mechanism(mechanism, n, neighbours)
  structure(list(value = value, statistic = statistic, mechanism = mechanism, n = n,
                 scale = stats::setNames(scale, names(value)),
                 granularity = stats::setNames(rep_len(granularity, length(value)), names(value)),
                 noise = noise, neighbours = stated_neighbours(neighbours), missing = missing_rule),
            class = "noiseaware_release")
}

#' Make a private release
#'
#' The main function for data owners. It sums the statistic over the confidential records and adds noise drawn from the operating system's entropy. The result
#' holds the noisy totals and the declared facts (bounds, levels, and the number of records if it is public), and nothing else about the data.
#'
#' @param data A data frame, one record per row, with every variable of the statistic and no missing values in these variables. Or records that are not in
#'   memory: [record_source()], Arrow tables and data sets, or a database table from [dplyr::tbl()], see below. Or a list of
#'   [partial totals][partial_total] from several owners, which already contain the other arguments, except `budget`.
#' @param statistic What is summed, such as [stat_crossprod()]; or a named list of statistics for the same data.
#' @param mechanism How noise is added, such as [mech_laplace()]; with a list of
#'   statistics, a list of mechanisms with the same names, each with its share of
#'   the budget.
#' @param budget `NULL`, or a [budget()] that is charged for the release; a release that would exceed it is refused.
#' @param neighbours Which databases are neighbours, see below and [sensitivity()].
#' @param public `NULL`, or a formula such as `~ x + z` of public variables, which are published unchanged, together with [stat_records()] of the confidential
#'   ones: see [public_covariates].
#'
#' @details
#'   **Neighbours.** With `"replace"`, neighbouring databases differ in one replaced record, so the number
#'   of records n is public and is published with the totals. With `"add_remove"`, one of them has one more record, and n is confidential. Nothing in the
#'   release reveals n, and the possible outputs are the same for every n from 0 to 2^31 - 1. Release [stat_size()] with the other statistics if analysts should
#'   learn about n. A release states its kind of neighbours; a [budget()] covers one kind. If persons can have several records, use
#'   `neighbours = persons("id", contributions = 5)`: at most that many records of each person are used, and the guarantee is about persons ([persons()]).
#'
#'   **Integer arithmetic.** Noise that is added in floating-point arithmetic leaks
#'   through the last bits of the sums (Mironov 2012; Haney et al. 2022;
#'   Casacuberta et al. 2022). So each record's values are rounded to multiples of a
#'   unit, the release's `granularity`, and added as 64-bit integers. The noise is a
#'   discrete Laplace or discrete Gaussian number of units, drawn exactly by
#'   integer arithmetic (Canonne, Kamath & Steinke 2020) from the operating
#'   system's entropy. The result is converted to double precision once, at the end. The set of possible outputs is the same for all data.
#'
#'   The unit is a power of two, computed from public facts: the noise scale is
#'   2^23 units or more where the bounds and n allow it, and never less than 2^10.
#'   Rounding can move the difference of two records by one unit per component. The sensitivity includes this, and the scale is rounded up to whole units, so
#'   the noise is larger than in [simulate_release()] by a factor of about 1 + 2^-20. The log density of the continuous noise, which [sample_posterior()] uses,
#'   equals the discrete one up to a constant. Rounding the records moves a total by about sqrt(n) / 4 units; at n = 10^6 that is a 30,000th of the noise scale.
#'
#'   Discrete Gaussian noise has the zero-concentrated guarantee exactly. For `mu`, and for `epsilon` with `delta`, the guarantee is stated for continuous noise,
#'   rounded to units. The discrete noise of d components with scales of s units has a total variation distance of at most t = d / (49 s^2) from it, which is
#'   3e-16 d at s = 2^23. The release is therefore (epsilon, delta + (1 + e^epsilon) t)-differentially private; [privacy()] reports `delta` without that term.
#'
#'   **In a database** (SQLite, PostgreSQL, DuckDB, Spark) one SQL query clamps, multiplies and rounds each record and adds up
#'   integers; only the sums leave the database, and the noise is added in R. The result equals the one from a data frame, bit for bit for the same noise. This
#'   was tested with SQLite and PostgreSQL (through RPostgres and RPostgreSQL), and with DuckDB where that package is installed. The SQL for Spark is parsed
#'   with Spark's grammar by `tools/spark_grammar.R` in the repository, but it has not been run. A database that rounds differently is refused before any
#'   records are read. Missing values and undeclared levels are counted in the database, and lead to an error. Names and levels are quoted; the query contains
#'   no value of a record. Messages from the database are replaced by an error of class `noiseaware_error_database`, but drivers may print some, and servers
#'   write logs. [stat_linear()] and [stat_custom()] need [record_source()].
#'
#'   **No protection** is given against someone who times a release (sampling takes a random time), reads the machine's memory or disk (they are not wiped), or
#'   learns that a release was refused, and why. User-declared sensitivities ([stat_custom()]) are trusted. [release_objective()] draws and minimises in
#'   floating-point arithmetic, so its last bits are not safe in this sense. The proofs are in the help pages and the tests; they have not been verified
#'   independently. The file `SECURITY.md` in the sources has the full list.
#'
#' @references
#' Mironov, I. (2012). On significance of the least significant bits for
#' differential privacy. \doi{10.1145/2382196.2382264}
#'
#' Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for
#' differential privacy. \doi{10.48550/arXiv.2004.00010}
#'
#' Casacuberta, S., Shoemate, M., Vadhan, S. and Wagaman, C. (2022). Widespread
#' underestimation of sensitivity in differentially private libraries and how to
#' fix it. \doi{10.1145/3548606.3560708}
#'
#' Haney, S., Desfontaines, D., Hartman, L., Shrestha, R. and Hay, M. (2022).
#' Precision-based attacks and interval refining: how to break, then fix,
#' differential privacy on finite computers. \doi{10.48550/arXiv.2207.13793}
#' @return A release: an object of class `noiseaware_release`, whose `value` is
#'   the named vector of noisy totals.
#' @section Errors: `noiseaware_error_data`, `noiseaware_error_missing` (states how many values are missing, and in which rows), `noiseaware_error_levels`,
#'   `noiseaware_error_mechanism`, `noiseaware_error_neighbours`, `noiseaware_error_budget`, `noiseaware_error_entropy`, `noiseaware_error_database`;
#'   `noiseaware_error_partial` for statistics that are not totals when the records are not in memory.
#' @seealso [partial_total()] for totals from several owners, [as_release()] for numbers published by someone else, [write_release()] to publish,
#'   [sample_posterior()] to analyse.
#' @family making releases
#' @examples
#' st <- stat_crossprod(bwt ~ age + lwt,
#'   bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)))
#' release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' # the number of mothers is confidential
#' release(MASS::birthwt, st, mech_laplace(epsilon = 2), neighbours = "add_remove")
#' @export
release <- function(data, statistic, mechanism, budget = NULL, neighbours = c("replace", "add_remove"), public = NULL) {
  # with a design, records are not looked at before the budget is
  if (missing(statistic) && missing(mechanism) && !missing(data) && holds_partials(data)) {
    if (!missing(neighbours) || !is.null(public)) stop_classed("argument", "Partial totals have their design: only {.arg budget} can be given with them.")
    call <- environment()
    whole <- Reduce(function(a, b) add_partials(a, b, call), data)
    return(publish_with_budget(function() whole, whole$statistic, whole$mechanism, whole$neighbours, budget))
  }
  check_given()
  neighbours <- match_neighbours(neighbours)
  check_person_named(neighbours)
  beside <- public_of_formula(data, public, statistic, mechanism)
  if (!is.null(beside)) statistic <- as_whole(statistic, mechanism)
  check_design(statistic, mechanism, neighbours)
  tell_owner_binary(design_parts(statistic, mechanism))
  records <- function() {
    used <- limit_contributions(readable_source(data), statistic, neighbours, entropy_uniform)
    if (is.data.frame(used)) used else source_total(used, statistic, mechanism, neighbours)
  }
  published <- publish_with_budget(records, statistic, mechanism, neighbours, budget)
  with_public(published, beside)
}

# The release of what data() gives, records or their partial total, paid from the budget; data() is not called where
# that is not enough.
publish_with_budget <- function(data, statistic, mechanism, neighbours, budget, call = caller_env()) {
  mechanism <- drawn_mechanism(mechanism)
  parts <- design_parts(statistic, mechanism, neighbours)
  check_exact(parts, call)
  check_private_channels(parts, call)
  lock <- hold_budget(budget, neighbours, call)
  on.exit(unlock_budget(lock))
  check_affordable(budget, design_privacy(parts), call)
  result <- make_release(data(), statistic, mechanism, neighbours, exact_part, "entropy", call)
  if (is.null(budget)) return(result)
  cost <- privacy(result)
  check_affordable(budget, cost, call) # rounding counted
  spend(budget, cost, paste(vapply(parts, function(p) describe_statistic(p$statistic), ""), collapse = "; "), call)
  result
}

# every part's values by noisy_part(part, data, call)
make_release <- function(data, statistic, mechanism, neighbours, noisy_part, noise, call = caller_env()) {
  parts <- design_parts(statistic, mechanism, neighbours)
  for (p in parts) mechanism_scale(p$mechanism, p$statistic, call, neighbours = neighbours) # refuses before data are touched
  made <- lapply(parts, function(p) {
    part <- noisy_part(p, data, call)
    part$value <- stats::setNames(part$value, part_components(p$statistic, records_in(data), p$name))
    part
  })
  all_of <- function(field) unlist(lapply(made, `[[`, field))
  n <- if (replaces(neighbours)) records_in(data)
  new_release(all_of("value"), statistic, mechanism, n, all_of("scale"), all_of("unit"), noise, neighbours)
}

# A release of whole statistics in place of queries of them, for those who look at its statistics alone. Values are 0.
whole_release <- function(release) {
  whole_of <- function(statistic) if (inherits(statistic, "stat_linear")) statistic$statistic else statistic
  statistic <- if (is_several(release$statistic)) lapply(release$statistic, whole_of) else whole_of(release$statistic)
  parts <- design_parts(statistic, release$mechanism)
  components <- unlist(lapply(parts, function(p) part_components(p$statistic, release$n, p$name)))
  value <- stats::setNames(numeric(length(components)), components)
  new_release(value, statistic, release$mechanism, release$n, rep(1, length(value)), 0, release$noise, release$neighbours)
}

# the released values of one part, with their scale and unit
exact_part <- function(part, data, call) {
  if (is_partial(data)) return(partial_part(part, data, call))
  statistic <- part$statistic
  x <- part_records(part, data, call)
  if (part$mechanism$kernel == "match") return(exact_response(part, data, call))
  if (part$mechanism$kernel == "ranks") return(exact_quantiles(part, point_counts(statistic, x), call))
  if (is_exact(part$mechanism)) return(simulated_part(part, data, call)) # no noise is drawn
  grid <- part_grid(part, nrow(data), call)
  value <- .Call(ffi_exact_release, statistic_spec(statistic, confidential = TRUE, call), x, statistic$kind, grid$unit, grid$family,
                 grid$scale$numerator, grid$scale$denominator, grid$records)
  exact_result(value, part, grid, call)
}
