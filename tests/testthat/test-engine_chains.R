# How long a run takes: what is told of it, and the blocks that are timed.

test_that("the time left is told after warmup, once, and only if it is long", {
  # 1,000 iterations of 20 seconds: 1,200 of this chain and 2,500 of the next are left
  report <- internal("reporter")(function(amount) NULL, 2 * 2500)
  expect_no_message(report(300))
  expect_message(report(1000, 20), "about 74 seconds left", class = "noiseaware_message_forecast")
  expect_no_message(report(1000, 20))
  expect_no_message(internal("reporter")(function(amount) NULL, 5000)(1000, 2))
  # one iteration and a tick of the clock say nothing; many of them do
  report <- internal("reporter")(function(amount) NULL, 60000)
  expect_no_message(for (i in 1:99) report(1, 0.001))
  expect_message(for (i in 1:9) report(1, 0.001), "about 60 seconds left")
  expect_no_message(internal("reporter")(function(amount) NULL, 5000, told = TRUE)(1000, 20))
})

test_that("a block ends where warmup does, and those after it are timed", {
  rel <- as_release(c(1, 2, 3, 1, 4), lm_problem(1), mech_laplace(epsilon = 1), 20)
  bound <- internal("bind_model")(model_lm(), rel$statistic)
  problem <- internal("augment_problem")(rel, bound, NULL, c(1, 2), 1)
  state <- internal("start_chain")(problem, bound, c(1, 2), 1, NULL)
  heard <- list()
  report <- function(amount, seconds = NULL) heard[[length(heard) + 1]] <<- c(amount, timed = !is.null(seconds))
  internal("run_blocks")(problem, state, 2500, list(warmup = 300, thin = 1), report)
  expect_identical(unname(do.call(rbind, heard)), cbind(c(300, 1000, 1000, 200), c(0, 1, 1, 1)))
  # a whole run that is short is quiet
  expect_no_message(sample_posterior(rel, model_lm(), method = "augment", iter = 200, seed = 1))
})

test_that("counted work gives the time of an iteration, after warmup", {
  rel <- as_release(c(1, 2, 3, 1, 4), lm_problem(1), mech_laplace(epsilon = 1), 20)
  time <- function(passes, more = 0) {
    fit <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 400, warmup = 300, seed = 2, control = list(passes = passes))
    line <- internal("cost_line")(if (more) extend(fit, more) else fit)
    as.numeric(sub(".*about ([0-9.]+) milliseconds.*", "\\1", line))
  }
  plain <- time(0)
  expect_gt(plain, 0)
  expect_identical(time(0, 500), plain)
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
