# future and progressr, if the user has them: a plan for parallel chains, and a handler of progress.

# Is the plan of futures sequential? future takes longer to load than a small problem to sample, so
# it is asked only where it was loaded, or would find another plan: in an option, an environment
# variable or an argument of R (its help page future.options).
plan_is_sequential <- function() {
  other <- !is.null(getOption("future.plan")) || nzchar(Sys.getenv("R_FUTURE_PLAN")) || any(grepl("^(-p|--parallel)", commandArgs()))
  if (!isNamespaceLoaded("future") && !(other && requireNamespace("future", quietly = TRUE))) return(TRUE)
  inherits(future::plan("next"), "sequential")
}

# A function that reports progress until the caller returns. Nobody listens where progressr is not loaded: its handlers are.
progress_in_steps <- function(steps, frame = parent.frame()) {
  if (isNamespaceLoaded("progressr")) progressr::progressor(steps = steps, envir = frame) else function(...) invisible()
}

without_progress <- function(code) if (isNamespaceLoaded("progressr")) progressr::without_progress(code) else code
