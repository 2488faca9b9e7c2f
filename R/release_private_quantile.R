#' Private quantile
#'
#' For unknown bounds: spends part of the budget to find out where the data lie, before a statistic is declared with bounds based on the result. The exponential
#' mechanism (McSherry & Talwar 2007) over a grid between very wide public bounds, with the distance in ranks as the loss (Smith 2011).
#'
#' @param x A numeric vector of confidential values, one per record, none missing.
#' @param probability Probability of the quantile, in \[0, 1\].
#' @param bounds `c(lower, upper)`: public, and wide enough to contain any possible data.
#' @param epsilon Privacy budget to spend: pure epsilon-differential privacy.
#' @param steps Number of steps of the grid between the bounds, at most 2^20. It is public; the result is one of the steps + 1 points.
#' @param budget `NULL`, or a [budget()] that is charged `epsilon`.
#' @param neighbours As in [release()]: the guarantee is the same for `"replace"` and `"add_remove"`. With `persons(contributions = k)` the names of `x` identify
#'   persons; at most k values of each are used, chosen at random, and the candidate is drawn with epsilon / k.
#'
#' @details Candidate g is drawn with probability proportional to exp(-epsilon d(g) / 2), where
#'   d(g) is the number of records that would have to move for g to be the
#'   quantile of the values on the grid. Replacing a record changes d by at most one. So does adding a record, which raises the rank of the quantile by 0 or 1,
#'   and the rank of g by 0 or 1. The candidate is drawn exactly, by rejection in integer arithmetic (see [release()]); the time that this takes depends on the
#'   data.
#'
#'   At least a few tens of records per unit of 1 / epsilon are needed on the far side of the quantile; with fewer, the result is close to uniform between the
#'   bounds. If the number of records is public (neighbours `"replace"`), a warning says so before the budget is spent (`noiseaware_warning_quantile`).
#'
#' @return One number between the bounds.
#' @section Errors: `noiseaware_error_data`, `noiseaware_error_missing`,
#'   `noiseaware_error_argument`, `noiseaware_error_bounds`,
#'   `noiseaware_error_mechanism`, `noiseaware_error_neighbours`, `noiseaware_error_budget`,
#'   `noiseaware_error_entropy`.
#' @references
#' McSherry, F. and Talwar, K. (2007). Mechanism design via differential privacy.
#' \doi{10.1109/FOCS.2007.66}
#'
#' Smith, A. (2011). Privacy-preserving statistical estimation with optimal
#' convergence rates. \doi{10.1145/1993636.1993743}
#' @family making releases
#' @examples
#' account <- budget(epsilon = 2)
#' # a weight that about a quarter of the mothers exceed: 47 of them, so epsilon = 1 will do
#' private_quantile(MASS::birthwt$lwt, 0.75, c(0, 1000), epsilon = 1, budget = account)
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
  epsilon <- check_number(epsilon, "epsilon", "a number from 1e-8 to 1e6", 1e-8, 1e6, kind = "mechanism")
  each <- epsilon / contributions_of(neighbours)
  if (each < 1e-8) stop_argument("epsilon", "at least 1e-8 for each record of a person", format_number(each), "mechanism")
  steps <- check_count(steps, "steps")
  if (steps > 2^20) stop_argument("steps", "at most 2^20", describe(steps))
  if (of_persons(neighbours) && (is.null(names(x)) || anyNA(names(x)))) {
    stop_classed("neighbours", "{.arg x} must have the persons as names, one for each value, if {.arg neighbours} are {.fn persons}.")
  }
  if (replaces(neighbours)) warn_of_little(length(x), probability, each, steps)
  cost <- privacy_row(epsilon = epsilon, delta = 0, rho = epsilon^2 / 2)
  lock <- hold_budget(budget, neighbours)
  on.exit(unlock_budget(lock))
  check_affordable(budget, cost)
  if (of_persons(neighbours)) x <- x[chosen_records(names(x), contributions_of(neighbours), entropy_uniform)]
  cell <- round((pmin(pmax(as.double(x), bounds[1L]), bounds[2L]) - bounds[1L]) / (bounds[2L] - bounds[1L]) * steps)
  # each / 2 in integers, rounded down
  at <- .Call(ffi_exact_quantile, 1L, steps + 1, sort(cell), round(probability * length(x)), floor(each / 2 * 2^31), 2^31)
  if (is.null(at)) stop_entropy(environment())
  spend(budget, cost, "private quantile")
  bounds[1L] + (bounds[2L] - bounds[1L]) * (at / steps)
}

# With m records on the far side of the quantile, points beyond all records have at most (steps + 1) exp(-epsilon m / 2) times the weight of one that is the quantile.
warn_of_little <- function(n, probability, epsilon, steps, call = caller_env()) {
  needed <- 2 * log((steps + 1) / 0.05) / epsilon
  far <- floor(n * min(probability, 1 - probability))
  if (far >= needed) return(invisible())
  cli::cli_warn(c(paste("The result may lie anywhere between the bounds: epsilon = {format_number(epsilon, 3)} needs about {ceiling(needed)} records",
                        "on each side of the quantile."),
                  x = "One side has {far} record{?s}.", i = "Use a larger epsilon, a quantile nearer to the median, or fewer {.arg steps}."),
                class = "noiseaware_warning_quantile", call = call)
}
