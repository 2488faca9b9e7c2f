# What vignette("design") shows: expected posterior sd of a rate over bounds and
# budgets. Takes a minute; writes ../design.csv. Run in this folder.
library(noiseaware)

# ---- grid
stay <- function(upper) stat_sums(~ days, bounds = list(days = c(0, upper)))
model <- model_exponential(prior = prior_gamma(2, 10))
upper <- c(5, 10, 20, 50, 365)
plan <- design(model, setNames(lapply(upper, stay), upper),
               epsilon = c(0.05, 0.2, 1, 5), n = 500, parameters = c(rate = 0.2),
               replicates = 40, chains = 1, iter = 1500, seed = 1)

# ---- store
write.csv(plan, "../design.csv", row.names = FALSE, quote = FALSE)
