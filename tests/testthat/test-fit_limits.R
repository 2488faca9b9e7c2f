# What lies beyond natural limits is said where it is predicted or simulated, counted by hand, and nothing is cut off.

set.seed(1)
scores <- data.frame(score = pmin(100, round(rnorm(300, 85, 12))), age = round(runif(300, 14, 50)))
statistic <- function(outside) stat_crossprod(score ~ age, list(score = c(0, 100), age = c(14, 50)), outside = outside)
released <- simulate_release(scores, statistic("none"), mech_laplace(epsilon = 5))
fit <- sample_posterior(released, model_lm(), chains = 1, iter = 1000, seed = 1)
# a fit of its own, so that nothing was said of it before
again <- function(seed, release = released) suppressWarnings(sample_posterior(release, model_lm(), chains = 1, iter = 1000, seed = seed))
message_of <- function(code) {
  said <- NULL
  withCallingHandlers(suppressWarnings(told(code)), noiseaware_message_limits = function(m) {
    said <<- c(said, gsub("\\s+", " ", conditionMessage(m)))
    invokeRestart("muffleMessage")
  })
  said
}

test_that("intervals and draws beyond the limits of the response are counted", {
  ages <- data.frame(age = c(20, 40))
  made <- NULL
  said <- message_of(made <- predict(fit, ages, interval = "predictive", seed = 1))
  expect_match(said, "2 of 2 intervals reach values of `score` beyond its natural limits 0 and 100, which the model does not know", fixed = TRUE)
  expect_gt(min(made[, "upper"]), 100) # nothing is cut off
  expect_null(message_of(predict(fit, ages, interval = "predictive", seed = 1))) # said once
  expect_null(message_of(predict(fit, ages, interval = "credible")))
  expect_null(message_of(predict(fit, ages, type = "expected")))
  draws <- NULL
  said <- message_of(draws <- predict(fit, ages, type = "draws", seed = 1))
  expect_match(said, paste0("^", signif(100 * mean(draws < 0 | draws > 100), 2), "% of the predictive draws"))
  expect_match(internal("beyond_line")(matrix(rep(c(50, 101), c(996, 4)), 10), "score", c(0, 100)), "^0.4% of the predictive draws")
  said <- message_of(predict(again(2), ages[1, , drop = FALSE], interval = "prediction", seed = 1))
  expect_match(said, "The interval reaches")
})

test_that("new data beyond the limits of a covariate are named", {
  said <- message_of(predict(fit, data.frame(age = c(20, 60))))
  expect_match(said, "`newdata` has values of `age` beyond its natural limits 14 and 50", fixed = TRUE)
  expect_null(message_of(predict(fit, data.frame(age = c(14, 50)))))
  said <- message_of(predict(again(3), data.frame(age = 60), interval = "predictive", seed = 1))
  expect_match(said, "predictions there extrapolate.*The interval reaches values of `score`")
})

test_that("bounds that clamp are no limits, and one side may be", {
  clamped <- again(4, simulate_release(scores, statistic("clamp"), mech_laplace(epsilon = 5)))
  expect_null(message_of(predict(clamped, data.frame(age = 70), interval = "predictive", seed = 1)))
  expect_null(attr(synthesize(clamped, seed = 1), "limits"))
  above <- again(5, simulate_release(scores, statistic(c(score = "above", age = "none")), mech_laplace(epsilon = 5)))
  expect_identical(internal("natural_ranges")(above), list(age = c(14, 50), score = c(0, Inf)))
  expect_null(message_of(predict(above, data.frame(age = 30), interval = "predictive", seed = 1)))
})

test_that("synthetic and simulated records say which share is beyond", {
  sets <- synthesize(fit, seed = 1)
  share <- function(variable, lower, upper) mean(sapply(unclass(sets), function(set) mean(set[[variable]] < lower | set[[variable]] > upper)))
  shown <- capture.output(print(sets))
  expect_match(shown, sprintf("`score` is beyond 0 and 100 in %s%% of records", format(100 * share("score", 0, 100), digits = 2)), fixed = TRUE, all = FALSE)
  expect_match(shown, sprintf("`age` is beyond 14 and 50 in %s%% of records", format(100 * share("age", 14, 50), digits = 2)), fixed = TRUE, all = FALSE)
  expect_match(message_of(simulate(fit, seed = 1)), "Simulated: `score` is beyond 0 and 100", fixed = TRUE)
  inside <- as_release(c(y = 50, "y^2" = 26), stat_sums(~ y + I(y^2), list(y = c(-100, 100)), outside = "none"), mech_laplace(scale = 0.1), n = 100)
  near <- suppressWarnings(suppressMessages(sample_posterior(inside, model_normal(), chains = 1, iter = 400, seed = 1)))
  expect_null(attr(synthesize(near, seed = 1), "limits"))
  expect_null(message_of(simulate(near, seed = 1)))
})

test_that("responses simulated beside public covariates count", {
  noisy <- as_release(scores$score, stat_records(~ score, list(score = c(0, 100)), outside = "none"), mech_laplace(scale = 2), public = scores["age"])
  beside <- suppressWarnings(suppressMessages(sample_posterior(noisy, model_lm(score ~ age), chains = 1, iter = 400, seed = 1)))
  sets <- NULL
  said <- message_of(sets <- simulate(beside, 20, seed = 1))
  share <- mean(vapply(sets, function(set) mean(set$score < 0 | set$score > 100), 0))
  expect_gt(share, 0.05)
  expect_match(said, sprintf("Simulated: `score` is beyond 0 and 100 in %s%% of records", format(100 * share, digits = 2)), fixed = TRUE)
})

test_that("sites say it once for all rows", {
  skip_on_cran()
  sites <- list(north = released, south = simulate_release(transform(scores, score = rev(score)), statistic("none"), mech_laplace(epsilon = 5)))
  pooled <- suppressWarnings(sample_posterior(sites, model_lm(), pool = "none", chains = 1, iter = 400, seed = 1))
  said <- message_of(predict(pooled, data.frame(age = 20:25), site = "south", interval = "predictive", seed = 1))
  expect_match(said, "6 of 6 intervals")
  expect_null(message_of(predict(pooled, data.frame(age = 20:25), site = "south", type = "expected")))
})
