# What each engine costs, measured over its dimension, the number of records, the noise, bounds
# that bind and levels of factors; the constants of the cost model in R/engine_cost.R are fitted to it
# and written to R/engine_cost_constants.R.
#
#   Rscript bench/cost.R [engines] [quick]   measures these engines (default: all) into
#                                            bench/cost.csv, then fits and writes the constants
#   Rscript bench/cost.R fit                 fits and writes alone
#
# Each case samples two chains by default. The longest takes about half a minute, all of them
# a quarter of an hour. Calls on real data count as well, but for those held out (bench/forecast.R).
# Seconds are converted to the fastest machine that was measured, by what yardstick() took there.

if (!exists("bench_result")) source("bench/helpers.R")

# y on p numbers and on factors with so many levels, independent and uniform
factor_release <- function(n, p, levels, epsilon) {
  set.seed(1)
  x <- stats::setNames(as.data.frame(matrix(stats::rnorm(n * p), n)), paste0("x", seq_len(p)))
  g <- stats::setNames(as.data.frame(lapply(levels, function(k) factor(sample(letters[seq_len(k)], n, TRUE), letters[seq_len(k)]))),
                       paste0("g", seq_along(levels)))
  data <- cbind(y = 0.5 + x[[1L]] + (g[[1L]] == "a") + stats::rnorm(n), x, g)
  bounds <- c(list(y = c(-5, 5)), stats::setNames(rep(list(c(-4, 4)), p), names(x)), lapply(g, levels))
  simulate_release(data, stat_crossprod(stats::reformulate(names(data)[-1L], "y"), bounds), mech_laplace(epsilon = epsilon))
}

# totals of one variable, bounds at 4 standard deviations or what 1 record in 10,000 exceeds
one_release <- function(n, epsilon, draw = stats::rnorm, bounds = c(-4, 4), formula = ~ x + I(x^2)) {
  set.seed(1)
  simulate_release(data.frame(x = draw(n)), stat_sums(formula, list(x = bounds), rescale = FALSE), mech_laplace(epsilon = epsilon))
}

# a wave and its smooth of k splines
smooth_release <- function(n, k, epsilon) {
  set.seed(1)
  x <- stats::runif(n)
  data <- data.frame(y = sin(6 * x) + stats::rnorm(n, 0, 0.3), x = x)
  simulate_release(data, stat_crossprod(smooth_formula(k), list(y = c(-2.5, 2.5), x = c(0, 1))), mech_laplace(epsilon = epsilon))
}

smooth_formula <- function(k) stats::as.formula(sprintf("y ~ s(x, k = %d)", k))

smooths <- function(...) lapply(list(...), function(a) case("smooth", "augment", smooth_release, function() model_lm(smooth_formula(a[[2L]])), as.list(a)))

poisson_release <- function(n, epsilon) one_release(n, epsilon, function(n) stats::rpois(n, 3), c(0, 12), ~ x)

# a class and so many features of two levels
counts_release <- function(n, features, epsilon) {
  set.seed(1)
  data <- as.data.frame(lapply(stats::setNames(nm = c("y", paste0("x", seq_len(features)))), function(v) sample(c("a", "b"), n, TRUE)))
  simulate_release(data, stat_counts(stats::reformulate(paste0("y:", names(data)[-1L])), lapply(data, function(v) c("a", "b"))), mech_laplace(epsilon = epsilon))
}

# so many factors of so many levels, and all margins of two of them
table_release <- function(n, factors, levels, epsilon) {
  set.seed(1)
  names <- letters[seq_len(factors)]
  data <- as.data.frame(lapply(stats::setNames(nm = names), function(v) sample(LETTERS[seq_len(levels)], n, TRUE)))
  margins <- if (factors == 1) names else utils::combn(names, 2L, paste, collapse = ":")
  st <- stat_counts(stats::reformulate(margins), lapply(data, function(v) LETTERS[seq_len(levels)]))
  simulate_release(data, st, mech_laplace(epsilon = epsilon))
}

# a response of so many levels (2: binary), on `p` numbers and on factors with so many levels, independent and uniform
levels_release <- function(n, answers, p, levels, epsilon) {
  set.seed(1)
  x <- stats::setNames(as.data.frame(matrix(stats::rnorm(n * p), n)), if (p > 0) paste0("x", seq_len(p)))
  g <- stats::setNames(as.data.frame(lapply(levels, function(k) factor(sample(letters[seq_len(k)], n, TRUE), letters[seq_len(k)]))),
                       paste0("g", seq_along(levels)))
  named <- LETTERS[seq_len(answers)]
  eta <- (if (p > 0) x[[1L]] else 0) + (g[[1L]] == "a") + stats::rlogis(n)
  data <- data.frame(y = cut(eta, c(-Inf, stats::qlogis(seq_len(answers - 1) / answers) + 0.4, Inf), named), g)
  data[names(x)] <- x
  bounds <- c(list(y = named), stats::setNames(rep(list(c(-4, 4)), p), names(x)), lapply(g, levels))
  simulate_release(data, stat_crossprod(stats::reformulate(names(data)[-1L], "y"), bounds), mech_laplace(epsilon = epsilon))
}

# answers by randomised response to `factors` variables of so many levels
answers_release <- function(n, factors, levels, epsilon) {
  set.seed(1)
  names <- letters[seq_len(factors)]
  data <- as.data.frame(lapply(stats::setNames(nm = names), function(v) sample(LETTERS[seq_len(levels)], n, TRUE, rev(seq_len(levels)))))
  st <- stat_records(stats::reformulate(if (factors > 1) names[-1L] else "1", "a"), levels = lapply(data, function(v) LETTERS[seq_len(levels)]))
  simulate_release(data, st, mech_randomized_response(epsilon = epsilon * factors))
}

# without terms of three or more
all_pairs <- function(factors) function() model_table(stats::reformulate(utils::combn(letters[seq_len(factors)], 2L, paste, collapse = ":")), prior_normal())

# each with the next alone, so that released margins cross the cliques
chain_of <- function(factors) function() model_table(stats::reformulate(paste(letters[seq_len(factors - 1)], letters[seq_len(factors)[-1L]], sep = ":")))

case <- function(engine, method, release, model, arguments, control = list()) {
  list(engine = engine, method = method, release = release, model = model, arguments = arguments, control = control)
}

# a case for each row of numbers
grid <- function(engine, method, release, model, ..., control = list()) {
  rows <- rbind(...)
  lapply(seq_len(nrow(rows)), function(k) case(engine, method, release, model, as.list(unname(rows[k, ])), control))
}

# and for some factors
cross_tables <- function(engine, method, ...) {
  lapply(list(...), function(arguments) case(engine, method, factor_release, function() model_lm(), arguments))
}

of_levels <- function(engine, method, family, ...) {
  lapply(list(...), function(arguments) case(engine, method, levels_release, function() model_glm(family = family), arguments))
}

cases <- function() {
  lm <- function() model_lm()
  c(
    # n, p, epsilon, half width of the bounds in standard deviations
    grid("shape", "augment", normal_release, lm, c(300, 2, 1, 4), c(3000, 2, 1, 4), c(30000, 2, 1, 4), c(3000, 2, 0.1, 4), c(3000, 2, 10, 4), c(3000, 2, 10, 2.5),
         c(300, 5, 1, 4), c(3000, 5, 1, 4), c(10000, 5, 1, 2.5), c(3000, 5, 0.1, 4), c(3000, 5, 10, 4), c(3000, 5, 10, 2.5), c(3000, 5, 100, 4),
         c(1000, 10, 1, 4), c(5000, 10, 10, 4), c(1000, 10, 0.1, 4), c(1000, 10, 10, 2.5), c(500, 20, 1, 4)),
    # the levels of one factor
    grid("shape", "augment", factor_release, lm, c(1000, 2, 3, 1), c(1000, 2, 8, 10), c(10000, 2, 3, 10), c(3000, 2, 8, 1), c(1000, 2, 16, 1)),
    # n, epsilon
    grid("sweeps", "augment", one_release, function() model_normal(), c(100, 1), c(1000, 0.1), c(1000, 1), c(1000, 10), c(1000, 100), c(10000, 1), c(10000, 100), c(100000, 1)),
    grid("sweeps", "augment", poisson_release, function() model_poisson(), c(100, 1), c(1000, 1), c(1000, 10), c(10000, 1)),
    grid("sweeps", "augment", normal_release, lm, c(100, 1, 1, 4), c(1000, 1, 1, 4), c(1000, 1, 10, 4), c(1000, 1, 100, 4), c(10000, 1, 1, 4)),
    # n, p, epsilon
    grid("responses", "augment", logistic_release, function() model_logistic(), c(300, 2, 1), c(3000, 2, 1), c(20000, 2, 1), c(3000, 2, 10), c(3000, 2, 0.1),
         c(1000, 5, 1), c(3000, 5, 10), c(1000, 8, 1), c(5000, 8, 10)),
    # n, levels of the response, numbers, levels of factors, epsilon
    of_levels("responses", "augment", binomial(), list(300, 2, 1, 2, 1), list(300, 2, 4, c(2, 2), 5), list(1000, 2, 2, 2, 1), list(1000, 2, 4, c(2, 3), 1), list(1000, 2, 3, c(2, 2), 5),
              list(3000, 2, 2, c(2, 3), 10), list(3000, 2, 4, c(2, 3), 1)),
    of_levels("levels", "augment", "cumulative", list(300, 3, 2, 2, 1), list(1000, 4, 2, 2, 10), list(1000, 3, 0, c(3, 4, 2), 1), list(3000, 3, 0, c(3, 4, 2), 10), list(5000, 3, 2, 2, 1)),
    of_levels("levels", "augment", "categorical", list(300, 3, 2, 2, 1), list(1000, 3, 2, 2, 10), list(1000, 3, 0, c(3, 4, 2), 1), list(3000, 4, 0, c(3, 2), 10)),
    # n, k, epsilon
    smooths(c(133, 16, 8), c(200, 8, 1), c(1000, 10, 1), c(1000, 10, 10), c(1000, 20, 4), c(5000, 10, 1)),
    of_levels("response table", "collapse", binomial(), list(300, 2, 0, 3, 1), list(3000, 2, 0, c(3, 2), 10), list(3000, 2, 0, c(3, 4, 2), 1), list(1000, 2, 0, c(6, 8, 3), 1), list(1e5, 2, 0, c(6, 8, 3), 10)),
    of_levels("response table", "collapse", "cumulative", list(1000, 4, 0, 3, 0.1), list(3000, 3, 0, c(3, 4, 2), 1), list(3000, 3, 0, c(3, 4, 2), 10), list(1e5, 4, 0, c(4, 5, 3), 1)),
    of_levels("response table", "collapse", "categorical", list(1000, 4, 0, 3, 1), list(3000, 3, 0, c(3, 4, 2), 10), list(3000, 3, 0, c(3, 4, 2), 0.1), list(1e5, 4, 0, c(4, 5, 3), 10)),
    # n, factors, levels, epsilon of each
    grid("answers", "collapse", answers_release, function() model_glm(family = "categorical"), c(400, 1, 4, 2), c(400, 2, 3, 4), c(3000, 3, 3, 3), c(1e5, 3, 5, 2), c(1000, 5, 3, 2)),
    grid("answers", "collapse", answers_release, function() model_glm(family = "cumulative"), c(400, 1, 4, 1), c(400, 2, 4, 2), c(3000, 4, 3, 4)),
    grid("answers", "collapse", answers_release, function() model_logistic(), c(400, 1, 2, 2), c(400, 4, 2, 1), c(1e5, 8, 2, 2)),
    grid("normal", "collapse", normal_release, lm, c(1000, 1, 1, 4), c(1000, 1, 0.1, 4), c(1000, 1, 10, 4), c(1e5, 1, 1, 4), c(1000, 2, 1, 4), c(1000, 5, 0.1, 4), c(1000, 5, 1, 4),
         c(1000, 5, 10, 4), c(1e5, 5, 1, 4), c(1000, 5, 100, 4), c(1000, 10, 1, 4), c(1e5, 10, 10, 4), c(1000, 10, 0.1, 4), c(1000, 20, 1, 4), c(1e5, 20, 1, 4)),
    # n, p, levels, epsilon
    cross_tables("cross-table", "collapse", list(1000, 2, 3, 1), list(1000, 2, 8, 10), list(1e4, 2, 3, 10), list(1e4, 2, 3, 0.1), list(1e4, 5, 4, 1), list(1000, 2, c(2, 3), 1),
                 list(1e4, 2, c(2, 2, 4, 2), 1), list(1e4, 2, c(2, 2, 4, 2), 10), list(1e5, 2, c(2, 2, 4, 2), 1), list(1e4, 2, c(5, 6), 1), list(1e5, 3, c(5, 6), 10)),
    # n, features, epsilon
    grid("recursion", "collapse", counts_release, function() model_naive_bayes("y"), c(50, 1, 1), c(50, 1, 10), c(200, 2, 1), c(500, 2, 1), c(200, 8, 1)),
    grid("counts", "collapse", counts_release, function() model_naive_bayes("y"), c(5000, 1, 1), c(5000, 1, 0.1), c(5000, 1, 10), c(5000, 8, 1), c(5000, 8, 10), c(1e6, 8, 1), c(1e5, 30, 1)),
    # n, factors, levels, epsilon
    grid("table", "collapse", table_release, function() model_table(), c(1000, 1, 5, 1), c(1000, 2, 3, 1), c(1000, 3, 2, 0.1), c(1000, 3, 2, 1), c(1000, 3, 2, 10),
         c(1e5, 3, 4, 1), c(1e4, 4, 3, 1), c(1e4, 4, 3, 0.1), c(1e4, 4, 3, 10), c(1e5, 3, 8, 1), c(1e5, 9, 2, 1)),
    grid("log-linear table", "collapse", table_release, all_pairs(3), c(1000, 3, 2, 0.1), c(1000, 3, 2, 1), c(1000, 3, 2, 10), c(1e5, 3, 4, 1), c(1e5, 3, 8, 1)),
    grid("log-linear table", "collapse", table_release, all_pairs(4), c(1e4, 4, 3, 1), c(1e4, 4, 3, 0.1), c(1e4, 4, 3, 10)),
    grid("log-linear table", "collapse", table_release, all_pairs(9), c(1e5, 9, 2, 1)),
    grid("crossing", "collapse", table_release, chain_of(3), c(1000, 3, 2, 0.1), c(1000, 3, 2, 1), c(1000, 3, 2, 10), c(1e4, 3, 4, 1), c(1e4, 3, 8, 1)),
    grid("crossing", "collapse", table_release, chain_of(4), c(1e4, 4, 3, 1), c(1e4, 4, 3, 0.1), c(1e4, 4, 3, 10)),
    grid("crossing", "collapse", table_release, chain_of(6), c(1e4, 6, 4, 1)),
    grid("crossing", "collapse", table_release, chain_of(8), c(5e4, 8, 8, 10)),
    grid("total", "collapse", poisson_release, function() model_poisson(), c(1000, 1), c(1000, 0.1), c(1000, 10), c(1e5, 1)),
    # n, p, epsilon, half width
    grid("clamped totals", "clt", normal_release, lm, c(1000, 1, 1, 4), c(1e5, 1, 1, 4), c(1000, 1, 10, 2.5), c(1000, 5, 1, 4), c(1000, 5, 0.1, 4), c(1000, 5, 10, 4), c(1e5, 5, 1, 2.5),
         c(1e5, 5, 10, 2.5), c(1000, 10, 1, 4), c(1e5, 10, 1, 2.5), c(1e5, 10, 0.1, 4), c(1e5, 20, 1, 4)),
    grid("marginal", "clt", one_release, function() model_normal(), c(100, 1), c(1000, 0.1), c(1000, 1), c(1e5, 1), c(1e5, 10)),
    grid("marginal", "clt", counts_release, function() model_naive_bayes("y"), c(1000, 1, 1), c(1000, 4, 1), c(1e5, 4, 1), c(1e5, 4, 10), c(1000, 10, 1)),
    # n, p, levels, epsilon
    cross_tables("clamped cross-table", "clt", list(1e4, 2, 3, 1), list(1e4, 2, 3, 10), list(1e5, 2, 3, 0.1), list(1e4, 5, 4, 1), list(1e5, 2, c(2, 2, 4, 2), 1),
                 list(1e5, 2, c(2, 2, 4, 2), 10), list(1e5, 2, c(5, 6), 1), list(1e5, 3, c(4, 5, 6), 10)),
    grid("noncentred", "clt", factor_release, lm, control = list(sampler = "noncentred"), c(1000, 2, 2, 1), c(1e4, 2, 2, 1), c(1e4, 2, 2, 10), c(1e4, 2, 2, 0.1), c(1e4, 3, 2, 1), c(1e4, 2, 4, 1)),
    grid("nuts", "clt", factor_release, lm, control = list(sampler = "nuts"), c(1e4, 7, 2, 1), c(1000, 7, 2, 1), c(1e4, 7, 4, 10), c(1e4, 7, 4, 0.1), c(1e4, 11, 4, 1)),
    grid("nuts of responses", "clt", logistic_release, function() model_logistic(), c(1000, 2, 1), c(1e5, 2, 1), c(1e5, 2, 10), c(1000, 2, 0.1), c(1e4, 5, 1), c(1e5, 5, 10), c(1e4, 10, 1)))
}

# The sampling alone: what else a call does is counted by bench/forecast.R. Effective draws: the fewer of bulk and tail.
measure <- function(one, quick) {
  package <- asNamespace("noiseaware")
  release <- do.call(one$release, one$arguments)
  model <- package$settle_factors(package$complete_model(one$model(), release), release$statistic, release$n, one$method, package$has_record_noise(release))
  bound <- package$bind_model(model, release$statistic)
  features <- package$cost_features(one$method, release, bound, one$control)
  if (features$engine != one$engine) say("the engine is \"%s\" and not \"%s\"", features$engine, one$engine)
  iter <- if (quick) 200 else if (one$engine == "smooth") 8000 else 2000 # shorter chains of smooths have not met
  run <- list(chains = 2, iter = iter, warmup = iter / 2, thin = 1, seed = 1)
  call <- function() suppressWarnings(suppressMessages(package$sample_method(one$method, release, bound, run, control = one$control)))
  time <- seconds(fit <- call())
  if (time < 0.1) time <- seconds(for (k in 1:10) call()) / 10 # the clock has ticks of a hundredth
  mixing <- package$mixing_diagnostics(fit)
  out <- data.frame(as.data.frame(features), arguments = paste(vapply(unlist(one$arguments), format, ""), collapse = " "), seconds = time,
                    iterations = 2 * run$iter, yardstick = package$yardstick(), ess = min(mixing$ess), rhat = max(mixing$rhat))
  say("%s %s: %.2f s, ESS %.0f, R-hat %.3f", out$engine, out$arguments, out$seconds, out$ess, out$rhat)
  out
}

# ---- the fit -------------------------------------------------------------------------

# Least squares on the log scale; exponents, from 0, and effects are drawn to 0 where little tells of them.
# Chains that have not met do not say what draws cost.
fit_engine <- function(measured) {
  measured <- measured[measured$rhat < 1.2, ]
  by_record <- measured$engine[1L] %in% c("shape", "sweeps", "smooth", "responses", "levels", "crossing")
  log_iteration <- log(measured$seconds / measured$iterations)
  distance <- pmax(-noiseaware:::farthest_noise, pmin(noiseaware:::farthest_noise, log(measured$noise)))
  iteration <- function(k) exp(k[1L] + k[5L] * distance) * measured$size^k[2L] + if (by_record) measured$n * exp(k[3L]) * measured$size^k[4L] else 0
  loss <- function(k) sum((log_iteration - log(iteration(k)))^2) + 0.05 * sum(k[c(2L, 4L, 5L)]^2)
  starts <- expand.grid(fixed = mean(log_iteration) - c(0, 2), record = log(c(1e-8, 1e-7)))
  fit <- function(i) stats::optim(c(starts$fixed[i], 1, starts$record[i], 0.5, 0), loss, method = "L-BFGS-B", lower = c(-30, 0, -40, 0, -2), control = list(maxit = 1000))
  fits <- lapply(seq_len(nrow(starts)), fit)
  best <- fits[[which.min(vapply(fits, `[[`, 0, "value"))]]$par
  if (!by_record) best[3:4] <- c(-Inf, 0)
  # what remains of the seconds to 1,000 effective draws
  x <- cbind(1, log(measured$size), pmax(0, -distance), pmax(0, distance), log1p(measured$levels))
  y <- log(iteration(best)) - log(measured$seconds / measured$ess)
  effects <- solve(crossprod(x) + diag(c(0, 0.3, 0.3, 0.3, 0.3)), crossprod(x, y))
  data.frame(engine = measured$engine[1L], fixed = best[1L], fixed_size = best[2L], fixed_noise = best[5L], record = best[3L], record_size = best[4L],
             draws = effects[1L], draws_size = effects[2L], quiet = effects[3L], loud = effects[4L], levels = effects[5L])
}

constants_file <- "R/engine_cost_constants.R"

write_constants <- function(constants, yardstick) {
  column <- function(name) {
    values <- constants[[name]]
    values <- if (is.character(values)) paste0("\"", values, "\"") else as.character(signif(values, 3))
    lines <- split(values, (seq_along(values) - 1L) %/% 10L)
    sprintf("  %s = c(%s)", name, paste(vapply(lines, paste, "", collapse = ", "), collapse = paste0(",\n", strrep(" ", nchar(name) + 7L))))
  }
  writeLines(c("# Written by bench/cost.R, which measures them: the constants of the cost model in R/engine_cost.R.", "",
               "cost_constants <- data.frame(", paste(vapply(names(constants), column, ""), collapse = ",\n"), ")", "",
               "# seconds that yardstick() took on the machine whose seconds these are", sprintf("measured_yardstick <- %s", format(signif(yardstick, 3)))), constants_file)
}

stored_file <- "bench/cost.csv"

stored <- function() if (file.exists(stored_file)) utils::read.csv(stored_file)

# calls on real data
with_calls <- function(cases) {
  calls <- utils::read.csv("bench/forecast.csv")
  calls <- calls[!calls$held_out, ]
  calls$arguments <- paste(calls$data, calls$kind)
  rbind(cases, calls[names(cases)])
}

cost_table <- function(all, constants) {
  predicted <- vapply(seq_len(nrow(all)), function(i) noiseaware:::predict_cost(as.list(all[i, ]), constants)$thousand, 0)
  all$`seconds to 1,000` <- 1000 * all$seconds / all$ess
  all$predicted <- predicted
  off <- exp(abs(log(predicted / all$`seconds to 1,000`)))
  met <- all$rhat < 1.2
  figures <- lapply(unique(all$engine), function(name) figure("the prediction is off by a factor of (median)", name, stats::median(off[all$engine == name & met])))
  bench_result(figures, list("Every case: two chains of 2,000 iterations, of smooths 8,000" =
                               all[c("engine", "arguments", "noise", "seconds", "ess", "rhat", "seconds to 1,000", "predicted")]),
               c("The arguments are those of the functions in bench/cost.R, mostly n, dimension, epsilon and the half width of the bounds in standard deviations.",
                 "noise: that of a total over its sampling variation, as R/engine_cost.R takes it.",
                 "Chains with R-hat above 1.2 are left out of the fit: their seconds say nothing of what draws cost."))
}

bench_cost <- function(quick = FALSE, engines = character(), again = TRUE) {
  if (again) {
    chosen <- Filter(function(one) length(engines) == 0L || one$engine %in% engines, cases())
    if (quick) chosen <- chosen[!duplicated(vapply(chosen, `[[`, "", "engine"))]
    measured <- do.call(rbind, lapply(chosen, measure, quick = quick))
    if (quick) return(bench_result(list(figure("cases that ran", "", nrow(measured)))))
    old <- stored()
    utils::write.csv(rbind(old[!old$engine %in% measured$engine, ], measured), stored_file, row.names = FALSE)
  }
  all <- stored()
  all <- with_calls(all)
  all <- all[order(match(all$engine, unique(vapply(cases(), `[[`, "", "engine")))), ]
  all$seconds <- all$seconds * min(all$yardstick) / all$yardstick
  constants <- do.call(rbind, lapply(split(all, factor(all$engine, unique(all$engine))), fit_engine))
  constants[-1L] <- lapply(constants[-1L], signif, 3)
  write_constants(constants, min(all$yardstick))
  cost_table(all, constants)
}

main <- function(arguments) {
  names <- setdiff(arguments, "quick")
  cat(result_lines(bench_cost("quick" %in% arguments, setdiff(names, "fit"), !"fit" %in% names)), sep = "\n")
}

if (sys.nframe() == 0L) main(commandArgs(TRUE))
