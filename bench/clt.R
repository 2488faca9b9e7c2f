# Method "clt": what an iteration costs at any number of records, what it costs at
# all, and the moves with the statistic integrated out against the Gibbs sampler
# of Bernstein & Sheldon (2018).
#
#   Rscript bench/clt.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

clt_release <- function(n, epsilon) {
  statistic <- stat_counts(~ x, levels = list(x = c("no", "yes")))
  as_release(c(0.7, 0.3) * n + c(1.3, -0.4) / epsilon, statistic, mech_laplace(epsilon = epsilon), n)
}

clt_fit <- function(release, model, iter, warmup, thin = 1, ...) {
  sample_posterior(release, model, method = "clt", chains = 1, iter = iter, warmup = warmup, thin = thin, seed = 1, control = list(...))
}

# microseconds of an iteration, keeping hardly a draw; two fits in turn
clt_cost <- function(fits, more, times = 7L) {
  one <- function(fit) (seconds(extend(fit, more + 1000)) - seconds(extend(fit, 1000))) / more
  times <- replicate(times, vapply(fits, one, 0))
  1e6 * apply(matrix(times, length(fits)), 1L, stats::median)
}

# Effective draws a second; draws are kept, as a user has them.
clt_speed <- function(release, model, draws, sampler) {
  fit <- clt_fit(release, model, 3000, 2000, sampler = sampler)
  time <- seconds(longer <- extend(fit, draws))
  min_ess(longer$draws) / time
}

bench_clt <- function(quick = FALSE) {
  more <- if (quick) 2e4 else 5e5
  models <- list(Bernoulli = list(model = model_bernoulli(), release = function(n) clt_release(n, 0.1)),
                 Poisson = list(model = model_poisson(), release = function(n) {
                   as_release(5.02 * n, stat_sums(~ x, list(x = c(0, 20))), mech_laplace(epsilon = 0.1), n)
                 }),
                 normal = list(model = model_normal(), release = function(n) {
                   as_release(c(1, 5) * n, stat_sums(~ x + I(x^2), list(x = c(-8, 10)), rescale = FALSE), mech_laplace(epsilon = 0.1), n)
                 }))
  rows <- unlist(Map(function(name, case) {
    say("%s", name)
    fits <- lapply(c(1e3, 1e9), function(n) clt_fit(case$release(n), case$model, 3000, 2000, thin = 1000))
    cost <- clt_cost(fits, more)
    list(figure("Time at n = 10^9 over time at n = 10^3", name, cost[2L] / cost[1L], 1.2, at_most = TRUE),
          figure("Microseconds of an iteration, n = 1,000", name, cost[1L], if (name == "Bernoulli") 1 else NA_real_, at_most = TRUE))
  }, names(models), models), recursive = FALSE)
  say("ESS a second")
  release <- clt_release(1000, 0.01)
  speed <- vapply(c("marginal", "gibbs"), function(s) clt_speed(release, model_bernoulli(), if (quick) 2e4 else 5e5, s), 0)
  speeds <- list(figure("ESS a second, moves with the statistic integrated out", "Bernoulli, n = 1,000, epsilon = 0.01", speed[[1L]]),
                figure("ESS a second, Gibbs", "Bernoulli, n = 1,000, epsilon = 0.01", speed[[2L]]),
                figure("Ratio of the two", "Bernoulli, n = 1,000, epsilon = 0.01", speed[[1L]] / speed[[2L]], 20))
  bench_result(c(unname(rows), speeds),
               notes = "One chain; an iteration is timed by extensions that keep hardly a draw, effective draws by one that keeps them all.")
}

run_alone(bench_clt)
