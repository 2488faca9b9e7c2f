# Which method "auto" takes, and that it says so.

chosen <- function(release, model, control = list(), most = 1e10, ...) {
  bound <- internal("bind_model")(model, release$statistic)
  run <- utils::modifyList(list(iter = 2000, warmup = 1000, thin = 1, chains = 4, seed = NULL), list(...))
  internal("auto_method")(release, bound, run, control, most)
}
auto <- function(...) chosen(...)$method

test_that("auto takes the cheapest exact method, and says when it is not exact", {
  levels <- list(y = c("a", "b"), x = c("u", "v"), w = c("u", "v"))
  counts <- function(formula, n) as_release(rep(1, 4), stat_counts(formula, levels[all.vars(formula)]), mech_laplace(epsilon = 1), n)
  expect_identical(auto(counts(~ y:x, 10), model_naive_bayes("y")), "collapse")
  expect_identical(auto(counts(~ y:x, 1e9), model_naive_bayes("y")), "collapse")
  expect_identical(auto(counts(~ y:x, 10), model_naive_bayes("y"), control = list(passes = 0)), "augment")
  crossed <- as_release(rep(1, 6), stat_counts(~ x:w + y, levels), mech_laplace(epsilon = 1), 10)
  expect_identical(auto(crossed, model_naive_bayes("y")), "augment")
  normal <- function(n) as_release(1:5, stat_crossprod(y ~ x, list(y = c(0, 9), x = c(0, 9))), mech_gaussian(mu = 1), n)
  expect_identical(auto(normal(1e6), model_lm()), "augment")
  expect_message(method <- auto(normal(1e8), model_lm()), "no record is likely to lie outside", class = "noiseaware_message_method")
  expect_identical(method, "collapse")
  expect_identical(auto(normal(1e8), model_lm(), iter = 40, chains = 1), "augment")
  one <- function(upper) as_release(c(2e8, 8e8), stat_sums(~ x + I(x^2), list(x = c(-upper, upper))), mech_gaussian(mu = 1), 1e8)
  for (case in list(list(30, "collapse"), list(5, "clt"))) {
    set.seed(5)
    condition <- if (case[[2]] == "clt") expect_warning else expect_message
    condition(method <- auto(one(case[[1]]), model_normal()), case[[2]], class = if (case[[2]] == "clt") "noiseaware_warning_method" else "noiseaware_message_method")
    expect_identical(method, case[[2]])
    after <- runif(1)
    set.seed(5)
    expect_identical(runif(1), after)
  }
  clamped <- function(mechanism) as_release(c(3, 9), stat_sums(~ x + I(x^2), list(x = c(0, 9))), mechanism, 1e8)
  expect_warning(method <- auto(clamped(mech_laplace(epsilon = 1)), model_poisson()), "approximate", class = "noiseaware_warning_method")
  expect_identical(method, "clt")
  own <- mech_custom(log_density = function(noise) -rowSums(abs(noise)))
  expect_message(method <- auto(clamped(own), model_poisson()), "No other method", class = "noiseaware_message_method")
  expect_identical(method, "augment")
  # what is left of the choice: the print
  set.seed(1)
  fit <- sample_posterior(counts(~ y:x, 40), model_naive_bayes("y"), chains = 1, iter = 200, seed = 1)
  expect_identical(fit$method, "collapse")
  expect_output(print(fit), "collapse: .*\\(exact\\)")
})

# y = 0.5 + x + N(0, 1), bounds that leave out the same share of either variable
regression_release <- function(n, share, epsilon = 10) {
  set.seed(1)
  x <- stats::rnorm(n)
  width <- stats::qnorm(1 - share / 2) * c(-1, 1)
  bounds <- list(y = 0.5 + sqrt(2) * width, x = width)
  simulate_release(data.frame(y = 0.5 + x + stats::rnorm(n), x), stat_crossprod(y ~ x, bounds), mech_laplace(epsilon = epsilon))
}

test_that("where bounds bind, the exact method with fewer iterations is preferred to a wrong one", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- regression_release(20000, 0.05)
  # a fast method would be wrong by many standard deviations
  wrong <- sample_posterior(rel, model_lm(), method = "collapse", seed = 1)
  sigma <- parameter_draws(wrong, "sigma")
  expect_gt(abs(mean(sigma) - 1) / sd(sigma), 3)
  # "clt" accounts for the bounds of a regression, and no method does for those of a multivariate normal model
  expect_warning(fast <- chosen(rel, model_lm(), most = 2e7), "approximate", class = "noiseaware_warning_method")
  expect_identical(fast$method, "clt")
  multivariate <- model_mvnormal()
  expect_warning(short <- chosen(rel, multivariate, most = 2e7, thin = 5), "250 iterations a chain \\(125 of them warmup, thin 1\\) instead of 2000",
                 class = "noiseaware_warning_method")
  expect_identical(short$method, "augment")
  expect_equal(short$run[c("iter", "warmup", "thin", "chains")], list(iter = 250, warmup = 125, thin = 1, chains = 4))
  expect_warning(chosen(rel, multivariate, most = 2e7), "collapse")
  # the limit is passed rather than a run that says nothing
  expect_warning(least <- chosen(rel, multivariate, most = 1e6, warmup = 500), "200 iterations")
  expect_equal(least$run[c("iter", "warmup")], list(iter = 200, warmup = 50))
  # as many as were asked for are no reason to warn
  expect_no_warning(expect_message(asked <- chosen(rel, multivariate, most = 1e6, iter = 150, warmup = 75), class = "noiseaware_message_method"))
  expect_identical(asked$run$iter, 150)
  # without records outside, the fast method is exact
  expect_no_warning(expect_message(wide <- chosen(regression_release(20000, 1e-12), model_lm(), most = 2e7), class = "noiseaware_message_method"))
  expect_identical(wide$method, "collapse")
})

test_that("a regression that only clt serves is looked at too", {
  set.seed(2)
  data <- data.frame(x = stats::rnorm(4000), f = sample(c("a", "b"), 4000, TRUE))
  data$y <- data$x + (data$f == "b") + stats::rnorm(4000)
  rel <- function(width) {
    simulate_release(data, stat_crossprod(y ~ x + f, list(y = c(-2, 2) * width, x = c(-1, 1) * width, f = c("a", "b"))), mech_laplace(epsilon = 10))
  }
  expect_warning(bound <- chosen(rel(2), model_lm(), most = 4e6), "250 iterations", class = "noiseaware_warning_method")
  expect_identical(bound$method, "augment")
  expect_warning(free <- chosen(rel(15), model_lm(), most = 4e6), "approximate", class = "noiseaware_warning_method")
  expect_identical(free$method, "clt")
})

test_that("a shortened run is what runs, and update() asks for the whole again", {
  rel <- regression_release(500, 0.01)
  package <- asNamespace("noiseaware")
  usual <- package$most_record_updates
  limit <- function(value) {
    unlockBinding("most_record_updates", package)
    assign("most_record_updates", value, envir = package)
    lockBinding("most_record_updates", package)
  }
  on.exit(limit(usual))
  limit(4e5)
  expect_warning(fit <- sample_posterior(rel, model_mvnormal(), chains = 2, seed = 1), "400 iterations", class = "noiseaware_warning_method")
  expect_identical(fit$method, "augment")
  expect_identical(dim(fit$draws)[1:2], c(200L, 2L))
  # from where a short run of "collapse" was, not from draws of the prior
  expect_warning(start <- chosen(rel, model_mvnormal(), most = 4e5, chains = 2)$init, "400 iterations")
  expect_identical(lengths(start), c(5L, 5L))
  shorter <- internal("sample_augment")(rel, fit$bound, fit$run, start, list())
  expect_identical(fit$draws, shorter$draws)
  own <- list(stats::setNames(c(0, 0, 1, 0, 1), posterior::variables(fit$draws)))[c(1, 1)]
  expect_warning(given <- sample_posterior(rel, model_mvnormal(), chains = 2, seed = 1, init = own), "400 iterations")
  expect_identical(given$draws, sample_posterior(rel, model_mvnormal(), method = "augment", chains = 2, iter = 400, seed = 1, init = own)$draws)
  expect_identical(fit$asked$iter, 2000)
})
