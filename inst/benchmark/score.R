# Scores draws from a posterior against a reference, and intervals against truths.
#
#   Rscript score.R PROBLEM DRAWS.csv [SECONDS]         draws: a column a parameter, named as in references.csv, and `chain` if there are several
#   Rscript score.R --coverage TRUTHS.csv INTERVALS.csv  both: replicate, variable; truth in one, lower and upper in the other

# How far draws are from a reference, in its standard deviations, and how much of that is Monte Carlo error: a row a parameter with
#   mean_error   mean less the reference's, over the reference's sd; mean_mcse its Monte Carlo standard error
#   sd_error     log of the sd over the reference's; sd_mcse its Monte Carlo standard error
#   ess          effective draws of the mean
#   right        TRUE if both errors are within `tolerance` or 4 Monte Carlo errors, whichever is more; NA where fewer than 100 effective
#                draws could not tell
score_draws <- function(draws, reference, tolerance = 0.05) {
  chain <- if ("chain" %in% names(draws)) draws$chain else rep(1L, nrow(draws))
  lacking <- setdiff(reference$variable, names(draws))
  if (length(lacking)) stop("the draws have no column ", paste(lacking, collapse = ", "), call. = FALSE)
  by_chain <- function(x) matrix(unlist(split(x, chain)), ncol = length(unique(chain)))
  rows <- lapply(seq_len(nrow(reference)), function(i) {
    of <- reference[i, ]
    x <- draws[[of$variable]]
    if (!is.numeric(x) || anyNA(x) || any(!is.finite(x))) stop("draws of ", of$variable, " are not all numbers", call. = FALSE)
    matrix <- by_chain(x)
    ess <- posterior::ess_mean(matrix)
    ess_sd <- posterior::ess_sd(matrix)
    if (is.na(ess)) ess <- ess_sd <- 1 # constant draws
    own <- c(of$mcse_mean / of$sd, of$mcse_sd / of$sd)
    data.frame(variable = of$variable, mean_error = (mean(x) - of$mean) / of$sd, mean_mcse = sqrt(1 / ess + own[1L]^2),
               sd_error = log(stats::sd(x) / of$sd), sd_mcse = sqrt(1 / (2 * ess_sd) + own[2L]^2), ess = min(ess, ess_sd))
  })
  scores <- do.call(rbind, rows)
  within <- function(error, mcse) abs(error) <= pmax(tolerance, 4 * mcse)
  scores$right <- within(scores$mean_error, scores$mean_mcse) & within(scores$sd_error, scores$sd_mcse)
  scores$right[scores$right & scores$ess < 100] <- NA
  scores
}

# One row for a method on a problem: the worst parameter.
score_method <- function(draws, reference, seconds = NA) {
  scores <- score_draws(draws, reference)
  data.frame(mean_error = scores$mean_error[which.max(abs(scores$mean_error))], sd_error = scores$sd_error[which.max(abs(scores$sd_error))],
             ess = round(min(scores$ess)), seconds, ess_per_second = signif(min(scores$ess) / seconds, 3),
             verdict = if (any(!scores$right, na.rm = TRUE)) "wrong" else if (anyNA(scores$right)) "too few draws" else "right")
}

# Coverage of intervals over replicates, with an exact 99% interval; a method is overconfident where all of that is below the level.
score_coverage <- function(truths, intervals, level = 0.95) {
  both <- merge(truths, intervals, by = c("replicate", "variable"))
  if (!nrow(both) || nrow(both) < nrow(truths)) stop("an interval is missing for ", nrow(truths) - nrow(both), " of ", nrow(truths), " truths", call. = FALSE)
  held <- both$truth >= both$lower & both$truth <= both$upper
  rows <- lapply(split(held, both$variable), function(h) {
    bounds <- stats::binom.test(sum(h), length(h), conf.level = 0.99)$conf.int
    data.frame(replicates = length(h), coverage = mean(h), lower = bounds[1L], upper = bounds[2L],
               verdict = if (bounds[2L] < level) "overconfident" else if (bounds[1L] > level) "too wide" else "calibrated")
  })
  data.frame(variable = names(rows), do.call(rbind, rows), row.names = NULL)
}

read_reference <- function(problem, folder = ".") {
  all <- utils::read.csv(file.path(folder, "references.csv"))
  if (!problem %in% all$problem) stop("no problem is named ", problem, "; there are ", paste(unique(all$problem), collapse = ", "), call. = FALSE)
  all[all$problem == problem, ]
}

if (identical(basename(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)[1L])), "score.R")) {
  given <- commandArgs(TRUE)
  if (identical(given[1L], "--coverage") && length(given) == 3L) {
    print(score_coverage(utils::read.csv(given[2L]), utils::read.csv(given[3L])), digits = 3, row.names = FALSE)
  } else if (length(given) %in% 2:3) {
    folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
    reference <- read_reference(given[1L], folder)
    draws <- utils::read.csv(given[2L], check.names = FALSE)
    print(score_draws(draws, reference), digits = 3, row.names = FALSE)
    print(score_method(draws, reference, if (length(given) == 3L) as.double(given[3L]) else NA), digits = 3, row.names = FALSE)
  } else {
    stop("usage: Rscript score.R PROBLEM DRAWS.csv [SECONDS] | Rscript score.R --coverage TRUTHS.csv INTERVALS.csv", call. = FALSE)
  }
}
