# A release holds one statistic with its mechanism, or several of the same data,
# each with its own: then `statistic` and `mechanism` are named lists, and the
# components of part "a" are called "a: component".

# list of parts: name, statistic, mechanism, neighbours, scale, value (named after the
# statistic's components), index among the release's components
release_parts <- function(release) {
  end <- 0L
  # without copies of the names of millions of records' answers
  numbers <- lapply(unclass(release)[c("scale", "value", "granularity")], unname)
  at <- function(field, index) if (length(index) == length(numbers[[field]])) numbers[[field]] else numbers[[field]][index]
  lapply(design_parts(settled_statistic(release$statistic), release$mechanism, release$neighbours), function(part) {
    index <- end + seq_len(value_size(part$statistic, release$n))
    end <<- utils::tail(index, 1L)
    c(part, list(index = index, scale = at("scale", index), value = at("value", index), granularity = at("granularity", index)))
  })
}

# The same in terms of the components of whole statistics, where that is possible: a part whose published numbers are
# multiples of a component each, `times` those `at` such places, has that statistic, with value and scale divided by it.
# `repeated`: also where a component was published more than once.
component_parts <- function(release, repeated = FALSE) {
  lapply(release_parts(release), function(part) {
    statistic <- part$statistic
    part$at <- seq_along(part$index)
    part$times <- rep(1, length(part$index))
    kernel <- part$mechanism$kernel
    if (kernel == "published") part$interval <- published_interval(part)
    if (!inherits(statistic, "stat_linear") || !one_each(statistic, repeated) || kernel == "density") return(part)
    if (kernel == "published" && any(statistic$queries$weight != 1)) return(part)
    part$statistic <- statistic$statistic
    part$at <- statistic$queries$column
    part$times <- statistic$queries$weight
    part$value <- part$value / part$times
    part$scale <- part$scale / abs(part$times)
    part
  })
}

# The release in terms of what a model knows of its variables, for methods that do without the records.
release_for <- function(bound, release) UseMethod("release_for")

#' @export
release_for.default <- function(bound, release) release

has_queries <- function(release) any(vapply(release_parts(release), function(p) inherits(p$statistic, "stat_linear"), TRUE))

# What the published numbers (rows) are in terms of those of whole_release() (columns).
release_queries <- function(release) {
  end <- 0L
  do.call(rbind, lapply(release_parts(release), function(part) {
    statistic <- part$statistic
    linear <- inherits(statistic, "stat_linear")
    before <- end
    end <<- end + length(if (linear) statistic$statistic$components else part$index)
    if (linear) data.frame(row = part$index[query_rows(statistic)], column = before + statistic$queries$column, weight = statistic$queries$weight) else
      data.frame(row = part$index, column = before + seq_along(part$index), weight = 1)
  }))
}

# list of name, statistic, mechanism, neighbours; the name is "" where there is one
design_parts <- function(statistic, mechanism, neighbours = "replace") {
  part <- function(name, statistic, mechanism) list(name = name, statistic = statistic, mechanism = mechanism, neighbours = neighbours)
  if (!is_several(statistic)) return(list(part("", statistic, mechanism)))
  lapply(names(statistic), function(name) part(name, statistic[[name]], mechanism[[name]]))
}

# one statistic and one mechanism, or named lists of the same names
check_design <- function(statistic, mechanism, neighbours = "replace", call = caller_env()) {
  if (is.list(statistic) && !is.object(statistic)) {
    ok <- length(statistic) > 0L && checkmate::test_names(names(statistic), "unique") &&
      all(vapply(statistic, inherits, TRUE, "noiseaware_statistic"))
    if (!ok) stop_argument("statistic", "a statistic, or a list of statistics with different names", describe(statistic), call = call)
    ok <- is.list(mechanism) && !is.object(mechanism) && setequal(names(mechanism), names(statistic)) &&
      length(mechanism) == length(statistic) && all(vapply(mechanism, inherits, TRUE, "noiseaware_mechanism"))
    if (!ok) {
      stop_classed("mechanism", "{.arg mechanism} must be a list of mechanisms with the statistics' names ({.val {names(statistic)}}), but is {describe(mechanism)}.",
                   call = call)
    }
  } else {
    check_statistic(statistic, call)
    check_mechanism(mechanism, call)
  }
  parts <- design_parts(statistic, mechanism)
  check_record_noise_alone(parts, neighbours, call)
  check_persons(parts, neighbours, call)
  for (p in parts) {
    check_own_pair(p$statistic, p$mechanism, call)
    check_unbounded(p$statistic, p$mechanism, call)
    check_pair(p$statistic, p$mechanism, call)
    check_neighbours(p$statistic, neighbours, call)
  }
}

# two statistics have a mechanism of their own
check_own_pair <- function(statistic, mechanism, call) {
  if ((statistic$kind == "objective") != (mechanism$kernel == "objective")) {
    stop_classed("mechanism", "{.fn mech_objective} and {.fn stat_objective} must go together: the released coefficients minimise a perturbed loss.",
                 call = call)
  }
  if ((statistic$kind == "ranks") != (mechanism$kernel == "ranks")) {
    stop_classed("mechanism", "{.fn mech_exponential} and {.fn stat_quantiles} must go together: quantiles are drawn from a grid, and have no noise that is added.",
                 call = call)
  }
}

# can that noise be added to that statistic?
check_pair <- function(statistic, mechanism, call) UseMethod("check_pair", mechanism)

#' @export
check_pair.default <- function(statistic, mechanism, call) invisible()

has_exact <- function(release) any(vapply(release_parts(release), function(p) is_exact(p$mechanism), TRUE))

#' @export
guarantee_of.noiseaware_release <- function(x, ...) x$spent %||% design_privacy(release_parts(x))

# of each number of a release, NA where it is shown; NULL if none is hidden
hidden_below <- function(release) {
  below <- unlist(lapply(release_parts(release), function(p) ifelse(is.na(p$value), p$mechanism$after$threshold %||% NA_real_, NA_real_)))
  if (!all(is.na(below))) below
}

has_record_noise <- function(release) has_noisy_records(release_parts(release))

#' Standard deviation of the noise
#'
#' The standard deviation of the noise in each published number, from a release or, in advance, from a statistic and a mechanism.
#'
#' @param x A release; or, before a release is made, a statistic or a named list of statistics.
#' @param mechanism For a statistic: the mechanism, or a list of them with the same names.
#' @param neighbours For a statistic: see [release()].
#' @return A named numeric vector, one value per component, in the units of the
#'   released totals.
#' @section Errors: `noiseaware_error_argument`, and the errors of [release()] for a statistic and a mechanism.
#' @family guarantees
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' rel <- as_release(c(1, 2, 3, 4, 5), st, mech_laplace(epsilon = 1), n = 50)
#' noise_sd(rel)
#' noise_sd(st, mech_laplace(epsilon = 0.5))
#' @export
noise_sd <- function(x, mechanism = NULL, neighbours = c("replace", "add_remove")) {
  check_given()
  if (inherits(x, "noiseaware_release")) {
    if (!is.null(mechanism)) stop_argument("mechanism", "left out if `x` is a release", describe(mechanism))
    sd <- lapply(release_parts(x), function(p) if (is_noiseless(p$mechanism)) numeric(length(p$index)) else mechanism_sd(p$mechanism, p$scale))
    return(stats::setNames(unlist(sd), names(x$value)))
  }
  if (is.null(mechanism)) stop_argument("x", "a release, or a statistic with its `mechanism`", describe(x))
  neighbours <- match_neighbours(neighbours)
  check_design(x, mechanism, neighbours)
  unlist(lapply(design_parts(x, mechanism, neighbours), function(p) {
    sd <- mechanism_sd(p$mechanism, mechanism_scale(p$mechanism, p$statistic, neighbours = neighbours))
    stats::setNames(rep_len(sd, length(p$statistic$components)), paste0(if (p$name != "") paste0(p$name, ": "), p$statistic$components))
  }))
}
