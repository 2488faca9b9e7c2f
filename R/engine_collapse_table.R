# Method "collapse", tables: see src/table/table_chain.c.

#' @export
collapse_family.bound_table <- function(bound, call = caller_env()) "table"

#' @export
collapse_statistics.model_table <- function(model) "stat_counts"

#' @export
moves_counts.bound_table <- function(bound) TRUE

table_distribution <- function(bound, parts, n, prior_n, call) {
  if (crosses_cliques(bound, parts)) return(crossing_distribution(bound, parts, n, prior_n, call))
  entries <- table_entries(bound, parts, call)
  fields <- bound$spec$fields
  cells <- length(fields$alpha)
  tracked <- if (cells <= most_tracked) cells else 0
  if (row_serves(bound, parts, entries, n, prior_n)) return(row_distribution(bound, parts, entries, n, prior_n, tracked, call))
  of_parts <- fields[c("columns", "levels", "children", "parents", "child", "parent", "code", "alpha")]
  host <- vapply(bound$parts, `[[`, 0, "host") - 1 # from 0
  fields <- c(of_parts, list(host = host, tracked = as.double(tracked > 0)), table_exact_fields(bound, parts, n, prior_n, call))
  list(family = "table", fields = fields, entries = entries, component = hole_ranges(parts), tracked = tracked)
}

# TRUE where all counts are drawn at once
table_served <- function(bound, parts, n, prior_n, call) {
  if (crosses_cliques(bound, parts)) return(check_crossing(bound, parts, n, prior_n, call))
  entries <- table_entries(bound, parts, call)
  at_once <- row_serves(bound, parts, entries, n, prior_n)
  if (!at_once) table_exact_groups(bound, parts, n, prior_n, call)
  at_once
}

# What each released component is a sum of: entries with a node of the table (`target`, from 0), the `component` and
# its `coefficient`, in the order of the nodes.
table_entries <- function(bound, parts, call) {
  entries <- do.call(rbind, lapply(parts, part_entries, bound = bound, call = call))
  key <- entries$target * (max(entries$component) + 1) + entries$component
  if (anyDuplicated(key)) {
    sums <- rowsum(entries$coefficient, match(key, unique(key)))[, 1L]
    entries <- entries[!duplicated(key), ]
    entries$coefficient <- unname(sums)
  }
  entries[order(entries$target), ]
}

part_entries <- function(part, bound, call) {
  statistic <- part$statistic
  # n is the node after the cells
  if (inherits(statistic, "stat_size")) return(data.frame(target = length(bound$spec$fields$alpha), component = part$index, coefficient = 1))
  linear <- inherits(statistic, "stat_linear")
  counted <- counted_statistic(part)
  if (!inherits(counted, "stat_counts")) stop_collapse_part(part, "counts of its variables", call)
  uses <- if (linear) data.frame(component = part$index[query_rows(statistic)], column = statistic$queries$column, weight = statistic$queries$weight) else
    data.frame(component = part$index, column = part$at, weight = 1)
  nodes <- margin_nodes(counted$margins, bound)
  cells <- nodes[uses$column]
  each <- rep(seq_len(nrow(uses)), lengths(cells))
  data.frame(target = unlist(cells), component = uses$component[each], coefficient = uses$weight[each])
}

# The nodes of the table that each cell of some margins is the sum of: a list of them, or NULL if no clique has all variables of one.
margin_nodes <- function(margins, bound) {
  size <- lengths(bound$levels)
  codes <- lapply(bound$parts, part_codes, size)
  first <- c(0, cumsum(vapply(codes, nrow, 0L)))
  nodes <- lapply(margins, function(margin) {
    inside <- vapply(codes, function(c) all(margin %in% colnames(c)), TRUE)
    if (!any(inside)) return(NULL)
    k <- which(inside)[1L]
    at <- Reduce(function(at, v) at * size[[v]] + codes[[k]][, v], margin, 0)
    unname(split(first[k] + seq_along(at) - 1, factor(at, seq_len(prod(size[margin])) - 1)))
  })
  if (!any(vapply(nodes, is.null, TRUE))) unlist(nodes, recursive = FALSE)
}

# Draws of the counts of margins of the table, by the names that stat_counts() gives them.
denoise_margin <- function(fit, margin, call = caller_env()) {
  tables <- lapply(fit$chains, `[[`, "table")
  if (!inherits(fit$bound, "bound_table") || is.null(tables[[1L]])) {
    why <- if (!inherits(fit$bound, "bound_table")) "The model is not {.fn model_table}." else if (!inherits(engine_of(fit), "engine_collapse"))
      "Method {.val {fit$method}} does not store a table; {.val collapse} does." else "The table has more than {format_size(most_tracked)} cells, too many to store."
    stop_classed("argument", c("{.arg margin} requests the counts of a table, which the fit does not have.", x = why), call = call)
  }
  margins <- formula_margins(margin, call)
  levels <- fit$bound$levels
  strange <- setdiff(unlist(margins), names(levels))
  if (length(strange)) {
    stop_classed("variables", c("{.arg margin} must name variables of the table, but {.var {strange}} {?is/are} not.",
                                i = "The table has {.var {names(levels)}}."), call = call)
  }
  cells <- margin_nodes(margins, fit$bound)
  if (is.null(cells)) {
    stop_classed("argument", c("{.arg margin} must be inside a clique of the model.", i = "Cliques: {.code {clique_names(fit$bound$model$cliques)}}."), call = call)
  }
  names <- unlist(lapply(margins, margin_cells, levels))
  sums <- matrix(0, length(cells), ncol(tables[[1L]]))
  sums[cbind(rep(seq_along(cells), lengths(cells)), unlist(cells) + 1)] <- 1
  chains_array(lapply(tables, function(table) {
    out <- table %*% t(sums)
    colnames(out) <- names
    out
  }))
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_lines.engine_collapse_table <- function(engine, fit) hamiltonian_lines(diagnostics_of(fit))

#' @export
engine_diagnostics.engine_collapse_table <- function(engine, fit, told) {
  kinds <- c("pair", "swap", "contrast", "kept")
  sum_of <- function(what) Reduce(`+`, told[paste0(kinds, what)])
  row <- data.frame(mean = sum_of("_accepted") / sum_of("_made"), lapply(stats::setNames(nm = kinds[1:3]), share_accepted, told = told))
  if (!is.null(fit$problem$fields$exact_start)) row$kept <- share_accepted(told, "kept")
  if (told$transitions > 0) row <- cbind(row, stats::setNames(hamiltonian_row(told)[c(2L, 1L, 3L, 4L)], c("steps", "acceptance", "divergent", "deepest")))
  with_records(row, fit, told)
}

#' @export
engine_moves.engine_collapse_table <- function(engine, fit, rows) {
  paste0(sprintf("table    transfers between two cells: %s; that exchange codes: %s; contrasts: %s", share_words(rows$pair), share_words(rows$swap),
                 share_words(rows$contrast)),
         if (!is.null(rows$kept)) sprintf("; made to keep exact numbers: %s", share_words(rows$kept)), size_words(fit, rows),
         if (!is.null(rows$steps)) paste("; coefficients", hamiltonian_words(rows$steps, rows$acceptance)))
}
