# Records that are not in memory: they are read chunk by chunk and added to a partial total.

#' Records that are larger than memory
#'
#' Input for [release()] and [partial_total()] instead of a data frame. Chunks are read one at a time: the integer totals of a chunk are added up, and the chunk
#' is discarded. The result does not depend on where chunks begin and end.
#'
#' @param from Names of text files with a header line and fields separated by `sep`, or of Parquet files (which the package nanoparquet reads,
#'   if it is installed), all with the same columns. Columns that are not needed are not kept. Text files compressed by gzip or xz are decompressed as they
#'   are read. Or a function without arguments that returns a data frame with some records each time it is called, and `NULL` when
#'   there are no more. It can wrap anything that reads batches, such as a database cursor.
#' @param sep The field separator of text files, one character.
#' @param rows Number of records read from a text file at a time. Parquet files are read by row groups.
#' @details
#' Files are read one after the other or, under a parallel [future::plan()], at the same time, each in its own process, which returns confidential totals. A
#' variable with bounds must have numbers; a factor's levels are compared with the text in the file. Each line after the header is one record, with as many
#' fields as the header has, and ends with a line break; numbers have a point as the decimal mark. A file with any other line is an error, which gives the
#' line's number; so is a truncated file. Fields may be quoted, but may not contain line breaks. `NA` is a missing value, and so is an empty field in a numeric
#' column. No value of a record appears in an error or in a file.
#'
#' **Parquet**: a file is recognised by its name (`.parquet`) or its first and last bytes. Its columns are treated like those in a data frame. One row group has
#' to fit in memory; it usually holds 10^5 to 10^6 records. For other files or sets of files, give a function that uses a package such as arrow.
#'
#' **Arrow**: [release()], [partial_total()] and [as_release()] accept a table, a data set of many files, a query of such a data set, a scanner or a reader from
#' the package arrow. They also accept any stream of the package nanoarrow, which reads all of these batch by batch and has to be installed. A query that
#' selects the variables avoids reading the others. Streams and readers can be read only once. The tests use nanoarrow streams; arrow objects are converted to
#' such streams but are not tested themselves.
#'
#' With very little noise, or with [stat_custom()], the number of records has to be known before the first record is added: files are then read twice, and
#' chunks from a function are an error.
#' @return An object of class `record_files` or `record_chunks`, for [release()], [partial_total()] and [as_release()].
#' @section Errors: `noiseaware_error_argument`, `noiseaware_error_file`, `noiseaware_error_package` if nanoparquet is missing; and, when records are read, the
#'   errors of [release()].
#' @family making releases
#' @examples
#' file <- tempfile(fileext = ".csv")
#' write.csv(MASS::birthwt, file, row.names = FALSE)
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' release(record_source(file, rows = 100), st, mech_laplace(epsilon = 2))
#' @export
record_source <- function(from, sep = ",", rows = 1e6) {
  check_given()
  if (is.function(from) && length(needed_arguments(from)) == 0L) return(structure(list(next_chunk = from), class = "record_chunks"))
  if (!is.character(from) || length(from) == 0L || anyNA(from)) stop_argument("from", "names of files, or a function without arguments", describe(from))
  absent <- from[!file.exists(from) | dir.exists(from)]
  if (length(absent)) stop_classed("file", "{.arg from} must be files, but {.file {absent}} {?is/are} not.")
  if (!is.character(sep) || length(sep) != 1L || is.na(sep) || nchar(sep) != 1L) stop_argument("sep", "one character", describe(sep))
  structure(list(files = normalizePath(from), sep = sep, rows = check_count(rows, "rows")), class = "record_files")
}

#' @export
print.record_files <- function(x, ...) {
  cat("<records> in ", length(x$files), if (length(x$files) == 1L) " file" else " files", ", ",
      format(x$rows, big.mark = ",", decimal.mark = "."), " at a time\n", sep = "")
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
readable_source <- function(data, call = caller_env()) {
  if (!inherits(data, arrow_classes)) return(data)
  check_installed("nanoarrow", "reads Arrow records", call)
  opened <- tryCatch({
    stream <- nanoarrow::as_nanoarrow_array_stream(data)
    list(stream = stream, none = as.data.frame(nanoarrow::infer_nanoarrow_ptype(stream$get_schema())))
  }, error = function(e) {
    stop_classed("data", c("{.arg data} must be Arrow records, but cannot be read; the message is not shown, because it may quote records.",
                           i = "A stream or a reader can be read only once."), call = call)
  })
  structure(list(next_chunk = function() {
    batch <- opened$stream$get_next()
    if (!is.null(batch)) return(as.data.frame(batch))
    opened$stream$release() # read again, it would have no records, and not say why
    NULL
  }, none = opened$none), class = "record_chunks")
}

# a partial total of the records that `data` gives access to
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
  whole <- add_chunks(careful_chunks(data, call), parts, statistic, mechanism, neighbours, function(k) paste("chunk", k), call)
  if (is.null(whole) && !is.null(data$none)) whole <- frame_total(data$none, parts, statistic, mechanism, neighbours, call)
  whole %||% stop_no_chunk(call)
}

# the chunks of a function; what it says of confidential records is not passed on
careful_chunks <- function(data, call) {
  function() {
    tryCatch(suppressMessages(suppressWarnings(data$next_chunk())), error = function(e) {
      stop_classed("data", c("The function of {.fn record_source} failed; its message is not shown, because it may quote records.",
                             i = "Try it on made-up records."), call = call)
    })
  }
}

stop_no_chunk <- function(call) stop_classed("data", "The function of {.fn record_source} must return a data frame at least once.", call = call)

# the variables of the records that a statistic needs: TRUE for numbers
source_variables <- function(statistic) {
  columns <- release_columns(of_raw_variables(statistic))
  needed_variables(columns$columns, columns$levels, columns$functions)
}

#' @export
source_total.record_files <- function(data, statistic, mechanism, neighbours, n = NULL, call = caller_env()) {
  numbers <- source_variables(statistic)
  parts <- tryCatch(partial_parts(statistic, mechanism, neighbours, n, call), noiseaware_error_partial = function(e) {
    if (!is.null(n)) stop(e)
    count <- sum(vapply(data$files, function(file) count_records(file, data, numbers, call), 0))
    partial_parts(statistic, mechanism, neighbours, max(count, 1), call)
  })
  chosen <- stats::setNames(data$chosen, if (!is.null(data$chosen)) data$files)
  total_of <- function(file) file_total(file, data, numbers, parts, statistic, mechanism, neighbours, call, chosen[[file]])
  totals <- if (length(data$files) == 1L || plan_is_sequential()) lapply(data$files, total_of) else {
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
               c("{top}", stats::setNames(sprintf("{lines[%d]}", seq_along(lines)), names(lines)), i = "This concerns {place}."), call = call)
}

# The reader of a file without the records that were not chosen.
chosen_reader <- function(reader, chosen) {
  if (is.null(chosen)) return(reader)
  all <- reader$next_chunk
  done <- 0
  reader$next_chunk <- function() {
    chunk <- all()
    if (is.null(chunk)) return(NULL)
    rows <- done + seq_len(nrow(chunk))
    done <<- done + nrow(chunk)
    chunk[chosen[rows], , drop = FALSE]
  }
  reader
}

# `chosen`: which of its records are used, NULL for all
file_total <- function(file, source, numbers, parts, statistic, mechanism, neighbours, call, chosen = NULL) {
  reader <- chosen_reader(open_records(file, source, numbers, call), chosen)
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
    stop_classed("file", "{.file {basename(file)}} must be a Parquet file, but cannot be read: is it truncated, or in another format?", call = call)
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

# ---- text: one line, one record ----------------------------------------------------------

text_block <- 2^22 # bytes that are read at once
line_end <- as.raw(10L)

refuse_text <- function(file, why, call, hint = NULL) {
  stop_classed("file", c("{.file {basename(file)}} cannot be read; no part of it is shown, because it may quote records.", x = "{why}", i = hint), call = call)
}

# Lines of a file that may be compressed: a function that gives the bytes of the next lines, `most` of them if there are so many, and NULL
# at the end of a file that is whole.
line_reader <- function(file, connection, call) {
  block <- raw()
  ends <- integer()
  used <- start <- 0L
  read <- function() {
    # what R says of compressed bytes that are damaged
    refuse <- function(condition) refuse_text(file, "It is damaged or truncated.", call)
    tryCatch(readBin(connection, "raw", text_block), error = refuse, warning = refuse)
  }
  function(most) {
    while (used == length(ends)) {
      more <- read()
      if (length(more) == 0L) {
        check_complete(file, connection, start == length(block), call)
        return(NULL)
      }
      block <<- c(block[seq_len(length(block) - start) + start], more)
      ends <<- which(block == line_end)
      used <<- start <<- 0L
    }
    from <- start + 1L
    used <<- as.integer(min(used + most, length(ends)))
    start <<- ends[used]
    block[from:start]
  }
}

# R reads a gzip file that was cut as if it ended there; its last four bytes say how many there were.
check_complete <- function(file, connection, at_line_end, call) {
  if (!at_line_end) {
    refuse_text(file, "Its last line has no line break: is the file truncated?", call, "If it is complete, add a line break.")
  }
  if (!identical(first_bytes(file, 2L), as.raw(c(0x1f, 0x8b)))) return(invisible())
  size <- file.size(file)
  last <- base::file(file, "rb", raw = TRUE)
  on.exit(close(last))
  seek(last, size - 4)
  told <- sum(as.integer(readBin(last, "raw", 4L)) * 256^(0:3))
  if (told != seek(connection) %% 2^32) {
    refuse_text(file, "It is truncated, or has several parts that were compressed separately.", call,
                "Supply uncompressed files, or each part separately.")
  }
}

first_bytes <- function(file, count) {
  connection <- base::file(file, "rb", raw = TRUE)
  on.exit(close(connection))
  readBin(connection, "raw", count)
}

# The columns named by `numbers`, as numbers where it is TRUE, else as text.
open_text <- function(file, source, numbers, call) {
  if (identical(first_bytes(file, 3L), charToRaw("BZh"))) {
    refuse_text(file, "R does not detect damaged or truncated bzip2 files.", call, "Decompress it, or compress it with gzip or xz.")
  }
  connection <- gzfile(file, "rb")
  next_lines <- line_reader(file, connection, call)
  done <- 0 # lines
  scan_lines <- function(bytes, what) {
    lines <- rawConnection(bytes)
    on.exit(close(lines))
    scan(lines, what, sep = source$sep, quote = "\"", na.strings = "NA", multi.line = FALSE, quiet = TRUE, comment.char = "",
         encoding = if (validUTF8(rawToChar(bytes))) "UTF-8" else "unknown")
  }
  read_header <- function() {
    bytes <- next_lines(1)
    if (is.null(bytes)) return(NULL)
    done <<- check_lines(bytes, 0L, done, source$sep, file, call)
    scan_lines(bytes, "")
  }
  read <- function(most) {
    bytes <- next_lines(most)
    if (is.null(bytes)) return(NULL)
    count <- check_lines(bytes, length(what), done, source$sep, file, call)
    records <- scan_lines(bytes, what)
    if (any(lengths(records[kept]) != count)) {
      refuse_text(file, paste0("One of the lines ", done + 1, " to ", done + count, " contains only spaces, or nothing but quotation marks."), call)
    }
    for (name in names(which(numbers))) records[[name]] <- strict_numbers(records[[name]], done, file, call)
    done <<- done + count
    records
  }
  tryCatch({
    header <- read_header() %||% character()
    if (length(header)) header[1L] <- sub("^\ufeff", "", header[1L])
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
  what <- stats::setNames(lapply(header, function(name) if (name %in% names(numbers)) ""), header)
  if (length(numbers) == 0L) what[1L] <- list("")
  kept <- !vapply(what, is.null, TRUE)
  none <- as.data.frame(lapply(stats::setNames(nm = names(what)[kept]), function(name) if (isTRUE(numbers[name])) double() else character()), optional = TRUE)
  first <- double() # rows before each chunk
  place <- function(k) paste("rows", format(first[k] + 1, big.mark = ",", decimal.mark = ".", scientific = FALSE), "and following")
  list(close = function() close(connection), none = none, place = place, next_chunk = function() {
    first <<- c(first, done - 1)
    records <- read(source$rows)
    if (!is.null(records)) as.data.frame(records[kept], optional = TRUE)
  })
}

# How many lines, each with `fields` fields (0: any number of them); a refusal names the first that has not.
check_lines <- function(bytes, fields, done, sep, file, call) {
  lines <- sum(bytes == line_end)
  strange <- which(bytes == 0L | bytes == 13L & c(bytes[-1L], line_end) != line_end)
  if (length(strange)) {
    refuse_text(file, paste0("Line ", done + sum(bytes[seq_len(strange[1L])] == line_end) + 1,
                             " has a zero byte, or another kind of line break than the last line."), call)
  }
  connection <- rawConnection(bytes)
  on.exit(close(connection))
  counts <- utils::count.fields(connection, sep = sep, quote = "\"", blank.lines.skip = FALSE, comment.char = "")
  length(counts) <- lines # a quote that does not end takes what follows
  bad <- which(is.na(counts) | counts == 0L | fields > 0L & counts != fields)
  if (length(bad) == 0L) {
    within <- quote_within(bytes, charToRaw(sep))
    if (is.na(within)) return(lines)
    refuse_text(file, paste0("Line ", done + sum(bytes[seq_len(within)] == line_end) + 1, " has a quote inside a field."), call,
                "It must be doubled, in a field with quotes around it.")
  }
  at <- bad[1L]
  has <- if (is.na(counts[at])) "a quote that is not closed" else if (counts[at] == 1L) "1 field" else paste(counts[at], "fields")
  if (fields == 0L) fields <- "one or more"
  refuse_text(file, paste0("Line ", format(done + at, big.mark = ",", decimal.mark = ".", scientific = FALSE), " has ", has, ", and must have ", fields, "."), call,
              "Each line must be one record, with as many fields as the header.")
}

# The first quote that neither begins nor ends a field, nor is doubled; every line has an even number of them. NA if there is none.
quote_within <- function(bytes, sep) {
  at <- which(bytes == 0x22L)
  if (length(at) == 0L) return(NA)
  opens <- seq_along(at) %% 2L == 1L
  beside <- c(line_end, bytes)[ifelse(opens, at, at + 2L)]
  beside[at == length(bytes) & !opens] <- line_end
  ends <- beside == line_end | beside == 0x0dL & !opens | beside == 0x22L | beside == sep[1L]
  at[!ends][1L]
}

number_text <- "^ *([+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|-?Inf|NaN|NA)? *$"

# scan() and as.double() take more: "1 2" for 12, hexadecimal numbers, an exponent without digits
strict_numbers <- function(text, done, file, call) {
  bad <- which(!is.na(text) & !grepl(number_text, text, perl = TRUE))
  if (length(bad) == 0L) return(suppressWarnings(as.double(text)))
  refuse_text(file, paste0("Line ", format(done + bad[1L], big.mark = ",", decimal.mark = ".", scientific = FALSE), " lacks a number where one is required."), call,
              "Variables with bounds must be numbers, with a point as the decimal mark.")
}

other_source <- "A function given to {.fn record_source} can read records from any source."
