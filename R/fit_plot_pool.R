# Plots of pools. A curve is a parameter over sites that have an order: weeks, or the intervals of a number.

#' @rdname pool_methods
#' @export
plot.noiseaware_pool <- function(x, type = NULL, ..., parameter = NULL, level = 0.95, alone = NULL) {
  if (!is.null(type)) check_choice(type, "type", c("trace", "density", "intervals", "areas", "pairs", "predictive", "prior", "denoised", "shrinkage", "curve"))
  if (identical(type %||% if (x$pool == "walk") "curve", "curve")) {
    check_no_dots(...)
    return(plot_curve(x, parameter, level))
  }
  if (identical(type, "shrinkage")) {
    check_no_dots(...)
    return(plot_shrinkage(x, parameter, level, alone))
  }
  if (identical(type, "predictive") && has_average(x)) {
    return(plot(average_site(x), type, level = level, ...) + ggplot2::labs(subtitle = average_title(x)))
  }
  if (x$pool != "complete" && identical(type, "predictive")) {
    stop_classed("pool", c("Each site has its own parameters, so there is no single prediction to plot.",
                           i = if (is_of_groups(x)) "{.fn predict} takes the group as a column of {.arg newdata}." else "{.fn predict} takes a {.arg site}."))
  }
  NextMethod()
}

average_title <- function(fit) if (is_of_groups(fit)) "A group at the mean of all" else "A site at the mean of all"

plot_curve <- function(fit, parameter, level, call = caller_env()) {
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE, call = call)
  if (fit$pool == "complete") {
    stop_classed("pool", "Sites of {.arg fit} have the same parameters, so that there is no curve: {.code pool = \"complete\"}.", call = call)
  }
  of <- parameter_of_sites(fit, parameter, call)
  sites <- names(fit$release)
  group <- fit$asked$model$group
  middles <- interval_middles(group, sites)
  estimates <- summary_columns(of$values, level)
  data <- data.frame(site = sites, x = middles %||% seq_along(sites), estimate = estimates[1L, ], lower = estimates[2L, ], upper = estimates[3L, ], row.names = NULL)
  across <- if (!is.null(group)) base_variables(group)
  with_table(draw_curve(data, across, if (name_is_bare(of$name)) paste(of$name, "of", fit$bound$columns$variable[1L]) else of$name, level, !is.null(middles)), data)
}

name_is_bare <- function(name) !grepl("[", name, fixed = TRUE)

draw_curve <- function(data, across, up, level, numeric) {
  shown <- seq(1, nrow(data), by = ceiling(nrow(data) / 12))
  ggplot2::ggplot(data, ggplot2::aes(.data$x, .data$estimate)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), fill = "grey85") +
    ggplot2::geom_line() +
    ggplot2::geom_point(size = if (nrow(data) > 40L) 0.8 else 1.6) +
    (if (!numeric) ggplot2::scale_x_continuous(breaks = shown, labels = data$site[shown], minor_breaks = NULL, guide = ggplot2::guide_axis(check.overlap = TRUE))) +
    ggplot2::labs(x = across, y = up, subtitle = sprintf("posterior means with %s%% intervals", format_number(100 * level))) +
    theme_noiseaware()
}

# The middles of intervals: of the breaks of cut(), where the factor is one, else as the levels say. An interval without an end is as wide as its neighbour.
# NULL: these are no intervals.
interval_middles <- function(group, levels) {
  f <- if (!is.null(group)) named_function(group)
  step <- if (!is.null(f)) f$steps[[length(f$steps)]]
  breaks <- if (identical(step$name, "cut") && identical(step$labels, levels)) step$breaks else breaks_of_labels(levels)
  if (is.null(breaks)) return(NULL)
  widths <- diff(breaks)
  last <- length(breaks)
  if (breaks[1L] == -Inf) breaks[1L] <- breaks[2L] - widths[2L]
  if (breaks[last] == Inf) breaks[last] <- breaks[last - 1L] + widths[last - 2L]
  middles <- breaks[-1L] - diff(breaks) / 2
  if (all(is.finite(middles))) middles
}

# of "(0,3]", "(3,6]", ...
breaks_of_labels <- function(levels) {
  number <- "(-?(?:Inf|[0-9.]+(?:e[-+]?[0-9]+)?))"
  found <- regmatches(levels, regexec(paste0("^[[(]", number, ", ?", number, "[])]$"), levels, perl = TRUE))
  if (any(lengths(found) != 3L)) return(NULL)
  lower <- as.double(vapply(found, `[`, "", 2L))
  upper <- as.double(vapply(found, `[`, "", 3L))
  if (all(lower < upper) && all(lower[-1L] == upper[-length(upper)])) c(lower, upper[length(upper)])
}
