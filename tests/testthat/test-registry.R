# What holds for every model, statistic and mechanism, looped over the
# registry: a new one needs its line in helper-registry.R and nothing here.

evaluator <- function(statistic) {
  stat_eval <- internal("ffi_stat_eval")
  spec <- internal("statistic_spec")(statistic)
  function(x) .Call(stat_eval, spec, x)
}
eval_records <- function(statistic, x) evaluator(statistic)(x)
total_records <- function(statistic, x) .Call(internal("ffi_stat_total"), internal("statistic_spec")(statistic), x)

every_statistic <- c(number_statistics[!names(number_statistics) %in% c("objective", "quantiles")], alone_statistics, code_statistics, wide_statistics)
every_mechanism <- c(registry_mechanisms, list(mech_laplace(scale = 0.7), mech_gaussian(epsilon = 1, delta = 1e-6), mech_gaussian(rho = 2),
                                               mech_discrete_laplace(epsilon = 0.2)))

# Records that could be in the data, extremes among them: numbers inside, on and
# far beyond their bounds, every level of a factor.
possible_records <- function(statistic, n) {
  columns <- statistic$columns
  size <- lengths(statistic$levels)[columns$variable]
  x <- matrix(0, n, nrow(columns))
  for (variable in unique(columns$variable)) {
    j <- which(columns$variable == variable)
    lower <- columns$lower[j[1]]
    upper <- columns$upper[j[1]]
    if (!variable %in% names(statistic$levels)) {
      values <- c(runif(n, lower, upper), rep(c(lower, upper, 0, (lower + upper) / 2, -1e300, 1e300, -Inf, Inf), each = n %/% 8))
      x[, j] <- sample(values, n)
    } else if (length(j) == 1 && upper == length(statistic$levels[[variable]]) - 1) {
      x[, j] <- sample(seq_along(statistic$levels[[variable]]) - 1, n, TRUE)
    } else {
      level <- sample(0:length(j), n, TRUE) # one column for each level but the first
      x[cbind(which(level > 0), j[level[level > 0]])] <- 1
    }
  }
  x
}

test_that("no model describes a release of the number of records alone", {
  size <- as_release(10, stat_size(), mech_laplace(epsilon = 1), n = NULL, neighbours = "add_remove")
  for (model in registry_models) expect_error(sample_posterior(size, model), "only the number of records", class = "noiseaware_error_variables")
})

test_that("every plug-in has its entry here", {
  registry <- .Call(internal("ffi_registry"))
  # model_table() with normal priors has test-model_loglinear.R, model_glm() of several levels test-model_categories.R
  expect_true(all(registry$models %in% c(names(registry_models), "compiled", "loglinear", "categories", "survival", "smooth")))
  # what is done after the noise of a mechanism has a file of its own, test-mech_published.R
  expect_true(all(c(registry$mechanisms, registry$densities) %in% c(names(registry_mechanisms), "published")))
  plugin_names <- internal("plugin_names")
  expect_setequal(unique(names(c(number_statistics, code_statistics, size_statistics, group_statistics, product_statistics))), plugin_names("stat"))
  expect_true(all(registry$statistics %in% plugin_names("stat")))
  # test-mech_exact.R has what is no noise, test-mech_record_noise.R what is not on totals, test-mech_unary_encoding.R what depends on n
  expect_setequal(c(names(registry_mechanisms), "exact", "record_noise", "unary_encoding"), plugin_names("mech"))
  # tried elsewhere: naive Bayes models and smooths need two variables, survival its exits, compiled ones a compiler
  expect_setequal(c(names(registry_models), "naive_bayes", "survival", "compiled", "smooth"), plugin_names("model"))
})

# ---- sensitivities -----------------------------------------------------------------

# The largest size of a record's components, or of the difference of two (`rows`), over records within the bounds: from the
# best of many records, the numbers among their columns then moved by optim(). `size` is of each row.
largest_over_records <- function(statistic, rows, size) {
  columns <- statistic$columns
  components <- evaluator(statistic)
  # records one after the other, or pairs of them
  f <- function(x) {
    t <- components(x)
    size(if (rows == 1) t else t[c(FALSE, TRUE), , drop = FALSE] - t[c(TRUE, FALSE), , drop = FALSE])
  }
  if (nrow(columns) == 0) return(f(matrix(0, rows, 0)))
  number <- !columns$variable %in% names(statistic$levels)
  drawn <- possible_records(statistic, 304 * rows)
  drawn[, number] <- t(pmin(pmax(t(drawn[, number, drop = FALSE]), columns$lower[number]), columns$upper[number]))
  value <- f(drawn)
  if (!any(number)) return(max(value))
  lower <- rep(columns$lower[number], each = rows)
  upper <- rep(columns$upper[number], each = rows)
  step <- 1e-6 * (upper - lower)
  best <- vapply(order(-value)[1:4], function(k) {
    x <- drawn[(k - 1) * rows + seq_len(rows), , drop = FALSE]
    moved <- function(...) {
      f(do.call(rbind, lapply(list(...), function(z) {
        x[, number] <- z
        x
      })))
    }
    slopes <- function(z) {
      ends <- lapply(seq_along(z), function(j) list(replace(z, j, min(z[j] + step[j], upper[j])), replace(z, j, max(z[j] - step[j], lower[j]))))
      at <- matrix(do.call(moved, unlist(ends, FALSE)), 2L)
      (at[1L, ] - at[2L, ]) / vapply(seq_along(z), function(j) ends[[j]][[1L]][j] - ends[[j]][[2L]][j], 0)
    }
    max(value[k], stats::optim(as.vector(x[, number]), moved, slopes, method = "L-BFGS-B", lower = lower, upper = upper, control = list(fnscale = -1, factr = 10))$value)
  }, 0)
  max(best)
}

# what the help pages call a bound: it need not be attained
only_bounded <- function(statistic) {
  mixed <- function() nrow(statistic$columns) > 1 || any(statistic$columns$lower < 0)
  switch(class(statistic)[1], stat_crossprod = any(!is.na(statistic$columns$level)) || !statistic$rescale, stat_moments4 = mixed(),
         stat_sums = mixed(), stat_smooth = TRUE, FALSE)
}

test_that("every statistic: its sensitivities are what one record can do at most, and it can", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(7)
  norms <- list(L1 = function(t) rowSums(abs(t)), L2 = function(t) sqrt(rowSums(t^2)))
  for (statistic in c(every_statistic, size_statistics)) {
    for (norm in names(norms)) {
      label <- paste(class(statistic)[1], norm)
      change <- largest_over_records(statistic, 2, norms[[norm]])
      declared <- sensitivity(statistic, norm, "replace")
      expect_identical(declared, sensitivity(statistic, norm))
      expect_lte(change, declared * (1 + 1e-9), label = label)
      if (!only_bounded(statistic)) expect_equal(change, declared, tolerance = 1e-4, label = label)
      if (statistic$kind == "records") {
        expect_error(sensitivity(statistic, norm, "add_remove"), class = "noiseaware_error_neighbours")
        next
      }
      added <- largest_over_records(statistic, 1, norms[[norm]])
      expect_equal(sensitivity(statistic, norm, "add_remove"), added, tolerance = 1e-9, label = label)
    }
  }
})

# ---- models ----------------------------------------------------------------------

# a release that fits the model, by a mechanism that fits the statistic
fitting <- function(model, statistics = c(number_statistics, code_statistics)) {
  for (st in statistics) {
    bound <- tryCatch(internal("bind_model")(model, st), noiseaware_error = function(e) NULL)
    if (!is.null(bound)) return(st)
  }
}

test_that("every model: its hooks keep shapes, streams, sums, and the distributions of update, prior density, moves", {
  skip_on_cran() # takes long; `make test` runs it
  for (name in names(registry_models)) {
    result <- with_trials(700L, debug_model(registry_models[[name]], fitting(registry_models[[name]]), n = 100))
    expect_false(any(result$ok %in% FALSE), info = paste(name, paste(result$hook[result$ok %in% FALSE], collapse = " ")))
    expect_gte(sum(result$ok %in% TRUE), 9)
  }
  several <- list(list(model_lm(), wide_statistics[[1]]), list(model_mvnormal(), stat_crossprod(y ~ x, wide[c("y", "x")])),
                  list(model_naive_bayes("g"), wide_statistics$counts), list(model_lm(), wide_statistics$smooth),
                  list(model_logistic(z ~ y + g), stat_crossprod(z ~ y + g, c(list(z = c(0, 1)), wide[c("y", "g")]))))
  for (pair in several) {
    result <- with_trials(700L, debug_model(pair[[1]], pair[[2]], n = 100))
    expect_false(any(result$ok %in% FALSE), info = paste(class(pair[[1]])[1], paste(result$hook[result$ok %in% FALSE], collapse = " ")))
  }
})

test_that("every model, statistic and kernel: running totals equal their recomputation, a chain cut in two is the same chain", {
  skip_on_cran() # takes long; `make test` runs it
  tried <- 0
  seen <- character()
  for (model in names(registry_models)) {
    for (st in c(number_statistics, code_statistics)) {
      mechanism <- registry_mechanisms[[1 + tried %% 2]] # both kernels in turn
      if (st$kind == "records" || inherits(st, c("stat_objective", "stat_quantiles"))) next
      set.seed(tried)
      value <- runif(length(st$components), 0, 20)
      run <- function(iter) sample_posterior(as_release(value, st, mechanism, 37), registry_models[[model]], method = "augment",
                                             chains = 1, iter = iter, warmup = 30, seed = 5)
      fit <- tryCatch(run(80), noiseaware_error_variables = function(e) NULL)
      if (is.null(fit)) next
      tried <- tried + 1
      state <- fit$chains[[1]]$state
      columns <- fit$bound$columns$name
      x <- matrix(state$x, ncol = length(columns))[1:37, match(st$columns$name, columns), drop = FALSE]
      total <- total_records(fit$release$statistic, x)
      inside <- fit$problem$where
      expect_equal(state$residual[inside], (value - total) / fit$problem$scale[inside], tolerance = 1e-9, info = paste(model, class(st)[1]))
      expect_equal(as.numeric(posterior::subset_draws(denoise(fit), iteration = 50)), total, tolerance = 1e-9)
      # a part of a chain of each model, and of each statistic
      if (!all(c(model, class(st)[1]) %in% seen)) expect_identical(extend(run(45), 35)$draws, fit$draws)
      seen <- c(seen, model, class(st)[1])
    }
  }
  expect_gte(tried, 25)
})

# ---- statistics ------------------------------------------------------------------

test_that("every statistic: blocks, totals, and a replaced record agree with record by record", {
  skip_on_cran() # takes long; `make test` runs it
  for (i in seq_along(every_statistic)) {
    st <- every_statistic[[i]]
    set.seed(i)
    x <- possible_records(st, 700)
    t <- eval_records(st, x)
    expect_true(all(is.finite(t)))
    expect_identical(dim(t), c(700L, length(st$components)))
    components <- evaluator(st)
    ones <- do.call(rbind, lapply(1:700, function(r) components(x[r, , drop = FALSE])))
    expect_identical(t, ones, info = names(every_statistic)[i])
    expect_equal(total_records(st, x), colSums(t), tolerance = 1e-12)
    # what adds a record, removes it
    moved <- rbind(x[-5, , drop = FALSE], x[9, , drop = FALSE])
    expect_equal(total_records(st, moved) - total_records(st, x), t[9, ] - t[5, ], tolerance = 1e-9)
  }
})

test_that("every statistic: no pair of records is farther apart than the sensitivity", {
  for (i in seq_along(every_statistic)) {
    st <- every_statistic[[i]]
    set.seed(100 + i)
    a <- eval_records(st, possible_records(st, 4000))
    b <- eval_records(st, possible_records(st, 4000))
    expect_lte(max(rowSums(abs(a - b))), sensitivity(st, "L1") * (1 + 1e-12))
    expect_lte(max(sqrt(rowSums((a - b)^2))), sensitivity(st, "L2") * (1 + 1e-12))
    # and not far below it for one variable, where few records show the worst pair
    if (nrow(st$columns) == 1) expect_gte(max(rowSums(abs(a - b))), 0.9 * sensitivity(st, "L1"))
  }
})

# ---- mechanisms ------------------------------------------------------------------

test_that("every mechanism: on neighbours, and at far outputs, the privacy loss keeps the guarantee", {
  skip_on_cran()
  for (m in seq_along(every_mechanism)) {
    mechanism <- every_mechanism[[m]]
    name <- mechanism$name
    if (name %in% c("custom", "exponential", "tabulated", "objective", "randomized_response")) next # no guarantee known; tests of their own, the last three
    for (st in every_statistic) {
      integers <- inherits(st, "stat_counts")
      if (startsWith(name, "discrete") && !integers) next
      set.seed(m)
      a <- eval_records(st, possible_records(st, 2000))
      b <- eval_records(st, possible_records(st, 2000))
      scale <- internal("mechanism_scale")(mechanism, st)
      if (st$kind == "records") scale <- rep_len(scale, ncol(a))
      granted <- privacy(mechanism, statistic = st)
      moved <- sweep(a - b, 2, scale, "/")
      if (mechanism$kernel == "absolute") {
        # outputs near, far, and so far that doubles have a step of more than one
        for (far in c(1, 1e3, 1e12)) {
          z <- matrix(rnorm(length(a), 0, far), nrow(a))
          if (startsWith(name, "discrete")) z <- round(z)
          density <- function(s) {
            rowSums(matrix(.Call(internal("ffi_mech_log_density"), name, as.double(z - s), rep(scale, each = nrow(a))), nrow(a)))
          }
          loss <- abs(density(a) - density(b))
          expect_lte(max(loss), granted$epsilon * (1 + 1e-9) + far * 1e-14 * length(scale))
        }
        expect_lte(max(rowSums(abs(moved))), granted$epsilon * (1 + 1e-12))
      } else {
        # a normal distribution's loss is normal with variance mu^2, and zCDP has rho = mu^2 / 2
        expect_lte(max(rowSums(moved^2)) / 2, granted$rho * (1 + 1e-12))
      }
    }
  }
})

test_that("every mechanism: noise fits its density", {
  totals <- list(continuous = number_statistics$sums, discrete = code_statistics$counts)
  for (name in setdiff(names(registry_mechanisms), c("custom", "tabulated", "exponential", "objective", "randomized_response"))) {
    discrete <- startsWith(name, "discrete")
    st <- totals[[if (discrete) "discrete" else "continuous"]]
    mechanism <- registry_mechanisms[[name]]
    scale <- internal("mechanism_scale")(mechanism, st)[1]
    set.seed(11)
    draws <- 20000
    noise <- internal("mechanism_noise")(mechanism, runif(draws), rep(scale, draws))
    ends <- scale * c(-3, -1.5, -0.7, -0.2, 0.2, 0.7, 1.5, 3)
    density <- function(x) exp(.Call(internal("ffi_mech_log_density"), name, as.double(x), rep(scale, length(x))))
    if (discrete) {
      ends <- unique(floor(ends)) + 0.5
      below <- vapply(ends, function(e) sum(density(seq(floor(e), by = -1, length.out = 2000))), 0)
    } else {
      below <- vapply(ends, function(e) if (e < 0) integrate(density, -Inf, e, rel.tol = 1e-9)$value else 1 - integrate(density, e, Inf, rel.tol = 1e-9)$value, 0)
    }
    cells <- tabulate(findInterval(noise, ends) + 1, length(ends) + 1)
    expect_gt(chisq.test(cells, p = diff(c(0, below, 1)))$p.value, 1e-6)
  }
})
