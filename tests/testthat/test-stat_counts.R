# Counts: what is counted, how it is named, how far one record moves it.

survey_levels <- list(y = c("a", "b", "c"), x1 = c("no", "yes"), x2 = c("u", "v", "w", "z"))

survey_data <- function(n, seed = 1) {
  set.seed(seed)
  as.data.frame(lapply(survey_levels, function(l) factor(sample(l, n, TRUE, prob = seq_along(l)), l)))
}

# the same by table(), margin after margin, the last variable fastest
table_counts <- function(data, margins) {
  unlist(lapply(margins, function(m) {
    counts <- table(data[rev(m)])
    names <- do.call(expand.grid, c(Map(function(v, l) paste0(v, "=", l), rev(m), dimnames(counts)), stringsAsFactors = FALSE))
    stats::setNames(as.vector(counts), apply(names[rev(seq_along(m))], 1, paste, collapse = ":"))
  }))
}

eval_cells <- function(statistic, x) .Call(internal("ffi_stat_eval"), internal("statistic_spec")(statistic), x)

test_that("totals are those of table(), named after the levels", {
  skip_on_cran() # takes long; `make test` runs it
  cases <- list(
    list(~ y, list("y")),
    list(~ x2 + y, list("x2", "y")),
    list(~ y:x1 + y:x2, list(c("y", "x1"), c("y", "x2"))),
    list(~ x2:y + x1, list(c("x2", "y"), "x1")),
    list(~ (x1:x2:y) + y, list(c("x1", "x2", "y"), "y"))
  )
  for (case in cases) {
    st <- stat_counts(case[[1]], survey_levels[unique(unlist(case[[2]]))])
    for (n in c(1, 3, 4, 257, 1000)) {
      data <- survey_data(n, n)
      expected <- table_counts(data, case[[2]])
      expect_identical(st$components, names(expected))
      expect_equal(internal("statistic_total")(st, data), expected)
      x <- internal("record_matrix")(data, st$columns, st$levels)
      each <- eval_cells(st, x)
      expect_true(all(each %in% 0:1))
      expect_equal(rowSums(each), rep(length(case[[2]]), n))
      expect_equal(colSums(each), unname(expected))
    }
  }
})

test_that("names and order of a crossed margin", {
  st <- stat_counts(~ y:x1, survey_levels[c("x1", "y")])
  expect_identical(st$components, c("y=a:x1=no", "y=a:x1=yes", "y=b:x1=no", "y=b:x1=yes", "y=c:x1=no", "y=c:x1=yes"))
  expect_identical(st$columns$name, c("y", "x1"))
  expect_identical(st$kind, "cells")
  expect_identical(stat_counts(~ x1, survey_levels["x1"])$components, c("x1=no", "x1=yes"))
})

test_that("levels are the declared ones, whatever the data hold", {
  st <- stat_counts(~ y, list(y = c("1", "2", "9")))
  expect_equal(internal("statistic_total")(st, data.frame(y = c(2, 1, 2))), c("y=1" = 1, "y=2" = 2, "y=9" = 0))
  expect_equal(internal("statistic_total")(st, data.frame(y = factor(c("9", "1")), z = NA)), c("y=1" = 1, "y=2" = 0, "y=9" = 1))
  expect_error(release(data.frame(y = c(1, 3)), st, mech_laplace(epsilon = 1)), class = "noiseaware_error_levels")
  expect_error(release(data.frame(y = c(1, NA)), st, mech_laplace(epsilon = 1)), class = "noiseaware_error_missing")
  expect_error(release(data.frame(x = 1), st, mech_laplace(epsilon = 1)), class = "noiseaware_error_data")
})

test_that("the sensitivity is what one replaced record can do, and it can", {
  records <- expand.grid(lapply(survey_levels, factor))
  for (formula in list(~ y, ~ y + x1, ~ y:x1 + y:x2, ~ y:x1:x2, ~ y + x1 + x2 + y:x1 + x1:x2)) {
    st <- stat_counts(formula, survey_levels[all.vars(formula)])
    each <- eval_cells(st, internal("record_matrix")(records, st$columns, st$levels))
    pairs <- as.matrix(expand.grid(seq_len(nrow(each)), seq_len(nrow(each))))
    moved <- each[pairs[, 1], ] - each[pairs[, 2], ]
    expect_equal(sensitivity(st, "L1"), max(rowSums(abs(moved))))
    expect_equal(sensitivity(st, "L2"), max(sqrt(rowSums(moved^2))))
  }
})

test_that("numbers, logicals and factors are levels by their text", {
  data <- data.frame(y = c(1, 3, 3), z = c(TRUE, FALSE, TRUE), g = factor(c("b", "b", "a")), k = c(1e5, 2e5, 1e5), m = c(0.1 + 0.2, 1, 1))
  total <- function(formula, levels, data) internal("statistic_total")(stat_counts(formula, levels), data)
  expect_identical(total(~ y, list(y = 1:3), data), c("y=1" = 1, "y=2" = 0, "y=3" = 2))
  expect_identical(stat_counts(~ y, list(y = 1:3)), stat_counts(~ y, list(y = c("1", "2", "3"))))
  expect_identical(total(~ z, list(z = c(FALSE, TRUE)), data), c("z=FALSE" = 1, "z=TRUE" = 2))
  expect_identical(total(~ g, list(g = data$g), data), c("g=a" = 1, "g=b" = 2))
  # as integers and as doubles, declared as text with an exponent too
  expect_identical(total(~ k, list(k = c(100000, 200000)), data), c("k=100000" = 2, "k=200000" = 1))
  expect_identical(total(~ k, list(k = c(100000, 200000)), transform(data, k = as.integer(k))), c("k=100000" = 2, "k=200000" = 1))
  expect_identical(total(~ k, list(k = c("1e+05", "2e+05")), data), c("k=1e+05" = 2, "k=2e+05" = 1))
  expect_identical(total(~ m, list(m = c(0.3, 1)), data), c("m=0.3" = 1, "m=1" = 2))
  expect_identical(stat_records(~ y, levels = list(y = 1:3))$levels, list(y = c("1", "2", "3")))
  for (bad in list(c(1, NA), 1, c(1, 1), as.Date("2020-01-01") + 0:1, list(1, 2), matrix(1:4, 2), factor("a"))) {
    expect_error(stat_counts(~ y, list(y = bad)), class = "noiseaware_error_levels")
  }
  # among bounds a factor represents its levels, two numbers stay bounds
  bounds <- list(y = c(0, 3), g = data$g)
  expect_identical(stat_crossprod(y ~ g, bounds), stat_crossprod(y ~ g, list(y = c(0, 3), g = c("a", "b"))))
  expect_error(stat_crossprod(y ~ g, list(y = c(0, 3), g = 1:3)), "character vector of levels", class = "noiseaware_error_bounds")
})

test_that("formulas and levels that cannot be are refused", {
  skip_on_cran()
  levels <- survey_levels
  for (formula in alist(y ~ x1, ~ 1, ~ ., ~ y * x1, ~ y - x1, ~ y^2, ~ foo(y), ~ y:y, ~ y + y, ~ y:x1 + x1:y, ~ 0 + y, ~ y:x1 + 3, ~ "y",
                        ~ y | x1, ~ -y, ~ +y, "y", quote(y), NULL)) {
    expect_error(stat_counts(eval(formula), levels), class = "noiseaware_error_formula", label = deparse(formula))
  }
  for (levels in list(NULL, c("a", "b"), list(c("a", "b")), list(x = c("a", "b")), list(y = c("a", "b"), x = c("a", "b")),
                      list(y = c("a", "b"), y = c("a", "b")), list(y = "a"), list(y = character()), list(y = c("a", "")), list(y = c("a", "a")),
                      list(y = c("a", NA)), list(y = list("a", "b")))) {
    expect_error(stat_counts(~ y, levels), class = "noiseaware_error_levels", label = deparse(levels))
  }
  many <- as.character(1:1001)
  expect_error(stat_counts(~ y:x, list(y = many, x = many)), "at most 1,000,000 counts, but give 1,002,001", class = "noiseaware_error_levels")
  expect_error(stat_counts(~ y:x, list(y = c("a", "a:x=b"), x = c("b", "b:x=b"))), "different names", class = "noiseaware_error_levels")
})

test_that("a statistic keeps public facts only and prints them", {
  st <- local({
    secret <- 1
    stat_counts(~ y:x1 + y, list(y = c(first = "a", second = "b"), x1 = structure(c("no", "yes"), note = "secret")))
  })
  expect_identical(st$levels, list(y = c("a", "b"), x1 = c("no", "yes")))
  expect_identical(st$formula, "~y:x1 + y")
  expect_false(any(vapply(unclass(st), function(v) is.environment(v) || is.language(v), TRUE)))
  expect_identical(format(st)[c(1, 2, 4)],
                   c("<statistic> counts of ~y:x1 + y (2 margins)", "  levels      y in {a, b}, x1 in {no, yes}", "  sensitivity L1 4, L2 2"))
})

test_that("JSON there and back; a file that says something else is refused", {
  st <- stat_counts(~ y:x1 + y:x2, survey_levels)
  read <- function(text) {
    internal("stat_counts_from_json")(jsonlite::parse_json(text), claim = identity, refuse = function(message) stop(structure(
      class = c("refused", "error", "condition"), list(message = message, call = NULL))))
  }
  text <- as.character(jsonlite::toJSON(internal("statistic_json")(st), auto_unbox = TRUE))
  expect_identical(read(text), st)
  changes <- list(c('"formula"', '"f"'), c('"~y:x1 + y:x2"', "1"), c('"~y:x1 + y:x2"', '"y"'), c('"~y:x1 + y:x2"', '"~y:("'),
                  c('["no","yes"]', '"no"'), c('["no","yes"]', "[1,2]"), c('["no","yes"]', "[]"), c('["no","yes"]', '{"no":"yes"}'),
                  c('["no","yes"]', '[["no"],["yes"]]'), c('["no","yes"]', "null"), c('"levels":', '"levels":1,"l":'))
  for (change in changes) {
    changed <- sub(change[1], change[2], text, fixed = TRUE)
    expect_false(identical(changed, text), label = change[1])
    expect_error(read(changed), class = "refused", label = changed)
  }
  for (change in list(c('"~y:x1 + y:x2"', '"~ y:x1"'), c('["no","yes"]', '["no"]'), c('["no","yes"]', '["no","no"]'), c('"x1":', '"x9":'),
                      c("~y:x1", "~system('x'):x1"))) {
    expect_error(read(sub(change[1], change[2], text, fixed = TRUE)), class = "noiseaware_error", label = change[2])
  }
})

test_that("a release of counts has a noisy number for each cell", {
  st <- stat_counts(~ y:x1, survey_levels[c("y", "x1")])
  data <- survey_data(200)
  set.seed(4)
  rel <- simulate_release(data, st, mech_gaussian(sd = 2))
  expect_identical(names(rel$value), st$components)
  expect_lt(max(abs(rel$value - table_counts(data, list(c("y", "x1"))))), 10)
  expect_identical(unname(rel$scale), rep(2, 6))
  expect_equal(unname(simulate_release(data, st, mech_laplace(epsilon = 0.5))$scale), rep(4, 6))
  expect_identical(release(data, st, mech_laplace(epsilon = 1))$n, 200)
})
