# Rounds of sweep, moves and update that make an iteration: src/mcmc/rounds_per_iteration.c.

rounds_chain <- function() {
  bounds <- list(y = c(-2, 2), x1 = c(-1.5, 1), x2 = c(-1, 2), g = c("a", "b", "c"))
  statistic <- stat_crossprod(y ~ x1 + x2 + g, bounds)
  release <- simulate_release(model_lm(), statistic, mech_laplace(epsilon = 3), n = 60)
  bound <- internal("bind_model")(model_lm(), statistic)
  words <- internal("seed_words")()
  problem <- internal("augment_problem")(release, bound, NULL, words, 1)
  list(problem = problem, state = internal("start_chain")(problem, bound, words, 1, NULL))
}

# iterations of a chain of 200 in warmup, `keep` draws of them
iterate <- function(chain, state, iterations, keep, thin = 1) {
  block <- .Call(internal("ffi_block"), chain$problem, iterations, keep)
  .Call(internal("ffi_run"), chain$problem, state, block, list(warmup = 200, thin = thin))
  block
}

test_that("three rounds are three iterations", {
  set.seed(15)
  chain <- rounds_chain()
  iterate(chain, chain$state, 200L, 0L)
  after <- function(rounds) {
    state <- .Call(internal("ffi_duplicate"), chain$state)
    state$rounds[1] <- rounds
    state
  }
  once <- iterate(chain, after(1), 30L, 10L, thin = 3)
  thrice <- iterate(chain, after(3), 10L, 10L)
  expect_identical(thrice$draws, once$draws)
  expect_equal(thrice$acceptance, colMeans(matrix(once$acceptance, 3)))
})

test_that("warmup gives slow chains more rounds than quick ones", {
  skip_on_cran() # takes long; `make test` runs it
  mtcars <- datasets::mtcars
  for (v in c("am", "cyl", "vs", "gear")) mtcars[[v]] <- factor(mtcars[[v]])
  bounds <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 350), qsec = c(10, 25), disp = c(60, 500), drat = c(2, 6), am = c("0", "1"), cyl = c("4", "6", "8"),
                 vs = c("0", "1"), gear = c("3", "4", "5"))
  # what a chain learns varies much
  rounds <- function(formula, epsilon) {
    set.seed(3)
    release <- simulate_release(mtcars, stat_crossprod(formula, bounds[all.vars(formula)]), mech_laplace(epsilon = epsilon))
    widths <- vapply(Filter(is.numeric, bounds[all.vars(formula)[-1]]), diff, 0, USE.NAMES = FALSE)
    model <- model_lm(covariates = prior_niw(kappa = 1, scale = (widths / 6)^2), factors = "independent")
    acceptance(suppressWarnings(sample_posterior(release, model, method = "augment", chains = 3, iter = 720, warmup = 700, seed = 1)))$rounds
  }
  expect_lte(mean(rounds(mpg ~ wt + hp + am, 5)), 1.5)
  expect_gte(mean(rounds(mpg ~ wt + hp + qsec + disp + drat + am + cyl + vs + gear, 0.25)), 2)
})

test_that("a single excursion to few records makes no rounds", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x + g, list(y = c(-6, 6), x = c(-4, 4), g = c("a", "b")))
  noise <- mech_laplace(epsilon = 1)
  set.seed(1000)
  data <- data.frame(x = stats::rnorm(1000), g = sample(c("a", "b"), 1000, TRUE))
  data$y <- data$x + (data$g == "b") + stats::rnorm(1000)
  told <- as_release(list(t = simulate_release(data, statistic, noise, neighbours = "add_remove")$value, size = 1500), list(t = statistic, size = stat_size()),
                     list(t = noise, size = mech_gaussian(sd = 500)), n = NULL, neighbours = "add_remove")
  # with what lies far away counted in full, one of these chains of some two iterations for an effective draw has four
  model <- model_lm(prior = prior_nig(shape = 2, rate = 1.5^2), covariates = prior_niw(kappa = 1, scale = (4 / 3)^2, df = 3))
  fit <- suppressWarnings(sample_posterior(told, model, method = "augment", chains = 8, iter = 701, warmup = 700, seed = 9))
  expect_lte(max(acceptance(fit)$rounds), 2)
})

test_that("the state holds what was learned of rounds, and a chain goes on with it", {
  set.seed(16)
  chain <- rounds_chain()
  iterate(chain, chain$state, 200L, 0L)
  expect_identical(chain$state$rounds[2], 100) # iterations looked at
  expect_true(chain$state$rounds[1] %in% 1:8)
  sizes <- length(chain$state$rounds)
  expect_identical(sizes, 4L + 8L * length(chain$state$theta))
})

test_that("responses of factors alone have rounds too", {
  skip_on_cran()
  bounds <- list(y = c(0, 60), g = c("a", "b", "c"), h = c("k", "l"))
  set.seed(17)
  data <- data.frame(y = stats::rpois(60, 12), g = sample(bounds$g, 60, TRUE), h = sample(bounds$h, 60, TRUE))
  release <- simulate_release(data, stat_crossprod(y ~ g + h, bounds), mech_laplace(epsilon = 10))
  fit <- suppressWarnings(sample_posterior(release, model_glm(family = stats::poisson()), method = "augment", chains = 2, iter = 401, warmup = 400, seed = 1))
  expect_gte(mean(acceptance(fit)$rounds), 2)
})

test_that("the least number of rounds is lower where passes are planned", {
  skip_on_cran()
  set.seed(18)
  x <- 2 * stats::rbeta(300, 0.5, 0.5) - 1
  data <- data.frame(y = as.numeric(stats::runif(300) < stats::plogis(0.5 + 2 * x)), x = x)
  release <- simulate_release(data, stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-1, 1))), mech_laplace(epsilon = 0.1))
  fit <- suppressWarnings(sample_posterior(release, model_logistic(covariates = list(x = covariate_beta())), method = "augment", chains = 4, iter = 501, warmup = 500, seed = 1))
  told <- acceptance(fit)
  # four are the least that this model asks for, with the few passes of warmup
  expect_gt(max(told$passes), 8)
  expect_lt(min(told$rounds[told$passes > 8]), 4)
})
