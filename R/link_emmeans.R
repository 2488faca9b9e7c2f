# emmeans: a reference grid from declared bounds and levels, draws as the basis.

#' @exportS3Method emmeans::recover_data
recover_data.noiseaware_fit <- function(object, data = NULL, ...) {
  refuse_own_parameters(object, "object", environment())
  smooth <- object$bound$smooth
  # emmeans would call s()
  formula <- if (is.null(smooth)) stats::formula(object) else called_formula(stats::reformulate(vapply(smooth$variables[-1L], format_name, "")))
  terms <- stats::delete.response(stats::terms(formula))
  emmeans::recover_data(call("sample_posterior"), terms, na.action = NULL, data = data %||% covariate_grid(object), ...)
}

#' @exportS3Method emmeans::emm_basis
emm_basis.noiseaware_fit <- function(object, trms, xlev, grid, ...) {
  if (inherits(object$bound, "bound_categories")) return(emm_basis_categories(object, grid))
  draws <- coefficient_draws(object)
  # a label for rates, which emmeans knows by the name of the Poisson family
  family <- stats::family(object)
  if (family$family == "negative_binomial") family$family <- "poisson"
  list(X = design_matrix(object, grid), bhat = colMeans(draws), nbasis = matrix(NA), V = stats::cov(draws),
       dffun = function(k, dfargs) Inf, dfargs = list(), misc = emmeans::.std.link.labels(family, list()),
       post.beta = structure(draws, n.chains = posterior::nchains(object$draws)))
}

# Of ordered levels the linear predictor, which has no intercept.
emm_basis_categories <- function(object, grid) {
  if (!is_ordered_family(object$bound$model)) {
    stop_classed("method", c("emmeans needs a single linear predictor, but {.val categorical} has one for each level except the first.",
                             i = "{.fn predict} and marginaleffects give the probabilities of the levels."))
  }
  draws <- coefficient_draws(object)[, object$bound$design$name[-1L], drop = FALSE]
  list(X = design_matrix(object, grid)[, -1L, drop = FALSE], bhat = colMeans(draws), nbasis = matrix(NA), V = stats::cov(draws),
       dffun = function(k, dfargs) Inf, dfargs = list(), misc = list(), post.beta = structure(draws, n.chains = posterior::nchains(object$draws)))
}
