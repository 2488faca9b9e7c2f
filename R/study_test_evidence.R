# Bayes factors of private_test()'s two-sided alternatives over its null hypotheses, from the same release.

# `question`: of read_question()
factor_of_test <- function(question, release, alternative, wanted, prior_n, seed, call) {
  two_sided <- alternative == "two.sided"
  if (two_sided && !is.null(question$quick_factor)) return(question$quick_factor(release))
  if (!wanted) return(NULL)
  if (!two_sided || is.null(question$factor)) stop_argument("bayes_factor", "FALSE, since this test has no Bayes factor", "TRUE", call = call)
  question$factor(release, seed, prior_n)
}

# Of one probability, exact: the count is summed out under both hypotheses. NULL: the number of records is unknown, or the noise has no density.
proportion_factor <- function(release, model, null, call) {
  met <- bind_simulated(release, model, call)
  n <- met$release$n
  site <- if (!is.null(n)) tryCatch(rate_site(met$release, met$bound, call), noiseaware_error = function(e) NULL)
  if (is.null(site)) return(NULL)
  log_weight <- site$fields$log_weight
  s <- site$fields$first + seq_along(log_weight) - 1
  log <- log_sum_exp(log_weight + log_moment(met$bound, s, n)) - log_sum_exp(log_weight + stats::dbinom(s, n, null, log = TRUE) - lchoose(n, s))
  weights <- met$bound$spec$fields$alpha
  new_test("One proportion", log, 0, NULL, describe_model(met$bound), paste("the probability is", format_number(null)), "the probability is unknown",
           sprintf("Beta(%s, %s) of the probability", format_number(weights[2L]), format_number(weights[1L])))
}

# Of the probabilities of all levels, exact
levels_factor <- function(release, model, null, prior_n, call) {
  met <- bind_simulated(release, model, call)
  fit <- list(release = met$release, bound = met$bound, problem = list(prior_n = check_size_prior(prior_n, met$release, call)))
  any <- cells_evidence(fit, call)
  if (is.null(any)) stop_no_evidence("Numbers are of several levels, or there are too many tables.", call)
  new_test("Given probabilities", any - cells_evidence(fit, call, null), 0, NULL, describe_model(met$bound), "the given probabilities", "any probabilities",
           sprintf("Dirichlet(%s) of the probabilities", format_number(met$bound$spec$fields$alpha[1L])))
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
  if (!x$test$informative) {
    cat("Note: ", ruled_out_nothing, ".\n", sep = "")
    if (grepl(" mean", x$method)) cat("A test of a mean needs a released sum of squares as well, or p_value() with a model whose sd is fixed.\n")
    cat("\n")
  }
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
