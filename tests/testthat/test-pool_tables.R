# Partial pooling and walks of counts whose tables are moved: R/pool_tables.R, src/method_pool_records.c, src/method_collapse_table.c.

tabled <- function(..., iter = 3000) suppressWarnings(suppressMessages(sample_posterior(..., method = "collapse", iter = iter, seed = 1)))

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
  upto <- t(apply(p, 1, cumsum))[, -ncol(p), drop = FALSE]
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
  draws <- 1.5e5
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
    pool <- switch(kind, complete = kind, partial = partial_pooling(sd = prior_half_normal(0.7)), walk = walk_pooling(sd = prior_half_normal(0.7)))
    fit <- tabled(list(north = north, south = south), model, pool = pool, records = prior_poisson(3), iter = 4000)
    expect_identical(fit$problem$family, "tables")
    expect_true(fit$exact)
    for (j in 1:2) {
      name <- function(what) parameter_draws(fit, if (kind == "complete") what else sprintf("%s[%s]", what, names(fit$release)[j]))
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
  fit <- tabled(sites, model_categorical(), pool = "partial")
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.02)
  exact <- suppressWarnings(sample_posterior(sites, model_categorical(), pool = "partial", method = "augment", iter = 3000, seed = 1))
  for (name in c("prob[b]", "sd[logit(prob[a])]", "prob[a][c]", "prob[c][a]")) {
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
