# Records that are not in memory: where they are read from, chunk by chunk, and their partial total.

#' Records that are larger than memory
#'
#' [release()] and [partial_total()] take them in place of a data frame. A chunk is read, its integer totals
#' are added up, and it is forgotten; the result does not depend on where chunks begin and end.
#'
#' @param files Names of text files with a header line and fields separated by `sep`, or of Parquet files (which the package nanoparquet reads,
#'   if it is installed), all with the same design; further columns are not kept.
#'   Text files whose names end in `.gz`, `.bz2` or `.xz` are decompressed as they are read.
#' @param sep One character, of text files.
#' @param rows How many records of a text file are read at once. Parquet files are read by their row groups.
#' @param next_chunk A function without arguments that returns a data frame with some records each time it is called, and `NULL` when
#'   there are no more. Whatever reads batches can be behind it, such as a database cursor.
#' @details
#' Files are read one after the other, or at the same time where [future::plan()] says so: each in a process of its own, from
#' which confidential totals come back. A variable with bounds must have numbers, a factor's levels are compared with the text
#' as it is in the file. Fields may be quoted, but may not contain line breaks. `NA` is a missing value, and so is an empty field among
#' numbers. No value of a record gets into an error, nor into a file.
#'
#' **Parquet**: a file is known by its name (`.parquet`) or its first and last bytes. Its columns are taken as those of a data
#' frame are. One row group has to fit in memory; usually it holds 10^5 to 10^6 records. Packages that read other files or sets of files, such as arrow,
#' can be behind [record_chunks()].
#'
#' **Arrow**: [release()], [partial_total()] and [as_release()] take a table, a data set of many files, a query of one, a scanner or a
#' reader of the package arrow, and any stream of the package nanoarrow, which reads them batch by batch and has to be installed. A query that
#' selects the variables spares reading the others. Streams and readers can be read once. Tested with streams of nanoarrow; objects of
#' arrow become such streams, and are not among the tests.
#'
#' With very little noise, or with [stat_custom()], the number of records has to be known before the first is added: files are then read
#' twice, and chunks from a function are refused.
#' @return An object of class `record_files` or `record_chunks`.
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_file`, `noiseaware_error_package` where nanoparquet is missing; and, when records
#'   are read, those of [release()].
#' @examples
#' file <- tempfile(fileext = ".csv")
#' write.csv(MASS::birthwt, file, row.names = FALSE)
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' release(record_files(file, rows = 100), st, mech_laplace(epsilon = 2))
#' @export
record_files <- function(files, sep = ",", rows = 1e6) {
  check_given()
  if (!is.character(files) || length(files) == 0L || anyNA(files)) stop_argument("files", "names of files", describe(files))
  absent <- files[!file.exists(files) | dir.exists(files)]
  if (length(absent)) stop_classed("file", "{.arg files} must be files, but {.file {absent}} {?is/are} not.")
  if (!is.character(sep) || length(sep) != 1L || is.na(sep) || nchar(sep) != 1L) stop_argument("sep", "one character", describe(sep))
  structure(list(files = normalizePath(files), sep = sep, rows = check_count(rows, "rows")), class = "record_files")
}

#' @rdname record_files
#' @export
record_chunks <- function(next_chunk) {
  check_given()
  if (!is.function(next_chunk) || length(needed_arguments(next_chunk)) > 0L) {
    stop_argument("next_chunk", "a function without arguments", describe(next_chunk))
  }
  structure(list(next_chunk = next_chunk), class = "record_chunks")
}

#' @export
print.record_files <- function(x, ...) {
  cat("<records> in ", length(x$files), if (length(x$files) == 1L) " file" else " files", ", ", format(x$rows, big.mark = ","), " at a time\n", sep = "")
  cat(paste0("  ", x$files, "\n"), sep = "")
  invisible(x)
}

#' @export
print.record_chunks <- function(x, ...) {
  cat("<records> from a function, chunk by chunk\n")
  invisible(x)
}

# what nanoarrow makes a stream of batches
arrow_classes <- c("nanoarrow_array_stream", "RecordBatchReader", "ArrowTabular", "Dataset", "Scanner", "arrow_dplyr_query")

# `data` as something that source_total() takes; `none` is a chunk without records
record_source <- function(data, call = caller_env()) {
  if (!inherits(data, arrow_classes)) return(data)
  check_installed("nanoarrow", "reads records of Arrow", call)
  opened <- tryCatch({
    stream <- nanoarrow::as_nanoarrow_array_stream(data)
    list(stream = stream, none = as.data.frame(nanoarrow::infer_nanoarrow_ptype(stream$get_schema())))
  }, error = function(e) {
    stop_classed("data", c("{.arg data} must be records of Arrow, but cannot be read: its message is not shown, because it may quote records.",
                           i = "A stream or a reader can be read once."), call = call)
  })
  structure(list(next_chunk = function() {
    batch <- opened$stream$get_next()
    if (!is.null(batch)) return(as.data.frame(batch))
    opened$stream$release() # read again, it would have no records, and not say why
    NULL
  }, none = opened$none), class = "record_chunks")
}

# a partial total of what `data` stands for
source_total <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) UseMethod("source_total")

#' @export
source_total.default <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  stop_classed("data", "{.arg data} must be a data frame, but is {describe_shape(data)}.", call = call)
}

#' @export
source_total.data.frame <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  frame_total(data, partial_parts(statistic, mechanism, neighbours, n, call), statistic, mechanism, neighbours, call)
}

#' @export
source_total.record_chunks <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  parts <- partial_parts(statistic, mechanism, neighbours, n, call)
  next_chunk <- function() {
    # what another's function says of confidential records is not passed on
    tryCatch(suppressMessages(suppressWarnings(data$next_chunk())), error = function(e) {
      stop_classed("data", c("{.arg next_chunk} failed; its message is not shown, because it may quote records.", i = "Try it on made-up records."), call = call)
    })
  }
  whole <- add_chunks(next_chunk, parts, statistic, mechanism, neighbours, function(k) paste("chunk", k), call)
  if (is.null(whole) && !is.null(data$none)) whole <- frame_total(data$none, parts, statistic, mechanism, neighbours, call)
  whole %||%
    stop_classed("data", "{.arg next_chunk} must return a data frame at least once.", call = call)
}

#' @export
source_total.record_files <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  columns <- release_columns(statistic)
  numbers <- !unique(columns$columns$variable) %in% names(columns$levels)
  numbers <- stats::setNames(numbers, unique(columns$columns$variable))
  parts <- tryCatch(partial_parts(statistic, mechanism, neighbours, n, call), noiseaware_error_partial = function(e) {
    if (!is.null(n)) stop(e)
    count <- sum(vapply(data$files, function(file) count_records(file, data, numbers, call), 0))
    partial_parts(statistic, mechanism, neighbours, max(count, 1), call)
  })
  total_of <- function(file) file_total(file, data, numbers, parts, statistic, mechanism, neighbours, call)
  totals <- if (length(data$files) == 1L || inherits(future::plan("next"), "sequential")) lapply(data$files, total_of) else {
    sent <- lapply(data$files, function(file) {
      future::future(total_of(file), globals = list(total_of = total_of, file = file), packages = "noiseaware", seed = NULL)
    })
    lapply(sent, future::value)
  }
  Reduce(function(a, b) add_partials(a, b, call), totals)
}

# of all data frames that next_chunk() gives, NULL if there is none; place(k) names the k-th in errors
add_chunks <- function(next_chunk, parts, statistic, mechanism, neighbours, place, call) {
  whole <- NULL
  k <- 0
  while (!is.null(data <- next_chunk())) {
    k <- k + 1
    part <- tryCatch(frame_total(data, parts, statistic, mechanism, neighbours, call), noiseaware_error = function(e) refuse_chunk(e, place(k), call))
    whole <- if (is.null(whole)) part else add_partials(whole, part, call)
  }
  whole
}

# the same error, with the place that its rows are counted from
refuse_chunk <- function(e, place, call) {
  top <- e$message
  lines <- e$body
  stop_classed(sub("^noiseaware_error_", "", class(e)[1L]),
               c("{top}", stats::setNames(sprintf("{lines[%d]}", seq_along(lines)), names(lines)), i = "This is of {place}."), call = call)
}

file_total <- function(file, source, numbers, parts, statistic, mechanism, neighbours, call) {
  reader <- open_records(file, source, numbers, call)
  on.exit(reader$close())
  whole <- add_chunks(reader$next_chunk, parts, statistic, mechanism, neighbours, function(k) paste(reader$place(k), "of", basename(file)), call)
  whole %||% frame_total(reader$none, parts, statistic, mechanism, neighbours, call)
}

count_records <- function(file, source, numbers, call) {
  if (is_parquet(file)) return(sum(parquet_groups(file, call)))
  reader <- open_records(file, source, numbers[0L], call)
  on.exit(reader$close())
  count <- 0
  while (!is.null(data <- reader$next_chunk())) count <- count + nrow(data)
  count
}

# What is read from: next_chunk() gives the next records, NULL after the last; place(k) names the k-th chunk; `none` is a chunk
# without records.
open_records <- function(file, source, numbers, call) if (is_parquet(file)) open_parquet(file, names(numbers), call) else open_text(file, source, numbers, call)

# ---- Parquet ---------------------------------------------------------------------------

is_parquet <- function(file) {
  if (grepl("[.]parquet$", file, ignore.case = TRUE)) return(TRUE)
  if (file.size(file) < 12) return(FALSE) # a pipe can be read only once
  connection <- base::file(file, "rb", raw = TRUE)
  on.exit(close(connection))
  is_mark <- function() identical(readBin(connection, "raw", 4L), charToRaw("PAR1"))
  if (!is_mark()) return(FALSE)
  seek(connection, file.size(file) - 4)
  is_mark()
}

# The reader's messages may quote records, so they are left out.
ask_nanoparquet <- function(code, file, call) {
  check_installed("nanoparquet", "reads Parquet files", call)
  tryCatch(suppressMessages(suppressWarnings(code)), error = function(e) {
    stop_classed("file", "{.file {basename(file)}} must be a Parquet file, but cannot be read as one: cut short, or of another format?", call = call)
  })
}

# the number of records of each row group
parquet_groups <- function(file, call) ask_nanoparquet(nanoparquet::read_parquet_metadata(file)$row_groups$num_rows, file, call)

# nanoparquet reads the columns of a whole file, or a row group with all its columns by a function that it does not export.
open_parquet <- function(file, variables, call) {
  groups <- parquet_groups(file, call)
  read_group <- if (length(groups) > 1L) {
    mget("read_parquet_row_group", asNamespace("nanoparquet"), mode = "function", ifnotfound = list(NULL))[[1L]] %||%
      stop_classed("package", c("This version of {.pkg nanoparquet} does not read row groups, and {.file {basename(file)}} has {length(groups)}.",
                                i = other_source), call = call)
  }
  options <- ask_nanoparquet(nanoparquet::parquet_options(class = character(), read_int64_type = "double"), file, call)
  read <- function(k) ask_nanoparquet({
    if (!is.null(read_group)) read_group(file, k - 1L, options) else nanoparquet::read_parquet(file, parquet_columns(file, variables), options)
  }, file, call)
  at <- 0L
  list(close = function() invisible(), none = if (length(groups) == 0L) read(1L), place = function(k) paste("row group", k), next_chunk = function() {
    at <<- at + 1L
    if (at <= length(groups)) read(at)
  })
}

# NULL, all of them, where one is missing, which is refused when the totals are made
parquet_columns <- function(file, variables) {
  columns <- nanoparquet::read_parquet_schema(file)$name
  if (length(variables) && all(variables %in% columns)) variables
}

# ---- text ------------------------------------------------------------------------------

# A connection past the header, and a function that reads the columns named by `numbers` of
# the next rows: as numbers where it is TRUE, else as text. scan() quotes what it cannot read, so its message is left out.
open_text <- function(file, source, numbers, call) {
  connection <- base::file(file, "rt")
  read <- function(what, lines) {
    tryCatch(scan(connection, what, nlines = lines, sep = source$sep, quote = "\"", na.strings = "NA", multi.line = FALSE, quiet = TRUE,
                  comment.char = "", flush = FALSE),
             error = function(e) stop_classed("file", c("A line of {.file {basename(file)}} cannot be read; it is not shown, because it may quote records.",
                                                        i = "Variables with bounds must be numbers, and each line must have as many fields as the header."), call = call),
             warning = function(w) stop_classed("file", "{.file {basename(file)}} ends within a line.", call = call))
  }
  tryCatch({
    header <- read("", 1L)
    absent <- setdiff(names(numbers), header)
    if (length(absent)) {
      stop_classed("data", c("{.arg data} must have every variable of the statistic.", x = "Missing in {.file {basename(file)}}: {.var {absent}}."), call = call)
    }
    twice <- intersect(names(numbers), header[duplicated(header)])
    if (length(twice)) {
      stop_classed("data", "{.arg data} must have one column for each variable, but {.file {basename(file)}} has several named {.var {twice}}.", call = call)
    }
  }, error = function(e) {
    close(connection)
    stop(e)
  })
  what <- stats::setNames(lapply(header, function(name) if (name %in% names(numbers)) (if (numbers[[name]]) 0 else "")), header)
  if (length(numbers) == 0L) what[[1L]] <- ""
  kept <- !vapply(what, is.null, TRUE)
  none <- as.data.frame(lapply(what[kept], `[`, 0L), optional = TRUE)
  place <- function(k) paste("rows", format((k - 1) * source$rows + 1, big.mark = ",", scientific = FALSE), "and following")
  list(close = function() close(connection), none = none, place = place, next_chunk = function() {
    read_rows <- read(what, source$rows)[kept]
    if (length(read_rows[[1L]]) > 0L) as.data.frame(read_rows, optional = TRUE)
  })
}
