# The problems of inst/benchmark: the scorer knows a wrong sampler, and stored references are what exact sums and the package give.
folder <- test_path("..", "..", "inst", "benchmark")
skip_if_not(dir.exists(folder), "the benchmark is part of the repository, not of the package")
benchmark <- new.env()
for (file in c("problems.R", "exact.R", "score.R")) sys.source(file.path(folder, file), benchmark)
references <- utils::read.csv(file.path(folder, "references.csv"))
stored_release <- function(name) read_release(file.path(folder, "problems", paste0(name, ".json")))

normal_reference <- data.frame(variable = c("a", "b[1]"), mean = c(2, -1), sd = c(0.5, 3), mcse_mean = 0, mcse_sd = 0)
normal_draws <- function(draws, shift = 0, spread = 1) {
  data.frame(a = 2 + 0.5 * rnorm(draws), `b[1]` = -1 + 3 * (shift + spread * rnorm(draws)), chain = rep(1:4, each = draws / 4), check.names = FALSE)
}

test_that("the scorer knows draws that are right, biased, overconfident, too wide or too few", {
  set.seed(1)
  verdict <- function(...) benchmark$score_method(normal_draws(...), normal_reference)$verdict
  expect_identical(verdict(4000), "right")
  expect_identical(verdict(4000, shift = 0.12), "wrong")
  expect_identical(verdict(4000, shift = -0.12), "wrong")
  expect_identical(verdict(4000, spread = 0.9), "wrong")
  expect_identical(verdict(4000, spread = 1.1), "wrong")
  expect_identical(verdict(40), "too few draws")
  expect_identical(verdict(40, shift = 3), "wrong")
  scores <- benchmark$score_draws(normal_draws(1e5, shift = 0.3, spread = 2), normal_reference)
  expect_identical(scores$right, c(TRUE, FALSE))
  expect_equal(scores$mean_error, c(0, 0.3), tolerance = 0.03)
  expect_equal(scores$sd_error, c(0, log(2)), tolerance = 0.03)
  # draws that depend on each other are fewer
  walk <- normal_draws(4000)
  walk$a <- 2 + 0.5 * as.vector(stats::filter(rnorm(4000), 0.95, "recursive")) * sqrt(1 - 0.95^2)
  expect_lt(benchmark$score_draws(walk, normal_reference)$ess[1L], 400)
  # an error of the reference itself is allowed for
  rough <- transform(normal_reference, mcse_mean = 0.1 * sd)
  expect_identical(benchmark$score_method(normal_draws(4000, shift = 0.2), rough)$verdict, "right")
  # chains that stand still
  still <- normal_draws(400)
  still$a <- 2.1
  expect_identical(benchmark$score_method(still, normal_reference)$verdict, "wrong")
})

test_that("draws that cannot be scored are refused", {
  expect_error(benchmark$score_draws(data.frame(a = 1:3), normal_reference), "no column b[1]", fixed = TRUE)
  bad <- normal_draws(40)
  bad$a[3L] <- NA
  expect_error(benchmark$score_draws(bad, normal_reference), "draws of a are not all numbers")
  expect_error(benchmark$read_reference("trail", folder), "no problem is named trail")
})

test_that("the scorer of coverage knows intervals that are too narrow, and those that are too wide", {
  set.seed(2)
  truths <- data.frame(replicate = 1:400, variable = "a", truth = rnorm(400))
  intervals <- function(half) data.frame(replicate = 400:1, variable = "a", lower = -half, upper = half)
  expect_identical(benchmark$score_coverage(truths, intervals(1.96))$verdict, "calibrated")
  expect_identical(benchmark$score_coverage(truths, intervals(1.4))$verdict, "overconfident")
  expect_identical(benchmark$score_coverage(truths, intervals(3.5))$verdict, "too wide")
  expect_error(benchmark$score_coverage(truths, intervals(1)[-1L, ]), "missing for 1 of 400")
})

test_that("stored releases are those of the problems, whose references have all parameters", {
  skip_on_cran()
  expect_setequal(references$problem, names(benchmark$problems))
  for (name in names(benchmark$problems)) {
    problem <- benchmark$problems[[name]]
    if (name %in% c("birth-weights", "quine")) skip_if_not_installed("MASS")
    expect_identical(references$variable[references$problem == name], names(problem$parameters), info = name)
    again <- benchmark$simulate_problem(problem, 1)
    expect_equal(stored_release(name)$value, again$value, info = name)
  }
})

test_that("references are exact sums and integrals, or agree with a second method", {
  skip_on_cran()
  exact <- Filter(function(problem) !is.null(problem$exact), benchmark$problems)
  expect_identical(unique(references$problem[references$method == "exact"]), names(exact))
  for (name in setdiff(names(exact), "geography")) { # that takes ten seconds
    of <- references[references$problem == name, ]
    found <- exact[[name]]$exact(stored_release(name))
    found <- found[match(of$variable, found$variable), ]
    expect_equal(found[c("mean", "sd", "lower", "upper")], of[c("mean", "sd", "lower", "upper")], tolerance = 1e-5, ignore_attr = TRUE, info = name)
  }
  expect_false(anyNA(references$second_mean))
  expect_lt(max(abs(references$second_mean - references$mean) / references$sd), 0.05)
  expect_lt(max(abs(log(references$second_sd / references$sd))), 0.05)
  sampled <- benchmark$problems$quakes$second(stored_release("quakes"))
  of <- references[references$problem == "quakes", ]
  expect_lt(max(abs(sampled$mean - of$mean) / sampled$mcse_mean, abs(sampled$sd - of$sd) / sampled$mcse_sd), 4)
})

test_that("enumeration confirms the sums over counts", {
  release <- list(n = 6, value = c("x=a" = 1.2, "x=b" = 3.9, "x=c" = 0.3))
  k <- expand.grid(0:6, 0:6, 0:6)
  k <- as.matrix(k[rowSums(k) == 6, ])
  alpha <- 1.5
  log_noise <- function(x) -abs(x) / 2
  weight <- apply(k, 1L, function(k) exp(sum(lgamma(k + alpha) - lfactorial(k) + log_noise(release$value - k))))
  weight <- weight / sum(weight)
  share <- (k + alpha) / (6 + 3 * alpha)
  found <- benchmark$exact_table(release, alpha, log_noise)
  expect_identical(found$variable, c("prob[a]", "prob[b]", "prob[c]"))
  expect_equal(found$mean, unname(colSums(weight * share)))
  expect_equal(found$sd^2, unname(colSums(weight * share * (1 + k + alpha) / (7 + 3 * alpha)) - colSums(weight * share)^2))
})

test_that("default calls are right on the problems, and the naive analysis is not", {
  skip_on_cran()
  verdict <- function(name, method = "auto") {
    problem <- benchmark$problems[[name]]
    fit <- suppressWarnings(benchmark$sample_problem(problem, stored_release(name), method, seed = 3))
    draws <- as.data.frame(posterior::as_draws_df(fit))
    draws$chain <- draws$.chain
    benchmark$score_method(draws, references[references$problem == name, ])$verdict
  }
  for (name in setdiff(names(benchmark$problems), "logistic")) expect_identical(verdict(name), "right", info = name)
  for (name in c("binomial", "regression")) expect_identical(verdict(name, "naive"), "wrong", info = name)
})
