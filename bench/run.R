# Runs the benchmarks and writes bench/results.md.
#
#   Rscript bench/run.R [names] [quick]
#
# from the project's root, with the package in R's library path. Names pick some
# of regression, record, naive_bayes, simple; "quick" shortens them to see that they work.
# results.md is written by a full run only; the others print.

titles <- c(regression = "Regression of Ju et al. (2022), against dapper and Stan",
            record = "Cost of a record", naive_bayes = "Naive Bayes of Ju et al. (2022), and counts", simple = "Simple regression, everything unknown")

first_line <- function(...) tryCatch(system2(..., stdout = TRUE, stderr = FALSE)[1L], error = function(e) NA_character_)

machine_lines <- function() {
  info <- function(file, pattern) {
    if (!file.exists(file)) return(NA_character_)
    line <- grep(pattern, readLines(file, warn = FALSE), value = TRUE)[1L]
    trimws(sub("^[^:]*:", "", line))
  }
  config <- function(what) first_line(file.path(R.home("bin"), "R"), c("CMD", "config", what))
  memory <- as.numeric(sub(" kB", "", info("/proc/meminfo", "^MemTotal"))) / 1024^2
  flags <- gsub("-f(file|debug|macro)-prefix-map=[^ ]* ?", "", config("CFLAGS"))
  version <- function(p) if (requireNamespace(p, quietly = TRUE)) as.character(utils::packageVersion(p)) else "not installed"
  packages <- c("noiseaware", "posterior", "future", "dapper", "rstan", "StanHeaders")
  compiler <- config("CC")
  session <- utils::sessionInfo()
  blas <- basename(c(session$BLAS, session$LAPACK))
  c(sprintf("Date: %s", format(Sys.Date())),
    sprintf("Processor: %s, %d cores; %.0f GB of memory", info("/proc/cpuinfo", "^model name"), parallel::detectCores(), memory),
    sprintf("System: %s", session$running),
    sprintf("%s; BLAS %s, LAPACK %s", R.version.string, blas[1L], blas[2L]),
    sprintf("Compiler: %s (%s), flags %s", compiler, first_line(strsplit(compiler, " ")[[1L]][1L], "--version"), flags),
    sprintf("Packages: %s", paste(packages, vapply(packages, version, ""), collapse = ", ")),
    sprintf("Commit %s%s", first_line("git", c("describe", "--always")),
            if (is.na(first_line("git", c("status", "--porcelain", "--", "R", "src")))) "" else ", with changes in R or src"),
    "Seconds are processor seconds; one chain at a time on one core, no future plan.")
}

load_average <- function() if (file.exists("/proc/loadavg")) sub(" [^ ]*/.*", "", readLines("/proc/loadavg")) else "unknown"

main <- function(arguments) {
  quick <- "quick" %in% arguments
  names <- setdiff(arguments, "quick")
  strange <- setdiff(names, base::names(titles))
  if (length(strange)) stop("no such benchmark: ", paste(strange, collapse = ", "), call. = FALSE)
  full <- !quick && length(names) == 0L
  if (length(names) == 0L) names <- base::names(titles)

  load_before <- load_average()
  failed <- FALSE
  # a process for each: what one loads (rstan sets compiler flags) is no matter to the next
  sections <- lapply(names, function(name) {
    began <- Sys.time()
    lines <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"),
                                      c(file.path("bench", paste0(name, ".R")), if (quick) "quick"), stdout = TRUE))
    if (!is.null(attr(lines, "status"))) {
      failed <<- TRUE
      lines <- c(lines, "", "FAILED.")
    }
    c("", paste("##", titles[[name]]), "", lines, "",
      sprintf("`bench/%s.R`, %.1f minutes.", name, as.numeric(difftime(Sys.time(), began, units = "mins"))))
  })
  text <- c("# Benchmarks", "", "Written by `Rscript bench/run.R`. \"met\" says whether a target was reached.", "",
            paste("-", c(machine_lines(), sprintf("Load average before: %s; after: %s.", load_before, load_average()))),
            unlist(sections))
  cat(text, sep = "\n")
  if (full && !failed) writeLines(text, "bench/results.md")
  if (failed) quit(status = 1)
}

main(commandArgs(TRUE))
