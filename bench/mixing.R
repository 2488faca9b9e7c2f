# What interweaving gains over the plain sampler (Ju et al. 2022, Algorithm 1):
# effective draws per second of method "augment" with its default settings,
# warmup included, over those with control = list(passes = 0). The same release
# for both, model by epsilon by number of records.
#
#   Rscript bench/mixing.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

mixing_problems <- list(
  normal = list(model = model_normal(), statistic = stat_sums(~ x + I(x^2), list(x = c(-5, 5)), rescale = FALSE),
                data = function(n) data.frame(x = stats::rnorm(n, 0.5, 1.2))),
  exponential = list(model = model_exponential(), statistic = stat_sums(~ x, list(x = c(0, 10))),
                     data = function(n) data.frame(x = stats::rexp(n))),
  Poisson = list(model = model_poisson(), statistic = stat_sums(~ x, list(x = c(0, 20))),
                 data = function(n) data.frame(x = stats::rpois(n, 3))),
  logistic = list(model = model_logistic(), statistic = stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-4, 4))),
                  data = function(n) {
                    x <- stats::rnorm(n)
                    data.frame(y = stats::rbinom(n, 1, stats::plogis(0.5 + x)), x)
                  }),
  `naive Bayes` = list(model = model_naive_bayes("y"),
                       statistic = stat_counts(~ y:x1 + y:x2, list(y = letters[1:3], x1 = c("u", "v", "w"), x2 = c("u", "v", "w"))),
                       data = function(n) {
                         y <- sample(3, n, TRUE, c(0.5, 0.3, 0.2))
                         feature <- function() c("u", "v", "w")[1 + (y + sample(0:2, n, TRUE, c(0.6, 0.2, 0.2))) %% 3]
                         data.frame(y = letters[y], x1 = feature(), x2 = feature())
                       }),
  `linear, all unknown` = list(model = model_lm(), statistic = stat_crossprod(y ~ x, list(y = c(-5, 5), x = c(-4, 4))),
                               data = function(n) {
                                 x <- stats::rnorm(n)
                                 data.frame(y = 0.5 + x + stats::rnorm(n), x)
                               }))

mixing_targets <- c("normal", "exponential", "Poisson", "logistic") # at n = 1,000, epsilon = 0.1: 20

# Effective draws of a chain that hardly moves are overestimated when counted
# from the chain itself. Here from its jumps, in units of a posterior that is
# known from other draws: an AR(1) distribution with that lag, the least autocorrelation
# that a reversible chain with such jumps can have.
jump_ess <- function(draws, reference) {
  min(vapply(posterior::variables(draws), function(v) {
    known <- sort(as.vector(posterior::extract_variable_matrix(reference, v)))
    x <- posterior::extract_variable_matrix(draws, v)
    rank <- (findInterval(x, known) + 0.5) / (length(known) + 1)
    score <- matrix(stats::qnorm(rank), nrow(x))
    lag <- 1 - mean((score[-1L, ] - score[-nrow(score), ])^2) / 2
    length(x) * (1 - lag) / (1 + lag)
  }, 0))
}

# `count` points to start from: draws of a fit
starts_from <- function(draws, count) {
  m <- posterior::as_draws_matrix(draws)
  lapply(round(seq(1, nrow(m), length.out = count)), function(i) stats::setNames(as.vector(m[i, ]), colnames(m)))
}

# Both samplers in turns, with other seeds, until each has run for `least`
# seconds; a call is sample_posterior() as it is
mixing_cell <- function(name, epsilon, n, least) {
  p <- mixing_problems[[name]]
  set.seed(2022 + n)
  release <- simulate_release(p$data(n), p$statistic, mech_laplace(epsilon = epsilon))
  run <- function(...) sample_posterior(release, p$model, method = "augment", ...)
  fits <- plains <- list()
  time <- plain_time <- 0
  while (length(fits) < 2 || (min(time, plain_time) < least && length(fits) < 40)) {
    at <- length(fits) + 1
    time <- time + seconds(fits[[at]] <- run(seed = at))
    # the plain sampler is spared the way to the posterior
    start <- starts_from(fits[[at]]$draws, 4)
    plain_time <- plain_time + seconds(plains[[at]] <- run(seed = 1000 + at, control = list(passes = 0), init = start))
  }
  known <- do.call(posterior::bind_draws, c(lapply(fits, `[[`, "draws"), along = "chain"))
  each <- function(list, f) vapply(list, f, 0)
  ess <- sum(each(fits, function(f) min_ess(f$draws)))
  own <- each(plains, function(f) min_ess(f$draws))
  plain_ess <- sum(pmin(own, each(plains, function(f) jump_ess(f$draws, known))))
  made <- do.call(rbind, lapply(fits, acceptance))
  data.frame(model = name, n = n, epsilon = epsilon, calls = length(fits), `ESS per second` = ess / time,
             `plain, ESS per second` = plain_ess / plain_time, ratio = (ess / time) / (plain_ess / plain_time),
             `ESS of a call` = ess / length(fits), `plain, ESS of a call` = plain_ess / length(fits),
             `from its own chains` = mean(own), `time, ratio` = time / plain_time,
             passes = mean(made$passes), parts = mean(made$parts), kept = mean(made$share > 0),
             `worst R-hat` = formatC(max(posterior::summarise_draws(known, "rhat")$rhat), digits = 3, format = "f"),
             check.names = FALSE)
}

bench_mixing <- function(quick = FALSE) {
  mixing_cell("normal", 1, 100, 0) # loads what the first call loads
  sizes <- if (quick) c(100, 1000) else c(100, 1000, 10000)
  cells <- expand.grid(epsilon = c(0.1, 1, 10, 100), n = sizes, model = names(mixing_problems), stringsAsFactors = FALSE)
  rows <- do.call(rbind, Map(function(model, epsilon, n) {
    say("%s, epsilon %g, n = %d", model, epsilon, n)
    mixing_cell(model, epsilon, n, if (quick) 0.1 else 0.3)
  }, cells$model, cells$epsilon, cells$n))
  figures <- Map(function(model, n, epsilon, ratio) {
    hard <- epsilon == 0.1 && n == 1000 && model %in% mixing_targets
    figure("min bulk ESS per second over the plain sampler's", sprintf("%s, n = %s, epsilon %g", model, format_figure(n), epsilon),
           ratio, if (hard) 20 else 0.8)
  }, rows$model, rows$n, rows$epsilon, rows$ratio)
  bench_result(unname(figures), list("Both samplers" = rows),
               c("One release a row, the same for both; Laplace noise; sample_posterior() as it is, 4 x 2,000 iterations, four chains one after the other; processor seconds of the whole call, set-up and warmup included. Calls of both samplers in turns, each with a seed of its own, until both had run for 0.3 seconds, two calls at least. The default starts at draws from the prior, the plain sampler at draws of the default's fit.",
                 "Effective draws: the smallest bulk ESS over all parameters, of each call. For the plain sampler it is not above that of an AR(1) distribution with its squared jumps and the posterior's spread as the default's draws have it: chains that hardly move overrate their own effective draws (shown beside). A call keeps 4,000 draws. passes: non-centred ones an iteration; parts: iterations that a sweep is spread over; kept: share of the chains some of whose sweeps keep a part of the innovations. R-hat over all calls."))
}

run_alone(bench_mixing)
