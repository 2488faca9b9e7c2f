# Method "collapse": effective draws per second with default settings, warmup
# included, of the slope of a simple regression and of all parameters of naive
# Bayes; time per iteration against the number of records; other amounts of noise
# and numbers of covariates.
#
#   Rscript bench/collapse.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")
if (!exists("bayes_problem")) source("bench/naive_bayes.R")

# y = 0.5 + x1 + N(0, 1), covariates N(0, 1). Beyond a million records the totals
# of a million stand for more, which leaves their expectations as they are.
collapse_release <- function(n, p, mechanism, replicate) {
  set.seed(1000 * replicate + p)
  made <- min(n, 1e6)
  x <- matrix(stats::rnorm(made * p), made)
  variables <- c("y", paste0("x", seq_len(p)))[seq_len(p + 1)]
  data <- stats::setNames(data.frame(0.5 + (if (p > 0) x[, 1] else 0) + stats::rnorm(made), x), variables)
  bounds <- stats::setNames(rep(list(c(-5, 5), c(-4, 4)), c(1, p)), variables)
  formula <- stats::reformulate(if (p > 0) variables[-1] else "1", "y")
  release <- simulate_release(data, stat_crossprod(formula, bounds), mechanism)
  if (n == made) return(release)
  total <- noiseaware:::statistic_total(release$statistic, data)
  as_release(total * (n / made) + (release$value - total), release$statistic, mechanism, n)
}

# one call of sample_posterior()
collapse_run <- function(n, p, mechanism, replicate, method = "collapse", ...) {
  release <- collapse_release(n, p, mechanism, replicate)
  time <- seconds(fit <- sample_posterior(release, model_lm(), method = method, seed = replicate, ...))
  made <- acceptance(fit)
  iterations <- dim(fit$draws)[2L] * fit$run$iter
  data.frame(n = n, p = p, noise = format(mechanism), method = method, seconds = time, iterations = iterations,
             slope = min_ess(fit$draws, if (p > 0) "x1" else "(Intercept)"), least = min_ess(fit$draws), statistic = min_ess(denoise(fit)),
             rhat = max(posterior::summarise_draws(fit$draws, "rhat")$rhat), drawn = mean(made$mean))
}

collapse_table <- function(runs) {
  key <- paste(runs$method, runs$noise, runs$n, runs$p)
  do.call(rbind, unname(lapply(split(runs, factor(key, unique(key))), function(r) {
    data.frame(method = r$method[1L], noise = r$noise[1L], n = r$n[1L], p = r$p[1L], releases = nrow(r),
               `seconds a call` = stats::median(r$seconds), `microseconds an iteration` = stats::median(1e6 * r$seconds / r$iterations),
               `slope: ESS per second` = stats::median(r$slope / r$seconds), `lowest` = min(r$slope / r$seconds),
               `least parameter: ESS per second` = stats::median(r$least / r$seconds),
               `least component: ESS per second` = stats::median(r$statistic / r$seconds),
               `worst R-hat` = formatC(max(r$rhat), digits = 3, format = "f"), accepted = mean(r$drawn), check.names = FALSE)
  })))
}

# Seconds an iteration after warmup, set-up not counted
collapse_iteration <- function(n, more) {
  fit <- sample_posterior(collapse_release(n, 1, mech_gaussian(mu = 1), 1), model_lm(), "collapse", chains = 1, iter = 1200, warmup = 1000, thin = 100, seed = 1)
  seconds_extended(fit, more) / more
}

# the paper's naive Bayes problem with any number of records
bayes_release <- function(n, epsilon, replicate) {
  problem <- bayes_problem(epsilon)
  statistic <- problem$release$statistic
  set.seed(replicate)
  dirichlet <- function(size) prop.table(stats::rgamma(size, 2))
  class <- stats::rmultinom(1, n, dirichlet(5))
  total <- unlist(lapply(1:5, function(feature) vapply(class, function(m) stats::rmultinom(1, m, dirichlet(3)), integer(3))))
  noise <- stats::rexp(75, 1 / problem$release$scale) * sample(c(-1, 1), 75, TRUE)
  as_release(total + noise, statistic, problem$release$mechanism, n)
}

bayes_run <- function(n, epsilon, replicate, method = "collapse", ...) {
  release <- bayes_release(n, epsilon, replicate)
  model <- bayes_problem(epsilon)$model
  time <- seconds(fit <- sample_posterior(release, model, method = method, seed = replicate, ...))
  data.frame(n = n, epsilon = epsilon, method = method, draws = dim(fit$draws)[1L] * dim(fit$draws)[2L], seconds = time,
             ess = min_ess(fit$draws), rhat = max(posterior::summarise_draws(fit$draws, "rhat")$rhat))
}

bayes_table <- function(runs) {
  key <- paste(runs$n, runs$epsilon, runs$method, runs$draws)
  do.call(rbind, unname(lapply(split(runs, factor(key, unique(key))), function(r) {
    data.frame(method = r$method[1L], n = r$n[1L], epsilon = r$epsilon[1L], draws = r$draws[1L], releases = nrow(r),
               `seconds a call` = stats::median(r$seconds), `least ESS a call` = stats::median(r$ess),
               `least ESS per second` = stats::median(r$ess / r$seconds), `worst R-hat` = formatC(max(r$rhat), digits = 3, format = "f"),
               check.names = FALSE)
  })))
}

bayes_iteration <- function(n, more) {
  fit <- sample_posterior(bayes_release(n, 1, 1), bayes_problem(1)$model, "collapse", chains = 1, iter = 1200, warmup = 1000, thin = 100, seed = 1)
  seconds_extended(fit, more) / more
}

bench_collapse <- function(quick = FALSE) {
  replicates <- if (quick) 2 else 15
  collapse_run(30, 1, mech_gaussian(mu = 1), 1, iter = 100) # loads what the first call loads
  every <- function(grid, ...) {
    collapse_table(do.call(rbind, lapply(seq_len(nrow(grid)), function(i) {
      g <- grid[i, ]
      mechanism <- if (g$kind == "Gaussian") mech_gaussian(mu = g$budget) else mech_laplace(epsilon = g$budget)
      do.call(rbind, lapply(seq_len(replicates), function(r) collapse_run(g$n, g$p, mechanism, r, ...)))
    })))
  }
  grid <- function(...) expand.grid(..., stringsAsFactors = FALSE)
  say("simple regression, any number of records")
  sizes <- every(grid(n = c(30, 100, 300, 1000, 1e6, 1e9), p = 1, kind = "Gaussian", budget = 1))
  say("the same by method augment")
  augment <- every(grid(n = 1000, p = 1, kind = "Gaussian", budget = 1), method = "augment")
  say("longer chains")
  long <- every(grid(n = 1000, p = 1, kind = "Gaussian", budget = 1), iter = if (quick) 4000 else 20000)
  say("noise")
  noise <- every(grid(n = 1000, p = 1, kind = c("Gaussian", "Laplace"), budget = c(0.1, 1, 10)))
  say("covariates")
  covariates <- every(grid(n = 1000, p = if (quick) c(0, 2) else c(0, 2, 3, 5), kind = "Gaussian", budget = 1))
  say("time per iteration")
  more <- if (quick) 5e4 else 2e5
  per <- vapply(c(1e3, 1e9), collapse_iteration, 0, more)
  say("naive Bayes")
  bayes_run(100, 1, 1, iter = 100)
  bayes <- bayes_table(do.call(rbind, lapply(seq_len(if (quick) 2 else 5), function(r) {
    rbind(bayes_run(100, 1, r, "augment"), bayes_run(100, 1, r), bayes_run(100, 1, r, "augment", iter = 10000, warmup = 1000),
          bayes_run(100, 1, r, iter = 10000, warmup = 1000),
          do.call(rbind, lapply(c(500, 1000, 1e4, 1e5, 1e6, 1e9), bayes_run, 1, r)),
          bayes_run(100, 0.1, r), bayes_run(100, 10, r))
  })))
  bayes_rate <- bayes[["least ESS per second"]]
  at <- function(n, method, draws) bayes_rate[bayes$n == n & bayes$epsilon == 1 & bayes$method == method & bayes$draws == draws]
  say("naive Bayes, time per iteration")
  bayes_per <- vapply(c(1e3, 1e9), bayes_iteration, 0, if (quick) 2e4 else 1e5)
  rate <- sizes[["slope: ESS per second"]]
  bench_result(
    c(Map(function(n, value) figure("ESS per second for the slope", paste("n =", format_figure(n)), value, if (n == 1000) 20000 else NA),
          sizes$n, rate),
      list(figure("times method augment", "n = 1,000", rate[sizes$n == 1000] / augment[["slope: ESS per second"]]),
           figure("microseconds an iteration", "n = 1,000", 1e6 * per[1L]),
           figure("time per iteration over that of n = 1,000", "n = 1,000,000,000", per[2L] / per[1L], 1.2, at_most = TRUE),
           figure("naive Bayes, least ESS per second, times that of augment", "n = 100, epsilon = 1, 4 x 1,000 draws",
                  at(100, "collapse", 4000) / at(100, "augment", 4000), 10),
           figure("the same with longer chains", "4 x 9,000 draws", at(100, "collapse", 36000) / at(100, "augment", 36000), 10),
           figure("naive Bayes, least ESS per second over that of n = 100", "n = 1,000,000", at(1e6, "collapse", 4000) / at(100, "collapse", 4000), 0.5),
           figure("naive Bayes, microseconds an iteration", "n = 1,000", 1e6 * bayes_per[1L]),
           figure("naive Bayes, time per iteration over that of n = 1,000", "n = 1,000,000,000", bayes_per[2L] / bayes_per[1L], 1.2, at_most = TRUE))),
    list("Simple regression" = rbind(sizes, augment), "Chains of another length" = long, "Noise" = noise, "Covariates" = covariates,
         "Naive Bayes, 5 classes, 5 features of 3 levels" = bayes),
    c("y = 0.5 + x1 + N(0, 1), covariates N(0, 1), bounds y in [-5, 5] and x in [-4, 4], totals of all monomials of degree 1 and 2; model_lm() with its default priors, everything unknown.",
      "A call is sample_posterior() as it is, 4 x 2,000 iterations, warmup and set-up included. ESS is the bulk one; accepted: draws of the totals (records, for augment).",
      "Naive Bayes: below some hundred records the draws are independent."))
}

run_alone(bench_collapse)
