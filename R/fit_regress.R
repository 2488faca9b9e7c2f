# Regressions derived from a fit of the joint normal distribution of several numbers. In each draw of their mean m and covariance S, y given the x is normal
# with slopes b = S_xx^-1 S_xy, intercept m_y - b'm_x and residual variance S_yy - S_yx b. A draw costs a Cholesky factor of the covariates' covariance.

#' Derive regressions from one joint fit
#'
#' A release of cross-products contains the information for many regressions. `regress()` derives any of them from the draws of one joint fit of all numeric
#' variables, without sampling again.
#'
#' @param fit A fit of one release by [model_mvnormal()], or by [model_lm()] on normal covariates.
#' @param formula `response ~ covariate + ...`: numeric variables of the fit, with any of them as the response; `y ~ 1` for no covariates, `y ~ .` for all
#'   others. With survey weights, variables of the release: see the section Survey weights.
#' @details
#' Under the joint normal distribution the conditional distribution of the response is a linear regression, so a draw of means and covariances gives a draw of
#' its coefficients. The posterior is as exact as the fit. Its prior is implied by the joint prior: with [prior_niw()], slopes and residual variance have no
#' separate prior. For the prior of [model_lm()], or for products and powers, fit that model to the release: it uses only the numbers it needs, see
#' [sample_posterior()].
#'
#' A direct fit of `bwt ~ age` and `regress()` on a joint fit use different information: the joint fit also uses the totals of the other variables.
#' @return A fit of the regression, as from [sample_posterior()]: `coef()`, `confint()`, `predict()`, `plot()` and functions of other packages work on it.
#'   Its draws contain the coefficients, `sigma`, the covariates' means and covariances, and `R2`, the share of the response's variance that the covariates
#'   explain. It has no chains to extend, and no evidence.
#' @section Survey weights: If the release was made by [stat_crossprod()] with `weights`, the fit is of the weighted products, and `regress()` gives the
#'   design-weighted estimates. They solve E(w x x') b = E(w x y): `y ~ 1` gives the weighted mean of y (the ratio of two totals), and `y ~ x` the weighted
#'   regression. The draws `total[w]`, `total[y]` and `total[x]` are the weighted totals: the estimated size of the population, and the population totals.
#'   The multivariate normal distribution is only a working model of the products. The posterior standard deviations reflect the noise and the design
#'   uncertainty. Without noise and with many records they are the linearised standard errors for sampling with replacement, as in `svymean()`, `svytotal()` and
#'   `svyglm()` of the survey package. Nothing is assumed about how y depends on x.
#'
#'   If the release is by stratum ([stat_by()]), the strata are fitted separately, and their totals are added up. There is no finite population
#'   correction, and there are no clusters. Draws that no records could produce are left out, and the printed fit states their share. If they are more than
#'   half, the noise is too large, and an error is raised. The first variable of the released formula can only be the response. Generalized linear models are
#'   not available, because their weighted equations are not totals. The release has no weighted total of the squared response, so there are no predictions of
#'   single responses. The default scale of [prior_niw()] is a quarter of the usual one, which would add to the design variance. With few records it still does:
#'   with 200 records and hardly any noise, standard errors of slopes were 7% to 26% above those of `svyglm()`.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_formula`, `noiseaware_error_variables`; `noiseaware_error_value` for weighted totals that
#'   are too noisy.
#' @seealso [update()][update.noiseaware_fit] with `formula. =` samples another regression from the same release.
#' @family methods
#' @examples
#' births <- list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260))
#' st <- stat_crossprod(bwt ~ age + lwt, bounds = births)
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 10))
#' joint <- sample_posterior(rel, model_mvnormal(), chains = 2, iter = 1000, seed = 1)
#' regress(joint, bwt ~ lwt)
#' coef(regress(joint, lwt ~ age))
#'
#' # survey weights: mean weight at birth, and its total in the population
#' sampled <- transform(MASS::birthwt, w = ifelse(smoke == 1, 20, 60))
#' st <- stat_crossprod(bwt ~ 1, list(bwt = c(500, 5500), w = c(10, 100)), weights = ~ w)
#' rel <- simulate_release(sampled, st, mech_laplace(epsilon = 2))
#' weighted <- sample_posterior(rel, model_mvnormal(), chains = 2, iter = 1000, seed = 1)
#' regress(weighted, bwt ~ 1)
#' @concept survey weights
#' @export
regress <- function(fit, formula) {
  check_given()
  weighted <- weighted_of_fit(fit, environment())
  if (!is.null(weighted)) return(regress_weighted(fit, weighted, functions_as_names(formula), environment()))
  joint <- joint_draws(fit, environment())
  known <- dimnames(joint$cov)[[2L]]
  if (inherits(formula, "formula") && length(formula) == 3L && identical(formula[[3L]], quote(.)) && is.name(formula[[2L]])) {
    others <- setdiff(known, as.character(formula[[2L]]))
    formula[[3L]] <- if (length(others)) Reduce(function(a, b) call("+", a, b), lapply(others, as.name)) else 1
  }
  formula <- functions_as_names(formula)
  variables <- formula_variables(formula)
  strange <- setdiff(variables, known)
  if (length(strange)) {
    stop_classed("variables", c("{.arg formula} must have variables of the fit; {.var {strange}} {?is/are} not.", i = "The fit has {.var {known}}."))
  }
  taken <- intersect(variables[-1L], c("R2", if (!is.null(fit$problem$prior_n)) "n"))
  if (length(taken)) stop_classed("variables", "A covariate must not be called {.var {taken}}, because other draws have that name.")
  values <- regression_draws(joint, variables)
  model <- model_lm(text_formula(formula_text(formula)))
  release <- suppressMessages(narrow_release(fit$release, model), "noiseaware_message_components")
  bound <- bind_model(model, release$statistic)
  read <- new_fit(draws_like(fit, values[, c(bound$parameters, "R2")]), release, bound, fit$run, "regress", fit$exact, problem = fit$problem["prior_n"])
  read$whole <- fit$whole %||% if (length(fit$release$value) > length(release$value)) fit$release
  read$why <- paste0("from a fit of ", describe_model(fit$bound), " by method \"", fit$method, "\"")
  read$troubles <- fit$troubles
  read
}

# the bound model of a fit whose variables are normal together
check_joint <- function(fit, call) {
  is_fit <- inherits(fit, "noiseaware_fit")
  if (!is_fit || inherits(fit, "noiseaware_pool") || !inherits(fit$bound, c("bound_mvnormal", "bound_lm")) || is.null(fit$release)) {
    was <- if (is_fit) describe_model(fit$bound) else describe(fit)
    stop_argument("fit", "a fit of one release by model_mvnormal() or model_lm()", was, call = call)
  }
  bound <- fit$bound
  if (length(bound$levels) || length(bound$model$covariates$lone) || !is.null(bound$terms) || !is.null(bound$moments)) {
    stop_classed("argument", c("{.arg fit} must be a fit of numbers with a joint normal distribution.",
                               x = "It has factors, products, or covariates with other distributions.",
                               i = "Sample the regression instead: a model uses the numbers that it needs, see {.fn sample_posterior}."), call = call)
  }
  bound
}

# list of `mean`, draws x variables, and `cov`, draws x variables x variables
joint_draws <- function(fit, call) {
  bound <- check_joint(fit, call)
  draws <- parameter_matrix(fit)
  wanted <- if (inherits(bound, "bound_lm")) c(coefficients_of(bound), "sigma") else character()
  covariates <- covariate_parameters(if (inherits(bound, "bound_lm")) bound$base[-1L, ] else bound$design, bound$model, list())
  names <- bound$columns$name
  x <- if (inherits(bound, "bound_lm")) names[-1L] else names
  complete <- all(wanted %in% colnames(draws)) && all(covariates %in% colnames(draws)) && length(covariates) == length(x) * (length(x) + 3) / 2
  if (!complete) stop_classed("argument", "{.arg fit} must have no fixed parameters.", call = call)
  mean <- draws[, sprintf("mean[%s]", x), drop = FALSE]
  cov <- array(0, c(nrow(draws), length(x), length(x)))
  for (i in seq_along(x)) for (j in seq_len(i)) cov[, i, j] <- cov[, j, i] <- draws[, sprintf("cov[%s,%s]", x[i], x[j])]
  if (length(wanted)) {
    slopes <- draws[, x, drop = FALSE]
    with_y <- vapply(seq_along(x), function(j) rowSums(matrix(cov[, , j], nrow(draws)) * slopes), numeric(nrow(draws)))
    with_y <- matrix(with_y, nrow(draws))
    mean <- cbind(draws[, "(Intercept)"] + rowSums(mean * slopes), mean)
    whole <- array(0, dim(cov) + c(0, 1, 1))
    whole[, -1L, -1L] <- cov
    whole[, 1L, -1L] <- whole[, -1L, 1L] <- with_y
    whole[, 1L, 1L] <- rowSums(with_y * slopes) + draws[, "sigma"]^2
    cov <- whole
  }
  dimnames(cov) <- list(NULL, names, names)
  colnames(mean) <- names
  list(mean = mean, cov = cov)
}

# draws x parameters of the regression of the first variable on the others, as model_lm() names them
regression_draws <- function(joint, variables) {
  count <- nrow(joint$mean)
  x <- variables[-1L]
  p <- length(x)
  s <- matrix(0, count, p)
  residual <- joint$cov[, variables[1L], variables[1L]]
  total <- residual
  if (p > 0L) {
    for (k in seq_len(count)) {
      xy <- joint$cov[k, x, variables[1L]]
      s[k, ] <- chol2inv(chol(matrix(joint$cov[k, x, x], p))) %*% xy
      residual[k] <- residual[k] - sum(s[k, ] * xy)
    }
  }
  values <- cbind(joint$mean[, variables[1L]] - rowSums(joint$mean[, x, drop = FALSE] * s), s, sqrt(pmax(residual, 0)), joint$mean[, x, drop = FALSE])
  names <- c("(Intercept)", x, "sigma", sprintf("mean[%s]", x))
  for (i in seq_along(x)) for (j in seq_len(i)) {
    values <- cbind(values, joint$cov[, x[i], x[j]])
    names <- c(names, sprintf("cov[%s,%s]", x[i], x[j]))
  }
  structure(cbind(values, 1 - residual / total), dimnames = list(NULL, c(names, "R2")))
}

# the chains of the fit, with the number of records where it is unknown
draws_like <- function(fit, values) {
  size <- dim(fit$draws)
  if (!is.null(fit$problem$prior_n)) values <- cbind(values, n = parameter_matrix(fit)[, "n"])
  posterior::as_draws_array(array(values, c(size[1L], size[2L], ncol(values)), list(NULL, NULL, colnames(values))))
}

is_read_off <- function(fit) inherits(engine_of(fit), "engine_regress")

#' @export
engine_title.engine_regress <- function(engine) "regress: derived from the joint posterior of all variables"
