# Objective perturbation: coefficients that minimise a perturbed logistic loss.

spec_of <- function(statistic, z) internal("objective_spec")(statistic, z)

# log density of z given the records, up to its constant, by the C code
density_of <- function(statistic, mechanism, z, x) {
  total <- .Call(internal("ffi_stat_total"), spec_of(statistic, z), x)
  .Call(internal("ffi_density"), internal("objective_density")(mechanism, statistic, z, "replace"), matrix(-total, 1))
}

# the same as a function of z and the records, for many of them
density_function <- function(statistic, mechanism, z) {
  spec <- spec_of(statistic, z)
  density <- internal("objective_density")(mechanism, statistic, z, "replace")
  stat_total <- internal("ffi_stat_total")
  evaluate <- internal("ffi_density")
  function(z, x) {
    spec$fields$coefficients <- density$fields$coefficients <- z
    .Call(evaluate, density, matrix(-.Call(stat_total, spec, x), 1))
  }
}

# for rows of z
densities_of <- function(statistic, mechanism, z, x) apply(z, 1, density_function(statistic, mechanism, z[1, ]), x)

# the same with its constant, in plain R: rows w of (1, x), noise b of scale c
r_density <- function(z, y, w, scale, ridge, normal = FALSE, largest = FALSE) {
  d <- length(z)
  p <- plogis(drop(w %*% z))
  b <- crossprod(w, p - y) + ridge * z
  b <- if (largest) max(abs(b)) else sqrt(sum(b^2))
  determinant <- determinant(crossprod(w, w * p * (1 - p)) + diag(ridge, d))$modulus
  c(determinant) + if (normal) -b^2 / (2 * scale^2) - d * log(scale * sqrt(2 * pi)) else if (largest) -b / scale - d * log(2 * scale) - lfactorial(d) else
    -b / scale - d * log(scale) - log(2) - d / 2 * log(pi) - lgamma(d) + lgamma(d / 2)
}

one <- stat_objective(y ~ 1, bounds = list(y = c(0, 1)))
two <- stat_objective(y ~ x, bounds = list(y = c(0, 1), x = c(-1, 3)))
y3 <- cbind(y = c(0, 1, 1))
x3 <- cbind(y = c(0, 1, 1), x = c(-4, 0.5, 2)) # the first is clamped
w3 <- cbind(1, c(-1, -0.25, 0.5))
both_noises <- list(mech_objective(scale = 1.3, ridge = 0.7), mech_objective(sd = 0.9, ridge = 0.7))

# ---- statistic -----------------------------------------------------------------

test_that("gradient and Hessian are those of the loss, row by row and in total", {
  bounds <- list(y = c(0, 1), a = c(-1, 3), g = c("p", "q", "r"), b = c(10, 20))
  set.seed(1)
  x <- cbind(rbinom(700, 1, 0.4), rnorm(700, 1, 2), rbinom(700, 1, 0.3), 0, rnorm(700, 15, 4))
  x[x[, 3] == 0, 4] <- rbinom(sum(x[, 3] == 0), 1, 0.5)
  z <- c(0.3, -1, 2, 0.5, -0.7)
  clamped <- cbind(pmin(pmax(x[, 2], -1), 3), x[, 3:4], pmin(pmax(x[, 5], 10), 20))
  for (rescale in c(TRUE, FALSE)) for (radius in list(NULL, 1.5)) {
    st <- stat_objective(y ~ a + g + b, bounds, rescale = rescale, radius = radius)
    w <- cbind(1, clamped)
    if (rescale) w[, c(2, 5)] <- cbind((clamped[, 1] - 1) / 2, (clamped[, 4] - 15) / 5)
    if (!is.null(radius)) w <- w * pmin(1, radius / sqrt(rowSums(w^2)))
    p <- plogis(drop(w %*% z))
    lower <- which(upper.tri(diag(5), diag = TRUE), arr.ind = TRUE)
    expected <- cbind((p - x[, 1]) * w, p * (1 - p) * w[, lower[, 2]] * w[, lower[, 1]])
    expect_equal(.Call(internal("ffi_stat_eval"), spec_of(st, z), x), expected, tolerance = 1e-12)
    expect_equal(.Call(internal("ffi_stat_total"), spec_of(st, z), x), colSums(expected), tolerance = 1e-12)
    # the bound is attained by a corner, or lies above all rows
    expect_lte(max(sqrt(rowSums(w^2))), internal("row_length")(st) * (1 + 1e-12))
    expect_equal(sensitivity(st, "L2"), 2 * if (!is.null(radius)) 1.5 else if (rescale) 2 else sqrt(2 + 3^2 + 20^2))
  }
  # far out nothing overflows
  st <- stat_objective(y ~ a, bounds[1:2])
  expect_identical(.Call(internal("ffi_stat_total"), spec_of(st, c(-1000, 0)), cbind(c(0, 0), c(0, 1))), numeric(5))
  expect_true(all(is.finite(.Call(internal("ffi_stat_total"), spec_of(st, c(1000, 900)), cbind(c(0, 0), c(0, 1))))))
})

# ---- density -------------------------------------------------------------------

test_that("given the records the density of z integrates to one", {
  skip_on_cran()
  for (mechanism in both_noises) {
    normal <- internal("is_normal")(mechanism)
    scale <- if (normal) 0.9 else 1.3
    constant <- if (normal) sqrt(2 * pi) * scale else 2 * scale
    f <- function(z) exp(densities_of(one, mechanism, as.matrix(z), y3)) / constant
    middle <- -0.5 # smooth but at b = 0
    area <- integrate(f, -Inf, middle, rel.tol = 1e-9)$value + integrate(f, middle, Inf, rel.tol = 1e-9)$value
    expect_equal(area, 1, tolerance = 1e-6)
    # two coefficients: a sum over a grid
    side <- seq(-24, 24, by = 0.3)
    z <- as.matrix(expand.grid(side, side))
    constant <- 2 * pi * scale^2
    got <- densities_of(two, mechanism, z, x3) - log(constant)
    expect_equal(sum(exp(got)) * 0.3^2, 1, tolerance = if (normal) 1e-6 else 0.01)
    at <- seq(1, nrow(z), by = 97)
    exact <- apply(z[at, ], 1, r_density, y = x3[, 1], w = w3, scale = scale, ridge = 0.7, normal = normal)
    expect_equal(got[at], exact, tolerance = 1e-10)
  }
})

test_that("noise of the largest component: its density, what it is drawn from, and its one coefficient", {
  skip_on_cran() # takes long; `make test` runs it
  mechanism <- mech_objective(scale = 0.4, ridge = 0.3, norm = "Linf")
  side <- seq(-26, 26, by = 0.2)
  z <- as.matrix(expand.grid(side, side))
  z <- z[pmax(abs(z[, 1]), abs(z[, 2])) <= 8 | seq_len(nrow(z)) %% 125 == 0, ]
  got <- densities_of(two, mechanism, z, x3) - 2 * log(0.8) - log(2)
  expect_equal(sum(exp(got)[pmax(abs(z[, 1]), abs(z[, 2])) <= 8]) * 0.2^2, 1, tolerance = 0.01)
  at <- seq(1, nrow(z), by = 97)
  expect_equal(got[at], apply(z[at, ], 1, r_density, y = x3[, 1], w = w3, scale = 0.4, ridge = 0.3, largest = TRUE), tolerance = 1e-10)
  # |b| is Gamma(d, scale); where it is reached, and the other components' shares of it, are uniform
  set.seed(9)
  data <- as.data.frame(x3)
  z <- t(replicate(300, simulate_release(data, two, mechanism)$value))
  b <- -t(apply(z, 1, function(v) crossprod(w3, plogis(drop(w3 %*% v)) - x3[, 1]) + 0.3 * v))
  first <- abs(b[, 1]) > abs(b[, 2])
  expect_gt(ks.test(pmax(abs(b[, 1]), abs(b[, 2])), "pgamma", shape = 2, scale = 0.4)$p.value, 1e-6)
  expect_gt(ks.test(ifelse(first, b[, 2] / abs(b[, 1]), b[, 1] / abs(b[, 2])), "punif", -1, 1)$p.value, 1e-6)
  expect_gt(binom.test(sum(first), 300)$p.value, 1e-6)
  # one component is its own largest
  one_z <- matrix(c(-2, 0.3, 4))
  expect_identical(densities_of(one, mechanism, one_z, y3), densities_of(one, mech_objective(scale = 0.4, ridge = 0.3), one_z, y3))
})

test_that("releases have that distribution", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  # a small ridge, so that the determinant counts
  for (mechanism in list(mech_objective(scale = 1.3, ridge = 0.2), mech_objective(sd = 2, ridge = 0.2))) {
    data <- data.frame(y = y3[, 1])
    z <- replicate(350, unname(simulate_release(data, one, mechanism)$value))
    grid <- seq(-120, 120, by = 0.04)
    density <- exp(densities_of(one, mechanism, as.matrix(grid), y3))
    cdf <- approxfun(grid, cumsum(density) / sum(density), rule = 2)
    expect_gt(ks.test(z, cdf)$p.value, 1e-6)
    # the owner's function, noise from the system
    z <- replicate(200, unname(release_objective(data, one, mechanism)$value))
    expect_gt(ks.test(z, cdf)$p.value, 1e-6)
  }
  for (mechanism in both_noises) {
    # two coefficients: the perturbation that each minimises, and a margin of the density
    data <- as.data.frame(x3)
    z <- t(replicate(350, simulate_release(data, two, mechanism)$value))
    b <- -t(apply(z, 1, function(v) crossprod(w3, plogis(drop(w3 %*% v)) - x3[, 1]) + 0.7 * v))
    if (internal("is_normal")(mechanism)) {
      expect_gt(ks.test(c(b), "pnorm", 0, 0.9)$p.value, 1e-6)
    } else {
      expect_gt(ks.test(sqrt(rowSums(b^2)), "pgamma", shape = 2, scale = 1.3)$p.value, 1e-6)
      expect_gt(ks.test(atan2(b[, 1], b[, 2]), "punif", -pi, pi)$p.value, 1e-6)
    }
    side <- seq(-20, 20, by = 0.25)
    joint <- densities_of(two, mechanism, as.matrix(expand.grid(side, side)), x3)
    margin <- rowSums(matrix(exp(joint), length(side)))
    # each point of the grid represents the interval about it
    cdf <- approxfun(c(side[1] - 0.125, side + 0.125), c(0, cumsum(margin) / sum(margin)), rule = 2)
    expect_gt(ks.test(z[, 1], cdf)$p.value, 1e-6)
  }
})

test_that("the minimiser is found, near and far", {
  set.seed(2)
  for (n in c(1, 50)) for (ridge in c(1e-6, 1, 1e4)) for (scale in c(1e-9, 1, 1e6)) {
    data <- data.frame(y = rep_len(1, n), x = rnorm(n)) # separable
    rel <- simulate_release(data, two, mech_objective(scale = scale, ridge = ridge))
    expect_true(all(is.finite(rel$value)))
  }
  # without noise it is the ridge estimate
  data <- data.frame(y = rbinom(100, 1, 0.3), x = runif(100, -1, 3))
  z <- simulate_release(data, two, mech_objective(scale = 1e-12, ridge = 2))$value
  loss <- function(z) {
    eta <- z[1] + z[2] * (data$x - 1) / 2
    -sum(plogis((2 * data$y - 1) * eta, log.p = TRUE)) + sum(z^2)
  }
  expect_equal(unname(z), optim(c(0, 0), loss, method = "BFGS", control = list(reltol = 1e-15))$par, tolerance = 1e-5)
  expect_identical(names(z), c("(Intercept)", "x"))
})

# ---- privacy -------------------------------------------------------------------

test_that("neighbours' densities differ by a factor of at most exp(epsilon), wherever z is", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  corner <- function() c(rbinom(1, 1, 0.5), sample(c(-1, 3, runif(1, -2, 4)), 1), sample(c(0, 2, runif(1, 0, 2)), 1))
  st <- stat_objective(y ~ a + b, bounds = list(y = c(0, 1), a = c(-1, 3), b = c(0, 2)))
  for (mechanism in list(mech_objective(epsilon = 0.1), mech_objective(epsilon = 1), mech_objective(epsilon = 5), mech_objective(epsilon = 1, ridge = 20),
                         mech_objective(epsilon = 1, norm = "Linf"), mech_objective(epsilon = 3, ridge = 0.5, norm = "Linf"))) {
    density <- density_function(st, mechanism, numeric(3))
    worst <- max(replicate(600, {
      x <- t(replicate(sample(3, 1), corner()))
      neighbour <- x
      neighbour[1, ] <- corner()
      z <- rnorm(3) * 10^runif(1, -1, 3)
      abs(density(z, x) - density(z, neighbour))
    }))
    expect_lte(worst, mechanism$epsilon * (1 + 1e-9))
    expect_gt(worst, 0.5 * mechanism$epsilon)
  }
  # what the budget comes to: B^2 = 3
  noise <- internal("objective_noise")(mech_objective(epsilon = 2), st)
  expect_equal(noise$ridge, 2 * (3 / 4) / 2)
  expect_equal(2 * sqrt(3) / noise$scale + log(1 + 0.75 / noise$ridge), 2)
  expect_equal(privacy(mech_objective(scale = noise$scale, ridge = noise$ridge), statistic = st)$epsilon, 2)
  # the largest entry of a row instead: 1 rescaled, 10 in units, no more than the radius
  wide <- list(y = c(0, 1), a = c(-10, 3), b = c(0, 2))
  largest <- mech_objective(epsilon = 2, norm = "Linf")
  for (case in list(list(st, 1), list(stat_objective(y ~ a + b, wide, rescale = FALSE), 10), list(stat_objective(y ~ a + b, wide, rescale = FALSE, radius = 4), 4),
                    list(stat_objective(y ~ a, list(y = c(0, 1), a = c(-0.1, 0.2)), rescale = FALSE), 1))) {
    for (neighbours in c("replace", "add_remove")) {
      noise <- internal("objective_noise")(largest, case[[1]], neighbours = neighbours)
      least <- internal("row_length")(case[[1]])^2 / 4
      expect_equal(noise$ridge, least)
      expect_equal((if (neighbours == "replace") 2 else 1) * case[[2]] / noise$scale + log(1 + least / noise$ridge), 2)
      expect_equal(privacy(mech_objective(scale = noise$scale, ridge = noise$ridge, norm = "Linf"), statistic = case[[1]], neighbours = neighbours)$epsilon, 2)
    }
  }
})

test_that("with normal noise the log ratio exceeds epsilon with a probability below delta", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_objective(y ~ a + b, bounds = list(y = c(0, 1), a = c(-1, 1), b = c(-1, 1)))
  mechanism <- mech_objective(epsilon = 1, delta = 0.04)
  noise <- internal("objective_noise")(mechanism, st)
  expect_equal(sqrt(12) / noise$scale * qnorm(0.98) + 6 / noise$scale^2 + log1p(0.75 / noise$ridge), 1)
  set.seed(4)
  pairs <- list(cbind(c(0, 1), c(1, 1), c(1, 1)), cbind(c(0, 0), c(1, -1), c(1, -1)), cbind(c(1, 0), c(1, 1), c(1, 1)), cbind(c(0, 1), c(1, 1), c(-1, 0.3)))
  for (records in pairs) {
    data <- data.frame(y = records[1, 1], a = records[1, 2], b = records[1, 3])
    z <- t(replicate(350, simulate_release(data, st, mechanism)$value))
    ratio <- densities_of(st, mechanism, z, records[1, , drop = FALSE]) - densities_of(st, mechanism, z, records[2, , drop = FALSE])
    expect_lt(mean(ratio > 1), 0.04)
  }
})

# ---- posterior -----------------------------------------------------------------

test_that("two records, intercept alone: enumeration", {
  z <- 0.8
  beta <- seq(-9, 9, length.out = 1801)
  for (mechanism in both_noises) {
    normal <- internal("is_normal")(mechanism)
    eta <- function(s) exp(r_density(z, rep(0:1, c(2 - s, s)), matrix(1, 2, 1), if (normal) 0.9 else 1.3, 0.7, normal))
    density <- dnorm(beta, -0.5, 1.5) *
      (eta(0) * plogis(-beta)^2 + 2 * eta(1) * plogis(beta) * plogis(-beta) + eta(2) * plogis(beta)^2)
    rel <- as_release(c(`(Intercept)` = z), one, mechanism, n = 2)
    for (passes in c(0, 2)) {
      fit <- sample_posterior(rel, model_logistic(prior = prior_normal(-0.5, 1.5)), chains = 2, iter = 4100, warmup = 600, seed = 7,
                              control = list(passes = passes))
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density), sum(beta * density) / sum(density))
    }
  }
})

test_that("two records with a covariate: quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  z <- c(0.5, -1.2)
  x <- seq(-5, 6, length.out = 45)
  state <- expand.grid(x = x, y = 0:1)
  row <- cbind(1, (pmin(pmax(state$x, -1), 3) - 1) / 2)
  pair <- expand.grid(1:90, 1:90)
  b0 <- seq(-6, 7, length.out = 61)
  b1 <- seq(-8, 10, length.out = 61)
  grid <- expand.grid(b0 = b0, b1 = b1)
  sign <- 2 * state$y - 1
  f <- plogis(outer(grid$b0, sign) + outer(grid$b1, sign * state$x)) * rep(dnorm(state$x, 0.3, 1.1), each = nrow(grid))
  model <- model_logistic(prior = prior_normal(c(0.5, 1), c(1.5, 2)), covariates = fixed(list(mean = 0.3, cov = 1.21)))
  for (case in list(list("L2", 0), list("L2", 2), list("Linf", 2))) {
    noise <- mapply(function(i, j) exp(r_density(z, state$y[c(i, j)], row[c(i, j), ], 0.6, 0.02, largest = case[[1]] == "Linf")), pair[, 1], pair[, 2])
    density <- matrix(rowSums((f %*% matrix(noise, 90)) * f) * dnorm(grid$b0, 0.5, 1.5) * dnorm(grid$b1, 1, 2), 61)
    rel <- as_release(c(x = z[2], `(Intercept)` = z[1]), two, mech_objective(scale = 0.6, ridge = 0.02, norm = case[[1]]), n = 2)
    passes <- case[[2]]
    fit <- sample_posterior(rel, model, chains = 2, iter = 4100, warmup = 600, seed = 8, control = list(passes = passes))
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
    expect_distribution(parameter_draws(fit, "x"), grid_quantile(b1, colSums(density)), sum(colSums(density) * b1) / sum(density))
  }
})

test_that("beside another statistic of the same data, sums of the state stay those of its records", {
  both <- list(z = two, s = stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(-1, 3))))
  set.seed(6)
  data <- data.frame(y = rbinom(300, 1, 0.4), x = rnorm(300, 1, 1))
  rel <- simulate_release(data, both, list(z = mech_objective(epsilon = 2), s = mech_laplace(epsilon = 2)))
  fit <- sample_posterior(rel, model_logistic(), chains = 1, iter = 60, seed = 1)
  expect_identical(dim(denoise(fit)), c(30L, 1L, 5L))
  state <- fit$chains[[1]]$state
  order <- match(two$columns$name, internal("bind_model")(model_logistic(), both)$columns$name)
  records <- matrix(state$x, ncol = 2)[1:300, order]
  total <- .Call(internal("ffi_stat_total"), spec_of(two, rel$value[1:2]), records)
  at <- .Call(internal("ffi_augment_layout"), fit$problem$parts)$where[[1]]
  expect_equal(-state$residual[at], total, tolerance = 1e-9)
  expect_identical(posterior::as_draws_array(extend(sample_posterior(rel, model_logistic(), chains = 1, iter = 40, warmup = 30, seed = 1), 20)),
                   posterior::as_draws_array(sample_posterior(rel, model_logistic(), chains = 1, iter = 60, warmup = 30, seed = 1)))
  # log eta of a calibration equals the sampler's
  parts <- internal("release_parts")(rel)
  frame <- data.frame(y = records[, 1], x = records[, 2])
  expect_equal(sum(vapply(parts, internal("log_noise"), 0, data = frame)), tail(fit$chains[[1]]$log_noise, 1), tolerance = 1e-9)
})

# ---- the rest --------------------------------------------------------------------

test_that("releases print, are written and read, cost their budget", {
  st <- stat_objective(low ~ age + smoke, bounds = list(low = c(0, 1), age = c(14, 50), smoke = c("0", "1")), radius = 1.6)
  set.seed(1)
  for (mechanism in list(mech_objective(epsilon = 1), mech_objective(epsilon = 1, delta = 1e-6, ridge = 3), mech_objective(sd = 2, ridge = 1), mech_objective(epsilon = 1, norm = "Linf"))) {
    rel <- simulate_release(MASS::birthwt, st, mechanism)
    path <- tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
  }
  expect_identical(rel$mechanism$norm, "Linf")
  expect_output(print(rel), "objective perturbation, epsilon = 1, largest component")
  text <- readLines(path)
  expect_true(any(grepl('"norm": "Linf"', text, fixed = TRUE)))
  for (other in c('"L1"', "3", "null")) {
    writeLines(sub('"norm": "Linf"', paste0('"norm": ', other), text, fixed = TRUE), path)
    expect_error(read_release(path), "norm", class = "noiseaware_error_file")
  }
  account <- budget(epsilon = 1.5)
  rel <- release_objective(MASS::birthwt, st, mech_objective(epsilon = 1), budget = account)
  write_release(rel, path)
  expect_identical(read_release(path), rel)
  expect_error(release_objective(MASS::birthwt, st, mech_objective(epsilon = 1), budget = account), class = "noiseaware_error_budget")
  rel$value[] <- c(-0.5, 0.25, 1)
  expect_snapshot(rel)
  expect_snapshot(st)
  expect_true(all(is.na(noise_sd(rel))))
  expect_equal(privacy(rel)$epsilon, 1)
  expect_equal(unlist(privacy(mech_objective(epsilon = 1, delta = 1e-6))[1:2]), c(epsilon = 1, delta = 1e-6))
  expect_true(all(is.na(privacy(mech_objective(sd = 1, ridge = 1)))))
})

test_that("bad input is refused", {
  skip_on_cran()
  refused <- function(code, class) expect_error(code, class = paste0("noiseaware_error_", class))
  refused(stat_objective(y ~ x, list(y = c(0, 2), x = c(0, 1))), "bounds")
  refused(stat_objective(y ~ x, list(y = c("0", "1", "2"), x = c(0, 1))), "bounds")
  refused(stat_objective(y ~ x, list(y = c(0, 1))), "bounds")
  refused(stat_objective(y ~ x, list(y = c(0, 1), x = c(0, 1e-310))), "bounds")
  refused(stat_objective(y ~ x, list(y = c(0, 1), x = c(0, 1e200)), rescale = FALSE), "bounds")
  refused(stat_objective(~ x, list(x = c(0, 1))), "formula")
  refused(stat_objective(y ~ x:g, list(y = c(0, 1), x = c(0, 1))), "formula")
  refused(stat_objective(y ~ x, list(y = c(0, 1), x = c(0, 1)), radius = 0), "argument")
  refused(stat_objective(y ~ x, list(y = c(0, 1), x = c(0, 1)), rescale = NA), "argument")
  for (bad in list(list(), list(epsilon = -1), list(epsilon = 1, scale = 1, ridge = 1), list(scale = 1), list(sd = 1), list(epsilon = 1, delta = 0),
                   list(epsilon = 1, delta = 0.1), list(epsilon = "1"), list(scale = c(1, 2), ridge = 1), list(epsilon = 1, ridge = Inf),
                   list(sd = 1, ridge = 1, delta = 0.01), list(epsilon = 1, norm = "L1"), list(epsilon = 1, norm = 2),
                   list(epsilon = 1, delta = 0.01, norm = "Linf"), list(sd = 1, ridge = 1, norm = "Linf"))) {
    refused(do.call(mech_objective, bad), "mechanism")
  }
  sums <- stat_sums(~ y, list(y = c(0, 1)))
  refused(as_release(1, sums, mech_objective(epsilon = 1), n = 3), "mechanism")
  refused(as_release(1, one, mech_laplace(epsilon = 1), n = 3), "mechanism")
  refused(as_release(1, one, mech_randomized_response(epsilon = 1), n = 3), "mechanism")
  refused(as_release(1, one, mech_objective(epsilon = 1, ridge = 0.1), n = 3), "mechanism")
  refused(as_release(c(1, 2), one, mech_objective(epsilon = 1), n = 3), "value")
  data <- data.frame(y = c(0, 1))
  refused(release(data, one, mech_objective(epsilon = 1)), "mechanism")
  refused(release_objective(data, sums, mech_objective(epsilon = 1)), "argument")
  refused(release_objective(data, one, mech_laplace(epsilon = 1)), "mechanism")
  refused(release_objective(data.frame(y = c(0, NA)), one, mech_objective(epsilon = 1)), "missing")
  refused(release_objective(list(y = 1), one, mech_objective(epsilon = 1)), "data")
  rel <- as_release(1, one, mech_objective(epsilon = 1), n = 3)
  for (method in c("collapse", "clt", "naive")) refused(sample_posterior(rel, model_logistic(), method = method), "method")
  refused(denoise(sample_posterior(rel, model_logistic(), chains = 1, iter = 20, seed = 1)), "argument")
})
