# Bayes factors of private_test()'s alternatives over its null hypotheses, from the same release.

# `question`: of read_question(); `side`: of side_of()
factor_of_test <- function(question, release, side, wanted, prior_n, seed, call) {
  if (!is.null(question$quick_factor)) return(question$quick_factor(release, side))
  if (!wanted) return(NULL)
  if (is.null(question$factor)) stop_argument("bayes_factor", "FALSE, since this test has no Bayes factor", "TRUE", call = call)
  factor <- question$factor(release, seed, prior_n)
  if (side == 0) factor else one_sided_factor(factor, question, side, share_above(question, release, seed, call))
}

# Bayes factor of one side over the point: that of both sides by the side's posterior over its prior probability (Klugkist, Laudy & Hoijtink 2005). `above`: of
# share_above().
one_sided_factor <- function(factor, question, side, above) {
  share <- if (side > 0) c(above$posterior, above$prior) else 1 - c(above$posterior, above$prior)
  where <- paste(if (side > 0) "above" else "below", format_number(unname(question$value)))
  new_test(attr(factor, "title"), attr(factor, "log") + log(share[1L]) - log(share[2L]), sqrt(attr(factor, "error")^2 + (above$error / share[1L])^2),
           attr(factor, "note"), attr(factor, "data"), attr(factor, "h0"), sprintf("%s: the %s is %s", attr(factor, "h1"), names(question$value), where),
           paste0(attr(factor, "prior"), "; only its part ", where))
}

# Probabilities that what is tested is above its value under the null hypothesis: `prior` and, from draws, `posterior`; no share of draws is 0 or 1.
share_above <- function(question, release, seed, call) {
  run <- list(chains = 4, iter = 3000, seed = seed)
  fit <- without_progress(do.call(sample_posterior, c(list(release, question$model), run)))
  draws <- parameter_matrix(fit)
  values <- if (is.function(question$parameter)) apply(draws, 1L, question$parameter) else draws[, question$parameter]
  above <- values > question$value
  prior <- if (is.null(question$prior_above)) 0.5 else question$prior_above(fit$bound$spec$fields)
  list(prior = prior, posterior = (sum(above) + 0.5) / (length(above) + 1), error = column_errors(cbind(above), fit))
}

# Of one probability, exact: the count is summed out under both hypotheses. NULL: the number of records is unknown, or the noise has no density.
proportion_factor <- function(release, question, side, call) {
  null <- unname(question$value)
  met <- bind_simulated(release, question$model, call)
  n <- met$release$n
  site <- if (!is.null(n)) tryCatch(rate_site(met$release, met$bound, call), noiseaware_error = function(e) NULL)
  if (is.null(site)) return(NULL)
  log_weight <- site$fields$log_weight
  s <- site$fields$first + seq_along(log_weight) - 1
  weights <- met$bound$spec$fields$alpha
  any <- log_weight + log_moment(met$bound, s, n)
  log <- log_sum_exp(any) - log_sum_exp(log_weight + stats::dbinom(s, n, null, log = TRUE) - lchoose(n, s))
  factor <- new_test("One proportion", log, 0, NULL, describe_model(met$bound), paste("the probability is", format_number(null)), "the probability is unknown",
                     sprintf("Beta(%s, %s) of the probability", format_number(weights[2L]), format_number(weights[1L])))
  if (side == 0) return(factor)
  above <- function(s, n) stats::pbeta(null, weights[2L] + s, weights[1L] + n - s, lower.tail = FALSE)
  one_sided_factor(factor, question, side, list(prior = above(0, 0), posterior = sum(exp(any - log_sum_exp(any)) * above(s, n)), error = 0))
}

# Of the probabilities of all levels, exact
levels_factor <- function(release, model, null, prior_n, call) {
  met <- bind_simulated(release, model, call)
  fit <- list(release = met$release, bound = met$bound, problem = list(prior_n = check_size_prior(prior_n, met$release, call)))
  any <- cells_evidence(fit, call)
  if (is.null(any)) stop_no_evidence("Some numbers concern several levels, or there are too many tables.", call)
  new_test("Given probabilities", any - cells_evidence(fit, call, null), 0, NULL, describe_model(met$bound), "the given probabilities", "any probabilities",
           sprintf("Dirichlet(%s) of the probabilities", format_number(met$bound$spec$fields$alpha[1L])))
}

# prior probabilities that the mean and the sd are above a value; `prior`: fields of model_normal() with an inverse gamma prior of the variance
prior_above_mean <- function(prior, null) {
  stats::pt((prior$prior_mean - null) * sqrt(prior$prior_precision * prior$shape / prior$rate), 2 * prior$shape)
}

prior_above_sd <- function(prior, null) stats::pgamma(1 / null^2, prior$shape, prior$rate)

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
           sqrt(attr(evidence[[1L]], "error")^2 + attr(evidence[[2L]], "error")^2), join_notes(attr(evidence[[1L]], "note"), attr(evidence[[2L]], "note")),
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
  if (is_least_p(x$test)) cat("Note: this p-value is ", least_p_words(x$test), ".\n\n", sep = "")
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
