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
# Cost: simulated releases at one theta, some more for each step of the search, and 2 (d + 1) moments for each, with d (d - 1) / 2 for the second order.

# The region leaves out less than this, as far as so few replicates can say.
region_share <- 1e-3

# ---- null hypotheses -----------------------------------------------------------------------------------

# `f`: of natural values, a column a point, to a matrix with a row for each number that is `target` under the null hypothesis. `side`: 1 or -1 where larger or
# smaller numbers are the alternative, 0 for both.
new_null <- function(f, target, side = 0) list(f = f, target = target, side = side)

null_gap <- function(sim, null, points) {
  gap <- null$f(point_values(sim, points))
  matrix(gap, ncol = NCOL(points)) - null$target
}

# derivatives of the null hypothesis's numbers: numbers x coordinates
null_slopes <- function(sim, null, point) {
  step <- 1e-5 * sim$spread
  d <- length(point)
  gap <- null_gap(sim, null, cbind(point + diag(step, d), point - diag(step, d)))
  (gap[, seq_len(d), drop = FALSE] - gap[, d + seq_len(d), drop = FALSE]) / rep(2 * step, each = nrow(gap))
}

# The nearest point in the null hypothesis, in units of the prior's width; NULL: none was found.
move_to_null <- function(sim, null, point) {
  scale <- sim$spread^2
  tolerance <- 1e-7 * (abs(null$target) + 1e-3)
  for (i in seq_len(60L)) {
    gap <- null_gap(sim, null, point)
    if (!all(is.finite(gap))) return(NULL)
    if (all(abs(gap) <= tolerance)) return(point)
    slopes <- null_slopes(sim, null, point)
    move <- tryCatch(drop(-scale * crossprod(slopes, solve(slopes %*% (scale * t(slopes)), gap))), error = function(e) NULL)
    if (is.null(move) || !all(is.finite(move))) return(NULL)
    far <- max(abs(move) / sim$spread, 1e-300)
    point <- shorten_gap(sim, null, point, move * min(1, 3 / far), max(abs(gap) / tolerance))
    if (is.null(point)) return(NULL)
  }
  NULL
}

# half the step until the gap shrinks
shorten_gap <- function(sim, null, point, move, before) {
  tolerance <- 1e-7 * (abs(null$target) + 1e-3)
  for (k in seq_len(25L)) {
    gap <- null_gap(sim, null, point + move)
    if (all(is.finite(gap)) && max(abs(gap) / tolerance) < before) return(point + move)
    move <- move / 2
  }
  NULL
}

# ---- the statistic -------------------------------------------------------------------------------------

# w with w V w' = 1 and as many rows as V has ranks; log_det of V in these
whiten <- function(cov) {
  sd <- sqrt(pmax(diag(cov), 0))
  unit <- ifelse(sd > 0, sd, 1)
  e <- eigen(cov / outer(unit, unit), symmetric = TRUE)
  kept <- e$values > 1e-10 * max(e$values)
  list(w = t(e$vectors[, kept, drop = FALSE]) / sqrt(e$values[kept]) / rep(unit, each = sum(kept)),
       log_det = sum(log(e$values[kept])) + 2 * sum(log(unit)))
}

# Moments at a point, and their derivatives in every coordinate, those of the covariance if they are wanted; NULL where there are none.
point_slopes <- function(sim, point, wanted = TRUE) {
  here <- point_moments(sim, point)
  if (is.null(here) || !all(is.finite(here$cov))) return(NULL)
  white <- whiten(here$cov)
  smooth <- !is.null(sim$known_moments)
  step <- if (smooth) 1e-3 * sim$spread else 0.05 * sim$spread
  if (!smooth) {
    # Simulated records give a derivative best over a distance at which they differ clearly.
    rough <- slopes_over(sim, point, step, FALSE)
    if (is.null(rough)) return(NULL)
    step <- max(0.5, sqrt(point_size(sim, point)) / 40) / sqrt(colSums((white$w %*% rough$mean)^2) + 1 / sim$spread^2)
  }
  slopes <- slopes_over(sim, point, step, wanted)
  if (is.null(slopes)) return(NULL)
  list(point = point, mean = here$mean, w = white$w, log_det = white$log_det, slopes = white$w %*% slopes$mean, cov = slopes$cov,
       curvature = if (wanted && smooth) curvature_of(stacked(sim, point), sim, point, step, here, slopes))
}

# what has second derivatives: the mean, and the covariance where it is not too many numbers
stacked <- function(sim, point) {
  few <- length(point) <= most_curved && length(sim$value) <= most_curved_numbers
  function(moments) c(moments$mean, if (few) moments$cov)
}

slopes_over <- function(sim, point, step, wanted) {
  sides <- lapply(seq_along(point), function(j) lapply(c(1, -1), function(s) point_moments(sim, replace(point, j, point[j] + s * step[j]))))
  if (any(vapply(sides, function(s) is.null(s[[1L]]) || is.null(s[[2L]]), TRUE))) return(NULL)
  of <- function(name, j) (sides[[j]][[1L]][[name]] - sides[[j]][[2L]][[name]]) / (2 * step[j])
  list(mean = matrix(vapply(seq_along(point), function(j) of("mean", j), numeric(length(sim$value))), ncol = length(point)),
       cov = if (wanted) lapply(seq_along(point), function(j) of("cov", j)), sides = sides)
}

# Second derivatives of what `numbers` takes of moments: a column for each pair of coordinates. Those of two coordinates are left out where there are many, or where
# moments end.
curvature_of <- function(numbers, sim, point, step, here, slopes) {
  d <- length(point)
  middle <- numbers(here)
  side <- function(j, k) numbers(slopes$sides[[j]][[k]])
  mixed <- function(j, k) {
    both <- if (d <= most_curved) point_moments(sim, replace(point, c(j, k), (point + step)[c(j, k)]))
    if (is.null(both)) 0 * middle else (numbers(both) - side(j, 1L) - side(k, 1L) + middle) / (step[j] * step[k])
  }
  curvature <- matrix(0, length(middle), d^2)
  for (j in seq_len(d)) {
    curvature[, (j - 1L) * d + j] <- (side(j, 1L) + side(j, 2L) - 2 * middle) / step[j]^2
    for (k in seq_len(j - 1L)) curvature[, (j - 1L) * d + k] <- curvature[, (k - 1L) * d + j] <- mixed(j, k)
  }
  curvature
}

most_curved_numbers <- 60L
most_curved <- 8L

# Left singular vectors with singular values above `least`.
directions <- function(x, most = ncol(x), least = 0) {
  if (ncol(x) == 0L) return(matrix(0, nrow(x), 0L))
  s <- svd(x, nv = 0L)
  s$u[, seq_along(s$d) <= most & s$d > max(least, 1e-9 * s$d[1L], 1e-300), drop = FALSE]
}

# What T is made of at a point: `tested` and `nuisance` directions of r; `estimate`, from r to where z suggests the nuisance
# parameters are; by how much the variances in these directions change there.
score_at <- function(sim, null, point) {
  at <- point_slopes(sim, point)
  if (is.null(at)) return(NULL)
  scale <- sim$spread
  d <- length(point)
  constraint <- null_slopes(sim, null, point) * rep(scale, each = length(null$target))
  decomposed <- qr(t(constraint))
  along <- scale * qr.Q(decomposed, complete = TRUE)[, -seq_len(decomposed$rank), drop = FALSE]
  nuisance <- at$slopes %*% along
  at$nuisance <- directions(nuisance)
  all <- at$slopes * rep(scale, each = nrow(at$slopes))
  left <- all - at$nuisance %*% crossprod(at$nuisance, all)
  at$tested <- directions(left, decomposed$rank, least_told * sqrt(sum(all^2)))
  information <- crossprod(nuisance) + crossprod(along / scale)
  at$along <- along
  at$information <- information
  at$estimate <- if (ncol(along)) t(solve(information, t(nuisance))) else nuisance
  at$signed <- null$side != 0
  if (at$signed) at$tested <- at$tested * drop(null$side * sign(crossprod(at$tested, left %*% t(constraint))))
  if (ncol(along) > 0L && !is.null(at$curvature)) {
    back <- crossprod(at$tested, all) %*% pseudo_inverse(constraint)
    null_bend <- null_curvature(sim, null, point, along)
    at$bend <- lapply(seq_len(ncol(at$tested)), function(k) tested_bend(at, at$tested[, k]) - matrix(null_bend %*% back[k, ], ncol(along)) / 2)
  }
  at$tested_slopes <- variance_slopes(at, at$tested)
  if (ncol(along) > 0L) at$variance_bend <- variance_bend(at, at$tested)
  at$nuisance_slopes <- variance_slopes(at, at$nuisance)
  at
}

# Second derivatives of a tested direction's mean along the tangent of the null hypothesis, halved. The null hypothesis bends away from its tangent: the way back
# goes along its normal.
tested_bend <- function(at, direction) {
  d <- nrow(at$along)
  crossprod(at$along, matrix(crossprod(direction, at$w %*% at$curvature[seq_along(at$mean), , drop = FALSE]), d) %*% at$along) / 2
}

# The same of the covariance in the tested directions where z suggests that the nuisance parameters are, to second order: the
# variance of a normal mean is taken about the records' mean, not about theta's.
variance_bend <- function(at, directions) {
  m <- length(at$mean)
  if (is.null(at$curvature) || nrow(at$curvature) == m) return(NULL)
  weights <- crossprod(directions, at$w)
  second <- (weights %x% weights) %*% at$curvature[-seq_len(m), , drop = FALSE]
  back <- lapply(seq_len(ncol(at$along)), function(j) tested_bend(at, at$estimate[, j]))
  lapply(seq_len(nrow(second)), function(k) {
    own <- crossprod(at$along, matrix(second[k, ], nrow(at$along)) %*% at$along) / 2
    own - Reduce(`+`, Map(`*`, back, at$tested_slopes[, k]))
  })
}

# numbers of a null hypothesis may repeat each other
pseudo_inverse <- function(x) {
  s <- svd(x)
  kept <- s$d > 1e-9 * s$d[1L]
  s$v[, kept, drop = FALSE] %*% (t(s$u[, kept, drop = FALSE]) / s$d[kept])
}

# Second derivatives of the null hypothesis's numbers along its tangent: a row for each pair of directions, a column for each number.
null_curvature <- function(sim, null, point, along) {
  m <- ncol(along)
  step <- 1e-3
  pairs <- expand.grid(seq_len(m), seq_len(m))
  at <- function(moved) null_gap(sim, null, point + step * moved)
  one <- at(along)
  both <- at(along[, pairs[, 1L], drop = FALSE] + along[, pairs[, 2L], drop = FALSE])
  t(both - one[, pairs[, 1L], drop = FALSE] - one[, pairs[, 2L], drop = FALSE] + drop(null_gap(sim, null, cbind(point)))) / step^2
}

# Less of the derivatives' length than this is rounding.
least_told <- 1e-7

# Derivatives along the null hypothesis of the covariance of r in these directions, in units of that at theta: a row for each nuisance parameter, a matrix in each.
variance_slopes <- function(at, directions) {
  k <- ncol(directions)
  weights <- crossprod(directions, at$w)
  by_coordinate <- lapply(at$cov, function(cov) as.vector(weights %*% tcrossprod(cov, weights)))
  crossprod(at$along, t(matrix(unlist(by_coordinate), k^2, length(at$cov))))
}

# T, and the squared length in the nuisance directions, for rows of z. The latter is near a likelihood ratio: in a direction whose variance changes to 1 + own from
# theta to where z suggests the parameters are, the likelihood ratio of an sd is the square over (1 + own / 2)^(2/3) up to the third order, and of a count nearly.
# Without it single replicates are far away by chance, and the region has to hold what the release excludes.
score_values <- function(at, z) {
  r <- tcrossprod(z - rep(at$mean, each = nrow(z)), at$w)
  away <- r %*% at$estimate
  nuisances <- ncol(at$nuisance)
  own <- away %*% at$nuisance_slopes[, seq(1L, by = nuisances + 1L, length.out = nuisances), drop = FALSE]
  score <- r %*% at$tested
  for (k in seq_along(at$bend)) score[, k] <- score[, k] - rowSums((away %*% at$bend[[k]]) * away)
  change <- away %*% at$tested_slopes
  for (k in seq_along(at$variance_bend)) change[, k] <- change[, k] + rowSums((away %*% at$variance_bend[[k]]) * away)
  length <- own_units(score, change)
  list(tested = if (at$signed) drop(sign(score)) * length else length, nuisance = rowSums((r %*% at$nuisance)^2 / variance_ratio(own / 2)^(2 / 3)))
}

# x' (1 + change)^-1 x, rows of x and of changes of the covariance
own_units <- function(x, change) {
  k <- ncol(x)
  if (k <= 1L) return(rowSums(x^2 / variance_ratio(change)))
  vapply(seq_len(nrow(x)), function(i) {
    e <- eigen(matrix(change[i, ], k), symmetric = TRUE)
    sum(crossprod(e$vectors, x[i, ])^2 / variance_ratio(e$values))
  }, 0)
}

# 1 + x, the variance where it is linear in what the numbers estimate, as that of a normal mean is; a positive number for every x
variance_ratio <- function(x) ifelse(x > -0.8, 1 + pmin(x, 100), 0.2 * exp(5 * (pmax(x, -2) + 0.8)))

observed_score <- function(sim, at) score_values(at, matrix(sim$value, 1L))

# The rank of an observed number among simulated ones: itself is one of them.
rank_p <- function(observed, simulated) (1 + sum(simulated >= observed - 1e-10 * abs(observed))) / (length(simulated) + 1)

# p(theta): of the null hypothesis, 0 outside the confidence region of the nuisance parameters.
point_p <- function(sim, at) {
  z <- simulate_values(sim, at$point)
  if (is.null(z)) return(0)
  simulated <- score_values(at, z)
  observed <- observed_score(sim, at)
  inside <- ncol(at$nuisance) == 0L || rank_p(observed$nuisance, simulated$nuisance) > region_gamma(sim)
  if (inside) rank_p(observed$tested, simulated$tested) else 0
}

region_gamma <- function(sim) max(region_share, 1 / (sim$replicates + 1))

# ---- the best fit --------------------------------------------------------------------------------------

# Minus twice the log density of a normal distribution of z, and of the prior.
point_loss <- function(sim, point, at = NULL) {
  if (is.null(at)) {
    moments <- point_moments(sim, point)
    if (is.null(moments) || !all(is.finite(moments$cov))) return(Inf)
    at <- c(moments["mean"], whiten(moments$cov))
  }
  sum((at$w %*% (sim$value - at$mean))^2) + at$log_det + sum(((point - sim$middle) / sim$spread)^2)
}

# The point with the least loss among draws from the prior, then by scoring steps; within a null hypothesis, if there is one.
fit_point <- function(sim, null = NULL, start = NULL, steps = 25L) {
  point <- start %||% best_start(sim)
  if (!is.null(null)) point <- move_to_null(sim, null, point)
  if (is.null(point)) return(NULL)
  loss <- point_loss(sim, point)
  for (i in seq_len(steps)) {
    better <- scoring_step(sim, null, point, loss)
    if (is.null(better)) break
    gained <- loss - better$loss
    point <- better$point
    loss <- better$loss
    if (gained < 1e-3) break
  }
  point
}

best_start <- function(sim) {
  starts <- cbind(sim$middle, sim$starts[, seq_len(min(ncol(sim$starts), if (is.null(sim$known_moments)) 60L else 200L)), drop = FALSE])
  losses <- apply(starts, 2L, function(point) point_loss(sim, point))
  starts[, which.min(losses)]
}

scoring_step <- function(sim, null, point, loss) {
  at <- point_slopes(sim, point, FALSE)
  if (is.null(at)) return(NULL)
  r <- at$w %*% (sim$value - at$mean)
  gradient <- crossprod(at$slopes, r) - (point - sim$middle) / sim$spread^2
  information <- crossprod(at$slopes) + diag(1 / sim$spread^2, length(point))
  along <- diag(length(point))
  if (!is.null(null)) {
    constraint <- qr(t(null_slopes(sim, null, point) * rep(sim$spread, each = length(null$target))))
    along <- sim$spread * qr.Q(constraint, complete = TRUE)[, -seq_len(constraint$rank), drop = FALSE]
  }
  if (ncol(along) == 0L) return(NULL)
  move <- drop(along %*% solve(crossprod(along, information %*% along), crossprod(along, gradient)))
  for (k in 0:8) {
    next_point <- point + move / 2^k
    if (!is.null(null)) next_point <- move_to_null(sim, null, next_point)
    next_loss <- if (is.null(next_point)) Inf else point_loss(sim, next_point)
    if (is.finite(next_loss) && next_loss < loss) return(list(point = next_point, loss = next_loss))
  }
  NULL
}

# ---- the largest p-value -------------------------------------------------------------------------------

# A list: `p`, with gamma; `point` where it is; `informative`, whether the release says anything of what is tested. NULL: no point is in the null hypothesis.
# `enough`: a p-value that is as good as any larger one.
null_p <- function(sim, null, start = NULL, enough = 1) {
  point <- fit_point(sim, null, start)
  at <- if (!is.null(point)) score_at(sim, null, point)
  if (is.null(at)) return(NULL)
  if (ncol(at$tested) == 0L) return(list(p = 1, point = point, informative = FALSE))
  nuisances <- ncol(at$along)
  gamma <- if (nuisances) region_gamma(sim) else 0
  p <- point_p(sim, at)
  if (nuisances && p + gamma < enough) {
    further <- search_nuisance(sim, null, at, p, enough - gamma)
    p <- further$p
    point <- further$point
  }
  list(p = min(1, p + gamma), point = point, informative = TRUE)
}

# Along the direction in which the observed T falls fastest, in standard errors of the nuisance parameters (where the release says nothing of one, in the prior's
# widths): three of them, and on for as long as p grows; then one step the other way.
search_nuisance <- function(sim, null, at, p, enough) {
  best <- list(p = p, point = at$point)
  along <- at$along %*% backsolve(chol(at$information), diag(ncol(at$along)))
  slope <- score_fall(sim, null, at, along)
  if (!any(abs(slope) > 0)) return(best)
  downhill <- drop(along %*% (slope / sqrt(sum(slope^2))))
  for (distance in c(1, 2, 3, 2^(2:9), -1)) {
    if (best$p >= enough) break
    if (distance > 3 && !grows) next
    point <- move_to_null(sim, null, at$point + distance * downhill)
    there <- if (!is.null(point)) score_at(sim, null, point)
    p <- if (is.null(there)) 0 else point_p(sim, there)
    grows <- p > best$p
    if (grows) best <- list(p = p, point = point)
  }
  best
}

# How fast the log of the observed T, or the signed root of a one-sided one, falls in each direction.
score_fall <- function(sim, null, at, along) {
  here <- observed_score(sim, at)$tested
  height <- function(point) {
    moved <- move_to_null(sim, null, point)
    there <- if (!is.null(moved)) score_at(sim, null, moved)
    tested <- if (is.null(there)) here else observed_score(sim, there)$tested
    if (at$signed) sign(tested) * sqrt(abs(tested)) else log(1e-12 + tested)
  }
  apply(along, 2L, function(step) height(at$point - step) - height(at$point + step))
}
