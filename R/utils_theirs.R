# Functions of other packages that have the name of one of ours.

# Is the first argument for their function? What is theirs goes there, whichever package was attached last.
is_theirs <- function(x, package) is.object(x) && !any(startsWith(class(x), "noiseaware")) && isNamespaceLoaded(package)

# the call of our function, as a call of theirs
call_theirs <- function(package, name) {
  call <- sys.call(-1L)
  call[[1L]] <- getExportedValue(package, name)
  eval(call, parent.frame(2L))
}
