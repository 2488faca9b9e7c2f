# A design whose posterior is known: mean ~ N(0, 2^2), x ~ N(mean, 1), n = 10, the
# total of x with normal noise of sd 3. Samplers of known distribution for it.

known <- list(
  model = model_normal(prior = list(mean = prior_normal(0, 2), sd = fixed(1))),
  statistic = stat_sums(~ x, bounds = list(x = c(-100, 100))),
  mechanism = mech_gaussian(sd = 3), n = 10
)

# independent draws of (mean, total) given z; the mean's distribution may be made wrong
known_draws <- function(z, draws = 99, scale = 1, bias = 0, prior = FALSE) {
  n <- 10
  tau2 <- 9
  precision <- 1 / 4 + n^2 / (n + tau2)
  mean <- if (prior) stats::rnorm(draws, 0, 2) else
    n * z / (n + tau2) / precision + (bias + scale * stats::rnorm(draws)) / sqrt(precision)
  total <- if (prior) stats::rnorm(draws, n * mean, sqrt(n)) else
    stats::rnorm(draws, n * mean + n / (n + tau2) * (z - n * mean), sqrt(n * tau2 / (n + tau2)))
  cbind(mean = mean, log_eta = -(z - total)^2 / (2 * tau2))
}

known_sampler <- function(...) {
  changed <- list(...)
  function(release, model) do.call(known_draws, c(list(unname(release$value)), changed))
}

calibrate_known <- function(method, replicates = 200, seed = 1, ...) {
  calibrate(known$model, known$statistic, known$mechanism, known$n, replicates, method, ..., seed = seed)
}
