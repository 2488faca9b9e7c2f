#' Linear regression with modelled covariates
#'
#' y = beta_0 + sum beta_j x_j + N(0, sigma^2), or with Student-t errors. Continuous covariates are multivariate normal and factor covariates are categorical.
#' By default, factors depend on each other and numbers depend on factors; see `factors`. The regressors may also be products and powers of the covariates. Any
#' of the coefficients, sigma, the covariates' mean and covariance may be unknown or [fixed()].
#'
#' @param formula `response ~ covariates`, with variables of the release. If the release has more variables, the fit uses only the numbers that involve the ones
#'   in the formula, see [sample_posterior()]. Products such as `x * g` and `x:z` and powers such as `I(x^2)` are possible, whatever was released; see below.
#'   Functions such as `log(x)` must be in the release, or be functions of its variables: see [noiseaware_terms]. A bar, as in
#'   `y ~ x + (1 + x | g)`, marks coefficients that vary between groups; see below. `y ~ s(x, k = 10) + z + g` has a smooth curve; see below.
#'   `NULL` means the statistic's own formula.
#' @param prior Prior for the coefficients (intercept first): [prior_normal()], [prior_student_t()], [prior_nig()] (jointly with sigma), or `fixed(beta)`.
#' @param sigma Prior for the residual standard deviation: `fixed(value)`, [prior_lognormal()], [prior_half_normal()], [prior_half_t()], [prior_exponential()],
#'   or `prior_inverse_gamma(shape, rate)` for sigma^2. `NULL`: part of `prior_nig()`; with other priors for the coefficients, `prior_lognormal()` scaled by
#'   the bounds (see [priors]).
#' @param covariates Prior for the continuous covariates: [prior_niw()]; `fixed(list(mean = , cov = ))`; or `list(mean = , cov = )` with one of the two
#'   [fixed()] and the other a [prior_niw()]. Or, for method `"clt"`, their moments instead of a distribution: [covariate_moments()]. A named list of
#'   [covariate_beta()], [covariate_count()], [covariate_mixture()] or [covariate_lognormal()] gives single covariates their own distributions.
#' @param levels Prior for the probabilities of each factor's levels: [prior_dirichlet()].
#' @param errors `NULL`: normal errors. [student()], its name, or the brms family of that name: Student-t errors for responses with outliers; only with
#'   method `"augment"`.
#' @param factors `"dependent"`: factors depend on each other, and the means of numbers depend on factors, see below. `"independent"`: they do not. `NULL`:
#'   dependent if possible; if factors are independent, the printed fit says so.
#'
#' @section Dependent covariates: Factors and numbers follow the general location model (Olkin and Tate 1961). Each record belongs to a cell of the factors'
#'   cross-table. The cells' probabilities are Dirichlet, with weights equal to the `concentration` times the product of the levels' `base[factor=level]`. A
#'   large concentration makes factors independent; a small one leaves the table unrestricted. Its prior is log-normal, centred at the number of cells. Each
#'   factor's `base` probabilities have the prior `levels`. Within a cell, numbers are normal with covariance `cov`. Their mean includes an effect of each level
#'   of each factor, `effect[x,factor=level]`, relative to the factor's first level. Effects have a weak prior, with a standard deviation five times the
#'   number's within-cell standard deviation; the prior for the mean refers to the first levels. `mean[x]` is the mean over all cells, `prob[factor=level]` the
#'   probability of a level, and `prob[f=level:g=level]` the probability of a cell. With one factor there are no cells, base probabilities or concentration.
#'
#'   This model is available with methods `"augment"` and `"collapse"`, for one release with a known number of records. It is not available with `"clt"`, for
#'   pooled sites, for groups, or for releases with noise on every record. Nor is it available for a covariate prior with `within`, or a
#'   cross-table of more than 10,000 cells. [log_evidence()] needs `factors = "independent"`, and [test_hypothesis()] for slopes needs a model without factors.
#'
#'   If factors and numbers depend on each other, modelling them as independent gives intervals that are biased and too narrow. If the release contains little
#'   information about the dependence, intervals are wider under the dependent model.
#'
#' @section Products and powers: The model may have more terms than the statistic: the records are imputed, and the response depends on products and powers of
#'   their covariates. If the release is not informative about a coefficient, its posterior comes from the prior; the printed fit says so if it comes from the
#'   prior alone. Coefficients have the same names and meaning as in [stats::lm()] with treatment contrasts. In the default priors, numbers in products are
#'   measured from the middles of their bounds. With `I(x^2)` or `x:z` in the model, the prior for the coefficient of `x` then refers to the slope in the
#'   middle, and each term counts as one covariate, with its range over the bounds. A prior with an explicit `sd` for a coefficient refers to the natural
#'   coefficient, with all other variables at zero. A product with a factor also needs the term without the factor, so that the factor's first level is the
#'   reference. Only method `"augment"` is available, and it is exact. If the totals of a [stat_crossprod()] or [stat_sums()] are informative about the
#'   response's products, all responses move at once, given the covariates.
#'
#' @section Smooths: In `y ~ s(x, k = 10)` the mean of y is a curve: a combination of k cubic B-splines of x with equal knots between its bounds (Eilers and
#'   Marx 1996). Its smoothness is estimated: the second differences of the splines' coefficients are normal with standard deviation `tau`, in the units of y.
#'   The curve is a straight line if `tau` is 0. The prior of `tau` is half-t with 3 degrees of freedom and a scale of one eighth of the range of y. `prior` is
#'   for the straight line, with the coefficients `(Intercept)` and `x`; only [prior_normal()] is possible. The coefficients `s(x)1`, `s(x)2`, ... are the
#'   second differences. The errors are normal.
#'
#'   x is in one of 2 (k - 3) intervals of equal width, and uniform within it. Their probabilities, `prob[x=...]`, have the prior `levels`. So x is continuous
#'   and within its bounds; beyond them the curve is constant. If x has few different values, use `factor(x)`. If the density of x changes much within an
#'   interval, as at a jump, the curve is biased there. For wages against experience in CPS1988, with 28,000 records and epsilon 1, the bias is one to two
#'   posterior standard deviations. A larger k gives narrower intervals of x.
#'
#'   The most informative release is [stat_crossprod()] with the same formula. Method `"augment"` is exact, and works with any totals of x and y, and any
#'   number of splines. Method `"clt"` needs the splines of the release; its cost does not grow with the number of records. Prefer it from about 10,000
#'   records. `predict()`, `fitted()` and `plot(fit, "predictive")` show the curve.
#'
#'   *Several smooths, numbers and factors add up*, as in `y ~ s(x1) + s(x2, k = 8) + z + g`, or `s(x) + log(z)`. There is one intercept. Each smooth has a
#'   slope, second differences `s(x1)1`, ... and a standard deviation `tau[x1]`; each number has a slope. Each level of a factor, except the first, has a
#'   coefficient: its difference from the first, the same at every x. Products and groups are not possible next to a smooth.
#'   `plot(fit, "predictive", covariate = "x1")` shows one curve, with other numbers in the middle of their bounds and factors at their first levels.
#'
#'   Covariates depend on each other through 8 latent classes (Dunson and Xing 2009). Given the class of a record, they are independent, and each is in one of
#'   its intervals, or has one of its levels. A number has 16 intervals. The classes' probabilities have the prior Dirichlet(1). Within a class, the
#'   probabilities of intervals and levels have the weights of `levels` divided by 8. The draws contain the probabilities over all classes, `prob[x1=...]` and
#'   `prob[g=...]`. The classes have no order and are not reported. Dependence that 8 classes cannot describe biases the curves where one covariate is far
#'   from what the others predict. Only method `"augment"` is available, and it is exact. If the noise is large, or most records are in one interval, a
#'   default call may warn that its chains are too short: then [extend()] the fit. [p_value()] and [confidence_set()] are not available. Each term adds to the
#'   L1 sensitivity (to a replaced record): it is 3.75 with one smooth, 7.5 with a factor as well, and 15 with two smooths and a number.
#'
#' @section Groups: In `y ~ x + (1 + x | g)` the intercept and the slope vary between the levels of g, as in lme4 and brms. The release needs totals by g,
#'   `stat_by(stat_crossprod(y ~ x, bounds), levels)`, and the sizes of the groups, see [groups]. [sample_posterior()] pools the groups partially: their
#'   coefficients are normal with the fixed effects as means. They are correlated after `|`, with the prior `prior_lkj(1)`, and independent after `||`. All groups
#'   have the same sigma. `pool = partial_pooling(sd = , correlation = )` sets other priors. `pool = "complete"` and `"none"` ignore the bars.
#'
#'   The model assumes that the groups' intercepts do not depend on their covariates. Noise hides slopes within groups more than differences between the groups'
#'   means, so a violation matters more than it would without noise. Where it matters, a warning gives both answers, see [fit_methods]. The distribution of the
#'   covariates is partially pooled if all are numbers, see [partial_pooling()].
#'
#'   All bars must have the same g, and every slope that varies needs its fixed effect. There are three differences from lme4. First, standard deviations and
#'   correlations have priors, see [partial_pooling()]. Second, the draws `sd[(Intercept)]` and `cor[...]` refer to covariates in the middle of their bounds;
#'   `VarCorr()` and `ranef()` refer to covariates of 0. Third, `(x || g)` and `(0 + x | g)` make coefficients independent in the middle of the bounds, not
#'   at 0.
#'
#' @return A model: an object of class `model_lm`. Its parameters are the
#'   coefficients (`(Intercept)` and the covariates' names), `sigma`,
#'   `mean[x]`, `cov[x,x']` and `prob[factor=level]`; with [student()] errors `df`; with dependent factors `effect[x,factor=level]` and, for several factors,
#'   `prob[f=level:g=level]`, `base[factor=level]` and `concentration`. With a smooth, it is of class `model_smooth`.
#' @references
#' Eilers, P. H. C. and Marx, B. D. (1996). Flexible smoothing with B-splines and penalties. *Statistical
#' Science* 11, 89-121. \doi{10.1214/ss/1038425655}
#'
#' Dunson, D. B. and Xing, C. (2009). Nonparametric Bayes modeling of multivariate categorical data. *Journal of the American
#' Statistical Association* 104, 1042-1051. \doi{10.1198/jasa.2009.tm08439}
#'
#' Olkin, I. and Tate, R. F. (1961). Multivariate correlation models with mixed discrete and continuous variables. *Annals of Mathematical
#' Statistics* 32, 448-465. \doi{10.1214/aoms/1177705052}
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_formula`,
#'   `noiseaware_error_variables`.
#' @family models
#' @examples
#' model_lm()
#' model_lm(prior = prior_normal(0, 2), sigma = fixed(sqrt(2)),
#'   covariates = fixed(list(mean = c(0.9, -1.17), cov = diag(2))))
#' model_lm(prior = prior_normal(sd = c(age = 20)), sigma = prior_exponential())
#' model_lm(mpg ~ hp * am + I(wt^2))
#' model_lm(score ~ ses + (1 + ses | school))
#' model_lm(accel ~ s(times, k = 12))
#' model_lm(wage ~ s(experience) + s(education, k = 8))
#' @concept regression slope
#' @concept splines
#' @export
model_lm <- function(formula = NULL, prior = prior_normal(), sigma = NULL, covariates = prior_niw(),
                     levels = prior_dirichlet(1), factors = NULL, errors = NULL) {
  check_given()
  if (!missing(errors)) errors <- own_student(rlang::enquo(errors))
  smooth <- read_smooth(formula)
  split <- split_bars(if (is.null(smooth)) formula)
  formula <- functions_as_names(split$formula)
  if (!is.null(formula)) model_terms(formula)
  check_class(prior, "prior", c("prior_nig", "prior_normal", "prior_student_t", "fixed"),
              "prior_nig(), prior_normal(), prior_student_t() or fixed()", "prior")
  if (is.null(sigma) && !inherits(prior, "prior_nig")) sigma <- prior_lognormal()
  if (!is.null(sigma)) {
    check_class(sigma, "sigma", c("fixed", "prior_inverse_gamma", "prior_half_normal", "prior_half_t", "prior_exponential", "prior_lognormal"),
                "fixed(), prior_lognormal(), prior_half_normal(), prior_half_t(), prior_exponential() or prior_inverse_gamma()", "prior")
    if (inherits(prior, "prior_nig") && !inherits(sigma, "fixed")) {
      stop_classed("prior", "{.arg sigma} must be fixed or absent when {.arg prior} is {.code prior_nig()}, which has a prior for it.")
    }
    if (inherits(sigma, "fixed")) check_positive(sigma$value, "sigma", "prior")
  }
  if (!is.null(prior$within)) {
    stop_classed("prior", "{.arg prior} must not have {.arg within}: bounds do not constrain coefficients. The covariates' prior may have it.")
  }
  if (!is.null(smooth)) {
    check_class(levels, "levels", "prior_dirichlet", "prior_dirichlet()", "prior")
    return(new_smooth_model(smooth, list(prior = prior, sigma = sigma, covariates = covariates, levels = levels, errors = errors), environment()))
  }
  if (!inherits(covariates, "covariate_moments")) covariates <- split_covariates(covariates)
  check_class(levels, "levels", "prior_dirichlet", "prior_dirichlet()", "prior")
  errors <- check_errors(errors, covariates)
  new_model("lm", formula = if (!is.null(formula)) formula_text(formula), group = split$group, bars = split$bars, prior = prior, sigma = sigma,
            covariates = covariates, levels = levels, factors = check_factors(factors), errors = errors, class = "model_lm")
}

# of a formula with a smooth; `given`: the other arguments of model_lm(), or a model that it made
new_smooth_model <- function(smooth, given, call) {
  check_class(given$prior, "prior", "prior_normal", "prior_normal(), for the straight line in a smooth", "prior", call)
  default <- identical(given$covariates, prior_niw()) || identical(given$covariates, split_covariates(prior_niw()))
  refused <- c(sigma = inherits(given$sigma, "fixed"), covariates = !default, errors = !is.null(given$errors))
  if (any(refused)) {
    name <- names(refused)[refused][1L]
    stop_argument(name, paste(c(sigma = "a prior", covariates = "absent", errors = "NULL")[[name]], "with a smooth in the formula"),
                  describe(given[[name]]), "prior", call)
  }
  new_model("smooth", formula = smooth$formula, prior = given$prior, sigma = given$sigma, levels = given$levels, class = "model_smooth")
}

#' @export
format.model_lm <- function(x, ...) {
  sigma <- if (is.null(x$sigma)) "part of the prior of the coefficients" else format(x$sigma)
  c("<model> linear regression",
    paste0("  formula       ", called_formula(x$formula %||% "the statistic's")), bars_line(x),
    paste0("  coefficients  ", format(x$prior)),
    paste0("  sigma         ", sigma),
    if (is_student(x)) paste0("  errors        ", format(x$errors)),
    paste0("  covariates    ", if (inherits(x$covariates, "covariate_moments")) paste("known", format(x$covariates)) else
      format_covariates(x$covariates)),
    if (!is.null(x$factors)) paste0("  factors       ", x$factors))
}

#' @export
variable_kinds.model_lm <- function(x) "number"

#' @export
bind_columns.model_lm <- function(model, columns, levels, formula, call) {
  said <- regression_terms(model$formula %||% formula, columns, call)
  if (length(said$offsets)) {
    stop_classed("formula", c("A linear regression cannot have offsets.", i = "Subtract the offset from the response in the data."), call = call)
  }
  variables <- said$variables
  check_not_coded(columns, levels, variables, call)
  if (variables[1L] %in% names(levels)) {
    stop_classed("variables", "The model's response must be a number, but {.var {variables[1]}} is a factor.", call = call)
  }
  columns <- columns[order(match(columns$variable, variables)), ]
  rownames(columns) <- NULL
  check_not_covariate("sigma", "the residual standard deviation", columns, call)
  if (is_student(model)) check_not_covariate("df", "the degrees of freedom of the errors", columns, call)
  bound <- list(model = model, columns = columns, levels = levels[intersect(variables, names(levels))])
  bound$base <- bound$design <- design_columns(columns, bound$levels)
  bound$terms <- bind_terms(said, bound$base, bound$levels, bind_offsets(said, bound$base, model, call), call, model$covariates)
  if (!is.null(bound$terms)) bound$design <- bound$terms$design
  bound$design <- scaled_design(bound, call)
  if (inherits(model$covariates, "covariate_moments")) {
    bound$moments <- bind_moments(bound, call)
    model$covariates <- moments_distribution(bound$moments)
  }
  check_dependent(bound$base[-1L, ], model, bound$levels, call)
  bound$dependent <- is_dependent(bound$base[-1L, ], model, bound$levels)
  fields <- c(bound$terms$fields %||% design_fields(bound$base), lm_coefficient_fields(bound, call), error_fields(model$errors),
              covariate_fields(bound$base[-1L, ], seq_len(nrow(columns) - 1L), model, bound$levels, call))
  bound$spec <- list(name = "lm", fields = fields)
  bound$formula <- model$formula %||% formula
  bound$parameters <- c(if (!inherits(model$prior, "fixed")) coefficient_names(bound$design),
                        if (!inherits(model$sigma, "fixed")) "sigma",
                        if (is_student(model) && !inherits(model$errors$df, "fixed")) "df",
                        covariate_parameters(bound$base[-1L, ], model, bound$levels))
  structure(bound, class = c(if (is_student(model)) "bound_student" else "bound_lm", "bound_regression", "noiseaware_bound"))
}

check_not_coded <- function(columns, levels, variables, call) {
  coded <- unique(columns$variable[is.na(columns$level) & columns$variable %in% names(levels)])
  if (length(coded) == 0L) return(invisible())
  of_groups <- length(coded) == 1L && length(variables) == 2L && variables[2L] == coded
  stop_classed("variables", c("A regression needs factors as released by {.fn stat_crossprod}; {.var {coded}} {?is/are} released as codes.",
                              i = if (of_groups) paste0("Use {.code model_normal(~ {coded})} for totals by {.var {coded}}, as made by {.fn stat_by}: ",
                                                         "a mean for each group."),
                              i = "Put groups of one release after a bar: {.code (1 | {coded[1L]})}."), call = call)
}

# the response comes first in `columns`
check_not_covariate <- function(name, what, columns, call) {
  if (!name %in% columns$name[columns$variable != columns$variable[1L]]) return(invisible())
  stop_classed("variables", "A covariate must not be called {.var {name}}: that is {what}.", call = call)
}

lm_coefficient_fields <- function(bound, call) {
  prior <- bound$model$prior
  columns <- bound$design
  centring <- bound_centring(bound)
  half <- half_of_response(columns)
  coefficients <- if (inherits(prior, "fixed")) {
    list(beta = centre_coefficients(centring, check_fixed(prior$value, nrow(columns), "prior", call)))
  } else if (inherits(prior, "prior_nig")) {
    c(nig_coefficient_fields(prior, columns, centring, call), beta_nig = 1)
  } else {
    c(independent_coefficient_fields(prior, columns, centring, default_coefficient_sd(columns), call), beta_nig = 0)
  }
  c(coefficients, sigma_fields(bound$model$sigma %||% prior, default_sigma_scale(half), half))
}

# expected: the linear predictor; a new response has normal noise about it
#' @export
response_of.bound_lm <- function(bound) {
  sigma <- scale_of(bound)
  list(binary = FALSE, family = stats::gaussian(), mean = identity,
       draw = function(fit, expected) expected + sigma(fit) * stats::rnorm(length(expected)),
       variance = function(fit, expected) 0 * expected + sigma(fit)^2)
}

#' @export
bound_complete.bound_lm <- function(bound, moments, n) {
  names <- bound$columns$name
  centre <- bound$spec$fields$centre
  sums <- moments["(Intercept)", names]
  products <- moments[names, names] - outer(centre, sums) - outer(sums, centre) + n * outer(centre, centre)
  c(sums - n * centre, t(products)[lower.tri(products, diag = TRUE)])
}
