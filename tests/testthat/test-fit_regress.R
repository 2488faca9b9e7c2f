# Regressions read off a joint fit: algebra of each draw, so the oracles are exact.

ranges <- list(bwt = c(500, 5500), age = c(14, 50), lwt = c(80, 260))
set.seed(1)
release <- simulate_release(MASS::birthwt, stat_crossprod(bwt ~ age + lwt, ranges), mech_laplace(epsilon = 10))
joint <- suppressWarnings(sample_posterior(release, model_mvnormal(), chains = 2, iter = 100, seed = 1))
rows <- function(fit) internal("parameter_matrix")(fit)

# records whose mean and covariance (divisor n) equal a draw's
records_of <- function(draw, names) {
  cov <- outer(names, names, Vectorize(function(a, b) draw[[intersect(sprintf(c("cov[%s,%s]", "cov[%s,%s]"), c(a, b), c(b, a)), names(draw))[1L]]]))
  z <- scale(withr::with_seed(1, matrix(rnorm(40 * length(names)), 40)), scale = FALSE)
  z <- z %*% solve(chol(crossprod(z) / 40)) %*% chol(cov)
  as.data.frame(sweep(z, 2L, draw[sprintf("mean[%s]", names)], "+"), nm = names) |> stats::setNames(names)
}

test_that("each draw is the regression of records with its means and covariances", {
  for (formula in list(bwt ~ age + lwt, lwt ~ bwt, age ~ 1)) {
    read <- regress(joint, formula)
    for (k in c(1, 37, 100)) {
      data <- records_of(rows(joint)[k, ], c("bwt", "age", "lwt"))
      reference <- stats::lm(formula, data)
      draw <- rows(read)[k, ]
      expect_equal(draw[names(coef(reference))], coef(reference), tolerance = 1e-8)
      expect_equal(draw[["sigma"]], sqrt(mean(resid(reference)^2)), tolerance = 1e-8)
      expect_equal(draw[["R2"]], summary(reference)$r.squared, tolerance = 1e-8)
      for (v in all.vars(formula)[-1L]) expect_equal(draw[[sprintf("mean[%s]", v)]], mean(data[[v]]), tolerance = 1e-8)
    }
  }
})

test_that("a linear regression's own formula gives its own draws back, and others go through its joint distribution", {
  skip_on_cran()
  fit <- suppressWarnings(sample_posterior(release, model_lm(), chains = 1, iter = 60, seed = 2))
  own <- rows(regress(fit, bwt ~ age + lwt))
  expect_equal(own[, colnames(rows(fit))], rows(fit), tolerance = 1e-8)
  # there and back again
  turned <- regress(fit, age ~ lwt + bwt)
  expect_equal(rows(regress(turned, bwt ~ age + lwt))[, colnames(rows(fit))], rows(fit), tolerance = 1e-8)
  expect_identical(colnames(rows(regress(fit, lwt ~ .)))[1:3], c("(Intercept)", "bwt", "age"))
})

test_that("it is a fit of its own kind", {
  read <- regress(joint, lwt ~ age)
  expect_named(coef(read), c("(Intercept)", "age"))
  expect_identical(dim(confint(read, variables = "all")), c(6L, 2L))
  at <- predict(read, data.frame(age = 30))
  expect_equal(unname(unlist(at)[1L]), mean(rows(read)[, "(Intercept)"] + 30 * rows(read)[, "age"]), tolerance = 1e-8, ignore_attr = TRUE)
  expect_output(print(read), "regress: derived from the joint posterior.*5 of the 9 numbers.*Laplace noise, epsilon = 10")
  expect_identical(read$troubles, joint$troubles)
  expect_error(extend(read, 10), class = "noiseaware_error_argument")
  expect_error(log_evidence(read), class = "noiseaware_error_method")
  expect_error(test_hypothesis(read, "age"), class = "noiseaware_error_argument")
  expect_error(rstantools::prior_summary(read), class = "noiseaware_error_argument")
  expect_error(update(read, iter = 10), class = "noiseaware_error_argument")
})

test_that("what cannot be read off is refused", {
  skip_on_cran()
  expect_error(regress(joint, bwt ~ height), "height", class = "noiseaware_error_variables")
  expect_error(regress(joint, bwt ~ age:lwt), class = "noiseaware_error_formula")
  expect_error(regress(1, bwt ~ age), class = "noiseaware_error_argument")
  fixed <- suppressWarnings(sample_posterior(release, model_lm(sigma = fixed(700), prior = prior_normal()), chains = 1, iter = 20, seed = 1))
  expect_error(regress(fixed, bwt ~ age), "fixed", class = "noiseaware_error_argument")
  smoke <- stat_crossprod(bwt ~ smoke, list(bwt = c(500, 5500), smoke = c("0", "1")))
  factors <- suppressWarnings(sample_posterior(simulate_release(MASS::birthwt, smoke, mech_laplace(epsilon = 10)), model_lm(), chains = 1, iter = 20, seed = 1))
  expect_error(regress(factors, bwt ~ 1), "factors", class = "noiseaware_error_argument")
})

test_that("names that other draws have are refused for covariates, and `.` may stand for none", {
  of <- function(formula, variables, n = 50, ...) {
    st <- stat_crossprod(formula, stats::setNames(rep(list(c(-3, 3)), length(variables)), variables))
    rel <- as_release(stats::setNames(seq_along(st$components), st$components), st, mech_gaussian(sd = 2), n, neighbours = if (is.null(n)) "add_remove" else "replace")
    suppressMessages(suppressWarnings(sample_posterior(rel, model_mvnormal(), method = "augment", chains = 1, iter = 100, seed = 1, ...)))
  }
  share <- of(y ~ R2, c("y", "R2"))
  expect_error(regress(share, y ~ R2), "R2", class = "noiseaware_error_variables")
  expect_true("R2" %in% posterior::variables(regress(share, R2 ~ y)$draws))
  expect_error(regress(of(y ~ n, c("y", "n"), NULL, prior_n = prior_n("poisson", mean = 50)), y ~ n), "`n`", class = "noiseaware_error_variables")
  expect_identical(posterior::variables(regress(of(y ~ 1, "y"), y ~ .)$draws), c("(Intercept)", "sigma", "R2"))
})

test_that("update() samples another formula from the whole release", {
  skip_on_cran()
  fit <- suppressMessages(suppressWarnings(sample_posterior(release, model_lm(bwt ~ age), chains = 1, iter = 60, seed = 3)))
  other <- suppressWarnings(update(fit, formula. = . ~ . + lwt))
  expect_identical(rows(other), rows(suppressWarnings(sample_posterior(release, model_lm(bwt ~ age + lwt), chains = 1, iter = 60, seed = 3))))
  expect_error(update(fit, formula. = . ~ lwt, model = model_lm()), class = "noiseaware_error_argument")
  expect_error(update(joint, formula. = . ~ lwt), class = "noiseaware_error_formula")
})
