#' A number that the OpenDP Library released
#'
#' OpenDP writes what it calls a measurement as JSON (`dp.serialize()`): a chain of a transformation, such
#' as a clamped sum or counts by category, and of noise. It has no values, so these are given.
#'
#' @param path The name of the JSON file.
#' @param value What the measurement released: a number, or the counts in the order of the categories.
#' @param variable What the variable shall be called.
#' @param n The public number of records; `NULL` if it is not known.
#' @param statistic What was released; `NULL` reads it from the file: `make_sum` of clamped values, or
#'   `make_count_by_categories`.
#'
#' @details
#' Noise: `laplace`, `gaussian` and `geometric`, by any of their names in the library's versions; discrete for counts of
#' integer type, and for sums the continuous noise of the same scale. Distances between data sets: the symmetric
#' one is of neighbours that differ by a record added or removed,
#' `change_one_distance()` and `hamming_distance()` by one replaced. Counts by category have one more, of records in none of the categories, unless
#' it was left out: its level is called `other`.
#'
#' OpenDP does not promise that its JSON stays the same between versions; what is not understood is refused: what is done to
#' the noisy result, such as a threshold (`make_laplace_threshold`) or bounds, with any `statistic`; other transformations unless `statistic` is given,
#' which vouches for them.
#' @return A release: an object of class `noiseaware_release`.
#' @section Errors: `noiseaware_error_file`, `noiseaware_error_argument`, `noiseaware_error_value`.
#' @references
#' Gaboardi, M., Hay, M. and Vadhan, S. (2020). A programming framework for OpenDP.
#' @examples
#' # a file made by hand in the layout of the library
#' path <- tempfile(fileext = ".json")
#' writeLines('{"__function__": "make_chain_mt", "__module__": "combinators", "__kwargs__": {
#'   "measurement1": {"__function__": "make_laplace", "__module__": "measurements",
#'     "__kwargs__": {"scale": 5.0}},
#'   "transformation0": {"__function__": "make_chain_tt", "__module__": "combinators", "__kwargs__": {
#'     "transformation1": {"__function__": "make_sum", "__module__": "transformations",
#'       "__kwargs__": {}},
#'     "transformation0": {"__function__": "make_clamp", "__module__": "transformations",
#'       "__kwargs__": {
#'       "input_metric": {"__function__": "symmetric_distance", "__module__": "metrics",
#'         "__kwargs__": {}},
#'       "bounds": {"__tuple__": [0.0, 10.0]}}}}}}}', path)
#' read_opendp(path, value = 421.7, variable = "visits", n = 90)
#' @export
read_opendp <- function(path, value, variable = "x", n = NULL, statistic = NULL) {
  check_given()
  check_path(path)
  check_variable(variable, "variable")
  json <- read_json(path)
  calls <- opendp_calls(json)
  named <- function(pattern) calls[grepl(pattern, vapply(calls, `[[`, "", "name"))]
  noise <- named(opendp_noise_name)
  if (length(noise) != 1L) {
    stop_classed("file", c("{.file {path}} must have noise added once, by {.code make_laplace}, {.code make_gaussian} or {.code make_geometric}.",
                           x = "It has {shorten_list(vapply(calls, `[[`, '', 'name'), 12L)}."))
  }
  check_opendp_steps(json, noise[[1L]], path)
  statistic <- statistic %||% opendp_statistic(named("^(make|then)_"), variable, path)
  check_statistic(statistic)
  replaced <- length(named("^(change_one|hamming)_distance$")) > 0L
  as_release(value, statistic, opendp_noise(noise[[1L]], statistic, path), n, neighbours = if (replaced) "replace" else "add_remove")
}

# a file of JSON as lists
read_json <- function(path, call = caller_env()) {
  if (!file.exists(path) || dir.exists(path)) stop_classed("file", "There is no file {.file {path}}.", call = call)
  size <- file.size(path)
  if (size > largest_file) stop_classed("file", "{.file {path}} must have at most 64 MB, but has {round(size / 2^20)} MB.", call = call)
  bytes <- read_bytes(path, size)
  parsed <- if (!is.null(bytes) && length(bytes)) parse_bytes(bytes)
  if (!is.list(parsed)) stop_classed("file", "{.file {path}} must be a JSON file of the OpenDP Library, but cannot be parsed: cut short or damaged?", call = call)
  parsed
}

# all constructors in the file with their arguments, outermost first; earlier versions called them "func" and "kwargs"
opendp_calls <- function(json) {
  calls <- list()
  todo <- list(json)
  while (length(todo)) {
    node <- todo[[1L]]
    todo <- todo[-1L]
    if (!is.list(node)) next
    name <- node[["__function__"]] %||% node[["func"]]
    if (checkmate::test_string(name)) calls <- c(calls, list(list(name = name, arguments = node[["__kwargs__"]] %||% node[["kwargs"]])))
    todo <- c(unname(node), todo)
  }
  calls
}

opendp_noise_name <- "^(make|then)_(base_)?(discrete_)?(laplace|gaussian|geometric)(_cks20|_linear)?$"
# steps that leave the records and their totals as they are
opendp_known <- "^make_(chain_[mt]t|clamp|.*_?sum(_.*)?|count_by_categories|select_column|split_(lines|records|dataframe)|(df_)?cast(_.*)?)$"
# what changes the guarantee that is stated, not what is published
opendp_conversion <- "^make_(fix_delta|approximate|zCDP_to_approxDP|pureDP_to_zCDP|pureDP_to_fixed_approxDP)$"

# Noise is the last step, or what is done to its result is not understood: a threshold, rounding, limits.
check_opendp_steps <- function(json, noise, path, call = caller_env()) {
  node <- json
  repeat {
    name <- node[["__function__"]] %||% node[["func"]]
    if (!checkmate::test_string(name)) break
    arguments <- node[["__kwargs__"]] %||% node[["kwargs"]]
    if (name == noise$name) break
    node <- if (name == "make_chain_mt") arguments[["measurement1"]] else if (grepl(opendp_conversion, name)) arguments[["measurement"]]
    if (!is.list(node)) break
  }
  if (!identical(name, noise$name)) {
    stop_classed("file", c("{.file {path}} must end with {.code {noise$name}}, but does something else with its result, which is not understood.",
                           x = "{.code {if (checkmate::test_string(name)) name else 'an unnamed step'}} is outside of it."), call = call)
  }
  limits <- noise$arguments[["bounds"]]
  if (!is.null(limits)) {
    stop_classed("file", c("{.file {path}} gives {.code {noise$name}} {.field bounds}, to which what it releases is cut; that is not read.",
                           i = "{.code as_release()} with {.code published(lower = , upper = )} describes it."), call = call)
  }
}

opendp_noise <- function(noise, statistic, path, call = caller_env()) {
  scale <- noise$arguments[["scale"]]
  if (!is_number(scale) || scale <= 0) stop_classed("file", "{.file {path}} must give {.code {noise$name}} a positive scale.", call = call)
  gaussian <- grepl("gaussian", noise$name)
  integers <- c("int", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "usize")
  # what clamps integers does not say that they are
  whole <- integer_valued(statistic) && (grepl("discrete|geometric", noise$name) || any(unlist(noise$arguments) %in% integers))
  if (gaussian) (if (whole) mech_discrete_gaussian else mech_gaussian)(sd = scale) else
    (if (whole) mech_discrete_laplace else mech_laplace)(scale = scale)
}

opendp_statistic <- function(calls, variable, path, call = caller_env()) {
  argument <- function(pattern, argument) {
    for (k in calls[grepl(pattern, vapply(calls, `[[`, "", "name"))]) if (!is.null(k$arguments[[argument]])) return(k$arguments[[argument]])
  }
  names <- vapply(calls, `[[`, "", "name")
  strange <- unique(names[!grepl(opendp_known, sub("^then", "make", names)) & !grepl(opendp_noise_name, names) & !grepl(opendp_conversion, names)])
  if (length(strange)) {
    stop_classed("file", c("{.arg statistic} must be given: {.file {path}} has {cli::qty(strange)}{?a step/steps} that {?is/are} not understood.",
                           x = "{.code {strange}}."),
                 call = call)
  }
  categories <- argument("count_by_categories$", "categories")
  if (!is.null(categories)) {
    levels <- vapply(categories, as.character, "")
    if (!isFALSE(argument("count_by_categories$", "null_category"))) levels <- c(levels, "other")
    return(stat_counts(stats::reformulate(format_name(variable)), stats::setNames(list(levels), variable)))
  }
  bounds <- argument("_clamp$|bounded_(int_|float_)?.*sum", "bounds")
  bounds <- unlist(if (is.list(bounds) && !is.null(bounds[["__tuple__"]])) bounds[["__tuple__"]] else bounds)
  if (any(grepl("_sum(_.*)?$", names)) && is.numeric(bounds) && length(bounds) == 2L) {
    return(stat_sums(stats::reformulate(format_name(variable)), stats::setNames(list(bounds), variable)))
  }
  stop_classed("file", c("{.arg statistic} must be given: what {.file {path}} releases is neither a sum of clamped values nor counts by category.",
                         x = "It has {shorten_list(names, 12L)}."), call = call)
}
