# The evidence of a release, log p(z | model). Here one probability or rate: the total is summed out, and the parameter
# integrated out. Of normal records: evidence_totals.R.

#' Evidence of a release, and Bayes factors
#'
#' How probable a release is under a model and its prior: `log p(release | model)`, noise included, to compare models of the same
#' release.
#'
#' @details
#' **Exact**: one probability ([model_bernoulli()]) and one rate ([model_poisson()]) given counts or totals of a known number of records, by any
#' method. The parameter integrates out in closed form and the total is summed out; the Monte Carlo error is 0.
#'
#' **Bridge sampling** (Meng & Wong 1996): the chains run on for `draws` more iterations, and a density is compared with a normal distribution that is
#' fitted to half of these draws, as the bridgesampling package does it. The error is that of Fruehwirth-Schnatter (2004), autocorrelation included. A note
#' says where chains move too slowly for it to be relied on, as where noise hides a residual standard deviation with a prior of its own.
#' * Normal records, that is [model_normal()], [model_mvnormal()] and [model_lm()] without factors: the density is that of the totals, with the parameters
#'   integrated out, for fits by `"collapse"` and by `"clt"` where it moves the totals. A note says so where records outside the bounds, which these
#'   methods do not treat exactly, are likely.
#' * Other fits by `"clt"`, under [model_normal()], [model_exponential()], [model_lm()] with factors, and [model_glm()]: that of the parameters and of the
#'   variances of the noise, approximate as the method is.
#'
#' A fit by `"augment"` has no such density: the same release is then fitted by `"clt"` or `"collapse"`, which is told in a message of class
#' `noiseaware_message_evidence`.
#'
#' Everything else is refused. Evidence depends on the prior, also where the posterior hardly does: a prior that is twice as wide has about half the
#' evidence for each parameter that the release determines.
#'
#' @param fit,fit1,fit2 Fits of one release by [sample_posterior()].
#' @param draws Of bridge sampling: number of draws, over all chains.
#' @param seed Fixes the draws of bridge sampling; see [sample_posterior()].
#' @return `log_evidence()`: a number, of class `noiseaware_evidence`, with its Monte Carlo error (one standard deviation) as the attribute
#'   `error`, and in the attribute `note` what is approximate, if anything is. `bayes_factor()`: `p(release | model of fit1) / p(release | model of
#'   fit2)`, a number of class `noiseaware_bayes_factor`, with the attributes `log`, its logarithm, `error`, the Monte Carlo error of that, and `note`.
#' @section Errors: `noiseaware_error_argument`: no fit, or fits of different releases. `noiseaware_error_method`: a fit whose
#'   evidence is not known.
#' @references
#' Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple identity: a theoretical
#' exploration. *Statistica Sinica* 6, 831-860.
#'
#' Fruehwirth-Schnatter, S. (2004). Estimating marginal likelihoods for mixture and Markov switching models using
#' bridge sampling techniques. *The Econometrics Journal* 7, 143-167. \doi{10.1111/j.1368-423X.2004.00125.x}
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
  if (inherits(fit, "noiseaware_pool")) stop_no_evidence("The fit is of several sites.")
  if (is.null(fit$release)) stop_no_evidence("The fit is of records, and not of a release.")
  if (is.null(fit$release$n)) stop_no_evidence("The number of records is unknown.")
  if (inherits(fit$bound, c("bound_bernoulli", "bound_poisson"))) {
    exact <- tryCatch(rate_evidence(fit, environment()), noiseaware_error_method = identity)
    if (!inherits(exact, "condition")) return(new_evidence(exact, 0))
  }
  if (!is.null(fit$weighted)) {
    cli::cli_inform("The fit's draws were weighted for another prior: the evidence is that of a fit sampled with it.", class = "noiseaware_message_evidence")
    fit <- without_troubles(suppressMessages(refit(fit, list(seed = seed))))
  }
  fit <- density_fit(fit, seed, environment())
  integrate <- if (moves_totals(fit)) totals_evidence else clt_evidence
  integrate(fit, draws, seed, environment())
}

new_evidence <- function(value, error, note = NULL) structure(value, error = error, note = note, class = "noiseaware_evidence")

stop_no_evidence <- function(fault, call = caller_env(), .envir = parent.frame()) {
  stop_classed("method", c("The evidence of this fit is not known.", x = fault, i = "See {.fn log_evidence} for the models that have one."),
               call = call, .envir = .envir)
}

# one probability or one rate
rate_evidence <- function(fit, call = caller_env()) {
  release <- fit$release
  site <- rate_site(release, fit$bound, call)
  s <- site$fields$first + seq_along(site$fields$log_weight) - 1
  log_sum_exp(site$fields$log_weight + log_moment(fit$bound, s, release$n)) + log_noise_constant(release, call)
}

log_sum_exp <- function(x) {
  most <- max(x)
  if (is.finite(most)) most + log(sum(exp(x - most))) else most
}

#' @rdname log_evidence
#' @export
bayes_factor <- function(fit1, fit2, draws = 10000, seed = NULL) {
  check_given()
  for (name in c("fit1", "fit2")) check_class(get(name), name, "noiseaware_fit", "a fit of sample_posterior()", "argument")
  told <- lapply(list(fit1$release, fit2$release), function(r) list(r$value, r$scale, r$n, r$statistic))
  if (!identical(told[[1L]], told[[2L]])) stop_classed("argument", "{.arg fit1} and {.arg fit2} must be fits of the same release.")
  one <- log_evidence(fit1, draws, seed)
  two <- log_evidence(fit2, draws, seed)
  log <- as.numeric(one) - as.numeric(two)
  structure(exp(log), log = log, error = sqrt(attr(one, "error")^2 + attr(two, "error")^2), note = unique(c(attr(one, "note"), attr(two, "note"))),
            class = "noiseaware_bayes_factor")
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

# with as many digits as the error leaves
format_estimate <- function(value, error) {
  if (error == 0) return(paste(format(value, digits = 6), "(exact)"))
  digits <- max(0, 1 - floor(log10(error)))
  sprintf("%.*f (Monte Carlo error %s)", as.integer(digits), value, format(signif(error, 2)))
}

note_lines <- function(x) if (length(attr(x, "note"))) paste0("  ", attr(x, "note"), "\n")

# log E[prob^s (1 - prob)^(n - s)], or log E[rate^s exp(-n rate)], over the prior
log_moment <- function(bound, s, n) {
  prior <- bound$spec$fields
  if (inherits(bound, "bound_bernoulli")) return(lbeta(s + prior$alpha[2L], n - s + prior$alpha[1L]) - lbeta(prior$alpha[2L], prior$alpha[1L]))
  a <- prior$shape
  b <- prior$rate
  lgamma(a + s) - lgamma(a) + a * log(b) - (a + s) * log(b + n)
}

# log of what makes the kernels of the noise distributions
log_noise_constant <- function(release, call) {
  sum(vapply(component_parts(release, repeated = TRUE), function(part) {
    if (part$mechanism$kernel == "published") return(0) # a probability or a density as it is: src/published.c
    b <- release$scale[part$index]
    one <- switch(part$mechanism$name,
                  laplace = -log(2 * b), gaussian = -log(b) - log(2 * pi) / 2,
                  discrete_laplace = log(tanh(1 / (2 * b))), discrete_gaussian = -log(vapply(b, gaussian_sum, 0)),
                  exact = 0 * b,
                  stop_classed("method", "The evidence is not known of noise {.val {part$mechanism$name}}.", call = call))
    sum(one)
  }, 0))
}

# sum of exp(-k^2 / (2 sd^2)) over all integers k
gaussian_sum <- function(sd) sum(exp(-seq(-ceiling(40 * sd), ceiling(40 * sd))^2 / (2 * sd^2)))
