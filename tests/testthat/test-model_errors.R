# Student-t errors: the hooks of src/model/lm_errors.c and gamma_shape.c against formulas in R, posteriors by quadrature, limits, what refuses them.

bound_of <- function(model, statistic) internal("bind_model")(model, statistic)
wide <- list(y = c(-4, 6), x = c(-1, 3))
line <- stat_crossprod(y ~ x, wide)
plain <- model_lm(prior = prior_normal(0, 2), sigma = prior_exponential(1), errors = student())

# theta: alpha, slope, log sigma, log df, mean, log sd of x; df always among them
theta_of <- function(bound, beta, sigma, df) {
  centre <- bound$spec$fields$centre
  c(beta[1] - centre[1] + beta[2] * centre[2], beta[2], log(sigma), log(df), 1, log(0.8))
}
fitted_with <- function(records, beta) (records[, 1] - beta[1] - beta[2] * records[, 2])
stream <- function(k) internal("new_stream")(c(1, k))

test_that("records have t errors, refreshed and moved ones too, and moves keep places", {
  skip_on_cran()
  bound <- bound_of(plain, line)
  beta <- c(0.5, -1)
  for (pair in list(c(3, 5), c(5, 3), c(1.2, 30), c(1.2, 1.7), c(200, 2.5))) {
    theta <- theta_of(bound, beta, 0.7, pair[1])
    there <- theta_of(bound, -beta, 1.4, pair[2])
    drawn <- .Call(internal("ffi_model_records"), bound$spec, theta, 40000L, stream(1))
    r <- fitted_with(drawn$records, beta) / 0.7
    expect_gt(ks.test(r, "pt", pair[1])$p.value, 1e-6)
    moved <- .Call(internal("ffi_model_move"), bound$spec, theta, there, drawn$records, stream(2))
    to <- fitted_with(moved, -beta) / 1.4
    expect_gt(ks.test(to, "pt", pair[2])$p.value, 1e-6)
    expect_gt(cor(pt(r, pair[1]), pt(to, pair[2])), 0.9)
    # as often from below to above as back: a move has the same joint distribution of both ends as the one the other way
    expect_lt(abs(mean(r > 1 & to < 0.9) - mean(r < -1 & to > -0.9)), 5 * sqrt(2e-2 / 40000))
    for (rho in c(0.5, 0.95)) {
      again <- .Call(internal("ffi_model_refresh"), bound$spec, theta, rho, drawn$records, stream(3))$records
      s <- fitted_with(again, beta) / 0.7
      expect_gt(ks.test(s, "pt", pair[1])$p.value, 1e-6)
      forth <- sum(abs(r) < 1 & abs(s) > 2)
      back <- sum(abs(s) < 1 & abs(r) > 2)
      expect_lt(abs(forth - back), 5 * sqrt(forth + back + 1))
    }
  }
  same <- .Call(internal("ffi_model_move"), bound$spec, theta, replace(there, 4, theta[4]), drawn$records, stream(2))
  expect_equal(fitted_with(same, -beta) / 1.4, r, tolerance = 1e-9)
})

test_that("a move's joint distribution of both ends is the same the other way", {
  skip_on_cran()
  bound <- bound_of(plain, line)
  share <- function(from, to, k) {
    theta <- theta_of(bound, c(0, 0), 1, from)
    x <- .Call(internal("ffi_model_records"), bound$spec, theta, 200000L, stream(k))$records
    moved <- .Call(internal("ffi_model_move"), bound$spec, theta, theta_of(bound, c(0, 0), 1, to), x, stream(k + 1))
    cuts <- c(0, 0.3, 1, 2.5, Inf)
    list(old = cut(abs(x[, 1]), cuts), new = cut(abs(moved[, 1]), cuts))
  }
  for (pair in list(c(2, 6), c(1, 1.5))) {
    forth <- share(pair[1], pair[2], 11)
    back <- share(pair[2], pair[1], 21)
    one <- table(forth$old, forth$new)
    other <- table(back$new, back$old)
    expect_lt(max(abs(one - other) / sqrt(one + other + 1)), 5)
  }
})

test_that("the density of records is that of t errors, also where df is large", {
  bound <- bound_of(plain, line)
  set.seed(1)
  x <- cbind(rnorm(300, 0, 3), rnorm(300))
  cases <- list(c(0.7, 1), c(2, 4), c(1, 50), c(1.3, 1e4), c(1.3, 1e8))
  said <- vapply(cases, function(case) .Call(internal("ffi_model_log_density"), bound$spec, theta_of(bound, c(1, 2), case[1], case[2]), x), 0)
  exact <- vapply(cases, function(case) sum(dt((fitted_with(x, c(1, 2))) / case[1], case[2], log = TRUE) - log(case[1])), 0)
  expect_equal(diff(said), diff(exact), tolerance = 1e-9)
})

test_that("hooks keep the joint distribution: df learned or known, factors, products, a lone covariate", {
  skip_on_cran()
  st <- stat_crossprod(y ~ x + g, c(wide, list(g = c("u", "v", "w"))))
  models <- list(list(plain, line), list(model_lm(errors = student(4)), line),
                 list(model_lm(y ~ x + g, errors = student(prior_gamma(4, 0.5))), st),
                 list(model_lm(y ~ x + I(x^2), prior = prior_student_t(4), errors = student(prior_gamma(3, 1))), line),
                 list(model_lm(y ~ x, prior = prior_normal(0, 1), sigma = fixed(0.6), covariates = list(x = covariate_beta()), errors = student()), line))
  for (case in models) {
    result <- debug_model(case[[1]], case[[2]], n = 200)
    expect_false(any(result$ok %in% FALSE), info = paste(result$hook[result$ok %in% FALSE], result$check[result$ok %in% FALSE], collapse = " "))
  }
})

test_that("records without noise: the posterior of a t sample, by quadrature", {
  skip_on_cran()
  set.seed(2)
  y <- 1 + 0.8 * rt(25, 2.5)
  st <- stat_crossprod(y ~ 1, list(y = c(-20, 20)))
  model <- model_lm(y ~ 1, prior = prior_normal(0, 5), sigma = prior_exponential(0.5), errors = student(prior_gamma(2, 0.3)))
  draws <- posterior::as_draws_array(nonprivate_posterior(data.frame(y = y), model, st, iter = 3200, seed = 1)$draws)
  mu <- seq(-1, 3, length.out = 60)
  sigma <- exp(seq(log(0.1), log(4), length.out = 60))
  df <- exp(seq(0, log(80), length.out = 80))
  grid <- expand.grid(mu = mu, sigma = sigma, df = df)
  log_p <- dnorm(grid$mu, 0, 5, log = TRUE) - 0.5 * grid$sigma + log(grid$sigma) + dgamma(grid$df, 2, 0.3, log = TRUE) + log(grid$df)
  for (one in y) log_p <- log_p + dt((one - grid$mu) / grid$sigma, grid$df, log = TRUE) - log(grid$sigma)
  p <- exp(log_p - max(log_p))
  p <- p * ifelse(grid$df == 1, 0.5, 1) # the end of a trapezoid
  p <- p / sum(p)
  mean_of <- function(name) posterior::extract_variable_matrix(draws, name)
  expect_same_mean(mean_of("(Intercept)"), sum(p * grid$mu))
  expect_same_mean(log(mean_of("sigma")), sum(p * log(grid$sigma)))
  expect_same_mean(log(mean_of("df")), sum(p * log(grid$df)))
  expect_same_mean(mean_of("(Intercept)")^2, sum(p * grid$mu^2))
  expect_same_mean(log(mean_of("df"))^2, sum(p * log(grid$df)^2))
  expect_same_mean(log(mean_of("df")) * log(mean_of("sigma")), sum(p * log(grid$df) * log(grid$sigma)))
})

# mean, log sigma and log df of `model` on a grid, weighted by the prior and the likelihood `density(mu, sigma, df)`
expect_grid <- function(fit, density, prior = function(mu, sigma, df) dnorm(mu, 0, 2) * exp(-sigma) * sigma * dgamma(df, 2, 0.3) * df) {
  grid <- expand.grid(mu = seq(-6, 6, length.out = 45), sigma = exp(seq(log(0.02), log(8), length.out = 24)), df = exp(seq(0, log(60), length.out = 13)))
  p <- prior(grid$mu, grid$sigma, grid$df) * mapply(density, grid$mu, grid$sigma, grid$df) * ifelse(grid$df == 1, 0.5, 1)
  p <- p / sum(p)
  draws <- lapply(c(mu = "(Intercept)", sigma = "sigma", df = "df"), function(name) parameter_draws(fit, name))
  expect_same_mean(draws$mu, sum(p * grid$mu))
  expect_same_mean(draws$mu^2, sum(p * grid$mu^2))
  expect_same_mean(draws$sigma, sum(p * grid$sigma))
  expect_same_mean(draws$sigma^2, sum(p * grid$sigma^2))
  expect_same_mean(log(draws$df), sum(p * log(grid$df)))
  expect_same_mean(log(draws$df) * draws$sigma, sum(p * log(grid$df) * grid$sigma))
}

one_mean <- model_lm(y ~ 1, prior = prior_normal(0, 2), sigma = prior_exponential(1), errors = student(prior_gamma(2, 0.3)))

test_that("the posterior of three records by their noisy total, and by noisy records, clamped: quadrature", {
  skip_on_cran()
  step <- 0.05
  points <- seq(-1, 2, by = step) # the bounds
  # the distribution of a clamped record, as masses at these points
  masses <- function(mu, sigma, df) diff(c(0, pt((utils::head(points, -1) + step / 2 - mu) / sigma, df), 1))
  sums <- seq(3 * points[1], 3 * utils::tail(points, 1), by = step)
  kernel <- exp(-abs(1.7 - sums) / 0.3)
  total <- function(mu, sigma, df) {
    m <- masses(mu, sigma, df)
    two <- convolve(m, rev(m), type = "open")
    sum(pmax(convolve(two, rev(m), type = "open"), 0) * kernel)
  }
  st <- stat_sums(~ y, list(y = c(-1, 2)), rescale = FALSE)
  release <- as_release(1.7, st, mech_laplace(scale = 0.3), n = 3)
  fit <- sample_posterior(release, one_mean, iter = 3200, seed = 1)
  expect_identical(fit$method, "augment")
  expect_grid(fit, total)

  values <- c(-0.9, 0.4, 0.6, 0.5, 2.3)
  each <- exp(-abs(outer(values, points, "-")) / 0.15)
  records <- as_release(values, stat_records(~ y, list(y = c(-1, 2))), mech_laplace(scale = 0.15), n = 5)
  fit <- sample_posterior(records, one_mean, iter = 3200, seed = 1)
  expect_grid(fit, function(mu, sigma, df) prod(each %*% masses(mu, sigma, df)))
})

test_that("sampler and releases together keep the prior (Geweke): clamping, df learned, factors, products", {
  skip_on_cran()
  set.seed(7)
  narrow <- stat_crossprod(y ~ x, list(y = c(-1, 2), x = c(-1, 1)))
  model <- model_lm(prior = prior_normal(0, 1), sigma = prior_inverse_gamma(4, 2), errors = student(prior_gamma(6, 1.5)),
                    covariates = fixed(list(mean = 0.2, cov = matrix(0.7))))
  exact <- prior_draws(model, narrow)
  for (passes in c(0, 2)) expect_prior(geweke(model, narrow, mech_laplace(scale = 1.5), 4, 3000, passes), exact)
  expect_prior(geweke(model, narrow, mech_gaussian(sd = 1.5), 8, 3000, NULL, warmup = 300L, kinds = c(1, 1, 0, 0)), exact)
  st <- stat_crossprod(y ~ x + g, list(y = c(-1, 2), x = c(-1, 1), g = c("u", "v")))
  model <- model_lm(y ~ x * g, prior = prior_normal(0, 1), sigma = prior_inverse_gamma(4, 2), errors = student(prior_gamma(6, 1.5)),
                    covariates = fixed(list(mean = 0.2, cov = matrix(0.7))), factors = "independent")
  expect_prior(geweke(model, st, mech_laplace(scale = 1.5), 5, 3000, NULL, warmup = 300L, kinds = c(1, 1, 1, 1)), prior_draws(model, st))
})

test_that("many degrees of freedom are normal errors", {
  skip_on_cran()
  set.seed(3)
  release <- simulate_release(data.frame(y = rnorm(60), x = rnorm(60)), line, mech_laplace(epsilon = 5))
  fit <- function(errors) sample_posterior(release, model_lm(errors = errors), method = "augment", iter = 3200, seed = 1)
  many <- fit(student(1e7))
  normal <- fit(NULL)
  expect_identical(posterior::variables(many$draws), posterior::variables(normal$draws))
  for (name in c("(Intercept)", "x", "sigma", "cov[x,x]")) expect_agreement(parameter_draws(many, name), parameter_draws(normal, name))
})

test_that("an unknown number of records goes with a covariates' prior that is cut off", {
  skip_on_cran()
  set.seed(1)
  data <- data.frame(x = rnorm(60, 0, 0.6))
  data$y <- 1 + data$x + rnorm(60, 0, 0.5)
  laplace <- function(epsilon) mech_laplace(epsilon = epsilon)
  release <- simulate_release(data, list(size = stat_size(), rest = line), list(size = laplace(1), rest = laplace(3)), neighbours = "add_remove")
  cut <- prior_niw(0.5, 1, 1, 3, within = c(0.1, 2)) # the records' mean is 0
  fit <- function(errors) sample_posterior(release, model_lm(covariates = cut, errors = errors), method = "augment", iter = 2400, seed = 1)
  many <- fit(student(1e7))
  normal <- fit(NULL)
  for (name in c("(Intercept)", "sigma", "mean[x]", "n")) expect_agreement(parameter_draws(many, name), parameter_draws(normal, name))
  expect_gte(min(parameter_draws(many, "mean[x]")), 0.1)
})

test_that("a chain cut in two is the same chain", {
  set.seed(4)
  release <- simulate_release(plain, line, mech_laplace(epsilon = 2), n = 12)
  run <- function(iter) suppressWarnings(sample_posterior(release, plain, chains = 1, iter = iter, warmup = 60, seed = 1))
  expect_equal(posterior::as_draws_array(extend(run(100), 40)), posterior::as_draws_array(run(140)))
})

test_that("what other methods refuse, and why", {
  skip_on_cran()
  release <- simulate_release(plain, line, mech_laplace(epsilon = 2), n = 50)
  for (method in c("collapse", "clt", "naive")) {
    expect_error(sample_posterior(release, plain, method = method), "needs normal errors", class = "noiseaware_error_method")
  }
  fit <- suppressWarnings(sample_posterior(release, plain, chains = 1, iter = 60, seed = 1))
  expect_error(log_evidence(fit), "draws of `df`", class = "noiseaware_error_method")
  expect_error(stan_program(release, plain), "Student-t errors", class = "noiseaware_error_method")
  expect_error(test_hypothesis(fit, "x"), class = "noiseaware_error")
  expect_error(regress(fit, y ~ 1), class = "noiseaware_error")
  public <- as_release(c(0.4, 1.2, 0.7), stat_records(~ y, wide["y"]), mech_laplace(scale = 1), n = 3, public = data.frame(x = c(0, 1, 2)))
  expect_error(sample_posterior(public, model_lm(y ~ x, errors = student())), "Public covariates need normal errors", class = "noiseaware_error_method")
  sites <- lapply(c(a = 20, b = 25, c = 30), function(n) simulate_release(plain, line, mech_laplace(epsilon = 2), n = n))
  expect_error(sample_posterior(sites, plain, pool = "partial", method = "augment"), "need normal errors", class = "noiseaware_error_method")
})

test_that("Student-t errors by name, and brms's family, are student()", {
  ours <- model_lm(errors = student(4))
  degrees <- 4
  local({
    student <- function(link = "identity") stop("not a supported link") # as if brms was attached last
    expect_identical(model_lm(errors = student(degrees)), ours)
    expect_identical(do.call(model_lm, list(errors = quote(student(df = 4)))), ours)
    expect_error(model_lm(errors = student("a")), class = "noiseaware_error_prior")
  })
  wrapped <- function(...) model_lm(...)
  expect_identical(wrapped(errors = student(4)), ours)
  expect_identical(model_lm(errors = "student"), model_lm(errors = student()))
  of_brms <- function(name) structure(list(family = name, link = "identity"), class = c("brmsfamily", "family"))
  expect_identical(model_lm(errors = of_brms("student")), model_lm(errors = student()))
  expect_error(model_lm(errors = of_brms("skew_normal")), class = "noiseaware_error_prior")
})

test_that("bad arguments", {
  skip_on_cran()
  refusals("prior", list(quote(student(0.5)), quote(student(df = -1)), quote(student(c(3, 4))), quote(student("4")), quote(student(prior_gamma(2))),
                         quote(student(prior_gamma(1, 100))), quote(student(fixed(0.2))), quote(model_lm(errors = 3)),
                         quote(model_lm(errors = student(), covariates = covariate_moments()))))
  expect_error(bound_of(model_lm(errors = student()), stat_crossprod(y ~ df, list(y = c(0, 1), df = c(0, 1)))), "degrees of freedom",
               class = "noiseaware_error_variables")
  expect_error(bound_of(model_lm(errors = student()), stat_crossprod(y ~ sigma, list(y = c(0, 1), sigma = c(0, 1)))), class = "noiseaware_error_variables")
})

test_that("summaries, predictions and new records have the errors", {
  skip_on_cran()
  set.seed(5)
  n <- 40
  release <- simulate_release(data.frame(y = rnorm(n), x = rnorm(n)), line, mech_laplace(epsilon = 5))
  model <- model_lm(prior = prior_normal(0, 2), sigma = fixed(0.5), errors = student(3))
  fit <- suppressWarnings(sample_posterior(release, model, chains = 2, iter = 600, seed = 1))
  expect_output(print(fit), "linear regression y ~ x, Student-t errors", fixed = TRUE)
  expect_output(print(model), "errors        Student-t, df fixed at 3", fixed = TRUE)
  expect_output(print(student()), "<errors> Student-t, df gamma(shape = 2, rate = 0.1)", fixed = TRUE)
  response <- internal("response_of")(fit$bound)
  set.seed(6)
  drawn <- response$draw(fit, rep(2, 4e4))
  expect_gt(ks.test((drawn - 2) / 0.5, "pt", 3)$p.value, 1e-6)
  expect_equal(response$variance(fit, matrix(0, 2, 2)), matrix(0.75, 2, 2))
  expect_identical(internal("t_variance")(c(1, 2, 4)), c(Inf, Inf, 2))
  learned <- suppressWarnings(sample_posterior(release, plain, chains = 2, iter = 600, seed = 1))
  expect_true("df" %in% posterior::variables(learned$draws))
  expect_true(all(parameter_draws(learned, "df") >= 1))
  table <- rstantools::prior_summary(learned)
  row <- table[table$variable == "df", ]
  expect_identical(row$prior, "gamma(2, 0.1) above 1")
  expect_equal(row$median, qgamma(0.5 + 0.5 * pgamma(1, 2, 0.1), 2, 0.1), tolerance = 0.05)
  wide_one <- predict(learned, data.frame(x = 1), interval = "predictive")
  expect_true(all(is.finite(wide_one)))
  made <- synthesize(learned, m = 3, seed = 1)
  expect_identical(vapply(made, nrow, 1L), rep(40L, 3), ignore_attr = TRUE)
  expect_s3_class(bayesplot::pp_check(learned), "ggplot")
  expect_identical(nrow(posterior::as_draws_matrix(denoise(learned))), 600L)
  weighted <- suppressMessages(update(learned, prior = prior_normal(0, 2.1)))
  expect_identical(weighted$asked$model$errors, plain$errors)
})

test_that("sites are pooled", {
  skip_on_cran()
  set.seed(8)
  releases <- lapply(c(a = 30, b = 50), function(n) simulate_release(plain, line, mech_laplace(epsilon = 5), n = n))
  fit <- suppressWarnings(sample_posterior(releases, plain, chains = 2, iter = 400, seed = 1, pool = "complete"))
  expect_true("df" %in% posterior::variables(fit$draws))
  expect_false(anyNA(posterior::as_draws_matrix(fit$draws)))
})
