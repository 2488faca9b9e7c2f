#' One-posterior sampling
#'
#' A baseline of Bernstein & Sheldon (2018): instead of a noisy statistic, the
#' owner of the data publishes draws from a flattened posterior (the exponential
#' mechanism). The draws are private, but too spread out: intervals made of them
#' are not calibrated.
#'
#' @param data A data frame of records, with the variable of the model.
#' @param model [model_bernoulli()].
#' @param statistic A [stat_counts()] of its variable, for the levels.
#' @param epsilon The budget of all draws together (pure differential privacy,
#'   replace one record).
#' @param draws Number of draws; each spends epsilon / draws.
#' @param a0 The probability is restricted to a0, ..., 1 - a0.
#' @param seed `NULL` draws from the operating system's entropy, as [release()]
#'   does. A whole number fixes the draws: for studies, never for a publication.
#'
#' @details The density is proportional to (p(theta) p(x | theta))^w, w = min(1,
#'   epsilon / draws / (2 log((1 - a0) / a0))): a record changes its logarithm by
#'   at most w log((1 - a0) / a0), and its normaliser by as much. The prior is
#'   flattened with the likelihood: with a small budget the draws are nearly uniform,
#'   not draws from the prior, which would be calibrated. The density is drawn on
#'   a grid of 65536 points; that bound holds on any set of points.
#'
#' @return A fit without a release, with one chain of `draws` draws of the probability, `prob[level]`.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_method`, those of
#'   [release()] for `data`.
#' @references
#' Foulds, J., Geumlek, J., Welling, M. and Chaudhuri, K. (2016). On the theory
#' and practice of privacy-preserving Bayesian data analysis. *Uncertainty in
#' Artificial Intelligence* 32. \doi{10.48550/arXiv.1603.07294}
#'
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian
#' inference for exponential families. *Advances in Neural Information
#' Processing Systems* 31, section 5. \doi{10.48550/arXiv.1809.02188}
#' @family evaluation
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' ops_posterior(MASS::birthwt, model_bernoulli(), st, epsilon = 10, seed = 1)
#' @export
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
engine_title.engine_ops <- function(engine) "one-posterior sampling: private draws of a flattened posterior (NOT exact: too spread out)"
