# Files made by hand in the layout that the Wikimedia Foundation documents; the numbers are invented.

views <- c("country\tproject\tpage_id\tpage_title\titem_id\tprivate_count",
           "France\tfr.wikipedia\t681159\tParis\tQ90\t927",
           "France\tfr.wikipedia\t10\tL'Aquila #1\t\t96",
           "France\tfr.wikipedia\t12\t\"Lyon\"\tQ456\t311",
           "France\ten.wikipedia\t681159\tParis\tQ90\t240",
           "Malta\ten.wikipedia\t10\tValletta\tQ23800\t91",
           "Malta\ten.wikipedia\t22\tGozo\tQ170488\t135")

test_that("pages are read, and those that are not there were hidden", {
  path <- file.path(withr::local_tempdir(), "2023-6-1.tsv")
  writeLines(views, path)
  rel <- read_release(path, format = "wikimedia", country = "France", project = "fr.wikipedia", pages = c("Paris", "L'Aquila #1", "Lens"))
  expect_identical(rel$value, c(`page=Paris` = 927, `page=L'Aquila #1` = 96, `page=Lens` = NA))
  expect_identical(rel$mechanism, published(mech_discrete_gaussian(sd = sqrt(10 / 0.03)), threshold = 90))
  expect_null(rel$n)
  expect_identical(rel$neighbours, "add_remove")
  numbers <- read_release(path, format = "wikimedia", country = "France", project = "fr.wikipedia", pages = c(681159, 12))
  expect_identical(unname(numbers$value), c(927, 311))
  shown <- read_release(path, format = "wikimedia", country = "Malta")
  expect_identical(shown$value, c(`page=Valletta` = 91, `page=Gozo` = 135))
  expect_false(shown$mechanism$after$listed)
  # no names in the first row, and the earlier name of the counts
  bare <- file.path(dirname(path), "views.tsv")
  writeLines(views[6:7], bare)
  columns <- c("country", "project", "page_id", "page_title", "item_id", "gbc")
  expect_identical(read_release(bare, format = "wikimedia", columns = columns, date = as.Date("2023-06-01")), shown)
  frame <- utils::read.delim(path, quote = "", comment.char = "")
  expect_identical(read_release(frame, format = "wikimedia", country = "Malta", date = "2023-06-01"), shown)
})

test_that("the date decides about noise and threshold", {
  frame <- data.frame(country = "Malta", project = "en.wikipedia", page_id = 1:2, page_title = c("a", "b"), gbc = c(9000, 5000))
  noise <- function(date) {
    mechanism <- read_release(frame, format = "wikimedia", date = date)$mechanism
    c(mechanism$scale %||% mechanism$sd, mechanism$after$threshold)
  }
  `%||%` <- function(a, b) if (is.null(a)) b else a
  expect_identical(noise("2015-07-01"), c(300, 3500))
  expect_identical(noise("2017-02-08"), c(300, 3500))
  expect_identical(noise("2017-02-09"), c(30, 450))
  expect_identical(noise("2023-02-05"), c(30, 450))
  expect_equal(noise("2023-02-06"), c(18.2574, 90), tolerance = 1e-5)
  own <- published(mech_discrete_gaussian(sd = 25), threshold = 150)
  expect_identical(read_release(frame, format = "wikimedia", pages = c("a", "b"), mechanism = own)$mechanism, own)
})

test_that("another layout is told what is missing", {
  path <- withr::local_tempfile(lines = views, fileext = ".tsv")
  other <- withr::local_tempfile(lines = gsub("page_title", "title", views), fileext = ".tsv")
  cut <- withr::local_tempfile(lines = c(views, "Malta\ten.wikipedia"), fileext = ".tsv")
  twice <- withr::local_tempfile(lines = c(views, views[7]), fileext = ".tsv")
  expect_error(read_release(other, format = "wikimedia", country = "Malta", date = "2023-06-01"), "page_title", class = "noiseaware_error_file")
  expect_error(read_release(cut, format = "wikimedia", country = "Malta", date = "2023-06-01"), class = "noiseaware_error_file")
  expect_error(read_release(twice, format = "wikimedia", country = "Malta", date = "2023-06-01"), "Gozo", class = "noiseaware_error_file")
  expect_error(read_release("absent.tsv", format = "wikimedia", country = "Malta"), class = "noiseaware_error_file")
  refused <- function(...) expect_error(read_release(path, format = "wikimedia", ...), class = "noiseaware_error_argument")
  refused(date = "2023-06-01")
  refused("Spain", date = "2023-06-01")
  refused("France", date = "2023-06-01")
  refused("Malta")
  refused("Malta", date = "June")
  refused("Malta", date = "2014-01-01")
  refused("Malta", pages = "Gozo", date = "2023-06-01")
  refused("Malta", pages = c("Gozo", "Gozo"), date = "2023-06-01")
  refused("Malta", columns = "country", date = "2023-06-01")
  expect_error(read_release(path, format = "wikimedia", country = "Malta", date = "2017-01-01"), class = "noiseaware_error_value") # below that day's threshold
})

test_that("the posterior of the shares is that of the numbers given that they are shown", {
  skip_on_cran()
  path <- withr::local_tempfile(lines = views, fileext = ".tsv")
  rel <- read_release(path, format = "wikimedia", country = "Malta", date = "2023-06-01")
  fit <- sample_posterior(rel, model_categorical(), prior_n = prior_n("uniform", lower = 1, upper = 1000), chains = 2, iter = 1800, seed = 1)
  a <- 0:700
  shown <- function(value) {
    ddiscrete_gaussian(value, a, sqrt(10 / 0.03), log = TRUE) - pdiscrete_gaussian(89, a, sqrt(10 / 0.03), lower.tail = FALSE, log.p = TRUE)
  }
  # n + 1 tables of n records are equally likely
  log_p <- outer(shown(91), shown(135), "+") - log(outer(a, a, "+") + 1)
  log_p[outer(a, a, "+") < 1 | outer(a, a, "+") > 1000] <- -Inf
  p <- exp(log_p - max(log_p))
  d <- denoise(fit)
  for (k in 1:2) for (q in list(c(30, 60, 90), c(100, 130, 150))[[k]]) {
    draws <- posterior::extract_variable_matrix(d, posterior::variables(d)[k])
    expect_same_mean((draws <= q) + 0, sum(apply(p, k, sum)[a <= q]) / sum(p))
  }
})
