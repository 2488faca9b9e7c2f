# What a table tells: against the same computed from the draws of all probabilities, and against R's glm(), chisq.test().

binary <- c("a", "b")
levels3 <- list(x = binary, y = c("u", "v", "w"), z = binary)

saturated <- function(...) {
  set.seed(1)
  rel <- simulate_release(model_table(prior = prior_dirichlet(4)), stat_counts(~ x:y:z, levels3), mech_gaussian(sd = 2), n = 400)
  sample_posterior(rel, model_table(...), chains = 2, iter = 300, warmup = 100, seed = 1) |> suppressWarnings()
}

matrix_of <- function(draws) unclass(posterior::as_draws_matrix(draws))

# draws x (z fastest, then y, then x), which arrays have with the first dimension the fastest
joint_of <- function(fit, row) array(matrix_of(fit$draws)[row, fit$bound$parameters], c(2, 3, 2), list(z = binary, y = levels3$y, x = binary))

test_that("probabilities, conditional ones, odds ratios", {
  fit <- saturated()
  for (row in c(1, 250)) {
    p <- joint_of(fit, row)
    xz <- apply(p, c("z", "x"), sum)
    expect_equal(unname(matrix_of(table_measures(fit, ~ x:z))[row, ]), as.vector(xz))
    expect_equal(unname(matrix_of(table_measures(fit, ~ z * x))[row, ]), as.vector(t(xz)))
    given <- table_measures(fit, ~ y | x + z)
    expect_equal(matrix_of(given)[row, "y=v|x=b:z=a"], p["a", "v", "b"] / sum(p["a", , "b"]), ignore_attr = TRUE)
    expect_equal(matrix_of(table_measures(fit, ~ x:y, "odds_ratio"))[row, "x=b:y=w"],
                 with(list(q = apply(p, c("x", "y"), sum)), q["b", "w"] * q["a", "u"] / (q["b", "u"] * q["a", "w"])), ignore_attr = TRUE)
    expect_equal(matrix_of(table_measures(fit, ~ x:y | z, "odds_ratio"))[row, "x=b:y=w|z=b"],
                 p["b", "w", "b"] * p["b", "u", "a"] / (p["b", "u", "b"] * p["b", "w", "a"]), ignore_attr = TRUE)
  }
  expect_identical(posterior::variables(table_measures(fit, ~ y:x, "odds_ratio")), c("y=v:x=b", "y=w:x=b"))
  expect_identical(dim(table_measures(fit)), c(200L, 2L, 12L))
  expect_equal(matrix(table_measures(fit), ncol = 12), matrix(fit$draws, ncol = 12))
})

test_that("log-linear coefficients are those of glm()", {
  fit <- saturated()
  cells <- as.data.frame(as.table(joint_of(fit, 17)), responseName = "p")
  contrasts <- list(x = "contr.treatment", y = "contr.treatment", z = "contr.treatment")
  oracle <- stats::lm(log(p) ~ x * y * z, cells, contrasts = contrasts)$coefficients
  got <- matrix_of(table_measures(fit, measure = "loglinear"))[17, ]
  names(oracle) <- gsub("([xyz])([a-w])", "\\1=\\2", names(oracle))
  names(oracle)[1] <- "(Intercept)"
  expect_setequal(names(got), names(oracle))
  expect_equal(got[names(oracle)], oracle)
  pair <- table_measures(fit, ~ x:z, "loglinear")
  expect_equal(exp(matrix_of(pair)[, "x=b:z=b"]), matrix_of(table_measures(fit, ~ x:z, "odds_ratio"))[, 1], ignore_attr = TRUE)
})

test_that("association: chi-square, information, tau, Q", {
  fit <- saturated()
  got <- matrix_of(table_measures(fit, ~ x:y, "association"))
  for (row in c(1, 99)) {
    p <- apply(joint_of(fit, row), c("x", "y"), sum)
    expect_equal(got[row, "cramers_v"], sqrt(suppressWarnings(stats::chisq.test(p * 1e6))$statistic / 1e6), ignore_attr = TRUE)
    entropy <- function(q) -sum(q * log(q))
    expect_equal(got[row, "mutual_information"], entropy(rowSums(p)) + entropy(colSums(p)) - entropy(p), ignore_attr = TRUE)
    gini <- function(q) 1 - sum(q^2)
    expect_equal(got[row, "tau"], 1 - sum(rowSums(p) * apply(p / rowSums(p), 1, gini)) / gini(colSums(p)), ignore_attr = TRUE)
  }
  square <- matrix_of(table_measures(fit, ~ x:z, "association"))
  odds <- matrix_of(table_measures(fit, ~ x:z, "odds_ratio"))[, 1]
  expect_equal(square[, "yule_q"], (odds - 1) / (odds + 1), ignore_attr = TRUE)
  expect_false("yule_q" %in% colnames(got))
})

test_that("variables of several cliques: the product of the graph's probabilities", {
  levels <- list(a = binary, b = c("u", "v", "w"), c = binary, d = binary, e = binary)
  tree <- ~ a:b + b:c:d + e
  set.seed(2)
  rel <- simulate_release(model_table(tree), stat_counts(~ a:b + c:d + e, levels), mech_laplace(scale = 2), n = 100)
  fit <- suppressWarnings(sample_posterior(rel, model_table(tree), chains = 1, iter = 200, seed = 1))
  at <- matrix_of(fit$draws)[60, ]
  # p(a, b) p(c, d | b) p(e), whichever clique came first
  joint <- function(a, b, c, d, e) {
    label <- c(a = a, b = b, c = c, d = d, e = e)
    prod(vapply(fit$bound$parts, function(part) {
      variable <- names(fit$bound$levels)
      one <- function(v) paste0(variable[v], "=", label[variable[v]], collapse = ":")
      name <- if (length(part$parents)) sprintf("prob[%s|%s]", one(part$children), one(part$parents)) else sprintf("prob[%s]", one(part$children))
      at[[name]]
    }, 0))
  }
  all <- expand.grid(levels, stringsAsFactors = FALSE)
  all$p <- mapply(joint, all$a, all$b, all$c, all$d, all$e)
  expect_equal(sum(all$p), 1)
  ad <- tapply(all$p, all[c("d", "a")], sum)
  expect_equal(unname(matrix_of(table_measures(fit, ~ a:d))[60, ]), as.vector(ad))
  ea <- tapply(all$p, all[c("a", "c", "e")], sum)
  expect_equal(matrix_of(table_measures(fit, ~ e:c | a))[60, "e=b:c=a|a=b"], ea["b", "a", "b"] / sum(ea["b", , ]), ignore_attr = TRUE)
  expect_equal(unname(matrix_of(table_measures(fit, ~ a:e, "association"))[60, "mutual_information"]), 0)
  old <- set_constant("most_tracked", 11)
  expect_error(table_measures(fit, ~ a:d), "They are `a`, `b`, `c`, and `d`", class = "noiseaware_error_size")
  set_constant("most_tracked", old)
})

test_that("predict(), coef() and tidy() of a table", {
  fit <- saturated()
  told <- predict(fit, ~ y | x, interval = "credible", level = 0.8)
  expect_named(told, c("x", "y", "fit", "lower", "upper", "mcse"))
  draws <- predict(fit, ~ y | x, type = "expected")
  expect_identical(colnames(draws)[5], "y=v|x=b")
  expect_equal(told$fit[told$x == "b" & told$y == "v"], mean(draws[, "y=v|x=b"]))
  expect_equal(told$upper[5], stats::quantile(draws[, 5], 0.9, type = 6, names = FALSE))
  expect_equal(as.vector(tapply(told$fit, told$x, sum)), c(1, 1))
  expect_named(predict(fit, ~ y), c("y", "fit"))
  expect_equal(coef(fit, margin = ~ y | x), colMeans(draws))
  skip_if_not_installed("generics")
  tidied <- generics::tidy(fit, measure = "odds_ratio", margin = ~ x:y)
  expect_identical(tidied$term, c("x=b:y=v", "x=b:y=w"))
  odds <- matrix_of(table_measures(fit, ~ x:y, "odds_ratio"))
  expect_equal(tidied$estimate, unname(apply(odds, 2, stats::median)))
  expect_equal(tidied$std.error, unname(apply(odds, 2, stats::mad)))
  expect_equal(coef(fit, "odds_ratio", ~ x:y), apply(odds, 2, stats::median))
  # cells near 0: the mean of the draws lies outside the interval
  sparse <- suppressMessages(as_release(c(30, 4, 5, 20), stat_counts(~ a:b, list(a = c("u", "v"), b = c("p", "q"))), mech_laplace(epsilon = 1), n = 59))
  sparse <- suppressMessages(sample_posterior(sparse, model_table(), chains = 2, iter = 1500, seed = 1))
  told <- generics::tidy(sparse, measure = "odds_ratio", margin = ~ a:b)
  expect_gt(mean(matrix_of(table_measures(sparse, ~ a:b, "odds_ratio"))), told$conf.high)
  expect_true(told$estimate > told$conf.low && told$estimate < told$conf.high)
  expect_equal(tidied$conf.high, unname(apply(odds, 2, stats::quantile, 0.975, type = 6)))
})

test_that("what cannot be told is refused", {
  skip_on_cran()
  fit <- saturated()
  zero <- saturated(zeros = ~ x == "b" & y == "u")
  other <- sample_posterior(as_release(c(3, 4), stat_counts(~ y, list(y = binary)), mech_laplace(scale = 1), 7), model_bernoulli(), chains = 1, iter = 100, seed = 1) |> suppressWarnings()
  expect_true(all(table_measures(zero, ~ x:y)[, , "x=b:y=u"] == 0))
  refusals("zeros", expression(table_measures(zero, ~ x:y, "odds_ratio"), table_measures(zero, measure = "loglinear")))
  expect_true(all(is.finite(table_measures(zero, ~ x:y, "association"))))
  refusals("formula", expression(table_measures(fit, "x"), table_measures(fit, x ~ y), table_measures(fit, ~ log(x)), table_measures(fit, ~ x:x), table_measures(fit, ~ x | x),
                                 table_measures(fit, ~ x, "odds_ratio"), table_measures(fit, ~ x:y:z, "association"), predict(fit, y ~ x)))
  refusals("variables", expression(table_measures(fit, ~ x:w), predict(fit, ~ x | w)))
  refusals("argument", expression(table_measures(other, ~ y), table_measures(1), table_measures(fit, ~ x, "odds"), predict(fit, ~ x, type = "draws"),
                                  predict(fit, ~ x, interval = "predictive"), predict(other, ~ y)))
})
