#' Priors for the number of records
#'
#' A prior for the number of records n, if the release does not contain it
#' (`n = NULL` in [as_release()], or `neighbours = "add_remove"` in [release()]). It is given as the argument
#' `prior_n` of [sample_posterior()], or as the argument `n` of [calibrate()].
#'
#' @param distribution A string: `"poisson"`, `"negative_binomial"`, `"uniform"` or `"log_uniform"`. The table below shows the parameters of each.
#' @param ... Parameters without names, in the order of the table.
#' @param lower,upper The smallest and the largest n, whole numbers.
#' @param mean Mean of n, a positive number.
#' @param size Size (dispersion) of the negative binomial distribution, as in [stats::rnbinom()].
#'
#' @details
#' | distribution | parameters | probability of n |
#' | --- | --- | --- |
#' | `"poisson"` | `mean` | Poisson |
#' | `"negative_binomial"` | `mean`, `size` | less informative: the variance is mean + mean^2 / size |
#' | `"uniform"` | `lower` (at least 0), `upper` | the same for every n from `lower` to `upper` |
#' | `"log_uniform"` | `upper` | proportional to 1 / n from 1 to `upper`: the same for every order of magnitude |
#'
#' The default of [sample_posterior()] is `prior_n("log_uniform")`, with the largest `upper` that is allowed, 2^31 - 1.
#'
#' @return A prior for the number of records.
#' @section Errors: `noiseaware_error_prior`.
#' @family priors and parts of models
#' @examples
#' st <- list(size = stat_size(), smoke = stat_counts(~ smoke, levels = list(smoke = c("0", "1"))))
#' noise <- mech_discrete_laplace(epsilon = 0.5)
#' rel <- release(MASS::birthwt, st, list(size = noise, smoke = noise), neighbours = "add_remove")
#' fit <- sample_posterior(rel, model_bernoulli(), prior_n = prior_n("poisson", mean = 200),
#'   chains = 2, iter = 1000, seed = 1)
#' summary(fit)
#' @export
prior_n <- function(distribution, ..., lower = NULL, upper = NULL, mean = NULL, size = NULL) {
  check_given("prior")
  check_choice(distribution, "distribution", names(size_priors), "prior")
  needed <- size_priors[[distribution]]
  values <- Filter(Negate(is.null), list(lower = lower, upper = upper, mean = mean, size = size))
  label <- paste0("prior_n(", dQuote(distribution, FALSE), ")")
  unnamed <- list(...)
  open <- setdiff(needed, names(values))
  if (any(nzchar(rlang::names2(unnamed)))) check_no_dots(...)
  if (length(unnamed) > length(open)) {
    stop_classed("prior", c("{.code {label}} must not have more numbers than its arguments, but has {length(values) + length(unnamed)}.",
                            i = "Its arguments are {.arg {needed}}."))
  }
  values[open[seq_along(unnamed)]] <- unnamed
  strange <- setdiff(names(values), needed)
  if (length(strange)) stop_classed("prior", c("{.arg {strange}} {?is not an argument/are not arguments} of {.code {label}}.", i = "Its arguments are {.arg {needed}}."))
  if (distribution == "log_uniform") values$upper <- values$upper %||% (2^31 - 1)
  absent <- setdiff(needed, names(values))
  if (length(absent)) stop_classed("prior", "{.code {label}} needs {.arg {absent}}.")
  for (name in intersect(needed, c("mean", "size"))) check_positive(values[[name]], name, "prior")
  if (distribution == "uniform") values$lower <- check_count(values$lower, "lower", 0, "prior")
  if ("upper" %in% needed) values$upper <- check_count(values$upper, "upper", values$lower %||% 1, "prior")
  do.call(new_prior, c(values[needed], list(class = c(paste0("prior_n_", distribution), "prior_n"))))
}

size_priors <- list(poisson = "mean", negative_binomial = c("mean", "size"), uniform = c("lower", "upper"), log_uniform = "upper")

# The prior of n for this release, from the argument `prior_n`; NULL if n is known.
check_size_prior <- function(prior_n, release, call = caller_env()) {
  if (is.null(release$n)) {
    must <- "NULL or a prior of the number of records, such as prior_n(\"poisson\", mean = 100)"
    return(check_class(prior_n %||% prior_n("log_uniform"), "prior_n", "prior_n", must, call = call))
  }
  if (!is.null(prior_n)) {
    stop_classed("argument", c("{.arg prior_n} is a prior for an unknown number of records, but the release has {release$n} record{?s}.",
                               i = "For an unknown number, use {.code n = NULL} in {.fn as_release}."), call = call)
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
