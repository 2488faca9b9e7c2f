# Quantiles by the exponential mechanism, against enumeration of all records, brute force over neighbours, and simulated releases.

# Distances from ranks by their definition, of points 0, ..., steps; x is in steps.
distances <- function(x, share, steps) {
  rank <- share * length(x)
  vapply(0:steps, function(g) max(0, sum(x < g) - rank, rank - sum(x <= g)), 0)
}

# log probability of published points
log_chance <- function(at, x, share, steps, scale) {
  sum(vapply(seq_along(at), function(k) {
    u <- -distances(x, share[k], steps) / scale
    u[at[k] + 1] - log(sum(exp(u)))
  }, 0))
}

density_of <- function(counts, at, share, slope) {
  .Call(internal("ffi_density"), list(name = "exponential", fields = list(slope = slope, share = as.double(share), at = as.double(at))), rbind(-as.double(counts)))
}

test_that("points of the grid are the nearest, records beyond the bounds at the ends", {
  st <- stat_quantiles(~ x, bounds = c(-1, 3), steps = 8)
  expect_identical(internal("grid_points")(st, 0:8), seq(-1, 3, by = 0.5))
  x <- c(-Inf, -1e300, -1, -0.76, -0.74, 0.2, 0.3, 2.74, 2.76, 3, 1e300, Inf)
  nearest <- pmin(pmax(round((x + 1) * 2), 0), 8)
  counts <- tabulate(nearest + 1, 9)
  expect_identical(internal("point_counts")(st, cbind(x)), as.double(counts))
  spec <- internal("statistic_spec")(st)
  expect_identical(.Call(internal("ffi_stat_eval"), spec, cbind(x)), outer(nearest, 0:8, `==`) + 0)
  expect_identical(st$components, c("25%", "50%", "75%"))
})

test_that("the density is that of its definition, for few points and many, ranks between records and at the ends", {
  set.seed(1)
  for (i in 1:200) {
    steps <- sample(c(1, 2, 3, 5, 7, 8, 30), 1)
    n <- sample(c(0, 1, 2, 5, 20), 1)
    x <- sample(0:steps, n, replace = TRUE)
    share <- sample(c(0, 0.25, 0.5, 0.75, 1, 3 / 8, 1 / 1024), sample(1:4, 1))
    at <- sample(0:steps, length(share), replace = TRUE)
    slope <- sample(c(0.01, 0.5, 3), 1)
    expect_equal(density_of(tabulate(x + 1, steps + 1), at, share, slope), log_chance(at, x, share, steps, 1 / slope), tolerance = 1e-12)
  }
  # neither overflow nor underflow: all records at one point, or ranks far from the published points
  expect_equal(density_of(c(0, 1e6, 0), 1, 0.5, 100), 0)
  expect_equal(density_of(c(0, 1e6, 0), 2, 0.5, 2), -1e6)
  expect_equal(density_of(c(5e5, 0, 0, 5e5), c(0, 3), c(0.5, 0.5), 1e5), -2 * log(4))
  expect_equal(density_of(rep(1, 2^12), rep(2^11, 1000), seq(0, 1, length.out = 1001)[-1], 1e-9), -1000 * log(2^12), tolerance = 1e-6)
})

test_that("four records on six points: the posterior is that of enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_quantiles(~ x, bounds = c(0, 5), probs = c(0.25, 0.6), steps = 5)
  chance <- c(0.3, 0.1, 0.25, 0.05, 0.1, 0.2)
  # a prior of two values of theta, each with its distribution on the points
  shares <- cbind(chance, rev(chance)^2 / sum(chance^2))
  records <- as.matrix(expand.grid(rep(list(0:5), 4)))
  likelihood <- function(k, at, scale) sum(apply(records, 1, function(x) prod(shares[x + 1, k]) * exp(log_chance(at, x, round(st$probs * 2^20) / 2^20, 5, scale))))
  model <- model_custom(function() c(high = stats::rbinom(1, 1, 0.5)),
                        function(theta, n) cbind(x = sample(0:5, n, TRUE, shares[, theta + 1])),
                        function(records, theta) {
                          l <- colSums(log(shares[records[, "x"] + 1, , drop = FALSE]))
                          c(high = stats::rbinom(1, 1, 1 / (1 + exp(l[1] - l[2]))))
                        }, "x")
  for (at in list(c(1, 2), c(4, 5), c(5, 0))) {
    rel <- as_release(at, st, mech_exponential(epsilon = 6), n = 4)
    expect_equal(unname(rel$scale), c(2, 2) / 3, tolerance = 1e-8)
    fit <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 1300, warmup = 200, seed = 3)
    both <- c(likelihood(1, at, 2 / 3), likelihood(2, at, 2 / 3))
    expect_same_mean(parameter_draws(fit, "high"), both[2] / sum(both))
  }
})

# The probability of published points of the grid 0, 1, 2, of n exponential records with that rate.
three_points <- function(at, n, rate, share, scale) {
  chance <- diff(stats::pexp(c(0, 0.5, 1.5, Inf), rate))
  counts <- expand.grid(0:n, 0:n)
  counts <- as.matrix(cbind(counts, n - rowSums(counts)))
  sum(apply(counts[counts[, 3] >= 0, , drop = FALSE], 1, function(k) stats::dmultinom(k, prob = chance) * exp(log_chance(at, rep(0:2, k), share, 2, scale))))
}

test_that("one site and two sites: the posterior of a rate is that of quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_quantiles(~ x, bounds = c(0, 2), probs = c(0.25, 0.75), steps = 2)
  sites <- list(a = as_release(c(0, 1), st, mech_exponential(scale = 0.5), n = 6), b = as_release(c(1, 2), st, mech_exponential(scale = 0.3), n = 7))
  rate <- seq(0.05, 6, by = 0.05)
  for (these in list("a", c("a", "b"))) {
    density <- stats::dgamma(rate, 2, 2)
    for (s in these) {
      likelihood <- vapply(rate, function(r) three_points(sites[[s]]$value, sites[[s]]$n, r, c(0.25, 0.75), sites[[s]]$scale[[1]]), 0)
      density <- density * likelihood
    }
    data <- if (length(these) == 1) sites$a else sites
    fit <- sample_posterior(data, model_exponential(prior = prior_gamma(2, 2)), pool = if (length(these) > 1) "complete", method = "augment", chains = 2,
                            iter = 1400, seed = 1)
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density), sum(rate * density) / sum(density))
  }
})

test_that("an unknown number of records: the posterior is that of enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_quantiles(~ x, bounds = c(0, 2), probs = c(0.25, 0.75), steps = 2)
  sizes <- 0:14
  likelihood <- vapply(sizes, function(n) three_points(c(0, 2), n, 1, c(0.25, 0.75), 0.5), 0) * stats::dpois(sizes, 3)
  rel <- as_release(c(0, 2), st, mech_exponential(scale = 0.5), n = NULL, neighbours = "add_remove")
  # the rate is 1, nearly
  fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(1e6, 1e6)), method = "augment", chains = 2, iter = 1400, seed = 3, prior_n = prior_n("poisson", mean = 3))
  n <- parameter_draws(fit, "n")
  expect_same_mean(n, sum(sizes * likelihood) / sum(likelihood))
  expect_same_mean(n <= 2, sum(likelihood[1:3]) / sum(likelihood))
})

test_that("counts of points are those of the records, and a chain cut in two is the same chain", {
  set.seed(4)
  st <- stat_quantiles(~ x, bounds = c(-3, 3), steps = 99)
  both <- list(q = st, s = stat_sums(~ x + I(x^2), list(x = c(-4, 4))))
  noise <- list(q = mech_exponential(epsilon = 1), s = mech_laplace(epsilon = 1))
  data <- data.frame(x = rnorm(80))
  quartiles <- list(simulate_release(data, st, mech_exponential(epsilon = 1)), simulate_release(data, both, noise))
  for (rel in quartiles) for (model in list(model_normal(), registry_models$custom)) {
    run <- function(iter) sample_posterior(rel, model, method = "augment", chains = 1, iter = iter, warmup = 60, seed = 5)
    fit <- run(160)
    expect_identical(extend(run(90), 70)$draws, fit$draws)
    state <- fit$chains[[1]]$state
    expect_identical(utils::tail(state$residual, 100), -internal("point_counts")(st, cbind(state$x[1:80])))
    parts <- internal("release_parts")(rel)
    expect_equal(internal("log_noise")(parts[[1]], data.frame(x = state$x[1:80])),
                 log_chance(round((parts[[1]]$value + 3) * 16.5), round((pmin(pmax(state$x[1:80], -3), 3) + 3) * 16.5), c(0.25, 0.5, 0.75), 99, parts[[1]]$scale[1]))
  }
})

# ---- sensitivities and the guarantee ---------------------------------------------------

neighbour_pairs <- function(steps, n, neighbours) {
  pairs <- list()
  for (x in asplit(as.matrix(expand.grid(rep(list(0:steps), n))), 1)) for (new in 0:steps) {
    pairs[[length(pairs) + 1]] <- list(as.vector(x), if (neighbours == "replace") replace(as.vector(x), 1, new) else c(as.vector(x), new))
  }
  pairs
}

test_that("sensitivities are the largest change of distances, for either kind of neighbours", {
  for (probs in list(0.5, 0.25, c(0.25, 0.5, 0.75), c(0, 1), c(0.125, 0.875))) {
    st <- stat_quantiles(~ x, bounds = c(0, 3), probs = probs, steps = 3)
    for (neighbours in c("replace", "add_remove")) {
      changes <- do.call(rbind, lapply(neighbour_pairs(3, 3, neighbours), function(p) {
        vapply(probs, function(q) max(abs(distances(p[[1]], q, 3) - distances(p[[2]], q, 3))), 0)
      }))
      # the sum over quantiles, each at its worst point
      expect_equal(sensitivity(st, "L1", neighbours), sum(apply(changes, 2, max)))
      expect_lte(max(rowSums(changes)), sensitivity(st, "L1", neighbours))
      expect_equal(sensitivity(st, "L2", neighbours), sqrt(sum(apply(changes, 2, max)^2)))
    }
  }
  expect_equal(sensitivity(st, neighbours = persons(contributions = 3)), 3 * sensitivity(st, neighbours = "add_remove"))
})

# log probabilities of all points, a column for each quantile, of what release() hands to the exact sampler
drawn_distributions <- function(x, st, mechanism, neighbours) {
  heard <- overheard("release", data.frame(x = x), st, mechanism, NULL, neighbours)
  vapply(calls_of(heard, "ffi_exact_quantile"), function(call) {
    below <- call[[2]]
    u <- -call[[4]] / call[[5]] * pmax(below[-length(below)] - call[[3]], call[[3]] - below[-1], 0)
    u - log(sum(exp(u)))
  }, numeric(st$steps + 1))
}

test_that("release() spends its epsilon and its rho, shared by the quantiles", {
  skip_on_cran() # takes long; `make test` runs it
  for (neighbours in c("replace", "add_remove")) for (probs in list(0.5, c(0.25, 0.5), 0.1)) {
    st <- stat_quantiles(~ x, bounds = c(0, 3), probs = probs, steps = 3)
    mechanism <- mech_exponential(epsilon = 1.5)
    told <- privacy(mechanism, statistic = st, neighbours = neighbours)
    cases <- without_few(lapply(neighbour_pairs(3, 3, neighbours)[seq(1, 256, by = 7)], function(p) lapply(p, drawn_distributions, st, mechanism, neighbours)))
    loss <- max(vapply(cases, function(d) sum(apply(abs(d[[1]] - d[[2]]), 2, max)), 0))
    expect_lte(loss, told$epsilon)
    # Renyi divergences of either order of the two, at orders near 1 and far from it
    renyi <- function(a, b, order) sum(log(colSums(exp(order * a - (order - 1) * b))) / (order - 1))
    for (order in c(1.001, 2, 8)) for (d in cases) {
      expect_lte(max(renyi(d[[1]], d[[2]], order), renyi(d[[2]], d[[1]], order)), told$rho * order * (1 + 1e-6))
    }
  }
  # a long grid on one side of a lone record attains it
  st <- stat_quantiles(~ x, bounds = c(0, 2^16), probs = 0.5, steps = 2^16)
  d <- without_few(lapply(list(c(0, 1), c(2^16, 1)), drawn_distributions, st, mech_exponential(epsilon = 1), "replace"))
  expect_gt(max(abs(d[[1]] - d[[2]])), 0.999)
  expect_identical(privacy(mech_exponential(epsilon = 2), statistic = st)$epsilon, 2)
  expect_equal(unlist(privacy(mech_exponential(scale = 4), statistic = st)), c(epsilon = 0.5, delta = 0, rho = 1 / 32, mu = NA))
  expect_equal(privacy(mech_exponential(epsilon = 2))$rho, 0.5)
})

test_that("the owner's draws, and simulated ones, have the probabilities of the definition", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(6)
  data <- data.frame(x = c(0.1, 0.9, 1.2, 3, 3.2, 5, 9))
  st <- stat_quantiles(~ x, bounds = c(0, 5), probs = c(0.5, 0.8), steps = 5)
  x <- pmin(round(data$x), 5)
  for (neighbours in c("replace", "add_remove")) {
    mechanism <- mech_exponential(epsilon = if (neighbours == "replace") 2 else 1.5)
    scale <- 2 * sum(if (neighbours == "replace") c(1, 1) else c(0.5, 0.8)) / mechanism$epsilon
    draw <- list(function() release(data, st, mechanism, neighbours = neighbours)$value, function() simulate_release(data, st, mechanism, neighbours = neighbours)$value)
    for (one in draw) {
      drawn <- without_few(replicate(350, one()))
      for (k in 1:2) {
        mass <- exp(-distances(x, round(st$probs[k] * 2^20) / 2^20, 5) / scale)
        expect_gt(stats::chisq.test(tabulate(drawn[k, ] + 1, 6), p = mass / sum(mass))$p.value, 1e-5)
      }
      both <- table(drawn[1, ], drawn[2, ])
      expect_gt(stats::chisq.test(both[rowSums(both) > 40, colSums(both) > 40])$p.value, 1e-5)
    }
  }
})

# ---- the rest --------------------------------------------------------------------------

test_that("intervals of 300 releases cover the truth", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_quantiles(~ x, bounds = c(-4, 4), steps = 80)
  cal <- without_few(calibrate(model_normal(prior = prior_nig(0, 1, 4, 3)), st, mech_exponential(epsilon = 4), n = 25, replicates = 300,
                               method = "augment", chains = 1, iter = 400, warmup = 150, seed = 8))
  expect_gt(min(internal("ks_uniform")(cal)$p.value), 1e-4)
  held <- coverage(cal, levels = 0.95, variables = c("mean", "sd"))
  expect_true(all(held$coverage >= 0.93 & held$coverage <= 0.97))
})

test_that("releases print, are written and read, cost their budget", {
  st <- stat_quantiles(~ lwt, bounds = list(lwt = c(0, 400)), probs = c(0.5, 0.75), steps = 400)
  path <- tempfile(fileext = ".json")
  account <- budget(epsilon = 3)
  expect_warning(rel <- release(MASS::birthwt[1:20, ], st, mech_exponential(epsilon = 2), budget = account), "\"75%\" may lie anywhere",
                 class = "noiseaware_warning_quantile")
  expect_equal(summary(account)$epsilon, 2)
  persons <- as_release(c(120, 160), st, mech_exponential(epsilon = 2), n = NULL, neighbours = persons(contributions = 2))
  expect_equal(unname(persons$scale[1]), 2 * 2 * (0.5 + 0.75) / 2, tolerance = 1e-6)
  for (r in list(rel, persons, as_release(c(120, 160), st, mech_exponential(scale = 3), n = 100))) {
    write_release(r, path)
    expect_identical(read_release(path), r)
  }
  text <- readLines(path)
  for (change in list(c('"steps": 400', '"steps": 0.5'), c('"steps": 400', '"steps": 1e9'), c("[0.5, 0.75]", "[0.5, 0.5]"), c("[0.5, 0.75]", "0.5"),
                      c("[0.5, 0.75", "[2, 0.75"), c('"~lwt"', '"~lwt + age"'), c('"50%": 120', '"50%": 120.1'), c('"scale": 3', '"scale": -3'), c("exponential", "laplace"))) {
    expect_true(any(grepl(change[1], text, fixed = TRUE)))
    writeLines(sub(change[1], change[2], text, fixed = TRUE), path)
    expect_error(read_release(path), class = "noiseaware_error_file")
  }
  rel$value[] <- c(121, 170)
  expect_snapshot(rel)
  expect_snapshot(st)
  expect_true(all(is.na(noise_sd(rel))))
  expect_identical(format(mech_exponential(scale = 2)), "exponential mechanism, scale 2")
  quick <- function(...) sample_posterior(rel, model_normal(), chains = 1, iter = 20, warmup = 10, ...)
  expect_error(denoise(quick()), class = "noiseaware_error_argument")
})

test_that("chunks, files and several owners have the counts of all records, and their release has the chances of the definition", {
  st <- stat_quantiles(~ x, bounds = c(0, 5), probs = c(0.25, 0.6), steps = 5)
  mechanism <- mech_exponential(epsilon = 3)
  records <- data.frame(x = c(0.2, 4.5, 4.6, 1.5, 2.5, 3.1, 0.9, 7))
  whole <- partial_total(records, st, mechanism)
  file <- withr::local_tempfile(fileext = ".csv")
  write.csv(records, file, row.names = FALSE)
  expect_identical(partial_total(record_source(file, rows = 3), st, mechanism), whole)
  left <- 0
  chunks <- function() {
    left <<- left + 1
    list(records[1:5, , drop = FALSE], records[6:8, , drop = FALSE], NULL)[[left]]
  }
  expect_identical(partial_total(record_source(chunks), st, mechanism), whole)
  parts <- list(partial_total(records[1:2, , drop = FALSE], st, mechanism), partial_total(records[3:8, , drop = FALSE], st, mechanism))
  draws <- without_few(replicate(1000, release(parts)$value))
  scale <- internal("mechanism_scale")(mechanism, st)
  x <- pmin(floor(records$x + 0.5), 5)
  for (k in 1:2) {
    u <- exp(-distances(x, st$probs[k], 5) / scale[k])
    expect_gt(stats::chisq.test(tabulate(draws[k, ] + 1, 6), p = u / sum(u))$p.value, 1e-6)
  }
  found <- suppressWarnings(list(release(parts), release(records, st, mechanism)))
  expect_identical(found[[1]][c("n", "scale", "granularity")], found[[2]][c("n", "scale", "granularity")])
})

test_that("bad input, and methods that need totals, are refused", {
  st <- stat_quantiles(~ x, bounds = c(0, 4), steps = 4)
  rel <- as_release(c(1, 2, 3), st, mech_exponential(epsilon = 1), n = 20)
  few <- data.frame(x = c(1, 2))
  show(refusals("formula", alist(stat_quantiles(y ~ x, c(0, 1)), stat_quantiles(~ x + y, list(x = c(0, 1), y = c(0, 1))), stat_quantiles(3, c(0, 1)))))
  show(refusals("bounds", alist(stat_quantiles(~ x, c(1, 0)), stat_quantiles(~ x, list(x = c("a", "b"))), stat_quantiles(~ x, list(y = c(0, 1))))))
  show(refusals("argument", alist(stat_quantiles(~ x, c(0, 1), probs = 1.5), stat_quantiles(~ x, c(0, 1), probs = c(0.5, 0.5)), stat_quantiles(~ x, c(0, 1), probs = "a"),
                                  stat_quantiles(~ x, c(0, 1), probs = (0:1000) / 1000), stat_quantiles(~ x, c(0, 1), steps = 0),
                                  stat_quantiles(~ x, c(0, 1), steps = 2^21))))
  show(refusals("mechanism", alist(mech_exponential(), mech_exponential(epsilon = 1, scale = 1), mech_exponential(scale = c(1, 2)), mech_exponential(1),
                                   release(few, st, mech_laplace(epsilon = 1)), release(few, stat_sums(~ x, c(0, 1)), mech_exponential(epsilon = 1)),
                                   release(few, st, mech_exponential(epsilon = 1e-9)), as_release(1:3, st, mech_exponential(scale = 1e-9), n = 3),
                                   as_release(1:3, st, published(mech_exponential(epsilon = 1), round = 1), n = 3))))
  show(refusals("value", alist(as_release(c(1, 2.5, 3), st, mech_exponential(epsilon = 1), n = 20), as_release(c(1, 2, 5), st, mech_exponential(epsilon = 1), n = 20),
                               as_release(c(1, 2), st, mech_exponential(epsilon = 1), n = 20))))
  show(refusals("method", alist(sample_posterior(rel, model_normal(), method = "clt"), sample_posterior(rel, model_normal(), method = "collapse"),
                                sample_posterior(rel, model_normal(), method = "naive"), sample_posterior(list(a = rel, b = rel), model_normal(), pool = "complete"),
                                sample_posterior(list(a = rel, b = rel), model_normal(), pool = "complete", method = "clt"), p_value(rel, model_normal(), 2))))
})

test_that("a fit to quantiles alone says that its mean rests on the model", {
  st <- stat_quantiles(~ x, bounds = c(0, 8), steps = 8)
  alone <- as_release(c(2, 3, 5), st, mech_exponential(epsilon = 1), n = 40)
  said <- function(release) capture.output(print(sample_posterior(release, model_normal(), chains = 1, iter = 40, seed = 1)))
  expect_match(suppressWarnings(said(alone)), "only quantiles were released", all = FALSE)
  sums <- stat_sums(~ x + I(x^2), list(x = c(0, 8)))
  both <- as_release(list(q = c(2, 3, 5), s = c(-10, 9)), list(q = st, s = sums), list(q = mech_exponential(epsilon = 1), s = mech_laplace(epsilon = 1)), n = 40)
  expect_false(any(grepl("only quantiles", suppressWarnings(said(both)))))
})
