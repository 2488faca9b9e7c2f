# The logistic problem of Awan & Wang (2024): intercept 0.5, slope 2, x = 2 Beta(1/2, 1/2) - 1, n = 1,000, epsilon = 1;
# objective perturbation with noise in the norm "Linf", q = 0.85, 90% of epsilon, the rest on the totals of x and x^2.
# Their confidence set of the slope: 5,139 s, coverage 0.994, width 0.969.
#
#   Rscript bench/awan_wang.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# coefficients N(0, 1.5^2) and N(0, 3^2); share ~ Beta(1, 1), precision ~ Gamma(1.5, 0.15)
awan_wang_model <- model_logistic(prior = prior_normal(0, c(1.5, 3)), covariates = list(x = covariate_beta()))

awan_wang_release <- function(seed, n = 1000, epsilon = 1) {
  set.seed(seed)
  x <- 2 * stats::rbeta(n, 0.5, 0.5) - 1
  data <- data.frame(y = as.numeric(stats::runif(n) < stats::plogis(0.5 + 2 * x)), x = x)
  bounds <- list(y = c(0, 1), x = c(-1, 1))
  share <- 0.9 * epsilon
  # a row (1, x) has length sqrt(2): curvature of at most 1/2
  perturbed <- mech_objective(epsilon = share, ridge = 0.5 / expm1(0.15 * share), norm = "Linf")
  simulate_release(data, list(fit = stat_objective(y ~ x, bounds), moments = stat_sums(~ x + I(x^2), bounds["x"], rescale = FALSE)),
                   list(fit = perturbed, moments = mech_laplace(epsilon = 0.1 * epsilon)))
}

awan_wang_row <- function(seed, chains) {
  release <- awan_wang_release(seed)
  time <- seconds(fit <- suppressMessages(suppressWarnings(sample_posterior(release, awan_wang_model, chains = chains, seed = seed))))
  draws <- posterior::as_draws_array(fit)
  rhat <- posterior::summarise_draws(draws, "rhat")
  interval <- stats::quantile(draws[, , "x"], c(0.025, 0.975))
  data.frame(seconds = time, covered = interval[1L] < 2 && interval[2L] > 2, width = diff(interval), rhat = rhat$rhat[rhat$variable == "x"],
             largest = max(rhat$rhat))
}

awan_wang_rows <- function(seeds, chains) do.call(rbind, lapply(seeds, awan_wang_row, chains = chains))

bench_awan_wang <- function(quick = FALSE) {
  default <- awan_wang_rows(seq_len(if (quick) 1L else 8L), chains = 4)
  runs <- awan_wang_rows(seq_len(if (quick) 2L else 300L), chains = 2)
  bench_result(
    list(figure("seconds", "default call, largest of the seeds", max(default$seconds), 60, at_most = TRUE),
         figure("R-hat", "default call, all parameters, largest of the seeds", max(default$largest), 1.01, at_most = TRUE),
         figure("coverage of 95% intervals", "slope, at least", mean(runs$covered), 0.93),
         figure("coverage of 95% intervals", "slope, at most", mean(runs$covered), 0.97, at_most = TRUE),
         figure("width of 95% intervals", "slope, mean", mean(runs$width), 0.85, at_most = TRUE),
         figure("seconds", "2 chains, mean", mean(runs$seconds)),
         figure("R-hat", "2 chains, slope, largest", max(runs$rhat)),
         figure("R-hat", "2 chains, all parameters, largest", max(runs$largest))),
    notes = sprintf("Default calls: %d seeds of 4 chains. Coverage and width: %d replicates of 2 chains, all else by default.", nrow(default), nrow(runs)))
}

run_alone(bench_awan_wang)
