# Bars in the formula of a regression: what varies between the groups of one release.

by <- list(g = c("a", "b", "c"))
bounds <- list(y = c(-10, 10), x = c(0, 4))
products <- stat_crossprod(y ~ x, bounds, outside = "none")
set.seed(1)
people <- data.frame(g = rep(by$g, c(30, 45, 60)), x = runif(135, 0, 4))
people$k <- rep(c("low", "middle", "high"), 45)
people$y <- rnorm(135, c(a = -1, b = 0, c = 2)[people$g] + 0.5 * people$x)
grouped <- function(statistic, sizes, noise) {
  set.seed(2)
  simulate_release(people, list(size = stat_counts(~ g, by), total = stat_by(statistic, by)), list(size = sizes, total = noise))
}
# the same numbers, a release a group
apart <- function(release, statistic, noise, size = NULL) {
  lapply(stats::setNames(seq_along(by$g), by$g), function(k) {
    numbers <- unname(release$value[-(1:3)])[seq(k, by = 3, length.out = length(statistic$components))]
    if (is.null(size)) return(as_release(numbers, statistic, noise, n = release$value[[k]]))
    as_release(list(part1 = release$value[[k]], part2 = numbers), list(part1 = stat_size(), part2 = statistic), list(part1 = size, part2 = noise), n = NULL,
               neighbours = "add_remove")
  })
}

test_that("a bar is read as in lme4 and brms", {
  read <- function(f) unlist(internal("split_bars")(f)$bars)
  expect_identical(read(y ~ x + (x | g)), read(y ~ (1 + x | g) + x))
  expect_identical(read(y ~ x + (x || g)), read(y ~ x + (1 | g) + (0 + x | g)))
  expect_identical(internal("split_bars")(y ~ x * z + (z:x + x | g))$bars, list(labels = c("(Intercept)", "x", "x:z"), correlated = TRUE))
  expect_identical(internal("split_bars")(log(y) ~ log(x) + (0 + log(x) | g))$bars$labels, "log(x)")
  expect_identical(deparse(internal("split_bars")(y ~ (1 | g))$formula), "y ~ 1")
  expect_output(print(model_lm(y ~ x + (x || g))), "(1 + x || g)", fixed = TRUE)
  show(c(refusals("formula", expression(
    model_lm(y ~ x + 1 | g), model_lm(y ~ x + (1 | g) + (1 | h)), model_lm(y ~ x + (1 | g / h)), model_lm(y ~ 1 + (x | g)), model_lm(y ~ x + (0 | g)),
    model_lm(y ~ x + (. | g)), model_lm(y ~ x + (1 | g) + (x | g)), model_lm(y ~ x + (1 | g) + (1 | g)))),
    refusals("groups", expression(sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 1)), model_lm(y ~ x + (1 | h))),
                                  sample_posterior(list(a = grouped(products, mech_exact(), mech_gaussian(sd = 1))), model_lm(y ~ x + (1 | g)), pool = "partial"))),
    refusals("pool", expression(sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 1)), model_lm(y ~ x + (1 | g)), pool = ~ x),
                                sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 1)), model_lm(y ~ x + (x || g)),
                                                 pool = partial_pooling(correlation = prior_lkj())))),
    refusals("method", expression(sample_posterior(grouped(stat_crossprod(k ~ x, list(k = c("low", "middle", "high"), x = c(0, 4))), mech_exact(),
                                                           mech_gaussian(sd = 1)), model_glm(k ~ x + (1 | g), family = "cumulative"))))))
})

test_that("bars say what partial_pooling() says of a list of releases", {
  skip_on_cran() # takes long; `make test` runs it
  noise <- mech_gaussian(sd = 0.5)
  rel <- grouped(products, mech_exact(), noise)
  sites <- apart(rel, products, noise)
  draws <- function(release, model, ...) sample_posterior(release, model, chains = 1, iter = 60, seed = 1, ...)$draws
  expect_same <- function(formula, pool) expect_identical(draws(rel, model_lm(formula)), draws(sites, model_lm(y ~ x), pool = pool))
  expect_same(y ~ x + (1 | g), ~ (Intercept))
  expect_same(y ~ x + (0 + x | g), ~ x)
  expect_same(y ~ x + (x | g), partial_pooling(~ (Intercept) + x, correlation = prior_lkj(1)))
  expect_same(y ~ x + (x || g), partial_pooling(~ (Intercept) + x))
  expect_identical(draws(rel, model_lm(y ~ x + (1 | g)), pool = "complete"), draws(sites, model_lm(y ~ x), pool = "complete"))
  expect_identical(draws(rel, model_lm(y ~ x + (1 | g)), pool = "none"), draws(sites, model_lm(y ~ x), pool = "none"))
  expect_identical(draws(rel, model_lm(y ~ x + (1 | g)), pool = partial_pooling(sd = prior_exponential(2))),
                   draws(sites, model_lm(y ~ x), pool = partial_pooling(~ (Intercept), sd = prior_exponential(2))))
  # noisy sizes, and less than was released
  rel <- grouped(products, mech_gaussian(sd = 2), noise)
  expect_identical(draws(rel, model_lm(y ~ x + (x | g)), method = "augment"),
                   draws(apart(rel, products, noise, mech_gaussian(sd = 2)), model_lm(y ~ x), method = "augment",
                         pool = partial_pooling(~ (Intercept) + x, correlation = prior_lkj(1))))
  expect_message(sample_posterior(rel, model_lm(y ~ (1 | g)), chains = 1, iter = 20, seed = 1), class = "noiseaware_message_components") |> suppressWarnings()
  # counts of all combinations
  people$z <- cut(people$x, c(0, 2, 4), c("u", "v"), include.lowest = TRUE)
  people$s <- ifelse(people$y > 1, "yes", "no")
  levels <- c(list(z = c("u", "v")), by, list(s = c("no", "yes")))
  cells <- stat_counts(~ z:g:s, levels)
  rel <- simulate_release(people, cells, mech_laplace(epsilon = 1))
  own <- stat_counts(~ z:s, levels[-2L])
  sites <- lapply(stats::setNames(nm = by$g), function(g) {
    as_release(unname(rel$value[grep(paste0("g=", g), names(rel$value))]), own, mech_laplace(scale = rel$scale[[1L]]), n = NULL)
  })
  expect_identical(draws(rel, model_logistic(s ~ z + (z | g))),
                   draws(sites, model_logistic(s ~ z), pool = partial_pooling(~ (Intercept) + zv, correlation = prior_lkj(1))))
})

test_that("predictions are for the groups of the rows", {
  fit <- sample_posterior(grouped(products, mech_exact(), mech_gaussian(sd = 0.5)), model_lm(y ~ x + (x | g)), chains = 1, iter = 100, seed = 1)
  new <- data.frame(g = c("c", "a", "c"), x = c(0, 1, 2))
  expect_identical(predict(fit, new), c(predict(fit, new[1, ], site = "c"), predict(fit, new[2, ], site = "a"), predict(fit, new[3, ], site = "c")))
  expect_equal(predict(fit, new), coef(fit)[new$g, "(Intercept)"] + coef(fit)[new$g, "x"] * new$x, ignore_attr = TRUE)
  expect_identical(predict(fit, new, interval = "credible")[2, ], predict(fit, new[2, ], site = "a", interval = "credible")[1, ])
  expect_identical(predict(fit, new, type = "expected")[, 3], predict(fit, new[3, ], site = "c", type = "expected")[, 1])
  draws <- as.matrix(fit)
  expect_equal(predict(fit, new, re_formula = NA), mean(draws[, "(Intercept)"]) + mean(draws[, "x"]) * new$x)
  more <- data.frame(g = c("a", "d", "e", "d"), x = 2)
  told <- predict(fit, more, type = "expected", allow_new_levels = TRUE, seed = 1)
  expect_identical(told[, 2], told[, 4])
  expect_gt(stats::sd(told[, 2] - told[, 3]), 0.1)
  expect_identical(told[, 1], predict(fit, more[1, ], type = "expected")[, 1])
  show(c(refusals("data", expression(predict(fit, more), predict(fit, more["x"]), predict(fit))),
         refusals("argument", expression(predict(fit, new, re_formula = ~ 0), predict(fit, new, site = "a", re_formula = NA), predict(fit, new, allow_new_levels = 1)))))
})
