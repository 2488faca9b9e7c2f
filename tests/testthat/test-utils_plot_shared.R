# Which panels plots have, and bands without steps.

test_that("of two variables that mirror each other one is shown", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  p <- runif(20)
  q <- runif(20)
  values <- cbind(a = p, b = q, c = 1 - p, d = 0.3, e = 0.7, f = 1 - q + 1e-6)
  expect_identical(internal("mirrored")(values), "a")
  expect_identical(internal("mirrored")(values[, c("b", "d", "e")]), character())
  two <- stat_counts(~ g, levels = list(g = c("no", "yes")))
  rel <- as_release(c(30, 20), two, mech_laplace(epsilon = 1), 50)
  fit <- sample_posterior(rel, model_categorical(), chains = 1, iter = 200, seed = 1)
  expect_identical(internal("plot_variables")(fit, NULL), "prob[yes]")
  expect_identical(internal("plot_variables")(fit, c("prob[no]", "prob[yes]")), c("prob[no]", "prob[yes]"))
  expect_identical(levels(prior_data(fit)$variable), "prob[yes]")
  totals <- stat_sums(~ y + I(y^2), list(y = c(0, 9)))
  sites <- list(a = as_release(c(70, 400), totals, mech_laplace(scale = 3), 20), b = as_release(c(80, 420), totals, mech_laplace(scale = 3), 20))
  pooled <- sample_posterior(sites, model_normal(), pool = "partial", chains = 1, iter = 60, seed = 1)
  expect_identical(internal("plot_variables")(pooled, NULL), posterior::variables(pooled$draws))
  cal <- calibrate(model_categorical(), two, mech_laplace(epsilon = 1), n = 20, replicates = 10, chains = 1, iter = 200, seed = 1)
  expect_identical(levels(calibration_data(cal)$variable), c("prob[yes]", "log_eta"))
  expect_identical(levels(calibration_data(cal, variables = "prob[no]")$variable), "prob[no]")
  expect_identical(levels(plot(coverage(cal))$data$variable), c("prob[yes]", "log_eta"))
  expect_true("prob[no]" %in% coverage(cal)$variable) # tables have all
  # three levels: none is one less another
  expect_identical(internal("mirrored")(cbind(x = p / 2, y = p / 4, z = 1 - 0.75 * p)), character())
})

test_that("the ends of intervals have at most 4 digits", {
  short <- internal("short_intervals")
  expect_identical(short(c("event[91.3125,182.625):sex=1", "(1234.56,12345.6]", "[-0.123456,2)", "prob[a,b]", "x[1.5]", "[0,1e5)")),
                   c("event[91.31,182.6):sex=1", "(1235,12346]", "[-0.123,2)", "prob[a,b]", "x[1.5]", "[0,1e5)"))
  expect_identical(short(factor(c("[1.00001,2)", "[1.00002,2)"))), c("[1.00001,2)", "[1.00002,2)"))
})

test_that("smooth ends hold the same counts as the exact ones, and have no steps", {
  for (count in c(5, 40, 333)) for (tail in c(0.3, 0.005, 1e-6)) {
    at <- seq(0, 1, length.out = 201)
    ends <- internal("smooth_ends")(tail, count, at)
    lower <- qbinom(tail, count, at)
    upper <- qbinom(tail, count, at, lower.tail = FALSE)
    expect_true(all(pmax(lower - 1, -1) < ends$lower * count + 1e-6 & ends$lower * count <= lower + 1e-6))
    expect_true(all(upper - 1e-6 <= ends$upper * count & ends$upper * count < upper + 1 + 1e-6))
    expect_identical(c(ends$lower[1], ends$lower[201], ends$upper[1], ends$upper[201]), c(0, 1, 0, 1))
    # from point to point they move on, by less than a count
    middle <- ends$lower > 0 & ends$upper < 1
    if (count == 40 && sum(middle) > 10) expect_gt(min(diff(ends$lower[middle])), 0)
  }
})

test_that("strips of long names have several lines", {
  p <- ggplot2::ggplot(data.frame(x = 1, variable = c("sigma", "prob[race=black|low=0]")), ggplot2::aes(x, x)) + ggplot2::geom_point()
  layout <- ggplot2::ggplot_build(p + internal("facet_variables")())$layout
  labels <- layout$facet$params$labeller(layout$layout["variable"])
  expect_setequal(unlist(labels), c("sigma", "prob[race=black\n|low=0]"))
  expect_identical(internal("break_name")("prob[education=primary:job=none:sex=f]"), "prob[education=primary:\njob=none:sex=f]")
  expect_identical(internal("break_name")("cov[yrs.since.phd,yrs.since.phd]"), "cov[yrs.since.phd,\nyrs.since.phd]")
  expect_identical(internal("break_name")("cov[x,y]"), "cov[x,y]")
  expect_identical(internal("break_name")("prob[yes,2020-to-2029-area]"), "prob[yes,\n2020-to-2029-area]")
})

test_that("names are not broken within an interval, and rows of long names leave room for the titles", {
  name <- "prob[cut(length, c(4, 5, 6))=(4.3333,5.6667]:Species=setosa]"
  expect_identical(internal("break_name")(name), "prob[cut(length,\nc(4, 5, 6))=\n(4.3333,5.6667]:\nSpecies=setosa]")
  expect_identical(internal("break_name")("event[-Inf,182.625):sex=female"), "event[-Inf,182.625):\nsex=female")
  levels <- list("cut(Sepal.Length, c(4, 5, 6, 7, 8))" = c("(4,5]", "(5,6]"), Species = c("setosa", "virginica"))
  cells <- do.call(expand.grid, levels)
  names <- sprintf("cut(Sepal.Length, c(4, 5, 6, 7, 8))=%s:Species=%s", cells[[1]], cells[[2]])
  check <- structure(data.frame(component = names, value = 1:4, mean = 1, sd = 1, lower = 0, upper = 2), level = 0.95)
  plot <- ggplot2::ggplot_build(internal("plot_release_check")(check))
  expect_lte(max(nchar(unlist(strsplit(plot$layout$panel_params[[1]]$y$get_labels(), "\n")))), 40)
  expect_identical(plot$plot$theme$plot.title.position, "plot")
})
