# What all models share. A model says what is believed; bound to a statistic's
# variables it becomes a list of
#   spec        name and numeric fields for the C plug-in
#   columns     data frame of a record's columns, in the C plug-in's order
#   parameters  names of what a draw reports, natural scale
# Methods: bind_columns() makes it, bound_theta() turns natural-scale values
# into the plug-in's coordinates, bound_complete() moments into its
# complete-data statistic.

new_model <- function(name, ..., class) {
  structure(list(name = name, ...), class = c(class, "noiseaware_model"))
}

# `columns` as in a statistic, `call` for the errors
bind_columns <- function(model, columns, levels, formula, call) UseMethod("bind_columns")

bind_model <- function(model, statistic, call = caller_env()) {
  columns <- statistic$columns
  columns$reference <- vapply(columns$variable, function(v) {
    if (is.null(statistic$levels[[v]])) NA_character_ else statistic$levels[[v]][1L]
  }, "")
  bound <- bind_columns(model, columns, statistic$levels, statistic$formula, call)
  shape <- .Call(ffi_model_shape, bound$spec)
  bound$sizes <- stats::setNames(as.list(shape$sizes), c("columns", "parameters", "reported", "complete"))
  bound$moves <- shape$moves + 1L
  bound
}

bound_theta <- function(bound, values, call = caller_env()) UseMethod("bound_theta")

bound_complete <- function(bound, moments, n) UseMethod("bound_complete")

# draws x parameters matrix of natural-scale values
reported <- function(bound, theta) {
  theta <- as.matrix(theta)
  out <- t(.Call(ffi_model_report, bound$spec, theta))
  colnames(out) <- bound$parameters
  out
}

check_parameter_values <- function(values, bound, name, call) {
  wanted <- bound$parameters
  if (!is.numeric(values) || is.null(names(values)) || !all(is.finite(values)) || anyDuplicated(names(values)) ||
        !setequal(names(values), wanted)) {
    stop_classed("argument", c("{.arg {name}} must be a named vector of finite values, one for each unknown parameter.",
                               i = "Unknown: {.val {wanted}}."), call = call)
  }
  as.double(values[wanted])
}

#' @export
print.noiseaware_model <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}
