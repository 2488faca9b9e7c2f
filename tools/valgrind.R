# A short walk through all of the C code, for valgrind and for gctorture: every
# model, statistic, mechanism and method, with few records and few iterations, and
# with more records than a block has. The last line it prints summarises all draws:
# compilers must agree on it.
#
# Usage: Rscript tools/valgrind.R [share of]
#
# `2 8` runs the second of eight shares of the combinations, and the first also what comes after
# them, which `0 8` runs alone: valgrind takes an hour or two for all.
library(noiseaware)
share <- as.integer(commandArgs(TRUE))
if (length(share) != 2L) share <- c(1L, 1L)
set.seed(1)
quietly <- function(x) invisible(capture.output(suppressWarnings(suppressMessages(print(x)))))
drawn <- numeric()
run <- function(release, model, method, iter = 12) {
  fit <- sample_posterior(release, model, method = method, chains = 1, iter = iter, seed = 1)
  drawn <<- c(drawn, sum(fit$draws))
  quietly(fit)
  if (method != "naive") extend(fit, 2)
}
bounds <- list(y = c(-4, 4), x = c(-2, 2), w = c(0, 9), b = c(0, 1), g = c("a", "b", "c"))
levels <- list(g = c("a", "b", "c"), h = c("u", "v"))
table <- supported()

# ---- every pair, by a statistic that its model takes ------------------------------

statistics <- list(
  crossprod = list(stat_crossprod(y ~ x, bounds[1:2]), stat_crossprod(y ~ x + g, bounds[c("y", "x", "g")]), stat_crossprod(b ~ x, bounds[c("b", "x")]), stat_crossprod(w ~ 1, bounds["w"])),
  smooth = list(stat_crossprod(y ~ s(x, k = 6), bounds[1:2]), stat_crossprod(y ~ s(x, k = 6) + s(w, k = 7) + b + g, bounds)),
  moments4 = list(stat_moments4(~ x, bounds["x"])),
  sums = list(stat_sums(~ w, bounds["w"]), stat_sums(~ w + I(w^2), bounds["w"], outside = "drop", rescale = FALSE), stat_sums(~ x + y + I(x * y) + I(x^2) + I(y^2), bounds[1:2], rescale = FALSE)),
  counts = list(stat_counts(~ g, levels["g"]), stat_counts(~ g:h, levels)),
  records = list(stat_records(~ w, bounds["w"]), stat_records(~ g, levels = levels["g"])),
  custom = list(stat_custom(function(r) cbind(a = pmin(pmax(r[, 1], 0), 9)), "a", 9, bounds["w"])),
  quantiles = list(stat_quantiles(~ w, bounds["w"], steps = 30)),
  objective = list(stat_objective(b ~ x, bounds[c("b", "x")])))
mechanisms <- list(laplace = mech_laplace(epsilon = 1), gaussian = mech_gaussian(mu = 1), discrete_laplace = mech_discrete_laplace(epsilon = 1), discrete_gaussian = mech_discrete_gaussian(rho = 1),
                   randomized_response = mech_randomized_response(epsilon = 1), objective = mech_objective(epsilon = 1), exponential = mech_exponential(epsilon = 1),
                   custom = mech_custom(log_density = function(noise) rowSums(stats::dcauchy(noise, log = TRUE)), r = function(s) s + stats::rcauchy(length(s))))
rate <- function(theta) theta["rate"]
models <- list(
  lm = model_lm(), logistic = model_logistic(), normal = model_normal(), mvnormal = model_mvnormal(), poisson = model_poisson(), exponential = model_exponential(),
  bernoulli = model_bernoulli(), categorical = model_categorical(), naive_bayes = model_naive_bayes("g"),
  custom = model_custom(function() c(mu = stats::rnorm(1)), function(theta, n) cbind(w = stats::rnorm(n, theta)), function(records, theta) c(mu = stats::rnorm(1, mean(records))), "w",
                        function(theta, theta_new, records) records + theta_new - theta, function(theta) stats::dnorm(theta, log = TRUE)),
  expfam = model_expfam(function(x, theta) log(rate(theta)) - rate(theta) * x, function(x) x, function() c(rate = stats::rgamma(1, 2, 1)), function(theta) stats::dgamma(rate(theta), 2, 1, log = TRUE),
                        function(total, n) c(rate = stats::rgamma(1, 2 + n, 1 + total)), function(theta, n) stats::rexp(n, rate(theta)), function(total, n) pmax(total, 0), c(0, Inf)))
if (isTRUE(getOption("noiseaware.short"))) mechanisms <- mechanisms[c("laplace", "randomized_response", "objective", "custom")]
tried <- simulated <- 0
for (model in names(models)) for (kind in names(statistics)) for (st in statistics[[kind]]) for (mechanism in names(mechanisms)) {
  release <- tryCatch(suppressWarnings(simulate_release(models[[model]], st, mechanisms[[mechanism]], n = 9)), noiseaware_error = function(e) NULL)
  simulated <- simulated + !is.null(release)
  if (is.null(release) || simulated %% share[2L] != share[1L] - 1L) next
  for (method in c("augment", "collapse", "clt", "naive")) {
    tried <- tried + tryCatch({
      run(release, models[[model]], method)
      1
    }, noiseaware_error = function(e) 0)
  }
}
cat(tried, "combinations ran\n")
if (share[1L] > 0L) stopifnot(tried > 50 / share[2L])
if (share[1L] > 1L) quit()

# ---- more records than a block; moves learned ----------------------------------------

for (model in c("lm", "logistic", "normal", "mvnormal", "poisson", "exponential", "categorical")) {
  st <- switch(model, lm = statistics$crossprod[[2]], logistic = statistics$crossprod[[3]], normal = statistics$sums[[2]], mvnormal = statistics$sums[[3]], categorical = statistics$counts[[1]],
               statistics$sums[[1]])
  run(suppressWarnings(simulate_release(models[[model]], st, mechanisms$laplace, n = 2500)), models[[model]], "augment", iter = 30)
}
fixed_release <- as_release(c(1, 2, 3, 4, 5), statistics$crossprod[[1]], mechanisms$laplace, 40)
run(fixed_release, model_lm(prior = prior_normal(0, 2), sigma = fixed(1), covariates = fixed(list(mean = 0, cov = 1))), "augment")
run(fixed_release, model_lm(covariates = covariate_moments(data.frame(x = stats::rnorm(200)))), "clt")

# ---- an unknown number of records, queries, bins, and what was done after the noise ------

bins <- stat_histogram(~ x, list(x = c(-2, -1, 0, 1, 2)))
queries <- list(stat_subset(statistics$counts[[1]], "g=a"), stat_linear(statistics$counts[[2]], list(u = c("g=a:h=u", "g=b:h=u"), gap = c("g=a:h=u" = 1, "g=a:h=v" = -1))),
                stat_cumulative(bins), bins, stat_histogram(~ x:g, list(x = c(-2, 0, 2)), levels["g"]), stat_subset(statistics$crossprod[[1]], c("y", "x", "y:x")), stat_size(),
                statistics$crossprod[[1]], statistics$crossprod[[3]], statistics$sums[[1]], statistics$counts[[2]])
after <- list(as_it_is = mechanisms$laplace, hidden = published(mech_discrete_laplace(epsilon = 1), threshold = 2), rounded = published(mechanisms$gaussian, round = 1, lower = 0))
for (model in setdiff(names(models), c("custom", "expfam"))) for (st in queries) for (kind in names(after)) {
  release <- tryCatch(suppressWarnings(if (kind != "rounded") {
    simulate_release(models[[model]], list(size = stat_size(), rest = st), list(size = mechanisms$laplace, rest = after[[kind]]), n = 30, neighbours = "add_remove")
  } else simulate_release(models[[model]], st, after[[kind]], n = 30)), noiseaware_error = function(e) NULL)
  if (!is.null(release)) for (method in c("augment", "collapse", "clt", "naive")) {
    tried <- tried + tryCatch({
      run(release, models[[model]], method)
      1
    }, noiseaware_error = function(e) 0)
  }
}
cat(tried, "combinations ran in all\n")

# ---- many unknown parameters: all records at once, and NUTS in the totals ----------------

wide <- bounds
wide$v <- wide$u <- c(-2, 2)
for (formula in list(y ~ x + u + v, y ~ x + u + g, b ~ x + u + v)) {
  st <- stat_crossprod(formula, wide[all.vars(formula)])
  model <- if (all.vars(formula)[1L] == "b") models$logistic else models$lm
  release <- suppressWarnings(simulate_release(model, st, mechanisms$laplace, n = 60))
  for (method in c("augment", "collapse", "clt")) tryCatch(run(release, model, method, iter = 120), noiseaware_error = function(e) NULL)
}

# ---- the owner's side, and the rest ----------------------------------------------------

data <- data.frame(y = stats::rnorm(50), x = stats::runif(50), w = stats::rexp(50), b = 0:1, g = c("a", "b"), h = "u")
for (kind in names(statistics)) for (st in statistics[[kind]]) for (m in mechanisms) {
  tryCatch(release(data, st, m), noiseaware_error = function(e) NULL)
}
release_objective(data, statistics$objective[[1]], mechanisms$objective)
release(data, stat_quantiles(~ w, c(0, 10), 0.5), mech_exponential(epsilon = 1))
for (s in c(0.3, 5)) for (f in c("qdiscrete_laplace", "qdiscrete_gaussian")) utils::getFromNamespace(f, "noiseaware")(1:9 / 10, 0, s)
noiseaware:::pdiscrete_gaussian(-3:3, sd = 0.4)
quietly(debug_model(models$lm, statistics$crossprod[[2]], n = 40))
quietly(debug_model(models$poisson, statistics$sums[[1]], n = 40))
nonprivate_posterior(data, models$lm, statistics$crossprod[[1]], chains = 1, iter = 20)
quietly(calibrate(models$bernoulli, stat_counts(~ h, levels["h"]), mechanisms$laplace, n = 5, replicates = 2, chains = 1, iter = 20))
file <- tempfile()
writeLines(sprintf("%a", drawn), file)
cat("draws", tools::md5sum(file), "\n")
