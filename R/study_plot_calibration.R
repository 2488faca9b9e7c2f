#' Plot a calibration
#'
#' Plots of the ranks and the coverage of a calibration.
#'
#' @param x A calibration from [calibrate()]; for `plot()` of coverage, a result of [coverage()].
#' @param type The type of plot.
#'   * `"ecdf_diff"`: ECDF of the true values' posterior quantiles minus the uniform distribution function, with a simultaneous band
#'     (Säilynoja, Bürkner & Vehtari 2022). `"ecdf"`: the ECDF itself.
#'   * `"rank"`: histogram of ranks with an interval for each bin.
#'   * `"coverage"`: coverage minus level, with a band for each level.
#'   * `"qq"`: quantile-quantile plot.
#'   * `"intervals"`: the interval of each replicate and the true value, the default for a check on the owner's records.
#' @param variables Names of variables; by default all. If two variables mirror each other, such as the probabilities of two levels, only one is shown.
#' @param prob Probability of the bands.
#' @param bins Number of bins of the histogram.
#' @param ... Must be empty.
#' @return A ggplot. Its `$data` has a row for each variable and point and, according to the type, the columns
#'   `at`, `value`, `lower`, `upper`, for `"rank"` also `from`, `to`, for `"intervals"` also `estimate`, `held`. In the latter, `value` is the posterior mean,
#'   `estimate` is from the records, and `held` is `TRUE` if the interval contains it.
#' @details For one variable, the band of the ECDF contains the whole ECDF of a calibrated sampler with probability `prob`. The band of `"rank"` contains all
#'   bars with at least that probability (Bonferroni). The bands of `"coverage"` and `"qq"` are pointwise, for one level or one point.
#' @references
#' Säilynoja, T., Bürkner, P.-C. and Vehtari, A. (2022). Graphical test for discrete
#' uniformity and its applications in goodness-of-fit evaluation and multiple sample
#' comparison. *Statistics and Computing* 32, 32. \doi{10.1007/s11222-022-10090-6}
#' @family plots
#' @examples
#' st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
#' cal <- calibrate(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 20,
#'   replicates = 40, chains = 1, iter = 400, seed = 1)
#' plot(cal)
#' plot(cal, "coverage")
#' head(plot(cal, "rank")$data)
#' @export
plot.calibration <- function(x, type = if (is.null(x$problem$data)) "ecdf_diff" else "intervals", variables = NULL, prob = 0.99, bins = NULL, ...) {
  check_no_dots(...)
  data <- calibration_data(x, type, variables, prob, bins)
  data$variable <- factor(data$variable, unique(data$variable))
  plot <- switch(type,
    ecdf_diff = , ecdf = plot_ecdf(data, type, prob),
    rank = plot_ranks(data, prob),
    coverage = plot_coverage(data, sprintf("dashed: calibrated; grey: %s%% interval at each level", format_number(100 * prob))),
    qq = plot_qq(data, prob),
    intervals = plot_held(data, x$problem$level)
  )
  with_table(plot + ggplot2::labs(caption = failed_caption(x)), data)
}

failed_caption <- function(x) {
  failed <- sum(x$runs$failed)
  paste0(sprintf("%d replicates%s", nrow(x$runs) - failed, if (failed) sprintf(", and %d that failed and are omitted", failed) else ""),
         if (!is.null(x$problem$parameters) && !of_data(x)) "; fixed true values: ranks of a correct posterior need not be uniform")
}

calibration_data <- function(x, type = "ecdf_diff", variables = NULL, prob = 0.99, bins = NULL) {
  check_class(x, "x", "calibration", "a calibration made by calibrate()")
  check_choice(type, "type", c("ecdf_diff", "ecdf", "rank", "coverage", "qq", if (of_data(x)) "intervals"))
  prob <- check_number(prob, "prob", "a number between 0 and 1", 0, 1, strict = TRUE)
  quantiles <- variable_quantiles(x, variables %||% setdiff(unique(x$results$variable), calibration_mirrored(x)))
  rows <- lapply(names(quantiles), function(v) {
    q <- quantiles[[v]]
    points <- switch(type,
      ecdf_diff = ecdf_points(q, prob, TRUE), ecdf = ecdf_points(q, prob, FALSE),
      rank = rank_points(q, prob, bins), coverage = coverage_points(q, prob), qq = qq_points(q, prob),
      intervals = interval_points(x$results[x$results$variable == v, ]))
    cbind(variable = v, points)
  })
  do.call(rbind, rows)
}

ecdf_points <- function(quantile, prob, difference) {
  count <- length(quantile)
  band <- ecdf_band(count, prob = prob)
  at <- c(0, band$at, 1)
  ends <- smooth_ends(attr(band, "gamma") / 2, count, at)
  shift <- if (difference) at else 0
  data.frame(at = at, value = c(0, stats::ecdf(quantile)(band$at), 1) - shift, lower = ends$lower - shift, upper = ends$upper - shift)
}

# Ends of binomial intervals as shares of the count, without steps: the distribution
# function is interpolated from each count to the next. Exact ends L and U become
# numbers in (L - 1, L] and [U, U + 1), so that the same counts are inside.
smooth_ends <- function(tail, count, at) {
  lower <- function(at) {
    k <- stats::qbinom(tail, count, at)
    below <- stats::pbinom(k - 1, count, at)
    share <- (tail - below) / stats::dbinom(k, count, at)
    ifelse(at == 1, count, pmax(0, k - 1 + pmin(pmax(share, 1e-9), 1)))
  }
  list(lower = lower(at) / count, upper = 1 - lower(1 - at) / count)
}

# quantiles are ranks made continuous, so that bins are of the same probability
# with any number of draws
rank_points <- function(quantile, prob, bins) {
  count <- length(quantile)
  bins <- if (is.null(bins)) max(2, min(20, floor(count / 20))) else check_count(bins, "bins", lower = 2)
  edges <- seq(0, 1, length.out = bins + 1)
  tail <- (1 - prob) / (2 * bins)
  data.frame(at = (edges[-1L] + edges[-(bins + 1)]) / 2, value = as.vector(table(cut(quantile, edges, include.lowest = TRUE))),
             lower = stats::qbinom(tail, count, 1 / bins), upper = stats::qbinom(tail, count, 1 / bins, lower.tail = FALSE),
             from = edges[-(bins + 1)], to = edges[-1L])
}

coverage_points <- function(quantile, prob) {
  level <- seq(0, 1, by = 0.02)
  held <- vapply(level, function(l) mean(inside_central(quantile, l)), 0)
  ends <- smooth_ends((1 - prob) / 2, length(quantile), level)
  data.frame(at = level, value = held, lower = ends$lower, upper = ends$upper)
}

qq_points <- function(quantile, prob) {
  count <- length(quantile)
  k <- seq_len(count)
  data.frame(at = k / (count + 1), value = sort(quantile), lower = stats::qbeta((1 - prob) / 2, k, count + 1 - k),
             upper = stats::qbeta((1 + prob) / 2, k, count + 1 - k))
}

# a panel for each variable, over the unit interval
unit_panels <- function(...) list(facet_variables(), ggplot2::labs(...), scale_unit_x(), theme_noiseaware())

plot_ecdf <- function(data, type, prob) {
  difference <- type == "ecdf_diff"
  ggplot2::ggplot(data, ggplot2::aes(x = .data$at)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), fill = "grey82") +
    (if (difference) ggplot2::geom_hline(yintercept = 0, linetype = "dashed", colour = "grey40") else
      ggplot2::geom_abline(linetype = "dashed", colour = "grey40")) +
    ggplot2::geom_line(ggplot2::aes(y = .data$value), linewidth = 0.7) +
    unit_panels(x = "posterior quantile of the truth", y = if (difference) "ECDF less uniform" else "ECDF",
                subtitle = sprintf("dashed: calibrated; grey: simultaneous %s%% band", format_number(100 * prob)))
}

plot_ranks <- function(data, prob) {
  expected <- sum(data$value[data$variable == data$variable[1L]]) / sum(data$variable == data$variable[1L])
  ggplot2::ggplot(data) +
    ggplot2::geom_rect(ggplot2::aes(xmin = .data$from, xmax = .data$to, ymin = .data$lower, ymax = .data$upper), fill = "grey88") +
    ggplot2::geom_rect(ggplot2::aes(xmin = .data$from, xmax = .data$to, ymin = 0, ymax = .data$value), fill = "grey55", colour = "white") +
    ggplot2::geom_hline(ggplot2::aes(yintercept = .data$lower), linetype = "dotted", colour = "grey20") +
    ggplot2::scale_y_continuous(expand = ggplot2::expansion(c(0, 0.1))) +
    ggplot2::geom_hline(yintercept = expected, linetype = "dashed", colour = "grey20") +
    unit_panels(x = "rank of the truth among the draws, as a share", y = "replicates",
                subtitle = sprintf("dashed: calibrated; light grey, above the dotted line: %s%% interval of all bars", format_number(100 * prob)))
}

plot_qq <- function(data, prob) {
  ggplot2::ggplot(data, ggplot2::aes(x = .data$at)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), fill = "grey82") +
    ggplot2::geom_abline(linetype = "dashed", colour = "grey40") +
    ggplot2::geom_point(ggplot2::aes(y = .data$value), size = 0.7) +
    unit_panels(x = "uniform quantile", y = "posterior quantile of the truth",
                subtitle = sprintf("dashed: calibrated; grey: %s%% interval of each point", format_number(100 * prob)))
}

plot_coverage <- function(data, subtitle) {
  ggplot2::ggplot(data, ggplot2::aes(x = .data$at)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$lower - .data$at, ymax = .data$upper - .data$at), fill = "grey82") +
    ggplot2::geom_hline(yintercept = 0, linetype = "dashed", colour = "grey40") +
    ggplot2::geom_line(ggplot2::aes(y = .data$value - .data$at), linewidth = 0.7) +
    unit_panels(x = "probability inside the interval", y = "coverage minus that probability", subtitle = subtitle)
}

#' @rdname plot.calibration
#' @export
plot.noiseaware_coverage <- function(x, ...) {
  check_no_dots(...)
  x <- x[!x$variable %in% attr(x, "mirrored"), ]
  x$variable <- factor(x$variable, unique(x$variable))
  ggplot2::ggplot(x, ggplot2::aes(x = .data$level, y = .data$coverage)) +
    ggplot2::geom_abline(linetype = "dashed", colour = "grey40") +
    ggplot2::geom_linerange(ggplot2::aes(ymin = .data$lower, ymax = .data$upper), colour = "grey55", linewidth = 1) +
    ggplot2::geom_line(linewidth = 0.4) +
    ggplot2::geom_point(size = 1.8) +
    ggplot2::coord_cartesian(xlim = c(0, 1), ylim = c(0, 1)) +
    unit_panels(x = "probability inside the interval", y = "share that contains the truth",
                subtitle = sprintf("dashed: calibrated; bars: %s%% Monte Carlo interval", format_number(100 * attr(x, "prob"))))
}
