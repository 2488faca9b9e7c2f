# What a variant of the pass over the records (src/records/accept_pass.c) saves: nanoseconds
# of one record update of the plain sampler, for one problem of each shape.
#
#   Rscript bench/variants.R LIBRARY [PATTERN]
#
# prints a line for each case whose name matches. To judge a variant install a copy of
# the package in which its line of `variants` is deleted into another library, run the
# script for both in turns, a few times, and compare the least of each case.

arguments <- commandArgs(TRUE)
.libPaths(c(arguments[1L], .libPaths()))
library(noiseaware, lib.loc = arguments[1L])
pattern <- if (length(arguments) > 1L) arguments[2L] else "."
work <- as.numeric(Sys.getenv("WORK", "6e6")) # record updates of one timing

bounds <- list(y = c(-10, 10), x1 = c(-10, 10), x2 = c(-10, 10), x3 = c(-10, 10), x4 = c(-10, 10), w = c(0, 9), b = c(0, 1),
               g = c("a", "b", "c"))
features <- c(list(y = letters[1:5]), stats::setNames(rep(list(c("u", "v", "w")), 15), paste0("x", 1:15)))
laplace <- mech_laplace(scale = 1.3)
gaussian <- mech_gaussian(sd = 1.3)

# Chains of what the release tells little of start at the truth, so that two builds, whose
# priors and starts may differ, accept as many records. `known`: parameters that are not 0;
# `mean`, of all covariates, whose covariance is the identity.
at_truth <- function(names, known, mean) {
  pairs <- strsplit(sub("^cov\\[(.*)\\]$", "\\1", names), ",")
  values <- vapply(pairs, function(pair) as.numeric(length(pair) == 2L && pair[1L] == pair[2L]), 0)
  values[startsWith(names, "mean[")] <- mean
  values[startsWith(names, "prob[")] <- 1 / length(bounds$g)
  values[match(names(known), names)] <- known
  stats::setNames(values, names)
}

regression <- function(formula, mechanism = laplace, n = 1e5) {
  set.seed(2022)
  x <- matrix(stats::rnorm(4 * n, 0.3), n, dimnames = list(NULL, paste0("x", 1:4)))
  data <- data.frame(y = -1.79 - 2.89 * x[, 1L] - 0.66 * x[, 2L] + stats::rnorm(n, 0, sqrt(2)), x, g = rep_len(bounds$g, n))
  second <- "x2" %in% all.vars(formula)
  known <- c("(Intercept)" = -1.79 - if (second) 0 else 0.66 * 0.3, x1 = -2.89, x2 = if (second) -0.66, sigma = sqrt(if (second) 2 else 2 + 0.66^2))
  list(release = simulate_release(data, stat_crossprod(formula, bounds[all.vars(formula)]), mechanism), model = model_lm(), known = known, mean = 0.3)
}

# sums with one noise, products with another
mixed <- function(n) {
  set.seed(2022)
  data <- data.frame(y = stats::rnorm(n), x1 = stats::rnorm(n), g = rep_len(bounds$g, n))
  statistics <- list(a = stat_crossprod(y ~ x1 + g, bounds[c("y", "x1", "g")]), b = stat_sums(~ y, bounds["y"]))
  list(release = simulate_release(data, statistics, list(a = laplace, b = gaussian)), model = model_lm(), known = c(sigma = 1), mean = 0)
}

logistic <- function(n) {
  set.seed(2022)
  x1 <- stats::rnorm(n)
  data <- data.frame(b = stats::rbinom(n, 1, stats::plogis(1 - x1)), x1)
  list(release = simulate_release(data, stat_crossprod(b ~ x1, bounds[c("b", "x1")]), laplace), model = model_logistic(),
       known = c("(Intercept)" = 1, x1 = -1), mean = 0)
}

normal <- function(formula, n = 1e5) {
  set.seed(2022)
  data <- data.frame(w = stats::rnorm(n, 5, 2))
  list(release = simulate_release(data, stat_sums(formula, bounds["w"], rescale = FALSE), laplace), model = model_normal(), known = c(mean = 5, sd = 2))
}

simulated <- function(model, statistic, mechanism = laplace, n = 1e5) {
  set.seed(2022)
  list(release = suppressWarnings(simulate_release(model, statistic, mechanism, n = n)), model = model)
}

margins <- function(count, epsilon = 10) {
  statistic <- stat_counts(stats::reformulate(paste0("y:x", seq_len(count))), features[seq_len(count + 1)])
  simulated(model_naive_bayes("y"), statistic, mech_laplace(epsilon = epsilon), 2e4)
}

cases <- list(
  "one covariate" = function() regression(y ~ x1), "one covariate, Gaussian" = function() regression(y ~ x1, gaussian),
  "two covariates" = function() regression(y ~ x1 + x2), "three covariates" = function() regression(y ~ x1 + x2 + x3),
  "four covariates" = function() regression(y ~ x1 + x2 + x3 + x4), "a covariate and a factor" = function() regression(y ~ x1 + g, n = 2e4),
  "a covariate and a factor, Laplace and Gaussian noise" = function() mixed(2e4),
  "logistic regression" = function() logistic(2e4),
  "Poisson" = function() simulated(model_poisson(), stat_sums(~ w, bounds["w"])),
  "exponential" = function() simulated(model_exponential(), stat_sums(~ w, bounds["w"])),
  "normal, a sum" = function() normal(~ w),
  "normal, two sums" = function() normal(~ w + I(w^2)),
  "Bernoulli" = function() simulated(model_bernoulli(), stat_counts(~ v, list(v = c("no", "yes"))), mech_laplace(epsilon = 10)),
  "20 levels" = function() simulated(model_categorical(), stat_counts(~ v, list(v = letters[1:20])), mech_laplace(epsilon = 10)),
  "1 margin" = function() margins(1), "2 margins" = function() margins(2), "3 margins" = function() margins(3),
  "5 margins" = function() margins(5), "5 margins, epsilon 0.1" = function() margins(5, 0.1), "7 margins" = function() margins(7),
  "9 margins" = function() margins(9), "9 margins, epsilon 0.1" = function() margins(9, 0.1), "15 margins" = function() margins(15),
  "15 margins, epsilon 0.1" = function() margins(15, 0.1))

user_seconds <- function(code) {
  gc(FALSE)
  system.time(code, gcFirst = FALSE)[["user.self"]]
}

for (name in grep(pattern, names(cases), value = TRUE)) {
  problem <- cases[[name]]()
  plain_fit <- function(iter, init) {
    suppressWarnings(sample_posterior(problem$release, problem$model, method = "augment", chains = 1, iter = iter, warmup = iter - 1, seed = 1,
                                      init = init, control = list(passes = 0)))
  }
  init <- if (!is.null(problem$known)) at_truth(dimnames(plain_fit(2, NULL)$draws)$variable, problem$known, problem$mean)
  fit <- plain_fit(61, init)
  n <- problem$release$n
  sweeps <- max(2, ceiling(work / n))
  set_up <- min(replicate(3L, user_seconds(suppressWarnings(extend(fit, 1)))))
  seconds <- min(replicate(4L, user_seconds(suppressWarnings(extend(fit, 1 + sweeps))))) - set_up
  cat(sprintf("%s\t%.2f\n", name, 1e9 * seconds / sweeps / n))
}
