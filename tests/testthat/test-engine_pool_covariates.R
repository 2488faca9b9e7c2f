# Covariates whose distribution is partially pooled (src/contract/model_pooled_scatter.h). Oracles: the matrix-t density of the sites' averages and scatters, by
# determinants of matrices over sites; quadrature; simulated groups; the share of records outside.

covariate_sites <- function(names, sizes = c(a = 9, b = 14, c = 6)) {
  bounds <- stats::setNames(rep(list(c(-50, 50)), length(names) + 1L), c("y", names))
  lapply(sizes, function(n) {
    data <- as.data.frame(matrix(rnorm(n * length(bounds), 1), n, dimnames = list(NULL, names(bounds))))
    simulate_release(data, stat_crossprod(stats::reformulate(names, "y"), bounds, outside = "none"), mech_gaussian(sd = 0.05))
  })
}

# Densities of both ways at `count` states of a chain of the first, up to what they have in common, and the sites' averages and scatters.
compared_ways <- function(sites, model, names, count = 6L) {
  parts <- lapply(c(pooled = "pooled", separate = "separate"), function(ways) partial_parts(sites, model, partial_pooling(covariates = ways)))
  problem <- with_coordinates(parts$pooled$problem, 1, 0L)
  separate <- with_coordinates(parts$separate$problem, 1, 0L)
  state <- internal("start_pool")(problem, parts$pooled$bound, c(1, 2), 1L, NULL)
  other <- internal("start_pool")(separate, parts$separate$bound, c(1, 2), 1L, NULL)
  shared <- 2 * (length(names) + 2L) # means and standard deviations of the parameters
  run <- list(warmup = 50, thin = 1)
  internal("run_blocks")(problem, state, 50, run, function(...) NULL)
  run_on <- internal("ffi_run")
  block <- .Call(internal("ffi_block"), problem, 1L, 1L)
  place <- cumsum(c(0L, vapply(problem$sites, `[[`, 0L, "components")))
  lapply(seq_len(count), function(i) {
    .Call(run_on, problem, state, block, run)
    own <- length(.Call(internal("ffi_pool_density"), separate, other, other$store)) - 1L
    q <- state$store[seq_len(own + 1L)]
    totals <- lapply(seq_along(sites), function(j) stats::setNames(block$statistic[place[j] + seq_len(problem$sites[[j]]$components)], names(sites[[j]]$value)))
    list(log = .Call(internal("ffi_pool_density"), problem, state, q)[1L] - .Call(internal("ffi_pool_density"), separate, other, q[-(shared + 1L)])[1L],
         log_kappa = q[shared + 1L], totals = totals)
  })
}

log_determinant <- function(x) as.numeric(determinant(as.matrix(x))$modulus)

# averages and scatters of totals in units of half the bounds
moments_of <- function(totals, names, n) {
  at <- outer(names, names, function(a, b) ifelse(a == b, paste0(a, "^2"), paste0(pmax(a, b), ":", pmin(a, b))))
  mean <- totals[names] / n
  list(mean = mean, scatter = matrix(totals[at], length(names)) - n * outer(mean, mean))
}

# log density of averages and scatters: those of several sites have a covariance and a common mean, if kappa is given
log_matrix_t <- function(of, n, prior, kappa = NULL) {
  p <- length(of[[1L]]$mean)
  mean <- do.call(rbind, lapply(of, `[[`, "mean")) - rep(prior$mean, each = length(of))
  rows <- diag(1 / n, length(n)) + 1 / prior$kappa + if (is.null(kappa)) 0 else diag(1 / kappa, length(n))
  between <- crossprod(mean, solve(rows, mean))
  -p / 2 * log_determinant(rows) - (prior$df + sum(n)) / 2 * log_determinant(prior$scale + Reduce(`+`, lapply(of, `[[`, "scatter")) + between)
}

test_that("what sites have in common has the matrix-t density, with one covariate and with two", {
  prior <- list(mean = 0.3, kappa = 2, df = 6)
  for (names in list("x", c("x", "w"))) {
    set.seed(2)
    p <- length(names)
    scale <- diag(p) + 0.4 * (1 - diag(p))
    sites <- covariate_sites(names)
    n <- vapply(sites, `[[`, 0, "n")
    model <- model_lm(stats::reformulate(names, "y"), prior = prior_nig(0.3, 1, 4, 5), covariates = prior_niw(rep(0.3, p), 2, scale, 6))
    own <- modifyList(prior, list(mean = rep(prior$mean, p) / 50, scale = scale / 50^2))
    found <- compared_ways(sites, model, names)
    differences <- vapply(found, function(at) {
      of <- Map(moments_of, at$totals, list(names), n)
      expected <- log_matrix_t(of, n, own, exp(at$log_kappa)) + dnorm(at$log_kappa, log(4), 2, log = TRUE)
      at$log - expected + sum(mapply(function(one, n) log_matrix_t(list(one), n, own), of, n))
    }, 0)
    expect_equal(differences, rep(differences[1L], length(differences)), tolerance = 1e-6)
    expect_gt(diff(range(vapply(found, `[[`, 0, "log_kappa"))), 0.1)
  }
})

test_that("the density in kappa is the integral over the mean and the variance", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  sites <- covariate_sites("x")
  n <- vapply(sites, `[[`, 0, "n")
  at <- compared_ways(sites, model_lm(prior = prior_nig(0.3, 1, 4, 5), covariates = prior_niw(0.3, 2, 1, 6)), "x", 1L)[[1L]]
  of <- Map(moments_of, at$totals, "x", n)
  mean <- vapply(of, `[[`, 0, "mean") * 50
  scatter <- sum(vapply(of, `[[`, 0, "scatter")) * 50^2
  integral <- function(kappa) log(integrate(Vectorize(function(log_variance) {
    v <- exp(log_variance)
    given <- Vectorize(function(mu) exp(dnorm(mu, 0.3, sqrt(v / 2), log = TRUE) + sum(dnorm(mean, mu, sqrt(v * (1 / kappa + 1 / n)), log = TRUE)) + 10))
    integrate(given, -8, 10, rel.tol = 1e-7)$value * exp(-(sum(n) - 3 + 6) / 2 * log_variance - (scatter + 1) / (2 * v))
  }), -3, 3, rel.tol = 1e-7)$value)
  own <- list(mean = 0.3 / 50, kappa = 2, df = 6, scale = 1 / 50^2)
  formula <- function(kappa) log_matrix_t(of, n, own, kappa)
  expect_equal(formula(20) - formula(0.5), integral(20) - integral(0.5), tolerance = 1e-5)
})

test_that("noise that drowns all leaves unknown numbers of records, and all else, their prior", {
  skip_on_cran()
  set.seed(3)
  asked <- stat_crossprod(y ~ x, list(y = c(-3, 3), x = c(-2, 2)))
  sites <- lapply(c(a = 1, b = 2, c = 3), function(k) as_release(rnorm(5, 0, 1e6), asked, mech_gaussian(sd = 1e6), n = NULL))
  sizes <- list(a = prior_n("uniform", lower = 5, upper = 12), b = prior_n("uniform", lower = 4, upper = 30), c = prior_n("uniform", lower = 6, upper = 9))
  model <- model_lm(prior = prior_normal(0, 1), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(0, 2, 2, 6))
  fit <- suppressWarnings(suppressMessages(sample_posterior(sites, model, pool = "partial", prior_n = sizes, method = "collapse", iter = 1500, seed = 4)))
  expect_identical(fit$problem$partial$covariates, "pooled")
  for (name in names(sites)) {
    at <- parameter_draws(fit, sprintf("n[%s]", name))
    ends <- c(sizes[[name]]$lower, sizes[[name]]$upper)
    expect_lt(abs(mean(at) - mean(ends)) / posterior::mcse_mean(at), 5)
    expect_equal(mean((at - mean(at))^2), (diff(ends) * (diff(ends) + 2)) / 12, tolerance = 0.15)
  }
  expect_distribution(parameter_draws(fit, "x"), qnorm)
})

test_that("slopes of narrow groups are held", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  g <- rep(sprintf("g%02d", 1:20), each = 30)
  x <- rnorm(600)
  y <- 1 + x + rnorm(20, 0, 0.3)[as.integer(factor(g))] + rnorm(600)
  data <- data.frame(g, x, y)
  levels <- list(g = unique(g))
  fitted <- function(reach, epsilon, ...) {
    total <- stat_by(stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-reach, reach))), levels)
    set.seed(2)
    release <- simulate_release(data, list(size = stat_counts(~ g, levels), total = total), list(size = mech_exact(), total = mech_laplace(epsilon = epsilon)))
    suppressWarnings(suppressMessages(sample_posterior(release, model_lm(y ~ x + (1 | g)), method = "collapse", seed = 1, chains = 2, iter = 400, ...)))
  }
  pooled <- fitted(8, 10)
  expect_identical(pooled$problem$partial$covariates, "pooled")
  slope <- posterior::extract_variable(pooled$draws, "x")
  expect_lt(abs(mean(slope) - 1), 2 * sd(slope))
  separate <- posterior::extract_variable(fitted(8, 10, pool = partial_pooling(covariates = "separate"))$draws, "x")
  expect_gt(abs(mean(separate) - 1), 2 * sd(separate))
})

test_that("records outside are expected as if small groups had means that hardly differ", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  sites <- lapply(stats::setNames(nm = sprintf("s%02d", 1:40)), function(site) {
    x <- rnorm(4)
    simulate_release(data.frame(y = rnorm(4, 5 * x), x), stat_crossprod(y ~ x, list(y = c(-60, 60), x = c(-2, 6))), mech_gaussian(sd = 0.01))
  })
  fit <- suppressWarnings(suppressMessages(sample_posterior(sites, model_lm(), pool = "partial", method = "collapse", chains = 1, iter = 250, seed = 1)))
  # P(x < -2) is 2.3%; with means that each group estimates from its four records it would be 5%
  expect_lt(abs(outside_bounds(fit)[["share"]] - 0.0228), 0.01)
})

test_that("the gradient is that of the density, with two covariates", {
  set.seed(3)
  sites <- covariate_sites(c("x", "w"))
  parts <- partial_parts(sites, model_lm(y ~ x + w), partial_pooling())
  state <- internal("start_pool")(parts$problem, parts$bound, c(1, 2), 1L, NULL)
  at <- function(q) .Call(internal("ffi_pool_density"), parts$problem, state, q)
  q <- state$store[seq_len(length(at(state$store)) - 1L)]
  expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-6), tolerance = 1e-4)
})

test_that("covariates are pooled where a method can, and refused where it cannot", {
  set.seed(1)
  sites <- covariate_sites("x")
  ways <- function(model, pooling = partial_pooling()) partial_parts(sites, model, pooling)$problem$partial$covariates
  expect_identical(ways(model_lm()), "pooled")
  expect_identical(ways(model_lm(), partial_pooling(covariates = "separate")), "separate")
  known <- fixed(list(mean = 0.2, cov = matrix(0.49)))
  expect_identical(ways(model_lm(covariates = known)), "separate")
  expect_identical(ways(model_lm(covariates = list(mean = fixed(0.2), cov = prior_niw(0, 2, 1, 6)))), "separate")
  expect_identical(ways(model_lm(covariates = list(mean = prior_niw(0, 2, 1, 6), cov = fixed(matrix(0.49))))), "separate")
  expect_error(ways(model_lm(covariates = known), partial_pooling(covariates = "pooled")), "must be unknown", class = "noiseaware_error_pool")
  expect_error(sample_posterior(sites, model_lm(), pool = partial_pooling(covariates = "pooled"), method = "clt", seed = 1), "method .collapse. alone",
               class = "noiseaware_error_pool")
  expect_error(sample_posterior(sites, model_lm(), pool = partial_pooling(covariates = "pooled"), method = "augment", seed = 1), "separate",
               class = "noiseaware_error_method")
  expect_output(print(partial_pooling(covariates = "pooled")), "the covariates' distribution is pooled")
})

test_that("prior_summary() has the priors of covariates that are pooled, separate or shared", {
  skip_if_not_installed("rstantools")
  set.seed(1)
  sites <- covariate_sites("x", c(a = 30, b = 40, c = 50))
  model <- model_lm(y ~ x, covariates = prior_niw(0.3, 4, 2, 6))
  said <- function(ways, method, pooled = sites) {
    fit <- suppressWarnings(suppressMessages(sample_posterior(pooled, model, method, pool = partial_pooling(covariates = ways), chains = 1, iter = 10, seed = 1)))
    table <- rstantools::prior_summary(fit)
    rownames(table) <- table$variable
    table
  }
  # sd[x] is the slope's standard deviation between sites
  of_one <- c("normal(0.3, 0.5 sqrt(cov[x,x]))", "inverse_wishart(6, 2)")
  pooled <- said("pooled", "collapse")
  expect_identical(pooled[c("mean[x]", "cov[x,x]", "kappa"), "prior"], c(of_one, "lognormal(1.3863, 2)"))
  expect_equal(unlist(log(pooled["kappa", c("q5", "q95")])), log(4) + 2 * qnorm(c(q5 = 0.05, q95 = 0.95)), tolerance = 0.05)
  expect_output(print(pooled), "normal(mean, cov / kappa)", fixed = TRUE)
  shared <- said("shared", "clt")
  expect_identical(shared[c("mean[x]", "cov[x,x]"), "prior"], of_one)
  expect_false("kappa" %in% rownames(shared))
  for (method in c("collapse", "augment")) {
    separate <- said("separate", method)
    expect_identical(separate[c("mean[x]", "cov[x,x]"), "prior"], paste(of_one, "in each site"))
    expect_false(any(grepl("in each", separate$prior[!rownames(separate) %in% c("mean[x]", "cov[x,x]")])))
    expect_false("kappa" %in% rownames(separate))
  }
  expect_identical(separate[c("mean[x]", "cov[x,x]"), 3:6], pooled[c("mean[x]", "cov[x,x]"), 3:6])
})

test_that("draws of a site's covariates are those given the totals of all sites, by quadrature over kappa", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  n <- c(a = 4, b = 30, c = 6)
  sites <- Map(function(n, mean) {
    data <- data.frame(x = rnorm(n, mean, 0.7), y = rnorm(n))
    simulate_release(data, stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-4, 4)), outside = "none"), mech_gaussian(sd = 0.01))
  }, n, c(0.6, 0.5, 0.7))
  fit <- without_words(sample_posterior(sites, model_lm(), pool = "partial", chains = 2, iter = 700, seed = 1))
  expect_identical(fit$problem$drawn, paste0(c("mean[x,", "cov[x,x,"), rep(c("a", "b", "c"), each = 2), "]"))
  expect_false(any(fit$problem$drawn %in% posterior::variables(fit$draws)))
  # totals in units of half the bounds, with hardly any noise
  value <- lapply(sites, `[[`, "value")
  average <- sapply(value, function(v) 4 * v[["x"]]) / n
  scatter <- sapply(value, function(v) 16 * v[["x^2"]]) - n * average^2
  fields <- fit$bound$spec$fields
  away <- average - fields$mean_prior
  at <- seq(-10, 14, length.out = 2001)
  of <- lapply(exp(at), function(kappa) {
    weight <- kappa * n / (kappa + n)
    all <- fields$mean_kappa + sum(weight)
    mu <- sum(weight * away) / all
    scale <- drop(fields$cov_scale) + sum(scatter) + sum(weight * away^2) - all * mu^2
    df <- fields$cov_df + sum(n)
    list(log = sum(log(kappa / (kappa + n))) / 2 - log(all) / 2 - df / 2 * log(scale), cov = scale / (df - 2),
         mean = fields$mean_prior + n / (kappa + n) * away + kappa / (kappa + n) * mu,
         # of the site's mean about this, over cov
         spread = 1 / (kappa + n) + (kappa / (kappa + n))^2 / all, shared = kappa^2 / (kappa + n[[1]]) / (kappa + n[[3]]) / all)
  })
  log <- sapply(of, `[[`, "log") + dnorm(at, log(4), 2, log = TRUE)
  weight <- exp(log - max(log)) / sum(exp(log - max(log)))
  exact <- drop(weight %*% t(sapply(of, `[[`, "mean")))
  cov <- sum(weight * sapply(of, `[[`, "cov"))
  spread <- sapply(1:3, function(j) sum(weight * sapply(of, function(o) o$cov * o$spread[j] + (o$mean[j] - exact[j])^2)))
  ones <- lapply(names(sites), function(site) internal("as_fit_of_site")(fit, site))
  draws <- lapply(ones, function(one) as.matrix(posterior::as_draws_matrix(one$draws)))
  # all sites have one covariance in a draw, and their means vary about one mean
  expect_identical(draws[[1]][, "cov[x,x]"], draws[[3]][, "cov[x,x]"])
  means <- sapply(of, `[[`, "mean") - exact
  together <- sum(weight * (sapply(of, function(o) o$cov * o$shared) + means[1, ] * means[3, ]))
  product <- (draws[[1]][, "mean[x]"] - exact[1]) * (draws[[3]][, "mean[x]"] - exact[3])
  expect_near_mean(matrix(product, ncol = 2), together)
  for (j in 1:3) {
    one <- ones[[j]]
    drawn <- draws[[j]]
    expect_near_mean(posterior::subset_draws(one$draws, "mean[x]"), exact[j])
    expect_near_mean(posterior::subset_draws(one$draws, "cov[x,x]"), cov)
    expect_equal(sd(drawn[, "mean[x]"]), sqrt(spread[j]), tolerance = 0.06)
  }
  checked <- check_of(fit, draws = 20)
  expect_identical(nrow(checked), 15L)
})
