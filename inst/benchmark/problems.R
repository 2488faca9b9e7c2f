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
#   second          the same by importance sampling, with Monte Carlo errors
#   methods         the methods of sample_posterior() that are exact here (iter: iterations of a chain, if not 100,000 of "collapse", 40,000 of others).
#                   The reference is `exact`, or a long run of the first method; all others must agree with it
#   publish         function(records): the release, where simulate_release() does not make it
#   geography       arguments of sample_geography(), which takes the place of sample_posterior()
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
  quine <- list(Age = paste0("F", 0:3), Lrn = c("AL", "SL"))
  species <- c("setosa", "versicolor", "virginica")
  # 0.3 sds of the covariate, which is 0 for 40 per cent and negative binomial of mean 5 and variance 6.25 for others
  zeros_sd <- 0.3 * sqrt(0.6 * 6.25 + 0.24 * 25)
  noisy_model <- function(p) {
    model_lm(prior = prior_normal(0, 20), sigma = prior_half_normal(5), covariates = prior_niw(mean = 0, kappa = 0.01, scale = 1, df = p + 2))
  }
  areas <- data.frame(state = rep(c("A", "B"), each = 4), county = rep(c("A1", "A2", "B1", "B2"), each = 2),
                      tract = c("A11", "A12", "A21", "A22", "B11", "B12", "B21", "B22"))

  list(
    binomial = list(
      title = "A proportion, from two noisy counts",
      source = "Bernstein & Sheldon (2018), section 4; priors of the authors' code",
      n = 1000, statistic = stat_counts(~ x, list(x = yes_no)), mechanism = mech_laplace(epsilon = 0.01), neighbours = "replace",
      model = model_bernoulli(prior = prior_beta(10, 10)), parameters = c("prob[yes]" = 0.35), prior = TRUE,
      records = function(p) data.frame(x = yes_no[1 + stats::rbinom(1000, 1, p[["prob[yes]"]])]),
      exact = function(release) exact_table(release, 10, function(x) log_laplace(x, 2 / 0.01)), methods = c("collapse", "augment")),

    multinomial = list(
      title = "Three proportions, from three noisy counts",
      source = "Bernstein & Sheldon (2018), section 4; priors of the authors' code",
      n = 1000, statistic = stat_counts(~ x, list(x = c("a", "b", "c"))), mechanism = mech_laplace(epsilon = 0.01), neighbours = "replace",
      model = model_categorical(prior = prior_dirichlet(5)), parameters = c("prob[a]" = 0.2, "prob[b]" = 0.3, "prob[c]" = 0.5), prior = TRUE,
      records = function(p) data.frame(x = sample(c("a", "b", "c"), 1000, TRUE, p)),
      exact = function(release) exact_table(release, 5, function(x) log_laplace(x, 2 / 0.01)), methods = c("collapse", "augment")),

    exponential = list(
      title = "A rate, from the noisy total of the waiting times within bounds",
      source = "Bernstein & Sheldon (2018), section 4; bounds: the middle 95% of the prior predictive distribution",
      n = 100, statistic = stat_sums(~ x, list(x = waiting), outside = "drop"), mechanism = mech_laplace(epsilon = 0.1), neighbours = "replace",
      model = model_exponential(prior = prior_gamma(8, 2)), parameters = c(rate = 3.2), prior = TRUE,
      records = function(p) data.frame(x = stats::rexp(100, p[["rate"]])),
      exact = function(release) exact_exponential(release), methods = "augment"),

    trial = list(
      title = "Two arms of a trial, from four counts with geometric noise",
      source = "own design",
      n = 100, statistic = stat_counts(~ arm:event, arms), mechanism = mech_discrete_laplace(epsilon = 0.5), neighbours = "replace",
      model = model_table(~ arm:event, prior = prior_dirichlet(1)),
      parameters = c("prob[arm=control:event=no]" = 0.3, "prob[arm=treatment:event=no]" = 0.4, "prob[arm=control:event=yes]" = 0.2,
                     "prob[arm=treatment:event=yes]" = 0.1), prior = FALSE,
      records = function(p) draw_cells(100, p, arms),
      exact = function(release) exact_table(release, 1, function(x) -0.25 * abs(x)), # discrete Laplace noise of epsilon / sensitivity = 0.25
      methods = c("collapse", "augment")),

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
      exact = function(release) exact_naive_bayes(release), methods = c("collapse", "augment")),

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
      second = function(release) importance_regression(release, prior_ju, c(y = 10, x1 = 10, x2 = 10), 10, 13), methods = "augment"),

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
      second = function(release) importance_regression(release, prior_bernstein, c(y = 20, x = 1), 1, 80), methods = c("collapse", "augment")),

    `particle-filter` = list(
      title = "Simple regression, conjugate priors, records within [-5, 5]",
      source = paste("Chen, Sanghi & Awan (2025), conjugate priors, epsilon = 1, n = 100; the noise of the authors' code, of scale 8 / epsilon.",
                     "Theirs has a shape and a rate of 1, under which the posterior has no variance, and a prior sd of 1 for the covariate's mean"),
      n = 100, statistic = stat_crossprod(y ~ x, list(y = c(-5, 5), x = c(-5, 5))), mechanism = mech_laplace(scale = 8), neighbours = "replace",
      model = model_lm(prior = prior_nig(mean = 0, precision = 1, shape = 3, rate = 3),
                       covariates = prior_niw(mean = 0, kappa = 1, scale = 1, df = 2)),
      parameters = c("(Intercept)" = 0, x = 2, sigma = 1), prior = FALSE,
      records = function(p) {
        x <- stats::rnorm(100, 1)
        data.frame(y = p[["(Intercept)"]] + p[["x"]] * x + p[["sigma"]] * stats::rnorm(100), x)
      },
      second = function(release) importance_regression(release, prior_chen, c(y = 5, x = 5), 5, 8, draws = 2e6), methods = "augment"),

    `binary-table` = list(
      title = "Three binary variables, from their noisy table (zCDP)",
      source = "Raisa, Jalko, Kaski & Honkela (2023), the toy problem of NAPSU-MQ",
      n = 2000, statistic = stat_counts(~ a:b:c, binary), mechanism = mech_gaussian(epsilon = 1, delta = 2000^-2), neighbours = "replace",
      model = model_table(~ a:b:c, prior = prior_dirichlet(1)),
      parameters = stats::setNames(c(0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.15),
                                   apply(expand.grid(a = yes_no, b = yes_no, c = yes_no), 1, function(l) sprintf("prob[a=%s:b=%s:c=%s]", l[1], l[2], l[3]))),
      prior = FALSE, records = function(p) draw_cells(2000, p, binary),
      exact = function(release) {
        sd <- analytic_sd(1, 2000^-2, sqrt(2))
        exact_table(release, 1, function(x) stats::dnorm(x, 0, sd, log = TRUE))
      },
      methods = c("collapse", "augment")),

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
      second = function(release) importance_logistic(release, scale = 2 / (0.9 - 0.135), ridge = 0.5 / expm1(0.135), moment_scale = 3 / 0.1),
      methods = "augment", iter = 4000),

    `unknown-n` = list(
      title = "A proportion, and how many records there are, from two noisy counts",
      source = "Awan & Wang (2024), section 5: n not known; epsilon = 1 for a record added or removed",
      n = 100, statistic = stat_counts(~ y, list(y = yes_no)), mechanism = mech_laplace(epsilon = 1), neighbours = "add_remove",
      model = model_bernoulli(prior = prior_beta(1, 1)), prior_n = prior_n("poisson", mean = 100), parameters = c("prob[yes]" = 0.2, n = 100), prior = FALSE,
      records = function(p) data.frame(y = yes_no[1 + stats::rbinom(100, 1, p[["prob[yes]"]])]),
      exact = function(release) exact_unknown_n(release), methods = c("collapse", "augment")),

    `birth-weights` = list(
      title = "Birth weight on the mother's age, weight and smoking: real data, conjugate priors scaled by the bounds",
      source = "MASS::birthwt (Hosmer & Lemeshow 1989)",
      n = 189, statistic = stat_crossprod(bwt ~ age + lwt + smoke, list(bwt = c(0, 6000), age = c(10, 60), lwt = c(50, 300), smoke = yes_no),
                                           outside = "none"),
      # epsilon = 5 and the sensitivity of the version that made the file
      mechanism = mech_laplace(scale = 14.4 / 5), neighbours = "replace", model = model_lm(prior = prior_nig(), factors = "independent"),
      # the records' own estimates
      parameters = c("(Intercept)" = 2362.72, age = 7.093, lwt = 4.019, smokeyes = -267.213), prior = FALSE,
      records = function(p) within(MASS::birthwt[c("bwt", "age", "lwt", "smoke")], smoke <- yes_no[1 + smoke]),
      methods = c("augment", "collapse")),

    quine = list(
      title = "Pupils by age group and learner status, from eight noisy counts: real data",
      source = "MASS::quine (Aitkin 1978), a design of bench/real_data.R",
      n = 146, statistic = stat_counts(~ Age:Lrn, quine), mechanism = mech_laplace(epsilon = 0.5), neighbours = "replace",
      model = model_table(~ Age:Lrn, prior = prior_dirichlet(1)),
      # the records' own shares
      parameters = c("prob[Age=F0:Lrn=AL]" = 8, "prob[Age=F1:Lrn=AL]" = 10, "prob[Age=F2:Lrn=AL]" = 32, "prob[Age=F3:Lrn=AL]" = 33,
                     "prob[Age=F0:Lrn=SL]" = 19, "prob[Age=F1:Lrn=SL]" = 36, "prob[Age=F2:Lrn=SL]" = 8, "prob[Age=F3:Lrn=SL]" = 0) / 146, prior = FALSE,
      records = function(p) MASS::quine[c("Age", "Lrn")],
      exact = function(release) exact_table(release, 1, function(x) log_laplace(x, 2 / 0.5)), methods = c("collapse", "augment")),

    iris = list(
      title = "Sepal length on petal length and species: real data, bounds that are natural limits",
      source = "datasets::iris (Anderson 1935), a design of bench/real_data.R",
      n = 150, statistic = stat_crossprod(Sepal.Length ~ Petal.Length + Species,
                                           list(Sepal.Length = c(0, 10), Petal.Length = c(0, 10), Species = species), outside = "none"),
      mechanism = mech_laplace(scale = 14.4 / 5), neighbours = "replace", model = model_lm(prior = prior_nig(), factors = "independent"), # as for birth-weights
      parameters = c("(Intercept)" = 3.684, Petal.Length = 0.905, Speciesversicolor = -1.601, Speciesvirginica = -2.118), prior = FALSE,
      records = function(p) datasets::iris[c("Sepal.Length", "Petal.Length", "Species")],
      methods = c("augment", "collapse")),

    quakes = list(
      title = "Mean and standard deviation of a depth, from two noisy totals: real data",
      source = "datasets::quakes, a design of bench/real_data.R",
      n = 1000, statistic = stat_sums(~ depth + I(depth^2), list(depth = c(0, 700)), outside = "none"), mechanism = mech_laplace(scale = 20), neighbours = "replace",
      model = model_normal(prior = list(mean = prior_normal(350, 200), sd = prior_inverse_gamma(2, 30000))),
      parameters = c(mean = 311.371, sd = 215.536), prior = FALSE, records = function(p) datasets::quakes["depth"],
      second = function(release) importance_normal(release, prior_quakes, 350, 350, 20), methods = c("collapse", "augment")),

    `noisy-records` = list(
      title = "Regression on three covariates, each with normal noise on every record",
      source = "Evans & King (2023), the example of the authors' package",
      n = 1e5, statistic = stat_records(y ~ x1 + x2 + x3), mechanism = mech_record_noise(sd = c(x1 = 0.7, x2 = 1.2, x3 = 1)), neighbours = "replace",
      model = noisy_model(3), parameters = c("(Intercept)" = 10, x1 = 12, x2 = -3, x3 = 9, sigma = 2), prior = FALSE,
      records = function(p) {
        x1 <- stats::rpois(1e5, 7)
        x2 <- x1 + stats::rpois(1e5, 9)
        x3 <- stats::rpois(1e5, 3)
        y <- p[["(Intercept)"]] + p[["x1"]] * x1 + p[["x2"]] * x2 + p[["x3"]] * x3 + p[["sigma"]] * stats::rnorm(1e5)
        data.frame(y, x1 = x1 + stats::rnorm(1e5, 0, 0.7), x2 = x2 + stats::rnorm(1e5, 0, 1.2), x3 = x3 + stats::rnorm(1e5))
      },
      publish = function(data) as_release(data, stat_records(y ~ x1 + x2 + x3), mech_record_noise(sd = c(x1 = 0.7, x2 = 1.2, x3 = 1))),
      second = function(release) importance_noisy_records(release, c(x1 = 0.7, x2 = 1.2, x3 = 1)), methods = "collapse"),

    `noisy-zeros` = list(
      title = "Regression on a covariate with many zeros and normal noise on every record; errors whose variance grows with it",
      source = "Evans & King (2023), the second example of the authors' package; the model is wrong about covariate and errors",
      n = 1e5, statistic = stat_records(y ~ x), mechanism = mech_record_noise(sd = c(x = zeros_sd)), neighbours = "replace",
      model = noisy_model(1), parameters = c("(Intercept)" = 2, x = 8, sigma = 4), prior = FALSE,
      records = function(p) {
        x <- stats::rbinom(1e5, 1, 0.6) * stats::rnbinom(1e5, size = 20, mu = 5)
        y <- p[["(Intercept)"]] + p[["x"]] * x + sqrt(10 + 2 * x) * stats::rnorm(1e5) # variance 16 on average
        data.frame(y, x = x + stats::rnorm(1e5, 0, zeros_sd))
      },
      publish = function(data) as_release(data, stat_records(y ~ x), mech_record_noise(sd = c(x = zeros_sd))),
      second = function(release) importance_noisy_records(release, c(x = zeros_sd)), methods = "collapse"),

    geography = list(
      title = "Adults in tracts of counties of states, from noisy counts at each level",
      source = "own design, in the shape of the redistricting data of the 2020 US Census: discrete Gaussian noise, the number of persons exact",
      n = 100, statistic = local({
        adult <- list(adult = yes_no)
        list(states = stat_counts(~ state:adult, c(list(state = unique(areas$state)), adult)),
             counties = stat_counts(~ county:adult, c(list(county = unique(areas$county)), adult)),
             tracts = stat_counts(~ tract:adult, c(list(tract = areas$tract), adult)))
      }),
      mechanism = list(states = mech_discrete_gaussian(sd = 2), counties = mech_discrete_gaussian(sd = 3), tracts = mech_discrete_gaussian(sd = 4)),
      neighbours = "replace",
      geography = list(formula = ~ state/county/tract, areas = areas, shares = prior_dirichlet(1), concentration = fixed(c(20, 30, 40)), sizes = prior_dirichlet(1),
                       track = list(adults_A = ~ adult == "yes" & state == "A", adults_A1 = ~ adult == "yes" & county == "A1",
                                    adults_A11 = ~ adult == "yes" & tract == "A11")),
      model_words = c("<model> counts of nested areas: an area's persons are divided among its two parts with all splits equally probable;",
                      "  adults in a tract: binomial; shares of adults: beta(c m, c (1 - m)) about the share m of the area above, of states with c = 20,",
                      "  of counties with c = 30, of tracts with c = 40; share of all areas: beta(1, 1)",
                      "  asked: adults in state A, county A1 and tract A11, and the share of all areas"),
      parameters = c(adults_A = 40, adults_A1 = 24, adults_A11 = 15, "share[adult=yes]" = 0.7), prior = FALSE,
      # the same persons each time
      records = function(p) {
        adults <- c(15, 9, 11, 5, 8, 12, 4, 6)
        children <- c(5, 4, 6, 2, 3, 5, 2, 3)
        data.frame(areas[rep(1:8, adults + children), ], adult = unlist(Map(function(a, c) rep(c("yes", "no"), c(a, c)), adults, children)))
      },
      exact = function(release) exact_geography(release, c(states = 2, counties = 3, tracts = 4), c(20, 30, 40), names(problems$geography$parameters)),
      methods = "geography")
  )
})

# A release of a problem: the stored one has seed 1.
simulate_problem <- function(problem, seed, parameters = problem$parameters) {
  set.seed(seed)
  records <- problem$records(parameters)
  if (!is.null(problem$publish)) return(problem$publish(records))
  simulate_release(records, problem$statistic, problem$mechanism, neighbours = problem$neighbours)
}

# The posterior by a method of the package.
sample_problem <- function(problem, release, method = "auto", ...) {
  if (!is.null(problem$geography)) return(suppressMessages(do.call(sample_geography, c(list(release), problem$geography, list(...)))))
  arguments <- list(release, problem$model, method = method, ...)
  if (!is.null(problem$prior_n)) arguments$prior_n <- problem$prior_n
  suppressMessages(do.call(sample_posterior, arguments))
}
