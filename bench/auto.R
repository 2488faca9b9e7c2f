# What method = "auto" takes for a linear regression, and how long that needs to 1,000 effective
# draws: the table of vignettes/algorithms.Rmd, written to vignettes/auto.csv.
#
#   Rscript bench/auto.R [quick]
#
# y = 0.5 + x1 + N(0, 1) on independent standard normal covariates, bounds at 4 standard deviations,
# everything unknown, Laplace noise. Two chains of 2,000 iterations, or
# one of 1,000 where that takes long; rows that are there already are not run again.

if (!exists("bench_result")) source("bench/helpers.R")

stored_file <- "vignettes/auto.csv"

stored <- function() if (file.exists(stored_file)) utils::read.csv(stored_file)

measure <- function(case, quick) {
  release <- normal_release(case$n, case$p, case$epsilon)
  long <- case$n * case$p^2 > 1e6
  iterations <- if (quick) 200 else if (long) 1000 else 2000
  time <- seconds(fit <- suppressWarnings(suppressMessages(sample_posterior(release, model_lm(), chains = if (long) 1 else 2, iter = iterations, seed = 1))))
  ess <- min_ess(posterior::as_draws_array(fit))
  features <- noiseaware:::cost_features(fit$method, release, fit$bound)
  out <- data.frame(case, method = fit$method, seconds = time, ess = ess, rhat = max(noiseaware:::mixing_diagnostics(fit)$rhat),
                    thousand = 1000 * time / ess, predicted = noiseaware:::predict_cost(features)$thousand, iterations = dim(fit$draws)[1L])
  say("p %d n %g epsilon %g: %s, %.1f s, ESS %.0f, R-hat %.3f, predicted %.1f", case$p, case$n, case$epsilon, out$method, time, ess, out$rhat, out$predicted)
  out
}

bench_auto <- function(quick = FALSE) {
  cases <- expand.grid(epsilon = c(1, 10), n = c(1e3, 1e4, 1e5, 1e6), p = c(2, 5, 10, 20))
  if (quick) cases <- cases[c(1, 4), ]
  for (k in seq_len(nrow(cases))) {
    old <- stored()
    if (!quick && !is.null(old) && nrow(merge(cases[k, ], old)) > 0) next
    row <- measure(cases[k, ], quick)
    if (!quick) utils::write.csv(format(rbind(old, row), digits = 4, trim = TRUE), stored_file, row.names = FALSE, quote = FALSE)
  }
  if (quick) return(bench_result(list(figure("cases that ran", "", nrow(cases)))))
  all <- stored()
  off <- exp(abs(log(all$predicted / all$thousand)))
  bench_result(list(figure("the prediction is off by a factor of (median)", sprintf("%d cases", nrow(all)), stats::median(off)),
                    figure("the prediction is off by a factor of (most)", sprintf("%d cases", nrow(all)), max(off))),
               list("What \"auto\" takes" = all))
}

run_alone(bench_auto)
