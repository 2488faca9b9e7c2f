#' Predict the precision of a release before it is made
#'
#' Simulates releases over a grid of budgets, numbers of records and statistics
#' (bounds), and reports how precisely the parameters would be estimated. Or
#' finds the budget that gives the intervals that you need (`ratio`).
#'
#' @param model A model. If the statistics differ, specify its priors in full: default priors are scaled by the bounds (see [priors]), and so are the parameter
#'   values drawn from them.
#' @param statistic A statistic, or a named list of statistics to compare.
#' @param mechanism A function that returns a mechanism for a given budget, such as [mech_laplace()] or `function(rho) mech_gaussian(rho = rho)`. The budget is
#'   its argument `epsilon`, if it has one, otherwise its first argument; the result and the plot use the name of this argument.
#' @param epsilon Budgets, passed to `mechanism`. Leave it out with `ratio`.
#' @param ratio Instead of `epsilon`: how many times as wide the intervals may be as those from the records themselves, a number above 1. Finds the budget at
#'   which the widest interval, relative to the one from the records, reaches this ratio. This concerns the coefficients of a regression, all parameters of other
#'   models, or the given `variables` or `parameters`; only these are printed. The result is accurate to 2% or the Monte Carlo error from
#'   `replicates`. Budgets are first tried with a quarter of the replicates, and those near the ratio with all of them; a message shows
#'   those that take more than 5 seconds.
#' @param n Numbers of records, assumed known. A prior for an unknown number is not accepted, because each grid cell has one number; [calibrate()] accepts such
#'   a prior.
#' @param neighbours As in [release()].
#' @param replicates,method,level,seed,... As in [calibrate()], for each cell of the grid. Every cell has the same seed.
#' @param parameters The truth: values of some or all of the parameters, or a fit whose posterior means are used, for example to a pilot study or an earlier
#'   release. Parameters without a value are set to the middle of their priors, with the response of a regression in the middle of its bounds. With `NULL`, all
#'   are drawn from the prior, or set to the middle of it with `ratio`: far from there, all values may be clamped, and no budget helps. The budget that is
#'   needed depends on these values, above all on sigma and on the covariates' spread and effects: the printed design shows them.
#' @param x A design.
#' @param variables Names of variables that `ratio` concerns, by default those in `parameters`, if they are not all, or the coefficients. For `plot()`: those to
#'   draw; by default all, or those that `ratio` concerns.
#'
#' @return A data frame of class `noiseaware_design`, with a row for each cell and parameter. With `ratio`, its attribute `needed` has the `budget` for each
#'   number of records and statistic (`NA` if none was found), the `ratio` there and its `variable`, and the `least` and `most` that were tried.
#'   `plot()` draws `sd`, or the ratio that was searched for. The columns are
#'
#' | column | meaning |
#' | --- | --- |
#' | `statistic`, `epsilon`, `n`, `variable` | the cell and the parameter; `mechanism` may give its budget another name, such as `rho` |
#' | `sd`, `sd_mcse` | expected posterior standard deviation, and its Monte Carlo standard error |
#' | `rmse` | root mean squared error of the posterior mean |
#' | `width` | expected width of the interval with probability `level` |
#' | `coverage`, `coverage_lower`, `coverage_upper` | coverage of that interval, with a 95 per cent Monte Carlo interval |
#' | `replicates` | number of replicates that did not fail |
#' | `of_prior` | `width` as a share of the prior interval's width |
#' | `without`, `ratio` | expected width given the records themselves, and `width` divided by it; `NA` if [nonprivate_posterior()] is not available |
#' @section Warnings: If `of_prior` is above 0.9, the release hardly narrows the prior, and `sd` and `coverage` are properties of the prior. A warning of class
#'   `noiseaware_warning_prior` names these cells.
#' @section Errors: The errors of [calibrate()].
#' @family evaluation
#' @examples
#' st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
#' plan <- design(model_bernoulli(), st, epsilon = c(0.1, 1), n = c(50, 200),
#'   replicates = 4, chains = 1, iter = 400, seed = 1)
#' plan
#' plot(plan)
#' # at which epsilon is the interval of a probability of 0.3 twice as wide as from the records?
#' design(model_bernoulli(), st, n = 200, ratio = 2, parameters = c("prob[yes]" = 0.3),
#'   replicates = 4, chains = 1, iter = 400, seed = 1)
#' @concept choice of epsilon
#' @concept privacy budget
#' @concept sample size
#' @concept power
#' @export
design <- function(model, statistic, mechanism = mech_laplace, epsilon = NULL, n, replicates = 50, method = "auto", ...,
                   parameters = NULL, level = 0.95, seed = NULL, neighbours = c("replace", "add_remove"), ratio = NULL, variables = NULL) {
  check_given()
  check_model(model)
  neighbours <- match_neighbours(neighbours)
  if (inherits(statistic, "noiseaware_statistic")) statistic <- list(statistic = statistic)
  ok <- is.list(statistic) && length(statistic) > 0L && checkmate::test_names(names(statistic), "unique") &&
    all(vapply(statistic, inherits, TRUE, "noiseaware_statistic"))
  if (!ok) stop_argument("statistic", "a statistic, or a list of statistics with different names", describe(statistic))
  check_design_budget(mechanism, epsilon, ratio)
  check_design_sizes(n)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  check_sampler_arguments(list(...), check_sampler(method))
  budget <- mechanism_budget(mechanism)
  make <- function(value) do.call(mechanism, stats::setNames(list(value), budget))
  mechanisms <- lapply(epsilon %||% 1, make)
  for (s in statistic) for (m in mechanisms) check_design(s, m, neighbours)
  seed <- check_seed(seed) %||% new_seed()
  bounds <- lapply(statistic, function(s) bind_settled(model, narrow_design(model, s, mechanisms[[1L]], neighbours)$statistic, method))
  widths <- with_seed(seed, lapply(bounds, prior_widths, level))
  parameters <- design_values(parameters, bounds)
  variables <- check_design_variables(variables, ratio, bounds)
  truths <- lapply(bounds, design_centre, parameters %||% if (!is.null(ratio)) numeric())
  cells <- expand.grid(n = n, statistic = names(statistic), stringsAsFactors = FALSE)
  call <- environment()
  found <- say_once(Map(function(n, name) {
    # the width without noise is that of records with the same factors
    if (takes_factors(model)) model$factors <- bounds[[name]]$model$factors %||% "independent"
    run <- function(mechanism, method, count, ...) {
      calibrate(model, statistic[[name]], mechanism, n, count, method, ..., parameters = truths[[name]], level = level, seed = seed, neighbours = neighbours)
    }
    without <- widths_of_records(run, mechanisms[[1L]], replicates, list(...))
    wanted <- variables %||% main_parameters(bounds[[name]], names(parameters))
    if (!is.null(ratio) && anyNA(without[wanted])) {
      stop_classed("method", "{.arg ratio} needs the width without noise, and this model has no posterior from records.", call = call)
    }
    of <- function(value, count = replicates) {
      cal <- run(make(value), method, count, ...)
      cell <- stats::setNames(data.frame(name, value, n), c("statistic", budget, "n"))
      cell <- cbind(cell, design_rows(cal, level))
      cell$of_prior <- cell$width / widths[[name]][cell$variable]
      cell$without <- unname(without[cell$variable])
      cell$ratio <- cell$width / cell$without
      structure(cell, mirrored = calibration_mirrored(cal))
    }
    if (is.null(ratio)) lapply(sort(epsilon), of) else search_budget(ratio, of, wanted, budget, replicates, call = call)
  }, cells$n, cells$statistic))
  rows <- unlist(found, recursive = FALSE)
  result <- structure(do.call(rbind, rows), class = c("noiseaware_design", "data.frame"), level = level, budget = budget,
                      mirrored = attr(rows[[length(rows)]], "mirrored"), values = truths[!duplicated(truths)], given = names(parameters))
  if (is.null(ratio)) {
    warn_prior_decides(result)
  } else {
    attr(result, "needed") <- cbind(cells, do.call(rbind, lapply(found, attr, "needed")))
    attr(result, "asked") <- ratio
    attr(result, "of_interest") <- unique(unlist(lapply(found, attr, "wanted")))
    warn_not_found(attr(result, "needed"), ratio, budget)
  }
  result
}

check_design_budget <- function(mechanism, epsilon, ratio, call = caller_env()) {
  if (!is.function(mechanism)) {
    stop_argument("mechanism", "a function that makes a mechanism from a budget, such as mech_laplace", describe(mechanism), call = call)
  }
  check_one_of(list(epsilon = epsilon, ratio = ratio), "argument", call)
  if (!is.null(ratio)) check_number(ratio, "ratio", "a number above 1", 1, 1e4, strict = TRUE, call = call)
  if (is.null(ratio) && (!is.numeric(epsilon) || length(epsilon) == 0L)) stop_argument("epsilon", "positive numbers", describe(epsilon), call = call)
}

# values by parameter; NULL if none are given
design_values <- function(parameters, bounds, call = caller_env()) {
  if (inherits(parameters, "noiseaware_fit")) {
    means <- colMeans(parameter_matrix(parameters))
    lacks <- setdiff(bounds[[1L]]$parameters, names(means))
    if (length(lacks)) {
      stop_argument("parameters", "values, or a fit with the same parameters as the model", paste("a fit without", shorten_list(lacks, 5L)), call = call)
    }
    parameters <- means[bounds[[1L]]$parameters]
  }
  if (!is.null(parameters)) for (bound in bounds) check_some_parameters(parameters, bound, call)
  parameters
}

check_design_variables <- function(variables, ratio, bounds, call = caller_env()) {
  if (is.null(variables)) return(NULL)
  if (is.null(ratio)) stop_argument("variables", "NULL without a ratio", describe(variables), call = call)
  for (bound in bounds) variables <- check_names_of(variables, "variables", "parameters of the model", bound$parameters, call = call)
  variables
}

check_design_sizes <- function(n, call = caller_env()) {
  if (inherits(n, "prior_n")) {
    stop_classed("argument", c("{.arg n} must be positive whole numbers: a design is for known numbers of records.",
                               x = "It is a prior for an unknown number, {format(n)}.",
                               i = "{.fn calibrate} accepts it: its {.code $results} have the posterior sd and interval of each replicate."), call = call)
  }
  if (!is.numeric(n) || length(n) == 0L) stop_argument("n", "positive whole numbers", describe(n), call = call)
  for (value in n) check_count(value, "n", call = call)
}

# the mean width of intervals from simulated records, by parameter; NA where a model has no such posterior
widths_of_records <- function(run, mechanism, count, arguments) {
  arguments <- arguments[intersect(names(arguments), c("chains", "iter", "warmup", "thin"))]
  cal <- tryCatch(suppressWarnings(do.call(run, c(list(mechanism, "nonprivate", count), arguments)), classes = "noiseaware_warning_convergence"),
                  noiseaware_error = function(e) NULL)
  if (is.null(cal) || all(cal$runs$failed)) return(NA_real_)
  c(tapply(cal$results$upper - cal$results$lower, cal$results$variable, mean))
}

# the name of the argument that is the budget
mechanism_budget <- function(mechanism, call = caller_env()) {
  names <- names(formals(args(mechanism) %||% function() NULL)) # some primitives have no arguments that R knows
  budget <- c(intersect("epsilon", names), setdiff(names, "..."))
  if (length(budget) == 0L) stop_argument("mechanism", "a function of a budget", "a function without arguments", call = call)
  budget[1L]
}

# of the prior's central intervals, by parameter
prior_widths <- function(bound, level) {
  ends <- prior_quantiles(bound, (1 + c(-1, 1) * level) / 2, 10000L)
  ends[2L, ] - ends[1L, ]
}

# a column each parameter
prior_quantiles <- function(bound, probabilities, count) {
  draws <- reported(bound, .Call(ffi_model_prior, bound$spec, new_stream(c(1, 2)), count)$theta)
  draws_quantiles(draws, probabilities)
}

# Intervals of more than this share of the prior's width are the prior's.
wide_as_prior <- 0.9

warn_prior_decides <- function(plan, call = caller_env()) {
  rows <- which(plan$of_prior > wide_as_prior)
  if (length(rows) == 0L) return(invisible())
  budget <- design_budget(plan)
  shown <- plan[rows, ]
  where <- paste0(if (length(unique(plan$statistic)) > 1L) paste0(shown$statistic, ", "), budget, " = ", format_number(shown[[budget]]),
                  ", n = ", format_number(shown$n))
  cells <- vapply(split(shown$variable, factor(where, unique(where))), paste, "", collapse = ", ")
  lines <- paste0(names(cells), ": ", cells)
  most <- min(length(lines), 5L)
  more <- length(lines) - most
  bullets <- rlang::set_names(sprintf("{lines[%d]}", seq_len(most)), rep("*", most))
  count <- length(unique(shown$variable))
  cli::cli_warn(c("The prior dominates {count} parameter{?s}: posterior intervals are more than 90% as wide as the prior's.",
                  bullets, if (more > 0L) c("*" = "and {more} other cell{?s}"),
                  i = "See column {.field of_prior}; use a larger budget, more records, tighter bounds, or a prior that you trust."),
                class = "noiseaware_warning_prior", call = call)
}

design_rows <- function(calibration, level) {
  results <- calibration$results
  rows <- lapply(setdiff(names(variable_quantiles(calibration)), "log_eta"), function(v) {
    r <- results[results$variable == v, ]
    held <- coverage_rows(level, sum(inside_central(r$quantile, level)), nrow(r), 0.95)
    data.frame(variable = v, sd = mean(r$sd), sd_mcse = stats::sd(r$sd) / sqrt(nrow(r)), rmse = sqrt(mean((r$mean - r$truth)^2)),
               width = mean(r$upper - r$lower), coverage = held$coverage, coverage_lower = held$lower, coverage_upper = held$upper,
               replicates = nrow(r))
  })
  do.call(rbind, rows)
}

# the name of the column of budgets; rows picked from a design have lost its attributes
design_budget <- function(x) attr(x, "budget") %||% names(x)[match("n", names(x)) - 1L]

#' @export
print.noiseaware_design <- function(x, ...) {
  wanted <- c("n", "variable", "sd", "sd_mcse", "rmse", "width", "coverage", "coverage_lower", "coverage_upper", "replicates")
  if (nrow(x) == 0L || !all(wanted %in% names(x))) return(NextMethod())
  level <- attr(x, "level")
  cat("<design> expected precision of the posterior\n")
  cat("  replicates  ", paste(unique(range(x$replicates)), collapse = " to "), " per cell\n", sep = "")
  values <- attr(x, "values")
  if (length(values) == 1L) cat(values_lines(values[[1L]], attr(x, "given")), sep = "\n")
  cat("  ratio       width divided by the width from the records themselves\n")
  cat("  width       of the ", if (!is.null(level)) paste0(format_number(100 * level), "% "), "interval; coverage with a 95% Monte Carlo interval\n\n", sep = "")
  number <- function(v) formatC(v, digits = 3, format = "g", flag = "#")
  cells <- c(if (length(unique(x$statistic)) > 1L) "statistic", design_budget(x), "n", "variable")
  shown <- data.frame(lapply(unclass(x)[cells], format_cell), lapply(unclass(x)[c("sd", "sd_mcse", "width")], number), ratio = number(x$ratio %||% NA_real_),
                      coverage = format_coverage(x$coverage, x$coverage_lower, x$coverage_upper), check.names = FALSE)
  names(shown)[names(shown) == "sd_mcse"] <- "(mcse)"
  if (all(is.na(x$ratio))) shown$ratio <- NULL
  print(shown[x$variable %in% (attr(x, "of_interest") %||% x$variable), ], row.names = FALSE)
  needed <- attr(x, "needed")
  assumed <- if (length(values) == 1L) spread_lines(values[[1L]], attr(x, "given"), attr(x, "of_interest"))
  if (!is.null(needed)) cat("\n", needed_lines(needed, design_budget(x)), assumed, sep = "\n")
  invisible(x)
}

# the parameters of the simulated records
values_lines <- function(values, given) {
  if (is.null(values)) return("  values      drawn from the prior")
  values <- unlist(values)
  words <- function(names) shorten_list(paste(names, "=", format_number(values[names], 3)), 6L)
  own <- intersect(names(values), given)
  middle <- setdiff(names(values), given)
  c(if (length(own)) paste0("  values      ", words(own)),
    if (length(middle)) paste0(if (length(own)) "              " else "  values      ", words(middle), ": the middle of their priors, as ",
                               if (length(own)) "`parameters` does not have them" else "`parameters` was not given"))
}

# The budget depends on how much covariates vary, which was assumed where it was not given: code for the same at half and at double their sd.
spread_lines <- function(values, given, variables, most = 3L) {
  values <- unlist(values)
  variances <- setdiff(grep("^cov\\[(.*),\\1\\]$", names(values), value = TRUE), given)
  if (length(variances) == 0L) return(NULL)
  if (length(variances) > most) return("  assumed the spread of the covariates: the budget may be several times smaller or larger with other variances in `parameters`")
  code <- function(factor) paste0("c(", paste0("\"", variances, "\" = ", format_number(factor * values[variances], 3), collapse = ", "), ")")
  # with `parameters`, the ratio would concern these
  named <- paste0("variables = c(", paste0("\"", variables, "\"", collapse = ", "), ")")
  c(paste0("  assumed the spread of the covariates, which strongly affects this budget. For half and double their sd, repeat it with ", named, ","),
    paste0("          parameters = ", c(code(1 / 4), code(4))))
}

needed_lines <- function(needed, budget) {
  several <- length(unique(needed$statistic)) > 1L
  what <- ifelse(is.na(needed$budget), sprintf("no %s from %s to %s", budget, format_number(needed$least, 3), format_number(needed$most, 3)),
                 sprintf("%s = %s", budget, format_number(needed$budget, 3)))
  sprintf("  needed  %s for %s records%s: the widest interval, of %s, is %s times as wide as without noise", what, format_size(needed$n),
          if (several) paste0(", ", needed$statistic) else "", needed$variable, format_number(needed$ratio, 3))
}

warn_not_found <- function(needed, ratio, budget, call = caller_env()) {
  lost <- needed[is.na(needed$budget), ]
  if (nrow(lost) == 0L) return(invisible())
  which <- unique(lost$variable)
  cli::cli_warn(c("No {budget} was found with intervals {format_number(ratio, 3)} times as wide as without noise: the interval of {.val {which}} stays wider.",
                  i = "Does the release contain information on {.val {which}}?",
                  i = "If not, add a statistic, give a {.fn fixed} value, or name the parameters of interest in {.arg parameters}."),
                class = "noiseaware_warning_prior", call = call)
}

format_cell <- function(x) if (is.numeric(x)) vapply(x, function(v) format(v, digits = 5, big.mark = ",", decimal.mark = "."), "") else x
