#' Responses of several levels
#'
#' Families of a factor with three or more levels, for [model_glm()]: `cumulative()` where the levels have an order, `categorical()`
#' where they have none.
#'
#' @param link Of the cumulative probabilities: `"logit"` (proportional odds) or `"probit"`.
#'
#' @details
#' **Cumulative.** P(y <= level k) = F(threshold k - eta), eta = sum beta_j x_j without an intercept, F the logistic or the normal
#' distribution function: with a larger eta higher levels are more likely, as in `MASS::polr()`. The levels are in the order in
#' which the statistic declares them. A threshold is called by the levels that it parts, such as `Low|Medium`.
#'
#' **Categorical.** log(P(y = level k) / P(y = first level)) = beta_0k + sum beta_jk x_j, as in `nnet::multinom()`: each level but the first
#' has coefficients of its own, such as `(Intercept)[Medium]` and `age[Medium]`.
#'
#' The names are brms's, whose family objects [model_glm()] takes as well; `ordered()` is a function of R that makes factors, and
#' `multinomial()` is elsewhere the family of vectors of counts.
#'
#' @return An object of R's class [family][stats::family], of which only name and link are of use.
#' @references
#' McCullagh, P. (1980). Regression models for ordinal data. *Journal of the Royal Statistical Society B* 42, 109-142.
#' \doi{10.1111/j.2517-6161.1980.tb01109.x}
#' @family priors and parts of models
#' @examples
#' model_glm(family = cumulative("probit"))
#' model_glm(family = categorical())
#' levels <- list(Sat = c("Low", "Medium", "High"), Cont = c("Low", "High"))
#' st <- stat_crossprod(Sat ~ Cont, bounds = levels)
#' homes <- MASS::housing[rep(seq_len(72), MASS::housing$Freq), ]
#' set.seed(1)
#' rel <- simulate_release(homes, st, mech_laplace(epsilon = 1))
#' fit <- sample_posterior(rel, model_glm(family = cumulative()), chains = 2, iter = 300, seed = 1)
#' predict(fit, data.frame(Cont = c("Low", "High")))
#' @name categories
NULL

#' @rdname categories
#' @export
cumulative <- function(link = c("logit", "probit")) {
  link <- if (missing(link)) "logit" else check_choice(link, "link", c("logit", "probit"))
  family_of_levels("cumulative", link)
}

#' @rdname categories
#' @export
categorical <- function() family_of_levels("categorical", "logit")

# R's functions know no family of several levels: what they would ask for is that of the link.
family_of_levels <- function(name, link) {
  family <- stats::binomial(link)[c("family", "link", "linkfun", "linkinv", "mu.eta", "valideta")]
  family$family <- name
  structure(family, class = "family")
}
