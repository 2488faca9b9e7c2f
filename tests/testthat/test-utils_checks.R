# What R/utils_checks.R refuses whatever the function.

error_of <- function(call) tryCatch(eval(call), error = identity)

test_that("a missing argument is an error of the function that was called", {
  skip_on_cran() # takes long; `make test` runs it
  for (name in getNamespaceExports("noiseaware")) {
    formals <- formals(getExportedValue("noiseaware", name))
    needed <- setdiff(names(Filter(function(default) identical(default, quote(expr = )), formals)), "...")
    for (absent in needed) {
      given <- setdiff(needed, absent)
      e <- error_of(as.call(c(as.name(name), stats::setNames(rep(list(NULL), length(given)), given))))
      said <- inherits(e, "noiseaware_error") && grepl(paste0("`", absent, "` must be given"), e$message, fixed = TRUE) # conditionMessage() formats it once more
      expect_true(said && identical(called(e), name), label = paste(name, "without", absent))
    }
  }
  two <- error_of(quote(sample_posterior()))
  expect_match(conditionMessage(two), "`release` and `model` must be given; they have no default.", fixed = TRUE)
})

test_that("a missing number of records is told how to be unknown", {
  st <- stat_counts(~ g, list(g = c("a", "b")))
  expect_error(as_release(1:2, st, mech_laplace(epsilon = 1)), "Use `n = NULL` if", class = "noiseaware_error_argument")
  expect_error(as_release(1:2, st, n = 3), "must be given; it has no default.*mech_laplace\\(scale = 2\\)", class = "noiseaware_error_argument")
})

test_that("counts go up to the largest integer, 2^31 - 1", {
  expect_identical(internal("check_count")(2147483647, "n"), 2147483647)
  expect_error(internal("check_count")(2147483648, "n"), "at most 2147483647", class = "noiseaware_error_argument")
})

test_that("arguments of mechanisms are named", {
  skip_on_cran()
  for (name in grep("^mech_", getNamespaceExports("noiseaware"), value = TRUE)) {
    e <- error_of(call(name, 2))
    expect_s3_class(e, "noiseaware_error_mechanism")
    expect_identical(called(e), name)
    # a density and its points come first
    if (name == "mech_tabulated") e <- error_of(quote(mech_tabulated(c(1, 1), 1:2, 2)))
    for (argument in setdiff(names(formals(name)), c("...", "density", "grid"))) expect_match(conditionMessage(e), paste0("`", argument, "`"), fixed = TRUE)
    # nor may a name be shortened
    expect_s3_class(error_of(as.call(list(as.name(name), strange = 2))), "noiseaware_error_mechanism")
  }
  expect_identical(mech_laplace(epsilon = 2)$epsilon, 2)
  show(refusals("mechanism", alist(
    mech_laplace(2),
    mech_laplace(epsilon = 1, 2),
    mech_laplace(eps = 1),
    mech_gaussian(0.5),
    mech_custom(function(noise) -rowSums(abs(noise)))
  )))
})

test_that("`cores` is refused where chains run, with a pointer to future::plan()", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ g, levels = list(g = c("a", "b")))
  rel <- as_release(c(12, 8), st, mech_laplace(epsilon = 1), n = 20)
  fit <- sample_posterior(rel, model_bernoulli(), chains = 1, iter = 20, seed = 1)
  data <- data.frame(g = c("a", "b"))
  calls <- expression(
    sample_posterior(rel, model_bernoulli(), cores = 2),
    calibrate(model_bernoulli(), st, mech_laplace(epsilon = 1), n = 20, cores = 2),
    design(model_bernoulli(), st, epsilon = 1, n = 20, cores = 2),
    compare_analyses(rel, model_bernoulli(), cores = 2),
    nonprivate_posterior(data, model_bernoulli(), st, cores = 2),
    extend(fit, 10, cores = 2),
    update(fit, cores = 2)
  )
  for (call in as.list(calls)) {
    e <- tryCatch(eval(call), error = identity)
    expect_s3_class(e, "noiseaware_error_argument")
    expect_match(conditionMessage(e), "future::plan", fixed = TRUE)
    expect_identical(called(e), as.character(call[[1L]]))
  }
  show(refusals("argument", alist(sample_posterior(rel, model_bernoulli(), cores = 2))))
})

test_that("what is not an argument is refused wherever further arguments lead nowhere", {
  skip_on_cran()
  namespace <- asNamespace("noiseaware")
  # what shows or converts an object ignores further arguments, as is R's habit, and so do methods of generics that hand on what they are given
  lenient <- paste0("^(print(?!.noiseaware_(fit|pool)$)|format|summary|as_draws.*|as[.](array|matrix|data.frame(?!.noiseaware_fit$))|variables|nvariables|rhat|",
                    "ess_(bulk|tail)|neff_ratio|terms|privacy)[.]")
  methods <- namespace$.__NAMESPACE__.$S3methods
  handed <- methods[methods[, 4L] %in% c("bayestestR", "emmeans", "generics", "insight", "marginaleffects", "performance", "priorsense"), 3L]
  leads_on <- function(e) {
    if (is.name(e)) return(identical(e, quote(...)))
    if (!is.call(e) || identical(e[[1L]], quote(check_no_dots))) return(FALSE)
    as.character(e[[1L]])[1L] %in% c("NextMethod", "UseMethod", "...length", "...names") || any(vapply(as.list(e), leads_on, NA))
  }
  all <- Filter(function(name) is.function(namespace[[name]]) && "..." %in% names(formals(namespace[[name]])), ls(namespace))
  all <- all[vapply(all, function(name) name %in% users_functions || sub("[.].*", "", name) %in% users_functions, NA)]
  idle <- setdiff(grep(lenient, Filter(function(name) !leads_on(body(namespace[[name]])), all), value = TRUE, invert = TRUE, perl = TRUE), c(handed, "simulate.noiseaware_pool"))
  expect_true(all(c("confidence_set", "p_value", "sample_posterior", "predict.noiseaware_fit") %in% idle))
  for (name in idle) {
    f <- namespace[[name]]
    needed <- Filter(function(argument) identical(argument, quote(expr = )), as.list(formals(f))[names(formals(f)) != "..."])
    condition <- tryCatch(do.call(f, c(lapply(needed, function(argument) NULL), list(nonsense = 1))), error = identity)
    expect_true(inherits(condition, "noiseaware_error"), label = name)
    # what is of no use, or of another class, is refused whatever is given
    expect_true(any(grepl(if (endsWith(name, ".default")) "nonsense|must be" else "nonsense|is not meaningful|cannot be", message_lines(condition))), label = name)
  }
})

test_that("a name where a formula or a name in quotes belongs: the error names the argument", {
  fit <- structure(list(), class = "noiseaware_fit")
  for (call in alist(model_lm(nowhere), model_glm(nowhere), model_logistic(nowhere), model_table(nowhere), model_survival(nowhere), stat_counts(nowhere),
                     stat_sums(nowhere, list(nowhere = 0:1)), stat_crossprod(nowhere, list()), regress(fit, nowhere))) {
    expect_error(eval(call), "`formula` must be a formula, but is an object that does not exist: object 'nowhere'", class = "noiseaware_error_formula")
  }
  expect_error(model_mvnormal(nowhere), "`variables` must be names of variables in quotes", class = "noiseaware_error_argument")
  expect_error(model_lm(stop("inside")), "inside")
})

test_that("numbers of a prior of n are taken in order, and it prints what it is a prior of", {
  expect_identical(prior_n("poisson", 100), prior_n("poisson", mean = 100))
  expect_identical(prior_n("uniform", 3, 50), prior_n("uniform", upper = 50, lower = 3))
  expect_identical(prior_n("uniform", lower = 3, 50), prior_n("uniform", 3, 50))
  expect_identical(prior_n("negative_binomial", 100, 2), prior_n("negative_binomial", mean = 100, size = 2))
  expect_identical(prior_n("log_uniform", 9), prior_n("log_uniform", upper = 9))
  expect_output(print(prior_n("poisson", 100)), "<prior> of n: poisson(mean = 100)", fixed = TRUE)
  expect_output(print(prior_gamma(1, 1)), "<prior> gamma(", fixed = TRUE)
  expect_error(prior_n("poisson", 100, 2), "must not have more numbers", class = "noiseaware_error_prior")
  expect_error(prior_n("poisson", average = 100), "average", class = "noiseaware_error_argument")
})
