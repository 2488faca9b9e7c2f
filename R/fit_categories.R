# Draws of the coefficients for a response with several levels, and its linear predictors.

# draws x coefficients, the known ones too
category_draws <- function(fit) {
  prior <- fit$bound$model$prior
  if (!inherits(prior, "fixed")) return(coefficient_draws(fit))
  matrix(as.double(prior$value), posterior::ndraws(fit$draws), length(prior$value), byrow = TRUE)
}

# draws x rows, or draws x rows x levels but the first
category_predictors <- function(fit, newdata, call) {
  bound <- fit$bound
  draws <- category_draws(fit)
  values <- covariate_values(fit, newdata, call)
  x <- cbind(1, term_values(bound, values))
  offset <- rep(offset_values(bound, values) %||% 0, each = nrow(draws))
  cuts <- length(bound$categories) - 1L
  if (is_ordered_family(bound$model)) return(unname(draws[, -seq_len(cuts), drop = FALSE] %*% t(x[, -1L, drop = FALSE])) + offset)
  own <- ncol(x)
  eta <- vapply(seq_len(cuts), function(e) unname(draws[, (e - 1L) * own + seq_len(own), drop = FALSE] %*% t(x)) + offset, matrix(0, nrow(draws), nrow(x)))
  array(eta, c(nrow(draws), nrow(x), cuts), list(NULL, NULL, bound$categories[-1L]))
}

#' @export
linear_predictor_of.bound_categories <- function(bound, fit, newdata, call) category_predictors(fit, newdata, call)

# probabilities: draws x rows x levels
#' @export
expected_of.bound_categories <- function(bound, fit, newdata, call) {
  eta <- category_predictors(fit, newdata, call)
  count <- length(bound$categories)
  size <- c(dim(eta)[1:2], count)
  probability <- array(0, size, list(NULL, NULL, bound$categories))
  if (is_ordered_family(bound$model)) {
    thresholds <- category_draws(fit)[, seq_len(count - 1L), drop = FALSE]
    below <- 0
    for (k in seq_len(count)) {
      now <- if (k < count) stats::family(fit)$linkinv(thresholds[, k] - eta) else 1
      probability[, , k] <- now - below
      below <- now
    }
    return(probability)
  }
  most <- pmax(0, apply(eta, 1:2, max))
  probability[, , 1L] <- exp(-most)
  for (k in seq_len(count)[-1L]) probability[, , k] <- exp(eta[, , k - 1L] - most)
  sweep(probability, 1:2, apply(probability, 1:2, sum), `/`)
}
