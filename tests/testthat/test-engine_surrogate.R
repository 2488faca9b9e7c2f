# Moves of all records at once with their shape held fixed: src/records/shape_hmc.c. Models have more
# than `few_parameters` unknown parameters, so that "augment" makes such moves.

surrogate_case <- function(kind, n = 60) {
  bounds <- list(y = c(-2, 2), x1 = c(-1.5, 1), x2 = c(-1, 2), x3 = c(-1, 1), g = c("a", "b", "c"), x4 = c(-1, 1), x5 = c(-2, 1))
  # most records lie between the bounds, and means near the middle
  near <- function(...) prior_niw(kappa = 1, scale = (vapply(bounds[c(...)], diff, 0, USE.NAMES = FALSE) / 6)^2, df = ...length() + 2)
  narrow <- function(precision) prior_nig(precision = precision, shape = 2, rate = 1 / 4)
  of_numbers <- function(count) { # in the middle of the bounds the intercept is N(0, (2 sigma)^2)
    x <- matrix(unlist(bounds[paste0("x", seq_len(count))]), 2)
    to_middle <- rbind(c(1, colMeans(x)), cbind(0, diag(count)))
    narrow(crossprod(to_middle, diag(c(1 / 4, count * (x[2, ] - x[1, ])^2 / 64)) %*% to_middle))
  }
  two <- near("x1", "x2")
  three <- near("x1", "x2", "x3")
  glm <- function(family, response) {
    list(model = model_glm(y ~ x1 + x2 + g, family, covariates = two, factors = "independent"),
         statistic = stat_crossprod(y ~ x1 + x2 + g, c(list(y = response), bounds[c("x1", "x2", "g")])))
  }
  switch(kind,
    numbers = list(model = model_lm(prior = of_numbers(3), covariates = three), statistic = stat_crossprod(y ~ x1 + x2 + x3, bounds[1:4])),
    several = list(model = model_lm(prior = of_numbers(5), covariates = near("x1", "x2", "x3", "x4", "x5")), statistic = stat_crossprod(y ~ x1 + x2 + x3 + x4 + x5, bounds[-5])),
    factor = list(model = model_lm(prior = narrow(1 / 4), covariates = two, factors = "independent"), statistic = stat_crossprod(y ~ x1 + x2 + g, bounds[c(1:3, 5)])),
    kept = list(model = model_lm(prior = prior_normal(0, 1), sigma = prior_inverse_gamma(3, 2), covariates = three),
                statistic = stat_crossprod(y ~ x1 + x2 + x3, bounds[1:4], rescale = FALSE)),
    cut = list(model = model_lm(prior = of_numbers(3), covariates = prior_niw(kappa = 1, scale = three$scale, df = 5, within = TRUE)), statistic = stat_crossprod(y ~ x1 + x2 + x3, bounds[1:4])),
    logistic = glm(binomial(), c(FALSE, TRUE)),
    poisson = glm(poisson(), c(0, 9)),
    negative_binomial = glm("negative_binomial", c(0, 4)),
    gamma = glm(Gamma("log"), c(0, 3)),
    cloglog = glm(binomial("cloglog"), c(FALSE, TRUE)),
    categorical = list(model = model_glm(y ~ x1 + g, "categorical", prior = prior_normal(0, 1), covariates = near("x1"), factors = "independent"),
                       statistic = stat_crossprod(y ~ x1 + g, c(list(y = c("low", "mid", "high")), bounds[2], list(g = c("a", "b"))))),
    normal = list(model = model_mvnormal(prior = near("y", "x1", "x2", "x3")), statistic = stat_crossprod(y ~ x1 + x2 + x3, bounds[1:4])))
}

surrogate_chain <- function(kind, mechanism = mech_laplace(epsilon = 3), n = 60) {
  case <- surrogate_case(kind)
  release <- simulate_release(case$model, case$statistic, mechanism, n = n)
  bound <- internal("bind_model")(case$model, case$statistic)
  words <- internal("seed_words")()
  problem <- internal("augment_problem")(release, bound, NULL, words, 1)
  list(problem = problem, state = internal("start_chain")(problem, bound, words, 1, NULL), case = case, release = release)
}

# Where slopes are in the part of a state that is the surrogate's, the last of its store (mcmc/online_least_squares.h).
tilt_at <- function(state, values, size) {
  end <- length(state$surrogate)
  stored <- 2 * values * size + size^2 + 2
  list(slope = end - stored + seq_len(values * size), learned = end - 1L)
}

# A state whose surrogate has slopes from nowhere: any are as exact as those that are learned.
with_slopes <- function(state, problem, sd = 0.3) {
  size <- (length(.Call(internal("ffi_augment_density"), problem, state, FALSE, numeric())) - 1) / 2
  values <- problem$dense
  tilt <- tilt_at(state, values, size)
  state$surrogate[tilt$slope] <- stats::rnorm(values * size, 0, sd)
  state$surrogate[tilt$learned] <- 1
  state
}

test_that("gradients of both densities are those of finite differences", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  responses <- c("logistic", "poisson", "negative_binomial", "gamma", "cloglog")
  for (kind in c("numbers", "factor", "kept", "normal", responses)) for (mechanism in list(mech_laplace(epsilon = 3), mech_gaussian(mu = 3))[if (kind == "numbers") 1:2 else 1 + kind %in% responses[2:4]]) {
    repeat { # until no level is empty
      chain <- surrogate_chain(kind, mechanism)
      at <- function(exact, q) .Call(internal("ffi_augment_density"), chain$problem, chain$state, exact, q)
      if (is.finite(at(FALSE, numeric())[1L])) break
    }
    for (exact in c(FALSE, TRUE, if (kind %in% responses) NA)) {
      size <- (length(at(exact, numeric())) - 1) / 2
      q <- at(exact, numeric())[1 + size + seq_len(size)] + stats::rnorm(size, 0, 0.01)
      gradient <- at(exact, q)[1 + seq_len(size)]
      expect_equal(gradient, difference_slopes(function(q) at(exact, q), q, 1e-6 * (1 + abs(q))), tolerance = 1e-4)
    }
  }
})

test_that("where noise is small beside the scatter of several columns, the factor's own rows have their gradient and the posterior", {
  set.seed(14)
  # with three numbers, 2 sqrt(d) times the root mean variance of noise 2 scale^2 on S_ij / sqrt(S_ii S_jj)
  case <- surrogate_case("factor")
  # dummies stand between the numbers
  case$statistic <- stat_crossprod(y ~ g + x1 + x2, list(y = c(-2, 2), g = c("a", "b", "c"), x1 = c(-1.5, 1), x2 = c(-1, 2)))
  value <- simulate_release(case$model, case$statistic, mech_laplace(scale = 1e-6), n = 60)$value
  at <- match(c("y", "x1", "x2", "y^2", "x1^2", "x2^2"), case$statistic$components)
  noise <- function(scale) sqrt(8 / 3) * scale * sum(1 / (value[at[4:6]] - value[at[1:3]]^2 / 60))
  told <- function(scale) {
    release <- as_release(value, case$statistic, mech_laplace(scale = scale), 60)
    internal("augment_problem")(release, internal("bind_model")(case$model, case$statistic), NULL, internal("seed_words")(), 1)$surrogate$scatter_noise
  }
  expect_equal(told(0.3), noise(0.3))
  chain <- surrogate_chain("several", mech_laplace(scale = 0.2))
  expect_lt(chain$problem$surrogate$scatter_noise, 1.5)
  for (exact in c(FALSE, TRUE)) {
    at <- function(q) .Call(internal("ffi_augment_density"), chain$problem, chain$state, exact, q)
    size <- (length(at(numeric())) - 1) / 2
    q <- at(numeric())[1 + size + seq_len(size)] + stats::rnorm(size, 0, 0.01)
    expect_equal(at(q)[1 + seq_len(size)], difference_slopes(at, q, 1e-6 * (1 + abs(q))), tolerance = 1e-4)
  }
})

test_that("where noise is small beside the scatter of several columns, it draws from the posterior of the totals", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(15)
  numbers <- c("y", paste0("x", 1:5))
  statistic <- stat_crossprod(y ~ x1 + x2 + x3 + x4 + x5, stats::setNames(rep(list(c(-9, 9)), 6), numbers), rescale = FALSE)
  release <- simulate_release(stats::setNames(as.data.frame(matrix(stats::rnorm(240), 40)), numbers), statistic, mech_gaussian(sd = 3))
  draws <- function(method, iter) sample_posterior(release, model_lm(), method = method, chains = 4, iter = iter, seed = 6)
  moved <- draws("augment", 900)
  expect_lt(moved$problem$surrogate$scatter_noise, 1.5)
  expect_same_quantiles(moved$draws, draws("collapse", 1800)$draws)
})

test_that("chains start with the levels, and the totals, that the release tells", {
  set.seed(6)
  chain <- surrogate_chain("factor", n = 2000)
  bound <- internal("bind_model")(chain$case$model, chain$case$statistic)
  words <- internal("seed_words")()
  levels <- vapply(1:6, function(k) {
    state <- internal("start_chain")(chain$problem, bound, words, k, NULL)
    residual <- state$residual[chain$problem$where] # in units of the noise
    expect_lt(max(abs(residual)), 25)
    max(abs(residual[names(chain$release$value) %in% c("gb", "gc")]))
  }, 0)
  expect_lt(max(levels), 12)
})

test_that("chains start with the levels that the release tells where noise is wide, wherever the prior's draw is", {
  skip_on_cran()
  set.seed(4)
  n <- 20000
  data <- data.frame(g = factor(sample(c("a", "b"), n, TRUE, c(0.95, 0.05))), x = stats::rnorm(n, 0.5), y = stats::rnorm(n, 0.5))
  release <- simulate_release(data, stat_crossprod(y ~ x + g, list(y = c(-4, 4), x = c(-4, 4), g = c("a", "b"))), mech_laplace(epsilon = 0.3))
  fit <- suppressWarnings(sample_posterior(release, model_lm(), method = "augment", iter = 2, warmup = 1, seed = 2))
  expect_lt(max(abs(posterior::as_draws_array(fit)[, , "prob[g=b]"] - 0.05)), 0.02)
})

test_that("chains start with the coefficients that the release tells", {
  set.seed(6)
  chain <- surrogate_chain("poisson", n = 1000)
  bound <- internal("bind_model")(chain$case$model, chain$case$statistic)
  away <- vapply(1:6, function(seed) {
    words <- internal("with_seed")(seed, internal("seed_words")())
    residual <- internal("start_chain")(chain$problem, bound, words, 1, NULL)$residual[chain$problem$where]
    max(abs(residual[names(chain$release$value) %in% c("y", "y:gb", "y:gc")])) # in units of the noise
  }, 0)
  expect_lt(max(away), 40) # 148 from draws of the prior
})

test_that("moves of a response's coefficients, and of covariates, are accepted where bounds clamp many responses", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  x <- matrix(stats::rnorm(600), 200)
  data <- data.frame(y = stats::rnbinom(200, mu = exp(1 + x[, 1] - 0.5 * x[, 2]), size = 1), x1 = x[, 1], x2 = x[, 2], x3 = x[, 3])
  statistic <- stat_crossprod(y ~ x1 + x2 + x3, list(y = c(0, 4), x1 = c(-3, 3), x2 = c(-3, 3), x3 = c(-3, 3))) # two in five responses are above 4
  release <- simulate_release(data, statistic, mech_laplace(epsilon = 2))
  told <- acceptance(suppressWarnings(sample_posterior(release, model_glm(family = poisson()), method = "augment", iter = 600, seed = 1)))
  expect_gt(mean(told$responded), 0.1) # 0.02 by the means of counts without bounds
  expect_gt(mean(told$moved), 0.3) # 0.02 by the products of counts that are not clamped
})

test_that("coefficients of factors alone move with the responses: the gradient, and the posterior by another sampler", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(y = c(0, 3), g = c("a", "b", "c"), h = c("k", "l"), i = c("m", "n"))
  set.seed(16)
  data <- as.data.frame(lapply(bounds[-1L], sample, 80, TRUE))
  data$y <- stats::rpois(80, exp(0.5 + (data$g == "b") - 0.5 * (data$h == "l")))
  release <- simulate_release(data, stat_crossprod(y ~ g + h + i, bounds), mech_laplace(epsilon = 4))
  draws <- function(...) {
    suppressWarnings(sample_posterior(release, model_glm(family = poisson(), prior = prior_normal(0, 1)), method = "augment", chains = 4, seed = 6, ...))
  }
  moved <- draws(iter = 1000)
  expect_gt(mean(acceptance(moved)$responded), 0.05)
  at <- function(q) .Call(internal("ffi_augment_density"), moved$problem, moved$chains[[1]]$state, NA, q)
  here <- at(numeric())
  size <- (length(here) - 1) / 2
  q <- here[-seq_len(size + 1)] + stats::rnorm(size, 0, 0.01)
  expect_equal(at(q)[1 + seq_len(size)], difference_slopes(at, q, 1e-6 * (1 + abs(q))), tolerance = 1e-4)
  expect_same_quantiles(moved$draws, draws(iter = 1100, control = list(passes = 0))$draws)
})

test_that("the exact density differs between points as the records' totals say", {
  set.seed(2)
  chain <- surrogate_chain("factor", mech_gaussian(mu = 3))
  problem <- chain$problem
  at <- function(problem, q) .Call(internal("ffi_augment_density"), problem, chain$state, TRUE, q)
  own <- at(problem, numeric())
  size <- (length(own) - 1) / 2
  q <- own[1 + size + seq_len(size)]
  # at the records themselves, another release changes the noise's share alone
  moved <- problem
  moved$released <- problem$released + 1
  energy <- function(problem) {
    total <- chain$problem$released - chain$state$residual * ifelse(is.finite(chain$problem$scale), chain$problem$scale, 1)
    sum(((problem$released - total) / problem$scale)^2) / 2
  }
  expect_equal(at(moved, q)[1] - at(problem, q)[1], energy(problem) - energy(moved), tolerance = 1e-8)
})

test_that("slopes have their gradient", {
  set.seed(9)
  for (kind in c("numbers", "factor", "logistic")) {
    chain <- surrogate_chain(kind, mech_gaussian(mu = 3))
    own <- .Call(internal("ffi_augment_density"), chain$problem, chain$state, FALSE, numeric())
    expect_true(is.finite(own[1])) # no level is empty
    state <- with_slopes(chain$state, chain$problem)
    at <- function(q) .Call(internal("ffi_augment_density"), chain$problem, state, FALSE, q)
    size <- (length(own) - 1) / 2
    q <- own[1 + size + seq_len(size)] + stats::rnorm(size, 0, 0.01)
    expect_equal(at(q)[1 + seq_len(size)], difference_slopes(at, q, 1e-6 * (1 + abs(q))), tolerance = 1e-4)
    expect_gt(abs(at(q)[1] - .Call(internal("ffi_augment_density"), chain$problem, chain$state, FALSE, q)[1]), 1e-3)
  }
})

test_that("a chain that begins far from a release of little noise gets there", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(10)
  truth <- model_lm(prior = fixed(c(-500, 70, 11)), sigma = fixed(390), covariates = fixed(list(mean = c(13, 17), cov = matrix(c(9, -13, -13, 210), 2))))
  statistic <- stat_crossprod(y ~ x1 + x2, list(y = c(0, 3000), x1 = c(0, 20), x2 = c(-5, 65)))
  release <- simulate_release(truth, statistic, mech_laplace(epsilon = 20), n = 20000)
  for (seed in 1:2) {
    fit <- suppressWarnings(sample_posterior(release, model_lm(), method = "augment", chains = 1, iter = 60, warmup = 50, seed = seed))
    expect_lt(max(abs(fit$chains[[1]]$state$residual)), 20) # in units of the noise
  }
})

test_that("the joint distribution is right, for both densities and every kind of model", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  # levels are exchangeable one by one
  with_difference <- function(x) cbind(x, apart = x[, "(Intercept)[high]"] - x[, "(Intercept)[mid]"])
  for (kind in c("numbers", "factor", "kept", "cut", "logistic", "categorical", "negative_binomial")) {
    case <- surrogate_case(kind)
    prior <- prior_draws(case$model, case$statistic)
    if (kind == "categorical") prior <- with_difference(prior)
    some <- intersect(c("(Intercept)", "x1", "sigma", "mean[x1]", "cov[x1,x1]", "cov[x2,x1]", "x1[high]", "apart"), colnames(prior))
    # one chain seldom leaves the tails of a response's coefficients, and does not know how seldom
    chains <- if (kind %in% c("logistic", "categorical", "negative_binomial")) 4L else 1L
    for (exact in switch(kind, cut = , categorical = 1, negative_binomial = 0, 0:1)) {
      each <- replicate(chains, simplify = FALSE, {
        geweke(case$model, case$statistic, mech_laplace(epsilon = 6), n = 12, iterations = if (kind == "categorical") 2400 else if (chains > 1L) 1100 else if (exact == 1) 3300 else 2000,
               passes = NULL, warmup = 300L, prepare = function(state, problem) {
                 state$surrogate[c(2, 4)] <- c(if (exact == 1) 2 else 0.6, exact) # the share of a length, and which density
                 if (kind == "factor") state$surrogate[9] <- 1 # a surrogate that knows no bounds
                 with_slopes(state, problem)
               })
      })
      if (kind == "categorical") each <- lapply(each, with_difference)
      for (v in some) expect_distribution(vapply(each, function(draws) draws[, v], numeric(nrow(each[[1L]]))), function(p) stats::quantile(prior[, v], p, names = FALSE))
    }
  }
})

test_that("it draws from the posterior of the plain sampler where bounds bind", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  case <- surrogate_case("factor")
  release <- simulate_release(case$model, case$statistic, mech_laplace(epsilon = 4), n = 25)
  draws <- function(control, iter) sample_posterior(release, case$model, method = "augment", chains = 4, iter = iter, seed = 5, control = control)$draws
  expect_same_quantiles(draws(list(), 1200), draws(list(passes = 8), 3000))
})

# the responses' own moves have the innovations of the responses fixed, not the records' shape
test_that("a logistic regression has the posterior of the plain sampler where bounds bind", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  case <- surrogate_case("logistic")
  truth <- model_logistic(y ~ x1 + x2 + g, prior = fixed(c(0.5, 1, -1, 0.5, 0)), covariates = fixed(list(mean = c(0, 0.5), cov = diag(0.3, 2))))
  release <- simulate_release(truth, case$statistic, mech_laplace(epsilon = 1), n = 200)
  fit <- function(control, iter) sample_posterior(release, case$model, method = "augment", chains = 2, iter = iter, seed = 5, control = control)
  moved <- suppressWarnings(fit(list(), 1100))
  expect_true(all(acceptance(moved)$moved > 0.1 & acceptance(moved)$responded > 0.1))
  plain <- suppressWarnings(fit(list(passes = 8), 2000))
  expect_same_quantiles(moved$draws, plain$draws)
})

test_that("the surrogate does without bounds that no record reaches", {
  skip_on_cran()
  set.seed(9)
  unbounded <- function(factor) {
    wide <- lapply(list(y = c(-1, 1), x1 = c(-1, 1), x2 = c(-1, 1)), `*`, factor)
    truth <- model_lm(prior = fixed(c(0, 1, -1)), sigma = fixed(1), covariates = fixed(list(mean = c(0, 0), cov = diag(2))))
    release <- simulate_release(truth, stat_crossprod(y ~ x1 + x2, wide), mech_laplace(epsilon = 1), n = 300)
    fit <- suppressWarnings(sample_posterior(release, model_lm(), method = "augment", chains = 1, iter = 400, warmup = 300, seed = 1))
    fit$chains[[1]]$state$surrogate[9]
  }
  expect_identical(unbounded(12), 1)
  expect_identical(unbounded(1.5), 0)
})

test_that("steps learned while the noise was raised to a power are learned again", {
  set.seed(2)
  data <- data.frame(x = stats::rnorm(1000))
  data$y <- stats::runif(1000) < stats::plogis(data$x)
  regression <- stat_crossprod(y ~ x, list(y = c(FALSE, TRUE), x = c(-4, 4)))
  release <- simulate_release(data, list(t = regression, size = stat_size()), list(t = mech_laplace(epsilon = 1), size = mech_laplace(epsilon = 1)), neighbours = "add_remove")
  fit <- suppressWarnings(sample_posterior(release, model_glm(family = stats::binomial()), method = "augment", chains = 2, iter = 60, seed = 1))
  told <- sapply(fit$chains, `[[`, "diagnostics")
  expect_identical(told["divergent", ], c(0, 0))
  expect_gt(min(told["moved", ]), 0.3) # 0 with the first steps
})

test_that("where bounds clamp much the exact density is followed, also beside second trajectories", {
  skip_on_cran()
  skip_if_not_installed("MASS")
  set.seed(1)
  asked <- stat_crossprod(medv ~ rm + crim, list(medv = c(0, 50), rm = c(3, 9), crim = c(0, 100)))
  release <- simulate_release(MASS::Boston[sample(506, 200), ], asked, mech_laplace(epsilon = 5))
  fit <- suppressWarnings(sample_posterior(release, model_lm(), method = "augment", chains = 4, iter = 400, seed = 2))
  exact <- vapply(fit$chains, function(chain) chain$state$surrogate[4], 0)
  expect_gte(sum(exact), 2) # none if a second trajectory counts as the sweep's way
})

test_that("of one column the exact density is followed", {
  set.seed(2)
  statistic <- stat_sums(~ x + I(x^2), list(x = c(4, 7)), rescale = FALSE)
  fit <- function(data, mechanism) {
    release <- simulate_release(data, statistic, mechanism)
    suppressWarnings(sample_posterior(release, model_normal(), method = "augment", chains = 2, iter = 1000, seed = 1))
  }
  clamped <- fit(data.frame(x = stats::rnorm(1000, 4.6, 0.4)), mech_laplace(epsilon = 3))
  for (chain in clamped$chains) expect_identical(chain$state$surrogate[4], 1)
  expect_gt(min(acceptance(clamped)$moved), 0.3) # 0.03 where the gradient leaves out the bend
  free <- fit(data.frame(x = stats::rnorm(150, 5.5, 0.1)), mech_laplace(epsilon = 20))
  for (chain in free$chains) expect_identical(chain$state$surrogate[4], 1)
})

test_that("few records, an empty level and two pairs of bounds are no obstacle", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(5)
  case <- surrogate_case("factor")
  for (n in c(1, 3, 7)) {
    release <- simulate_release(case$model, case$statistic, mech_laplace(epsilon = 1), n = n)
    fit <- sample_posterior(release, case$model, method = "augment", chains = 1, iter = 60, seed = 1)
    expect_true(all(is.finite(posterior::as_draws_matrix(fit))))
  }
  # a column with two pairs of bounds
  one <- stat_crossprod(y ~ x1 + x2 + x3, list(y = c(-2, 2), x1 = c(-1, 1), x2 = c(-1, 1), x3 = c(-1, 1)))
  two <- stat_sums(~ y + I(y^2), list(y = c(-3, 1)), rescale = FALSE)
  release <- simulate_release(model_lm(), list(one = one, two = two), list(one = mech_laplace(epsilon = 1), two = mech_gaussian(mu = 1)), n = 40)
  fit <- sample_posterior(release, model_lm(y ~ x1 + x2 + x3), method = "augment", chains = 1, iter = 200, seed = 1)
  expect_gt(acceptance(fit)$moved, 0)
  expect_output(print(acceptance(fit)), "of all records at once: accepted .* leapfrog steps each")
})

test_that("a chain cut in two is the same chain", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(6)
  for (kind in c("factor", "logistic", "several")) {
    case <- surrogate_case(kind)
    chains <- if (kind == "factor") 2 else 1
    release <- simulate_release(case$model, case$statistic, if (kind == "several") mech_laplace(scale = 0.2) else mech_laplace(epsilon = 3), n = 30)
    whole <- suppressWarnings(sample_posterior(release, case$model, method = "augment", chains = chains, iter = 80, warmup = 60, seed = 1))
    part <- suppressWarnings(extend(sample_posterior(release, case$model, method = "augment", chains = chains, iter = 70, warmup = 60, seed = 1), 10))
    expect_identical(posterior::as_draws_matrix(part), posterior::as_draws_matrix(whole))
  }
})

test_that("draws do not depend on the blocks that iterations come in, in warmup neither", {
  skip_on_cran()
  set.seed(11)
  for (kind in c("factor", "numbers", "kept", "logistic", "poisson", "several")) {
    chain <- surrogate_chain(kind, if (kind == "several") mech_laplace(scale = 0.2) else mech_laplace(epsilon = 3), n = 40)
    run <- function(lengths) {
      state <- .Call(internal("ffi_duplicate"), chain$state) # C writes to it
      for (length in c(lengths, 5L)) {
        block <- .Call(internal("ffi_block"), chain$problem, length, if (length == 5L) 5L else 0L)
        .Call(internal("ffi_run"), chain$problem, state, block, list(warmup = 160, thin = 1))
      }
      block$draws
    }
    # windows end after 20, 40 and 80 iterations
    expect_identical(run(c(20L, 20L, 40L, 80L)), run(160L))
  }
})

# ---- the number of records is unknown ------------------------------------------------------

sized_release <- function(case, mechanism, of_size, n) {
  simulate_release(case$model, list(t = case$statistic, size = stat_size()), list(t = mechanism, size = of_size), n = n, neighbours = "add_remove")
}

# quantiles of n are whole numbers, of no Monte Carlo error
expect_same_posterior <- function(a, b) {
  expect_same_quantiles(posterior::subset_draws(a$draws, a$bound$parameters), posterior::subset_draws(b$draws, b$bound$parameters))
  for (power in 1:2) expect_agreement(parameter_draws(a, "n")^power, parameter_draws(b, "n")^power)
}

test_that("unknown n: the posterior of the plain sampler where bounds bind", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(12)
  for (kind in c("factor", "logistic")) {
    case <- surrogate_case(kind)
    release <- sized_release(case, mech_laplace(epsilon = 4), mech_gaussian(sd = 6), n = 25)
    fit <- function(control, iter) {
      suppressWarnings(sample_posterior(release, case$model, method = "augment", prior_n = prior_n("negative_binomial", mean = 25, size = 5), chains = 4, iter = iter,
                                        seed = 5, control = control))
    }
    moved <- fit(list(), 900)
    expect_true(all(acceptance(moved)$moved > 0.1 & acceptance(moved)$records > 0.1 & acceptance(moved)$tilted > 0.05))
    expect_same_posterior(moved, fit(list(passes = 8), 1900))
  }
})

test_that("unknown n: collapse and the moved records agree where nothing is clamped, n wide and narrow", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(13)
  wide <- list(y = c(-60, 60), x1 = c(-40, 40), x2 = c(-40, 40))
  truth <- model_lm(prior = fixed(c(1, 2, -1)), sigma = fixed(2), covariates = fixed(list(mean = c(3, 0), cov = diag(4, 2))))
  case <- list(model = truth, statistic = stat_crossprod(y ~ x1 + x2, wide, rescale = FALSE))
  for (sd in c(2, 60)) {
    release <- sized_release(case, mech_laplace(scale = 60), mech_gaussian(sd = sd), n = 200)
    fit <- function(method) {
      suppressWarnings(sample_posterior(release, model_lm(), method = method, prior_n = prior_n("uniform", lower = 120, upper = 400), chains = 2, iter = 800, seed = 2))
    }
    expect_same_posterior(fit("augment"), fit("collapse"))
  }
})

test_that("unknown n: calibrated with n drawn, records moved at once", {
  skip_on_cran() # takes long; `make test` runs it
  for (kind in c("factor", "kept")) {
    case <- surrogate_case(kind)
    cal <- calibrate(case$model, list(t = case$statistic, size = stat_size()), list(t = mech_laplace(epsilon = 3), size = mech_discrete_laplace(scale = 4)),
                     n = prior_n("negative_binomial", mean = 20, size = 4), replicates = 20, method = "augment", chains = 1, iter = 240, warmup = 120, seed = 3,
                     neighbours = "add_remove")
    expect_false(any(cal$runs$failed))
    expect_true("n" %in% cal$results$variable)
    expect_gt(min(summary(cal)$p.value), 1e-4)
  }
})

test_that("unknown n: too few records to move at once, and none", {
  set.seed(14)
  case <- surrogate_case("factor")
  release <- sized_release(case, mech_laplace(epsilon = 1), mech_gaussian(sd = 2), n = 3)
  fit <- sample_posterior(release, case$model, method = "augment", prior_n = prior_n("poisson", mean = 1), chains = 2, iter = 400, seed = 1)
  expect_true(all(is.finite(posterior::as_draws_matrix(fit))))
  expect_true(all(c(0, 1, 5) %in% parameter_draws(fit, "n")))
})

test_that("unknown n: a chain of moved records is the same chain in parts, and in more room", {
  skip_on_cran()
  set.seed(15)
  case <- surrogate_case("factor")
  release <- sized_release(case, mech_laplace(epsilon = 3), mech_gaussian(sd = 40), n = 60)
  ask <- function(iter) suppressWarnings(sample_posterior(release, case$model, method = "augment", prior_n = prior_n("poisson", mean = 60), chains = 2, iter = iter, warmup = 200, seed = 1))
  whole <- ask(500)
  part <- ask(300)
  expect_identical(posterior::as_draws_matrix(suppressWarnings(extend(part, 200))), posterior::as_draws_matrix(whole))
  # `x` has a column for each variable, of as many records as there is room for: sorting and moving must see them all
  state <- internal("give_room")(part$chains[[1]]$state, part$problem)
  roomy <- part
  roomy$chains[[1]]$state <- state
  expect_identical(posterior::as_draws_matrix(suppressWarnings(extend(roomy, 200))), posterior::as_draws_matrix(whole))
})
