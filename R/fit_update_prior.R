# update(fit, prior = ): draws of the old posterior, weighted by the ratio of the two priors, are used for the new one if the weights are good (Vehtari,
# Simpson, Gelman, Yao & Gabry 2024: Pareto smoothed importance sampling). Otherwise the fit is sampled again.

# Good weights: Pareto k at most this, or 1 - 1 / log10(draws) where that is less, and at least such a share of effective draws.
highest_k <- 0.7
least_share <- 0.2

update_prior <- function(fit, prior, given, call = caller_env()) {
  model <- with_prior(fit$asked$model, prior, call)
  again <- function(why) {
    cli::cli_inform(c("Sampled again for the new prior, since {why}.", i = "See the help of {.fn update} for when it reweights and when it samples."),
                    class = c("noiseaware_message_sampled", "noiseaware_message_update"))
    refit(fit, c(list(model = model), given))
  }
  others <- setdiff(names(given), "seed")
  if (length(others)) return(again(paste("other arguments also change:", shorten_list(others))))
  if (inherits(fit, "noiseaware_pool")) return(again("the fit is of several sites"))
  if (is.null(fit$chains)) return(again(sprintf("method \"%s\" draws again at once", fit$method)))
  if (!is.null(fit$weighted)) return(again("the draws have already been reweighted for another prior"))
  bound <- bind_model(settle_released(model, fit$release, fit$method, call), fit$release$statistic, call)
  check_prior_draws(bound, call)
  ratio <- prior_ratio(fit, bound)
  if (is.null(ratio)) return(again("it has other unknown parameters, or the old prior excludes values that it allows, or it excludes all draws"))
  weights <- smooth_weights(ratio)
  draws <- length(ratio)
  limit <- pareto_limit(draws)
  weighting <- list(k = weights$k, effective = 1 / sum(weights$weight^2), draws = draws)
  if (weighting$effective < least_share * draws) {
    return(again(sprintf("importance weights would leave %s of %s draws effective", format_size(round(weighting$effective)), format_size(draws))))
  }
  if (weighting$k > limit) {
    return(again(sprintf("importance weights are not reliable: Pareto k is %s, above %s", format_number(weighting$k, 2), format_number(limit, 2))))
  }
  cli::cli_inform("The draws were reweighted for the new prior, not sampled again: {weights_line(weighting)}.",
                  class = c("noiseaware_message_weighted", "noiseaware_message_update"))
  fit <- resampled_fit(fit, with_seed(check_seed(given$seed, call = call), systematic_rows(weights$weight)))
  fit$bound <- bound
  fit$weighted <- weighting
  fit$asked$model <- model
  with_troubles(fit, call)
}

# The model with the new prior in the place of its argument `prior`.
with_prior <- function(model, prior, call) UseMethod("with_prior")

#' @export
with_prior.default <- function(model, prior, call) {
  stop_classed("argument", c("{.arg prior} can be changed only for models with such an argument.", x = "The model has none: {format(model)[1L]}.",
                             i = "{.code update(fit, model = )} accepts another model."), call = call)
}

replace_prior <- function(model, prior, field = "prior", arguments = list(), constructor = paste0("model_", model$name), call) {
  made <- withCallingHandlers(do.call(constructor, c(list(prior = prior), arguments), quote = TRUE),
                              noiseaware_error = function(e) {
                                e$call <- call
                                rlang::cnd_signal(e)
                              })
  model[field] <- unclass(made)[field]
  model
}

#' @export
with_prior.model_bernoulli <- function(model, prior, call) replace_prior(model, prior, call = call)

#' @export
with_prior.model_categorical <- with_prior.model_bernoulli

#' @export
with_prior.model_poisson <- with_prior.model_bernoulli

#' @export
with_prior.model_exponential <- with_prior.model_bernoulli

#' @export
with_prior.model_normal <- with_prior.model_bernoulli

# known coefficients with an unknown coefficient of variation are refused
#' @export
with_prior.model_glm <- function(model, prior, call) {
  shape <- if (is_shaped_family(model)) list(family = family_of(model)$family, cv = model$cv)
  replace_prior(model, prior, arguments = shape, call = call)
}

#' @export
with_prior.model_mvnormal <- function(model, prior, call) replace_prior(model, prior, "covariates", call = call)

#' @export
with_prior.model_naive_bayes <- function(model, prior, call) {
  replace_prior(model, prior, arguments = list(class = model$class_variable, conditional = model$conditional), call = call)
}

#' @export
with_prior.model_table <- function(model, prior, call) {
  join <- function(operation, sides) Reduce(function(a, b) as.call(list(as.name(operation), a, b)), sides)
  terms <- lapply(model$cliques, function(clique) join(":", lapply(clique, as.name)))
  formula <- if (length(terms)) stats::as.formula(as.call(list(as.name("~"), join("+", terms))))
  replace_prior(model, prior, c("cliques", "prior"), list(formula = formula, zeros = model$zeros), call = call)
}

# prior_nig() has a prior of sigma with it; other priors keep the one that there is
#' @export
with_prior.model_lm <- function(model, prior, call) {
  kept <- if (!inherits(prior, "prior_nig") || inherits(model$sigma, "fixed")) model["sigma"]
  replace_prior(model, prior, c("prior", "sigma"), kept, call = call)
}

# log p_new / p_old of each draw; NULL where the coordinates differ, or where the old prior is cut off and the new one not likewise
prior_ratio <- function(fit, bound) {
  old <- fit$bound
  if (!identical(bound$parameters, old$parameters) || !identical(bound$unknown, old$unknown) || isTRUE(bound$callbacks)) return(NULL)
  draws <- own_parameters(fit)
  theta <- draws_theta(old, draws)
  if (!isTRUE(all.equal(reported(bound, theta[, 1L, drop = FALSE])[1L, ], draws[1L, ], tolerance = 1e-6))) return(NULL)
  if (!identical(cut_fields(old), cut_fields(bound)) && bound_is_cut(old)) return(NULL)
  ratio <- .Call(ffi_model_log_prior, bound$spec, theta) - .Call(ffi_model_log_prior, old$spec, theta)
  if (any(is.finite(ratio))) ratio
}

cut_fields <- function(bound) bound$spec$fields[startsWith(names(bound$spec$fields), "within")]

# Importance weights are relied on up to this shape of their tail: fewer draws need a lighter one (Vehtari et al. 2024)
pareto_limit <- function(draws) min(highest_k, 1 - 1 / log10(draws))

# ---- weights -----------------------------------------------------------------------------------

# Weights that sum to 1, and Pareto k, from their logarithms: the greatest are replaced by quantiles of a generalised Pareto distribution
# that is fitted to them.
smooth_weights <- function(log_ratio) {
  draws <- length(log_ratio)
  log_weight <- log_ratio - max(log_ratio)
  size <- ceiling(min(0.2 * draws, 3 * sqrt(draws)))
  k <- -Inf
  order <- order(log_weight)
  tail <- order[seq(draws - size + 1L, draws)]
  if (size >= 5L && is.finite(log_weight[tail[1L]]) && diff(range(log_weight[tail])) > 1e-12) {
    cutoff <- exp(log_weight[order[draws - size]])
    fitted <- fit_pareto(exp(log_weight[tail]) - cutoff)
    k <- fitted$k
    p <- (seq_len(size) - 0.5) / size
    log_weight[tail] <- pmin(log(cutoff + fitted$sigma * expm1(-k * log1p(-p)) / k), 0)
  }
  weight <- exp(log_weight)
  list(weight = weight / sum(weight), k = k)
}

# Zhang & Stephens (2009), shape k drawn towards 1/2 as by ten more values; x in increasing order
fit_pareto <- function(x, points = 30L) {
  n <- length(x)
  grid <- points + floor(sqrt(n))
  quartile <- x[floor(n / 4 + 0.5)]
  theta <- 1 / x[n] + (1 - sqrt(grid / (seq_len(grid) - 0.5))) / 3 / quartile
  shape <- vapply(theta, function(t) mean(log1p(-t * x)), 0)
  fit <- n * (log(-theta / shape) - shape - 1)
  theta <- sum(theta * exp(fit - log_sum_exp(fit)))
  k <- mean(log1p(-theta * x))
  list(k = (n * k + 5) / (n + 10), sigma = -k / theta)
}

# As many rows as there are weights, each about in proportion to its weight, in order.
systematic_rows <- function(weight) {
  count <- length(weight)
  findInterval((seq_len(count) - stats::runif(1L)) / count, c(0, cumsum(weight)[-count]))
}

# `rows`: of the chains' draws end to end. The chains have no state to be continued from.
resampled_fit <- function(fit, rows) {
  kept <- nrow(fit$draws)
  part <- function(k) rows[(k - 1L) * kept + seq_len(kept)]
  stack <- function(name) {
    values <- lapply(fit$chains, `[[`, name)
    if (is.matrix(values[[1L]])) do.call(rbind, lapply(values, function(v) v[seq_len(kept), , drop = FALSE])) else unlist(lapply(values, `[`, seq_len(kept)))
  }
  sampled <- setdiff(names(fit$chains[[1L]]), c("acceptance", "diagnostics", "state", "status"))
  all <- lapply(stats::setNames(nm = sampled), stack)
  take <- function(values, k) if (is.matrix(values)) values[part(k), , drop = FALSE] else values[part(k)]
  for (k in seq_along(fit$chains)) {
    fit$chains[[k]][sampled] <- lapply(all, take, k)
    fit$chains[[k]]["state"] <- list(NULL)
  }
  resample <- function(draws) {
    values <- plain_matrix(draws)[rows, , drop = FALSE]
    posterior::as_draws_array(array(values, dim(draws), list(NULL, NULL, colnames(values))))
  }
  fit$draws <- resample(fit$draws)
  if (!is.null(fit$hidden)) fit$hidden <- resample(fit$hidden)
  fit
}

#' @rdname add_release
#' @export
add_release.noiseaware_fit <- function(x, second, names = NULL, ...) {
  check_given()
  if (is.null(x$asked)) stop_argument("x", "a release, or a fit made by sample_posterior()", describe(x))
  given <- list(...)
  check_argument_names(given, setdiff(names(formals(sample_posterior)), c("release", "...", "pool")))
  refit_from_draws(x, c(list(release = join_releases(x$whole %||% x$release, second, names)), given))
}

#' Refit with changed arguments
#'
#' Runs the call of a fit again with other arguments, or a regression with another formula.
#'
#' @param object A fit from [sample_posterior()].
#' @param ... Arguments of [sample_posterior()] by name, such as `model`, `release`,
#'   `method` or `iter`. Arguments that are not given keep the values from the first call. `method = "auto"` chooses again, and a `warmup` that was never given
#'   is half of `iter`. After [extend()], `iter` includes the added iterations. You can also give `add`, a second release of the same records: see
#'   [add_release()].
#' @param formula. Another formula for a regression, as in [stats::update()]: `. ~ . - age`. The new regression is sampled given the whole release; [regress()]
#'   derives one from a joint fit.
#' @param prior A prior that replaces the model's argument `prior`; the rest of the model is unchanged. See below.
#' @return A fit.
#' @section Another prior: `update(fit, prior = )` reuses the draws if possible. Each draw gets an importance weight, the ratio of the new prior's density to
#'   the old one's, and the draws are resampled in proportion to the weights. The result has as many draws as before, some of them repeated, so every function
#'   for fits works on it; its effective number of draws accounts for the repeats. The weights are considered reliable if Pareto k (Vehtari et al. 2024) is at
#'   most 0.7, or at most 1 - 1 / log10(draws) if that is smaller, and a fifth of the draws remain effective. Otherwise new chains are sampled with the new
#'   prior. The same happens if any other argument except `seed` changes, and for a fit of several sites. A message of class `noiseaware_message_weighted` or
#'   `noiseaware_message_sampled` says which was done, and the printed fit has a line about its weights. [extend()] does not accept a weighted fit: use
#'   `update(fit, iter = )` to sample the new posterior. `update(fit, model = )` always samples.
#' @section Errors: `noiseaware_error_argument`, and those of [sample_posterior()].
#' @references
#' Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance sampling. *Journal of Machine
#' Learning Research* 25 (72), 1-58. \doi{10.48550/arXiv.1507.02646}
#' @family summaries of fits
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' update(fit, method = "clt")
#'
#' counts <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
#' some <- as_release(c("smoke=yes" = 73.2), counts, mech_laplace(epsilon = 0.5), n = 189)
#' smoking <- sample_posterior(some, model_bernoulli(), chains = 2, iter = 1000, seed = 1)
#' update(smoking, prior = prior_beta(4, 6))
#' @importFrom stats update
#' @export
update.noiseaware_fit <- function(object, formula. = NULL, ..., prior = NULL) {
  if (is.null(object$asked)) stop_classed("argument", "{.arg object} must be a fit made by {.fn sample_posterior}.")
  given <- list(...)
  check_argument_names(given, c(setdiff(names(formals(sample_posterior)), "..."), "add"))
  if (!is.null(formula.)) given$model <- with_formula(object, formula., given$model)
  if (!is.null(prior)) {
    if (!is.null(given$model)) stop_classed("argument", "{.arg model} and {.arg prior} must not be given together: a model has a prior.")
    if (!is.null(given$add)) stop_classed("argument", "{.arg add} and {.arg prior} must not be given together: update twice.")
    return(update_prior(object, prior, given))
  }
  if (!is.null(given$add)) {
    if (!is.null(given$release)) stop_classed("argument", "{.arg release} and {.arg add} must not be given together.")
    given$release <- join_releases(object$whole %||% object$release, given$add, NULL)
    return(refit_from_draws(object, given[names(given) != "add"]))
  }
  refit(object, given)
}

# the fit's model of another regression
with_formula <- function(fit, formula, model, call = caller_env()) {
  if (!is.null(model)) stop_classed("argument", "{.arg formula.} and {.arg model} must not be given together: a model has a formula.", call = call)
  if (!inherits(formula, "formula")) stop_argument("formula.", "a formula such as . ~ . - age", describe(formula), call = call)
  model <- fit$asked$model
  if (inherits(fit$bound, "bound_survival")) {
    model$formula <- survival_terms(stats::update.formula(fit$bound$terms, formula), "formula.", call)
    return(model)
  }
  if (is.null(response_of(fit$bound)) || is.null(fit$bound$formula)) {
    stop_classed("formula", "{.arg formula.} is for fits of a regression, but this is a fit of {describe_model(fit$bound)}.", call = call)
  }
  before <- called_formula(text_formula(fit$bound$formula))
  split <- split_bars(stats::update.formula(before, formula), call)
  model$formula <- formula_text(functions_as_names(split$formula, call))
  if (!is.null(split$bars)) model[c("group", "bars")] <- split[c("group", "bars")]
  model
}
