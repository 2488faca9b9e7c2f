# The test that p_value() and confidence_set() are made of: rank of a score statistic among simulated ones, largest over the nuisance parameters.
#
# Statistic. z are the published numbers, mu(theta) and V(theta) their mean and covariance, both functions of theta alone. r = V^{-1/2} (z - mu). The
# derivatives of V^{-1/2} mu along the null hypothesis span the nuisance directions; the statistic is the part of r in the span of all derivatives that
# is orthogonal to these (Neyman's C(alpha)), a number for each of k tested dimensions. From it goes what its mean changes, to second order, from theta to the
# nuisance parameters that z suggests (the first order is orthogonal), and it is divided by how its variance changes, to the same order. That makes it nearly
# pivotal: its distribution hardly changes along the null hypothesis (it is like Student's t, and the score like z; the sum of squares of an sd is about the
# records' mean, not about theta's). Squared and summed it is T(z; theta).
#
# Validity. Under theta the observed z and z_1, .., z_R simulated at theta are exchangeable, and T is a fixed function of z (see
# study_simulated_release.R), so p(theta) = (1 + #{T(z_r) >= T(z)}) / (R + 1) has P(p(theta) <= a) <= a at every n, epsilon and R (Awan & Wang 2024; Xie
# & Wang 2022). A null hypothesis with nuisance parameters has the largest p(theta) over theta in it that a confidence region of level 1 - gamma holds,
# plus gamma (Berger & Boos 1994). The region is by the rank of the squared length of r in the nuisance directions. What is not
# guaranteed is that the search finds the largest: it starts at the best fit under the null hypothesis, and goes where T / its spread at the observed z
# falls. T is nearly pivotal, so that the p-values along the way are nearly equal.
#
# One-sided. Of one tested number T keeps the sign of the score, and is larger the more z speaks for the side that is asked. The null hypothesis then is its
# end, as in R's tests.
#
# Cost: simulated releases at one theta, some more for each step of the search, and 2 (d + 1) moments for each, with d (d - 1) / 2 for the second order. What
# moments make of numbers is computed in src/r/score_test.c.

# The region leaves out less than this, as far as so few replicates can say.
region_share <- 1e-3

# ---- null hypotheses -----------------------------------------------------------------------------------

# `f`: of natural values, a column a point, to a matrix with a row for each number that is `target` under the null hypothesis. `side`: 1 or -1 where larger or
# smaller numbers are the alternative, 0 for both.
new_null <- function(f, target, side = 0) list(f = f, target = target, side = side)

null_gap <- function(sim, null, points) {
  gap <- null$f(point_values(sim, points))
  (if (is.matrix(gap)) gap else matrix(gap, ncol = NCOL(points))) - null$target
}

# derivatives of the null hypothesis's numbers: numbers x coordinates
null_slopes <- function(sim, null, point) {
  step <- 1e-5 * sim$spread
  d <- length(point)
  gap <- null_gap(sim, null, cbind(point + diag(step, d), point - diag(step, d)))
  (gap[, seq_len(d), drop = FALSE] - gap[, d + seq_len(d), drop = FALSE]) / rep(2 * step, each = nrow(gap))
}

# The nearest point in the null hypothesis, by steps of at most `longest` of the prior's widths, halved until the gap shrinks; NULL: none was found.
move_to_null <- function(sim, null, point, longest = 3) {
  tolerance <- 1e-7 * (abs(null$target) + 1e-3)
  gap <- null_gap(sim, null, point)
  for (i in seq_len(60L)) {
    if (!all(is.finite(gap))) return(NULL)
    before <- max(abs(gap) / tolerance)
    if (before <= 1) return(point)
    slopes <- null_slopes(sim, null, point) * rep(sim$spread, each = length(gap))
    if (!all(is.finite(slopes))) return(NULL)
    move <- -drop(.Call(ffi_pseudo_inverse, slopes) %*% gap)
    move <- sim$spread * move * min(1, longest / max(abs(move), 1e-300))
    for (k in seq_len(25L)) {
      gap <- null_gap(sim, null, point + move)
      shrinks <- all(is.finite(gap)) && max(abs(gap) / tolerance) < before
      if (shrinks) break
      move <- move / 2
    }
    if (!shrinks) return(NULL)
    point <- point + move
  }
  NULL
}

# ---- the statistic -------------------------------------------------------------------------------------

# Moments at a point, and the mean's derivatives in every coordinate, in units of its standard deviation (`w` times them, w V w' = 1); `point` alone where there are
# none. `moments`: also those a `step` to each side, and in two coordinates.
point_slopes <- function(sim, point) {
  step <- if (is.null(sim$known_moments)) pilot_step(sim, point) else short_step(sim)
  (if (!is.null(step)) slopes_over(sim, point, step)) %||% list(point = point)
}

slopes_over <- function(sim, point, step) {
  pairs <- !is.null(sim$known_moments) && length(point) <= most_curved[[1L]]
  .Call(ffi_point_slopes, moments_at(sim, .Call(ffi_points, point, step, pairs)), point, step)
}

short_step <- function(sim) 1e-3 * sim$spread

# Simulated records give a derivative best over a distance at which they differ clearly, which few of them tell.
pilot_step <- function(sim, point) {
  rough <- slopes_over(replace(sim, "pilot_records", pilot_records), point, 0.05 * sim$spread)$slopes
  if (!is.null(rough)) max(0.5, sqrt(point_size(sim, point)) / 40) / sqrt(colSums(rough^2) + 1 / sim$spread^2)
}

# Second derivatives of the covariance count where it is not too many numbers; of two coordinates, where these are not too many.
most_curved <- c(coordinates = 8L, numbers = 60L)

# What T is made of at a point: `along`, directions of the null hypothesis; `tested` and `nuisance` directions of r; `estimate`, from r to where z suggests the
# nuisance parameters are; the derivatives of the variances in these directions along the null hypothesis, and `bend`, the second ones of the mean, with the null
# hypothesis's own. `at`: of point_slopes(). NULL where there are no moments.
score_at <- function(sim, null, point, at = point_slopes(sim, point)) {
  if (is.null(at$slopes)) return(NULL)
  smooth <- !is.null(sim$known_moments)
  gaps <- null_gap(sim, null, .Call(ffi_points, point, short_step(sim), smooth))
  c(at, signed = null$side != 0, .Call(ffi_score_at, at, gaps, short_step(sim), sim$spread, null$side, smooth, most_curved))
}

# T, and the squared length in the nuisance directions, for rows of z. The latter is near a likelihood ratio: in a direction whose variance changes to 1 + own from
# theta to where z suggests the parameters are, the likelihood ratio of an sd is the square over (1 + own / 2)^(2/3) up to the third order, and of a count nearly.
# Without it single replicates are far away by chance, and the region has to hold what the release excludes.
score_values <- function(at, z) .Call(ffi_score_values, at, z, at$signed)

observed_score <- function(sim, at) score_values(at, matrix(sim$value, 1L))

# The rank of an observed number among simulated ones: itself is one of them.
rank_p <- function(observed, simulated) (1 + sum(simulated >= observed - 1e-10 * abs(observed))) / (length(simulated) + 1)

# p(theta). A list: `p`, which is 0 outside the confidence region of the nuisance parameters; `margin`: if the observed T were
# larger by this much, on the scale of signed roots, p would just reach `enough`.
point_test <- function(sim, at, enough = 1) {
  z <- simulate_values(sim, at$point)
  none <- list(p = 0, margin = -Inf)
  if (is.null(z)) return(none)
  score <- score_values(at, rbind(sim$value, z))
  rank <- function(values) rank_p(values[1L], values[-1L])
  if (ncol(at$nuisance) && rank(score$nuisance) <= region_gamma(sim)) return(none)
  allowed <- ceiling(enough * (sim$replicates + 1) - 1e-9) - 1
  limit <- if (allowed < 1) Inf else -sort.int(-score$tested[-1L], partial = allowed)[allowed]
  list(p = rank(score$tested), margin = signed_root(limit) - signed_root(score$tested[1L]))
}

signed_root <- function(x) sign(x) * sqrt(abs(x))

# Single simulated releases lie far out in the nuisance directions: a region that reaches as far as the farthest would hold what the release excludes. It reaches
# as far as the third where that takes at most 0.003.
region_gamma <- function(sim) max(region_share, min(3, 0.003 * (sim$replicates + 1)) / (sim$replicates + 1), 1 / (sim$replicates + 1))

# ---- the best fit --------------------------------------------------------------------------------------

# Of draws from the prior the one with the least loss, then scoring steps from there; within a null hypothesis, if there is one. With what point_slopes() says of
# it. NULL: no point is in the null hypothesis.
best_fit <- function(sim, null = NULL, start = NULL, steps = 25L) {
  point <- start %||% best_start(sim)
  if (!is.null(null)) point <- move_to_null(sim, null, point)
  if (is.null(point)) return(NULL)
  at <- point_slopes(sim, point)
  for (i in seq_len(steps)) {
    better <- scoring_step(sim, null, at)
    if (is.null(better)) break
    at <- better
  }
  at
}

# of draws from the prior, by the loss without correlations, then by the loss
best_start <- function(sim) {
  starts <- cbind(sim$middle, sim$starts[, seq_len(min(ncol(sim$starts), if (is.null(sim$known_moments)) 60L else 200L)), drop = FALSE])
  moments <- moments_at(sim, starts)
  of_prior <- colSums(((starts - sim$middle) / sim$spread)^2)
  best <- utils::head(order(.Call(ffi_moments_loss, moments, sim$value, FALSE) + of_prior), 10L)
  starts[, best[which.min(.Call(ffi_moments_loss, moments[best], sim$value, TRUE) + of_prior[best])]]
}

# Towards the z that is observed, at the covariance that the point has. NULL where it would gain less than `least_gained`.
scoring_step <- function(sim, null, at) {
  if (is.null(at$slopes)) return(NULL)
  gaps <- if (!is.null(null)) null_gap(sim, null, .Call(ffi_points, at$point, short_step(sim), FALSE))
  move <- .Call(ffi_scoring_step, at, sim$value, c(sim$middle, sim$spread), gaps, short_step(sim), least_gained)
  if (is.null(move)) return(NULL)
  distance <- function(mean, point) sum((at$w %*% (sim$value - mean))^2) + sum(((point - sim$middle) / sim$spread)^2)
  before <- distance(at$mean, at$point)
  for (k in 0:8) {
    next_point <- at$point + move / 2^k
    if (!is.null(null)) next_point <- move_to_null(sim, null, next_point)
    there <- if (!is.null(next_point)) moments_at(sim, cbind(next_point))[[1L]]
    if (!is.null(there) && distance(there$mean, next_point) < before) return(point_slopes(sim, next_point))
  }
  NULL
}

least_gained <- 1e-3

# ---- the largest p-value -------------------------------------------------------------------------------

# A list: `p`, with gamma; `point` where it is; `fitted`, the best fit; `margin`, the largest of point_test(); `informative`, whether the release says anything of
# what is tested. NULL: no point is in the null hypothesis. `enough`: a p-value that is as good as any larger one.
null_p <- function(sim, null, start = NULL, enough = 1) {
  fitted <- best_fit(sim, null, start)
  at <- if (!is.null(fitted)) score_at(sim, null, fitted$point, fitted)
  if (is.null(at)) return(NULL)
  if (ncol(at$tested) == 0L) return(list(p = 1, point = at$point, fitted = at$point, informative = FALSE))
  gamma <- if (ncol(at$along)) region_gamma(sim) else 0
  best <- search_nuisance(sim, null, at, enough - gamma)
  list(p = min(1, best$p + gamma), point = best$point, fitted = at$point, margin = best$margin, informative = TRUE)
}

# From the best fit along the direction in which the observed T falls fastest, in standard errors of the nuisance parameters (where the release says nothing of one,
# in the prior's widths): three of them, and on for as long as p grows; then one step the other way.
search_nuisance <- function(sim, null, at, enough) {
  best <- c(point_test(sim, at, enough), list(point = at$point))
  if (best$p >= enough || ncol(at$along) == 0L) return(best)
  along <- at$along %*% backsolve(chol(at$information), diag(ncol(at$along)))
  visit <- function(point) {
    moved <- move_to_null(sim, null, point)
    if (!is.null(moved)) score_at(sim, null, moved)
  }
  sides <- lapply(seq_len(ncol(along)), function(j) lapply(c(1, -1), function(side) visit(at$point + side * along[, j])))
  slope <- vapply(sides, function(side) score_height(sim, at, side[[2L]]) - score_height(sim, at, side[[1L]]), 0)
  if (!any(abs(slope) > 0)) return(best)
  downhill <- drop(along %*% (slope / sqrt(sum(slope^2))))
  for (distance in c(1, 2, 3, 2^(2:9), -1)) {
    if (best$p >= enough) break
    if (distance > 3 && !grows) next
    seen <- length(slope) == 1L && abs(distance) == 1
    there <- if (seen) sides[[1L]][[if (distance * slope > 0) 1L else 2L]] else visit(at$point + distance * downhill)
    tested <- if (is.null(there)) list(p = 0, margin = -Inf) else point_test(sim, there, enough)
    grows <- tested$p > best$p
    margin <- max(best$margin, tested$margin)
    if (grows) best <- c(tested, list(point = there$point))
    best$margin <- margin
  }
  best
}

# The log of the observed T, or the signed root of a one-sided one: `at` one point, or `there` if that has moments.
score_height <- function(sim, at, there) {
  tested <- observed_score(sim, there %||% at)$tested
  if (at$signed) signed_root(tested) else log(1e-12 + tested)
}
