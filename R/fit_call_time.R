# What a call of sample_posterior() is expected to take, in all, before it runs: start and checks, the iterations, the fit without clamping that is compared with
# it (fit_clamping.R), and a second run where the first is expected to fall short (fit_longer.R). In seconds of the machine that was measured, as costs are
# (engine_cost.R). Cost: binds the model once more, some hundredths of a second.

# seconds of a call and of the comparison apart from sampling: a constant and for each parameter, as bench/forecast.R measures them
call_seconds <- list(call = c(0.1, 0.012), comparison = c(0.03, 0.012))

# `fit`: what there is before a run; `free`: may the run be made longer? NULL where R functions take the time, or nothing was measured. Whatever goes wrong, the
# call goes on: nobody asked for this.
expect_call <- function(fit, prior_n, free) tryCatch(expected_call(fit, prior_n, free), error = function(e) NULL)

expected_call <- function(fit, prior_n, free) {
  if (calls_r(fit$release, fit$bound)) return(NULL)
  cost <- engine_cost(as_engine(fit$method), fit$release, fit$bound, fit$asked$control, prior_n)
  if (!is.finite(cost$thousand)) return(NULL)
  run <- fit$run
  seconds <- cost$iteration * run$chains * run$iter
  times <- if (free) min(times_longer(1, 1000 * seconds / cost$thousand), 2^floor(log2(longest_again / seconds))) else 1
  of <- function(constants) sum(constants * c(1, length(fit$bound$parameters)))
  of(call_seconds$call) + seconds * (if (times >= 2) 1 + times else 1) + expect_comparison(fit, prior_n, of(call_seconds$comparison))
}

expect_comparison <- function(fit, prior_n, fixed) {
  if (isFALSE(fit$asked$control$beside) || !takes_clamping(as_engine(fit$method), fit$release, fit$bound)) return(0)
  plan <- plan_beside(fit, prior_n)
  fixed + if (is.list(plan)) plan$seconds else 0
}

with_expected <- function(why, seconds) if (is.null(seconds)) why else c(paste0(why[1L], "; this call: ", about_time(seconds)), why[-1L])
