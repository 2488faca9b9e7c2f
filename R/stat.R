# What all statistics share. A statistic is a list of public facts, without
# environments or calls that could carry data:
#   name        of the C plug-in
#   kind        "totals"; "cells" (counts, of which a record touches few);
#               "records" (one value per record, nothing is summed);
#               "objective" (what minimises a sum over the records)
#   columns     data frame of the numeric columns a record has: name, lower,
#               upper, variable (the data's variable it comes from), level (of
#               a dummy column, else NA). A factor is either dummy columns, one
#               a level but the first, or one column of codes 0, 1, ...
#   levels      named list: declared levels of each factor
#   components  names of the totals
#   outside     what is said of values beyond the bounds, see stat_outside.R
# and what the plug-in needs. Methods: statistic_fields(), sensitivity().

new_statistic <- function(name, kind, columns, levels, components, ..., class) {
  structure(list(name = name, kind = kind, columns = columns, levels = levels, components = components, ...),
            class = c(class, "noiseaware_statistic"))
}

# Numeric vectors for the C plug-in, as the owner of the records evaluates it.
statistic_fields <- function(statistic) UseMethod("statistic_fields")

# `confidential`: of the records themselves, not those of a model, which know of no bounds that are natural limits.
statistic_spec <- function(statistic, confidential = FALSE, call = caller_env()) {
  if (statistic$name == "custom") return(custom_statistic_spec(statistic, confidential, call))
  if (statistic$name == "linear") return(linear_spec(statistic, confidential, call))
  fields <- statistic_fields(statistic)
  list(name = statistic$name, fields = if (confidential && !isTRUE(statistic$simulated)) fields else open_fields(statistic, fields))
}

# Numeric n x q matrix of a data frame's records, factors expanded with their
# declared levels. No value is dropped or guessed; errors name variables and
# rows, never values. `name` is that of the caller's argument: "data" of an owner or
# "newdata" of an analyst, which has the covariates alone.
record_matrix <- function(data, columns, levels, call = caller_env(), name = "data", empty = FALSE) {
  x <- record_columns(data, columns, levels, call, name, empty)
  matrix(as.double(unlist(x, use.names = FALSE)), nrow(data), nrow(columns), dimnames = list(NULL, columns$name))
}

# The same as a list of columns, numbers not copied.
record_columns <- function(data, columns, levels, call = caller_env(), name = "data", empty = FALSE) {
  if (!is.data.frame(data)) stop_classed("data", "{.arg {name}} must be a data frame, but is {describe_shape(data)}.", call)
  variables <- unique(columns$variable)
  data <- derived_variables(data, variables, call, name)
  absent <- base_variables(setdiff(variables, names(data)))
  if (length(absent)) {
    every <- if (name == "newdata") "covariate of the fit" else "variable of the statistic"
    exits <- "exit" %in% absent && !is.null(breaks_of_exits(levels$exit))
    stop_classed("data", c("{.arg {name}} must have every {every}.", x = "Missing: {.var {absent}}.",
                           i = if (exits) "{.fn survival_exits} makes {.var exit} of times and events."), call)
  }
  twice <- intersect(variables, names(data)[duplicated(names(data))])
  if (length(twice)) {
    stop_classed("data", "{.arg {name}} must have one column for each variable, but has several named {.var {twice}}.", call)
  }
  if (nrow(data) == 0L && !empty) stop_classed("data", "{.arg {name}} must have at least one row, but has none.", call)
  for (v in variables) check_column(data[[v]], v, is.null(levels[[v]]), call, name)
  check_missing(data, variables, call, name)
  x <- vector("list", nrow(columns))
  for (v in variables) {
    at <- which(columns$variable == v)
    if (is.null(levels[[v]])) {
      x[at] <- list(as.double(data[[v]]))
    } else {
      index <- match(level_text(data[[v]]), levels[[v]])
      index[is.na(index)] <- match(as.character(data[[v]][is.na(index)]), levels[[v]])
      if (anyNA(index)) {
        stop_classed("levels", c("{.arg {name}} must have only the declared levels in {.var {v}}.",
                                 x = "{sum(is.na(index))} other{?s}, in {rows_text(which(is.na(index)))}.",
                                 i = "Declared: {shorten_list(encodeString(levels[[v]], quote = '\"'))}."), call)
      }
      if (is.na(columns$level[at[1L]])) {
        x[at] <- list(index - 1) # one column of codes
      } else {
        x[at] <- lapply(seq_along(at), function(k) as.double(index == k + 1L))
      }
    }
  }
  x
}

check_column <- function(column, variable, number, call, name) {
  class <- class(column)[1L]
  # only its own package reads the bits of integer64
  suitable <- if (number) (is.numeric(column) || is.logical(column)) && !inherits(column, "integer64") else
    is.atomic(column)
  if (!suitable || !is.null(dim(column))) {
    must <- if (number) "numbers" else "one level a row"
    stop_classed("data", c("{.arg {name}} must have {must} in {.var {variable}}, but the column is of class {.cls {class}}.",
                           i = if (number && is.factor(column)) "Of a factor declare the levels, not bounds."), call)
  }
}

check_missing <- function(data, variables, call, name) {
  rows <- lapply(variables, function(v) if (anyNA(data[[v]])) which(is.na(data[[v]])))
  bad <- which(lengths(rows) > 0L)
  if (length(bad) == 0L) return(invisible())
  lines <- vapply(bad, function(i) {
    cli::format_inline("{.var {variables[i]}}: {length(rows[[i]])} missing, in {rows_text(rows[[i]])}.")
  }, "")
  where <- if (name == "newdata") "covariates" else "released variables"
  stop_classed("missing", c("{.arg {name}} must have no missing values in the {where}.",
                            stats::setNames(sprintf("{lines[%d]}", seq_along(lines)), rep("x", length(lines))),
                            i = if (name == "data") "Decide what a missing value stands for before the release."), call)
}

# "row 3", "rows 1, 2, 3, 4, 5, ..."
rows_text <- function(rows) paste(if (length(rows) == 1L) "row" else "rows", shorten_list(rows, 6L))

#' @export
print.noiseaware_statistic <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

#' @export
format.noiseaware_statistic <- function(x, ...) {
  numeric_columns <- x$columns[is.na(x$columns$level), ]
  bounds <- sprintf("%s in [%s, %s]", numeric_columns$name, format_number(numeric_columns$lower),
                    format_number(numeric_columns$upper))
  factors <- sprintf("%s in {%s}", names(x$levels), vapply(x$levels, paste, "", collapse = ", "))
  c(paste0("<statistic> ", describe_statistic(x)),
    paste0("  bounds      ", paste(c(bounds, factors), collapse = ", ")),
    sprintf("  components  %d: %s", length(x$components), shorten_list(x$components)),
    sprintf("  sensitivity L1 %s, L2 %s", format_number(sensitivity(x, "L1")),
            format_number(sensitivity(x, "L2"))))
}

# one line that says what was summed
describe_statistic <- function(statistic) UseMethod("describe_statistic")

# Of a part's statistic. Where a record may be added, there may be none: the empty database is a
# neighbour of one with a single record.
part_records <- function(part, data, call = caller_env()) {
  statistic_records(part$statistic, data, call, empty = !replaces(part$neighbours))
}

# as C takes them: a list of columns, or a matrix where there is none
statistic_records <- function(statistic, data, call, empty) {
  of <- if (nrow(statistic$columns) > 0L) record_columns else record_matrix
  data <- derived_records(data, statistic, call)
  of(data, statistic$columns, statistic$levels, call, empty = empty)
}

# what is summed; with one value a record, component after component
statistic_total <- function(statistic, data, call = caller_env(), confidential = FALSE, empty = FALSE) {
  x <- statistic_records(statistic, data, call, empty)
  spec <- statistic_spec(statistic, confidential, call)
  if (statistic$kind == "records") return(as.vector(.Call(ffi_stat_eval, spec, x)))
  stats::setNames(.Call(ffi_stat_total, spec, x), statistic$components)
}

# Is every component an integer, whatever the data?
integer_valued <- function(statistic) UseMethod("integer_valued")

is_several <- function(statistic) !inherits(statistic, "noiseaware_statistic")

# how many numbers a statistic of n records releases
value_size <- function(statistic, n) {
  length(statistic$components) * (if (statistic$kind == "records") n else 1)
}

part_components <- function(statistic, n, name = "") {
  components <- statistic$components
  if (statistic$kind == "records") components <- as.vector(outer(seq_len(n), components, function(i, c) paste0(c, "[", i, "]")))
  if (name == "") components else paste0(name, ": ", components)
}

statistic_json <- function(statistic) UseMethod("statistic_json")
