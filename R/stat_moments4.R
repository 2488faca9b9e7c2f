#' Totals of all monomials up to degree 4
#'
#' Totals, over the records, of every monomial of degree 1 to 4 in the covariates. Method `"clt"` needs these moments when nothing else is known about the
#' covariates' distribution. Release them together with [stat_crossprod()], with a share of the budget (Bernstein & Sheldon 2019, section 3.4.4, use half), and
#' give the model [covariate_moments()].
#'
#' @param formula `~ covariate + ...`, main effects only.
#' @param bounds A named list with `c(lower, upper)` for each covariate. Bounds
#'   are public: choose them from subject knowledge, never from the
#'   confidential data.
#' @param rescale Whether to map each clamped variable to \[-1, 1\] before
#'   multiplying. With `FALSE` products are in the variables' own units.
#' @inheritParams stat_crossprod
#'
#' @details
#' **Components** are named by their monomials: the p covariates, the products
#' of two, of three, of four; `x1`, `x1^2`, `x1:x2`, `x1^2:x2`, ... There are
#' choose(p + 4, 4) - 1 of them; each appears once, and the constant, which is
#' public, is left out.
#'
#' **Sensitivity** (replace one record): in the L1 (L2) norm, the sum (root of the sum of squares) of every monomial's range over the box of bounds, maximum
#' minus minimum. With `rescale = TRUE`, the range is 1 for a product of even powers and 2 otherwise. For one rescaled covariate the norms are known exactly.
#' Records with the same sign differ by at most 1 per component. With v > 0 > w and v >= -w, every |v^k - w^k| grows with v. At v = 1 and w = -t they add up to
#' 4 + t - t^2 + t^3 - t^4, at most 4.3263, and their squares to 4 + 2t - t^2 + 2t^3 - t^4 + t^6 + t^8, at most 8.
#'
#' **Sensitivity** (add or remove one record). The sum (root of the sum of squares) of the
#' monomials' largest absolute values, attained by a record with every covariate at the bound farther from 0. After rescaling, these are d and sqrt(d) for d
#' components.
#'
#' @return A statistic: an object of class `stat_moments4`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`,
#'   `noiseaware_error_argument`.
#' @references
#' Bernstein, G. and Sheldon, D. (2019). Differentially private Bayesian linear
#' regression. *Advances in Neural Information Processing Systems* 32.
#' @family statistics of numbers
#' @examples
#' bounds <- list(bwt = c(500, 5500), age = c(14, 50))
#' st <- list(regression = stat_crossprod(bwt ~ age, bounds),
#'   covariates = stat_moments4(~ age, bounds["age"]))
#' half <- mech_laplace(epsilon = 1)
#' set.seed(1)
#' simulate_release(MASS::birthwt, st, list(regression = half, covariates = half))
#' @export
stat_moments4 <- function(formula, bounds, rescale = TRUE, outside = c("clamp", "none", "above", "below")) {
  check_given(hints = bounds_hint)
  check_flag(rescale, "rescale")
  formula <- functions_as_names(formula)
  variables <- moment_variables(formula)
  size <- choose(length(variables) + 4, 4) - 1
  if (size > most_moments) {
    stop_classed("formula", "{.arg formula} must have few enough covariates for {most_moments} monomials, but the {length(variables)} covariates have {size}.")
  }
  bounds <- check_bounds(bounds, variables)
  factors <- variables[vapply(bounds, is.character, TRUE)]
  if (length(factors)) {
    stop_classed("bounds", "{.arg bounds} must be two numbers for each variable, but {.var {factors}} {?has/have} levels.")
  }
  outside <- check_outside(outside, variables)
  terms <- monomials4(length(variables))
  components <- apply(terms$powers, 1L, monomial_name, variables = variables)
  if (anyDuplicated(components)) {
    stop_classed("formula", c("Components must have different names, but {.val {unique(components[duplicated(components)])}} would be the name of more than one.",
                              i = "Rename a variable: a component is named after its variables, as in {.val x^2:z}."))
  }
  statistic <- new_statistic("crossprod", "totals", columns = expand_columns(variables, bounds), levels = list(),
                             components = components, formula = formula_text(formula), outside = outside, rescale = rescale,
                             powers = terms$powers, pairs = terms$pairs, class = "stat_moments4")
  if (!all(is.finite(unlist(statistic_fields(statistic)))) || !is.finite(sensitivity(statistic, "L1")) ||
        !is.finite(sensitivity(statistic, "L2"))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be raised to the fourth power, but the results overflow.",
                             i = "Change the units of the data."))
  }
  with_functions(statistic, attr(bounds, "functions"))
}

# Their number grows with the fourth power of the covariates': too many are
# refused before anything is made of them.
most_moments <- 2e5

# Exponents of all monomials of degree 1 to 4 in p variables, and for those from
# degree 2 on the two earlier monomials that each is the product of.
monomials4 <- function(p) {
  index <- list(matrix(seq_len(p)))
  for (degree in 2:4) {
    before <- index[[degree - 1L]]
    last <- before[, degree - 1L]
    rows <- rep(seq_along(last), p - last + 1L)
    index[[degree]] <- cbind(before[rows, , drop = FALSE], unlist(lapply(last, function(l) l:p)))
  }
  powers <- do.call(rbind, lapply(index, function(i) t(apply(i, 1L, tabulate, nbins = p))))
  two <- function(i, j) p + (i - 1) * p - (i - 1) * (i - 2) / 2 + (j - i + 1) # place of the product i <= j
  third <- index[[3L]]
  fourth <- index[[4L]]
  list(powers = matrix(powers, ncol = p), # apply() drops a dimension when p is 1
       pairs = data.frame(first = c(index[[2L]][, 1L], third[, 1L], two(fourth[, 1L], fourth[, 2L])),
                          second = c(index[[2L]][, 2L], two(third[, 2L], third[, 3L]), two(fourth[, 3L], fourth[, 4L]))))
}

#' @export
statistic_fields.stat_moments4 <- function(statistic) statistic_fields.stat_crossprod(statistic)

#' @export
variable_kinds.stat_moments4 <- function(x) "number"

#' @export
describe_statistic.stat_moments4 <- function(statistic) {
  paste0("monomials of ", called_formula(statistic$formula), " up to degree 4",
         if (statistic$rescale) ", rescaled to [-1, 1]" else ", in the variables' units", outside_words(statistic))
}

#' @export
component_degrees.stat_moments4 <- function(statistic) rowSums(statistic$powers)

#' @export
component_limits.stat_moments4 <- function(statistic) {
  fields <- statistic_fields(statistic)
  term_limits(statistic$powers, fields$lower, fields$upper)
}

#' @export
sensitivity.stat_moments4 <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  if (!replaces(neighbours)) {
    limits <- component_limits(statistic)
    return(length_of(pmax(abs(limits[, 1L]), abs(limits[, 2L])), norm))
  }
  if (statistic$rescale && nrow(statistic$columns) == 1L) {
    t <- 0.605829586188268 # 1 - 2t + 3t^2 - 4t^3 = 0
    return(if (norm == "L1") 4 + t - t^2 + t^3 - t^4 else sqrt(8))
  }
  ranges <- component_ranges(statistic)
  if (norm == "L1") sum(ranges) else sqrt(sum(ranges^2))
}

#' @export
statistic_json.stat_moments4 <- function(statistic) {
  c(list(name = "moments4", formula = statistic$formula, bounds = exact_bounds(statistic$columns), rescale = statistic$rescale), outside_json(statistic))
}

stat_moments4_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "rescale", intersect("outside", names(x))), "statistic", refuse)
  bounds <- json_bounds(x$bounds, refuse)
  claim(choose(length(bounds) + 4, 4) - 1)
  stat_moments4(json_formula(x$formula, refuse), bounds, rescale = x$rescale, outside = outside_from_json(x))
}
