# A list of sites prints as a short table and works as a plain list of the same releases; str() of anything stays short.

asked <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
table <- data.frame(hospital = sprintf("h%03d", 1:30), patients = 40 + 1:30, smokers = 10.3 + 1:30, noise = rep(c(2, 3), 15))
sites <- as_release(table, asked, mech_laplace, n = "patients", site = "hospital", number = c("smoke=yes" = "smokers"), noise = c(scale = "noise"))

test_that("sites print as a table of ten, and summary() has all", {
  shown <- capture.output(print(sites))
  expect_lte(length(shown), 17L)
  expect_identical(shown[1], "<releases> of 30 sites")
  expect_match(shown[3], "Laplace noise, scale 2 (h001; it differs between sites)", fixed = TRUE)
  expect_match(shown, "h010 +50 +20.3 +4.243", all = FALSE)
  expect_no_match(shown, "h011")
  expect_match(shown[length(shown)], "... and 20 more sites; see summary()", fixed = TRUE)
  whole <- summary(sites)
  expect_identical(whole$site, table$hospital)
  expect_identical(whole$records, table$patients)
  expect_identical(whole$value, table$smokers)
  expect_equal(whole$noise_sd, table$noise * sqrt(2))
  expect_match(capture.output(print(sites[1:2])), "<releases> of 2 sites", all = FALSE)
  expect_identical(capture.output(print(sites[0])), "<releases> of 0 sites")
})

test_that("sites with many numbers show the first four", {
  st <- stat_counts(~ a, levels = list(a = letters[1:6]))
  wide <- data.frame(town = c("x", "y"), matrix(c(1:11, NA), 2))
  names(wide)[-1] <- st$components
  found <- as_release(wide, st, mech_gaussian(sd = 2) |> published(threshold = 0.5), n = NULL, site = "town", number = stats::setNames(nm = st$components))
  shown <- capture.output(print(found))
  expect_match(shown, "site +records a=a a=b a=c a=d noise sd", all = FALSE)
  expect_match(shown, "x not known +1 +3 +5 +7 +2", all = FALSE)
  expect_match(shown[length(shown)], "... and 2 more components; see summary()", fixed = TRUE)
  expect_identical(dim(summary(found)), c(12L, 7L))
})

test_that("they are used as a list of releases", {
  skip_on_cran()
  plain <- lapply(unclass(sites)[1:3], identity)
  fit <- function(releases) sample_posterior(releases, model_bernoulli(), pool = "none", chains = 1, iter = 400, seed = 1)
  expect_identical(fit(sites[1:3])$draws, fit(plain)$draws)
  expect_identical(test_hypothesis(sites[1:3]), test_hypothesis(plain))
})

test_that("str() and print() of fits stay short", {
  skip_on_cran() # takes long; `make test` runs it
  fit <- suppressWarnings(sample_posterior(sites, model_bernoulli(), pool = "none", chains = 1, iter = 400, seed = 1))
  for (one in list(sites, sites[[1]], fit, fit$fits[[1]])) expect_lt(length(capture.output(str(one))), 20L)
  expect_gt(length(capture.output(str(sites[[1]], max.level = 3))), 20L)
  cells <- stat_counts(~ a:b, list(a = letters[1:10], b = LETTERS[1:5]))
  rel <- as_release(stats::setNames(20 + sin(1:50), cells$components), cells, mech_laplace(epsilon = 1), n = 1000)
  fit <- suppressWarnings(sample_posterior(rel, model_table(), chains = 1, iter = 400, seed = 1))
  expect_match(capture.output(print(fit)), "... 10 more variables, which summary() has", fixed = TRUE, all = FALSE)
})

test_that("sites are drawn: a row for each, a panel for each number", {
  cells <- stat_counts(~ a, list(a = c("x", "y")))
  of <- function(value) as_release(stats::setNames(value, cells$components), cells, published(mech_laplace(scale = 3), threshold = 8), n = 40)
  sites <- internal("new_sites_list")(list(north = of(c(10, 30)), south = of(c(NA, 31))))
  drawn <- plot(sites)
  expect_equal(drawn$data, data.frame(site = rep(names(sites), each = 2), component = rep(cells$components, 2), value = c(10, 30, NA, 31),
                                          noise_sd = sqrt(18), hidden_below = c(NA, NA, 8, NA), row.names = NULL))
  lines <- ggplot2::layer_data(drawn, 1)
  expect_equal(sort(lines$x), sort(c(10 - 2 * sqrt(18), 30 - 2 * sqrt(18), 8, 31 - 2 * sqrt(18))))
  expect_identical(ggplot2::layer_data(drawn, 3)$x, 8)
  expect_identical(nrow(ggplot2::ggplot_build(drawn)$layout$layout), 2L)
  expect_null(drawn$labels$caption)
  many <- plot(internal("new_sites_list")(stats::setNames(rep(list(of(c(10, 30))), 42), 1:42)))
  expect_match(many$labels$caption, "2 more sites not shown")
  expect_error(plot(sites, level = 1), class = "noiseaware_error_argument")
  expect_error(plot(sites[0]), class = "noiseaware_error_argument")
})
