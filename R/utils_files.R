# Files that are written in one piece, or to which whole lines are added.

# The file as it is, never more than its size: by readLines() a small compressed
# file could grow without limit.
read_bytes <- function(path, size) {
  tryCatch({
    connection <- file(normalizePath(path), "rb", raw = TRUE)
    on.exit(close(connection))
    readBin(connection, "raw", size)
  }, error = function(e) NULL, warning = function(w) NULL)
}

# a file that is whole or absent
write_whole <- function(text, path, call = caller_env()) {
  partial <- tempfile("partial-", tmpdir = dirname(path))
  on.exit(unlink(partial))
  bytes <- charToRaw(text)
  written <- tryCatch({
    # a full disk raises no error, or a warning as the file is closed
    suppressWarnings(writeBin(bytes, partial))
    file.size(partial) == length(bytes) && suppressWarnings(file.rename(partial, path))
  }, error = function(e) FALSE)
  if (!isTRUE(written)) {
    stop_classed("file", c("Cannot write {.file {path}}.", i = "Is the directory writable, and is there space left?"), call = call)
  }
}

# One write, so that a kill leaves whole lines and at most one that is cut short. FALSE if
# it failed; what a full disk took of it is taken back.
append_whole <- function(text, path) {
  bytes <- charToRaw(text)
  before <- file.size(path)
  written <- tryCatch({
    connection <- file(path, "ab")
    on.exit(close(connection))
    writeBin(bytes, connection)
    close(connection)
    on.exit()
    file.size(path) == before + length(bytes)
  }, error = function(e) FALSE, warning = function(w) FALSE)
  if (!isTRUE(written)) cut_file(path, before)
  isTRUE(written)
}

cut_file <- function(path, size) {
  if (!isTRUE(file.size(path) > size)) return(invisible())
  connection <- file(path, "r+b")
  on.exit(close(connection))
  seek(connection, size, rw = "write")
  truncate(connection)
}
