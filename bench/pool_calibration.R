# Are pooled sites calibrated? Five sites whose rates differ: the mean and the standard deviation between sites from their priors, the
# sites' rates, records and releases from these; then the truth's ranks among thinned draws of each variable, and the coverage of 90%
# intervals. The same of five logistic regressions by method "clt", with complete and with partial pooling, and of the tables of five sites, two of them of unknown
# size and one with an exact count.
#
#   Rscript bench/pool_calibration.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

sites_of_rates <- list(
  probability = list(
    model = noiseaware::model_bernoulli(prior = noiseaware::prior_beta(2, 3)), mean = function() stats::rbeta(1, 2, 3),
    link = stats::qlogis, back = stats::plogis, sd = 0.7, n = c(30, 60, 100, 200, 400),
    records = function(n, rate) data.frame(x = factor(stats::rbinom(n, 1, rate), 0:1, c("no", "yes"))),
    statistic = noiseaware::stat_counts(~ x, levels = list(x = c("no", "yes")))),
  rate = list(
    model = noiseaware::model_poisson(prior = noiseaware::prior_gamma(3, 1)), mean = function() stats::rgamma(1, 3, 1),
    link = log, back = exp, sd = 0.5, n = c(20, 30, 50, 80, 150),
    records = function(n, rate) data.frame(x = stats::rpois(n, rate)),
    # bounds that no record exceeds
    statistic = noiseaware::stat_sums(~ x, bounds = list(x = c(0, 500)))))

draw_rates <- function(kind) {
  design <- sites_of_rates[[kind]]
  mean <- design$mean()
  sd <- abs(stats::rnorm(1, 0, design$sd))
  rates <- design$back(design$link(mean) + sd * stats::rnorm(5))
  scales <- if (kind == "rate") c(3, 5, 8, 5, 10) else c(2, 3, 5, 5, 10)
  sites <- Map(function(rate, n, scale) simulate_release(design$records(n, rate), design$statistic, mech_laplace(scale = scale)), rates, design$n, scales)
  list(sites = sites, truth = c(mean, sd, rates), model = design$model, pool = partial_pooling(sd = prior_half_normal(design$sd)), method = "auto", iter = 1500)
}

# The middle of the bounds is 0, so that coefficients are their coordinates; no covariate comes near the bounds.
draw_regressions <- function(partial) {
  mean <- stats::rnorm(2)
  sd <- if (partial) abs(stats::rnorm(2, 0, 0.5)) else c(0, 0)
  coefficients <- mean + sd * matrix(stats::rnorm(10), 2L)
  covariates <- function() {
    variance <- 8 / stats::rchisq(1, 12)
    c(stats::rnorm(1, 0, sqrt(variance / 5)), variance)
  }
  of_x <- if (partial) replicate(5, covariates()) else matrix(covariates(), 2L, 5L)
  asked <- stat_crossprod(y ~ x, bounds = list(y = c(0, 1), x = c(-8, 8)))
  sites <- lapply(1:5, function(j) {
    x <- stats::rnorm(c(100, 200, 300, 500, 800)[j], of_x[1L, j], sqrt(of_x[2L, j]))
    y <- stats::rbinom(length(x), 1, stats::plogis(coefficients[1L, j] + coefficients[2L, j] * x))
    simulate_release(data.frame(y, x), asked, if (j %% 2L) mech_laplace(scale = j) else mech_gaussian(sd = j))
  })
  list(sites = sites, truth = if (partial) c(mean, sd, coefficients) else c(mean, of_x[, 1L]),
       model = model_logistic(prior = prior_normal(0, 1), covariates = prior_niw(0, 5, 8, 12)),
       pool = if (partial) partial_pooling(sd = prior_half_normal(0.5)) else "complete", method = "clt", iter = 1200)
}

# Three levels whose logits differ; two sites do not tell how many records they have, and of one a count is exact.
draw_categories <- function() {
  levels <- list(f = c("a", "b", "c"))
  mean <- c(stats::qlogis(stats::rbeta(1, 2, 3)), stats::qlogis(stats::rbeta(1, 2, 1)))
  sd <- abs(stats::rnorm(2, 0, 0.6))
  own <- mean + sd * matrix(stats::rnorm(10), 2L)
  first <- stats::plogis(own[1L, ])
  prob <- rbind(unname(first), (1 - first) * stats::plogis(own[2L, ]), (1 - first) * stats::plogis(-own[2L, ]))
  n <- c(30, 60, 100, stats::rnbinom(2, 5, mu = 80))
  counts <- stat_counts(~ f, levels = levels)
  sites <- lapply(1:5, function(j) {
    count <- unname(drop(stats::rmultinom(1, n[j], prob[, j])))
    noisy <- count + if (j %% 2L) stats::rexp(3, 1 / (2 * j)) * sample(c(-1, 1), 3, TRUE) else stats::rnorm(3, 0, 3 * j)
    mechanism <- if (j %% 2L) mech_laplace(scale = 2 * j) else mech_gaussian(sd = 3 * j)
    if (j != 3L) return(as_release(noisy, counts, mechanism, n = if (j < 4L) n[j]))
    as_release(list(law = count[1L], counts = noisy), list(law = stat_subset(counts, "f=a"), counts = counts),
               list(law = mech_exact(), counts = mechanism), n = n[j])
  })
  list(sites = sites, truth = c(rbind(stats::plogis(mean[1L]), stats::plogis(-mean[1L]) * stats::plogis(mean[2L]), stats::plogis(-mean[1L]) * stats::plogis(-mean[2L])),
                                sd, prob, n[4:5]),
       model = model_categorical(prior = prior_dirichlet(c(2, 2, 1))), pool = partial_pooling(sd = prior_half_normal(0.6)), method = "collapse", iter = 1500,
       prior_n = prior_n("negative_binomial", mean = 80, size = 5))
}

calibrated_sites <- list(probability = function() draw_rates("probability"), rate = function() draw_rates("rate"),
                         `logistic, partial` = function() draw_regressions(TRUE), `logistic, complete` = function() draw_regressions(FALSE),
                         `categories, tables` = draw_categories)

one_calibrated <- function(kind, seed) {
  set.seed(seed)
  drawn <- calibrated_sites[[kind]]()
  names(drawn$sites) <- letters[1:5]
  fit <- suppressMessages(suppressWarnings(sample_posterior(drawn$sites, drawn$model, pool = drawn$pool, method = drawn$method,
                                                            prior_n = drawn$prior_n, chains = 2, iter = drawn$iter, seed = seed)))
  truth <- drawn$truth
  values <- unclass(fit$draws)
  # a whole number is somewhere between its halves
  whole <- grepl("^n\\[", posterior::variables(fit))
  values[, , whole] <- values[, , whole] + stats::runif(length(values[, , whole]), -0.5, 0.5)
  truth[whole] <- truth[whole] + stats::runif(sum(whole), -0.5, 0.5)
  out <- vapply(seq_along(truth), function(v) {
    draws <- values[, , v]
    step <- max(1, ceiling(length(draws) / posterior::ess_bulk(draws)))
    kept <- draws[seq(step, nrow(draws), by = step), ]
    c((sum(kept < truth[v]) + stats::runif(1)) / (length(kept) + 1), mean(draws < truth[v]))
  }, c(0, 0))
  list(variables = posterior::variables(fit)[seq_along(truth)], quantile = out[1L, ], below = out[2L, ])
}

bench_pool_calibration <- function(quick) {
  tables <- lapply(names(calibrated_sites), function(kind) {
    replicates <- if (quick) 50L else if (grepl("logistic|tables", kind)) 200L else 500L
    say("%s, %d replicates", kind, replicates)
    runs <- lapply(seq_len(replicates), one_calibrated, kind = kind)
    quantile <- do.call(cbind, lapply(runs, `[[`, "quantile"))
    below <- do.call(cbind, lapply(runs, `[[`, "below"))
    data.frame(sites = kind, replicates, variable = runs[[1L]]$variables, `KS p-value` = apply(quantile, 1L, function(q) stats::ks.test(q, "punif")$p.value),
               `coverage of 90%` = rowMeans(below > 0.05 & below < 0.95), check.names = FALSE)
  })
  table <- do.call(rbind, tables)
  p <- table[["KS p-value"]]
  beyond <- (table[["coverage of 90%"]] - 0.9) / sqrt(0.09 / table$replicates)
  bench_result(list(figure("least p-value of uniform ranks, times the number of variables", sprintf("%d variables", nrow(table)), min(1, min(p) * length(p)), 0.01),
                    figure("coverage of 90% intervals, least, in its standard deviations from 0.9", "all variables", min(beyond), -3.5),
                    figure("coverage of 90% intervals, most, in its standard deviations from 0.9", "all variables", max(beyond), 3.5, at_most = TRUE)),
               list("Ranks and coverage, 5 sites" = table),
               "500 replicates determine a coverage of 0.9 within 0.013, 200 within 0.021 (one standard deviation).")
}

run_alone(bench_pool_calibration)
