#' Plot a fit
#'
#' @param x A fit from [sample_posterior()].
#' @param type `"trace"`, `"density"` and `"pairs"` of the parameters (bayesplot),
#'   or `"predictive"`: the expected response and a new record's response over
#'   the public range of one covariate, other numbers at the middle of theirs,
#'   factors at their first level.
#' @param variables Names of variables; by default the coefficients and sigma.
#' @param covariate For `"predictive"`: the covariate's name; by default the
#'   first one.
#' @param level Probability inside the predictive band.
#' @param ... Passed on to bayesplot.
#' @return A ggplot; for `"pairs"` a bayesplot grid. The predictive band's data
#'   twin is `predictive_data()`, a data frame.
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' plot(fit, "density")
#' plot(fit, "predictive")
#' @export
plot.noiseaware_fit <- function(x, type = c("trace", "density", "pairs", "predictive"), variables = NULL,
                                covariate = NULL, level = 0.9, ...) {
  type <- if (missing(type)) "trace" else check_choice(type, "type", c("trace", "density", "pairs", "predictive"))
  if (type == "predictive") return(plot_predictive(predictive_data(x, covariate, level), x, level))
  draws <- posterior::subset_draws(x$draws, variable = plot_variables(x, variables))
  switch(type,
    trace = chain_colours(bayesplot::mcmc_trace(draws, ...), draws),
    density = chain_colours(bayesplot::mcmc_dens_overlay(draws, ...), draws),
    pairs = roomy_pairs(bayesplot::mcmc_pairs(draws, off_diag_args = list(size = 0.3, alpha = 0.3), ...)))
}

# small panels: few tick labels, and room for the first and the last
roomy_pairs <- function(grid) {
  if (is.null(grid$bayesplots)) return(grid)
  panels <- lapply(grid$bayesplots, function(p) suppressMessages(p + scale_few_x() + room_at_sides()))
  bayesplot::bayesplot_grid(plots = panels, legends = FALSE)
}

scale_few_x <- function() ggplot2::scale_x_continuous(n.breaks = 4, guide = ggplot2::guide_axis(check.overlap = TRUE))

room_at_sides <- function() {
  ggplot2::theme(plot.margin = ggplot2::margin(5.5, 16, 5.5, 16), panel.spacing.x = ggplot2::unit(1.5, "lines"))
}

# bayesplot's shades of one colour leave some chains next to invisible
chain_colours <- function(plot, draws) {
  suppressMessages(plot + scale_greys(posterior::nchains(draws), name = "Chain")) + theme_noiseaware()
}

plot_variables <- function(fit, variables, call = caller_env()) {
  all <- posterior::variables(fit$draws)
  if (is.null(variables)) {
    main <- intersect(c("(Intercept)", fit$bound$columns$name[-1L], "sigma"), all)
    return(if (length(main)) main else all)
  }
  check_names_of(variables, "variables", "variables of the fit", all, call)
}

#' @rdname plot.noiseaware_fit
#' @param fit A fit from [sample_posterior()].
#' @param points Number of points over the covariate's range.
#' @export
predictive_data <- function(fit, covariate = NULL, level = 0.9, points = 61) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()")
  check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  points <- check_count(points, "points", lower = 2)
  if (points > 1e4) stop_argument("points", "at most 10,000", describe(points))
  columns <- fit$bound$columns[-1L, ]
  numbers <- columns$name[is.na(columns$level)]
  if (length(numbers) == 0L) stop_classed("argument", "There is no continuous covariate to plot against.")
  covariate <- check_choice(covariate %||% numbers[1L], "covariate", numbers)
  at <- columns[match(covariate, columns$name), ]
  grid <- seq(at$lower, at$upper, length.out = points)
  newdata <- lapply(stats::setNames(nm = unique(columns$variable)), function(v) {
    row <- columns[match(v, columns$variable), ]
    if (v == covariate) grid else if (is.na(row$level)) rep((row$lower + row$upper) / 2, points) else rep(fit$bound$levels[[v]][1L], points)
  })
  newdata <- as.data.frame(newdata, optional = TRUE)
  expected <- stats::predict(fit, newdata, type = "expected")
  # one residual a draw, the same at every point: the band is smooth
  residual <- with_seed(1L, add_residual(fit, numeric(nrow(expected))))
  credible <- draws_interval(expected, level)
  predictive <- draws_interval(expected + residual, level)
  data.frame(covariate = covariate, x = grid, mean = colMeans(expected),
             credible_lower = credible[1L, ], credible_upper = credible[2L, ],
             predictive_lower = predictive[1L, ], predictive_upper = predictive[2L, ])
}

plot_predictive <- function(data, fit, level) {
  response <- fit$bound$columns[1L, ]
  others <- setdiff(unique(fit$bound$columns$variable[-1L]), data$covariate[1L])
  factors <- intersect(others, names(fit$bound$levels))
  numbers <- setdiff(others, factors)
  held <- c(if (length(numbers)) paste(paste(numbers, collapse = ", "), "held at the middle of the bounds"),
            if (length(factors)) paste(factors, "=", vapply(fit$bound$levels[factors], `[[`, "", 1L), collapse = ", "))
  # a new answer of yes or no has no band
  new_record <- !inherits(fit$bound, "bound_logistic")
  ggplot2::ggplot(data, ggplot2::aes(x = .data$x)) +
    (if (new_record) ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$predictive_lower, ymax = .data$predictive_upper, fill = "new record"), alpha = 0.9)) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data$credible_lower, ymax = .data$credible_upper, fill = "expected response"), alpha = 0.9) +
    ggplot2::geom_line(ggplot2::aes(y = .data$mean), linewidth = 0.8) +
    ggplot2::geom_hline(yintercept = c(response$lower, response$upper), linetype = "dotted", colour = "grey40") +
    ggplot2::scale_fill_manual(values = c("new record" = "grey85", "expected response" = "grey60"), name = NULL) +
    ggplot2::labs(x = data$covariate[1L], y = response$name,
                  subtitle = paste0(100 * level, "% bands; dotted: bounds of ", response$name),
                  caption = if (length(held)) paste(held, collapse = "; ")) +
    theme_noiseaware()
}

theme_noiseaware <- function() {
  ggplot2::theme_minimal(base_size = 11) +
    ggplot2::theme(panel.grid.minor = ggplot2::element_blank(), legend.position = "bottom",
                   strip.text = ggplot2::element_text(face = "bold"))
}

#' @importFrom rlang .data
NULL
