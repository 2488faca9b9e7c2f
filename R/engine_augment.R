# Method "augment": see src/records/. Here a problem is set up for engine_chains.R.

sample_augment <- function(release, bound, run, init, control, records = NULL, call = caller_env()) {
  check_noise_on_totals("augment", release, call)
  words <- with_seed(run$seed, seed_words())
  problem <- augment_problem(release, bound, control$passes, words, run$chains, records, call)
  sample_chains(problem, release, bound, run, init, words)
}

# What the C code needs to know; see struct augment.
augment_problem <- function(release, bound, passes, words, chains, records = NULL, call = caller_env()) {
  layout <- augment_parts(release, bound, call)
  parts <- component_parts(release)
  size <- augment_size(release, records)
  c(size, list(method = "augment", model = bound$spec, move_sd = move_sd(bound, words, chains), theta_sd = walk_sd(bound, words, chains),
         surrogate = if (is.null(passes)) surrogate_fields(bound, parts, size$n, !is.null(records), layout) else list(),
         reflect = if (is.null(records)) record_reflections(bound, parts), passes = as.double(passes %||% -1), times = released_times(parts)), layout)
}

# What was published of the records: see struct part.
augment_parts <- function(release, bound, call) {
  parts <- component_parts(release)
  check_no_exact(parts, "augment", call)
  c(layout_parts(lapply(lapply(parts, fill_part), augment_part, bound = bound, n = release$n)), list(hold = held_bounds(bound, parts)))
}

# The bounds of a normal variable of which sums alone were published, without squares: see src/records/held_total.c. Otherwise none.
held_bounds <- function(bound, parts) {
  if (!bound$spec$name %in% c("normal", "lm", "mvnormal") || nrow(bound$columns) != 1L || !identical(as.integer(bound$unknown), 1:2)) return(double())
  totals <- parts[vapply(parts, function(p) p$statistic$kind == "totals" && !inherits(p$statistic, "stat_size"), TRUE)]
  sums <- vapply(totals, function(p) {
    degrees <- monomial_degrees(p$statistic)
    !is.null(degrees) && all(is.na(degrees$second[p$at]))
  }, TRUE)
  if (length(totals) == 0L || !all(sums)) return(double())
  bounds <- clamping_bounds(bound$columns$name, totals)
  if (bounds$same) as.double(c(bounds$lower, bounds$upper)) else double()
}

# births and deaths at once, at most: where the release tells n well, and where it tells nothing
least_most_born <- 256
most_born <- 2048

# n; where it is unknown about where it is, and the room that a state has at first
augment_size <- function(release, records) {
  if (is.null(records)) check_room(release$n, known = TRUE)
  if (is.null(records)) return(list(n = release$n, records = NULL, size_prior = NULL))
  size <- typical_size(release, records)
  # many sites of some hundred records each need little room
  born <- min(max(16 * ceiling(size$sd), least_most_born), most_born)
  room <- min(size$n + 6 * size$sd, size_range(records)[2L]) + 8 * born
  check_room(room)
  list(n = size$n, records = records, size_prior = size_prior_spec(records), size_spread = size$sd, most_born = born, room = ceiling(room / 64) * 64)
}

# A component that was not published has noise without limit: weight 0. So the loops over records know nothing of it.
fill_part <- function(part) {
  size <- length(part$statistic$components)
  if (part$statistic$kind == "records" || length(part$at) == size) return(part)
  part$value <- replace(numeric(size), part$at, part$value)
  part$scale <- replace(rep(Inf, size), part$at, part$scale)
  if (part$mechanism$kernel == "published") part$interval <- fill_interval(part$interval, part$at, size)
  part
}

augment_part <- function(part, bound, n) UseMethod("augment_part", part$mechanism)

#' @export
augment_part.default <- function(part, bound, n) {
  statistic <- part$statistic
  spec <- statistic_spec(statistic)
  kernel <- part$mechanism$kernel
  # a density of its own sees all counts at once
  spec$kind <- if (kernel == "density" && statistic$kind == "cells") "totals" else statistic$kind
  spec$kernel <- kernel
  if (kernel == "density") spec$density <- custom_density(part$mechanism, statistic, part$value, n)
  spec$column <- match(statistic$columns$name, bound$columns$name) - 1L
  spec$index <- part$index
  spec$at <- part$at
  spec$released <- as.double(part$value)
  spec$weight <- as.double(1 / part$scale)
  if (statistic$kind == "records") spec$weight <- spec$weight[seq(1, length(spec$weight), by = n)] # one a component
  spec
}

# The parts, their released values and weights in the order of C (augment_lay_out() in
# src/records/augment_chain.c), and `where` among those the release's components are that are
# totals, `summed`.
layout_parts <- function(parts) {
  laid <- .Call(ffi_augment_layout, parts)
  where <- integer()
  for (k in seq_along(parts)) if (length(laid$where[[k]])) where[parts[[k]]$index] <- laid$where[[k]][parts[[k]]$at]
  summed <- which(!is.na(where))
  list(parts = parts, released = laid$released, weight = laid$weight, where = where[summed], summed = summed, dense = laid$dense)
}

# Spread of the prior, robust to heavy tails, for each place in theta: where
# the non-centred proposals start from. Its stream is the one after the chains'.
move_sd <- function(bound, words, chains) {
  if (is.null(bound$moves)) return(numeric())
  sd <- numeric(max(bound$moves))
  replace(sd, bound$moves, prior_sd(bound, words, chains))
}

# where random walks given the records start from; NULL: none
walk_sd <- function(bound, words, chains) if (bound$walks > 0) utils::head(prior_sd(bound, words, chains), bound$walks)
