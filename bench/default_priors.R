# How often do 95% intervals of a mean hold it where a noisy sum alone was published, of data whose standard deviation is 0.05 to 0.4 of the bounds' width? The prior of
# the standard deviation then decides how wide they are. Sums of 100 normal records, clamped, with Laplace noise (epsilon = 1); means are uniform between a fifth and four
# fifths of the width. By quadrature over mean, log sd and the sum, a sum of clamped records taken to be normal; and by a few fits.
#
#   Rscript bench/default_priors.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

prior_sds <- c(0.05, 0.1, 0.2, 0.29, 0.4)
prior_means <- seq(-4, 5, 0.005)
prior_log_sds <- seq(log(0.004), log(8), length.out = 140)
prior_sums <- seq(-8, 108, 2)

# mean and variance of a normal variable that is clamped to 0..1
clamped_moments <- function(mean, sd) {
  low <- -mean / sd
  high <- (1 - mean) / sd
  above <- stats::pnorm(high, lower.tail = FALSE)
  inside <- 1 - stats::pnorm(low) - above
  first <- mean * inside + sd * (stats::dnorm(low) - stats::dnorm(high)) + above
  second <- (mean^2 + sd^2) * inside + 2 * mean * sd * (stats::dnorm(low) - stats::dnorm(high)) +
    sd^2 * (low * stats::dnorm(low) - high * stats::dnorm(high)) + above
  list(mean = first, variance = pmax(second - first^2, 1e-12))
}

# of a sum with Laplace noise of scale 1
sum_density <- function(sum, of, n = 100) {
  variance <- n * of$variance
  sd <- sqrt(variance)
  z <- sum - n * of$mean
  (exp(variance / 2 - z + stats::pnorm(z / sd - sd, log.p = TRUE)) + exp(variance / 2 + z + stats::pnorm(-z / sd - sd, log.p = TRUE))) / 2
}

prior_coverage <- function(prior, likelihood, grid) {
  sd <- exp(grid$log_sd)
  spread <- if (prior$nig) sd / sqrt(prior$precision) else 1 / sqrt(prior$precision)
  log_prior <- stats::dnorm(grid$mean, 0.5, spread, log = TRUE) - 2 * prior$shape * grid$log_sd - prior$rate / sd^2
  weight <- exp(log_prior - max(log_prior))
  ends <- apply(likelihood, 2L, function(l) {
    below <- cumsum(rowSums(matrix(l * weight, length(prior_means))))
    stats::approx(below / below[length(below)], prior_means, c(0.025, 0.975), ties = "ordered")$y
  })
  fine <- seq(-8, 108, 0.25)
  low <- stats::approx(prior_sums, ends[1L, ], fine)$y
  high <- stats::approx(prior_sums, ends[2L, ], fine)$y
  vapply(prior_sds, function(sd) {
    told <- vapply(seq(0.2, 0.8, 0.025), function(mean) {
      density <- sum_density(fine, clamped_moments(mean, sd))
      c(sum(density * (low <= mean & mean <= high)), sum(density * (high - low))) / sum(density)
    }, numeric(2L))
    rowMeans(told)
  }, numeric(2L))
}

default_normal_prior <- function() {
  fields <- noiseaware:::bind_model(model_normal(), stat_sums(~x, list(x = c(0, 1))))$spec$fields
  list(nig = fields$nig == 1, shape = fields$shape, rate = fields$rate, precision = fields$prior_precision)
}

prior_candidates <- function() {
  list(default = default_normal_prior(),
       `shape 2, w / 8, mean within 2 sd (the default before)` = list(nig = TRUE, shape = 2, rate = 1 / 64, precision = 1 / 4),
       `shape 1, w / 8` = list(nig = TRUE, shape = 1, rate = 1 / 64, precision = 1 / 16),
       `shape 1, w / 7` = list(nig = TRUE, shape = 1, rate = 1 / 49, precision = 1 / 16),
       `shape 1, w / 6` = list(nig = TRUE, shape = 1, rate = 1 / 36, precision = 1 / 16),
       `shape 3/4, w / 8` = list(nig = TRUE, shape = 3 / 4, rate = 1 / 64, precision = 1 / 16),
       `shape 1, w / 8, mean independent, N(c, (w / 2)^2)` = list(nig = FALSE, shape = 1, rate = 1 / 64, precision = 4))
}

prior_row <- function(name, prior, likelihood, grid) {
  told <- prior_coverage(prior, likelihood, grid)
  ends <- sqrt(prior$rate / stats::qgamma(c(0.95, 0.05), prior$shape))
  coverage <- stats::setNames(as.list(told[1L, ]), paste("sd", prior_sds))
  data.frame(prior = name, `sd from` = ends[1L], `sd to` = ends[2L], coverage, mean = mean(told[1L, ]), `width at 0.2` = told[2L, 3L], check.names = FALSE)
}

# the same by fits with the default prior
fitted_coverage <- function(sd, releases) {
  mean(vapply(seq_len(releases), function(k) {
    set.seed(k)
    mean <- stats::runif(1L, 0.2, 0.8)
    release <- simulate_release(data.frame(x = stats::rnorm(100, mean, sd)), stat_sums(~x, list(x = c(0, 1))), mech_laplace(scale = 2)) # on -1..1
    fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_normal(), chains = 2, iter = 800, seed = k)))
    ends <- stats::confint(fit)["mean", ]
    ends[[1L]] <= mean && mean <= ends[[2L]]
  }, TRUE))
}

bench_default_priors <- function(quick = FALSE) {
  grid <- expand.grid(mean = prior_means, log_sd = prior_log_sds)
  moments <- clamped_moments(grid$mean, exp(grid$log_sd))
  likelihood <- vapply(prior_sums, sum_density, numeric(nrow(grid)), of = moments)
  candidates <- prior_candidates()
  rows <- do.call(rbind, Map(prior_row, names(candidates), candidates, list(likelihood), list(grid)))
  rownames(rows) <- NULL
  releases <- if (quick) 2 else 40
  fits <- data.frame(sd = prior_sds, releases = releases, coverage = vapply(prior_sds, fitted_coverage, 0, releases = releases))
  bench_result(list(figure("coverage of 95% intervals of a mean by the default prior, a sum alone published", "over five standard deviations", rows$mean[1L], 0.93)),
               list("Coverage by quadrature; w is the bounds' width, which sd is measured in" = rows, "By fits with the default prior" = fits))
}

run_alone(bench_default_priors)
