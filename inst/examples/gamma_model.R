# Compiles gamma_model.c and runs it: times between failures that have two stages,
# so that a record is Gamma(2, rate). A compiler is needed, as for any package in C.

library(noiseaware)

# ---- compile: R CMD SHLIB, told where noiseaware.h is ----------------------------

folder <- tempfile("gamma")
dir.create(folder)
file.copy(system.file("examples", "gamma_model.c", package = "noiseaware"), folder)
library_file <- file.path(folder, paste0("gamma_model", .Platform$dynlib.ext))
Sys.setenv(PKG_CPPFLAGS = paste0("-I", shQuote(system.file("include", package = "noiseaware"))))
system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", shQuote(library_file), shQuote(file.path(folder, "gamma_model.c"))))
Sys.unsetenv("PKG_CPPFLAGS")

# ---- the model, tried hook by hook before it is used ------------------------------

model <- model_compiled("gamma_model", dll = library_file, parameters = "rate",
                        fields = list(shape = 2, prior = c(2, 2)))
model

statistic <- stat_sums(~ time, bounds = list(time = c(0, 10)))
debug_model(model, statistic)

# ---- a release, and its posterior ---------------------------------------------------

set.seed(1)
release <- simulate_release(model, statistic, mech_laplace(epsilon = 0.5), n = 200, parameters = c(rate = 0.8))
fit <- sample_posterior(release, model, chains = 2, iter = 2000, seed = 1)
fit
