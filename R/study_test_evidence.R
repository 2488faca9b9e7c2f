# Bayes factors of private_test()'s two-sided alternatives over its null hypotheses, from the same release.

# `question`: of read_question()
factor_of_test <- function(question, release, alternative, wanted, prior_n, seed, call) {
  two_sided <- alternative == "two.sided"
  if (two_sided && !is.null(question$exact)) return(question$exact(release, prior_n))
  if (!wanted) return(NULL)
  if (!two_sided || is.null(question$sampled)) {
    stop_argument("bayes_factor", "FALSE, since this test has no Bayes factor", "TRUE", call = call)
  }
  question$sampled(release, seed)
}

# Of probabilities, exact: the records' counts are summed out under both hypotheses. NULL: the evidence is not known.
probability_factor <- function(release, model, null, prior_n, call) {
  met <- bind_simulated(release, model, call)
  fields <- met$bound$spec$fields
  binary <- inherits(met$bound, "bound_bernoulli")
  log <- tryCatch(if (binary) rate_log_ratio(met, null[1L]) else cells_log_ratio(met, null, prior_n, call),
                  noiseaware_error_method = function(e) NULL)
  if (is.null(log)) return(NULL)
  prior <- if (binary) sprintf("Beta(%s, %s) of the probability", format_number(fields$alpha[2L]), format_number(fields$alpha[1L])) else
    sprintf("Dirichlet(%s) of the probabilities", format_number(fields$alpha[1L]))
  new_test("Given probabilities", log, 0, NULL, describe_model(met$bound), "the given probabilities", "any probabilities", prior)
}

rate_log_ratio <- function(met, probability) {
  n <- met$release$n
  if (is.null(n)) return(NULL)
  site <- rate_site(met$release, met$bound, NULL)
  s <- site$fields$first + seq_along(site$fields$log_weight) - 1
  log_sum_exp(site$fields$log_weight + log_moment(met$bound, s, n)) -
    log_sum_exp(site$fields$log_weight + stats::dbinom(s, n, probability, log = TRUE) - lchoose(n, s))
}

cells_log_ratio <- function(met, probability, prior_n, call) {
  fit <- list(release = met$release, bound = met$bound, problem = list(prior_n = check_size_prior(prior_n, met$release, call)))
  any <- cells_evidence(fit, call)
  if (!is.null(any)) any - cells_evidence(fit, call, probability)
}

# Of the mean or the sd of normal records, by bridge sampling. The null hypothesis is a prior that is far narrower than any release tells; the other
# parameter has the same prior under both.
normal_factor <- function(release, model, null, seed, draws = 10000, call = rlang::caller_env()) {
  met <- bind_simulated(release, model, call)
  bound <- zero <- met$bound
  prior <- bound$spec$fields
  zero$spec$fields[c("prior_mean", "prior_precision", "shape", "rate")] <-
    if (names(null) == "mean") list(null[[1L]], 1e12, prior$shape, prior$rate) else list(prior$prior_mean, prior$prior_precision, 1e9, 1e9 * null[[1L]]^2)
  method <- totals_method(met$release, bound)
  evidence <- lapply(list(bound, zero), function(bound) totals_evidence(run_totals(met$release, bound, method, seed, call), draws, seed, call))
  of <- paste("the", c(mean = "mean", sd = "standard deviation")[[names(null)]])
  new_test(sprintf("One %s", sub("the ", "", of)), as.numeric(evidence[[1L]]) - as.numeric(evidence[[2L]]),
           sqrt(attr(evidence[[1L]], "error")^2 + attr(evidence[[2L]], "error")^2), join_notes(unique(c(attr(evidence[[1L]], "note"), attr(evidence[[2L]], "note")))),
           describe_model(bound), paste(of, "is", format_number(null)), paste(of, "is unknown"),
           if (names(null) == "mean")
             sprintf("normal, mean %s, sd %s sd of the records", format_number(prior$prior_mean), format_number(1 / sqrt(prior$prior_precision))) else
             sprintf("inverse gamma(%s, %s) of the variance", format_number(prior$shape), format_number(prior$rate)))
}

# ---- what users see ------------------------------------------------------------------------------------

#' @export
print.noiseaware_htest <- function(x, ...) {
  NextMethod()
  factor <- x$bayes_factor
  if (is.null(factor)) return(invisible(x))
  log <- attr(factor, "log")
  error <- if (attr(factor, "error") > 0) paste0(" (Monte Carlo error of its log ", format(signif(attr(factor, "error"), 2)), ")")
  cat("Bayes factor ", format(exp(abs(log)), digits = 3), " for the ", if (log >= 0) "alternative" else "null", " hypothesis",
      error, "\nprior: ", attr(factor, "prior"), "\n", note_lines(factor), "\n", sep = "")
  invisible(x)
}

#' @rdname private_test
#' @exportS3Method generics::tidy
tidy.noiseaware_htest <- function(x, ...) {
  ends <- x$conf.int %||% c(NA_real_, NA_real_)
  data.frame(estimate = unname(x$estimate %||% NA_real_), p.value = x$p.value, mc.error = x$test$error, conf.low = ends[1L], conf.high = ends[2L],
             bayes.factor = as.numeric(x$bayes_factor %||% NA_real_), method = x$method, alternative = x$alternative %||% NA_character_)
}
