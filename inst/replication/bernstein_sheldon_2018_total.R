# Bernstein & Sheldon (2018), Figure 1a, the binomial problem as the paper has it: one number is
# published, the count of ones, which a replaced record changes by 1. (In
# bernstein_sheldon_2018_figure1.R both counts are, so that the noise is twice as wide.)
source("helpers.R")
source("bernstein_sheldon_2018_problems.R")
started <- proc.time()

total <- stat_sums(~ x, list(x = c(0, 1)))
model <- model_bernoulli(prior = prior_beta(10, 10))
samplers <- list(Gibbs = gibbs, clt = clt, exact = exact, naive = naive, `non-private` = nonprivate)
count <- replicates(500, 60)
cells <- expand.grid(method = names(samplers), n = c(10, 100, 1000, 10000), epsilon = c(0.01, 0.1), stringsAsFactors = FALSE)

ks <- bind(lapply(seq_len(nrow(cells)), function(k) {
  cal <- calibrate(model, total, mech_laplace(epsilon = cells$epsilon[k]), cells$n[k], count, samplers[[cells$method[k]]], seed = 1)
  table <- cbind(ks_uniform(cal), replicates = sum(!cal$runs$failed))
  known <- table$variable %in% c("prob[1]", "log_eta")
  cbind(cells[k, ], table[known, c("variable", "statistic", "p.value", "critical", "replicates")], row.names = NULL)
}))
save_table(ks, "bernstein_sheldon_2018_total")
finished(started)
