# Families of responses, as src/family.c has them. `scale` and `middle`: of the default priors, the
# standard deviation of what covariates add to the linear predictor, and the intercept's mean and sd.

glm_families <- list(
  logit = list(family = "binomial", link = "logit", text = "logistic regression", scale = 1.5, middle = c(0, 1.5)),
  probit = list(family = "binomial", link = "probit", text = "probit regression", scale = 0.9, middle = c(0, 0.9)),
  cloglog = list(family = "binomial", link = "cloglog", text = "complementary log-log regression", scale = 1, middle = c(log(log(2)), 1)),
  poisson = list(family = "poisson", link = "log", text = "Poisson regression", scale = 1, middle = c(NA, 1.5))
)

# The name of R's own family object, of a function that makes it, or of that function's name.
check_family <- function(family, call = caller_env()) {
  there <- vapply(glm_families, function(f) sprintf("%s(\"%s\")", f$family, f$link), "")
  must <- paste0("one of R's families ", paste(there, collapse = ", "))
  if (is.character(family) && length(family) == 1L && family %in% c("binomial", "poisson")) family <- getExportedValue("stats", family)
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (!inherits(family, "family")) stop_argument("family", must, describe(family), "family", call)
  name <- names(which(there == sprintf("%s(\"%s\")", family$family, family$link)))
  if (length(name) == 0L) stop_argument("family", must, sprintf("%s(\"%s\")", family$family, family$link), "family", call)
  name
}

family_of <- function(model) glm_families[[model$family]]

is_binary_family <- function(model) family_of(model)$family == "binomial"

# R's own object
stats_family <- function(model) {
  family <- family_of(model)
  getExportedValue("stats", family$family)(family$link)
}

# What src/family.c reads: a field of the family's name, with the largest rate. With rates so large every count is
# beyond the upper bound, so that the limit changes nothing that is released.
family_fields <- function(model, response) {
  stats::setNames(list(if (is_binary_family(model)) 0 else 4 * response$upper + 100), model$family)
}

check_family_response <- function(model, response, call) {
  if (is_binary_family(model)) return(check_binary(response, call))
  count <- nrow(response) == 1L && is.na(response$level) && !is.na(response$lower) && response$lower >= 0 && response$upper >= 1 &&
    is.finite(response$upper)
  if (count) return(invisible())
  stop_classed("variables", c("The response of {.code poisson()} must be a number with bounds, the lower one at least 0 and the upper one at least 1.",
                              x = "{.var {response$variable[1]}} has other bounds, or is a factor."), call = call)
}

check_binary <- function(response, call) {
  if (nrow(response) == 1L && response$lower == 0 && response$upper == 1) return(invisible())
  stop_classed("variables", c("The response of {.code binomial()} must be a number with the bounds 0 and 1, or a factor of two levels.",
                              x = "{.var {response$variable[1]}} is neither."), call = call)
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
