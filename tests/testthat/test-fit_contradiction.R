# Does the release contradict the model: the two checks' distributions, what they see, and what is said of it.

contradictions <- function(fit) fit$troubles[vapply(fit$troubles, function(trouble) trouble$kind == "contradiction", TRUE)]
sampled <- function(...) told(suppressMessages(suppressWarnings(sample_posterior(..., chains = 2, iter = 400, control = list(beside = FALSE), seed = 1))))

# as if `held` were the draws of the totals of a release of these values, of scale 2
held_fit <- function(value, held, mechanism = mech_laplace(scale = 2)) {
  st <- stat_counts(~ g, list(g = letters[seq_along(value)]))
  list(release = as_release(value, st, mechanism, n = 1000), problem = list(summed = seq_along(value)), method = "augment",
       chains = list(list(statistic = held)), bound = list(levels = list(g = letters[seq_along(value)])))
}
noise_p <- function(fit) {
  totals <- internal("checked_totals")(fit)
  internal("noise_check")(fit, totals)$p
}

test_that("order statistics of uniform numbers are as improbable as they are said to be, at most", {
  skip_on_cran()
  set.seed(1)
  p <- internal("order_p")(matrix(runif(8 * 2e4), 8L))
  for (limit in c(0.2, 0.05, 0.01)) {
    expect_lt(mean(p < limit), limit + 5 * sqrt(limit / length(p)))
    # and not much less
    expect_gt(mean(p < limit), limit / 6)
  }
  # of two, by hand: the least below 1 - (1 - x)^2, both below y^2; two order statistics
  expect_equal(internal("order_p")(cbind(c(0.3, 0.001), c(0.02, 0.01))), 2 * c(1 - 0.999^2, 0.02^2))
  expect_identical(internal("order_p")(matrix(1, 2L, 3L)), c(1, 1, 1))
})

test_that("tails of noise are those of its distribution, and of its sum with a normal number", {
  tail <- internal("noise_tail")
  expect_equal(tail(cbind(c(3, -3)), c(TRUE, FALSE), c(0, 0)), cbind(c(exp(-3), 2 * pnorm(-3))))
  # integers: probabilities proportional to exp(-|k| / scale)
  at <- -400:400
  expect_equal(drop(tail(cbind(c(0, 5, 12) / 3), rep(TRUE, 3L), rep(1 / 3, 3L))),
               vapply(c(0, 5, 12), function(k) sum(exp(-abs(at[abs(at) >= k]) / 3)) / sum(exp(-abs(at) / 3)), 0))
  exact <- function(x, sd, scale) {
    beyond <- function(y) ifelse(y > 0, exp(-y / scale) / 2, 1 - exp(y / scale) / 2)
    2 * integrate(function(z) dnorm(z) * beyond(x - sd * z), -12, 12, rel.tol = 1e-10, subdivisions = 1000L)$value
  }
  for (case in list(c(3, 1, 2), c(8, 1, 0.5), c(4, 0.2, 1), c(-4, 2, 0.1))) {
    expect_equal(internal("normal_laplace_tail")(case[1L], case[2L], case[3L]), exact(abs(case[1L]), case[2L], case[3L]), tolerance = 1e-6)
  }
  expect_equal(internal("normal_laplace_tail")(c(5, 5, 0), c(0, 1, 1), c(1, 1e-12, 1)), c(exp(-5), 2 * pnorm(-5), 1), tolerance = 1e-6)
})

test_that("several totals at five noise scales are seen, as few as one cannot be", {
  value <- rep(100, 8L)
  off <- function(scales) {
    held <- matrix(value - 2 * c(scales, 1, -0.4, 0.2, 0.9, -0.1), 3L, 8L, byrow = TRUE)
    noise_p(held_fit(value, held))
  }
  limit <- internal("noise_limit")
  expect_lt(off(c(5, -5, 5)), limit)
  expect_gt(off(c(5, 0.3, -0.8)), limit)
  expect_lt(off(c(14, 0.3, -0.8)), limit)
  # normal noise: 5 standard deviations of one
  held <- matrix(value - 2 * c(5.5, 1, -0.4, 0.2, 0.9, -0.1, 1, -1), 3L, 8L, byrow = TRUE)
  expect_lt(noise_p(held_fit(value, held, mech_gaussian(sd = 2))), limit)
  # draws that are mostly near make a total that is not far
  near <- rbind(held, matrix(value, 3L, 8L))
  expect_gt(noise_p(held_fit(value, near, mech_gaussian(sd = 2))), 0.1)
})

test_that("simulated records give the mean and variance of the totals", {
  st <- stat_counts(~ g, list(g = c("a", "b")))
  rel <- as_release(c(1600, 2400), st, mech_discrete_laplace(scale = 30), n = 4000)
  fit <- sampled(rel, model_categorical(), "augment")
  probability <- parameter_draws(fit, "prob[b]")
  found <- internal("predicted_totals")(fit)
  expect_lt(abs(found$mean[2L] - 4000 * mean(probability)), 5 * sqrt(found$variance[2L] / 20))
  within <- 4000 * mean(probability * (1 - probability)) + 4000^2 * var(c(probability))
  # sampling, and what theta is not known by, which 20 draws tell within a third or so
  expect_gt(found$variance[2L], 0.6 * within)
  expect_lt(found$variance[2L], 2 * within)
  # probabilities that are known: a binomial distribution; 20 times 4,000 records tell its variance well
  known <- internal("predicted_totals")(sampled(rel, model_categorical(prior = prior_dirichlet(1e8)), "augment"))
  expect_equal(known$variance, rep(1000, 2L), tolerance = 0.1)
  expect_equal(known$mean, rep(2000, 2L), tolerance = 5 * sqrt(1000 / 20) / 2000)
})

test_that("a release that the records themselves contradict names the variables and what would serve", {
  skip_on_cran()
  set.seed(1)
  data <- data.frame(y = runif(300, -1, 1), sex = sample(c("f", "m"), 300, TRUE))
  data$rank <- ifelse(data$sex == "f", "high", sample(c("high", "low"), 300, TRUE))
  st <- stat_crossprod(y ~ rank + sex, list(y = c(-1, 1), rank = c("high", "low"), sex = c("f", "m")), outside = "none")
  rel <- simulate_release(data, st, mech_laplace(epsilon = 20))
  found <- contradictions(sampled(rel, model_lm(factors = "independent")))[[1L]]$text
  expect_match(found[[1L]], "published numbers are far from what it predicts \\(ranklow:sexm by [0-9]+ ")
  expect_match(found[["x"]], "no dependence of `rank` and `sex`")
  expect_match(paste(found, collapse = " "), "factors = \"dependent\" in the model", fixed = TRUE)
  expect_false(grepl("negative_binomial", paste(found, collapse = " ")))
  fit <- sampled(rel, model_lm(factors = "dependent"))
  expect_length(contradictions(fit), 0L)
  expect_match(paste(capture.output(print(sampled(rel, model_lm(factors = "independent")))), collapse = " "), "! The release contradicts the model")
})

test_that("counts that spread more than a Poisson distribution lets them are told, with what would serve", {
  skip_on_cran()
  set.seed(3)
  data <- data.frame(y = pmin(rnbinom(40, mu = 10, size = 0.4), 60), g = rep(c("a", "b"), 20))
  statistic <- stat_crossprod(y ~ g, list(y = c(0, 60), g = c("a", "b")))
  of <- function(epsilon, model) contradictions(sampled(simulate_release(data, statistic, mech_laplace(epsilon = epsilon)), model, "augment"))
  found <- of(1000, model_glm(family = poisson()))[[1L]]$text
  expect_match(found[[1L]], "\\(y by [0-9]+ noise scales")
  expect_match(found[["x"]], "distribution of `y` is not the model's \\(poisson\\)")
  expect_match(paste(found, collapse = " "), "negative_binomial", fixed = TRUE)
  expect_length(of(0.5, model_glm(family = poisson())), 0L)
})

test_that("components are traced to their variables", {
  variables <- function(statistic) unname(vapply(internal("component_variables")(statistic), paste, "", collapse = " "))
  bounds <- list(y = c(0, 1), x = c(0, 1), g = c("a", "b"))
  expect_identical(variables(stat_crossprod(y ~ x + g, bounds)), c("y", "x", "g", "y", "y x", "y g", "x", "x g"))
  expect_identical(variables(stat_sums(~ y + I(y^2) + x:y, bounds[c("y", "x")])), c("y", "y", "y x"))
  expect_identical(variables(stat_counts(~ g:h + g, list(g = c("a", "b"), h = c("u", "v")))), rep(c("g h", "g"), c(4L, 2L)))
  expect_identical(variables(stat_size()), "")
})

test_that("reasons fit the model", {
  reason <- function(model, statistic, ...) internal("contradiction_reason")(c(...), internal("bind_model")(model, statistic))
  bounds <- list(y = c(0, 9), x = c(0, 1), z = c(0, 9), g = c("a", "b"))
  st <- stat_crossprod(y ~ x + z + g, bounds)
  expect_match(reason(model_lm(), st, "x")$why, "`x` is not the model's (normal)", fixed = TRUE)
  expect_match(reason(model_lm(), st, "x", "z")$why, "`x` and `z` is not as for normal variables")
  expect_match(reason(model_lm(), st, "x", "y")$why, "how `y` depends on `x`")
  expect_null(reason(model_lm(), st, "x", "y")$advice)
  found <- reason(model_glm(family = poisson()), st, "g", "x")
  expect_match(found$why, "no dependence of `g` and `x`")
  expect_match(found$advice, "factors = \"dependent\" in the model", fixed = TRUE)
  lone <- model_glm(family = poisson(), covariates = list(z = covariate_count()))
  expect_match(reason(lone, st, "x", "z")$why, "its own distribution is independent")
  expect_match(reason(lone, st, "z")$why, "(count)", fixed = TRUE)
  expect_match(reason(lone, st, "z")$advice, "covariate_count(size = prior_gamma(1, 0.2))", fixed = TRUE)
  expect_null(reason(lone, st, "x")$advice)
  spread <- model_glm(family = poisson(), covariates = list(z = covariate_count(size = prior_gamma(1, 0.2))))
  expect_null(reason(spread, st, "z")$advice)
  expect_match(reason(lone, st, "x", "y")$advice, "negative_binomial")
  expect_match(reason(lone, st, "g")$why, "how many records have each level of `g`")
})

test_that("moments of counts are the ones of the matrix of records and cells", {
  set.seed(1)
  levels <- list(g = letters[1:3], h = c("u", "v"))
  data <- data.frame(g = factor(sample(levels$g, 50, TRUE), levels$g), h = factor(sample(levels$h, 50, TRUE), levels$h), x = runif(50))
  statistics <- list(stat_counts(~ g:h + g, levels), stat_size(), stat_histogram(~ x, list(x = c(0, 0.3, 0.6, 1))),
                     stat_subset(stat_counts(~ g, levels["g"]), "g=a"), stat_linear(stat_counts(~ g, levels["g"]), rbind(one = c(1, 2, 0), two = c(0, 1, 3))),
                     stat_sums(~ x, list(x = c(0, 1))))
  for (statistic in statistics) {
    records <- internal("statistic_records")(statistic, data, NULL, TRUE)
    each <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(statistic), records)
    moments <- internal("moments_over_records")(statistic, internal("statistic_spec")(statistic), records, 50, FALSE)
    expect_equal(moments$mean, colMeans(each))
    expect_equal(moments$variance, apply(each, 2, var))
  }
})

test_that("a rare level that no simulated record has is no contradiction", {
  skip_on_cran() # takes long; `make test` runs it
  three <- stat_counts(~ g, levels = list(g = c("a", "b", "rare")))
  both <- stat_linear(three, list(ab = c("g=a", "g=b"), b = "g=b", rare = "g=rare"))
  released <- list(as_release(c(299988.3, 699999.6, 12), three, mech_laplace(scale = 1), 1e6), as_release(c(999988.3, 699999.6, 12), both, mech_laplace(scale = 1), 1e6))
  for (release in released) for (seed in 1:6) {
    fit <- told(suppressMessages(suppressWarnings(sample_posterior(release, model_table(), chains = 1, iter = 400, seed = seed))))
    expect_length(contradictions(fit), 0L)
  }
})

test_that("a prior that holds the spread up is named where bounds are far wider than the data", {
  skip_on_cran() # takes long; `make test` runs it
  told_of <- function(statistic, model, data) {
    set.seed(1)
    paste(contradictions(sampled(simulate_release(data, statistic, mech_laplace(epsilon = 20)), model))[[1L]]$text, collapse = " ")
  }
  set.seed(1)
  data <- data.frame(y = rnorm(1000, 400, 30), x = rnorm(1000, 450, 30))
  wide <- list(y = c(-1000, 3000), x = c(-1000, 3000))
  text <- told_of(stat_sums(~ y + I(y^2), wide["y"]), model_normal(), data)
  expect_match(text, "The prior hardly allows the spread of `y`", fixed = TRUE)
  expect_match(text, "prior_nig(rate = )", fixed = TRUE)
  expect_match(told_of(stat_crossprod(y ~ x, wide), model_mvnormal(), data), "spread of `x`.*prior_niw\\(scale = \\)")
  # with such a prior, no contradiction and the spread of the records
  set.seed(1)
  release <- simulate_release(data, stat_sums(~ y + I(y^2), wide["y"]), mech_laplace(epsilon = 20))
  fit <- sampled(release, model_normal(prior = prior_nig(rate = 500)))
  expect_length(contradictions(fit), 0L)
  expect_lt(abs(mean(parameter_draws(fit, "sd")) - 30), 3 * sd(parameter_draws(fit, "sd")))
  # the prior is the user's own: it is not blamed
  expect_identical(internal("narrow_variables")(fit), character())
  regression <- function(...) sampled(simulate_release(data, stat_crossprod(y ~ x, wide), mech_laplace(epsilon = 20)), model_lm(...))
  expect_identical(internal("narrow_variables")(regression(prior = prior_normal(0, 500))), "x")
  expect_identical(internal("narrow_variables")(regression(covariates = prior_niw(scale = 1e4))), character())
  # where numbers spread it is not named
  fit$bound <- internal("bind_model")(model_normal(), release$statistic)
  expect_identical(internal("narrow_variables")(fit), "y")
  fit$draws <- posterior::as_draws_array(posterior::draws_matrix(sd = c(239, 242)))
  expect_identical(internal("narrow_variables")(fit), character())
})

# ---- pools -------------------------------------------------------------------------------

# sites of equal size, with these means
sites_about <- function(mean, mechanism = mech_laplace(epsilon = 10)) {
  set.seed(1)
  asked <- stat_sums(~ y + I(y^2), list(y = c(0, 10)), outside = "none")
  lapply(stats::setNames(mean, letters[seq_along(mean)]), function(m) simulate_release(data.frame(y = m + rnorm(400)), asked, mechanism))
}
pooled <- function(release, pool, model = model_normal(), method = "auto", iter = 400) {
  told(suppressMessages(suppressWarnings(sample_posterior(release, model, method, pool = pool, chains = 2, iter = iter, seed = 1))))
}

test_that("sites that differ are told where they have the same parameters", {
  apart <- sites_about(c(3, 5, 7))
  for (method in c("collapse", "augment")) {
    found <- contradictions(pooled(apart, "complete", method = method))
    expect_length(found, 1L)
    text <- paste(found[[1L]]$text, collapse = " ")
    expect_match(text, "y[a]", fixed = TRUE)
    expect_match(text, "`pool = \"partial\"` lets them differ", fixed = TRUE)
    expect_no_match(text, "pp_check")
  }
  expect_length(contradictions(pooled(apart, "partial")), 0L)
  # the same of groups of one release
  levels <- list(g = c("a", "b"))
  set.seed(1)
  data <- data.frame(y = rep(c(3, 7), each = 400) + rnorm(800), g = rep(levels$g, each = 400))
  asked <- list(size = stat_counts(~ g, levels), total = stat_by(stat_sums(~ y + I(y^2), list(y = c(0, 10)), outside = "none"), levels))
  release <- simulate_release(data, asked, list(size = mech_laplace(epsilon = 5), total = mech_laplace(epsilon = 10)))
  text <- paste(contradictions(pooled(release, "complete", model_normal(~ g), iter = 1000))[[1L]]$text, collapse = " ")
  expect_match(text, "y:g=", fixed = TRUE)
  expect_match(text, "All groups have the same parameters")
})

test_that("sites that are alike are not told", {
  alike <- sites_about(c(5, 5.02, 4.97))
  for (pool in c("complete", "partial")) expect_length(contradictions(pooled(alike, pool)), 0L)
})

test_that("the noise of a pool is that of its sites' totals", {
  fit <- pooled(sites_about(c(4, 5, 6), mech_gaussian(sd = 3)), "partial")
  totals <- internal("checked_totals")(fit)
  expect_identical(totals$name, c("y[a]", "y^2[a]", "y[b]", "y^2[b]", "y[c]", "y^2[c]"))
  expect_equal(totals$value, unname(unlist(lapply(fit$release, `[[`, "value"))))
  held <- internal("held_totals")(fit, fit$chains[[1L]])[, totals$column]
  expect_equal(held, unname(unclass(posterior::as_draws_matrix(denoise(fit)[, 1, ]))), ignore_attr = TRUE)
})
