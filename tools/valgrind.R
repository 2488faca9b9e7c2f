# A short walk through the C code, for valgrind.
library(noiseaware)
st <- stat_crossprod(y ~ x + g, bounds = list(y = c(-4, 4), x = c(-2, 2), g = c("a", "b", "c")))
set.seed(1)
for (mechanism in list(mech_laplace(epsilon = 1), mech_gaussian(mu = 1))) {
  rel <- simulate_release(model_lm(), st, mechanism, n = 30)
  fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 60, seed = 1)
  fit <- extend(fit, 10)
  invisible(capture.output(print(fit)))
  sample_posterior(rel, model_lm(), method = "naive", chains = 1, iter = 20, seed = 1)
}
release(data.frame(y = rnorm(5), x = 0, g = "a"), st, mech_laplace(epsilon = 1))
