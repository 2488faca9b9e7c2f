# Smooth curves, y ~ s(x, k = 10), from totals of splines with Laplace noise (?model_lm, section Smooths), compared with mgcv::gam() on the records.
#
#   coverage  of the curve between the 5 and 95 per cent quantiles of x, on average over points and releases
#   error     mean squared error of the curve, over that of gam() on the records plus what the noise adds to least squares with the same splines and penalty
#   speed     seconds for 400 effective draws of the curve at its slowest point, 10^5 records, epsilon 1, method "clt"
#   data      root mean squared difference from gam() on the records, at the deciles of x, in standard deviations of the posterior
#
#   Rscript bench/smooths.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

smooth_truths <- list(`one wave` = function(x) 5 + 3 * sin(0.8 * x), line = function(x) 2 + 0.6 * x, `a step` = function(x) 4 + 2 * stats::plogis(3 * (x - 5)))
smooth_bounds <- list(y = c(-2, 12), x = c(0, 10))
smooth_points <- stats::qbeta(seq(0.05, 0.95, 0.05), 1.5, 2) * 10

smooth_records <- function(n, truth) {
  x <- 10 * stats::rbeta(n, 1.5, 2)
  data.frame(x = x, y = pmin(pmax(truth(x) + stats::rnorm(n), -2), 12))
}

smooth_fit <- function(data, formula, bounds, epsilon, seed, method = "clt", chains = 2, iter = 400) {
  release <- simulate_release(data, stat_crossprod(formula, bounds), mech_laplace(epsilon = epsilon))
  suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), method = method, chains = chains, iter = iter, seed = seed)))
}

# What noise adds to the variance of the curve given the products' totals: least squares with the penalty that the fit learned, noise in the products and in y b.
noise_variance <- function(data, fit, epsilon, truth) {
  noiseaware <- asNamespace("noiseaware")
  basis <- noiseaware$spline_basis(data$x, 0, 10, 10)
  gram <- crossprod(basis)
  draws <- posterior::as_draws_matrix(fit$draws)
  ratio <- (mean(draws[, "sigma"]) / mean(draws[, "tau"]))^2
  penalty <- crossprod(diff(diag(10), differences = 2))
  inverse <- solve(gram + ratio * penalty)
  beta <- inverse %*% crossprod(basis, data$y)
  scale <- 3.75 / epsilon
  at <- noiseaware$spline_basis(smooth_points, 0, 10, 10)
  pairs <- noiseaware$spline_pairs(10)
  # y is rescaled by 7, about 5
  each <- apply(at %*% inverse, 1L, function(a) {
    of_pairs <- ifelse(pairs$first == pairs$second, a[pairs$first] * (beta[pairs$first] - 5),
                       a[pairs$first] * (beta[pairs$second] - 5) + a[pairs$second] * (beta[pairs$first] - 5))
    sum((7 * a)^2) + sum(of_pairs^2)
  })
  mean(pmin(2 * scale^2 * each, 16))
}

smooth_row <- function(name, n, epsilon, releases) {
  truth <- smooth_truths[[name]]
  at <- truth(smooth_points)
  each <- vapply(seq_len(releases), function(seed) {
    set.seed(seed)
    data <- smooth_records(n, truth)
    fit <- smooth_fit(data, y ~ s(x, k = 10), smooth_bounds, epsilon, seed)
    curve <- suppressWarnings(stats::predict(fit, data.frame(x = smooth_points), interval = "credible"))
    exact <- stats::predict(mgcv::gam(y ~ s(x, k = 10), data = data, method = "REML"), data.frame(x = smooth_points))
    c(covered = mean(at >= curve[, "lower"] & at <= curve[, "upper"]), ours = mean((curve[, "fit"] - at)^2), gam = mean((exact - at)^2),
      noise = noise_variance(data, fit, epsilon, truth))
  }, numeric(4))
  means <- rowMeans(each)
  data.frame(curve = name, n = n, epsilon = epsilon, coverage = means[["covered"]], error = means[["ours"]], gam = means[["gam"]], noise = means[["noise"]],
             ratio = means[["ours"]] / (means[["gam"]] + means[["noise"]]))
}

# real data with default arguments
smooth_data <- function() {
  utils::data("CPS1985", "CPS1988", package = "AER", envir = environment())
  CPS1985$log_wage <- log(CPS1985$wage)
  CPS1988$log_wage <- log(CPS1988$wage)
  list(list("mcycle", MASS::mcycle, accel ~ s(times), list(accel = c(-150, 100), times = c(0, 60)), 8),
       list("faithful", datasets::faithful, waiting ~ s(eruptions), list(waiting = c(30, 110), eruptions = c(1, 6)), 4),
       list("CPS1985, experience", CPS1985, log_wage ~ s(experience), list(log_wage = c(0, 4), experience = c(0, 60)), 4),
       list("CPS1988, experience", CPS1988, log_wage ~ s(experience), list(log_wage = c(3, 10), experience = c(-5, 65)), 1),
       list("CPS1988, education", CPS1988, log_wage ~ s(education), list(log_wage = c(3, 10), education = c(0, 20)), 1))
}

smooth_data_row <- function(name, data, formula, bounds, epsilon) {
  x <- names(bounds)[2L]
  points <- stats::setNames(data.frame(unique(stats::quantile(data[[x]], seq(0.1, 0.9, 0.1)))), x)
  set.seed(1)
  time <- seconds(fit <- smooth_fit(data, formula, bounds, epsilon, 1, method = "auto", chains = 2, iter = 2000))
  expected <- suppressWarnings(stats::predict(fit, points, type = "expected"))
  kept <- length(unique(data[[x]]))
  gam <- mgcv::gam(stats::as.formula(sprintf("%s ~ s(%s, k = %d)", names(bounds)[1L], x, min(10L, kept))), data = data, method = "REML")
  exact <- stats::predict(gam, points)
  sd <- apply(expected, 2L, stats::sd)
  inside <- abs(colMeans(expected) - exact) <= 1.96 * sd
  data.frame(data = name, n = nrow(data), epsilon = epsilon, method = fit$method, seconds = time, sd = sqrt(mean(sd^2)),
             difference = sqrt(mean(((colMeans(expected) - exact) / sd)^2)), inside = mean(inside),
             effective = min(apply(expected, 2L, posterior::ess_bulk)))
}

bench_smooths <- function(quick = FALSE) {
  releases <- if (quick) 2L else 6L
  cases <- expand.grid(curve = names(smooth_truths), n = if (quick) 1000 else c(100000, 1000), stringsAsFactors = FALSE)
  rows <- do.call(rbind, Map(function(curve, n) {
    say("%s, n = %d", curve, n)
    smooth_row(curve, n, if (n > 10000) 1 else 4, releases)
  }, cases$curve, cases$n))
  rownames(rows) <- NULL
  set.seed(1)
  data <- smooth_records(if (quick) 1000 else 1e5, smooth_truths[[1L]])
  time <- seconds(fit <- smooth_fit(data, y ~ s(x, k = 10), smooth_bounds, 1, 1, chains = 4, iter = 1000))
  curve <- suppressWarnings(stats::predict(fit, data.frame(x = smooth_points), type = "expected"))
  effective <- min(apply(curve, 2L, function(v) posterior::ess_bulk(matrix(v, ncol = 4L))))
  real <- if (!quick) do.call(rbind, lapply(smooth_data(), function(of) do.call(smooth_data_row, of)))
  bench_result(
    list(figure("coverage of 95% intervals of the curve", "mean over points and releases, all cases", mean(rows$coverage), 0.93),
         figure("coverage of 95% intervals of the curve", "mean over points and releases, all cases", mean(rows$coverage), 0.97, at_most = TRUE),
         figure("mean squared error over gam()'s on the records plus the noise's", "greatest case", max(rows$ratio), 1.2, at_most = TRUE),
         figure("seconds for 400 effective draws", "n = 100,000, k = 10, epsilon 1", 400 * time / effective, 10, at_most = TRUE)),
    c(list("by curve" = rows), if (!quick) list("real data" = real)),
    sprintf("%d releases of each case; method \"clt\", 2 chains of 400 iterations each.", releases))
}

run_alone(bench_smooths)
