# Do default calls converge where totals and totals of squares are released in the variables' own units, from far off their
# means? Mean and standard deviation of six variables, and regressions on one, of data that nobody prepared, with
# `sample_posterior(release, model, seed = )` and nothing else, by the method that it chooses, by "collapse", and with n unknown. Beside it, in turns,
# the same without bends of the coordinates (R/engine_totals_bend.R).
#
#   Rscript bench/bends.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

bend_cases <- function() {
  number <- function(x, bounds) list(data = data.frame(x = x), statistic = stat_sums(~ x + I(x^2), list(x = bounds), rescale = FALSE), model = model_normal())
  line <- function(data, y, x) {
    list(data = stats::setNames(data, c("y", "x")), statistic = stat_crossprod(y ~ x, list(y = y, x = x), rescale = FALSE), model = model_lm())
  }
  list(`quakes: mag` = number(datasets::quakes$mag, c(4, 7)), `faithful: eruptions` = number(datasets::faithful$eruptions, c(1, 6)),
       `faithful: waiting` = number(datasets::faithful$waiting, c(30, 120)), `birthwt: bwt` = number(MASS::birthwt$bwt, c(500, 5500)),
       `iris: Sepal.Length` = number(datasets::iris$Sepal.Length, c(3, 9)), `airquality: Temp` = number(datasets::airquality$Temp, c(40, 110)),
       `quakes: mag ~ stations` = line(datasets::quakes[c("mag", "stations")], c(4, 7), c(0, 150)),
       `cars: dist ~ speed` = line(datasets::cars[2:1], c(0, 150), c(0, 30)),
       `iris: Sepal.Length ~ Petal.Length` = line(datasets::iris[c(1, 3)], c(3, 9), c(0, 8)))
}

without_bends <- function(code) {
  names <- c("surrogate_bend", "collapse_bend")
  old <- lapply(names, utils::getFromNamespace, "noiseaware")
  on.exit(Map(utils::assignInNamespace, names, old, MoreArgs = list(ns = "noiseaware")))
  for (name in names) utils::assignInNamespace(name, function(...) double(), "noiseaware")
  code
}

bend_row <- function(case, epsilon, kind, seeds) {
  set.seed(3)
  neighbours <- if (kind == "n unknown") "add_remove" else "replace"
  published <- if (kind == "n unknown") release(case$data, case$statistic, mech_laplace(epsilon = epsilon), neighbours = neighbours) else
    simulate_release(case$data, case$statistic, mech_laplace(epsilon = epsilon))
  method <- if (kind == "collapse") "collapse" else "auto"
  run <- function(seed) {
    time <- seconds(fit <- suppressMessages(suppressWarnings(sample_posterior(published, case$model, method = method, seed = seed))))
    told <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk", "ess_tail")
    c(rhat = max(told$rhat), ess = min(told$ess_bulk, told$ess_tail), seconds = time)
  }
  runs <- lapply(seq_len(seeds), function(seed) c(run(seed), without_bends(run(seed))))
  all <- do.call(rbind, runs)
  middle <- apply(all, 2L, stats::median)
  data.frame(epsilon = epsilon, what = kind, `R-hat` = max(all[, 1L]), ESS = middle[[2L]], seconds = middle[[3L]],
             `R-hat without` = max(all[, 4L]), `ESS without` = middle[[5L]], `seconds without` = middle[[6L]], check.names = FALSE)
}

bench_bends <- function(quick = FALSE) {
  cases <- bend_cases()
  rows <- do.call(rbind, lapply(names(cases), function(name) do.call(rbind, lapply(c(1, 5, 20), function(epsilon) {
    do.call(rbind, lapply(c("default", "collapse", "n unknown"), function(kind) {
      say("%s, epsilon %g, %s", name, epsilon, kind)
      cbind(data = name, bend_row(cases[[name]], epsilon, kind, if (quick) 1 else 4))
    }))
  }))))
  per <- function(ess, time) stats::median(rows[[ess]] / rows[[time]])
  bench_result(
    list(figure("default calls whose R-hat is at most 1.01 at all seeds, of", sprintf("%d, with bends", nrow(rows)), sum(rows$`R-hat` <= 1.01)),
         figure("default calls whose R-hat is at most 1.01 at all seeds, of", sprintf("%d, without", nrow(rows)), sum(rows$`R-hat without` <= 1.01)),
         figure("effective draws a second, the median case", "with bends", per("ESS", "seconds")),
         figure("effective draws a second, the median case", "without", per("ESS without", "seconds without"))),
    list("Default calls, four chains of 2,000 iterations" = rows),
    c("R-hat: the largest of four seeds; effective draws (the smaller of bulk and tail, of the slowest parameter) and processor seconds: medians.",
      "Laplace noise, one sensitivity for all totals: where the variable is far from 0, that of the squares drowns its total."))
}

run_alone(bench_bends)
