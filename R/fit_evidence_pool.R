# The evidence of several sites' releases. Separate sites: the sum of theirs. One rate or probability for all: a quadrature. Rates that
# differ: each site's integrated over the distribution between sites by quadrature, the mean and the sd by bridge sampling.

pool_evidence <- function(fit, draws, seed, call) {
  if (fit$pool == "none") return(sum_of_evidences(fit, draws, seed))
  if (fit$problem$family != "rates") {
    stop_no_evidence("Sites are pooled under: {describe_model(fit$bound)}. It is known of one rate or probability, and of separate sites.", call)
  }
  if (isTRUE(fit$problem$sized)) stop_no_evidence("The sizes of groups are not known.", call)
  if (fit$pool == "separate") return(new_evidence(sum(vapply(seq_along(fit$release), function(j) {
    log_rate_integral(fit$bound, fit$problem$sites[j]) + log_noise_constant(fit$release[[j]], call)
  }, 0)), 0))
  if (fit$pool == "walk") stop_no_evidence("Sites in a walk are not independent given its parameters.", call)
  if (fit$pool == "complete" || !length(fit$problem$partial$vary)) return(new_evidence(one_rate_evidence(fit, call), 0))
  partial_evidence(fit, draws, seed, call)
}

sum_of_evidences <- function(fit, draws, seed) {
  each <- lapply(fit$fits, log_evidence, draws = draws, seed = seed)
  new_evidence(sum(vapply(each, as.numeric, 0)), sqrt(sum(vapply(each, attr, 0, "error")^2)), unique(unlist(lapply(each, attr, "note"))))
}

one_rate_evidence <- function(fit, call) {
  log_rate_integral(fit$bound, fit$problem$sites) + sum(vapply(fit$release, log_noise_constant, 0, call))
}

partial_evidence <- function(fit, draws, seed, call) {
  more <- ceiling(draws / length(fit$chains)) - nrow(fit$draws)
  if (more > 0) fit <- without_troubles(progressr::without_progress(extend(fit, more * fit$run$thin)))
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

# log density of the logit or of the log rate
log_rate_prior <- function(bound, u) {
  prior <- bound$spec$fields
  if (is_log_rate(bound)) return(prior$shape * u - prior$rate * exp(u) + prior$shape * log(prior$rate) - lgamma(prior$shape))
  prior$alpha[2L] * stats::plogis(u, log.p = TRUE) + prior$alpha[1L] * stats::plogis(-u, log.p = TRUE) - lbeta(prior$alpha[2L], prior$alpha[1L])
}

# log density of a standard deviation, natural scale: src/model/scale_prior.c
log_spread_prior <- function(fields, sd) {
  kernel <- if (!is.null(fields[["sigma_half_normal"]])) -(sd / fields[["sigma_half_normal"]])^2 / 2 else
    if (!is.null(fields[["sigma_half_t"]])) -(fields[["sigma_half_t"]][1L] + 1) / 2 * log1p((sd / fields[["sigma_half_t"]][2L])^2 / fields[["sigma_half_t"]][1L]) else
    -fields[["sigma_exponential"]] * sd
  kernel + log_scale_constant(fields)
}
