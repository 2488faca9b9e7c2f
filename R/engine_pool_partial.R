# Partial pooling: which parameters vary between sites, the priors of their spread, and where chains start. See src/pool/nuts_chain.c.

#' Parameters that differ between sites, but not by much
#'
#' `pool = "partial"` and `pool = "walk"`, with options. In partial pooling, the parameters of the sites are normal about a common mean, with standard
#' deviations that are estimated from the releases. Each site then borrows strength from the others, and the less its own release says, the more it borrows. In
#' a walk, sites are in order, such as weeks or years, and the parameters of each site are normal about the previous site's. In a walk of second order, they are
#' normal about the line through the previous two sites', which gives smooth curves.
#'
#' @param vary A formula of the parameters that differ between sites, such as `~ (Intercept)` or `~ (Intercept) + age`; the others are the same in all sites.
#'   `~ 1` means `~ (Intercept)`; unlike in the formula of a model, `~ age` does not include the intercept. `NULL`, or `~ .`: all parameters. Except in a walk,
#'   covariates of the sites may follow a bar, `~ (Intercept) | rural`: the mean of the varying parameters then depends on them. A formula without a bar is
#'   short for `partial_pooling(formula)`.
#' @param sd Prior for the standard deviation between sites, or for the steps of a walk: [prior_half_normal()], [prior_half_t()] or [prior_exponential()]; or a
#'   named list of such priors, one for each parameter that varies. The default scales are described below.
#' @param sites A data frame with the covariates after the bar, numbers or factors, with a row for each site. Its row names, or its column `site`, are the names
#'   of the sites.
#' @param effects Prior for the covariates' coefficients: [prior_normal()] with mean 0 and one standard deviation for all, or the default.
#' @param covariates For a regression: whether the covariates' distribution is partially pooled (`"pooled"`), each site has its own (`"separate"`), or all have
#'   the same (`"shared"`). See below for the default.
#' @param correlation `NULL`: the parameters of a site vary independently. [prior_lkj()]: they are correlated.
#' @param walk Order of a walk: `1` or `TRUE` for steps from the previous site, `2` for steps from the line through the previous two (at least three sites);
#'   `FALSE` for sites without an order.
#'
#' @details Parameters are normal about their mean in unbounded coordinates. These are the coefficients themselves, with the intercept at the middle of the
#'   covariates' bounds; `log(sigma)`, `logit(prob)` and `log(rate)`. With more than two categories, they are the logit of the first category, and then of each
#'   later one given that it is none of the earlier ones (`sd[logit(prob[b]|rest)]`). For the covariance matrix of [model_mvnormal()], they are the entries of
#'   its Cholesky factor, with logarithms on the diagonal (`sd[log_chol(cov[x,x])]`). The mean, or the first site of a walk, has the model's prior.
#'
#' **Covariates of a regression.** With `covariates = "pooled"` the covariates have one covariance matrix Sigma in all sites. The means of site j are N(mu, Sigma
#' / kappa), with log(kappa) ~ N(log(4), 2^2). This is the default of method `"collapse"` for [model_lm()], unless mean or covariance are [fixed()] or their
#' prior is truncated. Otherwise each site has its own distribution of the covariates, with the model's prior (`"separate"`). With much noise and many sites, that
#' prior is influential: if it expects covariates of three times their actual standard deviation, it pulls all slopes towards 0. The warning
#' `noiseaware_warning_hidden` says so. With `covariates = "shared"`, all sites have one distribution of the covariates (only by method `"clt"`).
#'
#' **Truncated priors.** If the model's prior is truncated (`within`, see [priors]), the parameters of all sites lie within its bounds, and so does their mean.
#' The joint distribution of all of these is truncated. Given the parameters of the sites, the bounds then have no influence on the standard deviations. In a
#' regression the bounds concern the covariates, whose distribution is separate for each site.
#'
#' Covariates of sites are measured from their mean over the sites (factors by treatment contrasts), so that the mean describes a site with average covariates.
#' A covariate that is the same for all sites has no effect.
#'
#' **Default scales** of the standard deviation are the same for every method. They are 1 for `logit(prob)` and `log(rate)`, and 1/2 for `log(sigma)`,
#' `log(cv)`, logarithms of gaps between thresholds, and the diagonal of a Cholesky factor. For means and intercepts of normal variables they are h / 4, with h
#' half the width of the bounds. For other coefficients they are half of the default prior standard deviation given in [priors], whatever the model's prior
#' is. For covariances of [model_mvnormal()], for log-linear models, for [model_survival()] and for models of your own they are half of the standard deviation
#' of the model's own prior. Steps of a walk have half of these scales. In a walk of second order, the second site is normal about the first with the
#' standard deviation that is the default scale of sites without an order. The effect of a covariate has the same scale divided by the covariate's standard
#' deviation. rstantools' `prior_summary()` of the fit shows these priors and the priors of the covariates.
#'
#' **Draws**: the mean over sites has the model's own names (`prob[yes]`, `(Intercept)`, `sigma`) and is transformed to natural values; a walk has no mean of
#' the varying parameters. The standard deviations are named after the coordinate, `sd[...]`. Effects are `rural[...]`, correlations `cor[...]`, and the
#' parameters of each site `(Intercept)[north]`.
#' @return An object of class `noiseaware_pooling`, for the argument `pool` of [sample_posterior()].
#' @section Errors: `noiseaware_error_pool`, `noiseaware_error_prior`.
#' @references Lang, S. and Brezger, A. (2004). Bayesian P-splines. *Journal of Computational and Graphical Statistics* 13(1), 183-212.
#'   \doi{10.1198/1061860043010}. For walks of second order.
#'
#'   Lewandowski, D., Kurowicka, D. and Joe, H. (2009). Generating random correlation matrices based on vines and extended onion
#'   method. *Journal of Multivariate Analysis* 100(9), 1989-2001. \doi{10.1016/j.jmva.2009.04.008}.
#' @seealso [pooling], [pool_methods], [site_view].
#' @family sites and groups
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' noise <- mech_laplace(epsilon = 0.5)
#' site <- function(yes, n) as_release(c("smoke=yes" = yes), asked, noise, n = n)
#' sites <- list(north = site(73.2, 189), south = site(31.7, 90), west = site(55.1, 120))
#' sample_posterior(sites, model_bernoulli(), pool = "partial",
#'                  chains = 2, iter = 600, seed = 1)
#' partial_pooling(sd = prior_half_t(3, 0.5))
#' partial_pooling(~ . | rural, sites = data.frame(site = names(sites), rural = c(1, 0, 0)))
#'
#' # years from the diagnosis of AIDS to death, of those who died, by state
#' died <- subset(MASS::Aids2, status == "D")
#' years <- split(data.frame(years = (died$death - died$diag) / 365.25), died$state)
#' asked <- stat_sums(~ years, bounds = list(years = c(0, 15)))
#' set.seed(1)
#' states <- lapply(years, simulate_release, asked, mech_laplace(epsilon = 1))
#' model <- model_exponential(prior = prior_gamma(2, 2))
#' fit <- sample_posterior(states, model, pool = "partial", chains = 2, iter = 2000, seed = 1)
#' plot(fit, "shrinkage")$data
#'
#' # deaths of car drivers, a month each, as rates a day
#' total <- stat_sums(~ deaths, bounds = list(deaths = c(0, 500)))
#' set.seed(1)
#' noisy <- UKDriverDeaths[1:6] + rnorm(6, 0, 50)
#' months <- lapply(noisy, as_release, total, mech_gaussian(sd = 50), n = 30)
#' names(months) <- month.abb[1:6]
#' sample_posterior(months, model_poisson(), pool = "walk", chains = 2, iter = 600, seed = 1)
#' @export
partial_pooling <- function(vary = NULL, sd = prior_half_normal(), sites = NULL, effects = prior_normal(), correlation = NULL,
                            covariates = c("pooled", "separate", "shared"), walk = FALSE) {
  walk <- check_order(walk)
  sides <- read_varying(vary)
  if (walk > 0L && !(is.null(sides$given) && is.null(sites))) {
    stop_classed("pool", "{.arg vary} and {.arg sites} must have no covariates of sites in a walk, whose sites are centred at the one before.")
  }
  check_class(effects, "effects", "prior_normal", "prior_normal()", "prior")
  if (!all(effects$mean %||% 0 == 0) || length(effects$sd) > 1L) {
    stop_classed("prior", "{.arg effects} must be {.fn prior_normal} with mean 0 and at most one {.arg sd}, but is {format(effects)}.")
  }
  design <- if (!is.null(sides$given)) site_design(sides$given, sites)
  if (is.null(sides$given) && !is.null(sites)) {
    stop_classed("pool", c("{.arg sites} has covariates of the sites, and {.arg vary} must name those that shift the mean, behind a bar.",
                           i = "For example {.code ~ (Intercept) | rural}."))
  }
  new_pooling(if (walk > 0L) "walk" else "partial", sides$vary, sd, correlation, check_covariates_of_sites(covariates), design, if (walk == 0L) effects, walk)
}

# of a walk, 0: none
check_order <- function(walk, call = caller_env()) {
  if (isTRUE(walk) || isFALSE(walk)) return(as.integer(walk))
  if (!(checkmate::test_number(walk, finite = TRUE) && walk %in% 1:2)) stop_argument("walk", "FALSE, TRUE, 1 or 2", describe(walk), call = call)
  as.integer(walk)
}

# "default" unless one was chosen
check_covariates_of_sites <- function(covariates, call = caller_env()) {
  ways <- c("pooled", "separate", "shared")
  if (identical(covariates, ways)) "default" else check_choice(covariates, "covariates", ways, call = call)
}

new_pooling <- function(kind, vary, sd, correlation, covariates, design = NULL, effects = NULL, order = 0L, call = caller_env()) {
  known <- c("prior_half_normal", "prior_half_t", "prior_exponential")
  must <- "prior_half_normal(), prior_half_t() or prior_exponential(), or a named list of these"
  several <- is.list(sd) && !is.object(sd)
  if (several && !checkmate::test_names(names(sd), "unique")) stop_argument("sd", must, describe(sd), "prior", call)
  for (one in if (several) sd else list(sd)) check_class(one, "sd", known, must, "prior", call)
  if (!is.null(correlation)) check_class(correlation, "correlation", "prior_lkj", "NULL or prior_lkj()", "prior", call)
  structure(list(kind = kind, vary = vary, sd = sd, correlation = correlation, covariates = covariates, design = design, effects = effects, order = order),
            class = "noiseaware_pooling")
}

# What varies, a formula or NULL for all, and what follows the bar.
read_varying <- function(vary, call = caller_env()) {
  if (is.null(vary)) return(list())
  if (!(inherits(vary, "formula") && length(vary) == 2L)) {
    stop_argument("vary", "NULL or a formula with one side, such as ~ (Intercept)", describe(vary), "pool", call)
  }
  given <- NULL
  if (is_operation(vary[[2L]], "|", 2L)) {
    given <- vary[[2L]][[3L]]
    vary[[2L]] <- vary[[2L]][[2L]]
  }
  environment(vary) <- globalenv()
  list(vary = if (!identical(vary[[2L]], quote(.))) vary, given = given)
}

#' @export
print.noiseaware_pooling <- function(x, ...) {
  several <- is.list(x$sd) && !is.object(x$sd)
  cat("<pooling> ", x$kind, if (x$order > 1L) " of second order", "\n  vary  ", if (is.null(x$vary)) "all parameters" else formula_text(x$vary), "\n  sd    ",
      if (several) paste(names(x$sd), vapply(x$sd, format, ""), collapse = "; ") else format(x$sd), "\n",
      switch(x$covariates, shared = "  one distribution of the covariates in all sites\n", pooled = "  the covariates' distribution is pooled\n",
             separate = "  each site has its own distribution of the covariates\n"),
      if (!is.null(x$correlation)) paste0("  correlation ", format(x$correlation), "\n"),
      if (!is.null(x$design)) paste0("  covariates ", paste(colnames(x$design$matrix), collapse = ", "), " of ", nrow(x$design$matrix), " sites; effects ",
                                     format(x$effects), "\n"), sep = "")
  invisible(x)
}

# "partial", "walk" and a formula describe one; strings else
as_pooling <- function(pool, call = caller_env()) {
  if (identical(pool, "partial")) return(partial_pooling())
  if (identical(pool, "walk")) return(partial_pooling(walk = TRUE))
  if (!inherits(pool, "formula")) return(pool)
  if (length(pool) == 2L && is_operation(pool[[2L]], "|", 2L)) {
    stop_classed("pool", c("A formula with a bar needs the sites' covariates.",
                           i = "{.code partial_pooling({formula_text(pool)}, sites = )} takes a data frame of them."), call = call)
  }
  partial_pooling(pool)
}

# ---- covariates of the sites ---------------------------------------------------------------

# The columns of `sites` that the part after the bar defines, centred, and how to compute them for other sites.
site_design <- function(given, sites, call = caller_env()) {
  sites <- check_site_covariates(sites, "sites", call)
  formula <- stats::as.formula(call("~", given), globalenv())
  absent <- setdiff(all.vars(formula), names(sites))
  if (length(absent)) {
    stop_classed("pool", c("The covariates behind the bar must be columns of {.arg sites}, but {.var {absent}} {?is/are} not.",
                           i = "Columns: {.var {names(sites)}}."), call = call)
  }
  frame <- stats::model.frame(formula, sites, na.action = stats::na.pass)
  matrix <- covariate_matrix(stats::terms(frame), frame, call)
  centre <- colMeans(matrix)
  list(matrix = sweep(matrix, 2L, centre), centre = centre, terms = stats::terms(frame), levels = stats::.getXlevels(stats::terms(frame), frame))
}

check_site_covariates <- function(sites, name, call) {
  must <- "a data frame with a row for each site, whose names are its row names or its column site"
  if (!is.data.frame(sites) || nrow(sites) == 0L) stop_argument(name, must, describe(sites), "pool", call)
  if (!is.null(sites$site)) {
    names <- as.character(sites$site)
    twice <- unique(names[duplicated(names)])
    if (length(twice)) stop_classed("pool", "{.arg {name}} must have one row for each site, but has several for {.val {twice}}.", call = call)
    rownames(sites) <- names
  }
  sites
}

covariate_matrix <- function(terms, frame, call) {
  attr(terms, "intercept") <- 1L
  matrix <- stats::model.matrix(terms, frame)
  matrix <- matrix[, colnames(matrix) != "(Intercept)", drop = FALSE]
  if (ncol(matrix) == 0L) stop_classed("pool", "There must be covariates of the sites behind the bar.", call = call)
  if (!all(is.finite(matrix))) stop_classed("pool", "Covariates of sites must be known and finite.", call = call)
  matrix
}

# covariates of a further site, as a vector; by default the mean over sites
new_covariates <- function(design, sites, call = caller_env()) {
  if (is.null(design)) {
    if (!is.null(sites)) stop_argument("sites", "NULL: the fit has no covariates of sites", describe(sites), call = call)
    return(numeric())
  }
  if (is.null(sites)) return(numeric(length(design$centre)))
  if (!is.data.frame(sites) || nrow(sites) != 1L) stop_argument("sites", "a data frame with one row, the covariates of the new site", describe(sites), call = call)
  frame <- tryCatch(stats::model.frame(design$terms, sites, na.action = stats::na.pass, xlev = design$levels), error = function(e) {
    stop_classed("argument", c("{.arg sites} must have the covariates of the new site: {.var {all.vars(design$terms)}}.", x = "{conditionMessage(e)}"), call = call)
  })
  covariate_matrix(design$terms, frame, call)[1L, ] - design$centre
}

# ---- what varies ---------------------------------------------------------------------------

# names of the parameters of a site: coefficients and sigma, or the rate
site_parameters <- function(bound) {
  if (!is_regression(bound)) return(bound$parameters)
  intersect(c("(Intercept)", bound$design$name[-1L], "sigma"), bound$parameters)
}

# Names of their coordinates: the parameters' names, except for probabilities, which have a coordinate for each level but the last.
site_coordinate_names <- function(bound) {
  parameters <- site_parameters(bound)
  if (!has_sticks(bound)) return(parameters)
  parameters[unlist(stick_levels(bound)) > 0]
}

has_sticks <- function(bound) bound$spec$name == "categorical" && length(bound$parameters) > 1L

# For each row of probabilities 1, 2, ... and 0 for the last level, in the order of the parameters
stick_levels <- function(bound) {
  unknown <- !bound$coordinates$known
  unlist(Map(function(length, levels) rep(list(c(seq_len(levels - 1L), 0L)), length / (levels - 1L)),
             bound$coordinates$length[unknown], lengths(bound$levels)[unknown]), recursive = FALSE)
}

# places of their coordinates in theta
site_places <- function(bound) {
  if (!is_regression(bound)) return(bound$unknown)
  blocks <- bound$coordinates[bound$coordinates$block %in% c("coefficients", "sigma") & !bound$coordinates$known, ]
  unlist(Map(function(offset, length) offset + seq_len(length), blocks$offset, blocks$length))
}

partial_problem <- function(problem, pooling, bound, releases, call) {
  parameters <- site_parameters(bound)
  called <- stats::setNames(ifelse(parameters %in% names(bound$called), bound$called[parameters], parameters), parameters)
  coordinates <- site_coordinate_names(bound)
  complete <- pooling$kind == "complete" # nothing varies
  vary <- if (complete) character() else varying_parameters(pooling$vary, called[coordinates], call)
  coefficients <- setdiff(parameters, "sigma")
  rate <- problem$family == "rates"
  totals <- problem$family == "totals"
  walk <- pooling$kind == "walk"
  shown <- if (complete) character() else if (!is_regression(bound)) parameters else
    c(coefficients_that_differ(bound, coefficients, vary), intersect("sigma", vary))
  heads <- if (walk) setdiff(parameters, shown) else parameters
  places <- site_places(bound)
  covariates <- if (!complete) common_covariates(pooling$covariates, problem, bound, call) else if (is_regression(bound)) "shared" else "separate"
  if (covariates == "shared") {
    problem <- share_covariates(problem, bound, call)
    heads <- c(heads, setdiff(bound$parameters, parameters))
    places <- c(places, setdiff(bound$unknown, places))
  }
  named <- c(called, stats::setNames(nm = setdiff(bound$parameters, parameters)))
  scale <- spread_scales(bound, coordinates) * (if (walk) 0.5 else 1)
  sd <- layer_sd(pooling, unname(called[vary]), call)
  design <- coordinate_sign(bound) * design_of_sites(pooling$design, names(releases), call)
  problem$sign <- coordinate_sign(bound)
  problem$partial <- list(which = match(vary, coordinates) - 1L, head = match(heads, bound$parameters) - 1L,
                          show = match(shown, bound$parameters) - 1L,
                          sd = lapply(vary, function(v) list(fields = lapply(sigma_fields(sd[[called[[v]]]], scale[[v]]), as.double))),
                          effect_sd = effect_scales(pooling$effects$sd, design, scale[vary]), lkj = as.double(pooling$correlation$eta %||% 0), walk = pooling$order,
                          first_step = as.double(2 * scale[vary]),
                          likelihood = if (totals) likelihood_spec(bound), covariates = covariates,
                          pooled_scatter = covariates == "pooled", vary = vary, parameters = parameters, design = pooling$design,
                          reported = unname(called[parameters]), shown = unname(called[vary]), heads = unname(named[heads]))
  problem$partial[c("place", "coordinates", "complete")] <- list(places, as.integer(places - 1), complete)
  spread <- switch(problem$family, rates = spread_of_rates(problem), totals = spread_of_totals(problem, bound), clt = spread_of_clt(problem, bound))
  from <- match(vary, coordinates)
  problem$partial[c("mean_at", "mean_precision")] <- prior_of_means(bound, places[from])
  problem$begin <- begin_spread(problem$partial, spread, design, scale)
  for (j in seq_along(problem$sites)) {
    site <- problem$sites[[j]]
    told <- list(at = spread$at[j, from], precision = 1 / spread$se[j, from]^2)
    site$fields[c("at", "precision")] <- if (totals) without_prior(told, problem$partial$mean_at, problem$partial$mean_precision) else told
    site$fields$covariate <- as.double(design[j, ])
    site$fields <- c(site$fields, spread$fields[[j]])
    if (totals) site$innovates <- innovations_of(site, spread$se[j, ], coordinates, bound)
    problem$sites[[j]] <- site
  }
  varying <- coordinate_names(bound, vary, called)
  pairs <- if (!is.null(pooling$correlation)) which(upper.tri(diag(length(vary))), arr.ind = TRUE)
  problem$names <- c(if (complete) unname(named[heads]) else layer_names(named[heads], varying, colnames(design), pairs, called[shown], names(releases), call),
                     size_names(names(problem$site_priors)))
  drawn <- if (totals && !complete && covariates != "shared") setdiff(bound$parameters, parameters) else character()
  if (length(drawn) * length(releases) > most_drawn) drawn <- character()
  problem$partial$draw <- match(drawn, bound$parameters) - 1L
  problem$drawn <- if (length(drawn)) as.vector(outer(drawn, names(releases), site_variables))
  problem$names <- c(problem$names, problem$drawn)
  problem
}

# Of the covariates of up to so many parameters in all sites draws are kept, for site_fit() but not among the fit's variables.
most_drawn <- 500L

# variables of a pooled fit: means, standard deviations, effects, correlations, and the parameters of the sites
layer_names <- function(heads, coordinates, effects, pairs, shown, sites, call) {
  names <- c(heads, sprintf("sd[%s]", coordinates), as.vector(outer(effects, coordinates, function(x, p) sprintf("%s[%s]", x, p))),
             sprintf("cor[%s,%s]", coordinates[pairs[, 1L]], coordinates[pairs[, 2L]]), as.vector(outer(shown, sites, site_variables)))
  twice <- names[duplicated(names)]
  if (length(twice)) {
    stop_classed("pool", "Covariates, parameters and sites must not lead to two variables of the same name: {.val {twice[1L]}}.", call = call)
  }
  unname(names)
}

# the prior of each standard deviation, named after what varies
layer_sd <- function(pooling, vary, call) {
  sd <- if (is.list(pooling$sd) && !is.object(pooling$sd)) pooling$sd else stats::setNames(rep(list(pooling$sd), length(vary)), vary)
  if (!setequal(names(sd), vary)) {
    stop_classed("prior", c("{.arg sd} must have a prior for each parameter that varies.", x = "Given: {.val {names(sd)}}.", i = "Vary: {.val {vary}}."), call = call)
  }
  if (!is.null(pooling$correlation) && length(vary) < 2L) {
    stop_classed("prior", "{.arg correlation} is for several parameters that vary between sites, and must be NULL if only one does: {.val {vary}}.", call = call)
  }
  sd
}

# a row for each site
design_of_sites <- function(design, sites, call) {
  if (is.null(design)) return(matrix(0, length(sites), 0L))
  given <- rownames(design$matrix)
  if (!setequal(given, sites)) {
    said <- c("{.arg sites} must have a row for each site, and no other.",
              if (length(setdiff(sites, given))) c(x = "Without a row: {.val {shorten_list(setdiff(sites, given))}}."),
              if (length(setdiff(given, sites))) c(x = "No site: {.val {shorten_list(setdiff(given, sites))}}."),
              c(i = "Their names are in the column {.var site} or, without such a column, in the row names."))
    stop_classed("pool", said, call = call)
  }
  design$matrix[sites, , drop = FALSE]
}

# prior standard deviations of effects: the covariates' effects on the first parameter that varies, and so on
effect_scales <- function(sd, design, scale) {
  if (ncol(design) == 0L) return(numeric())
  if (!is.null(sd)) return(rep(as.double(sd), ncol(design) * length(scale)))
  wide <- sqrt(colMeans(design^2))
  as.double(outer(1 / ifelse(wide > 1e-8, wide, 1), scale))
}

# Where chains start, from each site's own release.
begin_spread <- function(partial, spread, design, scale) {
  at <- spread$at
  se <- spread$se
  from <- partial$which + 1L
  if (partial$walk) {
    steps <- diff(diag(nrow(at)), differences = partial$walk)
    differ <- list(at = steps %*% at, se = sqrt(steps^2 %*% se^2))
    differ$at <- rbind(differ$at, -differ$at) # the mean of steps is 0
    differ$se <- rbind(differ$se, differ$se)
  } else {
    fitted <- lapply(from, function(k) weighted_effects(at[, k], se[, k], design, partial$effect_sd[(match(k, from) - 1L) * ncol(design) + seq_len(ncol(design))]))
    differ <- list(at = at, se = se)
    for (i in seq_along(from)) differ$at[, from[i]] <- at[, from[i]] - drop(design %*% fitted[[i]]$effect)
  }
  between <- vapply(seq_len(ncol(at)), function(k) max(variance_between(differ$at[, k], differ$se[, k]), if (k <= length(scale)) (scale[[k]] / 10)^2 else 0), 0)
  error <- 1 / sqrt(colSums(1 / (se^2 + rep(between, each = nrow(se)))))
  error[from] <- 1
  effects <- if (!partial$walk) unlist(lapply(fitted, `[[`, "effect"))
  pairs <- if (partial$lkj > 0) length(from) * (length(from) - 1L) / 2 else 0
  list(at = at, sd = sqrt(between[from]), effects = as.double(effects), pairs = pairs,
       error = as.double(c(error, rep(1, length(from)), if (!partial$walk) unlist(lapply(fitted, `[[`, "error")), rep(1, pairs))))
}

# Effects of covariates on the sites' estimates, and their errors, with a normal prior.
weighted_effects <- function(at, se, design, prior_sd) {
  if (ncol(design) == 0L) return(list(effect = numeric(), error = numeric()))
  weight <- 1 / (se^2 + max(variance_between(at, se), 0))
  x <- cbind(1, design)
  covariance <- invert_positive(crossprod(x * sqrt(weight)) + diag(c(1e-8, 1 / prior_sd^2), ncol(x)))
  list(effect = drop(covariance %*% crossprod(x, weight * at))[-1L], error = sqrt(diag(covariance))[-1L])
}

# by moments (DerSimonian & Laird 1986)
variance_between <- function(at, se) {
  weight <- 1 / se^2
  excess <- sum(weight * (at - sum(weight * at) / sum(weight))^2) - (length(at) - 1)
  excess / (sum(weight) - sum(weight^2) / sum(weight))
}

# What a release alone says about parameters, roughly, where with the prior it says `told`. Some of that is left: it was found by few draws.
without_prior <- function(told, prior_at, prior_precision, least = 0.35) {
  precision <- pmax(told$precision - prior_precision, least * told$precision)
  list(at = prior_at + (told$at - prior_at) * told$precision / precision, precision = precision)
}

# What the model's prior says about the means, roughly, in coordinates: where they are, and a precision.
prior_of_means <- function(bound, places) {
  if (length(places) == 0L) return(list(numeric(), numeric()))
  theta <- .Call(ffi_model_prior, bound$spec, new_stream(c(1, 3)), 1000L)$theta[places, , drop = FALSE]
  list(apply(theta, 1L, stats::median), 1 / apply(theta, 1L, stats::mad)^2)
}

# Do noise and few records leave standard deviations less certain than records without noise would, so that the totals follow from the parameters rather
# than the parameters from the totals? 0: no; as in src/pool/pool_nuts.h 1: the response's standard deviations do, 2: all.
innovations_of <- function(site, se, coordinates, bound) {
  n <- site$fields$n
  if ("exact" %in% site$kernel || !is.null(site$size_prior) || n <= nrow(bound$columns)) return(0L)
  if (is_regression(bound)) {
    se <- se[match("sigma", coordinates)]
    return(as.integer(is.na(se) || is_hidden(se, n)))
  }
  # by the geometric mean over columns
  of_sd <- se[is_variance(coordinates)]
  if (bound$spec$name == "mvnormal" && length(of_sd) && is_drowned(exp(mean(log(of_sd))), n)) 2L else 0L
}

# As is_hidden(), where all totals would be innovations: where these are better was measured.
is_drowned <- function(spread, n) spread^2 > 4 / (2 * n)

varying_parameters <- function(vary, called, call) {
  if (is.null(vary)) return(names(called))
  wanted <- unique(vapply(terms_of_sum(vary[[2L]]), function(term) paste(deparse(term), collapse = ""), ""))
  wanted[wanted %in% c("1", "Intercept")] <- "(Intercept)"
  absent <- setdiff(wanted, called)
  if (length(absent)) {
    stop_classed("pool", c("Parameters that vary between sites must be parameters of a site, but {.val {absent}} {?is/are} not.",
                           x = if ("(Intercept)" %in% absent) "{.code ~ 1} means {.code ~ (Intercept)}, the intercept of a regression.",
                           i = "Parameters, as written in a formula: {.code {as_typed(called)}}."), call = call)
  }
  names(called)[called %in% wanted]
}

# names of parameters in a formula: with backticks where R could not read them
as_typed <- function(names) {
  plain <- vapply(names, function(name) identical(tryCatch(deparse(str2lang(name)), error = function(e) NULL), name), TRUE)
  ifelse(plain, names, paste0("`", names, "`"))
}

# a + b + c as a list of a, b, c; (a) stays
terms_of_sum <- function(expression) {
  if (is.call(expression) && identical(expression[[1L]], as.name("+")) && length(expression) == 3L) {
    return(c(terms_of_sum(expression[[2L]]), terms_of_sum(expression[[3L]])))
  }
  list(expression)
}

coordinate_names <- function(bound, parameters, called) {
  if (has_sticks(bound)) {
    later <- unlist(stick_levels(bound))[match(parameters, bound$parameters)] > 1
    return(sprintf("logit(%s%s)", parameters, ifelse(later, "|rest", "")))
  }
  if (bound$spec$name == "mvnormal") {
    of <- ifelse(startsWith(parameters, "mean["), "%s", ifelse(is_variance(parameters), "log_chol(%s)", "chol(%s)"))
    return(sprintf(of, parameters))
  }
  link <- switch(bound$spec$name, categorical = "logit", poisson = , exponential = "log", NULL)
  logged <- c("sigma", if (bound$spec$name == "normal") "sd")
  vapply(parameters, function(p) if (!is.null(link)) sprintf("%s(%s)", link, p) else if (p %in% logged) sprintf("log(%s)", called[[p]]) else called[[p]], "")
}

# The coordinate of the probability of the second of two, where that alone is reported, is the logit of the other.
coordinate_sign <- function(bound) if (bound$spec$name == "categorical" && !has_sticks(bound)) -1 else 1

spread_scales <- function(bound, parameters) {
  if (bound$spec$name == "normal") {
    return(c(mean = default_sigma(bound$columns), sd = 0.5)[parameters])
  }
  if (bound$spec$name == "mvnormal") {
    scale <- ifelse(is_variance(parameters), 0.5, prior_sd(bound, c(1, 3), 1L)[match(parameters, bound$parameters)] / 2)
    means <- match(sprintf("mean[%s]", bound$columns$name), parameters)
    scale[means[!is.na(means)]] <- default_unit((bound$columns$upper - bound$columns$lower) / 2)[!is.na(means)]
    return(stats::setNames(scale, parameters))
  }
  if (!has_default_scales(bound)) return(stats::setNames(rep(1, length(parameters)), parameters))
  c(default_coefficient_scales(bound) / 2, sigma = 0.5, cv = 0.5)[parameters]
}

# Regressions whose default scales follow from the bounds, whatever the model's prior
has_default_scales <- function(bound) bound$spec$name %in% c("lm", "glm", "categories")

# The default prior standard deviations of the coordinates of coefficients, by the parameters' names; for gaps between thresholds, of their logarithms.
default_coefficient_scales <- function(bound) {
  if (bound$spec$name == "lm") return(stats::setNames(default_sigma(bound$columns) * default_scales(bound$design), coefficient_names(bound$design)))
  scale <- family_scales(bound$model, bound$design)
  if (bound$spec$name == "glm") return(stats::setNames(scale, coefficient_names(bound$design)))
  cuts <- length(bound$categories) - 1L
  each <- if (is_ordered_family(bound$model)) c(scale[1L], rep(1, cuts - 1L), scale[-1L]) else rep(scale, cuts)
  stats::setNames(each, category_coefficients(bound))
}

# ---- what each site tells on its own ---------------------------------------------------------
# Matrices sites x parameters, in coordinates: estimates and standard errors.

spread_of_rates <- function(problem) {
  each <- vapply(problem$sites, function(site) {
    n <- max(site$fields$n, 1)
    more <- (site$size_error %||% 0) / n # of a size that is not known
    if (problem$model$name == "exponential") return(c(log(n / site$likely), sqrt(1 / n + (site$noise / site$likely)^2)))
    s <- site$likely + 0.5
    if (problem$model$name == "poisson") return(c(log(s / n), sqrt((s + site$noise^2) / s^2 + more^2)))
    s <- min(s, n + 0.5)
    spread <- s * (n + 1 - s) / (n + 1)
    c(log((n + 1 - s) / s), sqrt((spread + site$noise^2) / spread^2 + (more * s / (n + 1 - s))^2))
  }, c(0, 0))
  list(at = cbind(each[1L, ]), se = cbind(each[2L, ]))
}

pilot_iterations <- c(warmup = 150, kept = 250)

spread_of_totals <- function(problem, bound) {
  run <- list(warmup = pilot_iterations[["warmup"]], thin = 1)
  stream <- new_stream(c(1, 2))
  each <- lapply(problem$sites, function(site) {
    own <- c(site$alone[names(site$alone) != "given"], list(given = FALSE))
    prior <- .Call(ffi_model_prior, bound$spec, stream, 1L)
    state <- .Call(ffi_start, own, as.double(prior$theta), prior$state)
    chain <- run_blocks(own, state, sum(pilot_iterations), run, function(...) NULL)
    stream <<- chain$state$rng
    values <- site_coordinates(bound, chain$draws[, match(problem$partial$parameters, bound$parameters), drop = FALSE])
    c(apply(values, 2L, stats::median), apply(values, 2L, stats::mad))
  })
  each <- do.call(rbind, each)
  half <- ncol(each) / 2
  list(at = each[, seq_len(half), drop = FALSE], se = pmax(each[, half + seq_len(half), drop = FALSE], 1e-8))
}

# natural values of a site's parameters, a row each, as coordinates; and back
site_coordinates <- function(bound, values) {
  parameters <- site_parameters(bound)
  if (is_log_rate(bound)) return(log(values))
  if (!is_regression(bound)) {
    return(t(.Call(ffi_model_invert, bound$spec, t(values))[bound$unknown, , drop = FALSE]))
  }
  b <- parameters != "sigma"
  if (any(b)) {
    centring <- bound_centring(bound)
    values[, b] <- t(centring$inverse %*% (t(values[, b, drop = FALSE]) - centring$shift))
  }
  if (any(!b)) values[, !b] <- log(values[, !b])
  values
}

site_natural <- function(bound, values) {
  parameters <- site_parameters(bound)
  if (is_log_rate(bound)) return(array(exp(values), dim(values), list(NULL, parameters)))
  if (!is_regression(bound)) {
    theta <- matrix(0, bound$sizes$parameters, nrow(values))
    theta[bound$unknown, ] <- t(values)
    return(reported(bound, theta))
  }
  b <- parameters != "sigma"
  if (any(b)) {
    centring <- bound_centring(bound)
    values[, b] <- t(centring$matrix %*% t(values[, b, drop = FALSE]) + centring$shift)
  }
  if (any(!b)) values[, !b] <- exp(values[, !b])
  values
}

# What draw() makes of `rows`, those again that are not `inside` the bounds of a prior that is cut off. `inside`: NULL, or a function.
draw_inside <- function(rows, values, inside, call, draw, most = 10000L) {
  for (k in seq_len(most)) {
    values[rows, ] <- draw(rows)
    if (is.null(inside)) return(values)
    rows <- rows[!inside(values[rows, , drop = FALSE])]
    if (length(rows) == 0L) return(values)
  }
  stop_classed("pool", "The standard deviations between sites are so wide that a new site is hardly ever {.arg within} the bounds of the prior.", call = call)
}

# standard normal rows with the correlations of the same row, those above a diagonal column by column
correlated <- function(z, correlations) {
  if (ncol(correlations) == 0L) return(z)
  r <- diag(ncol(z))
  t(vapply(seq_len(nrow(z)), function(i) {
    r[upper.tri(r)] <- correlations[i, ]
    drop(z[i, ] %*% chol(r))
  }, z[1L, ]))
}
