st <- stat_crossprod(bwt ~ age + lwt, list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260)), outside = "none")
set.seed(1)
rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 10))
fit <- sample_posterior(rel, model_lm(), chains = 1, iter = 400, seed = 1)
draws <- as.matrix(fit)
bayes_R2 <- internal("bayes_R2.noiseaware_fit")

test_that("R squared of a population of normal covariates is b'Sb / (b'Sb + sigma^2)", {
  explained <- draws[, "age"]^2 * draws[, "cov[age,age]"] + draws[, "lwt"]^2 * draws[, "cov[lwt,lwt]"] +
    2 * draws[, "age"] * draws[, "lwt"] * draws[, "cov[lwt,age]"]
  exact <- unname(explained / (explained + draws[, "sigma"]^2))
  got <- bayes_R2(fit, records = 2000, seed = 1)
  error <- exact * (1 - exact) * sqrt(2 / 2000)
  expect_lt(max(abs(got - exact) / error), 5)
  expect_lt(abs(mean((got - exact) / error)), 5 / sqrt(length(exact)))
  expect_identical(bayes_R2(fit, seed = 1), bayes_R2(fit, seed = 1))
  if (requireNamespace("rstantools", quietly = TRUE)) expect_length(rstantools::bayes_R2(fit, seed = 1), nrow(draws))
})

test_that("R squared of given rows", {
  rows <- data.frame(age = c(20, 30, 25), lwt = c(100, 120, 180))
  expected <- draws[, 1:3] %*% t(cbind(1, as.matrix(rows)))
  explained <- apply(expected, 1, var)
  expect_equal(bayes_R2(fit, rows), unname(explained / (explained + draws[, "sigma"]^2)))
  expect_error(bayes_R2(fit, rows[1, ]), class = "noiseaware_error_argument")
  expect_error(bayes_R2(fit, records = 1), class = "noiseaware_error_argument")
  expect_error(bayes_R2(fit, iter = 1), class = "noiseaware_error_argument")
})

test_that("R squared of a logistic regression, by quadrature over the covariate", {
  asked <- stat_crossprod(low ~ age, list(low = c("0", "1"), age = c(14, 50)), outside = "none")
  set.seed(2)
  logistic <- sample_posterior(simulate_release(MASS::birthwt, asked, mech_laplace(epsilon = 5)), model_logistic(), chains = 1, iter = 40, seed = 1)
  d <- as.matrix(logistic)
  exact <- vapply(seq_len(nrow(d)), function(i) {
    weight <- function(f) integrate(function(z) f(plogis(d[i, 1] + d[i, 2] * (d[i, 3] + sqrt(d[i, 4]) * z))) * dnorm(z), -8, 8)$value
    explained <- weight(function(p) p^2) - weight(identity)^2
    explained / (explained + weight(function(p) p * (1 - p)))
  }, 0)
  got <- bayes_R2(logistic, records = 20000, seed = 1)
  expect_lt(max(abs(got - exact) / exact), 5 * sqrt(4 / 20000))
})

test_that("each family's variance is that of its draws", {
  skip_on_cran()
  for (family in list(poisson(), family_object("negative_binomial"), Gamma("log"))) {
    counted <- stat_crossprod(days ~ age, list(days = c(0, 60), age = c(14, 50)))
    set.seed(3)
    shaped <- simulate_release(model_glm(family = family), counted, mech_laplace(epsilon = 5), n = 50)
    model <- model_glm(family = family, prior = fixed(c(1.5, 0)), cv = if (family$family != "poisson") fixed(0.6))
    shaped <- sample_posterior(shaped, model, chains = 1, iter = 4, seed = 1)
    expected <- matrix(4, 2, 1e5)
    set.seed(1)
    drawn <- internal("add_residual")(shaped, expected)
    variance <- internal("response_of")(shaped$bound)$variance(shaped, expected)[1, 1]
    expect_equal(mean((drawn - 4)^2), variance, tolerance = 0.05)
  }
})

test_that("models without such an R squared say why", {
  y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  rate <- sample_posterior(as_release(c(4.2, 6.1), y, mech_laplace(epsilon = 1), n = 10), model_bernoulli(), chains = 1, iter = 40, seed = 1)
  expect_error(bayes_R2(rate), class = "noiseaware_error_method")
  graded <- stat_crossprod(y ~ x, list(y = c("low", "mid", "high"), x = c(-1, 1)))
  set.seed(4)
  levels <- simulate_release(model_glm(family = "categorical"), graded, mech_laplace(scale = 2), n = 30)
  levels <- sample_posterior(levels, model_glm(family = "categorical"), chains = 1, iter = 20, seed = 1)
  expect_error(bayes_R2(levels), class = "noiseaware_error_method")
})

test_that("R squared of several sites is that of their union", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-4, 4)), outside = "none")
  set.seed(1)
  sites <- Map(function(n, shift) {
    x <- rnorm(n, shift)
    simulate_release(data.frame(y = x / 2 + shift + rnorm(n, 0, 0.7), x = x), st, mech_laplace(epsilon = 20))
  }, c(a = 60, b = 180), c(0, 1))
  fit <- without_words(sample_posterior(sites, model_lm(), pool = "none", chains = 1, iter = 600, warmup = 300, seed = 1))
  # within a site b^2 var(x), between sites the variance of the two means
  of <- lapply(fit$fits, as.matrix)
  means <- sapply(of, function(d) d[, "(Intercept)"] + d[, "x"] * d[, "mean[x]"])
  within <- sapply(of, function(d) d[, "x"]^2 * d[, "cov[x,x]"])
  residual <- sapply(of, function(d) d[, "sigma"]^2)
  explained <- drop(within %*% c(1, 3)) / 4 + 3 / 16 * (means[, 1] - means[, 2])^2
  exact <- explained / (explained + drop(residual %*% c(1, 3)) / 4)
  got <- bayes_R2(fit, records = 4000, seed = 1)
  expect_lt(max(abs(got - exact)), 5 * max(exact * (1 - exact)) * sqrt(2 / 4000))
  expect_lt(abs(mean(got - exact)), 0.003)
  expect_error(bayes_R2(fit, data.frame(x = 1:3)), "`newdata` must be NULL", class = "noiseaware_error_argument")
})

test_that("R squared of groups is that of rows which name their group", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(g = c("p", "q", "r"))
  st <- list(size = stat_counts(~ g, levels = levels), totals = stat_by(stat_crossprod(y ~ x, list(y = c(-4, 4), x = c(-4, 4)), outside = "none"), levels = levels))
  set.seed(1)
  data <- data.frame(g = rep(levels$g, c(40, 50, 60)), x = rnorm(150))
  data$y <- c(p = -1, q = 0, r = 1)[data$g] + data$x / 2 + rnorm(150, 0, 0.7)
  rel <- simulate_release(data, st, list(size = mech_exact(), totals = mech_laplace(epsilon = 20)))
  fit <- without_words(sample_posterior(rel, model_lm(y ~ x + (1 | g)), chains = 1, iter = 500, seed = 1))
  rows <- data.frame(x = c(-1, 0, 1, 2), g = c("r", "p", "q", "p"))
  draws <- as.matrix(fit)
  expected <- sapply(1:4, function(i) draws[, sprintf("(Intercept)[%s]", rows$g[i])] + draws[, "x"] * rows$x[i])
  explained <- apply(expected, 1, var)
  expect_equal(bayes_R2(fit, rows), unname(explained / (explained + draws[, "sigma"]^2)))
  expect_error(bayes_R2(fit, rows["x"]), "names the group", class = "noiseaware_error_data")
  # of all records: within groups, and between the means of the three
  of <- lapply(levels$g, function(g) as.matrix(posterior::as_draws_matrix(internal("as_fit_of_site")(fit, g)$draws)))
  means <- sapply(of, function(d) d[, "(Intercept)"] + d[, "x"] * d[, "mean[x]"])
  share <- c(40, 50, 60) / 150
  explained <- drop(sapply(of, function(d) d[, "x"]^2 * d[, "cov[x,x]"]) %*% share + (means - drop(means %*% share))^2 %*% share)
  exact <- explained / (explained + draws[, "sigma"]^2)
  expect_lt(max(abs(bayes_R2(fit, records = 3000, seed = 1) - exact)), 5 * max(exact * (1 - exact)) * sqrt(2 / 3000))
  rows$g[1] <- "other"
  expect_error(bayes_R2(fit, rows), "must be groups of the fit", class = "noiseaware_error_data")
})
