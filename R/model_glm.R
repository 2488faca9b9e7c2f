#' Generalised linear models with modelled covariates
#'
#' Regression of a binary, count or positive response, or of a factor with several levels, on covariates through a linear predictor eta = beta_0 + sum beta_j
#' x_j. Continuous covariates are multivariate normal (or have other distributions, see [covariate_beta()]), and factor covariates are categorical. By default,
#' factors depend on each other, and numbers on factors; see `factors`. The coefficients and the covariates' mean and covariance may be unknown or [fixed()].
#'
#' @param formula `response ~ covariates`, with variables of the release, see [sample_posterior()]. Products, powers and offsets are possible: see below, and
#'   [model_lm()]. Bars such as `(1 + x | g)` are possible if the response is a number or has two levels. `NULL` means the statistic's own formula.
#' @param family A family object from R or brms, or a name. For a binary response: `binomial()` with the link `"logit"`, `"probit"` or `"cloglog"`. For a count:
#'   `poisson()`, `"negative_binomial"`, or `MASS::negative.binomial(theta)` if the size is known. For a positive number: `Gamma("log")`. For a factor with
#'   three or more levels: `"cumulative"` or `"cumulative_probit"` if the levels are ordered, otherwise `"categorical"`.
#' @param prior Prior for the coefficients (intercept first): [prior_normal()], `fixed(beta)`, or `NULL` for a weak prior scaled by the public bounds, see
#'   below.
#' @param covariates,levels As in [model_lm()].
#' @param cv Prior for the coefficient of variation of a Gamma response, or of the rates of a negative binomial response: `fixed(value)`, [prior_half_normal()],
#'   [prior_half_t()], [prior_exponential()], [prior_lognormal()], or `prior_inverse_gamma(shape, rate)` for its square; by default `prior_half_normal(1)`. Other
#'   families have no `cv`.
#' @param factors `"dependent"`: factors depend on each other, and the means of numbers depend on factors, see [model_lm()]. `"independent"`: they do not.
#'   `NULL`: dependent if possible; if factors are independent, the printed fit says so. Dependent factors need a public number of records and methods
#'   `"augment"` or `"collapse"`.
#'
#' @details
#' **Responses.** A binary response is a number with the bounds 0 and 1, or a factor with two levels, the second of which counts as 1. A count is a number with
#' declared bounds, such as `c(0, 40)`: like all numbers, it is clamped to them before it is summed, and method `"augment"` accounts for that. A Gamma response
#' is a number with non-negative bounds. A response with several levels is a factor with three or more levels. Like a covariate, it is released as dummy
#' variables (the response of a [stat_crossprod()]) or as codes ([stat_counts()], [stat_records()]).
#'
#' **Levels.** Under `"cumulative"`, P(y <= level k) = F(threshold k - eta), where eta = sum beta_j x_j has no intercept and F is the logistic distribution
#' function, or the normal one under `"cumulative_probit"`. A larger eta makes higher levels more likely, as in `MASS::polr()` (McCullagh 1980). The levels are
#' in the order in which the statistic declares them. A threshold is named after the levels that it separates, such as `Low|Medium`. Under `"categorical"`,
#' log(P(y = level k) / P(y = first level)) = beta_0k + sum beta_jk x_j, as in `nnet::multinom()`: each level except the first has its own coefficients, such as
#' `(Intercept)[Medium]` and `age[Medium]`.
#'
#' **Shapes.** With mean mu = exp(eta), a Gamma response has standard deviation cv mu, and a negative binomial response has variance mu + cv^2 mu^2. The shape
#' of the Gamma distribution in other packages, and the size (or theta) of the negative binomial, equal 1 / cv^2; R's dispersion of a Gamma regression is cv^2.
#' The `cv` mixes slowly with few records, factor-only covariates or much noise, and for counts also with many records. If [sample_posterior()] warns of few
#' effective draws, run longer ([extend()]).
#'
#' **Offsets.** `offset(v)` adds a numeric variable v of the release to the linear predictor, and `offset(log(v))` adds its logarithm, for an exposure. The
#' exposure is a covariate and needs a positive distribution, `covariates = list(v = covariate_lognormal())` or [covariate_beta()]. Alternatively, the owner
#' releases its logarithm, which may be normal. With a response of several levels, the offset enters every linear predictor. For a public exposure that all
#' records share, and that is not in the release, use `covariates = list(v = fixed(2))`. The default prior for the intercept refers to an exposure at the
#' midpoint of its bounds.
#'
#' **Default prior.** With p covariates measured from the middles of their bounds, of half-width h: intercept
#' N(m, s^2), slope j N(0, (2 t / (sqrt(p) h_j))^2), a level's coefficient N(0, (t / sqrt(p))^2). The covariates then contribute about t to the linear
#' predictor, for any p.
#'
#' | family | m | s | t |
#' | --- | --- | ---: | ---: |
#' | `binomial("logit")` | 0 | 2.5 | 3 |
#' | `binomial("probit")` | 0 | 1.5 | 1.8 |
#' | `binomial("cloglog")` | log(log(2)) | 1.7 | 2 |
#' | `"cumulative"`, `"categorical"` | 0 | 2.5 | 3 |
#' | `"cumulative_probit"` | 0 | 1.5 | 1.8 |
#' | `poisson()`, `"negative_binomial"`, `Gamma("log")` | log of a sixth of the upper bound | 1.5 | 1 |
#'
#' For an ordered response, the intercept's `prior` applies to each threshold: thresholds have independent normal priors restricted to be ordered, so that all
#' levels are about equally likely. For an unordered response, it applies to the intercept of each level; slopes of all levels have the same prior. `fixed()`
#' values are in the order of the parameters: thresholds, then slopes; or level by level, the intercept first.
#'
#' **Statistics.** As for [model_logistic()]. A [stat_crossprod()] of a count also releases its square.
#'
#' **Update.** Given the imputed records, the coefficients of logit and probit regressions are drawn with latent variables that make their distribution normal:
#' Polya-Gamma variables (Polson, Scott & Windle 2013) and truncated normal ones (Albert & Chib 1993). The other families use proposals centred at the result of
#' a Newton step (Gamerman 1997), for thresholds, slopes and `cv` together, or random walks if too few of these are accepted. In all families, the coefficients
#' also move with the responses' innovations held fixed (the uniform numbers that generate the responses as quantiles); see [method_augment].
#'
#' **Method `"collapse"`** is available for a binary response, or one with several levels, if all covariates are factors or products of factors, with at most
#' 100,000 combinations of levels, including the response. It is exact. It updates the counts of these combinations and the coefficients in turn, at a cost that
#' does not depend on the number of records, which may be unknown. With few records, imputing them is often faster.
#'
#' **Method `"clt"`** needs numeric covariates: the moments are expectations over one normal variable, the linear predictor. It accounts for the clamping of
#' counts at the upper bound; their lower bound must be 0. Responses with a `cv` or with several levels need method `"augment"`.
#'
#' @return A model: an object of class `model_glm`, or of class `model_logistic` for `binomial("logit")`. Its parameters are the coefficients (`(Intercept)`,
#'   the covariates' names, a factor's name and level), `mean[x]`, `cov[x,x']` and `prob[factor=level]`, or those of other covariate distributions, see
#'   [covariate_beta()].
#' @section Errors: `noiseaware_error_family`: not a supported family or link; `noiseaware_error_prior`, `noiseaware_error_formula`;
#'   `noiseaware_error_variables`, also if the family does not match the response.
#' @references
#' Albert, J. H. and Chib, S. (1993). Bayesian analysis of binary and polychotomous response data. *Journal of
#' the American Statistical Association* 88, 669-679. \doi{10.1080/01621459.1993.10476321}
#'
#' Gamerman, D. (1997). Sampling from the posterior distribution in generalized linear mixed models. *Statistics and
#' Computing* 7, 57-68. \doi{10.1023/A:1018509429360}
#'
#' McCullagh, P. (1980). Regression models for ordinal data. *Journal of the Royal Statistical Society B* 42, 109-142.
#' \doi{10.1111/j.2517-6161.1980.tb01109.x}
#'
#' Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for
#' logistic models using Polya-Gamma latent variables. *Journal of the American
#' Statistical Association* 108, 1339-1349. \doi{10.1080/01621459.2013.829001}
#' @family models
#' @examples
#' model_glm(family = poisson())
#' model_glm(visits ~ age * sex + offset(log(years)), poisson(),
#'   covariates = list(years = covariate_lognormal()))
#' st <- stat_crossprod(breaks ~ wool + tension,
#'                      bounds = list(breaks = c(0, 80), wool = c("A", "B"),
#'                                    tension = c("L", "M", "H")))
#' set.seed(1)
#' rel <- simulate_release(warpbreaks, st, mech_laplace(epsilon = 5))
#' fit <- sample_posterior(rel, model_glm(family = poisson()), chains = 2, iter = 400, seed = 1)
#' predict(fit, data.frame(wool = "A", tension = c("L", "H")), interval = "credible")
#'
#' # a factor whose levels have an order
#' levels <- list(Sat = c("Low", "Medium", "High"), Cont = c("Low", "High"))
#' homes <- MASS::housing[rep(seq_len(72), MASS::housing$Freq), ]
#' rel <- simulate_release(homes, stat_crossprod(Sat ~ Cont, levels), mech_laplace(epsilon = 1))
#' fit <- sample_posterior(rel, model_glm(family = "cumulative"), chains = 2, iter = 300, seed = 1)
#' predict(fit, data.frame(Cont = c("Low", "High")))
#' @export
model_glm <- function(formula = NULL, family = stats::binomial(), prior = NULL, covariates = prior_niw(), levels = prior_dirichlet(1), cv = NULL, factors = NULL) {
  check_given()
  family <- check_family(family)
  new_glm(as.vector(family), formula, prior, covariates, levels, check_cv(cv, family, prior), factors)
}

# NULL where the family has none
check_cv <- function(cv, family, prior, call = caller_env()) {
  shaped <- isTRUE(glm_families[[family]]$shaped)
  known <- attr(family, "cv")
  if (!is.null(cv) && (!shaped || !is.null(known))) {
    why <- if (shaped) "because its size is known" else "which has no coefficient of variation"
    stop_argument("cv", paste0("NULL for this family, ", why), describe(cv), "prior", call)
  }
  if (!shaped) return(NULL)
  cv <- cv %||% if (is.null(known)) prior_half_normal(1) else fixed(known)
  check_class(cv, "cv", c("fixed", "prior_inverse_gamma", "prior_half_normal", "prior_half_t", "prior_exponential", "prior_lognormal"),
              "fixed(), prior_lognormal(), prior_half_normal(), prior_half_t(), prior_exponential() or prior_inverse_gamma()", "prior", call)
  if (inherits(cv, "fixed")) check_positive(cv$value, "cv", "prior", call = call)
  if (inherits(prior, "fixed") && !inherits(cv, "fixed")) {
    stop_classed("prior", "{.arg cv} must be fixed if the coefficients are fixed.", call = call)
  }
  cv
}

new_glm <- function(family, formula, prior, covariates, levels, cv = NULL, factors = NULL, call = caller_env()) {
  split <- split_bars(formula, call)
  formula <- functions_as_names(split$formula, call)
  if (!is.null(formula)) model_terms(formula, call)
  if (!is.null(prior)) check_class(prior, "prior", c("prior_normal", "fixed"), "NULL, prior_normal() or fixed()", "prior", call)
  covariates <- split_covariates(covariates, call = call)
  check_class(levels, "levels", "prior_dirichlet", "prior_dirichlet()", "prior", call)
  new_model("glm", formula = if (!is.null(formula)) formula_text(formula), group = split$group, bars = split$bars,
            family = family, prior = prior, cv = cv, covariates = covariates, levels = levels, factors = check_factors(factors, call),
            class = c(if (family == "logit") "model_logistic", if (glm_families[[family]]$kind %in% c("ordered", "unordered")) "model_categories",
                                       "model_glm"))
}

#' @export
format.model_glm <- function(x, ...) {
  c(paste("<model>", family_of(x)$text),
    paste0("  formula       ", called_formula(x$formula %||% "the statistic's")), bars_line(x),
    paste0("  coefficients  ", if (is.null(x$prior)) "normal(scaled by the bounds)" else format(x$prior)),
    if (!is.null(x$cv)) paste0("  cv            ", format(x$cv)),
    paste0("  covariates    ", format_covariates(x$covariates)),
    if (!is.null(x$factors)) paste0("  factors       ", x$factors))
}

#' @export
variable_kinds.model_glm <- function(x) c("number", "code")

#' @export
bind_columns.model_glm <- function(model, columns, levels, formula, call) {
  said <- regression_terms(model$formula %||% formula, columns, call, names(model$covariates$constants))
  variables <- said$variables
  columns <- columns[order(match(columns$variable, variables)), ]
  rownames(columns) <- NULL
  response <- columns[columns$variable == variables[1L], ]
  check_family_response(model, response, call)
  check_one_form(columns, call)
  if (is_shaped_family(model) && "cv" %in% columns$name[columns$variable != variables[1L]]) {
    stop_classed("variables", "A covariate must not be called {.var cv}, the name of the coefficient of variation.", call = call)
  }
  bound <- list(model = model, columns = columns, levels = levels[intersect(variables, names(levels))])
  factors <- bound$levels[setdiff(names(bound$levels), variables[1L])]
  bound$base <- design_columns(columns, factors)
  bound$base$centre[1L] <- 0
  bound$terms <- bind_terms(said, bound$base, factors, bind_offsets(said, bound$base, model, call), call, model$covariates)
  bound$design <- bound$terms$design %||% bound$base
  bound$design <- scaled_design(bound, call)
  covariates <- bound$base[-1L, ]
  check_dependent(covariates, model, factors, call)
  bound$dependent <- is_dependent(covariates, model, factors)
  bound$spec <- list(name = "glm", fields = c(
    bound$terms$fields %||% design_fields(bound$base), list(columns = as.double(nrow(columns))), family_fields(model, response), cv_fields(model),
    glm_coefficient_fields(bound, call),
    covariate_fields(covariates, seq_len(nrow(covariates)), model, factors, call)))
  bound$formula <- model$formula %||% formula
  bound$parameters <- c(if (!inherits(model$prior, "fixed")) coefficient_names(bound$design),
                        if (is_shaped_family(model) && !inherits(model$cv, "fixed")) "cv",
                        covariate_parameters(covariates, model, factors))
  structure(bound, class = c("bound_glm", "bound_regression", "noiseaware_bound"))
}

glm_coefficient_fields <- function(bound, call) {
  prior <- bound$model$prior %||% prior_normal()
  design <- bound$design
  if (inherits(prior, "fixed")) {
    return(list(beta = centre_coefficients(bound_centring(bound), check_fixed(prior$value, nrow(design), "prior", call))))
  }
  independent_coefficient_fields(prior, design, bound_centring(bound), family_scales(bound$model, design), call, family_middle(bound$model, design[1L, ]))
}

#' @export
describe_model.bound_glm <- function(bound) paste(family_of(bound$model)$text, called_formula(bound$formula))

# expected: the probability of a 1, or the mean
#' @export
response_of.bound_glm <- function(bound) {
  family <- stats_family(bound$model)
  list(binary = is_binary_family(bound$model), family = family, mean = family$linkinv,
       draw = function(fit, expected) draw_responses(bound, fit, expected),
       variance = function(fit, expected) response_variance(bound, fit, expected))
}
