# Method "clt" of a regression with bounds that clamp: src/totals/clamped_moments.c and its place in
# src/totals/normal_totals_chain.c.

clamped_bounds <- list(y = c(-2.2, 2.5), x1 = c(-2, 2), x2 = c(-1, 2.2))
clamped_statistic <- stat_crossprod(y ~ x1 + x2, clamped_bounds)
clamped_mean <- c(0.3, 0, 0.4)

clamped_cov <- function(r) matrix(c(1, r, 0.2, r, 1, 0.5, 0.2, 0.5, 1), 3)

# A problem, a chain's state, and the complete-data statistic of records with such moments.
clamped_problem <- function(mechanism = mech_laplace(epsilon = 3), n = 1000) {
  set.seed(8)
  w <- matrix(stats::rnorm(3 * n), n) %*% chol(clamped_cov(0.7)) + rep(clamped_mean, each = n)
  release <- simulate_release(stats::setNames(as.data.frame(w), names(clamped_bounds)), clamped_statistic, mechanism)
  bound <- internal("bind_model")(model_lm(prior = prior_nig()), clamped_statistic)
  problem <- internal("clt_totals_problem")(release, bound, internal("with_seed")(1L, internal("seed_words")()), 1L, NULL, NULL)
  list(release = release, problem = problem, bound = bound, names = names(release$value),
       state = internal("start_chain")(problem, bound, internal("seed_words")(), 1, NULL))
}

complete_statistic <- function(bound, n, mean, cov) {
  centred <- mean - .Call(internal("ffi_collapse_origin"), bound$spec)
  n * c(centred, (cov + outer(centred, centred))[lower.tri(cov, TRUE)])
}

# in the order of the release's components, of one record
clamped_moments <- function(case, cov) {
  told <- .Call(internal("ffi_collapse_clamped"), case$problem, complete_statistic(case$bound, 1000, clamped_mean, cov))
  lapply(told, function(x) stats::setNames(x[case$problem$where] / 1000, case$names))
}

# columns of records, clamped and rescaled to [-1, 1]
seen_column <- function(name, x) {
  b <- clamped_bounds[[name]]
  2 * (pmin(pmax(x, b[1]), b[2]) - b[1]) / diff(b) - 1
}

# The weights of Gauss-Legendre quadrature of functions of a standard normal variable with kinks at
# the bounds.
normal_nodes <- function(breaks, each = 40) {
  k <- seq_len(each - 1)
  jacobi <- matrix(0, each, each)
  jacobi[cbind(k, k + 1)] <- jacobi[cbind(k + 1, k)] <- k / sqrt(4 * k^2 - 1)
  e <- eigen(jacobi, symmetric = TRUE)
  edges <- sort(unique(c(-9, pmin(pmax(breaks, -9), 9), 9)))
  half <- diff(edges) / 2
  at <- rep(edges[-length(edges)] + half, each = each) + rep(half, each = each) * e$values
  list(at = at, weight = rep(half, each = each) * 2 * e$vectors[1, ]^2 * stats::dnorm(at))
}

edges_of <- function(name, cov) {
  j <- match(name, names(clamped_bounds))
  (clamped_bounds[[name]] - clamped_mean[j]) / sqrt(cov[j, j])
}

# E and the left-over variance of the product of two seen columns by quadrature: the residual of a
# regression on all polynomials of degree 2
quadrature <- function(first, second, cov) {
  i <- match(c(first, second), names(clamped_bounds))
  r <- stats::cov2cor(cov)[i[1], i[2]]
  outer_nodes <- normal_nodes(edges_of(first, cov))
  parts <- lapply(seq_along(outer_nodes$at), function(k) {
    v <- outer_nodes$at[k]
    inner <- if (r == 1) list(at = v, weight = 1) else {
      # v2 = r v + sqrt(1 - r^2) e
      nodes <- normal_nodes((edges_of(second, cov) - r * v) / sqrt(1 - r^2))
      list(at = r * v + sqrt(1 - r^2) * nodes$at, weight = nodes$weight)
    }
    cbind(v, inner$at, inner$weight * outer_nodes$weight[k])
  })
  grid <- do.call(rbind, parts)
  x <- lapply(1:2, function(s) clamped_mean[i[s]] + sqrt(cov[i[s], i[s]]) * grid[, s])
  f <- seen_column(first, x[[1]]) * if (second == "") 1 else seen_column(second, x[[2]])
  weight <- grid[, 3]
  basis <- if (r == 1) cbind(1, grid[, 1], grid[, 1]^2) else cbind(1, grid[, 1], grid[, 2], grid[, 1]^2, grid[, 2]^2, grid[, 1] * grid[, 2])
  residual <- stats::lm.wfit(basis, f, weight)$residuals
  c(mean = sum(weight * f), left = sum(weight * residual^2))
}

test_that("expected clamped totals, and what is left of their variance, are those of quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  case <- clamped_problem()
  for (r in c(0, 0.7, -0.95)) {
    cov <- clamped_cov(r)
    if (r == -0.95) cov[cbind(c(1, 3, 2, 3), c(3, 1, 3, 2))] <- 0
    told <- clamped_moments(case, cov)
    for (pair in list(c("y", "x1"), c("x1", "x2"), c("y", "y"), c("x2", "x2"))) {
      name <- if (pair[1] == pair[2]) paste0(pair[1], "^2") else paste(pair, collapse = ":")
      right <- quadrature(pair[1], pair[2], cov)
      expect_lt(abs(told$mean[[name]] - right[["mean"]]), if (abs(r) > 0.9) 1e-4 else 1e-6)
      expect_lt(abs(told$left[[name]] - right[["left"]]), 0.02 * right[["left"]])
    }
    alone <- normal_nodes(edges_of("x2", cov))
    f <- seen_column("x2", clamped_mean[3] + alone$at)
    expect_equal(told$mean[["x2"]], sum(alone$weight * f), tolerance = 1e-9)
    residual <- stats::lm.wfit(cbind(1, alone$at, alone$at^2), f, alone$weight)$residuals
    expect_equal(told$left[["x2"]], sum(alone$weight * residual^2), tolerance = 0.02)
  }
})

test_that("bounds that no record reaches change nothing and leave nothing", {
  wide <- stat_crossprod(y ~ x1, list(y = c(-60, 60), x1 = c(-60, 60)), rescale = FALSE)
  release <- as_release(c(3, 2, 50, 30, 40), wide, mech_laplace(epsilon = 3), 100)
  bound <- internal("bind_model")(model_lm(prior = prior_nig()), wide)
  problem <- internal("clt_totals_problem")(release, bound, internal("with_seed")(1L, internal("seed_words")()), 1L, NULL, NULL)
  c <- complete_statistic(bound, 100, c(1, -1), matrix(c(2, 1, 1, 3), 2))
  told <- .Call(internal("ffi_collapse_clamped"), problem, c)
  expect_equal(told$mean[problem$where], 100 * c(1, -1, 3, 0, 4), tolerance = 1e-9)
  expect_lt(max(told$left), 1e-20)
})

test_that("the gradient with bounds that clamp is that of finite differences", {
  for (mechanism in list(mech_laplace(epsilon = 3), mech_laplace(epsilon = 100), mech_gaussian(mu = 30))) {
    case <- clamped_problem(mechanism)
    at <- function(q) .Call(internal("ffi_collapse_density"), case$problem, case$state, q)
    size <- 9 + length(case$problem$fields$spread) / 9
    q <- case$state$store[seq_len(size)] + rep_len(c(0.02, -0.01, 0.03, 0.01, -0.02), size)
    expect_equal(at(q)[-1], difference_slopes(at, q, 1e-6), tolerance = 1e-5)
  }
})

test_that("what is left is Gamma's where it matters, and widens the noise where it does not", {
  skip_on_cran()
  for (mechanism in list(mech_laplace(epsilon = 0.01), mech_laplace(epsilon = 3), mech_gaussian(mu = 100))) {
    case <- clamped_problem(mechanism)
    fields <- case$problem$fields
    # of records as they were simulated, not as the release has them
    complete <- complete_statistic(case$bound, 1000, clamped_mean, clamped_cov(0.7))
    left <- .Call(internal("ffi_collapse_clamped"), case$problem, complete)$left
    variance <- if (case$problem$kernel[1L] == "absolute") 2 else 1
    gamma <- matrix(as.double(fields$spread), 9)
    total <- rowSums(gamma^2) + variance / fields$clamp_weight^2 - variance * case$problem$scale^2
    noise <- variance * case$problem$scale^2
    expect_lt(max(variance / fields$clamp_weight^2 - noise), 0.021 * noise[1])
    if (ncol(gamma) > 0) expect_lt(max(abs(log(total / left))), 0.7)
  }
  # chains start near the release all the same
  complete <- .Call(internal("ffi_collapse_complete"), case$problem, case$state)
  expect_lt(max(abs(complete - complete_statistic(case$bound, 1000, clamped_mean, clamped_cov(0.7)))), 400)
  # the residuals' correlations, by simulation
  set.seed(4)
  cov <- clamped_cov(0.7)
  w <- matrix(stats::rnorm(3e5), 1e5) %*% chol(cov) + rep(clamped_mean, each = 1e5)
  seen <- mapply(seen_column, names(clamped_bounds), as.data.frame(w))
  value <- cbind(seen, seen[, 1]^2, seen[, 1] * seen[, 2:3], seen[, 2]^2, seen[, 2] * seen[, 3], seen[, 3]^2)
  residual <- stats::lm.fit(cbind(1, w, w^2, w[, 1] * w[, 2:3], w[, 2] * w[, 3]), value)$residuals
  complete <- complete_statistic(case$bound, 1, clamped_mean, cov)
  own <- internal("clamping_residuals")(case$problem, case$bound, complete)
  expect_lt(max(abs(stats::cor(own) - stats::cor(residual[, order(case$problem$where)]))), 0.25)
})

test_that("a short run that is caught where all records are beyond the bounds does not tell what clamping does", {
  skip_on_cran()
  set.seed(1)
  statistic <- stat_crossprod(bwt ~ age + lwt, list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)))
  release <- simulate_release(MASS::birthwt, statistic, mech_laplace(epsilon = 1))
  bound <- internal("bind_model")(model_lm(covariates = prior_niw(kappa = 1, scale = (c(36, 180) / 6)^2)), statistic)
  # the first run of these seeds ends where a column's standard deviation is a million times its range, and would leave
  # two to five directions of at least half the noise's variance
  for (seed in c(281, 620, 937)) {
    problem <- internal("clt_totals_problem")(release, bound, internal("with_seed")(seed, internal("seed_words")()), 4L, NULL, NULL)
    expect_lte(length(problem$fields$spread), length(release$value))
    expect_lt(max(abs(problem$fields$spread) / problem$scale, 0), 0.3)
  }
})

test_that("with bounds that bind the posterior is close to that of 'augment', and says what it is", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_crossprod(y ~ x1, list(y = c(-2, 3), x1 = c(-1.2, 1.8)))
  truth <- c("(Intercept)" = 0.5, x1 = 0.8, sigma = 0.9, "mean[x1]" = 0.3, "cov[x1,x1]" = 1)
  for (mechanism in list(mech_laplace(epsilon = 3), mech_gaussian(mu = 2))) {
    set.seed(21)
    release <- simulate_release(model_lm(), statistic, mechanism, n = 1000, parameters = truth)
    exact <- sample_posterior(release, model_lm(), method = "augment", chains = 2, iter = 2100, seed = 3)
    fit <- sample_posterior(release, model_lm(), method = "clt", chains = 4, iter = 2200, seed = 4)
    for (v in names(truth)) {
      a <- parameter_draws(exact, v)
      b <- parameter_draws(fit, v)
      expect_lt(abs(mean(a) - mean(b)), 0.1 * stats::sd(a))
      expect_lt(abs(log(stats::sd(a) / stats::sd(b))), 0.1)
    }
    # the confidential total too
    a <- unclass(posterior::as_draws_matrix(denoise(exact)))
    b <- unclass(posterior::as_draws_matrix(denoise(fit)))
    expect_lt(max(abs(colMeans(a) - colMeans(b)) / apply(a, 2, stats::sd)), 0.15)
    expect_lt(max(abs(log(apply(a, 2, stats::sd) / apply(b, 2, stats::sd)))), 0.1)
  }
  expect_false(fit$exact)
  expect_output(print(fit), "records outside are accounted for, by a normal approximation")
  expect_output(print(acceptance(fit)), "Hamiltonian")
})

test_that("a run with bounds that clamp goes on bit for bit, in warmup too", {
  skip_on_cran() # takes long; `make test` runs it
  case <- clamped_problem()
  run <- function(iter, warmup) {
    sample_posterior(case$release, model_lm(), method = "clt", chains = 1, iter = iter, warmup = warmup, seed = 5)
  }
  whole <- run(160, 100)
  longer <- extend(run(130, 100), 30)
  expect_identical(longer$draws, whole$draws)
  expect_identical(denoise(longer), denoise(whole))
})

test_that("bounds that cut off most values are said to be too much", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  narrow <- stat_crossprod(y ~ x1, list(y = c(-0.2, 0.2), x1 = c(-0.3, 0.3)))
  release <- simulate_release(data.frame(y = stats::rnorm(5000), x1 = stats::rnorm(5000)), narrow, mech_laplace(epsilon = 10))
  fit <- sample_posterior(release, model_lm(), method = "clt", chains = 2, iter = 1000, seed = 1)
  expect_output(print(fit), "NOT valid: most values are outside the bounds")
  expect_match(internal("bounds_trouble")(fit)[[1]]$text, "only if few values lie outside", all = FALSE)
})

test_that("where totals cannot be moved, asking for it is refused", {
  names <- paste0("f", 1:14)
  bounds <- c(list(y = c(-1, 1)), stats::setNames(rep(list(c("a", "b")), 14), names))
  release <- simulate_release(model_lm(), stat_crossprod(stats::reformulate(names, "y"), bounds), mech_laplace(epsilon = 1), n = 50)
  expect_error(sample_posterior(release, model_lm(), method = "clt", control = list(sampler = "totals")), "cross-table",
               class = "noiseaware_error_argument")
})

# ---- with factors --------------------------------------------------------------------------------

crossed_statistic <- stat_crossprod(y ~ x + g + h, list(y = c(-2, 3), x = c(-1.2, 1.8), g = c("a", "b", "c"), h = c("u", "v")))

crossed_records <- function(n) {
  set.seed(5)
  g <- factor(sample(c("a", "b", "c"), n, TRUE, c(0.5, 0.3, 0.2)), c("a", "b", "c"))
  h <- factor(ifelse(stats::runif(n) < 0.3 + 0.4 * (g == "b"), "u", "v"), c("u", "v"))
  x <- stats::rnorm(n) + 0.8 * (g == "c")
  data.frame(y = 0.5 + 0.8 * x + 0.9 * (g == "b") - 0.5 * (h == "v") + 0.9 * stats::rnorm(n), x, g, h)
}

crossed_problem <- function(mechanism = mech_laplace(epsilon = 3), data = crossed_records(1000)) {
  release <- simulate_release(data, crossed_statistic, mechanism)
  bound <- internal("bind_model")(model_lm(prior = prior_nig()), crossed_statistic)
  problem <- internal("clt_totals_problem")(release, bound, internal("with_seed")(1L, internal("seed_words")()), 1L, NULL, NULL)
  list(release = release, problem = problem, bound = bound, names = names(release$value),
       state = internal("start_chain")(problem, bound, internal("seed_words")(), 1, NULL))
}

# The complete-data statistic of records, from the model's origin, and their cross-table.
crossed_complete <- function(case, data) {
  w <- cbind(data$y, data$x, data$g == "b", data$g == "c", data$h == "v")
  w <- w - rep(.Call(internal("ffi_collapse_origin"), case$bound$spec), each = nrow(w))
  c(colSums(w), crossprod(w)[lower.tri(diag(5), TRUE)], table(data$g, data$h))
}

# In a cell: the expected seen columns, and their products, of normal records with such moments.
cell_moments <- function(mean, cov) {
  b <- crossed_statistic$columns[1:2, ]
  see <- function(v, w) 2 * (pmin(pmax(w, b$lower[v]), b$upper[v]) - b$lower[v]) / (b$upper[v] - b$lower[v]) - 1
  sd <- sqrt(diag(cov))
  over <- function(v, f) {
    nodes <- normal_nodes((c(b$lower[v], b$upper[v]) - mean[v]) / sd[v])
    sum(nodes$weight * vapply(nodes$at, f, 0))
  }
  slope <- cov[1, 2] / cov[2, 2]
  left <- sqrt(cov[1, 1] - slope * cov[1, 2])
  y_given <- function(x) {
    at <- mean[1] + slope * (x - mean[2])
    nodes <- normal_nodes((c(b$lower[1], b$upper[1]) - at) / left)
    sum(nodes$weight * see(1, at + left * nodes$at))
  }
  x_at <- function(u) mean[2] + sd[2] * u
  c(y = over(1, function(u) see(1, mean[1] + sd[1] * u)), x = over(2, function(u) see(2, x_at(u))),
    "y^2" = over(1, function(u) see(1, mean[1] + sd[1] * u)^2), "y:x" = over(2, function(u) see(2, x_at(u)) * y_given(x_at(u))),
    "x^2" = over(2, function(u) see(2, x_at(u))^2))
}

test_that("with factors, expected clamped totals are those of each cell by quadrature", {
  skip_on_cran()
  for (data in list(crossed_records(1000), subset(crossed_records(400), g != "b" | h == "u"))) {
    case <- crossed_problem(data = data)
    told <- .Call(internal("ffi_collapse_clamped"), case$problem, crossed_complete(case, data))$mean[case$problem$where]
    names(told) <- case$names
    # cells' means from least squares on the dummies, one covariance for all
    fits <- stats::lm(cbind(y, x) ~ g + h, data)
    cov <- crossprod(fits$residuals) / nrow(data)
    right <- 0 * told
    for (level in unique(interaction(data$g, data$h))) {
      own <- interaction(data$g, data$h) == level
      m <- sum(own) * cell_moments(fits$fitted.values[which(own)[1L], ], cov)
      right[names(m)] <- right[names(m)] + m
      one <- data[which(own)[1L], ]
      dummies <- c(gb = one$g == "b", gc = one$g == "c", hv = one$h == "v")
      for (v in c("y", "x")) {
        crossed <- paste0(v, ":", names(dummies))
        right[crossed] <- right[crossed] + m[[v]] * (2 * dummies - 1)
      }
    }
    compared <- right != 0
    expect_equal(sum(compared), 11)
    expect_lt(max(abs(told - right)[compared]), 1e-5 * nrow(data))
  }
})

test_that("the gradient with factors and bounds that clamp is that of finite differences", {
  skip_on_cran()
  empty <- subset(crossed_records(300), g != "c")
  for (data in list(crossed_records(500), empty)) {
    for (mechanism in list(mech_laplace(epsilon = 5), mech_gaussian(mu = 30))) {
      case <- crossed_problem(mechanism, data)
      at <- function(q) .Call(internal("ffi_collapse_density"), case$problem, case$state, q)
      size <- 2 * 4 + 3 + length(case$problem$fields$spread) / length(case$release$value)
      q <- case$state$store[seq_len(size)] + rep_len(c(0.02, -0.01, 0.03, 0.01, -0.02), size)
      slope <- difference_slopes(at, q, 1e-6)
      expect_lt(max(abs(at(q)[-1] - slope) / (1 + abs(slope))), 1e-4)
    }
  }
})

test_that("with factors, what is left is that of simulated records", {
  data <- crossed_records(1000)
  case <- crossed_problem(mech_laplace(epsilon = 100), data)
  complete <- crossed_complete(case, data)
  left <- .Call(internal("ffi_collapse_clamped"), case$problem, complete)$left
  set.seed(9)
  own <- internal("clamping_residuals")(case$problem, case$bound, complete / 1000)
  simulated <- 1000 * colMeans(own^2)
  of_levels <- grepl("^[gh][bcv](:[gh][bcv])?$", case$names)[order(case$problem$where)]
  expect_lt(max(abs(left[of_levels])), 1e-9)
  expect_lt(max(abs(simulated[of_levels])), 1e-9)
  # at least what is left within cells
  expect_gt(min((simulated / left)[!of_levels]), 0.8)
  expect_lt(max((simulated / left)[!of_levels]), 3)
})

test_that("with factors and bounds that bind the posterior is close to that of 'augment'", {
  skip_on_cran() # takes long; `make test` runs it
  release <- simulate_release(crossed_records(2000), crossed_statistic, mech_laplace(epsilon = 3))
  exact <- sample_posterior(release, model_lm(factors = "independent"), method = "augment", chains = 2, iter = 1400, seed = 3)
  fit <- sample_posterior(release, model_lm(), method = "clt", chains = 2, iter = 2000, seed = 4)
  expect_identical(fit$problem$sampler, "totals")
  for (v in posterior::variables(fit$draws)) {
    a <- parameter_draws(exact, v)
    b <- parameter_draws(fit, v)
    expect_lt(abs(mean(a) - mean(b)), 0.15 * stats::sd(a))
    expect_lt(abs(log(stats::sd(a) / stats::sd(b))), 0.12)
  }
  # what was a fault of the samplers that leave clamping out
  expect_lt(mean(parameter_draws(sample_posterior(release, model_lm(), method = "clt", chains = 1, control = list(sampler = "noncentred"), seed = 4), "cov[x,x]")),
            mean(parameter_draws(exact, "cov[x,x]")) - 4 * stats::sd(parameter_draws(exact, "cov[x,x]")))
  expect_output(print(fit), "records outside are accounted for, by a normal approximation")
})

test_that("a run with factors and bounds that clamp goes on bit for bit, in warmup too", {
  skip_on_cran()
  case <- crossed_problem()
  run <- function(iter, warmup) sample_posterior(case$release, model_lm(), method = "clt", chains = 1, iter = iter, warmup = warmup, seed = 5)
  whole <- run(160, 100)
  longer <- extend(run(130, 100), 30)
  expect_identical(longer$draws, whole$draws)
  expect_identical(denoise(longer), denoise(whole))
})

test_that("what runs of moves of the table take the bounds to do decides nothing", {
  skip_on_cran() # takes long; `make test` runs it
  case <- crossed_problem(mech_laplace(epsilon = 10))
  counts <- function(off) {
    state <- .Call(internal("ffi_duplicate"), case$state) # C writes to it
    go_on <- function(iterations) internal("run_blocks")(case$problem, state, iterations, list(warmup = 300, thin = 1), function(...) NULL)
    go_on(300)
    size <- length(case$names)
    at <- length(state$store) - size - 1L + match(paste0(c("g", "g", "h"), c("b", "c", "v")), case$names[order(case$problem$where)])
    state$store[at] <- state$store[at] + off * case$problem$scale[1L]
    vapply(1:600, function(k) {
      go_on(1)
      .Call(internal("ffi_collapse_complete"), case$problem, state)[3:5]
    }, double(3))
  }
  right <- counts(0)
  off <- counts(2)
  expect_gt(min(apply(right, 1, stats::sd)), 0.3)
  expect_lt(max(abs(rowMeans(right) - rowMeans(off)) / apply(right, 1, stats::sd)), 0.5)
})

# ---- an unknown number of records -----------------------------------------------------------------

sized_release <- function(statistic, z, noise, n, of_n) {
  as_release(list(t = z, size = n), list(t = statistic, size = stat_size()), list(t = noise, size = of_n), n = NULL, neighbours = "add_remove")
}

# n and theta from the prior, and the complete-data statistic of n normal records of two columns, from the model's origin
sized_prior <- function(model, statistic, bound, draws, least = 3) {
  n <- stats::rnbinom(draws, 4, mu = 60)
  p <- prior_draws(model, statistic, draws)[n >= least, ]
  n <- n[n >= least]
  var_x <- p[, "cov[x,x]"]
  cov <- p[, "x"] * var_x
  var_y <- p[, "x"] * cov + p[, "sigma"]^2
  origin <- .Call(internal("ffi_collapse_origin"), bound$spec)
  mean <- cbind(p[, "(Intercept)"] + p[, "x"] * p[, "mean[x]"] - origin[1], p[, "mean[x]"] - origin[2])
  # factors of the covariance and, by Bartlett, of the scatter
  l <- cbind(sqrt(var_y), cov / sqrt(var_y), sqrt(var_x - cov^2 / var_y))
  z <- matrix(stats::rnorm(3 * length(n)), ncol = 3)
  total <- n * mean + sqrt(n) * cbind(l[, 1] * z[, 1], l[, 2] * z[, 1] + l[, 3] * z[, 2])
  b <- cbind(sqrt(stats::rchisq(length(n), n - 1)), z[, 3], sqrt(stats::rchisq(length(n), n - 2)))
  f <- cbind(l[, 1] * b[, 1], l[, 2] * b[, 1] + l[, 3] * b[, 2], l[, 3] * b[, 3])
  c <- cbind(total, f[, 1]^2 + total[, 1]^2 / n, f[, 1] * f[, 2] + total[, 1] * total[, 2] / n, f[, 2]^2 + f[, 3]^2 + total[, 2]^2 / n)
  list(values = cbind(p, n = n), complete = c, n = n)
}

# A release whose bounds clamp, with a covariance given c, and what widens the noise, larger than they are, so that they are seen;
# and a chain, `at` being where its store holds n
sized_problem <- function() {
  statistic <- stat_crossprod(y ~ x, list(y = c(-0.8, 1), x = c(-0.6, 0.8)), rescale = FALSE)
  model <- model_lm(prior = prior_nig(c(0, 1.5), c(4, 8), 8, 5), covariates = prior_niw(0.2, 4, 12, 15))
  release <- sized_release(statistic, c(8, 7, 29, 19, 16), mech_gaussian(sd = 4), 48, mech_gaussian(sd = 25))
  bound <- internal("bind_model")(internal("complete_model")(model, release), release$statistic)
  words <- internal("with_seed")(1L, internal("seed_words")())
  problem <- internal("clt_totals_problem")(release, bound, words, 1L, prior_n("negative_binomial", mean = 60, size = 4), NULL)
  gamma <- cbind(2 * c(0.9, 0.4, 0.5, 0, 0.6, 0), 2 * c(0, 0.7, -0.5, 0.8, 0.3, 0), diag(c(0.5, 0.5, 0.8, 0.6, 0.6, 0))[, 1:5])
  wide <- c(2, 1, 4, 2, 0, 0)
  problem$fields$spread <- as.double(gamma[order(problem$where), ])
  problem$fields$clamp_weight <- 1 / problem$scale / sqrt(1 + wide[order(problem$where)])
  state <- internal("start_chain")(problem, bound, words, 1, NULL)
  go_on <- function(iterations) internal("run_blocks")(problem, state, iterations, list(warmup = 1000, thin = 1), function(...) NULL)
  holds_n <- lapply(c(1001, 1, 1, 1), function(iterations) {
    n <- utils::tail(go_on(iterations)$records, 1L)
    which(state$store == n)
  })
  list(statistic = statistic, model = model, release = release, bound = bound, problem = problem, gamma = gamma, wide = wide,
       state = state, go_on = go_on, at = Reduce(intersect, holds_n))
}

test_that("unknown n: a step that holds what is expected of clamped totals, and Gamma u, does so, and counts with its Jacobian", {
  skip_on_cran()
  case <- sized_problem()
  problem <- case$problem
  expect_length(case$at, 1L)
  size <- 5 + ncol(case$gamma)
  placed <- function(n, q) {
    store <- replace(case$state$store, case$at, n)
    utils::modifyList(case$state, list(store = replace(store, seq_len(size), q)))
  }
  held <- function(n, q) {
    complete <- .Call(internal("ffi_collapse_complete"), problem, placed(n, q))[1:5]
    told <- .Call(internal("ffi_collapse_clamped"), problem, complete * problem$n / n)$mean * n / problem$n
    c(told[problem$where][1:5], sqrt(n) * q[-(1:5)])
  }
  log_jacobian <- function(n, q) {
    slopes <- vapply(seq_len(size), function(j) {
      by <- replace(double(size), j, 1e-5)
      (held(n, q + by) - held(n, q - by)) / 2e-5
    }, double(size))
    as.numeric(determinant(slopes)$modulus)
  }
  for (k in 1:3) {
    repeat { # far fewer records may not have what is held
      n <- utils::tail(case$go_on(20)$records, 1L)
      if (n >= 40) break
    }
    q <- case$state$store[seq_len(size)]
    step <- function(to, hold) .Call(internal("ffi_collapse_resize"), problem, placed(n, q), to, hold, q)
    for (to in n + c(-5, 1, 12)) {
      # at fixed coordinates the ratio is that of n alone
      expect_identical(step(to, FALSE)$at, q)
      after <- step(to, TRUE)
      told <- log_jacobian(n, q) - log_jacobian(to, after$at)
      expect_equal(after$log_ratio - step(to, FALSE)$log_ratio, told, tolerance = 1e-5)
      expect_equal(held(to, after$at)[-(1:5)], held(n, q)[-(1:5)])
      # records gained change what is expected by as much each, but for terms of its series that are left out
      each <- held(n + 1, step(n + 1, TRUE)$at) - held(n, q)
      expect_lt(max(abs((held(to, after$at) - held(n, q)) / (to - n) - each)), 1e-6)
    }
  }
})

test_that("unknown n: with bounds that clamp, the draws are those of n, theta and totals from the prior, weighted", {
  skip_on_cran()
  case <- sized_problem()
  rel <- case$release
  problem <- case$problem
  state <- case$state
  gamma <- case$gamma
  wide <- case$wide
  chain <- case$go_on(12000)
  draws <- cbind(chain$draws, chain$records)
  colnames(draws) <- c(case$bound$parameters, "n")

  # the release less Gamma u, in units of the noise as it is widened, is in the density's curvature in u
  # (of four times as many records)
  store <- replace(state$store, case$at, 4 * problem$n)
  for (j in seq_len(ncol(gamma))) {
    q <- function(u) replace(c(state$store[1:5], double(ncol(gamma))), 5 + j, u)
    at <- vapply(c(-1, 0, 1), function(u) .Call(internal("ffi_collapse_density"), problem, utils::modifyList(state, list(store = store)), q(u))[1L], 0)
    expect_equal(at[1] - 2 * at[2] + at[3], -1 - sum(4 * gamma[, j]^2 / (c(rep(16, 5), 625) * (1 + 4 * wide))))
  }

  set.seed(2)
  prior <- sized_prior(case$model, case$statistic, case$bound, 18000)
  off <- t(vapply(seq_along(prior$n), function(k) {
    told <- .Call(internal("ffi_collapse_clamped"), problem, prior$complete[k, ] * problem$n / prior$n[k])$mean[problem$where]
    rel$value - told * prior$n[k] / problem$n
  }, double(6)))
  log_weight <- vapply(seq_along(prior$n), function(k) {
    share <- prior$n[k] / problem$n
    cov <- share * tcrossprod(gamma) + diag(c(rep(16, 5), 625) * (1 + share * wide))
    log_normal(off[k, ], 0, cov)
  }, 0)
  for (name in colnames(draws)) {
    expect_weighted_mean(draws[, name], prior$values[, name], log_weight, label = name)
    expect_weighted_mean(draws[, name]^2, prior$values[, name]^2, log_weight, label = name)
  }
  expect_weighted_mean(draws[, "n"] * draws[, "mean[x]"], prior$n * prior$values[, "mean[x]"], log_weight)
  expect_weighted_mean(draws[, "n"] * draws[, "sigma"], prior$n * prior$values[, "sigma"], log_weight)
})

test_that("unknown n: with bounds that bind the posterior is close to that of 'augment'; next to no noise of n is that of n known", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_crossprod(y ~ x1, list(y = c(-2, 3), x1 = c(-1.2, 1.8)))
  truth <- c("(Intercept)" = 0.5, x1 = 0.8, sigma = 0.9, "mean[x1]" = 0.3, "cov[x1,x1]" = 1)
  told <- function(epsilon) {
    set.seed(21)
    simulate_release(model_lm(), statistic, mech_laplace(epsilon = epsilon), n = 1000, parameters = truth, neighbours = "add_remove")
  }
  wide <- function(epsilon) sized_release(statistic, told(epsilon)$value, mech_laplace(epsilon = epsilon), 1075, mech_gaussian(sd = 150))
  exact <- sample_posterior(wide(1), model_lm(), method = "augment", chains = 2, iter = 3000, seed = 3)
  fit <- sample_posterior(wide(1), model_lm(), method = "clt", chains = 4, iter = 2000, seed = 4)
  expect_identical(fit$problem$sampler, "totals")
  for (v in posterior::variables(fit$draws)) {
    a <- stats::quantile(parameter_draws(exact, v), c(0.1, 0.5, 0.9))
    b <- stats::quantile(parameter_draws(fit, v), c(0.1, 0.5, 0.9))
    expect_lt(max(abs(a - b)), 0.1 * (a[[3]] - a[[1]]))
  }
  expect_identical(as.vector(posterior::extract_variable_matrix(denoise(fit), "size: n")), as.vector(parameter_draws(fit, "n")))
  expect_output(print(fit), "records outside are accounted for, by a normal approximation")
  expect_output(print(acceptance(fit)), "of n: accepted")
  # steps of n that held the totals before clamping had 27 effective draws here
  fit <- sample_posterior(wide(5), model_lm(), method = "clt", chains = 4, iter = 1500, seed = 4)
  expect_gt(min(posterior::summarise_draws(fit$draws, "ess_bulk")$ess_bulk), 600)

  near <- sized_release(statistic, told(5)$value, mech_laplace(epsilon = 5), 1000, mech_gaussian(sd = 0.01))
  unknown <- sample_posterior(near, model_lm(), method = "clt", prior_n = prior_n("poisson", mean = 980), chains = 2, iter = 1800, seed = 1)
  known <- sample_posterior(as_release(told(5)$value, statistic, mech_laplace(epsilon = 5), 1000, neighbours = "add_remove"), model_lm(), method = "clt",
                            chains = 2, iter = 1800, seed = 2)
  expect_true(all(parameter_draws(unknown, "n") == 1000))
  for (v in known$bound$parameters) {
    a <- parameter_draws(known, v)
    b <- parameter_draws(unknown, v)
    # what is left is estimated by another run
    expect_lt(abs(mean(a) - mean(b)), 5 * sqrt(posterior::mcse_mean(a)^2 + posterior::mcse_mean(b)^2) + 0.02 * stats::sd(a))
    expect_lt(abs(log(stats::sd(a) / stats::sd(b))), 0.1)
  }
})

test_that("unknown n: a run with bounds that clamp goes on bit for bit; factors, or too few records, leave clamping out", {
  skip_on_cran()
  rel <- sized_release(clamped_statistic, clamped_problem()$release$value, mech_laplace(epsilon = 3), 1010, mech_laplace(scale = 20))
  run <- function(iter, warmup) sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = iter, warmup = warmup, seed = 5)
  whole <- run(260, 200)
  expect_identical(extend(run(230, 200), 30)$draws, whole$draws)
  few <- suppressWarnings(sample_posterior(rel, model_lm(), method = "clt", chains = 1, iter = 20, prior_n = prior_n("uniform", lower = 2, upper = 3), seed = 1))
  expect_identical(few$problem$sampler, "noncentred")
  crossed <- sized_release(crossed_statistic, crossed_problem()$release$value, mech_laplace(epsilon = 3), 1010, mech_laplace(scale = 20))
  expect_identical(suppressWarnings(sample_posterior(crossed, model_lm(), method = "clt", chains = 1, iter = 20, seed = 1))$problem$sampler, "noncentred")
  expect_error(sample_posterior(crossed, model_lm(), method = "clt", control = list(sampler = "totals")), "known number", class = "noiseaware_error_argument")
})
