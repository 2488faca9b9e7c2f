# The result of a run, as an object.

# natural values of draws, evenly spread
values_of_draws <- function(fit, count) {
  draws <- own_parameters(fit)
  lapply(round(seq(1, nrow(draws), length.out = count)), function(i) draws[i, ])
}

# Is the distribution of a release's noise an approximation? `release`: also a list of sites, or NULL
is_approximate <- function(release) {
  if (is.null(release)) return(FALSE)
  if (!inherits(release, "noiseaware_release")) return(any(vapply(release, is_approximate, TRUE)))
  any(vapply(release_parts(release), function(p) isTRUE(p$mechanism[["shared"]]), TRUE))
}

# Parameters that have no order, those of latent classes, are kept apart from the draws that users see: `hidden`.
new_fit <- function(draws, release, bound, run, method, exact, chains = NULL, problem = NULL,
                    words = NULL, info = list()) {
  fit <- list(draws = draws, release = release, bound = bound, run = run, method = method,
              exact = if (is_approximate(release)) FALSE else exact, chains = chains, problem = problem, words = words, info = info)
  hidden <- intersect(bound$hidden, posterior::variables(draws))
  if (length(hidden)) {
    fit$hidden <- exactly(draws, hidden)
    fit$draws <- exactly(draws, setdiff(posterior::variables(draws), hidden))
  }
  structure(fit, class = "noiseaware_fit")
}

fit_from_chains <- function(chains, release, bound, run, problem, words) {
  parameters <- bound$parameters
  draws <- chains_array(lapply(chains, function(c) {
    colnames(c$draws) <- parameters
    if (is.null(problem$prior_n)) c$draws else cbind(c$draws, n = c$records)
  }))
  new_fit(draws, release, bound, run, problem$method, problem$exact %||% FALSE, chains, problem, words)
}
