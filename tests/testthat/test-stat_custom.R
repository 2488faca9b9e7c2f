# Users' own statistics in R.

test_that("a custom statistic equals the built-in one", {
  built_in <- stat_crossprod(y ~ x, bounds = list(y = c(-2, 2), x = c(-1, 1)), rescale = FALSE)
  fun <- function(records) {
    y <- pmin(pmax(records[, "y"], -2), 2)
    x <- pmin(pmax(records[, "x"], -1), 1)
    cbind(y, x, y^2, x * y, x^2)
  }
  own <- stat_custom(fun, built_in$components, c(L1 = sensitivity(built_in, "L1"), L2 = sensitivity(built_in, "L2")),
                     bounds = list(y = c(-2, 2), x = c(-1, 1)))
  expect_equal(sensitivity(own, "L2"), sensitivity(built_in, "L2"))
  data <- data.frame(x = rnorm(700), y = rnorm(700))
  expect_equal(internal("statistic_total")(own, data), internal("statistic_total")(built_in, data))
  # the very same chain: one block holds all records of both, and a model in R draws none ahead
  line <- model_custom(
    r_prior = function() c(slope = rnorm(1)),
    r_records = function(theta, n) {
      x <- rnorm(n)
      cbind(y = rnorm(n, theta["slope"] * x), x = x)
    },
    r_theta = function(records, theta) {
      precision <- 1 + sum(records[, "x"]^2)
      c(slope = rnorm(1, sum(records[, "x"] * records[, "y"]) / precision, 1 / sqrt(precision)))
    },
    variables = c("y", "x"))
  value <- c(0.5, 0.2, 2, 0.3, 1)
  fits <- lapply(list(own, built_in), function(st) {
    rel <- as_release(value, st, mech_laplace(epsilon = 4), n = 20)
    sample_posterior(rel, line, chains = 1, iter = 200, seed = 3)
  })
  expect_equal(as.numeric(fits[[1]]$draws), as.numeric(fits[[2]]$draws), tolerance = 1e-8)
})

test_that("records of more than a block move beside a statistic that wants all of them", {
  skip_on_cran()
  # products and powers have room for a block of records: more of them at once would be written beyond it
  bounds <- list(y = c(0, 1), x = c(0, 1))
  kept <- c("y", "x^2", "y:x", "y:x^2")
  built_in <- stat_subset(stat_crossprod(y ~ x + I(x^2), bounds, rescale = FALSE), kept)
  own <- stat_custom(function(records) {
    y <- pmin(pmax(records[, "y"], 0), 1)
    x <- pmin(pmax(records[, "x"], 0), 1)
    cbind(y, x^2, y * x, y * x^2)
  }, kept, 4, bounds)
  value <- c(180, 200, 105, 78)
  fits <- lapply(list(own, built_in), function(st) {
    rel <- as_release(value, st, mech_laplace(scale = 40), n = 600)
    model <- model_lm(y ~ x + I(x^2), covariates = fixed(list(mean = 0.5, cov = 0.03)))
    sample_posterior(rel, model, method = "augment", chains = 2, iter = 300, seed = 1)
  })
  for (name in c("(Intercept)", "x", "I(x^2)", "sigma"))
    expect_agreement(parameter_draws(fits[[1]], name), parameter_draws(fits[[2]], name), spread = FALSE, label = name)
})

test_that("custom statistics are checked and carry no data", {
  bounds <- list(x = c(0, 10))
  expect_error(stat_custom(1, "a", 1, bounds), class = "noiseaware_error_custom")
  expect_error(stat_custom(function(r) r[, 1] > 1, "a", -1, bounds), class = "noiseaware_error_custom")
  expect_error(stat_custom(function(r) cbind(1, 2), "a", 1, bounds), class = "noiseaware_error_custom")
  expect_error(stat_custom(function(r) rep(NA, nrow(r)), "a", 1, bounds), class = "noiseaware_error_custom")
  expect_error(stat_custom(function(r) NULL, "a", 1, bounds), "returned NULL", class = "noiseaware_error_custom")
  secret <- 1234.56789
  st <- stat_custom(function(r) r[, "x"] > 2, "over", 1, bounds)
  rel <- release(data.frame(x = c(1, 3, secret)), st, mech_laplace(epsilon = 1))
  pattern <- writeBin(secret, raw(), endian = "big")
  expect_false(grepl(paste(pattern, collapse = ""), paste(serialize(rel, NULL), collapse = ""), fixed = TRUE))
  expect_error(write_release(rel, tempfile()), class = "noiseaware_error_file")
})

# an error of class noiseaware_error_custom, or another condition, without that text
expect_silent_about <- function(code, secret) {
  heard <- character()
  error <- withCallingHandlers(tryCatch({
    code
    NULL
  }, error = identity), warning = function(w) {
    heard <<- c(heard, class(w), conditionMessage(w))
    invokeRestart("muffleWarning")
  }, message = function(m) {
    heard <<- c(heard, conditionMessage(m))
    invokeRestart("muffleMessage")
  })
  carried <- c(heard, rawToChar(serialize(error, NULL, ascii = TRUE)), format(error))
  expect_false(any(grepl(secret, carried, fixed = TRUE)))
  list(error = error, heard = heard)
}

test_that("what a statistic's function says of confidential records is dropped", {
  skip_on_cran()
  bounds <- list(x = c(0, 10))
  data <- data.frame(x = c(1, 2, 7.654321))
  # does what it should for made-up records, and speaks of others
  speaks <- function(how) eval(bquote(stat_custom(function(r) {
    strange <- r[r[, "x"] %in% 7.654321, "x"]
    if (length(strange)) .(how)
    r[, "x"]
  }, "x", 10, bounds)))
  for (owner in c(release, simulate_release)) {
    said <- expect_silent_about(owner(data, speaks(quote(stop("strange: ", strange))), mech_laplace(epsilon = 1)), "7.654321")
    expect_s3_class(said$error, "noiseaware_error_custom")
    expect_match(conditionMessage(said$error), "fun")
    said <- expect_silent_about(owner(data, speaks(quote(rlang::abort("strange", class = "own", value = strange))), mech_laplace(epsilon = 1)), "7.654321")
    expect_s3_class(said$error, "noiseaware_error_custom")
    for (how in list(quote(warning("strange: ", strange)), quote(message("strange: ", strange)))) {
      said <- expect_silent_about(owner(data, speaks(how), mech_laplace(epsilon = 1)), "7.654321")
      expect_null(said$error)
      expect_true("noiseaware_warning_custom" %in% said$heard)
    }
    # what it returns is not quoted either
    said <- expect_silent_about(owner(data, speaks(quote(return(strange))), mech_laplace(epsilon = 1)), "7.65432")
    expect_s3_class(said$error, "noiseaware_error_custom")
  }
  show(refusals("custom", alist(release(data, speaks(quote(stop("strange: ", strange))), mech_laplace(epsilon = 1)))))
})

test_that("one total that is not finite among others is refused", {
  # only for values that no made-up record has
  odd <- function(records) cbind(a = ifelse(records[, "x"] == 3.25, NaN, records[, "x"]), b = 1)
  st <- stat_custom(odd, c("a", "b"), sensitivity = 10, bounds = list(x = c(0, 10)))
  expect_length(simulate_release(data.frame(x = c(1, 3)), st, mech_laplace(epsilon = 1))$value, 2L)
  expect_error(simulate_release(data.frame(x = c(1, 3.25)), st, mech_laplace(epsilon = 1)), "finite numbers", class = "noiseaware_error_custom")
})

test_that("a statistic's function that mixes records is refused", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(x = c(0, 10), z = c(-1, 1))
  mixing <- list(
    function(r) r[, "x"] - mean(r[, "x"]), function(r) r[, "x"] > stats::median(r[, "x"]), function(r) r[, "x"] / max(r[, "x"]),
    function(r) cumsum(r[, "x"]), function(r) rank(r[, "x"]), function(r) c(0, diff(r[, "x"])), function(r) seq_len(nrow(r)),
    function(r) r[, "x"] * (seq_len(nrow(r)) == 1), function(r) rev(r[, "z"]), function(r) rep(1 / nrow(r), nrow(r)),
    function(r) stats::runif(nrow(r)))
  for (f in mixing) expect_error(stat_custom(f, "a", 1, bounds), class = "noiseaware_error_custom")
  show(refusals("custom", alist(stat_custom(mixing[[1]], "a", 1, bounds))))
  expect_s3_class(stat_custom(function(r) cbind(r %*% c(0.1, 0.3), r[, "x"] > 5), c("a", "b"), 1, bounds), "stat_custom")

  # one that mixes only the records that it was not tried on
  set.seed(1)
  data <- data.frame(x = stats::runif(50, 2, 8), z = 0)
  hidden <- list(
    function(r) if (all(r[, "x"] %in% c(0, 5, 10))) r[, "x"] else r[, "x"] - mean(r[, "x"]),
    function(r) if (nrow(r) < 20) r[, "x"] else sort(r[, "x"]),
    function(r) if (nrow(r) < 20) r[, "x"] else cumsum(r[, "x"]))
  for (f in hidden) {
    st <- stat_custom(f, "a", 1, bounds)
    account <- budget(epsilon = 1)
    expect_error(release(data, st, mech_laplace(epsilon = 1), budget = account), "other records", class = "noiseaware_error_custom")
    expect_identical(nrow(summary(account)), 0L)
    expect_error(simulate_release(data, st, mech_laplace(epsilon = 1)), class = "noiseaware_error_custom")
  }
})

test_that("rows are the same up to the rounding of their column's largest value", {
  same_rows <- internal("same_rows")
  a <- cbind(c(0, 1e6), c(1, 1))
  expect_true(same_rows(a, a + cbind(c(1e-3, 1e-3), 0)))
  expect_false(same_rows(a, a + cbind(0, c(1e-3, 0))))
})
