# The fit and the picture that README.md shows: prints the one, draws the other to
# man/figures/posterior.png. Data: MASS::birthwt, 189 births.
#
# Usage: Rscript tools/readme.R

library(noiseaware)
statistic <- stat_crossprod(bwt ~ age + lwt, bounds = list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)))
set.seed(1) # the README shows the same numbers each time; a release for publication comes from release()
published <- simulate_release(MASS::birthwt, statistic, mech_laplace(epsilon = 10))
fit <- sample_posterior(published, model_lm(), seed = 1)
print(fit)
naive <- suppressWarnings(sample_posterior(published, model_lm(), method = "naive", seed = 1))
confidential <- nonprivate_posterior(MASS::birthwt, model_lm(), statistic, seed = 1)

analyses <- c("noise-aware posterior", "noise ignored", "confidential records")
slopes <- do.call(rbind, Map(function(fit, analysis) {
  draws <- posterior::as_draws_matrix(fit)
  do.call(rbind, lapply(c("age", "lwt"), function(v) data.frame(analysis = analysis, coefficient = v, slope = as.numeric(draws[, v]))))
}, list(fit, naive, confidential), analyses))
slopes$analysis <- factor(slopes$analysis, analyses)
units <- c(age = "grams per year of the mother's age", lwt = "grams per pound of her weight")
picture <- ggplot2::ggplot(slopes, ggplot2::aes(slope, colour = analysis, linetype = analysis)) +
  ggplot2::geom_density(linewidth = 0.8, key_glyph = "path") +
  ggplot2::facet_wrap(~coefficient, scales = "free", labeller = ggplot2::as_labeller(units)) +
  ggplot2::scale_colour_manual(values = c("#2b4a6f", "#c05a2e", "grey60"), name = NULL) +
  ggplot2::scale_linetype_manual(values = c("solid", "22", "solid"), name = NULL) +
  ggplot2::labs(x = NULL, y = "posterior density") +
  ggplot2::theme_minimal(base_size = 12) +
  ggplot2::theme(legend.position = "bottom", panel.grid.minor = ggplot2::element_blank())
dir.create("man/figures", showWarnings = FALSE)
ggplot2::ggsave("man/figures/posterior.png", picture, width = 8, height = 3.6, dpi = 100, bg = "white")
