# Stan by rstan: the program of stan_program(), compiled and run for this release. Called as noiseaware.R is.
suppressPackageStartupMessages(library(noiseaware))
given <- commandArgs(TRUE)
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "..", "problems.R"))
problem <- problems[[given[3L]]]
written <- if (is.null(problem[["model"]])) NULL else tryCatch(stan_program(read_release(given[1L]), problem$model), noiseaware_error = function(e) NULL)
if (is.null(written) || !requireNamespace("rstan", quietly = TRUE)) quit(status = 3)
if (!file.exists(rstan::rstan_options("boost_lib"))) rstan::rstan_options(boost_lib = "/usr/include") # Debian's
fit <- rstan::stan(model_code = written$program, data = written$data, init = function() written$init, iter = 2000, seed = 1, refresh = 0, cores = 1)
draws <- posterior::as_draws_df(fit)
names(draws)[match(written$names, names(draws))] <- names(written$names)
utils::write.csv(data.frame(draws[names(problem$parameters)], chain = draws$.chain, check.names = FALSE), given[2L], row.names = FALSE)
