# Method "collapse" against method "augment" with bounds that never bind, against
# exact answers and real records; limits, restarts, errors.

# bounds so wide that no record is ever clamped
wide_statistic <- function(p, rescale = FALSE, bounds = c(-1000, 1000)) {
  variables <- c("y", paste0("x", seq_len(p)))[seq_len(p + 1)]
  formula <- stats::as.formula(if (p == 0) "y ~ 1" else paste("y ~", paste(variables[-1], collapse = " + ")))
  stat_crossprod(formula, stats::setNames(rep(list(bounds), p + 1), variables), rescale)
}

collapse_models <- function(p) {
  beta <- c(0.5, 0.8, -0.6)[seq_len(p + 1)]
  cov <- matrix(c(1.2, 0.3, 0.3, 0.8), 2)[seq_len(p), seq_len(p), drop = FALSE]
  known <- if (p > 0) fixed(list(mean = c(0.3, -0.2)[seq_len(p)], cov = cov)) else prior_niw()
  half <- if (p > 0) list(mean = prior_niw(0, 2, 1, 5), cov = fixed(cov)) else prior_niw()
  list(
    known = model_lm(prior = prior_normal(beta, 1.5), sigma = fixed(1.5), covariates = known),
    partly = model_lm(prior = prior_normal(beta, 1), sigma = prior_inverse_gamma(4, 5), covariates = half),
    independent = model_lm(prior = prior_normal(beta, 1), sigma = prior_half_t(6, 1.5), covariates = known),
    student = model_lm(prior = prior_student_t(6, beta, 0.8), sigma = prior_inverse_gamma(4, 5), covariates = half),
    unknown = model_lm(prior = prior_nig(beta, 1, 4, 5), covariates = prior_niw(0.2, 2, 2, p + 5))
  )
}

collapse_data <- function(n, p) {
  x <- matrix(rnorm(n * p, 0.3), n)
  y <- 0.5 + drop(x %*% c(0.8, -0.6)[seq_len(p)]) + rnorm(n, 0, 1.3)
  stats::setNames(data.frame(y, x), c("y", paste0("x", seq_len(p)))[seq_len(p + 1)])
}

collapse_fit <- function(release, model, ...) sample_posterior(release, model, method = "collapse", ...)

# about independent draws, evenly spaced
thinned <- function(draws) {
  keep <- max(50, floor(min(posterior::ess_basic(draws), posterior::ess_tail(draws), length(draws)) / 2))
  as.vector(draws)[unique(round(seq(1, length(draws), length.out = keep)))]
}

expect_same_distribution <- function(a, b, label) {
  # it warns of values that stand twice, where a proposal was refused
  expect_gt(suppressWarnings(stats::ks.test(thinned(a), thinned(b)))$p.value, 1e-6, label = label)
  expect_agreement(a, b, spread = FALSE, label = label)
}

scaled_draws <- function(fit, name) {
  draws <- parameter_draws(fit, name)
  # variances have long tails
  if (grepl("^sigma|^cov\\[(.*),\\1\\]", name)) log(draws) else draws
}

# ---- against the records of method "augment" --------------------------------------

cases <- data.frame(
  n = c(5, 5, 5, 5, 3, 2, 5, 50, 50, 5, 5, 50),
  p = c(0, 1, 2, 2, 1, 2, 1, 2, 1, 1, 1, 1),
  mechanism = c("laplace", "gaussian", "laplace", "gaussian", "gaussian", "gaussian", "laplace", "gaussian", "laplace",
                "laplace", "gaussian", "laplace"),
  model = c("unknown", "unknown", "unknown", "known", "unknown", "unknown", "partly", "unknown", "partly",
            "independent", "student", "student")
)

for (i in seq_len(nrow(cases))) {
  case <- cases[i, ]
  label <- paste(names(case), case, collapse = ", ")
  test_that(paste("the posterior is that of imputed records:", label), {
    set.seed(100 + i)
    st <- wide_statistic(case$p)
    size <- sqrt(case$n) * (if (case$model == "known") 1.6 else 2)
    mechanism <- if (case$mechanism == "laplace") mech_laplace(scale = size) else mech_gaussian(sd = size)
    rel <- simulate_release(collapse_data(case$n, case$p), st, mechanism)
    model <- collapse_models(case$p)[[case$model]]
    exact <- sample_posterior(rel, model, method = "augment", chains = 2, iter = if (case$n > 20) 2400 else 3200, warmup = 600, seed = 1)
    fit <- collapse_fit(rel, model, chains = 2, iter = 1000, warmup = 400, seed = 2)
    for (name in posterior::variables(fit$draws)) {
      expect_same_distribution(scaled_draws(fit, name), scaled_draws(exact, name), paste(label, name))
    }
    d <- denoise(fit)
    for (name in posterior::variables(d)) {
      expect_same_distribution(posterior::extract_variable_matrix(d, name), posterior::extract_variable_matrix(denoise(exact), name), paste(label, name))
    }
  })
}

test_that("multivariate normal records, the model's variables in another order", {
  skip_on_cran() # takes long; `make test` runs it
  scale <- matrix(c(2, 0.5, 0.5, 1), 2)
  models <- list(model_mvnormal(c("z", "x"), prior_niw(c(0.5, -1), 2, scale, 6)),
                 model_mvnormal(prior = list(mean = prior_niw(0.5, 2), cov = fixed(scale))))
  st <- stat_sums(~ x + z + I(x^2) + x:z + I(z^2), bounds = list(x = c(-1000, 1000), z = c(-1000, 1000)), rescale = FALSE)
  set.seed(9)
  for (k in 1:2) {
    mechanism <- list(mech_laplace(scale = 4), mech_gaussian(sd = 3))[[k]]
    rel <- simulate_release(models[[k]], st, mechanism, n = 6)
    exact <- sample_posterior(rel, models[[k]], method = "augment", chains = 2, iter = 1600, warmup = 400, seed = 1)
    fit <- collapse_fit(rel, models[[k]], chains = 2, iter = 1200, warmup = 400, seed = 2)
    for (name in posterior::variables(fit$draws)) expect_same_distribution(scaled_draws(fit, name), scaled_draws(exact, name), name)
  }
})

test_that("two statistics with noise of different kinds, one rescaled", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  st <- list(all = wide_statistic(1, bounds = c(-300, 400)), y = stat_crossprod(y ~ 1, list(y = c(-100, 300)), rescale = TRUE))
  mechanism <- list(all = mech_gaussian(sd = c(2, 3, 4, 3, 2)), y = mech_laplace(scale = c(0.02, 1e-2)))
  data <- collapse_data(5, 1)
  rel <- simulate_release(data, st, mechanism)
  model <- collapse_models(1)$unknown
  exact <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 1300, warmup = 400, seed = 1)
  fit <- collapse_fit(rel, model, chains = 2, iter = 1200, warmup = 400, seed = 2)
  for (name in posterior::variables(fit$draws)) expect_same_distribution(scaled_draws(fit, name), scaled_draws(exact, name), name)
  expect_identical(posterior::variables(denoise(fit)), names(rel$value))
  expect_equal(fit$problem$fields[c("lower", "upper")], list(lower = c(-100, -300), upper = c(300, 400)))
  for (name in names(rel$value)) {
    expect_same_distribution(posterior::extract_variable_matrix(denoise(fit), name), posterior::extract_variable_matrix(denoise(exact), name), name)
  }
})

# ---- n = 1 and 2: quadrature over the records ---------------------------------------

test_that("one and two records, no covariate: quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(0)
  model <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5))
  beta <- seq(-9, 10, length.out = 401)
  y <- seq(-9, 10, length.out = 241)
  f <- outer(y, beta, function(y, b) dnorm(y, b, 1.5))
  for (mechanism in list(mech_laplace(scale = c(0.4, 0.7)), mech_gaussian(sd = c(0.4, 0.7)))) {
    for (n in 1:2) {
      rel <- as_release(if (n == 1) c(1.2, 1) else c(1.6, 2.1), st, mechanism, n)
      records <- as.matrix(expand.grid(rep(list(y), n)))
      s <- cbind(rowSums(records), rowSums(records^2))
      noise <- exp(log_noise(mechanism$kernel, unname(rel$scale), unname(rel$value), s))
      likelihood <- if (n == 1) colSums(f * noise) else colSums(f * (matrix(noise, length(y)) %*% f))
      density <- dnorm(beta, 0.5, 2) * likelihood
      fit <- collapse_fit(rel, model, chains = 2, iter = 3200, warmup = 600, seed = 3)
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density), sum(beta * density) / sum(density))
    }
  }
})

# ---- the distribution of the statistic --------------------------------------------------------

collapse_setup <- function(release, model, words = c(1, 2)) {
  bound <- internal("bind_model")(model, release$statistic)
  list(bound = bound, words = words, release = release, problem = internal("collapse_problem")(release, bound))
}

state_totals <- function(setup, state) {
  .Call(internal("ffi_collapse_totals"), setup$problem, state)[setup$problem$where]
}

# statistics drawn as the sampler starts where theta is given: from their distribution
distribution_draws <- function(setup, theta, draws) {
  setup$problem$given <- TRUE
  stream <- internal("new_stream")(c(5, 6))
  out <- matrix(0, draws, length(setup$release$value))
  for (i in seq_len(draws)) {
    state <- .Call(internal("ffi_start"), setup$problem, theta, stream)
    out[i, ] <- state_totals(setup, state)
    stream <- state$rng
  }
  out
}

test_that("totals drawn by their distribution are those of real records", {
  skip_on_cran() # takes long; `make test` runs it
  for (p in 1:2) {
    for (rescale in c(TRUE, FALSE)) {
      st <- wide_statistic(p, rescale)
      bound <- internal("bind_model")(collapse_models(p)$unknown, st)
      values <- c("(Intercept)" = 0.4, x1 = 1.1, x2 = -0.7, sigma = 0.8, "mean[x1]" = 0.5, "mean[x2]" = -1, "cov[x1,x1]" = 1.3,
                  "cov[x2,x1]" = 0.5, "cov[x2,x2]" = 0.9)[bound$parameters]
      theta <- internal("bound_theta")(bound, values)
      for (n in if (rescale) 3 else c(2, 10)) {
        rel <- as_release(numeric(length(st$components)), st, mech_gaussian(sd = 1), n)
        draws <- 1000
        got <- distribution_draws(collapse_setup(rel, collapse_models(p)$unknown), theta, draws)
        stream <- internal("new_stream")(c(7, p))
        x <- .Call(internal("ffi_model_records"), bound$spec, theta, as.integer(n * draws), stream)$records
        # r_components() gives one row a record
        want <- rowsum(r_components(st, x), rep(seq_len(draws), n), reorder = FALSE)
        for (j in seq_len(ncol(got))) {
          expect_gt(ks.test(got[, j], want[, j])$p.value, 1e-6)
          for (k in seq_len(j)) {
            a <- (got[, j] - mean(want[, j])) * (got[, k] - mean(want[, k]))
            b <- (want[, j] - mean(want[, j])) * (want[, k] - mean(want[, k]))
            expect_lt(abs(mean(a) - mean(b)) / sqrt(var(a) / draws + var(b) / draws), 5)
          }
        }
      }
    }
  }
})

# The coordinates of totals that stand first in a state: M, then the rows of the scatter's
# factor, see src/totals/normal_coordinates.c.
plain_totals <- function(q, d, n) {
  rank <- min(n - 1, d)
  total <- sqrt(n) * q[seq_len(d)]
  at <- d
  factor <- matrix(0, d, rank)
  for (i in seq_len(d)) {
    left <- min(i - 1, rank)
    row <- q[at + seq_len(left)]
    at <- at + left
    diagonal <- if (i <= rank) exp(q[at <- at + 1]) else 1
    factor[i, seq_len(left)] <- diagonal * row
    if (i <= rank) factor[i, i] <- diagonal
  }
  list(total = total, product = factor %*% t(factor) + total %o% total / n, size = at)
}

test_that("the state's statistic is what its coordinates say, in plain R", {
  st <- stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-4, 7), x1 = c(-1, 3), x2 = c(-2, 2)))
  for (n in c(1, 2, 3, 40)) {
    rel <- as_release(numeric(9), st, mech_laplace(scale = 1), n)
    setup <- collapse_setup(rel, collapse_models(2)$unknown)
    state <- internal("start_chain")(setup$problem, setup$bound, setup$words, 1, NULL)
    plain <- plain_totals(state$store, 3, n)
    centre <- setup$bound$spec$fields$centre
    # order of the coordinates: x1, x2, y; from the middles of the bounds
    total <- plain$total[c(3, 1, 2)]
    product <- plain$product[c(3, 1, 2), c(3, 1, 2)]
    moments <- rbind(c(n, total), cbind(total, product))
    rescaling <- diag(c(1, internal("statistic_fields")(st)$scale))
    rescaling[-1, 1] <- internal("statistic_fields")(st)$shift + internal("statistic_fields")(st)$scale * centre
    moments <- rescaling %*% moments %*% t(rescaling)
    want <- c(moments[1, -1], moments[cbind(st$pairs$first, st$pairs$second) + 1])
    expect_equal(state_totals(setup, state), unname(want), tolerance = 1e-9)
  }
})

# ---- the density -------------------------------------------------------------------------

test_that("the gradient is that of finite differences, whatever is known", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-4, 7), x1 = c(-1, 3), x2 = c(-2, 2)))
  cov <- matrix(c(1.2, 0.3, 0.3, 0.8), 2)
  beta <- c(0.5, 0.8, -0.6)
  models <- c(collapse_models(2), list(
    model_lm(prior = fixed(beta), sigma = prior_inverse_gamma(2, 2), covariates = list(mean = prior_niw(0, 2), cov = fixed(cov))),
    model_lm(prior = fixed(beta), sigma = fixed(2), covariates = list(mean = fixed(c(0.1, 0.2)), cov = prior_niw(0, 2, 1, 5))),
    model_lm(prior = fixed(beta), sigma = prior_exponential(0.6)), model_lm(prior = prior_normal(), sigma = prior_half_normal(2)),
    model_lm(prior = prior_student_t(3), sigma = fixed(2)), model_lm(prior = prior_normal(), sigma = prior_lognormal(0.5, 0.7)),
    model_lm(prior = prior_nig(beta, matrix(c(2, 1, 0, 1, 3, 0.5, 0, 0.5, 1), 3)), sigma = fixed(2)), model_mvnormal()))
  set.seed(8)
  data <- collapse_data(40, 2)
  for (n in c(1, 2, 3, 40)) {
    for (k in seq_along(models)) {
      model <- models[[k]]
      # each model under one kind of noise with one or three records, under the other with two or many
      mechanism <- list(mech_laplace(scale = 2), mech_gaussian(sd = 1))[[(k + n) %% 2 + 1]]
      rel <- simulate_release(data[seq_len(n), ], st, mechanism)
      setup <- collapse_setup(rel, model)
      state <- internal("start_chain")(setup$problem, setup$bound, setup$words, 1, NULL)
      student <- inherits(model$prior, "prior_student_t")
      conjugate <- inherits(model$sigma %||% model$prior, c("prior_nig", "prior_inverse_gamma")) && !inherits(model$prior, "prior_normal")
      kept <- inherits(model, "model_lm") * (3 * student + (!inherits(model$sigma, "fixed") && (student || !conjugate)))
      q <- state$store[seq_len(plain_totals(state$store, 3, n)$size + kept)] + 0.01
      density <- function(q) .Call(internal("ffi_collapse_density"), setup$problem, state, q)
      slope <- vapply(seq_along(q), function(j) {
        h <- 1e-5 * (seq_along(q) == j)
        (density(q + h)[1] - density(q - h)[1]) / 2e-5
      }, 0)
      expect_equal(density(q)[-1], slope, tolerance = 1e-6)
    }
  }
})

# p(theta) L(theta; c) / p(theta | c) is the same at every theta (Chib 1995): what the model
# says of two statistics c differs as that does, with the conjugate distribution in plain R.
log_inverse_wishart <- function(cov, df, scale) {
  p <- nrow(cov)
  gammas <- p * (p - 1) / 4 * log(pi) + sum(lgamma((df + 1 - seq_len(p)) / 2))
  as.numeric(df / 2 * determinant(scale)$modulus - df * p / 2 * log(2) - gammas - (df + p + 1) / 2 * determinant(cov)$modulus -
         sum(diag(scale %*% solve(cov))) / 2)
}

log_nig <- function(beta, variance, distribution) {
  log_normal(beta, distribution$mean, variance * solve(distribution$precision)) + distribution$shape * log(distribution$rate) - lgamma(distribution$shape) -
    (distribution$shape + 1) * log(variance) - distribution$rate / variance
}

log_niw <- function(mean, cov, distribution) log_inverse_wishart(cov, distribution$df, distribution$scale) + log_normal(mean, distribution$mean, cov / distribution$kappa)

test_that("theta is integrated out: the ratio of joint and conditional density, in plain R", {
  beta <- c(0.5, 0.8, -0.6)
  model <- model_lm(prior = prior_nig(beta, 2, 4, 5), covariates = prior_niw(0.2, 2, 2, 7))
  st <- wide_statistic(2)
  bound <- internal("bind_model")(model, st)
  set.seed(4)
  evidence <- function(records, seed) {
    x <- cbind(1, records[, 2], records[, 3])
    y <- records[, 1]
    n <- nrow(x)
    before <- list(mean = beta, precision = diag(2, 3), shape = 4, rate = 5)
    gram <- crossprod(x) + before$precision
    at <- solve(gram, crossprod(x, y) + before$precision %*% beta)
    after <- list(mean = drop(at), precision = gram, shape = 4 + n / 2,
                  rate = 5 + (sum(y^2) + 2 * sum(beta^2) - sum(at * (gram %*% at))) / 2)
    w <- x[, -1]
    average <- colMeans(w)
    away <- average - 0.2
    niw <- list(mean = c(0.2, 0.2), kappa = 2, df = 7, scale = diag(2, 2))
    niw_after <- list(mean = (2 * niw$mean + n * average) / (2 + n), kappa = 2 + n, df = 7 + n,
                      scale = niw$scale + crossprod(sweep(w, 2, average)) + 2 * n / (2 + n) * tcrossprod(away))
    set.seed(seed)
    coefficients <- rnorm(3)
    variance <- rexp(1) + 0.5
    mean <- rnorm(2)
    cov <- crossprod(matrix(rnorm(6), 3)) + diag(2)
    likelihood <- sum(dnorm(y, drop(x %*% coefficients), sqrt(variance), log = TRUE)) +
      sum(apply(w, 1, log_normal, mean, cov))
    log_nig(coefficients, variance, before) + log_niw(mean, cov, niw) + likelihood -
      log_nig(coefficients, variance, after) - log_niw(mean, cov, niw_after)
  }
  said <- function(records) {
    moments <- internal("crossprod_moments")(st, internal("statistic_total")(st, as.data.frame(records)), nrow(records))
    complete <- internal("bound_complete")(bound, moments, nrow(records))
    .Call(internal("ffi_model_marginal"), bound$spec, complete, as.double(nrow(records)), numeric(20))[1]
  }
  for (n in c(2, 12)) {
    a <- as.matrix(collapse_data(n, 2))
    b <- as.matrix(collapse_data(n, 2))
    expect_equal(evidence(a, 1), evidence(a, 2), tolerance = 1e-9)
    expect_equal(said(a) - said(b), evidence(a, 1) - evidence(b, 1), tolerance = 1e-9)
  }
})

# ---- limits ---------------------------------------------------------------------------

test_that("with endless noise it is the prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(2)
  model <- collapse_models(2)$unknown
  bound <- internal("bind_model")(model, st)
  set.seed(3)
  prior <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 40000L)$theta)
  releases <- list(as_release(rep(0, 9), st, mech_laplace(scale = 1e9), 2), as_release(rep(0, 9), st, mech_gaussian(sd = 1e9), 40))
  for (rel in releases) {
    fit <- collapse_fit(rel, model, chains = 2, iter = 1200, warmup = 400, seed = 4)
    for (name in bound$parameters) {
      expect_distribution(parameter_draws(fit, name), function(p) quantile(prior[, name], p, names = FALSE), errors = 6)
    }
  }
})

test_that("with next to no noise it is the conjugate posterior given the totals", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(1)
  set.seed(5)
  total <- internal("statistic_total")(st, collapse_data(50, 1))
  for (model in collapse_models(1)) {
    bound <- internal("bind_model")(model, st)
    complete <- internal("bound_complete")(bound, internal("crossprod_moments")(st, total, 50), 50)
    start <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), 1L)
    theta <- .Call(internal("ffi_model_gibbs"), bound$spec, complete, 50, start$theta, start$state, c(20000L, 1L), NULL)$theta
    exact <- internal("reported")(bound, theta)
    for (mechanism in list(mech_laplace(scale = 1e-5), mech_gaussian(sd = 1e-5))) {
      fit <- collapse_fit(as_release(total, st, mechanism, 50), model, chains = 2, iter = 1000, warmup = 500, seed = 6)
      for (name in bound$parameters) {
        expect_distribution(parameter_draws(fit, name), function(p) quantile(exact[, name], p, names = FALSE), errors = 6)
      }
      expect_lt(max(abs(colMeans(posterior::as_draws_matrix(denoise(fit))) - total)), 1e-4)
    }
  }
})

test_that("a thousand million records are no more work than fifty", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 1e9
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-9, 11), x = c(-8, 8)), rescale = FALSE)
  truth <- c(y = 0.5, x = 0, `y^2` = 2.25, `y:x` = 1, `x^2` = 1) * n
  rel <- as_release(truth, st, mech_gaussian(mu = 1), n)
  for (seed in 1:2) {
    fit <- collapse_fit(rel, model_lm(), chains = 2, iter = 2200, seed = seed)
    table <- posterior::summarise_draws(fit$draws, "mean", "sd", "rhat", "ess_bulk")
    expect_equal(table$variable, c("(Intercept)", "x", "sigma", "mean[x]", "cov[x,x]"))
    expect_lt(max(table$rhat), 1.02)
    # the posterior of the totals themselves, far wider than the noise
    sd <- sqrt(c(1, 1, 0.5, 1, 2) / n)
    expect_lt(max(abs(table$mean - c(0.5, 1, 1, 0, 1)) / sd), 0.5)
    expect_lt(max(abs(log(table$sd / sd))), 0.2)
    expect_lt(abs(mean(posterior::extract_variable(denoise(fit), "x^2")) - n) / noise_sd(rel)[["x^2"]], 0.5)
  }
})

# ---- joint-distribution test (Geweke 2004) -----------------------------------------------

# A prior without long tails: the totals' distribution given theta is far from normal out
# there, proposals stick, and the error of a mean is no longer known.
test_that("joint-distribution test", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(1)
  model <- model_lm(prior = prior_nig(c(0.5, 0), 4, 15, 14), covariates = prior_niw(0.5, 4, 16, 20))
  set.seed(31)
  for (n in c(4, 12)) {
    for (mechanism in list(mech_laplace(scale = n), mech_gaussian(sd = n))) {
      draws <- geweke_totals(model, st, mechanism, n, 1200)
      # the prior's probability below each draw
      below <- cbind(stats::pt((draws[, 1] - 0.5) * sqrt(4 * 15 / 14), 30), stats::pt(draws[, 2] * sqrt(4 * 15 / 14), 30),
                     stats::pgamma(1 / draws[, 3]^2, 15, 14, lower.tail = FALSE),
                     stats::pt((draws[, 4] - 0.5) * sqrt(4 * 20 / 16), 20), stats::pchisq(16 / draws[, 5], 20, lower.tail = FALSE))
      for (j in 1:5) {
        for (p in c(0.1, 0.5, 0.9)) expect_same_mean((below[, j] <= p) + 0, p)
        expect_same_mean(below[, j], 0.5)
        expect_same_mean((below[, j] - 0.5)^2, 1 / 12)
      }
    }
  }
})

# ---- restarts, seeds, interrupts ------------------------------------------------------------

collapse_release <- function(n = 50, mechanism = mech_gaussian(mu = 1)) {
  set.seed(6)
  simulate_release(model_lm(), lm_problem(1), mechanism, n = n)
}

test_that("1000 iterations and 1000 more are the same bits as 2000", {
  skip_on_cran() # takes long; `make test` runs it
  for (mechanism in list(mech_gaussian(mu = 1), mech_laplace(epsilon = 1))) {
    rel <- collapse_release(mechanism = mechanism)
    expect_extends(function(iter) collapse_fit(rel, model_lm(), chains = 2, iter = iter, warmup = 200, seed = 7))
  }
})

test_that("seed, thin and init are used; the user's generator is left alone", {
  rel <- collapse_release()
  run <- function(...) collapse_fit(rel, model_lm(), chains = 2, iter = 120, warmup = 20, ...)
  set.seed(1)
  before <- .Random.seed
  a <- run(seed = 3)
  expect_identical(.Random.seed, before)
  expect_identical(run(seed = 3)$draws, a$draws)
  expect_false(identical(run(seed = 4)$draws, a$draws))
  expect_false(identical(a$draws[, 1, ], a$draws[, 2, ]))
  expect_equal(as.numeric(run(seed = 3, thin = 2)$draws), as.numeric(a$draws[seq(2, 100, 2), , ]))
  start <- c("(Intercept)" = 1, x1 = 1, sigma = 1, "mean[x1]" = 0, "cov[x1,x1]" = 1)
  expect_false(identical(run(seed = 3, init = list(start, start))$draws, a$draws))
  no_warmup <- collapse_fit(rel, model_lm(), chains = 1, iter = 50, warmup = 0, seed = 1)
  expect_gt(length(unique(as.numeric(no_warmup$draws[, , 1]))), 40)
})

test_that("draws do not depend on the number of workers", {
  skip_on_cran()
  rel <- collapse_release()
  one <- collapse_fit(rel, model_lm(), chains = 3, iter = 200, seed = 5)
  skip_if_not_installed("future")
  old <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(old))
  two <- collapse_fit(rel, model_lm(), chains = 3, iter = 200, seed = 5)
  expect_identical(two$draws, one$draws)
  expect_identical(extend(two, 100)$draws, extend(one, 100)$draws)
})

test_that("an interrupt leaves draws and state that belong together", {
  skip_on_cran()
  skip_on_os("windows")
  setup <- collapse_setup(collapse_release(), model_lm())
  expect_interruptible(setup$problem, setup$bound, setup$words, list(warmup = 100, thin = 1), 20000)
})

# ---- what it reports, what it refuses ---------------------------------------------------------

test_that("the share of records outside the bounds is that of the draws' marginal distributions", {
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-2, 4), x = c(-1, 2)))
  rel <- as_release(c(y = 3, x = -2, `y^2` = 9, `y:x` = 4, `x^2` = 12), st, mech_laplace(epsilon = 5), 40)
  fit <- collapse_fit(rel, model_lm(), chains = 1, iter = 600, warmup = 300, seed = 1)
  d <- posterior::as_draws_df(fit)
  mean_y <- d[["(Intercept)"]] + d$x * d[["mean[x]"]]
  sd_y <- sqrt(d$sigma^2 + d$x^2 * d[["cov[x,x]"]])
  sd_x <- sqrt(d[["cov[x,x]"]])
  tails <- function(lower, upper, mean, sd) pnorm(lower, mean, sd) + pnorm(upper, mean, sd, lower.tail = FALSE)
  share <- tails(-2, 4, mean_y, sd_y) + tails(-1, 2, d[["mean[x]"]], sd_x)
  expect_equal(fit$chains[[1]]$outside, pmin(share, 1), tolerance = 1e-9)
  outside <- internal("outside_bounds")(fit)
  expect_equal(outside[["share"]], mean(share))
  expect_equal(outside[["any"]], mean(1 - (1 - share)^40))
  expect_output(print(fit), "NOT exact: records may lie outside the bounds\n +expected share of records outside 0")
  expect_output(print(fit), "probability of at least one")
  expect_identical(fit$exact, NA)
})

test_that("what it cannot do it refuses, and says what is missing", {
  st <- stat_custom(function(records) cbind(records[, "y"], records[, "y"]^2, records[, "x"]), names = c("a", "b", "c"), sensitivity = 3,
                    bounds = list(y = c(0, 1), x = c(0, 1)))
  rel <- as_release(c(1, 2, 3), st, mech_laplace(epsilon = 1), 10)
  expect_error(collapse_fit(rel, model_lm(y ~ x)), "products of two of them", class = "noiseaware_error_method")
})

test_that("a normal variable, totals of a formula, known or unknown mean and sd", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(21)
  data <- data.frame(x = rnorm(6, 1, 2))
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(-200, 260)), rescale = FALSE)
  models <- list(model_normal(prior = prior_nig(0.5, 1, 4, 12)), model_normal(prior = list(mean = fixed(1.2), sd = prior_inverse_gamma(4, 10))),
                 model_normal(prior = list(mean = prior_normal(0, 2), sd = prior_inverse_gamma(4, 10))))
  releases <- list(simulate_release(data, st, mech_laplace(scale = c(2, 8))), simulate_release(data, st, mech_gaussian(sd = c(4, 6))))
  for (k in seq_along(models)) {
    rel <- releases[[k %% 2 + 1]]
    exact <- sample_posterior(rel, models[[k]], method = "augment", chains = 2, iter = 1600, warmup = 400, seed = k)
    fit <- collapse_fit(rel, models[[k]], chains = 2, iter = 1000, warmup = 400, seed = 2)
    for (name in posterior::variables(fit$draws)) expect_same_distribution(scaled_draws(fit, name), scaled_draws(exact, name), name)
    for (name in st$components) {
      expect_same_distribution(posterior::extract_variable_matrix(denoise(fit), name), posterior::extract_variable_matrix(denoise(exact), name), name)
    }
  }
  # one total of two: the other is integrated out
  only_mean <- simulate_release(data, stat_sums(~x, bounds = list(x = c(-200, 260)), outside = "drop"), mech_laplace(scale = 2))
  exact <- sample_posterior(only_mean, models[[3]], method = "augment", chains = 2, iter = 1600, warmup = 400, seed = 9)
  fit <- collapse_fit(only_mean, models[[3]], chains = 2, iter = 1000, warmup = 400, seed = 2)
  for (name in c("mean", "sd")) expect_same_distribution(log(abs(parameter_draws(fit, name))), log(abs(parameter_draws(exact, name))), name)
  expect_error(collapse_fit(as_release(1, stat_sums(~ I(x^3), list(x = c(0, 1))), mech_laplace(scale = 1), 5), model_normal()),
               "products of two", class = "noiseaware_error_method")
})

test_that("joint-distribution test of priors that do not integrate out", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(1)
  known <- fixed(list(mean = 0.3, cov = matrix(1)))
  models <- list(model_lm(prior = prior_normal(c(0.5, 0), 0.5), sigma = prior_half_normal(2), covariates = known),
                 model_lm(prior = prior_student_t(8, c(0.5, 0), 0.5), sigma = fixed(1), covariates = known),
                 model_lm(prior = prior_student_t(8, c(0.5, 0), 0.5), sigma = prior_inverse_gamma(15, 14), covariates = known),
                 model_lm(prior = prior_normal(c(0.5, 0), 0.5), sigma = prior_lognormal(0, 0.5), covariates = known))
  set.seed(32)
  for (k in seq_along(models)) {
    prior <- prior_draws(models[[k]], st)
    # sigma's tail is slow
    expect_prior(geweke_totals(models[[k]], st, list(mech_laplace(scale = 6), mech_gaussian(sd = 6))[[k %% 2 + 1]], 6, 10000), prior)
  }
})

# ---- coordinates of the scatter where noise is small ----------------------------------------

# log F_ii in place of log S_ii / 2, in plain R
diagonal_of_factor <- function(q, d) {
  at <- d
  for (i in seq_len(d)) {
    row <- q[at + seq_len(i - 1)]
    at <- at + i
    q[at] <- q[at] - log(1 + sum(row^2)) / 2
  }
  q
}

test_that("coordinates of the scatter: the gradient is that of finite differences, and the density that of the totals with the Jacobian", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(12)
  data <- collapse_data(12, 2)
  st <- wide_statistic(2)
  narrow <- stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-1, 3), x1 = c(-1, 1.5), x2 = c(-1, 1)))
  for (model in list(model_lm(prior = prior_nig()), model_lm())) for (mechanism in list(mech_laplace(scale = 0.01), mech_gaussian(sd = 0.01))) {
    setups <- list(collapse_setup(simulate_release(data, st, mechanism), model), collapse_setup(simulate_release(data, narrow, mechanism), model))
    setups[[2]]$problem <- internal("clt_totals_problem")(setups[[2]]$release, setups[[2]]$bound, c(1, 2), 1, NULL)
    expect_gt(length(setups[[2]]$problem$fields$spread), 0)
    for (setup in setups) {
      places <- lapply(list(scatter = 1, factor = NULL), function(field) {
        setup$problem$fields$scatter <- field
        state <- internal("start_chain")(setup$problem, setup$bound, c(1, 2), 1, NULL)
        size <- 9 + (!inherits(model$prior, "prior_nig")) + length(setup$problem$fields$spread) / length(setup$problem$released)
        list(q = state$store[seq_len(size)] + 0.01, density = function(q) .Call(internal("ffi_collapse_density"), setup$problem, state, q))
      })
      q <- places$scatter$q
      density <- places$scatter$density
      slope <- vapply(seq_along(q), function(j) {
        h <- 1e-5 * (seq_along(q) == j)
        (density(q + h)[1] - density(q - h)[1]) / 2e-5
      }, 0)
      expect_equal(density(q)[-1], slope, tolerance = 1e-6)
      jacobian <- vapply(seq_along(q), function(j) {
        h <- 1e-6 * (seq_along(q) == j)
        (diagonal_of_factor(q + h, 3) - diagonal_of_factor(q - h, 3)) / 2e-6
      }, q)
      expect_equal(density(q)[1], places$factor$density(diagonal_of_factor(q, 3))[1] + log(abs(det(jacobian))), tolerance = 1e-6)
    }
  }
})

test_that("coordinates of the scatter: joint-distribution test", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(1)
  known <- fixed(list(mean = 0.3, cov = matrix(1)))
  models <- list(model_lm(prior = prior_normal(c(0.5, 0), 0.5), sigma = prior_half_normal(2), covariates = known),
                 model_lm(prior = prior_nig(c(0.5, 0), 2, 4, 5), covariates = known))
  set.seed(34)
  for (k in 1:2) expect_prior(geweke_totals(models[[k]], st, list(mech_laplace(scale = 2), mech_gaussian(sd = 2))[[k]], 6, 7000, fields = list(scatter = 1)),
                              prior_draws(models[[k]], st))
})

test_that("coordinates of the scatter are chosen where noise leaves it far from singular", {
  set.seed(5)
  st <- stat_crossprod(y ~ x1 + x2, bounds = list(y = c(-14, 17), x1 = c(-11, 13), x2 = c(-12, 12)))
  value <- simulate_release(collapse_data(60, 2), st, mech_laplace(scale = 1e-6))$value
  # 2 sqrt(d) times the root mean variance of noise 2 scale^2 on S_ij / sqrt(S_ii S_jj) is 0.6
  scatter <- value[st$components %in% c("y^2", "x1^2", "x2^2")] - value[1:3]^2 / 60
  limit <- 0.6 * sqrt(3 / 8) / sum(1 / scatter)
  model <- model_lm(prior = prior_nig())
  chosen <- function(release) {
    setup <- collapse_setup(release, model)
    internal("tells_scatter")(setup$problem, setup$bound)
  }
  expect_true(chosen(as_release(value, st, mech_laplace(scale = 0.99 * limit), 60)))
  expect_false(chosen(as_release(value, st, mech_laplace(scale = 1.01 * limit), 60)))
  expect_true(chosen(as_release(value, st, mech_gaussian(sd = 0.99 * sqrt(2) * limit), 60)))
  expect_false(chosen(as_release(value, st, mech_gaussian(sd = 1.01 * sqrt(2) * limit), 60)))
  # a product or a square that was not released
  part <- stat_subset(st, st$components[-5])
  expect_false(chosen(as_release(value[-5], part, mech_laplace(scale = 0.1 * limit), 60)))
  # and the sampler takes them
  fit <- function(scale) collapse_fit(as_release(value, st, mech_laplace(scale = scale), 60), model, chains = 1, iter = 100, seed = 1)
  expect_identical(fit(0.99 * limit)$problem$fields$scatter, 1)
  expect_null(fit(1.01 * limit)$problem$fields$scatter)
})

# ---- the response's totals as innovations ---------------------------------------------------

innovating_models <- function(sigma = prior_half_normal(1.5)) {
  known <- fixed(list(mean = 0.3, cov = matrix(1)))
  list(kept = model_lm(prior = prior_student_t(8, c(0.5, 0), 0.5), sigma = sigma, covariates = known),
       integrated = model_lm(prior = prior_normal(c(0.5, 0), 0.5), sigma = sigma, covariates = known),
       known = model_lm(prior = fixed(c(0.5, 0.8)), sigma = sigma, covariates = known))
}

test_that("as innovations: the gradient is that of finite differences, and the density that of the totals with the Jacobian", {
  set.seed(12)
  st <- wide_statistic(1)
  for (model in innovating_models()) for (mechanism in list(mech_laplace(scale = 2), mech_gaussian(sd = 1))) {
    setup <- collapse_setup(simulate_release(collapse_data(9, 1), st, mechanism), model)
    problem <- setup$problem
    problem$fields$innovates <- 1
    state <- internal("start_chain")(problem, setup$bound, setup$words, 1, NULL)
    coefficients <- inherits(model$prior, "prior_student_t")
    size <- plain_totals(state$store, 2, 9)$size
    q <- state$store[seq_len(size + 2 * coefficients + 1)] + 0.01
    density <- function(q) .Call(internal("ffi_collapse_density"), problem, state, q)
    slope <- vapply(seq_along(q), function(j) {
      h <- 1e-5 * (seq_along(q) == j)
      (density(q + h)[1] - density(q - h)[1]) / 2e-5
    }, 0)
    expect_equal(density(q)[-1], slope, tolerance = 1e-6)

    # in plain R: M_x, M_y, log F_xx, F_yx / F_yy, log F_yy of totals centred as the model centres them
    log_sigma <- q[length(q)]
    beta <- if (coefficients) q[size + 1:2] else if (inherits(model$prior, "fixed")) state$theta[1:2]
    totals <- function(q) {
      log_diagonal <- q[5] + log_sigma
      along <- if (is.null(beta)) 0 else beta[2] * exp(q[3])
      spread <- if (is.null(beta)) 1 else exp(log_sigma)
      mean <- if (is.null(beta)) q[2] else sqrt(9) * beta[1] + beta[2] * q[1] + spread * q[2]
      replace(q, c(2, 4, 5), c(mean, (along + spread * q[4]) / exp(log_diagonal), log_diagonal))
    }
    jacobian <- vapply(seq_along(q), function(j) {
      h <- 1e-6 * (seq_along(q) == j)
      (totals(q + h) - totals(q - h)) / 2e-6
    }, q)
    plain <- .Call(internal("ffi_collapse_density"), setup$problem, internal("start_chain")(setup$problem, setup$bound, setup$words, 1, NULL), totals(q))[1]
    expect_equal(density(q)[1], plain + log(abs(det(jacobian[seq_len(size), seq_len(size)]))), tolerance = 1e-6)
  }
})

test_that("as innovations: joint-distribution test", {
  skip_on_cran() # takes long; `make test` runs it
  st <- wide_statistic(1)
  set.seed(33)
  # near a standard deviation of 0 alternate draws of data and parameters are slow: the next test has that
  for (model in innovating_models(prior_inverse_gamma(4, 6))) {
    for (mechanism in list(mech_laplace(scale = 6), mech_gaussian(sd = 6))) {
      draws <- geweke_totals(model, st, mechanism, 6, 2000, fields = list(innovates = 1))
      expect_prior(draws, prior_draws(model, st))
    }
  }
})

test_that("a residual standard deviation that noise hides comes near 0 as often as imputed records say", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  x <- data.frame(a = rnorm(200, 5, 3), b = rnorm(200, -2, 2))
  x$y <- 3 + x$a - 2 * x$b + rnorm(200, 0, 4)
  rel <- simulate_release(x, stat_crossprod(y ~ a + b, list(y = c(-50, 70), a = c(-25, 35), b = c(-25, 20))), mech_gaussian(rho = 2))
  cov <- fixed(matrix(c(9, 0, 0, 4), 2))
  models <- list(model_lm(prior = prior_student_t(4, 0, 3), sigma = prior_half_t(3, 5), covariates = list(mean = prior_niw(4, 1), cov = cov)),
                 model_lm(prior = prior_normal(0, 3), sigma = prior_exponential(0.2)))
  for (model in models) {
    fit <- collapse_fit(rel, model, chains = 4, iter = 1100, seed = 1)
    expect_identical(fit$problem$fields$innovates, 1)
    records <- sample_posterior(rel, model, method = "augment", chains = 4, iter = 1000, seed = 2)
    expect_same_quantiles(fit$draws, records$draws)
  }
  precise <- simulate_release(x, rel$statistic, mech_gaussian(sd = 0.01))
  expect_null(collapse_fit(precise, models[[2]], chains = 1, iter = 200, seed = 3)$problem$fields$innovates)
})

test_that("as innovations: chains that are given parameters start at them, in whatever units the columns are", {
  set.seed(2)
  x <- data.frame(a = rnorm(200, 50, 10), b = rnorm(200, 3000, 400))
  x$y <- 5 + 0.3 * x$a + 0.01 * x$b + rnorm(200, 0, 5)
  rel <- simulate_release(x, stat_crossprod(y ~ a + b, list(y = c(-50, 150), a = c(0, 100), b = c(1000, 5000)), rescale = FALSE), mech_gaussian(rho = 0.5))
  start <- c("(Intercept)" = 5, a = 0.3, b = 0.01, sigma = 5, "mean[a]" = 50, "mean[b]" = 3000, "cov[a,a]" = 100, "cov[b,a]" = 0, "cov[b,b]" = 160000)
  fit <- collapse_fit(rel, model_lm(prior = prior_student_t(3, 0, 10), sigma = prior_half_normal(20)), chains = 4, iter = 2, warmup = 1, seed = 1,
                      init = rep(list(start), 4))
  expect_identical(fit$problem$fields$innovates, 1)
  expect_lt(max(abs(parameter_draws(fit, "a") - 0.3)), 1)
})

test_that("a prior that is cut off: the posterior is that of imputed records", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(41)
  one <- simulate_release(data.frame(x = rnorm(6, 1, 1)), stat_sums(~ x + I(x^2), bounds = list(x = c(-200, 260)), rescale = FALSE), mech_laplace(scale = c(6, 20)))
  two <- simulate_release(collapse_data(6, 1), wide_statistic(1), mech_gaussian(sd = 8))
  cases <- list(list(one, model_normal(prior = prior_nig(0.5, 1, 2, 2, within = c(-1, 2.5)))),
                list(two, model_lm(prior = prior_normal(c(0.5, 0.8), 1), sigma = prior_inverse_gamma(4, 5),
                                   covariates = prior_niw(0.2, 1, 1, 4, within = c(-1, 1.6)))))
  for (case in cases) {
    exact <- sample_posterior(case[[1]], case[[2]], method = "augment", chains = 2, iter = 1700, warmup = 400, seed = 3)
    fit <- collapse_fit(case[[1]], case[[2]], chains = 2, iter = 1200, warmup = 400, seed = 4)
    told <- acceptance(fit)
    expect_true(all(told$within > 0.1 & told$within < 0.99))
    expect_equal(told$mean, vapply(fit$chains, function(chain) mean(chain$acceptance[-(1:400)]), 0))
    for (name in posterior::variables(fit$draws)) expect_same_distribution(scaled_draws(fit, name), scaled_draws(exact, name), name)
    d <- denoise(fit)
    for (name in posterior::variables(d)) {
      expect_same_distribution(posterior::extract_variable_matrix(d, name), posterior::extract_variable_matrix(denoise(exact), name), name)
    }
  }
})
