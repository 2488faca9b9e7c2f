# Totals whose noise has a hole: src/records/hole_crossings.c, walks that go farther (src/mcmc/adapt_proposals.c, src/totals/rate_total.c).

hole <- function(m) as.numeric(abs(m - 1) >= 0.07 & abs(m - 1) <= 0.15)
times <- function(z) mech_tabulated(hole, lower = 0.85, upper = 1.15, product = z)
holed <- function(scale) mech_tabulated(function(e) (abs(e) >= 2) * pmax(0, 6 - abs(e)), lower = -6, upper = 6, scale = scale)

test_that("a total of records under an unknown rate: on both sides, by quadrature", {
  # log density of the total; the rate's prior is gamma
  cases <- list(
    augment = list(stat_sums(~ x, list(x = c(0, 1000)), rescale = FALSE), model_exponential(prior = prior_gamma(1, 1)),
                   seq(800, 1400, by = 0.25), function(s, n) (n - 1) * log(s) - (n + 1) * log1p(s)),
    collapse = list(stat_sums(~ x, list(x = c(0, 200)), rescale = FALSE, outside = "none"), model_poisson(prior = prior_gamma(1, 1)),
                    800:1400, function(s, n) s * log(n) - (s + 1) * log1p(n)))
  narrow <- function(z) mech_tabulated(function(m) as.numeric(abs(m - 1) >= 0.09), lower = 0.9, upper = 1.1, product = z)
  for (case in cases) for (noise in list(list(times, hole), list(narrow, function(m) as.numeric(abs(m - 1) >= 0.09 & abs(m - 1) <= 0.1)))) {
    z <- c(x = 1100)
    fit <- suppressWarnings(sample_posterior(as_release(z, case[[1]], noise[[1]](z), n = 200), case[[2]], chains = 4, iter = 2900, seed = 1))
    s <- case[[3]]
    log_density <- case[[4]](s, 200)
    weight <- exp(log_density - max(log_density)) * noise[[2]](z / s) / s
    totals <- posterior::extract_variable_matrix(denoise(fit), "x")
    expect_same_mean(1 * (totals < z), sum(weight[s < z]) / sum(weight))
    expect_gt(posterior::ess_bulk(1 * (totals < z)), 100)
  }
})

test_that("the sum and the sum of squares of normal records: four modes, by quadrature", {
  n <- 40
  z <- c(x = 40, `x^2` = 170)
  rel <- as_release(z, stat_sums(~ x + I(x^2), list(x = c(-100, 100)), rescale = FALSE), times(z), n = n)
  moments <- expand.grid(x = seq(34, 48, by = 0.05), square = seq(147, 201, by = 0.2))
  scatter <- moments$square - moments$x^2 / n
  sigma <- exp(seq(-1.5, 2.5, by = 0.02))
  given_sigma <- vapply(sigma, function(s) {
    dlnorm(s, 0, 0.5) * s * exp(-(n - 1) * log(s) - scatter / (2 * s^2)) * dnorm(moments$x / n, 0, sqrt(9 + s^2 / n))
  }, numeric(nrow(moments)))
  cases <- list(
    # the sd integrated out, and not
    list(model_normal(prior = prior_nig(0, 0.1, 2, 4)), -(2 + n / 2) * log(4 + scatter / 2 + 0.1 * n / (n + 0.1) * (moments$x / n)^2 / 2)),
    list(model_lm(x ~ 1, prior = prior_normal(0, 3), sigma = prior_lognormal(0, 0.5)), log(rowSums(given_sigma))))
  for (case in cases) {
    fit <- sample_posterior(rel, case[[1]], method = "augment", chains = 2, iter = 3000, seed = 1)
    log_density <- (n - 3) / 2 * log(scatter) + case[[2]]
    weight <- exp(log_density - max(log_density)) * hole(z[[1]] / moments$x) / moments$x * hole(z[[2]] / moments$square) / moments$square
    totals <- posterior::as_draws_array(denoise(fit))
    expect_same_mean(totals[, , "x"], weighted.mean(moments$x, weight))
    expect_same_mean(totals[, , "x^2"], weighted.mean(moments$square, weight))
    expect_same_mean(1 * (totals[, , "x"] < z[[1]] & totals[, , "x^2"] < z[[2]]), weighted.mean(moments$x < z[[1]] & moments$square < z[[2]], weight))
  }
})

test_that("cross-products of a regression converge", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, list(y = c(-40, 60), x = c(-40, 60)), rescale = FALSE)
  z <- c(y = 994, x = 904, `y^2` = 5310, `y:x` = 4650, `x^2` = 6390)[st$components]
  fit <- suppressMessages(sample_posterior(as_release(z, st, times(z), n = 200), model_lm(), iter = 1000, seed = 1))
  expect_gt(min(internal("mixing_diagnostics")(fit)$ess), 200) # 10 without crossings
})

test_that("crossings leave the joint distribution", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  wide <- list(x = c(-30, 30), y = c(-30, 30))
  st <- stat_sums(~ x + I(y^2) + y:x + I(x^2), wide, rescale = FALSE)
  model <- model_mvnormal(c("x", "y"), prior_niw(c(0.2, -0.3), 1, matrix(c(4, 1, 1, 6), 2), 12))
  expect_prior(geweke(model, st, holed(0.3), 5, 20000, NULL, warmup = 300L), prior_draws(model, st))
})

test_that("components that may cross are those of tabulated noise with a hole, one for each moment", {
  crossings <- function(statistic, mechanism, model = model_mvnormal()) {
    rel <- as_release(lapply(statistic, function(s) rep(1, length(s$components))), statistic, mechanism, n = 20)
    bound <- internal("bind_model")(internal("complete_model")(model, rel), rel$statistic)
    internal("hole_crossings")(bound, internal("component_parts")(rel), 20)
  }
  two <- list(x = c(-1, 1), y = c(-3, 1))
  a <- stat_sums(~ x + y, two)
  b <- stat_sums(~ x:y + I(x^2) + x, two)
  found <- crossings(list(a = a, b = b), list(a = mech_laplace(scale = 1), b = holed(2)))
  expect_identical(diff(found$first), c(0L, 2L, 2L, 2L))
  expect_equal(found$centre, rep(c(-8, 8), 3), tolerance = 0.01)
  expect_null(crossings(list(a = a, b = b), list(a = mech_laplace(scale = 1), b = mech_laplace(scale = 2))))
  expect_null(crossings(list(a = a, b = stat_sums(~ I(x^3), two["x"])), list(a = holed(1), b = holed(2))))
})

# Filled holes of tables.
test_that("counts and their margins, each with a factor of its own: the tables on all sides, by enumeration", {
  apart <- function(m) as.numeric(abs(m - 1) >= 0.25 & abs(m - 1) <= 0.45)
  st <- stat_counts(~ a + a:b, levels = list(a = c("x", "y"), b = c("u", "v")))
  z <- stats::setNames(c(24, 23, 10, 14, 12, 12), st$components)
  noise <- mech_tabulated(apart, lower = 0.55, upper = 1.45, product = unname(z))
  cells <- as.matrix(expand.grid(6:19, 9:26, 8:22, 8:22)) # others are too far from what was published
  totals <- cbind(cells[, 1] + cells[, 2], cells[, 3] + cells[, 4], cells)
  density <- Reduce(`*`, lapply(1:6, function(j) ifelse(totals[, j] > 0, apart(z[[j]] / totals[, j]) / totals[, j], 0)))
  possible <- density > 0
  totals <- totals[possible, ]
  n <- rowSums(totals[, 3:6])
  # Dirichlet(1, 1, 1, 1): all tables of n records have the same probability
  weight <- density[possible] / choose(n + 3, 3)
  # n may be anything, or it is 51: one row is on one side then, and the other on the other
  for (known in list(NULL, 51)) {
    rel <- as_release(z, st, noise, n = known, neighbours = if (is.null(known)) "add_remove" else "replace")
    given <- if (is.null(known)) list(prior_n = prior_n("uniform", 0, 200))
    fit <- do.call(sample_posterior, c(list(rel, model_table(~ a:b, prior = prior_dirichlet(1)), chains = 2, iter = 1000, seed = 1), given))
    inside <- if (is.null(known)) TRUE else n == 51
    exact <- function(x) weighted.mean(x[inside], weight[inside])
    counts <- posterior::as_draws_array(denoise(fit))
    for (j in 1:6) {
      expect_same_mean(counts[, , st$components[j]], exact(totals[, j]))
      expect_same_mean(1 * (counts[, , st$components[j]] < z[[j]]), exact(totals[, j] < z[[j]]))
    }
    expect_same_mean(1 * (counts[, , "a=x"] > z[[1]] & counts[, , "a=x:b=u"] < z[[3]]), exact(totals[, 1] > z[[1]] & totals[, 3] < z[[3]]))
    expect_gt(min(internal("mixing_diagnostics")(fit)$ess), 140)
  }
  # probabilities that are not integrated out: given them there may be no table outside the holes
  fit <- sample_posterior(as_release(z, st, noise, n = 51), model_table(~ a:b, prior = prior_normal(0, 2)), chains = 2, iter = 1000, seed = 1)
  beta <- as.matrix(expand.grid(rep(list(seq(-4, 4, by = 0.4)), 3))) # beyond them is nothing
  eta <- cbind(0, beta[, 2], beta[, 1], rowSums(beta))
  log_p <- eta - log(rowSums(exp(eta)))
  inside <- which(n == 51)
  weight <- vapply(inside, function(i) density[possible][i] * sum(exp(log_p %*% totals[i, 3:6] - rowSums(beta^2) / 8)) / prod(factorial(totals[i, 3:6])), 0)
  counts <- posterior::as_draws_array(denoise(fit))
  for (j in 1:6) {
    expect_same_mean(counts[, , st$components[j]], weighted.mean(totals[inside, j], weight))
    expect_same_mean(1 * (counts[, , st$components[j]] < z[[j]]), weighted.mean(totals[inside, j] < z[[j]], weight))
  }
  # nothing fits: no chain looks for ever
  expect_error(sample_posterior(as_release(z, st, noise, n = 45), model_table(~ a:b), chains = 1, iter = 6, seed = 1), class = "noiseaware_error_impossible")
})

test_that("chains find tables outside fourteen holes at once", {
  hair <- apply(datasets::HairEyeColor, c(1, 3), sum)
  st <- stat_counts(~ a + b + a:b, list(a = rownames(hair), b = colnames(hair)))
  counts <- unname(c(rowSums(hair), colSums(hair), t(hair)))
  for (seed in 1:2) {
    factors <- withr::with_seed(seed, 1 + sample(c(-1, 1), 14, TRUE) * runif(14, 0.07, 0.15))
    rel <- as_release(stats::setNames(counts * factors, st$components), st, times(counts * factors), n = NULL, neighbours = "add_remove")
    fit <- suppressWarnings(sample_posterior(rel, model_table(~ a:b), chains = 2, iter = 700, seed = seed))
    expect_true(all(is.finite(unlist(lapply(fit$chains, `[[`, "log_noise")))))
    expect_lt(max(internal("mixing_diagnostics")(fit)$rhat), 1.1)
  }
})
