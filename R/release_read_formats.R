# One door to the readers of all formats.

#' Read a published release
#'
#' Reads files in the layouts of several projects, and of this package. The result is a release, ready for [sample_posterior()]. Input that is not understood
#' is an error; it is never skipped.
#'
#' @param file The name of a file. In some formats also a data frame or a list with its contents; the section of the format says so.
#' @param format The layout: `"noiseaware"` (a file of [write_release()]), `"opendp"`, `"opendp_table"`, `"marginals"`, `"census_nmf"`, `"census_gls"` or
#'   `"wikimedia"`. `NULL` guesses it from the names of columns, or from the fields of a JSON file. Give the format of a Parquet file, or of a
#'   table whose first row does not name its columns.
#' @param ... The format's arguments, by name, as its section below says. The format `"noiseaware"` has none.
#'
#' @return A release: an object of class `noiseaware_release`.
#' @section Errors: `noiseaware_error_file`: the file does not exist, is too large (more than 64 MB), or is not in the format; the message names missing columns
#'   or fields. A file of [write_release()] must also have a known schema version, match its checksum and stay within the limits stated in [write_release()]. If
#'   a file fails a check, no part of it is used. `noiseaware_error_argument`, `noiseaware_error_value`.
#' @seealso [as_release()] for numbers in other layouts; `vignette("opendp")`.
#' @family published numbers
#' @examples
#' read_release(system.file("examples", "birthwt.json", package = "noiseaware"))
#' @order 1
#' @export
read_release <- function(file, format = NULL, ...) {
  check_given()
  readers <- list(noiseaware = read_noiseaware, opendp = read_opendp, opendp_table = read_opendp_table, marginals = read_marginals,
                  census_nmf = read_census_nmf, census_gls = read_census_gls, wikimedia = read_wikimedia)
  guessed <- is.null(format)
  if (guessed) format <- guess_format(file)
  reader <- readers[[check_choice(format, "format", names(readers))]]
  # by this name, so that errors show the function that the user called
  read <- function(...) do.call("read_release", list(file, ...), quote = TRUE, envir = list2env(list(read_release = reader)))
  if (guessed && format == "noiseaware" && ...length()) read() # says what is wrong with a file that was not recognised
  check_argument_names(list(...), names(formals(reader))[-1L])
  read(...)
}

# a few columns of each table, enough to recognise it
format_columns <- list(opendp_table = c("column", "aggregate", "distribution", "scale"), census_nmf = c("geocode", "query_name", "value", "variance"),
                       census_gls = c("geocode", "query", "estimate", "std_dev"), wikimedia = c("country", "project", "page_id", "page_title"))

# A file that is not recognised is read as one of write_release(), whose reader says what is wrong.
guess_format <- function(file, call = caller_env()) {
  if (!is.list(file)) return(guess_file_format(file, call))
  found <- if (is.data.frame(file)) format_of_columns(names(file)) else "marginals"
  if (is.null(found)) {
    stop_classed("argument", c("{.arg format} must be given: {.arg file} has no columns by which it can be recognised.",
                               x = "It has {shorten_list(encodeString(names(file), quote = '\"'), 20L)}."), call = call)
  }
  found
}

guess_file_format <- function(path, call) {
  if (!checkmate::test_string(path, min.chars = 1L) || !file.exists(path) || dir.exists(path)) return("noiseaware")
  if (grepl("[.]parquet$", path)) stop_classed("argument", "{.arg format} must be given for a Parquet file.", call = call)
  bytes <- if (file.size(path) <= largest_file) read_bytes(path, file.size(path))
  if (length(bytes) == 0L || any(bytes == 0L)) return("noiseaware")
  text <- rawToChar(bytes)
  has <- function(field) grepl(paste0('"', field, '"'), text, fixed = TRUE, useBytes = TRUE)
  if (!grepl("^\\s*\\{", text, useBytes = TRUE)) {
    columns <- strsplit(sub("[\r\n].*", "", text, useBytes = TRUE), "[,|\t]", useBytes = TRUE)[[1L]]
    return(format_of_columns(gsub("^\xef\xbb\xbf|\"", "", columns, useBytes = TRUE)) %||% "noiseaware")
  }
  if (has(schema_format)) "noiseaware" else if (has("__function__") || has("ast")) "opendp" else if (has("marginals")) "marginals" else "noiseaware"
}

format_of_columns <- function(columns) {
  found <- names(format_columns)[vapply(format_columns, function(needs) all(needs %in% columns), TRUE)]
  if (length(found) == 1L) found
}
