# What src/clt/moments_glm.c needs to know about a response, its covariates and their cross-products.

#' @export
clt_distribution.bound_glm <- function(bound, release, call) {
  check_normal_covariates(bound, "clt", call)
  part <- crossprod_part(bound, release, call)
  factors <- setdiff(names(bound$levels), bound$columns$variable[1L])
  if (length(factors)) {
    stop_classed("method", c("Method {.val clt} supports such a response only with numeric covariates, not with factors.",
                             x = "{.var {factors}} {?is a factor/are factors}.",
                             i = "Method {.val augment} supports factors, and {.val collapse} models with only factors."), call = call)
  }
  if (is_shaped_family(bound$model)) {
    stop_classed("method", c("Method {.val clt} does not support a {family_of(bound$model)$text}.", i = "Method {.val augment} does."), call = call)
  }
  response <- bound$design[1L, ]
  if (!is_binary_family(bound$model) && response$lower > 0 && !natural_limits(part$statistic)$lower[match(response$name, part$statistic$columns$name)]) {
    stop_classed("method", c("Method {.val clt} supports counts only if they are clamped from above and not from below.",
                             x = "{.var {response$name}} has the lower bound {response$lower}.", i = "Method {.val augment} supports any bounds."), call = call)
  }
  fields <- crossprod_fields(bound, part$statistic)
  # for counts that nothing clamps: the largest that the model allows for
  if (is.infinite(fields$upper[1L])) fields$upper[1L] <- fields$scale[1L] * most_count(response) + fields$shift[1L]
  fields <- c(fields, family_fields(bound$model, response))
  list(spec = list(name = "glm", fields = fields, model = bound$spec), index = part$index,
       innovations = TRUE, update = FALSE)
}

#' @export
clt_statistics.model_glm <- function(model) "stat_crossprod"

#' @export
clt_statistics.model_logistic <- clt_statistics.model_glm

#' @export
clt_leaves_out_bounds.bound_glm <- function(bound) TRUE
