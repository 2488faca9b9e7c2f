#' Plots of several runs
#'
#' For studies over budgets, numbers of records and methods: each plot has a data
#' twin.
#'
#' @param calibrations A list of calibrations from [calibrate()]. Names, if there
#'   are any, label the methods.
#' @param fits A list of fits from [sample_posterior()]; names label them.
#' @param reference For `mmd_data()`: a fit or draws, or a list of one for each
#'   of `fits`, such as [nonprivate_posterior()]; for `plot_means()` a named vector
#'   of values to draw as lines, such as the truth, or `NULL`.
#' @param variables Names of variables; all by default (for the means of a
#'   regression its coefficients).
#' @param level Probability inside the intervals.
#' @param ... For `plot_mmd()`, arguments of [mmd()].
#'
#' @return The plots are ggplots. The data twins are data frames with a row for
#'   each run and variable: all have `label`, `n` and `epsilon` (`NA` without a pure
#'   guarantee), and
#' * `ks_data()`: those of [ks_uniform()], and `critical`, which the statistic of a
#'   calibrated sampler exceeds once in 100 times;
#' * `mmd_data()`: `mmd`;
#' * `acceptance_data()` (fits of method `"augment"`): `fit`, its place in the list, and those of [acceptance()], a
#'   row for each chain;
#' * `means_data()`: `variable`, `mean`, `sd`, `lower`, `upper`.
#' @section Errors: `noiseaware_error_argument`.
#' @references
#' Bernstein, G. and Sheldon, D. (2018), Figure 1. \doi{10.48550/arXiv.1809.02188}
#'
#' Ju, N., Awan, J., Gong, R. and Rao, V. (2022), Figures 1 and 2.
#' \doi{10.48550/arXiv.2206.00710}
#' @family plots
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' fits <- lapply(c(1, 10), function(epsilon) {
#'   rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = epsilon))
#'   sample_posterior(rel, model_lm(), chains = 1, iter = 300)
#' })
#' plot_acceptance(fits)
#' plot_means(fits)
#' acceptance_data(fits)
#' @name study_plots
NULL

check_list_of <- function(x, name, class, must, call = caller_env()) {
  if (inherits(x, class)) x <- list(x)
  ok <- is.list(x) && length(x) > 0L && all(vapply(x, inherits, TRUE, class))
  if (!ok) stop_argument(name, paste("a list of", must), describe(x), call = call)
  x
}

check_fits <- function(fits, call = caller_env()) {
  fits <- check_list_of(fits, "fits", "noiseaware_fit", "fits made by sample_posterior()", call)
  if (any(vapply(fits, function(f) is.null(f$release), TRUE))) {
    stop_classed("argument", "{.arg fits} must be fits to releases; a non-private one has no budget.", call = call)
  }
  fits
}

# label, n, epsilon of the k-th run
run_columns <- function(runs, k, method, n, guarantee) {
  label <- if (is.null(names(runs)) || names(runs)[k] == "") method else names(runs)[k]
  data.frame(label = label, n = n, epsilon = if (identical(guarantee$delta, 0)) guarantee$epsilon else NA_real_)
}

fit_columns <- function(fits, k) run_columns(fits, k, fits[[k]]$method, nobs(fits[[k]]), privacy(fits[[k]]$release))

#' @rdname study_plots
#' @export
ks_data <- function(calibrations, variables = NULL) {
  check_given()
  calibrations <- check_list_of(calibrations, "calibrations", "calibration", "calibrations made by calibrate()")
  rows <- lapply(seq_along(calibrations), function(k) {
    cal <- calibrations[[k]]
    problem <- cal$problem
    method <- stats::na.omit(cal$runs$method)[1L]
    table <- ks_uniform(cal)
    shown <- variables %||% setdiff(table$variable, calibration_mirrored(cal))
    table <- table[table$variable %in% check_names_of(shown, "variables", "variables of the calibration", table$variable), ]
    replicates <- sum(!cal$runs$failed)
    n <- if (is.numeric(problem$n)) problem$n else NA_real_
    spent <- design_privacy(design_parts(problem$statistic, problem$mechanism, problem$neighbours))
    cbind(run_columns(calibrations, k, method, n, spent), table, replicates = replicates, critical = ks_critical(replicates))
  })
  do.call(rbind, rows)
}

# quantile of the statistic: Stephens' (1970) approximation, right to 0.5 per cent
ks_critical <- function(count, prob = 0.99) {
  limit <- stats::uniroot(function(x) 2 * sum((-1)^(0:9) * exp(-2 * (1:10)^2 * x^2)) - (1 - prob), c(0.5, 3))$root
  limit / (sqrt(count) + 0.12 + 0.11 / sqrt(count))
}

#' @rdname study_plots
#' @export
plot_ks <- function(calibrations, variables = NULL) {
  check_given()
  data <- ks_data(calibrations, variables)
  data$variable <- factor(data$variable, unique(data$variable))
  one <- nrow(unique(data[c("n", "epsilon")])) == 1L
  plot_by_size(data, "statistic") +
    (if (one) ggplot2::geom_hline(ggplot2::aes(yintercept = .data$critical), linetype = "dashed", colour = "grey40") else
      ggplot2::geom_line(ggplot2::aes(y = .data$critical, group = 1), linetype = "dashed", colour = "grey40")) +
    ggplot2::scale_y_log10() +
    ggplot2::labs(y = "KS distance from uniform (log scale)",
                  subtitle = "below the dashed line: no sign of miscalibration (1% level)")
}

# a measure against n, in panels of epsilon; against epsilon if there is one n
plot_by_size <- function(data, measure) {
  by_n <- length(unique(data$n)) > 1L
  data$panel <- ifelse(is.na(data$epsilon), "no pure epsilon", paste("epsilon =", format_number(data$epsilon)))
  data$panel <- factor(data$panel, unique(data$panel[order(data$epsilon)]))
  facets <- c(if (by_n && length(unique(data$panel)) > 1L) ggplot2::vars(.data$panel), if (!is.null(data$variable)) ggplot2::vars(.data$variable))
  count <- length(unique(data$label))
  data$label <- factor(data$label, unique(data$label))
  ggplot2::ggplot(data, ggplot2::aes(x = if (by_n) .data$n else .data$epsilon, y = .data[[measure]])) +
    (if (nrow(unique(data[c("n", "epsilon")])) > 1L) ggplot2::geom_line(ggplot2::aes(colour = .data$label, linetype = .data$label))) +
    ggplot2::geom_point(ggplot2::aes(colour = .data$label, shape = .data$label), size = 2) +
    scale_log_x(if (by_n) data$n else data$epsilon) +
    scale_greys(count) +
    (if (length(facets)) ggplot2::facet_wrap(facets, labeller = ggplot2::label_wrap_gen(multi_line = FALSE))) +
    ggplot2::labs(x = if (by_n) "number of records n (log scale)" else "privacy budget epsilon (log scale)", colour = NULL, linetype = NULL, shape = NULL) +
    theme_noiseaware()
}

#' @rdname study_plots
#' @export
mmd_data <- function(fits, reference, ...) {
  check_given()
  fits <- check_list_of(fits, "fits", "noiseaware_fit", "fits made by sample_posterior()")
  one <- inherits(reference, c("noiseaware_fit", "draws", "data.frame")) || !is.list(reference)
  references <- if (one) rep(list(reference), length(fits)) else reference
  if (length(references) != length(fits)) {
    stop_argument("reference", paste("one fit, or a list of", length(fits)), describe(reference))
  }
  rows <- lapply(seq_along(fits), function(k) {
    fit <- fits[[k]]
    guarantee <- if (is.null(fit$release)) data.frame(epsilon = NA_real_, delta = NA_real_) else privacy(fit$release)
    cbind(run_columns(fits, k, fit$method, nobs(fit), guarantee), mmd = mmd(fit, references[[k]], ...))
  })
  do.call(rbind, rows)
}

#' @rdname study_plots
#' @export
plot_mmd <- function(fits, reference, ...) {
  check_given()
  plot_by_size(mmd_data(fits, reference, ...), "mmd") +
    ggplot2::geom_hline(yintercept = 0, linetype = "dashed", colour = "grey40") +
    ggplot2::labs(y = "squared MMD to the reference", subtitle = "dashed: the same distribution")
}

#' @rdname study_plots
#' @export
acceptance_data <- function(fits) {
  check_given()
  fits <- check_fits(fits)
  if (any(vapply(fits, function(f) f$method != "augment", TRUE))) {
    stop_classed("argument", "{.arg fits} must be of method {.val augment}; the others update no records.")
  }
  do.call(rbind, lapply(seq_along(fits), function(k) cbind(fit = k, fit_columns(fits, k), acceptance(fits[[k]]))))
}

#' @rdname study_plots
#' @export
plot_acceptance <- function(fits) {
  check_given()
  data <- acceptance_data(fits)
  data <- data[!is.na(data$epsilon), ]
  if (nrow(data) == 0L) stop_classed("argument", "{.arg fits} must have a release with a pure epsilon guarantee.")
  grid <- exp(seq(log(min(data$epsilon)), log(max(data$epsilon)), length.out = 101))
  bound <- data.frame(epsilon = grid, bound = exp(-grid))
  one <- do.call(rbind, lapply(split(data, data$fit), function(d) data.frame(epsilon = d$epsilon[1L], mean = mean(d$mean), lowest = min(d$lowest))))
  ggplot2::ggplot(one, ggplot2::aes(x = .data$epsilon)) +
    ggplot2::geom_line(data = bound, ggplot2::aes(y = .data$bound, linetype = "bound exp(-epsilon)")) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = .data$lowest, ymax = .data$mean), colour = "grey60") +
    ggplot2::geom_point(ggplot2::aes(y = .data$mean, shape = "mean over records"), size = 2) +
    ggplot2::geom_point(ggplot2::aes(y = .data$lowest, shape = "record accepted least"), size = 2) +
    ggplot2::scale_shape_manual(values = c("mean over records" = 16, "record accepted least" = 25)) +
    ggplot2::scale_linetype_manual(values = c("bound exp(-epsilon)" = "dashed")) +
    scale_log_x(one$epsilon) +
    ggplot2::coord_cartesian(ylim = c(0, 1)) +
    ggplot2::labs(x = "privacy budget epsilon (log scale)", y = "acceptance rate of record updates", shape = NULL, linetype = NULL) +
    theme_noiseaware()
}

#' @rdname study_plots
#' @export
means_data <- function(fits, variables = NULL, level = 0.9) {
  check_given()
  fits <- check_fits(fits)
  check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  rows <- lapply(seq_along(fits), function(k) {
    table <- interval_table(fits[[k]], level)
    table <- table[table$variable %in% check_names_of(variables %||% default_means(fits[[k]]), "variables", "variables of the fit", table$variable), ]
    cbind(fit_columns(fits, k), table, row.names = NULL)
  })
  do.call(rbind, rows)
}

default_means <- function(fit) {
  draws <- tryCatch(coefficient_draws(fit), noiseaware_error = function(e) parameter_matrix(fit))
  setdiff(colnames(draws), mirrored(draws))
}

#' @rdname study_plots
#' @export
plot_means <- function(fits, variables = NULL, level = 0.9, reference = NULL) {
  check_given()
  data <- means_data(fits, variables, level)
  shown <- unique(data$variable)
  data$variable <- factor(data$variable, shown)
  data$label <- factor(data$label, unique(data$label))
  if (!is.null(reference) && (!is.numeric(reference) || is.null(names(reference)))) {
    stop_argument("reference", "a named vector of values", describe(reference))
  }
  lines <- if (!is.null(reference)) data.frame(variable = factor(intersect(names(reference), shown), shown), value = reference[intersect(names(reference), shown)])
  width <- if (length(unique(data$epsilon)) > 1L) diff(range(log10(data$epsilon), na.rm = TRUE)) / 25 else 0.1
  dodge <- ggplot2::position_dodge2(width, preserve = "single")
  ggplot2::ggplot(data, ggplot2::aes(x = .data$epsilon, group = .data$label)) +
    (if (!is.null(lines)) ggplot2::geom_hline(data = lines, ggplot2::aes(yintercept = .data$value), linetype = "dashed", colour = "grey40")) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = .data$lower, ymax = .data$upper, colour = .data$label), position = dodge) +
    ggplot2::geom_point(ggplot2::aes(y = .data$mean, colour = .data$label, shape = .data$label), position = dodge, size = 1.8) +
    scale_log_x(data$epsilon) +
    scale_greys(length(unique(data$label))) +
    facet_variables(scales = "free_y") +
    ggplot2::labs(x = "privacy budget epsilon (log scale)", y = sprintf("posterior mean and %s%% interval", format_number(100 * level)),
                  colour = NULL, shape = NULL, subtitle = if (!is.null(lines)) "dashed: reference value") +
    theme_noiseaware()
}
