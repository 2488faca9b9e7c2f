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

log_laplace <- function(x, scale) -abs(x) / scale - log(2 * scale)

# The sd of Gaussian noise for (epsilon, delta), Balle & Wang (2018), Theorem 8.
analytic_sd <- function(epsilon, delta, sensitivity) {
  excess <- function(sd) {
    stats::pnorm(1 / (2 * sd) - epsilon * sd) - exp(epsilon + stats::pnorm(-1 / (2 * sd) - epsilon * sd, log.p = TRUE)) - delta
  }
  sensitivity * stats::uniroot(excess, c(0.1, 100), tol = 1e-12)$root
}

# sums of two independent counts, from 0 to n; a column each
convolve_counts <- function(a, b) {
  sum <- vapply(seq_along(a), function(m) sum(a[seq_len(m)] * b[m:1]), 0)
  sum / max(sum)
}

# Counts of n records whose shares are Dirichlet, `log_weight` with a row for each of the counts 0 to n and a column for each cell: log of the density of what was
# published of the cell, given its count. A cell's count k has the weight choose(k + alpha - 1, k) beside, and the counts of the others add up to n - k.
exact_counts <- function(log_weight, variables, alpha) {
  n <- nrow(log_weight) - 1
  k <- 0:n
  log_weight <- log_weight + lgamma(k + alpha) - lgamma(k + 1)
  weight <- exp(log_weight - rep(apply(log_weight, 2L, max), each = n + 1))
  do.call(rbind, lapply(seq_along(variables), function(j) {
    others <- Reduce(convolve_counts, lapply(setdiff(seq_along(variables), j), function(i) weight[, i]))
    # given its own count, a share does not depend on the others
    beta_mixture(variables[j], weight[, j] * rev(others), k + alpha, n - k + (length(variables) - 1) * alpha)
  }))
}

# A table whose cells were all published, each with its own noise.
exact_table <- function(release, alpha, log_noise) {
  names <- names(release$value)
  if (!any(grepl(":", names))) names <- sub(".*=", "", names)
  exact_counts(outer(0:release$n, release$value, function(k, z) log_noise(z - k)), sprintf("prob[%s]", names), alpha)
}

# Naive Bayes: given the class's count, the three counts of a feature in the class are independent of all others, and Dirichlet-multinomial.
exact_naive_bayes <- function(release) {
  n <- release$n
  k <- 0:n
  noisy <- array(release$value, c(3, 5, 5)) # level, class, feature
  of_feature <- function(published) {
    levels <- lapply(published, function(z) (k + 1) * exp(log_laplace(z - k, 10)))
    log(Reduce(function(a, b) vapply(seq_along(a), function(m) sum(a[seq_len(m)] * b[m:1]), 0), levels)) + lgamma(k + 1) - lgamma(k + 6)
  }
  log_weight <- vapply(1:5, function(class) rowSums(vapply(1:5, function(feature) of_feature(noisy[, class, feature]), k + 0)), k + 0)
  exact_counts(log_weight, sprintf("prob[y=%d]", 1:5), 2)
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

# Two kinds of persons ("no", "yes") in tracts of counties of states, two of each in each, with normal noise on integers at every level and `concentration` known.
# Messages from the tracts up and back down are functions of an area's two counts, a column for each share of "yes" on a grid; the published numbers have the areas
# in turn, "no" first. Gives the counts of "yes" in the first state, county and tract, and the share of all areas.
exact_geography <- function(release, sd, concentration, variables, grid = 60) {
  n <- release$n
  counts <- expand.grid(no = 0:n, yes = 0:n)
  share <- (seq_len(grid) - 0.5) / grid
  published <- split(release$value, sub(":.*", "", names(release$value))) # counties, states, tracts
  noise <- function(level, area) {
    z <- published[[level]][2 * area - 1:0]
    exp(-((z[1L] - counts$no)^2 + (z[2L] - counts$yes)^2) / (2 * sd[[level]]^2))
  }
  # shares given those of the area above, a row each
  kernel <- function(concentration) {
    density <- outer(share, share, function(above, own) stats::dbeta(own, concentration * above, concentration * (1 - above)))
    density / rowSums(density)
  }
  width <- stats::nextn(2 * n + 2)
  spectrum <- function(message) {
    padded <- matrix(0, width, width)
    padded[seq_len(n + 1), seq_len(n + 1)] <- message
    stats::fft(padded)
  }
  # the sum of two areas' counts; or, by the conjugate, what is left of a sum for one of them
  combine <- function(a, b, use = identity) {
    vapply(seq_len(grid), function(g) {
      product <- Re(stats::fft(spectrum(a[, g]) * use(spectrum(b[, g])), inverse = TRUE))
      as.vector(pmax(product[seq_len(n + 1), seq_len(n + 1)], 0)) / width^2
    }, numeric(nrow(counts)))
  }
  split_evenly <- 1 / (1 + counts$no + counts$yes) # sizes of two parts: all splits have the same probability
  tract <- function(t) {
    noise("tracts", t) * vapply(share, function(s) {
      a <- concentration[3L] * c(s, 1 - s)
      exp(lchoose(counts$no + counts$yes, counts$yes) + lbeta(counts$yes + a[1L], counts$no + a[2L]) - lbeta(a[1L], a[2L]))
    }, numeric(nrow(counts)))
  }
  county <- function(c) noise("counties", c) * split_evenly * combine(tract(2 * c - 1), tract(2 * c))
  state <- function(s) noise("states", s) * split_evenly * combine(county(2 * s - 1) %*% t(within_state), county(2 * s) %*% t(within_state))
  within_state <- kernel(concentration[2L])
  of_all <- kernel(concentration[1L])
  states <- lapply(1:2, state)
  # the second state has the persons whom the first has not
  size <- counts$no + counts$yes
  by_size <- rowsum(states[[2L]] %*% t(of_all), size)[seq_len(n + 1), ]
  above <- by_size[cbind(pmax(n - size, 0) + 1), , drop = FALSE] * (size <= n)
  posterior <- colSums((states[[1L]] %*% t(of_all)) * above)
  above <- above %*% of_all
  yes <- list(rowsum(rowSums(states[[1L]] * above), counts$yes))
  above <- combine(above * noise("states", 1) * split_evenly, county(2) %*% t(within_state), Conj) %*% within_state
  yes[[2L]] <- rowsum(rowSums(county(1) * above), counts$yes)
  above <- combine(above * noise("counties", 1) * split_evenly, tract(2), Conj)
  yes[[3L]] <- rowsum(rowSums(tract(1) * above), counts$yes)
  discrete <- function(variable, at, weight, quantile) {
    weight <- weight / sum(weight)
    mean <- sum(weight * at)
    data.frame(variable, mean, sd = sqrt(sum(weight * (at - mean)^2)), lower = quantile(weight, 0.025), upper = quantile(weight, 0.975))
  }
  whole <- function(weight, p) match(TRUE, cumsum(weight) >= p) - 1
  between <- function(weight, p) stats::approx(cumsum(weight) - weight / 2, share, p)$y
  do.call(rbind, c(Map(discrete, variables[1:3], list(0:n), yes, list(whole)), list(discrete(variables[4L], share, posterior, between)), make.row.names = FALSE))
}

# ---- importance sampling: not exact, but as independent ----------------------------------------------------

# Moments of weighted draws, a column a variable.
weighted_moments <- function(draws, log_weight) {
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  do.call(rbind, lapply(colnames(draws), function(name) {
    x <- draws[, name]
    mean <- sum(weight * x)
    sd <- sqrt(sum(weight * (x - mean)^2))
    order <- order(x)
    at <- x[order][findInterval(c(0.025, 0.975), cumsum(weight[order])) + 1L]
    data.frame(variable = name, mean, sd, lower = at[1L], upper = at[2L], mcse_mean = sqrt(sum(weight^2 * (x - mean)^2)),
               mcse_sd = sqrt(sum(weight^2 * ((x - mean)^2 - sd^2)^2)) / (2 * sd))
  }))
}

# "y", "y:x1" and "y^2" are products of variables
factors_of <- function(name) {
  unlist(lapply(strsplit(name, ":")[[1L]], function(part) rep(sub("\\^2$", "", part), if (endsWith(part, "^2")) 2L else 1L)))
}

# Regressions: parameters from their prior, records given these, and the density of what was published as the weight. `prior(draws)` gives `parameters`, a column
# each, coefficients first; `sigma`; `mean` and `sd`, a column a covariate. Variables are clamped to +- `bounds`, and divided by `unit`.
importance_regression <- function(release, prior, bounds, unit, scale, draws = 4e5) {
  set.seed(1)
  theta <- prior(draws)
  p <- length(bounds) - 1
  totals <- matrix(0, draws, length(release$value), dimnames = list(NULL, names(release$value)))
  for (i in seq_len(release$n)) {
    x <- matrix(theta$mean + theta$sd * stats::rnorm(p * draws), draws)
    y <- theta$parameters[, 1L] + rowSums(theta$parameters[, 1L + seq_len(p), drop = FALSE] * x) + theta$sigma * stats::rnorm(draws)
    record <- Map(function(v, bound, unit) pmin(pmax(v, -bound), bound) / unit, c(list(y), lapply(seq_len(p), function(j) x[, j])), bounds, unit)
    names(record) <- names(bounds)
    for (name in colnames(totals)) totals[, name] <- totals[, name] + Reduce(`*`, record[factors_of(name)])
  }
  weighted_moments(theta$parameters, rowSums(log_laplace(rep(release$value, each = draws) - totals, scale)))
}

prior_ju <- function(draws) {
  list(parameters = matrix(stats::rnorm(3 * draws, 0, 2), draws, dimnames = list(NULL, c("(Intercept)", "x1", "x2"))), sigma = sqrt(2),
       mean = rep(c(0.9, -1.17), each = draws), sd = 1)
}

# sigma^2 ~ inverse gamma (shape, rate), coefficients normal with sd sigma / sqrt(precision); the covariate from `covariate(draws)`
prior_conjugate <- function(draws, shape, rate, precision, covariate) {
  sigma <- 1 / sqrt(stats::rgamma(draws, shape, rate))
  beta <- matrix(stats::rnorm(2 * draws), draws) * sigma / sqrt(precision)
  c(list(parameters = cbind("(Intercept)" = beta[, 1L], x = beta[, 2L], sigma = sigma), sigma = sigma), covariate(draws))
}

prior_bernstein <- function(draws) {
  prior_conjugate(draws, 20, 0.5, 0.5 / 19, function(draws) {
    variance <- 1 / stats::rgamma(draws, 25, 0.5)
    list(mean = sqrt(variance) * stats::rnorm(draws), sd = sqrt(variance))
  })
}

prior_chen <- function(draws) {
  prior_conjugate(draws, 3, 3, 1, function(draws) {
    sd <- 1 / sqrt(stats::rgamma(draws, 1, 0.5))
    list(mean = sd * stats::rnorm(draws), sd = sd)
  })
}

# One normal variable: the mean and the sum of squares about it are independent, so that two random numbers are all the records. The variable is less `centre`, in
# `unit`s.
importance_normal <- function(release, prior, centre, unit, scale, draws = 1e6) {
  set.seed(1)
  n <- release$n
  theta <- prior(draws)
  sd <- theta[, "sd"] / unit
  mean <- (theta[, "mean"] - centre) / unit + sd * stats::rnorm(draws) / sqrt(n)
  squares <- sd^2 * stats::rchisq(draws, n - 1) + n * mean^2
  weighted_moments(theta, log_laplace(release$value[1L] - n * mean, scale) + log_laplace(release$value[2L] - squares, scale))
}

prior_quakes <- function(draws) cbind(mean = stats::rnorm(draws, 350, 200), sd = 1 / sqrt(stats::rgamma(draws, 2, 30000)))

# Logistic regression by objective perturbation (noise of the largest component `scale`, ridge `ridge`), x = 2 beta - 1, and noisy totals of x and its square. The
# parameters are drawn about what a first round with broad proposals gives.
importance_logistic <- function(release, scale, ridge, moment_scale, draws = c(1e5, 4e5), block = 2000) {
  set.seed(1)
  z <- release$value[1:2]
  log_weight <- function(theta) {
    size <- nrow(theta)
    gradient <- hessian <- moments <- 0
    a <- exp(theta[, 4L]) * stats::plogis(theta[, 3L])
    b <- exp(theta[, 4L]) - a
    for (i in seq_len(release$n)) {
      x <- 2 * stats::rbeta(size, a, b) - 1
      y <- stats::runif(size) < stats::plogis(theta[, 1L] + theta[, 2L] * x)
      p <- stats::plogis(z[1L] + z[2L] * x)
      gradient <- gradient + (p - y) * cbind(1, x)
      hessian <- hessian + p * (1 - p) * cbind(1, x, x^2)
      moments <- moments + cbind(x, x^2)
    }
    b <- abs(gradient + ridge * rep(z, each = size))
    -pmax(b[, 1L], b[, 2L]) / scale + log((hessian[, 1L] + ridge) * (hessian[, 3L] + ridge) - hessian[, 2L]^2) +
      rowSums(log_laplace(moments - rep(release$value[3:4], each = size), moment_scale))
  }
  # of coefficients, logit of the share and log of the precision
  log_prior <- function(theta) {
    stats::dnorm(theta[, 1L], 0, 1.5, log = TRUE) + stats::dnorm(theta[, 2L], 0, 3, log = TRUE) + stats::dlogis(theta[, 3L], log = TRUE) +
      stats::dgamma(exp(theta[, 4L]), 1.5, 0.15, log = TRUE) + theta[, 4L]
  }
  round <- function(centre, root, draws) {
    df <- 6
    normal <- matrix(stats::rnorm(4 * draws), 4)
    spread <- stats::rchisq(draws, df) / df
    theta <- t(centre + crossprod(root, normal) / rep(sqrt(spread), each = 4))
    proposal <- -(df + 4) / 2 * log1p(colSums(normal^2) / spread / df)
    blocks <- split(seq_len(draws), (seq_len(draws) - 1) %/% block)
    list(theta = theta, log_weight = unlist(lapply(blocks, function(rows) log_weight(theta[rows, , drop = FALSE])), use.names = FALSE) + log_prior(theta) - proposal)
  }
  first <- round(c(z, 0, 0), diag(c(0.3, 0.5, 0.3, 0.5)), draws[1L])
  weight <- exp(first$log_weight - max(first$log_weight))
  shape <- stats::cov.wt(first$theta, weight / sum(weight))
  last <- round(shape$center, chol(1.3 * shape$cov), draws[2L])
  colnames(last$theta) <- c("(Intercept)", "x", "share", "precision")
  weighted_moments(last$theta[, 1:2], last$log_weight)
}

# Draws about the mode, from a t distribution, of a posterior with few parameters and much information; `log_density` of a vector.
importance_mode <- function(start, log_density, report, draws = 1e5, df = 10) {
  set.seed(1)
  curvature <- function(at, step) -stats::optimHess(at, log_density, control = list(ndeps = step))
  step <- rep(1e-4, length(start))
  for (round in 1:4) {
    step <- 0.1 / sqrt(diag(curvature(start, step)))
    start <- stats::optim(start, function(x) -log_density(x), method = "BFGS", control = list(parscale = 10 * step, reltol = 1e-14, ndeps = rep(1e-3, length(start))))$par
  }
  root <- chol(curvature(start, step))
  normal <- matrix(stats::rnorm(length(start) * draws), length(start))
  spread <- stats::rchisq(draws, df) / df
  at <- start + backsolve(root, normal) / rep(sqrt(spread), each = length(start))
  proposal <- -(df + length(start)) / 2 * log1p(colSums(normal^2) / spread / df)
  weighted_moments(t(apply(at, 2L, report)), apply(at, 2L, log_density) - proposal)
}

# Normal records with normal noise of known variance on the covariates are normal themselves, so that their mean and scatter are all that counts.
# Coefficients normal with sd 20, sigma half normal with scale 5; covariates' covariance inverse Wishart (p + 2, identity), mean normal with 100 times that.
importance_noisy_records <- function(release, noise_sd) {
  n <- release$n
  p <- length(noise_sd)
  variables <- c("y", names(noise_sd))
  mean <- release$value[variables] / n
  product <- function(i, j) release$value[[if (i == j) paste0(i, "^2") else if (paste0(i, ":", j) %in% names(release$value)) paste0(i, ":", j) else paste0(j, ":", i)]]
  scatter <- outer(variables, variables, Vectorize(product)) - n * tcrossprod(mean)
  lower <- lower.tri(diag(p), diag = TRUE)
  split <- function(theta) {
    root <- matrix(0, p, p)
    root[lower] <- theta[2 + 2 * p + seq_len(sum(lower))]
    diag(root) <- exp(diag(root))
    list(beta = theta[seq_len(p + 1)], sigma = exp(theta[p + 2]), mean = theta[p + 2 + seq_len(p)], root = root, cov = tcrossprod(root))
  }
  log_density <- function(theta) {
    s <- split(theta)
    slope <- s$beta[-1L]
    with_y <- s$cov %*% slope
    cov <- rbind(c(sum(slope * with_y) + s$sigma^2, with_y), cbind(with_y, s$cov + diag(noise_sd^2, p)))
    off <- mean - c(s$beta[1L] + sum(slope * s$mean), s$mean)
    precision <- chol2inv(chol(cov))
    log_det <- 2 * sum(log(diag(s$root)))
    -n / 2 * as.numeric(determinant(cov)$modulus) - sum(precision * scatter) / 2 - n / 2 * sum(off * (precision %*% off)) +
      sum(stats::dnorm(s$beta, 0, 20, log = TRUE)) - (s$sigma / 5)^2 / 2 + log(s$sigma) -
      (2 * p + 3) / 2 * log_det - sum(diag(chol2inv(t(s$root)))) / 2 - log_det / 2 - sum(backsolve(s$root, s$mean, upper.tri = FALSE)^2) / 200 +
      sum((p + 2 - seq_len(p)) * log(diag(s$root))) # from the covariance to the root's entries
  }
  x <- scatter[-1L, -1L, drop = FALSE] / n - diag(noise_sd^2, p)
  slope <- solve(x, scatter[-1L, 1L] / n)
  root <- t(chol(x))
  diag(root) <- log(diag(root))
  start <- c(mean[[1L]] - sum(slope * mean[-1L]), slope, log(scatter[1L, 1L] / n - sum(slope * scatter[-1L, 1L] / n)) / 2, mean[-1L], root[lower])
  importance_mode(unname(start), log_density, function(theta) stats::setNames(c(theta[seq_len(p + 1)], exp(theta[p + 2])), c("(Intercept)", names(noise_sd), "sigma")))
}
