skip_on_cran() # takes long; `make test` runs it

# Which method "auto" takes, and that it says so.

auto <- function(release, model, ...) {
  bound <- internal("bind_model")(model, release$statistic)
  run <- utils::modifyList(list(iter = 2000, chains = 4), list(...))
  internal("auto_method")(release, bound, run, run$control %||% list())
}
`%||%` <- function(a, b) if (is.null(a)) b else a

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
  expect_message(chosen <- auto(normal(1e8), model_lm()), "exact if no record lies outside the bounds", class = "noiseaware_message_method")
  expect_identical(chosen, "collapse")
  expect_identical(auto(normal(1e8), model_lm(), iter = 40, chains = 1), "augment")
  one <- function(upper) as_release(c(2e8, 8e8), stat_sums(~ x + I(x^2), list(x = c(-upper, upper))), mech_gaussian(mu = 1), 1e8)
  for (case in list(list(30, "collapse"), list(5, "clt"))) {
    set.seed(5)
    expect_message(chosen <- auto(one(case[[1]]), model_normal()), case[[2]], class = "noiseaware_message_method")
    expect_identical(chosen, case[[2]])
    after <- runif(1)
    set.seed(5)
    expect_identical(runif(1), after)
  }
  clamped <- function(mechanism) as_release(c(3, 9), stat_sums(~ x + I(x^2), list(x = c(0, 9))), mechanism, 1e8)
  expect_message(chosen <- auto(clamped(mech_laplace(epsilon = 1)), model_poisson()), "approximate", class = "noiseaware_message_method")
  expect_identical(chosen, "clt")
  own <- mech_custom(function(noise) -rowSums(abs(noise)))
  expect_message(chosen <- auto(clamped(own), model_poisson()), "No other method", class = "noiseaware_message_method")
  expect_identical(chosen, "augment")
  # what is left of the choice: the print
  set.seed(1)
  fit <- sample_posterior(counts(~ y:x, 40), model_naive_bayes("y"), chains = 1, iter = 200, seed = 1)
  expect_identical(fit$method, "collapse")
  expect_output(print(fit), "collapse: .*\\(exact\\)")
})
