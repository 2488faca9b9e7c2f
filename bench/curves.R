# Curves: means of a response in the intervals of a covariate, as groups in a walk (?groups, section Curves). Releases of sizes, sums and sums of squares
# with Laplace noise; walks of second order, compared with splines fitted to the records themselves (mgcv::gam()).
#
#   coverage  of the curve at the middles of the intervals, on average over intervals and releases
#   error     mean squared error of the curve, over that of gam() on the records plus the variance that the noise alone gives the means
#   speed     seconds for 400 effective draws of the slowest parameter, 10^5 records, epsilon 1
#
#   Rscript bench/curves.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

curve_breaks <- seq(0, 10, by = 0.5)
curve_middles <- curve_breaks[-1L] - 0.25

curve_truths <- list(`one wave` = function(x) 5 + 3 * sin(0.8 * x), line = function(x) 2 + 0.6 * x, `a step` = function(x) 4 + 2 * stats::plogis(3 * (x - 5)))

curve_records <- function(n, truth) {
  x <- 10 * stats::rbeta(n, 1.5, 2)
  data.frame(x = x, y = pmin(pmax(truth(x) + stats::rnorm(n), -2), 12))
}

curve_release <- function(data, epsilon) {
  statistic <- list(size = stat_counts(~ cut(x, seq(0, 10, by = 0.5))),
                    total = stat_by(stat_sums(~ y + I(y^2), list(y = c(-2, 12)), outside = "none"), ~ cut(x, seq(0, 10, by = 0.5))))
  simulate_release(data, statistic, list(size = mech_laplace(epsilon = epsilon / 3), total = mech_laplace(epsilon = 2 * epsilon / 3)), neighbours = "add_remove")
}

curve_fit <- function(release, seed, chains = 2, iter = 1000, order = 2) {
  pool <- partial_pooling(~ mean, walk = order)
  suppressMessages(suppressWarnings(sample_posterior(release, model_normal(~ cut(x, seq(0, 10, by = 0.5))), pool = pool, chains = chains, iter = iter, seed = seed)))
}

# of the means alone, from the noise that was added: (e_sum - mean e_size) / size
noise_variance <- function(release, data) {
  cell <- cut(data$x, curve_breaks)
  size <- pmax(as.vector(table(cell)), 1)
  mean <- as.vector(tapply(data$y, cell, mean))
  mean[is.na(mean)] <- 5
  parts <- release$mechanism
  scale_total <- 7 * 2 / parts$total$epsilon # a record adds at most 2 to rescaled sums
  scale_size <- 1 / parts$size$epsilon
  2 * (scale_total^2 + (mean - 5)^2 * scale_size^2) / size^2
}

curve_row <- function(name, n, epsilon, releases) {
  truth <- curve_truths[[name]]
  each <- vapply(seq_len(releases), function(seed) {
    set.seed(seed)
    data <- curve_records(n, truth)
    release <- curve_release(data, epsilon)
    drawn <- plot(curve_fit(release, seed), "curve")$data
    at <- truth(curve_middles)
    inside <- at >= drawn$lower & at <= drawn$upper
    # where there are records
    weight <- stats::dbeta(curve_middles / 10, 1.5, 2)
    exact <- stats::predict(mgcv::gam(y ~ s(x, k = 10), data = data), data.frame(x = curve_middles))
    average <- function(v) sum(weight * v) / sum(weight)
    c(covered = mean(inside), ours = average((drawn$estimate - at)^2), gam = average((exact - at)^2), noise = average(pmin(noise_variance(release, data), 4)))
  }, numeric(4))
  means <- rowMeans(each)
  data.frame(curve = name, n = n, epsilon = epsilon, coverage = means[["covered"]], error = means[["ours"]], gam = means[["gam"]], noise = means[["noise"]],
             ratio = means[["ours"]] / (means[["gam"]] + means[["noise"]]))
}

bench_curves <- function(quick = FALSE) {
  releases <- if (quick) 2L else 30L
  cases <- expand.grid(curve = names(curve_truths), n = if (quick) 500 else c(1000, 10000), stringsAsFactors = FALSE)
  rows <- do.call(rbind, Map(function(curve, n) {
    say("%s, n = %d", curve, n)
    curve_row(curve, n, 2, releases)
  }, cases$curve, cases$n))
  rownames(rows) <- NULL
  set.seed(1)
  data <- curve_records(if (quick) 1000 else 1e5, curve_truths[[1L]])
  release <- curve_release(data, 1)
  time <- seconds(fit <- curve_fit(release, 1, chains = 4, iter = if (quick) 500 else 1000))
  effective <- min(posterior::summarise_draws(posterior::as_draws_array(fit), "ess_bulk")$ess_bulk)
  bench_result(
    list(figure("coverage of 95% intervals of the curve", "mean over intervals and releases, least case", min(rows$coverage), 0.93),
         figure("coverage of 95% intervals of the curve", "mean over intervals and releases, greatest case", max(rows$coverage), 0.97, at_most = TRUE),
         figure("mean squared error over gam()'s on the records plus the noise's", "greatest case", max(rows$ratio), 1.2, at_most = TRUE),
         figure("seconds for 400 effective draws", "n = 100,000, 20 intervals, epsilon 1", 400 * time / effective, 10, at_most = TRUE)),
    list("by curve" = rows),
    sprintf("%d releases of each case; 2 chains of 1,000 iterations each. Errors are weighted by the covariate's density.", releases))
}

run_alone(bench_curves)
