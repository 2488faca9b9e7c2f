# Smooth curves, y ~ s(x, k = 10), from totals of splines with Laplace noise (?model_lm, section Smooths), compared with mgcv::gam() on the records.
#
#   coverage  of the curve between the 5 and 95 per cent quantiles of x, on average over points and releases
#   error     mean squared error of the curve, over that of gam() on the records plus what the noise adds to least squares with the same splines and penalty
#   speed     seconds for 400 effective draws of the curve at its slowest point, 10^5 records, epsilon 1, method "clt"
#   several   two curves and a slope that add up, of covariates with a correlation of .7: coverage of each curve, less its mean, and of the slope; seconds and
#             R-hat of default calls (method "augment")
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

# ---- several terms ---------------------------------------------------------------------------

several_truth <- list(a = function(x) 2 * sin(0.8 * x), b = function(x) 0.05 * (x - 5)^2)
several_bounds <- list(y = c(-2, 14), a = c(0, 10), b = c(0, 10), z = c(-2, 2))

several_records <- function(n) {
  u <- stats::pnorm(matrix(stats::rnorm(3 * n), n) %*% chol(matrix(0.7, 3, 3) + diag(0.3, 3)))
  data <- data.frame(a = 10 * stats::qbeta(u[, 1], 2, 2), b = 10 * stats::qbeta(u[, 2], 2, 2), z = 4 * u[, 3] - 2)
  cbind(y = 5 + several_truth$a(data$a) + several_truth$b(data$b) + 0.5 * data$z + stats::rnorm(n, 0, 0.7), data)
}

default_fit <- function(data, formula, bounds, epsilon, seed) {
  release <- simulate_release(data, stat_crossprod(formula, bounds), mech_laplace(epsilon = epsilon))
  suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), seed = seed)))
}

# draws of a curve at points, less its mean there, the others at their middle
curve_draws <- function(fit, name, points) {
  columns <- fit$release$statistic$columns[-1L, ]
  at <- as.list(stats::setNames((columns$lower + columns$upper) / 2, columns$variable))
  at[[name]] <- points
  draws <- suppressWarnings(stats::predict(fit, as.data.frame(at), type = "expected"))
  draws - rowMeans(draws)
}

several_row <- function(n, epsilon, releases) {
  points <- 10 * stats::qbeta(seq(0.05, 0.95, 0.1), 2, 2)
  each <- vapply(seq_len(releases), function(seed) {
    set.seed(seed)
    data <- several_records(n)
    time <- seconds(fit <- default_fit(data, y ~ s(a, k = 10) + s(b, k = 10) + z, several_bounds, epsilon, seed))
    covered <- vapply(c("a", "b"), function(v) {
      draws <- curve_draws(fit, v, points)
      truth <- several_truth[[v]](points) - mean(several_truth[[v]](points))
      mean(apply(draws, 2L, stats::quantile, 0.025) <= truth & apply(draws, 2L, stats::quantile, 0.975) >= truth)
    }, 0)
    slope <- as.matrix(fit)[, "z"]
    found <- c(covered, slope = as.double(stats::quantile(slope, 0.025) <= 0.5 && stats::quantile(slope, 0.975) >= 0.5), seconds = time,
               r_hat = max(posterior::rhat(fit)), effective = min(posterior::ess_bulk(fit)))
    say("several, n = %d, release %d: %s", n, seed, paste(format(found, digits = 3), collapse = " "))
    found
  }, numeric(6))
  means <- rowMeans(each)
  data.frame(n = n, epsilon = epsilon, releases = releases, `curve a` = means[["a"]], `curve b` = means[["b"]], slope = means[["slope"]], seconds = means[["seconds"]],
             `R-hat` = stats::median(each["r_hat", ]), effective = stats::median(each["effective", ]), check.names = FALSE)
}

several_data <- function() {
  utils::data("CPS1985", "HousePrices", package = "AER", envir = environment())
  CPS1985$log_wage <- log(CPS1985$wage)
  HousePrices$log_price <- log(HousePrices$price)
  list(list("Boston", MASS::Boston, medv ~ s(lstat, k = 8) + s(rm, k = 8) + ptratio,
            list(medv = c(0, 50), lstat = c(0, 40), rm = c(3, 9), ptratio = c(12, 23)), 10),
       list("CPS1985", CPS1985, log_wage ~ s(experience, k = 8) + education, list(log_wage = c(0, 4), experience = c(0, 60), education = c(0, 20)), 10),
       list("airquality", stats::na.omit(datasets::airquality), Temp ~ s(Ozone, k = 8) + Wind, list(Temp = c(50, 100), Ozone = c(0, 180), Wind = c(0, 25)), 10),
       list("HousePrices", HousePrices, log_price ~ s(lotsize, k = 8) + bedrooms, list(log_price = c(9, 13), lotsize = c(1000, 17000), bedrooms = c(0, 7)), 10),
       list("quakes", datasets::quakes, stations ~ s(mag, k = 8) + s(depth, k = 8) + lat,
            list(stations = c(0, 140), mag = c(3.5, 7), depth = c(0, 700), lat = c(-40, -10)), 10))
}

# at the deciles of each covariate: the distance from gam() on the records, in standard deviations of the posterior
several_data_row <- function(name, data, formula, bounds, epsilon, releases) {
  terms <- names(bounds)[-1L]
  gam <- mgcv::gam(formula, data = data, method = "REML")
  each <- vapply(seq_len(releases), function(seed) {
    set.seed(seed)
    time <- seconds(fit <- default_fit(data, formula, bounds, epsilon, seed))
    apart <- unlist(lapply(terms, function(v) {
      points <- unique(stats::quantile(data[[v]], seq(0.1, 0.9, 0.1), names = FALSE))
      draws <- curve_draws(fit, v, points)
      at <- as.data.frame(lapply(stats::setNames(nm = terms), function(w) if (w == v) points else mean(bounds[[w]])))
      exact <- stats::predict(gam, at)
      (colMeans(draws) - (exact - mean(exact))) / apply(draws, 2L, stats::sd)
    }))
    found <- c(difference = sqrt(mean(apart^2)), inside = mean(abs(apart) <= 1.96), seconds = time, r_hat = max(posterior::rhat(fit)),
               effective = min(posterior::ess_bulk(fit)))
    say("%s, release %d: %s", name, seed, paste(format(found, digits = 3), collapse = " "))
    found
  }, numeric(5))
  data.frame(data = name, n = nrow(data), epsilon = epsilon, releases = releases, difference = mean(each["difference", ]), inside = mean(each["inside", ]),
             seconds = mean(each["seconds", ]), `R-hat` = stats::median(each["r_hat", ]), effective = stats::median(each["effective", ]), check.names = FALSE)
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
  several <- do.call(rbind, Map(several_row, if (quick) 200 else c(500, 2000), 4, if (quick) 1L else c(5L, 3L)))
  several_real <- if (!quick) do.call(rbind, lapply(several_data(), function(of) do.call(several_data_row, c(of, 3L))))
  real <- if (!quick) do.call(rbind, lapply(smooth_data(), function(of) do.call(smooth_data_row, of)))
  bench_result(
    list(figure("coverage of 95% intervals of the curve", "mean over points and releases, all cases", mean(rows$coverage), 0.93),
         figure("coverage of 95% intervals of the curve", "mean over points and releases, all cases", mean(rows$coverage), 0.97, at_most = TRUE),
         figure("mean squared error over gam()'s on the records plus the noise's", "greatest case", max(rows$ratio), 1.2, at_most = TRUE),
         figure("seconds for 400 effective draws", "n = 100,000, k = 10, epsilon 1", 400 * time / effective, 10, at_most = TRUE)),
    c(list("by curve" = rows, "several terms" = several), if (!quick) list("real data" = real, "real data, several terms" = several_real)),
    sprintf("%d releases of each case; method \"clt\", 2 chains of 400 iterations each.", releases))
}

run_alone(bench_smooths)
