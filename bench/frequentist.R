# confidence_set() and p_value(): is a 95% set as good as its word, and how long and quick is it beside SimBaRepro (Awan & Wang's repro samples)?
#
#   Rscript bench/frequentist.R [quick] [replicates=250] [library=/path]
#
# Coverage is the share of true null hypotheses that are not rejected at 5%: a set holds what is not rejected. `library`: where SimBaRepro is
# installed, which no other script needs; without it that part is left out. `options(mc.cores = 2)` shares settings out.

if (!exists("bench_result")) source("bench/helpers.R")

asked_number <- function(name, default) {
  given <- grep(paste0("^", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[1L]) else default
}

yes_no <- function(n, share) factor(c("no", "yes")[1 + stats::rbinom(n, 1, share)], c("no", "yes"))

# Each: a function that makes a release, the model and a true null hypothesis.
frequentist_settings <- function() {
  answer <- stat_counts(~ y, list(y = c("no", "yes")))
  pair <- stat_counts(~ y:g, list(y = c("no", "yes"), g = c("a", "b")))
  three <- stat_counts(~ y:g, list(y = c("no", "yes"), g = c("a", "b", "c")))
  independent <- function(levels) {
    function(p) {
      table <- matrix(p[seq_len(2 * levels)], 2, byrow = TRUE)
      as.vector((table - outer(rowSums(table), colSums(table)))[-1L, -1L])
    }
  }
  proportion <- function(n, share, mechanism, ...) {
    list(function() simulate_release(data.frame(y = yes_no(n, share)), answer, mechanism, ...), model_bernoulli(), c("prob[yes]" = share))
  }
  mean_of <- function(n, range, mechanism) {
    squares <- stat_sums(~ y + I(y^2), list(y = range))
    list(function() simulate_release(data.frame(y = stats::rnorm(n, 1)), squares, mechanism), model_normal(), c(mean = 1))
  }
  slope <- function(n, y, x, mechanism) {
    crossed <- stat_crossprod(y ~ x, list(y = y, x = x))
    make <- function() {
      x <- stats::rnorm(n)
      simulate_release(data.frame(x = x, y = 1 + 0.5 * x + stats::rnorm(n)), crossed, mechanism)
    }
    list(make, model_lm(), c(x = 0.5))
  }
  table <- function(n, statistic, groups, mechanism) {
    make <- function() simulate_release(data.frame(y = yes_no(n, 0.3), g = factor(sample(groups, n, TRUE), groups)), statistic, mechanism)
    list(make, model_table(), independent(length(groups)))
  }
  by_arm <- function(n, sd, sizes, of, null) {
    arms <- list(arm = c("a", "b"))
    statistic <- list(size = stat_counts(~ arm, arms), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(-2, 5))), arms))
    make <- function() {
      data <- data.frame(arm = rep(arms$arm, n), y = stats::rnorm(sum(n), 1, rep(sd, n)))
      simulate_release(data, statistic, list(size = sizes, total = mech_laplace(epsilon = 3)))
    }
    list(make, model_normal(y ~ arm), function(p) of(p) - null)
  }
  means <- function(p) p[["mean[b]"]] - p[["mean[a]"]]
  sds <- function(p) p[["sd[b]"]] / p[["sd[a]"]]
  own <- mech_custom(log_density = function(noise) -sum(abs(noise)) / 3,
                     r = function(total) total + stats::rexp(length(total), 1 / 3) * sample(c(-1, 1), length(total), TRUE))
  rate <- function() simulate_release(data.frame(k = stats::rpois(100, 3)), stat_sums(~ k, list(k = c(0, 5))), mech_laplace(epsilon = 1))
  logistic <- function() {
    x <- stats::rnorm(400)
    simulate_release(data.frame(x = x, low = stats::rbinom(400, 1, stats::plogis(x))),
                     stat_crossprod(low ~ x, list(low = c(0, 1), x = c(-2, 2))), mech_laplace(epsilon = 5))
  }
  list(
    "proportion, n = 20, epsilon 0.1" = proportion(20, 0.3, mech_discrete_laplace(epsilon = 0.1)),
    "proportion, n = 20, epsilon 1" = proportion(20, 0.1, mech_discrete_laplace(epsilon = 1)),
    "proportion, n = 10,000, epsilon 0.5" = proportion(1e4, 0.3, mech_gaussian(mu = 0.5)),
    "proportion, counts below 20 hidden, n = 100" = proportion(100, 0.85, mech_discrete_laplace(epsilon = 1) |> published(threshold = 20)),
    "proportion, n unknown, about 200" = proportion(200, 0.4, mech_discrete_laplace(epsilon = 1), neighbours = "add_remove"),
    "proportion, noise of one's own, n = 50" = proportion(50, 0.4, own),
    "mean, n = 20, epsilon 1, 18% clamped" = mean_of(20, c(0, 3), mech_laplace(epsilon = 1)),
    "mean, n = 100, epsilon 1, 18% clamped" = mean_of(100, c(0, 3), mech_laplace(epsilon = 1)),
    "mean, n = 100, epsilon 10, 18% clamped" = mean_of(100, c(0, 3), mech_laplace(epsilon = 10)),
    "mean, n = 50, epsilon 2, no clamping" = mean_of(50, c(-4, 6), mech_laplace(epsilon = 2)),
    "mean, n = 2,000, epsilon 0.5, 5% clamped" = mean_of(2000, c(-1, 3), mech_laplace(epsilon = 0.5)),
    "slope, n = 100, epsilon 2, no clamping" = slope(100, c(-5, 7), c(-4, 4), mech_laplace(epsilon = 2)),
    "slope, n = 200, epsilon 10, 10% clamped" = slope(200, c(-1, 3), c(-1.7, 1.7), mech_laplace(epsilon = 10)),
    "slope, n = 1,000, epsilon 1, 5% clamped" = slope(1000, c(-1.5, 3.5), c(-2, 2), mech_laplace(epsilon = 1)),
    "independence, n = 50, epsilon 0.5" = table(50, pair, c("a", "b"), mech_discrete_laplace(epsilon = 0.5)),
    "independence, n = 500, epsilon 1" = table(500, pair, c("a", "b"), mech_laplace(epsilon = 1)),
    "independence, three groups, n = 200, epsilon 1" = table(200, three, c("a", "b", "c"), mech_discrete_laplace(epsilon = 1)),
    "logistic slope, n = 400, epsilon 5" = list(logistic, model_logistic(), c(x = 1)),
    "rate, n = 100, epsilon 1, 10% clamped" = list(rate, model_poisson(), c(rate = 3)),
    "two means, any variances, n = 15 and 30, epsilon 3" = by_arm(c(15, 30), c(0.5, 1.5), mech_exact(), means, 0),
    "two means, noisy sizes about 50 and 100, epsilon 3" = by_arm(c(50, 100), c(1, 0.5), mech_discrete_laplace(epsilon = 1), means, 0),
    "ratio of two sds, n = 50 and 100, epsilon 3" = by_arm(c(50, 100), c(0.5, 1), mech_exact(), sds, 2),
    "independence, wrong moments, n = 100, epsilon 1" = c(table(100, pair, c("a", "b"), mech_discrete_laplace(epsilon = 1)), list(wrong = TRUE)))
}

# moments of other probabilities than those of the parameters
with_wrong_moments <- function(release, model, null, seed) {
  internal <- function(name) utils::getFromNamespace(name, "noiseaware")
  sim <- internal("new_simulator")(release, model, NULL, 199, seed)
  right <- sim$known_moments$probability
  sim$known_moments$probability <- function(theta) right(theta)^0.8 / sum(right(theta)^0.8)
  internal("null_p")(sim, internal("read_null")(null, sim, NULL))$p
}

validity_of <- function(setting, replicates) {
  p <- vapply(seq_len(replicates), function(seed) {
    set.seed(seed)
    release <- setting[[1L]]()
    if (isTRUE(setting$wrong)) return(with_wrong_moments(release, setting[[2L]], setting[[3L]], seed))
    p_value(release, setting[[2L]], setting[[3L]], replicates = 199, seed = seed)$p
  }, 0)
  c(p01 = mean(p <= 0.01), p05 = mean(p <= 0.05), p10 = mean(p <= 0.1))
}

# Examples of SimBaRepro's vignette: 50 normal records without noise, and clamped to -3 and 3 with epsilon 4; 200 repro samples; intervals of the mean and of the
# variance, and a test of the mean. With the totals of y and y^2 in place of mean and variance: both methods see the same numbers. Its regions of several
# parameters are not served here.
against_simbarepro <- function(releases, library) {
  loadNamespace("SimBaRepro", lib.loc = library)
  rows <- expand.grid(seed = seq_len(releases), private = c(TRUE, FALSE), stringsAsFactors = FALSE)
  one_release(0, TRUE) # compiles what the others use
  do.call(rbind, Map(one_release, rows$seed, rows$private))
}

one_release <- function(seed, private, n = 50) {
  peer <- asNamespace("SimBaRepro")
  set.seed(seed)
  bound <- if (private) 3 else 20
  squares <- stat_sums(~ y + I(y^2), list(y = c(-bound, bound)), rescale = FALSE, outside = if (private) "clamp" else "none")
  release <- simulate_release(data.frame(y = stats::rnorm(n, 1)), squares, if (private) mech_laplace(epsilon = 4) else mech_exact())
  set.seed(1000 + seed)
  seeds <- cbind(matrix(stats::rnorm(200 * n), 200), matrix(sample(c(-1, 1), 400, TRUE) * stats::rexp(400), 200))
  generate <- function(seeds, theta) {
    y <- pmin(pmax(theta[1L] + sqrt(theta[2L]) * seeds[, 1:n], -bound), bound)
    scale <- if (private) release$scale else c(0, 0)
    cbind(rowSums(y) + scale[[1L]] * seeds[, n + 1], rowSums(y^2) + scale[[2L]] * seeds[, n + 2])
  }
  z <- unname(release$value)
  ask <- function(question, ours, theirs) {
    ours_took <- seconds(mine <- ours())
    theirs_took <- seconds(interval <- theirs())
    if (is.null(interval)) interval <- c(NA, NA)
    data.frame(example = paste0(question, if (private) ", epsilon 4" else ", no noise"), ours = mine[[2L]] - mine[[1L]], theirs = interval[[2L]] - interval[[1L]],
               ours_covers = mine[[1L]] <= 1 && mine[[2L]] >= 1, theirs_covers = interval[[1L]] <= 1 && interval[[2L]] >= 1, seconds_ours = ours_took,
               seconds_theirs = theirs_took)
  }
  set <- function(parameter) unlist(confidence_set(release, model_normal(), parameter, replicates = 200, seed = seed)[c("lower", "upper")])
  get <- function(index) peer$get_CI(0.05, c(-5, 1e-6), c(5, 10), index, seeds, generate, z, 1e-3)
  rbind(ask("mean", function() set("mean"), function() get(1)),
        ask("variance", function() set("sd")^2, function() get(2)),
        ask("p-value of mean 0", function() c(0, p_value(release, model_normal(), c(mean = 0), replicates = 200, seed = seed)$p),
            function() c(0, peer$p_value(c(0, 1e-6), c(0, 10), seeds, generate, z)$p_val)))
}

bench_frequentist <- function(quick) {
  replicates <- as.integer(asked_number("replicates", if (quick) 20L else 1000L))
  settings <- frequentist_settings()
  rates <- parallel::mclapply(names(settings), function(name) {
    say("%s", name)
    validity_of(settings[[name]], replicates)
  }, mc.preschedule = FALSE, mc.cores = getOption("mc.cores", 1L))
  table <- data.frame(setting = names(settings), do.call(rbind, rates))
  figures <- c(
    list(figure("coverage of 95% sets", table$setting, 1 - table$p05, rep(0.935, nrow(table)))),
    lapply(c(p01 = 0.01, p05 = 0.05, p10 = 0.1), function(a) {
      rate <- table[[c("0.01" = "p01", "0.05" = "p05", "0.1" = "p10")[[as.character(a)]]]]
      worst <- which.max(rate)
      figure(sprintf("true null hypotheses with p <= %s, the most", a), table$setting[worst], rate[worst], a + 0.015, at_most = TRUE)
    }))
  details <- list("Share of true null hypotheses with p-values at most .01, .05, .1" = table)
  library <- asked_number("library", NULL)
  if (!is.null(library)) {
    peer <- against_simbarepro(if (quick) 2L else 20L, library)
    examples <- lapply(split(peer, factor(peer$example, unique(peer$example))), function(of) {
      whole <- !is.na(of$theirs)
      sums <- colSums(of[c("seconds_ours", "seconds_theirs")])
      data.frame(ours = mean(of$ours[whole]), theirs = mean(of$theirs[whole]), none = sum(!whole), seconds_ours = sums[[1L]] / nrow(of),
                 seconds_theirs = sums[[2L]] / nrow(of))
    })
    examples <- cbind(example = names(examples), do.call(rbind, examples))
    sets <- !grepl("^p-value", examples$example)
    figures <- c(figures, list(
      figure("mean length over SimBaRepro's", examples$example[sets], (examples$ours / examples$theirs)[sets], rep(1.05, sum(sets)), at_most = TRUE),
      figure("times faster than SimBaRepro", examples$example, examples$seconds_theirs / examples$seconds_ours, rep(100, nrow(examples)))))
    heading <- "SimBaRepro's examples: mean lengths (of p-values: mean p) and seconds; `none`: releases for which it finds no parameter that fits"
    details <- c(details, stats::setNames(list(examples), heading))
  }
  bench_result(figures, details, c(
    sprintf("%d replicates of each setting, 199 simulated releases each; the Monte Carlo error of a coverage is %.3f.", replicates, sqrt(0.05 * 0.95 / replicates)),
    "Not served: releases of single records. Awan and Wang's logistic regression: bench/awan_wang.R."))
}

run_alone(bench_frequentist)
