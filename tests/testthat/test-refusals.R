# Refusals that the tests of their subjects do not provoke: what cannot be meant, by the message that says so.

few <- function(...) suppressMessages(suppressWarnings(sample_posterior(..., chains = 1, iter = 20, warmup = 10, seed = 1)))
square <- list(a = c("p", "q"), b = c("u", "v"))
square_release <- as_release(c("a=p:b=u" = 10, "a=p:b=v" = 12, "a=q:b=u" = 9, "a=q:b=v" = 11), stat_counts(~ a:b, square), mech_laplace(scale = 2), n = 42)

test_that("mechanisms, statistics and budgets", {
  expect_error(mech_exact(1), "takes no arguments, but got 1", class = "noiseaware_error_mechanism")
  expect_error(stat_records(~ x, bounds = list(x = c(0, 1)), levels = list(x = c("a", "b"))), "`x` has both", class = "noiseaware_error_bounds")
  expect_error(stat_sums(~ factor(g, c(1, 2)), list(g = c("1", "2", "3"))), "\"3\" is missing", class = "noiseaware_error_levels")
  expect_error(stat_survival(~ log(a), breaks = 1:3), "joined by \\+", class = "noiseaware_error_formula")
  for (bad in expression(budget(), budget(epsilon = 1, rho = 1))) expect_error(eval(bad), "either `epsilon` or `rho`", class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 1, file = "x", connection = 1, table = "t"), "either `file` or `table`", class = "noiseaware_error_budget")
  expect_error(budget(epsilon = 1, connection = 1), "given together", class = "noiseaware_error_budget")
})

test_that("models", {
  three <- as_release(c("k=a" = 1, "k=b" = 2, "k=c" = 3), stat_counts(~ k, list(k = c("a", "b", "c"))), mech_laplace(epsilon = 1), n = 6)
  expect_error(few(three, model_bernoulli()), "`k` has 3", class = "noiseaware_error_variables")
  expect_error(model_survival(~ log(a)), "but is `~log\\(a\\)`", class = "noiseaware_error_formula")
  zeros <- function(...) few(square_release, model_table(~ a:b, prior = prior_normal(), zeros = data.frame(...)))
  expect_error(zeros(a = c("p", "p", "q"), b = c("u", "v", "u")), "leaves 1 of 4", class = "noiseaware_error_zeros")
  expect_error(zeros(a = "w"), "but has \"w\"", class = "noiseaware_error_zeros")
  expect_s3_class(zeros(a = c("p", "p"), b = c("u", "v")), "noiseaware_fit") # two are left
})

test_that("fits", {
  line <- as_release(c(y = 10, x = 4, "y^2" = 5, "y:x" = 3, "x^2" = 4), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1))), mech_laplace(epsilon = 1), n = 20)
  fit <- few(line, model_lm())
  expect_error(contrast(fit, "x > 0", among = "x"), "do not apply to expressions", class = "noiseaware_error_argument")
  expect_error(contrast(fit, ~ x), "must be expressions in the parameters.*is the formula ~x", class = "noiseaware_error_argument")
  for (save in list(function(path) report(fit, path), function(path) write_release(line, path))) {
    expect_error(save(tempdir()), "it is a directory", class = "noiseaware_error_file")
  }
  table <- few(square_release, model_table(~ a:b))
  expect_error(table_measures(table, ~ a, "odds_ratio"), "but has 1", class = "noiseaware_error_formula")
  sets <- synthesize(table, m = 3, n = 200)
  expect_error(suppressMessages(combine_synthetic(sets, function(d) stop("no such column"))), "data set 1 of 3.*no such column", class = "noiseaware_error_analysis")
  k <- 0
  drifting <- function(d) {
    k <<- k + 1
    list(estimate = stats::setNames(1, paste0("e", k)), variance = 1)
  }
  expect_error(suppressMessages(combine_synthetic(sets, drifting)), "their names differ", class = "noiseaware_error_argument")
})
