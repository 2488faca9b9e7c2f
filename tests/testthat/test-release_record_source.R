# Records in files and from functions: the totals equal the data frame's.

n <- 250
set.seed(9)
records <- data.frame(y = round(rnorm(n, 0, 5), 3), g = sample(c("a", "b \"quoted\", c", "\u00c4"), n, TRUE), x = runif(n), unused = "z", check.names = FALSE)
st <- stat_crossprod(y ~ x + g, list(y = c(-10, 10), x = c(0, 1), g = unique(records$g)))
laplace <- mech_laplace(epsilon = 1)
total <- function(data, ...) partial_total(data, st, laplace, ...)
written <- function(data, extension = ".csv", frame = parent.frame()) {
  path <- withr::local_tempfile(fileext = extension, .local_envir = frame)
  con <- if (extension == ".csv.gz") gzfile(path, "w") else file(path, "w", encoding = "UTF-8")
  write.csv(data, con, row.names = FALSE)
  close(con)
  path
}
# what a file says of a number
as_text <- transform(records, x = as.numeric(format(x, digits = 15)))

test_that("a file has the total of its data frame, however it is cut", {
  skip_on_cran()
  path <- written(as_text)
  whole <- total(read.csv(path))
  for (rows in c(1, 7, 50, 250, 1e6)) expect_identical(total(record_source(path, rows = rows)), whole)
  expect_identical(total(record_source(written(as_text, ".csv.gz"))), whole)
  halves <- c(written(as_text[1:90, ]), written(as_text[91:250, c(4, 3, 1, 2)]))
  expect_identical(total(record_source(halves, rows = 60)), whole)
  tabs <- withr::local_tempfile()
  write.table(as_text, tabs, sep = "\t", row.names = FALSE, qmethod = "double")
  expect_identical(total(record_source(tabs, sep = "\t", rows = 33)), whole)
  released <- release(record_source(halves), st, laplace)
  expect_identical(released[c("n", "scale", "granularity", "noise")], release(as_text, st, laplace)[c("n", "scale", "granularity", "noise")])
  # a file that has a header only
  expect_identical(total(record_source(c(path, written(as_text[0, ])))), whole)
})

# each row group of a Parquet file begins at one of `starts`
written_parquet <- function(data, starts = 1L, name = ".parquet", frame = parent.frame()) {
  path <- withr::local_tempfile(fileext = name, .local_envir = frame)
  nanoparquet::write_parquet(data, path, row_groups = starts)
  path
}

test_that("a Parquet file has the total of its data frame, whatever its row groups are", {
  skip_on_cran() # takes long; `make test` runs it
  skip_if_not_installed("nanoparquet")
  typed <- transform(records, g = factor(g), k = sample(3L, n, TRUE), l = y > 0, day = Sys.Date())
  kinds <- stat_crossprod(y ~ x + g + k + l, list(y = c(-10, 10), x = c(0, 1), g = unique(records$g), k = c(0, 2.5), l = c(FALSE, TRUE)))
  whole <- partial_total(typed, kinds, laplace)
  set.seed(4)
  for (groups in c(1, 2, 5, 9, 20)) {
    starts <- sort(c(1L, sample(2:n, groups - 1)))
    expect_identical(partial_total(record_source(written_parquet(typed, starts)), kinds, laplace), whole)
  }
  # known by its bytes; several files, text among them; columns in another order
  expect_identical(partial_total(record_source(written_parquet(typed, name = ".data")), kinds, laplace), whole)
  halves <- c(written_parquet(as_text[1:90, ], c(1L, 50L)), written(as_text[91:200, ]), written_parquet(as_text[201:250, c(3, 1, 2)]))
  expect_identical(total(record_source(halves, rows = 60)), total(as_text))
  # no records, a number of records that has to be known, what users have set
  expect_identical(total(record_source(c(halves, written_parquet(as_text[0, ])))), total(as_text))
  expect_identical(total(record_source(written_parquet(as_text[0, ])), neighbours = "add_remove"), total(as_text[0, ], neighbours = "add_remove"))
  expect_identical(release(record_source(halves), st, mech_laplace(scale = 1e-6))$n, 250)
  withr::local_options(nanoparquet.read_int64_type = "integer64", nanoparquet.class = "tbl")
  expect_identical(partial_total(record_source(written_parquet(typed, c(1L, 90L))), kinds, laplace), whole)
})

test_that("bad Parquet files are refused without a word of a record", {
  skip_on_cran()
  skip_if_not_installed("nanoparquet")
  refused <- function(data, starts = c(1L, 101L)) {
    tryCatch(total(record_source(if (is.data.frame(data)) written_parquet(data, starts) else data)), error = identity)
  }
  missing <- refused(transform(as_text, y = replace(y, 177, NA)))
  expect_s3_class(missing, "noiseaware_error_missing")
  expect_match(paste(message_lines(missing), collapse = " "), "row 77.*row group 2 of ")
  for (starts in list(1L, c(1L, 90L))) {
    expect_s3_class(refused(as_text["y"], starts), "noiseaware_error_data")
    expect_s3_class(refused(transform(as_text, y = "secret"), starts), "noiseaware_error_data")
    undeclared <- refused(transform(as_text, g = replace(g, 99, "secret")), starts)
    expect_s3_class(undeclared, "noiseaware_error_levels")
    expect_no_match(paste(message_lines(undeclared), collapse = " "), "secret")
  }
  expect_s3_class(refused(cbind(as_text, y = 1)), "noiseaware_error_data")
  # cut short, and of another format
  whole <- written_parquet(as_text)
  short <- withr::local_tempfile(fileext = ".parquet")
  writeBin(readBin(whole, "raw", file.size(whole) - 200), short)
  expect_s3_class(refused(short), "noiseaware_error_file")
  text <- withr::local_tempfile(fileext = ".parquet")
  writeLines("secret 123", text)
  expect_s3_class(refused(text), "noiseaware_error_file")
  expect_no_match(paste(message_lines(refused(text)), collapse = " "), "secret")
})

test_that("files are read in processes of their own", {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not_installed("future")
  future::plan(future::multicore, workers = 2)
  withr::defer(future::plan(future::sequential))
  halves <- c(written(as_text[1:90, ]), written(as_text[91:250, ]))
  expect_identical(total(record_source(halves, rows = 60)), total(read.csv(written(as_text))))
})

test_that("a function gives chunks", {
  at <- 0
  chunks <- record_source(function() {
    at <<- at + 1
    if (at <= 5) records[(at - 1) * 50 + 1:50, ]
  })
  expect_identical(total(chunks), total(records))
  expect_error(total(chunks), class = "noiseaware_error_data") # there are no more
  expect_error(total(record_source(function() stop("secret 123.456"))), class = "noiseaware_error_data")
  expect_no_match(paste(message_lines(tryCatch(total(record_source(function() stop("secret 123.456"))), error = identity)), collapse = ""), "secret|123")
  expect_error(total(record_source(function() 3)), class = "noiseaware_error_data")
  for (bad in list(3, NULL, function(a) a)) expect_error(record_source(bad), class = "noiseaware_error_argument")
})

test_that("a stream of Arrow gives batches", {
  skip_on_cran()
  skip_if_not_installed("nanoarrow")
  typed <- transform(records, g = factor(g), k = sample(3L, n, TRUE), l = y > 0, day = Sys.Date())
  kinds <- stat_crossprod(y ~ x + g + k + l, list(y = c(-10, 10), x = c(0, 1), g = unique(records$g), k = c(0, 2.5), l = c(FALSE, TRUE)))
  stream <- function(data, starts = 1L) {
    ends <- c(starts[-1L] - 1L, nrow(data))
    nanoarrow::basic_array_stream(Map(function(from, to) nanoarrow::as_nanoarrow_array(data[seq_len(nrow(data)) >= from & seq_len(nrow(data)) <= to, ]), starts, ends))
  }
  whole <- partial_total(typed, kinds, laplace)
  set.seed(5)
  for (batches in c(1, 2, 5, 9, 20)) expect_identical(partial_total(stream(typed, sort(c(1L, sample(2:n, batches - 1)))), kinds, laplace), whole)
  expect_identical(release(stream(records, c(1L, 90L)), st, laplace)[c("n", "scale", "noise")], release(records, st, laplace)[c("n", "scale", "noise")])
  # no batch at all, and one without records
  schema <- nanoarrow::infer_nanoarrow_schema(records)
  for (none in list(nanoarrow::basic_array_stream(list(), schema), stream(records[0, ]))) {
    expect_identical(total(none, neighbours = "add_remove"), total(records[0, ], neighbours = "add_remove"))
  }
  # noisy records
  noisy <- stat_records(~ y + x)
  noise <- mech_record_noise(sd = c(y = 1, x = 0.1))
  expect_equal(as_release(stream(records, c(1L, 60L)), noisy, noise), as_release(records, noisy, noise))
  holes <- transform(records, x = replace(x, 120, NA))
  expect_error(total(stream(holes, c(1L, 101L))), "chunk 2", class = "noiseaware_error_missing")
  once <- stream(records)
  total(once)
  expect_error(total(once), "read only once", class = "noiseaware_error_data")
  expect_error(release(stream(records), st, mech_laplace(scale = 1e-6)), class = "noiseaware_error_partial")
})

test_that("little noise needs the number of records: files are read twice", {
  fine <- mech_laplace(scale = 1e-6)
  path <- written(as_text)
  expect_identical(release(record_source(c(path, path), rows = 100), st, fine)$n, 500)
  expect_error(release(record_source(function() NULL), st, fine), class = "noiseaware_error_partial")
})

test_that("bad files are refused without a word of a record", {
  skip_on_cran()
  local_reproducible_output()
  secret <- as_text
  secret$y[77] <- NA
  missing <- written(secret)
  secret$y <- as.character(secret$y)
  secret$y[78] <- "secret"
  not_number <- written(secret)
  undeclared <- written(transform(as_text, g = replace(g, 99, "secret")))
  short <- withr::local_tempfile()
  writeLines(c("y,g,x", "1,a,0.5", "secret,7"), short)
  data <- function(path) record_source(path, rows = 40)
  account <- budget(epsilon = 2)
  release_from <- function(path) release(data(path), st, laplace, budget = account)
  expect_error(release_from(missing), "row 37", class = "noiseaware_error_missing")
  expect_error(release_from(not_number), class = "noiseaware_error_file")
  expect_error(release_from(undeclared), class = "noiseaware_error_levels")
  expect_error(release_from(short), class = "noiseaware_error_file")
  expect_error(release_from(written(as_text[-1])), class = "noiseaware_error_data")
  expect_error(release_from(written(cbind(as_text, y = 1))), class = "noiseaware_error_data")
  for (path in c(not_number, undeclared, short)) {
    said <- message_lines(tryCatch(release_from(path), error = identity))
    expect_no_match(paste(said, collapse = " "), "secret")
  }
  expect_identical(nrow(summary(account)), 0L)
  said <- message_lines(tryCatch(release_from(missing), error = identity))
  expect_match(paste(said, collapse = " "), "This concerns rows 41 and following of")
  expect_error(record_source("absent.csv"), class = "noiseaware_error_file")
  for (bad in list(3, character(), NA_character_)) expect_error(record_source(bad), class = "noiseaware_error_argument")
  expect_error(record_source(missing, sep = ""), class = "noiseaware_error_argument")
  expect_error(record_source(missing, rows = 0), class = "noiseaware_error_argument")
  expect_output(print(data(missing)), "40 at a time")
  expect_output(print(record_source(function() NULL)), "chunk by chunk")
})

# bytes as a file
bytes_file <- function(bytes, extension = ".csv", frame = parent.frame()) {
  path <- withr::local_tempfile(fileext = extension, .local_envir = frame)
  writeBin(if (is.raw(bytes)) bytes else charToRaw(bytes), path)
  path
}
both <- list(x = stat_sums(~ x, list(x = c(-100, 100))), g = stat_counts(~ g, list(g = c("a", "b"))))
both_total <- function(bytes, ...) partial_total(record_source(bytes_file(bytes), ...), both, list(x = laplace, g = laplace), neighbours = "add_remove")

test_that("one line is one record, or is refused by its number", {
  skip_on_cran() # takes long; `make test` runs it
  refused <- function(text, what, rows = 1) {
    said <- expect_error(both_total(text, rows = rows), class = "noiseaware_error_file")
    expect_match(paste(message_lines(said), collapse = " "), what)
    expect_no_match(gsub("file[0-9a-f]+|Line [23]", "", paste(message_lines(said), collapse = " ")), "[47]")
  }
  for (rows in c(1, 100)) {
    refused("x,g\n1,a\n4,7,b\n", "Line 3 has 3 fields", rows)
    refused("x,g\n1,a,7,b,a\n", "Line 2 has 5 fields", rows)
    refused("x,g\n1\n", "Line 2 has 1 field", rows)
    refused("x,g\n\n\n1,a\n", "Line 2 has 0 fields", rows)
    refused("x,g\n1,a\n\n", "Line 3 has 0 fields", rows)
    refused("x,g\n1,a\n1,\"b\n1,b\"\n", "Line 3 has a quote that is not closed", rows)
    refused("x,g\n1,a\n1,\"b\n", "Line 3 has a quote that is not closed", rows)
    for (bad in c("4 7", "0x4", "4e", "1,4", "4d1", "1L", "--4", "4-", "4.4.4")) refused(paste0("x,g\n1,a\n\"", bad, "\",a\n"), "Line 3 lacks a number", rows)
    for (within in c("\"a\"b", "b\"a\"", "\"\"a", "a\"\"", "\"a\" ")) refused(paste0("x,g\n1,a\n4,", within, "\n"), "Line 3 has a quote inside", rows)
    refused("x,g\n1,a\n47,b", "last line has no line break", rows)
    refused("x,g\r1,a\r", "last line has no line break", rows)
    refused("x,g\n1,a\n4,b\r7,b\n", "Line 3 has a zero byte, or another kind of line break", rows)
    refused(as.raw(c(charToRaw("x,g\n1,a\n4"), 0, charToRaw(",b\n"))), "Line 3 has a zero byte", rows)
  }
  one <- stat_sums(~ x, list(x = c(0, 100)))
  for (text in c("x\n0,5\n", "x\n1\n \n", "x\n1\n\n2\n")) {
    expect_error(partial_total(record_source(bytes_file(text)), one, laplace, neighbours = "add_remove"), class = "noiseaware_error")
  }
  # numbers as they are written; line breaks of Windows; a byte order mark
  sum_of <- function(part) part$totals[[1]] %*% c(1e9, 1) * part$unit[[1]]
  right <- both_total("\ufeffx,g\r\n 1 ,a\r\n\"-2.5\",\"b\"\r\n.5e1,b\r\n-Inf,a\r\n+3.,a\r\n", rows = 2)
  expect_identical(c(right$n, sum_of(right)), c(5, 1 - 2.5 + 5 - 100 + 3))
  expect_error(both_total("x,g\n ,a\n"), class = "noiseaware_error_missing")
  expect_error(both_total("x,g\nNaN,a\n"), class = "noiseaware_error_missing")
})

test_that("a file with any bytes changed is read as it is written, or refused", {
  skip_on_cran()
  # what a line means
  field <- "(\"([^\"]|\"\")*\"|[^\",]*)"
  line <- paste0("^", field, ",", field, "$")
  unquoted <- function(x) ifelse(startsWith(x, "\""), gsub("\"\"", "\"", substring(x, 2, nchar(x) - 1)), x)
  meaning <- function(text) {
    lines <- sub("\r$", "", strsplit(text, "\n", fixed = TRUE)[[1]])
    if (!endsWith(text, "\n") || any(grepl("\r", lines)) || !all(grepl(line, lines)) || !lines[1] %in% c("x,g", "\"x\",g")) return(NULL)
    x <- unquoted(sub(line, "\\1", lines[-1]))
    g <- unquoted(sub(line, "\\3", lines[-1]))
    if (!all(grepl("^ *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)? *$", x, ignore.case = TRUE)) || !all(g %in% c("a", "b"))) return(NULL)
    c(length(x), sum(pmin(pmax(as.numeric(x), -100), 100)), sum(g == "a"))
  }
  set.seed(8)
  seen <- c(read = 0, refused = 0)
  changes <- c("", ",", "\"", "\n", "\r\n", "\r", " ", ".", "-", "e", "x", "7", "a", ";", "#", "'", "\\", "\n\n", "\"\"")
  for (k in 1:152) {
    whole <- strsplit("x,g\n1,a\n-2.5,\"b\"\n\"3\",a\n4e1,b\n", "")[[1]]
    # every other change is one of a number, after which more can be read
    at <- sample(if (k %% 2 == 0) which(whole %in% 0:9) else 5:length(whole), 1)
    whole[at] <- rep_len(changes, k)[k]
    text <- paste(whole, collapse = "")
    read <- function() both_total(text, rows = sample(3, 1))
    got <- tryCatch(if (k <= 38) read() else without_words(read()), noiseaware_error = function(e) NULL)
    told <- if (!is.null(got)) c(got$n, got$totals[[1]] %*% c(1e9, 1) * got$unit[[1]], got$totals[[2]][1, ] %*% c(1e9, 1) * got$unit[[2]][1])
    expect_equal(told, meaning(text), tolerance = 1e-6, label = encodeString(text))
    seen <- seen + c(!is.null(told), is.null(told))
  }
  expect_true(all(seen > 12))
})

memory_gzip <- function(bytes) {
  path <- withr::local_tempfile()
  con <- gzfile(path, "wb")
  writeBin(bytes, con)
  close(con)
  readBin(path, "raw", 1e6)
}

test_that("compressed files that are cut short or damaged are refused", {
  skip_on_cran()
  set.seed(5)
  text <- charToRaw(paste0("x,g\n", paste0(round(rnorm(3000), 4), ",", c("a", "b"), "\n", collapse = "")))
  whole <- both_total(text)
  for (type in c("gzip", "xz")) {
    compressed <- withr::local_tempfile()
    con <- (if (type == "gzip") gzfile else xzfile)(compressed, "wb")
    writeBin(text, con)
    close(con)
    bytes <- readBin(compressed, "raw", 1e6)
    expect_identical(both_total(bytes, rows = 700), whole)
    for (share in c(0.1, 0.5, 0.9, 0.99, 1 - 4 / length(bytes))) {
      expect_error(both_total(bytes[seq_len(share * length(bytes))]), class = "noiseaware_error_file")
    }
    for (at in sample(20:(length(bytes) - 20), 5)) {
      damaged <- replace(bytes, at, xor(bytes[at], as.raw(4)))
      expect_error(both_total(damaged), class = "noiseaware_error_file")
    }
    # two in one: R reads both, and a gzip file tells only the last one's size
    if (type == "gzip") expect_error(both_total(c(bytes, memory_gzip(text[-(1:4)]))), "several parts", class = "noiseaware_error_file")
  }
  con <- bzfile(compressed, "wb")
  writeBin(text, con)
  close(con)
  expect_error(both_total(readBin(compressed, "raw", 1e6)), "bzip2", class = "noiseaware_error_file")
  # cut where a line happens to end
  con <- gzfile(compressed, "wb", compression = 0)
  writeBin(text, con)
  close(con)
  bytes <- readBin(compressed, "raw", 1e6)
  expect_error(both_total(bytes[seq_len(max(which(bytes[1:20000] == 10)))]), "truncated", class = "noiseaware_error_file")
})

# of this process alone: tests that run alongside share the directory
own_files <- function() grep(sprintf("%x", Sys.getpid()), list.files(tempdir(), recursive = TRUE), value = TRUE, fixed = TRUE)

test_that("no temporary file is written", {
  path <- written(as_text)
  before <- own_files()
  release(record_source(path, rows = 40), st, laplace)
  expect_identical(own_files(), before)
  skip_if_not_installed("nanoparquet")
  path <- written_parquet(as_text, c(1L, 99L))
  before <- own_files()
  release(record_source(path), st, laplace)
  expect_identical(own_files(), before)
})
