# private_test() and confidence_set() beside published private tests at the same privacy budget: is a test as powerful, a set as short?
#
#   Rscript bench/power.R [quick]
#
# Peers, written here from their papers:
#   UMP      Awan & Slavkovic (2018): a proportion from a count with Tulap noise; the two-sided p-value is that of the distance from n theta
#   MCIndep  Gaboardi, Lim, Rogers & Vadhan (2016): chi-squared statistic of a noisy table, its distribution by simulation from fitted margins. It sees the
#            very numbers that ours sees.
#   ranks    Couch, Kazan, Shi, Bray & Groce (2019): the Mann-Whitney statistic with noise scaled to the larger group, whose size is released as well.
#            (epsilon, 1e-6)-differentially private. How the budget is split is chosen for each n by its power.
#   splits   Kazan, Shi, Groce & Bray (2023): "test of tests": a t-test in each of m disjoint parts of the data, and the number of rejections tested as by
#            UMP. m and the level in the parts are those of most power against the true difference, which nobody knows; its power is computed.

if (!exists("bench_result")) source("bench/helpers.R")

# ---- Tulap noise: a discrete Laplace number and a uniform one on [-1/2, 1/2] ---------------------

p_tulap <- function(x, epsilon) {
  q <- exp(-epsilon)
  k <- round(x)
  mass <- (1 - q) / (1 + q) * q^abs(k)
  below <- ifelse(k <= 0, q^(1 - k) / (1 + q), 1 - q^k / (1 + q)) # of discrete Laplace noise below k
  below + mass * (x - k + 0.5)
}

# P(S + noise >= z), S binomial
tail_of <- function(z, n, probability, epsilon) {
  vapply(z, function(one) sum(stats::dbinom(0:n, n, probability) * (1 - p_tulap(one - 0:n, epsilon))), 0)
}

# where the p-value is at least 1 - level, on a grid with linear interpolation
ump_interval <- function(z, n, epsilon, level = 0.95) {
  theta <- seq(0, 1, length.out = 401)
  s <- 0:n
  p <- vapply(theta, function(one) {
    away <- abs(z - n * one)
    sum(stats::dbinom(s, n, one) * (1 - p_tulap(n * one + away - s, epsilon) + p_tulap(n * one - away - s, epsilon)))
  }, 0) - (1 - level)
  inside <- which(p >= 0)
  if (length(inside) == 0L) return(rep(theta[which.max(p)], 2L))
  end <- function(at, to) if (to < 1L || to > length(theta)) theta[at] else theta[at] + (theta[to] - theta[at]) * p[at] / (p[at] - p[to])
  c(end(min(inside), min(inside) - 1L), end(max(inside), max(inside) + 1L))
}

answer <- stat_counts(~ y, list(y = c("no", "yes")))

# mean lengths over all counts and noises
lengths_of <- function(n, share, epsilon) {
  noise <- -ceiling(12 / epsilon):ceiling(12 / epsilon)
  q <- exp(-epsilon)
  value <- as.vector(outer(0:n, noise, `+`))
  weight <- as.vector(outer(stats::dbinom(0:n, n, share), (1 - q) / (1 + q) * q^abs(noise)))
  total <- tapply(weight, value, sum)
  total <- total[total > 1e-6]
  ours <- vapply(as.numeric(names(total)), function(w) {
    release <- as_release(c("y=yes" = w), answer, mech_discrete_laplace(scale = 1 / epsilon), n = n)
    set <- confidence_set(release, model_bernoulli(), "prob", seed = 1)
    set$upper - set$lower
  }, 0)
  uniform <- (seq_len(8) - 0.5) / 8 - 0.5
  theirs <- vapply(as.numeric(names(total)), function(w) mean(vapply(w + uniform, function(z) diff(ump_interval(z, n, epsilon)), 0)), 0)
  c(ours = sum(total * ours), theirs = sum(total * theirs)) / sum(total)
}

# ---- independence of two binary variables ----------------------------------------------------------

pair <- stat_counts(~ a:b, list(a = c("u", "v"), b = c("u", "v")))

# rows are tables (a cell a column, b fastest); NA where a fitted cell is below 5, as the paper asks
chi_squared <- function(tables) {
  fitted <- pmax(tables, 0)
  n <- rowSums(fitted)
  first <- (fitted[, 1] + fitted[, 2]) / n
  second <- (fitted[, 1] + fitted[, 3]) / n
  expected <- n * cbind(first * second, first * (1 - second), (1 - first) * second, (1 - first) * (1 - second))
  statistic <- rowSums((tables - expected)^2 / expected)
  statistic[apply(expected, 1L, min) < 5] <- NA
  list(statistic = statistic, expected = expected)
}

rlaplace <- function(n, scale) scale * stats::rexp(n) * sample(c(-1, 1), n, TRUE)

mc_independent <- function(table, n, scale, simulated = 199) {
  seen <- chi_squared(rbind(table))
  if (is.na(seen$statistic)) return(FALSE)
  fresh <- t(stats::rmultinom(simulated, n, seen$expected)) + rlaplace(4 * simulated, scale)
  null <- chi_squared(fresh)$statistic
  null[is.na(null)] <- -Inf # that table would not reject
  mean(c(null, seen$statistic) >= seen$statistic) <= 0.05
}

independence_power <- function(n, dependence, epsilon, replicates) {
  chance <- 0.25 + c(1, -1, -1, 1) * dependence
  mechanism <- mech_laplace(epsilon = epsilon)
  rejected <- vapply(seq_len(replicates), function(seed) {
    set.seed(seed)
    table <- as.vector(stats::rmultinom(1, n, chance)) + rlaplace(4, 2 / epsilon)
    release <- as_release(stats::setNames(table, pair$components), pair, mechanism, n = n)
    c(private_test(release, a ~ b, interval = FALSE, replicates = 199, seed = seed)$p.value <= 0.05, mc_independent(table, n, 2 / epsilon))
  }, c(NA, NA))
  rowMeans(rejected)
}

# ---- two normal groups ---------------------------------------------------------------------------------

rank_statistic <- function(y, first) {
  ranks <- rank(y)
  m <- sum(first)
  u <- sum(ranks[first]) - m * (m + 1) / 2
  min(u, m * (length(y) - m) - u)
}

# the noisy statistic and the noisy size of the smaller group
noisy_ranks <- function(u, m, n, epsilon, share, delta = 1e-6) {
  size <- m + rlaplace(length(u), 1 / (share * epsilon))
  least <- pmax(ceiling(size + log(2 * delta) / (share * epsilon)), 0)
  list(u = u + rlaplace(length(u), (n - least) / ((1 - share) * epsilon)), size = size)
}

ranks_reject <- function(y, first, epsilon, share, simulated = 199) {
  n <- length(y)
  m <- min(sum(first), sum(!first))
  seen <- noisy_ranks(rank_statistic(y, first), m, n, epsilon, share)
  size <- min(max(round(seen$size), 1), floor(n / 2))
  u <- stats::rwilcox(simulated, size, n - size)
  null <- noisy_ranks(pmin(u, size * (n - size) - u), size, n, epsilon, share)$u
  mean(c(null, seen$u) <= seen$u) <= 0.05
}

# the greatest power of the test of tests, groups of half of the records each
splits_power <- function(n, difference, epsilon) {
  best <- 0
  for (m in unique(round(exp(seq(log(2), log(n / 4), length.out = 25))))) for (level in c(0.05, 0.1, 0.2, 0.3, 0.4, 0.5)) {
    each <- stats::power.t.test(floor(n / m / 2), difference, sig.level = level, strict = TRUE)$power
    excess <- function(z) tail_of(z, m, level, epsilon) - 0.05
    cut <- stats::uniroot(excess, c(-20 / epsilon, m + 20 / epsilon), tol = 1e-8)$root
    best <- max(best, tail_of(cut, m, each, epsilon))
  }
  best
}

# Two releases of ours: the totals of a linear regression, which answer other questions, too; and the group by the value in three intervals, whose counts share
# a sensitivity of 2 and are tested for a trend.
# `cuts` about the middle of the means: c(-1.2, -0.4, 0.4, 1.2) makes five intervals.
means_power <- function(n, difference, epsilon, replicates, shares = c(0.1, 0.3, 0.5, 0.7), cuts = c(-0.5, 0.5)) {
  intervals <- paste0("interval", 0:length(cuts))
  statistic <- stat_crossprod(y ~ g, list(y = c(-3, 3) + c(0, difference), g = c("a", "b")))
  counts <- stat_counts(~ g:y, list(g = c("a", "b"), y = intervals))
  in_intervals <- function(y) cut(y, c(-Inf, difference / 2 + cuts, Inf), intervals)
  first <- rep(c(TRUE, FALSE), n / 2)
  rejected <- vapply(seq_len(replicates), function(seed) {
    set.seed(seed)
    y <- stats::rnorm(n, ifelse(first, 0, difference))
    data <- data.frame(y = y, g = factor(ifelse(first, "a", "b")))
    totals <- simulate_release(data, statistic, mech_laplace(epsilon = epsilon))
    table <- simulate_release(transform(data, y = in_intervals(y)), counts, mech_discrete_laplace(epsilon = epsilon))
    c(private_test(table, g ~ y, scores = seq_along(intervals), interval = FALSE, replicates = 199, seed = seed)$p.value <= 0.05,
      private_test(totals, y ~ g, interval = FALSE, replicates = 199, seed = seed)$p.value <= 0.05,
      vapply(shares, function(share) ranks_reject(y, first, epsilon, share), NA), stats::t.test(y ~ first)$p.value <= 0.05)
  }, logical(length(shares) + 3L))
  found <- rowMeans(rejected)
  c(ours = found[1L], `ours, totals` = found[2L], ranks = max(found[2L + seq_along(shares)]), splits = if (difference > 0) splits_power(n, difference, epsilon) else 0.05,
    `without noise` = found[length(found)])
}

bench_power <- function(quick) {
  replicates <- if (quick) 10L else 200L
  say("lengths of sets of a proportion")
  proportions <- data.frame(n = c(20, 100, 100, 500), share = c(0.2, 0.3, 0.1, 0.5), epsilon = c(1, 1, 0.2, 0.5))
  proportions <- cbind(proportions, t(mapply(lengths_of, proportions$n, proportions$share, proportions$epsilon)))
  say("independence")
  tables <- expand.grid(n = c(100, 200, 400, 800), dependence = c(0, 0.06), epsilon = c(0.5, 2))
  tables <- cbind(tables, t(mapply(function(...) stats::setNames(independence_power(..., replicates), c("ours", "MCIndep")), tables$n, tables$dependence, tables$epsilon)))
  say("two means")
  groups <- expand.grid(n = c(50, 100, 200, 400), difference = c(0, 0.5), epsilon = c(0.5, 2))
  groups <- cbind(groups, t(mapply(means_power, groups$n, groups$difference, groups$epsilon, replicates)))
  apart <- tables$dependence > 0
  moved <- groups$difference > 0
  noise <- 2 * sqrt(0.5 * 0.5 / replicates) # of a difference of powers, at most
  bench_result(list(
    figure("mean length of a 95% set over UMP's", sprintf("n = %g, probability %g, epsilon %g", proportions$n, proportions$share, proportions$epsilon),
           proportions$ours / proportions$theirs, rep(1.05, nrow(proportions)), at_most = TRUE),
    figure("power less MCIndep's", sprintf("n = %g, epsilon %g", tables$n[apart], tables$epsilon[apart]), (tables$ours - tables$MCIndep)[apart], rep(-noise, sum(apart))),
    figure("power less that of ranks", sprintf("n = %g, epsilon %g", groups$n[moved], groups$epsilon[moved]), (groups$ours - groups$ranks)[moved], rep(-noise, sum(moved))),
    figure("power less that of splits", sprintf("n = %g, epsilon %g", groups$n[moved], groups$epsilon[moved]), (groups$ours - groups$splits)[moved], rep(-noise, sum(moved)))),
    list("Mean lengths of 95% sets of a proportion" = proportions,
         "Independence: share of tests that reject at 5%; probabilities are 1/4 plus or minus the dependence" = tables,
         "Two means: share of tests that reject at 5%; standard deviation 1, half of the records in each group" = groups),
    c(sprintf("%d replicates; a power has a Monte Carlo error of at most %.3f, and targets allow two of them for the difference.", replicates, sqrt(0.25 / replicates)),
      "Rows without dependence or difference show the level. All releases are epsilon-differentially private under replacement of a record, ranks' with delta = 1e-6.",
      "Two means, ours: counts of three intervals of y by group, tested for a trend; targets are for these. \"totals\" are those of a regression, which answer other",
      "questions as well; their bounds reach 3 standard deviations beyond both means. ranks and splits need neither intervals nor bounds."))
}

run_alone(bench_power)
