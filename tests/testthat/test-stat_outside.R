# What is said of values beyond the bounds. Under "none" a model's records are seen without bounds, the owner's with them: statistics at
# records far beyond, quadrature for two records, and the limit of bounds that are too wide to clamp.

bounds <- list(y = c(-1, 2), x = c(0, 3))

# one of every statistic that clamps numbers
clamping_statistics <- function(outside) {
  list(crossprod = stat_crossprod(y ~ x, bounds, outside = outside), own_units = stat_crossprod(y ~ x, bounds, rescale = FALSE, outside = outside),
       products = stat_crossprod(y ~ x + I(x^2), bounds, outside = outside), moments4 = stat_moments4(~ y + x, bounds, outside = outside),
       sums = stat_sums(~ y + x:y + I(y^2), bounds, outside = outside), records = stat_records(~ y + x, bounds, outside = outside),
       covariance = stat_covariance(~ y + x, bounds, c(y = 0.5, x = 1), 10, outside = outside),
       means = stat_means(stat_sums(~ y + x, bounds, outside = outside), 10),
       groups = stat_by(stat_sums(~ y + x, bounds, outside = outside), list(g = c("a", "b"))))
}

test_that("a model's records are seen without bounds under \"none\", the owner's with them", {
  skip_on_cran() # takes long; `make test` runs it
  far <- data.frame(y = c(-5, 0.5, 9), x = c(2, -4, 30), g = c("a", "b", "b"))
  near <- data.frame(y = pmin(pmax(far$y, -1), 2), x = pmin(pmax(far$x, 0), 3), g = far$g)
  half <- data.frame(y = near$y, x = far$x, g = far$g)
  total <- internal("statistic_total")
  open <- clamping_statistics("none")
  clamped <- clamping_statistics("clamp")
  mixed <- clamping_statistics(c(x = "none"))
  above <- clamping_statistics("above")
  below <- clamping_statistics(c(y = "below", x = "none"))
  for (name in names(open)) {
    expect_equal(total(open[[name]], near), total(clamped[[name]], near), info = name)
    expect_equal(total(open[[name]], far, confidential = TRUE), total(clamped[[name]], near), info = name)
    expect_equal(total(clamped[[name]], far), total(clamped[[name]], near), info = name)
    expect_false(isTRUE(all.equal(total(open[[name]], far), total(clamped[[name]], far))), info = name)
    expect_equal(total(mixed[[name]], far), total(open[[name]], half), info = name)
    # one bound alone
    expect_equal(total(above[[name]], far), total(open[[name]], data.frame(y = pmin(far$y, 2), x = pmin(far$x, 3), g = far$g)), info = name)
    expect_equal(total(below[[name]], far), total(open[[name]], data.frame(y = pmax(far$y, -1), x = far$x, g = far$g)), info = name)
    expect_equal(total(above[[name]], far, confidential = TRUE), total(clamped[[name]], near), info = name)
    # noise and sensitivities are the same
    expect_identical(sensitivity(open[[name]], "L1"), sensitivity(clamped[[name]], "L1"), info = name)
  }
  expect_equal(unname(total(open$own_units, far)), c(colSums(far[1:2]), sum(far$y^2), sum(far$y * far$x), sum(far$x^2)), ignore_attr = TRUE)
})

st_values <- function(st) numeric(length(st$components) * (if (st$kind == "records") 3 else 1))

test_that("it is kept in files, and said in prints", {
  skip_on_cran()
  for (st in c(clamping_statistics("none"), clamping_statistics(c(x = "none")), clamping_statistics("clamp"), clamping_statistics("above"),
             clamping_statistics(c(x = "below", y = "none")))) {
    file <- withr::local_tempfile(fileext = ".json")
    rel <- as_release(st_values(st), st, mech_laplace(scale = 1), n = 3)
    write_release(rel, file)
    expect_identical(read_release(file)$statistic, st)
  }
  expect_match(format(clamping_statistics("none")$products)[1L], "no record outside the bounds$")
  expect_match(format(clamping_statistics(c(x = "none"))$means)[1L], "no record outside the bounds of x$")
  expect_match(format(clamping_statistics("clamp")$sums)[1L], "clamped to the bounds$")
  expect_match(format(clamping_statistics("above")$sums)[1L], ", no record below the lower bound$")
  expect_match(format(clamping_statistics(c(x = "below", y = "none"))$means)[1L], ", no record outside the bounds of y, no record above the upper bound of x$")
  # all variables by name are a word
  expect_identical(stat_crossprod(y ~ x, bounds, outside = c(x = "none", y = "none")), clamping_statistics("none")$crossprod)
  file <- withr::local_tempfile(fileext = ".json")
  rel <- as_release(c(y = 1), stat_sums(~ y, bounds["y"], outside = "none"), mech_laplace(epsilon = 1), n = 4)
  write_release(rel, file)
  expect_identical(read_release(file)$statistic, rel$statistic)
  expect_identical(declare_outside(declare_outside(rel, "clamp"), "none")$statistic, rel$statistic)
})

test_that("two records that nothing clamps have the posterior of quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  # beta | total: (n beta, n sigma^2), in closed form but for the noise
  beta <- seq(-9, 10, length.out = 2001)
  s <- seq(-30, 30, length.out = 4001)
  model <- model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5))
  for (mechanism in list(mech_laplace(scale = 0.3), mech_gaussian(sd = 0.3))) {
    # the records' total is likely to be beyond what clamped ones could have
    rel <- as_release(c(y = 3.2), stat_subset(stat_crossprod(y ~ 1, list(y = c(-1, 2)), rescale = FALSE, outside = "none"), "y"), mechanism, n = 2)
    noise <- exp(log_noise(rel$mechanism$kernel, unname(rel$scale), 3.2, matrix(s)))
    likelihood <- vapply(beta, function(b) sum(noise * dnorm(s, 2 * b, 1.5 * sqrt(2))), 0)
    density <- dnorm(beta, 0.5, 2) * likelihood
    for (method in c("augment", "collapse", "clt")) {
      fit <- sample_posterior(rel, model, method, chains = 2, iter = 7600, warmup = 1000, seed = 7)
      expect_distribution(parameter_draws(fit, "(Intercept)"), grid_quantile(beta, density), sum(beta * density) / sum(density))
    }
    expect_true(sample_posterior(rel, model, chains = 2, iter = 400, seed = 1)$exact)
  }
})

test_that("bounds that are too wide to clamp are the limit, draw by draw", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_poisson(prior = prior_gamma(2, 0.5))
  of <- function(st, method) sample_posterior(as_release(c(x = 812), st, mech_laplace(scale = 4), n = 40), model, method, chains = 1, iter = 400, seed = 3)$draws
  for (method in c("augment", "clt")) {
    # with a rate of 20 nearly all records are beyond 3
    expect_identical(of(stat_sums(~ x, c(0, 3), outside = "none"), method), of(stat_sums(~ x, c(0, 1e6)), method))
  }
  # a count's regression: the model's largest count is 4 times the bound and 100
  slopes <- function(upper, outside) {
    set.seed(4)
    x <- rnorm(300)
    s <- data.frame(y = rpois(300, exp(1 + 0.3 * x)), x = x)
    st <- stat_crossprod(y ~ x, list(y = c(0, upper), x = c(-9, 9)), rescale = FALSE, outside = outside)
    rel <- as_release(internal("statistic_total")(declare_outside_of(st), s), st, mech_laplace(scale = 2), n = 300)
    fit <- suppressWarnings(sample_posterior(rel, model_glm(family = poisson(), prior = prior_normal(c(1, 0), 1),
      covariates = fixed(list(mean = 0, cov = matrix(1)))), "clt", chains = 1, iter = 1500, seed = 5))
    colMeans(as.matrix(parameter_draws(fit, c("(Intercept)", "x"))))
  }
  declare_outside_of <- function(st) internal("with_outside")(st, "none")
  expect_equal(slopes(3, "none"), slopes(200, "clamp"), tolerance = 0.02)
})

test_that("mixed statements clamp the other variable alone", {
  skip_on_cran() # takes long; `make test` runs it
  # as if the natural limits of x were too wide to bind
  narrow <- stat_crossprod(y ~ x, bounds, rescale = FALSE, outside = c(x = "none"))
  wide <- stat_crossprod(y ~ x, list(y = c(-1, 2), x = c(-40, 40)), rescale = FALSE)
  value <- c(y = 12, x = 70, `y^2` = 40, `y:x` = 30, `x^2` = 330)
  model <- model_lm(prior = prior_normal(0, 1), sigma = prior_half_normal(2), covariates = prior_niw(mean = 1, kappa = 1, df = 4, scale = matrix(2)))
  of <- function(st, method) sample_posterior(as_release(value, st, mech_laplace(scale = 3), n = 40), model, method, chains = 2, iter = 1700, warmup = 500, seed = 3)
  expect_same <- function(narrow, wide) {
    for (method in c("augment", "clt")) {
      expect_agreement(parameter_draws(of(narrow, method), "x"), parameter_draws(of(wide, method), "x"))
    }
  }
  expect_same(narrow, wide)
  # one bound of each
  expect_same(stat_crossprod(y ~ x, bounds, rescale = FALSE, outside = c(x = "above", y = "below")),
              stat_crossprod(y ~ x, list(y = c(-1, 40), x = c(-40, 3)), rescale = FALSE))
})

test_that("what one statistic says of a variable holds for others that are as wide", {
  columns <- function(st) internal("natural_columns")(st)
  settled <- internal("settle_outside")(list(a = stat_sums(~ y, c(-1, 2), outside = "none"), wide = stat_crossprod(y ~ x, list(y = c(-2, 2), x = c(0, 3))),
                                             narrow = stat_sums(~ y + x, bounds = list(y = c(-1, 1), x = c(0, 3))),
                                             dropped = stat_sums(~ y, c(-5, 5), outside = "drop"), count = stat_counts(~ g, list(g = c("a", "b")))))
  expect_identical(lapply(settled, columns), list(a = TRUE, wide = c(TRUE, FALSE), narrow = c(FALSE, FALSE), dropped = FALSE, count = FALSE))
  expect_false(internal("release_columns")(settled)$natural)
  # by bound: the lower limit of one and the upper limit of another
  halves <- internal("settle_outside")(list(stat_sums(~ y, c(-1, 2), outside = "above"), stat_sums(~ y, c(-1, 2), outside = "below"),
                                            stat_sums(~ y, c(-2, 1)), stat_sums(~ y, c(0, 3))))
  expect_identical(vapply(halves, `[[`, "", "outside"), c("none", "none", "above", "below"))
  expect_true(internal("release_columns")(settled[c("a", "count")])$natural)
})

test_that("simulated records of a model are as the model is fitted, and an owner's are clamped", {
  st <- stat_crossprod(y ~ 1, list(y = c(-1, 1)), rescale = FALSE, outside = "none")
  exact <- mech_laplace(scale = 1e-9)
  set.seed(1)
  rel <- simulate_release(model_lm(prior = fixed(0), sigma = fixed(5)), st, exact, n = 50)
  truth <- attr(rel, "truth")$data
  expect_equal(rel$value[["y"]], sum(truth$y), tolerance = 1e-6)
  expect_identical(rel$statistic, st)
  expect_equal(simulate_release(truth, st, exact)$value[["y"]], sum(pmin(pmax(truth$y, -1), 1)), tolerance = 1e-6)
  expect_equal(release(truth, st, mech_laplace(epsilon = 1e6))$value[["y"]], sum(pmin(pmax(truth$y, -1), 1)), tolerance = 1e-2)
  checked <- check_of(sample_posterior(rel, model_lm(prior = prior_normal(0, 1), sigma = fixed(5)), chains = 2, iter = 400, seed = 1), draws = 200, seed = 2)
  expect_gt((checked$upper - checked$lower)[1L], 2 * 1.5 * 5 * sqrt(50)) # clamped ones would have less than 2 * 2 * sqrt(50)
})

test_that("totals that no records within the bounds have are told", {
  st <- stat_crossprod(y ~ 1, list(y = c(0, 10)), rescale = FALSE, outside = "none")
  odd <- function(y, square, st, sd = 0.1) {
    rel <- as_release(c(y = y, `y^2` = square), st, mech_gaussian(sd = sd), n = 100)
    vapply(internal("release_troubles")(rel), `[[`, "", "text")
  }
  expect_match(odd(500, 5200, st), "No data set of 100 records has totals like these, whatever the noise: y\\^2", fixed = FALSE)
  expect_match(odd(500, 2300, st), "y\\^2")
  # all at the mean, and half at each bound
  expect_length(odd(500, 2500, st), 0L)
  expect_length(odd(500, 5000, st), 0L)
  expect_length(odd(500, 5200, st, sd = 30), 0L)
  expect_match(odd(0, 140, stat_crossprod(y ~ 1, list(y = c(0, 10)), outside = "none")), "y\\^2")
})

test_that("bad statements are errors", {
  expect_error(stat_crossprod(y ~ x, bounds, outside = "drop"), class = "noiseaware_error_argument")
  expect_error(stat_crossprod(y ~ x, bounds, outside = c(z = "none")), class = "noiseaware_error_argument")
  expect_error(stat_crossprod(y ~ x, bounds, outside = c(x = "drop")), class = "noiseaware_error_argument")
  expect_error(stat_crossprod(y ~ x, bounds, outside = c("none", "none")), class = "noiseaware_error_argument")
  expect_error(stat_sums(~ x, c(0, 3), outside = c(x = "none", x = "clamp")), class = "noiseaware_error_argument")
  expect_error(stat_sums(~ x, c(0, 3), outside = NA), class = "noiseaware_error_argument")
  expect_error(stat_crossprod(y ~ g, list(y = c(0, 1), g = c("a", "b")), outside = c(g = "none")), class = "noiseaware_error_argument")
  rel <- as_release(c(12, 8), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(epsilon = 1), n = 20)
  expect_error(declare_outside(rel, "none"), class = "noiseaware_error_argument")
  rel <- as_release(c(x = 12), stat_sums(~ x, c(0, 3)), mech_laplace(epsilon = 1), n = 20)
  expect_error(declare_outside(rel, "drop"), class = "noiseaware_error_argument")
  expect_error(declare_outside(rel, c(y = "none")), class = "noiseaware_error_argument")
})

test_that("statistics that drop records keep doing so", {
  dropping <- stat_sums(~ x + I(x^2), c(0, 10), outside = "drop")
  rel <- as_release(c(x = 2.6, `x^2` = 9.4), dropping, mech_laplace(scale = 1), n = 50)
  expect_error(declare_outside(rel, "none"), class = "noiseaware_error_argument")
  expect_error(declare_outside(rel, c(x = "clamp")), class = "noiseaware_error_argument")
  both <- list(sums = dropping, products = stat_crossprod(x ~ 1, c(0, 10)))
  values <- list(sums = c(x = 2.6, `x^2` = 9.4), products = c(x = 26, `x^2` = 16))
  rel <- as_release(values, both, list(sums = mech_laplace(scale = 1), products = mech_laplace(scale = 1)), n = 50)
  said <- declare_outside(rel, "none")$statistic
  expect_identical(said$sums, dropping)
  expect_identical(said$products$outside, "none")
})

test_that("a narrower model keeps what was said of its variables", {
  narrow <- internal("narrow_statistic")
  for (st in clamping_statistics(c(x = "none"))[c("crossprod", "own_units", "moments4", "sums", "covariance", "means")]) {
    expect_identical(internal("natural_columns")(narrow(st, "y")$statistic), FALSE)
    if (!grepl("^y", st$formula)) next
    expect_identical(internal("natural_columns")(narrow(st, "x")$statistic), TRUE)
  }
  expect_identical(internal("natural_columns")(narrow(clamping_statistics("none")$products, c("y", "x"))$statistic), c(TRUE, TRUE))
  sums <- stat_sums(~ x + I(x^2) + y + x:y, bounds)
  kept <- narrow(sums, "x")
  expect_identical(kept$statistic, stat_sums(~ x + I(x^2), bounds["x"]))
  # one total that is left keeps its units
  expect_true(narrow(stat_sums(~ x + y, bounds), "x")$statistic$rescale)
})
