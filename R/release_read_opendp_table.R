# A table of OpenDP's Polars interface: the description of each column by `query.summarize()`, and the numbers that were collected.

#' @section Tables from OpenDP's Polars interface: `format = "opendp_table"`, with the arguments `table`, `levels`, `bounds` and `n`.
#'
#' In Python, `query.release().collect()` returns a table, and `query.summarize()` describes each of its columns and their noise. Both are data frames, written
#' by `.write_csv()` or `.write_parquet()`.
#'
#' * `file`: the result of `query.summarize()`: a data frame, or the name of a file (CSV or Parquet), with the columns `column`, `aggregate`,
#'   `distribution`, `scale` and, if groups below a threshold are hidden, `threshold`.
#' * `table`: the numbers: a data frame or a file. Columns that are not in the summary name the groups.
#' * `levels`: a named list with all levels of each grouping variable, if they are public. `NULL` (the default) uses the levels in the table; if groups are
#'   hidden, the other possible levels are then unknown.
#' * `bounds`: a named list with `c(lower, upper)` for each column that is a sum: the summary does not contain the limits that the values were clamped to.
#' * `n`: the public number of records; `NULL` (the default) if it is not known.
#'
#' `Frame Length` and `Length` are counts of groups ([stat_counts()]), or of all records ([stat_size()]); so is `Count`, which omits missing values, because
#' records are assumed to have none. `Sum` is [stat_sums()] or, by group, [stat_by()], and its column must have the name of its variable. `Integer` noise is
#' treated as discrete for counts, and as continuous noise of the same scale for sums.
#'
#' A `Frame Length` without a distribution is exact, because the lengths of groups are public: [mech_exact()]. A mean over such a length (`Sum` and `Length` in
#' one column) is read as the sum, the mean times the length. The length is taken from the table's exact column, or from `n` if there are no groups.
#'
#' A group is shown if its noisy count is *larger* than the threshold. Its other numbers are then also shown, with their own noise.
#'
#' **Not supported** (the error names them): quantiles (`GumbelMin`), numbers of distinct values (`N Unique`), and means over a noisy length. For these means,
#' the table contains only the ratio: ask for the sum and the length.
#' @examples
#'
#' # a summary and a table of OpenDP, made by hand in the layout that Python writes
#' summary <- data.frame(column = c("len", "visits"), aggregate = c("Frame Length", "Sum"),
#'   distribution = "Integer Laplace", scale = c(2, 40), threshold = c(33, NA))
#' table <- data.frame(ward = c("north", "south"), len = c(120, 64), visits = c(391, 240))
#' read_release(summary, table = table, bounds = list(visits = c(0, 20)))
#' @name read_release
NULL

read_opendp_table <- function(file, table, levels = NULL, bounds = NULL, n = NULL) {
  check_given()
  summary <- opendp_rows(file, c("column", "aggregate", "distribution", "scale"), "file")
  check_known_fields(summary, c("column", "aggregate", "distribution", "scale", "threshold", "accuracy"), "The summary")
  table <- opendp_rows(table, unique(summary$column), "table")
  summary$aggregate[summary$aggregate %in% "Len"] <- "Frame Length" # before 0.12
  exact <- is.na(summary$distribution) & is.na(summary$scale) & summary$aggregate %in% c("Frame Length", "Length")
  summary[exact, c("distribution", "scale")] <- list("Integer Laplace", 0)
  means <- opendp_means(summary, exact)
  if (length(means)) summary <- summary[!(exact & summary$column %in% means), , drop = FALSE]
  check_opendp_summary(summary)
  groups <- setdiff(names(table), summary$column)
  if (length(groups) == 0L && nrow(table) != 1L) stop_classed("file", "{.arg table} must have one row, or columns of groups in addition to {.field {summary$column}}.")
  hidden <- "threshold" %in% names(summary) && any(!is.na(summary$threshold))
  keys <- opendp_keys(table, groups, levels)
  for (v in means) table[[v]] <- text_numbers(as.character(table[[v]]), v) * opendp_lengths(summary, table, groups, n)
  parts <- lapply(stats::setNames(seq_len(nrow(summary)), summary$column), function(row) {
    opendp_column(summary[row, , drop = FALSE], table, keys, bounds, listed = !hidden || !is.null(levels))
  })
  all_of <- function(field) if (length(parts) > 1L) lapply(parts, `[[`, field) else parts[[1L]][[field]]
  as_release(all_of("value"), all_of("statistic"), all_of("mechanism"), n, neighbours = "add_remove")
}

# columns with a noisy sum over an exact length
opendp_means <- function(summary, exact) {
  twice <- unique(summary$column[duplicated(summary$column)])
  Filter(function(column) setequal(summary$aggregate[summary$column == column & !exact], "Sum") && sum(summary$column == column) == 2L, twice)
}

# the exact lengths of which the table has means
opendp_lengths <- function(summary, table, groups, n, call = caller_env()) {
  column <- summary$column[summary$aggregate == "Frame Length" & summary$scale == 0][1L]
  if (!is.na(column)) return(text_numbers(as.character(table[[column]]), column, call))
  if (is.null(n) || length(groups)) {
    what <- if (length(groups)) "The table must have an exact column of the lengths of its groups" else "{.arg n} must be given"
    stop_classed("argument", paste0(what, ", to recover sums from means."), call = call)
  }
  check_count(n, "n", call = call)
}

opendp_rows <- function(x, needs, name, call = caller_env()) {
  if (is.data.frame(x)) check_layout(as.data.frame(x), needs, name, call) else read_rows(x, ",", needs, call)
}

check_opendp_summary <- function(summary, call = caller_env()) {
  twice <- unique(summary$column[duplicated(summary$column)])
  if (length(twice)) {
    parts <- shorten_list(summary$aggregate[summary$column %in% twice])
    stop_classed("file", c("A column must be a single number, but {.field {twice}} {?is/are} computed from {parts}: only their ratio is in the table.",
                           i = "Ask for the sum and the length as separate columns."), call = call)
  }
  strange <- !summary$aggregate %in% c("Frame Length", "Length", "Count", "Sum") | !summary$distribution %in% opendp_distributions
  if (any(strange)) {
    shown <- paste0(summary$aggregate, " (", summary$distribution, ") in ", summary$column)[strange]
    stop_classed("file", c("{.arg file} must have counts and sums with Laplace or Gaussian noise, but has others, which are not understood.",
                           x = "{shorten_list(shown)}."), call = call)
  }
}

opendp_distributions <- as.vector(outer(c("Integer", "Float"), c("Laplace", "Gaussian"), paste))

# levels of each variable of the groups
opendp_keys <- function(table, groups, levels, call = caller_env()) {
  missing <- groups[vapply(groups, function(g) anyNA(table[[g]]), TRUE)]
  if (length(missing)) {
    stop_classed("file", c("Every row of {.arg table} must have a group, but {.field {missing}} {?is/are} missing in some.",
                           i = "Give them a separate level."), call = call)
  }
  twice <- which(duplicated(table[groups]))
  if (length(groups) && length(twice)) {
    stop_classed("file", "{.arg table} must have one row for each group, but the {.field {groups}} in {rows_text(twice)} had a row before.", call = call)
  }
  if (is.null(levels)) return(lapply(stats::setNames(nm = groups), function(g) unique(as.character(table[[g]]))))
  check_levels(levels, groups, call)[groups]
}

# value, statistic and mechanism of a column
opendp_column <- function(row, table, keys, bounds, listed, call = caller_env()) {
  counts <- row$aggregate != "Sum"
  groups <- names(keys)
  value <- text_numbers(as.character(table[[row$column]]), row$column, call)
  cells <- if (length(groups)) stat_counts(stats::reformulate(paste(format_name(groups), collapse = ":")), keys)
  statistic <- if (counts) cells %||% stat_size() else opendp_sums(row$column, keys, bounds, call)
  if (length(groups)) names(value) <- paste0(if (!counts) paste0(row$column, ":"), row_components(cells, table, NULL, call))
  scale <- text_numbers(as.character(row$scale), "scale", call)
  whole <- counts && startsWith(row$distribution, "Integer")
  gaussian <- endsWith(row$distribution, "Gaussian")
  mechanism <- if (scale == 0) mech_exact() else if (gaussian) (if (whole) mech_discrete_gaussian else mech_gaussian)(sd = scale) else
    (if (whole) mech_discrete_laplace else mech_laplace)(scale = scale)
  threshold <- if ("threshold" %in% names(row) && !is.na(row$threshold)) text_numbers(as.character(row$threshold), "threshold", call)
  if (!is.null(threshold)) {
    # larger than the threshold, of whole numbers the next one
    mechanism <- published(mechanism, threshold = threshold + whole, listed = listed)
    if (listed && counts) value <- opendp_hidden(value, statistic)
  }
  list(value = value, statistic = statistic, mechanism = mechanism)
}

opendp_sums <- function(column, keys, bounds, call) {
  if (length(keys) > 1L) stop_classed("file", "Sums must be grouped by one variable, but {.field {column}} is grouped by {.field {names(keys)}}.", call = call)
  if (!column %in% names(bounds)) {
    stop_classed("argument", "{.arg bounds} must have an entry for {.field {column}}, the limits that its values were clamped to before they were summed.", call = call)
  }
  sums <- stat_sums(stats::reformulate(format_name(column)), bounds[column])
  if (length(keys)) stat_by(sums, keys) else sums
}
