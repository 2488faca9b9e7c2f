# Calibration of the engines for regressions and tables (Cook, Gelman & Rubin 2006; Talts et al. 2018): theta
# from its prior, records, a release, the ranks of theta and of the log noise density among
# their draws. Three covariates, a factor among them, bounds that bind where a method allows for it.
#
#   Rscript bench/calibrate_engines.R [designs] [quick]     whose names contain the text; default: all

if (!exists("bench_result")) source("bench/helpers.R")

engine_designs <- function() {
  bounds <- list(y = c(-2, 2), x1 = c(-1.5, 1), x2 = c(-1, 2), g = c("a", "b", "c"))
  wide <- list(y = c(-60, 60), x1 = c(-12, 12), x2 = c(-12, 12), x3 = c(-12, 12))
  tight <- model_lm(prior = prior_normal(0, 1), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(mean = 0, kappa = 1, df = 8, scale = diag(4, 3)))
  binding <- list(model = model_lm(), statistic = stat_crossprod(y ~ x1 + x2 + g, bounds), mechanism = mech_laplace(epsilon = 5), method = "augment")
  # bounds at so many standard deviations of what the prior expects
  clamped <- function(sd) {
    list(model = model_lm(prior = prior_nig(0, 4, 10, 10), covariates = prior_niw(mean = 0, kappa = 4, df = 20, scale = diag(16, 3))),
         statistic = stat_crossprod(y ~ x1 + x2 + x3, list(y = c(-1.25, 1.25) * sd, x1 = c(-1, 1) * sd, x2 = c(-1, 1) * sd, x3 = c(-1, 1) * sd)),
         mechanism = mech_laplace(epsilon = 10), method = "clt")
  }
  crossed_at <- function(sd) {
    list(model = model_lm(prior = prior_nig(0, 4, 10, 10), covariates = prior_niw(mean = 0, kappa = 4, df = 20, scale = diag(18, 1))),
         statistic = stat_crossprod(y ~ x + g + h, list(y = c(-1.8, 1.8) * sd, x = c(-1, 1) * sd, g = c("a", "b", "c"), h = c("u", "v"))),
         mechanism = mech_laplace(epsilon = 10), method = "clt")
  }
  # levels without records, and confounded factors, where there are few
  crossed <- list(model = model_lm(prior = prior_nig(0, 2, 6, 6), covariates = list(mean = fixed(0.3), cov = fixed(matrix(1)))),
                  statistic = stat_crossprod(y ~ x + g + h, list(y = c(-40, 40), x = c(-20, 20), g = c("a", "b", "c"), h = c("u", "v"))),
                  mechanism = mech_laplace(epsilon = 5), method = "collapse")
  levels <- list(a = c("r", "s"), b = c("t", "u", "v"), c = c("w", "x"), d = c("y", "z"))
  tree <- list(model = model_table(~ a:b + b:c + c:d), statistic = stat_counts(~ a:b + b:c + c:d, levels), mechanism = mech_laplace(epsilon = 2), method = "collapse")
  cycle <- list(model = model_table(~ a:b + b:c + c:d + d:a, prior_normal(0, 1)), statistic = stat_counts(~ a:b + b:c + c:d + d:a, levels),
                mechanism = mech_laplace(epsilon = 4), method = "collapse")
  zeros <- list(model = model_table(~ a:b:c, zeros = ~ a == "r" & b != "v" | b == "u" & c == "x"), statistic = stat_counts(~ a:b + b:c + a:c, levels[1:3]),
                mechanism = mech_gaussian(mu = 1), method = "collapse")
  # responses of three levels; with a number among the covariates, and with factors alone
  answers <- list(y = c("low", "mid", "high"), g = c("a", "b"))
  graded <- function(family) {
    list(model = model_glm(family = family, prior = prior_normal(0, 1), covariates = prior_niw(mean = 0, kappa = 2, df = 8, scale = diag(6, 1))),
         statistic = stat_crossprod(y ~ x + g, c(answers, list(x = c(-3, 3)))), mechanism = mech_laplace(epsilon = 5), method = "augment")
  }
  counted <- function(family) {
    list(model = model_glm(family = family, prior = prior_normal(0, 1)), statistic = stat_crossprod(y ~ g, answers), mechanism = mech_laplace(epsilon = 3), method = "collapse")
  }
  free <- list(model = tight, statistic = stat_crossprod(y ~ x1 + x2 + x3, wide), mechanism = mech_laplace(epsilon = 5))
  list(
    `"augment", factor, bounds that bind, n = 20` = c(binding, n = 20),
    `"augment", factor, bounds that bind, n = 500` = c(binding, n = 500),
    `"collapse", no record outside, n = 20` = c(free, method = "collapse", n = 20),
    `"collapse", no record outside, n = 500` = c(free, method = "collapse", n = 500),
    `"collapse", two factors, n = 8` = c(crossed, n = 8),
    `"collapse", two factors, n = 20` = c(crossed, n = 20),
    `"collapse", two factors, n = 500` = c(crossed, n = 500),
    `"collapse", a tree of four factors, n = 40` = c(tree, n = 40),
    `"collapse", a tree of four factors, n = 500` = c(tree, n = 500),
    `"collapse", a cycle of four factors, n = 40` = c(cycle, n = 40),
    `"collapse", a cycle of four factors, n = 500` = c(cycle, n = 500),
    `"collapse", a table with structural zeros, n = 40` = c(zeros, n = 40),
    `"collapse", a table with structural zeros, n = 500` = c(zeros, n = 500),
    `"augment", levels, cumulative logit, n = 30` = c(graded("cumulative"), n = 30),
    `"augment", levels, cumulative probit, n = 200` = c(graded("cumulative_probit"), n = 200),
    `"augment", levels, categorical, n = 30` = c(graded("categorical"), n = 30),
    `"augment", levels, categorical, n = 200` = c(graded("categorical"), n = 200),
    `"collapse", levels, cumulative, n = 40` = c(counted("cumulative"), n = 40),
    `"collapse", levels, cumulative, n = 500` = c(counted("cumulative"), n = 500),
    `"collapse", levels, categorical, n = 40` = c(counted("categorical"), n = 40),
    `"collapse", levels, categorical, n = 500` = c(counted("categorical"), n = 500),
    `"clt", no record outside, n = 500` = c(free, method = "clt", n = 500),
    `"clt", bounds at 3 sd, n = 500` = c(clamped(3), n = 500),
    `"clt", bounds at 2 sd, n = 500` = c(clamped(2), n = 500),
    `"clt", bounds at 1.5 sd, n = 500` = c(clamped(1.5), n = 500),
    `"clt", two factors, bounds at 2 sd, n = 500` = c(crossed_at(2), n = 500),
    `"clt", two factors, bounds at 1.5 sd, n = 500` = c(crossed_at(1.5), n = 500)
  )
}

bench_calibrate_engines <- function(quick = FALSE, part = "") {
  replicates <- if (quick) 20 else 500
  designs <- engine_designs()
  designs <- designs[grepl(part, names(designs), fixed = TRUE)]
  rows <- lapply(names(designs), function(name) {
    d <- designs[[name]]
    time <- seconds(cal <- suppressWarnings(suppressMessages(
      calibrate(d$model, d$statistic, d$mechanism, d$n, replicates, d$method, chains = 1, iter = 2000, seed = 1))))
    covered <- subset(coverage(cal), level == 0.95)
    tested <- summary(cal)
    least <- min(tested$p.value)
    say("%s: %.0f s, coverage %.3f to %.3f, least p %.4f of %d", name, time, min(covered$coverage), max(covered$coverage), least, nrow(tested))
    data.frame(design = name, replicates = replicates, variables = nrow(tested), `least coverage` = min(covered$coverage), `most coverage` = max(covered$coverage),
               `least p` = least, `Bonferroni p` = min(1, least * nrow(tested)), seconds = time, check.names = FALSE)
  })
  details <- do.call(rbind, rows)
  figures <- lapply(seq_len(nrow(details)), function(k) figure("p value of uniform ranks, Bonferroni", details$design[k], details$`Bonferroni p`[k], 0.01))
  bench_result(figures, list("Intervals of 95 per cent, and Kolmogorov-Smirnov tests of the ranks" = details))
}

run_alone(function(quick) bench_calibrate_engines(quick, paste(setdiff(commandArgs(TRUE), "quick"), collapse = " ")))
