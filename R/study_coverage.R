#' Coverage of posterior intervals
#'
#' How often central posterior intervals contain the true value, over the replicates of a calibration; or how often predictive intervals from a fit contain the
#' response of new records (Bernstein & Sheldon 2019, Figure 4).
#'
#' @param x A calibration from [calibrate()]; or a fit of [model_lm()], or a named
#'   list of such fits.
#' @param levels Probabilities inside the intervals.
#' @param variables Names of variables; all by default.
#' @param prob Probability of the Monte Carlo interval of the coverage.
#' @param newdata For fits: new records, including the response; for a list of fits, a list of data frames, one for each.
#' @param seed For fits: fixes the predictive draws; see [sample_posterior()].
#' @param ... Must be empty.
#' @return A data frame of class `noiseaware_coverage` with a row for each variable and level. `plot()` draws it, see [plot.calibration()]. The columns are:
#'
#' | column | meaning |
#' | --- | --- |
#' | `variable` | the variable; for fits, their name, or the name of the response |
#' | `level`, `coverage` | probability inside the interval, and the share of intervals that contain the true value |
#' | `lower`, `upper` | Clopper-Pearson interval of the coverage, since the number of intervals that contain the true value is binomial |
#' | `replicates` | number of replicates; for fits, of new records |
#' @details A central interval of level l contains the true value if and only if the value's posterior quantile is between (1 - l) / 2 and (1 + l) / 2, so any
#'   level can be requested afterwards. Fits with the same name are combined.
#' @section Errors: `noiseaware_error_argument`.
#' @references
#' Bernstein, G. and Sheldon, D. (2019). Differentially private Bayesian linear
#' regression. \doi{10.48550/arXiv.1910.13153}
#' @family evaluation
#' @examples
#' st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
#' cal <- calibrate(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 20,
#'   replicates = 10, chains = 1, iter = 400, seed = 1)
#' coverage(cal, levels = c(0.5, 0.9))
#' @export
coverage <- function(x, ...) UseMethod("coverage")

#' @export
coverage.default <- function(x, ...) {
  check_given()
  stop_argument("x", "a calibration made by calibrate()", describe(x))
}

#' @rdname coverage
#' @export
coverage.calibration <- function(x, levels = c(0.5, 0.8, 0.9, 0.95), variables = NULL, prob = 0.95, ...) {
  check_no_dots(...)
  check_probabilities(levels, "levels")
  prob <- check_number(prob, "prob", "a number between 0 and 1", 0, 1, strict = TRUE)
  quantiles <- variable_quantiles(x, variables)
  rows <- lapply(names(quantiles), function(v) {
    held <- vapply(levels, function(l) sum(inside_central(quantiles[[v]], l)), 0)
    cbind(variable = v, coverage_rows(levels, held, length(quantiles[[v]]), prob))
  })
  structure(do.call(rbind, rows), class = c("noiseaware_coverage", "data.frame"), prob = prob,
            mirrored = if (is.null(variables)) calibration_mirrored(x))
}

#' @rdname coverage
#' @export
coverage.noiseaware_fit <- function(x, levels = c(0.5, 0.8, 0.9, 0.95), newdata, prob = 0.95, seed = NULL, ...) {
  check_given()
  check_no_dots(...)
  coverage(stats::setNames(list(x), x$bound$columns$name[1L]), levels, newdata, prob, seed)
}

#' @rdname coverage
#' @export
coverage.list <- function(x, levels = c(0.5, 0.8, 0.9, 0.95), newdata, prob = 0.95, seed = NULL, ...) {
  check_given()
  check_no_dots(...)
  ok <- length(x) > 0L && !is.null(names(x)) && all(vapply(x, inherits, TRUE, "noiseaware_fit"))
  if (!ok) stop_argument("x", "a calibration, a fit or a named list of fits", describe(x))
  check_probabilities(levels, "levels")
  prob <- check_number(prob, "prob", "a number between 0 and 1", 0, 1, strict = TRUE)
  if (is.data.frame(newdata)) newdata <- rep(list(newdata), length(x))
  if (!is.list(newdata) || length(newdata) != length(x)) {
    stop_argument("newdata", paste("a data frame, or a list of", length(x)), describe_shape(newdata), "data")
  }
  quantiles <- with_seed(check_seed(seed), Map(predictive_quantiles, x, newdata, list(environment())))
  rows <- lapply(unique(names(x)), function(name) {
    q <- unlist(quantiles[names(x) == name])
    cbind(variable = name, coverage_rows(levels, vapply(levels, function(l) sum(inside_central(q, l)), 0), length(q), prob))
  })
  structure(do.call(rbind, rows), class = c("noiseaware_coverage", "data.frame"), prob = prob)
}

# of each new response its quantile among predictive draws: uniform if they have its distribution, see draws_quantiles()
predictive_quantiles <- function(fit, newdata, call = caller_env()) {
  if (!isFALSE(response_of(fit$bound)$binary)) {
    stop_classed("argument", "{.arg x} must be a fit of a regression such as {.fn model_lm}: intervals for a new response need a continuous response.", call = call)
  }
  draws <- add_residual(fit, expected_response(fit, newdata, call))
  response <- fit$bound$columns$name[1L]
  y <- newdata[[response]]
  if (!is.numeric(y) || anyNA(y)) stop_classed("data", "{.arg newdata} must have the response {.var {response}} as numbers, without missing values.", call = call)
  (colSums(sweep(draws, 2L, y, `<`)) + stats::runif(length(y))) / (nrow(draws) + 1)
}

coverage_rows <- function(levels, held, trials, prob) {
  tail <- (1 - prob) / 2
  data.frame(level = levels, coverage = held / trials,
             lower = ifelse(held == 0, 0, stats::qbeta(tail, held, trials - held + 1)),
             upper = ifelse(held == trials, 1, stats::qbeta(1 - tail, held + 1, trials - held)),
             replicates = trials)
}

check_probabilities <- function(levels, name, call = caller_env()) {
  ok <- is.numeric(levels) && length(levels) > 0L && !anyNA(levels) && all(levels > 0 & levels < 1)
  if (!ok) stop_argument(name, "numbers between 0 and 1", describe(levels), call = call)
}

#' @export
print.noiseaware_coverage <- function(x, ...) {
  wanted <- c("variable", "level", "coverage", "lower", "upper", "replicates")
  if (nrow(x) == 0L || !all(wanted %in% names(x))) return(NextMethod())
  prob <- attr(x, "prob")
  cat("<coverage> of central intervals\n")
  cat("  replicates  ", paste(unique(range(x$replicates)), collapse = " to "), "\n", sep = "")
  cat("  in brackets ", if (!is.null(prob)) paste0(format_number(100 * prob), "% "), "Monte Carlo interval\n\n", sep = "")
  shown <- data.frame(variable = x$variable, level = format_number(x$level), coverage = format_coverage(x$coverage, x$lower, x$upper))
  print(shown, row.names = FALSE)
  invisible(x)
}
