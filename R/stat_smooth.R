# Totals for smooth curves that add up, and for numbers and factors with them, made by stat_crossprod(y ~ s(x, k = 10) + z + g): products of cubic B-splines
# with equal knots, of numbers, of indicators of all levels and of y. See src/stat/smooth.c and utils_smooths.R.
#
# A level more than there are dummies costs no privacy: two records are in two levels, however many there are. It halves the noise of what is different
# between levels, which is otherwise the small difference of two large totals.

most_smooth_totals <- 10000

new_smooth_statistic <- function(smooth, bounds, outside, call) {
  bounds <- check_bounds(bounds, smooth$variables, call)
  functions <- attr(bounds, "functions")
  smooth <- with_factors(smooth, names(bounds)[vapply(bounds, is.character, TRUE)])
  bounds <- bounds[smooth$variables]
  strange <- names(Filter(is.character, bounds[c(smooth$response, smooth$variable)]))
  if (length(strange)) {
    stop_classed("bounds", "The response and smooths need two numbers as {.arg bounds}, but {.var {strange}} {?has/have} levels.", call = call)
  }
  outside <- check_outside(outside, setdiff(smooth$variables, smooth$factors), call = call)
  columns <- expand_columns(smooth$variables, bounds, call)
  levels <- bounds[smooth$factors]
  size <- smooth_totals(smooth$k, length(smooth$numbers), lengths(levels))
  if (size > most_smooth_totals) {
    stop_classed("formula", c("A statistic with smooths must have at most {format_number(most_smooth_totals)} totals, but would have {format_number(size, 8L)}.",
                              i = "Choose smaller {.arg k}, or fewer terms."), call = call)
  }
  components <- smooth_components(smooth, levels)
  check_names_differ(components, columns, call)
  statistic <- new_statistic("smooth", "totals", columns = columns, levels = levels, components = components, formula = smooth$formula,
                             outside = outside, splines = smooth$k, class = "stat_smooth")
  if (!all(is.finite(unlist(statistic_fields(statistic))))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled, but the results overflow.", i = "Change the units of the data."), call = call)
  }
  with_functions(statistic, functions)
}

# how many there are: `k` of the smooths, so many numbers, and levels of each factor
smooth_totals <- function(k, numbers, levels) {
  plain <- sum(3 * k - 3) + (sum(k)^2 - sum(k^2)) / 2 + numbers * sum(k) + numbers * (numbers + 1) / 2 + sum(k) + numbers + 1
  plain + sum(levels) * (sum(k) + numbers + 1) + (sum(levels)^2 - sum(levels^2)) / 2
}

# of two smooths
smooth_pairs <- function(p) {
  pairs <- spline_pairs(p, p)
  pairs[pairs$first < pairs$second, ]
}

# in the order of C
smooth_components <- function(smooth, levels) {
  splines <- Map(function(label, k) paste0(label, seq_len(k)), smooth$label, smooth$k)
  product <- function(a, b) ifelse(a == b, paste0(a, "^2"), paste0(a, ":", b))
  own <- lapply(splines, function(b) {
    pairs <- spline_pairs(length(b))
    product(b[pairs$first], b[pairs$second])
  })
  both <- smooth_pairs(length(splines))
  across <- Map(function(i, j) paste0(rep(splines[[i]], each = length(splines[[j]])), ":", splines[[j]]), both$first, both$second)
  z <- smooth$numbers
  squares <- spline_pairs(length(z), length(z))
  indicators <- Map(paste0, smooth$factors, levels)
  of_levels <- lapply(seq_along(indicators), function(f) {
    with <- c(unlist(splines), z, unlist(indicators[seq_len(f - 1L)]), smooth$response)
    paste0(rep(indicators[[f]], each = length(with)), ":", with)
  })
  unlist(c(own, across, lapply(z, function(name) paste0(name, ":", unlist(splines))), product(z[squares$first], z[squares$second]),
           paste0(smooth$response, ":", c(unlist(splines), z)), paste0(smooth$response, "^2"), of_levels), use.names = FALSE)
}

# Smooths in intervals between their knots, dummies as they are, all else in [-1, 1].
#' @export
statistic_fields.stat_smooth <- function(statistic) {
  lower <- statistic$columns$lower
  upper <- statistic$columns$upper
  intervals <- statistic$splines - 3
  splined <- 1L + seq_along(intervals)
  to <- rep(2, length(lower))
  to[splined] <- intervals
  to <- to / (upper - lower)
  shift <- -(upper + lower) / (upper - lower)
  shift[splined] <- -lower[splined] * to[splined]
  dummy <- !is.na(statistic$columns$level)
  to[dummy] <- 1
  shift[dummy] <- 0
  list(scale = to, shift = shift, lower = ifelse(dummy, 0, -1), upper = rep(1, length(to)), intervals = as.double(intervals),
       levels = as.double(lengths(statistic$levels)))
}

#' @export
variable_kinds.stat_smooth <- function(x) "number"

# Of p smooths, m numbers, the response among them, and f factors; see ?stat_crossprod. At a knot the sum of the splines' squares and of their fourth powers is
# largest. Of two records in other levels a factor is like a smooth whose splines are 1 at a knot, and which has no products of its own.
#' @export
sensitivity.stat_smooth <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  p <- length(statistic$splines)
  m <- sum(is.na(statistic$columns$level)) - p
  f <- length(statistic$levels)
  squares <- 1 / 2
  fourth <- (1 + 4^4 + 1) / 6^4
  pairs <- p * (p - 1) / 2
  if (norm == "L1") {
    products <- p * (1 + squares) / 2 + pairs + f * p + f * (f - 1) / 2
    return(if (replaces(neighbours)) 2 * products + farthest_numbers(p + f, m) else products + (p + f) * m + m * (m + 1) / 2)
  }
  products <- p * (squares^2 + fourth) / 2 + pairs * squares^2 + f * p * squares + f * (f - 1) / 2
  numbers <- (p * squares + f) * m
  if (!replaces(neighbours)) return(sqrt(products + numbers + m * (m + 1) / 2))
  # B: of how many numbers records differ in sign; R: of how many factors they have the same level; Q: the common splines. Without factors Q is multiplied by
  # B, not 2 B - m, which is looser: files state budgets, so a smaller sensitivity would be wrong of the noise in those that there are.
  bend <- 1 + 1 / (4 * p)
  at <- expand.grid(B = if (p + f > 1 || m == 1) 0:m else (4 * m + 1) / 8, R = 0:f)
  lean <- if (f > 0) 2 * at$B - m else at$B
  common <- pmin(pmax((lean - at$R) / bend, 0), p / 2)
  sqrt(2 * (products + numbers) + max(4 * at$B * (m - at$B) + 2 * lean * (common + at$R) - bend * common^2 - at$R * (2 * common + at$R - 1)))
}

# The largest 2 T (m - T) + 2 T - 2 sum(t^2) + 2 p sum(max(t, 1 - t)), T = sum(t), of m numbers t in [0, 1]: concave where each t stays on one side of 1/2, so
# that all on the same side are equal. high of them are 1/2 + v, the others u, 0 <= u, v <= 1/2.
farthest_numbers <- function(p, m) {
  value <- function(u, v, high) {
    low <- m - high
    t <- low * u + high * (1 / 2 + v)
    2 * t * (m - t) + 2 * t - 2 * (low * u^2 + high * (1 / 2 + v)^2) + 2 * p * (low * (1 - u) + high * (1 / 2 + v))
  }
  within <- function(x) pmin(pmax(x, 0), 1 / 2)
  # the slopes in u and v are 0 there, with the other given
  best_u <- function(v, high) within((m + 1 - 2 * high * (1 / 2 + v) - p) / (2 * (m - high) + 2))
  best_v <- function(u, high) within((m + 1 - 2 * (m - high) * u + p) / (2 * high + 2) - 1 / 2)
  max(vapply(0:m, function(high) {
    # where no end binds, slopes of both are 0: t = (m + 1) / 2 - p / 2 - u and + p / 2 - (1 / 2 + v)
    total <- (m * (m + 1) + p * (2 * high - m)) / (2 * (m + 1))
    u <- within((m + 1 - p) / 2 - total)
    v <- within((m + 1 + p) / 2 - total - 1 / 2)
    ends <- c(0, 1 / 2)
    max(value(u, v, high), value(ends, best_v(ends, high), high), value(best_u(ends, high), ends, high))
  }, 0))
}

#' @export
integer_valued.stat_smooth <- function(statistic) FALSE

#' @export
component_limits.stat_smooth <- function(statistic) {
  k <- statistic$splines
  numbers <- sum(is.na(statistic$columns$level)) - 1L - length(k)
  levels <- lengths(statistic$levels)
  single <- vapply(seq_len(4L), function(i) max(cubic_splines(c(0, 1))[, i]), 0)
  # which of the four of an interval a spline can be
  at <- function(j, k) intersect(seq_len(4L), j - seq(0, k - 4))
  largest <- lapply(k, function(k) vapply(seq_len(k), function(j) max(single[at(j, k)]), 0))
  products <- outer(seq_len(4L), seq_len(4L), Vectorize(function(i, j) if (j < i) 0 else spline_product_limit(i, j)))
  own <- unlist(lapply(k, function(k) {
    pairs <- spline_pairs(k)
    mapply(function(j, l) max(vapply(at(j, k), function(i) if (i + l - j <= 4) products[i, i + l - j] else 0, 0)), pairs$first, pairs$second)
  }))
  both <- smooth_pairs(length(k))
  own <- c(own, unlist(Map(function(i, j) outer(largest[[j]], largest[[i]]), both$first, both$second)))
  with_numbers <- rep(unlist(largest), numbers)
  squares <- with(spline_pairs(numbers, numbers), first == second)
  with_response <- c(unlist(largest), rep(1, numbers))
  # of each level: with splines, numbers, levels of earlier factors, the response
  of_levels <- function(splines, number, level) {
    unlist(lapply(seq_along(levels), function(f) rep(c(splines, rep(number, numbers), rep(level, sum(levels[seq_len(f - 1L)])), number), levels[f])))
  }
  cbind(c(numeric(length(own)), -with_numbers, ifelse(squares, 0, -1), -with_response, 0, of_levels(0 * unlist(largest), -1, 0)),
        c(own, with_numbers, rep(1, length(squares)), with_response, 1, of_levels(unlist(largest), 1, 1)))
}

# Polynomials of few operations, of numbers of at most 1.
#' @export
product_error.stat_smooth <- function(statistic) rep(64 * 2^-53, length(statistic$components))

#' @export
describe_statistic.stat_smooth <- function(statistic) paste0("splines of ", called_formula(statistic$formula), ", rescaled to [-1, 1]", outside_words(statistic))

# ---- JSON ------------------------------------------------------------------------------

#' @export
statistic_json.stat_smooth <- function(statistic) {
  c(list(name = "smooth", formula = statistic$formula, bounds = exact_bounds(statistic$columns, statistic$levels)), outside_json(statistic))
}

stat_smooth_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", intersect("outside", names(x))), "statistic", refuse)
  smooth <- read_smooth(json_formula(x$formula, refuse, smooth = TRUE))
  bounds <- json_bounds(x$bounds, refuse)
  factors <- names(bounds)[vapply(bounds, is.character, TRUE)]
  claim(smooth_totals(smooth$k, length(setdiff(smooth$numbers, factors)), lengths(bounds[factors])))
  new_smooth_statistic(smooth, bounds, outside_from_json(x), caller_env())
}
