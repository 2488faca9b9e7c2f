# Tables of a few records, enumerated: for the tests of tables.

binary <- c("a", "b")
cube <- list(x = binary, y = binary, z = binary)

# All tables of n records in k cells, a row each.
all_tables <- function(n, k) {
  tables <- matrix(0, 1L, 0L)
  left <- n
  for (cell in seq_len(k - 1L)) { # each table goes on with none, one, ... of the records that are left
    row <- rep(seq_along(left), left + 1)
    first <- sequence(left + 1) - 1
    tables <- cbind(tables[row, , drop = FALSE], first, deparse.level = 0)
    left <- left[row] - first
  }
  cbind(tables, left, deparse.level = 0)
}

# cells x components, of margins written out by hand
cube_cells <- rev(expand.grid(z = binary, y = binary, x = binary)) # the last variable fastest
indicators <- function(statistic, cells = cube_cells) {
  vapply(statistic$components, function(name) {
    needs <- strsplit(strsplit(name, ":")[[1]], "=")
    as.numeric(Reduce(`&`, lapply(needs, function(need) cells[[need[1]]] == need[2])))
  }, numeric(nrow(cells)))
}

cube_statistics <- list(
  pairs = stat_counts(~ x:y + y:z + x:z, cube),
  whole = stat_counts(~ x:y:z + y, cube),
  ones = stat_counts(~ x + y + z, cube),
  nested = stat_counts(~ z:x + z + y, cube),
  some = stat_subset(stat_counts(~ x:y + z:y, cube), c("x=a:y=b", "z=b:y=a", "z=b:y=b")),
  linear = stat_linear(stat_counts(~ x:y:z + x, cube), list(diagonal = c("x=a:y=a:z=a", "x=b:y=b:z=b"),
    gap = c(`x=a` = 1, `x=b:y=a:z=a` = -0.5), mixed = c(`x=a` = 1, `x=a:y=a:z=b` = 2, `x=b` = 1)))
)

released_of <- function(statistic, tables, cells = cube_cells) {
  if (!inherits(statistic, "stat_linear")) return(tables %*% indicators(statistic, cells))
  tables %*% indicators(statistic$statistic, cells) %*% internal("query_matrix")(statistic)
}
