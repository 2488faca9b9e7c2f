#' Generalised linear models, covariates modelled too
#'
#' A binary, a count or a positive response, or a factor of several levels, given covariates, through a linear predictor eta =
#' beta_0 + sum beta_j x_j. Continuous covariates are multivariate normal (or as [covariate_beta()] and its
#' kin have it), factor covariates categorical. Factors are independent of each other and of numbers, unless `factors` says otherwise. The coefficients, the covariates'
#' mean and covariance may be unknown or [fixed()].
#'
#' @param formula `response ~ covariates`, variables of the release, see [sample_posterior()]. Products, powers and offsets are possible: see
#'   below, and [model_lm()]. `NULL` takes the statistic's own formula.
#' @param family A family object of R or brms, or a name. A binary response: `binomial()` with the link `"logit"`, `"probit"` or `"cloglog"`. A count:
#'   `poisson()`, `"negative_binomial"`, or `MASS::negative.binomial(theta)` where the size is known. A positive number: `Gamma("log")`. A factor of three levels or
#'   more: `"cumulative"` or `"cumulative_probit"` where the levels have an order, else `"categorical"`.
#' @param prior Of the coefficients (intercept first): [prior_normal()],
#'   `fixed(beta)`, or `NULL` for a weak prior that is scaled by the public
#'   bounds, see below.
#' @param covariates,levels As in [model_lm()].
#' @param cv Of the coefficient of variation of a Gamma response, or of the rates of a negative binomial one: `fixed(value)`,
#'   [prior_half_normal()], [prior_half_t()], [prior_exponential()], or `prior_inverse_gamma(shape, rate)` for its square;
#'   by default `prior_half_normal(1)`. Other families have none.
#' @param factors `"dependent"`: factors depend on each other, and the means of numbers on them, see [model_lm()]; by method `"augment"` alone. `"independent"`:
#'   they do not. `NULL`: independent, and the print says so. Dependent factors may need far longer chains, above all where bounds clamp the numbers.
#'
#' @details
#' **Responses.** A binary one is a number with the bounds 0 and 1, or a factor with two levels, of
#' which the second counts as 1. A count is a number with declared bounds, such as `c(0, 40)`: it is clamped to
#' them before it is summed, as all numbers are, and method `"augment"` allows for that. A Gamma response is a number whose
#' bounds are not negative. A response of several levels is a factor with three levels or more, released as dummy variables
#' (the response of a [stat_crossprod()]) or as codes ([stat_counts()], [stat_records()]), as a covariate may be.
#'
#' **Levels.** Under `"cumulative"` P(y <= level k) = F(threshold k - eta), eta = sum beta_j x_j without an intercept, F the logistic distribution function, or the
#' normal one under `"cumulative_probit"`: with a larger eta higher levels are more likely, as in `MASS::polr()` (McCullagh 1980). The levels are in the order
#' in which the statistic declares them. A threshold is called by the levels that it parts, such as `Low|Medium`. Under `"categorical"`
#' log(P(y = level k) / P(y = first level)) = beta_0k + sum beta_jk x_j, as in `nnet::multinom()`: each level but the first has coefficients of its own, such as
#' `(Intercept)[Medium]` and `age[Medium]`.
#'
#' **Shapes. With the mean mu = exp(eta) a Gamma response has the standard deviation cv mu, and a negative binomial one the
#' variance mu + cv^2 mu^2. What other packages call the Gamma distribution's shape, or the negative binomial's size (or
#' theta), is 1 / cv^2; R's dispersion of a Gamma regression is cv^2.
#' The `cv` mixes slowly given few records, factors alone or much noise, and for counts also with many records: where
#' [sample_posterior()] warns of few effective draws, run longer ([extend()]).
#'
#' **Offsets.** `offset(v)` adds a number v of the release to the linear predictor, `offset(log(v))` its logarithm: an exposure. The exposure
#' is a covariate and needs a distribution that is positive, `covariates = list(v = covariate_lognormal())` or [covariate_beta()]; or the owner
#' releases its logarithm, which may be normal. A response of several levels has the offset in every linear predictor. A public exposure that all records share is
#' not in the release: `covariates = list(v = fixed(2))`. In the
#' default prior the intercept refers to an exposure in the middle of its bounds.
#'
#' **Default prior.** With p covariates measured from the middles of their bounds, of half-width h: intercept
#' N(m, s^2), slope j N(0, (2 t / (sqrt(p) h_j))^2), a level's coefficient N(0, (t / sqrt(p))^2). The
#' covariates then add about t to the linear predictor, whatever p is.
#'
#' | family | m | s | t |
#' | --- | --- | ---: | ---: |
#' | `binomial("logit")` | 0 | 1.5 | 1.5 |
#' | `binomial("probit")` | 0 | 0.9 | 0.9 |
#' | `binomial("cloglog")` | log(log(2)) | 1 | 1 |
#' | `"cumulative"`, `"categorical"` | 0 | 1.5 | 1.5 |
#' | `"cumulative_probit"` | 0 | 0.9 | 0.9 |
#' | `poisson()`, `"negative_binomial"`, `Gamma("log")` | log of a sixth of the upper bound | 1.5 | 1 |
#'
#' In a `prior` the intercept describes each threshold of an ordered response: thresholds have independent normal priors, in their order, so
#' that all levels are about equally likely. It also describes the intercept of each level of an unordered one; slopes of all levels have the same prior.
#' `fixed()` values are in the order of the parameters: thresholds, then slopes; or level by level, the intercept first.
#'
#' **Statistics.** As for [model_logistic()]. A [stat_crossprod()] of a count also releases its square.
#'
#' **Update.** Given the imputed records the coefficients of logit and probit regressions are drawn by latent variables that make
#' their distribution normal: Polya-Gamma (Polson, Scott & Windle 2013), and truncated normal ones (Albert & Chib 1993). The others have
#' proposals about where a Newton step leads (Gamerman 1997), thresholds, slopes and `cv` together, or random walks where too few of these
#' are accepted. In all of them they also move with the innovations of the responses held fixed, the uniform numbers of which these are
#' quantiles; see [sample_posterior()].
#'
#' **Method `"collapse"`** fits a binary response, or one of several levels, whose covariates are all factors, also with products of these, of at most 100,000
#' combinations of levels with the response's. It moves the counts of these and the coefficients in turn, at a cost that does not depend on the number of
#' records, which may be unknown, and is exact. With few records imputing them is often quicker.
#'
#' **Method `"clt"`** takes numbers as covariates: the moments follow from means over one normal variable,
#' the linear predictor. Counts are as the upper bound clamps them; their lower bound must be 0. Responses with a `cv` and of several levels are
#' left to method `"augment"`.
#'
#' @return A model: an object of class `model_glm`, of `binomial("logit")` that of [model_logistic()]. Its
#'   parameters are the coefficients (`(Intercept)`, the covariates' names, a factor's name and
#'   level), `mean[x]`, `cov[x,x']` and `prob[factor=level]`, or those of [covariate_beta()] and its kin.
#' @section Errors: `noiseaware_error_family`: not a family, or a link that is not there;
#'   `noiseaware_error_prior`, `noiseaware_error_formula`; `noiseaware_error_variables`, also where family
#'   and response do not fit.
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
model_glm <- function(formula = NULL, family = stats::binomial(), prior = NULL, covariates = prior_niw(), levels = prior_dirichlet(), cv = NULL, factors = NULL) {
  family <- check_family(family)
  new_glm(as.vector(family), formula, prior, covariates, levels, check_cv(cv, family, prior), factors)
}

# NULL where the family has none
check_cv <- function(cv, family, prior, call = caller_env()) {
  shaped <- isTRUE(glm_families[[family]]$shaped)
  known <- attr(family, "cv")
  if (!is.null(cv) && (!shaped || !is.null(known))) {
    why <- if (shaped) "whose size is known" else "which has no coefficient of variation"
    stop_argument("cv", paste0("NULL for this family, ", why), describe(cv), "prior", call)
  }
  if (!shaped) return(NULL)
  cv <- cv %||% if (is.null(known)) prior_half_normal(1) else fixed(known)
  check_class(cv, "cv", c("fixed", "prior_inverse_gamma", "prior_half_normal", "prior_half_t", "prior_exponential"),
              "fixed(), prior_half_normal(), prior_half_t(), prior_exponential() or prior_inverse_gamma()", "prior", call)
  if (inherits(cv, "fixed")) check_positive(cv$value, "cv", "prior", call = call)
  if (inherits(prior, "fixed") && !inherits(cv, "fixed")) {
    stop_classed("prior", "{.arg cv} must be fixed where the coefficients are.", call = call)
  }
  cv
}

new_glm <- function(family, formula, prior, covariates, levels, cv = NULL, factors = NULL, call = caller_env()) {
  formula <- functions_as_names(formula, call)
  if (!is.null(formula)) model_terms(formula, call)
  if (!is.null(prior)) check_class(prior, "prior", c("prior_normal", "fixed"), "NULL, prior_normal() or fixed()", "prior", call)
  covariates <- split_covariates(covariates, call = call)
  check_class(levels, "levels", "prior_dirichlet", "prior_dirichlet()", "prior", call)
  new_model("glm", formula = if (!is.null(formula)) formula_text(formula), family = family, prior = prior, cv = cv, covariates = covariates,
            levels = levels, factors = check_factors(factors, call),
            class = c(if (family == "logit") "model_logistic", if (glm_families[[family]]$kind %in% c("ordered", "unordered")) "model_categories",
                                       "model_glm"))
}

#' @export
format.model_glm <- function(x, ...) {
  c(paste("<model>", family_of(x)$text),
    paste0("  formula       ", called_formula(x$formula %||% "the statistic's")),
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
    stop_classed("variables", "A covariate must not be called {.var cv}: that is the coefficient of variation.", call = call)
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
