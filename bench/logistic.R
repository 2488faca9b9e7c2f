# Logistic regression: nanoseconds for one update of a record, the Polya-Gamma
# draw of its theta-update included, for that draw alone, and for one non-centred
# pass.
#
#   Rscript bench/logistic.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

logistic_cost <- function(n, p, quick) {
  release <- logistic_release(n, p)
  ready <- function(passes, warmup) {
    sample_posterior(release, model_logistic(), chains = 1, iter = warmup + 1, warmup = warmup, seed = 1, control = list(passes = passes))
  }
  more <- ceiling((if (quick) 1e6 else 1e7) / n)
  sweep <- seconds_extended(ready(0, 20), more) / more / n
  more <- max(2, ceiling(more / 3))
  pass <- (seconds_extended(ready(10, 200), more, 3L) / more / n - sweep) / 10
  data.frame(n = n, covariates = p, `ns per record update` = 1e9 * sweep, `ns per record and pass` = 1e9 * pass, check.names = FALSE)
}

# through R, a million at a time; the allocation is not subtracted
polya_gamma_cost <- function(tilt) {
  stream <- noiseaware:::new_stream(c(1, 2))
  1e9 * stats::median(replicate(5L, seconds(.Call(noiseaware:::ffi_rng_draw, stream, "polya_gamma", 1000000L, tilt)))) / 1e6
}

bench_logistic <- function(quick = FALSE) {
  logistic_cost(100, 1, TRUE) # loads what the first call loads
  sizes <- if (quick) 1e4 else c(1e3, 1e5)
  cases <- expand.grid(n = sizes, p = c(1, 2, 5))
  costs <- do.call(rbind, Map(logistic_cost, cases$n, cases$p, quick))
  tilts <- c(0, 1, 2, 4, 8)
  draws <- data.frame(tilt = tilts, `ns a draw` = vapply(tilts, polya_gamma_cost, 0), check.names = FALSE)
  bench_result(
    Map(function(n, p, ns) figure("ns per record update", sprintf("n = %s, covariates: %d", format_figure(n), p), ns, 250, TRUE),
        costs$n, costs$covariates, costs[[3L]]),
    list("Updates and passes" = costs, "PG(1, tilt)" = draws),
    "y on independent normal covariates, everything unknown, crossed totals with Laplace noise, epsilon 1. Time of extend(), set-up subtracted.")
}

run_alone(bench_logistic)
