#' Quantiles of a number
#'
#' Quantiles chosen from the points of a public grid by the exponential mechanism ([mech_exponential()]). Quantiles are not sums; they depend on the records
#' through the number of records at each point of the grid.
#'
#' @param formula The variable: `~ x`.
#' @param bounds `c(lower, upper)`, or a named list with these for the variable. Values outside are clamped. Bounds are public: choose them from subject
#'   knowledge, never from the confidential data.
#' @param probs Probabilities of the quantiles: distinct numbers from 0 to 1, for example 0.5 for the median. At most 1,000.
#' @param steps Number of steps of the grid between the bounds, from 1 to 2^20. The grid has steps + 1 points, both bounds included.
#'
#' @details
#' **Components** are named as by [quantile()]: `25%`, `50%`, `75%`. Their values are points of the grid, in the units of the variable.
#'
#' **Records** may be a data frame, a database, files, chunks or partial totals: only the number of records at each point is needed.
#'
#' **Ranks.** A record counts at the point of the grid that is nearest to it. Of n records, `below` are at smaller points than g, and `through` are at g or
#' smaller points. The quantile of probability q has the rank q n. The distance of g from it is 0 if q n is between `below` and `through`, otherwise the
#' distance of q n from the nearer of the two. Probabilities are rounded to multiples of 2^-20, so that ranks are exact numbers.
#'
#' **Sensitivity** is the largest change of a distance, for any g. A replaced record changes `below` and `through` by at most 1: 1 for each quantile. An added
#' record raises both by 0 or 1, and the rank by q: max(q, 1 - q) for each quantile, 1/2 for a median. The L1 norm is the sum over the quantiles, the L2 norm the
#' root of the sum of squares.
#'
#' **What a posterior rests on.** Quantiles do not show the tails. Under [model_normal()] the mean and the standard deviation follow from the quantiles if the
#' variable is normal; for a skewed variable they can be far off. The printed fit says so. Use a model of the right shape, such as [model_exponential()] or
#' [model_custom()], or release sums as well.
#'
#' **Methods.** `"augment"` is exact for every model of the variable. Other methods are not available, because quantiles are not totals.
#'
#' @return A statistic: an object of class `stat_quantiles`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`, `noiseaware_error_argument`.
#' @references
#' Smith, A. (2011). Privacy-preserving statistical estimation with optimal
#' convergence rates. \doi{10.1145/1993636.1993743}
#' @family statistics of numbers
#' @examples
#' quartiles <- stat_quantiles(~ lwt, bounds = c(0, 400), steps = 400)
#' quartiles
#' rel <- release(MASS::birthwt, quartiles, mech_exponential(epsilon = 2))
#' rel
#' fit <- sample_posterior(rel, model_normal(), chains = 2, iter = 400, seed = 1)
#' summary(fit)
#' @concept median
#' @concept percentiles
#' @export
stat_quantiles <- function(formula, bounds, probs = c(0.25, 0.5, 0.75), steps = 1000) {
  check_given()
  if (!inherits(formula, "formula") || length(formula) != 2L) stop_argument("formula", "a formula with one variable, such as ~ x", describe(formula), "formula")
  variable <- formula_terms(formula[[2L]], environment())
  if (length(variable) != 1L) {
    stop_classed("formula", c("{.arg formula} must name one variable, but names {length(variable)}.", i = "Several statistics can be released as a named list."))
  }
  bounds <- check_bounds(bounds, variable)
  if (is.character(bounds[[1L]])) stop_argument("bounds", "two numbers, lower and upper", "levels", "bounds")
  probs <- check_probs(probs, "probs", environment())
  new_statistic("quantiles", "ranks", columns = expand_columns(variable, bounds), levels = list(), components = paste0(format_number(100 * probs, 15L), "%"),
                formula = formula_text(formula), probs = probs, steps = check_steps(steps, environment()), class = "stat_quantiles")
}

most_quantiles <- 1000L
largest_grid <- 2^20

check_probs <- function(probs, name, call) {
  must <- "different numbers from 0 to 1"
  if (!is.numeric(probs) || is.object(probs) || length(dim(probs)) > 1L || length(probs) == 0L) stop_argument(name, must, describe(probs), call = call)
  bad <- !is.finite(probs) | probs < 0 | probs > 1 | duplicated(probs)
  if (any(bad)) stop_argument(name, must, describe_bad(probs, bad), call = call)
  if (length(probs) > most_quantiles) stop_argument(name, sprintf("at most %s numbers", format_size(most_quantiles)), describe(probs), call = call)
  as.double(probs)
}

check_steps <- function(steps, call) {
  steps <- check_count(steps, "steps", call = call)
  if (steps > largest_grid) stop_argument("steps", "at most 2^20", describe(steps), call = call)
  steps
}

# The quantiles' shares of the records are rounded so that ranks are exact numbers: the number of records has 31 bits.
rank_bits <- 20
quantile_shares <- function(statistic) round(statistic$probs * 2^rank_bits) / 2^rank_bits

grid_points <- function(statistic, at) {
  columns <- statistic$columns
  columns$lower + (columns$upper - columns$lower) * (at / statistic$steps)
}

# where on the grid values are, as numbers of steps
grid_places <- function(statistic, value) (value - statistic$columns$lower) / (statistic$columns$upper - statistic$columns$lower) * statistic$steps

#' @export
statistic_fields.stat_quantiles <- function(statistic) list(lower = statistic$columns$lower, upper = statistic$columns$upper, steps = statistic$steps)

# how many records are at each point
point_counts <- function(statistic, x) .Call(ffi_stat_total, statistic_spec(statistic, confidential = TRUE), x)

# Distances from the rank of each quantile, a column each, of each point.
rank_distances <- function(statistic, counts) {
  through <- cumsum(counts)
  ranks <- quantile_shares(statistic) * sum(counts)
  vapply(ranks, function(rank) pmax(0, through - counts - rank, rank - through), counts)
}

#' @export
variable_kinds.stat_quantiles <- function(x) "number"

#' @export
sensitivity.stat_quantiles <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  share <- quantile_shares(statistic)
  length_of(if (replaces(neighbours)) rep(1, length(share)) else pmax(share, 1 - share), match_norm(norm))
}

# points of the grid, which need not be whole
#' @export
integer_valued.stat_quantiles <- function(statistic) FALSE

#' @export
describe_statistic.stat_quantiles <- function(statistic) {
  sprintf("%s %s of %s among %s points", if (length(statistic$probs) == 1L) "quantile" else "quantiles", shorten_list(statistic$components),
          statistic$columns$name, format_size(statistic$steps + 1))
}

# ---- JSON --------------------------------------------------------------------

#' @export
statistic_json.stat_quantiles <- function(statistic) {
  list(name = "quantiles", formula = statistic$formula, bounds = exact_bounds(statistic$columns), probs = I(exact_numbers(statistic$probs)),
       steps = exact_numbers(statistic$steps))
}

stat_quantiles_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "probs", "steps"), "statistic", refuse)
  probs <- json_numbers(x$probs, "The statistic's probs", "array", refuse)
  claim(length(probs))
  stat_quantiles(json_formula(x$formula, refuse), json_bounds(x$bounds, refuse), probs, json_numbers(x$steps, "The statistic's steps", "number", refuse))
}
