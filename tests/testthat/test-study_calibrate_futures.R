skip_if_not_installed("future")

# workers of another R process need the installed package
local_workers <- function(strategy, ..., env = parent.frame()) {
  old <- future::plan(strategy, workers = 2, ...)
  withr::defer(future::plan(old), envir = env)
}

# two for the whole file: to start them takes longer than what they do
shared_workers <- function() if (!inherits(future::plan(), "multisession")) local_workers(future::multisession, env = teardown_env())

test_that("two processes give the same results as one", {
  skip_on_cran() # takes long; `make test` runs it
  here <- calibrate_known("augment", 12, chains = 2, iter = 200)
  shared_workers()
  expect_identical(calibrate_known("augment", 12, chains = 2, iter = 200)$results, here$results)
})

test_that("a cluster of two processes gives the same results, files and user functions too", {
  skip_on_cran() # takes long; `make test` runs it
  records <- 2
  model <- model_custom(
    r_prior = function() c(mu = rnorm(1)),
    r_records = function(theta, n) cbind(x = rnorm(n, theta["mu"], records)),
    r_theta = function(records, theta) c(mu = rnorm(1, sum(records) / 4 / (1 + nrow(records) / 4), 1 / sqrt(1 + nrow(records) / 4))),
    variables = "x")
  run <- function(...) calibrate(model, known$statistic, known$mechanism, 10, 8, chains = 1, iter = 100, seed = 1, ...)
  here <- run()
  local_workers(future::cluster)
  path <- withr::local_tempfile()
  expect_identical(run(file = path)$results, here$results)
  expect_identical(length(readLines(path)), 9L)
})

test_that("functions of the global environment take along what they use", {
  skip_on_cran() # takes long; `make test` runs it
  assign("noiseaware_test_sd", 3, globalenv())
  withr::defer(rm("noiseaware_test_sd", envir = globalenv()))
  sampler <- function(release, model) cbind(mean = stats::rnorm(9, release$value, noiseaware_test_sd))
  environment(sampler) <- globalenv()
  here <- calibrate_known(sampler, 4)
  shared_workers()
  expect_identical(calibrate_known(sampler, 4)$results, here$results)
})

test_that("a worker that dies once costs its own replicates, which are run again", {
  skip_on_cran() # takes long; `make test` runs it
  flag <- withr::local_tempfile()
  dies_once <- function(release, model) {
    if (release$value > 5 && !file.exists(flag)) {
      file.create(flag)
      tools::pskill(Sys.getpid(), 9)
    }
    stats::setNames(as.data.frame(stats::rnorm(9, release$value)), "mean")
  }
  shared_workers()
  file.create(flag)
  whole <- calibrate_known(dies_once, 40, seed = 3)
  unlink(flag)
  path <- withr::local_tempfile()
  expect_identical(calibrate_known(dies_once, 40, seed = 3, file = path)$results, whole$results)
  expect_true(file.exists(flag))
  expect_identical(length(readLines(path)), 41L)
})

test_that("a replicate whose worker dies twice is an error that keeps the finished replicates", {
  skip_on_cran() # takes long; `make test` runs it
  shared_workers()
  dies <- function(release, model) {
    if (release$value > 20) tools::pskill(Sys.getpid(), 9)
    stats::setNames(as.data.frame(stats::rnorm(9, release$value)), "mean")
  }
  path <- withr::local_tempfile()
  error <- expect_error(calibrate_known(dies, 60, seed = 3, file = path), "worker failed", class = "noiseaware_error_worker")
  finished <- nrow(error$calibration$runs)
  expect_gt(finished, 0)
  expect_lt(finished, 60)
  expect_identical(length(readLines(path)), finished + 1L)
})

test_that("functions are found at any depth, without the names of their lists", {
  expect_identical(internal("functions_in")(list(a = list(b = mean, 1), f = structure(list(g = sum), class = "own"))), list(mean, sum))
})
