# Method "collapse", counts: see src/table/naive_bayes_chain.c. Independent draws are in engine_collapse_row.R. The draws of a model
# with features are in src/table/naive_bayes_convolution.c.

#' @export
collapse_family.bound_categorical <- function(bound, call = caller_env()) "counts"

counts_components <- function(bound, parts, call) {
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

# TRUE where all counts are drawn at once
counts_served <- function(bound, parts, n, prior_n, call) {
  target <- counts_components(bound, parts, call)
  at_once <- row_serves(bound, parts, counts_entries(target), n, prior_n) || counts_at_once(bound, target, if (is.null(prior_n)) n)
  if (!at_once) exact_groups(bound, parts, target, n, prior_n, call)
  at_once
}

counts_entries <- function(target) {
  if (is.data.frame(target)) target else data.frame(component = seq_along(target), target = target, coefficient = 1)
}

counts_distribution <- function(bound, parts, n, prior_n, call) {
  fields <- bound$spec$fields
  target <- counts_components(bound, parts, call)
  entries <- counts_entries(target)
  if (row_serves(bound, parts, entries, n, prior_n)) return(row_distribution(bound, parts, entries, n, prior_n, call = call))
  probability <- ifelse(is.na(bound$probability), 0, bound$probability)
  table <- list(levels = fields$levels, known = fields$known, alpha = fields$alpha, probability = probability)
  if (counts_at_once(bound, target, if (is.null(prior_n)) n)) {
    return(list(family = "recursion", independent = TRUE, fields = recursion_fields(table, target, parts, n), component = list(target = target)))
  }
  table <- c(table, exact_groups(bound, parts, target, n, prior_n, call))
  if (is.data.frame(target)) {
    exact <- unlist(lapply(parts, function(p) if (is_exact(p$mechanism)) p$index))
    return(list(family = "counts", fields = table, entries = target[!target$component %in% exact, ]))
  }
  list(family = "counts", fields = table, component = list(target = target))
}

# Classes that are in the same exact numbers are a group, whose total these settle: that no transfer inside a group changes
# anything exact, and that such transfers reach every table, is what the moves need. Of each class its group, from 0, and of each
# group its total; -1 where n is not known for those that are in none. NULL: there are no exact numbers.
exact_groups <- function(bound, parts, target, n, prior_n, call) {
  exact <- Filter(function(p) is_exact(p$mechanism), parts)
  if (length(exact) == 0L) return(NULL)
  entries <- counts_entries(target)
  index <- unlist(lapply(exact, `[[`, "index"))
  entries <- entries[entries$component %in% index, ]
  size <- length(bound$spec$fields$alpha) + sum(lengths(bound$levels)[-1L])
  entries <- entries[entries$target != size, ] # n, which is known then
  classes <- length(bound$levels[[1L]])
  if (any(entries$target >= classes)) {
    of_features <- Filter(function(p) any(entries$target[entries$component %in% p$index] >= classes), exact)
    stop_collapse_part(of_features[[1L]], "exact numbers only of the class, unless there are few records", call)
  }
  rows <- matrix(0, length(index), classes)
  rows[cbind(match(entries$component, index), entries$target + 1)] <- entries$coefficient
  value <- unlist(lapply(exact, `[[`, "value"))
  rows <- rows[tabulate(match(entries$component, index), length(index)) > 0, , drop = FALSE]
  value <- value[tabulate(match(entries$component, index), length(index)) > 0]
  group <- match(apply(rows, 2L, paste, collapse = " "), unique(apply(rows, 2L, paste, collapse = " ")))
  each <- rows[, !duplicated(group), drop = FALSE]
  open <- !is.null(prior_n) & colSums(abs(each)) == 0
  if (is.null(prior_n)) {
    each <- rbind(each, 1)
    value <- c(value, n)
  }
  settled <- qr(each[, !open, drop = FALSE])
  if (settled$rank < sum(!open)) {
    stop_classed("method", c("Method {.val collapse} needs exact numbers that determine the number of records in each group of cells with the same exact numbers.",
                             x = "There are {sum(!open)} such groups, but {settled$rank} independent exact numbers."), call = call)
  }
  total <- rep(-1, length(open))
  total[!open] <- round(qr.coef(settled, value))
  if (any(total[!open] < 0) || max(abs(each[, !open, drop = FALSE] %*% total[!open] - value)) > 1e-6 * max(1, abs(value))) {
    stop_classed("value", "No table of counts has all of the exact numbers.", call = call)
  }
  list(group = group - 1, group_total = total)
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
moves_counts.bound_categorical <- function(bound) TRUE

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_diagnostics.engine_collapse_counts <- function(engine, fit, told) {
  accepted <- told$between_accepted + told$split_accepted
  made <- told$between_made + told$split_made
  with_records(data.frame(mean = (told$within_accepted + accepted) / (told$within_made + made), within = share_accepted(told, "within"),
                          between = accepted / made), fit, told)
}

#' @export
engine_moves.engine_collapse_counts <- function(engine, fit, rows) {
  paste0(sprintf("counts   moves within a class: %s; between classes: %s", share_words(rows$within), share_words(rows$between)), size_words(fit, rows))
}

#' @export
engine_diagnostics.engine_collapse_recursion <- function(engine, fit, told) independent_row(fit, told)

#' @export
engine_moves.engine_collapse_recursion <- function(engine, fit, rows) independent_words
