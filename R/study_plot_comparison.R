#' @rdname compare_analyses
#' @param x A comparison.
#' @param variables Names of variables; all by default.
#' @export
plot.noiseaware_comparison <- function(x, variables = NULL, ...) {
  check_no_dots(...)
  all <- unique(x$table$variable)
  variables <- variables %||% setdiff(all, mirrored(parameter_matrix(x$fits[[1L]])))
  data <- x$table[x$table$variable %in% check_names_of(variables, "variables", "variables of the comparison", all), ]
  data$variable <- factor(data$variable, unique(data$variable))
  data$analysis <- factor(data$analysis, rev(unique(data$analysis)))
  ggplot2::ggplot(data, ggplot2::aes(y = .data$analysis)) +
    ggplot2::geom_linerange(ggplot2::aes(xmin = .data$lower, xmax = .data$upper), colour = "grey55", linewidth = 1.2) +
    ggplot2::geom_point(ggplot2::aes(x = .data$mean, shape = .data$analysis), size = 2.4, show.legend = FALSE) +
    scale_few_x() +
    facet_variables(scales = "free_x") +
    ggplot2::labs(x = sprintf("posterior mean and %s%% interval", format_number(100 * x$level)), y = NULL) +
    theme_noiseaware() +
    room_at_sides()
}
