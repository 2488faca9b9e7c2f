# Bends of the coordinates of normal totals, for a sum alone or with squares: see src/totals/mean_sd_ridge.c.

# as in src/totals/mean_sd_ridge.h
bend_knots <- 64L

# The band is narrow where along its likely part the mean varies by so many of its standard deviations given the records' standard deviation.
narrow_band <- 4

# For each free column the first knot, the distance between knots, then values and slopes at them; empty where no column
# has a narrow band. `terms`: see scatter_noise(). `lower`, `upper`: bounds of each column, which clamp it or not. From the release
# alone: chains agree.
totals_bend <- function(terms, value, variance, lower, upper, n, clamped = TRUE) {
  clamped <- rep_len(clamped, length(lower))
  columns <- lapply(seq_along(lower), function(i) {
    own <- terms[1L, ] == i - 1 & (terms[2L, ] == i - 1 | terms[6L, ] == 0) & (terms[4L, ] != 0 | terms[6L, ] != 0)
    total <- cbind(terms[4L, ] + ifelse(terms[6L, ] == 0, 0, terms[5L, ]), terms[6L, ])[own, , drop = FALSE]
    if (nrow(total) > 0L) recalled_bend(total, (value - terms[3L, ])[own], variance[own], lower[i], upper[i], n, clamped[i])
  })
  if (all(lengths(columns) == 0L)) return(double())
  unlist(lapply(columns, function(bend) bend %||% rep(c(0, 1, 0), c(1L, 1L, 2L * bend_knots))))
}

# What column_bend() answered last: while a release is fitted, the methods that are considered and the one that runs ask the same again.
last_bends <- new.env(parent = emptyenv())
last_bends$known <- list()
most_bends <- 16L

recalled_bend <- function(...) {
  asked <- list(...)
  same <- Position(function(one) identical(one$asked, asked), last_bends$known)
  if (!is.na(same)) return(last_bends$known[[same]]$bend)
  bend <- column_bend(...)
  last_bends$known <- utils::head(c(list(list(asked = asked, bend = bend)), last_bends$known), most_bends)
  bend
}

# of one column, whose total and total of squares have the coefficients `told` in each component, a row each; NULL where there is none
column_bend <- function(told, value, variance, lower, upper, n, clamped) {
  if (!is.finite(upper - lower) || upper <= lower) return(NULL)
  out <- if (clamped) 0 else 1e3 * (upper - lower) # no record gets there
  x <- seq(log(upper - lower) - 8, log(upper - lower) + 0.5, length.out = bend_knots)
  misfit <- function(mean, x) {
    seen <- clamped_moments(mean, exp(x), lower - out, upper + out)
    away <- value - n * (told[, 1L] %o% seen$first + told[, 2L] %o% seen$second)
    slope <- n * (told[, 1L] %o% seen$slope_first + told[, 2L] %o% seen$slope_second)
    list(energy = colSums(away^2 / variance) / 2, force = colSums(away * slope / variance), precision = colSums(slope^2 / variance))
  }
  grid <- seq(lower, upper, length.out = 33L)
  energy <- misfit(rep(grid, each = bend_knots), rep(x, length(grid)))$energy
  mean <- grid[max.col(-matrix(energy, bend_knots), "first")]
  for (step in 1:25) {
    at <- misfit(mean, x)
    before <- mean
    mean <- pmin(pmax(mean + at$force / at$precision, 4 * lower - 3 * upper), 4 * upper - 3 * lower)
    if (identical(mean, before)) break
  }
  at <- misfit(mean, x)
  if (!all(is.finite(c(mean, at$energy)))) return(NULL)
  likely <- at$energy - min(at$energy) < 3 # added to a large energy, the 3 may be lost to rounding
  width <- stats::median(1 / sqrt(at$precision[likely]))
  if (diff(range(mean[likely])) < narrow_band * width) return(NULL)
  c(x[1L], x[2L] - x[1L], mean, stats::splinefun(x, mean, method = "natural")(x, deriv = 1L))
}

# Of a normal distribution clamped to [lower, upper]: the first two moments, and their slopes in its mean
clamped_moments <- function(mean, sd, lower, upper) {
  a <- (lower - mean) / sd
  b <- (upper - mean) / sd
  below <- stats::pnorm(a)
  above <- stats::pnorm(b, lower.tail = FALSE)
  at_lower <- stats::dnorm(a)
  at_upper <- stats::dnorm(b)
  inside <- stats::pnorm(b) - below
  first <- mean * inside + sd * (at_lower - at_upper) # of what is not clamped
  list(first = first + lower * below + upper * above, slope_first = inside,
       second = mean * first + sd^2 * inside + sd * (lower * at_lower - upper * at_upper) + lower^2 * below + upper^2 * above,
       slope_second = 2 * first)
}
