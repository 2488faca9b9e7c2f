# Do default calls converge on data that nobody prepared? Forty regressions over
# five public data sets, with factors, skewed numbers and natural bounds, each
# with `sample_posterior(release, model_lm(), seed = )` and nothing else: R-hat,
# effective draws, seconds and warnings, and the answer beside that from the
# confidential records.
#
#   Rscript bench/defaults.R [quick] [data = name]

source("bench/helpers.R")

needs <- c("AER", "MASS", "ggplot2")

load_data <- function(package, name) {
  from <- new.env()
  utils::data(list = name, package = package, envir = from)
  as.data.frame(from[[name]])
}

# `levels` of factors and `bounds` of numbers as the documentation of the data gives them
# or as anyone would declare them
problems <- function() {
  birthwt <- MASS::birthwt
  birthwt$race <- factor(birthwt$race, labels = c("white", "black", "other"))
  birthwt$smoke <- factor(birthwt$smoke, labels = c("no", "yes"))
  birthwt$ht <- factor(birthwt$ht, labels = c("no", "yes"))
  mtcars <- datasets::mtcars
  mtcars$am <- factor(mtcars$am, labels = c("automatic", "manual"))
  diamonds <- as.data.frame(ggplot2::diamonds)
  for (v in c("cut", "color", "clarity")) diamonds[[v]] <- factor(diamonds[[v]], ordered = FALSE)
  cps <- load_data("AER", "CPS1988")
  list(
    cps = list(data = cps, sizes = c(500, 5000, 28000),
      bounds = list(wage = c(50, 2500), education = c(0, 18), experience = c(0, 60)),
      formulas = list(wage ~ education + experience, wage ~ education + experience + ethnicity + parttime,
                      wage ~ education + experience + ethnicity + smsa + region + parttime)),
    boston = list(data = MASS::Boston, sizes = 506,
      bounds = list(medv = c(0, 50), rm = c(3, 9), lstat = c(0, 40), ptratio = c(12, 22), crim = c(0, 100), nox = c(0.3, 0.9), dis = c(1, 13),
                    age = c(0, 100), indus = c(0, 30), tax = c(150, 750), rad = c(1, 24), zn = c(0, 100), black = c(0, 400)),
      formulas = list(medv ~ rm + lstat, medv ~ rm + lstat + ptratio + crim, medv ~ rm + lstat + ptratio + crim + nox + dis,
                      medv ~ rm + lstat + ptratio + crim + nox + dis + age + indus + tax + rad + zn + black)),
    birthwt = list(data = birthwt, sizes = 189,
      bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)),
      formulas = list(bwt ~ age + lwt, bwt ~ age + lwt + smoke + race, bwt ~ age + lwt + smoke + race + ht)),
    mtcars = list(data = mtcars, sizes = 32,
      bounds = list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 350), qsec = c(10, 25), disp = c(60, 500)),
      formulas = list(mpg ~ wt + hp, mpg ~ wt + hp + am, mpg ~ wt + hp + qsec + disp + am)),
    diamonds = list(data = diamonds, sizes = c(1000, 10000, 50000),
      bounds = list(price = c(0, 20000), carat = c(0, 5), depth = c(50, 75), table = c(50, 75)),
      formulas = list(price ~ carat + depth, price ~ carat + depth + table + cut, price ~ carat + cut + color + clarity)))
}

# forty calls: every formula, sizes and epsilons in turn
cases <- function(all = problems()) {
  grid <- do.call(rbind, lapply(names(all), function(name) {
    expand.grid(data = name, formula = seq_along(all[[name]]$formulas), stringsAsFactors = FALSE)
  }))
  epsilons <- c(1, 5, 0.5, 20, 10, 2)
  rows <- do.call(rbind, lapply(1:3, function(round) cbind(grid, round = round)))
  rows$epsilon <- epsilons[(seq_len(nrow(rows)) * 5L) %% length(epsilons) + 1L]
  rows$n <- mapply(function(name, round) {
    sizes <- all[[name]]$sizes
    sizes[(round - 1L) %% length(sizes) + 1L]
  }, rows$data, rows$round)
  utils::head(rows[order(rows$round), ], 40L)
}

run_case <- function(case, all = problems()) {
  problem <- all[[case$data]]
  formula <- problem$formulas[[case$formula]]
  variables <- all.vars(formula)
  set.seed(case$formula + 10 * case$round)
  data <- problem$data[sample(nrow(problem$data), case$n, replace = case$n > nrow(problem$data)), variables]
  declared <- lapply(stats::setNames(nm = variables), function(v) if (is.factor(data[[v]])) levels(data[[v]]) else problem$bounds[[v]])
  statistic <- stat_crossprod(formula, bounds = declared)
  release <- simulate_release(data, statistic, mech_laplace(epsilon = case$epsilon))
  warned <- character()
  fit <- NULL
  time <- seconds(withCallingHandlers(fit <- sample_posterior(release, model_lm(), seed = 1), warning = function(w) {
    warned <<- c(warned, sub("noiseaware_warning_", "", grep("^noiseaware_warning_", class(w), value = TRUE)[1L]))
    invokeRestart("muffleWarning")
  }, noiseaware_message_forecast = function(m) warned <<- c(warned, "forecast")))
  summary <- posterior::summarise_draws(fit$draws, rhat = posterior::rhat, ess = posterior::ess_bulk)
  truth <- stats::coef(stats::lm(formula, data))[2L]
  interval <- suppressWarnings(stats::confint(fit, variables = "all"))[names(truth), ]
  data.frame(data = case$data, covariates = length(variables) - 1L, columns = length(stats::coef(fit)), n = case$n, epsilon = case$epsilon,
             method = fit$method, seconds = time, rhat = max(summary$rhat), ess = min(summary$ess),
             ok = max(summary$rhat) <= 1.01 && min(summary$ess) >= 400 && time <= 60,
             warned = paste(unique(warned), collapse = " "), coefficient = names(truth), records = unname(truth), lower = interval[[1L]], upper = interval[[2L]])
}

bench_defaults <- function(quick) {
  all <- problems()
  rows <- cases(all)
  only <- sub("^data=", "", grep("^data=", commandArgs(TRUE), value = TRUE))
  if (length(only)) rows <- rows[rows$data %in% only, ]
  if (quick) rows <- rows[seq_len(min(3L, nrow(rows))), ]
  results <- do.call(rbind, lapply(seq_len(nrow(rows)), function(k) {
    out <- run_case(rows[k, ], all)
    say("%s p %d n %d epsilon %g: %s %.1f s, R-hat %.3f, ESS %.0f", out$data, out$covariates, out$n, out$epsilon, out$method, out$seconds, out$rhat, out$ess)
    out
  }))
  target <- if (nrow(results) == 40L) 38 else NA_real_
  bench_result(list(
    figure("default calls with R-hat at most 1.01, 400 effective draws, in a minute", sprintf("of %d", nrow(results)), sum(results$ok), target),
    figure("the others that warn, or tell how long they take", sprintf("of %d", sum(!results$ok)), sum(!results$ok & nzchar(results$warned)), sum(!results$ok)),
    figure("intervals (95%) of the first slope that hold its value from the records", sprintf("of %d", nrow(results)),
           sum(results$lower <= results$records & results$records <= results$upper))),
    details = list("Every call: 4 chains of 2,000 iterations" = results))
}

run_alone(bench_defaults)
