# The hooks of the model "lm", one by one, against formulas written in R.

models <- list(
  everything = model_lm(),
  apart = model_lm(prior = prior_normal()),
  normal_fixed = model_lm(prior = prior_normal(c(1, -1, 0.5), c(2, 1, 3)), sigma = fixed(1.3),
                          covariates = fixed(list(mean = c(0.9, -1.2), cov = matrix(c(1, 0.4, 0.4, 2), 2)))),
  semi = model_lm(prior = prior_normal(0, 2), sigma = prior_inverse_gamma(3, 2)),
  beta_fixed = model_lm(prior = fixed(c(1, 2, -1)), sigma = prior_inverse_gamma(3, 2)),
  nig_sigma_fixed = model_lm(prior = prior_nig(0, 0.5), sigma = fixed(0.7)),
  mean_fixed = model_lm(covariates = list(mean = fixed(c(1, 2)), cov = prior_niw(scale = 2, df = 6))),
  cov_fixed = model_lm(covariates = list(mean = prior_niw(mean = 1, kappa = 2), cov = fixed(matrix(c(2, 0.5, 0.5, 1), 2)))),
  half_normal = model_lm(prior = prior_normal(0, 2), sigma = prior_half_normal(3)),
  half_t = model_lm(prior = prior_student_t(4, c(1, -1, 0.5), c(2, 1, 3)), sigma = prior_half_t(5, 1.5)),
  exponential = model_lm(prior = fixed(c(1, 2, -1)), sigma = prior_exponential(0.4)),
  lognormal = model_lm(prior = prior_normal(0, 2), sigma = prior_lognormal(0.3, 0.8)),
  student = model_lm(prior = prior_student_t(4, c(x1 = 0.5), c(x1 = 2)), sigma = fixed(1.3)),
  student_conjugate = model_lm(prior = prior_student_t(6, 0, 2), sigma = prior_inverse_gamma(3, 2))
)

# bounds off zero, so that centring matters
st <- stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-2, 20), x1 = c(-1, 7), x2 = c(5, 9)))
bind <- function(model, statistic = st) internal("bind_model")(model, statistic)
prior_theta <- function(bound, draws, seed = 1) {
  set.seed(seed)
  .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), as.integer(draws))$theta
}

# natural-scale parameters of theta, known ones included
natural <- function(bound, theta) {
  f <- bound$spec$fields
  k <- length(f$centre)
  pc <- length(f$continuous)
  beta <- theta[seq_len(k)]
  beta[1] <- f$centre[1] + beta[1] - sum(beta[-1] * f$centre[-1])
  l <- matrix(0, pc, pc)
  l[upper.tri(l, diag = TRUE)] <- theta[k + 1 + pc + seq_len(pc * (pc + 1) / 2)]
  diag(l) <- exp(diag(l))
  list(beta = beta, sigma = exp(theta[k + 1]), mean = theta[k + 1 + seq_len(pc)], cov = crossprod(l))
}

test_that("reported draws are the natural parameters, and bound_theta inverts them", {
  for (model in models) {
    bound <- bind(model)
    theta <- prior_theta(bound, 5)
    report <- internal("reported")(bound, theta)
    expect_identical(colnames(report), bound$parameters)
    for (i in 1:5) {
      nat <- natural(bound, theta[, i])
      full <- c("(Intercept)" = nat$beta[1], x1 = nat$beta[2], x2 = nat$beta[3], sigma = nat$sigma,
                "mean[x1]" = nat$mean[1], "mean[x2]" = nat$mean[2], "cov[x1,x1]" = nat$cov[1, 1],
                "cov[x2,x1]" = nat$cov[1, 2], "cov[x2,x2]" = nat$cov[2, 2])
      expect_equal(report[i, ], full[bound$parameters], tolerance = 1e-10)
      expect_equal(internal("bound_theta")(bound, report[i, ]), theta[, i], tolerance = 1e-8)
    }
  }
})

test_that("a chain does not start at responses far beyond the bounds, close about their line", {
  begun <- function(bound, drawn) apply(drawn, 2L, internal("begin_within"), bound = bound)
  bound <- bind(model_lm())
  drawn <- prior_theta(bound, 100)
  expect_equal(begun(bound, drawn)[2:3, ], drawn[2:3, ] / 4)
  expect_equal(begun(bound, drawn)[4, ], pmax(drawn[4, ], log(11 / 4)))
  expect_identical(begun(bound, drawn)[-(2:4), ], drawn[-(2:4), ])
  for (model in list(model_lm(prior = prior_nig()), model_lm(prior = fixed(1:3), sigma = fixed(0.1)))) {
    bound <- bind(model)
    drawn <- prior_theta(bound, 10)
    expect_identical(begun(bound, drawn), drawn)
  }
})

# log density of sigma^2 = v
log_variance_density <- function(prior, v) {
  s <- sqrt(v)
  switch(class(prior)[1],
    prior_half_normal = stats::dnorm(s, 0, prior$scale, log = TRUE) - log(s),
    prior_half_t = stats::dt(s / prior$scale, prior$df, log = TRUE) - log(s),
    prior_exponential = stats::dexp(s, prior$rate, log = TRUE) - log(s),
    prior_lognormal = stats::dlnorm(s, prior$meanlog, prior$sdlog, log = TRUE) - log(s),
    -(prior$shape + 1) * log(v) - prior$rate / v)
}

# log prior density in the natural parameters sigma^2, cov (lower triangle)
log_natural_prior <- function(bound, nat) {
  f <- bound$spec$fields
  centring <- internal("bound_centring")(bound)
  out <- 0
  prior <- bound$model$prior
  if (inherits(prior, "prior_student_t")) {
    middle <- nat$beta
    middle[1] <- nat$beta[1] + sum(nat$beta[-1] * f$centre[-1])
    by_name <- !is.null(names(prior$sd)) # as in `student`: the intercept's is 11, the others are 11 / 2 times ..., 2 sqrt(2) / half
    at <- if (by_name) middle else nat$beta
    mean <- if (by_name) c(9, 0.5, 0) else rep_len(prior$mean, 3)
    sd <- if (by_name) c(11, 2, 11 / 2 * 2 * sqrt(2) / 2) else rep_len(prior$sd, 3)
    out <- out + sum(stats::dt((at - mean) / sd, prior$df, log = TRUE))
  } else if (is.null(f[["beta"]])) {
    k <- length(nat$beta)
    inverse <- solve(centring$matrix)
    precision <- t(inverse) %*% matrix(f$beta_precision, k) %*% inverse
    mean <- drop(centring$matrix %*% f$beta_mean) + centring$shift
    d <- nat$beta - mean
    scale <- if (f$beta_nig == 1) nat$sigma^2 else 1
    out <- out - k / 2 * log(scale) - drop(t(d) %*% precision %*% d) / (2 * scale)
  }
  if (is.null(f[["sigma"]])) {
    if (!is.null(f$sigma_lognormal)) bound$model$sigma[c("meanlog", "sdlog")] <- as.list(f$sigma_lognormal)
    conjugate <- list(shape = f$sigma_inverse_gamma[1], rate = f$sigma_inverse_gamma[2])
    out <- out + log_variance_density(if (is.null(f$sigma_inverse_gamma)) bound$model$sigma else structure(conjugate, class = "prior_inverse_gamma"), nat$sigma^2)
  }
  pc <- length(f$continuous)
  if (is.null(f$cov_chol)) {
    psi <- matrix(f$cov_scale, pc)
    out <- out - (f$cov_df + pc + 1) / 2 * log(det(nat$cov)) - sum(diag(psi %*% solve(nat$cov))) / 2
  }
  if (is.null(f[["mean"]])) {
    d <- nat$mean - f$mean_prior
    out <- out - log(det(nat$cov)) / 2 - f$mean_kappa / 2 * drop(t(d) %*% solve(nat$cov) %*% d)
  }
  out
}

test_that("the prior density in theta's coordinates is the natural one times the Jacobian", {
  for (model in models) {
    bound <- bind(model)
    theta <- prior_theta(bound, 6)
    moves <- bound$moves
    free_natural <- function(th) {
      nat <- natural(bound, th)
      f <- bound$spec$fields
      c(if (is.null(f[["beta"]])) nat$beta, if (is.null(f[["sigma"]])) nat$sigma^2, if (is.null(f[["mean"]])) nat$mean,
        if (is.null(f$cov_chol)) nat$cov[upper.tri(nat$cov, diag = TRUE)])
    }
    expected <- apply(theta, 2, function(th) {
      jacobian <- sapply(moves, function(j) {
        h <- 1e-5
        up <- down <- th
        up[j] <- up[j] + h
        down[j] <- down[j] - h
        (free_natural(up) - free_natural(down)) / (2 * h)
      })
      log_natural_prior(bound, natural(bound, th)) + determinant(as.matrix(jacobian))$modulus
    })
    got <- .Call(internal("ffi_model_log_prior"), bound$spec, theta)
    expect_equal(diff(got), diff(as.numeric(expected)), tolerance = 1e-5)
  }
})

test_that("prior draws have the prior's moments", {
  skip_on_cran()
  bound <- bind(model_lm(prior = prior_nig(c(1, 2, 3), diag(c(1, 2, 4)), shape = 6, rate = 10),
                         covariates = prior_niw(mean = c(1, 2), kappa = 2, scale = matrix(c(2, 0.5, 0.5, 1), 2), df = 9)))
  draws <- internal("reported")(bound, prior_theta(bound, 2e5))
  z <- function(x, exact) abs(mean(x) - exact) / (sd(x) / sqrt(length(x)))
  expect_lt(z(draws[, "(Intercept)"], 1), 5)
  expect_lt(z(draws[, "x2"], 3), 5)
  expect_lt(z(draws[, "sigma"]^2, 10 / 5), 5)
  expect_lt(z((draws[, "x2"] - 3)^2 / draws[, "sigma"]^2, 1 / 4), 5)
  expect_lt(z(draws[, "cov[x1,x1]"], 2 / (9 - 3)), 5)
  expect_lt(z(draws[, "cov[x2,x1]"], 0.5 / 6), 5)
  # mean | cov ~ N(mean, cov / kappa)
  d <- draws[, c("mean[x1]", "mean[x2]")] - rep(c(1, 2), each = nrow(draws))
  det <- draws[, "cov[x1,x1]"] * draws[, "cov[x2,x2]"] - draws[, "cov[x2,x1]"]^2
  quad <- (d[, 1]^2 * draws[, "cov[x2,x2]"] - 2 * d[, 1] * d[, 2] * draws[, "cov[x2,x1]"] + d[, 2]^2 * draws[, "cov[x1,x1]"]) / det
  expect_gt(ks.test(2 * quad, "pchisq", 2)$p.value, 1e-6)
})

test_that("records follow the model, refreshed and moved ones too", {
  bound <- bind(models$everything)
  theta <- prior_theta(bound, 2, seed = 4)
  set.seed(2)
  n <- 1e5
  drawn <- .Call(internal("ffi_model_records"), bound$spec, theta[, 1], as.integer(n), internal("new_stream")())
  whiten <- function(x, th) {
    nat <- natural(bound, th)
    e <- (x[, 1] - nat$beta[1] - x[, -1] %*% nat$beta[-1]) / nat$sigma
    u <- t(solve(t(chol(nat$cov)), t(x[, -1]) - nat$mean))
    cbind(e, u)
  }
  u <- whiten(drawn$records, theta[, 1])
  for (j in 1:3) expect_gt(ks.test(u[, j], "pnorm")$p.value, 1e-6)
  expect_lt(max(abs(cor(u) - diag(3))), 5 / sqrt(n))

  moved <- .Call(internal("ffi_model_move"), bound$spec, theta[, 1], theta[, 2], drawn$records, internal("new_stream")(c(1, 1)))
  expect_equal(whiten(moved, theta[, 2]), u, tolerance = 1e-8)
  back <- .Call(internal("ffi_model_move"), bound$spec, theta[, 2], theta[, 1], moved, internal("new_stream")(c(1, 1)))
  expect_equal(back, drawn$records, tolerance = 1e-10)

  rho <- 0.8
  refreshed <- .Call(internal("ffi_model_refresh"), bound$spec, theta[, 1], rho, drawn$records, drawn$state)
  v <- whiten(refreshed$records, theta[, 1])
  for (j in 1:3) {
    expect_gt(ks.test(v[, j], "pnorm")$p.value, 1e-6)
    expect_lt(abs(cor(u[, j], v[, j]) - rho), 5 / sqrt(n))
  }
})

test_that("the complete-data statistic is the centred cross-product", {
  bound <- bind(models$everything)
  set.seed(3)
  for (n in c(1, 3, 4, 257, 1000)) {
    x <- matrix(rnorm(3 * n, 3), n)
    centred <- sweep(x, 2, bound$spec$fields$centre)
    products <- crossprod(centred)
    expected <- c(colSums(centred), products[lower.tri(products, diag = TRUE)])
    added <- .Call(internal("ffi_model_complete"), bound$spec, x)
    expect_equal(added, expected, tolerance = 1e-12)
    moments <- crossprod(cbind(1, x))
    dimnames(moments) <- rep(list(c("(Intercept)", "y", "x1", "x2")), 2)
    expect_equal(internal("bound_complete")(bound, moments, n), expected, tolerance = 1e-8, ignore_attr = TRUE)
  }
})

# textbook posteriors in the natural parameters
test_that("theta given the records is the conjugate posterior", {
  skip_on_cran()
  set.seed(5)
  n <- 12
  x <- cbind(rnorm(n, 1, 2), rnorm(n, 7))
  y <- drop(2 + x %*% c(1, -0.5) + rnorm(n))
  design <- cbind(1, x)
  draw <- function(bound, draws = 4e4, steps = 1L) {
    complete <- .Call(internal("ffi_model_complete"), bound$spec, cbind(y, x))
    start <- list(theta = prior_theta(bound, 1), state = internal("new_stream")())
    internal("reported")(bound, internal("gibbs")(bound, complete, n, start, c(as.integer(draws), steps), NULL)$theta)
  }
  z <- function(x, exact) abs(mean(x) - exact) / as.numeric(posterior::mcse_mean(x))

  p0 <- matrix(c(2, 0.3, 0.1, 0.3, 1, 0, 0.1, 0, 0.5), 3)
  m0 <- c(1, 0, 1)
  bound <- bind(model_lm(prior = prior_nig(m0, p0, 3, 2),
                         covariates = prior_niw(c(0, 5), 2, matrix(c(3, 1, 1, 2), 2), 6)))
  draws <- draw(bound)
  lambda <- crossprod(design) + p0
  mu <- drop(solve(lambda, crossprod(design, y) + p0 %*% m0))
  a <- 3 + n / 2
  b <- 2 + (sum(y^2) + drop(t(m0) %*% p0 %*% m0) - drop(t(mu) %*% lambda %*% mu)) / 2
  expect_gt(ks.test(draws[, "sigma"]^2, function(q) pgamma(b / q, a, lower.tail = FALSE))$p.value, 1e-6)
  sd <- sqrt(b / a * diag(solve(lambda)))
  for (j in 1:3) expect_gt(ks.test((draws[, j] - mu[j]) / sd[j], "pt", df = 2 * a)$p.value, 1e-6)
  kappa <- 2 + n
  mean_n <- (2 * c(0, 5) + n * colMeans(x)) / kappa
  psi <- matrix(c(3, 1, 1, 2), 2) + crossprod(scale(x, scale = FALSE)) +
    2 * n / kappa * tcrossprod(colMeans(x) - c(0, 5))
  for (j in 1:2) {
    t_sd <- sqrt(psi[j, j] / (kappa * (6 + n - 1)))
    expect_gt(ks.test((draws[, paste0("mean[x", j, "]")] - mean_n[j]) / t_sd, "pt", df = 6 + n - 1)$p.value, 1e-6)
  }
  expect_lt(z(draws[, "cov[x2,x1]"], psi[1, 2] / (6 + n - 3)), 5)
  # the mean's spread follows the covariance drawn with it
  expect_lt(z((draws[, "mean[x1]"] - mean_n[1])^2 * kappa / draws[, "cov[x1,x1]"], 1), 5)

  bound <- bind(model_lm(prior = prior_normal(m0, 2), sigma = fixed(1.5), covariates = fixed(list(mean = c(0, 0), cov = diag(2)))))
  draws <- draw(bound)
  v <- solve(crossprod(design) / 1.5^2 + diag(3) / 4)
  mu <- drop(v %*% (crossprod(design, y) / 1.5^2 + m0 / 4))
  for (j in 1:3) expect_gt(ks.test((draws[, j] - mu[j]) / sqrt(v[j, j]), "pnorm")$p.value, 1e-6)
  expect_lt(max(abs(cov(draws) / v - 1)), 0.1)

  bound <- bind(model_lm(prior = fixed(c(2, 1, -0.5)), sigma = prior_inverse_gamma(3, 2),
                         covariates = list(mean = fixed(c(1, 7)), cov = prior_niw(scale = diag(2), df = 5))))
  draws <- draw(bound)
  rate <- 2 + sum((y - design %*% c(2, 1, -0.5))^2) / 2
  expect_gt(ks.test(draws[, "sigma"]^2, function(q) pgamma(rate / q, 3 + n / 2, lower.tail = FALSE))$p.value, 1e-6)
  psi <- diag(2) + crossprod(sweep(x, 2, c(1, 7)))
  expect_lt(z(draws[, "cov[x1,x1]"], psi[1, 1] / (5 + n - 3)), 5)
  expect_lt(z(draws[, "cov[x2,x1]"], psi[1, 2] / (5 + n - 3)), 5)

  # normal coefficients, sigma independent of them: against the marginal of sigma by quadrature
  grid <- exp(seq(log(0.05), log(20), length.out = 3000))
  log_likelihood <- vapply(grid, function(s) {
    cov_y <- s^2 * diag(n) + 4 * tcrossprod(design)
    -0.5 * (determinant(cov_y)$modulus + drop(t(y) %*% solve(cov_y, y)))
  }, 0)
  for (sigma in list(prior_inverse_gamma(3, 2), prior_half_normal(0.8), prior_half_t(3, 0.5), prior_exponential(3), prior_lognormal(-1, 0.5))) {
    draws <- draw(bind(model_lm(prior = prior_normal(0, 2), sigma = sigma)), steps = 3L)
    log_density <- log_likelihood + log_variance_density(sigma, grid^2) + log(grid)
    expect_distribution(draws[, "sigma"], grid_quantile(grid, exp(log_density - max(log_density))))
  }
})

test_that("Student-t coefficients given the records: against a grid", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 10), x = c(0, 6)))
  set.seed(6)
  x <- runif(6, 0, 6)
  y <- 1 + 2 * x + rnorm(6)
  model <- model_lm(prior = prior_student_t(2, c(0, 0), c(1, 0.4)), sigma = prior_half_t(3, 1), covariates = fixed(list(mean = 3, cov = matrix(2))))
  bound <- bind(model, st)
  complete <- .Call(internal("ffi_model_complete"), bound$spec, cbind(y, x))
  start <- list(theta = prior_theta(bound, 1), state = internal("new_stream")())
  draws <- internal("reported")(bound, internal("gibbs")(bound, complete, 6, start, c(40000L, 3L), NULL)$theta)
  grid <- expand.grid(a = seq(-6, 9, length.out = 90), b = seq(-1.5, 4, length.out = 90), s = exp(seq(log(0.15), log(20), length.out = 80)))
  residual <- sum(y^2) - 2 * grid$a * sum(y) - 2 * grid$b * sum(x * y) + 6 * grid$a^2 + 2 * grid$a * grid$b * sum(x) + grid$b^2 * sum(x^2)
  # by log sigma
  log_density <- -6 * log(grid$s) - residual / (2 * grid$s^2) + dt(grid$a, 2, log = TRUE) + dt(grid$b / 0.4, 2, log = TRUE) +
    dt(grid$s, 3, log = TRUE) + log(grid$s)
  weight <- exp(log_density - max(log_density))
  for (part in list(c("a", "(Intercept)"), c("b", "x"), c("s", "sigma"))) {
    at <- sort(unique(grid[[part[1]]]))
    density <- tapply(weight, match(grid[[part[1]]], at), sum)
    value <- draws[, part[2]]
    if (part[1] == "s") at <- log(at)
    if (part[1] == "s") value <- log(value)
    expect_distribution(value, grid_quantile(at, as.vector(density)))
  }
})

test_that("prior draws of sigma and of Student-t coefficients follow their distributions", {
  below <- function(x, cdf, ...) expect_gt(suppressWarnings(ks.test(x, cdf, ...))$p.value, 1e-6)
  draws <- internal("reported")(bind(models$half_t), prior_theta(bind(models$half_t), 2e4))
  below(draws[, "sigma"] / 1.5, function(q) 2 * pt(q, 5) - 1)
  for (j in 1:3) below((draws[, j] - c(1, -1, 0.5)[j]) / c(2, 1, 3)[j], "pt", 4)
  draws <- internal("reported")(bind(models$student), prior_theta(bind(models$student), 2e4))
  below((draws[, 1] + 3 * draws[, "x1"] + 7 * draws[, "x2"] - 9) / 11, "pt", 4)
  below((draws[, "x1"] - 0.5) / 2, "pt", 4)
  draws <- internal("reported")(bind(models$half_normal), prior_theta(bind(models$half_normal), 2e4))
  below(draws[, "sigma"] / 3, function(q) 2 * pnorm(q) - 1)
  draws <- internal("reported")(bind(models$exponential), prior_theta(bind(models$exponential), 2e4))
  below(draws[, "sigma"], "pexp", 0.4)
})

test_that("factor covariates carry categorical levels", {
  st <- stat_crossprod(y ~ g + x, bounds = list(y = c(-5, 5), g = c("a", "b", "c"), x = c(-3, 3)))
  bound <- bind(model_lm(levels = prior_dirichlet(2)), st)
  expect_identical(tail(bound$parameters, 3), c("prob[g=a]", "prob[g=b]", "prob[g=c]"))
  theta <- prior_theta(bound, 1)
  records <- .Call(internal("ffi_model_records"), bound$spec, theta, 30000L, internal("new_stream")())$records
  dummies <- records[, 2:3]
  expect_true(all(dummies %in% 0:1) && all(rowSums(dummies) <= 1))
  probability <- tail(drop(internal("reported")(bound, theta)), 3)
  counts <- c(sum(rowSums(dummies) == 0), colSums(dummies))
  expect_gt(chisq.test(counts, p = probability)$p.value, 1e-6)
  refreshed <- .Call(internal("ffi_model_refresh"), bound$spec, theta, 0.6, records, internal("new_stream")())$records
  counts <- c(sum(rowSums(refreshed[, 2:3]) == 0), colSums(refreshed[, 2:3]))
  expect_gt(chisq.test(counts, p = probability)$p.value, 1e-6)
  # levels given records: Dirichlet
  complete <- .Call(internal("ffi_model_complete"), bound$spec, records[1:20, ])
  start <- list(theta = theta, state = internal("new_stream")())
  draws <- internal("reported")(bound, internal("gibbs")(bound, complete, 20, start, c(20000L, 1L), NULL)$theta)
  count <- sum(records[1:20, 2])
  expect_gt(ks.test(draws[, "prob[g=b]"], "pbeta", 2 + count, 4 + 20 - count)$p.value, 1e-6)
  # moved records keep their levels where these keep their probabilities
  two <- prior_theta(bound, 2, seed = 9)
  other <- two[, 2]
  two[nrow(two) - 0:1, 2] <- two[nrow(two) - 0:1, 1]
  moved <- .Call(internal("ffi_model_move"), bound$spec, two[, 1], two[, 2], records, internal("new_stream")(c(1, 1)))
  expect_identical(moved[, 2:3], records[, 2:3])
  nat <- function(th) { th[1] <- th[1] - sum(th[2:4] * bound$spec$fields$centre[-1]) + bound$spec$fields$centre[1]; th }
  residual <- function(x, th) (x[, 1] - nat(th)[1] - x[, -1] %*% nat(th)[2:4]) / exp(th[5])
  expect_equal(residual(moved, two[, 2]), residual(records, two[, 1]), tolerance = 1e-8)
  # and else move with them, their innovations and the residuals held
  from <- .Call(internal("ffi_model_records"), bound$spec, two[, 1], 30000L, internal("new_stream")())$records
  moved <- .Call(internal("ffi_model_move"), bound$spec, two[, 1], other, from, internal("new_stream")(c(1, 1)))
  expect_equal(residual(moved, other), residual(from, two[, 1]), tolerance = 1e-8)
  probability <- sapply(list(two[, 1], other), function(th) tail(drop(internal("reported")(bound, th)), 3))
  level <- function(x) drop(x[, 2:3] %*% 1:2)
  expect_gt(chisq.test(tabulate(level(moved) + 1, 3), p = probability[, 2])$p.value, 1e-6)
  # level l has the uniforms between the bounds P(after l) and P(l or after)
  bounds <- apply(probability, 2, function(p) rev(cumsum(rev(c(p, 0)))))
  overlap <- function(a, b) pmax(0, min(bounds[a, 1], bounds[b, 2]) - max(bounds[a + 1, 1], bounds[b + 1, 2]))
  expected <- outer(1:3, 1:3, Vectorize(overlap))
  seen <- table(factor(level(from), 0:2), factor(level(moved), 0:2))
  expect_true(all(seen[expected == 0] == 0))
  expect_gt(chisq.test(seen[expected > 0], p = expected[expected > 0])$p.value, 1e-6)
})

test_that("the hooks of a regression with a factor pass debug_model()", {
  st <- stat_crossprod(y ~ x + g, bounds = list(y = c(-4, 4), x = c(-2, 2), g = c("a", "b", "c")))
  result <- debug_model(model_lm(), st, n = 200)
  expect_false(any(result$ok %in% FALSE))
  expect_true(is.na(result$ok[result$hook == "from_innovations"]))
})

test_that("bounds may be of any size that can be squared", {
  run <- function(size, method) {
    st <- stat_crossprod(y ~ x, bounds = list(y = c(0, size), x = c(0, size)))
    rel <- as_release(c(1, 2, 30, 4, 25), st, mech_laplace(epsilon = 1), n = 50)
    suppressWarnings(sample_posterior(rel, model_lm(), method = method, chains = 1, iter = 20, seed = 1))
  }
  for (method in c("augment", "naive")) {
    small <- posterior::as_draws_matrix(run(4, method)$draws)
    large <- posterior::as_draws_matrix(run(4 * 2^330, method)$draws)
    expect_true(all(is.finite(large)))
    # a regression in other units
    expect_equal(as.numeric(large[, "x"]), as.numeric(small[, "x"]), tolerance = 1e-6)
    if (method == "augment") expect_equal(as.numeric(large[, "sigma"]) / 2^330, as.numeric(small[, "sigma"]), tolerance = 1e-6)
  }
})

test_that("a release whose statistic has no response is told so, whoever wrote the formula", {
  counts <- as_release(c(3, 7), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(epsilon = 1), 10)
  own <- as_release(3, stat_custom(function(r) cbind(t = r[, 1]), "t", 1, list(x = c(0, 1))), mech_laplace(epsilon = 1), 10)
  for (model in list(model_lm(), model_logistic())) {
    expect_error(sample_posterior(counts, model), "needs a response.*the formula ~g", class = "noiseaware_error_formula")
    expect_error(sample_posterior(own, model), "no formula", class = "noiseaware_error_formula")
  }
})
