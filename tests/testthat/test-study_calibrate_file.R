test_that("a file resumes, extends and gives back the same bits", {
  path <- withr::local_tempfile()
  whole <- calibrate_known(known_sampler(), 8)
  first <- calibrate_known(known_sampler(), 5, file = path)
  ran <- 0
  counting <- function(release, model) {
    ran <<- ran + 1
    known_draws(unname(release$value))
  }
  fresh <- withr::local_tempfile()
  calibrate_known(counting, 5, file = fresh)
  all <- calibrate_known(counting, 8, file = fresh, seed = NULL)
  expect_identical(ran, 8)
  expect_identical(all$results, whole$results)
  expect_identical(calibrate_known(counting, 8, file = fresh)$results, whole$results)
  expect_identical(ran, 8)
  expect_identical(calibrate_known(counting, 3, file = fresh)$results, whole$results[whole$results$replicate <= 3, ])
})

test_that("failures and warnings are in the file too", {
  path <- withr::local_tempfile()
  fails <- function(release, model) {
    if (release$value > 0) stop("above \"zero\"\n\u00e9")
    warning("below")
    known_draws(release$value)
  }
  expect_warning(a <- calibrate_known(fails, 6, file = path), class = "noiseaware_warning_failed")
  expect_warning(b <- calibrate_known(fails, 6, file = path), class = "noiseaware_warning_failed")
  expect_identical(a, b)
})

test_that("a line cut short is run again, anything else is refused and left as it was", {
  skip_on_cran() # takes long; `make test` runs it
  path <- withr::local_tempfile()
  whole <- calibrate_known(known_sampler(), 4, file = path)
  text <- readChar(path, file.size(path), useBytes = TRUE)
  restore <- function(text) writeBin(charToRaw(text), path)
  for (cut in c(1, 50, 300)) {
    restore(substr(text, 1, nchar(text) - cut))
    expect_identical(calibrate_known(known_sampler(), 4, file = path)$results, whole$results)
    expect_identical(calibrate_known(known_sampler(), 4, file = path)$results, whole$results) # readable again
    expect_identical(length(readLines(path)), 5L)
  }
  lines <- strsplit(text, "\n")[[1]]
  damaged <- list(
    sub("noiseaware calibration", "something else", text),
    paste0(lines[-1], "\n", collapse = ""),
    paste0(c(lines[1:2], substr(lines[3], 1, 80), lines[4:5]), "\n", collapse = ""),
    paste0(c(lines[1:2], sub("\"rhat\"", "\"hat\"", lines[3]), lines[4:5]), "\n", collapse = ""),
    paste0(c(lines[1:2], sub("\"truth\":\\[[^]]*\\]", "\"truth\":[1]", lines[3]), lines[4:5]), "\n", collapse = ""),
    paste0(c(lines[1:2], sub("\"failed\":false", "\"failed\":true", lines[3]), lines[4:5]), "\n", collapse = ""),
    sub("\"version\":2", "\"version\":3", text), "\n", "not json\n"
  )
  for (bad in damaged) {
    restore(bad)
    expect_error(calibrate_known(known_sampler(), 4, file = path), class = "noiseaware_error_file")
    expect_identical(readChar(path, file.size(path), useBytes = TRUE), bad)
  }
  writeBin(as.raw(c(0, 10, 200, 10)), path)
  expect_error(calibrate_known(known_sampler(), 4, file = path), class = "noiseaware_error_file")
})

test_that("a file of another problem is refused, and the message says what differs", {
  path <- withr::local_tempfile()
  calibrate_known(known_sampler(), 1, file = path)
  expect_error(calibrate_known(known_sampler(), 1, file = path, level = 0.5), "level", class = "noiseaware_error_file")
  expect_error(calibrate_known(known_sampler(), 1, file = path, seed = 2), "seed", class = "noiseaware_error_file")
  expect_error(calibrate_known("augment", 1, file = path), "method", class = "noiseaware_error_file")
  other <- model_normal(prior = list(mean = prior_normal(0, 2 + 1e-15), sd = fixed(1)))
  expect_error(calibrate(other, known$statistic, known$mechanism, 10, 1, known_sampler(), seed = 1, file = path), "model", class = "noiseaware_error_file")
})

test_that("a killed run resumes without losing or repeating a replicate", {
  skip_on_cran() # takes long; `make test` runs it
  path <- withr::local_tempfile()
  log <- withr::local_tempfile()
  script <- withr::local_tempfile(fileext = ".R")
  code <- c(
    "library(noiseaware)",
    "set.seed(1)",
    "sampler <- function(release, model) {",
    sprintf("  cat(sprintf('%%.17g', release$value), '\\n', file = %s, append = TRUE)", deparse(log)),
    "  Sys.sleep(0.05)",
    "  cbind(mean = rnorm(9, release$value))",
    "}",
    "model <- model_normal(prior = list(mean = prior_normal(0, 2), sd = fixed(1)))",
    "st <- stat_sums(~ x, bounds = list(x = c(-100, 100)))",
    sprintf("cal <- calibrate(model, st, mech_gaussian(sd = 3), 10, 40, sampler, seed = 1, file = %s)", deparse(path))
  )
  writeLines(c(sprintf("cat(Sys.getpid(), file = %s)", deparse(paste0(path, ".pid"))), code), script)
  lines <- function(file) if (file.exists(file)) length(readLines(file, warn = FALSE)) else 0L
  withr::local_envvar(R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep))
  system2(file.path(R.home("bin"), "Rscript"), script, wait = FALSE, stdout = FALSE, stderr = FALSE)
  deadline <- Sys.time() + 60
  while (lines(path) < 6 && Sys.time() < deadline) Sys.sleep(0.02)
  tools::pskill(as.integer(readLines(paste0(path, ".pid"), warn = FALSE)), 9)
  Sys.sleep(0.1)
  there <- sum(utils::tail(readBin(path, "raw", 1e6), -1) == charToRaw("\n")) - 1L
  expect_gte(there, 5)
  expect_lt(there, 40)
  here <- new.env()
  eval(parse(text = code), here)
  expect_identical(nrow(here$cal$runs), 40L)
  # begun: each of the 40 once, and again at most the one that was cut off
  begun <- readLines(log)
  expect_identical(length(unique(begun)), 40L)
  expect_lte(length(begun), 41L)
  uninterrupted <- calibrate(here$model, here$st, mech_gaussian(sd = 3), 10, 40, here$sampler, seed = 1)
  expect_identical(here$cal$results, uninterrupted$results)
})
