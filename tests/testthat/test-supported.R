skip_on_cran() # takes long; `make test` runs it

# The table of combinations is true: what it lists runs, what it leaves out is
# refused with a classed error.

runs <- function(model, statistic, mechanism, method) {
  tryCatch({
    rel <- as_release(rep(1, sum(internal("value_size")(statistic, 3))), statistic, mechanism, 3)
    sample_posterior(rel, model, method = method, chains = 1, iter = 4, warmup = 2)
    TRUE
  }, noiseaware_error = function(e) FALSE)
}

test_that("supported() says what runs", {
  table <- supported()
  expect_named(table, c("model", "statistic", "mechanism", "method", "exact"))
  expect_false(anyDuplicated(table) > 0)
  listed <- do.call(paste, table[c("model", "statistic", "mechanism", "method")])
  # the naive Bayes model needs two variables: it has tests of its own
  for (model in names(registry_models)) for (mechanism in names(registry_mechanisms)) for (method in c("augment", "collapse", "clt", "naive")) {
    for (statistic in c("crossprod", "moments4", "sums", "counts", "records", "custom", "objective")) {
      candidates <- list(number_statistics[[statistic]], code_statistics[[statistic]], alone_statistics[[statistic]])
      candidates <- candidates[!vapply(candidates, is.null, TRUE)]
      ran <- any(vapply(candidates, function(st) runs(registry_models[[model]], st, registry_mechanisms[[mechanism]], method), TRUE))
      expect_identical(ran, paste(model, statistic, mechanism, method) %in% listed,
                       info = paste(model, statistic, mechanism, method))
    }
  }
})
