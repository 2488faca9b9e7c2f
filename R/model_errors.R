# Non-normal errors of a linear regression: src/model/lm_errors.c.

# that a prior allows: LEAST in src/model/lm_errors.c
least_df <- 1

#' Student-t errors
#'
#' For `model_lm(errors = student())`: responses with occasional outliers, such as wages, prices or times. The residuals are `sigma` times a Student-t variable
#' instead of a normal one, so that single outliers have little influence on the regression line.
#'
#' @param df Degrees of freedom: a [prior_gamma()], truncated below at 1; or `fixed(value)`, or the value itself, of at least 1. The default is
#'   `prior_gamma(2, 0.1)` (Juarez and Steel 2010), with median 17 and 90% of its mass between 4 and 47. With 30 or more degrees of freedom errors are close to
#'   normal; with 1 they have neither a mean nor a variance.
#'
#' @details
#' `sigma` is the scale of the errors. Their standard deviation is sigma sqrt(df / (df - 2)), if df is above 2. Priors for `sigma` and for the coefficients are
#' the same as for normal errors.
#'
#' **Information in a release.** Totals of responses and of their squares contain little information about `df`: a few outliers look like a larger sigma.
#' Without information in the release, the prior decides. If records are clamped to the bounds, outliers hardly matter, whatever their distribution. A
#' [stat_histogram()] of the response is more informative, and so are noisy responses of single records ([stat_records()]). The model fits a robust regression,
#' not least squares; the slopes of the two differ if the errors' distribution is not symmetric.
#'
#' **Method.** Only `"augment"`, which is exact. A t distribution is a scale mixture of normal ones (Geweke 1993): given the weight of each record, Gamma(df /
#' 2, df / 2), the coefficients and sigma are drawn as with normal errors. Weights are drawn given the records, and df given the weights. Moves of all records
#' hold both the normal part and the quantile of the weight fixed. With much noise, this takes far longer than normal errors. A default call with 500 records
#' takes half a minute of processor time at an epsilon of 1, and two to three seconds at 10.
#'
#' @return An error distribution for [model_lm()], of class `noiseaware_errors`. The model has the parameter `df` if the degrees of freedom are not known.
#' @section Errors: `noiseaware_error_prior`.
#' @references
#' Geweke, J. (1993). Bayesian treatment of the independent Student-t linear model. *Journal of Applied Econometrics* 8, S19-S40.
#' \doi{10.1002/jae.3950080504}
#'
#' Juarez, M. A. and Steel, M. F. J. (2010). Model-based clustering of non-Gaussian panel data based on skew-t distributions. *Journal of Business & Economic
#' Statistics* 28, 52-66. \doi{10.1198/jbes.2009.07145}
#' @family priors and parts of models
#' @examples
#' model_lm(wage ~ education, errors = student())
#' st <- stat_crossprod(mpg ~ wt, list(mpg = c(5, 40), wt = c(1, 6)))
#' set.seed(1)
#' rel <- simulate_release(mtcars, st, mech_laplace(epsilon = 10))
#' fit <- sample_posterior(rel, model_lm(errors = student(df = 4)), chains = 2, iter = 400, seed = 1)
#' summary(fit)
#' @export
student <- function(df = prior_gamma(2, 0.1)) {
  if (is.numeric(df)) df <- fixed(check_positive(df, "df", "prior"))
  check_class(df, "df", c("prior_gamma", "fixed"), "prior_gamma(), fixed() or a number", "prior")
  if (inherits(df, "fixed")) {
    check_number(df$value, "df", paste("a number of at least", least_df), lower = least_df, kind = "prior")
  } else {
    if (is.null(df$rate)) stop_classed("prior", "{.arg df} must have a rate, because bounds do not scale it.")
    beyond <- stats::pgamma(least_df, df$shape, df$rate, lower.tail = FALSE)
    if (beyond < 0.005) stop_classed("prior", "{.arg df} is truncated below {least_df}, so it must have some of its mass above, but has almost none there.")
  }
  structure(list(df = df), class = "noiseaware_errors")
}

#' @export
format.noiseaware_errors <- function(x, ...) paste("Student-t, df", format(x$df))

#' @export
print.noiseaware_errors <- function(x, ...) {
  cat("<errors> ", format(x), "\n", sep = "")
  invisible(x)
}

is_student <- function(model) !is.null(model$errors)

# What `errors` is, where student() is ours even if brms, which has a family of that name, was attached later.
own_student <- function(given) {
  call <- rlang::quo_get_expr(given)
  env <- rlang::quo_get_env(given)
  if (is.call(call) && identical(call[[1L]], quote(student))) env <- list2env(list(student = student), parent = env)
  eval(call, env)
}

check_errors <- function(errors, covariates, call = caller_env()) {
  if (is.null(errors)) return(NULL)
  # by name, or a variable with brms's family of that name
  if (identical(errors, "student") || inherits(errors, "brmsfamily") && identical(errors$family, "student")) errors <- student()
  check_class(errors, "errors", "noiseaware_errors", "NULL (normal errors) or student()", "prior", call)
  if (inherits(covariates, "covariate_moments")) {
    stop_classed("prior", c("{.arg covariates} must have a distribution if {.arg errors} are not normal, but {.fn covariate_moments} has none.",
                            i = "Method {.val augment} draws records."), call = call)
  }
  errors
}

error_fields <- function(errors) {
  if (is.null(errors)) return(NULL)
  df <- errors$df
  if (inherits(df, "fixed")) list(errors_df = as.double(df$value)) else list(errors_df_gamma = c(df$shape, df$rate))
}

# sigma of each draw of a fit
scale_of <- function(bound) function(fit) bound$spec$fields[["sigma"]] %||% parameter_matrix(fit)[, "sigma"]

# Such a regression is no bound_lm: what is known of normal records does not hold of its records.
#' @export
response_of.bound_student <- function(bound) {
  sigma <- scale_of(bound)
  df <- function(fit) bound$spec$fields[["errors_df"]] %||% parameter_matrix(fit)[, "df"]
  list(binary = FALSE, family = stats::gaussian(), mean = identity,
       draw = function(fit, expected) expected + sigma(fit) * stats::rt(length(expected), rep_len(df(fit), length(expected))),
       variance = function(fit, expected) 0 * expected + sigma(fit)^2 * t_variance(df(fit)))
}

t_variance <- function(df) ifelse(df > 2, df / (df - 2), Inf)

# for methods that know the distribution of normal records, or of their totals, alone
refuse_student <- function(method, call) refuse_errors(sprintf("Method \"%s\" needs", method), call, "Method {.val augment} works, and is exact.")

refuse_errors <- function(what, call, advice) {
  stop_classed("method", c("{what} normal errors.", x = "The model has {.fn student} errors.", i = advice), call = call)
}

#' @export
collapse_family.bound_student <- function(bound, call = caller_env()) refuse_student("collapse", call)

#' @export
clt_distribution.bound_student <- function(bound, release, call) refuse_student("clt", call)

#' @export
naive_complete.bound_student <- function(bound, release, call) refuse_student("naive", call)
