# Integer totals of parts: their sum is the total of the whole, whatever the partition.

n <- 300
set.seed(8)
records <- data.frame(y = rnorm(n, 0, 5), x = runif(n, -1, 12), g = sample(c("a", "b", "c"), n, TRUE), h = sample(0:1, n, TRUE))
bounds <- list(y = c(-10, 10), x = c(0, 31 / 3), g = c("a", "b", "c"))
statistics <- list(
  stat_crossprod(y ~ x + g, bounds), stat_crossprod(y ~ x, bounds[1:2], rescale = FALSE), stat_moments4(~ y + x, bounds[1:2]),
  stat_sums(~ y + I(x^3), bounds[1:2], rescale = FALSE), stat_sums(~ x, bounds[2], outside = "drop"), stat_counts(~ g:h + h, list(g = bounds$g, h = 0:1)),
  stat_histogram(~ y:g, breaks = list(y = c(-Inf, -1, 0.25, 7)), levels = bounds["g"]),
  stat_linear(stat_counts(~ g, bounds["g"]), list(ab = c("g=a", "g=b"), gap = c("g=a" = 1, "g=c" = -1))))
laplace <- mech_laplace(epsilon = 2)
add <- function(partials) Reduce(internal("add_partials"), partials)
units <- function(partial) partial$totals[[1]] %*% c(1e9, 1)

test_that("random partitions have the total of all records, to the last bit", {
  skip_on_cran() # takes long; `make test` runs it
  mechanisms <- list(laplace, mech_gaussian(rho = 0.01), mech_laplace(scale = 1e9))
  for (st in statistics) for (k in seq_along(mechanisms)) {
    mechanism <- mechanisms[[k]]
    whole <- partial_total(records, st, mechanism)
    unit <- whole$unit[[1]]
    off <- abs(units(whole)[, 1] * unit - internal("statistic_total")(st, records))
    expect_true(all(off <= n * unit / 2 + 1e-9))
    for (i in seq_len(if (k == 1) 8 else 2)) {
      parts <- split(records, sample(sample(5, 1), n, TRUE))
      expect_identical(add(lapply(parts, partial_total, st, mechanism)), whole)
    }
  }
})

test_that("values are rounded to the nearest unit, halves to the even one", {
  one <- stat_sums(~ x, list(x = c(0, 8)))
  mechanism <- mech_gaussian(sd = 2^23) # of unit 1
  values <- c(0.5, 1.5, 2.5, 2.5, 3.75, 9)
  got <- partial_total(data.frame(x = values), one, mechanism)
  expect_identical(got$unit[[1]], 1)
  expect_identical(units(got)[[1]], 0 + 2 + 2 + 2 + 4 + 8)
})

test_that("large values beside small ones are rounded as they are alone, however many there are", {
  skip_on_cran()
  one <- stat_sums(~ x, list(x = c(-2^55, 2^55)))
  mechanism <- mech_laplace(scale = 2^23)
  alone <- function(x) partial_total(data.frame(x = x), one, mechanism, n = 20)
  small <- c(-0.5, 1.5, 2.5, -2.5, 0.5 - 2^-54, 7.75, -1e-300, 2^51 - 0.5, 2^51 - 1.5)
  for (x in small) expect_identical(units(alone(x))[[1]], round(x))
  for (x in c(2^51, 2^51 + 1, -2^52 - 1, 2^53 - 1)) expect_identical(units(alone(x))[[1]], x)
  expect_identical(alone(1)$unit[[1]], 1)
  set.seed(1)
  for (m in 1:17) for (large in 0:1) {
    x <- sample(c(rep_len(small, m), rep(c(2^51 + 1, -2^54 - 4), large)))
    expect_identical(alone(x), add(lapply(x, alone)))
  }
})

test_that("a release of partial totals is release(): the same numbers for the same noise", {
  skip_on_cran()
  parts <- list(records[1:100, ], records[101:300, ])
  for (st in statistics) for (scale in c(0.1, 1, 1e9)) for (nb in c("replace", "add_remove")) {
    mechanism <- mech_laplace(scale = scale)
    whole <- overheard("release", records, st, mechanism, NULL, nb)
    partials <- lapply(parts, partial_total, st, mechanism, n = if (nb == "replace") n, neighbours = nb)
    sum <- overheard("release", partials)
    told <- function(heard, routine) calls_of(heard, routine)[[1]]
    one <- told(whole, "ffi_exact_release")
    two <- told(sum, "ffi_exact_add_noise")
    # scale, unit, distribution
    expect_identical(unname(one[c(4:7)]), unname(two[2:5]))
    # totals: without noise they would be the same
    exact <- .Call(internal("ffi_exact_totals"), one[[1]], one[[2]], one[[3]], one[[4]], one[[8]])
    expect_identical(unname(two[[1]]), exact)
  }
  expect_identical(release(lapply(parts, partial_total, statistics[[1]], laplace))[c("n", "scale", "granularity", "noise", "neighbours")],
                   release(records, statistics[[1]], laplace)[c("n", "scale", "granularity", "noise", "neighbours")])
})

test_that("several statistics, an owner without records, a budget", {
  both <- list(totals = statistics[[1]], counts = statistics[[6]])
  mechanisms <- list(totals = laplace, counts = mech_discrete_laplace(epsilon = 1))
  partials <- list(partial_total(records, both, mechanisms), partial_total(records[0, ], both, mechanisms))
  account <- budget(epsilon = 4)
  released <- release(partials, budget = account)
  expect_identical(names(released$value), names(release(records, both, mechanisms)$value))
  expect_equal(sum(summary(account)$epsilon), 3, tolerance = 1e-5)
  expect_error(release(partials, budget = account), class = "noiseaware_error_budget")
})

test_that("no records: refused where their number is public, else a release like others", {
  skip_on_cran()
  none <- records[0, ]
  file <- withr::local_tempfile(fileext = ".csv")
  write.csv(none, file, row.names = FALSE)
  chunks <- function() {
    given <- FALSE
    record_source(function() if (!given) {
      given <<- TRUE
      none
    })
  }
  sources <- list(function() none, function() record_source(file), chunks)
  for (st in statistics[c(1, 4, 6, 7)]) for (source in sources) {
    account <- budget(epsilon = 2)
    expect_error(release(source(), st, laplace, budget = account), class = "noiseaware_error_data")
    expect_error(release(list(partial_total(none, st, laplace)), budget = account), class = "noiseaware_error_data")
    expect_identical(nrow(summary(account)), 0L)
    released <- release(source(), st, laplace, neighbours = "add_remove")
    expect_length(released$value, length(st$components))
  }
})

test_that("the print has no number of it", {
  expect_snapshot(partial_total(records, statistics[[1]], laplace, neighbours = "add_remove"))
  shown <- capture.output(print(partial_total(records, statistics[[4]], laplace)), str(format(partial_total(records, statistics[[4]], laplace))))
  expect_false(any(grepl("300|[0-9]{4}", shown)))
})

test_that("what does not go together is refused", {
  st <- statistics[[1]]
  ours <- partial_total(records, st, laplace)
  expect_error(release(list(ours, partial_total(records, st, mech_laplace(epsilon = 1)))), class = "noiseaware_error_partial")
  expect_error(release(list(ours, partial_total(records, statistics[[4]], laplace))), class = "noiseaware_error_partial")
  expect_error(release(list(ours, partial_total(records, st, laplace, neighbours = "add_remove"))), class = "noiseaware_error_partial")
  for (bad in list(ours, list(), list(ours, 3), NULL)) expect_error(release(bad), class = "noiseaware_error_argument")
  expect_error(release(list(ours, ours), neighbours = "replace"), "only `budget`", class = "noiseaware_error_argument")
  expect_error(partial_total(records, st), class = "noiseaware_error_argument")
  expect_error(partial_total(records, st, laplace, n = 0), class = "noiseaware_error_argument")
  expect_error(partial_total(records, stat_records(~ y, bounds[1]), laplace), class = "noiseaware_error_partial")
  # so little noise that the unit depends on the number of records
  fine <- mech_laplace(scale = 1e-6)
  expect_error(partial_total(records, st, fine), class = "noiseaware_error_partial")
  known <- partial_total(records, st, fine, n = 600)
  expect_identical(release(list(known, known))$n, 600)
  expect_error(release(list(partial_total(records, st, fine, n = 2^27))), class = "noiseaware_error_partial")
})

test_that("totals of different units are not added", {
  fine <- mech_laplace(scale = 1e-6)
  of <- function(n) partial_total(records, statistics[[1]], fine, n = n)
  expect_false(identical(of(600)$unit, of(2^27)$unit))
  expect_error(add(list(of(600), of(2^27))), "same grid", class = "noiseaware_error_partial")
})
