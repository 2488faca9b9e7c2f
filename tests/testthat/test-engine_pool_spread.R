# How sites spread: covariates of the sites, walks, correlations. Quadrature, exact equalities, joint-distribution tests, limits, errors.

three_yes <- function() c(two_yes(), list(west = as_release(c("smoke=yes" = 19.4), smoking(), mech_laplace(scale = 1), n = 25)))

yes_on_logit <- function(at) {
  cbind(sum_of_totals(plogis(at), 30, function(s) -abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2), sum_of_totals(plogis(at), 20, function(s) -(11 - s)^2 / 18),
        sum_of_totals(plogis(at), 25, function(s) -abs(19.4 - s)))
}

log_beta <- function(t, a = 2, b = 3) dbeta(plogis(t), a, b, log = TRUE) + dlogis(t, log = TRUE)

rural <- data.frame(site = c("west", "north", "south"), rural = c(1, 0, 1), same = 3)

choices <- function() {
  covariates <- data.frame(site = c("first", "second", "third"), rural = c(1, 0, 1), size = c(2, 5, 11))
  list(partial_pooling(~ . | rural + size, sites = covariates), partial_pooling(sd = prior_half_t(3, 0.5), correlation = prior_lkj(3)),
       partial_pooling(~ x + sigma | size, sites = covariates, correlation = prior_lkj(0.7)), partial_pooling(walk = TRUE), partial_pooling(~ sigma, sd = prior_exponential(2), walk = TRUE),
       partial_pooling(~ (Intercept) + x, correlation = prior_lkj(), walk = TRUE), partial_pooling(walk = 2), partial_pooling(~ x + sigma, correlation = prior_lkj(), walk = 2))
}

test_that("the gradient is that of the density: covariates, walks and correlations, in all coordinates", {
  skip_on_cran()
  set.seed(1)
  sites <- totals_sites()
  for (parts in lapply(choices(), partial_parts, sites = sites, model = totals_models$conjugate)) for (choice in 0:3) {
    problem <- with_coordinates(parts$problem, choice %% 2, choice >= 2)
    if (choice == 1) for (j in 1:3) problem$sites[[j]]$fields$precision[1] <- 0
    state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
    partial <- problem$partial
    varying <- length(partial$which)
    size <- 3 + varying + length(partial$effect_sd) + problem$begin$pairs + partial$pooled_scatter + (3 - (partial$walk > 0)) * varying + 3 * 5
    q <- state$store[seq_len(size)] + rnorm(size, 0, 0.1)
    at <- function(q) .Call(internal("ffi_pool_density"), problem, state, q)
    expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
  }
})

test_that("the coordinate of a standard deviation has the gradient of the density, far on both sides too", {
  sites <- three_yes()[1:2]
  priors <- list(prior_half_normal(0.7), prior_half_t(2, 0.7), prior_exponential(2))
  for (sd in priors) {
    parts <- partial_parts(sites, model_bernoulli(), partial_pooling(sd = sd))
    state <- internal("start_pool")(parts$problem, parts$bound, internal("seed_words")(), 1L, NULL)
    at <- function(q) .Call(internal("ffi_pool_density"), parts$problem, state, q)
    for (x in c(-20, -8, -3.01, -2.99, 0.5, 6, if (!inherits(sd, "prior_half_t")) c(36, 38))) {
      q <- c(0.3, x, -0.2, 0.4)
      expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
    }
    # where pieces meet
    for (x in c(-3, 37)) expect_equal(at(c(0.3, x - 1e-9, -0.2, 0.4))[1L], at(c(0.3, x + 1e-9, -0.2, 0.4))[1L], tolerance = 1e-5)
  }
})

test_that("innovations of the response of several covariates have the volume and the gradient of what they stand for", {
  set.seed(4)
  d <- 4
  sites <- lapply(c(a = 9, b = 14), function(n) {
    data <- data.frame(y = rnorm(n), x = rnorm(n), w = rnorm(n), u = rnorm(n))
    simulate_release(data, stat_crossprod(y ~ x + w + u, list(y = c(-50, 50), x = c(-50, 50), w = c(-50, 50), u = c(-50, 50))), mech_gaussian(sd = 0.01))
  })
  parts <- partial_parts(sites, model_lm(), partial_pooling())
  density_in <- function(innovates) {
    problem <- with_coordinates(parts$problem, 1, innovates)
    state <- internal("start_pool")(problem, parts$bound, c(1, 2), 1L, NULL)
    at <- function(q) .Call(internal("ffi_pool_density"), problem, state, q)
    q <- state$store[seq_len(11 + 2 * (5 + 14))]
    moved <- q + rnorm(length(q), 0, 0.02)
    expect_equal(at(moved)[-1L], difference_slopes(at, moved, 1e-6), tolerance = 1e-4)
    list(q = q, log = at(q)[1L])
  }
  plain <- density_in(0L)
  moved <- density_in(1L)
  log_sigma <- parts$problem$begin$at[, 5L]
  volume <- vapply(1:2, function(j) {
    diagonal <- plain$q[11 + (j - 1) * 19 + 5 + d + cumsum(1:d)]
    sum((d - 1:d) * diagonal) + log_sigma[[j]] - (d - 1) * (diagonal[d] - log_sigma[[j]]) - sum(diagonal[-d])
  }, 0)
  expect_equal(moved$log - plain$log, sum(volume), tolerance = 1e-8)
})

test_that("where releases tell nothing the standard deviation has its prior", {
  skip_on_cran() # takes long; `make test` runs it
  nothing <- as_release(c("smoke=yes" = 0), smoking(), mech_laplace(scale = 1000), n = 5)
  quantiles <- list(function(p) 0.7 * qnorm((1 + p) / 2), function(p) 0.7 * qt((1 + p) / 2, 2), function(p) qexp(p, 2))
  priors <- list(prior_half_normal(0.7), prior_half_t(2, 0.7), prior_exponential(2))
  for (k in 1:3) {
    fit <- sample_posterior(list(a = nothing, b = nothing), model_bernoulli(), pool = partial_pooling(sd = priors[[k]]), iter = 2400, seed = 1)
    expect_distribution(parameter_draws(fit, "sd[logit(prob[yes])]"), quantiles[[k]])
  }
})

test_that("~ 1 is the intercept of a regression, and nothing of another model", {
  set.seed(5)
  sites <- totals_sites()
  varying <- function(pool) partial_parts(sites, totals_models$conjugate, internal("as_pooling")(pool))$problem$partial$vary
  expect_identical(varying(~ 1), "(Intercept)")
  expect_identical(varying(~ 1 + sigma), c("(Intercept)", "sigma"))
  expect_identical(varying(~ x), "x")
  expect_error(sample_posterior(three_yes(), model_bernoulli(), pool = ~ 1), "~ 1` means.*intercept of a regression", class = "noiseaware_error_pool")
})

test_that("three sites with a covariate: quadrature over the mean, the effect and the spread", {
  skip_on_cran()
  at <- seq(-8, 8, by = 0.04)
  likelihood <- yes_on_logit(at)
  mean <- seq(-4, 4, by = 0.1)
  effect <- seq(-6, 6, by = 0.15)
  log_sd <- seq(-5, 2, by = 0.1)
  x <- c(0, 1, 1) - 2 / 3
  joint <- array(0, c(length(mean), length(effect), length(log_sd)))
  for (k in seq_along(log_sd)) {
    kernel <- outer(at, at, function(a, m) dnorm(a, m, exp(log_sd[k])))
    smooth <- crossprod(kernel, likelihood) / colSums(kernel)
    density <- 1
    for (j in 1:3) density <- density * matrix(approx(at, smooth[, j], outer(mean, x[j] * effect, "+"), rule = 2)$y, length(mean))
    joint[, , k] <- density * exp(outer(log_beta(mean), dnorm(effect, 0, 1.5, log = TRUE), "+")) * dnorm(exp(log_sd[k]), 0, 0.8) * exp(log_sd[k])
  }
  pooling <- partial_pooling(~ . | rural, sd = prior_half_normal(0.8), sites = rural, effects = prior_normal(sd = 1.5))
  fit <- sample_posterior(three_yes(), model_bernoulli(prior = prior_beta(2, 3)), pool = pooling, iter = 1800, seed = 1)
  expect_identical(fit$problem$names[1:3], c("prob[yes]", "sd[logit(prob[yes])]", "rural[logit(prob[yes])]"))
  expect_distribution(qlogis(parameter_draws(fit, "prob[yes]")), grid_quantile(mean, apply(joint, 1, sum)))
  expect_distribution(parameter_draws(fit, "rural[logit(prob[yes])]"), grid_quantile(effect, apply(joint, 2, sum)))
  expect_distribution(log(parameter_draws(fit, "sd[logit(prob[yes])]")), grid_quantile(log_sd, apply(joint, 3, sum)))
  # a new site has the mean of its covariates, and the spread
  new <- site_draws(fit, "new", sites = data.frame(rural = 1), seed = 1)
  draws <- function(name) posterior::subset_draws(fit$draws, variable = name)
  away <- (qlogis(new) - qlogis(draws("prob[yes]")) - draws("rural[logit(prob[yes])]") / 3) / draws("sd[logit(prob[yes])]")
  expect_gt(ks.test(c(away), pnorm)$p.value, 1e-6)
})

test_that("correlations that are reported are those of the state", {
  set.seed(4)
  parts <- partial_parts(totals_sites(), totals_models$conjugate, partial_pooling(correlation = prior_lkj()))
  state <- internal("start_pool")(parts$problem, parts$bound, c(1, 2), 1L, NULL)
  for (i in 1:20) {
    block <- .Call(internal("ffi_block"), parts$problem, 1L, 1L)
    .Call(internal("ffi_run"), parts$problem, state, block, list(warmup = 0, thin = 1))
    y <- state$store[7:9]
    chol <- rbind(c(1, 0, 0), c(tanh(y[1]), 1 / cosh(y[1]), 0), c(tanh(y[2]), tanh(y[3]) / cosh(y[2]), 1 / cosh(y[2]) / cosh(y[3])))
    expect_equal(block$draws[7:9], tcrossprod(chol)[lower.tri(chol)][c(1, 2, 3)])
  }
})

test_that("chains of many sites begin with narrow units for what the sites share", {
  skip_on_cran() # takes long; `make test` runs it
  units <- function(sites, model, times) {
    parts <- partial_parts(stats::setNames(rep(sites, times), paste0("s", seq_len(times * length(sites)))), model, partial_pooling())
    state <- internal("start_pool")(parts$problem, parts$bound, internal("seed_words")(), 1L, NULL)
    size <- 2 * length(parts$problem$partial$which) + times * length(sites)
    state$store[4 * ceiling(size / 4) + seq_len(2)] # the mean, and log sd
  }
  expect_equal(units(three_yes(), model_bernoulli(), 20), c(1, 1))
  # each site gives the spread one piece of information: its standard deviation is a root of their number, about
  many <- units(three_yes(), model_bernoulli(), 200)
  expect_lt(many[2], 0.1)
  expect_gt(many[2], 0.005)
})

test_that("a covariate that is the same everywhere changes nothing", {
  set.seed(2)
  sites <- totals_sites()
  same <- data.frame(size = c(7, 7, 7), row.names = names(sites))
  with <- partial_parts(sites, totals_models$conjugate, partial_pooling(~ . | size, sites = same, effects = prior_normal(sd = 2)))
  without <- partial_parts(sites, totals_models$conjugate, partial_pooling())
  start <- function(parts) internal("start_pool")(parts$problem, parts$bound, c(1, 2), 1L, NULL)
  state <- list(start(with), start(without))
  # means, sds and the covariates' kappa, which effects precede, and the sites
  q <- state[[2]]$store[seq_len(7 + 3 * 8)]
  effects <- c(0.4, -1, 3)
  longer <- append(q, effects, 6)
  there <- .Call(internal("ffi_pool_density"), with$problem, state[[1]], longer)
  here <- .Call(internal("ffi_pool_density"), without$problem, state[[2]], q)
  expect_equal(there[1] + sum(effects^2) / 8, here[1])
  expect_equal(there[-c(1, 8:10)], here[-1])
  expect_equal(there[8:10], -effects / 4)
})

test_that("a walk over three sites: quadrature", {
  skip_on_cran()
  at <- seq(-7, 7, by = 0.05)
  likelihood <- yes_on_logit(at)
  log_sd <- seq(-5, 2, by = 0.1)
  first <- exp(log_beta(at)) * likelihood[, 1]
  joint <- vapply(log_sd, function(u) {
    kernel <- outer(at, at, function(a, b) dnorm(a, b, exp(u)))
    kernel <- sweep(kernel, 2, colSums(kernel), "/")
    second <- drop(kernel %*% first) * likelihood[, 2]
    later <- drop(crossprod(kernel, likelihood[, 3]))
    cbind(first * drop(crossprod(kernel, likelihood[, 2] * later)), second * later, drop(kernel %*% second) * likelihood[, 3]) *
      dexp(exp(u), 1.5) * exp(u)
  }, likelihood)
  fit <- sample_posterior(three_yes(), model_bernoulli(prior = prior_beta(2, 3)), pool = partial_pooling(sd = prior_exponential(1.5), walk = TRUE), iter = 1800, seed = 1)
  expect_identical(posterior::variables(fit$draws), c("sd[logit(prob[yes])]", sprintf("prob[yes,%s]", c("north", "south", "west"))))
  expect_distribution(log(parameter_draws(fit, "sd[logit(prob[yes])]")), grid_quantile(log_sd, apply(joint[, 1, ], 2, sum)))
  for (j in 1:3) expect_distribution(qlogis(parameter_draws(fit, sprintf("prob[yes,%s]", names(three_yes())[j]))), grid_quantile(at, rowSums(joint[, j, ])))
  # the next site is one step from the last
  draws <- function(name) posterior::subset_draws(fit$draws, variable = name)
  away <- (qlogis(site_draws(fit, "next", seed = 1)) - qlogis(draws("prob[yes,west]"))) / draws("sd[logit(prob[yes])]")
  expect_gt(ks.test(c(away), pnorm)$p.value, 1e-6)
  expect_output(print(fit), "walk: parameters of each site are normal about the previous site's")
  expect_identical(shrinkage_data(fit)$pooled, unname(coef(fit)[, 1]))
})

five_yes <- function() {
  c(three_yes(), list(east = as_release(c("smoke=yes" = 14.2), smoking(), mech_laplace(scale = 2), n = 40), last = as_release(c("smoke=yes" = 6.1), smoking(), mech_gaussian(sd = 2), n = 22)))
}

five_on_logit <- function(at) {
  cbind(yes_on_logit(at), sum_of_totals(plogis(at), 40, function(s) -abs(14.2 - s) / 2), sum_of_totals(plogis(at), 22, function(s) -(6.1 - s)^2 / 8))
}

test_that("a walk of second order over five sites: draws from the prior, weighted by the likelihood", {
  skip_on_cran()
  set.seed(6)
  count <- 8e5
  sites <- five_yes()
  at <- seq(-9, 9, by = 0.02)
  log_likelihood <- log(five_on_logit(at))
  sd <- rexp(count, 3)
  phi <- matrix(qlogis(rbeta(count, 2, 3)), count, 5)
  phi[, 2] <- phi[, 1] + rnorm(count)
  for (j in 3:5) phi[, j] <- 2 * phi[, j - 1] - phi[, j - 2] + sd * rnorm(count)
  log_weight <- rowSums(vapply(1:5, function(j) stats::approx(at, log_likelihood[, j], phi[, j], rule = 2)$y, numeric(count)))
  log_weight[rowSums(abs(phi) > 9) > 0] <- -Inf
  pool <- partial_pooling(sd = prior_exponential(3), walk = 2)
  for (method in c("collapse", "augment")) {
    fit <- sample_posterior(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = pool, method = method, iter = if (method == "augment") 3000 else 2000, seed = 1)
    expect_weighted_mean(log(parameter_draws(fit, "sd[logit(prob[yes])]")), log(sd), log_weight)
    for (j in 1:5) {
      draws <- qlogis(parameter_draws(fit, sprintf("prob[yes,%s]", names(sites)[j])))
      for (power in 1:2) expect_weighted_mean(draws^power, phi[, j]^power, log_weight, label = paste(method, j, power))
    }
  }
  draws <- function(name) qlogis(posterior::subset_draws(fit$draws, variable = name))
  line <- 2 * draws("prob[yes,last]") - draws("prob[yes,east]")
  away <- (qlogis(site_draws(fit, "next", seed = 1)) - line) / posterior::subset_draws(fit$draws, variable = "sd[logit(prob[yes])]")
  expect_gt(ks.test(c(away), pnorm)$p.value, 1e-6)
  expect_output(print(fit), "walk of second order: parameters of each site are normal about the line through the previous two sites'")
  expect_output(print(pool), "walk of second order")
})

test_that("in a walk of either order, coordinates are nearly independent standard normal", {
  skip_on_cran() # takes long; `make test` runs it
  sites <- five_yes()
  # totals of many records, so that the likelihood is nearly normal
  for (j in seq_along(sites)) sites[[j]] <- as_release(c("smoke=yes" = 2e4 * c(0.2, 0.25, 0.33, 0.36, 0.31)[j]), smoking(), mech_gaussian(sd = 400 * j), n = 2e4)
  for (order in 1:2) for (log_sd in c(-4, -2, 0)) {
    parts <- partial_parts(sites, model_bernoulli(), partial_pooling(sd = prior_half_normal(0.7), walk = order))
    state <- internal("start_pool")(parts$problem, parts$bound, internal("seed_words")(), 1L, NULL)
    at <- function(q) .Call(internal("ffi_pool_density"), parts$problem, state, q)
    q <- c(0.1, state$store[2] + log_sd, 0.3, -0.2, 0.1, 0.2)
    expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-5), tolerance = 1e-5)
    places <- c(1, 3:6)
    hessian <- vapply(places, function(k) (at(replace(q, k, q[k] + 0.01)) - at(replace(q, k, q[k] - 0.01)))[places + 1L] / 0.02, numeric(5))
    expect_lt(max(abs(hessian + diag(5))), 0.15)
  }
})

test_that("no steps are complete pooling, and wide ones separate sites", {
  skip_on_cran() # takes long; `make test` runs it
  none <- sample_posterior(two_yes(), model_bernoulli(), pool = partial_pooling(sd = prior_exponential(1e4), walk = TRUE), iter = 1800, seed = 1)
  complete <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", iter = 1800, seed = 2)
  expect_agreement(parameter_draws(none, "prob[yes,north]"), parameter_draws(complete, "prob[yes]"))
  expect_agreement(parameter_draws(none, "prob[yes,south]"), parameter_draws(complete, "prob[yes]"))
  # a standard deviation that is known to be about 40: nothing is borrowed
  at <- seq(-12, 12, by = 0.02)
  alone <- cbind(yes_on_logit(at)[, 1], dbinom(11, 20, plogis(at)))
  apart <- list(north = two_yes()$north, south = as_release(c("smoke=yes" = 11), smoking(), mech_exact(), n = 20))
  for (pooling in list(partial_pooling(walk = TRUE), partial_pooling())) {
    parts <- partial_parts(apart, model_bernoulli(prior = prior_beta(2, 3)), pooling)
    parts$problem$partial$sd[[1]]$fields <- list(sigma_inverse_gamma = c(1e3, 1e3 * 40^2))
    chains <- lapply(1:4, function(k) {
      state <- internal("start_pool")(parts$problem, parts$bound, c(3, 4), k, NULL)
      internal("run_blocks")(parts$problem, state, 4000, list(warmup = 2000, thin = 1), function(...) NULL)$draws
    })
    draws <- internal("chains_array")(lapply(chains, `colnames<-`, parts$problem$names))
    own <- function(site) qlogis(posterior::extract_variable_matrix(draws, sprintf("prob[yes,%s]", site)))
    first <- alone[, 1] * (if (parts$problem$partial$walk) exp(log_beta(at)) else 1)
    expect_distribution(own("north"), grid_quantile(at, first))
    expect_distribution(own("south"), grid_quantile(at, alone[, 2]))
  }
})

test_that("walks and correlations: sampler and releases together keep the prior (Geweke)", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(12)
  model <- model_lm(prior = prior_nig(0.3, 4, 20, 19), covariates = prior_niw(1, 8, 2, 20))
  for (pooling in list(partial_pooling(sd = prior_half_normal(0.25), correlation = prior_lkj(1.5)), partial_pooling(sd = prior_half_normal(0.25), walk = TRUE))) {
    parts <- partial_parts(totals_sites(c(a = 5, b = 8, c = 6), wider = 10), model, pooling)
    walk <- parts$problem$partial$walk > 0
    problem <- with_coordinates(parts$problem, 0, FALSE)
    state <- internal("start_pool")(problem, parts$bound, internal("seed_words")(), 1L, NULL)
    internal("run_blocks")(problem, state, 600, list(warmup = 600, thin = 1), function(...) NULL)
    # releases will be further apart than the one that the step size was learned from
    size <- 7 + problem$begin$pairs + (3 - walk) * 3 + 3 * 5
    step <- 5 * 4 * ceiling(size / 4) + 1
    state$store[step] <- state$store[step] / 6
    # so that they are short, too
    draws <- geweke_sites(problem, state, 450, thin = 5)
    bound <- parts$bound
    count <- 50000
    mean <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), count)$theta)
    own <- c("(Intercept)", "x", "sigma")
    coordinates <- internal("site_coordinates")(bound, mean[, own])
    sd <- matrix(abs(rnorm(3 * count, 0, 0.25)), ncol = 3)
    colnames(sd) <- c("sd[(Intercept)]", "sd[x]", "sd[log(sigma)]")
    natural <- function(values, site) {
      values <- internal("site_natural")(bound, values)
      colnames(values) <- sprintf("%s[%s]", own, site)
      values
    }
    if (walk) {
      second <- coordinates + sd * rnorm(3 * count)
      prior <- cbind(sd, natural(coordinates, "a"), natural(second, "b"), natural(second + sd * rnorm(3 * count), "c"))
    } else {
      # of the correlations by their partial ones, from the definition of the density: accepted among uniform matrices
      r <- matrix(runif(3 * 4 * count, -1, 1), ncol = 3)
      det <- 1 + 2 * r[, 1] * r[, 2] * r[, 3] - rowSums(r^2)
      r <- r[det > 0 & runif(nrow(r)) < sqrt(pmax(det, 0)), ][seq_len(count), ]
      colnames(r) <- c("cor[(Intercept),x]", "cor[(Intercept),log(sigma)]", "cor[x,log(sigma)]")
      prior <- cbind(mean[, own], sd, r, natural(coordinates + sd * internal("correlated")(matrix(rnorm(3 * count), ncol = 3), r), "b"))
    }
    expect_prior(draws[, colnames(prior)], prior)
  }
})

test_that("runs cut in two are the same run; predictions of the next site and of a new one", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  sites <- totals_sites(c(first = 40, second = 70, third = 50))
  covariates <- data.frame(site = names(sites), rural = factor(c("yes", "no", "yes")))
  run <- function(pool, iter) sample_posterior(sites, totals_models$conjugate, pool = pool, chains = 2, iter = iter, warmup = 30, seed = 1)
  pool <- partial_pooling(~ (Intercept) + x | rural, sites = covariates, correlation = prior_lkj())
  part <- run(pool, 40)
  expect_identical(extend(part, 10)$draws, run(pool, 50)$draws)
  expect_true(all(c("ruralyes[(Intercept)]", "ruralyes[x]", "cor[(Intercept),x]") %in% posterior::variables(part$draws)))
  newdata <- data.frame(x = 0:1)
  middle <- predict(part, newdata, site = "new", seed = 1)
  rural <- predict(part, newdata, site = "new", sites = data.frame(rural = "yes"), seed = 1)
  # a third of the effect, as two of three sites are rural
  effects <- colMeans(internal("parameter_matrix")(part)[, c("ruralyes[(Intercept)]", "ruralyes[x]")])
  expect_equal(rural[2] - rural[1] - (middle[2] - middle[1]), effects[[2]] / 3)
  walk <- run("walk", 50)
  expect_identical(posterior::variables(walk$draws)[1:4], c("sd[(Intercept)]", "sd[x]", "sd[log(sigma)]", "(Intercept)[first]"))
  expect_identical(extend(run("walk", 40), 10)$draws, walk$draws)
  expect_length(predict(walk, newdata, site = "next", seed = 1), 2)
  expect_equal(predict(walk, newdata, site = "third"), unname(drop(cbind(1, 0:1) %*% coef(walk)["third", 1:2])))
  expect_output(print(pool), "correlation lkj\\(eta = 2\\)\n  covariates ruralyes of 3 sites")
})

test_that("the likelihood of a site is about the mean of its covariates", {
  skip_if_not_installed("rstantools")
  pooling <- partial_pooling(~ . | rural, sites = rural)
  fit <- sample_posterior(three_yes(), model_bernoulli(), pool = pooling, chains = 1, iter = 100, seed = 1)
  d <- internal("parameter_matrix")(fit)[7, ]
  at <- seq(-30, 30, by = 0.005)
  weight <- dnorm(at, qlogis(d[["prob[yes]"]]) - 2 / 3 * d[["rural[logit(prob[yes])]"]], d[["sd[logit(prob[yes])]"]]) * 0.005
  north <- sum_of_totals(plogis(at), 30, function(s) -abs(7.3 - s) / 2 - abs(21.2 - (30 - s)) / 2 - 2 * log(4))
  expect_equal(rstantools::log_lik(fit)[7, "north"], c(north = log(sum(north * weight))), tolerance = 1e-4, ignore_attr = TRUE)
})

test_that("what cannot be is refused", {
  skip_on_cran() # takes long; `make test` runs it
  sites <- three_yes()
  model <- model_bernoulli()
  fit <- sample_posterior(sites, model, pool = partial_pooling(~ . | rural, sites = rural), chains = 1, iter = 100, seed = 1)
  walk <- sample_posterior(sites, model, pool = "walk", chains = 1, iter = 100, seed = 1)
  skip_if_not_installed("rstantools")
  show(c(
    refusals("method", list(quote(rstantools::log_lik(walk)))),
    refusals("pool", list(
      quote(sample_posterior(sites, model, pool = ~ . | rural)),
      quote(partial_pooling(~ . | rural)),
      quote(partial_pooling(~ . | urban, sites = rural)),
      quote(partial_pooling(~ ., sites = rural)),
      quote(partial_pooling(~ . | 1, sites = rural)),
      quote(partial_pooling(~ . | rural, sites = rbind(rural, rural))),
      quote(partial_pooling(~ . | rural, sites = data.frame(site = 1:2, rural = c(NA, 1)))),
      quote(sample_posterior(sites, model, pool = partial_pooling(~ . | rural, sites = rural[-1, ]))),
      quote(sample_posterior(sites[1:2], model, pool = partial_pooling(~ . | rural, sites = rural))),
      quote(partial_pooling(~ . | rural, walk = TRUE)),
      quote(partial_pooling(~ rate | 2, walk = TRUE)),
      quote(sample_posterior(sites[1], model, pool = "walk")),
      quote(sample_posterior(stats::setNames(sites, c("a", "b", "next")), model, pool = "walk")))),
    refusals("prior", list(
      quote(partial_pooling(effects = prior_half_normal())),
      quote(partial_pooling(effects = prior_normal(1, 2))),
      quote(partial_pooling(correlation = 2)),
      quote(prior_lkj(0)),
      quote(sample_posterior(sites, model, pool = partial_pooling(correlation = prior_lkj()))))),
    refusals("argument", list(
      quote(site_draws(fit, "new", sites = data.frame(rural = 1:2))),
      quote(site_draws(fit, "new", sites = data.frame(urban = 1))),
      quote(site_draws(fit, "north", sites = data.frame(rural = 1))),
      quote(site_draws(walk, "next", sites = data.frame(rural = 1))),
      quote(site_draws(walk, "new"))))))
})

test_that("the default prior of standard deviations is the same by every method, also beside a prior of one's own", {
  skip_on_cran()
  skip_if_not_installed("rstantools")
  scales <- function(sites, model, method, pool = "partial") {
    fit <- suppressWarnings(sample_posterior(sites, model, pool = pool, method = method, chains = 1, iter = 4, seed = 1))
    table <- rstantools::prior_summary(fit, seed = 1)
    said <- table[startsWith(table$variable, "sd["), ]
    value <- unname(vapply(fit$problem$partial$sd, function(one) one$fields[[1L]], 0))
    expect_equal(said$median, value * qnorm(0.75), tolerance = 0.05)
    expect_identical(said$variable, sprintf("sd[%s]", sub("^(sigma|sd)$", "log(\\1)", table$variable[seq_along(value)])))
    stats::setNames(value, said$variable)
  }
  same <- function(sites, model, methods, expected, ...) {
    for (method in methods) expect_equal(unname(scales(sites, model, method, ...)), expected, tolerance = 1e-12, label = method)
  }
  asked <- stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-2, 2)), rescale = FALSE)
  of <- function(shift) as_release(c(3, 2, 30, 14, 20) + shift, asked, mech_laplace(scale = 2), n = 20)
  sites <- list(a = of(0), b = of(0.5), c = of(-0.7))
  # sigma 1, a covariate of standard deviation 1
  for (model in list(model_lm(), model_lm(prior = prior_normal(0, 0.1), sigma = prior_half_normal(3)), model_lm(prior = prior_nig(0, 400, 3, 1)))) {
    same(sites, model, c("collapse", "clt", "augment"), c(1, 1, 0.5))
    same(sites, model, c("collapse", "augment"), c(0.5, 0.5, 0.25), pool = "walk")
  }
  moments <- lapply(c(a = 1, b = 2, c = 3), function(k) as_release(c(3 + k, 30), stat_sums(~ x + I(x^2), list(x = c(-4, 4)), rescale = FALSE), mech_laplace(scale = 2), n = 20))
  narrow <- model_normal(prior = list(mean = prior_normal(0, 0.1), sd = prior_inverse_gamma(3, 2)))
  for (model in list(model_normal(), narrow)) same(moments, model, c("collapse", "augment"), c(1, 0.5))
  answers <- logistic_sites()
  tight <- model_logistic(prior = prior_normal(0, 0.2))
  expect_identical(scales(answers, tight, "clt"), scales(answers, model_logistic(), "clt"))
  for (model in list(tight, model_logistic())) expect_identical(scales(answers, model, "augment"), scales(answers, model, "clt"))
})

test_that("totals and imputed records agree with the default prior of standard deviations beside a narrow prior of the means", {
  skip_on_cran()
  asked <- stat_crossprod(y ~ x, list(y = c(-16, 16), x = c(-16, 16)), rescale = FALSE)
  sites <- Map(function(z, n) as_release(z, asked, mech_laplace(scale = 3), n = n), list(a = c(3, 2, 9, 4, 5), b = c(-1, 3, 7, 2, 6), c = c(4, 1, 8, 1, 9)), 4:6)
  model <- model_lm(prior = prior_normal(0, 0.3), sigma = prior_inverse_gamma(10, 8), covariates = prior_niw(0, 2, 8, 10))
  fit <- function(method, iter) sample_posterior(sites, model, pool = "partial", method = method, iter = iter, seed = 1)
  totals <- fit("collapse", 1400)
  records <- fit("augment", 1300)
  for (name in c("sd[(Intercept)]", "sd[x]", "sd[log(sigma)]", "x", "x[b]")) {
    f <- if (startsWith(name, "sd")) log else identity
    expect_agreement(f(parameter_draws(totals, name)), f(parameter_draws(records, name)), label = name)
  }
})

test_that("prior_summary() has effects of covariates of sites and correlations", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("rstantools")
  sites <- totals_sites()
  covariates <- data.frame(site = names(sites), rural = c(1, 0, 1))
  pooling <- partial_pooling(~ (Intercept) + x | rural, sites = covariates, sd = prior_exponential(2), effects = prior_normal(sd = 0.7), correlation = prior_lkj(2))
  fit <- suppressWarnings(sample_posterior(sites, model_lm(), pool = pooling, chains = 1, iter = 4, seed = 1))
  table <- rstantools::prior_summary(fit)
  rownames(table) <- table$variable
  expect_identical(table["sd[x]", "prior"], "exponential(2)")
  expect_equal(table["sd[x]", "q95"], qexp(0.95, 2), tolerance = 0.05)
  expect_identical(table["rural[x]", "prior"], "normal(0, 0.7)")
  expect_equal(table["rural[x]", "mad"], 0.7, tolerance = 0.05)
  # of two the density of the correlation is in proportion to 1 - r^2
  expect_identical(table["cor[(Intercept),x]", "prior"], "lkj(2)")
  expect_equal(table["cor[(Intercept),x]", "q95"], 2 * qbeta(0.95, 2, 2) - 1, tolerance = 0.05)
  expect_output(print(table), "lkj")
})
