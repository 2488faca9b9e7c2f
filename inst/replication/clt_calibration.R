# Where method "clt" is calibrated and where it is not: simulation-based calibration
# over the number of records, of a regression whose prior keeps records inside the
# bounds and of one whose prior does not (the moments of regression take it that no
# record is clamped), and of counts with discrete noise (the normal distribution knows no
# whole numbers). Writes clt_calibration.csv, the table of ?method_clt.
#
#   Rscript clt_calibration.R [replicates] [directory]
library(noiseaware)
arguments <- commandArgs(TRUE)
replicates <- if (length(arguments) >= 1) as.numeric(arguments[1]) else 300
directory <- if (length(arguments) >= 2) arguments[2] else "results"

box <- list(y = c(-8, 8), x = c(-8, 8))
inside <- model_lm(prior = prior_nig(mean = 0, precision = 4, shape = 10, rate = 10), covariates = prior_niw(mean = 0, kappa = 10, df = 20, scale = 17))
# one response in nine outside
beyond <- model_lm(covariates = prior_niw(kappa = 1, scale = (8 / 3)^2))
laplace <- mech_laplace(epsilon = 1)
counts <- stat_counts(~ y, list(y = c("no", "yes")))
designs <- list(
  `regression, prior inside the bounds` = list(inside, stat_crossprod(y ~ x, box), laplace),
  `regression, prior beyond the bounds` = list(beyond, stat_crossprod(y ~ x, box), laplace),
  `Bernoulli, Laplace noise of scale 2` = list(model_bernoulli(), counts, laplace),
  `Bernoulli, discrete Laplace noise of scale 2` = list(model_bernoulli(), counts, mech_discrete_laplace(epsilon = 1)),
  `Bernoulli, discrete Laplace noise of scale 20` = list(model_bernoulli(), counts, mech_discrete_laplace(epsilon = 0.1)))

rows <- lapply(names(designs), function(name) {
  design <- designs[[name]]
  do.call(rbind, lapply(c(20, 200, 2000), function(n) {
    calibration <- suppressWarnings(calibrate(design[[1]], design[[2]], design[[3]], n = n, replicates = replicates, method = "clt",
                                              chains = 1, iter = 4000, thin = 3, seed = 1,
                                              control = if (inherits(design[[1]], "model_lm")) list(sampler = "noncentred") else list()))
    table <- summary(calibration)
    print(data.frame(design = name, n = n, variable = table$variable, replicates = table$replicates, failed = sum(calibration$runs$failed),
                     coverage_90 = signif(table$coverage_90, 3), ks = signif(table$ks, 3), p.value = signif(table$p.value, 3),
                     inside = table$in_band))
  }))
})
utils::write.csv(do.call(rbind, rows), file.path(directory, "clt_calibration.csv"), row.names = FALSE)
