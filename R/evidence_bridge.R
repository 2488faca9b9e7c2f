# Bridge sampling (Meng & Wong 1996): the integral of a density that is known up to a constant, from draws of it and
# draws of a normal distribution.

# `draws`: iterations x chains x coordinates, without constraint. `log_density` takes a matrix with a point a row. The first half of every chain
# fits the normal distribution g; of the second half and draws of g the iteration's fixed point is
#   r = mean_g[p / (s1 p + s2 r g)] / mean_p[g / (s1 p + s2 r g)],
# s1 and s2 the shares of effective draws. `error` is the relative one (Fruehwirth-Schnatter 2004), that of the logarithm.
bridge_normal <- function(draws, log_density) {
  half <- floor(dim(draws)[1L] / 2)
  size <- dim(draws)[3L]
  fitted <- matrix(draws[seq_len(half), , ], ncol = size)
  kept <- draws[half + seq_len(half), , , drop = FALSE]
  points <- matrix(kept, ncol = size)
  mean <- colMeans(fitted)
  root <- chol(stats::cov(fitted))
  log_normal <- function(x) {
    away <- backsolve(root, t(x) - mean, transpose = TRUE)
    -colSums(away^2) / 2 - sum(log(diag(root))) - size / 2 * log(2 * pi)
  }
  fresh <- t(mean + crossprod(root, matrix(stats::rnorm(length(points)), size)))
  # log p / g of draws of the density, and of the normal distribution
  own <- log_density(points) - log_normal(points)
  other <- log_density(fresh) - log_normal(fresh)
  bridge_ratio(own, other, chains = dim(kept)[2L])
}

# Below such a share of effective draws the error was found to be up to half of what it should be (bench/evidence.R).
slow <- 0.2

# log ratio of the integrals of p and g, from log p / g at draws of p (chain after chain) and at draws of g, independent ones or `other_chains`
bridge_ratio <- function(own, other, chains, other_chains = NULL, most = 1000L) {
  effective <- function(x, among = chains) min(posterior::ess_mean(matrix(x, ncol = among)), length(x), na.rm = TRUE)
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
  list(value = log_ratio + middle, error = error, note = if (drawn < slow * length(own)) "rough: the chains move slowly, and the error may be larger; take more draws")
}
