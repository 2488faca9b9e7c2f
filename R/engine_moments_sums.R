# Moments of clamped powers of one number for method "clt": see src/clt/moments_sums.c.

#' @export
clt_distribution.bound_poisson <- function(bound, release, call) sums_distribution(bound, release, 2, 0, 1, call)

#' @export
clt_distribution.bound_exponential <- function(bound, release, call) sums_distribution(bound, release, 1, 0, 1, call)

#' @export
clt_distribution.bound_normal <- function(bound, release, call) sums_distribution(bound, release, 0, bound$spec$fields$centre, 1:2, call)

# `family` as in src/clt/moments_sums.c; the complete-data statistic is the totals of
# those powers of x - centre
sums_distribution <- function(bound, release, family, centre, powers, call) {
  parts <- release_parts(release)
  components <- lapply(parts, function(p) power_components(p$statistic))
  if (any(vapply(components, is.null, TRUE))) refuse_clt(bound, release, call)
  aside <- c(lapply(list(lower = -Inf, upper = Inf, drop = 0, shift = centre, factor = 1), rep_len, length(powers)), list(power = powers))
  index <- unlist(lapply(parts, `[[`, "index"))
  fields <- do.call(Map, c(function(...) as.double(c(...)), c(components, list(aside))))
  list(spec = list(name = "sums", fields = c(list(family = as.double(family), released = as.double(length(index))), fields), model = bound$spec),
       index = index)
}

# What the components of a statistic of one number are, NULL if they are no
# powers: (factor (x - shift))^power inside the bounds.
power_components <- function(statistic) UseMethod("power_components")

#' @export
power_components.default <- function(statistic) NULL

#' @export
power_components.stat_sums <- function(statistic) {
  if (nrow(statistic$columns) > 1L) return(NULL)
  seen <- seen_columns(statistic)
  units <- sum_units(statistic)
  data.frame(lower = seen$lower, upper = seen$upper, drop = as.double(is_dropped(statistic)),
             shift = -units$shift / units$scale, factor = units$scale, power = statistic$powers[, 1L])
}

#' @export
power_components.stat_crossprod <- function(statistic) {
  if (nrow(statistic$columns) > 1L) return(NULL)
  fields <- statistic_fields(statistic)
  seen <- seen_columns(statistic)
  data.frame(lower = seen$lower, upper = seen$upper, drop = 0,
             shift = -fields$shift / fields$scale, factor = fields$scale, power = 1:2)
}

#' @export
clt_statistics.model_poisson <- function(model) c("stat_sums", "stat_crossprod", "stat_histogram")

#' @export
clt_statistics.model_exponential <- clt_statistics.model_poisson

#' @export
clt_statistics.model_normal <- clt_statistics.model_poisson

# any totals of the variable: the C plug-ins of the statistics evaluate them
#' @export
clt_distribution.bound_expfam <- function(bound, release, call) {
  parts <- release_parts(release)
  if (!all(vapply(parts, function(p) p$statistic$kind == "totals", TRUE))) refuse_clt(bound, release, call)
  specs <- lapply(parts, function(p) statistic_spec(p$statistic))
  functions <- bound$spec$functions
  functions$evaluate <- function(x, theta) {
    records <- matrix(x)
    c(functions$log_density(x, theta), unlist(lapply(specs, function(s) .Call(ffi_stat_eval, s, records))), functions$statistic(x))
  }
  index <- unlist(lapply(parts, `[[`, "index"))
  cuts <- unlist(lapply(parts, function(p) unlist(seen_columns(p$statistic)[c("lower", "upper")])))
  cuts <- cuts[is.finite(cuts)]
  list(spec = list(name = "expfam", parameters = bound$spec$parameters, released = length(index), complete = bound$spec$complete,
                   cuts = as.double(unique(cuts)), support = bound$model$support, functions = functions, model = bound$spec), index = index, integrates = TRUE)
}
