# Noise whose density is given at points.

truncated <- function(e) ifelse(abs(e) <= 5, exp(-abs(e) / 2), 0)
gap <- function(e) (abs(e) >= 2) * pmax(0, 6 - abs(e))
laplace_points <- function(scale) mech_tabulated(exp(-c(1, 0, 1)), c(-1, 0, 1), scale = scale)
cut_points <- function(scale, times = 4) mech_tabulated(exp(-c(times, 0, times)), c(-times, 0, times), lower = -times, upper = times, scale = scale)

# log density of the noise as C evaluates it
log_tabulated <- function(mechanism, noise) {
  rel <- as_release(c(x = 0), stat_sums(~ x, bounds = list(x = c(0, 1))), mechanism, n = 1)
  internal("log_noise_of_totals")(internal("component_parts")(rel)[[1]], 1, -noise) + internal("log_noise_constant")(rel, NULL)
}

drawn_noise <- function(mechanism, count) {
  set.seed(4)
  internal("add_noise")(mechanism, NULL, numeric(count), runif(count), rep(internal("noise_table")(mechanism)$spread * mechanism$scale, count))
}

# mechanism, density, sd, and values of the noise at which it is compared
densities <- list(
  laplace = list(laplace_points(3), function(e) dexp(abs(e), 1 / 3) / 2, sqrt(18)),
  truncated = list(mech_tabulated(truncated, lower = -5, upper = 5), function(e) truncated(e) / (4 * pexp(5, 0.5)), NULL),
  cut = list(cut_points(2), function(e) ifelse(abs(e) <= 8, dexp(abs(e), 0.5) / 2 / pexp(4), 0), NULL),
  student = list(mech_tabulated(function(e) dt(e, 4), scale = 3), function(e) dt(e / 3, 4) / 3, 3 * sqrt(2)),
  normal = list(mech_tabulated(dnorm), dnorm, 1),
  shifted = list(mech_tabulated(function(e) exp(-(e - 20)^2 / 2), grid = 20), function(e) dnorm(e, 20), 1),
  exponential = list(mech_tabulated(function(e) dexp(e, 2), lower = 0), function(e) dexp(e, 2), 0.5),
  mixture = list(mech_tabulated(function(e) 0.9 * dnorm(e) + 0.1 * dnorm(e, 0, 30)), function(e) 0.9 * dnorm(e) + 0.1 * dnorm(e, 0, 30), sqrt(0.9 + 90)),
  uniform = list(mech_tabulated(c(1, 1), c(-5, 5), lower = -5, upper = 5), function(e) dunif(e, -5, 5), 10 / sqrt(12)),
  found_uniform = list(mech_tabulated(function(e) dunif(e, -5, 5)), function(e) dunif(e, -5, 5), 10 / sqrt(12)),
  triangular = list(mech_tabulated(c(0, 1, 0), c(-5, 0, 5)), function(e) pmax(0, 5 - abs(e)) / 25, 5 / sqrt(6)),
  jump = list(mech_tabulated(c(1, 1, 3, 3), c(0, 1, 1, 2), lower = 0, upper = 2), function(e) ifelse(e >= 0 & e <= 2, ifelse(e < 1, 1, 3) / 4, 0), NULL),
  gap = list(mech_tabulated(gap, lower = -6, upper = 6), function(e) gap(e) / 16, NULL)
)

test_that("the table has the density, and draws, sd and evidence follow it", {
  for (name in names(densities)) {
    mechanism <- densities[[name]][[1]]
    density <- densities[[name]][[2]]
    draws <- drawn_noise(mechanism, 4000)
    e <- c(draws, seq(-11, 11, by = 0.25)) # ends and jumps are among these
    expected <- log(density(e))
    found <- log_tabulated(mechanism, e)
    expect_identical(found < -25, expected < -25, label = name)
    body <- expected > max(expected) - 18
    expect_lt(max(abs(found - expected)[body]), 2e-5, label = name)
    total <- function(end) stats::integrate(density, -Inf, end, subdivisions = 4000L, rel.tol = 1e-8, stop.on.error = FALSE)$value
    if (!name %in% c("mixture", "shifted", "jump")) for (p in c(0.1, 0.5, 0.93)) {
      end <- quantile(draws, p)
      most <- (mechanism$upper %||% Inf) * mechanism$scale
      half <- if (end > 0) 1 - stats::integrate(density, end, most, subdivisions = 4000L)$value else total(end)
      expect_lt(abs(half - p), 4 / sqrt(4000))
    }
    sd <- densities[[name]][[3]]
    st <- stat_sums(~ x, bounds = list(x = c(0, 1)))
    if (!is.null(sd)) expect_equal(unname(noise_sd(st, mechanism)), sd, tolerance = 1e-4)
    expect_lt(abs(stats::sd(draws) / noise_sd(st, mechanism) - 1), 0.12)
  }
  # no variance: half the width of the central 68.3 per cent
  expect_equal(unname(noise_sd(stat_size(), mech_tabulated(dcauchy), neighbours = "add_remove")), qcauchy(pnorm(1)), tolerance = 1e-4)
})

test_that("with the Laplace density, counts and rates have the very draws of mech_laplace()", {
  same <- function(value, statistic, model, scale, ..., tolerance = 1e-8) {
    fits <- lapply(list(mech_laplace(scale = scale), laplace_points(scale)), function(m) {
      sample_posterior(as_release(value, statistic, m, ...), model, chains = 1, iter = 200, seed = 3)
    })
    expect_identical(fits[[2]]$method, "collapse")
    expect_equal(as.numeric(fits[[2]]$draws), as.numeric(fits[[1]]$draws), tolerance = tolerance)
    fits
  }
  two <- stat_counts(~ x, levels = list(x = c("a", "b")))
  fits <- same(c(`x=a` = 140, `x=b` = 60), two, model_bernoulli(), 4, n = 200)
  expect_equal(as.numeric(log_evidence(fits[[2]])), as.numeric(log_evidence(fits[[1]])), tolerance = 1e-8)
  # steps of its sums follow the scale
  same(c(x = 130), stat_sums(~ x, list(x = c(0, 20)), rescale = FALSE, outside = "none"), model_exponential(), 5, n = 50, tolerance = 1e-3)
  same(c(`y=a:x=u` = 30, `y=a:x=v` = 20, `y=b:x=u` = 25, `y=b:x=v` = 44), stat_counts(~ y:x, list(y = c("a", "b"), x = c("u", "v"))), model_naive_bayes("y"), 3, n = 120)
})

test_that("counts: the exact posterior, by enumeration", {
  two <- stat_counts(~ x, levels = list(x = c("a", "b")))
  n <- 20
  k <- 0:n
  cases <- list(truncated = list(mech_tabulated(truncated, lower = -5, upper = 5), truncated, 4 * pexp(5, 0.5)),
                student = list(mech_tabulated(function(e) dt(e, 3), scale = 2), function(e) dt(e / 2, 3), 2),
                gap = list(mech_tabulated(gap, lower = -6, upper = 6), gap, 16),
                stairs = list(mech_tabulated(function(e) exp(-floor(abs(e) + 0.6)), lower = -30, upper = 30),
                              function(e) ifelse(abs(e) <= 30, exp(-floor(abs(e) + 0.6)), 0), 2 * (0.4 + sum(exp(-(1:29))))))
  for (name in names(cases)) {
    density <- cases[[name]][[2]]
    for (z in list(c(9, 14), c(6, 9))) {
      fit <- sample_posterior(as_release(c(`x=a` = z[1], `x=b` = z[2]), two, cases[[name]][[1]], n = n), model_bernoulli(), chains = 2, iter = 1800, seed = 3)
      probability <- density(z[1] - (n - k)) * density(z[2] - k) # k is uniform
      p <- seq(0, 1, by = 0.001)
      posterior <- colSums(probability * outer(k, p, function(k, p) dbeta(p, k + 1, n - k + 1)))
      expect_distribution(parameter_draws(fit, "prob[b]"), grid_quantile(p, posterior), sum(p * posterior) / sum(posterior))
      counts <- posterior::as_draws_matrix(denoise(fit))
      expect_true(all(density(sweep(-counts, 2, -z)) > 0))
      exact <- log(sum(probability) / 21) - 2 * log(cases[[name]][[3]])
      expect_equal(as.numeric(log_evidence(fit)), exact, tolerance = 1e-4)
    }
  }
})

test_that("totals: the exact posterior of one record, and starts and draws inside the support", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 60)), rescale = FALSE)
  z <- c(3, 15)
  rate <- seq(0.01, 12, by = 0.01)
  x <- seq(0.001, 60, by = 0.005)
  noise <- sweep(-cbind(x, x^2), 2, z, "+")
  cases <- list(list(mech_tabulated(dcauchy, scale = 0.7), function(e) dcauchy(e, scale = 0.7)),
                list(mech_tabulated(truncated, lower = -5, upper = 5), truncated), list(cut_points(2, 3), function(e) ifelse(abs(e) <= 6, dexp(abs(e), 0.5), 0)))
  for (case in cases) {
    rel <- as_release(c(x = 3, `x^2` = 15), st, case[[1]], n = 1)
    fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(3, 2)), chains = 2, iter = 3600, warmup = 500, seed = 8)
    eta <- case[[2]](noise[, 1]) * case[[2]](noise[, 2])
    density <- vapply(rate, function(r) dgamma(r, 3, 2) * sum(dexp(x, r) * eta), 0)
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density), sum(rate * density) / sum(density))
    held <- sweep(-posterior::as_draws_matrix(denoise(fit)), 2, -z)
    expect_true(all(case[[2]](held) > 0))
  }
})

test_that("mean and sd: the exact posterior when the records are inside the bounds", {
  skip_on_cran() # takes long; `make test` runs it
  # the total of n normal records of sd 1 is normal; the mean's prior is normal
  n <- 20
  model <- model_normal(prior = list(mean = prior_normal(0, 2), sd = fixed(1)))
  st <- stat_sums(~ x, bounds = list(x = c(-40, 40)), rescale = FALSE)
  mu <- seq(-5, 5, by = 0.01)
  for (case in list(list(mech_tabulated(function(e) dt(e, 3), scale = 8), function(e) dt(e / 8, 3)),
                    list(cut_points(10, 1.5), function(e) ifelse(abs(e) <= 15, exp(-abs(e) / 10), 0)),
                    list(mech_tabulated(function(e) gap(e / 6), lower = -36, upper = 36), function(e) gap(e / 6)))) {
    fit <- sample_posterior(as_release(c(x = 30), st, case[[1]], n = n), model, chains = 4, iter = 1800, seed = 5)
    s <- seq(-40, 100, by = 0.05)
    density <- vapply(mu, function(m) dnorm(m, 0, 2) * sum(dnorm(s, n * m, sqrt(n)) * case[[2]](30 - s)), 0)
    expect_distribution(parameter_draws(fit, "mean"), grid_quantile(mu, density), sum(mu * density) / sum(density))
    expect_true(all(case[[2]](30 - as.numeric(denoise(fit))) > 0))
  }
})

test_that("bounded noise: chains start inside the support, and stop where there is none", {
  skip_on_cran()
  set.seed(1)
  x <- runif(100, -1, 1)
  st <- stat_crossprod(y ~ x, list(y = c(-2, 2), x = c(-1, 1)))
  value <- internal("statistic_total")(st, data.frame(y = 0.3 + 0.5 * x + rnorm(100, 0, 0.3), x = x))
  # from draws of the prior, about half of these chains found no way when the search was greedy
  for (seed in 1:4) {
    fit <- suppressWarnings(sample_posterior(as_release(value, st, cut_points(2), n = 100), model_lm(), chains = 4, iter = 60, warmup = 20, seed = seed))
    expect_true(all(abs(sweep(posterior::as_draws_matrix(denoise(fit)), 2, value)) <= 8 + 1e-9))
  }
  two <- stat_counts(~ x, levels = list(x = c("a", "b")))
  none <- as_release(c(`x=a` = 30, `x=b` = 2), two, mech_tabulated(c(1, 1), c(-1, 1), lower = -1, upper = 1), n = 20)
  for (method in c("augment", "collapse")) {
    expect_error(sample_posterior(none, model_bernoulli(), method = method, chains = 1, iter = 40, seed = 1), class = "noiseaware_error_impossible")
  }
  # tables that are moved, without a start of their own
  table <- list(a = c("u", "v", "w"), b = c("u", "v"), c = c("u", "v", "w"))
  margins <- list(ab = stat_counts(~ a:b, table[1:2]), bc = stat_counts(~ b:c, table[2:3]))
  records <- expand.grid(a = table$a, b = table$b, c = table$c)[rep(1:18, 11:28), ]
  value <- lapply(margins, function(margin) internal("statistic_total")(margin, records) + 1)
  narrow <- function() cut_points(2, 2)
  fit <- sample_posterior(as_release(value, margins, list(ab = narrow(), bc = narrow()), n = nrow(records)), model_table(~ a:b + b:c), chains = 2, iter = 600, seed = 1)
  expect_identical(fit$method, "collapse")
  held <- posterior::as_draws_matrix(denoise(fit))
  expect_true(all(abs(sweep(held, 2, unlist(value))) <= 4 + 1e-9))
  value$bc[1] <- value$bc[1] + 100 # the margins differ by more than the noise can
  apart <- as_release(value, margins, list(ab = narrow(), bc = narrow()), n = nrow(records))
  expect_error(sample_posterior(apart, model_table(~ a:b + b:c), chains = 1, iter = 200, seed = 1),
               class = "noiseaware_error_impossible")
})

test_that("several parts, subsets, queries, sites and unknown numbers of records agree with mech_laplace()", {
  skip_on_cran() # takes long; `make test` runs it
  agree <- function(make, fit) {
    draws <- lapply(list(mech_laplace, laplace_points), function(of) posterior::as_draws_matrix(fit(make(of))))
    for (name in colnames(draws[[1]])) expect_agreement(draws[[1]][, name], draws[[2]][, name], spread = FALSE, label = name)
  }
  two <- stat_counts(~ x, levels = list(x = c("a", "b")))
  counts <- function(of, a, b, n = NULL) as_release(c(`x=a` = a, `x=b` = b), two, of(scale = 4), n = n)
  run <- function(model, ...) function(release) suppressWarnings(sample_posterior(release, model, chains = 2, iter = 1800, seed = 2, ...))$draws
  agree(function(of) list(a = counts(of, 140, 60, 200), b = counts(of, 61, 42, 105), c = counts(of, 38, 40, 75)), run(model_bernoulli(), pool = "complete"))
  agree(function(of) counts(of, 140, 60), run(model_bernoulli(), prior_n = prior_n("uniform", lower = 50, upper = 500)))
  levels <- list(x = c("a", "b", "c"))
  queries <- stat_linear(stat_counts(~ x, levels), list(ab = c("x=a", "x=b"), gap = c(`x=a` = 1, `x=b` = -0.5)))
  agree(function(of) as_release(c(ab = 50, gap = 5), queries, of(scale = 3), n = 80), run(model_categorical()))
  both <- list(t = stat_sums(~ x, list(x = c(0, 10)), rescale = FALSE), q = stat_sums(~ I(x^2), list(x = c(0, 10))))
  agree(function(of) as_release(list(t = c(x = 250), q = c(`x^2` = 760)), both, list(t = of(scale = 9), q = mech_gaussian(sd = 2)), n = 100), run(model_normal()))
  # noise keeps its scale when a regression uses some of the totals
  wide <- stat_crossprod(y ~ x + w, list(y = c(-2, 2), x = c(-1, 1), w = c(-1, 1)))
  value <- setNames(c(10, 2, 3, 30, 8, 5, 33, 1, 32), wide$components)
  agree(function(of) as_release(value, wide, of(scale = 2), n = 100), run(model_lm(y ~ x)))
  # heavy tails: sites are pooled by imputing records
  total <- stat_sums(~ x, list(x = c(0, 20)), rescale = FALSE)
  heavy <- lapply(c(a = 130, b = 100), function(v) as_release(c(x = v), total, mech_tabulated(dcauchy, scale = 4), n = 50))
  expect_identical(sample_posterior(heavy, model_poisson(), pool = "partial", chains = 1, iter = 200, seed = 1)$problem$method, "pool_records")
  expect_error(sample_posterior(heavy, model_poisson(), method = "collapse", pool = "partial", chains = 1, iter = 200, seed = 1), class = "noiseaware_error_method")
})

test_that("calibration under bounded and heavy-tailed noise", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(-3, 3)), rescale = FALSE)
  for (mechanism in list(cut_points(4, 3), mech_tabulated(function(e) dt(e, 3), scale = 4))) {
    calibration <- calibrate(model_normal(), st, mechanism, n = 30, replicates = 80, method = "augment", chains = 1, iter = 440, seed = 1) |>
      suppressWarnings() |> suppressMessages()
    expect_true(all(summary(calibration)$in_band))
  }
})

test_that("random factors with a hole about 1: the exact posterior of a count and of a total, on both sides", {
  hole <- function(m) as.numeric(abs(m - 1) >= 0.07 & abs(m - 1) <= 0.15)
  skewed <- function(m) dlnorm(m, 0, 0.3)
  times <- function(f, z) if (identical(f, hole)) mech_tabulated(f, lower = 0.85, upper = 1.15, product = z) else mech_tabulated(f, product = z)
  two <- stat_counts(~ x, levels = list(x = c("a", "b")))
  k <- 1:400
  for (f in list(hole, skewed)) {
    fit <- sample_posterior(as_release(c(b = 131), two, times(f, 131), n = 400), model_bernoulli(), chains = 4, iter = 1500, seed = 1)
    counts <- posterior::extract_variable_matrix(denoise(fit), "x=b")
    expect_same_mean(counts, weighted.mean(k, f(131 / k) / k))
    expect_same_mean(1 * (counts < 131), weighted.mean(k < 131, f(131 / k) / k))
    # of each count its own factor
    both <- sample_posterior(as_release(c(a = 240, b = 131), two, times(f, c(a = 240, b = 131)), n = 400), model_bernoulli(), chains = 4, iter = 1500, seed = 1)
    weight <- f(131 / k) / k * c(f(240 / (400 - k[-400])) / (400 - k[-400]), 0)
    counts <- posterior::extract_variable_matrix(denoise(both), "x=b")
    expect_same_mean(counts, weighted.mean(k, weight))
    expect_same_mean(1 * (counts < 131), weighted.mean(k < 131, weight))
  }
  # one record cannot cross the hole
  st <- stat_sums(~ x, list(x = c(-40, 60)), rescale = FALSE)
  model <- model_normal(prior = list(mean = prior_normal(0, 10), sd = fixed(1)))
  fit <- sample_posterior(as_release(c(x = 1000), st, times(hole, 1000), n = 200), model, chains = 4, iter = 1500, seed = 2)
  mean <- seq(3, 7, by = 0.002)
  total <- seq(800, 1250, by = 0.25)
  density <- vapply(mean, function(m) dnorm(m, 0, 10) * sum(dnorm(total, 200 * m, sqrt(200)) * hole(1000 / total) / total), 0)
  expect_distribution(parameter_draws(fit, "mean"), grid_quantile(mean, density), sum(mean * density) / sum(density))
  refused <- function(...) expect_error(mech_tabulated(...), class = "noiseaware_error_mechanism")
  refused(hole, product = 0)
  refused(hole, product = c(10, -3))
  refused(hole, product = 10, scale = 2)
  refused(c(1, 1), c(0.9, 1.1), lower = 0.9, upper = 1.1, product = 10)
  refused(function(m) dunif(m, 0, 1), product = 10) # the mean of 1 / m is infinite
  expect_error(mech_tabulated(function(m) 1, product = 10), class = "noiseaware_error_custom")
})

test_that("a file keeps the table, and release() and others refuse it", {
  two <- stat_counts(~ x, levels = list(x = c("a", "b")))
  path <- tempfile()
  for (mechanism in list(cut_points(c(`x=a` = 4, `x=b` = 2)), laplace_points(3), mech_tabulated(gap, lower = -6, upper = 6), mech_tabulated(dexp, lower = 0))) {
    rel <- as_release(c(`x=a` = 30, `x=b` = 20), two, mechanism, n = 50)
    write_release(rel, path)
    expect_identical(read_release(path)$mechanism, rel$mechanism)
    expect_identical(read_release(path)$scale, rel$scale)
  }
  expect_snapshot({
    print(cut_points(c(`x=a` = 4, `x=b` = 2)))
    print(mech_tabulated(c(0, 1, 0), c(-5, 0, 5)))
    privacy(laplace_points(3))
  })
  refused <- function(code, class) expect_error(code, class = paste0("noiseaware_error_", class))
  refused(release(data.frame(x = c("a", "b")), two, laplace_points(3)), "mechanism")
  refused(published(laplace_points(3), round = 5), "mechanism")
  refused(as_release(1:10, stat_records(~ x, bounds = list(x = c(0, 1))), laplace_points(1), n = 10), "mechanism")
  refused(sample_posterior(as_release(c(`x=a` = 30, `x=b` = 20), two, laplace_points(3), n = 50), model_bernoulli(), method = "clt"), "method")
})

test_that("tables and functions that are no densities are refused", {
  refused <- function(code, class = "mechanism") expect_error(code, class = paste0("noiseaware_error_", class))
  refused(mech_tabulated("normal"))
  refused(mech_tabulated(1, 0))
  refused(mech_tabulated(c(1, 1))) # no points
  refused(mech_tabulated(c(1, -1, 1), 1:3))
  refused(mech_tabulated(c(1, NA, 1), 1:3))
  refused(mech_tabulated(c(0, 0, 0), 1:3))
  refused(mech_tabulated(c(0, 1, 0), c(1, 3, 2)))
  refused(mech_tabulated(c(0, 1, 0), 1:2))
  refused(mech_tabulated(c(1, 1), c(-5, 5))) # no end, and flat
  refused(mech_tabulated(c(1, 2, 3), 1:3)) # rises beyond
  refused(mech_tabulated(c(1, 1), c(-5, 5), lower = -4, upper = 5))
  refused(mech_tabulated(c(1, 1), c(-5, 5), lower = -5, upper = 6))
  refused(mech_tabulated(dnorm, lower = 3, upper = 3))
  refused(mech_tabulated(dnorm, lower = NA))
  refused(mech_tabulated(dnorm, scale = 0))
  refused(mech_tabulated(dnorm, NULL, 3))
  refused(mech_tabulated(function(e) 0 * e))
  refused(mech_tabulated(function(e) 1 / (1 + abs(e)))) # infinite
  refused(mech_tabulated(function(e) 2 + sin(1e7 * e), lower = 0, upper = 1))
  refused(mech_tabulated(function(e) 1), "custom")
  refused(mech_tabulated(function(e) -dnorm(e)), "custom")
  refused(mech_tabulated(function(e) 1 / e), "custom")
  refused(mech_tabulated(function(e) stop("no")), "custom")
})

test_that("hardly any noise of another kind is not impossible noise: draws are kept", {
  data <- data.frame(c = rep(0:4, 20), x = rep(c(1, 3, 7, 9), 25))
  set.seed(1)
  rel <- simulate_release(data, stat_crossprod(c ~ x, list(c = c(0, 20), x = c(0, 10)), rescale = FALSE), mech_gaussian(sd = 1e-6))
  fit <- suppressWarnings(sample_posterior(rel, model_glm(family = "negative_binomial"), "augment", chains = 2, iter = 60, warmup = 20, seed = 1))
  expect_identical(posterior::ndraws(fit$draws), 80L)
  expect_lt(min(vapply(fit$chains, function(chain) min(chain$log_noise), 0)), -5e8)
})
