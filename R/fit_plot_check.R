#' Check a fit against its own release
#'
#' Posterior predictive check on the published numbers. Each replicate draws parameters from the posterior, then records given the parameters, then noise, and
#' so simulates the release again. If a published number lies far outside its replicates, the model cannot have produced it: the model, its bounds or the
#' description of the release is wrong.
#'
#' @param object A fit to a release, or to several, from [sample_posterior()].
#' @param draws Number of replicates.
#' @param level Probability inside the intervals.
#' @param seed Fixes the replicates; see [sample_posterior()].
#' @param type `"intervals"`: all published numbers on one scale; `"hist"`: histograms of the replicates for each of the first 12 numbers, in their own units.
#' @param ... Must be empty.
#'
#' @return A ggplot. For each of the first 40 components it shows the published number, in standard deviations from the mean of its replicates, and their
#'   interval. Its `$data` has a row for each component, and these columns:
#'
#' | column | meaning |
#' | --- | --- |
#' | `site` | only for fits of several sites or groups |
#' | `component` | the published number; for released records ([stat_records()]) the number of records at each level, and means, standard deviations and correlations |
#' | `value` | the published value |
#' | `mean`, `sd` | mean and standard deviation of the replicates |
#' | `lower`, `upper` | the ends of their central interval |
#' | `p` | two-sided tail probability of `value` |
#' @details A model with about as many parameters as there are published numbers fits them whatever the records are: totals of products check neither curved
#'   relations nor the shapes of distributions. Release further numbers, such as powers or counts of classes, if these are in doubt.
#'
#'   The generic is bayesplot's. Each site or group of a pooled fit is checked with records simulated from its own parameters.
#' @section Errors: `noiseaware_error_argument`, also if n times `draws` exceeds 10^8 records; `noiseaware_error_pool` for pooled fits that do not report all
#'   parameters of a site.
#' @family checks and tests
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' check <- bayesplot::pp_check(fit, draws = 50, seed = 1)
#' check
#' check$data
#' @aliases pp_check
#' @rawNamespace S3method(bayesplot::pp_check,noiseaware_fit)
pp_check.noiseaware_fit <- function(object, draws = 200, level = 0.95, seed = NULL, ..., type = c("intervals", "hist")) {
  check_no_dots(...)
  type <- if (missing(type)) "intervals" else check_check_type(type)
  check <- release_check(object, draws, level, seed)
  if (type == "hist") plot_replicates(check) else plot_release_check(check)
}

check_check_type <- function(type, call = caller_env()) {
  if (rlang::is_string(type) && type %in% c("intervals", "hist")) return(type)
  stop_classed("argument", c("{.arg type} must be \"intervals\" or \"hist\", but is {describe(type)}.",
                             i = "Other types in bayesplot, such as \"dens_overlay\", compare records, which a release does not have."), call = call)
}

# What pp_check() plots, of one release or of several.
release_check <- function(fit, draws = 200, level = 0.95, seed = NULL, call = caller_env()) {
  draws <- check_count(draws, "draws", lower = 2, call = call)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE, call = call)
  seed <- check_seed(seed, call)
  if (!inherits(fit, "noiseaware_pool")) return(structure(check_one(fit, draws, level, seed, call), level = level))
  sites <- names(fit$release)
  seeds <- if (is.null(seed)) vector("list", length(sites)) else replicate_seeds(seed, length(sites))
  tables <- Map(function(site, seed) {
    one <- check_one(as_fit_of_site(fit, site, call), draws, level, seed, call)
    structure(cbind(site = site, one), replicates = attr(one, "replicates"))
  }, sites, seeds)
  structure(do.call(rbind, unname(tables)), level = level, replicates = do.call(rbind, lapply(unname(tables), attr, "replicates")))
}

check_one <- function(fit, draws, level, seed, call) {
  if (is.null(fit$release)) stop_classed("argument", "{.arg object} must be a fit to a release.", call = call)
  if (!is.null(fit$release$mechanism$answers)) {
    stop_classed("argument", c("{.arg object} must be a fit of a release that can be simulated again.",
                               x = "It has noisy records with randomised response of factors, not totals with noise."), call = call)
  }
  check_simulated_size(draws, "draws", fit, call)
  release <- uncounted(fit$release)
  # with the noise of the release: the noise of a group has the sensitivity of all groups' numbers
  parts <- lapply(release_parts(release), function(p) replace(p, "statistic", list(as_simulated(p$statistic))))
  again <- with_seed(seed, of_simulated(fit, draws, function(data, sizes) do.call(rbind, lapply(parts, replicates_of, data, sizes, call))))
  again <- do.call(cbind, again)
  # a hidden number stands at its threshold, and no higher than any that is shown
  threshold <- unlist(lapply(release_parts(release), function(p) rep(p$mechanism$after$threshold %||% NA_real_, length(p$index))))
  release$value <- ifelse(is.na(release$value), threshold, release$value)
  again <- ifelse(is.na(again), threshold, again)
  numbers <- cbind(release$value, again)
  first <- release_parts(release)[[1L]]
  if (first$statistic$kind == "records") {
    channels <- if (first$mechanism$kernel == "match") channels_of(first$mechanism, first$statistic)
    numbers <- record_summaries(release$statistic, numbers, channels)
  }
  value <- numbers[, 1L]
  again <- numbers[, -1L, drop = FALSE]
  tails <- draws_interval(t(again), level)
  above <- rowMeans(again > value) + rowMeans(again == value) / 2
  table <- data.frame(component = rownames(numbers), value = unname(value), mean = rowMeans(again), sd = apply(again, 1L, stats::sd),
                      lower = tails[1L, ], upper = tails[2L, ], p = 2 * pmin(above, 1 - above), row.names = NULL)
  structure(table, replicates = unname(again))
}

# A part of the release again, from data sets whose rows follow each other: a column each.
replicates_of <- function(part, data, sizes, call) {
  if (part$statistic$kind == "records" || has_own_draws(part$mechanism)) {
    values <- lapply(split_sets(data, sizes), function(set) simulated_part(part, set, call)$value)
    return(matrix(unlist(values), ncol = length(sizes)))
  }
  totals <- set_totals(part$statistic, data, sizes, call, confidential = TRUE, empty = !replaces(part$neighbours))
  t(simulated_values(part, totals, stats::runif(length(totals)), NULL))
}

# Of single records, a column each time all of them: how many have each level; mean, sd and correlations of numbers.
record_summaries <- function(statistic, records, channels = NULL) {
  variables <- statistic$columns$variable
  summarise <- function(values) {
    values <- matrix(values, ncol = length(variables), dimnames = list(NULL, variables))
    of <- lapply(variables, function(v) {
      labels <- colnames(channels[[v]]) %||% statistic$levels[[v]]
      if (is.null(labels)) stats::setNames(c(mean(values[, v]), stats::sd(values[, v])), paste(c("mean of", "sd of"), v)) else
        stats::setNames(tabulate(values[, v] + 1, length(labels)), paste0(v, "=", labels))
    })
    numbers <- setdiff(variables, names(statistic$levels))
    pairs <- if (length(numbers) > 1L) utils::combn(numbers, 2L, simplify = FALSE)
    related <- vapply(pairs, function(p) stats::cor(values[, p[1L]], values[, p[2L]]), 0)
    c(unlist(of), stats::setNames(related, vapply(pairs, function(p) paste0("cor(", p[1L], ", ", p[2L], ")"), "")))
  }
  vapply(seq_len(ncol(records)), function(j) summarise(records[, j]), summarise(records[, 1L]))
}

# names of rows, with the site where the component does not have it
checked_names <- function(data) {
  if (is.null(data$site) || all(mapply(grepl, data$site, data$component, fixed = TRUE))) return(data$component)
  paste0(data$site, ": ", data$component)
}

plot_replicates <- function(data, most = 12L) {
  left_out <- nrow(data) - most
  rows <- seq_len(min(most, nrow(data)))
  named <- factor(checked_names(data)[rows], checked_names(data)[rows])
  again <- attr(data, "replicates")[rows, , drop = FALSE]
  plot <- ggplot2::ggplot(data.frame(panel = rep(named, ncol(again)), at = c(again)), ggplot2::aes(x = .data$at)) +
    ggplot2::geom_histogram(bins = 25L, fill = "grey75") +
    ggplot2::geom_vline(ggplot2::aes(xintercept = .data$at), data = data.frame(panel = named, at = data$value[rows]), linewidth = 0.8) +
    facet_variables(ggplot2::vars(.data$panel), scales = "free") +
    scale_few_x() +
    ggplot2::labs(x = NULL, y = NULL, subtitle = "lines: published numbers; bars: their replicates",
                  caption = if (left_out > 0L) paste("not shown:", left_out, "more")) +
    theme_noiseaware() +
    theme_without_y() +
    room_at_sides()
  with_table(plot, data)
}

plot_release_check <- function(data) {
  most <- 40L
  left_out <- nrow(data) - most
  named <- checked_names(data)
  sd <- ifelse(data$sd > 0, data$sd, 1)
  shown <- data.frame(component = factor(named, rev(named)), at = (data$value - data$mean) / sd,
                      lower = (data$lower - data$mean) / sd, upper = (data$upper - data$mean) / sd)
  shown <- utils::head(shown, most)
  plot <- ggplot2::ggplot(shown, ggplot2::aes(y = .data$component)) +
    ggplot2::geom_vline(xintercept = 0, colour = "grey60") +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$component), linewidth = bar_width(shown), colour = "grey75") +
    ggplot2::geom_point(ggplot2::aes(x = .data$at), size = 2) +
    ggplot2::labs(x = "standard deviations from the mean of the replicates", y = NULL,
                  subtitle = paste0("points: published numbers; bars: central ", format_number(100 * attr(data, "level")), "% of their replicates"),
                  caption = if (left_out > 0L) paste("not shown:", left_out, "more")) +
    theme_noiseaware() +
    ggplot2::scale_y_discrete(labels = row_labels) +
    theme_many_rows(shown)
  with_table(plot, data)
}
