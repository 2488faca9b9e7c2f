# Replicates side by side, through future. Chunks of them are sent to the workers
# and come back; a chunk takes about `chunk_seconds`, so that little is lost with
# a worker, and little time goes into sending.

chunk_seconds <- 1

# Calls keep(runs) with finished replicates as they come. Returns a list: status
# "done", "interrupted" or "failed" (a worker died), message.
run_replicates <- function(problem, seeds, keep) {
  progress <- progressr::progressor(steps = length(seeds))
  take <- function(runs) {
    keep(runs)
    progress(amount = length(runs))
  }
  run <- if (inherits(future::plan("next"), "sequential")) run_here else run_on_workers
  tryCatch({
    run(problem, seeds, take)
    list(status = "done")
  }, interrupt = function(i) list(status = "interrupted"),
  FutureError = function(e) list(status = "failed", message = conditionMessage(e)))
}

run_here <- function(problem, seeds, take) {
  bound <- bind_model(problem$model, problem$statistic)
  for (seed in seeds) take(list(run_replicate(problem, bound, seed)))
}

run_chunk <- function(problem, seeds) {
  bound <- bind_model(problem$model, problem$statistic)
  lapply(seeds, function(seed) run_replicate(problem, bound, seed))
}

run_on_workers <- function(problem, seeds, take) {
  workers <- min(future::nbrOfWorkers(), length(seeds))
  carried <- user_globals(problem)
  pending <- list()
  # what has come back is kept, also when another worker died or the user stops
  on.exit(for (f in pending) if (isTRUE(tryCatch(future::resolved(f), error = function(e) FALSE))) {
    tryCatch(take(future::value(f)), error = function(e) NULL)
  })
  seconds <- numeric()
  while (length(seeds) || length(pending)) {
    while (length(seeds) && length(pending) < workers) {
      size <- chunk_size(seconds, length(seeds), workers)
      pending[[length(pending) + 1L]] <- send_chunk(problem, seeds[seq_len(size)], carried)
      seeds <- seeds[-seq_len(size)]
    }
    ready <- which(vapply(pending, future::resolved, TRUE))
    for (k in ready) {
      runs <- future::value(pending[[k]])
      pending[k] <- list(NULL)
      take(runs)
      seconds <- utils::tail(c(seconds, vapply(runs, `[[`, 0, "seconds")), 100L)
    }
    pending <- Filter(Negate(is.null), pending)
    if (length(ready) == 0L) Sys.sleep(0.01)
  }
}

# as many as take about a second; at the end fewer, so that all workers end together
chunk_size <- function(seconds, left, workers) {
  if (length(seconds) == 0L) return(1L)
  max(1, min(floor(chunk_seconds / max(mean(seconds), 1e-4)), ceiling(left / (2 * workers))))
}

send_chunk <- function(problem, seeds, carried) {
  future::future(run_chunk(problem, seeds), globals = c(list(run_chunk = run_chunk, problem = problem, seeds = seeds), carried$globals),
                 packages = c("noiseaware", carried$packages), seed = NULL)
}

# Variables of the global environment that the user's functions need: they do not
# travel with a function.
user_globals <- function(problem) {
  functions <- Filter(function(f) identical(environment(f), globalenv()), functions_in(problem))
  found <- lapply(functions, function(f) {
    here <- list2env(list(user_function = f), parent = globalenv())
    future::getGlobalsAndPackages(quote(user_function()), envir = here)
  })
  globals <- do.call(c, lapply(found, function(f) unclass(f$globals)))
  globals <- globals[setdiff(unique(names(globals)), "user_function")]
  list(globals = as.list(globals), packages = unique(unlist(lapply(found, `[[`, "packages"))))
}

# all functions in a list of lists
functions_in <- function(x) {
  if (is.function(x)) return(list(x))
  if (is.list(x)) unlist(lapply(unclass(x), functions_in), recursive = FALSE, use.names = FALSE)
}
