# The problems: what is confidential, what was published of it, the model, and what is asked.
#
# A problem is a list with
#   title, source   a sentence; the paper or data set that it is from
#   n, statistic, mechanism, neighbours     what is released (mechanism: a list where there are several)
#   model           with priors that are written out
#   parameters      named truth of the stored release
#   records         function(parameters): a confidential data frame, for the stored release and for replicates
#   prior           TRUE where replicates draw their truth from the prior, FALSE where they keep `parameters`
#   prior_n         prior of the number of records, where it is confidential
#   exact           function(release): moments of the posterior by mathematics that is independent of the package (exact.R), or NULL
#   second          another independent one with Monte Carlo error, which confirms the reference
#   methods         the methods of sample_posterior() that are exact here. Without `exact`, the first makes the reference and the second must
#                   agree with it (iter: iterations of a chain, if not 100,000 of "collapse", 40,000 of others); of "logistic" there is one method alone, and nothing that could confirm it
# Everything follows from fixed seeds. Needs library(noiseaware).

problems <- local({
  yes_no <- c("no", "yes")
  draw_cells <- function(n, prob, levels) {
    cells <- expand.grid(levels, stringsAsFactors = FALSE)
    cells[sample.int(nrow(cells), n, TRUE, prob), , drop = FALSE]
  }
  arms <- list(arm = c("control", "treatment"), event = yes_no)
  binary <- list(a = yes_no, b = yes_no, c = yes_no)
  classes <- c(list(y = as.character(1:5)), stats::setNames(rep(list(c("a", "b", "c")), 5), paste0("x", 1:5)))
  box <- c(-10, 10)
  waiting <- 2 * (c(0.975, 0.025)^(-1 / 8) - 1)

  list(
    binomial = list(
      title = "A proportion, from two noisy counts",
      source = "Bernstein & Sheldon (2018), section 4; priors of the authors' code",
      n = 1000, statistic = stat_counts(~ x, list(x = yes_no)), mechanism = mech_laplace(epsilon = 0.01), neighbours = "replace",
      model = model_bernoulli(prior = prior_beta(10, 10)), parameters = c("prob[yes]" = 0.35), prior = TRUE,
      records = function(p) data.frame(x = yes_no[1 + stats::rbinom(1000, 1, p[["prob[yes]"]])]),
      exact = "exact_binomial", methods = c("collapse", "augment")),

    multinomial = list(
      title = "Three proportions, from three noisy counts",
      source = "Bernstein & Sheldon (2018), section 4; priors of the authors' code",
      n = 1000, statistic = stat_counts(~ x, list(x = c("a", "b", "c"))), mechanism = mech_laplace(epsilon = 0.01), neighbours = "replace",
      model = model_categorical(prior = prior_dirichlet(5)), parameters = c("prob[a]" = 0.2, "prob[b]" = 0.3, "prob[c]" = 0.5), prior = TRUE,
      records = function(p) data.frame(x = sample(c("a", "b", "c"), 1000, TRUE, p)),
      exact = "exact_multinomial", methods = c("collapse", "augment")),

    exponential = list(
      title = "A rate, from the noisy total of the waiting times within bounds",
      source = "Bernstein & Sheldon (2018), section 4; bounds: the middle 95% of the prior predictive distribution",
      n = 100, statistic = stat_sums(~ x, list(x = waiting), outside = "drop"), mechanism = mech_laplace(epsilon = 0.1), neighbours = "replace",
      model = model_exponential(prior = prior_gamma(8, 2)), parameters = c(rate = 3.2), prior = TRUE,
      records = function(p) data.frame(x = stats::rexp(100, p[["rate"]])),
      exact = "exact_exponential", methods = "augment"),

    trial = list(
      title = "Two arms of a trial, from four counts with geometric noise",
      source = "own design",
      n = 100, statistic = stat_counts(~ arm:event, arms), mechanism = mech_discrete_laplace(epsilon = 0.5), neighbours = "replace",
      model = model_table(~ arm:event, prior = prior_dirichlet(1)),
      parameters = c("prob[arm=control:event=no]" = 0.3, "prob[arm=treatment:event=no]" = 0.4, "prob[arm=control:event=yes]" = 0.2,
                     "prob[arm=treatment:event=yes]" = 0.1), prior = FALSE,
      records = function(p) draw_cells(100, p, arms),
      exact = "exact_trial", methods = c("collapse", "augment")),

    `naive-bayes` = list(
      title = "Naive Bayes: five classes, five features of three levels, from 75 noisy counts",
      source = "Ju, Awan, Gong & Rao (2022), section 4",
      n = 100, statistic = stat_counts(~ y:x1 + y:x2 + y:x3 + y:x4 + y:x5, classes), mechanism = mech_laplace(epsilon = 1), neighbours = "replace",
      model = model_naive_bayes("y", prior = prior_dirichlet(2), conditional = prior_dirichlet(2)),
      parameters = stats::setNames(c(0.1, 0.15, 0.2, 0.25, 0.3), paste0("prob[y=", 1:5, "]")), prior = FALSE,
      records = function(p) {
        y <- sample.int(5, 100, TRUE, p)
        # features: shares that lean to the first level in low classes, to the last in high ones
        feature <- function(k) vapply(y, function(class) sample(c("a", "b", "c"), 1, FALSE, c(6 - class, k, class)), "")
        data.frame(y = as.character(y), stats::setNames(lapply(1:5, feature), paste0("x", 1:5)))
      },
      methods = c("collapse", "augment")),

    regression = list(
      title = "Regression on two covariates, everything but the coefficients known",
      source = "Ju, Awan, Gong & Rao (2022), section 5; the paper's noise, of scale 13 / epsilon with epsilon = 1",
      n = 100, statistic = stat_crossprod(y ~ x1 + x2, bounds = list(y = box, x1 = box, x2 = box)), mechanism = mech_laplace(scale = 13), neighbours = "replace",
      model = model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)), covariates = fixed(list(mean = c(0.9, -1.17), cov = diag(2)))),
      parameters = c("(Intercept)" = -1.79, x1 = -2.89, x2 = -0.66), prior = FALSE,
      records = function(p) {
        x <- cbind(x1 = stats::rnorm(100, 0.9), x2 = stats::rnorm(100, -1.17))
        data.frame(y = drop(p[["(Intercept)"]] + x %*% p[c("x1", "x2")]) + sqrt(2) * stats::rnorm(100), x)
      },
      second = "importance_regression", methods = "augment"),

    `simple-regression` = list(
      title = "Simple regression, everything unknown",
      source = "Bernstein & Sheldon (2019), section 4.2; noise of records inside [-1, 1]",
      n = 100, statistic = stat_crossprod(y ~ x, list(y = c(-20, 20), x = c(-1, 1)), rescale = FALSE), mechanism = mech_laplace(scale = 80), neighbours = "replace",
      model = model_lm(prior = prior_nig(mean = 0, precision = 0.5 / 19, shape = 20, rate = 0.5), covariates = prior_niw(mean = 0, kappa = 1, scale = 1, df = 50)),
      parameters = c("(Intercept)" = 0.5, x = -1, sigma = 0.16), prior = FALSE,
      records = function(p) {
        x <- stats::rnorm(100, 0, 0.14)
        data.frame(y = p[["(Intercept)"]] + p[["x"]] * x + p[["sigma"]] * stats::rnorm(100), x)
      },
      methods = c("collapse", "augment")),

    `binary-table` = list(
      title = "Three binary variables, from their noisy table (zCDP)",
      source = "Raisa, Jalko, Kaski & Honkela (2023), the toy problem of NAPSU-MQ",
      n = 2000, statistic = stat_counts(~ a:b:c, binary), mechanism = mech_gaussian(epsilon = 1, delta = 2000^-2), neighbours = "replace",
      model = model_table(~ a:b:c, prior = prior_dirichlet(1)),
      parameters = stats::setNames(c(0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.15),
                                   apply(expand.grid(a = yes_no, b = yes_no, c = yes_no), 1, function(l) sprintf("prob[a=%s:b=%s:c=%s]", l[1], l[2], l[3]))),
      prior = FALSE, records = function(p) draw_cells(2000, p, binary), methods = c("collapse", "augment")),

    logistic = list(
      title = "Logistic regression by objective perturbation, with a covariate of beta distribution",
      source = "Awan & Wang (2024)",
      n = 1000, statistic = local({
        bounds <- list(y = c(0, 1), x = c(-1, 1))
        list(fit = stat_objective(y ~ x, bounds), moments = stat_sums(~ x + I(x^2), bounds["x"], rescale = FALSE))
      }),
      mechanism = list(fit = mech_objective(epsilon = 0.9, ridge = 0.5 / expm1(0.135), norm = "Linf"), moments = mech_laplace(epsilon = 0.1)), neighbours = "replace",
      model = model_logistic(prior = prior_normal(0, c(1.5, 3)), covariates = list(x = covariate_beta())), parameters = c("(Intercept)" = 0.5, x = 2), prior = FALSE,
      records = function(p) {
        x <- 2 * stats::rbeta(1000, 0.5, 0.5) - 1
        data.frame(y = as.numeric(stats::runif(1000) < stats::plogis(p[["(Intercept)"]] + p[["x"]] * x)), x)
      },
      methods = "augment", iter = 4000),

    `unknown-n` = list(
      title = "A proportion, and how many records there are, from two noisy counts",
      source = "Awan & Wang (2024), section 5: n not known; epsilon = 1 for a record added or removed",
      n = 100, statistic = stat_counts(~ y, list(y = yes_no)), mechanism = mech_laplace(epsilon = 1), neighbours = "add_remove",
      model = model_bernoulli(prior = prior_beta(1, 1)), prior_n = prior_n("poisson", mean = 100), parameters = c("prob[yes]" = 0.2, n = 100), prior = FALSE,
      records = function(p) data.frame(y = yes_no[1 + stats::rbinom(100, 1, p[["prob[yes]"]])]),
      exact = "exact_unknown_n", methods = c("collapse", "augment")),

    `birth-weights` = list(
      title = "Birth weight on the mother's age, weight and smoking: real data, conjugate priors scaled by the bounds",
      source = "MASS::birthwt (Hosmer & Lemeshow 1989)",
      n = 189, statistic = stat_crossprod(bwt ~ age + lwt + smoke, list(bwt = c(0, 6000), age = c(10, 60), lwt = c(50, 300), smoke = yes_no),
                                           outside = "none"),
      mechanism = mech_laplace(epsilon = 5), neighbours = "replace", model = model_lm(prior = prior_nig(), factors = "independent"),
      # the records' own estimates
      parameters = c("(Intercept)" = 2362.72, age = 7.093, lwt = 4.019, smokeyes = -267.213), prior = FALSE,
      records = function(p) within(MASS::birthwt[c("bwt", "age", "lwt", "smoke")], smoke <- yes_no[1 + smoke]),
      methods = c("augment", "collapse"))
  )
})

# A release of a problem: the stored one has seed 1.
simulate_problem <- function(problem, seed, parameters = problem$parameters) {
  set.seed(seed)
  simulate_release(problem$records(parameters), problem$statistic, problem$mechanism, neighbours = problem$neighbours)
}

# The posterior by a method of the package.
sample_problem <- function(problem, release, method = "auto", ...) {
  arguments <- list(release, problem$model, method = method, ...)
  if (!is.null(problem$prior_n)) arguments$prior_n <- problem$prior_n
  suppressMessages(do.call(sample_posterior, arguments))
}
