# Ju et al. (2022), Figure 1: one set of naive Bayes records, 100 releases of it
# at each epsilon. (a) Posterior means of the classes' probabilities; (b)
# acceptance rates of the record updates against the bound exp(-epsilon).
source("helpers.R")
source("ju_2022_problems.R")
started <- proc.time()

count <- replicates(100, 20)
set.seed(20220602)
data <- attr(simulate_release(naive_bayes$model, naive_bayes$statistic, mech_laplace(epsilon = 1), naive_bayes$n), "truth")$data
cells <- expand.grid(release = seq_len(count), epsilon = epsilons)
runs <- each(seq_len(nrow(cells)), function(k) {
  set.seed(k)
  release <- simulate_release(data, naive_bayes$statistic, mech_laplace(epsilon = cells$epsilon[k]))
  exact <- sample_posterior(release, naive_bayes$model, "collapse", chains = 1, iter = 2000, seed = k)
  chain <- sample_posterior(release, naive_bayes$model, "augment", chains = 1, iter = 10000, seed = k, control = plain)
  rate <- acceptance(chain)
  list(means = cbind(cells[k, ], variable = naive_bayes$classes, collapse = coef(exact)[naive_bayes$classes],
                     plain = coef(chain)[naive_bayes$classes], row.names = NULL),
       acceptance = cbind(cells[k, ], mean = rate$mean, lowest = rate$lowest, bound = rate$bound, row.names = NULL))
})
means <- bind(lapply(runs, `[[`, "means"))
accepted <- bind(lapply(runs, `[[`, "acceptance"))
confidential <- coef(nonprivate_posterior(data, naive_bayes$model, naive_bayes$statistic, chains = 1, iter = 4000, seed = 1))
reference <- data.frame(variable = naive_bayes$classes, prior = 0.2, confidential = confidential[naive_bayes$classes])
save_table(merge(means, reference, sort = FALSE), "ju_2022_figure1a")
save_table(accepted, "ju_2022_figure1b")

save_plot(ggplot(means, aes(factor(epsilon), collapse)) +
            geom_hline(data = reference, aes(yintercept = confidential)) +
            geom_hline(data = reference, aes(yintercept = prior), linetype = "dashed") +
            geom_jitter(width = 0.15, height = 0, size = 0.5, colour = "grey45") +
            facet_wrap(vars(variable), nrow = 1) +
            labs(x = "privacy budget epsilon", y = "posterior mean",
                 subtitle = sprintf("%d releases of one set of records; solid: posterior mean given the records; dashed: prior mean", count)),
          "ju_2022_figure1a", 8, 3.2)
save_plot(plot_rates(accepted), "ju_2022_figure1b", 6, 3.5)
finished(started)
