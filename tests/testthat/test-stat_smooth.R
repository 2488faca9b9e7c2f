# Totals of several smooths, and of numbers and factors with them, against package splines; sensitivities against searches over records. One smooth:
# test-model_smooth.R.

bounds <- list(y = c(-3, 5), a = c(2, 10), b = c(0, 1), c = c(-1, 1), z = c(-4, 4), w = c(1, 3), g = c("u", "v"), h = c("1", "2", "3"))
sum_of <- function(formula, ...) stat_crossprod(formula, bounds[all.vars(formula)], ...)
two <- y ~ s(a, k = 7) + s(b, k = 6) + z + w
mixed <- y ~ h + s(a, k = 7) + z + g + s(b, k = 6)

scaled <- function(x, ends) 2 * (pmin(pmax(x, ends[1]), ends[2]) - ends[1]) / diff(ends) - 1

splines_of <- function(x, k, ends) {
  h <- diff(ends) / (k - 3)
  x <- pmin(pmax(x, ends[1]), ends[2] - 1e-12 * diff(ends))
  splines::splineDesign(ends[1] + h * (-3:k), x)
}

# by name, so that the order is checked as well
named_totals <- function(data) {
  b <- list(a = splines_of(data$a, 7, bounds$a), b = splines_of(data$b, 6, bounds$b))
  columns <- c(list(y = scaled(data$y, bounds$y), z = scaled(data$z, bounds$z), w = scaled(data$w, bounds$w)),
               list(gu = data$g == "u", gv = data$g == "v", h1 = data$h == "1", h2 = data$h == "2", h3 = data$h == "3"),
               unlist(lapply(names(b), function(v) stats::setNames(asplit(b[[v]], 2), sprintf("s(%s)%d", v, seq_len(ncol(b[[v]]))))), FALSE))
  function(name) {
    if (endsWith(name, "^2")) return(sum(columns[[sub("\\^2$", "", name)]]^2))
    factors <- strsplit(name, ":", fixed = TRUE)[[1]]
    sum(columns[[factors[1]]] * columns[[factors[2]]])
  }
}

test_that("totals are those of splines and rescaled numbers, in the order of their names, and records beyond the bounds are clamped", {
  set.seed(1)
  data <- data.frame(y = rnorm(300, 1, 4), a = runif(300, 1, 11), b = rnorm(300, 0.5, 0.4), z = rnorm(300, 0, 3), w = rnorm(300, 2))
  data[1:3, ] <- rbind(c(-1e300, 2, 1, 4, 1), c(5, 10, 0, -4, 3), c(Inf, Inf, -Inf, 1e300, 0))
  data$g <- sample(c("v", "u"), 300, TRUE)
  data$h <- factor(sample(3, 300, TRUE))
  for (formula in list(two, mixed)) {
    st <- sum_of(formula)
    x <- internal("statistic_records")(st, data, NULL, FALSE)
    expected <- vapply(st$components, named_totals(data), 0)
    for (fun in list(statistic_total = function(x) .Call(internal("ffi_stat_total"), internal("statistic_spec")(st), x),
                     eval = function(x) colSums(.Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), x)))) {
      expect_equal(fun(x), unname(expected), tolerance = 1e-9)
    }
    expect_false(anyDuplicated(st$components) > 0)
    limits <- internal("component_limits")(st)
    each <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), x)
    expect_true(all(t(each) >= limits[, 1] - 1e-9 & t(each) <= limits[, 2] + 1e-9))
  }
  expect_identical(internal("smooth_totals")(c(7, 6), 2, integer()), as.double(length(sum_of(two)$components)))
  expect_identical(internal("smooth_totals")(c(7, 6), 1, 3:2), as.double(length(sum_of(mixed)$components)))
  expect_identical(unique(sum_of(mixed)$columns$variable), c("y", "a", "b", "z", "h", "g"))
  # attained on a grid with the knots
  grid <- expand.grid(y = c(-3, 1, 5), a = 2 + 2 * (0:4), b = (0:3) / 3, z = c(-4, 0, 4), w = 1:3)
  smooth_products <- seq_len(3 * 7 - 3 + 3 * 6 - 3)
  for (formula in list(two, mixed)) {
    st <- sum_of(formula)
    records <- if (identical(formula, two)) grid else merge(unique(grid[names(grid) != "w"]), expand.grid(h = 1:3, g = c("u", "v")))
    each <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(st), internal("statistic_records")(st, records, NULL, FALSE))
    limits <- internal("component_limits")(st)
    expect_equal(apply(each, 2, max)[-smooth_products], limits[-smooth_products, 2])
    expect_equal(apply(each, 2, min)[-smooth_products], limits[-smooth_products, 1])
  }
})

test_that("sensitivities are bounds, and L1 and that of an added record are attained", {
  skip_on_cran()
  norms <- list(L1 = function(t) rowSums(abs(t)), L2 = function(t) sqrt(rowSums(t^2)))
  formulas <- list(y ~ s(a, k = 6) + z, y ~ s(a, k = 6) + s(b, k = 6), y ~ s(a, k = 6) + z + w, two,
                   y ~ s(a, k = 6) + s(b, k = 6) + s(c, k = 6), y ~ s(a, k = 6) + s(b, k = 6) + s(c, k = 6) + z,
                   y ~ s(a, k = 6) + g, y ~ s(a, k = 6) + h, y ~ s(a, k = 6) + z + h + g, y ~ s(a, k = 6) + s(b, k = 6) + h + g)
  set.seed(2)
  for (formula in formulas) {
    st <- sum_of(formula)
    spec <- internal("statistic_spec")(st)
    dummy <- !is.na(st$columns$level)
    numbers <- sum(!dummy)
    # numbers are rows of v, a record after the other, levels are in `level`; the sizes of the numbers, or of the change from one record to the other
    level <- NULL
    components <- function(v, record) {
      m <- st$columns$lower[!dummy] + t(v[, (record - 1) * numbers + seq_len(numbers), drop = FALSE]) * (st$columns$upper - st$columns$lower)[!dummy]
      .Call(internal("ffi_stat_eval"), spec, cbind(t(m), if (any(dummy)) level[rep(record, nrow(v)), , drop = FALSE]))
    }
    sizes <- function(v, records, norm) norm(if (records == 1) components(v, 1) else components(v, 2) - components(v, 1))
    # of one or two records; a level is the same as any other, so that only whether they are of one level matters
    dummies <- function(records, same) {
      do.call(cbind, Map(function(levels, same) diag(length(levels))[if (same) c(1, 1) else 1:2, -1, drop = FALSE][seq_len(records), , drop = FALSE], st$levels, same))
    }
    splined <- seq_along(st$splines) + 1
    # greedy: one coordinate after the other, at knots, ends, and points between
    search <- function(records, norm) {
      d <- records * numbers
      values <- function(v) sizes(v, records, norm)
      value <- function(v) values(rbind(v))
      slopes <- function(v) {
        up <- pmin(v + 1e-5, 1)
        down <- pmax(v - 1e-5, 0)
        at <- matrix(v, 2 * d, d, byrow = TRUE)
        at[cbind(seq_len(2 * d), rep(seq_len(d), 2))] <- c(up, down)
        at <- values(at)
        (at[seq_len(d)] - at[d + seq_len(d)]) / (up - down)
      }
      best <- 0
      same <- as.matrix(expand.grid(rep(list(if (records > 1) c(FALSE, TRUE) else FALSE), max(1, length(st$levels)))))
      for (start in seq_len(if (any(dummy)) 2 * nrow(same) else 8)) {
        level <<- if (any(dummy)) dummies(records, same[start %% nrow(same) + 1, ])
        v <- runif(d)
        v[rep(seq_len(numbers), records) %in% splined] <- sample(0:3, sum(rep(seq_len(numbers), records) %in% splined), TRUE) / 3
        repeat {
          before <- value(v)
          for (j in seq_len(d)) {
            tried <- c(v[j], 0:3 / 3, seq(0, 1, 0.05), (0:8) / 8)
            at <- matrix(v, length(tried), d, byrow = TRUE)
            at[, j] <- tried
            v[j] <- tried[which.max(values(at))]
          }
          v <- pmin(pmax(optim(v, function(x) -value(x), function(x) -slopes(x), method = "L-BFGS-B", lower = 0, upper = 1)$par, 0), 1)
          if (value(v) <= before * (1 + 1e-9)) break
        }
        best <- max(best, value(v))
      }
      best
    }
    for (norm in names(norms)) {
      f <- norms[[norm]]
      label <- paste(norm, format(formula))
      expect_equal(sensitivity(st, norm, "add_remove"), search(1, f), tolerance = 1e-7, label = label)
      replaced <- search(2, f)
      expect_gte(sensitivity(st, norm), replaced * (1 - 1e-9), label = label)
      expect_lte(sensitivity(st, norm), replaced * if (norm == "L1") 1 + 1e-3 else if (any(dummy)) 1.06 else 1.08, label = label)
    }
  }
})

test_that("the largest change of numbers is that of a search", {
  skip_on_cran() # takes long; `make test` runs it
  value <- function(t, p) 2 * sum(t) * (length(t) - sum(t)) + 2 * sum(t) - 2 * sum(t^2) + 2 * p * sum(pmax(t, 1 - t))
  set.seed(3)
  for (p in 1:4) for (m in 1:5) {
    found <- max(replicate(40, -optim(runif(m), function(t) -value(t, p), method = "L-BFGS-B", lower = 0, upper = 1)$value))
    expect_equal(internal("farthest_numbers")(p, m), found, tolerance = 1e-6)
  }
})

test_that("files, and a narrow question", {
  set.seed(4)
  data <- data.frame(y = rnorm(50), a = runif(50, 2, 10), b = runif(50), z = exp(rnorm(50)), w = runif(50, 1, 3))
  st <- stat_crossprod(y ~ w + s(a, k = 6) + log(z) + s(b, k = 7), c(bounds[c("y", "a", "b", "w")], list(z = c(0.1, 10))), outside = c(w = "none", z = "above"))
  expect_equal(st$columns$name, c("y", "a", "b", "w", "log(z)"))
  # natural limits belong to the number itself, for records of a model
  beyond <- as.matrix(data.frame(y = 1, a = 3, b = 0.5, w = c(0, 4), z = log(c(0.01, 100))))
  total <- stats::setNames(.Call(internal("ffi_stat_total"), internal("statistic_spec")(st), beyond), st$components)
  ends <- log(c(0.1, 10))
  unclamped <- function(x, ends) 2 * (x - ends[1]) / diff(ends) - 1
  expect_equal(total[["w^2"]], sum(unclamped(c(0, 4), c(1, 3))^2))
  expect_equal(total[["log(z)^2"]], unclamped(log(0.01), ends)^2 + 1)
  release <- simulate_release(data, st, mech_laplace(epsilon = 5))
  file <- withr::local_tempfile()
  write_release(release, file)
  expect_identical(read_release(file)$statistic, st)
  expect_equal(read_release(file), release)
  narrow <- internal("narrow_release")
  expect_message(one <- narrow(release, model_lm(y ~ s(b, k = 9) + w)), class = "noiseaware_message_components")
  expect_identical(one$statistic$formula, "y ~ s(b, k = 7) + w")
  expect_identical(unname(one$value), unname(release$value[match(one$statistic$components, st$components)]))
  expect_identical(one$statistic$outside, c(y = "clamp", b = "clamp", w = "none"))
  expect_message(one <- narrow(release, model_lm(y ~ s(a) + log(z))), class = "noiseaware_message_components")
  expect_identical(one$statistic$columns$name, c("y", "a", "log(z)"))
})
