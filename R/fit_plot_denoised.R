# plot(fit, "denoised"): published numbers against their posterior, in standard deviations of the noise.
plot_denoised <- function(fit, level = 0.95, call = caller_env(), table = denoised_table(fit, level, call)) {
  most <- 40L
  data <- table
  left_out <- nrow(data) - most
  data <- utils::head(data, most)
  # exact numbers and answers have no noise to be measured in
  hidden <- is.na(data$published)
  if (!any(data$noise_sd[!hidden] > 0, na.rm = TRUE)) return(with_table(plot_exact_numbers(data, hidden, level, left_out), table))
  unit <- ifelse(is.na(data$noise_sd) | data$noise_sd == 0, ifelse(data$sd > 0, data$sd, 1), data$noise_sd)
  centre <- ifelse(is.na(data$published), data$mean, data$published)
  noisy <- data.frame(from = ifelse(is.na(data$published) | is.na(data$noise_sd) | data$noise_sd == 0, 0, -2))
  shown <- data.frame(component = factor(data$component, rev(data$component)), from = noisy$from, at = (data$mean - centre) / unit,
                      lower = (data$lower - centre) / unit, upper = (data$upper - centre) / unit)
  plot <- ggplot2::ggplot(shown, ggplot2::aes(y = .data$component)) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$from, xend = -.data$from, yend = .data$component), linewidth = bar_width(shown), colour = "grey80") +
    ggplot2::geom_vline(xintercept = 0, colour = "grey60") +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$component), linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(x = .data$at), shape = ifelse(hidden, 21, 19), fill = "white", size = 2) +
    ggplot2::labs(x = "noise standard deviations\nfrom the published number", y = NULL,
                  subtitle = paste0("points: posterior means of the confidential numbers, with ", format_number(100 * level), "% intervals\n",
                                    "bars: two noise sd around the published numbers", if (any(hidden)) "\nopen points: hidden numbers"),
                  caption = not_shown_caption(left_out)) +
    theme_noiseaware() +
    ggplot2::scale_y_discrete(labels = row_labels) +
    theme_many_rows(shown)
  with_table(plot, table)
}

# Without noise: exact numbers, and the posterior of those that were hidden, in their own units.
plot_exact_numbers <- function(data, hidden, level, left_out) {
  data$component <- factor(data$component, rev(data$component))
  data$at <- ifelse(hidden, data$mean, data$published)
  ggplot2::ggplot(data, ggplot2::aes(y = .data$component)) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$component), data[hidden, ], linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(x = .data$at), shape = ifelse(hidden, 21, 19), fill = "white", size = 2) +
    ggplot2::labs(x = "confidential number", y = NULL, caption = not_shown_caption(left_out),
                  subtitle = paste0("points: published without noise", if (any(hidden)) paste0("\nopen points: posterior means of hidden numbers, with ",
                                                                                        format_number(100 * level), "% intervals"))) +
    theme_noiseaware() +
    ggplot2::scale_y_discrete(labels = row_labels, limits = levels(data$component)) + # the first layer has not all of them
    theme_many_rows(data)
}

denoised_table <- function(fit, level, call) {
  draws <- posterior::as_draws_matrix(denoise(fit))
  ends <- draws_interval(draws, level)
  shown <- published_numbers(fit)
  at <- match(posterior::variables(draws), shown$component)
  data.frame(component = posterior::variables(draws), published = shown$value[at], noise_sd = shown$noise_sd[at],
             mean = colMeans(draws), sd = apply(draws, 2L, stats::sd), lower = ends[1L, ], upper = ends[2L, ], row.names = NULL)
}

# of all sites, called as denoise() calls them
published_numbers <- function(fit) {
  of <- function(release, site = NULL) {
    names <- names(release$value)
    data.frame(component = if (is.null(site)) names else site_variables(names, site), value = unname(release$value), noise_sd = unname(noise_sd(release)))
  }
  if (!inherits(fit, "noiseaware_pool")) return(of(fit$release))
  do.call(rbind, Map(of, fit$release, if (is_of_groups(fit) && fit$pool != "none") list(NULL) else names(fit$release)))
}
