# What src/moments_logistic.c needs to know of a logistic regression and its cross-products.

#' @export
clt_distribution.bound_logistic <- function(bound, release, call) {
  part <- crossprod_part(bound, release, call)
  factors <- setdiff(names(bound$levels), bound$columns$variable[1L])
  if (length(factors)) {
    stop_classed("method", c("Method {.val clt} knows the moments of a logistic regression on numbers, not on factors.",
                             x = "{.var {factors}} {?is a factor/are factors}.", i = "Method {.val augment} takes factors."), call = call)
  }
  list(spec = list(name = "logistic", fields = crossprod_fields(bound, part$statistic), model = bound$spec), index = part$index,
       innovations = TRUE, update = FALSE)
}

#' @export
clt_statistics.model_logistic <- function(model) "stat_crossprod"

#' @export
clt_leaves_out_bounds.bound_logistic <- function(bound) TRUE
