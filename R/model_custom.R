#' A model of your own, written in R
#'
#' A model consists of a few functions that work on all n records at once, so an iteration costs a few calls to R, not a few per record. They may draw from R's
#' generator; the `seed` of [sample_posterior()] also fixes these draws.
#'
#' @param r_prior `function()`: returns a draw from the prior, a named numeric vector theta. Its names are the parameters' names.
#' @param r_records `function(theta, n)`: returns n records from f(. | theta), a numeric matrix (or data frame) with n rows and a column for each variable.
#' @param r_theta `function(records, theta)`: returns a draw of theta from p(theta | records), or from any kernel that leaves this distribution invariant;
#'   `records` is the matrix with named columns, `theta` the current value. `NULL`: random walks using `log_density`, see below.
#' @param variables Names of the records' columns, as in the release.
#' @param move `NULL`, or `function(theta, theta_new, records)`: returns the records with the same innovations under `theta_new` (the non-centred
#'   parametrisation). Needs `log_prior`. With `move`, chains mix well when the noise dominates; without it the plain sampler runs, and the fit reports this.
#' @param log_prior `function(theta)`: the log prior density up to a constant, -Inf outside the support. Needed for `move` and `log_density`.
#' @param log_density `function(theta, records)`: the log density of all records, one
#'   number, up to a constant that is the same for every theta. Needs `log_prior`, and
#'   replaces `r_theta`. [debug_model()] checks it against `r_records`.
#'
#' @details
#' **Three functions are enough.** A model needs a prior (`r_prior` and `log_prior`), draws of records (`r_records`) and their density (`log_density`). In each
#' iteration theta then moves by a few random-walk Metropolis steps given the records; warmup tunes their size and directions. If you know the update given the
#' records, supply `r_theta`: it costs one call instead of several, and mixes better. Random walks work best for an unconstrained theta: `c(log_rate = )` rather
#' than `c(rate = )`.
#'
#' Before a run each function is called once with a few records, and its return value is checked: shape, type, names, finite values. An error inside a function
#'   is shown with its own message.
#'
#'   The model, and fits with it, store the functions without their source references, and with copies of the variables that they use from their enclosing
#'   environment. Later changes to those variables have no effect, and nothing else from that environment is saved. Variables in the global environment are
#'   looked up when a function runs.
#'
#' @return A model: an object of class `model_custom`.
#' @section Errors: `noiseaware_error_custom` (names the function, what it must
#'   return and what it returned), `noiseaware_error_variables`.
#' @family models of your own
#' @examples
#' # normal mean, sd 1 known, prior N(0, 3^2)
#' model <- model_custom(
#'   r_prior = function() c(mu = rnorm(1, 0, 3)),
#'   r_records = function(theta, n) cbind(y = rnorm(n, theta["mu"], 1)),
#'   r_theta = function(records, theta) {
#'     precision <- 1 / 9 + nrow(records)
#'     c(mu = rnorm(1, sum(records[, "y"]) / precision, 1 / sqrt(precision)))
#'   },
#'   variables = "y",
#'   move = function(theta, theta_new, records) records + (theta_new["mu"] - theta["mu"]),
#'   log_prior = function(theta) dnorm(theta["mu"], 0, 3, log = TRUE))
#' st <- stat_crossprod(y ~ 1, bounds = list(y = c(-5, 5)))
#' rel <- as_release(c(y = 4.1, `y^2` = 1.7), st, mech_laplace(epsilon = 1), n = 30)
#' sample_posterior(rel, model, chains = 2, iter = 300, seed = 1)
#' @export
model_custom <- function(r_prior, r_records, r_theta = NULL, variables, move = NULL, log_prior = NULL, log_density = NULL) {
  check_given()
  functions <- list(r_prior = r_prior, r_records = r_records, r_theta = r_theta, move = move, log_prior = log_prior, log_density = log_density)
  arguments <- c(r_prior = 0L, r_records = 2L, r_theta = 2L, move = 3L, log_prior = 1L, log_density = 2L)
  for (name in names(functions)) {
    f <- functions[[name]]
    if (is.null(f) && !name %in% c("r_prior", "r_records")) next
    if (!is.function(f)) stop_argument(name, "a function", describe(f), "custom")
    if (!accepts_arguments(f, arguments[[name]])) {
      stop_classed("custom", "{.arg {name}} must be a function of {arguments[[name]]} argument{?s}, but takes {length(formals(f))}.")
    }
  }
  if (is.null(r_theta) && is.null(log_density)) {
    stop_classed("custom", c("{.arg r_theta} or {.arg log_density} must be given.",
                             i = "The first draws theta given the records; the second is the records' density, used to move theta."))
  }
  if (is.null(log_prior) && !(is.null(move) && is.null(log_density))) {
    stop_classed("custom", "{.arg log_prior} must be given with {.arg {if (is.null(move)) 'log_density' else 'move'}}.")
  }
  if (!checkmate::test_character(variables, min.len = 1L, any.missing = FALSE, unique = TRUE)) {
    stop_argument("variables", "names of variables", describe(variables), "custom")
  }
  new_model("custom", functions = keep_functions(functions), variables = variables, class = "model_custom")
}

#' @export
format.model_custom <- function(x, ...) {
  c("<model> custom, R functions",
    paste0("  variables  ", paste(x$variables, collapse = ", ")),
    paste0("  update     ", if (is.null(x$functions$r_theta)) "random walks by log_density" else "r_theta"),
    paste0("  moves      ", if (is.null(x$functions$move)) "none: the plain sampler, mixing may be slow" else "non-centred"))
}

#' @export
variable_kinds.model_custom <- function(x) c("number", "code")

#' @export
bind_columns.model_custom <- function(model, columns, levels, formula, call) {
  columns <- columns_in_order(model$variables, columns, call)
  parameters <- dry_run(model, call)
  bound <- list(model = model, columns = columns, levels = levels, formula = formula, parameters = parameters, callbacks = TRUE)
  bound$spec <- list(name = "custom", columns = nrow(columns), parameters = length(parameters),
                     functions = checked_functions(model, parameters))
  # for a run: the functions themselves, what they get and what checks the unusual; see rethrow_user_error()
  bound$spec <- c(bound$spec, list(user = model$functions, checks = custom_checks(model, parameters), names = parameters,
                                   dimnames = list(NULL, model$variables), running = NULL))
  structure(bound, class = c("bound_custom", "noiseaware_bound"))
}

# Each function once with a few records, in a generator of its own; returns the
# parameters' names.
dry_run <- function(model, call, n = model$records %||% 5L) {
  with_seed(1L, {
    theta <- call_user(model$functions$r_prior, "r_prior")
    if (!is.numeric(theta) || length(theta) == 0L || is.null(names(theta)) || anyDuplicated(names(theta))) {
      stop_custom("r_prior", "a numeric vector with different names", theta, call)
    }
    parameters <- names(theta)
    functions <- checked_functions(model, parameters)
    theta <- functions$r_prior()
    records <- functions$r_records(theta, n)
    if (!is.null(functions$r_theta)) functions$r_theta(records, theta)
    if (!is.null(functions$log_prior)) functions$log_prior(theta)
    if (!is.null(functions$move)) functions$move(theta, functions$r_prior(), records)
    if (!is.null(functions$log_density)) functions$log_density(theta, records)
    parameters
  })
}

# What functions must return, in the shape that the C code needs.
custom_checks <- function(model, parameters) {
  force(parameters)
  variables <- model$variables
  list(theta = function(value, name) check_theta(value, name, parameters),
       records = function(value, n, name) check_records(value, n, name, variables), log = check_log)
}

check_theta <- function(value, name, parameters) {
  given <- names(value)
  must <- function() paste0("finite numbers for ", paste(parameters, collapse = ", "))
  if (!is.numeric(value) || length(value) != length(parameters) || !all(is.finite(value))) stop_custom(name, must(), value)
  if (!is.null(given) && !identical(given, parameters) && !setequal(given, parameters)) stop_custom_names(name, must(), given)
  as.double(if (is.null(given) || identical(given, parameters)) value else value[parameters])
}

check_records <- function(value, n, name, variables) {
  if (is.data.frame(value)) value <- as.matrix(value)
  if (is.null(dim(value)) && length(value) == n && length(variables) == 1L) dim(value) <- c(n, 1L)
  given <- colnames(value)
  must <- function() paste0("a numeric matrix of ", n, " rows and the column", if (length(variables) > 1L) "s", " ",
                            paste(variables, collapse = ", "), ", without NA")
  ok <- is.numeric(value) && identical(dim(value), as.integer(c(n, length(variables)))) && !anyNA(value)
  if (!ok) stop_custom(name, must(), value)
  if (!is.null(given) && !identical(given, variables) && !setequal(given, variables)) stop_custom_names(name, must(), given)
  if (!is.null(given) && !identical(given, variables)) value <- value[, variables, drop = FALSE]
  if (!is.double(value)) storage.mode(value) <- "double"
  value
}

check_log <- function(value, name) {
  if (!is.numeric(value) || length(value) != 1L || is.na(value) || value == Inf) stop_custom(name, "a number or -Inf", value)
  as.double(value)
}

# The user's functions with names put on and what they return checked, for calls
# outside a run.
checked_functions <- function(model, parameters) {
  user <- model$functions
  checks <- custom_checks(model, parameters)
  as_theta <- checks$theta
  as_records <- checks$records
  named_theta <- function(theta) {
    names(theta) <- parameters
    theta
  }
  named_records <- function(records) {
    dimnames(records) <- list(NULL, model$variables)
    records
  }
  list(
    r_prior = function() as_theta(call_user(user$r_prior, "r_prior"), "r_prior"),
    r_records = function(theta, n) as_records(call_user(user$r_records, "r_records", named_theta(theta), n), n, "r_records"),
    r_theta = if (!is.null(user$r_theta)) function(records, theta) {
      as_theta(call_user(user$r_theta, "r_theta", named_records(records), named_theta(theta)), "r_theta")
    },
    move = if (!is.null(user$move)) function(theta, theta_new, records) {
      value <- call_user(user$move, "move", named_theta(theta), named_theta(theta_new), named_records(records))
      as_records(value, nrow(records), "move")
    },
    log_prior = if (!is.null(user$log_prior)) function(theta) {
      checks$log(call_user(user$log_prior, "log_prior", named_theta(theta)), "log_prior")
    },
    log_density = if (!is.null(user$log_density)) function(theta, records) {
      checks$log(call_user(user$log_density, "log_density", named_theta(theta), named_records(records)), "log_density")
    }
  )
}

#' @export
describe_model.bound_custom <- function(bound) "custom model, R functions"
