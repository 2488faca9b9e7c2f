# Logistic regression: its hooks one by one, the Polya-Gamma update against the
# posterior on a grid, the sampler against enumeration and quadrature.

mixed <- stat_crossprod(y ~ x + g + w, list(y = c(0, 1), x = c(2, 8), g = c("a", "b", "c"), w = c(-1, 3)))
coded <- stat_counts(~ y:g + h, levels = list(y = c("no", "yes"), g = c("a", "b", "c"), h = c("1", "2")))
known <- fixed(list(mean = 0.3, cov = matrix(1.2)))
# each with its statistic
logistic_models <- list(
  default = list(model_logistic(), mixed),
  normal = list(model_logistic(prior = prior_normal(c(1, -1, 0.5, 0, 2), c(2, 1, 3, 1, 0.5)), levels = prior_dirichlet(2)), mixed),
  fixed = list(model_logistic(prior = fixed(c(1, -0.5, 0.3, 1, 0))), mixed),
  known = list(model_logistic(covariates = fixed(list(mean = c(4, 1), cov = matrix(c(2, 0.5, 0.5, 1), 2)))), mixed),
  codes = list(model_logistic(y ~ g + h, prior = prior_normal(0, 1.5)), coded)
)
log_bind <- function(name) internal("bind_model")(logistic_models[[name]][[1]], logistic_models[[name]][[2]])
log_stream <- function(seed) internal("new_stream")(c(23, seed))
log_prior <- function(bound, draws, seed = 1) .Call(internal("ffi_model_prior"), bound$spec, log_stream(seed), as.integer(draws))$theta
log_records <- function(bound, theta, n, seed = 2) .Call(internal("ffi_model_records"), bound$spec, theta, as.integer(n), log_stream(seed))$records
log_report <- function(bound, theta) internal("reported")(bound, theta)

# design matrix of records, from the meaning of the columns
log_design <- function(bound, x) {
  d <- bound$design[-1, ]
  cbind(1, sapply(seq_len(nrow(d)), function(j) if (d$code[j] > 0) x[, d$column[j] + 1] == d$code[j] else x[, d$column[j] + 1]))
}
log_eta <- function(bound, theta, x) {
  prior <- bound$model$prior
  beta <- if (inherits(prior, "fixed")) prior$value else log_report(bound, theta)[1, seq_len(nrow(bound$design))]
  drop(log_design(bound, x) %*% beta)
}

# ---- parameters and prior ---------------------------------------------------------

test_that("draws are reported by name, and bound_theta inverts them", {
  expect_identical(log_bind("default")$parameters,
                   c("(Intercept)", "x", "gb", "gc", "w", "mean[x]", "mean[w]", "cov[x,x]", "cov[w,x]", "cov[w,w]",
                     "prob[g=a]", "prob[g=b]", "prob[g=c]"))
  expect_identical(log_bind("codes")$parameters, c("(Intercept)", "gb", "gc", "h2", "prob[g=a]", "prob[g=b]", "prob[g=c]",
                                                   "prob[h=1]", "prob[h=2]"))
  for (name in names(logistic_models)) {
    bound <- log_bind(name)
    theta <- log_prior(bound, 5)
    report <- log_report(bound, theta)
    for (i in 1:5) expect_equal(internal("bound_theta")(bound, report[i, ]), theta[, i], tolerance = 1e-8)
    prob <- report[, grep("prob\\[g", colnames(report)), drop = FALSE]
    expect_equal(rowSums(prob), rep(1, 5), tolerance = 1e-12)
  }
})

test_that("prior draws have the prior's moments", {
  skip_on_cran()
  z <- function(x, exact) abs(mean(x) - exact) / (sd(x) / sqrt(length(x)))
  draws <- log_report(log_bind("normal"), log_prior(log_bind("normal"), 1e5))
  for (j in 1:5) {
    expect_lt(z(draws[, j], c(1, -1, 0.5, 0, 2)[j]), 5)
    expect_lt(z((draws[, j] - c(1, -1, 0.5, 0, 2)[j])^2, c(2, 1, 3, 1, 0.5)[j]^2), 5)
  }
  for (l in c("a", "b", "c")) expect_gt(ks.test(draws[, paste0("prob[g=", l, "]")], "pbeta", 2, 4)$p.value, 1e-6)
  # by default: scaled by the bounds, from the middles x = 5 and w = 1
  draws <- log_report(log_bind("default"), log_prior(log_bind("default"), 1e5))
  expect_gt(ks.test(draws[, "x"], "pnorm", 0, 6 / sqrt(3) / 3)$p.value, 1e-6)
  expect_gt(ks.test(draws[, "w"], "pnorm", 0, 6 / sqrt(3) / 2)$p.value, 1e-6)
  expect_gt(ks.test(draws[, "gc"], "pnorm", 0, 3 / sqrt(3))$p.value, 1e-6)
  expect_gt(ks.test(draws[, "(Intercept)"] + 5 * draws[, "x"] + draws[, "w"], "pnorm", 0, 2.5)$p.value, 1e-6)
})

test_that("the prior density in theta's coordinates is the natural one times the Jacobian", {
  for (name in c("normal", "codes")) {
    bound <- log_bind(name)
    theta <- log_prior(bound, 6, seed = 3)
    report <- log_report(bound, theta)
    beta <- seq_len(nrow(bound$design))
    mean <- rep_len(bound$model$prior$mean, length(beta))
    sd <- rep_len(bound$model$prior$sd, length(beta))
    expected <- rowSums(sapply(beta, function(j) dnorm(report[, j], mean[j], sd[j], log = TRUE)))
    alpha <- bound$model$levels$alpha
    for (f in unique(sub("=.*", "", grep("prob", bound$parameters, value = TRUE)))) {
      # d(p_1..p_{L-1}) / d(sticks) is the product of all p_l
      p <- report[, startsWith(bound$parameters, f), drop = FALSE]
      expected <- expected + rowSums(alpha * log(p))
    }
    if (name == "normal") {
      cov <- report[, c("cov[x,x]", "cov[w,x]", "cov[w,w]")]
      half <- c(3, 2)
      part <- apply(cbind(cov, report[, c("mean[x]", "mean[w]")]), 1, function(v) {
        s <- matrix(v[c(1, 2, 2, 3)], 2)
        d <- v[4:5] - c(5, 1)
        l <- t(chol(s))
        # inverse Wishart with df 5 / 2 and scale 2 diag((half / 5)^2), then N(mean, 16 cov)
        -(5 / 2 + 3) / 2 * log(det(s)) - sum(diag(diag((half / 5)^2) %*% solve(s))) - log(det(s)) / 2 -
          drop(t(d) %*% solve(s) %*% d) / 32 + 3 * log(l[1, 1]) + 2 * log(l[2, 2])
      })
      expected <- expected + part
    }
    expect_equal(diff(.Call(internal("ffi_model_log_prior"), bound$spec, theta)), diff(expected), tolerance = 1e-8)
  }
})

# ---- records ------------------------------------------------------------------------

test_that("records follow the model", {
  for (name in names(logistic_models)) {
    bound <- log_bind(name)
    theta <- log_prior(bound, 1, seed = 5)
    x <- log_records(bound, theta, 40000)
    expect_true(all(x[, 1] %in% 0:1))
    p <- plogis(log_eta(bound, theta, x))
    # residuals are uncorrelated with anything computed from the covariates
    for (g in list(1, log_design(bound, x)[, 2], p > 0.5)) {
      r <- (x[, 1] - p) * g
      if (sd(r) > 0) expect_lt(abs(mean(r)) / (sd(r) / 200), 5)
    }
    if (name == "codes") {
      report <- log_report(bound, theta)[1, ]
      expect_gt(chisq.test(tabulate(x[, 2] + 1, 3), p = report[5:7])$p.value, 1e-6)
      expect_gt(chisq.test(tabulate(x[, 3] + 1, 2), p = report[8:9])$p.value, 1e-6)
    }
  }
})

# counts of (a, b) and of (b, a) have the same distribution
expect_symmetric <- function(a, b) {
  values <- sort(unique(c(a, b)))
  table <- table(factor(a, values), factor(b, values))
  off <- upper.tri(table) & table + t(table) > 10
  expect_gt(sum(off), 0)
  expect_gt(pchisq(sum((table - t(table))[off]^2 / (table + t(table))[off]), sum(off), lower.tail = FALSE), 1e-6)
}

test_that("a partial refresh is reversible and keeps its share", {
  for (name in c("default", "codes")) {
    bound <- log_bind(name)
    theta <- log_prior(bound, 1, seed = 8)
    x <- log_records(bound, theta, 60000)
    for (rho in c(0.3, 0.9)) {
      fresh <- .Call(internal("ffi_model_refresh"), bound$spec, theta, rho, x, log_stream(9))$records
      cell <- function(r) {
        if (name == "codes") return(r[, 1] + 2 * r[, 2] + 6 * r[, 3])
        r[, 1] + 2 * r[, 3] + 4 * r[, 4] + 8 * (r[, 2] > median(x[, 2]))
      }
      expect_symmetric(cell(x), cell(fresh))
    }
    expect_gt(mean(fresh[, 1] == x[, 1]), 0.85)
  }
})

test_that("moved records follow the new parameter, and the way back has the same distribution", {
  skip_on_cran() # takes long; `make test` runs it
  for (name in c("default", "codes")) {
    bound <- log_bind(name)
    theta <- log_prior(bound, 2, seed = 14)
    theta[, 2] <- theta[, 1] + 0.3 * (theta[, 2] - theta[, 1])
    from <- log_records(bound, theta[, 1], 60000)
    to <- .Call(internal("ffi_model_move"), bound$spec, theta[, 1], theta[, 2], from, log_stream(15))
    # y moves with its innovation: u falls into both sides as the intervals overlap
    p <- plogis(log_eta(bound, theta[, 1], from))
    q <- plogis(log_eta(bound, theta[, 2], to))
    expect_true(all(to[from[, 1] == 1 & q >= p, 1] == 1))
    expect_true(all(to[from[, 1] == 0 & q <= p, 1] == 0))
    switched <- to[, 1] != from[, 1]
    chance <- ifelse(from[, 1] == 1, pmax(0, 1 - q / p), pmax(0, 1 - (1 - q) / (1 - p)))
    expect_lt(abs(sum(switched - chance)) / sqrt(sum(chance * (1 - chance))), 5)
    # moved ones and new ones: the same distribution
    new <- log_records(bound, theta[, 2], 60000, seed = 16)
    design <- log_design(bound, to)[, -1]
    design_new <- log_design(bound, new)[, -1]
    for (g in list(function(x, d) x[, 1], function(x, d) x[, 1] * d[, 1], function(x, d) d[, 2], function(x, d) x[, 1] * d[, 3])) {
      a <- g(to, design)
      b <- g(new, design_new)
      expect_lt(abs(mean(a) - mean(b)) / sqrt((var(a) + var(b)) / 60000), 5)
    }
    back <- .Call(internal("ffi_model_move"), bound$spec, theta[, 2], theta[, 1], to, log_stream(17))
    expect_symmetric(paste(from[, 1], log_design(bound, from)[, 3]), paste(back[, 1], log_design(bound, back)[, 3]))
    if (name == "default") expect_equal(back[, c(2, 5)], from[, c(2, 5)], tolerance = 1e-9)
  }
})

test_that("the complete-data statistic is a sum", {
  for (name in c("default", "codes")) {
    bound <- log_bind(name)
    x <- log_records(bound, log_prior(bound, 1), 300)
    centred <- sweep(cbind(x[, 1], log_design(bound, x)[, -1]), 2, bound$design$centre)
    products <- crossprod(centred)
    expected <- c(colSums(centred), products[lower.tri(products, diag = TRUE)])
    added <- .Call(internal("ffi_model_complete"), bound$spec, x)
    expect_equal(head(added, length(expected)), expected, tolerance = 1e-12)
    expect_equal(tail(added, -length(expected)), numeric(length(added) - length(expected)))
  }
})

# ---- the update ------------------------------------------------------------------------

test_that("the coefficients given the records have the posterior on a grid", {
  st <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-2, 6)))
  model <- model_logistic(prior = prior_normal(c(0.5, -0.3), c(2, 1)))
  set.seed(3)
  data <- data.frame(x = rnorm(12, 2, 1.5))
  data$y <- rbinom(12, 1, plogis(-1 + data$x))
  b0 <- seq(-8, 8, length.out = 241)
  b1 <- seq(-4, 5, length.out = 241)
  log_density <- outer(dnorm(b0, 0.5, 2, log = TRUE), dnorm(b1, -0.3, 1, log = TRUE), "+")
  for (i in 1:12) log_density <- log_density + plogis((2 * data$y[i] - 1) * outer(b0, b1 * data$x[i], "+"), log.p = TRUE)
  density <- exp(log_density - max(log_density))
  fit <- nonprivate_posterior(data, model, st, chains = 2, iter = 8300, warmup = 1200, thin = 2, seed = 1)
  expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
  expect_distribution(parameter_draws(fit, "x"), grid_quantile(b1, colSums(density)), sum(colSums(density) * b1) / sum(density))
  product <- parameter_draws(fit, "(Intercept)") * parameter_draws(fit, "x")
  expect_same_mean(product, sum(density * outer(b0, b1)) / sum(density))
  # the covariates are updated as in a linear regression
  kappa <- 0.25 + 12
  mean_n <- (0.25 * 2 + sum(data$x)) / kappa
  expect_same_mean(parameter_draws(fit, "mean[x]"), mean_n)
})

# ---- the sampler: exact answers ----------------------------------------------------------

log_both <- function(release, model, iter = 5000) {
  lapply(list(plain = list(passes = 0), interwoven = list(passes = 2)), function(control) {
    sample_posterior(release, model, chains = 2, iter = iter, warmup = 1000, seed = 12, control = control)
  })
}

test_that("two records, no covariate: enumeration", {
  st <- stat_crossprod(y ~ 1, list(y = c(0, 1)), rescale = FALSE)
  rel <- as_release(c(y = 1.7, `y^2` = 1.2), st, mech_laplace(scale = c(0.5, 0.8)), 2)
  beta <- seq(-9, 9, length.out = 1801)
  eta <- function(s) exp(log_noise("absolute", c(0.5, 0.8), c(1.7, 1.2), cbind(s, s)))
  likelihood <- eta(0) * plogis(-beta)^2 + 2 * eta(1) * plogis(beta) * plogis(-beta) + eta(2) * plogis(beta)^2
  density <- dnorm(beta, -0.5, 1.5) * likelihood
  for (fit in log_both(rel, model_logistic(prior = prior_normal(-0.5, 1.5)))) {
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density), sum(beta * density) / sum(density))
  }
})

test_that("two records with a covariate: quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-1, 1.5)))
  x <- seq(-4.5, 5.1, length.out = 61)
  state <- cbind(y = rep(0:1, each = 61), x = x)
  s <- r_components(st, state)
  model <- model_logistic(prior = prior_normal(c(0.5, 1), c(1.5, 2)), covariates = known)
  b0 <- seq(-6, 7, length.out = 81)
  b1 <- seq(-8, 10, length.out = 81)
  grid <- expand.grid(b0 = b0, b1 = b1)
  for (mechanism in list(mech_laplace(scale = 0.4), mech_gaussian(sd = 0.4))) {
    rel <- as_release(c(y = -0.3, x = 0.4, `y^2` = 0.1, `y:x` = 0.8, `x^2` = 0.5), st, mechanism, 2)
    pair <- s[rep(1:122, 122), ] + s[rep(1:122, each = 122), ]
    noise <- matrix(exp(log_noise(mechanism$kernel, unname(rel$scale), unname(rel$value), pair)), 122)
    f <- plogis(outer(grid$b0, rep(1, 122)) * rep(2 * state[, "y"] - 1, each = nrow(grid)) +
                  outer(grid$b1, (2 * state[, "y"] - 1) * state[, "x"])) *
      rep(dnorm(state[, "x"], 0.3, sqrt(1.2)), each = nrow(grid))
    density <- rowSums((f %*% noise) * f) * dnorm(grid$b0, 0.5, 1.5) * dnorm(grid$b1, 1, 2)
    density <- matrix(density, 81)
    for (fit in log_both(rel, model)) {
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, rowSums(density)), sum(rowSums(density) * b0) / sum(density))
      expect_distribution(parameter_draws(fit, "x"), grid_quantile(b1, colSums(density)), sum(colSums(density) * b1) / sum(density))
    }
  }
})

test_that("two records with a factor released as crossed counts: enumeration", {
  skip_on_cran()
  st <- stat_counts(~ y:g, levels = list(y = c("0", "1"), g = c("a", "b")))
  value <- c(1.6, 0.3, -0.4, 0.9)
  rel <- as_release(value, st, mech_laplace(scale = 0.6), 2)
  b0 <- seq(-7, 7, length.out = 61)
  b1 <- seq(-8, 8, length.out = 61)
  prob <- seq(0.005, 0.995, length.out = 60) # of level b
  grid <- expand.grid(b0 = b0, b1 = b1, prob = prob)
  cell <- with(grid, cbind(plogis(-b0) * (1 - prob), plogis(-b0 - b1) * prob, plogis(b0) * (1 - prob), plogis(b0 + b1) * prob))
  pairs <- expand.grid(1:4, 1:4)
  s <- t(apply(pairs, 1, tabulate, nbins = 4))
  noise <- matrix(exp(log_noise("absolute", rep(0.6, 4), value, s)), 4)
  density <- rowSums((cell %*% noise) * cell) * dnorm(grid$b0, 0, 1.5) * dnorm(grid$b1, 0.5, 2) * dbeta(grid$prob, 3, 2)
  density <- array(density, c(61, 61, 60))
  model <- model_logistic(y ~ g, prior = prior_normal(c(0, 0.5), c(1.5, 2)), levels = prior_dirichlet(c(2, 3)))
  for (fit in log_both(rel, model)) {
    expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(b0, apply(density, 1, sum)))
    expect_distribution(parameter_draws(fit, "gb"), grid_quantile(b1, apply(density, 2, sum)))
    expect_same_mean(parameter_draws(fit, "prob[g=b]"), sum(apply(density, 3, sum) * prob) / sum(density))
  }
})

test_that("several statistics, sums and a function among them: weighted prior draws", {
  skip_on_cran() # takes long; `make test` runs it
  numbers <- list(y = c(0, 1), x = c(-2, 2))
  statistics <- list(sums = stat_sums(~ y + y:x, numbers, rescale = FALSE),
                     counts = stat_counts(~ y:g, levels = list(y = c("0", "1"), g = c("a", "b", "c"))),
                     custom = stat_custom(function(r) (r[, "x"] > 0.5) + 0, "large", 1, list(x = c(-2, 2))))
  rel <- as_release(c(0.7, 0.9, 0, 1, -1, 1, 0, 1, 1.1), statistics,
                    list(sums = mech_gaussian(sd = 0.8), counts = mech_discrete_laplace(scale = 1), custom = mech_laplace(scale = 0.5)), 2)
  for (factors in c("independent", "dependent")) {
    model <- model_logistic(y ~ x + g, prior = prior_normal(0, 1.5), covariates = prior_niw(0.2, 2, 2, 5), levels = prior_dirichlet(2), factors = factors)
    bound <- internal("bind_model")(model, statistics)
    draws <- 8e4
    nat <- log_report(bound, log_prior(bound, draws, seed = 31))
    set.seed(32)
    r <- c(0.8, 0.8, rep(1, 6), 0.5)
    s <- 0
    for (i in 1:2) {
      u <- runif(draws)
      g <- (u > nat[, "prob[g=a]"]) + (u > nat[, "prob[g=a]"] + nat[, "prob[g=b]"])
      # about the mean over the levels
      effect <- if (factors == "dependent") cbind(0, nat[, c("effect[x,g=b]", "effect[x,g=c]")]) else matrix(0, draws, 3L)
      shift <- effect[cbind(seq_len(draws), g + 1)] - rowSums(effect * nat[, c("prob[g=a]", "prob[g=b]", "prob[g=c]")])
      x <- nat[, "mean[x]"] + shift + sqrt(nat[, "cov[x,x]"]) * rnorm(draws)
      y <- runif(draws) < plogis(nat[, "(Intercept)"] + nat[, "x"] * x + (g == 1) * nat[, "gb"] + (g == 2) * nat[, "gc"])
      clamped <- pmin(pmax(x, -2), 2)
      s <- s + cbind(y, y * clamped, sapply(0:5, function(k) y * 3 + g == k), clamped > 0.5)
    }
    d <- sweep(s, 2, unname(rel$value))
    weight <- exp(-rowSums(d[, 1:2]^2) / 2 / 0.8^2 - rowSums(abs(d[, 3:8])) - abs(d[, 9]) / 0.5)
    fits <- log_both(rel, model, 4000)
    for (name in bound$parameters) {
      for (q in quantile(nat[, name], c(0.2, 0.5, 0.8))) {
        below <- nat[, name] <= q
        exact <- sum(weight * below) / sum(weight)
        error <- sqrt(sum(weight^2 * (below - exact)^2)) / sum(weight)
        for (fit in fits) expect_estimated_mean((parameter_draws(fit, name) <= q) + 0, exact, error)
      }
    }
  }
})

test_that("one noisy answer a record, randomised response and a number", {
  statistics <- list(y = stat_records(~ y, levels = list(y = c("0", "1"))), x = stat_records(~ x, list(x = c(-1, 1))))
  rel <- as_release(c(1, 0.4), statistics, list(y = mech_randomized_response(epsilon = 1), x = mech_laplace(scale = 0.5)), 1)
  model <- model_logistic(y ~ x, prior = prior_normal(c(0.2, 1), c(1, 2)), covariates = known)
  x <- seq(-4.5, 5, length.out = 191)
  grid <- expand.grid(b0 = seq(-5, 5, length.out = 61), b1 = seq(-8, 10, length.out = 61))
  noise <- exp(-abs(pmin(pmax(x, -1), 1) - 0.4) / 0.5) * dnorm(x, 0.3, sqrt(1.2))
  p <- plogis(outer(grid$b0, rep(1, 191)) + outer(grid$b1, x)) %*% noise
  keep <- exp(1) / (1 + exp(1))
  density <- (keep * p + (1 - keep) * (sum(noise) - p)) * dnorm(grid$b0, 0.2, 1) * dnorm(grid$b1, 1, 2)
  for (fit in log_both(rel, model, 10000)) {
    expect_same_mean(parameter_draws(fit, "(Intercept)"), sum(density * grid$b0) / sum(density))
    expect_same_mean(parameter_draws(fit, "x"), sum(density * grid$b1) / sum(density))
    expect_same_mean(parameter_draws(fit, "x")^2, sum(density * grid$b1^2) / sum(density))
  }
})

test_that("joint-distribution test, with and without non-centred moves", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x + g, list(y = c(0, 1), x = c(-2, 2), g = c("a", "b", "c")))
  model <- model_logistic(prior = prior_normal(c(0.5, 0, 0, 1), 1), covariates = prior_niw(0.5, 2, 2, 6), levels = prior_dirichlet(2))
  bound <- internal("bind_model")(model, st)
  prior <- log_report(bound, log_prior(bound, 100000, seed = 41))
  set.seed(42)
  for (passes in c(0, 2)) expect_prior(geweke(model, st, mech_laplace(scale = 1), 5, 3500, passes), prior)
})

# ---- the rest ----------------------------------------------------------------------------

test_that("a run continues bit for bit, fits predict and simulate", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(low ~ age + race, list(low = c(0, 1), age = c(14, 50), race = c("1", "2", "3")))
  set.seed(51)
  rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 5))
  fit <- sample_posterior(rel, model_logistic(), chains = 2, iter = 300, seed = 1)
  whole <- sample_posterior(rel, model_logistic(), chains = 2, iter = 400, warmup = 150, seed = 1)
  expect_identical(posterior::as_draws_array(extend(fit, 100)), posterior::as_draws_array(whole))
  expect_identical(names(coef(fit)), c("(Intercept)", "age", "race2", "race3"))
  new <- data.frame(age = c(20, 40), race = c("1", "3"))
  expected <- predict(fit, new, type = "expected")
  beta <- internal("coefficient_draws")(fit)
  expect_equal(expected, unname(plogis(beta %*% rbind(1, c(20, 40), 0, 0:1))), tolerance = 1e-12)
  drawn <- predict(fit, new, type = "draws", seed = 2)
  expect_true(all(drawn %in% 0:1))
  expect_lt(abs(mean(drawn - expected)), 5 * 0.5 / sqrt(length(drawn)))
  expect_true(all(predict(fit, new, interval = "credible") > 0))
  data <- simulate(fit, seed = 3)[[1]]
  expect_identical(dim(data), c(189L, 3L))
  expect_true(all(data$low %in% 0:1) && is.factor(data$race))
  expect_output(print(fit), "logistic regression low ~ age")
})

test_that("models print what they believe, and what cannot be is refused", {
  expect_identical(format(model_logistic(y ~ x, prior_normal(0, 2)))[2:3], c("  formula       y ~ x", "  coefficients  normal(mean = 0, sd = 2)"))
  expect_match(format(model_logistic())[3], "scaled by the bounds")
  expect_error(model_logistic(~ x), class = "noiseaware_error_formula")
  prior <- function(code) expect_error(code, class = "noiseaware_error_prior")
  prior(model_logistic(prior = prior_nig()))
  prior(model_logistic(prior = 1))
  prior(model_logistic(covariates = prior_normal(0, 1)))
  prior(model_logistic(levels = 2))
  bind <- function(model, statistic) internal("bind_model")(model, statistic)
  prior(bind(model_logistic(prior = fixed(1)), mixed))
  prior(bind(model_logistic(prior = prior_normal(0, c(1, 2))), mixed))
  misfit <- function(model, statistic) expect_error(bind(model, statistic), class = "noiseaware_error_variables")
  misfit(model_logistic(y ~ x), mixed)
  misfit(model_logistic(y ~ x + g + w + z), mixed)
  misfit(model_logistic(), stat_crossprod(y ~ x, list(y = c(0, 2), x = c(0, 1))))
  misfit(model_logistic(y ~ x), stat_counts(~ y:x, list(y = c("a", "b", "c"), x = c("a", "b"))))
  # a factor in two forms
  two <- list(a = stat_crossprod(y ~ g, list(y = c(0, 1), g = c("a", "b"))), b = stat_counts(~ g, list(g = c("a", "b"))))
  misfit(model_logistic(), two)
  # statistics without a response leave the formula to the model
  expect_error(bind(model_logistic(), coded), class = "noiseaware_error_formula")
  expect_error(bind(model_logistic(), stat_records(~ y, list(y = c(0, 1)))), class = "noiseaware_error_formula")
  values <- log_report(log_bind("codes"), log_prior(log_bind("codes"), 1))[1, ]
  expect_error(internal("bound_theta")(log_bind("codes"), replace(values, "prob[g=a]", 0.9)), class = "noiseaware_error_argument")
})
