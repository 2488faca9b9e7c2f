# User functions that an object keeps. They are saved together with the object, and so would be the source references, which contain the whole sourced script,
# and the environment, which contains every variable of the function in which they were written.

# The functions without source references, attributes and compiled code. Of the
# environments that they were written in, up to the global one or a package's, they keep
# copies with the variables that they use and no other; functions of one list that shared
# an environment share its copy. NULLs stay.
keep_functions <- function(functions) {
  originals <- copies <- list()
  copy_of <- function(env) {
    if (is_home(env)) return(env)
    at <- Position(function(e) identical(e, env), originals)
    if (!is.na(at)) return(copies[[at]])
    copy <- new.env(parent = copy_of(parent.env(env)))
    originals <<- c(originals, env)
    copies <<- c(copies, copy)
    copy
  }
  keep <- function(x) {
    if (is.list(x)) {
      x[] <- lapply(x, keep)
      return(x)
    }
    if (typeof(x) != "closure") return(x)
    env <- environment(x)
    x <- without_source(x)
    for (used in used_variables(x)) {
      copy <- copy_of(used$env)
      if (exists(used$name, copy, inherits = FALSE)) next
      value <- get(used$name, used$env, inherits = FALSE)
      assign(used$name, value, copy) # a function may use itself
      assign(used$name, keep(value), copy)
    }
    environment(x) <- copy_of(env)
    x
  }
  lapply(functions, keep)
}

# The same for a function that goes with a release: it may use no variable of the function
# that it was written in, because that could be data.
keep_alone <- function(f, name, call = caller_env()) {
  used <- vapply(used_variables(f), `[[`, "", "name")
  if (length(used)) {
    stop_classed("custom", c("{.arg {name}} must be self-contained, but uses {.var {used}} from the environment where it was defined.",
                             i = "Such variables could be data, so they are not kept. Write their values into the function."), call = call)
  }
  home <- if (isNamespace(environment(f))) environment(f) else globalenv()
  f <- without_source(f)
  environment(f) <- home
  f
}

# an environment that is saved as a reference, if at all
is_home <- function(env) {
  identical(env, globalenv()) || identical(env, baseenv()) || identical(env, emptyenv()) || isNamespace(env) ||
    startsWith(environmentName(env), "package:")
}

# list(name, env) of each variable that f uses and that is in an environment below its home
used_variables <- function(f) {
  free <- free_names(f)
  find <- function(name) {
    env <- environment(f)
    while (!is_home(env)) {
      # a number is passed over where a function of that name is called
      if (exists(name, env, inherits = FALSE) && (name %in% free$values || is.function(get(name, env, inherits = FALSE)))) {
        return(list(name = name, env = env))
      }
      env <- parent.env(env)
    }
  }
  Filter(Negate(is.null), lapply(unique(c(free$values, free$called)), find))
}

# The names that a function uses before it assigns them: as values and as functions that
# are called. Read in the order of evaluation, as `x <- x + 1` and `x[1] <- 2` need an x;
# a branch that may not be taken counts as taken.
free_names <- function(f) {
  values <- called <- character()
  # returns the names that are assigned once the code has run
  read <- function(code, known) {
    if (is.name(code)) {
      if (!as.character(code) %in% known) values <<- c(values, as.character(code))
      return(known)
    }
    if (is.pairlist(code)) code <- as.call(c(quote(list), as.list(code)))
    if (typeof(code) != "language") return(known)
    head <- called_name(code)
    parts <- as.list(code)[-1L]
    if (head == "function") {
      inside <- c(known, names(parts[[1L]]))
      read(parts[[2L]], read(parts[[1L]], inside))
      return(known)
    }
    if (head %in% c("::", ":::")) return(known)
    if (head %in% c("$", "@")) return(read(parts[[1L]], known))
    if (assigns_name(head, parts)) {
      known <- c(read(parts[[2L]], known), as.character(parts[[1L]]))
      return(if (head == "for") read(parts[[3L]], known) else known)
    }
    if (head %in% c("<-", "=")) parts <- rev(parts)
    if (head == "") parts <- c(code[[1L]], parts) else if (!head %in% known) called <<- c(called, head)
    empty <- vapply(parts, identical, TRUE, rlang::missing_arg()) # as in x[1, ]
    for (part in parts[!empty]) known <- read(part, known)
    known
  }
  read(body(f), read(formals(f), names(formals(f))))
  list(values = values, called = called)
}

# "" if the function in a call is not a name
called_name <- function(code) if (is.name(code[[1L]])) as.character(code[[1L]]) else ""

assigns_name <- function(head, parts) head %in% c("<-", "=", "for") && (is.name(parts[[1L]]) || is.character(parts[[1L]]))

without_source <- function(f) {
  as.function(c(as.list(plain_code(formals(f))), list(plain_code(body(f)))), envir = environment(f))
}

# Code without attributes, in all its parts: the defaults of arguments, nested functions
# (whose calls have their source as fourth element), functions that were put in as values.
plain_code <- function(code) {
  if (typeof(code) == "closure") {
    code <- without_source(code)
    environment(code) <- globalenv()
    return(code)
  }
  if (is.pairlist(code)) return(if (!is.null(code)) as.pairlist(lapply(as.list(code), plain_code)))
  if (typeof(code) != "language") return(code)
  parts <- as.list(code)
  if (identical(parts[[1L]], quote(`function`))) parts[4L] <- list(NULL)
  as.call(lapply(parts, plain_code))
}
