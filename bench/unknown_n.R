# What it costs not to know the number of records: seconds per effective draw with n released
# with noise of sd 1, 20 and 500 beside the statistic, over seconds with n known, which are the mean of a
# run before and of one after, so that load on the machine is on both. The median of five such runs in turns, of fifteen
# by method "augment", where they are short: chains differ by a third from seed to seed. For counts and for
# sums of normal, Poisson and exponential records (method "collapse"), for sums of Poisson and of normal records and
# a regression with a factor (method "augment"), and for a case of each sampler of method "clt". And the coverage of
# intervals in a problem of Awan & Wang: 100 answers, theta = 0.2, Laplace noise on the successes and
# on the failures, epsilon = 1 for one record added or removed, n not known.
#
#   Rscript bench/unknown_n.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

unknown_cases <- list(
  counts = list(statistic = stat_counts(~ y, list(y = c("a", "b", "c"))), model = model_categorical(), method = "collapse",
                draw = function(n) data.frame(y = sample(c("a", "b", "c"), n, TRUE, c(0.5, 0.3, 0.2)))),
  poisson = list(statistic = stat_sums(~ x, list(x = c(0, 30))), model = model_poisson(), method = "augment",
                 draw = function(n) data.frame(x = stats::rpois(n, 4))),
  `poisson total` = list(statistic = stat_sums(~ x, list(x = c(0, 30))), model = model_poisson(), method = "collapse",
                         draw = function(n) data.frame(x = stats::rpois(n, 4))),
  `exponential total` = list(statistic = stat_sums(~ x, list(x = c(0, 60))), model = model_exponential(), method = "collapse",
                             draw = function(n) data.frame(x = stats::rexp(n, 0.25))),
  totals = list(statistic = stat_sums(~ x + I(x^2), list(x = c(-6, 6)), rescale = FALSE), model = model_normal(), method = "collapse",
                draw = function(n) data.frame(x = stats::rnorm(n, 0.5, 1))),
  normal = list(statistic = stat_sums(~ x + I(x^2), list(x = c(-6, 6)), rescale = FALSE), model = model_normal(), method = "augment",
                draw = function(n) data.frame(x = stats::rnorm(n, 0.5, 1))),
  regression = list(statistic = stat_crossprod(y ~ x + g, list(y = c(-6, 6), x = c(-4, 4), g = c("a", "b"))), model = model_lm(), method = "augment",
                    draw = function(n) {
                      d <- data.frame(x = stats::rnorm(n), g = sample(c("a", "b"), n, TRUE))
                      cbind(y = d$x + (d$g == "b") + stats::rnorm(n), d)
                    })
)

unknown_cases <- c(unknown_cases, with(unknown_cases, list(
  `counts by clt` = utils::modifyList(counts, list(method = "clt")),
  `normal by clt` = utils::modifyList(totals, list(method = "clt")),
  `regression by clt, bounds that bind` = list(statistic = stat_crossprod(y ~ x, list(y = c(-2, 2), x = c(-1.5, 1.5))), model = model_lm(), method = "clt",
                                               draw = function(n) transform(data.frame(x = stats::rnorm(n)), y = x + stats::rnorm(n))),
  `regression by clt, a factor` = utils::modifyList(regression, list(method = "clt")),
  `logistic by clt` = list(statistic = stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-4, 4))), model = model_logistic(), method = "clt",
                           draw = function(n) transform(data.frame(x = stats::rnorm(n)), y = stats::rbinom(n, 1, stats::plogis(x - 0.5))))
)))

unknown_run <- function(case, n, sd, iter, seeds) {
  set.seed(n)
  noise <- mech_laplace(epsilon = 1)
  known <- simulate_release(case$draw(n), case$statistic, noise, neighbours = "add_remove")
  components <- known$value
  told <- as_release(list(t = components, size = n + round(sd)), list(t = case$statistic, size = stat_size()),
                     list(t = noise, size = mech_gaussian(sd = sd)), n = NULL, neighbours = "add_remove")
  known$n <- n
  per_draw <- function(release, seed = 1) {
    time <- seconds(fit <- suppressWarnings(sample_posterior(release, case$model, method = case$method, chains = 2, iter = iter, seed = seed)))
    ess <- vapply(posterior::variables(fit$draws), function(v) posterior::ess_bulk(posterior::extract_variable_matrix(fit$draws, v)), 0)
    of <- intersect(names(ess), fit$bound$parameters)
    list(theta = time / min(ess[of]), n = if ("n" %in% names(ess)) time / ess[["n"]] else NA, rhat = as.numeric(max(posterior::summarise_draws(fit$draws, "rhat")$rhat)))
  }
  before <- per_draw(known)$theta
  runs <- do.call(rbind, lapply(seq_len(seeds), function(seed) {
    b <- per_draw(told, seed)
    after <- per_draw(known, seed + 1)$theta
    a <- (before + after) / 2
    before <<- after
    data.frame(known = a, theta = b$theta, n = b$n, ratio = max(b$theta, b$n) / a, rhat = b$rhat)
  }))
  middle <- vapply(runs, stats::median, 0)
  data.frame(n = n, `sd of n` = sd, `known, ms a draw` = 1e3 * middle[["known"]], `unknown, ms a draw` = 1e3 * middle[["theta"]], `of n, ms a draw` = 1e3 * middle[["n"]],
             ratio = middle[["ratio"]], `of seeds` = if (seeds > 1) paste(format_figure(range(runs$ratio)), collapse = " to ") else "",
             `R-hat` = formatC(max(runs$rhat), digits = 3, format = "f"), check.names = FALSE)
}

# Share of 90% intervals that hold theta, and n. n is a whole number: the interval from one quantile to the other, both of them
# included, has more than 90% of the posterior. `rank`: that of the true n, ties broken at random, is within the middle 90%.
unknown_coverage <- function(replicates) {
  set.seed(1)
  statistic <- stat_counts(~ y, list(y = c("failure", "success")))
  time <- seconds(held <- replicate(replicates, {
    answers <- data.frame(y = sample(c("failure", "success"), 100, TRUE, c(0.8, 0.2)))
    release <- simulate_release(answers, statistic, mech_laplace(epsilon = 1), neighbours = "add_remove")
    fit <- suppressWarnings(sample_posterior(release, model_bernoulli(), chains = 1, iter = 1500, warmup = 300))
    ends <- apply(fit$draws, 3L, stats::quantile, c(0.05, 0.95), names = FALSE)
    n <- posterior::extract_variable(fit$draws, "n")
    rank <- mean(n < 100) + stats::runif(1L) * mean(n == 100)
    c(ends[1L, ] <= c(0.2, 100) & ends[2L, ] >= c(0.2, 100), rank > 0.05 && rank < 0.95, mean(n >= ends[1L, 2L] & n <= ends[2L, 2L]))
  }))
  list(theta = mean(held[1L, ]), n = mean(held[2L, ]), rank = mean(held[3L, ]), mass = mean(held[4L, ]), seconds = time)
}

# The same of the posterior of n by enumeration, without any sampling, for two priors of n.
exact_coverage <- function(replicates) {
  set.seed(2)
  cells <- expand.grid(failures = 30:140, successes = 0:70)
  n <- cells$failures + cells$successes
  log_prior <- cbind(`log-uniform` = -log(n), flat = 0 * n) - log(n + 1) # a uniform theta: every split is equally likely
  sizes <- sort(unique(n))
  told <- replicate(replicates, {
    successes <- stats::rbinom(1L, 100, 0.2)
    noisy <- c(100 - successes, successes) + stats::rexp(2L) - stats::rexp(2L)
    apply(log_prior - abs(cells$failures - noisy[1L]) - abs(cells$successes - noisy[2L]), 2L, function(log_p) {
      p <- rowsum(exp(log_p - max(log_p)), n)[, 1L]
      below <- cumsum(p) / sum(p)
      ends <- c(which(below >= 0.05)[1L], which(below >= 0.95)[1L])
      at <- match(100, sizes)
      rank <- below[at] - stats::runif(1L) * p[at] / sum(p)
      c(sizes[ends[1L]] <= 100 && sizes[ends[2L]] >= 100, rank > 0.05 && rank < 0.95, below[ends[2L]] - below[ends[1L]] + p[ends[1L]] / sum(p))
    })
  })
  data.frame(prior = colnames(log_prior), t(matrix(apply(told, 1:2, mean), 3L, dimnames = list(c("interval", "rank", "mass"), NULL))))
}

# Default calls where n is not released at all, variables in raw units and little noise: what twelve seeds had.
unknown_defaults <- function(seeds = 12) {
  cps <- get(utils::data("CPS1985", package = "AER", envir = environment()))
  cases <- list(
    "AER::CPS1985, wage ~ education + experience" =
      list(cps, stat_crossprod(wage ~ education + experience, list(wage = c(0, 50), education = c(0, 20), experience = c(0, 60)))),
    "airquality, Ozone ~ Temp" = list(stats::na.omit(datasets::airquality), stat_crossprod(Ozone ~ Temp, list(Ozone = c(0, 200), Temp = c(50, 100)))),
    "AER::CPS1985, wage ~ education + gender" =
      list(cps, stat_crossprod(wage ~ education + gender, list(wage = c(0, 50), education = c(0, 20), gender = levels(cps$gender)))),
    "MASS::nlschools, lang ~ IQ + SES, natural limits" =
      list(MASS::nlschools, stat_crossprod(lang ~ IQ + SES, list(lang = c(0, 60), IQ = c(0, 20), SES = c(0, 60)), outside = "none")),
    "datasets::iris, Sepal.Length ~ Petal.Length + Petal.Width, natural limits" =
      list(datasets::iris, stat_crossprod(Sepal.Length ~ Petal.Length + Petal.Width, list(Sepal.Length = c(0, 10), Petal.Length = c(0, 10), Petal.Width = c(0, 5)), outside = "none")))
  do.call(rbind, lapply(names(cases), function(name) {
    set.seed(1)
    release <- simulate_release(cases[[name]][[1L]], cases[[name]][[2L]], mech_laplace(epsilon = 20), neighbours = "add_remove")
    release["n"] <- list(NULL)
    runs <- do.call(rbind, lapply(seq_len(seeds), function(seed) {
      time <- seconds(fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_lm(), seed = seed))))
      told <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
      data.frame(seconds = time, rhat = as.numeric(max(told$rhat)), ess = as.numeric(min(told$ess_bulk)))
    }))
    data.frame(problem = name, seconds = stats::median(runs$seconds), `R-hat` = stats::median(runs$rhat), `largest R-hat` = max(runs$rhat),
               `ESS/s` = stats::median(runs$ess / runs$seconds), check.names = FALSE)
  }))
}

bench_unknown_n <- function(quick = FALSE) {
  unknown_run(unknown_cases$counts, 1e3, 1, 20000, 1) # what R sets up once
  rows <- do.call(rbind, lapply(names(unknown_cases), function(name) {
    do.call(rbind, lapply(if (quick) 1e3 else c(1e3, 1e5), function(n) {
      do.call(rbind, lapply(c(1, 20, 500), function(sd) {
        say("unknown n: %s, n = %g, sd %g", name, n, sd)
        long <- unknown_cases[[name]]$method == "augment" && n > 1e4
        augment <- unknown_cases[[name]]$method == "augment"
        iter <- if (long) 1500 else if (augment) 6000 else 20000
        cbind(case = name, unknown_run(unknown_cases[[name]], n, sd, iter, seeds = if (long) 1 else if (augment) 15 else 5))
      }))
    }))
  }))
  replicates <- if (quick) 100 else 1000
  covered <- unknown_coverage(replicates)
  bench_result(
    c(Map(function(case, ratio) figure("unknown n over known n, seconds per effective draw", case, ratio, 1.5, at_most = TRUE),
          sprintf("%s, n = %s, sd %g", rows$case, format_figure(rows$n), rows$`sd of n`), rows$ratio),
      list(figure("coverage of 90% intervals", "theta", covered$theta), figure("coverage of 90% intervals", "n", covered$n),
           figure("posterior probability of these intervals", "n", covered$mass),
           figure("rank of the truth in the middle 90%, ties at random", "n", covered$rank),
           figure("seconds for its replicates", sprintf("%d", replicates), covered$seconds, 20, at_most = TRUE))),
    list("Seconds per effective draw" = rows, "Intervals of n by enumeration" = exact_coverage(10 * replicates),
         "Default calls in raw units, n not released, epsilon = 20" = unknown_defaults(if (quick) 2L else 12L)),
    c("Noise of the statistic: Laplace, epsilon = 1 for one record added or removed; n with Gaussian noise beside it.",
      "The slowest of the parameters and n, over the slowest parameter with n known: the mean of a run before and of one after.",
      "Medians of five seeds; by method \"augment\" of fifteen, of one with 100,000 records; the largest R-hat.",
      "Coverage at theta = 0.2, n = 100: flat prior of theta, log-uniform prior of n; one chain of 1,500 iterations for each replicate."))
}

run_alone(bench_unknown_n)
