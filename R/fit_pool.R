# A fit of several sites (R/engine_pool.R). In addition to the elements of a fit (R/fit.R) it has:
#   release   a named list of releases
#   pool      how they were pooled
#   fits      with pool = "none" the fit of each site

#' Work with a fit of several sites
#'
#' Estimates, predictions and plots of a fit of several sites or groups.
#'
#' @param object,x A fit of a list of releases, see [pooling], or of the [groups] of one release.
#' @param site Names of sites; all by default.
#' @param complete,use.fallback As in the generics, which other packages call with them.
#' @param ... As for a fit of one release: [fit_methods], [predict()][predict.noiseaware_fit], [plot()][plot.noiseaware_fit].
#' @param newdata A data frame with the covariates. Without covariates it may be left out; for groups, a row for each of them is then predicted.
#' @param sites For `site = "new"`: a data frame with one row, the covariates of the new site, see [partial_pooling()]. `NULL`: their mean over sites.
#' @param seed Fixes predictive draws; see [sample_posterior()].
#' @param re_formula For `predict()` with partial pooling: `NA` predicts for a site with the mean parameters, as in brms. `NULL`: for the site itself.
#' @param allow_new_levels For `predict()` of groups: `TRUE` allows groups in `newdata` that the release does not have. Their parameters are drawn from the
#'   distribution of groups.
#' @param type For `plot()`: `"shrinkage"` compares each site's own estimate with its estimate in the pool; `"curve"`, the default for a walk, draws a
#'   parameter over the sites in their order; for the other types see [plot()][plot.noiseaware_fit].
#' @param parameter,level For `"shrinkage"`, see [site_view]; `level` also for the other types.
#' @param alone For `"shrinkage"`: the estimates of each site on its own: a fit of the same sites with `pool = "none"`. `NULL`: for rates they are computed by
#'   quadrature; for regressions and normal records, the plot fits each site by itself, with 2 chains of 1,000 iterations (2,000 for groups).
#' @details
#' **Predictions.** With complete pooling, all sites have the same parameters. With partial pooling, `site = "new"` predicts for a site that released nothing; in a
#' walk, `site = "next"` predicts for the one after the last. For groups of one release, a column of `newdata` names the group of each row.
#' @return Depends on the function:
#'
#' | function | value |
#' | --- | --- |
#' | `summary()`, `confint()`, [posterior::as_draws()] | as for one release; a variable that belongs to one site is called `variable[site]` |
#' | `coef()` | posterior means; a matrix with a row for each site if sites have their own parameters |
#' | `vcov()` | their covariance |
#' | `nobs()` | the number of records of all sites, `NA` for sites where it is unknown |
#' | `predict()` | as for one release, for one site; see Details |
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_pool`; `noiseaware_error_method` for a prediction of a model without a response.
#' @seealso [denoise()] for the sites' totals, [site_ranks()] and [site_draws()], [extend()].
#' @family sites and groups
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' north <- as_release(c("smoke=yes" = 73.2), asked, mech_laplace(epsilon = 0.5), n = 189)
#' south <- as_release(c("smoke=yes" = 31.7), asked, mech_gaussian(sd = 4), n = 90)
#' sites <- list(north = north, south = south)
#' fit <- sample_posterior(sites, model_bernoulli(), pool = "complete",
#'                         chains = 2, iter = 400, seed = 1)
#' nobs(fit)
#' denoise(fit, site = "south")
#' @name pool_methods
NULL

one_site <- function(fit, site, call = caller_env()) {
  site <- check_site(fit, site, call)
  if (length(site) > 1L) {
    stop_classed("argument", c("{.arg site} must be the name of one site, because each site has its own parameters.", i = "Sites: {shorten_list(names(fit$release))}."),
                 call = call)
  }
  site
}

# The parameters of one site, as in a fit of one release.
site_fit <- function(fit, site, sites = NULL, call = caller_env()) {
  if (fit$pool == "none") return(fit$fits[[one_site(fit, site, call)]])
  new <- is_new_site(fit, site)
  if (!is.null(site) && !new) check_site(fit, site, call)
  if (!new && !is.null(sites)) stop_argument("sites", "NULL: only a new site needs covariates", describe(sites), call = call)
  if (fit$pool == "complete") return(structure(fit, class = setdiff(class(fit), "noiseaware_pool")))
  if (is.null(site)) one_site(fit, site, call)
  with_site_draws(fit, if (new) as_chains(new_site_draws(fit, sites, call), fit) else draws_of_site(fit, site))
}

with_site_draws <- function(fit, draws) {
  alone <- structure(fit, class = setdiff(class(fit), "noiseaware_pool"))
  alone$draws <- draws
  posterior::variables(alone$draws) <- fit$problem$partial$parameters
  alone$bound$parameters <- fit$problem$partial$parameters
  alone
}

# A site at the mean of all, of which all parameters of a site are known
average_site <- function(fit) with_site_draws(fit, exactly(fit$draws, fit$problem$partial$reported))

has_average <- function(fit) identical(fit$pool, "partial")

# for what takes one set of parameters
average_or_one <- function(fit, name, call) {
  if (has_average(fit)) return(average_site(fit))
  refuse_own_parameters(fit, name, call)
  fit
}

# Rows of `newdata` in the groups that its column names. `average`: in a group at the mean of all
predict_in_groups <- function(fit, newdata, average, allow_new, sites, ..., call) {
  if (average) return(without_troubles(stats::predict(average_site(fit), newdata, ...)))
  variable <- fit$problem$groups$variable
  # of groups that are a function of a variable, the function is computed
  if (is.data.frame(newdata)) newdata <- derived_variables(newdata, variable, call, "newdata")
  group <- as.character(newdata[[variable]])
  if (!is.data.frame(newdata) || length(group) == 0L || anyNA(group)) {
    stop_classed("data", c("{.arg newdata} must be a data frame that names the group of each row in {.var {variable}}.",
                           i = "{.code re_formula = NA} predicts for a group at the mean of all."), call = call)
  }
  new <- setdiff(group, names(fit$release))
  if (length(new) && !(allow_new && fit$pool == "partial")) {
    stop_classed("data", c("Groups of {.arg newdata} must be groups of the fit, but {.val {shorten_list(new)}} {cli::qty(length(new))}{?is/are} not.",
                           i = if (fit$pool == "partial") "{.code allow_new_levels = TRUE} draws the parameters of new groups."), call = call)
  }
  rows <- split(seq_along(group), factor(group, unique(group)))
  each <- lapply(names(rows), function(g) {
    of_group <- site_fit(fit, if (g %in% new) "new" else g, if (g %in% new) sites, call)
    without_troubles(stats::predict(of_group, newdata[rows[[g]], , drop = FALSE], ...))
  })
  back <- order(unlist(rows))
  if (is.null(dim(each[[1L]]))) return(unlist(each)[back])
  if (identical(colnames(each[[1L]]), c("fit", "lower", "upper", "mcse"))) return(do.call(rbind, each)[back, , drop = FALSE])
  do.call(cbind, each)[, back, drop = FALSE]
}

# with the parameters of the site's covariates, where draws of them are kept
with_covariate_draws <- function(fit, draws, site) {
  absent <- setdiff(reported_parameters(fit$bound), posterior::variables(draws))
  at <- match(site_variables(absent, site), fit$problem$names)
  if (length(absent) == 0L || !all(fit$problem$names[at] %in% fit$problem$drawn)) return(draws)
  kept <- chains_array(lapply(fit$chains, function(chain) structure(chain$draws[, at, drop = FALSE], dimnames = list(NULL, absent))))
  posterior::bind_draws(draws, kept, along = "variable")
}

# The same as a fit of the site's release, for what draws records of its own: with all parameters of the model, and the site's number of records.
as_fit_of_site <- function(fit, site, call = caller_env()) {
  if (fit$pool == "none") return(fit$fits[[one_site(fit, site, call)]])
  one <- site_fit(fit, site, call = call)
  own <- reported_parameters(fit$bound)
  one$draws <- with_covariate_draws(fit, one$draws, site)
  if (!all(own %in% posterior::variables(one$draws))) {
    several <- if (is_of_groups(fit)) "groups" else "sites"
    stop_classed("pool", c("The fit of several {several} has no draws of {.val {setdiff(own, posterior::variables(one$draws))}}, without which no records can be drawn.",
                           i = "With {.code pool = \"none\"} each of the {several} has all parameters."), call = call)
  }
  size <- site_size_draws(fit, site)
  one$draws <- exactly(one$draws, own)
  if (!is.null(size)) one$draws <- posterior::bind_draws(one$draws, posterior::as_draws_array(array(size, c(dim(size), 1L), list(NULL, NULL, "n"))), along = "variable")
  one$bound <- fit$bound
  one$release <- fit$release[[site]]
  one$problem$prior_n <- one$whole <- NULL
  one
}

#' @rdname pool_methods
#' @export
nobs.noiseaware_pool <- function(object, use.fallback = FALSE, ...) {
  check_no_dots(...)
  if (isTRUE(object$problem$sized)) object$problem$groups$release$n %||% NA_real_ else sum(site_sizes(object$release))
}

#' @rdname pool_methods
#' @export
coef.noiseaware_pool <- function(object, ...) {
  if (object$pool != "complete") check_no_dots(...)
  if (object$pool == "none") return(do.call(rbind, lapply(object$fits, stats::coef)))
  if (object$pool == "complete") return(NextMethod())
  remind_troubles(object)
  do.call(rbind, lapply(stats::setNames(nm = names(object$release)), function(site) colMeans(posterior::as_draws_matrix(draws_of_site(object, site)))))
}

#' @rdname pool_methods
#' @export
vcov.noiseaware_pool <- function(object, complete = TRUE, ...) {
  check_no_dots(...)
  if (object$pool != "complete") return(stats::cov(parameter_matrix(object)))
  NextMethod()
}

#' @rdname pool_methods
#' @export
predict.noiseaware_pool <- function(object, newdata, ..., site = NULL, sites = NULL, seed = NULL, re_formula = NULL, allow_new_levels = FALSE) {
  seed <- check_seed(seed)
  check_flag(allow_new_levels, "allow_new_levels")
  average <- asks_for_average(re_formula, object, site)
  call <- environment()
  without <- rows_without_covariates(object, site)
  newdata <- if (missing(newdata)) without else newdata
  check_newdata(newdata)
  found <- with_seed(seed, {
    if (average || is.null(site) && is_of_groups(object) && object$pool != "complete") {
      remind_troubles(object, call)
      predict_in_groups(object, newdata, average, allow_new_levels, sites, ..., call = call)
    } else {
      of_site <- site_fit(object, site, sites)
      # of the draws that were made, not of the draws for a new site, which differ each time
      remind_troubles(if (object$pool == "none") of_site else object, call)
      without_troubles(stats::predict(of_site, newdata, ...))
    }
  })
  if (!identical(list(...)$type, "expected")) tell_limits(object, newdata, found, call)
  found
}

# re_formula = NA: a group at the mean of all
asks_for_average <- function(re_formula, fit, site) {
  if (is.null(re_formula)) return(FALSE)
  if (!identical(re_formula, NA) || fit$pool != "partial") {
    stop_argument("re_formula", "NULL, or NA for a group at the mean of all of a partial pooling", describe(re_formula))
  }
  if (!is.null(site)) stop_argument("site", "NULL where `re_formula` is NA, which predicts for a site at the mean of all", describe(site))
  TRUE
}

# NULL if the model has covariates; refuses a model without a response
rows_without_covariates <- function(fit, site) {
  alone <- !is.null(value_of(fit$bound))
  if (is.null(response_of(fit$bound)) && !alone) {
    stop_classed("method", c("Only a fit of a regression has a response to predict, and this model is: {describe_model(fit$bound)}.",
                             i = "{.fn site_draws} gives the parameters of a site{if (fit$pool %in% names(new_sites)) ', or of a new one'}."))
  }
  if (alone || identical(nrow(fit$bound$base), 1L)) rows_of_groups(fit, site)
}

# without covariates: a row for each group, or one
rows_of_groups <- function(fit, site) {
  if (!is_of_groups(fit) || !is.null(site)) return(data.frame(row.names = 1L))
  stats::setNames(data.frame(names(fit$release)), fit$problem$groups$variable)
}

#' @export
simulate.noiseaware_pool <- function(object, nsim = 1, seed = NULL, ...) {
  refuse_several(object, "object", class = "pool")
}

# ---- what it shows ---------------------------------------------------------------------------

pool_lines <- c(complete = "complete: one set of parameters, each site with its own noise",
                partial = "partial: parameters of sites are normal about a mean",
                walk = "walk: parameters of each site are normal about the previous site's",
                walk2 = "walk of second order: parameters of each site are normal about the line through the previous two sites'",
                none = "none: separate fits, nothing is shared",
                separate = "none: each group has its own parameters, nothing is shared")

#' @rdname pool_methods
#' @export
print.noiseaware_pool <- function(x, ...) {
  check_no_dots(...)
  cat("<posterior> ", describe_model(x$bound), ", ", format_size(length(x$release)), if (is_of_groups(x)) " group" else " site",
      if (length(x$release) > 1L) "s", if (is_of_groups(x)) c(" by ", x$problem$groups$variable), "\n\n", sep = "")
  table <- printed_summary(x$draws)
  print_summary(with_medians(table, x$draws))
  cat("", pool_fit_lines(x), sep = "\n")
  if (x$pool != "none") mixing_marks(x, table)
  invisible(x)
}

# how the draws were made
pool_fit_lines <- function(x) {
  size <- dim(x$draws)
  engine <- engine_of(x)
  title <- engine_title(engine)
  if (isTRUE(x$exact) && title == "") title <- " (exact)"
  group <- if (is_of_groups(x)) "group" else "site"
  line <- gsub("site", group, pool_lines[[if (identical(x$problem$partial$walk, 2L)) "walk2" else x$pool]])
  c(paste0("  pooling    ", line, title), sprintf("  %-10s %s", paste0(group, "s"), site_line(x$release, group)),
    covariates_line(x, group),
    if (is_centred_spread(x)) "  sd, cor    with covariates at the middle of their bounds; lme4::VarCorr() gives them with covariates at 0",
    if (isTRUE(x$problem$sized)) size_line(x) else if (length(unsized_sites(x$release))) unsized_line(x),
    paste0("  draws      ", size[2L], if (size[2L] == 1L) " chain of " else " chains of ", size[1L], " (warmup ", x$run$warmup, ", thin ", x$run$thin, ")"),
    decided_lines(x), tail_line(x), spread_line(x), clamping_lines(x), contextual_lines(x), engine_lines(engine, x))
}

# What groups are assumed to have in common of their covariates, on which slopes depend under noise
covariates_line <- function(fit, group) {
  if (!fit$pool %in% c("partial", "walk") || !is_regression(fit$bound) || nrow(covariate_columns(fit$bound)) == 0L) return(NULL)
  assumed <- c(pooled = "one covariance in all %ss; their means are normal about a common mean", shared = "one distribution in all %ss",
               separate = "each %s has a distribution of its own, with the model's prior")
  paste("  covariates", sprintf(assumed[[fit$problem$partial$covariates %||% "separate"]], group))
}

# Do slopes vary that make the spread of the intercept depend on where covariates are?
is_centred_spread <- function(fit) {
  if (fit$pool != "partial" || !is_regression(fit$bound)) return(FALSE)
  coefficients <- reported_as(fit, coefficients_of(fit$bound))
  vary <- which(coefficients %in% spread_coordinates(fit))
  vary[1L] == 1L && any(bound_centring(fit$bound)$matrix[1L, vary[-1L]] != 0)
}

site_line <- function(releases, one = "site") {
  n <- site_sizes(releases)
  if (anyNA(n)) return(shorten_list(names(releases), 6L))
  paste0(shorten_list(names(releases), 6L), "; ", format_size(sum(n)), " records",
         if (length(n) > 1L) paste0(", ", paste(format_size(unique(range(n))), collapse = " to "), " a ", one))
}

size_line <- function(fit) {
  n <- fit$problem$groups$release$n
  paste0("  records    ", if (is.null(n)) paste0("not known (n); prior ", format(fit$problem$prior_n)) else format_size(n), "; how many are in each group is sampled")
}

unsized_line <- function(fit) {
  unknown <- unsized_sites(fit$release)
  priors <- unique(vapply(unknown, function(site) format((fit$problem$site_priors %||% list())[[site]] %||% fit$fits[[site]]$problem$prior_n), ""))
  paste0("  records    not known (n): ", shorten_list(unknown, 6L), if (length(priors) == 1L) paste0("; prior ", priors), fewest_words(fit))
}
