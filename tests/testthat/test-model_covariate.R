# Covariates with distributions of their own: records against R's distributions, updates and the sampler
# against importance sampling from the prior in plain R, joint-distribution tests, limits of the noise.

# `priors`: parameters and one record each of so many draws, all in plain R
lone_cases <- list(
  beta = list(covariate = covariate_beta(prior_beta(3, 2), prior_gamma(2, 0.5)), bounds = c(1, 3),
              prior = function(k) list(share = rbeta(k, 3, 2), precision = rgamma(k, 2, 0.5)),
              draw = function(p) 1 + 2 * rbeta(length(p$share), p$precision * p$share, p$precision * (1 - p$share)),
              density = function(x, p) dbeta((x - 1) / 2, p$precision * p$share, p$precision * (1 - p$share))),
  poisson = list(covariate = covariate_count(prior_gamma(2, 0.7)), bounds = c(0, 8), prior = function(k) list(mean = rgamma(k, 2, 0.7)),
                 draw = function(p) rpois(length(p$mean), p$mean), density = function(x, p) dpois(x, p$mean)),
  negative_binomial = list(covariate = covariate_count(prior_gamma(2, 0.7), size = prior_gamma(2, 1)), bounds = c(0, 8),
                           prior = function(k) list(mean = rgamma(k, 2, 0.7), size = rgamma(k, 2, 1)),
                           draw = function(p) rnbinom(length(p$mean), size = p$size, mu = p$mean),
                           density = function(x, p) dnbinom(x, size = p$size, mu = p$mean)),
  mixture = list(covariate = covariate_mixture(2, prior_dirichlet(2), prior_normal(0.5, 1), prior_inverse_gamma(3, 1)), bounds = c(-2, 3),
                 prior = function(k) {
                   mean <- matrix(rnorm(2 * k, 0.5, 1), k)
                   w <- rbeta(k, 2, 2)
                   list(`weight@1` = w, `weight@2` = 1 - w, `mean@1` = pmin(mean[, 1], mean[, 2]), `mean@2` = pmax(mean[, 1], mean[, 2]),
                        `sd@1` = sqrt(1 / rgamma(k, 3, 1)), `sd@2` = sqrt(1 / rgamma(k, 3, 1)))
                 },
                 draw = function(p) {
                   first <- runif(length(p[[1]])) < p[[1]]
                   rnorm(length(first), ifelse(first, p[[3]], p[[4]]), ifelse(first, p[[5]], p[[6]]))
                 },
                 density = function(x, p) p[[1]] * dnorm(x, p[[3]], p[[5]]) + p[[2]] * dnorm(x, p[[4]], p[[6]]))
)

# the names that a fit has
lone_names <- function(names) {
  part <- strsplit(names, "@", fixed = TRUE)
  vapply(part, function(p) sprintf("%s[x%s]", p[1], if (length(p) > 1L) paste0(",", p[2]) else ""), "")
}

lone_model <- function(case, response, prior = prior_normal(c(0.2, 0.5), c(1, 0.6)), ...) {
  covariates <- list(x = case$covariate)
  if (response == "lm") model_lm(prior = prior, sigma = fixed(0.7), covariates = covariates, ...) else
    model_logistic(prior = prior, covariates = covariates, ...)
}
lone_statistic <- function(case, response) stat_crossprod(y ~ x, list(y = if (response == "lm") c(-2, 3) else c(0, 1), x = case$bounds))
lone_bind <- function(case, response = "logistic", ...) internal("bind_model")(lone_model(case, response, ...), lone_statistic(case, response))
lone_stream <- function(seed) internal("new_stream")(c(31, seed))
lone_theta <- function(bound, count, seed = 1) .Call(internal("ffi_model_prior"), bound$spec, lone_stream(seed), as.integer(count))$theta
# the parameters of one theta as a case's functions have them
lone_parameters <- function(bound, theta, case, k) {
  values <- internal("reported")(bound, theta)[1, ]
  names <- names(case$prior(1))
  lapply(stats::setNames(values[lone_names(names)], names), rep, k)
}

# two samples of a number, or of whole numbers
expect_alike <- function(a, b) {
  if (all(a == round(a))) {
    top <- max(2, quantile(b, 0.99))
    pair <- rbind(tabulate(pmin(a, top) + 1, top + 1), tabulate(pmin(b, top) + 1, top + 1))
    pair <- pair[, colSums(pair) > 10, drop = FALSE]
    expect_gt(suppressWarnings(chisq.test(pair)$p.value), 1e-6)
  } else {
    expect_gt(suppressWarnings(ks.test(a, b)$p.value), 1e-6)
  }
}

# quantiles of the parameters, up to the errors of both
expect_weighted <- function(fit, exact, weight, errors = 5) {
  size <- sum(weight)^2 / sum(weight^2)
  expect_gt(size, 300)
  names <- ifelse(names(exact) %in% c("(Intercept)", "x"), names(exact), lone_names(names(exact)))
  for (j in seq_along(exact)) {
    draws <- parameter_draws(fit, names[j])
    order <- order(exact[[j]])
    cumulative <- cumsum(weight[order]) / sum(weight)
    for (p in c(0.1, 0.5, 0.9)) {
      at <- exact[[j]][order][which(cumulative >= p)[1]]
      below <- draws <= at
      expect_estimated_mean(below + 0, p, sqrt(p * (1 - p) / size), errors, label = paste(names[j], p))
    }
  }
}

test_that("records have the distribution, fresh, moved and partly refreshed", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(41)
  k <- 20000L
  for (case in lone_cases) for (response in c("lm", "logistic")) {
    bound <- lone_bind(case, response, prior = fixed(c(0.2, 0.5)))
    theta <- lone_theta(bound, 2, seed = 3)
    theta[, 2] <- theta[, 1] + 0.3 * (theta[, 2] - theta[, 1])
    records <- .Call(internal("ffi_model_records"), bound$spec, theta[, 1], k, lone_stream(2))$records
    fresh <- case$draw(lone_parameters(bound, theta[, 1], case, k))
    next_one <- case$draw(lone_parameters(bound, theta[, 2], case, k))
    expect_alike(records[, 2], fresh)
    moved <- .Call(internal("ffi_model_move"), bound$spec, theta[, 1], theta[, 2], records, lone_stream(4))
    expect_alike(moved[, 2], next_one)
    back <- .Call(internal("ffi_model_move"), bound$spec, theta[, 2], theta[, 1], moved, lone_stream(5))
    expect_alike(back[, 2], fresh)
    # the pair is the same seen from either end, and holds on to the record
    expect_alike(records[, 2] + 2 * moved[, 2], back[, 2] + 2 * moved[, 2])
    expect_gt(cor(records[, 2], moved[, 2], method = "spearman"), 0.5)
    if (response == "lm") expect_equal(moved[, 1] - 0.5 * moved[, 2], records[, 1] - 0.5 * records[, 2], tolerance = 1e-9)
    kept <- .Call(internal("ffi_model_refresh"), bound$spec, theta[, 1], 0.6, records, lone_stream(6))$records
    expect_alike(kept[, 2], fresh)
    expect_true(mean(kept[, 2] == records[, 2]) > 0.58)
  }
})

test_that("shapes near 0 and values at the bounds stay finite", {
  case <- list(bounds = c(1, 3))
  for (shape in list(c(0.5, 0.01), c(0.999, 0.3), c(0.01, 1e-3), c(0.5, 1e6))) {
    case$covariate <- covariate_beta(fixed(shape[1]), fixed(shape[2]))
    bound <- lone_bind(case, prior = fixed(c(0, 1)))
    theta <- lone_theta(bound, 1)[, 1]
    x <- .Call(internal("ffi_model_records"), bound$spec, theta, 20000L, lone_stream(1))$records[, 2]
    expect_true(all(x >= 1 & x <= 3))
    expect_lt(abs(mean(x) - 1 - 2 * shape[1]), 5 * 2 * sqrt(shape[1] * (1 - shape[1]) / (1 + shape[2]) / 20000))
  }
  # most records at the upper bound: their share is the atom's
  case$covariate <- covariate_beta(fixed(0.5), fixed(0.02))
  bound <- lone_bind(case, prior = fixed(c(0, 1)))
  x <- .Call(internal("ffi_model_records"), bound$spec, lone_theta(bound, 1)[, 1], 20000L, lone_stream(1))$records[, 2]
  atom <- pbeta(1e-9, 0.01, 0.01)
  expect_lt(abs(mean(x == 3) - atom), 5 * sqrt(atom * (1 - atom) / 20000))
})

test_that("parameters given the records: importance sampling from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(42)
  k <- 6e4
  for (case in lone_cases) {
    x <- case$draw(lapply(case$prior(1), rep, 8))
    if (all(x == round(x))) x <- pmin(x, 8)
    p <- case$prior(k)
    weight <- exp(Reduce(`+`, lapply(x, function(v) log(case$density(v, p)))))
    data <- data.frame(y = rep(0:1, 4), x = x)
    fit <- suppressMessages(suppressWarnings(nonprivate_posterior(data, lone_model(case, "logistic"), lone_statistic(case, "logistic"), chains = 2, iter = 5200, warmup = 900, seed = 1)))
    expect_weighted(fit, p, weight)
  }
})

test_that("one and two records: importance sampling from the prior", {
  skip_on_cran()
  set.seed(43)
  k <- 6e4
  for (case in lone_cases) for (response in c("lm", "logistic")) for (n in 1:2) {
    st <- lone_statistic(case, response)
    released <- stats::setNames(rep(0.3 * n, length(st$components)), st$components)
    release <- as_release(released, st, mech_laplace(scale = 0.4), n)
    p <- c(list(`(Intercept)` = rnorm(k, 0.2, 1), x = rnorm(k, 0.5, 0.6)), case$prior(k))
    total <- 0
    for (i in seq_len(n)) {
      x <- case$draw(p[-(1:2)])
      eta <- p[[1]] + p[[2]] * x
      y <- if (response == "lm") rnorm(k, eta, 0.7) else rbinom(k, 1, plogis(eta))
      total <- total + r_components(st, cbind(y, x))
    }
    weight <- exp(log_noise("absolute", unname(release$scale), unname(released), total))
    for (passes in if (n == 1) 2 else c(0, 2)) {
      fit <- sample_posterior(release, lone_model(case, response), method = "augment", chains = 2, iter = 1300, warmup = 400, seed = 3, control = list(passes = passes))
      expect_weighted(fit, p, weight)
    }
  }
})

test_that("joint-distribution test: all kinds beside a normal one and a factor", {
  skip_on_cran()
  set.seed(44)
  covariates <- list(prior_niw(0.2, 2, 1, 5), a = lone_cases$beta$covariate, b = lone_cases$negative_binomial$covariate, c = lone_cases$mixture$covariate)
  for (response in c("lm", "logistic")) {
    y <- if (response == "lm") c(-2, 3) else c(0, 1)
    st <- stat_crossprod(y ~ a + d + b + g + c, list(y = y, a = c(1, 3), b = c(0, 8), c = c(-2, 3), d = c(-1, 1), g = c("u", "v")))
    prior <- prior_normal(0, 0.5)
    model <- if (response == "lm") model_lm(prior = prior, sigma = fixed(0.7), covariates = covariates) else model_logistic(prior = prior, covariates = covariates)
    exact <- prior_draws(model, st)
    for (passes in c(0, 2)) expect_prior(geweke(model, st, mech_laplace(scale = 2), 5, 5000, passes), exact)
    # a hundredth of them are effective draws of a normal response
    expect_prior(geweke(model, st, mech_laplace(scale = 2), 12, if (response == "lm") 14000 else 4000, NULL, warmup = 300L), exact)
  }
})

test_that("noise alone leaves the prior", {
  skip_on_cran()
  set.seed(45)
  for (case in lone_cases) {
    release <- simulate_release(lone_model(case, "logistic"), lone_statistic(case, "logistic"), mech_laplace(scale = 1e6), n = 20)
    fit <- sample_posterior(release, lone_model(case, "logistic"), method = "augment", chains = 2, iter = 2100, seed = 1)
    expect_weighted(fit, case$prior(1e5), rep(1, 1e5))
  }
})

test_that("with hardly any noise the posterior is that of the totals", {
  skip_on_cran()
  set.seed(46)
  # the total of counts is all that a Poisson mean depends on; coefficients are known
  st <- stat_sums(~ y + x, list(y = c(0, 1), x = c(0, 60)), rescale = FALSE)
  x <- rpois(40, 4)
  release <- as_release(c(y = 17, x = sum(x)), st, mech_laplace(scale = c(1000, 0.2)), 40)
  model <- model_logistic(y ~ x, prior = fixed(c(0, 0)), covariates = list(x = covariate_count(prior_gamma(2, 0.7))))
  fit <- sample_posterior(release, model, method = "augment", chains = 2, iter = 3000, seed = 1)
  expect_distribution(parameter_draws(fit, "mean[x]"), function(p) qgamma(p, 2 + sum(x), 40.7))
})

test_that("a normal covariate that is skewed shows in the check of the release, a beta one does not", {
  skip_on_cran()
  set.seed(47)
  x <- 10 * rbeta(2000, 0.5, 3)
  data <- data.frame(y = rbinom(2000, 1, plogis(1 - 0.3 * x)), x = x)
  statistics <- list(products = stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 10))), shape = stat_histogram(~ x, breaks = 0:5 * 2))
  release <- simulate_release(data, statistics, list(products = mech_laplace(epsilon = 10), shape = mech_laplace(epsilon = 10)))
  check <- function(covariates) {
    fit <- suppressWarnings(sample_posterior(release, model_logistic(y ~ x, covariates = covariates), method = "augment", chains = 2, iter = 700, seed = 1))
    check_of(fit, seed = 1)
  }
  expect_gt(sum(check(prior_niw())$p < 0.01), 2)
  expect_gt(min(check(list(x = covariate_beta()))$p), 0.01)
})

test_that("priors are told and formatted", {
  case <- lone_cases$mixture
  bound <- lone_bind(case)
  expect_equal(bound$parameters, c("(Intercept)", "x", "weight[x,1]", "weight[x,2]", "mean[x,1]", "mean[x,2]", "sd[x,1]", "sd[x,2]"))
  expect_equal(unname(internal("describe_priors")(bound)[-(1:2)]),
               rep(c("dirichlet(2)", "normal(0.5, 1) in order", "inverse_gamma(3, 1) of sd^2"), each = 2))
  expect_equal(lone_bind(list(covariate = covariate_beta(fixed(0.4)), bounds = c(0, 1)))$parameters, c("(Intercept)", "x", "precision[x]"))
  # a sixth of the upper bound is expected
  expect_equal(internal("describe_priors")(lone_bind(list(covariate = covariate_count(), bounds = c(0, 12))))[["mean[x]"]], "gamma(1.5, 0.75)")
  expect_output(print(covariate_count(size = prior_gamma(2, 0.1))), "negative binomial")
  expect_match(paste(format(lone_model(case, "lm")), collapse = "\n"), "x mixture: components 2")
})

test_that("methods and arguments that do not serve are refused", {
  skip_on_cran()
  st <- lone_statistic(lone_cases$beta, "lm")
  model <- lone_model(lone_cases$beta, "lm")
  set.seed(48)
  release <- simulate_release(model, st, mech_gaussian(mu = 1), n = 50)
  for (method in c("clt", "collapse", "naive")) {
    expect_error(sample_posterior(release, model, method = method), "augment", class = "noiseaware_error_method")
  }
  expect_error(stan_program(release, model), class = "noiseaware_error_method")
  binary <- simulate_release(lone_model(lone_cases$beta, "logistic"), lone_statistic(lone_cases$beta, "logistic"), mech_gaussian(mu = 1), n = 50)
  expect_error(sample_posterior(binary, lone_model(lone_cases$beta, "logistic"), method = "clt"), "augment", class = "noiseaware_error_method")
  expect_error(sample_posterior(release, model_lm(covariates = list(z = covariate_beta()))), "must name numeric covariates", class = "noiseaware_error_variables")
  expect_error(sample_posterior(release, model_lm(covariates = list(x = covariate_count(), prior_niw(), prior_niw()))), class = "noiseaware_error_prior")
  levels_only <- stat_crossprod(y ~ g, list(y = c(-2, 3), g = c("a", "b")))
  expect_error(internal("bind_model")(model_lm(covariates = list(g = covariate_beta())), levels_only), "All covariates of the release are factors",
               class = "noiseaware_error_variables")
  for (bad in list("a", c(1, 2), NA_real_)) expect_error(covariate_lognormal(fixed(bad)), class = "noiseaware_error")
  expect_error(model_lm(covariates = covariate_beta()), "without a covariate's name", class = "noiseaware_error_prior")
  expect_error(model_glm(covariates = list(x = "beta")), "covariates\\$x.*covariate_beta", class = "noiseaware_error_prior")
  expect_error(model_glm(covariates = list(x = prior_niw(), covariate_beta)), "covariates\\$x.*prior_niw", class = "noiseaware_error_prior")
  negative <- stat_crossprod(y ~ x, list(y = c(-2, 3), x = c(-1, 3)))
  expect_error(internal("bind_model")(model_lm(covariates = list(x = covariate_count())), negative), "non-negative bounds", class = "noiseaware_error_variables")
  expect_error(covariate_beta(share = prior_gamma()), class = "noiseaware_error_prior")
  expect_error(covariate_beta(share = fixed(1)), class = "noiseaware_error_prior")
  expect_error(covariate_beta(precision = prior_gamma(1)), class = "noiseaware_error_prior")
  expect_error(covariate_count(size = prior_gamma(1)), class = "noiseaware_error_prior")
  expect_error(covariate_count(mean = fixed(-1)), class = "noiseaware_error_prior")
  expect_error(covariate_mixture(1), class = "noiseaware_error_prior")
  expect_error(covariate_mixture(2.5), class = "noiseaware_error_prior")
  expect_error(covariate_mixture(weights = prior_dirichlet(c(1, 2))), class = "noiseaware_error_prior")
  expect_error(covariate_mixture(mean = prior_normal(c(1, 2))), class = "noiseaware_error_prior")
  expect_error(covariate_mixture(variance = prior_gamma(1, 1)), class = "noiseaware_error_prior")
  expect_error(model_mvnormal(prior = list(x = covariate_beta())), class = "noiseaware_error_prior")
})

test_that("a histogram beside the cross-products shows a covariate that is not normal", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(51)
  x <- pmin(stats::rexp(500, 1 / 2), 10)
  data <- data.frame(y = stats::runif(500) < stats::plogis(0.3 * x - 1), x = x)
  statistic <- list(totals = stat_crossprod(y ~ x, list(y = c(FALSE, TRUE), x = c(0, 10))),
                    bins = stat_histogram(~ x, breaks = list(x = c(-Inf, 0.5, 1, 2, 4, Inf))))
  release <- simulate_release(data, statistic, list(totals = mech_laplace(epsilon = 4), bins = mech_discrete_laplace(epsilon = 2)))
  checked <- function(...) {
    fit <- suppressWarnings(suppressMessages(sample_posterior(release, model_glm(y ~ x, ...), chains = 2, iter = 600, seed = 1)))
    min(check_of(fit, draws = 100, seed = 1)$p)
  }
  expect_lt(checked(), 0.05)
  expect_gt(checked(covariates = list(x = covariate_beta())), 0.05)
})

test_that("records at the bounds of a beta covariate count by the mass beyond the edge", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(43)
  case <- lone_cases$beta
  case$covariate <- covariate_beta(prior_beta(3, 2), prior_gamma(1, 6))
  x <- c(1, 3, 3, 1, 3, 2, 1.4, 3)
  p <- list(share = rbeta(2e5, 3, 2), precision = rgamma(2e5, 1, 6))
  a <- p$precision * p$share
  b <- p$precision * (1 - p$share)
  log_density <- function(v) if (v == 1) pbeta(1e-9, a, b, log.p = TRUE) else if (v == 3) pbeta(1e-9, b, a, log.p = TRUE) else dbeta((v - 1) / 2, a, b, log = TRUE)
  log_weight <- Reduce(`+`, lapply(x, log_density))
  fit <- suppressMessages(suppressWarnings(nonprivate_posterior(data.frame(y = rep(0:1, 4), x = x), lone_model(case, "logistic"), lone_statistic(case, "logistic"),
                                                                chains = 2, iter = 5200, warmup = 900, seed = 1)))
  expect_weighted(fit, p, exp(log_weight - max(log_weight)))
})
