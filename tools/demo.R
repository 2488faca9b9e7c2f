# The main job on real data, from a private release to its posterior: birth
# weights of 189 children (MASS::birthwt), bwt ~ age + lwt. Writes the release,
# a printed summary and three plots, and prints what it found.
#
# Usage: Rscript tools/demo.R [folder]

library(noiseaware)
source("tools/slopes.R")
folder <- commandArgs(TRUE)[1]
if (is.na(folder)) folder <- "demo"
dir.create(folder, showWarnings = FALSE, recursive = TRUE)
in_folder <- function(name) file.path(folder, name)
started <- proc.time()[["elapsed"]]

# ---- the owner of the data -----------------------------------------------------
write_release(release(MASS::birthwt, birth_weights, mech_laplace(epsilon = 10)), in_folder("birthwt.json"))

# ---- the analyst ------------------------------------------------------------------
published <- read_release(in_folder("birthwt.json"))
fit <- sample_posterior(published, model_lm(), chains = 4, iter = 8000, seed = 1)
naive <- sample_posterior(published, model_lm(), method = "naive", seed = 1)

# ---- what only the owner can see, to compare with -----------------------------------
confidential <- nonprivate_posterior(MASS::birthwt, model_lm(), birth_weights, seed = 1)

# ---- output ---------------------------------------------------------------------------
sink(in_folder("summary.txt"))
print(published)
cat("\n")
print(fit)
cat("\nNaive (for comparison)\n")
print(naive)
cat("\nConfidential data (for comparison)\n")
print(confidential)
sink()

comparison <- slopes_picture(list("noise-aware posterior" = fit, "naive (noise ignored)" = naive, "confidential data" = confidential),
                             c("black", "grey45", "grey65")) +
  ggplot2::labs(title = "Slopes of birth weight, from the private release and from the records")
save_plot <- function(plot, name) ggplot2::ggsave(in_folder(name), plot, width = 9, height = 4.5, dpi = 120, bg = "white")
save_plot(comparison, "posterior.png")
save_plot(plot(fit, "trace"), "traces.png")
save_plot(plot(fit, "predictive", covariate = "lwt"), "predictive.png")

interval <- function(f, v) sprintf("%6.1f [%6.1f, %6.1f]", coef(f)[v], confint(f, v)[1], confint(f, v)[2])
truth <- coef(lm(bwt ~ age + lwt, MASS::birthwt))
cat("Birth weight on the mother's age and weight: 189 records, Laplace noise, epsilon = 10\n")
cat("Posterior mean [95% interval]         age (g per year)          lwt (g per pound)\n")
for (row in list(list("noise-aware", fit), list("naive", naive), list("confidential data", confidential))) {
  cat(sprintf("  %-30s %s   %s\n", row[[1]], interval(row[[2]], "age"), interval(row[[2]], "lwt")))
}
cat(sprintf("Least squares on the records: age %.1f, lwt %.1f\n", truth["age"], truth["lwt"]))
cat(sprintf("Method \"%s\": %s\n", fit$method, fit$why[1]))
table <- posterior::summarise_draws(fit$draws)
cat(sprintf("Convergence: R-hat at most %.3f, at least %.0f effective draws of %d\n",
            max(table$rhat), min(table$ess_bulk), posterior::ndraws(fit$draws)))
new_record <- predict(fit, data.frame(age = 25, lwt = 130), interval = "predictive", seed = 1)
cat(sprintf("A mother of 25 years and 130 pounds: %.0f g, 95%% of new records in [%.0f, %.0f]\n",
            new_record[1], new_record[2], new_record[3]))
cat(sprintf("Written to %s/: birthwt.json, summary.txt, posterior.png, traces.png, predictive.png (%.0f s)\n",
            folder, proc.time()[["elapsed"]] - started))
