# The Python reader and writer against R's: the same bytes.

python <- Sys.which("python3")
run_python <- function(lines, ...) {
  folder <- system.file("python", package = "noiseaware")
  code <- withr::local_tempfile(lines = c("import sys", paste0("sys.path.insert(0, ", encodeString(folder, quote = "\""), ")"), "import noiseaware as na", lines))
  output <- suppressWarnings(system2(python, c("-B", code, ...), stdout = TRUE, stderr = TRUE))
  list(status = attr(output, "status") %||% 0L, output = output)
}
`%||%` <- rlang::`%||%`

releases <- function() {
  port <- stat_counts(~ port, list(port = c("C \u00e9", "Q \"x\"")))
  several <- list(size = stat_size(), port = port, v = stat_sums(~ x, list(x = c(-0.1, 10))), by = stat_by(stat_sums(~ v, list(v = c(0, 20))), list(w = c("a", "b"))),
                  lin = stat_linear(port, list(d = c("port=C \u00e9" = 0.1))), h = stat_histogram(~ z, breaks = c(-Inf, 1, 2, Inf)))
  noise <- list(size = mech_laplace(scale = 1), port = published(mech_discrete_gaussian(sd = 2.5), threshold = 3), v = mech_gaussian(sd = 0.1),
                by = mech_laplace(epsilon = 1), lin = mech_laplace(scale = 3), h = mech_laplace(scale = 2))
  value <- list(size = 10.25, port = c(5, NA), v = -0, by = c(`v:w=a` = 1e9, `v:w=b` = 1 / 3), lin = 3, h = 1:3)
  x <- list(x = c(-1, 1), y = c(0, 9))
  list(as_release(value, several, noise, NULL, "add_remove"),
       as_release(7, stat_size(), mech_laplace(epsilon = 1), NULL, persons(contributions = 2)),
       as_release(c(x = 3, y = 4, `x^2` = 2, `y:x` = 1, `y^2` = 7), stat_crossprod(y ~ x, x), mech_laplace(epsilon = 1), 9),
       as_release(0:2, stat_records(~ a, levels = list(a = c("u", "v", "w"))), mech_randomized_response(epsilon = 1), 3),
       as_release(c(0, 2, 1, 1), stat_records(~ a + b, levels = list(a = c("u", "v"), b = c("1", "2"))),
                  mech_randomized_response(matrix = list(b = rbind("1" = c("1" = 1 / 3, "2" = 2 / 3), "2" = c(0.1, 0.9)),
                                                         a = rbind(v = c(v = 0.7, other = 0.2, u = 0.1), u = c(0.2, 0.2, 0.6)))), 2))
}

test_that("what Python reads and writes again has the same bytes", {
  skip_if(python == "", "python3 is not there")
  withr::local_dir(withr::local_tempdir())
  made <- releases()
  for (k in seq_along(made)) write_release(made[[k]], paste0("r", k, ".json"))
  result <- run_python(c("for k in '12345':", "    c = na.read_release('r' + k + '.json')",
                         "    open('p' + k + '.json', 'w', encoding='utf-8', newline='\\n').write(na._render(c) + '\\n')"))
  expect_equal(result$status, 0L, info = result$output)
  for (k in seq_along(made)) expect_identical(readBin(paste0("p", k, ".json"), "raw", 1e5), readBin(paste0("r", k, ".json"), "raw", 1e5))
  writeLines(sub("10.25", "10.26", readLines("r1.json", encoding = "UTF-8"), fixed = TRUE), "changed.json", useBytes = TRUE)
  writeLines(sub("\"version\": [0-9]+", "\"version\": 6", readLines("r1.json", encoding = "UTF-8")), "later.json", useBytes = TRUE)
  writeLines("[1, 2]", "array.json")
  refused <- c(changed = "was changed", later = "has version 6, but the versions known are 1 to 5", array = "is not a release")
  for (k in names(refused)) {
    result <- run_python(sprintf("na.read_release('%s.json')", k))
    expect_gt(result$status, 0L)
    expect_match(result$output, paste0("ValueError: ", k, ".json ", refused[[k]]), fixed = TRUE, all = FALSE)
  }
})

test_that("what Python writes R reads", {
  skip_if(python == "", "python3 is not there")
  withr::local_dir(withr::local_tempdir())
  result <- run_python(c(
    "na.write_release('one.json', {'port=C': 17, 'port=Q': 8}, na.counts({'port': ['C', 'Q']}), na.noise('discrete_laplace', scale=2.0))",
    "sizes = na.counts({'a b': ['u', 'v'], 'c': ['1', '2']}, ['a b', 'c'], ['c'])",
    "cells = {'a b=' + a + ':c=' + c: k for k, (a, c) in enumerate([(a, c) for a in 'uv' for c in '12'])}",
    "na.write_release('two.json', {'counts': {**cells, 'c=1': 5, 'c=2': 6.5}, 'total': {'age': 0.1}},",
    "    {'counts': sizes, 'total': na.sums('age', 0, 99)}, {'counts': na.noise('gaussian', sd=0.3), 'total': na.noise('laplace', scale=99)}, n=11, neighbours='replace')",
    "na.write_release('three.json', {'n': 7}, {'name': 'size'}, na.noise('laplace', scale=2.0), neighbours='person', contributions=2)",
    "asked = {'no': {'no': 0.9, 'yes': 0.05, 'refused': 0.05}, 'yes': {'no': 0.2, 'yes': 0.6, 'refused': 0.2}}",
    "na.write_release('four.json', {'y[1]': 2, 'y[2]': 0}, na.records({'y': ['no', 'yes']}), na.noise('randomized_response', matrix=asked), n=2, neighbours='replace')",
    "na.write_release('five.json', {'port=' + k: (z - 40 * 0.2) / (0.7 - 0.2) for k, z in [('C', 17), ('Q', 9)]}, na.counts({'port': ['C', 'Q']}),",
    "    na.noise('unary_encoding', p=0.7, q=0.2), n=40, neighbours='replace')",
    "class M: noisy_measurement, stddev = [4, 9], 2.0",
    "class T: keys, marginals = {'port': ['C', None]}, {('port',): M}",
    "na.write_marginals('marginals.json', T, laplace=True)"))
  expect_equal(result$status, 0L, info = result$output)
  ports <- stat_counts(~ port, list(port = c("C", "Q")))
  expect_identical(read_release("one.json"), as_release(c(17, 8), ports, mech_discrete_laplace(scale = 2), NULL, "add_remove"))
  sizes <- stat_counts(~ `a b`:c + c, list(`a b` = c("u", "v"), c = c("1", "2")))
  two <- as_release(list(counts = c(0:3, 5, 6.5), total = 0.1), list(counts = sizes, total = stat_sums(~ age, list(age = c(0, 99)))),
                    list(counts = mech_gaussian(sd = 0.3), total = mech_laplace(scale = 99)), 11)
  expect_identical(read_release("two.json"), two)
  expect_identical(read_release("three.json"), as_release(7, stat_size(), mech_laplace(scale = 2), NULL, persons(contributions = 2)))
  asked <- rbind(no = c(no = 0.9, yes = 0.05, refused = 0.05), yes = c(0.2, 0.6, 0.2))
  expect_identical(read_release("four.json"), as_release(c(2, 0), stat_records(~ y, levels = list(y = c("no", "yes"))), mech_randomized_response(matrix = asked), 2))
  expect_identical(read_release("five.json"), as_release(c(C = 17, Q = 9), ports, mech_unary_encoding(p = 0.7, q = 0.2), 40))
  for (x in c("nan", "inf")) {
    expect_match(run_python(sprintf("na.write_release('six.json', {'n': float('%s')}, {'name': 'size'}, na.noise('laplace', scale=2.0))", x))$output,
                 "must be finite", all = FALSE)
  }
  expect_false(file.exists("six.json"))
  expect_identical(read_release("marginals.json", format = "marginals", mechanism = mech_discrete_laplace),
                   as_release(c(4, 9), stat_counts(~ port, list(port = c("C", "missing"))), mech_discrete_laplace(scale = 2 / sqrt(2)), NULL, "add_remove"))
})
