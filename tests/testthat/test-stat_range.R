# Published totals that no n records have: reported in print, not refused.

bounds <- list(y = c(-2, 6), x = c(1, 3))
said <- function(release) any(grepl("No data set of .* records has totals like these", utils::capture.output(print(release))))

test_that("limits are those of a record's components, wherever they can lie", {
  set.seed(1)
  for (st in c(number_statistics[c("crossprod", "moments4", "sums", "records")], code_statistics,
               wide_statistics[setdiff(names(wide_statistics), "custom")])) {
    limits <- internal("component_limits")(st)
    columns <- st$columns
    x <- sapply(seq_len(nrow(columns)), function(j) {
      top <- if (columns$variable[j] %in% names(st$levels) && columns$upper[j] <= 1) 1 else columns$upper[j]
      if (columns$variable[j] %in% names(st$levels)) sample(0:top, 4000, TRUE) else
        sample(c(columns$lower[j], columns$upper[j], 0, runif(97, columns$lower[j], columns$upper[j])), 4000, TRUE)
    })
    t <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), matrix(as.double(x), 4000))
    expect_identical(dim(limits), c(length(st$components), 2L))
    expect_true(all(t(t) >= limits[, 1] - 1e-12 & t(t) <= limits[, 2] + 1e-12))
  }
  expect_null(internal("component_limits")(number_statistics$custom))
  expect_null(internal("component_limits")(number_statistics$objective))
})

test_that("totals in other units, or for another n, are told; noise alone is not", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x, bounds)
  local <- mech_laplace(epsilon = 1)
  set.seed(2)
  data <- data.frame(y = runif(50, -2, 6), x = runif(50, 1, 3))
  expect_false(any(replicate(200, said(simulate_release(data, st, mech_laplace(epsilon = 0.01))))))
  raw <- c(colSums(data), crossprod(as.matrix(data))[c(1, 2, 4)])
  expect_true(said(as_release(unname(raw), st, local, 50)))
  rel <- simulate_release(data, st, mech_laplace(epsilon = 50))
  expect_false(said(rel))
  expect_true(said(as_release(rel$value, st, mech_laplace(epsilon = 50), 10)))
  fit <- sample_posterior(as_release(unname(raw), st, local, 50), model_lm(), chains = 1, iter = 20, seed = 1)
  expect_output(print(fit), "! No data set of 50 records has totals like these")
  # a margin adds up to n
  counts <- stat_counts(~ a + a:b, levels = list(a = c("u", "v"), b = c("p", "q")))
  expect_false(said(as_release(c(20, 29, 10, 11, 15, 15), counts, local, 50)))
  expect_output(print(as_release(c(20, 30, 10, 11, 150, 190), counts, local, 300)), "a=u, a=v \\(is n")
  # records of their own, codes, noise without a standard deviation
  one <- stat_records(~ x, bounds["x"])
  expect_false(said(as_release(c(1, 3, 2), one, mech_laplace(scale = 0.1), 3)))
  expect_true(said(as_release(c(1, 3, 99), one, mech_laplace(scale = 0.1), 3)))
  expect_false(said(as_release(c(0, 1, 1), stat_records(~ g, levels = list(g = c("a", "b"))), mech_randomized_response(epsilon = 1), 3)))
})
