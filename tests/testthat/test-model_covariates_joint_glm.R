# Covariates that depend on each other under responses that are not normal: src/model/covariates_joint.c in model/glm.c and model/categories.c.
# Joint distributions of parameters and release, a posterior by enumeration, what settles whether factors are dependent.

joint_bounds <- list(y = c(0, 1), x = c(-1, 1), z = c(0, 5), g = c("a", "b", "c"), h = c("u", "v"))
joint_statistic <- function(formula, ...) stat_crossprod(formula, utils::modifyList(joint_bounds, list(...))[all.vars(formula)])
numbers <- prior_niw(0.2, 2, 1, 6)

test_that("the hooks pass debug_model(), products of covariates and lone ones too", {
  skip_on_cran() # takes long; `make test` runs it
  st <- joint_statistic(y ~ x + g + z + h)
  ordered <- joint_statistic(y ~ x + g + z + h, y = c("lo", "mid", "hi"))
  counts <- joint_statistic(y ~ x + g + z + h, y = c(0, 20))
  found <- with_trials(700L, list(
    debug_model(model_logistic(factors = "dependent"), st, n = 100),
    debug_model(model_logistic(y ~ x * g + z + h, factors = "dependent"), st, n = 100),
    debug_model(model_glm(family = poisson(), factors = "dependent"), counts, n = 100),
    debug_model(model_glm(family = "cumulative", factors = "dependent"), ordered, n = 100),
    debug_model(model_glm(family = "categorical", covariates = list(prior_niw(), z = covariate_count()), factors = "dependent"), ordered, n = 100)))
  for (result in found) expect_false(any(result$ok %in% FALSE))
})

test_that("the joint distribution with clamped records is right", {
  skip_on_cran()
  set.seed(3)
  st <- joint_statistic(y ~ x + g + h)
  model <- model_logistic(prior = prior_normal(0, 1), covariates = numbers, factors = "dependent")
  exact <- prior_draws(model, st)
  expect_prior(geweke(model, st, mech_laplace(scale = 2), 8, 4200, NULL, warmup = 300L), exact)
  expect_prior(geweke(model, st, mech_laplace(scale = 2), 5, 2200, 2), exact)
  st <- joint_statistic(y ~ x + g + h, y = c("lo", "mid", "hi"))
  model <- model_glm(family = "cumulative", prior = prior_normal(0, 1), covariates = numbers, factors = "dependent")
  expect_prior(geweke(model, st, mech_laplace(scale = 2), 8, 4200, NULL, warmup = 300L), prior_draws(model, st))
  st <- joint_statistic(y ~ x + g, y = c(0, 6))
  model <- model_glm(family = poisson(), prior = prior_normal(0, 0.5), covariates = numbers, factors = "dependent")
  expect_prior(geweke(model, st, mech_laplace(scale = 2), 8, 4200, NULL, warmup = 300L), prior_draws(model, st))
})

test_that("the joint distribution is right with a lone covariate beside them", {
  skip_on_cran()
  set.seed(4)
  st <- joint_statistic(y ~ x + g + z, y = c(-2, 3))
  covariates <- list(numbers, z = covariate_count(prior_gamma(2, 1)))
  model <- model_lm(prior = prior_normal(0, 0.5), sigma = fixed(0.7), covariates = covariates, factors = "dependent")
  # long: effects leave their tails seldom, and a short chain does not know how seldom
  expect_prior(geweke(model, st, mech_laplace(scale = 1), 8, 16000, NULL, warmup = 300L), prior_draws(model, st))
})

test_that("a logistic regression on dependent factors has the posterior of all tables enumerated", {
  skip_on_cran()
  # y, g, h binary, n = 3 records: counts of 8 cells, coefficients known, cells of (g, h) Dirichlet given shares and concentration
  n <- 3
  cells <- expand.grid(y = 0:1, g = 0:1, h = 0:1)
  tables <- as.matrix(expand.grid(rep(list(0:n), 8)))
  tables <- unname(tables[rowSums(tables) == n, ])
  released <- c(y = 1.6, gb = 1.2, hv = 2.1, `gb:hv` = 1.5)
  sd <- 0.6
  eta <- with(cells, 0.3 + 1.2 * g - 0.8 * h)
  log_y <- with(cells, plogis(ifelse(y == 1, eta, -eta), log.p = TRUE))
  totals <- cbind(tables %*% cells$y, tables %*% cells$g, tables %*% cells$h, tables %*% (cells$g * cells$h))
  log_seen <- drop(tables %*% log_y) - rowSums(lfactorial(tables)) +
    rowSums(vapply(1:4, function(j) dnorm(released[j], totals[, j], sd, log = TRUE), double(nrow(tables))))
  of <- with(cells, 1 + g + 2 * h)
  counts <- vapply(1:4, function(c) rowSums(tables[, of == c, drop = FALSE]), double(nrow(tables)))
  at <- (1:14 - 0.5) / 14
  grid <- expand.grid(g = at, h = at, a = exp(qnorm(at, log(4), 1.5)))
  shares <- with(grid, cbind((1 - g) * (1 - h), g * (1 - h), (1 - g) * h, g * h))
  log_weight <- vapply(seq_len(nrow(tables)), function(t) {
    rowSums(lgamma(grid$a * shares + rep(counts[t, ], each = nrow(grid))) - lgamma(grid$a * shares)) + lgamma(grid$a) - lgamma(grid$a + n) + log_seen[t]
  }, double(nrow(grid)))
  weight <- exp(log_weight - max(log_weight))
  expected <- vapply(1:4, function(c) sum(weight * outer(grid$a * shares[, c], counts[, c], `+`) / (grid$a + n)) / sum(weight), 0)
  st <- stat_subset(stat_crossprod(y ~ g + h, list(y = c(0, 1), g = c("a", "b"), h = c("u", "v")), rescale = FALSE), names(released))
  model <- model_logistic(prior = fixed(c(0.3, 1.2, -0.8)), factors = "dependent")
  fit <- sample_posterior(as_release(released, st, mech_gaussian(sd = sd), n), model, method = "augment", chains = 2, iter = 2800, warmup = 1000, seed = 1)
  names <- paste0("prob[", c("g=a:h=u", "g=b:h=u", "g=a:h=v", "g=b:h=v"), "]")
  for (c in 1:4) expect_same_mean(parameter_draws(fit, names[c]), expected[c])
})

test_that("factors are dependent by default where the method, n and the noise allow it", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(8)
  st <- joint_statistic(y ~ x + g, y = c(-2, 3))
  release <- simulate_release(model_lm(), st, mech_laplace(epsilon = 5), n = 50)
  quick <- function(release, model, ...) suppressWarnings(suppressMessages(sample_posterior(release, model, ..., chains = 1, iter = 60, seed = 1, control = list(beside = FALSE))))
  has_effects <- function(fit) any(grepl("^effect", posterior::variables(fit$draws)))
  fit <- quick(release, model_lm())
  expect_true(has_effects(fit))
  expect_identical(fit$draws, quick(release, model_lm(factors = "dependent"))$draws)
  expect_false(has_effects(quick(release, model_lm(), method = "clt")))
  expect_false(has_effects(update(fit, method = "clt")))
  expect_false(has_effects(quick(as_release(release$value, st, mech_laplace(epsilon = 5), NULL), model_lm(), prior_n = prior_n("poisson", mean = 50))))
  # beyond what is bearable factors are independent, which "clt" has
  bound <- internal("bind_model")(model_lm(), st)
  bearable <- list(soon = 0, affordable = 0, longest = 600)
  choose <- function(limits) {
    run <- list(chains = 1, iter = 200, warmup = 100)
    suppressWarnings(suppressMessages(internal("auto_method")(release, fit$bound, run, list(passes = 4), limits = limits, independent = bound)))$bound
  }
  expect_identical(choose(bearable), bound)
  expect_null(choose(list(soon = 0, affordable = 300, longest = 600)))
  # what is not given follows: shares of cells from those of levels, these from those of cells
  crossed <- joint_statistic(y ~ x + g + h, y = c(-2, 3), g = c("a", "b"))
  truth <- attr(simulate_release(model_lm(), crossed, mech_laplace(epsilon = 5), n = 9, parameters = c("prob[g=a]" = 0.1, "prob[g=b]" = 0.9)), "truth")$parameters
  expect_equal(unname(truth[c("prob[g=b]", "prob[g=b:h=u]")]), unname(c(0.9, 0.9 * truth["prob[h=u]"])))
  expect_true(truth[["effect[x,g=b]"]] != 0)
  cells <- c("prob[g=a:h=u]" = 0.1, "prob[g=b:h=u]" = 0.2, "prob[g=a:h=v]" = 0.3, "prob[g=b:h=v]" = 0.4)
  truth <- attr(simulate_release(model_lm(), crossed, mech_laplace(epsilon = 5), n = 9, parameters = cells), "truth")$parameters
  expect_equal(unname(truth[c("prob[g=b]", "prob[h=u]", "prob[g=a:h=v]")]), c(0.6, 0.3, 0.3))
  expect_true("effect[x,g=b]" %in% rstantools::prior_summary(model_lm(), st)$variable)
  logistic <- joint_statistic(y ~ x + g)
  answers <- simulate_release(model_logistic(), logistic, mech_laplace(epsilon = 5), n = 50)
  told <- quick(answers, model_logistic())
  expect_true(has_effects(told))
  expect_identical(told$draws, quick(answers, model_logistic(factors = "dependent"))$draws)
  expect_false(has_effects(quick(answers, model_logistic(factors = "independent"))))
  unsized <- quick(as_release(answers$value, logistic, mech_laplace(epsilon = 5), NULL), model_logistic(), prior_n = prior_n("poisson", mean = 50))
  expect_false(has_effects(unsized))
  expect_output(suppressWarnings(print(unsized)), "assumed to be independent")
  alone <- simulate_release(model_logistic(), joint_statistic(y ~ g + h), mech_laplace(epsilon = 5), n = 50)
  for (method in c("auto", "augment", "collapse")) {
    expect_true("concentration" %in% posterior::variables(quick(alone, model_logistic(), method = method)$draws))
  }
})

test_that("Simpson's paradox: admissions do not depend on gender given the department", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- as.data.frame(UCBAdmissions)
  people <- counts[rep(seq_len(nrow(counts)), counts$Freq), 1:3]
  people$Admit <- factor(people$Admit, c("Rejected", "Admitted"))
  set.seed(1)
  rel <- simulate_release(people, stat_crossprod(Admit ~ Gender + Dept, lapply(people, levels)), mech_laplace(epsilon = 4))
  fit <- suppressWarnings(suppressMessages(sample_posterior(rel, model_logistic(), "collapse", chains = 2, iter = 260, seed = 1)))
  own <- stats::coef(stats::glm(Admit ~ Gender + Dept, stats::binomial(), people))
  for (name in names(own)) {
    draws <- as.double(parameter_draws(fit, name))
    expect_lt(abs(mean(draws) - own[[name]]), 3 * stats::sd(draws), label = name)
  }
})

test_that("a dependence that records have is found, beside a lone covariate", {
  skip_on_cran()
  set.seed(5)
  n <- 300
  g <- factor(sample(c("a", "b"), n, TRUE), c("a", "b"))
  h <- factor(ifelse(stats::runif(n) < c(0.15, 0.85)[g], "u", "v"), c("u", "v"))
  x <- stats::rnorm(n, c(-0.4, 0.4)[g], 0.2)
  z <- stats::rpois(n, 2)
  eta <- x + (h == "v")
  data <- data.frame(x, z = pmin(z, 5), g, h, y = cut(eta + stats::rlogis(n), c(-Inf, 0, 1, Inf), c("lo", "mid", "hi")))
  covariates <- list(prior_niw(), z = covariate_count())
  found <- function(model, st) {
    release <- simulate_release(data, st, mech_laplace(epsilon = 50))
    fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, method = "augment", chains = 2, iter = 700, seed = 1, control = list(beside = FALSE))))
    near <- function(name, truth) expect_lt(abs(mean(parameter_draws(fit, name)) - truth) / stats::sd(parameter_draws(fit, name)), 4, label = name)
    near("prob[g=b:h=u]", mean(g == "b" & h == "u"))
    near("prob[g=a:h=u]", mean(g == "a" & h == "u"))
    near("effect[x,g=b]", unname(stats::coef(stats::lm(x ~ g + h))["gb"]))
    expect_lt(stats::sd(parameter_draws(fit, "prob[g=b:h=u]")), 0.04) # 0.15 from the prior
    totals <- posterior::summarise_draws(denoise(fit), "mean")
    expect_lt(abs(totals$mean[totals$variable == "z"] - release$value[["z"]]) / release$scale[[1]], 8)
  }
  bounds <- list(y = c("lo", "mid", "hi"), x = c(-1.5, 1.5), z = c(0, 5), g = c("a", "b"), h = c("u", "v"))
  found(model_glm(family = "cumulative", covariates = covariates, factors = "dependent"), stat_crossprod(y ~ x + z + g + h, bounds))
  data$y <- stats::rpois(n, exp(0.5 * eta))
  bounds$y <- c(0, 15)
  found(model_glm(family = poisson(), covariates = covariates, factors = "dependent"), stat_crossprod(y ~ x + z + g + h, bounds))
})
