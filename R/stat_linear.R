#' Subsets and linear queries of a statistic's components
#'
#' Often only part of a statistic is published, or functions of it: one count, some cells of a table, totals of groups, cumulative counts, a difference, a mean.
#' `stat_subset()` keeps some components; `stat_linear()` makes new ones, each a weighted sum of components with public weights.
#'
#' @param statistic A statistic whose totals are published, such as [stat_counts()] or [stat_crossprod()];
#'   not [stat_records()] or [stat_objective()].
#' @param components Names of the published components.
#' @param queries A named list with an entry for each published number: the names of the components that it sums, as in
#'   `list(young = c("age=0-19", "age=20-39"))`, or a vector of weights named by components, as in `list(difference = c("x=a" = 1, "x=b" = -1))`. Or a matrix of
#'   weights, with a named row for each published number and a column for each component, named in any order or unnamed in the statistic's order.
#' @param n The public number of records. `NULL`: each mean was divided by a noisy number of records, which was also published.
#'
#' @details
#' `stat_cumulative()` is for cumulative counts of one variable with ordered levels, or of the bins of a [stat_histogram()]. These are the numbers of records
#' with the first level, with the first or the second, and so on. The last one, n itself, is public and is left out. `stat_means()` is for totals divided by the
#' public number of records.
#'
#' With `n = NULL`, `stat_means()` is for means that are ratios of a noisy total and a noisy number of records. It returns a list of two statistics, `size` and
#' `total`. Give [as_release()] the published number of records, called `n`, and the means. It multiplies them to recover the totals, to which the noise was
#' added. `release()` of this list publishes the number of records and the totals.
#'
#' [as_release()] accepts fewer numbers than the statistic has components if they are named. The missing ones were not published, and the statistic of the
#' release is then the `stat_subset()` of the others.
#'
#' **Sensitivity.** For counts: the largest distance between the contributions of two records (if one is replaced), or the largest contribution of one record
#' (if one is added or removed). It is exact for up to 2,000 combinations of levels. It is exact for any number of combinations if the published numbers are
#' cells of a single margin, or totals of disjoint groups of its cells. Otherwise it is a bound, the sum over the margins. For rescaled cross-products without
#' squares, it is exact for up to 12 variables. In all other cases it is the smaller of two bounds. One follows from the ranges of the components. The other is
#' the sensitivity of the whole statistic times the norm of the queries, which is 1 for a subset.
#'
#' **Methods.** `"augment"` and `"clt"` support subsets and queries of every statistic that they support. `"collapse"` supports subsets, queries of one
#' component each, such as means, and any queries of the counts of a single variable. `"naive"` needs all components that the model's update uses: those that
#' were not published must follow from the published ones and the number of records.
#'
#' @return A statistic: an object of class `stat_linear`.
#' @section Errors: `noiseaware_error_argument`.
#' @family statistics of numbers
#' @examples
#' ages <- stat_counts(~ age, levels = list(age = c("0-19", "20-39", "40-59", "60+")))
#' stat_subset(ages, "age=60+")
#' stat_linear(ages, list(young = c("age=0-19", "age=20-39"),
#'   gap = c("age=20-39" = 1, "age=40-59" = -1)))
#' stat_cumulative(ages)
#'
#' # one count is all that was published: of 500 records about 412 say yes
#' asked <- stat_counts(~ answer, levels = list(answer = c("no", "yes")))
#' rel <- as_release(c("answer=yes" = 412), asked, mech_laplace(epsilon = 1), n = 500)
#' rel
#' sample_posterior(rel, model_bernoulli(), chains = 1, iter = 500, seed = 1)
#'
#' # a mean
#' stat_means(stat_sums(~ income, bounds = list(income = c(0, 1e5))), n = 500)
#'
#' # about 85.4 people had 3.1 visits each: a noisy total, divided by a noisy number
#' as_release(c(n = 85.4, visits = 3.1), stat_means(stat_sums(~ visits, c(0, 20)), n = NULL),
#'   list(size = mech_laplace(epsilon = 0.5), total = mech_laplace(epsilon = 1)),
#'   n = NULL, neighbours = "add_remove")
#' @export
stat_linear <- function(statistic, queries) {
  check_given()
  check_queried(statistic)
  if (is.matrix(queries)) return(linear_of(statistic, matrix_queries(statistic, queries)))
  named <- is.list(queries) && !is.object(queries) && length(queries) > 0L && checkmate::test_names(names(queries), "unique")
  if (!named) {
    stop_argument("queries", "a named list with the components or weights of each query, or a matrix of weights", describe(queries))
  }
  entries <- lapply(names(queries), function(name) check_query(queries[[name]], name, statistic))
  linear_of(statistic, list(names = names(queries), length = lengths(entries), column = match(unlist(lapply(entries, names)), statistic$components),
                            weight = unlist(entries, use.names = FALSE)))
}

#' @rdname stat_linear
#' @export
stat_subset <- function(statistic, components) {
  check_given()
  check_queried(statistic)
  if (is.character(components)) components <- reorder_products(components, statistic$components)
  ok <- is.character(components) && length(components) > 0L && !anyDuplicated(components) && all(components %in% statistic$components)
  if (!ok) {
    was <- if (!is.character(components)) describe(components) else if (length(components) == 0L) "none" else
      shorten_list(encodeString(union(setdiff(components, statistic$components), components[duplicated(components)]), quote = "\""), 5L)
    stop_argument("components", "names of components of the statistic, each once", was)
  }
  subset_of(statistic, components)
}

#' @rdname stat_linear
#' @export
stat_cumulative <- function(statistic) {
  check_given()
  check_statistic(statistic)
  labels <- if (is_table(statistic)) cell_labels(statistic)
  if (length(labels) != 1L || length(statistic$components) != length(labels[[1L]])) {
    stop_argument("statistic", "counts of one variable, as from stat_counts(~ x)", describe_statistic(statistic))
  }
  parts <- seq_len(length(labels[[1L]]) - 1L)
  # a bin ends where the next begins
  ends <- if (length(statistic$bins)) paste0(if (statistic$right) "<=" else "<", level_text(inner_breaks(statistic$breaks[[1L]]))) else
    paste0("<=", labels[[1L]][parts])
  linear_of(statistic, list(names = paste0(names(labels), ends), length = parts, column = sequence(parts), weight = rep(1, sum(parts))))
}

#' @rdname stat_linear
#' @concept average
#' @concept published mean
#' @export
stat_means <- function(statistic, n) {
  example <- "Means are queries of sums: {.code stat_means(stat_sums(~ x, bounds = list(x = c(0, 10))), n = 50)}."
  check_given(hints = c(statistic = example, n = example))
  if (inherits(statistic, "formula")) stop_classed("argument", c("{.arg statistic} must be a statistic, but is a formula.", i = example))
  check_queried(statistic)
  if (length(n) > 1L) {
    stop_classed("argument", c("{.arg n} must be one number, but is {length(n)} numbers.",
                               i = "Means over different numbers of records are entered as totals: each mean times its number of records, and noise as well.",
                               i = "For a table of sites, give {.fn as_release} the sums, with {.code number = c(\"mean(x)\" = \"column\")} and {.code n = \"column\"}."))
  }
  if (is.null(n)) return(structure(list(size = stat_size(), total = statistic), means = TRUE))
  n <- check_count(n, "n")
  all <- seq_along(statistic$components)
  linear_of(statistic, list(names = paste0("mean(", statistic$components, ")"), length = rep(1L, length(all)), column = all, weight = rep(1 / n, length(all))))
}

# `queries`: names and lengths of the rows, and column and weight of their entries. Queries of queries
# are queries of what those are of.
linear_of <- function(statistic, queries) {
  if (inherits(statistic, "stat_linear")) {
    queries <- composed_queries(queries, statistic$queries)
    statistic <- statistic$statistic
  }
  first <- as.double(c(0, cumsum(queries$length)))
  column <- as.integer(queries$column)
  weight <- as.double(queries$weight)
  subset <- all(queries$length == 1L) && all(weight == 1) && !anyDuplicated(column)
  linear <- new_statistic("linear", "totals", columns = statistic$columns, levels = statistic$levels, components = queries$names,
                          formula = statistic$formula, outside = statistic$outside, statistic = statistic,
                          queries = list(first = first, column = column, weight = weight), subset = subset, class = "stat_linear")
  linear$weighted <- statistic$weighted
  with_functions(linear, statistic$functions)
}

# all of them in the statistic's order: the statistic itself
subset_of <- function(statistic, components) {
  column <- sort(match(components, statistic$components))
  if (length(column) == length(statistic$components)) return(statistic)
  linear_of(statistic, list(names = statistic$components[column], length = rep(1L, length(column)), column = column, weight = rep(1, length(column))))
}

composed_queries <- function(queries, inner) {
  row <- rep(seq_along(queries$length), queries$length)
  sizes <- diff(inner$first)[queries$column]
  at <- sequence(sizes, inner$first[queries$column] + 1)
  entries <- data.frame(row = rep(row, sizes), column = inner$column[at], weight = rep(queries$weight, sizes) * inner$weight[at])
  key <- paste(entries$row, entries$column)
  sums <- rowsum(entries$weight, factor(key, unique(key)))[, 1L]
  entries <- entries[!duplicated(key), ]
  list(names = queries$names, length = tabulate(entries$row, length(queries$length)), column = entries$column, weight = sums)
}

check_queried <- function(statistic, call = caller_env()) {
  check_statistic(statistic, call)
  if (statistic$kind %in% c("totals", "cells")) return(invisible())
  stop_argument("statistic", "one with published totals", describe_statistic(statistic), call = call)
}

# one query as weights named by components
check_query <- function(query, name, statistic, call = caller_env()) {
  where <- paste0("queries$", name)
  if (is.character(query)) query <- stats::setNames(rep(1, length(query)), query)
  if (!is.numeric(query) || is.object(query) || is.null(names(query)) || length(query) == 0L) {
    stop_argument(where, "names of components, or weights named by components", describe(query), call = call)
  }
  names <- reorder_products(names(query), statistic$components)
  if (anyDuplicated(names) || !all(names %in% statistic$components)) {
    strange <- shorten_texts(union(setdiff(names, statistic$components), names[duplicated(names)]))
    stop_classed("argument", c("{.arg {where}} must name components of the statistic, each once.", x = "Unknown or repeated: {.val {strange}}.",
                               i = "Components: {shorten_list(statistic$components)}."), call = call)
  }
  if (!all(is.finite(query)) || all(query == 0)) stop_argument(where, "finite weights that are not all 0", describe(unname(query)), call = call)
  stats::setNames(as.double(query), names)[query != 0]
}

matrix_queries <- function(statistic, queries, call = caller_env()) {
  components <- statistic$components
  ok <- is.numeric(queries) && ncol(queries) == length(components) && nrow(queries) > 0L && all(is.finite(queries)) &&
    checkmate::test_names(rownames(queries), "unique")
  if (!ok) {
    stop_argument("queries", paste("a matrix of finite weights with named rows and", length(components), "columns, one for each component"),
                  describe_shape(queries), call = call)
  }
  if (!is.null(colnames(queries))) {
    colnames(queries) <- reorder_products(colnames(queries), components)
    if (!setequal(colnames(queries), components)) {
      stop_classed("argument", c("{.arg queries} must have the components of the statistic as its column names, or no column names.",
                                 x = "Not a component: {.val {setdiff(colnames(queries), components)}}."), call = call)
    }
    queries <- queries[, components, drop = FALSE]
  }
  entries <- which(t(queries) != 0, arr.ind = TRUE)
  empty <- setdiff(seq_len(nrow(queries)), entries[, 2L])
  if (length(empty)) stop_argument("queries", "a matrix without rows of zeros", paste("a matrix with a zero row:", rownames(queries)[empty[1L]]), call = call)
  list(names = rownames(queries), length = tabulate(entries[, 2L], nrow(queries)), column = entries[, 1L], weight = t(queries)[entries])
}

# ---- what follows from the queries ---------------------------------------------------

# the row of each entry
query_rows <- function(statistic) rep(seq_along(statistic$components), diff(statistic$queries$first))

# Is each published number a multiple of a component, and of one of its own unless they may be `repeated`?
one_each <- function(statistic, repeated) {
  all(diff(statistic$queries$first) == 1 & statistic$queries$weight[statistic$queries$first[-1L]] != 0) &&
    (repeated || !anyDuplicated(statistic$queries$column))
}

# sums over the entries of each query
query_sums <- function(statistic, values) unname(rowsum(values, query_rows(statistic))[, 1L])

#' @export
statistic_fields.stat_linear <- function(statistic) {
  list(first = statistic$queries$first, column = statistic$queries$column - 1, weight = statistic$queries$weight)
}

# components x queries
query_matrix <- function(statistic) {
  weights <- matrix(0, length(statistic$statistic$components), length(statistic$components))
  weights[cbind(statistic$queries$column, query_rows(statistic))] <- statistic$queries$weight
  weights
}

#' @export
describe_statistic.stat_linear <- function(statistic) {
  inner <- describe_statistic(statistic$statistic)
  size <- length(statistic$components)
  whole <- length(statistic$statistic$components)
  if (statistic$subset) return(sprintf("%s components of: %s", if (size == whole) paste("all", size) else paste(size, "of the", whole), inner))
  paste0(size, if (size == 1L) " linear query of: " else " linear queries of: ", inner)
}

#' @export
format.stat_linear <- function(x, ...) statistic_lines(x, format(x$statistic)[2L])

#' @export
integer_valued.stat_linear <- function(statistic) {
  integer_valued(statistic$statistic) && all(statistic$queries$weight == round(statistic$queries$weight))
}

#' @export
component_degrees.stat_linear <- function(statistic) {
  if (statistic$subset) component_degrees(statistic$statistic)[statistic$queries$column]
}

#' @export
single_components.stat_linear <- function(statistic) {
  if (statistic$subset) which(statistic$queries$column %in% single_components(statistic$statistic)) else integer()
}

# A record is in one cell of each margin; else components vary independently of each other, at most.
#' @export
component_limits.stat_linear <- function(statistic) {
  limits <- component_limits(statistic$statistic)
  if (is.null(limits)) return(NULL)
  queries <- statistic$queries
  if (statistic$subset) return(limits[queries$column, , drop = FALSE])
  ends <- queries$weight * limits[queries$column, , drop = FALSE]
  low <- pmin(ends[, 1L], ends[, 2L])
  high <- pmax(ends[, 1L], ends[, 2L])
  if (!is_table(statistic$statistic)) return(cbind(query_sums(statistic, low), query_sums(statistic, high)))
  cell_margin <- cell_margins(statistic$statistic)
  cells <- tabulate(cell_margin)
  row <- query_rows(statistic)
  margin <- cell_margin[queries$column]
  each <- split(seq_along(row), paste(row, margin))
  ranges <- vapply(each, function(e) range(if (length(e) < cells[margin[e[1L]]]) 0, queries$weight[e]), numeric(2L))
  unname(rowsum(t(ranges), vapply(each, function(e) row[e[1L]], 0L)))
}

# the margin of each cell of a statistic of counts
cell_margins <- function(statistic) {
  rep(seq_along(statistic$margins), vapply(statistic$margins, function(m) prod(lengths(cell_labels(statistic))[m]), 0))
}

# errors of the components, of the products with their weights, and of the sum
#' @export
product_error.stat_linear <- function(statistic) {
  limits <- component_limits(statistic$statistic)
  if (is.null(limits)) return(0)
  weight <- abs(statistic$queries$weight)
  size <- pmax(abs(limits[, 1L]), abs(limits[, 2L]))[statistic$queries$column]
  each <- rep_len(product_error(statistic$statistic), nrow(limits))[statistic$queries$column]
  exact <- statistic$subset || integer_valued(statistic)
  query_sums(statistic, weight * each) + if (exact) 0 else 4 * 2^-53 * (diff(statistic$queries$first) + 1) * query_sums(statistic, weight * size)
}

# ---- sensitivity ---------------------------------------------------------------------------

#' @export
sensitivity.stat_linear <- function(statistic, norm = c("L1", "L2"), neighbours = c("replace", "add_remove")) {
  norm <- match_norm(norm)
  replaced <- replaces(neighbours)
  check_neighbours(statistic, neighbours)
  if (is_table(statistic$statistic)) return(sensitivity_of_cells(statistic, norm, replaced))
  min(by_ranges(statistic, norm, replaced), by_norm(statistic, norm, neighbours), if (replaced) by_corners(statistic, norm))
}

#' @export
neighbours_fault.stat_linear <- function(statistic, neighbours) neighbours_fault(statistic$statistic, neighbours)

by_ranges <- function(statistic, norm, replaced) {
  limits <- component_limits(statistic)
  if (is.null(limits)) return(Inf)
  length_of(if (replaced) limits[, 2L] - limits[, 1L] else pmax(abs(limits[, 1L]), abs(limits[, 2L])), norm)
}

# of the whole statistic, times the norm of the queries: for L2 the root of the products of those of L1
# and of the maximum
by_norm <- function(statistic, norm, neighbours) {
  weight <- abs(statistic$queries$weight)
  columns <- max(rowsum(weight, statistic$queries$column))
  factor <- if (statistic$subset) 1 else if (norm == "L1") columns else sqrt(columns * max(query_sums(statistic, weight)))
  factor * sensitivity(statistic$statistic, norm, neighbours)
}

most_corners <- 12L

# Some of the rescaled cross-products. Two records (v, w) at a = (v + w) / 2, b = (v - w) / 2 differ by 2 b_i in x_i and by
# 2 (a_i b_j + a_j b_i) in x_i x_j, which is largest where |a_i| = 1 - |b_i|. In each |b_i| the norm of those is then
# linear, or its square convex: it is largest at corners. Squares differ by 4 a_i b_i, at most 1.
by_corners <- function(statistic, norm) {
  whole <- statistic$statistic
  if (!inherits(whole, "stat_crossprod") || !whole$rescale || !statistic$subset) return(Inf)
  degree <- monomial_degrees(whole)
  i <- degree$first[statistic$queries$column]
  j <- degree$second[statistic$queries$column]
  used <- unique(stats::na.omit(c(i, j)))
  if (length(used) > most_corners) return(Inf)
  b <- as.matrix(expand.grid(rep(list(0:1), length(used))))
  b_of <- function(k) b[, match(k, used), drop = FALSE]
  square <- !is.na(j) & i == j
  single <- 2 * b_of(i[is.na(j)])
  first <- b_of(i[!is.na(j) & !square])
  second <- b_of(j[!is.na(j) & !square])
  changes <- cbind(single, 2 * (first + second - 2 * first * second))
  if (norm == "L1") max(rowSums(changes)) + sum(square) else sqrt(max(rowSums(changes^2)) + sum(square))
}

# Distances between what pairs of records add, or the size of what one adds.
sensitivity_of_cells <- function(statistic, norm, replaced) {
  whole <- statistic$statistic
  by_margin <- margin_distances(statistic, norm, replaced)
  # may a query have cells of several margins?
  across <- length(unique(paste(query_rows(statistic), cell_margins(whole)[statistic$queries$column]))) > length(statistic$components)
  bound <- if (norm == "L1" || across) sum(by_margin) else sqrt(sum(by_margin^2))
  if (length(whole$margins) == 1L && attr(by_margin, "exact")) return(bound)
  bound <- min(bound, by_ranges(statistic, norm, replaced))
  records <- prod(lengths(cell_labels(whole)))
  if (records > most_combinations || records * length(statistic$components) > 4e6) return(bound)
  added <- unique(record_queries(statistic))
  if (!replaced) return(max(apply(added, 1L, length_of, norm)))
  if (nrow(added)^2 * ncol(added) > 1e9) return(bound)
  max(0, stats::dist(added, if (norm == "L1") "manhattan" else "euclidean"))
}

most_combinations <- 2000

# What each combination of levels adds to the queries: a row each.
record_queries <- function(statistic) {
  whole <- statistic$statistic
  size <- lengths(cell_labels(whole))
  weights <- query_matrix(statistic)
  codes <- as.matrix(expand.grid(lapply(size, function(k) seq_len(k) - 1)))
  first <- cumsum(c(0, tabulate(cell_margins(whole))))
  added <- 0
  for (m in seq_along(whole$margins)) {
    variables <- match(whole$margins[[m]], names(size))
    cell <- Reduce(function(at, v) at * size[[v]] + codes[, v], variables, 0)
    added <- added + weights[first[m] + cell + 1, , drop = FALSE]
  }
  added
}

# Largest distances between columns of queries, or largest columns, for each margin. Distances are taken between its
# two longest columns: exact where these are disjoint.
margin_distances <- function(statistic, norm, replaced) {
  whole <- statistic$statistic
  cells <- factor(statistic$queries$column, seq_along(whole$components))
  power <- if (norm == "L1") 1 else 2
  lengths <- tapply(abs(statistic$queries$weight)^power, cells, sum)
  lengths[is.na(lengths)] <- 0
  margin <- cell_margins(whole)
  if (!replaced) return(structure(tapply(lengths, margin, max)^(1 / power), exact = TRUE))
  acute <- norm == "L2" && min(statistic$queries$weight) >= 0 # no angle between columns is obtuse
  top <- lapply(split(seq_along(margin), margin), function(at) at[order(lengths[at], decreasing = TRUE)[1:2]])
  row <- query_rows(statistic)
  queries_of <- function(cell) row[statistic$queries$column == cell]
  disjoint <- all(vapply(top, function(two) length(intersect(queries_of(two[1L]), queries_of(two[2L]))) == 0L, TRUE))
  distance <- vapply(top, function(two) if (acute) sqrt(sum(lengths[two])) else sum(lengths[two]^(1 / power)), 0)
  structure(distance, exact = disjoint && (norm == "L1" || acute))
}

# ---- JSON ------------------------------------------------------------------------------------

#' @export
statistic_json.stat_linear <- function(statistic) {
  entries <- split(seq_along(statistic$queries$column), query_rows(statistic))
  queries <- lapply(entries, function(e) {
    exact_numbers(stats::setNames(statistic$queries$weight[e], statistic$statistic$components[statistic$queries$column[e]]))
  })
  list(name = "linear", statistic = statistic_json(statistic$statistic), queries = stats::setNames(queries, statistic$components))
}

# components that a file may name without publishing them
most_unpublished <- 1e5

# names in the statistic's spelling: a product may have its factors in another order
reorder_products <- function(names, components) {
  other <- !names %in% components & !is.na(names) & validEnc(names)
  if (!any(other)) return(names)
  factors <- function(x) vapply(strsplit(x, ":", fixed = TRUE), function(f) paste(sort(trimws(f), method = "radix"), collapse = ":"), "")
  same <- factors(components)
  if (anyDuplicated(same)) return(names)
  at <- match(factors(names[other]), same)
  names[other] <- ifelse(is.na(at), names[other], components[at])
  names
}
