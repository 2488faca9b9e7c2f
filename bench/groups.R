# Groups of one release, pooled: 1,000 groups, and groups of real data with default arguments beside the answer without noise.
#
#   Rscript bench/groups.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

timed_groups <- function(release, model, ...) {
  seconds <- system.time(fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, pool = "partial", seed = 1, ...))))[["elapsed"]]
  s <- posterior::summarise_draws(fit$draws, "mean", "sd", "rhat", "ess_bulk")
  list(summary = s, row = data.frame(seconds = seconds, `ESS of the mean` = s$ess_bulk[1L], `ESS of the sd` = s$ess_bulk[2L], `least ESS` = min(s$ess_bulk),
                                     rhat = max(s$rhat), check.names = FALSE))
}

# ---- many groups -----------------------------------------------------------------------------------

many_groups <- function(count) {
  levels <- list(ward = sprintf("w%04d", seq_len(count)))
  set.seed(2)
  size <- rnbinom(count, 2, mu = 60) + 5
  people <- data.frame(ward = rep(levels$ward, size), visits = rpois(sum(size), rep(exp(rnorm(count, log(3), 0.4)), size)))
  people$smoke <- ifelse(rbinom(nrow(people), 1, plogis(rep(rnorm(count, -0.5, 0.6), size))) == 1, "yes", "no")
  both <- list(size = stat_counts(~ ward, levels), visits = stat_by(stat_sums(~ visits, list(visits = c(0, 20))), levels))
  noise <- function(size) list(size = size, visits = mech_laplace(epsilon = 1))
  cells <- stat_counts(~ ward:smoke, c(levels, list(smoke = c("no", "yes"))))
  list(`rates, sizes public` = simulate_release(people, both, noise(mech_exact())),
       `rates, sizes noisy` = simulate_release(people, both, noise(mech_laplace(epsilon = 1))),
       `proportions, cells noisy` = simulate_release(people, cells, mech_laplace(epsilon = 1)))
}

# ---- real data -------------------------------------------------------------------------------------

grouped_data <- function() {
  patients <- survival::lung[!is.na(survival::lung$inst), ]
  cases <- esoph[rep(seq_len(nrow(esoph)), esoph$ncases + esoph$ncontrols), ]
  cases$case <- unlist(Map(function(a, b) rep(c("yes", "no"), c(a, b)), esoph$ncases, esoph$ncontrols))
  yes <- function(x) ifelse(x, "yes", "no")
  list(quine = list(data = data.frame(y = MASS::quine$Days, g = MASS::quine$Age), upper = 60),
       InsectSprays = list(data = data.frame(y = InsectSprays$count, g = InsectSprays$spray), upper = 30),
       warpbreaks = list(data = data.frame(y = warpbreaks$breaks, g = paste0(warpbreaks$wool, warpbreaks$tension)), upper = 70),
       nlschools = list(data = data.frame(y = MASS::nlschools$lang, g = MASS::nlschools$class), upper = 60),
       esoph = list(data = data.frame(y = cases$case, g = cases$agegp)),
       lung = list(data = data.frame(y = yes(patients$status == 2), g = patients$inst)),
       bacteria = list(data = data.frame(y = yes(MASS::bacteria$y == "y"), g = MASS::bacteria$week)))
}

# At epsilon 1: of rates 0.3 for the sizes and 0.7 for the totals, of proportions 1 for the cells.
one_data_set <- function(name) {
  set <- grouped_data()[[name]]
  set$data$g <- as.character(set$data$g)
  levels <- list(g = sort(unique(set$data$g)))
  rate <- !is.null(set$upper)
  total <- if (rate) stat_by(stat_sums(~ y, list(y = c(0, set$upper))), levels) else stat_counts(~ g:y, c(levels, list(y = c("no", "yes"))))
  model <- if (rate) model_poisson(y ~ g) else model_bernoulli(y ~ g)
  both <- function(sizes, totals) simulate_release(set$data, list(size = stat_counts(~ g, levels), total = total), list(size = sizes, total = totals))
  set.seed(5)
  noisy <- timed_groups(if (rate) both(mech_laplace(epsilon = 0.3), mech_laplace(epsilon = 0.7)) else simulate_release(set$data, total, mech_laplace(epsilon = 1)), model)
  exact <- timed_groups(both(mech_exact(), mech_laplace(scale = 0.01)), model)
  shown <- function(of, k) sprintf("%.2f (%.2f)", of$summary$mean[k], of$summary$sd[k])
  data.frame(data = name, groups = length(levels$g), records = nrow(set$data), noisy$row[c("seconds", "least ESS", "rhat")], mean = shown(noisy, 1L),
             `without noise` = shown(exact, 1L), sd = shown(noisy, 2L), `without noise ` = shown(exact, 2L), check.names = FALSE)
}

bench_groups <- function(quick) {
  releases <- many_groups(if (quick) 50 else 1000)
  many <- do.call(rbind, lapply(names(releases), function(name) {
    say("%s", name)
    model <- if (startsWith(name, "rates")) model_poisson(~ ward) else model_bernoulli(~ ward)
    data.frame(release = name, timed_groups(releases[[name]], model, chains = 2, iter = if (quick) 200 else 1000)$row, check.names = FALSE)
  }))
  data <- do.call(rbind, lapply(if (quick) "lung" else names(grouped_data()), function(name) {
    say("%s", name)
    one_data_set(name)
  }))
  figures <- c(lapply(seq_len(nrow(many)), function(k) {
    figure("ESS of the mean in a minute", paste("1000 groups,", many$release[k]), 60 * many[["ESS of the mean"]][k] / many$seconds[k], 1000)
  }), list(figure("greatest R-hat", "real data, defaults", max(data$rhat), 1.01, at_most = TRUE)))
  bench_result(figures, list("1,000 groups, 2 chains x 1,000" = many, "Real data, defaults, epsilon 1" = data))
}

run_alone(bench_groups)
