# Partial pooling: what varies between sites, how widely, and where chains begin. See src/method_pool.c.

#' Parameters that differ between sites, but not by much
#'
#' What `pool = "partial"` stands for, with choices: parameters of the sites are normal about a mean, with standard deviations that
#' the releases tell something about. Each site then borrows from the others, the more the less its own release tells.
#'
#' @param vary A formula of the parameters that differ between sites, such as `~ (Intercept)` or `~ (Intercept) + age`; the others are the
#'   same in all. `NULL`: all. The formula alone may stand for `partial_pooling(formula)`.
#' @param sd Prior of the standard deviation between sites: [prior_half_normal()], [prior_half_t()] or [prior_exponential()]; or a named list
#'   of such priors, one for each parameter that varies. Without a scale they have that of the section below.
#'
#' @details
#' Parameters are normal about their mean in coordinates without bounds: coefficients as they are, the intercept where covariates are at the
#' middle of their bounds, `log(sigma)`, `logit(prob)`, `log(rate)`. The mean has the model's prior. In a regression the covariates'
#' distribution is each site's own, with the model's prior, and not pooled.
#'
#' **Default scales** of the standard deviation: 1 for `logit(prob)` and `log(rate)`, 1/2 for `log(sigma)`, and for coefficients half of the default prior
#' standard deviation that [priors] states.
#'
#' **Draws**: the mean over sites under the model's own names (`prob[yes]`, `(Intercept)`, `sigma`: natural values of the mean coordinate), the standard
#' deviations as `sd[...]` on the coordinate, and the parameters of each site, `(Intercept)[north]`.
#' @return An object of class `noiseaware_pooling`, for the argument `pool` of [sample_posterior()].
#' @section Errors: `noiseaware_error_pool`, `noiseaware_error_prior`.
#' @seealso [pooling], [pool_methods].
#' @examples
#' asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' site <- function(yes, n) as_release(c("smoke=yes" = yes), asked, mech_laplace(epsilon = 0.5), n = n)
#' sites <- list(north = site(73.2, 189), south = site(31.7, 90), west = site(55.1, 120))
#' sample_posterior(sites, model_bernoulli(), pool = "partial", chains = 2, iter = 600, seed = 1)
#' partial_pooling(sd = prior_half_t(3, 0.5))
#' @export
partial_pooling <- function(vary = NULL, sd = prior_half_normal()) {
  if (!is.null(vary) && !(inherits(vary, "formula") && length(vary) == 2L)) {
    stop_argument("vary", "NULL or a formula with one side, such as ~ (Intercept)", describe(vary), "pool")
  }
  known <- c("prior_half_normal", "prior_half_t", "prior_exponential")
  must <- "prior_half_normal(), prior_half_t() or prior_exponential(), or a named list of these"
  several <- is.list(sd) && !is.object(sd)
  if (several && !checkmate::test_names(names(sd), "unique")) stop_argument("sd", must, describe(sd), "prior")
  for (one in if (several) sd else list(sd)) check_class(one, "sd", known, must, "prior")
  structure(list(vary = vary, sd = sd), class = "noiseaware_pooling")
}

#' @export
print.noiseaware_pooling <- function(x, ...) {
  several <- is.list(x$sd) && !is.object(x$sd)
  cat("<pooling> partial\n  vary  ", if (is.null(x$vary)) "all parameters" else formula_text(x$vary), "\n  sd    ",
      if (several) paste(names(x$sd), vapply(x$sd, format, ""), collapse = "; ") else format(x$sd), "\n", sep = "")
  invisible(x)
}

# "partial" and a formula stand for one; strings else
as_pooling <- function(pool) {
  if (identical(pool, "partial")) return(partial_pooling())
  if (inherits(pool, "formula")) return(partial_pooling(pool))
  pool
}

# ---- what varies ---------------------------------------------------------------------------

# A normal model as a regression without covariates, whose coordinates it then has.
as_regression <- function(bound) {
  if (bound$spec$name != "normal") return(bound)
  fields <- bound$spec$fields
  mean <- bound$model$prior$mean
  prior <- if (!is.null(fields[["mean"]])) fixed(fields$mean) else if (inherits(mean, "prior_nig"))
    prior_nig(fields$prior_mean, fields$prior_precision, fields$shape, fields$rate) else prior_normal(fields$prior_mean, 1 / sqrt(fields$prior_precision))
  sigma <- if (!is.null(fields[["sd"]])) fixed(fields$sd) else if (!inherits(mean, "prior_nig")) prior_inverse_gamma(fields$shape, fields$rate)
  model <- model_lm(stats::reformulate("1", as.name(bound$columns$name)), prior = prior, sigma = sigma)
  regression <- bind_public(model, list(columns = bound$columns, levels = list(), formula = NULL), NULL)
  regression$called <- c("(Intercept)" = "mean", sigma = "sd")
  regression
}

# names of the parameters of a site: coefficients and sigma, or the rate
site_parameters <- function(bound) {
  if (bound$spec$name != "lm") return(bound$parameters)
  intersect(c("(Intercept)", bound$columns$name[-1L], "sigma"), bound$parameters)
}

partial_problem <- function(problem, pooling, bound, releases, call) {
  parameters <- site_parameters(bound)
  called <- stats::setNames(ifelse(parameters %in% names(bound$called), bound$called[parameters], parameters), parameters)
  vary <- varying_parameters(pooling$vary, called, call)
  coefficients <- setdiff(parameters, "sigma")
  rate <- problem$family == "rates"
  shown <- if (rate) parameters else c(if (any(coefficients %in% vary)) coefficients, intersect("sigma", vary))
  scale <- spread_scales(bound, parameters)
  sd <- if (is.list(pooling$sd) && !is.object(pooling$sd)) pooling$sd else stats::setNames(rep(list(pooling$sd), length(vary)), called[vary])
  if (!setequal(names(sd), called[vary])) {
    stop_classed("prior", c("{.arg sd} must have a prior for each parameter that varies.", x = "Given: {.val {names(sd)}}.", i = "Vary: {.val {unname(called[vary])}}."),
                 call = call)
  }
  problem$partial <- list(which = match(vary, parameters) - 1L, show = match(shown, parameters) - 1L,
                          sd = lapply(vary, function(v) list(fields = lapply(sigma_fields(sd[[called[[v]]]], scale[[v]]), as.double))),
                          likelihood = if (!rate) likelihood_spec(bound), vary = vary, parameters = parameters)
  places <- seq_along(parameters)
  if (!rate && !"(Intercept)" %in% parameters) places <- length(bound$spec$fields$beta) + 1L
  problem$partial$place <- places
  problem$partial$reported <- unname(called[parameters])
  problem$partial$shown <- unname(called[vary])
  spread <- if (rate) spread_of_rates(problem) else spread_of_totals(problem, bound)
  from <- match(vary, parameters)
  between <- vapply(seq_along(parameters), function(k) max(variance_between(spread$at[, k], spread$se[, k]), (scale[[k]] / 10)^2), 0)
  error <- 1 / sqrt(colSums(1 / (spread$se^2 + rep(between, each = nrow(spread$se)))))
  problem$begin <- list(at = spread$at, sd = sqrt(between[from]), error = as.double(error))
  least <- vapply(from, function(k) least_between(spread$at[, k], spread$se[, k]), 0)
  centred <- sweep(well_known^2 * spread$se[, from, drop = FALSE]^2, 2L, least, "<")
  for (j in seq_along(problem$sites)) {
    site <- problem$sites[[j]]
    site$fields$centred <- as.double(centred[j, ])
    if (!rate) site$innovates <- innovates(site, spread$se[j, match("sigma", parameters)], bound)
    problem$sites[[j]] <- site
  }
  problem$names <- c(called[parameters], sprintf("sd[%s]", coordinate_names(bound, vary, called)),
                     as.vector(outer(called[shown], names(releases), site_variables)))
  problem$names <- unname(problem$names)
  problem
}

# A site's parameter is its own coordinate where sites surely differ by so many times what the site's release is uncertain of it: near a standard
# deviation of 0 these coordinates are as narrow as it.
well_known <- 2

# by moments (DerSimonian & Laird 1986)
variance_between <- function(at, se) {
  weight <- 1 / se^2
  excess <- sum(weight * (at - sum(weight * at) / sum(weight))^2) - (length(at) - 1)
  excess / (sum(weight) - sum(weight^2) / sum(weight))
}

# The least variance between sites that is compatible with what they tell (Viechtbauer 2007): 0 where they may well be the same.
least_between <- function(at, se, level = 0.95) {
  excess <- function(variance) {
    weight <- 1 / (se^2 + variance)
    sum(weight * (at - sum(weight * at) / sum(weight))^2) - stats::qchisq(level, length(at) - 1)
  }
  if (excess(0) <= 0) return(0)
  stats::uniroot(excess, c(0, length(at) * stats::var(at)), tol = 1e-6 * stats::var(at))$root
}

# Do noise and few records leave sigma less certain than records without noise would, so that the totals follow from the parameters rather
# than the parameters from the totals?
innovates <- function(site, se, bound) {
  n <- site$fields$n
  n > nrow(bound$columns) && (is.na(se) || is_hidden(se, n))
}

varying_parameters <- function(vary, called, call) {
  if (is.null(vary)) return(names(called))
  wanted <- unique(vapply(terms_of_sum(vary[[2L]]), function(term) paste(deparse(term), collapse = ""), ""))
  wanted[wanted %in% c("1", "Intercept")] <- "(Intercept)"
  absent <- setdiff(wanted, called)
  if (length(absent)) {
    stop_classed("pool", c("Parameters that vary between sites must be among those of a site, but {.val {absent}} {?is/are} not.",
                           i = "Parameters: {.val {unname(called)}}."), call = call)
  }
  names(called)[called %in% wanted]
}

# a + b + c as a list of a, b, c; (a) stays
terms_of_sum <- function(expression) {
  if (is.call(expression) && identical(expression[[1L]], as.name("+")) && length(expression) == 3L) {
    return(c(terms_of_sum(expression[[2L]]), terms_of_sum(expression[[3L]])))
  }
  list(expression)
}

coordinate_names <- function(bound, parameters, called) {
  link <- switch(bound$spec$name, categorical = "logit", poisson = "log", NULL)
  vapply(parameters, function(p) if (!is.null(link)) sprintf("%s(%s)", link, p) else if (p == "sigma") sprintf("log(%s)", called[[p]]) else called[[p]], "")
}

spread_scales <- function(bound, parameters) {
  if (bound$spec$name != "lm") return(stats::setNames(rep(1, length(parameters)), parameters))
  all <- c(default_sigma(bound$columns) * default_scales(bound$columns) / 2, 0.5)
  stats::setNames(all, c("(Intercept)", bound$columns$name[-1L], "sigma"))[parameters]
}

# The model without the priors of coefficients and sigma, which the sites' parameters have.
likelihood_spec <- function(bound) {
  spec <- bound$spec
  prior <- c("beta_mean", "beta_precision", "beta_nig", "beta_df", "beta_scale", "beta_first", "sigma_inverse_gamma", "sigma_half_normal",
             "sigma_half_t", "sigma_exponential")
  spec$fields <- c(spec$fields[setdiff(names(spec$fields), prior)], list(flat = 1))
  spec
}

# ---- what each site tells on its own ---------------------------------------------------------
# Matrices sites x parameters, in coordinates: where they are, and a standard error.

spread_of_rates <- function(problem) {
  each <- vapply(problem$sites, function(site) {
    n <- site$fields$n
    s <- site$likely + 0.5
    if (site$fields$kind == 1) return(c(log(s / n), sqrt(s + site$noise^2) / s))
    spread <- s * (n + 1 - s) / (n + 1)
    c(log((n + 1 - s) / s), sqrt(spread + site$noise^2) / spread)
  }, c(0, 0))
  list(at = cbind(each[1L, ]), se = cbind(each[2L, ]))
}

pilot_iterations <- c(warmup = 100, kept = 60)

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
  if (bound$spec$name == "categorical") return(stats::qlogis(1 - values))
  if (bound$spec$name == "poisson") return(log(values))
  b <- parameters != "sigma"
  if (any(b)) {
    centring <- lm_centring(bound)
    values[, b] <- t(centring$inverse %*% (t(values[, b, drop = FALSE]) - centring$shift))
  }
  if (any(!b)) values[, !b] <- log(values[, !b])
  values
}

site_natural <- function(bound, values) {
  parameters <- site_parameters(bound)
  if (bound$spec$name == "categorical") return(1 - stats::plogis(values))
  if (bound$spec$name == "poisson") return(exp(values))
  b <- parameters != "sigma"
  if (any(b)) {
    centring <- lm_centring(bound)
    values[, b] <- t(centring$matrix %*% t(values[, b, drop = FALSE]) + centring$shift)
  }
  if (any(!b)) values[, !b] <- exp(values[, !b])
  values
}

# Chains begin apart: the mean is moved by some of the spread, and the spread by a factor.
begin_partial <- function(problem, k) {
  begin <- problem$begin
  apart <- c(0, 1, -1, 0.5, -0.5)[(k - 1L) %% 5L + 1L]
  mean <- apply(begin$at, 2L, stats::median)
  from <- match(problem$partial$vary, problem$partial$parameters)
  mean[from] <- mean[from] + apart * begin$sd
  list(mean = mean, phi = as.double(t(begin$at)), log_sd = as.double(log(begin$sd) + 0.5 * apart), error = begin$error)
}

# A site that released nothing: draws x parameters.
new_site_draws <- function(fit) {
  partial <- fit$problem$partial
  draws <- parameter_matrix(fit)
  values <- site_coordinates(fit$bound, draws[, seq_along(partial$parameters), drop = FALSE])
  for (v in seq_along(partial$vary)) {
    at <- match(partial$vary[v], partial$parameters)
    values[, at] <- values[, at] + draws[, length(partial$parameters) + v] * stats::rnorm(nrow(values))
  }
  values <- site_natural(fit$bound, values)
  colnames(values) <- fit$problem$names[seq_along(partial$parameters)]
  values
}
