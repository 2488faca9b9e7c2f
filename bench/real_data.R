# Default calls on real data that nobody prepared: do intervals hold what the records themselves say?
#
# Usage: Rscript bench/real_data.R [--part k/m] [--quick] [--only data set[,data set]] [--limit seconds] [--kind kind[,kind]] [--epsilon value] [--outside none]
#
# The designs are those of bench/real_data_sets.R, each with `calibrate(data = )`: 10 releases, default calls. A design that takes longer than the
# limit (600 s of all its releases; --quick: 3 releases and 20 s) is stopped, and what was finished by then counts. Rows of
# the designs that were run replace theirs in bench/real_data.csv: parts may be run on different days. Needs the packages of the table
# (Debian: r-cran-cardata, r-cran-aer, r-cran-plm, r-cran-modeldata, r-cran-pscl, r-cran-mlbench, r-cran-th.data, r-cran-mlmrev,
# r-cran-robustbase, r-cran-reshape2, r-cran-survey); sets whose package is not there are named and left out.
#
# --outside none declares that all bounds are natural limits, as they are for most of these data; rows of their own, designs of numbers alone.

source("bench/helpers.R")
source("bench/real_data_sets.R")

argument <- function(name, default = NULL) {
  all <- commandArgs(TRUE)
  at <- match(paste0("--", name), all)
  if (is.na(at)) default else all[at + 1L]
}
quick <- "--quick" %in% commandArgs(TRUE)
releases <- if (quick) 3L else 10L
limit <- as.double(argument("limit", if (quick) 20 else 600))
path <- argument("file", "bench/real_data.csv")
outside <- argument("outside", "clamp")

# ---- a design ------------------------------------------------------------------------

# A row for each coefficient. In a process of its own, which is stopped at the limit; finished releases are in the file.
measure <- function(set, kind, formula, epsilon) {
  data <- read_set(set, formula)
  kept <- tempfile()
  on.exit(unlink(kept))
  run <- function(count) {
    design <- design_of(set, kind, formula, data, outside)
    suppressWarnings(calibrate(design$model, design$statistic, mech_laplace(epsilon = epsilon), replicates = count, seed = 1, file = kept,
                               neighbours = design$neighbours, data = data))
  }
  job <- parallel::mcparallel(tryCatch(run(releases), error = function(e) conditionMessage(e)), silent = TRUE)
  result <- parallel::mccollect(job, wait = FALSE, timeout = limit)[[1L]]
  late <- is.null(result)
  if (late) {
    tools::pskill(job$pid, tools::SIGKILL)
    invisible(parallel::mccollect(job))
    finished <- if (file.exists(kept)) sum(grepl("^\\{\"seed\"", readLines(kept, warn = FALSE))) else 0L
    result <- if (finished > 0L) run(finished) else "no release was finished within the limit"
  }
  rows(result, set, kind, formula, epsilon, nrow(data), late)
}

rows <- function(result, set, kind, formula, epsilon, n, late) {
  head <- data.frame(package = set$package, data = set$name, kind = kind, formula = paste(deparse(formula, 500L), collapse = ""), n = n, epsilon = epsilon, outside = outside)
  blank <- data.frame(coefficient = "", estimate = NA, own_sd = NA, releases = 0L, covered = NA, z = NA, sd = NA, rhat = NA, ess = NA, well = NA)
  of_run <- data.frame(engine = "", seconds = NA, told = "", fault = if (late) "limit" else "")
  if (is.character(result)) {
    of_run$fault <- substr(gsub("[\"\n]", " ", result), 1L, 100L)
    return(cbind(head, blank, of_run))
  }
  failed <- result$conditions[result$conditions$type == "error", ]
  if (nrow(failed)) of_run$fault <- substr(gsub("[\"\n]", " ", failed$message[1L]), 1L, 100L)
  told <- table(unique(result$conditions[result$conditions$type != "error", c("replicate", "class")])$class)
  of_run$told <- paste(sub("^noiseaware_", "", names(told)), told, sep = ":", collapse = " ")
  of_run$engine <- paste(unique(stats::na.omit(result$runs$method)), collapse = " ")
  of_run$seconds <- stats::median(result$runs$seconds)
  table <- summary(result)
  if (is.null(table)) return(cbind(head, blank, of_run))
  cbind(head, data.frame(coefficient = table$variable, estimate = signif(table$estimate, 6), own_sd = signif(table$own_sd, 4), releases = table$replicates,
                         covered = round(table$coverage * table$replicates), z = round(table$z, 2), sd = signif(table$sd, 4), rhat = round(table$rhat, 3),
                         ess = round(table$ess), well = well_mixed(result, kind)), of_run)
}

# releases whose fit has R-hat at most 1.01 and 400 effective draws for all that is asked for
well_mixed <- function(result, kind) {
  all <- result$results
  all <- all[!nuisance(data.frame(kind = kind, coefficient = all$variable)), ]
  sum(tapply(all$rhat <= 1.01 & all$ess >= 400, all$replicate, all))
}

# ---- all of them --------------------------------------------------------------------------

wanted_sets <- function() {
  only <- argument("only")
  sets <- if (is.null(only)) real_data_sets else Filter(function(s) s$name %in% strsplit(only, ",")[[1L]], real_data_sets)
  part <- as.integer(strsplit(argument("part", "1/1"), "/")[[1L]])
  sets <- sets[seq_along(sets) %% part[2L] == part[1L] %% part[2L]]
  kinds <- strsplit(argument("kind", ""), ",")[[1L]]
  if (length(kinds)) {
    sets <- lapply(sets, function(s) {
      wanted <- names(s$designs) %in% kinds
      s[c("designs", "epsilon")] <- list(s$designs[wanted], s$epsilon[wanted])
      s
    })
  }
  there <- vapply(sets, function(s) requireNamespace(s$package, quietly = TRUE), TRUE)
  if (any(!there)) say("left out, not installed: %s", paste(unique(vapply(sets[!there], `[[`, "", "package")), collapse = ", "))
  sets[there]
}

keep <- function(fresh) {
  before <- if (file.exists(path)) utils::read.csv(path, na.strings = "NA")
  key <- function(d) paste(d$package, d$data, d$kind, d$formula, d$epsilon, d$outside)
  all <- rbind(before[!key(before) %in% key(fresh), ], fresh)
  utils::write.csv(all[order(all$package, all$data, all$kind), ], path, row.names = FALSE)
}

# ---- what is reported ------------------------------------------------------------------------

nuisance <- function(d) !d$kind %in% c("one", "together", "table", "graph") & grepl("^((mean|cov|prob|shape|sd|effect|base)\\[|concentration$)", d$coefficient)
is_warned <- function(told) grepl("warning_", told) | grepl("message_prior", told)

report <- function(d) {
  d <- d[d$releases > 0L, ]
  d$share <- d$covered / d$releases
  asked <- d[!nuisance(d), ]
  by_kind <- do.call(rbind, lapply(split(asked, paste(asked$kind, asked$outside)), function(a) {
    data.frame(kind = a$kind[1L], outside = a$outside[1L], coefficients = nrow(a), covered = sum(a$covered) / sum(a$releases), `below 0.9` = mean(a$share < 0.9),
               `below 0.8` = mean(a$share < 0.8), `below 0.8, no word` = mean(a$share < 0.8 & !is_warned(a$told)), `mean abs z` = mean(abs(a$z)), check.names = FALSE)
  }))
  declared <- asked[asked$outside == "none" | asked$kind %in% c("table", "graph"), ] # tables have no bounds
  asked <- asked[asked$outside == "clamp", ] # figures are of default calls
  linear <- asked$kind %in% c("lm", "table", "graph", "one", "together", "unsized")
  calls <- d[d$outside == "clamp" & !duplicated(d[c("data", "kind", "formula", "epsilon", "outside")]), ]
  mixed <- stats::aggregate(cbind(well, releases) ~ data + kind + formula + epsilon, asked, max)
  is_silent <- function(a) a[a$share < 0.8 & !is_warned(a$told), ]
  silent <- is_silent(asked)
  silent_declared <- is_silent(declared)
  quiet <- silent[order(silent$share), c("data", "kind", "formula", "coefficient", "covered", "releases", "z")]
  bench_result(
    list(figure("coverage, all", paste(nrow(asked), "coefficients"), sum(asked$covered) / sum(asked$releases), 0.94),
         figure("coverage, natural limits declared", paste(nrow(declared), "estimates"), sum(declared$covered) / sum(declared$releases), 0.94),
         figure("coefficients covered in 90%", "linear, tables, one variable", mean(asked$share[linear] >= 0.9), 1),
         figure("coefficients covered in 85%", "others", mean(asked$share[!linear] >= 0.85), 1),
         figure("below 80% without a word", "coefficients", nrow(silent), 0, at_most = TRUE),
         figure("below 80% without a word, natural limits declared", "coefficients", nrow(silent_declared), 0, at_most = TRUE),
         figure("R-hat at most 1.01 and 400 effective draws", paste(sum(mixed$releases), "calls"), sum(mixed$well) / sum(mixed$releases), 0.9),
         figure("median seconds of a call", "elapsed", stats::median(calls$seconds, na.rm = TRUE), 2, at_most = TRUE)),
    details = list("by kind of design" = by_kind, "below 80% without a word" = utils::head(quiet, 40L)),
    notes = sprintf("%d designs of %d data sets.", nrow(calls), length(unique(d$data))))
}

for (set in wanted_sets()) {
  for (k in seq_along(set$designs)) {
    kind <- names(set$designs)[k]
    epsilon <- as.double(argument("epsilon", set$epsilon[k]))
    found <- tryCatch(measure(set, kind, set$designs[[k]], epsilon), error = function(e) {
      say("%s %s: %s", set$name, kind, conditionMessage(e))
      NULL
    })
    if (is.null(found)) next
    keep(found)
    say("%s %s: %.1f s a call, covered %s of %d%s %s", set$name, kind, found$seconds[1L], paste(found$covered[!nuisance(found)], collapse = " "),
        found$releases[1L], if (nzchar(found$fault[1L])) paste0(" (", found$fault[1L], ")") else "", found$told[1L])
  }
}
cat(result_lines(report(utils::read.csv(path))), sep = "\n")
