# Models of one number: their hooks one by one, against formulas written in R,
# and the sampler against enumeration, quadrature and closed forms.

both <- function(mean, sd) model_normal(prior = list(mean = mean, sd = sd))
models <- list(
  poisson = model_poisson(prior = prior_gamma(2.5, 0.7)),
  exponential = model_exponential(prior = prior_gamma(3, 4)),
  nig = model_normal(prior = prior_nig(1, 2, 3, 5)),
  mean = both(prior_normal(1, 2), fixed(1.5)),
  sd = both(fixed(0.7), prior_inverse_gamma(3, 2)),
  semi = both(prior_normal(-1, 2), prior_inverse_gamma(4, 3))
)
uni_statistic <- stat_sums(~ x, list(x = c(-2, 20)))
uni_bind <- function(model, statistic = uni_statistic) internal("bind_model")(model, statistic)
uni_stream <- function(seed) internal("new_stream")(c(17, seed))
uni_prior <- function(bound, draws, seed = 1) .Call(internal("ffi_model_prior"), bound$spec, uni_stream(seed), as.integer(draws))$theta
uni_records <- function(bound, theta, n, seed = 1) {
  drop(.Call(internal("ffi_model_records"), bound$spec, as.double(theta), as.integer(n), uni_stream(seed))$records)
}
uni_move <- function(bound, from, to, x, seed = 31) {
  drop(.Call(internal("ffi_model_move"), bound$spec, as.double(from), as.double(to), cbind(x), uni_stream(seed)))
}
theta_of <- function(bound, ...) internal("bound_theta")(bound, c(...))

test_that("records formed from innovations are those that are drawn from them", {
  box <- list(x = c(-1, 1), z = c(-1, 1), u = c(-1, 1))
  bounds <- lapply(c(models, list(model_poisson(prior = prior_gamma(80, 0.4)))), uni_bind)
  bounds <- c(bounds, list(internal("bind_model")(model_mvnormal(), stat_sums(~ x + z + u, box, rescale = FALSE)),
                           internal("bind_model")(model_lm(), stat_crossprod(x ~ z + u, box))))
  for (bound in bounds) {
    theta <- uni_prior(bound, 1)
    formed <- .Call(internal("ffi_model_formed"), bound$spec, theta, 101L, uni_stream(3))
    expect_equal(formed, .Call(internal("ffi_model_records"), bound$spec, theta, 101L, uni_stream(3))$records, tolerance = 1e-14)
  }
  # a mean beyond the table is for rejection
  expect_null(.Call(internal("ffi_model_formed"), bounds[[1]]$spec, log(400), 5L, uni_stream(3)))
})

expect_plausible <- function(p, what = NULL) expect_gt(p, 1e-6, label = paste("p-value of", what))
expect_cdf <- function(x, cdf, ..., what = NULL) {
  u <- sort(match.fun(cdf)(x, ...))
  n <- length(u)
  distance <- max(u - (seq_len(n) - 1) / n, seq_len(n) / n - u)
  expect_plausible(2 * exp(-2 * n * distance^2), what)
}

# A discrete distribution: uniform after the step of the distribution function is filled.
expect_discrete <- function(x, cdf, what = NULL) {
  expect_true(all(x == floor(x)))
  low <- cdf(x - 1)
  expect_cdf(low + runif(length(x)) * (cdf(x) - low), "punif", what = what)
}

# The same on its cells, for many draws.
expect_cells <- function(x, cdf, what) {
  n <- length(x)
  first <- min(x)
  count <- tabulate(x - first + 1)
  edges <- first + seq_along(count) - 1
  expected <- n * diff(c(0, cdf(edges[-length(edges)]), 1))
  seen <- expected > 20
  expect_plausible(pchisq(sum(((count - expected)^2 / expected)[seen]), sum(seen) - 1, lower.tail = FALSE), what)
}

# (a, b) and (b, a) have the same distribution
expect_exchangeable <- function(a, b, breaks) {
  table <- table(cut(a, breaks), cut(b, breaks))
  folded <- table + t(table)
  off <- upper.tri(table) & folded > 10
  expect_plausible(pchisq(sum((table - t(table))[off]^2 / folded[off]), sum(off), lower.tail = FALSE), "symmetry")
  expect_gt(sum(off), 2)
}

# ---- parameters and priors -----------------------------------------------------

test_that("draws are reported on the natural scale, and bound_theta inverts them", {
  shown <- list(poisson = "rate", exponential = "rate", nig = c("mean", "sd"), mean = "mean", sd = "sd", semi = c("mean", "sd"))
  for (name in names(models)) {
    bound <- uni_bind(models[[name]])
    expect_identical(bound$parameters, shown[[name]])
    theta <- uni_prior(bound, 5)
    report <- internal("reported")(bound, theta)
    natural <- if (nrow(theta) == 1) exp(theta) else rbind(theta[1, ], exp(theta[2, ]))
    rownames(natural) <- if (nrow(theta) == 1) "rate" else c("mean", "sd")
    expect_equal(report, t(natural)[, bound$parameters, drop = FALSE], tolerance = 1e-15)
    for (i in 1:5) expect_equal(internal("bound_theta")(bound, report[i, ]), theta[, i], tolerance = 1e-12)
  }
  expect_identical(uni_prior(uni_bind(models$mean), 3)[2, ], rep(log(1.5), 3))
  expect_identical(uni_prior(uni_bind(models$sd), 3)[1, ], rep(0.7, 3))
})

log_inverse_gamma <- function(v, shape, rate) shape * log(rate) - lgamma(shape) - (shape + 1) * log(v) - rate / v

test_that("the prior density in theta's coordinates is the natural one times the Jacobian", {
  # log density of the unknown natural parameters (sd^2 for the sd)
  natural <- list(
    poisson = function(p) dgamma(p[1], 2.5, 0.7, log = TRUE),
    exponential = function(p) dgamma(p[1], 3, 4, log = TRUE),
    nig = function(p) dnorm(p[1], 1, sqrt(p[2] / 2), log = TRUE) + log_inverse_gamma(p[2], 3, 5),
    mean = function(p) dnorm(p[1], 1, 2, log = TRUE),
    sd = function(p) log_inverse_gamma(p[1], 3, 2),
    semi = function(p) dnorm(p[1], -1, 2, log = TRUE) + log_inverse_gamma(p[2], 4, 3)
  )
  for (name in names(models)) {
    bound <- uni_bind(models[[name]])
    theta <- uni_prior(bound, 8, seed = 3)
    free <- function(th) {
      if (length(th) == 1) return(exp(th))
      c(th[1], exp(2 * th[2]))[bound$moves]
    }
    expected <- apply(theta, 2, function(th) {
      jacobian <- sapply(bound$moves, function(j) {
        step <- replace(numeric(length(th)), j, 1e-5)
        (free(th + step) - free(th - step)) / 2e-5
      })
      natural[[name]](free(th)) + as.numeric(determinant(as.matrix(jacobian))$modulus)
    })
    got <- .Call(internal("ffi_model_log_prior"), bound$spec, theta)
    expect_equal(diff(got), diff(expected), tolerance = 1e-7)
    expect_gt(max(abs(diff(expected))), 0.1)
  }
})

test_that("prior draws follow the prior", {
  n <- 20000
  for (shape in c(0.3, 1, 6)) {
    for (constructor in list(model_poisson, model_exponential)) {
      theta <- uni_prior(uni_bind(constructor(prior = prior_gamma(shape, 2))), n)
      expect_cdf(exp(drop(theta)), "pgamma", shape, 2)
    }
  }
  # a rate so small that it is no double still has a logarithm
  tiny <- drop(uni_prior(uni_bind(model_poisson(prior = prior_gamma(1e-3, 1))), 1000))
  expect_true(all(is.finite(tiny)) && min(tiny) < -2000)
  expect_cdf(1e-3 * tiny, function(q) exp(q)) # U^(1/shape) for so small a shape

  theta <- uni_prior(uni_bind(models$nig), n)
  expect_cdf(exp(-2 * theta[2, ]), "pgamma", 3, 5)
  expect_cdf((theta[1, ] - 1) / sqrt(5 / 3 / 2), "pt", 6)
  expect_cdf((theta[1, ] - 1) / exp(theta[2, ]) * sqrt(2), "pnorm")
  theta <- uni_prior(uni_bind(models$semi), n)
  expect_cdf(exp(-2 * theta[2, ]), "pgamma", 4, 3)
  expect_cdf((theta[1, ] + 1) / 2, "pnorm")
})

test_that("default priors are scaled by the bounds", {
  st <- stat_sums(~ x, list(x = c(2, 14)))
  expect_identical(uni_bind(model_poisson(), st)$spec$fields, list(shape = 1, rate = 1 / 8))
  expect_identical(uni_bind(model_poisson(prior = prior_gamma(4)), st)$spec$fields, list(shape = 4, rate = 0.5))
  expect_identical(uni_bind(model_exponential(), st)$spec$fields, list(shape = 1, rate = 8))
  expect_identical(uni_bind(model_exponential(prior = prior_gamma(rate = 3)), st)$spec$fields, list(shape = 1, rate = 3))
  fields <- uni_bind(model_normal(), st)$spec$fields
  expect_equal(fields[c("centre", "prior_mean", "prior_precision", "nig", "shape", "rate")],
               list(centre = 8, prior_mean = 8, prior_precision = 1 / 16, nig = 1, shape = 3 / 4, rate = 1.2^2))
  open <- uni_bind(model_normal(prior = list(mean = prior_normal(), sd = fixed(1))), st)$spec$fields
  expect_equal(open[c("prior_mean", "prior_precision")], list(prior_mean = 8, prior_precision = 1 / 36))
  # as the regression without covariates
  lm <- internal("bind_model")(model_lm(x ~ 1, prior_nig()), stat_crossprod(x ~ 1, list(x = c(2, 14))))$spec$fields
  expect_equal(c(lm$beta_precision, lm$sigma_inverse_gamma), c(1 / 16, 3 / 4, 1.2^2))
})

# ---- records -----------------------------------------------------------------

test_that("records follow their distribution", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(50)
  n <- 1e5
  bound <- uni_bind(models$poisson)
  for (rate in c(1e-5, 0.3, 4, 12, 23.99, 24, 60, 1e4, 1e9)) {
    x <- uni_records(bound, log(rate), n)
    expect_discrete(x, function(q) ppois(q, rate), paste("Poisson records, rate", rate))
    expect_lt(abs(mean(x) - rate) / sqrt(rate / n), 5)
    expect_lt(abs(mean((x - rate)^2) - rate) / sqrt((rate + 2 * rate^2) / n), 5)
  }
  for (rate in c(0.3, 4, 24, 70)) {
    expect_cells(uni_records(bound, log(rate), 2e6, seed = 2), function(q) ppois(q, rate), paste("cells, rate", rate))
  }
  expect_identical(uni_records(bound, -1e4, 9), numeric(9))
  expect_cdf(uni_records(uni_bind(models$exponential), log(2.5), n), "pexp", 2.5)
  expect_cdf(uni_records(uni_bind(models$nig), c(3, log(0.4)), n), "pnorm", 3, 0.4)
  # blocks of any size, one after the other from one stream
  for (model in models[c("poisson", "exponential", "nig")]) {
    bound <- uni_bind(model)
    theta <- uni_prior(bound, 1)
    x <- uni_records(bound, theta, 600)
    expect_identical(length(unique(uni_records(bound, theta, 600, seed = 2) == x)), if (model$name == "poisson") 2L else 1L)
    expect_identical(x[1:256], uni_records(bound, theta, 256))
  }
})

test_that("innovations of continuous records stay with a move", {
  bound <- uni_bind(models$exponential)
  x <- uni_records(bound, log(2), 517)
  moved <- uni_move(bound, log(2), log(5), x)
  expect_equal(moved * 5, x * 2, tolerance = 1e-14)
  expect_equal(uni_move(bound, log(5), log(2), moved), x, tolerance = 1e-14)
  bound <- uni_bind(models$nig)
  from <- c(1, log(2))
  x <- uni_records(bound, from, 517)
  for (to in list(c(1, log(3)), c(-4, log(2)), c(100, log(0.1)))) {
    moved <- uni_move(bound, from, to, x)
    expect_equal((moved - to[1]) / exp(to[2]), (x - 1) / 2, tolerance = 1e-10)
    expect_equal(uni_move(bound, to, from, moved), x, tolerance = 1e-10)
  }
})

test_that("large rates: a smaller one thins the arrivals of a Poisson record, a larger one adds some", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(51)
  bound <- uni_bind(models$poisson)
  n <- 30000
  for (case in list(c(3, 0.98), c(3, 0.6), c(3, 0.1), c(0, 0.5), c(1, 0.5), c(60, 0.9), c(60, 0.5), c(63, 0.2), c(64, 0.01), c(1000, 0.9999),
                    c(1000, 0.97), c(1e5, 0.3), c(1e5, 0.7), c(1e9, 0.5))) {
    moved <- uni_move(bound, log(500), log(500 * case[2]), rep(case[1], n))
    expect_true(all(moved >= 0 & moved <= case[1]))
    expect_discrete(moved, function(q) pbinom(q, case[1], case[2]), paste(c("binomial", case), collapse = " "))
  }
  for (case in list(c(24, 0.5), c(40, 0.3), c(300, 0.5), c(300, 0.95))) {
    moved <- uni_move(bound, log(500), log(500 * case[2]), rep(case[1], 1e6))
    expect_cells(moved, function(q) pbinom(q, case[1], case[2]), paste(c("binomial cells", case), collapse = " "))
  }
  # unequal records, block by block
  x <- rep(c(0, 2, 50, 7, 0, 1), length.out = n)
  moved <- uni_move(bound, log(500), log(400), x)
  low <- pbinom(moved - 1, x, 0.8)
  expect_cdf(low + runif(n) * (pbinom(moved, x, 0.8) - low), "punif")
  for (more in c(1e-3, 0.3, 0.7, 5, 50)) {
    added <- uni_move(bound, log(500), log(500 + more), x) - x
    expect_discrete(added, function(q) ppois(q, more), paste("added", more))
    # to each record its own
    if (more >= 0.3) expect_lt(abs(cor(added[-1], added[-n])), 5 / sqrt(n))
  }
  expect_identical(uni_move(bound, log(500), log(500), x), x)
  expect_identical(uni_move(bound, log(500), -1e4, x), numeric(n))
  # called twice with the same stream it gives the same records
  expect_identical(uni_move(bound, log(500), log(400), x), moved)
})

test_that("small rates: a Poisson record stays the quantile of its uniform number, the whole matrix", {
  skip_on_cran() # takes long; `make test` runs it
  bound <- uni_bind(models$poisson)
  n <- 50000
  for (rates in list(c(3, 3.4), c(3, 0.5), c(0.2, 6), c(80, 78))) {
    for (x in qpois(c(0.01, 0.4, 0.99), rates[1])) {
      moved <- uni_move(bound, log(rates[1]), log(rates[2]), rep(x, n))
      from <- ppois(c(x - 1, x), rates[1])
      to <- (min(moved) - 1):(max(moved) + 1)
      overlap <- pmin(from[2], ppois(to, rates[2])) - pmax(from[1], ppois(to - 1, rates[2]))
      p <- pmax(overlap, 0) / diff(from)
      expect_equal(sum(p), 1, tolerance = 1e-3)
      seen <- table(factor(moved, to))
      expect_true(all(seen[p == 0] == 0))
      if (sum(p > 0) > 1) expect_plausible(chisq.test(seen[p > 0], p = p[p > 0], rescale.p = TRUE, simulate.p.value = any(n * p[p > 0] < 5))$p.value)
    }
  }
  x <- as.double(rpois(n, 5))
  expect_identical(uni_move(bound, log(5), log(5), x), x)
  expect_identical(uni_move(bound, log(5), log(4), x), uni_move(bound, log(5), log(4), x))
  # beyond what the distribution can give
  moved <- uni_move(bound, log(5), log(4), c(1e9, 300, 0))
  expect_true(all(is.finite(moved) & moved >= 0 & moved < 512))
})

test_that("moved records follow the new parameter, and the way back has the same distribution", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(52)
  n <- 50000
  bound <- uni_bind(models$poisson)
  for (rates in list(c(0.6, 0.4), c(5, 4.8), c(5, 2), c(40, 30), c(40, 5), c(310, 305), c(310, 290))) {
    x <- uni_records(bound, log(rates[1]), n)
    down <- uni_move(bound, log(rates[1]), log(rates[2]), x)
    expect_discrete(down, function(q) ppois(q, rates[2]))
    y <- uni_records(bound, log(rates[2]), n, seed = 7)
    up <- uni_move(bound, log(rates[2]), log(rates[1]), y)
    expect_discrete(up, function(q) ppois(q, rates[1]))
    # f(x) k(x, x') = f(x') k(x', x): the pairs of both ways side by side
    cut <- function(v, rate) findInterval(v, unique(qpois(c(0.1, 0.3, 0.5, 0.7, 0.9), rate)) + 0.5)
    pairs <- rbind(c(table(factor(10 * cut(x, rates[1]) + cut(down, rates[2]), 0:59))),
                   c(table(factor(10 * cut(up, rates[1]) + cut(y, rates[2]), 0:59))))
    pairs <- pairs[, colSums(pairs) > 20]
    expect_gt(ncol(pairs), 3)
    expect_plausible(chisq.test(pairs)$p.value)
  }
})

# ---- updates of the parameters given the records ---------------------------------

test_that("complete-data statistics are sums", {
  set.seed(54)
  expected <- list(poisson = sum, exponential = sum, nig = function(x) c(sum(x - 9), sum((x - 9)^2)))
  for (name in names(expected)) {
    bound <- uni_bind(models[[name]])
    for (n in c(1, 3, 4, 257, 1000)) {
      x <- rpois(n, 8) + if (name == "poisson") 0 else runif(n)
      added <- .Call(internal("ffi_model_complete"), bound$spec, cbind(x))
      expect_equal(added, expected[[name]](x), tolerance = 1e-13)
    }
  }
  # far from zero nothing cancels
  bound <- uni_bind(models$nig, stat_sums(~ x, list(x = c(1e9 - 10, 1e9 + 10))))
  x <- 1e9 + c(-1, 0.5, 2)
  expect_equal(.Call(internal("ffi_model_complete"), bound$spec, cbind(x)), c(1.5, 5.25), tolerance = 1e-12)
})

uni_gibbs <- function(bound, x, draws = 20000, steps = 1L) {
  complete <- .Call(internal("ffi_model_complete"), bound$spec, cbind(as.double(x)))
  start <- list(theta = uni_prior(bound, 1), state = uni_stream(9))
  internal("reported")(bound, internal("gibbs")(bound, complete, length(x), start, c(as.integer(draws), steps), NULL)$theta)
}

test_that("theta given the records is the conjugate posterior", {
  x <- c(4, 0, 7, 5, 5)
  expect_cdf(uni_gibbs(uni_bind(models$poisson), x)[, "rate"], "pgamma", 2.5 + 21, 0.7 + 5)
  expect_cdf(uni_gibbs(uni_bind(model_poisson(prior = prior_gamma(0.2, 1))), numeric(3))[, "rate"], "pgamma", 0.2, 4)
  x <- c(0.3, 2, 0.1, 0.9)
  expect_cdf(uni_gibbs(uni_bind(models$exponential), x)[, "rate"], "pgamma", 3 + 4, 4 + sum(x))

  x <- c(2.1, -0.4, 5.3, 3.3, 1.0, 4.8)
  n <- length(x)
  draws <- uni_gibbs(uni_bind(models$nig), x)
  kappa <- 2 + n
  centre <- (2 * 1 + sum(x)) / kappa
  rate <- 5 + (sum(x^2) + 2 - kappa * centre^2) / 2
  expect_cdf(draws[, "sd"]^-2, "pgamma", 3 + n / 2, rate)
  expect_cdf((draws[, "mean"] - centre) / sqrt(rate / ((3 + n / 2) * kappa)), "pt", 6 + n)
  expect_cdf((draws[, "mean"] - centre) * sqrt(kappa) / draws[, "sd"], "pnorm")

  draws <- uni_gibbs(uni_bind(models$mean), x)
  precision <- n / 1.5^2 + 1 / 4
  expect_cdf(draws[, "mean"], "pnorm", (sum(x) / 1.5^2 + 1 / 4) / precision, 1 / sqrt(precision))
  draws <- uni_gibbs(uni_bind(models$sd), x)
  expect_cdf(draws[, "sd"]^-2, "pgamma", 3 + n / 2, 2 + sum((x - 0.7)^2) / 2)

  # independent priors: one after the other, against the mean's marginal
  draws <- uni_gibbs(uni_bind(models$semi), x, steps = 3L)
  grid <- seq(-8, 12, length.out = 4001)
  density <- dnorm(grid, -1, 2) * (3 + vapply(grid, function(m) sum((x - m)^2), 0) / 2)^-(4 + n / 2)
  expect_distribution(draws[, "mean"], grid_quantile(grid, density), sum(grid * density) / sum(density))
})

test_that("an update that cannot be is an error, not a draw", {
  bad <- function(model, complete) {
    bound <- uni_bind(model)
    start <- list(theta = uni_prior(bound, 1), state = uni_stream(9))
    expect_error(internal("gibbs")(bound, complete, 3, start, c(10L, 1L), NULL), class = "noiseaware_error_numerical")
  }
  bad(models$poisson, -5)
  bad(models$poisson, NaN)
  bad(models$exponential, -5)
  bad(models$exponential, Inf)
  bad(models$nig, c(1, Inf))
})

# ---- the sampler against exact answers --------------------------------------------

# The posterior on a grid of parameters (rows) from a partition of the records'
# values: the mass of each cell given the parameter, and the components of the
# statistic there. n <= 3 records are enumerated.
cell_density <- function(release, prior, mass, value) {
  n <- release$n
  t <- plain_components(release$statistic, value)
  cells <- nrow(t)
  index <- as.matrix(expand.grid(rep(list(seq_len(cells)), n)))
  s <- Reduce(`+`, lapply(seq_len(n), function(i) t[index[, i], , drop = FALSE]))
  noise <- exp(log_noise(release$mechanism$kernel, unname(release$scale), unname(release$value), s))
  # one record after the other is summed out, the last ones first
  likelihood <- matrix(noise, ncol = cells) %*% t(mass)
  for (left in rev(seq_len(n - 1))) {
    likelihood <- vapply(seq_len(nrow(mass)), function(g) drop(matrix(likelihood[, g], ncol = cells) %*% mass[g, ]), numeric(cells^(left - 1)))
    likelihood <- matrix(likelihood, ncol = nrow(mass))
  }
  prior * drop(likelihood)
}

# ~ x or ~ x + I(x^2)
plain_components <- function(statistic, x) {
  lower <- statistic$columns$lower
  upper <- statistic$columns$upper
  v <- if (statistic$outside == "drop") ifelse(x < lower | x > upper, 0, x) else pmin(pmax(x, lower), upper)
  if (length(statistic$components) == 2) cbind(v, v^2) else cbind(v)
}

# cells of equal width over the bounds, and what lies below and above
cells_between <- function(bounds, count) {
  edges <- seq(bounds[1], bounds[2], length.out = count + 1)
  list(edges = edges, value = c(bounds[1] - 1, edges[-1] - diff(edges) / 2, bounds[2] + 1))
}
cell_mass <- function(edges, cdf) diff(c(0, cdf(edges), 1))

both_samplers <- function(release, model, iter = 3600) {
  lapply(list(plain = list(passes = 0), interwoven = list()), function(control) {
    sample_posterior(release, model, chains = 2, iter = iter, warmup = 1000, seed = 12, control = control)
  })
}

# Noise so large that no way between likely databases is barred: one record
# changes at a time.
cases <- list(
  list(n = 1, outside = "clamp", noise = function(scale) mech_laplace(scale = scale)),
  list(n = 1, outside = "drop", noise = function(scale) mech_gaussian(sd = 0.8 * scale)),
  list(n = 2, outside = "drop", noise = function(scale) mech_laplace(scale = 1.2 * scale)),
  list(n = 2, outside = "clamp", noise = function(scale) mech_gaussian(sd = scale)),
  list(n = 3, outside = "clamp", noise = function(scale) mech_laplace(scale = 0.7 * scale)),
  list(n = 3, outside = "drop", noise = function(scale) mech_gaussian(sd = scale))
)
case_release <- function(case, formula, box, each, noise) {
  st <- stat_sums(formula, list(x = box), case$outside, rescale = FALSE)
  d <- seq_along(st$components)
  as_release(each[d] * case$n, st, case$noise(noise[d]), case$n)
}

test_that("Poisson records, enumerated", {
  skip_on_cran() # takes long; `make test` runs it
  rate <- exp(seq(log(1e-3), log(40), length.out = 400))
  prior <- dgamma(rate, 1.5, 0.5)
  x <- 0:6
  mass <- cbind(outer(rate, x, function(r, x) dpois(x, r)), ppois(5, rate, lower.tail = FALSE))
  for (case in cases) {
    # 6 lies above the upper bound
    rel <- case_release(case, if (case$n == 2) ~ x + I(x^2) else ~ x, c(0, 5), c(2.4, 8.8), c(1, 8))
    density <- cell_density(rel, prior, mass[, c(1:6, 8)], 0:6)
    expect_equal(rowSums(mass[, c(1:6, 8)]), rep(1, 400))
    for (fit in both_samplers(rel, model_poisson(prior = prior_gamma(1.5, 0.5)))) {
      expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density))
    }
  }
})

test_that("exponential records, by quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  rate <- exp(seq(log(1e-3), log(20), length.out = 300))
  prior <- dgamma(rate, 2, 2)
  for (case in cases) {
    cells <- cells_between(c(0.5, 3), if (case$n == 3) 40 else 100)
    mass <- t(vapply(rate, function(r) cell_mass(cells$edges, function(q) pexp(q, r)), numeric(length(cells$value))))
    rel <- case_release(case, if (case$n == 2) ~ x + I(x^2) else ~ x, c(0.5, 3), c(1.2, 2.5), c(1, 3))
    density <- cell_density(rel, prior, mass, cells$value)
    for (fit in both_samplers(rel, model_exponential(prior = prior_gamma(2, 2)))) {
      expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density))
    }
  }
})

test_that("normal records, by quadrature, the mean or the sd unknown", {
  skip_on_cran() # takes long; `make test` runs it
  box <- c(-1, 2)
  mean <- seq(-8, 9, length.out = 300)
  sd <- exp(seq(log(0.1), log(20), length.out = 300))
  for (case in cases) {
    cells <- cells_between(box, if (case$n == 3) 40 else 100)
    rel <- case_release(case, if (case$n == 1) ~ x else ~ x + I(x^2), box, c(0.7, 1.4), c(1, 1.5))
    mass <- t(vapply(mean, function(m) cell_mass(cells$edges, function(q) pnorm(q, m, 1.5)), numeric(length(cells$value))))
    density <- cell_density(rel, dnorm(mean, 0.5, 2), mass, cells$value)
    for (fit in both_samplers(rel, both(prior_normal(0.5, 2), fixed(1.5)))) {
      expect_distribution(parameter_draws(fit, "mean"), grid_quantile(mean, density))
    }
    mass <- t(vapply(sd, function(s) cell_mass(cells$edges, function(q) pnorm(q, 0.3, s)), numeric(length(cells$value))))
    prior <- exp(log_inverse_gamma(sd^2, 2, 1.5)) * 2 * sd
    density <- cell_density(rel, prior, mass, cells$value)
    for (fit in both_samplers(rel, both(fixed(0.3), prior_inverse_gamma(2, 1.5)))) {
      expect_distribution(parameter_draws(fit, "sd"), grid_quantile(sd, density))
    }
  }
})

test_that("normal records, by quadrature, mean and sd unknown", {
  skip_on_cran() # takes long; `make test` runs it
  box <- c(-1, 2)
  mean <- seq(-7, 8, length.out = 121)
  sd <- exp(seq(log(0.15), log(15), length.out = 61))
  grid <- expand.grid(mean = mean, sd = sd)
  cells <- cells_between(box, 50)
  mass <- t(mapply(function(m, s) cell_mass(cells$edges, function(q) pnorm(q, m, s)), grid$mean, grid$sd))
  variance <- exp(log_inverse_gamma(grid$sd^2, 3, 2)) * 2 * grid$sd
  priors <- list(nig = dnorm(grid$mean, 0.5, grid$sd / sqrt(0.5)) * variance, semi = dnorm(grid$mean, 0.5, 1) * variance)
  models <- list(nig = model_normal(prior = prior_nig(0.5, 0.5, 3, 2)), semi = both(prior_normal(0.5, 1), prior_inverse_gamma(3, 2)))
  for (case in cases[3:4]) {
    rel <- case_release(case, ~ x + I(x^2), box, c(0.6, 1.5), c(1, 1.5))
    for (name in names(models)) {
      density <- matrix(cell_density(rel, priors[[name]], mass, cells$value), 121)
      for (fit in both_samplers(rel, models[[name]], iter = 3600)) {
        # sums over a grid even in log sd
        expect_distribution(parameter_draws(fit, "mean"), grid_quantile(mean, drop(density %*% sd)))
        expect_distribution(parameter_draws(fit, "sd"), grid_quantile(sd, colSums(density)))
      }
    }
  }
})

test_that("fifty records and wide bounds: closed forms", {
  skip_on_cran() # takes long; `make test` runs it
  wide <- list(x = c(-1e4, 1e4))
  # normal, sd known: z is normal
  rel <- as_release(61, stat_sums(~ x, wide), mech_gaussian(sd = 12), 50)
  precision <- 50^2 / (50 * 1.5^2 + 12^2)
  v <- 1 / (precision + 1 / 4)
  m <- v * (precision * 61 / 50 + 0.5 / 4)
  for (fit in both_samplers(rel, both(prior_normal(0.5, 2), fixed(1.5)))) {
    expect_distribution(parameter_draws(fit, "mean"), function(p) qnorm(p, m, sqrt(v)), m)
  }
  # normal, mean known: the total of squares is sd^2 times a chi-square
  rel <- as_release(150, stat_sums(~ I(x^2), wide), mech_laplace(scale = 30), 50)
  sd <- exp(seq(log(0.4), log(5), length.out = 400))
  w <- seq(5, 150, length.out = 2001)
  likelihood <- vapply(sd, function(s) sum(dchisq(w, 50) * exp(-abs(150 - s^2 * w) / 30)), 0)
  density <- likelihood * exp(log_inverse_gamma(sd^2, 3, 4)) * sd
  for (fit in both_samplers(rel, both(fixed(0), prior_inverse_gamma(3, 4)))) {
    expect_distribution(parameter_draws(fit, "sd"), grid_quantile(sd, density))
  }
  # the total of Poisson records is Poisson, that of exponential ones gamma
  rel <- as_release(190, stat_sums(~ x, wide), mech_laplace(scale = 25), 50)
  rate <- seq(0.01, 14, length.out = 800)
  likelihood <- vapply(rate, function(r) sum(dpois(0:1500, 50 * r) * exp(-abs(190 - 0:1500) / 25)), 0)
  for (fit in both_samplers(rel, model_poisson(prior = prior_gamma(2, 0.5)))) {
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, likelihood * dgamma(rate, 2, 0.5)))
  }
  rel <- as_release(40, stat_sums(~ x, wide), mech_gaussian(sd = 15), 50)
  rate <- exp(seq(log(0.2), log(20), length.out = 800))
  s <- seq(0.1, 160, length.out = 3001)
  likelihood <- vapply(rate, function(r) sum(dgamma(s, 50, r) * dnorm(40, s, 15)), 0)
  for (fit in both_samplers(rel, model_exponential(prior = prior_gamma(2, 1)))) {
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, likelihood * dgamma(rate, 2, 1)))
  }
})

test_that("large counts: rejection in the sampler", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(6100, stat_sums(~ x, list(x = c(0, 1e5))), mech_gaussian(sd = 60), 60)
  rate <- seq(60, 150, length.out = 800)
  likelihood <- vapply(rate, function(r) sum(dpois(0:9000, 60 * r) * dnorm(6100, 0:9000, 60)), 0)
  for (fit in both_samplers(rel, model_poisson(prior = prior_gamma(2, 0.02)), iter = 2100)) {
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, likelihood * dgamma(rate, 2, 0.02)))
  }
})

test_that("with endless noise it is the prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ x + I(x^2), list(x = c(0, 10)), rescale = FALSE)
  rel <- as_release(c(0, 0), st, mech_laplace(scale = 1e9), 4)
  rates <- list(model_poisson(prior = prior_gamma(2.5, 0.7)), model_exponential(prior = prior_gamma(2.5, 0.7)))
  for (model in rates) {
    for (fit in both_samplers(rel, model)) expect_distribution(parameter_draws(fit, "rate"), function(p) qgamma(p, 2.5, 0.7), 2.5 / 0.7)
  }
  for (fit in both_samplers(rel, models$nig, iter = 7200)) {
    expect_distribution(parameter_draws(fit, "sd"), function(p) sqrt(1 / qgamma(1 - p, 3, 5)))
    expect_distribution(parameter_draws(fit, "mean"), function(p) 1 + sqrt(5 / 3 / 2) * qt(p, 6), 1)
  }
})

test_that("the running total equals its recomputation", {
  set.seed(55)
  st <- stat_sums(~ x + I(x^2), list(x = c(0, 8)), "drop", rescale = FALSE)
  for (model in list(models$poisson, models$exponential, models$nig)) {
    rel <- simulate_release(model, st, mech_laplace(epsilon = 3), n = 301)
    fit <- sample_posterior(rel, model, chains = 1, iter = 600, warmup = 100, seed = 3)
    x <- fit$chains[[1]]$state$x[1:301]
    s <- colSums(plain_components(st, x))
    last <- as.numeric(posterior::subset_draws(denoise(fit), iteration = 500))
    expect_equal(last, unname(s), tolerance = 1e-9)
    expect_identical(sample_posterior(rel, model, chains = 1, iter = 600, warmup = 100, seed = 3)$draws, fit$draws)
  }
})

test_that("chains start where they are told to", {
  st <- stat_sums(~ x, list(x = c(0, 10)))
  rel <- as_release(12, st, mech_laplace(epsilon = 1), 3)
  starts <- list(poisson = c(rate = 7), exponential = c(rate = 0.02), nig = c(mean = -40, sd = 3))
  for (name in names(starts)) {
    bound <- uni_bind(models[[name]], st)
    problem <- internal("augment_problem")(rel, bound, 0, c(1, 2), 1)
    theta <- internal("bound_theta")(bound, starts[[name]])
    state <- internal("start_chain")(problem, bound, c(1, 2), 1, theta)
    expect_equal(internal("reported")(bound, state$theta)[1, ], starts[[name]], tolerance = 1e-14)
    fit <- sample_posterior(rel, models[[name]], chains = 1, iter = 4, seed = 1, init = list(starts[[name]]))
    expect_identical(dim(fit$draws), c(2L, 1L, length(starts[[name]])))
    expect_error(sample_posterior(rel, models[[name]], chains = 1, init = list(-starts[[name]])), "init", class = "noiseaware_error_argument")
  }
})

test_that("the statistics of the regression serve a model of one number too", {
  st <- stat_crossprod(x ~ 1, list(x = c(-10, 10)))
  set.seed(56)
  rel <- simulate_release(data.frame(x = rnorm(300, 2, 1.5)), st, mech_gaussian(mu = 2))
  fit <- sample_posterior(rel, model_normal(), chains = 2, iter = 2000, seed = 1)
  as_lm <- sample_posterior(rel, model_lm(prior = prior_nig()), chains = 2, iter = 2000, seed = 1)
  for (pair in list(c("mean", "(Intercept)"), c("sd", "sigma"))) {
    a <- parameter_draws(fit, pair[1])
    b <- parameter_draws(as_lm, pair[2])
    expect_agreement(a, b, spread = FALSE)
    expect_equal(sd(a), sd(b), tolerance = 0.15)
  }
})

# ---- printing, refusals -----------------------------------------------------------

test_that("models print what they believe", {
  expect_identical(format(model_poisson()), c("<model> Poisson", "  variable  the release's", "  rate      gamma(shape = 1; rate by default)"))
  expect_identical(format(model_exponential("t", prior_gamma(2, 3)))[2:3], c("  variable  t", "  rate      gamma(shape = 2, rate = 3)"))
  expect_match(format(model_normal())[3], "scaled by the bounds")
  expect_identical(format(models$sd)[3:4], c("  mean      fixed at 0.7", "  sd        inverse_gamma(shape = 3, rate = 2)"))
  rel <- as_release(3, stat_sums(~ x, list(x = c(0, 5))), mech_laplace(epsilon = 1), 4)
  described <- vapply(models[1:3], function(model) internal("describe_model")(uni_bind(model)), "")
  expect_identical(unname(described), c("Poisson model of x", "exponential model of x", "normal model of x"))
  expect_output(print(sample_posterior(rel, model_poisson(), chains = 1, iter = 400, seed = 1)), "Poisson model of x")
})

test_that("what a model cannot be is refused", {
  skip_on_cran()
  prior <- function(code) expect_error(code, class = "noiseaware_error_prior")
  prior(model_poisson(prior = prior_normal(0, 1)))
  prior(model_poisson(prior = fixed(2)))
  prior(model_exponential(prior = 1))
  prior(model_exponential(prior = NULL))
  prior(model_normal(prior = prior_normal(0, 1)))
  prior(model_normal(prior = list(mean = prior_normal(0, 1))))
  prior(model_normal(prior = list(prior_normal(0, 1), fixed(1))))
  prior(both(fixed(0), fixed(1)))
  prior(both(prior_nig(), fixed(1)))
  prior(both(prior_normal(0, 1), prior_gamma()))
  prior(both(prior_normal(0, 1), fixed(0)))
  prior(both(prior_normal(0, 1), fixed(c(1, 2))))
  prior(both(fixed(c(1, 2)), prior_inverse_gamma(1, 1)))
  prior(prior_gamma(0))
  prior(prior_gamma(1, -1))
  prior(prior_gamma("1"))
  prior(uni_bind(both(prior_normal(c(0, 1), 1), fixed(1))))
  prior(uni_bind(model_normal(prior = prior_nig(precision = diag(2)))))
  # a middle of the bounds that is no rate
  for (box in list(c(-3, 3), c(-5, 1))) {
    st <- stat_sums(~ x, list(x = box))
    prior(uni_bind(model_poisson(), st))
    prior(uni_bind(model_exponential(), st))
    expect_s3_class(uni_bind(model_poisson(prior = prior_gamma(1, 1)), st), "noiseaware_bound")
  }
  for (constructor in list(model_poisson, model_exponential, model_normal)) {
    for (variable in list(1, NA_character_, "", c("x", "y"))) expect_error(constructor(variable), class = "noiseaware_error_argument")
    misfit <- function(...) expect_error(uni_bind(constructor(...), st), class = "noiseaware_error_variables")
    st <- stat_sums(~ x, list(x = c(0, 1)))
    misfit("y")
    expect_identical(uni_bind(constructor("x"), st)$columns$name, "x")
    st <- stat_sums(~ x + z, list(x = c(0, 1), z = c(0, 1)), rescale = FALSE)
    misfit()
    misfit("x")
  }
  bound <- uni_bind(models$nig)
  values <- function(..., of = bound) expect_error(theta_of(of, ...), class = "noiseaware_error_argument")
  values(mean = 1)
  values(mean = 1, sd = 0)
  values(mean = 1, sd = NA)
  values(mean = 1, sd = 1, rate = 1)
  values(rate = 0, of = uni_bind(models$poisson))
  values(rate = -1, of = uni_bind(models$exponential))
})
