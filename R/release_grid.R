# The grid of a real release: every record's values are rounded to multiples of a
# unit, a power of two, and everything that follows is integer arithmetic; see
# src/r/exact_noise.c. The unit follows from public facts alone.
#
# Rounding moves the difference of two records by up to one unit a component, so
# units are part of the sensitivity and the noise is scaled from it.

# steps that a scale has, at the least and by choice
coarsest_grid <- 2^10
laplace_grid <- c(2^23, 2^44)
gaussian_grid <- c(2^23, 2^23)

# the exact sampler of each mechanism
exact_families <- c(laplace = "laplace", discrete_laplace = "laplace", gaussian = "gaussian", discrete_gaussian = "gaussian")
check_exact <- function(parts, call = caller_env()) {
  for (p in parts) if (isFALSE(p$mechanism$after$listed)) {
    stop_classed("mechanism", "{.fn release} lists the numbers that it hides, by the statistic's names; {.code published(listed = FALSE)} describes releases of others.",
                 call = call)
  }
  for (p in parts) if (p$mechanism$kernel == "objective") {
    stop_classed("mechanism", "{.fn release} adds noise to totals; use {.fn release_objective} for coefficients with objective perturbation.",
                 call = call)
  }
  if (all(vapply(parts, function(p) is_noiseless(p$mechanism), TRUE))) {
    stop_classed("mechanism", "{.fn release} is for noisy numbers, but here every number would be exact, and nothing would protect the records.", call = call)
  }
  for (p in parts) if (!p$mechanism$name %in% c(names(exact_families), "randomized_response", "exponential", "exact")) {
    stop_classed("mechanism", c("{.fn release} draws noise exactly from the operating system's entropy; it cannot draw {format(p$mechanism)}.",
                                i = "Use {.fn as_release} to describe a published value, and {.fn simulate_release} to draw one for a simulation study."), call = call)
  }
}

# unit of every component
release_unit <- function(mechanism, statistic, n, neighbours = "replace", call = caller_env()) {
  scale <- mechanism_scale(mechanism, statistic, call, neighbours = neighbours)
  if (is_discrete(mechanism)) return(rep(1, length(scale)))
  steps <- if (exact_families[[mechanism$name]] == "laplace") laplace_grid else gaussian_grid
  finest <- scale / steps[1L]
  # a small budget makes the noise large against the sensitivity: rounding shall not count there either
  if (is.null(mechanism$scale) && is.null(mechanism$sd)) {
    finest <- pmin(finest, pmax(scale / steps[2L], sensitivity(statistic, "L1", neighbours) * 2^-20 / length(scale)))
  }
  added <- if (statistic$kind == "records") 1 else n
  coarsest <- added * component_size(statistic, neighbours) / 2^61
  unit <- 2^pmax(floor(log2(finest)), ceiling(log2(coarsest)))
  if (any(unit > 2^900)) {
    stop_classed("mechanism", c("The noise must be small enough to be drawn exactly, but its scale is {format_number(max(scale))}.",
                                i = "Change the units of the data, or give a larger budget."), call = call)
  }
  if (any(unit < 2^-900 | scale < coarsest_grid * unit)) {
    least <- format_number(coarsest_grid * max(coarsest, 2^-900))
    records <- if (n == 1) "1 record" else paste(format(n, big.mark = ",", decimal.mark = ".", scientific = FALSE), "records")
    stop_classed("mechanism", c("The noise must be large enough to be drawn exactly: with {records} of this size its scale must be at least {least}.",
                                x = "It is {format_number(min(scale))}.", i = "Change the units of the data, or the budget."), call = call)
  }
  unit
}

# The scale of every component in units as a ratio of integers, rounded up.
exact_scale <- function(mechanism, statistic, unit, neighbours = "replace", call = caller_env()) {
  scale <- mechanism_scale(mechanism, statistic, call, unit = unit, neighbours = neighbours) / unit
  # a budget's scale was computed in doubles
  if (is.null(mechanism$scale) && is.null(mechanism$sd)) scale <- scale * (1 + 2^-40)
  bits <- if (!is_discrete(mechanism)) 0 else
    if (exact_families[[mechanism$name]] == "laplace") pmin(pmax(30 - floor(log2(scale)), 0), 52) else pmin(pmax(24 - floor(log2(scale)), 0), 25)
  numerator <- ceiling(scale * 2^bits)
  largest <- if (exact_families[[mechanism$name]] == "laplace") 2^46 else 2^25
  if (any(numerator > largest)) {
    stop_classed("mechanism", "The noise of a real release must have a scale of at most {format_number(largest)} units, but has {format_number(max(numerator))}.",
                 call = call)
  }
  list(numerator = numerator, denominator = rep_len(2^bits, length(numerator)), scale = numerator / 2^bits * unit)
}

# Where their number is confidential, the unit is for the most records that a data frame can have.
most_records <- 2^31

# How the numbers of a part are rounded, and the noise that is added. `records`: how many are summed, n where that is public.
part_grid <- function(part, n, call) {
  records <- if (replaces(part$neighbours)) n else most_records
  unit <- release_unit(part$mechanism, part$statistic, records, part$neighbours, call)
  list(unit = unit, records = as.double(records), scale = exact_scale(part$mechanism, part$statistic, unit, part$neighbours, call),
       family = exact_families[[part$mechanism$name]])
}

exact_result <- function(value, part, grid, call) {
  if (is.null(value)) stop_entropy(call)
  each <- length(value) / length(grid$unit)
  if (part$mechanism$kernel == "published") value <- publish(part$mechanism$after, value)
  list(value = value, scale = rep(grid$scale$scale, each = each), unit = rep(grid$unit, each = each))
}

entropy_uniform <- function(count, call = caller_env()) .Call(ffi_entropy, count) %||% stop_entropy(call)

# A release that was read: its units are declared, its scale follows from them.
# What is wrong is a text, else NULL.
set_granularity <- function(release, unit) {
  release$granularity[] <- unit
  for (p in release_parts(release)) {
    drawn <- !p$mechanism$kernel %in% c("match", "ranks", "exact")
    power <- log2(pmax(p$granularity, 2^-1000))
    if (!all(if (drawn) power > -1000 & power == floor(power) else p$granularity == 0)) return("granularity must be a power of two for added noise, 0 otherwise.")
    if (!drawn) next
    each <- length(p$value) / length(p$statistic$components)
    unit <- p$granularity[seq(1, length(p$value), by = each)]
    steps <- p$value / p$granularity
    # rounded and clipped numbers need not be multiples
    steps <- steps[!is.na(steps) & !any(c("round", "lower", "upper") %in% names(p$mechanism$after))]
    if (any(p$granularity != rep(unit, each = each)) || any(steps != round(steps))) return("value must have multiples of the granularity.")
    release$scale[p$index] <- rep(exact_scale(p$mechanism, p$statistic, unit, p$neighbours)$scale, each = each)
  }
  release
}
