#' A table as it was published and as the fit knows it
#'
#' @param fit A fit of [model_table()] by method `"collapse"`, which keeps the table's counts; at most 5,000 cells.
#' @param margin One margin of up to three variables, a formula such as `~ a:b`; see [denoise()]. It need not have been released. `NULL`: all
#'   variables, if there are at most three.
#' @param level Probability inside the intervals of the counts.
#' @return A ggplot, a tile for each cell with the posterior mean of its count, plus or minus its standard deviation, and below it, if it
#'   was released, the published number. Its `$data` has a row for each cell, with a column for each variable;
#'   `released`, `NA` where it was not; `noise_sd`; `mean`, `sd`, `lower`, `upper` of the confidential count.
#' @section Errors: Those of [denoise()] with a margin; `noiseaware_error_formula` for several margins or more than three variables.
#' @family plots
#' @examples
#' admitted <- as.data.frame(UCBAdmissions)
#' admitted <- admitted[rep(seq_len(24), admitted$Freq), 1:3]
#' st <- stat_counts(~ Admit:Dept + Gender:Dept + Admit:Gender, levels = lapply(admitted, levels))
#' set.seed(1)
#' rel <- release(admitted, st, mech_laplace(epsilon = 0.1))
#' fit <- sample_posterior(rel, model_table(), chains = 2, iter = 400, seed = 1)
#' plot_table(fit, ~ Admit:Dept)
#' plot_table(fit, ~ Admit:Gender)$data
#' @export
plot_table <- function(fit, margin = NULL, level = 0.9) {
  check_given()
  table <- data <- margin_data(fit, margin, level)
  variables <- names(data)[seq_len(match("released", names(data)) - 1L)]
  names(data)[seq_along(variables)] <- c("row", "column", "panel")[seq_along(variables)]
  if (length(variables) == 1L) data <- cbind(column = data$row, replace(data, "row", ""))
  counts <- paste(format_count(data$mean), "\u00b1", format_count(data$sd))
  data$label <- ifelse(is.na(data$released), counts, paste0(counts, "\n(", format_count(data$released), ")"))
  data$dark <- data$mean > max(data$mean) / 2
  axes <- if (length(variables) == 1L) list(x = variables, y = NULL) else list(x = variables[2L], y = variables[1L])
  plot <- ggplot2::ggplot(data, ggplot2::aes(x = .data$column, y = .data$row, fill = .data$mean)) +
    ggplot2::geom_tile(colour = "white", linewidth = 1) +
    ggplot2::geom_text(ggplot2::aes(label = .data$label, colour = .data$dark), size = 3, lineheight = 1, show.legend = FALSE) +
    ggplot2::scale_fill_gradient(low = "#eef3f9", high = "#1f4e79", limits = c(0, NA), guide = "none") +
    ggplot2::scale_colour_manual(values = c(`FALSE` = "grey10", `TRUE` = "white")) +
    ggplot2::scale_y_discrete(limits = rev) +
    ggplot2::labs(x = axes$x, y = axes$y,
                  subtitle = "posterior mean \u00b1 sd of the confidential count\n(published, with noise)") +
    theme_noiseaware() +
    ggplot2::theme(panel.grid = ggplot2::element_blank())
  if (length(variables) == 3L) {
    plot <- plot + ggplot2::facet_wrap(ggplot2::vars(.data$panel), labeller = ggplot2::as_labeller(function(level) paste0(variables[3L], ": ", level)))
  }
  with_table(plot, table)
}

format_count <- function(x) format(ifelse(abs(x) < 9.95, round(x, 1), round(x)), big.mark = ",", decimal.mark = ".", trim = TRUE, drop0trailing = TRUE)

margin_data <- function(fit, margin, level, call = caller_env()) {
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()", call = call)
  check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE, call = call)
  margin <- margin %||% if (length(fit$bound$levels) <= 3L) stats::reformulate(paste(format_name(names(fit$bound$levels)), collapse = ":")) else
    stop_argument("margin", "given for more than three variables", describe(margin), "formula", call)
  variables <- formula_margins(margin, call)
  if (length(variables) != 1L || length(variables[[1L]]) > 3L) {
    stop_classed("formula", "{.arg margin} must be one margin of up to three variables, but is {.code {shorten_text(formula_text(margin))}}.", call = call)
  }
  variables <- variables[[1L]]
  draws <- posterior::as_draws_matrix(denoise_margin(fit, margin, call))
  levels <- fit$bound$levels[variables]
  codes <- all_codes(lengths(levels))
  out <- as.data.frame(lapply(stats::setNames(nm = variables), function(v) factor(levels[[v]][codes[, v] + 1], levels[[v]])), optional = TRUE)
  at <- released_cells(fit$release, variables, levels)
  ends <- draws_interval(draws, level)
  cbind(out, released = unname(fit$release$value)[at], noise_sd = unname(noise_sd(fit$release))[at], mean = unname(colMeans(draws)),
        sd = unname(apply(draws, 2L, stats::sd)), lower = ends[1L, ], upper = ends[2L, ])
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
