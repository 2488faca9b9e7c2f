# The account in a table of SQLite and PostgreSQL: what test-release_budget_file.R asks of a file.

counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
data <- data.frame(g = c("a", "b", "a"))
publish <- function(account, epsilon) release(data, counts, mech_discrete_laplace(epsilon = epsilon), budget = account)
published <- function(account, epsilon) tryCatch(inherits(publish(account, epsilon), "noiseaware_release"), noiseaware_error_budget = function(e) FALSE)
awkward <- "select \"x\" 'é'"

# connections to one database, as many as are asked for
sqlite_server <- function(frame = parent.frame()) {
  skip_if_not_installed("RSQLite")
  path <- withr::local_tempfile(.local_envir = frame)
  list(connect = function() DBI::dbConnect(RSQLite::SQLite(), path))
}

# A database of its own in one server for this file: a server takes longer to start than most of what is asked of it.
postgres <- NULL
postgres_server <- function(driver) {
  if (is.null(postgres)) postgres <<- local_postgres(teardown_env())
  skip_if(is.null(postgres), "no PostgreSQL server can be started here")
  con <- postgres$connect()
  name <- basename(tempfile("account_"))
  DBI::dbExecute(con, paste("CREATE DATABASE", name))
  DBI::dbDisconnect(con)
  list(connect = function() postgres$connect(name, driver))
}

expect_account <- function(server) {
  con <- server$connect()
  other <- server$connect()
  withr::defer(DBI::dbDisconnect(other))
  expect_error(budget(connection = con, table = awkward), "needs a limit", class = "noiseaware_error_budget")
  account <- budget(epsilon = 1, connection = con, table = awkward)
  publish(account, 0.6)
  again <- budget(connection = other, table = awkward)
  expect_identical(summary(again), summary(account))
  expect_error(publish(again, 0.6), class = "noiseaware_error_budget")
  publish(again, 0.25)
  expect_equal(summary(account)$epsilon, c(0.6, 0.25))
  expect_error(publish(account, 0.2), "not large enough", class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 2, connection = con, table = awkward), "limit given", class = "noiseaware_error_budget")
  # a release that fails spends nothing, and the lock is given back
  expect_error(release(data.frame(g = NA), counts, mech_discrete_laplace(epsilon = 0.1), budget = account), class = "noiseaware_error_missing")
  publish(again, 0.15)
  expect_equal(sum(summary(account)$epsilon), 1)
  expect_output(print(account), "table  select")
  # what nobody can read
  DBI::dbExecute(con, paste("DELETE FROM", account$table$quoted, "WHERE line = 2"))
  expect_error(publish(account, 0.01), "not numbered", class = "noiseaware_error_budget")
  DBI::dbExecute(con, paste("DELETE FROM", account$table$quoted))
  expect_error(summary(account), "no lines", class = "noiseaware_error_budget")
  DBI::dbExecute(con, paste("INSERT INTO", account$table$quoted, "VALUES (1, 'nonsense')"))
  expect_error(publish(account, 0.01), "first line", class = "noiseaware_error_budget")
  # limits to the last bit, guarantees that are not known
  zcdp <- budget(rho = 1 / 3, connection = con, table = "second")
  release(data, counts, mech_gaussian(rho = 0.1), budget = zcdp)
  expect_identical(budget(connection = other, table = "second")$limit, zcdp$limit)
  expect_identical(summary(zcdp)$epsilon, NA_real_)
  # a transaction of the user's would hold the expense back
  DBI::dbExecute(con, "BEGIN")
  DBI::dbGetQuery(con, "SELECT 1")
  expect_error(release(data, counts, mech_gaussian(rho = 0.1), budget = zcdp), "inside a transaction", class = "noiseaware_error_budget")
  DBI::dbExecute(con, "ROLLBACK")
  expect_identical(nrow(summary(zcdp)), 1L)
  # another has the lock
  held <- budget(connection = other, table = "second")
  internal("lock_table")(held$table, NULL)
  expect_error(internal("lock_table")(zcdp$table, NULL, patience = 0.2), "in use", class = "noiseaware_error_budget")
  expect_false(zcdp$table$open)
  internal("unlock_table")(held$table)
  release(data, counts, mech_gaussian(rho = 0.1), budget = zcdp)
  # no connection, no release
  DBI::dbDisconnect(con)
  expect_error(release(data, counts, mech_gaussian(rho = 0.1), budget = zcdp), class = "noiseaware_error_database")
  expect_equal(summary(held)$rho, c(0.1, 0.1))
}

# Two processes, with connections of their own, publish until they are refused, `each` times at most. Where a lock is at fault one may wait
# for another in vain, again in each release: they give up after `patience` seconds. A fork takes longer than a race: races of several accounts,
# an element of `connects` and `tables` each, follow one another in the same two processes.
race <- function(connects, tables, each, epsilon, patience = 60) {
  until <- proc.time()[["elapsed"]] + patience
  answers <- parallel::mclapply(1:2, function(i) mapply(function(connect, table) {
    con <- connect[[i]]()
    on.exit(DBI::dbDisconnect(con))
    account <- budget(connection = con, table = table)
    count <- 0
    while (count < each && proc.time()[["elapsed"]] < until && published(account, epsilon)) count <- count + 1
    count
  }, connects, tables), mc.cores = 2)
  rowSums(do.call(cbind, answers))
}

expect_races <- function(server) {
  con <- server$connect()
  budget(epsilon = 0.5, connection = con, table = "shared")
  DBI::dbDisconnect(con)
  expect_equal(race(list(list(server$connect, server$connect)), "shared", 50, 0.01), 50)
  con <- server$connect()
  account <- budget(connection = con, table = "shared")
  expect_identical(nrow(summary(account)), 50L)
  expect_error(publish(account, 0.01), class = "noiseaware_error_budget")
  DBI::dbDisconnect(con)
}

test_that("a database of SQLite that has several names is one account", {
  skip_on_os("windows")
  skip_on_cran()
  skip_if_not_installed("RSQLite")
  path <- withr::local_tempfile()
  names <- file.path(withr::local_tempdir(), c("symbolic", "hard"))
  connect <- function(name) function() DBI::dbConnect(RSQLite::SQLite(), name)
  connected <- function(name, f) {
    con <- connect(name)()
    on.exit(DBI::dbDisconnect(con))
    f(con)
  }
  connected(path, function(con) for (table in c("symbolic", "hard")) budget(epsilon = 0.5, connection = con, table = table))
  file.symlink(path, names[1])
  file.link(path, names[2])
  expect_equal(race(lapply(names, function(name) list(connect(path), connect(name))), basename(names), 50, 0.01), c(50, 50))
  for (name in names) {
    connected(name, function(con) for (table in basename(names)) expect_identical(nrow(summary(budget(connection = con, table = table))), 50L))
  }
})

# killed with the lock, and after the expense
expect_survives <- function(server) {
  con <- server$connect()
  budget(epsilon = 1, connection = con, table = "shared")
  DBI::dbDisconnect(con)
  for (spends in c(FALSE, TRUE)) {
    killed <- parallel::mcparallel({
      account <- budget(connection = server$connect(), table = "shared")
      if (spends) publish(account, 0.7) else internal("hold_budget")(account, "replace")
      tools::pskill(Sys.getpid(), tools::SIGKILL)
    })
    # not for ever, should it wait for a lock instead
    suppressWarnings(parallel::mccollect(killed, wait = FALSE, timeout = 60))
    tools::pskill(killed$pid, tools::SIGKILL)
    suppressWarnings(parallel::mccollect(killed))
    con <- server$connect()
    account <- budget(connection = con, table = "shared")
    expect_identical(nrow(summary(account)), as.integer(spends))
    if (spends) expect_error(publish(account, 0.7), class = "noiseaware_error_budget")
    DBI::dbDisconnect(con)
  }
}

# records and account in one database: by connections of their own, and by one
expect_same_database <- function(server) {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("dplyr")
  con <- server$connect()
  other <- server$connect()
  withr::defer({
    DBI::dbDisconnect(con)
    DBI::dbDisconnect(other)
  })
  DBI::dbWriteTable(con, "people", data, row.names = FALSE)
  records <- suppressWarnings(dplyr::tbl(con, "people"))
  for (connection in list(other, con)) {
    account <- budget(epsilon = 1, connection = connection, table = "ledger")
    before <- nrow(summary(account))
    expect_s3_class(publish_records(records, account), "noiseaware_release")
    expect_identical(nrow(summary(account)), before + 1L)
    # what is refused in the database spends nothing
    expect_error(release(records, stat_counts(~ g, levels = list(g = c("a", "c"))), mech_discrete_laplace(epsilon = 0.1), budget = account),
                 class = "noiseaware_error")
    expect_identical(nrow(summary(account)), before + 1L)
  }
}

publish_records <- function(records, account) release(records, counts, mech_discrete_laplace(epsilon = 0.1), budget = account)

test_that("records and account in one database", {
  skip_on_cran()
  skip_if_not_installed("DBI")
  expect_same_database(sqlite_server())
  for (driver in postgres_drivers()) expect_same_database(postgres_server(driver))
})

test_that("an account in a table of SQLite", {
  skip_if_not_installed("DBI")
  expect_account(sqlite_server())
})

test_that("an account in a table of PostgreSQL", {
  skip_on_cran()
  skip_if_not_installed("DBI")
  for (driver in postgres_drivers()) expect_account(postgres_server(driver))
})

test_that("100 races for a table, and killed processes: never overspent, and nothing lost", {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not_installed("DBI")
  expect_races(sqlite_server())
  expect_survives(sqlite_server())
  for (driver in postgres_drivers()) {
    expect_races(postgres_server(driver))
    expect_survives(postgres_server(driver))
  }
})

test_that("bad arguments, copies and forks are refused", {
  skip_if_not_installed("DBI")
  con <- sqlite_server()$connect()
  withr::defer(try(DBI::dbDisconnect(con), silent = TRUE))
  expect_error(budget(epsilon = 1, connection = con), "together", class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 1, connection = con, table = "t", file = tempfile()), "either", class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 1, connection = 1, table = "t"), class = "noiseaware_error_argument")
  expect_error(budget(epsilon = 1, connection = con, table = 1), class = "noiseaware_error_argument")
  expect_error(budget(epsilon = 1, connection = structure(list(), class = c("other", "DBIConnection")), table = "t"), class = "noiseaware_error_database")
  account <- budget(epsilon = 1, connection = con, table = "t")
  copy <- unserialize(serialize(account, NULL))
  expect_error(publish(copy, 0.1), class = "noiseaware_error_database")
  skip_on_os("windows")
  skip_on_cran()
  answer <- parallel::mccollect(parallel::mcparallel(tryCatch(publish(account, 0.1), error = class)))[[1]]
  expect_true("noiseaware_error_budget" %in% answer)
  expect_identical(nrow(summary(account)), 0L)
})

test_that("a wait in vain is known by its length, whatever the language of the database", {
  skip_if_not_installed("DBI")
  gone <- list(kind = "PostgreSQL", connection = NULL, name = "account")
  expect_error(internal("run_sql")(gone, "LOCK TABLE account", NULL, patience = 0), "in use", class = "noiseaware_error_budget")
  expect_error(internal("run_sql")(gone, "LOCK TABLE account", NULL, patience = 60), "refused `?LOCK", class = "noiseaware_error_database")
})
