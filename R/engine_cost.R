# What a method is expected to cost: seconds for an iteration and for 1,000 effective draws,
# from what is public. The constants stand in R/engine_cost_constants.R, which bench/cost.R measures
# and writes.
#
# With d the engine's size, r the noise over the sampling variation, q and l how far its log is below and
# above 0 (one of them 0), and k the dummies of factors:
#   seconds for an iteration            exp(fixed) d^fixed_size r^fixed_noise + n exp(record) d^record_size
#   effective draws of an iteration     exp(draws + draws_size log d + quiet q + loud l + levels log(1 + k)), at most 1
# Iterations of warmup count. Bounds that bind are left out: they make little difference to
# the engines that account for them (bench/results.md).
#
# Seconds refer to the machine that was measured, so that a choice does not depend on the machine. What is
# said of them (about_time()) is in seconds of this one: its time for a fixed task is compared.

# `method` with this release: the engine that runs, as the constants name it, and what its cost depends on.
cost_features <- function(method, release, bound, control = list(), prior_n = NULL) {
  sized <- if (is.null(release$n)) without_size(release, typical_size(release, prior_n)$n) else release
  c(engine_size(as_engine(method), release, sized, bound, control, prior_n),
    list(n = sized$n, noise = noise_ratio(sized), levels = sum(lengths(bound$levels) - 1)))
}

# Noise further from the sampling variation than that was not measured.
farthest_noise <- log(100)

# seconds for an `iteration`, and for `thousand` effective draws; no end of them for an engine that
# was not measured, the Gibbs sampler of "clt" for more than 1,000 unknown parameters
predict_cost <- function(features, constants = cost_constants) {
  if (!features$engine %in% constants$engine) return(list(iteration = Inf, thousand = Inf))
  k <- as.list(constants[constants$engine == features$engine, ])
  distance <- max(-farthest_noise, min(farthest_noise, log(features$noise)))
  iteration <- exp(k$fixed + k$fixed_noise * distance) * features$size^k$fixed_size + features$n * exp(k$record) * features$size^k$record_size
  draws <- k$draws + k$draws_size * log(features$size) + k$quiet * max(0, -distance) + k$loud * max(0, distance) + k$levels * log1p(features$levels)
  list(iteration = iteration, thousand = 1000 * iteration / exp(min(draws, 0)))
}

#' @export
engine_cost.engine <- function(engine, release, bound, control, prior_n, call) {
  predict_cost(cost_features(engine$method, release, bound, control, prior_n))
}

# ---- seconds of this machine -----------------------------------------------------------------

# Seconds for a fixed task, as long as other programs let it run: the least of some repetitions, 8 ms in all
yardstick <- function() {
  draws <- array(sin(seq_len(4000)), c(1000, 4, 1))
  min(vapply(1:7, function(k) {
    began <- as.double(Sys.time())
    .Call(ffi_diagnostics, draws, 0.025)
    as.double(Sys.time()) - began
  }, 0))
}

# how many times as long this machine takes, once a session
slower_machine <- function() session$slower <- session$slower %||% (yardstick() / measured_yardstick)
