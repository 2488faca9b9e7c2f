# Ju et al. (2022), section S-6: processor seconds of a chain of 10,000 iterations
# (330 s for the regression, 404 s for naive Bayes, in R, on another machine), and
# effective draws (bulk, the smallest over the reported parameters) per second.
source("helpers.R")
source("ju_2022_problems.R")
started <- proc.time()

time_chain <- function(problem, mechanism, variables, method, control) {
  times <- vapply(seq_len(replicates(5, 2)), function(k) {
    release <- simulate_release(problem$model, problem$statistic, mechanism, problem$n, problem$truth)
    time <- system.time(fit <- sample_posterior(release, problem$model, method, chains = 1, iter = 10000, seed = k, control = control))
    ess <- vapply(variables, function(v) posterior::ess_bulk(posterior::extract_variable_matrix(fit$draws, v)), 0)
    c(seconds = sum(time[c("user.self", "sys.self")]), ess = min(ess))
  }, numeric(2))
  list(seconds = stats::median(times["seconds", ]), ess = stats::median(times["ess", ]))
}

set.seed(1)
cells <- expand.grid(epsilon = c(0.1, 1, 10), method = c("plain", "augment", "collapse"), problem = c("regression", "naive Bayes"), stringsAsFactors = FALSE)
rows <- lapply(seq_len(nrow(cells)), function(k) {
  lm <- cells$problem[k] == "regression"
  problem <- if (lm) regression else naive_bayes
  mechanism <- if (lm) regression$noise$paper(cells$epsilon[k]) else mech_laplace(epsilon = cells$epsilon[k])
  variables <- if (lm) regression$coefficients else naive_bayes$classes
  method <- if (cells$method[k] == "collapse") "collapse" else "augment"
  time <- time_chain(problem, mechanism, variables, method, if (cells$method[k] == "plain") plain else list())
  cbind(cells[k, c("problem", "method", "epsilon")], paper_seconds = if (lm) 330 else 404, seconds = time$seconds, ess = time$ess,
        ess_per_second = time$ess / time$seconds, row.names = NULL)
})
save_table(bind(rows), "ju_2022_runtimes")
finished(started)
