# What the benchmark scripts share: timing, effective sample sizes, the shape of
# a result and how it is printed.
#
# A script bench/<name>.R defines bench_<name>(quick), which returns a data
# frame: one row a figure, with the columns figure, case, measured, target and
# met (target and met are empty where there is no target). Attributes hold the
# rest: "details", a named list of further data frames, and "notes", lines of
# text.

library(noiseaware)

is_quick <- function() "quick" %in% commandArgs(TRUE)

# Runs a script's benchmark when the script was called by itself.
run_alone <- function(benchmark) {
  if (sys.nframe() <= 1L) cat(result_lines(benchmark(is_quick())), sep = "\n")
}

say <- function(...) message(format(Sys.time(), "%H:%M:%S "), sprintf(...))

# Processor seconds of this process: what elapsed on an idle machine, and not
# disturbed by other work on a busy one (every program here runs on one core; it
# is what Stan reports too). Elapsed seconds are summed up beside it.
clock <- new.env()
clock$elapsed <- clock$processor <- 0
seconds <- function(code) {
  gc(FALSE)
  time <- system.time(code, gcFirst = FALSE)
  used <- sum(time[c("user.self", "sys.self")])
  clock$elapsed <- clock$elapsed + time[["elapsed"]]
  clock$processor <- clock$processor + used
  used
}

# n records of y = 0.5 + x1 + N(0, 1) on independent standard normal covariates, bounds at
# `half` standard deviations (y: 1.25 times as wide, as it is in bench/collapse.R)
normal_release <- function(n, p, epsilon, half = 4) {
  set.seed(1)
  variables <- c("y", paste0("x", seq_len(p)))
  x <- matrix(stats::rnorm(n * p), n)
  data <- stats::setNames(data.frame(0.5 + x[, 1L] + stats::rnorm(n), x), variables)
  bounds <- stats::setNames(rep(list(c(-1.25, 1.25) * half, c(-1, 1) * half), c(1, p)), variables)
  simulate_release(data, stat_crossprod(stats::reformulate(variables[-1L], "y"), bounds), mech_laplace(epsilon = epsilon))
}

# a logistic regression of y on the first of p independent covariates
logistic_release <- function(n, p, epsilon = 1) {
  set.seed(2013)
  x <- matrix(stats::rnorm(n * p), n, dimnames = list(NULL, paste0("x", seq_len(p))))
  data <- data.frame(y = stats::rbinom(n, 1L, stats::plogis(0.3 + x[, 1L])), x)
  bounds <- c(list(y = c(0, 1)), stats::setNames(rep(list(c(-4, 4)), p), colnames(x)))
  simulate_release(data, stat_crossprod(stats::reformulate(colnames(x), "y"), bounds), mech_laplace(epsilon = epsilon))
}

# Seconds for `more` iterations of a fit's chain, set-up not counted: median of
# some repetitions of a long extension less a short one.
seconds_extended <- function(fit, more, times = 5L) {
  stats::median(replicate(times, seconds(extend(fit, more + 1)) - seconds(extend(fit, 1))))
}

# smallest bulk effective sample size over some variables of a draws_array
min_ess <- function(draws, variables = posterior::variables(draws)) {
  min(vapply(variables, function(v) posterior::ess_bulk(posterior::extract_variable_matrix(draws, v)), 0))
}

# draws_array from a list of matrices, one a chain
as_chains <- function(matrices) {
  array <- array(unlist(matrices), c(dim(matrices[[1L]]), length(matrices)),
                 list(NULL, colnames(matrices[[1L]]), NULL))
  posterior::as_draws_array(aperm(array, c(1L, 3L, 2L)))
}

# ---- results ----------------------------------------------------------------

# `target` is a number to reach, or not to exceed where `at_most`
figure <- function(figure, case, measured, target = NA_real_, at_most = FALSE) {
  ok <- if (at_most) measured <= target else measured >= target
  data.frame(figure = figure, case = case, measured = measured,
             target = ifelse(is.na(target), "", paste(if (at_most) "at most" else "at least", format_figure(target))),
             met = ifelse(is.na(target), "", ifelse(is.na(ok), "?", ifelse(ok, "yes", "NO"))))
}

bench_result <- function(figures, details = list(), notes = character()) {
  structure(do.call(rbind, figures), details = details, notes = notes)
}

format_figure <- function(x) {
  if (!is.numeric(x)) return(as.character(x))
  shown <- formatC(signif(x, 3), digits = 3, format = "fg", big.mark = ",")
  small <- !is.na(x) & x != 0 & abs(x) < 1e-4
  shown[small] <- formatC(x[small], digits = 2, format = "e")
  ifelse(is.na(x), "", sub("\\.$", "", trimws(shown)))
}

markdown_table <- function(data) {
  cells <- lapply(data, format_figure)
  align <- ifelse(vapply(data, is.numeric, TRUE), "---:", "---")
  row <- function(x) paste0("| ", paste(x, collapse = " | "), " |")
  c(row(names(data)), row(align), do.call(mapply, c(list(function(...) row(c(...))), unname(cells))))
}

result_lines <- function(result) {
  details <- attr(result, "details")
  notes <- attr(result, "notes")
  c(markdown_table(result),
    unlist(Map(function(title, data) c("", paste0("**", title, "**"), "", markdown_table(data)), names(details), details)),
    "", paste("-", c(notes, sprintf("Timed: %.0f processor seconds in %.0f elapsed.", clock$processor, clock$elapsed))))
}

# the family object of a name that model_glm() takes
family_object <- function(name) getFromNamespace("stats_family", "noiseaware")(model_glm(family = name))
