covariate_grid <- internal("covariate_grid")

# Functions of one variable in formulas. What is known without the code: a function's range over a grid of its variable, R's own coding by
# lm() and cut(), and the answers for data that were transformed beforehand.

bounds <- list(wage = c(1, 50), exper = c(0, 60), educ = c(2, 18), age = c(18, 65))
workers <- function(n = 60) {
  set.seed(7)
  x <- data.frame(exper = runif(n, 0, 50), educ = sample(4:18, n, TRUE), age = runif(n, 16, 70))
  x$wage <- exp(1 + 0.02 * x$exper + 0.05 * x$educ + rnorm(n, 0, 0.4))
  x$wage[1:2] <- c(-3, 80) # beyond the bounds, where the logarithm of one is not known
  x
}
quiet <- function(code) suppressMessages(suppressWarnings(code))
formula <- log(wage) ~ log1p(exper) + I(educ > 12) + cut(age, c(18, 30, 50, 65))

# the same data and statistic with columns that were made beforehand
clamp <- function(x, bounds) pmin(pmax(x, bounds[1]), bounds[2])
by_hand <- function(x) {
  age <- clamp(x$age, c(18, 65))
  data.frame("log(wage)" = log(clamp(x$wage, c(1, 50))), "log1p(exper)" = log1p(clamp(x$exper, c(0, 60))), "I(educ > 12)" = x$educ > 12,
             "cut(age, c(18, 30, 50, 65))" = ifelse(age <= 30, "(18,30]", ifelse(age <= 50, "(30,50]", "(50,65]")), check.names = FALSE)
}
made_formula <- `log(wage)` ~ `log1p(exper)` + `I(educ > 12)` + `cut(age, c(18, 30, 50, 65))`
made_bounds <- list("log(wage)" = log(c(1, 50)), "log1p(exper)" = log1p(c(0, 60)), "I(educ > 12)" = c("FALSE", "TRUE"),
                    "cut(age, c(18, 30, 50, 65))" = c("(18,30]", "(30,50]", "(50,65]"))

test_that("the range of a function is what a grid of its variable gives", {
  cases <- expression(log(x), log2(x), log10(x), log(x, 3), log1p(x), sqrt(x), exp(x / 10), expm1(-x / 5), asinh(x), plogis(x), sin(x), cos(2 * pi * x / 7),
                      abs(x - 6), I(1 / x), I(x^-2), I(x^0.5), I((x - 6)^4), I(2^x), I(3 - x), I(10 / (x + 1)), pmin(x, 5), pmax(0, x - 5), sqrt(abs(x - 4)),
                      I(sin(x) * 3 + 1), qlogis(x / 20), log(x + sqrt(2)), I(-x^3))
  for (ends in list(c(0.5, 12), c(5, 7), c(1, 2))) {
    x <- clamp(c(seq(ends[1], ends[2], length.out = 20001), 4, 6), ends)
    for (case in as.list(cases)) {
      values <- eval(case, list(x = x))
      if (diff(range(values)) == 0) next
      got <- noiseaware:::function_image(noiseaware:::read_function(case), ends, "bounds", NULL)
      label <- paste(deparse(case), "between", paste(ends, collapse = " and "))
      expect_lte(got[1], min(values) + 1e-12 * abs(min(values)), label = label)
      expect_gte(got[2], max(values) - 1e-12 * abs(max(values)), label = label)
      expect_equal(got, range(values), tolerance = 1e-6, label = label)
    }
  }
})

test_that("values and levels are R's, and each value has a way back", {
  x <- c(18.5, 30, 30.1, 50, 64)
  for (case in as.list(expression(cut(x, c(18, 30, 50, 65)), cut(x, c(0, 30, 100), right = FALSE), cut(x, c(-Inf, 30, Inf), labels = c("low", "high")),
                                  cut(x, seq(10, 70, 20), include.lowest = TRUE)))) {
    f <- noiseaware:::read_function(case)
    expect_identical(noiseaware:::function_value(f, x), eval(case))
    back <- noiseaware:::function_inverse(f, eval(case))
    expect_identical(noiseaware:::function_value(f, back), eval(case))
  }
  for (case in as.list(expression(I(x > 30), x <= 30, 30 < x, x == 30, x != 30, x %in% c(30, 50)))) {
    f <- noiseaware:::read_function(case)
    expect_identical(as.logical(noiseaware:::function_value(f, x)), as.logical(eval(case)), label = deparse(case))
    back <- noiseaware:::function_inverse(f, c("FALSE", "TRUE"))
    expect_identical(as.character(noiseaware:::function_value(f, back)), c("FALSE", "TRUE"), label = deparse(case))
  }
  for (case in as.list(expression(log(x + 1), I((x - 40) / 10), sqrt(x), I(2^(x / 10)), log(x, 3), I(100 / x), exp(-x / 10), asinh(x), I(x^-3), abs(x), pmax(x, 30), cos(x)))) {
    f <- noiseaware:::read_function(case)
    expect_equal(noiseaware:::function_value(f, noiseaware:::function_inverse(f, eval(case))), eval(case), label = deparse(case))
  }
})

test_that("totals and sensitivities are those of columns that were made beforehand", {
  skip_on_cran() # takes long; `make test` runs it
  data <- workers()
  st <- stat_crossprod(formula, bounds)
  made <- stat_crossprod(made_formula, made_bounds)
  expect_identical(st$components, made$components)
  expect_identical(st$columns, made$columns)
  expect_identical(noiseaware:::statistic_total(st, data), noiseaware:::statistic_total(made, by_hand(data)))
  set.seed(1)
  a <- simulate_release(data, st, mech_laplace(epsilon = 1))
  set.seed(1)
  b <- simulate_release(by_hand(data), made, mech_laplace(epsilon = 1))
  expect_identical(a$value, b$value)
  # of every pair of records on a grid, beyond the bounds too
  grid <- expand.grid(wage = c(-1, 1, 3, 50, 99), exper = c(-1, 0, 60), educ = c(2, 13), age = c(10, 40, 70))
  records <- .Call(noiseaware:::ffi_stat_eval, noiseaware:::statistic_spec(st, TRUE), noiseaware:::statistic_records(st, grid, NULL, FALSE))
  expect_lte(max(dist(records, "manhattan")), sensitivity(st, "L1"))
  expect_lte(max(dist(records)), sensitivity(st, "L2"))
  # a single function, where it is attained
  for (f in c(~ log(wage), ~ sqrt(wage), ~ I(1 / wage), ~ abs(wage - 20))) {
    one <- stat_sums(f, list(wage = c(1, 50)), rescale = FALSE)
    values <- vapply(c(-5, 1, seq(1, 50, 0.5), 60), function(w) noiseaware:::statistic_total(one, data.frame(wage = w)), 0)
    expect_equal(diff(range(values)), sensitivity(one, "L1"))
  }
})

test_that("a fit and its predictions are those of columns that were made beforehand", {
  skip_on_cran()
  data <- workers()
  nd <- data.frame(exper = c(3, 20), educ = c(8, 16), age = c(25, 80))
  fits <- function(st, made, model, model_made, ...) {
    set.seed(2)
    a <- simulate_release(data, st, mech_laplace(epsilon = 20))
    set.seed(2)
    b <- simulate_release(by_hand(data), made, mech_laplace(epsilon = 20))
    list(a = quiet(sample_posterior(a, model, chains = 1, iter = 60, seed = 3, ...)), b = quiet(sample_posterior(b, model_made, chains = 1, iter = 60, seed = 3, ...)))
  }
  for (method in c("augment", "clt", "collapse")) {
    f <- fits(stat_crossprod(formula, bounds), stat_crossprod(made_formula, made_bounds), model_lm(formula), model_lm(), method = method)
    expect_identical(unclass(f$a$draws), unclass(f$b$draws), label = method)
    expect_identical(quiet(predict(f$a, nd)), quiet(predict(f$b, by_hand(cbind(nd, wage = 1)))))
  }
  # products and powers of functions
  f <- fits(stat_crossprod(log(wage) ~ log1p(exper) * I(educ > 12) + I(log1p(exper)^2), bounds[-4]),
            stat_crossprod(`log(wage)` ~ `log1p(exper)` * `I(educ > 12)` + I(`log1p(exper)`^2), made_bounds[-4]), model_lm(), model_lm(), method = "augment")
  expect_identical(unclass(f$a$draws), unclass(f$b$draws))
  expect_true("I(log1p(exper)^2)" %in% names(coef(f$a)))
  # a binary response, a table, a mean
  f <- fits(stat_crossprod(I(educ > 12) ~ log(wage), bounds[c(1, 3)]), stat_crossprod(`I(educ > 12)` ~ `log(wage)`, made_bounds[c(1, 3)]),
            model_glm(I(educ > 12) ~ log(wage)), model_glm(), method = "augment")
  expect_identical(unclass(f$a$draws), unclass(f$b$draws))
  f <- fits(stat_counts(~ cut(age, c(18, 30, 50, 65)):I(educ > 12)), stat_counts(~ `cut(age, c(18, 30, 50, 65))`:`I(educ > 12)`, made_bounds[3:4]),
            model_table(~ cut(age, c(18, 30, 50, 65)):I(educ > 12)), model_table())
  expect_identical(unclass(f$a$draws), unclass(f$b$draws))
  f <- fits(stat_sums(~ log(wage) + I(log(wage)^2), bounds[1]), stat_sums(~ `log(wage)` + I(`log(wage)`^2), made_bounds[1]), model_normal(), model_normal("log(wage)"))
  expect_identical(unclass(f$a$draws), unclass(f$b$draws))
})

test_that("little noise gives lm()'s coefficients by their names", {
  skip_on_cran()
  data <- transform(workers(300), wage = clamp(wage, bounds$wage), age = clamp(age, bounds$age))
  st <- stat_crossprod(formula, bounds, outside = "none")
  set.seed(1)
  fit <- quiet(sample_posterior(simulate_release(data, st, mech_laplace(epsilon = 1e5)), model_lm(formula, prior_nig()), chains = 2, iter = 400, seed = 1))
  clamped <- transform(data, age = clamp(age, c(18.001, 65)))
  expected <- lm(formula, clamped)
  expect_identical(names(coef(fit)), names(coef(expected)))
  expect_lt(max(abs((coef(fit) - coef(expected)) / sqrt(diag(vcov(expected))))), 0.35)
  expect_identical(deparse(formula(fit)), deparse(formula))
  expect_named(covariate_grid(fit), c("exper", "educ", "age"), ignore.order = TRUE)
  expect_equal(unname(model.matrix(fit, clamped)), unname(model.matrix(expected)), ignore_attr = TRUE)
  changed <- quiet(update(fit, . ~ . - I(educ > 12), iter = 60))
  expect_identical(names(coef(changed)), setdiff(names(coef(fit)), "I(educ > 12)TRUE"))
  sets <- synthesize(fit, m = 2, seed = 1)
  expect_named(sets[[1L]], c("wage", "exper", "I(educ > 12)", "age"))
  # intervals, which functions of the package read as such
  intervals <- c("(18,30]", "(30,50]", "(50,65]")
  expect_identical(levels(sets[[1L]]$age), intervals)
  middles <- transform(sets[[1L]], age = c(24, 40, 60)[age])
  ages <- stat_counts(~ cut(age, c(18, 30, 50, 65)))
  expect_identical(simulate_release(sets[[1L]], ages, mech_exact())$value, simulate_release(middles, ages, mech_exact())$value)
  expect_error(simulate_release(sets[[1L]], stat_counts(~ cut(age, c(18, 40, 65))), mech_exact()), class = "noiseaware_error_data")
  expect_true(all(sets[[1L]]$wage > 0))
  if (requireNamespace("emmeans", quietly = TRUE)) {
    means <- as.data.frame(quiet(emmeans::emmeans(fit, ~ exper, at = list(exper = c(5, 25)))))
    grid <- covariate_grid(fit)
    at <- unique(grid[c("educ", "age")])
    expect_equal(means$emmean, vapply(c(5, 25), function(e) median(rowMeans(quiet(predict(fit, cbind(exper = e, at), type = "expected")))), 0), tolerance = 0.02)
  }
})

test_that("a file has the functions as data, and is refused where it has others", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_crossprod(log(wage) ~ cut(age, c(-Inf, 30, 50, Inf)) + sin(2 * pi * month / 12) + I(sex == "f") + factor(k),
                       list(wage = c(1, 50), age = c(18, 65), month = c(1, 12), sex = c("m", "f", "x"), k = c("1", "2")))
  set.seed(1)
  data <- data.frame(wage = runif(9, 1, 9), age = 30:38, month = 1:9, sex = "f", k = 2)
  rel <- release(data, st, mech_laplace(epsilon = 1))
  path <- tempfile(fileext = ".json")
  write_release(rel, path)
  expect_identical(read_release(path), rel)
  text <- readLines(path)
  change <- function(from, to) {
    changed <- sub(from, to, text, fixed = TRUE)
    expect_false(identical(changed, text), label = from)
    writeLines(changed, path)
    expect_error(read_release(path), class = "noiseaware_error_file")
  }
  change("\"function\": \"log\"", "\"function\": \"system\"")
  change("\"function\": \"log\"", "\"function\": \"log2\"")
  change("\"variable\": \"wage\"", "\"variable\": \"pay\"")
  change("\"bounds\": [1, 50]", "\"bounds\": [0, 50]")
  change("\"bounds\": [1, 50]", "\"bounds\": [1, 51]")
  change("\"bounds\": [1, 50]", "\"bounds\": [NaN, 50]")
  change("\"constant\": 12", "\"constant\": null")
  change("\"constant\": 12", "\"constant\": \"NaN\"")
  change("`log(wage)` ~", "system('true') ~")
  writeLines(gsub("log(wage)", "system(wage)", text, fixed = TRUE), path)
  expect_error(read_release(path), "known|state", class = "noiseaware_error_file")
  # a checksum is no help against bounds that were false when it was made
  false <- rel
  false$statistic$functions[["log(wage)"]]$bounds <- c(1, 51)
  write_release(false, path)
  expect_error(read_release(path), "log\\(wage\\)", class = "noiseaware_error_file")
  # whoever has the numbers alone writes the same formula
  again <- as_release(rel$value, stat_crossprod(log(wage) ~ cut(age, c(-Inf, 30, 50, Inf)) + sin(2 * pi * month / 12) + I(sex == "f") + factor(k),
                                                list(wage = c(1, 50), age = c(18, 65), month = c(1, 12), sex = c("m", "f", "x"), k = c("1", "2"))),
                      mech_laplace(epsilon = 1), n = 9)
  expect_identical(again$statistic, rel$statistic)
  # no sine lies beyond -1 and 1
  expect_identical(st$outside[["sin(2 * pi * month/12)"]], "none")
  expect_identical(stat_crossprod(log(wage) ~ exper, bounds[1:2], outside = c(wage = "none"))$outside, c("log(wage)" = "none", exper = "clamp"))
})

test_that("records in files and chunks are read by their variables", {
  skip_on_cran() # takes long; `make test` runs it
  data <- workers()
  st <- list(r = stat_crossprod(formula, bounds), c = stat_counts(~ factor(educ, 4:18)))
  mech <- list(r = mech_laplace(epsilon = 1), c = mech_laplace(epsilon = 1))
  path <- tempfile(fileext = ".csv")
  write.csv(data, path, row.names = FALSE)
  whole <- partial_total(data, st, mech)
  expect_identical(partial_total(record_source(path, rows = 7), st, mech, n = 60)$totals, partial_total(data, st, mech, n = 60)$totals)
  # in the owner's data alone the bounds clamp; a value that the function is not known of is refused elsewhere
  set.seed(1)
  rel <- simulate_release(data, st$r, mech$r)
  fit <- quiet(sample_posterior(rel, model_lm(), chains = 1, iter = 20, seed = 1))
  expect_error(predict(fit, data.frame(exper = -3, educ = 3, age = 20)), "row 1", class = "noiseaware_error_data")
  expect_error(predict(fit, data.frame(exper = 3, age = 20)), "educ", class = "noiseaware_error_data")
})

test_that("values that are none of a function's levels are refused", {
  st <- stat_counts(~ factor(k, c("a", "b")))
  expect_error(simulate_release(data.frame(k = c("a", "z", "b", "y")), st, mech_laplace(epsilon = 1)), "2 others, in rows 2, 4", class = "noiseaware_error_levels")
})

test_that("poly() is short for powers, of functions too", {
  of <- function(formula) stat_crossprod(formula, bounds[intersect(names(bounds), all.vars(formula))])
  expect_identical(of(wage ~ poly(exper, 2, raw = TRUE) + educ), of(wage ~ exper + I(exper^2) + educ))
  expect_identical(of(wage ~ poly(log1p(exper), degree = 3, raw = TRUE)),
                   of(wage ~ log1p(exper) + I(log1p(exper)^2) + I(log1p(exper)^3)))
  expect_identical(of(wage ~ poly(raw = TRUE, 1, x = educ)), of(wage ~ educ))
  expect_identical(model_lm(wage ~ educ * poly(exper, 2, raw = TRUE))$formula, model_lm(wage ~ educ * (exper + I(exper^2)))$formula)
  for (bad in list(wage ~ poly(exper, 9, raw = TRUE), wage ~ poly(exper, educ, raw = TRUE), wage ~ poly(exper, 2, 3, raw = TRUE), wage ~ poly(exper), wage ~ poly(exper, 2, raw = FALSE))) {
    expect_error(of(bad), "raw = TRUE", class = "noiseaware_error_formula")
  }
  expect_error(model_glm(wage ~ s(exper)), "Smooths are for", class = "noiseaware_error_formula")
})

test_that("constants that are named where the formula is made are written out, with a word", {
  breaks <- c(0, 30, 99)
  k <- 1L
  written <- stat_crossprod(wage ~ cut(age, c(0, 30, 99)), bounds[c(1, 4)])
  expect_message(named <- stat_crossprod(wage ~ cut(age, breaks), bounds[c(1, 4)]), "breaks.*constant", class = "noiseaware_message_constants")
  expect_identical(named, written)
  quiet <- suppressMessages
  expect_identical(quiet(stat_crossprod(log(wage + k) ~ age, bounds[c(1, 4)])), stat_crossprod(log(wage + 1) ~ age, bounds[c(1, 4)]))
  expect_identical(quiet(model_lm(wage ~ I((age - k) / 3) * g))$formula, model_lm(wage ~ I((age - 1) / 3) * g)$formula)
  third <- 1 / 3 # digits that the name has not got would be lost in a file
  kept <- quiet(stat_crossprod(wage ~ I(age + third), bounds[c(1, 4)]))$functions
  expect_identical(kept, stat_crossprod(wage ~ I(age + 0.333333333333333), bounds[c(1, 4)])$functions)
  # a product of variables, records, objects of other packages and a name that may be either are no constants
  product <- wage ~ I(age * k)
  expect_silent(expect_identical(internal("functions_as_names")(product), product))
  records <- rnorm(200)
  for (formula in list(wage ~ pmin(age, records), wage ~ cut(age, precip), wage ~ cut(age, nowhere))) {
    expect_error(stat_crossprod(formula, bounds[c(1, 4)]), "would all be variables", class = "noiseaware_error_formula")
  }
  age <- 40
  expect_error(stat_crossprod(wage ~ cut(age, breaks), bounds[c(1, 4)]), "would all be variables", class = "noiseaware_error_formula")
})

test_that("what is no known function of one variable is refused", {
  skip_on_cran() # takes long; `make test` runs it
  show(refusals("formula", expression(
    stat_crossprod(foo(wage) ~ exper, bounds[1:2]), stat_crossprod(wage ~ log(exper + educ), bounds), stat_crossprod(wage ~ system("ls"), bounds[1]),
    stat_crossprod(wage ~ cut(age, 3), bounds[c(1, 4)]), stat_crossprod(wage ~ cut(age), bounds[c(1, 4)]), stat_crossprod(wage ~ cut(age, breaks), bounds[c(1, 4)]),
    stat_crossprod(wage ~ cut(age, 1:1e9), bounds[c(1, 4)]), stat_crossprod(wage ~ poly(age, 2), bounds[c(1, 4)]), stat_crossprod(wage ~ I(NaN * age), bounds[c(1, 4)]),
    stat_crossprod(wage ~ log(base::log(age)), bounds[c(1, 4)]), stat_crossprod(wage ~ I((age > 30) + 1), bounds[c(1, 4)]),
    stat_crossprod(wage ~ exper + log1p(exper), bounds[1:2]), stat_crossprod(wage ~ cut(age, c(0, 30, 99)) + age, bounds[c(1, 4)]),
    model_lm(wage ~ foo(age)), model_glm(wage ~ ns(age, 3)), stat_sums(~ foo(wage), bounds[1]), stat_sums(~ log(2), bounds[1]),
    stat_counts(~ foo(wage)), model_table(~ foo(wage):age))))
  show(refusals("bounds", expression(
    stat_crossprod(log(exper) ~ wage, bounds[1:2]), stat_crossprod(wage ~ I(1 / (age - 30)), bounds[c(1, 4)]), stat_crossprod(wage ~ exp(100 * age), bounds[c(1, 4)]),
    stat_crossprod(wage ~ cut(age, c(20, 30, 50)), bounds[c(1, 4)]), stat_crossprod(wage ~ cut(age, c(0, 10, 30, 99)), bounds[c(1, 4)]),
    stat_crossprod(wage ~ I(age > 70), bounds[c(1, 4)]), stat_crossprod(wage ~ pmax(age, 70), bounds[c(1, 4)]), stat_crossprod(wage ~ log(age), bounds[1]),
    stat_crossprod(wage ~ log(g), list(wage = c(1, 2), g = c("a", "b"))))))
  show(refusals("levels", expression(stat_crossprod(wage ~ factor(age), bounds[c(1, 4)]), stat_counts(~ factor(age)), stat_counts(~ log(wage)))))
  # several functions of one variable in parts that a model takes together
  st <- list(a = stat_counts(~ cut(age, c(0, 30, 99))), b = stat_sums(~ age, bounds[4]))
  set.seed(1)
  rel <- simulate_release(workers(), st, list(a = mech_laplace(epsilon = 1), b = mech_laplace(epsilon = 1)))
  expect_error(sample_posterior(rel, model_mvnormal()), class = "noiseaware_error_formula")
})
