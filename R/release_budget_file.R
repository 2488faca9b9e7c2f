# The account of budget(file = ): JSON lines, a header with the limit and then a line for each expense. Lines are only ever added. The holder of the file's
# lock reads, decides and writes before anyone else.

ledger_format <- "noiseaware budget"
ledger_version <- 2L

# A new file gets the limit; one that is there has it.
file_budget <- function(file, limit, call = caller_env()) {
  check_path(file, call)
  if (!dir.exists(dirname(file))) stop_classed("file", "Cannot write {.file {file}}: there is no directory {.file {dirname(file)}}.", call = call)
  if (dir.exists(file)) stop_classed("file", "{.file {file}} must be a file, but is a directory.", call = call)
  file <- file.path(normalizePath(dirname(file)), basename(file))
  given <- !is.null(limit$epsilon) || !is.null(limit$rho)
  if (!given && !file.exists(file)) stop_classed("budget", "There is no file {.file {file}}; a new budget needs a limit, {.arg epsilon} or {.arg rho}.", call = call)
  lock <- lock_file(file, create = given, call = call)
  on.exit(unlock_file(lock))
  if (lock$new && !append_whole(paste0(ledger_header(limit), "\n"), file)) {
    unlink(file)
    stop_classed("file", "Cannot write to {.file {file}}; is there space left?", call = call)
  }
  stored <- read_ledger(file, call)$limit
  check_same_limit(stored, limit, given, file, call)
  account <- new_budget(stored)
  account$file <- file
  account
}

check_same_limit <- function(stored, limit, given, name, call) {
  if (!given || identical(stored, limit)) return(invisible())
  stop_classed("budget", "The limit in {.file {name}} is {format_limit(stored)}, but the limit given is {format_limit(limit)}.", call = call)
}

# ---- the lock ----------------------------------------------------------------------------

# The operating system's, on the file and not on its name: see src/release/file_lock.c.

# Waits its turn, for `patience` seconds. `new`: was the file created?
lock_file <- function(file, create = FALSE, patience = 60, call = caller_env()) {
  until <- proc.time()[["elapsed"]] + patience
  pause <- 0.002
  seen_empty <- FALSE
  repeat {
    taken <- .Call(ffi_lock_file, path.expand(file), create)
    lock <- list(handle = taken$lock, new = taken$answer == "new")
    # who has just created it may not have locked it yet
    early <- taken$answer == "locked" && !seen_empty && file.size(file) %in% 0
    if (!is.null(taken$lock) && !early) return(lock)
    if (early) {
      seen_empty <- TRUE
      pause <- 0.2
      unlock_file(lock)
    }
    if (taken$answer == "failed") {
      stop_classed("file", c("Cannot lock {.file {file}}.",
                             i = "Does it exist, do you have permission to write to it, and does its file system have locks?"), call = call)
    }
    if (proc.time()[["elapsed"]] > until) {
      stop_classed("budget", "The budget {.file {file}} is in use by another process; nothing is released.", call = call)
    }
    Sys.sleep(pause)
    pause <- min(2 * pause, 0.02)
  }
}

unlock_file <- function(lock) invisible(.Call(ffi_unlock_file, lock$handle))

# ---- the account -------------------------------------------------------------------------

ledger_header <- function(limit) {
  numbers <- Filter(Negate(is.null), limit[c("epsilon", "delta", "rho")])
  numbers <- lapply(numbers, function(v) structure(exact_text(v), class = "json"))
  jsonlite::toJSON(list(format = ledger_format, version = ledger_version, limit = c(numbers, limit["composition"][!is.null(limit$composition)], limit["neighbours"])),
                   auto_unbox = TRUE, json_verbatim = TRUE)
}

expense_columns <- c("epsilon", "delta", "rho")

expense_entry <- function(expense) {
  numbers <- lapply(expense[expense_columns], function(v) structure(if (is.na(v)) "null" else exact_text(v), class = "json"))
  jsonlite::toJSON(c(list(what = expense$what), numbers), auto_unbox = TRUE, json_verbatim = TRUE)
}

add_file_expense <- function(file, entry, call) {
  if (!append_whole(paste0(entry, "\n"), file)) {
    stop_classed("file", "Cannot add to {.file {file}}; is there space left? Nothing is released.", call = call)
  }
}

# a list of the limit and what was spent
read_ledger <- function(file, call = caller_env()) parse_ledger(ledger_lines(file, call), file, call)

parse_ledger <- function(lines, file, call) {
  parsed <- lapply(lines, function(line) tryCatch(jsonlite::parse_json(line), error = function(e) NULL))
  header <- parsed[[1L]]
  if (!is.list(header) || !identical(header$format, ledger_format) || !(is_number(header$version) && header$version %in% seq_len(ledger_version))) {
    refuse_ledger(file, paste0("Its first line must have the format \"", ledger_format, "\" and a version from 1 to ", ledger_version, "."), call)
  }
  limit <- ledger_limit(header)
  if (is.null(limit)) refuse_ledger(file, "Its first line has no limit that a budget can have.", call)
  expenses <- parsed[-1L]
  broken <- which(!vapply(expenses, is_expense, TRUE))
  if (length(broken)) refuse_ledger(file, paste0("Line ", broken[1L] + 1L, " is not an expense."), call)
  spent <- lapply(stats::setNames(nm = expense_columns), function(name) vapply(expenses, function(line) ledger_number(line[[name]]) %||% NA_real_, 0))
  list(limit = limit, spent = data.frame(what = vapply(expenses, `[[`, "", "what"), spent))
}

# as budget() made it; NULL if it made no such limit
ledger_limit <- function(header) {
  given <- header$limit
  if (header$version == 1L && is.list(given)) given$neighbours <- "replace"
  if (!has_limit_names(given) || !has_limit_values(given)) return(NULL)
  list(epsilon = ledger_number(given$epsilon), delta = ledger_number(given$delta), rho = ledger_number(given$rho),
       composition = given$composition, neighbours = given$neighbours)
}

has_limit_names <- function(given) {
  kinds <- list(c("epsilon", "neighbours"), c("epsilon", "delta", "composition", "neighbours"), c("rho", "neighbours"))
  is.list(given) && !anyDuplicated(names(given)) && !any(lengths(given) == 0L) && any(vapply(kinds, setequal, TRUE, names(given)))
}

has_limit_values <- function(given) {
  positive <- function(v) is.null(v) || checkmate::test_number(v, finite = TRUE) && v > 0
  all(vapply(given[c("epsilon", "rho", "delta")], positive, TRUE)) && isTRUE((given$delta %||% 0) < 1) &&
    checkmate::test_choice(given$composition, c("concentrated", "basic"), null.ok = TRUE) && checkmate::test_choice(given$neighbours, names(neighbours_text))
}

# A line that was cut short may record something that was
# published, so it is not passed over.
ledger_lines <- function(file, call) {
  bytes <- if (file.exists(file)) read_bytes(file, file.size(file))
  if (is.null(bytes)) stop_classed("file", "Cannot read {.file {file}}. Does it exist, and do you have permission to read it?", call = call)
  if (length(bytes) == 0L || bytes[length(bytes)] != charToRaw("\n") || any(bytes == 0L) || !validUTF8(rawToChar(bytes))) {
    refuse_ledger(file, "It does not end with a whole line of text.", call)
  }
  lines <- strsplit(rawToChar(bytes), "\n", fixed = TRUE)[[1L]]
  Encoding(lines) <- "UTF-8"
  lines
}

ledger_number <- function(v) if (is.numeric(v)) as.double(v)

is_expense <- function(line) {
  is.list(line) && identical(names(line), c("what", expense_columns)) && checkmate::test_string(line$what) &&
    all(vapply(line[expense_columns], function(v) is.null(v) || checkmate::test_number(v, lower = 0, finite = TRUE), TRUE)) &&
    any(lengths(line[c("epsilon", "rho")]) > 0L)
}

refuse_ledger <- function(file, message, call) {
  stop_classed("budget", c("{.file {file}} is not a complete budget; nothing is released.", x = "{message}"), call = call)
}

new_budget <- function(limit) {
  account <- new.env(parent = emptyenv())
  account$limit <- limit
  structure(account, class = "noiseaware_budget")
}
