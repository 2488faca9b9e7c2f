# Regressions of real size: least effective draws a second, over all parameters, of
# default calls (4 chains x 2,000, everything unknown, Laplace noise), warmup and
# set-up counted, row by row.
#
#   Rscript bench/dimension.R [rows] [quick]      measures these rows (default: all)
#   Rscript bench/dimension.R table               prints what is in bench/dimension.csv
#
# A row is run in a process of its own; the results go to bench/dimension.csv, where they
# replace older ones of the same row. With BEFORE set to a library that holds an older build,
# each row runs with that one too, right after; and those of method "collapse" and default priors with Stan on the
# program of stan_program() where rstan is there. A row that takes more than 15 minutes is given up.

if (!exists("bench_result")) source("bench/helpers.R")

most_seconds <- 900

# section 5 of Ju et al. (2022), see bench/regression.R
ju_release <- function(epsilon) {
  set.seed(2022)
  x <- cbind(stats::rnorm(100, 0.9), stats::rnorm(100, -1.17))
  data <- data.frame(y = drop(cbind(1, x) %*% c(-1.79, -2.89, -0.66)) + stats::rnorm(100, 0, sqrt(2)), x1 = x[, 1L], x2 = x[, 2L])
  statistic <- stat_crossprod(y ~ x1 + x2, list(y = c(-10, 10), x1 = c(-10, 10), x2 = c(-10, 10)))
  simulate_release(data, statistic, mech_laplace(scale = 13 / epsilon))
}

ju_model <- function() {
  model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)), covariates = fixed(list(mean = c(0.9, -1.17), cov = diag(2))))
}

# sigma may come near 0
half_t_model <- function() model_lm(prior = prior_normal(0, 3), sigma = prior_half_t(3, 2))

row <- function(problem, target, method, release, model = model_lm) {
  list(problem = problem, target = target, method = method, release = release, model = model)
}

rows <- list(
  collapse_1 = row("\"collapse\", p = 1, n = 1,000, epsilon 1", NA, "collapse", function() normal_release(1000, 1, 1)),
  collapse_2 = row("\"collapse\", p = 2, n = 1,000, epsilon 1", NA, "collapse", function() normal_release(1000, 2, 1)),
  collapse_5 = row("\"collapse\", p = 5, n = 1,000, epsilon 1", 5000, "collapse", function() normal_release(1000, 5, 1)),
  collapse_10 = row("\"collapse\", p = 10, n = 1,000, epsilon 1", 2000, "collapse", function() normal_release(1000, 10, 1)),
  collapse_20 = row("\"collapse\", p = 20, n = 1,000, epsilon 1", 300, "collapse", function() normal_release(1000, 20, 1)),
  collapse_50 = row("\"collapse\", p = 50, n = 1,000, epsilon 1", 2, "collapse", function() normal_release(1000, 50, 1)),
  collapse_5_low = row("\"collapse\", p = 5, n = 1,000, epsilon 0.1", NA, "collapse", function() normal_release(1000, 5, 0.1)),
  collapse_5_high = row("\"collapse\", p = 5, n = 1,000, epsilon 10", NA, "collapse", function() normal_release(1000, 5, 10)),
  collapse_20_low = row("\"collapse\", p = 20, n = 1,000, epsilon 0.1", NA, "collapse", function() normal_release(1000, 20, 0.1)),
  collapse_20_high = row("\"collapse\", p = 20, n = 1,000, epsilon 10", NA, "collapse", function() normal_release(1000, 20, 10)),
  half_t_3 = row("\"collapse\", half-t sigma, p = 3, n = 1,000, epsilon 1", NA, "collapse", function() normal_release(1000, 3, 1), half_t_model),
  half_t_8 = row("\"collapse\", half-t sigma, p = 8, n = 1,000, epsilon 1", NA, "collapse", function() normal_release(1000, 8, 1), half_t_model),
  half_t_8_high = row("\"collapse\", half-t sigma, p = 8, n = 1,000, epsilon 10", NA, "collapse", function() normal_release(1000, 8, 10), half_t_model),
  augment_5 = row("\"augment\", bounds at 4 sd, n = 1,000, p = 5", 2000, "augment", function() normal_release(1000, 5, 1)),
  augment_10 = row("\"augment\", bounds at 4 sd, n = 1,000, p = 10", 600, "augment", function() normal_release(1000, 10, 1)),
  augment_20 = row("\"augment\", bounds at 4 sd, n = 1,000, p = 20", 60, "augment", function() normal_release(1000, 20, 1)),
  augment_5_large = row("\"augment\", n = 10,000, p = 5", 200, "augment", function() normal_release(1e4, 5, 1)),
  augment_10_large = row("\"augment\", n = 10,000, p = 10", 60, "augment", function() normal_release(1e4, 10, 1)),
  clamped_low = row("\"augment\", n = 10,000, p = 5, bounds at 2.5 sd, epsilon 0.1", 40, "augment", function() normal_release(1e4, 5, 0.1, 2.5)),
  clamped = row("\"augment\", n = 10,000, p = 5, bounds at 2.5 sd, epsilon 1", 40, "augment", function() normal_release(1e4, 5, 1, 2.5)),
  clamped_high = row("\"augment\", n = 10,000, p = 5, bounds at 2.5 sd, epsilon 10", 40, "augment", function() normal_release(1e4, 5, 10, 2.5)),
  million = row("\"augment\", n = 1,000,000, p = 2, bounds at 3 sd", 10, "augment", function() normal_release(1e6, 2, 1, 3)),
  ju_100 = row("Ju et al., epsilon 100", 10000, "augment", function() ju_release(100), ju_model),
  ju_1000 = row("Ju et al., epsilon 1,000", 10000, "augment", function() ju_release(1000), ju_model),
  clt_20 = row("\"clt\", d = 20, n = 100,000", 100, "clt", function() normal_release(1e5, 20, 1)),
  clt_30 = row("\"clt\", d = 30, n = 100,000", 20, "clt", function() normal_release(1e5, 30, 1)),
  logistic_5 = row("logistic, p = 5, n = 5,000, \"augment\"", 50, "augment", function() logistic_release(5000, 5), model_logistic),
  logistic_8 = row("logistic, p = 8, n = 5,000, \"augment\"", 10, "augment", function() logistic_release(5000, 8), model_logistic),
  logistic_clt = row("logistic, p = 10, n = 100,000, \"clt\"", 50, "clt", function() logistic_release(1e5, 10), model_logistic)
)

# one call, in this process; prints a line of numbers
measure <- function(name, build, quick) {
  one <- rows[[name]]
  release <- one$release()
  run <- if (build == "Stan") run_stan(release, one$model()) else function(iter) {
    posterior::as_draws_array(suppressWarnings(suppressMessages(sample_posterior(release, one$model(), method = one$method, chains = 4, iter = iter, seed = 1))))
  }
  time <- seconds(draws <- run(if (quick) 200 else 2000))
  variables <- posterior::variables(draws)
  rhat <- max(vapply(variables, function(v) posterior::rhat(posterior::extract_variable_matrix(draws, v)), 0))
  cat("measured", time, min_ess(draws), rhat, "\n")
}

# Compiles the program, which does not count. Starts and the rest are Stan's defaults where ours are.
run_stan <- function(release, model) {
  if (!file.exists(rstan::rstan_options("boost_lib"))) rstan::rstan_options(boost_lib = "/usr/include") # Debian's are there
  s <- stan_program(release, model)
  utils::capture.output(compiled <- rstan::stan_model(model_code = s$program, model_name = "totals"))
  function(iter) {
    fit <- suppressWarnings(rstan::sampling(compiled, data = s$data, init = function() s$init, chains = 4, iter = iter, seed = 1, refresh = 0, cores = 1))
    posterior::subset_draws(posterior::as_draws_array(fit), variable = unname(s$names))
  }
}

# the same in a process of its own, with another library in front if one is given
measure_apart <- function(name, build, library, quick) {
  environment <- if (nzchar(library)) paste0("R_LIBS=", paste(c(library, .libPaths()), collapse = ":")) else character()
  lines <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("bench/dimension.R", "measure", name, build, if (quick) "quick"),
                                    stdout = TRUE, stderr = FALSE, env = environment, timeout = most_seconds))
  line <- grep("^measured ", lines, value = TRUE)
  if (length(line) == 0L) return(c(NA, NA, NA))
  as.numeric(strsplit(trimws(line), " +")[[1L]][-1L])
}

stored_file <- "bench/dimension.csv"

stored <- function() if (file.exists(stored_file)) utils::read.csv(stored_file) else NULL

bench_row <- function(name, quick) {
  before <- Sys.getenv("BEFORE")
  with_stan <- rows[[name]]$method == "collapse" && identical(rows[[name]]$model, model_lm) && requireNamespace("rstan", quietly = TRUE)
  builds <- c(now = "", if (nzchar(before)) c(before = before), if (with_stan) c(Stan = ""))
  do.call(rbind, lapply(names(builds), function(build) {
    say("%s, %s", name, build)
    m <- measure_apart(name, build, builds[[build]], quick)
    data.frame(row = name, build = build, seconds = m[1L], ess = m[2L], rhat = m[3L], date = format(Sys.Date()))
  }))
}

dimension_table <- function() {
  all <- stored()
  all <- all[order(match(all$row, names(rows)), match(all$build, c("now", "before", "Stan"))), ]
  now <- all[all$build == "now", ]
  all$problem <- vapply(rows[all$row], `[[`, "", "problem")
  all$`ESS per second` <- all$ess / all$seconds
  figures <- lapply(seq_len(nrow(now)), function(k) {
    one <- rows[[now$row[k]]]
    figure("least ESS per second", one$problem, now$ess[k] / now$seconds[k], one$target)
  })
  bench_result(figures,
    list("Builds side by side" = all[c("problem", "build", "seconds", "ess", "ESS per second", "rhat", "date")]),
    c("Default calls, 4 chains x 2,000, one after the other on one core; warmup and set-up count. ESS is the bulk one, the least of all parameters; R-hat the largest.",
      "\"before\": version 0.1.0 at commit 76c013e. \"Stan\": rstan on the program of stan_program(), its compilation not counted. No figure: not within 15 minutes, or refused."))
}

bench_dimension <- function(quick = FALSE, names = base::names(rows)) {
  for (name in names) {
    measured <- bench_row(name, quick)
    old <- stored()
    keep <- !paste(old$row, old$build) %in% paste(measured$row, measured$build)
    if (!quick) utils::write.csv(rbind(old[keep, ], measured), stored_file, row.names = FALSE)
  }
  if (quick) bench_result(list(figure("rows that ran", "", length(names)))) else dimension_table()
}

main <- function(arguments) {
  quick <- "quick" %in% arguments
  names <- setdiff(arguments, "quick")
  if (identical(names[1L], "measure")) return(measure(names[2L], names[3L], quick))
  if (identical(names, "table")) return(cat(result_lines(dimension_table()), sep = "\n"))
  strange <- setdiff(names, base::names(rows))
  if (length(strange)) stop("no such row: ", paste(strange, collapse = ", "), call. = FALSE)
  cat(result_lines(bench_dimension(quick, if (length(names)) names else base::names(rows))), sep = "\n")
}

if (sys.nframe() == 0L) main(commandArgs(TRUE))
