# Fields of JSON: checked when read, exact when written.

is_number <- function(x) is.numeric(x) && length(x) == 1L && is.finite(x)

require_fields <- function(x, fields, where, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse(paste0(where, " must be an object with named fields."))
  absent <- setdiff(fields, names(x))
  strange <- setdiff(names(x), fields)
  twice <- unique(names(x)[duplicated(names(x))])
  if (length(absent)) refuse(paste0("Missing in ", where, ": ", paste(absent, collapse = ", "), "."))
  if (length(strange)) refuse(paste0("Not known in ", where, ": ", shorten_list(strange, 5L), "."))
  if (length(twice)) refuse(paste0("More than once in ", where, ": ", paste(twice, collapse = ", "), "."))
}

# the numbers of a JSON number, array or object, whichever of them may stand there
# (`hidden`: or null)
json_numbers <- function(x, where, shapes, refuse, hidden = FALSE) {
  if (hidden && is.list(x)) x[vapply(x, is.null, TRUE)] <- NA_real_
  shape <- if (!is.list(x)) "number" else if (is.null(names(x))) "array" else "object"
  numbers <- length(x) > 0L && all(vapply(x, function(v) is_number(v) || (hidden && identical(v, NA_real_)), TRUE))
  if (!numbers || !shape %in% shapes) {
    named <- c(number = "a finite number", array = "an array of finite numbers", object = "an object of finite numbers with their names")
    refuse(paste0(where, " must be ", paste(named[shapes], collapse = ", or "), "."))
  }
  vapply(x, as.double, 0)
}

json_bounds <- function(x, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse("The statistic's bounds must be an object with an entry for each variable.")
  check_entries(x, refuse)
  Map(function(bound, variable) json_bound(bound, paste("The bounds of", variable), refuse), x, names(x))
}

check_entries <- function(x, refuse) {
  if (length(x) > most_terms) refuse(paste0("The statistic must have at most ", most_terms, " variables."))
}

# how many columns each variable has
json_columns <- function(bounds) vapply(bounds, function(b) if (is.character(b)) length(b) - 1 else 1, 0)

json_bound <- function(x, where, refuse) {
  levels <- is.list(x) && length(x) > 0L && is.null(names(x)) && all(vapply(x, checkmate::test_string, TRUE))
  numbers <- is.list(x) && length(x) == 2L && is.null(names(x)) && all(vapply(x, is_number, TRUE))
  if (!levels && !numbers) refuse(paste(where, "must be an array of two finite numbers, or of levels."))
  unlist(x)
}

largest_formula <- 1e5

# parsed, never evaluated
# `smooth`: it has one, whose variables may be functions by name as well
json_formula <- function(text, refuse, smooth = FALSE) {
  if (is.character(text) && nchar(text, "bytes")[1L] > largest_formula) {
    refuse(paste("The statistic's formula must have at most", format(largest_formula, scientific = FALSE), "bytes."))
  }
  parsed <- if (checkmate::test_string(text)) tryCatch(str2lang(text), error = function(e) NULL)
  if (!is.call(parsed) || !identical(parsed[[1L]], quote(`~`))) refuse("The statistic's formula must be a string such as \"y ~ x\".")
  formula <- structure(parsed, class = "formula", .Environment = baseenv())
  named <- if (smooth) read_smooth(formula)$formula else functions_as_names(formula)
  if (!identical(named, if (smooth) text else formula)) refuse("The statistic's formula must have functions by their names, which `functions` explains, not as calls.")
  formula
}

# 17 significant digits identify a double; a JSON reader turns -0 into the integer
exact_text <- function(x) {
  text <- sprintf("%.17g", x)
  text[which(x == 0 & 1 / x < 0)] <- "-0.0"
  text[is.na(x)] <- "null" # hidden
  unname(text)
}

# a number, an array, or with names an object
exact_numbers <- function(x) {
  text <- exact_text(x)
  if (!is.null(names(x))) {
    text <- paste0("{", paste0(quoted(names(x)), ": ", text, collapse = ", "), "}")
  } else if (length(x) != 1L) {
    text <- paste0("[", paste(text, collapse = ", "), "]")
  }
  structure(text, class = "json")
}

# of columns that are numbers
exact_bounds <- function(columns, levels = list()) {
  lapply(stats::setNames(nm = unique(columns$variable)), function(v) {
    at <- match(v, columns$variable)
    levels[[v]] %||% exact_numbers(c(columns$lower[at], columns$upper[at]))
  })
}

# JSON texts; what needs no escape is not sent through toJSON(), which is slow
quoted <- function(x) {
  text <- paste0("\"", x, "\"")
  odd <- grepl("[^ !#-.0-\\[\\]-~]", x, perl = TRUE)
  text[odd] <- vapply(x[odd], function(k) as.character(jsonlite::toJSON(k, auto_unbox = TRUE)), "")
  text
}

render_json <- function(content) jsonlite::toJSON(content, auto_unbox = TRUE, pretty = TRUE, json_verbatim = TRUE)
