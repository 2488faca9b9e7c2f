# Bernstein & Sheldon (2019), Figure 3: one covariate, everything unknown. (a) KS
# distance from uniform against n at epsilon = 0.1; (b) against epsilon at n = 10;
# (c) QQ plot at n = 10, epsilon = 0.1; (d) coverage of 95% intervals; (e) squared
# MMD to the non-private posterior; (f) run times at epsilon = 0.1.
#
# As in the paper the noise is that of records inside [-1, 1], but none is moved
# there: the bounds of y are too wide to matter.
source("helpers.R")
started <- proc.time()

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
clt <- function(release, model) sample_posterior(release, model, "clt", chains = 1, iter = 6000, warmup = 1000)
exact <- function(release, method) sample_posterior(release, model, method, chains = 1, iter = 2500, warmup = 500)
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

count <- replicates(300, 50)
designs <- rbind(data.frame(n = 10, epsilon = c(0.01, 0.1, 1)), data.frame(n = c(100, 1000), epsilon = 0.1))
cells <- merge(data.frame(method = names(samplers)), designs)
calibrations <- lapply(seq_len(nrow(cells)), function(k) {
  moments <- cells$method[k] %in% of_moments
  calibrate(model, if (moments) with_moments else cross, (if (moments) half else whole)(cells$epsilon[k]), cells$n[k], count,
            samplers[[cells$method[k]]], seed = 1)
})

calibration <- bind(lapply(seq_len(nrow(cells)), function(k) {
  cal <- calibrations[[k]]
  if (any(cal$runs$failed)) message(sum(cal$runs$failed), " failed: ", cells$method[k], ", n = ", cells$n[k], ", epsilon = ", cells$epsilon[k])
  table <- merge(ks_uniform(cal), covered(cal, 0.95, NULL))
  table <- table[table$variable %in% c(variables, "log_eta"), ]
  cbind(cells[k, ], table, failed = sum(cal$runs$failed), row.names = NULL)
}))
calibration$critical <- ks_data(calibrations[1])$critical[1]
save_table(calibration, "bernstein_sheldon_2019_figure3abd")

chosen <- which(cells$n == 10 & cells$epsilon == 0.1)
qq <- bind(lapply(chosen, function(k) cbind(method = cells$method[k], calibration_data(calibrations[[k]], "qq", variables))))
qq <- qq[qq$variable != "sigma", ]
save_table(qq, "bernstein_sheldon_2019_figure3c")

# (e), (f): one replicate of every method on the same records
draws <- function(fit) {
  m <- posterior::as_draws_matrix(fit)
  matrix(m[round(seq(1, nrow(m), length.out = 1000)), variables], 1000, dimnames = list(NULL, variables))
}
compare_once <- function(k) {
  trial <- trials[k, ]
  set.seed(k)
  release <- simulate_release(model, cross, whole(trial$epsilon), trial$n)
  data <- attr(release, "truth")$data
  both <- simulate_release(data, with_moments, half(trial$epsilon))
  reference <- draws(samplers[["non-private"]](release, model, data))
  bind(lapply(setdiff(names(samplers), "non-private"), function(name) {
    time <- system.time(fit <- tryCatch(samplers[[name]](if (name %in% of_moments) both else release, model), noiseaware_error = function(e) NULL))
    distance <- if (is.null(fit)) NA else mmd(draws(fit), reference)
    cbind(trial, method = name, mmd = distance, seconds = sum(time[c("user.self", "sys.self")]), row.names = NULL)
  }))
}
trials <- merge(data.frame(trial = seq_len(replicates(100, 10))), designs)
once <- bind(each(seq_len(nrow(trials)), compare_once))
average <- stats::aggregate(cbind(mmd, seconds, failed = is.na(mmd)) ~ method + n + epsilon, once, mean, na.rm = TRUE, na.action = stats::na.pass)
average$trials <- max(trials$trial)
save_table(average, "bernstein_sheldon_2019_figure3ef")

order <- names(samplers)
shown <- calibration[calibration$variable %in% variables, ]
shown$method <- factor(shown$method, rev(order))
shown$design <- factor(sprintf("n %g, epsilon %g", shown$n, shown$epsilon), unique(sprintf("n %g, epsilon %g", designs$n, designs$epsilon)))
save_plot(ggplot(shown, aes(statistic, method, shape = variable)) + geom_vline(aes(xintercept = critical), linetype = "dashed", colour = "grey50") +
            geom_point(size = 1.8) + scale_x_log10(breaks = c(0.03, 0.1, 0.3, 1)) +
            scale_shape_manual(values = c(16, 1, 4)) + facet_wrap(vars(design), nrow = 1) +
            labs(x = "KS distance from uniform (log scale)", y = NULL, shape = NULL,
                 subtitle = sprintf("%d replicates; dashed: a calibrated sampler exceeds it once in 100 times", count)),
          "bernstein_sheldon_2019_figure3ab", 9.5, 3.6)
save_plot(ggplot(shown, aes(coverage, method, shape = variable)) + geom_vline(xintercept = 0.95, linetype = "dashed", colour = "grey50") +
            geom_point(size = 1.8) + scale_x_continuous(breaks = c(0, 0.5, 1), limits = c(0, 1)) +
            scale_shape_manual(values = c(16, 1, 4)) + facet_wrap(vars(design), nrow = 1) +
            labs(x = "coverage of 95% intervals", y = NULL, shape = NULL, subtitle = sprintf("%d replicates", count)),
          "bernstein_sheldon_2019_figure3d", 9.5, 3.6)
qq$method <- factor(qq$method, order)
save_plot(ggplot(qq, aes(at, value)) + geom_ribbon(aes(ymin = lower, ymax = upper), fill = "grey85") +
            geom_abline(linetype = "dashed", colour = "grey50") + geom_line() + facet_grid(vars(variable), vars(method)) +
            scale_x_continuous(breaks = c(0, 1)) +
            labs(x = "uniform quantile", y = "quantile of the truth",
                 subtitle = sprintf("n = 10, epsilon = 0.1, %d replicates; grey: 99%% interval of each point", count)),
          "bernstein_sheldon_2019_figure3c", 9.5, 3.2)
finished(started)
