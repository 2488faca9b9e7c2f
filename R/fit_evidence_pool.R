# The evidence of several sites' releases. Separate sites: the sum over sites. One rate or probability for all: a quadrature. Rates that differ: each site's
# rate is integrated over the distribution between sites by quadrature, the mean and the sd by bridge sampling.

one_rate_evidence <- function(fit, call) {
  log_rate_integral(fit$bound, fit$problem$sites) + sum(vapply(fit$release, log_noise_constant, 0, call))
}

partial_evidence <- function(fit, draws, seed, call) {
  more <- ceiling(draws / length(fit$chains)) - nrow(fit$draws)
  if (more > 0) fit <- without_troubles(without_progress(extend(fit, more * fit$run$thin)))
  effect_sd <- fit$problem$partial$effect_sd
  of_layer <- seq_len(2L + length(effect_sd))
  spread <- fit$problem$partial$sd[[1L]]$fields
  log_rate <- is_log_rate(fit$bound)
  values <- unclass(fit$draws)[, , of_layer, drop = FALSE]
  q <- values
  q[, , 1L] <- if (log_rate) log(values[, , 1L]) else stats::qlogis(values[, , 1L])
  q[, , 2L] <- log(values[, , 2L])
  log_density <- function(q) {
    at <- q
    at[, 1L] <- if (log_rate) exp(q[, 1L]) else stats::plogis(q[, 1L])
    at[, 2L] <- exp(q[, 2L])
    colnames(at) <- posterior::variables(fit$draws)[of_layer]
    fit$draws <- posterior::as_draws_matrix(at)
    effects <- if (length(effect_sd)) colSums(stats::dnorm(t(q[, -(1:2), drop = FALSE]), 0, effect_sd, log = TRUE)) else 0
    log_rate_prior(fit$bound, q[, 1L]) + log_spread_prior(spread, at[, 2L]) + q[, 2L] + effects + rowSums(site_log_lik(fit, call))
  }
  bridged <- with_seed(seed, bridge_mixture(q, log_density))
  new_evidence(bridged$value, bridged$error, bridged$note)
}

# log density of a standard deviation, natural scale: src/model/scale_prior.c
log_spread_prior <- function(fields, sd) {
  kernel <- if (!is.null(fields[["sigma_half_normal"]])) -(sd / fields[["sigma_half_normal"]])^2 / 2 else
    if (!is.null(fields[["sigma_half_t"]])) -(fields[["sigma_half_t"]][1L] + 1) / 2 * log1p((sd / fields[["sigma_half_t"]][2L])^2 / fields[["sigma_half_t"]][1L]) else
    -fields[["sigma_exponential"]] * sd
  kernel + log_scale_constant(fields)
}
