# plot(fit, "table"): a table as published, and its posterior; plot(fit, "mosaic"): the shares of one variable given another.
plot_table <- function(fit, margin = NULL, level = 0.95, percent = FALSE, text_size = 3, call = caller_env()) {
  check_flag(percent, "percent", call = call)
  text_size <- check_positive(text_size, "text_size", call = call)
  of <- margin_draws(fit, margin, call)
  table <- data <- margin_data(fit, of, level, percent)
  variables <- of$variables
  # there is more room for many levels below each other
  many <- max(6L, if (length(variables) > 1L) nlevels(data[[1L]]))
  across <- if (nlevels(data[[min(length(variables), 2L)]]) > many) c("column", "row") else c("row", "column")
  if (length(variables) == 1L) across <- rev(across)
  names(data)[seq_along(variables)] <- c(across[seq_len(min(length(variables), 2L))], if (length(variables) == 3L) "panel")
  if (length(variables) == 1L) data[[across[2L]]] <- ""
  shown <- if (percent) function(x) sprintf("%.1f", x) else format_count
  unit <- if (percent) "%" else ""
  counts <- paste0(shown(data$mean), " \u00b1 ", shown(data$sd), unit)
  hidden <- !is.na(data$hidden_below %||% NA)
  exact <- data$noise_sd %in% 0 & !is.na(data$released)
  noisy <- !is.na(data$released) & !exact
  data$label <- ifelse(noisy, paste0(counts, "\n(", shown(data$released), unit, ")"), ifelse(exact, paste0(shown(data$released), unit), counts))
  if (any(hidden)) data$label[hidden] <- paste0(counts, "\n(< ", shown(data$hidden_below), unit, ")")[hidden]
  data$dark <- data$mean > max(data$mean) / 2
  axis <- function(of) if (of %in% across[seq_along(variables)]) variables[match(of, across)]
  plot <- ggplot2::ggplot(data, ggplot2::aes(x = .data$column, y = .data$row, fill = .data$mean)) +
    ggplot2::geom_tile(colour = "white", linewidth = 1) +
    ggplot2::geom_text(ggplot2::aes(label = .data$label, colour = .data$dark), size = text_size, lineheight = 1, show.legend = FALSE) +
    ggplot2::scale_fill_gradient(low = "#eef3f9", high = "#1f4e79", limits = c(0, NA), guide = "none") +
    ggplot2::scale_colour_manual(values = c(`FALSE` = "grey10", `TRUE` = "white")) +
    ggplot2::scale_x_discrete(labels = short_intervals) +
    ggplot2::scale_y_discrete(limits = rev, labels = short_intervals) +
    ggplot2::labs(x = axis("column"), y = axis("row"),
                  subtitle = paste0("posterior mean \u00b1 sd of the confidential ", if (percent) "share" else "count", "\n",
                                    paste(c("(published, with noise)"[any(noisy)], "without \u00b1: published, exact"[any(exact)], "(<: hidden)"[any(hidden)]),
                                          collapse = "; "))) +
    theme_noiseaware() +
    ggplot2::theme(panel.grid = ggplot2::element_blank())
  if (length(variables) == 3L) {
    plot <- plot + ggplot2::facet_wrap(ggplot2::vars(.data$panel), labeller = ggplot2::as_labeller(function(level) paste0(variables[3L], ": ", level)))
  }
  with_table(plot, table)
}

# a table whose counts were kept, with as many variables as a picture has room for
shows_table <- function(fit) {
  variables <- names(fit$bound$levels)
  kept <- inherits(fit$bound, "bound_table") && !inherits(fit$bound, "bound_survival") && !inherits(fit, "noiseaware_pool") && !is.null(fit$chains[[1L]]$table)
  kept && length(variables) %in% 2:3 && !is.null(margin_nodes(list(variables), fit$bound))
}

format_count <- function(x) format(ifelse(abs(x) < 9.95, round(x, 1), round(x)), big.mark = ",", decimal.mark = ".", trim = TRUE, drop0trailing = TRUE)

# Widths of columns are shares of the first variable's levels, heights shares of the second one's among them.
plot_mosaic <- function(fit, margin, level, text_size, call = caller_env()) {
  text_size <- check_positive(text_size, "text_size", call = call)
  of <- margin_draws(fit, margin, call)
  if (length(of$variables) != 2L) {
    stop_classed("formula", "{.arg margin} must be a margin of two variables for a mosaic, but has {length(of$variables)}.", call = call)
  }
  data <- margin_data(fit, of, level)
  given <- as.integer(data[[1L]])
  shares <- of$draws / pmax(t(rowsum(t(of$draws), given))[, given], 1)
  data$share <- unname(colMeans(shares))
  data$share_sd <- unname(apply(shares, 2L, stats::sd))
  width <- tapply(data$mean, given, sum) / sum(data$mean)
  right <- cumsum(width)
  upper <- stats::ave(data$share, given, FUN = cumsum)
  rectangles <- data.frame(xmin = (right - width)[given], xmax = right[given], ymin = upper - data$share, ymax = upper, level = data[[2L]],
                           label = ifelse(width[given] > 0.05 & data$share > 0.04, sprintf("%.1f%% \u00b1 %.1f", 100 * data$share, 100 * data$share_sd), ""))
  plot <- ggplot2::ggplot(rectangles, ggplot2::aes(xmin = .data$xmin, xmax = .data$xmax, ymin = .data$ymin, ymax = .data$ymax, fill = .data$level)) +
    ggplot2::geom_rect(colour = "white", linewidth = 1) +
    ggplot2::geom_text(ggplot2::aes(x = (.data$xmin + .data$xmax) / 2, y = (.data$ymin + .data$ymax) / 2, label = .data$label), size = text_size) +
    ggplot2::scale_x_continuous(breaks = unname(right - width / 2), labels = short_intervals(levels(data[[1L]])), expand = c(0, 0)) +
    ggplot2::scale_y_continuous(breaks = 0:4 / 4, labels = paste0(0:4 * 25, "%"), expand = c(0, 0)) +
    ggplot2::scale_fill_hue(c = 35, l = 85, name = of$variables[2L], labels = short_intervals(levels(data[[2L]]))) +
    ggplot2::labs(x = of$variables[1L], y = NULL, subtitle = "posterior mean \u00b1 sd of the shares among the confidential records") +
    theme_noiseaware() +
    ggplot2::theme(panel.grid = ggplot2::element_blank())
  with_table(plot, data)
}

# `percent`: of all records, in each draw; of what was published, of the posterior mean of their number
margin_data <- function(fit, of, level, percent = FALSE) {
  variables <- of$variables
  draws <- of$draws
  levels <- fit$bound$levels[variables]
  codes <- all_codes(lengths(levels))
  out <- as.data.frame(lapply(stats::setNames(nm = variables), function(v) factor(levels[[v]][codes[, v] + 1], levels[[v]])), optional = TRUE)
  at <- released_cells(fit$release, variables, levels)
  published <- if (percent) 100 / mean(rowSums(draws)) else 1
  if (percent) draws <- 100 * draws / pmax(rowSums(draws), 1)
  ends <- draws_interval(draws, level)
  below <- published * unname(hidden_below(fit$release))[at]
  out$hidden_below <- if (any(!is.na(below))) below
  cbind(out, released = published * unname(fit$release$value)[at], noise_sd = published * unname(noise_sd(fit$release))[at], mean = unname(colMeans(draws)),
        sd = unname(apply(draws, 2L, stats::sd)), lower = ends[1L, ], upper = ends[2L, ])
}

# its variables, and draws x cells
margin_draws <- function(fit, margin, call) {
  margin <- margin %||% if (length(fit$bound$levels) <= 3L) stats::reformulate(paste(format_name(names(fit$bound$levels)), collapse = ":")) else
    stop_argument("margin", "given if there are more than three variables", describe(margin), "formula", call)
  variables <- formula_margins(margin, call)
  if (length(variables) != 1L || length(variables[[1L]]) > 3L) {
    stop_classed("formula", "{.arg margin} must be one margin of up to three variables, but is {.code {shorten_text(formula_text(margin))}}.", call = call)
  }
  list(variables = variables[[1L]], draws = posterior::as_draws_matrix(denoise_margin(fit, margin, call)))
}

# Where the cells of a margin stand among the published numbers: in whatever order of the variables, the first of several.
released_cells <- function(release, variables, levels) {
  codes <- all_codes(lengths(levels))
  out <- rep(NA_integer_, nrow(codes))
  for (part in component_parts(release)) {
    if (!inherits(part$statistic, "stat_counts")) next
    for (order in Filter(function(m) setequal(m, variables), part$statistic$margins)) {
      found <- match(cell_names(codes[, order, drop = FALSE], levels[order]), part$statistic$components[part$at])
      out <- ifelse(is.na(out) & part$times[found] == 1, part$index[found], out)
    }
  }
  out
}
