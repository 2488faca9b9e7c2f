# Several sites: releases of rates and of regressions, and chains whose releases are drawn again and again.

smoking <- function() stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))

# P(z | p) by the sum over all totals; `log_noise` of z given s
sum_of_totals <- function(p, n, log_noise) {
  s <- 0:n
  vapply(p, function(p) sum(dbinom(s, n, p) * exp(log_noise(s))), 0)
}

two_yes <- function() {
  list(north = as_release(c("smoke=yes" = 7.3, "smoke=no" = 21.2), smoking(), mech_laplace(scale = 2), n = 30),
       south = as_release(c("smoke=yes" = 11), smoking(), mech_discrete_gaussian(sd = 3), n = 20))
}

totals_models <- list(
  conjugate = model_lm(prior = prior_nig(0.3, 1, 4, 5), covariates = prior_niw(0.2, 2, 2, 6)),
  kept = model_lm(prior = prior_normal(0.3, 1), sigma = prior_half_t(6, 1.5), covariates = prior_niw(0.2, 2, 2, 6)),
  student = model_lm(prior = prior_student_t(6, 0.3, 0.8), sigma = prior_inverse_gamma(4, 5), covariates = prior_niw(0.2, 2, 2, 6))
)

wide_totals <- function(low = -300) stat_crossprod(y ~ x, list(y = c(low, 300), x = c(low, 300)), rescale = FALSE)

# `wider`: by so much the noise is. Where a chain draws its releases again, narrow noise holds it where it is.
totals_sites <- function(sizes = c(first = 4, second = 7, third = 5), wider = 1) {
  mechanisms <- list(mech_laplace(scale = 3 * wider), mech_gaussian(sd = 4 * wider), mech_laplace(scale = c(2, 3, 2, 3, 2) * wider))
  Map(function(n, mechanism, low) {
    x <- rnorm(n, 0.3)
    simulate_release(data.frame(y = 0.5 + 0.8 * x + rnorm(n), x), wide_totals(low), mechanism)
  }, sizes, mechanisms[seq_along(sizes)], c(-300, -200, -300)[seq_along(sizes)])
}

# Draws of a chain whose release is drawn again after every `thin` iterations.
geweke_sites <- function(problem, state, draws, thin = 1L) {
  out <- matrix(0, draws, length(problem$names), dimnames = list(NULL, problem$names))
  noise <- do.call(rbind, lapply(problem$sites, function(s) {
    absolute <- s$kernel == "absolute"
    one <- noise_matrix(mech_laplace(scale = 1), 1, s$components, draws)
    one[!absolute, ] <- rnorm(sum(!absolute) * draws)
    one * s$scale
  }))
  places <- split(seq_along(noise[, 1L]), rep(seq_along(problem$sites), vapply(problem$sites, `[[`, 0L, "components")))
  run_on <- internal("ffi_run")
  run <- list(warmup = 600, thin = thin)
  block <- .Call(internal("ffi_block"), problem, as.integer(thin), 1L) # filled again by each draw
  for (i in seq_len(draws)) {
    .Call(run_on, problem, state, block, run)
    out[i, ] <- block$draws
    released <- drop(block$statistic) + noise[, i]
    for (j in seq_along(places)) problem$sites[[j]]$released <- released[places[[j]]]
  }
  out
}

# The same of imputed records, whose noise is on totals.
geweke_records <- function(problem, state, draws) {
  out <- matrix(0, draws, length(problem$names), dimnames = list(NULL, problem$names))
  weight <- 1 / unlist(lapply(problem$sites, `[[`, "scale"))
  of_site <- rep(seq_along(problem$sites), lengths(lapply(problem$sites, `[[`, "scale")))
  absolute <- unlist(lapply(problem$sites, `[[`, "kernel")) == "absolute"
  run <- list(warmup = 500, thin = 1)
  internal("run_blocks")(problem, state, 500, run, function(...) NULL)
  run_on <- internal("ffi_run")
  block <- .Call(internal("ffi_block"), problem, 1L, 1L) # filled again by each draw
  noise <- matrix(rnorm(length(weight) * draws), length(weight))
  noise[absolute, ] <- rexp(sum(absolute) * draws) * sample(c(-1, 1), sum(absolute) * draws, TRUE)
  noise[weight == 0, ] <- 0
  places <- split(seq_along(weight), of_site)
  known <- weight > 0
  for (i in seq_len(draws)) {
    .Call(run_on, problem, state, block, run)
    out[i, ] <- block$draws
    released <- numeric(length(weight))
    released[known] <- block$statistic[known] + noise[known, i] / weight[known]
    for (j in seq_along(places)) problem$sites[[j]]$released <- released[places[[j]]]
    state$residual <- noise[, i]
  }
  out
}

partial_parts <- function(sites, model, pooling) {
  bound <- internal("bind_sites")(model, sites, NULL)
  list(bound = bound, problem = internal("partial_problem")(internal("pool_problem")(sites, bound, NULL), pooling, bound, sites, NULL))
}

# Coordinates as they can be chosen: `told`, the share of the precision that counts as what a release says about a site
with_coordinates <- function(problem, told, innovates) {
  problem$sites <- lapply(problem$sites, function(site) {
    site$fields$precision <- site$fields$precision * told
    site$innovates <- innovates
    site
  })
  problem
}

approximately <- function(..., pool = "complete") sample_posterior(..., pool = pool, method = "clt", seed = 1)

pooled_bounds <- function(upper = 4) list(y = c(0, 1), x = c(-upper, upper))

logistic_sites <- function(sizes = c(north = 60, south = 90, west = 40)) {
  mechanisms <- list(mech_gaussian(sd = 4), mech_gaussian(sd = 7), mech_laplace(scale = 4))
  Map(function(n, mechanism, upper) {
    x <- rnorm(n, 0.2, 0.7)
    simulate_release(data.frame(y = rbinom(n, 1, plogis(0.8 * x - 0.3)), x), stat_crossprod(y ~ x, pooled_bounds(upper)), mechanism)
  }, sizes, mechanisms[seq_along(sizes)], c(4, 5, 4)[seq_along(sizes)])
}
