# What vignette("naive") shows: how often 95 per cent intervals hold the truth,
# over releases of simulated data. Takes ten minutes; writes ../naive.csv, the
# coverage of a slope. Run in this folder.
library(noiseaware)
statistic <- stat_crossprod(y ~ x, bounds = list(y = c(-6, 6), x = c(-3, 3)))
model <- model_lm(prior = prior_nig(mean = 0, precision = 1, shape = 5, rate = 5),
                  covariates = fixed(list(mean = 0, cov = 1)))
study <- expand.grid(n = c(50, 100, 200, 500, 1000, 2000), method = c("naive", "augment"), stringsAsFactors = FALSE)
rows <- lapply(seq_len(nrow(study)), function(i) {
  cal <- calibrate(model, statistic, mech_laplace(epsilon = 1), n = study$n[i], replicates = 400,
                   method = study$method[i], chains = 1, iter = if (study$method[i] == "naive") 600 else 3000, seed = i)
  width <- with(subset(cal$results, variable == "x"), mean(upper - lower))
  cbind(study[i, ], coverage(cal, 0.95, "x")[c("coverage", "lower", "upper", "replicates")], width = width)
})
out <- do.call(rbind, rows)
print(out)
write.csv(format(out, digits = 4, trim = TRUE), "../naive.csv", row.names = FALSE, quote = FALSE)
