# survival: curves of fits of model_survival(), and of life tables, as survfit objects: steps at `times`, with the quantiles of each probability's draws.
# A quantile of survival, where the limits of the curve cross a level, is then the quantile of the draws of that time, but for the steps.

#' Survival curves for the package survival
#'
#' Converts the curves of a fit to an object of class `survfit`, for which the package survival has `plot()`, `summary()`, `quantile()`, `lines()` and more.
#'
#' @param formula A fit of [model_survival()], or of [model_table()] to a release of [stat_survival()].
#' @param times `NULL`, or times as in [survival_measures()]. By default, 201 times from the first break to the last for [model_survival()], and the breaks for
#'   [model_table()].
#' @param conf.int Probability inside the intervals.
#' @param ... Must be empty.
#'
#' @return An object of class `survfit`, with a stratum for each group. The curve is the posterior median of the probability of survival at each time. Its limits
#'   `lower` and `upper` are the ends of the equal-tailed posterior interval, time by time, and `std.err` is the posterior standard deviation.
#' @details
#' The curve is a step function, so quantiles are rounded up to the next of `times`. The limits of `quantile()` are posterior quantiles of the time, up to that
#' rounding. Numbers of persons are posterior means, with events and censoring at the ends of their intervals.
#'
#' Two results of survival do not account for the noise: the standard error of a restricted mean in `print(rmean = )`, and tests that use the numbers of
#' persons. [survival_measures()] gives the posterior of restricted means, and [private_test()] the log-rank test.
#' @section Errors: `noiseaware_error_argument`, also for a fit that does not store the counts of its table: see `margin` in [denoise()].
#' @family package interfaces
#' @name survfit
#' @examples
#' weeks <- c(0, 5, 10, 15, 20, 36)
#' arms <- list(treat = c("6-MP", "control"))
#' exits <- survival_exits(MASS::gehan, Surv(time, cens) ~ treat, weeks, arms)
#' set.seed(1)
#' st <- stat_survival(~ treat, weeks, arms)
#' rel <- simulate_release(exits, st, mech_discrete_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_survival(), chains = 2, iter = 600, seed = 1)
#' if (requireNamespace("survival", quietly = TRUE)) {
#'   curves <- survival::survfit(fit)
#'   print(quantile(curves, 0.5))
#'   summary(curves, times = c(10, 20))
#'   plot(curves, conf.int = TRUE, lty = 1:2)
#' }
#' @exportS3Method survival::survfit
survfit.noiseaware_fit <- function(formula, times = NULL, conf.int = 0.95, ...) {
  check_no_dots(...)
  conf.int <- check_number(conf.int, "conf.int", "a number between 0 and 1", 0, 1, strict = TRUE)
  call <- environment()
  if (inherits(formula, "noiseaware_pool")) refuse_several(formula, "formula", call = call)
  curves <- survival_curves(formula, call)
  remind_troubles(formula)
  ends <- range(curves$breaks)
  fine <- if (curves$parametric) sort(unique(c(curves$breaks, seq(ends[1L], ends[2L], length.out = 201L)))) else curves$breaks
  times <- sort(check_survival_times(times, curves, fine, call))
  draws <- lapply(unname(curves$of), function(of) unname(of("survival", times)))
  quantiles <- do.call(cbind, lapply(draws, draws_quantiles, c((1 - conf.int) / 2, 0.5, (1 + conf.int) / 2)))
  exits <- grouped_exits(formula, curves, call)
  # an interval has its events and censorings at its end
  ending <- match(times, curves$breaks[-1L], 0L)
  within <- pmin(pmax(findInterval(times, curves$breaks, left.open = TRUE), 1L), length(curves$breaks) - 1L)
  at_end <- function(counts) as.vector(rbind(0, counts)[ending + 1L, ])
  strata <- if (length(draws) > 1L) list(strata = stats::setNames(rep(length(times), length(draws)), gsub(":", ", ", curves$group, fixed = TRUE)))
  structure(c(list(n = exits$entered[1L, ], time = rep(times, length(draws)), n.risk = as.vector(exits$entered[within, ]), n.event = at_end(exits$event),
                   n.censor = at_end(exits$censored), surv = quantiles[2L, ], std.err = unlist(lapply(draws, apply, 2L, stats::sd)), start.time = ends[1L]),
              strata, list(type = "right", logse = FALSE, conf.int = conf.int, conf.type = "plain", lower = quantiles[1L, ], upper = quantiles[3L, ],
                           call = quote(survfit(formula = fit)))), class = "survfit")
}

# Posterior means of how many enter each interval, have the event or are censored there: matrices intervals x groups
grouped_exits <- function(fit, curves, call) {
  variables <- c(names(curves$levels), "exit")
  margin <- stats::as.formula(paste("~", paste0("`", variables, "`", collapse = ":")))
  counts <- matrix(colMeans(plain_matrix(denoise_margin(fit, margin, call))), ncol = length(curves$of))
  event <- 2L * seq_len(nrow(counts) %/% 2L) - 1L
  entered <- apply(counts, 2L, function(exits) rev(cumsum(rev(exits))))
  list(entered = entered[event, , drop = FALSE], event = counts[event, , drop = FALSE], censored = counts[event + 1L, , drop = FALSE])
}
