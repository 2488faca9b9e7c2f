#' A statistic of your own, written in R
#'
#' Totals of any function of a record. You declare how far one record can move them.
#'
#' @param fun `function(records)`: takes the matrix of all n records, with named
#'   columns, and returns the n x d matrix of what each record contributes to
#'   the d totals. It must treat each record separately, independently of the other records and their order, and it must be bounded: clamp inside it.
#' @param names Names of the d components.
#' @param sensitivity `c(L1 = , L2 = )` or one number for both: the largest
#'   change of the totals when one record is replaced. Or `list(replace = , add_remove = )` of these, to declare the sensitivity also, or only, when one record
#'   is added or removed. The latter is the largest norm of a row that `fun` returns; twice this norm bounds the change when one record is replaced. You are
#'   responsible for these numbers: they are not checked.
#' @param bounds Named list of the records' variables and their public bounds.
#'
#' @details The function is kept without its source references and attributes, and without its environment, so that a release cannot carry data along. It may
#'   use R's own functions and `package::function`, and must otherwise be self-contained. A function that uses variables from an enclosing function is an error.
#'   Such a release cannot be written as JSON; publish the numbers and the function's text, and read them back with [as_release()].
#'
#'   **One record at a time.** No sensitivity to one replaced record can be declared for `x - mean(x)` or `rank(x)`. Such functions are detected and lead to an
#'   error. This function evaluates `fun` on records made up from the bounds, together and one by one. [release()] and [simulate_release()] evaluate it on the
#'   records themselves, in another order and in two groups. A function that mixes records only in rare cases can still escape detection.
#'
#'   **Messages** from the function are not passed on, because they may quote confidential records: errors, warnings and messages are replaced by ones without a
#'   value.
#'
#' @return A statistic: an object of class `stat_custom`.
#' @section Errors: `noiseaware_error_custom`: not self-contained, fails, mixes records, or
#'   returns anything other than finite numbers of the right shape; `noiseaware_error_bounds`.
#' @family statistics of numbers
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
    stop_argument("names", "different names for the components", describe(names), "custom")
  }
  sensitivity <- declared_sensitivity(sensitivity)
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
  check_made_up(statistic)
  statistic
}

# list of replace and, where it was declared, add_remove, with a value for each norm
declared_sensitivity <- function(sensitivity, call = caller_env()) {
  by_kind <- is.list(sensitivity) && length(sensitivity) && checkmate::test_names(names(sensitivity), "unique") &&
    all(names(sensitivity) %in% neighbour_kinds)
  each <- lapply(if (by_kind) sensitivity else list(replace = sensitivity), function(value) {
    ok <- is.numeric(value) && all(is.finite(value)) && all(value > 0) &&
      (length(value) == 1L || (length(value) == 2L && setequal(names(value), c("L1", "L2"))))
    if (!ok) stop_argument("sensitivity", "a positive number, c(L1 = , L2 = ), or list(replace = , add_remove = ) of these", describe(value), "custom", call)
    if (length(value) == 1L) c(L1 = unname(value), L2 = unname(value)) else value[c("L1", "L2")]
  })
  each$replace <- each$replace %||% (2 * each$add_remove)
  each[neighbour_kinds[neighbour_kinds %in% names(each)]]
}

# The function on records whose variables are at their bounds or halfway: all together,
# in reverse, and one by one.
check_made_up <- function(statistic, call = caller_env()) {
  columns <- statistic$columns
  level <- outer(0:8, seq_len(nrow(columns)), function(i, j) (i + i %/% 3 * j) %% 3)
  range <- rbind(columns$lower, columns$lower / 2 + columns$upper / 2, columns$upper)
  records <- matrix(range[cbind(as.vector(level) + 1, as.vector(col(level)))], nrow(level))
  fun <- statistic_spec(statistic)$fun
  together <- fun(records)
  alone <- do.call(rbind, lapply(seq_len(nrow(records)), function(i) fun(records[i, , drop = FALSE])))
  reversed <- rev(seq_len(nrow(records)))
  if (!same_rows(together, alone) || !same_rows(together[reversed, , drop = FALSE], fun(records[reversed, , drop = FALSE]))) refuse_mixing(call)
}

#' @export
statistic_fields.stat_custom <- function(statistic) list()

#' @export
sensitivity.stat_custom <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  check_neighbours(statistic, neighbours)
  statistic$sensitivity[[match_neighbours(neighbours)]][[match_norm(norm)]]
}

#' @export
neighbours_fault.stat_custom <- function(statistic, neighbours) {
  if (is.null(statistic$sensitivity[[neighbours]])) {
    c("The statistic must declare how far one record added or removed can move the totals.",
      i = "Use {.code sensitivity = list(replace = , add_remove = )} in {.fn stat_custom}.")
  }
}

#' @export
variable_kinds.stat_custom <- function(x) "number"

#' @export
describe_statistic.stat_custom <- function(statistic) "a custom function of the records"

#' @export
statistic_json.stat_custom <- function(statistic) {
  stop_classed("file", "A release of a custom statistic cannot be written as JSON; publish its value and the function's text.",
               call = caller_env())
}
