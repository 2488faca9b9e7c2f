#' Covariates known only by their moments
#'
#' For a regression under method `"clt"`, it is enough to know the covariates' moments up to the fourth (Bernstein & Sheldon 2019, section 3.4.4). Give this
#' object to [model_lm()] instead of a distribution for the covariates. The moments are computed from draws of a prior on the covariates, or from a release of
#' [stat_moments4()].
#'
#' @param draws A data frame or matrix of draws from the prior on the covariates, with columns named by the covariates and at least 100 rows; more rows
#'   reduce the Monte Carlo error of the moments. **Never the confidential records.** `NULL`: the moments come from the [stat_moments4()] in the release.
#'
#' @details
#' The paper's three sources of moments are
#' * **update**: `covariates = prior_niw()`, the default of [model_lm()].
#'   Normal covariates with unknown mean and covariance, which are also drawn.
#' * **prior**: `covariates = fixed(list(mean = , cov = ))` for normal
#'   covariates, with moments in closed form; `covariate_moments(draws)` for any
#'   other distribution.
#' * **noisy**: `covariate_moments()`. The noise in the moments is not accounted
#'   for. They are divided by n, moved into the ranges allowed by the bounds and to a positive definite covariance (the fit reports this), and then treated as
#'   true. Intervals may be slightly off if that noise is large.
#'
#' The covariates' mean and covariance are then not parameters. Methods that draw records need a distribution for the covariates, so they are not available for
#' such a model. Factors cannot be among the covariates, because neither a release nor draws of numbers contain their joint moments with the others.
#'
#' @return An object to pass to [model_lm()] as `covariates`.
#' @section Errors: `noiseaware_error_prior`; when the model is fitted to the release, `noiseaware_error_moments` (it contains no fourth moments of these
#'   covariates) and `noiseaware_error_method`.
#' @references
#' Bernstein, G. and Sheldon, D. (2019). Differentially private Bayesian linear
#' regression. *Advances in Neural Information Processing Systems* 32.
#' @family priors and parts of models
#' @examples
#' set.seed(1)
#' covariate_moments(data.frame(age = 14 + 36 * rbeta(1e4, 2, 4)))
#'
#' bounds <- list(bwt = c(500, 5500), age = c(14, 50))
#' st <- list(regression = stat_crossprod(bwt ~ age, bounds),
#'   covariates = stat_moments4(~ age, bounds["age"]))
#' half <- mech_laplace(epsilon = 1)
#' rel <- simulate_release(MASS::birthwt, st, list(regression = half, covariates = half))
#' sample_posterior(rel, model_lm(covariates = covariate_moments()), method = "clt",
#'   chains = 2, iter = 1000, seed = 1)
#' @export
covariate_moments <- function(draws = NULL) {
  if (is.null(draws)) return(new_prior(class = "covariate_moments"))
  names <- if (is.data.frame(draws) || is.matrix(draws)) colnames(draws)
  ok <- length(names) > 0L && !anyDuplicated(names) && nrow(draws) >= 100 &&
    all(vapply(as.data.frame(draws), is.numeric, TRUE))
  if (!ok) {
    stop_argument("draws", "NULL, or a matrix or data frame of numbers with the covariates' names and 100 rows or more",
                  describe_shape(draws), "prior")
  }
  x <- matrix(as.double(unlist(draws)), ncol = length(names))
  if (!all(is.finite(x))) stop_argument("draws", "finite", "not", "prior")
  centre <- colMeans(x)
  unit <- apply(x, 2L, stats::sd)
  if (any(unit == 0)) {
    stop_classed("prior", "Every covariate in {.arg draws} must vary, but {.var {names[unit == 0]}} {?does/do} not.")
  }
  x <- sweep(sweep(x, 2L, centre), 2L, unit, "/")
  if (qr(x)$rank < ncol(x)) {
    stop_classed("prior", "No covariate in {.arg draws} may be a linear function of the others.")
  }
  p <- ncol(x)
  pairs <- product_pairs(p)
  x <- cbind(1, x)
  products <- x[, pairs[, 1L], drop = FALSE] * x[, pairs[, 2L], drop = FALSE]
  average <- colMeans(products)
  new_prior(names = names, scale = 1 / unit, shift = -centre / unit, mean = average[seq_len(p)],
            fourth = crossprod(sweep(products, 2L, average)) / nrow(x), projected = FALSE, draws = nrow(x),
            class = "covariate_moments")
}

# Distinct products of (1, x_1..x_p) but for the constant, row by row: columns
# of x, the constant being the first.
product_pairs <- function(p) {
  first <- rep(seq_len(p + 1L), (p + 1L):1L)
  second <- unlist(lapply(seq_len(p + 1L), function(i) i:(p + 1L)))
  cbind(first, second)[-1L, , drop = FALSE]
}

#' @export
format.covariate_moments <- function(x, ...) {
  if (is.null(x$names)) return("by the fourth moments in the release")
  if (is.null(x$draws)) return("by the release's fourth moments")
  sprintf("by the moments of %s draws", format(x$draws, big.mark = ",", decimal.mark = "."))
}

# What a model takes from the release before it is bound to the statistic.
complete_model <- function(model, release, call = caller_env()) UseMethod("complete_model")

#' @export
complete_model.default <- function(model, release, call = caller_env()) model

#' @export
complete_model.model_lm <- function(model, release, call = caller_env()) {
  if (is_open_moments(model$covariates)) model$covariates <- released_moments(release, call)
  noisy_records_prior(model, release$mechanism)
}

is_open_moments <- function(covariates) inherits(covariates, "covariate_moments") && is.null(covariates$names)

# Moments of covariates from their noisy totals, in the totals' own units
released_moments <- function(release, call) {
  check_no_factors(unlist(lapply(release_parts(release), function(p) names(p$statistic$levels))), call)
  part <- Find(function(p) inherits(p$statistic, "stat_moments4"), release_parts(release))
  if (is.null(part)) {
    stop_classed("moments", c("{.code covariate_moments()} without draws needs a {.fn stat_moments4} in the release, from which it takes the covariates' moments.",
                              x = "The release has none.",
                              i = "Release it with a share of the budget, or give draws from a prior on the covariates."), call = call)
  }
  statistic <- part$statistic
  fields <- statistic_fields(statistic)
  limits <- term_limits(statistic$powers, fields$lower, fields$upper)
  noisy <- part$value / release$n
  moment <- pmin(pmax(noisy, limits[, 1L]), limits[, 2L])
  names <- statistic$columns$name
  p <- length(names)
  # exponents of each product, and the moment that two products multiply to
  pairs <- product_pairs(p)
  exponents <- t(apply(pairs, 1L, function(pair) tabulate(pair, p + 1L)[-1L]))
  exponents <- matrix(exponents, ncol = p)
  key <- function(powers) do.call(paste, as.data.frame(powers))
  place <- function(a, b) match(key(exponents[a, , drop = FALSE] + exponents[b, , drop = FALSE]), key(statistic$powers))
  w <- seq_len(nrow(pairs))
  product <- match(key(exponents), key(statistic$powers))
  first <- moment[product]
  fourth <- outer(w, w, function(a, b) moment[place(a, b)]) - outer(first, first)
  least <- pmin(mechanism_sd(part$mechanism, part$scale)[place(w, w)] / release$n, (limits[product, 2L] - limits[product, 1L])^2 / 12)
  drowned <- diag(fourth) < least
  diag(fourth) <- pmax(diag(fourth), least)
  valid <- raise_eigenvalues(fourth)
  new_prior(names = names, scale = fields$scale, shift = fields$shift, mean = first[seq_len(p)], fourth = valid$matrix,
            projected = valid$projected || any(drowned) || any(moment != noisy), class = "covariate_moments")
}

# Eigenvalues of the matrix scaled to a unit diagonal that lie below a small
# floor are raised to it.
raise_eigenvalues <- function(matrix, floor = 1e-6) {
  unit <- sqrt(pmax(abs(diag(matrix)), .Machine$double.xmin))
  eigen <- eigen(matrix / outer(unit, unit), symmetric = TRUE)
  projected <- any(eigen$values < floor)
  if (projected) {
    scaled <- eigen$vectors %*% (pmax(eigen$values, floor) * t(eigen$vectors))
    matrix[] <- scaled * outer(unit, unit)
  }
  list(matrix = matrix, projected = projected)
}

# The moments in the order of the model's covariates.
bind_moments <- function(bound, call) {
  moments <- bound$model$covariates
  if (is_open_moments(moments)) {
    stop_classed("method", c("{.code covariate_moments()} without draws must be used with method {.val clt} and a release of {.fn stat_moments4}.",
                             i = "It does not define a distribution of records."), call = call)
  }
  covariates <- bound$columns$name[-1L]
  check_no_factors(names(bound$levels), call)
  if (!setequal(moments$names, covariates)) {
    stop_classed("moments", c("{.fn covariate_moments} must have the model's covariates.",
                              x = "The model has {.var {covariates}}, the moments {.var {moments$names}}."), call = call)
  }
  order <- match(covariates, moments$names)
  p <- length(order)
  pairs <- product_pairs(p)
  moved <- c(1L, order + 1L)
  place <- matrix(0L, p + 1L, p + 1L)
  place[pairs] <- place[pairs[, 2:1]] <- seq_len(nrow(pairs))
  rows <- place[cbind(moved[pairs[, 1L]], moved[pairs[, 2L]])]
  moments$names <- covariates
  moments$scale <- moments$scale[order]
  moments$shift <- moments$shift[order]
  moments$mean <- moments$mean[order]
  moments$fourth <- unname(moments$fourth)[rows, rows, drop = FALSE]
  moments
}

check_no_factors <- function(factors, call) {
  if (length(factors)) {
    stop_classed("moments", c("{.fn covariate_moments} supports only numbers: joint moments of the factor{?s} {.var {factors}} and the numbers are missing.",
                              i = "Give the numbers a distribution, {.fn prior_niw} or {.fn fixed}; for factors use {.arg levels}."), call = call)
  }
}

# the mean and covariance among them, for the model's C code
moments_distribution <- function(moments) {
  x <- seq_along(moments$names)
  list(mean = fixed((moments$mean - moments$shift) / moments$scale),
       cov = fixed(moments$fourth[x, x, drop = FALSE] / outer(moments$scale, moments$scale)))
}

# Methods that draw records, or move their totals exactly, need a distribution of the
# covariates.
check_records_distribution <- function(bound, call = caller_env()) {
  if (are_public(bound$model)) {
    stop_classed("method", c("Records can be drawn only from a model with a distribution for its covariates; public covariates have none.",
                             i = "{.fn simulate} and {.fn predict} draw new responses."), call = call)
  }
  if (!is.null(bound$moments)) {
    stop_classed("method", c("Records can be drawn only from a model with a distribution for its covariates; {.fn covariate_moments} has none.",
                             i = "Give {.arg covariates} a {.fn prior_niw} or a fixed mean and covariance, or use method {.val clt}."), call = call)
  }
}
