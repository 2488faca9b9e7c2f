# Method "clt" for regression in d coefficients (intercept included): its moves
# against the papers' Gibbs sampler and against "collapse", the cost of an iteration
# against one dpotrf of the statistic's size, and against n.
#
#   Rscript bench/clt_regression.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

clt_problem <- function(d, n = 1000, epsilon = 0.1) {
  p <- d - 1
  x <- paste0("x", seq_len(p))
  statistic <- stat_crossprod(stats::as.formula(paste("y ~", paste(x, collapse = " + "))),
                              stats::setNames(rep(list(c(-10, 10)), d), c("y", x)))
  distribution <- fixed(list(mean = rep(0.3, p), cov = diag(p) + 0.2))
  truth <- model_lm(prior = fixed(rep(0.5, d)), sigma = fixed(1), covariates = distribution)
  set.seed(2019)
  release <- if (n > 1e6) {
    # too many records to draw: the totals of 1,000, scaled
    small <- simulate_release(truth, statistic, mech_laplace(epsilon = epsilon), n = 1000)
    as_release(small$value * n / 1000, statistic, mech_laplace(epsilon = epsilon), n)
  } else {
    simulate_release(truth, statistic, mech_laplace(epsilon = epsilon), n = n)
  }
  list(d = d, size = length(statistic$components), epsilon = epsilon, release = release,
       models = list(`normal, unknown (update)` = model_lm(), `known (prior)` = model_lm(covariates = distribution)))
}

clt_fit <- function(problem, model, control, warmup, thin = 1) {
  sample_posterior(problem$release, model, method = "clt", chains = 1, iter = warmup + thin, warmup = warmup, thin = thin, seed = 1,
                   control = control)
}

# processor seconds of an iteration after warmup, next to no draw kept
iteration_seconds <- function(fit, more) (seconds(extend(fit, 1 + more)) - seconds(extend(fit, 1))) / more

# "noncentred" is the default with up to 40 unknown parameters, else "nuts"
samplers <- list(gibbs = list(sampler = "gibbs"), marginal = list(sampler = "marginal"), noncentred = list(sampler = "noncentred"),
                 nuts = list(sampler = "nuts"))

# ---- moves against the papers' sampler ------------------------------------------

# Several seeds, the samplers in turn; each gets about the same time. "collapse" has its
# own.
effective_rates <- function(problem, source, iterations, seeds, warmup = 5000) {
  rows <- lapply(seq_len(seeds), function(seed) {
    lapply(names(iterations), function(sampler) {
      count <- iterations[[sampler]]
      collapse <- sampler == "collapse"
      fit <- sample_posterior(problem$release, problem$models[[source]], method = if (collapse) "collapse" else "clt", chains = 1,
                              iter = warmup + 1, warmup = warmup, seed = seed, control = if (collapse) list() else samplers[[sampler]])
      time <- seconds(long <- extend(fit, count))
      data.frame(d = problem$d, n = problem$release$n, epsilon = problem$epsilon, covariates = source, sampler = sampler, iterations = count,
                 `us an iteration` = 1e6 * time / count, `min ESS` = min_ess(long$draws), `min ESS per second` = min_ess(long$draws) / time,
                 check.names = FALSE)
    })
  })
  rows <- do.call(rbind, unlist(rows, recursive = FALSE))
  out <- stats::aggregate(rows[c("us an iteration", "min ESS", "min ESS per second")],
                          rows[c("d", "n", "epsilon", "covariates", "sampler", "iterations")], stats::median)
  out[order(match(out$sampler, names(iterations))), ]
}

rate_ratio <- function(rates, sampler, other = "gibbs") {
  rate <- stats::setNames(rates[["min ESS per second"]], rates$sampler)
  rate[[sampler]] / rate[[other]]
}

# everything unknown, growing d
growth_rates <- function(quick) {
  iterations <- list(`5` = c(gibbs = 30000, marginal = 30000, noncentred = 20000, collapse = 4000),
                     `10` = c(gibbs = 12000, marginal = 10000, noncentred = 5000, nuts = 4000, collapse = 1000),
                     `20` = c(noncentred = 1000, nuts = 2000))
  cases <- expand.grid(d = if (quick) 5 else c(5, 10, 20), n = c(1000, 1e5))
  do.call(rbind, Map(function(d, n) {
    effective_rates(clt_problem(d, n, 1), "normal, unknown (update)", as.list(iterations[[as.character(d)]] * if (quick) 0.1 else 1),
                    seeds = if (quick || d == 20) 1 else 3)
  }, cases$d, cases$n))
}

# ---- cost of an iteration ----------------------------------------------------------

compile_cholesky <- function() {
  folder <- tempfile("cholesky")
  dir.create(folder)
  file.copy("bench/cholesky.c", folder)
  old <- setwd(folder)
  on.exit(setwd(old))
  writeLines("PKG_LIBS = $(LAPACK_LIBS) $(BLAS_LIBS) $(FLIBS)", "Makevars")
  log <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "cholesky.so", "cholesky.c"), stdout = TRUE, stderr = TRUE)
  if (!file.exists("cholesky.so")) stop("bench/cholesky.c did not compile:\n", paste(log, collapse = "\n"), call. = FALSE)
  dyn.load(file.path(folder, "cholesky.so"))
}

cholesky_seconds <- function(size, work) {
  a <- diag(size) + 0.5
  times <- max(3, ceiling(work / size^3))
  time <- seconds(done <- .C("factor_times", a, a, size, as.integer(times), info = 0L))
  stopifnot(done$info == 0L)
  time / times
}

# one dpotrf and the iterations in turn, medians
cost_row <- function(problem, source, work) {
  model <- problem$models[[source]]
  fits <- lapply(samplers[c("gibbs", "marginal", "noncentred")], function(control) clt_fit(problem, model, control, 10, 1000))
  guess <- cholesky_seconds(problem$size, work / 10)
  more <- max(3, ceiling(work / 1e9 / guess / 4))
  times <- replicate(5, c(cholesky_seconds(problem$size, work), vapply(fits, iteration_seconds, 0, more)))
  time <- apply(times, 1, stats::median)
  data.frame(d = problem$d, statistics = problem$size, covariates = source, `us a dpotrf` = 1e6 * time[[1]],
             `us an iteration, gibbs` = 1e6 * time[[2]], `marginal` = 1e6 * time[[3]], `non-centred` = 1e6 * time[[4]],
             moves = fits$noncentred$problem$passes, `non-centred / dpotrf` = time[[4]] / time[[1]], check.names = FALSE)
}

# time at n = 10^9 over that at 10^3, in turn
size_ratio <- function(source, count) {
  fits <- lapply(c(1e3, 1e9), function(n) {
    problem <- clt_problem(2, n)
    clt_fit(problem, problem$models[[source]], list(sampler = "noncentred"), 2000, count)
  })
  times <- replicate(9, vapply(fits, function(f) seconds(extend(f, count - 1)), 0))
  stats::median(times[2, ] / times[1, ])
}

# seconds an iteration and memory at d = 100, in a process of its own
large_row <- function(d) {
  code <- sprintf('source("bench/helpers.R"); source("bench/clt_regression.R"); large_run(%d)', d)
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE)
  utils::read.csv(text = utils::tail(out, 2), check.names = FALSE)
}

large_run <- function(d) {
  problem <- clt_problem(d)
  fit <- clt_fit(problem, problem$models[[1]], list(sampler = "gibbs"), 1)
  time <- seconds(extend(fit, 2)) / 2
  peak <- if (file.exists("/proc/self/status")) grep("^VmHWM", readLines("/proc/self/status"), value = TRUE) else NA
  utils::write.csv(data.frame(d = d, statistics = problem$size, sampler = fit$problem$sampler, `seconds an iteration` = time,
                              `peak memory, GB` = as.numeric(gsub("[^0-9]", "", peak)) / 2^20, check.names = FALSE), row.names = FALSE)
}

bench_clt_regression <- function(quick = FALSE) {
  say("moves against Gibbs")
  problem <- clt_problem(2)
  iterations <- lapply(list(gibbs = 4e5, marginal = 3e5, noncentred = 2e5), function(i) ceiling(i * if (quick) 0.05 else 1))
  sources <- names(problem$models)
  rates <- lapply(stats::setNames(nm = sources), function(s) effective_rates(problem, s, iterations, if (quick) 1 else 3))
  say("growth of what mixes")
  growth <- growth_rates(quick)
  say("time against n")
  ratios <- vapply(sources, size_ratio, 0, if (quick) 1e4 else 2e5)
  say("cost of an iteration")
  loaded <- compile_cholesky()
  on.exit(dyn.unload(loaded[["path"]]))
  sizes <- if (quick) c(2, 10) else c(2, 5, 10, 20, 30)
  costs <- do.call(rbind, lapply(sizes, function(d) {
    do.call(rbind, lapply(sources, function(s) cost_row(clt_problem(d), s, if (quick) 2e8 else 1e9)))
  }))
  say("d = 100")
  large <- if (!quick) large_row(100)
  bounded <- costs$d %in% c(10, 30)
  bench_result(
    c(lapply(sources, function(s) figure("marginal step over the papers' Gibbs, min ESS per second", paste("d = 2, covariates", s), rate_ratio(rates[[s]], "marginal"), 5)),
      lapply(sources, function(s) figure("non-centred moves over the papers' Gibbs, min ESS per second", paste("d = 2, covariates", s), rate_ratio(rates[[s]], "noncentred"), 5)),
      lapply(split(growth, list(growth$d, growth$n), drop = TRUE), function(g) {
        if ("marginal" %in% g$sampler) {
          figure("non-centred moves over the marginal step, min ESS per second", sprintf("d = %d, n = %s, covariates normal, unknown", g$d[1], format(g$n[1], big.mark = ",", scientific = FALSE)),
                 rate_ratio(g, "noncentred", "marginal"))
        }
      }),
      lapply(sources, function(s) figure("time at n = 10^9 over that at 10^3", paste("d = 2, covariates", s), ratios[[s]], 1.2, TRUE)),
      Map(function(d, s, r) figure("an iteration over one dpotrf", sprintf("d = %d, covariates %s", d, s), r, 6, TRUE),
          costs$d[bounded], costs$covariates[bounded], costs[["non-centred / dpotrf"]][bounded]),
      if (!is.null(large)) list(figure("peak memory in GB, d = 100", "covariates normal, unknown", large[["peak memory, GB"]], 4, TRUE))),
    c(list("Effective draws, d = 2" = do.call(rbind, unname(rates)), "Effective draws, everything unknown, epsilon = 1" = growth,
           "Growth with d" = costs),
      if (!is.null(large)) list("d = 100" = large)),
    c("Covariates: normal with unknown mean and covariance, which are drawn too; or their moments known. d counts the intercept; d (d + 1) / 2 + d statistics.",
      "A dpotrf is R's own LAPACK's, on a matrix of the statistic's size, copying it included. An iteration has one; that of the marginal sampler one more for each of its moves.",
      "The non-centred sampler, the default, makes as many moves in an iteration as its table says; d = 20 has 230 unknown parameters and is far from mixing in so few iterations. With more than 1,000 (d = 100: 5,150) the default is the Gibbs sampler."))
}

run_alone(bench_clt_regression)
