# 200 levels under local privacy, default calls: k-ary randomised response and sums of bits, processor seconds to 400 effective draws; and
# one question of 10^4 and of 10^8 records, whose answers are published as counts.
#
#   Rscript bench/answer_levels.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

answer_levels <- sprintf("level%03d", 1:200)

# uneven shares, as of words or of sites
level_shares <- function() {
  set.seed(1)
  share <- stats::rgamma(200, 0.5)
  share / sum(share)
}

k_ary <- function(epsilon, n) {
  kept <- exp(epsilon) / (exp(epsilon) + 199)
  share <- level_shares()
  answers <- as.double(stats::rmultinom(1L, n, share * kept + (1 - share) * (1 - kept) / 199))
  as_release(stats::setNames(answers, answer_levels), stat_records(~ x, levels = list(x = answer_levels)), mech_randomized_response(epsilon = epsilon))
}

sums_of_bits <- function(epsilon, n) {
  mechanism <- mech_unary_encoding(epsilon = epsilon, encoding = "symmetric")
  count <- as.double(stats::rmultinom(1L, n, level_shares()))
  sums <- stats::rbinom(200L, count, mechanism$p) + stats::rbinom(200L, n - count, mechanism$q)
  as_release(stats::setNames(sums, answer_levels), stat_counts(~ x, levels = list(x = answer_levels)), mechanism, n = n)
}

one_question <- function(epsilon, n) {
  as_release(c(no = 0.6 * n, yes = 0.4 * n), stat_records(~ x, levels = list(x = c("no", "yes"))), mech_randomized_response(epsilon = epsilon))
}

default_call <- function(answers, release, epsilon, n, model = model_categorical()) {
  time <- seconds(fit <- suppressWarnings(suppressMessages(sample_posterior(release(epsilon, n), model, seed = 1))))
  tail <- min(vapply(posterior::variables(fit$draws), function(v) posterior::ess_tail(posterior::extract_variable_matrix(fit$draws, v)), 0))
  data.frame(answers = answers, epsilon = epsilon, n = n, seconds = time, `bulk ESS` = min_ess(fit$draws), `tail ESS` = tail,
             `seconds to 400` = time * 400 / min_ess(fit$draws), check.names = FALSE)
}

bench_answer_levels <- function(quick = FALSE) {
  invisible(default_call("once, for the compiler", k_ary, 1, 1000))
  sizes <- if (quick) 1e4 else c(1e3, 1e4, 1e6)
  rows <- NULL
  for (epsilon in c(0.5, 1, 3, 5)) for (n in sizes) {
    say("k-ary, epsilon %g, n = %g", epsilon, n)
    rows <- rbind(rows, default_call("k-ary randomised response", k_ary, epsilon, n))
  }
  bits <- NULL
  for (epsilon in c(1, 3)) for (n in setdiff(sizes, 1e3)) bits <- rbind(bits, default_call("sums of bits", sums_of_bits, epsilon, n))
  invisible(default_call("once more", one_question, 1, 1e4, model_bernoulli()))
  few <- default_call("one question", one_question, 1, 1e4, model_bernoulli())
  many <- default_call("one question", one_question, 1, 1e8, model_bernoulli())
  bench_result(
    list(figure("seconds to 400 effective draws", "k-ary randomised response, 200 levels, the longest", max(rows[["seconds to 400"]]), 1, TRUE),
         figure("seconds to 400 effective draws", "sums of bits, 200 levels, the longest", max(bits[["seconds to 400"]]), 1, TRUE),
         figure("seconds of a default call, answers counted", "one question, n = 10,000", few$seconds),
         figure("seconds of a default call, answers counted", "one question, n = 100,000,000", many$seconds)),
    list("Default calls" = rbind(rows, bits, few, many)),
    "Four chains of 2,000 iterations, as_release() and set-up included; the least effective draws of all parameters, bulk for the seconds.")
}

run_alone(bench_answer_levels)
