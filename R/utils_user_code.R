# Calls of user functions, so that errors in them are reported as theirs.

accepts_arguments <- function(f, count) {
  if (is.primitive(f)) return(TRUE)
  arguments <- formals(f)
  if ("..." %in% names(arguments)) return(TRUE)
  length(arguments) >= count && length(needed_arguments(f)) <= count
}

stop_custom <- function(name, must, was, call = caller_env()) {
  stop_classed("custom", "{.fn {name}} must return {must}, but returned {describe(was)}.", call = call)
}

# right but for its names
stop_custom_names <- function(name, must, given, call = caller_env()) {
  named <- if (all(given == "")) "none" else shorten_list(encodeString(given, quote = '"'), 6L)
  stop_classed("custom", "{.fn {name}} must return {must}, but the names it returned are {named}.", call = call)
}

# a user's function; an error in it comes back with its message and trace
call_user <- function(f, name, ...) {
  withCallingHandlers(f(...), error = function(e) user_failed(name, e))
}

user_failed <- function(name, error) {
  cli::cli_abort("The function {.fn {name}} failed.", parent = error,
                 class = c("noiseaware_error_custom", "noiseaware_error"), call = without_arguments(public_call(environment())))
}

# In a run C calls the user's functions themselves (src/r/model_custom.c), and says in
# problem$model$running which one: an error in it comes back as from call_user().
rethrow_user_error <- function(problem, code) {
  running <- problem$model$running
  if (is.null(running)) return(code)
  withCallingHandlers(code, error = function(e) {
    name <- .Call(ffi_running, running)
    if (nzchar(name)) user_failed(name, e)
  })
}

# A fit's R code runs once or twice: its loops are in C. R would compile each function that is called twice, which takes as long as the sampling in a fresh
# session and saves nothing. Users' functions are called thousands of times, and are compiled. Returns the compiler's level, for who must set it back.
pause_compiler <- function(...) {
  user_code <- any(rapply(list(...), is.function, how = "unlist"))
  compiler::enableJIT(if (user_code) -1L else 0L) # -1 changes nothing
}
