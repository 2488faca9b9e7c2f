# Synthetic data sets: from the model, from the table, and the combining rules.

two <- list(x = c("a", "b"), y = c("u", "v", "w"))
table_of <- function(...) {
  rel <- as_release(c(30, 12, 9, 4, 22, 31), stat_counts(~ x:y, two), mech_gaussian(sd = 3), 110)
  suppressWarnings(sample_posterior(rel, model_table(...), method = "collapse", chains = 2, iter = 2000, seed = 1))
}

test_that("imputed records have the table of a draw", {
  skip_on_cran()
  counts_of <- function(d, v) as.vector(aperm(table(d[v]), rev(seq_along(v)))) # the last variable fastest
  fit <- table_of()
  rows <- round(seq(1, 2000, length.out = 50))
  sets <- synthesize(fit, m = 50, of = "records", seed = 1)
  tables <- posterior::as_draws_matrix(denoise(fit, ~ x:y))
  for (k in c(1, 20, 50)) {
    expect_identical(dim(sets[[k]]), c(110L, 2L))
    expect_identical(lapply(sets[[k]], levels), two)
    expect_equal(as.numeric(tables[rows[k], ]), counts_of(sets[[k]], c("x", "y")))
  }
  # cliques: both tables, and records matched at random given what they share
  three <- c(two, list(z = c("c", "d")))
  rel <- as_release(c(30, 12, 9, 4, 22, 31, 20, 12, 18, 15, 10, 33), stat_counts(~ x:y + y:z, three), mech_gaussian(sd = 3), 110)
  fit <- suppressWarnings(sample_posterior(rel, model_table(~ x:y + y:z), chains = 2, iter = 2000, seed = 1))
  sets <- synthesize(fit, m = 400, of = "records", seed = 2)
  tables <- posterior::as_draws_matrix(denoise(fit, ~ x:y + z:y))
  rows <- round(seq(1, 2000, length.out = 400))
  for (k in c(3, 400)) expect_equal(as.numeric(tables[rows[k], ]), c(counts_of(sets[[k]], c("x", "y")), counts_of(sets[[k]], c("z", "y"))))
  apart <- vapply(sets, function(d) {
    d <- d[d$y == "u", ]
    mean(d$x == "a" & d$z == "c") - mean(d$x == "a") * mean(d$z == "c")
  }, 0)
  expect_lt(abs(mean(apart)) / (stats::sd(apart) / 20), 5)
  expect_gt(stats::sd(apart), 0.01)
})

test_that("seeds, sizes, other models, print", {
  fit <- table_of()
  sets <- synthesize(fit, m = 5, seed = 3)
  expect_identical(sets, synthesize(fit, m = 5, seed = 3))
  expect_false(identical(sets, synthesize(fit, m = 5, seed = 4)))
  expect_identical(unique(vapply(synthesize(fit, 3, n = 40, seed = 1), nrow, 0L)), 40L)
  expect_output(print(sets), "5 data sets of 110 records and 2 variables: x, y")
  expect_output(print(sets), "the release's: mu", fixed = TRUE)
  st <- stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-3, 3)))
  set.seed(1)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 2), n = 300)
  lines <- synthesize(sample_posterior(rel, model_lm(), chains = 1, iter = 400, seed = 1) |> suppressWarnings(), m = 4, seed = 1)
  expect_identical(names(lines[[1]]), c("y", "x"))
  expect_identical(combine_synthetic(lines, function(d) lm(y ~ x, d))$term, c("(Intercept)", "x"))
})

test_that("combined estimates are the posterior's", {
  skip_on_cran()
  fit <- table_of()
  share <- function(d) {
    p <- mean(d$x == "a")
    list(estimate = c(share = p), variance = p * (1 - p) / nrow(d))
  }
  draws <- posterior::as_draws_matrix(fit$draws)
  exact <- rowSums(draws[, 1:3])
  for (of in c("population", "records")) {
    told <- combine_synthetic(synthesize(fit, m = 800, of = of, seed = 1), share)
    expect_lt(abs(told$estimate - mean(exact)), 5 * stats::sd(exact) / sqrt(800) + 0.005)
    # a variance from 800 sets, less what they add themselves
    expect_lt(abs(told$std.error / stats::sd(exact) - 1), 0.2)
  }
})

test_that("the rules, by hand", {
  sets <- structure(lapply(1:4, function(k) data.frame(x = rep(k, 10))), class = "noiseaware_synthetic", of = "population", released = 20, privacy = "")
  q <- c(1, 3, 2, 6)
  analysis <- function(d) list(estimate = q[d$x[1]], variance = 0.5)
  b <- 1.25 * stats::var(q)
  told <- combine_synthetic(sets, analysis)
  expect_equal(told$estimate, 3)
  # by quadrature: the variance is 3 b / x - 0.5, x chi-square where that is positive
  upper <- 3 * b / 0.5
  room <- stats::pchisq(upper, 3)
  inside <- stats::integrate(function(x) stats::dchisq(x, 3) * stats::pnorm((told$conf.high - 3) / sqrt(3 * b / x - 0.5)), 0, upper, rel.tol = 1e-8)$value / room
  expect_equal(inside, 0.975, tolerance = 1e-4)
  expect_equal(told$conf.low, 6 - told$conf.high)
  expect_equal(told$std.error, sqrt(3 * b / stats::qchisq(room / 2, 3) - 0.5), tolerance = 1e-3)
  # a difference that is negative: the interval stays one
  close <- combine_synthetic(sets, function(d) list(estimate = q[d$x[1]], variance = 2 * b))
  expect_lt(close$conf.high - close$estimate, 4 * sqrt(2 * b))
  # many sets, little within: the t distribution
  many <- structure(lapply(1:40, function(k) data.frame(x = k)), class = "noiseaware_synthetic", of = "population", released = 1, privacy = "")
  far <- combine_synthetic(many, function(d) list(estimate = d$x, variance = 1e-9))
  expect_equal(far$conf.high - far$estimate, stats::qt(0.975, 39) * sqrt(41 / 40) * stats::sd(1:40), tolerance = 1e-3)
  # sets that do not differ
  same <- combine_synthetic(sets, function(d) list(estimate = 1, variance = 0.5))
  expect_equal(unlist(same[c("estimate", "std.error")], use.names = FALSE), c(1, sqrt(0.5 * 10 / 20)))
  none <- combine_synthetic(sets, function(d) list(estimate = 1, variance = 0))
  expect_equal(c(none$conf.low, none$conf.high), c(1, 1))
  attr(sets, "of") <- "records"
  told <- combine_synthetic(sets, analysis)
  expect_equal(told$std.error, sqrt(b + 0.5))
  expect_equal(told$df, 3 * (1 + 0.5 / b)^2)
})

test_that("mice has the same sets, and the same rules for records", {
  skip_if_not_installed("mice")
  fit <- table_of()
  sets <- synthesize(fit, m = 5, of = "records", seed = 1)
  told <- as_mids(sets)
  expect_s3_class(told, "mids")
  for (k in 1:5) expect_equal(mice::complete(told, k), sets[[k]], ignore_attr = TRUE)
  expect_true(all(is.na(told$data))) # no set replaces the data
  analysis <- function(data) stats::lm(as.integer(x) ~ y, data)
  ours <- combine_synthetic(sets, analysis)
  theirs <- mice::pool(lapply(unclass(sets), analysis))$pooled
  expect_equal(ours$estimate, theirs$estimate)
  expect_equal(ours$std.error, sqrt(theirs$t))
  expect_output(print(told), "mids")
  attr(sets, "class") <- "noiseaware_synthetic"
  sets[[1]] <- sets[[1]][-1, ]
  refusals("argument", expression(as_mids(1), as_mids(sets)))
})

test_that("what cannot be is refused", {
  fit <- table_of()
  sets <- synthesize(fit, m = 3, seed = 1)
  bernoulli <- sample_posterior(as_release(c(8, 12), stat_counts(~ x, two["x"]), mech_laplace(scale = 2), 20), model_bernoulli(), chains = 1, iter = 200, seed = 1)
  bernoulli <- suppressWarnings(bernoulli)
  refusals("argument", expression(synthesize(1), synthesize(fit, m = 1), synthesize(fit, m = 1e6), synthesize(fit, of = "people"), synthesize(fit, n = 0),
                                  synthesize(fit, of = "records", n = 5), combine_synthetic(1, mean), combine_synthetic(sets, 1), combine_synthetic(sets, nrow),
                                  combine_synthetic(sets, function(d) 1, level = 2)))
  refusals("method", expression(synthesize(bernoulli, of = "records")))
})

test_that("an analysis that fails is named by its set; few sets and nearly empty cells get a word", {
  rel <- as_release(c(30, 20, 2, 5, 25, 0), stat_counts(~ x:y, two), mech_laplace(epsilon = 1), n = 82)
  fit <- suppressWarnings(sample_posterior(rel, model_table(), chains = 1, iter = 2000, seed = 1))
  sets <- synthesize(fit, m = 4, seed = 1)
  count <- 0
  third <- function(data) {
    count <<- count + 1
    if (count == 3) stop("no such level")
    list(estimate = count, variance = 1)
  }
  failed <- tryCatch(suppressMessages(combine_synthetic(sets, third)), noiseaware_error_analysis = identity)
  expect_match(cli::ansi_strip(rlang::cnd_message(failed)), "data set 3 of 4.*no such level")
  expect_error(suppressMessages(combine_synthetic(sets, function(data) 1)), "data set 1 ", class = "noiseaware_error_argument")
  fine <- function(data) list(estimate = mean(data$x == "a"), variance = 0.01)
  expect_message(suppressMessages(combine_synthetic(sets, fine), classes = "noiseaware_message_cells"), "There are only 4 data sets", class = "noiseaware_message_sets")
  # cells of a known table: 4 records of a, u on average and 5 of a, v
  set <- function(counts) expand.grid(y = two$y, x = two$x)[rep(1:6, counts), ]
  known <- structure(rep(list(set(c(3, 4, 9, 9, 9, 9)), set(c(5, 6, 9, 9, 9, 9))), 5), class = "noiseaware_synthetic", of = "population", released = 43)
  said <- tryCatch(combine_synthetic(known, fine), noiseaware_message_cells = function(m) cli::ansi_strip(conditionMessage(m)))
  expect_match(said, "on average: \"y=u:x=a\"", fixed = TRUE)
  expect_silent(combine_synthetic(structure(rep(list(set(rep(5, 6))), 10), class = "noiseaware_synthetic", of = "population", released = 30), fine))
  odd <- function(data) {
    count <<- count + 1
    if (count %in% c(2, 4)) warning("few records")
    fine(data)
  }
  count <- 0
  warned <- tryCatch(suppressMessages(combine_synthetic(sets, odd)), noiseaware_warning_analysis = function(w) cli::ansi_strip(rlang::cnd_message(w)))
  expect_match(warned, "warned for 2 of 4 data sets: 2, 4.*few records")
})
