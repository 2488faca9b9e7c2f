#' Published numbers against what the fit makes of them
#'
#' The published numbers have noise; a fit knows more of the confidential ones than each number alone does. All of them must be totals of
#' the same records, and the model says which records are likely.
#'
#' @param fit A fit that [denoise()] takes.
#' @param level Probability inside the intervals of the confidential numbers.
#' @return A ggplot. For each number it shows the posterior mean of the confidential one with its interval, in standard deviations of the noise from what was
#'   published. Behind it is a bar of two standard deviations of the noise each way. The first 40 numbers are shown. Its `$data` has a row for each number, and
#'   these columns:
#'
#' | column | meaning |
#' | --- | --- |
#' | `component` | name of the number; of several sites `name[site]` |
#' | `published` | `NA` where it was hidden |
#' | `noise_sd` | `NA` where no noise is added to a number |
#' | `mean`, `sd`, `lower`, `upper` | of the confidential number |
#' @section Errors: As in [denoise()].
#' @family plots
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' plot_denoised(fit)
#' plot_denoised(fit)$data
#' @export
plot_denoised <- function(fit, level = 0.9) {
  check_given()
  most <- 40L
  table <- data <- denoised_table(fit, level)
  left_out <- nrow(data) - most
  data <- utils::head(data, most)
  # exact numbers and answers have no noise to be measured in
  unit <- ifelse(is.na(data$noise_sd) | data$noise_sd == 0, ifelse(data$sd > 0, data$sd, 1), data$noise_sd)
  centre <- ifelse(is.na(data$published), data$mean, data$published)
  noisy <- data.frame(from = ifelse(is.na(data$published) | is.na(data$noise_sd) | data$noise_sd == 0, 0, -2))
  shown <- data.frame(component = factor(data$component, rev(data$component)), from = noisy$from, at = (data$mean - centre) / unit,
                      lower = (data$lower - centre) / unit, upper = (data$upper - centre) / unit)
  plot <- ggplot2::ggplot(shown, ggplot2::aes(y = .data$component)) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$from, xend = -.data$from, yend = .data$component), linewidth = bar_width(shown), colour = "grey80") +
    ggplot2::geom_vline(xintercept = 0, colour = "grey60") +
    ggplot2::geom_segment(ggplot2::aes(x = .data$lower, xend = .data$upper, yend = .data$component), linewidth = 0.7) +
    ggplot2::geom_point(ggplot2::aes(x = .data$at), size = 2) +
    ggplot2::labs(x = "noise standard deviations from the published number", y = NULL,
                  subtitle = paste0("points: posterior means of the confidential numbers, with ", format_number(100 * level), "% intervals\n",
                                    "bars: two noise sd around what was published"),
                  caption = if (left_out > 0L) paste(format(left_out, big.mark = ",", decimal.mark = "."), "more numbers are not shown")) +
    theme_noiseaware() +
    theme_many_rows(shown)
  with_table(plot, table)
}

denoised_table <- function(fit, level, call = caller_env()) {
  check_class(fit, "fit", "noiseaware_fit", "a fit made by sample_posterior()", call = call)
  check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE, call = call)
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
