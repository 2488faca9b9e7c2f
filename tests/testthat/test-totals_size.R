# An unknown number of records with totals of normal records: src/totals/n_coordinate.c, src/totals/normal_totals_chain.c.

size_release <- function(statistic, z, noise, n, of_n) {
  as_release(list(t = z, size = n), list(t = statistic, size = stat_size()), list(t = noise, size = of_n), n = NULL, neighbours = "add_remove")
}

# E[n], E[n^2], E[mean], E[n mean] of normal records with known sd, their total and n with Gaussian noise
total_known <- function(z, sd, n, of_n, log_prior, sigma = 3, at = 2, tau = 1.5) {
  k <- 2:4000
  log_mass <- log_prior(k) + dnorm(z, k * at, sqrt(k^2 * tau^2 + k * sigma^2 + sd^2), log = TRUE) + dnorm(n, k, of_n, log = TRUE)
  p <- exp(log_mass - max(log_mass))
  p <- p / sum(p)
  precision <- k^2 / (k * sigma^2 + sd^2)
  mean <- (at / tau^2 + precision * z / k) / (1 / tau^2 + precision)
  c(sum(p * k), sum(p * k^2), sum(p * mean), sum(p * k * mean))
}

expect_size_moments <- function(fit, exact) {
  n <- parameter_draws(fit, "n")
  mean <- parameter_draws(fit, "mean")
  Map(expect_same_mean, list(n, n^2, mean, n * mean), exact)
  expect_identical(as.vector(posterior::extract_variable_matrix(denoise(fit), "size: n")), as.vector(n))
}

test_that("unknown n: the total of normal records of known sd, against the sum over all n", {
  skip_on_cran() # takes long; `make test` runs it
  total <- stat_sums(~ x, list(x = c(-1000, 1010))) # measured from 5
  model <- model_normal(prior = list(mean = prior_normal(2, 1.5), sd = fixed(3)))
  cases <- list(list(70, 5, 33, 4, prior_n("poisson", mean = 30), function(n) dpois(n, 30, log = TRUE)),
                list(70, 0.5, 4, 2, prior_n("log_uniform", upper = 4000), function(n) -log(n)),
                list(700, 0.5, 333, 40, prior_n("negative_binomial", mean = 200, size = 2), function(n) dnbinom(n, 2, mu = 200, log = TRUE)),
                list(10, 5000, 333, 100, prior_n("uniform", lower = 2, upper = 4000), function(n) 0 * n),
                list(70, 5, -186, 50, prior_n("log_uniform", upper = 4000), function(n) -log(n)))
  for (case in cases) {
    rel <- size_release(total, case[[1]], mech_gaussian(sd = case[[2]]), case[[3]], mech_gaussian(sd = case[[4]]))
    fit <- sample_posterior(rel, model, method = "collapse", prior_n = case[[5]], chains = 2, iter = 5000, warmup = 600, seed = 1)
    expect_size_moments(fit, total_known(case[[1]], case[[2]], case[[3]], case[[4]], case[[6]]))
  }
})

test_that("unknown n: the total of normal records of unknown sd, against a sum over all n and sd", {
  skip_on_cran() # takes long; `make test` runs it
  total <- stat_sums(~ x, list(x = c(-1000, 1000)))
  rel <- size_release(total, 60, mech_gaussian(sd = 10), 30, mech_laplace(scale = 6))
  fit <- sample_posterior(rel, model_normal(prior = prior_nig(1, 0.4, 3, 8)), method = "collapse", prior_n = prior_n("negative_binomial", mean = 25, size = 4), chains = 2,
                          iter = 12500, warmup = 600, seed = 1)
  grid <- expand.grid(n = 2:200, log_sd = seq(-2, 3.5, length.out = 1200))
  n <- grid$n
  variance <- exp(2 * grid$log_sd)
  log_mass <- dnbinom(n, 4, mu = 25, log = TRUE) - abs(30 - n) / 6 + dgamma(1 / variance, 3, 8, log = TRUE) - 2 * grid$log_sd +
    dnorm(60, n, sqrt(n^2 * variance / 0.4 + n * variance + 100), log = TRUE)
  p <- exp(log_mass - max(log_mass))
  p <- p / sum(p)
  precision <- n^2 / (n * variance + 100)
  mean <- (0.4 / variance + precision * 60 / n) / (0.4 / variance + precision)
  expect_size_moments(fit, c(sum(p * n), sum(p * n^2), sum(p * mean), sum(p * n * mean)))
  expect_same_mean(parameter_draws(fit, "sd"), sum(p * sqrt(variance)))
})

test_that("unknown n: both totals of normal records, against totals simulated from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- size_release(stat_sums(~ x + I(x^2), list(x = c(-60, 60)), rescale = FALSE), c(25, 160), mech_laplace(scale = 12), 33, mech_laplace(scale = 5))
  model <- model_normal(prior = list(mean = prior_normal(0, 2), sd = prior_inverse_gamma(4, 9)))
  fit <- sample_posterior(rel, model, method = "collapse", prior_n = prior_n("uniform", lower = 0, upper = 60), chains = 2, iter = 7000, warmup = 1000, seed = 1)
  set.seed(1)
  count <- 5e5
  n <- sample(2:60, count, TRUE)
  mean <- rnorm(count, 0, 2)
  variance <- 1 / rgamma(count, 4, 9)
  total <- rnorm(count, n * mean, sqrt(n * variance))
  square <- variance * rchisq(count, n - 1) + total^2 / n
  weight <- exp(-(abs(25 - total) + abs(160 - square)) / 12 - abs(33 - n) / 5)
  # the simulation's own error in each
  expect_near <- function(draws, value) {
    exact <- sum(weight * value) / sum(weight)
    expect_estimated_mean(draws, exact, sqrt(sum(weight^2 * (value - exact)^2)) / sum(weight))
  }
  of_n <- parameter_draws(fit, "n")
  of_mean <- parameter_draws(fit, "mean")
  Map(expect_near, list(of_n, of_n^2, of_mean, of_n * of_mean, of_mean^2, parameter_draws(fit, "sd")),
      list(n, n^2, mean, n * mean, mean^2, sqrt(variance)))
})

size_crossed <- stat_crossprod(y ~ x, list(x = c(-60, 60), y = c(-50, 50)), rescale = FALSE)

size_data <- function(n) {
  set.seed(2)
  x <- rnorm(n, 1, 2)
  simulate_release(data.frame(x = x, y = 1 + 0.7 * x + rnorm(n)), size_crossed, mech_laplace(scale = 15), neighbours = "add_remove")$value
}

test_that("unknown n: one total of two columns, against the sum over all n", {
  skip_on_cran() # takes long; `make test` runs it
  x <- stat_subset(size_crossed, "x")
  rel <- size_release(x, 50, mech_gaussian(sd = 20), 40, mech_gaussian(sd = 25))
  k <- 3:400
  # x ~ N(1, 4), known or with the mean's prior N(1, 4 / 0.2)
  cases <- list(list(fixed(list(mean = 1, cov = 4)), 0), list(prior_niw(1, 0.2, 4 * 30000, 30002), 4 / 0.2))
  for (case in cases) {
    model <- model_lm(prior = prior_nig(0, 0.2, 3, 3), covariates = case[[1]])
    fit <- sample_posterior(rel, model, method = "collapse", prior_n = prior_n("negative_binomial", mean = 40, size = 3), chains = 2, iter = 12500, warmup = 600, seed = 1)
    log_mass <- dnbinom(k, 3, mu = 40, log = TRUE) + dnorm(40, k, 25, log = TRUE) + dnorm(50, k, sqrt(k^2 * case[[2]] + 4 * k + 400), log = TRUE)
    p <- exp(log_mass - max(log_mass))
    n <- parameter_draws(fit, "n")
    expect_same_mean(n, sum(p * k) / sum(p))
    expect_same_mean(n^2, sum(p * k^2) / sum(p))
  }
})

test_that("unknown n: collapse agrees with augment where nothing is clamped", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- size_release(size_crossed, size_data(50), mech_laplace(scale = 15), 60, mech_gaussian(sd = 25))
  niw <- prior_niw(0, 0.2, 9, 6)
  cases <- list(list(model_lm(prior = prior_nig(0, 0.2, 3, 3), covariates = niw), prior_n("negative_binomial", mean = 50, size = 3)),
                list(model_lm(prior = prior_normal(0, 2), sigma = fixed(1), covariates = fixed(list(mean = 1, cov = 4))), prior_n("log_uniform", upper = 200)),
                list(model_lm(prior = prior_normal(0, 2), sigma = prior_half_normal(12.5), covariates = niw), prior_n("log_uniform", upper = 200)),
                list(model_lm(prior = prior_nig(0, 0.2, 3, 3), covariates = fixed(list(mean = 1, cov = 4))), prior_n("uniform", lower = 20, upper = 200)),
                list(model_mvnormal(prior = prior_niw(c(0, 0), 0.3, diag(2) * 6, 6)), prior_n("uniform", lower = 5, upper = 150)))
  for (case in cases) {
    fits <- lapply(c("augment", "collapse"), function(method) {
      sample_posterior(rel, case[[1]], method = method, prior_n = case[[2]], chains = 2, iter = 1700, warmup = 500, seed = 1)
    })
    for (name in posterior::variables(fits[[1]]$draws)) {
      expect_agreement(parameter_draws(fits[[1]], name), parameter_draws(fits[[2]], name))
    }
  }
})

test_that("unknown n: a step that holds totals, which sigma follows, can be undone and counts with its Jacobian", {
  rel <- size_release(size_crossed, size_data(50), mech_laplace(scale = 15), 60, mech_gaussian(sd = 4))
  model <- model_lm(prior = prior_normal(0, 2), sigma = prior_half_normal(12.5))
  bound <- internal("bind_model")(internal("complete_model")(model, rel), rel$statistic)
  words <- c(1, 2)
  prior <- prior_n("negative_binomial", mean = 60, size = 4)
  problem <- internal("engine_problem")(internal("as_engine")("collapse"), rel, bound, list(), words, 1L, prior, NULL)
  start <- internal("start_chain")(problem, bound, words, 1, NULL)
  run <- function(iterations) internal("run_blocks")(problem, start, iterations, list(warmup = 300, thin = 1), function(...) NULL)
  chain <- run(301)
  repeat { # few records make the scatter nearly singular
    n <- utils::tail(chain$records, 1L)
    if (n >= 40) break
    chain <- run(20)
  }
  at <- which(chain$state$store == n)
  expect_length(at, 1L)
  q <- chain$state$store[1:6] # five of totals, log sigma
  placed <- function(n, q) utils::modifyList(chain$state, list(store = replace(replace(chain$state$store, at, n), 1:6, q)))
  step <- function(from, to, hold, q) .Call(internal("ffi_collapse_resize"), problem, placed(from, q), to, hold, q)
  for (to in n + c(-3, 1, 20)) {
    after <- step(n, to, TRUE, q)
    slopes <- vapply(1:6, function(j) {
      by <- replace(double(6), j, 1e-6)
      (step(n, to, TRUE, q + by)$at - step(n, to, TRUE, q - by)$at) / 2e-6
    }, double(6))
    expect_equal(after$log_ratio - step(n, to, FALSE, q)$log_ratio, as.numeric(determinant(slopes)$modulus), tolerance = 1e-5)
    # as the logarithm of the residuals' root sum of squares, the last coordinate of the totals
    expect_equal(slopes[6, ], slopes[5, ] + c(0, 0, 0, 0, -1, 1), tolerance = 1e-6)
    back <- step(to, n, TRUE, after$at)
    expect_equal(back$at, q)
    expect_equal(back$log_ratio, -after$log_ratio)
  }
})

test_that("unknown n: no size is released, and collapse mixes as augment does", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(lang = c(0, 60), IQ = c(0, 20), SES = c(0, 60))
  set.seed(3)
  rel <- simulate_release(MASS::nlschools, stat_crossprod(lang ~ IQ + SES, bounds, outside = "none"), mech_laplace(epsilon = 10), neighbours = "add_remove")
  fits <- lapply(c("augment", "collapse"), function(method) {
    suppressMessages(sample_posterior(rel, model_lm(), method = method, chains = 2, iter = 1500, seed = 1))
  })
  for (name in posterior::variables(fits[[1]]$draws)) {
    collapsed <- parameter_draws(fits[[2]], name)
    expect_gt(posterior::ess_bulk(collapsed), 0.1 * length(collapsed))
    expect_agreement(parameter_draws(fits[[1]], name), collapsed, spread = FALSE)
  }
})

test_that("unknown n: a prior that is cut off", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- size_release(stat_sums(~ x, list(x = c(-1000, 1000))), 60, mech_gaussian(sd = 10), 30, mech_gaussian(sd = 5))
  ask <- function(method) sample_posterior(rel, model_normal(prior = prior_nig(1, 0.4, 3, 8, within = list(x = c(-3, 2.5)))), method = method,
                                           prior_n = prior_n("poisson", mean = 30), chains = 2, iter = 6500, warmup = 600, seed = 1)
  a <- ask("augment")
  b <- ask("collapse")
  for (name in c("mean", "sd", "n")) {
    error <- sqrt(posterior::mcse_mean(parameter_draws(a, name))^2 + posterior::mcse_mean(parameter_draws(b, name))^2)
    expect_lt(abs(mean(parameter_draws(a, name)) - mean(parameter_draws(b, name))), 5 * error)
  }
})

test_that("unknown n: with hardly any noise on it the draws of totals are those of n known", {
  skip_on_cran() # takes long; `make test` runs it
  z <- size_data(400)
  rel <- size_release(size_crossed, z, mech_laplace(scale = 15), 400, mech_gaussian(sd = 0.01))
  ask <- function(rel, ...) sample_posterior(rel, model_lm(), method = "collapse", chains = 2, iter = 5000, warmup = 600, ...)
  unknown <- ask(rel, prior_n = prior_n("poisson", mean = 380), seed = 1)
  known <- ask(as_release(z, size_crossed, mech_laplace(scale = 15), 400), seed = 2)
  expect_true(all(parameter_draws(unknown, "n") == 400))
  for (name in known$bound$parameters) {
    a <- parameter_draws(unknown, name)
    b <- parameter_draws(known, name)
    expect_lt(abs(mean(a) - mean(b)) / sqrt(posterior::mcse_mean(a)^2 + posterior::mcse_mean(b)^2), 5)
    expect_lt(abs(sd(a) - sd(b)) / sqrt(posterior::mcse_sd(a)^2 + posterior::mcse_sd(b)^2), 5)
  }
})

test_that("unknown n: totals calibrated with n drawn", {
  skip_on_cran() # takes long; `make test` runs it
  noise <- list(t = mech_laplace(scale = 12), size = mech_laplace(scale = 4))
  st <- list(t = stat_sums(~ x + I(x^2), list(x = c(-60, 60)), rescale = FALSE), size = stat_size())
  for (model in list(model_normal(prior = prior_nig(0, 0.5, 3, 8)), model_normal(prior = list(mean = prior_normal(0, 2), sd = prior_inverse_gamma(4, 9))))) {
    cal <- calibrate(model, st, noise, n = prior_n("negative_binomial", mean = 30, size = 5), replicates = 42, method = "collapse", chains = 1, iter = 500, warmup = 150,
                     seed = 3, neighbours = "add_remove")
    expect_false(any(cal$runs$failed))
    expect_true("n" %in% cal$results$variable)
    expect_gt(min(summary(cal)$p.value), 1e-4)
  }
})

test_that("unknown n: totals go on bit for bit, print and predict", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- size_release(size_crossed, size_data(50), mech_laplace(scale = 15), 60, mech_gaussian(sd = 10))
  ask <- function(iter) sample_posterior(rel, model_lm(), method = "collapse", prior_n = prior_n("poisson", mean = 50), chains = 2, iter = iter, warmup = 300, seed = 1)
  short <- ask(500)
  expect_identical(extend(short, 300)$draws, ask(800)$draws)
  expect_identical(posterior::variables(short$draws), c(short$bound$parameters, "n"))
  shown <- paste(capture.output(print(short)), collapse = "\n")
  expect_match(shown, "not known \\(n\\); prior poisson\\(mean = 50\\)")
  expect_match(paste(capture.output(print(acceptance(short))), collapse = "\n"), "of n: accepted")
  expect_true("records" %in% names(acceptance(short)))
  expect_true(length(unique(vapply(simulate(short, 20, seed = 1), nrow, 0L))) > 5)
  expect_length(predict(short, data.frame(x = 1)), 1L)
})

test_that("unknown n: collapse needs one record more than variables, and says so", {
  rel <- size_release(size_crossed, size_data(50), mech_laplace(scale = 15), 2, mech_gaussian(sd = 10))
  expect_error(sample_posterior(rel, model_lm(), method = "collapse", prior_n = prior_n("uniform", lower = 0, upper = 2)), "at least 3", class = "noiseaware_error_method")
  few <- sample_posterior(rel, model_lm(), method = "collapse", prior_n = prior_n("uniform", lower = 0, upper = 3), chains = 1, iter = 300, seed = 1)
  expect_true(all(parameter_draws(few, "n") == 3))
})

test_that("a print says when n is far from what was published of it", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ a:b, list(a = c("x", "y", "z"), b = letters[1:6]))
  set.seed(2)
  value <- rpois(18, 12) + rnorm(18, 0, 8)
  of <- function(...) suppressWarnings(sample_posterior(..., chains = 2, iter = 400, seed = 1))
  unsized <- of(suppressMessages(as_release(value, st, mech_gaussian(sd = 8), n = NULL)), model_table())
  n <- posterior::extract_variable(unsized$draws, "n")
  expect_gt(sum(value) - mean(n), sd(n))
  line <- internal("size_gap_line")
  expect_match(line(unsized), sprintf("published: %s, noise sd %s; n is lower because of the priors for n and the cells", signif(sum(value), 4), signif(8 * sqrt(18), 3)), fixed = TRUE)
  expect_true(any(grepl("n is lower because of the priors", capture.output(print(unsized)), fixed = TRUE)))
  # two estimates of n, by their precision
  two <- of(as_release(list(cells = c(60, 35, 40), size = 100), list(cells = stat_counts(~ a, list(a = c("x", "y", "z"))), size = stat_size()),
                       list(cells = mech_gaussian(sd = 10), size = mech_gaussian(sd = 5)), n = NULL, neighbours = "add_remove"), model_table())
  sizes <- internal("average_size")(internal("published_sizes")(two$release))
  expect_equal(sizes, c((135 / 300 + 100 / 25) / (1 / 300 + 1 / 25), 1 / sqrt(1 / 300 + 1 / 25)))
  # near what was published, or known
  expect_null(line(of(as_release(c(100.2, 60.4, 53.4), stat_counts(~ a, list(a = c("x", "y", "z"))), mech_gaussian(sd = 5), n = NULL), model_table())))
  expect_null(line(of(as_release(c(100, 60, 54), stat_counts(~ a, list(a = c("x", "y", "z"))), mech_gaussian(sd = 5), n = 214), model_table())))
})
