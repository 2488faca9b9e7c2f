# How far method "clt" is from the exact posterior: Bernoulli records, Laplace
# noise on both counts, epsilon = 1. Total variation distance over 40 bins of
# equal exact probability; a million draws leave an error of about 0.003. Prints
# the table of ?method_clt.
library(noiseaware)

exact_quantile <- function(z, scale, n, points = 4000) {
  p <- (seq_len(points) - 0.5) / points
  s <- 0:n
  noise <- -(abs(z[1] - (n - s)) + abs(z[2] - s)) / scale
  keep <- noise > max(noise) - 40
  density <- vapply(p, function(q) sum(stats::dbinom(s[keep], n, q) * exp(noise[keep] - max(noise))), 0)
  cumulative <- c(0, cumsum(density) / sum(density))
  function(u) stats::approx(cumulative, c(0, p + 0.5 / points), u, ties = "ordered")$y
}

distance <- function(n, share, control) {
  statistic <- stat_counts(~ x, levels = list(x = c("no", "yes")))
  release <- as_release(c(n - round(n * share), round(n * share)), statistic, mech_laplace(epsilon = 1), n)
  fit <- sample_posterior(release, model_bernoulli(), method = "clt", chains = 1, iter = 1005000, warmup = 5000, seed = 1, control = control)
  quantile <- exact_quantile(release$value, release$scale[[1]], n)
  counts <- table(cut(as.numeric(fit$draws), c(-Inf, quantile(1:39 / 40), Inf)))
  sum(abs(counts / sum(counts) - 1 / 40)) / 2
}

cases <- expand.grid(n = c(10, 100, 1000, 10000), share = c(0.5, 0.03))
samplers <- list(default = list(), `normal distribution alone` = list(conjugate = FALSE), Gibbs = list(sampler = "gibbs"))
for (name in names(samplers)) cases[[name]] <- round(mapply(distance, cases$n, cases$share, MoreArgs = list(control = samplers[[name]])), 3)
print(cases)
