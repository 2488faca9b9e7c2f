# The problem of Bernstein & Sheldon (2019), section 4.2: one covariate, everything
# unknown; designs and samplers.
#
# As in the paper the noise is that of records inside [-1, 1], but none is moved
# there: the bounds of y are too wide to matter.

narrow <- stat_crossprod(y ~ x, list(y = c(-1, 1), x = c(-1, 1)), rescale = FALSE)
cross <- stat_crossprod(y ~ x, list(y = c(-20, 20), x = c(-1, 1)), rescale = FALSE)
scale <- sensitivity(narrow) # 8
with_moments <- list(regression = cross, covariates = stat_moments4(~ x, list(x = c(-1, 1))))
half <- function(epsilon) list(regression = mech_laplace(scale = 2 * scale / epsilon), covariates = mech_laplace(epsilon = epsilon / 2))
whole <- function(epsilon) mech_laplace(scale = scale / epsilon)

prior <- prior_nig(mean = 0, precision = 0.5 / 19, shape = 20, rate = 0.5)
model <- model_lm(prior = prior, covariates = prior_niw(mean = 0, kappa = 1, scale = 1, df = 50))
# covariates drawn from their prior
variance <- 1 / with_seed_of(1, stats::rgamma(1e5, 25, 0.5))
drawn <- data.frame(x = with_seed_of(2, stats::rnorm(1e5)) * sqrt(2 * variance))
sampled <- model_lm(prior = prior, covariates = covariate_moments(drawn))
published <- model_lm(prior = prior, covariates = covariate_moments())

variables <- c("(Intercept)", "x", "sigma")
# the paper's chains
gibbs <- function(release, model) {
  warmup <- if (release$n > 100) 20000 else 5000
  sample_posterior(release, model, "clt", chains = 1, iter = warmup + 20000, warmup = warmup, thin = 10, control = list(sampler = "gibbs"))
}
clt <- function(release, model) {
  sample_posterior(release, model, "clt", chains = 1, iter = 6000, warmup = 1000, control = list(sampler = "noncentred"))
}
exact <- function(release, method) sample_posterior(release, model, method, chains = 1, iter = 2500, warmup = 500)
designs <- rbind(data.frame(n = 10, epsilon = c(0.01, 0.03, 0.1, 0.3, 1)), data.frame(n = c(100, 1000), epsilon = 0.1))

samplers <- list(
  noisy = function(release, model) gibbs(release, published),
  prior = function(release, model) gibbs(release, sampled),
  update = function(release, model) gibbs(release, model),
  `clt noisy` = function(release, model) clt(release, published),
  `clt prior` = function(release, model) clt(release, sampled),
  clt = function(release, model) clt(release, model),
  collapse = function(release, model) exact(release, "collapse"),
  augment = function(release, model) exact(release, "augment"),
  naive = function(release, model) sample_posterior(release, model, "naive", chains = 1, iter = 4000),
  `non-private` = function(release, model, data) nonprivate_posterior(data, model, cross, chains = 1, iter = 4000))
of_moments <- c("noisy", "clt noisy")
