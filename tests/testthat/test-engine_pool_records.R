# Partial pooling and walks by imputing the records of all sites: R/engine_pool_records.R, src/pool/gibbs_chain.c.

imputed <- function(..., iter = 900) sample_posterior(..., method = "augment", iter = iter, seed = 1)

new_pool <- function(kind, sd) switch(kind, partial = partial_pooling(sd = sd), walk = partial_pooling(sd = sd, walk = TRUE))

test_that("rates of three sites agree with those whose totals are summed out: partial, walks, covariates, correlations of none", {
  skip_on_cran()
  sites <- c(two_yes(), list(west = as_release(c("smoke=yes" = 9.3), smoking(), mech_laplace(scale = 1), n = 30)))
  rural <- data.frame(site = names(sites), rural = c(1, 0, 0))
  for (pool in list("partial", "walk", partial_pooling(~ . | rural, sites = rural, sd = prior_half_t(4, 0.7)))) {
    by_totals <- sample_posterior(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = pool, method = "collapse", iter = 900, seed = 2)
    by_records <- imputed(sites, model_bernoulli(prior = prior_beta(2, 3)), pool = pool, iter = 1100)
    expect_true(by_records$exact)
    expect_identical(posterior::variables(by_records$draws), posterior::variables(by_totals$draws))
    for (name in posterior::variables(by_totals$draws)) expect_agreement(parameter_draws(by_records, name), parameter_draws(by_totals, name), label = name)
    new <- if (identical(pool, "walk")) "next" else "new"
    expect_lt(abs(mean(site_draws(by_records, new, seed = 1)) - mean(site_draws(by_totals, new, seed = 1))), 0.03)
  }
})

test_that("a spread that is known to be none is complete pooling", {
  skip_on_cran()
  none <- imputed(two_yes(), model_bernoulli(), pool = partial_pooling(sd = prior_exponential(1e4)), iter = 2400)
  complete <- sample_posterior(two_yes(), model_bernoulli(), pool = "complete", iter = 2400, seed = 2)
  expect_agreement(parameter_draws(none, "prob[yes]"), parameter_draws(complete, "prob[yes]"))
  expect_agreement(parameter_draws(none, "prob[yes,south]"), parameter_draws(complete, "prob[yes]"))
})

test_that("categories of one and of two records: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(1)
  draws <- 1e5
  levels <- list(k = c("a", "b", "c"))
  z <- list(c(0.9, -0.4, 0.6), c(0.4, 1.7, 0.1))
  sites <- list(north = as_release(z[[1]], stat_counts(~ k, levels = levels), mech_laplace(scale = 0.6), n = 1),
                south = as_release(z[[2]], stat_counts(~ k, levels = levels), mech_gaussian(sd = 0.8), n = 2))
  model <- model_categorical(prior = prior_dirichlet(c(2, 1, 1.5)))
  # sticks of a Dirichlet distribution are independent
  mean <- cbind(qlogis(rbeta(draws, 2, 2.5)), qlogis(rbeta(draws, 1, 1.5)))
  sd <- abs(matrix(rnorm(2 * draws), draws))
  probabilities <- function() {
    t <- mean + sd * rnorm(2 * draws)
    first <- plogis(t[, 1])
    cbind(first, (1 - first) * plogis(t[, 2]), (1 - first) * plogis(-t[, 2]))
  }
  count <- function(p, n) {
    total <- matrix(0, draws, 3)
    for (i in seq_len(n)) {
      u <- runif(draws)
      total <- total + cbind(u < p[, 1], u >= p[, 1] & u < p[, 1] + p[, 2], u >= p[, 1] + p[, 2])
    }
    total
  }
  north <- probabilities()
  south <- probabilities()
  log_weight <- log_noise("absolute", 0.6, z[[1]], count(north, 1)) + log_noise("squared", 0.8, z[[2]], count(south, 2))
  fit <- imputed(sites, model, pool = "partial", iter = 3600)
  expect_weighted_mean(parameter_draws(fit, "prob[a]"), plogis(mean[, 1]), log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd[logit(prob[b])]"), sd[, 2], log_weight)
  for (k in 1:3) expect_weighted_mean(parameter_draws(fit, sprintf("prob[%s,north]", levels$k[k])), north[, k], log_weight)
  for (k in 1:3) expect_weighted_mean(parameter_draws(fit, sprintf("prob[%s,south]", levels$k[k])), south[, k], log_weight)
})

test_that("logistic regression whose slope is the same in both sites: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(2)
  draws <- 2e5
  clamp <- function(x, by) pmin(pmax(x, -by), by)
  intercept <- rnorm(draws)
  slope <- rnorm(draws)
  sd <- abs(rnorm(draws, 0, 0.8))
  own <- list(intercept + sd * rnorm(draws), intercept + sd * rnorm(draws))
  site <- function(at, n, by) Reduce(`+`, lapply(seq_len(n), function(i) {
    x <- rnorm(draws, 0.3, sqrt(0.8))
    y <- rbinom(draws, 1, plogis(at + slope * x))
    cbind(y, clamp(x, by), y * clamp(x, by))
  }))
  statistic <- function(by) stat_sums(~ y + x + I(y * x), bounds = list(y = c(0, 1), x = c(-by, by)), rescale = FALSE)
  z <- list(c(0.8, 1.1, 1.4), c(0.3, -0.9, -0.8))
  sites <- list(north = as_release(z[[1]], statistic(2), mech_laplace(scale = 0.7), n = 1), south = as_release(z[[2]], statistic(2), mech_laplace(scale = 1), n = 2))
  model <- model_logistic(y ~ x, prior = prior_normal(0, 1), covariates = fixed(list(mean = 0.3, cov = matrix(0.8))))
  fit <- imputed(sites, model, pool = partial_pooling(~ (Intercept), sd = prior_half_normal(0.8)), iter = 1800)
  log_weight <- log_noise("absolute", 0.7, z[[1]], site(own[[1]], 1, 2)) + log_noise("absolute", 1, z[[2]], site(own[[2]], 2, 2))
  expect_weighted_mean(parameter_draws(fit, "(Intercept)"), intercept, log_weight)
  expect_weighted_mean(parameter_draws(fit, "x"), slope, log_weight)
  expect_weighted_mean(parameter_draws(fit, "x")^2, slope^2, log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd[(Intercept)]"), sd, log_weight)
  expect_weighted_mean(parameter_draws(fit, "(Intercept)[south]"), own[[2]], log_weight)
})

test_that("a response with a shape: wide noise leaves the prior", {
  skip_on_cran()
  counted <- stat_crossprod(y ~ 1, list(y = c(0, 50)))
  site <- function(total) as_release(c(total, 3 * total), counted, mech_laplace(scale = 1e6), n = 6)
  model <- model_glm(y ~ 1, family = "negative_binomial", prior = prior_normal(0.5, 0.7), cv = prior_half_normal(0.5))
  fit <- imputed(list(north = site(12), south = site(20)), model, pool = partial_pooling(~ (Intercept), sd = prior_half_normal(0.8)), iter = 1500)
  expect_distribution(parameter_draws(fit, "(Intercept)"), function(p) qnorm(p, 0.5, 0.7))
  expect_distribution(parameter_draws(fit, "cv"), function(p) 0.5 * qnorm((1 + p) / 2))
  expect_distribution(parameter_draws(fit, "sd[(Intercept)]"), function(p) 0.8 * qnorm((1 + p) / 2))
})

test_that("a shape that all sites share does not move with a site's records: wide noise leaves the prior", {
  skip_on_cran()
  counted <- stat_crossprod(y ~ 1, list(y = c(0, 50)))
  site <- function(total) as_release(c(total, 3 * total), counted, mech_laplace(scale = 1e6), n = 6)
  for (family in list(family_object("negative_binomial"), Gamma("log"))) for (walk in c(FALSE, TRUE)) {
    model <- model_glm(y ~ 1, family = family, prior = prior_normal(0.5, 0.7), cv = prior_half_normal(0.5))
    # a window of warmup is long enough to choose moves
    fit <- imputed(list(north = site(12), south = site(20)), model, pool = partial_pooling(~ (Intercept), walk = walk), iter = 800)
    expect_distribution(parameter_draws(fit, "cv"), function(p) 0.5 * qnorm((1 + p) / 2))
  }
})

test_that("releases drawn anew leave the prior: regressions of three sites, correlated, and in a walk (Geweke 2004)", {
  skip_on_cran()
  set.seed(4)
  statistic <- function(by) stat_crossprod(y ~ x, list(y = c(-by, by), x = c(-by, by)), rescale = FALSE)
  model <- model_lm(prior = prior_normal(0.3, 1), sigma = prior_inverse_gamma(4, 5), covariates = prior_niw(0.2, 2, 2, 6))
  sites <- Map(function(n, by, mechanism) simulate_release(model, statistic(by), mechanism, n = n), c(a = 3, b = 4, c = 5), c(1, 2, 3),
               list(mech_laplace(scale = 1), mech_gaussian(sd = 1.5), mech_laplace(scale = 2)))
  bound <- internal("bind_sites")(model, sites, NULL)
  prior <- prior_draws(model, statistic(3))
  for (pool in list(partial_pooling(sd = prior_half_normal(0.5), correlation = prior_lkj(2)), partial_pooling(~ x, sd = prior_half_normal(0.5), walk = TRUE),
                    partial_pooling(~ x, sd = prior_half_normal(0.5), walk = 2))) {
    words <- internal("seed_words")()
    problem <- internal("pool_augment_problem")(sites, bound, words, 1L, list(), NULL)
    problem <- internal("pooled_records_problem")(problem, pool, bound, sites, NULL)
    draws <- geweke_records(problem, internal("start_pool")(problem, bound, words, 1L, NULL), 4000)
    walk <- pool$kind == "walk"
    colnames(draws)[colnames(draws) == if (walk) "x[a]" else "x"] <- "x"
    expect_prior(draws[, c("(Intercept)", "x", "sigma")[if (walk) 2 else 1:3], drop = FALSE], prior)
    spread <- abs(rnorm(3e4, 0, 0.5))
    expect_prior(draws[, "sd[x]", drop = FALSE], cbind("sd[x]" = spread))
    # in a walk of second order the third is about twice the second less the first
    steps <- switch(pool$order + 1L, 0, rnorm(3e4, 0, spread), 2 * rnorm(3e4, 0, problem$partial$first_step)) + rnorm(3e4, 0, spread)
    expect_prior(draws[, "x[c]", drop = FALSE], cbind("x[c]" = rnorm(3e4, 0.3, 1) + steps))
    if (!walk) expect_prior(draws[, "cor[(Intercept),x]", drop = FALSE], cbind("cor[(Intercept),x]" = 2 * rbeta(3e4, 2.5, 2.5) - 1))
  }
})

test_that("a chain cut in two is the same chain; what ran is told; sites and predictions", {
  skip_on_cran()
  set.seed(5)
  asked <- stat_crossprod(y ~ x + f, list(y = c(-3, 3), x = c(-2, 2), f = c("u", "v")))
  sites <- lapply(c(north = 30, south = 40), function(n) {
    x <- rnorm(n)
    f <- sample(c("u", "v"), n, TRUE)
    simulate_release(data.frame(y = 0.5 + x + (f == "v") + rnorm(n), x, f), asked, mech_laplace(epsilon = 8))
  })
  whole <- imputed(sites, model_lm(), pool = "partial", chains = 2, iter = 250, warmup = 120)
  part <- imputed(sites, model_lm(), pool = "partial", chains = 2, iter = 200, warmup = 120)
  expect_identical(extend(part, 50)$draws, whole$draws)
  expect_output(print(whole), "normal about a mean .exact: the records of all sites are imputed")
  expect_output(print(acceptance(whole)), "shared and site parameters given the records")
  # means over sites
  expect_identical(internal("format_range")(c(0.0302424242, 0.0287878788)), "0.0288 to 0.0302")
  expect_identical(rownames(coef(whole)), c("north", "south"))
  expect_equal(posterior::ndraws(site_draws(whole, "new", seed = 1)), posterior::ndraws(whole$draws))
  expect_length(predict(whole, data.frame(x = c(-1, 1), f = c("u", "v")), site = "new", seed = 1), 2L)
  expect_identical(posterior::variables(denoise(whole, site = "south"))[1L], "y[south]")
  expect_equal(nrow(shrinkage_data(whole, "x", alone = imputed(sites, model_lm(), pool = "none", chains = 1, iter = 100))), 2L)
})

test_that("what cannot be pooled by records is refused", {
  set.seed(6)
  asked <- stat_counts(~ k, levels = list(k = c("a", "b", "c")))
  sites <- list(north = as_release(c(1.5, 2, 3), asked, mech_laplace(scale = 1), n = 6), south = as_release(c(2.5, 2, 1), asked, mech_laplace(scale = 1), n = 5))
  expect_error(imputed(sites, model_categorical(), pool = ~ `prob[a]`), "All parameters must vary", class = "noiseaware_error_pool")
  expect_error(imputed(sites, model_categorical(), pool = partial_pooling(covariates = "shared")), "must be .separate", class = "noiseaware_error_method")
})

test_that("means and variances of sites that bounds cut off: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(7)
  draws <- 1e5
  asked <- function(by) stat_sums(~ x + I(x^2), bounds = list(x = c(0, by)), rescale = FALSE)
  z <- list(c(x = 1.9, "x^2" = 3.8), c(x = 3.4, "x^2" = 6.1))
  sites <- list(north = as_release(z[[1]], asked(3), mech_laplace(scale = 1), n = 1), south = as_release(z[[2]], asked(2), mech_gaussian(sd = 1.5), n = 2))
  prior <- list(nig = prior_nig(1, 0.7, 3, 2, within = c(0.5, 2)), niw = prior_niw(1, 0.7, 4, 6, within = c(0.5, 2)))
  inside <- function(at) at[, 1] > 0.5 & at[, 1] < 2 & at[, 2] < log(0.75)
  log_sd <- -log(rgamma(1e6, 3, 2)) / 2
  mean <- cbind(rnorm(1e6, 1, exp(log_sd) / sqrt(0.7)), log_sd)
  mean <- mean[inside(mean), ]
  mean <- mean[rep(seq_len(nrow(mean)), length.out = draws), ]
  site <- function(at, n, by) Reduce(`+`, lapply(seq_len(n), function(i) {
    x <- pmin(pmax(rnorm(draws, at[, 1], exp(at[, 2])), 0), by)
    cbind(x, x^2)
  }))
  for (kind in c("partial", "walk")) {
    sd <- abs(cbind(rnorm(draws, 0, 0.4), rnorm(draws, 0, 0.3)))
    north <- mean + if (kind == "walk") 0 else sd * rnorm(2 * draws)
    south <- (if (kind == "walk") north else mean) + sd * rnorm(2 * draws)
    log_weight <- log_noise("absolute", 1, z[[1]], site(north, 1, 3)) + log_noise("squared", 1.5, z[[2]], site(south, 2, 2))
    log_weight[!(inside(north) & inside(south))] <- -Inf
    for (model in list(model_normal(prior = prior$nig), if (kind == "partial") model_mvnormal(prior = prior$niw))) {
      if (is.null(model)) next
      own <- model$name == "normal"
      names <- if (own) c("mean", "log(sd)") else c("mean[x]", "log_chol(cov[x,x])")
      scales <- stats::setNames(list(prior_half_normal(0.4), prior_half_normal(0.3)), if (own) c("mean", "sd") else c("mean[x]", "cov[x,x]"))
      fit <- imputed(sites, model, pool = new_pool(kind, scales), iter = 800)
      expect_true(fit$exact)
      # trajectories that end at the bounds did not diverge
      expect_lt(sum(vapply(fit$chains, function(c) c$diagnostics[["together_divergent"]], 0)), 40)
      log_of <- function(site) if (own) log(parameter_draws(fit, sprintf("sd[%s]", site))) else log(parameter_draws(fit, sprintf("cov[x,x,%s]", site))) / 2
      if (kind == "partial") expect_weighted_mean(parameter_draws(fit, sub("log.sd.", "sd", names[1])), mean[, 1], log_weight)
      for (k in 1:2) expect_weighted_mean(parameter_draws(fit, sprintf("sd[%s]", names[k])), sd[, k], log_weight)
      expect_weighted_mean(parameter_draws(fit, if (own) "mean[south]" else "mean[x,south]"), south[, 1], log_weight)
      expect_weighted_mean(log_of("south"), south[, 2], log_weight)
      expect_weighted_mean(log_of("north"), north[, 2], log_weight)
      new <- posterior::as_draws_matrix(site_draws(fit, if (kind == "walk") "next" else "new", seed = 1))
      expect_true(all(new[, 1] > 0.5 & new[, 1] < 2 & new[, 2] < (if (own) 0.75 else 0.75^2)))
    }
  }
})

test_that("bounds of the covariates' prior leave the coefficients free", {
  skip_on_cran()
  set.seed(8)
  draws <- 6e4
  asked <- function(by) stat_crossprod(y ~ x, list(y = c(-by, by), x = c(-by, by)), rescale = FALSE)
  z <- list(c(y = 0.9, x = 0.4, "y^2" = 1.4, "y:x" = 0.2, "x^2" = 0.3), c(y = 1.1, x = -0.2, "y^2" = 1.9, "y:x" = -0.4, "x^2" = 0.5))
  sites <- list(north = as_release(z[[1]], asked(2), mech_laplace(scale = 1.5), n = 1), south = as_release(z[[2]], asked(3), mech_laplace(scale = 2), n = 2))
  model <- model_lm(prior = prior_normal(0, 1), sigma = fixed(0.6), covariates = prior_niw(0, 1, 2, 5, within = c(-0.5, 0.5)))
  intercept <- rnorm(draws)
  slope <- rnorm(draws)
  sd <- abs(rnorm(draws, 0, 0.7))
  covariates <- function() {
    variance <- 2 / rchisq(15 * draws, 5)
    at <- cbind(rnorm(15 * draws, 0, sqrt(variance)), variance)
    at[abs(at[, 1]) < 0.5 & variance < 0.25, ][seq_len(draws), ]
  }
  own <- lapply(1:2, function(j) slope + sd * rnorm(draws))
  site <- function(j, n, by) {
    of_x <- covariates()
    totals <- Reduce(`+`, lapply(seq_len(n), function(i) {
      x <- rnorm(draws, of_x[, 1], sqrt(of_x[, 2]))
      y <- pmin(pmax(rnorm(draws, intercept + own[[j]] * x, 0.6), -by), by)
      x <- pmin(pmax(x, -by), by)
      cbind(y, x, y^2, y * x, x^2)
    }))
    list(mean = of_x[, 1], totals = totals)
  }
  drawn <- list(site(1, 1, 2), site(2, 2, 3))
  log_weight <- log_noise("absolute", 1.5, z[[1]], drawn[[1]]$totals) + log_noise("absolute", 2, z[[2]], drawn[[2]]$totals)
  fit <- imputed(sites, model, pool = partial_pooling(~ x, sd = prior_half_normal(0.7)), iter = 1200)
  expect_weighted_mean(parameter_draws(fit, "(Intercept)"), intercept, log_weight)
  expect_weighted_mean(parameter_draws(fit, "sd[x]"), sd, log_weight)
  for (j in 1:2) {
    expect_weighted_mean(parameter_draws(fit, sprintf("x[%s]", names(sites)[j])), own[[j]], log_weight)
    expect_weighted_mean(c(denoise(fit, site = names(sites)[j])[, , 2]), drawn[[j]]$totals[, 2], log_weight)
  }
})

# A state of regressions, and what the records of its sites tell; `moved`: with a part of it elsewhere
told_parts <- function(sizes) {
  set.seed(21)
  sites <- totals_sites(sizes)
  bound <- internal("check_partial")(internal("bind_sites")(totals_models$kept, sites, NULL), sites, NULL, partial_pooling(), "augment", NULL)
  problem <- internal("pooled_records_problem")(internal("pool_augment_problem")(sites, bound, c(1, 2), 1L, list(), NULL), partial_pooling(), bound, sites, NULL)
  state <- internal("start_pool")(problem, bound, c(1, 2), 1L, NULL)
  internal("run_blocks")(problem, state, 60, list(warmup = 100, thin = 1), function(...) NULL)
  list(state = state, places = problem$partial$at + 1L, told = function(state) .Call(internal("ffi_pool_told"), problem, state),
       moved = function(part, places, by) {
         other <- .Call(internal("ffi_duplicate"), state)
         each <- matrix(other[[part]], ncol = length(sites))
         each[places, ] <- each[places, ] + by
         other[[part]] <- as.double(each)
         other
       })
}

test_that("where transitions have their coordinates from is told by the records, not by the parameters that move", {
  parts <- told_parts(c(first = 40, second = 60, third = 4))
  expect_identical(parts$told(parts$moved("thetas", parts$places, 0.3)), parts$told(parts$state))
  # of coefficients the peak is found up to rounding
  expect_true(all((parts$told(parts$moved("anchors", 3L, 0.3)) != parts$told(parts$state))[3:6, ]))
})

test_that("transitions have their coordinates from where the records' likelihood is greatest, wherever it is looked for from", {
  # of five records, too, with three parameters
  for (sizes in list(c(first = 40, second = 60, third = 30), c(first = 40, second = 5, third = 30))) {
    parts <- told_parts(sizes)
    near <- parts$told(parts$state)
    # coefficients and the logarithm of sigma, too large and too small
    for (by in list(c(4, -3, 0), c(0, 0, 3.5), c(2, 2, -3))) {
      far <- parts$told(parts$moved("anchors", 1:3, by))
      expect_lt(max(abs(far[1:3, ] - near[1:3, ]) * sqrt(near[4:6, ])), 1)
      expect_lt(max(abs(log(far[4:6, ] / near[4:6, ]))), 0.5)
    }
  }
})

test_that("chains start with means between the bounds, sites of a long walk too: near the wrong bound they would stay", {
  asked <- stat_sums(~ y + I(y^2), list(y = c(10, 30)), outside = "none")
  sites <- lapply(stats::setNames(nm = letters), function(name) as_release(c(-30, 25), asked, mech_laplace(scale = 1), n = 50))
  bound <- internal("bind_sites")(model_normal(), sites, NULL)
  for (pool in list(partial_pooling(~ mean), partial_pooling(~ mean, walk = 1), partial_pooling(~ mean, walk = 2))) {
    problem <- internal("pool_augment_problem")(sites, bound, c(1, 2), 1L, list(), NULL)
    problem <- internal("pooled_records_problem")(problem, pool, bound, sites, NULL)
    # theta of a site is its mean and the log of the standard deviation
    starts <- vapply(1:20, function(k) internal("start_pool")(problem, bound, c(k, 4), 1L, NULL)$thetas[2 * seq_along(letters) - 1], numeric(26))
    expect_true(all(starts > 10 & starts < 30))
    if (pool$order > 0L) expect_true(all(starts[1, ] >= 16 & starts[1, ] <= 24))
    expect_gt(min(apply(starts, 1L, stats::sd)), 1)
  }
})

test_that("sites of which squares alone are known have means on both sides, as the prior weighs them", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ I(y^2), list(y = c(-1, 3)), rescale = FALSE, outside = "none")
  sites <- lapply(c(a = 30, b = 36), function(v) as_release(c("y^2" = v), st, mech_gaussian(sd = 3), n = 40))
  fit <- without_words(sample_posterior(sites, model_normal(), pool = "partial", method = "augment", chains = 2, iter = 2500, warmup = 500, seed = 1))
  mean <- posterior::extract_variable_matrix(fit$draws, "mean")
  expect_lt(posterior::rhat(mean), 1.05)
  # the release is the same for all means mirrored at 0: given their distance, the prior normal(1, 4 sd) decides the side
  sd <- 4 * posterior::extract_variable_matrix(fit$draws, "sd")
  density <- function(at) dnorm(at, 1, sd)
  below <- density(-abs(mean)) / (density(abs(mean)) + density(-abs(mean)))
  expect_near_mean((mean < 0) - below, 0, errors = 4)
  # one site may be on the other side
  one <- posterior::extract_variable_matrix(fit$draws, "mean[a]")
  expect_true(any(sign(one) != sign(mean)))
  # where all sites have one mean, no site is mirrored alone: as totals without records say
  by <- function(method) without_words(sample_posterior(sites, model_normal(), pool = partial_pooling(~ sd), method = method, chains = 2, iter = 1500, warmup = 500, seed = 1))
  common <- list(by("augment"), by("collapse"))
  for (of in list(function(fit) abs(parameter_draws(fit, "mean")), function(fit) log(parameter_draws(fit, "sd[a]")))) expect_agreement(of(common[[1]]), of(common[[2]]))
  # an odd power tells the side
  odd <- lapply(c(a = 30, b = 36), function(v) as_release(c(y = 2, "y^2" = v), stat_sums(~ y + I(y^2), list(y = c(-1, 3)), rescale = FALSE), mech_gaussian(sd = 3), n = 40))
  bound <- fit$bound
  expect_null(internal("mirror_of_sites")(fit$problem, bound, list(places = 1:2), odd))
  expect_identical(fit$problem$partial$mirror[c("records", "at")], list(records = 0, at = -1))
})

test_that("sites mirrored where bounds clamp other records: draws from the prior, weighted by the noise", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_sums(~ I(y^2), list(y = c(-1, 3)), rescale = FALSE)
  value <- c(a = 7, b = 12)
  sites <- lapply(value, function(v) as_release(c("y^2" = v), st, mech_gaussian(sd = 2), n = 2))
  # sites may have means of their own, or one mean, which is then mirrored in all of them
  for (pool in list("partial", partial_pooling(~ sd))) {
    fit <- without_words(sample_posterior(sites, model_normal(), pool = pool, method = "augment", chains = 2, iter = 4500, warmup = 500, seed = 1))
    own <- "mean[b]" %in% posterior::variables(fit$draws)
    set.seed(2)
    size <- 300000
    prior <- internal("prior_draws")(fit, size)
    log_weight <- 0
    for (site in 1:2) {
      mean <- prior[, "(Intercept)"] + if (own) prior[, "sd[mean]"] * rnorm(size) else 0
      sd <- prior[, "sigma"] * exp(prior[, "sd[log(sd)]"] * rnorm(size))
      squares <- sapply(1:2, function(i) pmin(pmax(mean + sd * rnorm(size), -1), 3)^2)
      log_weight <- log_weight + dnorm(value[[site]], rowSums(squares), 2, log = TRUE)
    }
    drawn <- function(name) posterior::extract_variable_matrix(fit$draws, name)
    of_site <- drawn(if (own) "mean[b]" else "mean")
    expect_weighted_mean((of_site < 0) + 0, mean < 0, log_weight)
    expect_weighted_mean((of_site < 2) + 0, mean < 2, log_weight)
    expect_weighted_mean((drawn("mean") < 0) + 0, prior[, "(Intercept)"] < 0, log_weight)
    expect_weighted_mean(log(drawn("sd[b]")), log(sd), log_weight)
  }
})
