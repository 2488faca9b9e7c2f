# What is published taken as exact: method "naive", which does not have tables. Called as noiseaware.R is.
suppressPackageStartupMessages(library(noiseaware))
given <- commandArgs(TRUE)
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "..", "problems.R"))
if (is.null(problems[[given[3L]]][["model"]])) quit(status = 3)
fit <- tryCatch(suppressWarnings(sample_problem(problems[[given[3L]]], read_release(given[1L]), method = "naive", seed = 1)),
                noiseaware_error_method = function(e) quit(status = 3))
draws <- posterior::as_draws_df(fit)
utils::write.csv(data.frame(draws[names(problems[[given[3L]]]$parameters)], chain = draws$.chain, check.names = FALSE), given[2L], row.names = FALSE)
