# All monomials up to degree 4: against plain R, and how far one record moves them.

box4 <- function(p, lower = -1, upper = 1, rescale = TRUE) {
  names <- paste0("x", seq_len(p))
  stat_moments4(stats::as.formula(paste("~", paste(names, collapse = "+"))), stats::setNames(rep(list(c(lower, upper)), p), names), rescale)
}

eval4 <- function(statistic, x) {
  .Call(internal("ffi_stat_eval"), internal("statistic_spec")(statistic), matrix(as.double(x), ncol = nrow(statistic$columns)))
}

# every product of one to four columns, by brute force: the exponents as text
plain_moments4 <- function(v) {
  p <- ncol(v)
  out <- list()
  for (degree in 1:4) {
    index <- as.matrix(expand.grid(rep(list(seq_len(p)), degree)))
    for (r in seq_len(nrow(index))) {
      key <- paste(tabulate(index[r, ], p), collapse = " ")
      out[[key]] <- apply(v[, index[r, ], drop = FALSE], 1, prod)
    }
  }
  do.call(cbind, out)
}

test_that("components are all monomials up to degree 4, each once", {
  expect_identical(box4(1)$components, c("x1", "x1^2", "x1^3", "x1^4"))
  expect_identical(box4(2)$components,
                   c("x1", "x2", "x1^2", "x1:x2", "x2^2", "x1^3", "x1^2:x2", "x1:x2^2", "x2^3", "x1^4", "x1^3:x2", "x1^2:x2^2", "x1:x2^3", "x2^4"))
  for (p in 1:6) expect_length(unique(box4(p)$components), choose(p + 4, 4) - 1)
})

test_that("totals are those of plain R, whatever the units", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(41)
  for (p in 1:4) for (rescale in c(TRUE, FALSE)) {
    st <- box4(p, -3, 2, rescale)
    x <- matrix(rnorm(300 * p, 0, 3), 300)
    v <- pmin(pmax(x, -3), 2)
    if (rescale) v <- (v + 0.5) / 2.5
    plain <- plain_moments4(v)
    plain <- plain[, apply(st$powers, 1, paste, collapse = " "), drop = FALSE]
    expect_equal(eval4(st, x), unname(plain), tolerance = 1e-13)
    total <- .Call(internal("ffi_stat_total"), internal("statistic_spec")(st), x)
    expect_equal(total, unname(colSums(plain)), tolerance = 1e-12)
  }
})

test_that("the sensitivity is never exceeded, and of one covariate it is attained", {
  set.seed(42)
  t <- seq(0, 1, length.out = 1e5)
  one <- eval4(box4(1), c(1, -t))
  apart <- abs(sweep(one[-1, ], 2, one[1, ]))
  expect_equal(sensitivity(box4(1), "L1"), max(rowSums(apart)), tolerance = 1e-9)
  expect_equal(sensitivity(box4(1), "L2"), max(sqrt(rowSums(apart^2))), tolerance = 1e-9)
  for (p in 1:3) for (box in list(c(-1, 1, TRUE), c(10, 11, FALSE), c(-2, 3, FALSE), c(0, 5, TRUE))) {
    st <- box4(p, box[1], box[2], box[3] == 1)
    draw <- function() {
      corner <- sample(c(box[1], box[2], max(box[1], 0)), 4000 * p, TRUE)
      eval4(st, ifelse(runif(4000 * p) < 0.5, corner, runif(4000 * p, box[1], box[2])))
    }
    apart <- abs(draw() - draw())
    expect_lte(max(rowSums(apart)), sensitivity(st, "L1") * (1 + 1e-12))
    expect_lte(max(sqrt(rowSums(apart^2))), sensitivity(st, "L2") * (1 + 1e-12))
  }
  # true ranges: x in [10, 11] squared ranges over 21
  expect_equal(sensitivity(box4(1, 10, 11, FALSE), "L1"), 1 + 21 + (11^3 - 10^3) + (11^4 - 10^4))
  # by ranges: of 14 monomials in two variables 5 have even powers
  expect_equal(sensitivity(box4(2), "L1"), 9 * 2 + 5)
})

test_that("a release of fourth moments goes to a file and back, beside cross-products", {
  bounds <- list(y = c(0, 10), x = c(-2, 5))
  st <- list(covariates = stat_moments4(~ x, bounds["x"]), regression = stat_crossprod(y ~ x, bounds))
  half <- list(regression = mech_laplace(epsilon = 0.5), covariates = mech_laplace(epsilon = 0.5))
  set.seed(43)
  rel <- simulate_release(data.frame(x = rnorm(50), y = rnorm(50, 5)), st, half)
  expect_equal(privacy(rel)$epsilon, 1)
  path <- withr::local_tempfile(fileext = ".json")
  write_release(rel, path)
  back <- read_release(path)
  expect_identical(back$value, rel$value)
  expect_identical(back$statistic, rel$statistic)
  # the regression's formula is found whatever the order, and "augment" uses all totals
  fit <- sample_posterior(rel, model_lm(), chains = 1, iter = 20, warmup = 10, seed = 1)
  expect_identical(fit$bound$formula, "y ~ x")
  expect_identical(posterior::nvariables(denoise(fit)), 9L)
})

test_that("other formulas and bounds are refused", {
  formula <- function(...) expect_error(stat_moments4(...), class = "noiseaware_error_formula")
  unit <- list(x = c(0, 1), z = c(0, 1))
  for (f in list(y ~ x, ~ 1, ~ x + x, ~ x:z, ~ I(x^2), ~ ., "~ x", NULL)) formula(f, unit)
  long <- paste0("v", 1:60)
  formula(stats::as.formula(paste("~", paste(long, collapse = "+"))), NULL)
  formula(~ x + `x^2`, list(x = c(0, 1), `x^2` = c(0, 1)))
  bounds <- function(...) expect_error(stat_moments4(...), class = "noiseaware_error_bounds")
  bounds(~ x, NULL)
  bounds(~ x, list(x = c("a", "b")))
  bounds(~ x, list(x = c(0, 1e100)), rescale = FALSE)
  bounds(~ x, list(x = c(1, 1)))
  expect_error(stat_moments4(~ x, unit["x"], rescale = NA), class = "noiseaware_error_argument")
})
