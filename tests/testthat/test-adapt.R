# What warmup learns, and that it leaves the posterior alone: leaps, moves of
# groups, refreshes, starts far away.

mixing_levels <- list(y = c("a", "b"), x1 = c("u", "v"))

# a binomial count under Laplace noise: the posterior is a mixture of beta distributions
test_that("leaps leave the posterior exact", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 20
  rel <- as_release(c(14.3, 5.1), stat_counts(~ y, mixing_levels["y"]), mech_laplace(scale = 40), n)
  fit <- sample_posterior(rel, model_bernoulli(prior = prior_beta(2, 1)), method = "augment", chains = 2, iter = 5500, warmup = 400, seed = 1)
  expect_true(all(acceptance(fit)$leap > 0.3))
  p <- seq(0.0005, 0.9995, by = 0.001)
  b <- 0:n
  weight <- exp(-(abs(14.3 - (n - b)) + abs(5.1 - b)) / 40)
  density <- dbeta(p, 2, 1) * drop(outer(p, b, function(p, b) dbinom(b, n, p)) %*% weight)
  expect_distribution(parameter_draws(fit, fit$bound$parameters[1]), grid_quantile(p, density))
})

test_that("a schedule is frozen after warmup, and a seed fixes it", {
  rel <- as_release(c(1, 2, 3, 1, 4), lm_problem(1), mech_laplace(epsilon = 1), 20)
  run <- function() sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 400, warmup = 300, seed = 2)
  fit <- run()
  learned <- function(fit) fit$chains[[1]]$state$adapt[1:13]
  expect_gt(acceptance(fit)$passes, 0)
  expect_identical(learned(extend(fit, 300)), learned(fit))
  expect_identical(acceptance(run()), acceptance(fit))
  # proposals as well: the same numbers of the same moves as a run that was as long
  whole <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 700, warmup = 300, seed = 2)
  expect_identical(extend(fit, 300)$chains[[1]]$state$adapt, whole$chains[[1]]$state$adapt)
})

test_that("with endless noise leaps and walks give the prior", {
  rel <- as_release(1, stat_sums(~ x, list(x = c(0, 5))), mech_laplace(scale = 1e9), 5)
  fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(3, 2)), method = "augment", chains = 2, iter = 12000, warmup = 600, seed = 3)
  expect_true(all(acceptance(fit)$leap > 0.5))
  expect_distribution(parameter_draws(fit, "rate"), function(p) qgamma(p, 3, 2))
})

test_that("where noise dominates a sweep is spread over iterations, and visits every record", {
  n <- 43
  rel <- as_release(1, stat_sums(~ x, list(x = c(0, 5))), mech_laplace(scale = 1e9), n)
  fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(3, 2)), method = "augment", chains = 2, iter = 12000, warmup = 600, seed = 4)
  a <- acceptance(fit)
  expect_true(all(a$parts > 1 & a$mean == 1 & a$lowest == 1))
  for (k in 1:2) {
    visits <- rowSums(vapply(seq_len(11400) - 1, function(at) {
      length <- 4 * ceiling(n / a$parts[k] / 4)
      (seq_len(n) - 1) %/% length == at %% ceiling(n / length)
    }, logical(n)))
    expect_equal(fit$chains[[k]]$state$accepted[seq_len(n)], visits)
  }
  expect_distribution(parameter_draws(fit, "rate"), function(p) qgamma(p, 3, 2))
  expect_output(print(acceptance(fit)), "all are visited in")
})

test_that("acceptance counts the visits that each record had, also where a sweep is not complete", {
  n <- 43
  rel <- as_release(1, stat_sums(~ x, list(x = c(0, 5))), mech_laplace(scale = 1e9), n)
  fit <- sample_posterior(rel, model_exponential(prior = prior_gamma(3, 2)), method = "augment", chains = 1, iter = 1100, warmup = 1000, seed = 4)
  parts <- acceptance(fit)$parts
  length <- 4 * ceiling(n / parts / 4)
  turns <- ceiling(n / length)
  expect_gt(turns, 2)
  state <- fit$chains[[1]]$state
  for (after in c(0, 1, turns - 1, turns, 5 * turns + 1)) {
    visits <- rowSums(outer(seq_len(n), seq_len(after), function(i, at) (i - 1) %/% length == (at - 1) %% turns))
    seen <- visits > 0
    state$accepted <- as.integer(visits - (visits > 0 & seq_len(n) == 2))
    state$iteration <- 1000 + after
    told <- .Call(internal("ffi_chain_diagnostics"), fit$problem, state, fit$run)
    expect_identical(told[["mean"]], if (any(seen)) sum(state$accepted) / sum(visits) else NaN)
    expect_identical(told[["lowest"]], if (any(seen)) min((state$accepted / visits)[seen]) else Inf)
  }
})

test_that("what a chain tells has the names of C's registry", {
  rel <- as_release(1, stat_sums(~ x, list(x = c(0, 5))), mech_laplace(scale = 1), 20)
  fit <- sample_posterior(rel, model_exponential(), method = "augment", chains = 1, iter = 200, seed = 4)
  passes <- .Call(internal("ffi_registry"))$passes
  expect_named(acceptance(fit), c("chain", "mean", "lowest", "least", "bound", "passes", "moves", passes, "moved", "steps", "responded", "divergent", "deepest", "regrouped", "newton", "kept", "share", "parts", "rounds"))
  parts <- fit$problem$parts
  parts[[1]]$kind <- "sums"
  expect_error(.Call(internal("ffi_augment_layout"), parts), "no 'sums'")
})

test_that("moves of Bernoulli records are reversible: the whole matrix", {
  skip_on_cran()
  model <- model_bernoulli()
  bound <- internal("bind_model")(model, stat_counts(~ y, mixing_levels["y"]))
  share <- function(theta) plogis(theta) # P(level 0)
  n <- 200000L
  records <- function(theta) .Call(internal("ffi_model_records"), bound$spec, theta, n, internal("new_stream")(c(5, 6)))
  theta <- c(0.4, -0.7)
  distribution <- function(from, to) table(factor(from, 0:1), factor(to, 0:1))
  drawn <- lapply(theta, records)
  stream <- internal("new_stream")(c(8, 9))
  there <- distribution(drawn[[1]]$records, .Call(internal("ffi_model_move"), bound$spec, theta[1], theta[2], drawn[[1]]$records, stream))
  back <- distribution(drawn[[2]]$records, .Call(internal("ffi_model_move"), bound$spec, theta[2], theta[1], drawn[[2]]$records, stream))
  p <- share(theta)
  # u uniform: level 1 where u < 1 - p
  exact <- matrix(c(p[2], 0, p[1] - p[2], 1 - p[1]), 2)
  expect_gt(chisq.test(there[exact > 0], p = exact[exact > 0])$p.value, 1e-6)
  expect_identical(there[exact == 0], 0L)
  expect_gt(chisq.test(t(back)[exact > 0], p = exact[exact > 0])$p.value, 1e-6)
})

test_that("chains started far in the tails of a vague prior arrive within warmup", {
  skip_on_cran()
  set.seed(4)
  data <- data.frame(x = rnorm(200, 3, 1))
  data$y <- 1 + 2 * data$x + rnorm(200)
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-20, 30), x = c(-5, 10)))
  rel <- simulate_release(data, st, mech_laplace(epsilon = 50))
  model <- model_lm(prior = prior_normal(0, 100), sigma = fixed(1), covariates = fixed(list(mean = 3, cov = matrix(1))))
  fit <- sample_posterior(rel, model, method = "augment", chains = 4, seed = 6,
                          init = lapply(1:4, function(k) c("(Intercept)" = c(-250, 250)[1 + k %% 2], x = c(-250, 250)[1 + k %/% 3])))
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.05)
  expect_lt(abs(mean(parameter_draws(fit, "x")) - 2), 1)
})

# ---- joint-distribution tests (Geweke 2004), moves learned and then frozen -------------------

test_that("learned moves leave every model's posterior alone", {
  skip_on_cran() # takes long; `make test` runs it
  skewed <- list(y = c("a", "b", "c"), x = c("u", "v"))
  both <- c(1, 1, 0, 0)
  groups <- c(1, 1, 1, 1)
  cases <- list(
    normal = list(model_normal(prior = prior_nig(0.5, 1, 4, 3)), stat_sums(~ x + I(x^2), list(x = c(-2, 2)), rescale = FALSE), both),
    exponential = list(model_exponential(prior = prior_gamma(3, 2)), stat_sums(~ x, list(x = c(0, 3))), both),
    Poisson = list(model_poisson(prior = prior_gamma(3, 2)), stat_sums(~ x, list(x = c(0, 6))), both),
    Bernoulli = list(model_bernoulli(prior = prior_beta(2, 1)), stat_counts(~ y, mixing_levels["y"]), both),
    categorical = list(model_categorical(prior = prior_dirichlet(c(2, 1, 1.5))), stat_counts(~ y, skewed["y"]), both),
    naive_bayes = list(model_naive_bayes("y", prior = prior_dirichlet(c(2, 1, 1.5)), conditional = prior_dirichlet(2)),
                       stat_counts(~ y:x, skewed), groups),
    lm = list(model_lm(prior = prior_nig(c(0.5, 0), 1, 4, 3), covariates = prior_niw(0.5, 2, 2, 6)),
              stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-2, 2))), groups),
    logistic = list(model_logistic(prior = prior_normal(c(0.5, 0), 1), covariates = prior_niw(0.5, 2, 2, 6)),
                    stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-2, 2))), groups),
    mvnormal = list(model_mvnormal(prior = prior_niw(c(0.5, -1), 2, matrix(c(2, 0.5, 0.5, 1), 2), 6)),
                    stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-2, 2))), both))
  set.seed(6)
  for (case in cases) {
    bound <- internal("bind_model")(case[[1]], case[[2]])
    prior <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 20000L)$theta)
    draws <- geweke(case[[1]], case[[2]], mech_laplace(scale = 1), 5, 2800, -1, warmup = 600L, kinds = case[[3]])
    expect_prior(draws, prior)
  }
})
