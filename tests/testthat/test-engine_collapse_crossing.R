# Method "collapse" where released margins cross the cliques of a table: against enumeration of all tables of a few records.

chain <- ~ x:y + y:z # x and z are independent given y, but x:z is released

counted <- function(tables, terms) tables %*% indicators(stat_counts(stats::reformulate(terms), cube[strsplit(terms, ":")[[1]]]))

# log p(table): its records' sequences times the probability of one of them, cliques over what they share
log_chain <- function(tables, weight = 1) {
  log_gammas <- function(n, a) rowSums(lgamma(a + n) - lgamma(a))
  lfactorial(rowSums(tables)) - rowSums(lfactorial(tables)) + log_gammas(counted(tables, "x:y"), weight) +
    log_gammas(counted(tables, "y:z"), weight) - log_gammas(counted(tables, "y"), 2 * weight)
}

crossing_fit <- function(release, model, ..., iter = 1600, warmup = 400) {
  fit <- sample_posterior(release, model, method = "collapse", chains = 2, iter = iter, warmup = warmup, seed = 1, ...)
  expect_identical(fit$problem$family, "crossing")
  expect_true(fit$exact)
  fit
}

# released components and cliques' cells by means and products, probabilities by their means given the table
expect_crossing <- function(fit, tables, log_p, released, weight = 1) {
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  at <- posterior::as_draws_array(denoise(fit))
  draw <- function(draws, k) matrix(draws[, , k], ncol = 2L)
  for (k in seq_len(ncol(released))) for (l in seq_len(k)) expect_same_mean(draw(at, k) * draw(at, l), sum(p * released[, k] * released[, l]))
  for (pair in c("x:y", "y:z")) {
    cells <- posterior::as_draws_array(denoise(fit, stats::reformulate(pair)))
    want <- counted(tables, pair)
    for (k in 1:4) expect_same_mean(draw(cells, k), sum(p * want[, k]))
  }
  xy <- counted(tables, "x:y")
  expect_same_mean(parameter_draws(fit, "prob[x=a:y=b]"), sum(p * (weight + xy[, 2]) / (4 * weight + rowSums(xy))))
}

test_that("three binary variables on a chain, all their pairs released: enumeration", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  noise <- list(mech_laplace(scale = 1.5), mech_gaussian(sd = 1), mech_discrete_laplace(scale = 0.8), mech_discrete_gaussian(sd = 2))
  statistics <- list(cube_statistics$pairs, stat_counts(~ x:z + y, cube), cube_statistics$whole, stat_subset(cube_statistics$pairs, c("x=a:z=b", "x=b:z=b", "y=a:z=b")))
  for (k in seq_along(noise)) {
    weight <- c(1, 0.4, 2, 1)[k]
    st <- statistics[[k]]
    released <- released_of(st, tables)
    set.seed(k)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    rel <- as_release(unname(z), st, noise[[k]], 5)
    fit <- crossing_fit(rel, model_table(chain, prior_dirichlet(weight)))
    expect_crossing(fit, tables, log_chain(tables, weight) + log_noise(rel$mechanism$kernel, rel$scale, z, released), released, weight)
  }
})

test_that("several statistics, a mechanism each, the same margin twice", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  st <- list(one = stat_counts(~ x:z, cube[c("x", "z")]), two = stat_counts(~ x:z + y, cube))
  rel <- as_release(list(one = c(2, 0, 1, 3), two = c(1.4, 0.2, 0.4, 2.2, 3.1, 1)), st, list(one = mech_laplace(scale = 1), two = mech_gaussian(sd = 0.7)), 5)
  released <- cbind(released_of(st$one, tables), released_of(st$two, tables))
  log_p <- log_chain(tables) + log_noise("absolute", 1, rel$value[1:4], released[, 1:4]) + log_noise("squared", 0.7, rel$value[5:10], released[, 5:10])
  expect_crossing(crossing_fit(rel, flat_table(chain)), tables, log_p, released)
})

test_that("it agrees with method augment; a chain cut in two is the same chain", {
  skip_on_cran()
  levels <- list(x = c("a", "b", "c"), y = binary, z = binary, w = binary)
  model <- model_table(~ x:y:z + y:w, prior_dirichlet(2))
  st <- stat_counts(~ x:w + y + z:w, levels)
  set.seed(3)
  rel <- simulate_release(model, st, mech_laplace(epsilon = 2), n = 12)
  slow <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 3500, warmup = 600, seed = 2)
  expect_same_quantiles(crossing_fit(rel, model)$draws, slow$draws)
  run <- function(iter) sample_posterior(rel, model, method = "collapse", chains = 1, iter = iter, warmup = 60, seed = 5)
  expect_identical(extend(run(90), 70)$draws, run(160)$draws)
})

test_that("posteriors are calibrated", {
  skip_on_cran()
  cal <- calibrate(model_table(chain, prior_dirichlet(0.7)), cube_statistics$pairs, mech_gaussian(mu = 1), n = 60, replicates = 50, chains = 1,
                   iter = 450, warmup = 150, seed = 1, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("what a fit gives, and what it refuses", {
  skip_on_cran()
  st <- cube_statistics$pairs
  set.seed(1)
  rel <- simulate_release(flat_table(chain), st, mech_laplace(epsilon = 1), n = 200)
  fit <- sample_posterior(rel, flat_table(chain), method = "collapse", chains = 2, iter = 400, seed = 1)
  wide <- stats::setNames(rep(list(letters[1:4]), 6), letters[1:6])
  many <- as_release(rep(1000 / 16, 240), stat_counts(stats::reformulate(utils::combn(letters[1:6], 2L, paste, collapse = ":")), wide), mech_gaussian(sd = 3), 1000)
  bound <- internal("bind_model")(flat_table(~ a:b + b:c + c:d + d:e + e:f), many$statistic)
  chosen <- internal("auto_method")(many, bound, list(chains = 4, iter = 2000, warmup = 1000, thin = 1, seed = 1), list())
  expect_identical(chosen$method, "collapse")
  expect_named(acceptance(fit), c("chain", "mean"))
  expect_identical(nrow(synthesize(fit, 2, seed = 1)[[1]]), 200L)
  expect_error(synthesize(fit, 2, of = "records"), "inside a clique", class = "noiseaware_error_method")
  expect_error(log_evidence(fit), "cross the cliques", class = "noiseaware_error_method")
  expect_error(denoise(fit, ~ x:z), "inside a clique", class = "noiseaware_error_argument")
  refused <- function(rel) expect_error(sample_posterior(rel, model_table(chain), method = "collapse"), "No clique has all variables of", class = "noiseaware_error_method")
  unknown <- as_release(rel$value, st, mech_laplace(scale = 1), NULL, neighbours = "add_remove")
  expect_error(sample_posterior(unknown, model_table(chain), method = "collapse"), "needs the number of records", class = "noiseaware_error_method")
  refused(as_release(round(rel$value), st, published(mech_laplace(scale = 1), round = 1), 200))
  refused(as_release(round(rel$value), st, mech_laplace(scale = 1), 1e7))
  refused(as_release(3, stat_linear(st, list(a = c("x=a:z=a", "x=b:z=b"))), mech_laplace(scale = 1), 200))
})

test_that("components of one margin with noise of different sizes: enumeration", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  st <- stat_counts(~ x:z + y, cube)
  released <- released_of(st, tables)
  z <- c(3, 0, 1, 2, 2, 3)
  for (squared in c(TRUE, FALSE)) {
    scale <- c(0.5, 3, 1, 6, 1, 2)
    rel <- as_release(z, st, if (squared) mech_gaussian(sd = scale) else mech_laplace(scale = scale), 5)
    each <- vapply(1:6, function(j) log_noise(if (squared) "squared" else "absolute", scale[j], z[j], released[, j, drop = FALSE]), numeric(nrow(tables)))
    expect_crossing(crossing_fit(rel, model_table(chain, prior_dirichlet(1))), tables, log_chain(tables) + rowSums(each), released)
  }
})

test_that("cliques of different sizes have weights of their own: enumeration", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  st <- stat_counts(~ x:z + y, cube)
  released <- released_of(st, tables)
  z <- c(3, 0, 1, 2, 2, 3)
  rel <- as_release(z, st, mech_laplace(scale = 1), 5)
  fit <- crossing_fit(rel, model_table(~ x:y + z, prior_dirichlet(0.3)))
  log_gammas <- function(n, a) rowSums(lgamma(a + n) - lgamma(a))
  log_p <- -rowSums(lfactorial(tables)) + log_gammas(counted(tables, "x:y"), 0.3) + log_gammas(counted(tables, "z"), 0.6) +
    log_noise("absolute", 1, z, released)
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  at <- posterior::as_draws_array(denoise(fit))
  draw <- function(k) matrix(at[, , k], ncol = 2L)
  for (k in seq_len(ncol(released))) for (l in seq_len(k)) expect_same_mean(draw(k) * draw(l), sum(p * released[, k] * released[, l]))
})
