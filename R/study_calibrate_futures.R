# Replicates in parallel, through future. Chunks of them are sent to the workers and come back. A chunk takes about a second, so that little is lost with a
# worker. If sending is slow, as for jobs that wait in a queue, a chunk takes ten times as long as sending it, at most ten minutes.

chunk_seconds <- function(waits) min(600, max(1, 10 * min(waits)))

# Calls keep(runs) with finished replicates as they come. Returns a list: status
# "done", "interrupted" or "failed" (a worker died), message.
run_replicates <- function(problem, seeds, keep) {
  progress <- progress_in_steps(length(seeds))
  take <- function(runs) {
    keep(runs)
    progress(amount = length(runs))
  }
  run <- if (plan_is_sequential()) run_here else run_on_workers
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
  workers <- min(future::nbrOfWorkers(), length(seeds)) # schedulers of clusters have Inf
  carried <- user_globals(problem)
  pending <- list() # of future, and when it was sent
  now <- function() proc.time()[["elapsed"]]
  done <- function(chunk) future::resolved(chunk$future)
  # what has come back is kept, also when another worker died or the user stops
  on.exit(for (chunk in pending) if (isTRUE(tryCatch(done(chunk), error = function(e) FALSE))) {
    tryCatch(take(future::value(chunk$future)), error = function(e) NULL)
  })
  seconds <- waits <- numeric()
  came <- now()
  while (length(seeds) || length(pending)) {
    while (length(seeds) && length(pending) < workers) {
      size <- chunk_size(seconds, waits, length(seeds), workers)
      pending[[length(pending) + 1L]] <- list(future = send_chunk(problem, seeds[seq_len(size)], carried), sent = now())
      seeds <- seeds[-seq_len(size)]
    }
    ready <- which(vapply(pending, done, TRUE))
    for (k in ready) {
      chunk <- pending[[k]]
      runs <- future::value(chunk$future)
      pending[k] <- list(NULL)
      took <- vapply(runs, `[[`, 0, "seconds")
      waits <- utils::tail(c(waits, max(0, now() - chunk$sent - sum(took))), 100L)
      take(runs)
      seconds <- utils::tail(c(seconds, took), 100L)
    }
    pending <- Filter(Negate(is.null), pending)
    # the longer nothing comes, the more rarely it is asked for: a queue is shared
    if (length(ready)) came <- now() else Sys.sleep(max(0.01, 0.03 * (now() - came)))
  }
}

# At the end fewer, so that all workers end together.
chunk_size <- function(seconds, waits, left, workers) {
  if (length(seconds) == 0L) return(1L)
  max(1, min(floor(chunk_seconds(waits) / max(mean(seconds), 1e-4)), ceiling(left / (2 * workers))))
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
