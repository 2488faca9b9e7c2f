# Totals added up by databases equal the data frame's, to the last bit.

n <- 400
set.seed(10)
records <- data.frame(y = rnorm(n, 0, 5), select = runif(n, -1, 12), "na\"me `x`" = rexp(n), g = sample(c("a", "b'c", "\u00c4", "A"), n, TRUE),
                      h = sample(0:2, n, TRUE), "gr\u00f6\u00dfe;--" = as.double(sample(3, n, TRUE)), check.names = FALSE)
records$y[1:3] <- c(-10, 10, -0)
bounds <- list(y = c(-10, 10), select = c(0, 10.3), "na\"me `x`" = c(0, 1 / 3), g = c("a", "b'c", "\u00c4", "A"))
statistics <- list(
  stat_crossprod(y ~ select + `na"me \`x\`` + g, bounds), stat_crossprod(y ~ select + g, bounds[c(1, 2, 4)], rescale = FALSE),
  stat_moments4(~ y + select, bounds[1:2]), stat_sums(~ y + I(y^2) + select, bounds[1:2], rescale = FALSE), stat_sums(~ y + I(y^3), bounds[1], outside = "drop", rescale = FALSE),
  stat_counts(stats::as.formula("~ g:h + `gr\u00f6\u00dfe;--`"), list(g = bounds$g, h = 0:2, "gr\u00f6\u00dfe;--" = 1:3)),
  stat_histogram(~ y:g, breaks = list(y = c(-Inf, -2, 0, 1.5, Inf)), levels = bounds["g"]),
  stat_histogram(~ select, breaks = list(select = c(0, 2.5, 5, 12)), right = TRUE))
mechanisms <- list(mech_laplace(epsilon = 2), mech_gaussian(rho = 0.1), mech_laplace(scale = 1e9))

needs_database <- function() for (p in c("DBI", "dbplyr", "dplyr")) skip_if_not_installed(p)

local_sqlite <- function(frame = parent.frame()) {
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con), frame)
  con
}

table_of <- function(con, data, name = "group by \"x\"") {
  DBI::dbWriteTable(con, name, data, row.names = FALSE, overwrite = TRUE)
  suppressWarnings(dplyr::tbl(con, name)) # an old driver causes a warning
}

expect_same_totals <- function(con, of = function(k) mechanisms) {
  stored <- table_of(con, records)
  records <- as.data.frame(dplyr::collect(stored)) # some drivers write 15 digits
  for (k in seq_along(statistics)) for (mechanism in of(k)) {
    expect_identical(partial_total(stored, statistics[[k]], mechanism), partial_total(records, statistics[[k]], mechanism))
  }
  # the number of records, which is confidential; a query; several statistics at once
  expect_identical(partial_total(stored, stat_size(), mechanisms[[1]], neighbours = "add_remove"),
                   partial_total(records, stat_size(), mechanisms[[1]], neighbours = "add_remove"))
  some <- dplyr::filter(stored, h > 0)
  both <- list(a = statistics[[1]], b = statistics[[6]])
  mechanism <- list(a = mechanisms[[1]], b = mech_discrete_laplace(epsilon = 1))
  expect_identical(partial_total(some, both, mechanism), partial_total(records[records$h > 0, ], both, mechanism))
  # little noise
  expect_identical(partial_total(stored, statistics[[1]], mech_laplace(scale = 1e-6)), partial_total(records, statistics[[1]], mech_laplace(scale = 1e-6), n = n))
  # counts at the points of a grid, alone and with sums
  quantiles <- stat_quantiles(~ select, c(-1, 11.7), steps = 2^16)
  expect_identical(partial_total(stored, quantiles, mech_exponential(epsilon = 1)), partial_total(records, quantiles, mech_exponential(epsilon = 1)))
  both <- list(a = statistics[[4]], q = stat_quantiles(~ y, c(-5, 5), steps = 7), r = quantiles)
  mechanism <- list(a = mechanisms[[1]], q = mech_exponential(epsilon = 1), r = mech_exponential(epsilon = 1))
  expect_identical(partial_total(stored, both, mechanism), partial_total(records, both, mechanism))
  expect_identical(release(stored, both, mechanism)$n, 400)
  # no record at all
  none <- dplyr::filter(stored, h > 5)
  expect_identical(partial_total(none, statistics[[1]], mechanisms[[1]], neighbours = "add_remove"),
                   partial_total(records[0, ], statistics[[1]], mechanisms[[1]], neighbours = "add_remove"))
  expect_error(release(none, statistics[[1]], mechanisms[[1]]), class = "noiseaware_error_data")
  released <- release(stored, statistics[[1]], mechanisms[[1]])
  expect_identical(released[c("n", "scale", "granularity", "noise")], release(records, statistics[[1]], mechanisms[[1]])[c("n", "scale", "granularity", "noise")])
  # halves, and numbers that decimals do not give: units are 1
  ties <- data.frame(x = c(seq(-3.5, 3.5, 0.5), 0.5 - 2^-54, 2^-1074, 1e300, -1e300, 1 / 3, 0.1))
  wide <- stat_sums(~ x, list(x = c(-7.3, 7.5)))
  stored <- table_of(con, ties)
  expect_identical(partial_total(stored, wide, mech_gaussian(sd = 2^23)), partial_total(as.data.frame(dplyr::collect(stored)), wide, mech_gaussian(sd = 2^23)))
  between <- stat_quantiles(~ x, c(-3.5, 3.5), steps = 7)
  expect_identical(partial_total(stored, between, mech_exponential(epsilon = 1)), partial_total(as.data.frame(dplyr::collect(stored)), between, mech_exponential(epsilon = 1)))
}

expect_same_refusals <- function(con) {
  st <- statistics[[1]]
  account <- budget(epsilon = 9)
  refused <- function(data, statistic = st) tryCatch(release(table_of(con, data), statistic, mechanisms[[1]], budget = account), error = identity)
  holes <- records
  holes$y[c(3, 9)] <- NA
  holes$g[5] <- NA
  missing <- refused(holes)
  expect_s3_class(missing, "noiseaware_error_missing")
  expect_match(paste(message_lines(missing), collapse = " "), "y: 2 missing.*g: 1 missing")
  other <- records
  other$g[c(7, 8)] <- "secret"
  undeclared <- refused(other)
  expect_s3_class(undeclared, "noiseaware_error_levels")
  expect_match(paste(message_lines(undeclared), collapse = " "), "2 others")
  expect_no_match(paste(message_lines(undeclared), collapse = " "), "secret")
  expect_s3_class(refused(records[-1]), "noiseaware_error_data")
  texts <- records
  texts$y <- as.character(texts$y)
  expect_s3_class(refused(texts), "noiseaware_error_data")
  expect_s3_class(tryCatch(release(table_of(con, holes), stat_quantiles(~ y, bounds$y), mech_exponential(epsilon = 1)), error = identity), "noiseaware_error_missing")
  for (bad in list(stat_records(~ y, bounds[1]))) expect_s3_class(refused(records, bad), "noiseaware_error_partial")
  own <- stat_custom(function(records) records[, "y", drop = FALSE], "y", sensitivity = c(L1 = 20, L2 = 20), bounds = bounds["y"])
  expect_s3_class(refused(records, own), "noiseaware_error_database")
  expect_identical(nrow(summary(account)), 0L)
}

test_that("SQLite", {
  skip_on_cran() # takes long; `make test` runs it
  needs_database()
  skip_if_not_installed("RSQLite")
  con <- local_sqlite()
  expect_same_totals(con)
  expect_same_refusals(con)
  # text among numbers, which this database allows
  DBI::dbExecute(con, "CREATE TABLE loose (x REAL, g INTEGER)")
  DBI::dbExecute(con, "INSERT INTO loose VALUES (1.5, 1), ('secret', 2), (2, 1)")
  said <- tryCatch(release(dplyr::tbl(con, "loose"), stat_sums(~ x, list(x = c(0, 5))), mechanisms[[1]]), error = identity)
  expect_s3_class(said, "noiseaware_error_data")
  expect_no_match(paste(message_lines(said), collapse = " "), "secret")
  # case matters, whatever the column's collation
  DBI::dbExecute(con, "CREATE TABLE blind (g TEXT COLLATE NOCASE)")
  DBI::dbExecute(con, "INSERT INTO blind VALUES ('a'), ('A'), ('a')")
  counts <- stat_counts(~ g, list(g = c("a", "A")))
  expect_identical(partial_total(dplyr::tbl(con, "blind"), counts, mechanisms[[1]])$totals[[1]][, 2], c(2, 1) / partial_total(dplyr::tbl(con, "blind"), counts, mechanisms[[1]])$unit[[1]])
})

expect_postgres <- function(driver) {
  server <- local_postgres(driver = driver)
  if (is.null(server)) skip("no PostgreSQL server can be started here")
  con <- server$connect()
  expect_same_totals(con, function(k) mechanisms[k %% 3 + 1])
  expect_same_refusals(con)
  # numbers of other types, booleans, NaN
  DBI::dbExecute(con, "CREATE TABLE kinds (a REAL, b NUMERIC, c SMALLINT, d BIGINT, e BOOLEAN)")
  DBI::dbExecute(con, "INSERT INTO kinds VALUES (0.1, 0.1, 1, 2, TRUE), (2.5, 12345.678901234567890, -3, 900, FALSE)")
  kinds <- suppressWarnings(dplyr::tbl(con, "kinds"))
  frame <- data.frame(a = c(13421773 / 2^27, 2.5), b = c(0.1, 12345.67890123456789), c = c(1, -3), d = c(2, 900), e = c(TRUE, FALSE))
  st <- stat_sums(~ a + b + c + d + e, list(a = c(0, 9), b = c(0, 1e5), c = c(-5, 5), d = c(0, 1e3), e = c(0, 1)), rescale = FALSE)
  expect_identical(partial_total(kinds, st, mechanisms[[1]]), partial_total(frame, st, mechanisms[[1]]))
  levels <- stat_counts(~ c + e, list(c = c(1, -3), e = c(FALSE, TRUE)))
  expect_identical(partial_total(kinds, levels, mechanisms[[1]]), partial_total(frame, levels, mechanisms[[1]]))
  DBI::dbExecute(con, "INSERT INTO kinds VALUES ('NaN', 0.1, 1, 2, TRUE)")
  expect_error(release(kinds, st, mechanisms[[1]]), class = "noiseaware_error_missing")
  DBI::dbExecute(con, "INSERT INTO kinds VALUES ('NaN', 0.1, 1, NULL, NULL), (NULL, 0.1, 1, 2, NULL)")
  unknown <- tryCatch(release(kinds, st, mechanisms[[1]]), error = identity)
  expect_match(paste(message_lines(unknown), collapse = " "), "a: 3 missing.*d: 1 missing.*e: 2 missing")
  # the server dies: nothing is spent
  account <- budget(epsilon = 3)
  stored <- table_of(con, records)
  server$stop()
  expect_error(suppressWarnings(release(stored, statistics[[1]], mechanisms[[1]], budget = account)), class = "noiseaware_error_database")
  expect_identical(nrow(summary(account)), 0L)
}

test_that("PostgreSQL by RPostgreSQL", {
  skip_on_cran()
  needs_database()
  skip_if_not_installed("RPostgreSQL")
  expect_postgres("RPostgreSQL")
})

test_that("PostgreSQL by RPostgres", {
  skip_on_cran()
  needs_database()
  skip_if_not_installed("RPostgres")
  expect_postgres("RPostgres")
})

test_that("DuckDB", {
  needs_database()
  skip_if_not_installed("duckdb")
  con <- DBI::dbConnect(duckdb::duckdb())
  withr::defer(DBI::dbDisconnect(con, shutdown = TRUE))
  expect_same_totals(con)
  expect_same_refusals(con)
})

test_that("what is not known to add up as C does is refused", {
  needs_database()
  skip_if_not_installed("RSQLite")
  st <- stat_sums(~ x, list(x = c(0, 5)))
  expect_error(release(dbplyr::lazy_frame(x = 1, con = dbplyr::simulate_mysql()), st, mechanisms[[1]]), class = "noiseaware_error_database")
  # SQLite's own ROUND() takes halves away from zero
  con <- local_sqlite()
  dialect <- internal("sql_dialect")(con, NULL)
  ask <- function(sql) DBI::dbGetQuery(con, sql)
  expect_no_error(internal("check_dialect")(ask, dialect, NULL))
  dialect$round <- function(x) paste0("CAST(ROUND(", x, ") AS INTEGER)")
  expect_error(internal("check_dialect")(ask, dialect, NULL), class = "noiseaware_error_database")
})

test_that("Spark: texts and names are quoted as Spark reads them, and sums do not go round", {
  # the statements are read with Spark's grammar by tools/spark_grammar.R
  dialect <- internal("sql_dialect")(structure(list(), class = "spark_connection"), NULL)
  expect_identical(dialect$string("b'c\\d"), "'b\\'c\\\\d'")
  expect_identical(dialect$name("a`b"), "`a``b`")
  expect_identical(dialect$sum("x"), "SUM(CAST(x AS DECIMAL(20, 0)))")
  # a session that reads backslashes as they are
  answers <- c(0, 2, 2, 0, -2, -2, 0, 2^51, -2^51 - 2, 2^60)
  answer <- function(quoted) {
    function(sql) cbind(stats::setNames(as.data.frame(t(sprintf("%.0f", answers))), paste0("r", seq_along(answers))), quoted = quoted)
  }
  expect_no_error(internal("check_dialect")(answer("it's \\ \"so\""), dialect, NULL))
  expect_error(internal("check_dialect")(answer("it\\'s \\\\ \"so\""), dialect, NULL), "quoted strings", class = "noiseaware_error_database")
})

test_that("numbers are written exactly", {
  skip_if_not_installed("DBI")
  skip_if_not_installed("RSQLite")
  con <- local_sqlite()
  set.seed(3)
  values <- c(0, 1, -1, 0.1, 1 / 3, -2.5, 2^-1074, -2^-1022, .Machine$double.xmax, 1e300, pi * 2^61, 2^53 + 2, rnorm(50) * 2^sample(-300:300, 50))
  sql <- internal("sql_number")(values, internal("sql_dialect")(con, NULL))
  expect_identical(unname(unlist(DBI::dbGetQuery(con, paste("SELECT", paste(sql, collapse = ", "))))), values)
})
