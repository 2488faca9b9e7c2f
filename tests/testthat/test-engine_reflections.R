# Reflections of records that a release does not tell apart: R/engine_reflections.R, src/records/reflections.c.

unit_bounds <- function(...) lapply(stats::setNames(nm = c(...)), function(name) c(-1, 1))

test_that("the sets of columns in which all components are even are found", {
  sets <- function(statistic, model = model_mvnormal(), value = rep(1, length(statistic$components))) {
    rel <- as_release(value, statistic, mech_laplace(scale = 1), n = 20)
    bound <- internal("bind_model")(internal("complete_model")(model, rel), rel$statistic)
    found <- internal("record_reflections")(bound, internal("component_parts")(rel))
    if (is.null(found)) return(NULL)
    named <- apply(found$columns, 2L, function(set) paste(bound$columns$name[set == 1], collapse = ""))
    list(sets = sort(named), origin = stats::setNames(found$origin, bound$columns$name))
  }
  two <- unit_bounds("x", "y")
  expect_null(sets(stat_sums(~ x + I(x^2), unit_bounds("x"), rescale = FALSE), model_normal()))
  expect_identical(sets(stat_sums(~ I(x^2), unit_bounds("x")), model_normal())$sets, "x")
  expect_identical(sets(stat_sums(~ x:y, two))$sets, "xy")
  expect_identical(sets(stat_sums(~ I(x^2) + x:y + I(y^2), two, rescale = FALSE))$sets, "xy")
  expect_identical(sets(stat_sums(~ I(x^2) + I(y^2), two, rescale = FALSE))$sets, c("x", "xy", "y"))
  expect_identical(sets(stat_sums(~ x + I(x^2) + I(y^2), two, rescale = FALSE))$sets, "y")
  expect_null(sets(stat_crossprod(y ~ x, two)))
  # powers of a rescaled column are about the middle of its bounds
  part <- stat_moments4(~ x, list(x = c(2, 6)))
  expect_equal(internal("origin_of")(list(statistic = part, at = seq_along(part$components)), "x"), if (part$rescale) 4 else 0)
})

test_that("one record under a prior that is not symmetric: the posterior by quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  z <- 0.49
  fit <- suppressWarnings(sample_posterior(as_release(z, stat_sums(~ I(y^2), list(y = c(-1, 2))), mech_laplace(scale = 0.05), n = 1),
                                           model_normal(prior = prior_nig(0.2, 2, 3, 1)), method = "augment", chains = 2, iter = 4000, warmup = 1000, seed = 3))
  y <- seq(-8, 8, by = 0.0005)
  weight <- dt((y - 0.2) / sqrt(1 / 3 * (1 + 1 / 2)), 6) * exp(-abs(z - pmin(pmax(y, -1), 2)^2) / 0.05)
  expected <- sum(weight * (2 * 0.2 + y) / 3) / sum(weight)
  draws <- parameter_draws(fit, "mean")
  expect_lt(abs(mean(draws) - expected) / posterior::mcse_mean(draws), 5)
})

test_that("maps that keep second moments are made where nothing else is published", {
  made <- function(statistic, model = model_mvnormal()) {
    rel <- as_release(rep(1, length(statistic$components)), statistic, mech_laplace(scale = 1), n = 20)
    bound <- internal("bind_model")(internal("complete_model")(model, rel), rel$statistic)
    internal("record_reflections")(bound, internal("component_parts")(rel))[c("turns", "unit", "stretch")]
  }
  two <- list(x = c(-1, 1), y = c(-3, 1))
  unit <- internal("default_unit")(c(1, 2))
  expect_identical(made(stat_sums(~ x:y, two)), list(turns = 1, unit = unit, stretch = c(1, 1)))
  expect_identical(made(stat_sums(~ I(x^2) + x:y, two)), list(turns = 1, unit = unit, stretch = c(0, 1)))
  expect_identical(made(stat_sums(~ I(x^2) + x:y + I(y^2), two)), list(turns = 1, unit = unit, stretch = c(0, 0)))
  expect_identical(made(stat_sums(~ x + I(x^2) + I(y^2), two))$turns, 0)
  expect_identical(made(stat_sums(~ I(x^4), two[1]), model_normal())$turns, 0)
  expect_identical(made(stat_sums(~ I(x^2), two[1]), model_normal())$turns, 1)
})

test_that("reflections, turns and stretches leave the joint distribution", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  two <- list(x = c(-1, 1), y = c(-3, 2))
  model <- model_mvnormal(c("x", "y"), prior_niw(c(0.2, -0.3), 1, matrix(c(4, 1, 1, 6), 2), 12))
  for (case in list(list(~ I(y^2) + y:x + I(x^2), 5), list(~ y:x, 3))) {
    st <- stat_sums(case[[1]], two)
    draws <- geweke(model, st, mech_laplace(scale = 0.2), case[[2]], 6000, NULL, warmup = 300L)
    expect_prior(draws, prior_draws(model, st))
  }
})

test_that("squares and products far from their origin converge", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ I(y^2) + y:x + I(x^2), list(y = c(-5, 5), x = c(-5, 5)), rescale = FALSE)
  rel <- as_release(c(1100, 1200, 2500), st, mech_laplace(scale = 10), n = 500)
  fit <- suppressMessages(suppressWarnings(sample_posterior(rel, model_mvnormal(c("x", "y")), iter = 1000, seed = 2)))
  expect_gt(min(internal("mixing_diagnostics")(fit)$ess), 100) # 5 without the maps
})

test_that("chains go to both sides of a mirror", {
  skip_on_cran() # takes long; `make test` runs it
  both <- function(value, statistic, model, name, ...) {
    rel <- as_release(value, statistic, mech_laplace(scale = 1), n = 100)
    fit <- suppressMessages(suppressWarnings(sample_posterior(rel, model, method = "augment", chains = 2, iter = 800, seed = 1, ...)))
    above <- posterior::extract_variable_matrix(fit$draws, name) > 0
    expect_true(all(abs(colMeans(above) - 0.5) < 0.15))
    fit
  }
  two <- unit_bounds("x", "y")
  both(40, stat_sums(~ I(y^2), unit_bounds("y")), model_normal(prior = prior_nig(0, 0.05, 20, 20)), "mean")
  both(40, stat_sums(~ I(y^2), unit_bounds("y")), model_normal(prior = prior_nig(0, 0.05, 20, 20)), "mean", thin = 2)
  both(30, stat_sums(~ x:y, two), model_mvnormal(), "mean[x]")
  fit <- both(c(40, 25, 35), stat_sums(~ I(y^2) + y:x + I(x^2), two, rescale = FALSE), model_mvnormal(), "mean[y]")
  expect_true(length(fit$problem$surrogate) > 0) # which goes along what squares leave open
})

test_that("a method without reflections says that a side may be missing", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(4e4, stat_sums(~ I(y^2), list(y = c(-9, 9))), mech_laplace(scale = 1), n = 1e4)
  fit <- suppressMessages(suppressWarnings(sample_posterior(rel, model_normal(prior = prior_nig(0, 0.05, 2000, 20)), method = "clt", chains = 2, iter = 200, seed = 1)))
  expect_identical(internal("mirror_trouble")(fit)[[1]]$kind, "mirror")
})
