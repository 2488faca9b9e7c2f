# What pooling by imputed records costs beside a single release of as many records, which R/engine_cost.R predicts: the constants of
# pool_augment_cost(), by a regression of the log ratio, and how far off predictions are with them.
#
#   Rscript bench/pool_cost.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

pool_cost_sites <- function(sizes, asked, record) {
  set.seed(1)
  lapply(stats::setNames(sizes, paste0("site", seq_along(sizes))), function(n) simulate_release(record(n, stats::rnorm(1)), asked, mech_laplace(epsilon = 1)))
}

# site effects z of standard deviation 0.2
pool_cost_cases <- function() {
  ten <- round(seq(100, 1000, length.out = 10))
  few <- c(100, 200, 300)
  numbers <- function(p) {
    variables <- c("y", paste0("x", seq_len(p)))
    asked <- stat_crossprod(stats::reformulate(variables[-1L], "y"), stats::setNames(rep(list(c(-6, 6)), p + 1L), variables))
    list(asked, function(n, z) {
      x <- matrix(stats::rnorm(n * p), n)
      stats::setNames(data.frame(0.5 + 0.2 * z + rowSums(0.3 * x) + stats::rnorm(n), x), variables)
    }, model_lm())
  }
  response <- function(draw, upper, model) {
    list(stat_crossprod(y ~ x, list(y = c(0, upper), x = c(-4, 4))), function(n, z) {
      x <- stats::rnorm(n)
      data.frame(y = draw(n, 0.2 * z + 0.4 * x), x)
    }, model)
  }
  logistic <- response(function(n, eta) stats::rbinom(n, 1, stats::plogis(eta)), 1, model_logistic(y ~ x))
  poisson <- response(function(n, eta) pmin(stats::rpois(n, exp(0.5 + eta)), 20), 20, model_glm(y ~ x, family = "poisson"))
  factors <- list(stat_crossprod(y ~ x + f, list(y = c(-6, 6), x = c(-4, 4), f = c("u", "v"))), function(n, z) {
    x <- stats::rnorm(n)
    f <- sample(c("u", "v"), n, TRUE)
    data.frame(y = 0.5 + 0.2 * z + 0.4 * x + 0.5 * (f == "v") + stats::rnorm(n), x, f)
  }, model_lm())
  three <- list(stat_counts(~ k, levels = list(k = c("u", "v", "w"))), function(n, z) {
    data.frame(k = sample(c("u", "v", "w"), n, TRUE, c(exp(0.2 * z), 1, 1)))
  }, model_categorical())
  rates <- list(stat_sums(~ x, list(x = c(0, 20))), function(n, z) data.frame(x = pmin(stats::rpois(n, exp(0.5 + 0.2 * z)), 20)), model_poisson())
  of <- function(label, kind, sizes) list(label = label, sites = pool_cost_sites(sizes, kind[[1L]], kind[[2L]]), model = kind[[3L]])
  list(of("regression, p = 2", numbers(2), few), of("regression, p = 2", numbers(2), ten), of("regression, p = 5", numbers(5), few),
       of("regression, p = 5", numbers(5), ten), of("regression, a factor", factors, few), of("regression, a factor", factors, ten),
       of("logistic", logistic, few), of("logistic", logistic, ten), of("Poisson regression", poisson, few), of("Poisson regression", poisson, ten),
       of("three categories", three, few), of("three categories", three, ten), of("one Poisson rate", rates, few), of("one Poisson rate", rates, rep(100, 50)))
}

pool_cost_row <- function(case, pool, quick) {
  say("%s, %d sites, %s", case$label, length(case$sites), pool)
  iter <- if (quick) 100 else 1000
  bound <- noiseaware:::bind_sites(case$model, case$sites, NULL)
  features <- noiseaware:::pool_cost_features(case$sites, bound)
  time <- seconds(fit <- suppressWarnings(suppressMessages(
    sample_posterior(case$sites, case$model, pool = pool, method = "augment", chains = 2, iter = iter, seed = 1))))
  draws <- posterior::as_draws_array(fit)
  shared <- draws[, , !grepl("\\[site[0-9]+\\]$", posterior::variables(draws))]
  data.frame(model = case$label, pool = pool, engine = features$engine, size = features$size, sites = length(case$sites), n = features$n,
             thousand = 1000 * time / min_ess(shared), single = noiseaware:::predict_cost(features)$thousand,
             predicted = noiseaware:::pool_augment_cost(case$sites, bound, pool == "partial"))
}

bench_pool_cost <- function(quick) {
  cases <- pool_cost_cases()
  if (quick) cases <- cases[c(1, 7, 11, 13)]
  rows <- do.call(rbind, lapply(c("complete", "partial"), function(pool) do.call(rbind, lapply(cases, pool_cost_row, pool, quick))))
  if (!quick) {
    for (pool in c("complete", "partial")) {
      of <- rows[rows$pool == pool, ]
      fitted <- stats::lm(log(thousand / single) ~ log(sites) + log(n / sites) + log(size) + (engine != "sweeps"), of)
      say("%s: %s", pool, paste(names(stats::coef(fitted)), signif(stats::coef(fitted), 2), collapse = ", "))
    }
  }
  off <- exp(abs(log(rows$thousand / rows$predicted)))
  figures <- list(figure("median factor between seconds and their prediction", "pools by imputed records", stats::median(off), 3, at_most = TRUE))
  bench_result(figures, list("Seconds for 1,000 effective draws, two chains of 1,000 iterations" = rows),
               "`single`: what R/engine_cost.R predicts for one release of as many records; `predicted`: pool_augment_cost().")
}

run_alone(bench_pool_cost)
