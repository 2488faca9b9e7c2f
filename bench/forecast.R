# Is a call as long as it was expected to be before it ran? Default calls on the designs of bench/real_data_sets.R, a release each, whose processor seconds
# are compared with what `$expected` says. Designs of even number are held out; bench/cost.R fits the constants to the others, and to synthetic ones.
#
# Usage: Rscript bench/forecast.R [--half even | odd] [--limit seconds]     measures into bench/forecast.csv, and reports
#        Rscript bench/forecast.R report                                    reports alone
#
# A call that takes longer than the limit (120 s elapsed) is stopped and left out.

source("bench/helpers.R")
source("bench/real_data_sets.R")

path <- "bench/forecast.csv"
package <- asNamespace("noiseaware")
processor_seconds <- function() sum(proc.time()[c("user.self", "sys.self")])

# what each run of a sampler took, in the order in which they ended
runs <- list()
begun <- numeric()
suppressMessages(trace("sample_method", quote(begun <<- c(begun, processor_seconds())), print = FALSE, where = package, exit = quote({
  runs[[length(runs) + 1L]] <<- list(seconds = processor_seconds() - utils::tail(begun, 1L), fit = returnValue())
  begun <<- utils::head(begun, -1L)
})))

call_row <- function(set, kind, formula, epsilon) {
  data <- read_set(set, formula)
  design <- design_of(set, kind, formula, data)
  set.seed(1)
  release <- simulate_release(data, design$statistic, mech_laplace(epsilon = epsilon), neighbours = design$neighbours)
  runs <<- list()
  took <- seconds(fit <- suppressWarnings(suppressMessages(sample_posterior(release, design$model, seed = 1))))
  own <- Filter(function(run) run$fit$method == fit$method && run$fit$run$iter >= 2000, runs) # not those that "auto" tries, nor what is compared
  mixing <- package$mixing_diagnostics(own[[1L]]$fit)
  features <- package$cost_features(fit$method, fit$release, fit$bound)
  data.frame(data = set$name, kind = kind, formula = paste(deparse(formula, 500L), collapse = ""), epsilon = epsilon, as.data.frame(features),
             parameters = length(fit$bound$parameters), clamped = package$takes_clamping(package$engine_of(fit), fit$release, fit$bound), seconds = own[[1L]]$seconds,
             iterations = own[[1L]]$fit$run$iter * 4, yardstick = package$yardstick(), ess = min(mixing$ess), rhat = max(mixing$rhat), longer = fit$run$iter / 2000,
             call = took, expected = (fit$expected %||% NA) * package$slower_machine())
}

`%||%` <- function(a, b) if (is.null(a)) b else a

# in a process of its own, which is stopped at the limit
within_limit <- function(code, limit) {
  job <- parallel::mcparallel(tryCatch(code, error = function(e) conditionMessage(e)), silent = TRUE)
  result <- parallel::mccollect(job, wait = FALSE, timeout = limit)[[1L]]
  if (!is.null(result)) return(result)
  tools::pskill(job$pid, tools::SIGKILL)
  invisible(parallel::mccollect(job))
  "longer than the limit"
}

measure_calls <- function(half, limit) {
  suppressWarnings(suppressMessages(sample_posterior(normal_release(300, 2, 1), model_lm(), seed = 1))) # what a session does once
  of_set <- function(set) lapply(seq_along(set$designs), function(k) list(set, names(set$designs)[k], set$designs[[k]], set$epsilon[k]))
  designs <- do.call(c, lapply(real_data_sets, of_set))
  for (k in seq_along(designs)) if (is.null(half) || (k %% 2 == 0) == (half == "even")) {
    row <- within_limit(do.call(call_row, designs[[k]]), limit)
    name <- paste(designs[[k]][[1L]]$name, designs[[k]][[2L]])
    if (is.character(row)) {
      say("%s: %s", name, row)
      next
    }
    row <- cbind(held_out = k %% 2 == 0, row)
    before <- if (file.exists(path)) utils::read.csv(path)
    key <- function(d) paste(d$data, d$kind, d$formula, d$epsilon)
    utils::write.csv(rbind(before[!key(before) %in% key(row), ], row), path, row.names = FALSE)
    say("%s: %s, expected %.2f s, took %.2f s", name, row$engine, row$expected, row$call)
  }
}

report <- function(all) {
  off <- exp(abs(log(all$expected / all$call)))
  share <- function(rows, case) figure("expected within a factor of 2 (share of calls)", case, mean(off[rows] <= 2), 0.9)
  rows <- c(list(share(all$held_out, sprintf("held out: %d calls", sum(all$held_out)))),
            list(share(!all$held_out, sprintf("in the fit: %d calls", sum(!all$held_out)))),
            lapply(unique(all$engine), function(name) figure("expected off by a factor of (median)", name, stats::median(off[all$engine == name]))))
  bench_result(rows, list("calls" = cbind(all[c("data", "kind", "epsilon", "engine", "n", "held_out", "expected", "call", "longer")])),
               "call: processor seconds of a default call, in a session that had made one before. longer: how many times as long as usual the chains were made.")
}

option <- function(name, default = NULL) {
  at <- match(paste0("--", name), commandArgs(TRUE))
  if (is.na(at)) default else commandArgs(TRUE)[at + 1L]
}

if (!"report" %in% commandArgs(TRUE)) measure_calls(option("half"), as.double(option("limit", 120)))
cat(result_lines(report(utils::read.csv(path))), sep = "\n")
