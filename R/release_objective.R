# Releases by objective perturbation: the noise vector and the minimiser of the perturbed loss.

#' Release the coefficients of a private logistic regression
#'
#' Objective perturbation for data owners: draws the noise vector b, minimises the perturbed loss of [mech_objective()] and returns the minimiser as a release.
#'
#' @param data A data frame, one record per row, with every variable of the statistic and no missing values in these variables.
#' @param statistic A [stat_objective()].
#' @param mechanism A [mech_objective()].
#' @param budget `NULL`, or a [budget()] that is charged for the release; a release that would exceed it is refused.
#' @param neighbours As in [release()]. With `"add_remove"` the number of records is confidential.
#'
#' @details The minimiser is found by Newton's method to about machine precision. Steps that overshoot are shortened, but never below the step length of Sun &
#'   Tran-Dinh (2019), which cannot overshoot.
#'
#' **Not protected against attacks on floating-point numbers**, unlike [release()]: b comes from the operating system's entropy but is computed in double
#' precision, and the set of doubles that z can take depends on the records. The guarantee holds in exact arithmetic. [release()] of a [stat_crossprod()] has no
#' such weakness.
#'
#' The coefficients contain little information about the distribution of the covariates. If [model_logistic()] has no other information about it, also release a
#' statistic of the covariates, such as [stat_sums()], and describe both by [as_release()].
#'
#' Use [as_release()] for coefficients published by someone else, and [simulate_release()] for simulation studies. The posterior needs method `"augment"`. Any
#' model of the variables can be used, not only [model_logistic()].
#'
#' @return A release: an object of class `noiseaware_release`, with the coefficients as `value` and the scale of b as `scale`.
#' @section Errors: The errors of [release()]; `noiseaware_error_numerical` if the minimiser is not found.
#' @references
#' Kifer, D., Smith, A. and Thakurta, A. (2012). Private convex empirical risk
#' minimization and high-dimensional regression. *Proceedings of the 25th Annual
#' Conference on Learning Theory*, PMLR 23, 25.1-25.40.
#'
#' Sun, T. and Tran-Dinh, Q. (2019). Generalized self-concordant functions: a recipe for
#' Newton-type methods. *Mathematical Programming* 178, 145-213. \doi{10.1007/s10107-018-1282-4}
#' @family making releases
#' @examples
#' st <- stat_objective(low ~ age, bounds = list(low = c(0, 1), age = c(14, 50)))
#' rel <- release_objective(MASS::birthwt, st, mech_objective(epsilon = 3))
#' rel
#'
#' # The analyst knows from elsewhere how mothers' ages are distributed. The released
#' # coefficients are noisy and shrunken by the ridge; the posterior allows for both.
#' ages <- fixed(list(mean = 23, cov = 28))
#' fit <- sample_posterior(rel, model_logistic(covariates = ages), chains = 2, iter = 600, seed = 1)
#' summary(fit)
#' # what the coefficients would say if they were taken for those of the data, age mapped back
#' z <- unname(rel$value)
#' c(z[1] - z[2] * 32 / 18, z[2] / 18)
#' @export
release_objective <- function(data, statistic, mechanism, budget = NULL, neighbours = c("replace", "add_remove")) {
  check_given()
  neighbours <- match_neighbours(neighbours)
  check_class(statistic, "statistic", "stat_objective", "a statistic made by stat_objective()")
  check_class(mechanism, "mechanism", "mech_objective", "a mechanism made by mech_objective()", "mechanism")
  check_persons(design_parts(statistic, mechanism), neighbours, environment())
  cost <- privacy(mechanism, statistic = statistic, neighbours = neighbours)
  lock <- hold_budget(budget, neighbours)
  on.exit(unlock_budget(lock))
  check_affordable(budget, cost)
  result <- make_release(data, statistic, mechanism, neighbours, function(part, data, call) {
    simulated_part(part, data, call, entropy_uniform)
  }, "floating")
  spend(budget, cost, describe_statistic(statistic))
  result
}

#' @export
simulated_part.mech_objective <- function(part, data, call, uniform = stats::runif, total) {
  statistic <- part$statistic
  x <- record_matrix(data, statistic$columns, statistic$levels, call, empty = !replaces(part$neighbours))
  noise <- objective_noise(part$mechanism, statistic, call, part$neighbours)
  d <- length(statistic$components)
  b <- perturbation(d, noise$scale, part$mechanism, uniform)
  list(value = minimise_objective(objective_spec(statistic, numeric(d)), x, b, noise$ridge, call), scale = rep(noise$scale, d), unit = numeric(d))
}

# exp(-|b| / scale): a uniform direction, |b| Gamma(d, scale); or a point of a cube, whose size is Gamma(d + 1, scale)
perturbation <- function(d, scale, mechanism, uniform) {
  if (is_largest(mechanism)) return((2 * uniform(d) - 1) * scale * sum(-log(uniform(d + 1))))
  b <- stats::qnorm(uniform(d))
  if (is_normal(mechanism)) return(scale * b)
  b / sqrt(sum(b^2)) * scale * sum(-log(uniform(d)))
}

# Newton's steps from the specification's coefficients, halved while they overshoot. One of log(1 + r) / r, r = B |step|, never
# does: the loss's third derivative is at most B |v| times its second.
minimise_objective <- function(spec, x, b, ridge, call) {
  d <- length(b)
  size <- spec$fields$radius
  sums_at <- function(z) {
    spec$fields$coefficients <- z
    total <- .Call(ffi_stat_total, spec, x)
    list(gradient = total[seq_len(d)] + ridge * z + b, hessian = total[-seq_len(d)])
  }
  z <- spec$fields$coefficients
  at <- sums_at(z)
  for (k in 1:200) {
    root <- diag(ridge, d)
    above <- upper.tri(root, diag = TRUE)
    root[above] <- root[above] + at$hessian
    root <- chol(root)
    step <- -backsolve(root, backsolve(root, at$gradient, transpose = TRUE))
    r <- size * sqrt(sum(step^2))
    if (!is.finite(r)) break
    # what is left is of the order r^2, or the last bits
    if (r <= max(1e-9, 1e-13 * size * sqrt(sum(z^2)))) return(z + step)
    share <- 1
    least <- log1p(r) / r
    repeat {
      at <- sums_at(z + share * step)
      if (share <= least || sum(at$gradient * step) <= 0) break
      share <- max(share / 2, least)
    }
    z <- z + share * step
  }
  stop_classed("numerical", "The minimiser was not found. Is the ridge or the noise almost zero?", call = call)
}
