# How often do 95% intervals of a table hold the shares of the records that it was made from? Default calls and other Dirichlet weights, over releases of tables of
# several factors, and of one number in bins; of life tables, whose curve is compared with Kaplan and Meier's; and of the two-way tables of naive Bayes. The
# weights of all cells have the sum 2 by default.
#
#   Rscript bench/table_prior.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

records_of_table <- function(table) {
  counts <- as.data.frame(table, stringsAsFactors = TRUE)
  rows <- counts[rep(seq_len(nrow(counts)), counts$Freq), setdiff(names(counts), "Freq"), drop = FALSE]
  rownames(rows) <- NULL
  rows
}

in_bins <- function(x, lower, upper, bins) {
  breaks <- seq(lower, upper, length.out = bins + 1L)
  data.frame(bin = factor(findInterval(x, breaks, rightmost.closed = TRUE), seq_len(bins)))
}

table_data <- function() {
  factors <- function(data) as.data.frame(lapply(data, factor))
  list("survey" = stats::na.omit(MASS::survey[c("Sex", "Fold", "Smoke", "Exer")]), "Titanic" = records_of_table(Titanic), "HairEyeColor" = records_of_table(HairEyeColor),
       "UCBAdmissions" = records_of_table(UCBAdmissions), "birthwt" = factors(MASS::birthwt[c("race", "smoke", "ht", "ui")]),
       "mtcars" = factors(mtcars[c("cyl", "gear", "am", "vs")]), "quine" = MASS::quine[c("Eth", "Sex", "Age", "Lrn")],
       "infert" = factors(infert[c("education", "induced", "case", "spontaneous")]), "birth weight, bins" = in_bins(MASS::birthwt$bwt, 0, 6000, 20),
       "rivers, bins" = in_bins(rivers, 0, 4000, 20), "pulse, bins" = in_bins(stats::na.omit(MASS::survey$Pulse), 30, 150, 24),
       "days absent" = data.frame(days = factor(pmin(MASS::quine$Days, 30), 0:30)), "depth, bins" = in_bins(quakes$depth, 0, 700, 28),
       "crime, bins" = in_bins(MASS::Boston$crim, 0, 100, 25), "state.region" = data.frame(region = state.region))
}

quiet_fit <- function(...) suppressMessages(suppressWarnings(sample_posterior(..., seed = 1)))

# The share of 95% intervals that hold shares of n records. A share of 0 counts as held where the interval begins below a hundredth of a record: no interval of a
# continuous posterior holds 0 itself.
holds_each <- function(truth, draws, n) {
  ends <- apply(as.matrix(draws), 2L, stats::quantile, c(0.025, 0.975), type = 6)
  mean(truth > ends[1L, ] - 0.01 / n & truth < ends[2L, ] + 0.01 / n)
}

# are the shares of cells, and of margins, within the 95% intervals?
held_shares <- function(data, weight, epsilon, seed) {
  set.seed(seed)
  release <- simulate_release(data, stat_counts(stats::reformulate(paste(names(data), collapse = ":")), lapply(data, levels)), mech_discrete_laplace(epsilon = epsilon))
  fit <- quiet_fit(release, model_table(prior = prior_dirichlet(if (!is.na(weight)) weight)))
  draws <- unclass(posterior::as_draws_matrix(fit$draws))
  cells <- expand.grid(rev(lapply(data, levels)), stringsAsFactors = FALSE)[rev(names(data))] # the last variable varies fastest
  share <- as.vector(aperm(prop.table(table(data)))) # the same order
  margins <- unlist(lapply(if (length(data) > 1L) names(data), function(v) {
    vapply(levels(data[[v]]), function(l) holds_each(mean(data[[v]] == l), rowSums(draws[, cells[[v]] == l, drop = FALSE]), nrow(data)), 0)
  }))
  list(cells = holds_each(share, draws, nrow(data)), margins = if (length(margins)) mean(margins) else NA,
       rhat = max(posterior::summarise_draws(fit$draws, "rhat")$rhat, na.rm = TRUE))
}

survival_data <- function() {
  deaths <- function(time, status) stats::na.omit(data.frame(time = time, status = as.integer(status)))
  colon <- survival::colon[survival::colon$etype == 2, ]
  list("lung" = deaths(survival::lung$time, survival::lung$status == 2), "veteran" = deaths(survival::veteran$time, survival::veteran$status),
       "colon" = deaths(colon$time, colon$status), "pbc" = deaths(survival::pbc$time, survival::pbc$status == 2),
       "rotterdam" = deaths(survival::rotterdam$dtime, survival::rotterdam$death))
}

# is the survival curve of Kaplan and Meier within the 95% intervals at the ends of the intervals, up to the 95th percentile of the times?
held_curve <- function(data, prior, epsilon, seed) {
  breaks <- seq(0, max(data$time) * 1.2, length.out = 21L)
  set.seed(seed)
  exits <- survival_exits(data, survival::Surv(time, status) ~ 1, breaks)
  release <- simulate_release(exits, stat_survival(~1, breaks), mech_laplace(epsilon = epsilon))
  draws <- unclass(posterior::as_draws_matrix(survival_measures(quiet_fit(release, model_table(prior = prior)), "survival")))
  at <- breaks[1L + seq_len(ncol(draws))]
  curve <- summary(survival::survfit(survival::Surv(time, status) ~ 1, data), times = pmin(at, max(data$time)), extend = TRUE)$surv
  asked <- at < stats::quantile(data$time, 0.95)
  holds_each(curve[asked], draws[, asked], nrow(data))
}

class_data <- function() {
  list("quine" = data.frame(y = MASS::quine$Eth, age = MASS::quine$Age, days = factor(pmin(MASS::quine$Days, 30), 0:30)),
       "birthwt" = data.frame(y = factor(MASS::birthwt$low), race = factor(MASS::birthwt$race), lwt = in_bins(MASS::birthwt$lwt, 50, 300, 20)$bin),
       "Boston" = data.frame(y = factor(MASS::Boston$chas), crim = in_bins(MASS::Boston$crim, 0, 100, 20)$bin, rad = factor(MASS::Boston$rad, 1:24)),
       "iris" = data.frame(y = iris$Species, length = in_bins(iris$Petal.Length, 0, 10, 10)$bin, width = in_bins(iris$Sepal.Width, 0, 10, 10)$bin),
       "mtcars" = data.frame(y = factor(mtcars$am), cyl = factor(mtcars$cyl), carb = factor(mtcars$carb, 1:8)))
}

# are the shares of each feature's levels within a class in the 95% intervals?
held_conditionals <- function(data, prior, epsilon, seed) {
  features <- names(data)[-1L]
  set.seed(seed)
  release <- simulate_release(data, stat_counts(stats::reformulate(paste0("y:", features)), lapply(data, levels)), mech_discrete_laplace(epsilon = epsilon))
  draws <- unclass(posterior::as_draws_matrix(quiet_fit(release, model_naive_bayes("y", conditional = prior))$draws))
  asked <- regmatches(colnames(draws), regexec("^prob\\[(.*)=(.*)\\|y=(.*)\\]$", colnames(draws)))
  of <- lengths(asked) > 0
  share <- vapply(asked[of], function(one) mean(data[[one[2L]]][data$y == one[4L]] == one[3L]), 0)
  holds_each(share, draws[, of], nrow(data))
}

# shares of intervals that hold: a row for a data set and a prior
curves_and_conditionals <- function(seeds, quick) {
  priors <- list("default" = prior_dirichlet(), "1" = prior_dirichlet(1))
  kinds <- list("life table" = list(data = survival_data(), held = held_curve), "naive Bayes" = list(data = class_data(), held = held_conditionals))
  do.call(rbind, lapply(names(kinds), function(kind) {
    data <- kinds[[kind]]$data
    if (quick) data <- data[1L]
    do.call(rbind, lapply(names(data), function(name) do.call(rbind, lapply(names(priors), function(weight) {
      of <- function(epsilon) mean(vapply(seeds, function(seed) kinds[[kind]]$held(data[[name]], priors[[weight]], epsilon, seed), 0))
      data.frame(kind = kind, data = name, records = nrow(data[[name]]), weight = weight, "at 1" = of(1), "at 4" = of(4), check.names = FALSE)
    }))))
  }))
}

bench_table_prior <- function(quick = FALSE) {
  seeds <- if (quick) 1L else 1:3
  weights <- list("default" = function(cells) NA, "1" = function(cells) 1, "1/2" = function(cells) 0.5, "sum 1" = function(cells) 1 / cells)
  data <- table_data()
  if (quick) data <- data[c("birthwt", "state.region")]
  rows <- do.call(rbind, lapply(names(data), function(name) {
    size <- prod(vapply(data[[name]], nlevels, 0L))
    do.call(rbind, lapply(names(weights), function(weight) {
      held <- lapply(c(0.5, 2), function(epsilon) lapply(seeds, function(seed) held_shares(data[[name]], weights[[weight]](size), epsilon, seed)))
      of <- function(what, at) mean(vapply(held[[at]], `[[`, 0, what))
      data.frame(data = name, records = nrow(data[[name]]), cells = size, weight = weight, "cells at 0.5" = of("cells", 1L),
                 "margins at 0.5" = of("margins", 1L), "cells at 2" = of("cells", 2L), "margins at 2" = of("margins", 2L),
                 "R-hat" = max(of("rhat", 1L), of("rhat", 2L)), check.names = FALSE)
    }))
  }))
  others <- curves_and_conditionals(seeds, quick)
  mean_others <- function(kind, weight) mean(unlist(others[others$kind == kind & others$weight == weight, c("at 1", "at 4")]))
  default <- rows[rows$weight == "default", ]
  shares <- function(rows) unlist(rows[c("cells at 0.5", "margins at 0.5", "cells at 2", "margins at 2")])
  mean_of <- function(weight) mean(shares(rows[rows$weight == weight, ]), na.rm = TRUE)
  held <- function(case, measured, target = NA) figure("95% intervals that hold the records' share, cells and margins", case, measured, target)
  bench_result(list(held("default, mean over data sets and epsilon 0.5 and 2", mean_of("default"), 0.94),
                    held("default, the worst data set and epsilon", min(shares(default), na.rm = TRUE), 0.85), held("weight 1 a cell, mean", mean_of("1")),
                    held("weight 1/2 a cell, mean", mean_of("1/2")), held("weights with the sum 1, mean", mean_of("sum 1")),
                    held("life tables, default: the survival curve", mean_others("life table", "default"), 0.94),
                    held("life tables, weight 1 an interval", mean_others("life table", "1")),
                    held("naive Bayes, default: shares within classes", mean_others("naive Bayes", "default"), 0.94),
                    held("naive Bayes, weight 1 a level", mean_others("naive Bayes", "1"))),
               list("Shares of intervals that hold the records' share, at epsilon 0.5 and 2" = rows,
                    "Life tables (survival curve) and naive Bayes (shares within classes), at epsilon 1 and 4" = others),
               "The intervals are for probabilities of a population, so they should hold the records' shares more often than 95%.")
}

run_alone(bench_table_prior)
