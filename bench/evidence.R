# Is the Monte Carlo error of log_evidence() honest? 100 repeats of a fit with default arguments and of its evidence: the ratio
# of the error that is stated to the standard deviation that is seen, and where quadrature knows the evidence the distance to it.
#
#   Rscript bench/evidence.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

evidence_row <- function(label, release, model, method, repeats, truth = NA_real_, ...) {
  say("%s, %s", label, method)
  time <- seconds(told <- vapply(seq_len(repeats), function(seed) {
    fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, method = method, seed = seed, ...)))
    got <- suppressMessages(log_evidence(fit, seed = seed))
    c(as.numeric(got), attr(got, "error"))
  }, double(2)))
  seen <- stats::sd(told[1L, ])
  stated <- sqrt(mean(told[2L, ]^2))
  data.frame(model = label, method = method, repeats = repeats, evidence = mean(told[1L, ]), truth = truth,
             distance = abs(mean(told[1L, ]) - truth), `sd seen` = seen, `error stated` = stated, `stated / seen` = stated / seen,
             seconds = time / repeats, check.names = FALSE)
}

# 20 normal records, both numbers with Laplace noise of scale 4, prior_nig(0, 1 / 4, 2, 6): quadrature over total and scatter
evidence_quadrature <- function() {
  scatter <- exp(seq(log(0.05), log(500), length.out = 600))
  at <- expand.grid(t = seq(-150, 170, length.out = 1281), s = scatter)
  rate <- 6 + at$s / 2 + (20 * 0.25 / 20.25) * (at$t / 20)^2 / 2
  log_m <- -log(20) / 2 + 19 / 2 * log(pi) - lgamma(19 / 2) + 17 / 2 * log(at$s) - 10 * log(2 * pi) + log(0.25 / 20.25) / 2 + 2 * log(6) -
    12 * log(rate) + lgamma(12) - lgamma(2)
  terms <- log(0.25) + log(at$s) + log(diff(log(scatter))[1L]) + log_m - abs(12.3 - at$t) / 4 - abs(61.5 - at$s - at$t^2 / 20) / 4 - 2 * log(8)
  max(terms) + log(sum(exp(terms - max(terms))))
}

bench_evidence <- function(quick) {
  repeats <- if (quick) 10L else 100L
  squares <- stat_sums(~ x + I(x^2), bounds = list(x = c(-50, 50)), rescale = FALSE)
  one <- as_release(c(12.3, 61.5), squares, mech_laplace(scale = 4), n = 20)
  set.seed(1)
  simple <- simulate_release(mtcars, stat_crossprod(mpg ~ wt, bounds = list(mpg = c(5, 40), wt = c(1, 6))), mech_laplace(epsilon = 2))
  two <- simulate_release(MASS::birthwt, stat_crossprod(bwt ~ age + lwt, bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260))),
                          mech_laplace(epsilon = 2))
  low <- simulate_release(MASS::birthwt, stat_crossprod(low ~ age, bounds = list(low = c(0, 1), age = c(14, 50))), mech_laplace(epsilon = 2))
  smoke <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
  sites <- lapply(split(data.frame(smoke = c("no", "yes")[MASS::birthwt$smoke + 1]), MASS::birthwt$race), simulate_release, smoke, mech_laplace(epsilon = 0.5))
  rows <- rbind(
    evidence_row("mean and variance, 20 records", one, model_normal(prior = prior_nig(0, 1 / 4, 2, 6)), "collapse", repeats, evidence_quadrature()),
    evidence_row("mpg ~ wt", simple, model_lm(), "collapse", repeats),
    evidence_row("mpg ~ wt", simple, model_lm(), "clt", repeats),
    evidence_row("bwt ~ age + lwt", two, model_lm(), "collapse", repeats),
    evidence_row("bwt ~ age + lwt", two, model_lm(), "clt", repeats),
    evidence_row("bwt ~ age + lwt, half-normal sigma", two, model_lm(prior = prior_normal()), "clt", repeats),
    evidence_row("low ~ age, logistic", low, model_logistic(), "clt", repeats),
    evidence_row("smoke by race, partial pooling", sites, model_bernoulli(), "collapse", repeats, pool = "partial"))
  figures <- c(list(figure("distance of the log evidence to quadrature", "mean and variance", rows$distance[1L], 0.02, at_most = TRUE)),
               lapply(seq_len(nrow(rows)), function(k) {
                 figure("error stated / sd seen", paste0(rows$model[k], ", ", rows$method[k]), rows[["stated / seen"]][k], 0.75)
               }))
  bench_result(figures, list("Log evidence, defaults" = rows),
               sprintf("%d repeats determine a standard deviation within %.0f per cent.", repeats, 100 / sqrt(2 * repeats)))
}

run_alone(bench_evidence)
