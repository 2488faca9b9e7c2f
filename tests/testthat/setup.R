# Short runs are on purpose here. What makes a fit doubtful is not warned of, but in
# the tests of those warnings, which say so: see told() in helper-oracles.R.
session <- getFromNamespace("session", "noiseaware")
session$quiet <- TRUE
withr::defer(session$quiet <- FALSE, teardown_env())
# the seconds that calls are said to take refer to the machine that was measured
session$slower <- 1
withr::defer(session$slower <- NULL, teardown_env())
