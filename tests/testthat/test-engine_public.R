# Public covariates with noisy responses: densities against sums and integrals in R, posteriors against quadrature.

set.seed(11)
given <- data.frame(x = round(rnorm(30), 2), g = factor(sample(c("a", "b", "c"), 30, TRUE)), e = round(runif(30, 5, 40)))
yes_no <- stat_records(~ y, levels = list(y = c("no", "yes")))
number <- function(lower, upper, ...) stat_records(~ y, bounds = list(y = c(lower, upper)), ...)

given_fit <- function(release, model, chains = 2, iter = 3000, ...) {
  fit <- suppressWarnings(sample_posterior(release, model, chains = chains, iter = iter, warmup = 500, seed = 1, ...))
  expect_identical(fit$problem$family, "public")
  expect_true(fit$exact)
  fit
}

# log density of the answers given natural parameters, from P or p of the response and the noise density
expect_density <- function(release, model, log_likelihood, tolerance = 1e-8, slope_tolerance = 1e-5) {
  fit <- given_fit(release, model, chains = 1, iter = 520)
  spec <- fit$problem$model
  at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
  unknown <- fit$bound$unknown
  theta <- .Call(internal("ffi_model_prior"), spec, internal("new_stream")(), 3L)$theta
  draws <- cbind(theta, fit$chains[[1L]]$state$theta)
  whole <- function(q) replace(draws[, 4L], unknown, q)
  prior <- function(q) .Call(internal("ffi_model_log_prior"), spec, matrix(whole(q)))
  likelihood <- function(q) log_likelihood(internal("reported")(fit$bound, whole(q))[1L, ])
  q <- lapply(asplit(draws, 2), function(column) column[unknown])
  for (k in c(2, 4)) {
    expect_equal(at(q[[k]])[1L] - at(q[[1L]])[1L], likelihood(q[[k]]) - likelihood(q[[1L]]) + prior(q[[k]]) - prior(q[[1L]]), tolerance = tolerance)
  }
  for (k in 1:4) expect_equal(at(q[[k]])[-1L], difference_slopes(at, q[[k]], 1e-5), tolerance = slope_tolerance)
}

noise_of <- function(kernel, scale) {
  function(d) if (kernel == "absolute") exp(-abs(d) / scale) else exp(-(d / scale)^2 / 2)
}

summed <- function(z, eta, p, noise, clamp = identity, most = 2000) {
  k <- 0:most
  sum(vapply(seq_along(z), function(i) log(sum(p(k, eta[i], i) * noise(z[i] - clamp(k)))), 0))
}

test_that("binary responses: the density is that of mixed probabilities, for every link and kind of noise", {
  y <- rep(0:1, 15)
  links <- list(logit = plogis, probit = pnorm, cloglog = function(eta) -expm1(-exp(eta)))
  for (link in names(links)) {
    rel <- as_release(y, yes_no, mech_randomized_response(epsilon = 1.3), public = given)
    expect_density(rel, model_glm(y ~ x + g, binomial(link)), function(b) {
      p <- links[[link]](b[[1L]] + b[["x"]] * given$x + b[["gb"]] * (given$g == "b") + b[["gc"]] * (given$g == "c"))
      sum(log((exp(1.3 * (y == 1)) * p + exp(1.3 * (y == 0)) * (1 - p)) / (1 + exp(1.3))))
    })
  }
  three <- rbind(no = c(no = 0.7, yes = 0.1, refused = 0.2), yes = c(0.15, 0.8, 0.05))
  answer <- rep(0:2, 10)
  rel <- as_release(answer, yes_no, mech_randomized_response(matrix = three), public = given)
  expect_density(rel, model_logistic(y ~ x), function(b) {
    p <- plogis(b[[1L]] + b[["x"]] * given$x)
    sum(log(three["yes", answer + 1] * p + three["no", answer + 1] * (1 - p)))
  })
  z <- y + round(rnorm(30), 2)
  for (mechanism in list(mech_laplace(scale = 0.8), mech_gaussian(sd = 0.8))) {
    rel <- as_release(z, number(0, 1), mechanism, public = given)
    noise <- noise_of(mechanism$kernel, 0.8)
    expect_density(rel, model_logistic(y ~ x), function(b) {
      p <- plogis(b[[1L]] + b[["x"]] * given$x)
      sum(log(p * noise(z - 1) + (1 - p) * noise(z)))
    })
  }
})

test_that("counts: the density is the sum over all counts, clamped or not, whole noise or not", {
  skip_on_cran()
  y <- c(rpois(20, 8), 0, 0, 1, 25, 30, 31, 12, 12, 13, 5)
  cases <- list(list(mech_discrete_laplace(scale = 1.7), "absolute", 1.7, c(0, 300), y + sample(-3:3, 30, TRUE)),
                list(mech_laplace(scale = 2.5), "absolute", 2.5, c(0, 20), y + round(rnorm(30), 2)),
                list(mech_gaussian(sd = 2), "squared", 2, c(3, 14), y + round(rnorm(30), 2)),
                list(mech_discrete_gaussian(sd = 3), "squared", 3, c(0, 300), y + sample(-3:3, 30, TRUE)))
  families <- list(list(poisson(), function(k, eta, b) dpois(k, exp(eta))),
                   list("negative_binomial", function(k, eta, b) dnbinom(k, mu = exp(eta), size = b[["cv"]]^-2)))
  for (case in cases) for (family in families) {
    rel <- as_release(case[[5L]], number(case[[4L]][1L], case[[4L]][2L]), case[[1L]], public = given)
    expect_density(rel, model_glm(y ~ x + offset(log(e)), family[[1L]], prior = prior_normal(c(-1, 0), 0.4)), tolerance = 1e-7, function(b) {
      eta <- b[[1L]] + b[["x"]] * given$x + log(given$e)
      summed(case[[5L]], eta, function(k, eta, i) family[[2L]](k, eta, b), noise_of(case[[2L]], case[[3L]]),
             function(k) pmin(pmax(k, case[[4L]][1L]), case[[4L]][2L]), most = 5000)
    })
  }
})

test_that("normal responses: the density is the integral over the clamped response", {
  skip_on_cran()
  y <- round(rnorm(30, 3, 4), 1)
  for (case in list(list(mech_laplace(scale = 3), "absolute", 3), list(mech_gaussian(sd = 2.5), "squared", 2.5))) {
    for (outside in c("clamp", "none")) {
      rel <- as_release(y, number(-2, 6, outside = outside), case[[1L]], public = given)
      noise <- noise_of(case[[2L]], case[[3L]])
      ends <- if (outside == "clamp") c(-2, 6) else c(-Inf, Inf)
      one <- function(z, eta, sigma) {
        pieces <- sort(unique(c(max(ends[1L], -300), pmin(pmax(z, ends[1L]), ends[2L]), pmin(pmax(eta, ends[1L]), ends[2L]), min(ends[2L], 300))))
        inside <- sum(vapply(seq_along(pieces)[-1L], function(k) {
          integrate(function(t) dnorm(t, eta, sigma) * noise(z - t), pieces[k - 1L], pieces[k], rel.tol = 1e-10, subdivisions = 2000L)$value
        }, 0))
        tails <- if (outside == "clamp") pnorm(-2, eta, sigma) * noise(z + 2) + pnorm(6, eta, sigma, FALSE) * noise(z - 6) else 0
        log(inside + tails)
      }
      expect_density(rel, model_lm(y ~ x, prior = prior_normal(), sigma = prior_half_normal(3)), tolerance = 1e-6, function(b) {
        sum(mapply(one, y, b[[1L]] + b[["x"]] * given$x, b[["sigma"]]))
      })
    }
  }
})

test_that("responses of several levels: the density is that of mixed probabilities", {
  skip_on_cran()
  asked <- stat_records(~ y, levels = list(y = c("low", "mid", "high", "top")))
  y <- rep(0:3, length.out = 30)
  rel <- as_release(y, asked, mech_randomized_response(epsilon = 1.6), public = given)
  mixed <- function(p) sum(log((exp(1.6) - 1) * p[cbind(seq_along(y), y + 1)] + 1))
  for (link in c("logit", "probit")) expect_density(rel, model_glm(y ~ x + g, if (link == "logit") "cumulative" else "cumulative_probit"), function(b) {
    eta <- b[["x"]] * given$x + b[["gb"]] * (given$g == "b") + b[["gc"]] * (given$g == "c")
    below <- sapply(b[1:3], function(threshold) (if (link == "logit") plogis else pnorm)(threshold - eta))
    mixed(cbind(below, 1) - cbind(0, below))
  })
  expect_density(rel, model_glm(y ~ x + offset(x), "categorical"), function(b) {
    weight <- cbind(1, sapply(c("mid", "high", "top"), function(l) {
      exp(b[[sprintf("(Intercept)[%s]", l)]] + b[[sprintf("x[%s]", l)]] * given$x + given$x)
    }))
    mixed(weight / rowSums(weight))
  })
  set.seed(8)
  five <- matrix(rexp(20), 4, dimnames = list(c("low", "mid", "high", "top"), c("low", "mid", "high", "top", "refused")))
  five <- five / rowSums(five)
  answer <- rep(0:4, length.out = 30)
  of_matrix <- as_release(answer, asked, mech_randomized_response(matrix = five), public = given)
  mixed <- function(p) sum(log((p %*% five)[cbind(seq_along(answer), answer + 1)]))
  expect_density(of_matrix, model_glm(y ~ x, "cumulative"), function(b) {
    below <- sapply(b[1:3], function(threshold) plogis(threshold - b[["x"]] * given$x))
    mixed(cbind(below, 1) - cbind(0, below))
  })
  fit <- given_fit(rel, model_glm(y ~ x, "cumulative"), chains = 1, iter = 700)
  expect_equal(dim(predict(fit)), c(30L, 4L))
  expect_s3_class(simulate(fit, 1, seed = 1)[[1L]]$y, "factor")
})

# mean and sd of each of two coefficients, by quadrature
on_a_grid <- function(b0, b1, log_density) {
  grid <- expand.grid(b0 = b0, b1 = b1)
  weight <- apply(grid, 1L, function(b) log_density(b[1L], b[2L]))
  weight <- exp(weight - max(weight))
  weight <- weight / sum(weight)
  mean <- colSums(weight * grid)
  list(mean = mean, sd = sqrt(colSums(weight * sweep(as.matrix(grid), 2L, mean)^2)))
}

expect_posterior <- function(fit, exact) {
  for (k in 1:2) {
    draws <- parameter_draws(fit, fit$bound$parameters[k])
    expect_same_mean(draws, exact$mean[k])
    expect_same_mean((draws - exact$mean[k])^2, exact$sd[k]^2)
  }
}

label_privacy <- c(0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1)

test_that("a logistic regression of answers by randomised response: quadrature", {
  skip_on_cran()
  x <- qnorm((1:40 - 0.5) / 40)
  rel <- as_release(label_privacy, stat_records(~ y, levels = list(y = c("0", "1"))), mech_randomized_response(epsilon = 1.5), public = data.frame(x))
  fit <- given_fit(rel, model_logistic(y ~ x, prior_normal(0, 2)), iter = 4500)
  exact <- on_a_grid(seq(-6, 8, length.out = 150), seq(-7, 9, length.out = 150), function(b0, b1) {
    p <- plogis(b0 + b1 * x)
    sum(log(ifelse(label_privacy == 1, exp(1.5) * p + 1 - p, p + exp(1.5) * (1 - p)))) - (b0^2 + b1^2) / 8
  })
  expect_equal(unname(c(exact$mean, exact$sd)), c(0.4373, 1.553, 0.7340, 0.951), tolerance = 2e-3)
  expect_posterior(fit, exact)
})

test_that("an ecological regression of noisy counts: quadrature", {
  skip_on_cran()
  areas <- data.frame(people = c(30, 55, 20, 80, 41, 66, 25, 90, 38, 52, 47, 71, 33, 60, 29, 84, 44, 58, 36, 75), x = ((7 * 1:20) %% 20) / 10 - 1)
  deaths <- c(5, 14, 1, 26, 9, 12, 2, 32, 9, 10, 16, 13, 6, 19, 3, 20, 13, 9, 11, 14)
  rel <- as_release(deaths, stat_records(~ deaths, bounds = list(deaths = c(0, 500))), mech_discrete_laplace(scale = 2), public = areas)
  fit <- given_fit(rel, model_glm(deaths ~ x + offset(log(people)), poisson(), prior_normal(0, 2)), iter = 4500)
  exact <- on_a_grid(seq(-2, -1, length.out = 36), seq(-0.6, 1.3, length.out = 36), function(b0, b1) {
    summed(deaths, b0 + b1 * areas$x + log(areas$people), function(k, eta, i) dpois(k, exp(eta)), noise_of("absolute", 2), most = 200) - (b0^2 + b1^2) / 8
  })
  expect_equal(unname(c(exact$mean, exact$sd)), c(-1.4598, 0.3903, 0.0802, 0.1371), tolerance = 2e-3)
  expect_posterior(fit, exact)
})

test_that("tabulated densities are those that they stand for, and so are their slopes", {
  skip_on_cran()
  set.seed(5)
  many <- data.frame(x = runif(2400, -2, 3))
  count <- rpois(2400, exp(1 + many$x)) + sample(-2:2, 2400, TRUE)
  counts <- as_release(count, number(0, 30), mech_laplace(scale = 1.5), public = many)
  answers <- as_release(rep(0:1, 1200), yes_no, mech_randomized_response(epsilon = 1), public = many)
  for (case in list(list(counts, model_glm(y ~ x, poisson())), list(answers, model_logistic(y ~ x)), list(answers, model_glm(y ~ x, binomial("probit"))))) {
    fit <- given_fit(case[[1L]], case[[2L]], chains = 1, iter = 510)
    expect_lt(fit$problem$fields$groups, 100)
    plain <- fit$problem
    plain$fields[c("group", "groups")] <- NULL
    for (q in list(c(1, 0.5), c(-0.7, 1.1), c(3, -4), c(-9, 3))) {
      of <- lapply(list(fit$problem, plain), function(problem) .Call(internal("ffi_collapse_density"), problem, fit$chains[[1L]]$state, q))
      expect_equal(of[[1L]][1L], of[[2L]][1L], tolerance = 1e-10)
      expect_equal(of[[1L]][-1L], of[[2L]][-1L], tolerance = 1e-7)
    }
  }
})

test_that("leaps take the place of trajectories where the posterior is nearly normal, and leave it as it is", {
  skip_on_cran()
  set.seed(4)
  n <- 2000
  d <- data.frame(x = rnorm(n))
  y <- rbinom(n, 1, plogis(0.4 + d$x))
  y <- ifelse(runif(n) < plogis(2), y, 1 - y)
  rel <- as_release(y, yes_no, mech_randomized_response(epsilon = 2), public = d)
  fit <- given_fit(rel, model_logistic(y ~ x, prior_normal(0, 2)), iter = 6500)
  expect_true(all(vapply(fit$chains, function(chain) chain$diagnostics[["leaps"]], 0) > 4000))
  keep <- plogis(2)
  exact <- on_a_grid(seq(0, 0.9, length.out = 60), seq(0.5, 1.5, length.out = 60), function(b0, b1) {
    p <- plogis(b0 + b1 * d$x)
    sum(log(ifelse(y == 1, keep * p + (1 - keep) * (1 - p), (1 - keep) * p + keep * (1 - p)))) - (b0^2 + b1^2) / 8
  })
  expect_posterior(fit, exact)
})

test_that("chains find many records' mode from anywhere in the prior", {
  skip_on_cran()
  set.seed(8)
  d <- data.frame(x1 = rnorm(3000), x2 = rnorm(3000), e = runif(3000, 6, 18))
  z <- rpois(3000, exp(0.1 * d$x1 + 0.2 * d$x2) * d$e) + sample(-3:3, 3000, TRUE)
  rel <- as_release(z, number(0, 1000), mech_discrete_laplace(scale = 2), public = d)
  for (seed in 1:4) {
    fit <- suppressWarnings(sample_posterior(rel, model_glm(y ~ x1 + x2 + offset(log(e)), poisson(), prior_normal(0, 30)), chains = 1, iter = 8, warmup = 4,
                                             seed = seed))
    mode <- fit$chains[[1L]]$state$store[5:7]
    expect_lt(max(abs(.Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, mode)[-1L])), 0.1)
  }
})

test_that("a chain cut in two is the same chain", {
  set.seed(2)
  d <- data.frame(x = rnorm(400))
  rel <- as_release(rbinom(400, 1, plogis(d$x)), yes_no, mech_randomized_response(epsilon = 2), public = d)
  long <- given_fit(rel, model_logistic(y ~ x), chains = 1, iter = 900)
  short <- extend(given_fit(rel, model_logistic(y ~ x), chains = 1, iter = 700), 200)
  expect_identical(unclass(long$draws)[], unclass(short$draws)[])
})

test_that("a model is bound to the covariates that it names; functions, factors, products and offsets", {
  rel <- as_release(rep(0:1, 15), yes_no, mech_randomized_response(epsilon = 3), public = given)
  fit <- given_fit(rel, model_logistic(y ~ log(e) + g * x + I(x^2) + offset(x), prior_normal(sd = 1)), chains = 1, iter = 700)
  expect_identical(fit$bound$parameters, c("(Intercept)", "log(e)", "gb", "gc", "x", "I(x^2)", "gb:x", "gc:x"))
  values <- parameter_draws(fit, fit$bound$parameters[1L])
  beta <- colMeans(posterior::as_draws_matrix(fit$draws))
  design <- model.matrix(~ log(e) + g * x + I(x^2), given)
  colnames(design)[colnames(design) == "I(x^2)"] <- "I(x^2)"
  eta <- posterior::as_draws_matrix(fit$draws) %*% t(design[, fit$bound$parameters]) + rep(given$x, each = length(values))
  expect_equal(unname(predict(fit)), unname(colMeans(plogis(eta))), tolerance = 1e-10)
  expect_equal(predict(fit), predict(fit, given))
  expect_equal(nobs(fit), 30)
  told <- simulate(fit, 40, seed = 1)
  expect_identical(names(told[[1L]]), c("y", names(given)))
  expect_equal(mean(vapply(told, function(d) mean(d$y == "yes"), 0)), mean(predict(fit)), tolerance = 0.15)
  expect_equal(dim(predict(fit, type = "draws")), c(200L, 30L))
  expect_identical(update(fit, y ~ x)$bound$parameters, c("(Intercept)", "x"))
  expect_s3_class(bayesplot::pp_check(fit, draws = 20, seed = 1), "ggplot")
  # one response of two
  both <- as_release(cbind(y = rep(0:1, 15), z = rep(1:0, 15)), stat_records(~ y + z, levels = list(y = c("0", "1"), z = c("0", "1"))),
                     mech_randomized_response(epsilon = 6), public = given)
  slope <- function(formula) coef(given_fit(both, model_logistic(formula), chains = 1, iter = 1500))[["x"]]
  expect_lt(slope(y ~ x) * slope(z ~ x), 0)
})

test_that("default priors are scaled by what covariates are", {
  rel <- as_release(rep(0:1, 15), yes_no, mech_randomized_response(epsilon = 3), public = transform(given, far = 1e6 + 1000 * x))
  said <- rstantools::prior_summary(given_fit(rel, model_logistic(y ~ far), chains = 1, iter = 600))
  sd <- as.double(sub("^normal\\(0, (.*)\\)$", "\\1", said$prior[said$variable == "far"]))
  expect_equal(sd, 3 / (1000 * sqrt(mean((given$x - mean(given$x))^2))), tolerance = 1e-4)
})

test_that("owners release the covariates as they are", {
  skip_on_cran()
  births <- transform(MASS::birthwt, low = factor(low))
  asked <- stat_records(~ low, levels = list(low = c("0", "1")))
  for (make in list(release, simulate_release)) {
    rel <- make(births, asked, mech_randomized_response(epsilon = 60), public = ~ lwt + smoke)
    expect_identical(rel$public$lwt, as.double(MASS::birthwt$lwt))
    expect_identical(names(rel$public), c("lwt", "smoke"))
    expect_equal(unname(rel$value), MASS::birthwt$low)
    expect_output(print(rel), "2 covariates: lwt, smoke")
  }
  # whole numbers with whole noise
  counts <- stat_records(~ breaks, bounds = list(breaks = c(0, 100)))
  rel <- release(warpbreaks, counts, mech_discrete_laplace(scale = 0.01), public = ~ wool + tension)
  expect_equal(unname(rel$value), warpbreaks$breaks)
  expect_equal(coef(given_fit(rel, model_glm(breaks ~ wool + tension, poisson(), prior_normal(0, 10)), iter = 1500)),
               coef(glm(breaks ~ wool + tension, poisson(), warpbreaks)), tolerance = 0.05)
  exact <- simulate_release(MASS::birthwt, stat_records(~ bwt, bounds = list(bwt = c(500, 5500))), mech_gaussian(sd = 1e-3), public = ~ age + lwt)
  fit <- given_fit(exact, model_lm(bwt ~ age + lwt), iter = 1500)
  fit_of_records <- lm(bwt ~ age + lwt, MASS::birthwt)
  expect_equal(coef(fit)[1:3], coef(fit_of_records), tolerance = 0.15)
  expect_equal(sigma(fit), sigma(fit_of_records), tolerance = 0.02)
})

test_that("what does not fit together is refused", {
  skip_on_cran()
  answers <- rep(0:1, 15)
  of <- function(...) as_release(answers, yes_no, mech_randomized_response(epsilon = 1), ...)
  rel <- of(public = given)
  expect_error(of(public = given[1:7, ]), class = "noiseaware_error_public")
  expect_error(of(n = 31, public = given), class = "noiseaware_error_public")
  expect_error(of(public = as.list(given)), class = "noiseaware_error_public")
  expect_error(of(public = transform(given, x = NA_real_)), class = "noiseaware_error_public")
  expect_error(of(public = transform(given, g = "a")), class = "noiseaware_error_public")
  expect_error(of(public = transform(given, y = 1)), class = "noiseaware_error_public")
  expect_error(of(public = given, strange = 1), class = "noiseaware_error")
  expect_error(as_release(c("y=no" = 1, "y=yes" = 2), stat_counts(~ y, list(y = c("no", "yes"))), mech_laplace(scale = 1), public = given),
               class = "noiseaware_error_public")
  expect_error(sample_posterior(rel, model_logistic(y ~ nothing)), class = "noiseaware_error_variables")
  expect_error(sample_posterior(rel, model_logistic(x ~ y)), class = "noiseaware_error_variables")
  expect_error(sample_posterior(rel, model_logistic()), class = "noiseaware_error_formula")
  expect_error(sample_posterior(rel, model_lm(y ~ x)), class = "noiseaware_error_variables")
  expect_error(sample_posterior(rel, model_bernoulli()), class = "noiseaware_error_method")
  expect_error(sample_posterior(rel, model_logistic(y ~ x), method = "augment"), class = "noiseaware_error_method")
  expect_error(sample_posterior(rel, model_logistic(y ~ x), prior_n = prior_n("poisson", mean = 30)), class = "noiseaware_error_argument")
  expect_error(sample_posterior(rel, model_logistic(y ~ x, covariates = list(x = covariate_beta()))), class = "noiseaware_error_prior")
  expect_error(sample_posterior(rel, model_logistic(y ~ x + offset(log(x)))), class = "noiseaware_error_variables")
  counts <- as_release(answers, number(0, 9), mech_laplace(scale = 1), public = given)
  expect_error(sample_posterior(counts, model_glm(y ~ x, Gamma("log"))), class = "noiseaware_error_method")
  other <- as_release(rev(answers), yes_no, mech_randomized_response(epsilon = 1), public = given)
  expect_error(sample_posterior(list(a = rel, b = other), model_logistic(y ~ x), pool = "complete"), class = "noiseaware_error_public")
  expect_error(write_release(rel, tempfile()), class = "noiseaware_error_public")
  expect_error(add_release(rel, rel), class = "noiseaware_error_public")
  expect_error(synthesize(given_fit(rel, model_logistic(y ~ x), chains = 1, iter = 600)), class = "noiseaware_error_method")
  births <- MASS::birthwt
  expect_error(release(births, stat_records(~ bwt, bounds = list(bwt = c(0, 9))), mech_laplace(epsilon = 1), public = "lwt"), class = "noiseaware_error_public")
  expect_error(release(births, stat_records(~ bwt, bounds = list(bwt = c(0, 9))), mech_laplace(epsilon = 1), public = ~ height), class = "noiseaware_error_data")
})

# ---- totals of the response ----------------------------------------------------------------

totals_fit <- function(release, model, iter = 4000, warmup = 1000, ...) {
  fit <- suppressWarnings(sample_posterior(release, model, chains = 2, iter = iter, warmup = warmup, seed = 1, ...))
  expect_identical(fit$problem$family, "public_totals")
  fit
}
sums_of <- function(formula, ...) stat_sums(formula, list(y = c(-30, 30), x = c(-5, 5), e = c(0, 50))[all.vars(formula)], outside = "none", ...)

test_that("the sum of the response and of its product with a covariate: a closed form", {
  x <- seq(-1, 1.2, 0.2)
  rel <- as_release(c(y = 12.5, "y:x" = 9.3), stat_sums(~ y + y:x, list(y = c(-10, 10), x = c(-3, 3)), outside = "none", rescale = FALSE),
                    mech_gaussian(sd = 3), public = data.frame(x))
  fit <- totals_fit(rel, model_lm(y ~ x, prior = prior_normal(0, 2), sigma = fixed(1)))
  expect_true(fit$exact)
  gram <- crossprod(cbind(1, x))
  told <- gram %*% solve(gram + 9 * diag(2))
  covariance <- solve(diag(2) / 4 + told %*% gram)
  expect_posterior(fit, list(mean = drop(covariance %*% told %*% c(12.5, 9.3)), sd = sqrt(diag(covariance))))
  # and the totals themselves, given these
  expect_equal(dim(posterior::as_draws_matrix(denoise(fit))), c(6000L, 2L))
})

test_that("densities have their slopes; totals are distributed as those of records", {
  skip_on_cran()
  set.seed(6)
  n <- nrow(given)
  cases <- list(list(sums_of(~ y + y:x + I(y^2)), mech_laplace(scale = 0.4), y ~ x), list(sums_of(~ y + y:x + I(y^2) + x, rescale = FALSE), mech_gaussian(sd = 9), y ~ x + e),
                list(sums_of(~ y:x + I(y^2) + y:e), mech_laplace(scale = 0.3), y ~ g + x), list(sums_of(~ y:x), mech_gaussian(sd = 2), y ~ x),
                list(stat_crossprod(y ~ x + g, list(y = c(-30, 30), x = c(-5, 5), g = c("a", "b", "c")), outside = "none"), mech_laplace(scale = 0.3), y ~ x + g))
  for (case in cases) {
    y <- 2 + given$x + rnorm(n)
    rel <- simulate_release(cbind(given, y), case[[1L]], case[[2L]], public = ~ x + g + e)
    fit <- totals_fit(rel, model_lm(case[[3L]], prior = prior_normal(), sigma = prior_half_normal(2)), iter = 150, warmup = 100)
    state <- fit$chains[[1L]]$state
    fields <- fit$problem$fields
    told <- fit$problem$summed
    rank <- length(fields$root) / length(told)
    count <- length(fit$bound$unknown) + rank + sum(fields$left[1:2])
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, state, q)
    for (k in 1:3) {
      q <- c(state$theta, rnorm(count - length(state$theta), c(rep(0, rank), if (fields$left[1L]) 0, if (fields$left[2L]) log(fields$left[3L])), 0.3))
      if (!is.null(fields$begin)) q <- fields$begin + rnorm(count, 0, 0.1)
      expect_equal(at(q)[-1L], difference_slopes(at, q, 1e-6), tolerance = 1e-5)
    }
    # totals of records, without noise, in addition to the totals of u, s and x
    sigma <- 1.3 # and coefficients with which no response is beyond the bounds
    columns <- sqrt(length(fields$rest))
    point <- c(1, rep(0.1, columns - 2), 1)
    eta <- drop(matrix(fields$rows, ncol = columns, byrow = TRUE) %*% point)
    records <- function() cbind(given, y = eta + sigma * rnorm(n))
    total <- function(data) internal("statistic_total")(rel$statistic, data)
    one <- records()
    spec <- internal("statistic_spec")(rel$statistic)
    numbers <- internal("statistic_records")(rel$statistic, one, NULL, FALSE)
    response <- match("y", rel$statistic$columns$name)
    total_again <- function() .Call(internal("ffi_stat_total"), spec, replace(numbers, response, list(eta + sigma * rnorm(n))))
    expect_equal(.Call(internal("ffi_stat_total"), spec, numbers), unname(total(one)))
    expect_equal(simulate_release(one, case[[1L]], mech_gaussian(sd = 1e-9), public = ~ x + g + e)$value, total(one), tolerance = 1e-6)
    made <- replicate(1000, total_again()[told])
    mean <- matrix(fields$mean, ncol = columns, byrow = TRUE) %*% point
    rest <- sqrt(max(0, point %*% matrix(fields$rest, columns) %*% point))
    stood <- replicate(1000, {
      v <- drop(mean) + sigma * rnorm(rank)
      square <- sum(v^2) + (if (fields$left[1L]) (rest + sigma * rnorm(1))^2 else 0) + (if (fields$left[2L]) sigma^2 * rchisq(1, fields$left[3L]) else 0)
      fields$known + fields$square * square + drop(matrix(fields$root, ncol = rank, byrow = TRUE) %*% v)
    })
    made <- matrix(made, length(told))
    stood <- matrix(stood, length(told))
    spread <- apply(made, 1L, sd)
    expect_lt(max(abs(rowMeans(made) - rowMeans(stood)) / spread), 5 * sqrt(2 / 1000))
    expect_lt(max(abs(cov(t(made)) - cov(t(stood))) / outer(spread, spread)), 0.25)
  }
})

test_that("at little noise totals say what records say, for fewer and for more covariates", {
  skip_on_cran()
  births <- MASS::birthwt
  births$smoke <- factor(births$smoke)
  bounds <- list(bwt = c(500, 5500), lwt = c(50, 300), smoke = c("0", "1"))
  rel <- simulate_release(births, stat_crossprod(bwt ~ lwt + smoke, bounds, outside = "none"), mech_laplace(scale = 1e-3), public = ~ lwt + smoke + age)
  for (formula in list(bwt ~ lwt + smoke, bwt ~ smoke)) {
    fit <- totals_fit(rel, model_lm(formula, prior = prior_normal(), sigma = prior_half_t(3)))
    of_records <- lm(formula, births)
    names <- names(coef(of_records))
    expect_lt(max(abs(coef(fit)[names] - coef(of_records)) / sqrt(diag(vcov(of_records)))), 0.3)
    expect_equal(sigma(fit), sigma(of_records), tolerance = 0.02)
    expect_equal(sqrt(diag(vcov(fit)))[names], sqrt(diag(vcov(of_records))), tolerance = 0.1)
  }
  # bounds that may clamp: it is said how likely that is
  clamped <- simulate_release(births, stat_crossprod(bwt ~ lwt, bounds[1:2]), mech_laplace(scale = 1), public = ~ lwt)
  fit <- totals_fit(clamped, model_lm(), iter = 1500)
  expect_output(print(fit), "share of records outside")
  bound <- stat_crossprod(bwt ~ lwt + smoke, bounds)
  expect_error(simulate_release(births, bound, mech_laplace(scale = 1), public = ~ lwt), class = "noiseaware_error_public")
  expect_error(sample_posterior(rel, model_glm(bwt ~ lwt, poisson())), class = "noiseaware_error_method")
})

test_that("acceptance() has the proposals about the mode, which are made where many records make them accepted", {
  set.seed(3)
  data <- data.frame(x = rnorm(3000))
  data$y <- rpois(3000, exp(0.5 + 0.3 * data$x))
  noisy <- simulate_release(data, stat_records(~ y, bounds = list(y = c(0, 60))), mech_discrete_laplace(scale = 1), public = ~ x)
  told <- acceptance(sample_posterior(noisy, model_glm(y ~ x, poisson()), chains = 1, iter = 200, seed = 1))
  expect_gt(told$leaps, 0.8)
  expect_lte(told$leaps, 1)
  expect_output(print(told), "proposals about the mode: accepted")
})
