# The problem of Ju et al. (2022), section 5: regression with n = 100 and two
# covariates, sigma and the distribution of the covariates known, nine noisy
# cross-products. One data set, one release for each epsilon, and the same
# posterior from four programs: noiseaware (default and plain sampler), dapper
# (the published R implementation of the same plain sampler) and Stan with the
# latent records as parameters.
#
#   Rscript bench/regression.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

problem <- list(n = 100, beta = c(-1.79, -2.89, -0.66), sigma = sqrt(2), mean = c(0.9, -1.17), prior_sd = 2,
                half_width = 10, sensitivity = 13)
coefficients <- c("(Intercept)", "x1", "x2")

regression_release <- function(epsilon) {
  set.seed(2022)
  x1 <- stats::rnorm(problem$n, problem$mean[1])
  x2 <- stats::rnorm(problem$n, problem$mean[2])
  y <- drop(cbind(1, x1, x2) %*% problem$beta) + stats::rnorm(problem$n, 0, problem$sigma)
  bounds <- c(-1, 1) * problem$half_width
  statistic <- stat_crossprod(y ~ x1 + x2, bounds = list(y = bounds, x1 = bounds, x2 = bounds))
  set.seed(2022 + epsilon)
  simulate_release(data.frame(y, x1, x2), statistic, mech_laplace(scale = problem$sensitivity / epsilon))
}

regression_model <- function() {
  model_lm(prior = prior_normal(0, problem$prior_sd), sigma = fixed(problem$sigma),
           covariates = fixed(list(mean = problem$mean, cov = diag(2))))
}

# What a program did: kept draws, seconds, iterations with warmup, all chains
program_run <- function(program, epsilon, draws, time, iterations, accepted = NULL, passes = NULL, note = "") {
  list(program = program, epsilon = epsilon, draws = draws, time = time, iterations = iterations,
       accepted = accepted, passes = passes, note = note)
}

# Runs of the same program with other seeds, as further chains of one run
pool_runs <- function(runs) {
  first <- runs[[1L]]
  every <- function(name) unlist(lapply(runs, `[[`, name))
  draws <- do.call(posterior::bind_draws, c(unname(lapply(runs, `[[`, "draws")), along = "chain"))
  program_run(first$program, first$epsilon, draws, sum(every("time")), sum(every("iterations")),
              every("accepted"), every("passes"), first$note)
}

# ---- noiseaware -------------------------------------------------------------

# Chains one after the other. Warmup is part of the time.
run_noiseaware <- function(release, epsilon, program, chains, iter, passes, seed = 1) {
  control <- if (is.null(passes)) list() else list(passes = passes)
  time <- seconds(fit <- sample_posterior(release, regression_model(), method = "augment", chains = chains, iter = iter,
                                          seed = seed, control = control))
  made <- acceptance(fit)
  program_run(program, epsilon, posterior::subset_draws(fit$draws, coefficients), time, chains * iter, made$mean, made$passes)
}

# ---- dapper -----------------------------------------------------------------

# The four functions that dapper asks for; it checks their arguments' names.
# "tuned": as few and as cheap R calls as we could manage. "matrix": in matrix
# algebra, as one writes down a regression; the same distribution and the same cost in
# principle, but R's overhead differs.
dapper_functions <- function(scale, style) {
  n <- problem$n
  clamp <- problem$half_width
  tuned <- list(
    latent = function(theta) {
      x1 <- stats::rnorm(n, problem$mean[1])
      x2 <- stats::rnorm(n, problem$mean[2])
      cbind(theta[1] + theta[2] * x1 + theta[3] * x2 + stats::rnorm(n, 0, problem$sigma), x1, x2)
    },
    posterior = function(dmat, theta) {
      x <- cbind(1, dmat[, 2:3])
      factor <- chol(crossprod(x) / problem$sigma^2 + diag(3) / problem$prior_sd^2)
      mean <- backsolve(factor, forwardsolve(t(factor), crossprod(x, dmat[, 1]) / problem$sigma^2))
      drop(mean + backsolve(factor, stats::rnorm(3)))
    },
    # y, x1, x2, y^2, y:x1, y:x2, x1^2, x1:x2, x2^2
    statistic = function(xi, sdp, i) {
      r <- pmin.int(pmax.int(xi, -clamp), clamp) / clamp
      c(r, r[1] * r, r[2] * r[2], r[2] * r[3], r[3] * r[3])
    },
    mechanism = function(sdp, sx) -sum(abs(sdp - sx)) / scale)
  if (style == "tuned") return(tuned)
  utils::modifyList(tuned, list(
    statistic = function(xi, sdp, i) {
      record <- cbind(1, t(pmin(pmax(xi, -clamp), clamp) / clamp))
      products <- crossprod(record)
      products[lower.tri(products, diag = TRUE)][-1]
    },
    mechanism = function(sdp, sx) sum(-abs(sdp - sx) / scale - log(2 * scale))))
}

# Starts at the true coefficients and drops 500 iterations: kinder than what
# noiseaware gets, which starts at a draw from the prior and drops half.
run_dapper <- function(release, epsilon, iter, seed = 1, style = "tuned") {
  f <- dapper_functions(problem$sensitivity / epsilon, style)
  model <- dapper::new_privacy(posterior_f = f$posterior, latent_f = f$latent, mechanism_f = f$mechanism,
                               statistic_f = f$statistic, npar = 3L, varnames = coefficients)
  warmup <- min(500, iter / 2)
  time <- seconds(out <- dapper::dapper_sample(model, sdp = unname(release$value), init_par = problem$beta, seed = seed,
                                               niter = iter, warmup = warmup, chains = 1))
  draws <- posterior::as_draws_array(out$chain)
  posterior::variables(draws) <- coefficients
  program_run(paste("dapper,", style), epsilon, draws, time, iter, mean(out$mean_accept))
}

# ---- Stan -------------------------------------------------------------------

compile_stan <- function() {
  # Debian's package of Boost for R points to the system's headers
  boost <- if (!dir.exists(file.path(system.file(package = "BH"), "include"))) "/usr/include"
  suppressPackageStartupMessages(library(rstan))
  rstan::stan_model("bench/regression.stan", auto_write = FALSE, boost_lib = boost)
}

# The time is that of sampling alone, without warmup and compilation.
run_stan <- function(compiled, release, epsilon, iter, centred) {
  data <- list(n = problem$n, released = unname(release$value), scale = problem$sensitivity / epsilon,
               mean_x = problem$mean, sigma = problem$sigma, centred = as.integer(centred))
  warnings <- character()
  clocked <- seconds(withCallingHandlers(
    fit <- rstan::sampling(compiled, data = data, chains = 1, iter = iter, refresh = 0, seed = 1, pars = "beta"),
    warning = function(w) {
      warnings <<- c(warnings, conditionMessage(w))
      invokeRestart("muffleWarning")
    }))
  sampling <- rstan::get_elapsed_time(fit)[1, "sample"]
  draws <- posterior::subset_draws(posterior::as_draws_array(fit), "beta")
  posterior::variables(draws) <- coefficients
  diagnostics <- rstan::get_sampler_params(fit, inc_warmup = FALSE)[[1L]]
  program_run(if (centred) "Stan, centred" else "Stan, non-centred", epsilon, draws, sampling, iter - floor(iter / 2),
              note = sprintf("leapfrog steps %s; divergent %d; at the greatest depth %d; whole call %s s",
                      format_figure(mean(diagnostics[, "n_leapfrog__"])), sum(diagnostics[, "divergent__"]),
                      sum(diagnostics[, "treedepth__"] >= 10), format_figure(clocked)))
}

# ---- tables -----------------------------------------------------------------

remarks <- function(run) {
  span <- function(x) paste(unique(format_figure(range(x))), collapse = " to ")
  parts <- c(if (length(run$accepted)) paste("records accepted", span(run$accepted)),
             if (length(run$passes)) paste("passes", span(run$passes)), run$note)
  paste(parts[nzchar(parts)], collapse = "; ")
}

cost_row <- function(run) {
  per <- run$time / run$iterations
  data.frame(epsilon = run$epsilon, program = run$program, iterations = run$iterations,
             `seconds per 10,000 iterations` = 1e4 * per,
             `ns per record and iteration` = if (grepl("Stan", run$program)) NA else 1e9 * per / problem$n,
             `min bulk ESS` = run$ess, `min bulk ESS per second` = run$ess / run$time, remarks = remarks(run),
             check.names = FALSE)
}

agreement_rows <- function(run, reference) {
  summary <- function(draws) {
    as.data.frame(posterior::summarise_draws(draws, "mean", "mcse_mean", "sd", "mcse_sd", "ess_bulk", "rhat"))
  }
  a <- summary(run$draws)
  b <- summary(reference$draws)
  data.frame(epsilon = run$epsilon, program = run$program, coefficient = a$variable, mean = a$mean,
             `MCSE of mean` = a$mcse_mean, sd = a$sd, `MCSE of sd` = a$mcse_sd, `bulk ESS` = a$ess_bulk,
             `R-hat` = formatC(a$rhat, digits = 3, format = "f"),
             `mean off, in MCSE` = signed((a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2)),
             `sd off, in MCSE` = signed((a$sd - b$sd) / sqrt(a$mcse_sd^2 + b$mcse_sd^2)), check.names = FALSE)
}

signed <- function(x) ifelse(is.na(x), "", sprintf("%+.1f", x))

# ---- the benchmark ----------------------------------------------------------

bench_regression <- function(quick = FALSE) {
  epsilons <- c(1, 10, 100, 1000)
  has_dapper <- requireNamespace("dapper", quietly = TRUE)
  has_stan <- requireNamespace("rstan", quietly = TRUE)
  if (has_stan) {
    say("compiling the Stan model")
    stan <- compile_stan()
  }
  # for each epsilon, and those of noiseaware and dapper for each round; 0: not run
  rounds <- if (quick) 1 else 4
  long_iter <- if (quick) rep(5e4, 4) else c(2e5, 2e5, 5e5, 5e5)
  plain_iter <- if (quick) rep(5e4, 4) else rep(5e5, 4)
  matrix_iter <- if (quick) 200 else 500
  dapper_iter <- if (quick) c(1000, 1000, 200, 200) else c(5000, 15000, 1500, 1500)
  centred_iter <- if (quick) c(400, 400, 0, 0) else c(10000, 10000, 0, 0)
  noncentred_iter <- if (quick) c(400, 400, 0, 0) else c(10000, 2000, 0, 0)
  sample_posterior(regression_release(1), regression_model(), method = "augment", chains = 1, iter = 10) # loads what the first call loads

  costs <- agreement <- figures <- list()
  for (at in seq_along(epsilons)) {
    epsilon <- epsilons[at]
    case <- paste("epsilon", epsilon)
    release <- regression_release(epsilon)
    # in rounds, so that a slow spell of the machine meets all programs
    parts <- lapply(seq_len(rounds), function(round) {
      say("epsilon %g, round %d", epsilon, round)
      list(call = run_noiseaware(release, epsilon, "noiseaware, the call as it is (4 x 2,000)", 4, 2000, NULL, round),
           default = run_noiseaware(release, epsilon, "noiseaware, default (chains of 10,000)", 8, 1e4, NULL, 100 + round),
           long = run_noiseaware(release, epsilon, "noiseaware, default, long chains", 1, long_iter[at], NULL, 200 + round),
           plain_default = run_noiseaware(release, epsilon, "noiseaware, plain sampler (chains of 10,000)", 8, 1e4, 0, 100 + round),
           plain = run_noiseaware(release, epsilon, "noiseaware, plain sampler, long chains", 1, plain_iter[at], 0, 300 + round),
           dapper = if (has_dapper) run_dapper(release, epsilon, dapper_iter[at], round),
           matrix = if (has_dapper) run_dapper(release, epsilon, matrix_iter, round, "matrix"))
    })
    runs <- lapply(stats::setNames(nm = names(parts[[1L]])), function(program) {
      if (!is.null(parts[[1L]][[program]])) pool_runs(lapply(parts, `[[`, program))
    })
    runs <- Filter(Negate(is.null), runs)
    if (has_stan) {
      say("epsilon %g: Stan", epsilon)
      if (centred_iter[at]) runs$centred <- run_stan(stan, release, epsilon, centred_iter[at], TRUE)
      if (noncentred_iter[at]) runs$noncentred <- run_stan(stan, release, epsilon, noncentred_iter[at], FALSE)
    }
    runs <- lapply(runs, function(run) c(run, ess = min_ess(run$draws)))
    # too few iterations of dapper to be worth comparing at the larger epsilons
    comparable <- setdiff(names(runs), c("call", "plain_default", "matrix", if (epsilon > 10) "dapper"))
    costs <- c(costs, lapply(runs, cost_row))
    agreement <- c(agreement, lapply(runs[comparable], agreement_rows, reference = runs$long))
    figures <- c(figures, regression_figures(runs, epsilon, case))
  }
  bench_result(figures, list("Cost and mixing" = do.call(rbind, unname(costs)),
                             "Do the posteriors agree?" = do.call(rbind, unname(agreement))),
               c(sprintf("n = %d, two covariates, Laplace noise of scale %g / epsilon on 9 totals, one data set, one release for each epsilon.",
                         problem$n, problem$sensitivity),
                 "Min bulk ESS is the smallest over the three coefficients, all chains of the program together. noiseaware and dapper ran in four rounds, one after the other, a chain or some in each. noiseaware: started at draws from the prior, the whole time of sample_posterior() with its set-up, warmup (half of the iterations) included. dapper: started at the true coefficients, first 500 iterations of a chain dropped, whole time. Stan: one chain, time of sampling only, no warmup, no compilation.",
                 "dapper is run with two sets of the user's functions: tuned, the cheapest R that we could write, and matrix, a regression written in matrix algebra (few iterations, for its time alone).",
                 "Same chain: dapper's effective draws are too few to be counted well in the time it was given. Its chain has the distribution of our plain sampler's, so the long run of that sampler gives its effective draws per kept iteration; the time per iteration is dapper's own (no warmup charged to it).",
                 "Off, in MCSE: difference from noiseaware's long default run over the two Monte Carlo errors; with few effective draws (ESS below 100) the error itself is badly known.",
                 "Stan is given in two forms, the records themselves as parameters (centred) and their innovations (non-centred); the target's ratio is against the faster one. At epsilon 100 and 1,000 it is too slow to be run here: its trajectories reach the greatest length, about 0.02 s an iteration, for fewer than 1 effective draw a second at epsilon 1,000."))
}

regression_figures <- function(runs, epsilon, case) {
  per <- function(run) run$time / run$iterations
  rate <- function(run) run$ess / run$time
  against_plain <- c("1" = 60, "10" = 15, "100" = 0.8, "1000" = 0.8)[[as.character(epsilon)]]
  out <- list(
    figure("seconds per 10,000 iterations, default", case, 1e4 * per(runs$default)),
    figure("seconds per 10,000 iterations, plain sampler", case, 1e4 * per(runs$plain)),
    figure("ns per record update, plain sampler", case, 1e9 * per(runs$plain) / problem$n),
    figure("min bulk ESS per second, default", case, rate(runs$default)),
    figure("min bulk ESS per second over our plain sampler's, chains of 10,000", case,
           rate(runs$default) / rate(runs$plain_default), against_plain),
    figure("min bulk ESS per second over our plain sampler's, long chains", case,
           rate(runs$long) / rate(runs$plain), against_plain))
  iteration_target <- if (epsilon == 10) 500 else NA
  ess_target <- c("1" = 20000, "10" = 5000, "100" = NA, "1000" = NA)[[as.character(epsilon)]]
  same_chain <- function(run) runs$plain$ess / (runs$plain$iterations / 2) / per(run)
  for (run in Filter(Negate(is.null), runs[c("dapper", "matrix")])) {
    out <- c(out, list(
      figure(sprintf("times faster per iteration than %s; default", run$program), case, per(run) / per(runs$default), iteration_target),
      figure(sprintf("times faster per iteration than %s; plain sampler", run$program), case, per(run) / per(runs$plain), iteration_target),
      if (epsilon <= 10 && identical(run, runs$dapper))
        figure(sprintf("min bulk ESS per second over that of %s; counted", run$program), case, rate(runs$default) / rate(run), ess_target),
      figure(sprintf("min bulk ESS per second over that of %s; same chain", run$program), case,
             rate(runs$default) / same_chain(run), ess_target)))
  }
  forms <- Filter(Negate(is.null), runs[c("centred", "noncentred")])
  if (length(forms)) {
    stan_target <- if (epsilon == 10) 250 else NA
    best <- forms[[which.max(vapply(forms, rate, 0))]]
    out <- c(out, lapply(unname(forms), function(run) {
      figure(paste0("min bulk ESS per second over ", sub("Stan,", "Stan's,", run$program),
                    if (identical(run, best)) " (its faster form)"), case,
             rate(runs$default) / rate(run), if (identical(run, best)) stan_target else NA)
    }))
  }
  Filter(Negate(is.null), out)
}

run_alone(bench_regression)
