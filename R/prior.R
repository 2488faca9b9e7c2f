#' Priors and known values
#'
#' Priors of a model's parameters, and `fixed()` for parameters that are known.
#'
#' @param mean,sd,meanlog,sdlog,precision,shape,rate,kappa,scale,df,alpha,a,b,eta Hyperparameters, see
#'   below. A single number is used for all coordinates. Where the default is
#'   `NULL`, a weak prior is scaled by the public bounds when the model meets
#'   the release; `plot(fit, "prior")` and rstantools' `prior_summary()` of the fit show it.
#' @param within `NULL`, or bounds at which the prior is truncated, see below.
#'
#' @details
#' For coefficients:
#'
#' * `prior_normal(mean, sd)`: independent normal distributions. Also for the mean in [model_normal()].
#' * `prior_student_t(df, mean, sd)`: independent Student-t distributions with location `mean` and scale `sd`, for [model_lm()].
#' * `prior_nig(mean, precision, shape, rate)`: normal-inverse-gamma, sigma^2 ~
#'   InverseGamma(shape, rate) and beta given sigma^2 ~ N(mean, sigma^2
#'   precision^-1). `precision` is a number, the diagonal, or a matrix.
#'
#' The first two accept named values, as in `prior_normal(sd = c(age = 2, lwt = 1))`; coefficients that are not named keep the default. If you give the `sd` of
#' the intercept, the prior is for the reported intercept: the response where all covariates are zero. By default, it is for the response with the covariates at
#' the middle of their bounds, as in rstanarm and brms. A `mean` for the intercept is then the mean of that response.
#'
#' For the residual standard deviation sigma:
#'
#' * `prior_half_normal(scale)`, `prior_half_t(df, scale)`: a normal or Student-t distribution with location 0 and this scale, restricted to positive values.
#' * `prior_lognormal(meanlog, sdlog)`: log sigma is normal with this mean and standard deviation. It is the default if the coefficients do not have `prior_nig()`.
#' * `prior_exponential(rate)`.
#' * `prior_inverse_gamma(shape, rate)`: for the variance, sigma^2.
#'
#' For covariates and for records of other models:
#'
#' * `prior_niw(mean, kappa, scale, df)`: normal-inverse-Wishart, cov ~
#'   InverseWishart(df, scale), mean given cov ~ N(mean, cov / kappa).
#' * `prior_dirichlet(alpha)`: for the probabilities of a factor's levels, or of a table's cells. Without `alpha` the weights are equal and have the sum 2, but are
#'   at most 1 (see [model_table()]).
#' * `prior_gamma(shape, rate)`: for a rate. The default `rate` is scaled by the bounds: if the parameter equals its prior mean, the mean of the records is the
#'   middle of the bounds.
#' * `prior_lkj(eta)`: for the correlations of parameters that vary between sites, see [partial_pooling()]. The
#'   density is det(R)^(eta - 1); with `eta = 1` all correlation matrices are equally likely.
#' * `prior_beta(a, b)`: for a single probability, with mean a / (a + b).
#' * `prior_gamma_process(concentration, rate)`: for the hazards of a piecewise exponential or discrete distribution, see [model_survival()]. The
#'   increase of the cumulative hazard in an interval, divided by its mean, is Gamma(a, a), independently for each interval. Here a is the concentration times the
#'   interval's share of the time between the first and the last break. `rate` is the mean hazard per unit of time: one number (an exponential distribution) or
#'   one for each interval. If it is not given, it is estimated as the intercept.
#' * `prior_beta_process(concentration, rate)`: for the same hazards. The probability of the event in an interval, for those who enter it, is
#'   Beta(c h, c (1 - h)), independently for each interval, with h = 1 - exp(-rate x width). The concentration c is equivalent to a number of people
#'   observed before. The further c h is below 1, the slower the chains mix.
#'
#' By default, the concentration of both processes is twice the number of intervals, so that hazards differ by a factor of about 2.
#'
#' @section Priors scaled by the bounds:
#' Under the default priors, all means and standard deviations that records between the bounds can have are plausible. The central 90 per cent of the prior for
#' a standard deviation lies between 0.06 and 0.78 times the width of the bounds. (For records that are uniform between the bounds it is 0.29 times the width,
#' for records at both bounds 0.5 times.) Correlations are not shrunk towards 0. If only a noisy sum was published, the coverage of 95% intervals for a mean
#' depends on the standard deviation of the data. It is 98 per cent if that is 0.05 times the width, 95 per cent at 0.2, 93 per cent at 0.29 and 87 per cent at
#' 0.4: 94 per cent on average.
#'
#' Let c be the middle of a variable's bounds and h half their width, y the
#' response, and p the number of covariates (a factor counts as one). With covariates measured from
#' their middles, the priors are:
#'
#' | | `prior_nig()` | `prior_normal()`, `prior_student_t()` |
#' | --- | --- | --- |
#' | intercept | N(c_y, (4 sigma)^2) | location c_y, scale h_y |
#' | slope of a number | N(0, (4 sigma / (sqrt(p) h_x))^2) | location 0, scale 2 h_y / (sqrt(p) h_x) |
#' | coefficient of a level | N(0, (2 sigma / sqrt(p))^2) | location 0, scale h_y / sqrt(p) |
#' | sigma | sigma^2 ~ InverseGamma(3/4, (h_y / 5)^2) | log sigma ~ N(log(h_y / 4), 0.8^2) |
#'
#' With `prior_normal()` or `prior_student_t()` for the coefficients, the central 90 per cent of the prior for sigma lies between 0.03 and 0.47 times the width.
#' `prior_half_normal()` and `prior_half_t()` have the scale h_y / 2, and `prior_exponential()` has
#' the mean h_y / 2.
#'
#' The prior for q numeric covariates is `prior_niw(c, 1/16, 2 diag((h / 5)^2), q + 1/2)`, so
#' correlations have the density (1 - r^2)^(-1/4). Each variance is InverseGamma(3/4, (h / 5)^2), and a mean given its sd is N(c, (4 sd)^2), like the
#' intercept under `prior_nig()`. [model_mvnormal()] has the same prior.
#'
#' [model_lm()] has `prior_normal()` by default. Under `prior_nig()` slopes are scaled by sigma. This prior is conjugate and its chains are faster, but it shrinks
#' slopes towards 0 and inflates sigma if sigma is small relative to the bounds. On 48 real data sets whose bounds were declared as natural limits, 95%
#' intervals contained the estimates from the records in 89 per cent of cases with `prior_nig()`. With the default it was 97 per cent.
#' [model_normal()] has the `prior_nig()` of a regression without covariates.
#'
#' [model_logistic()] has the priors N(0, 2.5^2) for the intercept, N(0, (6 / (sqrt(p) h_x))^2) for slopes and N(0, (3 / sqrt(p))^2) for the
#' coefficients of levels. For covariates within their bounds, the linear predictor then has a standard deviation of about 4, whatever p is.
#'
#' These priors have the weight of a few records. They matter if there is so much noise that the release contains
#' little information: `plot(fit, "prior")` shows whether this is so. They also matter if the bounds are very wide for a variable. Its mean may then be more
#' than twenty standard deviations away from c. `prior_nig()` and `prior_niw()` put little mass on such means, and favour a larger variance instead. Narrower
#' bounds, or a smaller `precision` or `kappa`, prevent this.
#'
#' @section Truncated priors:
#' `prior_nig()` and `prior_niw()` may be truncated where bounds constrain the parameters
#' (Kazan & Reiter 2025). `within` restricts means to the range between two bounds, and standard deviations to at most half the distance between them, because
#' records between the bounds cannot have a larger one. `within` is `TRUE` for the statistic's bounds,
#' `c(lower, upper)`, or a named list of such pairs, one per variable. It truncates the
#' joint distribution of mean and sd (or cov). It is available for [model_normal()],
#' [model_mvnormal()] and the covariates of [model_lm()] and
#' [model_glm()]. The prior must have at least some mass there.
#'
#' @references
#' Kazan, Z. and Reiter, J. P. (2025). Bayesian inference under differential
#' privacy with bounded data. \doi{10.48550/arXiv.2405.13801}
#' @return A prior, for an argument of a model.
#' @section Errors: `noiseaware_error_prior`. Dimensions are checked when the
#'   model meets the release.
#' @family priors and parts of models
#' @examples
#' prior_normal(0, 2)
#' prior_normal(mean = c(age = 0), sd = c(age = 2, lwt = 1))
#' prior_student_t(df = 4)
#' prior_half_normal(scale = 10)
#' prior_nig(mean = 0, precision = 0.1, shape = 2, rate = 2)
#' fixed(sqrt(2))
#' @name priors
NULL

new_prior <- function(..., class) structure(list(...), class = c(class, "noiseaware_prior"))

# a number or a vector; a matrix where one may be given as a covariance or a precision
check_prior_numbers <- function(x, name, positive = FALSE, null = FALSE, matrix = FALSE, call = caller_env()) {
  if (null && is.null(x)) return(NULL)
  if (matrix && is.matrix(x)) {
    check_positive_definite(x, name, call)
    storage.mode(x) <- "double"
    return(x)
  }
  must <- paste0(if (positive) "positive ", "finite numbers", if (matrix) " or a matrix")
  if (!is.numeric(x) || length(x) == 0L || !is.null(dim(x)) || is.object(x)) stop_argument(name, must, describe(x), "prior", call)
  bad <- !is.finite(x) | (positive & x <= 0)
  if (any(bad)) stop_argument(name, must, describe_bad(x, bad), "prior", call)
  if (!is.null(names(x)) && !checkmate::test_names(names(x), "unique")) {
    stop_argument(name, "numbers with different names, or without names", paste("named", paste(dQuote(names(x), FALSE), collapse = ", ")),
                  "prior", call)
  }
  stats::setNames(as.double(x), names(x))
}

check_positive_definite <- function(x, name, call = caller_env()) {
  fault <- if (!is.numeric(x) || !all(is.finite(x))) "has values that are not finite numbers" else
    if (nrow(x) != ncol(x) || nrow(x) == 0L) paste("is", nrow(x), "x", ncol(x)) else
      if (!isSymmetric(unname(x))) "is not symmetric" else
        if (is.null(tryCatch(chol(x), error = function(e) NULL))) "is not positive definite"
  if (!is.null(fault)) {
    stop_classed("prior", "{.arg {name}} must be a symmetric, positive definite matrix, but {fault}.", call = call)
  }
}

#' @rdname priors
#' @export
prior_normal <- function(mean = NULL, sd = NULL) {
  new_prior(mean = check_prior_numbers(mean, "mean", null = TRUE), sd = check_prior_numbers(sd, "sd", TRUE, null = TRUE),
            class = "prior_normal")
}

#' @rdname priors
#' @export
prior_student_t <- function(df = 3, mean = NULL, sd = NULL) {
  new_prior(df = check_positive(df, "df", "prior"), mean = check_prior_numbers(mean, "mean", null = TRUE),
            sd = check_prior_numbers(sd, "sd", TRUE, null = TRUE), class = "prior_student_t")
}

#' @rdname priors
#' @export
prior_half_normal <- function(scale = NULL) {
  new_prior(scale = if (!is.null(scale)) check_positive(scale, "scale", "prior"), class = "prior_half_normal")
}

#' @rdname priors
#' @export
prior_half_t <- function(df = 3, scale = NULL) {
  new_prior(df = check_positive(df, "df", "prior"), scale = if (!is.null(scale)) check_positive(scale, "scale", "prior"),
            class = "prior_half_t")
}

#' @rdname priors
#' @export
prior_lkj <- function(eta = 2) new_prior(eta = check_positive(eta, "eta", "prior"), class = "prior_lkj")

#' @rdname priors
#' @export
prior_exponential <- function(rate = NULL) {
  new_prior(rate = if (!is.null(rate)) check_positive(rate, "rate", "prior"), class = "prior_exponential")
}

#' @rdname priors
#' @export
prior_lognormal <- function(meanlog = NULL, sdlog = 0.8) {
  new_prior(meanlog = if (!is.null(meanlog)) check_number(meanlog, "meanlog", kind = "prior"), sdlog = check_positive(sdlog, "sdlog", "prior"),
            class = "prior_lognormal")
}

#' @rdname priors
#' @export
prior_nig <- function(mean = NULL, precision = NULL, shape = NULL, rate = NULL, within = NULL) {
  prior <- new_prior(mean = check_prior_numbers(mean, "mean", null = TRUE),
            precision = check_prior_numbers(precision, "precision", TRUE, null = TRUE, matrix = TRUE),
            shape = if (!is.null(shape)) check_positive(shape, "shape", "prior"),
            rate = if (!is.null(rate)) check_positive(rate, "rate", "prior"), class = "prior_nig")
  prior$within <- check_within(within)
  prior
}

#' @rdname priors
#' @export
prior_inverse_gamma <- function(shape, rate) {
  check_given("prior")
  new_prior(shape = check_positive(shape, "shape", "prior"), rate = check_positive(rate, "rate", "prior"),
            class = "prior_inverse_gamma")
}

#' @rdname priors
#' @export
prior_niw <- function(mean = NULL, kappa = 1 / 16, scale = NULL, df = NULL, within = NULL) {
  prior <- new_prior(mean = check_prior_numbers(mean, "mean", null = TRUE), kappa = check_positive(kappa, "kappa", "prior"),
            scale = check_prior_numbers(scale, "scale", TRUE, null = TRUE, matrix = TRUE),
            df = if (!is.null(df)) check_positive(df, "df", "prior"), class = "prior_niw")
  prior$within <- check_within(within)
  prior
}

# NULL, TRUE, c(lower, upper) or a named list of these
check_within <- function(within, call = caller_env()) {
  pair <- function(b) is.numeric(b) && length(b) == 2L && all(is.finite(b)) && b[1L] < b[2L]
  several <- is.list(within) && !is.object(within) && checkmate::test_names(names(within), "unique") && all(vapply(within, pair, TRUE))
  if (is.null(within) || isTRUE(within) || pair(within) || several) return(within)
  stop_argument("within", "NULL, TRUE, c(lower, upper) with lower < upper, or a named list of such bounds", describe(within), "prior", call)
}

# lower and upper for each of the model's variables
expand_within <- function(within, columns, call = caller_env()) {
  if (isTRUE(within)) return(list(lower = columns$lower, upper = columns$upper))
  if (is.list(within)) {
    if (!setequal(names(within), columns$name)) {
      stop_classed("prior", "{.arg within} must have an entry for each of {.var {columns$name}} and no other, but has {.var {names(within)}}.",
                   call = call)
    }
    within <- within[columns$name]
    return(list(lower = vapply(within, `[`, 0, 1L, USE.NAMES = FALSE), upper = vapply(within, `[`, 0, 2L, USE.NAMES = FALSE)))
  }
  list(lower = rep(within[1L], nrow(columns)), upper = rep(within[2L], nrow(columns)))
}

# Draws of a prior that is cut off are made by rejection: it must have some mass
# there. `inside` says of draws in natural values whether they are.
check_within_mass <- function(spec, inside, call) {
  theta <- .Call(ffi_model_prior, spec, new_stream(c(1, 2)), 4000L)$theta
  if (mean(inside(t(.Call(ffi_model_report, spec, theta)))) < 0.005) {
    stop_classed("prior", c("The prior must have some of its mass {.arg within} the bounds, but has almost none there.",
                            i = "The mean must lie between them, and the sd must be at most half their width."), call = call)
  }
}

#' @rdname priors
#' @export
prior_dirichlet <- function(alpha = NULL) {
  new_prior(alpha = if (!is.null(alpha)) check_prior_numbers(alpha, "alpha", TRUE), class = "prior_dirichlet")
}

#' @rdname priors
#' @export
prior_gamma <- function(shape = 1, rate = NULL) {
  new_prior(shape = check_positive(shape, "shape", "prior"),
            rate = if (!is.null(rate)) check_positive(rate, "rate", "prior"), class = "prior_gamma")
}

#' @rdname priors
#' @export
prior_beta <- function(a = 1, b = 1) {
  new_prior(a = check_positive(a, "a", "prior"), b = check_positive(b, "b", "prior"), class = "prior_beta")
}

#' @rdname priors
#' @param value The known value: a number, a vector, a matrix or a list of these. Text is passed to `fixed()` of the package stringr, if that is attached. If it
#'   was attached later, write `noiseaware::fixed()`.
#' @param ... Must be empty for numbers.
#' @export
fixed <- function(value, ...) {
  check_given("prior")
  if (is.character(value) && "package:stringr" %in% search()) return(getExportedValue("stringr", "fixed")(value, ...))
  check_no_dots(...)
  finite <- function(v) is.numeric(v) && length(v) > 0L && all(is.finite(v))
  ok <- if (is.list(value)) length(value) > 0L && all(vapply(value, finite, TRUE)) else finite(value)
  if (!ok) stop_argument("value", "finite numbers", describe(value), "prior")
  new_prior(value = value, class = "fixed")
}

#' @export
format.noiseaware_prior <- function(x, ...) {
  parts <- unclass(x)
  within <- parts$within
  parts$within <- NULL
  if (inherits(x, "fixed")) {
    value <- if (is.list(x$value)) vapply(x$value, describe_value, "") else describe_value(x$value)
    return(paste0("fixed at ", paste0(if (is.list(x$value)) paste0(names(x$value), " "), value, collapse = ", ")))
  }
  open <- vapply(parts, is.null, TRUE)
  values <- vapply(parts[!open], describe_value, "")
  text <- if (!length(values)) if (inherits(x, "prior_dirichlet")) "weights that sum to 2" else "scaled by the bounds" else
    paste(c(paste(names(values), "=", values, collapse = ", "),
            if (any(open)) paste(paste(names(parts)[open], collapse = ", "), "by default")), collapse = "; ")
  cut <- if (isTRUE(within)) "within the bounds" else if (is.list(within))
    paste("within", paste(names(within), vapply(within, describe_interval, ""), collapse = ", ")) else
      if (!is.null(within)) paste("within", describe_interval(within))
  paste0(sub("prior_(n_)?", "", class(x)[1L]), "(", paste(c(text, cut), collapse = "; "), ")")
}

describe_interval <- function(x) paste0("[", paste(format_number(x), collapse = ", "), "]")

describe_value <- function(x) {
  if (is.matrix(x)) return(paste0("<", nrow(x), " x ", ncol(x), " matrix>"))
  if (length(x) == 1L && is.null(names(x))) return(format_number(x))
  numbers <- format_number(x)
  paste0("(", shorten_list(if (is.null(names(x))) numbers else paste(names(x), numbers), 6L), ")")
}

#' @export
print.noiseaware_prior <- function(x, ...) {
  cat("<prior> ", if (inherits(x, "prior_n")) "of n: ", format(x), "\n", sep = "")
  invisible(x)
}

# Dirichlet weights of k levels: those that were given, or equal ones
expand_weights <- function(prior, k, name = "alpha", call = caller_env(), coordinates = NULL) {
  expand_prior(prior$alpha %||% min(1, 2 / k), k, name, call, coordinates)
}

# One value for each of k coordinates; named values are put in their order.
expand_prior <- function(x, k, name, call = caller_env(), coordinates = NULL) {
  if (!length(x) %in% c(1L, k)) {
    many <- if (k > 1L) paste(" or", k, "values")
    stop_classed("prior", "{.arg {name}} must have one value{many}, but has {length(x)}.", call = call)
  }
  if (!is.null(names(x)) && !is.null(coordinates) && length(x) == k) {
    if (!setequal(names(x), coordinates)) {
      stop_classed("prior", "{.arg {name}} must be named {.val {coordinates}}, or have no names; its names are {.val {names(x)}}.",
                   call = call)
    }
    x <- x[coordinates]
  }
  rep_len(as.double(x), k)
}

# a number, a diagonal or a matrix as a k x k matrix
expand_matrix <- function(x, k, name, call = caller_env()) {
  if (is.matrix(x)) {
    if (nrow(x) != k) {
      stop_classed("prior", "{.arg {name}} must be a {k} x {k} matrix, but is {nrow(x)} x {ncol(x)}.", call = call)
    }
    return(unname(x))
  }
  diag(expand_prior(x, k, name, call), k)
}
