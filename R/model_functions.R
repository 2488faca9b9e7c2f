# Functions of released variables in the formula of a model: y ~ x + pmax(x - 30, 0) if x was released.
#
# The records of the model contain the variable. Each function is a column computed from it (src/model/derived_columns.c), like products: the model of the
# covariates describes the variable, and the linear predictor uses the functions. So a model may have any number of functions of a variable. The prior
# determines combinations of coefficients that the release does not. Only method "augment" fits such models; it is exact.
#
# A record may lie outside the bounds if its distribution has values there. Functions that are undefined for some numbers, or that overflow a double, need a
# covariate that stays within its bounds: covariate_beta().

# Names of functions in a formula of a release's variables, which are not columns of the release themselves, each with its variable.
model_functions <- function(variables, released) {
  found <- functions_named(setdiff(variables, released))
  Filter(function(f) f$variable %in% released, found)
}

# What model_terms() says, with the variables in the place of their functions; `functions`, a list by name, are those.
with_model_functions <- function(said, released, call) {
  functions <- model_functions(said$variables, released)
  if (length(functions) == 0L) return(said)
  if (said$response %in% names(functions)) {
    f <- functions[[said$response]]
    stop_classed("variables", c("The response must be a variable of the release, but {.code {f$label}} is not.",
                                x = "The release has {.var {f$variable}}, and its totals are not totals of a function of it.",
                                i = "Release {.code {f$label}} itself: it can be used in the formula of a statistic."), call = call)
  }
  said$variables <- unique(ifelse(said$variables %in% names(functions), base_variables(said$variables), said$variables))
  if (said$response %in% said$variables[-1L] || any(vapply(functions, `[[`, "", "variable") == said$response)) {
    stop_classed("formula", "The response {.var {said$response}} must not also be a term or an offset of {.arg formula}.", call = call)
  }
  said$functions <- functions
  said$plain <- FALSE
  said
}
