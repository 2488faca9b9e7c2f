# The result of a run, as an object.

# natural values of draws, evenly spread
values_of_draws <- function(fit, count) {
  draws <- parameter_matrix(fit)[, fit$bound$parameters, drop = FALSE]
  lapply(round(seq(1, nrow(draws), length.out = count)), function(i) draws[i, ])
}

new_fit <- function(draws, release, bound, run, method, exact, chains = NULL, problem = NULL,
                    words = NULL, info = list()) {
  structure(list(draws = draws, release = release, bound = bound, run = run, method = method,
                 exact = exact, chains = chains, problem = problem, words = words, info = info),
            class = "noiseaware_fit")
}

fit_from_chains <- function(chains, release, bound, run, problem, words) {
  parameters <- bound$parameters
  draws <- chains_array(lapply(chains, function(c) {
    colnames(c$draws) <- parameters
    if (is.null(problem$prior_n)) c$draws else cbind(c$draws, n = c$records)
  }))
  new_fit(draws, release, bound, run, problem$method, problem$exact %||% FALSE, chains, problem, words)
}
