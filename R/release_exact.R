# Checks whether numbers without noise are possible, and consistent with each other.

# Exact numbers that no n records have are refused, and the error names the smallest set that contradicts itself.
check_invariants <- function(parts, n, call = caller_env()) {
  parts <- Filter(function(p) is_exact(p$mechanism), parts)
  for (p in parts) check_possible(p, n, call)
  tables <- Filter(function(p) inherits(p$statistic, "stat_size") || is_table(table_of(p$statistic)), parts)
  if (length(tables)) check_tables(tables, n, call)
}

table_of <- function(statistic) if (inherits(statistic, "stat_linear")) statistic$statistic else statistic

# each number for itself
check_possible <- function(part, n, call) {
  value <- part$value
  names(value) <- part_components(part$statistic, n, part$name)
  stop_impossible <- function(which, why) {
    shown <- paste(names(value)[which], "=", format_number(value[which], 15L))
    stop_classed("value", c("Exact numbers must be possible.", x = "{shown[1L]}: {why}."), call = call)
  }
  broken <- integer_valued(part$statistic) & value != round(value)
  if (any(broken)) stop_impossible(broken, "it must be a whole number")
  limits <- component_limits(part$statistic)
  if (is.null(limits)) return(invisible())
  if (is.null(n)) limits <- cbind(ifelse(limits[, 1L] < 0, -Inf, 0), ifelse(limits[, 2L] > 0, Inf, 0)) else limits <- limits * n
  slack <- 1e-9 * pmax(1, abs(value))
  beyond <- value < limits[, 1L] - slack | value > limits[, 2L] + slack
  if (any(beyond)) {
    ends <- format_number(limits[which(beyond)[1L], ])
    stop_impossible(beyond, sprintf("%s records give from %s to %s", if (is.null(n)) "any" else format_size(n), ends[1L], ends[2L]))
  }
}

# All counts together: linear equations in the cells of the table of all their variables.
check_tables <- function(parts, n, call) {
  system <- exact_system(parts, n)
  if (is.null(system)) return(invisible())
  if (length(system$value) > most_compared) {
    # whether equations agree is quickly seen, unlike which do not
    if (max(abs(qr.resid(qr(system$rows), system$value))) > 1e-6 * max(1, abs(system$value))) {
      stop_classed("value", "Exact numbers must not contradict each other, but no table of counts has all of these.", call = call)
    }
  } else if (!is_feasible(system$rows, system$value)) {
    needed <- conflict(system$rows, system$value)
    shown <- paste(names(system$value)[needed], "=", format_number(system$value[needed], 15L))
    stop_classed("value", c("Exact numbers must not contradict each other, but no table of counts has {cli::qty(length(shown))}{?this/all of these}.",
                            x = "{shown}."), call = call)
  }
  if (!is.null(n)) return(invisible())
  weight <- qr.coef(qr(t(system$rows)), rep(1, ncol(system$rows)))
  weight[is.na(weight)] <- 0
  if (max(abs(drop(weight %*% system$rows) - 1)) < 1e-9) {
    stop_argument("n", paste("given if exact numbers determine it:", format_number(sum(weight * system$value), 15L)), "NULL", call = call)
  }
}

# Rows: exact numbers, and the number of records where it is known; columns: cells that differ in some row. NULL where the
# table is too large to be looked at.
exact_system <- function(parts, n) {
  sizes <- do.call(c, unname(lapply(parts, function(p) if (!inherits(p$statistic, "stat_size")) lengths(cell_labels(table_of(p$statistic))))))
  # bins of one number, cut in two ways
  if (length(sizes) && any(tapply(sizes, names(sizes), function(s) length(unique(s))) > 1L)) return(NULL)
  sizes <- sizes[!duplicated(names(sizes))]
  count <- sum(vapply(parts, function(p) length(p$value), 0))
  if (prod(sizes) > most_exact_cells || prod(sizes) * count > 1e6) return(NULL)
  codes <- as.matrix(expand.grid(lapply(sizes, function(k) seq_len(k) - 1)))
  rows <- do.call(rbind, lapply(parts, function(p) {
    if (inherits(p$statistic, "stat_size")) return(matrix(1, 1L, max(1, nrow(codes))))
    statistic <- p$statistic
    if (!inherits(statistic, "stat_linear")) {
      all <- seq_along(statistic$components)
      statistic <- linear_of(statistic, list(names = statistic$components, length = rep(1L, length(all)), column = all, weight = rep(1, length(all))))
    }
    of <- sizes[names(cell_labels(statistic$statistic))]
    combination <- drop(codes[, names(of), drop = FALSE] %*% cumprod(c(1, of))[seq_along(of)]) + 1
    t(record_queries(statistic)[combination, , drop = FALSE])
  }))
  value <- unlist(lapply(parts, function(p) stats::setNames(p$value, part_components(p$statistic, n, p$name))))
  if (!is.null(n)) {
    rows <- rbind(rows, 1)
    value <- c(value, "number of records" = n)
  }
  list(rows = unique(rows, MARGIN = 2L), value = value)
}

most_exact_cells <- 20000

most_compared <- 60L

# Are there x >= 0 with rows x = value?
is_feasible <- function(rows, value) length(nonnegative_solution(rows, value)) > 0L

# Such x, most of them 0, or none. Non-negative least squares (Lawson & Hanson 1974, chapter 23).
nonnegative_solution <- function(rows, value) {
  size <- pmax(1, abs(value))
  a <- rows / size
  b <- value / size
  x <- numeric(ncol(a))
  passive <- logical(ncol(a))
  solve_passive <- function() {
    s <- numeric(ncol(a))
    s[passive] <- qr.coef(qr(a[, passive, drop = FALSE]), b)
    replace(s, is.na(s), 0)
  }
  for (step in seq_len(30L * length(b))) {
    residual <- b - drop(a %*% x)
    gain <- drop(residual %*% a)
    gain[passive] <- 0
    if (max(abs(residual)) < 1e-9 || max(gain) < 1e-10) break
    passive[which.max(gain)] <- TRUE
    s <- solve_passive()
    while (any(s[passive] <= 0)) {
      low <- which(passive & s <= 0)
      part <- x[low] / (x[low] - s[low])
      x <- x + min(part[is.finite(part)], 1) * (s - x)
      passive[passive & x <= 1e-12] <- FALSE
      x[!passive] <- 0
      s <- solve_passive()
    }
    x <- s
  }
  if (max(abs(b - drop(a %*% x))) < 1e-7) x else numeric()
}

# rows that contradict each other and would not without any one of them
conflict <- function(rows, value) {
  needed <- seq_along(value)
  for (k in rev(seq_along(value))) {
    rest <- setdiff(needed, k)
    if (!is_feasible(rows[rest, , drop = FALSE], value[rest])) needed <- rest
  }
  needed
}
