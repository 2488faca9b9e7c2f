#' Convert a release to a data frame, or plot it
#'
#' The published numbers with their noise, as a data frame or as a plot.
#'
#' @param x A release: [release()], [as_release()], [read_release()]; for `plot()` also the sites of [as_release()] of a data frame.
#' @param row.names,optional Not used; required by the generic function.
#' @param ... Must be empty.
#' @return `as.data.frame()` has a row for each published number: `component`, `value`, `noise_sd` (0 if exact), and `lower` and `upper`, the smallest and
#'   the largest number that n records can give, each `NA` if not known. If numbers are hidden ([published()]), `hidden_below` has the threshold.
#'   `plot()` returns a ggplot of these numbers, with error bars of plus and minus two standard deviations of the noise.
#' @seealso [noise_sd()]; `bayesplot::pp_check()` compares a release with a fitted model.
#' @family plots
#' @examples
#' st <- stat_counts(~ race, levels = list(race = c("1", "2", "3")))
#' rel <- as_release(c(99.2, 27.8, 61.4), st, mech_laplace(epsilon = 0.5), n = 189)
#' as.data.frame(rel)
#' plot(rel)
#' @export
plot.noiseaware_release <- function(x, ...) {
  check_no_dots(...)
  if (has_record_noise(x)) {
    stop_classed("release", c("The totals of noisy records have no noise that could be drawn.",
                              i = "{.fn bayesplot::pp_check} on a fit compares them with the model's predictions."))
  }
  most <- 40L
  data <- as.data.frame(x)
  left_out <- nrow(data) - most
  data <- utils::head(data, most)
  data$component <- factor(data$component, rev(data$component))
  hidden <- is.na(data$value)
  data$value[hidden] <- data$hidden_below[hidden]
  sd <- ifelse(is.na(data$noise_sd) | hidden, 0, data$noise_sd)
  data$from <- data$value - 2 * sd
  data$to <- data$value + 2 * sd
  exact <- data$noise_sd %in% 0
  limited <- all(is.finite(data$lower) & is.finite(data$upper))
  # numbers in different units: each on the way from its least to its largest
  share <- limited && !comparable(data$lower, data$upper)
  if (share) data[c("value", "from", "to")] <- (data[c("value", "from", "to")] - data$lower) / (data$upper - data$lower)
  if (share) data[c("lower", "upper")] <- rep(c(0, 1), each = nrow(data))
  data$lower[exact] <- NA
  limited <- limited && !all(exact)
  ggplot2::ggplot(data, ggplot2::aes(y = .data$component)) +
    (if (limited) ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$component), linewidth = bar_width(data),
                                        colour = "grey85", na.rm = TRUE)) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$from, xend = .data$to, yend = .data$component), linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(x = .data$value), data[!hidden, ], size = 2) +
    (if (any(hidden)) ggplot2::geom_text(ggplot2::aes(x = .data$value), data[hidden, ], label = "<", fontface = "bold")) +
    ggplot2::labs(x = if (share) "published number: 0 is the smallest,\n1 the largest that n records can give" else "published number", y = NULL,
                  subtitle = wrap_parts(c(if (any(sd > 0)) "lines: plus and minus two noise sd", if (any(exact)) "points alone: exact",
                                          if (any(hidden)) "<: hidden below here", if (limited) "grey: range that n records can give")),
                  caption = not_shown_caption(left_out)) +
    theme_noiseaware() +
    ggplot2::scale_y_discrete(labels = row_labels) +
    (if (limited && !share) ggplot2::coord_cartesian(xlim = range(0, data$from, data$to))) +
    theme_many_rows(data)
}

#' @rdname plot.noiseaware_release
#' @export
as.data.frame.noiseaware_release <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_no_dots(...)
  parts <- release_parts(x)
  sizes <- exact_sizes(parts)
  limits <- do.call(rbind, lapply(parts, function(part) {
    unname(group_limits(part, sizes) %||% part_limits(part, x$n)) %||% matrix(NA_real_, length(part$value), 2L)
  }))
  data <- data.frame(component = names(x$value), value = unname(x$value), noise_sd = unname(noise_sd(x)), lower = limits[, 1L], upper = limits[, 2L])
  data$hidden_below <- hidden_below(x)
  data
}
