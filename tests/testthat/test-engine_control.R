# Entries of `control` are checked against the method that runs: R/engine_control.R.

test_that("every method takes its own entries and refuses those of others", {
  skip_on_cran()
  rel <- as_release(c(1, 2, 3, 1, 2), lm_problem(1), mech_laplace(epsilon = 1), n = 30)
  run <- function(method, ...) sample_posterior(rel, model_lm(), method = method, chains = 1, iter = 20, seed = 1, control = list(...))
  refused <- function(code, text) expect_error(code, text, class = "noiseaware_error_argument")
  refused(run("collapse", passes = 2), "must be empty for method \"collapse\"")
  refused(run("naive", passes = 0), "must be empty for method \"naive\"")
  refused(run("clt", passes = 0), "positive whole number")
  refused(run("augment", sampler = "gibbs"), "only the entries passes for method \"augment\"")
  # the method that "auto" takes
  refused(run("auto", sampler = "gibbs"), "only the entries passes for method \"augment\"")
  refused(run("auto", pases = 1), "but has pases")
  refused(run("auto", passes = 1, 3), "must be a named list")
  refused(run("augment", passes = 1, passes = 2), "each entry only once, but has passes")
  expect_s3_class(run("augment", passes = 0), "noiseaware_fit")
  expect_s3_class(run("auto", passes = 0), "noiseaware_fit")
  expect_s3_class(run("clt", sampler = "gibbs", passes = 1), "noiseaware_fit")
})

test_that("the help page has every entry", {
  help <- internal("control_help")()
  for (method in internal("sampling_methods")) for (entry in names(internal("engine_control")(internal("as_engine")(method)))) {
    expect_true(any(startsWith(help, sprintf("  * `%s`", entry))))
  }
})
