skip_on_cran() # takes long; `make test` runs it

# A small version of inst/replication/support_matrix.R: every model with every
# method, each with one of its mechanisms (in turn, so that all have theirs), few
# records, few replicates: what is grossly wrong shows.

matrix_cases <- function() {
  there <- new.env(parent = asNamespace("noiseaware"))
  sys.source(system.file("replication", "support_matrix_cases.R", package = "noiseaware"), there)
  small <- there$cases[there$cases$n == 20, ]
  pairs <- split(small, paste(small$method, small$design))
  # in turn among the pairs with as many mechanisms
  count <- vapply(pairs, nrow, 0L)
  chosen <- Map(function(rows, k) rows[(k - 1L) %% nrow(rows) + 1L, ], pairs, stats::ave(seq_along(pairs), count, FUN = seq_along))
  lapply(chosen, function(case) c(as.list(case), there$designs[[case$design]], list(noise = there$mechanisms[[case$mechanism]])))
}

test_that("every model is calibrated under every method that serves it", {
  cases <- matrix_cases()
  expect_setequal(vapply(cases, `[[`, "", "method"), c("augment", "collapse", "clt"))
  expect_length(unique(vapply(cases, `[[`, "", "mechanism")), 5L)
  for (case in cases) {
    cal <- calibrate(case[[5]], case[[6]], case$noise, case$n, replicates = 60, method = case$method, chains = 1, iter = 600, seed = 7)
    expect_false(any(cal$runs$failed))
    table <- ks_uniform(cal)
    expect_true(all(table$p.value > 1e-5), info = paste(case$method, case$design, case$mechanism, min(table$p.value)))
    expect_true("log_eta" %in% table$variable)
  }
})
