# The account of budget(file = ): JSON lines, a header with the limit and then a line for
# each expense. Lines are only ever added. A directory beside it is the lock, because renaming
# one is atomic; whoever has it reads, decides and writes before anybody else.

ledger_format <- "noiseaware budget"
ledger_version <- 2L

# A new file gets the limit; one that is there has it.
file_budget <- function(file, limit, call = caller_env()) {
  check_path(file, call)
  if (!dir.exists(dirname(file))) stop_classed("file", "Cannot write {.file {file}}: there is no directory {.file {dirname(file)}}.", call = call)
  if (dir.exists(file)) stop_classed("file", "{.file {file}} must be a file, but is a directory.", call = call)
  file <- file.path(normalizePath(dirname(file)), basename(file))
  lock <- lock_file(file, call = call)
  on.exit(unlock_file(lock))
  given <- !is.null(limit$epsilon) || !is.null(limit$rho)
  if (!file.exists(file)) {
    if (!given) stop_classed("budget", "There is no file {.file {file}}; a new budget needs a limit, {.arg epsilon} or {.arg rho}.", call = call)
    write_whole(paste0(ledger_header(limit), "\n"), file, call)
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

# The lock is a directory that holds a file, which says who has it. It is made under another name and renamed, and
# renamed before it is removed: so it is never there without its owner, and no rename replaces a directory with something in it.
# What a killed process left is removed by one process at a time, which holds another directory and looks
# again who the owner is: nobody else can have taken the lock since, as it was there all the time.

# Waits its turn, for `patience` seconds.
lock_file <- function(file, patience = 60, call = caller_env()) {
  lock <- paste0(file, ".lock")
  own <- tempfile(paste0(basename(lock), "-"), tmpdir = dirname(lock))
  on.exit(unlink(own, recursive = TRUE))
  made <- dir.create(own, showWarnings = FALSE) &&
    tryCatch(is.null(write_whole(paste0(lock_owner(), "\n", collapse = ""), owner_file(own))), noiseaware_error_file = function(e) FALSE)
  if (!made) {
    stop_classed("file", "Cannot lock {.file {file}}: is its directory writable, and is there space left?", call = call)
  }
  until <- proc.time()[["elapsed"]] + patience
  pause <- 0.002
  while (dir.exists(lock) || !suppressWarnings(file.rename(own, lock))) {
    remove_left_lock(lock)
    if (proc.time()[["elapsed"]] > until) {
      stop_classed("budget", c("The budget {.file {file}} is in use by another process; nothing is released.",
                               i = "If that process was killed, remove the directory {.file {lock}}."), call = call)
    }
    Sys.sleep(pause)
    pause <- min(2 * pause, 0.05)
  }
  lock
}

unlock_file <- function(lock) {
  aside <- tempfile(paste0(basename(lock), "-"), tmpdir = dirname(lock))
  if (suppressWarnings(file.rename(lock, aside))) unlink(aside, recursive = TRUE)
}

owner_file <- function(lock) file.path(lock, "owner")

# The machine with its user and the process with its start; the second is NA where a system does not
# tell, and then a lock is never taken for left.
lock_owner <- function() c(this_machine(), Sys.getpid(), process_start(Sys.getpid()))

this_machine <- function() {
  boot <- "/proc/sys/kernel/random/boot_id"
  if (!file.exists(boot)) return(NA_character_)
  # a container has processes of its own
  paste(c(Sys.info()[c("nodename", "effective_user")], readLines(boot, warn = FALSE), Sys.readlink("/proc/self/ns/pid")), collapse = " ")
}

# NA for a process that is not there, or that was killed and only waits to be told of
process_start <- function(pid) {
  stat <- tryCatch(suppressWarnings(readLines(file.path("/proc", pid, "stat"), warn = FALSE)), error = function(e) character())
  fields <- strsplit(sub(".*\\) ", "", paste(stat, collapse = " ")), " ", fixed = TRUE)[[1L]]
  if (length(fields) < 20L || fields[1L] %in% c("Z", "X")) NA_character_ else fields[20L]
}

# was it left by a process of this user on this machine that is gone?
is_left <- function(lock) {
  owner <- tryCatch(suppressWarnings(readLines(owner_file(lock), warn = FALSE)), error = function(e) character())
  machine <- this_machine()
  length(owner) == 3L && !is.na(machine) && owner[1L] == machine && owner[3L] != "NA" && !owner[3L] %in% process_start(owner[2L])
}

remove_left_lock <- function(lock) {
  if (!is_left(lock)) return(invisible())
  guard <- paste0(lock, "-taken-over")
  if (!dir.create(guard, showWarnings = FALSE)) return(invisible())
  on.exit(unlink(guard, recursive = TRUE))
  if (is_left(lock)) unlock_file(lock)
}

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
  limit <- header$limit
  limit <- list(epsilon = ledger_number(limit$epsilon), delta = ledger_number(limit$delta), rho = ledger_number(limit$rho),
                composition = limit$composition, neighbours = if (header$version == 1L) "replace" else limit$neighbours)
  expenses <- parsed[-1L]
  broken <- which(!vapply(expenses, is_expense, TRUE))
  if (length(broken)) refuse_ledger(file, paste0("Line ", broken[1L] + 1L, " is not an expense."), call)
  spent <- lapply(stats::setNames(nm = expense_columns), function(name) vapply(expenses, function(line) ledger_number(line[[name]]) %||% NA_real_, 0))
  list(limit = limit, spent = data.frame(what = vapply(expenses, `[[`, "", "what"), spent))
}

# A line that was cut short may stand for something that was
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
  is.list(line) && identical(names(line), c("what", expense_columns)) && is.character(line$what) &&
    all(vapply(line[expense_columns], function(v) is.null(v) || (is.numeric(v) && v >= 0), TRUE))
}

refuse_ledger <- function(file, message, call) {
  stop_classed("budget", c("{.file {file}} is not a complete budget; nothing is released.", x = "{message}"), call = call)
}
