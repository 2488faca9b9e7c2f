#' A user-defined exponential family
#'
#' A family for one continuous variable, defined by R functions: its density, the statistic whose total the update needs, a prior and the update. Method `"clt"`
#' computes the moments of any released totals by integration, with clamped or dropped records. With `r_records`, the exact method `"augment"` is also
#' available.
#'
#' @param log_density `function(x, theta)`: the log density at each x (a vector),
#'   up to a constant that may depend on theta. It must be unimodal.
#' @param statistic `function(x)`: the complete-data statistic of each x, a vector,
#'   or a matrix with a row for each x.
#' @param r_prior `function()`: returns a draw from the prior, a named numeric vector theta.
#' @param log_prior `function(theta)`: the log prior density up to a constant, -Inf
#'   outside its support.
#' @param r_theta `function(total, n)`: returns a draw of theta given the total of `statistic` over n records (the conjugate update). A third argument, if there
#'   is one, receives the current theta, for an update that is one step of a chain.
#' @param r_records `NULL`, or `function(theta, n)`: returns n records.
#' @param project `NULL`, or `function(total, n)`: returns the nearest total that n records could have; it must return a possible total unchanged. The normal
#'   approximation occasionally draws impossible totals, such as a negative total of positive numbers.
#' @param support The lower and upper end of a record's possible values.
#' @param variable The variable's name; `NULL` means the release's only variable.
#'
#' @details Functions are stored as in [model_custom()]. Before a run they are called once with a few values, and their return values are checked. They work on
#'   whole vectors: an evaluation of the moments costs a few dozen calls.
#'
#' @return A model: an object of class `model_expfam`. Its parameters are those that `r_prior` returns.
#' @section Errors: `noiseaware_error_custom` (names the function, what it must
#'   return and what it returned), `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @references
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian
#' inference for exponential families. *Advances in Neural Information
#' Processing Systems* 31. \doi{10.48550/arXiv.1809.02188}
#' @family models of your own
#' @examples
#' # Weibull of shape 2: x^2 is exponential, so a gamma prior is conjugate
#' weibull <- model_expfam(
#'   log_density = function(x, theta) log(x) + log(theta["rate"]) - theta["rate"] * x^2,
#'   statistic = function(x) x^2,
#'   r_prior = function() c(rate = rgamma(1, 2, 1)),
#'   log_prior = function(theta) dgamma(theta["rate"], 2, 1, log = TRUE),
#'   r_theta = function(total, n) c(rate = rgamma(1, 2 + n, 1 + total)),
#'   project = function(total, n) pmax(total, 0),
#'   support = c(0, Inf))
#' st <- stat_sums(~ x, bounds = list(x = c(0, 2)), outside = "drop")
#' rel <- as_release(431, st, mech_laplace(epsilon = 0.1), n = 500)
#' sample_posterior(rel, weibull, method = "clt", chains = 1, iter = 200, seed = 1)
#' @export
model_expfam <- function(log_density, statistic, r_prior, log_prior, r_theta, r_records = NULL, project = NULL,
                         support = c(-Inf, Inf), variable = NULL) {
  check_given()
  functions <- list(log_density = log_density, statistic = statistic, r_prior = r_prior, log_prior = log_prior, r_theta = r_theta,
                    r_records = r_records, project = project)
  check_expfam_functions(functions)
  if (!is.numeric(support) || length(support) != 2L || anyNA(support) || support[1L] >= support[2L]) {
    stop_argument("support", "two different numbers, the lower one first", describe(support))
  }
  check_variable(variable, "variable", null = TRUE)
  new_model("expfam", functions = keep_functions(functions), support = as.double(support), variable = variable, class = "model_expfam")
}

check_expfam_functions <- function(functions, call = caller_env()) {
  arguments <- c(log_density = 2L, statistic = 1L, r_prior = 0L, log_prior = 1L, r_theta = 2L, r_records = 2L, project = 2L)
  for (name in names(functions)) {
    f <- functions[[name]]
    if (is.null(f) && name %in% c("r_records", "project")) next
    if (!is.function(f)) stop_argument(name, "a function", describe(f), "custom", call)
    if (!accepts_arguments(f, arguments[[name]]) && !(name == "r_theta" && accepts_arguments(f, 3L))) {
      stop_classed("custom", "{.arg {name}} must be a function of {arguments[[name]]} argument{?s}, but takes {length(formals(f))}.",
                   call = call)
    }
  }
}

#' @export
format.model_expfam <- function(x, ...) {
  c("<model> exponential family, R functions",
    paste0("  variable  ", x$variable %||% "the release's"),
    paste0("  support   ", paste(format_number(x$support), collapse = " to ")),
    paste0("  records   ", if (is.null(x$functions$r_records)) "no function to draw them: only method clt" else "drawn by a function"))
}

#' @export
variable_kinds.model_expfam <- function(x) "number"

#' @export
bind_columns.model_expfam <- function(model, columns, levels, formula, call) {
  columns <- bind_number(model$variable, columns, levels, call)
  size <- with_seed(1L, dry_expfam(model, call))
  functions <- expfam_functions(model, size)
  structure(list(model = model, columns = columns, levels = list(), parameters = size$parameters, callbacks = TRUE,
                 spec = list(name = "expfam", parameters = length(size$parameters), complete = size$complete, functions = functions)),
            class = c("bound_expfam", "noiseaware_bound"))
}

# names of the parameters and length of the statistic, each function called once
dry_expfam <- function(model, call) {
  theta <- call_user(model$functions$r_prior, "r_prior")
  if (!is.numeric(theta) || length(theta) == 0L || is.null(names(theta)) || anyDuplicated(names(theta))) {
    stop_custom("r_prior", "a numeric vector with different names", theta, call)
  }
  x <- expfam_points(model$support)
  value <- call_user(model$functions$statistic, "statistic", x)
  size <- list(parameters = names(theta), complete = if (is.null(dim(value))) 1L else ncol(value))
  functions <- expfam_functions(model, size)
  theta <- functions$r_prior()
  total <- colSums(matrix(functions$statistic(x), length(x)))
  functions$log_density(x, theta)
  functions$log_prior(theta)
  functions$r_theta(functions$project(total, length(x)), length(x), theta)
  if (!is.null(model$functions$r_records)) functions$r_records(theta, 5L)
  size
}

# a few values inside the support
expfam_points <- function(support) {
  if (all(is.finite(support))) return(support[1L] + (support[2L] - support[1L]) * c(0.2, 0.4, 0.7))
  if (is.finite(support[1L])) return(support[1L] + c(0.5, 1, 2))
  if (is.finite(support[2L])) return(support[2L] - c(0.5, 1, 2))
  c(-1, 0.5, 2)
}

# The user's functions with names put on and what they return checked, in the
# shape that the C code needs.
expfam_functions <- function(model, size) {
  user <- model$functions
  parameters <- size$parameters
  complete <- size$complete
  named <- function(theta) stats::setNames(theta, parameters)
  as_theta <- function(value, name) {
    ok <- is.numeric(value) && length(value) == length(parameters) && all(is.finite(value)) &&
      (is.null(names(value)) || setequal(names(value), parameters))
    if (!ok) stop_custom(name, paste0("finite numbers for ", paste(parameters, collapse = ", ")), value)
    as.double(if (is.null(names(value))) value else value[parameters])
  }
  numbers <- function(value, count, name) {
    if (!is.numeric(value) || length(value) != count || anyNA(value)) stop_custom(name, paste(count, "numbers without NA"), value)
    as.double(value)
  }
  takes_theta <- accepts_arguments(user$r_theta, 3L)
  list(
    r_prior = function() as_theta(call_user(user$r_prior, "r_prior"), "r_prior"),
    log_prior = function(theta) {
      value <- numbers(call_user(user$log_prior, "log_prior", named(theta)), 1L, "log_prior")
      if (value == Inf) stop_custom("log_prior", "a number or -Inf", value)
      value
    },
    log_density = function(x, theta) numbers(call_user(user$log_density, "log_density", x, named(theta)), length(x), "log_density"),
    statistic = function(x) numbers(call_user(user$statistic, "statistic", x), length(x) * complete, "statistic"),
    r_theta = function(total, n, theta) {
      as_theta(if (takes_theta) call_user(user$r_theta, "r_theta", total, n, named(theta)) else
        call_user(user$r_theta, "r_theta", total, n), "r_theta")
    },
    r_records = function(theta, n) {
      if (is.null(user$r_records)) {
        stop_classed("custom", c("{.arg r_records} of {.fn model_expfam} must be given to draw records.",
                                 i = "Method {.val clt} needs none."))
      }
      numbers(call_user(user$r_records, "r_records", named(theta), n), n, "r_records")
    },
    project = if (is.null(user$project)) function(total, n) total else function(total, n) {
      numbers(call_user(user$project, "project", total, n), complete, "project")
    }
  )
}

#' @export
describe_model.bound_expfam <- function(bound) paste("exponential family of", bound$columns$name)

#' @export
clt_statistics.model_expfam <- function(model) c("stat_sums", "stat_crossprod", "stat_moments4", "stat_custom")
