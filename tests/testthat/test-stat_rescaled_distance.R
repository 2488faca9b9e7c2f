# Sensitivities of rescaled sums against brute force: no pair of records is further apart, and some pair is as far.

# largest distance between two records, from random pairs and corners, improved coordinate by coordinate
farthest_pair <- function(powers, norm, starts) {
  q <- ncol(powers)
  # terms x records, of records in columns
  terms <- function(x) {
    values <- apply(powers, 1L, function(p) {
      value <- 1
      for (j in which(p > 0)) value <- value * x[j, ]^p[j]
      value
    })
    matrix(t(values), nrow(powers))
  }
  # of both records, one above the other, in each column
  apart <- function(vw) {
    d <- terms(vw[seq_len(q), , drop = FALSE]) - terms(vw[q + seq_len(q), , drop = FALSE])
    if (norm == "L1") colSums(abs(d)) else sqrt(colSums(d^2))
  }
  grid <- seq(-1, 1, length.out = 21L)
  climb <- function(vw) {
    best <- apart(matrix(vw))
    repeat {
      before <- best
      for (i in seq_along(vw)) {
        to <- 0
        for (width in 10^-(0:5)) {
          tried <- pmin(pmax(to + width * grid, -1), 1)
          many <- matrix(vw, 2 * q, length(tried))
          many[i, ] <- tried
          values <- apart(many)
          to <- tried[which.max(values)]
        }
        if (max(values) > best) {
          vw[i] <- to
          best <- max(values)
        }
      }
      if (best <= before + 1e-12) return(best)
    }
  }
  max(replicate(starts, climb(runif(2 * q, -1, 1))), replicate(starts, climb(sample(c(-1, 1), 2 * q, TRUE))))
}

term_sets <- list(~ x + I(x^2), ~ I(x^2) + I(x^3), ~ x + I(x^2) + I(x^3) + I(x^4), ~ x + z, ~ x + z + x:z, ~ x + I(x^2) + z, ~ x:z + z:u,
                  ~ x + z + I(x^2) + I(z^2) + x:z, ~ x + z + u + x:z + I(u^2), ~ I(x * z) + I(x^2) + z)

test_that("no two records are further apart than the sensitivity, and some are as far", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  for (formula in term_sets) {
    variables <- all.vars(formula)
    bounds <- setNames(lapply(seq_along(variables), function(k) c(-k, 2^k)), variables)
    st <- stat_sums(formula, bounds, rescale = TRUE)
    for (norm in c("L1", "L2")) {
      far <- farthest_pair(st$powers, norm, starts = if (length(variables) == 1L) 2L else 3L)
      info <- paste(norm, deparse(formula))
      expect_lte(far, sensitivity(st, norm) * (1 + 1e-9), label = info)
      # a square without its variable has an upper bound in L2
      lone <- norm == "L2" && length(variables) > 1L && any(apply(st$powers, 1L, max) == 2) && grepl("z:u|x \\* z", deparse(formula))
      if (!lone) expect_gt(far, sensitivity(st, norm) * (1 - 1e-6), label = info)
    }
    # a record that is added
    expect_equal(sensitivity(st, "L1", "add_remove"), length(st$components))
  }
})

test_that("all products are those of stat_crossprod(), and many variables are bounded by them", {
  skip_on_cran()
  letters_of <- function(q) letters[seq_len(q)]
  sums <- function(v) reformulate(c(v, sprintf("I(%s^2)", v), if (length(v) > 1L) combn(v, 2L, paste, collapse = ":")))
  for (q in c(1L, 2L, 4L, 7L, 9L, 14L)) {
    v <- letters_of(q)
    bounds <- setNames(rep(list(c(3, 5)), q), v)
    all <- stat_crossprod(reformulate(if (q > 1L) v[-1L] else "1", v[1L]), bounds)
    for (norm in c("L1", "L2")) expect_equal(sensitivity(stat_sums(sums(v), bounds), norm), sensitivity(all, norm), tolerance = 1e-9)
  }
})

component_limits_of <- function(st) internal("component_limits")(st)

test_that("components are totals of rescaled variables", {
  set.seed(2)
  data <- data.frame(x = rnorm(40, 3, 3), z = rnorm(40, -20, 30))
  bounds <- list(x = c(0, 5), z = c(-50, 10))
  total <- internal("statistic_total")
  st <- stat_sums(~ x + I(x^2) + x:z + I(z^3), bounds)
  x <- 2 * pmin(pmax(data$x, 0), 5) / 5 - 1
  z <- 2 * (pmin(pmax(data$z, -50), 10) + 50) / 60 - 1
  expect_equal(unname(total(st, data)), c(sum(x), sum(x^2), sum(x * z), sum(z^3)))
  expect_equal(unname(component_limits_of(st)), rbind(c(-1, 1), c(0, 1), c(-1, 1), c(-1, 1)))
  # a record that is left out adds 0
  left <- stat_sums(~ x + I(x^2) + x:z, bounds, outside = "drop")
  inside <- data$x >= 0 & data$x <= 5 & data$z >= -50 & data$z <= 10
  x <- ifelse(inside, data$x / 5, 0)
  z <- ifelse(inside, data$z / 50, 0)
  expect_equal(unname(total(left, data)), c(sum(x), sum(x^2), sum(x * z)))
  expect_equal(unname(component_limits_of(left)), rbind(c(0, 1), c(0, 1), c(-1, 0.2)))
  at_bounds <- data.frame(x = c(0, 5, 5), z = c(10, -50, 10))
  expect_equal(unname(total(left, at_bounds)), c(2, 2, -0.8))
  # what is public, and its default
  expect_true(stat_sums(~ x + z, bounds)$rescale)
  expect_false(stat_sums(~ x, bounds["x"])$rescale)
  expect_match(format(st)[1L], "rescaled to \\[-1, 1\\], clamped")
  expect_match(format(left)[1L], "divided by the bound farther from 0, records outside")
  expect_error(stat_sums(~ x, bounds["x"], rescale = NA), class = "noiseaware_error_argument")
})

test_that("engines give what they give for the same totals of stat_crossprod()", {
  all <- stat_crossprod(x ~ 1, list(x = c(2, 12)))
  sums <- stat_sums(~ x + I(x^2), c(2, 12))
  expect_identical(sums$components, all$components)
  value <- c(x = -14.2, `x^2` = 21.7)
  draws <- function(st, method) as.matrix(parameter_draws(sample_posterior(as_release(value, st, mech_laplace(scale = 1.5), n = 80), model_normal(), method,
                                                                          chains = 1, iter = 300, seed = 4), "mean"))
  for (method in c("collapse", "clt", "augment", "naive")) expect_equal(draws(sums, method), draws(all, method), info = method)
  # in their own units, the totals that these represent
  own <- stat_sums(~ x + I(x^2), c(2, 12), rescale = FALSE)
  raw <- c(x = 5 * value[[1L]] + 7 * 80, `x^2` = 25 * value[[2L]] + 70 * value[[1L]] + 49 * 80)
  exact <- function(st, value) colMeans(as.matrix(as.data.frame(sample_posterior(as_release(value, st, mech_gaussian(sd = 1e-3), n = 80), model_normal(), "collapse",
                                                                                 chains = 1, iter = 2400, seed = 4)$draws)))
  expect_equal(exact(sums, value), exact(own, raw), tolerance = 0.02)
})

test_that("rescaled totals tell variances and covariances that raw ones hide", {
  skip_on_cran()
  crabs <- MASS::crabs[c("FL", "CW")]
  bounds <- list(FL = c(5, 25), CW = c(15, 60))
  # the noise's sd of the covariance, given the totals
  spread <- function(rescale) {
    st <- stat_sums(~ FL + CW + I(FL^2) + FL:CW + I(CW^2), bounds, rescale = rescale)
    set.seed(3)
    n <- nrow(crabs)
    draws <- replicate(200, {
      value <- simulate_release(crabs, st, mech_laplace(epsilon = 20))$value
      if (rescale) (value[["FL:CW"]] - value[["FL"]] * value[["CW"]] / n) / n * 10 * 22.5 else
        (value[["FL:CW"]] - value[["FL"]] * value[["CW"]] / n) / n
    })
    expect_lt(abs(mean(draws) - cov(crabs)[1L, 2L] * (n - 1) / n), 5 * sd(draws) / sqrt(200))
    sd(draws)
  }
  expect_lt(spread(TRUE), spread(FALSE) / 10)
})

test_that("totals of sums that look as if they were in the variables' units are told", {
  st <- stat_sums(~ x + I(x^2), c(0, 20))
  trouble <- function(x, square) internal("units_trouble")(as_release(c(x = x, `x^2` = square), st, mech_laplace(scale = 0.1), n = 1000))
  # of records about 6 with a standard deviation of 3, in their own units and rescaled
  expect_length(trouble(6000, 45000), 1L)
  expect_null(trouble(-400, 250))
})
