#' Plot a fit
#'
#' Plots of posterior intervals, densities, chains, predictions, the prior, and the confidential totals.
#'
#' @param x A fit from [sample_posterior()].
#' @param type What to show.
#'   * `"intervals"`, the default unless `"table"` is: posterior medians with intervals. Light bars behind them show the prior's intervals, cut off at `<` or
#'     `>` if they are much wider. A fit of several sites or groups has a panel for each parameter; parameters of single sites have no bars.
#'   * `"areas"`: densities with medians and intervals, in darker shades. `"pairs"`: scatter plots of pairs of variables; long names are numbered.
#'     `"trace"` and `"density"` (bayesplot): each chain.
#'   * `"predictive"`: the expected response and a new record's response over the public range, or the levels, of one covariate. Other numeric covariates are
#'     held at the posterior mean of their mean, or at the middle of their bounds if the model has no mean; factors are held at their first level.
#'   * `"prior"`: the densities of the prior and the posterior. The horizontal range contains the central 90 per cent of the prior and nearly all of the
#'     posterior, but is at most 20 posterior standard deviations wide. A prior that rises far above the posterior is cut off. With partial pooling:
#'     only for what sites or groups share.
#'   * `"denoised"`: the posterior of the first 40 confidential numbers from [denoise()], as distances from the published numbers in standard deviations of the
#'     noise. Open points mark hidden numbers, relative to their posterior mean and sd. Without noise, numbers are in their own units.
#'   * `"table"`: a margin of a [model_table()] by method `"collapse"`. Each cell shows the posterior mean of its count plus or minus its standard deviation
#'     and, if the margin was released, the published number below. Exact numbers are alone; `(< 10)` marks hidden ones. The default for tables of two or
#'     three variables, unless `variables` are named.
#'   * `"mosaic"`: a margin of two variables as rectangles. Each column is as wide as the share of a level of the first variable. The rectangles in it are as high as
#'     the shares of the second variable among these records. Labels are these shares and their posterior sd.
#'   * `"survival"`: survival curves of [model_survival()], or of a life table. `"shrinkage"` and `"curve"`, for several sites or groups: see [site_view].
#' @param variables Names of variables. By default the coefficients and sigma of a regression, and all variables of other models. If two variables mirror each
#'   other, such as the probabilities of two levels, only one is shown. Unless you name the variables, `"pairs"` shows the first 8, and `"trace"`, `"density"` and
#'   `"prior"` the first 16, with a message of class `noiseaware_message_panels`.
#' @param covariate For `"predictive"`: the covariate's name; by default the
#'   first number, or the first factor if there is none.
#' @param level Probability inside the predictive band and inside the intervals. The thick part of an interval contains half of the posterior.
#' @param margin For `"table"` and `"mosaic"`: one margin of up to three variables (two for a mosaic), given by a formula such as `~ a:b`, see
#'   [denoise()]. It need not have been released. `NULL`: all variables, if there are at most three.
#' @param percent For `"table"`: whether to show percentages of all records instead of counts.
#' @param text_size For `"table"` and `"mosaic"`: the size of the numbers, as in [ggplot2::geom_text()].
#' @param times For `"survival"`: see [survival_measures()]; by default the breaks and 50 times between them.
#' @param ... Passed on to bayesplot; for `"areas"`, arguments `bw`, `adjust`, `kernel` and `n` of [stats::density()].
#' @return A ggplot. Its `$data` holds the plotted numbers, with a row for each point of a density, published number, cell, or time and group, and these
#'   columns:
#'
#' | type | columns |
#' | --- | --- |
#' | `"prior"` | `variable`, `distribution` ("prior" or "posterior"), `at`, `density` |
#' | `"denoised"` | `component`, for several sites `name[site]`; `published`, `NA` if hidden; `noise_sd`, 0 or `NA` without noise; `mean`, `sd`, `lower`, `upper` |
#' | `"table"` | one for each variable; `released`, `NA` where it was not; `noise_sd`; `mean`, `sd`, `lower`, `upper`; `hidden_below`, if numbers are hidden |
#' | `"mosaic"` | as for `"table"`; `share` and `share_sd` of the second variable's level among the records with the first one's |
#' | `"survival"` | `time`, the groups, `mean`, `median`, `lower`, `upper` of the survival probability |
#' @section Errors: `noiseaware_error_argument`; `noiseaware_error_pool` for the prior of sites with separate parameters; the errors of [denoise()] for tables
#'   and published numbers; `noiseaware_error_formula` for several margins or more than three variables.
#' @family plots
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' plot(fit)
#' plot(fit, "predictive")
#' plot(fit, "prior", "age")
#' plot(fit, "denoised")$data
#' @export
plot.noiseaware_fit <- function(x, type = c("intervals", "areas", "pairs", "trace", "density", "predictive", "prior", "denoised", "table", "mosaic", "survival"),
                                variables = NULL, covariate = NULL, level = 0.95, margin = NULL, percent = FALSE, text_size = 3, times = NULL, ...) {
  check_chosen_by(names(list(...)))
  as_table <- missing(type) && ...length() == 0L && is.null(variables) && shows_table(x)
  type <- if (as_table) "table" else if (missing(type)) "intervals" else check_choice(type, "type", eval(formals(plot.noiseaware_fit)$type))
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  if (!type %in% c("intervals", "areas", "trace", "density")) check_no_dots(...)
  most <- switch(type, pairs = 8L, prior = , trace = , density = 16L)
  if (is.null(variables) && !is.null(most)) variables <- first_variables(if (type == "prior") variables_with_prior(x) else plot_variables(x, NULL), most)
  whole <- switch(type, prior = plot_prior(x, variables), denoised = plot_denoised(x, level), table = plot_table(x, margin, level, percent, text_size),
                  mosaic = plot_mosaic(x, margin, level, text_size),
                  survival = plot_survival(x, level, times), predictive = plot_predictive(predictive_data(x, covariate, level), x, level))
  if (!is.null(whole)) return(whole)
  shown <- plot_variables(x, variables)
  panels <- parameter_panels(x, shown)
  if (!is.null(panels)) shown <- shown[order(match(panels, panels))]
  draws <- exactly(x$draws, shown) # subset_draws() matches "x[a]" by "x" as well
  switch(type,
    trace = chain_colours(bayesplot::mcmc_trace(draws, ...), draws, "free_y"),
    density = chain_colours(bayesplot::mcmc_dens_overlay(draws, ...), draws, "free") + theme_without_y(),
    intervals = plot_intervals(draws, level, prior_intervals(x, shown, level), sort(match(panels, unique(panels))), ...),
    areas = plot_areas(draws, level, sort(match(panels, unique(panels))), ...),
    pairs = plot_pairs(draws))
}

# bayesplot's own choices of variables do not know which there are
check_chosen_by <- function(names, call = caller_env()) {
  other <- intersect(names, c("pars", "regex_pars", "parm", "prob", "prob_outer"))
  if (length(other) == 0L) return(invisible())
  own <- if (startsWith(other[1L], "prob")) "{.arg level} is the probability inside the interval." else "{.arg variables} has the names of the variables to show."
  stop_classed("argument", c("{.arg {other[1L]}} is not an argument here.", i = own), call = call)
}

first_variables <- function(variables, most) {
  if (length(variables) <= most) return(variables)
  cli::cli_inform(c("Only the first {most} of {length(variables)} variables are shown.", i = "Use {.arg variables} to choose others."),
                  class = "noiseaware_message_panels")
  variables[seq_len(most)]
}

# Variables x (lower, upper), NA for parameters of single sites; NULL where there is no such prior, or a model has no draws of it.
prior_intervals <- function(fit, variables, level) {
  several <- inherits(fit, "noiseaware_pool")
  if (is_read_off(fit) || several && !fit$pool %in% c("complete", "partial")) return(NULL)
  prior <- tryCatch(with_seed(1L, prior_draws(fit, 1000L)), noiseaware_error = function(e) NULL)
  known <- variables %in% colnames(prior)
  if (!any(known) || !all(known) && !several) return(NULL)
  ends <- matrix(NA_real_, length(variables), 2L)
  ends[known, ] <- t(draws_interval(prior[, variables[known], drop = FALSE], level))
  ends
}

# The parameter that each variable of several sites belongs to; NULL for one population.
parameter_panels <- function(fit, variables) {
  if (!inherits(fit, "noiseaware_pool") || fit$pool == "complete") return(NULL)
  names <- c(fit_parameters(fit), "n")
  of_site <- unlist(lapply(names(fit$release), function(site) stats::setNames(names, site_variables(names, site))))
  ifelse(variables %in% names(of_site), of_site[variables], sub("^cor\\[.*", "cor", variables))
}

# `panels`: a number for each variable, of those that share an axis; empty: it depends on their widths.
plot_intervals <- function(draws, level, prior = NULL, panels = integer(), ...) {
  data <- bayesplot::mcmc_intervals_data(draws, prob = 0.5, prob_outer = level, point_est = "median", ...)
  # bayesplot's ends are of another type: see draws_quantiles()
  own <- match(posterior::variables(draws), data$parameter)
  data[own, c("ll", "l", "h", "hh")] <- t(draws_quantiles(posterior::as_draws_matrix(draws), (1 + c(-level, -0.5, 0.5, level)) / 2))
  data$row <- rev(seq_len(nrow(data)))
  if (!is.null(prior)) {
    axis <- if (length(panels)) panels else if (comparable(data$ll, data$hh)) rep(1L, nrow(data)) else seq_len(nrow(data))
    low <- stats::ave(data$ll, axis, FUN = min)
    high <- stats::ave(data$hh, axis, FUN = max)
    beyond <- ifelse(max(axis) == 1L | tabulate(axis)[axis] > 1L, 0.25, 0.5) * (high - low)
    lowest <- low - beyond
    highest <- high + beyond
    shown <- prior[match(data$parameter, posterior::variables(draws)), , drop = FALSE]
    data$prior_lower <- pmin(pmax(shown[, 1L], lowest), highest)
    data$prior_upper <- pmin(pmax(shown[, 2L], lowest), highest)
    cut <- rbind(data.frame(row = data$row, at = data$prior_lower, sign = "<")[which(shown[, 1L] < lowest), ],
                 data.frame(row = data$row, at = data$prior_upper, sign = ">")[which(shown[, 2L] > highest), ])
  }
  ends <- data[intersect(c("ll", "hh", "prior_lower", "prior_upper"), names(data))]
  zero <- data[do.call(pmin, c(ends, na.rm = TRUE)) < 0 & do.call(pmax, c(ends, na.rm = TRUE)) > 0, ]
  ggplot2::ggplot(data, ggplot2::aes(y = .data$row)) +
    (if (!is.null(prior)) {
      ggplot2::geom_segment(ggplot2::aes(x = .data$prior_lower, xend = .data$prior_upper, yend = .data$row), linewidth = 7, colour = "grey91", na.rm = TRUE)
    }) +
    (if (!is.null(prior)) ggplot2::geom_text(ggplot2::aes(x = .data$at, label = .data$sign), cut, size = 4, fontface = "bold", colour = "grey60")) +
    ggplot2::geom_segment(ggplot2::aes(x = 0, xend = 0, y = .data$row - 0.35, yend = .data$row + 0.35), zero, colour = "grey55", linetype = "dashed") +
    ggplot2::geom_segment(ggplot2::aes(x = .data$ll, xend = .data$hh, yend = .data$row), linewidth = 0.7, colour = "grey45") +
    ggplot2::geom_segment(ggplot2::aes(x = .data$l, xend = .data$h, yend = .data$row), linewidth = 2.2, colour = "grey45") +
    ggplot2::geom_point(ggplot2::aes(x = .data$m), size = 2.6) +
    rows_of_variables(data$row, data$parameter, data$ll, data$hh, panels) +
    ggplot2::labs(x = sprintf("posterior median, 50%% and %s%% interval", format_number(100 * level, 4)), y = NULL,
                  caption = if (!is.null(prior)) "light bars: the prior; < and >: it goes on beyond") +
    theme_of_rows()
}

# The whole density, but for tails beyond twice the width of the interval, which would hide the rest. In darker shades its interval and half of it.
plot_areas <- function(draws, level, panels = integer(), ...) {
  check_argument_names(list(...), c("bw", "adjust", "kernel", "n"))
  values <- posterior::as_draws_matrix(draws)
  variables <- posterior::variables(draws)
  at <- unname(t(draws_quantiles(values, (1 + c(-level, -0.5, 0, 0.5, level)) / 2)))
  reach <- 2 * (at[, 5L] - at[, 1L])
  ends <- t(apply(values, 2L, range))
  cut <- any(ends[, 1L] < at[, 1L] - reach | ends[, 2L] > at[, 5L] + reach)
  ends <- cbind(pmax(ends[, 1L], at[, 1L] - reach), pmin(ends[, 2L], at[, 5L] + reach))
  data <- do.call(rbind, lapply(seq_along(variables), function(v) {
    d <- stats::density(c(values[, v]), from = ends[v, 1L], to = ends[v, 2L], ...)
    x <- sort(c(d$x, at[v, ]))
    data.frame(parameter = variables[v], row = length(variables) + 1 - v, x = x, density = stats::approx(d, xout = x, rule = 2, ties = "ordered")$y,
               lower = at[v, 1L], lower_half = at[v, 2L], median = at[v, 3L], upper_half = at[v, 4L], upper = at[v, 5L])
  }))
  # areas are equal on one scale, unless peaks differ so much that some would be flat; else each fills its row
  height <- tapply(data$density, factor(data$parameter, variables), max)
  if (!length(panels) && comparable(ends[, 1L], ends[, 2L]) && max(height) < 8 * min(height)) height[] <- max(height)
  data$top <- data$row + 0.85 * data$density / as.vector(height)[match(data$parameter, variables)]
  area <- function(inside, fill) {
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$row, ymax = .data$top, group = .data$row), data = data[inside, ], fill = fill)
  }
  ggplot2::ggplot(data, ggplot2::aes(x = .data$x)) +
    area(TRUE, "grey90") +
    area(data$x >= data$lower & data$x <= data$upper, "grey78") +
    area(data$x >= data$lower_half & data$x <= data$upper_half, "grey58") +
    ggplot2::geom_segment(ggplot2::aes(xend = .data$x, y = .data$row, yend = .data$top), data = data[data$x == data$median, ], linewidth = 0.8) +
    rows_of_variables(rev(seq_along(variables)), variables, ends[, 1L], ends[, 2L], panels, 0.1) +
    ggplot2::labs(x = sprintf("posterior median, 50%% and %s%% interval", format_number(100 * level, 4)), y = NULL,
                  caption = if (cut) "long tails go on beyond the plot") +
    theme_of_rows()
}

# A row for each variable: on one scale, or else each on its own, or the variables of a panel on one.
rows_of_variables <- function(row, variable, lower, upper, panels = integer(), above = 0.6) {
  y <- function(below, above) {
    ggplot2::scale_y_continuous(breaks = row, labels = row_labels(variable), minor_breaks = NULL, expand = ggplot2::expansion(add = c(below, above)))
  }
  if (max(panels, 0L) > 1L) {
    panel <- rev(panels) # rows count from below
    return(list(y(0.4, above), scale_few_x(), facet_rows(ggplot2::vars(panel[.data$row]), tabulate(panels))))
  }
  if (length(panels) || comparable(lower, upper)) return(list(y(0.4, 0.6), ggplot2::scale_x_continuous()))
  list(y(0.15, 0.1), scale_few_x(), ggplot2::facet_wrap(ggplot2::vars(-.data$row), scales = "free", ncol = if (length(row) > 6L) 2L else 1L))
}

# panels below each other, as high as they have rows
facet_rows <- function(facets, rows) {
  wrap <- ggplot2::facet_wrap(facets, scales = "free", ncol = 1L)
  ggplot2::ggproto(NULL, wrap, draw_panels = function(self, ...) {
    table <- ggplot2::ggproto_parent(wrap, self)$draw_panels(...)
    table$heights[sort(unique(table$layout$t[startsWith(table$layout$name, "panel")]))] <- ggplot2::unit(rows, "null")
    table
  })
}

theme_of_rows <- function() {
  list(theme_noiseaware(), ggplot2::theme(strip.text = ggplot2::element_blank(), panel.spacing = ggplot2::unit(0.3, "lines"),
                                          axis.text.y = ggplot2::element_text(size = ggplot2::rel(1.1), colour = "black")), room_at_sides())
}

# Draws below the diagonal, densities on it, correlations above. Rows and columns
# share their axes, so that only the outer ones are labelled.
plot_pairs <- function(draws, most = 1000L) {
  values <- posterior::as_draws_matrix(draws)
  variables <- posterior::variables(draws)
  values <- matrix(values, nrow(values), dimnames = list(NULL, variables))
  panel <- function(i, j, ...) {
    data.frame(row = factor(variables[i], variables), column = factor(variables[j], variables), ...)
  }
  each <- function(make, keep) {
    pairs <- expand.grid(i = seq_along(variables), j = seq_along(variables))
    pairs <- pairs[keep(pairs$i, pairs$j), ]
    do.call(rbind, Map(make, pairs$i, pairs$j))
  }
  thin <- round(seq(1, nrow(values), length.out = min(nrow(values), most)))
  points <- each(function(i, j) panel(i, j, x = values[thin, j], y = values[thin, i]), `>`)
  # a density fills the height of its panel, whose y axis is the row's
  curves <- each(function(i, j) {
    d <- stats::density(values[, i])
    ends <- range(values[, i])
    panel(i, i, x = d$x, bottom = ends[1L], top = ends[1L] + 0.95 * diff(ends) * d$y / max(d$y))
  }, `==`)
  middle <- function(v) mean(range(values[, v]))
  text <- each(function(i, j) panel(i, j, x = middle(j), y = middle(i), label = sprintf("%.2f", round(stats::cor(values[, i], values[, j]), 2) + 0)), `<`)
  # names too long for a column stand once, in the rows, after the number of their column
  numbered <- any(nchar(variables) > 60 / length(variables))
  names <- vapply(short_intervals(variables), break_name, "", most = 24L)
  number <- as.character(seq_along(variables))
  labels <- ggplot2::labeller(row = stats::setNames(if (numbered) paste0(number, ". ", names) else names, variables),
                              column = stats::setNames(if (numbered) number else names, variables))
  ggplot2::ggplot(mapping = ggplot2::aes(x = .data$x)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$bottom, ymax = .data$top), data = curves, fill = "grey70") +
    (if (!is.null(points)) list(
      ggplot2::geom_point(ggplot2::aes(y = .data$y), data = points, size = 0.4, alpha = 0.25),
      ggplot2::geom_text(ggplot2::aes(y = .data$y, label = .data$label), data = text, size = 3.5))) +
    ggplot2::facet_grid(ggplot2::vars(.data$row), ggplot2::vars(.data$column), scales = "free", switch = "y", labeller = labels) +
    ggplot2::scale_x_continuous(n.breaks = 3, guide = ggplot2::guide_axis(check.overlap = TRUE)) +
    ggplot2::scale_y_continuous(n.breaks = 3) +
    ggplot2::labs(x = NULL, y = NULL, caption = "above the diagonal: correlations") +
    theme_noiseaware() +
    ggplot2::theme(panel.spacing = ggplot2::unit(0.5, "lines"), panel.border = ggplot2::element_rect(fill = NA, colour = "grey85"),
                   strip.placement = "outside", strip.text.y.left = ggplot2::element_text(angle = 0))
}

# bayesplot's shades of one colour leave some chains next to invisible
chain_colours <- function(plot, draws, scales) {
  by <- plot$facet$params$facets # none of one variable
  count <- posterior::nvariables(draws)
  suppressMessages(plot + scale_greys(posterior::nchains(draws), name = "Chain") + scale_few_x()) +
    (if (length(by)) facet_variables(by, count, scales = scales)) + theme_noiseaware() + theme_many_panels(count) + room_at_sides()
}

predictive_data <- function(fit, covariate = NULL, level = 0.95, points = 61) {
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  points <- check_count(points, "points", lower = 2)
  if (points > 1e4) stop_argument("points", "at most 10,000", describe(points))
  all <- plotted_covariates(fit)
  covariate <- check_choice(covariate %||% c(setdiff(all, names(fit$bound$levels)), all)[1L], "covariate", all)
  newdata <- covariate_rows(fit, stats::setNames(list(covariate_range(fit, covariate, points)), covariate))
  grid <- newdata[[covariate]]
  expected <- stats::predict(fit, newdata, type = "expected")
  if (length(dim(expected)) == 3L) return(predictive_categories(expected, covariate, grid, level))
  # of a linear regression one residual a draw, the same at every point: the band is smooth
  new <- with_seed(1L, if (inherits(fit$bound, "bound_glm")) add_residual(fit, expected) else expected + drop(add_residual(fit, numeric(nrow(expected)))))
  credible <- draws_interval(expected, level)
  predictive <- draws_interval(new, level)
  data.frame(covariate = covariate, x = grid, mean = colMeans(expected),
             credible_lower = credible[1L, ], credible_upper = credible[2L, ],
             predictive_lower = predictive[1L, ], predictive_upper = predictive[2L, ])
}

# names of the covariates against which the response can be shown
plotted_covariates <- function(fit, call = caller_env()) {
  if (is.null(response_of(fit$bound))) {
    stop_classed("argument", c("Only a regression has a response to predict, but this model is: {describe_model(fit$bound)}.",
                               i = "{.fn bayesplot::pp_check} compares any fit with its release."), call = call)
  }
  all <- unique(covariate_columns(fit$bound)$variable)
  if (length(all) == 0L) stop_classed("argument", "There is no covariate to plot against.", call = call)
  all
}

# a covariate between its bounds, or all levels of a factor
covariate_range <- function(fit, covariate, points) {
  levels <- fit$bound$levels[[covariate]]
  if (!is.null(levels)) return(factor(levels, levels))
  columns <- covariate_columns(fit$bound)
  at <- columns[match(covariate, columns$variable), ]
  seq(at$lower, at$upper, length.out = points)
}

# Where a number that is not shown is held: at the posterior mean of its mean, where the model has one, else at the middle of its bounds.
held_number <- function(fit, covariate) {
  name <- sprintf("mean[%s]", covariate)
  if (!name %in% posterior::variables(fit$draws)) return(covariate_range(fit, covariate, 3L)[2L])
  inside <- range(covariate_range(fit, covariate, 3L))
  min(max(mean(posterior::extract_variable(fit$draws, name)), inside[1L]), inside[2L])
}

# All combinations of `values`, by name; other numbers as held_number() has them, other factors at their first level.
covariate_rows <- function(fit, values) {
  all <- unique(covariate_columns(fit$bound)$variable)
  others <- setdiff(all, names(values))
  held <- lapply(stats::setNames(nm = others), function(v) if (is.null(fit$bound$levels[[v]])) held_number(fit, v) else covariate_range(fit, v)[1L])
  grid <- expand.grid(c(values, held), KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
  grid[all]
}

# of a response of several levels: a row for each point and level
predictive_categories <- function(expected, covariate, grid, level) {
  levels <- dimnames(expected)[[3L]]
  rows <- lapply(seq_along(levels), function(k) {
    p <- matrix(expected[, , k], nrow(expected))
    interval <- draws_interval(p, level)
    data.frame(covariate = covariate, x = grid, level = factor(levels[k], levels), mean = colMeans(p), credible_lower = interval[1L, ], credible_upper = interval[2L, ])
  })
  do.call(rbind, rows)
}

most_bands <- 8

plot_predictive <- function(data, fit, level) {
  response <- fit$bound$columns[1L, ]
  others <- setdiff(covariate_columns(fit$bound)$variable, data$covariate[1L])
  factors <- intersect(others, names(fit$bound$levels))
  numbers <- setdiff(others, factors)
  # of noisy records the bounds lie about the means, and nothing is clamped
  noisy <- has_record_noise(fit$release)
  held <- c(if (length(numbers)) paste(paste(numbers, collapse = ", "), "held at", if (noisy) "the mean of the noisy values" else
    if (all(sprintf("mean[%s]", numbers) %in% posterior::variables(fit$draws))) "the posterior mean" else "the middle of the bounds"),
            if (length(factors)) paste(factors, "=", vapply(fit$bound$levels[factors], `[[`, "", 1L), collapse = ", "))
  # a new answer of yes or no, or a new level, has no band
  binary <- !isFALSE(response_of(fit$bound)$binary)
  # far from the bands, bounds would flatten them
  bounded <- !binary && !noisy && response$upper - response$lower < most_bands * diff(range(data$predictive_lower, data$predictive_upper))
  yes <- if (response$variable %in% names(fit$bound$levels)) fit$bound$levels[[response$variable]][2L] else "1"
  ggplot2::ggplot(data, ggplot2::aes(x = .data$x)) +
    (if (is.factor(data$x)) predictive_levels(binary) else predictive_bands(binary)) +
    (if (bounded) ggplot2::geom_hline(yintercept = c(response$lower, response$upper), linetype = "dotted", colour = "grey40")) +
    ggplot2::labs(x = data$covariate[1L], y = if (!is.null(data$level)) sprintf("P(%s)", response$variable) else
                    if (binary) sprintf("P(%s = %s)", response$variable, yes) else response$name,
                  subtitle = paste0(format_number(100 * level), if (is.factor(data$x)) "% intervals" else "% bands",
                                    if (bounded) paste("; dotted: bounds of", response$name)),
                  caption = if (length(held)) paste(held, collapse = "; ")) +
    theme_noiseaware() +
    (if (!is.null(data$level)) ggplot2::facet_wrap(ggplot2::vars(.data$level), nrow = 1L)) +
    (if (binary) ggplot2::theme(legend.position = "none"))
}

predictive_bands <- function(binary) {
  band <- function(lower, upper, what) {
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data[[lower]], ymax = .data[[upper]], fill = what), alpha = 0.9)
  }
  list(if (!binary) band("predictive_lower", "predictive_upper", "new record"), band("credible_lower", "credible_upper", "expected response"),
       ggplot2::geom_line(ggplot2::aes(y = .data$mean), linewidth = 0.8),
       ggplot2::scale_fill_manual(values = c("new record" = "grey85", "expected response" = "grey60"), name = NULL))
}

predictive_levels <- function(binary) {
  interval <- function(lower, upper, what, width) {
    ggplot2::geom_linerange(ggplot2::aes(ymin = .data[[lower]], ymax = .data[[upper]], colour = what), linewidth = width)
  }
  list(if (!binary) interval("predictive_lower", "predictive_upper", "new record", 5), interval("credible_lower", "credible_upper", "expected response", 2.5),
       ggplot2::geom_point(ggplot2::aes(y = .data$mean), size = 2.6),
       ggplot2::scale_colour_manual(values = c("new record" = "grey85", "expected response" = "grey60"), name = NULL))
}
