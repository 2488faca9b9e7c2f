# Method "clt" for binary responses and counts: moments against quadrature and records, gradients
# against finite differences, posteriors against "augment".

binary_links <- c("logit", "probit", "cloglog")
binary_model <- function(link, ...) model_glm(family = binomial(link), ...)

logistic_clt <- function(model, statistic) {
  release <- as_release(numeric(length(statistic$components)), statistic, mech_laplace(epsilon = 1), 100)
  bound <- internal("bind_model")(model, statistic)
  list(bound = bound, spec = internal("clt_distribution")(bound, release, NULL)$spec)
}

clt_prior_theta <- function(bound) .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(1, 2)), 1L)$theta

clt_moments <- function(distribution, theta = clt_prior_theta(distribution$bound)) .Call(internal("ffi_clt_moments"), distribution$spec, theta)[[1]]

# mean and covariance of (y, x, y:x, x^2) by quadrature over x, two points for y
quadrature_moments <- function(beta, mean, sd, link = "logit") {
  components <- function(x, y) list(y, x, y * x, x^2)
  expect <- function(f) {
    integrate(function(x) {
      p <- binomial(link)$linkinv(beta[1] + beta[2] * x)
      dnorm(x, mean, sd) * (p * f(x, 1) + (1 - p) * f(x, 0))
    }, mean - 12 * sd, mean + 12 * sd, rel.tol = 1e-11, subdivisions = 2000)$value
  }
  first <- vapply(1:4, function(a) expect(function(x, y) components(x, y)[[a]] + 0 * x), 0)
  second <- outer(1:4, 1:4, Vectorize(function(a, b) {
    expect(function(x, y) (components(x, y)[[a]] - first[a]) * (components(x, y)[[b]] - first[b]))
  }))
  list(mean = first, cov = second)
}

test_that("moments are those of quadrature, slopes flat or steep", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_crossprod(y ~ x, list(y = c(FALSE, TRUE), x = c(-9, 7)), rescale = FALSE)
  expect_equal(unname(gsub("TRUE", "", statistic$components)), c("y", "x", "y:x", "x^2"))
  for (link in binary_links) for (slope in c(0, 1e-4, -0.7, 3, 40)) {
    beta <- c(-0.4, slope)
    distribution <- logistic_clt(binary_model(link, prior = fixed(beta), covariates = fixed(list(mean = 0.3, cov = 1.7))), statistic)
    expected <- quadrature_moments(beta, 0.3, sqrt(1.7), link)
    got <- clt_moments(distribution)
    expect_equal(got$mean, expected$mean, tolerance = 1e-8)
    expect_equal(got$cov, expected$cov, tolerance = 1e-7)
  }
})

# mean and covariance of (y, x, y:x, y^2, x^2), y a Poisson count clamped to [0, upper]
count_moments <- function(beta, mean, sd, upper) {
  x <- mean + sd * seq(-10, 10, length.out = 4001)
  weight <- dnorm(x, mean, sd) * (x[2] - x[1])
  rate <- exp(beta[1] + beta[2] * x)
  whole <- 0:(ceiling(upper) - 1)
  powers <- c(1, lapply(1:4, function(m) upper^m * ppois(max(whole), rate, lower.tail = FALSE)))
  for (y in whole) {
    p <- dpois(y, rate)
    for (m in 1:4) powers[[m + 1]] <- powers[[m + 1]] + y^m * p
  }
  of_y <- c(1, 0, 1, 2, 0)
  of_x <- c(0, 1, 1, 0, 2)
  first <- vapply(1:5, function(a) sum(weight * powers[[of_y[a] + 1]] * x^of_x[a]), 0)
  second <- outer(1:5, 1:5, Vectorize(function(a, b) sum(weight * powers[[of_y[a] + of_y[b] + 1]] * x^(of_x[a] + of_x[b]))))
  list(mean = first, cov = second - outer(first, first))
}

test_that("moments of counts are those of quadrature, clamped at bounds near and far", {
  skip_on_cran() # takes long; `make test` runs it
  for (upper in c(1, 2, 7.5, 30, 200)) for (slope in c(0, if (upper == 2) 1e-4, -0.7, 2.5)) for (at in c(-3, if (upper == 30) log(upper), log(upper) + 0.3)) {
    statistic <- stat_crossprod(y ~ x, list(y = c(0, upper), x = c(-9, 7)), rescale = FALSE)
    beta <- c(at, slope)
    model <- model_glm(family = poisson(), prior = fixed(beta), covariates = fixed(list(mean = 0.3, cov = 1.7)))
    expected <- count_moments(beta, 0.3, sqrt(1.7), upper)
    got <- clt_moments(logistic_clt(model, statistic))
    order <- match(statistic$components, c("y", "x", "y:x", "y^2", "x^2"))
    expect_equal(got$mean, expected$mean[order], tolerance = 1e-9)
    # rounding of second moments is what is left where hardly any count is below the bound
    unit <- sqrt(diag(expected$cov))[order]
    allowed <- 1e-7 * outer(unit, unit) + 1e-13 * abs(outer(got$mean, got$mean))
    expect_true(all(abs(got$cov - expected$cov[order, order]) <= allowed))
  }
})

test_that("log rates may vary however much", {
  statistic <- stat_crossprod(y ~ x, list(y = c(0, 20), x = c(-9, 7)), rescale = FALSE)
  moments <- function(slope) {
    unlist(clt_moments(logistic_clt(model_glm(family = poisson(), prior = fixed(c(0.4, slope)), covariates = fixed(list(mean = 0.3, cov = 1))), statistic)))
  }
  # a parabola foretells what follows, where the quadrature changes too
  for (slope in c(5, 21.4, 60)) {
    near <- lapply(slope + c(-0.2, -0.1, 0, 0.1) * slope / 200, moments)
    expect_equal(near[[4]], near[[1]] - 3 * near[[2]] + 3 * near[[3]], tolerance = 1e-8)
  }
  expect_equal(moments(1e4)[1:2] / 20, c(pnorm(0.3), 0.3 / 20), tolerance = 1e-3, ignore_attr = TRUE)
})

test_that("slopes may be as steep as a step, and cost no more", {
  statistic <- stat_crossprod(y ~ x, list(y = c(FALSE, TRUE), x = c(-9, 7)), rescale = FALSE)
  moments <- function(slope, link = "logit") {
    clt_moments(logistic_clt(binary_model(link, prior = fixed(c(-0.4, slope)), covariates = fixed(list(mean = 0.3, cov = 1))), statistic))
  }
  # the quadrature changes there: a parabola foretells what follows
  changes <- c(logit = 200, probit = 200, cloglog = 100)
  for (link in binary_links) {
    near <- lapply(changes[[link]] + c(-0.2, -0.1, 0, 0.1), function(slope) unlist(moments(slope, link)))
    expect_equal(near[[4]], near[[1]] - 3 * near[[2]] + 3 * near[[3]], tolerance = 1e-9)
  }
  # y is whether x is above a threshold, 0 but for 1 / slope
  for (link in binary_links) for (slope in c(1e3, 1e4, 1e5)) {
    got <- moments(slope, link)
    expected <- c(pnorm(0.3), 0.3, 0.3 * pnorm(0.3) + dnorm(0.3), 1.09)
    expect_equal(got$mean, expected, tolerance = 2 / slope + 1e-12)
    expect_equal(got$cov[1, 1], expected[1] * (1 - expected[1]), tolerance = 2 / slope + 1e-12)
  }
  expect_null(moments(1e160)) # rounding leaves no variance
})

test_that("moments are those of records: rescaled, in any order, the response as a number too", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(71)
  n <- 1e5
  covariance <- crossprod(matrix(rnorm(9), 3)) / 2 + diag(0.3, 3)
  mean <- c(0.5, -1, 2)
  beta <- c(-0.8, 0.7, -1.2, 0.5)
  x <- matrix(rnorm(3 * n), n) %*% chol(covariance) + rep(mean, each = n)
  y <- runif(n) < plogis(beta[1] + x %*% beta[-1])
  data <- data.frame(b = x[, 2], y = as.numeric(y), c = x[, 3], a = x[, 1])
  for (response in list(c(FALSE, TRUE), c(0, 1))) {
    bounds <- list(y = response, a = c(-20, 20), b = c(-13, 18), c = c(-15, 25))
    statistic <- stat_crossprod(y ~ b + a + c, bounds)
    if (is.logical(response)) data$y <- y[, 1] else data$y <- as.numeric(y)
    model <- model_logistic(y ~ a + b + c, prior = fixed(beta), covariates = fixed(list(mean = mean, cov = covariance)))
    got <- clt_moments(logistic_clt(model, statistic))
    released <- internal("statistic_fields")(statistic)
    columns <- cbind(as.numeric(y), x)[, match(sub("TRUE", "", statistic$columns$name), c("y", "a", "b", "c"))]
    z <- sweep(sweep(columns, 2, released$scale, "*"), 2, released$shift, "+")
    t <- cbind(z, z[, statistic$pairs$first] * z[, statistic$pairs$second])
    error <- apply(t, 2, sd) / sqrt(n)
    expect_true(all(abs(colMeans(t) - got$mean) <= 5 * error + 1e-12))
    sd <- sqrt(pmax(diag(got$cov), 1e-300))
    vary <- diag(got$cov) > 1e-12
    expect_lt(max((abs(cov(t) - got$cov) / outer(sd, sd))[vary, vary]), 12 / sqrt(n))
    expect_equal(diag(got$cov)[!vary], apply(t, 2, var)[!vary], tolerance = 1e-12)
  }
})

# r'total as a function of theta and of u, and its slopes
expect_gradients <- function(model, statistic, n = 100) {
  distribution <- logistic_clt(model, statistic)
  theta <- 0.3 * clt_prior_theta(distribution$bound)[, 1]
  form <- function(theta, u, r) .Call(internal("ffi_clt_form"), distribution$spec, theta, n, as.matrix(u), r)
  r <- rnorm(length(statistic$components))
  u <- rnorm(length(form(theta, numeric(5000), r)$pull))
  value <- function(theta, u) sum(r * form(theta, u, r)$total)
  slopes <- function(f, at) {
    vapply(seq_along(at), function(j) (f(replace(at, j, at[j] + 1e-5)) - f(replace(at, j, at[j] - 1e-5))) / 2e-5, 0)
  }
  got <- form(theta, u, r)
  # an evaluation leaves nothing to the next one
  expect_identical(form(theta, cbind(1 - u, u), r)$gradient, got$gradient)
  numeric_theta <- slopes(function(t) value(t, u), theta)
  expect_lt(max(abs(got$gradient - numeric_theta)), 1e-7 * max(abs(numeric_theta)))
  numeric_u <- slopes(function(v) value(theta, v), u)
  expect_lt(max(abs(sqrt(n) * got$pull - numeric_u)), 1e-7 * max(abs(numeric_u)))
  prior <- slopes(function(t) .Call(internal("ffi_model_log_prior"), distribution$bound$spec, matrix(t)), theta)
  expect_lt(max(abs(.Call(internal("ffi_model_prior_gradient"), distribution$bound$spec, theta) - prior)), 1e-6 * max(abs(prior)))
}

test_that("gradients are those of finite differences", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(72)
  numbers <- list(a = c(0, 10), b = c(-3, 8), c = c(-5, 5))
  for (response in list(c(FALSE, TRUE), c(0, 1))) {
    for (link in binary_links) expect_gradients(binary_model(link), stat_crossprod(y ~ a + b + c, c(list(y = response), numbers)))
  }
  counts <- model_glm(family = poisson())
  for (upper in c(1, 9.5, 60)) expect_gradients(counts, stat_crossprod(y ~ a + b + c, c(list(y = c(0, upper)), numbers)))
  expect_gradients(counts, stat_crossprod(y ~ 1, list(y = c(0, 12))))
  expect_gradients(model_logistic(), stat_crossprod(y ~ 1, list(y = c(FALSE, TRUE))))
  expect_gradients(model_lm(), stat_crossprod(y ~ a + b + c, c(list(y = c(-9, 7)), numbers)))
  expect_gradients(model_lm(), stat_crossprod(y ~ a + f + b + g, c(list(y = c(-9, 7), f = c("u", "v", "w", "z"), g = c("p", "q")), numbers[1:2])))
  expect_gradients(model_lm(prior = prior_normal(0, 2), sigma = prior_inverse_gamma(2, 1)), stat_crossprod(y ~ 1, list(y = c(-9, 7))))
  for (sigma in list(prior_half_normal(2), prior_half_t(2), prior_exponential(1))) {
    expect_gradients(model_lm(prior = prior_student_t(), sigma = sigma), stat_crossprod(y ~ a + b, c(list(y = c(-9, 7)), numbers[1:2])))
  }
  expect_gradients(model_lm(covariates = fixed(list(mean = c(1, 2), cov = diag(2)))), stat_crossprod(y ~ a + b, list(y = c(-9, 7), a = c(0, 10), b = c(-3, 8))))
})

test_that("the share of records outside is that of the tails of every covariate", {
  st <- stat_crossprod(y ~ a + b, list(y = c(FALSE, TRUE), a = c(-1, 2), b = c(0, 9)))
  set.seed(74)
  rel <- simulate_release(data.frame(y = rep(c(FALSE, TRUE), 50), a = rnorm(100), b = rnorm(100, 6, 2)), st, mech_laplace(epsilon = 20))
  fit <- suppressWarnings(sample_posterior(rel, model_logistic(), method = "clt", chains = 1, iter = 60, seed = 1))
  d <- posterior::as_draws_df(fit$draws)
  tails <- function(name, lower, upper) {
    sd <- sqrt(d[[sprintf("cov[%s,%s]", name, name)]])
    pnorm(lower, d[[sprintf("mean[%s]", name)]], sd) + pnorm(upper, d[[sprintf("mean[%s]", name)]], sd, lower.tail = FALSE)
  }
  expect_equal(fit$chains[[1]]$outside, pmin(tails("a", -1, 2) + tails("b", 0, 9), 1), tolerance = 1e-8)
})

logistic_release <- function(n, epsilon, mechanism = mech_laplace) {
  statistic <- stat_crossprod(y ~ a + b, list(y = c(FALSE, TRUE), a = c(-6, 6), b = c(-6, 6)))
  truth <- model_logistic(prior = fixed(c(-0.5, 0.8, -0.6)), covariates = fixed(list(mean = c(0.3, 0), cov = diag(2) + 0.3)))
  set.seed(73)
  simulate_release(truth, statistic, mechanism(epsilon = epsilon), n = n)
}

test_that("the posterior is that of 'augment', where n is not small", {
  skip_on_cran()
  release <- logistic_release(500, 20)
  for (link in rev(binary_links)) {
    model <- binary_model(link, prior = prior_normal(0, 2))
    fit <- suppressWarnings(sample_posterior(release, model, method = "clt", chains = 2, iter = 900, seed = 1))
    exact <- suppressWarnings(sample_posterior(release, model, method = "augment", chains = 1, iter = 500, seed = 2))
    for (name in posterior::variables(fit$draws)) {
      a <- posterior::extract_variable_matrix(fit$draws, name)
      b <- posterior::extract_variable_matrix(exact$draws, name)
      error <- sqrt(posterior::mcse_mean(a)^2 + posterior::mcse_mean(b)^2)
      expect_lt(abs(mean(a) - mean(b)), 5 * error + 0.1 * sd(b))
      expect_lt(abs(log(sd(a) / sd(b))), 0.35)
    }
  }
  expect_output(print(fit), "gradients an iteration")
  expect_output(print(acceptance(fit)), "NUTS transition")
})

test_that("the posterior of a regression of counts is that of 'augment', and tells what it leaves out", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ a + b, list(y = c(0, 6), a = c(-6, 6), b = c(-6, 6)))
  truth <- model_glm(family = poisson(), prior = fixed(c(0.5, 0.5, -0.4)), covariates = fixed(list(mean = c(0.3, 0), cov = diag(2))))
  set.seed(75)
  release <- simulate_release(truth, statistic, mech_laplace(epsilon = 5), n = 1000)
  model <- model_glm(family = poisson(), prior = prior_normal(0, 2))
  fit <- suppressWarnings(sample_posterior(release, model, method = "clt", chains = 2, iter = 800, seed = 1))
  exact <- suppressWarnings(sample_posterior(release, model, method = "augment", chains = 2, iter = 800, seed = 2))
  for (name in posterior::variables(fit$draws)) {
    a <- posterior::extract_variable_matrix(fit$draws, name)
    b <- posterior::extract_variable_matrix(exact$draws, name)
    error <- sqrt(posterior::mcse_mean(a)^2 + posterior::mcse_mean(b)^2)
    expect_lt(abs(mean(a) - mean(b)), 5 * error + 0.1 * sd(b))
    expect_lt(abs(log(sd(a) / sd(b))), 0.3)
  }
  least <- stat_crossprod(y ~ a, list(y = c(1, 6), a = c(-6, 6)))
  release <- as_release(numeric(length(least$components)), least, mech_laplace(epsilon = 1), 100)
  expect_error(sample_posterior(release, model, method = "clt"), "lower bound 1", class = "noiseaware_error_method")
})

test_that("NUTS and moves with the total integrated out have the same posterior", {
  skip_on_cran()
  release <- logistic_release(2000, 0.5)
  model <- model_logistic(prior = prior_normal(0, 1), covariates = fixed(list(mean = c(0.3, 0), cov = diag(2) + 0.3)))
  fits <- lapply(c("nuts", "marginal"), function(sampler) {
    suppressWarnings(sample_posterior(release, model, method = "clt", chains = 2, iter = if (sampler == "nuts") 3000 else 8000, seed = 3,
                                      control = list(sampler = sampler)))
  })
  for (name in posterior::variables(fits[[1]]$draws)) {
    draws <- lapply(fits, function(f) posterior::extract_variable_matrix(f$draws, name))
    error <- sqrt(sum(vapply(draws, posterior::mcse_mean, 0)^2))
    expect_lt(abs(mean(draws[[1]]) - mean(draws[[2]])), 5 * error)
    error <- sqrt(sum(vapply(draws, posterior::mcse_sd, 0)^2))
    expect_lt(abs(sd(draws[[1]]) - sd(draws[[2]])), 5 * error)
  }
})

test_that("the regression's samplers have the same posterior under NUTS", {
  skip_on_cran()
  statistic <- stat_crossprod(y ~ x1 + x2, list(y = c(-8, 8), x1 = c(-6, 6), x2 = c(-6, 6)))
  set.seed(74)
  truth <- model_lm(prior = fixed(c(0.5, 1, 0)), sigma = fixed(1), covariates = fixed(list(mean = c(0, 0), cov = diag(2))))
  release <- simulate_release(truth, statistic, mech_laplace(epsilon = 0.1), n = 1000)
  fits <- lapply(c("nuts", "noncentred"), function(sampler) {
    suppressWarnings(sample_posterior(release, model_lm(), method = "clt", chains = 2, iter = 1800, seed = 3,
                                      control = list(sampler = sampler, conjugate = FALSE)))
  })
  for (name in posterior::variables(fits[[1]]$draws)) {
    values <- lapply(fits, function(f) posterior::extract_variable_matrix(f$draws, name))
    for (at in c(0.1, 0.5, 0.9)) {
      point <- quantile(values[[2]], at)
      shares <- lapply(values, function(v) (v < point) * 1)
      error <- sqrt(sum(vapply(shares, posterior::mcse_mean, 0)^2))
      expect_lt(abs(mean(shares[[1]]) - mean(shares[[2]])), 5 * error)
    }
  }
})

test_that("chains of default calls find the mode, however many records and however little noise", {
  skip_on_cran()
  for (case in list(c(1e5, 10), c(1e5, 1), c(1e6, 20))) {
    fit <- suppressWarnings(sample_posterior(logistic_release(case[1], case[2]), model_logistic(), method = "clt", chains = 4, iter = 600, seed = 1))
    draws <- posterior::as_draws_array(fit)
    names <- posterior::variables(draws)
    expect_lt(max(vapply(names, function(v) posterior::rhat(posterior::extract_variable_matrix(draws, v)), 0)), 1.03)
    # the prior is nothing next to so many records, and neither is the noise next to their own variation
    coefficients <- posterior::subset_draws(draws, variable = c("(Intercept)", "a", "b"))
    expect_lt(max(abs(apply(coefficients, 3, mean) - c(-0.5, 0.8, -0.6)) / apply(coefficients, 3, sd)), 5)
    expect_lt(max(apply(coefficients, 3, sd)) * sqrt(case[1]), 6)
  }
})

test_that("a run goes on bit for bit, and a seed fixes it", {
  release <- logistic_release(200, 1)
  run <- function(iter) suppressWarnings(sample_posterior(release, model_logistic(), method = "clt", chains = 1, iter = iter, warmup = 50, seed = 5))
  whole <- run(150)
  expect_identical(suppressWarnings(extend(run(100), 50))$draws, whole$draws)
})

test_that("what it cannot do is refused", {
  release <- logistic_release(200, 1)
  expect_error(sample_posterior(release, model_logistic(), method = "clt", control = list(sampler = "gibbs")), class = "noiseaware_error_argument")
  statistic <- stat_crossprod(y ~ a + f, list(y = c(FALSE, TRUE), a = c(-6, 6), f = c("u", "v")))
  factors <- as_release(numeric(length(statistic$components)), statistic, mech_laplace(epsilon = 1), 100)
  expect_error(sample_posterior(factors, model_logistic(), method = "clt"), "factor", class = "noiseaware_error_method")
})
