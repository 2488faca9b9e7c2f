# Totals for smooth curves that add up, and for numbers beside them, made by stat_crossprod(y ~ s(x, k = 10) + z): products of cubic B-splines with equal
# knots, of numbers and of y. See src/stat/smooth.c and utils_smooths.R.

most_smooth_totals <- 10000

new_smooth_statistic <- function(smooth, bounds, outside, call) {
  variables <- c(smooth$response, smooth$variable, smooth$numbers)
  bounds <- check_bounds(bounds, variables, call)
  factors <- variables[vapply(bounds[variables], is.character, TRUE)]
  if (length(factors)) stop_classed("bounds", "A smooth needs two numbers as {.arg bounds} of each variable, but {.var {factors}} {?has/have} levels.", call = call)
  outside <- check_outside(outside, variables, call = call)
  columns <- expand_columns(variables, bounds)
  size <- smooth_totals(smooth$k, length(smooth$numbers))
  if (size > most_smooth_totals) {
    stop_classed("formula", c("A statistic with smooths must have at most {format_number(most_smooth_totals)} totals, but would have {format_number(size, 8L)}.",
                              i = "Choose smaller {.arg k}, or fewer terms."), call = call)
  }
  statistic <- new_statistic("smooth", "totals", columns = columns, levels = list(), components = smooth_components(smooth), formula = smooth$formula,
                             outside = outside, splines = smooth$k, class = "stat_smooth")
  if (!all(is.finite(unlist(statistic_fields(statistic))))) {
    stop_classed("bounds", c("{.arg bounds} must be small enough to be rescaled, but the results overflow.", i = "Change the units of the data."), call = call)
  }
  with_functions(statistic, attr(bounds, "functions"))
}

# how many there are: `k` of the smooths, so many numbers
smooth_totals <- function(k, numbers) sum(3 * k - 3) + (sum(k)^2 - sum(k^2)) / 2 + numbers * sum(k) + numbers * (numbers + 1) / 2 + sum(k) + numbers + 1

# of two smooths
smooth_pairs <- function(p) {
  pairs <- spline_pairs(p, p)
  pairs[pairs$first < pairs$second, ]
}

# in the order of C
smooth_components <- function(smooth) {
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
  unlist(c(own, across, lapply(z, function(name) paste0(name, ":", unlist(splines))), product(z[squares$first], z[squares$second]),
           paste0(smooth$response, ":", c(unlist(splines), z)), paste0(smooth$response, "^2")), use.names = FALSE)
}

# Smooths in intervals between their knots, all else in [-1, 1]. Only bounds of the latter may be natural limits for C: x stays where the splines are.
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
  others <- length(lower) - length(intervals)
  list(scale = to, shift = shift, lower = rep(-1, others), upper = rep(1, others), intervals = as.double(intervals))
}

#' @export
variable_kinds.stat_smooth <- function(x) "number"

# Of p smooths and m numbers, the response among them; see ?stat_crossprod. At a knot the sum of the splines' squares and of their fourth powers is largest.
#' @export
sensitivity.stat_smooth <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  p <- length(statistic$splines)
  m <- nrow(statistic$columns) - p
  squares <- 1 / 2
  fourth <- (1 + 4^4 + 1) / 6^4
  pairs <- p * (p - 1) / 2
  if (norm == "L1") {
    products <- p * (1 + squares) / 2 + pairs
    return(if (replaces(neighbours)) 2 * products + farthest_numbers(p, m) else products + p * m + m * (m + 1) / 2)
  }
  products <- p * (squares^2 + fourth) / 2 + pairs * squares^2
  if (!replaces(neighbours)) return(sqrt(products + p * m * squares + m * (m + 1) / 2))
  # B: of how many numbers records differ in sign; Q: the common splines
  bend <- 1 + 1 / (4 * p)
  sign <- if (p > 1 || m == 1) 0:m else (4 * m + 1) / 8
  common <- pmin(p / 2, sign / bend)
  sqrt(2 * products + p * m + max(4 * sign * (m - sign) + 2 * common * sign - bend * common^2))
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
  numbers <- nrow(statistic$columns) - 1L - length(k)
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
  cbind(c(numeric(length(own)), -with_numbers, ifelse(squares, 0, -1), -with_response, 0),
        c(own, with_numbers, rep(1, length(squares)), with_response, 1))
}

# Polynomials of few operations, of numbers of at most 1.
#' @export
product_error.stat_smooth <- function(statistic) rep(64 * 2^-53, length(statistic$components))

#' @export
describe_statistic.stat_smooth <- function(statistic) paste0("splines of ", called_formula(statistic$formula), ", rescaled to [-1, 1]", outside_words(statistic))

# ---- JSON ------------------------------------------------------------------------------

#' @export
statistic_json.stat_smooth <- function(statistic) {
  c(list(name = "smooth", formula = statistic$formula, bounds = exact_bounds(statistic$columns)), outside_json(statistic))
}

stat_smooth_from_json <- function(x, refuse, claim) {
  require_fields(x, c("name", "formula", "bounds", intersect("outside", names(x))), "statistic", refuse)
  smooth <- read_smooth(json_formula(x$formula, refuse, smooth = TRUE))
  claim(smooth_totals(smooth$k, length(smooth$numbers)))
  new_smooth_statistic(smooth, json_bounds(x$bounds, refuse), outside_from_json(x), caller_env())
}
