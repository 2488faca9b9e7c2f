# Numbers without noise, kernel "exact": a constraint on the records, not noise with a tiny scale. Methods call is_exact() on a part's mechanism; if it is
# true, the part's values are its totals.

#' Exact numbers
#'
#' Some numbers are published without noise: totals that must be exact by law (state populations in the US Census), a sample size per stratum, the publicly
#' known sum of a column. Combined with noisy numbers of the same records they are a constraint: every posterior draw agrees with them exactly.
#'
#' @param ... Must be empty.
#'
#' @details
#' Exact numbers are a separate statistic in a list of several, with their own mechanism: see the examples. Use [stat_subset()] and [stat_linear()] to describe
#' which numbers of a table they are.
#'
#' **No guarantee.** A number without noise is outside the guarantee of differential privacy, which covers only the noisy numbers, among databases with the same
#' exact numbers. So `privacy()`, the printed release and a [budget()] count only the noisy parts; the printed release lists what they exclude. [release()] does
#' not accept exact numbers alone.
#'
#' **Where it works.** Method `"collapse"` respects exact counts of one variable, or of the class of a naive Bayes model, by moving records only between cells
#' that belong to the same exact numbers. With few records it draws all counts at once, and then also respects single cells of features. For [model_table()] it
#' respects any exact counts and sums of counts, such as overlapping exact margins, by transfers that leave them unchanged. This works for up to 20,000
#' combinations of the levels involved. For normal records it respects exact totals of variables and of their squares, and hence exact means and variances, and
#' moves only the other totals. All of this also holds for sites in a [pool][pooling]. Other methods and models do not accept exact numbers.
#'
#' **Contradictions.** [as_release()] rejects exact numbers that no records can have, and lists those that contradict each other. Give an exact number of
#' records as `n`.
#'
#' @return A mechanism: an object of class `mech_exact`.
#' @section Errors: `noiseaware_error_value` from [as_release()] with exact numbers that no records can have; `noiseaware_error_method` from methods that cannot
#'   respect them; `noiseaware_error_mechanism` from [release()] if every number is exact.
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

#' @export
guarantee_of.mech_exact <- function(x, ...) privacy_row(Inf, 0, Inf, Inf)

#' @export
format.mech_exact <- function(x, ...) "exact numbers, without noise"

#' @export
check_pair.mech_exact <- function(statistic, mechanism, call) {
  if (statistic$kind %in% c("totals", "cells")) return(invisible())
  stop_classed("mechanism", c("{.fn mech_exact} is for totals and counts.", x = "The statistic is {describe_statistic(statistic)}."), call = call)
}

# They go with noisy numbers, and are no noise.
#' @export
mechanism_takes.mech_exact <- function(mechanism, statistic, kinds) FALSE

#' @export
log_noise.mech_exact <- function(part, data) 0

# for methods that cannot keep exact numbers
check_no_exact <- function(parts, method, call) {
  for (p in parts) if (is_exact(p$mechanism)) {
    name <- if (p$name == "") "" else paste0(" ", p$name, ",")
    stop_classed("method", c("Method {.val {method}} cannot respect exact numbers.", x = "The release has{name} {describe_statistic(p$statistic)} without noise.",
                             i = "Method {.val collapse} respects exact counts, and exact totals of normal records: see {.help mech_exact}."), call = call)
  }
}
