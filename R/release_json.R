#' Write and read a release as JSON
#'
#' The file holds public facts only, doubles with 17 significant digits, so that
#' reading gives back the same bits. It is written to a temporary file beside
#' its place and then renamed: it is whole or absent. It carries a checksum of what
#' it says, so that a number that was changed on the way is noticed; the layout
#' is free.
#'
#' @param release A release.
#' @param path The file's name. An existing file is replaced.
#' @return `write_release()` returns the path, invisibly; `read_release()` a
#'   release.
#' @section Errors: `noiseaware_error_file`: no such file, too large (more than
#'   64 MB), not JSON, another schema version, a field that is missing, not known, or
#'   out of range, contents that are not those that were written, more than the limits below. A file that fails is not used in part.
#' @section Limits: Reading takes a time in proportion to the size of the file, whatever it says: a
#'   statistic has at most 2,000 variables and 2,000 terms in a formula of at most 100,000
#'   bytes, and a statistic with more than 10,000 components is refused before they are made if the file has fewer values.
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' rel <- as_release(c(12.1, -3.4, 8.8, -2.5, 5.9), st, mech_laplace(epsilon = 1), n = 50)
#' path <- tempfile(fileext = ".json")
#' write_release(rel, path)
#' identical(read_release(path)$value, rel$value)
#' @export
write_release <- function(release, path) {
  check_given()
  check_release(release)
  check_path(path)
  if (!dir.exists(dirname(path))) stop_classed("file", "Cannot write {.file {path}}: there is no directory {.file {dirname(path)}}.")
  if (dir.exists(path)) stop_classed("file", "Cannot write {.file {path}}: it is a directory.")
  write_whole(paste0(release_json(release), "\n"), path)
  invisible(path)
}

# a file that is whole or absent
write_whole <- function(text, path, call = caller_env()) {
  partial <- tempfile("partial-", tmpdir = dirname(path))
  on.exit(unlink(partial))
  bytes <- charToRaw(text)
  written <- tryCatch({
    # a full disk raises no error, or a warning as the file is closed
    suppressWarnings(writeBin(bytes, partial))
    file.size(partial) == length(bytes) && suppressWarnings(file.rename(partial, path))
  }, error = function(e) FALSE)
  if (!isTRUE(written)) {
    stop_classed("file", c("Cannot write {.file {path}}.", i = "Is the directory writable, and is there space left?"), call = call)
  }
}

#' @rdname write_release
#' @export
read_release <- function(path) {
  check_given()
  check_path(path)
  if (dir.exists(path)) stop_classed("file", "{.file {path}} must be a file, but is a directory.")
  if (!file.exists(path)) stop_classed("file", "There is no file {.file {path}}.")
  size <- file.size(path)
  if (size > largest_file) {
    stop_classed("file", "{.file {path}} must have at most 64 MB to be a release, but has {round(size / 2^20)} MB.")
  }
  if (size == 0) stop_classed("file", "{.file {path}} must be a JSON file, but is empty.")
  bytes <- read_bytes(path, size)
  if (is.null(bytes)) stop_classed("file", "Cannot read {.file {path}}; may you read it?")
  parsed <- parse_bytes(bytes)
  if (is.null(parsed)) stop_classed("file", "{.file {path}} must be a JSON file, but cannot be parsed: cut short or damaged?")
  release_from_list(parsed, path)
}

# The file as it is, never more than its size: by readLines() a small compressed
# file could grow without limit.
read_bytes <- function(path, size) {
  tryCatch({
    connection <- file(normalizePath(path), "rb", raw = TRUE)
    on.exit(close(connection))
    readBin(connection, "raw", size)
  }, error = function(e) NULL, warning = function(w) NULL)
}

# NULL if it is not JSON
parse_bytes <- function(bytes) {
  if (any(bytes == 0L)) return(NULL)
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  if (!validUTF8(text)) return(NULL)
  tryCatch(jsonlite::parse_json(text), error = function(e) NULL, warning = function(w) NULL)
}

largest_file <- 64 * 2^20
schema_format <- "noiseaware release"
schema_version <- 1L

check_path <- function(path, call = caller_env()) {
  # R warns of what no system takes for a path
  if (!checkmate::test_string(path, min.chars = 1L) || nchar(path, "bytes") > 4000L) stop_argument("path", "the name of a file", describe(path), "file", call)
}

# ---- writing ---------------------------------------------------------------

# 17 significant digits identify a double; a JSON reader takes -0 for the integer
exact_text <- function(x) {
  text <- sprintf("%.17g", x)
  text[x == 0 & 1 / x < 0] <- "-0.0"
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

# JSON texts; what needs no escape is not sent through toJSON(), which is slow
quoted <- function(x) {
  text <- paste0("\"", x, "\"")
  odd <- grepl("[^ !#-.0-\\[\\]-~]", x, perl = TRUE)
  text[odd] <- vapply(x[odd], function(k) as.character(jsonlite::toJSON(k, auto_unbox = TRUE)), "")
  text
}

release_json <- function(release) {
  content <- list(
    format = schema_format, version = schema_version,
    n = exact_numbers(release$n),
    neighbours = release$neighbours,
    missing = release$missing,
    noise = release$noise,
    granularity = if (release$noise == "entropy") exact_numbers(one_if_same(release$granularity)),
    statistic = each_part(release$statistic, statistic_json),
    mechanism = each_part(release$mechanism, mechanism_json),
    value = exact_numbers(release$value)
  )
  content <- content[!vapply(content, is.null, TRUE)]
  content$checksum <- checksum(render_json(content))
  render_json(content)
}

render_json <- function(content) jsonlite::toJSON(content, auto_unbox = TRUE, pretty = TRUE, json_verbatim = TRUE)

# MD5: against accidents, not against forgers
checksum <- function(text) {
  path <- tempfile("checksum-")
  on.exit(unlink(path))
  writeBin(charToRaw(enc2utf8(text)), path)
  unname(tools::md5sum(path))
}

one_if_same <- function(x) if (all(x == x[[1L]])) x[[1L]] else x

# one, or each of a named list
each_part <- function(x, f) if (is.list(x) && !is.object(x)) lapply(x, f) else f(x)

statistic_json <- function(statistic) UseMethod("statistic_json")

#' @export
statistic_json.stat_crossprod <- function(statistic) {
  columns <- statistic$columns
  bounds <- lapply(stats::setNames(nm = unique(columns$variable)), function(v) {
    at <- match(v, columns$variable)
    if (is.null(statistic$levels[[v]])) exact_numbers(c(columns$lower[at], columns$upper[at])) else statistic$levels[[v]]
  })
  list(name = "crossprod", formula = statistic$formula, bounds = bounds, rescale = statistic$rescale)
}

mechanism_json <- function(mechanism) {
  if (inherits(mechanism, "mech_custom")) {
    stop_classed("file", "A release with a custom noise density cannot be written as JSON; publish its value and the function's text.",
                 call = caller_env(3))
  }
  parameters <- unclass(mechanism)[setdiff(names(mechanism), c("name", "kernel"))]
  parameters <- parameters[!vapply(parameters, is.null, TRUE)]
  c(list(name = mechanism$name), lapply(parameters, exact_numbers))
}

# ---- reading: field by field, then through the constructors -------------------

release_from_list <- function(content, path, call = caller_env()) {
  refuse <- function(message) {
    message <- encodeString(shorten_text(message, 1000L)) # it may quote the file
    stop_classed("file", c("{.file {path}} is not a valid release.", x = "{message}"), call = call)
  }
  if (!is.list(content) || !identical(content[["format"]], schema_format)) {
    refuse(paste0("Its format must be \"", schema_format, "\"."))
  }
  version <- content[["version"]]
  if (!is_number(version) || version != schema_version) {
    refuse(paste0("Its version must be ", schema_version, "; was it written by another version of this package?"))
  }
  tryCatch(release_from_fields(content, refuse), error = function(e) {
    if (inherits(e, "noiseaware_error_file")) stop(e)
    # what the constructors refuse, and whatever else a hostile file may provoke
    refuse(if (inherits(e, "noiseaware_error")) one_line(e) else "It cannot be made into a release.")
  })
}

# the text of one of our errors without bullets and line breaks
one_line <- function(condition) cli::ansi_strip(paste(c(condition$message, condition$body), collapse = " "))

release_from_fields <- function(content, refuse) {
  require_fields(content, c("format", "version", "n", "neighbours", "missing", "noise", "statistic", "mechanism", "value",
                            if (identical(content[["noise"]], "entropy")) "granularity", "checksum"), "the file", refuse)
  for (rule in c("neighbours", "missing")) {
    must <- if (rule == "neighbours") neighbours_rule else missing_rule
    if (!identical(content[[rule]], must)) refuse(paste0(rule, " must be \"", must, "\"."))
  }
  if (!checkmate::test_choice(content$noise, names(noise_source))) {
    refuse(paste0("noise must be one of ", paste(dQuote(names(noise_source), FALSE), collapse = ", "), "."))
  }
  if (!is_number(content$n)) refuse("n must be a number.")
  value <- json_numbers(content$value, "value", "object", refuse)
  statistic <- part_from_json(content$statistic, statistic_from_json, refuse, claim = value_claims(length(value), refuse))
  mechanism <- part_from_json(content$mechanism, mechanism_from_json, refuse)
  check_design(statistic, mechanism)
  check_value_names(names(value), design_parts(statistic, mechanism), content$n, refuse)
  result <- as_release(value, statistic, mechanism, content$n)
  result$noise <- content$noise
  if (content$noise == "entropy") result <- read_granularity(result, content, refuse)
  if (!checkmate::test_string(content$checksum)) refuse("checksum must be a text.")
  # what was read, written again, is what was written
  if (!grepl(paste0('"checksum": "', content$checksum, '"'), release_json(result), fixed = TRUE)) {
    refuse("Its contents are not those of its checksum: it was changed after it was written.")
  }
  result
}

# Too many for the messages of as_release(), which name them.
check_value_names <- function(names, parts, n, refuse) {
  if (length(names) <= few_values) return(invisible())
  sizes <- vapply(parts, function(p) value_size(p$statistic, n), 0)
  if (sum(sizes) != length(names)) {
    refuse(sprintf("value must have a number for each component of the statistic, %s, but has %d.", format_number(sum(sizes), 15L), length(names)))
  }
  components <- unlist(lapply(parts, function(p) part_components(p$statistic, n, p$name)))
  if (anyDuplicated(names) || !setequal(names, components)) refuse("value must have the names of the statistic's components, each once.")
}

read_granularity <- function(result, content, refuse) {
  unit <- json_numbers(content$granularity, "granularity", c("number", "object"), refuse)
  if (!is.null(names(unit))) {
    if (!setequal(names(unit), names(result$value)) || anyDuplicated(names(unit))) refuse("granularity must have the names of the values.")
    unit <- unit[names(result$value)]
  }
  result <- set_granularity(result, unit)
  if (is.character(result)) refuse(result)
  result
}

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
json_numbers <- function(x, where, shapes, refuse) {
  shape <- if (!is.list(x)) "number" else if (is.null(names(x))) "array" else "object"
  numbers <- length(x) > 0L && all(vapply(x, is_number, TRUE))
  if (!numbers || !shape %in% shapes) {
    named <- c(number = "a finite number", array = "an array of finite numbers", object = "an object of finite numbers with their names")
    refuse(paste0(where, " must be ", paste(named[shapes], collapse = ", or "), "."))
  }
  vapply(x, as.double, 0)
}

# one object with a name, or an object of such objects
part_from_json <- function(x, f, refuse, ...) {
  several <- is.list(x) && length(x) > 0L && !is.null(names(x)) && !checkmate::test_string(x[["name"]])
  if (several) lapply(x, f, refuse = refuse, ...) else f(x, refuse, ...)
}

# A few bytes can name millions of components: twenty variables with two levels,
# crossed. So each statistic claims its components from the values in the file
# before anything is made of them; a few are made anyway, so that the
# constructors can say what is wrong.
value_claims <- function(values, refuse) {
  claimed <- 0
  function(count) {
    claimed <<- claimed + count
    if (claimed > max(values, few_values)) {
      refuse(sprintf("value must have a number for each component of the statistic, %s or more, but has %d.", format_number(claimed, 15L), values))
    }
  }
}

few_values <- 1e4

# Readers of the statistics, by name: each checks its fields, claims as many values as
# it has components (or a lower bound of that), and calls the constructor.
statistic_readers <- function() {
  list(crossprod = stat_crossprod_from_json, moments4 = stat_moments4_from_json, sums = stat_sums_from_json, counts = stat_counts_from_json, records = stat_records_from_json,
       objective = stat_objective_from_json)
}

statistic_from_json <- function(x, refuse, claim) {
  readers <- statistic_readers()
  name <- if (is.list(x)) x[["name"]]
  if (!checkmate::test_choice(name, names(readers))) {
    refuse(paste0("The statistic must be one that this package knows: ", paste(dQuote(names(readers), FALSE), collapse = ", "), "."))
  }
  readers[[name]](x, refuse, claim)
}

stat_crossprod_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", "rescale"), "statistic", refuse)
  bounds <- json_bounds(x$bounds, refuse)
  columns <- json_columns(bounds)
  # products of different variables, each column, and the squares of numbers
  claim((sum(columns)^2 - sum(columns^2)) / 2 + sum(columns) + sum(!vapply(bounds, is.character, TRUE)))
  stat_crossprod(json_formula(x$formula, refuse), bounds, rescale = x$rescale)
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
json_formula <- function(text, refuse) {
  if (is.character(text) && nchar(text, "bytes")[1L] > largest_formula) {
    refuse(paste("The statistic's formula must have at most", format(largest_formula, scientific = FALSE), "bytes."))
  }
  parsed <- if (checkmate::test_string(text)) tryCatch(str2lang(text), error = function(e) NULL)
  if (!is.call(parsed) || !identical(parsed[[1L]], quote(`~`))) refuse("The statistic's formula must be a text such as \"y ~ x\".")
  structure(parsed, class = "formula", .Environment = baseenv())
}

mechanism_from_json <- function(x, refuse) {
  constructors <- list(laplace = mech_laplace, gaussian = mech_gaussian, discrete_laplace = mech_discrete_laplace,
                       discrete_gaussian = mech_discrete_gaussian, randomized_response = mech_randomized_response,
                       objective = mech_objective)
  name <- if (is.list(x)) x[["name"]]
  if (!checkmate::test_choice(name, names(constructors))) {
    refuse(paste0("The mechanism must be one that this package knows: ", paste(dQuote(names(constructors), FALSE), collapse = ", "), "."))
  }
  constructor <- constructors[[name]]
  given <- setdiff(names(x), "name")
  require_fields(x, c("name", intersect(given, names(formals(constructor)))), "mechanism", refuse)
  parameters <- lapply(stats::setNames(nm = given), function(p) {
    # only a noise scale may differ between components
    shapes <- if (p %in% c("scale", "sd")) c("number", "array", "object") else "number"
    json_numbers(x[[p]], paste("The mechanism's", p), shapes, refuse)
  })
  do.call(constructor, parameters)
}
