# One replicate of a calibration: prior draw and records, or the owner's records; release, posterior, ranks.

# A list: seed, seconds, method, failed, results (a data frame or NULL),
# conditions (a data frame). Everything random follows from the seed.
run_replicate <- function(problem, bound, seed) {
  started <- proc.time()[["elapsed"]]
  conditions <- list()
  note <- function(type, condition) {
    message <- cli::ansi_strip(conditionMessage(condition))
    class <- class(condition)[1L]
    conditions[[length(conditions) + 1L]] <<- data.frame(type = type, class = class, message = message)
  }
  # the user's interrupt ends the whole run: it is no fault of the replicate
  rethrow <- function(condition) rlang::interrupt()
  # an owner wants to know what analysts of these records will be warned of
  quietly <- if (is.null(problem$data)) without_troubles else identity
  made <- with_seed(seed, withCallingHandlers(
    tryCatch(quietly(with_binding(bound, problem$model, problem$statistic, rank_replicate(problem, bound))),
             noiseaware_error_interrupted = rethrow,
             error = function(e) {
               note("error", e)
               list(method = NA_character_)
             }),
    noiseaware_warning_interrupted = rethrow,
    warning = function(w) {
      note("warning", w)
      tryInvokeRestart("muffleWarning")
    },
    message = function(m) {
      if (is.null(problem$data) || !any(grepl("^noiseaware_message", class(m)))) return()
      note("message", m)
      tryInvokeRestart("muffleMessage")
    }
  ))
  list(seed = seed, seconds = round(proc.time()[["elapsed"]] - started, 3), method = made$method,
       failed = is.null(made$results), results = made$results, conditions = do.call(rbind, conditions))
}

rank_replicate <- function(problem, bound) {
  simulated <- simulate_design(problem, bound)
  fit <- without_progress(draw_posterior(problem, simulated))
  is_fit <- inherits(fit, "noiseaware_fit")
  draws <- if (is_fit) fit$draws else posterior::as_draws_array(fit)
  truth <- c(simulated$parameters, if (length(simulated$log_eta)) c(log_eta = simulated$log_eta))
  # where the records' levels are summed out, the chains have the likelihood instead
  noise <- is_fit && length(simulated$log_eta) && !sums_out_levels(fit$problem)
  values <- ranked_draws(draws, names(truth), if (noise) log_noise_draws(fit))
  list(results = rank_variables(values, truth, problem$level), method = if (is_fit) fit$method else "function")
}

# iterations x chains x variables, only the variables of the truth, log_eta added
ranked_draws <- function(draws, known, log_eta) {
  variables <- dimnames(draws)[[3L]]
  shared <- intersect(variables, known)
  if (length(shared) == 0L) {
    stop_classed("method", "The sampler must return draws of the model's parameters ({.val {setdiff(known, 'log_eta')}}), but returned {.val {variables}}.")
  }
  values <- array(draws, dim(draws))[, , match(shared, variables), drop = FALSE] # plain: subsetting keeps no class
  bad <- shared[colSums(!is.finite(values), dims = 2L) > 0]
  if (length(bad)) stop_classed("method", "Draws must be finite, but some of {.val {bad}} are not.")
  if (!is.null(log_eta)) {
    values <- array(c(values, log_eta), dim(values) + c(0L, 0L, 1L))
    shared <- c(shared, "log_eta")
  }
  dimnames(values) <- list(NULL, NULL, shared)
  storage.mode(values) <- "double"
  values
}

# parameters, data, release (without the truth), log_eta
simulate_design <- function(problem, bound) {
  if (!is.null(problem$data)) return(release_data(problem))
  unknown <- inherits(problem$n, "prior_n")
  n <- if (unknown) draw_size(problem$n) else problem$n
  release <- simulate_release(problem$model, problem$statistic, problem$mechanism, n, problem$parameters,
                              neighbours = problem$neighbours)
  truth <- attr(release, "truth")
  attr(release, "truth") <- NULL
  if (!unknown) release$n <- n
  parts <- release_parts(release)
  list(parameters = c(truth$parameters, if (unknown) c(n = n)), data = truth$data, release = release,
       log_eta = sum(vapply(parts, log_noise, 0, data = truth$data)))
}

# log eta(z | s) of a part up to the constant that methods leave out
log_noise <- function(part, data) UseMethod("log_noise", part$mechanism)

#' @export
log_noise.default <- function(part, data) {
  residual <- (part$value - statistic_total(part$statistic, data, empty = TRUE)) / part$scale
  -switch(part$mechanism$kernel,
    absolute = sum(abs(residual)),
    squared = sum(residual^2) / 2)
}

draw_posterior <- function(problem, simulated) {
  method <- problem$method
  arguments <- problem$arguments
  if (inherits(problem$n, "prior_n") && (!is.function(method) || "prior_n" %in% names(formals(method)))) arguments$prior_n <- problem$n
  if (is.function(method)) {
    if ("data" %in% names(formals(method))) arguments$data <- simulated$data
    return(do.call(method, c(list(simulated$release, problem$model), arguments)))
  }
  if (method == "nonprivate") {
    arguments$prior_n <- NULL # it has the records
    return(do.call(nonprivate_posterior, c(list(simulated$data, noisy_records_prior(problem$model, problem$mechanism), problem$statistic), arguments)))
  }
  # not a replicate's own forecast or length
  suppressMessages(do.call(sample_posterior, c(list(simulated$release, problem$model, method), arguments)),
                   classes = c("noiseaware_message_forecast", "noiseaware_message_longer"))
}

# iterations x chains; NULL if the method imputes no statistic
log_noise_draws <- function(fit) {
  draws <- lapply(fit$chains, `[[`, "log_noise")
  if (length(draws) == 0L || any(vapply(draws, is.null, TRUE)) || has_record_noise(fit$release)) return(NULL)
  vapply(draws, `[`, numeric(nrow(fit$draws)), seq_len(nrow(fit$draws)))
}

# A data frame with a row for each variable: see calibrate(). The truth is ranked
# among draws thinned by their number over their effective number.
rank_variables <- function(values, truth, level) {
  variables <- dimnames(values)[[3L]]
  summaries <- .Call(ffi_diagnostics, values, (1 - level) / 2)
  iterations <- dim(values)[1L]
  steps <- ceiling(prod(dim(values)[1:2]) / summaries["ess", ])
  steps <- ifelse(is.na(steps), 1, pmin(pmax(steps, 1), iterations))
  ranks <- vapply(seq_along(variables), function(v) {
    kept <- values[seq(steps[v], iterations, by = steps[v]), , v]
    c(rank_among(kept, truth[[variables[v]]]), length(kept))
  }, numeric(2L))
  # data.frame() takes a tenth of a short replicate's time
  told <- c("mean", "sd", "lower", "upper", "rhat", "ess")
  list2DF(c(list(variable = variables, truth = unname(truth[variables]), rank = ranks[1L, ], draws = ranks[2L, ],
                 quantile = (ranks[1L, ] + stats::runif(length(variables))) / (ranks[2L, ] + 1)),
            stats::setNames(lapply(told, function(name) as.vector(summaries[name, ])), told)))
}

# Ties are broken at random. Values that differ by rounding are ties: log eta of
# whole numbers has them.
rank_among <- function(draws, truth) {
  tied <- abs(draws - truth) <= 1e-9 * abs(truth)
  sum(draws < truth & !tied) + sample.int(sum(tied) + 1L, 1L) - 1
}
