# Posteriors by sums and integrals that share no code with the package: base R alone.
# Each function takes a release and returns a data frame of variable, mean, sd, lower and upper (2.5 and 97.5 per cent).

# moments and quantiles of a mixture of beta distributions
beta_mixture <- function(variable, weight, a, b) {
  weight <- weight / sum(weight)
  keep <- weight > 1e-14 * max(weight)
  weight <- weight[keep]
  a <- a[keep]
  b <- b[keep]
  mean <- sum(weight * a / (a + b))
  square <- sum(weight * a * (a + 1) / ((a + b) * (a + b + 1)))
  quantile <- function(p) stats::uniroot(function(q) sum(weight * stats::pbeta(q, a, b)) - p, c(0, 1), tol = 1e-10)$root
  data.frame(variable, mean, sd = sqrt(square - mean^2), lower = quantile(0.025), upper = quantile(0.975))
}

# log weights of counts under a Dirichlet prior: their marginal distribution
log_dirichlet_multinomial <- function(counts, alpha) {
  n <- sum(counts[1L, ])
  a <- rep(alpha, each = nrow(counts))
  rowSums(lgamma(counts + a) - lgamma(a) - lgamma(counts + 1)) + lgamma(n + 1) + lgamma(sum(alpha)) - lgamma(n + sum(alpha))
}

log_laplace <- function(x, scale) -abs(x) / scale - log(2 * scale)

exact_binomial <- function(release) {
  k <- 0:1000
  counts <- cbind(1000 - k, k)
  log_weight <- log_dirichlet_multinomial(counts, c(10, 10)) + rowSums(log_laplace(t(release$value - t(counts)), 2 / 0.01))
  beta_mixture("prob[yes]", exp(log_weight - max(log_weight)), k + 10, 1000 - k + 10)
}

exact_multinomial <- function(release) {
  k <- expand.grid(a = 0:1000, b = 0:1000)
  counts <- as.matrix(k[k$a + k$b <= 1000, ])
  counts <- cbind(counts, 1000 - rowSums(counts))
  log_weight <- log_dirichlet_multinomial(counts, rep(5, 3)) + rowSums(log_laplace(t(release$value - t(counts)), 2 / 0.01))
  weight <- exp(log_weight - max(log_weight))
  do.call(rbind, lapply(1:3, function(j) {
    # given its own count, a share does not depend on the others
    own <- rowsum(weight, counts[, j])
    at <- as.numeric(rownames(own))
    beta_mixture(paste0("prob[", c("a", "b", "c")[j], "]"), as.vector(own), at + 5, 1000 - at + 10)
  }))
}

# The density of a noisy total by its characteristic function: a record outside the bounds adds 0.
exact_exponential <- function(release) {
  bounds <- 2 * (c(0.975, 0.025)^(-1 / 8) - 1)
  scale <- bounds[2L] / 0.1
  t <- (seq_len(40000L) - 0.5) * 2e-4 / scale * 100
  turn <- lapply(bounds, function(bound) exp(complex(real = 0, imaginary = t * bound)))
  noise <- exp(complex(real = 0, imaginary = -t * release$value)) / (1 + scale^2 * t^2)
  likelihood <- function(rate) {
    outside <- exp(-rate * bounds)
    record <- 1 - outside[1L] + outside[2L] + rate / complex(real = rate, imaginary = -t) * (outside[1L] * turn[[1L]] - outside[2L] * turn[[2L]])
    max(sum(Re(record^100 * noise)), 0)
  }
  rate <- seq(0.02, 20, by = 0.02)
  density <- stats::dgamma(rate, 8, 2) * vapply(rate, likelihood, 0)
  weight <- density / sum(density)
  mean <- sum(weight * rate)
  below <- cumsum(weight) - weight / 2
  at <- stats::approx(below, rate, c(0.025, 0.975))$y
  data.frame(variable = "rate", mean, sd = sqrt(sum(weight * (rate - mean)^2)), lower = at[1L], upper = at[2L])
}

# All tables of 100 records in four cells. Discrete Laplace noise of epsilon / sensitivity = 0.25.
exact_trial <- function(release) {
  k <- expand.grid(0:100, 0:100, 0:100)
  counts <- as.matrix(k[rowSums(k) <= 100, ])
  counts <- cbind(counts, 100 - rowSums(counts))
  log_weight <- log_dirichlet_multinomial(counts, rep(1, 4)) - 0.25 * rowSums(abs(t(release$value - t(counts))))
  weight <- exp(log_weight - max(log_weight))
  do.call(rbind, lapply(1:4, function(j) {
    own <- rowsum(weight, counts[, j])
    at <- as.numeric(rownames(own))
    beta_mixture(paste0("prob[", names(release$value)[j], "]"), as.vector(own), at + 1, 100 - at + 3)
  }))
}

# All pairs of counts; n has a Poisson prior of mean 100, a record more or less moves one count by 1.
exact_unknown_n <- function(release) {
  k <- expand.grid(no = 0:250, yes = 0:250)
  n <- k$no + k$yes
  log_weight <- stats::dpois(n, 100, log = TRUE) + lchoose(n, k$yes) + lbeta(k$yes + 1, k$no + 1) +
    log_laplace(release$value[1L] - k$no, 1) + log_laplace(release$value[2L] - k$yes, 1)
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  mean <- sum(weight * n)
  cumulative <- cumsum(tapply(weight, n, sum))
  at <- vapply(c(0.025, 0.975), function(p) as.numeric(names(cumulative)[match(TRUE, cumulative >= p)]), 0)
  rbind(beta_mixture("prob[yes]", weight, k$yes + 1, k$no + 1),
        data.frame(variable = "n", mean, sd = sqrt(sum(weight * (n - mean)^2)), lower = at[1L], upper = at[2L]))
}

# ---- importance sampling: not exact, but as independent ----------------------------------------------------

# Coefficients from their prior, records given these, and the density of what was published as the weight. Variables in units of their bounds, and clamped.
importance_regression <- function(release, draws = 4e5) {
  set.seed(1)
  beta <- matrix(stats::rnorm(3 * draws, 0, 2), draws)
  clamp <- function(x) pmin(pmax(x / 10, -1), 1)
  totals <- matrix(0, draws, length(release$value), dimnames = list(NULL, names(release$value)))
  for (i in seq_len(100)) {
    x1 <- stats::rnorm(draws, 0.9)
    x2 <- stats::rnorm(draws, -1.17)
    y <- beta[, 1] + beta[, 2] * x1 + beta[, 3] * x2 + sqrt(2) * stats::rnorm(draws)
    record <- list(y = clamp(y), x1 = clamp(x1), x2 = clamp(x2))
    for (name in colnames(totals)) totals[, name] <- totals[, name] + Reduce(`*`, record[factors_of(name)])
  }
  log_weight <- rowSums(log_laplace(rep(release$value, each = draws) - totals, 13))
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  weighted <- function(j) {
    x <- beta[, j]
    mean <- sum(weight * x)
    sd <- sqrt(sum(weight * (x - mean)^2))
    order <- order(x)
    at <- stats::approx(cumsum(weight[order]), x[order], c(0.025, 0.975))$y
    data.frame(variable = c("(Intercept)", "x1", "x2")[j], mean, sd, lower = at[1L], upper = at[2L], mcse_mean = sqrt(sum(weight^2 * (x - mean)^2)),
               mcse_sd = sqrt(sum(weight^2 * ((x - mean)^2 - sd^2)^2)) / (2 * sd))
  }
  do.call(rbind, lapply(1:3, weighted))
}

# "y", "y:x1" and "y^2" are products of variables
factors_of <- function(name) {
  unlist(lapply(strsplit(name, ":")[[1L]], function(part) rep(sub("\\^2$", "", part), if (endsWith(part, "^2")) 2L else 1L)))
}
