# Tables made by hand in the layouts that query.summarize() and query.release().collect() have; the numbers are invented.

summary_of <- function(...) data.frame(column = "len", aggregate = "Frame Length", distribution = "Integer Laplace", scale = 2, ...)
both <- rbind(summary_of(), data.frame(column = "visits", aggregate = "Sum", distribution = "Integer Laplace", scale = 40))
wards <- c("north", "south")
rows <- data.frame(ward = wards, len = c(120, 64), visits = c(391, 240))
visited <- list(visits = c(0, 20))
noise <- mech_discrete_laplace(scale = 2)
sizes <- stat_counts(~ ward, list(ward = wards))
sums <- stat_sums(~ visits, visited)

test_that("counts and sums are read by group and without, from data frames and files", {
  expected <- as_release(list(len = c(120, 64), visits = c(391, 240)), list(len = sizes, visits = stat_by(sums, list(ward = wards))),
                         list(len = noise, visits = mech_laplace(scale = 40)), NULL, "add_remove")
  expect_identical(read_release(both, format = "opendp_table", table = rows, bounds = visited), expected)
  expect_identical(read_release(both, format = "opendp_table", table = rows[2:1, ], levels = list(ward = wards), bounds = visited), expected)
  files <- withr::local_tempfile(pattern = c("summary", "table"))
  write.csv(cbind(both, accuracy = 6.4), files[1L], row.names = FALSE, na = "")
  write.csv(rows, files[2L], row.names = FALSE)
  expect_identical(read_release(files[1L], format = "opendp_table", table = files[2L], bounds = visited), expected)
  expect_identical(read_release(both, format = "opendp_table", table = rows[1L, -1L], bounds = visited),
                   as_release(list(len = 120, visits = 391), list(len = stat_size(), visits = sums), list(len = noise, visits = mech_laplace(scale = 40)), NULL, "add_remove"))
  # by two variables, other noise
  crossed <- data.frame(sex = c("f", "m", "m", "f"), age = c("b", "a", "b", "a"), len = c(4, 7, 2, 9.5))
  float <- transform(summary_of(), distribution = "Float Gaussian")
  expect_identical(read_release(float, format = "opendp_table", table = crossed, levels = list(sex = c("f", "m"), age = c("a", "b")), n = 22),
                   as_release(c(9.5, 4, 7, 2), stat_counts(~ sex:age, list(sex = c("f", "m"), age = c("a", "b"))), mech_gaussian(sd = 2), 22, "add_remove"))
})

test_that("public lengths are exact, and means over them are sums", {
  lengths <- data.frame(column = "len", aggregate = "Frame Length", distribution = NA, scale = NA)
  mean <- data.frame(column = "visits", aggregate = c("Sum", "Length"), distribution = c("Integer Laplace", NA), scale = c(40, NA))
  sums <- as_release(list(len = c(120, 64), visits = c(391, 240)), list(len = sizes, visits = stat_by(sums, list(ward = wards))),
                     list(len = mech_exact(), visits = mech_laplace(scale = 40)), 184, "add_remove")
  means <- transform(rows, visits = visits / len)
  expect_equal(read_release(rbind(lengths, mean), format = "opendp_table", table = means, bounds = visited, n = 184), sums)
  files <- withr::local_tempfile(pattern = c("summary", "table"))
  write.csv(rbind(lengths, mean), files[1L], row.names = FALSE, na = "")
  write.csv(means, files[2L], row.names = FALSE)
  expect_equal(read_release(files[1L], format = "opendp_table", table = files[2L], bounds = visited, n = 184), sums)
  one <- function(...) read_release(mean, format = "opendp_table", table = data.frame(visits = 2.5), bounds = visited, ...)
  expect_equal(one(n = 40), as_release(100, stat_sums(~ visits, visited), mech_laplace(scale = 40), 40, "add_remove"))
  expect_error(one(), "`n` must be given", class = "noiseaware_error_argument")
  expect_error(read_release(mean, format = "opendp_table", table = means[-2], bounds = visited, n = 184), class = "noiseaware_error_argument")
  # a noisy length; the name that versions before 0.12 have
  expect_error(read_release(transform(mean, distribution = "Integer Laplace", scale = 2), format = "opendp_table", table = means[-2], bounds = visited), class = "noiseaware_error_file")
  expect_identical(read_release(transform(summary_of(), aggregate = "Len"), format = "opendp_table", table = rows[1:2]), read_release(summary_of(), format = "opendp_table", table = rows[1:2]))
})

test_that("a group is shown where its noisy count is larger than the threshold", {
  limited <- summary_of(threshold = 33)
  expect_identical(read_release(limited, format = "opendp_table", table = rows[1:2]),
                   as_release(c(120, 64), sizes, published(noise, threshold = 34, listed = FALSE), NULL, "add_remove"))
  public <- c("centre", wards)
  hidden <- read_release(limited, format = "opendp_table", table = rows[1:2], levels = list(ward = public))
  expect_identical(hidden, as_release(c(NA, 120, 64), stat_counts(~ ward, list(ward = public)), published(noise, threshold = 34), NULL, "add_remove"))
  expect_error(read_release(limited, format = "opendp_table", table = transform(rows[1:2], len = c(120, 33))), class = "noiseaware_error_value")
  # 120 and 64 were shown: all counts up to 200 with n uniform are equally likely but for the sizes of tables
  fit <- sample_posterior(hidden, flat_categorical(), prior_n = prior_n("uniform", lower = 150, upper = 230), chains = 2, iter = 1000, seed = 1)
  tables <- expand.grid(centre = 0:60, north = 90:150, south = 40:90)
  total <- rowSums(tables)
  tables <- tables[total >= 150 & total <= 230, ]
  total <- rowSums(tables)
  below <- pdiscrete_laplace(33, tables$centre, scale = 2, log.p = TRUE)
  log_weight <- below - abs(tables$north - 120) / 2 - abs(tables$south - 64) / 2 - log((total + 1) * (total + 2))
  expect_same_mean(posterior::extract_variable_matrix(denoise(fit), "ward=centre"), weighted.mean(tables$centre, exp(log_weight - max(log_weight))))
})

test_that("the accuracy in a summary changes nothing", {
  expect_identical(read_release(cbind(summary_of(), accuracy = 6), table = rows[1:2]), read_release(summary_of(), table = rows[1:2]))
})

test_that("what is not understood is refused by its name", {
  skip_on_cran() # takes long; `make test` runs it
  mean <- transform(both[c(2, 1), ], column = "visits", aggregate = c("Sum", "Length"))
  quantile <- transform(summary_of(), aggregate = "0.5-Quantile", distribution = "GumbelMin")
  show(refusals(c("file", "argument"), alist(
    read_release(mean, format = "opendp_table", table = rows[c(1, 3)], bounds = visited),
    read_release(quantile, format = "opendp_table", table = rows[1:2]),
    read_release(cbind(both, clipped = 1), format = "opendp_table", table = rows),
    read_release(summary_of(), format = "opendp_table", table = transform(rows[1:2], ward = "north")),
    read_release(summary_of(), format = "opendp_table", table = rows[c(1, 2, 1, 2), 1:2]),
    read_release(both[-4], format = "opendp_table", table = rows),
    read_release(both, format = "opendp_table", table = rows[1:2], bounds = visited),
    read_release(both, format = "opendp_table", table = rows),
    read_release(summary_of(), format = "opendp_table", table = rows["len"]),
    read_release(summary_of(), format = "opendp_table", table = transform(rows[1:2], ward = c("north", NA)))
  )))
})
