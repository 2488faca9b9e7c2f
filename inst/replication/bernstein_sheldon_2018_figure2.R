# Bernstein & Sheldon (2018), Figure 2: the first 500 iterations of the sampler at
# n = 1,000, epsilon = 0.1, for the binomial and the exponential model; the paper's
# sampler and the marginal step.
source("helpers.R")
source("bernstein_sheldon_2018_problems.R")
started <- proc.time()

rows <- lapply(c("binomial", "exponential"), function(name) {
  p <- problems[[name]]
  set.seed(11)
  release <- simulate_release(p$model, p$statistic, mech_laplace(epsilon = 0.1), 1000)
  truth <- attr(release, "truth")$parameters[[p$variable]]
  bind(lapply(c(Gibbs = "gibbs", clt = "marginal"), function(sampler) {
    fit <- sample_posterior(release, p$model, "clt", chains = 1, iter = 500, warmup = 0, seed = 1, control = list(sampler = sampler))
    data.frame(model = name, sampler = sampler, iteration = 1:500, value = as.numeric(fit$draws[, , p$variable]), truth = truth)
  }))
})
traces <- bind(rows)
save_table(traces, "bernstein_sheldon_2018_figure2")
save_plot(ggplot(traces, aes(iteration, value)) + geom_hline(aes(yintercept = truth), linetype = "dashed", colour = "grey40") +
            geom_line(linewidth = 0.3) + facet_grid(vars(model), vars(sampler), scales = "free_y") +
            labs(x = "iteration, from a draw from the prior", y = "parameter", subtitle = "dashed: true value"),
          "bernstein_sheldon_2018_figure2", 7, 4)
finished(started)
