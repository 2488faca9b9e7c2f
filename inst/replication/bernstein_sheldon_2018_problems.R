# The three problems of Bernstein & Sheldon (2018), section 4. The paper does not
# print its priors; these are those of the authors' published code. Bounds of the
# exponential model: the middle 95% of the prior predictive distribution, where the paper
# takes the middle 95% at the true rate, which would give the rate away.

problems <- list(
  binomial = list(variable = "prob[yes]", statistic = stat_counts(~ x, list(x = c("no", "yes"))),
                  model = model_bernoulli(prior = prior_beta(10, 10))),
  multinomial = list(variable = "prob[a]", statistic = stat_counts(~ x, list(x = c("a", "b", "c"))),
                     model = model_categorical(prior = prior_dirichlet(5))),
  exponential = list(variable = "rate", statistic = stat_sums(~ x, list(x = 2 * (c(0.975, 0.025)^(-1 / 8) - 1)), outside = "drop"),
                     model = model_exponential(prior = prior_gamma(8, 2)))
)

# the paper's sampler
gibbs <- function(release, model) {
  sample_posterior(release, model, "clt", chains = 1, iter = 7000, warmup = 2000, control = list(sampler = "gibbs"))
}
clt <- function(release, model) sample_posterior(release, model, "clt", chains = 1, iter = 4000)
# "collapse" for counts, "augment" for the exponential model
exact <- function(release, model) {
  sample_posterior(release, model, if (inherits(model, "model_exponential")) "augment" else "collapse", chains = 1, iter = 2000)
}
# The naive analysis. Of the exponential model the paper's "cheating" one: the
# noise of the release, added to the total without truncation.
naive <- function(release, model, data) {
  if (!inherits(model, "model_exponential")) return(sample_posterior(release, model, "naive", chains = 1, iter = 4000))
  bounds <- problems$exponential$statistic$columns
  inside <- data$x >= bounds$lower & data$x <= bounds$upper
  total <- sum(data$x[!inside]) + release$value[["x"]]
  posterior::draws_array(rate = stats::rgamma(2000, 8 + release$n, 2 + max(total, 0.01)), .nchains = 1)
}
nonprivate <- function(release, model, data) nonprivate_posterior(data, model, release$statistic, chains = 1, iter = 4000)
# One-posterior sampling (Foulds et al. 2016, UAI 32): instead of a noisy statistic the owner publishes draws from a flattened posterior (the exponential
# mechanism). The density is proportional to (p(theta) p(x | theta))^w, w = min(1, epsilon / draws / (2 log((1 - a0) / a0))): a record changes its logarithm by
# at most w log((1 - a0) / a0), and its normaliser by as much. The probability is restricted to a0, ..., 1 - a0, and drawn on a grid of 65536 points; that bound
# holds on any set of points.
ops <- function(release, model, data, draws = 100, a0 = 0.1) {
  yes <- sum(data$x == "yes")
  weight <- min(1, privacy(release)$epsilon / draws / (2 * log((1 - a0) / a0)))
  grid <- seq(a0, 1 - a0, length.out = 65536L)
  log_density <- weight * ((model$prior$a - 1 + yes) * log(grid) + (model$prior$b - 1 + nrow(data) - yes) * log1p(-grid))
  cumulative <- cumsum(exp(log_density - max(log_density)))
  prob <- grid[pmin(findInterval(stats::runif(draws) * cumulative[length(cumulative)], cumulative) + 1L, length(grid))]
  posterior::draws_array(`prob[yes]` = prob, .nchains = 1)
}
