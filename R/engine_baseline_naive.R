# Baselines that update the prior with one complete-data statistic: "naive" with
# the noisy one, the non-private posterior with the true one.

# noisy totals in place of the true ones
#' @export
engine_sample.engine_naive <- function(engine, release, bound, run, init = NULL, control = list(), prior_n = NULL, call = caller_env()) {
  if (!is.null(init)) say_init_unused("naive")
  check_no_quantiles(release_parts(release), "naive", call)
  for (p in release_parts(release)) if (anyNA(p$value)) check_as_noise_left(p, "naive", call)
  naive <- naive_complete(bound, determined_release(release_for(bound, release), call), call)
  draws <- conjugate_draws(bound, naive$complete, release$n, run)
  new_fit(draws, release, bound, run, method = "naive", exact = FALSE, info = list(projected = naive$projected))
}

# The whole statistics that queries of them, and the number of records in each margin of counts, determine.
determined_release <- function(release, call) {
  if (!has_queries(release)) return(release)
  whole <- whole_release(release)
  queries <- release_queries(release)
  margins <- known_margins(whole, release)
  size <- c(length(release$value) + length(margins), length(whole$value))
  refuse <- function(faults) {
    stop_classed("method", c("Method {.val naive} needs whole statistics, or queries that determine them together with the number of records.",
                             x = "{faults}."), call = call)
  }
  if (prod(size) > 4e6) refuse(sprintf("It cannot solve for as many as %s components", format_number(size[2L])))
  weights <- matrix(0, size[1L], size[2L])
  weights[cbind(queries$row, queries$column)] <- queries$weight
  for (k in seq_along(margins)) weights[length(release$value) + k, margins[[k]]] <- 1
  solved <- qr(weights)
  if (solved$rank < size[2L]) {
    free <- names(whole$value)[sort(solved$pivot[-seq_len(solved$rank)])]
    refuse(paste("Not determined by the published numbers:", shorten_list(encodeString(free, quote = "\""), 5L)))
  }
  whole$value[] <- qr.coef(solved, c(release$value, rep(release$n, length(margins))))
  whole
}

# Places of the components of a whole release that add up to n: each margin of the counts that there are queries of.
known_margins <- function(whole, release) {
  linear <- vapply(release_parts(release), function(p) inherits(p$statistic, "stat_linear"), TRUE)
  unlist(lapply(release_parts(whole)[linear], function(part) {
    if (is_table(part$statistic)) unname(split(part$index, cell_margins(part$statistic)))
  }), recursive = FALSE)
}

# The complete-data statistic that the noisy totals represent, clamping ignored,
# and whether it had to be made a possible one.
naive_complete <- function(bound, release, call) UseMethod("naive_complete")

#' @export
naive_complete.default <- function(bound, release, call) {
  statistics <- unique(vapply(release_parts(release), function(p) class(p$statistic)[1L], ""))
  stop_classed("method", c("Method {.val naive} needs a release from which the statistic of the model's update can be computed.",
                           x = "{.cls {class(bound$model)[1]}} cannot be updated from {.cls {statistics}}.", i = "See {.fn supported}."), call = call)
}

#' @export
naive_complete.bound_lm <- function(bound, release, call) {
  if (!inherits(release$statistic, "stat_crossprod")) NextMethod()
  check_normal_covariates(bound, "naive", call)
  valid <- valid_moments(crossprod_moments(release$statistic, release$value, release$n))
  list(complete = bound_complete(bound, valid$moments, release$n), projected = valid$projected)
}

#' @export
naive_complete.bound_categorical <- function(bound, release, call) {
  if (!all(vapply(release_parts(release), function(p) inherits(p$statistic, "stat_counts"), TRUE))) NextMethod()
  distribution <- clt_distribution(bound, release, call)
  if (distribution$spec$fields$released < length(distribution$spec$fields$margin)) {
    stop_classed("method", c("Method {.val naive} needs the counts of the class, and of every feature by class.",
                             x = "The margins of the release do not give them.", i = "Release the margins class:feature."), call = call)
  }
  possible(distribution, release$n, as.double(release$value[distribution$index]))
}

#' @export
naive_complete.bound_poisson <- function(bound, release, call) naive_powers(bound, release, 1, 0, call)

#' @export
naive_complete.bound_exponential <- naive_complete.bound_poisson

#' @export
naive_complete.bound_normal <- function(bound, release, call) {
  powers <- if (is.null(bound$spec$fields$sd)) 1:2 else 1
  naive_powers(bound, release, powers, bound$spec$fields$centre, call)
}

# Classes of the statistics whose totals the model can update with.
naive_statistics <- function(model) UseMethod("naive_statistics")

#' @export
naive_statistics.default <- function(model) character()

#' @export
naive_statistics.model_lm <- function(model) "stat_crossprod"

#' @export
naive_statistics.model_categorical <- function(model) "stat_counts"

#' @export
naive_statistics.model_naive_bayes <- naive_statistics.model_categorical

#' @export
naive_statistics.model_bernoulli <- function(model) clt_statistics(model)

#' @export
naive_statistics.model_poisson <- function(model) c("stat_sums", "stat_crossprod")

#' @export
naive_statistics.model_exponential <- naive_statistics.model_poisson

#' @export
naive_statistics.model_normal <- naive_statistics.model_poisson

# totals of powers of x - centre from those of factor (x - shift), in any part
naive_powers <- function(bound, release, powers, centre, call) {
  parts <- release_parts(release)
  parts <- parts[vapply(parts, function(p) p$statistic$kind == "totals", TRUE)]
  value <- unlist(lapply(parts, `[[`, "value"))
  components <- do.call(rbind, lapply(parts, function(p) power_components(p$statistic)))
  if (is.null(components)) return(naive_complete.default(bound, release, call))
  at <- match(powers, components$power)
  if (anyNA(at)) {
    stop_classed("method", c("Method {.val naive} needs the total{?s} of {.val {c('x', 'x^2')[powers]}}.",
                             x = "{.val {c('x', 'x^2')[powers[is.na(at)]]}} {?is/are} not in the release."), call = call)
  }
  # sum of factor (x - shift), and of its square, about the centre
  used <- components[at, ]
  step <- used$shift - centre
  sum <- value[at[1L]] / used$factor[1L] + release$n * step[1L]
  square <- if (length(powers) == 2L) {
    value[at[2L]] / used$factor[2L]^2 + 2 * step[2L] * (sum - release$n * step[2L]) + release$n * step[2L]^2
  } else {
    sum^2 / release$n # not used where the sd is known
  }
  distribution <- clt_distribution(bound, release, call)
  aside <- c(sum, square)[seq_len(bound$sizes$complete)]
  possible(distribution, release$n, c(numeric(length(distribution$index)), aside))
}

possible <- function(distribution, n, total) {
  out <- .Call(ffi_clt_complete, distribution$spec, as.double(n), as.double(total))
  list(complete = out$projected, projected = max(abs(out$projected - out$complete)) > 1e-9 * n)
}

#' Posterior from the confidential data
#'
#' For data owners and for simulation studies: the posterior given the records themselves, without noise or clamping. It is **not private**.
#'
#' @param data A data frame of records, with the variables of the model.
#' @param model A model, such as [model_lm()].
#' @param statistic A statistic, which names the variables; its bounds and levels scale the default priors.
#' @param chains,iter,warmup,thin,seed,... As in [sample_posterior()].
#' @return A fit, as from [sample_posterior()], but without a release.
#' @section Errors: As in [release()] and [sample_posterior()].
#' @family evaluation
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' nonprivate_posterior(MASS::birthwt, model_lm(), st, iter = 500, seed = 1)
#' @export
nonprivate_posterior <- function(data, model, statistic, chains = 4, iter = 2000,
                                 warmup = floor(iter / 2), thin = 1, seed = NULL, ...) {
  check_given()
  check_no_dots(...)
  check_model(model)
  check_statistic(statistic)
  fit_records(bind_settled(model, narrow_design(model, statistic, mech_exact(), "replace")$statistic), data, check_run(chains, iter, warmup, thin, check_seed(seed)))
}

fit_records <- function(bound, data, run, call = caller_env()) {
  records <- model_records(bound, data, call)
  complete <- if (bound$by_records) unname(records) else .Call(ffi_model_complete, bound$spec, records)
  draws <- conjugate_draws(bound, complete, nrow(records), run, call)
  new_fit(draws, NULL, bound, run, method = "nonprivate", exact = TRUE, info = list(n = nrow(records)))
}

# draws_array of the model's update given a complete-data statistic, or the records
# where it needs those
conjugate_draws <- function(bound, complete, n, run, call = caller_env()) {
  words <- with_seed(run$seed, seed_words())
  kept <- as.integer((run$iter - run$warmup) %/% run$thin)
  chain <- function(k) {
    start <- .Call(ffi_model_prior, bound$spec, new_stream(words, k - 1L), 1L)
    start$walk <- walk_sd(bound, words, run$chains)
    warm <- gibbs(bound, complete, n, start, c(1L, as.integer(max(run$warmup, 1))), call)
    reported(bound, gibbs(bound, complete, n, warm, c(kept, as.integer(run$thin)), call)$theta)
  }
  chains_array(lapply(seq_len(run$chains), function(k) {
    if (isTRUE(bound$callbacks)) with_seed(chain_seed(words, k), chain(k)) else chain(k)
  }))
}

gibbs <- function(bound, complete, n, from, draws_steps, call) {
  storage.mode(complete) <- "double"
  out <- .Call(ffi_model_gibbs, bound$spec, complete, as.double(n), as.double(from$theta), from$state, draws_steps, from$walk)
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

#' @export
engine_pairs.engine_naive <- function(engine, model, statistic, mechanism) {
  serves <- if (inherits(mechanism, "mech_record_noise")) inherits(model, "model_lm") else inherits(statistic, naive_statistics(model))
  if (serves) FALSE
}

#' @export
engine_title.engine_naive <- function(engine) "naive: treats the noisy totals as true (NOT exact: ignores the noise)"

#' @export
engine_title.engine_nonprivate <- function(engine) "non-private: from the confidential records themselves (exact, not private)"
