#' Is a design calibrated?
#'
#' Simulation-based calibration: draws parameters from the prior, simulates records and a release, and samples the posterior given that release. The rank of the
#' true value among the posterior draws must then be uniform (Cook, Gelman & Rubin 2006, Talts et al. 2018). This is repeated `replicates` times. With `data`,
#' the owner checks a design on the actual records instead, before publishing.
#'
#' @param model,statistic,mechanism The design, as in [simulate_release()]. Alternatively, give a fit as `model`: its model is used, and its release supplies
#'   any other missing argument.
#' @param n The number of records, known to the analyst; or a prior for it, see [prior_n()]. With a prior, n is drawn in every replicate and is not
#'   in the release, the sampler gets the prior as `prior_n`, and n is also ranked. This needs `neighbours = "add_remove"`. With `data`, n is the number of
#'   rows: leave it out, or give a prior if n will not be published.
#' @param neighbours As in [release()].
#' @param replicates Number of replicates.
#' @param method As in [sample_posterior()]; or `"nonprivate"`, for
#'   [nonprivate_posterior()] of the simulated records. Or your own sampler: a function of `release` and `model` (and of `data`, the simulated records, if it
#'   has such an argument). It returns a fit, or draws of some or all parameters in any form that [posterior::as_draws()] accepts. If they include a variable
#'   `log_eta`, log eta(z | s) is also ranked.
#' @param ... Further arguments for the sampler; for [sample_posterior()]: `chains`, `iter`, `warmup`, `thin`, `control`. Without
#'   `iter`, chains that are too short are run again, as there; this may take much longer.
#' @param parameters `NULL` draws the truth from the prior in every replicate. A named vector fixes these parameters, and the others are drawn from the prior
#'   independently of them. Then [coverage()] is the coverage of the intervals at this point, and ranks need not be uniform. With `data`: your own estimates of
#'   some of the parameters, instead of those from [nonprivate_posterior()].
#' @param level Probability inside the stored intervals.
#' @param seed A whole number that fixes everything, or `NULL` to use R's
#'   generator as it is. Results depend on the seed, not on `future::plan()`.
#' @param file Name of a file that stores finished replicates, or `NULL`. If the file exists, the run resumes from it.
#' @param data `NULL`, or a data frame of confidential records: the owner's own check, see below.
#'
#' @details
#' **On the records themselves.** With `data` each replicate is a new release of these records and a fit to it. The true value is the estimate from the records:
#' the posterior mean of each parameter without noise or clamping ([nonprivate_posterior()]). The intervals also allow for sampling error, so they should
#' contain these estimates at least as often as their nominal level. If they do so less often, the model misses a feature of these records: a dependence between
#' variables, a distributional shape, values outside the bounds. Warnings and messages from the fits are counted, because an analyst will see them. For each
#' parameter, `summary()` shows the records' `estimate`, the `coverage` of intervals with probability `level`, and `z`, the average distance of the posterior
#' mean from the estimate in posterior sds. It also shows the average posterior `sd`, the sd given the records themselves (`own_sd`), `rhat` and `ess`. `plot()`
#' draws the intervals. The releases are simulated ([simulate_release()]).
#'
#' **The result is confidential, like the records**: it contains their estimates, and so does `file`. Never publish it with a release. Choices based on it
#' (bounds, an epsilon, whether to publish) are not covered by the release's epsilon.
#'
#' **Default priors** are wide. Most records simulated from them resemble no real ones, many lie outside the bounds, and chains may mix badly. To check a design
#' for realistic parameters, give informative priors, `parameters` or `data`.
#'
#' **Ranks.** Each variable's draws are thinned by the ratio of their number to their effective number, so that they are nearly independent; ties are broken at
#' random. In addition to the parameters, `log_eta` is ranked: log eta(z | s), the log noise density at the imputed statistic up to a constant. Ranks of the
#' parameters alone cannot distinguish the posterior from the prior.
#'
#' **Many cores, many machines.** Replicates run in chunks of about a second,
#' through the future package: `future::plan(multisession, workers = 2)` on one
#' machine, `plan(cluster, workers = c("node1", "node2"))` over SSH. On a Slurm cluster, with the template that comes with batchtools, or with your site's
#' template,
#' ```r
#' library(future.batchtools)
#' plan(batchtools_slurm, workers = 50,
#'      template = system.file("templates", "slurm-simple.tmpl", package = "batchtools"),
#'      resources = list(ncpus = 1, walltime = 3600, memory = 1024))
#' cal <- calibrate(model, statistic, mechanism, n = 1000, replicates = 5000,
#'                  seed = 1, file = "calibration.jsonl")
#' ```
#' submits every chunk as a separate job (walltime in seconds, memory in MB). The first jobs have one replicate each; later jobs run ten times as long as a job
#' waits in the queue, up to ten minutes. All nodes must be able to access the directory and the installed package. Start the call in `screen`, or as a job, on
#' a machine that stays up. If it is stopped, the same call resumes it. Within a job that already has several nodes,
#' `plan(cluster, workers = parallelly::availableWorkers())` needs no queue.
#'
#' Your functions carry along the variables that they use; refer to packages in them with `::`. `progressr::handlers(global = TRUE)` turns on a progress bar.
#'
#' **Failures.** Errors and warnings in a replicate are stored with their messages and counted when the result is printed. Doubtful fits (see [fit_methods]) do
#' not give a warning in each replicate: one warning of class `noiseaware_warning_convergence` counts those with R-hat above 1.05. If a worker dies, its
#' replicates are run again, one by one, on another worker or on workers that the plan restarts. If a replicate loses its worker twice, the error
#' (`noiseaware_error_worker`) contains the finished replicates in its field `calibration`; with a file they are also in the file. An interrupted run returns
#' the finished replicates.
#'
#' **File.** The file has JSON lines: a header that describes the problem, then one line per replicate, added when the replicate returns from its worker. If the
#' process was killed in the middle of the last line, that replicate is run again. Any other damage, or a file from a different problem, is an error, and
#' nothing in the file is used. Problems are compared by the text of models, functions and arguments; variables in a function's environment are not compared.
#'
#' @return An object of class `calibration`, see [calibration_methods]. It has three data frames:
#'
#'   | data frame | rows | columns |
#'   | --- | --- | --- |
#'   | `results` | replicates and variables | `truth`, `rank`, `draws`, `quantile`, `mean`, `sd`, `lower`, `upper`, `rhat`, `ess` |
#'   | `runs` | replicates | `seed`, `seconds`, `method`, `failed` |
#'   | `conditions` | errors and warnings | `replicate`, `type`, `class`, `message` |
#'
#'   The truth's `rank` is among `draws` thinned draws, and `quantile` is (rank + U) / (draws + 1) with U uniform. `lower` and `upper` are the ends of the
#'   central interval.
#' @section Errors: The errors of [simulate_release()] and [sample_posterior()], before anything is run; `noiseaware_error_file`, `noiseaware_error_worker`,
#'   `noiseaware_error_interrupted` (before the first replicate was finished).
#' @references
#' Cook, S. R., Gelman, A. and Rubin, D. B. (2006). Validation of software for Bayesian models using posterior quantiles. *Journal of Computational and
#' Graphical Statistics* 15, 675-692. \doi{10.1198/106186006X136976}
#'
#' Talts, S., Betancourt, M., Simpson, D., Vehtari, A. and Gelman, A. (2018).
#' Validating Bayesian inference algorithms with simulation-based calibration.
#' \doi{10.48550/arXiv.1804.06788}
#' @seealso [coverage()], [design()].
#' @family evaluation
#' @examples
#' st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
#' cal <- calibrate(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 20,
#'   replicates = 10, chains = 1, iter = 400, seed = 1)
#' cal
#'
#' # the design of a fit
#' rel <- as_release(c(12, 8), st, mech_laplace(epsilon = 1), n = 20)
#' fit <- sample_posterior(rel, model_bernoulli(), chains = 2, iter = 1000, seed = 1)
#' calibrate(fit, replicates = 10, chains = 1, iter = 400, seed = 1)
#' @concept simulation-based calibration
#' @concept coverage
#' @export
calibrate <- function(model, statistic, mechanism, n, replicates = 200, method = "auto", ...,
                      parameters = NULL, level = 0.95, seed = NULL, file = NULL, neighbours = c("replace", "add_remove"), data = NULL) {
  if (!missing(model) && is_theirs(model, "survey", "calibrate")) return(call_theirs("survey", "calibrate"))
  if (!missing(model) && inherits(model, "noiseaware_fit")) {
    of <- design_of_fit(model)
    model <- of$model
    if (missing(statistic)) statistic <- of$statistic
    if (missing(mechanism)) mechanism <- of$mechanism
    if (missing(n) && is.null(data)) n <- of$n
    if (missing(neighbours)) neighbours <- of$neighbours
  }
  if (!is.null(data) && missing(n)) n <- NULL
  check_given()
  check_model(model)
  neighbours <- match_neighbours(neighbours)
  if (!is.null(data)) check_person_named(neighbours)
  check_design(statistic, mechanism, neighbours)
  for (p in design_parts(statistic, mechanism)) mechanism_scale(p$mechanism, p$statistic, neighbours = neighbours)
  n <- if (is.null(data)) check_calibrated_size(n, neighbours) else check_data_size(data, n, neighbours)
  data <- data_in_bins(data, statistic, model)
  narrow <- narrow_design(model, statistic, mechanism, neighbours)
  statistic <- narrow$statistic
  mechanism <- narrow$mechanism
  model <- settle_factors(model, statistic, n, method, has_noisy_records(design_parts(statistic, mechanism)))
  bound <- bind_model(model, statistic)
  check_records_distribution(bound)
  if (!is.null(parameters)) {
    check_some_parameters(parameters, bound)
    draw_truth(bound, parameters, new_stream(c(1, 2))) # are they possible?
  }
  problem <- list(model = model, statistic = statistic, mechanism = mechanism, neighbours = neighbours, n = n,
                  method = check_sampler(method), arguments = check_sampler_arguments(list(...), method),
                  parameters = parameters, level = check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE),
                  seed = check_seed(seed))
  if (!is.null(data)) problem$data <- calibrated_data(bound, data, parameters)
  replicates <- check_count(replicates, "replicates")
  if (is.null(file)) {
    problem$seed <- problem$seed %||% new_seed()
    return(complete_calibration(problem, list(), replicate_seeds(problem$seed, replicates)))
  }
  check_path(file)
  stored <- resume_file(file, problem)
  problem$seed <- stored$seed
  complete_calibration(problem, stored$runs, replicate_seeds(problem$seed, replicates), file)
}

check_sampler <- function(method, call = caller_env()) {
  if (is.function(method)) {
    if (!accepts_arguments(method, 2L) && !"data" %in% names(formals(method))) {
      stop_argument("method", "a method's name or a function of release and model", "a function with other arguments", "method", call)
    }
    return(if (is.primitive(method)) method else without_source(method))
  }
  check_choice(method, "method", c("auto", sampling_methods, "nonprivate"), "method", call)
}

# what sample_posterior() would refuse in every replicate
check_sampler_arguments <- function(arguments, method, call = caller_env()) {
  known <- if (is.function(method)) names(arguments) else c("chains", "iter", "warmup", "thin", if (method != "nonprivate") "control")
  check_argument_names(arguments, known, call = call)
  if (is.function(method)) return(arguments)
  iter <- arguments$iter %||% 2000
  check_run(arguments$chains %||% 4, iter, arguments$warmup %||% floor(check_count(iter, "iter", call = call) / 2),
            arguments$thin %||% 1, NULL, call)
  if (!is.null(arguments$control)) check_control(arguments$control, method, call)
  arguments
}

# The replicates with the `wanted` seeds; `runs` are there already.
complete_calibration <- function(problem, runs, wanted, file = NULL, call = caller_env()) {
  replicates <- length(wanted)
  runs <- runs[match(wanted, vapply(runs, `[[`, 0L, "seed"), nomatch = 0L)]
  present <- vapply(runs, `[[`, 0L, "seed")
  fresh <- list()
  keep <- function(more) {
    if (!is.null(file)) append_runs(file, more)
    fresh <<- c(fresh, more)
  }
  collect <- function() {
    all <- c(runs, fresh)
    new_calibration(problem, all[order(match(vapply(all, `[[`, 0L, "seed"), wanted))])
  }
  outcome <- run_replicates(problem, setdiff(wanted, present), keep)
  result <- collect()
  if (outcome$status == "done") {
    warn_failed(result, call)
    warn_unconverged(result, call)
    return(result)
  }
  finished <- nrow(result$runs)
  where <- if (!is.null(file)) "They are in {.file {file}}; the same call resumes the run." else
    if (outcome$status == "interrupted") "{.fn extend} runs the others." else
      "They are in this condition's field {.field calibration}; {.fn extend} runs the others."
  if (outcome$status == "interrupted") {
    if (finished == 0L) stop_classed("interrupted", "Interrupted before the first replicate was finished.", call = call)
    cli::cli_warn(c("The run was interrupted: {finished} of {replicates} replicate{?s} {?is/are} finished.", i = where),
                  class = "noiseaware_warning_interrupted", call = call)
    return(result)
  }
  cli::cli_abort(c("A worker failed: {finished} of {replicates} replicate{?s} {?is/are} finished.",
                   x = "{shorten_text(outcome$message, 300L)}", i = where),
                 class = c("noiseaware_error_worker", "noiseaware_error"), calibration = result, call = call)
}

warn_failed <- function(result, call) {
  failed <- result$runs$replicate[result$runs$failed]
  if (length(failed) == 0L) return(invisible())
  errors <- result$conditions[result$conditions$type == "error", ]
  cli::cli_warn(c("{length(failed)} of {nrow(result$runs)} replicate{?s} failed.",
                  x = "Replicate {errors$replicate[1]}: {shorten_text(errors$message[1], 300L)}",
                  i = "All messages are in the result's {.field conditions}."),
                class = "noiseaware_warning_failed", call = call)
}

# one warning for all replicates, which keep theirs to themselves
warn_unconverged <- function(result, call) {
  high <- count_unconverged(result)
  if (high && !session$quiet) rlang::warn(unconverged_line(result, high), class = "noiseaware_warning_convergence", call = call)
}

#' @rdname extend
#' @param replicates How many replicates to add to a calibration.
#' @export
extend.calibration <- function(fit, replicates, ...) {
  check_given()
  check_no_dots(...)
  replicates <- check_count(replicates, "replicates")
  there <- calibration_runs(fit)
  seeds <- fit$runs$seed
  # the first seeds of this problem that are not there; those of others that were bound stay
  fresh <- setdiff(replicate_seeds(fit$problem$seed, length(seeds) + replicates), seeds)[seq_len(replicates)]
  complete_calibration(fit$problem, there, c(seeds, fresh))
}

# model, statistic, mechanism, n and neighbours of a fit
design_of_fit <- function(fit, call = caller_env()) {
  release <- fit$release
  if (!inherits(release, "noiseaware_release") || has_public(release) || is_read_off(fit)) {
    stop_classed("argument", c("A fit as {.arg model} must be of one release without public covariates.",
                               i = "Otherwise give {.arg model}, {.arg statistic}, {.arg mechanism} and {.arg n}."), call = call)
  }
  list(model = fit$bound$model, statistic = release$statistic, mechanism = release$mechanism, n = release$n %||% fit$problem$prior_n, neighbours = release$neighbours)
}
