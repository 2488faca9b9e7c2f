# Bernstein & Sheldon (2018), Figure 1c: squared maximum mean discrepancy between
# each posterior and that given the confidential records, against n.
source("helpers.R")
source("bernstein_sheldon_2018_problems.R")
started <- proc.time()

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

average$method <- factor(average$method, c("Gibbs", "clt", "exact", "naive", "prior"))
save_plot(ggplot(average, aes(n, mmd, colour = method, shape = method, linetype = method)) +
            geom_line() + geom_point(size = 1.6) + scale_x_log10() + series(5) +
            facet_grid(vars(model), vars(paste("epsilon", epsilon)), scales = "free_y") +
            labs(x = "number of records n (log scale)", y = "squared MMD to the non-private posterior", colour = NULL, shape = NULL, linetype = NULL,
                 subtitle = sprintf("mean of %d trials", max(utility$trial))),
          "bernstein_sheldon_2018_figure1c", 7, 5)
finished(started)
