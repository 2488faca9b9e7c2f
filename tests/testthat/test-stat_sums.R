# Totals of terms: against plain R, and how far one replaced record moves them.

sums_eval <- function(statistic, x) {
  .Call(internal("ffi_stat_eval"), internal("statistic_spec")(statistic), matrix(as.double(x), ncol = nrow(statistic$columns)))
}

# records inside, on and outside the bounds, some of them far out
sums_records <- function(statistic, n) {
  columns <- statistic$columns
  vapply(seq_len(nrow(columns)), function(j) {
    lower <- columns$lower[j]
    upper <- columns$upper[j]
    width <- upper - lower
    x <- runif(n, lower - width / 3, upper + width / 3)
    special <- c(lower, upper, lower - 1e-9 * width, upper + 1e-9 * width, 0, -1e300, 1e300, -Inf, Inf)
    at <- sample(n, n %/% 4)
    x[at] <- sample(special, length(at), TRUE)
    x
  }, numeric(n))
}

terms <- list(x = function(v) v$x, "x^2" = function(v) v$x^2, z = function(v) v$z, "x:z" = function(v) v$x * v$z,
              "x^2:z" = function(v) v$x^2 * v$z, "z^5" = function(v) v$z^5)
several <- function(outside, x = c(-1, 3), z = c(2, 5)) {
  stat_sums(~ x + I(x^2) + z + z:x + I(x^2 * z) + I(z^5), list(x = x, z = z), outside, rescale = FALSE)
}

# the same in plain R
plain_sums <- function(statistic, x) {
  columns <- statistic$columns
  inside <- rep(TRUE, nrow(x))
  v <- list()
  for (j in seq_len(nrow(columns))) {
    inside <- inside & x[, j] >= columns$lower[j] & x[, j] <= columns$upper[j]
    v[[columns$name[j]]] <- pmin(pmax(x[, j], columns$lower[j]), columns$upper[j])
  }
  t <- vapply(statistic$components, function(name) terms[[name]](v), numeric(nrow(x)))
  t <- matrix(t, nrow(x))
  if (statistic$outside == "drop") t[!inside, ] <- 0
  t
}

test_that("totals are those of plain R, clamped and dropped", {
  set.seed(40)
  for (outside in c("clamp", "drop")) {
    for (st in list(several(outside), stat_sums(~ x, list(x = c(-1, 3)), outside), stat_sums(~ I(x^2), list(x = c(1, 3)), outside))) {
      for (n in c(1, 3, 4, 5, 256, 257, 1000)) {
        x <- sums_records(st, n)
        x <- matrix(x, n)
        expected <- plain_sums(st, x)
        expect_equal(sums_eval(st, x), expected, tolerance = 1e-14)
        total <- .Call(internal("ffi_stat_total"), internal("statistic_spec")(st), x)
        expect_equal(total, colSums(expected), tolerance = 1e-12)
      }
    }
  }
})

test_that("totals of a data frame have the terms' names", {
  data <- data.frame(z = c(3, 4, 9), unused = NA, x = c(1, -2, 2))
  expect_equal(internal("statistic_total")(several("clamp"), data),
               c(x = 1 - 1 + 2, "x^2" = 1 + 1 + 4, z = 3 + 4 + 5, "x:z" = 3 - 4 + 10, "x^2:z" = 3 + 4 + 20, "z^5" = 3^5 + 4^5 + 5^5))
  # records 2 and 3 have one variable outside
  expect_equal(internal("statistic_total")(several("drop"), data),
               c(x = 1, "x^2" = 1, z = 3, "x:z" = 3, "x^2:z" = 3, "z^5" = 3^5))
})

test_that("a term can be written in several ways", {
  bounds <- list(x = c(0, 2), z = c(-1, 1))
  name <- function(formula) stat_sums(formula, bounds[all.vars(formula)], rescale = FALSE)$components
  expect_identical(name(~ x), "x")
  expect_identical(name(~ (x + (z))), c("x", "z"))
  expect_identical(name(~ I(x)), "x")
  expect_identical(name(~ I(x^1) + I(x^2L) + I((x)^3) + I((x^2)^2)), c("x", "x^2", "x^3", "x^4"))
  expect_identical(name(~ I(x * x)), "x^2")
  expect_identical(name(~ x:z), "x:z")
  expect_identical(name(~ z + x + x:z), c("z", "x", "z:x"))
  expect_identical(name(~ I(z * x)), "z:x")
  expect_identical(name(~ I((x * z)^2 * x)), "x^3:z^2")
  odd <- stat_sums(~ `a b` + I(`a b`^2), list("a b" = c(0, 1)), rescale = FALSE)
  expect_identical(odd$components, c("a b", "a b^2"))
  expect_equal(internal("statistic_total")(odd, data.frame("a b" = c(0.5, 2), check.names = FALSE)), c("a b" = 1.5, "a b^2" = 1.25))
})

test_that("a statistic holds its formula as text and no environment", {
  st <- several("drop")
  expect_identical(st$formula, "~x + I(x^2) + z + z:x + I(x^2 * z) + I(z^5)")
  expect_identical(st$kind, "totals")
  parts <- rapply(unclass(st), function(part) class(part), how = "unlist")
  expect_true(all(parts %in% c("character", "numeric", "matrix", "array", "logical")))
  expect_identical(format(st)[1], paste0("<statistic> totals of ", st$formula, ", records outside the bounds left out"))
  expect_match(format(several("clamp"))[1], "clamped to the bounds$")
})

test_that("other formulas, bounds and choices are refused", {
  skip_on_cran() # takes long; `make test` runs it
  refused <- function(formula, bounds = list(x = c(0, 1), z = c(0, 1)), ...) {
    expect_error(stat_sums(formula, bounds, ..., rescale = FALSE), class = "noiseaware_error_formula")
  }
  for (formula in list(y ~ x, ~ ., ~ x + ., ~ 1, ~ 0, ~ x - 1, ~ x - z, ~ -x, ~ x^2, ~ x * z, ~ foo(x), ~ I(foo(x)), ~ I(x + z), ~ I(x^z),
                       ~ I(x^0), ~ I(0 * x), ~ I(x / 0), ~ I(x / z), ~ I(x)^2, ~ x:I(z), ~ x:x, ~ I(x, z), ~ I(.), ~ x %in% z,
                       ~ x + x, ~ x:z + z:x, ~ I(x^2) + I(x * x), ~ I(x^21), ~ I((x^5)^5), ~ I(x^1e9), ~ I(x^Inf), ~ "x", ~ TRUE, ~ x | z, ~ x$z,
                       ~ I(x:z), ~ x():z)) {
    refused(formula)
  }
  long <- paste0("v", 1:2001)
  refused(stats::as.formula(paste("~", paste(long, collapse = "+"))), NULL)
  refused(1)
  refused("~ x")
  refused(quote(x))
  refused(NULL)
  # two terms of one name
  refused(~ `x:z` + x:z, list("x:z" = c(0, 1), x = c(0, 1), z = c(0, 1)))
  bounds <- function(bounds, formula = ~ x) expect_error(stat_sums(formula, bounds, rescale = FALSE), class = "noiseaware_error_bounds")
  bounds(NULL)
  bounds(list(c(0, 1)))
  bounds(list(z = c(0, 1)))
  bounds(list(x = c(0, 1), z = c(0, 1)))
  bounds(list(x = c(1, 0)))
  bounds(list(x = c(0, Inf)))
  bounds(list(x = c(0, NA)))
  bounds(list(x = 1))
  bounds(list(x = c("a", "b")))
  bounds(list(x = c(0, 1e100)), ~ I(x^4))
  for (outside in list("drops", NA, NULL, 1, character(), c("drop", "clamp"))) {
    expect_error(stat_sums(~ x, list(x = c(0, 1)), outside), class = "noiseaware_error_argument")
  }
})

test_that("a formula of any depth is read", {
  deep <- quote(x)
  for (i in 1:3000) deep <- call("(", deep)
  st <- stat_sums(structure(call("~", deep), class = "formula"), list(x = c(0, 1)), rescale = FALSE)
  expect_identical(st$components, "x")
})

test_that("terms are taken from left to right, 2,000 at the most", {
  terms <- function(text, operator = "+") vapply(internal("formula_leaves")(str2lang(text), internal("chain_operands")(operator)), deparse, "")
  expect_identical(terms("a + (b + (c:d + e)) + (f) - g"), "a + (b + (c:d + e)) + (f) - g")
  expect_identical(terms("a + (b + (c:d + e)) + (f) + NULL"), c("a", "b", "c:d", "e", "f", "NULL"))
  expect_identical(terms("(a:b):(c:(d))", ":"), c("a", "b", "c", "d"))
  for (k in c(2000, 2001)) {
    sum <- paste(rep("x", k), collapse = " + ")
    nested <- Reduce(function(inner, i) call("+", quote(x), inner), seq_len(k - 1), quote(x))
    for (side in list(str2lang(sum), nested)) {
      if (k == 2000) expect_length(internal("formula_leaves")(side, internal("chain_operands")("+")), k) else
        expect_error(internal("formula_leaves")(side, internal("chain_operands")("+")), class = "noiseaware_error_formula")
    }
  }
})

# ---- sensitivity -------------------------------------------------------------

sums_distance <- function(a, b, norm) if (norm == "L1") rowSums(abs(a - b)) else sqrt(rowSums((a - b)^2))

boxes <- list(c(-1, 3), c(2, 5), c(-4, -1), c(0, 2), c(-2, 2))

test_that("the sensitivity of one term is its range, or its largest absolute value", {
  skip_on_cran() # takes long; `make test` runs it
  for (box in boxes) {
    grid <- cbind(sort(c(seq(box[1], box[2], length.out = 2001), 0))) # 0 may be inside
    grid <- grid[grid >= box[1] & grid <= box[2], , drop = FALSE]
    for (k in 1:4) {
      formula <- eval(bquote(~ I(x^.(k))))
      t <- grid^k
      for (norm in c("L1", "L2")) {
        expect_equal(sensitivity(stat_sums(formula, list(x = box), rescale = FALSE), norm), max(t) - min(t), tolerance = 1e-14)
        expect_equal(sensitivity(stat_sums(formula, list(x = box), "drop", rescale = FALSE), norm), max(max(t) - min(t), abs(t)), tolerance = 1e-14)
      }
    }
    for (other in boxes) {
      t <- outer(c(box, if (prod(box) < 0) 0)^2, c(other, if (prod(other) < 0) 0)) # even power of x, times z
      st <- stat_sums(~ I(x^2 * z), list(x = box, z = other))
      expect_equal(sensitivity(st), max(t) - min(t), tolerance = 1e-14)
      st <- stat_sums(~ I(x^2 * z), list(x = box, z = other), "drop")
      expect_equal(sensitivity(st), max(max(t) - min(t), abs(t)), tolerance = 1e-14)
    }
  }
})

test_that("by hand: the square of [10, 11] ranges over 21, and may drop to 0", {
  clamp <- stat_sums(~ x + I(x^2), list(x = c(10, 11)), rescale = FALSE)
  drop <- stat_sums(~ x + I(x^2), list(x = c(10, 11)), "drop", rescale = FALSE)
  expect_equal(c(sensitivity(clamp), sensitivity(clamp, "L1"), sensitivity(clamp, "L2")), c(22, 22, sqrt(1 + 21^2)))
  expect_equal(c(sensitivity(drop), sensitivity(drop, "L2")), c(11 + 121, sqrt(11^2 + 121^2)))
  # the two kinds of neighbours are not mixed: x ranges over 1 or falls by 2, z over 2 or falls by 1
  both <- list(x = c(1, 2), z = c(-1, 1))
  expect_equal(sensitivity(stat_sums(~ x + z, both, "drop", rescale = FALSE)), 3)
  expect_error(sensitivity(drop, "L3"), class = "noiseaware_error_argument")
})

test_that("no pair of records goes beyond the sensitivity, found by maximisation", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(41)
  for (outside in c("clamp", "drop")) {
    for (st in list(stat_sums(~ x + I(x^2), list(x = c(-1, 3)), outside, rescale = FALSE), stat_sums(~ x + I(x^2) + I(x^3), list(x = c(-2, -0.5)), outside, rescale = FALSE),
                    several(outside), several(outside, c(0, 1), c(0, 0.5)), stat_sums(~ x + z, list(x = c(1, 2), z = c(-1, 1)), outside, rescale = FALSE))) {
      q <- nrow(st$columns)
      lower <- st$columns$lower
      upper <- st$columns$upper
      # a record outside, of which only "drop" makes something else
      out <- matrix(upper + 1, 1)
      for (norm in c("L1", "L2")) {
        bound <- sensitivity(st, norm)
        v <- matrix(sums_records(st, 4000), ncol = q)
        w <- matrix(sums_records(st, 4000), ncol = q)
        expect_lte(max(sums_distance(sums_eval(st, v), sums_eval(st, w), norm)), bound * (1 + 1e-12))
        value <- function(p) -sums_distance(sums_eval(st, p[1:q]), sums_eval(st, p[q + 1:q]), norm)
        found <- replicate(3, {
          start <- runif(2 * q, c(lower, lower), c(upper, upper))
          -optim(start, value, method = "L-BFGS-B", lower = c(lower, lower), upper = c(upper, upper))$value
        })
        corners <- as.matrix(expand.grid(Map(c, lower, upper)))
        ends <- sums_eval(st, rbind(corners, out))
        pairs <- expand.grid(seq_len(nrow(ends)), seq_len(nrow(ends)))
        found <- max(found, sums_distance(ends[pairs[, 1], , drop = FALSE], ends[pairs[, 2], , drop = FALSE], norm))
        expect_lte(found, bound * (1 + 1e-12))
        # terms that rise together attain it
        if (all(lower >= 0)) expect_equal(found, bound, tolerance = 1e-12)
        expect_gt(found, 0.5 * bound)
      }
    }
  }
})

# ---- JSON --------------------------------------------------------------------

test_that("a statistic is the same after a trip through JSON", {
  refuse <- function(message) stop(message)
  for (st in list(several("clamp", c(-1 / 3, 1e-300)), several("drop"), stat_sums(~ `a b`, list("a b" = c(0.1, 0.3))))) {
    text <- jsonlite::toJSON(internal("statistic_json")(st), auto_unbox = TRUE, json_verbatim = TRUE)
    expect_identical(internal("stat_sums_from_json")(jsonlite::parse_json(text), refuse, identity), st)
  }
  good <- jsonlite::parse_json(jsonlite::toJSON(internal("statistic_json")(several("drop")), auto_unbox = TRUE, json_verbatim = TRUE))
  read <- function(...) {
    changed <- list(...)
    for (field in names(changed)) good[[field]] <- changed[[field]]
    internal("stat_sums_from_json")(good, refuse, identity)
  }
  expect_error(read(outside = NULL), "Missing")
  expect_error(read(weight = 1), "Not known")
  expect_error(read(outside = "ignore"), class = "noiseaware_error_argument")
  expect_error(read(outside = list("drop")), class = "noiseaware_error_argument")
  expect_error(read(formula = "~ system('ls')"), class = "noiseaware_error_formula")
  expect_error(read(formula = 1), "formula")
  expect_error(read(bounds = 1), "bounds")
  expect_error(read(bounds = list(x = list(1, 0), z = list(2, 5))), class = "noiseaware_error_bounds")
})

test_that("bounds of one variable need no name", {
  expect_identical(stat_sums(~ x, c(0, 1)), stat_sums(~ x, list(x = c(0, 1))))
  expect_error(stat_sums(~ x + y, c(0, 1), rescale = FALSE), class = "noiseaware_error_bounds")
  expect_error(stat_sums(~ x, c(0, 1, 2)), class = "noiseaware_error_bounds")
})
