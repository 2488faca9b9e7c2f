# nlme, lme4, brms: what the sites of a partially pooled fit have in common, and how they differ from it.

#' Fixed effects, random effects and variance components of sites
#'
#' Fixed effects, random effects and variance components, as in mixed models, of a fit of several sites or groups with `pool = "partial"`.
#'
#' @param object,x A fit from [sample_posterior()].
#' @param level Probability inside the intervals.
#' @param sigma,... Must not be given.
#' @return Depends on the function:
#'
#' | function | value |
#' | --- | --- |
#' | `fixef()` | posterior means of the parameters common to all sites |
#' | `ranef()` | a data frame with a row for each site: the posterior mean of its deviation from the common values |
#' | `VarCorr()` | a data frame like `as.data.frame(VarCorr())` in lme4, with the columns listed in Details |
#' @details The generics are from nlme; lme4 and brms also use them. In regressions, the deviations and their standard deviations refer to
#'   covariates equal to 0. The draws `sd[...]` and `cor[...]` of the fit refer to covariates in the middle of their bounds: see
#'   [partial_pooling()].
#'
#' **Common values** are coefficients of a regression, effects of sites' covariates, and functions of the parameters that vary: `logit()` of a probability,
#' `log()` of a rate or standard deviation. For a fit of one release, and for `pool = "complete"`, `fixef()` equals `coef()`.
#' For a regression, `coef()` is the sum of `fixef()` and `ranef()`.
#'
#' **Columns of `VarCorr()`.** A linear regression has a row for the residual.
#'
#' | column | meaning |
#' | --- | --- |
#' | `grp`, `var1`, `var2` | as in lme4 |
#' | `vcov` | posterior mean of a variance or covariance |
#' | `sdcor` | posterior mean of a standard deviation or correlation |
#' | `lower`, `upper` | interval of the standard deviation or correlation |
#' @section Errors: `noiseaware_error_pool` if no parameter varies about a mean: fits of one release, `pool = "complete"`, `"none"`, and, except for
#'   `VarCorr()`, a walk.
#' @seealso [site_draws()] and [site_ranks()] for the parameters of single sites.
#' @family package interfaces
#' @name mixed_effects
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' noise <- mech_laplace(epsilon = 0.5)
#' site <- function(yes, n) as_release(c("smoke=yes" = yes), asked, noise, n = n)
#' sites <- list(north = site(73.2, 189), south = site(31.7, 90), west = site(55.1, 120))
#' fit <- sample_posterior(sites, model_bernoulli(), pool = "partial", chains = 2, iter = 2000,
#'   seed = 1)
#' if (requireNamespace("nlme", quietly = TRUE)) {
#'   print(nlme::fixef(fit))
#'   print(nlme::ranef(fit))
#'   nlme::VarCorr(fit)
#' }
NULL

#' @rdname mixed_effects
#' @exportS3Method nlme::fixef
fixef.noiseaware_fit <- function(object, ...) {
  check_no_dots(...)
  if (!inherits(object, "noiseaware_pool") || object$pool == "complete") return(stats::coef(object))
  check_varies(object, "fixef")
  remind_troubles(object)
  effects <- parameter_matrix(object)[, effect_names(object), drop = FALSE]
  c(colMeans(common_coordinates(object)), colMeans(effects))
}

#' @rdname mixed_effects
#' @exportS3Method nlme::ranef
ranef.noiseaware_fit <- function(object, ...) {
  check_no_dots(...)
  check_varies(object, "ranef")
  remind_troubles(object)
  common <- common_coordinates(object)
  shared <- if (is_regression(object$bound)) setdiff(reported_as(object, coefficients_of(object$bound)), object$problem$partial$shown)
  shown <- setdiff(colnames(common), shared)
  rows <- lapply(names(object$release), function(site) {
    own <- reported_coordinates(object, draws_of_site(object, site)) - common - site_shift(object, site)
    colMeans(own)[shown]
  })
  data.frame(do.call(rbind, rows), row.names = names(object$release), check.names = FALSE)
}

#' @rdname mixed_effects
#' @exportS3Method nlme::VarCorr
VarCorr.noiseaware_fit <- function(x, sigma = 1, ..., level = 0.95) {
  check_no_dots(...)
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  check_varies(x, "VarCorr", walk = TRUE)
  remind_troubles(x)
  draws <- parameter_matrix(x)
  group <- x$problem$groups$variable %||% "site"
  row <- function(one, other, value, product) {
    ends <- draws_interval(cbind(value), level)
    data.frame(grp = group, var1 = one, var2 = other, vcov = mean(product), sdcor = mean(value), lower = ends[1L], upper = ends[2L])
  }
  spread <- spread_at_zero(x, draws)
  sd <- lapply(stats::setNames(nm = spread$names), function(v) sqrt(spread$covariance(v, v)))
  rows <- lapply(spread$names, function(v) row(v, NA_character_, sd[[v]], sd[[v]]^2))
  pairs <- which(upper.tri(diag(length(sd))), arr.ind = TRUE)
  for (k in seq_len(nrow(pairs))) {
    two <- spread$names[pairs[k, ]]
    covariance <- spread$covariance(two[1L], two[2L])
    if (any(covariance != 0)) rows <- c(rows, list(row(two[1L], two[2L], covariance / sd[[two[1L]]] / sd[[two[2L]]], covariance)))
  }
  table <- do.call(rbind, rows)
  sigma <- reported_as(x, "sigma")
  if (!inherits(x$bound, "bound_lm") || !sigma %in% colnames(draws)) return(table)
  group <- "Residual"
  rbind(table, row(NA_character_, NA_character_, draws[, sigma], draws[, sigma]^2))
}

# Names of what varies, and draws of their covariances. Coefficients are at covariates of 0, where an intercept also varies if slopes alone do in the middle
# of the bounds.
spread_at_zero <- function(fit, draws) {
  vary <- spread_coordinates(fit)
  of <- function(a, b) {
    sds <- draws[, sprintf("sd[%s]", a)] * draws[, sprintf("sd[%s]", b)]
    if (a == b) return(sds)
    cor <- intersect(sprintf("cor[%s,%s]", c(a, b), c(b, a)), colnames(draws))
    if (length(cor)) sds * draws[, cor] else 0 * sds
  }
  map <- diag(length(vary))
  dimnames(map) <- list(vary, vary)
  all <- if (is_regression(fit$bound)) reported_as(fit, coefficients_of(fit$bound))
  coefficients <- intersect(all, vary)
  if (length(coefficients)) {
    centring <- bound_centring(fit$bound)$matrix
    dimnames(centring) <- list(all, all)
    own <- centring[, coefficients, drop = FALSE]
    own <- own[rowSums(own != 0) > 0, , drop = FALSE]
    left <- setdiff(vary, coefficients)
    map <- rbind(cbind(own, matrix(0, nrow(own), length(left), dimnames = list(NULL, left))), map[left, c(coefficients, left), drop = FALSE])
  }
  list(names = rownames(map), covariance = function(one, other) {
    total <- 0
    for (a in colnames(map)) for (b in colnames(map)) total <- total + map[one, a] * map[other, b] * of(a, b)
    total
  })
}

check_varies <- function(fit, name, walk = FALSE, call = caller_env()) {
  pooled <- inherits(fit, "noiseaware_pool")
  if (pooled && fit$pool == "partial" || walk && pooled && fit$pool == "walk") return(invisible())
  why <- if (!pooled) "{.arg object} is a fit of one release, with one set of parameters." else
    switch(fit$pool, complete = "All sites have the same parameters: {.code pool = \"complete\"}.",
           walk = "In a walk each site varies about the previous one, so there is no common mean.", "Nothing is shared between sites: {.code pool = \"none\"}.")
  stop_classed("pool", c("{.fn {name}} is for sites with parameters that vary about a mean.", x = why,
                         i = "Use {.code pool = \"partial\"}; {.fn coef} gives the parameters of any fit."), call = call)
}

# ---- coordinates: coefficients as they are, else those in which sites are normal -----------------

effect_names <- function(fit) {
  design <- colnames(fit$problem$partial$design$matrix)
  as.vector(outer(design, spread_coordinates(fit), function(x, v) sprintf("%s[%s]", x, v)))
}

# draws x coordinates of natural values, whose variables are those that are reported of a site
reported_coordinates <- function(fit, draws) {
  partial <- fit$problem$partial
  values <- matrix(draws, ncol = length(partial$reported), dimnames = list(NULL, partial$reported))
  if (is_regression(fit$bound)) {
    logs <- log(values[, varying_scales(fit), drop = FALSE])
    colnames(logs) <- sprintf("log(%s)", colnames(logs))
    return(cbind(values[, reported_as(fit, coefficients_of(fit$bound)), drop = FALSE], logs))
  }
  natural <- fit$problem$sign * coordinates_of_fit(fit)$of(unname(values))[, partial$which + 1L, drop = FALSE]
  colnames(natural) <- spread_coordinates(fit)
  natural
}

# sigma or cv of a regression, if it varies
varying_scales <- function(fit) setdiff(fit$problem$partial$shown, reported_as(fit, coefficients_of(fit$bound)))

common_coordinates <- function(fit) reported_coordinates(fit, exactly(fit$draws, fit$problem$partial$reported))

# What the covariates of a site add to the mean: draws x coordinates, or 0. Effects are on the coordinates of a regression, whose intercept is
# where covariates are at the middle of their bounds.
site_shift <- function(fit, site) {
  design <- fit$problem$partial$design$matrix
  if (is.null(design)) return(0)
  vary <- spread_coordinates(fit)
  draws <- parameter_matrix(fit)
  shift <- vapply(vary, function(v) drop(draws[, sprintf("%s[%s]", colnames(design), v), drop = FALSE] %*% design[site, ]), numeric(nrow(draws)))
  if (!is_regression(fit$bound)) return(shift)
  names <- reported_as(fit, coefficients_of(fit$bound))
  all <- matrix(0, nrow(draws), length(names), dimnames = list(NULL, names))
  all[, intersect(names, vary)] <- shift[, intersect(names, vary)]
  cbind(all %*% t(bound_centring(fit$bound)$matrix), shift[, setdiff(vary, names), drop = FALSE])
}
