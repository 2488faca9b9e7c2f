# Checks paper.md: every number that is followed by a comment is stored in bench/results, inst/benchmark or inst/replication/results, and
# every script that the paper names is there. Fails on any that is not.
#
#   Rscript tools/paper.R

stored <- function(name) utils::read.csv(file.path("bench/results", paste0(name, ".csv")), colClasses = "character")

benchmark <- function(name, figure, case) {
  table <- stored(name)
  table$measured[table$figure == figure & table$case == case][1L]
}

most <- function(name, figure) {
  table <- stored(name)
  as.numeric(table$measured[table$figure == figure])
}

matrix <- utils::read.csv("inst/replication/results/support_matrix.csv.gz")
exact <- matrix$method != "clt"
references <- utils::read.csv("inst/benchmark/references.csv")
references <- references[!duplicated(references$problem), ]
scores <- utils::read.csv("inst/benchmark/results.csv")
right_of <- function(method) sum(scores$method == method & scores$verdict == "right")
wrong_of <- function(method) sum(scores$method == method & scores$verdict == "wrong")
gains <- merge(scores[scores$method == "noiseaware", ], scores[scores$method %in% c("dapper", "stan") & scores$verdict == "right", ], by = "problem")
counted <- function(what) sub(" .*", "", grep(paste0("^[0-9]+ ", what, "$"), stored("real_data")$case, value = TRUE))
real <- function(figure) stored("real_data")$measured[stored("real_data")$figure == figure]

sources <- list(
  dapper = benchmark("regression", "min bulk ESS per second over that of dapper, tuned; same chain", "epsilon 1"),
  interwoven = benchmark("regression", "min bulk ESS per second over our plain sampler's, chains of 10,000", "epsilon 1"),
  stan_records = benchmark("regression", "min bulk ESS per second over Stan's, non-centred (its faster form)", "epsilon 1"),
  cases = nrow(unique(matrix[c("method", "design", "mechanism", "n")])), replicates = unique(matrix$replicates),
  exact_variables = sum(exact), exact_outside = sum(!matrix$inside[exact]), clt_outside = sum(!matrix$inside[!exact]), clt_variables = sum(!exact),
  engines = min(most("calibrate_engines", "p value of uniform ranks, Bonferroni")),
  stan_program = max(most("stan_program", "Stan from augment, Monte Carlo errors")),
  billion = benchmark("collapse", "time per iteration over that of n = 1,000", "n = 1,000,000,000"),
  ten = benchmark("dimension", "least ESS per second", "\"collapse\", p = 10, n = 1,000, epsilon 1"),
  fifty = benchmark("dimension", "least ESS per second", "\"collapse\", p = 50, n = 1,000, epsilon 1"),
  file = benchmark("owner", "time of a release over that of reading and summing in R", "CSV, 3 x 10^7 rows x 3 columns, chunks of 10^6"),
  memory = benchmark("owner", "peak memory, MB", "CSV"),
  postgres = benchmark("owner", "time of a release over that of plain sums in SQL", "PostgreSQL, 10^7 rows x 3 columns, 9 totals; median of nine runs"),
  problems = nrow(references), outside = sum(references$method == "exact" | references$second == "importance sampling"),
  right = right_of("noiseaware"),
  naive = wrong_of("naive"), dapper_right = right_of("dapper"), dapper_tried = sum(scores$method == "dapper"), stan_right = right_of("stan"),
  stan_tried = sum(scores$method == "stan"), least_gain = format(min(gains$ess_per_second.x / gains$ess_per_second.y), digits = 3),
  sets = benchmark("frequentist", "mean length over SimBaRepro's", "mean, epsilon 4"),
  sets_time = benchmark("frequentist", "times faster than SimBaRepro", "mean, epsilon 4"),
  calls = counted("calls"), converged = real("R-hat at most 1.01 and 400 effective draws"), call_seconds = real("median seconds of a call"),
  coefficients = counted("coefficients"), held = real("coverage, all"),
  declared = real("coverage, natural limits declared"))

paper <- readLines("paper.md")
found <- unlist(regmatches(paper, gregexpr("[0-9][0-9.,]*<!-- \\w+ -->", paper)))
key <- sub(".*<!-- (\\w+) -->", "\\1", found)
said <- sub("<!--.*", "", found)
measured <- vapply(sources[key], function(v) if (is.null(v)) NA_character_ else as.character(v), "")
wrong <- is.na(measured) | said != measured
named <- unique(unlist(regmatches(paper, gregexpr("(bench|inst|tools)/[A-Za-z0-9_./]+", paper))))
absent <- named[!file.exists(named)]
cited <- setdiff(unlist(regmatches(paper, gregexpr("(?<=@)[A-Z]\\w+", paper, perl = TRUE))), sub("@\\w+\\{(\\w+),", "\\1", grep("^@", readLines("paper.bib"), value = TRUE)))
for (k in which(wrong)) cat("paper.md says", said[k], "of", key[k], "and the results say", measured[k], "\n")
for (name in setdiff(names(sources), key)) cat("paper.md has no number of", name, "\n")
if (length(absent)) cat("paper.md names files that are not there:", absent, "\n")
if (length(cited)) cat("not in paper.bib:", cited, "\n")
if (any(wrong) || length(absent) || length(cited) || length(setdiff(names(sources), key))) quit(status = 1)
cat(length(key), "numbers of paper.md are those of the results\n")
