# Files made by hand in the layouts that the Census Bureau publishes; the numbers are invented.

measured <- c("geocode,query_name,value,variance,sign,hhgq,votingage,hispanic,cenrace",
              "01001,total_dpq,[1436],3.5,,*,*,*,*",
              "01001,votingage * hispanic_dpq,\"[310, -25, 1040, 61]\",12.4,,*,votingage,hispanic,*",
              "01001,hhinstlevels_dpq,\"[1300, 90, 50]\",20,,hhinstlevels,*,*,*",
              "01001,hhgq_total_lb_con,\"[0, 0]\",,ge,hhgq,*,*,*",
              "01003,votingage * hispanic_dpq,\"[1, 2, 3, 4]\",12.4,,*,votingage,hispanic,*")
estimated <- c("geocode|query|estimate|std_dev|query_description",
               "01001020100|P0010001|1773.9|1.6|Total",
               "01001020100|P0010003|1385.2|2.3|White alone",
               "01001020100|P0010004|80.5|1.9|Black or African American alone")
two_way <- "votingage * hispanic_dpq"

test_that("noisy measurements are read with their noise, alone and several", {
  path <- withr::local_tempfile(lines = measured, fileext = ".csv")
  rel <- read_release(path, format = "census_nmf", geocode = "01001", query = two_way, n = 1440)
  expect_identical(rel$value, c(`votingage=under 18:hispanic=not hispanic` = 310, `votingage=under 18:hispanic=hispanic` = -25,
                                `votingage=18 and over:hispanic=not hispanic` = 1040, `votingage=18 and over:hispanic=hispanic` = 61))
  expect_identical(rel$mechanism, mech_discrete_gaussian(sd = sqrt(12.4)))
  expect_identical(rel$n, 1440)
  several <- read_release(path, format = "census_nmf", geocode = "01001", query = c(two_way, "hhinstlevels_dpq"))
  expect_identical(names(several$statistic), c(two_way, "hhinstlevels_dpq"))
  expect_identical(unname(several$value[5:7]), c(1300, 90, 50))
  expect_null(several$n)
  # a data frame, as a parquet reader gives it: a list of arrays
  frame <- read.csv(path, colClasses = "character", check.names = FALSE, na.strings = "")
  frame <- frame[frame$geocode == "01001", ]
  frame$value <- I(lapply(strsplit(gsub("[][ ]", "", frame$value), ","), as.integer))
  frame$variance <- as.double(frame$variance)
  expect_identical(read_release(frame, format = "census_nmf", query = two_way, n = 1440), rel)
  own <- read_release(path, format = "census_nmf", geocode = "01001", query = "hhinstlevels_dpq", levels = list(hhgq = c("home", "inst", "other")))
  expect_identical(names(own$value)[1], "hhgq=home")
  expect_length(getFromNamespace("census_levels", "noiseaware")$cenrace$cenrace, 63L)
})

test_that("a query without variables counts the records", {
  path <- withr::local_tempfile(lines = measured, fileext = ".csv")
  rel <- read_release(path, format = "census_nmf", geocode = "01001", query = c("total_dpq", two_way))
  expect_identical(rel$value[["total_dpq: n"]], 1436)
  expect_identical(rel$neighbours, "add_remove")
  expect_identical(read_release(path, format = "census_nmf", geocode = "01001", query = "total_dpq")$statistic, stat_size())
  # what the cells say about n and what the total does are all but normal: means weighted by precisions
  told <- function(release) {
    fit <- sample_posterior(release, model_table(~ votingage:hispanic), prior_n = prior_n("uniform", lower = 1, upper = 3000), chains = 1, iter = 2600, warmup = 500, seed = 1)
    n <- posterior::extract_variable_matrix(fit$draws, "n")
    c(mean(n), stats::var(as.vector(n)))
  }
  cells <- told(read_release(path, format = "census_nmf", geocode = "01001", query = two_way))
  both <- told(rel)
  precision <- c(1 / cells[2], 1 / 3.5)
  expect_lt(abs(both[1] - sum(precision * c(cells[1], 1436)) / sum(precision)), 0.2)
  expect_lt(abs(both[2] * sum(precision) - 1), 0.15)
})

test_that("parquet files are read where nanoparquet is there, and told about where not", {
  path <- withr::local_tempfile(fileext = ".parquet")
  writeBin(as.raw(c(80, 65, 82, 49)), path)
  expect_error(read_release(path, format = "census_nmf", geocode = "01001", query = two_way), "parquet", class = "noiseaware_error_file")
  skip_if_not_installed("nanoparquet")
  text <- withr::local_tempfile(lines = measured)
  frame <- read.csv(text, colClasses = "character", check.names = FALSE, na.strings = "")
  frame$value <- lapply(strsplit(gsub("[][ ]", "", frame$value), ","), as.integer)
  frame$variance <- as.double(frame$variance)
  nanoparquet::write_parquet(frame, path)
  expect_identical(read_release(path, format = "census_nmf", geocode = "01001", query = two_way, n = 1440), read_release(text, format = "census_nmf", geocode = "01001", query = two_way, n = 1440))
  nanoparquet::write_parquet(frame[names(frame) != "variance"], path)
  expect_error(read_release(path, format = "census_nmf", geocode = "01001", query = two_way), "variance", class = "noiseaware_error_file")
})

test_that("least squares estimates are read with their sd", {
  path <- withr::local_tempfile(lines = estimated)
  race <- stat_counts(~ race, levels = list(race = c("white", "black", "other")))
  rel <- read_release(path, format = "census_gls", statistic = race, queries = c("race=black" = "P0010004", "race=white" = "P0010003"), n = 1774)
  expect_identical(rel$value, c(`race=white` = 1385.2, `race=black` = 80.5))
  expect_identical(noise_sd(rel), c(`race=white` = 2.3, `race=black` = 1.9))
  expect_identical(rel$statistic, stat_subset(race, c("race=white", "race=black")))
  # a file of one geography needs no geocode, but is not of another
  expect_error(read_release(path, format = "census_gls", statistic = race, queries = c("race=black" = "P0010004"), geocode = "99"), class = "noiseaware_error_argument")
})

test_that("another layout is told which column is missing, and no file is half used", {
  skip_on_cran() # takes long; `make test` runs it
  path <- withr::local_tempfile(lines = measured, fileext = ".csv")
  withr::local_dir(dirname(path))
  writeLines(sub("query_name", "query", measured), "renamed.csv")
  writeLines(estimated, "estimates.csv")
  writeLines(gsub("12.4", "many", measured), "text.csv")
  writeLines(gsub("310, ", "", measured), "short.csv")
  writeLines(gsub("1]", "", measured, fixed = TRUE), "array.csv")
  writeLines(c(measured, "01001,total"), "cut.csv")
  writeLines(measured[c(1:3, 3)], "twice.csv")
  writeLines(sub("[1436]", "\"[700, 736]\"", measured, fixed = TRUE), "several.csv")
  show(refusals("file", alist(
    read_release("renamed.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("estimates.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("text.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("short.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("array.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("cut.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("twice.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("nowhere.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("several.csv", format = "census_nmf", geocode = "01001", query = "total_dpq"),
    read_release("estimates.csv", format = "census_gls", statistic = stat_counts(~ x, list(x = 1:2)), queries = c("x=1" = "P0010099"))
  )))
  writeLines(measured, "all.csv")
  writeLines(sub("\\*,votingage,hisp", "*,young,hisp", measured), "young.csv")
  show(refusals("argument", alist(
    read_release("all.csv", format = "census_nmf", query = two_way),
    read_release("all.csv", format = "census_nmf", geocode = "01009", query = two_way),
    read_release("all.csv", format = "census_nmf", geocode = "01001", query = "sex_dpq"),
    read_release("young.csv", format = "census_nmf", geocode = "01001", query = two_way),
    read_release("all.csv", format = "census_nmf", geocode = "01001", query = c(two_way, "total_dpq"), n = 1440),
    read_release("estimates.csv", format = "census_gls", statistic = stat_counts(~ x, list(x = 1:2)), queries = "P0010003")
  )))
})

test_that("the levels of the redistricting data are in the order of the file", {
  counts <- c(100, 20, 3, 4, 5, 60, 7, 8)
  row <- data.frame(geocode = "1", query_name = "hhgq_dpq", value = paste0("[", paste(counts, collapse = ", "), "]"), variance = 4, hhgq = "detailed")
  value <- read_release(row, format = "census_nmf", query = "hhgq_dpq", n = 207)$value
  known <- c("household", "correctional", "juvenile", "nursing", "other institutional", "college", "military", "other noninstitutional")
  expect_identical(value, setNames(counts, paste0("hhgq=", known)))
})
