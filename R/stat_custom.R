#' A statistic of your own, written in R
#'
#' @param fun `function(records)`: takes the matrix of all n records, with named
#'   columns, and returns the n x d matrix of what each record contributes to
#'   the d totals. It must treat each record on its own, whatever the other records
#'   and their order, and it must be bounded: clamp inside it.
#' @param names Names of the d components.
#' @param sensitivity `c(L1 = , L2 = )` or one number for both: the largest
#'   change of the totals when one record is replaced. Or `list(replace = , add_remove = )` of these: also,
#'   or only, when one record is added or removed, which is the largest norm of a row of what `fun` returns; twice
#'   that bounds the change when one is replaced. You are responsible for it: nothing checks it.
#' @param bounds Named list of the records' variables and their public bounds.
#'
#' @details The function is kept without its source references and attributes, and
#'   without the environment in which it was written, so that a release cannot carry data
#'   along: it may use R's own functions and `package::function`, and must otherwise be
#'   self-contained. A function that uses a variable from the function in which it was written is
#'   refused. Such a release cannot be written as JSON; publish the numbers and the
#'   function's text, and read them back with [as_release()].
#'
#'   **One record at a time.** `x - mean(x)` or `rank(x)` has no sensitivity that could be
#'   declared for one replaced record. Such functions are refused: here, by what they return
#'   for records made up from the bounds, together and one by one; and again by
#'   [release()] and [simulate_release()], for the records themselves, in another order and
#'   in two groups. A function that mixes records only in rare cases can still escape.
#'
#'   **What the function says** about confidential records is not passed on: errors are
#'   replaced by one without a value, and so are warnings and messages.
#'
#' @return A statistic: an object of class `stat_custom`.
#' @section Errors: `noiseaware_error_custom`: not self-contained, fails, mixes records, or
#'   returns anything other than finite numbers of the right shape; `noiseaware_error_bounds`.
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

# Does the function return the same for confidential records that are in another order, in two groups?
check_unmixed <- function(evaluate, records, value, call) {
  group <- rev(seq.int(1L, nrow(records), by = 3L))
  for (rows in list(group, seq_len(nrow(records))[-group])) {
    if (length(rows) && !same_rows(value[rows, , drop = FALSE], evaluate(records[rows, , drop = FALSE]))) refuse_mixing(call)
  }
}

# but for the last digits, which matrix products may round differently
same_rows <- function(a, b) {
  size <- apply(abs(a), 2L, max)
  all(abs(a - b) <= 1e-8 * rep(size, each = nrow(a)))
}

refuse_mixing <- function(call) {
  stop_classed("custom", c("{.fn fun} must treat each record on its own, but what it returns for a record depends on the other records, their order, or chance.",
                           i = "One replaced record could then move the totals by more than the declared sensitivity."), call = call)
}

#' @export
statistic_fields.stat_custom <- function(statistic) list()

# With `confidential`, for records whose values no condition may carry.
custom_statistic_spec <- function(statistic, confidential = FALSE, call = caller_env()) {
  variables <- statistic$columns$name
  components <- statistic$components
  fun <- statistic$fun
  call_fun <- if (confidential) function(records) call_in_confidence(fun, "fun", call, records) else function(records) call_user(fun, "fun", records)
  evaluate <- function(records) {
    value <- call_fun(records)
    if (is.atomic(value) && is.null(dim(value)) && length(value) && length(components) == 1L) value <- matrix(value, ncol = 1L)
    ok <- (is.numeric(value) || is.logical(value)) && identical(dim(value), c(nrow(records), length(components))) &&
      all(is.finite(value))
    if (!ok) {
      must <- "finite numbers in a matrix of {nrow(records)} row{?s} and {length(components)} column{?s}"
      stop_classed("custom", paste0("{.fn fun} must return ", must, ", but returned {describe_shape(value)}."), call = call)
    }
    storage.mode(value) <- "double"
    value
  }
  list(name = "custom", columns = length(variables), size = length(components), fun = function(records) {
    colnames(records) <- variables
    value <- evaluate(records)
    if (confidential) check_unmixed(evaluate, records, value, call)
    value
  })
}

# A user's function of confidential records: its conditions may quote them, so nothing of
# what they say is passed on.
call_in_confidence <- function(f, name, call, ...) {
  spoke <- FALSE
  hush <- function(restart) function(condition) {
    spoke <<- TRUE
    invokeRestart(restart)
  }
  failed <- FALSE
  value <- withCallingHandlers(tryCatch(f(...), error = function(e) failed <<- TRUE),
                               warning = hush("muffleWarning"), message = hush("muffleMessage"))
  advice <- "Try it on made-up records."
  if (failed) {
    stop_classed("custom", c("The function {.fn {name}} failed; its message is not shown, because it may quote records.", i = advice), call = call)
  }
  if (spoke) {
    cli::cli_warn(c("The function {.fn {name}} gave a warning or a message, which is not shown, because it may quote records.", i = advice),
                  class = c("noiseaware_warning_custom", "noiseaware_warning"))
  }
  value
}

#' @export
sensitivity.stat_custom <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  check_neighbours(statistic, neighbours)
  statistic$sensitivity[[match_neighbours(neighbours)]][[match_norm(norm)]]
}

#' @export
neighbours_fault.stat_custom <- function(statistic, neighbours) {
  if (is.null(statistic$sensitivity[[neighbours]])) {
    c("The statistic must declare how far a record that is added or removed moves the totals.",
      i = "Give {.fn stat_custom} {.code sensitivity = list(replace = , add_remove = )}.")
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
