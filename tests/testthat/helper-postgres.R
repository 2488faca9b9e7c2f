# Packages that connect to PostgreSQL, those that are installed. When RPostgres is loaded, lubridate asks the
# system for the time zone, unless it is set.
postgres_drivers <- function() {
  withr::local_envvar(TZ = "UTC")
  Filter(function(package) requireNamespace(package, quietly = TRUE), c("RPostgreSQL", "RPostgres"))
}

# A PostgreSQL server of the test's own, on a socket in a temporary directory, with the log that it writes by default; NULL where
# there is none.
local_postgres <- function(frame = parent.frame(), driver = postgres_drivers()[1L]) {
  programs <- Sys.glob("/usr/lib/postgresql/*/bin")
  if (length(programs) == 0L || is.na(driver)) return(NULL)
  programs <- utils::tail(programs, 1L)
  directory <- tempfile("pg", tmpdir = "/tmp") # the socket's path must be short
  dir.create(directory)
  # it refuses to run as root
  root <- identical(system("id -u", intern = TRUE), "0")
  if (root) system2("chown", c("postgres", directory))
  run <- function(...) {
    command <- c(if (root) c("runuser", "-u", "postgres", "--"), file.path(programs, ..1), unlist(list(...)[-1L]))
    suppressWarnings(system2(command[1L], command[-1L], stdout = FALSE, stderr = FALSE))
  }
  if (run("initdb", "-D", file.path(directory, "data"), "-A", "trust", "-U", "postgres", "--no-sync") != 0) return(NULL)
  options <- shQuote(paste0("-c listen_addresses='' -c fsync=off -k ", directory))
  if (run("pg_ctl", "-D", file.path(directory, "data"), "-w", "-o", options, "-l", file.path(directory, "log"), "start") != 0) return(NULL)
  withr::defer({
    run("pg_ctl", "-D", file.path(directory, "data"), "-m", "immediate", "stop")
    unlink(directory, recursive = TRUE)
  }, frame)
  connect <- function(database = "postgres", by = driver) {
    DBI::dbConnect(switch(by, RPostgreSQL = RPostgreSQL::PostgreSQL(), RPostgres = RPostgres::Postgres()), host = directory, user = "postgres", dbname = database)
  }
  list(connect = connect, log = file.path(directory, "log"), stop = function() run("pg_ctl", "-D", file.path(directory, "data"), "-m", "immediate", "stop"))
}
