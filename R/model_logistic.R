#' Logistic regression with modelled covariates
#'
#' [model_glm()] with the family `binomial()`: y is 1 with probability 1 / (1 + exp(-eta)), eta = beta_0 + sum beta_j x_j,
#' otherwise 0. Continuous covariates are multivariate normal, factor covariates categorical; they depend on each other, see `factors`. The coefficients, the
#' covariates' mean and covariance may be unknown or [fixed()].
#'
#' @param formula `response ~ covariates`, with variables of the release; products, powers, offsets and bars as in [model_glm()]. `NULL` means the statistic's
#'   own formula. The response is a number with the bounds 0 and 1, or a factor with two levels, the second of which counts as 1.
#' @param prior Prior for the coefficients (intercept first): [prior_normal()], `fixed(beta)`, or `NULL` for a weak prior scaled by the public bounds, see
#'   below.
#' @param covariates,levels As in [model_lm()].
#' @param factors As in [model_glm()].
#'
#' @details
#' **Default prior.** `NULL` is `prior_normal()`. With p covariates measured from the middles
#' of their bounds, of half-width h: intercept N(0, 2.5^2), slope j N(0, (6 / (sqrt(p)
#' h_j))^2), a level's coefficient N(0, (3 / sqrt(p))^2). The linear predictor then has a standard deviation of about 4 for any p; see [priors] for values by
#' name.
#'
#' **Statistics.** Numbers may be released by [stat_crossprod()], [stat_sums()], [stat_records()] or [stat_custom()]; factors as dummy variables
#' ([stat_crossprod()]) or as codes ([stat_counts()], [stat_records()]). A factor's first level is the reference. Declare the response of a [stat_crossprod()]
#' as `c(FALSE, TRUE)` or by its two levels. If it is declared as a number with the bounds 0 and 1, its square is also released; it is redundant (rescaled, it
#' is always 1) but still adds to the sensitivity. With one number as covariate, the L1 sensitivity is then 5.33 instead of 5.
#'
#' **Update.** Given the imputed records, the coefficients are drawn by Polya-Gamma augmentation (Polson, Scott & Windle 2013): one exact PG(1, eta) variate for
#' each record, then a normal draw. They also move with the records' innovations held fixed, where y = 1 if a uniform number is below its probability; see
#' [method_augment].
#'
#' @return A model: an object of class `model_logistic`. Its parameters are the
#'   coefficients (`(Intercept)`, the covariates' names, a factor's name and
#'   level), `mean[x]`, `cov[x,x']` and `prob[factor=level]`.
#' @section Errors: `noiseaware_error_prior`, `noiseaware_error_formula`,
#'   `noiseaware_error_variables`.
#' @references
#' Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for
#' logistic models using Polya-Gamma latent variables. *Journal of the American
#' Statistical Association* 108, 1339-1349. \doi{10.1080/01621459.2013.829001}
#' @family models
#' @examples
#' model_logistic(prior = prior_normal(0, 2))
#' st <- stat_crossprod(low ~ age, bounds = list(low = c("0", "1"), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_logistic(), chains = 2, iter = 400, seed = 1)
#' predict(fit, data.frame(age = c(20, 30)), interval = "credible")
#' @export
model_logistic <- function(formula = NULL, prior = NULL, covariates = prior_niw(), levels = prior_dirichlet(1), factors = NULL) {
  check_given()
  new_glm("logit", formula, prior, covariates, levels, factors = factors)
}

# found by their name as other models are
#' @export
variable_kinds.model_logistic <- variable_kinds.model_glm
