# What all statistics share. A statistic is a list of public facts, without
# environments or calls that could carry data:
#   name        of the C plug-in
#   columns     data frame of the numeric columns a record has: name, lower,
#               upper, variable (the data's variable it comes from), level
#   levels      named list: declared levels of each factor
#   components  names of the totals
# and what the plug-in needs. Methods: statistic_fields(), sensitivity().

new_statistic <- function(name, columns, levels, components, ..., class) {
  structure(list(name = name, columns = columns, levels = levels, components = components, ...),
            class = c(class, "noiseaware_statistic"))
}

# numeric vectors for the C plug-in
statistic_fields <- function(statistic) UseMethod("statistic_fields")

statistic_spec <- function(statistic) {
  list(name = statistic$name, fields = statistic_fields(statistic))
}

# Numeric n x q matrix of a data frame's records, factors expanded with their
# declared levels. No value is dropped or guessed; errors name variables and
# rows, never values.
record_matrix <- function(data, columns, levels, call = caller_env()) {
  if (!is.data.frame(data)) stop_argument("data", "a data frame", describe(data), "data", call)
  if (nrow(data) == 0L) stop_classed("data", "{.arg data} must have at least one row, but has none.", call = call)
  variables <- unique(columns$variable)
  absent <- setdiff(variables, names(data))
  if (length(absent)) {
    stop_classed("data", c("{.arg data} must have every variable of the statistic.",
                           x = "Missing: {.var {absent}}."), call = call)
  }
  missing_rows <- lapply(data[variables], function(v) which(is.na(v)))
  bad <- lengths(missing_rows) > 0L
  if (any(bad)) {
    lines <- vapply(variables[bad], function(v) missing_line(v, missing_rows[[v]]), "")
    names(lines) <- rep("x", length(lines))
    stop_classed("missing", c("{.arg data} must have no missing value in the released variables.", lines,
                              i = "Decide what a missing value stands for before the release."), call = call)
  }
  x <- matrix(0, nrow(data), nrow(columns), dimnames = list(NULL, columns$name))
  for (v in variables) {
    at <- which(columns$variable == v)
    if (is.null(levels[[v]])) {
      if (!is.numeric(data[[v]]) && !is.logical(data[[v]])) {
        stop_classed("data", "{.arg data} must have numbers in {.var {v}}, but they are of class {.cls {class(data[[v]])[1]}}.",
                     call = call)
      }
      x[, at] <- as.double(data[[v]])
    } else {
      index <- match(as.character(data[[v]]), levels[[v]])
      if (anyNA(index)) {
        stop_classed("levels", c("{.arg data} must have only the declared levels in {.var {v}}.",
                                 x = "{sum(is.na(index))} row{?s} {?has/have} another one."), call = call)
      }
      for (k in seq_along(at)) x[, at[k]] <- as.double(index == k + 1L)
    }
  }
  x
}

missing_line <- function(variable, rows) {
  shown <- paste(utils::head(rows, 5L), collapse = ", ")
  if (length(rows) > 5L) shown <- paste0(shown, ", ...")
  cli::format_inline("{.var {variable}}: {length(rows)} missing (row{cli::qty(length(rows))}{?s} {shown}).")
}

# A formula as text, so that no environment stays with it.
formula_text <- function(formula) paste(deparse(formula, width.cutoff = 500L), collapse = " ")

text_formula <- function(text) stats::as.formula(text, env = baseenv())

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

format_number <- function(x, digits = 5) {
  vapply(x, function(v) format(v, digits = digits, trim = TRUE), "")
}

shorten_list <- function(x, most = 12L) {
  if (length(x) > most) x <- c(utils::head(x, most - 1L), "...")
  paste(x, collapse = ", ")
}
