# Simple regression with everything unknown (coefficients, sigma, mean and
# variance of the covariate), Gaussian noise with mu = 1: effective draws of the
# slope per second, default settings, warmup included. Beside them what a
# published R implementation reports for this problem.
#
#   Rscript bench/simple.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

simple_sizes <- c(30, 100, 300, 1000)
simple_published <- c(71.9, 16.4, 4.5, 1.4)

simple_release <- function(n, replicate) {
  set.seed(1000 * replicate + n)
  x <- stats::rnorm(n)
  y <- 0.5 + x + stats::rnorm(n)
  statistic <- stat_crossprod(y ~ x, bounds = list(y = c(-5, 5), x = c(-4, 4)))
  simulate_release(data.frame(y, x), statistic, mech_gaussian(mu = 1))
}

# one call of sample_posterior()
simple_run <- function(n, replicate, ...) {
  release <- simple_release(n, replicate)
  time <- seconds(fit <- sample_posterior(release, model_lm(), method = "augment", seed = replicate, ...))
  made <- acceptance(fit)
  data.frame(n = n, seconds = time, ess = min_ess(fit$draws, "x"), rhat = posterior::rhat(posterior::extract_variable_matrix(fit$draws, "x")),
             passes = mean(made$passes), accepted = mean(made$mean), mean = mean(posterior::extract_variable(fit$draws, "x")))
}

simple_table <- function(label, runs) {
  do.call(rbind, lapply(split(runs, runs$n), function(r) {
    rate <- r$ess / r$seconds
    data.frame(run = label, n = r$n[1L], releases = nrow(r), `seconds a call` = stats::median(r$seconds),
               `bulk ESS a call` = stats::median(r$ess), `ESS per second, median` = stats::median(rate),
               lowest = min(rate), highest = max(rate), `worst R-hat` = formatC(max(r$rhat), digits = 3, format = "f"),
               `passes, mean` = mean(r$passes), `records accepted` = mean(r$accepted), check.names = FALSE)
  }))
}

bench_simple <- function(quick = FALSE) {
  replicates <- if (quick) 3 else 9
  simple_run(30, 1, iter = 100) # loads what the first call loads
  every <- function(...) {
    do.call(rbind, lapply(simple_sizes, function(n) do.call(rbind, lapply(seq_len(replicates), function(r) simple_run(n, r, ...)))))
  }
  say("simple regression, the call as it is")
  call <- simple_table("the call as it is (4 x 2,000)", every())
  say("simple regression, longer chains")
  iter <- if (quick) 4000 else 10000
  long <- simple_table(paste("4 x", format_figure(iter)), every(iter = iter))
  rate <- call[["ESS per second, median"]]
  bench_result(
    c(Map(function(n, value) figure("ESS per second for the slope", paste("n =", format_figure(n)), value, if (n == 1000) 2000 else NA),
          call$n, rate),
      Map(function(n, value) figure("times the published rate", paste("n =", format_figure(n)), value), call$n, rate / simple_published)),
    list("Effective draws of the slope" = rbind(call, long),
         "Published (R implementation), ESS per second" = data.frame(n = simple_sizes, `ESS per second` = simple_published, check.names = FALSE)),
    c("y = 0.5 + x + N(0, 1), x ~ N(0, 1), bounds y in [-5, 5] and x in [-4, 4], five totals with Gaussian noise, mu = 1; model_lm() with its default priors. Method \"augment\", four chains one after the other. Each release has data and noise of its own.",
      "The published rates are quoted as reported, from a machine and data of their own: the ratio gives an order of magnitude."))
}

run_alone(bench_simple)
