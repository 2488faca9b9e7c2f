# Numbers that someone else has published, in the shapes that they come in.

laplace <- mech_laplace(epsilon = 1)
levels <- list(y = c("no", "yes"), x = c("u", "v", "w"), z = c("b", "a"))
records <- data.frame(y = c("no", "yes", "yes", "no", "yes", "yes", "yes", "no"), x = c("u", "v", "w", "w", "w", "v", "u", "w"),
                      z = c("a", "a", "b", "a", "a", "b", "a", "a"))
records[] <- Map(factor, records, levels)
# the counts by C, from the records
counted <- function(st) c(.Call(noiseaware:::ffi_stat_total, noiseaware:::statistic_spec(st), noiseaware:::record_matrix(records, st$columns, st$levels)))

test_that("tables are matched by the names of their dimensions, in any order", {
  st <- stat_counts(~ y:x, levels[c("y", "x")])
  table <- table(records[c("y", "x")])
  expect_identical(unname(as_release(table, st, laplace, 8)$value), counted(st))
  expect_identical(as_release(t(table), st, laplace, 8), as_release(table, st, laplace, 8))
  # asymmetrical, and square: no shape tells that it is transposed
  square <- matrix(c(1, 2, 3, 4), 2, dimnames = list(z = c("a", "b"), y = c("no", "yes")))
  st <- stat_counts(~ y:z, levels[c("y", "z")])
  expected <- c("y=no:z=b" = 2, "y=no:z=a" = 1, "y=yes:z=b" = 4, "y=yes:z=a" = 3)
  expect_identical(as_release(square, st, laplace, 10)$value, expected)
  expect_identical(as_release(t(square), st, laplace, 10)$value, expected)
  # three variables, six orders of the dimensions, levels in any order
  st <- stat_counts(~ y:x:z, levels)
  table <- xtabs(~ y + x + z, records)
  for (order in list(1:3, c(1, 3, 2), c(2, 1, 3), c(2, 3, 1), c(3, 1, 2), 3:1)) {
    turned <- aperm(table, order)
    expect_identical(unname(as_release(turned, st, laplace, 8)$value), counted(st))
    reversed <- do.call(`[`, c(list(turned), lapply(dim(turned), function(k) k:1)))
    expect_identical(unname(as_release(reversed, st, laplace, 8)$value), counted(st))
  }
})

test_that("several margins come as a list of tables, several statistics as a list of either", {
  st <- stat_counts(~ y:x + z + y:z, levels)
  tables <- list(table(records[c("z", "y")]), table(records[c("y", "x")]), table(records["z"]))
  expect_identical(unname(as_release(tables, st, laplace, 8)$value), counted(st))
  total <- stat_sums(~ w, list(w = c(0, 1)))
  both <- as_release(list(b = tables, a = c(w = 3)), list(a = total, b = st), list(a = laplace, b = laplace), 8)
  expect_identical(unname(both$value), c(3, counted(st)))
  # a margin that was not published
  some <- as_release(tables[1:2], st, laplace, 8)
  expect_identical(some$value, as_release(tables, st, laplace, 8)$value[-(7:8)])
})

test_that("counts of one variable may be named by its levels", {
  st <- stat_counts(~ x, levels["x"])
  expected <- as_release(c(5, 12, 20), st, laplace, 37)
  expect_identical(names(expected$value), c("x=u", "x=v", "x=w"))
  expect_identical(as_release(c(w = 20, u = 5, v = 12), st, laplace, 37), expected)
  expect_identical(as_release(array(c(20, 5, 12), 3, list(c("w", "u", "v"))), st, laplace, 37), expected)
  one <- table(records$x) # without the variable's name
  expect_identical(unname(as_release(one, st, laplace, 8)$value), counted(st))
  # a level that reads like a component is one of the components first
  odd <- stat_counts(~ x, list(x = c("a", "x=a")))
  expect_identical(unname(as_release(c("x=x=a" = 1, "x=a" = 2), odd, laplace, 3)$value), c(2, 1))
  # with two variables a level does not tell which
  expect_error(as_release(c(no = 1, yes = 2, b = 3, a = 4), stat_counts(~ y + z, levels[c("y", "z")]), laplace, 10), class = "noiseaware_error_value")
})

test_that("values of single records may be a matrix of components", {
  st <- stat_records(y ~ x, bounds = list(y = c(0, 1), x = c(0, 1)))
  values <- cbind(x = c(0.1, 0.2, 0.3), y = c(0.4, 0.5, 0.6))
  expect_identical(unname(as_release(values, st, laplace, 3)$value), c(0.4, 0.5, 0.6, 0.1, 0.2, 0.3))
  expect_error(as_release(values, st, laplace, 2), class = "noiseaware_error_value")
  expect_error(as_release(unname(values), st, laplace, 3), class = "noiseaware_error_value")
})

test_that("arrays whose names do not tell what they count are refused", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ y:x, levels[c("y", "x")])
  table <- table(records[c("y", "x")])
  totals <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1)))
  named <- function(...) matrix(1, 2, 3, dimnames = list(...))
  calls <- expression(
    as_release(unname(table), st, laplace, 8),
    as_release(matrix(1:6, 2), st, laplace, 8),
    as_release(matrix(1:6, 2, dimnames = list(y = NULL, x = NULL)), st, laplace, 8),
    as_release(named(c("no", "yes"), c("u", "v", "w")), st, laplace, 8),
    as_release(named(y = c("no", "yes"), q = c("u", "v", "w")), st, laplace, 8),
    as_release(named(y = c("no", "yes"), x = c("u", "v", "q")), st, laplace, 8),
    as_release(named(y = c("no", "no"), x = c("u", "v", "w")), st, laplace, 8),
    as_release(stats::addmargins(table), st, laplace, 8),
    as_release(table[, 1:2], st, laplace, 8),
    as_release(table == 1, st, laplace, 8),
    as_release(table[, , drop = FALSE] / 0, st, laplace, 8),
    as_release(list(table, table), st, laplace, 8),
    as_release(array(1:5), totals, laplace, 8),
    as_release(diag(2), totals, laplace, 8)
  )
  for (call in as.list(calls)) expect_error(eval(call), class = "noiseaware_error_value", label = deparse(call)[1L])
  show(refusals("value", alist(
    as_release(matrix(1:6, 2), st, laplace, 8),
    as_release(named(y = c("no", "yes"), q = c("u", "v", "w")), st, laplace, 8),
    as_release(stats::addmargins(table), st, laplace, 8),
    as_release(table[, 1:2], st, laplace, 8),
    as_release(diag(2), totals, laplace, 8),
    as_release(cbind(y = 1:2, x = 3:4), stat_records(~ y, bounds = list(y = c(0, 1))), laplace, 2)
  )))
  # one dimension with names is a vector
  expect_identical(as_release(array(1:5, 5, list(totals$components)), totals, laplace, 8), as_release(1:5, totals, laplace, 8))
})

test_that("a table without a statistic is answered with the code of its statistic", {
  noisy <- as.table(array(1:6, c(2, 3), list(`the group` = c("a \"b\"", "c"), smoke = c("no", "some{x}", "yes"))))
  code <- internal("statistic_of_table")(noisy)
  release <- as_release(noisy, eval(parse(text = code)), mech_laplace(scale = 1), n = 21)
  expect_equal(release$value[["the group=c:smoke=some{x}"]], 4)
  expect_equal(sum(release$value), 21)
  expect_error(as_release(noisy), "This table has `stat_counts(~`the group`:smoke, list(", fixed = TRUE, class = "noiseaware_error_argument")
  expect_error(as_release(1:6), "says what the numbers are", class = "noiseaware_error_argument")
})

test_that("n = NA points to NULL, and a hidden exact number to names", {
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  expect_error(as_release(c(1, 2), counts, mech_laplace(epsilon = 1), n = NA), "n = NULL", class = "noiseaware_error_argument")
  expect_error(as_release(c(NA, 2), counts, mech_exact(), n = NULL), "Leave out exact numbers that were hidden: name those", class = "noiseaware_error_value")
})

test_that("more records than a method can count are refused where n is not known", {
  cells <- stat_counts(~ x, levels = list(x = c("a", "b")))
  of <- function(value, statistic = cells) suppressMessages(as_release(value, statistic, mech_laplace(epsilon = 1), n = NULL))
  expect_error(of(c("x=a" = 2^31 + 100, "x=b" = 10)), "2147483647.*\"x=a\"", class = "noiseaware_error_value")
  expect_error(of(c("x=a" = 2^30 + 1e6, "x=b" = 2^30)), "\"x=a\" and \"x=b\"", class = "noiseaware_error_value")
  expect_error(of(c(x = -3e9), stat_sums(~ x, bounds = list(x = c(-1, 1)), rescale = FALSE)), "\"x\"", class = "noiseaware_error_value")
  expect_s3_class(of(c("x=a" = 2^31 - 1000, "x=b" = 10)), "noiseaware_release")
  expect_s3_class(of(c(x = 3e9), stat_sums(~ x, bounds = list(x = c(-2, 2)), rescale = FALSE)), "noiseaware_release")
})
