# Calls a function of the package with every .Call() written down. The package's R
# functions are copied into an environment of their own, in which .Call() is another;
# `answers` are functions that stand in for a C function, by name.
overheard <- function(name, ..., answers = list()) {
  copy <- copied_functions()
  calls <- list()
  copy$.Call <- function(.NAME, ...) {
    calls[[length(calls) + 1L]] <<- list(name = .NAME$name, arguments = list(...))
    if (!is.null(answers[[.NAME$name]])) answers[[.NAME$name]](...) else .Call(.NAME, ...)
  }
  value <- get(name, copy)(...)
  list(value = value, calls = calls)
}

# made once: there are thousands; they call what without_few() changes in the package
copied_functions <- local({
  copy <- NULL
  function() {
    if (!is.null(copy)) return(copy)
    package <- asNamespace("noiseaware")
    copy <<- new.env(parent = package)
    for (n in setdiff(ls(package, all.names = TRUE), "warn_of_few")) {
      if (is.function(package[[n]]) && identical(environment(package[[n]]), package)) {
        f <- package[[n]]
        environment(f) <- copy
        assign(n, f, copy)
      }
    }
    copy
  }
})

calls_of <- function(heard, name) lapply(Filter(function(c) c$name == name, heard$calls), `[[`, "arguments")
