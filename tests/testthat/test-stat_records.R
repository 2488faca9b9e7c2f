# One noisy value for each record: what is declared, what is released, and exact
# posteriors.

st <- stat_records(y ~ x, bounds = list(y = c(-1, 2), x = c(0, 10)))
factors <- stat_records(~ g, levels = list(g = c("a", "b", "c")))
mixed <- stat_records(~ v + g, bounds = list(v = c(0, 5)), levels = list(g = c("a", "b", "c")))

test_that("columns, components and sensitivities are as declared", {
  expect_identical(st$columns$name, c("y", "x"))
  expect_identical(st$components, c("y", "x"))
  expect_equal(c(sensitivity(st, "L1"), sensitivity(st, "L2")), c(13, sqrt(9 + 100)))
  expect_equal(c(sensitivity(mixed, "L1"), sensitivity(mixed, "L2")), c(7, sqrt(25 + 4)))
  expect_identical(mixed$columns$upper, c(5, 2))
  expect_identical(mixed$levels, list(g = c("a", "b", "c")))
  expect_identical(stat_records(~ y + x, list(x = c(0, 10), y = c(-1, 2)))$columns, st$columns)
  expect_identical(vapply(list(st, factors, mixed), internal("integer_valued"), TRUE), c(FALSE, TRUE, FALSE))
})

test_that("declarations that do not fit are refused", {
  bounds <- list(y = c(0, 1))
  levels <- list(g = c("a", "b"))
  expect_error(stat_records("y", bounds), class = "noiseaware_error_formula")
  expect_error(stat_records(~ 1), class = "noiseaware_error_formula")
  expect_error(stat_records(~ y + y, bounds), class = "noiseaware_error_formula")
  expect_error(stat_records(~ log(y), bounds), class = "noiseaware_error_formula")
  expect_error(stat_records(~ y + z, bounds), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ y + g, bounds), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ y, c(bounds, z = 1)), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ y, 3), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ y, list(y = c(1, 0))), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ y, list(y = c("a", "b"))), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ g, list(g = c(0, 1)), levels), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ g, levels = list(g = list(1, 2))), class = "noiseaware_error_levels")
  expect_error(stat_records(~ g, levels = list(g = "a")), class = "noiseaware_error_levels")
  expect_error(stat_records(~ y, list(y = c(-1e308, 1e308))), class = "noiseaware_error_bounds")
  expect_error(stat_records(~ y, bounds, levels), class = "noiseaware_error_levels")
})

data <- data.frame(y = c(-5, 0.25, 3), x = c(4, 12, 0), g = c("c", "a", "b"))

test_that("each record's clamped values are released, component after component", {
  rel <- release(data, st, mech_gaussian(sd = 1e-9))
  expect_equal(rel$value, c("y[1]" = -1, "y[2]" = 0.25, "y[3]" = 2, "x[1]" = 4, "x[2]" = 10, "x[3]" = 0), tolerance = 1e-7)
  expect_equal(unname(release(data, factors, mech_laplace(scale = 1e-9))$value), c(2, 0, 1), tolerance = 1e-7)
  rel <- release(data, st, mech_laplace(scale = c(x = 2, y = 1)))
  expect_identical(unname(rel$scale), c(1, 1, 1, 2, 2, 2))
  expect_equal(unname(release(data, st, mech_laplace(epsilon = 2))$scale), rep(13 / 2, 6), tolerance = 1e-6)
  # noise of its own for every value
  expect_identical(anyDuplicated(rel$value - c(-1, 0.25, 2, 4, 10, 0)), 0L)
  values <- matrix(1:6, 3, dimnames = list(NULL, c("y", "x")))
  expect_identical(unname(as_release(values, st, mech_laplace(epsilon = 1), 3)$value), as.double(1:6))
  expect_error(as_release(1:5, st, mech_laplace(epsilon = 1), 3), class = "noiseaware_error_value")
})

test_that("values are clamped the same in blocks of any size", {
  set.seed(2)
  many <- cbind(rnorm(1000, 0.5, 2), rnorm(1000, 5, 6))
  spec <- internal("statistic_spec")(st)
  expected <- cbind(pmin(pmax(many[, 1], -1), 2), pmin(pmax(many[, 2], 0), 10))
  expect_identical(.Call(internal("ffi_stat_eval"), spec, many), expected)
  expect_equal(.Call(internal("ffi_stat_total"), spec, many), colSums(expected))
})

test_that("they print, and survive their file", {
  local_reproducible_output()
  releases <- list(as_release(1:6 / 3, st, mech_laplace(epsilon = 1), 3), as_release(c(0.1, -2, 7, 0, 1, 2), mixed, mech_gaussian(mu = 1), 3),
                   as_release(c(2, 0, 1), factors, mech_discrete_laplace(epsilon = 1), 3),
                   as_release(1:14, list(sum = stat_crossprod(y ~ x, list(y = c(-1, 2), x = c(0, 10))), each = stat_records(~ y, list(y = c(-1, 2)))),
                              list(sum = mech_laplace(epsilon = 1), each = mech_gaussian(mu = 1)), 9))
  for (rel in releases) {
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
  }
  expect_snapshot({
    st
    mixed
    releases[[1]]
    releases[[4]]
  })
})

# ---- exact posteriors ------------------------------------------------------------

both_samplers <- function(release, model, iter = 10800) {
  lapply(list(plain = list(passes = 0), interwoven = list()), function(control) {
    sample_posterior(release, model, chains = 2, iter = iter, warmup = 1000, seed = 11, control = control)
  })
}

one_noise <- function(kernel, r) exp(if (kernel == "absolute") -abs(r) else -r^2 / 2)

test_that("two records with noise of their own, against quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  only_y <- stat_records(y ~ 1, list(y = c(-1, 2)))
  model <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5))
  beta <- seq(-9, 10, length.out = 801)
  y <- seq(-12, 13, length.out = 2001)
  clamped <- pmin(pmax(y, -1), 2)
  for (mechanism in list(mech_laplace(scale = 0.6), mech_gaussian(sd = 0.6))) {
    # one value beyond the bounds
    rel <- as_release(c(1.2, -1.7), only_y, mechanism, 2)
    likelihood <- vapply(beta, function(b) {
      f <- dnorm(y, b, 1.5)
      sum(f * one_noise(mechanism$kernel, (1.2 - clamped) / 0.6)) * sum(f * one_noise(mechanism$kernel, (-1.7 - clamped) / 0.6))
    }, 0)
    density <- dnorm(beta, 0.5, 2) * likelihood
    for (fit in both_samplers(rel, model)) {
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density), sum(beta * density) / sum(density))
    }
  }
})

test_that("one record of two variables with different noise, against quadrature", {
  bounds <- list(y = c(-2, 2), x = c(-1, 1.5))
  model <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5), covariates = fixed(list(mean = 0.3, cov = matrix(1.2))))
  rel <- as_release(c(1.1, -0.8), stat_records(y ~ x, bounds), mech_laplace(scale = c(y = 0.3, x = 1.1)), 1)
  grid <- as.matrix(expand.grid(y = seq(-12, 13, length.out = 301), x = seq(-4.5, 5, length.out = 181)))
  eta <- one_noise("absolute", (1.1 - pmin(pmax(grid[, "y"], -2), 2)) / 0.3) * one_noise("absolute", (-0.8 - pmin(pmax(grid[, "x"], -1), 1.5)) / 1.1)
  # the coefficients integrated out, then their moments given the record
  variance <- 1.5^2 + 4 * (1 + grid[, "x"]^2)
  residual <- grid[, "y"] - 0.5 * (1 + grid[, "x"])
  weight <- dnorm(residual, 0, sqrt(variance)) * dnorm(grid[, "x"], 0.3, sqrt(1.2)) * eta
  slope <- 0.5 + 4 * grid[, "x"] / variance * residual
  slope_var <- 4 - 16 * grid[, "x"]^2 / variance
  for (fit in both_samplers(rel, model)) {
    draws <- parameter_draws(fit, "x")
    expect_same_mean(draws, sum(weight * slope) / sum(weight))
    expect_same_mean(draws^2, sum(weight * (slope^2 + slope_var)) / sum(weight))
    expect_same_mean((draws <= -0.9) + 0, sum(weight * pnorm(-0.9, slope, sqrt(slope_var))) / sum(weight))
  }
})

test_that("a total and single records, jointly, against quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  design <- list(each = stat_records(~ y, list(y = c(-1, 2))), sum = stat_crossprod(y ~ 1, list(y = c(-3, 3)), rescale = FALSE))
  mechanisms <- list(each = mech_gaussian(sd = 0.8), sum = mech_laplace(scale = 0.5))
  value <- c(1.2, -0.9, 1.4, 3.1)
  rel <- as_release(value, design, mechanisms, 2)
  model <- model_lm(y ~ 1, prior = prior_normal(0.5, 2), sigma = fixed(1.5))
  beta <- seq(-9, 10, length.out = 401)
  y <- seq(-9, 10, length.out = 401)
  each <- pmin(pmax(y, -1), 2)
  sum <- pmin(pmax(y, -3), 3)
  noise <- outer(one_noise("squared", (value[1] - each) / 0.8), one_noise("squared", (value[2] - each) / 0.8)) *
    one_noise("absolute", (value[3] - outer(sum, sum, "+")) / 0.5) * one_noise("absolute", (value[4] - outer(sum^2, sum^2, "+")) / 0.5)
  density <- dnorm(beta, 0.5, 2) * vapply(beta, function(b) {
    f <- dnorm(y, b, 1.5)
    drop(f %*% noise %*% f)
  }, 0)
  for (fit in both_samplers(rel, model)) {
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density), base::sum(beta * density) / base::sum(density))
    expect_identical(posterior::variables(denoise(fit)), c("sum: y", "sum: y^2"))
  }
})

test_that("numbers as codes: noise on a factor's code", {
  rel <- as_release(c(0.4, 1.6, 2.9), factors, mech_laplace(scale = 0.7), 3)
  records <- as.matrix(expand.grid(rep(list(0:2), 3)))
  counts <- t(apply(records, 1, function(r) tabulate(r + 1, 3)))
  weight <- exp(log_noise("absolute", rep(0.7, 3), c(0.4, 1.6, 2.9), records) + rowSums(lgamma(counts + 1)))
  for (fit in both_samplers(rel, flat_categorical(), 10000)) {
    for (l in 1:3) expect_same_mean(parameter_draws(fit, paste0("prob[", letters[l], "]")), sum(weight * (counts[, l] + 1) / 6) / sum(weight))
  }
})

# ---- replay ----------------------------------------------------------------------------

test_that("a plain R sampler replays the sweeps", {
  n <- 300 # two blocks
  only_y <- stat_records(y ~ 1, list(y = c(-1, 2)))
  model <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5))
  set.seed(14)
  for (mechanism in list(mech_laplace(scale = 0.6), mech_gaussian(sd = 0.6))) {
    rel <- simulate_release(model, only_y, mechanism, n = n)
    fit <- sample_posterior(rel, model, chains = 1, iter = 20, warmup = 0, seed = 5, control = list(passes = 0))
    f <- internal("bind_model")(model, only_y)$spec$fields
    stream <- internal("new_stream")(fit$words, 0L)
    draw <- function(kind, size) {
      out <- draw_stream(stream, kind, size)
      stream <<- out$state
      out$values
    }
    energy <- function(y, rows) -log(one_noise(mechanism$kernel, (rel$value[rows] - pmin(pmax(y, -1), 2)) / 0.6))
    beta <- f$beta_mean + draw("normal", 1) / sqrt(f$beta_precision)
    y <- f$centre + beta + 1.5 * c(draw("normal", 256), draw("normal", n - 256))
    expected <- numeric(20)
    for (i in 1:20) {
      z <- draw("normal", 256)
      for (rows in split(1:n, 1:n > 256)) {
        proposal <- f$centre + beta + 1.5 * z
        threshold <- draw("exponential", length(rows))
        z <- draw("normal", n - max(rows)) # the next block's
        accepted <- energy(proposal, rows) - energy(y[rows], rows) <= threshold
        y[rows[accepted]] <- proposal[accepted]
      }
      precision <- n / 1.5^2 + f$beta_precision
      beta <- (sum(y - f$centre) / 1.5^2 + f$beta_precision * f$beta_mean) / precision + draw("normal", 1) / sqrt(precision)
      expected[i] <- beta + f$centre
    }
    expect_equal(as.vector(parameter_draws(fit, "(Intercept)")), expected, tolerance = 1e-9)
  }
})

# ---- state -----------------------------------------------------------------------------

test_that("the noise density of many records is that of the state, and a run goes on bit for bit", {
  n <- 700 # several blocks
  set.seed(12)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 8), n = n)
  whole <- sample_posterior(rel, model_lm(), chains = 1, iter = 60, warmup = 20, seed = 3)
  half <- sample_posterior(rel, model_lm(), chains = 1, iter = 40, warmup = 20, seed = 3)
  expect_identical(extend(half, 20)$draws, whole$draws)
  x <- matrix(whole$chains[[1]]$state$x, ncol = 2)[seq_len(n), ]
  t <- c(pmin(pmax(x[, 1], -1), 2), pmin(pmax(x[, 2], 0), 10))
  expect_equal(utils::tail(whole$chains[[1]]$log_noise, 1), -sum(abs(rel$value - t)) * 8 / 13)
  a <- acceptance(whole)
  expect_true(a$least >= exp(-8) && a$mean < 1 && a$mean > 0.05)
  expect_error(denoise(whole), class = "noiseaware_error_argument")
})

test_that("methods that need totals say so", {
  rel <- as_release(1:6, st, mech_laplace(epsilon = 1), 3)
  expect_error(sample_posterior(rel, model_lm(), method = "naive"), class = "noiseaware_error_method")
})

test_that("a release of one record with one variable prints", {
  rel <- as_release(1, stat_records(~ x, levels = list(x = c("0", "1"))), mech_randomized_response(epsilon = 1), n = 1)
  expect_output(print(rel), "records    1")
})
