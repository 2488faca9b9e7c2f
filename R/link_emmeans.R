# emmeans: a reference grid from declared bounds and levels, draws as the basis.

#' @exportS3Method emmeans::recover_data
recover_data.noiseaware_fit <- function(object, data = NULL, ...) {
  object <- average_or_one(object, "object", environment())
  smooth <- object$bound$smooth
  # emmeans would call s()
  formula <- if (is.null(smooth)) fixed_formula(object) else called_formula(stats::reformulate(vapply(smooth$variables[-1L], format_name, "")))
  terms <- stats::delete.response(stats::terms(formula))
  emmeans::recover_data(call("sample_posterior"), terms, na.action = NULL, data = data %||% emmeans_grid(object), ...)
}

# A grid whose means are where conditional_effects() and plots hold numbers, and whose ranges are the bounds
emmeans_grid <- function(fit) {
  grid <- covariate_grid(fit)
  for (v in intersect(names(grid), setdiff(covariate_columns(fit$bound)$variable, names(fit$bound$levels)))) {
    ends <- range(covariate_range(fit, v, 2L))
    grid[[v]] <- c(ends, rep((nrow(grid) * held_number(fit, v) - sum(ends)) / (nrow(grid) - 2L), nrow(grid) - 2L))
  }
  grid
}

#' @exportS3Method emmeans::emm_basis
emm_basis.noiseaware_fit <- function(object, trms, xlev, grid, ...) {
  object <- average_or_one(object, "object", environment())
  if (inherits(object$bound, "bound_categories")) return(emm_basis_categories(object, grid))
  draws <- coefficient_draws(object)
  # a label for rates, which emmeans knows by the name of the Poisson family
  family <- stats::family(object)
  if (family$family == "negative_binomial") family$family <- "poisson"
  list(X = design_matrix(object, grid), bhat = colMeans(draws), nbasis = matrix(NA), V = stats::cov(draws),
       dffun = function(k, dfargs) Inf, dfargs = list(), misc = emmeans::.std.link.labels(family, list()),
       post.beta = structure(draws, n.chains = posterior::nchains(object$draws)))
}

# For ordered levels this is the linear predictor, which has no intercept.
emm_basis_categories <- function(object, grid) {
  if (!is_ordered_family(object$bound$model)) {
    stop_classed("method", c("emmeans needs a single linear predictor, but {.val categorical} has one for each level except the first.",
                             i = "{.fn predict} and marginaleffects give the probabilities of the levels."))
  }
  draws <- coefficient_draws(object)[, object$bound$design$name[-1L], drop = FALSE]
  list(X = design_matrix(object, grid)[, -1L, drop = FALSE], bhat = colMeans(draws), nbasis = matrix(NA), V = stats::cov(draws),
       dffun = function(k, dfargs) Inf, dfargs = list(), misc = list(), post.beta = structure(draws, n.chains = posterior::nchains(object$draws)))
}
