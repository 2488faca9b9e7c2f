# Named tests: against sums over all tables, totals and records from the prior.

log_dirichlet <- function(counts, weight = 1) sum(lgamma(weight + counts)) - lgamma(sum(weight + counts)) - length(counts) * lgamma(weight) + lgamma(length(counts) * weight)

binary <- list(a = c("no", "yes"), b = c("no", "yes"))

one_line_of <- function(code) gsub("\\s+", " ", internal("one_line")(tryCatch(code, noiseaware_error = identity)))

test_that("independence of two factors: all tables of six records", {
  tables <- as.matrix(expand.grid(0:6, 0:6, 0:6, 0:6))
  tables <- tables[rowSums(tables) == 6, ] # no:no, no:yes, yes:no, yes:yes
  value <- c(2.4, -0.3, 0.8, 3.1)
  release <- as_release(value, stat_counts(~ a:b, binary), mech_laplace(scale = 0.8), n = 6)
  log_noise <- -colSums(abs(t(tables) - value)) / 0.8
  ways <- lgamma(7) - rowSums(lgamma(tables + 1))
  evidence <- function(log_p) log(sum(exp(log_noise + ways + log_p)))
  for (weight in c(1, 0.5)) {
    joint <- apply(tables, 1, log_dirichlet, weight)
    apart <- apply(tables, 1, function(t) log_dirichlet(c(t[1] + t[2], t[3] + t[4]), weight) + log_dirichlet(c(t[1] + t[3], t[2] + t[4]), weight))
    want <- evidence(joint) - evidence(apart)
    got <- test_hypothesis(release, ~ a + b, model = model_table(prior = prior_dirichlet(weight)), seed = 1)
    expect_lt(attr(got, "error"), 0.02)
    expect_lt(abs(attr(got, "log") - want), 4.5 * attr(got, "error"))
    fit <- sample_posterior(release, model_table(prior = prior_dirichlet(weight)), chains = 2, iter = 2200, seed = 2)
    from_fit <- test_hypothesis(fit, ~ b + a)
    expect_lt(abs(attr(from_fit, "log") - want), 4.5 * attr(from_fit, "error"))
  }
})

test_that("independence given a third factor, without noise: Dirichlet integrals of each layer", {
  counts <- array(c(11, 3, 5, 9, 2, 2, 8, 4, 6, 1, 7, 7), c(2, 3, 2), list(a = c("u", "v"), b = c("p", "q", "r"), g = c("s", "t")))
  levels <- dimnames(counts)
  order <- as.vector(aperm(counts, 3:1)) # the last variable fastest
  release <- as_release(order, stat_counts(~ a:b:g, levels), mech_gaussian(sd = 0.01), n = sum(counts))
  want <- sum(apply(counts, 3, function(t) log_dirichlet(t) - log_dirichlet(rowSums(t)) - log_dirichlet(colSums(t))))
  got <- test_hypothesis(release, ~ a + b | g, draws = 100, seed = 1)
  expect_equal(attr(got, "log"), want, tolerance = 1e-9)
  expect_identical(attr(got, "h0"), "a and b are independent given g")
  # two factors behind the bar: each cell of them is a layer
  one <- as_release(as.vector(aperm(counts[, 1:2, ], 3:1)), stat_counts(~ a:b:g, list(a = c("u", "v"), b = c("p", "q"), g = c("s", "t"))), mech_gaussian(sd = 0.01), n = sum(counts[, 1:2, ]))
  want <- sum(apply(counts[, 1:2, ], 2, function(t) log_dirichlet(t) - log_dirichlet(rowSums(t)) - log_dirichlet(colSums(t))))
  expect_equal(attr(test_hypothesis(one, ~ g + a | b, draws = 100, seed = 1), "log"), want, tolerance = 1e-9)
})

test_that("few draws that decide are told", {
  release <- as_release(c(2e3, 0, 0, 2e3), stat_counts(~ a:b, binary), mech_laplace(scale = 200), n = 4e3)
  got <- test_hypothesis(release, ~ a + b, draws = 1000, seed = 1, error = 1e6)
  expect_match(attr(got, "note"), "few draws")
  expect_identical(internal("join_notes")("approximate: b; rough: c", "approximate: b", NULL), "approximate: b; rough: c")
  expect_gt(attr(got, "log"), 100)
  # what can be done about it: a fit takes no `draws`
  expect_match(attr(got, "note"), "use more draws", fixed = TRUE)
  fit <- suppressWarnings(sample_posterior(release, flat_table(), method = "collapse", chains = 2, iter = 400, seed = 1))
  expect_match(attr(test_hypothesis(fit, ~ a + b), "note"), "a larger `iter`, or give the release", fixed = TRUE)
})

test_that("a release and a fit of it say that their priors differ", {
  release <- as_release(c(40, 10, 12, 38), stat_counts(~ a:b, binary), mech_gaussian(sd = 0.1), n = 100)
  note <- function(...) paste(attr(test_hypothesis(..., seed = NULL), "note"), collapse = "")
  expect_match(note(release, ~ a + b, draws = 200), "Weight 1 is usual for this test. A fit of model_table() has by default weight 0.5", fixed = TRUE)
  expect_identical(note(release, ~ a + b, flat_table(), draws = 200), "")
  fit <- function(model) suppressWarnings(sample_posterior(release, model, method = "collapse", chains = 2, iter = 400, seed = 1))
  said <- function(fit) paste(attr(test_hypothesis(fit, ~ a + b), "note"), collapse = "")
  expect_match(said(fit(model_table())), "The weight 0.5 is the fit's.", fixed = TRUE)
  expect_identical(said(fit(flat_table())), "")
})

test_that("the p-value that is suggested for models with factors is code that runs", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x + smoke + `a b`, bounds = list(y = c(-4, 4), x = c(-3, 3), smoke = c("0", "1", "2"), `a b` = c("u", "v")))
  set.seed(1)
  records <- data.frame(y = rnorm(60), x = rnorm(60), smoke = factor(rep(0:2, 20)), `a b` = rep(c("u", "v"), each = 30), check.names = FALSE)
  release <- release(records, st, mech_gaussian(sd = 1))
  model <- model_lm()
  suggested <- function(question) {
    said <- one_line_of(test_hypothesis(release, question))
    regmatches(said, regexpr("p_value\\(release, model, c\\(.*?\\)\\)", said, perl = TRUE))
  }
  expect_identical(suggested("smoke"), "p_value(release, model, c(smoke1 = 0, smoke2 = 0))")
  expect_identical(suggested("smoke2 < 0"), "p_value(release, model, c(smoke2 = 0))")
  expect_identical(suggested("a b"), "p_value(release, model, c(`a bv` = 0))")
  expect_identical(suggested("x"), suggested("nothing"))
  code <- parse(text = sub(")$", ", replicates = 19, seed = 1)", suggested("a b")))
  expect_s3_class(eval(code), "noiseaware_p_value")
})

test_that("equal rates: all totals of two sites", {
  skip_on_cran()
  yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
  sites <- list(north = as_release(c("smoke=yes" = 7.3), yes, mech_laplace(scale = 2), n = 30), south = as_release(c("smoke=yes" = 22), yes, mech_gaussian(sd = 3), n = 25))
  at <- expand.grid(s = 0:30, t = 0:25)
  noise <- dexp(abs(7.3 - at$s), 1 / 2) / 2 * dnorm(22, at$t, 3) * choose(30, at$s) * choose(25, at$t)
  for (prior in list(c(1, 1), c(2, 0.5))) {
    alone <- function(s, n) exp(lbeta(s + prior[1], n - s + prior[2]) - lbeta(prior[1], prior[2]))
    want <- log(sum(noise * alone(at$s, 30) * alone(at$t, 25)) / sum(noise * alone(at$s + at$t, 55)))
    expect_equal(attr(test_hypothesis(sites, model = model_bernoulli(prior = prior_beta(prior[1], prior[2]))), "log"), want, tolerance = 1e-9)
  }
  # a fit of the sites has their model
  pooled <- sample_posterior(sites, model_bernoulli(prior = prior_beta(2, 0.5)), pool = "complete", chains = 1, iter = 20, seed = 1)
  expect_equal(attr(test_hypothesis(pooled), "log"), want, tolerance = 1e-9)
  expect_error(test_hypothesis(pooled, model = model_bernoulli()), class = "noiseaware_error_argument")
  totals <- stat_sums(~ x, bounds = list(x = c(0, 20)))
  sites <- list(a = as_release(31.4, totals, mech_laplace(scale = 6), n = 8), b = as_release(90, totals, mech_laplace(scale = 5), n = 11))
  at <- expand.grid(s = 0:400, t = 0:400)
  log_noise <- -abs(31.4 - at$s) / 6 - abs(90 - at$t) / 5 + at$s * log(8) - lgamma(at$s + 1) + at$t * log(11) - lgamma(at$t + 1)
  alone <- function(s, n) lgamma(2 + s) + 2 * log(0.4) - (2 + s) * log(0.4 + n)
  sum_of <- function(x) internal("log_sum_exp")(log_noise + x)
  want <- sum_of(alone(at$s, 8) + alone(at$t, 11)) - sum_of(alone(at$s + at$t, 19))
  expect_equal(attr(test_hypothesis(sites, model = model_poisson(prior = prior_gamma(2, 0.4))), "log"), want, tolerance = 1e-9)
  expect_identical(attr(test_hypothesis(sites), "error"), 0)
})

test_that("a slope: records from both priors", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-40, 40), x = c(-30, 30)), rescale = FALSE)
  value <- c(y = 5, x = 2, "y^2" = 60, "y:x" = 45, "x^2" = 30)
  release <- as_release(value, st, mech_laplace(scale = 8), n = 8)
  model <- model_lm(prior = prior_nig(c(0.3, 0.5), c(1, 2), 4, 12), covariates = fixed(list(mean = 0.2, cov = matrix(3))))
  set.seed(1)
  draws <- 8e4
  sigma <- sqrt(12 / rgamma(draws, 4))
  intercept <- 0.3 + sigma * rnorm(draws)
  x <- 0.2 + sqrt(3) * matrix(rnorm(8 * draws), draws)
  error <- sigma * matrix(rnorm(8 * draws), draws)
  weight <- function(slope) {
    y <- intercept + slope * x + error
    exp(-rowSums(abs(cbind(rowSums(y) - 5, rowSums(x) - 2, rowSums(y^2) - 60, rowSums(y * x) - 45, rowSums(x^2) - 30))) / 8)
  }
  free <- weight(0.5 + sigma / sqrt(2) * rnorm(draws))
  zero <- weight(0)
  beside <- sqrt(var(free) / mean(free)^2 + var(zero) / mean(zero)^2) / sqrt(draws)
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model, method = "collapse", chains = 1, iter = 100, seed = 1)))
  for (got in list(test_hypothesis(release, "x", model, draws = 3000, seed = 1), test_hypothesis(fit, "x", draws = 3000, seed = 1))) {
    expect_lt(attr(got, "error"), 0.06)
    expect_lt(abs(attr(got, "log") - log(mean(free) / mean(zero))), 4.5 * sqrt(attr(got, "error")^2 + beside^2))
  }
})

test_that("held slopes leave the others the prior given that they are 0", {
  st <- stat_crossprod(y ~ a + b, bounds = list(y = c(-4, 4), a = c(-3, 3), b = c(-3, 3)))
  precision <- matrix(c(2, 0.5, -0.3, 0.5, 3, 0.7, -0.3, 0.7, 4), 3)
  bound <- internal("bind_model")(model_lm(prior = prior_nig(c(1, 2, -1), precision)), st)
  held <- internal("without_slopes")(bound, "b", NULL)$bound$spec$fields
  # of a normal distribution, cut at a point
  cov <- solve(precision)
  given <- c(1, 2) + cov[1:2, 3] / cov[3, 3] * (0 + 1)
  expect_equal(held$beta_mean, c(given, 0))
  expect_equal(matrix(held$beta_precision, 3)[1:2, 1:2], solve(cov[1:2, 1:2] - tcrossprod(cov[1:2, 3]) / cov[3, 3]))
  expect_identical(matrix(held$beta_precision, 3)[1:2, 3], c(0, 0))
})

test_that("prints say what is compared, and what cannot be is refused", {
  skip_on_cran() # takes long; `make test` runs it
  yes <- stat_counts(~ smoke, levels = list(smoke = c("no", "yes")))
  one <- as_release(c("smoke=yes" = 7.3), yes, mech_laplace(scale = 2), n = 30)
  other <- as_release(c("smoke=yes" = 9.1), yes, mech_laplace(scale = 2), n = 30)
  expect_snapshot(test_hypothesis(list(north = one, south = other)))
  expect_error(test_hypothesis(one), class = "noiseaware_error_argument")
  expect_error(test_hypothesis(list(north = one)), class = "noiseaware_error_argument")
  expect_error(test_hypothesis(list(one, other)), class = "noiseaware_error_pool")
  expect_error(test_hypothesis(list(a = one, b = one)), class = "noiseaware_error_pool")
  expect_error(test_hypothesis(list(a = one, b = other), model = model_lm()), class = "noiseaware_error_argument")
  table <- as_release(c(2.4, -0.3, 0.8, 3.1), stat_counts(~ a:b, binary), mech_laplace(scale = 0.8), n = 6)
  for (formula in list(~ a, ~ a:b, ~ a + a, y ~ a + b, ~ a + b + 1)) expect_error(test_hypothesis(table, formula), class = "noiseaware_error_formula")
  expect_error(test_hypothesis(table, ~ a + c), class = "noiseaware_error_variables")
  expect_error(test_hypothesis(table, ~ a + b | c), class = "noiseaware_error_variables")
  expect_error(test_hypothesis(table, ~ a + b, model = model_table(prior = prior_dirichlet(c(1, 2, 3, 4)))), class = "noiseaware_error_prior")
  expect_error(test_hypothesis(1, ~ a + b), class = "noiseaware_error_argument")
  expect_error(test_hypothesis(table, ~ a + b, draws = 1), class = "noiseaware_error_argument")
  expect_error(test_hypothesis(table, ~ a + b, model_table(~ a + b)), "saturated", class = "noiseaware_error_argument")
  expect_error(test_hypothesis(table, ~ a + b, model_categorical()), "model_table", class = "noiseaware_error_argument")
  expect_error(test_hypothesis(list(a = one, b = other), "smoke"), "NULL for several sites", class = "noiseaware_error_argument")
  st <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-3, 3)))
  regression <- as_release(c(y = 5, x = 2, "y^2" = 6, "y:x" = 4, "x^2" = 3), st, mech_laplace(scale = 2), n = 40)
  expect_error(test_hypothesis(regression, "z"), class = "noiseaware_error_variables")
  expect_error(test_hypothesis(regression, "y"), class = "noiseaware_error_variables")
  expect_error(test_hypothesis(regression, 1), class = "noiseaware_error_argument")
  expect_error(test_hypothesis(regression, "x", model_lm(prior = prior_student_t())), class = "noiseaware_error_prior")
  expect_error(test_hypothesis(table, "a"), class = "noiseaware_error")
  expect_error(test_hypothesis(1, "x"), class = "noiseaware_error_argument")
  few <- as_release(c(y = 1, x = 2, "y^2" = 6, "y:x" = 4, "x^2" = 3), st, mech_laplace(scale = 2), n = 2)
  expect_error(test_hypothesis(few, "x"), "more records", class = "noiseaware_error_method")
})

test_that("draws are multiplied until the error is what was asked for", {
  counts <- stat_counts(~ a:b, levels = list(a = c("x", "y"), b = c("u", "v")))
  release <- as_release(c(30, 12, 9, 25), counts, mech_laplace(scale = 4), n = 76)
  rough <- test_hypothesis(release, ~ a + b, draws = 100, seed = 1, error = 10)
  fine <- test_hypothesis(release, ~ a + b, draws = 100, seed = 1, error = 0.03)
  expect_gt(attr(rough, "error"), 0.03)
  expect_lte(attr(fine, "error"), 0.03)
  expect_lt(abs(attr(rough, "log") - attr(fine, "log")), 5 * attr(rough, "error"))
  expect_error(test_hypothesis(release, ~ a + b, error = 0), class = "noiseaware_error_argument")
})

test_that("independence is tested where n is unknown, and a fit of a table has its draws", {
  st <- stat_counts(~ a:b, list(a = c("x", "y"), b = c("u", "v")))
  unsized <- as_release(c(40, 10, 12, 38), st, mech_gaussian(sd = 0.1), n = NULL)
  sized <- as_release(c(40, 10, 12, 38), st, mech_gaussian(sd = 0.1), n = 100)
  log <- function(x) attr(test_hypothesis(x, ~ a + b, draws = 2000, seed = 1), "log")
  # with hardly any noise the counts are known, and n with them
  expect_equal(log(unsized), log(sized), tolerance = 1e-6)
  fit <- sample_posterior(sized, flat_table(), method = "collapse", chains = 2, iter = 400, seed = 1)
  expect_equal(attr(test_hypothesis(fit, ~ a + b), "log"), log(sized), tolerance = 1e-6)
  for (call in list(quote(test_hypothesis(fit, ~ a + b, draws = 1e5)), quote(test_hypothesis(fit, ~ a + b, seed = 2)))) {
    expect_error(eval(call), "must be left out if `x` is a fit of a table", class = "noiseaware_error_argument")
  }
  expect_identical(internal("format_odds")(c(20)), "above 0.9999")
  expect_identical(internal("format_odds")(-20), "below 0.0001")
  expect_identical(internal("format_odds")(0), "0.5")
})

test_that("a partial pool's rates vary about a mean under H1", {
  skip_on_cran()
  few <- stat_counts(~ y, list(y = c("no", "yes")))
  sites <- Map(function(count, n) as_release(c("y=yes" = count), few, mech_laplace(scale = 2), n = n), c(a = 3, b = 12, c = 0, d = 9), c(300, 1200, 150, 900))
  fits <- lapply(c("partial", "complete"), function(pool) sample_posterior(sites, model_bernoulli(), pool = pool, chains = 2, iter = 500, seed = 1))
  test <- test_hypothesis(fits[[1L]], draws = 800, seed = 1)
  expect_equal(attr(test, "log"), attr(bayes_factor(fits[[1L]], fits[[2L]], draws = 800, seed = 1), "log"))
  expect_gt(attr(test, "log"), attr(test_hypothesis(sites), "log") + 5)
  expect_equal(attr(test_hypothesis(fits[[2L]]), "log"), attr(test_hypothesis(sites), "log"))
  printed <- capture.output(print(test))
  expect_match(printed, "H1: +a probability for each, which vary about a mean", all = FALSE)
  expect_match(printed, "prior: +H0: Beta\\(1, 1\\) of a probability; H1: prob\\[yes\\] beta.*sd\\[logit\\(prob\\[yes\\]\\)\\] half_normal\\(1\\)", all = FALSE)
})
