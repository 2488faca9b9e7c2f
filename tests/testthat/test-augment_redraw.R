# Shapes of all records drawn again while the clamped totals stay: src/augment_redraw.c.

redraw_bounds <- list(y = c(-1.5, 1.5), x1 = c(-1.2, 1), x2 = c(-0.6, 1.5))
redraw_statistic <- function() stat_crossprod(y ~ x1 + x2, redraw_bounds)
redraw_mean <- c(0, 0.5)

# A third of the records lie beyond a bound.
redraw_model <- function() {
  model_lm(prior = prior_normal(0, 0.7), sigma = fixed(0.8), covariates = prior_niw(mean = redraw_mean, kappa = 4, scale = 6 * diag(2), df = 10))
}

# Draws of theta and of n records from the prior, weighted by what the release says of their totals.
redraw_exact <- function(release, n, size) {
  q <- length(release$value)
  theta <- matrix(stats::rnorm(3 * size, 0, 0.7), size)
  inverse <- stats::rWishart(size, 10, diag(2) / 6)
  det <- inverse[1, 1, ] * inverse[2, 2, ] - inverse[1, 2, ]^2
  cov <- cbind(inverse[2, 2, ], -inverse[1, 2, ], inverse[1, 1, ]) / det
  first <- sqrt(cov[, 1])
  cross <- cov[, 2] / first
  second <- sqrt(cov[, 3] - cross^2)
  pair <- function(scale) {
    a <- stats::rnorm(size)
    cbind(first * a, cross * a + second * stats::rnorm(size)) * scale
  }
  mean <- sweep(pair(0.5), 2, redraw_mean, "+")
  total <- matrix(0, size, q)
  scaled <- function(x, to) (pmin(pmax(x, to[1]), to[2]) - mean(to)) / (diff(to) / 2)
  for (i in seq_len(n)) {
    x <- mean + pair(1)
    y <- theta[, 1] + theta[, 2] * x[, 1] + theta[, 3] * x[, 2] + stats::rnorm(size, 0, 0.8)
    a <- scaled(y, redraw_bounds$y)
    b <- scaled(x[, 1], redraw_bounds$x1)
    d <- scaled(x[, 2], redraw_bounds$x2)
    total <- total + cbind(a, b, d, a^2, a * b, a * d, b^2, b * d, d^2)
  }
  weight <- exp(-rowSums(abs(sweep(total, 2, release$value))) / release$scale)
  list(value = cbind(theta, mean, cov[, c(1, 3)]), weight = weight / sum(weight))
}

# A chain whose sweeps are said to accept little, and steps of these kinds much.
redraw_chain <- function(release, taken, iterations, warmup = 300L) {
  model <- redraw_model()
  bound <- internal("bind_model")(model, redraw_statistic())
  words <- internal("seed_words")()
  problem <- internal("augment_problem")(release, bound, NULL, words, 1)
  state <- internal("start_chain")(problem, bound, words, 1, NULL)
  run <- list(warmup = warmup, thin = 1)
  .Call(internal("ffi_run"), problem, state, .Call(internal("ffi_block"), problem, warmup, 0L), run)
  state$redraw[] <- c(0, taken, 1000)
  state$surrogate[9] <- 0 # the surrogate has bounds
  block <- .Call(internal("ffi_block"), problem, iterations, iterations)
  .Call(internal("ffi_run"), problem, state, block, run)
  draws <- t(block$draws)
  colnames(draws) <- bound$parameters
  draws
}

test_that("it draws from the posterior, whether totals stay or come from the noise", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  n <- 6
  release <- simulate_release(redraw_model(), redraw_statistic(), mech_laplace(scale = 1), n = n)
  exact <- redraw_exact(list(value = release$value, scale = 1), n, 2e5)
  size <- 1 / sum(exact$weight^2)
  expect_gt(size, 200)
  columns <- c(1:6, 8)
  usual <- redraw_chain(release, c(0, 0), 15000L)[, columns] # no new shapes
  for (taken in list(c(1, 0), c(0, 1))) {
    draws <- redraw_chain(release, taken, 15000L)[, columns]
    expect_same_quantiles(draws, usual)
    for (j in seq_along(columns)) {
      order <- order(exact$value[, j])
      at <- exact$value[order, j][which(cumsum(exact$weight[order]) >= 0.5)[1]]
      below <- draws[, j] <= at
      error <- sqrt(posterior::mcse_mean(below + 0)^2 + 0.25 / size)
      expect_lt(abs(mean(below) - 0.5) / error, 5, label = colnames(draws)[j])
    }
  }
})

test_that("records beyond the bounds mix where noise is small", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  known <- list(mean = c(0.9, -1.17), cov = diag(2))
  truth <- model_lm(prior = fixed(c(-1.8, -2.9, -0.7)), sigma = fixed(sqrt(2)), covariates = fixed(known))
  bounds <- list(y = c(-10, 10), x1 = c(-10, 10), x2 = c(-10, 10))
  release <- simulate_release(truth, stat_crossprod(y ~ x1 + x2, bounds), mech_laplace(scale = 0.01), n = 60)
  fit <- suppressWarnings(sample_posterior(release, model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)), covariates = fixed(known)),
                                           method = "augment", chains = 2, iter = 1000, seed = 5))
  expect_lt(max(summary(fit)$rhat), 1.05)
  for (chain in fit$chains) {
    expect_lt(chain$state$redraw[1], 0.5) # sweeps are accepted too seldom,
    expect_gt(chain$state$redraw[2], 0.5) # and new shapes often
  }
})
