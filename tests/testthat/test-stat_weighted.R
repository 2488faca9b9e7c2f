# Cross-products of weighted products: the totals and their linear algebra are computed here in another way, sensitivities by search.

bounds <- list(y = c(0, 10), x = c(-1, 3), g = c("a", "b", "c"), w = c(2, 8))
people <- withr::with_seed(1, data.frame(y = runif(30, -1, 11), x = runif(30, -1, 3), g = sample(bounds$g, 30, TRUE), w = runif(30, 1, 9), s = rep(c("u", "v"), 15)))
within <- function(v, ends) pmin(pmax(v, ends[1L]), ends[2L])
clamped <- transform(people, y = within(y, bounds$y), w = within(w, bounds$w))
weighted <- stat_crossprod(y ~ x + g, bounds, weights = ~ w)
total_of <- function(statistic, data = people) internal("statistic_total")(statistic, data, confidential = TRUE)

test_that("totals are sums of products with the weight, of clamped variables", {
  plain <- stat_crossprod(y ~ x, bounds[c("y", "x", "w")], rescale = FALSE, weights = ~ w)
  u <- with(clamped, cbind(w = w, "w*y" = w * y, "w*x" = w * x, "w*y*x" = w * y * x, "w*x^2" = w * x^2))
  got <- total_of(plain)
  expect_equal(got[colnames(u)], colSums(u))
  expect_equal(got[["w^2"]], sum(u[, 1L]^2))
  expect_equal(got[["w:(w*y)"]], sum(u[, 1L] * u[, 2L]))
  expect_equal(got[["(w*y):(w*x^2)"]], sum(u[, 2L] * u[, 5L]))
  expect_length(got, 20L)
  # rescaled: variables first, then the columns
  mean <- stat_crossprod(y ~ 1, bounds[c("y", "w")], weights = ~ w)
  v <- with(clamped, cbind((w - 5) / 3, w * (y - 5) / 5 / 8))
  expect_equal(unname(total_of(mean)), c(colSums(v), crossprod(v)[c(1, 2, 4)]))
  apart <- stat_crossprod(y ~ 1, list(y = c(1, 3), w = c(2, 8)), rescale = FALSE, weights = ~ w)
  expect_identical(unlist(apart$columns[2L, c("lower", "upper")], use.names = FALSE), c(2, 24))
  # the square of the response is not among them
  expect_false(any(grepl("w*y^2", weighted$columns$name, fixed = TRUE)))
})

test_that("weighted moments in the variables' own units follow from them", {
  z <- with(clamped, cbind("(Intercept)" = 1, y = y, x = x, gb = +(g == "b"), gc = +(g == "c")))
  x <- internal("statistic_records")(weighted, people, NULL, TRUE)
  u <- t(colSums(do.call(cbind, x)))
  colnames(u) <- weighted$columns$name
  # the weight is a column of the data; the owner's code clamps it afterwards
  u[, "w"] <- sum(clamped$w)
  moments <- internal("weighted_moments")(weighted, u)[1L, , ]
  expected <- crossprod(z, clamped$w * z)
  moments["y", "y"] <- expected["y", "y"]
  expect_equal(moments, expected)
})

test_that("the sensitivity of weighted means is attained, and that of regressions is not exceeded", {
  skip_on_cran() # takes long; `make test` runs it
  contribution <- function(statistic, records) {
    t(vapply(seq_len(nrow(records)), function(i) total_of(statistic, records[i, , drop = FALSE]), numeric(length(statistic$components))))
  }
  farthest <- function(statistic, records, norm) {
    x <- contribution(statistic, records)
    d <- stats::dist(x, if (norm == "L1") "manhattan" else "euclidean")
    size <- if (norm == "L1") rowSums(abs(x)) else sqrt(rowSums(x^2))
    c(max(d), max(size))
  }
  grid <- function(...) expand.grid(..., KEEP.OUT.ATTRS = FALSE)
  for (rescale in c(TRUE, FALSE)) for (norm in c("L1", "L2")) {
    mean <- stat_crossprod(y ~ 1, list(y = c(-1, 1), w = c(0, 1)), rescale, weights = ~ w)
    # the worst records: w = y = 1, and both a third of the way to it, or at another corner
    found <- farthest(mean, grid(y = c(-1, -1 / 3, 0, 1 / 3, 1), w = seq(0, 1, length.out = 13)), norm)
    declared <- c(sensitivity(mean, norm), sensitivity(mean, norm, "add_remove"))
    expect_true(all(found <= declared + 1e-9))
    if (rescale) expect_equal(found[1L], declared[1L], tolerance = if (norm == "L1") 0.01 else 1e-9)
    expect_equal(found[2L], declared[2L])
    line <- stat_crossprod(y ~ x, list(y = c(-1, 1), x = c(-2, 4), w = c(1, 3)), rescale, weights = ~ w)
    found <- farthest(line, grid(y = c(-1, -0.5, 0, 0.5, 1), x = c(-2, -1, 0.5, 1, 2, 4), w = c(1, 1.5, 2, 3)), norm)
    declared <- c(sensitivity(line, norm), sensitivity(line, norm, "add_remove"))
    expect_true(all(found <= declared + 1e-9))
    if (rescale) expect_gt(found[1L], 0.9 * declared[1L])
    expect_equal(found[2L], declared[2L])
  }
})

test_that("strata have totals of their own, and files and parts of the records the same ones", {
  strata <- list(s = c("u", "v"))
  by <- stat_by(stat_crossprod(y ~ x, bounds[c("y", "x", "w")], weights = ~ w), strata)
  expect_equal(total_of(by)[["w*y:s=v"]], total_of(by$statistic, people[people$s == "v", ])[["w*y"]])
  size <- stat_counts(~ s, strata)
  design <- list(size = size, total = by)
  noise <- list(size = mech_laplace(epsilon = 1), total = mech_laplace(epsilon = 1))
  parts <- lapply(list(1:10, 11:30), function(i) partial_total(people[i, ], design, noise))
  whole <- partial_total(people, design, noise)
  expect_equal(internal("add_partials")(parts[[1L]], parts[[2L]], NULL)$totals, whole$totals)
  path <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(people, path, row.names = FALSE)
  expect_equal(partial_total(record_source(path), design, noise)$totals, whole$totals)
})

test_that("a release of them is written, read and described", {
  skip_on_cran() # takes long; `make test` runs it
  path <- withr::local_tempfile(fileext = ".json")
  logs <- stat_crossprod(log(y) ~ x, list(y = c(1, 10), x = c(-1, 3), w = c(2, 8)), weights = ~ w, outside = "none")
  for (statistic in list(weighted, logs, stat_by(logs, list(s = c("u", "v"))))) {
    rel <- release(clamped, statistic, mech_laplace(epsilon = 1))
    write_release(rel, path)
    expect_identical(read_release(path), rel)
  }
  expect_match(readLines(path), "\"weights\": \"w\"", all = FALSE)
  expect_output(print(weighted), "weighted by w, rescaled to [-1, 1], variables and weights clamped to the bounds", fixed = TRUE)
  expect_output(print(logs), "weighted by w, rescaled to [-1, 1], no record outside the bounds", fixed = TRUE)
  mean <- stat_crossprod(y ~ 1, bounds[c("y", "w")], weights = ~ w)
  rel <- as_release(c("(w*y)^2" = 1, w = 2, "w*y" = 3, "w^2" = 4, "w:(w*y)" = 5), mean, mech_laplace(epsilon = 1), n = 9)
  expect_identical(unname(rel$value), c(2, 3, 4, 5, 1))
})

test_that("impossible weights are refused", {
  skip_on_cran() # takes long; `make test` runs it
  refused <- function(..., class) expect_error(stat_crossprod(...), class = paste0("noiseaware_error_", class))
  two <- bounds[c("y", "w")]
  refused(y ~ 1, two, weights = "w", class = "formula")
  refused(y ~ 1, two, weights = y ~ w, class = "formula")
  refused(y ~ 1, two, weights = ~ log(w), class = "formula")
  refused(y ~ w, two, weights = ~ w, class = "formula")
  refused(y ~ x + I(x^2), bounds[c("y", "x", "w")], weights = ~ w, class = "formula")
  refused(y ~ 1, two["y"], weights = ~ w, class = "bounds")
  refused(y ~ 1, list(y = c(0, 10), w = c(-1, 8)), weights = ~ w, class = "bounds")
  refused(y ~ 1, list(y = c(0, 10), w = c("a", "b")), weights = ~ w, class = "bounds")
  refused(y ~ 1, bounds[c("y", "x", "w")], weights = ~ w, class = "bounds")
  refused(y ~ 1, list(y = c(0, 1e300), w = c(0, 1e300)), rescale = FALSE, weights = ~ w, class = "bounds")
  expect_error(release(people["y"], stat_crossprod(y ~ 1, two, weights = ~ w), mech_laplace(epsilon = 1)), class = "noiseaware_error_data")
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "people", people)
  skip_if_not_installed("dbplyr")
  expect_error(release(dplyr::tbl(con, "people"), stat_crossprod(y ~ 1, two, weights = ~ w), mech_laplace(epsilon = 1)), "weighted products",
               class = "noiseaware_error_database")
})
