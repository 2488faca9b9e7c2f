# What all models share. A model says what is believed; bound to a statistic's
# variables it becomes a list of
#   spec        name and numeric fields for the C plug-in
#   columns     data frame of a record's columns, in the C plug-in's order
#   parameters  names of what a draw reports, natural scale
#   hidden      which of them users do not see, as they have no order; may be absent
#   natural     whether the bounds of all numbers are natural limits, see stat_outside.R
# Methods: bind_columns() makes it, bound_complete() turns moments into its
# complete-data statistic. Its coordinates are described in C (src/contract/coordinates.h).

new_model <- function(name, ..., class) {
  structure(list(name = name, ...), class = c(class, "noiseaware_model"))
}

# `columns` as in a statistic, `call` for the errors
bind_columns <- function(model, columns, levels, formula, call) UseMethod("bind_columns")

# The model that is meant where the release's statistic has this formula.
own_model <- function(model, formula, call) UseMethod("own_model")

#' @export
own_model.default <- function(model, formula, call) model

# `statistic`: one or a named list
bind_model <- function(model, statistic, call = caller_env()) {
  bind_public(model, release_columns(statistic), call)
}

# `public`: what release_columns() tells
bind_public <- function(model, public, call) {
  known <- session$binding
  if (!is.null(known) && identical(model, known$model) && identical(public, known$public)) return(known$bound)
  if (is_grouped(model)) {
    stop_classed("groups", "A model of groups, by {.var {model$group}}, can only be fitted to a release by {.fn sample_posterior}.", call = call)
  }
  if (nrow(public$columns) == 0L) {
    stop_classed("variables", "The release contains only the number of records: there is no variable for a model to describe.", call = call)
  }
  check_one_function(public$columns$variable, call)
  model <- own_model(model, public$formula, call)
  if (isTRUE(public$weighted)) model <- weighted_model(model, public$columns, call)
  bound <- bind_columns(model, public$columns, public$levels, public$formula, call)
  shape <- .Call(ffi_model_shape, bound$spec)
  bound$sizes <- stats::setNames(as.list(shape$sizes), c("columns", "parameters", "reported", "complete"))
  bound$natural <- public$natural
  bound$unknown <- shape$moves + 1L # coordinates
  bound$moves <- if (shape$can_move) bound$unknown
  bound$updates <- shape$updates # else random walks by the log density move theta, or
  bound$walks <- shape$walks + 1L # these of its coordinates
  bound$by_records <- shape$by_records # the update needs the records, not their totals alone
  bound$coordinates <- as.data.frame(shape$coordinates)
  bound
}

# While `code` runs, such as a replicate of a calibration, `bound` replaces what bind_model() would make of the same
# model and statistic.
with_binding <- function(bound, model, statistic, code) {
  before <- session$binding
  on.exit(session$binding <- before)
  session$binding <- list(model = model, public = release_columns(statistic), bound = bound)
  code
}

# The columns of the release in the order of the model's variables, which must be the same.
columns_in_order <- function(variables, columns, call) {
  if (!setequal(variables, columns$name)) {
    stop_classed("variables", c("The model must have the variables of the release.",
                                x = "The model has {.var {variables}}, but the release has {.var {columns$name}}."), call = call)
  }
  columns <- columns[match(variables, columns$name), ]
  rownames(columns) <- NULL
  columns
}

# `hint`: a line of advice about the variables `left` out, if there is any
check_all_described <- function(variables, columns, hint, call) {
  absent <- setdiff(variables, columns$variable)
  if (length(absent)) {
    stop_classed("variables", c("Variables of the model must be in the release; {.var {absent}} {?is/are} not.",
                                i = "The release has {.var {unique(columns$variable)}}."), call = call)
  }
  left <- setdiff(columns$variable, variables)
  if (length(left)) {
    stop_classed("variables", c("The model must describe every variable of the release, but leaves out {.var {left}}.", hint), call = call)
  }
}

# the plug-in's coordinates of natural-scale values, the unknown ones by name
bound_theta <- function(bound, values, call = caller_env(), name = "parameters") {
  check_describes_records(bound, call)
  values <- check_parameter_values(complete_joint(values, bound, name, call), bound, name, call)
  theta <- .Call(ffi_model_invert, bound$spec, values)
  if (is.character(theta)) refuse_values(theta[1L], theta[2L], name, stats::setNames(values, bound$parameters), call)
  theta
}

# of draws, a row each: theta in columns. They are in the model's order, and thousands of them need one check.
draws_theta <- function(bound, draws, call = caller_env()) {
  check_describes_records(bound, call)
  theta <- .Call(ffi_model_invert, bound$spec, t(draws))
  refused <- is.character(theta) || !all(is.finite(draws))
  for (i in c(1L, if (refused) seq_len(nrow(draws)))) bound_theta(bound, draws[i, ], call) # says which
  theta
}

refuse_values <- function(block, reason, name, values, call) {
  was <- paste(format_number(values), collapse = ", ")
  switch(reason,
    log = stop_argument(name, paste("positive in", block), describe(values[[block]]), call = call), # its only value
    log_cholesky = stop_classed("argument", "{.arg {name}} must give a positive definite {block}.", call = call),
    thresholds = stop_classed("argument", "{.arg {name}} must give increasing thresholds.", call = call),
    sticks = stop_classed("argument", "{.arg {name}} must be probabilities that sum to 1 over the levels of each variable.", call = call),
    prior = stop_classed("argument", "{.arg {name}} must have values that the prior allows.", call = call),
    absent = stop_classed("compiled", "{.arg {name}} needs the model's hook {.field invert}, which it lacks.", call = call),
    model = stop_argument(name, "values that the model can have", was, call = call))
}

# The size by which costs are foretold, where it is not the number of columns; else NULL.
counted_size <- function(bound) UseMethod("counted_size")

#' @export
counted_size.default <- function(bound) NULL

# Of a model of a response given covariates, whose bound has a `design` of them: a list of
# `family`, as in stats::family(); `mean`, of the response, from the linear predictor; `draw(fit, expected)`, new responses
# about such means, one row a draw; and whether it is `binary`, NA: of several levels, whose probabilities are what is
# expected, an array with the levels last (there is no `mean`). NULL: there is no response.
response_of <- function(bound) UseMethod("response_of")

#' @export
response_of.default <- function(bound) NULL

# Of a model of one variable without covariates: `mean`, the expected value, from draws of the parameters, a row each; and `draw(expected, parameters)`, new
# values. NULL: it has several variables.
value_of <- function(bound) UseMethod("value_of")

#' @export
value_of.default <- function(bound) NULL

# Of a regression, a record's columns without the response's.
covariate_columns <- function(bound) bound$columns[bound$columns$variable != bound$columns$variable[1L], ]

# The names of its coefficients, as they are reported.
coefficients_of <- function(bound) UseMethod("coefficients_of")

#' @export
coefficients_of.default <- function(bound) c("(Intercept)", bound$design$name[-1L])

bound_complete <- function(bound, moments, n) UseMethod("bound_complete")

# those that users see in a fit: see new_fit()
reported_parameters <- function(bound) setdiff(bound$parameters, bound$hidden)

# draws x parameters matrix of natural-scale values
reported <- function(bound, theta) {
  check_describes_records(bound, caller_env())
  theta <- as.matrix(theta)
  out <- t(.Call(ffi_model_report, bound$spec, theta))
  colnames(out) <- bound$parameters
  out
}

check_parameter_values <- function(values, bound, name, call, whose = "each unknown parameter") {
  wanted <- bound$parameters
  given <- names(values)
  was <- if (!is.numeric(values)) paste("It is", describe(values)) else if (is.null(given)) "It has no names" else
    if (anyDuplicated(given)) paste("Given more than once:", shorten_list(unique(given[duplicated(given)]))) else
    if (length(setdiff(given, wanted))) paste("Not a parameter:", shorten_list(setdiff(given, wanted))) else
    if (length(setdiff(wanted, given))) paste("Not given:", shorten_list(setdiff(wanted, given))) else
    if (!all(is.finite(values))) paste("Not finite:", shorten_list(given[!is.finite(values)]))
  if (!is.null(was)) {
    stop_classed("argument", c("{.arg {name}} must be a named vector with a finite value for {whose}.",
                               x = "{was}.", i = "Unknown: {.val {wanted}}."), call = call)
  }
  as.double(values[wanted])
}

# all of the parameters, or some of them by name
check_some_parameters <- function(values, bound, call = caller_env()) {
  some <- is.numeric(values) && length(values) > 0L && all(is.finite(values)) && checkmate::test_names(names(values), "unique") &&
    all(names(values) %in% bound$parameters)
  if (!some) check_parameter_values(values, bound, "parameters", call, "one or more unknown parameters")
}

#' @export
print.noiseaware_model <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

is_grouped <- function(model) inherits(model, "noiseaware_model") && !is.null(model$group)

# A prior that is proper on paper, and in numbers is not: inverse gamma with a shape of 0.001. What
# an R function draws is checked each time.
check_prior_draws <- function(bound, call = caller_env()) {
  if (isTRUE(bound$callbacks)) return(invisible())
  count <- 200L
  draws <- reported(bound, .Call(ffi_model_prior, bound$spec, new_stream(c(1, 2)), count)$theta)
  lost <- colMeans(!is.finite(draws))
  if (max(lost) <= 0.02) return(invisible())
  names <- names(lost)[lost > 0.02]
  stop_classed("prior", c("The prior of {.field {names}} cannot be drawn from: {format_number(100 * max(lost), 2)}% of {count} draws are not finite.",
                          i = "A shape, precision or df this close to 0 makes the prior numerically improper. See {.fn rstantools::prior_summary}."), call = call)
}

describe_model <- function(bound) UseMethod("describe_model")

# Of the rows of covariates: the factors' names, and whether numbers have a mean that can depend on them.
joint_factors <- function(design, levels) intersect(unique(design$variable[!is.na(design$level)]), names(levels))

# names of the cells, the first factor's levels the fastest
joint_cells <- function(levels) {
  cells <- expand.grid(lapply(names(levels), function(v) paste0(v, "=", levels[[v]])), stringsAsFactors = FALSE)
  do.call(paste, c(unname(cells), sep = ":"))
}

# Values that were given, and what follows from them: no effects, cells of independent factors, the shares of these, and the concentration's median.
complete_joint <- function(values, bound, name, call) {
  if (!isTRUE(bound$dependent) || !is.numeric(values) || is.null(names(values))) return(values)
  fill <- function(values, more) c(values, more[setdiff(names(more), names(values))])
  effects <- grep("^effect\\[", bound$parameters, value = TRUE)
  values <- fill(values, stats::setNames(numeric(length(effects)), effects))
  levels <- bound$levels[joint_factors(bound$base[-1L, ], bound$levels)]
  if (length(levels) == 1L) return(values)
  margins <- lapply(names(levels), function(v) paste0("prob[", v, "=", levels[[v]], "]"))
  cells <- paste0("prob[", joint_cells(levels), "]")
  at <- expand.grid(lapply(levels, seq_along))
  if (!any(cells %in% names(values)) && all(unlist(margins) %in% names(values))) {
    shares <- vapply(seq_along(margins), function(f) values[margins[[f]]][at[[f]]], numeric(length(cells)))
    values <- c(values, stats::setNames(apply(shares, 1L, prod), cells))
  }
  if (!all(cells %in% names(values))) return(values)
  sums <- unlist(lapply(seq_along(margins), function(f) stats::setNames(as.vector(rowsum(unname(values[cells]), at[[f]])), margins[[f]])))
  given <- intersect(names(sums), names(values))
  if (any(abs(values[given] - sums[given]) > 1e-6, na.rm = TRUE)) {
    stop_classed("argument", "In {.arg {name}}, the probability of each level of a factor must be the sum of the probabilities of its cells.", call = call)
  }
  of_shares <- stats::setNames(sums, sub("^prob", "base", names(sums)))
  fill(fill(fill(values, sums), of_shares), c(concentration = exp(bound$spec$fields$cells_log_mean)))
}

check_describes_records <- function(bound, call) {
  if (!inherits(bound, "bound_weighted")) return(invisible())
  stop_classed("method", c("Design-weighted estimates are not a model of records.",
                           i = "The fit by {.fn model_mvnormal}, from which {.fn regress} derived them, is a working model of the weighted products."), call = call)
}

# ---- weighted products ----------------------------------------------------------------

# Only model_mvnormal() describes weighted products.
weighted_model <- function(model, columns, call) {
  if (!inherits(model, "model_mvnormal")) refuse_weighted(model, call)
  if (!inherits(model$covariates$cov, "prior_niw") || !is.null(model$covariates$cov$scale)) return(model)
  # in a stratum weights hardly differ, and residuals are small relative to the bounds: the usual prior would add to the design variance
  at <- match(model$variables %||% columns$name, columns$name)
  model$covariates$cov$scale <- diag(2 * ((columns$upper - columns$lower)[at] / 20)^2, length(at))
  model
}

refuse_weighted <- function(model, call) {
  stop_classed("variables", c("Totals of weighted products need {.fn model_mvnormal}, a working model of the products: weighted records are not a sample from a model.",
                              i = if (inherits(model, "model_glm"))
                                "The weighted equations of a generalised linear model are not totals; the equations for means and linear regressions are." else
                                "{.fn regress} then gives the design-weighted estimates."), call = call)
}
