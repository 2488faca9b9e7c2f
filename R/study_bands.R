# Bands for the points of a calibration, and texts for its counts.

inside_central <- function(quantile, level) abs(quantile - 0.5) <= level / 2

# Band of the ECDF of `count` uniforms at the points k / points, k = 1 .. points - 1,
# that holds it everywhere with probability at least `prob` (Saeilynoja, Buerkner &
# Vehtari 2022, section 2.1): binomial intervals of one level, chosen by the exact
# probability of staying inside.
ecdf_band <- function(count, points = max(2L, min(count, 100L)), prob = 0.99) {
  at <- seq_len(points - 1L) / points
  ends <- function(gamma) {
    list(lower = stats::qbinom(gamma / 2, count, at), upper = stats::qbinom(gamma / 2, count, at, lower.tail = FALSE))
  }
  holds <- function(log_gamma) band_probability(ends(exp(log_gamma)), count, points) >= prob
  low <- log((1 - prob) / points) # union bound
  high <- log(1 - prob)
  for (step in 1:20) {
    middle <- (low + high) / 2
    if (holds(middle)) low <- middle else high <- middle
  }
  band <- ends(exp(low))
  structure(data.frame(at = at, lower = band$lower / count, upper = band$upper / count), gamma = exp(low))
}

# Probability that the counts stay between the ends. Counts of uniforms are a
# Poisson process given its total, so that every step has the same increments.
band_probability <- function(ends, count, points) {
  increment <- c(numeric(count), stats::dpois(0:count, count / points)) # none is negative
  from <- 0L
  mass <- 1
  lower <- c(ends$lower, count)
  upper <- c(ends$upper, count)
  for (k in seq_len(points)) {
    to <- lower[k]:upper[k]
    step <- increment[outer(to + count + 1L, from, `-`)]
    mass <- drop(matrix(step, length(to)) %*% mass)
    from <- to
  }
  mass / stats::dpois(count, count)
}

# does the ECDF stay inside?
inside_band <- function(quantile, band) {
  height <- stats::ecdf(quantile)(band$at)
  all(height >= band$lower - 1e-9 & height <= band$upper + 1e-9)
}

format_coverage <- function(coverage, lower, upper) sprintf("%.2f (%.2f, %.2f)", coverage, lower, upper)

calibration_mirrored <- function(x) {
  means <- split(x$results$mean, factor(x$results$variable, unique(x$results$variable)))
  mirrored(do.call(cbind, means))
}
