#' Continue a run
#'
#' Adds iterations to every chain of a fit, from the exact state in which it stopped: 1000 iterations followed by 1000 more are bit for bit the same as 2000.
#' For a calibration, it adds replicates: 100 followed by 100 more are the same as 200.
#'
#' @param fit A fit of method `"augment"`, `"collapse"` or `"clt"`, or a calibration from [calibrate()].
#' @param iter How many iterations to add to each chain.
#' @param ... Must be empty.
#' @return A fit with all draws, or a calibration with all replicates, old and
#'   new. The original is not changed.
#' @section Errors: `noiseaware_error_argument`.
#' @family methods
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' extend(fit, 200)
#' @export
extend <- function(fit, ...) UseMethod("extend")

#' @export
extend.default <- function(fit, ...) {
  check_given()
  stop_argument("fit", "a fit made by sample_posterior(), or a calibration", describe(fit))
}

#' @rdname extend
#' @export
extend.noiseaware_fit <- function(fit, iter, ...) {
  check_given()
  check_no_dots(...)
  if (is.null(fit$chains)) {
    stop_classed("argument", "{.arg fit} must have chains to continue; method {.val {fit$method}} has none.")
  }
  run <- extended_run(fit, iter)
  if (!is.null(fit$weighted)) {
    stop_classed("argument", c("{.arg fit} must have chains to continue, but its draws were reweighted for another prior.",
                               i = "{.code update(fit, iter = )} samples the posterior with that prior."))
  }
  extended <- fit_from_chains(continue_chains(fit, run, iter), fit$release, fit$bound, run, fit$problem, fit$words)
  extended$asked <- extended_asked(fit, run)
  extended$whole <- fit$whole
  extended$why <- fit$why
  with_troubles(extended)
}

extended_run <- function(fit, iter, call = caller_env()) {
  run <- fit$run
  run$iter <- max(vapply(fit$chains, function(c) length(c$acceptance), 0L)) + check_count(iter, "iter", call = call)
  run
}

extended_asked <- function(fit, run) c(fit$asked[setdiff(names(fit$asked), c("iter", "warmup"))], run[c("iter", "warmup")])

# `run`: with the iterations that there are to be in all, `iter` of them new
continue_chains <- function(fit, run, iter, call = caller_env()) {
  run_chains(length(fit$chains), function(k, report) {
    old <- fit$chains[[k]]
    # chains of an interrupted run catch up with the longest one
    more <- with_callback_seed(fit$bound, old$state$r_seed, {
      run_blocks(fit$problem, .Call(ffi_duplicate, old$state), run$iter - length(old$acceptance), run, report)
    })
    join_chains(old, more)
  }, iter * length(fit$chains), call)
}

join_chains <- function(old, more) {
  values <- setdiff(names(old), c("diagnostics", "state", "status"))
  joined <- lapply(stats::setNames(nm = values), function(name) {
    if (is.matrix(old[[name]])) rbind(old[[name]], more[[name]]) else c(old[[name]], more[[name]])
  })
  joined$work <- sum(joined$work)
  c(joined, more[c("diagnostics", "state", "status")])
}
