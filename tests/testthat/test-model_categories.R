covariate_grid <- internal("covariate_grid")

# Responses of several levels: hooks, updates against direct computation, the sampler against all databases of one and two records
# with the parameters summed over draws of their prior, limits of noise, joint-distribution tests.

category_levels <- c("low", "mid", "high", "top")
category_families <- list(logit = family_object("cumulative"), probit = family_object("cumulative_probit"), categorical = family_object("categorical"))

# P(y = level) of a vector of linear predictors: records x levels; `theta`: a draw as it is reported
category_probabilities <- function(family, theta, x, levels = category_levels) {
  k <- length(levels)
  if (family$family == "cumulative") {
    eta <- drop(x %*% theta[k - 1 + seq_len(ncol(x))])
    below <- cbind(0, family$linkinv(outer(-eta, theta[seq_len(k - 1)], "+")), 1)
    return(below[, -1, drop = FALSE] - below[, -(k + 1), drop = FALSE])
  }
  eta <- cbind(0, cbind(1, x) %*% matrix(theta[seq_len((ncol(x) + 1) * (k - 1))], ncol(x) + 1))
  exp(eta) / rowSums(exp(eta))
}
# of one vector of covariates and all draws, a row each: draws x levels
probabilities_of_draws <- function(family, draws, x, levels) {
  k <- length(levels)
  slopes <- function(from) drop(draws[, from + seq_along(x), drop = FALSE] %*% x)
  if (family$family == "cumulative") {
    below <- cbind(0, family$linkinv(draws[, seq_len(k - 1)] - slopes(k - 1)), 1)
    return(below[, -1] - below[, -(k + 1)])
  }
  eta <- cbind(0, vapply(seq_len(k - 1), function(e) draws[, (e - 1) * (length(x) + 1) + 1] + slopes((e - 1) * (length(x) + 1) + 1), numeric(nrow(draws))))
  exp(eta) / rowSums(exp(eta))
}
category_stream <- function(seed) internal("new_stream")(c(31, seed))
wide_category <- stat_crossprod(y ~ x + g, list(y = category_levels, x = c(-2, 4), g = c("a", "b", "c")))
category_bind <- function(family, statistic = wide_category, ...) internal("bind_model")(model_glm(family = family, ...), statistic)
category_theta <- function(bound, count, seed = 1) .Call(internal("ffi_model_prior"), bound$spec, category_stream(seed), as.integer(count))$theta
category_records <- function(bound, theta, n, seed = 2) .Call(internal("ffi_model_records"), bound$spec, theta, as.integer(n), category_stream(seed))$records
# uniform numbers that fall evenly where the response's level is, given its probabilities
category_uniform <- function(p, y) {
  below <- cbind(0, t(apply(p, 1, cumsum)))
  below[cbind(seq_along(y), y + 1)] + runif(length(y)) * p[cbind(seq_along(y), y + 1)]
}
category_codes <- function(records, dummies = 3) drop(records[, seq_len(dummies)] %*% seq_len(dummies))

test_that("responses have their probabilities, fresh, moved and partly refreshed", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(41)
  for (family in category_families) {
    bound <- category_bind(family)
    theta <- category_theta(bound, 2, seed = 3)
    theta[, 2] <- theta[, 1] + 0.3 * (theta[, 2] - theta[, 1])
    natural <- internal("reported")(bound, theta)
    expect_fits <- function(records, theta) {
      expect_true(all(rowSums(records[, 1:3]) %in% 0:1))
      p <- category_probabilities(family, theta, records[, 4:6])
      expect_equal(rowSums(p), rep(1, nrow(p)))
      expect_gt(ks.test(category_uniform(p, category_codes(records)), "punif")$p.value, 1e-6)
      invisible(p)
    }
    from <- category_records(bound, theta[, 1], 20000)
    expect_fits(from, natural[1, ])
    move <- function(a, b, records, seed) .Call(internal("ffi_model_move"), bound$spec, theta[, a], theta[, b], records, category_stream(seed))
    to <- move(1, 2, from, 4)
    p_to <- expect_fits(to, natural[2, ])
    # the same innovation: no response leaves for lower levels where all higher ones have become likelier
    tails <- function(p) 1 - t(apply(p, 1, cumsum))[, 1:3]
    up <- rowSums(tails(p_to) >= tails(category_probabilities(family, natural[1, ], from[, 4:6]))) == 3
    expect_true(all(category_codes(to)[up] >= category_codes(from)[up]))
    back <- move(2, 1, to, 5)
    expect_equal(back[, 4], from[, 4], tolerance = 1e-9)
    expect_fits(back, natural[1, ])
    for (rho in c(0.3, 0.9)) {
      fresh <- .Call(internal("ffi_model_refresh"), bound$spec, theta[, 1], rho, from, category_stream(6))$records
      expect_fits(fresh, natural[1, ])
      pair <- table(factor(category_codes(from), 0:3), factor(category_codes(fresh), 0:3))
      off <- upper.tri(pair) & pair + t(pair) > 10
      expect_gt(pchisq(sum((pair - t(pair))[off]^2 / (pair + t(pair))[off]), sum(off), lower.tail = FALSE), 1e-6)
    }
  }
})

test_that("products, powers and offsets: responses have their probabilities, given natural values of the coefficients", {
  set.seed(45)
  st <- stat_crossprod(y ~ x + g + w, list(y = category_levels, x = c(-2, 4), g = c("a", "b", "c"), w = c(-1, 1)))
  for (family in category_families) {
    bound <- category_bind(family, st, formula = y ~ x * g + I(x^2) + offset(w))
    theta <- category_theta(bound, 1, seed = 3)[, 1]
    natural <- internal("reported")(bound, theta)[1, ]
    expect_equal(internal("bound_theta")(bound, natural), theta)
    records <- category_records(bound, theta, 20000)
    data <- data.frame(x = records[, 4], g = factor(c("a", "b", "c")[1 + records[, 5:6] %*% 1:2]), w = records[, 7])
    slopes <- c("x", "gb", "gc", "I(x^2)", "x:gb", "x:gc")
    x <- cbind(stats::model.matrix(~ x * g + I(x^2), data)[, slopes], data$w)
    # the offset as a variable with the coefficient 1, in every predictor
    probabilities <- function(draw, x) {
      if (family$family == "cumulative") return(category_probabilities(family, unname(c(draw[1:3], draw[slopes], 1)), x))
      each <- lapply(category_levels[-1], function(l) c(draw[sprintf("%s[%s]", c("(Intercept)", slopes), l)], 1))
      category_probabilities(family, unname(unlist(each)), x)
    }
    expect_gt(ks.test(category_uniform(probabilities(natural, x), category_codes(records)), "punif")$p.value, 1e-6)
    rel <- as_release(rep(1, length(st$components)), st, mech_laplace(epsilon = 1), 20)
    fit <- suppressWarnings(sample_posterior(rel, bound$model, method = "augment", chains = 1, iter = 2, warmup = 1, seed = 1))
    draw <- as.matrix(as.data.frame(posterior::as_draws_df(fit$draws), check.names = FALSE))[1, ]
    expect_equal(predict(fit, data[1:5, ]), probabilities(draw, x[1:5, ]), ignore_attr = TRUE)
    known <- category_bind(family, st, formula = y ~ x * g + I(x^2) + offset(w), prior = fixed(as.numeric(natural[internal("coefficients_of")(bound)])))
    expect_equal(known$spec$fields$beta, theta[seq_along(known$spec$fields$beta)])
  }
})

test_that("records of codes are those of dummies, and coordinates lead to natural values and back", {
  codes <- stat_counts(~ y:g, levels = list(y = category_levels, g = c("a", "b")))
  dummies <- stat_crossprod(y ~ g, list(y = category_levels, g = c("a", "b")))
  for (family in category_families) {
    coded <- category_bind(family, codes, formula = y ~ g)
    plain <- category_bind(family, dummies, formula = y ~ g)
    theta <- category_theta(plain, 1)[, 1]
    expect_identical(coded$parameters, plain$parameters)
    of_codes <- category_records(coded, theta, 50)
    of_dummies <- category_records(plain, theta, 50)
    expect_identical(of_codes[, 1], category_codes(of_dummies))
    expect_identical(of_codes[, 2], of_dummies[, 4])
    expect_equal(internal("bound_theta")(plain, internal("reported")(plain, theta)[1, ]), theta)
  }
  bound <- category_bind("cumulative", dummies)
  values <- internal("reported")(bound, category_theta(bound, 1))[1, ]
  values[1:2] <- values[2:1]
  expect_error(internal("bound_theta")(bound, values), class = "noiseaware_error_argument")
})

test_that("the prior's density has its gradient, its draws the spread that it says", {
  set.seed(42)
  for (family in category_families) {
    for (prior in list(prior_normal(), prior_normal(c(`(Intercept)` = 0.4, x = 1), c(`(Intercept)` = 2, x = 0.7)))) {
      bound <- category_bind(family, prior = prior)
      theta <- category_theta(bound, 20000, seed = 7)
      natural <- internal("reported")(bound, theta)
      ordered <- family$family == "cumulative"
      slope <- natural[, if (ordered) "x" else "x[mid]"]
      wide <- if (family$link == "logit") c(2.5, 3) else c(1.5, 1.8)
      sd <- if (is.null(prior$sd)) wide[2] * 2 / (3 * sqrt(2)) else 0.7
      expect_gt(ks.test(slope, "pnorm", if (is.null(prior$mean)) 0 else 1, sd)$p.value, 1e-6)
      # thresholds in any order are independent: their mean; at the middle of x unless it is given
      first <- if (ordered) natural[, 1:3] else natural[, c("(Intercept)[mid]", "(Intercept)[high]", "(Intercept)[top]")]
      at_middle <- if (ordered) -natural[, "x"] else natural[, c("x[mid]", "x[high]", "x[top]")]
      if (is.null(prior$mean)) first <- first + at_middle
      sd <- if (!is.null(prior$sd)) 2 else wide[1]
      any <- first[cbind(seq_len(nrow(first)), sample(3, nrow(first), TRUE))]
      expect_gt(ks.test(any, "pnorm", if (is.null(prior$mean)) 0 else 0.4, sd)$p.value, 1e-6)
      if (ordered) expect_true(all(diff(t(natural[, 1:3])) > 0))
    }
  }
})

test_that("surrogates have the gradient of their density, of dense totals and of counts", {
  skip_on_cran()
  set.seed(43)
  statistics <- list(stat_crossprod(y ~ x + g, list(y = category_levels, x = c(-2, 4), g = c("a", "b"))),
                     stat_counts(~ y:g + y, levels = list(y = category_levels, g = c("a", "b"))))
  for (family in category_families) for (st in statistics) for (mechanism in list(mech_laplace(epsilon = 1), mech_gaussian(rho = 0.5))) {
    model <- model_glm(if (st$kind == "cells") y ~ g else y ~ x + g, family = family)
    rel <- simulate_release(model, st, mechanism, n = 200)
    fit <- suppressWarnings(sample_posterior(rel, model, method = "augment", chains = 1, iter = 40, seed = 3))
    at <- function(exact, q) .Call(internal("ffi_augment_density"), fit$problem, fit$chains[[1]]$state, exact, q)
    # of the coefficients, and of the totals with tied coefficients
    for (exact in c(NA, if (st$kind == "totals") c(TRUE, FALSE))) {
      here <- at(exact, numeric())
      size <- (length(here) - 1) / 2
      q <- here[-seq_len(size + 1)] + if (is.na(exact)) 0.1 else 0.01
      steps <- if (is.na(exact)) 1e-6 else 1e-6 * (1 + abs(q))
      expect_equal(at(exact, q)[1 + seq_len(size)], difference_slopes(function(q) at(exact, q), q, steps), tolerance = if (is.na(exact)) 1e-5 else 1e-4)
    }
  }
})

# All parameters by draws of their prior, weighted by what `likelihood` says of them.
expect_weighted <- function(fit, prior, likelihood) {
  share <- likelihood / sum(likelihood)
  for (name in colnames(prior)) for (power in 1:2) {
    exact <- sum(share * prior[, name]^power)
    error <- sqrt(sum(share^2 * (prior[, name]^power - exact)^2))
    found <- parameter_draws(fit, name)^power
    expect_lt(abs(mean(found) - exact) / sqrt(posterior::mcse_mean(found)^2 + error^2), 5, label = paste(name, power))
  }
}

category_samplers <- function(release, model, iter = 1400) {
  lapply(list(list(passes = 0), list()), function(control) {
    suppressWarnings(sample_posterior(release, model, method = "augment", chains = 2, iter = iter, warmup = 1000, seed = 12, control = control))
  })
}

test_that("one and two records with a factor: all databases", {
  skip_on_cran()
  levels <- category_levels[1:3]
  st <- stat_crossprod(y ~ g, list(y = levels, g = c("a", "b")))
  states <- cbind(mid = c(0, 1, 0, 0, 1, 0), high = c(0, 0, 1, 0, 0, 1), g = rep(0:1, each = 3))
  s <- r_components(st, states)
  for (family in category_families) {
    model <- model_glm(family = family, prior = prior_normal(sd = 1.5), levels = prior_dirichlet(c(2, 3)))
    bound <- category_bind(family, st, prior = prior_normal(sd = 1.5), levels = prior_dirichlet(c(2, 3)))
    prior <- prior_draws(model, st, 40000L)
    f <- do.call(cbind, lapply(0:1, function(g) probabilities_of_draws(family, prior, g, levels) * prior[, if (g == 1) "prob[g=b]" else "prob[g=a]"]))
    for (n in 1:2) {
      k <- nrow(s)
      total <- if (n == 1) s else s[rep(seq_len(k), k), ] + s[rep(seq_len(k), each = k), ]
      rel <- as_release(stats::setNames(rep(0.6, ncol(s)), st$components), st, mech_laplace(scale = 0.7), n)
      noise <- exp(log_noise("absolute", unname(rel$scale), unname(rel$value), total))
      likelihood <- if (n == 1) drop(f %*% noise) else rowSums((f %*% matrix(noise, k)) * f)
      for (fit in category_samplers(rel, model)) expect_weighted(fit, prior, likelihood)
    }
  }
})

test_that("one record with a number that the bounds clamp: quadrature over it", {
  skip_on_cran()
  levels <- category_levels[1:3]
  st <- stat_crossprod(y ~ x, list(y = levels, x = c(-1, 1.5)))
  x <- seq(-4, 4.6, length.out = 60)
  states <- cbind(mid = rep(c(0, 1, 0), each = 60), high = rep(c(0, 0, 1), each = 60), x = x)
  s <- r_components(st, states)
  rel <- as_release(stats::setNames(rep(0.4, ncol(s)), st$components), st, mech_laplace(scale = 0.4), 1)
  weight <- matrix(exp(log_noise("absolute", unname(rel$scale), unname(rel$value), s)) * dnorm(x, 0.3, sqrt(1.2)), 60)
  for (family in category_families) {
    model <- model_glm(family = family, prior = prior_normal(sd = 1.2), covariates = fixed(list(mean = 0.3, cov = matrix(1.2))))
    prior <- prior_draws(model, st, 15000L)
    likelihood <- 0
    for (i in seq_along(x)) likelihood <- likelihood + drop(probabilities_of_draws(family, prior, x[i], levels) %*% weight[i, ])
    for (fit in category_samplers(rel, model)) expect_weighted(fit, prior, likelihood)
  }
})

test_that("the coefficients given the records are the prior's, weighted", {
  skip_on_cran()
  set.seed(44)
  data <- data.frame(x = rnorm(12, 1, 1.2), y = factor(sample(category_levels[1:3], 12, TRUE), category_levels[1:3]))
  st <- stat_crossprod(y ~ x, list(y = category_levels[1:3], x = c(-2, 6)))
  for (family in category_families) {
    model <- model_glm(family = family, prior = prior_normal(sd = 0.8))
    prior <- prior_draws(model, st, 40000L)
    likelihood <- 1
    for (i in 1:12) likelihood <- likelihood * probabilities_of_draws(family, prior, data$x[i], category_levels[1:3])[, as.integer(data$y[i])]
    fit <- nonprivate_posterior(data, model, st, chains = 2, iter = 2000, warmup = 600, seed = 1)
    expect_weighted(fit, prior[, internal("coefficients_of")(fit$bound)], likelihood)
  }
})

test_that("with noise alone the posterior is the prior; records without noise have that of MASS::polr()", {
  skip_on_cran()
  for (family in category_families) {
    st <- stat_crossprod(y ~ x + g, list(y = category_levels, x = c(-2, 2), g = c("a", "b")))
    model <- model_glm(family = family, prior = prior_normal(sd = 0.7))
    set.seed(36)
    release <- simulate_release(model, st, mech_laplace(scale = 1e6), n = 20)
    fit <- suppressWarnings(sample_posterior(release, model, method = "augment", chains = 2, iter = 1400, seed = 1))
    draws <- vapply(internal("coefficients_of")(fit$bound), function(name) as.vector(parameter_draws(fit, name)), numeric(1400))
    expect_prior(draws, prior_draws(model, st, 1e5))
  }
  homes <- MASS::housing[rep(seq_len(72), MASS::housing$Freq), c("Sat", "Infl", "Cont")]
  st <- stat_crossprod(Sat ~ Infl + Cont, lapply(homes, levels))
  for (link in c("logistic", "probit")) {
    model <- model_glm(family = if (link == "probit") "cumulative_probit" else "cumulative", prior = prior_normal(sd = 10))
    fit <- nonprivate_posterior(homes, model, st, chains = 2, iter = 1000, warmup = 300, seed = 1)
    exact <- MASS::polr(Sat ~ Infl + Cont, homes, method = link, Hess = TRUE)
    near <- c(exact$zeta, exact$coefficients)[names(coef(fit))]
    expect_lt(max(abs(coef(fit) - near) / sqrt(diag(vcov(fit)))), 0.15)
    # polr() has the coefficients first
    expect_equal(unname(sqrt(diag(vcov(fit)))), unname(sqrt(diag(vcov(exact)))[names(coef(fit))]), tolerance = 0.1)
  }
})

test_that("joint-distribution test: sweeps, moves and surrogate transitions", {
  skip_on_cran()
  set.seed(37)
  levels <- category_levels[1:3]
  for (family in category_families) {
    st <- stat_crossprod(y ~ x + g, list(y = levels, x = c(-2, 2), g = c("a", "b")))
    model <- model_glm(family = family, prior = prior_normal(sd = 0.7), covariates = prior_niw(0.5, 2, 2, 6), levels = prior_dirichlet(2))
    bound <- category_bind(family, st, prior = prior_normal(sd = 0.7), covariates = prior_niw(0.5, 2, 2, 6), levels = prior_dirichlet(2))
    prior <- prior_draws(model, st, 1e5)
    # the plain sampler mixes too slowly to show in less
    if (family$link == "probit") expect_prior(geweke(model, st, mech_laplace(scale = 1), 5, 4200, 0), prior)
    expect_prior(geweke(model, st, mech_laplace(scale = 1), 5, 2100, 2), prior)
    draws <- geweke(model, st, mech_laplace(epsilon = 6), n = 12, iterations = 1200, passes = NULL, warmup = 300L)
    expect_prior(draws[, c(internal("coefficients_of")(bound), "mean[x]", "cov[x,x]")], prior)
  }
})

category_release <- function(family, n = 80, epsilon = 5) {
  st <- stat_crossprod(y ~ x + g, list(y = category_levels, x = c(-2, 2), g = c("a", "b")))
  set.seed(51)
  simulate_release(model_glm(family = family), st, mech_laplace(epsilon = epsilon), n = n)
}

test_that("coefficients move with the responses where noise dominates, and not where the moves would be short", {
  skip_on_cran()
  family <- category_families[[1L]]
  moved <- vapply(c(0.3, 200), function(epsilon) {
    fit <- sample_posterior(category_release(family, 400, epsilon), model_glm(family = family), method = "augment", chains = 1, iter = 600, seed = 2)
    acceptance(suppressWarnings(fit))$responded
  }, 0)
  expect_gt(moved[1L], 0.1)
  expect_identical(moved[2L], NaN)
  expect_match(internal("coefficients_line")(data.frame(responded = c(0.25, NaN))), "accepted 0.25$") # chains decide for themselves
})

test_that("a run continues bit for bit; fits predict, simulate and are told", {
  skip_on_cran() # takes long; `make test` runs it
  for (family in category_families) {
    rel <- category_release(family)
    run <- function(iter) suppressWarnings(sample_posterior(rel, model_glm(family = family), method = "augment", chains = 2, iter = iter, warmup = 100, seed = 1))
    fit <- run(160)
    expect_identical(posterior::as_draws_array(suppressWarnings(extend(fit, 40))), posterior::as_draws_array(run(200)))
    ordered <- family$family == "cumulative"
    new <- data.frame(x = c(-1, 1), g = c("a", "b"))
    draws <- internal("parameter_matrix")(fit)
    p <- suppressWarnings(predict(fit, new, type = "expected"))
    expect_identical(dim(p), c(nrow(draws), 2L, 4L))
    for (i in 1:2) expect_equal(unname(p[, i, ]), unname(probabilities_of_draws(family, draws, c(c(-1, 1)[i], i - 1), category_levels)), tolerance = 1e-12)
    mean <- predict(fit, new)
    expect_equal(mean, colMeans(p))
    expect_identical(colnames(mean), category_levels)
    interval <- predict(fit, new, interval = "credible", level = 0.8)
    expect_equal(interval[, "fit", ], mean)
    expect_equal(interval[2, "upper", 3], stats::quantile(p[, 2, 3], 0.9, type = 6, names = FALSE))
    held <- predict(fit, new, interval = "predictive", level = 0.6)
    expect_equal(held$probability, vapply(1:2, function(i) sum(mean[i, held$set[[i]]]), 0))
    expect_identical(as.character(held$fit), category_levels[max.col(mean)])
    expect_true(all(held$probability >= 0.6))
    drawn <- predict(fit, new, type = "draws", seed = 2)
    expect_identical(attr(drawn, "levels"), category_levels)
    expect_lt(max(abs(vapply(1:4, function(k) colMeans(drawn == k), numeric(2)) - mean)), 0.25)
    expect_identical(levels(simulate(fit, seed = 3)[[1]]$y), category_levels)
    expect_identical(dim(rstantools::posterior_epred(fit, new, ndraws = 7)), c(7L, 2L, 4L))
    expect_identical(dim(rstantools::posterior_linpred(fit, new)), c(nrow(draws), 2L, if (!ordered) 3L))
    expect_identical(nrow(fitted(fit)), 4L * nrow(covariate_grid(fit)))
    expect_s3_class(plot(fit, "predictive"), "ggplot")
    expect_identical(nrow(predictive_data(fit, points = 5)), 20L)
    expect_identical(generics::tidy(fit)$term, names(coef(fit)))
    expect_identical(generics::tidy(fit, variables = "all")$term, fit$bound$parameters)
    said <- rstantools::prior_summary(fit)
    expect_identical(said$variable, fit$bound$parameters)
    expect_false(anyNA(said$prior))
    expect_error(coverage(fit, newdata = cbind(new, y = category_levels[1:2])), class = "noiseaware_error_argument")
    expect_error(stan_program(fit), class = "noiseaware_error_method")
    expect_error(sample_posterior(rel, model_glm(family = family), method = "clt"), class = "noiseaware_error_method")
    known <- model_glm(family = family, prior = fixed(if (ordered) c(-1, 0, 1, 0.5, 0.2) else seq(-1, 1, length.out = 9)))
    of_known <- suppressWarnings(sample_posterior(rel, known, method = "augment", chains = 1, iter = 40, seed = 1))
    expect_equal(unname(predict(of_known, new)[2, ]), unname(drop(category_probabilities(family, known$prior$value, matrix(c(1, 1), 1)))))
  }
})

test_that("families are taken by name and as objects, and wrong ones refused", {
  of_brms <- function(name, link) structure(list(family = name, link = link), class = c("brmsfamily", "family"))
  expect_identical(model_glm(family = of_brms("cumulative", "logit")), model_glm(family = "cumulative"))
  expect_identical(model_glm(family = function() of_brms("cumulative", "probit")), model_glm(family = "cumulative_probit"))
  expect_identical(model_glm(family = of_brms("categorical", "logit")), model_glm(family = "categorical"))
  expect_error(model_glm(family = "cumulative_cauchit"), class = "noiseaware_error_family")
  expect_error(model_glm(family = structure(list(family = "cumulative", link = "cloglog"), class = "family")), class = "noiseaware_error_family")
  expect_error(model_glm(family = "cumulative", cv = 1), class = "noiseaware_error_prior")
  bind <- function(y, family, ...) category_bind(family, stat_crossprod(y ~ x, list(y = y, x = c(0, 1))), ...)
  expect_error(bind(c(0, 3), "cumulative"), "is a number", class = "noiseaware_error_variables")
  expect_error(bind(c("no", "yes"), "categorical"), "binomial", class = "noiseaware_error_variables")
  expect_error(bind(category_levels, binomial()), "cumulative", class = "noiseaware_error_variables")
  expect_error(bind(category_levels, poisson()), class = "noiseaware_error_variables")
  expect_error(internal("bind_model")(model_lm(), stat_crossprod(y ~ x, list(y = category_levels, x = c(0, 1)))), class = "noiseaware_error_variables")
  expect_error(bind(category_levels, "cumulative", prior = fixed(c(1, 0, 2, 1))), "increasing", class = "noiseaware_error_prior")
  expect_error(bind(category_levels, "cumulative", prior = fixed(1:3)), class = "noiseaware_error_prior")
})

test_that("a predictive set has the fewest levels, of an ordered response side by side", {
  p <- rbind(c(0.35, 0.15, 0.3, 0.2), c(0.05, 0.05, 0.1, 0.8), c(0.25, 0.25, 0.25, 0.25))
  colnames(p) <- c("a", "b", "c", "d")
  of <- internal("predictive_sets")
  expect_identical(of(p, 0.6, FALSE)$set, list(c("a", "c"), "d", c("a", "b", "c")))
  ordered <- of(p, 0.6, TRUE)
  expect_identical(ordered$set, list(c("a", "b", "c"), "d", c("a", "b", "c")))
  expect_equal(ordered$probability, c(0.8, 0.8, 0.75))
  expect_identical(ordered$fit, factor(c("a", "d", "a"), colnames(p), ordered = TRUE))
  expect_identical(lengths(of(p, 1, TRUE)$set), rep(4L, 3))
})
