#' Counts of categorical variables
#'
#' Counts of the records with each level of a variable, or with each combination of levels of several variables. Each term of the formula gives a one-way or
#' crossed margin.
#'
#' @param formula The margins, one per term, at most 2,000: `~ y` counts the levels of `y`,
#'   `~ y:x1 + y:x2` the combinations of `y` with `x1` and of `y` with `x2`.
#'   There is no left-hand side. A variable can be a function that has levels, such as `cut(age, c(0, 20, 40, 60))`: see [noiseaware_terms].
#' @param levels A named list with the vector of all levels (two or more) of each
#'   variable: strings, numbers, `c(FALSE, TRUE)`, or a factor, whose levels are used. In the release they are strings. Levels are public: choose them from
#'   subject knowledge, never from the confidential data. Functions determine their own levels, except that `factor(x)` needs the levels of `x`.
#'
#' @details
#' **Components.** One margin after another; within a margin the last variable varies fastest: `y=a`, `y=b`, ... for `~ y`; `y=a:x1=no`, `y=a:x1=yes`,
#' `y=b:x1=no`, ... for `~ y:x1`.
#'
#' **Sensitivity** (replace one record). A record adds 1 to one cell of each
#' margin. Replacing it changes two cells of each of the k margins by at most 1: 2 k in the L1 norm, sqrt(2 k) in the L2 norm. A record with other levels in
#' every variable attains both. Add or remove one record: k and sqrt(k).
#'
#' With noise, counts can be fractional or negative, and need not add up to the number of records. This is expected: publish and analyse them unchanged.
#'
#' @return A statistic: an object of class `stat_counts`.
#' @section Errors: `noiseaware_error_formula`, `noiseaware_error_levels`.
#' @references
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data, section 4.
#' \doi{10.48550/arXiv.2206.00710}
#' @family statistics of counts
#' @examples
#' stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' st <- stat_counts(~ low:smoke + low:race, levels = list(low = c("0", "1"),
#'   smoke = c("0", "1"), race = c("1", "2", "3")))
#' st
#' release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' @export
stat_counts <- function(formula, levels = NULL) {
  check_given()
  formula <- functions_as_names(formula)
  margins <- formula_margins(formula)
  variables <- unique(unlist(margins))
  levels <- check_levels(levels, variables)
  functions <- attr(levels, "functions")
  attr(levels, "functions") <- NULL
  count <- lengths(levels)
  check_cells(margins, levels)
  components <- margin_components(margins, levels)
  columns <- data.frame(name = variables, lower = 0, upper = count - 1, variable = variables, level = NA_character_, row.names = NULL)
  statistic <- new_statistic("counts", "cells", columns = columns, levels = levels, components = components,
                             formula = formula_text(formula), margins = margins, class = "stat_counts")
  with_functions(statistic, functions)
}

check_cells <- function(margins, labels, call = caller_env()) {
  size <- vapply(margins, function(m) prod(lengths(labels)[m]), 0)
  if (sum(size) > most_cells) {
    shown <- format(c(most_cells, sum(size)), big.mark = ",", decimal.mark = ".", trim = TRUE, digits = 7)
    stop_classed("levels", "{.arg formula} and {.arg levels} must give at most {shown[1]} counts, but give {shown[2]}.", call = call)
  }
}

margin_components <- function(margins, labels, call = caller_env()) {
  components <- unlist(lapply(margins, margin_cells, labels))
  if (anyDuplicated(components)) {
    clash <- unique(components[duplicated(components)])
    stop_classed("levels", c("Components must have different names, but {.val {shorten_list(clash, 4L)}} would be the name of more than one.",
                             i = "Rename a variable or a level: a component is named after them, as in {.val y=a:x1=no}."), call = call)
  }
  components
}

# Each count is a number that someone publishes: more are refused before
# anything is made of them.
most_cells <- 1e6

# list of the margins' variables
formula_margins <- function(formula, call = caller_env()) {
  if (!inherits(formula, "formula") || length(formula) != 2L) {
    stop_argument("formula", "a formula without a left-hand side, such as ~ y or ~ y:x1 + y:x2", describe(formula), "formula", call)
  }
  margins <- lapply(formula_leaves(formula[[2L]], chain_operands("+"), call), function(term) {
    variables <- lapply(formula_leaves(term, chain_operands(":"), call), margin_variable, call)
    vapply(variables, as.character, "")
  })
  for (m in margins) {
    twice <- unique(m[duplicated(m)])
    if (length(twice)) {
      stop_classed("formula", "Each variable may appear only once in a margin, but {.var {twice}} appear{?s/} more than once in {.code {paste(m, collapse = ':')}}.",
                   call = call)
    }
  }
  same <- duplicated(lapply(margins, sort))
  if (any(same)) {
    shown <- vapply(margins[same], paste, "", collapse = ":")
    stop_classed("formula", c("Each margin may appear only once in {.arg formula}, but {.code {unique(shown)}} appear{?s/} more than once."), call = call)
  }
  margins
}

margin_variable <- function(side, call) {
  if (is.name(side) && !identical(side, quote(.))) return(side)
  shown <- shorten_text(formula_text(side))
  if (identical(side, quote(.))) {
    stop_classed("formula", "{.arg formula} must name its variables: {.code .} would depend on the data.", call = call)
  }
  if (is.call(side) && identical(side[[1L]], quote(`*`))) {
    stop_classed("formula", c("{.arg formula} must be margins joined by {.code +}, but has {.code {shown}}.",
                              i = "Write {.code y:x} for the crossed counts; they contain the counts of {.var y} and of {.var x}."), call = call)
  }
  stop_classed("formula", c("{.arg formula} must be names joined by {.code :} and {.code +}, but {.code {shown}} is not a name.",
                            i = "Transform the variable in the data first."), call = call)
}

#' @export
statistic_fields.stat_counts <- function(statistic) {
  list(levels = as.double(lengths(statistic$levels)), members = as.double(lengths(statistic$margins)),
       column = match(unlist(statistic$margins), statistic$columns$name) - 1)
}

#' @export
variable_kinds.stat_counts <- function(x) "code"

#' @export
describe_statistic.stat_counts <- function(statistic) {
  k <- length(statistic$margins)
  paste0("counts of ", shorten_text(called_formula(statistic$formula)), if (k > 1L) paste0(" (", k, " margins)"))
}

#' @export
format.stat_counts <- function(x, ...) {
  levels <- sprintf("%s in {%s}", names(x$levels), vapply(x$levels, shorten_list, ""))
  statistic_lines(x, paste0("  levels      ", shorten_list(levels)))
}

#' @export
sensitivity.stat_counts <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  moved <- (if (replaces(neighbours)) 2 else 1) * length(statistic$margins)
  if (match_norm(norm) == "L1") moved else sqrt(moved)
}

#' @export
component_limits.stat_counts <- function(statistic) cbind(numeric(length(statistic$components)), 1)

#' @export
statistic_json.stat_counts <- function(statistic) {
  list(name = "counts", formula = statistic$formula, levels = statistic$levels)
}

# field by field, then through the constructor
stat_counts_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "levels"), "statistic", refuse)
  formula <- json_formula(x$formula, refuse)
  levels <- json_levels(x$levels, refuse)
  cells <- vapply(formula_margins(formula), function(m) prod(lengths(x$levels)[m]), 0)
  claim(sum(cells, na.rm = TRUE)) # the constructor refuses a variable without levels
  stat_counts(formula, levels)
}

json_levels <- function(x, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse("The statistic's levels must be an object with an entry for each variable.")
  texts <- function(l) is.list(l) && length(l) > 0L && is.null(names(l)) && all(vapply(l, checkmate::test_string, TRUE))
  check_entries(x, refuse)
  for (v in seq_along(x)) {
    if (!texts(x[[v]])) refuse(paste("The levels of", names(x)[v], "must be an array of strings."))
  }
  lapply(x, unlist)
}
