# Where method "augment" mixes badly: priors with heavy tails, and bounds that clamp
# most records. Clamped totals leave the scale of the records nearly free, so that the
# posterior keeps the prior's tails, and records that are far outside hold the
# parameters where they are. Long runs of the default and of the plain sampler
# (Ju et al. 2022, Algorithm 1): effective draws, and R-hat.
#
#   Rscript bench/mixing_heavy.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

heavy_problems <- list(
  normal = list(model = model_normal(prior = prior_nig(0, 0.01, 0.1, 0.1)),
                statistic = function(width) stat_sums(~ x + I(x^2), list(x = c(-width, width)), rescale = FALSE)),
  linear = list(model = model_lm(prior = prior_nig(0, 0.01, 0.5, 0.5), covariates = prior_niw(0, 0.01, 1, 1.5)),
                statistic = function(width) stat_crossprod(y ~ x, list(y = c(-width, width), x = c(-width, width))))
)

heavy_data <- function(n) {
  x <- stats::rnorm(n)
  data.frame(y = 0.5 + x + stats::rnorm(n), x)
}

heavy_cell <- function(name, n, epsilon, width, iter) {
  p <- heavy_problems[[name]]
  set.seed(2022 + n)
  data <- heavy_data(n)
  release <- simulate_release(data, p$statistic(width), mech_laplace(epsilon = epsilon))
  run <- function(...) {
    used <- seconds(fit <- suppressWarnings(sample_posterior(release, p$model, method = "augment", iter = iter, seed = 1, ...)))
    table <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
    list(fit = fit, seconds = used, ess = min(table$ess_bulk), rhat = max(table$rhat), slowest = table$variable[which.min(table$ess_bulk)])
  }
  default <- run()
  plain <- run(control = list(passes = 0))
  data.frame(model = name, n = n, epsilon = epsilon, bounds = width,
             `x outside` = mean(abs(data$x) > width), `draws kept` = posterior::ndraws(default$fit$draws),
             `bulk ESS` = default$ess, `R-hat` = formatC(default$rhat, digits = 3, format = "f"), slowest = default$slowest,
             seconds = default$seconds, `ESS per second` = default$ess / default$seconds, passes = mean(acceptance(default$fit)$passes),
             `plain, bulk ESS` = plain$ess, `plain, R-hat` = formatC(plain$rhat, digits = 3, format = "f"), check.names = FALSE)
}

bench_mixing_heavy <- function(quick = FALSE) {
  cells <- expand.grid(width = c(0.5, 2), epsilon = c(1, 10), n = if (quick) 100 else c(100, 1000), model = names(heavy_problems),
                       stringsAsFactors = FALSE)
  rows <- do.call(rbind, Map(function(model, n, epsilon, width) {
    say("%s, n = %d, epsilon %g, bounds %g", model, n, epsilon, width)
    heavy_cell(model, n, epsilon, width, if (quick) 2000 else 40000)
  }, cells$model, cells$n, cells$epsilon, cells$width))
  figures <- Map(function(model, n, epsilon, width, ess, rhat) {
    figure("min bulk ESS of a run", sprintf("%s, n = %s, epsilon %g, bounds %g, R-hat %s", model, format_figure(n), epsilon, width, rhat), ess)
  }, rows$model, rows$n, rows$epsilon, rows$bounds, rows[["bulk ESS"]], rows[["R-hat"]])
  bench_result(unname(figures), list("Both samplers" = rows),
               c("x ~ N(0, 1), y = 0.5 + x + N(0, 1); both are clamped to [-bounds, bounds]; Laplace noise, one release a row. Priors: normal, prior_nig(0, 0.01, 0.1, 0.1); linear, prior_nig(0, 0.01, 0.5, 0.5) and prior_niw(0, 0.01, 1, 1.5). Method \"augment\", four chains of 40,000 iterations, half of them warmup, from draws of the prior.",
                 "bulk ESS: the smallest over all parameters. A chain that is stuck overrates its own: where R-hat is above 1.05 the figure is a ceiling."))
}

run_alone(bench_mixing_heavy)
