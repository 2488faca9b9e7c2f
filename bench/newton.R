# Newton proposals of a response's coefficients given the records (src/base/newton_proposal.c) against the random walks that they stand in for.
#
#   walks     effective draws a second where an update is random walks alone
#   Newton    the same with a Newton proposal and a walk for them
#   gain      of the effective draws a second
#   draws     gain of the effective draws an iteration
#   accepted  share of the Newton proposals
#
# All go on from the same warmed-up state, with one round an iteration. The least effective draws (bulk) of all coefficients; medians
# of the seeds, each with data of its own.
#
#   Rscript bench/newton.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

newton_levels <- c("none", "some", "much", "most")
newton_families <- list(
  cloglog = list(binomial("cloglog"), c(FALSE, TRUE), function(eta, n) stats::runif(n) < 1 - exp(-exp(eta - 0.5))),
  Poisson = list(poisson(), c(0, 20), function(eta, n) stats::rpois(n, exp(0.5 + eta))),
  `negative binomial` = list("negative_binomial", c(0, 20), function(eta, n) stats::rnbinom(n, size = 2, mu = exp(0.5 + eta))),
  Gamma = list(Gamma("log"), c(0, 10), function(eta, n) stats::rgamma(n, 4, 4 / exp(0.5 + 0.5 * eta))),
  `ordered logit` = list("cumulative", newton_levels, function(eta, n) cut(eta + stats::rlogis(n), c(-Inf, -1, 0.2, 1.2, Inf), newton_levels)),
  `ordered probit` = list("cumulative_probit", newton_levels, function(eta, n) cut(eta + stats::rnorm(n), c(-Inf, -1, 0.2, 1.2, Inf), newton_levels)),
  categorical = list("categorical", newton_levels,
                     function(eta, n) newton_levels[max.col(cbind(0, eta, 0.3 - eta, 0.5 * eta - 0.5) - log(-log(stats::runif(4 * n))))]))

newton_release <- function(case, n, epsilon, seed) {
  set.seed(seed)
  x <- matrix(stats::rnorm(3 * n), n, dimnames = list(NULL, paste0("x", 1:3)))
  y <- case[[3L]](drop(x %*% c(0.6, -0.4, 0.2)), n)
  bounds <- c(list(y = case[[2L]]), stats::setNames(rep(list(c(-4, 4)), 3L), colnames(x)))
  simulate_release(data.frame(y = y, x), stat_crossprod(stats::reformulate(colnames(x), "y"), bounds), mech_laplace(epsilon = epsilon))
}

# One round an iteration, and Newton proposals or none; their state comes last in that of the update.
newton_set <- function(fit, proposes) {
  for (k in seq_along(fit$chains)) {
    state <- fit$chains[[k]]$state
    if (length(state$rounds)) state$rounds[1L] <- 1
    state$update[length(state$update) - 2:0] <- c(proposes, 0, 0)
    fit$chains[[k]]$state <- state
  }
  fit
}

newton_least <- function(draws, fit) {
  coefficients <- grep("^(mean|cov)\\[", fit$bound$parameters, value = TRUE, invert = TRUE)
  min(vapply(coefficients, function(v) posterior::ess_bulk(posterior::extract_variable_matrix(draws, v)), 0))
}

newton_seed <- function(case, n, epsilon, seed, iterations) {
  fit <- suppressMessages(suppressWarnings(
    sample_posterior(newton_release(case, n, epsilon, seed), model_glm(family = case[[1L]]), method = "augment", chains = 2, iter = 1010, warmup = 1000, seed = seed)))
  run <- function(proposes) {
    before <- newton_set(fit, proposes)
    used <- seconds(after <- suppressMessages(suppressWarnings(extend(before, iterations))))
    draws <- posterior::subset_draws(posterior::as_draws_array(after), iteration = 10L + seq_len(iterations))
    counts <- vapply(after$chains, function(chain) utils::tail(chain$state$update, 2L), numeric(2))
    c(effective = newton_least(draws, fit), seconds = used, accepted = sum(counts[2L, ]) / sum(counts[1L, ]))
  }
  walks <- run(0)
  newton <- run(1)
  c(walks = walks[["effective"]] / walks[["seconds"]], Newton = newton[["effective"]] / newton[["seconds"]],
    gain = newton[["effective"]] / newton[["seconds"]] / walks[["effective"]] * walks[["seconds"]],
    draws = newton[["effective"]] / walks[["effective"]], accepted = newton[["accepted"]])
}

newton_row <- function(family, n, epsilon, quick) {
  say("%s, n = %d, epsilon %g", family, n, epsilon)
  seeds <- if (quick) 1L else 1:3
  each <- vapply(seeds, function(seed) newton_seed(newton_families[[family]], n, epsilon, seed, if (quick) 200L else 1000L), numeric(5))
  data.frame(response = family, n = n, epsilon = epsilon, t(apply(each, 1L, stats::median)))
}

bench_newton <- function(quick = FALSE) {
  rows <- do.call(rbind, lapply(names(newton_families), function(family) {
    if (quick) return(newton_row(family, 500L, 10, quick))
    rbind(newton_row(family, 1000L, 1, quick), newton_row(family, 1000L, 10, quick), newton_row(family, 1000L, 100, quick))
  }))
  bench_result(
    list(figure("gain in effective draws a second", "median of the rows", stats::median(rows$gain)),
         figure("least gain in effective draws a second", "rows", min(rows$gain)),
         figure("greatest gain in effective draws a second", "rows", max(rows$gain))),
    list("3 covariates, Laplace noise, coefficients; medians of the seeds" = rows),
    c("Gains compare 2 chains of 1,000 iterations each, warmup apart: effective draws have a standard error of about a tenth.",
      "Binary responses with a logit or probit link have latent variables instead."))
}

run_alone(bench_newton)
