# The default call. A method's script is called with the release, the file for its draws, and the problem's name; it writes a column a
# parameter (and `chain`). In another language the model is read in problems/PROBLEM.txt, the release in problems/PROBLEM.json.
suppressPackageStartupMessages(library(noiseaware))
given <- commandArgs(TRUE)
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "..", "problems.R"))
fit <- suppressWarnings(sample_problem(problems[[given[3L]]], read_release(given[1L]), seed = 1))
draws <- posterior::as_draws_df(fit)
utils::write.csv(data.frame(draws[names(problems[[given[3L]]]$parameters)], chain = draws$.chain, check.names = FALSE), given[2L], row.names = FALSE)
