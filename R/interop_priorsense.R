# priorsense: how much the posterior follows from the prior, and from the published numbers, by
# powers of densities. The likelihood is that of the numbers given the confidential totals, the noise's density: the
# one given the parameters alone has no closed form.

#' @exportS3Method priorsense::create_priorsense_data
create_priorsense_data.noiseaware_fit <- function(x, ...) {
  priorsense::create_priorsense_data(posterior::as_draws_array(x$draws), fit = x, log_prior = log_prior_draws.noiseaware_fit(x),
                                     log_lik = log_lik_draws.noiseaware_fit(x), ...)
}

#' @exportS3Method priorsense::log_lik_draws
log_lik_draws.noiseaware_fit <- function(x, ...) {
  noise <- log_noise_draws(x)
  if (is.null(noise)) stop_classed("argument", "Method {.val {x$method}} has no draws of the noise, so there is no likelihood to raise to powers.")
  one_variable(noise, x, "log_lik")
}

#' @exportS3Method priorsense::log_prior_draws
log_prior_draws.noiseaware_fit <- function(x, ...) {
  one_variable(prior_log_density(x), x, "lprior")
}

one_variable <- function(values, fit, name) posterior::as_draws_array(array(values, c(dim(fit$draws)[1:2], 1L), list(NULL, NULL, name)))

# Of each draw, in natural values: powers of a density depend on the coordinates.
prior_log_density <- function(fit) {
  bound <- fit$bound
  theta <- apply(parameter_matrix(fit)[, bound$parameters, drop = FALSE], 1L, function(values) bound_theta(bound, values))
  theta <- matrix(theta, ncol = posterior::ndraws(fit$draws))
  .Call(ffi_model_log_prior, bound$spec, theta) - .Call(ffi_model_log_jacobian, bound$spec, theta)
}
