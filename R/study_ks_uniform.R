# Kolmogorov-Smirnov distance of the quantiles of a calibration's variables, or of numbers in [0, 1], from uniform: a row for each variable. The p value is
# exact below 100 replicates; a calibrated sampler's statistic exceeds `critical` once in 100 times.
ks_uniform <- function(x) {
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
