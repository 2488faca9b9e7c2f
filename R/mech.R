# What all mechanisms share: a list of public facts
#   name    of the C plug-in
#   kernel  "absolute" or "squared": log density = -kernel(noise * weight);
#           "match": -weight where a noisy value is not the true one;
#           "density": an R function of all components at once;
#           "objective": a function of sums that depend on the released value;
#           "ranks": a function of ranks of points among the records;
#           "records": noise on every record, before anything is summed
#   the budget or the scale, one of them given
# Methods: mechanism_scale(), mechanism_sd(), guarantee_of(); for noise that not
# every statistic can take, check_pair(), check_noisy(); for noise that is not
# added, add_noise().

new_mechanism <- function(name, kernel, ..., class) {
  structure(list(name = name, kernel = kernel, ...), class = c(class, "noiseaware_mechanism"))
}

# noise scale of every component, of records that were rounded to units
mechanism_scale <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") UseMethod("mechanism_scale")

# standard deviation of noise of that scale
mechanism_sd <- function(mechanism, scale) UseMethod("mechanism_sd")

# noisy values from true ones and uniforms; scale has one value for each
add_noise <- function(mechanism, statistic, total, uniform, scale) UseMethod("add_noise")

#' @export
add_noise.default <- function(mechanism, statistic, total, uniform, scale) {
  total + mechanism_noise(mechanism, uniform, scale)
}

# can these published values be that statistic with that noise?
check_noisy <- function(mechanism, statistic, value, call = caller_env()) UseMethod("check_noisy")

#' @export
check_noisy.default <- function(mechanism, statistic, value, call = caller_env()) invisible()

# one scale, or the components' scales where they differ
format_scales <- function(scale) shorten_list(format_number(if (all(scale == scale[1L])) scale[[1L]] else scale), 4L)

# given scales, one or one a component, in the statistic's order
expand_scale <- function(scale, statistic, name, call) {
  components <- statistic$components
  d <- length(components)
  if (!length(scale) %in% c(1L, d)) {
    stop_classed("mechanism", "{.arg {name}} must have one value or one for each of the {d} component{?s}, but has {length(scale)}.",
                 call = call)
  }
  if (!is.null(names(scale))) {
    levels <- statistic$levels
    if (length(levels) == 1L && all(names(scale) %in% levels[[1L]])) names(scale) <- paste0(names(levels), "=", names(scale))
    if (!setequal(names(scale), components)) {
      stop_classed("mechanism", c("{.arg {name}} must have the names of the statistic's components, or none.",
                                  x = "Not a component: {.val {setdiff(names(scale), components)}}.",
                                  i = "Components: {.val {components}}."), call = call)
    }
    scale <- scale[components]
  }
  # a budget at the edge of the doubles
  if (!all(is.finite(scale)) || any(scale <= 0) || !all(is.finite(1 / scale))) {
    stop_classed("mechanism", "The scale of the noise must be a positive finite number, but is {describe(unname(scale[1]))}.",
                 call = call)
  }
  rep_len(unname(scale), d)
}

check_scale <- function(x, name, call = caller_env()) {
  must <- "positive finite numbers"
  if (!is.numeric(x) || length(x) == 0L) stop_argument(name, must, describe(x), "mechanism", call)
  bad <- !is.finite(x) | x <= 0
  if (any(bad)) stop_argument(name, must, describe_bad(x, bad), "mechanism", call)
  if (anyDuplicated(names(x))) {
    stop_classed("mechanism", "{.arg {name}} must name each component once, but has {.val {unique(names(x)[duplicated(names(x))])}} twice.",
                 call = call)
  }
  stats::setNames(as.double(x), if (length(x) > 1L) names(x))
}

# how a function that makes a mechanism calls the size of its noise
size_argument <- function(mechanism, call) {
  takes <- if (is.function(mechanism)) intersect(c("scale", "sd"), names(formals(args(mechanism) %||% function() NULL)))
  if (length(takes) == 1L) return(takes)
  was <- if (is.function(mechanism)) "another function" else describe(mechanism)
  stop_argument("mechanism", "a mechanism, or a function that makes one from a scale or an sd", was, call = call)
}

#' @export
print.noiseaware_mechanism <- function(x, ...) {
  cat("<mechanism> ", format(x), "\n", sep = "")
  invisible(x)
}

mechanism_noise <- function(mechanism, uniform, scale) {
  .Call(ffi_mech_quantile, mechanism$name, as.double(uniform), as.double(scale))
}

is_discrete <- function(mechanism) startsWith(mechanism$name, "discrete_")

is_exact <- function(mechanism) mechanism$kernel == "exact"

# no noise, whether or not something was hidden after
is_noiseless <- function(mechanism) is_exact(mechanism) || isTRUE(mechanism$noiseless)

privacy_row <- function(epsilon = NA_real_, delta = NA_real_, rho = NA_real_, mu = NA_real_) {
  list2DF(list(epsilon = epsilon, delta = delta, rho = rho, mu = mu))
}

# Noise by inversion of uniform(count), in floating-point arithmetic; a part of a release has its scale. `total`: what the statistic is of the data,
# which not all mechanisms need.
simulated_part <- function(part, data, call, uniform = stats::runif, total = part_total(part, data, call)) UseMethod("simulated_part", part$mechanism)

part_total <- function(part, data, call) statistic_total(part$statistic, data, call, confidential = TRUE, empty = !replaces(part$neighbours))

#' @export
simulated_part.default <- function(part, data, call, uniform = stats::runif, total = part_total(part, data, call)) {
  scale <- part$scale %||% mechanism_scale(part$mechanism, part$statistic, call, neighbours = part$neighbours)
  scale <- rep(scale, each = length(total) / length(scale))
  list(value = unname(add_noise(part$mechanism, part$statistic, total, uniform(length(total)), scale)),
       scale = scale, unit = numeric(length(total)))
}

# The same for totals of many releases, a row each, with a uniform for each; a hidden number stands at its threshold. Not of mechanisms that draw what they
# release in their own way, from the data.
simulated_values <- function(part, totals, uniform, seed) {
  own <- part$mechanism
  if (inherits(own, "mech_custom")) {
    # its function draws the noise of one release at a time
    return(with_seed(seed, t(matrix(apply(totals, 1L, function(s) add_noise(own, part$statistic, s, NULL, part$scale)), ncol(totals)))))
  }
  value <- add_noise(own, part$statistic, as.vector(totals), as.vector(uniform), rep(part$scale, each = nrow(totals)))
  if (!is.null(own$after$threshold)) value <- ifelse(is.na(value), own$after$threshold, value)
  matrix(value, nrow(totals))
}

has_own_draws <- function(mechanism) {
  has_method <- function(class) !is.null(utils::getS3method("simulated_part", class, optional = TRUE))
  any(vapply(class(mechanism), has_method, NA))
}
