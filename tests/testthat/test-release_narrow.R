# A narrow question of a wide release: its posterior equals the posterior from the numbers it uses, entered by themselves.

births <- transform(MASS::birthwt, smoke = as.character(smoke), low = as.character(low))
wide <- stat_crossprod(bwt ~ age + lwt + smoke, list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260), smoke = c("0", "1")))
quick <- function(release, model, ...) {
  suppressMessages(suppressWarnings(sample_posterior(release, model, chains = 1, iter = 60, seed = 1, ...), "noiseaware_warning"))
}
draws_of <- function(fit) unclass(fit$draws)

# the numbers that `statistic` has, under their own names, with the noise that the whole release added
expect_same_posterior <- function(release, model, statistic, mechanism, ...) {
  at <- match(statistic$components, names(release$value))
  expect_false(anyNA(at))
  value <- release$value[at]
  alone <- as_release(value, statistic, mechanism, release$n, release$neighbours)
  expect_identical(draws_of(quick(release, model, ...)), draws_of(quick(alone, model, ...)))
}

test_that("a regression on some of the variables has the posterior of their cross-products", {
  skip_on_cran()
  set.seed(1)
  release <- simulate_release(births, wide, mech_laplace(epsilon = 5))
  scale <- release$scale[[1L]]
  bounds <- list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260), smoke = c("0", "1"))
  same <- function(model, formula, of) expect_same_posterior(release, model, stat_crossprod(formula, bounds[of]), mech_laplace(scale = scale))
  same(model_lm(bwt ~ age), bwt ~ age, c("bwt", "age"))
  same(model_lm(bwt ~ smoke), bwt ~ smoke, c("bwt", "smoke"))
  # another response: the columns stay in the release's order
  same(model_lm(lwt ~ age), age ~ lwt, c("age", "lwt"))
  same(model_mvnormal(c("bwt", "lwt")), bwt ~ lwt, c("bwt", "lwt"))
  same(model_normal("age"), age ~ 1, "age")
  same(model_glm(smoke ~ age, binomial()), age ~ smoke, c("age", "smoke"))
  expect_same_posterior(release, model_lm(bwt ~ age), stat_crossprod(bwt ~ age, bounds[1:2]), mech_laplace(scale = scale), method = "clt")
  expect_same_posterior(release, model_lm(bwt ~ age), stat_crossprod(bwt ~ age, bounds[1:2]), mech_laplace(scale = scale), method = "collapse")
})

test_that("so has one on variables without the products of a release of products and functions", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260), smoke = c("0", "1"))
  set.seed(3)
  release <- simulate_release(births, stat_crossprod(log(bwt) ~ age + I(age^2) + lwt + smoke, bounds), mech_laplace(epsilon = 5))
  same <- function(model, formula, of) expect_same_posterior(release, model, stat_crossprod(formula, bounds[of]), mech_laplace(scale = release$scale[[1L]]))
  same(model_lm(log(bwt) ~ lwt), log(bwt) ~ lwt, c("bwt", "lwt"))
  same(model_lm(log(bwt) ~ lwt + smoke), log(bwt) ~ lwt + smoke, c("bwt", "lwt", "smoke"))
  same(model_lm(age ~ lwt), age ~ lwt, c("age", "lwt"))
})

test_that("a message says what is used, the print how much, and update() asks the whole release again", {
  skip_on_cran()
  set.seed(2)
  release <- simulate_release(births, wide, mech_gaussian(mu = 1))
  expect_message(fit <- sample_posterior(release, model_lm(bwt ~ age), chains = 1, iter = 400, seed = 1), "5 of the 13 numbers.*bwt.*age",
                 class = "noiseaware_message_components") |> suppressWarnings()
  expect_length(fit$release$value, 5L)
  # the guarantee is the one that the whole release has, not the guarantee of the numbers in use
  expect_identical(privacy(fit$release), privacy(release))
  expect_output(print(fit$release), "mu = 1 (Gaussian DP), rho = 0.5 (zCDP), the whole release; one", fixed = TRUE)
  expect_error(write_release(fit$release, tempfile()), "only the numbers that a model used", class = "noiseaware_error_file")
  expect_output(print(fit), "uses       5 of the 13 numbers of the release\n  mechanism  Gaussian noise, mu = 1", fixed = TRUE)
  other <- suppressMessages(suppressWarnings(update(fit, model = model_lm(bwt ~ age + lwt))))
  expect_length(other$release$value, 9L)
  all <- suppressWarnings(update(fit, model = model_lm(bwt ~ age + lwt + smoke)))
  expect_null(all$whole)
  # evidence is of different numbers
  expect_error(bayes_factor(fit, all), class = "noiseaware_error_argument")
})

test_that("every kind of statistic gives its part", {
  narrow <- function(statistic, variables) {
    kept <- internal("narrow_statistic")(statistic, variables)
    if (is.null(kept)) return(NULL)
    # the places belong to the components, and what is left knows nothing of other variables
    expect_true(all(kept$statistic$columns$variable %in% variables))
    expect_identical(kept$statistic$components, statistic$components[kept$at])
    # what the records add to the numbers is what it was
    data <- births[1:20, ]
    total <- function(s) unname(internal("statistic_total")(s, data))
    expect_identical(total(kept$statistic), total(statistic)[kept$at])
    kept$statistic$components
  }
  ranges <- list(age = c(14, 50), lwt = c(80, 260), bwt = c(500, 5500))
  sums <- stat_sums(~ age + I(age^2) + age:lwt + lwt, ranges[1:2], rescale = FALSE)
  expect_identical(narrow(sums, "age"), c("age", "age^2"))
  expect_identical(narrow(sums, c("age", "bwt")), c("age", "age^2"))
  expect_null(narrow(sums, "bwt"))
  # a record is left out for any of its variables
  expect_null(narrow(stat_sums(~ age + lwt, ranges[1:2], outside = "drop", rescale = FALSE), "age"))
  expect_identical(narrow(stat_moments4(~ age + lwt, ranges[1:2]), "lwt"), c("lwt", "lwt^2", "lwt^3", "lwt^4"))
  covariance <- stat_covariance(~ age + lwt, ranges[1:2], centre = c(age = 23, lwt = 130), divisor = 20)
  expect_identical(narrow(covariance, "lwt"), "var(lwt)")
  expect_identical(narrow(stat_means(stat_sums(~ age + lwt, ranges[1:2], rescale = FALSE), 20), "lwt"), "mean(lwt)")
  counts <- stat_counts(~ smoke:low + smoke, list(smoke = c("0", "1"), low = c("0", "1")))
  expect_identical(narrow(counts, "smoke"), c("smoke=0", "smoke=1"))
  expect_null(narrow(counts, "low"))
  bins <- stat_histogram(~ age + smoke, list(age = c(0, 20, 30, Inf)), list(smoke = c("0", "1")))
  expect_identical(narrow(bins, "age"), c("age=[0,20)", "age=[20,30)", "age=[30,Inf)"))
  expect_identical(narrow(bins, "smoke"), c("smoke=0", "smoke=1"))
  products <- stat_crossprod(bwt ~ age * lwt + I(age^2), ranges)
  expect_identical(narrow(products, c("bwt", "age")), c("bwt", "age", "age^2", "bwt^2", "bwt:age", "bwt:age^2", "age^3", "age^4"))
  expect_identical(narrow(products, c("bwt", "lwt")), c("bwt", "lwt", "bwt^2", "bwt:lwt", "lwt^2"))
  expect_identical(narrow(products, "lwt"), c("lwt", "lwt^2"))
  linear <- stat_linear(counts, list(smokers = "smoke=1", light = c("smoke=0:low=1", "smoke=1:low=1"), gap = c("smoke=1" = 1, "smoke=0" = -1)))
  expect_identical(narrow(linear, "smoke"), c("smokers", "gap"))
  expect_identical(narrow(stat_size(), "age"), "n")
})

test_that("several statistics, their noise, published numbers and an unknown n are kept", {
  bounds <- list(age = c(14, 50), lwt = c(80, 260))
  statistic <- list(totals = stat_crossprod(age ~ lwt, bounds), smokers = stat_counts(~ smoke, list(smoke = c("0", "1"))), size = stat_size())
  noise <- list(totals = mech_gaussian(mu = 2), smokers = mech_discrete_laplace(epsilon = 1), size = mech_discrete_laplace(epsilon = 1))
  set.seed(3)
  release <- simulate_release(births, statistic, noise, neighbours = "add_remove")
  expect_message(narrow <- internal("narrow_release")(release, model_normal("age")), class = "noiseaware_message_components")
  expect_named(narrow$value, c("totals: age", "totals: age^2", "size: n"))
  at <- c("totals: age", "totals: age^2", "size: n")
  expect_identical(narrow$scale, release$scale[at])
  expect_identical(noise_sd(narrow), noise_sd(release)[at])
  expect_identical(narrow$mechanism$totals$sd, unname(release$scale[at[1:2]]))
  expect_null(narrow$n)
  # the same numbers for a model of all that is left: nothing to leave out
  expect_silent(again <- internal("narrow_release")(narrow, model_normal("age")))
  expect_identical(again, narrow)

  levels <- list(smoke = c("0", "1"), low = c("0", "1"))
  hidden <- as_release(c(115.3, NA, 130.1, NA), stat_counts(~ smoke + low, levels), published(mech_laplace(epsilon = 1), threshold = 80), n = 189)
  expect_message(narrow <- internal("narrow_release")(hidden, model_bernoulli("smoke")), class = "noiseaware_message_components")
  expect_identical(narrow$value, c("smoke=0" = 115.3, "smoke=1" = NA))
  expect_same_posterior(hidden, model_bernoulli("smoke"), stat_counts(~ smoke, levels[1L]), published(mech_laplace(scale = 4), threshold = 80), method = "augment")
})

test_that("sites of a pool are narrowed one by one", {
  set.seed(4)
  bounds <- list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260))
  sites <- list(a = simulate_release(births[1:90, ], stat_crossprod(bwt ~ age + lwt, bounds), mech_gaussian(mu = 2)),
                b = simulate_release(births[91:189, ], stat_crossprod(bwt ~ age, bounds[1:2]), mech_gaussian(mu = 2)))
  fit <- quick(sites, model_lm(bwt ~ age), pool = "complete")
  expect_identical(lengths(lapply(fit$release, `[[`, "value")), c(a = 5L, b = 5L))
})

test_that("a model that no numbers are about alone is refused, and says why", {
  counts <- as_release(c(87, 13, 42, 28), stat_counts(~ smoke:low, list(smoke = c("0", "1"), low = c("0", "1"))), mech_laplace(epsilon = 1), n = 170)
  expect_error(sample_posterior(counts, model_bernoulli("smoke")), "involves `low`", class = "noiseaware_error_variables")
  totals <- as_release(c(1, 2), stat_sums(~ x + z, list(x = c(-1, 1), z = c(-1, 1)), outside = "drop", rescale = FALSE), mech_laplace(epsilon = 1), n = 20)
  expect_error(sample_posterior(totals, model_normal("x")), "depends? on it", class = "noiseaware_error_variables")
  joint <- as_release(c(1, 2), stat_sums(~ x + z, list(x = c(-1, 1), z = c(-1, 1)), rescale = FALSE), mech_custom(log_density = function(noise) -rowSums(abs(noise))), n = 20)
  expect_error(sample_posterior(joint, model_normal("x")), class = "noiseaware_error_variables")
})

test_that("studies of a narrow model are of the same noise as the fit", {
  skip_on_cran() # takes long; `make test` runs it
  bounds <- list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260))
  statistic <- stat_crossprod(bwt ~ age + lwt, bounds)
  narrow <- stat_crossprod(bwt ~ age, bounds[1:2])
  scale <- sensitivity(statistic, "L1")
  study <- function(statistic, mechanism) {
    calibrate(model_lm(bwt ~ age), statistic, mechanism, n = 30, replicates = 3, chains = 1, iter = 60, seed = 1)$results
  }
  expect_identical(study(statistic, mech_laplace(epsilon = 1)), study(narrow, mech_laplace(scale = scale)))
  fit <- nonprivate_posterior(births, model_lm(bwt ~ age), statistic, chains = 1, iter = 50, seed = 1)
  expect_identical(draws_of(fit), draws_of(nonprivate_posterior(births, model_lm(bwt ~ age), narrow, chains = 1, iter = 50, seed = 1)))
})
