# Where the prior decides: normal draws, whose powers are known, then fits.

# short chains: what else is doubtful of them is not of interest
quietly <- function(code) suppressWarnings(told(code))

moves <- function(z, lp) internal("moves_with")(as.matrix(z), lp)

# Prior N(0, 1), posterior N(m, v): with the prior's power a the precision is 1 / v + a - 1 and the mean m / (1 + (a - 1) v).
test_that("a mean and a width move by what powers of normal densities say", {
  set.seed(1)
  z <- qnorm(ppoints(2000))[sample(2000)]
  shift <- function(m, v, a) {
    variance <- 1 / (1 + (a - 1) * v)
    mean <- (m * variance - m) / sqrt(v)
    max(abs(mean), abs(variance + mean^2 - 1) / sqrt(2))
  }
  cases <- expand.grid(m = c(0, 0.3, 1, 3), v = c(0.01, 0.05, 0.2, 0.5, 0.7, 0.99))
  seen <- expected <- logical(nrow(cases))
  for (k in seq_len(nrow(cases))) {
    m <- cases$m[k]
    v <- cases$v[k]
    expected[k] <- max(shift(m, v, 0.8), shift(m, v, 1.25)) > 0.1
    seen[k] <- moves(z, -(m + sqrt(v) * z)^2 / 2)
  }
  near <- abs(mapply(function(m, v) max(shift(m, v, 0.8), shift(m, v, 1.25)), cases$m, cases$v) - 0.1) < 0.03 # its own error
  expect_gt(sum(expected & !near), 5)
  expect_gt(sum(!expected & !near), 5)
  expect_identical(seen[!near], expected[!near])
})

test_that("a ridge is seen in the direction in which it lies, and nothing of independent noise", {
  set.seed(2)
  shared <- rnorm(1000)
  own <- matrix(rnorm(6000), 1000)
  values <- cbind(shared + own[, 1:5], own[, 6])
  colnames(values) <- letters[1:6]
  found <- internal("decided")(list(values = values, log_prior = -shared^2 / 2))
  expect_identical(as.character(found), character())
  expect_setequal(attr(found, "together"), letters[1:5])
  none <- internal("decided")(list(values = values, log_prior = rnorm(1000)))
  expect_identical(as.character(none), character())
  expect_identical(attr(none, "together"), character())
  # many parameters with a flat prior each, and one that is all prior
  alone <- internal("decided")(list(values = cbind(values, all = shared), log_prior = -shared^2 / 2))
  expect_identical(as.character(alone), "all")
})

test_that("what the prior decides is said, when sampled, in the print and the report", {
  skip_on_cran()
  said <- "noiseaware_message_prior"
  few <- function(epsilon, value = c(x = 3), ...) {
    quietly(sample_posterior(as_release(value, stat_sums(~ x, list(x = c(-5, 5))), mech_laplace(epsilon = epsilon), 50), model_normal(...), chains = 2,
                                      iter = 1000, seed = 1))
  }
  known <- list(mean = prior_normal(0, 1), sd = fixed(1))
  expect_no_message(fit <- few(1, prior = known), class = said)
  expect_identical(as.character(fit$decided), character())
  expect_no_match(utils::capture.output(print(fit)), "^  prior ")
  # noise of 100,000 standard errors
  expect_message(fit <- few(1e-6, prior = known), "prior strongly influences mean: a slightly weaker", class = said)
  expect_identical(as.character(fit$decided), "mean")
  expect_output(print(fit), "\n  prior      strongly influences mean\n")
  # a total that cannot tell the sd, even where it is exact
  expect_message(fit <- few(1, prior = prior_nig(0, 1 / 4, 2, 1)), "sd", class = said)
  expect_true("sd" %in% fit$decided)
  # the log prior is priorsense's, in the logarithm of sd
  expect_equal(internal("log_prior_of")(fit$bound, internal("parameter_matrix")(fit)[1:5, ]),
               internal("prior_log_density")(fit)[1:5] + log(internal("parameter_matrix")(fit)[1:5, "sd"]))
  # not of the replicates of a calibration
  expect_null(quietly(internal("without_troubles")(update(fit)))$decided)
})

test_that("one parameter is no combination, and is named once", {
  line <- function(..., bound = NULL) internal("decided_line")(list(decided = structure(...), bound = bound))
  print_lines <- function(...) internal("decided_lines")(list(decided = structure(...)))
  expect_match(line("sd"), "influences sd: a slightly weaker or stronger prior moves it by more than a tenth of its posterior sd.", fixed = TRUE)
  expect_match(line("sd", together = "mean"), "influences sd, mean: a slightly weaker or stronger prior moves each by", fixed = TRUE)
  expect_match(line("sd", together = "sd"), "influences sd: a slightly weaker or stronger prior moves it", fixed = TRUE)
  expect_match(line(character(), together = c("a", "b")), "influences a combination of a, b: a slightly weaker or stronger prior moves it by", fixed = TRUE)
  # at most three names, what is asked about first; the print has the combination
  expect_match(line("sd", together = c("a", "b")), "influences sd: a slightly", fixed = TRUE)
  expect_identical(print_lines("sd", together = c("a", "b")), paste0("  prior      strongly influences ", c("sd", "a combination of a, b")))
  expect_match(line(c("shape", letters[1:4])), "influences a, b, c and 2 more: a slightly weaker or stronger prior moves each by", fixed = TRUE)
  expect_null(line(c("shape", "censored[0,90)", "concentration")))
  st <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1)))
  bound <- internal("bind_model")(model_lm(), st)
  regression <- structure(list(decided = c("cov[x,x]", "(Intercept)", "sigma", "x"), bound = bound, draws = posterior::as_draws_array(
    matrix(0, 2, 4, dimnames = list(NULL, c("(Intercept)", "x", "sigma", "cov[x,x]"))))), class = "noiseaware_fit")
  expect_match(internal("decided_line")(regression), "influences x, (Intercept), sigma and 1 more: ", fixed = TRUE)
  expect_identical(print_lines(character(), together = c("a", "b")), "  prior      strongly influences a combination of a, b")
  expect_length(print_lines(character()), 0L)
})

test_that("braces of a level's name are shown as they are", {
  skip_on_cran()
  st <- stat_crossprod(y ~ g, list(y = c(0, 1), g = c("a", "{b}")))
  rel <- as_release(stats::setNames(c(1, 1.5, 1, 0.3), st$components), st, mech_laplace(scale = 3), n = 4)
  expect_message(fit <- quietly(sample_posterior(rel, model_lm(), chains = 2, iter = 1000, seed = 1)), "[^{][{]b[}][^}]", class = "noiseaware_message_prior")
  expect_match(internal("prior_words")(fit), "[^{][{]b[}][^}]")
})

test_that("the total to blame is named where totals differ", {
  skip_on_cran()
  st <- stat_sums(~ x + I(x^2), list(x = c(0, 100)), rescale = FALSE)
  rel <- as_release(c(2500, 150000), st, mech_laplace(epsilon = 1), 50)
  said <- "noiseaware_message_prior"
  expect_message(fit <- quietly(sample_posterior(rel, model_normal(), chains = 2, iter = 1000, seed = 1)), class = said)
  expect_output(print(fit), "noisiest total is x, with 100 times as much noise as x\\^2")
  noise <- internal("relative_noise")(rel)
  expect_equal(unname(noise), sqrt(2) * 10100 / c(100, 10000))
  # exact components have none
  both <- as_release(c(2500, 150000), st, mech_exact(), 50)
  expect_null(internal("relative_noise")(both))
})

test_that("a mean far from the middle in sds that draws the variance away is said", {
  set.seed(1)
  data <- data.frame(x = rnorm(500, 0.3, 0.1))
  one <- simulate_release(data, stat_sums(~ x + I(x^2), list(x = c(0, 3)), rescale = FALSE), mech_laplace(epsilon = 50))
  fit <- function(...) suppressMessages(quietly(sample_posterior(one, model_normal(...), method = "clt", chains = 2, iter = 1000, seed = 1)))
  expect_true("sd" %in% fit(prior = prior_nig(precision = 1 / 4))$decided)
  expect_false("mean" %in% fit()$decided)
})

test_that("of sites it is said of what they share, and of each where they do not", {
  skip_on_cran()
  set.seed(3)
  site <- function(mean, epsilon) simulate_release(data.frame(y = rnorm(200, mean, 0.5)), stat_sums(~ y + I(y^2), list(y = c(-4, 4))), mech_laplace(epsilon = epsilon))
  pooled <- function(epsilon, pool) {
    sites <- list(north = site(0, epsilon), south = site(0.5, epsilon), east = site(1, epsilon))
    count <- 0
    fit <- withCallingHandlers(quietly(sample_posterior(sites, model_normal(), pool = pool, chains = 2, iter = 1000, seed = 1)),
                               noiseaware_message_prior = function(m) count <<- count + 1, message = function(m) rlang::cnd_muffle(m))
    list(names = c(fit$decided, attr(fit$decided, "together")), count = count, fit = fit)
  }
  # three sites hardly tell how much sites differ
  partial <- pooled(20, "partial")
  expect_true("sd[mean]" %in% partial$names || "sd[log(sd)]" %in% partial$names)
  expect_identical(partial$count, 1)
  expect_output(print(partial$fit), "\n  prior      strongly influences")
  none <- pooled(0.001, "none")
  expect_true(all(c("mean[north]", "mean[south]") %in% none$names))
  expect_identical(none$count, 1)
  expect_identical(pooled(1000, "complete")$count, 0)
})

test_that("a table hardly told is", {
  skip_on_cran()
  st <- stat_counts(~ a, list(a = letters[1:4]))
  fit <- function(epsilon) suppressMessages(quietly(sample_posterior(as_release(c(90, 10, 60, 40), st, mech_laplace(epsilon = epsilon), 200), model_table(~ a), chains = 2, iter = 1000, seed = 1)))
  expect_identical(as.character(fit(1)$decided), character())
  expect_gt(length(fit(0.001)$decided), 2)
})

test_that("a prior whose density cannot be computed costs no draws", {
  own <- model_custom(function() c(p = rbeta(1, 1, 1)), function(theta, n) cbind(y = rbinom(n, 1, theta)),
                      function(records, theta) c(p = rbeta(1, 1 + sum(records), 1 + sum(1 - records))), "y")
  y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  fit <- suppressMessages(quietly(sample_posterior(as_release(c(4.2, 6.1), y, mech_laplace(epsilon = 1), n = 10), own, chains = 1, iter = 300, seed = 1)))
  expect_length(fit$decided, 0)
  expect_identical(dim(fit$draws), c(150L, 1L, 1L))
})
