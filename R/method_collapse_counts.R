# Method "collapse", counts: see src/method_collapse_counts.c and src/method_collapse_recursion.c.

#' @export
collapse_family.bound_categorical <- function(bound, call = caller_env()) "counts"

counts_components <- function(bound, parts, n, unknown, call) {
  if (any(vapply(parts, function(p) inherits(p$statistic, "stat_linear"), TRUE))) return(counts_queries(bound, parts, call))
  unlist(lapply(parts, counts_targets, levels = bound$levels, call = call))
}

# Of a variable without features, components are sums over cells: entries, each with its `component`, `target` and `coefficient`.
counts_queries <- function(bound, parts, call) {
  do.call(rbind, lapply(parts, function(part) {
    statistic <- part$statistic
    linear <- inherits(statistic, "stat_linear")
    if (linear && length(bound$levels) > 1L) stop_collapse_part(part, "single counts, as it has features", call)
    if (!linear) return(data.frame(component = part$index, target = counts_targets(part, bound$levels, call), coefficient = 1))
    part$statistic <- statistic$statistic
    part$at <- seq_along(part$statistic$components)
    targets <- counts_targets(part, bound$levels, call)
    data.frame(component = part$index[query_rows(statistic)], target = targets[statistic$queries$column], coefficient = statistic$queries$weight)
  }))
}

counts_distribution <- function(bound, parts, n, unknown, call) {
  fields <- bound$spec$fields
  target <- counts_components(bound, parts, n, unknown, call)
  probability <- ifelse(is.na(bound$probability), 0, bound$probability)
  table <- list(levels = fields$levels, known = fields$known, alpha = fields$alpha, probability = probability)
  if (is.data.frame(target)) return(list(family = "counts", fields = table, entries = target))
  if (counts_at_once(bound, target, if (!unknown) n)) {
    return(list(family = "recursion", fields = recursion_fields(table, target, parts, n), component = list(target = target)))
  }
  list(family = "counts", fields = table, component = list(target = target))
}

# Are all counts drawn at once?
counts_at_once <- function(bound, target, n) {
  fields <- bound$spec$fields
  !is.data.frame(target) && !is.null(n) && all(target < length(fields$alpha)) && recursion_work(fields$levels, n) <= most_recursion_work
}

# Beyond it (about a tenth of a second) moves are made instead of independent draws.
most_recursion_work <- 1e7

# terms of the convolutions
recursion_work <- function(levels, n) ((levels[1L] - 1) + levels[1L] * sum(levels[-1L] - 1)) * (n + 1)^2 / 2

# weights of 0..n records: n + 1 of each cell, noise and all, and of each row
recursion_fields <- function(table, target, parts, n) {
  m <- 0:n
  levels <- table$levels
  rows <- c(levels[1L], rep(levels[-1L], each = levels[1L])) # levels of each row
  known <- rep(c(table$known[1L], rep(table$known[-1L], each = levels[1L])), rows) > 0
  log_weight <- vapply(seq_along(known), function(cell) {
    if (!known[cell]) return(lgamma(table$alpha[cell] + m) - lgamma(m + 1))
    ifelse(m == 0, 0, m * log(table$probability[cell])) - lgamma(m + 1)
  }, numeric(n + 1))
  for (p in parts) {
    for (k in seq_along(p$index)) {
      cell <- target[p$index[k]] + 1
      log_weight[, cell] <- log_weight[, cell] + log_noise_of_totals(p, k, m)
    }
  }
  row_of <- rep(seq_along(rows), rows)
  sums <- rowsum(table$alpha, row_of)[-1L]
  row_known <- known[match(seq_along(rows), row_of)][-1L]
  log_psi <- vapply(seq_along(sums), function(row) {
    lgamma(m + 1) - if (row_known[row]) 0 else lgamma(sums[row] + m)
  }, numeric(n + 1))
  list(levels = levels, log_weight = as.double(log_weight), log_psi = as.double(log_psi))
}

# log density of published number k of a part, up to a constant, for exact totals
log_noise_of_totals <- function(part, k, total) {
  if (part$mechanism$kernel == "published") return(published_density(part$interval[k, ], matrix(total)))
  r <- (part$value[k] - total) / part$scale[k]
  if (part$mechanism$kernel == "absolute") -abs(r) else -r^2 / 2
}

# Where each component stands, from 0: among the cells, which are the classes and
# then the levels by class of one feature after the other; or after all cells, a
# level of a feature without regard to the class; or after these, the number of records.
counts_targets <- function(part, levels, call) {
  statistic <- part$statistic
  size <- lengths(levels)
  if (inherits(statistic, "stat_size")) return(size[[1L]] * (1 + sum(size[-1L])) + sum(size[-1L]))
  needs <- "counts of its variables, of the class crossed with at most one feature"
  if (!inherits(statistic, "stat_counts")) stop_collapse_part(part, needs, call)
  classes <- size[[1L]]
  first_cell <- c(0, classes + c(0, cumsum(classes * size[-1L])))
  first_level <- c(NA, sum(classes, classes * size[-1L]) + c(0, cumsum(size[-1L])))
  targets <- unlist(lapply(statistic$margins, function(margin) {
    v <- match(margin, names(levels))
    if (length(v) == 1L) return((if (v == 1L) 0 else first_level[v]) + seq_len(size[v]) - 1)
    if (length(v) > 2L || !1L %in% v) stop_collapse_part(part, needs, call)
    feature <- setdiff(v, 1L)
    cells <- matrix(first_cell[feature] + seq_len(classes * size[feature]) - 1, classes, byrow = TRUE) # class x level
    as.vector(if (v[1L] == 1L) t(cells) else cells) # the margin's last variable is the fastest
  }))
  targets[part$at]
}

#' @export
collapse_statistics.model_categorical <- function(model) "stat_counts"

#' @export
collapse_statistics.model_naive_bayes <- collapse_statistics.model_categorical

#' @export
collapse_statistics.model_bernoulli <- function(model) c("stat_counts", "stat_sums", "stat_crossprod", "stat_moments4", "stat_custom")

#' @export
collapse_is_exact.bound_categorical <- function(bound) TRUE
