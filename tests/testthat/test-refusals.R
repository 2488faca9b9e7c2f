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

# What random calls found: tools/fuzz.R.
test_that("values of an odd type or shape are refused by name, or are what they hold", {
  skip_on_cran() # takes long; `make test` runs it
  yes <- stat_counts(~ g, list(g = c("a", "b")))
  for (bad in list("z", NA, 1, list(list()), factor("optimised"), character(), ~ x, matrix("hashing"))) {
    expect_error(mech_unary_encoding(epsilon = 1, encoding = bad), "`encoding` must be one of", class = "noiseaware_error_mechanism")
  }
  expect_error(stat_quantiles(~ x, list(x = c(0, 1)), probs = diag(2)), "`probs` must be", class = "noiseaware_error_argument")
  for (bad in list(new.env(), quote(f(x)), mean, factor("none"))) {
    expect_error(stat_covariance(~ x, list(x = c(0, 1)), 0.5, 4, outside = bad), "`outside` must be", class = "noiseaware_error_argument")
    expect_error(stat_sums(~ x, list(x = c(0, 1)), outside = bad), "`outside` must be", class = "noiseaware_error_argument")
    expect_error(stat_sums(~ x, list(x = c(0, 1)), outside = bad, centre = 0.5), "`outside` must be", class = "noiseaware_error_argument")
  }
  for (bad in list(mean, quote(f(x)), "a", NA)) {
    expect_error(stat_covariance(~ x, list(x = c(0, 1)), bad, 4), "`centre` must be", class = "noiseaware_error_argument")
    expect_error(stat_sums(~ x, list(x = c(0, 1)), centre = bad), "`centre` must be", class = "noiseaware_error_argument")
  }
  expect_no_warning(expect_error(stat_subset(yes, "f\xff"), "`components` must be", class = "noiseaware_error_argument"))
  for (bad in list("{x}", data.frame(), diag(3), ~ x)) {
    expect_error(design(model_bernoulli(), yes, epsilon = 1, n = 4, level = bad), "`level` must be", class = "noiseaware_error_argument")
  }
  expect_no_warning(expect_error(design(model_bernoulli(), yes, `[`, epsilon = 1, n = 4), "without arguments", class = "noiseaware_error_argument"))
  expect_no_warning(expect_error(mech_tabulated(dnorm, matrix(1:6, 2)), "`grid` must be", class = "noiseaware_error_mechanism"))
  expect_error(covariate_moments(data.frame(x = 1:100)[FALSE]), "`draws` must be", class = "noiseaware_error_prior")
  expect_no_warning(expect_error(as_release(1:2, yes, mech_laplace(epsilon = 1), n = sum), "`n` must be", class = "noiseaware_error_argument"))
  rel <- as_release(c("g=a" = 3, "g=b" = 5), yes, mech_laplace(epsilon = 1), n = 8)
  marginals <- list(levels = list(g = c("a", "b")), marginals = list(list(clique = list("g"), values = c(3, 5), sd = 1)))
  expect_error(read_release(marginals, "marginals", mechanism = mech_gaussian, n = 8, neighbours = "z"), "`neighbours` must be", class = "noiseaware_error_argument")
  lives <- few(as_release(c(4, 3, 1, 2, 6), stat_survival(~ 1, c(0, 2, 4)), mech_laplace(epsilon = 1), n = 16), model_survival())
  expect_error(survival_measures(lives, "survival", times = c(3, 3)), "`times` must be different", class = "noiseaware_error_argument")
  set <- function(level) confidence_set(rel, model_bernoulli(), "prob[b]", level = level, replicates = 19, seed = 1)
  expect_equal(set(matrix(0.9)), set(0.9))
})

test_that("few draws give warnings of the package alone, and levels may be all but 0 or 1", {
  alien <- function(code) {
    seen <- character()
    withCallingHandlers(code, warning = function(w) {
      if (!any(startsWith(class(w), "noiseaware_warning"))) seen <<- c(seen, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
    seen
  }
  line <- as_release(c(y = 10, x = 4, "y^2" = 5, "y:x" = 3, "x^2" = 4), stat_crossprod(y ~ x, list(y = c(0, 1), x = c(0, 1))), mech_laplace(epsilon = 1), n = 20)
  # posterior has its own warning of so few draws
  expect_gt(length(alien(posterior::mcse_mean(rep(c(1, -1), 10) + sin(seq_len(20)) / 3))), 0)
  expect_identical(alien(internal("without_capping")(posterior::mcse_mean(rep(c(1, -1), 10) + sin(seq_len(20)) / 3))), character())
  expect_identical(alien({
    fit <- sample_posterior(line, model_lm(), chains = 1, iter = 10, warmup = 5, seed = 1)
    for (k in 1:3) capture.output(print(extend(fit, k)))
  }), character())
  areas <- data.frame(county = c("p", "p", "q"), block = c("1", "2", "3"))
  home <- as_release(c(2, 4, 6), stat_counts(~ block, list(block = areas$block)), mech_discrete_gaussian(sd = 1), n = 12)
  expect_identical(alien(expect_output(print(sample_geography(home, ~ county/block, areas, chains = 1, iter = 10, warmup = 5, seed = 1)), "too few draws")), character())
  half <- function(level) unname(internal("combine_population")(0.5, 0.2, 5, level, 1)[["half"]])
  expect_equal(c(half(0), half(5e-324)), c(0, 0))
  expect_true(is.finite(half(1 - 1e-16)) && half(1 - 1e-16) > half(0.999))
})
