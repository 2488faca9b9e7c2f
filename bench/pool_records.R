# Pooling by imputed records with default arguments, and responses with levels by their tables: least effective draws a second of processor time of what
# sites share, set-up and warmup counted; real groups, beside the answer of the records without noise where that is quick to have.
#
#   Rscript bench/pool_records.R

if (!exists("bench_result")) source("bench/helpers.R")

of_groups <- function(data, by, statistic, epsilon) {
  set.seed(1)
  lapply(split(data, by), simulate_release, statistic, mech_laplace(epsilon = epsilon))
}

pool_records_cases <- function() {
  pupils <- as.data.frame(HairEyeColor)
  pupils <- pupils[rep(seq_len(nrow(pupils)), pupils$Freq), ]
  ill <- transform(MASS::bacteria, y = as.numeric(y == "y"), week = as.numeric(week))
  absent <- MASS::quine
  asked <- as.data.frame(UCBAdmissions)
  asked <- asked[rep(seq_len(nrow(asked)), asked$Freq), ]
  large <- names(utils::head(sort(-table(MASS::nlschools$class)), 20L))
  schools <- droplevels(subset(MASS::nlschools, class %in% large))
  list(
    `eye colours by sex` = list(of_groups(pupils, pupils$Sex, stat_counts(~ Eye, levels = list(Eye = levels(pupils$Eye))), 1), model_categorical()),
    `bacteria by treatment, logistic` = list(of_groups(ill, ill$trt, stat_crossprod(y ~ week, list(y = c(0, 1), week = c(0, 11))), 1), model_logistic(y ~ week)),
    `absences by age, Poisson on sex` = list(of_groups(absent, absent$Age, stat_crossprod(Days ~ Sex, list(Days = c(0, 40), Sex = levels(absent$Sex))), 1),
                                             model_glm(Days ~ Sex, family = "poisson")),
    `absences by age, normal on sex` = list(of_groups(absent, absent$Age, stat_crossprod(Days ~ Sex, list(Days = c(0, 40), Sex = levels(absent$Sex))), 1),
                                            model_lm(Days ~ Sex)),
    `admissions by department, naive Bayes` = list(
      of_groups(asked, asked$Dept, stat_counts(~ Admit:Gender, levels = list(Admit = levels(asked$Admit), Gender = levels(asked$Gender))), 1),
      model_naive_bayes(class = "Admit")),
    `20 classes, clamped, normal on IQ` = list(of_groups(schools, schools$class, stat_crossprod(lang ~ IQ, list(lang = c(25, 55), IQ = c(9, 15))), 4),
                                               model_lm(lang ~ IQ)))
}

# Responses with levels whose covariates are all factors
response_cases <- function() {
  asked <- as.data.frame(UCBAdmissions)
  asked <- asked[rep(seq_len(nrow(asked)), asked$Freq), ]
  admissions <- stat_counts(~ Admit:Gender, levels = list(Admit = levels(asked$Admit), Gender = levels(asked$Gender)))
  homes <- MASS::housing[rep(seq_len(nrow(MASS::housing)), MASS::housing$Freq), ]
  homes$Sat <- factor(homes$Sat, ordered = FALSE)
  satisfied <- stat_counts(~ Sat:Infl:Type, levels = lapply(homes[c("Sat", "Infl", "Type")], levels))
  simulated <- function(n) {
    set.seed(1)
    levels <- list(y = c("no", "yes"), a = c("u", "v", "w"), b = c("l", "h"))
    sites <- lapply(c(a = -1, b = 0, c = 1, d = 2), function(shift) {
      a <- factor(sample(levels$a, n, TRUE), levels$a)
      b <- factor(sample(levels$b, n, TRUE), levels$b)
      y <- factor(ifelse(stats::runif(n) < stats::plogis(-0.3 + 0.2 * shift + 0.8 * (a == "v") - 0.5 * (b == "h")), "yes", "no"), levels$y)
      simulate_release(data.frame(y, a, b), stat_counts(~ y:a:b, levels = levels), mech_laplace(epsilon = 0.5))
    })
    list(sites, model_logistic(y ~ a + b))
  }
  list(`admissions by department, logistic on sex` = list(of_groups(asked, asked$Dept, admissions, 1), model_logistic(Admit ~ Gender)),
       `satisfaction by contact, ordered logit` = list(of_groups(homes, homes$Cont, satisfied, 1), model_glm(Sat ~ Infl + Type, family = "cumulative")),
       `four sites of 120, two factors` = simulated(120), `four sites of 1,000, two factors` = simulated(1000), `four sites of 4,000, two factors` = simulated(4000))
}

pool_records_row <- function(name, case, pool, method = "augment") {
  say("%s, %s", name, pool)
  time <- seconds(fit <- suppressWarnings(suppressMessages(sample_posterior(case[[1L]], case[[2L]], pool = pool, method = method, seed = 1))))
  told <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  own <- if (pool == "complete") TRUE else !vapply(told$variable, function(v) any(endsWith(v, paste0("[", names(case[[1L]]), "]"))), TRUE)
  data.frame(data = name, pool = pool, sites = length(case[[1L]]), records = stats::nobs(fit), `processor seconds` = time, ess = min(told$ess_bulk[own]),
             `ESS per second` = min(told$ess_bulk[own]) / time, rhat = max(told$rhat[own]), check.names = FALSE)
}

bench_pool_records <- function(quick) {
  cases <- pool_records_cases()
  rows <- do.call(rbind, unlist(lapply(names(cases), function(name) {
    lapply(c("complete", "partial"), function(pool) pool_records_row(name, cases[[name]], pool))
  }), recursive = FALSE))
  responses <- response_cases()
  ways <- expand.grid(method = c("collapse", "augment"), pool = c("complete", "partial"), name = names(responses), stringsAsFactors = FALSE)
  by_tables <- do.call(rbind, Map(function(name, pool, method) {
    cbind(method = method, pool_records_row(name, responses[[name]], pool, method))
  }, ways$name, ways$pool, ways$method, USE.NAMES = FALSE))
  bench_result(list(figure("greatest R-hat", "complete pooling", max(rows$rhat[rows$pool == "complete"]), 1.05, at_most = TRUE),
                    figure("greatest R-hat", "partial pooling", max(rows$rhat[rows$pool == "partial"]), 1.05, at_most = TRUE)),
               list("Sites pooled by imputed records, 4 chains x 2,000" = rows,
                    "Responses with levels and factors alone: tables (collapse) beside imputed records (augment), 4 chains x 2,000" = by_tables),
               "ESS and R-hat of what sites share: means over sites, and standard deviations between them.")
}

run_alone(bench_pool_records)
