# Method "collapse", tables of cliques with released margins that are not inside a clique: see src/table/crossing_margins.c.

# Records whose codes are kept, and cells of released margins.
most_crossing <- list(records = 5e6, cells = 1e6)

# Does a released margin have variables that no clique has together?
crosses_cliques <- function(bound, parts) {
  cliques <- bound$model$cliques
  if (length(cliques) < 2L || moves_theta(bound)) return(FALSE)
  inside <- function(margin) any(vapply(cliques, function(c) all(margin %in% c), TRUE))
  any(vapply(parts, function(p) !all(vapply(counted_statistic(p)$margins, inside, TRUE)), TRUE))
}

release_crosses <- function(release, bound) {
  inherits(bound, "bound_table") && crosses_cliques(bound, component_parts(release_for(bound, release), repeated = TRUE))
}

check_crossing <- function(bound, parts, n, prior_n, call) {
  kernels <- vapply(parts, function(p) p$mechanism$kernel, "")
  margins <- unlist(lapply(parts, function(p) p$statistic$margins), recursive = FALSE)
  cells <- sum(vapply(margins, function(margin) prod(lengths(bound$levels)[margin]), 0))
  limit <- lapply(most_crossing, format_size)
  fault <- if (!all(vapply(parts, function(p) inherits(p$statistic, "stat_counts"), TRUE))) "The release has more than counts of single cells." else
    if (!is.null(prior_n)) "The number of records is unknown." else
      if (any(kernels == "exact")) "The release has exact numbers." else
        if (any(kernels == "published")) "The release has numbers that were hidden, rounded or truncated." else
          if (n > most_crossing$records) sprintf("There are %s records, but the limit is %s.", format_size(n), limit$records) else
            if (cells > most_crossing$cells) sprintf("The released margins have %s cells, but the limit is %s.", format_size(cells), limit$cells)
  if (!is.null(fault)) stop_crossing(unlist(lapply(parts, function(p) counted_statistic(p)$margins), recursive = FALSE), bound, fault, call)
}

crossing_distribution <- function(bound, parts, n, prior_n, call) {
  check_crossing(bound, parts, n, prior_n, call)
  margins <- lapply(parts, function(p) p$statistic$margins)
  size <- lengths(bound$levels)
  cells <- lapply(margins, function(of) vapply(of, function(margin) prod(size[margin]), 0))
  offset <- cumsum(c(0, vapply(cells, sum, 0)))
  entries <- do.call(rbind, lapply(seq_along(parts), function(k) {
    data.frame(target = offset[k] + parts[[k]]$at - 1, component = parts[[k]]$index, coefficient = 1)
  }))
  fields <- bound$spec$fields
  margins <- unlist(margins, recursive = FALSE)
  tracked <- if (length(fields$alpha) <= most_tracked) length(fields$alpha) else 0
  list(family = "crossing", entries = entries[order(entries$target), ], tracked = tracked,
       fields = c(fields[c("columns", "children", "parents", "alpha")],
                  list(family = unlist(lapply(bound$parts, function(p) c(p$parents, p$children))) - 1, margin = as.double(lengths(margins)),
                       margin_column = as.double(match(unlist(margins), names(bound$levels)) - 1), tracked = as.double(tracked > 0))))
}

#' @export
engine_diagnostics.engine_collapse_crossing <- function(engine, fit, told) data.frame(mean = share_of(told$moved, told$made))

#' @export
engine_moves.engine_collapse_crossing <- function(engine, fit, rows) {
  sprintf("records  one variable at a time, given everything else: %s changed", format_number(mean(rows$mean), 2))
}
