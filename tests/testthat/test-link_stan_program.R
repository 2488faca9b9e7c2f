# Stan programs: their data against records, their text as far as it can be read without Stan, and
# the log density against the package's own in `make peers`.

st <- stat_crossprod(y ~ a + b, bounds = list(y = c(-20, 40), a = c(-10, 20), b = c(-15, 10)))
set.seed(1)
records <- data.frame(a = rnorm(40, 5, 3), b = rnorm(40, -2, 2))
records$y <- 3 + records$a - records$b + rnorm(40, 0, 3)
rel <- simulate_release(records, st, mech_laplace(epsilon = 3))
two <- stat_sums(~ z + x + I(x^2) + x:z + I(z^2), bounds = list(x = c(-10, 20), z = c(-5, 15)), rescale = FALSE)
one <- stat_sums(~ x + I(x^2), list(x = c(0, 10)), rescale = FALSE)
cov2 <- matrix(c(1.2, 0.3, 0.3, 0.8), 2)
laplace <- mech_laplace(epsilon = 1)

programs <- list(
  default = list(rel, model_lm()),
  student = list(rel, model_lm(prior = prior_student_t(4, 1, 2), sigma = prior_half_t(3, 5), covariates = fixed(list(mean = c(1, 2), cov = cov2)))),
  known = list(rel, model_lm(prior = fixed(c(1, 2, 3)), sigma = prior_exponential(0.1))),
  partly = list(rel, model_lm(prior = prior_normal(0, 2), sigma = fixed(1.5), covariates = list(mean = prior_niw(3, 2), cov = fixed(cov2)))),
  half = list(rel, model_lm(prior = prior_normal(0, 2), sigma = prior_half_normal(2), covariates = list(mean = fixed(c(1, 2)), cov = prior_niw()))),
  none = list(as_release(c(40, 300), stat_crossprod(y ~ 1, list(y = c(-20, 40))), laplace, 20), model_lm()),
  normal = list(as_release(c(20, 100), one, laplace, 10), model_normal()),
  mean = list(as_release(c(20, 100), one, laplace, 10), model_normal(prior = list(mean = prior_normal(4, 2), sd = fixed(2)))),
  sd = list(as_release(c(20, 100), one, laplace, 10), model_normal(prior = list(mean = fixed(3), sd = prior_inverse_gamma(3, 4)))),
  several = list(as_release(list(a = c(20, 100), b = c(x = 19)), list(a = one, b = stat_sums(~ x, list(x = c(0, 12)))),
                            list(a = laplace, b = mech_gaussian(sd = 3)), 10), model_normal()),
  multivariate = list(as_release(1:5 * 10, two, mech_gaussian(sd = 3), 20), model_mvnormal(c("x", "z"))))
written <- lapply(programs, function(p) stan_program(p[[1]], p[[2]]))

# what is between the braces of a block
stan_section <- function(s, name) sub("\n}.*", "", sub(paste0(".*\n", name, " \\{\n"), "", paste0("\n", s$program)))
declared <- function(text) unlist(regmatches(text, gregexpr("\\w+(?=;)", text, perl = TRUE)))

test_that("numbers without noise are the totals of the records", {
  expect_totals <- function(s, data, statistic, columns) {
    w <- sweep(as.matrix(data[columns]), 2, s$data$origin)
    at <- as.vector(s$data$constant) + s$data$of_totals %*% colSums(w) + s$data$of_products %*% as.vector(crossprod(w))
    exact <- simulate_release(data, statistic, mech_gaussian(sd = 1e-12))$value
    expect_equal(as.vector(at), unname(exact), tolerance = 1e-8)
  }
  expect_totals(written$default, records, st, c("a", "b", "y"))
  expect_totals(written$multivariate, data.frame(x = c(runif(20, -8, 12))) |> transform(z = x / 3 + 1:20 / 5), two, c("x", "z"))
  x <- data.frame(x = runif(10, 1, 9))
  expect_totals(written$normal, x, one, "x")
  parts <- written$several$data
  expect_equal(parts$of_totals[, 1], c(1, 2 * parts$origin[1], 1))
  expect_equal(as.vector(parts$published), c(20, 100, 19))
  expect_equal(parts$noise[3], 3)
  expect_match(written$default$program, "sigma ~ lognormal(", fixed = TRUE)
  expect_match(written$several$program, "published[1:2] ~ double_exponential(expected[1:2], noise[1:2]);", fixed = TRUE)
  expect_match(written$several$program, "published[3:3] ~ normal(expected[3:3], noise[3:3]);", fixed = TRUE)
})

test_that("data, starts and names are those that the program declares", {
  for (name in names(written)) {
    s <- written[[name]]
    bound <- internal("bind_model")(programs[[name]][[2]], programs[[name]][[1]]$statistic)
    expect_setequal(names(s$names), bound$parameters)
    expect_setequal(declared(stan_section(s, "data")), names(s$data))
    parameters <- declared(stan_section(s, "parameters"))
    expect_setequal(parameters, names(s$init))
    expect_true(all(sub("\\[.*", "", s$names) %in% c(parameters, "intercept")), label = name)
    expect_identical(lengths(regmatches(s$program, gregexpr("{", s$program, fixed = TRUE))),
                     lengths(regmatches(s$program, gregexpr("}", s$program, fixed = TRUE))))
    expect_true(all(is.finite(unlist(c(s$data, s$init)))))
  }
  expect_output(print(written$none), "normal model of y: 2 noisy totals of 20 records.*// Data: n, d, numbers")
  fit <- sample_posterior(rel, model_lm(), chains = 1, iter = 20, seed = 1)
  expect_identical(stan_program(fit), written$default)
})

test_that("Stan reads every program", {
  skip_on_cran()
  skip_if_not_installed("rstan")
  for (name in names(written)) {
    capture.output(read <- suppressMessages(rstan::stanc(model_code = written[[name]]$program)))
    expect_true(read$status, label = name)
  }
})

# of a function of a vector
log_jacobian <- function(f, at) {
  columns <- vapply(seq_along(at), function(j) {
    h <- 1e-5 * max(1, abs(at[j])) * (seq_along(at) == j)
    (f(at + h) - f(at - h)) / (2 * sum(h))
  }, at)
  as.numeric(determinant(as.matrix(columns))$modulus)
}

# From the totals T and the scatter S (its lower triangle), as the program has its variables, to g, chi and below; and back.
bartlett <- function(d, n, mean, root) {
  lower <- lower.tri(diag(d), diag = TRUE)
  square <- function(v) {
    m <- matrix(0, d, d)
    m[lower] <- v
    m + t(m) - diag(diag(m), d)
  }
  list(
    mean = mean,
    parts = function(ts) {
      b <- solve(root, t(chol(square(ts[-seq_len(d)]))))
      c(solve(root, ts[seq_len(d)] - n * mean) / sqrt(n), diag(b)^2 / (n - seq_len(d)), t(b)[upper.tri(b)])
    })
}

test_that("the log density is the package's own", {
  skip_if(Sys.getenv("NOISEAWARE_PEERS") != "true", "compiling a Stan program takes a minute: `make peers` does it")
  skip_if_not_installed("rstan")
  # Debian has these headers elsewhere
  if (!file.exists(rstan::rstan_options("boost_lib"))) rstan::rstan_options(boost_lib = "/usr/include")
  model <- model_lm(prior = prior_nig(c(1, 0.5, -0.5), 0.3, 3, 4), covariates = prior_niw(c(4, -1), 2, 3, 6))
  s <- stan_program(rel, model)
  compiled <- tryCatch(suppressWarnings(suppressMessages(rstan::stan_model(model_code = s$program, model_name = "totals"))), error = identity)
  skip_if(inherits(compiled, "error"), "Stan programs cannot be compiled here")
  capture.output(stan <- suppressWarnings(rstan::sampling(compiled, data = s$data, init = function() s$init, chains = 1, iter = 2, refresh = 0)))
  bound <- internal("bind_model")(model, st)
  n <- rel$n
  d <- 3
  origin <- as.vector(s$data$origin)
  coordinates <- function(natural) drop(internal("bound_theta")(bound, stats::setNames(natural, bound$parameters)))
  set.seed(2)
  differences <- vapply(1:6, function(k) {
    beta <- rnorm(2)
    sigma <- runif(1, 1, 4)
    mean <- rnorm(2, c(4, -1))
    cov <- stats::rWishart(1, 5, cov2)[, , 1]
    intercept <- rnorm(1)
    natural <- c(intercept, beta, sigma, mean, cov[1, 1], cov[1, 2], cov[2, 2])
    alpha <- intercept + sum(beta * origin[1:2]) - origin[3]
    # records of any kind have totals and a scatter
    w <- matrix(rnorm(n * d, rep(c(4, -1, 8), each = n), 2), n) - rep(origin, each = n)
    total <- colSums(w)
    scatter <- crossprod(w) - tcrossprod(total) / n
    root <- rbind(cbind(t(chol(cov)), 0), c(beta %*% t(chol(cov)), sigma))
    centre <- mean - origin[1:2]
    map <- bartlett(d, n, c(centre, alpha + sum(beta * centre)), root)
    ts <- c(total, scatter[lower.tri(scatter, diag = TRUE)])
    inner <- map$parts(ts)
    stan_density <- rstan::log_prob(stan, rstan::unconstrain_pars(stan, list(
      alpha = alpha, beta = beta, sigma = sigma, mean_x = mean, cov_x = cov, g = inner[1:3], chi = inner[4:6], below = inner[7:9])), adjust_transform = FALSE)
    # the package's prior, the totals' density from the density of the records, the noise
    prior <- drop(.Call(internal("ffi_model_log_prior"), bound$spec, as.matrix(coordinates(natural)))) + log_jacobian(coordinates, natural)
    likelihood <- sum(apply(w, 1, log_normal, mean = map$mean, cov = tcrossprod(root)))
    totals <- (n - d - 2) / 2 * as.numeric(determinant(scatter)$modulus) + likelihood - log_jacobian(map$parts, ts)
    expected <- as.vector(s$data$constant) + s$data$of_totals %*% total + s$data$of_products %*% as.vector(crossprod(w))
    stan_density - prior - totals - log_noise("absolute", rel$scale, rel$value, t(expected))
  }, 0)
  expect_equal(differences, rep(differences[1], 6), tolerance = 1e-6)
})

test_that("what has no such program is refused", {
  skip_on_cran()
  refused <- function(code, text, class = "noiseaware_error_method") expect_error(code, text, class = class)
  refused(stan_program(as_release(c(3, 4), stat_counts(~ g, list(g = c("a", "b"))), laplace, 7), model_bernoulli()), "available for normal records")
  refused(stan_program(simulate_release(transform(records, g = factor(rep(c("u", "v"), 20))), stat_crossprod(y ~ g, list(y = c(-20, 40), g = c("u", "v"))), laplace), model_lm()),
          "is a factor")
  refused(stan_program(as_release(c(20, 100), one, laplace, NULL, "add_remove"), model_normal()), "number of records is unknown")
  refused(stan_program(as_release(1:9, st, laplace, 3), model_lm()), "more than 3 are needed")
  refused(stan_program(as_release(c(20, 100), one, laplace, 10), model_normal(prior = prior_nig(within = TRUE))), "truncated")
  refused(stan_program(as_release(c(20, 100), one, published(laplace, round = 5), 10), model_normal()), "collapse")
  refused(stan_program(as_release(c(20, 100), one, mech_exact(), 10), model_normal()), "noisy totals")
  refused(stan_program(as_release(c(20, 100, 400), stat_sums(~ x + I(x^2) + I(x^3), list(x = c(0, 10)), rescale = FALSE), laplace, 10), model_normal()), "products of two")
  refused(stan_program(1, model_lm()), "a release or a fit", "noiseaware_error_argument")
  refused(stan_program(rel, 1), "model", "noiseaware_error_argument")
  refused(stan_program(nonprivate_posterior(records, model_lm(), st, iter = 20)), "fit to a release", "noiseaware_error_argument")
  refused(stan_program(rel, model_lm(), 3), "named", "noiseaware_error_argument")
})
