# Families of responses, as in src/model/family_classes.c. `scale` and `middle` are for the default priors: the standard deviation of the covariates'
# contribution to the linear predictor, and the intercept's mean and sd (NA: from a sixth of the upper bound). `shaped`: there is a coefficient of variation.
# `kind`: the bounds that a response may have. Of 135 coefficients of logistic regressions on 57 real data sets, 4 per cent are beyond two prior sds; half the
# scale would leave 16 per cent there. Counts have a narrower prior, because their mean is an exponential of the linear predictor.

glm_families <- list(
  logit = list(family = "binomial", link = "logit", text = "logistic regression", kind = "binary", scale = 3, middle = c(0, 2.5)),
  probit = list(family = "binomial", link = "probit", text = "probit regression", kind = "binary", scale = 1.8, middle = c(0, 1.5)),
  cloglog = list(family = "binomial", link = "cloglog", text = "complementary log-log regression", kind = "binary", scale = 2, middle = c(log(log(2)), 1.7)),
  poisson = list(family = "poisson", link = "log", text = "Poisson regression", kind = "count", scale = 1, middle = c(NA, 1.5)),
  negative_binomial = list(family = "negative_binomial", link = "log", text = "negative binomial regression", kind = "count", shaped = TRUE, scale = 1,
                           middle = c(NA, 1.5)),
  gamma = list(family = "Gamma", link = "log", text = "Gamma regression", kind = "positive", shaped = TRUE, scale = 1, middle = c(NA, 1.5)),
  cumulative_logit = list(family = "cumulative", link = "logit", text = "ordered logistic regression", kind = "ordered", scale = 3, middle = c(0, 2.5)),
  cumulative_probit = list(family = "cumulative", link = "probit", text = "ordered probit regression", kind = "ordered", scale = 1.8, middle = c(0, 1.5)),
  softmax = list(family = "categorical", link = "logit", text = "categorical logistic regression", kind = "unordered", scale = 3, middle = c(0, 2.5))
)

# those that R has no object of, by the names that model_glm() takes
own_families <- list(negative_binomial = function() negative_binomial_family(), cumulative = function() family_of_levels("cumulative", "logit"),
                     cumulative_probit = function() family_of_levels("cumulative", "probit"), categorical = function() family_of_levels("categorical", "logit"))

# of another name in brms
brms_families <- c(bernoulli = "binomial", negbinomial = "negative_binomial", gamma = "Gamma")

# The name of a family object, of a function that makes it, or of that function's name; MASS::negative.binomial(theta)
# has the attribute cv. A link that was not asked for is the one there is.
check_family <- function(family, call = caller_env()) {
  there <- vapply(glm_families, function(f) sprintf("%s(\"%s\")", f$family, f$link), "")
  must <- "binomial(\"logit\", \"probit\" or \"cloglog\"), poisson(), Gamma(\"log\"), \"negative_binomial\", \"cumulative\", \"cumulative_probit\" or \"categorical\""
  named <- c(list(binomial = stats::binomial, poisson = stats::poisson, Gamma = function() stats::Gamma("log")), own_families)
  ours <- function(name) if (name %in% names(brms_families)) brms_families[[name]] else name
  if (is.character(family) && length(family) == 1L && ours(family) %in% names(named)) family <- named[[ours(family)]]
  if (identical(family, stats::Gamma)) family <- named$Gamma
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (!inherits(family, "family")) stop_argument("family", must, describe(family), "family", call)
  family$family <- ours(family$family)
  given <- sprintf("%s(\"%s\")", family$family, family$link)
  size <- if (startsWith(family$family, "Negative Binomial")) get0(".Theta", environment(family$variance))
  if (!is.null(size)) given <- sprintf("negative_binomial(\"%s\")", family$link)
  name <- names(which(there == given))
  if (length(name) == 0L) stop_argument("family", must, given, "family", call)
  if (is.null(size)) name else structure(name, cv = 1 / sqrt(size))
}

# R has no object of these: what its functions would ask for. The variance function is that of cv = 1; of several levels there is the link alone.
negative_binomial_family <- function() {
  family <- stats::poisson()[c("family", "link", "linkfun", "linkinv", "variance", "mu.eta", "valideta")]
  family$family <- "negative_binomial"
  family$variance <- function(mu) mu + mu^2
  structure(family, class = "family")
}

family_of_levels <- function(name, link) {
  family <- stats::binomial(link)[c("family", "link", "linkfun", "linkinv", "mu.eta", "valideta")]
  family$family <- name
  structure(family, class = "family")
}

family_of <- function(model) glm_families[[model$family]]

is_binary_family <- function(model) family_of(model)$kind == "binary"

is_shaped_family <- function(model) isTRUE(family_of(model)$shaped)

# R's own object
stats_family <- function(model) {
  family <- family_of(model)
  own <- own_families[[if (model$family == "cumulative_probit") model$family else family$family]]
  if (!is.null(own)) own() else getExportedValue("stats", family$family)(family$link)
}

# What src/model/family_classes.c reads: a field of the family's name, with the largest rate and the response's bounds. With rates so
# large every response is beyond the upper bound, so that the limit changes nothing that is released.
most_count <- function(response) 4 * response$upper + 100

family_fields <- function(model, response) {
  stats::setNames(list(if (is_binary_family(model)) 0 else c(most_count(response), response$lower, response$upper)), model$family)
}

# of the coefficient of variation, as a standard deviation's
cv_fields <- function(model) {
  if (!is_shaped_family(model)) return(list())
  fields <- sigma_fields(model$cv, 1)
  names(fields)[names(fields) == "sigma"] <- "cv"
  fields
}

# New responses of these means
draw_responses <- function(bound, fit, expected) {
  count <- length(expected)
  shape <- if (is_shaped_family(bound$model)) rep_len((bound$spec$fields[["cv"]] %||% parameter_matrix(fit)[, "cv"])^-2, count)
  expected[] <- switch(bound$model$family,
    poisson = stats::rpois(count, expected),
    negative_binomial = stats::rnbinom(count, size = shape, mu = expected),
    gamma = stats::rgamma(count, shape, shape / expected),
    stats::rbinom(count, 1L, expected))
  expected
}

# of a response about its expectation, draws x rows
response_variance <- function(bound, fit, expected) {
  cv <- if (is_shaped_family(bound$model)) bound$spec$fields[["cv"]] %||% parameter_matrix(fit)[, "cv"]
  switch(bound$model$family, poisson = expected, negative_binomial = expected + (cv * expected)^2, gamma = (cv * expected)^2,
         expected * (1 - expected))
}

check_family_response <- function(model, response, call) {
  family <- family_of(model)
  if (family$kind == "binary") return(check_binary(response, call))
  least <- if (family$kind == "count") 1 else 0
  bounded <- nrow(response) == 1L && is.na(response$level) && !is.na(response$lower) && response$lower >= 0 && response$upper >= least &&
    is.finite(response$upper)
  if (bounded) return(invisible())
  must <- if (family$kind == "count") "the lower one at least 0 and the upper one at least 1" else "the lower one at least 0"
  stop_classed("variables", c("The response of {.val {family$family}} must be a number with bounds, {must}.",
                              x = "{.var {response$variable[1]}} has other bounds or is a factor."), call = call)
}

check_binary <- function(response, call) {
  if (nrow(response) == 1L && response$lower == 0 && response$upper == 1) return(invisible())
  stop_classed("variables", c("The response of {.code binomial()} must be a number with the bounds 0 and 1, or a factor of two levels.",
                              x = "{.var {response$variable[1]}} is neither.",
                              i = if (nrow(response) > 1L) "Use {.code family = \"cumulative\"} if its levels are ordered, otherwise {.code \"categorical\"}."),
               call = call)
}

# The default priors of the coefficients, the intercept's first. A count is expected to be about a sixth of its upper bound.
family_scales <- function(model, design) {
  family <- family_of(model)
  c(family$middle[2L], family$scale / 2 * default_scales(design)[-1L])
}

family_middle <- function(model, response) {
  middle <- family_of(model)$middle[1L]
  if (is.na(middle)) log(response$upper / 6) else middle
}

is_category_family <- function(model) family_of(model)$kind %in% c("ordered", "unordered")

is_ordered_family <- function(model) family_of(model)$kind == "ordered"

check_levels_response <- function(model, response, levels, call) {
  own <- family_of(model)$family
  variable <- response$variable[1L]
  if (length(levels) > 2L) return(invisible())
  if (length(levels) == 2L) {
    stop_classed("variables", c("The response of {.val {own}} must be a factor with three or more levels, but {.var {variable}} has two.",
                                i = "Use {.code family = binomial()}."), call = call)
  }
  stop_classed("variables", c("The response of {.val {own}} must be a factor with three or more levels.",
                              x = "{.var {variable}} is a number.",
                              i = "Declare its levels in the statistic, such as {.code bounds = list({variable} = c(\"low\", \"middle\", \"high\"))}."), call = call)
}
