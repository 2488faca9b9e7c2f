# Families of responses other than the logit (test-model_logistic.R): hooks, updates against grids, the
# sampler against enumeration and quadrature, joint-distribution tests.

glm_cases <- list(
  probit = list(family = binomial("probit"), y = c(FALSE, TRUE)),
  cloglog = list(family = binomial("cloglog"), y = c(FALSE, TRUE)),
  poisson = list(family = poisson(), y = c(0, 6)),
  negative_binomial = list(family = family_object("negative_binomial"), y = c(0, 6), cv = 0.8),
  gamma = list(family = Gamma("log"), y = c(0, 6), cv = 0.6)
)
glm_discrete <- glm_cases[names(glm_cases) != "gamma"]
glm_shaped <- Filter(function(case) !is.null(case$cv), glm_cases)
# where there is a coefficient of variation it is known, unless `cv` is given
glm_model <- function(case, ..., cv = fixed(case$cv)) {
  if (is.null(case$cv)) model_glm(family = case$family, ...) else model_glm(family = case$family, cv = cv, ...)
}
# responses as the bounds clamp them, and their probabilities
glm_values <- function(case) seq(0, max(case$y))
glm_clamped <- function(case, y, eta) {
  if (case$family$family == "binomial" || y < 6) glm_density(case, y, eta) else 1 - glm_below(case, 5, eta)
}
# density of y where the linear predictor is eta, y and eta of one shape
glm_density <- function(case, y, eta, cv = case$cv) {
  mean <- case$family$linkinv(eta)
  switch(case$family$family, poisson = stats::dpois(y, mean), negative_binomial = stats::dnbinom(y, size = cv^-2, mu = mean),
         Gamma = stats::dgamma(y, cv^-2, cv^-2 / mean), y * mean + (1 - y) * (1 - mean))
}
glm_below <- function(case, y, eta, cv = case$cv) {
  mean <- case$family$linkinv(eta)
  switch(case$family$family, poisson = stats::ppois(y, mean), negative_binomial = stats::pnbinom(y, size = cv^-2, mu = mean),
         Gamma = stats::pgamma(y, cv^-2, cv^-2 / mean), ifelse(y < 0, 0, ifelse(y > 0, 1, 1 - mean)))
}
glm_bind <- function(case, ...) {
  statistic <- stat_crossprod(y ~ x + g, list(y = case$y, x = c(-2, 4), g = c("a", "b", "c")))
  internal("bind_model")(glm_model(case, ...), statistic)
}
glm_stream <- function(seed) internal("new_stream")(c(29, seed))
glm_theta <- function(bound, count, seed = 1) .Call(internal("ffi_model_prior"), bound$spec, glm_stream(seed), as.integer(count))$theta
glm_records <- function(bound, theta, n, seed = 2) .Call(internal("ffi_model_records"), bound$spec, theta, as.integer(n), glm_stream(seed))$records
# columns: y, x, dummies of g
glm_eta <- function(bound, theta, records) {
  drop(cbind(1, records[, 2:4]) %*% internal("reported")(bound, theta)[1, 1:4])
}
# uniform numbers of which the responses are quantiles, drawn where there are many
glm_uniform <- function(case, y, eta, cv = case$cv) {
  if (case$family$family == "Gamma") return(glm_below(case, y, eta, cv))
  if (case$family$family == "binomial") {
    # y is 1 for small ones
    p <- case$family$linkinv(eta)
    return(ifelse(y > 0, p * runif(length(y)), p + (1 - p) * runif(length(y))))
  }
  glm_below(case, y - 1, eta, cv) + glm_density(case, y, eta, cv) * runif(length(y))
}

test_that("responses have the distribution of their family, fresh, moved and partly refreshed", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(31)
  for (case in glm_cases) {
    bound <- glm_bind(case)
    theta <- glm_theta(bound, 2, seed = 3)
    theta[, 2] <- theta[, 1] + 0.3 * (theta[, 2] - theta[, 1])
    from <- glm_records(bound, theta[, 1], 20000)
    eta <- glm_eta(bound, theta[, 1], from)
    expect_gt(ks.test(glm_uniform(case, from[, 1], eta), "punif")$p.value, 1e-6)
    to <- .Call(internal("ffi_model_move"), bound$spec, theta[, 1], theta[, 2], from, glm_stream(4))
    eta_to <- glm_eta(bound, theta[, 2], to)
    expect_gt(ks.test(glm_uniform(case, to[, 1], eta_to), "punif")$p.value, 1e-6)
    # the same innovation: the response cannot fall where its distribution has moved up
    up <- if (case$family$link == "log") eta_to >= eta else case$family$linkinv(eta_to) >= case$family$linkinv(eta)
    expect_true(all(to[up, 1] >= from[up, 1]) && all(to[!up, 1] <= from[!up, 1]))
    back <- .Call(internal("ffi_model_move"), bound$spec, theta[, 2], theta[, 1], to, glm_stream(5))
    expect_equal(back[, 2], from[, 2], tolerance = 1e-9)
    expect_gt(ks.test(glm_uniform(case, back[, 1], glm_eta(bound, theta[, 1], back)), "punif")$p.value, 1e-6)
    for (rho in c(0.3, 0.9)) {
      fresh <- .Call(internal("ffi_model_refresh"), bound$spec, theta[, 1], rho, from, glm_stream(6))$records
      expect_gt(ks.test(glm_uniform(case, fresh[, 1], glm_eta(bound, theta[, 1], fresh)), "punif")$p.value, 1e-6)
      # reversible: as many pairs (a, b) as (b, a)
      pair <- table(factor(floor(pmin(from[, 1], 6)), 0:6), factor(floor(pmin(fresh[, 1], 6)), 0:6))
      off <- upper.tri(pair) & pair + t(pair) > 10
      expect_gt(pchisq(sum((pair - t(pair))[off]^2 / (pair + t(pair))[off]), sum(off), lower.tail = FALSE), 1e-6)
    }
  }
})

test_that("rates may be small, large and beyond any bound", {
  statistic <- stat_crossprod(y ~ 1, list(y = c(0, 2000)))
  for (rate in c(1e-3, 0.7, 99, 101, 5000)) {
    model <- model_glm(family = poisson(), prior = fixed(log(rate)))
    bound <- internal("bind_model")(model, statistic)
    y <- glm_records(bound, .Call(internal("ffi_model_prior"), bound$spec, glm_stream(1), 1L)$theta[, 1], 20000)[, 1]
    expect_gt(ks.test(ppois(y - 1, rate) + dpois(y, rate) * runif(20000), "punif")$p.value, 1e-6)
  }
  bound <- internal("bind_model")(model_glm(family = poisson(), prior = fixed(800)), statistic)
  y <- glm_records(bound, .Call(internal("ffi_model_prior"), bound$spec, glm_stream(1), 1L)$theta[, 1], 100)[, 1]
  expect_true(all(is.finite(y)) && min(y) > 2000)
})

test_that("the coefficients given the records have the posterior on a grid", {
  skip_on_cran()
  set.seed(33)
  b0 <- seq(-5, 5, length.out = 201)
  b1 <- seq(-4, 4, length.out = 201)
  for (case in glm_cases) {
    data <- data.frame(x = rnorm(12, 1, 1.2))
    eta <- -0.5 + 0.8 * data$x
    y <- switch(case$family$family, Gamma = rgamma(12, 3, 3 / exp(eta)), binomial = rbinom(12, 1, case$family$linkinv(eta)), rpois(12, exp(eta)))
    data$y <- if (is.logical(case$y)) y == 1 else y
    log_density <- outer(dnorm(b0, 0.5, 1.5, log = TRUE), dnorm(b1, -0.3, 1, log = TRUE), "+")
    for (i in 1:12) log_density <- log_density + log(pmax(glm_density(case, y[i], outer(b0, b1 * data$x[i], "+")), 1e-300))
    density <- exp(log_density - max(log_density))
    model <- glm_model(case, prior = prior_normal(c(0.5, -0.3), c(1.5, 1)))
    fit <- nonprivate_posterior(data, model, stat_crossprod(y ~ x, list(y = case$y, x = c(-2, 6))), chains = 2, iter = 4200, warmup = 1000, thin = 2, seed = 1)
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
    expect_distribution(parameter_draws(fit, "x"), grid_quantile(b1, colSums(density)), sum(colSums(density) * b1) / sum(density))
    expect_same_mean(parameter_draws(fit, "(Intercept)") * parameter_draws(fit, "x"), sum(density * outer(b0, b1)) / sum(density))
  }
})

glm_samplers <- function(release, model, iter = 2300) {
  lapply(list(list(passes = 0), list(passes = 2)), function(control) {
    sample_posterior(release, model, method = "augment", chains = 2, iter = iter, warmup = 1200, seed = 12, control = control)
  })
}

test_that("one record with a covariate: quadrature", {
  skip_on_cran()
  x <- seq(-4, 4.6, length.out = 121)
  b0 <- seq(-5, 6, length.out = 81)
  b1 <- seq(-5, 6, length.out = 81)
  grid <- expand.grid(b0 = b0, b1 = b1)
  for (case in glm_discrete) {
    st <- stat_crossprod(y ~ x, list(y = case$y, x = c(-1, 1.5)))
    states <- expand.grid(x = x, y = glm_values(case))[2:1]
    s <- r_components(st, as.matrix(states))
    rel <- as_release(stats::setNames(rep(0.4, ncol(s)), st$components), st, mech_laplace(scale = 0.4), 1)
    weight <- exp(log_noise("absolute", unname(rel$scale), unname(rel$value), s)) * dnorm(states$x, 0.3, sqrt(1.2))
    density <- dnorm(grid$b0, 0.5, 1) * dnorm(grid$b1, 1, 1.2)
    likelihood <- numeric(nrow(grid))
    for (k in seq_len(nrow(states))) likelihood <- likelihood + weight[k] * glm_clamped(case, states$y[k], grid$b0 + grid$b1 * states$x[k])
    density <- matrix(density * likelihood, 81)
    model <- glm_model(case, prior = prior_normal(c(0.5, 1), c(1, 1.2)), covariates = fixed(list(mean = 0.3, cov = matrix(1.2))))
    for (fit in glm_samplers(rel, model)) {
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
      expect_distribution(parameter_draws(fit, "x"), grid_quantile(b1, colSums(density)), sum(colSums(density) * b1) / sum(density))
    }
  }
})

test_that("two records with a factor: enumeration", {
  skip_on_cran()
  b0 <- seq(-6, 6, length.out = 81)
  b1 <- seq(-6, 7, length.out = 81)
  grid <- expand.grid(b0 = b0, b1 = b1)
  for (case in glm_discrete) {
    st <- stat_crossprod(y ~ g, list(y = case$y, g = c("a", "b")))
    states <- as.matrix(expand.grid(y = glm_values(case), g = 0:1))
    s <- r_components(st, states)
    rel <- as_release(stats::setNames(rep(0.7, ncol(s)), st$components), st, mech_gaussian(sd = 0.6), 2)
    k <- nrow(states)
    pair <- s[rep(seq_len(k), k), , drop = FALSE] + s[rep(seq_len(k), each = k), , drop = FALSE]
    noise <- matrix(exp(log_noise("squared", unname(rel$scale), unname(rel$value), pair)), k)
    # probabilities of levels integrated out: Beta(3, 2) of level b
    share <- function(number) beta(3 + number, 4 - number) / beta(3, 2)
    noise <- noise * share(outer(states[, "g"], states[, "g"], "+"))
    f <- vapply(seq_len(k), function(i) glm_clamped(case, states[i, "y"], grid$b0 + grid$b1 * states[i, "g"]), numeric(nrow(grid)))
    density <- matrix(rowSums((f %*% noise) * f) * dnorm(grid$b0, 0, 1.2) * dnorm(grid$b1, 0.5, 1.5), 81)
    model <- glm_model(case, prior = prior_normal(c(0, 0.5), c(1.2, 1.5)), levels = prior_dirichlet(c(2, 3)))
    for (fit in glm_samplers(rel, model)) {
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
      expect_distribution(parameter_draws(fit, "gb"), grid_quantile(b1, colSums(density)), sum(colSums(density) * b1) / sum(density))
    }
  }
})

test_that("responses keep their distribution where the coefficient of variation moves", {
  set.seed(39)
  statistic <- stat_crossprod(y ~ 1, list(y = c(0, 60)))
  for (case in glm_shaped) {
    bound <- internal("bind_model")(glm_model(case, prior = prior_normal(0, 1), cv = prior_half_normal(1)), statistic)
    # pairs of (intercept, log cv), near and far, narrow and wide
    for (pair in list(c(0.8, 0.1, 1, 0.3), c(1, 0.6, 1, 0.62), c(0.5, 1.3, 0.8, 0.9), c(0.5, 1.5, 0.5, 2.2))) {
      one <- c(pair[1], log(pair[2]))
      other <- c(pair[3], log(pair[4]))
      from <- glm_records(bound, one, 20000)
      expect_gt(ks.test(glm_uniform(case, from[, 1], pair[1], pair[2]), "punif")$p.value, 1e-6)
      to <- .Call(internal("ffi_model_move"), bound$spec, one, other, from, glm_stream(7))
      expect_gt(ks.test(glm_uniform(case, to[, 1], pair[3], pair[4]), "punif")$p.value, 1e-6)
      # and the joint distribution is the same from either side
      from_back <- glm_records(bound, other, 20000, seed = 8)
      back <- .Call(internal("ffi_model_move"), bound$spec, other, one, from_back, glm_stream(9))
      cells <- function(y, cut) findInterval(y, cut)
      cut <- stats::quantile(c(from[, 1], back[, 1]), c(0.2, 0.4, 0.6, 0.8))
      cut_new <- stats::quantile(c(to[, 1], from_back[, 1]), c(0.2, 0.4, 0.6, 0.8))
      forth <- paste(cells(from[, 1], cut), cells(to[, 1], cut_new))
      converse <- paste(cells(back[, 1], cut), cells(from_back[, 1], cut_new))
      both <- table(rep(1:2, each = 20000), c(forth, converse))
      both <- both[, colSums(both) > 20]
      expect_gt(suppressWarnings(chisq.test(both))$p.value, 1e-6)
      # most of the innovation is kept, of counts that are not mostly 0
      if (pair[2] < 1) expect_gt(cor(from[, 1], to[, 1], method = "spearman"), 0.8)
    }
  }
})

test_that("one and two records of unknown coefficient of variation: quadrature", {
  skip_on_cran()
  b0 <- seq(-4, 4.5, length.out = 81)
  cv <- seq(1e-4, 3.6, length.out = 91)
  grid <- expand.grid(b0 = b0, cv = cv)
  st <- stat_crossprod(y ~ 1, list(y = c(0, 6)))
  for (case in glm_shaped) {
    # cells of y, the last one clamped
    step <- if (case$family$family == "Gamma") 0.04 else 1
    y <- if (step == 1) 0:6 else c(seq(step / 2, 6, by = step), 6)
    above <- if (step == 1) c(0:5, Inf) else c(seq(step, 6, by = step), Inf)
    below <- vapply(above, function(end) if (is.finite(end)) glm_below(case, end, grid$b0, grid$cv) else rep(1, nrow(grid)), numeric(nrow(grid)))
    f <- below - cbind(0, below[, -ncol(below)])
    s <- r_components(st, matrix(y))
    prior <- dnorm(grid$b0, 0.5, 1) * dnorm(grid$cv, 0, 0.8)
    model <- glm_model(case, prior = prior_normal(0.5, 1), cv = prior_half_normal(0.8))
    for (n in 1:2) {
      rel <- as_release(stats::setNames(c(-0.3, 0.4)[seq_len(ncol(s))] * n, st$components), st, mech_gaussian(sd = 0.4), n)
      k <- length(y)
      total <- if (n == 1) s else s[rep(seq_len(k), k), , drop = FALSE] + s[rep(seq_len(k), each = k), , drop = FALSE]
      noise <- exp(log_noise("squared", unname(rel$scale), unname(rel$value), total))
      likelihood <- if (n == 1) drop(f %*% noise) else rowSums((f %*% matrix(noise, k)) * f)
      density <- matrix(likelihood * prior, length(b0))
      of_cv <- colSums(density) * replace(rep(1, length(cv)), 1, 0.5)
      for (fit in glm_samplers(rel, model)) {
        expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
        expect_distribution(parameter_draws(fit, "cv"), grid_quantile(cv, colSums(density)), sum(of_cv * cv) / sum(of_cv))
      }
    }
  }
})

test_that("the coefficient of variation given the records is that of a grid, near that of glm(), wide and narrow", {
  skip_on_cran()
  set.seed(40)
  for (size in c(3, 40)) {
    mean <- if (size == 3) 4 else 90 # large counts have a density of their own
    b0 <- log(mean) + seq(-1, 1, length.out = 101) * 2.5 / size^0.5
    cv <- seq(0.05, 2, length.out = 101) * 1.8 / size^0.5
    grid <- expand.grid(b0 = b0, cv = cv)
    for (case in glm_shaped) {
      y <- if (case$family$family == "Gamma") rgamma(40, size, size / mean) else rnbinom(40, size = size, mu = mean)
      log_density <- dnorm(grid$b0, log(mean), 1, log = TRUE) + dnorm(grid$cv, 0, 1, log = TRUE)
      for (value in y) log_density <- log_density + log(glm_density(case, value, grid$b0, grid$cv))
      density <- matrix(exp(log_density - max(log_density)), 101)
      model <- glm_model(case, prior = prior_normal(log(mean), 1), cv = prior_half_normal(1))
      fit <- nonprivate_posterior(data.frame(y = y), model, stat_crossprod(y ~ 1, list(y = c(0, 60))), chains = 2, iter = 1900, warmup = 700, seed = 1)
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
      expect_distribution(parameter_draws(fit, "cv"), grid_quantile(cv, colSums(density)), sum(colSums(density) * cv) / sum(density))
      expect_lt(abs(mean(parameter_draws(fit, "(Intercept)")) - log(mean(y))), 0.05)
    }
  }
})

test_that("where the shape is uncertain an iteration walks, whatever warmup saw of it", {
  walks <- function(sd) {
    st <- stat_crossprod(y ~ x, list(y = c(0, 6), x = c(-2, 2)))
    model <- model_glm(family = Gamma("log"), cv = prior_half_normal(0.5))
    set.seed(39)
    x <- rnorm(100)
    release <- simulate_release(data.frame(y = rgamma(100, 4, 4 / exp(0.5 + 0.3 * x)), x = x), st, mech_laplace(scale = sd))
    fit <- suppressWarnings(sample_posterior(release, model, method = "augment", chains = 2, iter = 410, warmup = 400, seed = 1))
    vapply(fit$chains, function(chain) sum(chain$state$adapt[c(1, 3)]), 0)
  }
  expect_gte(min(walks(30)), 6)
  expect_lt(min(walks(0.01)), 6)
})

test_that("without noise the posterior is that of the records, with noise alone the prior", {
  skip_on_cran()
  set.seed(36)
  st <- stat_crossprod(y ~ g, list(y = c(0, 40), g = c("a", "b")), rescale = FALSE)
  data <- data.frame(y = rpois(40, rep(c(2, 5), c(15, 25))), g = rep(c("a", "b"), c(15, 25)))
  model <- model_glm(family = poisson(), prior = prior_normal(1, 1))
  # totals of y in each group, and how many records it has, are all that the posterior depends on
  little <- mech_laplace(scale = ifelse(st$components == "y^2", 1000, 0.15))
  release <- as_release(colSums(r_components(st, cbind(data$y, data$g == "b"))), st, little, 40)
  # from a prior draw one chain in twenty ends with records whose totals no change of a single one brings nearer
  start <- c(`(Intercept)` = 0.7, gb = 0.9, `prob[g=a]` = 0.4, `prob[g=b]` = 0.6)
  exact <- sample_posterior(release, model, method = "augment", chains = 2, iter = 1600, warmup = 800, seed = 2, init = start)
  b0 <- seq(-1, 2.5, length.out = 301)
  b1 <- seq(-1, 3, length.out = 301)
  log_density <- outer(dnorm(b0, 1, 1, log = TRUE), dnorm(b1, 1, 1, log = TRUE), "+") +
    outer(sum(data$y) * b0 - 15 * exp(b0), sum(data$y[-(1:15)]) * b1, "+") - 25 * exp(outer(b0, b1, "+"))
  density <- exp(log_density - max(log_density))
  expect_distribution(parameter_draws(exact, "(Intercept)"), grid_quantile(b0, rowSums(density)))
  expect_distribution(parameter_draws(exact, "gb"), grid_quantile(b1, colSums(density)))
  for (case in glm_cases) {
    st <- stat_crossprod(y ~ x, list(y = case$y, x = c(-2, 2)))
    model <- glm_model(case, prior = prior_normal(c(0.3, 1), c(1, 0.5)), cv = prior_half_normal(0.5))
    fit <- sample_posterior(simulate_release(model, st, mech_laplace(scale = 1e6), n = 20), model, method = "augment", chains = 2, iter = 700, seed = 1)
    expect_distribution(parameter_draws(fit, "(Intercept)"), function(p) qnorm(p, 0.3, 1))
    expect_distribution(parameter_draws(fit, "x"), function(p) qnorm(p, 1, 0.5))
    if (!is.null(case$cv)) expect_distribution(parameter_draws(fit, "cv"), function(p) 0.5 * qnorm((1 + p) / 2))
  }
})

test_that("joint-distribution test: sweeps, moves and surrogate transitions", {
  skip_on_cran()
  set.seed(37)
  for (case in glm_cases) {
    st <- stat_crossprod(y ~ x + g, list(y = case$y, x = c(-2, 2), g = c("a", "b", "c")))
    model <- glm_model(case, prior = prior_normal(c(0.3, 0.2, 0, 0.5), 0.7), cv = prior_inverse_gamma(4, 2), covariates = prior_niw(0.5, 2, 2, 6), levels = prior_dirichlet(2))
    bound <- internal("bind_model")(model, st)
    prior <- internal("reported")(bound, glm_theta(bound, 5e4, seed = 41))
    for (passes in c(if (is.null(case$cv)) 0, 2)) expect_prior(geweke(model, st, mech_laplace(scale = 1), 5, 2600, passes), prior)
    draws <- geweke(model, st, mech_laplace(epsilon = 6), n = 12, iterations = 1400, passes = NULL, warmup = 300L)
    expect_prior(draws[, c("(Intercept)", "x", "gb", if (!is.null(case$cv)) "cv", "mean[x]", "cov[x,x]")], prior)
  }
})

test_that("surrogate transitions have the posterior of the plain sampler where bounds bind", {
  skip_on_cran()
  set.seed(38)
  narrow <- prior_niw(kappa = 1 / 4, scale = (c(1, 1.25) / 4)^2, df = 4) # the plain sampler seldom leaves long tails
  for (case in glm_discrete) {
    st <- stat_crossprod(y ~ x1 + x2, list(y = if (is.logical(case$y)) case$y else c(0, 4), x1 = c(-1, 1), x2 = c(-1.5, 1)))
    truth <- glm_model(case, prior = fixed(c(0.5, 0.6, -0.5)), covariates = fixed(list(mean = c(0, 0.3), cov = diag(0.4, 2))))
    # quantiles of negative binomial counts take long
    release <- if (is.null(case$cv)) simulate_release(truth, st, mech_laplace(epsilon = 2), n = 60) else
      simulate_release(truth, st, mech_laplace(epsilon = 4), n = 40)
    fit <- function(control, iter) {
      suppressWarnings(sample_posterior(release, model_glm(family = case$family, covariates = narrow), method = "augment", chains = 2, iter = iter, seed = 5, control = control))
    }
    moved <- fit(list(), 900)
    expect_true(all(acceptance(moved)$moved > 0.1 & acceptance(moved)$responded > 0.1))
    expect_same_quantiles(moved$draws, fit(list(passes = 8), 1000)$draws)
  }
})

test_that("a run continues bit for bit; fits predict and simulate", {
  skip_on_cran() # takes long; `make test` runs it
  for (case in glm_cases) {
    st <- stat_crossprod(y ~ x + g, list(y = case$y, x = c(-2, 2), g = c("a", "b")))
    set.seed(51)
    rel <- simulate_release(glm_model(case), st, mech_laplace(epsilon = 5), n = 60)
    run <- function(iter) suppressWarnings(sample_posterior(rel, model_glm(family = case$family), method = "augment", chains = 2, iter = iter, warmup = 100, seed = 1))
    fit <- run(130)
    expect_identical(posterior::as_draws_array(suppressWarnings(extend(fit, 20))), posterior::as_draws_array(run(150)))
    new <- data.frame(x = c(-1, 1), g = c("a", "b"))
    expected <- predict(fit, new, type = "expected")
    beta <- internal("coefficient_draws")(fit)
    expect_equal(expected, unname(case$family$linkinv(beta %*% rbind(1, c(-1, 1), 0:1))), tolerance = 1e-12)
    drawn <- predict(fit, new, type = "draws", seed = 2)
    expect_true(all((drawn == round(drawn) | case$family$family == "Gamma") & drawn >= 0))
    expect_identical(dim(simulate(fit, seed = 3)[[1]]), c(60L, 3L))
    expect_match(capture.output(print(fit))[1], internal("glm_families")[[if (is.logical(case$y)) case$family$link else tolower(case$family$family)]]$text)
    said <- rstantools::prior_summary(fit)
    expect_match(said$prior[said$variable == "x"], "^normal\\(0, ")
    if (!is.null(case$cv)) expect_identical(said$prior[said$variable == "cv"], "half_normal(1)")
  }
})

test_that("the default prior is what the help says, on the scale of the bounds", {
  st <- stat_crossprod(y ~ x + g, list(y = c(0, 60), x = c(10, 20), g = c("a", "b")))
  bound <- internal("bind_model")(model_glm(family = poisson()), st)
  draws <- internal("reported")(bound, glm_theta(bound, 1e5))
  expect_gt(ks.test(draws[, "x"], "pnorm", 0, 2 / sqrt(2) / 5)$p.value, 1e-6)
  expect_gt(ks.test(draws[, "gb"], "pnorm", 0, 1 / sqrt(2))$p.value, 1e-6)
  expect_gt(ks.test(draws[, "(Intercept)"] + 15 * draws[, "x"], "pnorm", log(10), 1.5)$p.value, 1e-6)
  st <- stat_crossprod(y ~ x + g, list(y = c(FALSE, TRUE), x = c(10, 20), g = c("a", "b")))
  bound <- internal("bind_model")(model_glm(family = binomial("cloglog")), st)
  draws <- internal("reported")(bound, glm_theta(bound, 1e5))
  expect_gt(ks.test(draws[, "(Intercept)"] + 15 * draws[, "x"], "pnorm", log(log(2)), 1.7)$p.value, 1e-6)
})

test_that("families of a known size, and what says them", {
  skip_if_not_installed("MASS")
  expect_equal(model_glm(family = MASS::negative.binomial(4, "log"))$cv$value, 0.5)
  expect_identical(model_glm(family = Gamma), model_glm(family = Gamma("log"), cv = prior_half_normal(1)))
  expect_error(model_glm(family = MASS::negative.binomial(4, "sqrt")), class = "noiseaware_error_family")
  expect_match(format(model_glm(family = "negative_binomial")), "^  cv +half_normal", all = FALSE)
})

test_that("model_logistic() is the family binomial(), however that is given", {
  expect_identical(model_glm(y ~ x), model_logistic(y ~ x))
  for (family in list(binomial(), binomial, "binomial", stats::binomial("logit"))) expect_identical(model_glm(y ~ x, family), model_logistic(y ~ x))
  expect_identical(class(model_glm(family = poisson))[1], "model_glm")
  expect_identical(format(model_glm(y ~ x, poisson()))[1:2], c("<model> Poisson regression", "  formula       y ~ x"))
})

test_that("what does not fit is refused", {
  family <- function(code) expect_error(code, class = "noiseaware_error_family")
  family(model_glm(family = Gamma("inverse")))
  family(model_glm(family = binomial("cauchit")))
  family(model_glm(family = poisson("sqrt")))
  family(model_glm(family = "poison"))
  family(model_glm(family = 3))
  family(model_glm(family = mean))
  prior <- function(code) expect_error(code, class = "noiseaware_error_prior")
  prior(model_glm(family = poisson(), cv = fixed(1)))
  prior(model_glm(family = Gamma("log"), cv = fixed(-1)))
  prior(model_glm(family = Gamma("log"), cv = 2))
  prior(model_glm(family = Gamma("log"), prior = fixed(1)))
  expect_error(model_glm(~ x, poisson()), class = "noiseaware_error_formula")
  expect_error(model_glm(family = poisson(), prior = prior_nig()), class = "noiseaware_error_prior")
  bind <- function(family, y) internal("bind_model")(model_glm(family = family), stat_crossprod(y ~ x, list(y = y, x = c(-1, 1))))
  misfit <- function(code, text) expect_error(code, text, class = "noiseaware_error_variables")
  misfit(bind(poisson(), c("a", "b")), "poisson")
  misfit(bind(poisson(), c(-1, 4)), "poisson")
  misfit(bind(poisson(), c(0, 0.5)), "poisson")
  misfit(bind(binomial("probit"), c(0, 4)), "binomial")
  misfit(bind(Gamma("log"), c(-1, 4)), "Gamma")
  misfit(bind("negative_binomial", c(0, 0.5)), "negative_binomial")
  statistic <- stat_crossprod(y ~ cv, list(y = c(0, 4), cv = c(-1, 1)))
  misfit(internal("bind_model")(model_glm(family = "negative_binomial"), statistic), "cv")
})

test_that("of a large rate no number is left out that is likelier than one in a million", {
  rate <- 400
  bound <- internal("bind_model")(model_glm(family = poisson(), prior = fixed(log(rate))), stat_crossprod(y ~ 1, list(y = c(0, 2000))))
  count <- 4e5
  y <- glm_records(bound, .Call(internal("ffi_model_prior"), bound$spec, glm_stream(1), 1L)$theta[, 1], count)[, 1]
  for (tail in c(1e-3, 1e-4)) {
    at <- qpois(tail, rate)
    p <- ppois(at, rate)
    expect_lt(abs(mean(y <= at) - p), 5 * sqrt(p / count))
    expect_lt(abs(mean(y > qpois(tail, rate, lower.tail = FALSE)) - ppois(qpois(tail, rate, lower.tail = FALSE), rate, lower.tail = FALSE)), 5 * sqrt(tail / count))
  }
  # beyond five standard deviations, where one in four million is: by the place of a number among its probabilities
  expect_true(min(y) < qpois(2e-5, rate))
})
