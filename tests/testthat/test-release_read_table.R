# Published numbers that come as rows of a data frame.

levels <- list(age = c("0-19", "20-59", "60+"), sex = c("f", "m"))
crossed <- stat_counts(~ age:sex + sex, levels)
cells <- expand.grid(sex = levels$sex, age = levels$age, stringsAsFactors = FALSE)
cells$value <- c(11, 12, 21, 22, 31, 32)
laplace <- mech_laplace(scale = 2)

test_that("rows are matched by their labels, in any order, margins by what is missing", {
  whole <- as_release(c(11, 12, 21, 22, 31, 32, 63, 66), crossed, laplace, 129)
  rows <- rbind(cells, data.frame(sex = c("m", "f"), age = NA, value = c(66, 63)))
  expect_identical(as_release(rows, crossed, laplace, 129), whole)
  expect_identical(as_release(rows[c(3, 8, 1, 2, 7, 6, 5, 4), ], crossed, laplace, 129), whole)
  rows$age <- factor(rows$age, rev(levels$age))
  expect_identical(as_release(tail(rows, 7), crossed, laplace, 129)$value, whole$value[-1])
  # other names, other columns next to them
  names(rows) <- c("gender", "age_group", "count")
  rows$note <- "x"
  named <- c(age = "age_group", sex = "gender")
  expect_identical(as_release(rows, crossed, laplace, 129, number = "count", labels = named), whole)
  # components by name; levels that are numbers
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 9)), rescale = FALSE)
  by_name <- data.frame(component = c("x^2", "x"), value = c(7, 3))
  expect_identical(as_release(by_name, st, laplace, 9)$value, c(x = 3, `x^2` = 7))
  binary <- stat_counts(~ y, levels = list(y = c(0, 1)))
  expect_identical(as_release(data.frame(y = 1, value = 5), binary, laplace, 9)$value, c(`y=1` = 5))
  expect_identical(as_release(data.frame(y = 1, value = 5), stat_subset(binary, "y=1"), laplace, 9)$value, c(`y=1` = 5))
})

# Made by hand in the layouts that the documentation of these projects shows; the numbers are invented.
test_that("grouped counts of Tumult Analytics and partitions of PipelineDP are read as they come", {
  age <- stat_counts(~ age, levels["age"])
  tumult <- data.frame(age = c("0-19", "20-59", "60+"), count = c(24L, 43L, 61L))
  expect_identical(as_release(tumult, age, mech_discrete_laplace(scale = 2), n = NULL, number = "count", neighbours = "add_remove")$value,
                   c(`age=0-19` = 24, `age=20-59` = 43, `age=60+` = 61))
  # a partition that was not selected is not there
  pipeline <- data.frame(partition_key = c("60+", "0-19"), count = c(60.2, 23.9), sum = c(3912.4, 402.7))
  rel <- as_release(pipeline, age, mech_laplace(scale = 2), n = NULL, number = "count", labels = c(age = "partition_key"), neighbours = "add_remove")
  expect_identical(rel$value, c(`age=0-19` = 23.9, `age=60+` = 60.2))
})

test_that("noise may be told row by row", {
  cells$sd <- 1:6
  cells$scale <- 7:12
  each <- as_release(cells[6:1, ], crossed, mech_gaussian, 129)
  expect_identical(unname(each$scale), as.double(1:6))
  expect_identical(each$value, as_release(cells, crossed, laplace, 129)$value)
  expect_identical(unname(as_release(cells, crossed, mech_laplace, 129)$scale), as.double(7:12))
  expect_equal(unname(as_release(cells, crossed, mech_laplace, 129, noise = c(sd = "sd"))$scale), 1:6 / sqrt(2))
  expect_identical(unname(as_release(cells, crossed, mech_discrete_gaussian, 129, noise = c(scale = "scale"))$scale), as.double(7:12))
})

test_that("what a column says of the noise is told, and gives the same noise for every mechanism", {
  skip_on_cran() # takes long; `make test` runs it
  cells$noise <- c(0.6, 1, 5, 12, 40, 300)
  of <- function(mechanism, ...) unname(as_release(cells, crossed, mechanism, 129, noise = c(...))$scale)
  # the share of noise within a margin, and its variance, by the distributions themselves
  p_laplace <- function(m, b) 1 - exp(-m / b)
  p_normal <- function(m, sd) 2 * pnorm(m / sd) - 1
  for (level in c(0.5, 0.9, 0.95)) {
    expect_equal(p_laplace(cells$noise, of(mech_laplace, margin = "noise", level = level)), rep(level, 6))
    for (mechanism in list(mech_gaussian, mech_discrete_gaussian)) {
      expect_equal(p_normal(cells$noise, of(mechanism, margin = "noise", level = level)), rep(level, 6))
    }
  }
  expect_identical(of(mech_laplace, scale = "noise"), cells$noise)
  expect_equal(of(mech_laplace, variance = "noise"), sqrt(cells$noise / 2))
  expect_equal(of(mech_gaussian, variance = "noise"), sqrt(cells$noise))
  discrete_variance <- function(scale) vapply(scale, function(b) sum((-20000:20000)^2 * ddiscrete_laplace(-20000:20000, scale = b)), 0)
  expect_equal(discrete_variance(of(mech_discrete_laplace, variance = "noise")), cells$noise)
  expect_equal(discrete_variance(of(mech_discrete_laplace, sd = "noise")), cells$noise^2)
  as_list <- as_release(cells, crossed, mech_gaussian, 129, noise = list(margin = "noise", level = 0.9))
  expect_identical(unname(as_list$scale), of(mech_gaussian, margin = "noise", level = 0.9))
  # a name that says nothing, or not what is meant
  names(cells)[names(cells) == "noise"] <- "count_noise_stddev"
  show(refusals("argument", alist(
    as_release(cells, crossed, mech_laplace, 129, noise = "count_noise_stddev"),
    as_release(cells, crossed, mech_discrete_laplace, 129, noise = c(margin = "count_noise_stddev", level = 0.9))
  )))
  for (bad in list(c(variance = "sd", level = "0.5"), c(margin = "sd"), c(margin = "sd", level = 95), c(sd = "a", scale = "b"), list(sd = 3), 3, character(),
                   list(margin = "sd", level = NA), c(error = "sd"))) {
    expect_error(as_release(cells, crossed, mech_gaussian, 129, noise = bad), class = "noiseaware_error_argument")
  }
  expect_error(as_release(cells, crossed, mech_gaussian, 129, noise = c(sd = "none")), class = "noiseaware_error_value")
})

test_that("what is missing in a data frame is asked for by name", {
  skip_on_cran() # takes long; `make test` runs it
  show(refusals("value", alist(
    as_release(cells[-3], crossed, laplace, 129),
    as_release(cells, crossed, laplace, 129, number = "count"),
    as_release(cells, crossed, laplace, 129, number = "sex"),
    as_release(cells["value"], crossed, laplace, 129),
    as_release(cells, crossed, laplace, 129, labels = c(age = "years")),
    as_release(transform(cells, age = c("0-19", "x")), crossed, laplace, 129),
    as_release(transform(cells, sex = NA), crossed, laplace, 129),
    as_release(cells[c(1, 1), ], crossed, laplace, 129),
    as_release(cells, crossed, mech_gaussian, 129),
    as_release(cells, stat_sums(~ x, bounds = list(x = c(0, 1))), laplace, 129)
  )))
  show(refusals("argument", alist(
    as_release(cells, crossed, function(x) x, 129),
    as_release(cells, crossed, laplace, 129, labels = "age"),
    as_release(cells, crossed, laplace, 129, number = 3),
    as_release(cells, crossed, laplace, 129, columns = "value")
  )))
})

test_that("a margin of error without its level, or with one in per cent, is refused with the reason", {
  rows <- data.frame(g = c("a", "b"), number = c(10, 20), pm = 12)
  st <- stat_counts(~ g, list(g = c("a", "b")))
  read <- function(noise) as_release(rows, st, mech_laplace, n = 30, number = "number", noise = noise)
  expect_error(read(c(margin = "pm")), "level` is missing", class = "noiseaware_error_argument")
  expect_error(read(c(margin = "pm", level = 90)), "a share such as 0.9, but is 90", class = "noiseaware_error_argument")
})

test_that("sites are rows with a column for each number, or rows with one number each", {
  skip_on_cran() # takes long; `make test` runs it
  smoking <- stat_counts(~ smoke, list(smoke = c("no", "yes")))
  one <- function(value, scale, n) suppressMessages(as_release(c("smoke=yes" = value), smoking, mech_laplace(scale = scale), n = n))
  hospitals <- data.frame(hospital = factor(c("south", "north")), patients = c(50, 30), smokers = c(21.8, 7.3), value = c("no", "number"), noise = c(3, 2))
  read <- function(table = hospitals, n = "patients", site = "hospital", number = c("smoke=yes" = "smokers"), noise = c(scale = "noise"), statistic = smoking) {
    as_release(table, statistic, mech_laplace, n = n, site = site, number = number, noise = noise)
  }
  expect_identical(unclass(read()), list(south = one(21.8, 3, 50), north = one(7.3, 2, 30)))
  expect_identical(read(n = 60)$south, one(21.8, 3, 60))
  expect_identical(read(n = NULL)$north$n, NULL)
  # one component needs no name; two columns
  total <- stat_sums(~ y, list(y = c(0, 1)))
  expect_identical(read(statistic = total, number = "smokers")$north$value, c(y = 7.3))
  both <- transform(hospitals, rest = c(30.1, 22.2))
  expect_identical(read(both, number = c("smoke=yes" = "smokers", "smoke=no" = "rest"))$north$value, c("smoke=no" = 22.2, "smoke=yes" = 7.3))
  # a budget for all sites, said once
  expect_identical(as_release(hospitals, smoking, mech_laplace(scale = 2), n = "patients", site = "hospital", number = c("smoke=yes" = "smokers"))$north, one(7.3, 2, 30))
  long <- data.frame(place = rep(c("a", "b"), each = 2), smoke = c("no", "yes", "yes", "no"), count = c(12, 9, 4, 20), size = rep(c(20, 25), each = 2), sd = 1)
  sites <- as_release(long, smoking, mech_gaussian, n = "size", site = "place", number = "count")
  expect_identical(lapply(sites, `[[`, "value"), list(a = c("smoke=no" = 12, "smoke=yes" = 9), b = c("smoke=no" = 20, "smoke=yes" = 4)))
  expect_identical(sites$b$n, 25)
  for (bad in list(quote(read(site = "place")), quote(read(site = 1)), quote(read(n = "smokes")), quote(read(number = c("smoke=yes" = "smokes"))),
                   quote(read(hospitals[c(1, 1), ])), quote(read(hospitals[0, ])), quote(read(transform(hospitals, hospital = NA))),
                   quote(as_release(transform(long, size = 1:4), smoking, mech_gaussian, n = "size", site = "place", number = "count")))) {
    expect_error(eval(bad), class = "noiseaware_error")
  }
  # one row a site, and no word on which component its number is
  told <- function(...) gsub("\\s+", " ", internal("one_line")(tryCatch(read(...), noiseaware_error = identity)))
  expect_match(told(number = "smokers"), "With a row for each site, `number` must name.*number = c\\(\"smoke=yes\" = \"smokers\"\\)")
  labelled <- transform(hospitals, smoke = c("yes", "no"))
  expect_identical(read(labelled, number = "smokers")$north$value, c("smoke=no" = 7.3))
  # an error in one site names it
  said <- function(code) paste(message_lines(tryCatch(code, noiseaware_error = identity)), collapse = " ")
  expect_match(said(read(transform(hospitals, smokers = c(21.8, NA)))), "finite.*the site \"north\"")
  expect_match(said(read(transform(hospitals, patients = c(50, 30.5)))), "`n`.*the site \"north\"")
  expect_match(said(as_release(transform(long, smoke = c("no", "yes", "si", "no")), smoking, mech_gaussian, n = "size", site = "place", number = "count")), "si.*the site \"b\"")
})

test_that("of sites with a column for each number, NA was hidden and what has no column was never computed", {
  ill <- stat_counts(~ ill, list(ill = c("no", "yes")))
  regions <- data.frame(region = c("a", "b"), people = c(310, 120), ill = c(21.4, NA), noise = c(3, 4))
  read <- function(mechanism, noise = c(sd = "noise"), number = c("ill=yes" = "ill"), table = regions) {
    suppressMessages(as_release(table, ill, mechanism, n = "people", site = "region", number = number, noise = noise))
  }
  alone <- function(mechanism) suppressMessages(as_release(c("ill=yes" = NA), stat_subset(ill, "ill=yes"), published(mechanism, threshold = 10), n = 120))
  expect_identical(read(published(mech_gaussian, threshold = 10))$b, alone(mech_gaussian(sd = c("ill=yes" = 4))))
  expect_identical(read(published(mech_gaussian, threshold = 10), number = c(yes = "ill")), read(published(mech_gaussian, threshold = 10)))
  # an sd is an sd, whatever the function's argument is, also of a function of one's own
  for (mechanism in list(mech_laplace, mech_gaussian, function(scale) mech_laplace(scale = scale))) {
    expect_equal(unname(noise_sd(read(published(mechanism, threshold = 10))$b)), 4)
  }
  expect_error(read(function(scale) mech_tabulated(density = dnorm, lower = -9, upper = 9, scale = scale)),
               "a scale, unless", class = "noiseaware_error_argument")
  expect_identical(read(published(mech_gaussian(sd = 4), threshold = 10), noise = NULL)$b$value, c("ill=yes" = NA_real_))
  expect_identical(read(published(mech_gaussian(sd = c(1, 4)), threshold = 10), noise = NULL)$b$scale, c("ill=yes" = 4))
  # all have columns: none is left out
  regions$well <- c(280, NA)
  both <- read(published(mech_gaussian(sd = 4), threshold = 10), noise = NULL, number = c("ill=yes" = "ill", "ill=no" = "well"), table = regions)
  expect_identical(both$b$value, c("ill=no" = NA_real_, "ill=yes" = NA_real_))
})

test_that("a column of means is told from totals", {
  schools <- data.frame(school = c("a", "b"), mean = c(60, 70), size = c(40, 50))
  score <- stat_sums(~ score, list(score = c(0, 100)))
  said <- capture_messages(sites <- as_release(schools, score, mech_laplace(epsilon = 1), n = "size", site = "school", number = "mean"))
  expect_length(said, 1L)
  expect_match(said, "`mean` is read as totals|mean is read as totals")
  expect_identical(unname(sites$b$value), 70)
  one <- data.frame(component = "score", avg_score = 60)
  expect_message(as_release(one, score, mech_laplace(epsilon = 1), 40, number = "avg_score"), class = "noiseaware_message_means")
  schools$total <- schools$mean * schools$size
  expect_no_message(as_release(schools, score, mech_laplace(epsilon = 1), n = "size", site = "school", number = "total"))
  expect_error(stat_means(score, n = c(40, 50)), "entered as totals", class = "noiseaware_error_argument")
})

test_that("a table of sites has means over known sizes, or totals and noisy sizes", {
  bp <- stat_sums(~ bp, list(bp = c(60, 200)))
  table <- data.frame(site = c("a", "b", "c"), mean = c(120.2, 118.1, 125.3), n = c(100, 150, 80), noise = 1:3, size = c(101.2, 146.6, 82.2))
  by_hand <- function(mechanism) {
    Map(function(mean, n, noise) as_release(c("mean(bp)" = mean), stat_means(bp, n), mechanism(noise), n = n), table$mean, table$n, table$noise)
  }
  read <- function(mechanism, ...) as_release(table, bp, mechanism, site = "site", number = c("mean(bp)" = "mean"), ...)
  expect_no_message(given <- read(mech_laplace(epsilon = 1), n = "n"))
  expect_identical(unname(unclass(given)), by_hand(function(noise) mech_laplace(epsilon = 1)))
  expect_equal(unname(vapply(given, noise_sd, 0)), sqrt(2) * 140 / table$n)
  scaled <- read(mech_laplace, n = "n", noise = c(scale = "noise"))
  expect_identical(lapply(unname(unclass(scaled)), noise_sd), lapply(by_hand(function(noise) mech_laplace(scale = noise)), noise_sd))
  # one of two totals
  both <- stat_sums(~ bp + age, list(bp = c(60, 200), age = c(0, 100)), rescale = FALSE)
  one <- as_release(table[1, ], both, mech_laplace(scale = 2), site = "site", number = c("mean(age)" = "mean"), n = "n")
  expect_identical(names(one$a$value), "mean(age)")
  # the old reading says what the new one is
  expect_message(as_release(table, bp, mech_laplace(scale = 1), site = "site", number = c(bp = "mean"), n = "n"), 'number = c\\("mean\\(bp\\)"',
                 class = "noiseaware_message_means")
  expect_error(read(mech_laplace(scale = 1), n = NULL), "table\\$total <- table\\$mean \\* table\\$size", class = "noiseaware_error_argument")
  # which works, as it is written there
  table$total <- table$mean * table$size
  sized <- as_release(table, statistic = list(total = bp, size = stat_size()), list(total = mech_laplace(scale = 140), size = mech_laplace(scale = 2)), n = NULL,
                      neighbours = "add_remove", site = "site", number = c("total: bp" = "total", "size: n" = "size"))
  expect_identical(sized$b$value, c("total: bp" = table$total[2], "size: n" = 146.6))
  expect_error(as_release(table, list(total = bp, size = stat_size()), mech_laplace(scale = 1), n = NULL, site = "site", number = "total"), "total: x",
               class = "noiseaware_error_argument")
  expect_error(stat_means(bp, table$n), 'n = "column"', class = "noiseaware_error_argument")
})
