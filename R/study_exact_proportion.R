# One proportion from one noisy count, or from the counts of both levels: the statistic's distribution, computed.
#
# Of K counts (1 or 2) with equal noise let w be the count of the level of interest, plus n less the other one: w = K s + e, where s is Binomial(n, p) and e the sum of
# K independent noises, symmetric. The statistic is that of Feldman & Cousins (1998) for a normal w: T = (w - K n p)^2 - (w - c)^2, c the value nearest to w that
# K s can have. T = (w - K n p)^2 if |w - K n p| is at most the distance b from the middle K n p to the end of the range on that side; beyond, T = b (2 |w - K n p| - b).
# So T is that of w, or larger, beyond a distance u above the middle and l below it, and
#   p-value = sum over s of Binomial(s; n, p) (P(e >= u - K (s - n p)) + P(e >= l + K (s - n p))),
# with ties counted. Counts outside the range, which noise makes, would else make sets up to 4% longer. One-sided, P(w or more) = sum over s of Binomial(s; n, p)
# P(e >= w - K s), and the same of n - s for the other side.
# Cost: the values of s that are not too improbable.

# NULL where it is not such a release, or `names` are not those of what is tested; else `test(probability)`, as null_p(). `side`: of new_null().
exact_proportion <- function(sim, names, side = 0) {
  if (!inherits(sim$bound, "bound_bernoulli") || !identical(names, sim$bound$parameters) || !has_plain_counts(sim)) return(NULL)
  slope <- count_slopes(sim)
  if (is.null(slope)) return(NULL)
  part <- sim$parts[[1L]]
  n <- sim$release$n
  k <- length(slope)
  w <- sum(ifelse(slope > 0, part$value, n - part$value))
  upper <- noise_upper_tail(part$mechanism, part$scale[1L], k)
  test <- function(probability) {
    if (probability < 0 || probability > 1) return(NULL)
    s <- likely_counts(n, probability)
    away <- k * (s - n * probability)
    t <- w - k * n * probability
    ends <- k * n * c(1 - probability, probability)
    distance <- distances_of(square_beyond(abs(t), ends[if (t > 0) 1L else 2L]), ends)
    tail <- if (side != 0) upper(side * (t - away)) else if (abs(t) <= 1e-9) 1 else upper(distance[1L] - away) + upper(distance[2L] + away)
    list(p = min(1, sum(stats::dbinom(s, n, probability) * tail)), informative = TRUE, point = exact_point(sim, probability))
  }
  list(test = test, estimate = min(max(w / (k * n), 0), 1), limits = c(0, 1))
}

# T at a distance from the middle, of which the end of the range is `end` away
square_beyond <- function(distance, end) if (distance <= end) distance^2 else end * (2 * distance - end)

# Distances at which T is `square`, up and down; Inf where T does not reach it.
distances_of <- function(square, ends) ifelse(square <= ends^2, sqrt(square), (square / ends + ends) / 2)

# One or two numbers of a known number of records, with equal noise that can be summed
has_plain_counts <- function(sim) {
  part <- sim$parts[[1L]]
  numbers <- length(part$index)
  !sim$unsized && length(sim$parts) == 1L && part$mechanism$kernel %in% c("absolute", "squared") && all(part$scale == part$scale[1L]) &&
    (numbers == 1L || (numbers == 2L && part$mechanism$name != "discrete_gaussian"))
}

likely_counts <- function(n, probability) {
  seq(stats::qbinom(1e-16, n, probability), stats::qbinom(1e-16, n, probability, lower.tail = FALSE))
}

exact_point <- function(sim, probability) {
  inside <- min(max(probability, 1e-12), 1 - 1e-12)
  bound_theta(sim$bound, stats::setNames(inside, sim$bound$parameters))[sim$bound$unknown]
}

# of each published count how it changes with s: 1 or -1; NULL if one is something else
count_slopes <- function(sim) {
  total <- function(value) {
    x <- matrix(value, 1L, 1L)
    drop(.Call(ffi_stat_eval, sim$specs[[1L]], x))
  }
  if (!identical(sim$specs[[1L]]$column, 0L)) return(NULL)
  none <- total(0)
  one <- total(1)
  if (all((none == 0 & one == 1) | (none == 1 & one == 0))) one - none
}

# P(e >= x), e the sum of k noises. Discrete Laplace noise has P(d) = (1 - q) / (1 + q) q^|d|, q = exp(-1 / scale); the sum of two of them by
# convolution; of two Laplace noises (2 + x / scale) exp(-x / scale) / 4 for x >= 0.
noise_upper_tail <- function(mechanism, scale, k) {
  mirrored <- function(tail) function(x) ifelse(x >= 0, tail(abs(x)), 1 - tail(abs(x)))
  switch(mechanism$name,
    gaussian = function(x) stats::pnorm(x, 0, scale * sqrt(k), lower.tail = FALSE),
    laplace = mirrored(if (k == 1L) function(x) exp(-x / scale) / 2 else function(x) (2 + x / scale) * exp(-x / scale) / 4),
    discrete_gaussian = function(x) 1 - pdiscrete_gaussian(ceiling(x - 1e-9) - 1, 0, scale),
    discrete_laplace = discrete_upper_tail(scale, k))
}

discrete_upper_tail <- function(scale, k) {
  reach <- ceiling(40 * scale) + 1
  p <- ddiscrete_laplace(seq(-reach, reach), 0, scale)
  if (k == 2L) p <- stats::convolve(p, rev(p), type = "open")
  upper <- rev(cumsum(rev(pmax(p, 0))))
  first <- -k * reach
  function(x) {
    at <- ceiling(x - 1e-9) - first + 1
    ifelse(at < 1, 1, c(upper, 0)[pmin(pmax(at, 1), length(upper) + 1)])
  }
}
