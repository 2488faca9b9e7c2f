# The account of budget(connection = , table = ): the lines of a budget file as rows, numbered from 1. The lock is a transaction that excludes all others. An
# expense is committed before anything is published. If the process is killed, it leaves nothing: the database rolls back.

# A table that is not there, or empty, gets the limit; one that has rows has it.
table_budget <- function(connection, table, limit, call = caller_env()) {
  store <- table_store(connection, table, call)
  given <- !is.null(limit$epsilon) || !is.null(limit$rho)
  lock_table(store, call)
  on.exit(unlock_table(store))
  lines <- table_lines(store, call)
  if (length(lines) == 0L) {
    if (!given) stop_classed("budget", "The table {.field {store$name}} has no budget; a new one needs a limit, {.arg epsilon} or {.arg rho}.", call = call)
    add_row(store, 1, ledger_header(limit), call)
  }
  stored <- table_ledger(store, call)$limit
  check_same_limit(stored, limit, given, store$name, call)
  account <- new_budget(stored)
  account$table <- store
  account$process <- Sys.getpid()
  account
}

# an environment, as its transaction is open or not
table_store <- function(connection, table, call) {
  check_installed("DBI", "speaks to databases", call)
  if (!inherits(connection, "DBIConnection")) stop_argument("connection", "a connection made by DBI::dbConnect()", describe_shape(connection), call = call)
  kinds <- c(SQLiteConnection = "SQLite", PostgreSQLConnection = "PostgreSQL", PqConnection = "PostgreSQL")
  kind <- kinds[intersect(class(connection), names(kinds))[1L]]
  if (is.na(kind)) {
    stop_classed("database", "A budget is kept in SQLite or PostgreSQL, but the connection is of class {.cls {class(connection)[1]}}.", call = call)
  }
  if (!checkmate::test_string(table, min.chars = 1L)) stop_argument("table", "the name of a table", describe(table), call = call)
  list2env(list(connection = connection, kind = unname(kind), name = table, quoted = as.character(DBI::dbQuoteIdentifier(connection, enc2utf8(table))), open = FALSE),
           parent = emptyenv())
}

# ---- the lock -----------------------------------------------------------------------------

# Waits its turn, for `patience` seconds.
lock_table <- function(store, call, patience = 60) {
  check_no_transaction(store, call)
  held <- FALSE
  on.exit(if (!held) unlock_table(store))
  create <- paste("CREATE TABLE IF NOT EXISTS", store$quoted, "(line INTEGER PRIMARY KEY, entry TEXT NOT NULL)")
  if (store$kind == "SQLite") {
    run_sql(store, "BEGIN IMMEDIATE", call, patience)
    store$open <- TRUE
    run_sql(store, create, call)
  } else {
    # a snapshot for each statement, so that what was committed while this waited is seen
    run_sql(store, "BEGIN ISOLATION LEVEL READ COMMITTED", call)
    store$open <- TRUE
    patience <- max(1L, as.integer(patience))
    run_sql(store, sprintf("SET LOCAL lock_timeout = '%ds'", patience), call)
    # two that create one table at the same time would fail
    run_sql(store, "SELECT pg_advisory_xact_lock(hashtext('noiseaware budget'))", call, patience)
    run_sql(store, "SET LOCAL client_min_messages = warning", call)
    run_sql(store, create, call, patience)
    run_sql(store, paste("LOCK TABLE", store$quoted, "IN EXCLUSIVE MODE"), call, patience)
  }
  held <- TRUE
}

# of the user's; SQLite says so itself when another begins
check_no_transaction <- function(store, call) {
  if (store$kind == "SQLite") return(invisible())
  # a statement that is prepared first begins later than its transaction
  at_once <- if (inherits(store$connection, "PqConnection")) list(immediate = TRUE)
  alone <- run_sql(store, "SELECT transaction_timestamp() = statement_timestamp() AS alone", call, ask = TRUE, further = at_once)$alone
  if (!isTRUE(alone)) refuse_transaction(call)
}

refuse_transaction <- function(call) {
  stop_classed("budget", c("The budget's connection is inside a transaction, which would delay the record of the expense; nothing is released.",
                           i = "Commit it, or give the budget its own connection."), call = call)
}

unlock_table <- function(store) {
  if (!store$open) return(invisible())
  store$open <- FALSE
  try(DBI::dbExecute(store$connection, "ROLLBACK"), silent = TRUE)
  invisible()
}

# What SQLite cannot do while another process reads or writes is tried again. PostgreSQL waits itself, and its messages are in
# the server's language: a statement that failed after its patience had waited for a lock. The database's message may have values of
# other tables in it and is not passed on.
run_sql <- function(store, sql, call, patience = 60, ask = FALSE, further = NULL) {
  until <- proc.time()[["elapsed"]] + patience
  run <- if (ask) DBI::dbGetQuery else DBI::dbExecute
  repeat {
    told <- tryCatch(suppressWarnings(do.call(run, c(list(store$connection, sql), further))), error = function(e) e)
    if (!inherits(told, "error")) return(told)
    busy <- if (store$kind == "SQLite") grepl("locked|busy", conditionMessage(told)) else proc.time()[["elapsed"]] >= until - 0.1
    if (grepl("within a transaction", conditionMessage(told), fixed = TRUE)) refuse_transaction(call)
    if (!busy) {
      stop_classed("database", "The budget's database refused {.field {sub(' .*', '', sql)}}, or is not available; nothing is released.", call = call)
    }
    if (store$kind != "SQLite" || proc.time()[["elapsed"]] > until) {
      stop_classed("budget", "The budget {.field {store$name}} is in use by another process; nothing is released.", call = call)
    }
    Sys.sleep(0.01)
  }
}

# ---- the account --------------------------------------------------------------------------

add_row <- function(store, line, entry, call) {
  run_sql(store, sprintf("INSERT INTO %s (line, entry) VALUES (%d, %s)", store$quoted, as.integer(line),
                         as.character(DBI::dbQuoteString(store$connection, enc2utf8(as.character(entry))))), call)
  run_sql(store, "COMMIT", call)
  store$open <- FALSE
}

table_lines <- function(store, call) {
  rows <- run_sql(store, paste("SELECT line, entry FROM", store$quoted, "ORDER BY line"), call, ask = TRUE)
  if (!identical(as.double(rows$line), as.double(seq_len(nrow(rows))))) refuse_ledger(store$name, "Its lines are not numbered from 1 on.", call)
  enc2utf8(as.character(rows$entry))
}

table_ledger <- function(store, call = caller_env()) {
  lines <- table_lines(store, call)
  if (length(lines) == 0L) refuse_ledger(store$name, "It has no lines.", call)
  parse_ledger(lines, store$name, call)
}

add_table_expense <- function(store, entry, call) add_row(store, length(table_lines(store, call)) + 1, entry, call)
