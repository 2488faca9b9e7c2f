#' Multivariate normal model
#'
#' Records N(mean, cov) of one or more variables; the mean, the covariance or
#' both are unknown.
#'
#' @param variables Names of the variables, as in the release; `NULL` means all of them, in the release's order.
#' @param prior [prior_niw()] for both; or `list(mean = , cov = )` with one of
#'   the two [fixed()] and the other a [prior_niw()].
#'
#' @return A model: an object of class `model_mvnormal`. Its parameters are
#'   `mean[x]` and `cov[x,x']` (the lower triangle, row by row), unless they are fixed. `contrast(fit, "cor[x,y]")` computes a correlation, see [contrast()].
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_argument`,
#'   `noiseaware_error_variables`.
#' @references
#' Gelman, A. et al. (2013). *Bayesian Data Analysis*, 3rd ed., section 3.6 (the
#' update given the records).
#' @seealso [model_normal()] for one variable, with other priors; [model_lm()]
#'   for a regression.
#' @family models
#' @examples
#' model_mvnormal()
#' st <- stat_sums(~ age + lwt + I(age^2) + I(age * lwt) + I(lwt^2),
#'   bounds = list(age = c(14, 50), lwt = c(80, 260)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_gaussian(mu = 1))
#' sample_posterior(rel, model_mvnormal(), chains = 2, iter = 400, seed = 1)
#' @export
model_mvnormal <- function(variables = NULL, prior = prior_niw()) {
  evaluated_name(variables, "variables", environment(), "names of variables in quotes")
  ok <- is.null(variables) || checkmate::test_character(variables, min.chars = 1L, any.missing = FALSE, min.len = 1L, unique = TRUE)
  if (!ok) stop_argument("variables", "NULL or names of different variables", describe(variables))
  prior <- split_covariates(prior, "prior")
  if (length(prior$lone)) stop_classed("prior", "{.arg prior} must be for normal variables: only covariates of a regression may have other distributions.")
  if (inherits(prior$mean, "fixed") && inherits(prior$cov, "fixed")) {
    stop_classed("prior", "{.arg prior} must leave the mean or the covariance unknown, but both are fixed.")
  }
  # the names of a model with covariates
  new_model("mvnormal", variables = variables, covariates = prior, class = "model_mvnormal")
}

#' @export
format.model_mvnormal <- function(x, ...) {
  c("<model> multivariate normal",
    paste0("  variables  ", if (is.null(x$variables)) "the release's" else paste(x$variables, collapse = ", ")),
    paste0("  mean       ", format(x$covariates$mean)),
    paste0("  cov        ", format(x$covariates$cov)))
}

#' @export
variable_kinds.model_mvnormal <- function(x) "number"

#' @export
bind_columns.model_mvnormal <- function(model, columns, levels, formula, call) {
  factors <- unique(columns$variable[columns$variable %in% names(levels)])
  if (length(factors)) {
    stop_classed("variables", "The model's variables must be numbers, but {.var {factors}} {?is a factor/are factors}.", call = call)
  }
  variables <- model$variables %||% columns$name
  columns <- columns_in_order(variables, columns, call)
  design <- design_columns(columns, list())
  fields <- c(design_fields(design), covariate_fields(design, seq_len(nrow(design)) - 1L, model, list(), call, "prior"))
  structure(list(model = model, columns = columns, levels = list(), design = design, spec = list(name = "mvnormal", fields = fields),
                 parameters = covariate_parameters(design, model, list())), class = c("bound_mvnormal", "noiseaware_bound"))
}

#' @export
bound_complete.bound_mvnormal <- bound_complete.bound_lm

#' @export
describe_model.bound_mvnormal <- function(bound) paste("multivariate normal model of", paste(bound$columns$name, collapse = ", "))
