# Methods of stats' generics for a fitted regression, and a grid of covariates in place of data.

#' Components of a fitted regression
#'
#' The formula, the family, the residual standard deviation and the fitted values of a regression.
#'
#' @param x,object A fit from [sample_posterior()].
#' @param newdata A data frame with the covariates; by default a grid of them, see below.
#' @param level Probability inside the interval.
#' @param ... Must be empty.
#' @return Depends on the function:
#'
#' | function | value |
#' | --- | --- |
#' | `formula()` | the model's formula, with bars; of a survival model, the terms of its hazard ratios |
#' | `family()` | [stats::gaussian()], or the family of [model_glm()] |
#' | `sigma()` | the posterior mean of the residual standard deviation, or its fixed value |
#' | `fitted()` | a data frame: the rows of `newdata`, with the posterior mean `fitted` of the expected response and its interval `lower`, `upper` |
#' @details
#' A release has no records, so the default `newdata` is a grid; `insight::get_data()` of a fit returns it. For each combination of factor levels, it has a row
#' with every number at the middle of its bounds. Two more rows for each number have this number at its lower and its upper bound, and the others at their
#' middles. On this grid, the mean of a number is the middle of its bounds, and its range is the width of the bounds.
#'
#' For a response with several levels, `fitted()` has a row for each level, with the column `level`.
#' @section Errors: `noiseaware_error_method` for a model that is not a regression; `noiseaware_error_argument` if the grid would have more than 100,000 rows;
#'   and the errors of [predict()][predict.noiseaware_fit].
#' @family summaries of fits
#' @name fit_regression
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' formula(fit)
#' fitted(fit)
NULL

#' @rdname fit_regression
#' @importFrom stats formula
#' @export
formula.noiseaware_fit <- function(x, ...) {
  check_no_dots(...)
  if (inherits(x$bound, "bound_survival")) return(x$bound$terms)
  formula <- fixed_formula(x)
  bars <- bars_text(x$asked$model)
  if (is.null(bars)) formula else stats::update.formula(formula, stats::as.formula(paste(". ~ . +", bars)))
}

# without bars
fixed_formula <- function(fit, call = caller_env()) {
  if (inherits(fit$bound, "bound_survival")) return(fit$bound$terms)
  if (is.null(response_of(fit$bound))) {
    stop_classed("method", "Only a fit of a regression has a formula, but this is a fit of {describe_model(fit$bound)}.", call = call)
  }
  called_formula(text_formula(fit$bound$formula))
}

#' @rdname fit_regression
#' @importFrom stats family
#' @export
family.noiseaware_fit <- function(object, ...) {
  check_no_dots(...)
  response <- response_of(object$bound)
  if (is.null(response)) stop_classed("method", "Only a fit of a regression has a family, but this is a fit of {describe_model(object$bound)}.")
  response$family
}

#' @rdname fit_regression
#' @importFrom stats sigma
#' @export
sigma.noiseaware_fit <- function(object, ...) {
  check_no_dots(...)
  if (!identical(response_of(object$bound)$family$family, "gaussian")) {
    stop_classed("method", "Only a linear regression has a residual standard deviation.")
  }
  if (inherits(object$bound, "bound_weighted")) refuse_scatter(environment())
  object$bound$spec$fields[["sigma"]] %||% mean(parameter_matrix(object)[, "sigma"])
}

#' @rdname fit_regression
#' @importFrom stats fitted
#' @export
fitted.noiseaware_fit <- function(object, newdata = covariate_grid(object), level = 0.95, ...) {
  check_no_dots(...)
  found <- stats::predict(object, newdata, interval = "credible", level = level)
  if (length(dim(found)) == 3L) {
    rows <- lapply(dimnames(found)[[3L]], function(l) cbind(newdata, level = factor(l, dimnames(found)[[3L]]), as.data.frame(found[, , l])))
    rows <- do.call(rbind, rows)
    names(rows)[names(rows) == "fit"] <- "fitted"
    return(rows)
  }
  cbind(newdata, fitted = found[, "fit"], lower = found[, "lower"], upper = found[, "upper"])
}

#' @importFrom stats terms
#' @export
terms.noiseaware_fit <- function(x, ...) {
  terms <- stats::terms(fixed_formula(x))
  # as of a model frame, which broom.helpers asks for
  variables <- vapply(as.list(attr(terms, "variables"))[-1L], function(v) paste(deparse(v), collapse = ""), "")
  attr(terms, "dataClasses") <- stats::setNames(ifelse(variables %in% names(x$bound$levels), "factor", "numeric"), variables)
  terms
}

#' @importFrom stats model.matrix
#' @export
model.matrix.noiseaware_fit <- function(object, newdata = covariate_grid(object), ...) {
  check_no_dots(...)
  regression_of(object)
  found <- design_matrix(object, newdata)
  # which term a column is of, as packages that make tables ask
  plain <- tryCatch(stats::model.matrix(stats::delete.response(stats::terms(object)), covariate_grid(object)), error = function(e) NULL)
  if (identical(colnames(plain), colnames(found))) attributes(found)[c("assign", "contrasts")] <- attributes(plain)[c("assign", "contrasts")]
  found
}

most_grid_rows <- 1e5

# In place of the records: see the page of fit_regression.
covariate_grid <- function(fit) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  regression_of(fit)
  columns <- covariate_columns(fit$bound)
  variables <- unique(columns$variable)
  if (length(variables) == 0L) return(data.frame(row.names = 1L))
  levels <- fit$bound$levels
  numbers <- columns[!columns$variable %in% names(levels), ]
  k <- nrow(numbers)
  middle <- (numbers$lower + numbers$upper) / 2
  points <- matrix(middle, 1L + 2L * k, k, byrow = TRUE, dimnames = list(NULL, numbers$variable))
  points[cbind(2L * seq_len(k), seq_len(k))] <- numbers$lower
  points[cbind(2L * seq_len(k) + 1L, seq_len(k))] <- numbers$upper
  factors <- levels[setdiff(variables, numbers$variable)]
  rows <- prod(lengths(factors), nrow(points))
  if (rows > most_grid_rows) {
    stop_classed("argument", c("{.arg fit} must have at most 100,000 combinations of levels and bounds, but has {format(rows)}.",
                               i = "Give {.arg newdata} with the rows of interest."))
  }
  at <- expand.grid(c(list(seq_len(nrow(points))), lapply(factors, seq_along)))
  grid <- lapply(stats::setNames(nm = variables), function(v) {
    if (v %in% names(factors)) factor(factors[[v]][at[[v]]], factors[[v]]) else points[at[[1L]], v]
  })
  raw_columns(as.data.frame(grid, optional = TRUE))
}
