# Every model, mechanism and method, calibrated: simulation-based calibration at a
# small and a moderate number of records. One row of support_matrix.csv for each
# variable of each case: the KS test of its ranks, whether their ECDF stays inside
# the 99 per cent simultaneous band, and how many replicates failed.
#
#   Rscript inst/replication/support_matrix.R [replicates] [directory]
#
# A case that is in the csv already is not run again.
library(noiseaware)
arguments <- commandArgs(TRUE)
replicates <- if (length(arguments) >= 1) as.numeric(arguments[1]) else 500
directory <- if (length(arguments) >= 2) arguments[2] else "inst/replication/results"
dir.create(directory, showWarnings = FALSE, recursive = TRUE)
path <- file.path(directory, "support_matrix.csv")

yes_no <- list(y = c("no", "yes"))
three <- list(y = c("a", "b", "c"))
classes <- list(y = c("a", "b"), u = c("k", "l"), v = c("p", "q", "r"))
close_prior <- prior_nig(mean = 0, precision = 1, shape = 4, rate = 3)
covariates <- prior_niw(mean = 0, kappa = 2, df = 6, scale = 2)
box <- list(y = c(-6, 6), x = c(-5, 5))

# model, statistic, and whether its components are integers
designs <- list(
  bernoulli = list(model_bernoulli(), stat_counts(~ y, yes_no), TRUE),
  categorical = list(model_categorical(), stat_counts(~ y, three), TRUE),
  naive_bayes = list(model_naive_bayes("y"), stat_counts(~ y:u + y:v, classes), TRUE),
  poisson = list(model_poisson(prior = prior_gamma(4, 1)), stat_sums(~ x, list(x = c(0, 25))), FALSE),
  exponential = list(model_exponential(prior = prior_gamma(4, 4)), stat_sums(~ x, list(x = c(0, 8))), FALSE),
  normal = list(model_normal(prior = close_prior), stat_sums(~ x + I(x^2), list(x = c(-6, 6))), FALSE),
  mvnormal = list(model_mvnormal(prior = prior_niw(mean = 0, kappa = 2, df = 6, scale = 2)), stat_crossprod(y ~ x, box), FALSE),
  lm = list(model_lm(prior = close_prior, covariates = covariates), stat_crossprod(y ~ x, box), FALSE),
  logistic = list(model_logistic(prior = prior_normal(0, 1), covariates = covariates), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-5, 5))), FALSE),
  local_bernoulli = list(model_bernoulli(), stat_records(~ y, levels = yes_no), NA),
  local_normal = list(model_normal(prior = close_prior), stat_records(~ x, bounds = list(x = c(-6, 6))), FALSE))

mechanisms <- list(laplace = mech_laplace(1), gaussian = mech_gaussian(mu = 1), discrete_laplace = mech_discrete_laplace(1),
                   discrete_gaussian = mech_discrete_gaussian(rho = 0.5), randomized_response = mech_randomized_response(1))

cases <- expand.grid(n = c(20, 500), mechanism = names(mechanisms), design = names(designs), method = c("augment", "collapse", "clt"),
                     stringsAsFactors = FALSE)[4:1]
fits <- function(case) {
  integers <- designs[[case$design]][[3]]
  if (case$mechanism == "randomized_response") return(is.na(integers))
  if (is.na(integers)) return(FALSE)
  integers || !startsWith(case$mechanism, "discrete")
}
cases <- cases[vapply(seq_len(nrow(cases)), function(i) fits(cases[i, ]), TRUE), ]
served <- function(case) {
  table <- supported()
  any(table$model == sub("local_", "", case$design) & table$statistic == designs[[case$design]][[2]]$name & table$method == case$method)
}
cases <- cases[vapply(seq_len(nrow(cases)), function(i) served(cases[i, ]), TRUE), ]
cases <- cases[order(cases$method == "augment" & cases$n > 100), ] # what takes long at the end

done <- if (file.exists(path)) utils::read.csv(path) else NULL
for (i in seq_len(nrow(cases))) {
  case <- cases[i, ]
  if (!is.null(done) && nrow(merge(case, done))) next
  design <- designs[[case$design]]
  started <- proc.time()[["elapsed"]]
  calibration <- tryCatch(
    suppressWarnings(calibrate(design[[1]], design[[2]], mechanisms[[case$mechanism]], n = case$n, replicates = replicates, method = case$method,
                               chains = 1, iter = 2000, seed = 20 + i)),
    noiseaware_error = function(e) NULL)
  if (is.null(calibration) || all(calibration$runs$failed)) next
  table <- summary(calibration)
  rows <- data.frame(case, table[c("variable", "replicates")], failed = sum(calibration$runs$failed),
                     lapply(table[c("coverage_50", "coverage_90", "ks", "p.value")], signif, 3), inside = table$in_band,
                     seconds = round(proc.time()[["elapsed"]] - started, 1), row.names = NULL)
  done <- rbind(done, rows)
  utils::write.csv(done, path, row.names = FALSE)
  cat(sprintf("%-10s %-16s %-20s n = %-4d %s inside, %d failed, %.0f s\n", case$method, case$design, case$mechanism, case$n,
              paste(sum(rows$inside), "of", nrow(rows)), rows$failed[1], rows$seconds[1]))
}
