# Runs the tests against the installed package and closes with the plain line
# "N passed, N failed, N skipped". Exits non-zero on a failure or if no test ran.
# Usage: Rscript tools/test.R [pattern of the names of test files]
Sys.setenv(NOT_CRAN = "true")
library(testthat)
library(noiseaware)
chosen <- commandArgs(TRUE)
results <- as.data.frame(test_dir("tests/testthat", filter = if (length(chosen)) chosen, package = "noiseaware", load_package = "installed",
                                  reporter = check_reporter(), stop_on_failure = FALSE))
slowest <- utils::head(sort(tapply(results$user, results$file, sum), decreasing = TRUE), 8L)
cat("slowest (processor seconds):", paste0(sub("test-(.*)\\.R", "\\1", names(slowest)), " ", round(slowest), collapse = ", "), "\n")
failed <- sum(results$failed) + sum(results$error)
passed <- sum(results$passed)
cat(sprintf("%d passed, %d failed, %d skipped\n", passed, failed, sum(results$skipped)))
if (failed > 0 || passed == 0) quit(status = 1)
