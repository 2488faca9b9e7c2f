# Method "clt" for regression: moments against explicit sums and against records,
# posteriors against quadrature and against "augment".

clt_spec <- function(model, statistic, release = NULL) {
  release <- release %||% as_release(numeric(length(statistic$components)), statistic, mech_laplace(epsilon = 1), 100)
  bound <- internal("bind_model")(model, statistic)
  list(bound = bound, spec = internal("clt_distribution")(bound, release, NULL)$spec)
}

`%||%` <- function(x, y) if (is.null(x)) y else x

known_lm <- function(p) {
  set.seed(50 + p)
  scatter <- crossprod(matrix(rnorm(3 * p * p), 3 * p)) / 3 / p
  list(beta = c(0.7, -1.1, 0.4, 0.9)[seq_len(p + 1)], sigma = 1.3, mean = c(0.9, -1.2, 0.3)[seq_len(p)], cov = scatter)
}

fixed_model <- function(k, formula = NULL, covariates = fixed(list(mean = k$mean, cov = k$cov))) {
  if (length(k$beta) == 1) model_lm(formula, fixed(k$beta), fixed(k$sigma)) else
    model_lm(formula, fixed(k$beta), fixed(k$sigma), covariates)
}

prior_theta <- function(bound) .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(1, 2)), 1L)$theta

# E x_i x_j x_k x_l, x_1 the constant: by Isserlis, or of given records
normal_fourth <- function(mean, cov) {
  m <- c(1, mean)
  T <- rbind(0, cbind(0, cov))
  function(i) {
    a <- m[i]
    t <- function(u, v) T[i[u], i[v]]
    prod(a) + t(1, 2) * a[3] * a[4] + t(1, 3) * a[2] * a[4] + t(1, 4) * a[2] * a[3] + t(2, 3) * a[1] * a[4] + t(2, 4) * a[1] * a[3] +
      t(3, 4) * a[1] * a[2] + t(1, 2) * t(3, 4) + t(1, 3) * t(2, 4) + t(1, 4) * t(2, 3)
  }
}

sample_fourth <- function(x) {
  x <- cbind(1, x)
  function(i) mean(x[, i[1]] * x[, i[2]] * x[, i[3]] * x[, i[4]])
}

# The sums of the 2019 appendix, as they stand there, for (vech xx', xy, y^2)
# with the constant left out.
appendix_moments <- function(fourth, theta, sigma) {
  d <- length(theta)
  s <- seq_len(d)
  eta <- outer(s, s, Vectorize(function(i, j) fourth(c(1, 1, i, j))))
  xi <- array(0, c(d, d, d, d))
  for (i in s) for (j in s) for (k in s) for (l in s) xi[i, j, k, l] <- fourth(c(i, j, k, l)) - eta[i, j] * eta[k, l]
  pairs <- do.call(rbind, lapply(s, function(i) cbind(i, i:d)))[-1, , drop = FALSE]
  w <- nrow(pairs)
  V <- matrix(0, w + d + 1, w + d + 1)
  square <- w + d + 1
  for (a in seq_len(w)) {
    i <- pairs[a, 1]
    j <- pairs[a, 2]
    for (b in seq_len(w)) V[a, b] <- xi[i, j, pairs[b, 1], pairs[b, 2]]
    for (k in s) V[a, w + k] <- V[w + k, a] <- sum(theta * xi[i, j, k, ])
    V[a, square] <- V[square, a] <- sum(outer(theta, theta) * xi[i, j, , ])
  }
  for (i in s) {
    for (j in s) V[w + i, w + j] <- sigma^2 * eta[i, j] + sum(outer(theta, theta) * xi[i, , j, ])
    V[w + i, square] <- V[square, w + i] <- sum(outer(theta, outer(theta, theta)) * xi[i, , , ]) + 2 * sigma^2 * sum(theta * eta[i, ])
  }
  V[square, square] <- 2 * sigma^4 + sum(outer(theta, outer(theta, outer(theta, theta))) * xi) + 4 * sigma^2 * sum(outer(theta, theta) * eta)
  list(mean = c(eta[pairs], eta %*% theta, sigma^2 + sum(outer(theta, theta) * eta)), cov = V, pairs = pairs)
}

# where the statistic y, x.., y^2, y:x.., x:x.. has them, columns in order
released_order <- function(p) {
  d <- p + 1
  pairs <- do.call(rbind, lapply(seq_len(d), function(i) cbind(i, i:d)))[-1, , drop = FALSE]
  name <- function(i, j) ifelse(i == 1, paste0("x", j - 1), ifelse(i == j, paste0("x", i - 1, "^2"), paste0("x", i - 1, ":x", j - 1)))
  c(if (p > 0) name(pairs[, 1], pairs[, 2]), "y", if (p > 0) paste0("y:x", seq_len(p)), "y^2")
}

test_that("moments are the sums of the appendix, for normal covariates and for any", {
  for (p in 0:3) {
    k <- known_lm(p)
    st <- lm_problem(p, rescale = FALSE)
    set.seed(60)
    x <- matrix(rexp(150 * p), 150, dimnames = list(NULL, if (p > 0) paste0("x", seq_len(p))))
    sources <- list(list(fourth = if (p > 0) normal_fourth(k$mean, k$cov) else function(i) 1, model = fixed_model(k)))
    if (p > 0) sources[[2]] <- list(fourth = sample_fourth(x), model = fixed_model(k, covariates = covariate_moments(x)))
    for (source in sources) {
      expected <- appendix_moments(source$fourth, k$beta, k$sigma)
      at <- match(released_order(p), st$components)
      problem <- clt_spec(source$model, st)
      got <- .Call(internal("ffi_clt_moments"), problem$spec, prior_theta(problem$bound))[[1]]
      expect_equal(got$mean[at], expected$mean, tolerance = 1e-12)
      expect_equal(got$cov[at, at], expected$cov, tolerance = 1e-11)
      expect_identical(got$cov, t(got$cov))
    }
  }
})

test_that("moments are those of records: rescaled, in any order, unknown parameters", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(x2 ~ y + x1, list(x2 = c(-90, 60), y = c(-70, 90), x1 = c(-40, 70))) # bounds off centre, and never reached
  problem <- clt_spec(model_lm(y ~ x1 + x2), st)
  theta <- internal("bound_theta")(problem$bound, c("(Intercept)" = 2, x1 = 0.6, x2 = -1.4, sigma = 2.2, "mean[x1]" = 3, "mean[x2]" = -1,
                                                    "cov[x1,x1]" = 3, "cov[x2,x1]" = -1, "cov[x2,x2]" = 2))
  moments <- .Call(internal("ffi_clt_moments"), problem$spec, matrix(theta))[[1]]
  n <- 1e5
  x <- .Call(internal("ffi_model_records"), problem$bound$spec, theta, as.integer(n), internal("new_stream")(c(3, 4)))$records
  t <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), x[, match(st$columns$name, problem$bound$columns$name)])
  centred <- sweep(t, 2, moments$mean)
  expect_lt(max(abs(colMeans(centred)) / sqrt(diag(moments$cov) / n)), 5)
  errors <- vapply(seq_len(9), function(i) vapply(seq_len(9), function(j) {
    product <- centred[, i] * centred[, j]
    (mean(product) - moments$cov[i, j]) / (sd(product) / sqrt(n))
  }, 0), numeric(9))
  expect_lt(max(abs(errors)), 5)
})

# total = n mean + sqrt(n) A u: A, column by column
expect_forms_distribution <- function(spec, theta, distribution, innovations) {
  n <- 50
  set.seed(70)
  r <- rnorm(length(distribution$mean))
  form <- .Call(internal("ffi_clt_form"), spec, theta, n, cbind(0, diag(innovations)), r)
  expect_equal(form$total[, 1], n * distribution$mean, tolerance = 1e-12)
  A <- (form$total[, -1] - form$total[, 1]) / sqrt(n)
  scale <- sqrt(diag(distribution$cov))
  expect_lt(max(abs(A %*% t(A) - distribution$cov) / outer(scale, scale)), 1e-10)
  expect_equal(form$pull, drop(crossprod(A, r)), tolerance = 1e-10)
}

test_that("innovations make totals with the mean and the covariance of the distribution", {
  set.seed(61)
  binary <- cbind(x1 = rexp(200), x2 = rep(0:1, 100)) # x2^2 = x2: a covariance of lower rank
  for (p in 0:3) {
    problem <- clt_spec(fixed_model(known_lm(p)), lm_problem(p))
    theta <- prior_theta(problem$bound)
    expect_forms_distribution(problem$spec, theta, .Call(internal("ffi_clt_moments"), problem$spec, theta)[[1]], (p + 1) * (p + 4) / 2)
  }
  problem <- clt_spec(fixed_model(known_lm(2), covariates = covariate_moments(binary)), lm_problem(2))
  theta <- prior_theta(problem$bound)
  expect_forms_distribution(problem$spec, theta, .Call(internal("ffi_clt_moments"), problem$spec, theta)[[1]], 4 + 4)
})

# factors between numbers, in another order than in the release
factor_case <- function(rescale) {
  st <- stat_crossprod(y ~ a + f + b + g, list(y = c(-70, 90), a = c(-40, 70), f = c("u", "v", "w", "z"), b = c(-50, 30), g = c("n", "m")), rescale)
  problem <- clt_spec(model_lm(y ~ g + a + f + b), st)
  values <- c("(Intercept)" = 2, gm = 1.5, a = 0.6, fv = -1, fw = 2, fz = 0.4, b = -1.4, sigma = 2.2, "mean[a]" = 3, "mean[b]" = -1,
              "cov[a,a]" = 3, "cov[b,a]" = -1, "cov[b,b]" = 2, "prob[g=n]" = 0.3, "prob[g=m]" = 0.7, "prob[f=u]" = 0.1, "prob[f=v]" = 0.2,
              "prob[f=w]" = 0.3, "prob[f=z]" = 0.4)
  theta <- internal("bound_theta")(problem$bound, values)
  c(problem, list(statistic = st, theta = theta, distribution = .Call(internal("ffi_clt_moments"), problem$spec, matrix(theta))[[1]]))
}

# records in the model's order, and what each adds to the statistic
factor_records <- function(case, n) {
  x <- .Call(internal("ffi_model_records"), case$bound$spec, case$theta, as.integer(n), internal("new_stream")(c(3, 4)))$records
  released <- x[, match(case$statistic$columns$name, case$bound$columns$name)]
  list(x = x, t = .Call(internal("ffi_stat_eval"), internal("statistic_spec")(case$statistic), released))
}

test_that("levels of probability 0 leave moments finite, and do not vary", {
  case <- factor_case(TRUE)
  # f is w or v: the first level and the last one have no records
  sticks <- tail(seq_along(case$theta), 3)
  case$theta[sticks[c(1, 3)]] <- c(-800, 800)
  moments <- .Call(internal("ffi_clt_moments"), case$spec, matrix(case$theta))[[1]]
  expect_true(all(is.finite(moments$mean)) && all(is.finite(moments$cov)))
  fz <- match("fz", case$statistic$components)
  # dummies are rescaled to -1 and 1
  expect_identical(c(moments$mean[fz], moments$cov[fz, fz]), c(-1, 0))
})

test_that("moments with factors are those of records, and of innovations", {
  skip_on_cran() # takes long; `make test` runs it
  for (rescale in c(TRUE, FALSE)) {
    case <- factor_case(rescale)
    mean <- case$distribution$mean
    sd <- sqrt(diag(case$distribution$cov))
    n <- 1e5
    t <- sweep(factor_records(case, n)$t, 2, mean)
    expect_lt(max(abs(colMeans(t)) / sd * sqrt(n)), 5)
    product <- crossprod(t) / n
    expect_lt(max(abs(product - case$distribution$cov) / sqrt((crossprod(t^2) / n - product^2) / n)), 5)
    # besides y: a, b and four dummies
    expect_forms_distribution(case$spec, case$theta, case$distribution, 6 + 21 + 8)
  }
})

test_that("totals with factors give the complete-data statistic; counts that no records have are moved", {
  for (rescale in c(TRUE, FALSE)) {
    case <- factor_case(rescale)
    records <- factor_records(case, 300)
    total <- colSums(records$t)
    complete <- function(total) .Call(internal("ffi_clt_complete"), case$spec, 300, total)
    got <- complete(total)
    expect_equal(got$complete, .Call(internal("ffi_model_complete"), case$bound$spec, records$x), tolerance = 1e-11)
    expect_true(got$valid)
    expect_equal(got$projected, got$complete, tolerance = 1e-11)

    level <- match("fw", case$statistic$columns$name)
    counts <- match(c("fv", "fw", "fz"), case$bound$columns$name)
    for (shift in c(-400, 400)) {
      got <- complete(replace(total, level, total[level] + shift * if (rescale) 2 else 1))
      expect_false(got$valid)
      expect_true(min(got$complete[counts]) < 0 || sum(got$complete[counts]) > 300)
      expect_true(min(got$projected[counts]) >= 0 && sum(got$projected[counts]) <= 300 + 1e-9)
    }
  }
})

test_that("the share of responses outside the bounds is summed over the levels", {
  st <- stat_crossprod(y ~ x + f + g, list(y = c(-4, 6), x = c(-2, 3), f = c("u", "v", "w"), g = c("n", "m")))
  set.seed(13)
  truth <- c("(Intercept)" = 0.5, x = 1, fv = 3, fw = -2, gm = 1, sigma = 1, "mean[x]" = 0, "cov[x,x]" = 1, "prob[f=u]" = 0.2, "prob[f=v]" = 0.5,
             "prob[f=w]" = 0.3, "prob[g=n]" = 0.6, "prob[g=m]" = 0.4)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 5), n = 200, parameters = truth)
  fit <- sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = 300, warmup = 250, control = list(sampler = "noncentred"), seed = 1)
  d <- unclass(posterior::as_draws_matrix(fit$draws))
  tails <- function(bounds, mean, sd) pnorm(bounds[1], mean, sd) + pnorm(bounds[2], mean, sd, lower.tail = FALSE)
  share <- vapply(seq_len(nrow(d)), function(k) {
    v <- d[k, ]
    mean <- v[["(Intercept)"]] + v[["x"]] * v[["mean[x]"]] + outer(c(u = 0, v = v[["fv"]], w = v[["fw"]]), c(n = 0, m = v[["gm"]]), "+")
    weight <- outer(v[paste0("prob[f=", rownames(mean), "]")], v[paste0("prob[g=", colnames(mean), "]")])
    sum(weight * tails(c(-4, 6), mean, sqrt(v[["sigma"]]^2 + v[["x"]]^2 * v[["cov[x,x]"]]))) +
      tails(c(-2, 3), v[["mean[x]"]], sqrt(v[["cov[x,x]"]]))
  }, 0)
  expect_equal(unlist(lapply(fit$chains, `[[`, "outside")), pmin(share, 1), ignore_attr = TRUE)
})

test_that("the total gives the complete-data statistic of the records", {
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(x2 ~ y + x1, list(x2 = c(-90, 60), y = c(-70, 90), x1 = c(-40, 70)), rescale)
    problem <- clt_spec(model_lm(y ~ x1 + x2), st)
    set.seed(62)
    data <- data.frame(y = rnorm(40, 4), x1 = rnorm(40), x2 = rnorm(40, -2))
    total <- internal("statistic_total")(st, data)
    got <- .Call(internal("ffi_clt_complete"), problem$spec, 40, total)
    expect_equal(got$complete, .Call(internal("ffi_model_complete"), problem$bound$spec, as.matrix(data)), tolerance = 1e-11)
    expect_true(got$valid)
    expect_equal(got$projected, got$complete, tolerance = 1e-11)

    # totals that no records have: a product larger than both squares allow
    total[["y:x1"]] <- 1e3 * total[["y:x1"]]
    got <- .Call(internal("ffi_clt_complete"), problem$spec, 40, total)
    expect_false(got$valid)
    scatter <- matrix(0, 3, 3)
    scatter[lower.tri(scatter, diag = TRUE)] <- got$projected[-(1:3)]
    scatter <- scatter + t(scatter) - diag(diag(scatter)) - outer(got$projected[1:3], got$projected[1:3]) / 40
    expect_gt(min(eigen(scatter)$values), 0)
    expect_identical(got$projected[1:3], got$complete[1:3])
  }
})

# ---- posteriors ----------------------------------------------------------------

test_that("with the normal distribution alone the posterior is that of quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(1)
  model <- model_lm(prior = prior_normal(0, 3), sigma = fixed(1.5), covariates = fixed(list(mean = 0.5, cov = matrix(2))))
  set.seed(63)
  rel <- simulate_release(model, st, mech_gaussian(mu = 0.2), n = 60, parameters = c("(Intercept)" = 1, x1 = 0.7))
  problem <- clt_spec(model, st, rel)
  grid <- expand.grid(a = seq(-9, 9, length.out = 91), b = seq(-9, 9, length.out = 91))
  theta <- apply(grid, 1, function(g) internal("bound_theta")(problem$bound, c("(Intercept)" = g[[1]], x1 = g[[2]])))
  distributions <- .Call(internal("ffi_clt_moments"), problem$spec, theta)
  log_density <- vapply(distributions, function(distribution) {
    root <- chol(60 * distribution$cov + diag(rel$scale^2))
    -sum(log(diag(root))) - sum(backsolve(root, rel$value - 60 * distribution$mean, transpose = TRUE)^2) / 2
  }, 0) - rowSums(grid^2) / 18
  density <- matrix(exp(log_density - max(log_density)), 91)
  for (sampler in c("noncentred", "marginal")) {
    fit <- sample_posterior(rel, model, method = "clt", chains = 2, iter = 3600, seed = 2,
                            control = list(conjugate = FALSE, passes = 3, sampler = sampler))
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(unique(grid$a), rowSums(density)), sum(grid$a * density) / sum(density))
    expect_distribution(parameter_draws(fit, "x1"), grid_quantile(unique(grid$b), colSums(density)), sum(grid$b * density) / sum(density))
  }
})

same_posterior <- function(a, b, ks = 0.06) {
  for (v in posterior::variables(a$draws)) {
    distance <- suppressWarnings(stats::ks.test(as.vector(parameter_draws(a, v)), as.vector(parameter_draws(b, v)))$statistic)
    expect_lt(unname(distance), ks)
  }
}

test_that("under Laplace noise the samplers have the same posterior, few records or many", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(2)
  set.seed(71)
  for (case in list(list(n = 100, scale = 2, conjugate = FALSE), list(n = 5000, scale = 1, conjugate = TRUE))) {
    rel <- simulate_release(fixed_model(known_lm(2)), st, mech_laplace(scale = case$scale), n = case$n)
    fits <- lapply(c("noncentred", "marginal"), function(sampler) {
      sample_posterior(rel, model_lm(), method = "clt", chains = 4, iter = 3800, warmup = 1400, seed = 9,
                       control = list(conjugate = case$conjugate, sampler = sampler, passes = if (sampler == "marginal") 5))
    })
    for (v in posterior::variables(fits[[1]]$draws)) {
      draws <- lapply(fits, parameter_draws, v)
      for (p in c(0.1, 0.5, 0.9)) {
        below <- lapply(draws, function(d) d <= quantile(draws[[1]], p))
        error <- sqrt(sum(vapply(below, function(b) posterior::mcse_mean(b + 0)^2, 0)))
        expect_lt(abs(mean(below[[1]]) - mean(below[[2]])) / error, 5)
      }
    }
  }
})

test_that("posteriors are close to those of 'augment' where bounds do not bind", {
  skip_on_cran() # takes long; `make test` runs it
  truth <- c("(Intercept)" = 1, x1 = 0.8, sigma = 1.2, "mean[x1]" = 0.5, "cov[x1,x1]" = 2)
  st <- lm_problem(1)
  set.seed(64)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 2000, parameters = truth)
  exact <- sample_posterior(rel, model_lm(), chains = 2, iter = 2200, seed = 3)
  same_posterior(sample_posterior(rel, model_lm(), method = "clt", chains = 4, iter = 3600, seed = 4), exact)

  # Gaussian noise, an intercept alone
  flat <- lm_problem(0)
  rel <- simulate_release(model_lm(), flat, mech_gaussian(mu = 0.3), n = 1000, parameters = c("(Intercept)" = 2, sigma = 1.5))
  exact <- sample_posterior(rel, model_lm(), chains = 2, iter = 2200, seed = 3)
  same_posterior(sample_posterior(rel, model_lm(), method = "clt", chains = 4, iter = 3600, seed = 4), exact)
})

test_that("with factors too", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x + f, list(y = c(-12, 12), x = c(-8, 8), f = c("u", "v", "w")))
  truth <- c("(Intercept)" = 1, x = 0.8, fv = -1, fw = 1.5, sigma = 1.2, "mean[x]" = 0.5, "cov[x,x]" = 2, "prob[f=u]" = 0.2, "prob[f=v]" = 0.5,
             "prob[f=w]" = 0.3)
  set.seed(3)
  rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 2000, parameters = truth)
  exact <- sample_posterior(rel, model_lm(factors = "independent"), method = "augment", chains = 2, iter = 3600, seed = 3)
  same_posterior(sample_posterior(rel, model_lm(), method = "clt", chains = 4, iter = 5400, seed = 4), exact)
})

test_that("both samplers, and all sources of right moments, agree", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(1)
  mechanism <- mech_laplace(epsilon = 2)
  truth <- c("(Intercept)" = 1, x1 = 0.8, sigma = 1.2, "mean[x1]" = 0.5, "cov[x1,x1]" = 2)
  set.seed(65)
  rel <- simulate_release(model_lm(), st, mechanism, n = 1e4, parameters = truth)
  x <- 0.5 + sqrt(2) * stats::qnorm(stats::ppoints(2e5))
  fourth <- stat_moments4(~ x1, list(x1 = c(-10, 10)))
  both <- as_release(unname(c(rel$value, 1e4 * colMeans(outer(x / 10, 1:4, "^")))), list(regression = st, covariates = fourth),
                     list(regression = mechanism, covariates = mechanism), 1e4)
  run <- function(release, covariates, ...) {
    sample_posterior(release, model_lm(prior = prior_nig(), covariates = covariates), method = "clt", chains = 4, iter = 3000, seed = 5, ...)
  }
  known <- run(rel, fixed(list(mean = 0.5, cov = matrix(2))))
  same_posterior(run(rel, fixed(list(mean = 0.5, cov = matrix(2))), control = list(sampler = "gibbs")), known)
  same_posterior(run(rel, covariate_moments(cbind(x1 = x))), known)
  noisy <- run(both, covariate_moments())
  expect_false(noisy$bound$moments$projected)
  same_posterior(noisy, known)
})

test_that("covariances that are nearly singular, and totals near the edge of validity, are no obstacle", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(2)
  set.seed(66)
  x <- rnorm(500)
  data <- data.frame(x1 = x, x2 = x + 1e-6 * rnorm(500), y = 2 * x + 1e-4 * rnorm(500))
  for (mechanism in list(mech_laplace(epsilon = 1e6), mech_gaussian(mu = 1e8), mech_laplace(epsilon = 1), mech_laplace(epsilon = 1e-4))) {
    rel <- simulate_release(data, st, mechanism)
    for (sampler in c("marginal", "gibbs")) {
      fit <- sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = 400, seed = 6, control = list(sampler = sampler))
      expect_true(all(is.finite(fit$draws)))
    }
  }
  # totals that no records have, and few records
  edge <- as_release(c(0, 0, 1, 2, 1), lm_problem(1), mech_laplace(scale = 0.5), 3)
  fit <- sample_posterior(edge, model_lm(), method = "clt", chains = 1, iter = 2000, seed = 7, control = list(sampler = "noncentred"))
  expect_true(all(is.finite(fit$draws)))
  expect_gt(fit$chains[[1]]$diagnostics[["impossible"]], 0)
  expect_output(print(fit), "impossible draws in")
})

test_that("the share of records outside the bounds is that of the draws' marginal distributions", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(y = c(-4, 6), x1 = c(-2, 3), x2 = c(-5, 4))
  set.seed(12)
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(y ~ x1 + x2, bounds, rescale)
    rel <- simulate_release(model_lm(prior = fixed(c(0.5, 1, -1)), sigma = fixed(1), covariates = fixed(list(mean = c(0, 0), cov = diag(2)))),
                            st, mech_laplace(epsilon = 5), n = 100)
    fit <- sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = 300, warmup = 200, seed = 1,
                            control = list(sampler = if (rescale) "totals" else "noncentred"))
    d <- unclass(posterior::as_draws_matrix(fit$draws))
    share <- vapply(seq_len(nrow(d)), function(k) {
      beta <- d[k, c("x1", "x2")]
      mean <- d[k, c("mean[x1]", "mean[x2]")]
      cov <- matrix(d[k, c("cov[x1,x1]", "cov[x2,x1]", "cov[x2,x1]", "cov[x2,x2]")], 2)
      centre <- c(d[k, "(Intercept)"] + sum(beta * mean), mean)
      sd <- sqrt(c(d[k, "sigma"]^2 + sum(beta * cov %*% beta), diag(cov)))
      sum(pnorm(vapply(bounds, `[`, 0, 1), centre, sd), pnorm(vapply(bounds, `[`, 0, 2), centre, sd, lower.tail = FALSE))
    }, 0)
    expect_equal(unlist(lapply(fit$chains, `[[`, "outside")), if (rescale) share else pmin(share, 1), ignore_attr = TRUE)
  }
  expect_output(print(fit), "NOT valid: records may lie outside the bounds")
  counts <- sample_posterior(as_release(c(5, 9), stat_counts(~ x, list(x = c("a", "b"))), mech_laplace(epsilon = 1), 14), model_bernoulli(),
                             method = "clt", chains = 1, iter = 20, seed = 1)
  expect_false(any(grepl("outside", utils::capture.output(print(counts)))))
})

test_that("what cannot be done is refused", {
  skip_on_cran() # takes long; `make test` runs it
  st <- lm_problem(1)
  bounds <- list(x1 = c(-10, 10))
  mechanism <- mech_laplace(epsilon = 1)
  rel <- as_release(c(1, 2, 30, 4, 50), st, mechanism, 20)
  clt <- function(release, model) sample_posterior(release, model, method = "clt", chains = 1, iter = 20)
  expect_error(clt(rel, model_lm(covariates = covariate_moments())), class = "noiseaware_error_moments")
  x <- cbind(x1 = stats::qnorm(stats::ppoints(200)))
  expect_error(clt(rel, model_lm(covariates = covariate_moments(`colnames<-`(x, "z")))), class = "noiseaware_error_moments")
  known <- model_lm(covariates = covariate_moments(x))
  expect_output(print(known), "known by the moments of 200 draws")
  expect_output(print(clt(rel, known)), "clt")
  expect_warning(automatic <- sample_posterior(rel, known, chains = 1, iter = 20), class = "noiseaware_warning_method")
  expect_identical(automatic$method, "clt")
  for (refused in list(function() sample_posterior(rel, known, method = "collapse"), function() sample_posterior(rel, known, method = "augment"),
                       function() simulate_release(known, st, mechanism, n = 10), function() simulate(clt(rel, known)),
                       function() calibrate(known, st, mechanism, n = 10, replicates = 1),
                       function() simulate_release(model_lm(covariates = covariate_moments()), st, mechanism, n = 10))) {
    expect_error(refused(), class = "noiseaware_error_method")
  }
  for (draws in list(1, "x", x[, 1], x[1:50, , drop = FALSE], unname(x), cbind(x1 = c(NA, x)), cbind(x, x), cbind(x1 = numeric(200)),
                     cbind(x, x2 = 2 * x[, 1] + 1), data.frame(x1 = rep("a", 200)))) {
    expect_error(covariate_moments(draws), class = "noiseaware_error_prior")
  }
  factor <- as_release(c(1, 2, 3, 4), stat_crossprod(y ~ g, list(y = c(0, 1), g = c("a", "b"))), mechanism, 20)
  for (moments in list(covariate_moments(), covariate_moments(`colnames<-`(x, "gb")))) {
    expect_error(clt(factor, model_lm(covariates = moments)), "joint moments of the factor", class = "noiseaware_error_moments")
  }
  # fourth moments with a model with a distribution of its covariates: only "augment" uses both
  both <- as_release(c(1, 2, 30, 4, 50, 1, 2, 3, 4), list(a = st, b = stat_moments4(~ x1, bounds)), list(a = mechanism, b = mechanism), 20)
  expect_error(clt(both, model_lm()), class = "noiseaware_error_method")
})

test_that("noisy moments that no covariates have are moved to valid ones, and the fit says so", {
  st <- list(regression = lm_problem(1), covariates = stat_moments4(~ x1, list(x1 = c(-10, 10))))
  mechanism <- mech_laplace(epsilon = 1)
  # larger than the bounds allow; of a variance below 0; all of them nothing
  for (moments in list(c(40, -2, 3, 90), c(15, 2, 5, 1), c(-20, -1, -20, -1))) {
    rel <- as_release(c(1, 2, 30, 4, 50, moments), st, list(regression = mechanism, covariates = mechanism), 20)
    fit <- sample_posterior(rel, model_lm(covariates = covariate_moments()), method = "clt", chains = 1, iter = 400, seed = 8)
    expect_true(all(is.finite(fit$draws)))
    expect_output(print(fit), "moved to valid ones")
    # a variance is at least the noise's, or the variance of a uniform distribution on [-1, 1]
    expect_gte(min(diag(fit$bound$moments$fourth)), min(1 / 12, noise_sd(rel)[[6]] / 20) - 1e-12)
  }
})
