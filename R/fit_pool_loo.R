# Comparing models over sites: the log likelihood of each site's release, for package loo.

#' Compare models over sites
#'
#' `log_lik()` gives, for each draw, the log likelihood of each site's release; `loo()` compares models by how well they predict the release of a
#' site that is left out, with package loo.
#'
#' @param object,x A fit of several sites of one rate or probability, [model_bernoulli()], [model_poisson()] or [model_exponential()], with complete or partial pooling.
#' @param ... For `loo()`, passed on to `loo::loo()`. Must be empty for `log_lik()`.
#' @details
#' The site is the unit: its release is one observation. The likelihood is that of the published numbers, with the confidential total summed
#' out and noise included. With partial pooling the site's own parameter is integrated out as well, over its distribution between sites, so that what is
#' predicted is a new site; otherwise the release of a site would be predicted from a parameter that it determines itself.
#'
#' Of **one release** there is no such thing. Its numbers are sums over all records, so the likelihood does not fall into parts that belong to records, none of which
#' could be left out without the confidential data. `log_lik()` and `loo()` say so; [log_evidence()] and [bayes_factor()] compare models of one release.
#' Normal records of several sites are refused: their totals would have to be integrated out for each draw.
#' @return `log_lik()`: a matrix, draws x sites. `loo()`: what `loo::loo()` returns.
#' @section Errors: `noiseaware_error_meaningless`: a fit of one release. `noiseaware_error_method`: separate sites, or sites whose likelihood is not known.
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' north <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' south <- as_release(c("smoke=yes" = 31.7), asked, mech_gaussian(sd = 4), n = 90)
#' fit <- sample_posterior(list(north = north, south = south), model_bernoulli(),
#'                         pool = "complete", chains = 2, iter = 400, seed = 1)
#' if (requireNamespace("rstantools", quietly = TRUE)) {
#'   colMeans(rstantools::log_lik(fit))
#' }
#' @name site_loo
NULL

#' @rdname site_loo
#' @exportS3Method rstantools::log_lik
log_lik.noiseaware_pool <- function(object, ...) {
  check_no_dots(...)
  site_log_lik(object, environment())
}

#' @rdname site_loo
#' @exportS3Method loo::loo
loo.noiseaware_pool <- function(x, ...) {
  values <- site_log_lik(x, environment())
  chain <- rep(seq_len(dim(x$draws)[2L]), each = dim(x$draws)[1L])
  loo::loo(values, r_eff = loo::relative_eff(exp(values), chain_id = chain), ...)
}

# draws x sites
site_log_lik <- function(fit, call) {
  if (fit$pool == "none") {
    stop_classed("method", c("Sites that are not pooled share nothing: what the others tell of a site that is left out is the prior.",
                             i = "{.fn log_evidence} of each fit in {.code fit$fits} has that."), call = call)
  }
  if (isTRUE(fit$problem$sized)) {
    stop_classed("method", "The likelihood of a group's totals is not known where its size is not: sizes of groups are sampled.", call = call)
  }
  if (fit$pool == "separate") {
    stop_classed("method", "Groups that are not pooled share nothing: what the others tell of a group that is left out is the prior.", call = call)
  }
  if (fit$pool == "walk") {
    stop_classed("method", "A site in a walk is told of by its neighbours in time, so that leaving it out is not what {.fn loo} takes it for.", call = call)
  }
  if (fit$problem$family != "rates") {
    stop_classed("method", c("The likelihood of a site's release is known of one rate or probability.", x = "The model is: {describe_model(fit$bound)}."), call = call)
  }
  draws <- parameter_matrix(fit)
  between <- fit$pool == "partial" && length(fit$problem$partial$vary)
  u <- if (is_log_rate(fit$bound)) log(draws[, 1L]) else stats::qlogis(draws[, 1L])
  sd <- if (between) draws[, 2L]
  design <- fit$problem$partial$design$matrix
  effects <- if (!is.null(design)) draws[, 2L + seq_len(ncol(design)), drop = FALSE]
  spread <- spread_of_rates(fit$problem)
  vapply(names(fit$release), function(name) {
    release <- fit$release[[name]]
    own <- if (is.null(design)) u else u + drop(effects %*% design[name, ])
    k <- match(name, names(fit$release))
    about <- about_site(fit$bound, spread, k)
    log_likelihood <- rate_log_likelihood(fit$problem$sites[[name]]$fields, fit$bound$spec$name, own, sd, about)
    log_noise_constant(release, call) + if (between) integrate_site(log_likelihood, own, sd, about) else log_likelihood(own)
  }, double(nrow(draws)))
}

# Log likelihood of a site's rate or probability as a function of its logarithm or logit, the total summed out.
rate_likelihood <- function(fields, model) {
  s <- fields$node %||% (fields$first + seq_along(fields$log_weight) - 1)
  n <- fields$n
  log_weight <- fields$log_weight + (fields$log_gap %||% 0)
  of_total <- switch(model, poisson = function(u) s * u - n * exp(u), exponential = function(u) n * u - s * exp(u),
                     function(u) s * stats::plogis(u, log.p = TRUE) + (n - s) * stats::plogis(-u, log.p = TRUE))
  function(u) vapply(u, function(u) log_sum_exp(log_weight + of_total(u)), 0)
}

# The same by a spline through values over the range that the draws can reach, since it is smooth there.
rate_log_likelihood <- function(fields, model, u, sd, about, points = 1001L) {
  at <- rate_likelihood(fields, model)
  if (length(u) <= points && is.null(sd)) return(at)
  reach <- furthest_site * if (is.null(sd)) 0 else sd
  grid <- grid_about(about, max(min(u - reach), -least_log), min(max(u + reach), least_log), points)
  values <- at(grid)
  # far below the greatest a spline through values that fall ever faster would overshoot
  stats::splinefun(grid, pmax(values, max(values) - 1000))
}

# Where a site's release says that its rate or probability is.
about_site <- function(bound, spread, k) list(at = coordinate_sign(bound) * spread$at[k], se = spread$se[k])

# Dense where the release says that the rate or probability is, about.
grid_about <- function(about, from, to, points) {
  ends <- asinh((c(from, to) - about$at) / about$se)
  about$at + about$se * sinh(seq(ends[1L], ends[2L], length.out = points))
}

# A site is at most so many standard deviations from the mean, and its rate or probability not beyond exp() of this.
furthest_site <- 10
least_log <- 300

# log of the integral over u_j ~ N(u, sd^2), one for each draw: the trapezoidal rule in t, u_j = centre + width sinh(t), dense where the
# likelihood, taken for normal about its mode, and that distribution overlap, and as wide as the latter.
integrate_site <- function(log_likelihood, u, sd, about, nodes = 121L) {
  range <- c(min(u - furthest_site * sd), max(u + furthest_site * sd))
  range <- pmin(pmax(range, -least_log), least_log)
  grid <- grid_about(about, range[1L], range[2L], 2001L)
  values <- log_likelihood(grid)
  k <- min(max(which.max(values), 2L), length(grid) - 1L)
  information <- max(-log_likelihood(grid[k], deriv = 2L), 0)
  weight <- 1 / sd^2
  centre <- (weight * u + information * grid[k]) / (weight + information)
  width <- 1 / sqrt(weight + information)
  reach <- asinh((furthest_site * sd + abs(centre - u)) / width)
  t <- outer(reach, seq(-1, 1, length.out = nodes))
  at <- pmin(pmax(centre + width * sinh(t), range[1L]), range[2L])
  terms <- matrix(log_likelihood(at) + stats::dnorm(at, u, sd, log = TRUE) + log(width * cosh(t)), length(u))
  most <- do.call(pmax, as.data.frame(terms))
  most + log(rowSums(exp(terms - most))) + log(2 * reach / (nodes - 1))
}
