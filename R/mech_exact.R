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
#' records between cells that are in the same exact numbers. With few records it draws all counts at once, and then
#' also keeps single cells of features. For [model_table()] it keeps any exact counts and sums of them, such as exact margins that
#' overlap, by transfers that leave them as they are. It does so for up to 20,000 combinations of the levels that they are about. Of normal
#' records it keeps exact totals of variables and of their squares, so exact means and
#' variances, and moves the others alone. All of this also holds for sites in a [pool][pooling]. Other methods and models refuse.
#'
#' **Contradictions.** [as_release()] refuses exact numbers that no records have, and tells which of them contradict each other. An
#' exact number of records is `n`.
#'
#' @return A mechanism: an object of class `mech_exact`.
#' @section Errors: `noiseaware_error_value` from [as_release()] with exact numbers that no records have; `noiseaware_error_method` from
#'   methods that cannot keep them; `noiseaware_error_mechanism` from [release()] where every number is exact.
#' @seealso [published()] for noisy numbers that were hidden, rounded or set to a limit.
#' @family mechanisms
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

# for methods that cannot keep exact numbers
check_no_exact <- function(parts, method, call) {
  for (p in parts) if (is_exact(p$mechanism)) {
    name <- if (p$name == "") "" else paste0(" ", p$name, ",")
    stop_classed("method", c("Method {.val {method}} cannot keep numbers exact.", x = "The release has{name} {describe_statistic(p$statistic)}, without noise.",
                             i = "Method {.val collapse} keeps exact counts, and exact totals of normal records: see {.help mech_exact}."), call = call)
  }
}
