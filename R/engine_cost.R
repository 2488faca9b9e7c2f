# What a method is expected to cost: seconds for an iteration and for 1,000 effective draws,
# from what is public. The constants stand in R/engine_cost_constants.R, which bench/cost.R measures
# and writes.
#
# With d the engine's size, q and l how far the noise is below and above the sampling
# variation (both on the log scale, one of them 0), and k the dummies of factors:
#   seconds for an iteration            exp(fixed) d^fixed_size + n exp(record) d^record_size
#   effective draws of an iteration     exp(draws + draws_size log d + quiet q + loud l + levels log(1 + k)), at most 1
# Iterations of warmup count. Bounds that bind are left out: they make little difference to
# the engines that account for them (bench/results.md).

# `method` with this release: the engine that runs, and what its cost depends on.
cost_features <- function(method, release, bound, control = list(), records = NULL) {
  sized <- if (is.null(release$n)) without_size(release, typical_size(release, records)$n) else release
  engine <- switch(method, augment = augment_engine(sized, bound, control, is.null(release$n)), collapse = collapse_engine(release, bound),
                   clt = clt_engine(sized, bound, control, records))
  list(engine = engine, size = cost_size(engine, bound, sized), n = sized$n,
       noise = noise_ratio(sized), levels = sum(lengths(bound$levels) - 1))
}

# of what the engine moves
cost_size <- function(engine, bound, release) {
  if (engine == "crossing") return(sum(lengths(bound$levels)))
  if (engine %in% c("log-linear table", "response table", "answers")) return(nrow(as_table(bound)$parts[[1L]]$codes))
  if (inherits(bound, "bound_table")) return(bound$sizes$complete)
  if (engine %in% c("counts", "recursion", "marginal")) return(length(release$value))
  # of one or two columns the exact density is often followed, which is about as much work as the surrogate of three
  if (engine == "shape") return(max(bound$sizes$columns, 3))
  bound$sizes$columns * if (engine == "clamped cross-table") prod(lengths(bound$levels)) else 1
}

augment_engine <- function(release, bound, control, unknown) {
  if (bound$by_records) return(records_engine(bound))
  design <- if (is.null(control$passes)) surrogate_columns(bound, component_parts(release), release$n, unknown)
  if (any(design$role == "free")) "shape" else "sweeps"
}

# where surrogates of totals do not move the records
records_engine <- function(bound) if (inherits(bound, "bound_categories")) "levels" else if (bound$by_records) "responses" else "sweeps"

collapse_engine <- function(release, bound) {
  bound <- as_table(bound)
  if (has_answers(release)) return("answers")
  family <- collapse_family(bound)
  # independent draws of a row of counts are cheaper than those of the recursion, and far cheaper than moves
  if (isTRUE(collapse_distribution(release, bound, check = TRUE))) return("recursion")
  if (release_crosses(release, bound)) return("crossing")
  if (family == "normal" && length(bound$levels)) return("cross-table")
  if (inherits(bound, "bound_glm_table")) "response table" else if (moves_theta(bound)) "log-linear table" else family
}

clt_engine <- function(release, bound, control, records) {
  if (clt_moves_totals(release, bound, control, records)) return(if (length(bound$levels)) "clamped cross-table" else "clamped totals")
  distribution <- released_distribution(bound, release, caller_env())
  sampler <- control$sampler %||% clt_sampler(distribution, length(bound$unknown), bound_is_cut(bound))
  if (sampler == "nuts" && bound$by_records) "nuts of responses" else sampler
}

# Noise further from the sampling variation than that was not measured.
farthest_noise <- log(100)

# seconds for an `iteration`, and for `thousand` effective draws; no end of them for an engine that
# was not measured, the Gibbs sampler of "clt" for more than 1,000 unknown parameters
predict_cost <- function(features, constants = cost_constants) {
  if (!features$engine %in% constants$engine) return(list(iteration = Inf, thousand = Inf))
  k <- as.list(constants[constants$engine == features$engine, ])
  distance <- max(-farthest_noise, min(farthest_noise, log(features$noise)))
  iteration <- exp(k$fixed) * features$size^k$fixed_size + features$n * exp(k$record) * features$size^k$record_size
  draws <- k$draws + k$draws_size * log(features$size) + k$quiet * max(0, -distance) + k$loud * max(0, distance) + k$levels * log1p(features$levels)
  list(iteration = iteration, thousand = 1000 * iteration / exp(min(draws, 0)))
}
