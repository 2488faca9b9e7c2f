# What all statistics share. A statistic is a list of public facts, without
# environments or calls that could carry data:
#   name        of the C plug-in
#   kind        "totals"; "cells" (counts, of which a record touches few);
#               "records" (one value per record, nothing is summed);
#               "objective" (what minimises a sum over the records);
#               "ranks" (quantiles, from the numbers of records at the points of a grid)
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

# Numeric n x q matrix of a data frame's records, factors expanded with their
# declared levels. No value is dropped or guessed; errors name variables and
# rows, never values. `name` is the name of the caller's argument: "data" of an owner or
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
                           i = if (exits) "{.fn survival_exits} computes {.var exit} from times and events."), call)
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
      # a factor's levels are fewer than its values
      values <- if (is.factor(data[[v]])) levels(data[[v]]) else data[[v]]
      index <- match(level_text(values), levels[[v]])
      index[is.na(index)] <- match(as.character(values[is.na(index)]), levels[[v]])
      if (is.factor(data[[v]])) index <- index[data[[v]]]
      if (anyNA(index)) refuse_levels(is.na(index), v, levels[[v]], call, name)
      if (is.na(columns$level[at[1L]])) {
        x[at] <- list(index - 1) # one column of codes
      } else {
        x[at] <- lapply(seq_along(at), function(k) as.double(index == k + 1L))
      }
    }
  }
  x
}

#' @export
print.noiseaware_statistic <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

# as C takes them: a list of columns, or a matrix where there is none
statistic_records <- function(statistic, data, call, empty) {
  of <- if (nrow(statistic$columns) > 0L) record_columns else record_matrix
  data <- derived_records(data, statistic, call)
  if (!has_weighted(data, statistic)) {
    raw <- of_raw_variables(statistic)
    data <- weighted_records(data, record_matrix(data, raw$columns, raw$levels, call, empty = TRUE), statistic)
  }
  of(data, statistic$columns, statistic$levels, call, empty = empty)
}

# Is every component an integer, whatever the data?
integer_valued <- function(statistic) UseMethod("integer_valued")

# how many numbers a statistic of n records releases
value_size <- function(statistic, n) {
  if (counts_answers(statistic)) return(prod(lengths(statistic$counted)))
  length(statistic$components) * (if (statistic$kind == "records") n else 1)
}

# one value for each of these numbers, where all numbers of a component share one
per_number <- function(x, statistic, n) {
  if (counts_answers(statistic)) rep_len(x, value_size(statistic, n)) else rep(x, each = value_size(statistic, n) / length(statistic$components))
}

# Are these not single records, but how many have each combination of answers? `counted`: the answers to each question
counts_answers <- function(statistic) !is.null(statistic$counted)
any_counts_answers <- function(statistic) if (is_several(statistic)) any(vapply(statistic, counts_answers, TRUE)) else counts_answers(statistic)

part_components <- function(statistic, n, name = "") {
  components <- statistic$components
  if (counts_answers(statistic)) components <- margin_cells(names(statistic$counted), statistic$counted) else if (statistic$kind == "records")
    components <- as.vector(outer(seq_len(n), components, function(i, c) paste0(c, "[", i, "]")))
  if (name == "") components else paste0(name, ": ", components)
}

# names of a margin's cells, the last variable fastest
margin_cells <- function(margin, levels) {
  parts <- lapply(margin, function(v) paste0(v, "=", levels[[v]]))
  Reduce(function(slow, fast) as.vector(t(outer(slow, fast, paste, sep = ":"))), parts)
}

statistic_json <- function(statistic) UseMethod("statistic_json")

interval_labels <- function(breaks) {
  text <- break_text(breaks)
  paste0("[", text[-length(text)], ",", text[-1L], ")")
}

exit_levels <- function(breaks) {
  c(rbind(paste0("event", interval_labels(breaks)), paste0("censored", interval_labels(breaks))), "after")
}

# the way back
breaks_of_exits <- function(exits) {
  events <- exits[startsWith(exits, "event[")]
  ends <- suppressWarnings(as.double(unlist(strsplit(gsub("event\\[|\\)", "", events), ",", fixed = TRUE))))
  breaks <- unique(ends)
  if (length(breaks) < 2L || anyNA(breaks) || is.unsorted(breaks, strictly = TRUE) || !identical(exits, exit_levels(breaks))) return(NULL)
  breaks
}
