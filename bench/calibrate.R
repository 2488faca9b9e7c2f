# Calibration: processor seconds of a replicate, and what 1,000 of them take on two
# cores: all 1,000 run in two processes, whose processor seconds are added and
# halved (what elapsed is beside them: on a busy machine it is that of the others
# too). Runs are as long as about 1,000 effective draws need. With "quick" half the
# processor seconds of one process.
#
#   Rscript bench/calibrate.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

calibrate_designs <- function() {
  counts <- stat_counts(~ smoke:low + ht:low, levels = list(smoke = c("0", "1"), ht = c("0", "1", "2"), low = c("0", "1")))
  regression <- model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)), covariates = fixed(list(mean = c(0.9, -1.17), cov = diag(2))))
  list(
    `regression of Ju et al., "augment"` = list(
      model = regression, statistic = stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-10, 10), x1 = c(-10, 10), x2 = c(-10, 10))),
      mechanism = mech_laplace(epsilon = 10), method = "augment", chains = 2, iter = 4000, target = 300),
    `Bernoulli, "collapse"` = list(
      model = model_bernoulli(), statistic = stat_counts(~ y, levels = list(y = c("0", "1"))), mechanism = mech_laplace(epsilon = 1),
      method = "collapse", chains = 2, iter = 1200, target = 20),
    `naive Bayes (2 classes, 2 + 3 levels), "collapse"` = list(
      model = model_naive_bayes("low"), statistic = counts, mechanism = mech_laplace(epsilon = 1),
      method = "collapse", chains = 2, iter = 1400, target = 20)
  )
}

run_design <- function(d, replicates) {
  calibrate(d$model, d$statistic, d$mechanism, 100, replicates, d$method, chains = d$chains, iter = d$iter, seed = 1)
}

# seconds that are not the sampler's: prior draw, records, release, ranks
overhead <- function(d, replicates) {
  old <- future::plan(future::sequential)
  on.exit(future::plan(old))
  none <- function(release, model) draws
  fit <- sample_posterior(simulate_release(d$model, d$statistic, d$mechanism, n = 100), d$model, d$method, chains = d$chains, iter = d$iter)
  draws <- fit$draws
  seconds(calibrate(d$model, d$statistic, d$mechanism, 100, replicates, none, seed = 1)) / replicates
}

# elapsed, and half the processor seconds, of two processes
on_two <- function(d, replicates, workers) {
  used <- function() sum(unlist(parallel::clusterCall(workers, function() sum(proc.time()[1:2]))))
  before <- used()
  here <- proc.time()
  cal <- run_design(d, replicates)
  spent <- proc.time() - here
  list(cal = cal, elapsed = spent[["elapsed"]], half = (used() - before + spent[["user.self"]] + spent[["sys.self"]]) / 2)
}

bench_calibrate <- function(quick = FALSE) {
  replicates <- if (quick) 40 else 1000
  if (!quick) {
    workers <- parallelly::makeClusterPSOCK(2)
    on.exit(parallel::stopCluster(workers))
    old <- future::plan(future::cluster, workers = workers)
    on.exit(future::plan(old), add = TRUE, after = FALSE)
  }
  rows <- lapply(calibrate_designs(), function(d) {
    if (quick) {
      run_design(d, 2)
      used <- seconds(cal <- run_design(d, replicates))
      two <- list(cal = cal, half = 500 * used / replicates, elapsed = NA)
    } else {
      on_two(d, 4, workers) # workers load the package
      two <- on_two(d, replicates, workers)
    }
    cal <- two$cal
    table <- summary(cal)
    ess <- vapply(split(cal$results$ess, cal$results$replicate), min, 0)
    data.frame(`ms a replicate` = 2 * two$half, `of it not the sampler's, ms` = 1000 * overhead(d, 40),
               `1,000 on two cores, s` = two$half, `elapsed, s` = two$elapsed, `least bulk ESS, median` = stats::median(ess),
               `5% quantile` = stats::quantile(ess, 0.05, names = FALSE), `outside the 99% band` = sum(!table$in_band),
               variables = nrow(table), check.names = FALSE)
  })
  table <- cbind(design = names(rows), do.call(rbind, rows))
  rownames(table) <- NULL
  bench_result(Map(function(name, d, value) figure("1,000 replicates on two cores, s", name, value, d$target, TRUE),
                   names(rows), calibrate_designs(), table[["1,000 on two cores, s"]]),
               list("Replicates, n = 100" = table))
}

run_alone(bench_calibrate)
