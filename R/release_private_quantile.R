#' Private quantile
#'
#' For unknown bounds: spends part of the budget to find out where the data lie, before a statistic is declared with bounds based on the result. It is a release
#' of one quantile ([stat_quantiles()]) by the exponential mechanism ([mech_exponential()]), for values that are in no data frame.
#'
#' @param x A numeric vector of confidential values, one per record, none missing.
#' @param probability Probability of the quantile, in \[0, 1\].
#' @param bounds `c(lower, upper)`: public, and wide enough to contain any possible data.
#' @param epsilon Privacy budget to spend: pure epsilon-differential privacy.
#' @param steps Number of steps of the grid between the bounds, at most 2^20. It is public; the result is one of the steps + 1 points.
#' @param budget `NULL`, or a [budget()] that is charged `epsilon`.
#' @param neighbours As in [release()]. With `persons(contributions = k)` the names of `x` identify persons; at most k values of each are used, chosen at random,
#'   and the quantile is drawn with epsilon / k.
#'
#' @details The quantile is a release of the variable `x` as well: [sample_posterior()] can use it, alone or combined with others by [add_release()].
#'
#'   At least a few tens of records per unit of 1 / epsilon are needed on the far side of the quantile: see [mech_exponential()]. If there are too few, and the
#'   number of records is public (neighbours `"replace"`), a warning says so before the budget is spent (`noiseaware_warning_quantile`).
#'
#' @return A release, see [as_release()]. Its `value` is one number between the bounds.
#' @section Errors: `noiseaware_error_data`, `noiseaware_error_missing`,
#'   `noiseaware_error_argument`, `noiseaware_error_bounds`,
#'   `noiseaware_error_mechanism`, `noiseaware_error_neighbours`, `noiseaware_error_budget`,
#'   `noiseaware_error_entropy`.
#' @family making releases
#' @examples
#' account <- budget(epsilon = 2)
#' # a weight that about a quarter of the mothers exceed: 47 of them, so epsilon = 1 will do
#' upper <- private_quantile(MASS::birthwt$lwt, 0.75, c(0, 1000), epsilon = 1, budget = account)
#' upper
#' unname(upper$value)
#' account
#' @concept median
#' @concept percentile
#' @export
private_quantile <- function(x, probability, bounds, epsilon, steps = 10000, budget = NULL,
                             neighbours = c("replace", "add_remove")) {
  check_given()
  neighbours <- match_neighbours(neighbours)
  # messages say nothing of the values
  if (!is.numeric(x) || is.object(x) || !is.null(dim(x))) stop_classed("data", "{.arg x} must be a vector of numbers, but is {describe_shape(x)}.")
  if (length(x) == 0L && replaces(neighbours)) stop_classed("data", "{.arg x} must have at least one value, but has none.")
  if (anyNA(x)) stop_classed("missing", "{.arg x} must have no missing values, but has {sum(is.na(x))}.")
  probability <- check_number(probability, "probability", "a number from 0 to 1", 0, 1)
  if (!is.numeric(bounds)) stop_argument("bounds", "two numbers, lower and upper", describe(bounds), "bounds")
  bounds <- check_bound(bounds, "bounds", environment())
  mechanism <- mech_exponential(epsilon = check_positive(epsilon, "epsilon", "mechanism"))
  statistic <- new_quantiles("~x", "x", list(bounds), probability, check_steps(steps, environment()))
  if (of_persons(neighbours) && (is.null(names(x)) || anyNA(names(x)))) {
    stop_classed("neighbours", "{.arg x} must have the persons as names, one for each value, if {.arg neighbours} are {.fn persons}.")
  }
  used <- function() {
    if (of_persons(neighbours)) x <- x[chosen_records(names(x), contributions_of(neighbours), entropy_uniform)]
    data.frame(x = unname(x))
  }
  publish_with_budget(used, statistic, mechanism, neighbours, budget)
}
