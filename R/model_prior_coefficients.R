# Priors of a regression's coefficients and of its residual sd, as C reads them:
# src/model/lm.c, src/model/glm.c, src/model/scale_prior.c. Everything is stated for
# covariates (and the response) measured from the middles of their bounds.

# The default scales of the coefficients, the intercept's first, in units of the standard
# deviation of what the covariates do not explain. `columns` has the response first. All
# covariates together have the same share however many there are.
default_scales <- function(columns, intercept = 2) {
  covariates <- columns[-1L, ]
  unit <- ifelse(is.na(covariates$level), (covariates$upper - covariates$lower) / 4, 1)
  c(intercept, 2 / (sqrt(length(unique(covariates$variable))) * unit))
}

# and that standard deviation where it is no parameter of their prior
default_sigma <- function(columns) default_unit(half_of_response(columns))

# The same in the response's units, where sigma has a prior of its own. A slope is twice as wide: a covariate may explain nearly all of a response that uses
# its bounds fully.
default_coefficient_sd <- function(columns) c(default_mean_sd(half_of_response(columns)), 2 * default_sigma(columns) * default_scales(columns)[-1L])

half_of_response <- function(columns) (columns$upper[1L] - columns$lower[1L]) / 2

coefficient_names <- function(columns) c("(Intercept)", columns$name[-1L])

# Values by position or by name; what is not given has the default.
expand_named <- function(x, default, name, coordinates, call) {
  if (is.null(x)) return(default)
  if (is.null(names(x))) return(expand_prior(x, length(default), name, call))
  unknown <- setdiff(names(x), coordinates)
  if (length(unknown)) {
    stop_classed("prior", c("{.arg {name}} must be named by coefficients, but has {.val {unknown}}.",
                            i = "The coefficients are {.val {coordinates}}."), call = call)
  }
  default[match(names(x), coordinates)] <- x
  default
}

# What a prior_normal() or prior_student_t() says. `centring`: see there. `scale`: the default one. Row j of `rows`, times
# the centred coefficients, is what the prior with the sd j, and a mean j that is given, is of: the natural coefficient where the sd is
# given, else the centred one, of the intercept the response at the middles. `mean`: of the centred coefficients. `middle`: the default mean of
# the centred intercept.
independent_coefficients <- function(prior, columns, centring, scale, call, middle = 0) {
  names <- coefficient_names(columns)
  k <- length(names)
  given <- function(x) if (is.null(x)) logical(k) else if (is.null(names(x))) !logical(k) else names %in% names(x)
  natural <- given(prior$sd)
  rows <- diag(k)
  rows[natural, ] <- centring$matrix[natural, ]
  mean <- expand_named(prior$mean, numeric(k), "mean", names, call)
  mean[1L] <- if (!given(prior$mean)[1L]) middle + sum(rows[1L, -1L] * mean[-1L]) else mean[1L] - if (natural[1L]) centring$shift[1L] else columns$centre[1L]
  list(mean = solve_triangular(rows, mean, centring), sd = expand_named(prior$sd, scale, "sd", names, call), rows = rows)
}

# for rows of a centring's matrix, or of the identity
solve_triangular <- function(rows, x, centring) {
  order <- centring$order %||% seq_along(x)
  x[order] <- backsolve(rows[order, order, drop = FALSE], x[order])
  x
}

independent_coefficient_fields <- function(prior, columns, centring, scale, call, middle = 0) {
  said <- independent_coefficients(prior, columns, centring, scale, call, middle)
  k <- length(said$mean)
  if (inherits(prior, "prior_student_t")) {
    if (any(said$rows[-1L, ] != diag(k)[-1L, ])) {
      stop_classed("prior", c("{.fn prior_student_t} cannot have an {.arg sd} for variables that are in products or powers.",
                              i = "Leave out the {.arg sd}, or use {.fn prior_normal}."), call = call)
    }
    return(list(beta_mean = said$mean, beta_df = prior$df, beta_scale = said$sd, beta_first = said$rows[1L, ]))
  }
  precision <- crossprod(said$rows, diag(1 / said$sd^2, k) %*% said$rows)
  list(beta_mean = said$mean, beta_precision = as.double((precision + t(precision)) / 2))
}

# of a prior_nig()
nig_coefficient_fields <- function(prior, columns, centring, call) {
  names <- coefficient_names(columns)
  k <- length(names)
  precision <- if (is.null(prior$precision)) diag(1 / default_scales(columns, 1 / sqrt(default_mean_weight))^2, k) else
    crossprod(centring$matrix, expand_matrix(prior$precision, k, "precision", call) %*% centring$matrix)
  mean <- if (is.null(prior$mean)) numeric(k) else centre_coefficients(centring, expand_prior(prior$mean, k, "mean", call, names))
  list(beta_mean = mean, beta_precision = as.double((precision + t(precision)) / 2))
}

# The residual sd; `scale`: the default one; `half`: of the bounds that scale a prior of its square. In a prior_nig() the coefficients' scale hangs on
# it; on its own it may be much smaller than the standard deviation of the response.
sigma_fields <- function(prior, scale, half) {
  if (inherits(prior, "fixed")) return(list(sigma = as.double(prior$value)))
  switch(class(prior)[1L],
    prior_half_normal = list(sigma_half_normal = prior$scale %||% scale),
    prior_half_t = list(sigma_half_t = c(prior$df, prior$scale %||% scale)),
    prior_exponential = list(sigma_exponential = prior$rate %||% (1 / scale)),
    prior_lognormal = list(sigma_lognormal = c(prior$meanlog %||% log(scale / 2), prior$sdlog)),
    list(sigma_inverse_gamma = inverse_gamma_numbers(prior, half)))
}

# The inverse of a positive definite matrix. solve() takes one for singular whose rows have units far apart.
invert_positive <- function(x) chol2inv(chol(x))
