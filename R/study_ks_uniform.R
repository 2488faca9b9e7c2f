#' Kolmogorov-Smirnov distance of ranks from uniform
#'
#' @param x A calibration from [calibrate()], or a numeric vector in \[0, 1\].
#' @return A data frame with a row for each variable:
#'
#'   | column | meaning |
#'   | --- | --- |
#'   | `variable` | its name |
#'   | `statistic` | largest distance between the ECDF of the quantiles and the identity |
#'   | `p.value` | exact below 100 replicates |
#'   | `critical` | a calibrated sampler's statistic exceeds it once in 100 times |
#' @section Errors: `noiseaware_error_argument`.
#' @references
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian inference
#' for exponential families. \doi{10.48550/arXiv.1809.02188}
#' @family evaluation
#' @examples
#' ks_uniform(c(0.1, 0.4, 0.8))
#' @export
ks_uniform <- function(x) {
  check_given()
  if (inherits(x, "calibration")) quantiles <- variable_quantiles(x) else {
    ok <- is.numeric(x) && length(x) > 0L && !anyNA(x) && all(x >= 0 & x <= 1)
    if (!ok) stop_argument("x", "a calibration, or numbers between 0 and 1", describe(x))
    quantiles <- list(x = x)
  }
  rows <- lapply(names(quantiles), function(v) {
    # ties come from reading rounded numbers; the exact distribution is that without them
    test <- suppressWarnings(stats::ks.test(quantiles[[v]], "punif"))
    data.frame(variable = v, statistic = unname(test$statistic), p.value = test$p.value, critical = ks_critical(length(quantiles[[v]])))
  })
  do.call(rbind, rows)
}

# quantile of the statistic: Stephens' (1970) approximation, right to 0.5 per cent
ks_critical <- function(count, prob = 0.99) {
  limit <- stats::uniroot(function(x) 2 * sum((-1)^(0:9) * exp(-2 * (1:10)^2 * x^2)) - (1 - prob), c(0.5, 3))$root
  limit / (sqrt(count) + 0.12 + 0.11 / sqrt(count))
}

# list of quantile vectors, one a variable
variable_quantiles <- function(calibration, variables = NULL, call = caller_env()) {
  results <- calibration$results
  if (nrow(results) == 0L) stop_classed("argument", "Every replicate of the calibration failed; see its {.field conditions}.", call = call)
  variables <- check_names_of(variables, "variables", "variables of the calibration", unique(results$variable), call)
  split(results$quantile, factor(results$variable, variables))
}
