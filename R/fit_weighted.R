# Design-weighted estimates from a fit of the weighted products u = w (1, x, y, xx', xy): any smooth function of E u, here the solution b of
# E(w xx') b = E(w xy), has a posterior whose standard deviation is the linearised design-based one (with replacement).

# By stratum, if they were released so.
stratified_model <- function(model, release) {
  if (!inherits(release, "noiseaware_release") || !inherits(model, "model_mvnormal")) return(model)
  strata <- Find(function(s) inherits(s, "stat_by") && !is.null(s$weighted), if (is_several(release$statistic)) release$statistic else list(release$statistic))
  if (!is.null(strata)) model$group <- names(strata$levels)[1L]
  model
}

# What "auto" knows of costs is of numbers that are not products of each other.
method_for_weights <- function(method, release, bound) {
  weighted <- method == "auto" && !is.null(weighted_statistic(release$statistic)) && method_serves("collapse", release, bound)
  if (weighted) "collapse" else method
}

# regress() of a fit of weighted products. Approximate, as its working model is, whatever the method of the fit.
regress_weighted <- function(fit, statistic, formula, call) {
  of <- statistic$weighted
  variables <- formula_variables(formula, call)
  known <- unique(of$plain$columns$variable)
  strange <- setdiff(variables, known)
  if (length(strange)) {
    stop_classed("variables", c("{.arg formula} must have variables of the release; {.var {strange}} {?is/are} not.", i = "The release has {.var {known}}."), call = call)
  }
  if (known[1L] %in% variables[-1L]) {
    stop_classed("variables", "{.var {known[1]}} can only be the response: the release has no weighted total of its square.", call = call)
  }
  totals <- weighted_totals(fit, statistic, call)
  if (!is.null(totals$prior_n) && "n" %in% variables[-1L]) {
    stop_classed("variables", "A covariate must not be called {.var n}, because the number of records has that name.", call = call)
  }
  bound <- bind_model(model_lm(text_formula(formula_text(formula))), narrow_statistic(of$plain, variables)$statistic, call)
  moments <- weighted_moments(statistic, totals$values)
  x <- c("(Intercept)", bound$columns$name[-1L])
  y <- bound$columns$name[1L]
  middle <- (bound$columns$lower[1L] + bound$columns$upper[1L]) / 2
  most <- (bound$columns$upper[1L] - middle)^2
  values <- t(apply(moments, 1L, function(m) {
    root <- tryCatch(chol(m[x, x]), error = function(e) NULL)
    fitted <- if (!is.null(root)) forwardsolve(t(root), m[x, y] - middle * m[x, "(Intercept)"])
    possible <- !is.null(root) && sum(fitted^2) <= most * m["(Intercept)", "(Intercept)"]
    c(if (possible) backsolve(root, fitted) + c(middle, numeric(length(x) - 1L)) else rep(NA, length(x)), m["(Intercept)", c("(Intercept)", y, x[-1L])])
  }))
  bound$parameters <- c(x, sprintf("total[%s]", c(of$weight, y, x[-1L])))
  colnames(values) <- bound$parameters
  if (!is.null(totals$prior_n)) values <- cbind(values, n = totals$n)
  bound$model <- (fit$fits[[1L]] %||% fit)$bound$model
  bound$weight <- of$weight
  bound$strata <- if (is_of_groups(fit)) fit$problem$groups$variable
  class(bound) <- c("bound_weighted", "noiseaware_bound")
  possible <- possible_draws(fit, values, call)
  release <- if (is_of_groups(fit)) fit$problem$groups$release else fit$release
  read <- new_fit(possible$draws, release, bound, fit$run, "regress", FALSE, problem = list(prior_n = totals$prior_n))
  read$why <- c("design-weighted: with-replacement linearisation; normal working model of the weighted products", if (!is.null(bound$strata))
    paste("strata:", bound$strata), possible$why)
  read$troubles <- if (is.null(fit$fits)) fit$troubles else unlist(lapply(unname(fit$fits), `[[`, "troubles"), recursive = FALSE)
  read
}

# list of `values`, draws x weighted products: totals over the records, of all strata; `n`; and `prior_n` if that is not known
weighted_totals <- function(fit, statistic, call) {
  strata <- inherits(fit, "noiseaware_pool")
  if (strata && (!is_of_groups(fit) || fit$pool != "none") || !strata && !inherits(fit$bound, "bound_mvnormal")) {
    stop_argument("fit", "a fit of one release by model_mvnormal()", describe_model(fit$bound), call = call)
  }
  draws <- parameter_matrix(fit)
  columns <- with(statistic$weighted, c(weight, labels))
  of_fit <- function(one, name) {
    n <- if (is.null(one$release$n)) draws[, name("n")] else rep(one$release$n, nrow(draws))
    means <- name(sprintf("mean[%s]", columns))
    if (!all(means %in% colnames(draws))) stop_classed("argument", "{.arg fit} must have no fixed means.", call = call)
    cbind(n, n * draws[, means, drop = FALSE])
  }
  fits <- if (strata) fit$fits else list(fit)
  totals <- if (strata) Reduce(`+`, Map(function(one, site) of_fit(one, function(v) site_variables(v, site)), fits, names(fits))) else of_fit(fit, identity)
  unknown <- Filter(function(one) is.null(one$release$n), fits)
  list(values = `colnames<-`(totals[, -1L], columns), n = totals[, 1L], prior_n = if (length(unknown)) unknown[[1L]]$problem$prior_n)
}

# The draws that records with weights can have: their weighted cross-product of (1, x) is positive definite, and fitted values are on average no farther from
# the middle of the response's bounds than responses can be. The normal working model knows nothing of that.
possible_draws <- function(fit, values, call, least = 0.5) {
  size <- dim(fit$draws)
  kept <- matrix(stats::complete.cases(values), size[1L])
  count <- min(colSums(kept))
  if (count < least * size[1L]) {
    stop_classed("value", c("The weighted totals of the covariates are uncertain by more than their size, so there are no design-weighted estimates.",
                            x = "In {format_number(100 * mean(!kept), 2)}% of the draws the weighted cross-product of the covariates does not belong to any records.",
                            i = "The noise is too large for this formula: try one with fewer covariates."), call = call)
  }
  values <- array(values, c(size[1:2], ncol(values)), list(NULL, NULL, colnames(values)))
  rows <- apply(kept, 2L, function(k) which(k)[round(seq(1, sum(k), length.out = count))], simplify = FALSE)
  draws <- array(0, c(count, dim(values)[-1L]), dimnames(values))
  for (k in seq_along(rows)) draws[, k, ] <- values[rows[[k]], k, ]
  list(draws = posterior::as_draws_array(draws),
       why = if (!all(kept)) sprintf("%s%% of the draws were left out: no records have such totals", format_number(100 * mean(!kept), 2)))
}

#' @export
describe_model.bound_weighted <- function(bound) {
  formula <- called_formula(bound$formula)
  paste0(if (endsWith(formula, " ~ 1")) paste("design-weighted mean of", sub(" ~ 1$", "", formula)) else paste("design-weighted linear regression", formula),
         ", weights ", bound$weight, if (!is.null(bound$strata)) paste(", strata", bound$strata))
}

# expected: the linear predictor; how responses scatter about it was not released
#' @export
response_of.bound_weighted <- function(bound) {
  refuse <- function(fit, expected) refuse_scatter(caller_env())
  list(binary = FALSE, family = stats::gaussian(), mean = identity, draw = refuse, variance = refuse)
}

refuse_scatter <- function(call) {
  stop_classed("method", c("Design-weighted estimates do not include the standard deviation of the responses about their means.",
                           x = "The release has no weighted total of the response's square."), call = call)
}

# NULL: no fit, or one without weighted products
weighted_of_fit <- function(fit, call) {
  if (!inherits(fit, "noiseaware_fit") || inherits(fit$bound, "bound_weighted")) return(NULL)
  release <- if (inherits(fit, "noiseaware_pool")) fit$release[[1L]] else fit$release
  if (is.null(release)) return(NULL)
  statistic <- weighted_statistic(release$statistic)
  published <- unlist(lapply(release_parts(release), function(p) {
    s <- p$statistic
    if (is.null(weighted_statistic(s))) NULL else if (inherits(s, "stat_linear")) s$statistic$components[s$queries$column] else s$components
  }))
  if (all(statistic$components %in% published)) return(statistic)
  stop_classed("variables", c("Design-weighted estimates need the totals of squares and products of the weighted products: their design uncertainty depends on them.",
                              x = "The release lacks {shorten_list(setdiff(statistic$components, published), 4L)}."), call = call)
}

# draws x columns x columns: the weighted cross-product of (1, columns) in the variables' own units, from draws of (weight, weighted products). It is
# linear in these.
weighted_moments <- function(statistic, values) {
  of <- statistic$weighted
  size <- length(of$plain$components)
  each <- lapply(0:length(of$used), function(k) crossprod_moments(of$plain, replace(numeric(size), of$used[k], 1), as.double(k == 0L)))
  moments <- values[, c(of$weight, of$labels), drop = FALSE] %*% t(vapply(each, as.vector, numeric(length(each[[1L]]))))
  array(moments, c(nrow(values), dim(each[[1L]])), c(list(NULL), dimnames(each[[1L]])))
}
