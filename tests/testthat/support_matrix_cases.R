# The cases of support_matrix.R and of its small version among the tests: a design
# for each model, each mechanism that it takes, each method that supports it.

yes_no <- list(y = c("no", "yes"))
three <- list(y = c("a", "b", "c"))
classes <- list(y = c("a", "b"), u = c("k", "l"), v = c("p", "q", "r"))
close_prior <- prior_nig(mean = 0, precision = 1, shape = 4, rate = 3)
covariates <- prior_niw(mean = 0, kappa = 2, df = 6, scale = 2)
box <- list(y = c(-6, 6), x = c(-5, 5))

# model, statistic, and whether its components are integers
designs <- list(
  bernoulli = list(model_bernoulli(), stat_counts(~ y, yes_no), TRUE),
  categorical = list(model_categorical(), stat_counts(~ y, three), TRUE),
  naive_bayes = list(model_naive_bayes("y"), stat_counts(~ y:u + y:v, classes), TRUE),
  poisson = list(model_poisson(prior = prior_gamma(4, 1)), stat_sums(~ x, list(x = c(0, 25))), FALSE),
  exponential = list(model_exponential(prior = prior_gamma(4, 4)), stat_sums(~ x, list(x = c(0, 8))), FALSE),
  normal = list(model_normal(prior = close_prior), stat_sums(~ x + I(x^2), list(x = c(-6, 6))), FALSE),
  mvnormal = list(model_mvnormal(prior = prior_niw(mean = 0, kappa = 2, df = 6, scale = 2)), stat_crossprod(y ~ x, box), FALSE),
  lm = list(model_lm(prior = close_prior, covariates = covariates), stat_crossprod(y ~ x, box), FALSE),
  logistic = list(model_logistic(prior = prior_normal(0, 1), covariates = covariates), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-5, 5))), FALSE),
  factor_logistic = list(model_logistic(y ~ u + v, prior = prior_normal(0, 1)), stat_counts(~ y:u + y:v, classes), TRUE),
  local_bernoulli = list(model_bernoulli(), stat_records(~ y, levels = yes_no), NA),
  local_normal = list(model_normal(prior = close_prior), stat_records(~ x, bounds = list(x = c(-6, 6))), FALSE))

mechanisms <- list(laplace = mech_laplace(epsilon = 1), gaussian = mech_gaussian(mu = 1), discrete_laplace = mech_discrete_laplace(epsilon = 1),
                   discrete_gaussian = mech_discrete_gaussian(rho = 0.5), randomized_response = mech_randomized_response(epsilon = 1))

cases <- expand.grid(n = c(20, 500), mechanism = names(mechanisms), design = names(designs), method = c("augment", "collapse", "clt"),
                     stringsAsFactors = FALSE)[4:1]
fits <- function(case) {
  integers <- designs[[case$design]][[3]]
  if (case$mechanism == "randomized_response") return(is.na(integers))
  if (is.na(integers)) return(FALSE)
  integers || !startsWith(case$mechanism, "discrete")
}
cases <- cases[vapply(seq_len(nrow(cases)), function(i) fits(cases[i, ]), TRUE), ]
table <- supported()
# "collapse" takes factors alone, "clt" numbers
left_out <- c("logistic collapse", "factor_logistic clt")
served <- function(case) {
  if (paste(case$design, case$method) %in% left_out) return(FALSE)
  any(table$model == sub("local_|factor_", "", case$design) & table$statistic == designs[[case$design]][[2]]$name & table$method == case$method)
}
cases <- cases[vapply(seq_len(nrow(cases)), function(i) served(cases[i, ]), TRUE), ]
