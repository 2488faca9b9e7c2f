counted <- function(formula, levels, value, n, scale = 1) as_release(value, stat_counts(formula, levels), mech_discrete_laplace(scale = scale), n = n)
noise <- function(d, scale) tanh(1 / (2 * scale)) * exp(-abs(d) / scale)
# all tables of n records, a row each
tables_of <- function(n, cells) {
  all <- as.matrix(expand.grid(rep(list(0:n), cells)))
  all[rowSums(all) == n, , drop = FALSE]
}
factor_of <- function(...) private_test(..., replicates = 19, interval = FALSE)$bayes_factor

test_that("the Bayes factor of a proportion is that of quadrature over it and summation over counts", {
  n <- 12
  released <- counted(~ y, list(y = c("no", "yes")), c(no = 4, yes = 7), n, 1.5)
  given <- function(p) vapply(p, function(p) sum(dbinom(0:n, n, p) * noise(4 - (n - 0:n), 1.5) * noise(7 - 0:n, 1.5)), 0)
  for (null in c(0.1, 0.5)) {
    expect_equal(as.numeric(factor_of(released, ~ y, null = null)), integrate(given, 0, 1, rel.tol = 1e-10)$value / given(null), tolerance = 1e-8)
  }
  # certainty, of which only the noise could make 4 of the other level
  expect_equal(as.numeric(factor_of(released, ~ y, null = 1)), integrate(given, 0, 1, rel.tol = 1e-10)$value / given(1), tolerance = 1e-8)
  total <- as_release(c(event = 3.7), stat_sums(~ event, list(event = c(0, 1))), mech_laplace(scale = 2), n = 9)
  given <- function(p) vapply(p, function(p) sum(dbinom(0:9, 9, p) * exp(-abs(3.7 - 0:9) / 2)), 0)
  expect_equal(as.numeric(factor_of(total, ~ event, null = 0.3)), integrate(given, 0, 1)$value / given(0.3), tolerance = 1e-8)
  # one side has the prior's part on that side, and both together are the two-sided factor
  given <- function(p) vapply(p, function(p) sum(dbinom(0:n, n, p) * noise(4 - (n - 0:n), 1.5) * noise(7 - 0:n, 1.5)), 0)
  sides <- vapply(c("less", "greater"), function(side) as.numeric(factor_of(released, ~ y, null = 0.3, alternative = side)), 0)
  exact <- c(integrate(given, 0, 0.3, rel.tol = 1e-10)$value / 0.3, integrate(given, 0.3, 1, rel.tol = 1e-10)$value / 0.7) / given(0.3)
  expect_equal(unname(sides), exact, tolerance = 1e-8)
  expect_match(attr(factor_of(released, ~ y, null = 0.3, alternative = "less"), "prior"), "only its part below 0.3")
  expect_null(factor_of(as_release(c(4, 7), stat_counts(~ y, list(y = c("no", "yes"))), mech_laplace(epsilon = 1), n = NULL,
                                   neighbours = "add_remove"), ~ y))
})

test_that("Bayes factors of several probabilities and of independence are those of enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 6
  value <- c(1, 0, 4)
  tables <- tables_of(n, 3)
  density <- apply(tables, 1, function(table) prod(noise(value - table, 1)))
  null <- c(0.5, 0.3, 0.2)
  # under Dirichlet(1) all tables are equally likely
  exact <- mean(density) / sum(density * apply(tables, 1, dmultinom, prob = null))
  three <- counted(~ g, list(g = c("a", "b", "c")), value, n)
  expect_equal(as.numeric(factor_of(three, ~ g, null = null, bayes_factor = TRUE)), exact, tolerance = 1e-8)
  # the third is not published
  two <- as_release(value[1:2], stat_subset(stat_counts(~ g, list(g = c("a", "b", "c"))), c("g=a", "g=b")), mech_discrete_laplace(scale = 1), n = n)
  density <- apply(tables, 1, function(table) prod(noise(value - table, 1)[1:2]))
  exact <- mean(density) / sum(density * apply(tables, 1, dmultinom, prob = null))
  expect_equal(as.numeric(factor_of(two, ~ g, null = null, bayes_factor = TRUE)), exact, tolerance = 1e-8)

  parity <- stat_linear(stat_counts(~ g, list(g = c("a", "b", "c"))), list(both = c("g=a" = 1, "g=b" = 1)))
  expect_error(factor_of(as_release(4, parity, mech_discrete_laplace(scale = 1), n = n), ~ g, bayes_factor = TRUE), class = "noiseaware_error_method")

  value <- c(4, 0, 1, 2)
  tables <- tables_of(n, 4)
  density <- apply(tables, 1, function(table) prod(noise(value - table, 1)))
  # both margins are uniform on what they can be; given them the table is hypergeometric
  independent <- apply(tables, 1, function(t) exp(sum(lfactorial(c(t[1] + t[2], t[3] + t[4], t[1] + t[3], t[2] + t[4]))) - sum(lfactorial(c(t, n)))) / (n + 1)^2)
  expect_equal(sum(independent), 1)
  square <- counted(~ y:x, list(y = c("0", "1"), x = c("0", "1")), value, n)
  expect_null(factor_of(square, y ~ x))
  found <- factor_of(square, y ~ x, bayes_factor = TRUE, seed = 1)
  exact <- log(mean(density) / sum(density * independent))
  expect_lt(abs(attr(found, "log") - exact), 5 * attr(found, "error"))
  # the second proportion is the larger: of independent beta variables given the table, and one half in the prior
  larger <- apply(tables, 1, function(t) integrate(function(p) dbeta(p, 1 + t[4], 1 + t[3]) * pbeta(p, 1 + t[2], 1 + t[1]), 0, 1)$value)
  greater <- factor_of(square, y ~ x, alternative = "greater", bayes_factor = TRUE, seed = 1)
  expect_lt(abs(attr(greater, "log") - exact - log(2 * sum(density * larger) / sum(density))), 5 * attr(greater, "error"))
  expect_lt(attr(greater, "error"), 0.15)
  expect_lt(attr(found, "error"), 0.1)
})

test_that("with little noise Bayes factors of a mean and a standard deviation are those of the records", {
  skip_on_cran()
  set.seed(1)
  y <- rnorm(30, 0.4, 1.2)
  n <- 30
  released <- simulate_release(data.frame(y), stat_sums(~ y + I(y^2), list(y = c(-8, 6)), outside = "none"), mech_gaussian(sd = 1e-3))
  # default prior: variance ~ inverse gamma(a, b), mean ~ N(m, variance / k)
  a <- 0.75
  b <- 1.4^2
  m <- -1
  k <- 1 / 16
  squares <- sum((y - mean(y))^2) + k * n / (k + n) * (mean(y) - m)^2
  with_variance <- function(s2, squares, log_k) log_k / 2 - n / 2 * log(2 * pi * s2) - squares / (2 * s2)
  without_variance <- function(squares, log_k) log_k / 2 - n / 2 * log(2 * pi) + a * log(b) - lgamma(a) + lgamma(a + n / 2) - (a + n / 2) * log(b + squares / 2)
  any <- without_variance(squares, log(k / (k + n)))
  mean_factor <- factor_of(released, ~ y, null = 0.2, bayes_factor = TRUE, seed = 1)
  expect_lt(abs(attr(mean_factor, "log") - (any - without_variance(sum((y - 0.2)^2), 0))), 5 * attr(mean_factor, "error") + 0.01)
  sd_factor <- factor_of(released, ~ y, of = "sd", null = 1.3, bayes_factor = TRUE, seed = 1)
  expect_lt(abs(attr(sd_factor, "log") - (any - with_variance(1.3^2, squares, log(k / (k + n))))), 5 * attr(sd_factor, "error") + 0.01)
  expect_lt(max(attr(mean_factor, "error"), attr(sd_factor, "error")), 0.05)
  # one-sided: of a t and of an inverse gamma distribution, before and after the records
  share <- function(m, k, a, b, null) pt((m - null) * sqrt(k * a / b), 2 * a)
  after <- share((k * m + n * mean(y)) / (k + n), k + n, a + n / 2, b + squares / 2, 0.2)
  one_sided <- function(...) factor_of(released, ~ y, ..., bayes_factor = TRUE, seed = 1)
  for (side in c("greater", "less")) {
    one <- one_sided(null = 0.2, alternative = side)
    shares <- c(after, share(m, k, a, b, 0.2))
    if (side == "less") shares <- 1 - shares
    expect_lt(abs(attr(one, "log") - attr(mean_factor, "log") - log(shares[1L] / shares[2L])), 5 * attr(one, "error"))
  }
  smaller <- 1 - pgamma(1 / 1.3^2, c(a + n / 2, a), c(b + squares / 2, b))
  less <- one_sided(null = 1.3, of = "sd", alternative = "less")
  expect_lt(abs(attr(less, "log") - attr(sd_factor, "log") - log(smaller[1L] / smaller[2L])), 5 * attr(less, "error"))
})

test_that("a slope has the Bayes factor of test_hypothesis(), and other tests have none", {
  skip_on_cran()
  set.seed(1)
  data <- data.frame(x = rnorm(60))
  data$y <- data$x / 2 + rnorm(60)
  released <- simulate_release(data, stat_crossprod(y ~ x, list(y = c(-6, 6), x = c(-6, 6)), outside = "none"), mech_gaussian(sd = 0.1))
  either <- test_hypothesis(released, "x", model_lm(y ~ x, prior_nig()), seed = 1)
  expect_identical(factor_of(released, y ~ x, bayes_factor = TRUE, seed = 1), either)
  refused <- function(...) expect_error(factor_of(..., bayes_factor = TRUE), class = "noiseaware_error_argument")
  refused(released, y ~ x, null = 1)
  # a slope of either sign is equally likely before
  both <- vapply(c("less", "greater"), function(side) as.numeric(factor_of(released, y ~ x, alternative = side, bayes_factor = TRUE, seed = 1)), 0)
  expect_equal(mean(both), as.numeric(either), tolerance = 0.01)
  expect_gt(both[["greater"]], both[["less"]])
  expect_error(private_test(released, y ~ x, bayes_factor = NA), class = "noiseaware_error_argument")
})

test_that("print and tidy() have the Bayes factor", {
  skip_if_not_installed("generics")
  test <- private_test(counted(~ y, list(y = c("no", "yes")), c(70, 65), 135), ~ y, null = 0.5)
  expect_output(print(test), "One proportion.*Bayes factor [0-9.]+ for the null hypothesis\nprior: Beta\\(1, 1\\) of the probability")
  row <- generics::tidy(test)
  expect_identical(row$bayes.factor, as.numeric(test$bayes_factor))
  expect_identical(c(row$conf.low, row$conf.high), as.vector(test$conf.int))
  expect_identical(row$p.value, test$p.value)
  less <- private_test(counted(~ y, list(y = c("no", "yes")), c(70, 65), 135), ~ y, alternative = "less", interval = FALSE)
  expect_output(print(less), "only its part below 0.5")
  expect_identical(generics::tidy(less)[["estimate"]], NA_real_)
  three <- private_test(counted(~ g, list(g = c("a", "b", "c")), c(20, 30, 40), 90), ~ g, replicates = 19)
  expect_no_match(paste(utils::capture.output(print(three)), collapse = "\n"), "Bayes factor")
  expect_identical(generics::tidy(three)[["bayes.factor"]], NA_real_)
})
