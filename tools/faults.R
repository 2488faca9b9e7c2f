# What may go wrong from outside: interrupts at random moments, no memory, a full
# disk, a killed worker, a killed R. The session must stay usable, files be whole or absent,
# and what was finished be kept. Linux only (signals, ulimit, a small tmpfs).
#
#   Rscript tools/faults.R [interrupts]
library(noiseaware)
arguments <- as.numeric(commandArgs(TRUE))
interrupts <- if (length(arguments)) arguments[1] else 1000
bad <- 0
check <- function(ok, what) {
  cat(if (isTRUE(ok)) "ok      " else "FAILED  ", what, "\n", sep = "")
  if (!isTRUE(ok)) bad <<- bad + 1
}

st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-2, 2)))
set.seed(1)
rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 500)
reference <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 3000, seed = 1)

# ---- interrupts ---------------------------------------------------------------------

# a child of its own sends the signals, so that they come at any moment
interrupted_run <- function(after) {
  system(sprintf("(sleep %.4f; kill -INT %d) &", after, Sys.getpid()))
  tryCatch(withCallingHandlers({
    fit <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 3000, seed = 1)
    Sys.sleep(max(0, after + 0.05)) # a signal that comes too late must not hit what follows
    fit
  }, warning = function(w) if (inherits(w, "noiseaware_warning_interrupted")) invokeRestart("muffleWarning")),
  noiseaware_error_interrupted = function(e) NULL, interrupt = function(i) NULL)
}
took <- system.time(sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 3000, seed = 1))[["elapsed"]]
kept <- whole <- right <- 0
for (i in seq_len(interrupts)) {
  fit <- interrupted_run(stats::runif(1, 0, 1.2 * took))
  if (is.null(fit)) next
  kept <- kept + 1
  draws <- posterior::ndraws(fit$draws)
  same <- identical(unclass(fit$draws)[seq_len(draws), , ], unclass(reference$draws)[seq_len(draws), , ])
  # and goes on to the same end
  if (draws < 1500 && i %% 10 == 0) same <- same && identical(extend(fit, 1500 - draws)$draws, reference$draws)
  right <- right + same
}
check(kept == right, sprintf("%d interrupts: %d runs left draws, %d of them the right ones", interrupts, kept, right))
check(identical(sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 3000, seed = 1)$draws, reference$draws), "the session draws as before")

# ---- no memory ---------------------------------------------------------------------

child <- function(limit, code) {
  script <- tempfile(fileext = ".R")
  writeLines(c("library(noiseaware)", code), script)
  suppressWarnings(system2("bash", c("-c", shQuote(sprintf("ulimit -v %d; '%s' %s", limit, file.path(R.home("bin"), "Rscript"), script))), stdout = TRUE, stderr = TRUE))
}
for (limit in c(900000, 1200000, 1500000)) {
  out <- child(limit, c(
    "st <- stat_sums(~ x, bounds = list(x = c(0, 1)))",
    "rel <- as_release(5, st, mech_laplace(epsilon = 1), n = 2e8)",
    "r <- tryCatch({sample_posterior(rel, model_exponential(), method = 'augment', chains = 1, iter = 2); 'ran'}, error = function(e) 'refused')",
    "small <- sample_posterior(as_release(5, st, mech_laplace(epsilon = 1), n = 20), model_exponential(), method = 'augment', chains = 1, iter = 20, seed = 1)",
    "cat('alive', r, posterior::ndraws(small$draws))"))
  check(any(grepl("alive refused 10", out)), sprintf("out of memory at %d MB: the session lives on", limit %/% 1000))
}

# ---- a full disk -------------------------------------------------------------------

disk <- tempfile("disk")
dir.create(disk)
if (system(sprintf("mount -t tmpfs -o size=64k tmpfs %s 2>/dev/null", disk)) == 0) {
  target <- file.path(disk, "release.json")
  write_release(rel, target)
  before <- readLines(target)
  system(sprintf("head -c 60000 /dev/zero > %s/filler 2>/dev/null", disk))
  wide <- stat_counts(~ g, levels = list(g = paste0("level", 1:500)))
  large <- as_release(rep(1, 500), wide, mech_laplace(epsilon = 1), n = 10)
  refused <- tryCatch({
    write_release(large, target)
    FALSE
  }, noiseaware_error_file = function(e) TRUE)
  check(refused, "a full disk: the release is refused")
  check(identical(readLines(target), before), "a full disk: the old file is whole")
  check(identical(sort(list.files(disk)), c("filler", "release.json")), "a full disk: nothing half-written is left")
  calibration <- file.path(disk, "calibration")
  refused <- tryCatch({
    calibrate(model_bernoulli(), stat_counts(~ g, levels = list(g = c("a", "b"))), mech_laplace(epsilon = 1), n = 20, replicates = 200, iter = 100, seed = 1, file = calibration)
    FALSE
  }, noiseaware_error = function(e) TRUE)
  check(refused, "a full disk: a checkpoint that cannot be written is told")
  system(sprintf("umount %s", disk))
} else {
  cat("skipped a full disk: no right to mount\n")
}

# ---- a killed worker -------------------------------------------------------------

future::plan(future::multisession, workers = 2)
killed <- tryCatch({
  suicidal <- model_custom(
    r_prior = function() c(mu = stats::rnorm(1)),
    r_records = function(theta, n) {
      if (stats::runif(1) < 0.05) tools::pskill(Sys.getpid(), 9L)
      cbind(x = stats::rnorm(n, theta, 1))
    },
    r_theta = function(records, theta) c(mu = mean(records[, "x"])), variables = "x")
  sample_posterior(as_release(1, stat_sums(~ x, bounds = list(x = c(-3, 3))), mech_laplace(epsilon = 1), n = 10), suicidal, chains = 2, iter = 500, seed = 1)
  "finished"
}, error = function(e) class(e)[1L])
future::plan(future::sequential)
check(killed == "noiseaware_error_worker", paste("killed workers are an error:", killed))
check(identical(sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 3000, seed = 1)$draws, reference$draws), "the session draws as before")

# ---- a killed R ------------------------------------------------------------------

# starts R on `code`, kills it `after` seconds later
kill_r <- function(code, after) {
  script <- tempfile(fileext = ".R")
  pid <- tempfile()
  writeLines(c("library(noiseaware)", sprintf("writeLines(as.character(Sys.getpid()), '%s')", pid), code), script)
  system2(file.path(R.home("bin"), "Rscript"), script, wait = FALSE, stdout = FALSE, stderr = FALSE)
  while (!file.exists(pid) || length(readLines(pid, warn = FALSE)) == 0L) Sys.sleep(0.01)
  Sys.sleep(after)
  tools::pskill(as.integer(readLines(pid)), tools::SIGKILL)
}

kills <- max(5, interrupts %/% 25)
target <- tempfile(fileext = ".json")
writer <- c("wide <- stat_counts(~ g, levels = list(g = paste0('level', 1:2000)))",
            sprintf("repeat for (value in 1:9) write_release(as_release(rep(value, 2000), wide, mech_laplace(epsilon = 1), n = 10), '%s')", target))
whole <- there <- 0
for (i in seq_len(kills)) {
  unlink(target)
  kill_r(writer, stats::runif(1, 0, 3))
  there <- there + file.exists(target)
  whole <- whole + (!file.exists(target) || length(unique(tryCatch(read_release(target)$value, error = function(e) 1:2))) == 1L)
}
check(whole == kills && there > 0, sprintf("R killed %d times while it writes releases: %d left a file, %d a broken one", kills, there, kills - whole))

runs <- function(file) sprintf("calibrate(model_bernoulli(), stat_counts(~ g, levels = list(g = c('a', 'b'))), mech_laplace(epsilon = 1), n = 20, replicates = 60, iter = 100, chains = 1, seed = 1, file = %s)",
                               deparse(file))
expected <- suppressWarnings(eval(parse(text = runs(NULL))))
kept <- tempfile("calibration")
for (i in 1:5) kill_r(runs(kept), stats::runif(1, 0.1, 1))
resumed <- suppressWarnings(eval(parse(text = runs(kept))))
same <- setdiff(names(expected$results), "seconds")
check(identical(resumed$results[same], expected$results[same]), "R killed five times in a calibration: it resumes to the same results")

cat(bad, "failed\n")
quit(status = as.integer(bad > 0))
