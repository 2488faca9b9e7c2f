zcdp_epsilon <- internal("zcdp_epsilon")

counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
data <- data.frame(g = c("a", "b", "a"), x = c(0.1, 0.5, 0.9))

test_that("epsilons add up, and what exceeds the limit is refused", {
  account <- budget(epsilon = 1)
  release(data, counts, mech_discrete_laplace(epsilon = 0.6), budget = account)
  release(data, counts, mech_laplace(epsilon = 0.4), budget = account)
  expect_identical(nrow(summary(account)), 2L)
  expect_equal(sum(summary(account)$epsilon), 1)
  set.seed(1)
  expect_error(release(data, counts, mech_laplace(epsilon = 1e-6), budget = account), class = "noiseaware_error_budget")
  expect_error(released_quantile(data$x, 0.5, c(0, 1), 1e-6, budget = account), class = "noiseaware_error_budget")
  expect_identical(nrow(summary(account)), 2L)
  # Gaussian noise has no pure epsilon
  expect_error(release(data, counts, mech_gaussian(mu = 1), budget = budget(epsilon = 100)), class = "noiseaware_error_budget")
})

test_that("a failed release spends nothing", {
  account <- budget(rho = 1)
  expect_error(release(data.frame(g = NA), counts, mech_gaussian(mu = 1), budget = account), class = "noiseaware_error_missing")
  expect_identical(nrow(summary(account)), 0L)
})

test_that("zCDP composes over all kinds", {
  account <- budget(rho = 1)
  release(data, counts, mech_gaussian(rho = 0.25), budget = account)
  release(data, counts, mech_gaussian(mu = 1), budget = account)
  release(data, counts, mech_discrete_laplace(epsilon = 0.5), budget = account)
  expect_equal(summary(account)$rho, c(0.25, 0.5, 0.125))
  expect_error(release(data, counts, mech_gaussian(rho = 0.2), budget = account), class = "noiseaware_error_budget")
  several <- list(a = counts, b = counts)
  release(data, several, list(a = mech_gaussian(rho = 0.06), b = mech_gaussian(rho = 0.06)), budget = account)
  expect_equal(sum(summary(account)$rho), 0.995)
})

test_that("approximate privacy takes the better of two bounds", {
  account <- budget(epsilon = 3, delta = 1e-5)
  for (i in 1:20) release(data, counts, mech_gaussian(rho = 0.005), budget = account)
  expect_equal(internal("budget_used")(account$limit, account$spent), zcdp_epsilon(0.1, 1e-5))
  expect_error(release(data, counts, mech_gaussian(rho = 1), budget = account), class = "noiseaware_error_budget")
  pure <- budget(epsilon = 1, delta = 1e-5)
  release(data, counts, mech_laplace(epsilon = 1), budget = pure)
  expect_equal(internal("budget_used")(pure$limit, pure$spent), 1)
})

test_that("the conversion from zCDP is between its known bounds", {
  for (rho in c(1e-3, 0.1, 1, 10)) {
    for (delta in c(1e-10, 1e-5, 0.1)) {
      epsilon <- zcdp_epsilon(rho, delta)
      expect_lte(epsilon, rho + 2 * sqrt(rho * log(1 / delta))) # Bun & Steinke 2016, Proposition 1.3
      # Gaussian noise of that rho needs no less
      if (epsilon > 0) expect_gte(delta, internal("gaussian_delta")(epsilon, sqrt(2 * rho)))
      # the infimum, by a grid
      a <- exp(seq(-12, 12, length.out = 2e5))
      grid <- (1 + a) * rho - (log(delta) + log(a)) / a + (1 + a) / a * (log(a) - log1p(a))
      expect_equal(epsilon, max(0, min(grid)), tolerance = 1e-6)
    }
  }
  expect_true(is.finite(zcdp_epsilon(1e-308, 1e-300)) && is.finite(zcdp_epsilon(1e308, 1e-300)))
})

test_that("budgets print, and refuse bad limits", {
  expect_snapshot({
    account <- budget(epsilon = 2)
    account
    invisible(release(data, counts, mech_discrete_laplace(epsilon = 0.5), budget = account))
    account
    summary(account)
    budget(epsilon = 1, delta = 1e-6)
    budget(rho = 0.5)
  })
  show(refusals("budget", alist(
    release(data, counts, mech_laplace(epsilon = 5), budget = account),
    release(data, counts, mech_laplace(epsilon = 1.500001), budget = account)
  )))
  for (bad in list(list(), list(epsilon = 1, rho = 1), list(epsilon = 0), list(epsilon = NA), list(rho = -1), list(rho = 1, delta = 0.1),
                   list(epsilon = 1, delta = 1), list(epsilon = Inf))) {
    expect_error(do.call(budget, bad), class = "noiseaware_error_budget")
  }
  expect_error(release(data, counts, mech_laplace(epsilon = 1), budget = 3), class = "noiseaware_error_argument")
})

test_that("private quantiles have the exponential mechanism's distribution", {
  skip_on_cran() # takes long; `make test` runs it
  values <- c(2, 2, 3, 7, 7, 7, 9)
  steps <- 10
  below <- cumsum(c(0, tabulate(values + 1, steps + 1)))
  # also ranks between records; slopes below and above 1
  for (case in list(c(0, 3, 4), c(3, 3, 4), c(7, 3, 4), c(3.5, 3, 4), c(1.625, 5, 4), c(2 + 2^-20, 3, 4))) {
    g <- 0:steps
    distance <- pmax(0, vapply(g, function(v) sum(values < v), 0) - case[1], case[1] - vapply(g, function(v) sum(values <= v), 0))
    mass <- exp(-case[2] / case[3] * distance)
    draws <- .Call(internal("ffi_exact_quantile"), 20000L, below, case[1], case[2], case[3])
    expect_gt(stats::chisq.test(tabulate(draws + 1, steps + 1), p = mass / sum(mass))$p.value, 1e-6)
  }
  # the loss of a neighbour differs by one at most
  set.seed(3)
  loss <- function(x, target) vapply(0:10, function(v) max(0, sum(x < v) - target, target - sum(x <= v)), 0)
  for (i in 1:200) {
    x <- sample(0:10, 6, replace = TRUE)
    y <- replace(x, 1, sample(0:10, 1))
    target <- sample(0:6, 1)
    expect_lte(max(abs(loss(x, target) - loss(y, target))), 1)
    expect_identical(min(loss(x, target)), 0)
  }
})

test_that("private quantiles find the quantile", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  x <- stats::rnorm(2000, 50, 10)
  expect_lt(abs(released_quantile(x, 0.5, c(-1000, 1000), 2)$value - 50), 3)
  expect_gt(released_quantile(x, 0.99, c(-1000, 1000), 2)$value, 60)
  expect_identical(released_quantile(rep(5, 500), 0.5, c(0, 10), 10, steps = 10)$value, c(`50%` = 5))
  # more likely than 0.05 beyond all records, by the weights of the exponential mechanism, and only said of a public number of records
  junk <- function(far, epsilon, steps) (steps + 1) * exp(-epsilon * far / 2) > 0.05
  expect_true(junk(24, 1, 10000) && !junk(25, 1, 10000))
  expect_warning(released_quantile(x[1:48], 0.5, c(-1000, 1000), 1), "One side has 24 records", class = "noiseaware_warning_quantile")
  expect_silent(released_quantile(x[1:50], 0.5, c(-1000, 1000), 1))
  expect_silent(released_quantile(x[1:9], 0.5, c(-1000, 1000), 1, neighbours = "add_remove"))
  expect_silent(released_quantile(x[1:8], 0.5, c(-1000, 1000), 2, steps = 1)) # log(2 / 0.05) is 3.7
  expect_identical(released_quantile(c(-1e308, Inf, -Inf), 0.3, c(0, 10), 1e5, steps = 1)$value, c(`30%` = 0))
  for (bad in list(quote(released_quantile("a", 0.5, c(0, 1), 1)), quote(released_quantile(numeric(), 0.5, c(0, 1), 1)),
                   quote(released_quantile(c(1, NA), 0.5, c(0, 1), 1)), quote(released_quantile(1, 2, c(0, 1), 1)),
                   quote(released_quantile(1, 0.5, c(1, 0), 1)), quote(released_quantile(1, 0.5, c(0, 1), 0)),
                   quote(released_quantile(1, 0.5, c(0, 1), 1, steps = 0)), quote(released_quantile(1, 0.5, c("a", "b"), 1)))) {
    expect_error(eval(bad), class = "noiseaware_error")
  }
})

test_that("which bound counts with a delta does not depend on what was published", {
  used <- function(account) internal("budget_used")(account$limit, summary(account))
  gaussian <- mech_gaussian(epsilon = 0.5, delta = 5e-7)
  basic <- budget(epsilon = 1, delta = 1e-6, composition = "basic")
  for (i in 1:2) release(data, counts, gaussian, budget = basic)
  expect_identical(used(basic), 1)
  expect_error(release(data, counts, mech_gaussian(epsilon = 0.01, delta = 1e-9), budget = basic), class = "noiseaware_error_budget")
  # deltas add up
  narrow <- budget(epsilon = 100, delta = 9e-7, composition = "basic")
  release(data, counts, gaussian, budget = narrow)
  expect_error(release(data, counts, gaussian, budget = narrow), class = "noiseaware_error_budget")
  expect_error(release(data, counts, mech_gaussian(rho = 1e-6), budget = narrow), class = "noiseaware_error_budget")

  # concentrated: one release by its own delta, several by their rho and never by both
  one <- budget(epsilon = 0.5, delta = 5e-7)
  release(data, counts, gaussian, budget = one)
  expect_identical(used(one), 0.5)
  expect_error(release(data, counts, mech_laplace(epsilon = 1e-6), budget = one), class = "noiseaware_error_budget")
  several <- budget(epsilon = 3, delta = 1e-6)
  for (i in 1:2) release(data, counts, gaussian, budget = several)
  expect_equal(used(several), zcdp_epsilon(2 * privacy(gaussian)$rho, 1e-6))
  pure <- budget(epsilon = 1, delta = 1e-6)
  for (i in 1:2) release(data, counts, mech_laplace(epsilon = 0.5), budget = pure)
  expect_equal(used(pure), 1)
  # no rho is known, and its epsilon may not be added to others with a delta
  expect_error(release(data, counts, gaussian, budget = pure), class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 1, delta = 0.1, composition = "better"), class = "noiseaware_error_budget")
})

test_that("what cannot be paid is refused before the data are read, and after what was spent meanwhile", {
  st <- stat_counts(~ g, levels = list(g = c("a", "b")))
  people <- data.frame(g = c("a", "b"))
  account <- budget(epsilon = 1)
  publish <- function(people, epsilon) release(people, st, mech_discrete_laplace(epsilon = epsilon), budget = account)
  expect_error(publish(stop("the data were read"), 1.1), class = "noiseaware_error_budget")
  # a release inside of another's data
  expect_error(publish({
    publish(people, 0.6)
    people
  }, 0.6), class = "noiseaware_error_budget")
  expect_equal(summary(account)$epsilon, 0.6)
})
