bounds <- list(bwt = c(500, 5500), age = c(14, 50), smoke = c("0", "1"))
set.seed(1)
rel <- simulate_release(MASS::birthwt, stat_crossprod(bwt ~ age + smoke, bounds), mech_laplace(epsilon = 5))
fit <- sample_posterior(rel, model_lm(), chains = 1, iter = 100, seed = 1)
beta <- as.matrix(fit)[, c("(Intercept)", "age", "smoke1")]
conditional_effects <- internal("conditional_effects.noiseaware_fit")

test_that("effects are the expected response, others held fixed", {
  effects <- conditional_effects(fit, prob = 0.8)
  expect_identical(names(effects), c("age", "smoke"))
  age <- effects$age
  expect_identical(range(age$age), c(14, 50))
  expect_identical(nrow(age), 100L)
  expect_identical(age$effect1__, age$age)
  expect_true(all(age$smoke == "0"))
  last <- drop(beta %*% c(1, 50, 0))
  expect_equal(unlist(age[100, c("estimate__", "se__", "lower__", "upper__")], use.names = FALSE),
               unname(c(median(last), sd(last), quantile(last, c(0.1, 0.9), type = 6))))
  smoke <- effects$smoke
  expect_identical(levels(smoke$effect1__), c("0", "1"))
  held <- mean(posterior::extract_variable(fit$draws, "mean[age]"))
  expect_equal(smoke$estimate__[2], median(beta %*% c(1, held, 1)))
  fixed <- conditional_effects(fit, "smoke", conditions = data.frame(age = c(20, 40), row.names = c("young", "old")))$smoke
  expect_identical(levels(fixed$cond__), c("young", "old"))
  expect_equal(fixed$estimate__, unname(apply(beta %*% rbind(1, c(20, 20, 40, 40), c(0, 1, 0, 1)), 2, median)))
})

test_that("two covariates, new responses and the linear predictor", {
  both <- conditional_effects(fit, "age:smoke", resolution = 3)[["age:smoke"]]
  expect_identical(attr(both, "effects"), c("age", "smoke"))
  expect_equal(both$estimate__, unname(apply(beta %*% rbind(1, rep(c(14, 32, 50), 2), rep(0:1, each = 3)), 2, median)))
  turned <- conditional_effects(fit, "smoke:age", int_conditions = list(age = c(20, 30)))[["smoke:age"]]
  expect_identical(levels(turned$effect2__), c("20", "30"))
  expect_identical(levels(conditional_effects(fit, "smoke:age")[["smoke:age"]]$effect2__), c("23", "32", "41"))
  new <- conditional_effects(fit, "smoke", method = "posterior_predict", seed = 1)$smoke
  expect_equal(new$se__[1], sd(predict(fit, data.frame(age = mean(posterior::extract_variable(fit$draws, "mean[age]")), smoke = factor(c("0", "1"))), type = "draws", seed = 1)[, 1]))
  expect_identical(conditional_effects(fit, "smoke", method = "posterior_linpred")$smoke$estimate__, conditional_effects(fit, "smoke")$smoke$estimate__)
})

test_that("a response of several levels has a curve for each", {
  graded <- stat_crossprod(y ~ x, list(y = c("low", "mid", "high"), x = c(-1, 1)))
  set.seed(4)
  levels <- simulate_release(model_glm(family = "categorical"), graded, mech_laplace(scale = 2), n = 30)
  levels <- sample_posterior(levels, model_glm(family = "categorical"), chains = 1, iter = 20, seed = 1)
  effects <- conditional_effects(levels, resolution = 2)[[1]]
  expect_identical(attr(effects, "effects"), c("x", "cats__"))
  p <- predict(levels, data.frame(x = c(-1, 1)), type = "expected")
  expect_equal(effects$estimate__, c(apply(p, 2:3, median)))
  expect_identical(as.character(effects$cats__), rep(c("low", "mid", "high"), each = 2))
})

test_that("sites, and what cannot be shown", {
  set.seed(1)
  sites <- totals_sites(c(first = 40, second = 70))
  pooled <- sample_posterior(sites, model_lm(y ~ x), pool = "partial", chains = 1, iter = 100, seed = 1)
  one <- conditional_effects(pooled, site = "second", resolution = 2)$x
  ends <- one$x
  expect_equal(one$estimate__, unname(apply(as.matrix(pooled)[, c("(Intercept)[second]", "x[second]")] %*% rbind(1, ends), 2, median)))
  mean_site <- conditional_effects(pooled, resolution = 2)$x
  expect_equal(mean_site$estimate__, unname(apply(as.matrix(pooled)[, c("(Intercept)", "x")] %*% rbind(1, ends), 2, median)))
  expect_error(conditional_effects(fit, site = "second"), class = "noiseaware_error_argument")
  expect_error(conditional_effects(fit, "weight"), class = "noiseaware_error_argument")
  expect_error(conditional_effects(fit, conditions = data.frame(weight = 1)), class = "noiseaware_error_argument")
  expect_error(conditional_effects(fit, conditions = data.frame()), class = "noiseaware_error_argument")
  expect_error(conditional_effects(fit, method = "fitted"), class = "noiseaware_error_argument")
  y <- stat_counts(~ y, levels = list(y = c("no", "yes")))
  rate <- sample_posterior(as_release(c(4.2, 6.1), y, mech_laplace(epsilon = 1), n = 10), model_bernoulli(), chains = 1, iter = 40, seed = 1)
  expect_error(conditional_effects(rate), class = "noiseaware_error_argument")
})

test_that("brms plots them", {
  skip_if_not_installed("brms")
  pdf(NULL)
  withr::defer(dev.off())
  drawn <- plot(brms::conditional_effects(fit, c("age", "smoke", "age:smoke")), plot = FALSE)
  expect_length(drawn, 3L)
  for (one in drawn) expect_s3_class(ggplot2::ggplot_build(one), "ggplot_built")
})

test_that("brms computes hypotheses from the draws", {
  skip_if_not_installed("brms")
  age <- as.matrix(fit)[, "age"]
  found <- brms::hypothesis(fit, "age > 0")$hypothesis
  expect_equal(c(found$Estimate, found$Est.Error, found$Post.Prob), c(mean(age), sd(age), mean(age > 0)))
})
