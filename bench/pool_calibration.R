# Are pooled sites calibrated? Five sites whose rates differ: the mean and the standard deviation between sites from their priors, the
# sites' rates, records and releases from these; then the truth's ranks among thinned draws of each variable, and the coverage of 90%
# intervals.
#
#   Rscript bench/pool_calibration.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

sites_of_rates <- list(
  probability = list(
    model = noiseaware::model_bernoulli(prior = noiseaware::prior_beta(2, 3)), mean = function() stats::rbeta(1, 2, 3),
    link = stats::qlogis, back = stats::plogis, sd = 0.7, n = c(30, 60, 100, 200, 400),
    records = function(n, rate) data.frame(x = factor(stats::rbinom(n, 1, rate), 0:1, c("no", "yes"))),
    statistic = noiseaware::stat_counts(~ x, levels = list(x = c("no", "yes")))),
  rate = list(
    model = noiseaware::model_poisson(prior = noiseaware::prior_gamma(3, 1)), mean = function() stats::rgamma(1, 3, 1),
    link = log, back = exp, sd = 0.5, n = c(20, 30, 50, 80, 150),
    records = function(n, rate) data.frame(x = stats::rpois(n, rate)),
    # bounds that no record exceeds
    statistic = noiseaware::stat_sums(~ x, bounds = list(x = c(0, 500)))))

one_calibrated <- function(kind, seed) {
  design <- sites_of_rates[[kind]]
  set.seed(seed)
  mean <- design$mean()
  sd <- abs(stats::rnorm(1, 0, design$sd))
  rates <- design$back(design$link(mean) + sd * stats::rnorm(5))
  scales <- if (kind == "rate") c(3, 5, 8, 5, 10) else c(2, 3, 5, 5, 10)
  sites <- Map(function(rate, n, scale) simulate_release(design$records(n, rate), design$statistic, mech_laplace(scale = scale)), rates, design$n, scales)
  names(sites) <- letters[1:5]
  fit <- suppressMessages(suppressWarnings(sample_posterior(sites, design$model, pool = partial_pooling(sd = prior_half_normal(design$sd)),
                                                            chains = 2, iter = 1500, seed = seed)))
  truth <- c(mean, sd, rates)
  values <- unclass(fit$draws)
  out <- vapply(seq_along(truth), function(v) {
    draws <- values[, , v]
    step <- max(1, ceiling(length(draws) / posterior::ess_bulk(draws)))
    kept <- draws[seq(step, nrow(draws), by = step), ]
    c((sum(kept < truth[v]) + stats::runif(1)) / (length(kept) + 1), mean(draws < truth[v]))
  }, c(0, 0))
  list(variables = posterior::variables(fit)[seq_along(truth)], quantile = out[1L, ], below = out[2L, ])
}

bench_pool_calibration <- function(quick) {
  replicates <- if (quick) 50L else 500L
  tables <- lapply(names(sites_of_rates), function(kind) {
    say("%s, %d replicates", kind, replicates)
    runs <- lapply(seq_len(replicates), one_calibrated, kind = kind)
    quantile <- vapply(runs, `[[`, double(7), "quantile")
    below <- vapply(runs, `[[`, double(7), "below")
    data.frame(sites = kind, variable = runs[[1L]]$variables, `KS p-value` = apply(quantile, 1L, function(q) stats::ks.test(q, "punif")$p.value),
               `coverage of 90%` = rowMeans(below > 0.05 & below < 0.95), check.names = FALSE)
  })
  table <- do.call(rbind, tables)
  p <- table[["KS p-value"]]
  bench_result(list(figure("least p-value of uniform ranks, times the number of variables", sprintf("%d variables, %d replicates", nrow(table), replicates),
                           min(1, min(p) * length(p)), 0.01),
                    figure("coverage of 90% intervals, least", "all variables", min(table[["coverage of 90%"]]), 0.9 - 3 * sqrt(0.09 / replicates)),
                    figure("coverage of 90% intervals, most", "all variables", max(table[["coverage of 90%"]]), 0.9 + 3 * sqrt(0.09 / replicates), at_most = TRUE)),
               list("Ranks and coverage, 5 sites" = table),
               sprintf("%d replicates determine a coverage of 0.9 within %.3f (one standard deviation).", replicates, sqrt(0.09 / replicates)))
}

run_alone(bench_pool_calibration)
