# Several statistics of the same data in one release.

st_a <- stat_crossprod(y ~ x, bounds = list(y = c(-4, 4), x = c(-2, 2)))
st_b <- stat_crossprod(y ~ x, bounds = list(y = c(-1, 1), x = c(-3, 3)), rescale = FALSE)
design <- list(a = st_a, b = st_b)
noise <- list(a = mech_laplace(epsilon = 2), b = mech_gaussian(rho = 0.5))

test_that("parts keep their own components, scales and guarantees", {
  set.seed(2)
  data <- data.frame(y = rnorm(30), x = rnorm(30))
  rel <- simulate_release(data, design, noise)
  expect_identical(names(rel$value), c(paste0("a: ", st_a$components), paste0("b: ", st_b$components)))
  expect_equal(unname(noise_sd(rel)), c(rep(sqrt(2) * sensitivity(st_a, "L1") / 2, 5), rep(sensitivity(st_b, "L2"), 5)))
  expect_equal(privacy(rel)$rho, 2 + 0.5)
  exact <- c(internal("statistic_total")(st_a, data), internal("statistic_total")(st_b, data))
  wide <- simulate_release(data, design, list(a = mech_laplace(scale = 1e-9), b = mech_gaussian(sd = 1e-9)))
  expect_equal(unname(wide$value), unname(exact), tolerance = 1e-6)
  path <- tempfile(fileext = ".json")
  write_release(rel, path)
  expect_identical(read_release(path), rel)
  expect_identical(as_release(rev(rel$value), design, noise, 30)$value, rel$value)
  expect_snapshot(as_release(stats::setNames(1:10, names(rel$value)), design, noise, 30))
})

test_that("published values come as a list of the parts'", {
  whole <- as_release(stats::setNames(1:10, names(as_release(1:10, design, noise, 30)$value)), design, noise, 30)
  expect_identical(as_release(list(b = 6:10, a = stats::setNames(5:1, rev(st_a$components))), design, noise, 30), whole)
  counts <- stat_counts(~ g, list(g = c("u", "v")))
  tables <- as_release(list(c = table(g = c("u", "v", "v")), a = 1:5), list(a = st_a, c = counts), list(a = mech_laplace(epsilon = 1), c = mech_laplace(epsilon = 1)), 3)
  expect_identical(tables$value[6:7], c("c: g=u" = 1, "c: g=v" = 2))
})

test_that("designs that do not fit are refused", {
  data <- data.frame(y = 1, x = 1)
  expect_error(release(data, design, noise["a"]), class = "noiseaware_error_mechanism")
  expect_error(release(data, design, noise$a), class = "noiseaware_error_mechanism")
  expect_error(release(data, list(st_a, st_b), noise), class = "noiseaware_error_argument")
  expect_error(release(data, list(a = st_a, b = 1), noise), class = "noiseaware_error_argument")
  expect_error(release(data, list(), noise), class = "noiseaware_error_argument")
})

test_that("the posterior uses all parts: two records against weighted prior draws", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_lm(prior = prior_nig(0, 1, 3, 2), covariates = prior_niw(0, 1, 2, 4))
  mechanisms <- list(a = mech_laplace(scale = 0.4), b = mech_gaussian(sd = 0.6))
  set.seed(8)
  rel <- simulate_release(model, design, mechanisms, n = 2)
  bound <- internal("bind_model")(model, design)
  draws <- 3e5
  nat <- internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), as.integer(draws))$theta)
  s_a <- s_b <- 0
  for (i in 1:2) {
    x <- nat[, "mean[x]"] + sqrt(nat[, "cov[x,x]"]) * rnorm(draws)
    y <- nat[, "(Intercept)"] + nat[, "x"] * x + nat[, "sigma"] * rnorm(draws)
    s_a <- s_a + r_components(st_a, cbind(y, x))
    s_b <- s_b + r_components(st_b, cbind(y, x))
  }
  weight <- exp(log_noise("absolute", rep(0.4, 5), unname(rel$value[1:5]), s_a) +
                  log_noise("squared", rep(0.6, 5), unname(rel$value[6:10]), s_b))
  for (control in list(list(passes = 0), list())) {
    fit <- sample_posterior(rel, model, chains = 2, iter = 14800, warmup = 1000, seed = 3, control = control)
    for (name in c("(Intercept)", "x", "mean[x]")) {
      exact <- sum(weight * nat[, name]) / sum(weight)
      error <- sqrt(sum(weight^2 * (nat[, name] - exact)^2)) / sum(weight)
      got <- parameter_draws(fit, name)
      expect_lt(abs(mean(got) - exact) / sqrt(error^2 + posterior::mcse_mean(got)^2), 5)
    }
  }
})

test_that("a regression refuses factors that are released as codes", {
  mixed <- list(a = st_a, g = stat_counts(~ g, levels = list(g = c("u", "v"))))
  rel <- as_release(numeric(7), mixed, list(a = mech_laplace(epsilon = 1), g = mech_laplace(epsilon = 1)), 10)
  expect_error(sample_posterior(rel, model_lm(y ~ x + g)), class = "noiseaware_error_variables")
  # the formula of the cross-products does not have it
  expect_message(sample_posterior(rel, model_lm(), chains = 1, iter = 20, seed = 1), "involve `g` are not used", class = "noiseaware_message_components") |>
    suppressWarnings()
})
