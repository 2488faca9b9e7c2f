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

# The nearest point in the null hypothesis, by steps of at most `longest` of the prior's widths; NULL: none was found.
move_to_null <- function(sim, null, point, longest = 3) {
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
    point <- shorten_gap(sim, null, point, move * min(1, longest / far), max(abs(gap) / tolerance))
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
  e <- eigen(cov / tcrossprod(unit), symmetric = TRUE)
  kept <- e$values > 1e-10 * max(e$values)
  list(w = t(e$vectors[, kept, drop = FALSE]) / sqrt(e$values[kept]) / rep(unit, each = sum(kept)),
       log_det = sum(log(e$values[kept])) + 2 * sum(log(unit)))
}

# Moments at a point, and the mean's derivatives in every coordinate; `point` alone where there are none. `sides`: the moments a `step` to each side.
point_slopes <- function(sim, point) {
  smooth <- !is.null(sim$known_moments)
  step <- if (smooth) 1e-3 * sim$spread else pilot_step(sim, point)
  none <- list(point = point)
  found <- if (!is.null(step)) moments_about(sim, point, step)
  if (is.null(found) || !all(is.finite(found[[1L]]$cov))) return(none)
  at <- c(found[[1L]]["mean"], whiten(found[[1L]]$cov))
  c(none, at, list(step = step, here = found[[1L]], sides = found[-1L], slopes = at$w %*% slope_of(found, "mean", step),
                   loss = point_loss(sim, point, at)))
}

# Simulated records give a derivative best over a distance at which they differ clearly, which few of them tell.
pilot_step <- function(sim, point) {
  step <- 0.05 * sim$spread
  found <- moments_about(replace(sim, "pilot_records", pilot_records), point, step)
  if (is.null(found) || !all(is.finite(found[[1L]]$cov))) return(NULL)
  rough <- whiten(found[[1L]]$cov)$w %*% slope_of(found, "mean", step)
  max(0.5, sqrt(point_size(sim, point)) / 40) / sqrt(colSums(rough^2) + 1 / sim$spread^2)
}

# Moments at a point and, for each coordinate, a step up and a step down from it; NULL where one has none.
moments_about <- function(sim, point, step) {
  d <- length(point)
  found <- moments_at(sim, point + cbind(0, diag(step, d), -diag(step, d)))
  if (!any(vapply(found, is.null, TRUE))) found
}

# derivatives of what moments_about() found: a column for each coordinate
slope_of <- function(found, name, step) {
  d <- length(step)
  numbers <- length(found[[1L]][[name]])
  values <- matrix(unlist(lapply(found[-1L], `[[`, name), use.names = FALSE), numbers)
  (values[, seq_len(d), drop = FALSE] - values[, d + seq_len(d), drop = FALSE]) / rep(2 * step, each = numbers)
}

# Second derivatives of the mean, and of the covariance where it is not too many numbers: a column for each pair of coordinates. Those of two coordinates are
# left out where there are many, or where moments end.
curvature_at <- function(sim, at) {
  d <- length(at$point)
  few <- d <= most_curved && length(sim$value) <= most_curved_numbers
  numbers <- function(moments) c(moments$mean, if (few) moments$cov)
  middle <- numbers(at$here)
  sides <- vapply(at$sides, numbers, middle)
  sides <- matrix(sides, length(middle))
  curvature <- matrix(0, length(middle), d^2)
  own <- seq(1L, d^2, by = d + 1L)
  curvature[, own] <- (sides[, seq_len(d)] + sides[, d + seq_len(d)] - 2 * middle) / rep(at$step^2, each = length(middle))
  if (d == 1L || d > most_curved) return(curvature)
  one <- rep(seq_len(d), each = d)
  other <- rep(seq_len(d), d)
  pair <- which(other < one)
  up <- diag(at$step)
  both <- moments_at(sim, at$point + up[, one[pair], drop = FALSE] + up[, other[pair], drop = FALSE])
  for (i in which(!vapply(both, is.null, TRUE))) {
    j <- one[pair[i]]
    k <- other[pair[i]]
    curvature[, c((j - 1L) * d + k, (k - 1L) * d + j)] <- (numbers(both[[i]]) - sides[, j] - sides[, k] + middle) / (at$step[j] * at$step[k])
  }
  curvature
}

most_curved_numbers <- 60L
most_curved <- 8L

# Left singular vectors with singular values above `least`.
directions <- function(x, most = ncol(x), least = 0) {
  if (ncol(x) == 0L) return(matrix(0, nrow(x), 0L))
  if (ncol(x) == 1L) {
    length <- sqrt(sum(x^2))
    return(if (most > 0 && length > max(least, 1e-300)) x / length else matrix(0, nrow(x), 0L))
  }
  s <- svd(x, nv = 0L)
  s$u[, seq_along(s$d) <= most & s$d > max(least, 1e-9 * s$d[1L], 1e-300), drop = FALSE]
}

# What T is made of at a point: `tested` and `nuisance` directions of r; `estimate`, from r to where z suggests the nuisance
# parameters are; by how much the variances in these directions change there. `at`: of point_slopes(). NULL where there are no moments.
score_at <- function(sim, null, point, at = point_slopes(sim, point)) {
  if (is.null(at$slopes)) return(NULL)
  smooth <- !is.null(sim$known_moments)
  at$cov <- slope_of(c(list(at$here), at$sides), "cov", at$step)
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
  if (ncol(along) > 0L && smooth) {
    at$curvature <- curvature_at(sim, at)
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
  second <- (if (ncol(directions) == 1L) matrix(crossprod(weights), 1L) else weights %x% weights) %*% at$curvature[-seq_len(m), , drop = FALSE]
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
  one <- rep(seq_len(m), m)
  other <- rep(seq_len(m), each = m)
  gap <- null_gap(sim, null, point + step * cbind(0, along, along[, one, drop = FALSE] + along[, other, drop = FALSE]))
  moved <- function(column) gap[, 1L + column, drop = FALSE]
  t(moved(m + seq_len(m^2)) - moved(one) - moved(other) + gap[, 1L]) / step^2
}

# Less of the derivatives' length than this is rounding.
least_told <- 1e-7

# Derivatives along the null hypothesis of the covariance of r in these directions, in units of that at theta: a row for each nuisance parameter, a matrix in each.
variance_slopes <- function(at, directions) {
  k <- ncol(directions)
  weights <- crossprod(directions, at$w)
  by_coordinate <- vapply(seq_len(ncol(at$cov)), function(j) as.vector(weights %*% tcrossprod(matrix(at$cov[, j], ncol(weights)), weights)), numeric(k^2))
  crossprod(at$along, t(matrix(by_coordinate, k^2, ncol(at$cov))))
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
variance_ratio <- function(x) {
  ratio <- 1 + pmin(x, 100)
  low <- x <= -0.8
  ratio[low] <- 0.2 * exp(5 * (pmax(x[low], -2) + 0.8))
  ratio
}

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
  limit <- if (allowed < 1) Inf else -sort(-score$tested[-1L], partial = allowed)[allowed]
  list(p = rank(score$tested), margin = signed_root(limit) - signed_root(score$tested[1L]))
}

signed_root <- function(x) sign(x) * sqrt(abs(x))

# Single simulated releases lie far out in the nuisance directions: a region that reaches as far as the farthest would hold what the release excludes. It reaches
# as far as the third where that takes at most 0.003.
region_gamma <- function(sim) max(region_share, min(3, 0.003 * (sim$replicates + 1)) / (sim$replicates + 1), 1 / (sim$replicates + 1))

# ---- the best fit --------------------------------------------------------------------------------------

# Minus twice the log density of a normal distribution of z, and of the prior. `at`: the mean, and whiten() of the covariance
point_loss <- function(sim, point, at) {
  sum((at$w %*% (sim$value - at$mean))^2) + at$log_det + sum(((point - sim$middle) / sim$spread)^2)
}

moments_loss <- function(sim, point, moments) {
  if (is.null(moments) || !all(is.finite(moments$cov))) return(Inf)
  point_loss(sim, point, c(moments["mean"], whiten(moments$cov)))
}

# The point with the least loss among draws from the prior, then by scoring steps; within a null hypothesis, if there is one. With what point_slopes() says of it.
# NULL: no point is in the null hypothesis.
best_fit <- function(sim, null = NULL, start = NULL, steps = 25L) {
  point <- start %||% best_start(sim)
  if (!is.null(null)) point <- move_to_null(sim, null, point)
  if (is.null(point)) return(NULL)
  at <- point_slopes(sim, point)
  for (i in seq_len(steps)) {
    better <- scoring_step(sim, null, at)
    if (is.null(better)) break
    gained <- at$loss - better$loss
    at <- better
    if (gained < least_gained) break
  }
  at
}

# A step that gains less, or that would, is the last.
least_gained <- 1e-3

# of draws from the prior, by the loss without correlations, then by the loss
best_start <- function(sim) {
  starts <- cbind(sim$middle, sim$starts[, seq_len(min(ncol(sim$starts), if (is.null(sim$known_moments)) 60L else 200L)), drop = FALSE])
  moments <- moments_at(sim, starts)
  rough <- vapply(moments, function(m) if (is.null(m)) Inf else rough_loss(sim$value - m$mean, diag(m$cov)), 0) + colSums(((starts - sim$middle) / sim$spread)^2)
  best <- utils::head(order(rough), 10L)
  losses <- vapply(best, function(j) moments_loss(sim, starts[, j], moments[[j]]), 0)
  starts[, best[which.min(losses)]]
}

rough_loss <- function(away, variance) {
  moves <- variance > 0
  sum(away[moves]^2 / variance[moves] + log(variance[moves]))
}

scoring_step <- function(sim, null, at) {
  if (is.null(at$slopes)) return(NULL)
  point <- at$point
  r <- at$w %*% (sim$value - at$mean)
  gradient <- crossprod(at$slopes, r) - (point - sim$middle) / sim$spread^2
  information <- crossprod(at$slopes) + diag(1 / sim$spread^2, length(point))
  along <- diag(length(point))
  if (!is.null(null)) {
    constraint <- qr(t(null_slopes(sim, null, point) * rep(sim$spread, each = length(null$target))))
    along <- sim$spread * qr.Q(constraint, complete = TRUE)[, -seq_len(constraint$rank), drop = FALSE]
  }
  if (ncol(along) == 0L) return(NULL)
  downhill <- crossprod(along, gradient)
  change <- solve(crossprod(along, information %*% along), downhill)
  if (sum(downhill * change) < least_gained) return(NULL)
  move <- drop(along %*% change)
  for (k in 0:8) {
    next_point <- point + move / 2^k
    if (!is.null(null)) next_point <- move_to_null(sim, null, next_point)
    there <- if (!is.null(next_point)) point_slopes(sim, next_point)
    if (isTRUE(there$loss < at$loss)) return(there)
  }
  NULL
}

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
