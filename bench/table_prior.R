# How often do 95% intervals of a table hold the shares of the records that it was made from? Default calls and other Dirichlet weights, over releases of tables of
# several factors, and of one number in bins. The weights of all cells have the sum 2 by default.
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

# are the shares of cells, and of margins, within the 95% intervals?
held_shares <- function(data, weight, epsilon, seed) {
  set.seed(seed)
  release <- simulate_release(data, stat_counts(stats::reformulate(paste(names(data), collapse = ":")), lapply(data, levels)), mech_discrete_laplace(epsilon = epsilon))
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_table(prior = if (!is.na(weight)) prior_dirichlet(weight)), seed = 1)))
  draws <- unclass(posterior::as_draws_matrix(fit$draws))
  cells <- expand.grid(rev(lapply(data, levels)), stringsAsFactors = FALSE)[rev(names(data))] # the last variable varies fastest
  share <- as.vector(aperm(prop.table(table(data)))) # the same order
  holds <- function(truth, x) {
    ends <- stats::quantile(x, c(0.025, 0.975), type = 6)
    truth > ends[[1L]] - 1e-12 && truth < ends[[2L]] + 1e-12
  }
  of_cells <- vapply(seq_along(share), function(k) holds(share[k], draws[, k]), TRUE)
  of_margins <- if (length(data) > 1L) unlist(lapply(names(data), function(v) {
    vapply(levels(data[[v]]), function(l) holds(mean(data[[v]] == l), rowSums(draws[, cells[[v]] == l, drop = FALSE])), TRUE)
  }))
  list(cells = mean(of_cells), margins = if (length(of_margins)) mean(of_margins) else NA, rhat = max(posterior::summarise_draws(fit$draws, "rhat")$rhat, na.rm = TRUE))
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
  default <- rows[rows$weight == "default", ]
  shares <- function(rows) unlist(rows[c("cells at 0.5", "margins at 0.5", "cells at 2", "margins at 2")])
  mean_of <- function(weight) mean(shares(rows[rows$weight == weight, ]), na.rm = TRUE)
  held <- function(case, measured, target = NA) figure("95% intervals that hold the records' share, cells and margins", case, measured, target)
  bench_result(list(held("default, mean over data sets and epsilon 0.5 and 2", mean_of("default"), 0.94),
                    held("default, the worst data set and epsilon", min(shares(default), na.rm = TRUE), 0.85), held("weight 1 a cell, mean", mean_of("1")),
                    held("weight 1/2 a cell, mean", mean_of("1/2")), held("weights with the sum 1, mean", mean_of("sum 1"))),
               list("Shares of intervals that hold the records' share, at epsilon 0.5 and 2" = rows),
               "The intervals are for probabilities of a population, so they should hold the records' shares more often than 95%.")
}

run_alone(bench_table_prior)
