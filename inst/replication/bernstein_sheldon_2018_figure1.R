# Bernstein & Sheldon (2018), Figure 1: (a) Kolmogorov-Smirnov distance of the
# truth's posterior quantiles from uniform, against n, at epsilon 0.01 and 0.1;
# (b) their ECDF at n = 1,000, epsilon = 0.01; (c) squared maximum mean discrepancy
# between each posterior and that given the confidential records.
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
  table <- ks_data(calibrations[k])
  known <- table$variable %in% c(problems[[cells$model[k]]]$variable, "log_eta")
  cbind(cells[k, ], table[known, c("variable", "statistic", "p.value", "critical", "replicates")], row.names = NULL)
}))
save_table(ks, "bernstein_sheldon_2018_figure1a")

chosen <- which(cells$n == 1000 & cells$epsilon == 0.01)
ecdf <- bind(lapply(chosen, function(k) {
  cbind(cells[k, c("model", "method")], calibration_data(calibrations[[k]], "ecdf", problems[[cells$model[k]]]$variable), row.names = NULL)
}))
save_table(ecdf, "bernstein_sheldon_2018_figure1b")

discrepancy <- function(k) {
  cell <- utility[k, ]
  p <- problems[[cell$model]]
  set.seed(k)
  release <- simulate_release(p$model, p$statistic, mech_laplace(epsilon = cell$epsilon), cell$n)
  data <- attr(release, "truth")$data
  draws <- list(Gibbs = thin(gibbs(release, p$model)), clt = thin(clt(release, p$model)), exact = thin(exact(release, p$model)),
                naive = thin(naive(release, p$model, data)), prior = prior_draws(p))
  reference <- thin(nonprivate(release, p$model, data))
  cbind(cell, method = names(draws), mmd = vapply(draws, mmd, 0, reference), row.names = NULL)
}
thin <- function(fit) {
  draws <- posterior::as_draws_matrix(fit)
  matrix(draws[round(seq(1, nrow(draws), length.out = 1000)), ], 1000, dimnames = list(NULL, posterior::variables(draws)))
}
prior_draws <- function(p) {
  if (inherits(p$model, "model_bernoulli")) return(cbind(prob = stats::rbeta(1000, 10, 10)))
  g <- matrix(stats::rgamma(3000, 5), 1000)
  matrix(g / rowSums(g), 1000, dimnames = list(NULL, paste0("prob[", c("a", "b", "c"), "]")))
}
utility <- expand.grid(trial = seq_len(replicates(100, 10)), n = c(10, 100, 1000, 10000), epsilon = c(0.01, 0.1),
                       model = c("binomial", "multinomial"), stringsAsFactors = FALSE)
distances <- bind(each(seq_len(nrow(utility)), discrepancy))
average <- stats::aggregate(mmd ~ method + n + epsilon + model, distances, function(v) c(mean(v), stats::sd(v) / sqrt(length(v))))
average <- data.frame(average[1:4], mmd = average$mmd[, 1], error = average$mmd[, 2], trials = max(utility$trial))
save_table(average, "bernstein_sheldon_2018_figure1c")

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
            facet_grid(vars(model), vars(method)) + scale_x_continuous(breaks = c(0, 0.5, 1)) +
            labs(x = "posterior quantile of the truth", y = "ECDF",
                 subtitle = sprintf("n = 1,000, epsilon = 0.01, %d replicates; grey: simultaneous 99%% band", count)),
          "bernstein_sheldon_2018_figure1b", 8, 4.5)
average$method <- factor(average$method, c("Gibbs", "clt", "exact", "naive", "prior"))
save_plot(ggplot(average, aes(n, mmd, colour = method, shape = method, linetype = method)) +
            geom_line() + geom_point(size = 1.6) + scale_x_log10() + series(5) +
            facet_grid(vars(model), vars(paste("epsilon", epsilon)), scales = "free_y") +
            labs(x = "number of records n (log scale)", y = "squared MMD to the non-private posterior", colour = NULL, shape = NULL, linetype = NULL,
                 subtitle = sprintf("mean of %d trials", max(utility$trial))),
          "bernstein_sheldon_2018_figure1c", 7, 5)
finished(started)
