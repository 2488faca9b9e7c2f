# Hashes of fits of every kind: of their draws, of what was imputed and of the states that come back. A change that moves code and not
# behaviour leaves every line as it is; `tools/golden` compares two commits.
#
# Usage: Rscript tools/golden.R > file
library(noiseaware)
bounds <- list(y = c(-4, 4), x = c(-2, 2), z = c(-2, 2), w = c(0, 9), b = c(0, 1), g = c("a", "b", "c"), h = c("u", "v"))
set.seed(1)
data <- data.frame(y = pmax(pmin(stats::rnorm(60), 3), -3), x = stats::rnorm(60), z = stats::rnorm(60), w = stats::rpois(60, 3), b = rep(0:1, 30),
                   g = rep(c("a", "b", "b", "c"), 15), h = rep(c("u", "v", "v"), 20))
noises <- list(laplace = mech_laplace(epsilon = 5), gaussian = mech_gaussian(mu = 2), whole = mech_discrete_laplace(epsilon = 2),
               own = mech_custom(log_density = function(noise) rowSums(stats::dcauchy(noise, log = TRUE))))
of <- function(...) bounds[c(...)]
designs <- list(
  lm = list(stat_crossprod(y ~ x + z, of("y", "x", "z")), model_lm()),
  lm_factor = list(stat_crossprod(y ~ x + g, of("y", "x", "g")), model_lm()),
  lm_factors = list(stat_crossprod(y ~ g + h, of("y", "g", "h")), model_lm()),
  lm_product = list(stat_crossprod(y ~ x * z, of("y", "x", "z")), model_lm()),
  logistic = list(stat_crossprod(b ~ x + z, of("b", "x", "z")), model_logistic()),
  counts_glm = list(stat_crossprod(w ~ x, of("w", "x")), model_glm(family = stats::poisson())),
  ordered = list(stat_crossprod(g ~ x, of("g", "x")), model_glm(family = "cumulative")),
  normal = list(stat_sums(~ y + I(y^2), of("y")), model_normal()),
  normal_sum = list(stat_sums(~ y, of("y")), model_normal()),
  mvnormal = list(stat_crossprod(y ~ x, of("y", "x")), model_mvnormal()),
  poisson = list(stat_sums(~ w, of("w")), model_poisson()),
  exponential = list(stat_sums(~ w, of("w")), model_exponential()),
  bernoulli = list(stat_counts(~ h, of("h")), model_bernoulli()),
  categorical = list(stat_counts(~ g, of("g")), model_categorical()),
  bayes = list(stat_counts(~ g:h, of("g", "h")), model_naive_bayes("h")),
  table = list(stat_counts(~ g + h + g:h, of("g", "h")), model_table(~ g:h)),
  loglinear = list(stat_counts(~ g:h, of("g", "h")), model_table(~ g + h, prior_normal())),
  bins = list(stat_histogram(~ y, list(y = c(-4, -1, 0, 1, 4))), model_normal()),
  custom = list(stat_sums(~ w, of("w")),
                model_custom(function() c(mu = stats::rnorm(1)), function(theta, n) cbind(w = stats::rnorm(n, theta)),
                             function(records, theta) c(mu = stats::rnorm(1, mean(records))), "w")))

hashed <- 0
say <- function(name, fit) {
  fit <- tryCatch(suppressWarnings(suppressMessages(fit)), noiseaware_error = function(e) NULL)
  if (is.null(fit)) return(invisible())
  hashed <<- hashed + 1
  parts <- c("draws", "statistic", "log_eta", "acceptance", "state", "records", "outside")
  cat(sprintf("%-46s %s\n", name, rlang::hash(list(unclass(fit$draws), fit$exact, lapply(fit$chains, function(chain) chain[intersect(parts, names(chain))])))))
}
sample <- function(release, model, method, ...) sample_posterior(release, model, method, chains = 1, iter = 40, seed = 1, ...)

for (design in names(designs)) for (noise in names(noises)) for (method in c("augment", "collapse", "clt")) {
  statistic <- designs[[design]][[1L]]
  model <- designs[[design]][[2L]]
  known <- tryCatch(simulate_release(data, statistic, noises[[noise]]), noiseaware_error = function(e) NULL)
  if (noise == "own") known <- tryCatch(as_release(simulate_release(data, statistic, noises[[1L]])$value, statistic, noises$own, 60), noiseaware_error = function(e) NULL)
  if (is.null(known)) next
  say(paste(design, noise, method), sample(known, model, method))
  if (noise != "laplace") next
  unknown <- simulate_release(data, list(size = stat_size(), rest = statistic), list(size = noises$laplace, rest = noises$laplace), neighbours = "add_remove")
  say(paste(design, "n unknown", method), sample(unknown, model, method))
  after <- tryCatch(simulate_release(data, statistic, published(noises$laplace, round = 1)), noiseaware_error = function(e) NULL)
  if (!is.null(after)) say(paste(design, "rounded", method), sample(after, model, method))
  sites <- lapply(list(north = data[1:30, ], south = data[31:60, ]), simulate_release, statistic, noises$laplace)
  for (pool in c("complete", "partial")) say(paste(design, pool, method), sample(sites, model, method, pool = pool))
}
for (kind in c("walk", "none")) {
  sites <- lapply(split(data, rep(1:3, 20)), simulate_release, designs$normal[[1L]], noises$laplace)
  say(paste("normal", kind), sample(stats::setNames(sites, c("one", "two", "three")), model_normal(), "auto", pool = kind))
}
say("groups", sample(simulate_release(data, list(size = stat_counts(~ g, of("g")), rest = stat_by(stat_sums(~ w, of("w")), of("g"))),
                                      list(size = noises$laplace, rest = noises$laplace)), model_poisson(w ~ g), "auto", pool = "partial"))
say("noisy records", sample(as_release(data, stat_records(y ~ x + z), mech_record_noise(sd = c(x = 0.5))), model_lm(), "auto"))
say("randomised answers", sample(simulate_release(data, stat_records(~ h, levels = of("h")), mech_randomized_response(epsilon = 1)), model_bernoulli(), "auto"))
say("exact numbers", sample(simulate_release(data, list(known = stat_subset(stat_counts(~ g, of("g")), "g=a"), rest = stat_counts(~ g:h, of("g", "h"))),
                                             list(known = mech_exact(), rest = noises$laplace)), model_table(~ g:h), "auto"))
message(hashed, " fits")
