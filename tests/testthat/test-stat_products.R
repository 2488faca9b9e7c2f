# Cross-products of a formula with products and powers: values in plain R, sensitivities by numerical maximisation, files, and the
# moves of the response that they have.

products_bounds <- list(y = c(-4, 12), x = c(1, 4), z = c(-2, 1), g = c("u", "v", "w"))
products_cases <- list(stat_crossprod(y ~ x * g + I(x^2) + z, products_bounds), stat_crossprod(y ~ x * z + I(z^3) + I(z^2), products_bounds[1:3]),
                       stat_crossprod(y ~ x * g + offset(z), products_bounds, rescale = FALSE))

# all components of records in plain R; x has the columns of the statistic
products_values <- function(statistic, x) {
  for (j in seq_len(ncol(x))) {
    ends <- c(statistic$columns$lower[j], statistic$columns$upper[j])
    x[, j] <- pmin(pmax(x[, j], ends[1]), ends[2])
    if (statistic$rescale && is.na(statistic$columns$level[j])) x[, j] <- 2 * (x[, j] - ends[1]) / (ends[2] - ends[1]) - 1
  }
  matrix(sapply(seq_len(nrow(statistic$powers)), function(k) {
    value <- rep(1, nrow(x))
    for (j in which(statistic$powers[k, ] > 0)) value <- value * x[, j]^statistic$powers[k, j]
    value
  }), nrow(x))
}

products_records <- function(statistic, u) {
  columns <- statistic$columns
  x <- matrix(sapply(seq_len(nrow(columns)), function(j) columns$lower[j] + (columns$upper[j] - columns$lower[j]) * u[, j]), nrow(u))
  dummy <- !is.na(columns$level)
  for (v in unique(columns$variable[dummy])) {
    at <- which(columns$variable == v)
    level <- floor(u[, at[1]] * (length(at) + 1))
    for (k in seq_along(at)) x[, at[k]] <- as.double(level == k)
  }
  x
}

test_that("components are the monomials of clamped and rescaled values", {
  set.seed(1)
  for (statistic in products_cases) {
    x <- products_records(statistic, matrix(runif(20 * nrow(statistic$columns), -0.2, 1.2), 20))
    dummy <- !is.na(statistic$columns$level)
    x[, dummy] <- pmin(pmax(x[, dummy], 0), 1)
    expect_equal(.Call(internal("ffi_stat_eval"), internal("statistic_spec")(statistic), x), products_values(statistic, x), tolerance = 1e-12)
    expect_false(anyDuplicated(statistic$components) > 0)
    limits <- internal("component_limits")(statistic)
    inside <- products_values(statistic, products_records(statistic, matrix(runif(3000 * nrow(statistic$columns)), 3000)))
    expect_true(all(t(inside) >= limits[, 1] - 1e-12 & t(inside) <= limits[, 2] + 1e-12))
  }
  expect_identical(products_cases[[2]]$components[1:5], c("y", "x", "z", "z^2", "x:z"))
})

test_that("sensitivities: never less than numerical maximisation finds, attained where a record is added", {
  skip_on_cran()
  set.seed(2)
  for (statistic in products_cases) for (norm in c("L1", "L2")) {
    size <- function(d) if (norm == "L1") rowSums(abs(d)) else sqrt(rowSums(d^2))
    q <- nrow(statistic$columns)
    corner <- function(n) matrix(sample(c(0, 1e-9, 0.5, 1 - 1e-9), n * q, TRUE), n)
    at <- function(u) products_values(statistic, products_records(statistic, matrix(pmin(pmax(u, 0), 1 - 1e-12), ncol = q)))
    a <- corner(4000)
    b <- corner(4000)
    far <- size(at(a))
    expect_equal(max(far), sensitivity(statistic, norm, "add_remove"), tolerance = 1e-6)
    moved <- size(at(a) - at(b))
    best <- order(moved, decreasing = TRUE)[1:2]
    climbed <- vapply(best, function(k) {
      -stats::optim(c(a[k, ], b[k, ]), function(u) -size(at(u[seq_len(q)]) - at(u[-seq_len(q)])), control = list(maxit = 200))$value
    }, 0)
    stated <- sensitivity(statistic, norm)
    expect_lte(max(moved, climbed), stated * (1 + 1e-9))
    expect_gt(max(moved, climbed), 0.5 * stated)
  }
})

test_that("a release is written, read and added up", {
  data <- data.frame(y = c(1, 3, 5), x = c(1.5, 2, 3), z = c(-1, 0, 1), g = c("u", "v", "w"))
  statistic <- products_cases[[1]]
  rel <- release(data, statistic, mech_gaussian(mu = 1))
  file <- withr::local_tempfile()
  write_release(rel, file)
  expect_equal(read_release(file)$value, rel$value)
  expect_identical(read_release(file)$statistic, rel$statistic)
  parts <- list(partial_total(data[1:2, ], statistic, mech_gaussian(mu = 1), n = 3), partial_total(data[3, ], statistic, mech_gaussian(mu = 1), n = 3))
  expect_named(release(parts)$value, statistic$components)
})

test_that("moves of the response alone: the posterior without them", {
  skip_on_cran()
  set.seed(3)
  n <- 25
  data <- data.frame(x = runif(n, 1, 4), g = sample(c("u", "v"), n, TRUE))
  data$y <- 2 + data$x * (data$g == "v") + rnorm(n)
  bounds <- list(y = c(-1, 8), x = c(1, 4), g = c("u", "v"))
  for (statistic in list(stat_crossprod(y ~ x + g, bounds), stat_crossprod(y ~ x * g + I(x^2), bounds))) {
    rel <- simulate_release(data, statistic, mech_laplace(epsilon = 3))
    for (prior in list(prior_nig(), prior_normal())) {
      fit <- function(seed, ...) suppressWarnings(sample_posterior(rel, model_lm(y ~ x * g + I(x^2), prior), "augment", chains = 2, iter = 800, seed = seed, ...))
      with <- fit(1)
      without <- fit(2, control = list(passes = 10))
      expect_gt(with$info$maps_accepted %||% 1, 0)
      for (name in c("(Intercept)", "x", "gv", "I(x^2)", "x:gv", "sigma", "mean[x]")) {
        expect_agreement(parameter_draws(with, name), parameter_draws(without, name), label = name)
      }
    }
  }
})

test_that("factors alone: the table engine and imputed records agree", {
  skip_on_cran()
  data <- warpbreaks
  data$high <- as.numeric(data$breaks > 26)
  statistic <- stat_crossprod(high ~ wool + tension, list(high = c(0, 1), wool = c("A", "B"), tension = c("L", "M", "H")))
  set.seed(4)
  rel <- simulate_release(data, statistic, mech_laplace(epsilon = 5))
  for (family in list(binomial(), binomial("cloglog"))) {
    fit <- function(method, seed) suppressWarnings(sample_posterior(rel, model_glm(high ~ wool * tension, family), method, chains = 2, iter = 800, seed = seed))
    table <- fit("collapse", 1)
    records <- fit("augment", 2)
    for (name in c("(Intercept)", "woolB", "tensionH", "woolB:tensionH", "prob[wool=B]")) {
      expect_agreement(parameter_draws(table, name), parameter_draws(records, name), label = name)
    }
  }
})
