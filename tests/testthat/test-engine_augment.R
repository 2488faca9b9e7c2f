# Method "augment" against exact answers: quadrature, limits, a replay of its
# randomness in plain R, restarts. Each distribution is checked with and without the
# non-centred moves.

normal_location <- function(sd = 2, sigma = 1.5) {
  model_lm(prior = prior_normal(0.5, sd), sigma = fixed(sigma), covariates = fixed(list(mean = 0.3, cov = matrix(1.2))))
}

both_samplers <- function(release, model, iter = 5200, init = NULL) {
  lapply(list(plain = list(passes = 0), interwoven = list()), function(control) {
    sample_posterior(release, model, chains = 2, iter = iter, warmup = 1000, seed = 11, control = control, init = init)
  })
}

# ---- n = 1 and 2, no covariate: quadrature over the records -------------------

location_model <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5))

# p(beta | z) on a grid: p(beta) times the integral over each record
location_quantile <- function(release, n, points = 161) {
  beta <- seq(-9, 10, length.out = 401)
  y <- seq(-9, 10, length.out = points)
  records <- as.matrix(expand.grid(rep(list(y), n)))
  s <- Reduce(`+`, lapply(seq_len(n), function(i) r_components(release$statistic, records[, i, drop = FALSE])))
  noise <- exp(log_noise(release$mechanism$kernel, unname(release$scale), unname(release$value), s))
  likelihood <- vapply(beta, function(b) {
    f <- dnorm(y, b, 1.5)
    if (n == 1) sum(f * noise) else sum(noise * outer(f, f))
  }, 0)
  density <- dnorm(beta, 0.5, 2) * likelihood
  list(quantile = grid_quantile(beta, density), mean = sum(beta * density) / sum(density))
}

for (mechanism in list(mech_laplace(scale = c(0.3, 0.5)), mech_gaussian(sd = c(0.3, 0.5)))) {
  for (n in 1:2) {
    for (rescale in c(TRUE, FALSE)) {
      test_that(paste("location,", format(mechanism), "n =", n, "rescale =", rescale), {
        # bounds that bind: y has sd 1.5 about beta
        st <- stat_crossprod(y ~ 1, bounds = list(y = c(-1, 2)), rescale = rescale)
        rel <- as_release(c(y = 0.6, `y^2` = 1.4), st, mechanism, n)
        exact <- location_quantile(rel, n)
        for (fit in both_samplers(rel, location_model)) {
          expect_distribution(parameter_draws(fit, "(Intercept)"), exact$quantile, exact$mean)
        }
      })
    }
  }
}

# ---- one record, one covariate: two-dimensional quadrature ---------------------

test_that("one record with a covariate, both mechanisms, bounds that bind", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-2, 2), x = c(-1, 1.5)))
  model <- normal_location()
  for (mechanism in list(mech_laplace(scale = 0.4), mech_gaussian(sd = 0.4))) {
    rel <- as_release(c(y = 0.7, x = -0.2, `y^2` = 0.5, `y:x` = -0.3, `x^2` = 0.1), st, mechanism, 1)
    grid <- as.matrix(expand.grid(y = seq(-12, 13, length.out = 301), x = seq(-4.5, 5, length.out = 181)))
    eta <- exp(log_noise(mechanism$kernel, unname(rel$scale), unname(rel$value), r_components(st, grid)))
    # y | x ~ N(0.5 (1 + x), 1.5^2 + 2^2 (1 + x^2)) after the coefficients are
    # integrated out; weights of the records, then moments of beta given them
    variance <- 1.5^2 + 4 * (1 + grid[, "x"]^2)
    weight <- dnorm(grid[, "y"], 0.5 * (1 + grid[, "x"]), sqrt(variance)) * dnorm(grid[, "x"], 0.3, sqrt(1.2)) * eta
    residual <- grid[, "y"] - 0.5 * (1 + grid[, "x"])
    slope <- 0.5 + 4 * grid[, "x"] / variance * residual
    slope_var <- 4 - 16 * grid[, "x"]^2 / variance
    exact_mean <- sum(weight * slope) / sum(weight)
    exact_square <- sum(weight * (slope^2 + slope_var)) / sum(weight)
    at <- 0.9
    exact_below <- sum(weight * pnorm(at, slope, sqrt(slope_var))) / sum(weight)
    for (fit in both_samplers(rel, model)) {
      draws <- parameter_draws(fit, "x")
      expect_same_mean(draws, exact_mean)
      expect_same_mean(draws^2, exact_square)
      expect_same_mean((draws <= at) + 0, exact_below)
    }
  }
})

# ---- two records, everything unknown: prior draws weighted by the noise --------

test_that("two records, all parameters unknown, against weighted prior draws", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-2, 2)))
  model <- model_lm(prior = prior_nig(0, 1, 3, 2), covariates = prior_niw(0, 1, 2, 4))
  rel <- as_release(c(y = 0.9, x = 0.6, `y^2` = 0.7, `y:x` = 0.5, `x^2` = 0.4), st, mech_laplace(scale = 0.3), 2)
  bound <- internal("bind_model")(model, st)
  set.seed(8)
  draws <- 1.5e5
  theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), as.integer(draws))$theta
  nat <- internal("reported")(bound, theta)
  s <- 0
  for (i in 1:2) {
    x <- nat[, "mean[x]"] + sqrt(nat[, "cov[x,x]"]) * rnorm(draws)
    y <- nat[, "(Intercept)"] + nat[, "x"] * x + nat[, "sigma"] * rnorm(draws)
    s <- s + r_components(st, cbind(y, x))
  }
  weight <- exp(log_noise("absolute", unname(rel$scale), unname(rel$value), s))
  for (fit in both_samplers(rel, model)) {
    for (name in bound$parameters) {
      g <- if (grepl("sigma|cov", name)) function(v) log(v) else identity
      exact <- sum(weight * g(nat[, name])) / sum(weight)
      error <- sqrt(sum(weight^2 * (g(nat[, name]) - exact)^2)) / sum(weight)
      got <- g(parameter_draws(fit, name))
      expect_lt(abs(mean(got) - exact) / sqrt(error^2 + posterior::mcse_mean(got)^2), 5)
      below <- (parameter_draws(fit, name) <= median(nat[, name])) + 0
      exact <- sum(weight * (nat[, name] <= median(nat[, name]))) / sum(weight)
      error <- sqrt(sum(weight^2 * ((nat[, name] <= median(nat[, name])) - exact)^2)) / sum(weight)
      expect_lt(abs(mean(below) - exact) / sqrt(error^2 + posterior::mcse_mean(below)^2), 5)
    }
  }
})

# ---- limits ---------------------------------------------------------------------

test_that("without noise and with wide bounds it is the conjugate posterior", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(21)
  data <- data.frame(x = rnorm(3, 0.3, 1.1))
  data$y <- 1 + 0.5 * data$x + rnorm(3, 0, 1.5)
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)), rescale = FALSE)
  total <- internal("statistic_total")(st, data)
  rel <- as_release(total, st, mech_gaussian(sd = 0.05), 3)
  design <- cbind(1, data$x)
  v <- solve(crossprod(design) / 1.5^2 + diag(2) / 4)
  mu <- drop(v %*% (crossprod(design, data$y) / 1.5^2 + 0.5 / 4))
  for (fit in both_samplers(rel, normal_location(), iter = 25000)) {
    for (j in 1:2) {
      draws <- parameter_draws(fit, c("(Intercept)", "x")[j])
      # the noise that is left widens the posterior by a little
      expect_lt(abs(mean(draws) - mu[j]), 0.1 * sqrt(v[j, j]) + 5 * posterior::mcse_mean(draws))
      expect_lt(abs(sd(draws) / sqrt(v[j, j]) - 1), 0.15)
    }
  }
})

test_that("without noise and with bounds that bind it is the posterior of clamped data", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ 1, bounds = list(y = c(-1, 1)), rescale = FALSE)
  # one record, clamped at 1: y >= 1 is all that is known
  rel <- as_release(c(1, 1), st, mech_gaussian(sd = 1e-3), 1)
  beta <- seq(-8, 12, length.out = 4001)
  density <- dnorm(beta, 0.5, 2) * pnorm(1, beta, 1.5, lower.tail = FALSE)
  for (fit in both_samplers(rel, location_model)) {
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density))
  }
})

test_that("with endless noise it is the prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(2)
  model <- model_lm(prior = prior_nig(c(1, 2, -1), 2, 5, 4), covariates = prior_niw(c(0, 1), 2, 3, 7))
  rel <- as_release(rep(0, 9), st, mech_laplace(scale = 1e9), 4)
  bound <- internal("bind_model")(model, st)
  set.seed(3)
  prior <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 40000L)$theta)
  for (fit in both_samplers(rel, model, iter = 4500)) {
    for (name in bound$parameters) {
      expect_distribution(parameter_draws(fit, name), function(p) quantile(prior[, name], p, names = FALSE), errors = 6)
    }
  }
})

# ---- acceptance, running statistics -------------------------------------------------

test_that("no acceptance probability falls below exp(-epsilon)", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-1, 1), x = c(-1, 1)))
  rel <- as_release(c(0.4, 1, 0.8, 0.2, 0.9), st, mech_laplace(epsilon = 3), 6)
  fit <- sample_posterior(rel, model_lm(prior = prior_nig(0, 1, 2, 1), covariates = prior_niw(0, 1, 1, 3)),
                          chains = 2, iter = 14400, warmup = 10, seed = 2)
  a <- acceptance(fit)
  expect_equal(a$bound, rep(exp(-3), 2))
  expect_true(all(a$least >= a$bound * (1 - 1e-9)))
  expect_true(all(a$mean >= a$bound) && all(a$lowest > 0) && all(a$mean < 1))
  # of moves without a sweep: all kinds of them
  kinds <- a[c("walk", "leap")]
  expect_true(all(a$moves >= apply(kinds, 1, min, na.rm = TRUE) & a$moves <= apply(kinds, 1, max, na.rm = TRUE)))
})

test_that("the running statistic equals its recomputation after 10^5 updates", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(2, rescale = FALSE)
  set.seed(4)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 5), n = 103)
  for (passes in list(0, NULL)) {
    fit <- sample_posterior(rel, model_lm(), chains = 1, iter = 1100, warmup = 100, seed = 3, control = list(passes = passes))
    state <- fit$chains[[1]]$state
    x <- matrix(state$x, ncol = 3)[1:103, ]
    weight <- 1 / fit$problem$scale[1:9]
    s <- colSums(r_components(st, x))
    expect_equal(state$residual[1:9], (unname(rel$value) - s) * weight, tolerance = 1e-9)
    last <- as.numeric(posterior::subset_draws(denoise(fit), iteration = 1000))
    expect_equal(last, s, tolerance = 1e-9)
    expect_equal(sum(state$accepted) / (103 * 1000 * acceptance(fit)$rounds), acceptance(fit)$mean)
  }
})

# ---- replay: the chain's randomness in plain R ---------------------------------------

# One stream, drawn from in the C code's order.
replayer <- function(stream) {
  list(draw = function(kind, n, parameter = 0) {
    out <- draw_stream(stream, kind, n, parameter)
    stream <<- out$state
    out$values
  })
}

replay <- function(release, model, words, iterations, passes, block = release$n) {
  bound <- internal("bind_model")(model, release$statistic)
  f <- bound$spec$fields
  st <- release$statistic
  n <- release$n
  k <- length(f$centre)
  pc <- k - 1
  r <- replayer(internal("new_stream")(words, 0L))
  precision <- matrix(f$beta_precision, k)
  beta <- f$beta_mean + backsolve(chol(precision), r$draw("normal", k))
  sigma <- f$sigma
  l <- t(matrix(f$cov_chol, pc))
  records <- function(m, z = matrix(r$draw("normal", m * k), m)) {
    x <- rep(f$mean, each = m) + z[, seq_len(pc), drop = FALSE] %*% t(l)
    cbind(f$centre[1] + beta[1] + sweep(x, 2, f$centre[-1]) %*% beta[-1] + sigma * z[, k], x)
  }
  lanes <- function(m) 4 * ceiling(m / 4)
  each <- lanes(length(release$value)) / 4 # innovations drawn ahead with a record
  blocks <- split(seq_len(n), (seq_len(n) - 1) %/% block)
  energy_of <- function(x) -log_noise(release$mechanism$kernel, unname(release$scale), unname(release$value),
                                      matrix(colSums(r_components(st, x)), 1))
  log_prior <- function(b) -drop(t(b - f$beta_mean) %*% precision %*% (b - f$beta_mean)) / 2
  x <- do.call(rbind, lapply(blocks, function(rows) records(length(rows))))
  energy <- energy_of(x)
  sd <- internal("move_sd")(bound, words, 1)
  out <- matrix(0, iterations, k)
  for (iteration in seq_len(iterations)) {
    for (pass in seq_len(passes)) {
      beta_new <- beta + 2.38 / sqrt(k) * sd * r$draw("normal", k)
      threshold <- r$draw("exponential", 1)
      x_new <- x
      x_new[, 1] <- x[, 1] + cbind(1, sweep(x[, -1, drop = FALSE], 2, f$centre[-1])) %*% (beta_new - beta)
      energy_new <- energy_of(x_new)
      if (log_prior(beta_new) - log_prior(beta) + energy - energy_new > -threshold) {
        beta <- beta_new
        x <- x_new
        energy <- energy_new
      }
    }
    proposal <- records(length(blocks[[1]]))
    for (b in seq_along(blocks)) {
      rows <- blocks[[b]]
      following <- if (b < length(blocks)) length(blocks[[b + 1]]) else 0
      # the next block's, column after column, the columns padded
      needed <- k * lanes(following)
      z <- numeric()
      for (i in seq_along(rows)) {
        x_new <- x
        x_new[rows[i], ] <- proposal[i, ]
        threshold <- r$draw("exponential", 1)
        if (length(z) + each <= needed) z <- c(z, r$draw("normal", each))
        step <- energy_of(x_new) - energy
        if (step <= threshold) {
          x <- x_new
          energy <- energy + step
        }
      }
      z <- c(z, r$draw("normal", needed - length(z)))
      if (following > 0) proposal <- records(following, matrix(z, ncol = k)[seq_len(following), , drop = FALSE])
    }
    centred <- sweep(x, 2, f$centre)
    design <- cbind(1, centred[, -1])
    posterior_precision <- crossprod(design) / sigma^2 + precision
    mean <- solve(posterior_precision, crossprod(design, centred[, 1]) / sigma^2 + precision %*% f$beta_mean)
    beta <- drop(mean + backsolve(chol(posterior_precision), r$draw("normal", k)))
    out[iteration, ] <- beta
  }
  out[, 1] <- out[, 1] + f$centre[1] - out[, -1, drop = FALSE] %*% f$centre[-1]
  out
}

test_that("a plain R sampler replays the chain", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-4, 7), x1 = c(-1, 3), x2 = c(-2, 2)))
  model <- model_lm(prior = prior_normal(c(1, 0.5, 0), c(1, 2, 1)), sigma = fixed(1.3),
                    covariates = fixed(list(mean = c(0.9, -0.2), cov = matrix(c(1, 0.4, 0.4, 2), 2))))
  set.seed(10)
  for (mechanism in list(mech_laplace(scale = 0.7), mech_gaussian(sd = 0.7))) {
    rel <- simulate_release(model, st, mechanism, n = 7)
    for (passes in c(0, 3)) {
      fit <- sample_posterior(rel, model, chains = 1, iter = 15, warmup = 0, seed = 5, control = list(passes = passes))
      expected <- replay(rel, model, fit$words, 15, passes)
      got <- matrix(posterior::as_draws_matrix(fit), 15)
      expect_equal(got, expected, tolerance = 1e-9)
      expect_gt(length(unique(got[, 1])), 12)
    }
    # several blocks, the last one not full: its innovations are drawn ahead
    rel <- simulate_release(model, st, mechanism, n = 270)
    fit <- sample_posterior(rel, model, chains = 1, iter = 2, warmup = 0, seed = 5, control = list(passes = 0))
    expect_equal(matrix(posterior::as_draws_matrix(fit), 2), replay(rel, model, fit$words, 2, 0, block = 128), tolerance = 1e-9)
  }
})

test_that("it replays the chain with few totals and with many", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(12)
  for (p in c(1, 4)) {
    names <- paste0("x", seq_len(p))
    st <- stat_crossprod(stats::reformulate(names, "y"), bounds = stats::setNames(rep(list(c(-2, 3)), p + 1), c("y", names)))
    model <- model_lm(prior = prior_normal(0.5, 1), sigma = fixed(1.3), covariates = fixed(list(mean = rep(0.4, p), cov = diag(p))))
    rel <- simulate_release(model, st, mech_laplace(scale = 0.7), n = 210)
    fit <- sample_posterior(rel, model, chains = 1, iter = 2, warmup = 0, seed = 5, control = list(passes = 0))
    block <- c(192, 76)[match(p, c(1, 4))] # what fits the cache
    expect_equal(matrix(posterior::as_draws_matrix(fit), 2), replay(rel, model, fit$words, 2, 0, block), tolerance = 1e-9)
  }
})

# ---- restart, seeds, workers ------------------------------------------------------------

test_that("1000 iterations and 1000 more are the same bits as 2000", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(1)
  set.seed(6)
  rel <- simulate_release(model_lm(), st, mech_gaussian(mu = 1), n = 50)
  expect_extends(function(iter) sample_posterior(rel, model_lm(), method = "augment", chains = 2, iter = iter, warmup = 200, seed = 7))
})

test_that("seed and set.seed fix the draws and leave the user's generator alone", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(1)
  set.seed(6)
  rel <- simulate_release(model_lm(), st, mech_gaussian(mu = 1), n = 20)
  run <- function(seed = NULL) sample_posterior(rel, model_lm(), chains = 2, iter = 100, seed = seed)$draws
  set.seed(1)
  before <- .Random.seed
  a <- run(3)
  expect_identical(.Random.seed, before)
  expect_identical(run(3), a)
  expect_false(identical(run(4), a))
  set.seed(2)
  b <- run()
  set.seed(2)
  expect_identical(run(), b)
  expect_false(identical(run(), b))
  expect_false(identical(b[, 1, ], b[, 2, ]))
})

test_that("draws do not depend on the number of workers", {
  skip_on_cran()
  st <- lm_problem(1)
  set.seed(6)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 20)
  one <- sample_posterior(rel, model_lm(), chains = 3, iter = 200, seed = 5)
  skip_if_not_installed("future")
  old <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(old))
  two <- sample_posterior(rel, model_lm(), chains = 3, iter = 200, seed = 5)
  expect_identical(two$draws, one$draws)
})

test_that("thinning keeps every second draw", {
  st <- lm_problem(0)
  rel <- as_release(c(1, 2), st, mech_laplace(epsilon = 1), 10)
  model <- model_lm(prior = prior_normal(0, 2), sigma = fixed(1))
  all <- sample_posterior(rel, model, chains = 1, iter = 60, warmup = 20, seed = 5)
  some <- sample_posterior(rel, model, chains = 1, iter = 60, warmup = 20, thin = 2, seed = 5)
  expect_equal(as.numeric(some$draws), as.numeric(all$draws)[seq(2, 40, 2)])
})

test_that("starting values are used", {
  st <- lm_problem(0)
  rel <- as_release(c(1, 2), st, mech_laplace(epsilon = 1), 10)
  model <- model_lm(prior = prior_normal(0, 2), sigma = fixed(1))
  fit <- sample_posterior(rel, model, chains = 2, iter = 2, warmup = 0, seed = 1, control = list(passes = 0),
                          init = list(c("(Intercept)" = 1e6), c("(Intercept)" = -1e6)))
  # the records of the first sweep are still near the starting values
  expect_identical(dim(fit$draws), c(2L, 2L, 1L))
})

# ---- an interrupted run ------------------------------------------------------------------

interrupt_problem <- function() {
  st <- lm_problem(1)
  set.seed(6)
  rel <- simulate_release(model_lm(), st, mech_gaussian(mu = 1), n = 50)
  bound <- internal("bind_model")(model_lm(), st)
  words <- c(1, 2)
  list(release = rel, bound = bound, words = words, problem = internal("augment_problem")(rel, bound, 1, words, 1),
       run = list(chains = 1, iter = 1e6, warmup = 100, thin = 1, seed = NULL))
}

test_that("an interrupt, in R or in C, leaves draws and state that belong together", {
  skip_on_cran()
  skip_on_os("windows")
  p <- interrupt_problem()
  expect_interruptible(p$problem, p$bound, p$words, p$run, 60000)
})

test_that("an interrupted run warns, gives what there is, and can be extended", {
  p <- interrupt_problem()
  run <- internal("run_chains")
  chain <- function(iterations, status) {
    state <- internal("start_chain")(p$problem, p$bound, p$words, 1, NULL)
    out <- internal("run_blocks")(p$problem, state, iterations, p$run, function(...) NULL)
    out$status <- status
    out
  }
  # the second chain is interrupted, the third one not begun
  expect_warning(chains <- run(3, function(k, report) chain(c(400, 250, 400)[k], c(0L, 1L, 0L)[k]), 10),
                 class = "noiseaware_warning_interrupted")
  fit <- internal("fit_from_chains")(chains, p$release, p$bound, p$run, p$problem, p$words)
  expect_identical(dim(fit$draws)[1:2], c(150L, 2L))
  # chains catch up with the longest, then go on together
  longer <- extend(fit, 100)
  expect_identical(dim(longer$draws)[1:2], c(400L, 2L))
  expect_error(run(2, function(k, report) chain(50, 1L), 10), class = "noiseaware_error_interrupted")
  expect_error(run(2, function(k, report) chain(50, 2L), 10), class = "noiseaware_error_numerical")
})

# ---- joint-distribution test (Geweke 2004) -------------------------------------------------

test_that("joint-distribution test, with and without non-centred moves", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 3), x = c(-2, 2)))
  model <- model_lm(prior = prior_nig(c(0.5, 0), 1, 4, 3), covariates = prior_niw(0.5, 2, 2, 6))
  bound <- internal("bind_model")(model, st)
  set.seed(31)
  prior <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 20000L)$theta)
  for (mechanism in list(mech_laplace(scale = 1), mech_gaussian(sd = 1))) {
    for (passes in c(0, 2)) {
      draws <- geweke(model, st, mechanism, 5, 1300, passes)
      expect_prior(draws, prior)
    }
  }
})

# ---- the number of records is unknown ----------------------------------------------

poisson_total <- list(total = stat_sums(~ x, list(x = c(0, 60))), size = stat_size())

test_that("unknown n: totals of Poisson records, n and theta against sums over all n and totals", {
  skip_on_cran() # takes long; `make test` runs it
  cases <- list(
    list(z = c(70, 25), noise = c(5, 3), prior = prior_n("poisson", mean = 22), log_mass = function(n) dpois(n, 22, log = TRUE), n = 0:150),
    # no record at all has its share
    list(z = c(3, 1), noise = c(2, 3), prior = prior_n("negative_binomial", mean = 2, size = 1), log_mass = function(n) dnbinom(n, 1, mu = 2, log = TRUE), n = 0:200),
    list(z = c(30, 60), noise = c(20, 25), prior = prior_n("uniform", lower = 40, upper = 90), log_mass = function(n) 0 * n, n = 40:90),
    # n known well enough for many batches of births
    list(z = c(400, 100), noise = c(5, 4), prior = prior_n("uniform", lower = 40, upper = 160), log_mass = function(n) 0 * n, n = 40:160)
  )
  for (case in cases) {
    rel <- as_release(list(total = case$z[1], size = case$z[2]), poisson_total, n = NULL, neighbours = "add_remove",
                      mechanism = list(total = mech_laplace(scale = case$noise[1]), size = mech_gaussian(sd = case$noise[2])))
    fit <- sample_posterior(rel, model_poisson(prior = prior_gamma(3, 1)), prior_n = case$prior, chains = 2, iter = 2000, warmup = 700, seed = 1)
    expect_identical(fit$method, "augment")
    expect_true(fit$exact)
    all <- expand.grid(n = case$n, total = 0:700)
    given_n <- ifelse(all$n == 0, ifelse(all$total == 0, 0, -Inf), dnbinom(all$total, 3, prob = 1 / (1 + all$n), log = TRUE))
    weight <- case$log_mass(all$n) + given_n - abs(case$z[1] - all$total) / case$noise[1] - (case$z[2] - all$n)^2 / (2 * case$noise[2]^2)
    p <- exp(weight - max(weight))
    p <- p / sum(p)
    n <- parameter_draws(fit, "n")
    total <- posterior::extract_variable_matrix(denoise(fit), "total: x")
    expect_true(all(n %in% case$n))
    expect_same_mean(n, sum(p * all$n))
    expect_same_mean(n^2, sum(p * all$n^2))
    if (0 %in% n) expect_same_mean((n == 0) + 0, sum(p[all$n == 0]))
    expect_same_mean(total, sum(p * all$total))
    expect_same_mean(n * total, sum(p * all$n * all$total))
    expect_same_mean(parameter_draws(fit, "rate"), sum(p * (3 + all$total) / (1 + all$n)))
    expect_equal(as.vector(posterior::extract_variable_matrix(denoise(fit), "size: n")), as.vector(n), tolerance = 1e-12)
  }
})

test_that("unknown n: with hardly any noise on it the draws are those of n known", {
  skip_on_cran() # takes long; `make test` runs it
  crossed <- stat_crossprod(y ~ x + g, list(y = c(-3, 3), x = c(0, 2), g = c("a", "b")))
  model <- model_lm(prior = prior_normal(), sigma = prior_half_normal(), factors = "independent") # what n unknown has
  set.seed(6)
  z <- simulate_release(model, crossed, mech_laplace(epsilon = 3), n = 60)
  rel <- as_release(list(t = z$value, size = 60), list(t = crossed, size = stat_size()), list(t = mech_laplace(epsilon = 3), size = mech_gaussian(sd = 1e-3)),
                    n = NULL, neighbours = "add_remove")
  rel$scale[seq_along(z$value)] <- z$scale
  ask <- function(rel, ...) sample_posterior(rel, model, method = "augment", chains = 2, iter = 3600, warmup = 1000, ..., control = list(passes = 6))
  unknown <- ask(rel, prior_n = prior_n("poisson", mean = 50), seed = 1)
  known <- ask(z, seed = 2)
  expect_true(all(parameter_draws(unknown, "n") == 60))
  for (name in known$bound$parameters) {
    expect_agreement(parameter_draws(unknown, name), parameter_draws(known, name))
  }
})

test_that("unknown n: calibrated with n drawn, totals, counts and coefficients", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(y = c(-3, 3), x = c(0, 2))
  normal <- list(t = stat_crossprod(y ~ x, bounds), size = stat_size())
  mixed <- list(counts = stat_counts(~ g, list(g = c("a", "b"))), total = stat_sums(~ x, bounds["x"]))
  cases <- list(
    list(model_lm(), normal, list(t = mech_laplace(scale = 2), size = mech_discrete_laplace(scale = 2))),
    list(model_logistic(g ~ x), mixed, list(counts = mech_laplace(scale = 2), total = mech_gaussian(sd = 2))),
    list(model_logistic(), stat_objective(y ~ x, list(y = c(0, 1), x = c(0, 2))), mech_objective(epsilon = 3))
  )
  for (case in cases) {
    cal <- calibrate(case[[1]], case[[2]], case[[3]], n = prior_n("negative_binomial", mean = 15, size = 4), replicates = 20, method = "augment", chains = 1, iter = 300,
                     warmup = 150, seed = 3, neighbours = "add_remove")
    expect_false(any(cal$runs$failed))
    expect_true("n" %in% cal$results$variable)
    expect_gt(min(summary(cal)$p.value), 1e-4)
  }
})

test_that("unknown n: the room for records grows, and a chain goes on bit for bit", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(60, poisson_total$total, mech_laplace(scale = 1), n = NULL)
  ask <- function(iter) sample_posterior(rel, model_poisson(prior = prior_gamma(400, 4e4)), prior_n = prior_n("poisson", mean = 6000), chains = 2, iter = iter,
                                             warmup = 300, seed = 1, control = list(passes = 0))
  long <- ask(700)
  room <- vapply(long$chains, function(c) length(c$state$accepted), 0L)
  expect_true(all(room >= 6000))
  short <- ask(500)
  expect_identical(extend(short, 200)$draws, long$draws)
  # from too little room
  problem <- short$problem
  problem$n <- 10
  problem$size_spread <- 0
  problem$room <- 1088
  words <- internal("seed_words")()
  state <- internal("start_chain")(problem, short$bound, words, 1, NULL)
  expect_length(state$accepted, 1088)
  state$theta[] <- log(0.01)
  run <- list(warmup = 3000, thin = 1)
  chain <- internal("run_blocks")(problem, state, 3000, run, function(...) NULL)
  expect_gt(length(chain$state$accepted), 1088)
  expect_length(chain$acceptance, 3000)
  expect_error(internal("check_room")(2^40), "may be larger", class = "noiseaware_error_size")
  large <- suppressMessages(as_release(c(2^29, 2^29), stat_counts(~ x, levels = list(x = c("a", "b"))), mech_laplace(epsilon = 1), n = 2^30))
  expect_error(sample_posterior(large, model_table(), method = "augment"), "there are 1,073,741,824", class = "noiseaware_error_size")
  expect_error(synthesize(sample_posterior(large, model_table(), iter = 100, seed = 1), m = 2), "2,147,483,648 records", class = "noiseaware_error_size")
})
