# The evidence of a release, log p(z | model). This file: one probability or rate, with the total summed out and the parameter integrated out. Tables:
# fit_evidence_counts.R; sites: fit_evidence_pool.R; normal records: fit_evidence_totals.R.

#' Evidence of a release, and Bayes factors
#'
#' The log marginal likelihood of a release under a model and its prior, `log p(release | model)`, noise included. Use it to compare models for the same
#' release.
#'
#' @details
#' **Exact**: the Monte Carlo error is 0. Parameters are integrated out in closed form, and the confidential totals are summed or integrated out.
#' * One probability ([model_bernoulli()]) and one rate ([model_poisson()], [model_exponential()]) given counts or totals.
#' * The counts of one variable ([model_categorical()]) or a saturated
#'   [model_table()], if every published number refers to one cell. Not all cells need be published.
#' * An unknown number of records, if the release contains a noisy size or the count of each cell. The sum is over all sizes that the noise allows.
#' * Sites with one rate or probability and `pool = "complete"`; and `pool = "none"`, if it is exact for each site.
#'
#' **Tempering**: other tables ([model_table()], [model_naive_bayes()]) released as sums of cells, such as margins, with a known number of records. The same
#' engine samples with increasingly wide noise, and bridge sampling connects each pair of neighbouring widths. `draws` is the number of draws at each width;
#' half of them are used for each neighbour.
#'
#' **Sites with different rates**, `pool = "partial"`: each site's rate is integrated out by quadrature given the mean and the standard deviation between sites,
#' which are then integrated out by bridge sampling. `bayes_factor()` compares ways to pool the same sites.
#'
#' **Bridge sampling** (Meng & Wong 1996): the chains continue for `draws` more iterations, and a density is compared with a mixture of four normal
#' distributions fitted to half of these draws. A single normal distribution, as in the bridgesampling package, misses heavy tails. The error follows
#' Fruehwirth-Schnatter (2004) and accounts for autocorrelation. A note says so if the chains move so slowly that the error may be underestimated.
#' * Normal records, that is [model_normal()], [model_mvnormal()] and [model_lm()] without factors: the density of the totals, with the parameters integrated
#'   out, for fits by `"collapse"` and by `"clt"` with sampler "totals". These methods do not treat records outside the bounds exactly; a note says
#'   so if such records are likely.
#' * Other fits by `"clt"`, under [model_normal()], [model_exponential()], [model_lm()] with factors, and [model_glm()]: the density of the parameters and of
#'   the variances of the noise, under the approximation of this method.
#'
#' A fit by `"augment"` has no such density. The same release is then fitted by `"clt"` or `"collapse"`, and a message of class `noiseaware_message_evidence`
#' says so.
#'
#' No other fits are supported. This excludes pooled regressions, walks, Student-t errors (the posterior of `df` shows whether they are needed), and tables
#' released as sums of cells with an unknown number of records. Evidence depends on the prior even if the posterior hardly does: doubling the prior's width about
#' halves the evidence, for each parameter that the release determines.
#'
#' @param fit,fit1,fit2 Fits of one release, or of several sites, by [sample_posterior()]. `fit1` and `fit2` must be fits of the same data.
#' @param draws Number of draws, over all chains, for bridge sampling and tempering.
#' @param seed Fixes these draws; see [sample_posterior()].
#' @param ... Must be empty.
#' @return `log_evidence()`: a number, of class `noiseaware_evidence`, with its Monte Carlo error (one standard deviation) as the attribute
#'   `error`, and a `note` on any approximations. `bayes_factor()`: `p(release | model of fit1) / p(release | model of fit2)`, a number of class
#'   `noiseaware_bayes_factor`, with the attributes `log` (its logarithm), `error` (the Monte Carlo error of the logarithm) and `note`.
#' @section Errors: `noiseaware_error_argument`: not a fit, or fits of different releases. `noiseaware_error_method`: a fit with no known evidence.
#' @references
#' Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple identity: a theoretical
#' exploration. *Statistica Sinica* 6, 831-860.
#'
#' Fruehwirth-Schnatter, S. (2004). Estimating marginal likelihoods for mixture and Markov switching models using
#' bridge sampling techniques. *The Econometrics Journal* 7, 143-167. \doi{10.1111/j.1368-423X.2004.00125.x}
#' @family checks and tests
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' release <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' even <- sample_posterior(release, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' few <- sample_posterior(release, model_bernoulli(prior = prior_beta(1, 9)),
#'                         chains = 2, iter = 400, seed = 1)
#' log_evidence(even)
#' bayes_factor(even, few)
#' @export
log_evidence <- function(fit, draws = 10000, seed = NULL) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit of sample_posterior()", "argument")
  draws <- check_count(draws, "draws", lower = 100)
  seed <- check_seed(seed)
  if (inherits(fit, "noiseaware_pool")) return(pool_evidence(fit, draws, seed, environment()))
  if (is.null(fit$release)) stop_no_evidence("The fit is of records, not of a release.")
  if (is_read_off(fit)) stop_no_evidence("The regression was derived from a joint fit.")
  exact <- exact_evidence(fit, environment())
  if (!is.null(exact)) return(exact)
  if (is_counted(fit)) return(counts_evidence(fit, draws, seed, environment()))
  if (is_student(fit$bound$model)) {
    stop_no_evidence("The density of the totals under Student-t errors cannot be computed.",
                     instead = paste("With {.code errors = student()} the draws of {.var df} compare them with normal errors: above about 30 the two hardly differ.",
                                     "If the posterior of {.var df} is like its prior, the release cannot tell them apart."))
  }
  if (moves_theta(fit$bound)) stop_no_evidence("The parameters of the table's probabilities are not integrated out.")
  if (release_crosses(fit$release, fit$bound)) stop_no_evidence("Released margins cross the cliques of the model.")
  if (is.null(fit$release$n)) stop_no_evidence("The number of records is unknown.")
  if (!is.null(fit$weighted)) {
    cli::cli_inform("The fit's draws were reweighted for another prior: the evidence needs a fit sampled with that prior.", class = "noiseaware_message_evidence")
    fit <- without_troubles(suppressMessages(refit(fit, list(seed = seed))))
  }
  fit <- density_fit(engine_of(fit), fit, seed, environment())
  integrate <- if (moves_totals(fit)) totals_evidence else clt_evidence
  integrate(fit, draws, seed, environment())
}

# One total that is summed or integrated out; NULL: it is not of that kind.
exact_evidence <- function(fit, call) {
  bound <- fit$bound
  known <- !is.null(fit$release$n)
  integrate <- if (known && inherits(bound, c("bound_bernoulli", "bound_poisson"))) rate_evidence else
    if (inherits(bound, "bound_poisson") || (inherits(bound, "bound_exponential") && !inherits(engine_of(fit), "engine_clt"))) total_evidence
  if (is.null(integrate)) return(NULL)
  value <- tryCatch(integrate(fit, call), noiseaware_error_method = function(e) NULL)
  if (is.null(value)) return(NULL)
  outside <- inherits(bound, "bound_exponential") && exponential_outside(fit) > likely_outside
  if (outside && known && engine_imputes(engine_of(fit))) return(NULL) # "clt" knows of bounds
  new_evidence(value, 0, if (outside) "NOT exact: bounds are ignored, and records may lie outside them")
}

# Is the release of counts, which the table engines take?
is_counted <- function(fit) {
  inherits(fit$bound, c("bound_categorical", "bound_table")) && !moves_theta(fit$bound) &&
    without_refusal(collapse_distribution(fit$release, fit$bound, check = TRUE)) && !release_crosses(fit$release, fit$bound)
}

# Probability that a record exceeds the upper bound, over the draws.
exponential_outside <- function(fit) {
  if (isTRUE(fit$bound$natural)) return(0)
  draws <- parameter_matrix(fit)
  n <- if (is.null(fit$release$n)) draws[, "n"] else fit$release$n
  mean(-expm1(n * log1p(-exp(-draws[, "rate"] * fit$bound$columns$upper))))
}

# The total of Poisson or exponential records, their number too where it is unknown but released:
#   sum_n p(n) eta_n(n) sum_s p(s | n) eta(s),
# with p(s | n) the rate integrated out: negative binomial; or n of them a gamma, whose scale is one, by the trapezoidal rule in log s.
total_evidence <- function(fit, call) {
  release <- fit$release
  bound <- fit$bound
  prior <- bound$spec$fields
  parts <- component_parts(release_for(bound, release), repeated = TRUE)
  total_distribution(bound, parts, release$n %||% 1, fit$problem$prior_n, call)
  is_size <- vapply(parts, function(p) inherits(p$statistic, "stat_size"), TRUE)
  n <- release$n
  log_size <- 0
  if (is.null(n)) {
    if (!any(is_size)) return(NULL)
    range <- whole_range(noise_range(parts[is_size], list(slope = rep(1, length(release$value)))))
    n <- seq(max(range[1L], size_range(fit$problem$prior_n)[1L]), range[2L])
    log_size <- log_size_mass(fit$problem$prior_n, n) + noise_of(parts[is_size], n)
  }
  own <- parts[!is_size]
  if (length(own) == 0L) return(log_sum_exp(log_size) + log_noise_constant(release, call))
  range <- noise_range(own, list(slope = rep(1, length(release$value))))
  whole <- inherits(bound, "bound_poisson")
  if (whole) range <- whole_range(range)
  if (!whole && has_exact(release)) return(NULL)
  if (whole && diff(range) * length(n) > 2e7) return(NULL)
  log_of <- function(s, n) {
    if (n == 0) return(if (whole) ifelse(s == 0, 0, -Inf) else rep(-Inf, length(s)))
    if (whole) return(stats::dnbinom(s, prior$shape, prior$rate / (prior$rate + n), log = TRUE))
    n * log(s) - (n + prior$shape) * log(prior$rate + s) + prior$shape * log(prior$rate) + lgamma(n + prior$shape) - lgamma(n) - lgamma(prior$shape)
  }
  each <- if (whole) {
    s <- range[1L]:range[2L]
    noise <- noise_of(own, s)
    vapply(n, function(n) log_sum_exp(log_of(s, n) + noise), 0)
  } else {
    u <- total_nodes(own, range, if (length(n) > 100L) 4001L else 40001L)
    noise <- noise_of(own, exp(u))
    step <- u[2L] - u[1L]
    none <- noise_of(own, 0)
    vapply(n, function(n) if (n == 0) none else log_sum_exp(log_of(exp(u), n) + noise) + log(step), 0)
  }
  log_sum_exp(log_size + each) + log_noise_constant(release, call)
}

noise_of <- function(parts, total) {
  Reduce(`+`, lapply(parts, function(p) Reduce(`+`, lapply(seq_along(p$index), function(k) log_noise_at(p, k, total)))))
}

# log s, from where its density is negligible to the last that the noise leaves possible
total_nodes <- function(parts, range, points) {
  ends <- c(range[1L], range[2L])
  seq(log(max(ends[1L], 1e-8 * ends[2L])), log(ends[2L]), length.out = points)
}

# one probability or one rate
rate_evidence <- function(fit, call = caller_env()) {
  release <- fit$release
  site <- rate_site(release, fit$bound, call)
  s <- site$fields$first + seq_along(site$fields$log_weight) - 1
  log_sum_exp(site$fields$log_weight + log_moment(fit$bound, s, release$n)) + log_noise_constant(release, call)
}

#' @rdname log_evidence
#' @export
bayes_factor <- function(fit1, fit2, ..., draws = 10000, seed = NULL) {
  check_given()
  # also of two log evidences as plain numbers: brms uses this generic
  plain <- is.numeric(fit1) && is.numeric(fit2) && !is.object(fit1) && isNamespaceLoaded("bridgesampling")
  if (plain || is_theirs(fit1, "bridgesampling", "bayes_factor")) return(call_theirs("bridgesampling", "bayes_factor"))
  check_no_dots(...)
  if (inherits(fit1, "noiseaware_evidence")) refuse_evidence("fit1", environment())
  check_class(fit1, "fit1", "noiseaware_fit", "a fit of sample_posterior()", "argument")
  check_class(fit2, "fit2", "noiseaware_fit", "a fit of sample_posterior()", "argument")
  published <- function(release) if (is_sites(release)) lapply(release, published) else list(release$value, release$scale, release$n, release$statistic)
  told <- lapply(list(fit1$release, fit2$release), published)
  if (!identical(told[[1L]], told[[2L]])) {
    counts <- lengths(lapply(list(fit1$release, fit2$release), function(r) if (is_sites(r)) r else r$value))
    stop_classed("argument", c("{.arg fit1} and {.arg fit2} must be fits of the same numbers.",
                               x = if (counts[1L] != counts[2L]) "The first uses {counts[1L]}, the second {counts[2L]}.",
                               i = "To test whether a slope is 0, use {.fn test_hypothesis} or {.fn p_value}."))
  }
  one <- log_evidence(fit1, draws, seed)
  two <- log_evidence(fit2, draws, seed)
  log <- as.numeric(one) - as.numeric(two)
  structure(exp(log), log = log, error = sqrt(attr(one, "error")^2 + attr(two, "error")^2), note = unique(c(attr(one, "note"), attr(two, "note"))),
            class = "noiseaware_bayes_factor")
}

#' @exportS3Method bridgesampling::bayes_factor
bayes_factor.noiseaware_fit <- function(x1, x2, log = FALSE, ...) bayes_factor(x1, x2, ...)

#' @exportS3Method bridgesampling::bayes_factor
bayes_factor.noiseaware_evidence <- function(x1, x2, ...) refuse_evidence("x1", environment())

# Two evidences do not say whether they are of the same numbers.
refuse_evidence <- function(name, call) {
  stop_classed("argument", c("{.arg {name}} must be a fit of sample_posterior(), but is the log evidence of one.",
                             x = "Two log evidences cannot be compared without knowing whether they are of the same numbers.",
                             i = "Write {.code bayes_factor(fit1, fit2)}."), call = call)
}

#' @export
print.noiseaware_evidence <- function(x, ...) {
  cat("<log evidence> ", format_estimate(as.numeric(x), attr(x, "error")), "\n", note_lines(x), sep = "")
  invisible(x)
}

#' @export
print.noiseaware_bayes_factor <- function(x, ...) {
  cat("<Bayes factor> ", format(as.numeric(x), digits = 4), "\n  log  ", format_estimate(attr(x, "log"), attr(x, "error")), "\n", note_lines(x), sep = "")
  invisible(x)
}

# log E[prob^s (1 - prob)^(n - s)], or log E[rate^s exp(-n rate)], over the prior
log_moment <- function(bound, s, n) {
  prior <- bound$spec$fields
  if (inherits(bound, "bound_bernoulli")) return(lbeta(s + prior$alpha[2L], n - s + prior$alpha[1L]) - lbeta(prior$alpha[2L], prior$alpha[1L]))
  a <- prior$shape
  b <- prior$rate
  lgamma(a + s) - lgamma(a) + a * log(b) - (a + s) * log(b + n)
}

pool_evidence <- function(fit, draws, seed, call) {
  if (fit$pool == "none") return(sum_of_evidences(fit, draws, seed))
  if (!moves_rates(fit)) {
    stop_no_evidence("Sites are pooled under: {describe_model(fit$bound)}. The evidence is available for one rate or probability, and for separate sites.", call)
  }
  if (isTRUE(fit$problem$sized)) stop_no_evidence("The sizes of groups are unknown.", call)
  if (fit$pool == "separate") return(new_evidence(sum(vapply(seq_along(fit$release), function(j) {
    log_rate_integral(fit$bound, fit$problem$sites[j]) + log_noise_constant(fit$release[[j]], call)
  }, 0)), 0))
  if (fit$pool == "walk") stop_no_evidence("Sites in a walk are not independent given its parameters.", call)
  if (fit$pool == "complete" || !length(fit$problem$partial$vary)) return(new_evidence(one_rate_evidence(fit, call), 0))
  partial_evidence(fit, draws, seed, call)
}

sum_of_evidences <- function(fit, draws, seed) {
  each <- lapply(fit$fits, log_evidence, draws = draws, seed = seed)
  new_evidence(sum(vapply(each, as.numeric, 0)), sqrt(sum(vapply(each, attr, 0, "error")^2)), unique(unlist(lapply(each, attr, "note"))))
}
