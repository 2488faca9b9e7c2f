#' P-value from a private release
#'
#' Frequentist test of a model's parameters that accounts for noise, clamping and thresholds and is valid for every number of records and every epsilon. The
#' release is compared with releases simulated under the null hypothesis.
#'
#' @param release A release of totals or counts, or with coefficients of a perturbed objective ([mech_objective()]). For `p_value()` and `confidence_set()` also a
#'   named list of releases of different people, one per site: then each site has parameters of its own, such as `prob[yes,north]`.
#' @param model A model, as for [sample_posterior()]; also a model of [groups], such as `model_normal(y ~ arm)`, where each group has its own parameters. Its
#'   prior does not enter the p-value: it only sets the start and the units of the search.
#' @param null The null hypothesis: a named vector of values of one or more parameters, such as `c(age = 0)`, with names as in `names(coef(fit))`;
#'   `prob` is enough if only one name begins with `prob[`. All other parameters are nuisance parameters. Or a function of all parameters (a
#'   named vector) that returns numbers that are 0 under the null hypothesis, such as
#'   `function(p) p[["prob[a]"]] - p[["prob[b]"]]`.
#' @param alternative `"two.sided"`; or, if the null hypothesis is a single number, `"greater"` or `"less"` to test it against larger or smaller values.
#' @param ... Must be empty.
#' @param replicates Number of simulated releases, R: p-values are multiples of 1 / (R + 1).
#' @param seed Fixes the random numbers. Do not choose it by looking at the result. `NULL` draws a seed, which is part of the result.
#' @param prior_n `NULL`, or a prior for an unknown number of records, see [prior_n()]; the search for this number starts at the prior.
#' @param x An object returned by `p_value()`.
#'
#' @details
#' **Algorithm.** At parameter values theta, the statistic T(z; theta) is a score computed from the published numbers z, centred at their mean and in units of
#' their standard deviation. It is sensitive to the tested parameters but not to the others (Neyman's C(alpha)). R releases are simulated at theta, and the
#' observed T is ranked among the simulated values and itself: p(theta) = (1 + number of simulated T at least as large) / (R + 1). Under theta all R + 1 are
#' exchangeable, so P(p(theta) <= a) <= a exactly, whatever the noise, the bounds and n (Awan and Wang 2024). The p-value of the null hypothesis is the largest
#' p(theta) over values of the nuisance parameters in a confidence region of level 1 - gamma, plus gamma (Berger and Boos 1994). Here gamma is 0.003, or
#' 1 / (R + 1) if that is larger, and from 1,000 to 2,999 replicates it decreases to 0.001. Without nuisance parameters gamma is 0. So no p-value is
#' below 1 / (R + 1) + gamma, 0.004 for 999 replicates; the printed result says when that minimum is reached.
#'
#' **Natural limits.** If all variables of a statistic have `outside = "none"`, the mean of each component is within its limits, whatever the records are. Only
#' parameter values with such means are tried, with a margin of one per cent of the range.
#'
#' **One-sided tests.** T then has the sign of its score. As in R's tests, the null value itself is tested. Values further from the alternative should have
#' smaller p-values, but this is not proved.
#'
#' **What is not guaranteed.** The maximum over nuisance parameters is found by a search. It starts at the best fit under the null hypothesis and moves in the
#' direction in which the release looks least extreme, for three standard errors and further as long as p grows. Like a posterior, the p-value is valid only if
#' the model is right. Tests with many nuisance parameters are conservative: they reject true null hypotheses less often than their level allows.
#'
#' **Without simulation.** For [model_bernoulli()], with a known n, and one or two counts with Laplace or Gaussian noise, the p-value is computed exactly. Its
#' statistic is the squared distance of the count from its mean, less that from the nearest possible count (Feldman and Cousins 1998).
#'
#' **Large n.** Each replicate simulates n records. Above 20,000 records, the totals are drawn from a normal distribution instead, which is approximate; the
#' printed result says so.
#'
#' **Perturbed objectives** are minimised for each replicate: a confidence set of 1,000 records takes minutes.
#'
#' T uses the mean and the covariance of z from method `"clt"` or from simulated records. They depend only on theta, so errors in them affect the power but not
#' the validity.
#' @return An object of class `noiseaware_p_value`, a list with `p`, its Monte Carlo error `error`, `null`, `gamma`, `replicates`, `seed` and `method`;
#'   `generics::tidy()` converts it to a data frame. `informative` shows whether the release contains information about the tested parameters (otherwise `p` is 1).
#'   `values` are the parameters at which p is largest.
#' @section Errors: `noiseaware_error_argument`, also for impossible parameter values; `noiseaware_error_method` for releases of single records and of
#'   quantiles, and for models without a distribution for the covariates; `noiseaware_error_variables`.
#' @references
#' Awan, J. and Wang, Z. (2024). Simulation-based, finite-sample inference for privatized data. *Journal of the American Statistical Association*.
#' \doi{10.48550/arXiv.2303.05328}
#'
#' Berger, R. L. and Boos, D. D. (1994). P values maximized over a confidence set for the nuisance parameter. *Journal of the American Statistical
#' Association* 89, 1012-1016. \doi{10.1080/01621459.1994.10476836}
#'
#' Feldman, G. J. and Cousins, R. D. (1998). Unified approach to the classical statistical analysis of small signals. *Physical Review D* 57, 3873-3889.
#' \doi{10.1103/PhysRevD.57.3873}
#'
#' Neyman, J. (1959). Optimal asymptotic tests of composite statistical hypotheses. In *Probability and Statistics: The Harald Cramér Volume*, 213-234.
#' @family checks and tests
#' @seealso [test_hypothesis()] for Bayes factors.
#' @examples
#' st <- stat_counts(~ smoke, levels = list(smoke = c("0", "1")))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_discrete_laplace(epsilon = 0.5))
#' p_value(rel, model_bernoulli(), c(prob = 0.5))
#' @export
p_value <- function(release, model, null, alternative = c("two.sided", "less", "greater"), ..., replicates = 999, seed = NULL, prior_n = NULL) {
  if (!missing(release) && is_theirs(release, "parameters", "p_value")) return(call_theirs("parameters", "p_value"))
  check_given()
  check_no_dots(...)
  alternative <- match_alternative(alternative)
  replicates <- check_count(replicates, "replicates", lower = 19)
  seed <- check_seed(seed) %||% new_seed()
  sim <- new_simulator(release, model, prior_n, replicates, seed)
  null <- read_null(null, sim, environment())
  null$side <- side_of(alternative, length(null$target), environment())
  exact <- exact_proportion(sim, null$names, null$side)
  tested <- if (is.null(exact)) null_p(sim, null, enough = 1) else exact$test(null$target)
  if (is.null(tested)) refuse_null(null, environment())
  simulated <- is.null(exact) && tested$informative
  structure(list(p = tested$p, error = if (simulated) rank_error(tested$p, replicates) else 0, null = null$text,
                 alternative = alternative, informative = tested$informative,
                 values = drop(point_values(sim, tested$point)), gamma = if (simulated && length(tested$point) > length(null$target)) region_gamma(sim) else 0,
                 replicates = replicates, seed = seed, method = method_words(sim, exact), describe = describe_release_for_test(sim)),
            class = "noiseaware_p_value")
}

match_alternative <- function(alternative, call = rlang::caller_env()) {
  sides <- c("two.sided", "less", "greater")
  if (identical(alternative, sides)) "two.sided" else check_choice(alternative, "alternative", sides, call = call)
}

# of new_null()
side_of <- function(alternative, numbers, call) {
  if (alternative != "two.sided" && numbers != 1L) {
    stop_argument("alternative", "\"two.sided\" if the null hypothesis is more than one number", dQuote(alternative, FALSE), call = call)
  }
  switch(alternative, two.sided = 0, less = -1, greater = 1)
}

# never 0: a rank of simulated numbers is not exact
rank_error <- function(p, replicates) {
  inside <- min(p, 1 - 1 / (replicates + 1))
  sqrt(inside * (1 - inside) / (replicates + 1))
}

method_words <- function(sim, exact) {
  if (!is.null(exact)) return("computed, exact under the model")
  if (sim$approximate) return("simulation, totals of many records drawn from a normal distribution (approximate)")
  "simulation of this n and this noise, under the model; the largest p-value is searched for"
}

describe_release_for_test <- function(sim) {
  by <- if (!is.null(sim$by)) paste(", by", sim$by)
  sprintf("%s%s, %s records, %s", describe_model(sim$bound), by %||% "", if (sim$unsized) "an unknown number of" else format_size(sim$release$n),
          shorten_list(unique(vapply(sim$parts, function(p) format(p$mechanism), "")), 3L))
}

# `values`: what a named vector or a function of all parameters says
read_null <- function(null, sim, call) {
  known <- rownames(point_values(sim, sim$middle))
  if (is.function(null)) return(function_null(null, sim, call))
  ok <- is.numeric(null) && length(null) > 0L && is.null(dim(null)) && all(is.finite(null)) && checkmate::test_names(names(null), "unique")
  if (!ok) stop_argument("null", "a named vector of finite values of parameters, such as c(age = 0), or a function of the parameters", describe(null), call = call)
  names(null) <- only_of_stem(names(null), known)
  if (anyDuplicated(names(null))) stop_argument("null", "one value for each parameter", paste("several for", names(null)[anyDuplicated(names(null))]), call = call)
  strange <- setdiff(names(null), known)
  if (length(strange)) {
    stop_classed("argument", c("{.arg null} must name parameters of the model, but {.val {strange}} {?is/are} not.", i = "The model has {.val {known}}."), call = call)
  }
  names <- names(null)
  made <- new_null(function(values) values[names, , drop = FALSE], unname(as.double(null)))
  made$text <- paste(names, "=", format_number(null))
  made$names <- names
  made
}

function_null <- function(f, sim, call, name = "null") {
  evaluate <- function(values) {
    columns <- lapply(seq_len(ncol(values)), function(j) call_user(f, name, values[, j]))
    bad <- vapply(columns, function(v) !is.numeric(v) || length(v) == 0L || length(v) != length(columns[[1L]]), TRUE)
    if (any(bad)) stop_custom(name, "numbers, as many each time", columns[[which(bad)[1L]]])
    matrix(as.double(unlist(columns)), ncol = ncol(values))
  }
  first <- evaluate(point_values(sim, sim$middle))
  made <- new_null(evaluate, numeric(nrow(first)))
  made$text <- paste0(shorten_text(paste(deparse(body(f)), collapse = " ")), " = 0")
  made
}

refuse_null <- function(null, call) {
  stop_classed("argument", c("{.arg null} must be values that the model's parameters can have.", x = "Not possible: {shorten_list(null$text, 4L)}."), call = call)
}

# of a p-value of 1, or a set that is the whole range, for want of information
ruled_out_nothing <- "the release rules out no value: each is consistent with its numbers, for some values of the other unknown parameters"

#' @export
print.noiseaware_p_value <- function(x, ...) {
  cat("<p-value> ", x$describe, "\n", sep = "")
  against <- switch(x$alternative, less = ", against smaller values", greater = ", against larger values")
  cat("  null       ", shorten_list(x$null, 4L), against, "\n", sep = "")
  cat("  p-value    ", format_estimate(x$p, x$error), if (is_least_p(x)) paste0("; ", least_p_words(x)), "\n", sep = "")
  if (!x$informative) cat("  nothing    ", ruled_out_nothing, "\n", sep = "")
  cat("  method     ", x$method, "\n", sep = "")
  if (x$error > 0) cat("  replicates ", simulation_words(x), "\n", sep = "")
  invisible(x)
}

# Did no simulated release show as much as the published one?
is_least_p <- function(x) x$error > 0 && x$p <= 1.000001 / (x$replicates + 1) + x$gamma

least_p_words <- function(x) sprintf("the smallest that %s replicates can give: with more it may be smaller", format_size(x$replicates))

simulation_words <- function(x) {
  paste0(format_size(x$replicates), ", seed ", x$seed, if (x$gamma > 0) paste0("; the largest over the nuisance parameters, plus ", format_number(x$gamma, 2)))
}

#' @rdname p_value
#' @exportS3Method generics::tidy
tidy.noiseaware_p_value <- function(x, ...) {
  data.frame(term = paste(x$null, collapse = "; "), p.value = x$p, mc.error = x$error)
}
