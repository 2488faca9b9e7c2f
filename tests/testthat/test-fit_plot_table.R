# Released against posterior tables.

binary <- c("a", "b")
levels3 <- list(x = binary, y = c("u", "v", "w"), z = binary)

margins_fit <- function() {
  set.seed(1)
  st <- list(one = stat_counts(~ y:x, levels3[1:2]), some = stat_subset(stat_counts(~ z, levels3["z"]), "z=b"))
  rel <- simulate_release(flat_table(), st, list(one = mech_gaussian(sd = 3), some = mech_laplace(scale = 1)), n = 200)
  sample_posterior(rel, flat_table(), chains = 2, iter = 300, warmup = 100, seed = 1) |> suppressWarnings()
}

test_that("the data of a table: published numbers in any order of the variables, posterior counts", {
  fit <- margins_fit()
  data <- table_data(fit, ~ x:y, 0.8)
  expect_named(data, c("x", "y", "released", "noise_sd", "mean", "sd", "lower", "upper"))
  expect_identical(data$released, unname(fit$release$value[sprintf("one: y=%s:x=%s", data$y, data$x)]))
  expect_identical(data$noise_sd, rep(3, 6))
  draws <- posterior::as_draws_matrix(denoise(fit, ~ x:y))
  of <- draws[, sprintf("x=%s:y=%s", data$x, data$y)]
  expect_equal(data$mean, unname(colMeans(of)))
  expect_equal(data$sd, unname(apply(of, 2, stats::sd)))
  expect_equal(data$upper, unname(apply(of, 2, stats::quantile, 0.9, type = 6)))
  one <- table_data(fit, ~ z)
  expect_identical(is.na(one$released), c(TRUE, FALSE))
  expect_true(all(is.na(table_data(fit, ~ x:z)$released)))
  # n is known: a share is a count of n
  percent <- plot(fit, "table", margin = ~ x:y, level = 0.8, percent = TRUE)
  expect_equal(percent$data[-(1:2)], data[-(1:2)] * 100 / fit$release$n)
  expect_match(percent$layers[[2]]$mapping$label |> rlang::eval_tidy(data = percent$layers[[1]]$data), "%")
})

test_that("tiles show each cell once, of one to three variables", {
  skip_on_cran()
  fit <- margins_fit()
  expect_equal(sort(table_data(fit)$mean), sort(table_data(fit, ~ x:y:z)$mean))
  for (margin in list(~ z, ~ x:y, ~ x:y:z)) {
    plot <- plot(fit, "table", margin = margin)
    built <- ggplot2::ggplot_build(plot)
    expect_identical(nrow(built$data[[1]]), nrow(table_data(fit, margin)))
    if (length(all.vars(margin)) == 3L) expect_identical(nlevels(built$data[[1]]$PANEL), 2L)
  }
  expect_match(plot(fit, "table", margin = ~ x:y)$layers[[1]]$data$label[1], "^[0-9.]+ \u00b1 [0-9.]+\n\\(-?[0-9.]+\\)$")
  refusals("formula", expression(plot(fit, "table", margin = ~ x + y), plot(fit, "table", margin = "x"), plot(fit, "table", margin = x ~ y)))
  refusals("variables", expression(plot(fit, "table", margin = ~ w)))
  refusals("argument", expression(plot(fit, "table", margin = ~ x, level = 1), plot(fit, "table", margin = ~ x, percent = 2), plot(fit, "table", text_size = -1)))
})

test_that("tables of two or three variables are drawn as such, unless something else is asked for", {
  fit <- margins_fit()
  expect_identical(plot(fit)$data, table_data(fit, NULL, 0.95))
  variables <- posterior::variables(fit$draws)
  expect_identical(as.character(plot(fit, "intervals")$data$parameter), setdiff(variables, internal("mirrored")(internal("parameter_matrix")(fit))))
  expect_identical(as.character(plot(fit, variables = variables[1:2])$data$parameter), variables[1:2])
  one <- as_release(c(30, 70), stat_counts(~ x, levels3["x"]), mech_laplace(scale = 1), n = 100)
  one <- suppressWarnings(suppressMessages(sample_posterior(one, model_table(), chains = 1, iter = 100, seed = 1)))
  expect_identical(as.character(plot(one)$data$parameter), "prob[x=b]")
})

test_that("many levels are rows, whichever variable has them", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(x = binary, y = paste0("l", 1:8))
  axes <- function(margin, levels) {
    set.seed(1)
    counts <- as_release(stats::rpois(prod(lengths(levels)), 20), stat_counts(margin, levels), mech_laplace(scale = 1), n = 320)
    fit <- suppressWarnings(suppressMessages(sample_posterior(counts, model_table(), chains = 1, iter = 100, seed = 1)))
    plot <- plot(fit, "table")
    drawn <- ggplot2::ggplot_build(plot)$layout$panel_params[[1]]
    list(plot$labels$x, plot$labels$y, drawn$x$get_labels(), plot$layers[[2]]$data[c("row", "column", "mean")], plot$data$mean)
  }
  for (margin in list(~ x:y, ~ y:x)) {
    of <- axes(margin, levels)
    expect_identical(of[1:3], list("x", "y", binary))
    expect_identical(of[[4]]$mean, of[[5]])
  }
  expect_identical(axes(~ x:y, list(x = binary, y = paste0("l", 1:6)))[1:2], list("y", "x"))
  expect_identical(axes(~ y, levels["y"])[1:2], list(NULL, "y"))
  expect_identical(axes(~ x, levels["x"])[1:2], list("x", NULL))
})

test_that("a mosaic has the shares of the second variable given the first", {
  fit <- margins_fit()
  plot <- plot(fit, "mosaic", margin = ~ y:x)
  data <- plot$data
  expect_equal(data[names(table_data(fit, ~ y:x, 0.95))], table_data(fit, ~ y:x, 0.95))
  draws <- posterior::as_draws_matrix(denoise(fit, ~ y:x))
  of <- function(x, y) draws[, sprintf("y=%s:x=%s", y, x)]
  share <- of("b", "v") / (of("a", "v") + of("b", "v"))
  row <- data[data$y == "v" & data$x == "b", ]
  expect_equal(c(row$share, row$share_sd), c(mean(share), stats::sd(share)))
  at <- ggplot2::ggplot_build(plot)$data[[1]]
  expect_equal(at$ymax - at$ymin, data$share)
  expect_equal(tapply(at$xmax - at$xmin, data$y, mean), tapply(data$mean, data$y, sum) / 200, ignore_attr = TRUE)
  expect_equal(range(at$xmin, at$xmax, at$ymin, at$ymax), c(0, 1))
  refusals("formula", expression(plot(fit, "mosaic"), plot(fit, "mosaic", margin = ~ x)))
})

test_that("exact and hidden cells are marked, and have no axis in standard deviations of a noise that there is not", {
  cells <- stat_counts(~ a:b, list(a = c("x", "y"), b = c("u", "v")))
  published_cells <- function(mechanism) as_release(c(30, NA, 12, 45), cells, published(mechanism, threshold = 10), n = 95) |> suppressMessages()
  fitted <- function(release) suppressWarnings(sample_posterior(release, model_table(), chains = 1, iter = 200, seed = 1))
  exact <- published_cells(mech_exact())
  fit <- fitted(exact)
  table <- plot(fit, "table")
  labels <- ggplot2::layer_data(table, 2)$label
  expect_true(all(c("30", "12", "45") %in% labels))
  expect_match(labels, "^8 \u00b1 0\n\\(< 10\\)$", all = FALSE) # 95 less the others
  expect_identical(table$data$hidden_below, c(NA, 10, NA, NA))
  expect_match(table$labels$subtitle, "without \u00b1: published, exact; (<: hidden)", fixed = TRUE)
  expect_no_match(table$labels$subtitle, "with noise")
  denoised <- plot(fit, "denoised")
  expect_identical(denoised$labels$x, "confidential number")
  expect_setequal(ggplot2::layer_data(denoised, 2)$x, c(30, 8, 12, 45))
  expect_identical(ggplot2::layer_data(denoised, 2)$shape[ggplot2::layer_data(denoised, 2)$x == 8], 21)
  expect_identical(ggplot2::ggplot_build(denoised)$layout$panel_params[[1]]$y$get_labels(), rev(cells$components))
  expect_no_match(plot(exact)$labels$subtitle, "grey")
  noisy <- plot(fitted(published_cells(mech_discrete_laplace(epsilon = 1))), "table")
  expect_identical(noisy$labels$subtitle, "posterior mean \u00b1 sd of the confidential count\n(published, with noise); (<: hidden)")
  expect_match(ggplot2::layer_data(noisy, 2)$label, "\n(< 10)", fixed = TRUE, all = FALSE)
})
