# Exact samplers against their distributions and against a slow reference in R that reads
# the same random words; releases on the grid.

st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(0, 3)))
data <- data.frame(y = c(-1, 2.5, 11, 0.1), x = c(0.2, 1, 2, 5))

exact_noise <- function(distribution, count, numerator, denominator, bytes = NULL) {
  .Call(internal("ffi_exact_noise"), distribution, as.integer(count), numerator, denominator, bytes)
}

# ---- reference: the same coins from the same words, in whole doubles ------------

# words come in buffers of 128, the last one first
word_reader <- function(bytes) {
  halves <- matrix(readBin(bytes, "integer", length(bytes) / 4, size = 4L, endian = .Platform$endian) %% 2^32, 2L)
  order <- as.vector(vapply(seq_len(ncol(halves) / 128), function(k) k * 128 - seq(0, 127), numeric(128)))
  at <- 0
  function(bits) {
    at <<- at + 1
    half <- halves[, order[at]]
    if (bits <= 32) half[1] %% 2^bits else half[1] + half[2] %% 2^(bits - 32) * 2^32
  }
}

reference_noise <- function(distribution, count, a, b, bytes) {
  word <- word_reader(bytes)
  below <- function(m) {
    if (m == 1) return(0)
    repeat if ((value <- word(ceiling(log2(m)))) < m) return(value)
  }
  coin <- function(p, q) below(q) < p
  exp_coin <- function(...) {
    k <- 1
    while (coin(1, k) && all_coins(list(...))) k <- k + 1
    k %% 2 == 1
  }
  all_coins <- function(ratios) {
    for (x in ratios) if (!coin(x[1], x[2])) return(FALSE)
    TRUE
  }
  coins <- function(times, x) {
    for (i in seq_len(times)) if (!exp_coin(x)) return(FALSE)
    TRUE
  }
  laplace <- function(t, s) repeat {
    u <- below(t)
    if (!exp_coin(c(u, t))) next
    v <- 0
    while (exp_coin(c(1, 1))) v <- v + 1
    size <- (u + t * v) %/% s
    negative <- coin(1, 2)
    if (!(negative && size == 0)) return(if (negative) -size else size)
  }
  gaussian <- function(a, b) repeat {
    t <- a %/% b + 1
    y <- laplace(t, 1)
    whole <- a * t * b
    distance <- abs(abs(y) * t * b^2 - a^2)
    v <- distance %/% whole
    rest <- c(distance %% whole, whole)
    if (coins(v^2 %/% 2, c(1, 1)) && coins(v %% 2, c(1, 2)) && coins(v, rest) && exp_coin(rest, rest, c(1, 2))) return(y)
  }
  draw <- if (distribution == "laplace") laplace else gaussian
  vapply(seq_len(count), function(i) draw(a, b), 0)
}

test_that("the samplers throw the coins of their reference", {
  set.seed(5)
  bytes <- as.raw(sample(0:255, 8 * 128 * 100, replace = TRUE))
  for (case in list(list("laplace", 7, 1), list("laplace", 12345, 2^10), list("laplace", 2^40 + 3, 1), list("gaussian", 3, 1),
                    list("gaussian", 700, 2^9), list("gaussian", 2^20 + 5, 1), list("gaussian", 3, 2^12))) {
    expect_identical(exact_noise(case[[1]], 200, case[[2]], case[[3]], bytes),
                     reference_noise(case[[1]], 200, case[[2]], case[[3]], bytes))
  }
})

# bytes from which the words are taken in this order; their bits are repeated in both
# halves, so that the order of bytes does not matter
bytes_of_words <- function(words) {
  words <- matrix(c(words, numeric(-length(words) %% 128)), 128)
  writeBin(as.integer(rbind(as.vector(words[128:1, ]), as.vector(words[128:1, ]))), raw())
}

# the words of one draw of exact_laplace() with t = 2^20, s = 1: the rest 3, `steps` whole scales, a sign
laplace_words <- function(steps, negative) {
  c(3, # below t, and the coin 3 / t, which fails at once: an odd place
    2^20 - 1,
    rep(c(0, 1), steps), # a coin of 1 / 2 that succeeds, one of 1 / 3 that fails: exp(-1)
    if (steps < 2000) c(1, 1 - negative)) # a coin of 1 / 2 that fails: an even place
}

# t goes up to 2^46: 2^17 scales and more would not fit 64 bits
test_that("a value beyond 2,000 scales is drawn again", {
  draw <- function(words) exact_noise("laplace", 1, 2^20, 1, bytes_of_words(words))
  expect_identical(draw(laplace_words(0, FALSE)), 3)
  expect_identical(draw(laplace_words(7, TRUE)), -(7 * 2^20 + 3))
  expect_identical(draw(laplace_words(1999, FALSE)), 1999 * 2^20 + 3)
  expect_identical(draw(c(laplace_words(2000, FALSE), laplace_words(5, TRUE))), -(5 * 2^20 + 3))
})

test_that("without random bits there is nothing", {
  expect_null(exact_noise("laplace", 1000, 5, 1, raw(8 * 128)))
  expect_null(exact_noise("gaussian", 1e5, 5, 1, as.raw(rep(1:8, 128))))
  expect_null(exact_noise("laplace", 1, 5, 1, raw(0)))
})

test_that("draws have their distributions", {
  skip_on_cran() # takes long; `make test` runs it
  # chi-square over cells of expected count 20 or more
  p_value <- function(draws, mass) {
    reach <- (length(mass) - 1) / 2
    expected <- mass * length(draws)
    observed <- tabulate(pmin(pmax(draws, -reach), reach) + reach + 1, length(mass))
    keep <- expected >= 20
    x <- c(observed[keep], sum(observed[!keep]))
    e <- c(expected[keep], length(draws) - sum(expected[keep]))
    if (e[length(e)] < 20) {
      e <- e[-length(e)]
      x <- x[-length(x)]
    }
    stats::pchisq(sum((x - e)^2 / e), length(e) - 1, lower.tail = FALSE)
  }
  for (case in list(c(5, 2), c(1, 3), c(40, 1))) {
    k <- -600:600
    expect_gt(p_value(exact_noise("laplace", 1.5e5, case[1], case[2]), ddiscrete_laplace(k, scale = case[1] / case[2])), 1e-6)
    expect_gt(p_value(exact_noise("gaussian", 1.5e5, case[1], case[2]), ddiscrete_gaussian(k, sd = case[1] / case[2])), 1e-6)
  }
  # fine grids: the continuous distribution, without ties
  gaussian <- exact_noise("gaussian", 1e5, 2^24 - 3, 1) + stats::runif(1e5, -0.5, 0.5)
  expect_gt(stats::ks.test(gaussian / (2^24 - 3), stats::pnorm)$p.value, 1e-6)
  laplace <- exact_noise("laplace", 1e5, 2^44 + 1, 1) / (2^44 + 1)
  expect_gt(stats::ks.test(abs(laplace), stats::pexp)$p.value, 1e-6)
  expect_gt(stats::binom.test(sum(laplace > 0), length(laplace))$p.value, 1e-6)
})

# ---- releases ----------------------------------------------------------------------

test_that("a release is the rounded records' total and the noise", {
  tiny <- release(data, st, mech_laplace(scale = 1e-9))
  exact <- simulate_release(data, st, mech_laplace(scale = 1e-12))
  expect_lt(max(abs(tiny$value - exact$value)), 1e-7)
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  many <- data.frame(g = rep(c("a", "b"), c(3000, 1000)))
  expect_equal(release(many, counts, mech_discrete_laplace(scale = 1e-3))$value, c("g=a" = 3000, "g=b" = 1000))
  expect_equal(release(many, counts, mech_discrete_gaussian(sd = 1e-2))$value, c("g=a" = 3000, "g=b" = 1000))
  single <- stat_records(~ x, bounds = list(x = c(0, 3)))
  expect_equal(unname(release(data, single, mech_gaussian(sd = 1e-7))$value), c(0.2, 1, 2, 3), tolerance = 1e-5)
})

test_that("outputs lie on a grid that the data do not change", {
  neighbour <- data
  neighbour[2, ] <- c(-9.87654321, 2.718281828)
  for (mechanism in list(mech_laplace(epsilon = 0.7), mech_laplace(epsilon = 1e-6), mech_laplace(epsilon = 1e4), mech_gaussian(mu = 3), mech_gaussian(sd = 1 / 3))) {
    a <- release(data, st, mechanism)
    b <- release(neighbour, st, mechanism)
    expect_identical(a$granularity, b$granularity)
    expect_identical(a$scale, b$scale)
    for (r in list(a, b)) expect_identical(r$value / r$granularity, round(r$value / r$granularity))
    expect_true(all(log2(a$granularity) == floor(log2(a$granularity))))
  }
  expect_true(all(release(data.frame(g = "a"), stat_counts(~ g, list(g = c("a", "b"))), mech_discrete_laplace(epsilon = 1))$granularity == 1))
})

test_that("rounding is in the sensitivity, and the scale is rounded up", {
  d <- length(st$components)
  for (epsilon in c(1e-6, 1e-3, 1, 1e3)) {
    r <- release(data, st, mech_laplace(epsilon = epsilon))
    unit <- r$granularity[[1]]
    needed <- (sensitivity(st, "L1") + d * unit) / epsilon
    expect_true(all(r$scale >= needed & r$scale <= (needed + unit) * (1 + 1e-6)))
    expect_lt(r$scale[[1]] * epsilon / sensitivity(st, "L1") - 1, 1e-5)
    expect_equal(privacy(r)$epsilon, epsilon)
  }
  r <- release(data, st, mech_gaussian(rho = 0.1))
  expect_true(all(r$scale >= (sensitivity(st, "L2") + sqrt(d) * r$granularity) / sqrt(0.2)))
  given <- release(data, st, mech_gaussian(sd = c(1, 2, 3, 4, 1e-3)))
  expect_equal(unname(given$scale), c(1, 2, 3, 4, 1e-3), tolerance = 1e-6)
  expect_true(all(given$scale >= c(1, 2, 3, 4, 1e-3)))
  expect_gt(privacy(given)$mu, sensitivity(st, "L2") / 1e-3)
  # the double 1/3 is less than a third, though 1 / (1/3) is 3
  third <- internal("exact_scale")(mech_discrete_laplace(epsilon = 1 / 3), stat_counts(~ x, list(x = 1:2)), 1, "add_remove")
  expect_true(all(third$numerator > 3 * third$denominator))
})

test_that("rounded records move totals by no more than the sensitivity says", {
  set.seed(11)
  unit <- 2^-3 # coarse, so that rounding shows
  evaluate <- function(x) .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), x)
  # pairs near those that attain the sensitivity
  near <- function(v, k) cbind(10 * v + stats::rnorm(k, 0, 0.5), 1.5 + 1.5 * v + stats::rnorm(k, 0, 0.1))
  a <- round(evaluate(rbind(near(1, 1e4), near(0, 1e4))) / unit) * unit
  b <- round(evaluate(rbind(near(-1 / 3, 1e4), near(1, 1e4))) / unit) * unit
  l1 <- rowSums(abs(a - b))
  l2 <- sqrt(rowSums((a - b)^2))
  expect_lte(max(l1), internal("grid_sensitivity")(st, "L1", unit))
  expect_lte(max(l2), internal("grid_sensitivity")(st, "L2", unit))
  expect_gt(max(l1), sensitivity(st, "L1")) # without the units it would be too small
})

test_that("frequencies on neighbours differ by no more than exp(epsilon)", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  epsilon <- 1
  draws <- 1000
  values <- function(levels) {
    frame <- data.frame(g = levels)
    vapply(seq_len(draws), function(i) release(frame, counts, mech_discrete_laplace(epsilon = epsilon))$value, numeric(2))
  }
  a <- values(c("a", "a", "b"))
  b <- values(c("a", "b", "b"))
  cells <- unique(rbind(t(a), t(b)))
  count <- function(v) apply(cells, 1, function(cell) sum(v[1, ] == cell[1] & v[2, ] == cell[2]))
  # a given sum of both frequencies, the larger share is at most plogis(epsilon)
  both <- count(a) + count(b)
  p <- stats::pbinom(pmax(count(a), count(b)) - 1, both, stats::plogis(epsilon), lower.tail = FALSE)
  expect_gt(min(p) * 2 * nrow(cells), 1e-6)
  # and they do differ
  expect_lt(stats::chisq.test(rbind(count(a), count(b))[, both > 50])$p.value, 1e-6)
})

test_that("no record makes a sum overflow or fail", {
  wide <- stat_sums(~ x, bounds = list(x = c(0, 1e140)))
  expect_true(is.finite(release(data.frame(x = c(1e308, 1)), wide, mech_laplace(epsilon = 1))$value))
  far <- stat_custom(function(records) cbind(a = records[, "x"] * 1e30), "a", sensitivity = 1, bounds = list(x = c(0, 1)))
  expect_true(is.finite(release(data.frame(x = rep(1, 1000)), far, mech_laplace(epsilon = 1))$value))
  expect_error(release(data, st, mech_laplace(scale = 1e-18)), class = "noiseaware_error_mechanism")
  expect_error(release(data.frame(g = "a"), stat_counts(~ g, list(g = c("a", "b"))), mech_discrete_gaussian(sd = 1e9)),
               class = "noiseaware_error_mechanism")
})

# what lies beyond 2^62 / records units is cut off, at its own end; whole numbers of this size are exact in doubles
test_that("a value too large for the grid counts as the largest of its sign", {
  wide <- stat_sums(~ x, bounds = list(x = c(-2^60, 2^60)), rescale = FALSE)
  spec <- internal("statistic_spec")(wide, confidential = TRUE)
  units <- function(x, unit = 1, records = 2^20) {
    drop(.Call(internal("ffi_exact_totals"), spec, matrix(x), wide$kind, unit, records) %*% c(1e9, 1))
  }
  most <- 2^42
  cut <- function(x) pmin(pmax(x, -most), most)
  cases <- c(-2^60, -most - 1, -most, 1 - most, -1, 0, 3, most - 1, most, most + 1, 2^60)
  triples <- as.matrix(expand.grid(cases, cases, cases))
  expect_identical(apply(triples, 1L, units), rowSums(cut(triples)))
  # in a long block, and in other units
  for (at in c(1, 9, 16, 21)) expect_identical(units(replace(numeric(21), at, -2^60)), -most)
  expect_identical(units(c(2^60, -5 / 4, -2^50), unit = 1 / 4), -5)
  expect_identical(units(c(2^60, 3, -3), records = 2^62), 1)
  # each record by itself, with noise of scale 1 / 2000 units, which is 0
  single <- stat_records(~ x, bounds = list(x = c(-2^60, 2^60)))
  released <- .Call(internal("ffi_exact_release"), internal("statistic_spec")(single, confidential = TRUE), matrix(c(-2^60, 7, 2^60)), "records", 2^-10, "laplace", 1, 2000, 3)
  expect_identical(released, c(-2^52, 7, 2^52))
})

test_that("granularity is kept in the file, and checked", {
  path <- withr::local_tempfile(fileext = ".json")
  several <- release(data.frame(data, g = c("a", "b", "a", "a")), list(a = st, b = stat_records(~ g, levels = list(g = c("a", "b")))),
                     list(a = mech_gaussian(sd = c(1, 2, 3, 4, 5)), b = mech_randomized_response(epsilon = 1)))
  for (r in list(release(data, st, mech_laplace(epsilon = 1 / 3)), several)) {
    write_release(r, path)
    expect_identical(read_release(path), r)
  }
  r <- release(data, st, mech_laplace(epsilon = 1 / 3))
  write_release(r, path)
  text <- paste(readLines(path), collapse = "\n")
  field <- regmatches(text, regexpr("\"granularity\": [^,]*,", text))
  for (bad in c("", "\"granularity\": 0.3,", "\"granularity\": 0,", "\"granularity\": -1,", "\"granularity\": \"x\",",
                "\"granularity\": 1024,", "\"granularity\": {\"y\": 0.5},")) {
    writeLines(sub(field, bad, text, fixed = TRUE), path)
    expect_error(read_release(path), class = "noiseaware_error_file")
  }
  writeLines(sub("entropy", "published", text, fixed = TRUE), path)
  expect_error(read_release(path), class = "noiseaware_error_file")
})

test_that("the posterior of a release is that of its continuous twin", {
  value <- c(3, -2, 10, 1, 5)
  r <- as_release(value, st, mech_gaussian(mu = 1), n = 40)
  on_grid <- r
  on_grid$scale <- r$scale * (1 + 2^-20)
  fit <- function(release) sample_posterior(release, model_lm(), chains = 1, iter = 500, seed = 3)
  expect_equal(colMeans(posterior::as_draws_matrix(fit(on_grid))), colMeans(posterior::as_draws_matrix(fit(r))), tolerance = 0.3)
})

test_that("rounding of products is in the sensitivity where bounds are narrow and far out", {
  found <- 0
  for (width in c(1e-9, 1e-11, 2e-13)) {
    for (degree in c(3, 10, 20)) {
      st <- stat_sums(stats::as.formula(paste0("~ I(x^", degree, ")")), bounds = list(x = c(1000, 1000 + width)), rescale = FALSE)
      x <- unique(c(seq(1000, 1000 + width, by = 2^-43), 1000 + width)) # all doubles inside
      value <- as.vector(.Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), matrix(x)))
      # from the lower bound, by a sum without cancellation
      j <- seq_len(degree)
      above <- vapply(x - 1000, function(a) sum(choose(degree, j) * 1000^(degree - j) * a^j), 0)
      error <- internal("product_error")(st)
      expect_lte(max(abs(value - value[1] - above)), error)
      expect_lte(abs(sensitivity(st) - max(above)), error)
      unit <- internal("release_unit")(mech_laplace(epsilon = 1), st, 1)
      steps <- diff(range(round(value / unit))) * unit
      expect_lte(steps, internal("grid_sensitivity")(st, "L1", unit))
      found <- found + (steps > sensitivity(st) + (1 + 2^-20) * unit)
    }
  }
  expect_gt(found, 0) # a hair of a unit is not enough
  # nor is it counted where that is
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-3, 8), x = c(0, 90)))
  unit <- internal("release_unit")(mech_laplace(epsilon = 1), st, 100)
  expect_identical(internal("grid_sensitivity")(st, "L1", unit), sensitivity(st) + sum((1 + 2^-20) * rep_len(unit, 5)))
})

test_that("noise that cannot be drawn exactly is too large or too small, as it is", {
  st <- stat_sums(~ x, bounds = list(x = c(0, 1)))
  data <- data.frame(x = 0.5)
  show(refusals("mechanism", alist(release(data, st, mech_laplace(epsilon = 1e-300)))))
  expect_error(release(data, st, mech_gaussian(mu = 1e-300)), "small enough", class = "noiseaware_error_mechanism")
  expect_error(release(data, st, mech_laplace(scale = 1e-17)), "large enough", class = "noiseaware_error_mechanism")
})

test_that("a quantile's candidates at both ends of its rank are as likely as those within", {
  skip_on_cran() # takes long; `make test` runs it
  # 5 of the values 0, ..., 9 are below 4.5: both 4 and 5 are at the rank
  drawn <- replicate(25, released_quantile(0:9, 0.5, c(0, 9), epsilon = 200, steps = 9)$value)
  expect_setequal(drawn, 4:5)
  # values go to the nearest point of the grid
  expect_identical(released_quantile(rep(0.6, 100), 0.5, c(0, 1), epsilon = 50, steps = 1)$value, c(`50%` = 1))
  expect_setequal(replicate(40, released_quantile(0:9, 0.96, c(0, 9), epsilon = 200, steps = 9)$value), 9)
})
