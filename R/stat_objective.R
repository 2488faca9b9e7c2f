#' Objective of a private logistic regression
#'
#' For coefficients that minimise a perturbed logistic loss (Kifer, Smith & Thakurta 2012). The release is not a sum but the minimiser z itself. The records
#' enter through the gradient and the Hessian of the loss at z, which are both sums over the records. Describe z by this statistic with the mechanism
#' [mech_objective()].
#'
#' @param formula `response ~ covariate + ...`, main effects only. The intercept is
#'   implied.
#' @param bounds A named list with an entry for each variable: `c(0, 1)` or two levels for the
#'   response, `c(lower, upper)` for a number, the vector of all levels for a factor. Bounds and levels are public; never take them from the data.
#' @param rescale Whether to map each clamped number except the response to \[-1, 1\] first. The coefficients then refer to the mapped variables.
#' @param radius `NULL`, or the largest length of a row (1, x); longer ones are shortened to it. A radius reduces the noise; the loss is computed from the
#'   shortened rows.
#'
#' @details
#' A record's row is w = (1, x), with covariates that are clamped and, if requested, rescaled and shortened. With p = 1 / (1 + exp(-w'z)) the record adds (p -
#' y) w to the gradient and p (1 - p) w w' to the Hessian. Its length is at most B: the length of the box's farthest corner, or `radius`. Rescaled, with k
#' numbers and f factors among the covariates, that corner has B = sqrt(1 + k + f).
#'
#' **Components** are the coefficients: `(Intercept)`, then the covariates' columns.
#'
#' **Sensitivity** refers to the gradient at any z. Since |p - y| <= 1, one replaced record moves it by at most 2 B (L2), and by sqrt(d) times as much in the L1
#' norm, where d is the number of coefficients. With two numbers or more among the covariates there are z and records that come arbitrarily close to 2 B. A
#' record added or removed moves it by at most B.
#'
#' @return A statistic: an object of class `stat_objective`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_bounds`,
#'   `noiseaware_error_levels`, `noiseaware_error_argument`.
#' @references
#' Kifer, D., Smith, A. and Thakurta, A. (2012). Private convex empirical risk
#' minimization and high-dimensional regression. *Proceedings of the 25th Annual
#' Conference on Learning Theory*, PMLR 23, 25.1-25.40.
#' @seealso [release_objective()] for a worked example.
#' @family statistics of numbers
#' @examples
#' stat_objective(low ~ age + smoke,
#'   bounds = list(low = c(0, 1), age = c(14, 50), smoke = c("0", "1")))
#' # coefficients that someone else published
#' published <- stat_objective(low ~ age, bounds = list(low = c(0, 1), age = c(14, 50)))
#' as_release(c("(Intercept)" = -0.7, age = -0.5), published, mech_objective(epsilon = 2), n = 189)
#' @export
stat_objective <- function(formula, bounds, rescale = TRUE, radius = NULL) {
  check_given()
  check_flag(rescale, "rescale")
  variables <- formula_variables(formula)
  bounds <- check_bounds(bounds, variables)
  if (!identical(bounds[[1L]], c(0, 1)) && !(is.character(bounds[[1L]]) && length(bounds[[1L]]) == 2L)) {
    stop_classed("bounds", "{.arg bounds} must be c(0, 1), or two levels, for the response {.var {variables[1]}} of a logistic regression.")
  }
  if (!is.null(radius)) radius <- check_positive(radius, "radius")
  columns <- expand_columns(variables, bounds)
  if ("(Intercept)" %in% columns$name) stop_classed("formula", "{.arg formula} must have no variable named {.var (Intercept)}.")
  statistic <- new_statistic("objective", "objective", columns = columns, levels = bounds[vapply(bounds, is.character, TRUE)],
                             components = c("(Intercept)", columns$name[-1L]), formula = formula_text(formula), rescale = rescale,
                             radius = radius, class = "stat_objective")
  fields <- objective_fields(statistic, 0)
  if (!all(is.finite(unlist(fields[c("scale", "shift", "radius")]))) || !is.finite(fields$radius^2)) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled and multiplied, but the results overflow.",
                             i = "Change the units of the data."))
  }
  statistic
}

# for the C plug-in; the coefficients are the released ones
objective_fields <- function(statistic, coefficients) {
  columns <- statistic$columns
  # the response, dummy columns and numbers in their own units stay as they are
  mapped <- statistic$rescale & is.na(columns$level) & seq_len(nrow(columns)) > 1L
  width <- columns$upper - columns$lower
  list(scale = ifelse(mapped, 2 / width, 1), shift = ifelse(mapped, -(columns$upper + columns$lower) / width, 0),
       lower = ifelse(mapped, -1, columns$lower), upper = ifelse(mapped, 1, columns$upper),
       radius = row_length(statistic), coefficients = as.double(coefficients))
}

objective_spec <- function(statistic, coefficients) list(name = "objective", fields = objective_fields(statistic, coefficients))

# largest size of each number among the covariates
number_sizes <- function(statistic) {
  columns <- statistic$columns[-1L, ]
  number <- is.na(columns$level)
  if (statistic$rescale) rep(1, sum(number)) else pmax(abs(columns$lower), abs(columns$upper))[number]
}

# largest length of a row: B
row_length <- function(statistic) {
  columns <- statistic$columns[-1L, ]
  # a record has one level of a factor
  farthest <- sqrt(1 + sum(number_sizes(statistic)^2) + length(unique(columns$variable[!is.na(columns$level)])))
  min(statistic$radius, farthest)
}

# largest entry of a row, the intercept's entry among them
row_largest <- function(statistic) min(statistic$radius, max(1, number_sizes(statistic)))

#' @export
sensitivity.stat_objective <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  (if (replaces(neighbours)) 2 else 1) * row_length(statistic) * if (match_norm(norm) == "L1") sqrt(length(statistic$components)) else 1
}

#' @export
variable_kinds.stat_objective <- function(x) "number"

#' @export
describe_statistic.stat_objective <- function(statistic) {
  paste0("minimiser of the perturbed logistic loss of ", statistic$formula,
         if (statistic$rescale) ", covariates rescaled to [-1, 1]" else ", covariates in their units",
         if (!is.null(statistic$radius)) paste0(", rows shortened to ", format_number(statistic$radius)))
}

# ---- JSON --------------------------------------------------------------------

#' @export
statistic_json.stat_objective <- function(statistic) {
  content <- statistic_json.stat_crossprod(statistic)
  content$name <- "objective"
  c(content, if (!is.null(statistic$radius)) list(radius = exact_numbers(statistic$radius)))
}

stat_objective_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "rescale", if ("radius" %in% names(x)) "radius"), "statistic", refuse)
  bounds <- json_bounds(x$bounds, refuse)
  claim(sum(json_columns(bounds)))
  stat_objective(json_formula(x$formula, refuse), bounds, rescale = x$rescale, radius = x$radius)
}
