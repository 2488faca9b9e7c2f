# Long and large: many records, many iterations, many parameters. No overflow, no
# drift of running sums, flat memory.
#
#   Rscript tools/large.R
library(noiseaware)
bad <- 0
check <- function(ok, what) {
  cat(if (isTRUE(ok)) "ok      " else "FAILED  ", what, "\n", sep = "")
  if (!isTRUE(ok)) bad <<- bad + 1
}
resident <- function() as.numeric(sub("[^0-9]*([0-9]+).*", "\\1", grep("VmRSS", readLines("/proc/self/status"), value = TRUE))) / 1024

st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-2, 2)))
set.seed(1)

# ---- 10^7 records -----------------------------------------------------------------

truth <- c("(Intercept)" = 0.5, x = 1, sigma = 1, "mean[x]" = 0, "cov[x,x]" = 1)
rel <- simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 1e7, parameters = truth)
attr(rel, "truth") <- NULL
before <- resident()
fit <- sample_posterior(rel, model_lm(), method = "augment", chains = 1, iter = 12, warmup = 6, init = list(truth), seed = 1)
check(all(is.finite(unclass(fit$draws))), sprintf("10^7 records, 12 iterations; %.0f MB more", resident() - before))
again <- extend(fit, 1)
check(all(is.finite(unclass(again$draws))), "10^7 records go on")

# ---- 10^6 iterations --------------------------------------------------------------

small <- as_release(c(1, 2, 5, 1, 4), st, mech_laplace(epsilon = 1), n = 10)
fit <- sample_posterior(small, model_lm(), method = "augment", chains = 1, iter = 2000, thin = 100, seed = 1)
before <- resident()
long <- extend(fit, 1e6)
check(posterior::ndraws(long$draws) == 10010 && all(is.finite(unclass(long$draws))), "10^6 iterations")
check(resident() - before < 200, sprintf("10^6 iterations take %.0f MB more", resident() - before))
state <- long$chains[[1]]$state
internal <- function(name) utils::getFromNamespace(name, "noiseaware")
total <- .Call(internal("ffi_stat_total"), internal("statistic_spec")(st), matrix(state$x, ncol = 2)[1:10, ])
drift <- max(abs(state$residual[1:5] - (small$value - total) / long$problem$scale[1:5]))
check(drift < 1e-9, sprintf("running sums differ from a recomputation by %.1e", drift))

# ---- 500 parameters ---------------------------------------------------------------

levels <- list(class = c("a", "b", "c", "d", "e"))
for (k in 1:25) levels[[paste0("f", k)]] <- letters[1:5]
counts <- stat_counts(stats::as.formula(paste("~", paste0("class:f", 1:25, collapse = "+"))), levels)
wide <- simulate_release(model_naive_bayes("class"), counts, mech_laplace(epsilon = 5), n = 200)
attr(wide, "truth") <- NULL
fit <- sample_posterior(wide, model_naive_bayes("class"), method = "augment", chains = 1, iter = 200, seed = 1)
check(posterior::nvariables(fit$draws) >= 500 && all(is.finite(unclass(fit$draws))), sprintf("%d parameters", posterior::nvariables(fit$draws)))
sums <- rowSums(posterior::as_draws_matrix(fit$draws)[, 1:5])
check(max(abs(sums - 1)) < 1e-12, "probabilities sum to one")

cat(bad, "failed\n")
quit(status = as.integer(bad > 0))
