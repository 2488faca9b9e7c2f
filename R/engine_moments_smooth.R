# What src/clt/moments_smooth.c needs to know about a smooth regression and the totals of its splines.

#' @export
clt_distribution.bound_smooth <- function(bound, release, call) {
  parts <- release_parts(release)
  if (length(parts) != 1L || !inherits(parts[[1L]]$statistic, "stat_smooth")) refuse_clt(bound, release, call)
  if (has_classes(bound$smooth)) {
    stop_classed("method", c("Method {.val clt} needs a formula whose only term is one smooth: with several terms, moments of a record are unknown.",
                             i = "Method {.val augment} works with any number of terms."), call = call)
  }
  statistic <- parts[[1L]]$statistic
  if (!identical(statistic$splines, bound$smooth$k)) {
    stop_classed("method", c("Method {.val clt} needs the splines of the release, {.code k = {statistic$splines}}, but the model has {.code k = {bound$smooth$k}}.",
                             i = "Method {.val augment} works with any number of splines."), call = call)
  }
  units <- open_fields(statistic, statistic_fields(statistic))
  fields <- c(bound$spec$fields[c("intervals", "expand")],
              list(units = c(units$scale[1L], units$shift[1L], units$lower[1L], units$upper[1L], bound$spec$fields$centre[1L])))
  spec <- list(name = "smooth", fields = fields, model = bound$spec)
  list(spec = with_innovations(list(spec = spec), bound), index = parts[[1L]]$index, innovations = TRUE, update = FALSE)
}

#' @export
clt_statistics.model_smooth <- function(model) "stat_smooth"
