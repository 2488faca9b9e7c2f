# Generalised linear models: least effective draws a second of default calls (4 chains x 2,000,
# everything unknown, Laplace noise, warmup and set-up counted), and default calls on data sets that
# nobody prepared, beside glm() on the data themselves.
#
#   Rscript bench/glm.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

# 3 normal covariates, bounds at 4 standard deviations
glm_release <- function(family, n = 1000, epsilon = 1) {
  set.seed(1)
  x <- matrix(stats::rnorm(3 * n), n, dimnames = list(NULL, paste0("x", 1:3)))
  mean <- family$linkinv(drop(cbind(1, x) %*% c(0.5, 0.6, -0.4, 0.2)))
  count <- family$family == "poisson"
  data <- data.frame(y = if (count) stats::rpois(n, mean) else stats::runif(n) < mean, x)
  bounds <- c(list(y = if (count) c(0, 20) else c(FALSE, TRUE)), stats::setNames(rep(list(c(-4, 4)), 3L), colnames(x)))
  simulate_release(data, stat_crossprod(y ~ x1 + x2 + x3, bounds), mech_laplace(epsilon = epsilon))
}

# the same covariates, an ordered response of four levels
ordered_release <- function(link, n = 1000, epsilon = 1) {
  set.seed(1)
  x <- matrix(stats::rnorm(3 * n), n, dimnames = list(NULL, paste0("x", 1:3)))
  error <- if (link == "logit") stats::rlogis(n) else stats::rnorm(n)
  levels <- c("none", "some", "much", "most")
  data <- data.frame(y = cut(drop(x %*% c(0.6, -0.4, 0.2)) + error, c(-Inf, -1, 0.2, 1.2, Inf), levels), x)
  bounds <- c(list(y = levels), stats::setNames(rep(list(c(-4, 4)), 3L), colnames(x)))
  simulate_release(data, stat_crossprod(y ~ x1 + x2 + x3, bounds), mech_laplace(epsilon = epsilon))
}

speed_cases <- list(
  list(family = family_object("cumulative"), method = "augment", target = 30),
  list(family = family_object("cumulative_probit"), method = "augment", target = 30),
  list(family = stats::poisson(), method = "augment", target = 100),
  list(family = stats::poisson(), method = "clt", target = 1000),
  list(family = stats::binomial("probit"), method = "augment", target = 100),
  list(family = stats::binomial("probit"), method = "clt", target = 1000),
  list(family = stats::binomial("cloglog"), method = "augment", target = NA),
  list(family = stats::binomial("cloglog"), method = "clt", target = NA),
  list(family = stats::binomial("logit"), method = "augment", target = NA),
  list(family = stats::binomial("logit"), method = "clt", target = NA)
)

default_fit <- function(release, family, method, quick) {
  time <- seconds(fit <- suppressWarnings(suppressMessages(
    sample_posterior(release, model_glm(family = family), method = method, chains = 4, iter = if (quick) 200 else 2000, seed = 1))))
  draws <- posterior::as_draws_array(fit)
  rhat <- max(vapply(posterior::variables(draws), function(v) posterior::rhat(posterior::extract_variable_matrix(draws, v)), 0))
  list(fit = fit, time = time, ess = min_ess(draws), rhat = rhat)
}

speed_row <- function(case, quick) {
  say("%s, %s", case$family$link, case$method)
  release <- if (case$family$family == "cumulative") ordered_release(case$family$link) else glm_release(case$family)
  ran <- default_fit(release, case$family, case$method, quick)
  data.frame(family = case$family$family, link = case$family$link, method = case$method, seconds = ran$time, ess = ran$ess,
             `ESS per second` = ran$ess / ran$time, rhat = ran$rhat, check.names = FALSE)
}

# as they come, with bounds that a person would declare
real_cases <- list(
  warpbreaks = list(data = warpbreaks, formula = breaks ~ wool + tension, family = stats::poisson(),
                    bounds = list(breaks = c(0, 80), wool = c("A", "B"), tension = c("L", "M", "H"))),
  quine = list(data = MASS::quine, formula = Days ~ Eth + Sex + Age + Lrn, family = stats::poisson(),
               bounds = list(Days = c(0, 90), Eth = c("A", "N"), Sex = c("F", "M"), Age = c("F0", "F1", "F2", "F3"), Lrn = c("AL", "SL"))),
  insurance = list(data = MASS::Insurance, formula = Claims ~ Group + Age, family = stats::poisson(),
                   bounds = list(Claims = c(0, 400), Group = levels(MASS::Insurance$Group), Age = levels(MASS::Insurance$Age))),
  infert = list(data = transform(infert, case = case == 1), formula = case ~ age + parity + education, family = stats::binomial("probit"),
                bounds = list(case = c(FALSE, TRUE), age = c(18, 50), parity = c(0, 8), education = levels(infert$education))),
  birthwt = list(data = transform(MASS::birthwt, low = low == 1, smoke = smoke == 1), formula = low ~ age + lwt + smoke, family = stats::binomial("cloglog"),
                 bounds = list(low = c(FALSE, TRUE), age = c(14, 50), lwt = c(80, 260), smoke = c(FALSE, TRUE)))
)

real_row <- function(name, epsilon, quick) {
  case <- real_cases[[name]]
  say("%s, epsilon %g", name, epsilon)
  set.seed(2)
  release <- simulate_release(case$data, stat_crossprod(case$formula, case$bounds), mech_laplace(epsilon = epsilon))
  ran <- default_fit(release, case$family, "augment", quick)
  data <- case$data
  for (v in names(data)) if (is.factor(data[[v]])) data[[v]] <- factor(data[[v]], ordered = FALSE)
  exact <- stats::coef(stats::glm(case$formula, case$family, data))[-1L]
  draws <- as.matrix(posterior::as_draws_matrix(ran$fit))[, names(coef(ran$fit))[-1L], drop = FALSE]
  away <- abs(colMeans(draws) - exact) / apply(draws, 2L, stats::sd)
  data.frame(data = name, n = nrow(data), family = case$family$family, link = case$family$link, epsilon = epsilon, seconds = ran$time, ess = ran$ess,
             rhat = ran$rhat, `glm() away, posterior sd` = max(away), check.names = FALSE)
}

# Responses of several levels, as they come; MASS::polr() and nnet::multinom() on the data themselves.
category_cases <- list(
  housing = list(data = MASS::housing[rep(seq_len(72), MASS::housing$Freq), ], formula = Sat ~ Infl + Type + Cont, family = family_object("cumulative"),
                 bounds = lapply(MASS::housing[c("Sat", "Infl", "Type", "Cont")], levels)),
  infert = list(data = infert, formula = education ~ age + parity, family = family_object("cumulative_probit"),
                bounds = list(education = levels(infert$education), age = c(18, 50), parity = c(0, 8))),
  iris = list(data = iris, formula = Species ~ Sepal.Length + Sepal.Width, family = family_object("categorical"),
              bounds = list(Species = levels(iris$Species), Sepal.Length = c(4, 8), Sepal.Width = c(2, 4.5))),
  survey = list(data = stats::na.omit(MASS::survey[c("Exer", "Sex", "Age")]), formula = Exer ~ Sex + Age, family = family_object("categorical"),
                bounds = list(Exer = c("Freq", "None", "Some"), Sex = c("Female", "Male"), Age = c(16, 50))),
  cars = list(data = transform(MASS::Cars93, Man = Man.trans.avail), formula = AirBags ~ Price + Man, family = family_object("cumulative"),
                  bounds = list(AirBags = c("None", "Driver only", "Driver & Passenger"), Price = c(5, 65), Man = c("No", "Yes")))
)

category_row <- function(name, epsilon, quick) {
  case <- category_cases[[name]]
  say("%s, epsilon %g", name, epsilon)
  set.seed(2)
  release <- simulate_release(case$data, stat_crossprod(case$formula, case$bounds), mech_laplace(epsilon = epsilon))
  ran <- default_fit(release, case$family, "auto", quick)
  response <- all.vars(case$formula)[1L]
  data <- case$data
  data[[response]] <- factor(as.character(data[[response]]), case$bounds[[response]])
  for (v in all.vars(case$formula)[-1L]) if (is.factor(data[[v]])) data[[v]] <- factor(data[[v]], ordered = FALSE)
  ordered <- case$family$family == "cumulative"
  exact <- if (ordered) MASS::polr(case$formula, data, method = if (case$family$link == "logit") "logistic" else "probit")$coefficients else
    as.vector(t(stats::coef(nnet::multinom(case$formula, data, trace = FALSE))[, -1L]))
  means <- coef(ran$fit)
  kept <- if (ordered) names(exact) else grep("Intercept", names(means), value = TRUE, invert = TRUE)
  away <- abs(means[kept] - exact) / sqrt(diag(stats::vcov(ran$fit)))[kept]
  data.frame(data = name, n = nrow(data), family = case$family$family, link = case$family$link, epsilon = epsilon, method = ran$fit$method, seconds = ran$time,
             ess = ran$ess, rhat = ran$rhat, `without noise away, posterior sd` = max(away), check.names = FALSE)
}

# A logistic regression on factors alone: the counts of their combinations by "collapse", the records by "augment".
factor_row <- function(n, method, quick) {
  say("factors, n = %g, %s", n, method)
  set.seed(3)
  data <- data.frame(g = sample(c("a", "b", "c"), n, TRUE, c(0.5, 0.3, 0.2)), h = sample(c("k", "l"), n, TRUE))
  data$y <- stats::runif(n) < stats::plogis(-0.5 + 0.8 * (data$g == "b") - 0.4 * (data$g == "c") + 0.5 * (data$h == "l"))
  release <- simulate_release(data, stat_crossprod(y ~ g + h, list(y = c(FALSE, TRUE), g = c("a", "b", "c"), h = c("k", "l"))), mech_laplace(epsilon = 1))
  ran <- default_fit(release, stats::binomial(), method, quick)
  data.frame(records = n, method = method, seconds = ran$time, ess = ran$ess, `ESS per second` = ran$ess / ran$time, rhat = ran$rhat, check.names = FALSE)
}

# Answers by randomised response of 412 records. The first two: the survey of van den Hout and van der Heijden (2007) in the
# tests of the package rrLogit, two questions, each answered truly with probability 0.8; as a table, and as a response of four levels, which
# is another mechanism: a true level with probability 0.64, each other with 0.12.
answer_cases <- function() {
  both <- list(first = c("yes", "no"), second = c("yes", "no"))
  seen <- rep(0:3, c(68, 52, 103, 189))
  four <- c("yes/yes", "yes/no", "no/yes", "no/no")
  set.seed(1)
  groups <- list(y = four, age = c("young", "middle", "old"), sex = c("f", "m"))
  people <- as.data.frame(lapply(groups, sample, 412, TRUE))
  people$y <- four[1 + findInterval(stats::runif(412) - 0.1 * (people$age == "old"), c(0.2, 0.3, 0.5))]
  list(
    `two questions, model_table()` = list(model = model_table(~ first:second, prior_normal()),
      release = as_release(cbind(first = seen %/% 2, second = seen %% 2), stat_records(~ first + second, levels = both), mech_randomized_response(epsilon = 2 * log(4)), n = 412)),
    `four levels, categorical()` = list(model = model_glm(y ~ 1, "categorical"),
      release = as_release(seen, stat_records(~ y, levels = list(y = four)), mech_randomized_response(epsilon = log(0.64 / 0.12)), n = 412)),
    `four levels on two factors, categorical()` = list(model = model_glm(family = "categorical"),
      release = simulate_release(people, stat_records(y ~ age + sex, levels = groups), mech_randomized_response(epsilon = 6))),
    `four levels on two factors, cumulative()` = list(model = model_glm(family = "cumulative"),
      release = simulate_release(people, stat_records(y ~ age + sex, levels = groups), mech_randomized_response(epsilon = 6))))
}

answer_row <- function(name, iter) {
  say("%s", name)
  case <- answer_cases()[[name]]
  call <- function() suppressWarnings(suppressMessages(sample_posterior(case$release, case$model, iter = iter, seed = 1)))
  fit <- call()
  time <- seconds(for (k in 1:10) call()) / 10 # the clock has ticks of a hundredth
  ess <- min_ess(posterior::as_draws_array(fit))
  data.frame(answers = name, method = fit$method, iter = iter, seconds = time, ess = ess, `seconds to 5,000` = 5000 * time / ess,
             rhat = max(noiseaware:::mixing_diagnostics(fit)$rhat), check.names = FALSE)
}

bench_glm <- function(quick = FALSE) {
  speed <- do.call(rbind, lapply(speed_cases, speed_row, quick))
  cases <- expand.grid(name = names(real_cases), epsilon = c(1, 10), stringsAsFactors = FALSE)
  real <- do.call(rbind, Map(real_row, cases$name, cases$epsilon, quick))
  cases <- expand.grid(n = c(1e3, 1e4, 1e5), method = c("collapse", "augment"), stringsAsFactors = FALSE)
  factors <- do.call(rbind, Map(factor_row, cases$n, cases$method, quick))
  cases <- expand.grid(name = names(category_cases), epsilon = c(1, 10), stringsAsFactors = FALSE)
  categories <- do.call(rbind, Map(category_row, cases$name, cases$epsilon, quick))
  answers <- do.call(rbind, Map(answer_row, names(answer_cases()), 2000))
  targets <- vapply(speed_cases, `[[`, 0, "target")
  bench_result(
    c(Map(function(l, m, r, t) figure("least ESS per second", sprintf("%s link, \"%s\"", l, m), r, t), speed$link, speed$method, speed[["ESS per second"]], targets),
      Map(function(name, time) figure("seconds to 5,000 effective draws", paste("randomised response,", name), time, 0.2, TRUE), answers$answers, answers[["seconds to 5,000"]]),
      list(figure("default calls with R-hat at most 1.01", sprintf("of %d on real data", nrow(real)), sum(real$rhat <= 1.01)),
           figure("ESS per second of \"collapse\" over \"augment\"", "factors alone, n = 100,000", factors[["ESS per second"]][3L] / factors[["ESS per second"]][6L]))),
    list("3 covariates, n = 1,000, epsilon 1" = speed, "Logistic regression on two factors, epsilon 1" = factors, "Default calls on real data" = real,
         "Answers by randomised response, default calls" = answers,
         "Default calls on real data, responses of several levels" = categories),
    c("Default calls, 4 chains x 2,000, on one core; warmup and set-up count. ESS is the bulk one, the least of all parameters; R-hat the largest.",
      "glm(): on the data themselves, without noise; the coefficient that is furthest from its posterior mean, intercept aside."))
}

run_alone(bench_glm)
