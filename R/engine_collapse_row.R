# Method "collapse", counts of one table if every released number is the count of one cell, or n: see src/table/single_table_convolution.c.

# Beyond so many products (about a second) or numbers to keep, moves are made instead of independent draws.
most_row <- list(work = 3e9, size = 2e7, n = 1e9)

# Probabilities below this share of the greatest are left out (also in C), and a range of counts must reach so far.
least_kept <- 1e-30

# `entries`: the component, target and coefficient of what is released, cells from 0 and n after them. `prior_n`: the prior of n where
# it is unknown.
row_distribution <- function(bound, parts, entries, n, prior_n, tracked = 0, call = caller_env()) {
  cells <- length(bound$spec$fields$alpha)
  numbers <- lapply(0:cells, function(node) cell_numbers(entries[entries$target == node, ], parts))
  limits <- if (is.null(prior_n)) c(n, n) else size_range(prior_n)
  lowest <- c(numeric(cells), limits[1L])
  row <- row_counts(range = function(times) mapply(cell_range, numbers, lowest, MoreArgs = list(highest = limits[2L], times = times)),
                    weight = function(k, m) cell_weights(bound, k, numbers[[k]], m, prior_n), lowest, rep(limits[2L], cells + 1L),
                    fixed = vapply(numbers, function(of) any(of$exact), TRUE))
  if (is.null(row) && !any(vapply(parts, function(p) is_exact(p$mechanism), TRUE))) stop_impossible(call)
  if (is.null(row)) stop_classed("value", "No table of counts has all of the exact numbers.", call = call)
  entries <- entries[order(entries$component), ]
  list(family = "row", independent = TRUE, fields = row_fields(row, tracked), tracked = tracked,
       component = list(place = entries$target, multiple = entries$coefficient))
}

# of row_counts(), for src/table/single_table_convolution.c
row_fields <- function(row, tracked) {
  cells <- length(row$first) - 1L
  size <- lapply(row, `[[`, cells + 1L)
  order <- order(lengths(row$probability)[-(cells + 1L)], row$variance[-(cells + 1L)])
  by_width <- lapply(row[c("first", "mean", "variance", "probability")], `[`, order)
  list(cell = order - 1, first = by_width$first, width = as.double(lengths(by_width$probability)), mean = by_width$mean,
       variance = by_width$variance, probability = unlist(by_width$probability), size_first = size$first,
       size_mean = size$mean, size_probability = size$probability, tracked = as.double(tracked > 0))
}

# Can all counts be drawn at once? Judged by the scales of the noise alone.
row_serves <- function(bound, parts, entries, n, prior_n) {
  one_table <- if (inherits(bound, "bound_table")) !moves_theta(bound) && length(bound$parts) == 1L else length(bound$levels) == 1L
  if (!one_table || length(bound$spec$fields$alpha) < 2L) return(FALSE)
  if (!is.null(prior_n) && any(vapply(parts, function(p) is_exact(p$mechanism), TRUE))) return(FALSE)
  numbers <- unlist(lapply(parts, `[[`, "index"))
  single <- !anyDuplicated(entries$component) && setequal(entries$component, numbers) && all(entries$coefficient != 0)
  single && row_is_small(row_widths(parts, entries, length(bound$spec$fields$alpha), n, prior_n))
}

# About how many values each count has that matter, n last, and the greatest possible n
row_widths <- function(parts, entries, cells, n, prior_n) {
  at <- match(entries$component, unlist(lapply(parts, `[[`, "index")))
  reach <- unlist(lapply(parts, component_reach))[at] / abs(entries$coefficient)
  upper <- unlist(lapply(parts, function(p) if (p$mechanism$kernel == "published") p$interval$upper else p$value))[at] / entries$coefficient
  least <- function(x) vapply(split(x, factor(entries$target, 0:cells)), function(of) if (length(of)) min(of) else Inf, 0, USE.NAMES = FALSE)
  top <- least(pmax(upper, 0) + reach)
  most <- if (is.null(prior_n)) n else min(size_range(prior_n)[2L], top[cells + 1L], sum(top[-(cells + 1L)]))
  width <- pmin(2 * least(reach) + 1, most + 1)
  list(width = if (is.null(prior_n)) replace(width, cells + 1L, 1) else width, most = most)
}

row_is_small <- function(of, limits = most_row) {
  if (of$most > limits$n) return(FALSE)
  cells <- length(of$width) - 1L
  size <- of$width[cells + 1L]
  width <- sort(of$width[-(cells + 1L)])
  sums <- pmin(sqrt(cumsum(width^2)), of$most + 1)[-cells] # lengths of F
  work <- sum(width[-c(1L, cells)] * sums[-(cells - 1L)]) + width[cells] * min(sums[cells - 1L], size)
  work <= limits$work && sum(sums) + sum(width) + size <= limits$size
}

# how far from a number its total may well be, where the noise falls off to `least_kept`
component_reach <- function(part) {
  kernel <- part$mechanism$kernel
  times <- if (kernel == "exact") 0 else if (kernel == "squared" || is_unary(part$mechanism)) sqrt(-2 * log(least_kept)) else
    noise_reach(part$mechanism, -log(least_kept))
  width <- if (kernel == "published") part$interval$upper - part$interval$lower else 0
  times * rep_len(part$scale, length(part$value)) + width
}

# Of each cell, and of n last: its least count `first`, the `probability` of each from there on if counts and n were independent, with the
# same mean of n and of the counts' sum, their `mean` and `variance`. Ranges of counts are doubled until what they leave out does
# not matter. NULL: there are no such counts. `range`: first and last of each, two rows, widened so many times; `weight`: log of prior and
# noise of the k-th with counts m; `lowest` and `highest`: what there can be; `fixed`: not to be widened.
row_counts <- function(range, weight, lowest, highest, fixed) {
  is_size <- seq_along(lowest) == length(lowest)
  times <- 1
  repeat {
    ranges <- range(times)
    ends <- cut_ranges(ranges, is_size)
    soft <- cbind(ranges[1L, ] > lowest & ends$low == ranges[1L, ], ranges[2L, ] < highest & ends$high == ranges[2L, ]) & !fixed
    row <- NULL
    if (all(ends$low <= ends$high)) {
      weights <- Map(function(k, from, to) weight(k, seq(from, to)), seq_along(lowest), ends$low, ends$high)
      row <- tilted_counts(weights, ends$low, ifelse(is_size, -1, 1))
      if (is.null(row) || !any(row$kept[soft])) return(row)
    } else if (!any(soft)) {
      return(NULL)
    }
    times <- 2 * times
  }
}

# What ranges of the counts and of n leave of one another. A range may be without end.
cut_ranges <- function(ranges, is_size) {
  low <- ranges[1L, ]
  high <- ranges[2L, ]
  low[is_size] <- max(low[is_size], sum(low[!is_size]))
  high[is_size] <- min(high[is_size], sum(high[!is_size]))
  open <- is.infinite(high) & !is_size
  others_high <- ifelse(sum(open) - open > 0, Inf, sum(high[!open & !is_size]) - ifelse(open, 0, high))
  others_low <- sum(low[!is_size]) - low
  list(low = ifelse(is_size, low, pmax(low, low[is_size] - others_high)), high = ifelse(is_size, high, pmin(high, high[is_size] - others_low)))
}

# What is released of a cell: the part and the place in it of each number, in units of the count.
cell_numbers <- function(entries, parts) {
  part <- vapply(entries$component, function(i) which(vapply(parts, function(p) i %in% p$index, TRUE)), 0L)
  k <- mapply(function(p, i) match(i, parts[[p]]$index), part, entries$component)
  each <- Map(function(p, k, times) {
    value <- if (parts[[p]]$mechanism$kernel == "published") unlist(parts[[p]]$interval[k, c("lower", "upper")]) else parts[[p]]$value[k]
    list(part = parts[[p]], k = k, times = times, value = range(value / times), reach = component_reach(parts[[p]])[k] / abs(times))
  }, part, k, entries$coefficient)
  list(each = each, exact = vapply(each, function(one) is_exact(one$part$mechanism), TRUE))
}

# The counts that its numbers leave likely, from `lowest` to `highest`.
cell_range <- function(numbers, lowest, highest, times) {
  if (length(numbers$each) == 0L) return(c(lowest, highest))
  of <- numbers$each[if (any(numbers$exact)) numbers$exact else TRUE]
  inside <- function(x) pmin(pmax(x, lowest), highest)
  c(floor(inside(min(vapply(of, function(one) inside(one$value[1L]) - times * one$reach, 0)))),
    ceiling(inside(max(vapply(of, function(one) inside(one$value[2L]) + times * one$reach, 0)))))
}

# log of prior and noise together, of m records in a cell; of n where it comes after the cells
cell_weights <- function(bound, cell, numbers, m, prior_n) {
  alpha <- bound$spec$fields$alpha
  is_size <- cell > length(alpha)
  log_prior <- if (!is_size) log_rising(m, alpha[cell]) else if (is.null(prior_n)) 0 * m else log_size_mass(prior_n, m) - log_rising(m, sum(alpha))
  Reduce(`+`, lapply(numbers$each, function(one) log_noise_of_totals(one$part, one$k, one$times * m)), log_prior)
}

# log of gamma(a + m) / m!, which lgamma() of large m would rob of its digits
log_rising <- function(m, a) lgamma(a) - ifelse(m == 0, 0, lbeta(pmax(m, 1), a) + log(pmax(m, 1)))

# Whole numbers with log weights `weights` from `low` on, each weight times exp(lambda sign m), lambda such that the means times their
# signs sum to 0. `kept`: is more than `least_kept` left at the first and the last one? NULL: none are possible, or none that make 0.
tilted_counts <- function(weights, low, sign, most = 200L) {
  if (any(vapply(weights, function(w) all(w == -Inf), TRUE))) return(NULL)
  size <- lengths(weights)
  cell <- rep(seq_along(size), size)
  m <- unlist(Map(function(from, many) from + seq_len(many) - 1, low, size))
  signed <- m * sign[cell]
  weights <- unlist(weights)
  lambda <- 0
  bracket <- c(-Inf, Inf)
  for (step in seq_len(most)) {
    log_p <- weights + lambda * signed
    p <- exp(log_p - vapply(split(log_p, cell), max, 0, USE.NAMES = FALSE)[cell])
    each <- rowsum(cbind(p, p * m), cell)
    means <- each[, 2L] / each[, 1L]
    variance <- rowsum(p * (m - means[cell])^2, cell)[, 1L] / each[, 1L]
    off <- -sum(means * sign)
    if (abs(off) <= 0.01 * sqrt(sum(variance)) + 1e-6) break
    bracket[if (off > 0) 1L else 2L] <- lambda
    jump <- max(1, 2 * abs(lambda))
    lambda <- lambda + max(-jump, min(jump, off / sum(variance)))
    if (lambda <= bracket[1L] || lambda >= bracket[2L]) lambda <- mean(bracket)
  }
  if (step == most) return(NULL)
  p <- split(p, cell)
  at <- lapply(p, function(one) range(which(one > least_kept)))
  list(first = low + vapply(at, `[`, 0L, 1L) - 1, mean = unname(means), variance = unname(variance),
       kept = cbind(vapply(at, `[`, 0L, 1L) == 1L, vapply(at, `[`, 0L, 2L) == size),
       probability = unname(Map(function(one, at) one[seq(at[1L], at[2L])] / sum(one), p, at)))
}

# ---- what the fit has to report ----------------------------------------------------------

independent_row <- function(fit, told) {
  mean <- share_of(told$accepted, told$made)
  if (is.null(fit$problem$prior_n)) data.frame(mean) else data.frame(mean, records = mean)
}

independent_words <- "counts   independent draws, all counts at once"

#' @export
engine_diagnostics.engine_collapse_row <- function(engine, fit, told) independent_row(fit, told)

#' @export
engine_moves.engine_collapse_row <- function(engine, fit, rows) independent_words
