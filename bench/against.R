# The cost of a record in two builds of the package, in turns, so that both meet the
# same machine: updates and passes of bench/record.R, updates of bench/variants.R.
#
#   Rscript bench/against.R BEFORE NOW [rounds]
#
# from the project's root; BEFORE and NOW are libraries. Prints the least of each case
# over the rounds, in nanoseconds of processor time, and now over before.

arguments <- commandArgs(TRUE) # a process for each build is started with "worker" in place of BEFORE
.libPaths(c(arguments[2L], .libPaths()))
work <- 1e7 # record updates of one timing

# Few draws are kept: what a draw costs, its share of R-hat say, is not a record's.
thinned_fit <- function(release, setting, passes, warmup, thin) {
  sample_posterior(release, setting$model, chains = 1, iter = warmup + thin, warmup = warmup, thin = thin, seed = 1, init = setting$start,
                   control = list(passes = passes))
}

# nanoseconds for one record and iteration
least_extended <- function(release, setting, passes, warmup, more) {
  thin <- ceiling(more / 10)
  fit <- suppressWarnings(thinned_fit(release, setting, passes, warmup, thin))
  least <- function(iterations, times) min(replicate(times, seconds(suppressWarnings(extend(fit, iterations)))))
  1e9 * (least(11 * thin, 5L) - least(thin, 5L)) / (10 * thin) / release$n
}

# a line for each case: name, tab, nanoseconds
record_costs <- function() {
  for (model in names(record_models)) {
    for (n in c(1e3, 1e4, 1e5, 1e6)) {
      release <- record_release(n)
      update <- least_extended(release, record_models[[model]], 0, 20, work / n)
      cat(sprintf("update, %s, n = %s\t%.3f\n", model, format_figure(n), update))
      if (n == 1e6) next # 200 sweeps with 40 passes each would take half a minute
      sweep <- least_extended(release, record_models[[model]], 40, 200, work / n / 8)
      cat(sprintf("pass, %s, n = %s\t%.3f\n", model, format_figure(n), (sweep - update) / 40))
    }
  }
}

costs_of <- function(library) {
  call <- function(...) system2(file.path(R.home("bin"), "Rscript"), c(...), stdout = TRUE, stderr = FALSE)
  lines <- c(call("bench/against.R", "worker", library), call("bench/variants.R", library))
  parts <- strsplit(grep("\t", lines, value = TRUE), "\t")
  stats::setNames(as.numeric(vapply(parts, `[[`, "", 2L)), vapply(parts, `[[`, "", 1L))
}

if (arguments[1L] == "worker") {
  source("bench/record.R")
  record_costs()
} else {
  source("bench/helpers.R")
  rounds <- if (length(arguments) > 2L) as.integer(arguments[3L]) else 5L
  costs <- lapply(seq_len(rounds), function(k) {
    say("round %d of %d", k, rounds)
    lapply(arguments[1:2], costs_of)
  })
  least <- lapply(1:2, function(build) do.call(pmin, lapply(costs, `[[`, build)))
  table <- data.frame(case = names(least[[1L]]), before = least[[1L]], now = least[[2L]], `now over before` = least[[2L]] / least[[1L]], check.names = FALSE)
  cat(markdown_table(table), sep = "\n")
}
