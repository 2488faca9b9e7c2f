# Bridge sampling (Meng & Wong 1996): the integral of a density that is known up to a constant, from draws of it and
# draws of a mixture of normal distributions.

# `draws`: iterations x chains x coordinates, without constraint. `log_density` takes a matrix with a point a row. The first half of every chain
# fits the mixture g; of the second half and draws of g the iteration's fixed point is
#   r = mean_g[p / (s1 p + s2 r g)] / mean_p[g / (s1 p + s2 r g)],
# s1 and s2 the shares of effective draws. `error` is the relative error (Fruehwirth-Schnatter 2004), which is the error of the logarithm. Draws of g are
# independent, so that the better g fits, the less slow chains matter; their error is that of what g leaves out.
bridge_mixture <- function(draws, log_density) {
  half <- floor(dim(draws)[1L] / 2)
  size <- dim(draws)[3L]
  kept <- draws[half + seq_len(half), , , drop = FALSE]
  points <- matrix(kept, ncol = size)
  parts <- fit_normals(matrix(draws[seq_len(half), , ], ncol = size))
  fresh <- draw_normals(parts, nrow(points))
  # log p / g of draws of the density, and of the mixture
  own <- log_density(points) - log_normals(parts, points)
  other <- log_density(fresh) - log_normals(parts, fresh)
  bridge_ratio(own, other, chains = dim(kept)[2L])
}

# ---- mixtures of normal distributions --------------------------------------------------------

# The EM algorithm, from shells of the points about their mean: of a posterior with heavy tails these are its middle and its tails. Each part's
# covariance has `few` more points of a covariance that is narrower than that of all, and its mean one at theirs, so that none collapses.
fit_normals <- function(points, most = 4L, steps = 30L) {
  few <- ncol(points) + 2
  parts <- max(1L, min(most, nrow(points) %/% (20 * few)))
  whole <- stats::cov(points)
  centre <- colMeans(points)
  away <- colSums(backsolve(chol(whole), t(points) - centre, transpose = TRUE)^2)
  share <- outer(ceiling(parts * rank(away, ties.method = "first") / length(away)), seq_len(parts), `==`) + 0
  for (step in seq_len(steps)) {
    fitted <- lapply(seq_len(parts), function(k) {
      count <- sum(share[, k])
      mean <- (colSums(share[, k] * points) + centre) / (count + 1)
      cov <- (crossprod(sqrt(share[, k]) * (points - rep(mean, each = nrow(points)))) + few * whole / 10) / (count + few)
      list(mean = mean, root = chol(cov), weight = (count + few) / (nrow(points) + parts * few))
    })
    if (parts == 1L) break
    each <- log_each_normal(fitted, points)
    share <- exp(each - log_row_sums(each))
  }
  fitted
}

# log of weight and density, a column a part
log_each_normal <- function(parts, points) {
  matrix(vapply(parts, function(part) {
    away <- backsolve(part$root, t(points) - part$mean, transpose = TRUE)
    log(part$weight) - colSums(away^2) / 2 - sum(log(diag(part$root))) - length(part$mean) / 2 * log(2 * pi)
  }, double(nrow(points))), nrow(points))
}

log_normals <- function(parts, points) log_row_sums(log_each_normal(parts, points))

log_row_sums <- function(x) {
  most <- x[cbind(seq_len(nrow(x)), max.col(x, "first"))]
  most + log(rowSums(exp(x - most)))
}

draw_normals <- function(parts, count) {
  size <- length(parts[[1L]]$mean)
  of <- sample.int(length(parts), count, TRUE, vapply(parts, `[[`, 0, "weight"))
  points <- matrix(stats::rnorm(count * size), count)
  for (k in unique(of)) points[of == k, ] <- points[of == k, , drop = FALSE] %*% parts[[k]]$root + rep(parts[[k]]$mean, each = sum(of == k))
  points
}

# ---- the ratio -------------------------------------------------------------------------------

# Below such a share of effective draws the error, then of a bridge to one normal distribution, was found to be half of what it should be (bench/evidence.R).
slow <- 0.2

# log ratio of the integrals of p and g, from log p / g at draws of p (chain after chain) and at draws of g, independent ones or `other_chains`
bridge_ratio <- function(own, other, chains, other_chains = NULL, most = 1000L) {
  effective <- function(x, among = chains) min(without_capping(posterior::ess_mean(matrix(x, ncol = among))), length(x), na.rm = TRUE)
  independent <- function(x) if (is.null(other_chains)) length(x) else effective(x, other_chains)
  middle <- stats::median(own)
  own <- own - middle
  other <- other - middle
  drawn <- effective(own)
  share <- drawn / (drawn + independent(other))
  log_ratio <- 0
  for (k in seq_len(most)) {
    # p / (s1 p + s2 r g), and g / (s1 p + s2 r g)
    above <- 1 / (share + (1 - share) * exp(log_ratio - other))
    below <- 1 / (share * exp(own) + (1 - share) * exp(log_ratio))
    last <- log_ratio
    log_ratio <- log(mean(above)) - log(mean(below))
    if (!is.finite(log_ratio) || abs(log_ratio - last) < 1e-10) break
  }
  error <- sqrt(stats::var(above) / mean(above)^2 / independent(above) + stats::var(below) / mean(below)^2 / min(effective(below), drawn))
  list(value = log_ratio + middle, error = error, note = if (drawn < slow * length(own)) "rough: the chains move slowly, and the error may be larger; use more draws")
}
