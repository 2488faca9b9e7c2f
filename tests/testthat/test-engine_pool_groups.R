# Groups of one release: exact posteriors, the same by releases of sites, limits, restarts, errors.

two_groups <- list(g = c("a", "b"))
by_group <- stat_by(stat_sums(~ y, list(y = c(0, 20))), two_groups)
sizes_of <- stat_counts(~ g, two_groups)

noisy_groups <- function(n, size_noise = mech_laplace(scale = 2), size = c(4.3, 6.9), neighbours = "replace") {
  as_release(list(size = size, total = c(11.2, 30.5)), list(size = sizes_of, total = by_group),
             list(size = size_noise, total = mech_laplace(scale = 4)), n = n, neighbours = neighbours)
}

# p(z | N, rate) of a group's noisy total, the total summed out
total_likelihood <- function(n, rate, z, s = 0:250) {
  noise <- exp(-abs(z - s) / 4)
  if (n == 0) return(rep(noise[s == 0], length(rate)))
  drop(exp(outer(log(n * rate), s) - outer(n * rate, lgamma(s + 1), `+`)) %*% noise)
}
noise_of_sizes <- function(a, b, size = c(4.3, 6.9)) exp(-abs(size[1] - a) / 2 - abs(size[2] - b) / 2)

test_that("Poisson rates of two groups whose sizes have noise: enumeration and quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  rate <- seq(0.005, 30, by = 0.01)
  prior <- dgamma(rate, 2, 0.5)
  each <- function(z, most) vapply(0:most, function(n) total_likelihood(n, rate, z) * prior, rate)
  n <- 12
  first <- each(11.2, n)
  second <- each(30.5, n)
  a <- 0:n
  weight <- noise_of_sizes(a, n - a)
  fit <- sample_posterior(noisy_groups(n), model_poisson(y ~ g, prior = prior_gamma(2, 0.5)), iter = 1800, seed = 1)
  expect_identical(posterior::variables(fit$draws), c("rate[a]", "rate[b]"))
  expect_distribution(parameter_draws(fit, "rate[a]"), grid_quantile(rate, drop(first %*% (weight * colSums(second)[n - a + 1]))))
  expect_distribution(parameter_draws(fit, "rate[b]"), grid_quantile(rate, drop(second[, n - a + 1] %*% (weight * colSums(first)))))
  size <- posterior::extract_variable_matrix(denoise(fit), "size: g=a")
  mass <- weight * colSums(first) * colSums(second)[n - a + 1]
  expect_same_mean(size, sum(a * mass) / sum(mass))
  expect_same_mean(size^2, sum(a^2 * mass) / sum(mass))
  expect_identical(range(size + posterior::extract_variable_matrix(denoise(fit), "size: g=b")), c(12, 12))
  # one rate for both
  shared <- rowSums(vapply(a, function(k) noise_of_sizes(k, n - k) * total_likelihood(k, rate, 11.2) * total_likelihood(n - k, rate, 30.5) * prior, rate))
  fit <- update(fit, pool = "complete")
  expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, shared))
})

test_that("an unknown number of all records", {
  skip_on_cran() # takes long; `make test` runs it
  rate <- seq(0.02, 30, by = 0.04)
  prior <- dgamma(rate, 2, 0.5)
  most <- 20
  first <- vapply(0:most, function(n) total_likelihood(n, rate, 11.2) * prior, rate)
  second <- colSums(vapply(0:most, function(n) total_likelihood(n, rate, 30.5) * prior, rate))
  sizes <- expand.grid(a = 0:most, b = 0:most)
  n <- sizes$a + sizes$b
  # n is uniform, and the shares given n
  mass <- ifelse(n >= 3 & n <= most, noise_of_sizes(sizes$a, sizes$b) / (n + 1), 0) * second[sizes$b + 1]
  fit <- sample_posterior(noisy_groups(NULL), model_poisson(~ g, prior = prior_gamma(2, 0.5)), prior_n = prior_n("uniform", lower = 3, upper = most), iter = 1800, seed = 2)
  expect_distribution(parameter_draws(fit, "rate[a]"), grid_quantile(rate, drop(first[, sizes$a + 1] %*% mass)))
  joint <- mass * colSums(first)[sizes$a + 1]
  expect_same_mean(parameter_draws(fit, "n"), sum(n * joint) / sum(joint))
  expect_same_mean(parameter_draws(fit, "n")^2, sum(n^2 * joint) / sum(joint))
})

test_that("probabilities by group, from cells, from one level and sizes, and from both", {
  skip_on_cran() # takes long; `make test` runs it
  cells <- stat_counts(~ g:x, c(two_groups, list(x = c("no", "yes"))))
  value <- c("g=a:x=no" = 3.1, "g=a:x=yes" = 5.8, "g=b:x=no" = 1.2, "g=b:x=yes" = 2.5)
  n <- 14
  a <- 0:n
  p <- seq(0.002, 0.998, by = 0.004)
  both <- function(g, s, size) exp(-abs(value[2 * g] - s) / 2 - abs(value[2 * g - 1] - (size - s)) / 2)
  fit <- sample_posterior(as_release(value, cells, mech_laplace(scale = 2), n = n), model_bernoulli(~ g, prior = prior_beta(2, 1.5)), iter = 1800, seed = 3)
  # of noise p(z | s, N) of each group
  exact_of <- function(noise) {
    likelihood <- function(g) vapply(0:n, function(size) {
      s <- 0:size
      vapply(p, function(p) sum(dbinom(s, size, p) * noise(g, s, size)), 0) * dbeta(p, 2, 1.5)
    }, p)
    first <- likelihood(1)
    second <- colSums(likelihood(2))[n - a + 1]
    list(quantile = grid_quantile(p, drop(first %*% second)), size = sum(a * colSums(first) * second) / sum(colSums(first) * second))
  }
  exact <- exact_of(both)
  expect_true(fit$exact)
  expect_distribution(parameter_draws(fit, "prob[yes,a]"), exact$quantile)
  d <- denoise(fit)
  expect_setequal(posterior::variables(d), names(value))
  expect_same_mean(posterior::extract_variable_matrix(d, "g=a:x=no") + posterior::extract_variable_matrix(d, "g=a:x=yes"), exact$size)

  yes <- value[c("g=a:x=yes", "g=b:x=yes")]
  sizes <- c(8.2, 4.4)
  with_sizes <- function(cells_value) {
    as_release(list(cell = cells_value, size = sizes), list(cell = cells, size = sizes_of), list(cell = mech_laplace(scale = 2), size = mech_gaussian(sd = 1.5)), n = n)
  }
  told_size <- function(g, size) exp(-(sizes[g] - size)^2 / 4.5)
  fit <- sample_posterior(with_sizes(yes), model_bernoulli(x ~ g, prior = prior_beta(2, 1.5)), iter = 1800, seed = 4)
  exact <- exact_of(function(g, s, size) exp(-abs(yes[g] - s) / 2) * told_size(g, size))
  expect_distribution(parameter_draws(fit, "prob[yes,a]"), exact$quantile)
  expect_same_mean(posterior::extract_variable_matrix(denoise(fit), "size: g=a"), exact$size)
  fit <- sample_posterior(with_sizes(value), model_bernoulli(x ~ g, prior = prior_beta(2, 1.5)), iter = 1800, seed = 5)
  exact <- exact_of(function(g, s, size) both(g, s, size) * told_size(g, size))
  expect_distribution(parameter_draws(fit, "prob[yes,a]"), exact$quantile)
  expect_same_mean(posterior::extract_variable_matrix(denoise(fit), "size: g=a"), exact$size)
  # the other level alone
  no <- value[c("g=a:x=no", "g=b:x=no")]
  fit <- sample_posterior(with_sizes(no), model_bernoulli(x ~ g, prior = prior_beta(2, 1.5)), iter = 1800, seed = 6)
  exact <- exact_of(function(g, s, size) exp(-abs(no[g] - (size - s)) / 2) * told_size(g, size))
  expect_distribution(parameter_draws(fit, "prob[yes,a]"), exact$quantile)
})

test_that("partial pooling with sizes that have noise: quadrature over the mean, its spread, rates and sizes", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 12
  at <- seq(-5, 5, by = 0.04)
  mean <- seq(-3, 4, by = 0.1)
  log_sd <- seq(-5, 2, by = 0.1)
  first <- vapply(0:n, function(k) total_likelihood(k, exp(at), 11.2), at)
  second <- vapply(n - 0:n, function(k) total_likelihood(k, exp(at), 30.5), at)
  noise <- noise_of_sizes(0:n, n - 0:n)
  joint <- vapply(exp(log_sd), function(sd) {
    normal <- outer(mean, at, function(m, a) dnorm(a, m, sd))
    normal <- normal / rowSums(normal)
    drop((normal %*% first * normal %*% second) %*% noise)
  }, mean) * outer(dgamma(exp(mean), 2, 0.5) * exp(mean), dnorm(exp(log_sd), 0, 0.8) * exp(log_sd))
  fit <- sample_posterior(noisy_groups(n), model_poisson(~ g, prior = prior_gamma(2, 0.5)), pool = partial_pooling(sd = prior_half_normal(0.8)),
                          iter = 2100, seed = 7)
  expect_distribution(log(parameter_draws(fit, "rate")), grid_quantile(mean, rowSums(joint)))
  expect_distribution(log(parameter_draws(fit, "sd[log(rate)]")), grid_quantile(log_sd, colSums(joint)))
})

# nor wider bounds, which nobody but the owner can choose
test_that("a warning of clamped records does not name a method that groups do not have", {
  levels <- list(g = c("a", "b"))
  narrow <- stat_by(stat_sums(~ y, list(y = c(0, 4))), levels)
  rel <- as_release(list(size = c(20, 30), total = c(60, 80)), list(size = stat_counts(~ g, levels), total = narrow),
                    list(size = mech_exact(), total = mech_laplace(scale = 3)), n = 50)
  expect_warning(told(sample_posterior(rel, model_poisson(~ g), pool = "complete", chains = 1, iter = 1000, seed = 1)), "declare_outside",
                 class = "noiseaware_warning_bounds")
})

test_that("sizes that are known: the same as a list of releases", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(1)
  levels <- list(g = c("a", "b", "c"))
  y <- stat_sums(~ y, list(y = c(0, 20)))
  total <- c(20.3, 44.1, 31.8)
  n <- c(6, 11, 9)
  grouped <- as_release(list(size = n, total = total), list(size = stat_counts(~ g, levels), total = stat_by(y, levels)),
                        list(size = mech_exact(), total = mech_laplace(scale = 3)), n = sum(n))
  alone <- Map(function(total, n) as_release(total, y, mech_laplace(scale = 3), n = n), total, n)
  names(alone) <- levels$g
  for (pool in c("complete", "partial", "walk")) {
    fit <- sample_posterior(grouped, model_poisson(~ g), pool = pool, chains = 2, iter = 300, seed = 2)
    expect_identical(fit$draws, sample_posterior(alone, model_poisson(), pool = pool, chains = 2, iter = 300, seed = 2)$draws)
  }
  rate <- sample_posterior(grouped, model_exponential(~ g, prior = prior_gamma(2, 3)), pool = "partial", chains = 2, iter = 300, seed = 3)
  expect_identical(rate$draws, sample_posterior(alone, model_exponential(prior = prior_gamma(2, 3)), pool = "partial", chains = 2, iter = 300, seed = 3)$draws)
  # each by itself
  fit <- sample_posterior(grouped, model_poisson(~ g, prior = prior_gamma(2, 0.5)), iter = 1800, seed = 4)
  grid <- seq(0.01, 15, by = 0.01)
  for (k in 1:3) {
    density <- vapply(grid, function(r) sum(dpois(0:300, n[k] * r) * exp(-abs(total[k] - 0:300) / 3)), 0) * dgamma(grid, 2, 0.5)
    expect_distribution(parameter_draws(fit, sprintf("rate[%s]", levels$g[k])), grid_quantile(grid, density))
  }
  expect_equal(as.numeric(log_evidence(fit)), sum(vapply(alone, function(r) {
    as.numeric(log_evidence(sample_posterior(r, model_poisson(prior = prior_gamma(2, 0.5)), method = "collapse", chains = 1, iter = 200, seed = 1)))
  }, 0)), tolerance = 1e-6)
  # means of numbers
  squares <- stat_sums(~ y + I(y^2), list(y = c(-50, 50)), rescale = FALSE)
  value <- c(9.4, 30.2, 28.1, 25, 110, 95)
  normal <- as_release(list(size = n, total = value), list(size = stat_counts(~ g, levels), total = stat_by(squares, levels)),
                       list(size = mech_exact(), total = mech_gaussian(sd = 3)), n = sum(n))
  alone <- Map(function(k, n) as_release(value[c(k, k + 3)], squares, mech_gaussian(sd = 3), n = n), 1:3, n)
  names(alone) <- levels$g
  for (pool in c("partial", "none")) {
    fit <- sample_posterior(normal, model_normal(y ~ g), pool = pool, chains = 2, iter = 300, seed = 5)
    expect_identical(fit$draws, sample_posterior(alone, model_normal(), pool = pool, chains = 2, iter = 300, seed = 5)$draws)
  }
})

test_that("noise of sizes that is almost none, and groups without records", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_poisson(~ g, prior = prior_gamma(2, 0.5))
  nearly <- sample_posterior(noisy_groups(11, mech_laplace(scale = 0.01), c(4, 7)), model, pool = "partial", iter = 1800, seed = 1)
  known <- sample_posterior(noisy_groups(11, mech_exact(), c(4, 7)), model, pool = "partial", iter = 1800, seed = 2)
  for (v in posterior::variables(known$draws)) expect_agreement(parameter_draws(nearly, v), parameter_draws(known, v))
  expect_identical(range(posterior::extract_variable_matrix(denoise(nearly), "size: g=a")), c(4, 4))
  # a group of no records is known from the others alone, or from the prior
  empty <- sample_posterior(noisy_groups(7, mech_exact(), c(0, 7)), model, iter = 1800, seed = 3)
  expect_distribution(parameter_draws(empty, "rate[a]"), function(p) qgamma(p, 2, 0.5))
  empty <- sample_posterior(noisy_groups(7, mech_laplace(scale = 0.01), c(0, 7)), model, iter = 1800, seed = 3)
  expect_distribution(parameter_draws(empty, "rate[a]"), function(p) qgamma(p, 2, 0.5))
})

test_that("the gradient is that of the density", {
  cells <- stat_counts(~ g:x, c(two_groups, list(x = c("no", "yes"))))
  releases <- list(noisy_groups(12), as_release(c(3.1, 5.8, 1.2, 2.5), cells, mech_laplace(scale = 2), n = 14))
  models <- list(model_poisson(~ g), model_bernoulli(~ g))
  for (k in 1:2) for (pool in c("none", "complete", "partial")) {
    fit <- sample_posterior(releases[[k]], models[[k]], pool = pool, chains = 1, iter = 60, seed = 1)
    state <- fit$chains[[1]]$state
    log_density <- function(q) .Call(internal("ffi_pool_density"), fit$problem, state, q)
    for (q in list(c(0.3, -0.4, 0.2, 0.9), c(1.1, 0.2, -1.3, 0.4))) {
      q <- q[seq_len(c(none = 2, complete = 1, partial = 4)[[pool]])]
      slope <- log_density(q)[-1]
      for (i in seq_along(q)) {
        step <- replace(numeric(length(q)), i, 1e-5)
        expect_equal((log_density(q + step)[1] - log_density(q - step)[1]) / 2e-5, slope[i], tolerance = 1e-6)
      }
    }
  }
})

test_that("a run cut in two is the same run, and what a fit shows", {
  skip_on_cran() # takes long; `make test` runs it
  for (pool in c("none", "partial")) for (n in list(12, NULL)) {
    whole <- sample_posterior(noisy_groups(n), model_poisson(~ g), pool = pool, chains = 2, iter = 400, warmup = 150, seed = 1)
    cut <- extend(sample_posterior(noisy_groups(n), model_poisson(~ g), pool = pool, chains = 2, iter = 250, warmup = 150, seed = 1), 150)
    expect_identical(cut$draws, whole$draws)
  }
  fit <- sample_posterior(noisy_groups(12), model_poisson(~ g), pool = "partial", chains = 2, iter = 400, seed = 1)
  expect_output(print(fit), "2 groups by g")
  expect_output(print(fit), "how many are in each group is sampled")
  expect_identical(nobs(fit), 12)
  expect_identical(rownames(coef(fit)), c("a", "b"))
  expect_s3_class(plot(fit, "shrinkage"), "ggplot")
  expect_identical(shrinkage_data(fit)$n, c(NA_real_, NA_real_))
  expect_identical(sort(site_ranks(fit)$table$site), c("a", "b"))
  expect_identical(posterior::variables(site_draws(fit, "new", seed = 1)), "rate")
  expect_true("sizes" %in% names(acceptance(fit)))
  expect_identical(update(fit, pool = "none")$pool, "separate")
  expect_output(print(model_poisson(visits ~ ward)), "visits, by ward")
})

test_that("intervals are calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(g = letters[1:5])
  set.seed(11)
  ranks <- replicate(40, {
    mean <- log(rgamma(1, 4, 1))
    sd <- abs(rnorm(1, 0, 0.5))
    rate <- exp(rnorm(5, mean, sd))
    # shares uniform on the simplex
    size <- c(rmultinom(1, 60, rexp(5)))
    total <- rpois(5, size * rate)
    rel <- as_release(list(size = size + rnorm(5, 0, 3), total = total + rnorm(5, 0, 15)),
                      list(size = stat_counts(~ g, levels), total = stat_by(stat_sums(~ y, list(y = c(0, 1e3))), levels)),
                      list(size = mech_gaussian(sd = 3), total = mech_gaussian(sd = 15)), n = 60)
    fit <- sample_posterior(rel, model_poisson(~ g, prior = prior_gamma(4, 1)), pool = partial_pooling(sd = prior_half_normal(0.5)),
                            chains = 1, iter = 450, warmup = 250, thin = 2)
    draws <- posterior::as_draws_matrix(fit$draws)
    truth <- c(exp(mean), sd, rate[1:2])
    c(colMeans(draws[, 1:4] < rep(truth, each = nrow(draws))), mean(posterior::extract_variable(denoise(fit), "size: g=a") < size[1] + 0.5 - runif(1)))
  })
  for (k in seq_len(nrow(ranks))) expect_gt(suppressWarnings(stats::ks.test(ranks[k, ], "punif"))$p.value, 1e-4)
})

test_that("what cannot be is refused", {
  skip_on_cran()
  model <- model_poisson(~ g)
  of_groups <- noisy_groups(12)
  three <- list(g = two_groups$g, h = c("u", "v"))
  squares <- stat_by(stat_sums(~ y + I(y^2), list(y = c(0, 20)), rescale = FALSE), two_groups)
  normal <- as_release(list(size = c(4, 8), total = c(11, 30, 60, 90)), list(size = sizes_of, total = squares),
                       list(size = mech_laplace(scale = 1), total = mech_laplace(scale = 3)), n = 12)
  lone <- as_release(c("y:g=a" = 11), by_group, mech_exact(), n = 12)
  no_sizes <- as_release(c(11, 30), by_group, mech_laplace(scale = 3), n = 12)
  half <- as_release(list(size = c(4, 8), total = c("y:g=a" = 11)), list(size = sizes_of, total = by_group),
                     list(size = mech_laplace(scale = 1), total = mech_laplace(scale = 3)), n = 12)
  across <- as_release(c(all = 50), stat_linear(by_group, list(all = c("y:g=a", "y:g=b"))), mech_laplace(scale = 3), n = 12)
  crossed <- as_release(1:4, stat_counts(~ g:h, three), mech_laplace(scale = 3), n = 12)
  margin <- as_release(1:2, stat_counts(~ h, three["h"]), mech_laplace(scale = 3), n = 12)
  show(c(refusals("groups", expression(
    sample_posterior(of_groups, model_poisson(~ ward)), sample_posterior(no_sizes, model), sample_posterior(half, model), sample_posterior(across, model),
    sample_posterior(margin, model_bernoulli(~ g)), sample_posterior(of_groups, model_exponential(~ g)),
    sample_posterior(list(a = of_groups), model, pool = "partial"))),
    refusals("method", expression(sample_posterior(of_groups, model, method = "augment"))),
    refusals("variables", expression(sample_posterior(crossed, model))),
    refusals("pool", expression(sample_posterior(of_groups, model, pool = "some"))),
    refusals("argument", expression(
      sample_posterior(of_groups, model, prior_n = prior_n("poisson", mean = 10)), sample_posterior(of_groups, model, init = list(1)),
      sample_posterior(of_groups, model, control = list(passes = 2)), model_poisson(y ~ g + h), model_poisson(~ .)))))
})

test_that("sites that publish their known number of records with noise, too", {
  total <- stat_sums(~ y, list(y = c(0, 20)))
  site <- function(y, size) {
    as_release(list(y = y, size = size), list(y = total, size = stat_size()), list(y = mech_laplace(scale = 3), size = mech_laplace(scale = 2)), n = 9,
               neighbours = "add_remove")
  }
  alone <- function(y) as_release(y, total, mech_laplace(scale = 3), n = 9, neighbours = "add_remove")
  draws <- function(sites) sample_posterior(sites, model_poisson(), pool = "complete", chains = 1, iter = 100, seed = 1)$draws
  expect_identical(draws(list(a = site(20.3, 7.1), b = site(31.4, 9.8))), draws(list(a = alone(20.3), b = alone(31.4))))
})

test_that("groups are called groups where one population is needed", {
  skip_on_cran()
  by <- list(arm = c("a", "b"))
  rel <- as_release(list(t = c(30, 70), sizes = c(6, 6)), list(t = stat_by(stat_sums(~ y, list(y = c(0, 20))), by), sizes = stat_counts(~ arm, by)),
                    list(t = mech_laplace(scale = 1), sizes = mech_exact()), n = 12)
  expect_error(sample_posterior(rel, model_lm(y ~ arm)), "model_normal(~ arm)", fixed = TRUE, class = "noiseaware_error_variables")
  fit <- suppressWarnings(sample_posterior(rel, model_poisson(~ arm), chains = 1, iter = 20, seed = 1))
  expect_match(capture.output(print(fit)), "12 records, 6 a group", fixed = TRUE, all = FALSE)
  for (refused in list(quote(simulate(fit)), quote(synthesize(fit)), quote(stan_program(fit)))) {
    message <- tryCatch(eval(refused), noiseaware_error = function(e) cli::ansi_strip(rlang::cnd_message(e)))
    expect_match(message, "several groups", fixed = TRUE)
    expect_no_match(message, "site can be", fixed = TRUE)
  }
})
