# Baselines that update the prior with one complete-data statistic: "naive" with
# the noisy one, the non-private posterior with the true one.

# noisy totals in place of the true ones
sample_naive <- function(release, bound, run, call = caller_env()) {
  if (!inherits(release$statistic, "stat_crossprod") || !inherits(bound, "bound_lm")) {
    stop_classed("method", "Method {.val naive} needs a release of {.fn stat_crossprod} and {.fn model_lm}.", call = call)
  }
  moments <- crossprod_moments(release$statistic, release$value, release$n)
  valid <- valid_moments(moments)
  draws <- conjugate_draws(bound, bound_complete(bound, valid$moments, release$n), release$n, run)
  new_fit(draws, release, bound, run, method = "naive", exact = FALSE,
          info = list(projected = valid$projected))
}

#' The posterior that the confidential data would give
#'
#' For the owner of the data and for studies: what an analyst would find who
#' could see the records, without noise or clamping. It is **not private**.
#'
#' @param data A data frame of records, with the variables of the model.
#' @param model A model, such as [model_lm()].
#' @param statistic The statistic whose variables, bounds and levels scale the
#'   default priors.
#' @param chains,iter,warmup,thin,seed As in [sample_posterior()].
#' @return A fit, as from [sample_posterior()], without a release's value.
#' @section Errors: As in [release()] and [sample_posterior()].
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' nonprivate_posterior(MASS::birthwt, model_lm(), st, iter = 500, seed = 1)
#' @export
nonprivate_posterior <- function(data, model, statistic, chains = 4, iter = 2000,
                                 warmup = floor(iter / 2), thin = 1, seed = NULL) {
  check_model(model)
  check_statistic(statistic)
  run <- check_run(chains, iter, warmup, thin, check_seed(seed))
  bound <- bind_model(model, statistic)
  records <- record_matrix(data, bound$columns, bound$levels)
  complete <- if (bound$latent) unname(records) else .Call(ffi_model_complete, bound$spec, records, 1)
  draws <- conjugate_draws(bound, complete, nrow(records), run)
  new_fit(draws, NULL, bound, run, method = "nonprivate", exact = TRUE, info = list(n = nrow(records)))
}

# draws_array of the model's own update given a complete-data statistic, or the
# records where the update has latent variables
conjugate_draws <- function(bound, complete, n, run, call = caller_env()) {
  words <- with_seed(run$seed, seed_words())
  kept <- as.integer((run$iter - run$warmup) %/% run$thin)
  chains <- lapply(seq_len(run$chains), function(k) {
    start <- .Call(ffi_model_prior, bound$spec, new_stream(words, k - 1L), 1L)
    warm <- gibbs(bound, complete, n, start, c(1L, as.integer(max(run$warmup, 1))), call)
    reported(bound, gibbs(bound, complete, n, warm, c(kept, as.integer(run$thin)), call)$theta)
  })
  chains_array(chains)
}

gibbs <- function(bound, complete, n, from, draws_steps, call) {
  storage.mode(complete) <- "double"
  out <- .Call(ffi_model_gibbs, bound$spec, complete, as.double(n), as.double(from$theta), from$state, draws_steps)
  if (is.null(out)) {
    stop_classed("numerical", "The update of the parameters failed: a matrix is not positive definite.", call = call)
  }
  out
}

# Noise can make totals impossible: a centred cross-product must be positive
# semidefinite.
valid_moments <- function(moments) {
  n <- moments[1L, 1L]
  sums <- moments[1L, -1L]
  valid <- raise_eigenvalues(moments[-1L, -1L, drop = FALSE] - outer(sums, sums) / n)
  if (valid$projected) moments[-1L, -1L] <- valid$matrix + outer(sums, sums) / n
  list(moments = moments, projected = valid$projected)
}

# Eigenvalues of the matrix scaled to a unit diagonal that lie below a small
# floor are raised to it.
raise_eigenvalues <- function(matrix, floor = 1e-6) {
  unit <- sqrt(pmax(abs(diag(matrix)), .Machine$double.xmin))
  eigen <- eigen(matrix / outer(unit, unit), symmetric = TRUE)
  projected <- any(eigen$values < floor)
  if (projected) {
    scaled <- eigen$vectors %*% (pmax(eigen$values, floor) * t(eigen$vectors))
    matrix[] <- scaled * outer(unit, unit)
  }
  list(matrix = matrix, projected = projected)
}
