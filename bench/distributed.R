# Regressions of several owners against the sampler of Alparslan, Yildirim & Birbil (ICML 2023, arXiv 2301.13778, "MCMC-normalX"), written
# after the paper's description, in their setting: J nodes share n = 100,000 records, two normal covariates of mean 0, no intercept; each
# publishes S = X'X and z = X'y with Gaussian noise of one sd, by the analytic mechanism for (epsilon, 1 / n). Both see the same numbers
# under the same priors: theta ~ N(0, 1), sigma^2 ~ inverse gamma (20, 20), Sigma ~ inverse Wishart (4, 1).
#
#   Rscript bench/distributed.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# Balle & Wang (2018): the sd for sensitivity 1
analytic_sd <- function(epsilon, delta) {
  excess <- function(log_sd) {
    sd <- exp(log_sd)
    stats::pnorm(1 / (2 * sd) - epsilon * sd) - exp(epsilon + stats::pnorm(-1 / (2 * sd) - epsilon * sd, log.p = TRUE)) - delta
  }
  exp(stats::uniroot(excess, c(-5, 10), tol = 1e-9)$root)
}

# columns s11, s12, s22, z1, z2, a row each node; |x| at most 5 and |y| at most 10 for the noise
distributed_data <- function(nodes, epsilon, n, seed) {
  set.seed(seed)
  theta <- stats::rnorm(2)
  x <- matrix(stats::rnorm(2 * n), n)
  y <- drop(x %*% theta) + stats::rnorm(n)
  node <- rep_len(seq_len(nodes), n)
  sd <- sqrt(5^4 + 5^2 * 10^2) * analytic_sd(epsilon, 1 / n)
  totals <- rowsum(cbind(x[, 1L]^2, x[, 1L] * x[, 2L], x[, 2L]^2, x * y), node)
  list(theta = theta, sd = sd, n = as.vector(table(node)), released = totals + stats::rnorm(length(totals), 0, sd))
}

# A Metropolis step for each S_j with a Wishart proposal about it, z_j integrated out; Gibbs steps for theta and Sigma; a random walk
# of log sigma^2. The degrees of freedom of the proposals adapt in warmup. All matrices are 2 x 2, so that steps are vectors over nodes.
theirs <- function(data, iter = 10000L, warmup = 2000L) {
  r <- data$released
  nodes <- nrow(r)
  v <- data$sd^2
  n <- data$n
  trace <- function(p, s) p[, 1L] * s[, 1L] + 2 * p[, 2L] * s[, 2L] + p[, 3L] * s[, 3L]
  det <- function(s) s[, 1L] * s[, 3L] - s[, 2L]^2
  inverse <- function(s) cbind(s[, 3L], -s[, 2L], s[, 1L]) / det(s)
  all <- function(row) matrix(row, nodes, 3L, byrow = TRUE)
  s <- cbind(pmax(r[, 1L], n / 4), r[, 2L], pmax(r[, 3L], n / 4))
  bad <- det(s) <= 0.1 * s[, 1L] * s[, 3L]
  s[bad, 2L] <- 0
  theta <- c(0, 0)
  noise <- 1
  sigma <- all(c(1, 0, 1))
  freedom <- n
  step <- 0.5
  # of z_j given S_j, and of S_j's noise
  of_z <- function(s, theta, noise) {
    k <- cbind(noise * s[, 1L] + v, noise * s[, 2L], noise * s[, 3L] + v)
    a <- r[, 4L] - s[, 1L] * theta[1L] - s[, 2L] * theta[2L]
    b <- r[, 5L] - s[, 2L] * theta[1L] - s[, 3L] * theta[2L]
    -log(det(k)) / 2 - trace(inverse(k), cbind(a^2, a * b, b^2)) / 2
  }
  of_s <- function(s, sigma) (n - 3) / 2 * log(det(s)) - trace(inverse(sigma), s) / 2 - rowSums((r[, 1:3, drop = FALSE] - s)^2) / (2 * v)
  proposal <- function(to, from, f) (f - 3) / 2 * log(det(to)) - f / 2 * trace(inverse(from), to) - f / 2 * log(det(from))
  wishart <- function(s, f) {
    l11 <- sqrt(s[, 1L] / f)
    l21 <- s[, 2L] / f / l11
    l22 <- sqrt(pmax(s[, 3L] / f - l21^2, 0))
    a11 <- sqrt(stats::rchisq(nodes, f))
    a21 <- stats::rnorm(nodes)
    a22 <- sqrt(stats::rchisq(nodes, f - 1))
    m11 <- l11 * a11
    m21 <- l21 * a11 + l22 * a21
    cbind(m11^2, m11 * m21, m21^2 + (l22 * a22)^2)
  }
  kept <- matrix(0, iter, 2L)
  for (i in seq_len(iter)) {
    new <- wishart(s, freedom)
    ratio <- of_z(new, theta, noise) - of_z(s, theta, noise) + of_s(new, sigma) - of_s(s, sigma) + proposal(s, new, freedom) - proposal(new, s, freedom)
    took <- log(stats::runif(nodes)) < ratio
    took[is.na(took)] <- FALSE
    s[took, ] <- new[took, ]
    if (i <= warmup) {
      freedom <- pmax(5, freedom * exp((0.3 - pmin(1, exp(pmin(ratio, 0)))) * 5 / sqrt(i)))
      freedom[is.na(freedom)] <- 1e3
    }
    # theta: sum of S_j (noise S_j + v)^-1 S_j
    w <- inverse(cbind(noise * s[, 1L] + v, noise * s[, 2L], noise * s[, 3L] + v))
    sw <- cbind(s[, 1L] * w[, 1L] + s[, 2L] * w[, 2L], s[, 1L] * w[, 2L] + s[, 2L] * w[, 3L], s[, 2L] * w[, 1L] + s[, 3L] * w[, 2L], s[, 2L] * w[, 2L] + s[, 3L] * w[, 3L])
    p <- colSums(cbind(sw[, 1L] * s[, 1L] + sw[, 2L] * s[, 2L], sw[, 1L] * s[, 2L] + sw[, 2L] * s[, 3L], sw[, 3L] * s[, 2L] + sw[, 4L] * s[, 3L]))
    b <- colSums(cbind(sw[, 1L] * r[, 4L] + sw[, 2L] * r[, 5L], sw[, 3L] * r[, 4L] + sw[, 4L] * r[, 5L]))
    root <- chol(matrix(c(p[1L] + 1, p[2L], p[2L], p[3L] + 1), 2L))
    theta <- drop(backsolve(root, backsolve(root, b, transpose = TRUE) + stats::rnorm(2L)))
    proposed <- noise * exp(step * stats::rnorm(1L))
    of_noise <- function(noise) sum(of_z(s, theta, noise)) - 20 * log(noise) - 20 / noise # of its logarithm
    took <- log(stats::runif(1L)) < of_noise(proposed) - of_noise(noise)
    if (took) noise <- proposed
    if (i <= warmup) step <- step * exp((took - 0.4) / sqrt(i))
    total <- colSums(s) + c(1, 0, 1)
    precision <- stats::rWishart(1L, 4 + sum(n), solve(matrix(total[c(1L, 2L, 2L, 3L)], 2L)))[, , 1L]
    sigma <- all(inverse(matrix(precision[c(1L, 2L, 4L)], 1L)))
    kept[i, ] <- theta
  }
  kept[-seq_len(warmup), ]
}

distributed_model <- function() {
  model_lm(prior = prior_normal(0, c(1e-4, 1, 1)), sigma = prior_inverse_gamma(20, 20),
           covariates = list(mean = fixed(c(0, 0)), cov = prior_niw(scale = diag(2), df = 4)))
}

ours <- function(data, seed) {
  bounds <- list(y = c(-50, 50), x1 = c(-50, 50), x2 = c(-50, 50)) # nothing is clamped
  statistic <- stat_subset(stat_crossprod(y ~ x1 + x2, bounds = bounds, rescale = FALSE), c("x1^2", "x1:x2", "x2^2", "y:x1", "y:x2"))
  sites <- lapply(seq_along(data$n), function(j) {
    as_release(stats::setNames(data$released[j, ], c("x1^2", "x1:x2", "x2^2", "y:x1", "y:x2")), statistic, mech_gaussian(sd = data$sd), n = data$n[j])
  })
  names(sites) <- paste0("node", seq_along(sites))
  many <- length(sites) > 1L
  fit <- suppressMessages(suppressWarnings(sample_posterior(if (many) sites else sites[[1L]], distributed_model(), method = "collapse",
                                                            pool = if (many) "complete", chains = 1, iter = 2000, seed = seed)))
  posterior::as_draws_matrix(fit$draws)[, c("x1", "x2")]
}

distributed_row <- function(nodes, epsilon, replicates, n = 1e5) {
  say("J = %d, epsilon = %s", nodes, epsilon)
  told <- vapply(seq_len(replicates), function(seed) {
    data <- distributed_data(nodes, epsilon, n, seed)
    one <- function(draw) {
      time <- seconds(draws <- draw())
      c(error = sum((colMeans(draws) - data$theta)^2), rate = min(apply(draws, 2L, posterior::ess_bulk)) / time, mean = colMeans(draws), sd = mean(apply(draws, 2L, stats::sd)))
    }
    c(one(function() ours(data, seed)), one(function() theirs(data)))
  }, double(10))
  data.frame(J = nodes, epsilon = epsilon, `squared error, ours` = mean(told[1L, ]), theirs = mean(told[6L, ]),
             `means apart, in posterior sd` = mean(sqrt(colMeans((told[3:4, , drop = FALSE] - told[8:9, , drop = FALSE])^2)) / told[5L, ]),
             `ESS/s, ours` = stats::median(told[2L, ]), `ESS/s, theirs` = stats::median(told[7L, ]), check.names = FALSE)
}

bench_distributed <- function(quick) {
  cases <- expand.grid(epsilon = c(0.1, 1, 10), nodes = c(1L, 5L, 10L))
  rows <- do.call(rbind, Map(distributed_row, cases$nodes, cases$epsilon, if (quick) 1L else 3L))
  ratio <- rows[["squared error, ours"]] / rows$theirs
  bench_result(list(figure("squared error of the posterior mean over that of MCMC-normalX", "sums over all cases", sum(ratio) / length(ratio), 1.05, at_most = TRUE),
                    figure("the same", "worst case", max(ratio), NA),
                    figure("least ratio of effective draws a second", "all cases", min(rows[["ESS/s, ours"]] / rows[["ESS/s, theirs"]]), NA)),
               list("n = 100,000, two covariates" = rows),
               c("The baseline is R code, vectorised over nodes; noiseaware's sampler is C. Seconds are whole calls, warmup included.",
                 "The package's intercept has a prior of sd 0.0001, as the baseline has none. Targets are the same posterior up to that."))
}

run_alone(bench_distributed)
