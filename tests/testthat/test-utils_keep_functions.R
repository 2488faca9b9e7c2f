# What a saved object carries along of the functions that were given to it.

marker <- "4-BE-FORGOTTEN"

# the objects that a script makes, sourced with its source references
sourced <- function(lines) {
  path <- withr::local_tempfile(fileext = ".R")
  writeLines(c(paste("# data:", marker), lines), path)
  made <- new.env(parent = globalenv())
  source(path, local = made, keep.source = TRUE)
  made
}

carries_marker <- function(x) grepl(marker, rawToChar(serialize(x, NULL, ascii = TRUE)), fixed = TRUE)

test_that("the marker is found where it is", {
  made <- sourced("f <- function(x) x")
  expect_true(carries_marker(made$f))
  made <- sourced("secret <- function() { hidden <- 'x'; function() { function(x) { x } } }; f <- secret()()")
  expect_true(carries_marker(body(made$f)))
})

test_that("a release does not carry the script that its statistic was written in", {
  made <- sourced(c(
    "st <- noiseaware::stat_custom(function(r, cap = {function(v) { pmin(v, 3) }}) {",
    "  inner <- function(v, least = { 0 }) {",
    "    pmax(v, least)",
    "  }",
    "  cap(inner(r[, 'x']))",
    "}, 'x', 3, bounds = list(x = c(0, 5)))",
    "rel <- noiseaware::release(data.frame(x = c(1, 2, 9)), st, noiseaware::mech_laplace(epsilon = 100))"))
  expect_false(carries_marker(made$st))
  expect_false(carries_marker(made$rel))
  expect_equal(unname(made$rel$value), 6, tolerance = 0.3)
  made <- sourced(c("noise <- noiseaware::mech_custom(log_density = function(noise) { -rowSums(abs(noise)) }, r = function(s) { s + 1 })",
                    "st <- noiseaware::stat_sums(~ x, bounds = list(x = c(0, 1)))",
                    "rel <- noiseaware::as_release(2, st, noise, n = 5)"))
  expect_false(carries_marker(made$rel))
})

test_that("a fit does not carry the script or the variables around its model's functions", {
  made <- sourced(c(
    "make <- function(secret) {",
    "  spread <- 2",
    "  draw <- function(mean) {",
    "    c(mu = rnorm(1, mean, spread))",
    "  }",
    "  noiseaware::model_custom(function() { draw(0) }, function(theta, n) {",
    "    secret <- cbind(y = rnorm(n, theta['mu']))",
    "    secret",
    "  }, function(records, theta) { draw(mean(records)) }, 'y')",
    "}",
    "family <- function(secret) {",
    "  shape <- 2",
    "  noiseaware::model_expfam(log_density = function(x, theta) { log(x) + log(theta['rate']) - theta['rate'] * x^shape },",
    "    statistic = function(x) x^shape, r_prior = function() c(rate = rgamma(1, 2, 1)),",
    "    log_prior = function(theta) dgamma(theta['rate'], 2, 1, log = TRUE),",
    "    r_theta = function(total, n) c(rate = rgamma(1, 2 + n, 1 + total)), support = c(0, Inf))",
    "}"))
  st <- stat_sums(~ y, bounds = list(y = c(0, 2)))
  rel <- as_release(5, st, mech_laplace(epsilon = 1), n = 8)
  fit <- suppressWarnings(sample_posterior(rel, made$make(marker), chains = 1, iter = 20, seed = 1))
  expect_false(carries_marker(fit))
  fit <- suppressWarnings(sample_posterior(rel, made$family(marker), method = "clt", chains = 1, iter = 20, seed = 1))
  expect_false(carries_marker(fit))
})

test_that("functions that are kept give what they gave", {
  make <- function() {
    step <- 3
    count <- 0
    sum_to <- function(n) if (n > 0) sum_to(n - 1) + step else 0
    list(up = function() count <<- count + 1, now = function() count, total = function(n) sum_to(n),
         part = function(v) {
           unused <- v
           step[1] <- step[1] + v # read before it is assigned
           step
         }, none = NULL, sum = sum)
  }
  kept <- internal("keep_functions")(make())
  expect_identical(kept$total(4), 12)
  expect_identical(kept$part(2), 5)
  kept$up()
  expect_identical(kept$now(), 1) # the copy of a shared variable is shared
  expect_null(kept$none)
  expect_identical(kept$sum, sum)
  expect_setequal(ls(environment(kept$total)), c("step", "count", "sum_to"))
  expect_identical(ls(environment(internal("keep_functions")(make()["now"])$now)), "count")
  # of a package: its namespace
  expect_identical(environment(internal("keep_functions")(list(stats::sd))[[1]]), asNamespace("stats"))
  expect_identical(environment(internal("keep_alone")(stats::sd, "f")), asNamespace("stats"))
})

test_that("a function that goes with a release must not need what is around it", {
  capped <- function(cap) stat_custom(function(r) pmin(r[, "x"], cap), "x", 1, list(x = c(0, 1)))
  show(refusals("custom", alist(capped(1))))
  expect_error(local({
    scale <- 2
    mech_custom(log_density = function(noise) -rowSums(abs(noise)) / scale)
  }), class = "noiseaware_error_custom")
  expect_error(local({
    shift <- 2
    mech_custom(log_density = function(noise) -rowSums(abs(noise)), r = function(s) s + shift)
  }), class = "noiseaware_error_custom")
  # a number that has the name of a function that is called
  expect_s3_class(local({
    pmin <- 3
    stat_custom(function(r) pmin(r[, "x"], 1), "x", 1, list(x = c(0, 1)))
  }), "stat_custom")
})
