#' Priors of the number of records
#'
#' What the analyst believes of the number of records n, where a release does not tell it
#' (`n = NULL` in [as_release()], or `neighbours = "add_remove"` in [release()]): for the argument
#' `records` of [sample_posterior()], and for the argument `n` of [calibrate()].
#'
#' @param mean Mean of n, a positive number.
#' @param size Size (dispersion) of the negative binomial distribution, as in [stats::rnbinom()]: the variance
#'   of n is mean + mean^2 / size.
#' @param lower,upper The least and the largest n, whole numbers, `lower` at least 0; for
#'   `prior_log_uniform()` the least is 1.
#'
#' @details
#' * `prior_poisson(mean)` and `prior_negative_binomial(mean, size)`, the latter for a vaguer belief.
#' * `prior_uniform(lower, upper)`: every n between them has the same probability.
#' * `prior_log_uniform(upper)`: p(n) proportional to 1 / n, from 1 to `upper`; every order of magnitude has the same
#'   probability. It is the default of [sample_posterior()], with the largest `upper` that is allowed, 2^31 - 1.
#'
#' @return A prior of the number of records.
#' @section Errors: `noiseaware_error_prior`.
#' @examples
#' st <- list(size = stat_size(), smoke = stat_counts(~ smoke, levels = list(smoke = c("0", "1"))))
#' noise <- mech_discrete_laplace(epsilon = 0.5)
#' rel <- release(MASS::birthwt, st, list(size = noise, smoke = noise), neighbours = "add_remove")
#' fit <- sample_posterior(rel, model_bernoulli(), records = prior_poisson(200),
#'   chains = 2, iter = 1000, seed = 1)
#' summary(fit)
#' @name prior_records
NULL

new_size_prior <- function(..., class) new_prior(..., class = c(class, "prior_records"))

#' @rdname prior_records
#' @export
prior_poisson <- function(mean) {
  check_given("prior")
  new_size_prior(mean = check_positive(mean, "mean", "prior"), class = "prior_poisson")
}

#' @rdname prior_records
#' @export
prior_negative_binomial <- function(mean, size) {
  check_given("prior")
  new_size_prior(mean = check_positive(mean, "mean", "prior"), size = check_positive(size, "size", "prior"), class = "prior_negative_binomial")
}

#' @rdname prior_records
#' @export
prior_uniform <- function(lower, upper) {
  check_given("prior")
  lower <- check_count(lower, "lower", 0, "prior")
  new_size_prior(lower = lower, upper = check_count(upper, "upper", lower, "prior"), class = "prior_uniform")
}

#' @rdname prior_records
#' @export
prior_log_uniform <- function(upper = 2^31 - 1) {
  new_size_prior(upper = check_count(upper, "upper", kind = "prior"), class = "prior_log_uniform")
}

# Of the argument `records` for that release: a prior, or NULL where n is known.
check_size_prior <- function(records, release, call = caller_env()) {
  if (is.null(release$n)) {
    return(check_class(records %||% prior_log_uniform(), "records", "prior_records", "NULL or a prior of the number of records, such as prior_poisson()", call = call))
  }
  if (!is.null(records)) {
    stop_classed("argument", c("{.arg records} is a prior of a number of records that is not known, but the release has {release$n} record{?s}.",
                               i = "{.fn as_release} takes {.code n = NULL}."), call = call)
  }
}

size_range <- function(prior) {
  c(prior$lower %||% if (inherits(prior, "prior_log_uniform")) 1 else 0, prior$upper %||% Inf)
}

# for struct size_prior in C
size_prior_spec <- function(prior) {
  if (is.null(prior)) return(NULL)
  list(name = sub("^prior_", "", class(prior)[1L]), parameters = as.double(c(prior$mean %||% 0, prior$size %||% 0, size_range(prior))))
}

# mean and sd, where there is a scale to speak of
size_moments <- function(prior) {
  if (!is.null(prior$mean)) return(c(prior$mean, sqrt(prior$mean + if (is.null(prior$size)) 0 else prior$mean^2 / prior$size)))
  if (inherits(prior, "prior_uniform")) return(c(prior$lower + prior$upper, max(prior$upper - prior$lower, 1) / sqrt(3)) / 2)
  NULL
}

# Where n is by a release and the prior, and how well that is known: averages with the weights of
# their precision. A released n tells of it, and so does the sum of each margin; if there is none, the limits of what a record
# gives to a total do.
typical_size <- function(release, prior) {
  told <- do.call(cbind, lapply(release_parts(release), function(part) {
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    margin <- size_groups(part$statistic)
    if (is.null(margin) || anyNA(sd) || is_exact(part$mechanism)) return(NULL)
    ends <- noisy_ends(part)
    # what was hidden or clipped is from 0 to about where that began
    lower <- pmax(ends$lower, pmin(0, ends$upper))
    upper <- ifelse(is.finite(ends$upper), ends$upper, lower)
    rbind(tapply((lower + upper) / 2, margin, sum), sqrt(tapply(sd^2 + (upper - lower)^2 / 12, margin, sum)))
  }))
  told <- cbind(told, size_moments(prior))
  if (is.null(told)) told <- size_by_limits(release)
  weight <- 1 / told[2L, ]^2
  within <- function(n) min(max(round(n), size_range(prior)[1L], 1), size_range(prior)[2L])
  list(n = within(sum(weight * told[1L, ]) / sum(weight)), sd = 1 / sqrt(sum(weight)))
}

# The same, n and its sd, from totals alone. A total to which every record gives something between two limits of the same sign
# tells of n as if that were uniform between them, on average; and n must be among those of which every total can be.
size_by_limits <- function(release) {
  totals <- do.call(rbind, lapply(release_parts(release), function(part) {
    ends <- noisy_ends(part)
    limits <- component_limits(part$statistic)
    if (is.null(limits)) return(NULL)
    sd <- rep_len(mechanism_sd(part$mechanism, part$scale), length(part$value))
    data.frame(value = (ends$lower + ends$upper) / 2, sd = sd, lower = limits[, 1L], upper = limits[, 2L])
  }))
  if (is.null(totals)) return(cbind(rep(max(10, 2 * sum(abs(release$value), na.rm = TRUE)), 2L))) # nothing is known of them
  totals <- totals[is.finite(totals$value) & is.finite(totals$sd) & totals$upper > totals$lower, ]
  # of totals that fall with n the negative
  down <- totals$upper <= 0
  totals[down, ] <- cbind(-totals$value, totals$sd, -totals$upper, -totals$lower)[down, ]
  farthest <- with(totals, ifelse(value > 0, upper, -lower))
  least <- with(totals, max(1, ((abs(value) - 3 * sd) / farthest)[farthest > 0]))
  most <- with(totals, max(least, min(Inf, ((value + 3 * sd) / lower)[lower > 0])))
  told <- totals[totals$lower >= 0 & totals$value > totals$sd, ]
  if (nrow(told) == 0L) return(cbind(rep(min(max(10, 2 * least), most), 2L))) # wild
  middle <- (told$lower + told$upper) / 2
  weight <- 1 / ((told$sd / told$value)^2 + ((told$upper - told$lower) / middle)^2 / 12)
  n <- exp(sum(weight * log(told$value / middle)) / sum(weight))
  n <- min(max(n, least), most)
  cbind(c(n, max(1, n / sqrt(sum(weight)))))
}

# names of the components that are n itself
size_components <- function(release) {
  unlist(lapply(release_parts(release), function(p) if (inherits(p$statistic, "stat_size")) names(release$value)[p$index]))
}

# ---- n without a size ------------------------------------------------------------------------------------
# Without a number that is n, or adds up to it, totals give n through their ratios alone: n m and n (v + m^2) are two numbers for three unknown ones. The
# priors of means and variances decide the rest, and what they say of n is easily mistaken for knowledge.

# Is a published number n, or do some add up to it?
has_size <- function(release) {
  any(vapply(release_parts(release), function(part) {
    statistic <- part$statistic
    if (statistic$kind == "records" || (statistic$kind == "cells" && !inherits(statistic, "stat_linear"))) return(TRUE)
    limits <- component_limits(statistic)
    !is.null(limits) && any(limits[, 1L] == limits[, 2L] & limits[, 1L] != 0)
  }, TRUE))
}

lacks_size <- function(fit) !is.null(fit$problem$records) && !is.null(fit$release) && !has_size(fit$release)

# parameters that n goes with, by rank correlations of the draws
size_partners <- function(fit, most = 2L) {
  draws <- parameter_matrix(fit)
  names <- intersect(fit$bound$parameters, colnames(draws))
  names <- names[apply(draws[, names, drop = FALSE], 2L, function(x) diff(range(x)) > 0)]
  if (length(names) == 0L || diff(range(draws[, "n"])) == 0) return(character())
  with_n <- abs(drop(stats::cor(draws[, names, drop = FALSE], draws[, "n"], method = "spearman")))
  utils::head(names[order(-with_n)][sort(with_n, decreasing = TRUE) > 0.3], most)
}

# one sentence, or NULL
no_size_line <- function(fit) {
  if (!lacks_size(fit)) return(NULL)
  partners <- size_partners(fit)
  ends <- draws_interval(parameter_matrix(fit)[, "n", drop = FALSE], 0.95)
  ends <- format_size(round(ends))
  sprintf("No number of the release is a size: n, %s to %s, rests on the ratios of the totals and on priors%s.", trimws(ends[1L]), trimws(ends[2L]),
          if (length(partners)) paste(", most on what is known of", paste(partners, collapse = " and ")) else "")
}

tell_size <- function(fit) {
  line <- no_size_line(fit)
  if (is.null(line)) return(invisible())
  cli::cli_inform(c(escape_braces(line), i = "{.fn stat_size} publishes the number of records; a prior of it, {.arg records}, says what is known otherwise."),
                  class = "noiseaware_message_size")
}

# A group for each component, the components of a group adding up to n; NULL if there is none.
size_groups <- function(statistic) UseMethod("size_groups")

#' @export
size_groups.default <- function(statistic) NULL

#' @export
size_groups.stat_size <- function(statistic) 1L

#' @export
size_groups.stat_counts <- function(statistic) {
  rep(seq_along(statistic$margins), vapply(statistic$margins, function(m) prod(lengths(statistic$levels)[m]), 0))
}

# one draw, from R's generator
draw_size <- function(prior) UseMethod("draw_size")

#' @export
draw_size.prior_poisson <- function(prior) stats::rpois(1L, prior$mean)

#' @export
draw_size.prior_negative_binomial <- function(prior) stats::rnbinom(1L, prior$size, mu = prior$mean)

#' @export
draw_size.prior_uniform <- function(prior) prior$lower + floor(stats::runif(1L) * (prior$upper - prior$lower + 1))

# the whole part of a log-uniform number has n with log(1 + 1 / n), at least log(2) / n
#' @export
draw_size.prior_log_uniform <- function(prior) {
  repeat {
    n <- floor(exp(stats::runif(1L) * log(prior$upper + 1)))
    if (n <= prior$upper && stats::runif(1L) * log1p(1 / n) * n < log(2)) return(n)
  }
}
