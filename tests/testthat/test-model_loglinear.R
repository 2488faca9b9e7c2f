# Log-linear tables, model_table() with normal priors on the coefficients: against enumeration of all tables of a few records with the
# coefficients summed over draws of their prior, against quadrature, against glm() where there is next to no noise, and
# against the Dirichlet prior.

all_pairs <- ~ x:y + y:z + x:z

# The design of a hierarchical formula, in R's own words.
design_of <- function(formula, cells) {
  formula <- stats::as.formula(paste("~", gsub(":", "*", paste(deparse(formula[[2]]), collapse = ""), fixed = TRUE)))
  stats::model.matrix(formula, as.data.frame(lapply(cells, factor)))[, -1L, drop = FALSE]
}

cell_logs <- function(design, beta) {
  eta <- design %*% beta
  unname(sweep(eta, 2L, apply(eta, 2L, function(e) max(e) + log(sum(exp(e - max(e)))))))
}

# Tables x draws of coefficients from the prior: log p(table | beta).
log_given <- function(tables, design, beta) {
  ways <- lfactorial(rowSums(tables)) - rowSums(lfactorial(tables))
  ways + tables %*% cell_logs(design, beta)
}

# cells, coefficients and released components by their means, squares and products; `log_p`: of tables in addition to p(table | beta)
expect_loglinear <- function(fit, tables, log_p, released, design, mean, sd, draws = 14000) {
  set.seed(11)
  half <- matrix(stats::rnorm(draws / 2 * ncol(design)), ncol(design))
  beta <- mean + sd * cbind(half, -half)
  expect_setequal(fit$bound$parameters, colnames(design))
  weight <- matrix(0, nrow(tables), 1L + 2L * ncol(design))
  for (block in split(seq_len(draws), ceiling(seq_len(draws) / 3500))) {
    p <- exp(log_given(tables, design, beta[, block, drop = FALSE]))
    weight <- weight + p %*% cbind(1, t(beta[, block, drop = FALSE]), t(beta[, block, drop = FALSE]^2))
  }
  weight <- weight * exp(log_p - max(log_p))
  p <- weight[, 1L] / sum(weight[, 1L])
  of_beta <- colSums(weight)[-1L] / sum(weight[, 1L])
  cells <- posterior::as_draws_array(denoise(fit, stats::reformulate(paste(names(fit$bound$levels), collapse = ":"))))
  possible <- fit$bound$parts[[1L]]$codes
  place <- 1 + Reduce(function(at, v) at * length(fit$bound$levels[[v]]) + possible[, v], names(fit$bound$levels), 0)
  draw <- function(k) matrix(cells[, , place[k]], ncol = 2L)
  same <- function(draws, want) if (stats::sd(draws) > 0) expect_same_mean(draws, want) else expect_lt(abs(draws[1] - want), 2e-3)
  for (k in seq_len(ncol(tables))) {
    same(draw(k), sum(p * tables[, k]))
    for (l in seq_len(k)) same(draw(k) * draw(l), sum(p * tables[, k] * tables[, l]))
  }
  for (j in seq_len(ncol(design))) {
    expect_same_mean(parameter_draws(fit, colnames(design)[j]), of_beta[j])
    expect_same_mean(parameter_draws(fit, colnames(design)[j])^2, of_beta[ncol(design) + j])
  }
  at <- posterior::as_draws_array(denoise(fit))
  for (k in which(apply(at, 3, stats::sd) > 0)) expect_same_mean(matrix(at[, , k], ncol = 2L), sum(p * released[, k]))
  invisible(p)
}

loglinear_fit <- function(release, model, ..., iter = 2300, warmup = 600) {
  fit <- sample_posterior(release, model, method = "collapse", chains = 2, iter = iter, warmup = warmup, seed = 1, ...)
  expect_identical(fit$problem$family, "table")
  expect_true(fit$exact)
  fit
}

test_that("the design is that of glm(), cells without a level's combination have no coefficient for it", {
  levels <- list(a = c("u", "v", "w"), b = binary, c = c("1", "2", "3", "4"), d = binary)
  cells <- rev(expand.grid(rev(levels), stringsAsFactors = FALSE))
  cells[] <- Map(factor, cells, levels)
  st <- stat_counts(~ a:b:c:d, levels)
  for (formula in list(~ a:b + b:c + c:d + d:a, ~ a:b:c + c:d, ~ a + b + c + d, ~ a:b:c:d, ~ a:d:b + c)) {
    bound <- internal("bind_model")(model_table(formula, prior_normal(0.1, 1.5)), st)
    cells_of <- cells[names(bound$levels)]
    cells_of <- cells_of[do.call(order, cells_of), ]
    design <- design_of(formula, cells_of)
    expect_length(bound$parameters, ncol(design))
    set.seed(2)
    beta <- matrix(stats::rnorm(2 * ncol(design)), ncol(design))
    p <- .Call(internal("ffi_model_cells"), bound$spec, beta)
    # the same space of tables, and the same numbers where the names are the same
    expect_lt(max(abs(stats::lm.fit(cbind(1, design), log(p))$residuals)), 1e-9)
    expect_equal(colSums(p), c(1, 1))
    same <- match(bound$parameters, colnames(design))
    if (!anyNA(same)) expect_equal(p, exp(cell_logs(design[, same], beta)))
  }
  left_out <- internal("bind_model")(model_table(~ a:b + c:d, prior_normal(), zeros = ~ a == "w" & b == "b"), st)
  expect_false("aw:bb" %in% left_out$parameters)
  expect_true(all(c("aw", "bb", "av:bb") %in% left_out$parameters))
})

test_that("the density of theta given the table, and its slopes", {
  st <- stat_counts(~ x:y + z, cube)
  rel <- as_release(rep(2, 6), st, mech_gaussian(sd = 1), 8)
  fit <- sample_posterior(rel, model_table(all_pairs, prior_normal(0.2, 0.7)), method = "collapse", chains = 1, iter = 40, warmup = 20, seed = 1)
  state <- fit$chains[[1L]]$state
  at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, state, q)
  design <- design_of(all_pairs, cube_cells)[, fit$bound$parameters]
  table <- as.numeric(posterior::as_draws_matrix(denoise(fit, ~ x:y:z))[20, ])
  want <- function(q) sum(table * cell_logs(design, cbind(q))) + sum(stats::dnorm(q, 0.2, 0.7, log = TRUE))
  set.seed(1)
  q <- stats::rnorm(6)
  other <- stats::rnorm(6)
  expect_equal(at(q)[1] - at(other)[1], want(q) - want(other))
  expect_equal(at(q)[-1], difference_slopes(at, q, 1e-5), tolerance = 1e-6)
})

test_that("2 x 2 x 2 tables without the interaction of three are enumerated", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  design <- design_of(all_pairs, cube_cells)
  noise <- list(pairs = mech_laplace(scale = 1.5), whole = mech_gaussian(sd = 1), ones = mech_discrete_laplace(scale = 1), some = mech_laplace(scale = 0.4),
                linear = mech_gaussian(sd = 0.5))
  for (k in seq_along(noise)) {
    st <- cube_statistics[[names(noise)[k]]]
    released <- released_of(st, tables)
    set.seed(k)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    rel <- as_release(unname(z), st, noise[[k]], 5)
    mean <- if (k == 2) c(0.5, -0.5, 0, 1, 0, 0) else 0
    names(mean) <- if (k == 2) colnames(design)
    fit <- loglinear_fit(rel, model_table(all_pairs, prior_normal(mean, 0.8)))
    expect_loglinear(fit, tables, log_noise(rel$mechanism$kernel, rel$scale, z, released), released, design, unname(mean), 0.8)
  }
})

test_that("structural zeros and an unknown number of records are enumerated", {
  skip_on_cran()
  possible <- cube_cells[!(cube_cells$x == "b" & cube_cells$y == "a" & cube_cells$z == "b"), ]
  design <- design_of(all_pairs, cube_cells)[as.integer(rownames(possible)), ]
  rownames(possible) <- NULL
  model <- model_table(all_pairs, prior_normal(0, 0.8), zeros = ~ x == "b" & y == "a" & z == "b")
  st <- cube_statistics$pairs
  tables <- all_tables(6, 7)
  released <- released_of(st, tables, possible)
  set.seed(1)
  z <- round(colMeans(released) + stats::rnorm(12))
  rel <- as_release(z, st, mech_gaussian(sd = 0.8), 6)
  expect_loglinear(loglinear_fit(rel, model), tables, log_noise("squared", 0.8, z, released), released, design, 0, 0.8)

  tables <- do.call(rbind, lapply(0:5, all_tables, 8))
  n <- rowSums(tables)
  released <- released_of(st, tables)
  z <- round(colMeans(released) + stats::rnorm(12))
  rel <- as_release(z, st, mech_laplace(scale = 1.5), NULL, neighbours = "add_remove")
  records <- prior_n("poisson", mean = 3.5)
  records$upper <- 5
  fit <- loglinear_fit(rel, model_table(all_pairs, prior_normal(0, 0.8)), prior_n = records)
  log_p <- stats::dpois(n, 3.5, log = TRUE) + log_noise("absolute", 1.5, z, released)
  p <- expect_loglinear(fit, tables, log_p, released, design_of(all_pairs, cube_cells), 0, 0.8)
  expect_same_mean(parameter_draws(fit, "n"), sum(p * n))
})

# One coefficient, so that all is a sum and a quadrature: also of counts beyond the tables of factorials.
test_that("one variable of two levels, few records to many", {
  skip_on_cran()
  st <- stat_subset(stat_counts(~ x, cube["x"]), "x=b")
  for (case in list(list(n = 40, z = 11, sd = 5), list(n = 3000, z = 1700, sd = 60), list(n = 60000, z = 1100, sd = 150))) {
    rel <- as_release(c("x=b" = case$z), st, mech_gaussian(sd = case$sd), case$n)
    fit <- loglinear_fit(rel, model_table(~ x, prior_normal(-0.5, 1.2)))
    k <- seq(max(0, case$z - 9 * case$sd), min(case$n, case$z + 9 * case$sd))
    grid <- seq(max(-7, stats::qlogis(k[1] / case$n) - 1), min(7, stats::qlogis(k[length(k)] / case$n) + 1), length.out = 801)
    joint <- outer(stats::dnorm(case$z, k, case$sd, log = TRUE) + lchoose(case$n, k), stats::dnorm(grid, -0.5, 1.2, log = TRUE), `+`) +
      outer(k, stats::plogis(grid, log.p = TRUE)) + outer(case$n - k, stats::plogis(-grid, log.p = TRUE))
    p <- exp(joint - max(joint))
    p <- p / sum(p)
    of_beta <- colSums(p)
    draws <- parameter_draws(fit, "xb")
    expect_distribution(draws, function(q) grid[which.max(cumsum(of_beta) >= q)], sum(of_beta * grid))
    counts <- matrix(denoise(fit)[, , 1L], ncol = 2L)
    expect_same_mean(counts, sum(rowSums(p) * k))
    expect_same_mean(counts^2, sum(rowSums(p) * k^2))
  }
})

test_that("next to no noise gives glm()'s likelihood", {
  skip_on_cran()
  counts <- as.data.frame(UCBAdmissions)
  admitted <- counts[rep(seq_len(24), counts$Freq), 1:3]
  st <- stat_counts(~ Admit:Gender:Dept, levels = lapply(admitted, levels))
  exact <- as_release(as.vector(aperm(UCBAdmissions, 3:1)), st, mech_gaussian(sd = 0.05), nrow(admitted))
  fit <- loglinear_fit(exact, model_table(~ Admit:Gender + Admit:Dept + Gender:Dept, prior_normal(sd = 20)), iter = 1800)
  same <- stats::glm(Freq ~ (Admit + Gender + Dept)^2, stats::poisson(), counts)
  told <- posterior::summarise_draws(fit$draws, "mean", "sd", "mcse_mean", "rhat")
  want <- summary(same)$coefficients[told$variable, ]
  # the posterior mean is off the mode by a share of a standard deviation, as skewness has it
  expect_lt(max(abs(told$mean - want[, 1]) / want[, 2]), 0.15)
  expect_lt(max(abs(log(told$sd / want[, 2]))), 0.1)
  expect_lt(max(told$rhat), 1.02)
  # the metric is the inverse of the information: trajectories are short
  expect_lt(max(acceptance(fit)$steps), 9)
  expect_equal(unname(colMeans(table_measures(fit, ~ Admit:Dept) |> posterior::as_draws_matrix())),
               as.vector(t(apply(UCBAdmissions, c(1, 3), sum))) / nrow(admitted), tolerance = 0.02)
})

# A saturated table: the Dirichlet distribution of the probabilities, weighted, is that of normal coefficients.
test_that("a decomposable formula agrees with the Dirichlet prior, weighted", {
  skip_on_cran()
  st <- stat_counts(~ x:y + y, cube[1:2])
  rel <- as_release(c(14, 3, 9, 21, 20, 27), st, mech_laplace(scale = 3), 50)
  normal <- loglinear_fit(rel, model_table(~ x:y, prior_normal(0.3, 0.9)))
  other <- loglinear_fit(rel, model_table(~ x:y), iter = 14700)
  p <- posterior::as_draws_matrix(other$draws)
  beta <- cbind(xb = log(p[, 3] / p[, 1]), yb = log(p[, 2] / p[, 1]), "xb:yb" = log(p[, 4] * p[, 1] / p[, 2] / p[, 3]))
  # log ratios of uniform probabilities have the density of their product
  log_weight <- rowSums(stats::dnorm(beta, 0.3, 0.9, log = TRUE)) - rowSums(log(p))
  weight <- exp(log_weight - max(log_weight))
  weight <- weight / sum(weight)
  for (j in 1:3) {
    want <- sum(weight * beta[, j])
    error <- sqrt(sum(weight^2 * (beta[, j] - want)^2)) * 2 # chains are no independent draws
    draws <- parameter_draws(normal, c("xb", "yb", "xb:yb")[j])
    expect_lt(abs(mean(draws) - want) / sqrt(error^2 + posterior::mcse_mean(draws)^2), 4)
    expect_equal(stats::sd(draws), sqrt(sum(weight * (beta[, j] - want)^2)), tolerance = 0.06)
  }
})

test_that("\"augment\" and \"collapse\" agree, its hooks are right, a chain cut in two is the same chain", {
  skip_on_cran()
  model <- model_table(all_pairs, prior_normal(0, 0.7))
  st <- stat_counts(~ x:y + y:z, cube)
  set.seed(3)
  rel <- simulate_release(model, st, mech_laplace(epsilon = 1), n = 30)
  slow <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 3500, warmup = 600, seed = 2)
  expect_same_quantiles(loglinear_fit(rel, model)$draws, slow$draws)
  result <- debug_model(model, st, n = 300)
  expect_false(any(result$ok %in% FALSE), info = paste(result$hook[result$ok %in% FALSE], collapse = " "))
  run <- function(iter) sample_posterior(rel, model, method = "collapse", chains = 1, iter = iter, warmup = 60, seed = 5)
  expect_identical(extend(run(90), 70)$draws, run(160)$draws)
})

test_that("exact margins are kept", {
  skip_on_cran()
  st <- list(pair = stat_counts(~ x:y, cube[1:2]), other = stat_counts(~ y:z, cube[2:3]))
  rel <- as_release(list(pair = c(2, 1, 1, 2), other = c(2.4, 0.3, 1.7, 1.1)), st, list(pair = mech_exact(), other = mech_laplace(scale = 1)), 6)
  tables <- all_tables(6, 8)
  released <- cbind(released_of(st$pair, tables), released_of(st$other, tables))
  kept <- rowSums(abs(sweep(released[, 1:4], 2L, c(2, 1, 1, 2)))) == 0
  log_p <- -rowSums(abs(sweep(released[, 5:8], 2L, c(2.4, 0.3, 1.7, 1.1))))
  fit <- loglinear_fit(rel, model_table(all_pairs, prior_normal(0, 0.8)))
  expect_loglinear(fit, tables[kept, ], log_p[kept], released[kept, ], design_of(all_pairs, cube_cells), 0, 0.8)
})

test_that("calibration: a cycle of four", {
  skip_on_cran()
  levels <- list(a = c("u", "v", "w"), b = binary, c = binary, d = binary)
  cycle <- ~ a:b + b:c + c:d + d:a
  cal <- calibrate(model_table(cycle, prior_normal(0, 1)), stat_counts(cycle, levels), mech_laplace(epsilon = 4), n = 60, replicates = 35, chains = 1,
                   iter = 400, warmup = 150, seed = 1, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

# ---- what a fit gives ---------------------------------------------------------------------------

test_that("all that tables give works, or says why not", {
  st <- stat_counts(all_pairs, cube)
  set.seed(1)
  rel <- as_release(c(30, 10, 20, 40, 25, 25, 10, 40, 35, 5, 20, 40), st, mech_laplace(scale = 3), 100)
  model <- model_table(all_pairs, prior_normal())
  expect_snapshot(print(model))
  fit <- sample_posterior(rel, model, chains = 2, iter = 300, seed = 1)
  expect_identical(fit$method, "collapse")
  expect_identical(names(coef(fit)), c("xb", "yb", "zb", "xb:yb", "yb:zb", "xb:zb"))
  p <- posterior::as_draws_matrix(table_measures(fit))
  design <- design_of(all_pairs, cube_cells)
  expect_equal(unclass(p), t(exp(cell_logs(design[, fit$bound$parameters], t(unclass(posterior::as_draws_matrix(fit$draws)))))), ignore_attr = TRUE)
  logs <- posterior::as_draws_matrix(table_measures(fit, measure = "loglinear"))
  expect_equal(as.numeric(logs[, "x=b:y=b"]), as.numeric(posterior::as_draws_matrix(fit$draws)[, "xb:yb"]))
  expect_lt(max(abs(logs[, "x=b:y=b:z=b"])), 1e-9)
  expect_identical(dim(denoise(fit, ~ x:z)), c(150L, 2L, 4L))
  expect_equal(sum(predict(fit, ~ x | y)$fit), 2)
  expect_s3_class(plot(fit, "table", margin = ~ x:y), "ggplot")
  expect_identical(nrow(synthesize(fit, 2, seed = 1)[[1]]), 100L)
  expect_identical(nrow(synthesize(fit, 2, of = "records", seed = 1)[[1]]), 100L)
  expect_named(acceptance(fit), c("chain", "mean", "pair", "swap", "contrast", "steps", "acceptance", "divergent", "deepest"))
  expect_identical(unique(rstantools::prior_summary(fit)$prior), "normal(0, 2)")
  expect_error(log_evidence(fit), "not integrated out", class = "noiseaware_error_method")
  expect_error(test_hypothesis(fit, ~ x + y), class = "noiseaware_error_argument")
  changed <- suppressMessages(update(fit, prior = prior_normal(0, 1.8), seed = 2))
  expect_identical(unique(rstantools::prior_summary(changed)$prior), "normal(0, 1.8)")
  expect_error(update(fit, prior = prior_dirichlet()), class = "noiseaware_error_formula")
})

test_that("what it refuses", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ x:y + z, cube)
  expect_snapshot(error = TRUE, {
    model_table(~ x:y + y:z + x:z)
    model_table(~ x:y, prior = prior_gamma())
    internal("bind_model")(model_table(~ x:y + z, prior_normal(sd = c(xc = 1))), st)
    internal("bind_model")(model_table(~ x:y + z, prior_normal(0, c(1, 2))), st)
  })
  wide <- stats::setNames(rep(list(letters[1:11]), 6), paste0("v", 1:6))
  expect_error(internal("bind_model")(model_table(~ v1 + v2 + v3 + v4 + v5 + v6, prior_normal()), stat_counts(~ v1 + v2 + v3 + v4 + v5 + v6, wide)),
               class = "noiseaware_error_size")
  expect_error(internal("bind_model")(model_table(~ v1:v2:v3:v4, prior_normal()), stat_counts(~ v1:v2 + v3:v4, wide[1:4])), "coefficients",
               class = "noiseaware_error_size")
})
