# Priors: what is accepted, and what it becomes once dimensions are known.

test_that("priors keep their numbers", {
  expect_identical(unclass(prior_normal(1L, 2))[c("mean", "sd")], list(mean = 1, sd = 2))
  expect_identical(prior_nig(c(a = 1, b = 2), 3, 4, 5)$mean, c(a = 1, b = 2))
  expect_identical(prior_normal(sd = c(age = 2L))$sd, c(age = 2))
  expect_identical(unclass(prior_student_t(4, 1, 2))[c("df", "mean", "sd")], list(df = 4, mean = 1, sd = 2))
  expect_null(prior_normal()$sd)
  expect_identical(prior_half_t(scale = 2)[c("df", "scale")], list(df = 3, scale = 2))
  expect_null(prior_half_normal()$scale)
  expect_null(prior_exponential()$rate)
  expect_identical(unclass(prior_lognormal(-2L, 3))[c("meanlog", "sdlog")], list(meanlog = -2, sdlog = 3))
  precision <- matrix(c(2, 1, 1, 2), 2)
  expect_identical(prior_nig(precision = precision)$precision, precision)
  expect_identical(prior_nig(precision = diag(2L))$precision, diag(2))
  expect_null(prior_nig()$mean)
  expect_identical(prior_niw()$kappa, 1 / 16)
  expect_identical(prior_niw(scale = 2, df = 4)$scale, 2)
  expect_identical(prior_dirichlet(c(1, 2, 3))$alpha, c(1, 2, 3))
  expect_identical(prior_inverse_gamma(2, 3)$rate, 3)
  expect_identical(fixed(list(mean = 1:2, cov = diag(2)))$value, list(mean = 1:2, cov = diag(2)))
  for (prior in list(prior_normal(0, 1), prior_nig(), prior_niw(), prior_dirichlet(), prior_inverse_gamma(1, 1), fixed(1),
                     prior_student_t(), prior_half_normal(), prior_half_t(), prior_exponential(), prior_lognormal())) {
    expect_s3_class(prior, "noiseaware_prior")
  }
})

test_that("one number stands for all coordinates, a vector for a diagonal", {
  expand_prior <- internal("expand_prior")
  expand_matrix <- internal("expand_matrix")
  expect_identical(expand_prior(2, 3, "mean"), c(2, 2, 2))
  expect_identical(expand_prior(c(1, 2, 3), 3, "mean"), c(1, 2, 3))
  expect_error(expand_prior(c(1, 2), 3, "mean"), class = "noiseaware_error_prior")
  expect_identical(expand_matrix(2, 3, "scale"), diag(2, 3))
  expect_identical(expand_matrix(c(1, 2), 2, "scale"), diag(c(1, 2)))
  expect_identical(expand_matrix(5, 1, "scale"), matrix(5))
  named <- matrix(c(2, 1, 1, 2), 2, dimnames = list(c("a", "b"), c("a", "b")))
  expect_identical(expand_matrix(named, 2, "scale"), unname(named))
  expect_error(expand_matrix(diag(2), 3, "scale"), class = "noiseaware_error_prior")
})

test_that("bad hyperparameters are refused where they are given", {
  skip_on_cran()
  bad <- alist(
    prior_normal(0, -1), prior_normal(0, 0), prior_normal(0, c(1, NA)), prior_normal(Inf, 1),
    prior_normal("0", 1), prior_normal(numeric(), 1), prior_normal(matrix(0, 2, 1), 1),
    prior_normal(0, diag(2)), prior_normal(factor(1), 1),
    prior_normal(0, c(a = 1, a = 2)), prior_normal(c(a = 1, 2), 1),
    prior_student_t(df = 0), prior_student_t(df = c(3, 4)), prior_student_t(sd = -1), prior_student_t(mean = NA),
    prior_half_normal(0), prior_half_normal(c(1, 2)), prior_half_t(df = -1), prior_half_t(scale = Inf), prior_exponential(0),
    prior_exponential("1"), prior_lognormal(Inf), prior_lognormal(c(1, 2)), prior_lognormal(sdlog = 0),
    prior_nig(precision = -1), prior_nig(precision = c(1, 0)), prior_nig(precision = matrix(c(1, 2, 2, 1), 2)),
    prior_nig(precision = matrix(c(1, 0, 0.5, 1), 2)), prior_nig(precision = matrix(1, 2, 3)),
    prior_nig(precision = matrix(c(1, NaN, NaN, 1), 2)), prior_nig(precision = matrix("a")), prior_nig(precision = matrix(1, 0, 0)),
    prior_nig(shape = 0), prior_nig(rate = c(1, 2)), prior_nig(shape = NA), prior_nig(rate = TRUE),
    prior_niw(kappa = 0), prior_niw(kappa = NULL), prior_niw(df = -1), prior_niw(scale = 0), prior_niw(scale = matrix(0, 2, 2)),
    prior_inverse_gamma(0, 1), prior_inverse_gamma(1, Inf), prior_dirichlet(0), prior_dirichlet(c(1, -1)), prior_dirichlet(numeric()),
    fixed(NULL), fixed(NA), fixed("1"), fixed(list()), fixed(list(1, "a")), fixed(c(1, Inf))
  )
  for (call in bad) expect_error(eval(call), class = "noiseaware_error_prior", label = deparse(call))
})

test_that("priors print", {
  local_reproducible_output()
  expect_snapshot({
    prior_normal(0, 2)
    prior_normal()
    prior_normal(mean = c(age = 0), sd = c(age = 2, lwt = 1))
    prior_student_t(df = 4)
    prior_half_normal()
    prior_half_t(scale = 2)
    prior_exponential(rate = 0.5)
    prior_lognormal()
    prior_lognormal(2, 0.5)
    prior_nig()
    prior_nig(mean = c(1, 2, 3), precision = diag(3), shape = 2, rate = 1 / 3)
    prior_niw()
    prior_inverse_gamma(2, 0.5)
    prior_dirichlet(1:9)
    fixed(sqrt(2))
    fixed(list(mean = c(0.9, -1.17), cov = diag(2)))
  })
})

# ---- coefficients by name, and defaults ------------------------------------------------

named <- stat_crossprod(y ~ x + g, bounds = list(y = c(0, 20), x = c(2, 10), g = c("a", "b", "c")))
fields_of <- function(model) internal("bind_model")(model, named)$spec$fields

test_that("coefficients take values by name, the rest have the default", {
  # half-widths 10 and 4, two covariates: the intercept's is h_y, the others are in units of h_y / 2 = 5
  default <- c(10, 5 * c(4 / (sqrt(2) * 4), 2 / sqrt(2), 2 / sqrt(2)))
  fields <- fields_of(model_lm(prior = prior_normal(sd = c(gb = 7, x = 3))))
  expect_equal(matrix(fields$beta_precision, 4), diag(1 / c(default[1], 3, 7, default[4])^2))
  expect_identical(fields$beta_mean, numeric(4))
  expect_equal(fields$sigma_lognormal, c(log(2.5), 0.8))
  # the mean of the response at x = 6, from its middle
  fields <- fields_of(model_lm(prior = prior_normal(mean = c("(Intercept)" = 12, x = -1))))
  expect_equal(fields$beta_mean, c(2, -1, 0, 0))
  expect_equal(matrix(fields$beta_precision, 4), diag(1 / default^2))
  # an sd of the intercept belongs to the intercept itself, independent of the slopes
  fields <- fields_of(model_lm(prior = prior_normal(mean = c("(Intercept)" = 12, x = -1), sd = c("(Intercept)" = 5))))
  expect_equal(fields$beta_mean, c(12 - 10 - 6, -1, 0, 0)) # the response at x = 6 has the mean 12 - 6
  covariance <- diag(c(25, default[-1]^2))
  covariance[1:2, 1] <- c(25 + 36 * default[2]^2, 6 * default[2]^2)
  covariance[1, 2] <- covariance[2, 1]
  expect_equal(solve(matrix(fields$beta_precision, 4)), covariance)
  # left open, its mean puts the response into the middle
  expect_equal(fields_of(model_lm(prior = prior_normal(mean = c(x = -1), sd = 5)))$beta_mean, c(0, -1, 0, 0))
  full <- c("(Intercept)" = 1, x = 2, gb = 3, gc = 4)
  expect_identical(fields_of(model_lm(prior = prior_normal(full[c(3, 1, 4, 2)], 1))), fields_of(model_lm(prior = prior_normal(unname(full), 1))))
  expect_identical(fields_of(model_lm(prior = prior_nig(full[c(3, 1, 4, 2)]))), fields_of(model_lm(prior = prior_nig(unname(full)))))
  student <- fields_of(model_lm(prior = prior_student_t(5, sd = c(x = 3))))
  expect_identical(student[c("beta_df", "beta_first")], list(beta_df = 5, beta_first = c(1, 0, 0, 0)))
  expect_equal(student$beta_scale, c(default[1], 3, default[3:4]))
  for (prior in list(prior_normal(sd = c(z = 1)), prior_student_t(mean = c(x = 1, g = 1)), prior_nig(mean = c(x = 1, gb = 2, gc = 3, z = 4)),
                     prior_normal(0, c(1, 2)))) {
    expect_error(fields_of(model_lm(prior = prior)), class = "noiseaware_error_prior")
  }
})

test_that("default scales of sigma follow the bounds", {
  for (sigma in list(prior_half_normal(), prior_half_t(5), prior_exponential(), prior_lognormal(sdlog = 2))) {
    fields <- fields_of(model_lm(prior = prior_normal(), sigma = sigma))
    expect_identical(fields[grep("^sigma", names(fields))], switch(class(sigma)[1],
      prior_half_normal = list(sigma_half_normal = 5), prior_half_t = list(sigma_half_t = c(5, 5)),
      prior_exponential = list(sigma_exponential = 1 / 5), prior_lognormal = list(sigma_lognormal = c(log(2.5), 2))))
  }
  expect_identical(fields_of(model_lm(prior = prior_nig()))$sigma_inverse_gamma, c(3 / 4, 2^2))
  expect_equal(fields_of(model_lm(prior = fixed(1:4)))$sigma_lognormal, c(log(2.5), 0.8))
})

# share of responses between the bounds, and of a number's values; or the linear predictor's sd
prior_predictive <- function(model, numbers, factors, response = c(-3, 9)) {
  covariates <- c(rep(list(c(-1, 5)), numbers), lapply(factors, function(levels) letters[seq_len(levels)]))
  names(covariates) <- paste0("x", seq_along(covariates))
  st <- stat_crossprod(stats::reformulate(names(covariates), "y"), c(list(y = response), covariates))
  bound <- internal("bind_model")(model, st)
  theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(5, 1)), 700L)$theta
  stream <- internal("new_stream")(c(6, 1))
  records <- lapply(seq_len(ncol(theta)), function(i) {
    drawn <- .Call(internal("ffi_model_records"), bound$spec, theta[, i], 8L, stream)
    stream <<- drawn$state
    drawn$records
  })
  list(bound = bound, theta = theta, records = records)
}

# P(sd <= q) for the default prior, q in units of the bounds' width
below_sd <- function(q) stats::pgamma((1 / (10 * q))^2, 3 / 4, lower.tail = FALSE)

# the same of the residual sd, where the coefficients are not in units of it
below_residual_sd <- function(q) stats::plnorm(q, log(1 / 8), 0.8)

test_that("default priors hold likely what records within the bounds can be", {
  skip_on_cran()
  below <- function(x, ...) expect_gt(suppressWarnings(ks.test(x, ...))$p.value, 1e-6)
  prior_of <- function(model, statistic) {
    bound <- internal("bind_model")(model, statistic)
    internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(7, 1)), 4000L)$theta)
  }
  expect_lt(below_sd(0.06), 0.05)
  expect_gt(below_sd(0.5), 0.85)
  # the mean has a Student-t distribution of 1.5 degrees of freedom
  below_mean <- function(t) stats::pt(t / (4 * 2 / 10 / sqrt(3 / 4)), 3 / 2)
  one <- prior_of(model_normal(), stat_sums(~ x, list(x = c(2, 12))))
  below(one[, "sd"] / 10, below_sd)
  below((one[, "mean"] - 7) / 5, below_mean)
  for (p in c(1, 2, 5)) {
    names <- paste0("x", seq_len(p))
    bounds <- stats::setNames(rep(list(c(-4, 16)), p), names)
    st <- stat_crossprod(stats::reformulate(names, "y"), c(list(y = c(0, 5)), bounds))
    lm <- prior_of(model_lm(prior = prior_nig()), st)
    below(lm[, "sigma"] / 5, below_sd)
    apart <- prior_of(model_lm(), st)
    below(apart[, "sigma"] / 5, below_residual_sd)
    below(apart[, "x1"], "pnorm", 0, 2 * 2.5 / (sqrt(p) * 10))
    for (draws in list(lm, prior_of(model_mvnormal(), stat_sums(stats::reformulate(names), bounds)))) {
      at <- function(j, k) draws[, sprintf("cov[%s,%s]", names[k], names[j])]
      for (j in seq_len(p)) below(sqrt(at(j, j)) / 20, below_sd)
      below((draws[, "mean[x1]"] - 6) / 10, below_mean)
      # the density of correlations is (1 - r^2)^(-1 / 4)
      if (p > 1) below((1 + at(1, 2) / sqrt(at(1, 1) * at(2, 2))) / 2, "pbeta", 3 / 4, 3 / 4)
      if (p > 1) below((1 + at(p - 1, p) / sqrt(at(p, p) * at(p - 1, p - 1))) / 2, "pbeta", 3 / 4, 3 / 4)
    }
  }
})

test_that("intervals of a mean cover it where a noisy sum alone was published", {
  skip_on_cran()
  fields <- internal("bind_model")(model_normal(), stat_sums(~ x, list(x = c(0, 1))))$spec$fields
  clamped <- function(mean, sd) {
    x <- outer(sd, stats::qnorm(ppoints(400))) + mean
    x[] <- pmin(pmax(x, 0), 1)
    list(mean = rowMeans(x), variance = rowMeans(x^2) - rowMeans(x)^2)
  }
  # of the sum of 100 records, with Laplace noise of scale 1
  density_of <- function(sum, at) {
    sd <- sqrt(100 * at$variance + 2)
    stats::dnorm(outer(sum, 100 * at$mean, "-") / rep(sd, each = length(sum))) / rep(sd, each = length(sum))
  }
  means <- seq(-2.5, 3.5, 0.02)
  grid <- expand.grid(mean = means, log_sd = seq(log(0.01), log(5), length.out = 40))
  prior <- stats::dnorm(grid$mean, fields$prior_mean, exp(grid$log_sd) / sqrt(fields$prior_precision)) *
    exp(-2 * fields$shape * grid$log_sd - fields$rate * exp(-2 * grid$log_sd))
  sums <- seq(-5, 105, 1)
  posterior <- sweep(density_of(sums, clamped(grid$mean, exp(grid$log_sd))), 2, prior, "*")
  covers <- vapply(seq_along(sums), function(i) {
    below <- cumsum(rowSums(matrix(posterior[i, ], length(means))))
    below <- below / below[length(below)]
    means >= means[which(below >= 0.025)[1L]] & means <= means[which(below >= 0.975)[1L]]
  }, logical(length(means)))
  at <- which(means >= 0.2 & means <= 0.8)
  coverage <- vapply(c(0.05, 0.1, 0.2, 0.29, 0.4), function(sd) {
    weight <- t(density_of(sums, clamped(means[at], rep(sd, length(at)))))
    mean(rowSums(weight * covers[at, ]) / rowSums(weight))
  }, 0)
  expect_true(all(coverage > c(0.95, 0.95, 0.93, 0.91, 0.85)), label = paste(round(coverage, 3), collapse = " "))
  expect_gt(mean(coverage), 0.93)
  expect_lt(mean(coverage), 0.97)
})

test_that("default priors do not get tighter or wider with more covariates", {
  skip_on_cran() # takes long; `make test` runs it
  cases <- list(list(1, NULL), list(1, 2), list(4, c(2, 3)), list(8, c(2, 2, 3, 5)), list(12, NULL), list(0, c(2, 3, 4)))
  for (model in list(model_lm(), model_lm(prior = prior_normal()), model_lm(prior = prior_normal(), sigma = prior_exponential()))) {
    for (case in cases) {
      records <- do.call(rbind, prior_predictive(model, case[[1]], case[[2]])$records)
      inside <- mean(records[, 1] > -3 & records[, 1] < 9)
      expect_gt(inside, if (inherits(model$prior, "prior_nig")) 0.35 else 0.28)
      expect_lt(inside, 0.65)
      if (case[[1]] > 0) expect_equal(mean(records[, 2] > -1 & records[, 2] < 5), 0.57, tolerance = 0.1)
    }
  }
  # covariates within their bounds
  for (case in cases) {
    drawn <- prior_predictive(model_logistic(), case[[1]], case[[2]], c("no", "yes"))
    beta <- internal("reported")(drawn$bound, drawn$theta)[, seq_len(nrow(drawn$bound$design))]
    eta <- unlist(lapply(seq_along(drawn$records), function(i) cbind(1, pmin(pmax(drawn$records[[i]][, -1], -1), 5)) %*% beta[i, ]))
    expect_gt(stats::mad(eta), 2.7)
    expect_lt(stats::mad(eta), 5.1)
  }
})

test_that("a prior that is proper on paper alone is refused by name", {
  rel <- as_release(c(3, 2, 20, 10, 30), stat_crossprod(y ~ x, list(y = c(-5, 5), x = c(-5, 5))), mech_laplace(epsilon = 1), 50)
  quick <- function(...) sample_posterior(rel, model_lm(...), chains = 1, iter = 20, seed = 1)
  refused <- function(text, ...) expect_error(suppressWarnings(quick(...)), text, class = "noiseaware_error_prior")
  refused("prior of sigma cannot be drawn from: [0-9]+% of 200 draws", prior = prior_normal(0, 1), sigma = prior_inverse_gamma(1e-3, 1e-3))
  refused("prior of \\(Intercept\\), x, and sigma cannot", prior = prior_nig(0, 1e-6, 1e-3, 1e-3))
  refused("prior of \\(Intercept\\) and x cannot", prior = prior_student_t(0.001))
  # wide ones are the analyst's business
  expect_s3_class(suppressWarnings(quick(prior = prior_student_t(1), sigma = prior_inverse_gamma(0.1, 0.1))), "noiseaware_fit")
})
