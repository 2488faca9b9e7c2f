# A part of the walk of tools/valgrind.R with many garbage collections inside C
# code, the first of a call after one allocation, two, three ... : what C holds must be
# protected. In R code collections come as they do, or this would take days.
#
#   Rscript tools/torture.R [allocations between two collections]
library(noiseaware)
arguments <- as.integer(commandArgs(TRUE))
step <- if (length(arguments)) arguments[1] else 41L
own <- new.env(parent = asNamespace("noiseaware"))
for (file in list.files("R", full.names = TRUE)) sys.source(file, own)
calls <- 0
own$.Call <- function(...) {
  arguments <- list(...)
  calls <<- calls + 1
  if (calls %% 200 == 0) message(calls, " calls")
  gctorture2(step, wait = calls %% step + 1)
  on.exit(gctorture2(0L))
  do.call(base::.Call, arguments)
}
attach(own, name = "own", warn.conflicts = FALSE) # methods are looked for where generics are called
options(noiseaware.short = TRUE)
sys.source("tools/valgrind.R", own)
cat(calls, "calls of C code\n")
stopifnot(calls > 1000)
