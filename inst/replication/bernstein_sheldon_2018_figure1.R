# Bernstein & Sheldon (2018), Figures 1a and 1b: (a) Kolmogorov-Smirnov distance of the
# truth's posterior quantiles from uniform, against n, at epsilon 0.01 and 0.1;
# (b) their ECDF at n = 1,000, epsilon = 0.01.
source("helpers.R")
source("bernstein_sheldon_2018_problems.R")
started <- proc.time()

samplers <- list(Gibbs = gibbs, clt = clt, exact = exact, naive = naive, OPS = ops, `non-private` = nonprivate)
count <- replicates(500, 60)
cells <- expand.grid(method = names(samplers), n = c(10, 100, 1000, 10000), epsilon = c(0.01, 0.1), model = names(problems),
                     stringsAsFactors = FALSE)
cells <- cells[!(cells$method == "OPS" & cells$model != "binomial"), ]
# imputing 10,000 records 500 times takes longer than all the rest
cells <- cells[!(cells$method == "exact" & cells$model == "exponential" & cells$n == 10000), ]
calibrations <- lapply(seq_len(nrow(cells)), function(k) {
  p <- problems[[cells$model[k]]]
  calibrate(p$model, p$statistic, mech_laplace(epsilon = cells$epsilon[k]), cells$n[k], count, samplers[[cells$method[k]]], seed = 1)
})

ks <- bind(lapply(seq_len(nrow(cells)), function(k) {
  table <- cbind(ks_uniform(calibrations[[k]]), replicates = sum(!calibrations[[k]]$runs$failed))
  known <- table$variable %in% c(problems[[cells$model[k]]]$variable, "log_eta")
  cbind(cells[k, ], table[known, c("variable", "statistic", "p.value", "critical", "replicates")], row.names = NULL)
}))
save_table(ks, "bernstein_sheldon_2018_figure1a")

chosen <- which(cells$n == 1000 & cells$epsilon == 0.01)
ecdf <- bind(lapply(chosen, function(k) {
  cbind(cells[k, c("model", "method")], plot(calibrations[[k]], "ecdf", problems[[cells$model[k]]]$variable)$data, row.names = NULL)
}))
save_table(ecdf, "bernstein_sheldon_2018_figure1b")

shown <- ks[ks$variable != "log_eta", ]
shown$method <- factor(shown$method, names(samplers))
save_plot(ggplot(shown, aes(n, statistic, colour = method, shape = method, linetype = method)) +
            geom_line() + geom_point(size = 1.6) + geom_line(aes(y = critical), colour = "grey60", linetype = "dotted") +
            scale_x_log10() + scale_y_log10() + series(6) + facet_grid(vars(paste("epsilon", epsilon)), vars(model)) +
            labs(x = "number of records n (log scale)", y = "KS distance from uniform (log scale)", colour = NULL, shape = NULL, linetype = NULL,
                 subtitle = sprintf("%d replicates; dotted: a calibrated sampler exceeds it once in 100 times", count)),
          "bernstein_sheldon_2018_figure1a", 8, 5)
ecdf$method <- factor(ecdf$method, names(samplers))
save_plot(ggplot(ecdf, aes(at, value)) + geom_ribbon(aes(ymin = lower, ymax = upper), fill = "grey85") +
            geom_abline(colour = "grey60", linetype = "dashed") + geom_step() +
            facet_grid(vars(model), vars(method)) + scale_x_continuous(breaks = c(0, 0.5, 1), labels = c("0", "0.5", "1")) +
            labs(x = "posterior quantile of the truth", y = "ECDF",
                 subtitle = sprintf("n = 1,000, epsilon = 0.01, %d replicates; grey: simultaneous 99%% band", count)),
          "bernstein_sheldon_2018_figure1b", 8, 4.5)
finished(started)
