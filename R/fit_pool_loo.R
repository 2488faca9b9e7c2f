# Comparing models over sites: the log likelihood of each site's release, for package loo.

#' Compare models over sites
#'
#' `log_lik()` returns, for each draw, the log likelihood of each site's release. `loo()` compares models by how well they predict the release of a site that is
#' left out, with the package loo.
#'
#' @param object,x A fit of several sites with one rate or probability, [model_bernoulli()], [model_poisson()] or [model_exponential()], with complete or
#'   partial pooling.
#' @param ... For `loo()`, passed to `loo::loo()`. Must be empty for `log_lik()`.
#' @details The unit is the site: its release is one observation. The likelihood is of the published numbers, with the confidential total summed out and noise
#'   included. With partial pooling the site's own parameter is also integrated out, over its distribution between sites, so that the prediction is for a new
#'   site. Otherwise the release of a site would be predicted from a parameter that it determines itself.
#'
#' For **one release** these functions are not available. Its numbers are sums over all records, so the likelihood is not a product over records, and no record
#' could be left out without the confidential data. `log_lik()` and `loo()` raise an error that says so; [log_evidence()] and [bayes_factor()] compare models of
#' one release. Fits of normal records from several sites are also an error: their totals would have to be integrated out for each draw.
#' @return `log_lik()`: a matrix, draws x sites. `loo()`: what `loo::loo()` returns.
#' @section Errors: `noiseaware_error_meaningless`: a fit of one release. `noiseaware_error_method`: separate sites, or sites whose likelihood is not known.
#' @family sites and groups
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' north <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' south <- as_release(c("smoke=yes" = 31.7), asked, mech_gaussian(sd = 4), n = 90)
#' fit <- sample_posterior(list(north = north, south = south), model_bernoulli(),
#'                         pool = "complete", chains = 2, iter = 400, seed = 1)
#' if (requireNamespace("rstantools", quietly = TRUE)) {
#'   colMeans(rstantools::log_lik(fit))
#' }
#' @name site_loo
NULL

#' @rdname site_loo
#' @exportS3Method rstantools::log_lik
log_lik.noiseaware_pool <- function(object, ...) {
  check_no_dots(...)
  site_log_lik(object, environment())
}

#' @rdname site_loo
#' @exportS3Method loo::loo
loo.noiseaware_pool <- function(x, ...) {
  values <- site_log_lik(x, environment())
  chain <- rep(seq_len(dim(x$draws)[2L]), each = dim(x$draws)[1L])
  loo::loo(values, r_eff = loo::relative_eff(exp(values), chain_id = chain), ...)
}
