# Method "collapse", tables with exact numbers: see src/table/exact_sums.c.

# Beyond so many groups that exact numbers leave open, no basis of the changes that keep them is found.
most_exact_groups <- 1500L

# Combinations of the variables of exact numbers, in groups that are in the same ones; NULL if there are none. `rows`: what each
# exact number, and n where it is known, is a sum of, by group.
table_exact_groups <- function(bound, parts, n, prior_n, call) {
  exact <- Filter(function(p) is_exact(p$mechanism) && !inherits(p$statistic, "stat_size"), parts)
  if (length(exact) == 0L) return(NULL)
  size <- lengths(bound$levels)
  margins <- lapply(exact, function(p) exact_margins(p))
  variables <- names(size)[names(size) %in% unlist(margins)]
  combinations <- prod(size[variables])
  if (combinations > most_exact_cells || combinations * sum(vapply(exact, function(p) length(p$value), 0)) > 2e7) {
    stop_classed("method", c("Method {.val collapse} needs exact numbers that involve fewer combinations of levels.",
                             x = "The exact numbers involve {.var {variables}}, with {format_size(combinations)} combinations."), call = call)
  }
  cells <- possible_members(bound, variables)
  rows <- do.call(rbind, lapply(exact, exact_rows, cells$combinations, size))
  if (any(rows != round(rows))) {
    stop_classed("method", "Method {.val collapse} needs exact numbers with integer weights.", call = call)
  }
  key <- do.call(paste, as.data.frame(t(rows)))
  group <- match(key, unique(key))
  each <- rows[, !duplicated(key), drop = FALSE]
  open <- if (!is.null(prior_n)) which(colSums(abs(each)) == 0) else integer()
  if (is.null(prior_n)) each <- rbind(each, 1)
  value <- c(unlist(lapply(exact, `[[`, "value")), if (is.null(prior_n)) n)
  list(variables = match(variables, names(size)), group = group, rows = each, value = value, open = open, members = cells$members, at = cells$at,
       combinations = combinations, vectors = exact_vectors(each, call))
}

# variables whose counts a part's numbers are sums of
exact_margins <- function(part) {
  statistic <- part$statistic
  linear <- inherits(statistic, "stat_linear")
  counted <- if (linear) statistic$statistic else statistic
  columns <- if (linear) statistic$queries$column else part$at
  counted$margins[unique(margin_of_components(counted)[columns])]
}

# the margin that each component of counts is in
margin_of_components <- function(statistic) {
  size <- lengths(statistic$levels)
  rep(seq_along(statistic$margins), vapply(statistic$margins, function(m) prod(size[m]), 0))
}

# exact numbers x combinations: the coefficients
exact_rows <- function(part, codes, size) {
  statistic <- part$statistic
  linear <- inherits(statistic, "stat_linear")
  counted <- if (linear) statistic$statistic else statistic
  uses <- if (linear) statistic$queries else list(column = part$at, weight = rep(1, length(part$at)))
  row <- if (linear) query_rows(statistic) else seq_along(part$at)
  margin <- margin_of_components(counted)
  within <- seq_along(margin) - match(margin, margin) # from 0
  out <- matrix(0, length(part$value), nrow(codes))
  for (m in unique(margin[uses$column])) {
    of <- counted$margins[[m]]
    at <- Reduce(function(at, v) at * size[[v]] + codes[, v], of, 0)
    for (k in which(margin[uses$column] == m)) {
      cells <- at == within[uses$column[k]]
      out[row[k], cells] <- out[row[k], cells] + uses$weight[k]
    }
  }
  out
}

# Combinations of some variables' codes that are possible, a cell of the table for each, and their places among all.
possible_members <- function(bound, variables) {
  size <- lengths(bound$levels)
  if (length(bound$parts) == 1L) {
    cells <- part_codes(bound$parts[[1L]], size)[, names(size), drop = FALSE]
  } else {
    codes <- all_codes(size[variables])
    cells <- matrix(0, nrow(codes), length(size), dimnames = list(NULL, names(size)))
    cells[, variables] <- codes
  }
  at <- Reduce(function(at, v) at * size[[v]] + cells[, v], variables, 0)
  members <- cells[!duplicated(at), , drop = FALSE]
  list(members = members, combinations = members[, variables, drop = FALSE], at = unique(at))
}

# A basis of the lattice of changes of the groups' counts that leave the exact numbers as they are: a column each.
exact_vectors <- function(rows, call) {
  groups <- ncol(rows)
  if (nrow(rows) >= groups && qr(rows)$rank == groups) return(matrix(0, groups, 0L))
  if (groups > most_exact_groups) {
    stop_classed("method", c("Method {.val collapse} needs exact numbers that determine the count of each group of combinations with the same ones, or few such groups.",
                             x = "There are {format_size(groups)} such groups, not all determined; the limit is {format_size(most_exact_groups)}."), call = call)
  }
  vectors <- integer_kernel(rows)
  if (any(abs(vectors) > 1e9)) stop_classed("method", "Method {.val collapse} found no small changes of a table that leave these exact numbers unchanged.", call = call)
  vectors
}

# Whole-number solutions of a x = 0, a basis of their lattice: columns of a unimodular matrix that brings `a` to echelon form (Euclid's
# algorithm on columns; Cohen 1993, section 2.4).
integer_kernel <- function(a) {
  u <- diag(ncol(a))
  done <- 0L
  for (i in seq_len(nrow(a))) {
    repeat {
      left <- which(a[i, ] != 0)
      left <- left[left > done]
      if (length(left) < 2L) break
      least <- left[which.min(abs(a[i, left]))]
      others <- setdiff(left, least)
      times <- round(a[i, others] / a[i, least])
      a[, others] <- a[, others] - outer(a[, least], times)
      u[, others] <- u[, others] - outer(u[, least], times)
    }
    if (length(left) == 0L) next
    done <- done + 1L
    swap <- c(left, done)
    a[, swap] <- a[, rev(swap)]
    u[, swap] <- u[, rev(swap)]
  }
  u[, seq_len(ncol(u)) > done, drop = FALSE]
}

# The groups' counts in some table that has the exact numbers: a vertex of what is possible, which is mostly one of whole
# numbers; else another one is tried.
exact_start <- function(exact, call) {
  rows <- exact$rows
  rows[, exact$open] <- 0
  groups <- ncol(rows)
  settled <- setdiff(seq_len(groups), exact$open)
  scale <- rep(1, groups)
  for (try in 1:50) {
    found <- if (ncol(exact$vectors) <= length(exact$open)) qr.coef(qr(rows[, settled, drop = FALSE]), exact$value) else
      nonnegative_solution(sweep(rows[, settled, drop = FALSE], 2L, scale[settled], `*`), exact$value) * scale[settled]
    off <- if (anyNA(found)) Inf else max(abs(rows[, settled, drop = FALSE] %*% round(found) - exact$value))
    whole <- off < 0.5 && all(round(found) >= 0)
    if (whole || ncol(exact$vectors) <= length(exact$open) || length(found) == 0L) break
    scale <- 0.2 + ((seq_len(groups) * try * 0.6180339887) %% 1)
  }
  if (!whole) {
    stop_classed("value", c("No table of counts was found that has all of the exact numbers.", i = "Impossible cells ({.arg zeros}) count as 0."), call = call)
  }
  replace(numeric(groups), settled, round(found))
}

# for C: see table_exact_read()
table_exact_fields <- function(bound, parts, n, prior_n, call) {
  exact <- table_exact_groups(bound, parts, n, prior_n, call)
  if (is.null(exact)) return(NULL)
  group_of <- replace(rep(-1, exact$combinations), exact$at + 1, exact$group - 1)
  entries <- which(exact$vectors != 0, arr.ind = TRUE)
  by_group <- order(exact$group)
  list(exact_column = as.double(exact$variables - 1), exact_group = group_of, exact_start = exact_start(exact, call),
       exact_open = if (length(exact$open)) exact$open - 1 else -1, member_first = c(0, cumsum(as.double(tabulate(exact$group)))),
       member = as.double(t(exact$members[by_group, , drop = FALSE])),
       vector_first = c(0, cumsum(as.double(colSums(exact$vectors != 0)))), vector_group = as.double(entries[, 1L] - 1), vector_by = exact$vectors[entries])
}
