# Checks paper.md: every number that is followed by a comment is that of bench/results.md, or of inst/replication/results, and
# every script that the paper names is there. Fails on any that is not.
#
#   Rscript tools/paper.R

results <- readLines("bench/results.md")

# of a section's first table, the number in the row of that figure and case
benchmark <- function(section, figure, case) {
  at <- match(paste("##", section), results)
  cells <- strsplit(results[-seq_len(at)], " *\\| *")
  row <- Find(function(c) length(c) >= 4L && c[2L] == figure && c[3L] == case, cells)
  if (is.null(row)) NA_character_ else row[4L]
}

most <- function(section, figure) {
  first <- match(paste("##", section), results)
  last <- c(grep("^## ", results), length(results) + 1L)
  cells <- strsplit(results[seq(first, min(last[last > first]) - 1L)], " *\\| *")
  as.numeric(vapply(Filter(function(c) length(c) >= 4L && c[2L] == figure, cells), `[[`, "", 4L))
}

matrix <- utils::read.csv("inst/replication/results/support_matrix.csv.gz")
exact <- matrix$method != "clt"
regression <- "Regression of Ju et al. (2022), against dapper and Stan"
owner <- "Releases made where the data live"

sources <- list(
  dapper = benchmark(regression, "min bulk ESS per second over that of dapper, tuned; same chain", "epsilon 1"),
  interwoven = benchmark(regression, "min bulk ESS per second over our plain sampler's, chains of 10,000", "epsilon 1"),
  stan_records = benchmark(regression, "min bulk ESS per second over Stan's, non-centred (its faster form)", "epsilon 1"),
  cases = nrow(unique(matrix[c("method", "design", "mechanism", "n")])), replicates = unique(matrix$replicates),
  exact_variables = sum(exact), exact_outside = sum(!matrix$inside[exact]), clt_outside = sum(!matrix$inside[!exact]), clt_variables = sum(!exact),
  engines = min(most("Calibration of the engines for regressions", "p value of uniform ranks, Bonferroni")),
  stan_program = max(most("The Stan programs of stan_program()", "Stan from augment, Monte Carlo errors")),
  billion = benchmark("Method collapse: regression, naive Bayes", "time per iteration over that of n = 1,000", "n = 1,000,000,000"),
  ten = benchmark("Regressions of real size", "least ESS per second", "\"collapse\", p = 10, n = 1,000, epsilon 1"),
  fifty = benchmark("Regressions of real size", "least ESS per second", "\"collapse\", p = 50, n = 1,000, epsilon 1"),
  file = benchmark(owner, "time of a release over that of reading and summing in R", "CSV, 3 x 10^7 rows x 3 columns, chunks of 10^6"),
  memory = benchmark(owner, "peak memory, MB", "CSV"),
  postgres = benchmark(owner, "time of a release over that of plain sums in SQL", "PostgreSQL, 10^7 rows x 3 columns, 9 totals; median of nine runs"),
  calls = sub("of ", "", strsplit(grep("^\\| default calls with R-hat at most 1.01, 400", results, value = TRUE), " *\\| *")[[1L]][3L]),
  converged = benchmark("Default calls on data that nobody prepared", "default calls with R-hat at most 1.01, 400 effective draws, in a minute", "of 40"),
  held = benchmark("Default calls on data that nobody prepared", "intervals (95%) of the first slope that hold its value from the records", "of 40"))

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
