# Chains whose length the user left to us, and that fell short: once more, longer. Few runs need that, and how many iterations a run needs
# is hardly known before it. The draws are what a call would make with this `iter` and `thin`. They depend on the seed alone, since what chains are expected to
# cost decides, not the seconds that they took.

# A second run makes at most so many times the iterations, and is expected to take at most so many seconds.
most_longer <- 32
longest_again <- 45

# `again`: samples with another run. A second run that is interrupted or fails leaves the first. What R functions cost is timed, and would make the draws
# depend on the machine: there chains are not run again.
longer_if_short <- function(fit, again) {
  if (length(fit$chains) < fit$run$chains || calls_r_functions(fit)) return(fit)
  found <- tryCatch(mixing_diagnostics(fit), error = function(e) NULL) # later reported by with_troubles()
  if (is.null(found)) return(fit)
  times <- times_longer(found$rhat, found$ess)
  if (times == 1) return(fit)
  times <- min(times, 2^floor(log2(longest_again / (counted_seconds(fit) * fit$run$chains * fit$run$iter))))
  if (times < 2) return(fit)
  run <- longer_run(fit$run, times)
  high <- if (max(found$rhat) > highest_r_hat) sprintf("R-hat up to %s, ", format_number(ceiling(1000 * max(found$rhat)) / 1000, 4))
  cli::cli_inform("{fit$run$iter} iterations were too few ({high}as few as {floor(min(found$ess))} effective draws): the chains run again, with {run$iter}.",
                  class = c("noiseaware_message_longer", "immediateCondition"))
  longer <- tryCatch(suppressWarnings(again(run), "noiseaware_warning_interrupted"), error = function(e) NULL)
  if (is_whole(longer, fit)) longer else fit
}

# `asked`: what sample_posterior() was given
leaves_length <- function(asked) !any(c("iter", "warmup", "thin") %in% names(asked)) && is.null(asked$init)

is_whole <- function(longer, fit) length(longer$chains) == fit$run$chains && identical(dim(longer$draws), dim(fit$draws))

# How many times as many iterations: a power of 2, for 500 effective draws and an R-hat below the limit; 1 where the chains are long enough.
times_longer <- function(rhat, ess) {
  if (anyNA(rhat) || anyNA(ess)) return(1)
  if (max(rhat) <= highest_r_hat && min(ess) >= fewest_effective) return(1)
  # what exceeds 1 in R-hat is inversely proportional to the length
  times <- max(500 / min(ess), (max(rhat) - 1) / (highest_r_hat - 1), 2)
  min(2^ceiling(log2(times)), most_longer)
}

longer_run <- function(run, times) utils::modifyList(run, list(iter = times * run$iter, warmup = times * run$warmup, thin = times * run$thin))
