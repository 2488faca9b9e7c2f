# What each function of the owner's side really spends: the distribution of its
# output, on neighbouring data, computed from what it hands to the exact samplers
# (whose own distributions test-exact.R and test-release_budget.R check), against what it declares. It must
# not be more; and where a pair of records attains the sensitivity, not much less
# either, so that a factor of two is seen in both directions.

# ---- distributions ------------------------------------------------------------------------

# The components of every record, in units.
rounded_rows <- function(call) {
  t <- .Call(internal("ffi_stat_eval"), call[[1]], call[[2]])
  round(t / rep(call[[4]], each = nrow(t)))
}

# What is released of a part, in units, before the noise; and the scale of the noise.
grid_distribution <- function(call) {
  names(call) <- c("spec", "x", "kind", "unit", "distribution", "numerator", "denominator", "records")
  t <- rounded_rows(call)
  records <- call$kind == "records"
  scale <- call$numerator / call$denominator
  list(total = if (records) as.vector(t) else colSums(t), scale = if (records) rep(scale, each = nrow(t)) else scale,
       distribution = call$distribution, unit = call$unit)
}

# The largest log ratio of two products of discrete Laplace distributions: far out on the
# right side of every component. NA for Gaussian distributions, where there is none.
laplace_epsilon <- function(a, b) if (a$distribution == "laplace") sum(abs(a$total - b$total) / a$scale) else NA_real_

# Gaussian distributions: the distance of the means in sds
gaussian_mu <- function(a, b) if (a$distribution == "gaussian") sqrt(sum(((a$total - b$total) / a$scale)^2)) else NA_real_

# Largest log ratio of the answers: of each value exp(epsilon) : 1 for the true code
# against any other, epsilon in steps of 2^-52.
response_epsilon <- function(a, b) {
  names(a) <- names(b) <- c("codes", "levels", "epsilon")
  expect_identical(a[-1], b[-1])
  sum(vapply(seq_along(a$codes), function(i) {
    epsilon <- floor(a$epsilon[i]) + floor((a$epsilon[i] %% 1) * 2^52) / 2^52
    distribution <- function(code) log_shares(epsilon * (seq_len(a$levels[i]) - 1 == code))
    max(distribution(a$codes[i]) - distribution(b$codes[i]))
  }, 0))
}

log_shares <- function(x) x - max(x) - log(sum(exp(x - max(x))))

# least delta at an epsilon of two normal distributions (Balle & Wang 2018, Theorem 5)
normal_delta <- function(mu, epsilon) {
  stats::pnorm(mu / 2 - epsilon / mu) - exp(epsilon + stats::pnorm(-mu / 2 - epsilon / mu, log.p = TRUE))
}

# The distributions of release() on two data sets, part by part; the noise must not depend on the data.
both_distributions <- function(data, neighbour, statistic, mechanism, neighbours = "replace") {
  distributions <- lapply(list(data, neighbour), function(d) {
    heard <- overheard("release", d, statistic, mechanism, NULL, neighbours)
    lapply(calls_of(heard, "ffi_exact_release"), grid_distribution)
  })
  Map(function(a, b) {
    expect_identical(a[c("scale", "distribution", "unit")], b[c("scale", "distribution", "unit")])
    list(a, b)
  }, distributions[[1L]], distributions[[2L]])
}

expect_spent <- function(attained, declared, tight, share = 1e-5) {
  expect_lte(attained, declared * (1 + 1e-12))
  if (tight) expect_gte(attained, declared * (1 - share))
}

# ---- release(): added noise -------------------------------------------------------

unit_box <- list(x = c(0, 1), y = c(-2, 2))
letters_of <- list(g = c("a", "b", "c"), h = c("u", "v"))

# a statistic, and pairs of records that attain its sensitivity in each norm
tight_cases <- list(
  sums = list(stat_sums(~ x + I(x^2), unit_box["x"], rescale = FALSE), L1 = data.frame(x = 0:1), L2 = data.frame(x = 0:1)),
  dropped = list(stat_sums(~ x, list(x = c(4, 5)), outside = "drop"), L1 = data.frame(x = c(5, 9)), L2 = data.frame(x = c(5, 9))),
  crossprod = list(stat_crossprod(y ~ x, unit_box), L1 = data.frame(y = c(2, -2 / 3), x = c(1, 1 / 3)), L2 = data.frame(y = c(2, 2), x = c(1, 0))),
  plain = list(stat_crossprod(x ~ 1, unit_box["x"], rescale = FALSE), L1 = data.frame(x = 0:1), L2 = data.frame(x = 0:1)),
  moments4 = list(stat_moments4(~ x, unit_box["x"]), L1 = data.frame(x = c(1, (1 - 0.605829586188268) / 2)), L2 = data.frame(x = c(1, 0))),
  counts = list(stat_counts(~ g + g:h, letters_of), L1 = data.frame(g = c("a", "b"), h = c("u", "v")), L2 = data.frame(g = c("c", "a"), h = c("u", "v"))),
  records = list(stat_records(~ x + y, unit_box), L1 = data.frame(x = c(0, 7), y = c(-2, 2)), L2 = data.frame(x = c(0, 1), y = c(-3, 3))),
  codes = list(stat_records(~ g, levels = letters_of["g"]), L1 = data.frame(g = c("a", "c")), L2 = data.frame(g = c("a", "c"))),
  custom = list(stat_custom(function(r) cbind(pmin(pmax(r[, "x"], 0), 1), r[, "x"] > 0.5), c("a", "b"), c(L1 = 2, L2 = sqrt(2)), unit_box["x"]),
                L1 = data.frame(x = 0:1), L2 = data.frame(x = 0:1))
)

# the pair in front of three records that both data sets have
with_others <- function(pair, which) rbind(pair[which, , drop = FALSE], pair[c(1, 2, 2), , drop = FALSE])
on_pair <- function(pair, statistic, mechanism) both_distributions(with_others(pair, 1), with_others(pair, 2), statistic, mechanism)

test_that("release() spends its epsilon, no more and not much less", {
  skip_on_cran() # takes long; `make test` runs it
  for (case in tight_cases) {
    statistic <- case[[1]]
    integer <- internal("integer_valued")(statistic)
    for (epsilon in c(0.01, 1, 20)) {
      noises <- c(list(mech_laplace(epsilon = epsilon)), if (integer) list(mech_discrete_laplace(epsilon = epsilon)))
      for (mechanism in noises) {
        distributions <- on_pair(case$L1, statistic, mechanism)[[1]]
        expect_spent(laplace_epsilon(distributions[[1]], distributions[[2]]), epsilon, TRUE)
      }
    }
    # a scale that is given declares what it comes to
    rel <- release(case$L1[1, , drop = FALSE], statistic, mech_laplace(scale = 3))
    distributions <- on_pair(case$L1, statistic, mech_laplace(scale = 3))[[1]]
    expect_spent(laplace_epsilon(distributions[[1]], distributions[[2]]), privacy(rel)$epsilon, TRUE)
  }
})

test_that("release() spends its rho, mu, or epsilon and delta, no more and not much less", {
  skip_on_cran() # takes long; `make test` runs it
  for (case in tight_cases) {
    statistic <- case[[1]]
    attained <- function(mechanism) {
      distributions <- on_pair(case$L2, statistic, mechanism)[[1]]
      gaussian_mu(distributions[[1]], distributions[[2]])
    }
    expect_spent(attained(mech_gaussian(mu = 0.7)), 0.7, TRUE)
    expect_spent(attained(mech_gaussian(rho = 0.02))^2 / 2, 0.02, TRUE)
    expect_spent(normal_delta(attained(mech_gaussian(epsilon = 0.5, delta = 1e-5)), 0.5), 1e-5, TRUE, share = 1e-3)
    rel <- release(case$L2[1, , drop = FALSE], statistic, mech_gaussian(sd = 3))
    expect_spent(attained(mech_gaussian(sd = 3)), privacy(rel)$mu, TRUE)
    if (internal("integer_valued")(statistic)) expect_spent(attained(mech_discrete_gaussian(rho = 0.1))^2 / 2, 0.1, TRUE)
  }
})

# Renyi divergence of every order, summed over the integers (Canonne, Kamath & Steinke 2020, Proposition 5)
test_that("discrete distributions of counts have their ratios and divergences", {
  counts <- stat_counts(~ h, letters_of["h"])
  pair <- tight_cases$counts$L1
  k <- -400:400
  log_distribution <- function(distribution, j) {
    d <- if (distribution$distribution == "laplace") ddiscrete_laplace else ddiscrete_gaussian
    d(k, distribution$scale[j], location = distribution$total[j], log = TRUE)
  }
  distributions <- on_pair(pair, counts, mech_discrete_laplace(epsilon = 0.8))[[1]]
  ratio <- vapply(1:2, function(j) max(log_distribution(distributions[[1]], j) - log_distribution(distributions[[2]], j)), 0)
  expect_spent(sum(ratio), 0.8, TRUE)
  distributions <- on_pair(pair, counts, mech_discrete_gaussian(rho = 0.05))[[1]]
  for (order in c(1.1, 2, 8)) {
    divergence <- vapply(1:2, function(j) {
      log(sum(exp(order * log_distribution(distributions[[1]], j) + (1 - order) * log_distribution(distributions[[2]], j)))) / (order - 1)
    }, 0)
    expect_spent(sum(divergence), order * 0.05, TRUE, share = 1e-4)
  }
})

test_that("no pair of records spends more", {
  set.seed(1)
  anything <- function(n) data.frame(x = sample(c(0, 1, -1e300, 1e300, 1e-300, runif(20, -0.5, 1.5)), n, TRUE), y = sample(c(-2, 2, -1e9, runif(20, -3, 3)), n, TRUE),
                                     g = sample(letters_of$g, n, TRUE), h = sample(letters_of$h, n, TRUE))
  wide <- list(y = c(-2, 2), x = c(0, 1), g = letters_of$g)
  statistics <- c(lapply(tight_cases, `[[`, 1), list(stat_crossprod(y ~ x + g, wide), stat_crossprod(y ~ x + g, wide, rescale = FALSE),
                  stat_moments4(~ x + y, unit_box), stat_sums(~ y + I(y^2) + x:y, unit_box, outside = "drop", rescale = FALSE), stat_counts(~ g:h + h, letters_of)))
  for (statistic in statistics) {
    for (mechanism in list(mech_laplace(epsilon = 1), mech_gaussian(mu = 1))) {
      records <- anything(60)
      # one call has them all: replacing one by another moves the totals by the difference of two rows
      call <- calls_of(overheard("release", records, statistic, mechanism), "ffi_exact_release")[[1]]
      units <- rounded_rows(call) / rep((call[[6]] / call[[7]]), each = 60)
      distance <- if (call[[5]] == 0) stats::dist(units, "manhattan") else stats::dist(units)
      expect_lte(max(distance), 1 + 1e-12)
    }
  }
})

# ---- a record added or removed ------------------------------------------------------

# statistics and the record that attains both norms
added_cases <- list(
  sums = list(stat_sums(~ x + I(x^2), unit_box["x"], rescale = FALSE), data.frame(x = 1)),
  dropped = list(stat_sums(~ x, list(x = c(4, 5)), outside = "drop"), data.frame(x = 5)),
  crossprod = list(stat_crossprod(y ~ x, unit_box), data.frame(y = -7, x = 0)),
  plain = list(stat_crossprod(y ~ x + g, c(unit_box, letters_of["g"]), rescale = FALSE), data.frame(x = 1, y = 2, g = "c")),
  moments4 = list(stat_moments4(~ x + y, unit_box), data.frame(x = 0, y = 2)),
  counts = list(stat_counts(~ g + g:h, letters_of), data.frame(g = "a", h = "v")),
  size = list(stat_size(), data.frame(g = "a")),
  custom = list(stat_custom(function(r) cbind(pmin(pmax(r[, "x"], 0), 1), r[, "x"] > 0.5), c("a", "b"),
                            list(add_remove = c(L1 = 2, L2 = sqrt(2))), unit_box["x"]), data.frame(x = 1))
)
others <- data.frame(x = c(0.25, 5, 0.5), y = c(-1, 2, 0.5), g = c("a", "c", "b"), h = c("u", "u", "v"))

test_that("one record more spends the budget, no more and not much less, whatever n is", {
  skip_on_cran() # takes long; `make test` runs it
  for (case in added_cases) {
    statistic <- case[[1]]
    for (n in c(0, 1, 3)) {
      data <- others[seq_len(n), names(case[[2]]), drop = FALSE]
      distributions <- function(mechanism) both_distributions(data, rbind(data, case[[2]]), statistic, mechanism, "add_remove")[[1]]
      noises <- c(list(mech_laplace(epsilon = 0.8)), if (internal("integer_valued")(statistic)) list(mech_discrete_laplace(epsilon = 0.8)))
      for (mechanism in noises) {
        two <- distributions(mechanism)
        expect_spent(laplace_epsilon(two[[1]], two[[2]]), 0.8, TRUE)
      }
      two <- distributions(mech_gaussian(mu = 0.7))
      expect_spent(gaussian_mu(two[[1]], two[[2]]), 0.7, TRUE)
    }
    # a scale that is given declares what it comes to
    two <- both_distributions(others[1, names(case[[2]]), drop = FALSE], rbind(others[1, names(case[[2]]), drop = FALSE], case[[2]]), statistic,
                              mech_laplace(scale = 3), "add_remove")[[1]]
    expect_spent(laplace_epsilon(two[[1]], two[[2]]), privacy(release(case[[2]], statistic, mech_laplace(scale = 3), neighbours = "add_remove"))$epsilon, TRUE)
  }
})

test_that("no record that is added spends more", {
  set.seed(2)
  records <- data.frame(x = c(0, 1, -1e300, 1e300, 1e-300, runif(55, -0.5, 6)), y = sample(c(-2, 2, -1e9, runif(20, -3, 3)), 60, TRUE),
                        g = sample(letters_of$g, 60, TRUE), h = sample(letters_of$h, 60, TRUE))
  for (case in added_cases) {
    for (mechanism in list(mech_laplace(epsilon = 1), mech_gaussian(mu = 1))) {
      call <- calls_of(overheard("release", records, case[[1]], mechanism, NULL, "add_remove"), "ffi_exact_release")[[1]]
      units <- rounded_rows(call) / rep((call[[6]] / call[[7]]), each = 60)
      expect_lte(max(if (call[[5]] == 0) rowSums(abs(units)) else sqrt(rowSums(units^2))), 1 + 1e-12)
    }
  }
})

test_that("a release for a record added or removed has no trace of their number", {
  skip_on_cran()
  path <- tempfile()
  for (case in added_cases) {
    seen <- lapply(c(0, 1, 2, 200), function(n) {
      data <- others[rep_len(1:3, n), names(case[[2]]), drop = FALSE]
      rel <- release(data, case[[1]], mech_laplace(epsilon = 1), neighbours = "add_remove")
      expect_true(all(rel$value / rel$granularity == round(rel$value / rel$granularity)))
      rel$value[] <- 0
      printed <- utils::capture.output(print(rel), str(rel))
      written <- if (case[[1]]$name != "custom") readLines(write_release(rel, path))
      list(bytes = serialize(rel, NULL), printed = printed, written = written)
    })
    expect_null(release(others, case[[1]], mech_laplace(epsilon = 1), neighbours = "add_remove")$n)
    for (other in seen[-1]) expect_identical(other, seen[[1]])
  }
})

test_that("neighbours are not mixed in a budget", {
  counts <- stat_counts(~ g, letters_of["g"])
  for (path in list(NULL, tempfile())) {
    account <- budget(epsilon = 2, neighbours = "add_remove", file = path)
    noise <- mech_laplace(epsilon = 0.5)
    expect_error(release(others, counts, noise, account), class = "noiseaware_error_neighbours")
    expect_error(released_quantile(others$x, 0.5, c(0, 10), 0.5, budget = account), class = "noiseaware_error_neighbours")
    expect_identical(nrow(summary(account)), 0L)
    release(others, counts, noise, account, "add_remove")
    released_quantile(others$x, 0.5, c(0, 10), 0.5, budget = account, neighbours = "add_remove")
    expect_identical(sum(summary(account)$epsilon), 1)
    expect_error(release(others, counts, noise, budget(epsilon = 1), "add_remove"), class = "noiseaware_error_neighbours")
    if (is.null(path)) next
    expect_error(budget(epsilon = 2, file = path), class = "noiseaware_error_budget")
    expect_error(release(others, counts, noise, budget(file = path)), class = "noiseaware_error_neighbours")
  }
  expect_error(release(others, stat_records(~ g, levels = letters_of["g"]), noise, neighbours = "add_remove"), class = "noiseaware_error_neighbours")
})

# ---- several statistics ------------------------------------------------------------

both <- list(a = stat_counts(~ g, letters_of["g"]), b = stat_sums(~ x, unit_box["x"]), c = stat_records(~ h, levels = letters_of["h"]))
pair <- data.frame(g = c("a", "b"), x = 0:1, h = c("u", "v"))

test_that("several statistics spend the sum of their epsilons, and say so", {
  mechanism <- list(a = mech_discrete_laplace(epsilon = 0.3), b = mech_laplace(epsilon = 0.5), c = mech_randomized_response(epsilon = 0.7))
  distributions <- on_pair(pair, both, mechanism)
  answers <- lapply(1:2, function(which) calls_of(overheard("release", with_others(pair, which), both, mechanism), "ffi_exact_response")[[1]])
  attained <- sum(vapply(distributions, function(l) laplace_epsilon(l[[1]], l[[2]]), 0)) + response_epsilon(answers[[1]], answers[[2]])
  account <- budget(epsilon = 10)
  rel <- release(pair, both, mechanism, budget = account)
  for (declared in c(privacy(rel)$epsilon, summary(account)$epsilon)) expect_spent(attained, declared, TRUE)
  expect_equal(privacy(rel), data.frame(epsilon = 1.5, delta = 0, rho = (0.3^2 + 0.5^2 + 0.7^2) / 2, mu = NA_real_))
  expect_error(release(pair, both, mechanism, budget = budget(epsilon = 1.49)), class = "noiseaware_error_budget")
})

test_that("several Gaussian statistics spend the sum of their rhos", {
  two <- both[c("a", "b")]
  mechanism <- list(a = mech_discrete_gaussian(rho = 0.03), b = mech_gaussian(rho = 0.05))
  attained <- sum(vapply(on_pair(pair, two, mechanism), function(l) gaussian_mu(l[[1]], l[[2]])^2 / 2, 0))
  account <- budget(rho = 1)
  rel <- release(pair, two, mechanism, budget = account)
  for (declared in c(privacy(rel)$rho, summary(account)$rho)) expect_spent(attained, declared, TRUE)
  mechanism <- list(a = mech_gaussian(mu = 0.3), b = mech_gaussian(mu = 0.4))
  attained <- sqrt(sum(vapply(on_pair(pair, two, mechanism), function(l) gaussian_mu(l[[1]], l[[2]])^2, 0)))
  expect_spent(attained, privacy(release(pair, two, mechanism))$mu, TRUE)
})

test_that("epsilons and deltas add up in basic composition", {
  two <- both[c("a", "b")]
  mechanism <- list(a = mech_gaussian(epsilon = 0.4, delta = 1e-6), b = mech_gaussian(epsilon = 0.6, delta = 3e-6))
  account <- budget(epsilon = 2, delta = 1e-5, composition = "basic")
  rel <- release(pair, two, mechanism, budget = account)
  expect_equal(privacy(rel)[c("epsilon", "delta")], data.frame(epsilon = 1, delta = 4e-6))
  expect_equal(summary(account)[c("epsilon", "delta")], data.frame(epsilon = 1, delta = 4e-6))
  # 4e-6 and 7e-6 are more than the limit, though each is less
  expect_error(release(pair, two$b, mech_gaussian(epsilon = 0.1, delta = 7e-6), budget = account), class = "noiseaware_error_budget")
  release(pair, two$b, mech_gaussian(epsilon = 0.1, delta = 6e-6), budget = account)
  expect_error(release(pair, two$b, mech_gaussian(epsilon = 0.1, delta = 1e-9), budget = account), class = "noiseaware_error_budget")
  # what pure noise adds has no delta
  release(pair, two$b, mech_laplace(epsilon = 0.9), budget = account)
  expect_error(release(pair, two$b, mech_laplace(epsilon = 1e-6), budget = account), class = "noiseaware_error_budget")
  expect_equal(sum(summary(account)$epsilon), 2)
  expect_equal(sum(summary(account)$delta), 1e-5)
})

# ---- randomised response --------------------------------------------------------------

test_that("randomised response spends its epsilon, shared by several factors", {
  factors <- list(stat_records(~ g, levels = letters_of["g"]), stat_records(~ g + h, levels = letters_of))
  records <- data.frame(g = c("a", "c"), h = c("u", "v"))
  for (statistic in factors) {
    for (epsilon in c(0.1, 1, 7.3)) {
      answers <- lapply(1:2, function(which) {
        heard <- overheard("release", with_others(records, which), statistic, mech_randomized_response(epsilon = epsilon))
        expect_identical(privacy(heard$value)$epsilon, epsilon)
        calls_of(heard, "ffi_exact_response")[[1]]
      })
      expect_spent(response_epsilon(answers[[1]], answers[[2]]), epsilon, TRUE)
    }
  }
})

# ---- quantiles ------------------------------------------------------------------

# the exponential mechanism with the loss of the help page, from what is drawn from
quantile_distribution <- function(x, probability, steps, epsilon, neighbours = "replace") {
  account <- budget(epsilon = 100, neighbours = neighbours)
  heard <- without_few(overheard("release", data.frame(x = x), stat_quantiles(~ x, c(0, 1), probability, steps), mech_exponential(epsilon = epsilon), account,
                                 neighbours))
  expect_equal(summary(account)$epsilon, epsilon)
  call <- calls_of(heard, "ffi_exact_quantile")[[1]]
  names(call) <- c("count", "below", "rank", "numerator", "denominator")
  expect_length(call$below, steps + 2)
  log_shares(-call$numerator / call$denominator * pmax(call$below[-(steps + 2)] - call$rank, call$rank - call$below[-1], 0))
}

test_that("a quantile spends its epsilon, no more and not much less", {
  skip_on_cran() # takes long; `make test` runs it
  # the record that moves is alone on the left of the quantile, and nearly all
  # candidates are on its right: numerator and normaliser both change by epsilon / 2
  steps <- 2^18
  for (epsilon in c(0.01, 0.5, 3)) {
    a <- quantile_distribution(c(0, 1 / steps), 0.5, steps, epsilon)
    b <- quantile_distribution(c(1, 1 / steps), 0.5, steps, epsilon)
    expect_spent(max(abs(a - b)), epsilon, TRUE, share = 1e-3)
  }
  set.seed(4)
  for (i in 1:60) {
    x <- round(stats::runif(sample(1:6, 1)), sample(3, 1))
    y <- replace(x, 1, sample(c(0, 1, -1e300, Inf, stats::runif(3)), 1))
    probability <- sample(c(0, 0.5, 1, stats::runif(3)), 1)
    steps <- sample(c(1, 2, 10, 100), 1)
    expect_spent(max(abs(quantile_distribution(x, probability, steps, 2) - quantile_distribution(y, probability, steps, 2))), 2, FALSE)
  }
})

test_that("a quantile spends its epsilon on one record more", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  for (i in 1:60) {
    x <- round(stats::runif(sample(0:6, 1)), sample(3, 1))
    y <- c(x, sample(c(0, 1, -1e300, Inf, stats::runif(3)), 1))
    probability <- sample(c(0, 0.5, 1, stats::runif(3)), 1)
    steps <- sample(c(1, 2, 10, 100), 1)
    distributions <- lapply(list(x, y), quantile_distribution, probability, steps, 2, "add_remove")
    expect_spent(max(abs(distributions[[1]] - distributions[[2]])), 2, FALSE)
  }
})

# ---- release_objective() ----------------------------------------------------------------

# Gradient and Hessian of the loss, rows in the statistic's units.
logistic_sums <- function(z, rows, y) {
  p <- stats::plogis(drop(rows %*% z))
  list(gradient = colSums((p - y) * rows), hessian = crossprod(rows * sqrt(p * (1 - p))))
}

# log density of the coefficients, up to a constant: of b, and the Jacobian
log_objective <- function(z, rows, y, noise, normal) {
  at <- logistic_sums(z, rows, y)
  b <- sqrt(sum((at$gradient + noise$ridge * z)^2))
  (if (normal) -b^2 / (2 * noise$scale^2) else -b / noise$scale) +
    log_determinant(at$hessian + diag(noise$ridge, length(z)))
}

log_determinant <- function(matrix) as.numeric(determinant(matrix)$modulus)

# The scale and the ridge that release_objective() works with: its coefficients
# minimise the loss perturbed by the b that these uniforms determine.
objective_noise_of <- function(statistic, mechanism, data, rows, y) {
  d <- ncol(rows)
  normal <- !is.null(mechanism$delta)
  account <- budget(epsilon = 100, delta = 0.1, composition = "basic")
  noise <- lapply(list(c(0.2, 0.7, 0.4, 0.6), c(0.9, 0.3, 0.1, 0.05)), function(uniforms) {
    used <- 0
    heard <- overheard("release_objective", data, statistic, mechanism, account, answers = list(ffi_entropy = function(count) {
      used <<- used + count
      uniforms[used - count + seq_len(count)]
    }))
    direction <- stats::qnorm(uniforms[seq_len(d)])
    if (!normal) direction <- direction / sqrt(sum(direction^2)) * -sum(log(uniforms[d + seq_len(d)]))
    z <- unname(heard$value$value)
    # gradient + ridge z + scale direction = 0, two equations
    coordinates <- solve(cbind(z, direction), -logistic_sums(z, rows, y)$gradient)
    list(ridge = coordinates[[1]], scale = coordinates[[2]])
  })
  expect_equal(noise[[1]], noise[[2]], tolerance = 1e-8)
  expect_equal(summary(account)$epsilon, rep(mechanism$epsilon, 2))
  expect_equal(summary(account)$delta, rep(c(mechanism$delta, 0)[1], 2))
  noise[[1]]
}

test_that("release_objective() spends its epsilon: the gradient's share and the determinant's", {
  skip_on_cran() # takes long; `make test` runs it
  one <- stat_objective(y ~ x, bounds = list(y = c(0, 1), x = c(-1, 1)), radius = 1)
  data <- data.frame(y = c(0, 1, 1), x = c(-0.5, 0.2, 0.9))
  row <- function(x) cbind(1, x) / sqrt(1 + x^2) # shortened to the radius
  set.seed(6)
  for (mechanism in list(mech_objective(epsilon = 1), mech_objective(epsilon = 0.2), mech_objective(epsilon = 3, ridge = 2))) {
    noise <- objective_noise_of(one, mechanism, data, row(data$x), data$y)
    ratio <- function(z, x, y, x_new, y_new, others = data[0, ]) {
      log_objective(z, row(c(x, others$x)), c(y, others$y), noise, FALSE) - log_objective(z, row(c(x_new, others$x)), c(y_new, others$y), noise, FALSE)
    }
    gradient <- 2 / noise$scale
    determinant <- log1p(1 / 4 / noise$ridge)
    expect_equal(gradient + determinant, mechanism$epsilon, tolerance = 1e-7)
    # Rows that nearly agree, of opposite responses, with fitted probabilities of 1 and 0: the
    # gradients differ by twice a row's length. Other records point b the same way.
    others <- data.frame(x = numeric(1e5), y = 0)
    expect_spent(ratio(c(0, 250), -0.05, 1, 0.05, 0, others), gradient, TRUE, share = 0.01)
    # a record whose probability is 1 / 2 against one that is certain: the whole determinant
    z <- c(20, -20)
    jacobian <- function(x) log_determinant(logistic_sums(z, row(x), 0)$hessian + diag(noise$ridge, 2))
    expect_spent(jacobian(1) - jacobian(-1), determinant, TRUE, share = 1e-6)
    # and nothing has more than both
    for (i in 1:400) {
      z <- stats::rnorm(2, 0, 10^stats::runif(1, -1, 3))
      new <- stats::runif(2, -1, 1)
      expect_lte(ratio(z, new[1], stats::rbinom(1, 1, 0.5), new[2], stats::rbinom(1, 1, 0.5), data[seq_len(sample(0:3, 1)), ]), mechanism$epsilon)
    }
  }
})

test_that("release_objective() with a delta: no pair of responses spends more", {
  # the intercept alone: a response moves b by one, the Hessian not at all
  one <- stat_objective(y ~ 1, bounds = list(y = c(0, 1)))
  data <- data.frame(y = c(0, 1, 1))
  slope <- stat_objective(y ~ x, bounds = list(y = c(0, 1), x = c(-1, 1)))
  frame <- data.frame(y = c(0, 1, 1), x = c(-0.5, 0.2, 0.9))
  for (epsilon in c(0.3, 2)) {
    mechanism <- mech_objective(epsilon = epsilon, delta = 1e-4)
    noise <- objective_noise_of(slope, mechanism, frame, cbind(1, frame$x), frame$y)
    r <- 2 * sqrt(2) / noise$scale
    k <- stats::qnorm(1 - 1e-4 / 2)
    expect_equal(r * k + r^2 / 2 + log1p(2 / 4 / noise$ridge), epsilon, tolerance = 1e-7)
    rel <- release_objective(data, one, mechanism)
    expect_lte(normal_delta(1 / rel$scale[[1]], epsilon), 1e-4)
  }
})
