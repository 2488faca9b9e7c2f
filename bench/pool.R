# Partial pooling of several sites with default arguments: least effective draws a second of the means over sites
# and of the standard deviations between them, set-up and warmup counted, and how time grows with the number of sites.
#
#   Rscript bench/pool.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# y on p covariates, coefficients that differ by sd 0.2 between sites
pool_regression <- function(p, sizes) {
  set.seed(1)
  variables <- c("y", paste0("x", seq_len(p)))
  asked <- stat_crossprod(stats::reformulate(variables[-1L], "y"), stats::setNames(rep(list(c(-6, 6)), p + 1), variables))
  lapply(stats::setNames(sizes, paste0("site", seq_along(sizes))), function(n) {
    x <- matrix(stats::rnorm(n * p), n)
    y <- stats::rnorm(1, 0.5, 0.2) + drop(x %*% stats::rnorm(p, 0.3, 0.2)) + stats::rnorm(n)
    simulate_release(stats::setNames(data.frame(y, x), variables), asked, mech_laplace(epsilon = 1))
  })
}

# one proportion, 100 records a site
pool_proportions <- function(count) {
  set.seed(2)
  asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
  share <- stats::plogis(stats::rnorm(count, -0.5, 0.5))
  lapply(stats::setNames(share, paste0("site", seq_along(share))), function(p) {
    simulate_release(data.frame(smoke = ifelse(stats::runif(100) < p, "yes", "no")), asked, mech_discrete_laplace(epsilon = 1))
  })
}

# the rate of one exponential variable, 50 to 500 records a site
pool_waits <- function(count) {
  set.seed(3)
  asked <- stat_sums(~ wait, bounds = list(wait = c(0, 100)))
  rate <- exp(stats::rnorm(count, -1, 0.4))
  lapply(stats::setNames(rate, paste0("site", seq_along(rate))), function(rate) {
    simulate_release(data.frame(wait = stats::rexp(sample(50:500, 1), rate)), asked, mech_laplace(epsilon = 1))
  })
}

# the rate of one count, 50 to 500 records a site
pool_counts <- function(count) {
  set.seed(4)
  asked <- stat_sums(~ visits, bounds = list(visits = c(0, 20)))
  rate <- exp(stats::rnorm(count, 0.5, 0.4))
  lapply(stats::setNames(rate, paste0("site", seq_along(rate))), function(rate) {
    simulate_release(data.frame(visits = pmin(stats::rpois(sample(50:500, 1), rate), 20)), asked, mech_laplace(epsilon = 1))
  })
}

pool_row <- function(label, sites, model, quick, seed = 1) {
  say("%s, %d sites, seed %d", label, length(sites), seed)
  time <- seconds(fit <- suppressWarnings(suppressMessages(
    sample_posterior(sites, model, pool = "partial", iter = if (quick) 200 else 2000, seed = seed))))
  draws <- posterior::as_draws_array(fit)
  of_layer <- draws[, , !grepl("\\[site[0-9]+\\]$", posterior::variables(draws))]
  rhat <- max(vapply(posterior::variables(of_layer), function(v) posterior::rhat(posterior::extract_variable_matrix(of_layer, v)), 0))
  told <- acceptance(fit)
  data.frame(model = label, sites = length(sites), seed = seed, seconds = time, ess = min_ess(of_layer), `ESS per second` = min_ess(of_layer) / time, rhat = rhat,
             `steps a draw` = mean(told$steps), divergent = sum(told$divergent), check.names = FALSE)
}

bench_pool <- function(quick) {
  sizes <- round(seq(100, 1000, length.out = 10))
  most <- if (quick) 50L else 1000L
  counts <- most / c(10, 5, 2, 1)
  regressions <- lapply(c(2, 5), function(p) {
    sites <- pool_regression(p, sizes)
    do.call(rbind, lapply(1:5, function(seed) pool_row(sprintf("regression, p = %d", p), sites, model_lm(), quick, seed)))
  })
  proportions <- lapply(counts, function(count) pool_row("one proportion", pool_proportions(count), model_bernoulli(), quick))
  rows <- do.call(rbind, c(regressions, proportions))
  largest <- rows[nrow(rows), ]
  waits <- do.call(rbind, lapply(counts[c(1, 4)], function(count) pool_row("one exponential rate", pool_waits(count), model_exponential(), quick)))
  visits <- do.call(rbind, lapply(counts[c(1, 4)], function(count) pool_row("one Poisson rate", pool_counts(count), model_poisson(), quick)))
  growth <- stats::coef(stats::lm(log(seconds / `steps a draw`) ~ log(sites), rows[rows$model == "one proportion", ]))[[2L]]
  figures <- list(
    figure("least ESS per second, median of 5 seeds", "10 sites, regression, p = 2", stats::median(regressions[[1L]][["ESS per second"]]), 200),
    figure("least ESS per second, median of 5 seeds", "10 sites, regression, p = 5", stats::median(regressions[[2L]][["ESS per second"]]), 200),
    figure("greatest R-hat", "10 sites, regression, p = 2", max(regressions[[1L]]$rhat), 1.01, at_most = TRUE),
    figure("greatest R-hat", "10 sites, regression, p = 5", max(regressions[[2L]]$rhat), 1.01, at_most = TRUE),
    figure("ESS in a minute", sprintf("%d sites, one proportion", largest$sites), 60 * largest[["ESS per second"]], 1000),
    figure("ESS in a minute", sprintf("%d sites, one exponential rate", waits$sites[2L]), 60 * waits[["ESS per second"]][2L], 1000),
    figure("ESS in a minute", sprintf("%d sites, one Poisson rate", visits$sites[2L]), 60 * visits[["ESS per second"]][2L], 1000),
    figure("power of the number of sites in the time of a step", "one proportion", growth, 1.1, at_most = TRUE))
  bench_result(figures, list("Partial pooling, 4 chains x 2,000, epsilon 1" = rbind(rows, waits, visits)),
               paste("Means over sites and standard deviations between them; each site of the regressions has 100 to 1,000 records,",
                     "each of the proportions 100, each of the exponential and Poisson rates 50 to 500."))
}

run_alone(bench_pool)
