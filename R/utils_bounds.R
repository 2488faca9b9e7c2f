# Declared bounds and levels of variables, and the columns of a record that they make.

# Products grow with the square of the columns: too many are refused before
# anything is made of them.
most_columns <- 2000

check_bounds <- function(bounds, variables, call = caller_env()) {
  if (is.numeric(bounds) && is.null(names(bounds)) && length(variables) == 1L) bounds <- stats::setNames(list(bounds), base_variables(variables))
  if (!is.list(bounds) || is.null(names(bounds))) {
    stop_argument("bounds", "a named list with an entry for each variable", describe(bounds), "bounds", call)
  }
  check_one_function(variables, call)
  bounds <- bounds_of_functions(bounds, variables, "bounds", call)
  functions <- attr(bounds, "functions")
  absent <- setdiff(variables, names(bounds))
  if (length(absent)) {
    stop_classed("bounds", "{.arg bounds} must have an entry for each variable; {.var {absent}} {?has/have} none.", call = call)
  }
  strange <- setdiff(names(bounds), variables)
  if (length(strange) || anyDuplicated(names(bounds))) {
    strange <- union(strange, names(bounds)[duplicated(names(bounds))])
    refuse_entries("bounds", strange, variables, call)
  }
  count <- sum(vapply(bounds, function(b) if (is.character(b)) length(b) - 1 else if (is.factor(b)) nlevels(b) - 1 else 1, 0))
  if (count > most_columns) {
    stop_classed("bounds", "{.arg bounds} must give at most {most_columns} columns, but there are {count}.", call = call)
  }
  bounds <- lapply(bounds[variables], plain_bound)
  bounds[] <- Map(check_bound, bounds, paste0("bounds$", variables), MoreArgs = list(call = call))
  structure(bounds, functions = functions)
}

# entries for what is not a variable, or several for one
refuse_entries <- function(name, strange, variables, call) {
  absent <- setdiff(strange, variables)
  twice <- intersect(strange, variables)
  stop_classed(name, c("{.arg {name}} must have exactly one entry for each variable of {.arg formula}.",
                       x = if (length(absent)) "Not in {.arg formula}: {.var {absent}}.",
                       x = if (length(twice)) "More than one entry: {.var {twice}}."), call = call)
}

# One row a numeric column of a record.
expand_columns <- function(variables, bounds, call = caller_env()) {
  each <- function(number, factor) unlist(lapply(bounds, function(b) if (is.character(b)) factor(b[-1L]) else number(b)), use.names = FALSE)
  level <- each(function(b) NA_character_, identity)
  variable <- rep(variables, vapply(bounds, function(b) if (is.character(b)) length(b) - 1L else 1L, 0L))
  columns <- data.frame(
    name = ifelse(is.na(level), variable, paste0(variable, level)),
    lower = each(function(b) b[1L], function(l) numeric(length(l))),
    upper = each(function(b) b[2L], function(l) rep(1, length(l))),
    variable = variable, level = level)
  if (anyDuplicated(columns$name)) {
    stop_classed("levels", "Variables and levels must give columns different names; {.var {columns$name[duplicated(columns$name)]}} appear{?s/} twice.",
                 call = call)
  }
  columns
}

# declared levels, in the order of `variables`
check_levels <- function(levels, variables, call = caller_env()) {
  check_one_function(variables, call)
  if (is.null(levels) && length(functions_named(variables))) levels <- stats::setNames(list(), character())
  if (!is.list(levels) || is.null(names(levels))) {
    stop_argument("levels", "a named list with the levels of each variable", describe(levels), "levels", call)
  }
  levels <- bounds_of_functions(levels, variables, "levels", call)
  functions <- attr(levels, "functions")
  absent <- setdiff(variables, names(levels))
  if (length(absent)) {
    stop_classed("levels", "{.arg levels} must have an entry for each variable; {.var {absent}} {?has/have} none.", call = call)
  }
  strange <- union(setdiff(names(levels), variables), names(levels)[duplicated(names(levels))])
  if (length(strange)) {
    refuse_entries("levels", strange, variables, call)
  }
  levels <- lapply(levels[variables], declared_levels)
  for (v in variables) {
    name <- paste0("levels$", v)
    if (!is.character(levels[[v]])) stop_argument(name, "a vector of level names", describe(levels[[v]]), "levels", call)
    check_bound(levels[[v]], name, call)
  }
  structure(lapply(levels, as.vector), functions = functions)
}

# The text of limits of intervals: seven digits, or as many more as one behind the point and two limits that are apart need
break_text <- function(breaks) {
  largest <- max(1, abs(breaks[is.finite(breaks)]))
  for (digits in min(15, max(7, ceiling(log10(largest)) + 1)):15) if (!anyDuplicated(signif(breaks, digits))) break
  level_text(ifelse(is.finite(breaks) & breaks != floor(breaks), signif(breaks, digits), breaks))
}
