# A user's own model in C: the worked example of inst/examples, compiled and run,
# and variants of it that are wrong in one way each.

example_file <- function(name) system.file("examples", name, package = "noiseaware", mustWork = TRUE)

# the script as a user runs it: it compiles the example and samples
script <- new.env()
script_output <- capture.output(source(example_file("gamma_model.R"), local = script, print.eval = TRUE))
gamma_model <- function(shape = 2, prior = c(2, 2), ...) {
  model_compiled("gamma_model", dll = script$library_file, parameters = "rate", fields = list(shape = shape, prior = prior), ...)
}
times <- stat_sums(~ x, bounds = list(x = c(0, 60)))

# wrong in one way each
variants <- local({
  code <- c('#include "gamma_model.c"', "#include <R_ext/Rdynload.h>", "#include <string.h>",
    "#define VARIANT(name, change) \\",
    "const struct noiseaware_model_class *name(void); \\",
    "const struct noiseaware_model_class *name(void) { static struct noiseaware_model_class t; t = gamma_class; change; return &t; }",
    "static int create_wrong(const struct noiseaware_host *host, struct noiseaware_model *model) {",
    "  static const int far[] = {7};",
    "  const int status = create(host, model);",
    '  const double *spoil = host->field(host, "spoil", -1);',
    "  model->columns = (int)spoil[0]; model->parameters = (int)spoil[1]; model->complete = (int)spoil[2];",
    "  model->reported = (int)spoil[3]; model->moving = (int)spoil[4];",
    "  if (spoil[5] == 1) model->moves = NULL;",
    "  if (spoil[5] == 2) model->moves = (int *)far;",
    "  return status; }",
    "static double dprior_wrong(void *self, const double *theta) { return dprior(self, theta) - theta[0]; }",
    "static int rtheta_wrong(void *self, const double *c, double n, struct noiseaware_random *random, double *theta) {",
    "  return rtheta(self, c, 0.5 * n, random, theta); }",
    "static void move_wrong(void *self, struct noiseaware_random *random, int m, const double *const *x, double *const *x_new) {",
    "  (void)random; (void)self; for (int i = 0; i < m; ++i) x_new[0][i] = x[0][i] * ((struct gamma_model *)self)->ratio * ((struct gamma_model *)self)->ratio; }",
    "static void rrecords_wrong(void *self, struct noiseaware_random *random, int m, double *const *x) {",
    "  rrecords(self, random, m, x); x[0][m + 6] = 1; }",
    "static double log_density(void *self, int m, const double *const *x) {",
    "  const struct gamma_model *g = self; double sum = m * g->shape * g->log_rate;",
    "  for (int i = 0; i < m; ++i) sum -= x[0][i] * exp(g->log_rate);",
    "  return sum; }",
    "static double log_density_wrong(void *self, int m, const double *const *x) { return log_density(self, m, x) - 0.5 * m * ((struct gamma_model *)self)->log_rate; }",
    "static double log_density_first(void *self, int m, const double *const *x) { (void)m; return log_density(self, 1, x); }",
    "static void rprior_beyond(void *self, struct noiseaware_random *random, double *theta) { rprior(self, random, theta); theta[3] = 1; }",
    "static void report_beyond(void *self, const double *theta, double *out) { report(self, theta, out); out[1] = theta[0]; }",
    "static void report_nothing(void *self, const double *theta, double *out) { (void)self; (void)theta; (void)out; }",
    "static double dprior_nan(void *self, const double *theta) { return theta[0] > 2 ? NAN : dprior(self, theta); }",
    "static void add_wrong(void *self, int m, const double *const *x, double *c) { c[0] = 0; add(self, m, x, c); }",
    "static void rprior_wrong(void *self, struct noiseaware_random *random, double *theta) { rprior(self, random, theta); theta[0] = -INFINITY; }",
    "static void refresh_wrong(void *self, double rho, struct noiseaware_random *random, int m, const double *const *x, double *const *x_new) {",
    "  (void)rho; refresh(self, 0.5, random, m, x, x_new); for (int i = 0; i < m; ++i) x_new[0][i] *= 2; }",
    "static void rrecords_one(void *self, struct noiseaware_random *random, int m, double *const *x) {",
    "  random->fill_exponential(random, m, x[0]); for (int i = 0; i < m; ++i) x[0][i] *= ((struct gamma_model *)self)->scale; }",
    "static void from_innovations(void *self, int m, const double *const *z, double *const *x) {",
    "  for (int i = 0; i < m; ++i) x[0][i] = z[0][i] * ((struct gamma_model *)self)->scale; }",
    "static void form_wrong(void *self, int m, const double *const *z, double *const *x) { (void)self; for (int i = 0; i < m; ++i) x[0][i] = z[0][i]; }",
    "static int create_form(const struct noiseaware_host *host, struct noiseaware_model *model) {",
    '  const int status = create(host, model); const double *spoil = host->field(host, "spoil", 2);',
    "  model->innovations = spoil ? (int)spoil[0] : 1; model->innovation = spoil ? (enum noiseaware_kind)spoil[1] : NOISEAWARE_EXPONENTIAL;",
    "  return status; }",
    "VARIANT(shape_one, t.rrecords = rrecords_one; t.refresh = NULL)",
    "VARIANT(forms, t.rrecords = rrecords_one; t.refresh = NULL; t.create = create_form; t.from_innovations = from_innovations)",
    "VARIANT(bad_form, t.rrecords = rrecords_one; t.refresh = NULL; t.create = create_form; t.from_innovations = form_wrong)",
    "VARIANT(other_abi, t.abi = 99)", "VARIANT(other_size, t.size += 8)", "VARIANT(lacks, t.rrecords = NULL; t.add = NULL)",
    "VARIANT(half_move, t.set_move = NULL)", "VARIANT(no_move, t.move = NULL; t.set_move = NULL; t.dprior = NULL; t.refresh = NULL)",
    "VARIANT(only_invert, t.report = NULL)", "VARIANT(no_invert, t.invert = NULL)", "VARIANT(plain_theta, t.report = NULL; t.invert = NULL)",
    "VARIANT(sizes, t.create = create_wrong)", "VARIANT(bad_dprior, t.dprior = dprior_wrong)", "VARIANT(bad_rtheta, t.rtheta = rtheta_wrong)",
    "VARIANT(bad_move, t.move = move_wrong)", "VARIANT(bad_records, t.rrecords = rrecords_wrong)", "VARIANT(bad_add, t.add = add_wrong)",
    "VARIANT(walks, t.add = NULL; t.rtheta = NULL; t.refresh = NULL; t.log_density = log_density)",
    "VARIANT(walks_alone, t.add = NULL; t.rtheta = NULL; t.refresh = NULL; t.move = NULL; t.set_move = NULL; t.log_density = log_density)",
    "VARIANT(no_prior, t.add = NULL; t.rtheta = NULL; t.move = NULL; t.set_move = NULL; t.dprior = NULL; t.log_density = log_density)",
    "VARIANT(both, t.log_density = log_density)", "VARIANT(bad_density, t.log_density = log_density_wrong)",
    "VARIANT(first_density, t.log_density = log_density_first)", "VARIANT(more_theta, t.rprior = rprior_beyond)",
    "VARIANT(more_values, t.report = report_beyond)", "VARIANT(no_values, t.report = report_nothing; t.invert = NULL)",
    "VARIANT(nan_dprior, t.dprior = dprior_nan)",
    "VARIANT(bad_rprior, t.rprior = rprior_wrong)", "VARIANT(bad_refresh, t.refresh = refresh_wrong)",
    "const struct noiseaware_model_class *nothing(void);", "const struct noiseaware_model_class *nothing(void) { return NULL; }",
    "void R_init_variants(DllInfo *dll);",
    'void R_init_variants(DllInfo *dll) { (void)dll; R_RegisterCCallable("stats", "noiseaware_test_model", (DL_FUNC)gamma_model); }')
  file <- file.path(script$folder, "variants.c")
  writeLines(code, file)
  library_file <- file.path(script$folder, paste0("variants", .Platform$dynlib.ext))
  withr::with_envvar(c(PKG_CPPFLAGS = paste0("-I", shQuote(system.file("include", package = "noiseaware")))), {
    system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", shQuote(library_file), shQuote(file)), stdout = FALSE)
  })
  library_file
})
variant <- function(symbol, ..., fields = list(shape = 2, prior = c(2, 2)), parameters = "rate") {
  model_compiled(symbol, dll = variants, parameters = parameters, fields = fields, ...)
}

test_that("the example compiles and runs as it stands", {
  expect_true(file.exists(script$library_file))
  expect_true(all(script$fit$draws > 0))
  expect_true(any(grepl("21 checks, all passed", script_output)))
  expect_true(any(grepl("compiled model gamma", script_output)))
  expect_output(print(gamma_model()), "compiled, gamma.*gamma_model\\(\\).*non-centred")
})

test_that("the compiled model has the exact posterior", {
  skip_on_cran()
  prior <- c(8, 6)
  z <- 7.5
  scale <- 1.3
  rel <- as_release(z, times, mech_laplace(scale = scale), n = 3)
  fit <- sample_posterior(rel, gamma_model(2, prior), chains = 2, iter = 3600, warmup = 400, seed = 4)
  # the total of three Gamma(2, rate) is Gamma(6, rate); no record reaches the bound
  rate <- seq(0.02, 5, length.out = 800)
  total <- seq(0.005, 60, by = 0.01)
  density <- vapply(rate, function(r) dgamma(r, prior[1], prior[2]) * sum(dgamma(total, 6, r) * exp(-abs(z - total) / scale)), 0)
  expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density), sum(rate * density) / sum(density))
  # the prior alone is elsewhere: the test can see the data
  expect_gt(abs(sum(rate * density) / sum(density) - prior[1] / prior[2]), 0.1)
})

test_that("a density in place of an update gives the same posterior", {
  skip_on_cran()
  prior <- c(8, 6)
  rel <- as_release(7.5, times, mech_laplace(scale = 1.3), n = 3)
  rate <- seq(0.02, 5, length.out = 800)
  total <- seq(0.005, 60, by = 0.01)
  density <- vapply(rate, function(r) dgamma(r, prior[1], prior[2]) * sum(dgamma(total, 6, r) * exp(-abs(7.5 - total) / 1.3)), 0)
  for (symbol in c("walks", "walks_alone")) {
    fit <- sample_posterior(rel, variant(symbol, fields = list(shape = 2, prior = prior)), chains = 2, iter = 3600, warmup = 400, seed = 4)
    expect_distribution(parameter_draws(fit, "rate"), grid_quantile(rate, density), sum(rate * density) / sum(density))
  }
})

test_that("with shape 1 it is the built-in exponential model", {
  rel <- as_release(30, stat_sums(~ x, bounds = list(x = c(0, 3))), mech_laplace(scale = 3), n = 40)
  own <- sample_posterior(rel, gamma_model(1, c(3, 2)), chains = 2, iter = 4100, warmup = 600, seed = 5)
  built_in <- sample_posterior(rel, model_exponential(prior = prior_gamma(3, 2)), chains = 2, iter = 4100, warmup = 600, seed = 6)
  expect_agreement(parameter_draws(own, "rate"), parameter_draws(built_in, "rate"))
})

test_that("runs repeat, continue, and survive the way to another process", {
  rel <- as_release(30, times, mech_laplace(scale = 3), n = 300)
  run <- function(iter) sample_posterior(rel, gamma_model(), chains = 2, iter = iter, warmup = 40, seed = 7, init = c(rate = 1))
  a <- run(60)
  expect_identical(run(60)$draws, a$draws)
  # addresses are lost on the way
  expect_identical(extend(unserialize(serialize(a, NULL)), 40)$draws, run(100)$draws)
  # a model without moves, and one whose theta is reported as it is
  expect_output(print(sample_posterior(rel, variant("no_move"), chains = 1, iter = 60, seed = 1)), "the model has no move")
  plain <- sample_posterior(rel, variant("plain_theta", parameters = "log_rate"), chains = 2, iter = 60, warmup = 40, seed = 7, init = c(log_rate = 0))
  expect_equal(as.numeric(exp(plain$draws)), as.numeric(a$draws), tolerance = 1e-12)
})

test_that("records formed from innovations that were drawn ahead are those of the built-in model", {
  one <- list(shape = 1, prior = c(2, 2))
  rel <- as_release(500, times, mech_laplace(scale = 3), n = 600) # three blocks
  run <- function(model) as.numeric(sample_posterior(rel, model, chains = 1, iter = 40, seed = 7, init = c(rate = 1), control = list(passes = 0))$draws)
  own <- run(variant("forms", fields = one))
  expect_equal(own, run(model_exponential(prior = prior_gamma(2, 2))), tolerance = 1e-12)
  expect_false(isTRUE(all.equal(own, run(variant("shape_one", fields = one)))))
})

test_that("a function that a package has registered is found", {
  variant("no_move") # loads the library, which registers one
  model <- model_compiled("noiseaware_test_model", package = "stats", parameters = "rate", fields = list(shape = 2, prior = c(2, 2)))
  expect_output(print(model), "package stats")
  rel <- as_release(30, times, mech_laplace(scale = 3), n = 30)
  run <- function(model) sample_posterior(rel, model, chains = 1, iter = 40, seed = 7)$draws
  expect_identical(run(model), run(gamma_model()))
})

test_that("what does not fit is refused before it is called", {
  skip_on_cran()
  refused <- function(code, pattern) expect_error(code, pattern, class = "noiseaware_error_compiled")
  refused(variant("other_abi"), "version 3 of the interface, but was compiled for 99")
  refused(variant("other_size"), "must have [0-9]+ bytes")
  refused(variant("lacks"), "lacks the hooks.*rrecords.*add")
  refused(variant("no_prior"), "lacks the hook.*dprior")
  refused(variant("half_move"), "lacks.*set_move")
  refused(variant("only_invert"), "lacks.*report")
  refused(variant("nothing"), "returned NULL")
  refused(variant("no_such_function"), "There is no function")
  refused(model_compiled("a", dll = file.path(tempdir(), "none.so"), parameters = "a"), "no shared library")
  text <- tempfile(fileext = ".so")
  writeLines("not a library", text)
  refused(model_compiled("a", dll = text, parameters = "a"), "cannot be loaded")
  refused(model_compiled("a", package = "nosuchpackage", parameters = "a"), "not installed")
  refused(model_compiled("no_such_function", package = "stats", parameters = "a"), "There is no function")
  refused(model_compiled("a", parameters = "a"), "Exactly one")
  refused(model_compiled("a", package = "stats"), "parameters")
  refused(model_compiled("a", package = 1, parameters = "a"), "package")
  refused(variant("no_move", fields = list(1)), "fields")
  refused(variant("no_move", fields = list(prior = c(1, NA))), "fields\\$prior")
  refused(variant("no_move", fields = list(prior = "a")), "fields\\$prior")
  refused(variant("no_move", variables = c("a", "a")), "variables")

  rel <- as_release(30, times, mech_laplace(scale = 3), n = 30)
  run <- function(...) sample_posterior(rel, ..., chains = 1, iter = 20)
  refused(run(variant("no_move", fields = list(shape = 2))), "rejects its fields")
  expect_error(run(variant("no_move", variables = "other")), class = "noiseaware_error_variables")
  refused(run(variant("no_move", parameters = c("a", "b"))), "reported.*must be the number of names")
  spoiled <- function(...) run(variant("sizes", fields = list(shape = 2, prior = c(2, 2), spoil = c(...))))
  expect_s3_class(spoiled(1, 1, 1, 1, 1, 0), "noiseaware_fit")
  refused(spoiled(2, 1, 1, 1, 1, 0), "columns")
  refused(spoiled(1, 0, 1, 1, 1, 0), "parameters")
  refused(spoiled(1, 2e9, 1, 1, 2e9, 0), "parameters")
  refused(spoiled(1, 1, -1, 1, 1, 0), "complete")
  refused(spoiled(1, 1, 1, 2, 1, 0), "reported")
  refused(spoiled(1, 1, 1, 1, 0, 0), "moving")
  refused(spoiled(1, 1, 1, 1, 2, 0), "moving")
  refused(spoiled(1, 1, 1, 1, 1, 1), "moves")
  refused(spoiled(1, 1, 1, 1, 1, 2), "moves")

  formed <- function(...) run(variant("forms", fields = list(shape = 1, prior = c(2, 2), spoil = c(...))))
  refused(formed(0, 2), "innovations.*from 1")
  refused(formed(1, 3), "innovation .*kind of random numbers")
  refused(sample_posterior(rel, variant("no_invert"), init = c(rate = 1)), "invert")
  expect_error(sample_posterior(rel, gamma_model(), init = c(rate = -1)), class = "noiseaware_error_argument")
  expect_error(sample_posterior(rel, gamma_model(), init = c(scale = 1)), class = "noiseaware_error_argument")
})

test_that("debug_model() passes what is right and names what is wrong", {
  skip_on_cran() # takes long; `make test` runs it
  failed <- function(model, ...) {
    result <- with_trials(600L, debug_model(model, times, ...))
    unique(result$hook[result$ok %in% FALSE])
  }
  expect_identical(failed(gamma_model(0.4)), character())
  expect_identical(failed(variant("no_invert")), character())
  expect_identical(failed(variant("no_move")), character())
  expect_identical(failed(variant("bad_dprior")), "dprior")
  expect_identical(failed(variant("forms", fields = list(shape = 1, prior = c(2, 2)))), character())
  expect_identical(failed(variant("bad_form", fields = list(shape = 1, prior = c(2, 2)))), "from_innovations")
  expect_identical(failed(variant("bad_rtheta")), "rtheta")
  expect_identical(failed(variant("bad_move")), "move")
  expect_identical(failed(variant("bad_records")), "rrecords")
  expect_identical(failed(variant("bad_density")), "log_density")
  result <- debug_model(variant("first_density"), times)
  expect_identical(result$check[result$ok %in% FALSE & result$hook == "log_density"], "sums over parts")
  # what writes beyond its values has written before it is seen: no other hook is called then
  for (case in list(c("more_theta", "rprior"), c("more_values", "report"))) {
    result <- debug_model(variant(case[1]), times)
    expect_identical(result$hook[result$ok %in% FALSE], case[2])
    expect_identical(unique(result$detail[-(1:2)]), "not tried")
  }
  result <- debug_model(variant("no_values"), times)
  expect_match(result$detail[result$hook == "report"][1], "unwritten")
  result <- debug_model(variant("nan_dprior"), times)
  expect_identical(result$detail[result$hook == "dprior"], c("", "neither a number nor -Inf at some theta"))
  for (symbol in c("both", "walks", "walks_alone")) expect_identical(failed(variant(symbol)), character())
  expect_identical(failed(variant("bad_add")), "add")
  expect_true("rprior" %in% failed(variant("bad_rprior")))
  expect_identical(failed(variant("bad_refresh")), "refresh")
  expect_output(print(debug_model(variant("bad_dprior"), times)), "1 FAILED.*dprior +is the density of rprior +FAILED")

  # R functions; the user's generator is left alone (every built-in model: test-registry.R)
  set.seed(1)
  before <- .Random.seed
  codes <- stat_counts(~ a, levels = list(a = c("x", "y", "z")))
  number <- stat_sums(~ x, bounds = list(x = c(0, 6)))
  normal_mean <- function(sd = 1) {
    model_custom(
      r_prior = function() c(mu = rnorm(1, 0, 3)), r_records = function(theta, n) rnorm(n, theta, 1),
      r_theta = function(records, theta) rnorm(1, sum(records) / (1 / 9 + nrow(records)), sd / sqrt(1 / 9 + nrow(records))),
      variables = "x", move = function(theta, theta_new, records) records + (theta_new - theta), log_prior = function(theta) dnorm(theta, 0, 3, log = TRUE))
  }
  expect_false(any(with_trials(600L, debug_model(normal_mean(), number))$ok %in% FALSE))
  expect_identical(.Random.seed, before)
  expect_identical(with(with_trials(300L, debug_model(normal_mean(10), number)), unique(hook[ok %in% FALSE])), "rtheta")
  expect_error(model_compiled("f\xff", package = "stats", parameters = "a"), class = "noiseaware_error_compiled")
  expect_error(debug_model(1, number), class = "noiseaware_error_argument")
  expect_error(debug_model(model_normal(), 1), class = "noiseaware_error_argument")
  expect_error(debug_model(model_normal(), codes), class = "noiseaware_error_variables")
})
