# Bernstein & Sheldon (2019), Figures 3a to 3d: (a) KS distance from uniform against
# n at epsilon = 0.1; (b) against epsilon at n = 10; (c) QQ plot at n = 10,
# epsilon = 0.1; (d) coverage of 95% intervals.
source("helpers.R")
source("bernstein_sheldon_2019_problems.R")
started <- proc.time()

count <- replicates(300, 50)
cells <- merge(data.frame(method = names(samplers)), designs)
calibrations <- lapply(seq_len(nrow(cells)), function(k) {
  moments <- cells$method[k] %in% of_moments
  calibrate(model, if (moments) with_moments else cross, (if (moments) half else whole)(cells$epsilon[k]), cells$n[k], count,
            samplers[[cells$method[k]]], seed = 1)
})

calibration <- bind(lapply(seq_len(nrow(cells)), function(k) {
  cal <- calibrations[[k]]
  if (any(cal$runs$failed)) message(sum(cal$runs$failed), " failed: ", cells$method[k], ", n = ", cells$n[k], ", epsilon = ", cells$epsilon[k])
  table <- merge(ks_uniform(cal), covered(cal, 0.95, NULL))
  table <- table[table$variable %in% c(variables, "log_eta"), ]
  cbind(cells[k, ], table, failed = sum(cal$runs$failed), row.names = NULL)
}))
calibration$critical <- ks_uniform(calibrations[[1]])$critical[1]
save_table(calibration, "bernstein_sheldon_2019_figure3abd")

chosen <- which(cells$n == 10 & cells$epsilon == 0.1)
qq <- bind(lapply(chosen, function(k) cbind(method = cells$method[k], plot(calibrations[[k]], "qq", variables)$data)))
qq <- qq[qq$variable != "sigma", ]
save_table(qq[seq(5, nrow(qq), 5), ], "bernstein_sheldon_2019_figure3c") # every fifth point

order <- names(samplers)
shown <- calibration[calibration$variable %in% variables, ]
shown$method <- factor(shown$method, rev(order))
shown$design <- factor(sprintf("n %g, epsilon %g", shown$n, shown$epsilon), unique(sprintf("n %g, epsilon %g", designs$n, designs$epsilon)))
save_plot(ggplot(shown, aes(statistic, method, shape = variable)) + geom_vline(aes(xintercept = critical), linetype = "dashed", colour = "grey50") +
            geom_point(size = 1.8) + scale_x_log10(breaks = c(0.03, 0.1, 0.3, 1)) +
            scale_shape_manual(values = c(16, 1, 4)) + facet_wrap(vars(design), nrow = 2) +
            labs(x = "KS distance from uniform (log scale)", y = NULL, shape = NULL,
                 subtitle = sprintf("%d replicates; dashed: a calibrated sampler exceeds it once in 100 times", count)),
          "bernstein_sheldon_2019_figure3ab", 9, 5.6)
save_plot(ggplot(shown, aes(coverage, method, shape = variable)) + geom_vline(xintercept = 0.95, linetype = "dashed", colour = "grey50") +
            geom_point(size = 1.8) + scale_x_continuous(breaks = c(0, 0.5, 1), limits = c(0, 1)) +
            scale_shape_manual(values = c(16, 1, 4)) + facet_wrap(vars(design), nrow = 2) +
            labs(x = "coverage of 95% intervals", y = NULL, shape = NULL, subtitle = sprintf("%d replicates", count)),
          "bernstein_sheldon_2019_figure3d", 9, 5.6)
qq$method <- factor(qq$method, order)
save_plot(ggplot(qq, aes(at, value)) + geom_ribbon(aes(ymin = lower, ymax = upper), fill = "grey85") +
            geom_abline(linetype = "dashed", colour = "grey50") + geom_line() + facet_grid(vars(variable), vars(method)) +
            scale_x_continuous(breaks = c(0, 1)) +
            labs(x = "uniform quantile", y = "quantile of the truth",
                 subtitle = sprintf("n = 10, epsilon = 0.1, %d replicates; grey: 99%% interval of each point", count)),
          "bernstein_sheldon_2019_figure3c", 9.5, 3.2)
finished(started)
