# No value of a record is left anywhere: records with values that cannot be mistaken go every way that a release can be made,
# and ways that are refused; then what was printed, signalled, published or written is searched for them.

number <- 987654.321
level <- "Qx7undeclaredZ"
n <- 40
set.seed(4)
records <- data.frame(x = number + c(0, seq_len(n - 1)) * 2^-20, y = runif(n), g = rep(c("a", "b"), n / 2))
bounds <- list(x = c(0, 1e6), y = c(0, 1), g = c("a", "b"))
st <- stat_crossprod(x ~ y + g, bounds)
laplace <- mech_laplace(epsilon = 1)
other <- transform(records, g = replace(g, 3, level))
holes <- transform(records, y = replace(y, 5, NA))
texts <- transform(records, x = as.character(x))

# as text, and as the bytes of a double in both orders
marks <- list(charToRaw("987654"), charToRaw(level), writeBin(number, raw(), endian = "big"), writeBin(number, raw(), endian = "little"))
holds <- function(bytes) any(vapply(marks, function(mark) length(grepRaw(mark, bytes, fixed = TRUE)) > 0L, TRUE))
file_holds <- function(path) holds(readBin(path, "raw", file.size(path)))

# Runs `code`, which must succeed or be refused by an error of that class. Searched are what it prints and signals, what it gives or
# the error with its calls, and files that are new in this session's directory.
expect_no_trace <- function(code, class = NULL) {
  label <- paste(deparse(substitute(code)), collapse = " ")
  before <- list.files(tempdir(), recursive = TRUE, all.files = TRUE)
  said <- list()
  keep <- function(condition) said[[length(said) + 1L]] <<- condition
  printed <- utils::capture.output(result <- withCallingHandlers(tryCatch(code, error = identity), message = keep, warning = keep))
  if (is.null(class)) expect_false(inherits(result, "error"), label = paste(label, "fails")) else
    expect_s3_class(result, paste0("noiseaware_error_", class))
  shown <- if (inherits(result, "noiseaware_release")) utils::capture.output(print(result), summary(result)) else
    if (inherits(result, "noiseaware_partial")) utils::capture.output(print(result), summary(result)) else
      if (inherits(result, "error")) c(conditionMessage(result), utils::capture.output(print(result)))
  said <- unlist(lapply(said, conditionMessage))
  expect_false(holds(charToRaw(paste(c(printed, said, shown), collapse = "\n"))), label = paste("what", label, "prints holds a value"))
  # a partial total is confidential, but holds no record either
  expect_false(holds(serialize(result, NULL)), label = paste("the result of", label, "holds a value"))
  new <- setdiff(list.files(tempdir(), recursive = TRUE, all.files = TRUE), before)
  # tests that run alongside share the directory, and remove what is theirs
  for (path in new[file.exists(file.path(tempdir(), new))]) {
    expect_false(file_holds(file.path(tempdir(), path)), label = paste(path, "of", label))
  }
  invisible(result)
}

test_that("the search finds what it looks for", {
  expect_true(holds(serialize(records, NULL)))
  expect_true(holds(charToRaw(paste("of 987654.321"))))
  expect_true(holds(serialize(simpleError("unknown", call = call("f", number)), NULL)))
  expect_false(holds(serialize(list(987655, "Qx7"), NULL)))
})

test_that("data frames, partial totals and budgets", {
  skip_on_cran() # takes long; `make test` runs it
  file <- withr::local_tempfile()
  account <- budget(epsilon = 5, file = file)
  released <- expect_no_trace(release(records, st, laplace, budget = account))
  expect_no_trace(release(list(partial_total(records[1:20, ], st, laplace), partial_total(records[21:n, ], st, laplace)), budget = account))
  expect_no_trace(partial_total(records, st, laplace))
  expect_no_trace(release(records, st, mech_laplace(epsilon = 9), budget = account), "budget")
  expect_no_trace(release(other, st, laplace, budget = account), "levels")
  expect_no_trace(release(holes, st, laplace, budget = account), "missing")
  expect_no_trace(release(texts, st, laplace, budget = account), "data")
  expect_no_trace(release(as.list(records), st, laplace, budget = account), "data")
  expect_no_trace(partial_total(other, st, laplace), "levels")
  fails <- function(r) if (any(abs(r[, "x"] - 9876543.21 / 10) < 1e-6)) stop("record of ", format(r[1L, "x"], digits = 9)) else r[, "x", drop = FALSE]
  own <- stat_custom(fails, "x", sensitivity = c(L1 = 1e6, L2 = 1e6), bounds = bounds["x"])
  expect_no_trace(release(records, own, laplace), "custom")
  written <- withr::local_tempfile(fileext = ".json")
  expect_no_trace(write_release(released, written))
  saveRDS(released, stored <- withr::local_tempfile(), compress = FALSE)
  for (path in c(file, written, stored)) expect_false(file_holds(path), label = path)
})

test_that("files and chunks", {
  skip_on_cran()
  place <- withr::local_tempdir(tmpdir = dirname(tempdir()))
  text <- function(data, name = "d.csv") {
    utils::write.csv(data, file.path(place, name), row.names = FALSE)
    record_source(file.path(place, name), rows = 7)
  }
  expect_true(file_holds(text(records)$files))
  expect_no_trace(release(text(records), st, laplace))
  expect_no_trace(release(text(other), st, laplace), "levels")
  expect_no_trace(release(text(holes), st, laplace), "missing")
  expect_no_trace(release(text(transform(records, x = replace(x, 9, level))), st, laplace), "file")
  cat("987654.321,0.5\n", file = text(records)$files, append = TRUE)
  expect_no_trace(release(record_source(file.path(place, "d.csv")), st, laplace), "file")
  chunks <- function(...) {
    given <- list(...)
    record_source(function() {
      next_one <- given[1L][[1L]]
      given <<- given[-1L]
      if (is.function(next_one)) next_one() else next_one
    })
  }
  expect_no_trace(release(chunks(records[1:9, ], records[10:n, ], NULL), st, laplace))
  expect_no_trace(release(chunks(records, other, NULL), st, laplace), "levels")
  expect_no_trace(release(chunks(records, function() {
    warning("at ", number)
    stop("row of ", number, level)
  }), st, laplace), "data")
  skip_if_not_installed("nanoparquet")
  parquet <- function(data) {
    nanoparquet::write_parquet(data, file.path(place, "d.parquet"), row_groups = c(1L, 20L))
    record_source(file.path(place, "d.parquet"))
  }
  expect_no_trace(release(parquet(records), st, laplace))
  expect_no_trace(release(parquet(other), st, laplace), "levels")
  expect_no_trace(release(parquet(holes), st, laplace), "missing")
  expect_no_trace(release(parquet(texts), st, laplace), "data")
  cut <- readBin(parquet(records)$files, "raw", 700)
  writeBin(cut, file.path(place, "d.parquet"))
  expect_no_trace(release(record_source(file.path(place, "d.parquet")), st, laplace), "file")
})

from_database <- function(con) {
  stored <- function(data) {
    DBI::dbWriteTable(con, "t", data, row.names = FALSE, overwrite = TRUE)
    suppressWarnings(dplyr::tbl(con, "t"))
  }
  account <- budget(epsilon = 3, connection = con, table = "account")
  good <- stored(records)
  expect_no_trace(release(good, st, laplace, budget = account))
  expect_no_trace(partial_total(good, st, laplace))
  bad <- list(levels = other, missing = holes, data = texts)
  for (kind in names(bad)) {
    source <- stored(bad[[kind]])
    expect_no_trace(release(source, st, laplace, budget = account), kind)
  }
  source <- stored(records)
  expect_no_trace(release(source, st, mech_laplace(epsilon = 9), budget = account), "budget")
  entries <- DBI::dbReadTable(con, "account")
  expect_false(holds(serialize(entries, NULL)))
  source
}

test_that("SQLite", {
  skip_on_cran() # takes long; `make test` runs it
  for (package in c("DBI", "dbplyr", "dplyr", "RSQLite")) skip_if_not_installed(package)
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  source <- from_database(con)
  DBI::dbExecute(con, "CREATE TABLE loose (x REAL, y REAL, g TEXT)")
  DBI::dbExecute(con, sprintf("INSERT INTO loose VALUES ('%s', 0.5, 'a'), (987654.321, 0.5, 'a')", level))
  expect_no_trace(release(dplyr::tbl(con, "loose"), st, laplace), "data")
  DBI::dbDisconnect(con)
  expect_no_trace(release(source, st, laplace), "database")
})

test_that("PostgreSQL, and its log", {
  skip_on_cran()
  for (package in c("DBI", "dbplyr", "dplyr")) skip_if_not_installed(package)
  server <- local_postgres()
  if (is.null(server)) skip("no PostgreSQL server can be started here")
  con <- server$connect()
  source <- from_database(con)
  DBI::dbExecute(con, "CREATE TABLE strange (x DOUBLE PRECISION, y NUMERIC, g TEXT)")
  DBI::dbExecute(con, "INSERT INTO strange VALUES ('NaN', 987654.321, 'a'), (987654.321, 'NaN', 'b'), ('Infinity', NULL, 'a')")
  strange <- suppressWarnings(dplyr::tbl(con, "strange"))
  expect_no_trace(release(strange, st, laplace), "missing")
  server$stop()
  expect_no_trace(suppressWarnings(release(source, st, laplace)), "database")
  expect_gt(file.size(server$log), 0)
  expect_false(file_holds(server$log))
})
