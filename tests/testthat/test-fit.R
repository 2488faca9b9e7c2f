# What a fit's print says of its chains.

st <- stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-10, 10)))
rel <- as_release(c(3, 2, 20, 10, 30), st, mech_laplace(epsilon = 1), n = 50)
shown <- function(fit) capture.output(print(fit))
marks <- function(fit) grep("^!", shown(fit), value = TRUE)

# a fit with these draws of two parameters, chains in columns
with_draws <- function(a, b = a, method = "clt") {
  fit <- sample_posterior(rel, model_lm(), method = method, chains = ncol(a), iter = 4, seed = 1)
  fit$draws <- posterior::as_draws_array(array(c(a, b), c(dim(a), 2L), dimnames = list(NULL, NULL, c("a", "b"))))
  fit
}

test_that("diagnostics that cannot be computed are told", {
  skip_on_cran()
  for (iter in c(1, 2, 8)) {
    for (method in c("augment", "clt", "naive")) {
      expect_silent(lines <- marks(sample_posterior(rel, model_lm(), method = method, chains = 1, iter = iter, seed = 1)))
      expect_match(lines[1], "^! R-hat or the number of effective draws is unknown for \\(Intercept\\)")
    }
  }
  set.seed(1)
  stuck <- with_draws(matrix(rnorm(2000), 1000), matrix(3, 1000, 2))
  expect_match(marks(stuck), "^! R-hat or the number of effective draws is unknown for b: ", all = FALSE)
  expect_identical(marks(with_draws(matrix(rnorm(2000), 1000))), character())
  # half of all draws are the largest value, a tail without effective draws of its own
  ties <- matrix(rbinom(2000, 1, 0.5), 1000)
  expect_identical(posterior::ess_tail(ties), NA_real_)
  expect_identical(marks(with_draws(ties)), character())
  expect_identical(internal("fewest_draws")(data.frame(ess_bulk = c(3, 9, NA), ess_tail = c(NA, 4, NA))), c(3, 4, NA))
})

test_that("chains that differ are told, and those of one that drifts", {
  skip_on_cran()
  set.seed(2)
  far <- marks(with_draws(matrix(rnorm(2000), 1000) + rep(c(0, 10), each = 1000)))
  expect_match(far, "the chains differ", all = FALSE)
  one <- with_draws(matrix(rnorm(1000) + 1:1000 / 100, 1000))
  expect_match(marks(one), "the halves of the chain differ", all = FALSE)
  expect_no_match(marks(one), "the chains differ")
  expect_match(shown(one), "1 chain of 1000 ", all = FALSE)
})

test_that("the number of records and their updates have names of their own", {
  lines <- shown(sample_posterior(rel, model_lm(), chains = 1, iter = 20, seed = 1))
  expect_identical(sum(grepl("^  records ", lines)), 1L)
  # the estimates come first, and what sweeps and moves did is acceptance()'s
  expect_lt(grep("variable +mean +sd", lines), grep("^  method ", lines))
  expect_no_match(lines, "^  (updates|moves) ")
  # whose print leaves out what was never done: here moves of all records at once
  done <- acceptance(sample_posterior(rel, model_lm(), chains = 1, iter = 20, seed = 1, control = list(passes = 0)))
  expect_true(all(is.na(done[c("moved", "walk")])))
  header <- utils::capture.output(print(done))[4]
  expect_match(header, " mean lowest .* passes kept share")
})

test_that("a fit without a response says what draws new records", {
  rel <- as_release(c(30, 20), stat_counts(~ x, list(x = c("a", "b"))), mech_laplace(epsilon = 1), 50)
  fit <- suppressWarnings(sample_posterior(rel, model_categorical(), chains = 1, iter = 40, seed = 1))
  expect_error(predict(fit), "simulate", class = "noiseaware_error_method")
  expect_error(predict(fit, data.frame(y = 1)), "simulate", class = "noiseaware_error_method")
})

test_that("a print has the same columns where the decimal mark is a comma", {
  fit <- with_draws(matrix(stats::rnorm(400), 200), method = "augment")
  fit$seconds <- 0.05
  fit$release$n <- 5000
  withr::local_options(OutDec = ",")
  expect_no_warning(lines <- shown(fit))
  expect_length(grep("q2.5", lines, fixed = TRUE), 1L)
  expect_false(any(grepl("NA milliseconds", lines)))
  expect_match(lines, "records    5,000", all = FALSE)
})

test_that("heavy tails are told in print, normal ones are not", {
  line <- internal("tail_line")
  fit_with <- function(...) structure(list(draws = posterior::as_draws_array(cbind(...))), class = "noiseaware_fit")
  at <- qnorm(ppoints(4000))
  expect_null(line(fit_with(mean = at, sd = exp(at))))
  expect_match(line(fit_with(mean = at, sd = qcauchy(ppoints(4000)))), "means and standard deviations of sd are unreliable")
  expect_null(line(fit_with(mean = rep(1, 4000))))
  # which the table then has medians and mads of
  heavy <- fit_with(mean = at + 3, sd = qcauchy(ppoints(4000)) + 5)
  table <- internal("printed_summary")(heavy$draws)
  corrected <- replace(table, 1:3, data.frame(c("mean", "sd*"), c(3, 5), c(stats::sd(at), stats::mad(heavy$draws[, , 2]))))
  expect_gt(table$sd[2], 2 * corrected$sd[2])
  expect_equal(internal("with_medians")(table, heavy$draws), corrected)
  expect_identical(internal("with_medians")(table[1, ], heavy$draws), table[1, ])
})

test_that("summary() has the ends of confint(), unless others are asked for", {
  table <- summary(suppressWarnings(sample_posterior(rel, model_lm(), method = "clt", chains = 2, iter = 400, seed = 1)))
  expect_identical(names(table), c("variable", "mean", "median", "sd", "mad", "q2.5", "q97.5", "rhat", "ess_bulk", "ess_tail"))
  fit <- suppressWarnings(sample_posterior(rel, model_lm(), method = "clt", chains = 2, iter = 400, seed = 1))
  expect_identical(unname(as.matrix(as.data.frame(table[c("q2.5", "q97.5")]))), unname(confint(fit, variables = "all")))
  expect_identical(names(suppressWarnings(summary(fit, "mean"))), c("variable", "mean"))
})

test_that("R's compiler is paused while a fit runs, but for users' functions, and is set back", {
  skip_on_cran() # takes long; `make test` runs it
  before <- compiler::enableJIT(2L)
  withr::defer(compiler::enableJIT(before))
  level <- function() compiler::enableJIT(-1L)
  during <- NULL
  wrong <- function() sample_posterior(rel, model_lm(), method = "clt", init = 3)
  expect_error(withCallingHandlers(wrong(), error = function(e) during <<- level()), class = "noiseaware_error")
  expect_identical(during, 0L)
  expect_identical(level(), 2L)
  listening <- mech_custom(log_density = function(noise) {
    options(noiseaware_test_level = compiler::enableJIT(-1L))
    -rowSums(abs(noise)) / 50
  })
  withr::local_options(noiseaware_test_level = NULL)
  sample_posterior(as_release(c(3, 2, 20, 10, 30), st, listening, n = 50), model_lm(), method = "augment", chains = 1, iter = 4, seed = 1)
  expect_identical(getOption("noiseaware_test_level"), 2L)
  expect_identical(level(), 2L)
})

test_that("the printed time is for 1,000 effective draws of the parameter with fewest", {
  set.seed(2)
  slow <- stats::arima.sim(list(ar = 0.9), 2000)
  fit <- with_draws(matrix(rnorm(2000), 1000), matrix(slow, 1000), method = "augment")
  fit$run[c("iter", "warmup")] <- list(2000, 1000)
  for (k in 1:2) fit$chains[[k]]$work <- 1e7 * length(fit$chains[[k]]$acceptance) # 0.01 seconds an iteration
  seconds <- 0.01 * 4000 * 1000 / posterior::ess_bulk(matrix(slow, 1000))
  line <- grep("^  time ", shown(fit), value = TRUE)
  expect_match(line, "effective draws of each parameter, 10 seconds for 1,000 iterations of a chain$")
  expect_equal(as.numeric(sub("^  time +about ([0-9.]+) seconds.*|^  time +about ([0-9.]+) minutes.*", "\\1\\2", line)) * if (grepl("minutes", line)) 60 else 1,
               seconds, tolerance = 0.06)
})
