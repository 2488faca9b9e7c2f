#' Totals of terms
#'
#' Totals, over the records, of the terms of a formula: variables, their powers and their products. The sufficient statistics of many one-parameter families
#' have this form: `~ x` for Poisson and exponential records, `~ x + I(x^2)` for normal ones.
#'
#' @param formula `~ term + term + ...`, without a response, at most 2,000 terms and 2,000 variables. A term is a
#'   variable (`x`), a power (`I(x^2)`, a positive whole number) or a product of
#'   variables (`x:z` or `I(x * z)`, also `I(x^2 * z)`). A variable can be a function of one, such as
#'   `log(x)`: see [noiseaware_terms].
#' @param bounds A named list with `c(lower, upper)` for each variable, or, for a single variable, `c(lower, upper)` alone. Bounds are public: choose them from
#'   subject knowledge, never from the confidential data.
#' @param outside How to treat records outside the bounds. `"clamp"`: their values are moved to the nearer bound. `"drop"`: they are left out; if any of its
#'   variables lies outside, a record adds 0 to every total (Bernstein & Sheldon 2018, section 3.3). The number of records left out is not published. `"none"`:
#'   there are no such records, because the bounds are the natural limits of the variable, as for a score, a number of children or a 0/1 variable.
#'   `"above"`, `"below"`: only records there are clamped; the other bound is a natural limit, such as 0 for incomes. Values can be given by variable, as in
#'   `c(age = "none")`; the others are then clamped. See [declare_outside()] for which is right.
#' @param rescale Whether to map each clamped variable to \[-1, 1\] before its powers and products are taken, as [stat_crossprod()] does. All totals get the
#'   same noise. In the variables' own units, the term with the largest range determines this noise: on \[0, 700\] the noise for the square swamps the variable.
#'   `FALSE`: totals in the variables' own units, as others usually publish them. `NULL` means `TRUE` for several terms; a single total stays in its own units,
#'   because rescaling would gain nothing.
#' @param centre A public number for each variable, named by it, that is subtracted before summing. The components are then totals of deviations, named `(x)`.
#'   Some projects publish a mean as the midpoint of the bounds plus a noisy sum of deviations from it, divided by a noisy count. An added record then changes
#'   that sum by at most half the range. With `centre`, the formula can contain only variables. `NULL`: 0.
#'
#' @details
#' **Components** are named by their monomials: `x`, `x^2`, `x:z`, `x^2:z`, with the variables of a product in the order of their first appearance in the
#' formula. After rescaling, `x` is the total of 2 (x - lower) / (upper - lower) - 1, and `x^2` the sum of its square. With `outside = "drop"`, a record that is
#' left out must add 0, so variables are divided by the bound farther from 0 instead.
#'
#' **Sensitivity** (replace one record). A term takes values between its minimum
#' and its maximum over the box of bounds; the variables of a product vary
#' independently, so both are attained at the ends of their powers' ranges. Two records
#' inside the bounds differ by at most the term's range, maximum minus minimum:
#' for x in \[10, 11\] the square ranges over 21, not over 1. With `"drop"`, a record inside may replace one outside, which changes a term by at most its
#' largest absolute value. The L1 (L2) sensitivity is the sum (root of the sum of squares) of the ranges. With `"drop"`, it is the larger of this sum and the
#' same sum of the largest absolute values. Terms that increase together, such as powers of a non-negative variable, attain it; otherwise it is an upper bound.
#'
#' After rescaling it is smaller, since the terms cannot all reach their largest change at once. Let v and w be two records, b = (v - w) / 2 and x = |b|. A
#' variable changes by at most 2 x, a product by 2 (x + y - 2 x y), and a square by 4 x (1 - x). All are attained by v = 1 and w = 1 - 2 x. The sum of these is
#' maximised over the cube \[0, 1\]^q on its faces (L1), and the sum of their squares at its corners (L2). The result is exact for up to 7 (12) variables,
#' unless in L2 a square appears without its variable; otherwise the value for [stat_crossprod()] is used. For powers of one variable the maximum is taken over
#' w = -t, with v = 1. With other terms it is the sum of ranges, 2 or 1 each.
#'
#' **Sensitivity** (add or remove one record). The sum (root of the sum of squares) of the terms' largest
#' absolute values. A record with every variable at the bound farther from 0 attains it.
#'
#' @return A statistic: an object of class `stat_sums`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`,
#'   `noiseaware_error_argument`.
#' @references
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian
#' inference for exponential families. *Advances in Neural Information
#' Processing Systems* 31.
#' @seealso [stat_crossprod()] for all products of degree 2 at once, with a
#'   tighter sensitivity; [stat_by()] for totals by group.
#' @family statistics of numbers
#' @examples
#' st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 10)), outside = "drop")
#' st
#' set.seed(1)
#' rel <- simulate_release(data.frame(x = rexp(100)), st, mech_laplace(epsilon = 1))
#' rel$value
#' @export
stat_sums <- function(formula, bounds, outside = c("clamp", "drop", "none", "above", "below"), rescale = NULL, centre = NULL) {
  check_given(hints = bounds_hint)
  if (!is.null(centre)) return(centred_sums(formula, bounds, centre, outside, rescale))
  if (!is.null(rescale)) check_flag(rescale, "rescale")
  formula <- functions_as_names(formula)
  terms <- sum_terms(formula)
  variables <- unique(unlist(lapply(terms, names)))
  if (length(variables) > most_columns) {
    stop_classed("formula", "{.arg formula} must have at most {most_columns} variables, but has {length(variables)}.")
  }
  # powers: a row a term, a column a variable
  powers <- matrix(0, length(terms), length(variables), dimnames = list(NULL, variables))
  for (j in seq_along(terms)) powers[j, names(terms[[j]])] <- terms[[j]]
  components <- vapply(seq_along(terms), function(j) monomial_name(powers[j, ], variables), "")
  twice <- unique(components[duplicated(components)])
  if (length(twice)) {
    stop_classed("formula", "Each term may appear only once in {.arg formula}, but {.val {twice}} appear{?s/} more than once.")
  }
  bounds <- check_bounds(bounds, variables)
  factors <- variables[vapply(bounds, is.character, TRUE)]
  if (length(factors)) {
    stop_classed("bounds", "{.arg bounds} must be two numbers for each variable, but {.var {factors}} {?has/have} levels.")
  }
  outside <- check_outside(outside, variables, c("clamp", "drop", setdiff(outside_choices, "clamp")))
  statistic <- new_statistic("sums", "totals", columns = expand_columns(variables, bounds), levels = list(), components = components,
                             formula = formula_text(formula), outside = outside, rescale = rescale %||% (length(terms) > 1L), powers = unname(powers),
                             class = "stat_sums")
  if (!is.finite(sensitivity(statistic, "L1")) || !is.finite(sensitivity(statistic, "L2"))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be raised to the powers in {.arg formula}, but the results overflow.",
                             i = "Change the units of the data."))
  }
  with_functions(statistic, attr(bounds, "functions"))
}

# ---- the formula's terms, each as a named vector of powers ---------------------

# A power or product of higher degree is refused before anything is made of it.
most_degree <- 20

sum_terms <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    stop_argument("formula", "a formula without a response, such as ~ x + I(x^2)", describe(formula), "formula", call)
  }
  lapply(formula_leaves(formula[[2L]], chain_operands("+"), call), term_powers, call)
}

# The powers of one term; inside I() arithmetic, else only names and products
# of different names. A loop, not a recursion: a formula that was read from a file
# may be of any depth.
term_powers <- function(term, call) {
  arithmetic <- is_operation(term, "I", 1L)
  product <- if (arithmetic) "*" else ":"
  powers <- numeric()
  todo <- list(list(side = if (arithmetic) term[[2L]] else term, power = 1))
  while (length(todo)) {
    # each entry is of degree 1 or more
    if (sum(powers) + length(todo) > most_degree) refuse_degree(term, call)
    at <- todo[[length(todo)]]
    todo[[length(todo)]] <- NULL
    side <- at$side
    if (is.name(side) && !identical(side, quote(.))) {
      name <- as.character(side)
      if (!arithmetic && name %in% names(powers)) refuse_sum(term, call)
      powers[name] <- sum(powers[name], at$power, na.rm = TRUE)
    } else if (is_operation(side, "(", 1L)) {
      todo <- c(todo, list(list(side = side[[2L]], power = at$power)))
    } else if (is_operation(side, product, 2L)) {
      todo <- c(todo, lapply(list(side[[3L]], side[[2L]]), function(s) list(side = s, power = at$power)))
    } else if (arithmetic && is_operation(side, "^", 2L) && is_power(side[[3L]])) {
      todo <- c(todo, list(list(side = side[[2L]], power = at$power * side[[3L]])))
    } else {
      refuse_sum(term, call)
    }
  }
  if (sum(powers) > most_degree) refuse_degree(term, call)
  powers
}

refuse_degree <- function(term, call) {
  stop_classed("formula", "A term of {.arg formula} must be of degree {most_degree} or less, but {.code {shorten_text(formula_text(term))}} is not.",
               call = call)
}

refuse_sum <- function(term, call) {
  if (identical(term, quote(.))) {
    stop_classed("formula", "{.arg formula} must name its variables: {.code .} would depend on the data.", call = call)
  }
  shown <- shorten_text(formula_text(term))
  hint <- if (is_operation(term, "^", 2L)) "Write a power as {.code I(x^2)}." else
    if (is_operation(term, "*", 2L)) "Write a product as {.code x:z} or {.code I(x * z)}." else
      if (identical(term, 1) || identical(term, 1L)) "The number of records is public, so no total is needed." else
        "Compute anything else in the data first."
  stop_classed("formula", c("The terms of {.arg formula} must be variables, powers {.code I(x^2)} or products {.code x:z} of different variables.",
                            x = "{.code {shown}} is none of these.", i = hint), call = call)
}

# ---- methods -----------------------------------------------------------------

#' @export
statistic_fields.stat_sums <- function(statistic) {
  powers <- statistic$powers
  units <- sum_units(statistic)
  list(scale = units$scale, shift = units$shift, lower = units$lower, upper = units$upper,
       drop = as.double(is_dropped(statistic)), degree = rowSums(powers),
       # each variable as often as its power
       factor = as.double(unlist(lapply(seq_len(nrow(powers)), function(j) rep(seq_len(ncol(powers)) - 1, powers[j, ])))))
}

# Variables as they are multiplied: scale * x + shift, between lower and upper. Rescaled they range from -1 to 1; where a record that is
# left out must add 0, they are only divided by their farther bound.
sum_units <- function(statistic) {
  lower <- statistic$columns$lower
  upper <- statistic$columns$upper
  none <- numeric(length(lower))
  if (!statistic$rescale) return(list(scale = none + 1, shift = none, lower = lower, upper = upper))
  if (is_dropped(statistic)) {
    scale <- 1 / pmax(abs(lower), abs(upper))
    return(list(scale = scale, shift = none, lower = scale * lower, upper = scale * upper))
  }
  list(scale = 2 / (upper - lower), shift = -(upper + lower) / (upper - lower), lower = none - 1, upper = none + 1)
}

#' @export
variable_kinds.stat_sums <- function(x) "number"

#' @export
describe_statistic.stat_sums <- function(statistic) {
  paste0("totals of ", called_formula(statistic$formula), if (statistic$rescale) if (is_dropped(statistic)) ", variables divided by the bound farther from 0" else
           ", rescaled to [-1, 1]",
         if (is_dropped(statistic)) ", records outside the bounds left out" else if (nzchar(outside_words(statistic))) outside_words(statistic) else
           ", clamped to the bounds")
}

#' @export
sensitivity.stat_sums <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  limits <- sum_limits(statistic)
  # every term at once, of a record with each variable at its farther bound
  farthest <- length_of(pmax(abs(limits[, 1L]), abs(limits[, 2L])), norm)
  if (!replaces(neighbours)) return(farthest)
  moved <- length_of(limits[, 2L] - limits[, 1L], norm)
  if (is_dropped(statistic)) return(max(moved, farthest))
  min(moved, if (statistic$rescale) rescaled_distance(statistic$powers, norm))
}

sum_limits <- function(statistic) {
  units <- sum_units(statistic)
  term_limits(statistic$powers, units$lower, units$upper)
}

#' @export
single_components.stat_sums <- function(statistic) {
  one <- which(rowSums(statistic$powers) == 1)
  one[!statistic$columns$variable[max.col(statistic$powers[one, , drop = FALSE])] %in% names(statistic$levels)]
}

#' @export
component_degrees.stat_sums <- function(statistic) rowSums(statistic$powers)

#' @export
component_limits.stat_sums <- function(statistic) {
  limits <- sum_limits(statistic)
  if (is_dropped(statistic)) cbind(pmin(limits[, 1L], 0), pmax(limits[, 2L], 0)) else limits
}

# ---- JSON --------------------------------------------------------------------

#' @export
statistic_json.stat_sums <- function(statistic) {
  outside <- outside_json(statistic)$outside %||% "clamp"
  c(list(name = "sums", formula = statistic$formula, bounds = exact_bounds(statistic$columns), outside = outside), if (statistic$rescale) list(rescale = TRUE))
}

stat_sums_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "outside", intersect("rescale", names(x))), "statistic", refuse)
  formula <- json_formula(x$formula, refuse)
  claim(length(sum_terms(formula)))
  stat_sums(formula, json_bounds(x$bounds, refuse), outside = outside_from_json(x),
            rescale = if ("rescale" %in% names(x)) x$rescale %||% NA else FALSE)
}
