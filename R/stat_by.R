#' Totals in each group
#'
#' The totals of [stat_sums()] or [stat_crossprod()] in each level of a factor: visits by ward, a regression by school. A record belongs to one
#' group, so all groups together cost little more budget than a single one.
#'
#' @param statistic What is summed: [stat_sums()] or [stat_crossprod()].
#' @param levels A named list with the vector of all levels of the factor, as in [stat_counts()]. Levels are
#'   public: choose them from subject knowledge, never from the confidential data. Or a formula with a function that
#'   has its levels written out, such as `~ cut(age, seq(20, 70, by = 5))`, see [noiseaware_terms].
#'
#' @details
#' **Components.** One term after another; within a term the group varies fastest: `visits:ward=a`, `visits:ward=b`, ...
#'
#' **Sensitivity** (add or remove one record): the same as for `statistic`, because a record is in one group. Replace one record: the new one may be in another
#' group. Then two groups change, each by at most the contribution of one record: twice this in the L1 norm, sqrt(2) times this in the L2 norm; or the
#' sensitivity of `statistic` if that is larger.
#'
#' To publish the sizes of groups as well, put `stat_counts(~ ward, levels)` and this statistic into a named list.
#'
#' @return A statistic: an object of class `stat_by`.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_levels`.
#' @seealso [groups], for the rates, the means and the regressions of groups; [stat_counts()] for the counts of a factor's levels by group.
#' @family statistics of counts
#' @examples
#' wards <- list(ward = c("north", "east", "south"))
#' visits <- stat_by(stat_sums(~ visits, bounds = list(visits = c(0, 20))), wards)
#' visits
#' set.seed(1)
#' people <- data.frame(ward = rep(wards$ward, 100), visits = rpois(300, 4))
#' release(people, list(size = stat_counts(~ ward, wards), visits = visits),
#'         list(size = mech_laplace(epsilon = 0.5), visits = mech_laplace(epsilon = 0.5)))
#' @export
stat_by <- function(statistic, levels) {
  check_given()
  summed <- "a statistic made by stat_sums() or stat_crossprod()"
  check_class(statistic, "statistic", c("stat_sums", "stat_crossprod"), summed, "argument")
  if (inherits(statistic, "stat_centred")) stop_argument("statistic", summed, describe_statistic(statistic))
  variable <- if (inherits(levels, "formula")) group_function(levels) else names(levels)
  if (length(variable) != 1L || !(inherits(levels, "formula") || is.list(levels))) {
    stop_argument("levels", "a list with the levels of one variable, named like it, or a formula such as ~ cut(age, c(18, 40, 65))", describe(levels), "levels")
  }
  levels <- check_levels(if (is.list(levels)) levels, variable)
  functions <- attr(levels, "functions")
  attr(levels, "functions") <- NULL
  if (base_variables(variable) %in% base_variables(statistic$columns$variable)) {
    stop_classed("levels", "{.arg levels} must be for a variable that is not summed, but is for {.var {base_variables(variable)}}.")
  }
  count <- length(levels[[1L]])
  size <- count * length(statistic$components)
  if (size > most_cells) {
    stop_classed("levels", "{.arg statistic} and {.arg levels} must give at most {format_size(most_cells)} totals, but give {format_size(size)}.")
  }
  components <- as.vector(t(outer(statistic$components, paste0(variable, "=", levels[[1L]]), paste, sep = ":")))
  columns <- rbind(statistic$columns, data.frame(name = variable, lower = 0, upper = count - 1, variable = variable, level = NA_character_))
  of_groups <- new_statistic("by", "totals", columns = columns, levels = c(levels, statistic$levels), components = components, formula = statistic$formula,
                             outside = statistic$outside, statistic = statistic, class = "stat_by")
  of_groups$weighted <- statistic$weighted
  with_functions(of_groups, c(statistic$functions, functions))
}

# the name of the function in ~ cut(x, breaks); NULL where there is none
group_function <- function(formula, call = caller_env()) {
  side <- as.list(functions_as_names(formula, call))[-1L]
  if (length(side) == 1L && is.name(side[[1L]]) && !is.null(named_function(as.character(side[[1L]])))) as.character(side[[1L]])
}

#' @export
statistic_fields.stat_by <- function(statistic) c(statistic_fields(statistic$statistic), list(groups = as.double(length(statistic$levels[[1L]]))))

#' @export
variable_kinds.stat_by <- function(x) character()

#' @export
describe_statistic.stat_by <- function(statistic) {
  sprintf("%s, by %s (%s groups)", describe_statistic(statistic$statistic), names(statistic$levels)[1L], format_size(length(statistic$levels[[1L]])))
}

#' @export
format.stat_by <- function(x, ...) statistic_lines(x, format(x$statistic)[2L])

#' @export
sensitivity.stat_by <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  one <- sensitivity(statistic$statistic, norm, "add_remove")
  if (!replaces(neighbours)) return(one)
  max(sensitivity(statistic$statistic, norm, "replace"), (if (norm == "L1") 2 else sqrt(2)) * one)
}

each_group <- function(statistic, of_terms) rep(of_terms, each = length(statistic$levels[[1L]]))

# a record outside a group adds 0 to it
#' @export
component_limits.stat_by <- function(statistic) {
  limits <- component_limits(statistic$statistic)
  cbind(each_group(statistic, pmin(limits[, 1L], 0)), each_group(statistic, pmax(limits[, 2L], 0)))
}

#' @export
component_degrees.stat_by <- function(statistic) each_group(statistic, component_degrees(statistic$statistic))

#' @export
statistic_json.stat_by <- function(statistic) list(name = "by", statistic = statistic_json(statistic$statistic), levels = statistic$levels[1L])

stat_by_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "statistic", "levels"), "statistic", refuse)
  readers <- list(sums = stat_sums_from_json, crossprod = stat_crossprod_from_json)
  name <- if (is.list(x$statistic)) x$statistic[["name"]]
  if (!checkmate::test_choice(name, names(readers))) refuse("The statistic of groups must be \"sums\" or \"crossprod\".")
  levels <- json_levels(x$levels, refuse)
  inner <- readers[[name]](x$statistic, refuse, function(count) claim(count * sum(lengths(levels))))
  stat_by(inner, levels)
}
