#' Logistic regression, covariates modelled too
#'
#' y is 1 with probability 1 / (1 + exp(-eta)), eta = beta_0 + sum beta_j x_j,
#' otherwise 0. Continuous covariates are multivariate normal, factor covariates
#' categorical and independent of the rest. The coefficients, the covariates'
#' mean and covariance may be unknown or [fixed()].
#'
#' @param formula `response ~ covariates`, with all variables of the release, each
#'   once: the records' distribution is a joint one, so none can be left out. `NULL` takes the
#'   statistic's own formula. The response is a number with the bounds
#'   0 and 1, or a factor with two levels, of which the second counts as 1.
#' @param prior Of the coefficients (intercept first): [prior_normal()],
#'   `fixed(beta)`, or `NULL` for a weak prior that is scaled by the public
#'   bounds, see below.
#' @param covariates,levels As in [model_lm()].
#'
#' @details
#' **Default prior.** `NULL` is `prior_normal()`. With p covariates measured from the middles
#' of their bounds, of half-width h: intercept N(0, 1.5^2), slope j N(0, (3 / (sqrt(p)
#' h_j))^2), a level's coefficient N(0, (1.5 / sqrt(p))^2). The linear predictor then has a
#' standard deviation of about 2 whatever p is; see [priors] for values by name.
#'
#' **Statistics.** Numbers as released by [stat_crossprod()], [stat_sums()],
#' [stat_records()] and [stat_custom()], factors as dummy variables
#' ([stat_crossprod()]) or as codes ([stat_counts()], [stat_records()]). A
#' factor's first level is the reference. Declare the response of a [stat_crossprod()] as
#' `c(FALSE, TRUE)` or by its two levels: as a number with the bounds 0 and 1 it has a square,
#' which is redundant (rescaled, it is always 1) but still adds to the sensitivity.
#'
#' **Update.** Given the imputed records the coefficients are drawn by
#' Polya-Gamma augmentation (Polson, Scott & Windle 2013): one exact PG(1, eta)
#' variate for each record, then a normal draw. Given the innovations of the
#' records, y = 1 where a uniform number is below its probability, they move as
#' in [sample_posterior()].
#'
#' @return A model: an object of class `model_logistic`. Its parameters are the
#'   coefficients (`(Intercept)`, the covariates' names, a factor's name and
#'   level), `mean[x]`, `cov[x,x']` and `prob[factor=level]`.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_formula`,
#'   `noiseaware_error_variables`.
#' @references
#' Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for
#' logistic models using Polya-Gamma latent variables. *Journal of the American
#' Statistical Association* 108, 1339-1349. \doi{10.1080/01621459.2013.829001}
#' @examples
#' model_logistic(prior = prior_normal(0, 2))
#' st <- stat_crossprod(low ~ age, bounds = list(low = c("0", "1"), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_logistic(), chains = 2, iter = 400, seed = 1)
#' predict(fit, data.frame(age = c(20, 30)), interval = "credible")
#' @export
model_logistic <- function(formula = NULL, prior = NULL, covariates = prior_niw(), levels = prior_dirichlet()) {
  if (!is.null(formula)) formula_variables(formula)
  if (!is.null(prior)) check_class(prior, "prior", c("prior_normal", "fixed"), "NULL, prior_normal() or fixed()", "prior")
  covariates <- split_covariates(covariates)
  check_class(levels, "levels", "prior_dirichlet", "prior_dirichlet()", "prior")
  new_model("logistic", formula = if (!is.null(formula)) formula_text(formula), prior = prior, covariates = covariates,
            levels = levels, class = "model_logistic")
}

#' @export
format.model_logistic <- function(x, ...) {
  c("<model> logistic regression",
    paste0("  formula       ", x$formula %||% "the statistic's"),
    paste0("  coefficients  ", if (is.null(x$prior)) "normal(scaled by the bounds)" else format(x$prior)),
    paste0("  covariates    mean ", format(x$covariates$mean), "; cov ", format(x$covariates$cov)))
}

#' @export
variable_kinds.model_logistic <- function(x) c("number", "code")

#' @export
bind_columns.model_logistic <- function(model, columns, levels, formula, call) {
  variables <- regression_variables(model$formula %||% formula, columns, call)
  columns <- columns[order(match(columns$variable, variables)), ]
  rownames(columns) <- NULL
  check_binary(columns[columns$variable == variables[1L], ], call)
  forms <- tapply(is.na(columns$level), columns$variable, function(plain) any(plain) && length(plain) > 1L)
  if (any(forms)) {
    stop_classed("variables", "A factor must be released in one form, but {.var {names(forms)[forms]}} {?is/are} released as codes and as dummy variables.",
                 call = call)
  }
  bound <- list(model = model, columns = columns, levels = levels[intersect(variables, names(levels))])
  factors <- bound$levels[setdiff(names(bound$levels), variables[1L])]
  bound$design <- design_columns(columns, factors)
  bound$design$centre[1L] <- 0
  covariates <- bound$design[-1L, ]
  bound$spec <- list(name = "logistic", fields = c(
    design_fields(bound$design), list(columns = as.double(nrow(columns))), logistic_coefficient_fields(bound, call),
    covariate_fields(covariates, seq_len(nrow(covariates)), model, factors, call)))
  bound$formula <- model$formula %||% formula
  bound$parameters <- c(if (!inherits(model$prior, "fixed")) c("(Intercept)", covariates$name),
                        covariate_parameters(covariates, model, factors))
  structure(bound, class = c("bound_logistic", "bound_regression", "noiseaware_bound"))
}

check_binary <- function(response, call) {
  if (nrow(response) == 1L && response$lower == 0 && response$upper == 1) return(invisible())
  stop_classed("variables", c("The response of {.fn model_logistic} must be a number with the bounds 0 and 1, or a factor of two levels.",
                              x = "{.var {response$variable[1]}} is neither."), call = call)
}

logistic_coefficient_fields <- function(bound, call) {
  prior <- bound$model$prior %||% prior_normal()
  design <- bound$design
  if (inherits(prior, "fixed")) {
    return(list(beta = centre_coefficients(centring(design$centre), check_fixed(prior$value, nrow(design), "prior", call))))
  }
  independent_coefficient_fields(prior, design, design$centre, 0.75 * default_scales(design), call)
}

#' @export
describe_model.bound_logistic <- function(bound) paste("logistic regression", bound$formula)

# expected: the probability of a 1
#' @export
response_of.bound_logistic <- function(bound) {
  list(binary = TRUE, family = stats::binomial(), mean = stats::plogis, draw = function(fit, expected) {
    expected[] <- stats::rbinom(length(expected), 1L, expected)
    expected
  })
}
