#' Exponential mechanism for quantiles
#'
#' Draws each quantile from the points of a public grid; points near the rank of the quantile are more likely (McSherry & Talwar 2007; Smith 2011). Use it with
#' [stat_quantiles()].
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget of all quantiles together: the release is epsilon-differentially private.
#' @param scale Instead of a budget: the scale of the distances, a positive number of records.
#'
#' @details
#' **The distribution.** Point g is drawn with a probability proportional to
#' \deqn{\exp(-d(g) / \mathrm{scale}),}
#' where d(g) is its distance from the rank of the quantile, in records: see [stat_quantiles()]. Quantiles are drawn independently, so they need not be
#' increasing.
#'
#' **The guarantee.** One record changes a distance by at most D, its sensitivity. So it changes exp(-d(g) / scale), and the sum of these over all points, by a
#' factor of at most exp(D / scale). Probabilities change by a factor of at most exp(2 D / scale). With several quantiles these factors are multiplied:
#' \deqn{\epsilon = 2 \sum D / \mathrm{scale},}
#' with the sum over the quantiles. The scale follows from `epsilon`: 2 / epsilon records for one quantile if a
#' record is replaced, 1 / epsilon for a median if one is added or removed. For one quantile, the log ratio of probabilities stays in an interval of length
#' epsilon. So the release has zero-concentrated differential privacy with rho = epsilon^2 / 8 (Cesar & Rogers 2021). The rhos of several quantiles add up.
#'
#' **In a release by the owner** the point is drawn exactly, by rejection in integer arithmetic; the time that this takes depends on the data. For this, 1 / scale
#' is a multiple of 2^-31, rounded down, from 2^-28 to 2^19.
#'
#' **How many records it needs.** Let the grid have K points, and let m records be on the far side of a quantile. The points beyond all records together have at most
#' K exp(-m / scale) times the weight of one at the rank. So a few tens of records per unit of 1 / epsilon are needed on each side. With fewer, the result is
#' close to uniform between the bounds. If the number of records is public (neighbours `"replace"`), [release()] warns (`noiseaware_warning_quantile`) before any
#' budget is spent.
#'
#' **Unknown bounds.** A quantile between limits that are certain to contain all data helps to choose narrower bounds for other statistics: see the examples, and
#' `vignette("design")`.
#'
#' @return A mechanism: an object of class `mech_exponential`.
#' @section Errors: `noiseaware_error_mechanism`, also when it is combined with a statistic other than [stat_quantiles()];
#'   `noiseaware_error_value` from [as_release()] with values that are not points of the grid.
#' @references
#' McSherry, F. and Talwar, K. (2007). Mechanism design via differential privacy.
#' \doi{10.1109/FOCS.2007.66}
#'
#' Smith, A. (2011). Privacy-preserving statistical estimation with optimal
#' convergence rates. \doi{10.1145/1993636.1993743}
#'
#' Cesar, M. and Rogers, R. (2021). Bounding, concentrating, and truncating: unifying privacy loss composition for data analytics.
#' *Algorithmic Learning Theory 2021*, PMLR 132, 421-457.
#' @family mechanisms
#' @examples
#' mech_exponential(epsilon = 1)
#' # a published median income, in thousands, of 400 persons
#' median <- stat_quantiles(~ income, bounds = c(0, 200), probs = 0.5, steps = 200)
#' rel <- as_release(38, median, mech_exponential(epsilon = 0.5), n = 400)
#' rel
#' summary(sample_posterior(rel, model_exponential(), chains = 2, iter = 400, seed = 1))
#' # bounds for sums: a weight that about a quarter of the mothers exceed
#' account <- budget(epsilon = 2)
#' upper <- release(MASS::birthwt, stat_quantiles(~ lwt, c(0, 1000), 0.75, steps = 10000),
#'                  mech_exponential(epsilon = 1), budget = account)$value
#' stat_sums(~ lwt, bounds = list(lwt = c(0, upper)))
#' account
#' @export
mech_exponential <- function(..., epsilon = NULL, scale = NULL) {
  check_all_named(...)
  given <- check_one_of(list(epsilon = epsilon, scale = scale))
  if (given == "epsilon") epsilon <- check_positive(epsilon, "epsilon", "mechanism")
  if (given == "scale") scale <- check_positive(scale, "scale", "mechanism")
  new_mechanism("exponential", "ranks", epsilon = epsilon, scale = scale, class = "mech_exponential")
}

# One over the scale is drawn from as a ratio of integers.
slope_unit <- 2^31
scale_range <- c(2^-19, 2^28)

#' @export
mechanism_scale.mech_exponential <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  scale <- mechanism$scale %||% (2 * sensitivity(statistic, "L1", neighbours) / mechanism$epsilon)
  if (scale < scale_range[1L] || scale > scale_range[2L]) {
    stop_classed("mechanism", c("The scale of the exponential mechanism must be a number of records from 2^-19 to 2^28, but is {format_number(scale)}.",
                                i = if (!is.null(mechanism$epsilon)) "It follows from {.arg epsilon}, which {length(statistic$probs)} quantile{?s} share."),
                 call = call)
  }
  rep(slope_unit / floor(slope_unit / scale), length(statistic$components))
}

# of the values; it depends on the data
#' @export
mechanism_sd.mech_exponential <- function(mechanism, scale) rep(NA_real_, length(scale))

#' @export
guarantee_of.mech_exponential <- function(x, statistic = NULL, ..., neighbours = "replace") {
  if (is.null(statistic)) {
    epsilon <- x$epsilon %||% NA_real_
    return(privacy_row(epsilon = epsilon, delta = 0, rho = epsilon^2 / 8))
  }
  total <- 2 * sensitivity(statistic, "L1", neighbours)
  scale <- x$scale %||% (total / x$epsilon)
  privacy_row(epsilon = x$epsilon %||% (total / scale), delta = 0, rho = (sensitivity(statistic, "L2", neighbours) / scale)^2 / 2)
}

#' @export
format.mech_exponential <- function(x, ...) {
  paste0("exponential mechanism, ", if (is.null(x$epsilon)) paste("scale", format_number(x$scale)) else paste("epsilon =", format_number(x$epsilon)))
}

#' @export
check_noisy.mech_exponential <- function(mechanism, statistic, value, call = caller_env()) {
  place <- grid_places(statistic, value)
  off <- abs(place - round(place)) > 1e-6 | round(place) < 0 | round(place) > statistic$steps
  if (!any(off)) return(invisible())
  first <- which(off)[1L]
  nearest <- grid_points(statistic, min(max(round(place[first]), 0), statistic$steps))
  stop_classed("value", c("{.arg value} must have points of the grid of {.fn stat_quantiles}, of {format_size(statistic$steps)} steps between the bounds.",
                          x = "{.val {statistic$components[first]}} is {format_number(value[first], 15L)}; the nearest point is {format_number(nearest, 15L)}.",
                          i = "Quantiles computed from a published noisy histogram are a function of it: describe the histogram by {.fn stat_histogram}."),
               call = call)
}

# ---- the owner ---------------------------------------------------------------------

# In integers, see src/release/exact_noise.c. `counts`: of records at each point
exact_quantiles <- function(part, counts, call) {
  statistic <- part$statistic
  scale <- mechanism_scale(part$mechanism, statistic, call, neighbours = part$neighbours)
  if (replaces(part$neighbours)) warn_of_few(statistic, sum(counts), scale[1L], call)
  at <- vapply(quantile_shares(statistic) * sum(counts), function(rank) {
    .Call(ffi_exact_quantile, 1L, c(0, cumsum(counts)), rank, round(slope_unit / scale[1L]), slope_unit) %||% stop_entropy(call)
  }, 0)
  list(value = grid_points(statistic, at), scale = scale, unit = numeric(length(at)))
}

#' @export
simulated_part.mech_exponential <- function(part, data, call, uniform = stats::runif, total) {
  statistic <- part$statistic
  scale <- part$scale %||% mechanism_scale(part$mechanism, statistic, call, neighbours = part$neighbours)
  distance <- rank_distances(statistic, point_counts(statistic, part_records(part, data, call)))
  at <- Map(function(k, u) {
    up_to <- cumsum(exp(-distance[, k] / scale[k]))
    findInterval(u * up_to[length(up_to)], up_to)
  }, seq_along(scale), uniform(length(scale)))
  list(value = grid_points(statistic, unlist(at)), scale = scale, unit = numeric(length(scale)))
}

# With so many records on the far side of a quantile, points beyond all records have at most 0.05 times the weight of one that is the quantile.
warn_of_few <- function(statistic, n, scale, call) {
  needed <- scale * log((statistic$steps + 1) / 0.05)
  far <- floor(n * pmin(statistic$probs, 1 - statistic$probs))
  if (all(far >= needed)) return(invisible())
  few <- which.min(far)
  cli::cli_warn(c(paste("The quantile {.val {statistic$components[few]}} may lie anywhere between the bounds: about {format_size(ceiling(needed))}",
                        "{cli::qty(ceiling(needed))}record{?s} {?is/are} needed on each side of it."),
                  x = "One side has {format_size(far[few])} {cli::qty(far[few])}record{?s}.",
                  i = "Use a larger budget, quantiles nearer to the median, or a grid with fewer steps."),
                class = "noiseaware_warning_quantile", call = call)
}

# ---- method "augment", calibration -----------------------------------------------

exponential_density <- function(part) {
  statistic <- part$statistic
  list(name = "exponential", fields = list(slope = 1 / part$scale[1L], share = quantile_shares(statistic), at = round(grid_places(statistic, part$value))))
}

# Totals are the numbers of records at the points, of which nothing is published.
#' @export
augment_part.mech_exponential <- function(part, bound, n) {
  statistic <- part$statistic
  points <- statistic$steps + 1
  c(statistic_spec(statistic), list(kind = "ranks", kernel = "density", index = integer(), density = exponential_density(part),
                                    column = match(statistic$columns$name, bound$columns$name) - 1L, released = numeric(points), scale = rep(1, points)))
}

#' @export
log_noise.mech_exponential <- function(part, data) {
  x <- record_matrix(data, part$statistic$columns, part$statistic$levels, empty = TRUE)
  .Call(ffi_density, exponential_density(part), matrix(-point_counts(part$statistic, x), 1L))
}

# for methods that need totals
check_no_quantiles <- function(parts, method, call) {
  for (part in parts) if (part$mechanism$kernel == "ranks") {
    stop_classed("method", c("Method {.val {method}} needs sums or counts of the records, with noise; quantiles depend on ranks.",
                             x = "The release has: {describe_statistic(part$statistic)}.", i = "Method {.val augment} can use it."), call = call)
  }
}

# With the steps of the tree of src/mech/exponential.c, seconds for each level of it: bench/quantiles.R.
tree_level <- 1.4e-8

with_quantiles <- function(cost, release) {
  levels <- vapply(release_parts(release), function(part) if (part$mechanism$kernel == "ranks") log2(part$statistic$steps + 1) else 0, 0)
  slower <- 1 + (release$n %||% 0) * sum(levels) * tree_level / cost$iteration
  list(iteration = slower * cost$iteration, thousand = slower * cost$thousand)
}

#' @export
mechanism_takes.mech_exponential <- function(mechanism, statistic, kinds) inherits(statistic, "stat_quantiles")
