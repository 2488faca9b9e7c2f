# What src/moments_binary.c needs to know of a binary response, its covariates and their cross-products.

#' @export
clt_distribution.bound_glm <- function(bound, release, call) {
  if (!is_binary_family(bound$model)) refuse_clt(bound, release, call)
  check_normal_covariates(bound, "clt", call)
  part <- crossprod_part(bound, release, call)
  factors <- setdiff(names(bound$levels), bound$columns$variable[1L])
  if (length(factors)) {
    stop_classed("method", c("Method {.val clt} knows the moments of a binary response given numbers, not factors.",
                             x = "{.var {factors}} {?is a factor/are factors}.", i = "Method {.val augment} takes factors."), call = call)
  }
  fields <- c(crossprod_fields(bound, part$statistic), family_fields(bound$model, bound$design[1L, ]))
  list(spec = list(name = "binary", fields = fields, model = bound$spec), index = part$index,
       innovations = TRUE, update = FALSE)
}

#' @export
clt_statistics.model_glm <- function(model) if (is.null(model$family) || is_binary_family(model)) "stat_crossprod" else character()

#' @export
clt_statistics.model_logistic <- clt_statistics.model_glm

#' @export
clt_leaves_out_bounds.bound_glm <- function(bound) TRUE
