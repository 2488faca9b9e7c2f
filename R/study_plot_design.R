#' @rdname design
#' @export
plot.noiseaware_design <- function(x, variables = NULL, ...) {
  check_no_dots(...)
  budget <- design_budget(x)
  all <- unique(x$variable)
  found <- unique(attr(x, "needed")$budget)
  found <- found[which(found > 0)]
  variables <- variables %||% attr(x, "of_interest") %||% setdiff(all, attr(x, "mirrored"))
  ratio <- attr(x, "asked")
  x <- x[x$variable %in% check_names_of(variables, "variables", "variables of the design", all), ]
  x$variable <- factor(x$variable, unique(x$variable))
  several <- length(unique(x$statistic)) > 1L
  # of a search what it is about: the ratio of widths
  x$y <- if (is.null(ratio)) x$sd else x$ratio
  x$error <- x$y * 2 * x$sd_mcse / x$sd
  ggplot2::ggplot(x, ggplot2::aes(x = .data[[budget]], y = .data$y, shape = factor(.data$n), linetype = factor(.data$n),
                                  colour = .data$statistic, group = interaction(.data$n, .data$statistic))) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = pmax(.data$y - .data$error, 0), ymax = .data$y + .data$error), linetype = "solid", alpha = 0.5) +
    (if (!is.null(ratio)) list(
      ggplot2::geom_hline(yintercept = ratio, linetype = "dotted"),
      ggplot2::annotate("text", x = min(x[[budget]]), y = ratio, label = paste("asked:", format_number(ratio)), hjust = 0, vjust = -0.5, size = 3))) +
    (if (length(found)) list(
      ggplot2::geom_vline(xintercept = found, linetype = "dotted"),
      ggplot2::annotate("text", x = found, y = 0, label = format_number(found, 3), hjust = -0.1, size = 3))) +
    ggplot2::geom_line() +
    ggplot2::geom_point(size = 2) +
    scale_log_x(if (is.null(ratio)) x[[budget]]) +
    ggplot2::scale_y_continuous(limits = c(0, NA)) +
    scale_greys(length(unique(x$statistic)), guide = if (several) "legend" else "none") +
    facet_variables(scales = "free_y") +
    ggplot2::labs(x = paste("privacy budget", budget, "(log scale)"), y = if (is.null(ratio)) "expected posterior sd" else "width over the width without noise",
                  shape = "records n", linetype = "records n",
                  colour = "statistic", subtitle = "bars: plus and minus two Monte Carlo standard errors") +
    theme_noiseaware() +
    room_at_sides()
}
