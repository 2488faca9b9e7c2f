# Partial pooling and walks of counts whose tables are moved: R/engine_pool_tables.R, src/pool/gibbs_chain.c, src/table/table_chain.c.

tabled <- function(..., chains = 2, iter = 700) suppressWarnings(suppressMessages(sample_posterior(..., method = "collapse", chains = chains, iter = iter, seed = 1)))

# draws of the sticks of a class of two levels and of a feature of three in each, of their means and their spread over sites
naive_sticks <- function(draws, sd) {
  mean <- cbind(qlogis(rbeta(draws, 2, 1.5)), qlogis(rbeta(draws, 1, 2.5)), qlogis(rbeta(draws, 1.5, 1)), qlogis(rbeta(draws, 1, 2.5)), qlogis(rbeta(draws, 1.5, 1)))
  list(mean = mean, sd = abs(matrix(rnorm(5 * draws, 0, sd), draws)))
}

# probabilities of the six combinations, the feature the fastest
naive_cells <- function(t) {
  of_class <- cbind(plogis(t[, 1]), plogis(-t[, 1]))
  feature <- function(a, b) cbind(plogis(a), plogis(-a) * plogis(b), plogis(-a) * plogis(-b))
  cbind(of_class[, 1] * feature(t[, 2], t[, 3]), of_class[, 2] * feature(t[, 4], t[, 5]))
}

counts_of <- function(p, n) {
  draws <- nrow(p)
  upto <- p[, -ncol(p), drop = FALSE]
  for (k in seq_len(ncol(upto))[-1]) upto[, k] <- upto[, k] + upto[, k - 1]
  n <- rep_len(n, draws)
  out <- matrix(0, draws, ncol(p))
  for (i in seq_len(max(n))) {
    at <- cbind(which(n >= i), 1 + rowSums(runif(sum(n >= i)) > upto[n >= i, , drop = FALSE]))
    out[at] <- out[at] + 1
  }
  out
}

naive_levels <- list(g = c("u", "v"), f = c("a", "b", "c"))

test_that("a class and a feature, exact numbers, and a number of records that is not known: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(1)
  draws <- 8e4
  cells <- stat_counts(~ g:f, levels = naive_levels)
  z <- list(c(1.2, 0.3, 0.8, -0.4, 1.3, 0.4), c(0.4, 1.7, 0.1, 0.9, -0.8, 0.3))
  north <- as_release(list(law = 2, counts = z[[1]]), list(law = stat_subset(stat_counts(~ g, levels = naive_levels["g"]), "g=u"), counts = cells),
                      list(law = mech_exact(), counts = mech_laplace(scale = 1)), n = 3)
  south <- as_release(z[[2]], cells, mech_gaussian(sd = 1.2), n = NULL)
  model <- model_naive_bayes(class = "g", prior = prior_dirichlet(c(2, 1.5)), conditional = prior_dirichlet(c(1, 1.5, 1)))
  n <- rpois(draws, 3)
  for (kind in c("complete", "partial", "walk")) {
    t <- naive_sticks(draws, 0.7)
    own <- list(t$mean + (if (kind == "partial") t$sd else 0) * rnorm(5 * draws))
    own[[2]] <- (if (kind == "walk") own[[1]] else t$mean) + (if (kind == "complete") 0 else t$sd) * rnorm(5 * draws)
    p <- lapply(own, naive_cells)
    count <- list(counts_of(p[[1]], 3), counts_of(p[[2]], n))
    log_weight <- log_noise("absolute", 1, z[[1]], count[[1]]) + log_noise("squared", 1.2, z[[2]], count[[2]])
    log_weight[rowSums(count[[1]][, 1:3]) != 2] <- -Inf
    pool <- switch(kind, complete = kind, partial = partial_pooling(sd = prior_half_normal(0.7)), walk = partial_pooling(sd = prior_half_normal(0.7), walk = TRUE))
    fit <- tabled(list(north = north, south = south), model, pool = pool, prior_n = prior_n("poisson", mean = 3), iter = 1200)
    expect_identical(fit$problem$family, "tables")
    expect_true(fit$exact)
    for (j in 1:2) {
      name <- function(what) parameter_draws(fit, if (kind == "complete") what else sub("]", paste0(",", names(fit$release)[j], "]"), what, fixed = TRUE))
      expect_weighted_mean(name("prob[g=u]"), plogis(own[[j]][, 1]), log_weight)
      expect_weighted_mean(name("prob[f=a|g=u]"), plogis(own[[j]][, 2]), log_weight)
      expect_weighted_mean(name("prob[f=a|g=v]"), plogis(own[[j]][, 4]), log_weight)
    }
    if (kind == "partial") expect_weighted_mean(parameter_draws(fit, "prob[f=a|g=v]"), plogis(t$mean[, 4]), log_weight)
    for (k in if (kind != "complete") c(1, 3, 4)) expect_weighted_mean(parameter_draws(fit, sprintf("sd[logit(theta%d)]", k)), t$sd[, k], log_weight)
    expect_weighted_mean(parameter_draws(fit, "n[south]"), n, log_weight)
    expect_weighted_mean(parameter_draws(fit, "n[south]")^2, n^2, log_weight)
    totals <- denoise(fit, site = "north")
    expect_true(all(totals[, , "law: g=u[north]"] == 2))
    expect_weighted_mean(c(totals[, , "counts: g=v:f=b[north]"]), count[[1]][, 5], log_weight)
    expect_weighted_mean(c(denoise(fit, site = "south")[, , "g=u:f=b[south]"]), count[[2]][, 2], log_weight)
  }
})

test_that("numbers that noise leaves wide open, of many records: as imputed records say", {
  skip_on_cran()
  set.seed(2)
  sites <- lapply(c(a = 0.2, b = 0.4, c = 0.5), function(p) {
    simulate_release(data.frame(f = sample(c("a", "b", "c"), 400, TRUE, c(p, 0.3, 0.7 - p))), stat_counts(~ f, levels = naive_levels["f"]), mech_laplace(scale = 60))
  })
  fit <- tabled(sites, model_categorical(), pool = "partial", iter = 1400)
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.02)
  exact <- suppressWarnings(sample_posterior(sites, model_categorical(), pool = "partial", method = "augment", iter = 1000, seed = 1))
  for (name in c("prob[b]", "sd[logit(prob[a])]", "prob[a,c]", "prob[c,a]")) {
    expect_agreement(parameter_draws(fit, name), parameter_draws(exact, name), label = name)
  }
})

test_that("what tables are asked for, tell and continue", {
  skip_on_cran()
  set.seed(3)
  asked <- stat_counts(~ f, levels = naive_levels["f"])
  site <- function(n) simulate_release(data.frame(f = sample(c("a", "b", "c"), n, TRUE)), asked, mech_laplace(scale = 3))
  few <- list(north = site(30), south = site(40))
  many <- list(north = site(3000), south = site(4000))
  family <- function(...) suppressWarnings(sample_posterior(..., chains = 1, iter = 100, seed = 1))$problem$family
  expect_identical(family(few, model_categorical(), pool = "partial"), "records")
  expect_identical(family(many, model_categorical(), pool = "partial"), "tables")
  expect_identical(family(many, model_categorical(), pool = "complete"), "tables")
  expect_identical(family(few, model_table(~ f), pool = "walk", method = "collapse"), "tables")
  few$south$n <- NULL
  run <- function(iter, pool) suppressWarnings(sample_posterior(few, model_categorical(), pool = pool, iter = iter, warmup = 100, chains = 2, seed = 4))
  for (pool in c("complete", "partial", "walk")) {
    whole <- run(180, pool)
    expect_identical(suppressWarnings(extend(run(150, pool), 30))$draws, whole$draws)
    expect_output(print(whole), "exact: the tables of all sites are moved")
    expect_output(print(acceptance(whole)), "births and deaths")
  }
  expect_identical(rownames(coef(whole)), names(few))
  expect_identical(posterior::variables(site_draws(whole, "next", seed = 1)), sprintf("prob[%s]", c("a", "b", "c")))
  crossed <- stat_counts(~ f + g + f:g, levels = naive_levels)
  pairs <- lapply(c(a = 20, b = 30), function(n) {
    simulate_release(data.frame(f = sample(c("a", "b", "c"), n, TRUE), g = sample(c("u", "v"), n, TRUE)), crossed, mech_laplace(scale = 2))
  })
  expect_error(sample_posterior(pairs, model_table(~ f + g), pool = "partial", method = "collapse"), "cross the cliques", class = "noiseaware_error_method")
})

# ---- responses of several levels, factors alone: the table of all combinations -----------------

answers <- list(y = c("no", "yes"), x = c("u", "v"))

test_that("a binary response and a factor, exact numbers, and a number of records that is not known: draws from the prior, weighted by the noise", {
  skip_on_cran()
  set.seed(4)
  draws <- 6e4
  cells <- stat_counts(~ y:x, levels = answers)
  z <- list(c(1.4, 0.3, 1.8, 0.4), c(0.4, 1.7, 0.1, 1.9))
  north <- as_release(list(law = 2, counts = z[[1]]), list(law = stat_subset(stat_counts(~ x, levels = answers["x"]), "x=u"), counts = cells),
                      list(law = mech_exact(), counts = mech_laplace(scale = 1)), n = 4)
  south <- as_release(z[[2]], cells, mech_gaussian(sd = 1.2), n = NULL)
  # components in the order of y, x the faster
  expect_identical(names(south$value), c("y=no:x=u", "y=no:x=v", "y=yes:x=u", "y=yes:x=v"))
  model <- model_logistic(y ~ x, prior = prior_normal(c(0.5, -0.3), c(1, 0.8)), levels = prior_dirichlet(c(2, 1.5)))
  n <- rpois(draws, 4)
  for (kind in c("complete", "partial")) {
    mean <- cbind(rnorm(draws, 0.5, 1), rnorm(draws, -0.3, 0.8))
    sd <- abs(matrix(rnorm(2 * draws, 0, 0.7), draws))
    own <- lapply(1:2, function(j) mean + (if (kind == "partial") sd else 0) * rnorm(2 * draws))
    share <- list(rbeta(draws, 2, 1.5))
    share[[2]] <- if (kind == "complete") share[[1]] else rbeta(draws, 2, 1.5)
    count <- lapply(1:2, function(j) {
      yes <- plogis(cbind(own[[j]][, 1], rowSums(own[[j]])))
      x <- cbind(share[[j]], 1 - share[[j]])
      counts_of(cbind(x * (1 - yes), x * yes), list(4, n)[[j]])
    })
    log_weight <- log_noise("absolute", 1, z[[1]], count[[1]]) + log_noise("squared", 1.2, z[[2]], count[[2]])
    log_weight[rowSums(count[[1]][, c(1, 3)]) != 2] <- -Inf
    pool <- switch(kind, complete = kind, partial = partial_pooling(sd = prior_half_normal(0.7)))
    fit <- tabled(list(north = north, south = south), model, pool = pool, prior_n = prior_n("poisson", mean = 4), iter = 1100)
    expect_identical(fit$problem$family, "tables")
    expect_true(fit$exact)
    for (j in 1:2) {
      name <- function(what) parameter_draws(fit, if (kind == "complete") what else sprintf("%s[%s]", what, names(fit$release)[j]))
      for (power in 1:2) {
        expect_weighted_mean(name("(Intercept)")^power, own[[j]][, 1]^power, log_weight)
        expect_weighted_mean(name("xv")^power, own[[j]][, 2]^power, log_weight)
      }
    }
    if (kind == "complete") expect_weighted_mean(parameter_draws(fit, "prob[x=u]"), share[[1]], log_weight)
    if (kind == "partial") expect_weighted_mean(parameter_draws(fit, "xv"), mean[, 2], log_weight)
    if (kind == "partial") expect_weighted_mean(parameter_draws(fit, "sd[xv]"), sd[, 2], log_weight)
    for (power in 1:2) expect_weighted_mean(parameter_draws(fit, "n[south]")^power, n^power, log_weight)
    totals <- denoise(fit, site = "north")
    expect_true(all(totals[, , "law: x=u[north]"] == 2))
    expect_weighted_mean(c(totals[, , "counts: y=yes:x=v[north]"]), count[[1]][, 4], log_weight)
    expect_weighted_mean(c(denoise(fit, site = "south")[, , "y=no:x=u[south]"]), count[[2]][, 1], log_weight)
  }
})

test_that("ordered and categorical responses, two factors: tables and imputed records agree", {
  skip_on_cran()
  set.seed(5)
  levels <- list(y = c("low", "mid", "high"), a = c("u", "v", "w"), b = c("k", "l"))
  asked <- stat_counts(~ y:a + y:b + a:b, levels = levels)
  of <- function(n, noise) {
    data <- as.data.frame(lapply(levels, function(l) factor(sample(l, n, TRUE), l)))
    simulate_release(data, asked, noise)
  }
  sites <- list(north = of(25, mech_laplace(scale = 2)), south = of(35, mech_gaussian(sd = 2)))
  models <- list(model_glm(y ~ a + b, family = "cumulative"), model_glm(y ~ a + b, family = "categorical"))
  for (model in models) {
    tables <- tabled(sites, model, pool = "partial", iter = 500)
    expect_identical(tables$problem$family, "tables")
    records <- suppressWarnings(sample_posterior(sites, model, pool = "partial", method = "augment", iter = 500, seed = 1))
    expect_identical(posterior::variables(records$draws), posterior::variables(tables$draws))
    for (name in posterior::variables(tables$draws)) expect_agreement(parameter_draws(tables, name), parameter_draws(records, name), spread = FALSE, label = name)
    # a site that released nothing, restarted chains
    expect_true(all(is.finite(posterior::as_draws_matrix(site_draws(tables, "new", seed = 1)))))
    short <- function(iter) tabled(sites, model, pool = "partial", chains = 1, iter = iter, warmup = 50)
    expect_identical(suppressWarnings(extend(short(60), 20))$draws, short(80)$draws)
  }
  expect_output(print(tables), "the tables of all sites are moved")
})

test_that("tables of a response are chosen where records would take longer", {
  skip_on_cran()
  model <- model_logistic(y ~ x)
  family <- function(counts, ..., pool = "partial") {
    sites <- lapply(c(a = 1, b = 2, c = 3), function(k) as_release(counts + k, stat_counts(~ y:x, levels = answers), mech_laplace(scale = 3), ...))
    suppressWarnings(suppressMessages(sample_posterior(sites, model, pool = pool, chains = 1, iter = 4, seed = 1)))$problem$family
  }
  expect_identical(family(c(4, 5, 6, 5), n = 20), "records")
  expect_identical(family(c(40, 50, 60, 50), n = 200), "tables")
  expect_identical(family(c(40, 50, 60, 50), n = 200, pool = "complete"), "records")
  expect_identical(family(c(400, 500, 600, 500), n = 2000, pool = "complete"), "tables")
  expect_identical(family(c(40, 50, 60, 50), n = NULL), "tables")
  expect_identical(family(c(40, 50, 60, 50), n = NULL, pool = "complete"), "records")
})
