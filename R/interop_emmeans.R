# emmeans: a reference grid from declared bounds and levels, draws as the basis.

#' @exportS3Method emmeans::recover_data
recover_data.noiseaware_fit <- function(object, data = NULL, ...) {
  terms <- stats::delete.response(stats::terms(stats::formula(object)))
  emmeans::recover_data(call("sample_posterior"), terms, na.action = NULL, data = data %||% covariate_grid(object), ...)
}

#' @exportS3Method emmeans::emm_basis
emm_basis.noiseaware_fit <- function(object, trms, xlev, grid, ...) {
  draws <- coefficient_draws(object)
  # a label for rates, which emmeans knows by the name of the Poisson family
  family <- stats::family(object)
  if (family$family == "negative_binomial") family$family <- "poisson"
  list(X = design_matrix(object, grid), bhat = colMeans(draws), nbasis = matrix(NA), V = stats::cov(draws),
       dffun = function(k, dfargs) Inf, dfargs = list(), misc = emmeans::.std.link.labels(family, list()),
       post.beta = structure(draws, n.chains = posterior::nchains(object$draws)))
}
