# Runs the tests against the installed package, files in parallel on all cores, and closes
# with the plain line "N passed, N failed, N skipped". Exits non-zero on a failure or if no test ran.
# Usage: Rscript tools/test.R [pattern of the names of test files, without test- and .R]
Sys.setenv(NOT_CRAN = "true")
library(testthat)
library(noiseaware)
chosen <- commandArgs(TRUE)
files <- find_test_scripts("tests/testthat")
# what takes long does not come last
long <- c("engine_surrogate", "model_smooth", "model_survival", "engine_collapse_normal", "engine_pool", "engine_collapse_table", "engine_collapse_glm",
          "engine_supported", "hole_crossings", "engine_pool_spread", "model_covariates_joint", "model_glm", "engine_augment", "model_covariates_joint_glm",
          "augment_cells", "clamped", "model_categories", "input", "engine_collapse_answers", "study_calibrate", "model_covariate", "study_private_test",
          "mech_record_noise", "totals_normal_table", "engine_pool_clt_partial", "utils_terms", "augment_resize", "update_theta", "engine_moments_lm",
          "fit_diagnostics", "study_design", "engine_pool_records", "mech_exponential", "fit_report", "registry", "engine_collapse_counts", "fit_evidence_totals",
          "study_test_evidence", "augment_levels", "engine_pool_tables", "mech_objective", "engine_pool_models", "augment_redraw", "release_budget_table",
          "release_budget_file", "study_calibrate_file", "study_calibrate_futures", "plugin")
name <- sub("test-(.*)\\.R", "\\1", basename(files))
if (length(chosen)) {
  files <- files[grepl(chosen, name)]
  name <- name[grepl(chosen, name)]
  if (!length(files)) stop("no test file has a name that matches ", chosen)
}
files <- files[order(match(name, long, nomatch = length(long) + 1L))]
# "test: reason" of what was skipped
reasons <- function(test) {
  skipped <- Filter(function(one) inherits(one, "expectation_skip"), test$results)
  vapply(skipped, function(one) paste0(test$file, ", ", test$test, ": ", sub("^Reason: ", "", conditionMessage(one))), "")
}
# the same of what failed
failures <- function(test) {
  broken <- Filter(function(one) inherits(one, c("expectation_failure", "expectation_error")), test$results)
  vapply(broken, function(one) paste0(test$file, ", ", test$test, ": ", paste(format(one), collapse = "\n")), "")
}
# with processor seconds, those of processes that it started too
run_file <- function(file, begun) {
  spent <- function() sum(proc.time()[-3L], na.rm = TRUE)
  before <- spent()
  file.create(file.path(begun, basename(file)))
  on.exit(unlink(file.path(begun, basename(file))))
  # a reporter that says nothing: those that talk take half a millisecond for each of fifty thousand expectations
  output <- utils::capture.output(results <- test_file(file, package = "noiseaware", load_package = "installed", reporter = Reporter$new(), stop_on_failure = FALSE))
  list(table = as.data.frame(results), skipped = unlist(lapply(results, reasons)), output = c(output, unlist(lapply(results, failures))), seconds = spent() - before)
}
# large vectors come and go: glibc would return each to the system, and be given empty pages again
Sys.setenv(MALLOC_MMAP_THRESHOLD_ = "1000000000", MALLOC_TRIM_THRESHOLD_ = "2000000000")
# and R would look through all packages for garbage each time that so small a heap is full, as processes start with
Sys.setenv(R_NSIZE = "3000000", R_VSIZE = "64M")
# Processes that each run one file after another: to fork for each file would copy the memory of the parent as often. One more than
# cores: some tests wait for locks and servers.
workers <- parallel::makePSOCKcluster(min(length(files), max(1L, parallel::detectCores() + 1L, na.rm = TRUE)))
invisible(parallel::clusterEvalQ(workers, { library(testthat); library(noiseaware) }))
# helpers and tests run once or twice: compiled, they take longer
invisible(parallel::clusterCall(workers, compiler::enableJIT, 0L))
parallel::clusterExport(workers, c("reasons", "failures"))
# a file that ends its process leaves its name
begun <- tempfile("begun-")
dir.create(begun)
ran <- tryCatch(parallel::clusterApplyLB(workers, files, run_file, begun), error = function(e) {
  cat(conditionMessage(e), "\nended before their time:", list.files(begun), "\n0 passed, 1 failed, 0 skipped\n")
  quit(status = 1)
})
parallel::stopCluster(workers)
results <- do.call(rbind, lapply(ran, `[[`, "table"))
failing <- vapply(ran, function(one) sum(one$table$failed) + sum(one$table$error) > 0, TRUE)
for (one in ran[failing]) cat(one$output, sep = "\n")
skipped <- unlist(lapply(ran, `[[`, "skipped"))
if (length(skipped)) cat("skipped:", skipped, sep = "\n  ")
seconds <- sort(stats::setNames(vapply(ran, `[[`, 0, "seconds"), sub("test-(.*)\\.R", "\\1", basename(files))), decreasing = TRUE)
slowest <- utils::head(seconds, 30L)
cat("slowest (processor seconds, of", round(sum(seconds)), "in all):", paste(names(slowest), round(slowest), collapse = ", "), "\n")
failed <- sum(results$failed) + sum(results$error)
passed <- sum(results$passed)
cat(sprintf("%d passed, %d failed, %d skipped\n", passed, failed, sum(results$skipped)))
if (failed > 0 || passed == 0) quit(status = 1)
