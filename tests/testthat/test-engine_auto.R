# Which method "auto" takes, and that it says so.

chosen <- function(release, model, control = list(), limits = list(), ...) {
  bound <- internal("bind_model")(model, release$statistic)
  run <- utils::modifyList(list(iter = 2000, warmup = 1000, thin = 1, chains = 4, seed = NULL), list(...))
  internal("auto_method")(release, bound, run, control, limits = utils::modifyList(internal("auto_limits"), limits))
}
auto <- function(...) chosen(...)$method

test_that("auto takes the cheapest exact method, and says when it is not exact", {
  skip_on_cran()
  levels <- list(y = c("a", "b"), x = c("u", "v"), w = c("u", "v"))
  counts <- function(formula, n) as_release(rep(1, 4), stat_counts(formula, levels[all.vars(formula)]), mech_laplace(epsilon = 1), n)
  expect_identical(auto(counts(~ y:x, 10), model_naive_bayes("y")), "collapse")
  expect_identical(auto(counts(~ y:x, 1e9), model_naive_bayes("y")), "collapse")
  expect_identical(auto(counts(~ y:x, 10), model_naive_bayes("y"), control = list(passes = 0)), "augment")
  crossed <- as_release(rep(1, 6), stat_counts(~ x:w + y, levels), mech_laplace(epsilon = 1), 10)
  expect_identical(auto(crossed, model_naive_bayes("y")), "augment")
  normal <- function(n, bounds = c(0, 9)) as_release(1:5, stat_crossprod(y ~ x, list(y = bounds, x = bounds)), mech_gaussian(mu = 1), n)
  expect_identical(auto(normal(1e3), model_lm()), "augment")
  wide <- chosen(normal(1e8), model_lm())
  expect_identical(wide$method, "collapse")
  expect_match(wide$why, "exact if no record is outside the bounds, and likely none is; expected to take (about|under) .* for 1,000 effective draws", all = FALSE)
  expect_match(wide$why, "\"augment\", exact in any case, would take about .* (minutes|hours)", all = FALSE)
  one <- function(upper) as_release(c(2e8, 8e8), stat_sums(~ x + I(x^2), list(x = c(-upper, upper)), rescale = FALSE), mech_gaussian(mu = 1), 1e8)
  for (case in list(list(30, "collapse"), list(5, "clt"))) {
    set.seed(5)
    if (case[[2]] == "clt") expect_warning(choice <- chosen(one(case[[1]]), model_normal()), case[[2]], class = "noiseaware_warning_method") else
      expect_silent(choice <- chosen(one(case[[1]]), model_normal()))
    expect_identical(choice$method, case[[2]])
    after <- runif(1)
    set.seed(5)
    expect_identical(runif(1), after)
  }
  expect_match(choice$why[1], "approximate, expected to take under 0.1 seconds")
  expect_match(choice$why[2], "\"augment\", which is exact, would take about")
  clamped <- function(mechanism) as_release(c(3, 9), stat_sums(~ x + I(x^2), list(x = c(0, 9)), rescale = FALSE), mechanism, 1e8)
  expect_warning(method <- auto(clamped(mech_laplace(epsilon = 1)), model_poisson()), "approximate", class = "noiseaware_warning_method")
  expect_identical(method, "clt")
  own <- mech_custom(log_density = function(noise) -rowSums(abs(noise)))
  expect_message(method <- auto(clamped(own), model_poisson()), "No faster method", class = "noiseaware_message_method")
  expect_identical(method, "augment")
})

test_that("the print says what was chosen and why", {
  skip_on_cran() # takes long; `make test` runs it
  lines <- function(fit) grep("^  chosen|^      ", utils::capture.output(print(fit)), value = TRUE)
  rel <- as_release(c("g=a" = 20), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(epsilon = 1), 40)
  fit <- sample_posterior(rel, model_categorical(), chains = 1, iter = 200, seed = 1)
  expect_identical(fit$method, "collapse")
  expect_output(print(fit), "collapse: .*\\(exact\\)")
  expect_match(lines(fit)[1], "^  chosen     exact, expected to take under 0.1 seconds for 1,000 effective draws; this call: about 0.1 seconds$")
  # the same choice, extended; and none where the method was given
  expect_identical(lines(extend(fit, 100)), lines(fit))
  expect_identical(grep("chosen", utils::capture.output(print(update(fit, method = "collapse"))), value = TRUE), character())
  # R functions take a time that is measured
  unit <- model_custom(function() c(mean = stats::rnorm(1)), function(theta, n) cbind(x = stats::rnorm(n, theta["mean"])),
                       function(records, theta) c(mean = stats::rnorm(1, sum(records) / (1 + nrow(records)), 1 / sqrt(1 + nrow(records)))), "x")
  own <- suppressWarnings(sample_posterior(as_release(c(x = 3), stat_sums(~ x, list(x = c(-9, 9))), mech_laplace(epsilon = 1), 10), unit,
                                           chains = 1, iter = 100, seed = 1))
  expect_match(lines(own)[1], "^  chosen     exact, expected to take .* for 1,000 effective draws$")
})

# ---- what is predicted -----------------------------------------------------------

predicted <- function(method, release, model, ...) {
  bound <- internal("bind_model")(model, release$statistic)
  internal("predict_cost")(internal("cost_features")(method, release, bound, ...))
}

regression <- function(n, p, epsilon = 1, upper = 4) {
  bounds <- stats::setNames(rep(list(c(-upper, upper)), p + 1), c("y", paste0("x", seq_len(p))))
  statistic <- stat_crossprod(stats::reformulate(names(bounds)[-1], "y"), bounds)
  # variances of 1, and nothing is correlated
  square <- statistic$pairs$first == statistic$pairs$second
  as_release(c(rep(0, p + 1), ifelse(square, n / upper^2, 0)), statistic, mech_laplace(epsilon = epsilon), n)
}

test_that("a cost is that of the formula in R/engine_cost.R", {
  constants <- data.frame(engine = c("one", "two"), fixed = log(c(2e-5, 1)), fixed_size = c(3, 0), fixed_noise = c(0, 0), record = log(c(1e-8, 1)),
                          record_size = c(2, 0), draws = log(c(0.5, 1)), draws_size = c(-0.25, 0), quiet = c(-0.1, 0), loud = c(-0.2, 0), levels = c(-0.3, 0))
  cost <- function(...) internal("predict_cost")(utils::modifyList(list(engine = "one", size = 4, n = 1000, noise = 1, levels = 0), list(...)), constants)
  iteration <- 2e-5 * 4^3 + 1000 * 1e-8 * 4^2
  expect_equal(cost(), list(iteration = iteration, thousand = 1000 * iteration / (0.5 * 4^-0.25)))
  expect_equal(cost(n = 0)$iteration, 2e-5 * 4^3)
  constants$fixed_noise <- c(0.3, 0)
  expect_equal(cost(noise = exp(-2), n = 0)$iteration, exp(-0.6) * 2e-5 * 4^3)
  expect_equal(cost(noise = 1e9)$iteration, cost(noise = 100)$iteration)
  constants$fixed_noise <- c(0, 0)
  expect_equal(cost(noise = exp(-2))$thousand / cost()$thousand, exp(0.2))
  expect_equal(cost(noise = exp(2))$thousand / cost()$thousand, exp(0.4))
  expect_equal(cost(levels = 3)$thousand / cost()$thousand, 4^0.3)
  # nothing was measured beyond noise of 100 or a hundredth of the sampling variation
  expect_equal(cost(noise = 1e9)$thousand, cost(noise = 100)$thousand)
  expect_equal(cost(noise = 1e-9)$thousand, cost(noise = 0.01)$thousand)
  # no more than a draw an iteration
  expect_equal(internal("predict_cost")(list(engine = "two", size = 2, n = 3, noise = 1, levels = 0), transform(constants, draws = 5))$thousand, 4000)
  expect_identical(cost(engine = "three"), list(iteration = Inf, thousand = Inf))
})

test_that("each engine that runs is known by its name, and has constants", {
  engine <- function(method, release, model, ...) {
    bound <- internal("bind_model")(internal("complete_model")(model, release), release$statistic)
    internal("cost_features")(method, release, bound, ...)$engine
  }
  expect_identical(engine("augment", regression(50, 2), model_lm()), "shape")
  expect_identical(engine("augment", regression(50, 1), model_lm()), "sweeps")
  expect_identical(engine("augment", regression(50, 2), model_lm(), control = list(passes = 2)), "sweeps")
  expect_identical(engine("collapse", regression(50, 2), model_lm()), "normal")
  expect_identical(engine("clt", regression(50, 2), model_lm()), "clamped totals")
  two <- list(y = c("a", "b"), x = c("u", "v"))
  table <- function(n) as_release(rep(n / 4, 4), stat_counts(~ y:x, two), mech_laplace(epsilon = 1), n)
  expect_identical(engine("collapse", table(40), model_naive_bayes("y")), "recursion")
  expect_identical(engine("collapse", table(4e5), model_naive_bayes("y")), "counts")
  expect_identical(engine("clt", table(40), model_naive_bayes("y")), "marginal")
  unknown <- as_release(rep(10, 4), stat_counts(~ y:x, two), mech_laplace(epsilon = 1), NULL)
  expect_identical(engine("collapse", unknown, model_naive_bayes("y"), prior_n = prior_n("poisson", mean = 40)), "counts")
  sum <- as_release(c(x = 20), stat_sums(~ x, list(x = c(0, 9))), mech_laplace(epsilon = 1), 10)
  expect_identical(engine("collapse", sum, model_poisson()), "total")
  logistic <- as_release(c(5, rep(1, 4)), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(-4, 4))), mech_laplace(epsilon = 1), 10)
  logistic_engine <- function(method) engine(method, logistic, model_logistic())
  expect_identical(logistic_engine("augment"), "responses")
  expect_identical(logistic_engine("clt"), "nuts of responses")
  factors <- function(levels) as_release(rep(0, internal("value_size")(statistic <- stat_crossprod(y ~ x + g, list(y = c(-4, 4), x = c(-4, 4), g = levels)), 10)),
                                         statistic, mech_laplace(epsilon = 1), 10)
  expect_identical(engine("collapse", factors(c("a", "b")), model_lm()), "cross-table")
  expect_identical(engine("clt", factors(c("a", "b")), model_lm()), "clamped cross-table")
  expect_identical(engine("clt", factors(c("a", "b")), model_lm(), control = list(sampler = "noncentred")), "noncentred")
  expect_identical(engine("clt", factors(letters[1:20]), model_lm()), "nuts")
  has <- internal("cost_constants")
  expect_true(all(c("shape", "sweeps", "responses", "normal", "cross-table", "recursion", "counts", "table", "total", "clamped totals",
                    "clamped cross-table", "marginal", "noncentred", "nuts", "nuts of responses") %in% has$engine))
  expect_true(all(is.finite(as.matrix(has[c("fixed", "fixed_size", "fixed_noise", "record_size", "draws", "draws_size", "quiet", "loud", "levels")]))))
})

test_that("noise is compared with the sampling variation of the totals", {
  ratio <- internal("noise_ratio")
  one <- function(n, sd, upper = 5) as_release(c(x = 0), stat_sums(~ x, list(x = c(-upper, upper))), mech_gaussian(sd = sd), n)
  expect_equal(ratio(one(100, 3)), 4 * 3 / (10 * 10))
  expect_equal(ratio(one(400, 3)), ratio(one(100, 3)) / 2)
  expect_equal(ratio(one(100, 3, 10)), ratio(one(100, 3)) / 2)
  # exact numbers, single records, and what says nothing of its range
  local <- as_release(c(0.1, 0.2), stat_records(~ x, list(x = c(0, 1))), mech_laplace(epsilon = 1), 2)
  expect_equal(ratio(local), 1)
})

test_that("the choice follows dimension, number of records, noise and bounds", {
  skip_on_cran() # takes long; `make test` runs it
  method <- function(...) suppressWarnings(suppressMessages(auto(regression(...), model_lm())))
  thousand <- function(method, ...) predicted(method, regression(...), model_lm())$thousand
  # the fastest exact method, if it takes but a moment
  expect_identical(method(200, 2), "augment")
  # n alone moves the choice: bounds at 4 sd leave out records, so no totals without clamping
  expect_identical(c(method(2000, 5), method(1e9, 5)), c("augment", "clt"))
  # so does the dimension
  expect_identical(c(method(3e6, 2), method(3e6, 12)), c("augment", "clt"))
  # and the bounds: nothing is clamped at 40 sd
  expect_identical(c(method(1e5, 5, 10, 4), method(1e5, 5, 1000, 40)), c("augment", "collapse"))
  expect_gt(thousand("augment", 1e6, 5), 5 * thousand("augment", 1e5, 5))
  expect_gt(thousand("augment", 1e4, 12), 3 * thousand("augment", 1e4, 5))
  expect_lt(thousand("collapse", 1e9, 5), 3 * thousand("collapse", 1e4, 5))
})

test_that("limits move the choice: soon, affordable, longest", {
  skip_on_cran()
  rel <- regression(1e4, 5, 10)
  of <- function(...) suppressWarnings(suppressMessages(chosen(rel, model_lm(), limits = list(...))))
  needs <- predicted("augment", rel, model_lm())$thousand
  expect_length(of(soon = 1.01 * needs)$why, 1L)
  exact <- of(soon = 0.99 * needs, affordable = 1.01 * needs)
  expect_identical(exact$method, "augment")
  expect_match(exact$why[2], "^\"collapse\" \\(about .*\\) ignores clamping, expected to touch 0.0[0-9]+% of the records$")
  expect_identical(of(soon = 0.5 * needs, affordable = 0.99 * needs)$method, "clt")
})

test_that("a predicted time has one digit", {
  rough <- internal("rough_time")
  expect_identical(vapply(c(0.123, 0.94, 0.96, 1.4, 1.6, 24, 119, 3000, 8000, 5e5, 3e7), rough, ""),
                   c("0.1 seconds", "0.9 seconds", "1 second", "1 second", "2 seconds", "20 seconds", "2 minutes", "50 minutes", "2 hours", "6 days", "300 days"))
})

# y = 0.5 + x + N(0, 1), bounds that leave out the same share of either variable
regression_release <- function(n, share, epsilon = 10) {
  set.seed(1)
  x <- stats::rnorm(n)
  width <- stats::qnorm(1 - share / 2) * c(-1, 1)
  bounds <- list(y = 0.5 + sqrt(2) * width, x = width)
  simulate_release(data.frame(y = 0.5 + x + stats::rnorm(n), x), stat_crossprod(y ~ x, bounds), mech_laplace(epsilon = epsilon))
}

test_that("where bounds bind, the exact method with fewer iterations is preferred to a wrong one", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- regression_release(20000, 0.05)
  # a fast method would be wrong by many standard deviations
  wrong <- sample_posterior(rel, model_lm(), method = "collapse", seed = 1)
  sigma <- parameter_draws(wrong, "sigma")
  expect_gt(abs(mean(sigma) - 1) / sd(sigma), 3)
  # "clt" accounts for the bounds of a regression, and no method does for the bounds of a multivariate normal model
  tight <- list(soon = 0, affordable = 0)
  expect_warning(fast <- chosen(rel, model_lm(), limits = tight), "approximate", class = "noiseaware_warning_method")
  expect_identical(fast$method, "clt")
  multivariate <- model_mvnormal()
  iteration <- predicted("augment", rel, multivariate)$iteration
  lasting <- function(iterations) c(tight, longest = (iterations + 0.5) * 4 * iteration)
  expect_warning(short <- chosen(rel, multivariate, limits = lasting(250), thin = 5), "250 iterations per chain \\(125 of them warmup, thin 1\\) instead of 2000",
                 class = "noiseaware_warning_method")
  expect_identical(short$method, "augment")
  expect_equal(short$run[c("iter", "warmup", "thin", "chains")], list(iter = 250, warmup = 125, thin = 1, chains = 4))
  expect_warning(chosen(rel, multivariate, limits = lasting(250)), "collapse")
  # the limit is passed rather than a run that says nothing
  expect_warning(least <- chosen(rel, multivariate, limits = lasting(10), warmup = 500), "200 iterations")
  expect_equal(least$run[c("iter", "warmup")], list(iter = 200, warmup = 50))
  # as many as were asked for are no reason to warn
  expect_no_warning(expect_message(asked <- chosen(rel, multivariate, limits = lasting(10), iter = 150, warmup = 75), class = "noiseaware_message_method"))
  expect_identical(asked$run$iter, 150)
  # without records outside, the fast method is exact
  expect_silent(wide <- chosen(regression_release(20000, 1e-12), model_lm(), limits = tight))
  expect_identical(wide$method, "collapse")
})

test_that("a regression with factors is looked at too", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(2)
  data <- data.frame(x = stats::rnorm(4000), f = sample(c("a", "b"), 4000, TRUE))
  data$y <- data$x + (data$f == "b") + stats::rnorm(4000)
  rel <- function(width) {
    simulate_release(data, stat_crossprod(y ~ x + f, list(y = c(-2, 2) * width, x = c(-1, 1) * width, f = c("a", "b"))), mech_laplace(epsilon = 10))
  }
  tight <- list(soon = 0, affordable = 0, longest = 0)
  expect_warning(fast <- chosen(rel(2), model_lm(), limits = tight), "was chosen, which is approximate", class = "noiseaware_warning_method")
  expect_identical(fast$method, "clt")
  expect_warning(bound <- chosen(rel(0.8), model_lm(), limits = tight), "200 iterations", class = "noiseaware_warning_method")
  expect_identical(bound$method, "augment")
  expect_match(bound$why, "\"clt\" .* does not account for clamping, or not for so much: [0-9.]+% of the records", all = FALSE)
  expect_silent(free <- chosen(rel(15), model_lm(), limits = tight))
  expect_identical(free$method, "collapse")
})

test_that("a shortened run is what runs, and update() asks for the whole again", {
  skip_on_cran()
  rel <- regression_release(5000, 0.01)
  package <- asNamespace("noiseaware")
  usual <- package$auto_limits
  limit <- function(value) {
    unlockBinding("auto_limits", package)
    assign("auto_limits", value, envir = package)
    lockBinding("auto_limits", package)
  }
  on.exit(limit(usual))
  tight <- list(soon = 0, affordable = 0, longest = 0)
  limit(tight)
  expect_warning(fit <- sample_posterior(rel, model_mvnormal(), chains = 2, seed = 1), "200 iterations", class = "noiseaware_warning_method")
  expect_identical(fit$method, "augment")
  expect_identical(dim(fit$draws)[1:2], c(100L, 2L))
  # from where a short run of "collapse" was, not from draws of the prior
  expect_warning(start <- chosen(rel, model_mvnormal(), limits = tight, chains = 2)$init, "200 iterations")
  expect_identical(lengths(start), c(5L, 5L))
  shorter <- internal("sample_method")("augment", rel, fit$bound, fit$run, start)
  expect_identical(fit$draws, shorter$draws)
  own <- list(stats::setNames(c(0, 0, 1, 0, 1), posterior::variables(fit$draws)))[c(1, 1)]
  expect_warning(given <- sample_posterior(rel, model_mvnormal(), chains = 2, seed = 1, init = own), "200 iterations")
  expect_identical(given$draws, sample_posterior(rel, model_mvnormal(), method = "augment", chains = 2, iter = 200, seed = 1, init = own)$draws)
  expect_null(fit$asked$iter) # the default
})

test_that("a table is moved itself where that is predicted to be faster", {
  cells <- as.data.frame(HairEyeColor)
  st <- stat_counts(~ Hair:Eye + Eye:Sex + Hair:Sex, lapply(cells[1:3], levels))
  set.seed(1)
  rel <- simulate_release(cells[rep(1:32, cells$Freq), 1:3], st, mech_gaussian(mu = 1))
  expect_identical(sample_posterior(rel, model_table(), chains = 1, iter = 200, seed = 1)$method, "collapse")
})

test_that("many cells of factors are told before 'clt' starts", {
  statistic <- stat_crossprod(y ~ x + g, list(y = c(-3, 3), x = c(-3, 3), g = c("a", "b", "c")))
  release <- as_release(numeric(length(statistic$components)), statistic, mech_laplace(epsilon = 1), 1000)
  bound <- internal("bind_model")(model_lm(), statistic)
  told <- function(...) internal("tell_many_cells")(release, bound, list(), NULL, ...)
  expect_message(told(list(affordable = 0)), "3 combinations of levels", class = "noiseaware_message_method")
  expect_silent(told())
})
