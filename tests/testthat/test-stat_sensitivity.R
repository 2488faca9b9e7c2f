# What is summed over the records, and how far one replaced record moves it.

eval_records <- function(statistic, x) {
  .Call(internal("ffi_stat_eval"), internal("statistic_spec")(statistic), matrix(as.double(x), ncol = nrow(statistic$columns)))
}

# m variables, all with the same bounds
box_statistic <- function(m, lower = -1, upper = 1, rescale = TRUE) {
  variables <- c("y", paste0("x", seq_len(m)))[seq_len(m)]
  formula <- stats::as.formula(paste("y ~", paste(c("1", variables[-1]), collapse = " + ")))
  stat_crossprod(formula, stats::setNames(rep(list(c(lower, upper)), m), variables), rescale)
}

distance <- function(a, b, norm) {
  if (norm == "L1") rowSums(abs(a - b)) else sqrt(rowSums((a - b)^2))
}

# records that lie inside, on and far outside the bounds
random_records <- function(statistic, n) {
  columns <- statistic$columns
  sapply(seq_len(nrow(columns)), function(j) {
    lower <- columns$lower[j]
    upper <- columns$upper[j]
    c(runif(n, lower, upper), sample(c(lower, upper, (lower + upper) / 2), n, TRUE), rnorm(n, 0, 10 * max(abs(c(lower, upper)))),
      sample(c(-Inf, -1e300, 0, 5e-324, 1e300, Inf), n, TRUE))
  })
}

expect_never_exceeded <- function(statistic, n = 5000) {
  v <- random_records(statistic, n)
  w <- random_records(statistic, n)[sample(nrow(v)), , drop = FALSE]
  for (norm in c("L1", "L2")) {
    expect_lte(max(distance(eval_records(statistic, v), eval_records(statistic, w), norm)),
               sensitivity(statistic, norm) * (1 + 1e-12))
  }
}

test_that("rescaled sensitivities are the published formulas", {
  for (m in 1:6) {
    st <- box_statistic(m)
    expect_equal(sensitivity(st, "L1"), m * (m + 2)^2 / (2 * (m + 1)), tolerance = 1e-14)
    expect_equal(sensitivity(st, "L2"), 2 * sqrt((m + 1)^2 %/% 4), tolerance = 1e-14)
  }
  expect_identical(sensitivity(box_statistic(3), "L1"), 9.375)
  expect_identical(sensitivity(box_statistic(3), "L2"), 4)
  expect_identical(sensitivity(box_statistic(2)), sensitivity(box_statistic(2), "L1"))
})

test_that("rescaled sensitivities are what one record can do at most, and it can", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(20)
  for (m in 1:4) {
    st <- box_statistic(m)
    for (norm in c("L1", "L2")) {
      # value and difference quotients in one call: the pair in 2 m coordinates, of which `free` are moved
      ends <- function(pairs) distance(eval_records(st, pairs[, 1:m]), eval_records(st, pairs[, m + 1:m]), norm)
      value <- function(z) -ends(matrix(z, 1))
      gradient <- function(z) {
        h <- 1e-6
        steps <- diag(h, 2 * m)
        inside <- rbind(pmin(t(z + steps), 1), pmax(t(z - steps), -1))
        at <- ends(inside)
        width <- rowSums(inside[seq_len(2 * m), , drop = FALSE] - inside[2 * m + seq_len(2 * m), , drop = FALSE])
        -(at[seq_len(2 * m)] - at[2 * m + seq_len(2 * m)]) / width
      }
      found <- replicate(12, {
        start <- ifelse(runif(2 * m) < 0.5, sample(c(-1, 1), 2 * m, TRUE), runif(2 * m, -1, 1))
        -optim(start, value, gradient, method = "L-BFGS-B", lower = -1, upper = 1, control = list(factr = 10, maxit = 500))$value
      })
      expect_lte(max(found), sensitivity(st, norm) * (1 + 1e-12))
      expect_equal(max(found), sensitivity(st, norm), tolerance = 1e-6)
    }
  }
})

test_that("rescaled sensitivities do not depend on the bounds and are never exceeded", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(21)
  for (m in 1:4) {
    for (box in list(c(-1, 1), c(10, 11), c(-3, 500), c(0, 1e-6))) {
      st <- box_statistic(m, box[1], box[2])
      expect_identical(sensitivity(st, "L1"), sensitivity(box_statistic(m), "L1"))
      expect_never_exceeded(st, 2000)
    }
  }
})

test_that("in the variables' units the sensitivity sums the components' true ranges", {
  set.seed(22)
  boxes <- list(y = c(-2, 5), x1 = c(10, 11), x2 = c(-7, -3), x3 = c(0, 4))
  st <- stat_crossprod(y ~ x1 + x2 + x3, boxes, rescale = FALSE)
  # every component attains its extremes at a corner, or where a variable is zero
  points <- as.matrix(expand.grid(lapply(boxes, function(b) unique(c(b, if (b[1] <= 0 && b[2] >= 0) 0)))))
  t <- eval_records(st, points)
  ranges <- apply(t, 2, max) - apply(t, 2, min)
  expect_equal(sensitivity(st, "L1"), sum(ranges), tolerance = 1e-14)
  expect_equal(sensitivity(st, "L2"), sqrt(sum(ranges^2)), tolerance = 1e-14)
  # and nothing between goes beyond
  inner <- sapply(boxes, function(b) runif(20000, b[1], b[2]))
  inner <- eval_records(st, inner)
  expect_true(all(apply(inner, 2, max) <= apply(t, 2, max)) && all(apply(inner, 2, min) >= apply(t, 2, min)))
  expect_never_exceeded(st)

  ten <- stat_crossprod(y ~ x, list(y = c(0, 1), x = c(10, 11)), rescale = FALSE)
  # y 1, x 1, y^2 1, y:x 11, x^2 121 - 100
  expect_equal(sensitivity(ten, "L1"), 1 + 1 + 1 + 11 + 21)
  expect_equal(sensitivity(ten, "L2"), sqrt(1 + 1 + 1 + 11^2 + 21^2))
})

test_that("with factors the sensitivity is never exceeded", {
  set.seed(23)
  bounds <- list(y = c(-2, 5), x = c(3, 4), g = c("a", "b", "c", "d"), h = c("no", "yes"))
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(y ~ x + g + h, bounds, rescale)
    draw <- function(n) {
      data <- data.frame(y = sample(c(-2, 5, 1), n, TRUE), x = runif(n, 2, 5), g = sample(bounds$g, n, TRUE),
                         h = sample(bounds$h, n, TRUE))
      eval_records(st, internal("record_matrix")(data, st$columns, st$levels))
    }
    a <- draw(10000)
    b <- draw(10000)
    expect_lte(max(distance(a, b, "L1")), sensitivity(st, "L1"))
    expect_lte(max(distance(a, b, "L2")), sensitivity(st, "L2"))
  }
})

test_that("of rescaled factors the sensitivity is the maximum over levels and numbers", {
  levels <- list(b = c("0", "1"), g = c("u", "v", "w"), h = letters[1:4], k = c("no", "yes"))
  largest <- function(formula) {
    variables <- all.vars(formula)
    st <- stat_crossprod(formula, c(levels, list(x = c(-1, 1), z = c(0, 3)))[variables])
    q <- sum(is.na(st$columns$level))
    # the maximum is at one of these numbers, see ?stat_crossprod
    number <- seq(-1, 1, length.out = 2 * (q + 1) + 1)
    data <- expand.grid(c(levels, list(x = number, z = 1.5 + 1.5 * number))[variables], stringsAsFactors = FALSE)
    records <- eval_records(st, internal("record_matrix")(data, st$columns, st$levels))
    expect_equal(c(sensitivity(st, "L1"), sensitivity(st, "L2")), c(max(dist(records, "manhattan")), max(dist(records))), tolerance = 1e-12,
                 label = deparse(formula))
    inside <- data[sample(nrow(data), 1000, TRUE), , drop = FALSE]
    if (q > 0) inside$x <- runif(1000, -1, 1)
    if (q > 1) inside$z <- runif(1000, 0, 3)
    records <- eval_records(st, internal("record_matrix")(inside, st$columns, st$levels))
    expect_lte(max(dist(records, "manhattan")), sensitivity(st, "L1") * (1 + 1e-12))
    expect_lte(max(dist(records)), sensitivity(st, "L2") * (1 + 1e-12))
    sensitivity(st, "L1")
  }
  set.seed(25)
  expect_identical(largest(b ~ x), 5)
  expect_identical(largest(b ~ x + z), 9)
  for (formula in c(b ~ 1, h ~ 1, b ~ k, g ~ b + h, x ~ h, x ~ g + b, x ~ z + g, x ~ z + h, g ~ x + b + k)) largest(formula)
})

test_that("files of earlier versions keep the sensitivity that scaled their noise", {
  st <- stat_crossprod(low ~ age, list(low = c("0", "1"), age = c(14, 50)))
  path <- withr::local_tempfile(fileext = ".json")
  text <- lapply(list(now = st, earlier = replace(st, "sensitivity", NULL)), function(st) {
    rel <- as_release(c(3, 2, 1, 4), st, mech_laplace(epsilon = 1), n = 20)
    write_release(rel, path)
    expect_identical(read_release(path), rel)
    expect_equal(unname(rel$scale), rep(if (is.null(st$sensitivity)) 16 / 3 else 5, 4))
    readLines(path)
  })
  expect_false(any(grepl("sensitivity", text$earlier)))
  text <- text$now
  writeLines(sub('"levels"', '"all"', text, fixed = TRUE), path)
  expect_error(read_release(path), class = "noiseaware_error_file")
})

test_that("one replaced record moves the totals by no more than the sensitivity", {
  set.seed(24)
  st <- stat_crossprod(bwt ~ age + lwt, list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)))
  total <- internal("statistic_total")
  data <- data.frame(bwt = rnorm(40, 3000, 1500), age = rnorm(40, 25, 20), lwt = rnorm(40, 130, 80))
  moved <- replicate(200, {
    other <- data
    other[sample(40, 1), ] <- list(runif(1, -1e4, 1e4), runif(1, -100, 100), runif(1, -500, 500))
    sum(abs(total(st, data) - total(st, other)))
  })
  expect_lte(max(moved), sensitivity(st, "L1"))
  expect_gt(max(moved), sensitivity(st, "L1") / 3)
})

# ---- the totals themselves ---------------------------------------------------

test_that("totals are sums of clamped, rescaled products", {
  set.seed(30)
  bounds <- list(y = c(-2, 5), x1 = c(10, 11), x2 = c(-7, 3))
  data <- data.frame(x2 = rnorm(500, -2, 6), unused = letters[1:20], y = rnorm(500, 1, 4), x1 = rnorm(500, 10.5))
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(y ~ x1 + x2, bounds, rescale)
    v <- lapply(names(bounds), function(name) {
      clamped <- pmin(pmax(data[[name]], bounds[[name]][1]), bounds[[name]][2])
      if (rescale) 2 * (clamped - bounds[[name]][1]) / diff(bounds[[name]]) - 1 else clamped
    })
    expected <- c(y = sum(v[[1]]), x1 = sum(v[[2]]), x2 = sum(v[[3]]), "y^2" = sum(v[[1]]^2), "y:x1" = sum(v[[1]] * v[[2]]),
                  "y:x2" = sum(v[[1]] * v[[3]]), "x1^2" = sum(v[[2]]^2), "x1:x2" = sum(v[[2]] * v[[3]]), "x2^2" = sum(v[[3]]^2))
    total <- internal("statistic_total")(st, data)
    expect_equal(total, expected, tolerance = 1e-12)
    expect_identical(names(total), st$components)
  }
})

test_that("a statistic without covariates has two components", {
  st <- stat_crossprod(y ~ 1, list(y = c(0, 4)), rescale = FALSE)
  expect_identical(st$components, c("y", "y^2"))
  expect_equal(internal("statistic_total")(st, data.frame(y = c(1, 2, 9))), c(y = 7, "y^2" = 1 + 4 + 16))
})

test_that("factors expand with their declared levels, whatever the data hold", {
  bounds <- list(y = c(-5, 5), g = c("u", "v", "w"), x = c(0, 1))
  st <- stat_crossprod(y ~ g + x, bounds, rescale = FALSE)
  expect_identical(st$columns$name, c("y", "gv", "gw", "x"))
  # squares and products of dummy columns of one factor are left out
  expect_identical(st$components, c("y", "gv", "gw", "x", "y^2", "y:gv", "y:gw", "y:x", "gv:x", "gw:x", "x^2"))
  data <- data.frame(y = c(1, 2, 3), g = factor(c("w", "w", "u"), levels = c("w", "u")), x = c(1, 0.5, 0))
  expect_equal(internal("statistic_total")(st, data),
               c(y = 6, gv = 0, gw = 2, x = 1.5, "y^2" = 14, "y:gv" = 0, "y:gw" = 3, "y:x" = 2, "gv:x" = 0, "gw:x" = 1.5,
                 "x^2" = 1.25))
  # a number may be given as a level, a logical value as a number
  st <- stat_crossprod(y ~ g, list(y = c(0, 1), g = c("1", "2")), rescale = FALSE)
  expect_equal(internal("statistic_total")(st, data.frame(y = c(TRUE, FALSE, TRUE), g = c(2, 1, 2)))[["y:g2"]], 2)
})

test_that("moments of totals without noise are the cross-product of the model matrix", {
  set.seed(31)
  bounds <- list(y = c(-20, 30), x = c(100, 120), g = c("a", "b", "c"), h = c("no", "yes"))
  data <- data.frame(y = runif(300, -20, 30), x = runif(300, 100, 120), g = sample(c("a", "b", "c"), 300, TRUE),
                     h = sample(c("no", "yes"), 300, TRUE))
  matrix <- model.matrix(~ y + x + g + h, data)
  for (rescale in c(TRUE, FALSE)) {
    st <- stat_crossprod(y ~ x + g + h, bounds, rescale)
    moments <- internal("crossprod_moments")(st, internal("statistic_total")(st, data), 300)
    expect_equal(moments, crossprod(matrix), tolerance = 1e-10)
  }
})

test_that("totals do not depend on how the data are stored", {
  st <- stat_crossprod(y ~ x, list(y = c(0, 10), x = c(0, 10)))
  data <- data.frame(y = 1:9, x = 9:1)
  total <- internal("statistic_total")(st, data)
  expect_identical(internal("statistic_total")(st, data[c("x", "y")]), total)
  expect_identical(internal("statistic_total")(st, data.frame(y = as.double(1:9), x = 9:1, z = NA)), total)
})

test_that("statistics print their public facts", {
  local_reproducible_output()
  rescaled <- stat_crossprod(y ~ x, list(y = c(-10, 10), x = c(0.5, 1e6)))
  own_units <- stat_crossprod(y ~ x + g, list(y = c(0, 1), x = c(10, 11), g = c("a", "b", "c")), rescale = FALSE)
  expect_snapshot({
    rescaled
    own_units
  })
})
