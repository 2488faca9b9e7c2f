# Formats are recognised; the readers have tests of their own.

test_that("formats are recognised by fields and columns", {
  guess <- internal("guess_format")
  file <- function(...) {
    path <- withr::local_tempfile(.local_envir = parent.frame())
    writeLines(c(...), path)
    path
  }
  release <- as_release(c("g=marginals" = 3, "g=__function__" = 5), stat_counts(~ g, list(g = c("marginals", "__function__"))), mech_laplace(scale = 2), n = 8)
  path <- withr::local_tempfile()
  write_release(release, path)
  expect_identical(guess(path), "noiseaware")
  expect_identical(read_release(path), release)
  expect_identical(guess(file(' {"__version__": 1, "ast": {', '"__function__": "make_laplace"}}')), "opendp")
  expect_identical(guess(file('{"levels": {"sex": ["f", "m"]}, "marginals": []}')), "marginals")
  expect_identical(guess(list(levels = list(), marginals = list())), "marginals")
  tables <- list(opendp_table = "column,aggregate,distribution,scale,threshold", census_nmf = '"geocode","query_name","variance","value","hhgq"',
                 census_gls = "geocode|query|estimate|std_dev", wikimedia = "country\tcountry_code\tproject\tpage_id\tpage_title\tprivate_count")
  for (name in names(tables)) {
    expect_identical(guess(file(paste0("\ufeff", tables[[name]]), "1")), name)
    columns <- strsplit(gsub('"', "", tables[[name]]), "[,|\t]")[[1L]]
    expect_identical(guess(as.data.frame(stats::setNames(as.list(seq_along(columns)), columns))), name)
  }
  for (odd in list(file("a,b", "1,2"), file("[1, 2]"), file(""), "absent.json", tempdir(), 3, NULL)) expect_identical(guess(odd), "noiseaware")
})

test_that("arguments are the format's, and errors are the function's", {
  views <- data.frame(country = "Malta", project = "mt.wikipedia", page_id = 1:2, page_title = c("a", "b"), private_count = c(100, 200))
  expect_error(read_release(views, date = "2023-06-01", geocode = 1), "`geocode` is not an argument here", class = "noiseaware_error_argument")
  expect_error(read_release(views, "wikimedia", "Malta"), "must be named", class = "noiseaware_error_argument")
  expect_error(read_release(views, format = "csv"), "`format` must be one of", class = "noiseaware_error_argument")
  expect_error(read_release(data.frame(a = 1)), "It has \"a\"", class = "noiseaware_error_argument")
  cut <- withr::local_tempfile(lines = '{"levels": ')
  expect_error(read_release(cut, value = 3), "truncated", class = "noiseaware_error_file")
  expect_error(read_release("absent.json", value = 3), "There is no file", class = "noiseaware_error_file")
  expect_error(read_release(system.file("examples", "birthwt.json", package = "noiseaware"), value = 3), "not an argument here", class = "noiseaware_error_argument")
  expect_error(read_release(list(levels = 1)), "`mechanism` must be given", class = "noiseaware_error_argument")
  path <- withr::local_tempfile(fileext = ".parquet")
  file.create(path)
  expect_error(read_release(path), "Parquet", class = "noiseaware_error_argument")
  condition <- tryCatch(read_release(views, pages = "a", date = "2023-06-01"), error = identity)
  expect_identical(as.character(condition$call[[1L]]), "read_release")
})
