#' A statistic of your own, written in R
#'
#' @param fun `function(records)`: takes the matrix of all n records, with named
#'   columns, and returns the n x d matrix of what each record contributes to
#'   the d totals. It must treat every record by itself, and it must be bounded:
#'   clamp inside it.
#' @param names Names of the d components.
#' @param sensitivity `c(L1 = , L2 = )` or one number for both: the largest
#'   change of the totals when one record is replaced. You answer for it: nothing
#'   checks it.
#' @param bounds Named list of the records' variables and their public bounds.
#'
#' @details The function is kept without its source references and attributes, and
#'   without the environment in which it was written, so that a release cannot carry data
#'   along: it may use R's own functions and `package::function`, and must be self-contained
#'   otherwise. A function that uses a variable of the function that it was written in is
#'   refused. Such a release cannot be written as JSON; publish the numbers and the
#'   function's text, and read them back with [as_release()].
#'
#' @return A statistic: an object of class `stat_custom`.
#' @section Errors: `noiseaware_error_custom`, `noiseaware_error_bounds`.
#' @examples
#' st <- stat_custom(function(records) cbind(over = records[, "x"] > 2), "over",
#'   sensitivity = 1, bounds = list(x = c(0, 10)))
#' sensitivity(st)
#' @export
stat_custom <- function(fun, names, sensitivity, bounds) {
  check_given()
  if (!is.function(fun) || is.primitive(fun) || !accepts_arguments(fun, 1L)) {
    stop_argument("fun", "a function of the matrix of records", describe(fun), "custom")
  }
  if (!checkmate::test_character(names, min.len = 1L, any.missing = FALSE, unique = TRUE, min.chars = 1L)) {
    stop_argument("names", "different names of the components", describe(names), "custom")
  }
  ok <- is.numeric(sensitivity) && all(is.finite(sensitivity)) && all(sensitivity > 0) &&
    (length(sensitivity) == 1L || setequal(names(sensitivity), c("L1", "L2")))
  if (!ok) stop_argument("sensitivity", "a positive number, or c(L1 = , L2 = )", describe(sensitivity), "custom")
  if (length(sensitivity) == 1L) sensitivity <- c(L1 = unname(sensitivity), L2 = unname(sensitivity))
  if (!is.list(bounds) || is.null(names(bounds))) {
    stop_argument("bounds", "a named list with an entry for each variable", describe(bounds), "bounds")
  }
  bounds <- check_bounds(bounds, names(bounds))
  if (any(vapply(bounds, is.character, TRUE))) {
    stop_classed("bounds", "{.arg bounds} must be numbers: a custom statistic has numeric variables.")
  }
  fun <- keep_alone(fun, "fun")
  statistic <- new_statistic("custom", "totals", columns = expand_columns(names(bounds), bounds), levels = list(),
                             components = names, fun = fun, sensitivity = sensitivity, class = "stat_custom")
  middle <- matrix(rep((statistic$columns$lower + statistic$columns$upper) / 2, each = 3), 3)
  statistic_spec(statistic)$fun(middle)
  statistic
}

#' @export
statistic_fields.stat_custom <- function(statistic) list()

custom_statistic_spec <- function(statistic) {
  variables <- statistic$columns$name
  components <- statistic$components
  fun <- statistic$fun
  list(name = "custom", columns = length(variables), size = length(components), fun = function(records) {
    colnames(records) <- variables
    value <- call_user(fun, "fun", records)
    if (is.atomic(value) && is.null(dim(value)) && length(value) && length(components) == 1L) value <- matrix(value, ncol = 1L)
    ok <- (is.numeric(value) || is.logical(value)) && identical(dim(value), c(nrow(records), length(components))) &&
      all(is.finite(value))
    if (!ok) stop_custom("fun", paste("finite numbers in a matrix of", nrow(records), "rows and", length(components), "columns"), value)
    storage.mode(value) <- "double"
    value
  })
}

#' @export
sensitivity.stat_custom <- function(statistic, norm = c("L1", "L2")) statistic$sensitivity[[match_norm(norm)]]

#' @export
describe_statistic.stat_custom <- function(statistic) "a custom function of the records"

#' @export
statistic_json.stat_custom <- function(statistic) {
  stop_classed("file", "A release of a custom statistic cannot be written as JSON; publish its value and the function's text.",
               call = caller_env(3))
}
