#' @rdname design
#' @export
plot.noiseaware_design <- function(x, variables = NULL, ...) {
  check_no_dots(...)
  budget <- design_budget(x)
  all <- unique(x$variable)
  variables <- variables %||% setdiff(all, attr(x, "mirrored"))
  x <- x[x$variable %in% check_names_of(variables, "variables", "variables of the design", all), ]
  x$variable <- factor(x$variable, unique(x$variable))
  several <- length(unique(x$statistic)) > 1L
  ggplot2::ggplot(x, ggplot2::aes(x = .data[[budget]], y = .data$sd, shape = factor(.data$n), linetype = factor(.data$n),
                                  colour = .data$statistic, group = interaction(.data$n, .data$statistic))) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = pmax(.data$sd - 2 * .data$sd_mcse, 0), ymax = .data$sd + 2 * .data$sd_mcse),
                            linetype = "solid", alpha = 0.5) +
    ggplot2::geom_line() +
    ggplot2::geom_point(size = 2) +
    scale_log_x(x[[budget]]) +
    ggplot2::scale_y_continuous(limits = c(0, NA)) +
    scale_greys(length(unique(x$statistic)), guide = if (several) "legend" else "none") +
    facet_variables(scales = "free_y") +
    ggplot2::labs(x = paste("privacy budget", budget, "(log scale)"), y = "expected posterior sd", shape = "records n", linetype = "records n",
                  colour = "statistic", subtitle = "bars: plus and minus two Monte Carlo standard errors") +
    theme_noiseaware() +
    room_at_sides()
}
