# Method "collapse", the total of one variable: see src/totals/rate_total.c.

#' @export
collapse_family.bound_poisson <- function(bound, call = caller_env()) "total"

#' @export
collapse_family.bound_exponential <- function(bound, call = caller_env()) "total"

total_distribution <- function(bound, parts, n, prior_n, call) {
  is_size <- lapply(parts, function(p) rep(as.double(inherits(p$statistic, "stat_size")), length(p$index)))
  for (p in parts) {
    if (inherits(p$statistic, "stat_size")) next
    plain <- inherits(p$statistic, "stat_sums") && ncol(p$statistic$powers) == 1L && !p$statistic$rescale && all(p$statistic$powers[p$at, ] == 1)
    if (!plain) stop_collapse_part(p, "only the total of its variable in its own units, as from {.code stat_sums(~ x)}", call)
  }
  prior <- bound$spec$fields[c("shape", "rate")]
  list(family = "total", fields = c(prior, list(whole = as.double(bound$spec$name == "poisson")), far = farthest_walk(parts), tightest_bounds(bound$columns$name, parts)),
       component = list(is_size = unlist(is_size)))
}

#' @export
collapse_statistics.model_poisson <- function(model) "stat_sums"

#' @export
collapse_statistics.model_exponential <- collapse_statistics.model_poisson

#' @export
engine_fewest.engine_collapse_total <- function(engine, bound) if (bound$spec$name == "exponential") 1 else 0

#' @export
engine_lines.engine_collapse_total <- function(engine, fit) outside_lines(fit)

#' @export
engine_diagnostics.engine_collapse_total <- function(engine, fit, told) {
  with_records(data.frame(mean = share_accepted(told, "walk"), fresh = share_accepted(told, "fresh")), fit, told)
}

#' @export
engine_moves.engine_collapse_total <- function(engine, fit, rows) {
  paste0(sprintf("total    walk: %s; proposals from the prior: %s", share_words(rows$mean), share_words(rows$fresh)), size_words(fit, rows))
}
