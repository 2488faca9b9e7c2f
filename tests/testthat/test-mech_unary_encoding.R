# Sums of bits: the distribution by convolution of binomial probabilities, the posterior by enumeration of all tables.

of_three <- stat_counts(~ x, list(x = c("a", "b", "c")))
rappor <- mech_unary_encoding(p = 0.75, q = 0.25)

# log P(sum of bits | count), by convolution
sum_of_bits <- function(ones, count, n, p, q) log(sum(stats::dbinom(0:ones, count, p) * stats::dbinom(ones:0, n - count, q)))

test_that("a sum of bits has the distribution of a sum of two binomial numbers", {
  for (case in list(c(40, 0.75, 0.25), c(17, 0.5, 0.05), c(300, 0.9, 0.6), c(1, 0.6, 0.3))) {
    n <- case[1]
    for (ones in unique(c(0, 1, n %/% 3, n - 1, n))) {
      interval <- data.frame(family = 5, scale = case[2], lower = (ones - n * case[3]) / (case[2] - case[3]), upper = 0, least = case[3], records = n, table = I(list(NULL)))
      exact <- vapply(0:n, function(count) sum_of_bits(ones, count, n, case[2], case[3]), 0)
      expect_equal(internal("published_density")(interval, matrix(0:n)), exact, tolerance = 1e-10)
    }
    # without a record too many or too few
    expect_identical(internal("published_density")(interval, matrix(c(-1, n + 1))), c(-Inf, -Inf))
  }
})

test_that("between totals of many records the log probability is interpolated", {
  for (case in list(c(2e5, 0.75, 0.25, 60000), c(2e5, 0.5, 0.02, 4100), c(1e5, 0.62, 0.38, 38150), c(1e5, 0.9, 0.1, 90000), c(1e5, 0.9, 0.6, 0))) {
    n <- case[1]
    of <- (case[4] - n * case[3]) / (case[2] - case[3])
    interval <- data.frame(family = 5, scale = case[2], lower = of, upper = 0, least = case[3], records = n, table = I(list(NULL)))
    sd <- sqrt(n * case[2] * (1 - case[2])) / (case[2] - case[3])
    at <- unique(pmin(pmax(round(c(of + sd * seq(-5, 5, by = 0.37), 0:5, n - 0:5)), 0), n))
    exact <- vapply(at, function(count) {
      own <- max(0, case[4] - (n - count)):min(count, case[4])
      log_p <- dbinom(own, count, case[2], log = TRUE) + dbinom(case[4] - own, n - count, case[3], log = TRUE)
      max(log_p) + log(sum(exp(log_p - max(log_p))))
    }, 0)
    expect_lt(max(abs(internal("published_density")(interval, matrix(at)) - exact) / pmax(1, 1e-3 * abs(exact))), 1e-7)
  }
})

test_that("the posterior is the mixture over all tables of counts, by both methods and two models", {
  skip_on_cran()
  n <- 12
  sums <- c(a = 7, b = 2, c = 5)
  tables <- expand.grid(a = 0:n, b = 0:n)
  tables <- as.matrix(cbind(tables, c = n - tables$a - tables$b)[tables$a + tables$b <= n, ])
  alpha <- c(1, 2, 0.8)
  log_weight <- apply(tables, 1, function(t) sum(mapply(sum_of_bits, sums, t, n, 0.7, 0.2)) + sum(lgamma(alpha + t) - lgamma(t + 1)))
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  rel <- as_release(sums, of_three, mech_unary_encoding(p = 0.7, q = 0.2), n)
  for (model in list(model_categorical(prior = prior_dirichlet(alpha)), model_table(prior = prior_dirichlet(alpha)))) for (method in c("auto", "augment")) {
    fit <- suppressWarnings(sample_posterior(rel, model, method, chains = 2, iter = 2400, seed = 3))
    expect_identical(fit$method, if (method == "auto") "collapse" else "augment")
    expect_true(fit$exact)
    for (l in 1:3) {
      a <- alpha[l] + tables[, l]
      b <- sum(alpha) + n - a
      cdf <- function(p) sum(weight * pbeta(p, a, b))
      expect_distribution(parameter_draws(fit, fit$bound$parameters[l]), function(p) uniroot(function(x) cdf(x) - p, 0:1, tol = 1e-12)$root, sum(weight * a / (a + b)))
    }
  }
})

test_that("simulated sums are sums of independent bits", {
  skip_on_cran()
  set.seed(2)
  data <- data.frame(x = rep(c("a", "b", "c"), c(14, 5, 1)))
  of <- mech_unary_encoding(p = 0.8, q = 0.3)
  sums <- t(replicate(4000, simulate_release(data, of_three, of)$value)) * 0.5 + 20 * 0.3
  expect_equal(sums, round(sums), tolerance = 1e-12)
  for (l in 1:3) {
    p <- exp(vapply(0:20, sum_of_bits, 0, c(14, 5, 1)[l], 20, 0.8, 0.3))
    some <- p > 0.002
    expect_gt(chisq.test(c(tabulate(round(sums[, l]) + 1, 21)[some], sum(!round(sums[, l]) %in% (which(some) - 1))), p = c(p[some], 1 - sum(p[some])))$p.value, 1e-6)
  }
  expect_lt(max(abs(cor(sums)[c(2, 3, 6)])), 0.08)
})

test_that("budgets, encodings, files and prints", {
  local_reproducible_output()
  expect_equal(privacy(rappor)$epsilon, log(9))
  for (epsilon in c(0.5, 1, 3)) {
    for (encoding in c("optimised", "symmetric", "hashing")) expect_equal(privacy(mech_unary_encoding(epsilon = epsilon, encoding = encoding))$epsilon, epsilon)
    hashed <- mech_unary_encoding(epsilon = epsilon, encoding = "hashing")
    g <- round(1 / hashed$q)
    expect_equal(hashed$p / ((1 - hashed$p) / (g - 1)), exp(epsilon))
  }
  rel <- as_release(c(c = 11, a = 17, b = 12), of_three, rappor, n = 40)
  expect_identical(unname(rel$value), c(14, 4, 2))
  expect_identical(unname(noise_sd(rel)), rep(sqrt(40 * 3 / 16) * 2, 3))
  for (mechanism in list(rappor, mech_unary_encoding(epsilon = 1.3, encoding = "hashing"))) {
    rel <- as_release(c(17, 12, 11), of_three, mechanism, n = 40)
    path <- withr::local_tempfile(fileext = ".json")
    write_release(rel, path)
    expect_identical(read_release(path), rel)
  }
  beside <- as_release(list(bits = c(17, 12, 11), noisy = c(15, 10, 9)), list(bits = of_three, noisy = of_three),
                       list(bits = rappor, noisy = mech_laplace(epsilon = 1)), 40)
  expect_identical(unname(beside$value), c(14, 4, 2, 15, 10, 9))
  expect_snapshot(rappor)
})

test_that("with shared hash functions nothing calls a fit exact", {
  shared <- mech_unary_encoding(p = 0.75, q = 0.25, shared = TRUE)
  expect_match(format(shared), "hash functions are shared, so this noise is approximate")
  expect_identical(mech_unary_encoding(p = 0.75, q = 0.25, shared = FALSE), rappor)
  expect_identical(privacy(shared), privacy(rappor))
  ask <- function(mechanism) {
    suppressWarnings(sample_posterior(as_release(c(17, 12, 11), of_three, mechanism, n = 40), model_categorical(), chains = 1, iter = 30, seed = 1))
  }
  fit <- ask(shared)
  expect_false(fit$exact)
  expect_identical(fit$draws, ask(rappor)$draws)
  shown <- capture.output(print(fit))
  expect_identical(grep("exact", shown), integer())
  expect_match(shown, "approximate", all = FALSE)
  expect_match(capture.output(print(ask(rappor))), "(exact)", fixed = TRUE, all = FALSE)
  path <- withr::local_tempfile(fileext = ".json")
  write_release(fit$release, path)
  expect_identical(read_release(path), fit$release)
  changed <- sub("\"shared\": true", "\"shared\": 1", readLines(path), fixed = TRUE)
  writeLines(changed, path)
  without_words({
    expect_error(read_release(path), class = "noiseaware_error_file")
    expect_error(mech_unary_encoding(epsilon = 1, shared = NA), class = "noiseaware_error_argument")
  })
})

test_that("what is no sum of bits is refused", {
  data <- data.frame(x = c("a", "b"))
  refusals("mechanism", expression(mech_unary_encoding(), mech_unary_encoding(p = 0.5), mech_unary_encoding(p = 0.2, q = 0.5), mech_unary_encoding(p = 1, q = 0.5),
                                   mech_unary_encoding(epsilon = 0), mech_unary_encoding(epsilon = 1, p = 0.7, q = 0.2), release(data, of_three, rappor),
                                   as_release(c(1, 2, 3), of_three, rappor, n = NULL, neighbours = "add_remove"),
                                   as_release(1, stat_sums(~ x, list(x = c(0, 1))), rappor, n = 5)))
  refusals("value", expression(as_release(c(1, 2, 9), of_three, rappor, n = 8), as_release(c(1, 2.5, 3), of_three, rappor, n = 8),
                               as_release(c(-1, 2, 3), of_three, rappor, n = 8)))
  rel <- as_release(c(17, 12, 11), of_three, rappor, n = 40)
  expect_error(sample_posterior(rel, model_categorical(), "clt"), "same for all totals", class = "noiseaware_error_method")
})

test_that("with sums of bits it is calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate(model_categorical(), of_three, mech_unary_encoding(epsilon = 1), n = 50, replicates = 60, chains = 1, iter = 500, warmup = 100, seed = 3)
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})
