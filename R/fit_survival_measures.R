# Survival curves and derived measures, for fits of model_table() (life tables) and model_survival().

#' Survival curves, medians and hazard ratios
#'
#' Posterior draws of survival by group, from a fit to a release of [stat_survival()].
#'
#' @param fit A fit of [model_survival()], or of [model_table()] to a release of [stat_survival()].
#' @param measure `"survival"`: the probability of no event up to each of `times`. `"hazard"`: for [model_survival()], the hazard at each of `times`, per unit
#'   of time; for [model_table()] and for a discrete distribution, the probability of an event in each interval given entry into it. `"median"`: the time by
#'   which half have had the event. `"restricted_mean"`: the mean time without the event up to the last break. `"hazard_ratio"`: for [model_survival()], the
#'   exponentials of the coefficients.
#' @param times `NULL`, the breaks of the release; or times from the first break on, for a fit of [model_survival()]. Times for a piecewise exponential or
#'   discrete distribution cannot exceed the last break.
#'
#' @details
#' All measures are conditional on survival up to the first break, and restricted means are counted from there. A Weibull or exponential median may lie beyond
#' the last break, where nothing was released; other medians are `Inf` in that case. A discrete distribution is treated here as having a constant hazard between
#' breaks.
#'
#' For a fit of [model_table()], people censored in an interval count as at risk for half of it, as in life tables. Let \eqn{e_j} and \eqn{c_j} be the
#' probabilities of an event and of censoring in interval \eqn{j}, and \eqn{l_j} the probability of leaving later. The hazard is \eqn{h_j = e_j / (e_j + c_j / 2 + l_j)},
#' and survival is the product of the \eqn{1 - h_j}, linear between breaks. Censoring is assumed to be independent of the event.
#'
#' @return A [posterior::draws_array], with variables for each group.
#' @section Errors: `noiseaware_error_argument`.
#' @references Lawless, J. F. (2003). *Statistical Models and Methods for Lifetime Data*, second edition. Wiley. Chapter 3.6, life tables.
#' @seealso [plot()][plot.noiseaware_fit] for curves, [predict()][predict.noiseaware_fit] for groups by name, [stat_survival()] for the released counts.
#' @family tables and survival
#' @examples
#' weeks <- c(0, 5, 10, 15, 20, 36)
#' arms <- list(treat = c("6-MP", "control"))
#' exits <- survival_exits(MASS::gehan, Surv(time, cens) ~ treat, weeks, arms)
#' set.seed(1)
#' st <- stat_survival(~ treat, weeks, arms)
#' rel <- simulate_release(exits, st, mech_discrete_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_survival(), chains = 2, iter = 600, seed = 1)
#' medians <- survival_measures(fit, "median")
#' posterior::summarise_draws(medians, "median", ~ quantile(.x, c(0.05, 0.95)))
#' plot(fit, "survival")
#' @concept hazard ratio
#' @export
survival_measures <- function(fit, measure = c("survival", "hazard", "median", "restricted_mean", "hazard_ratio"), times = NULL) {
  check_given()
  measures <- c("survival", "hazard", "median", "restricted_mean", "hazard_ratio")
  measure <- if (missing(measure)) "survival" else check_choice(measure, "measure", measures)
  curves <- survival_curves(fit, environment())
  if (measure == "hazard_ratio") return(by_chain(hazard_ratios(fit, environment()), fit))
  times <- check_survival_times(times, curves, default_times(measure, curves), environment(), measure)
  measured <- Map(function(of, group) {
    out <- of(measure, times)
    colnames(out) <- paste0(curves$names(measure, times), if (nzchar(group)) "|", group)
    out
  }, curves$of, curves$group)
  by_chain(do.call(cbind, unname(measured)), fit)
}

# Curves of the survival probability, for the plot of a fit.
plot_survival <- function(fit, level = 0.95, times = NULL, call = caller_env()) {
  data <- survival_table(fit, level, times, call)
  groups <- setdiff(names(data), c("time", "mean", "median", "lower", "upper"))
  data$group <- if (length(groups)) interaction(data[groups], sep = ", ", lex.order = TRUE) else factor("")
  breaks <- survival_curves(fit, call)$breaks
  at_breaks <- data[data$time %in% breaks, ]
  plot <- ggplot2::ggplot(data, ggplot2::aes(x = .data$time, y = .data$median, colour = .data$group, fill = .data$group)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), alpha = 0.2, colour = NA) +
    ggplot2::geom_line(linewidth = 0.8) +
    ggplot2::geom_point(data = at_breaks, size = 1.5) +
    ggplot2::scale_x_continuous(breaks = breaks, labels = function(x) format_number(x, 4)) +
    ggplot2::scale_y_continuous(limits = c(0, 1)) +
    ggplot2::labs(x = "time", y = "probability of no event", colour = paste(groups, collapse = ", "), fill = paste(groups, collapse = ", "),
                  subtitle = paste0("posterior median and ", format_number(100 * level), "% intervals, points at the breaks")) +
    theme_noiseaware()
  if (length(groups) == 0L) plot <- plot + ggplot2::guides(colour = "none", fill = "none")
  with_table(plot, data[names(data) != "group"])
}

# For each group, of `levels`, a function of a measure and times that gives draws x times; `names` of these columns.
survival_curves <- function(fit, call) {
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()", call = call)
  bound <- fit$bound
  breaks <- if (inherits(bound, "bound_table")) breaks_of_exits(as.character(bound$levels$exit))
  if (is.null(breaks)) {
    stop_classed("argument", c("{.arg fit} must be a fit of {.fn model_survival}, or of {.fn model_table} to a release of {.fn stat_survival}.",
                               x = "Its model is: {describe_model(bound)}."), call = call)
  }
  levels <- bound$levels[names(bound$levels) != "exit"]
  parametric <- inherits(bound, "bound_survival")
  of <- if (parametric) parametric_curves(fit, survival_grid(levels)) else life_table_curves(fit, names(levels), breaks, call)
  by_interval <- !parametric || bound$model$distribution == "discrete"
  names <- function(measure, times) {
    at <- paste0("[", level_text(times), "]")
    switch(measure, survival = paste0("survival", at), hazard = paste0("hazard", if (!by_interval) at else interval_labels(breaks)), measure)
  }
  list(of = of, names = names, group = group_labels(levels), levels = levels, breaks = breaks, parametric = parametric, by_interval = by_interval,
       ends = if (parametric && !has_process(bound$model$distribution)) Inf else breaks[length(breaks)])
}

# hazards by interval belong to the intervals that begin then
default_times <- function(measure, curves) {
  last <- length(curves$breaks)
  switch(measure, survival = curves$breaks[-1L], hazard = if (curves$by_interval) curves$breaks[-last] else curves$breaks[-1L],
         restricted_mean = curves$breaks[last])
}

check_survival_times <- function(times, curves, default, call, measure = "survival") {
  if (is.null(times)) return(default)
  if (curves$parametric && curves$by_interval && measure == "hazard") {
    stop_classed("argument", "{.arg times} must be NULL for hazards of a discrete distribution, which has one for each interval.", call = call)
  }
  if (!curves$parametric) stop_classed("argument", "{.arg times} must be NULL for a fit of {.fn model_table}, which determines curves only at the breaks.", call = call)
  first <- curves$breaks[1L]
  must <- if (is.finite(curves$ends)) sprintf("different numbers from %s to %s, the first and the last break", format_number(first), format_number(curves$ends)) else
    sprintf("different finite numbers from %s, the first break, on", format_number(first))
  ok <- is.numeric(times) && length(times) > 0L && all(is.finite(times)) && !anyDuplicated(as.double(times)) && all(times >= first & times <= curves$ends)
  if (!ok) stop_argument("times", must, describe(times), call = call)
  as.double(times)
}

hazard_ratios <- function(fit, call) {
  if (!inherits(fit$bound, "bound_survival")) {
    stop_classed("argument", "Only a fit of {.fn model_survival} has hazard ratios.", call = call)
  }
  ratios <- setdiff(fit$bound$coefficients, "(Intercept)")
  if (length(ratios) == 0L) stop_classed("argument", "The model has no coefficients, so there are no hazard ratios.", call = call)
  exp(parameter_matrix(fit)[, ratios, drop = FALSE])
}

survival_table <- function(fit, level, times, call) {
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE, call = call)
  curves <- survival_curves(fit, call)
  ends <- range(curves$breaks)
  default <- if (curves$parametric) sort(unique(c(curves$breaks, seq(ends[1L], ends[2L], length.out = 52L)))) else curves$breaks
  times <- check_survival_times(times, curves, default, call)
  probabilities <- c((1 - level) / 2, 0.5, (1 + level) / 2)
  groups <- if (length(curves$levels)) survival_grid(curves$levels)
  rows <- Map(function(of, g) {
    survival <- of("survival", times)
    quantiles <- draws_quantiles(survival, probabilities)
    table <- data.frame(time = times, mean = colMeans(survival), median = quantiles[2L, ], lower = quantiles[1L, ], upper = quantiles[3L, ])
    if (is.null(groups)) table else cbind(table["time"], groups[rep(g, nrow(table)), , drop = FALSE], table[-1L], row.names = NULL)
  }, curves$of, seq_along(curves$of))
  do.call(rbind, unname(rows))
}

# ---- life tables ---------------------------------------------------------------------------------

life_table_curves <- function(fit, groups, breaks, call) {
  exits <- conditional_draws(fit, list(of = "exit", given = groups), call)
  each <- length(fit$bound$levels$exit)
  lapply(seq_len(ncol(exits) / each), function(g) {
    hazard <- life_table_hazard(exits[, (g - 1L) * each + seq_len(each), drop = FALSE])
    survival <- cumulated_survival(hazard)
    function(measure, times) {
      switch(measure, hazard = hazard, survival = survival[, match(times, breaks), drop = FALSE], median = cbind(half_time(survival, breaks)),
             restricted_mean = (survival[, -1L, drop = FALSE] + survival[, -ncol(survival), drop = FALSE]) %*% diff(breaks) / 2)
    }
  })
}

# of probabilities of exits, draws x exits
life_table_hazard <- function(exits) {
  intervals <- (ncol(exits) - 1L) / 2L
  event <- 2L * seq_len(intervals) - 1L
  entered <- t(apply(exits, 1L, function(p) rev(cumsum(rev(p)))))[, event, drop = FALSE]
  exits[, event, drop = FALSE] / (entered - exits[, event + 1L, drop = FALSE] / 2)
}

# from 1 at the first break, draws x breaks
cumulated_survival <- function(hazard) {
  survival <- matrix(1, nrow(hazard), ncol(hazard) + 1L)
  for (j in seq_len(ncol(hazard))) survival[, j + 1L] <- survival[, j] * (1 - hazard[, j])
  survival
}

half_time <- function(survival, breaks) {
  apply(survival, 1L, function(s) {
    j <- match(TRUE, s <= 0.5)
    if (is.na(j)) return(Inf)
    breaks[j - 1L] + (s[j - 1L] - 0.5) / (s[j - 1L] - s[j]) * (breaks[j] - breaks[j - 1L])
  })
}

# ---- proportional hazards ------------------------------------------------------------------------

# For each row of groups
parametric_curves <- function(fit, grid) {
  bound <- fit$bound
  draws <- parameter_matrix(fit)
  breaks <- bound$breaks
  design <- survival_design(bound$terms, grid)[, bound$coefficients, drop = FALSE]
  process <- has_process(bound$model$distribution)
  if (process) design[, colnames(design) == "(Intercept)"] <- 0 # the hazards have it
  ratio <- exp(draws[, bound$coefficients, drop = FALSE] %*% t(design))
  if (process) {
    by <- bound$model$baseline_by
    stratum <- strata_rows(by, grid)
    discrete <- bound$model$distribution == "discrete"
    return(lapply(seq_len(nrow(design)), function(g) {
      hazards <- draws[, paste0("hazard", interval_labels(breaks), strata_labels(by, bound$levels)[stratum[g]]), drop = FALSE]
      if (discrete) hazards <- sweep(-log1p(-hazards), 2L, diff(breaks), `/`)
      piecewise_curve(ratio[, g] * hazards, breaks, discrete)
    }))
  }
  shape <- if (bound$model$distribution == "weibull") draws[, "shape"] else rep(1, nrow(draws))
  lapply(seq_len(nrow(design)), function(g) weibull_curve(ratio[, g] * breaks[length(breaks)], shape, breaks))
}

# The cumulative hazard is `size` times the power `shape` of the share of the last break.
weibull_curve <- function(size, shape, breaks) {
  last <- breaks[length(breaks)]
  grown <- function(times) size * outer(shape, times / last, function(k, r) r^k)
  before <- grown(breaks[1L])[, 1L]
  # of exp(-H) from 0 to a time
  area <- function(time) {
    last * exp(lgamma(1 + 1 / shape) - log(size) / shape + stats::pgamma(size * (time / last)^shape, 1 / shape, log.p = TRUE))
  }
  function(measure, times) {
    switch(measure, survival = exp(before - grown(times)), hazard = size * shape / last * outer(shape, times / last, function(k, r) r^(k - 1)),
           median = cbind(last * ((log(2) + before) / size)^(1 / shape)),
           restricted_mean = vapply(times, function(t) exp(before) * (area(t) - area(breaks[1L])), numeric(length(size))))
  }
}

# `hazard`: draws x intervals, per unit of time; `discrete`: the hazard is known as the probability of an event in each interval
piecewise_curve <- function(hazard, breaks, discrete = FALSE) {
  intervals <- ncol(hazard)
  growth <- sweep(hazard, 2L, diff(breaks), `*`)
  cumulated <- cbind(0, matrix(t(apply(growth, 1L, cumsum)), nrow(hazard)))
  interval <- function(times) pmin(findInterval(times, breaks), intervals)
  grown <- function(times) {
    j <- interval(times)
    cumulated[, j, drop = FALSE] + sweep(hazard[, j, drop = FALSE], 2L, times - breaks[j], `*`)
  }
  median <- function() {
    j <- max.col(cumulated >= log(2), "first") - 1L # the first break is at 0
    at <- cbind(seq_along(j), pmax(j, 1L))
    ifelse(j == 0L, Inf, breaks[at[, 2L]] + (log(2) - cumulated[at]) / hazard[at])
  }
  function(measure, times) {
    switch(measure, survival = exp(-grown(times)), hazard = if (discrete) -expm1(-growth) else hazard[, interval(times), drop = FALSE], median = cbind(median()),
           restricted_mean = vapply(times, function(t) {
             inside <- pmin(pmax(t - breaks[-length(breaks)], 0), diff(breaks))
             rowSums(exp(-cumulated[, -ncol(cumulated), drop = FALSE]) * -expm1(-sweep(hazard, 2L, inside, `*`)) / hazard)
           }, numeric(nrow(hazard))))
  }
}

# ---- predict() -----------------------------------------------------------------------------------

survival_types <- c("survival", "hazard", "median", "rmst")

predict_survival <- function(fit, newdata, type, interval, level, times, call = caller_env()) {
  if (!type %in% survival_types) {
    stop_argument("type", "one of \"survival\", \"hazard\", \"median\" and \"rmst\" for a fit of model_survival()", describe(type), call = call)
  }
  if (interval == "predictive") stop_classed("argument", "{.arg interval} must be \"none\" or \"credible\" for a fit of {.fn model_survival}.", call = call)
  bound <- fit$bound
  curves <- survival_curves(fit, call)
  measure <- if (type == "rmst") "restricted_mean" else type
  times <- check_survival_times(times, curves, default_times(measure, curves), call, measure)
  needed <- union(all.vars(bound$terms), bound$model$baseline_by)
  rows <- survival_rows(newdata, bound, needed, call)
  of <- parametric_curves(fit, rows)
  each <- if (type == "median") NA_real_ else times
  tables <- lapply(seq_along(of), function(g) {
    draws <- of[[g]](measure, times)
    table <- data.frame(fit = unname(apply(draws, 2L, if (type == "median") stats::median else mean)))
    if (interval == "credible") {
      tails <- draws_interval(draws, level)
      table <- cbind(table, lower = tails[1L, ], upper = tails[2L, ])
    }
    if (type != "median") table <- cbind(time = each, table)
    if (length(needed)) cbind(rows[rep(g, nrow(table)), needed, drop = FALSE], table, row.names = NULL) else table
  })
  do.call(rbind, tables)
}

# the rows as factors with the declared levels
survival_rows <- function(newdata, bound, needed, call) {
  if (!is.data.frame(newdata)) stop_argument("newdata", "a data frame with the groups", describe(newdata), "data", call)
  if (length(needed) == 0L) return(data.frame(row.names = seq_len(max(1L, nrow(newdata)))))
  columns <- data.frame(variable = needed, name = needed, level = NA_character_)
  codes <- record_matrix(newdata, columns, bound$levels[needed], call, "newdata")
  as.data.frame(lapply(stats::setNames(seq_along(needed), needed), function(v) {
    factor(bound$levels[[needed[v]]][codes[, v] + 1], bound$levels[[needed[v]]])
  }), optional = TRUE)
}
