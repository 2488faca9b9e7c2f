# Variables of two values: as factors, and a word where they are taken for numbers.

box <- list(y = c(-3, 7), x = c(-1, 4), s = c(0, 1), k = c(1L, 2L))
data <- data.frame(y = c(1, -2, 5), x = c(0, 1, 3), s = c(0, 1, 1), k = c(1, 2, 1))

said <- function(model, statistic) {
  z <- as_release(numeric(length(statistic$components)), statistic, mech_laplace(scale = 100), 50)
  heard <- character()
  withCallingHandlers(suppressWarnings(sample_posterior(z, model, chains = 1, iter = 20, seed = 1)),
                      noiseaware_message_binary = function(m) {
                        heard <<- c(heard, conditionMessage(m))
                        invokeRestart("muffleMessage")
                      })
  heard
}

test_that("covariates that look binary are told to be modelled as normal, and how to declare a factor", {
  skip_on_cran()
  one <- said(model_lm(), stat_crossprod(y ~ s, box[c("y", "s")]))
  expect_length(one, 1)
  expect_match(one, "`s` is modelled as normal", fixed = TRUE)
  expect_match(gsub("\\s+", " ", one), 'bounds = list(s = c("0", "1"))', fixed = TRUE)
  both <- gsub("\\s+", " ", said(model_lm(), stat_crossprod(y ~ x + s + k, box)))
  expect_match(both, '`s` and `k` are modelled as normal', fixed = TRUE)
  expect_match(both, 'list(s = c("0", "1"), k = c("1", "2"))', fixed = TRUE)
  expect_length(said(model_logistic(), stat_crossprod(w ~ s, list(w = c(0, 1), s = c(0, 1)))), 1)
})

test_that("the owner is told before the budget is spent, once", {
  account <- budget(epsilon = 1)
  st <- stat_crossprod(y ~ s + x, list(y = c(-3, 7), s = c(0, 1), x = c(-1, 4)))
  session <- internal("session")
  before <- mget(c("told", "quiet"), session)
  on.exit(list2env(before, session))
  session$quiet <- FALSE
  session$told <- character()
  # refused for want of budget: said all the same
  heard <- function(code) {
    said <- character()
    withCallingHandlers(code, noiseaware_message_binary = function(m) {
      said <<- c(said, gsub("\\s+", " ", conditionMessage(m)))
      invokeRestart("muffleMessage")
    })
    said
  }
  # before it is refused for want of budget
  refused <- heard(expect_error(release(data, st, mech_laplace(epsilon = 2), account), class = "noiseaware_error_budget"))
  expect_match(refused, '`s` is released as a number.*bounds = list\\(s = c\\("0", "1"\\)\\)')
  expect_length(heard(release(data, st, mech_laplace(epsilon = 1))), 0)
  session$told <- character()
  expect_length(heard(release(data, st, mech_laplace(epsilon = 1))), 1)
  expect_length(heard(release(data, stat_crossprod(s ~ x, box[c("s", "x")]), mech_laplace(epsilon = 1))), 0)
  expect_length(heard(release(data, stat_sums(~ s, box["s"]), mech_laplace(epsilon = 1))), 0)
  expect_length(heard(release(transform(data, s = as.character(s)), stat_crossprod(y ~ s, list(y = c(0, 1), s = c("0", "1"))), mech_laplace(epsilon = 1))), 0)
})

test_that("nothing is said of factors, of other numbers, of a response, or where no factor could be", {
  skip_on_cran()
  quiet <- list(
    list(model_lm(), stat_crossprod(y ~ x, box[c("y", "x")])),
    list(model_lm(), stat_crossprod(y ~ s, list(y = c(0, 1), s = c("0", "1")))),
    list(model_lm(), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1.5)))),
    list(model_lm(), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0.5, 1.5)))),
    list(model_logistic(), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 3)))),
    list(model_mvnormal(), stat_sums(~ s + x + I(s^2) + I(x^2) + I(s * x), box[c("s", "x")], rescale = FALSE)),
    list(model_normal(), stat_sums(~ s + I(s^2), box["s"], rescale = FALSE)),
    list(model_poisson(), stat_sums(~ s, box["s"]))
  )
  for (case in quiet) expect_identical(said(case[[1]], case[[2]]), character())
})

test_that("c(FALSE, TRUE) declares a factor", {
  logical <- stat_crossprod(y ~ s, list(y = c(-3, 7), s = c(FALSE, TRUE)))
  expect_identical(logical, stat_crossprod(y ~ s, list(y = c(-3, 7), s = c("FALSE", "TRUE"))))
  numbers <- stat_crossprod(y ~ s, box[c("y", "s")])
  total <- function(st, data) internal("statistic_total")(st, data)
  expect_equal(unname(total(logical, transform(data, s = s == 1))), unname(total(numbers, data))[1:4])
  expect_error(stat_crossprod(y ~ s, list(y = c(-3, 7), s = c(TRUE, NA))), class = "noiseaware_error_levels")
  expect_error(stat_crossprod(y ~ s, list(y = c(-3, 7), s = TRUE)), class = "noiseaware_error_levels")
  expect_error(stat_sums(~ s, list(s = c(FALSE, TRUE))), class = "noiseaware_error_bounds")
})

test_that("a response of two levels is that of a logistic regression, and its square is no component", {
  skip_on_cran()
  numbers <- stat_crossprod(w ~ x, list(w = c(0, 1), x = c(-1, 4)))
  records <- data.frame(w = c(0, 1, 1, 0, 1), x = c(0, 1, 3, -0.5, 2))
  for (levels in list(c(FALSE, TRUE), c("0", "1"), c("yes", "no"), factor(c("no", "yes")))) {
    factors <- stat_crossprod(w ~ x, list(w = levels, x = c(-1, 4)))
    text <- if (is.factor(levels)) base::levels(levels) else as.character(levels)
    expect_identical(factors$components, paste0(c("w", "", "w", ""), c(text[2], "x", paste0(text[2], ":x"), "x^2")))
    coded <- transform(records, w = text[w + 1])
    total <- internal("statistic_total")
    expect_equal(unname(total(factors, coded)), unname(total(numbers, records))[c(1, 2, 4, 5)])
    expect_identical(unname(total(factors, transform(records, w = factor(text[w + 1])))), unname(total(factors, coded)))
    # the same model of the same columns
    bind <- function(st) internal("bind_model")(model_logistic(), st)
    expect_identical(bind(factors)$spec, bind(numbers)$spec)
    expect_identical(bind(factors)$parameters, bind(numbers)$parameters)
    path <- tempfile()
    rel <- simulate_release(coded, factors, mech_laplace(epsilon = 1))
    write_release(rel, path)
    expect_identical(read_release(path)$statistic, factors)
    unlink(path)
  }
  expect_identical(stat_crossprod(w ~ x, list(w = c("a", "b", "c"), x = c(-1, 4)))$components[1:2], c("wb", "wc"))
  expect_error(sample_posterior(rel, model_lm()), "is a factor", class = "noiseaware_error_variables")
})

test_that("the posterior is that of the response as a number", {
  skip_on_cran()
  numbers <- stat_crossprod(w ~ x, list(w = c(0, 1), x = c(-1, 4)))
  factors <- stat_crossprod(w ~ x, list(w = c("no", "yes"), x = c(-1, 4)))
  z <- c(4, -3, 2.5, 9)
  # w^2, rescaled, is 1 of every record
  as_number <- as_release(append(z, 40, 2), numbers, mech_laplace(scale = 3), 40)
  as_factor <- as_release(z, factors, mech_laplace(scale = 3), 40)
  draw <- function(rel) sample_posterior(rel, model_logistic(), chains = 4, iter = 2100, seed = 1)
  summary <- lapply(list(draw(as_number), draw(as_factor)), function(fit) posterior::summarise_draws(fit$draws, "mean", "mcse_mean"))
  apart <- abs(summary[[1]]$mean - summary[[2]]$mean) / sqrt(summary[[1]]$mcse_mean^2 + summary[[2]]$mcse_mean^2)
  expect_lt(max(apart), 5)
})

test_that("stat_objective() takes a response of two levels", {
  numbers <- stat_objective(w ~ x, list(w = c(0, 1), x = c(-1, 4)))
  factors <- stat_objective(w ~ x, list(w = c(FALSE, TRUE), x = c(-1, 4)))
  expect_identical(factors$components, numbers$components)
  expect_identical(sensitivity(factors), sensitivity(numbers))
  draw <- function(st) sample_posterior(as_release(c(0.2, 0.5), st, mech_objective(scale = 3, ridge = 1), 30), model_logistic(), chains = 1, iter = 60, seed = 1)
  expect_identical(suppressWarnings(draw(factors))$draws, suppressWarnings(draw(numbers))$draws)
  expect_error(stat_objective(w ~ x, list(w = c("a", "b", "c"), x = c(-1, 4))), class = "noiseaware_error_bounds")
})
