# A release as a table and as a picture.

built <- function(plot) suppressWarnings(ggplot2::ggplot_build(plot))
laplace <- mech_laplace(scale = 3)

test_that("as.data.frame() has values, noise and limits of every part", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- stat_counts(~ g, levels = list(g = c("a", "b")))
  sums <- stat_sums(~ x, bounds = list(x = c(2, 5)))
  rel <- as_release(list(c = c(a = 12, b = 9), s = 70), list(c = counts, s = sums), list(c = laplace, s = mech_gaussian(sd = 2)), 20)
  expect_equal(as.data.frame(rel), data.frame(component = c("c: g=a", "c: g=b", "s: x"), value = c(12, 9, 70), noise_sd = c(sqrt(18), sqrt(18), 2),
                                              lower = c(0, 0, 40), upper = c(20, 20, 100)))
  # single records have limits of their own, coefficients and functions none that are known
  answers <- as_release(c(0, 1, 1), stat_records(~ g, levels = list(g = c("a", "b"))), mech_randomized_response(epsilon = 1), 3)
  expect_identical(as.data.frame(answers)$upper, c(1, 1, 1))
  expect_identical(as.data.frame(answers)$noise_sd, rep(NA_real_, 3))
  coefficients <- as_release(c(0.2, 0.5), stat_objective(w ~ x, list(w = c(0, 1), x = c(-1, 4))), mech_objective(scale = 3, ridge = 1), 30)
  expect_identical(as.data.frame(coefficients)$lower, c(NA_real_, NA_real_))
  own <- as_release(c(low = 4), stat_custom(function(r) cbind(low = pmin(r[, "x"], 1)), "low", 1, list(x = c(0, 2))), laplace, 10)
  expect_true(all(is.na(as.data.frame(own)[c("lower", "upper")])))
  for (r in list(rel, answers, coefficients, own)) expect_s3_class(built(plot(r))$plot, "ggplot")
  # totals by group reach as far as the group's number of records lets them
  groups <- list(g = c("a", "b"))
  by <- as_release(list(size = c(4, 10), total = c(9, 30)), list(size = stat_counts(~ g, groups), total = stat_by(sums, groups)),
                   list(size = mech_exact(), total = laplace), n = 14)
  expect_equal(as.data.frame(by)[3:4, c("lower", "upper")], data.frame(lower = c(8, 20), upper = c(20, 50)), ignore_attr = TRUE)
  expect_error(as.data.frame(rel, stringsAsFactors = TRUE), class = "noiseaware_error_argument")
})

test_that("the picture shows two standard deviations each way, within the limits", {
  rel <- as_release(c(12, 9), stat_counts(~ g, levels = list(g = c("a", "b"))), laplace, 20)
  plot <- plot(rel)
  layers <- built(plot)$data
  expect_equal(layers[[1]][c("x", "xend")], data.frame(x = c(0, 0), xend = c(20, 20)), ignore_attr = TRUE)
  expect_equal(layers[[2]]$xend - layers[[2]]$x, rep(4 * sqrt(18), 2))
  expect_equal(layers[[3]]$x, c(12, 9))
  # the first component on top
  expect_equal(as.numeric(layers[[3]]$y), c(2, 1))
  # units far apart: shares of the range
  wide <- as_release(c(30, 5e4), stat_sums(~ x + w, bounds = list(x = c(0, 1), w = c(0, 1e4)), rescale = FALSE), laplace, 50)
  layers <- built(plot(wide))$data
  expect_equal(layers[[3]]$x, c(0.6, 0.1))
  expect_equal(layers[[1]]$xend, c(1, 1))
  # many numbers
  many <- as_release(rep(1, 50), stat_counts(~ g, levels = list(g = 1:50)), laplace, 50)
  expect_identical(nrow(built(plot(many))$data[[3]]), 40L)
  expect_match(plot(many)$labels$caption, "10 more")
})

test_that("exact sizes of groups limit their totals, and have no bar themselves", {
  by <- list(arm = c("a", "b"))
  rel <- as_release(list(t = c(30, 70), sizes = c(5, 12)), list(t = stat_by(stat_sums(~ y, list(y = c(2, 10))), by), sizes = stat_counts(~ arm, by)),
                    list(t = laplace, sizes = mech_exact()), n = 17)
  expect_identical(as.data.frame(rel)[c("lower", "upper")], data.frame(lower = c(10, 24, 0, 0), upper = c(50, 120, 17, 17)))
  drawn <- plot(rel)
  expect_match(drawn$labels$subtitle, "points alone: exact", fixed = TRUE)
  bars <- built(drawn)
  expect_identical(bars$layout$panel_params[[1]]$y$get_labels(), rev(names(rel$value)))
  expect_equal(bars$data[[1]]$xend - bars$data[[1]]$x, c(40, 96, NA, NA))
})
