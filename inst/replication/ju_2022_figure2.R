# Ju et al. (2022), Figure 2 and Figure S1: one set of records of the regression,
# 100 releases of it at each epsilon, noise of the paper's scale. Posterior means
# of the coefficients; acceptance rates of the record updates against exp(-epsilon).
source("helpers.R")
source("ju_2022_problems.R")
started <- proc.time()

count <- replicates(100, 20)
set.seed(20220603)
data <- attr(simulate_release(regression$model, regression$statistic, mech_laplace(epsilon = 1), regression$n, regression$truth), "truth")$data
cells <- expand.grid(release = seq_len(count), epsilon = epsilons)
runs <- each(seq_len(nrow(cells)), function(k) {
  set.seed(k)
  release <- simulate_release(data, regression$statistic, regression$noise$paper(cells$epsilon[k]))
  chain <- sample_posterior(release, regression$model, "augment", chains = 1, iter = 10000, seed = k, control = plain)
  exact <- sample_posterior(release, regression$model, "augment", chains = 1, iter = 4000, seed = k)
  rate <- acceptance(chain)
  list(means = cbind(cells[k, ], variable = regression$coefficients, augment = coef(exact)[regression$coefficients],
                     plain = coef(chain)[regression$coefficients], row.names = NULL),
       acceptance = cbind(cells[k, ], mean = rate$mean, lowest = rate$lowest, bound = exp(-cells$epsilon[k]), row.names = NULL))
})
means <- bind(lapply(runs, `[[`, "means"))
accepted <- bind(lapply(runs, `[[`, "acceptance"))
confidential <- nonprivate_posterior(data, regression$model, regression$statistic, chains = 1, iter = 4000, seed = 1)
reference <- data.frame(variable = regression$coefficients, confidential = coef(confidential)[regression$coefficients])
save_table(merge(means, reference, sort = FALSE), "ju_2022_figure2")
save_table(accepted, "ju_2022_figureS1")

long <- stats::reshape(means, list(c("augment", "plain")), "mean", "sampler", times = c("augment", "plain (the paper's)"), direction = "long")
save_plot(ggplot(long, aes(factor(epsilon), mean)) +
            geom_hline(data = reference, aes(yintercept = confidential)) +
            geom_hline(yintercept = 0, linetype = "dashed") +
            geom_jitter(width = 0.15, height = 0, size = 0.5, colour = "grey45") +
            facet_grid(vars(sampler), vars(variable)) +
            labs(x = "privacy budget epsilon", y = "posterior mean",
                 subtitle = sprintf("%d releases of one set of records; solid: posterior mean given the records; dashed: prior mean", count)),
          "ju_2022_figure2", 8, 4.5)
save_plot(plot_rates(accepted), "ju_2022_figureS1", 6, 3.5)
finished(started)
