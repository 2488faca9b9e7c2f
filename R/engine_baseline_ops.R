# One-posterior sampling, a baseline of Bernstein & Sheldon (2018, section 5): instead of a noisy statistic the owner publishes draws from a flattened posterior
# (the exponential mechanism). Foulds et al. (2016, UAI 32). Only inst/replication asks for it: intervals made of these draws are not calibrated.
#
# The density is proportional to (p(theta) p(x | theta))^w, w = min(1, epsilon / draws / (2 log((1 - a0) / a0))): a record changes its logarithm by at most
# w log((1 - a0) / a0), and its normaliser by as much. The probability is restricted to a0, ..., 1 - a0, and drawn on a grid of 65536 points; that bound holds
# on any set of points. `seed`: NULL draws from the operating system's entropy, as release() does; a number is for studies, never for a publication.
ops_posterior <- function(data, model, statistic, epsilon, draws = 100, a0 = 0.1, seed = NULL) {
  check_given()
  check_model(model)
  if (!inherits(model, "model_bernoulli")) {
    stop_classed("method", c("One-posterior sampling works with {.fn model_bernoulli} only: its guarantee needs a bounded likelihood.",
                             x = "{.arg model} is {describe(model)}."))
  }
  check_statistic(statistic)
  epsilon <- check_positive(epsilon, "epsilon")
  draws <- check_count(draws, "draws")
  a0 <- check_number(a0, "a0", "a number between 0 and 0.5", 0, 0.5, strict = TRUE)
  seed <- check_seed(seed)
  bound <- bind_model(model, statistic)
  records <- model_records(bound, data)
  yes <- sum(records)
  weight <- min(1, epsilon / draws / (2 * log((1 - a0) / a0)))
  grid <- seq(a0, 1 - a0, length.out = 65536L)
  log_density <- weight * ((model$prior$a - 1 + yes) * log(grid) + (model$prior$b - 1 + nrow(records) - yes) * log1p(-grid))
  cumulative <- cumsum(exp(log_density - max(log_density)))
  uniform <- if (is.null(seed)) entropy_uniform(draws) else with_seed(seed, stats::runif(draws))
  prob <- grid[pmin(findInterval(uniform * cumulative[length(cumulative)], cumulative) + 1L, length(grid))]
  array <- posterior::as_draws_array(array(prob, c(draws, 1L, 1L), dimnames = list(NULL, NULL, bound$parameters)))
  run <- list(chains = 1, iter = draws, warmup = 0, thin = 1, seed = seed)
  new_fit(array, NULL, bound, run, method = "ops", exact = FALSE, info = list(n = nrow(records), epsilon = epsilon, weight = weight))
}

#' @export
engine_title.engine_ops <- function(engine) "one-posterior sampling: private draws of a flattened posterior (NOT exact: overdispersed)"
