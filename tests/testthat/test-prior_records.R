# n where no size is published: what is said of it.

bounds <- list(y = c(0, 10))
sums <- stat_sums(~ y + I(y^2), bounds)
sampled <- function(...) sample_posterior(..., chains = 2, iter = 400, seed = 1)
messages_of <- function(code) {
  found <- list()
  withCallingHandlers(told(suppressWarnings(code)), message = function(m) {
    found <<- c(found, list(m))
    invokeRestart("muffleMessage")
  })
  Filter(function(m) inherits(m, "noiseaware_message_size"), found)
}
release_of <- function(statistic, mechanism, neighbours = "add_remove") {
  set.seed(1)
  simulate_release(data.frame(y = rnorm(500, 6, 1), g = rep(c("a", "b"), 250)), statistic, mechanism, neighbours = neighbours)
}

test_that("a size is a number to which every record adds the same, or a table", {
  has_size <- function(statistic, mechanism = mech_laplace(scale = 1)) internal("has_size")(release_of(statistic, mechanism))
  counts <- stat_counts(~ g, list(g = c("a", "b")))
  expect_false(has_size(sums))
  expect_true(has_size(counts))
  expect_true(has_size(stat_size()))
  expect_true(has_size(list(a = sums, b = stat_size()), list(a = mech_laplace(scale = 1), b = mech_laplace(scale = 1))))
  expect_false(has_size(stat_linear(counts, list(first = c("g=a" = 1)))))
  expect_true(has_size(stat_linear(counts, list(all = c("g=a" = 1, "g=b" = 1)))))
})

test_that("a fit without a size says what n rests on, once, and again in print and summary", {
  skip_on_cran()
  rel <- release_of(sums, mech_laplace(epsilon = 5))
  found <- messages_of(fit <- sampled(rel, model_normal()))
  expect_length(found, 1L)
  text <- gsub("\\s+", " ", conditionMessage(found[[1L]]))
  ends <- format(round(confint(fit, "n")), big.mark = ",", trim = TRUE)
  expect_match(text, sprintf("inference about n, %s to %s, relies on the ratios of the totals and on priors, most strongly on", ends[1L], ends[2L]), fixed = TRUE)
  # n mean = total: the two go together
  expect_match(text, "mean")
  shown <- paste(capture.output(print(fit)), collapse = "\n")
  expect_match(shown, "records    not known (n); prior log_uniform(upper = 2147483647)\n             No released number is a size", fixed = TRUE)
  expect_match(paste(capture.output(print(summary(fit))), collapse = "\n"), "! No released number is a size")
  one <- as_release(c("g=a" = 43), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(scale = 1), n = NULL)
  expect_match(conditionMessage(messages_of(sampled(one, model_bernoulli()))[[1L]]), "relies\\s+on\\s+priors")
  half <- mech_laplace(epsilon = 5)
  with_size <- release_of(list(a = sums, b = stat_size()), list(a = half, b = half))
  expect_length(messages_of(fit <- sampled(with_size, model_normal())), 0L)
  expect_false(any(grepl("is a size", capture.output(print(fit)))))
  # n is public
  expect_length(messages_of(sampled(release_of(sums, half, "replace"), model_normal())), 0L)
})
