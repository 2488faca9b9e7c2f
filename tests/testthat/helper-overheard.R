# Calls a function of the package with every .Call() written down. The package's R
# functions are copied into an environment of their own, in which .Call() is another;
# `answers` are functions that stand in for a C function, by name.
overheard <- function(name, ..., answers = list()) {
  calls <- list()
  package <- asNamespace("noiseaware")
  copy <- new.env(parent = package)
  symbols <- Filter(function(n) inherits(package[[n]], "NativeSymbolInfo"), ls(package))
  for (n in ls(package, all.names = TRUE)) {
    if (is.function(package[[n]]) && identical(environment(package[[n]]), package)) {
      f <- package[[n]]
      environment(f) <- copy
      assign(n, f, copy)
    }
  }
  copy$.Call <- function(.NAME, ...) {
    for (s in symbols) if (identical(.NAME, package[[s]])) break
    calls[[length(calls) + 1L]] <<- list(name = s, arguments = list(...))
    if (!is.null(answers[[s]])) answers[[s]](...) else .Call(.NAME, ...)
  }
  value <- get(name, copy)(...)
  list(value = value, calls = calls)
}

calls_of <- function(heard, name) lapply(Filter(function(c) c$name == name, heard$calls), `[[`, "arguments")
