# Quartiles by the exponential mechanism, epsilon 1: seconds to 400 effective draws of every parameter, warmup included, from 10,000
# records on a grid of 10,000 points; and what a record update costs as the grid becomes finer.
#
#   Rscript bench/quantiles.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# a conjugate update of a mean and a variance, from mean 0, precision 1e-4, shape and rate 1
normal_update <- function(y) {
  n <- length(y)
  precision <- n + 1e-4
  rate <- 1 + 0.5 * (sum((y - mean(y))^2) + 1e-4 * n / precision * mean(y)^2)
  sd <- 1 / sqrt(stats::rgamma(1L, 1 + n / 2, rate))
  c(mean = stats::rnorm(1L, sum(y) / precision, sd / sqrt(precision)), sd = sd)
}

lognormal_model <- function() {
  model_custom(function() {
    sd <- 1 / sqrt(stats::rgamma(1L, 4, 1))
    c(meanlog = stats::rnorm(1L, 3, 1), sdlog = sd)
  }, function(theta, n) cbind(x = stats::rlnorm(n, theta[1L], theta[2L])), function(records, theta) {
    theta <- normal_update(log(records[, "x"]))
    c(meanlog = theta[[1L]], sdlog = theta[[2L]])
  }, "x")
}

# two normal components with known standard deviations; labels are drawn and forgotten
mixture_model <- function() {
  centres <- c(30, 60)
  sds <- c(6, 10)
  model_custom(function() c(share = stats::rbeta(1L, 2, 2), first = stats::rnorm(1L, centres[1L], 5), second = stats::rnorm(1L, centres[2L], 5)),
               function(theta, n) {
                 k <- 1L + (stats::runif(n) > theta[1L])
                 cbind(x = stats::rnorm(n, theta[2:3][k], sds[k]))
               }, function(records, theta) {
                 x <- records[, "x"]
                 odds <- theta[1L] / (1 - theta[1L]) * stats::dnorm(x, theta[2L], sds[1L]) / stats::dnorm(x, theta[3L], sds[2L])
                 first <- stats::runif(length(x)) < odds / (1 + odds)
                 draw <- function(k, at) {
                   precision <- 1 / 25 + sum(at) / sds[k]^2
                   stats::rnorm(1L, (centres[k] / 25 + sum(x[at]) / sds[k]^2) / precision, 1 / sqrt(precision))
                 }
                 c(share = stats::rbeta(1L, 2 + sum(first), 2 + sum(!first)), first = draw(1L, first), second = draw(2L, !first))
               }, "x")
}

quantile_cases <- function(n) {
  set.seed(55)
  list(normal = list(model_normal(), stats::rnorm(n, 50, 10)), exponential = list(model_exponential(), stats::rexp(n, 1 / 15)),
       `lognormal, R functions` = list(lognormal_model(), stats::rlnorm(n, 3, 0.5)),
       `mixture, R functions` = list(mixture_model(), ifelse(stats::runif(n) < 0.4, stats::rnorm(n, 30, 6), stats::rnorm(n, 60, 10))))
}

quartiles_of <- function(x, points) {
  simulate_release(data.frame(x = x), stat_quantiles(~ x, bounds = c(0, 100), steps = points - 1), mech_exponential(epsilon = 1))
}

# runs on until so many effective draws are there
seconds_to <- function(release, model, draws) {
  time <- seconds(fit <- sample_posterior(release, model, method = "augment", chains = 1, iter = 1000, warmup = 400, seed = 1))
  while (min_ess(fit$draws) < draws) time <- time + seconds(fit <- extend(fit, 200))
  data.frame(seconds = time, draws = posterior::ndraws(fit$draws), `min bulk ESS` = min_ess(fit$draws), `records accepted` = acceptance(fit)$mean, check.names = FALSE)
}

# nanoseconds of a record update
update_of_points <- function(n, points, iterations) {
  release <- quartiles_of(stats::rnorm(n, 50, 10), points)
  fit <- sample_posterior(release, model_normal(), method = "augment", chains = 1, iter = 20, warmup = 10, seed = 1, control = list(passes = 0))
  1e9 * seconds_extended(fit, iterations, 3L) / (n * iterations)
}

bench_quantiles <- function(quick = FALSE) {
  n <- 1e4
  cases <- quantile_cases(n)
  say("quartiles, 400 effective draws")
  rows <- do.call(rbind, Map(function(name, case) {
    cbind(model = name, seconds_to(quartiles_of(case[[2L]], 1e4), case[[1L]], if (quick) 50 else 400))
  }, names(cases), cases))
  say("record updates, grids from coarse to fine")
  set.seed(1)
  points <- c(1e2, 1e3, 1e4, 1e5, 1e6)
  update <- vapply(points, function(k) update_of_points(n, k, if (quick) 20 else 200), 0)
  bench_result(
    Map(function(model, time) figure("seconds to 400 effective draws, n = K = 10,000", model, time, 20, TRUE), rows$model, rows$seconds),
    list("Runs" = rows, "A record update by the number of grid points K" = data.frame(K = points, `ns per record update` = update, check.names = FALSE)),
    c("10,000 records, quartiles on a grid from 0 to 100, epsilon 1, one chain, warmup of 400 iterations included. The least effective draws of all parameters.",
      "The lognormal and the mixture model are R functions (model_custom()). Record updates: model_normal(), no non-centred moves, all three quartiles."))
}

run_alone(bench_quantiles)
