# Models with theta integrated out (the hook `marginal`): gradients, whatever is known, factors
# among the covariates; one variable against quadrature.

marginal_at <- function(bound, n, theta) {
  function(complete) .Call(internal("ffi_model_marginal"), bound$spec, complete, as.double(n), theta)
}

# the complete-data statistic of n records of the model, and their theta
records_of <- function(bound, n) {
  stream <- internal("new_stream")(c(11, 12))
  prior <- .Call(internal("ffi_model_prior"), bound$spec, stream, 1L)
  records <- .Call(internal("ffi_model_records"), bound$spec, prior$theta, as.integer(n), prior$state)$records
  list(theta = drop(prior$theta), complete = .Call(internal("ffi_model_complete"), bound$spec, records))
}

expect_gradient <- function(f, at, slope, label) {
  found <- vapply(seq_along(at), function(j) {
    h <- 1e-5 * max(1, abs(at[j])) * (seq_along(at) == j)
    (f(at + h) - f(at - h)) / (2 * sum(h))
  }, 0)
  expect_equal(slope, found, tolerance = 1e-5, label = label)
}

cov2 <- matrix(c(1.2, 0.3, 0.3, 0.8), 2)
marginal_models <- list(
  conjugate = model_lm(prior = prior_nig()), kept = model_lm(prior = prior_normal(0.5, 2), sigma = prior_inverse_gamma(4, 5)),
  sigma_fixed = model_lm(prior = prior_normal(0.5, 2), sigma = fixed(1.5)), nig_sigma_fixed = model_lm(prior = prior_nig(0.5, 2), sigma = fixed(1.5)),
  beta_fixed = model_lm(prior = fixed(1:5 / 4), sigma = prior_inverse_gamma(4, 5)),
  all_fixed = model_lm(prior = fixed(1:5 / 4), sigma = fixed(1.5), covariates = fixed(list(mean = c(0.3, -0.2), cov = cov2))),
  mean_fixed = model_lm(prior = prior_nig(), covariates = list(mean = fixed(c(0.3, -0.2)), cov = prior_niw(0, 1, 2, 6))),
  cov_fixed = model_lm(prior = prior_nig(), covariates = list(mean = prior_niw(0, 1), cov = fixed(cov2)))
)

test_that("gradients are those of finite differences, factors among the covariates", {
  st <- stat_crossprod(y ~ x1 + g + x2, bounds = list(y = c(-4, 7), x1 = c(-1, 3), x2 = c(-2, 2), g = c("a", "b", "c")))
  for (name in names(marginal_models)) {
    bound <- internal("bind_model")(marginal_models[[name]], st)
    made <- records_of(bound, 30)
    f <- marginal_at(bound, 30, made$theta)
    value <- f(made$complete)
    expect_true(is.finite(value[1]))
    size <- length(made$complete)
    expect_gradient(function(c) f(c)[1], made$complete, value[1 + seq_len(size)], name)
    expect_length(value, 1 + size + (name == "kept"))
    if (name == "kept") {
      at <- nrow(bound$design) + 1 # log sigma comes after the coefficients
      g <- function(s) marginal_at(bound, 30, replace(made$theta, at, s))(made$complete)[1]
      expect_gradient(g, made$theta[at], value[2 + size], name)
    }
  }
})

normal_models <- list(
  nig = model_normal(prior = prior_nig(0.5, 2, 3, 4)), mean_fixed = model_normal(prior = list(mean = fixed(0.4), sd = prior_inverse_gamma(3, 4))),
  sd_fixed = model_normal(prior = list(mean = prior_normal(0.3, 0.7), sd = fixed(1.2))),
  kept = model_normal(prior = list(mean = prior_normal(0.3, 0.7), sd = prior_inverse_gamma(3, 4)))
)

test_that("one variable: gradients, and the integral by quadrature", {
  st <- stat_sums(~ x + I(x^2), bounds = list(x = c(-4, 7)), rescale = FALSE)
  for (name in names(normal_models)) {
    bound <- internal("bind_model")(normal_models[[name]], st)
    centre <- bound$spec$fields$centre
    complete <- c(3, 25)
    theta <- drop(.Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(1, 2)), 1L)$theta)
    f <- marginal_at(bound, 8, theta)
    expect_gradient(function(c) f(c)[1], complete, f(complete)[2:3], name)
    # over what is not known
    prior <- function(theta) drop(.Call(internal("ffi_model_log_prior"), bound$spec, theta))
    integral <- function(complete, log_sd) {
      mean <- if (name == "mean_fixed") 0.4 else seq(-8, 9, length.out = 2001)
      sum(vapply(log_sd, function(l) {
        d <- mean - centre
        likelihood <- -8 * l - (complete[2] - 2 * d * complete[1] + 8 * d^2) / (2 * exp(2 * l))
        sum(exp(prior(rbind(mean, l)) + likelihood))
      }, 0))
    }
    log_sd <- if (name == "sd_fixed") log(1.2) else if (name == "kept") theta[2] else seq(-1.5, 3, length.out = 1001)
    other <- c(-2, 40)
    expect_equal(f(complete)[1] - f(other)[1], log(integral(complete, log_sd)) - log(integral(other, log_sd)), tolerance = 1e-7, label = name)
    if (name == "kept") {
      g <- function(l) marginal_at(bound, 8, c(0, l))(complete)[1]
      expect_gradient(g, 0.3, marginal_at(bound, 8, c(0, 0.3))(complete)[4], name)
      expect_equal(g(0.3) - g(0.8), log(integral(complete, 0.3)) - log(integral(complete, 0.8)), tolerance = 1e-7)
    }
  }
})
