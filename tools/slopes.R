# The birth weights of tools/demo.R and tools/readme.R: their statistic, and a picture of
# the slopes that several analyses find. Both scripts run from the project's root.

birth_weights <- stat_crossprod(bwt ~ age + lwt, bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)),
                                outside = "none") # no birth weight, age or weight is beyond its bounds

# `analyses`: a named list of three fits; the dashed line is the second
slopes_picture <- function(analyses, colours) {
  slopes <- do.call(rbind, Map(function(fit, analysis) {
    draws <- posterior::as_draws_matrix(fit)
    do.call(rbind, lapply(c("age", "lwt"), function(v) data.frame(analysis = analysis, coefficient = v, slope = as.numeric(draws[, v]))))
  }, analyses, names(analyses)))
  slopes$analysis <- factor(slopes$analysis, names(analyses))
  units <- c(age = "grams per year of the mother's age", lwt = "grams per pound of her weight")
  ggplot2::ggplot(slopes, ggplot2::aes(slope, colour = analysis, linetype = analysis)) +
    ggplot2::geom_density(linewidth = 0.8, key_glyph = "path") +
    ggplot2::facet_wrap(~coefficient, scales = "free", labeller = ggplot2::as_labeller(units)) +
    ggplot2::scale_colour_manual(values = colours, name = NULL) +
    ggplot2::scale_linetype_manual(values = c("solid", "22", "solid"), name = NULL) +
    ggplot2::labs(x = NULL, y = "posterior density") +
    ggplot2::theme_minimal(base_size = 12) +
    ggplot2::theme(legend.position = "bottom", panel.grid.minor = ggplot2::element_blank())
}
