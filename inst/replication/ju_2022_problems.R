# The two problems of Ju, Awan, Gong & Rao (2022), sections 4 and 5.

epsilons <- c(0.1, 0.3, 1, 3, 10)

# naive Bayes: 100 records, 5 classes, 5 features of 3 levels
naive_bayes <- local({
  levels <- c(list(y = as.character(1:5)), stats::setNames(rep(list(c("a", "b", "c")), 5), paste0("x", 1:5)))
  list(n = 100, levels = levels, classes = paste0("prob[y=", 1:5, "]"),
       statistic = stat_counts(~ y:x1 + y:x2 + y:x3 + y:x4 + y:x5, levels),
       model = model_naive_bayes("y", prior = prior_dirichlet(2), conditional = prior_dirichlet(2)))
})

# Regression with everything but the coefficients known. The paper's sensitivity,
# p^2 + 3p + 3 = 13, is larger than need be: the tight value is 9.375. A release
# with its scale, 13 / epsilon, is (9.375 / 13) epsilon-private by our count, and
# named by the paper's epsilon here.
regression <- local({
  box <- c(-10, 10)
  list(n = 100, coefficients = c("(Intercept)", "x1", "x2"),
       statistic = stat_crossprod(y ~ x1 + x2, bounds = list(y = box, x1 = box, x2 = box)),
       truth = c("(Intercept)" = -1.79, x1 = -2.89, x2 = -0.66),
       model = model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)),
                        covariates = fixed(list(mean = c(0.9, -1.17), cov = diag(2)))),
       noise = list(paper = function(epsilon) mech_laplace(scale = 13 / epsilon),
                    tight = function(epsilon) mech_laplace(epsilon = epsilon)))
})

# "plain": Algorithm 1 of the paper, without moves of our own
plain <- list(passes = 0)

# acceptance rates: data frame of epsilon, mean, lowest, bound
plot_rates <- function(accepted) {
  bound <- data.frame(epsilon = exp(seq(log(0.1), log(10), length.out = 101)))
  ggplot(accepted, aes(epsilon)) +
    geom_line(data = bound, aes(y = exp(-epsilon), linetype = "bound exp(-epsilon)")) +
    geom_jitter(aes(y = mean, shape = "mean over records"), width = 0.04, height = 0, size = 1) +
    geom_jitter(aes(y = lowest, shape = "record accepted least"), width = 0.04, height = 0, size = 1, colour = "grey50") +
    scale_shape_manual(values = c("mean over records" = 16, "record accepted least" = 25)) +
    scale_x_log10() + coord_cartesian(ylim = c(0, 1)) +
    labs(x = "privacy budget epsilon (log scale)", y = "acceptance rate of record updates", shape = NULL, linetype = NULL)
}
