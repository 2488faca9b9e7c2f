# What design() takes parameters to be that are not given, widths without noise, and the budget that is searched for.

test_that("parameters that are not given are at the middle of their priors, and the response in the middle of its bounds", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(bwt ~ lwt + smoke, bounds = list(bwt = c(500, 5500), lwt = c(80, 260), smoke = c("no", "yes")))
  bound <- internal("bind_settled")(model_lm(), st, "auto")
  centre <- internal("design_centre")(bound, c(lwt = 5))
  expect_setequal(names(centre), bound$parameters)
  expect_identical(centre[["lwt"]], 5)
  expect_identical(centre[["smokeyes"]], 0)
  expect_lt(abs(centre[["(Intercept)"]] + 5 * centre[["mean[lwt]"]] - 3000), 200)
  expect_lt(abs(centre[["mean[lwt]"]] - 170), 10)
  expect_equal(sum(centre[startsWith(names(centre), "prob[")]), 1, tolerance = 1e-9)
  expect_identical(internal("design_centre")(bound, NULL), NULL)
  # a slope's width does not depend on what the prior makes possible elsewhere
  plan <- suppressWarnings(design(model_lm(), stat_crossprod(bwt ~ lwt, bounds = list(bwt = c(500, 5500), lwt = c(80, 260))), epsilon = 50, n = 189,
                                  parameters = c(lwt = 5), replicates = 4, chains = 1, iter = 400, seed = 1))
  expect_lt(plan$width[plan$variable == "lwt"], 15)
})

test_that("the budget for a ratio is the one of a normal total: its noise has (ratio^2 - 1) times the variance of the records", {
  skip_on_cran()
  st <- stat_sums(~ x, bounds = list(x = c(0, 20)))
  plan <- suppressWarnings(design(model_poisson(prior = prior_gamma(0.5, 0.1)), st, function(rho) mech_gaussian(rho = rho), n = c(100, 400), ratio = 2,
                                  parameters = c(rate = 5), replicates = 40, method = "collapse", chains = 1, iter = 300, seed = 1))
  needed <- attr(plan, "needed")
  expect_identical(needed$n, c(100, 400))
  # noise of sd 20 / sqrt(2 rho) on a total whose variance is 5 n
  exact <- 400 / (2 * 3 * 5 * c(100, 400))
  expect_lt(max(abs(log(needed$budget / exact))), 0.15)
  expect_lt(max(abs(needed$ratio / 2 - 1)), 0.1)
  expect_equal(plan$without[1], 3.92 * sqrt(5 / 100), tolerance = 0.05)
  expect_equal(plan$ratio, plan$width / plan$without)
  expect_match(capture.output(print(plan)), "needed  rho = .* for 100 records", all = FALSE)
})

test_that("a search shows the parameters of interest only, by budget", {
  skip_on_cran()
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(0, 10)), outside = "none")
  plan <- suppressWarnings(design(model_normal(), st, n = 100, ratio = 2, parameters = c(mean = 4), replicates = 4, chains = 1, iter = 200, seed = 1))
  expect_false(is.unsorted(plan$epsilon))
  shown <- capture.output(print(plan))
  expect_length(grep("100 +mean |mean  ", grep("^ +[0-9.]+ ", shown, value = TRUE)), length(unique(plan$epsilon)))
  expect_false(any(grepl(" sd ", grep("^ +[0-9]", shown, value = TRUE), fixed = TRUE)))
  expect_true("sd" %in% plan$variable)
})

test_that("searches go where the ratio is, from either side", {
  step <- internal("next_budget")
  at <- 1
  # the ratio that theory has, of which the third guess is right
  of <- function(e) sqrt(1 + 3.7 / e^2)
  for (k in 1:3) at <- c(at, step(at, of(at), 1.5))
  expect_equal(tail(at, 1), sqrt(3.7 / 1.25), tolerance = 0.01)
  curved <- function(e) sqrt(1 + 40 / (e + e^2))
  at <- 1
  for (k in 1:7) at <- c(at, step(at, curved(at), 1.2))
  expect_equal(curved(tail(at, 1)), 1.2, tolerance = 0.02)
})

test_that("either budgets or a ratio are given", {
  st <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  expect_error(design(model_bernoulli(), st, n = 10), "epsilon", class = "noiseaware_error_argument")
  expect_error(design(model_bernoulli(), st, n = 10, epsilon = 1, ratio = 2), class = "noiseaware_error_argument")
  expect_error(design(model_bernoulli(), st, n = 10, ratio = 1), "above 1", class = "noiseaware_error_argument")
  expect_error(design(model_bernoulli(), st, n = 10, epsilon = 1, parameters = c(p = 0.3)), class = "noiseaware_error_argument")
  none <- function(value, ...) data.frame(variable = "a", ratio = NA_real_)
  expect_error(internal("search_budget")(2, none, "a", "epsilon", 2), "budget 1 gave an interval", class = "noiseaware_error_method")
  # before any fit
  old <- list(set_constant("widths_of_records", function(...) NA_real_), set_constant("calibrate", function(...) stop("a fit")))
  withr::defer({
    set_constant("widths_of_records", old[[1L]])
    set_constant("calibrate", old[[2L]])
  })
  expect_error(design(model_bernoulli(), st, n = 10, ratio = 2), "no posterior from records", class = "noiseaware_error_method")
})

test_that("the budget that is found keeps to the ratio, where one does", {
  of <- function(e, count = 50) data.frame(variable = "a", ratio = sqrt(1 + 3.7 / e^2), replicates = count)
  old <- set_constant("shown_step", -1)
  expect_message(internal("search_budget")(sqrt(4.7), of, "a", "epsilon", 50), "epsilon = 1, 13 replicates: intervals up to 2.17 times", class = "noiseaware_message_search")
  set_constant("shown_step", old)
  expect_no_message(internal("search_budget")(sqrt(4.7), of, "a", "epsilon", 50))
  for (ratio in c(1.02, 1.5, 2, 10)) {
    needed <- attr(internal("search_budget")(ratio, of, "a", "epsilon", 50), "needed")
    expect_true(needed$ratio <= ratio && needed$ratio > 1 + 0.97 * (ratio - 1) - 0.02)
  }
})

test_that("the way to the budget takes a quarter of the replicates", {
  counts <- numeric()
  of <- function(e, count = 40) {
    counts <<- c(counts, count)
    data.frame(epsilon = e, variable = c("a", "mean[x]"), ratio = c(sqrt(1 + 300 / e^2), 50), replicates = count)
  }
  found <- internal("search_budget")(2, of, "a", "epsilon", 40)
  expect_gt(sum(counts == 10), 1)
  expect_identical(unique(counts), c(10, 40))
  rows <- do.call(rbind, found)
  expect_false(is.unsorted(unique(rows$epsilon), strictly = TRUE))
  expect_setequal(rows$replicates, c(10, 40))
  expect_identical(rows$replicates[rows$epsilon == attr(found, "needed")$budget], c(40, 40))
  expect_lt(sum(counts == 40), 3)
  counts <- numeric()
  internal("search_budget")(2, of, "a", "epsilon", 20)
  expect_identical(unique(counts), 40) # all: five would not show the way
  bound <- function(model, st) internal("bind_settled")(model, st, "auto")
  b <- list(y = c(0, 1), x = c(0, 1))
  expect_identical(internal("main_parameters")(bound(model_lm(), stat_crossprod(y ~ x, b)), NULL), c("(Intercept)", "x"))
  expect_identical(internal("main_parameters")(bound(model_normal(), stat_sums(~ y, b["y"])), NULL), c("mean", "sd"))
})

test_that("a slope beside a factor has a budget, and a covariate that looks binary is said once", {
  skip_on_cran() # takes long; `make test` runs it
  find <- function(smoke, parameters) {
    st <- stat_crossprod(bwt ~ age + smoke, list(bwt = c(500, 5500), age = c(10, 50), smoke = smoke))
    design(model_lm(bwt ~ age + smoke), st, mech_laplace, n = 189, ratio = 2, replicates = 2, seed = 1, chains = 1, iter = 300, parameters = parameters) |>
      suppressWarnings()
  }
  needed <- attr(find(c("no", "yes"), c(smokeyes = -300)), "needed")
  expect_identical(needed$variable, "smokeyes")
  expect_true(needed$budget > 0.5 && needed$budget < 20)
  said <- 0
  withCallingHandlers(find(c(0, 1), c(smoke = -300)), noiseaware_message_binary = function(m) {
    said <<- said + 1
    rlang::cnd_muffle(m)
  })
  expect_identical(said, 1)
})

test_that("a ratio that no budget gives is not called found", {
  never <- function(value, ...) data.frame(variable = c("mean", "sd"), ratio = c(20, 30 + log(value)), n = 5)
  tried <- internal("search_budget")(1.5, never, c("mean", "sd"), "epsilon", 50)
  needed <- attr(tried, "needed")
  expect_identical(needed$budget, NA_real_)
  expect_identical(needed$variable, "sd")
  needed <- cbind(statistic = "a", n = 5, needed)
  expect_warning(internal("warn_not_found")(needed, 1.5, "epsilon"), "No epsilon was found with intervals 1.5 times as wide", class = "noiseaware_warning_prior")
  expect_match(internal("needed_lines")(needed, "epsilon"), "no epsilon from 1e-04 to|no epsilon from .* for 5 records")
  expect_no_warning(internal("warn_not_found")(transform(needed, budget = 2), 1.5, "epsilon"))
})

test_that("a search is drawn as the ratio, with what was asked and found", {
  rows <- data.frame(statistic = "statistic", epsilon = rep(c(1, 4), each = 2), n = 100, variable = c("a", "mean[x]"), sd = c(3, 4, 2, 3), sd_mcse = 0.1, rmse = 1,
                     width = 1, coverage = 0.95, coverage_lower = 0.9, coverage_upper = 1, replicates = 20, of_prior = 0.1, without = 1, ratio = c(3, 9, 2, 8))
  search <- structure(rows, class = c("noiseaware_design", "data.frame"), budget = "epsilon", level = 0.95, of_interest = "a", asked = 2,
                      needed = data.frame(n = 100, statistic = "statistic", budget = 4, ratio = 2, variable = "a", least = 1, most = 4))
  drawn <- plot(search)
  expect_identical(as.character(unique(drawn$data$variable)), "a")
  expect_identical(drawn$data$y, c(3, 2))
  expect_equal(drawn$data$error, c(2 * 0.1 / 3 * 3, 2 * 0.1 / 2 * 2))
  lines <- lapply(drawn$layers, function(layer) layer$data)
  expect_true(2 %in% unlist(lapply(lines, `[[`, "yintercept")) && 4 %in% unlist(lapply(lines, `[[`, "xintercept")))
  said <- unlist(lapply(drawn$layers, function(layer) layer$aes_params$label))
  expect_identical(said, c("asked: 2", "4"))
  breaks <- internal("log_breaks")
  expect_identical(breaks(c(0.05, 200)), c(0.1, 1, 10, 100))
  expect_identical(breaks(c(0.8, 8)), c(1, 2, 5))
  expect_identical(breaks(c(3.1, 3.9)), c(3.2, 3.4, 3.6, 3.8))
  expect_identical(as.character(unique(plot(search, variables = "mean[x]")$data$variable)), "mean[x]")
  plain <- plot(structure(rows, class = class(search), budget = "epsilon", level = 0.95))
  expect_identical(plain$data$y, plain$data$sd)
  printed <- function(given) capture.output(print(structure(search, values = list(c(a = 1.5, b = 0)), given = given)))
  expect_match(printed(c("a", "b")), "values      a = 1.5, b = 0$", all = FALSE)
  expect_match(printed(NULL), "values      a = 1.5, b = 0: the middle of their priors", all = FALSE)
  some <- printed("a")
  expect_match(some, "^  values      a = 1.5$", all = FALSE)
  expect_match(some, "^              b = 0: the middle of their priors, as `parameters` does not have them", all = FALSE)
  expect_match(capture.output(print(structure(search, values = list(NULL)))), "values      drawn from the prior", all = FALSE)
})

test_that("values can be a fit's, and a ratio concerns the variables that are named", {
  skip_on_cran()
  st <- stat_crossprod(bwt ~ age + lwt, list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)), outside = "none")
  pilot <- nonprivate_posterior(MASS::birthwt, model_lm(), st, chains = 1, iter = 400, seed = 1)
  bound <- pilot$bound
  expect_equal(internal("design_values")(pilot, list(bound)), colMeans(internal("parameter_matrix")(pilot))[bound$parameters])
  small <- function(...) suppressMessages(suppressWarnings(design(model_lm(), st, n = 189, replicates = 4, chains = 1, iter = 200, seed = 1, ...)))
  plan <- small(parameters = pilot, variables = "lwt", ratio = 3)
  expect_equal(attr(plan, "values")[[1L]][bound$parameters], internal("design_values")(pilot, list(bound)))
  expect_identical(attr(plan, "of_interest"), "lwt")
  expect_identical(attr(plan, "needed")$variable, "lwt")
  # all values are given: the coefficients are of interest; some: these
  main <- internal("main_parameters")
  expect_identical(main(bound, bound$parameters), c("(Intercept)", "age", "lwt"))
  expect_identical(main(bound, c("age", "sigma")), c("age", "sigma"))
  expect_identical(main(bound, NULL), c("(Intercept)", "age", "lwt"))
  expect_error(small(epsilon = 1, variables = "lwt"), "`variables` must be NULL without a ratio", class = "noiseaware_error_argument")
  expect_error(small(ratio = 2, variables = "height"), "names of parameters of the model", class = "noiseaware_error_argument")
  other <- nonprivate_posterior(MASS::birthwt, model_lm(bwt ~ age), st, chains = 1, iter = 400, seed = 1)
  expect_error(small(ratio = 2, parameters = other), "a fit without lwt", class = "noiseaware_error_argument")
})

test_that("a budget that depends on the spread of covariates, which nobody gave, says how to try others", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-3, 3)))
  plan <- function(...) suppressWarnings(design(model_lm(), st, n = 100, ratio = 3, ..., replicates = 2, chains = 1, iter = 100, seed = 1))
  assumed <- plan()
  shown <- capture.output(print(assumed))
  said <- grep("assumed the spread", shown, value = TRUE)
  expect_match(said, 'variables = c("(Intercept)", "x"),', fixed = TRUE)
  code <- parse(text = sub("parameters = ", "", shown[grep("assumed the spread", shown) + 1:2]))
  of <- unlist(attr(assumed, "values")[[1]])["cov[x,x]"]
  expect_equal(vapply(code, eval, 0), unname(of) * c(1 / 4, 4), tolerance = 0.01, ignore_attr = TRUE)
  # it runs, and is about the same parameters with that spread
  again <- plan(parameters = eval(code[[1]]), variables = c("(Intercept)", "x"))
  expect_identical(attr(again, "of_interest"), attr(assumed, "of_interest"))
  expect_equal(unlist(attr(again, "values")[[1]])["cov[x,x]"], of / 4, tolerance = 0.01)
  expect_false(any(grepl("assumed the spread", capture.output(print(again)))))
  # nothing of what was given, or has no covariates
  lines <- internal("spread_lines")
  expect_null(lines(c("cov[x,x]" = 2), "cov[x,x]", "x"))
  expect_null(lines(c("prob[yes]" = 0.3), NULL, "prob[yes]"))
  expect_length(lines(c("cov[a,a]" = 2, "cov[a,b]" = 0, "cov[b,b]" = 1), NULL, "a"), 3)
})
