# The table of combinations is true: what it lists runs, what it leaves out is
# refused with a classed error.

refused <- function(code) tryCatch(code, noiseaware_error = function(e) NULL)

statistics_named <- function(name) {
  candidates <- list(number_statistics[[name]], code_statistics[[name]], alone_statistics[[name]])
  candidates[!vapply(candidates, is.null, TRUE)]
}

# a release of a statistic under each mechanism that takes it: once, whatever the model
releases_of <- function(st) {
  releases <- lapply(registry_mechanisms, function(m) refused(as_release(rep(1, sum(internal("value_size")(st, 3))), st, m, 3)))
  releases[!vapply(releases, is.null, TRUE)]
}

runs <- function(release, model, method) {
  fit <- refused(sample_posterior(release, registry_models[[model]], method = method, chains = 1, iter = 4, warmup = 2))
  if (!is.null(fit$chains)) expect_possible_moves(fit)
  !is.null(fit)
}

test_that("supported() says what runs", {
  skip_on_cran() # takes long; `make test` runs it
  # the texts of a thousand refusals would take as long as all that runs
  session <- internal("session")
  session$reasons_wanted <- FALSE
  withr::defer(session$reasons_wanted <- TRUE)
  table <- supported()
  expect_named(table, c("model", "statistic", "mechanism", "method", "exact"))
  expect_false(anyDuplicated(table) > 0)
  listed <- do.call(paste, table[c("model", "statistic", "mechanism", "method")])
  # the naive Bayes model needs two variables: it has tests of its own
  statistics <- c("crossprod", "moments4", "sums", "counts", "histogram", "records", "custom", "objective", "quantiles")
  methods <- c("augment", "collapse", "clt", "naive")
  # a third of the combinations: every three of the four meet
  third <- function(model, statistic, mechanism, method) {
    places <- mapply(match, list(model, statistic, mechanism, method), list(names(registry_models), statistics, names(registry_mechanisms), methods))
    rowSums(matrix(places, ncol = 4L)) %% 3 == 0
  }
  ran <- character()
  for (statistic in statistics) {
    candidates <- statistics_named(statistic)
    releases <- lapply(candidates, releases_of)
    for (model in names(registry_models)) {
      # variables that do not meet are refused whatever the mechanism and the method
      given <- lapply(candidates, internal("with_bins_as_levels"), registry_models[[model]])
      meets <- vapply(given, function(st) !is.null(refused(internal("bind_model")(registry_models[[model]], st))), TRUE)
      for (mechanism in names(registry_mechanisms)) for (method in methods) {
        if (third(model, statistic, mechanism, method)) for (of in releases[meets]) if (mechanism %in% names(of) && runs(of[[mechanism]], model, method)) {
          ran <- c(ran, paste(model, statistic, mechanism, method))
          break
        }
      }
    }
  }
  tried <- table$model %in% names(registry_models) & table$statistic %in% statistics & table$mechanism %in% names(registry_mechanisms) & table$method %in% methods
  tried[tried] <- do.call(third, unname(as.list(table[tried, c("model", "statistic", "mechanism", "method")])))
  expect_setequal(ran, listed[tried])
})

test_that("it is asked for a model or a statistic, and prints as a matrix", {
  skip_on_cran() # takes long; `make test` runs it
  all <- supported()
  expect_equal(as.data.frame(supported(model = "lm")), as.data.frame(all[all$model == "lm", ]), ignore_attr = TRUE)
  expect_setequal(unique(supported(statistic = c("sums", "counts"))$statistic), c("sums", "counts"))
  expect_identical(supported(model_poisson(), stat_sums(~ x, list(x = c(0, 9)))), supported("poisson", "sums"))
  withr::local_options(width = 120)
  lines <- capture.output(print(supported(c("poisson", "bernoulli"))))
  expect_match(lines, "^poisson .* A[.]LN .* ACLN *$", all = FALSE)
  expect_match(lines, "^bernoulli +ACLN", all = FALSE)
  expect_match(lines, "^A augment \\(exact\\)", all = FALSE)
  expect_output(print(subset(all, FALSE)), "0 rows")
  for (code in expression(supported("gamma"), supported(statistic = mech_laplace(epsilon = 1)), supported(3))) {
    expect_error(eval(code), class = "noiseaware_error_argument")
  }
})

test_that("a class that nobody else knows is found by its methods alone", {
  ask <- function(name) {
    object <- structure(list(), class = paste0("model_", name))
    list(internal("clt_statistics")(object), internal("collapse_statistics")(object), internal("naive_statistics")(object))
  }
  expect_identical(ask("of_nobody"), rep(list(character()), 3))
  expect_null(internal("response_of")(structure(list(), class = "bound_of_nobody")))
  expect_false(internal("collapse_is_exact")(structure(list(), class = "bound_of_nobody")))
})

# ---- calibration -----------------------------------------------------------------

# A small version of inst/replication/support_matrix.R: every model with every
# method, each with one of its mechanisms (in turn, so that all have theirs), few
# records, few replicates: what is grossly wrong shows.

matrix_cases <- function() {
  there <- new.env(parent = asNamespace("noiseaware"))
  sys.source(test_path("support_matrix_cases.R"), there)
  small <- there$cases[there$cases$n == 20, ]
  pairs <- split(small, paste(small$method, small$design))
  # in turn among the pairs with as many mechanisms
  count <- vapply(pairs, nrow, 0L)
  chosen <- Map(function(rows, k) rows[(k - 1L) %% nrow(rows) + 1L, ], pairs, stats::ave(seq_along(pairs), count, FUN = seq_along))
  lapply(chosen, function(case) c(as.list(case), there$designs[[case$design]], list(noise = there$mechanisms[[case$mechanism]])))
}

test_that("every model is calibrated under every method that serves it", {
  skip_on_cran() # takes long; `make test` runs it
  cases <- matrix_cases()
  expect_setequal(vapply(cases, `[[`, "", "method"), c("augment", "collapse", "clt"))
  expect_length(unique(vapply(cases, `[[`, "", "mechanism")), 5L)
  for (case in cases) {
    cal <- calibrate(case[[5]], case[[6]], case$noise, case$n, replicates = 10, method = case$method, chains = 1, iter = 200, seed = 7)
    expect_false(any(cal$runs$failed))
    table <- summary(cal)
    expect_true(all(table$p.value > 1e-5), info = paste(case$method, case$design, case$mechanism, min(table$p.value)))
    # but where the levels of answers are summed out
    expect_identical("log_eta" %in% table$variable, !(case$method == "collapse" && case$mechanism == "randomized_response"))
  }
})
