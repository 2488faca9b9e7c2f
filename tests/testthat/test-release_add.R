# Several releases of the same records.

answers <- stat_counts(~ y, levels = list(y = c("no", "yes")))
laplace <- mech_laplace(scale = 1.5)
first <- as_release(c(`y=yes` = 4.2), answers, laplace, 6)
second <- as_release(c(1.4, 4.9), answers, mech_gaussian(sd = 1), 6)

test_that("joined releases are the release of both at once", {
  both <- as_release(list(first = c(`y=yes` = 4.2), second = c(1.4, 4.9)), list(first = answers, second = answers),
                     list(first = laplace, second = mech_gaussian(sd = 1)), 6)
  expect_identical(add_release(first, second), both)
  named <- add_release(first, second, names = c("spring", "autumn"))
  expect_identical(names(named$statistic), c("spring", "autumn"))
  third <- add_release(both, first)
  expect_identical(names(third$statistic), c("first", "second", "third"))
  expect_identical(names(add_release(first, named)$statistic), c("first", "spring", "autumn"))
  expect_output(print(both), "6 (public), the same for all statistics", fixed = TRUE)
  path <- withr::local_tempfile(fileext = ".json")
  write_release(third, path)
  expect_identical(read_release(path), third)
  # unknown n: the other release tells it
  unknown <- as_release(c(`y=yes` = 4.2), answers, laplace, NULL, "add_remove")
  public <- as_release(c(1.4, 4.9), answers, mech_gaussian(sd = 1), 6, "add_remove")
  expect_identical(add_release(unknown, public)$n, 6)
  expect_null(add_release(unknown, unknown)$n)
})

test_that("releases made here and published elsewhere join, with the noise that they have", {
  data <- data.frame(y = rep(c("no", "yes"), 20:21))
  own <- release(data, answers, mech_laplace(epsilon = 1))
  published <- as_release(c(20, 21), answers, mech_gaussian(sd = 2), 41)
  joined <- add_release(own, published)
  expect_identical(unname(joined$scale), unname(c(own$scale, published$scale)))
  path <- withr::local_tempfile(fileext = ".json")
  write_release(joined, path)
  expect_identical(read_release(path), joined)
  twice <- add_release(own, release(data, answers, mech_discrete_laplace(epsilon = 1)))
  expect_identical(twice$noise, "entropy")
  expect_equal(privacy(twice)$epsilon, 2, tolerance = 1e-6)
  write_release(twice, path)
  expect_identical(read_release(path), twice)
})

test_that("the posterior given both is exact, from the second release or both at once", {
  skip_on_cran()
  count <- 0:6
  log_weight <- log_noise("absolute", 1.5, 4.2, cbind(count)) + log_noise("squared", 1, 4.9, cbind(count)) + log_noise("squared", 1, 1.4, cbind(6 - count))
  weight <- exp(log_weight) / sum(exp(log_weight)) # a uniform prior of the count
  exact <- sum(weight * (count + 1) / 8)
  for (method in c("augment", "collapse")) {
    fit <- sample_posterior(first, model_bernoulli(), method = method, chains = 2, iter = 400, seed = 1)
    more <- update(fit, add = second, iter = 4100, warmup = 600)
    expect_same_mean(parameter_draws(more, "prob[yes]"), exact)
    expect_identical(more$release, add_release(first, second))
    expect_identical(dim(add_release(fit, second, names = c("a", "b"), chains = 3, iter = 20)$draws)[2], 3L)
  }
})

test_that("what cannot be of the same records does not join", {
  skip_on_cran() # takes long; `make test` runs it
  other <- stat_counts(~ y, levels = list(y = c("yes", "no")))
  number <- stat_sums(~ y, bounds = list(y = c(0, 1)))
  show(refusals("release", alist(
    add_release(first, as_release(c(1, 2), answers, laplace, 7)),
    add_release(first, as_release(c(1, 2), other, laplace, 6)),
    add_release(first, as_release(1, number, laplace, 6)),
    add_release(add_release(first, second), add_release(second, first))
  )))
  show(refusals("neighbours", alist(add_release(first, as_release(c(1, 2), answers, laplace, 6, "add_remove")))))
  fit <- sample_posterior(first, model_bernoulli(), chains = 1, iter = 20, seed = 1)
  show(refusals("argument", alist(
    c(first, second),
    add_release(first, 3),
    add_release(3, first),
    add_release(first, second, names = "a"),
    add_release(first, second, names = c("a", "a")),
    add_release(fit, second, adds = 3),
    update(fit, add = second, release = first),
    update(fit, add = 3),
    update(fit, adds = second)
  )))
})

test_that("noise of several numbers a record keeps the scale of each", {
  people <- data.frame(x = c(0.1, 0.5, 0.9), y = c(1, 7, 9))
  st <- stat_records(~ x + y, bounds = list(x = c(0, 1), y = c(0, 10)))
  first <- release(people, st, mech_laplace(scale = c(x = 2, y = 30)))
  second <- as_release(c(x = 1.4), stat_sums(~ x, list(x = c(0, 1))), mech_laplace(scale = 1), n = 3)
  joined <- add_release(first, second)
  expect_identical(unname(joined$scale), c(unname(first$scale), 1))
  expect_equal(unname(joined$mechanism[[1]]$scale), unname(first$scale[c(1, 4)]))
})
