# Totals for a smooth curve, made by stat_crossprod(y ~ s(x, k = 10)): products of cubic B-splines of x with equal knots, of y and of both. See
# src/stat/smooth.c and utils_smooths.R.

new_smooth_statistic <- function(smooth, bounds, outside, call) {
  variables <- c(smooth$response, smooth$variable)
  bounds <- check_bounds(bounds, variables, call)
  factors <- variables[vapply(bounds[variables], is.character, TRUE)]
  if (length(factors)) stop_classed("bounds", "A smooth needs two numbers as {.arg bounds} of each variable, but {.var {factors}} {?has/have} levels.", call = call)
  outside <- check_outside(outside, variables, call = call)
  columns <- expand_columns(variables, bounds)
  splines <- paste0(smooth$label, seq_len(smooth$k))
  pairs <- spline_pairs(smooth$k)
  products <- ifelse(pairs$first == pairs$second, paste0(splines[pairs$first], "^2"), paste0(splines[pairs$first], ":", splines[pairs$second]))
  components <- c(products, paste0(smooth$response, ":", splines), paste0(smooth$response, "^2"))
  statistic <- new_statistic("smooth", "totals", columns = columns, levels = list(), components = components, formula = smooth$formula, outside = outside,
                             splines = smooth$k, class = "stat_smooth")
  if (!all(is.finite(unlist(statistic_fields(statistic))))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled, but the results overflow.", i = "Change the units of the data."), call = call)
  }
  with_functions(statistic, attr(bounds, "functions"))
}

# x in intervals between its knots, y in [-1, 1]. Only the bounds of y may be natural limits for C: x stays where the splines are.
#' @export
statistic_fields.stat_smooth <- function(statistic) {
  lower <- statistic$columns$lower
  upper <- statistic$columns$upper
  intervals <- statistic$splines - 3
  to <- c(2, intervals) / (upper - lower)
  list(scale = to, shift = c(-(upper[1L] + lower[1L]) / (upper[1L] - lower[1L]), -lower[2L] * to[2L]), lower = -1, upper = 1, intervals = as.double(intervals))
}

#' @export
variable_kinds.stat_smooth <- function(x) "number"

# See ?stat_crossprod. At a knot the sum of the splines' squares and of their fourth powers is largest.
#' @export
sensitivity.stat_smooth <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  squares <- 1 / 2
  fourth <- (1 + 4^4 + 1) / 6^4
  products <- (squares^2 + fourth) / 2
  if (norm == "L1") return(if (replaces(neighbours)) 1 + squares + 9 / 4 else (1 + squares) / 2 + 2)
  sqrt(if (replaces(neighbours)) 2 * products - 5 / 4 * squares^2 + 4 * squares else products + squares + 1)
}

#' @export
integer_valued.stat_smooth <- function(statistic) FALSE

#' @export
component_limits.stat_smooth <- function(statistic) {
  products <- outer(seq_len(4L), seq_len(4L), Vectorize(function(i, j) if (j < i) 0 else spline_product_limit(i, j)))
  single <- vapply(seq_len(4L), function(i) max(cubic_splines(c(0, 1))[, i]), 0)
  pairs <- spline_pairs(statistic$splines)
  # which of the four of an interval a spline can be
  at <- function(j) intersect(seq_len(4L), j - seq(0, statistic$splines - 4))
  most <- mapply(function(j, k) max(vapply(at(j), function(i) if (i + k - j <= 4) products[i, i + k - j] else 0, 0)), pairs$first, pairs$second)
  one <- vapply(seq_len(statistic$splines), function(j) max(single[at(j)]), 0)
  cbind(c(numeric(length(most)), -one, 0), c(most, one, 1))
}

# Polynomials of few operations, of numbers of at most 1.
#' @export
product_error.stat_smooth <- function(statistic) rep(64 * 2^-53, length(statistic$components))

#' @export
describe_statistic.stat_smooth <- function(statistic) paste0("splines of ", called_formula(statistic$formula), ", rescaled to [-1, 1]", outside_words(statistic))

# ---- JSON ------------------------------------------------------------------------------

#' @export
statistic_json.stat_smooth <- function(statistic) {
  c(list(name = "smooth", formula = statistic$formula, bounds = exact_bounds(statistic$columns)), outside_json(statistic))
}

stat_smooth_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", intersect("outside", names(x))), "statistic", refuse)
  smooth <- read_smooth(json_formula(x$formula, refuse, smooth = TRUE))
  claim(4 * smooth$k - 2)
  new_smooth_statistic(smooth, json_bounds(x$bounds, refuse), outside_from_json(x), caller_env())
}
