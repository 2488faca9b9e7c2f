# The fit and the picture that README.md shows: prints the one, draws the other to
# man/figures/posterior.png. Data: MASS::birthwt, 189 births.
#
# Usage: Rscript tools/readme.R

library(noiseaware)
source("tools/slopes.R")
set.seed(1) # the README shows the same numbers each time; a release for publication comes from release()
published <- simulate_release(MASS::birthwt, birth_weights, mech_laplace(epsilon = 10))
fit <- sample_posterior(published, model_lm(), seed = 1)
print(fit)
naive <- suppressWarnings(sample_posterior(published, model_lm(), method = "naive", seed = 1))
confidential <- nonprivate_posterior(MASS::birthwt, model_lm(), birth_weights, seed = 1)

picture <- slopes_picture(list("noise-aware posterior" = fit, "noise ignored" = naive, "confidential records" = confidential),
                          c("#2b4a6f", "#c05a2e", "grey60"))
dir.create("man/figures", showWarnings = FALSE)
ggplot2::ggsave("man/figures/posterior.png", picture, width = 8, height = 3.6, dpi = 100, bg = "white")
