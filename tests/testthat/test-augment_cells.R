# Groups of records that move to the next cell of a covariate: src/records/cell_groups.c.

bounds <- list(y = c(-3, 5), x = c(2, 10), z = c(-4, 4))
statistic <- stat_crossprod(y ~ s(x, k = 11) + z, bounds)

test_that("the joint distribution is right, with weights of cells that are not all 1", {
  skip_on_cran()
  set.seed(1)
  model <- model_lm(y ~ s(x, k = 11) + z, levels = prior_dirichlet(rep(c(0.3, 3, 1), length.out = 16)))
  draws <- geweke(model, statistic, mech_laplace(epsilon = 10), n = 10, iterations = 5200, passes = NULL, warmup = 300L)
  expect_prior(draws, prior_draws(model, statistic))
})

test_that("the joint distribution is right where the cells are levels", {
  skip_on_cran()
  set.seed(4)
  statistic <- stat_crossprod(y ~ s(x, k = 6) + g, c(bounds[c("y", "x")], list(g = letters[1:6])))
  model <- model_lm(y ~ s(x, k = 6) + g, levels = prior_dirichlet(rep(c(0.3, 3, 1), 2)))
  draws <- geweke(model, statistic, mech_laplace(epsilon = 10), n = 10, iterations = 3000, passes = NULL, warmup = 300L)
  expect_prior(draws, prior_draws(model, statistic))
})

test_that("the posterior is the plain sampler's", {
  skip_on_cran()
  set.seed(3)
  formula <- y ~ s(x, k = 6) + z
  data <- data.frame(y = rnorm(30), x = 2 + 8 * rbeta(30, 1, 3), z = rnorm(30))
  release <- simulate_release(data, stat_crossprod(formula, bounds), mech_laplace(epsilon = 20))
  draws <- function(control, iter) {
    fit <- suppressWarnings(sample_posterior(release, model_lm(), "augment", chains = 4, iter = iter, seed = 1, control = control))
    posterior::subset_draws(fit$draws, c("sigma", "prob\\[x=", "prob\\[z="), regex = TRUE)
  }
  expect_same_quantiles(draws(list(), 2000), draws(list(passes = 0), 10000))
})

test_that("where noise says nothing, many records do not hold the cells' probabilities", {
  skip_on_cran()
  release <- as_release(numeric(length(statistic$components)), statistic, mech_laplace(scale = 1e5), n = 200)
  fit <- suppressWarnings(sample_posterior(release, model_lm(), "augment", chains = 2, iter = 1500, warmup = 500, seed = 1))
  draws <- as.matrix(fit)[, grepl("^prob", posterior::variables(fit$draws))]
  prior <- prior_draws(model_lm(), statistic)
  expect_prior(draws, prior[, colnames(draws)])
  effective <- posterior::summarise_draws(posterior::subset_draws(fit$draws, "prob", regex = TRUE), "ess_bulk")$ess_bulk
  expect_gt(min(as.double(effective)), 200)
})

test_that("acceptance() reports them, and only where there are classes", {
  set.seed(2)
  data <- data.frame(y = rnorm(60), x = runif(60, 2, 10), z = rnorm(60))
  accepted <- function(formula, ...) {
    release <- simulate_release(data, stat_crossprod(formula, bounds[all.vars(formula)]), mech_laplace(epsilon = 4))
    acceptance(suppressWarnings(sample_posterior(release, model_lm(), "augment", chains = 1, iter = 60, seed = 1, ...)))$regrouped
  }
  regrouped <- accepted(y ~ s(x, k = 6) + z)
  expect_true(regrouped > 0.3 && regrouped < 1)
  expect_true(is.nan(accepted(y ~ s(x, k = 6))))
  expect_true(is.nan(accepted(y ~ s(x, k = 6) + z, control = list(passes = 0))))
})
