# A chain that is interrupted, in R or in C, leaves draws and a state that belong together: the
# draws equal the draws of a chain that nobody interrupts, and it goes on as that one does. `problem`,
# `bound` and `words` are the method's, `run` has a warmup of 100 and keeps every draw; that other
# chain has so many `iterations`.
expect_interruptible <- function(problem, bound, words, run, iterations) {
  chain <- function(iterations, report = function(...) NULL) {
    state <- internal("start_chain")(problem, bound, words, 1, NULL)
    internal("run_blocks")(problem, state, iterations, run, report)
  }
  whole <- chain(iterations)
  keys <- list(
    in_r = function() tools::pskill(Sys.getpid(), tools::SIGINT),
    # later than system() itself, which ignores the signal
    in_c = function() system(paste0("(sleep 0.3; kill -INT ", Sys.getpid(), ")"), wait = FALSE)
  )
  for (key in keys) {
    blocks <- 0
    part <- chain(1e6, function(amount, ...) {
      blocks <<- blocks + 1
      if (blocks == 4) key() # warmup is a block of its own
    })
    expect_identical(part$status, 1L)
    kept <- nrow(part$draws)
    expect_gte(kept, 2900)
    expect_identical(length(part$acceptance), kept + 100L)
    expect_identical(length(part$outside), if (length(whole$outside)) kept else 0L)
    expect_equal(part$state$iteration, kept + 100)
    upto <- min(kept, nrow(whole$draws))
    expect_identical(part$draws[seq_len(upto), ], whole$draws[seq_len(upto), ])
    more <- internal("run_blocks")(problem, part$state, 50, run, function(...) NULL)
    all <- chain(kept + 150)
    expect_identical(more$draws, all$draws[kept + 1:50, ])
    expect_identical(more$diagnostics, all$diagnostics)
  }
}

# A run that is extended has the draws, and the state, of one run of the same length, wherever it
# was cut and whether it was saved in between; the shorter fit stays what it was. `run` takes the
# iterations, of which 200 or less are warmup.
expect_extends <- function(run) {
  whole <- run(400)
  half <- run(250)
  draws <- half$draws
  longer <- extend(half, 150)
  expect_identical(longer$draws, whole$draws)
  expect_identical(longer$chains, whole$chains)
  expect_identical(denoise(longer), denoise(whole))
  expect_identical(half$draws, draws)
  saved <- withr::local_tempfile()
  saveRDS(run(201), saved)
  expect_identical(extend(readRDS(saved), 199)$draws, whole$draws)
}
