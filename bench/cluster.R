# Beyond one process, tried on one machine: calibrate(), design() and chains under plans of future (PSOCK clusters; batchtools with its local schedulers, as on
# Slurm; mirai), a worker that is killed, a run that is killed and goes on elsewhere, and jobs that share nothing but a folder, as on Kubernetes. All results are
# compared with those of one process, bit for bit. vignette("scale") says how.
#
#   Rscript bench/cluster.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

options(future.cache.path = file.path(tempdir(), "future")) # batchtools' registries

cluster_statistic <- stat_counts(~ y, list(y = c("no", "yes")))
cluster_mechanism <- mech_laplace(epsilon = 1)

cluster_calibrate <- function(replicates, seed = 1, ...) {
  suppressWarnings(calibrate(model_bernoulli(), cluster_statistic, cluster_mechanism, n = 50, replicates = replicates, seed = seed, chains = 1, iter = 400, ...))
}

cluster_design <- function() {
  suppressWarnings(design(model_bernoulli(), cluster_statistic, epsilon = c(0.5, 1), n = 50, replicates = 4, seed = 1, chains = 1, iter = 400))
}

cluster_chains <- function() {
  set.seed(1)
  release <- simulate_release(model_bernoulli(), cluster_statistic, cluster_mechanism, n = 50)
  suppressWarnings(sample_posterior(release, model_bernoulli(), method = "augment", chains = 4, iter = 400, seed = 1))$draws
}

plans <- function() {
  there <- function(package) requireNamespace(package, quietly = TRUE)
  c(list("multisession, 2 workers" = function() future::plan(future::multisession, workers = 2),
         "cluster, 2 PSOCK nodes" = function() future::plan(future::cluster, workers = c("localhost", "localhost"))),
    if (there("future.batchtools")) list("batchtools_local" = function() future::plan(future.batchtools::batchtools_local),
                                         "batchtools_multicore, 2 workers" = function() future::plan(future.batchtools::batchtools_multicore, workers = 2)),
    if (there("future.mirai")) list("mirai_multisession, 2 workers" = function() future::plan(future.mirai::mirai_multisession, workers = 2)))
}

sequentially <- function(code) {
  future::plan(future::sequential)
  code
}

# a sampler that kills its process once, if `flag` is not there
dying <- function(flag) {
  force(flag)
  function(release, model) {
    if (release$value[[1L]] > 20 && !file.exists(flag)) {
      file.create(flag)
      tools::pskill(Sys.getpid(), 9)
    }
    stats::setNames(as.data.frame(stats::rnorm(9, release$value[[2L]])), "prob[yes]")
  }
}

cluster_rows <- function(replicates) {
  expected <- sequentially(list(calibrate = cluster_calibrate(replicates)$results, design = as.data.frame(cluster_design()), chains = cluster_chains()))
  flag <- tempfile()
  run <- function() suppressWarnings(calibrate(model_bernoulli(), cluster_statistic, cluster_mechanism, n = 50, method = dying(flag), replicates = 20, seed = 1))$results
  file.create(flag)
  whole <- sequentially(run())
  do.call(rbind, Map(function(start, name) {
    say("%s", name)
    start()
    on.exit(future::plan(future::sequential))
    began <- proc.time()[["elapsed"]]
    same <- c(identical(cluster_calibrate(replicates)$results, expected$calibrate), identical(as.data.frame(cluster_design()), expected$design),
              identical(cluster_chains(), expected$chains))
    took <- proc.time()[["elapsed"]] - began
    unlink(flag)
    survived <- identical(tryCatch(run(), error = function(e) NULL), whole) && file.exists(flag)
    data.frame(plan = name, `calibrate()` = same[1L], `design()` = same[2L], chains = same[3L], `a worker killed` = survived, `seconds of the first three` = took, check.names = FALSE)
  }, plans(), names(plans())))
}

# another R process, told to run code with the functions of this file
elsewhere <- function(code, folder) {
  file <- tempfile(fileext = ".R")
  writeLines(c(sprintf("source(\"%s\")", normalizePath("bench/helpers.R")), grep("^run_alone", readLines("bench/cluster.R"), value = TRUE, invert = TRUE),
               sprintf("setwd(\"%s\")", folder), code), file)
  processx::process$new(file.path(R.home("bin"), "Rscript"), file, stdout = NULL, stderr = NULL)
}

run_elsewhere <- function(code, folder) {
  job <- elsewhere(code, folder)
  job$wait()
  job$get_exit_status() == 0L
}

# The main process is killed once there are some replicates; another one, with workers, goes on in a copy of the folder.
moved_run <- function(replicates) {
  folder <- tempfile("here")
  dir.create(folder)
  file <- file.path(folder, "calibration.jsonl")
  call <- sprintf("r <- cluster_calibrate(%d, file = \"calibration.jsonl\")", replicates)
  job <- elsewhere(call, folder)
  while (job$is_alive() && (!file.exists(file) || length(readLines(file, warn = FALSE)) < 4L)) Sys.sleep(0.02)
  job$kill()
  there <- tempfile("there")
  dir.create(there)
  file.copy(file, there)
  ok <- run_elsewhere(c("future::plan(future::multisession, workers = 2)", call, "saveRDS(r$results, 'results.rds')", "future::plan(future::sequential)"), there)
  ok && identical(readRDS(file.path(there, "results.rds")), sequentially(cluster_calibrate(replicates)$results))
}

# Jobs by their index, each with a seed and a file of its own; one is killed and run again, as the scheduler would.
indexed_jobs <- function(jobs, replicates) {
  folder <- tempfile("volume")
  dir.create(folder)
  call <- function(k) sprintf("cluster_calibrate(%d, seed = %d, file = \"%d.jsonl\")", replicates, k, k)
  running <- lapply(seq_len(jobs), function(k) elsewhere(call(k), folder))
  file <- file.path(folder, "1.jsonl")
  while (running[[1L]]$is_alive() && (!file.exists(file) || length(readLines(file, warn = FALSE)) < 2L)) Sys.sleep(0.02)
  running[[1L]]$kill()
  for (job in running) job$wait()
  again <- elsewhere(call(1L), folder)
  again$wait()
  joined <- do.call(c, lapply(seq_len(jobs), function(k) cluster_calibrate(replicates, seed = k, file = file.path(folder, sprintf("%d.jsonl", k)))))
  alone <- do.call(c, lapply(seq_len(jobs), function(k) cluster_calibrate(replicates, seed = k)))
  identical(joined$results, alone$results)
}

bench_cluster <- function(quick = FALSE) {
  rows <- cluster_rows(if (quick) 3L else 6L)
  say("a run that moves")
  moved <- moved_run(300L)
  say("jobs by index")
  indexed <- indexed_jobs(3L, 40L)
  bench_result(list(figure("plans whose results are those of one process", sprintf("of %d", nrow(rows)), sum(rows[[2L]] & rows[[3L]] & rows[[4L]]), nrow(rows)),
                    figure("plans under which a killed worker costs its own replicates alone", sprintf("of %d", nrow(rows)), sum(rows[["a worker killed"]]), nrow(rows)),
                    figure("a killed run goes on elsewhere, with the same results", "killed once there were three replicates", as.numeric(moved), 1),
                    figure("jobs by index, one killed and run again, with the same results", "3 jobs", as.numeric(indexed), 1)),
               list("Plans" = rows), "design() runs calibrate() for each cell; confidence_set() runs in one process, and takes seconds.")
}

run_alone(bench_cluster)
