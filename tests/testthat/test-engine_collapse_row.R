# Independent draws of the counts of one table: against enumeration (most of it stands in test-engine_collapse_counts.R and
# test-mech_published.R), against moves, and where the released counts and n disagree.

row_fit <- function(release, model = flat_table(), ..., iter = 8000, seed = 1) {
  fit <- sample_posterior(release, model, method = "collapse", chains = 2, iter = iter, warmup = 0, seed = seed, ...)
  expect_identical(fit$problem$family, "row")
  expect_true(fit$exact)
  fit
}

# the means, squares and products of all cells
expect_cells <- function(fit, tables, log_p) {
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  cells <- posterior::as_draws_array(denoise(fit, stats::reformulate(paste(names(fit$bound$levels), collapse = ":"))))
  cells <- cells[, , sub("^prob\\[(.*)\\]$", "\\1", fit$bound$parameters)]
  draw <- function(k) matrix(cells[, , k], ncol = 2L)
  for (k in seq_len(ncol(tables))) for (l in seq_len(k)) {
    products <- draw(k) * draw(l)
    if (stats::sd(products) > 0) expect_same_mean(products, sum(p * tables[, k] * tables[, l])) else
      expect_equal(products[1], sum(p * tables[, k] * tables[, l]))
  }
  for (k in which(apply(cells, 3, stats::sd) > 0)) expect_same_mean(draw(k), sum(p * tables[, k]))
}

dirichlet_weights <- function(tables, alpha) {
  rowSums(vapply(seq_len(ncol(tables)), function(k) lgamma(alpha[k] + tables[, k]) - lfactorial(tables[, k]), numeric(nrow(tables))))
}

levels_of <- list(x = c("a", "b"), y = c("u", "v", "w"))
cells_of <- stat_counts(~ x:y, levels_of)

# some of the cells, `times` each
some_cells <- function(at, times = 1) {
  queries <- times * diag(6)[at, , drop = FALSE]
  rownames(queries) <- paste0("q", at)
  stat_linear(cells_of, queries)
}

test_that("every table of a few records, with any noise and weights", {
  skip_on_cran()
  tables <- all_tables(7, 6)
  value <- c(2.3, -1.4, 0.2, 4.1, 1, 3.9)
  alpha <- c(0.2, 1, 3, 0.5, 1, 2)
  for (noise in list(mech_laplace(scale = 1.5), mech_gaussian(sd = 1), mech_discrete_laplace(scale = 1), mech_discrete_gaussian(sd = 2))) {
    z <- if (startsWith(class(noise)[1], "mech_discrete")) round(value) else value
    fit <- row_fit(as_release(z, cells_of, noise, 7), model_table(~ x:y, prior_dirichlet(alpha)))
    scale <- unname(fit$release$scale)
    expect_cells(fit, tables, dirichlet_weights(tables, alpha) + log_noise(noise$kernel, scale, z, tables))
  }
})

test_that("cells that are not released, exact, twice released, or known to be few", {
  skip_on_cran()
  tables <- all_tables(6, 6)
  weights <- dirichlet_weights(tables, rep(1, 6))
  # a cell missing, one of the others exact
  one <- some_cells(1:4)
  two <- some_cells(5)
  rel <- as_release(list(a = c(1.2, 0.3, 2, 2.6), b = 1), list(a = one, b = two), list(a = mech_laplace(scale = 1), b = mech_exact()), 6)
  expect_cells(row_fit(rel), tables, weights - rowSums(abs(sweep(tables[, 1:4], 2, c(1.2, 0.3, 2, 2.6)))) + ifelse(tables[, 5] == 1, 0, -Inf))
  # the same cells twice, n released too
  rel <- as_release(list(a = c(1, 0, 2, 3, 0, 1), b = c(2.5, 0, 0.4, 3.2, 1, -1), n = 6), list(a = cells_of, b = cells_of, n = stat_size()),
                    list(a = mech_gaussian(sd = 2), b = mech_laplace(scale = 2), n = mech_laplace(scale = 1)), 6, neighbours = "add_remove")
  expect_cells(row_fit(rel), tables, weights - rowSums(sweep(tables, 2, c(1, 0, 2, 3, 0, 1))^2) / 8 - rowSums(abs(sweep(tables, 2, c(2.5, 0, 0.4, 3.2, 1, -1)))) / 2)
  # hidden below 2
  rel <- as_release(c(NA, 3, NA, NA, NA, 2), cells_of, published(mech_gaussian(sd = 1), threshold = 2), 6)
  shown <- c(2, 6)
  log_p <- weights + rowSums(stats::pnorm(2, tables[, -shown], log.p = TRUE)) + stats::dnorm(3, tables[, 2], log = TRUE) + stats::dnorm(2, tables[, 6], log = TRUE)
  expect_cells(row_fit(rel), tables, log_p)
})

test_that("unknown n: every table of up to eight records", {
  skip_on_cran() # takes long; `make test` runs it
  tables <- do.call(rbind, lapply(0:8, all_tables, k = 4L))
  n <- rowSums(tables)
  levels <- list(x = c("a", "b"), y = c("u", "v"))
  four <- stat_counts(~ x:y, levels)
  alpha <- c(0.4, 1, 2.5, 1)
  weights <- dirichlet_weights(tables, alpha) + lfactorial(n) - lgamma(sum(alpha) + n)
  sized <- list(counts = four, size = stat_size())
  priors <- list(list(prior_n("uniform", lower = 2, upper = 8), ifelse(n >= 2, 0, -Inf)), list(prior_n("log_uniform", upper = 8), ifelse(n >= 1, -log(n), -Inf)),
                 list(prior_n("poisson", mean = 4), stats::dpois(n, 4, log = TRUE)))
  priors[[3]][[1]]$upper <- 8
  for (prior in priors) {
    model <- model_table(prior = prior_dirichlet(alpha))
    fit <- row_fit(as_release(c(2.2, 0.3, 3.6, -1), four, mech_laplace(scale = 1.5), NULL, neighbours = "add_remove"), model, prior_n = prior[[1]])
    log_p <- weights + prior[[2]] + log_noise("absolute", rep(1.5, 4), c(2.2, 0.3, 3.6, -1), tables)
    expect_cells(fit, tables, log_p)
    p <- exp(log_p - max(log_p))
    expect_same_mean(parameter_draws(fit, "n"), sum(p * n) / sum(p))
    rel <- as_release(list(counts = c(2.2, 0.3, 3.6, -1), size = 7.4), sized, list(counts = mech_gaussian(sd = 2), size = mech_laplace(scale = 1)), NULL,
                      neighbours = "add_remove")
    expect_cells(row_fit(rel, model, prior_n = prior[[1]]), tables,
                 weights + prior[[2]] + log_noise("squared", rep(2, 4), c(2.2, 0.3, 3.6, -1), tables) - abs(n - 7.4))
    # two cells and n are released
    two <- list(counts = stat_subset(four, c("x=a:y=v", "x=b:y=u")), size = stat_size())
    rel <- as_release(list(counts = c(0.3, 3.6), size = 7.4), two, list(counts = mech_gaussian(sd = 1), size = mech_gaussian(sd = 1.5)), NULL,
                      neighbours = "add_remove")
    expect_cells(row_fit(rel, model, prior_n = prior[[1]]), tables,
                 weights + prior[[2]] + log_noise("squared", c(1, 1), c(0.3, 3.6), tables[, 2:3]) - (n - 7.4)^2 / (2 * 1.5^2))
  }
})

test_that("a multiple of a count is told as such", {
  doubled <- some_cells(1:6, 2)
  z <- c(2, 3, 0, 6, 1, 5)
  fit <- row_fit(as_release(z, doubled, mech_gaussian(sd = 2), 8))
  tables <- all_tables(8, 6)
  expect_cells(fit, tables, dirichlet_weights(tables, rep(1, 6)) - rowSums(sweep(2 * tables, 2, z)^2) / 8)
  expect_identical(as.vector(posterior::as_draws_array(denoise(fit))) %% 2, numeric(2 * 8000 * 6))
})

# Moves do not mix in the last of these, Laplace noise on counts that are far too few for n.
test_that("a count's exact distribution, where n and the counts disagree too", {
  skip_on_cran() # takes long; `make test` runs it
  z <- c(30.2, 170.4, 61, -4.5, 55, 101)
  for (n in c(400, 520, 3000)) for (noise in list(mech_gaussian(sd = 9), mech_laplace(scale = 6))) {
    m <- 0:n
    weights <- vapply(z, function(at) lgamma(0.5 + m) - lgamma(m + 1) + log_noise(noise$kernel, noise$scale %||% noise$sd, at, cbind(m)), numeric(n + 1))
    # what adds the same to every count changes nothing
    weights <- weights + m * if (n == 3000) if (noise$kernel == "absolute") 1 / 6 else 5 else 0
    p <- exp(sweep(weights, 2, apply(weights, 2, max)))
    add <- function(a, b) vapply(m, function(sum) sum(a[1:(sum + 1)] * b[(sum + 1):1]), 0)
    fit <- row_fit(as_release(z, cells_of, noise, n), model_table(prior = prior_dirichlet(0.5)))
    counts <- posterior::as_draws_array(denoise(fit))
    rest <- Reduce(add, lapply(c(1, 3, 5, 6), function(other) p[, other]))
    for (k in c(2, 4)) {
      exact <- p[, k] * rev(add(rest, p[, 6 - k]))
      expect_distribution(matrix(counts[, , k], ncol = 2), function(q) m[findInterval(q, cumsum(exact) / sum(exact)) + 1] - 0.5, sum(exact * m) / sum(exact), probabilities = numeric())
      expect_same_mean(matrix(counts[, , k]^2, ncol = 2), sum(exact * m^2) / sum(exact))
    }
  }
})

test_that("a count's distribution far from what was released of it", {
  skip_on_cran()
  st <- stat_counts(~x, levels_of["x"])
  for (n in c(50, 1000, 1e5)) for (noise in list(mech_gaussian(sd = 5), mech_laplace(scale = 2))) {
    z <- c(300, 260)
    k <- 0:n
    log_p <- log_noise(noise$kernel, rep(noise$scale %||% noise$sd, 2), z, cbind(n - k, k))
    p <- exp(log_p - max(log_p))
    fit <- row_fit(as_release(z, st, noise, n), model_bernoulli())
    draws <- posterior::extract_variable_matrix(denoise(fit), "x=b")
    expect_same_mean(draws, sum(p * k) / sum(p))
    expect_same_mean((draws - sum(p * k) / sum(p))^2, sum(p * k^2) / sum(p) - (sum(p * k) / sum(p))^2)
  }
})

test_that("calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ x:y, levels_of)
  cal <- calibrate(flat_table(), st, mech_laplace(epsilon = 0.5), n = 60, replicates = 70, chains = 1, iter = 100, warmup = 0, seed = 1, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("calibrated with n drawn", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate(flat_table(), list(counts = cells_of, size = stat_size()), list(counts = mech_laplace(scale = 3), size = mech_gaussian(sd = 6)),
                   n = prior_n("negative_binomial", mean = 40, size = 3), replicates = 70, chains = 1, iter = 100, warmup = 0, seed = 2, neighbours = "add_remove", method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_true("n" %in% cal$results$variable)
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("independent draws; the same when continued; init is not used", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(c(30.2, 170.4, 61, -4.5, 55, 101), cells_of, mech_gaussian(sd = 9), 410)
  fit <- row_fit(rel)
  expect_gt(min(posterior::summarise_draws(denoise(fit), "ess_bulk")$ess_bulk), 14000)
  expect_identical(acceptance(fit)$mean, c(1, 1))
  expect_output(print(acceptance(fit)), "mean")
  expect_extends(function(iter) suppressWarnings(sample_posterior(rel, flat_table(), method = "collapse", chains = 2, iter = iter, warmup = 50, seed = 3)))
  unknown <- as_release(c(30.2, 170.4, 61, -4.5, 55, 101), cells_of, mech_gaussian(sd = 9), NULL, neighbours = "add_remove")
  expect_extends(function(iter) suppressWarnings(sample_posterior(unknown, flat_table(), method = "collapse", chains = 2, iter = iter, warmup = 50, seed = 3)))
  expect_identical(names(acceptance(row_fit(unknown))), c("chain", "mean", "records"))
  start <- stats::setNames(rep(1 / 6, 6), fit$bound$parameters)
  expect_message(sample_posterior(rel, flat_table(), method = "collapse", chains = 1, iter = 300, init = start), "not used", class = "noiseaware_message_init")
})

test_that("wide noise on many records, other sums and n without a limit are left to moves", {
  family <- function(release, ...) suppressWarnings(sample_posterior(release, flat_table(), method = "collapse", chains = 1, iter = 20, seed = 1, ...))$problem$family
  expect_identical(family(as_release(1e6 * (1:6), cells_of, mech_gaussian(sd = 40), 2.1e7)), "row")
  expect_identical(family(as_release(1e6 * (1:6), cells_of, mech_gaussian(sd = 4e4), 2.1e7)), "table")
  expect_identical(family(as_release(1:6, cells_of, mech_gaussian(sd = 1), NULL, neighbours = "add_remove")), "row")
  few <- as_release(c(3, 4, 2, 1), some_cells(1:4), mech_gaussian(sd = 1), NULL, neighbours = "add_remove")
  expect_identical(family(few), "table")
  expect_identical(family(few, prior_n = prior_n("uniform", lower = 0, upper = 500)), "row")
  expect_identical(family(as_release(c(2, 3, 4, 5, 6), stat_counts(~ x + y, levels_of), mech_gaussian(sd = 1), 10)), "table")
})

test_that("exact numbers settle counts, or contradict n", {
  fit <- suppressWarnings(row_fit(as_release(c(1, 2, 3, 4, 5, 6), cells_of, mech_exact(), 21), iter = 200))
  expect_true(all(t(posterior::as_draws_matrix(denoise(fit))) == 1:6))
  rel <- as_release(list(a = c(5, 1), b = 0.4), list(a = some_cells(1:2), b = some_cells(3)), list(a = mech_exact(), b = mech_laplace(scale = 1)), 8)
  expect_error(sample_posterior(rel, model_table(zeros = ~ y == "w" | x == "b"), method = "collapse"), "No table of counts", class = "noiseaware_error_value")
})
