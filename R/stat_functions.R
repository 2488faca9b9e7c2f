# Statistics of functions of variables: the additional columns of records, computed by utils_functions.R.

with_functions <- function(statistic, functions) {
  if (is.null(functions)) return(statistic)
  whole <- names(Filter(function(of) of$whole, functions))
  if (length(whole) && says_outside(statistic) && !is_dropped(statistic)) {
    statistic <- with_outside(statistic, stats::setNames(rep("none", length(whole)), whole))
  }
  statistic$functions <- functions
  if (!is.null(statistic$statistic)) statistic$statistic <- with_functions(statistic$statistic, functions)
  statistic
}

# Records with the columns that are functions of theirs, as the owner of a statistic has them: clamped first.
derived_records <- function(data, statistic, call, name = "data") {
  for (label in names(statistic$functions)) {
    of <- statistic$functions[[label]]
    # records of a model have the function itself
    if (label %in% names(data) && !of$variable %in% names(data)) next
    data <- derive_column(data, named_function(label), of$bounds, call, name)
  }
  data
}

# The same of the variables that the records lack, without bounds.
derived_variables <- function(data, variables, call, name) {
  for (f in functions_named(setdiff(variables, names(data)))) {
    if (f$variable %in% names(data)) data <- derive_column(data, f, NULL, call, name)
  }
  data
}

derive_column <- function(data, f, bounds, call, name) {
  if (!is.data.frame(data) || sum(names(data) == f$variable) != 1L) {
    if (is.data.frame(data)) {
      stop_classed("data", c("{.arg {name}} must have every variable once.", x = "{.code {f$label}} needs {.var {f$variable}}."), call = call)
    }
    return(data)
  }
  x <- data[[f$variable]]
  intervals <- if (is.factor(x) && is_cut(f)) levels(function_value(f, numeric()))
  if (setequal(intervals, levels(x)) && length(intervals)) {
    data[[f$label]] <- factor(x, intervals) # as synthesize() names them
    return(data)
  }
  check_column(x, f$variable, takes_numbers(f) || is.numeric(bounds), call, name)
  check_missing(data, f$variable, call, name)
  value <- function_value(f, x, bounds)
  if (anyNA(value)) {
    if (is.factor(value)) refuse_levels(is.na(value), f$label, levels(value), call, name)
    stop_classed("data", "{.arg {name}} must have values of {.var {f$variable}} for which {.code {f$label}} is defined, but not in {rows_text(which(is.na(value)))}.",
                 call = call)
  }
  data[[f$label]] <- value
  data
}

# Names of the variables that records need for a statistic, and whether they are numbers.
needed_variables <- function(columns, levels, functions) {
  variables <- unique(columns$variable)
  numbers <- !variables %in% names(levels)
  derived <- variables %in% names(functions)
  of <- functions[variables[derived]]
  numbers[derived] <- vapply(names(of), function(v) takes_numbers(named_function(v)) || is.numeric(of[[v]]$bounds), TRUE)
  variables[derived] <- vapply(of, `[[`, "", "variable")
  stats::setNames(numbers, variables)[!duplicated(variables)]
}

# ---- weights ------------------------------------------------------------------------

# As it is of the variables that records have.
of_raw_variables <- function(statistic) {
  if (is_several(statistic)) return(lapply(statistic, of_raw_variables))
  of <- statistic$weighted
  if (is.null(of)) return(statistic)
  own <- !statistic$columns$name %in% of$labels # the weight, and the groups
  statistic$columns <- rbind(of$plain$columns, statistic$columns[own, ])
  statistic$levels <- c(of$plain$levels, statistic$levels)
  statistic
}

# Weighted products of records (stat_weighted.R). Those of a model have them.
has_weighted <- function(data, statistic) is.null(statistic$weighted) || all(statistic$weighted$labels %in% names(data))

# `x`: the matrix of the variables, as of_raw_variables() has their columns
weighted_records <- function(data, x, statistic) {
  of <- statistic$weighted
  columns <- of_raw_variables(statistic)$columns
  weight <- match(of$weight, columns$name)
  each <- function(v) rep(v, each = nrow(x))
  x[] <- pmin(pmax(x, each(columns$lower)), each(columns$upper))
  own <- seq_along(of$scale)
  value <- x[, own, drop = FALSE] * each(of$scale) + each(of$shift)
  pairs <- of$plain$pairs
  value <- cbind(value, value[, pairs$first, drop = FALSE] * value[, pairs$second, drop = FALSE])
  data[of$labels] <- as.data.frame(x[, weight] * value[, of$used, drop = FALSE])
  data
}
