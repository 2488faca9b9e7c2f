# The evidence of a release under the normal distribution of its statistic, by bridge sampling (method "clt"): over the
# parameters and the variances omega^2 of Laplace noise, of which
#   p(theta) prod p(omega^2) N(z; n mu(theta), n V(theta) + diag(omega^2))
# is the density. The coordinates are the model's and log omega^2.

clt_evidence <- function(fit, draws, seed, call) {
  problem <- fit$problem
  check_clt_evidence(fit, call)
  absolute <- problem$kernel == "absolute"
  at <- fit$chains[[1L]]$state$theta
  unknown <- fit$bound$unknown
  log_density <- function(q) clt_log_density(problem, fit$bound$spec, at, unknown, q)
  bridged <- with_seed(seed, bridge_mixture(clt_places(fit, draws), log_density))
  # also for discrete noise, whose masses are taken to be the density's
  kernel <- sum(ifelse(absolute, log(2 * problem$scale), log(problem$scale) + log(2 * pi) / 2))
  value <- bridged$value + log_prior_constant(fit$bound$spec) + log_noise_constant(fit$release, call) + kernel
  new_evidence(value, bridged$error, join_notes("approximate: a normal approximation to the statistic's distribution (method \"clt\")", bridged$note))
}

check_clt_evidence <- function(fit, call) {
  problem <- fit$problem
  if (!is.null(problem$prior_n)) stop_no_evidence("The number of records is unknown.", call)
  if (problem$sampler == "gibbs") stop_no_evidence("The sampler {.val gibbs} does not draw from the normal approximation.", call)
  if (length(problem$released) < length(fit$release$value)) stop_no_evidence("The normal approximation does not include some of the released numbers.", call)
  if (bound_is_cut(fit$bound)) stop_no_evidence("The prior is truncated by {.arg within}.", call)
  if (!fit$bound$spec$name %in% names(prior_constants)) stop_no_evidence("The model is: {describe_model(fit$bound)}.", call)
}

# Coordinates in more iterations, spread over the chains: of the normal distribution alone, without the model's own update.
clt_places <- function(fit, draws) {
  problem <- fit$problem
  problem$conjugate <- 0
  absolute <- which(problem$kernel == "absolute")
  scale <- problem$scale[absolute]
  unknown <- fit$bound$unknown
  size <- length(unknown) + length(absolute)
  each <- ceiling(draws / length(fit$chains))
  run <- fit$run
  run$thin <- 1
  chains <- lapply(fit$chains, function(chain) {
    state <- .Call(ffi_duplicate, chain$state)
    run_blocks(problem, state, 100, run, function(...) NULL)
    iterate <- single_iterations(problem, state, run)
    t(matrix(vapply(seq_len(each), function(k) {
      statistic <- iterate()$statistic[problem$where]
      away <- abs(problem$released[absolute] - statistic[absolute])
      c(state$theta[unknown], -log(inverse_gaussian(1 / (scale * away), 1 / scale^2)))
    }, double(size)), size))
  })
  aperm(simplify2array(chains), c(1L, 3L, 2L))
}

# Michael, Schucany & Haas (1976); the mean may be infinite
inverse_gaussian <- function(mean, shape) {
  if (length(mean) == 0L) return(double())
  square <- stats::rnorm(length(mean))^2
  ratio <- mean * square / (2 * shape)
  # mean (1 + r - sqrt(2 r + r^2)), the smaller root
  small <- ifelse(is.finite(mean), mean / (1 + ratio + sqrt(2 * ratio + ratio^2)), shape / square)
  ifelse(is.finite(mean) & stats::runif(length(mean)) > mean / (mean + small), mean^2 / small, small)
}

clt_log_density <- function(problem, spec, at, unknown, q) {
  absolute <- which(problem$kernel == "absolute")
  own <- seq_along(unknown)
  theta <- matrix(at, length(at), nrow(q))
  theta[unknown, ] <- t(q[, own, drop = FALSE])
  v <- q[, -own, drop = FALSE]
  rate <- 1 / (2 * problem$scale[absolute]^2)
  of_noise <- if (length(absolute)) colSums(log(rate) + t(v) - rate * exp(t(v))) else 0
  here <- seq_along(problem$released)
  fixed <- problem$ridge + ifelse(problem$kernel == "absolute", 0, problem$scale^2)
  of_release <- vapply(seq_len(nrow(q)), function(k) {
    moments <- .Call(ffi_clt_moments, problem$moments, theta[, k, drop = FALSE])[[1L]]
    if (is.null(moments)) return(-Inf)
    cov <- problem$n * moments$cov[here, here, drop = FALSE]
    extra <- fixed
    extra[absolute] <- extra[absolute] + exp(v[k, ])
    diag(cov) <- diag(cov) + extra
    root <- tryCatch(chol(cov), error = function(e) NULL)
    if (is.null(root)) return(-Inf)
    away <- backsolve(root, problem$released - problem$n * moments$mean[here], transpose = TRUE)
    -sum(away^2) / 2 - sum(log(diag(root))) - length(here) / 2 * log(2 * pi)
  }, 0)
  .Call(ffi_model_log_prior, spec, theta) + of_noise + of_release
}

# ---- constants of the priors, in the coordinates of src/model/ -------------------------------------------------

log_prior_constant <- function(spec) prior_constants[[spec$name]](spec$fields)

gamma_prior_constant <- function(fields) fields[["shape"]] * log(fields[["rate"]]) - lgamma(fields[["shape"]])

prior_constants <- list(
  exponential = gamma_prior_constant,
  poisson = gamma_prior_constant,
  normal = function(fields) {
    mean <- if (is.null(fields[["mean"]])) log(fields[["prior_precision"]] / (2 * pi)) / 2 else 0
    mean + if (is.null(fields[["sd"]])) log(2) + inverse_gamma_constant(fields[["shape"]], fields[["rate"]]) else 0
  },
  mvnormal = function(fields) covariates_prior_constant(fields),
  lm = function(fields) covariates_prior_constant(fields) + coefficients_prior_constant(fields) + log_scale_constant(fields),
  glm = function(fields) covariates_prior_constant(fields) + coefficients_prior_constant(fields))

coefficients_prior_constant <- function(fields) {
  k <- length(fields[["centre"]])
  if (!is.null(fields[["beta"]])) return(0)
  if (!is.null(fields[["beta_df"]])) return(sum(log_student_constant(fields[["beta_df"]], fields[["beta_scale"]])))
  (log_determinant(matrix(fields[["beta_precision"]], k)) - k * log(2 * pi)) / 2
}

covariates_prior_constant <- function(fields) {
  p <- length(fields[["continuous"]])
  normal <- 0
  if (p > 0L && is.null(fields[["mean"]])) normal <- p / 2 * log(fields[["mean_kappa"]] / (2 * pi))
  if (p > 0L && is.null(fields[["cov_chol"]])) {
    df <- fields[["cov_df"]]
    normal <- normal + df / 2 * log_determinant(matrix(fields[["cov_scale"]], p)) - df * p / 2 * log(2) - log_multigamma(p, df / 2) + p * log(2)
  }
  factors <- split(fields[["alpha"]], rep(seq_along(fields[["factor_levels"]]), fields[["factor_levels"]]))
  normal - sum(vapply(factors, log_dirichlet_constant, 0))
}

# of the density of probabilities in sticks: src/base/sticks.h
log_dirichlet_constant <- function(alpha) sum(lgamma(alpha)) - lgamma(sum(alpha))
