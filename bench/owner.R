# Releases made where the data live: what a release from files, PostgreSQL and DuckDB costs against reading and summing.
#
# Usage: Rscript bench/owner.R [rows of the files] [rows in PostgreSQL] [rows in DuckDB]
#
# Files: CSV in chunks of 10^6 rows and Parquet in row groups of as many, 3 numeric columns, cross-products; against reading the same
# chunks by scan(), or the row groups by nanoparquet, and summing columns and products in R. Each kind of file in a process of its own, for its
# peak memory (VmHWM), timed once. Database: the same totals against one plain SELECT with as many sums, the median of nine runs that take turns
# (DuckDB, on Parquet files in parts: three).

library(noiseaware)
arguments <- as.double(commandArgs(TRUE))
file_rows <- if (length(arguments)) arguments[1L] else 3e7
table_rows <- if (length(arguments) > 1L) arguments[2L] else 1e7
duckdb_rows <- if (length(arguments) > 2L) arguments[3L] else 1e8
if (!exists("connect_duckdb")) connect_duckdb <- function() if (requireNamespace("duckdb", quietly = TRUE)) DBI::dbConnect(duckdb::duckdb())
statistic <- stat_crossprod(y ~ a + b, list(y = c(0, 100), a = c(-5, 5), b = c(0, 1)))
mechanism <- mech_laplace(epsilon = 1)
seconds <- function(code) system.time(code)[["elapsed"]]
peak <- function() as.double(gsub("\\D", "", grep("VmHWM", readLines("/proc/self/status"), value = TRUE))) / 1024

records_of <- function(m) list(y = runif(m, -5, 105), a = rnorm(m, 0, 2), b = runif(m))
sums_of <- function(x) c(sum(x[[1]]), sum(x[[2]]), sum(x[[3]]), sum(x[[1]]^2), sum(x[[1]] * x[[2]]), sum(x[[1]] * x[[3]]), sum(x[[2]]^2),
                         sum(x[[2]] * x[[3]]), sum(x[[3]]^2))

write_text <- function(path) {
  out <- file(path, "w")
  on.exit(close(out))
  writeLines("y,a,b", out)
  for (k in seq_len(ceiling(file_rows / 1e6))) {
    x <- records_of(min(1e6, file_rows - (k - 1) * 1e6))
    writeLines(sprintf("%.2f,%.3f,%.4f", x$y, x$a, x$b), out)
  }
}

write_parquet <- function(path) {
  for (k in seq_len(ceiling(file_rows / 1e6))) {
    x <- as.data.frame(records_of(min(1e6, file_rows - (k - 1) * 1e6)))
    write <- if (k == 1) nanoparquet::write_parquet else nanoparquet::append_parquet
    write(x, path, options = nanoparquet::parquet_options(num_rows_per_row_group = 1e6, keep_row_groups = TRUE))
  }
}

sum_text <- function(path) {
  con <- file(path, "r")
  on.exit(close(con))
  invisible(readLines(con, 1))
  sums <- 0
  while (length((x <- scan(con, list(0, 0, 0), sep = ",", nlines = 1e6, quiet = TRUE))[[1L]]) > 0L) sums <- sums + sums_of(x)
  sums
}

sum_parquet <- function(path) {
  read <- get("read_parquet_row_group", asNamespace("nanoparquet"))
  sums <- 0
  for (k in seq_len(nrow(nanoparquet::read_parquet_metadata(path)$row_groups))) sums <- sums + sums_of(read(path, k - 1L))
  sums
}

measure_file <- function(kind, write, sum_in_r) {
  path <- tempfile(fileext = paste0(".", kind))
  on.exit(unlink(path))
  set.seed(1)
  parallel::mccollect(parallel::mcparallel(write(path))) # what writing takes is not counted
  ours <- seconds(release(record_source(path), statistic, mechanism))
  memory <- peak()
  plain <- seconds(sum_in_r(path))
  cat(sprintf("%s: %.0f rows, %.0f MB: release %.1f s, read and sum %.1f s, ratio %.2f; peak %.0f MB\n", kind, file_rows,
              file.size(path) / 2^20, ours, plain, ours / plain, memory))
}

if (file_rows > 0) {
  kinds <- list(csv = list(write_text, sum_text), parquet = if (requireNamespace("nanoparquet", quietly = TRUE)) list(write_parquet, sum_parquet))
  for (kind in names(Filter(Negate(is.null), kinds))) {
    invisible(parallel::mccollect(parallel::mcparallel(measure_file(kind, kinds[[kind]][[1L]], kinds[[kind]][[2L]]))))
  }
}

select_records <- "SELECT random() * 110 - 5 AS y, random() * 10 - 5 AS a, random() AS b FROM"

# The release and the plain sums take turns; the medians of `times` runs each.
compare_database <- function(con, name, rows, times) {
  plain_sql <- "SELECT sum(y), sum(a), sum(b), sum(y*y), sum(y*a), sum(y*b), sum(a*a), sum(a*b), sum(b*b) FROM t"
  records <- suppressWarnings(dplyr::tbl(con, "t"))
  invisible(DBI::dbGetQuery(con, plain_sql))
  runs <- replicate(times, c(ours = seconds(release(records, statistic, mechanism)), plain = seconds(DBI::dbGetQuery(con, plain_sql))))
  middle <- apply(runs, 1L, stats::median)
  ratios <- range(runs["ours", ] / runs["plain", ])
  cat(sprintf("%s: %.0f rows: release %.2f s, plain sums %.2f s, ratio %.2f (%.2f to %.2f)\n", name, rows, middle[["ours"]], middle[["plain"]],
              middle[["ours"]] / middle[["plain"]], ratios[1L], ratios[2L]))
}

if (table_rows > 0) {
  source("tests/testthat/helper-postgres.R")
  measure <- function() {
    server <- local_postgres()
    if (is.null(server)) return(cat("no PostgreSQL server can be started here\n"))
    con <- server$connect()
    invisible(DBI::dbExecute(con, sprintf("CREATE TABLE t AS %s generate_series(1, %.0f)", select_records, table_rows)))
    invisible(DBI::dbExecute(con, "ANALYZE t"))
    compare_database(con, "PostgreSQL", table_rows, 9L)
  }
  measure()
}

# Parquet files of 10^7 rows in a folder of their own
if (duckdb_rows > 0) {
  measure <- function() {
    con <- connect_duckdb()
    if (is.null(con)) return(cat("the package duckdb is not installed\n"))
    folder <- tempfile()
    dir.create(folder)
    on.exit(unlink(folder, recursive = TRUE))
    for (k in seq_len(ceiling(duckdb_rows / 1e7))) {
      sql <- sprintf("COPY (%s range(%.0f)) TO '%s/%d.parquet' (FORMAT PARQUET)", select_records, min(1e7, duckdb_rows - (k - 1) * 1e7), folder, k)
      invisible(DBI::dbGetQuery(con, sql))
    }
    invisible(DBI::dbGetQuery(con, sprintf("CREATE VIEW t AS SELECT * FROM read_parquet('%s/*.parquet')", folder)))
    compare_database(con, "DuckDB", duckdb_rows, 3L)
  }
  measure()
}
