# What as_release() says of numbers that can be meant in another way: R/release_doubts.R.

test_that("numbers without names are shown in the order in which they are taken", {
  levels <- list(g = c("a", "b"), h = c("u", "v"))
  counts <- stat_counts(~ g:h, levels)
  expect_message(told(as_release(1:4, counts, mech_laplace(scale = 1), 10)), "g=a:h=u, g=a:h=v", class = "noiseaware_message_order")
  expect_message(told(as_release(list(a = 1:4, b = 3), list(a = counts, b = stat_sums(~ x, list(x = c(0, 1)))),
                                 list(a = mech_laplace(scale = 1), b = mech_laplace(scale = 1)), 10)), class = "noiseaware_message_order")
  expect_no_message(told(as_release(stats::setNames(1:4, counts$components), counts, mech_laplace(scale = 1), 10)))
  expect_no_message(told(as_release(1:2, stat_counts(~ g, levels["g"]), mech_laplace(scale = 1), 10)))
})

test_that("a budget for some components says which noise it is, and which it would be for all", {
  counts <- stat_counts(~ g, list(g = c("a", "b")))
  both <- stat_sums(~ x + z, list(x = c(0, 1), z = c(0, 3)), rescale = FALSE)
  session <- internal("session")
  session$told <- character()
  expect_message(rel <- told(as_release(c("g=a" = 4), counts, mech_laplace(epsilon = 1), 10)), "sd 1.414.*sd 2.828", class = "noiseaware_message_fewer")
  expect_equal(unname(noise_sd(rel)), sqrt(2))
  expect_no_message(told(as_release(c("g=a" = 7), counts, mech_laplace(epsilon = 1), 12))) # said once
  expect_message(told(as_release(c(x = 4), both, mech_gaussian(mu = 1), 10)), "components", class = "noiseaware_message_fewer")
  expect_no_message(told(as_release(c(x = 4), both, mech_laplace(scale = 2), 10)))
  expect_no_message(told(as_release(c(x = 4, z = 3), both, mech_laplace(epsilon = 1), 10)))
})

test_that("totals in the variables' units under a rescaled statistic are seen, others are not", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  n <- 400
  bounds <- list(y = c(0, 0.3), x = c(0.1, 0.3))
  data <- data.frame(x = runif(n, 0.1, 0.3))
  data$y <- 0.1 + 0.3 * data$x + runif(n, 0, 0.1)
  rescaled <- stat_crossprod(y ~ x, bounds)
  raw <- simulate_release(data, stat_crossprod(y ~ x, bounds, rescale = FALSE), mech_laplace(scale = 0.05))$value
  expect_warning(rel <- told(as_release(raw, rescaled, mech_laplace(scale = 0.05), n)), "y, x", class = "noiseaware_warning_units")
  expect_output(print(rel), "variables' units")
  for (k in 1:20) {
    at <- stats::rbeta(2, 2, 2)
    data <- data.frame(x = rbeta(n, 1 + 3 * at[1], 2), y = rbeta(n, 1 + 3 * at[2], 1.5))
    statistic <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1)))
    value <- simulate_release(data, statistic, mech_laplace(scale = 0.5))$value
    expect_no_warning(told(as_release(value, statistic, mech_laplace(scale = 0.5), n)))
    own <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1)), rescale = FALSE)
    expect_no_warning(told(as_release(simulate_release(data, own, mech_laplace(scale = 0.5))$value, own, mech_laplace(scale = 0.5), n)))
  }
})

test_that("totals that no rescaled records have are seen, whatever the noise and however n is known", {
  bounds <- list(y = c(0, 500), x = c(0, 100))
  n <- 400
  raw <- c(y = 200, x = 50, `y^2` = 41000, `y:x` = 10200, `x^2` = 2600) * n
  rescaled <- stat_crossprod(y ~ x, bounds)
  said <- function(value, statistic, mechanism, n, ..., about = "No set of records has totals like these") {
    expect_warning(told(as_release(value, statistic, mechanism, n, ...)), about, class = "noiseaware_warning_units")
  }
  said(raw, rescaled, mech_gaussian(sd = 0.05 * n), n, about = "appear to be in the variables' units")
  said(raw, rescaled, mech_gaussian(sd = 0.2 * n), n, about = "y, x, y\\^2")
  said(raw[1:2], stat_sums(~ y + x, bounds), mech_gaussian(sd = 5), n)
  said(unname(c(raw, raw)[order(rep(1:5, 2))]), stat_by(rescaled, levels = list(g = c("a", "b"))), mech_gaussian(sd = 5), 2 * n)
  sized <- function(value, statistic, size, sd = 5) as_release(list(size = size, sums = value), list(size = stat_size(), sums = statistic),
                                                               list(size = mech_gaussian(sd = 2), sums = mech_gaussian(sd = sd)), n = NULL, neighbours = "add_remove")
  expect_warning(told(sized(raw, rescaled, n)), "No set of records", class = "noiseaware_warning_units")
  expect_no_warning(told(sized(raw, stat_crossprod(y ~ x, bounds, rescale = FALSE), n)))
  possible <- c(y = -0.2, x = 0, `y^2` = 0.1, `y:x` = 0, `x^2` = 0.1) * n
  expect_no_warning(told(sized(possible, rescaled, n)))
  # whatever n is, up to the noise of the size
  more <- function(by) sized(c(y = n + by, x = 0, `y^2` = n + by, `y:x` = 0, `x^2` = n), rescaled, n, sd = 0.01)
  expect_no_warning(told(more(19)))
  expect_warning(told(more(22)), "No set of records", class = "noiseaware_warning_units")
  # totals in the variables' units may be impossible as well, which is no question of units
  expect_no_warning(told(as_release(1000 * raw, stat_crossprod(y ~ x, bounds, rescale = FALSE), mech_gaussian(sd = 5), n)))
  expect_no_warning(told(as_release(raw, rescaled, mech_gaussian(sd = 0.2 * n), n = NULL, neighbours = "add_remove")))
})

test_that("units of totals are not asked for where the size of the noise is unknown", {
  cauchy <- mech_custom(log_density = function(noise) rowSums(dcauchy(noise, 0, 3, log = TRUE)))
  expect_no_warning(rel <- told(as_release(c(x = 1.5, `x^2` = 2.4), stat_sums(~ x + I(x^2), c(2, 6)), cauchy, 3)))
  expect_output(print(rel), "custom density")
})
