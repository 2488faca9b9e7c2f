# What a call is expected to take, before it runs

bounds <- list(bwt = c(500, 5500), age = c(14, 50))
births <- function(outside) withr::with_seed(1, simulate_release(MASS::birthwt, stat_crossprod(bwt ~ age, bounds, outside = outside), mech_laplace(epsilon = 2)))

# what stands before a run; costs an iteration a millisecond, and so many seconds for 1,000 effective draws
expected <- function(outside, thousand = 1, free = TRUE, method = "augment", model = model_lm(), control = list()) {
  old <- set_constant("predict_cost", function(features, ...) list(iteration = 1e-3, thousand = thousand))
  withr::defer(set_constant("predict_cost", old))
  release <- births(outside)
  bound <- internal("bind_model")(internal("settle_released")(model, release, method), release$statistic)
  internal("expect_call")(list(method = method, release = release, bound = bound, run = list(chains = 4, iter = 2000, warmup = 1000, thin = 1),
                               asked = list(model = model, control = control)), NULL, free)
}

fixed <- function(name) sum(internal("call_seconds")[[name]] * c(1, 5)) # the coefficients, sigma, mean and variance of age

test_that("an expected call has start, checks, iterations and the comparison that is always made", {
  expect_gt(fixed("call"), 0.05)
  expect_equal(expected("none"), fixed("call") + 8)
  # 2 chains of 1500 iterations
  expect_equal(expected("clamp"), fixed("call") + 8 + fixed("comparison") + 3)
  expect_equal(expected("clamp", control = list(beside = FALSE)), fixed("call") + 8)
})

test_that("a second run is expected where the first falls short, within its limits", {
  # 80 effective draws: 8 times as many iterations, but no more than 45 seconds of them
  expect_equal(expected("none", thousand = 100), fixed("call") + 8 + 4 * 8)
  expect_equal(expected("none", thousand = 25), fixed("call") + 8 + 2 * 8)
  expect_equal(expected("none", thousand = 100, free = FALSE), fixed("call") + 8)
  expect_null(expected("none", thousand = Inf))
})

test_that("a fit says what its call was expected to take", {
  fit <- suppressWarnings(suppressMessages(sample_posterior(births("none"), model_lm(), chains = 1, iter = 200, seed = 1)))
  expect_gt(fit$expected, fixed("call"))
  expect_match(fit$why[1], "^exact, expected to take .* for 1,000 effective draws; this call: about .* seconds?$")
  given <- suppressWarnings(suppressMessages(sample_posterior(births("none"), model_lm(), "augment", chains = 1, iter = 200, seed = 1)))
  expect_null(given$why)
})

test_that("what is said is in seconds of this machine, measured once a session", {
  session <- internal("session")
  before <- session$slower
  withr::defer(session$slower <- before)
  session$slower <- 2
  expect_identical(internal("about_time")(3), "about 6 seconds")
  session$slower <- NULL
  slower <- internal("slower_machine")()
  expect_true(slower > 0.02 && slower < 50)
  expect_identical(internal("slower_machine")(), slower)
})

test_that("a call goes on where nothing can be said of its time", {
  # products of noisy variables, which no constants describe
  st <- stat_records(y ~ x + I(x^2))
  set.seed(1)
  release <- as_release(data.frame(y = rnorm(30), x = rnorm(30)), st, mech_record_noise(sd = c(x = 0.3)))
  fit <- suppressWarnings(suppressMessages(sample_posterior(release, model_lm(y ~ x + I(x^2)), chains = 1, iter = 100, seed = 1)))
  expect_null(fit$expected)
  old <- set_constant("engine_cost", function(...) stop("no cost"))
  withr::defer(set_constant("engine_cost", old))
  expect_null(internal("expect_call")(fit, NULL, TRUE))
})
