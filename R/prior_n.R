#' Priors for the number of records
#'
#' A prior for the number of records n, if the release does not contain it
#' (`n = NULL` in [as_release()], or `neighbours = "add_remove"` in [release()]). It is given as the argument
#' `prior_n` of [sample_posterior()], or as the argument `n` of [calibrate()].
#'
#' @param mean Mean of n, a positive number.
#' @param size Size (dispersion) of the negative binomial distribution, as in [stats::rnbinom()]: the variance
#'   of n is mean + mean^2 / size.
#' @param lower,upper The smallest and the largest n, whole numbers. `lower` is at least 0; for
#'   `prior_n_log_uniform()` the smallest n is 1.
#'
#' @details
#' * `prior_n_poisson(mean)` and `prior_n_negative_binomial(mean, size)`, which is less informative.
#' * `prior_n_uniform(lower, upper)`: every n from `lower` to `upper` has the same probability.
#' * `prior_n_log_uniform(upper)`: p(n) proportional to 1 / n, from 1 to `upper`; every order of magnitude has the same
#'   probability. It is the default of [sample_posterior()], with the largest `upper` that is allowed, 2^31 - 1.
#'
#' @return A prior for the number of records.
#' @section Errors: `noiseaware_error_prior`.
#' @family priors and parts of models
#' @examples
#' st <- list(size = stat_size(), smoke = stat_counts(~ smoke, levels = list(smoke = c("0", "1"))))
#' noise <- mech_discrete_laplace(epsilon = 0.5)
#' rel <- release(MASS::birthwt, st, list(size = noise, smoke = noise), neighbours = "add_remove")
#' fit <- sample_posterior(rel, model_bernoulli(), prior_n = prior_n_poisson(200),
#'   chains = 2, iter = 1000, seed = 1)
#' summary(fit)
#' @name prior_n
NULL

new_size_prior <- function(..., class) new_prior(..., class = c(class, "prior_n"))

#' @rdname prior_n
#' @export
prior_n_poisson <- function(mean) {
  check_given("prior")
  new_size_prior(mean = check_positive(mean, "mean", "prior"), class = "prior_n_poisson")
}

#' @rdname prior_n
#' @export
prior_n_negative_binomial <- function(mean, size) {
  check_given("prior")
  new_size_prior(mean = check_positive(mean, "mean", "prior"), size = check_positive(size, "size", "prior"), class = "prior_n_negative_binomial")
}

#' @rdname prior_n
#' @export
prior_n_uniform <- function(lower, upper) {
  check_given("prior")
  lower <- check_count(lower, "lower", 0, "prior")
  new_size_prior(lower = lower, upper = check_count(upper, "upper", lower, "prior"), class = "prior_n_uniform")
}

#' @rdname prior_n
#' @export
prior_n_log_uniform <- function(upper = 2^31 - 1) {
  new_size_prior(upper = check_count(upper, "upper", kind = "prior"), class = "prior_n_log_uniform")
}

# The prior of n for this release, from the argument `prior_n`; NULL if n is known.
check_size_prior <- function(prior_n, release, call = caller_env()) {
  if (is.null(release$n)) {
    return(check_class(prior_n %||% prior_n_log_uniform(), "prior_n", "prior_n", "NULL or a prior of the number of records, such as prior_n_poisson()", call = call))
  }
  if (!is.null(prior_n)) {
    stop_classed("argument", c("{.arg prior_n} is a prior for an unknown number of records, but the release has {release$n} record{?s}.",
                               i = "{.fn as_release} takes {.code n = NULL}."), call = call)
  }
}

size_range <- function(prior) {
  c(prior$lower %||% if (inherits(prior, "prior_n_log_uniform")) 1 else 0, prior$upper %||% Inf)
}

# for struct size_prior in C
size_prior_spec <- function(prior) {
  if (is.null(prior)) return(NULL)
  list(name = sub("^prior_n_", "", class(prior)[1L]), parameters = as.double(c(prior$mean %||% 0, prior$size %||% 0, size_range(prior))))
}

# ---- n without a size ------------------------------------------------------------------------------------
# If no released number is n, and none add up to it, totals determine n only through their ratios: n m and n (v + m^2) are two numbers for three unknowns.
# The priors of means and variances decide the rest, and their influence on n is easily mistaken for information.

# one draw, from R's generator
draw_size <- function(prior) UseMethod("draw_size")

#' @export
draw_size.prior_n_poisson <- function(prior) stats::rpois(1L, prior$mean)

#' @export
draw_size.prior_n_negative_binomial <- function(prior) stats::rnbinom(1L, prior$size, mu = prior$mean)

#' @export
draw_size.prior_n_uniform <- function(prior) prior$lower + floor(stats::runif(1L) * (prior$upper - prior$lower + 1))

# the whole part of a log-uniform number has n with log(1 + 1 / n), at least log(2) / n
#' @export
draw_size.prior_n_log_uniform <- function(prior) {
  repeat {
    n <- floor(exp(stats::runif(1L) * log(prior$upper + 1)))
    if (n <= prior$upper && stats::runif(1L) * log1p(1 / n) * n < log(2)) return(n)
  }
}

# normalised, of whole numbers
log_size_mass <- function(prior, n) {
  inside <- n >= size_range(prior)[1L] & n <= size_range(prior)[2L]
  log_mass <- switch(class(prior)[1L],
    prior_n_poisson = stats::dpois(n, prior$mean, log = TRUE),
    prior_n_negative_binomial = stats::dnbinom(n, mu = prior$mean, size = prior$size, log = TRUE),
    prior_n_uniform = rep(-log(prior$upper - prior$lower + 1), length(n)),
    prior_n_log_uniform = -log(pmax(n, 1)) - log(digamma(prior$upper + 1) - digamma(1)))
  ifelse(inside, log_mass, -Inf)
}
