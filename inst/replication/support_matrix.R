# Every model, mechanism and method, calibrated: simulation-based calibration at a
# small and a moderate number of records. One row of support_matrix.csv.gz for each
# variable of each case: the KS test of its ranks, whether their ECDF stays inside
# the 99 per cent simultaneous band, and how many replicates failed.
#
#   Rscript support_matrix.R [replicates] [directory] [minutes]
#
# A case that is in the csv already is not run again; none is begun after `minutes`.
library(noiseaware)
arguments <- commandArgs(TRUE)
replicates <- if (length(arguments) >= 1) as.numeric(arguments[1]) else 500
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
directory <- if (length(arguments) >= 2) arguments[2] else file.path(here, "results")
dir.create(directory, showWarnings = FALSE, recursive = TRUE)
path <- file.path(directory, "support_matrix.csv.gz")
minutes <- if (length(arguments) >= 3) as.numeric(arguments[3]) else Inf

source(file.path(here, "..", "..", "tests", "testthat", "support_matrix_cases.R"))
cases <- cases[order(cases$method == "augment" & cases$n > 100), ] # what takes long at the end

done <- if (file.exists(path)) utils::read.csv(path) else NULL
for (i in seq_len(nrow(cases))) {
  case <- cases[i, ]
  if (!is.null(done) && nrow(merge(case, done))) next
  if (proc.time()[["elapsed"]] > 60 * minutes) break
  design <- designs[[case$design]]
  started <- proc.time()[["elapsed"]]
  calibration <- tryCatch(
    suppressWarnings(calibrate(design[[1]], design[[2]], mechanisms[[case$mechanism]], n = case$n, replicates = replicates, method = case$method,
                               chains = 1, iter = 1000, seed = 20 + i)),
    noiseaware_error = function(e) e)
  if (inherits(calibration, "error") || all(calibration$runs$failed)) {
    why <- if (inherits(calibration, "error")) conditionMessage(calibration) else calibration$conditions$message[1]
    cat(sprintf("%-10s %-16s %-20s n = %-4d refused: %s\n", case$method, case$design, case$mechanism, case$n, cli::ansi_strip(why)))
    next
  }
  table <- summary(calibration)
  rows <- data.frame(case, table[c("variable", "replicates")], failed = sum(calibration$runs$failed),
                     lapply(table[c("coverage_50", "coverage_90", "ks", "p.value")], signif, 3), inside = table$in_band,
                     seconds = round(proc.time()[["elapsed"]] - started, 1), row.names = NULL)
  done <- rbind(done, rows)
  file <- gzfile(path, "w")
  utils::write.csv(done, file, row.names = FALSE)
  close(file)
  cat(sprintf("%-10s %-16s %-20s n = %-4d %s inside, %d failed, %.0f s\n", case$method, case$design, case$mechanism, case$n,
              paste(sum(rows$inside), "of", nrow(rows)), rows$failed[1], rows$seconds[1]))
}
