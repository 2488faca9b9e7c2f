#' Compare naive, noise-aware and confidential analyses
#'
#' Analyses one release in several ways: accounting for the noise, treating the noisy totals as true, and, for data owners and simulation studies, using the
#' confidential records.
#'
#' @param release,model As in [sample_posterior()]. Or a fit, without a model: it is compared with other analyses of its release, with its settings.
#' @param data All confidential records of the release, or `NULL` to omit that analysis. With `data` the result is **not private**.
#' @param methods Methods of [sample_posterior()]; by default `"auto"`, and `"naive"` if it is available.
#' @param level Probability inside the intervals.
#' @param ... Further arguments of [sample_posterior()]: `chains`, `iter`, `warmup`,
#'   `thin`; `init` and `control`, which the analysis of `data` does not use.
#' @param seed As in [sample_posterior()].
#' @return An object of class `noiseaware_comparison`: `table`, a data frame with the columns
#'   `analysis`, `variable`, `mean`, `sd`, `lower`, `upper`; `fits`, a named list.
#'   `plot()` draws the intervals.
#' @section Errors: The errors of [sample_posterior()] and [nonprivate_posterior()].
#' @family checks and tests
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' both <- compare_analyses(rel, model_lm(), MASS::birthwt, chains = 2, iter = 400, seed = 1)
#' both
#' plot(both, variables = c("age", "sigma"))
#' @export
compare_analyses <- function(release, model, data = NULL, methods = NULL, level = 0.95, ..., seed = NULL) {
  fit <- if (!missing(release) && inherits(release, "noiseaware_fit")) check_compared(release, missing(model))
  if (!is.null(fit)) {
    model <- fit$asked$model
    release <- fit$whole %||% fit$release
  }
  check_given()
  check_release(release)
  check_model(model)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  methods <- methods %||% c("auto", if (!is.null(release$n) && has_method(model, release$statistic, "naive")) "naive")
  if (!is.character(methods) || length(methods) == 0L) stop_argument("methods", "names of methods", describe(methods))
  again <- ...length() > 0L || !is.null(seed)
  settings <- c("chains", "iter", "warmup", "thin", "init", "control", "prior_n")
  further <- c(list(...), fit$asked[setdiff(intersect(settings, names(fit$asked)), ...names())])
  check_argument_names(further, settings)
  seed <- check_seed(seed) %||% new_seed() # the same for all
  confidential <- if (!is.null(data)) {
    if (is.data.frame(data) && !is.null(release$n) && nrow(data) != release$n) {
      stop_classed("data", "{.arg data} must have as many rows as the release has records, {release$n}, but has {nrow(data)}.")
    }
    run <- further[intersect(names(further), c("chains", "iter", "warmup", "thin"))]
    do.call("nonprivate_posterior", c(list(data, model, release$statistic, seed = seed), run), quote = TRUE)
  }
  # a method without entries has no use for `control` either
  analyse <- function(method, ..., control = list()) {
    if (method != "auto" && length(engine_control(as_engine(method))) == 0L) control <- list()
    sample_posterior(release, model, method, ..., control = control, seed = seed)
  }
  known <- if (!again) list(auto = fit)
  fits <- lapply(methods, function(method) known[[method]] %||% do.call(analyse, c(list(method), further), quote = TRUE))
  names(fits) <- ifelse(methods == "auto", "noise-aware", methods)
  fits$confidential <- confidential
  table <- do.call(rbind, lapply(names(fits), function(name) cbind(analysis = name, interval_table(fits[[name]], level))))
  structure(list(table = table, fits = fits, level = level), class = "noiseaware_comparison")
}

# a fit of one population, whose model and release are known
check_compared <- function(fit, alone, call = caller_env()) {
  refuse_several(fit, "release", call = call)
  if (is.null(fit$asked)) stop_argument("release", "a release, or a fit made by sample_posterior()", describe(fit), call = call)
  if (!alone) stop_classed("argument", "{.arg model} must be left out if there is a fit, which has a model.", call = call)
  fit
}

# does that method exist for one statistic with that model?
has_method <- function(model, statistic, method) {
  !is_several(statistic) && method %in% supported(model, statistic)$method
}

# variable, mean, sd, lower, upper of a fit
interval_table <- function(fit, level) {
  draws <- parameter_matrix(fit)
  ends <- draws_interval(draws, level)
  data.frame(variable = colnames(draws), mean = colMeans(draws), sd = apply(draws, 2L, stats::sd),
             lower = ends[1L, ], upper = ends[2L, ], row.names = NULL)
}

#' @export
print.noiseaware_comparison <- function(x, ...) {
  release <- x$fits[[1L]]$release
  cat("<comparison> ", describe_model(x$fits[[1L]]$bound), "\n", sep = "")
  mechanisms <- vapply(release_parts(release), function(p) format(p$mechanism), "")
  cat("  records    ", if (is.null(release$n)) "not known" else format_number(release$n), "; ", paste(mechanisms, collapse = "; "), "\n", sep = "")
  cat("  intervals  ", 100 * x$level, "%\n\n", sep = "")
  ordered <- x$table[order(match(x$table$variable, unique(x$table$variable))), ]
  number <- function(v) formatC(v, digits = 4, format = "g", flag = "#")
  shown <- data.frame(variable = ifelse(duplicated(ordered$variable), "", ordered$variable), analysis = ordered$analysis,
                      lapply(ordered[c("mean", "sd", "lower", "upper")], number))
  print(shown, row.names = FALSE)
  invisible(x)
}
