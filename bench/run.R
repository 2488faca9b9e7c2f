# Runs the benchmarks and stores what they found: bench/results/ and the page bench/results.md, see bench/results.R.
#
#   Rscript bench/run.R [names] [quick]
#
# from the project's root, with the package in R's library path. Names pick some
# of the sections; "quick" shortens them to see that they work. Every run prints;
# one that is not quick replaces their files.

source("bench/results.R")

titles <- c(regression = "Regression of Ju et al. (2022), against dapper and Stan",
            record = "Cost of a record",
            naive_bayes = "Naive Bayes of Ju et al. (2022), and counts",
            univariate = "One-variable models",
            mixing = "Interweaving against the plain sampler",
            mixing_heavy = "Interweaving: heavy priors, clamped records",
            simple = "Simple regression, everything unknown",
            collapse = "Method collapse: regression, naive Bayes",
            clt = "Normal distribution for the statistic",
            release = "Exact noise",
            logistic = "Logistic regression",
            clt_regression = "Normal distribution for the statistic of regression",
            custom = "Models of one's own",
            quantiles = "Quantiles by the exponential mechanism",
            answer_levels = "200 levels under local privacy",
            calibrate = "Calibration",
            calibrate_engines = "Calibration of the engines for regressions",
            dimension = "Regressions of real size",
            cost = "What each engine costs, for method auto",
            auto = "What method auto takes for a linear regression",
            defaults = "Default calls on data that nobody prepared",
            unknown_n = "Unknown number of records",
            default_priors = "Coverage by the default priors",
            table_prior = "Coverage by the default prior of tables",
            doors = "Coverage for each way to publish noisy numbers",
            tables = "Tables moved by transfers",
            glm = "Generalised linear models",
            newton = "Newton proposals against walks",
            bends = "Totals released from far off their means",
            sums = "Sums published alone",
            awan_wang = "Objective perturbation with a beta covariate",
            stan_program = "The Stan programs of stan_program()",
            pool = "Several sites",
            pool_records = "Sites pooled by imputed records",
            pool_cost = "What pooling by imputed records costs, for method auto",
            pool_calibration = "Calibration of pooled sites",
            groups = "Groups of one release",
            grouped_covariates = "Covariates of grouped data, pooled or not",
            curves = "Curves over groups in a walk",
            smooths = "Smooth curves: s(x, k) in a formula",
            distributed = "Regressions of several owners, against MCMC-normalX",
            growth = "How cost grows",
            cluster = "Beyond one process",
            evidence = "Evidence by bridge sampling",
            noisy_records = "Noise on every record",
            frequentist = "Confidence sets and p-values")

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
  c(sprintf("Processor: %s, %d cores; %.0f GB of memory", info("/proc/cpuinfo", "^model name"), parallel::detectCores(), memory),
    sprintf("System: %s", session$running),
    sprintf("%s; BLAS %s, LAPACK %s", R.version.string, blas[1L], blas[2L]),
    sprintf("Compiler: %s (%s), flags %s", compiler, first_line(strsplit(compiler, " ")[[1L]][1L], "--version"), flags),
    sprintf("Packages: %s", paste(packages, vapply(packages, version, ""), collapse = ", ")),
    "Seconds are processor seconds; one chain at a time on one core, no future plan.")
}

load_average <- function() if (file.exists("/proc/loadavg")) sub(" [^ ]*/.*", "", readLines("/proc/loadavg")) else "unknown"

main <- function(arguments) {
  quick <- "quick" %in% arguments
  names <- setdiff(arguments, "quick")
  strange <- setdiff(names, base::names(titles))
  if (length(strange)) stop("no such benchmark: ", paste(strange, collapse = ", "), call. = FALSE)
  if (length(names) == 0L) names <- base::names(titles)

  load_before <- load_average()
  commit <- first_line("git", c("describe", "--always"))
  changed <- if (is.na(first_line("git", c("status", "--porcelain", "--", "R", "src")))) "" else " with changes in R or src"
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
    section <- c(paste("#", titles[[name]]), "", lines, "",
      sprintf("`bench/%s.R`, %s, %.1f minutes, commit %s%s, load average %s to %s.", name, format(began, "%Y-%m-%d"),
              as.numeric(difftime(Sys.time(), began, units = "mins")), commit, changed, load_before, load_average()))
    cat(section, sep = "\n")
    section
  })
  base::names(sections) <- names
  if (!quick && !failed) {
    for (name in names) {
      writeLines(sections[[name]], file.path(results_folder, paste0(name, ".md")))
      write_table(name, processor())
    }
    write_page(paste("-", machine_lines()))
  }
  if (failed) quit(status = 1)
}

main(commandArgs(TRUE))
