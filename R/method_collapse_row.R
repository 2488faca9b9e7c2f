# Method "collapse", counts of one table where every released number is one cell's, or n: see src/method_collapse_row.c.

# Beyond so many products (about a tenth of a second) or numbers to keep, moves are made instead of independent draws.
most_row <- list(work = 3e8, size = 1e6, n = 1e9)

# Probabilities below this share of the greatest are left out (in C too), and a range of counts must reach so far.
least_kept <- 1e-30

# `entries`: the component, target and coefficient of what is released, cells from 0 and n after them.
row_distribution <- function(bound, parts, entries, n, tracked = 0, call = caller_env()) {
  cells <- lapply(seq_along(bound$spec$fields$alpha) - 1, function(node) entries[entries$target == node, ])
  row <- row_counts(bound, parts, cells, n, call)
  order <- order(lengths(row$probability), row$variance)
  by_width <- lapply(row, `[`, order)
  entries <- entries[order(entries$component), ]
  fields <- list(cell = order - 1, first = by_width$first, width = as.double(lengths(by_width$probability)), mean = by_width$mean,
                 variance = by_width$variance, probability = unlist(by_width$probability), tracked = as.double(tracked > 0))
  list(family = "row", fields = fields, component = list(place = entries$target, multiple = entries$coefficient), tracked = tracked)
}

# Can all counts be drawn at once? Judged by the scales of the noise alone.
row_serves <- function(bound, parts, entries, n) {
  fields <- bound$spec$fields
  cells <- length(fields$alpha)
  if (length(fields$levels) != 1L && !inherits(bound, "bound_table")) return(FALSE)
  if (inherits(bound, "bound_loglinear") || length(bound$parts) > 1L || is.null(n) || n > most_row$n || cells < 2L) return(FALSE)
  numbers <- unlist(lapply(parts, `[[`, "index"))
  if (anyDuplicated(entries$component) || !setequal(entries$component, numbers) || any(entries$coefficient == 0)) return(FALSE)
  reach <- unlist(lapply(parts, component_reach))[match(entries$component, numbers)] / abs(entries$coefficient)
  width <- rep(n + 1, cells)
  inside <- entries$target < cells
  least <- tapply(reach[inside], entries$target[inside], min)
  at <- as.integer(names(least)) + 1L
  width[at] <- pmin(width[at], 2 * least + 1)
  width <- sort(width)
  sums <- pmin(sqrt(cumsum(width^2)), n + 1)[-cells] # lengths of F
  sum(width[-c(1L, cells)] * sums[-length(sums)]) <= most_row$work && sum(sums) + sum(width) <= most_row$size
}

# how far from a number its total may well be, where the noise falls off to `least_kept`
component_reach <- function(part) {
  kernel <- part$mechanism$kernel
  times <- if (kernel == "exact") 0 else if (kernel == "squared") sqrt(-2 * log(least_kept)) else -log(least_kept)
  width <- if (kernel == "published") part$interval$upper - part$interval$lower else 0
  times * rep_len(part$scale, length(part$value)) + width
}

# Of each cell: its least count `first`, the `probability` of each from there on if counts were independent and made up n on average,
# their `mean` and `variance`. Ranges of counts are doubled until what they leave out does not matter.
row_counts <- function(bound, parts, cells, n, call) {
  numbers <- lapply(cells, cell_numbers, parts)
  exact <- vapply(numbers, function(of) any(of$exact), TRUE)
  times <- 1
  repeat {
    ranges <- vapply(numbers, cell_range, c(0, 0), n, times)
    low <- pmax(ranges[1L, ], n - (sum(ranges[2L, ]) - ranges[2L, ]))
    high <- pmin(ranges[2L, ], n - (sum(ranges[1L, ]) - ranges[1L, ]))
    soft <- cbind(ranges[1L, ] > 0 & low == ranges[1L, ], ranges[2L, ] < n & high == ranges[2L, ]) & !exact
    if (all(low <= high)) {
      row <- tilted_counts(Map(function(k, from, to) cell_weights(bound, k, numbers[[k]], seq(from, to)), seq_along(cells), low, high), low, n)
      if (is.null(row) || !any(row$kept[soft])) break
    } else {
      row <- NULL
      if (!any(soft)) break
    }
    times <- 2 * times
  }
  if (is.null(row)) stop_classed("value", "No table of counts has all of the exact numbers.", call = call)
  row[c("first", "probability", "mean", "variance")]
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

# The counts that its numbers leave likely, between 0 and n.
cell_range <- function(numbers, n, times) {
  if (length(numbers$each) == 0L) return(c(0, n))
  of <- numbers$each[if (any(numbers$exact)) numbers$exact else TRUE]
  inside <- function(x) pmin(pmax(x, 0), n)
  c(floor(inside(min(vapply(of, function(one) inside(one$value[1L]) - times * one$reach, 0)))),
    ceiling(inside(max(vapply(of, function(one) inside(one$value[2L]) + times * one$reach, 0)))))
}

# log of prior and noise together, of m records in a cell
cell_weights <- function(bound, cell, numbers, m) {
  alpha <- bound$spec$fields$alpha[cell]
  # lgamma(alpha + m) - lgamma(m + 1), which would lose its digits where there are many records
  log_prior <- lgamma(alpha) - ifelse(m == 0, 0, lbeta(pmax(m, 1), alpha) + log(pmax(m, 1)))
  Reduce(`+`, lapply(numbers$each, function(one) log_noise_of_totals(one$part, one$k, one$times * m)), log_prior)
}

# Counts with log weights `weights` from `low` on, each weight times exp(lambda m), lambda such that their means make up n. `kept`: is
# more than `least_kept` left at the first and the last count? NULL: no counts are possible, or none that make up n.
tilted_counts <- function(weights, low, n, most = 200L) {
  if (any(vapply(weights, function(w) all(w == -Inf), TRUE))) return(NULL)
  size <- lengths(weights)
  cell <- rep(seq_along(size), size)
  m <- unlist(Map(function(from, many) from + seq_len(many) - 1, low, size))
  weights <- unlist(weights)
  top <- function(x) tapply(x, cell, max)[cell]
  lambda <- 0
  bracket <- c(-Inf, Inf)
  for (step in seq_len(most)) {
    log_p <- weights + lambda * m
    p <- exp(log_p - top(log_p))
    each <- rowsum(cbind(p, p * m), cell)
    means <- each[, 2L] / each[, 1L]
    variance <- rowsum(p * (m - means[cell])^2, cell)[, 1L] / each[, 1L]
    off <- n - sum(means)
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
