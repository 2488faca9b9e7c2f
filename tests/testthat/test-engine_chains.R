# How long a run takes: what is reported, and the blocks that are timed.

test_that("the time left is told early, again where warmup misled, and only if it is long", {
  new <- function(...) internal("reporter")(function(amount) NULL, ...)
  report <- new(2 * 2500)
  expect_no_message(report(200, 2, TRUE)) # less than a twentieth, and than 3 seconds
  expect_message(report(100, 1, TRUE), "by the first iterations, about 47 seconds left", class = "noiseaware_message_forecast")
  expect_no_message(report(700, 7, TRUE))
  expect_message(report(1000, 20), "Warmup has finished; about 60 seconds left", class = "noiseaware_message_forecast")
  expect_no_message(report(1000, 200))
  report <- new(5000) # as fast after warmup as within
  expect_message(report(250, 1, TRUE), "about 19 seconds left")
  expect_no_message(report(1000, 5))
  expect_no_message(new(5000)(1000, 2))
  report <- new(1e5) # 3 seconds are enough
  expect_message(report(100, 3, TRUE), "left")
  # of single iterations the clock says nothing at first
  report <- new(60000)
  expect_no_message(for (i in 1:99) report(1, 0.001))
  expect_message(for (i in 1:9) report(1, 0.001), "about 60 seconds left")
  expect_no_message(new(5000, told = TRUE)(1000, 20))
})

test_that("a block ends where warmup does, and those after it are timed", {
  rel <- as_release(c(1, 2, 3, 1, 4), lm_problem(1), mech_laplace(epsilon = 1), 20)
  bound <- internal("bind_model")(model_lm(), rel$statistic)
  problem <- internal("augment_problem")(rel, bound, NULL, c(1, 2), 1)
  state <- internal("start_chain")(problem, bound, c(1, 2), 1, NULL)
  heard <- list()
  report <- function(amount, seconds, warmup) heard[[length(heard) + 1]] <<- c(amount, warmup)
  internal("run_blocks")(problem, state, 2500, list(warmup = 300, thin = 1), report)
  expect_identical(unname(do.call(rbind, heard)), cbind(c(125, 125, 50, rep(125, 17), 75), rep(c(1, 0), c(3, 18))))
  # a whole run that is short is quiet
  expect_no_message(sample_posterior(rel, model_lm(), method = "augment", iter = 200, seed = 1))
})

test_that("counted work gives the time of an iteration, of a run in parts too", {
  rel <- as_release(c(1, 2, 3, 1, 4), lm_problem(1), mech_laplace(epsilon = 1), 20)
  time <- function(passes, iter = 900, more = 0) {
    fit <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = iter, warmup = 300, seed = 2, control = list(passes = passes))
    line <- internal("cost_line")(if (more) extend(fit, more) else fit)
    as.numeric(sub(".* ([0-9.]+) milliseconds for 1,000 iterations.*", "\\1", line))
  }
  plain <- time(0)
  expect_gt(plain, 0)
  expect_identical(time(0, 400, 500), plain)
  expect_gt(time(20), 2 * plain)
})

test_that("future is loaded only where it would find another plan than the sequential one", {
  skip_on_cran()
  asks <- "library(noiseaware); a <- noiseaware:::plan_is_sequential(); cat(a, isNamespaceLoaded('future'))"
  say <- function(env) system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(asks)), stdout = TRUE, env = env)
  libraries <- paste0("R_LIBS=", paste(.libPaths(), collapse = ":"))
  expect_identical(say(libraries), "TRUE FALSE")
  expect_identical(say(c(libraries, "R_FUTURE_PLAN=multicore")), "FALSE TRUE")
})
