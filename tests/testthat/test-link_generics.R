set.seed(1)
st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 300, thin = 3, seed = 1)
new <- data.frame(age = c(20, 30, 45))

test_that("rstantools", {
  expect_identical(rstantools::posterior_epred(fit, new), predict(fit, new, type = "expected"))
  expect_identical(rstantools::posterior_predict(fit, new, seed = 3), predict(fit, new, type = "draws", seed = 3))
  expect_identical(dim(rstantools::posterior_predict(fit, new, draws = 7)), c(7L, 3L))
  expect_identical(rstantools::posterior_epred(fit, new, draws = 100), predict(fit, new, type = "expected"))
  expect_error(rstantools::posterior_epred(fit, new, draws = 101), class = "noiseaware_error_argument")
  # an error is of the function that was called
  for (f in list(rstantools::posterior_predict, rstantools::posterior_epred)) {
    error <- expect_error(f(fit), "`newdata` must be a data frame", class = "noiseaware_error_data")
    expect_false("predict" %in% all.names(conditionCall(error)))
  }
  prior <- rstantools::prior_summary(fit)
  expect_identical(prior$variable, posterior::variables(fit$draws))
  # an eighth of the width of the bounds of bwt
  expect_equal(prior$median[prior$variable == "sigma"], 625, tolerance = 0.02)
  expect_identical(rstantools::posterior_interval(fit, prob = 0.5, variables = "age"), confint(fit, "age", 0.5))
})

test_that("generics", {
  # as broom's: the coefficients, which are the rows of confint()
  short <- generics::tidy(fit, conf.level = 0.8)
  expect_identical(short$term, names(coef(fit)))
  expect_equal(unname(as.matrix(short[c("conf.low", "conf.high")])), unname(confint(fit, level = 0.8)))
  expect_error(generics::tidy(fit, variables = "sigma"), class = "noiseaware_error_argument")
  tidied <- generics::tidy(fit, conf.level = 0.8, variables = "all")
  expect_identical(short, tidied[1:2, ])
  expect_identical(tidied$term, posterior::variables(fit$draws))
  expect_identical(names(tidied), c("term", "estimate", "std.error", "conf.low", "conf.high", "rhat", "ess"))
  expect_equal(tidied$conf.high, unname(confint(fit, level = 0.8, variables = "all")[, 2]))
  expect_equal(tidied$estimate[1:2], unname(coef(fit)))
  expect_false("conf.low" %in% names(generics::tidy(fit, conf.int = FALSE)))
  # as broom's callers say it
  expect_identical(generics::tidy(fit, conf.int = TRUE, conf.level = 0.8, effects = "fixed"), short)
  expect_error(generics::tidy(fit, intervals = TRUE), "conf.int", class = "noiseaware_error_argument")
  # exponentials of coefficients alone
  odds <- generics::tidy(fit, conf.level = 0.8, exponentiate = TRUE, variables = "all")
  expect_equal(odds$estimate, c(exp(tidied$estimate[1:2]), tidied$estimate[-(1:2)]))
  expect_equal(odds$conf.low, c(exp(tidied$conf.low[1:2]), tidied$conf.low[-(1:2)]))
  expect_equal(odds$conf.high, c(exp(tidied$conf.high[1:2]), tidied$conf.high[-(1:2)]))
  expect_equal(odds$std.error[1:2], odds$estimate[1:2] * tidied$std.error[1:2])
  expect_identical(odds[c("rhat", "ess")], tidied[c("rhat", "ess")])
  glanced <- generics::glance(fit)
  expect_identical(nrow(glanced), 1L)
  expect_identical(glanced[c("method", "exact", "nobs", "epsilon", "chains", "draws")],
                   data.frame(method = "augment", exact = TRUE, nobs = 189, epsilon = 2, chains = 2L, draws = 100L))
})

test_that("coda", {
  chains <- coda::as.mcmc.list(fit)
  expect_identical(coda::nchain(chains), 2L)
  expect_identical(unname(unclass(chains[[2]])[, "age"]), as.vector(fit$draws[, 2, "age"]))
  expect_identical(stats::start(chains), 153)
  expect_identical(coda::thin(chains), 3)
  expect_identical(dim(coda::as.mcmc(fit)), c(100L, 5L))
})

test_that("a release is checked against replicates of itself", {
  skip_on_cran()
  check <- check_of(fit, draws = 200, seed = 5)
  expect_identical(check$component, names(rel$value))
  expect_identical(check$value, unname(rel$value))
  expect_true(all(check$p > 0.001))
  expect_identical(check_of(fit, draws = 200, seed = 5), check)
  # a number that the posterior cannot have led to
  moved <- fit
  moved$release$value[["age"]] <- rel$value[["age"]] + 20 * check$sd[check$component == "age"]
  expect_identical(check_of(moved, draws = 200, seed = 5)$p[check$component == "age"], 0)
  expect_s3_class(bayesplot::pp_check(fit, draws = 20, seed = 1), "ggplot")
  expect_match(bayesplot::pp_check(fit, draws = 20, level = 0.8, seed = 1)$labels$subtitle, "central 80%")
  expect_error(check_of(fit, draws = 1e7), class = "noiseaware_error_argument")
  expect_error(bayesplot::pp_check(fit, type = "dens"), class = "noiseaware_error_argument")
  expect_error(check_of(nonprivate_posterior(MASS::birthwt, st, model_lm(), iter = 100, seed = 1)), class = "noiseaware_error")
})

test_that("replicates have the predictive distribution: mean and variance of a normal total", {
  skip_on_cran() # takes long; `make test` runs it
  sums <- stat_sums(~ x, bounds = list(x = c(-50, 50)))
  known <- model_normal(prior = prior_nig(mean = 0, precision = 1e8, shape = 1e7, rate = 4e7))
  fit <- sample_posterior(as_release(3, sums, mech_gaussian(sd = 5), n = 25), known, chains = 1, iter = 400, seed = 2)
  check <- check_of(fit, draws = 4000, seed = 1)
  expect_lt(abs(check$mean), 5 * sqrt(125 / 4000))
  expect_lt(abs(check$sd^2 / 125 - 1), 5 * sqrt(2 / 4000))
})

test_that("saved and reloaded fits go on", {
  path <- withr::local_tempfile(fileext = ".rds")
  saveRDS(fit, path)
  again <- readRDS(path)
  expect_identical(extend(again, 30)$draws, extend(fit, 30)$draws)
  expect_identical(summary(again), summary(fit))
})

test_that("update() takes another prior", {
  tight <- update(fit, model = model_lm(prior = prior_nig(mean = 0, precision = 1e6)))
  expect_lt(abs(coef(tight)[["age"]]), 20)
  expect_identical(tight$run$iter, fit$run$iter)
})

test_that("update() keeps what was asked for, and changes what is given", {
  skip_on_cran()
  expect_identical(update(fit), fit)
  expect_identical(update(fit, method = "clt")$method, "clt")
  other <- simulate_release(MASS::birthwt, st, mech_gaussian(mu = 1))
  expect_identical(update(fit, release = other), sample_posterior(other, model_lm(), chains = 2, iter = 300, thin = 3, seed = 1))
  # warmup stays if it was given, else it follows from iter
  expect_identical(update(fit, iter = 60)$run$warmup, 30)
  given <- sample_posterior(rel, model_lm(), chains = 1, iter = 60, warmup = 10, seed = 1, control = list(passes = 2))
  shorter <- update(given, iter = 40)
  expect_identical(shorter$run[c("iter", "warmup")], list(iter = 40, warmup = 10))
  expect_identical(shorter$problem$passes, 2)
  expect_identical(update(given, control = list())$problem$passes, -1)
  # an extended run is made again in one
  expect_identical(update(extend(given, 20))$draws, extend(given, 20)$draws)
  # what "auto" chose is not pinned
  y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  counts <- sample_posterior(as_release(c(4.2, 6.1), y, mech_laplace(epsilon = 1), n = 10), model_bernoulli(), chains = 1, iter = 50, seed = 1)
  own <- model_custom(function() c(p = rbeta(1, 1, 1)), function(theta, n) cbind(y = rbinom(n, 1, theta)),
                      function(records, theta) c(p = rbeta(1, 1 + sum(records), 1 + sum(1 - records))), "y")
  expect_identical(c(counts$method, update(counts, model = own)$method), c("collapse", "augment"))
})

test_that("prior_summary() says what the priors are in the units of the data", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x + g, bounds = list(y = c(0, 80), x = c(2, 10), g = c("u", "v")))
  said <- function(model, statistic = st) {
    table <- rstantools::prior_summary(model, statistic)
    stats::setNames(table$prior, table$variable)
  }
  expect_identical(said(model_lm(prior = prior_normal(sd = c(x = 3)))),
                   c("(Intercept)" = "normal(40, 40) at mid-bounds", x = "normal(0, 3)", gv = "normal(0, 28.284)", sigma = "lognormal(2.3026, 0.8)",
                     "mean[x]" = "normal(6, 4 sd[x])", "cov[x,x]" = "inverse_wishart(1.5, 1.28)", "effect[x,g=v]" = "normal(0, 5 sd[x])", "prob[g=u]" = "dirichlet(1)", "prob[g=v]" = "dirichlet(1)"))
  expect_identical(said(model_lm()), said(model_lm(prior = prior_normal(), sigma = prior_lognormal(log(10)))))
  expect_identical(said(model_lm(prior = prior_nig()))[1:4], c("(Intercept)" = "normal(40, 4 sigma) at mid-bounds", x = "normal(0, 0.70711 sigma)",
                                            gv = "normal(0, 1.4142 sigma)", sigma = "inverse_gamma(0.75, 64) of sigma^2"))
  expect_identical(said(model_lm(prior = prior_nig(c(1, 2, 3), 4)))[1:3],
                   c("(Intercept)" = "normal(1, 0.5 sigma)", x = "normal(2, 0.5 sigma)", gv = "normal(3, 0.5 sigma)"))
  expect_identical(said(model_lm(prior = prior_student_t(4, 1, 2), sigma = prior_exponential(0.5)))[c(1, 4)],
                   c("(Intercept)" = "student_t(4, 1, 2)", sigma = "exponential(0.5)"))
  expect_identical(unname(said(model_lm(prior = fixed(1:3), sigma = fixed(2), covariates = prior_niw(kappa = 2, within = TRUE)))[1]),
                   "normal(6, 0.70711 sd[x]) within bounds")
  expect_identical(said(model_normal(), stat_sums(~ x, list(x = c(0, 8)))), c(mean = "normal(4, 4 sd)", sd = "inverse_gamma(0.75, 0.64) of sd^2"))
  expect_identical(said(model_bernoulli(), stat_counts(~ y, list(y = c("a", "b")))), c("prob[b]" = "beta(1, 1)"))
  expect_identical(said(model_bernoulli(prior = prior_beta(1, 3)), stat_counts(~ y, list(y = c("a", "b")))), c("prob[b]" = "beta(1, 3)"))
  expect_identical(said(model_poisson(), stat_sums(~ x, list(x = c(0, 8)))), c(rate = "gamma(1, 0.25)"))
  expect_identical(said(model_exponential(prior = prior_gamma(2, 3)), stat_sums(~ x, list(x = c(0, 8)))), c(rate = "gamma(2, 3)"))
  expect_identical(unname(said(model_categorical(prior = prior_dirichlet(c(1, 2))), stat_counts(~ y, list(y = c("a", "b"))))), rep("dirichlet(1, 2)", 2))
  custom <- model_custom(function() c(mu = stats::rnorm(1)), function(theta, n) cbind(x = stats::rnorm(n, theta)), function(records, theta) theta, "x")
  expect_identical(said(custom, stat_sums(~ x, list(x = c(0, 8)))), c(mu = NA_character_))
  shown <- capture.output(print(rstantools::prior_summary(model_lm(), st)))
  expect_match(shown, "at mid-bounds  of the response", all = FALSE)
  expect_match(shown, "sd[x]          the root of cov[x,x]", fixed = TRUE, all = FALSE)
  expect_lte(max(nchar(shown)), 80L)
  expect_error(rstantools::prior_summary(model_lm()), class = "noiseaware_error_argument")
})

test_that("each row of a table and of naive Bayes has its own Dirichlet prior", {
  st <- stat_counts(~ a:b + b:c, list(a = c("x", "y"), b = c("u", "v", "w"), c = c("p", "q")))
  bayes <- rstantools::prior_summary(model_naive_bayes("b", prior = prior_dirichlet(3), conditional = list(a = prior_dirichlet(c(1, 2)), c = fixed(c(0.4, 0.6)))), st)
  expect_identical(bayes$prior, rep(c("dirichlet(3)", "dirichlet(1, 2)"), c(3, 6)))
  table <- rstantools::prior_summary(model_table(~ a:b + b:c, prior_dirichlet(2)), st)
  # that of six cells, and of two given the third variable: what is drawn has these marginals
  weight <- as.numeric(sub("dirichlet\\((.*)\\)", "\\1", table$prior))
  others <- ifelse(grepl("|", table$variable, fixed = TRUE), 1, 5) * weight
  expect_equal(table$median, qbeta(0.5, weight, others), tolerance = 0.03)
  expect_equal(table$q95, qbeta(0.95, weight, others), tolerance = 0.03)
})

# ---- names that other software has ---------------------------------------------------

test_that("summary() takes the probability of the interval by either name", {
  wide <- summary(fit, level = 0.8)
  expect_identical(names(wide), c("variable", "mean", "median", "sd", "mad", "q10", "q90", "rhat", "ess_bulk", "ess_tail"))
  expect_equal(unname(as.matrix(wide[c("q10", "q90")])), unname(confint(fit, level = 0.8, variables = "all")))
  expect_identical(summary(fit, prob = 0.8), wide)
  expect_identical(names(summary(fit, mean, "sd", level = 0.5)), c("variable", "mean", "sd", "q25", "q75"))
  for (code in expression(summary(fit, foo = 1), summary(fit, 0.9), summary(fit, level = 2), summary(fit, prob = "a"), summary(fit, variables = "all"))) {
    expect_error(eval(code), class = "noiseaware_error_argument")
  }
})

test_that("confint() of a regression has the coefficients, and the rest when asked", {
  expect_identical(rownames(confint(fit)), c("(Intercept)", "age"))
  all <- confint(fit, variables = "all")
  expect_identical(names(coef(fit, variables = "all")), rownames(all))
  expect_error(coef(fit, parm = "x"), "parm", class = "noiseaware_error_argument")
  expect_identical(rownames(all), posterior::variables(fit$draws))
  expect_identical(confint(fit), all[1:2, ])
  expect_identical(confint(fit, "sigma"), all["sigma", , drop = FALSE])
  expect_error(confint(fit, variables = "sigma"), class = "noiseaware_error_argument")
})

test_that("predict() understands the names that predict.lm() and predict.glm() have", {
  expect_identical(predict(fit, new, interval = "confidence"), predict(fit, new, interval = "credible"))
  expect_identical(predict(fit, new, interval = "prediction", seed = 1), predict(fit, new, interval = "predictive", seed = 1))
  expect_identical(predict(fit, new, type = "response"), predict(fit, new))
  set.seed(2)
  yes <- simulate_release(data.frame(y = rbinom(100, 1, 0.4), x = runif(100)), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1))), mech_laplace(epsilon = 9))
  logistic <- suppressWarnings(sample_posterior(yes, model_logistic(), chains = 1, iter = 100, seed = 1))
  at <- data.frame(x = c(0.2, 0.7))
  draws <- outer(as.vector(logistic$draws[, , "(Intercept)"]), c(1, 1)) + outer(as.vector(logistic$draws[, , "x"]), at$x)
  expect_equal(unname(predict(logistic, at, type = "link")), colMeans(draws))
  expect_equal(unname(predict(logistic, at, type = "link", interval = "credible")[, "upper"]), internal("draws_interval")(draws, 0.95)[2L, ])
  expect_error(predict(logistic, at, type = "link", interval = "predictive"), class = "noiseaware_error_argument")
})

test_that("a name without quotes is answered with the quotes", {
  for (code in expression(model_bernoulli(not_there), model_categorical(not_there))) {
    expect_error(eval(code), "in quotes.*not_there", class = "noiseaware_error_argument")
  }
  expect_error(model_bernoulli(stop("of its own")), "of its own")
})

test_that("sites are indices of what they have, which packages read as such", {
  answers <- stat_counts(~ y, list(y = c("no", "yes")))
  sites <- lapply(c(A = 30, B = 45, C = 38), function(yes) as_release(c(100 - yes, yes), answers, mech_laplace(epsilon = 1), n = 100))
  pooled <- suppressWarnings(sample_posterior(sites, model_bernoulli(), pool = "partial", chains = 2, iter = 400, seed = 1))
  expect_true(all(c("prob[yes,A]", "prob[yes,B]", "prob[yes,C]") %in% posterior::variables(pooled$draws)))
  by_site <- posterior::as_draws_rvars(pooled)$prob
  expect_identical(dimnames(by_site), list("yes", c("yes", "A", "B", "C")))
  expect_identical(as.vector(posterior::draws_of(by_site[1L, "B"])), as.vector(pooled$draws[, , "prob[yes,B]"]))
  glanced <- generics::glance(pooled)
  expect_identical(glanced[c("method", "nobs", "epsilon")], data.frame(method = "pool", nobs = 300, epsilon = 1))
  # without coefficients, all parameters
  expect_identical(generics::tidy(pooled)$term, posterior::variables(pooled$draws))
  expect_error(generics::tidy(pooled, exponentiate = TRUE), class = "noiseaware_error_argument")
})

test_that("what is for a function of the same name in another package goes there, whichever was attached last", {
  counted <- as_release(12, stat_sums(~ x, list(x = c(0, 1))), mech_laplace(epsilon = 1), n = 40)
  rate <- sample_posterior(counted, model_bernoulli(), chains = 2, iter = 100, seed = 1)
  line <- lm(mpg ~ wt, mtcars)
  if (requireNamespace("parameters", quietly = TRUE)) {
    expect_identical(p_value(line), parameters::p_value(line))
    expect_identical(parameters::p_value(counted, model_bernoulli(), c(prob = 0.5), seed = 1), p_value(counted, model_bernoulli(), c(prob = 0.5), seed = 1))
    expect_error(parameters::p_value(rate), class = "noiseaware_error_meaningless")
  }
  expect_error(p_value(1, model_bernoulli(), c(prob = 0.5)), class = "noiseaware_error_argument")
  if (requireNamespace("emmeans", quietly = TRUE)) {
    means <- emmeans::emmeans(line, ~ wt, at = list(wt = 2:3))
    expect_equal(contrast(means, "pairwise"), emmeans::contrast(means, "pairwise"))
  }
  expect_error(contrast(line, "wt"), class = "noiseaware_error_argument")
  if (requireNamespace("survey", quietly = TRUE)) {
    design <- survey::svydesign(ids = ~ 1, weights = ~ w, data = data.frame(w = 2, g = factor(c("a", "a", "b"))))
    same <- function(calibrated) expect_equal(weights(calibrated), c(5, 5, 7), ignore_attr = TRUE)
    same(calibrate(design, ~ g - 1, c(ga = 10, gb = 7)))
    same(survey::calibrate(design, ~ g - 1, c(ga = 10, gb = 7)))
    expect_error(calibrate(mtcars, stat_size(), mech_laplace(epsilon = 1), 10), class = "noiseaware_error_argument")
    expect_s3_class(survey::calibrate(rate, replicates = 2, seed = 1), "calibration")
  }
})
