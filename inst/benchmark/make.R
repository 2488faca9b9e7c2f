# Makes the stored releases and references again:  Rscript make.R [--only PROBLEM,..] [--check] [--replicates COUNT --to FOLDER]
#
#   problems/PROBLEM.json   the release; PROBLEM.txt: the statistic, the model and its priors in words
#   references.csv          problem, variable, mean, sd, lower, upper (2.5 and 97.5 per cent), mcse_mean, mcse_sd, method, and the second,
#                           independent method with its mean and sd
# --check      compares what is made with what is stored, and writes nothing
# --replicates writes COUNT releases of a problem (with --only), and truths.csv, to a folder, for the coverage of a method's intervals

suppressPackageStartupMessages(library(noiseaware))
folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
for (file in c("problems.R", "exact.R", "score.R")) sys.source(file.path(folder, file), globalenv())

option <- function(name, default = NULL) {
  at <- match(paste0("--", name), commandArgs(TRUE))
  if (is.na(at)) default else commandArgs(TRUE)[at + 1L]
}
check <- "--check" %in% commandArgs(TRUE)
chosen <- if (is.null(option("only"))) names(problems) else strsplit(option("only"), ",")[[1L]]

moments <- function(fit, parameters) {
  table <- posterior::summarise_draws(posterior::subset_draws(posterior::as_draws_array(fit), parameters), mean = mean, sd = stats::sd,
                                      ~ stats::quantile(.x, c(0.025, 0.975)), mcse_mean = posterior::mcse_mean, mcse_sd = posterior::mcse_sd)
  names(table) <- c("variable", "mean", "sd", "lower", "upper", "mcse_mean", "mcse_sd")
  as.data.frame(lapply(table, function(column) if (is.numeric(column)) as.double(column) else column))
}

long_run <- function(problem, release, method) {
  iter <- if (!is.null(problem$iter)) problem$iter else if (method == "collapse") 100000 else 40000
  moments(sample_problem(problem, release, method, iter = iter, warmup = iter %/% 10, seed = 1), names(problem$parameters))
}

# the second method's errors, in Monte Carlo errors of both
disagreement <- function(first, second) {
  se <- function(a, b) sqrt(a^2 + b^2) + 1e-12
  max(abs(first$mean - second$mean) / se(first$mcse_mean, second$mcse_mean), abs(first$sd - second$sd) / se(first$mcse_sd, second$mcse_sd))
}

reference_of <- function(name, release) {
  problem <- problems[[name]]
  runs <- lapply(stats::setNames(nm = problem$methods), function(m) long_run(problem, release, m))
  aside <- list(exact = problem$exact, `importance sampling` = problem$second)
  aside <- lapply(Filter(Negate(is.null), aside), function(of) {
    found <- of(release)
    if (is.null(found$mcse_mean)) found[c("mcse_mean", "mcse_sd")] <- 0
    found[match(runs[[1L]]$variable, found$variable), ]
  })
  runs <- c(aside["exact"[!is.null(problem$exact)]], runs[1L], aside["importance sampling"[!is.null(problem$second)]], runs[-1L])
  off <- vapply(runs[-1L], disagreement, 0, first = runs[[1L]])
  if (any(off > 5)) stop(name, ": methods differ by ", format(max(off), digits = 3), " Monte Carlo errors")
  message(name, ": ", paste(names(runs), collapse = ", "), "; at most ", format(max(off), digits = 3), " Monte Carlo errors apart")
  data.frame(problem = name, runs[[1L]], method = names(runs)[1L], second = names(runs)[2L], second_mean = runs[[2L]]$mean, second_sd = runs[[2L]]$sd)
}

in_words <- function(problem, release) {
  head <- c(problem$title, paste0("Source: ", problem$source), "", utils::capture.output(print(problem$statistic)))
  if (!is.null(problem$model_words)) return(c(head, problem$model_words))
  fit <- suppressWarnings(sample_problem(problem, release, iter = 200, warmup = 100, chains = 1, seed = 1))
  c(head, utils::capture.output(print(problem$model)),
    if (!is.null(problem$prior_n)) utils::capture.output(print(problem$prior_n)), utils::capture.output(print(rstantools::prior_summary(fit))))
}

write_replicates <- function(name, count, to) {
  dir.create(to, showWarnings = FALSE, recursive = TRUE)
  problem <- problems[[name]]
  truths <- lapply(seq_len(count), function(seed) {
    release <- if (problem$prior) {
      set.seed(seed)
      simulate_release(problem$model, problem$statistic, problem$mechanism, n = problem$n, neighbours = problem$neighbours)
    } else {
      simulate_problem(problem, 1000 + seed)
    }
    truth <- if (problem$prior) attr(release, "truth")$parameters else problem$parameters
    write_release(release, file.path(to, sprintf("%04d.json", seed)))
    data.frame(replicate = seed, variable = names(problem$parameters), truth = unname(truth[names(problem$parameters)]))
  })
  utils::write.csv(do.call(rbind, truths), file.path(to, "truths.csv"), row.names = FALSE)
}

round_to <- function(table) {
  numbers <- vapply(table, is.numeric, TRUE)
  table[numbers] <- lapply(table[numbers], signif, 6)
  table
}

if (!is.null(option("replicates"))) {
  write_replicates(chosen[1L], as.integer(option("replicates")), option("to", "replicates"))
} else {
  path <- file.path(folder, "references.csv")
  stored <- if (file.exists(path)) utils::read.csv(path)
  for (name in chosen) {
    release <- simulate_problem(problems[[name]], 1)
    json <- file.path(folder, "problems", paste0(name, ".json"))
    made <- round_to(reference_of(name, release))
    if (check) {
      if (!isTRUE(all.equal(read_release(json)$value, release$value))) stop(name, ": another release than the stored one")
      before <- stored[stored$problem == name, ]
      off <- disagreement(before, made)
      if (off > 5) stop(name, ": ", format(off, digits = 3), " Monte Carlo errors from what is stored")
      next
    }
    write_release(release, json)
    writeLines(in_words(problems[[name]], release), sub("json$", "txt", json))
    stored <- rbind(stored[stored$problem != name, ], made)
    utils::write.csv(stored[order(match(stored$problem, names(problems))), ], path, row.names = FALSE)
  }
}
