# Tables moved by transfers: how many a second, whatever the number of records; the problem of NAPSU-MQ (Raisa et al. 2023), as
# twinify's coverage test has it; thirty binary variables on a tree; real tables by default calls; nested areas.

if (!exists("bench_result")) source("bench/helpers.R")

# Transfers a second of a long chain, theta's draws included, of which every twentieth is kept, so that what R does with
# draws is not timed: the cells of a 2 x 2 x 2 table with noise of sd 3
transfer_rate <- function(n, mechanism, iterations) {
  levels <- list(a = 1:2, b = 1:2, c = 1:2)
  set.seed(1)
  counts <- stats::rmultinom(1L, n, stats::rgamma(8L, 2))[, 1L]
  # by transfers, though all counts of such a release are drawn at once
  namespace <- asNamespace("noiseaware")
  row <- namespace$most_row
  set_row <- function(value) {
    unlockBinding("most_row", namespace)
    assign("most_row", value, namespace)
  }
  set_row(list(work = -1, size = 0, n = 0))
  on.exit(set_row(row))
  rel <- as_release(counts + stats::rnorm(8L, 0, 3), stat_counts(~ a:b:c, levels), mechanism, n)
  fit <- suppressWarnings(sample_posterior(rel, model_table(), method = "collapse", chains = 1, iter = 3000, warmup = 1000, thin = 20, seed = 1))
  before <- transfers_made(fit)
  longer <- NULL
  time <- seconds(longer <- extend(fit, iterations))
  (transfers_made(longer) - before) / time
}

transfers_made <- function(fit) {
  told <- fit$chains[[1L]]$diagnostics
  sum(told[endsWith(names(told), "_made")])
}

# ---- three binary variables, a full margin, a logistic regression of the third on the first two -----------------

napsu_truth <- c("(Intercept)" = -0.5, a = 1, b = -0.7)

napsu_levels <- list(a = c("0", "1"), b = c("0", "1"), y = c("0", "1"))

napsu_release <- function(n) {
  a <- stats::rbinom(n, 1L, 0.4)
  b <- stats::rbinom(n, 1L, 0.3 + 0.3 * a)
  y <- stats::rbinom(n, 1L, stats::plogis(drop(cbind(1, a, b) %*% napsu_truth)))
  data <- as.data.frame(lapply(list(a = a, b = b, y = y), factor, levels = 0:1))
  simulate_release(data, stat_counts(~ a:b:y, napsu_levels), mech_gaussian(epsilon = 1, delta = n^-2))
}

# of the counts of four combinations of a and b
napsu_analysis <- function(data) {
  counts <- tabulate(4 * (as.integer(data$a) - 1) + 2 * (as.integer(data$b) - 1) + as.integer(data$y), 8L)
  yes <- counts[c(2, 4, 6, 8)]
  all <- yes + counts[c(1, 3, 5, 7)]
  fit <- stats::glm.fit(cbind("(Intercept)" = 1, a = c(0, 0, 1, 1), b = c(0, 1, 0, 1)), yes / all, all, family = stats::binomial())
  list(estimate = fit$coefficients, variance = diag(chol2inv(fit$qr$qr[1:3, 1:3])))
}

napsu_repeat <- function(seed, n = 2000) {
  set.seed(seed)
  rel <- napsu_release(n)
  fit <- suppressWarnings(sample_posterior(rel, model_table(), chains = 4, seed = seed))
  told <- combine_synthetic(synthesize(fit, m = 100, seed = seed), napsu_analysis)
  told$conf.low <= napsu_truth & napsu_truth <= told$conf.high
}

# seconds to 4,000 effective draws of the least of the cells
napsu_time <- function(times = 10L) {
  set.seed(1)
  rel <- napsu_release(2000)
  fit <- NULL
  time <- seconds(for (k in seq_len(times)) fit <- suppressWarnings(sample_posterior(rel, model_table(), chains = 4, seed = k))) / times
  c(seconds = time, ess = min_ess(fit$draws), thousand4 = 4000 * time / min_ess(fit$draws))
}

# ---- a tree, and tables that nobody prepared ----------------------------------------------------------------------

tree_run <- function(variables = 30L, n = 1e4) {
  tree <- stats::reformulate(paste0("v", seq_len(variables)[-1L] %/% 2, ":v", seq_len(variables)[-1L]))
  levels <- stats::setNames(rep(list(c("a", "b")), variables), paste0("v", seq_len(variables)))
  set.seed(4)
  rel <- simulate_release(model_table(tree), stat_counts(tree, levels), mech_gaussian(mu = 1), n = n)
  fit <- NULL
  time <- seconds(fit <- suppressWarnings(sample_posterior(rel, model_table(tree), seed = 1)))
  data.frame(table = paste(variables, "binary variables, a tree"), records = n, cells = 2^variables, parameters = length(fit$bound$parameters), method = fit$method, seconds = time,
             rhat = max(posterior::summarise_draws(fit$draws, "rhat")$rhat), ess = min_ess(fit$draws), posterior = NA, released = NA)
}

# ---- margins that cross the cliques: eight variables, all pairs released, a tree ------------------------------------------

# sizes of those of Adult; a mixture of eight classes
adult_like <- function(n = 48842L, sizes = c(9, 16, 7, 15, 6, 5, 2, 2)) {
  set.seed(5)
  class <- sample(8L, n, TRUE)
  data <- lapply(sizes, function(k) {
    p <- matrix(stats::rexp(8L * k)^3, 8L)
    code <- integer(n)
    for (c in 1:8) code[class == c] <- sample(k, sum(class == c), TRUE, p[c, ])
    factor(paste0("l", code), paste0("l", seq_len(k)))
  })
  stats::setNames(as.data.frame(data), paste0("v", seq_along(sizes)))
}

# the tree of greatest mutual information in the released pairs (Chow & Liu 1968)
tree_of <- function(release, levels) {
  names <- names(levels)
  pairs <- utils::combn(names, 2L, simplify = FALSE)
  at <- split(seq_along(release$value), rep(seq_along(pairs), vapply(pairs, function(p) prod(lengths(levels[p])), 0)))
  information <- vapply(at, function(k) {
    p <- pmax(release$value[k], 0.5)
    pair <- pairs[[match(k[1L], vapply(at, `[`, 0L, 1L))]]
    p <- matrix(p / sum(p), length(levels[[pair[1L]]]), byrow = TRUE)
    sum(p * log(p / outer(rowSums(p), colSums(p))))
  }, 0)
  joined <- stats::setNames(seq_along(names), names)
  chosen <- list()
  for (k in order(-information)) {
    ends <- joined[pairs[[k]]]
    if (ends[1L] == ends[2L]) next
    joined[joined == ends[2L]] <- ends[1L]
    chosen <- c(chosen, list(pairs[[k]]))
  }
  stats::reformulate(vapply(chosen, paste, "", collapse = ":"))
}

crossing_run <- function(sd, iterations) {
  data <- adult_like()
  levels <- lapply(data, levels)
  st <- stat_counts(stats::reformulate(utils::combn(names(data), 2L, paste, collapse = ":")), levels)
  set.seed(1)
  rel <- simulate_release(data, st, mech_gaussian(sd = sd))
  fit <- NULL
  time <- seconds(fit <- suppressWarnings(sample_posterior(rel, model_table(tree_of(rel, levels)), method = "collapse", chains = 2, iter = iterations, warmup = iterations / 4, seed = 1)))
  at <- cumsum(c(0, vapply(st$margins, function(m) prod(lengths(levels[m])), 0)))
  truth <- unlist(lapply(st$margins, function(m) as.vector(t(table(data[m])))))
  largest <- vapply(seq_along(st$margins), function(k) at[k] + which.max(truth[at[k] + seq_len(at[k + 1L] - at[k])]), 0)
  draws <- posterior::as_draws_array(denoise(fit))[, , largest]
  told <- posterior::summarise_draws(draws, "rhat", "ess_bulk")
  off <- function(x) sqrt(mean((x - truth)^2))
  data.frame(sd = sd, records = nrow(data), iterations = 2 * iterations, seconds = time, rhat = max(told$rhat), `least ess` = min(told$ess_bulk),
             `seconds to 1,000` = 1000 * time / min(told$ess_bulk), posterior = off(colMeans(posterior::as_draws_matrix(denoise(fit)))), released = off(rel$value), check.names = FALSE)
}

records_of <- function(table) {
  cells <- as.data.frame(table)
  out <- cells[rep(seq_len(nrow(cells)), cells$Freq), setdiff(names(cells), "Freq")]
  as.data.frame(lapply(out, factor))
}

real_tables <- function() {
  cancer <- datasets::esoph
  cancer <- data.frame(lapply(cancer[rep(seq_len(nrow(cancer)), cancer$ncases + cancer$ncontrols), 1:3], function(x) factor(as.character(x))),
                       case = factor(unlist(Map(function(a, b) rep(c("case", "control"), c(a, b)), cancer$ncases, cancer$ncontrols))))
  houses <- MASS::housing
  list(UCBAdmissions = records_of(datasets::UCBAdmissions), Titanic = records_of(datasets::Titanic), HairEyeColor = records_of(datasets::HairEyeColor),
       esoph = cancer, infert = data.frame(lapply(datasets::infert[c("education", "induced", "case", "spontaneous")], factor)),
       housing = houses[rep(seq_len(nrow(houses)), houses$Freq), 1:4])
}

# all margins of two variables, mu = 1, and a saturated table or the log-linear model of these margins; root mean squared errors of
# the released counts
real_run <- function(data, name, loglinear = FALSE) {
  pairs <- stats::reformulate(utils::combn(names(data), 2L, paste, collapse = ":"))
  st <- stat_counts(pairs, lapply(data, levels))
  model <- if (loglinear) model_table(pairs, prior_normal()) else model_table()
  set.seed(1)
  rel <- simulate_release(data, st, mech_gaussian(mu = 1))
  fit <- NULL
  time <- seconds(fit <- suppressMessages(suppressWarnings(sample_posterior(rel, model, seed = 1))))
  truth <- unlist(lapply(st$margins, function(m) as.vector(t(table(data[m])))))
  off <- function(x) sqrt(mean((x - truth)^2))
  data.frame(table = name, records = nrow(data), cells = prod(vapply(data, nlevels, 0L)), parameters = length(fit$bound$parameters), method = fit$method,
             seconds = time, rhat = max(posterior::summarise_draws(fit$draws, "rhat")$rhat), ess = min_ess(fit$draws),
             posterior = off(colMeans(posterior::as_draws_matrix(denoise(fit)))), released = off(rel$value))
}

# Nested areas: 10 states of so many counties of 100 blocks by 10 cells, about 30 persons in a block; exact state totals, discrete
# Gaussian noise of sd 2 above blocks and 3 on them. Effective draws of 100 cells at random.
geography_run <- function(counties, iterations, warmup = 100, cells = 10L) {
  set.seed(1)
  codes <- list(state = rep(1:10, each = 100 * counties), county = rep(seq_len(10 * counties), each = 100), block = seq_len(1000 * counties))
  areas <- as.data.frame(Map(paste0, c("s", "c", "b"), codes), col.names = names(codes))
  about <- function(center, scale) {
    g <- matrix(stats::rgamma(length(center), scale * center + 1e-3), nrow(center))
    g / rowSums(g)
  }
  states <- about(matrix(seq_len(cells) / sum(seq_len(cells)), 10L, cells, byrow = TRUE), 200)
  shares <- about(about(states[rep(1:10, each = counties), ], 100)[codes$county, ], 20)
  n <- t(vapply(seq_len(nrow(areas)), function(b) stats::rmultinom(1L, stats::rpois(1L, 15 * stats::rgamma(1L, 2)), shares[b, ])[, 1L], integer(cells)))
  of <- function(level) stat_counts(stats::reformulate(paste0(level, ":x")), c(lapply(areas[level], unique), list(x = letters[seq_len(cells)])))
  noisy <- function(x, sd) as.vector(t(x)) + sample(-50:50, length(x), TRUE, stats::dnorm(-50:50, sd = sd))
  value <- list(law = as.vector(tapply(rowSums(n), codes$state, sum)), states = noisy(rowsum(n, codes$state), 2), counties = noisy(rowsum(n, codes$county), 2),
                blocks = noisy(n, 3))
  rel <- as_release(value, list(law = stat_counts(~ state, lapply(areas["state"], unique)), states = of("state"), counties = of("county"), blocks = of("block")),
                    list(law = mech_exact(), states = mech_discrete_gaussian(sd = 2), counties = mech_discrete_gaussian(sd = 2), blocks = mech_discrete_gaussian(sd = 3)), n = sum(n))
  fit <- NULL
  time <- seconds(fit <- suppressWarnings(sample_geography(rel, ~ state/county/block, areas, chains = 1, iter = iterations, warmup = warmup, seed = 1)))
  sampled <- fit$draws[, , startsWith(posterior::variables(fit$draws), "cell[")]
  ess <- apply(sampled, 3L, function(d) posterior::ess_bulk(d))
  off <- function(x) sqrt(mean((x - as.vector(t(n)))^2))
  data.frame(cells = length(n), iterations = iterations, seconds = time, `median ess` = stats::median(ess, na.rm = TRUE), `least ess` = min(ess, na.rm = TRUE),
             posterior = off(summary(fit)$mean), released = off(value$blocks), check.names = FALSE)
}

bench_tables <- function(quick = FALSE) {
  say("transfers")
  iterations <- if (quick) 2e4 else 2e5
  sizes <- c(1e3, 1e6, 1e9)
  gaussian <- vapply(sizes, transfer_rate, 0, mech_gaussian(sd = 3), iterations)
  laplace <- vapply(sizes, transfer_rate, 0, mech_laplace(scale = 2), iterations)
  say("NAPSU-MQ")
  time <- napsu_time()
  repeats <- if (quick) 10L else 1000L
  covered <- vapply(seq_len(repeats), napsu_repeat, napsu_truth > 0)
  say("tables")
  data <- real_tables()
  tables <- do.call(rbind, c(Map(real_run, data, names(data)), list(tree_run()), make.row.names = FALSE))
  loglinear <- do.call(rbind, c(Map(real_run, data, names(data), loglinear = TRUE), make.row.names = FALSE))
  say("margins that cross cliques")
  crossing <- do.call(rbind, Map(crossing_run, if (quick) 7.5 else c(7.5, 30, 100), if (quick) 40 else 800))
  say("nested areas")
  areas <- geography_run(if (quick) 5 else 100, if (quick) 300 else 1500)
  bench_result(
    c(list(figure("seconds to 1,000 effective draws", sprintf("%s cells of nested areas, the median one", format_figure(areas$cells)),
                  1000 * areas$seconds / areas[["median ess"]], 600, at_most = TRUE),
           figure("seconds to 1,000 effective draws", "the largest cell of each of 28 pairs, eight variables on a tree", crossing$`seconds to 1,000`[1L], 60, at_most = TRUE),
           figure("million transfers a second", "Gaussian noise, n = 1,000", gaussian[1L] / 1e6, 5), figure("million transfers a second", "Laplace noise, n = 1,000", laplace[1L] / 1e6, 5),
           figure("most over least of n = 10^3, 10^6, 10^9", "Gaussian noise", max(gaussian) / min(gaussian), 1.3, at_most = TRUE),
           figure("most over least of n = 10^3, 10^6, 10^9", "Laplace noise", max(laplace) / min(laplace), 1.3, at_most = TRUE),
           figure("seconds to 4,000 effective draws", "NAPSU-MQ's problem", time[["thousand4"]], 0.05, at_most = TRUE)),
      Map(function(name, share) figure("coverage of 95% intervals, per cent", paste("coefficient", name), 100 * share), names(napsu_truth), rowMeans(covered))),
    list("Default calls, four chains of 2,000 iterations" = tables, "Log-linear models without terms of three" = loglinear, "Eight variables on a tree, all pairs released" = crossing,
         "Nested areas: root mean squared errors of block cells" = areas),
    c("Transfers: a 2 x 2 x 2 table whose cells were released; with the draws of theta, in iterations of about 25 transfers, of which every twentieth is kept.",
      "NAPSU-MQ's problem: n = 2,000, three binary variables, full margin, Gaussian noise, epsilon = 1, delta = n^-2; coefficients of a logistic regression from 100 synthetic sets.",
      sprintf("Coverage: %d repeats; its standard error is about %s.", repeats, format(signif(100 * sqrt(0.05 * 0.95 / repeats), 2))),
      "Tables: margins of two variables, mu = 1; posterior and released: root mean squared errors of the posterior mean counts and of the released ones."))
}

run_alone(bench_tables)
