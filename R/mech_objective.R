#' Objective perturbation
#'
#' Noise for a private regression. The coefficients z minimise
#' \deqn{\sum_i \ell(z; x_i) + \frac{\Delta}{2} |z|^2 + b'z}
#' over all of R^d, with a random vector b and a ridge Delta (Kifer, Smith & Thakurta 2012,
#' Algorithm 1, times n). Use it with [stat_objective()].
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget. If given alone, b has a density proportional to exp(-|b| / scale), where |b| is its length in `norm`, and the release is
#'   epsilon-differentially private.
#' @param delta With `epsilon`: b is normal with the standard deviation `sd` in every
#'   component, and the release is (epsilon, delta)-differentially private. Must be below 0.05.
#' @param ridge The ridge Delta. With a budget, `NULL` means 2 lambda / epsilon, see below.
#' @param scale,sd Instead of a budget, with `ridge`: for coefficients published by someone else, the scale or the standard deviation of b.
#' @param norm The norm |b|: `"L2"`, the Euclidean length, or `"Linf"`, the largest absolute component (Awan & Slavkovic 2021), which needs less noise for the
#'   same budget but is not available for normal b.
#'
#' @details
#' **The distribution of z.** The gradient of the objective is 0 at z, so b = -(G + Delta z), where G is the gradient of the loss at z. Since Delta > 0, the
#' objective is strictly convex: the map between b and z is one-to-one, with Jacobian determinant det(H + Delta I), where H is the Hessian at z. So z has the
#' density nu(-(G + Delta z)) det(H + Delta I), where nu is the density of b. G and H are sums over the records of terms that depend on z: this is the general
#' record additivity of Ju et al. (2022, Assumption 2).
#'
#' **Why it is private.** Let one record be replaced, and let B bound the length of a row (see [stat_objective()]). A record's contribution to H has rank one
#' and an eigenvalue of at most lambda = B^2 / 4. (1) The determinant without the record, det A, is at most the determinant with it, which is det A (1 + h'A^-1
#' h) <= det A (1 + lambda / Delta). So the determinants of neighbours differ by a factor of at most 1 + lambda / Delta. (2) G, and hence |b|, changes by at
#' most 2 B: a factor of at most exp(2 B / scale). Together
#' \deqn{\epsilon = 2 B / scale + \log(1 + \lambda / \Delta).}
#' The scale follows from `epsilon` and the ridge; with the default ridge the logarithm is less than epsilon / 2. To describe coefficients that were published
#' with another calibration, give `scale` or `sd` and `ridge`. If a record is added or removed, G changes by at most B, which replaces 2 B throughout; the
#' determinants differ by the same factor.
#'
#' (3) Normal b: let the two records have rows u and w. They move b by d = c u - c' w with |c|, |c'| <= 1
#' that depend on z, hence on b. The log ratio of the densities of b is at most
#' (|b'u| + |b'w|) / sd^2 + |d|^2 / (2 sd^2). The first sum is the larger of |b'(u + w)| and |b'(u - w)|. These are absolute values of two normal variables with
#' variances that add up to at most 4 B^2 sd^2. With r = 2 B / sd and k the upper delta / 2 quantile of the standard normal distribution it exceeds r k sd^2
#' with a probability of at most delta. This bound is convex in the split of the variance if k^2 >= 3, so it is largest if one of the two has all of it. Hence
#' epsilon = r k + r^2
#' / 2 + log(1 + lambda / Delta). With a record added or removed there is only
#' |b'w|, a normal variable of variance B^2 sd^2 or less, and r = B / sd.
#'
#' (4) `norm = "Linf"`: every component of G changes by at most 2 M, where M is the largest absolute entry that a row can have: 1 if all numbers are rescaled.
#' So 2 M replaces 2 B in (2), and (1) is unchanged. Such a b is a Gamma(d + 1) variable times `scale`, times a point drawn uniformly from the cube \[-1, 1\]^d.
#' Each component has the variance scale^2 (d + 1) (d + 2) / 3; with Euclidean noise the variance is scale^2 (d + 1). With p rescaled numbers, d = p + 1, the
#' standard deviation at the same ridge is smaller by the factor sqrt((d + 2) / (3 d)), 0.82 for one covariate and 0.68 for four. Under either norm, with
#' `ridge = B^2 / 4 / expm1((1 - q) * epsilon)` the share q of epsilon goes to b.
#'
#' @return A mechanism: an object of class `mech_objective`.
#' @section Errors: `noiseaware_error_mechanism`, also when it is combined with a statistic other than [stat_objective()], or if the ridge leaves no budget for
#'   the noise.
#' @references
#' Awan, J. and Slavkovic, A. (2021). Structure and sensitivity in differential privacy: comparing
#' K-norm mechanisms. *Journal of the American Statistical Association* 116, 935-954.
#' \doi{10.1080/01621459.2020.1773831}
#'
#' Kifer, D., Smith, A. and Thakurta, A. (2012). Private convex empirical risk
#' minimization and high-dimensional regression. *Proceedings of the 25th Annual
#' Conference on Learning Theory*, PMLR 23, 25.1-25.40.
#'
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022). Data augmentation MCMC for
#' Bayesian inference from privatized data. \doi{10.48550/arXiv.2206.00710}
#' @seealso [release_objective()] for a worked example.
#' @family mechanisms
#' @examples
#' mech_objective(epsilon = 1)
#' mech_objective(epsilon = 1, delta = 1e-6)
#' mech_objective(scale = 8, ridge = 2)
#' mech_objective(epsilon = 1, norm = "Linf")
#' @export
mech_objective <- function(..., epsilon = NULL, delta = NULL, ridge = NULL, scale = NULL, sd = NULL, norm = c("L2", "Linf")) {
  check_all_named(...)
  norm <- if (identical(norm, c("L2", "Linf"))) "L2" else check_choice(norm, "norm", c("L2", "Linf"), "mechanism")
  given <- check_one_of(list(epsilon = epsilon, scale = scale, sd = sd))
  if (given == "epsilon") {
    epsilon <- check_positive(epsilon, "epsilon", "mechanism")
  } else {
    if (is.null(ridge)) stop_classed("mechanism", "{.arg ridge} must be given with {.arg {given}}.")
    if (!is.null(delta)) stop_classed("mechanism", "{.arg delta} must be given with {.arg epsilon}, not with {.arg {given}}.")
    if (given == "scale") scale <- check_positive(scale, "scale", "mechanism") else sd <- check_positive(sd, "sd", "mechanism")
  }
  if (!is.null(delta)) {
    # up to 0.083 the normal bound holds, see (3)
    delta <- check_number(delta, "delta", "a positive number below 0.05", 0, 0.05, strict = TRUE, kind = "mechanism")
  }
  if (norm == "Linf" && (!is.null(delta) || !is.null(sd))) {
    stop_classed("mechanism", "{.arg norm} must be \"L2\" with {.arg {if (is.null(sd)) 'delta' else 'sd'}}: normal noise has no other norm.")
  }
  if (!is.null(ridge)) ridge <- check_positive(ridge, "ridge", "mechanism")
  new_mechanism("objective", "objective", epsilon = epsilon, delta = delta, ridge = ridge, scale = scale, sd = sd,
                norm = if (norm != "L2") norm, class = "mech_objective")
}

is_normal <- function(mechanism) !is.null(mechanism$delta) || !is.null(mechanism$sd)

is_largest <- function(mechanism) identical(mechanism$norm, "Linf")

# of the gradient, in the norm of b
objective_sensitivity <- function(mechanism, statistic, neighbours) {
  if (!is_largest(mechanism)) return(sensitivity(statistic, "L2", neighbours))
  (if (replaces(neighbours)) 2 else 1) * row_largest(statistic)
}

# scale of b and the ridge: what a budget comes to for rows of that length
objective_noise <- function(mechanism, statistic, call = caller_env(), neighbours = "replace") {
  size <- row_length(statistic)
  curvature <- size^2 / 4
  epsilon <- mechanism$epsilon
  if (is.null(epsilon)) return(list(scale = mechanism$scale %||% mechanism$sd, ridge = mechanism$ridge))
  ridge <- mechanism$ridge %||% (2 * curvature / epsilon)
  left <- epsilon - log1p(curvature / ridge)
  if (!(left > 0)) {
    least <- curvature / expm1(epsilon)
    stop_classed("mechanism", "{.arg ridge} must be larger than {format_number(least)} to leave a budget for the noise, but is {format_number(ridge)}.",
                 call = call)
  }
  ratio <- if (is.null(mechanism$delta)) left else {
    k <- stats::qnorm(mechanism$delta / 2, lower.tail = FALSE)
    2 * left / (k + sqrt(k^2 + 2 * left))
  }
  list(scale = objective_sensitivity(mechanism, statistic, neighbours) / ratio, ridge = ridge)
}

objective_density <- function(mechanism, statistic, coefficients, neighbours) {
  noise <- objective_noise(mechanism, statistic, neighbours = neighbours)
  list(name = "objective", fields = list(coefficients = as.double(coefficients), ridge = noise$ridge, scale = noise$scale,
                                         squared = as.double(is_normal(mechanism)),
                                         largest = as.double(is_largest(mechanism))))
}

# of b, the same for every component
#' @export
mechanism_scale.mech_objective <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  expand_scale(objective_noise(mechanism, statistic, call, neighbours)$scale, statistic, "scale", call)
}

# of the coefficients; it depends on the data
#' @export
mechanism_sd.mech_objective <- function(mechanism, scale) rep(NA_real_, length(scale))

#' @export
guarantee_of.mech_objective <- function(x, statistic = NULL, ..., neighbours = "replace") {
  if (!is.null(x$epsilon)) return(privacy_row(epsilon = x$epsilon, delta = x$delta %||% 0))
  if (is.null(x$scale) || is.null(statistic)) return(privacy_row())
  size <- row_length(statistic)
  privacy_row(epsilon = objective_sensitivity(x, statistic, neighbours) / x$scale + log1p(size^2 / 4 / x$ridge), delta = 0)
}

#' @export
format.mech_objective <- function(x, ...) {
  given <- Filter(Negate(is.null), unclass(x)[c("epsilon", "delta", "scale", "sd", "ridge")])
  paste0("objective perturbation, ", paste(names(given), "=", vapply(given, format_number, ""), collapse = ", "),
         if (is_largest(x)) ", largest component")
}

# ---- method "augment", calibration -----------------------------------------------

# Totals of gradient and Hessian, of which nothing is published.
#' @export
augment_part.mech_objective <- function(part, bound, n) {
  statistic <- part$statistic
  d <- length(statistic$components)
  size <- d + d * (d + 1) / 2
  c(objective_spec(statistic, part$value),
    list(kind = "totals", kernel = "density", index = integer(),
         density = objective_density(part$mechanism, statistic, part$value, part$neighbours),
         column = match(statistic$columns$name, bound$columns$name) - 1L, released = numeric(size), scale = rep(1, size)))
}

#' @export
log_noise.mech_objective <- function(part, data) {
  statistic <- part$statistic
  x <- record_matrix(data, statistic$columns, statistic$levels)
  total <- .Call(ffi_stat_total, objective_spec(statistic, part$value), x)
  .Call(ffi_density, objective_density(part$mechanism, statistic, part$value, part$neighbours), matrix(-total, 1L))
}

#' @export
mechanism_takes.mech_objective <- function(mechanism, statistic, kinds) inherits(statistic, "stat_objective")
