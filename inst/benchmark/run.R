# Runs methods on the stored releases and scores them:  Rscript run.R [--methods noiseaware,naive] [--only PROBLEM,..] [--results FILE]
#
# A method is a script methods/NAME.R, .py or .sh, called with the release's file, a file for the draws, and the problem's name. It writes draws as score.R
# reads them. Rows of results.csv: problem, method, worst errors, effective draws, processor seconds (the whole process: start, reading, sampling, writing),
# effective draws per second, verdict, and where it was run. A script that fails, or that has nothing to say of a problem (exit status 3), has no draws.
folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
sys.source(file.path(folder, "score.R"), globalenv())
option <- function(name, default) {
  at <- match(paste0("--", name), commandArgs(TRUE))
  if (is.na(at)) default else commandArgs(TRUE)[at + 1L]
}
references <- utils::read.csv(file.path(folder, "references.csv"))
scripts <- list.files(file.path(folder, "methods"), full.names = TRUE)
names(scripts) <- sub("[.][^.]*$", "", basename(scripts))
methods <- strsplit(option("methods", paste(names(scripts), collapse = ",")), ",")[[1L]]
path <- option("results", file.path(folder, "results.csv"))
interpreter <- c(R = "Rscript", py = "python3", sh = "bash")

run_method <- function(method, problem) {
  script <- scripts[[method]]
  output <- tempfile(fileext = ".csv")
  on.exit(unlink(output))
  arguments <- c(script, file.path(folder, "problems", paste0(problem, ".json")), output, problem)
  time <- system.time(status <- suppressWarnings(system2(interpreter[[sub(".*[.]", "", script)]], shQuote(arguments), stdout = FALSE, stderr = FALSE)))
  seconds <- sum(time[c("user.child", "sys.child")])
  if (status == 3L) return(NULL)
  row <- tryCatch(score_method(utils::read.csv(output, check.names = FALSE), references[references$problem == problem, ], seconds), error = function(e) {
    data.frame(mean_error = NA, sd_error = NA, ess = NA, seconds, ess_per_second = NA, verdict = paste("failed:", conditionMessage(e)))
  })
  data.frame(problem, method, row, date = as.character(Sys.Date()))
}

for (method in methods) {
  for (problem in strsplit(option("only", paste(unique(references$problem), collapse = ",")), ",")[[1L]]) {
    row <- run_method(method, problem)
    if (is.null(row)) next
    stored <- if (file.exists(path)) utils::read.csv(path)
    stored <- rbind(stored[!(stored$problem == problem & stored$method == method), ], row)
    numbers <- vapply(stored, is.numeric, TRUE)
    stored[numbers] <- lapply(stored[numbers], signif, 3)
    utils::write.csv(stored[order(match(stored$problem, unique(references$problem)), stored$method), ], path, row.names = FALSE)
    cat(sprintf("%s, %s: %s, mean off by %.3f sds, %.2f s\n", problem, method, row$verdict, row$mean_error, row$seconds))
  }
}
