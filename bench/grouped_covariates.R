# Slopes of grouped data, y ~ x + (1 | g), from noisy cross-products by group: how far are they from the slope of the records (lme4's), if the groups' covariates
# are pooled (the default), and if each group's covariates have a prior of their own? Real data, whose groups may have other slopes within than between, and
# simulated groups whose covariates vary little within their bounds.
#
#   Rscript bench/grouped_covariates.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

largest_groups <- function(data, y, x, g, count) {
  data <- stats::setNames(as.data.frame(data)[c(y, x, g)], c("y", "x", "g"))
  data$g <- as.character(data$g)
  data[data$g %in% names(utils::head(sort(table(data$g), decreasing = TRUE), count)), ]
}

narrow_groups <- function(seed) {
  set.seed(seed)
  g <- rep(sprintf("g%02d", 1:20), each = 30)
  x <- stats::rnorm(600)
  data.frame(y = 1 + x + stats::rnorm(20, 0, 0.3)[as.integer(factor(g))] + stats::rnorm(600), x, g)
}

grouped_sets <- function() {
  schools <- MASS::nlschools
  schools$SES <- as.numeric(schools$SES)
  list(`narrow, seed 1` = list(data = narrow_groups(1), y = c(-10, 10), x = c(-8, 8)),
       `narrow, seed 2` = list(data = narrow_groups(2), y = c(-10, 10), x = c(-8, 8)),
       nlschools = list(data = largest_groups(schools, "lang", "SES", "class", 25), y = c(0, 60), x = c(10, 50)),
       Orthodont = list(data = largest_groups(nlme::Orthodont, "distance", "age", "Subject", 27), y = c(15, 35), x = c(5, 18)),
       sleepstudy = list(data = largest_groups(lme4::sleepstudy, "Reaction", "Days", "Subject", 18), y = c(100, 600), x = c(0, 9)),
       Exam = list(data = largest_groups(mlmRev::Exam, "normexam", "standLRT", "school", 30), y = c(-4, 4), x = c(-4, 4)),
       ChickWeight = list(data = largest_groups(ChickWeight, "weight", "Time", "Chick", 45), y = c(0, 400), x = c(0, 21)),
       MathAchieve = list(data = largest_groups(nlme::MathAchieve, "MathAch", "SES", "School", 40), y = c(-5, 27), x = c(-4, 3)))
}

release_by_group <- function(set, epsilon, seed) {
  levels <- list(g = sort(unique(set$data$g)))
  total <- stat_by(stat_crossprod(y ~ x, list(y = set$y, x = set$x), outside = "none"), levels)
  data <- transform(set$data, y = pmin(pmax(y, set$y[1L]), set$y[2L]), x = pmin(pmax(x, set$x[1L]), set$x[2L]))
  set.seed(1000 * epsilon + seed)
  simulate_release(data, list(size = stat_counts(~ g, levels), total = total), list(size = mech_exact(), total = mech_laplace(epsilon = epsilon)))
}

grouped_slope <- function(release, covariates, of_records) {
  pool <- if (is.null(covariates)) partial_pooling() else partial_pooling(covariates = covariates)
  warned <- character()
  seconds <- system.time(fit <- withCallingHandlers(sample_posterior(release, model_lm(y ~ x + (1 | g)), pool = pool, seed = 1),
                                                    message = function(m) invokeRestart("muffleMessage"), warning = function(w) {
    warned <<- c(warned, sub("noiseaware_warning_", "", class(w)[1L]))
    invokeRestart("muffleWarning")
  }))[["user.self"]]
  draws <- posterior::extract_variable(fit$draws, "x")
  ends <- stats::quantile(draws, c(0.025, 0.975), type = 6)
  data.frame(z = (mean(draws) - of_records) / stats::sd(draws), held = of_records > ends[[1L]] && of_records < ends[[2L]], sd = stats::sd(draws), seconds,
             rhat = posterior::rhat(posterior::extract_variable_matrix(fit$draws, "x")), warned = any(warned %in% c("hidden", "contextual")))
}

bench_grouped_covariates <- function(quick = FALSE) {
  ways <- list(pooled = NULL, separate = "separate")
  sets <- if (quick) grouped_sets()[1] else grouped_sets()
  rows <- do.call(rbind, lapply(names(sets), function(name) {
    say("%s", name)
    of_records <- lme4::fixef(lme4::lmer(y ~ x + (1 | g), sets[[name]]$data))[["x"]]
    grid <- expand.grid(epsilon = if (quick) 10 else c(2, 10), seed = seq_len(if (quick) 1L else 2L))
    do.call(rbind, Map(function(epsilon, seed) {
      release <- release_by_group(sets[[name]], epsilon, seed)
      do.call(rbind, Map(function(way, covariates) {
        row <- cbind(data = name, epsilon, covariates = way, grouped_slope(release, covariates, of_records))
        say("epsilon %g, %s: z %.2f, held %d, %.0f s", epsilon, way, row$z, row$held, row$seconds)
        row
      }, names(ways), ways))
    }, grid$epsilon, grid$seed))
  }))
  of <- split(rows, rows[c("covariates", "epsilon", "data")], drop = TRUE)
  table <- do.call(rbind, lapply(of, function(one) {
    cbind(one[1L, c("data", "epsilon", "covariates")], releases = nrow(one), held = mean(one$held), `mean z` = mean(one$z), `median sd` = stats::median(one$sd),
          seconds = stats::median(one$seconds), rhat = max(one$rhat), warned = mean(one$warned))
  }))
  rownames(table) <- NULL
  of_way <- function(way, what) rows[[what]][rows$covariates == way]
  bench_result(list(figure("95% intervals that hold the records' slope", "covariates pooled, the default", mean(of_way("pooled", "held")), 0.94),
                    figure("95% intervals that hold the records' slope", "each group its own prior", mean(of_way("separate", "held"))),
                    figure("mean absolute distance, posterior sds", "covariates pooled, the default", mean(abs(of_way("pooled", "z")))),
                    figure("mean absolute distance, posterior sds", "each group its own prior", mean(abs(of_way("separate", "z")))),
                    figure("processor seconds, pooled over separate", "median of ratios", stats::median(of_way("pooled", "seconds") / of_way("separate", "seconds"))),
                    figure("R-hat at most 1.01", "covariates pooled, the default", mean(of_way("pooled", "rhat") <= 1.01), 0.9)),
               list("By data set" = table), "Slopes are those of lme4; `warned`: the share of fits that warn of hidden scatter or contextual effects.")
}

run_alone(bench_grouped_covariates)
