# Transfers of records between two levels of a factor: src/records/level_transfers.c.

levels_case <- function(kind) {
  bounds <- list(y = c(-2, 2), x1 = c(-1.5, 1), x2 = c(-1, 2), g = c("a", "b", "c"))
  weights <- prior_dirichlet(c(5, 0.5, 2))
  switch(kind,
    lm = list(model = model_lm(prior = prior_nig(), levels = weights), statistic = stat_crossprod(y ~ x1 + x2 + g, bounds)),
    logistic = list(model = model_logistic(y ~ x1 + x2 + g, levels = weights),
                    statistic = stat_crossprod(y ~ x1 + x2 + g, c(list(y = c(FALSE, TRUE)), bounds[-1]))))
}

test_that("the joint distribution is right, with weights that are not all 1", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(12)
  for (kind in c("lm", "logistic")) {
    case <- levels_case(kind)
    draws <- geweke(case$model, case$statistic, mech_laplace(epsilon = 6), n = 12, iterations = 5500, passes = NULL, warmup = 300L)
    prior <- prior_draws(case$model, case$statistic)
    for (v in c("prob[g=a]", "prob[g=b]", "(Intercept)", "gb", "x1")) {
      expect_distribution(draws[, v], function(p) stats::quantile(prior[, v], p, names = FALSE))
    }
  }
})

# The release tells the counts of two levels of three, by noise wider than sqrt(n p): the plain
# sampler's counts and probabilities hold one another fast.
test_that("levels have the posterior of the plain sampler where noise is wide", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(13)
  case <- levels_case("lm")
  release <- simulate_release(case$model, case$statistic, mech_laplace(epsilon = 1), n = 150)
  draws <- function(control, iter) {
    fit <- sample_posterior(release, case$model, method = "augment", chains = 2, iter = iter, seed = 5, control = control)
    posterior::subset_draws(fit$draws, variable = c("prob", "gb", "gc", "sigma"), regex = TRUE)
  }
  expect_same_quantiles(draws(list(), 1300), draws(list(passes = 8), 4000))
})

test_that("acceptance() tells how often records were transferred", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(14)
  case <- levels_case("lm")
  release <- simulate_release(case$model, case$statistic, mech_laplace(epsilon = 1), n = 150)
  fit <- suppressWarnings(sample_posterior(release, case$model, method = "augment", chains = 2, iter = 400, seed = 5))
  expect_true(all(acceptance(fit)$regrouped > 0.2 & acceptance(fit)$regrouped < 0.7))
  expect_output(print(acceptance(fit)), "updates  accepted 0\\..*moves    non-centred.*of records between levels: accepted 0\\.")
  plain <- suppressWarnings(sample_posterior(release, case$model, method = "augment", chains = 1, iter = 40, seed = 5, control = list(passes = 0)))
  expect_true(is.nan(acceptance(plain)$regrouped))
})
