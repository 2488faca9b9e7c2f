# Persons with several records: sensitivities against the largest change over all sets of records, releases with hardly any noise against the
# totals of the records that each person has in common.

limited <- function(most) persons("id", contributions = most)

test_that("a sensitivity is the largest change that any records of one person make", {
  records <- expand.grid(y = c(-1, 0, 2), x = c(0, 3))
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-1, 2), x = c(0, 3)))
  products <- t(vapply(seq_len(nrow(records)), function(i) simulate_release(records[i, ], st, mech_laplace(scale = 1e-12))$value, numeric(length(st$components))))
  # of three records of one person, whatever else there is
  sets <- as.matrix(expand.grid(rep(list(seq_len(nrow(records))), 3)))
  changes <- apply(sets, 1L, function(rows) colSums(products[rows, ]))
  expect_equal(sensitivity(st, "L1", limited(3)), max(colSums(abs(changes))), tolerance = 1e-8)
  expect_equal(sensitivity(st, "L2", limited(3)), max(sqrt(colSums(changes^2))), tolerance = 1e-8)
  expect_identical(sensitivity(stat_size(), "L1", persons(contributions = 4)), 4)
})

# persons differ in how many records they have; all records of one have the same value, so that it does not matter which are used
visits <- data.frame(id = rep(c("b", "a", "c d", "\"q\""), c(1, 4, 2, 7)), y = rep(c(1.5, 2, -3, 0.25), c(1, 4, 2, 7)),
                     g = factor(rep(c("u", "v", "u", "v"), c(1, 4, 2, 7))))[c(14, 2, 6, 9, 1, 8, 3, 13, 7, 4, 10, 12, 5, 11), ]

replaced <- function(most) persons("id", contributions = most, neighbours = "replace")

test_that("the sensitivity to a replaced person is the largest change over all records of both", {
  records <- expand.grid(y = c(5, 5.5, 6), x = c(-1, 2), g = c("u", "v"), stringsAsFactors = FALSE)
  levels <- list(g = c("u", "v"))
  of_y <- stat_sums(~ y, list(y = c(5, 6)))
  statistics <- list(of_y, stat_sums(~ x, list(x = c(-1, 2))), stat_sums(~ y + x, list(y = c(5, 6), x = c(-1, 2)), rescale = FALSE), stat_counts(~ g, levels),
                     stat_size(), stat_by(of_y, levels), stat_by(stat_sums(~ x, list(x = c(-1, 2))), levels), stat_histogram(~ y, list(y = c(5, 5.25, 6))),
                     stat_crossprod(y ~ x, list(y = c(5, 6), x = c(-1, 2)), rescale = FALSE))
  # of none, one or two records of each person, whatever else there is
  sets <- rbind(0, as.matrix(expand.grid(rep(list(0:nrow(records)), 2))))
  for (st in statistics) {
    of <- function(rows) simulate_release(records[rows, ], st, mech_laplace(scale = 1e-9), neighbours = "add_remove")$value
    each <- vapply(seq_len(nrow(records)), of, numeric(length(st$components)))
    each <- cbind(0, matrix(each, length(st$components)))
    used <- unique(t(apply(sets + 1, 1L, function(rows) rowSums(each[, rows, drop = FALSE]))))
    if (length(st$components) == 1L) used <- unique(matrix(apply(sets + 1, 1L, function(rows) sum(each[, rows])), ncol = 1L))
    expect_equal(sensitivity(st, "L1", replaced(2)), max(stats::dist(used, "manhattan")), tolerance = 1e-6, label = format(st)[1])
    expect_equal(sensitivity(st, "L2", replaced(2)), max(stats::dist(used)), tolerance = 1e-6, label = format(st)[1])
    expect_gte(sensitivity(st, "L1", replaced(2)), sensitivity(st, "L1", limited(2)))
    expect_lte(sensitivity(st, "L1", replaced(2)), 2 * sensitivity(st, "L1", limited(2)))
  }
})

test_that("no output is more than e^epsilon times as likely if a person is replaced, and one nearly is", {
  levels <- list(g = c("u", "v", "w"))
  both <- list(g = stat_counts(~ g, levels), n = stat_size())
  noise <- list(g = mech_discrete_laplace(epsilon = 0.6), n = mech_discrete_laplace(epsilon = 0.4))
  made <- release(data.frame(id = 1:5, g = c("u", "v", "v", "w", "u")), both, noise, neighbours = replaced(3))
  expect_null(made$n)
  expect_identical(privacy(made)$epsilon <= 1, TRUE)
  own <- subset(expand.grid(u = 0:3, v = 0:3, w = 0:3), u + v + w <= 3)
  totals <- cbind(own, n = rowSums(own))
  # the ratio of densities at z is at most that far from the totals
  loss <- as.matrix(stats::dist(sweep(totals, 2, made$scale, "/"), "manhattan"))
  expect_lte(max(loss), 1 + 1e-9)
  # each statistic by itself has a pair that spends all of its budget
  expect_equal(max(as.matrix(stats::dist(sweep(own, 2, made$scale[1:3], "/"), "manhattan"))), 0.6, tolerance = 1e-5)
  expect_equal(max(as.matrix(stats::dist(totals[, "n"] / made$scale[4], "manhattan"))), 0.4, tolerance = 1e-5)
  # a private quantile: the scores of all values, with and without a person's
  quantile <- release(data.frame(id = 1:5, x = 0:4), stat_quantiles(~ x, c(0, 4), 0.25, 4), mech_exponential(epsilon = 1), neighbours = replaced(2))
  score <- function(x) vapply(0:4, function(v) max(0, 0.75 * sum(x < v) - 0.25 * sum(x >= v), 0.25 * sum(x > v) - 0.75 * sum(x <= v)), 0)
  log_p <- function(x) {
    w <- -score(x) / quantile$scale[[1]]
    w - log(sum(exp(w)))
  }
  own <- list(numeric(), 0, 2, 4, c(0, 0), c(4, 4), c(0, 4), c(1, 3))
  worst <- max(vapply(own, function(a) max(vapply(own, function(b) max(log_p(c(1, 2, 3, a)) - log_p(c(1, 2, 3, b))), 0)), 0))
  expect_lte(worst, 1)
  expect_gt(worst, 0.5)
})

test_that("replaced persons are stated by prints, files and budgets", {
  st <- stat_counts(~ g, levels = list(g = c("u", "v")))
  made <- release(visits, st, mech_laplace(epsilon = 1), neighbours = replaced(3))
  expect_identical(attributes(made$neighbours), list(contributions = 3, replaced = TRUE))
  expect_output(print(made), "one replaced person, with at most 3 records")
  expect_output(print(replaced(1)), "one replaced person, with at most 1 record; persons are in the column id")
  path <- tempfile()
  on.exit(unlink(path))
  write_release(made, path)
  expect_identical(read_release(path), made)
  expect_true(any(grepl("\"neighbours\": \"person_replaced\",", readLines(path), fixed = TRUE)))
  # twice the noise of one person added or removed, for counts
  added <- as_release(c(31, 12), st, mech_laplace(epsilon = 1), n = NULL, neighbours = persons(contributions = 3))
  other <- as_release(c(31, 12), st, mech_laplace(epsilon = 1), n = NULL, neighbours = persons(contributions = 3, neighbours = "replace"))
  expect_equal(other$scale, 2 * added$scale)
  expect_equal(privacy(other), privacy(added))
  account <- budget(epsilon = 2, neighbours = replaced(1), file = withr::local_tempfile())
  release(visits, st, mech_laplace(epsilon = 1), budget = account, neighbours = replaced(3))
  expect_equal(summary(account)$epsilon, 1, tolerance = 1e-4)
  expect_output(print(account), "one replaced person")
  without_words({
    expect_error(release(visits, st, mech_laplace(epsilon = 1), budget = account, neighbours = limited(3)), class = "noiseaware_error_neighbours")
    expect_error(persons("id", 2, "swap"), class = "noiseaware_error_argument")
    expect_error(release(visits, stat_records(~ g, levels = list(g = c("u", "v"))), mech_randomized_response(epsilon = 1), neighbours = replaced(2)),
                 class = "noiseaware_error_neighbours")
  })
})

test_that("noise is for all records of a person, and the guarantee is the budget", {
  st <- stat_sums(~ y, bounds = list(y = c(0, 10)))
  for (mechanism in list(mech_laplace(epsilon = 0.7), mech_gaussian(mu = 0.7), mech_discrete_laplace(epsilon = 2), mech_discrete_gaussian(rho = 0.1))) {
    of <- if (inherits(mechanism, c("mech_discrete_laplace", "mech_discrete_gaussian"))) stat_size() else st
    one <- as_release(5, of, mechanism, n = NULL, neighbours = "add_remove")
    four <- as_release(5, of, mechanism, n = NULL, neighbours = persons(contributions = 4))
    expect_equal(four$scale, 4 * one$scale)
    expect_equal(privacy(four), privacy(one))
  }
  # also on the grid of a real release: rounding moves each of a person's records
  data <- data.frame(id = rep(1:5, 3), y = 1:15 / 2)
  real <- release(data, st, mech_laplace(epsilon = 0.7), neighbours = limited(2))
  unit <- real$granularity[[1L]]
  expect_gte(real$scale[[1L]], 2 * (10 + unit) / 0.7)
  expect_lt(real$scale[[1L]], 2 * (10 + unit) / 0.7 * (1 + 1e-5))
  expect_equal(privacy(real)$epsilon, 0.7, tolerance = 1e-5)
  expect_lte(privacy(real)$epsilon, 0.7)
  scaled <- mech_laplace(scale = 20)
  expect_equal(privacy(scaled, statistic = st, neighbours = persons(contributions = 3))$epsilon, 1.5)
  expect_equal(privacy(scaled, statistic = st, unit = 0.5, neighbours = persons(contributions = 3))$epsilon, 3 * 10.5 / 20, tolerance = 1e-5)
})

totals <- stat_sums(~ y, bounds = list(y = c(-4, 4)))
both <- list(totals = totals, cells = stat_counts(~ g, levels = list(g = c("u", "v"))), size = stat_size())
quiet <- list(totals = mech_laplace(scale = 0.001), cells = mech_laplace(scale = 0.001), size = mech_laplace(scale = 0.001))
expect_used <- function(data, most, statistic = both, mechanism = quiet) {
  used <- pmin(c(1, 4, 2, 7), most)
  expected <- c(sum(used * c(1.5, 2, -3, 0.25)), used[1] + used[3], used[2] + used[4], sum(used))
  published <- release(data, statistic, mechanism, neighbours = persons("id", most))
  expect_equal(unname(published$value), expected, tolerance = 0.02)
  expect_null(published$n)
}

test_that("a data frame's persons are limited, and nothing of them is published", {
  for (most in c(1, 3, 7, 100)) expect_used(visits, most)
  expect_used(transform(visits, id = factor(id)), 2)
  expect_used(transform(visits, id = match(id, unique(id)) / 3), 2)
  simulated <- simulate_release(visits, both, quiet, neighbours = persons("id", 3))
  expect_equal(simulated$value[["size: n"]], 9, tolerance = 0.01)
  published <- release(visits, totals, mech_laplace(epsilon = 1), neighbours = persons("id", 3))
  expect_identical(attributes(published$neighbours), list(contributions = 3))
  expect_false(any(grepl("c d|\"id\"", deparse(unclass(published)))))
  expect_output(print(published), "one person, with at most 3 records, added or removed")
  # a person without records, and none at all
  none <- release(visits[0, ], list(size = stat_size()), list(size = mech_laplace(scale = 0.001)), neighbours = limited(2))
  expect_equal(none$value[[1L]], 0, tolerance = 0.02)
})

test_that("each of a person's records is used as often, whatever the others are", {
  set.seed(4)
  person <- c("a", "b", "a", "a", "c", "b", "a")
  chosen <- internal("chosen_records")
  used <- replicate(4000, chosen(person, 2, stats::runif))
  expect_true(all(used[person == "b" | person == "c", ]))
  expect_true(all(colSums(used[person == "a", ]) == 2))
  # pairs of four records: six, equally often
  pairs <- table(apply(used[person == "a", ], 2L, function(u) paste(which(u), collapse = "")))
  expect_length(pairs, 6L)
  expect_gt(chisq.test(pairs)$p.value, 1e-4)
  # the same numbers for a's records choose the same of them without the others
  numbers <- c(0.4, 0.1, 0.9, 0.2, 0.5, 0.6, 0.3)
  alone <- chosen(person[person == "a"], 2, function(n) numbers[person == "a"])
  expect_identical(chosen(person, 2, function(n) numbers)[person == "a"], alone)
  expect_identical(chosen(character(), 2, stats::runif), logical())
})

test_that("persons in files are limited over all of them", {
  first <- tempfile(fileext = ".csv")
  second <- tempfile(fileext = ".csv")
  on.exit(unlink(c(first, second)))
  utils::write.csv(visits[1:6, ], first, row.names = FALSE)
  utils::write.csv(visits[7:14, c(3, 1, 2)], second, row.names = FALSE)
  for (rows in c(1, 3, 1e6)) expect_used(record_source(c(first, second), rows = rows), 3)
  without_words({
    expect_error(release(record_source(first), totals, mech_laplace(epsilon = 1), neighbours = persons("who", 2)), class = "noiseaware_error_data")
    utils::write.csv(transform(visits, id = replace(id, 3, NA)), first, row.names = FALSE)
    expect_error(release(record_source(first), totals, mech_laplace(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_data")
  })
  skip_if_not_installed("nanoparquet")
  parquet <- tempfile(fileext = ".parquet")
  on.exit(unlink(parquet), add = TRUE)
  nanoparquet::write_parquet(transform(visits, g = as.character(g)), parquet)
  expect_used(record_source(parquet), 2)
})

test_that("persons in chunks are limited over all of them, by random numbers alone", {
  chunks <- function(data, rows) {
    at <- 0
    record_source(function() {
      if (at >= nrow(data)) return(NULL)
      at <<- at + rows
      data[seq(at - rows + 1, min(at, nrow(data))), , drop = FALSE]
    })
  }
  for (rows in c(1, 3, 14)) expect_used(chunks(visits, rows), 3)
  # the records with the same numbers as if all were in memory
  data <- transform(visits, y = seq_along(y) / 8)
  numbers <- withr::with_seed(1, stats::runif(nrow(data)))
  for (rows in c(1, 4, 14)) for (most in c(1, 2, 6)) {
    used <- 0
    next_numbers <- function(n) {
      used <<- used + n
      numbers[seq_len(n) + used - n]
    }
    kept <- internal("limit_contributions")(chunks(data, rows), totals, internal("match_neighbours")(limited(most)), next_numbers)
    expect_setequal(kept$y, data$y[internal("chosen_records")(data$id, most, function(n) numbers)])
  }
  read <- function(source, ...) release(source, totals, mech_laplace(epsilon = 1), neighbours = limited(2))
  expect_error(read(chunks(transform(visits, y = replace(y, 5, NA)), 3)), "chunk 2", class = "noiseaware_error_missing")
  without_words({
    expect_error(read(record_source(function() NULL)), class = "noiseaware_error_data")
    expect_error(read(chunks(transform(visits, id = replace(id, 3, NA)), 2)), class = "noiseaware_error_data")
    expect_error(read(chunks(visits[-1], 2)), class = "noiseaware_error_data")
    numbered <- list(data.frame(id = 1, y = 1), data.frame(id = "001", y = 1), NULL)
    expect_error(read(record_source(function() {
      chunk <- numbered[[1L]]
      numbered <<- numbered[-1L]
      chunk
    })), class = "noiseaware_error_data")
    expect_error(read(record_source(function() stop("confidential"))), class = "noiseaware_error_data")
  })
  skip_if_not_installed("nanoarrow")
  expect_used(nanoarrow::as_nanoarrow_array_stream(transform(visits, g = as.character(g))), 3)
})

expect_limited_database <- function(con) {
  DBI::dbWriteTable(con, "visits", transform(visits, g = as.character(g)))
  table <- dplyr::tbl(con, "visits")
  for (most in c(1, 3, 7)) expect_used(table, most)
  # other records each time
  DBI::dbWriteTable(con, "numbers", data.frame(`the id` = 1, y = 2^(0:9) / 1000, check.names = FALSE))
  seen <- replicate(12, release(dplyr::tbl(con, "numbers"), totals, mech_laplace(scale = 2e-5), neighbours = persons("the id", 3))$value)
  expect_gt(length(unique(round(seen * 1000))), 3L)
  expect_true(all(vapply(round(seen * 1000), function(sum) sum(as.integer(intToBits(sum))), 0L) == 3L))
  without_words({
    expect_error(release(table, totals, mech_laplace(epsilon = 1), neighbours = persons("who", 2)), class = "noiseaware_error_data")
    DBI::dbExecute(con, "UPDATE visits SET id = NULL WHERE y = 2")
    expect_error(release(table, totals, mech_laplace(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_data")
  })
}

test_that("persons in SQLite are limited where they are", {
  skip_on_cran()
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  expect_limited_database(con)
})

test_that("persons in PostgreSQL are limited where they are", {
  skip_on_cran()
  skip_if_not_installed("dbplyr")
  skip_if(length(postgres_drivers()) == 0L, "no driver of PostgreSQL is installed")
  server <- local_postgres()
  skip_if(is.null(server), "no PostgreSQL server could be started")
  expect_limited_database(server$connect())
})

test_that("a private quantile is of the values used, at epsilon over their number", {
  skip_on_cran() # takes long; `make test` runs it
  x <- c(a = 0, b = 0, c = 1, d = 3, e = 4, f = 4, g = 4)
  # candidate v: how many records would have to move for it to be the median
  moved <- vapply(0:4, function(v) max(0, sum(x < v) - 3.5, 3.5 - sum(x <= v)), 0)
  drawn <- replicate(600, released_quantile(x, 0.5, c(0, 4), epsilon = 4, steps = 4, neighbours = limited(4))$value)
  # the distance changes by 1/2 with each value
  expect_gt(chisq.test(table(factor(drawn, 0:4)), p = exp(-moved) / sum(exp(-moved)))$p.value, 1e-4)
  # one person has most of the values
  many <- c(stats::setNames(rep(900, 1000), rep("a", 1000)), stats::setNames(rep(100, 200), paste0("b", 1:200)))
  quantile_of <- function(most) released_quantile(many, 0.5, c(0, 1000), epsilon = 100 * most, steps = 1000, neighbours = limited(most))$value[[1]]
  expect_identical(quantile_of(1), 100)
  expect_identical(quantile_of(1000), 900)
  account <- budget(epsilon = 3, neighbours = limited(2))
  released_quantile(x, 0.5, c(0, 4), epsilon = 2, budget = account, neighbours = limited(2))
  expect_equal(summary(account)$epsilon, 2)
  without_words({
    expect_error(released_quantile(unname(x), 0.5, c(0, 4), epsilon = 1, neighbours = limited(2)), class = "noiseaware_error")
    expect_error(released_quantile(stats::setNames(x, c(NA, letters[1:6])), 0.5, c(0, 4), epsilon = 1, neighbours = limited(2)), class = "noiseaware_error")
    expect_error(released_quantile(x, 0.5, c(0, 4), epsilon = 1e-9, neighbours = limited(2)), class = "noiseaware_error_mechanism")
    expect_error(released_quantile(x, 0.5, c(0, 4), epsilon = 1, budget = account, neighbours = "add_remove"), class = "noiseaware_error_neighbours")
  })
})

test_that("a budget for persons pays for nothing else", {
  account <- budget(epsilon = 2, neighbours = limited(2))
  release(visits, totals, mech_laplace(epsilon = 1), budget = account, neighbours = limited(5))
  expect_equal(summary(account)$epsilon, 1, tolerance = 1e-4)
  expect_output(print(account), "one person added or removed")
  records <- budget(epsilon = 2, neighbours = "add_remove")
  without_words({
    expect_error(release(visits, totals, mech_laplace(epsilon = 1), budget = account, neighbours = "add_remove"), class = "noiseaware_error_neighbours")
    expect_error(release(visits, totals, mech_laplace(epsilon = 1), budget = records, neighbours = limited(1)), class = "noiseaware_error_neighbours")
  })
  file <- tempfile()
  on.exit(unlink(file))
  budget(epsilon = 2, neighbours = limited(2), file = file)
  again <- budget(file = file, neighbours = limited(9))
  release(visits, totals, mech_laplace(epsilon = 1), budget = again, neighbours = limited(9))
  expect_equal(summary(budget(file = file, neighbours = limited(1)))$epsilon, 1, tolerance = 1e-4)
})

test_that("a file states the limit", {
  path <- tempfile()
  on.exit(unlink(path))
  published <- release(visits, both, lapply(quiet, function(m) mech_laplace(epsilon = 1)), neighbours = limited(3))
  write_release(published, path)
  expect_identical(read_release(path), published)
  text <- readLines(path)
  expect_identical(sum(grepl("\"neighbours\": \"person\",", text, fixed = TRUE)), 1L)
  damaged <- function(from, to) {
    changed <- internal("render_json")(utils::modifyList(jsonlite::fromJSON(text, simplifyVector = FALSE), stats::setNames(list(to), from)))
    writeLines(changed, path)
    expect_error(read_release(path), class = "noiseaware_error_file")
  }
  damaged("contributions", 0)
  damaged("contributions", "three")
  damaged("neighbours", "add_remove")
  damaged("version", 4)
})

test_that("the posterior is that of the noise for all of a person's records", {
  st <- stat_counts(~ g, levels = list(g = c("u", "v")))
  fit <- function(release) sample_posterior(release, model_categorical(), prior_n = prior_n("poisson", mean = 40), seed = 2, chains = 1, iter = 200)
  by_person <- fit(as_release(c(u = 31, v = 12), st, mech_laplace(epsilon = 1.5), n = NULL, neighbours = persons(contributions = 3)))
  by_scale <- fit(as_release(c(u = 31, v = 12), st, mech_laplace(scale = 2), n = NULL, neighbours = "add_remove"))
  expect_identical(by_person$draws, by_scale$draws)
  expect_output(print(by_person), "at most 3 of each person; the model treats them as independent")
  truth <- simulate_release(model_categorical(), st, mech_laplace(epsilon = 1), n = 20, neighbours = persons(contributions = 2))
  expect_equal(unname(truth$scale), c(2, 2))
})

test_that("the owner's check uses at most so many records of a person, and has their number", {
  skip_on_cran()
  check <- function(neighbours) {
    calibrate(model_normal(), stat_sums(~ y + I(y^2), bounds = list(y = c(-4, 4))), mech_laplace(scale = 0.01), data = visits, neighbours = neighbours,
              prior_n("poisson", mean = 10), replicates = 2, chains = 1, iter = 60, seed = 1)
  }
  # three, one, two and three records of the four persons
  expect_identical(unique(suppressWarnings(check(limited(3)))$results[c("variable", "truth")])$truth[3L], 9)
  expect_error(check(persons(contributions = 3)), class = "noiseaware_error_neighbours")
})

test_that("what has no guarantee for persons is refused", {
  one <- as_release(5, totals, mech_laplace(epsilon = 1), n = NULL, neighbours = persons(contributions = 2))
  records <- stat_records(~ g, levels = list(g = c("u", "v")))
  expect_error(release(visits, totals, mech_laplace(epsilon = 1), neighbours = persons(contributions = 2)), "persons(\"id\", contributions = 2)", fixed = TRUE,
               class = "noiseaware_error_neighbours")
  without_words({
    expect_error(persons(3, 2), class = "noiseaware_error_argument")
    expect_error(persons("id"), class = "noiseaware_error_argument")
    expect_error(persons("id", 0.5), class = "noiseaware_error_argument")
    expect_error(release(visits, totals, mech_laplace(epsilon = 1), neighbours = "person"), class = "noiseaware_error_argument")
    expect_error(release(visits[-1], totals, mech_laplace(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_data")
    expect_error(release(transform(visits, id = replace(id, 1, NA)), totals, mech_laplace(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_data")
    # also if it is in a record that may not be used
    expect_error(release(transform(visits, y = replace(y, 1, NA)), totals, mech_laplace(epsilon = 1), neighbours = limited(1)), class = "noiseaware_error_missing")
    expect_error(release(visits, records, mech_randomized_response(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_neighbours")
    expect_error(privacy(mech_randomized_response(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_neighbours")
    expect_error(privacy(mech_objective(scale = 1, ridge = 1), neighbours = limited(2)), class = "noiseaware_error_neighbours")
    expect_error(partial_total(visits, totals, mech_laplace(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_neighbours")
    expect_error(add_release(one, one), class = "noiseaware_error_neighbours")
    expect_error(release(5, totals, mech_laplace(epsilon = 1), neighbours = limited(2)), class = "noiseaware_error_data")
  })
})
