# priorsense: sensitivity of the posterior to the prior and to the published numbers, by powers of densities. The likelihood is the
# density of the numbers given the parameters if it is known: for one rate or probability, whose total is summed out. Otherwise it is the density of the
# noise, given the confidential totals.

#' @exportS3Method priorsense::create_priorsense_data
create_priorsense_data.noiseaware_fit <- function(x, ...) {
  prior <- log_prior_draws.noiseaware_fit(x)
  likelihood <- release_log_lik(x)
  if (is.null(likelihood)) {
    cli::cli_inform(c("The likelihood of this fit is unknown, so it has no component {.val likelihood}.", i = "Use {.code component = \"prior\"}."),
                    class = "noiseaware_message_likelihood")
    likelihood <- double(posterior::ndraws(x$draws))
  }
  priorsense::create_priorsense_data(posterior::as_draws_array(x$draws), fit = x, log_prior = prior, log_lik = one_variable(likelihood, x, "log_lik"), ...)
}

#' @exportS3Method priorsense::log_lik_draws
log_lik_draws.noiseaware_fit <- function(x, ...) {
  likelihood <- release_log_lik(x)
  if (is.null(likelihood)) {
    stop_classed("argument", "The likelihood of this fit is unknown and cannot be raised to powers: method {.val {x$method}} has no draws of the noise.")
  }
  one_variable(likelihood, x, "log_lik")
}

#' @exportS3Method priorsense::log_prior_draws
log_prior_draws.noiseaware_fit <- function(x, ...) {
  if (identical(x$pool, "separate")) stop_classed("pool", "Groups that are not pooled have separate priors.")
  if (identical(x$pool, "none")) {
    stop_classed("pool", c("Fits of separate sites have separate priors.", i = "Use one of them: {.code fit$fits${names(x$fits)[1L]}}."))
  }
  one_variable(prior_log_density(x), x, "lprior")
}

one_variable <- function(values, fit, name) posterior::as_draws_array(array(values, c(dim(fit$draws)[1:2], 1L), list(NULL, NULL, name)))

# Of each draw; NULL where it is not known.
release_log_lik <- function(fit) {
  known <- function(code) tryCatch(code, noiseaware_error_method = function(e) NULL)
  if (inherits(fit, "noiseaware_pool")) return(known(rowSums(site_log_lik(fit, NULL))))
  rate <- inherits(fit$bound, c("bound_bernoulli", "bound_poisson")) && !is.null(fit$release$n)
  (if (rate && !isFALSE(fit$exact)) known(rate_log_lik(fit))) %||% log_noise_draws(fit)
}

rate_log_lik <- function(fit) {
  bound <- fit$bound
  value <- own_parameters(fit)
  u <- if (is_log_rate(bound)) log(value) else stats::qlogis(value)
  site <- rate_site(fit$release, bound, NULL)
  about <- about_site(bound, spread_of_rates(list(model = bound$spec, sites = list(site))), 1L)
  rate_log_likelihood(site$fields, bound$spec$name, u, NULL, about)(u)
}

# Of each draw, in natural values: powers of a density depend on the coordinates. For partially pooled sites: the density of their mean.
prior_log_density <- function(fit) {
  bound <- fit$bound
  theta <- draws_theta(bound, own_parameters(fit))
  .Call(ffi_model_log_prior, bound$spec, theta) - .Call(ffi_model_log_jacobian, bound$spec, theta)
}
