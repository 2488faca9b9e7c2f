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

# The replicates of a worker that died go to another, one at a time. A plan that takes no more of them is started again when what is under way has come back. A
# replicate that is lost twice, or a plan that does not start, ends the run.
run_on_workers <- function(problem, seeds, take) {
  workers <- min(future::nbrOfWorkers(), length(seeds)) # schedulers of clusters have Inf
  carried <- user_globals(problem)
  # pending: of future, its seeds, and when it was sent
  work <- list2env(list(seeds = seeds, pending = list(), lost = integer(), seconds = numeric(), waits = numeric(), broken = FALSE, failure = NULL), parent = emptyenv())
  # what has come back is kept when the user stops
  on.exit(for (chunk in work$pending) if (isTRUE(tryCatch(chunk_is_back(chunk), error = function(e) FALSE))) {
    tryCatch(take(future::value(chunk$future)), error = function(e) NULL)
  })
  came <- elapsed_seconds()
  repeat {
    send_chunks(work, problem, workers, carried)
    if (length(work$pending) == 0L) break
    ready <- which(vapply(work$pending, chunk_is_back, TRUE))
    for (k in rev(ready)) {
      chunk <- work$pending[[k]]
      work$pending[[k]] <- NULL
      receive_chunk(work, chunk, take)
    }
    # the longer nothing comes, the more rarely it is asked for: a queue is shared
    if (length(ready)) came <- elapsed_seconds() else Sys.sleep(max(0.01, 0.03 * (elapsed_seconds() - came)))
  }
  if (!is.null(work$failure)) stop(work$failure)
}

or_failure <- function(code) tryCatch(code, FutureError = identity)

is_failure <- function(x) inherits(x, "FutureError")

chunk_is_back <- function(chunk) !isFALSE(or_failure(future::resolved(chunk$future)))

send_chunks <- function(work, problem, workers, carried) {
  while (length(work$seeds) && is.null(work$failure) && length(work$pending) < workers && !(work$broken && length(work$pending))) {
    if (work$broken) start_plan_again()
    size <- if (work$seeds[1L] %in% work$lost) 1L else chunk_size(work$seconds, work$waits, length(work$seeds), workers)
    chunk <- list(seeds = work$seeds[seq_len(size)], sent = elapsed_seconds())
    chunk$future <- or_failure(send_chunk(problem, chunk$seeds, carried))
    failed <- is_failure(chunk$future)
    if (failed && work$broken) work$failure <- chunk$future
    work$broken <- failed
    if (failed) next
    work$pending[[length(work$pending) + 1L]] <- chunk
    work$seeds <- work$seeds[-seq_len(size)]
  }
}

receive_chunk <- function(work, chunk, take) {
  runs <- or_failure(future::value(chunk$future))
  if (is_failure(runs)) {
    if (any(chunk$seeds %in% work$lost)) work$failure <- runs
    work$lost <- c(work$lost, chunk$seeds)
    work$seeds <- c(chunk$seeds, work$seeds)
  } else {
    took <- vapply(runs, `[[`, 0, "seconds")
    work$waits <- utils::tail(c(work$waits, max(0, elapsed_seconds() - chunk$sent - sum(took))), 100L)
    take(runs)
    work$seconds <- utils::tail(c(work$seconds, took), 100L)
  }
}

# Before version 1.40 of future a cluster with a dead worker stays so.
start_plan_again <- function() {
  plan <- future::plan("list")
  future::plan("sequential")
  future::plan(plan)
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
