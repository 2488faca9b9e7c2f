# Bernstein & Sheldon (2019), Figure 4: coverage of posterior predictive intervals
# of cirrhosis rates given drinking rates, 46 states, 100 splits into 36 records
# to release and 10 to predict. Data: H. Spaeth's regression set x20, a csv with
# the columns wine and cirrhosis, not part of the package.
#
#   Rscript bernstein_sheldon_2019_figure4.R cirrhosis.csv [result.csv [picture.png]]
#
# writes result.csv, and its picture beside it if not elsewhere.
#
# As in the paper: both variables scaled to [0, 1] (from the data: not private),
# prior NIG((intercept 0, slope 1), precision diag(.25, .25), shape 20, rate .5),
# half of the budget for the fourth moments of the covariate. Unlike the paper:
# tight sensitivities, and the default sampler. The naive posterior has the whole
# budget for the cross-products. Takes about a minute.
#
# The naive intervals cover far too little. As epsilon falls, a posterior that
# accounts for the noise tends to the prior, which is wide here: its intervals
# then hold more of these 46 states than their level says.
library(noiseaware)

arguments <- commandArgs(TRUE)
if (length(arguments) < 1) stop("Give the path of the csv file.", call. = FALSE)
data <- utils::read.csv(arguments[1])
scaled <- function(v) (v - min(v)) / (max(v) - min(v))
data <- data.frame(cirrhosis = scaled(data$cirrhosis), wine = scaled(data$wine))

bounds <- list(cirrhosis = c(0, 1), wine = c(0, 1))
cross <- stat_crossprod(cirrhosis ~ wine, bounds, rescale = FALSE)
both <- list(regression = cross, covariates = stat_moments4(~ wine, bounds["wine"]))
prior <- prior_nig(mean = c(0, 1), precision = 0.25, shape = 20, rate = 0.5)
levels <- c(0.5, 0.9)

# is each record to predict inside its interval? records x levels
inside <- function(fit, test) {
  vapply(levels, function(level) {
    interval <- predict(fit, test, interval = "predictive", level = level, seed = 1)
    test$cirrhosis >= interval[, "lower"] & test$cirrhosis <= interval[, "upper"]
  }, logical(nrow(test)))
}

one_split <- function(split, epsilon) {
  set.seed(split)
  rows <- sample(nrow(data), 36)
  train <- data[rows, ]
  test <- data[-rows, ]
  half <- mech_laplace(epsilon = epsilon / 2)
  noisy <- simulate_release(train, both, list(regression = half, covariates = half))
  plain <- simulate_release(train, cross, mech_laplace(epsilon = epsilon))
  fits <- list(
    `clt, noisy moments` = sample_posterior(noisy, model_lm(prior = prior, covariates = covariate_moments()), method = "clt",
                                            chains = 1, iter = 5000, seed = split, control = list(passes = 5)),
    naive = sample_posterior(plain, model_lm(prior = prior), method = "naive", chains = 1, iter = 2000, seed = split),
    `non-private` = nonprivate_posterior(train, model_lm(prior = prior), cross, chains = 1, iter = 2000, seed = split))
  lapply(fits, inside, test)
}

epsilons <- 10^seq(-2, 0, by = 0.5)
rows <- lapply(epsilons, function(epsilon) {
  splits <- lapply(1:100, one_split, epsilon)
  do.call(rbind, lapply(names(splits[[1]]), function(method) {
    hits <- do.call(rbind, lapply(splits, `[[`, method))
    data.frame(epsilon = signif(epsilon, 3), method = method, level = levels, coverage = colMeans(hits), records = nrow(hits))
  }))
})
result <- do.call(rbind, rows)
print(stats::reshape(result, idvar = c("method", "level"), timevar = "epsilon", direction = "wide", drop = "records"), row.names = FALSE)
if (length(arguments) > 1) {
  utils::write.csv(result, arguments[2], row.names = FALSE)
  suppressPackageStartupMessages(library(ggplot2))
  result$interval <- sprintf("%g%% intervals", 100 * result$level)
  plot <- ggplot(result, aes(epsilon, coverage, shape = method, linetype = method)) + geom_hline(aes(yintercept = level), colour = "grey60") +
    geom_line() + geom_point(size = 1.8) + scale_x_log10() + coord_cartesian(ylim = c(0, 1)) + facet_wrap(vars(interval)) +
    labs(x = "privacy budget epsilon (log scale)", y = "predictive coverage", shape = NULL, linetype = NULL,
         subtitle = sprintf("%d records predicted at each epsilon; grey: nominal", max(result$records))) +
    theme_minimal(base_size = 10) + theme(legend.position = "bottom", panel.grid.minor = element_blank(), strip.text = element_text(face = "bold"))
  ggsave(if (length(arguments) > 2) arguments[3] else sub("[.]csv$", ".png", arguments[2]), plot, width = 7, height = 3.6, dpi = 80, bg = "white")
}
