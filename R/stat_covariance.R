# Variances and covariances about a public centre: queries of cross-products of centred variables. They use the C plug-in of stat_crossprod() with shifts.

#' Variances and covariances about a public centre
#'
#' Sums of squares and products of deviations from a public point, divided by a public number. Projects publish this as a variance or a covariance when it is
#' centred at a noisy mean that they have also published.
#'
#' @param formula `~ x + y + ...`, main effects only.
#' @param bounds A named list with `c(lower, upper)` for each variable. Values are clamped to them first.
#' @param centre A vector with a number for each variable, named by variable, about which squares and products were taken: the published noisy mean, or any
#'   public value. The exact mean of the clamped values is not public, see Details.
#' @inheritParams stat_crossprod
#' @param divisor The divisor of the sums: the public number of records, or one less.
#'
#' @details
#' **Components.** `var(x)` for each variable and `cov(x,y)` for each pair, the total of (x - centre) (y - centre) divided by `divisor`. Use [stat_subset()] for
#' some of them.
#'
#' **About which mean?** A noisy mean that is published is public, and the variance about it is a total of contributions of
#' single records. It has a sensitivity, and the posterior accounts for its noise exactly. The variance about the *exact* mean is not such a total: it is the
#' mean square minus the square of the mean. This package cannot compute a likelihood for noise added to that difference, so `centre = NULL` is an error. If the
#' variance was computed from two noisy numbers, a mean of squares and a mean, describe these with [stat_means()].
#'
#' **Sensitivity.** In the L1 (L2) norm, the sum (root of the sum of squares) of the components' ranges over the box of bounds. It is exact for one variable and
#' for `"add_remove"` neighbours, otherwise an upper bound.
#'
#' **Methods.** The same as for [stat_crossprod()], including `"collapse"`.
#'
#' **A matrix.** [as_release()] also accepts these numbers as a matrix with rows and columns named by the variables. Noise was added once to each number, so the
#' matrix is symmetric.
#'
#' **About the exact mean, of normal records.** The covariance matrix of n records about their own mean, with divisor n - 1, has the same distribution as that
#' of n - 1 records about a known mean. So for [model_mvnormal()] or [model_normal()] with the mean fixed at 0, and with unclamped values (`outside = "none"`),
#' describe such a matrix with `centre = 0` for each variable, `divisor = n - 1` and n - 1 records: see `vignette("cookbook")`. Correlations are
#' functions of several totals; the same article describes them by [mech_custom()].
#'
#' @return A statistic: an object of class `stat_linear`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`, `noiseaware_error_argument`.
#' @seealso [stat_means()], and `vignette("cookbook")`.
#' @family statistics of numbers
#' @examples
#' bounds <- list(x = c(100, 250))
#' mean <- stat_means(stat_sums(~ x, bounds), n = 200)
#' # a noisy mean of 171.3, and a noisy variance about it
#' rel <- as_release(list(mean = c("mean(x)" = 171.3), variance = c("var(x)" = 58)),
#'   list(mean = mean, variance = stat_covariance(~ x, bounds, centre = 171.3, divisor = 200)),
#'   list(mean = mech_gaussian(sd = 1), variance = mech_gaussian(sd = 12)), n = 200)
#' sample_posterior(rel, model_normal(), chains = 2, iter = 400, seed = 1)
#' @export
stat_covariance <- function(formula, bounds, centre = NULL, divisor, outside = c("clamp", "none", "above", "below")) {
  check_given(hints = bounds_hint)
  centred <- stat_centred(formula, bounds, centre, outside)
  divisor <- check_positive(divisor, "divisor", "argument")
  variables <- centred$columns$name
  pairs <- centred$pairs
  names <- ifelse(pairs$first == pairs$second, sprintf("var(%s)", variables[pairs$first]),
                  sprintf("cov(%s,%s)", variables[pairs$first], variables[pairs$second]))
  at <- length(variables) + seq_along(names)
  linear_of(centred, list(names = names, length = rep(1L, length(at)), column = at, weight = rep(1 / divisor, length(at))))
}

# totals of the variables alone, in their own units
centred_sums <- function(formula, bounds, centre, outside, rescale, call = caller_env()) {
  if (isTRUE(rescale)) stop_argument("centre", "NULL if values are rescaled", describe(centre), call = call)
  if (is.character(outside) && is.null(names(outside)) && length(outside) > 1L) outside <- setdiff(outside, "drop")
  centred <- stat_centred(formula, bounds, centre, outside, call)
  subset_of(centred, centred$components[seq_len(nrow(centred$columns))])
}

# totals of the variables less their centres, and of the products of these
stat_centred <- function(formula, bounds, centre, outside, call = caller_env()) {
  formula <- functions_as_names(formula, call)
  variables <- moment_variables(formula, call)
  bounds <- check_bounds(bounds, variables, call)
  factors <- variables[vapply(bounds, is.character, TRUE)]
  if (length(factors)) {
    stop_classed("bounds", "{.arg bounds} must be two numbers for each variable, but {.var {factors}} {?has/have} levels.", call = call)
  }
  centre <- check_centre(centre, variables, call)
  outside <- check_outside(outside, variables, call = call)
  columns <- expand_columns(variables, bounds)
  pairs <- monomial_pairs(columns)
  # names of the components denote deviations
  columns$name <- paste0("(", variables, ")")
  components <- c(columns$name, monomial_pairs(columns)$name)
  columns$name <- variables
  pairs$name <- components[-seq_along(variables)]
  statistic <- new_statistic("crossprod", "totals", columns = columns, levels = list(), components = components, formula = formula_text(formula),
                             outside = outside, rescale = FALSE, centre = centre, pairs = pairs, class = c("stat_centred", "stat_crossprod"))
  if (!all(is.finite(unlist(statistic_fields(statistic)))) || !is.finite(sensitivity(statistic, "L2"))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be multiplied, but the results overflow.", i = "Change the units of the data."),
                 call = call)
  }
  with_functions(statistic, attr(bounds, "functions"))
}

check_centre <- function(centre, variables, call) {
  if (is.null(centre)) {
    stop_classed("argument", c("{.arg centre} must be a public number for each variable, such as the published mean.",
                               x = "A variance about the exact mean is not a total over records: it is the mean square minus the square of the mean.",
                               i = "If it was computed from a noisy mean and a noisy mean square, describe those with {.fn stat_means}."), call = call)
  }
  must <- "a finite number for each variable, named by it"
  if (is.numeric(centre) && is.null(names(centre)) && length(variables) == 1L) names(centre) <- rep_len(variables, length(centre))
  ok <- is.numeric(centre) && length(centre) == length(variables) && setequal(names(centre), variables) && all(is.finite(centre))
  if (!ok) stop_argument("centre", must, describe(centre), call = call)
  stats::setNames(as.double(centre[variables]), variables)
}

# the same of variables that are centred already
deviations <- function(statistic) {
  statistic$columns$lower <- statistic$columns$lower - unname(statistic$centre)
  statistic$columns$upper <- statistic$columns$upper - unname(statistic$centre)
  structure(statistic, class = setdiff(class(statistic), "stat_centred"))
}

#' @export
statistic_fields.stat_centred <- function(statistic) {
  utils::modifyList(statistic_fields(deviations(statistic)), list(shift = -unname(statistic$centre)))
}

#' @export
component_limits.stat_centred <- function(statistic) component_limits(deviations(statistic))

#' @export
sensitivity.stat_centred <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  sensitivity(deviations(statistic), norm, neighbours)
}

# A deviation is off by the last bits of its terms, which may be far larger than itself.
#' @export
product_error.stat_centred <- function(statistic) {
  size <- pmax(abs(statistic$columns$lower), abs(statistic$columns$upper)) + abs(unname(statistic$centre))
  degree <- component_degrees(statistic)
  8 * degree * 2^-53 * c(size, size[statistic$pairs$first] * size[statistic$pairs$second])
}

#' @export
single_components.stat_centred <- function(statistic) integer()

#' @export
describe_statistic.stat_centred <- function(statistic) {
  paste0("cross-products of ", called_formula(statistic$formula), " about ", shorten_list(paste(names(statistic$centre), "=", format_number(statistic$centre))),
         outside_words(statistic))
}

#' @export
statistic_json.stat_centred <- function(statistic) {
  c(list(name = "centred", formula = statistic$formula, bounds = exact_bounds(statistic$columns), centre = exact_numbers(statistic$centre)),
    outside_json(statistic))
}

stat_centred_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "centre", intersect("outside", names(x))), "statistic", refuse)
  bounds <- json_bounds(x$bounds, refuse)
  claim(length(bounds) * (length(bounds) + 3) / 2)
  stat_centred(json_formula(x$formula, refuse), bounds, json_numbers(x$centre, "The statistic's centre", "object", refuse),
               outside_from_json(x))
}
