#' One noisy value for each record
#'
#' Local privacy: each record's values are published individually, each with its own noise, as when people perturb their answers before giving them.
#'
#' @param formula The variables: `~ y + x`, or with a response, `y ~ x`, which is the default for the model's formula. Without `bounds` it may have products and
#'   powers, `y ~ x * z + I(x^2)`, see [mech_record_noise()].
#' @param bounds A named list with `c(lower, upper)` for each number. Values outside
#'   are clamped. `NULL`: numbers have no bounds, because the records themselves are noisy, see [mech_record_noise()].
#' @param levels A named list with the vector of all levels (two or more) of each
#'   factor, as in [stat_counts()]. Bounds and levels are public: choose them from subject
#'   knowledge, never from the confidential data.
#' @inheritParams stat_crossprod
#'
#' @details
#' **Components.** The release has n values for each variable, `y[1]`, `y[2]`, ...,
#' then `x[1]`, ...: the clamped value of a number, or the code of a factor, 0 for the first level, 1 for the second. A matrix with a row for each record has
#' the order that [as_release()] expects.
#'
#' **Mechanisms.** [mech_randomized_response()] for factors; [mech_laplace()] or
#' [mech_gaussian()] for numbers, and for codes treated as numbers. The guarantee refers to one replaced record, as for totals.
#'
#' **Sensitivity** (replace one record). The width of each variable's bounds, k - 1
#' for the code of a factor of k levels: their sum in the L1 norm, the root of the
#' sum of squares in the L2 norm. All variables get the same noise; release variables of very different widths as separate statistics, each with a share of the
#' budget (see [release()]). There is no sensitivity to a record added or removed, because the number of values reveals the number of records.
#'
#' @return A statistic: an object of class `stat_records`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`,
#'   `noiseaware_error_levels`.
#' @references
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data, section 3.
#' \doi{10.48550/arXiv.2206.00710}
#' @family statistics of numbers
#' @examples
#' st <- stat_records(bwt ~ 1, bounds = list(bwt = c(500, 5500)))
#' st
#' rel <- release(MASS::birthwt, st, mech_laplace(epsilon = 4))
#' sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' @export
stat_records <- function(formula, bounds = NULL, levels = NULL, outside = c("clamp", "none", "above", "below")) {
  check_given()
  variables <- record_variables(formula, products = is.null(bounds))
  numbers <- intersect(variables, names(bounds))
  factors <- intersect(variables, names(levels))
  if (!is.null(bounds)) bounds <- check_bounds(bounds, numbers)
  if (!is.null(levels)) levels <- check_levels(levels, factors)
  absent <- setdiff(variables, c(numbers, factors))
  unbounded <- is.null(bounds) && length(absent) > 0L
  if (unbounded) {
    numbers <- absent
    bounds <- stats::setNames(rep(list(c(-Inf, Inf)), length(absent)), absent)
  } else if (length(absent)) {
    stop_classed("bounds", "Each variable must have an entry in {.arg bounds}, if it is a number, or in {.arg levels}; {.var {absent}} {?has/have} none.")
  }
  both <- intersect(numbers, factors)
  if (length(both)) stop_classed("bounds", "A variable has either {.arg bounds} or {.arg levels}, but {.var {both}} {?has/have} both.")
  for (v in numbers) {
    if (is.character(bounds[[v]])) stop_argument(paste0("bounds$", v), "two numbers, lower and upper", "levels, which belong in `levels`", "bounds")
  }
  outside <- check_outside(outside, numbers)
  ranges <- vapply(variables, function(v) if (v %in% numbers) bounds[[v]] else c(0, length(levels[[v]]) - 1), numeric(2))
  columns <- data.frame(name = variables, lower = ranges[1L, ], upper = ranges[2L, ], variable = variables,
                        level = NA_character_, row.names = NULL)
  statistic <- new_statistic("records", "records", columns = columns, levels = as.list(levels), components = variables,
                             formula = formula_text(formula), outside = if (!unbounded) outside, class = "stat_records")
  if (unbounded) return(statistic)
  if (!is.finite(sensitivity(statistic, "L1")) || !is.finite(sensitivity(statistic, "L2"))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be added, but the results overflow.", i = "Change the units of the data."))
  }
  statistic
}

# response first
record_variables <- function(formula, products = FALSE, call = caller_env()) {
  if (!inherits(formula, "formula")) stop_argument("formula", "a formula, such as ~ y or y ~ x", describe(formula), "formula", call)
  if (products && has_products(formula, call)) return(product_variables(formula, call))
  if (length(formula) == 3L) return(formula_variables(formula, call))
  variables <- formula_terms(formula[[2L]], call)
  if (length(variables) == 0L) stop_classed("formula", "{.arg formula} must name a variable.", call = call)
  twice <- unique(variables[duplicated(variables)])
  if (length(twice)) {
    stop_classed("formula", "Each variable may appear only once in {.arg formula}, but {.var {twice}} appear{?s/} more than once.", call = call)
  }
  variables
}

# of records that are noisy already, whose model has products
product_variables <- function(formula, call) {
  said <- model_terms(formula, call)
  if (length(said$offsets)) stop_classed("formula", "{.arg formula} of {.fn stat_records} must have no offset.", call = call)
  said$variables
}

#' @export
statistic_fields.stat_records <- function(statistic) list(lower = statistic$columns$lower, upper = statistic$columns$upper)

#' @export
variable_kinds.stat_records <- function(x) c("number", "code")

#' @export
describe_statistic.stat_records <- function(statistic) {
  paste0(if (counts_answers(statistic)) "counts of answers to " else "single records of ", shorten_text(statistic$formula), outside_words(statistic))
}

#' @export
format.stat_records <- function(x, ...) {
  numbers <- x$columns[!x$columns$variable %in% names(x$levels), ]
  bounds <- if (is_unbounded(x)) numbers$name else sprintf("%s in [%s, %s]", numbers$name, format_number(numbers$lower), format_number(numbers$upper))
  levels <- sprintf("%s in {%s}", names(x$levels), vapply(x$levels, shorten_list, ""))
  c(statistic_title(x), if (length(bounds)) paste0(if (is_unbounded(x)) "  numbers     " else "  bounds      ", shorten_list(bounds)),
    if (length(levels)) paste0("  levels      ", shorten_list(levels)),
    if (counts_answers(x)) sprintf("  components  %d, how many records have each combination of answers", value_size(x)) else
      sprintf("  components  %d for each record: %s", length(x$components), shorten_list(x$components)),
    if (is_unbounded(x)) "  sensitivity none without bounds: the records are noisy already" else
      sensitivity_line(x))
}

#' @export
sensitivity.stat_records <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  check_neighbours(statistic, neighbours)
  width <- statistic$columns$upper - statistic$columns$lower
  if (match_norm(norm) == "L1") sum(width) else sqrt(sum(width^2))
}

#' @export
neighbours_fault.stat_records <- function(statistic, neighbours) {
  if (neighbours == "add_remove") {
    c("One noisy value for each record reveals how many records there are, so {.arg neighbours} must be {.val replace}.",
      i = "Or release totals.")
  }
}

#' @export
component_limits.stat_records <- function(statistic) cbind(statistic$columns$lower, statistic$columns$upper)

# codes are; a number may be anything between its bounds, unless it is a count given public covariates
#' @export
integer_valued.stat_records <- function(statistic) isTRUE(statistic$whole) || all(statistic$columns$variable %in% names(statistic$levels))

#' @export
statistic_json.stat_records <- function(statistic) {
  columns <- statistic$columns[!statistic$columns$variable %in% names(statistic$levels), ]
  c(list(name = "records", formula = statistic$formula), if (nrow(columns)) list(bounds = exact_bounds(columns)),
    if (length(statistic$levels)) list(levels = statistic$levels), if (counts_answers(statistic)) list(counted = statistic$counted), outside_json(statistic))
}

stat_records_from_json <- function(x, refuse, claim) {
  given <- intersect(c("bounds", "levels", "counted"), names(x))
  outside <- outside_from_json(x)
  require_fields(x, c("name", "formula", given, intersect("outside", names(x))), "statistic", refuse)
  ranges <- lapply(x[given], json_bounds, refuse = refuse)
  claim(if (is.null(ranges$counted)) sum(lengths(ranges)) else prod(lengths(ranges$counted)))
  statistic <- stat_records(json_formula(x$formula, refuse), ranges$bounds, ranges$levels, outside = outside)
  statistic$counted <- ranges$counted
  statistic
}

is_unbounded <- function(statistic) inherits(statistic, "stat_records") && any(is.infinite(statistic$columns$upper))
