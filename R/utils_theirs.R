# Functions of other packages that have the name of one of ours.

# Is the first argument for their function, which has a method for it? What is theirs goes there, whichever package was attached last.
is_theirs <- function(x, package, name) {
  if (!is.object(x) || any(startsWith(class(x), "noiseaware")) || !isNamespaceLoaded(package)) return(FALSE)
  has_method <- function(class) !is.null(utils::getS3method(name, class, optional = TRUE, envir = asNamespace(package)))
  any(vapply(c(class(x), "default"), has_method, NA))
}

# the call of our function, as a call of theirs
call_theirs <- function(package, name) {
  call <- sys.call(-1L)
  call[[1L]] <- getExportedValue(package, name)
  eval(call, parent.frame(2L))
}
