# Releases: what they hold, what they never hold, their noise, and their file.

st <- stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(-10, 10)))
rel <- as_release(c(12.1, -3.4, 8.8, -2.5, 5.9), st, mech_laplace(epsilon = 1), n = 50)

# every test that writes has a directory of its own
local_release_dir <- function(frame = parent.frame()) {
  withr::local_dir(withr::local_tempdir(.local_envir = frame), .local_envir = frame)
}

same_bits <- function(a, b) identical(serialize(a, NULL), serialize(b, NULL))

test_that("releases print what is public", {
  local_reproducible_output()
  wide <- stat_crossprod(y ~ a + b + c + d, lapply(c(y = 1, a = 1, b = 1, c = 1, d = 1), function(u) c(0, u)))
  wide <- as_release(seq_along(wide$components) / 3, wide, mech_gaussian(epsilon = 1, delta = 1e-6), n = 1234567)
  scaled <- as_release(c(1e9, 1, 0, -1e-9, 2), st, mech_gaussian(sd = c(1, 2, 3, 4, 1e-9)), n = 1)
  expect_snapshot({
    rel
    summary(rel)
    wide
    summary(wide)
    scaled
  })
})

test_that("as_release() takes names in any order and gives them in the statistic's", {
  value <- c(y = 1, x = 2, "y^2" = 3, "y:x" = 4, "x^2" = 5)
  expected <- as_release(unname(value), st, mech_laplace(epsilon = 1), 9)
  expect_identical(expected$value, value)
  set.seed(50)
  for (i in 1:10) expect_identical(as_release(sample(value), st, mech_laplace(epsilon = 1), 9L), expected)
  expect_identical(as_release(1:5, st, mech_laplace(epsilon = 1), 9), expected)
  expect_identical(expected$n, 9)
  expect_identical(expected$noise, "published")
  expect_identical(names(expected$scale), st$components)
})

test_that("a product's factors may stand in any order", {
  swapped <- c(y = 1, x = 2, "y^2" = 3, "x:y" = 4, "x^2" = 5)
  expect_identical(as_release(swapped, st, mech_laplace(epsilon = 1), 9), as_release(1:5, st, mech_laplace(epsilon = 1), 9))
  both <- c("a: y" = 1, "a: x" = 2, "a: y^2" = 3, "a: x:y" = 4, "a: x^2" = 5, "b: g=u:h=no" = 6, "b: h=yes:g=u" = 7, "b: g=v:h=no" = 8, "b: g=v:h=yes" = 9)
  parts <- list(a = st, b = stat_counts(~ g:h, list(g = c("u", "v"), h = c("no", "yes"))))
  expect_identical(unname(as_release(both, parts, list(a = mech_laplace(epsilon = 1), b = mech_laplace(epsilon = 1)), 9)$value), as.double(1:9))
  # the same factors twice, or of another part
  expect_error(as_release(c(y = 1, x = 2, "y^2" = 3, "x:y" = 4, "y:x" = 5), st, mech_laplace(epsilon = 1), 9), class = "noiseaware_error_value")
  expect_error(as_release(c(y = 1, x = 2, "y^2" = 3, "x:z" = 4, "x^2" = 5), st, mech_laplace(epsilon = 1), 9), class = "noiseaware_error_value")
})

test_that("columns of noise are left out where no noise is added", {
  answers <- as_release(c(0, 1, 1), stat_records(~ g, levels = list(g = c("u", "v"))), mech_randomized_response(epsilon = 1), 3)
  expect_identical(grep("sd|signal", capture.output(print(answers), summary(answers)), value = TRUE), character())
  expect_match(capture.output(print(as_release(1:5, st, mech_laplace(epsilon = 1), 9))), "noise sd signal/noise", all = FALSE)
})

# ---- noise ---------------------------------------------------------------------

data <- data.frame(y = c(1, -4, 20, 3), x = c(0.5, 2, -1, 6))

test_that("the noise of a release is the operating system's, that of a simulation R's", {
  value <- function(make, seed) {
    set.seed(seed)
    make(data, st, mech_laplace(epsilon = 1))$value
  }
  expect_false(any(value(release, 1) == value(release, 1)))
  expect_identical(value(simulate_release, 1), value(simulate_release, 1))
  expect_false(any(value(simulate_release, 1) == value(simulate_release, 2)))
  # and R's generator is left alone
  set.seed(1)
  before <- .Random.seed
  expect_identical(release(data, st, mech_laplace(epsilon = 1))$noise, "entropy")
  expect_identical(.Random.seed, before)
  expect_identical(simulate_release(data, st, mech_laplace(epsilon = 1))$noise, "simulation")
})

test_that("a simulation from a model is fixed by the seed and gives its truth apart", {
  simulate <- function(parameters = NULL) {
    set.seed(3)
    simulate_release(model_lm(), st, mech_gaussian(mu = 1), n = 40, parameters = parameters)
  }
  one <- simulate()
  expect_identical(one, simulate())
  truth <- attr(one, "truth")
  expect_identical(dim(truth$data), c(40L, 2L))
  given <- simulate(truth$parameters)
  expect_equal(attr(given, "truth")$parameters, truth$parameters)
})

test_that("noise has the mechanism's distribution", {
  skip_on_cran() # takes long; `make test` runs it
  total <- internal("statistic_total")(st, data)
  mechanisms <- list(mech_laplace(epsilon = 0.5), mech_gaussian(sd = c(1, 2, 3, 40, 500)))
  distributions <- list(function(q) ifelse(q < 0, exp(q) / 2, 1 - exp(-q) / 2), pnorm)
  size <- c(1, sqrt(2 / pi)) # mean and standard deviation of |noise|
  spread <- c(1, sqrt(1 - 2 / pi))
  for (i in seq_along(mechanisms)) {
    scale <- internal("mechanism_scale")(mechanisms[[i]], st)
    set.seed(51)
    for (make in list(release, simulate_release)[seq_len(i)]) {
      noise <- t(replicate(450, (make(data, st, mechanisms[[i]])$value - total) / scale))
      smooth <- noise + runif(length(noise), -1, 1) * 2^-24 # a release lies on a grid
      for (j in seq_along(total)) expect_gt(ks.test(smooth[, j], distributions[[i]])$p.value, 1e-6)
      expect_lt(max(abs(colMeans(abs(noise)) - size[i])), 5 * spread[i] / sqrt(450))
      expect_lt(abs(mean(abs(noise)) - size[i]), 5 * spread[i] / sqrt(length(noise)))
      # components, and releases, independent
      correlation <- cor(cbind(noise, noise[c(450, 1:449), ]), method = "spearman")
      expect_lt(max(abs(correlation[upper.tri(correlation)])), 6 / sqrt(450))
    }
  }
})

test_that("without noise a release would be the total", {
  total <- internal("statistic_total")(st, data)
  tiny <- release(data, st, mech_gaussian(sd = 1e-12))
  expect_equal(tiny$value, total, tolerance = 1e-9)
  expect_identical(tiny$n, 4)
})

# ---- nothing confidential ---------------------------------------------------------

secret_numbers <- c(1234.56789, 98.7654321, 5.4321e-5, 777.125)
secrets <- c("OMITTED-LEVEL", "ROW-NAME-OF-A-PERSON", "COLUMN-LABEL", "1234.56", "98.7654", "5.4321e-05", "777.125")
confidential <- structure(
  data.frame(y = structure(secret_numbers, label = "COLUMN-LABEL"), x = rev(secret_numbers), other = "OMITTED-LEVEL",
             row.names = c("ROW-NAME-OF-A-PERSON", 2:4)),
  comment = "COLUMN-LABEL")

# which secrets stand in an object, as text or as the eight bytes of a double
found <- function(object, numbers = secret_numbers) {
  bytes <- serialize(object, NULL)
  patterns <- c(lapply(secrets, charToRaw), lapply(numbers, writeBin, raw(), endian = "big"),
                lapply(numbers, writeBin, raw(), endian = "little"))
  names(patterns) <- c(secrets, numbers, numbers)
  names(patterns)[vapply(patterns, function(p) length(grepRaw(p, bytes, fixed = TRUE)) > 0, TRUE)]
}

wide_bounds <- list(y = c(-5000, 5000), x = c(-5000, 5000))

test_that("the search for secrets finds them", {
  expect_length(found(confidential), 3 + length(secret_numbers))
  expect_true("1234.56" %in% found("is 1234.56789."))
})

test_that("a release holds no confidential value", {
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(y ~ x, wide_bounds, rescale)
    for (mechanism in list(mech_laplace(epsilon = 1), mech_gaussian(epsilon = 1, delta = 1e-6))) {
      public <- release(confidential, st, mechanism)
      numbers <- c(secret_numbers, internal("statistic_total")(st, confidential))
      expect_identical(found(public, numbers), character())
      path <- withr::local_tempfile()
      write_release(public, path)
      expect_identical(found(readLines(path)), character())
      expect_identical(found(capture.output(public, summary(public))), character())
    }
  }
})

test_that("nor does one of several statistics", {
  st <- stat_crossprod(y ~ x, wide_bounds)
  public <- release(confidential, list(a = st, b = st), list(a = mech_laplace(epsilon = 1), b = mech_gaussian(mu = 1)))
  expect_identical(found(public, c(secret_numbers, internal("statistic_total")(st, confidential))), character())
  path <- withr::local_tempfile()
  write_release(public, path)
  expect_identical(found(readLines(path)), character())
})

test_that("a simulated release writes no truth", {
  set.seed(4)
  simulated <- simulate_release(model_lm(), st, mech_laplace(epsilon = 1), n = 20)
  path <- withr::local_tempfile()
  write_release(simulated, path)
  expect_null(attr(read_release(path), "truth"))
})

test_that("a release is plain data: no function, environment or call", {
  types <- function(x) c(typeof(x), if (is.list(x)) unlist(lapply(x, types)), unlist(lapply(attributes(x), types)))
  local({
    confidential <- confidential
    statistic <- stat_crossprod(y ~ x, wide_bounds)
    public <- release(confidential, statistic, mech_laplace(epsilon = 1))
    expect_true(all(types(public) %in% c("list", "character", "double", "integer", "logical", "NULL")))
  })
})

test_that("conditions about bad data hold no confidential value", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x, wide_bounds)
  with_factor <- stat_crossprod(y ~ x + other, c(wide_bounds, list(other = c("a", "b"))))
  holed <- confidential
  holed$y[2] <- NA
  text <- confidential
  text$y <- as.character(text$y)
  laplace <- mech_laplace(epsilon = 1)
  bad <- list(
    missing = function() release(holed, st, laplace),
    level = function() release(confidential, with_factor, laplace),
    text = function() release(text, st, laplace),
    absent = function() release(confidential["y"], st, laplace),
    twice = function() release(stats::setNames(confidential, c("y", "x", "y")), st, laplace),
    empty = function() release(confidential[0, ], st, laplace),
    nested = function() release(list(confidential), st, laplace),
    matrix = function() release(as.matrix(confidential[1:2]), st, laplace),
    scalar = function() release(1234.56789, st, laplace),
    string = function() release("OMITTED-LEVEL", st, laplace),
    # data inside the call
    literal = function() release(data.frame(y = 1234.56789, x = NA), st, laplace),
    inlined = function() do.call(release, list(holed, st, laplace)),
    named = function() do.call("release", list(holed, st, laplace)),
    within = function() do.call(lapply, list(list(holed), release, st, laplace)),
    statistic = function() do.call("release", list(confidential, "no statistic", laplace)),
    mechanism = function() do.call(release, list(confidential, st, 3)),
    scale = function() do.call(release, list(confidential, st, mech_laplace(scale = c(1, 2)))),
    simulation = function() do.call(simulate_release, list(holed, st, laplace)),
    simulated = function() simulate_release(1234.56789, st, laplace),
    nonprivate = function() do.call(nonprivate_posterior, list(holed, model_lm(), st))
  )
  for (name in names(bad)) {
    condition <- tryCatch(bad[[name]](), error = identity)
    expect_s3_class(condition, "noiseaware_error")
    expect_identical(found(list(condition, conditionMessage(condition))), character(), label = name)
  }
})

# ---- the file ----------------------------------------------------------------------

awkward <- c(1 / 3, 5e-324, 1.7976931348623157e308, -0, 0.1 + 0.2, -.Machine$double.eps, 2^53 + 2, 1e15, 1e22, 2^31, 1e-310,
             .Machine$double.xmin, pi * 1e-200, -123456789012345678)

expect_round_trip <- function(release) {
  path <- withr::local_tempfile(fileext = ".json")
  expect_identical(write_release(release, path), path)
  back <- read_release(path)
  attr(release, "truth") <- NULL
  expect_true(same_bits(back$value, release$value))
  expect_identical(back, release)
}

test_that("a release survives its file bit for bit", {
  skip_on_cran() # takes long; `make test` runs it
  for (i in seq_along(awkward)) {
    value <- rep_len(awkward[c(i:length(awkward), seq_len(i - 1))], 5)
    expect_round_trip(as_release(value, st, mech_laplace(epsilon = 0.1 + 0.2), n = 2^31 - 1))
  }
  bounds <- list(y = c(-1 / 3, 0.1 + 0.2), x = c(1e-5, 2 / 3), g = c("a", "b \"quoted\" \\ {brace}", " ", "[0,1)", "NA", "10"))
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(y ~ x + g, bounds, rescale)
    for (mechanism in list(mech_laplace(epsilon = 1 / 3), mech_laplace(scale = seq_along(st$components) / 3), mech_gaussian(rho = 1 / 7),
                           mech_gaussian(epsilon = 0.3, delta = 1e-7), mech_gaussian(mu = 1e-3), mech_gaussian(sd = pi),
                           mech_gaussian(sd = stats::setNames(rev(seq_along(st$components)), rev(st$components))))) {
      set.seed(60)
      expect_round_trip(as_release(rnorm(length(st$components)), st, mechanism, n = 1))
    }
  }
  expect_round_trip(release(data, stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1))), mech_laplace(epsilon = 1)))
  expect_round_trip(simulate_release(model_lm(), stat_crossprod(y ~ 1, list(y = c(0, 1))), mech_laplace(epsilon = 1), n = 3))
  odd <- stat_crossprod(`a b` ~ `x"1` + `if`, list(`a b` = c(0, 1), `x"1` = c(0, 1), `if` = c(0, 1)))
  expect_round_trip(as_release(seq_along(odd$components), odd, mech_laplace(epsilon = 1), 5))
})

test_that("names and levels beyond ASCII survive", {
  skip_if_not(l10n_info()[["UTF-8"]])
  bounds <- stats::setNames(list(c(0, 1), c("\u00e4", "\u6771\u4eac")), c("gr\u00f6\u00dfe", "ort"))
  st <- stat_crossprod(stats::as.formula("gr\u00f6\u00dfe ~ ort"), bounds)
  expect_round_trip(as_release(seq_along(st$components), st, mech_laplace(epsilon = 1), 5))
})

test_that("the file is as documented", {
  local_release_dir()
  write_release(rel, "release.json")
  expect_snapshot_output(writeLines(readLines("release.json")))
})

test_that("a file is whole or absent", {
  local_release_dir()
  write_release(rel, "release.json")
  expect_identical(dir(all.files = TRUE, no.. = TRUE), "release.json")
  before <- readLines("release.json")

  # an object that cannot be written
  broken <- rel
  broken$statistic <- structure(list(), class = "noiseaware_statistic")
  expect_error(write_release(broken, "release.json"))
  # a name that the file system refuses after the contents were written
  expect_error(write_release(rel, strrep("x", 300)), class = "noiseaware_error_file")
  # no such directory, a file for a directory, a directory for a file
  dir.create("there")
  for (path in c("absent/release.json", "release.json/inside", "there")) {
    expect_error(write_release(rel, path), class = "noiseaware_error_file")
  }
  Sys.chmod("there", "0555")
  if (file.access("there", 2) != 0) { # the superuser may write anyway
    expect_error(write_release(rel, "there/release.json"), class = "noiseaware_error_file")
  }
  Sys.chmod("there", "0755")
  expect_identical(dir(all.files = TRUE, no.. = TRUE, recursive = TRUE), "release.json")
  expect_identical(readLines("release.json"), before)

  # a longer one is replaced, not written over
  long <- as_release(rep(1 / 3, 5), st, mech_laplace(epsilon = 1 / 3), n = 50)
  write_release(long, "release.json")
  write_release(rel, "release.json")
  expect_identical(readLines("release.json"), before)
})

test_that("a mutated file never yields another release", {
  skip_on_cran() # takes long; `make test` runs it
  local_release_dir()
  entropy <- release(data, st, mech_laplace(epsilon = 0.3))
  set.seed(8)
  for (r in list(rel, entropy)) {
    write_release(r, "release.json")
    bytes <- readBin("release.json", "raw", 1e5)
    for (i in 1:45) {
      at <- sample(length(bytes), 1)
      mutated <- switch(sample(3, 1), replace(bytes, at, as.raw(sample(32:126, 1))), bytes[-at], append(bytes, as.raw(sample(48:57, 1)), at))
      writeBin(mutated, "mutated.json")
      back <- tryCatch(if (i <= 10) read_release("mutated.json") else without_words(read_release("mutated.json")), noiseaware_error_file = function(e) NULL)
      if (!is.null(back)) expect_identical(back, r)
    }
  }
  # every digit of every number counts
  digits <- which(bytes %in% charToRaw("0123456789"))
  for (at in sample(digits, 30)) {
    mutated <- replace(bytes, at, as.raw(48L + (as.integer(bytes[at]) - 48L + 1L) %% 10L))
    writeBin(mutated, "mutated.json")
    back <- tryCatch(without_words(read_release("mutated.json")), noiseaware_error_file = function(e) NULL)
    if (!is.null(back)) expect_identical(back, entropy)
  }
})

# ---- neighbours, and a number of records that is not known -----------------------

test_that("files of version 1 are of one replaced record", {
  path <- system.file("examples", "birthwt.json", package = "noiseaware")
  expect_match(paste(readLines(path), collapse = ""), '"version": 1')
  rel <- read_release(path)
  expect_identical(rel$neighbours, "replace")
  expect_identical(rel$n, 189)
  # it is written in today's layout
  copy <- tempfile()
  write_release(rel, copy)
  expect_match(paste(readLines(copy), collapse = ""), '"version": 4,.*"neighbours": "replace"')
  expect_identical(read_release(copy), rel)
  # version 2 knew nothing of what is done after the noise
  writeLines(internal("release_json")(rel, 2L), copy)
  expect_match(paste(readLines(copy), collapse = ""), '"version": 2,.*"neighbours": "replace"')
  expect_identical(read_release(copy), rel)
  spoilt <- sub("one record replaced", "add_remove", readLines(path))
  writeLines(spoilt, copy)
  expect_error(read_release(copy), class = "noiseaware_error_file")
})

test_that("a release of an unknown number of records is read as it was written, and says so", {
  st <- stat_counts(~ g, list(g = c("a", "b")))
  rel <- as_release(c(5, 7), st, mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  expect_identical(unname(rel$scale), c(1, 1))
  expect_identical(unname(as_release(c(5, 7), st, mech_laplace(epsilon = 1), n = NULL)$scale), c(2, 2))
  path <- write_release(rel, tempfile())
  expect_identical(read_release(path), rel)
  shown <- paste(capture.output(print(rel)), collapse = "\n")
  expect_match(shown, "records    not known")
  expect_match(shown, "one record added or removed")
  expect_s3_class(plot(rel), "ggplot")
  expect_error(as_release(5, stat_records(~ g, levels = list(g = c("a", "b"))), mech_randomized_response(epsilon = 1), n = NULL),
               class = "noiseaware_error_argument")
})

test_that("what is simulated and studied takes the neighbours too", {
  st <- stat_sums(~ x, list(x = c(2, 3)))
  set.seed(1)
  rel <- simulate_release(model_poisson(prior = prior_gamma(2, 1)), st, mech_laplace(epsilon = 1), n = 20, neighbours = "add_remove")
  expect_null(rel$n)
  expect_identical(unname(rel$scale), 3)
  cal <- calibrate(model_poisson(prior = prior_gamma(2, 1)), st, mech_laplace(epsilon = 1), n = 20, replicates = 2, method = "naive", chains = 1, iter = 20,
                   seed = 1, neighbours = "add_remove")
  expect_identical(cal$problem$neighbours, "add_remove")
  plan <- design(model_poisson(prior = prior_gamma(2, 1)), st, epsilon = 1, n = 20, replicates = 2, method = "collapse", chains = 1, iter = 100, seed = 1,
                 neighbours = "add_remove")
  same <- design(model_poisson(prior = prior_gamma(2, 1)), st, epsilon = 1 / 3, n = 20, replicates = 2, method = "collapse", chains = 1, iter = 100, seed = 1)
  expect_identical(plan$sd, same$sd)
})

test_that("prints say that a budget above 10 is weak, for records and for persons", {
  st <- stat_counts(~ g, list(g = c("a", "b")))
  shown <- function(epsilon, ...) paste(utils::capture.output(print(as_release(c(3, 5), st, mech_laplace(epsilon = epsilon), n = 8, ...))), collapse = "\n")
  expect_no_match(shown(10), "weak")
  expect_match(shown(12), "any one record may change by a factor of up to 160000", fixed = TRUE)
  expect_match(shown(46), "any one record may change by a factor of up to 10^20", fixed = TRUE)
  expect_match(shown(12, neighbours = persons("id", contributions = 2)), "any one person may change", fixed = TRUE)
})

test_that("a weak guarantee is stated as such, one that we compute from the noise as ours", {
  st <- stat_sums(~ y, list(y = c(0, 100)))
  shown <- function(mechanism) capture.output(print(as_release(c(y = 405), st, mechanism, n = 20)))
  expect_match(shown(mech_laplace(epsilon = 100)), "weak: the odds .* a factor of up to 10\\^43", all = FALSE)
  ours <- shown(mech_laplace(scale = 1))
  expect_match(ours, "guarantee  epsilon = 100", all = FALSE)
  expect_match(ours, "computed from the noise, for values that change by the whole range", all = FALSE)
  expect_false(any(grepl("weak", ours)))
  for (other in list(mech_laplace(scale = 50), mech_exact())) expect_false(any(grepl("computed from the noise", shown(other))))
})
