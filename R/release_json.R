#' Write and read a release as JSON
#'
#' The file holds public facts only, doubles with 17 significant digits, so that
#' reading gives back the same bits. It is written to a temporary file beside
#' its place and then renamed: it is whole or absent.
#'
#' @param release A release.
#' @param path The file's name. An existing file is replaced.
#' @return `write_release()` returns the path, invisibly; `read_release()` a
#'   release.
#' @section Errors: `noiseaware_error_file`: no such file, too large (more than
#'   64 MB), not JSON, another schema version, a field that is missing, not known, or
#'   out of range. A file that fails is not used in part.
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' rel <- as_release(c(12.1, -3.4, 8.8, -2.5, 5.9), st, mech_laplace(epsilon = 1), n = 50)
#' path <- tempfile(fileext = ".json")
#' write_release(rel, path)
#' identical(read_release(path)$value, rel$value)
#' @export
write_release <- function(release, path) {
  check_release(release)
  check_path(path)
  partial <- tempfile(paste0(basename(path), "-"), tmpdir = dirname(path))
  on.exit(unlink(partial))
  text <- release_json(release)
  written <- tryCatch({
    writeLines(text, partial, useBytes = TRUE)
    file.rename(partial, path)
  }, error = function(e) FALSE, warning = function(w) FALSE)
  if (!isTRUE(written)) stop_classed("file", "Cannot write {.file {path}}.")
  invisible(path)
}

#' @rdname write_release
#' @export
read_release <- function(path) {
  check_path(path)
  if (!file.exists(path) || dir.exists(path)) stop_classed("file", "There is no file {.file {path}}.")
  if (file.size(path) > largest_file) {
    stop_classed("file", "{.file {path}} must have at most 64 MB to be a release, but has {round(file.size(path) / 2^20)} MB.")
  }
  text <- tryCatch(paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n"),
                   error = function(e) NULL, warning = function(w) NULL)
  parsed <- if (!is.null(text) && validUTF8(text)) {
    tryCatch(jsonlite::parse_json(text), error = function(e) NULL, warning = function(w) NULL)
  }
  if (is.null(parsed)) stop_classed("file", "{.file {path}} must be a JSON file, but cannot be parsed: cut short or damaged?")
  release_from_list(parsed, path)
}

largest_file <- 64 * 2^20
schema_format <- "noiseaware release"
schema_version <- 1L

check_path <- function(path, call = caller_env()) {
  if (!checkmate::test_string(path, min.chars = 1L)) stop_argument("path", "the name of a file", describe(path), "file", call)
}

# ---- writing ---------------------------------------------------------------

# 17 significant digits identify a double
exact_numbers <- function(x) {
  structure(paste0(if (length(x) != 1L) "[", paste(sprintf("%.17g", x), collapse = ", "), if (length(x) != 1L) "]"),
            class = "json")
}

# a named vector as an object: the names are always there
exact_object <- function(x) {
  keys <- vapply(names(x), function(k) as.character(jsonlite::toJSON(k, auto_unbox = TRUE)), "")
  structure(paste0("{", paste0(keys, ": ", sprintf("%.17g", x), collapse = ", "), "}"), class = "json")
}

release_json <- function(release) {
  content <- list(
    format = schema_format, version = schema_version,
    n = exact_numbers(release$n),
    neighbours = "one record replaced",
    noise = release$noise,
    statistic = statistic_json(release$statistic),
    mechanism = mechanism_json(release$mechanism),
    value = exact_object(release$value)
  )
  jsonlite::toJSON(content, auto_unbox = TRUE, pretty = TRUE, json_verbatim = TRUE)
}

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
  parameters <- unclass(mechanism)[setdiff(names(mechanism), c("name", "kernel"))]
  parameters <- parameters[!vapply(parameters, is.null, TRUE)]
  c(list(name = mechanism$name), lapply(parameters, exact_numbers))
}

# ---- reading: field by field, then through the constructors -------------------

release_from_list <- function(content, path, call = caller_env()) {
  refuse <- function(message) {
    stop_classed("file", c("{.file {path}} is not a valid release.", x = "{message}"), call = call)
  }
  if (!is.list(content) || !identical(content$format, schema_format)) {
    refuse(paste0("Its format must be \"", schema_format, "\"."))
  }
  if (!identical(as.numeric_or_na(content$version), as.double(schema_version))) {
    refuse(paste0("Its version must be ", schema_version, "; another version of the package wrote it?"))
  }
  require_fields(content, c("format", "version", "n", "neighbours", "noise", "statistic", "mechanism", "value"),
                 "the file", refuse)
  if (!identical(content$neighbours, "one record replaced")) refuse("neighbours must be \"one record replaced\".")
  if (!checkmate::test_choice(content$noise, names(noise_source))) refuse("noise must say where the noise came from.")
  value <- json_numbers(content$value, "value", refuse)
  if (is.null(names(value))) refuse("value must name its components.")
  tryCatch({
    statistic <- statistic_from_json(content$statistic, refuse)
    mechanism <- mechanism_from_json(content$mechanism, refuse)
    result <- as_release(value, statistic, mechanism, json_numbers(content$n, "n", refuse))
  }, noiseaware_error_file = function(e) stop(e),
  noiseaware_error = function(e) refuse(gsub("\n", " ", cli::ansi_strip(rlang::cnd_message(e)))))
  result$noise <- content$noise
  result
}

as.numeric_or_na <- function(x) if (is.numeric(x) && length(x) == 1L) as.double(x) else NA_real_

require_fields <- function(x, fields, where, refuse) {
  if (!is.list(x) || is.null(names(x))) refuse(paste0(where, " must have named fields."))
  absent <- setdiff(fields, names(x))
  strange <- c(setdiff(names(x), fields), names(x)[duplicated(names(x))])
  if (length(absent)) refuse(paste0("Missing in ", where, ": ", paste(absent, collapse = ", "), "."))
  if (length(strange)) refuse(paste0("Not known in ", where, ": ", shorten_list(strange, 5L), "."))
}

json_numbers <- function(x, where, refuse) {
  ok <- length(x) > 0L && all(vapply(x, function(v) is.numeric(v) && length(v) == 1L && is.finite(v), TRUE))
  if (!ok) refuse(paste0(where, " must be finite numbers."))
  vapply(x, as.double, 0)
}

statistic_from_json <- function(x, refuse) {
  require_fields(x, c("name", "formula", "bounds", "rescale"), "statistic", refuse)
  if (!identical(x$name, "crossprod")) refuse("statistic: its name must be one that this package knows.")
  if (!checkmate::test_string(x$formula, max.chars = 1e5)) refuse("statistic: its formula must be a text.")
  formula <- tryCatch(json_formula(x$formula), error = function(e) NULL)
  if (is.null(formula)) refuse("statistic: its formula must be a formula.")
  if (!is.list(x$bounds) || is.null(names(x$bounds))) refuse("statistic: its bounds must be named.")
  bounds <- lapply(x$bounds, function(b) {
    if (length(b) && all(vapply(b, is.character, TRUE))) vapply(b, identity, "") else json_numbers(b, "bounds", refuse)
  })
  stat_crossprod(formula, bounds, rescale = x$rescale)
}

# parsed, never evaluated
json_formula <- function(text) {
  parsed <- str2lang(text)
  if (!is.call(parsed) || !identical(parsed[[1L]], quote(`~`))) return(NULL)
  structure(parsed, class = "formula", .Environment = baseenv())
}

mechanism_from_json <- function(x, refuse) {
  constructors <- list(laplace = mech_laplace, gaussian = mech_gaussian)
  if (!is.list(x) || !checkmate::test_choice(x$name, names(constructors))) {
    refuse("mechanism: its name must be one that this package knows.")
  }
  constructor <- constructors[[x$name]]
  given <- setdiff(names(x), "name")
  require_fields(x, c("name", intersect(given, names(formals(constructor)))), "mechanism", refuse)
  do.call(constructor, lapply(x[given], json_numbers, "mechanism", refuse))
}
