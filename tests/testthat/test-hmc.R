# Hamiltonian Monte Carlo (src/mcmc/hmc.c) on densities written in R: against NUTS in plain R
# with the same random numbers, against exact distributions, restarts, adaptation.

hmc_start <- function(density, position, unit = rep(1, length(position)), dense = FALSE, words = c(1, 2)) {
  .Call(internal("ffi_hmc_start"), density, as.double(position), as.double(unit), dense, internal("new_stream")(words))
}

hmc_run <- function(density, size, state, iterations, warmup = 0L, from = 0L, dense = FALSE, length = NA_real_) {
  state <- .Call(internal("ffi_hmc_run"), density, as.integer(size), dense, state, as.integer(c(from, iterations, warmup)), length)
  told <- as.data.frame(t(state$told))
  names(told) <- c("accept", "energy", "leapfrogs", "depth", "divergent")
  list(state = state[c("store", "rng")], draws = t(state$draws), told = told)
}

# draws after warmup
hmc_draws <- function(density, position, iterations = 5000L, warmup = 1000L, ...) {
  state <- hmc_start(density, position, ...)
  dots <- list(...)
  run <- hmc_run(density, length(position), state, iterations + warmup, warmup, dense = isTRUE(dots$dense))
  list(draws = run$draws[-seq_len(warmup), , drop = FALSE], told = run$told[-seq_len(warmup), ], state = run$state)
}

padded <- function(size) 4L * ((size + 3L) %/% 4L)

# where the step size and the diagonal metric's factor are in a store
stored_factor <- function(store, size) store[3L * padded(size) + seq_len(size)]
stored_step <- function(store, size) store[5L * padded(size) + 1L]

# ---- densities: log density, then gradient ------------------------------------------------

normal_density <- function(cov) {
  precision <- solve(cov)
  function(q) {
    pull <- drop(precision %*% q)
    c(-0.5 * sum(q * pull), -pull)
  }
}

correlated <- 0.7^abs(outer(1:5, 1:5, "-")) * tcrossprod(c(0.1, 1, 3, 1, 20))

# v ~ N(0, 1), x_i ~ N(0, exp(v))
funnel_density <- function(q) {
  v <- q[1L]
  x <- q[-1L]
  c(-0.5 * v^2 - 0.5 * length(x) * v - 0.5 * exp(-v) * sum(x^2), -v - 0.5 * length(x) + 0.5 * exp(-v) * sum(x^2), -exp(-v) * x)
}

# x ~ N(0, 1), y ~ N(x^2, 0.5^2)
banana_density <- function(q) {
  r <- (q[2L] - q[1L]^2) / 0.25
  c(-0.5 * q[1L]^2 - 0.125 * r^2, -q[1L] + 2 * q[1L] * r, -r)
}

# ---- plain R, the same random numbers ----------------------------------------------------------

stream_of <- function(rng) {
  draw <- function(kind, count = 1L) {
    out <- .Call(internal("ffi_rng_draw"), rng, kind, as.integer(count), 0)
    rng <<- out$state
    out$values
  }
  list(normal = function(count) draw("normal", count), uniform = function() draw("uniform"), state = function() rng)
}

log_sum <- function(a, b) max(a, b) + log(sum(exp(c(a, b) - max(a, b))))

# Position and velocity in natural units, as in Betancourt (2017): covariance M^-1 of q.
plain_nuts <- function(density, q, inverse_metric, step_size, stream) {
  size <- length(q)
  factor <- t(chol(inverse_metric))
  leapfrog <- function(z, step) {
    p <- z$p + step / 2 * density(z$q)[-1L]
    q <- z$q + step * drop(inverse_metric %*% p)
    list(q = q, p = p + step / 2 * density(q)[-1L])
  }
  energy <- function(z) -density(z$q)[1L] + 0.5 * sum(z$p * drop(inverse_metric %*% z$p))
  apart <- function(first, last, sum) {
    sharp <- drop(inverse_metric %*% sum)
    sum(first * sharp) > 0 && sum(last * sharp) > 0
  }
  start <- list(q = q, p = drop(solve(t(factor), stream$normal(size))))
  start_energy <- energy(start)
  told <- list(metropolis = 0, leapfrogs = 0, divergent = FALSE)
  now <- start
  tree <- function(depth, step) {
    if (depth == 0) {
      now <<- leapfrog(now, step)
      gain <- start_energy - energy(now)
      told$leapfrogs <<- told$leapfrogs + 1
      told$metropolis <<- told$metropolis + min(1, exp(gain))
      if (gain < -1000) told$divergent <<- TRUE
      return(list(ok = gain >= -1000, first = now$p, last = now$p, sum = now$p, weight = gain, drawn = c(now, energy = energy(now))))
    }
    a <- tree(depth - 1, step)
    if (!a$ok) return(a)
    b <- tree(depth - 1, step)
    if (!b$ok) return(b)
    weight <- log_sum(a$weight, b$weight)
    drawn <- if (stream$uniform() < exp(b$weight - weight)) b$drawn else a$drawn
    sum <- a$sum + b$sum
    ok <- apart(a$first, b$last, sum) && apart(a$first, b$first, a$sum + b$first) && apart(a$last, b$last, b$sum + a$last)
    list(ok = ok, first = a$first, last = b$last, sum = sum, weight = weight, drawn = drawn)
  }
  ends <- list(start, start) # backward, forward
  drawn <- c(start, energy = start_energy)
  sum <- start$p
  weight <- 0
  depth <- 0
  while (depth < 10) {
    to <- if (stream$uniform() > 0.5) 2L else 1L
    now <- ends[[to]]
    new <- tree(depth, if (to == 2L) step_size else -step_size)
    if (!new$ok) break
    depth <- depth + 1
    if (new$weight > weight || stream$uniform() < exp(new$weight - weight)) drawn <- new$drawn
    weight <- log_sum(weight, new$weight)
    inner <- ends[[to]]
    outer <- ends[[3L - to]]
    whole <- sum + new$sum
    ok <- apart(outer$p, new$last, whole) && apart(outer$p, new$first, sum + new$first) && apart(inner$p, new$last, new$sum + inner$p)
    ends[[to]] <- now
    if (!ok) break
    sum <- whole
  }
  list(q = drawn$q, told = c(told$metropolis / told$leapfrogs, drawn$energy, told$leapfrogs, depth, told$divergent))
}

test_that("a transition is that of NUTS in plain R, step by step", {
  skip_on_cran() # takes long; `make test` runs it
  cases <- list(list(normal_density(correlated), c(0.1, -1, 2, 0, 10), c(0.1, 1, 3, 1, 20)),
                list(funnel_density, c(0.5, 1, -1, 0.2), rep(1, 4)), list(banana_density, c(1, 1), c(1, 0.5)))
  for (case in cases) {
    size <- length(case[[2L]])
    state <- hmc_start(case[[1L]], case[[2L]], case[[3L]])
    step <- stored_step(state$store, size)
    expect_equal(stored_factor(state$store, size), case[[3L]])
    q <- case[[2L]]
    for (k in 1:60) {
      run <- hmc_run(case[[1L]], size, state, 1L)
      want <- plain_nuts(case[[1L]], q, diag(case[[3L]]^2), step, stream_of(state$rng))
      expect_equal(drop(run$draws), want$q, tolerance = 1e-8)
      expect_equal(unlist(run$told, use.names = FALSE), want$told, tolerance = 1e-8)
      state <- run$state
      q <- drop(run$draws)
    }
  }
})

test_that("the same with a dense metric that warmup learned", {
  skip_on_cran() # takes long; `make test` runs it
  density <- normal_density(correlated)
  run <- hmc_draws(density, rep(0, 5), 10L, 300L, dense = TRUE)
  store <- run$state$store
  width <- padded(5L)
  factor <- matrix(store[3L * width + seq_len(5L * width)], ncol = 5L)
  factor <- t(factor[1:5, ])
  expect_identical(factor[upper.tri(factor)], numeric(10))
  # a window of 150 iterations
  expect_lt(max(abs(log(eigen(solve(correlated, tcrossprod(factor)))$values))), 0.8)
  step <- store[3L * width + 2L * 5L * width + 1L]
  state <- run$state
  q <- run$draws[10L, ]
  for (k in 1:30) {
    new <- hmc_run(density, 5L, state, 1L, dense = TRUE)
    want <- plain_nuts(density, q, tcrossprod(factor), step, stream_of(state$rng))
    expect_equal(drop(new$draws), want$q, tolerance = 1e-8)
    expect_equal(unlist(new$told, use.names = FALSE), want$told, tolerance = 1e-8)
    state <- new$state
    q <- drop(new$draws)
  }
})

test_that("a trajectory of given length is reversible, and drawn as in plain R", {
  skip_on_cran() # takes long; `make test` runs it
  density <- banana_density
  state <- hmc_start(density, c(0.5, 0.5))
  step <- stored_step(state$store, 2L)
  q <- c(0.5, 0.5)
  moved <- 0
  for (k in 1:50) {
    run <- hmc_run(density, 2L, state, 1L, length = 1.5)
    draw <- stream_of(state$rng)
    count <- ceiling(1.5 * (0.5 + draw$uniform()) / step)
    steps <- function(z, step) {
      for (i in seq_len(count)) {
        z$p <- z$p + step / 2 * density(z$q)[-1L]
        z$q <- z$q + step * z$p
        z$p <- z$p + step / 2 * density(z$q)[-1L]
      }
      z
    }
    start <- list(q = q, p = draw$normal(2L))
    end <- steps(start, step)
    expect_equal(steps(end, -step), start, tolerance = 1e-9)
    energy <- function(z) -density(z$q)[1L] + 0.5 * sum(z$p^2)
    gain <- energy(start) - energy(end)
    expect_equal(run$told$leapfrogs, count)
    expect_equal(run$told$accept, min(1, exp(gain)), tolerance = 1e-8)
    accepted <- -gain < .Call(internal("ffi_rng_draw"), draw$state(), "exponential", 1L, 0)$values
    moved <- moved + accepted
    expect_equal(drop(run$draws), if (accepted) end$q else q, tolerance = 1e-8)
    q <- drop(run$draws)
    state <- run$state
  }
  expect_gt(moved, 20)
})

# ---- exact distributions --------------------------------------------------------------------------------

test_that("draws have the distribution of the density", {
  skip_on_cran() # takes long; `make test` runs it
  for (dense in c(FALSE, TRUE)) {
    run <- hmc_draws(normal_density(correlated), rep(0, 5), 6000L, dense = dense)
    for (j in 1:5) {
      sd <- sqrt(correlated[j, j])
      expect_distribution(run$draws[, j], function(p) qnorm(p, 0, sd), 0)
      expect_same_mean(run$draws[, j]^2, correlated[j, j])
    }
    expect_same_mean(run$draws[, 2] * run$draws[, 3], correlated[2, 3])
    expect_gt(mean(run$told$accept), 0.7)
    expect_lt(mean(run$told$accept), 0.92)
    expect_identical(sum(run$told$divergent), 0)

    run <- hmc_draws(banana_density, c(0, 0), 6000L, dense = dense, words = c(3, 4))
    expect_distribution(run$draws[, 1], qnorm, 0)
    expect_distribution(run$draws[, 2] - run$draws[, 1]^2, function(p) qnorm(p, 0, 0.5), 0)
  }
  run <- hmc_draws(funnel_density, rep(0.5, 4), 10000L, words = c(5, 6))
  expect_distribution(run$draws[, 1], qnorm, 0)
  expect_distribution(run$draws[, 2] * exp(-run$draws[, 1] / 2), qnorm, 0)
  # trajectories of a given length, not adapted
  density <- normal_density(diag(c(1, 4)))
  state <- hmc_start(density, c(0, 0), c(1, 2))
  run <- hmc_run(density, 2L, state, 6000L, length = 1.5)
  expect_distribution(run$draws[, 1], qnorm, 0)
  expect_distribution(run$draws[, 2], function(p) qnorm(p, 0, 2), 0)
  expect_same_mean(run$draws[, 1] * run$draws[, 2], 0)
})

test_that("a gradient of a smoother function leaves the distribution as it is", {
  skip_on_cran() # takes long; `make test` runs it
  laplace <- function(q) c(-sum(abs(q)), -pmin(pmax(q / 0.5, -1), 1))
  run <- hmc_draws(laplace, c(1, -1, 2), 6000L, words = c(7, 8))
  quantile <- function(p) ifelse(p < 0.5, log(2 * p), -log(2 - 2 * p))
  for (j in 1:3) expect_distribution(run$draws[, j], quantile, 0)
  run <- hmc_run(laplace, 3L, run$state, 8000L, length = 2) # with the step that warmup learned
  for (j in 1:3) expect_distribution(run$draws[, j], quantile, 0)
})

test_that("where there is no density it does not go, and says so", {
  skip_on_cran() # takes long; `make test` runs it
  box <- function(q) if (all(abs(q) < 1)) c(0, 0, 0) else c(-Inf, NA, NaN)
  run <- hmc_draws(box, c(0, 0.5), 6000L, 200L)
  expect_lt(max(abs(run$draws)), 1)
  expect_distribution(run$draws[, 1], function(p) 2 * p - 1, 0)
  expect_gt(mean(run$told$divergent), 0.01)
  # Neal's funnel of 10 dimensions: its neck is too narrow for the step
  neal <- function(q) {
    v <- 3 * q[1L]
    out <- funnel_density(c(v, q[-1L]))
    out[1L] <- out[1L] + 0.5 * v^2 - 0.5 * q[1L]^2
    out[2L] <- 3 * (out[2L] + v) - q[1L]
    out
  }
  expect_gt(sum(hmc_draws(neal, rep(0, 10), 1200L)$told$divergent), 0)
})

test_that("a tree's figures belong together", {
  run <- hmc_draws(normal_density(correlated), rep(0, 5), 1000L, 500L)
  told <- run$told
  expect_true(all(told$accept > 0 & told$accept <= 1))
  expect_true(all(told$depth >= 1 & told$depth <= 10))
  expect_true(all(told$leapfrogs >= 2^told$depth - 1 & told$leapfrogs <= 2^(told$depth + 1) - 1))
  expect_same_mean(told$energy, 5) # 5 coordinates and 5 momenta
  # too small a step: the tree stops at its greatest depth
  state <- hmc_start(normal_density(diag(1)), 0)
  state$store[5L * padded(1L) + 1L] <- 1e-5
  run <- hmc_run(normal_density(diag(1)), 1L, state, 3L)
  expect_identical(run$told$depth, rep(10, 3))
  expect_identical(run$told$leapfrogs, rep(1023, 3))
})

# ---- adaptation, restarts ------------------------------------------------------------------------

test_that("warmup learns the scales, whatever its length, and then stops", {
  skip_on_cran() # takes long; `make test` runs it
  sd <- c(1e-3, 1, 500)
  unit <- c(1e-2, 1, 100)
  density <- normal_density(diag(sd^2))
  last_window <- list(`100` = 16:90, `200` = 101:150, `1000` = 451:950)
  for (warmup in c(100L, 200L, 1000L)) {
    run <- hmc_run(density, 3L, hmc_start(density, sd, unit), warmup + 10L, warmup)
    scales <- function(run) c(stored_factor(run$state$store, 3L), stored_step(run$state$store, 3L))
    seen <- run$draws[last_window[[as.character(warmup)]], ]
    n <- nrow(seen)
    expect_equal(scales(run)[1:3], sqrt((n * apply(seen, 2, var) + 5e-3 * unit^2) / (n + 5)))
    if (warmup == 1000L) expect_lt(max(abs(log(scales(run)[1:3] / sd))), 0.2)
    # the mean length of trajectories since then is kept
    after <- (max(last_window[[as.character(warmup)]]) + 1):warmup
    expect_equal(run$state$store[length(run$state$store) - 1], length(after))
    expect_gt(run$state$store[length(run$state$store)], 1)
    expect_lt(run$state$store[length(run$state$store)], 20)
    more <- hmc_run(density, 3L, run$state, 10L, warmup, from = warmup + 10L)
    expect_identical(scales(more), scales(run))
  }
  # without warmup nothing is learned
  state <- hmc_start(density, sd)
  run <- hmc_run(density, 3L, state, 5L)
  expect_identical(run$state$store[-seq_len(4L)], state$store[-seq_len(4L)])
})

test_that("a chain cut in two is the same chain", {
  for (dense in c(FALSE, TRUE)) {
    for (length in c(NA, 1.5)) {
      run <- function(state, iterations, from) hmc_run(banana_density, 2L, state, iterations, 200L, from, dense, length)
      state <- hmc_start(banana_density, c(0, 0), dense = dense)
      whole <- run(state, 300L, 0L)
      for (at in c(1L, 60L, 99L, 150L, 200L, 250L)) {
        first <- run(state, at, 0L)
        second <- run(first$state, 300L - at, at)
        expect_identical(rbind(first$draws, second$draws), whole$draws)
        expect_identical(second$state, whole$state)
      }
    }
  }
})

test_that("a gradient that overflows does no harm to the steps after it", {
  # flat about 0, so that the step size grows until a step leaves the finite numbers
  cliff <- function(q) if (max(abs(q)) < 10) c(0, 0, 0) else c(-Inf, Inf, -Inf)
  for (dense in c(FALSE, TRUE)) {
    state <- hmc_start(cliff, c(0, 0), dense = dense)
    run <- hmc_run(cliff, 2, state, 200L, 150L, dense = dense)
    expect_true(all(is.finite(run$state$store)))
    expect_gt(stats::sd(run$draws[, 1]), 0.1)
  }
})
