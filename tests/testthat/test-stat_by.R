# Totals by group: what is summed, its sensitivity, files, databases.

levels <- list(g = c("u", "v", "w"))
sums <- stat_sums(~ x + I(x^2) + z, list(x = c(-2, 5), z = c(1, 3)), rescale = FALSE)
products <- stat_crossprod(x ~ z + f, list(x = c(-2, 5), z = c(1, 3), f = c("a", "b")))
data <- data.frame(f = c("a", "b", "b", "a", "b", "a"), x = c(-3, 1, 4.5, 9, 0.5, 2), z = c(0, 2, 2.5, 3, 4, 1.5), g = c("w", "u", "w", "u", "u", "w"))

test_that("totals are those of the records of each group", {
  st <- stat_by(sums, levels)
  expect_identical(st$components[1:4], c("x:g=u", "x:g=v", "x:g=w", "x^2:g=u"))
  total <- internal("statistic_total")(st, data)
  each <- vapply(levels$g, function(g) {
    if (g == "v") numeric(3) else internal("statistic_total")(sums, data[data$g == g, ])
  }, numeric(3))
  expect_equal(unname(total), c(t(each)))
  each <- vapply(levels$g, function(g) if (g == "v") numeric(8) else internal("statistic_total")(products, data[data$g == g, ]), numeric(8))
  expect_equal(unname(internal("statistic_total")(stat_by(products, levels), data)), c(t(each)))
  dropped <- stat_sums(~ x, list(x = c(-2, 5)), outside = "drop")
  expect_equal(unname(internal("statistic_total")(stat_by(dropped, levels), data)), c(1.5, 0, 6.5))
  # each record by itself
  x <- internal("record_matrix")(data, st$columns, st$levels)
  dense <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), x)
  expect_equal(colSums(dense), unname(total))
  expect_true(all(rowSums(dense[, 1:3] != 0) == 1))
})

test_that("the sensitivity is the largest distance between records, and the size of one", {
  for (of in list(stat_sums(~ x, list(x = c(10, 11))), stat_sums(~ x + z, list(x = c(-2, 5), z = c(1, 3)), rescale = FALSE), stat_sums(~ x, list(x = c(-2, 5)), outside = "drop"),
                  stat_crossprod(x ~ z, list(x = c(-2, 5), z = c(1, 3)), rescale = FALSE))) {
    st <- stat_by(of, levels)
    corners <- expand.grid(x = of$columns$lower[1] + c(0, 1) * (of$columns$upper - of$columns$lower)[1], z = c(1, 3), g = levels$g)
    t <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), internal("record_matrix")(corners, st$columns, st$levels))
    expect_equal(sensitivity(st, "L1"), max(dist(t, "manhattan")))
    expect_equal(sensitivity(st, "L2"), max(dist(t)))
    expect_equal(sensitivity(st, "L1", "add_remove"), max(rowSums(abs(t))))
    expect_equal(sensitivity(st, "L2", "add_remove"), max(sqrt(rowSums(t^2))))
  }
})

test_that("releases are made, written and read, and some of their numbers named", {
  skip_on_cran() # takes long; `make test` runs it
  for (of in list(sums, products)) {
    st <- stat_by(of, levels)
    rel <- release(data, list(size = stat_counts(~ g, levels), total = st), list(size = mech_laplace(epsilon = 1), total = mech_gaussian(rho = 0.5)))
    file <- withr::local_tempfile(fileext = ".json")
    write_release(rel, file)
    expect_equal(read_release(file), rel)
    text <- paste(readLines(file), collapse = "\n")
    for (odd in c("1", "[\"sums\"]", "[\"sums\", \"crossprod\"]", "{}", "null", "\"counts\"")) {
      writeLines(sub("(\"name\": *)\"(sums|crossprod)\"", paste0("\\1", odd), text), file)
      expect_error(read_release(file), "statistic of groups must be", class = "noiseaware_error_file")
    }
  }
  some <- as_release(c("g=w:x" = 4.5, "x:g=u" = 7), stat_by(stat_sums(~ x, list(x = c(-2, 5))), levels), mech_laplace(scale = 2), n = 6)
  expect_identical(names(some$value), c("x:g=u", "x:g=w"))
  expect_output(print(st), "by g \\(3 groups\\)")
})

test_that("a database adds up the same", {
  for (p in c("DBI", "dbplyr", "dplyr", "RSQLite")) skip_if_not_installed(p)
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "data", data)
  for (st in list(stat_by(sums, levels), stat_by(stat_crossprod(x ~ z, list(x = c(-2, 5), z = c(1, 3))), levels), stat_by(stat_sums(~ x, list(x = c(-2, 5)), outside = "drop"), levels))) {
    expect_identical(partial_total(suppressWarnings(dplyr::tbl(con, "data")), st, mech_laplace(epsilon = 1)), partial_total(data, st, mech_laplace(epsilon = 1)))
  }
})

test_that("what cannot be is refused", {
  skip_on_cran() # takes long; `make test` runs it
  show(c(refusals("argument", expression(stat_by(stat_counts(~ g, levels), levels), stat_by(sums))),
         refusals("levels", expression(stat_by(sums, list(levels$g)), stat_by(sums, c(levels, list(h = 1:2))), stat_by(sums, list(g = "u")), stat_by(sums, list(x = 1:2)),
                                       stat_by(sums, list(g = 1:400000)))),
         refusals("variables", expression(sample_posterior(as_release(c(1, 2, 3), stat_by(stat_sums(~ x, list(x = c(0, 5))), levels), mech_laplace(scale = 1), n = 5),
                                                           model_poisson())))))
})
