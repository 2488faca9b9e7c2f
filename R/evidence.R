# The evidence of a release, log p(z | model): the total is summed out, and the parameter integrated out.

#' Evidence of a release, and Bayes factors
#'
#' How probable a release is under a model and its prior: `log p(release | model)`, noise included, to compare models of the same
#' release.
#'
#' Served are one probability ([model_bernoulli()]) and one rate ([model_poisson()]) given counts or totals of a known number of records, with
#' Laplace or Gaussian noise, also discrete, or none. There the parameter integrates out in closed form and the total is summed out: the
#' evidence is exact, with a Monte Carlo error of 0. Everything else is refused. Evidence depends on the prior, also where the posterior hardly
#' does.
#'
#' @param fit,fit1,fit2 Fits of one release by [sample_posterior()].
#' @return `log_evidence()`: a number, of class `noiseaware_evidence`, with its Monte Carlo error as the attribute `error`.
#'   `bayes_factor()`: `p(release | model of fit1) / p(release | model of fit2)`, a number.
#' @section Errors: `noiseaware_error_argument`: no fit, or fits of different releases. `noiseaware_error_method`: a fit whose
#'   evidence is not known.
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' release <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' even <- sample_posterior(release, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' few <- sample_posterior(release, model_bernoulli(prior = prior_beta(1, 9)),
#'                         chains = 2, iter = 400, seed = 1)
#' log_evidence(even)
#' bayes_factor(even, few)
#' @export
log_evidence <- function(fit) {
  check_given()
  check_class(fit, "fit", "noiseaware_fit", "a fit of sample_posterior()", "argument")
  bound <- fit$bound
  if (inherits(fit, "noiseaware_pool") || !inherits(bound, c("bound_bernoulli", "bound_poisson"))) {
    stop_classed("method", c("The evidence is known of one release under {.fn model_bernoulli} or {.fn model_poisson}.",
                             x = if (inherits(fit, "noiseaware_pool")) "The fit is of several sites." else "The model is: {describe_model(bound)}."))
  }
  release <- fit$release
  if (is.null(release$n)) stop_classed("method", "The evidence is known only where the number of records is.")
  site <- rate_site(release, bound, environment())
  s <- site$fields$first + seq_along(site$fields$log_weight) - 1
  log_terms <- site$fields$log_weight + log_moment(bound, s, release$n)
  most <- max(log_terms)
  value <- most + log(sum(exp(log_terms - most))) + log_noise_constant(release, environment())
  structure(value, error = 0, class = "noiseaware_evidence")
}

#' @rdname log_evidence
#' @export
bayes_factor <- function(fit1, fit2) {
  check_given()
  for (name in c("fit1", "fit2")) check_class(get(name), name, "noiseaware_fit", "a fit of sample_posterior()", "argument")
  told <- lapply(list(fit1$release, fit2$release), function(r) list(r$value, r$scale, r$n, r$statistic))
  if (!identical(told[[1L]], told[[2L]])) stop_classed("argument", "{.arg fit1} and {.arg fit2} must be fits of the same release.")
  exp(as.numeric(log_evidence(fit1)) - as.numeric(log_evidence(fit2)))
}

#' @export
print.noiseaware_evidence <- function(x, ...) {
  cat("<log evidence> ", format(as.numeric(x), digits = 6), " (exact)\n", sep = "")
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

# log of what makes the kernels of the noise distributions
log_noise_constant <- function(release, call) {
  sum(vapply(component_parts(release, repeated = TRUE), function(part) {
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
