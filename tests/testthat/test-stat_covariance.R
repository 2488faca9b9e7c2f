# Variances and covariances about a public centre.

bounds2 <- list(x = c(-3, 4), y = c(0, 10))

test_that("components are sums of products of deviations of clamped values, and the sensitivity is attained", {
  st <- stat_covariance(~ x + y, bounds2, centre = c(y = 6, x = 1.5), divisor = 7)
  expect_identical(st$components, c("var(x)", "cov(x,y)", "var(y)"))
  set.seed(1)
  data <- data.frame(x = rnorm(8, 0, 4), y = rnorm(8, 5, 6))
  x <- pmin(pmax(data$x, -3), 4) - 1.5
  y <- pmin(pmax(data$y, 0), 10) - 6
  value <- simulate_release(data, st, mech_gaussian(sd = 1e-12))$value
  expect_equal(unname(value), c(sum(x^2), sum(x * y), sum(y^2)) / 7, tolerance = 1e-9)
  # one variance: from 0 to the farther end
  one <- stat_covariance(~ x, bounds2["x"], centre = 1.5, divisor = 7)
  expect_equal(sensitivity(one, "L1"), 4.5^2 / 7)
  expect_equal(sensitivity(one, "L1", neighbours = "add_remove"), 4.5^2 / 7)
  expect_equal(sensitivity(stat_covariance(~ x, bounds2["x"], centre = -4, divisor = 1), "L2"), 8^2 - 1)
  box <- as.matrix(expand.grid(x = seq(-3, 4, by = 0.5) - 1.5, y = 0:10 - 6))
  t <- cbind(box[, 1]^2, box[, 1] * box[, 2], box[, 2]^2) / 7
  expect_gte(sensitivity(st, "L1") * (1 + 1e-12), max(dist(t, "manhattan")))
  expect_gte(sensitivity(st, "L2") * (1 + 1e-12), max(dist(t)))
  expect_gte(sensitivity(st, "L1", neighbours = "add_remove") * (1 + 1e-12), max(rowSums(abs(t))))
})

test_that("a noisy mean and a noisy variance about it: quadrature, by every method", {
  bounds <- list(x = c(-500, 500))
  m <- 1.7
  st <- list(mean = stat_means(stat_sums(~ x, bounds), n = 12), variance = stat_covariance(~ x, bounds, centre = m, divisor = 11))
  rel <- as_release(list(mean = c(`mean(x)` = m), variance = c(`var(x)` = 5)), st,
                    list(mean = mech_gaussian(sd = 0.8), variance = mech_laplace(scale = 1.5)), n = 12)
  model <- model_normal(prior = prior_nig(0, 1, 3, 4))
  # the total, and the squares about the mean, of 12 records, the parameters integrated out
  grid <- expand.grid(total = seq(-40, 80, length.out = 401), scatter = seq(0.25, 250, by = 0.5))
  rate <- 4 + grid$scatter / 2 + 12 * (grid$total / 12)^2 / 26
  weight <- 4.5 * log(grid$scatter) - 9 * log(rate) - (grid$total / 12 - m)^2 / 2 / 0.8^2 -
    abs((grid$scatter + 12 * (grid$total / 12 - m)^2) / 11 - 5) / 1.5
  p <- exp(weight - max(weight))
  p <- p / sum(p)
  for (method in c("collapse", "augment")) {
    fit <- sample_posterior(rel, model, method = method, chains = 2, iter = 3200, warmup = 600, seed = 1)
    expect_same_mean(parameter_draws(fit, "mean"), sum(p * grid$total / 13))
    expect_same_mean(parameter_draws(fit, "sd")^2, sum(p * rate) / 8)
    variance <- posterior::extract_variable_matrix(denoise(fit), "variance: var(x)")
    expect_same_mean(variance, sum(p * (grid$scatter + 12 * (grid$total / 12 - m)^2) / 11))
  }
  expect_s3_class(sample_posterior(rel, model, method = "clt", chains = 1, iter = 50, warmup = 20, seed = 1), "noiseaware_fit")
})

test_that("a covariance tells of a regression, as cross-products do", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(x = c(-60, 60), y = c(-60, 60))
  st <- list(sums = stat_sums(~ x + y, bounds, rescale = FALSE), spread = stat_covariance(~ x + y, bounds, centre = c(x = 1, y = 3), divisor = 1))
  value <- list(sums = c(x = 55, y = 161), spread = c(`var(x)` = 60, `cov(x,y)` = 115, `var(y)` = 300))
  noise <- list(sums = mech_gaussian(sd = 3), spread = mech_gaussian(sd = 8))
  rel <- as_release(value, st, noise, n = 50)
  # the same in terms of raw products would have correlated noise: compare the two exact methods
  ask <- function(method) sample_posterior(rel, model_lm(y ~ x), method = method, chains = 2, iter = 3400, warmup = 900, seed = 1)
  expect_same_quantiles(ask("collapse")$draws, ask("augment")$draws)
})

test_that("releases are made, written and read", {
  st <- stat_covariance(~ x + y, bounds2, centre = c(x = 1.25, y = 6), divisor = 20)
  set.seed(2)
  data <- data.frame(x = rnorm(20), y = rnorm(20, 5))
  rel <- release(data, st, mech_laplace(epsilon = 1))
  expect_equal(privacy(rel)$epsilon, 1)
  path <- write_release(rel, withr::local_tempfile())
  expect_identical(read_release(path), rel)
  some <- as_release(c(`cov(x,y)` = 0.4), st, mech_gaussian(sd = 1), n = 20)
  expect_identical(some$statistic$components, "cov(x,y)")
  expect_match(paste(capture.output(print(st)), collapse = " "), "about x = 1.25, y = 6")
  # numbers far from 0: the unit is that of what is summed, and the error of a difference is counted
  far <- stat_covariance(~ x, list(x = c(1e6, 1e6 + 1)), centre = 1e6 + 0.5, divisor = 20)
  expect_gt(privacy(release(data.frame(x = rep(1e6 + 0.25, 20)), far, mech_laplace(scale = 0.1)))$epsilon, sensitivity(far, "L1") / 0.1)
})

test_that("what is no total of contributions, and bad input, is refused", {
  skip_on_cran() # takes long; `make test` runs it
  ask <- function(formula = ~ x + y, bounds = bounds2, centre = c(x = 0, y = 0), divisor = 5) stat_covariance(formula, bounds, centre, divisor)
  expect_error(ask(centre = NULL), "mean square minus the square of the mean", class = "noiseaware_error_argument")
  for (centre in list(1, c(x = 0), c(x = 0, z = 1), c(x = 0, y = NA), c(x = "a", y = "b"))) {
    expect_error(ask(centre = centre), "for each variable", class = "noiseaware_error_argument")
  }
  for (divisor in list(0, -1, NA, "a", c(1, 2))) expect_error(ask(divisor = divisor), class = "noiseaware_error_argument")
  for (formula in list(y ~ x, ~ x:y, ~ I(x^2), ~ 1, "x")) expect_error(ask(formula), class = "noiseaware_error_formula")
  expect_error(ask(bounds = list(x = c("a", "b"), y = c(0, 1))), class = "noiseaware_error_bounds")
  expect_error(stat_covariance(~ x, bounds2["x"], 0), class = "noiseaware_error_argument")
  path <- write_release(as_release(c(`var(x)` = 1), stat_covariance(~ x, bounds2["x"], 1, 5), mech_gaussian(sd = 1), n = 5), withr::local_tempfile())
  writeLines(sub('"centre"', '"center"', readLines(path)), path)
  expect_error(read_release(path), "centre", class = "noiseaware_error_file")
})

test_that("a matrix of covariances or products is taken by its names", {
  bounds <- list(x = c(0, 10), y = c(0, 10), z = c(0, 10))
  st <- stat_covariance(~ x + y + z, bounds, centre = c(x = 5, y = 5, z = 5), divisor = 99)
  m <- matrix(c(4, 1, 2, 1, 9, 3, 2, 3, 16), 3, dimnames = rep(list(c("z", "x", "y")), 2))
  vector <- c("var(z)" = 4, "cov(x,z)" = 1, "cov(y,z)" = 2, "var(x)" = 9, "cov(x,y)" = 3, "var(y)" = 16)
  noise <- mech_gaussian(sd = 1)
  expect_identical(as_release(m, st, noise, 100), as_release(vector, st, noise, 100))
  expect_identical(as_release(m[c(2, 3, 1), ], st, noise, 100), as_release(vector, st, noise, 100))
  expect_identical(as_release(m[1:2, 1:2], st, noise, 100), as_release(vector[c(1, 2, 4)], st, noise, 100))
  expect_identical(as_release(m[1, 1, drop = FALSE], st, noise, 100), as_release(vector[1], st, noise, 100))
  products <- stat_crossprod(y ~ x, bounds[c("x", "y")], rescale = FALSE)
  xtx <- matrix(c(100, 40, 50, 40, 300, 90, 50, 90, 200), 3, dimnames = rep(list(c("(Intercept)", "x", "y")), 2))
  expect_identical(as_release(xtx, products, noise, 100), as_release(c(x = 40, y = 50, `x^2` = 300, `y:x` = 90, `y^2` = 200), products, noise, 100))
  show(refusals("value", alist(
    as_release(m + upper.tri(m), st, noise, 100),
    as_release(stats::cov2cor(m), st, noise, 100),
    as_release(rbind(m, m)[c(1, 2, 4), ], st, noise, 100),
    as_release(matrix(m, 3, dimnames = rep(list(c("x", "y", "w")), 2)), st, noise, 100)
  )))
})

test_that("a noisy covariance about the exact mean is one of a record less about 0", {
  wide <- list(x = c(-500, 500), y = c(-500, 500))
  n <- 20
  st <- stat_covariance(~ x + y, wide, centre = c(x = 0, y = 0), divisor = n - 1, outside = "none")
  noisy <- matrix(c(58, 20, 20, 40), 2, dimnames = rep(list(c("x", "y")), 2))
  prior <- prior_niw(scale = diag(60, 2), df = 5)
  model <- model_mvnormal(prior = list(mean = fixed(c(0, 0)), cov = prior))
  fit <- sample_posterior(as_release(noisy, st, mech_gaussian(sd = 12), n - 1), model, chains = 2, iter = 2000, seed = 1)
  # covariances from the prior, of each the matrix of n - 1 degrees of freedom (Bartlett), weighted by the noise
  set.seed(1)
  draws <- 1e5
  inverse <- stats::rWishart(draws, 5, diag(1 / 60, 2))
  det <- inverse[1, 1, ] * inverse[2, 2, ] - inverse[1, 2, ]^2
  xx <- inverse[2, 2, ] / det
  xy <- -inverse[1, 2, ] / det
  root <- sqrt(inverse[1, 1, ] / det - xy^2 / xx) # of the lower triangle
  a <- sqrt(rchisq(draws, n - 1)) * sqrt(xx)
  b <- a * xy / xx + root * rnorm(draws)
  c <- root * sqrt(rchisq(draws, n - 2))
  noise <- function(z, s) dnorm(z, s / (n - 1), 12, log = TRUE)
  log_weight <- noise(58, a^2) + noise(20, a * b) + noise(40, b^2 + c^2)
  expect_weighted_mean(posterior::extract_variable_matrix(fit$draws, "cov[x,x]"), xx, log_weight)
  expect_weighted_mean(posterior::extract_variable_matrix(fit$draws, "cov[y,x]"), xy, log_weight)
})
