# Method "collapse" for tables: against enumeration of all tables of a few records, against
# method "augment", and where single transfers would not do.

orders <- function(tables) lfactorial(rowSums(tables)) - rowSums(lfactorial(tables))
# log of the product of alpha, alpha + 1, ... of all records of a cell
log_urn <- function(counts, alpha) {
  counts <- as.matrix(counts)
  rowSums(lgamma(sweep(counts, 2L, alpha, `+`)) - rep(lgamma(rep_len(alpha, ncol(counts))), each = nrow(counts)))
}

# Log probabilities of tables under Dirichlet weights: of each record given those before it, times the number of their orders.
log_prior <- function(tables, alpha) {
  orders(tables) + log_urn(tables, alpha) - log_urn(rowSums(tables), sum(rep_len(alpha, ncol(tables))))
}

table_fit <- function(release, model = flat_table(), ..., iter = 1600, warmup = 500) {
  fit <- by_moves(sample_posterior(release, model, method = "collapse", chains = 2, iter = iter, warmup = warmup, seed = 1, ...))
  expect_identical(fit$problem$family, "table")
  expect_true(fit$exact)
  fit
}

# cells, and released components, by their means, squares and products; and probabilities
expect_tables <- function(fit, tables, log_p, released, alpha = 1) {
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  cells <- posterior::as_draws_array(denoise(fit, stats::reformulate(paste(names(fit$bound$levels), collapse = ":"))))
  cells <- cells[, , fit$bound$parameters |> sub(pattern = "^prob\\[(.*)\\]$", replacement = "\\1")]
  draw <- function(k) matrix(cells[, , k], ncol = 2L)
  for (k in seq_len(ncol(tables))) {
    if (stats::sd(draw(k)) > 0) expect_same_mean(draw(k), sum(p * tables[, k])) else expect_equal(draw(k)[1], sum(p * tables[, k]))
    for (l in seq_len(k)) if (stats::sd(draw(k) * draw(l)) > 0) expect_same_mean(draw(k) * draw(l), sum(p * tables[, k] * tables[, l]))
    alphas <- rep_len(alpha, ncol(tables))
    all <- sum(alphas) + rowSums(tables)
    expect_same_mean(parameter_draws(fit, fit$bound$parameters[k]), sum(p * (alphas[k] + tables[, k]) / all))
    expect_same_mean(parameter_draws(fit, fit$bound$parameters[k])^2, sum(p * (alphas[k] + tables[, k]) * (alphas[k] + tables[, k] + 1) / all / (all + 1)))
  }
  at <- posterior::as_draws_array(denoise(fit))
  for (k in which(apply(at, 3, stats::sd) > 0)) expect_same_mean(matrix(at[, , k], ncol = 2L), sum(p * released[, k]))
  invisible(p)
}

test_that("2 x 2 x 2 tables are enumerated, every kind of margin set and noise", {
  skip_on_cran()
  tables <- all_tables(6, 8)
  noise <- list(mech_laplace(scale = 1.5), mech_gaussian(sd = 1), mech_discrete_laplace(scale = 1), mech_discrete_gaussian(sd = 1.5),
                mech_laplace(scale = 0.4), mech_gaussian(sd = 0.5))
  for (k in seq_along(cube_statistics)) {
    st <- cube_statistics[[k]]
    released <- released_of(st, tables)
    set.seed(k)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    alpha <- list(1, c(0.3, 1, 2, 0.5, 1, 1, 4, 0.7))[[1L + k %% 2L]]
    rel <- as_release(unname(z), st, if (names(cube_statistics)[k] == "linear") noise[[6]] else noise[[k]], 6)
    log_p <- log_prior(tables, alpha) + log_noise(rel$mechanism$kernel, rel$scale, z, released)
    expect_tables(table_fit(rel, model_table(~ x:y:z, prior_dirichlet(alpha))), tables, log_p, released, alpha)
  }
})

test_that("parts with a mechanism each, and numbers that were hidden or rounded", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  one <- stat_counts(~ x:y, cube[1:2])
  two <- stat_counts(~ y:z, cube[2:3])
  three <- stat_counts(~ z:x, cube[c(3, 1)])
  noise <- list(a = mech_laplace(scale = 1), b = published(mech_gaussian(sd = 1), threshold = 2), c = published(mech_laplace(scale = 1.5), round = 2))
  rel <- as_release(list(a = c(2.2, 0.4, -1, 1), b = c(2.5, NA, NA, 3.1), c = c(2, 0, 2, 0)), list(a = one, b = two, c = three), noise, 5)
  released <- cbind(released_of(one, tables), released_of(two, tables), released_of(three, tables))
  log_p <- log_prior(tables, 1) - rowSums(abs(sweep(released[, 1:4], 2, c(2.2, 0.4, -1, 1))))
  log_p <- log_p + dnorm(2.5, released[, 5], log = TRUE) + dnorm(3.1, released[, 8], log = TRUE) +
    pnorm(2, released[, 6], log.p = TRUE) + pnorm(2, released[, 7], log.p = TRUE)
  cumulative <- function(q) ifelse(q < 0, exp(q / 1.5) / 2, 1 - exp(-q / 1.5) / 2)
  for (k in 9:12) {
    z <- c(2, 0, 2, 0)[k - 8]
    log_p <- log_p + log(cumulative(z + 1 - released[, k]) - cumulative(z - 1 - released[, k]))
  }
  expect_tables(table_fit(rel), tables, log_p, released)
})

test_that("structural zeros", {
  skip_on_cran()
  left_out <- function(cells) cells$x == "b" & cells$y == "a"
  possible <- cube_cells[!left_out(cube_cells), ]
  tables <- all_tables(6, 6)
  st <- cube_statistics$pairs
  released <- released_of(st, tables, possible)
  set.seed(1)
  z <- round(colMeans(released) + stats::rnorm(12))
  rel <- as_release(z, st, mech_gaussian(sd = 0.8), 6)
  log_p <- log_prior(tables, 0.6) + log_noise("squared", 0.8, z, released)
  told <- model_table(prior = prior_dirichlet(0.6), zeros = ~ x == "b" & y == "a")
  listed <- model_table(prior = prior_dirichlet(0.6), zeros = data.frame(y = "a", x = "b"))
  fit <- table_fit(rel, told)
  expect_tables(fit, tables, log_p, released, 0.6)
  expect_identical(table_fit(rel, listed)$draws, fit$draws)
  impossible <- posterior::extract_variable_matrix(denoise(fit, ~ x:y), "x=b:y=a")
  expect_true(all(impossible == 0))
})

# Only two tables agree with the margins but for noise that is nearly nothing: all eight cells change at once.
test_that("tables far apart are reached", {
  st <- cube_statistics$pairs
  rel <- as_release(rep(1, 12), st, mech_laplace(scale = 0.02), 4)
  fit <- table_fit(rel, iter = 3000)
  first <- matrix(denoise(fit, ~ x:y:z)[, , 1], ncol = 2L)
  expect_true(all(first %in% 0:1))
  expect_same_mean(first, 0.5)
  # a diagonal of three by three: margins of one record each, six tables
  three <- list(r = letters[1:3], s = letters[1:3])
  fit <- table_fit(as_release(rep(1, 6), stat_counts(~ r + s, three), mech_gaussian(sd = 0.02), 3), iter = 3000)
  cells <- denoise(fit, ~ r:s)
  expect_length(unique(apply(posterior::as_draws_matrix(cells), 1, paste, collapse = "")), 6L)
  for (k in 1:9) expect_same_mean(matrix(cells[, , k], ncol = 2L), 1 / 3)
})

test_that("\"augment\" and \"collapse\" agree", {
  skip_on_cran()
  levels <- list(g = c("u", "v", "w"), h = binary)
  st <- stat_counts(~ g:h + h, levels)
  set.seed(3)
  model <- model_table(prior = prior_dirichlet(c(2, 1, 0.5, 1, 3, 1)), zeros = NULL)
  rel <- simulate_release(model, st, mech_laplace(epsilon = 1), n = 60)
  fit <- table_fit(rel, model)
  slow <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 5500, warmup = 600, seed = 2)
  expect_same_quantiles(fit$draws, slow$draws)
  # and with cells that cannot be
  model <- flat_table(zeros = ~ g == "w" & h == "a")
  rel <- simulate_release(model, st, mech_gaussian(mu = 1), n = 60)
  expect_same_quantiles(table_fit(rel, model)$draws, sample_posterior(rel, model, method = "augment", chains = 2, iter = 5500, warmup = 600, seed = 2)$draws)
})

test_that("one variable is the categorical model", {
  st <- stat_counts(~ g, list(g = letters[1:4]))
  rel <- as_release(c(40, 3, 88, -2), st, mech_laplace(scale = 4), 130)
  fit <- table_fit(rel)
  same <- sample_posterior(rel, flat_categorical(), chains = 2, iter = 5500, warmup = 600, seed = 2)
  posterior::variables(same$draws) <- posterior::variables(fit$draws)
  expect_same_quantiles(fit$draws, same$draws)
})

test_that("large tables of many records: margins, ranges and sparse cells", {
  skip_on_cran()
  levels <- list(a = paste0("a", 1:3), b = paste0("b", 1:4), c = paste0("c", 1:4))
  st <- list(ab = stat_counts(~ a:b, levels[1:2]), c = stat_cumulative(stat_counts(~ c, levels["c"])), bc = stat_counts(~ b:c, levels[2:3]))
  noise <- list(ab = mech_gaussian(sd = 30), c = mech_laplace(scale = 20), bc = mech_discrete_gaussian(sd = 30))
  set.seed(5)
  rel <- simulate_release(model_table(prior = prior_dirichlet(0.2)), st, noise, n = 1e6)
  fit <- table_fit(rel, model_table(prior = prior_dirichlet(0.2)), iter = 800, warmup = 350)
  totals <- denoise(fit)
  expect_lt(max(posterior::summarise_draws(totals, "rhat")$rhat), 1.03)
  z <- (colMeans(posterior::as_draws_matrix(totals)) - rel$value) / internal("noise_sd")(rel)
  expect_lt(max(abs(z)), 5)
  d <- posterior::as_draws_matrix(denoise(fit, ~ a + c))
  expect_true(all(rowSums(d[, 1:3]) == 1e6) && all(d == round(d)) && all(d >= 0))
})

test_that("calibration: margins that overlap, and zeros", {
  skip_on_cran()
  levels <- list(g = c("u", "v", "w"), h = binary, k = binary)
  st <- stat_counts(~ g:h + h:k + g:k, levels)
  model <- model_table(prior = prior_dirichlet(0.8), zeros = ~ g == "w" & k == "b")
  cal <- calibrate(model, st, mech_laplace(epsilon = 1), n = 40, replicates = 36, chains = 1, iter = 450, warmup = 200, seed = 1, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

# ---- decomposable graphs -------------------------------------------------------------------

# Log probability of full tables: each record given those before it, clique by clique given what it shares (`parents`).
log_decomposable <- function(tables, cells, cliques, parents) {
  size <- vapply(cells, function(v) length(unique(v)), 0L)
  all <- max(vapply(cliques, function(c) prod(size[c]), 0))
  of <- function(v) {
    key <- if (length(v)) do.call(paste, unname(as.list(cells[v]))) else rep("", nrow(cells))
    log_urn(t(rowsum(t(tables), key)), all / prod(size[v]))
  }
  orders(tables) + Reduce(`+`, Map(function(clique, shared) of(clique) - of(shared), cliques, parents))
}

test_that("decomposable graphs are enumerated", {
  skip_on_cran()
  square <- c(cube, list(w = binary))
  four <- rev(expand.grid(w = binary, z = binary, y = binary, x = binary))
  cases <- list(
    chain = list(~ x:y + y:z, list(c("x", "y"), c("y", "z")), list(character(), "y"), cube_cells, 5, stat_counts(~ x:y + z:y + y, cube), mech_laplace(scale = 1)),
    apart = list(~ x + y:z, list("x", c("y", "z")), list(character(), character()), cube_cells, 5, stat_counts(~ x + z:y, cube), mech_gaussian(sd = 1)),
    three = list(~ x:y:z + y:z:w, list(c("x", "y", "z"), c("y", "z", "w")), list(character(), c("y", "z")), four, 3, stat_counts(~ x:y + w:y:z + z, square),
                 mech_discrete_laplace(scale = 0.8)),
    new = list(~ x:y + y:z:w, list(c("x", "y"), c("y", "z", "w")), list(character(), "y"), four, 3, stat_counts(~ x:y + w:z, square), mech_laplace(scale = 0.5)))
  for (case in cases) {
    cells <- case[[4]]
    tables <- all_tables(case[[5]], nrow(cells))
    st <- case[[6]]
    released <- released_of(st, tables, cells)
    set.seed(2)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    rel <- as_release(z, st, case[[7]], case[[5]])
    log_p <- log_decomposable(tables, cells, case[[2]], case[[3]]) + log_noise(rel$mechanism$kernel, rel$scale, z, released)
    p <- exp(log_p - max(log_p))
    p <- p / sum(p)
    fit <- table_fit(rel, flat_table(case[[1]]), iter = 1600)
    margins <- stat_counts(stats::as.formula(paste("~", paste(vapply(case[[2]], paste, "", collapse = ":"), collapse = "+"))), fit$bound$levels)
    counts <- released_of(margins, tables, cells)
    draws <- denoise(fit, stats::as.formula(margins$formula))
    draw <- function(k) matrix(draws[, , margins$components[k]], ncol = 2L)
    for (k in seq_len(ncol(counts))) {
      expect_same_mean(draw(k), sum(p * counts[, k]))
      for (l in seq_len(k)) if (stats::sd(draw(k) * draw(l)) > 0) expect_same_mean(draw(k) * draw(l), sum(p * counts[, k] * counts[, l]))
    }
    # the last part's probabilities given what it shares
    last <- length(case[[2]])
    size <- lengths(fit$bound$levels)
    shared <- case[[3]][[last]]
    all <- max(vapply(case[[2]], function(c) prod(size[c]), 0))
    child <- setdiff(case[[2]][[last]], shared)
    label <- function(v) paste0(v, "=a", collapse = ":")
    name <- if (length(shared)) sprintf("prob[%s|%s]", label(child), label(shared)) else sprintf("prob[%s]", label(child))
    is_a <- function(v) if (length(v)) rowSums(cells[v] == "a") == length(v) else rep(TRUE, nrow(cells))
    own <- all / prod(size[case[[2]][[last]]]) + tables %*% is_a(case[[2]][[last]])
    of <- all / prod(size[shared]) + tables %*% is_a(shared)
    expect_same_mean(parameter_draws(fit, name), sum(p * own / of))
  }
})

test_that("\"augment\" and \"collapse\" agree on decomposable graphs", {
  skip_on_cran()
  levels <- list(a = binary, b = letters[1:3], c = binary, d = letters[1:3])
  model <- flat_table(~ a:b:c + b:c:d)
  set.seed(3)
  rel <- simulate_release(model, stat_counts(~ a:b + c:d + b:d, levels), mech_laplace(epsilon = 1), n = 50)
  slow <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 5000, warmup = 600, seed = 2)
  expect_same_quantiles(table_fit(rel, model)$draws, slow$draws)
})

test_that("thirty variables on a tree", {
  skip_on_cran()
  levels <- stats::setNames(rep(list(binary), 30), paste0("v", 1:30))
  tree <- stats::reformulate(paste0("v", (2:30) %/% 2, ":v", 2:30))
  set.seed(4)
  rel <- simulate_release(flat_table(tree), stat_counts(tree, levels), mech_gaussian(mu = 1), n = 5000)
  fit <- table_fit(rel, flat_table(tree), iter = 1100)
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.03)
  # cliques agree on what they share
  d <- posterior::as_draws_matrix(denoise(fit, ~ v1:v2 + v2:v4))
  expect_equal(unname(unclass(d[, "v1=a:v2=b"] + d[, "v1=b:v2=b"])), unname(unclass(d[, "v2=b:v4=a"] + d[, "v2=b:v4=b"])), ignore_attr = TRUE)
})

test_that("calibration: a tree", {
  skip_on_cran()
  levels <- list(g = c("u", "v", "w"), h = binary, k = binary, m = letters[1:3])
  tree <- ~ g:h + h:k + h:m
  cal <- calibrate(flat_table(tree), stat_counts(tree, levels), mech_discrete_gaussian(rho = 0.5), n = 60, replicates = 36, chains = 1, iter = 450,
                   warmup = 200, seed = 1, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

# ---- the number of records is unknown --------------------------------------------------------

test_that("unknown n: every table of up to five records", {
  skip_on_cran()
  up_to <- function(prior, upper) {
    prior$upper <- upper
    prior
  }
  possible <- cube_cells[!(cube_cells$x == "b" & cube_cells$y == "a"), ]
  cases <- list(
    list("pairs", mech_laplace(scale = 1.5), mech_laplace(scale = 1), up_to(prior_n("poisson", mean = 3.5), 5), 0:5, function(n) dpois(n, 3.5, log = TRUE), cube_cells),
    list("whole", mech_gaussian(sd = 1.2), NULL, up_to(prior_n("negative_binomial", mean = 3, size = 1.5), 5), 0:5, function(n) dnbinom(n, 1.5, mu = 3, log = TRUE), cube_cells),
    list("ones", mech_discrete_gaussian(sd = 1), mech_gaussian(sd = 2), prior_n("uniform", lower = 2, upper = 5), 2:5, function(n) 0 * n, cube_cells),
    list("linear", mech_gaussian(sd = 0.8), mech_gaussian(sd = 1), prior_n("log_uniform", upper = 5), 1:5, function(n) -log(n), cube_cells),
    list("some", mech_discrete_laplace(scale = 1), NULL, prior_n("log_uniform", upper = 5), 1:5, function(n) -log(n), possible))
  for (k in seq_along(cases)) {
    case <- cases[[k]]
    cells <- case[[7]]
    zeros <- if (nrow(cells) < 8) ~ x == "b" & y == "a"
    alpha <- list(0.6, c(0.3, 1, 2, 0.5, 1, 1, 4, 0.7))[[1L + (k %in% 2:3)]]
    tables <- do.call(rbind, lapply(case[[5]], all_tables, nrow(cells)))
    n <- rowSums(tables)
    st <- cube_statistics[[case[[1]]]]
    released <- released_of(st, tables, cells)
    set.seed(k)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    rel <- if (is.null(case[[3]])) as_release(unname(z), st, case[[2]], NULL) else
      as_release(list(counts = unname(z), size = 4), list(counts = st, size = stat_size()), list(counts = case[[2]], size = case[[3]]), NULL,
                 neighbours = "add_remove")
    scale <- unname(rel$scale)
    log_p <- log_prior(tables, alpha) + case[[6]](n) + log_noise(case[[2]]$kernel, scale[seq_along(z)], z, released)
    if (!is.null(case[[3]])) {
      log_p <- log_p + log_noise(case[[3]]$kernel, scale[length(scale)], 4, cbind(n))
      released <- cbind(released, n)
    }
    fit <- table_fit(rel, model_table(~ x:y:z, prior_dirichlet(alpha), zeros = zeros), prior_n = case[[4]], iter = 1600)
    p <- expect_tables(fit, tables, log_p, released, alpha)
    expect_same_mean(parameter_draws(fit, "n"), sum(p * n))
    expect_same_mean(parameter_draws(fit, "n")^2, sum(p * n^2))
    expect_identical(as.vector(matrix(rowSums(posterior::as_draws_matrix(denoise(fit, ~ x:y:z))))), as.vector(posterior::as_draws_matrix(fit$draws)[, "n"]))
  }
})

test_that("unknown n: decomposable graphs are enumerated", {
  skip_on_cran()
  cases <- list(list(~ x:y + y:z, list(c("x", "y"), c("y", "z")), list(character(), "y"), ~ x:y + z:y),
                list(~ x + y:z, list("x", c("y", "z")), list(character(), character()), ~ x + z:y))
  tables <- do.call(rbind, lapply(1:5, all_tables, 8L))
  n <- rowSums(tables)
  for (case in cases) {
    st <- stat_counts(case[[4]], cube)
    released <- released_of(st, tables)
    set.seed(2)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    rel <- as_release(z, st, mech_laplace(scale = 1), NULL)
    prior <- prior_n("log_uniform", upper = 5)
    log_p <- log_decomposable(tables, cube_cells, case[[2]], case[[3]]) - log(n) + log_noise("absolute", 1, z, released)
    p <- exp(log_p - max(log_p))
    p <- p / sum(p)
    fit <- table_fit(rel, flat_table(case[[1]]), prior_n = prior, iter = 3200)
    draws <- denoise(fit)
    draw <- function(k) matrix(draws[, , st$components[k]], ncol = 2L)
    for (k in seq_len(ncol(released))) for (l in seq_len(k)) expect_same_mean(draw(k) * draw(l), sum(p * released[, k] * released[, l]))
    expect_same_mean(parameter_draws(fit, "n"), sum(p * n))
    at <- tables %*% (cube_cells$x == "a")
    all <- max(vapply(case[[2]], function(c) 2^length(c), 0))
    of_x <- if ("x" %in% names(fit$bound$levels)) grep("^prob\\[x=a(:y=[ab])?\\]$", fit$bound$parameters, value = TRUE)
    prob_x <- Reduce(`+`, lapply(of_x, function(name) parameter_draws(fit, name)))
    expect_same_mean(prob_x, sum(p * (all / 2 + at) / (all + n)))
  }
})

test_that("unknown n: what no release tells of is the prior", {
  skip_on_cran()
  st <- stat_counts(~ x + y, cube[1:2])
  rel <- as_release(c(30, 90, 10, 2), st, mech_gaussian(sd = 1e9), n = NULL)
  mass <- list(list(prior_n("poisson", mean = 70), 0:400, dpois(0:400, 70)), list(prior_n("negative_binomial", mean = 30, size = 2), 0:2000, dnbinom(0:2000, 2, mu = 30)),
               list(prior_n("uniform", lower = 5, upper = 40), 5:40, rep(1, 36)), list(prior_n("log_uniform", upper = 200), 1:200, 1 / (1:200)))
  for (case in mass) {
    p <- case[[3]] / sum(case[[3]])
    models <- list(flat_table(), flat_table(~ x + y), model_table(prior = prior_dirichlet(c(20, 80, 30, 10))))
    for (model in models[if (identical(case, mass[[1]])) 1:3 else 1]) {
      fit <- sample_posterior(rel, model, method = "collapse", prior_n = case[[1]], chains = 2, iter = 1500, warmup = 400, seed = 1)
      expect_sizes(parameter_draws(fit, "n"), case[[2]], p)
    }
  }
})

test_that("unknown n: calibration, restarts, prints and what follows from a fit", {
  skip_on_cran()
  levels <- list(g = c("u", "v", "w"), h = binary)
  st <- list(counts = stat_counts(~ g:h + h, levels), size = stat_size())
  noise <- list(counts = mech_laplace(scale = 3), size = mech_discrete_laplace(scale = 4))
  cal <- calibrate(flat_table(), st, noise, n = prior_n("negative_binomial", mean = 20, size = 3), replicates = 42, chains = 1, iter = 500, warmup = 200, seed = 3,
                   neighbours = "add_remove", method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_true("n" %in% cal$results$variable)
  expect_gt(min(summary(cal)$p.value), 1e-4)
  set.seed(1)
  rel <- simulate_release(flat_table(), st, noise, n = 80, neighbours = "add_remove")
  rel <- as_release(rel$value, rel$statistic, rel$mechanism, n = NULL, neighbours = "add_remove")
  ask <- function(iter) sample_posterior(rel, flat_table(), prior_n = prior_n("poisson", mean = 70), chains = 2, iter = iter, warmup = 300, seed = 1)
  short <- ask(500)
  expect_identical(extend(short, 300)$draws, ask(800)$draws)
  expect_output(print(short), "not known \\(n\\); prior poisson")
  expect_named(acceptance(short), c("chain", "mean", "pair", "swap", "contrast", "records"))
  expect_output(print(acceptance(short)), "of n: accepted 0")
  made <- synthesize(short, m = 5, of = "records", seed = 1)
  expect_true(all(vapply(made, nrow, 0L) %in% as.vector(posterior::extract_variable_matrix(short$draws, "n"))))
})

# ---- exact numbers -------------------------------------------------------------------------

with_law <- function(law, value, st, z, noise, n, ...) {
  as_release(list(law = stats::setNames(value, law$components), counts = z), list(law = law, counts = st), list(law = mech_exact(), counts = noise), n, ...)
}

test_that("exact numbers: every table that has them, and no other", {
  skip_on_cran()
  whole <- stat_counts(~ x:y:z, cube)
  pairs <- cube_statistics$pairs
  possible <- cube_cells[!(cube_cells$x == "b" & cube_cells$y == "a"), ]
  diagonal <- stat_linear(whole, list(diagonal = c("x=a:y=a:z=a", "x=b:y=b:z=b"), weighted = c(`x=a:y=a:z=a` = 1, `x=a:y=b:z=a` = 2)))
  a_table <- c(2, 0, 1, 1, 1, 0, 1, 2)
  cases <- list(
    list(law = stat_counts(~ x + y, cube[1:2]), st = whole, noise = mech_laplace(scale = 1.2)),
    list(law = stat_counts(~ x:y, cube[1:2]), st = pairs, noise = mech_gaussian(sd = 1)),
    list(law = pairs, st = whole, noise = mech_discrete_laplace(scale = 2)), # all eight cells change at once
    list(law = stat_subset(pairs, c("x=a:y=a", "x=a:z=b")), st = stat_counts(~ x + y + z, cube), noise = mech_gaussian(sd = 0.7)),
    list(law = diagonal, st = pairs, noise = mech_laplace(scale = 1)),
    list(law = stat_counts(~ x + z, cube[c(1, 3)]), st = pairs, noise = mech_gaussian(sd = 1), cells = possible),
    list(law = diagonal, st = pairs, noise = mech_laplace(scale = 1), prior_n = prior_n("log_uniform", upper = 6)),
    list(law = stat_subset(pairs, "x=b:y=a"), st = whole, noise = mech_gaussian(sd = 1.5), prior_n = prior_n("uniform", lower = 2, upper = 6)))
  for (k in seq_along(cases)) {
    case <- cases[[k]]
    cells <- if (is.null(case$cells)) cube_cells else case$cells
    sizes <- if (is.null(case$prior_n)) sum(a_table[seq_len(nrow(cells))]) else 2:6
    tables <- do.call(rbind, lapply(sizes, all_tables, nrow(cells)))
    alpha <- if (k %% 2L && nrow(cells) == 8L) c(0.3, 1, 2, 0.5, 1, 1, 4, 0.7) else 0.8
    law <- released_of(case$law, tables, cells)
    value <- drop(released_of(case$law, matrix(if (is.null(case$prior_n)) a_table[seq_len(nrow(cells))] else c(1, 0, 1, 0, 1, 0, 0, 0), 1), cells))
    keep <- rowSums(abs(sweep(law, 2, value))) == 0
    tables <- tables[keep, , drop = FALSE]
    released <- released_of(case$st, tables, cells)
    set.seed(k)
    z <- round(colMeans(released) + stats::rnorm(ncol(released)))
    n <- rowSums(tables)
    unknown <- !is.null(case$prior_n)
    rel <- with_law(case$law, value, case$st, unname(z), case$noise, if (!unknown) sizes, neighbours = if (unknown) "add_remove" else "replace")
    zeros <- if (nrow(cells) < 8L) ~ x == "b" & y == "a"
    log_p <- log_prior(tables, alpha) + log_noise(case$noise$kernel, utils::tail(unname(rel$scale), 1), z, released)
    if (inherits(case$prior_n, "prior_n_log_uniform")) log_p <- log_p - log(n)
    fit <- table_fit(rel, model_table(~ x:y:z, prior_dirichlet(alpha), zeros = zeros), prior_n = case$prior_n, iter = 1600)
    p <- expect_tables(fit, tables, log_p, cbind(law[keep, , drop = FALSE], released), alpha)
    if (unknown) expect_same_mean(parameter_draws(fit, "n"), sum(p * n))
    kept <- posterior::as_draws_matrix(denoise(fit))[, seq_along(value)]
    expect_true(all(t(kept) == value))
  }
})

test_that("exact numbers: where changes of four cells do not connect the tables", {
  skip_on_cran() # takes long; `make test` runs it
  # two tables of 2 x 3 x 3 have these pairs of margins; they differ in twelve cells (Diaconis & Sturmfels 1998)
  levels <- list(layer = binary, r = letters[1:3], s = letters[1:3])
  pairs <- stat_counts(~ layer:r + layer:s + r:s, levels)
  value <- c(rep(1, 12), 0, 1, 1, 1, 0, 1, 1, 1, 0)
  st <- stat_counts(~ layer:r:s, levels)
  rel <- with_law(pairs, value, st, rep(0.3, 18), mech_gaussian(sd = 5), 6)
  fit <- table_fit(rel, iter = 3000)
  cells <- posterior::as_draws_matrix(denoise(fit, ~ layer:r:s))
  expect_length(unique(apply(cells, 1, paste, collapse = "")), 2L)
  expect_same_mean(matrix(denoise(fit, ~ layer:r:s)[, , "layer=a:r=a:s=b"], ncol = 2L), 0.5)
  # margins of 3 x 3 with a diagonal that cannot be: one cycle or the other
  square <- levels[2:3]
  rel <- with_law(stat_counts(~ r + s, square), rep(2, 6), stat_counts(~ r:s, square), rep(1, 9), mech_laplace(scale = 2), 6)
  fit <- table_fit(rel, flat_table(~ r:s, zeros = ~ r == s), iter = 1600)
  k <- 0:2 # records of one cycle
  log_p <- -6 * abs(k - 1) / 2
  p <- exp(log_p) / sum(exp(log_p))
  multiplicity <- 1 # Dirichlet(1): all tables of n records have the same probability
  expect_same_mean(matrix(denoise(fit, ~ r:s)[, , "r=a:s=b"], ncol = 2L), sum(p * multiplicity * k))
  expect_same_mean(matrix(denoise(fit, ~ r:s)[, , "r=a:s=b"], ncol = 2L)^2, sum(p * multiplicity * k^2))
})

test_that("exact numbers: decomposable graphs", {
  skip_on_cran()
  tables <- all_tables(5, 8)
  law <- stat_counts(~ x + y, cube[1:2])
  value <- c(3, 2, 1, 4)
  tables <- tables[rowSums(abs(sweep(released_of(law, tables), 2, value))) == 0, ]
  st <- stat_counts(~ x:y + z:y, cube)
  released <- released_of(st, tables)
  z <- c(2, 1, 0, 3, -1, 2, 2, 1)
  rel <- with_law(law, value, st, z, mech_laplace(scale = 1), 5)
  log_p <- log_decomposable(tables, cube_cells, list(c("x", "y"), c("y", "z")), list(character(), "y")) + log_noise("absolute", 1, z, released)
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  fit <- table_fit(rel, flat_table(~ x:y + y:z), iter = 3200)
  draws <- denoise(fit)
  draw <- function(k) matrix(draws[, , paste0("counts: ", st$components[k])], ncol = 2L)
  for (k in 1:8) for (l in seq_len(k)) if (stats::sd(draw(k) * draw(l)) > 0) expect_same_mean(draw(k) * draw(l), sum(p * released[, k] * released[, l]))
})

test_that("exact numbers: larger tables, calibration, restarts, prints", {
  skip_on_cran()
  levels <- list(g = c("u", "v", "w"), h = binary, k = letters[1:3])
  st <- list(law = stat_counts(~ g + k, levels[c("g", "k")]), counts = stat_counts(~ g:h + h:k, levels))
  noise <- list(law = mech_exact(), counts = mech_laplace(scale = 2))
  cal <- calibrate(flat_table(~ g:h:k), st, noise, n = 30, replicates = 38, chains = 1, iter = 450, warmup = 200, seed = 2, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
  set.seed(1)
  wide <- list(a = 1:5, b = 1:6, c = 1:4)
  st <- list(law = stat_counts(~ a:b + c, wide), counts = stat_counts(~ b:c + a:c, wide))
  rel <- simulate_release(flat_table(), st, list(law = mech_exact(), counts = mech_gaussian(sd = 20)), n = 1e5)
  ask <- function(iter) suppressWarnings(sample_posterior(rel, flat_table(~ a:b:c), chains = 2, iter = iter, warmup = 200, seed = 1))
  fit <- ask(300)
  at <- posterior::as_draws_matrix(denoise(fit))
  exact <- startsWith(colnames(at), "law")
  expect_true(all(t(at[, exact]) == rel$value[exact]))
  expect_lt(max(abs((colMeans(at) - rel$value) / noise_sd(rel))[!exact]), 5)
  expect_identical(extend(fit, 20)$draws, ask(320)$draws)
  expect_named(acceptance(fit), c("chain", "mean", "pair", "swap", "contrast", "kept"))
  expect_output(print(acceptance(fit)), "made to keep exact numbers: accepted 0")
})

test_that("exact numbers that cannot be kept are refused", {
  whole <- stat_counts(~ x:y:z, cube)
  ask <- function(law, value, n = 6, model = flat_table(), ...) {
    sample_posterior(with_law(law, value, whole, rep(1, 8), mech_laplace(scale = 1), n, ...), model, method = "collapse", chains = 1, iter = 20)
  }
  fraction <- stat_linear(whole, list(half = c(`x=a:y=a:z=a` = 0.5, `x=b:y=b:z=b` = 1)))
  expect_error(ask(fraction, 1), "integer weights", class = "noiseaware_error_method")
  expect_error(ask(stat_subset(whole, "x=a:y=a:z=a"), 2, model = model_table(zeros = ~ x == "a" & y == "a")), "No table of counts was found", class = "noiseaware_error_value")
  old <- set_constant("most_exact_groups", 3L)
  expect_error(ask(stat_counts(~ x + y, cube[1:2]), c(3, 3, 2, 4)), "4 such groups", class = "noiseaware_error_method")
  set_constant("most_exact_groups", old)
  old <- set_constant("most_exact_cells", 7)
  expect_error(by_moves(ask(stat_counts(~ x:y:z, cube), c(0, 1, 1, 0, 1, 1, 1, 1))), "8 combinations", class = "noiseaware_error_method")
  set_constant("most_exact_cells", old)
  rel <- with_law(stat_subset(whole, "x=a:y=a:z=a"), 8, whole, rep(1, 8), mech_laplace(scale = 1), NULL, neighbours = "add_remove")
  expect_error(sample_posterior(rel, model_table(), prior_n = prior_n("uniform", lower = 0, upper = 7)), "must allow 8 records", class = "noiseaware_error_argument")
})

test_that("integer kernels are bases of all whole-number solutions", {
  set.seed(2)
  for (k in 1:20) {
    a <- matrix(sample(-2:2, 15, TRUE), 3L)
    kernel <- internal("integer_kernel")(a)
    expect_identical(ncol(kernel), 5L - qr(a)$rank)
    expect_true(all(a %*% kernel == 0))
    # a basis of the lattice: its maximal minors have no common divisor
    if (ncol(kernel) == 0L) next
    minors <- utils::combn(5L, ncol(kernel), function(rows) round(abs(det(kernel[rows, , drop = FALSE]))))
    divisor <- Reduce(function(x, y) { while (y > 0) { r <- x %% y; x <- y; y <- r }; x }, minors)
    expect_identical(divisor, 1)
  }
})

test_that("restarts, seeds, thin, init, prints", {
  skip_on_cran() # takes long; `make test` runs it
  st <- cube_statistics$nested
  set.seed(1)
  rel <- simulate_release(flat_table(), st, mech_laplace(epsilon = 1), n = 200)
  run <- function(...) sample_posterior(rel, flat_table(), method = "collapse", chains = 2, ...)
  expect_extends(function(iter) run(iter = iter, warmup = 200, seed = 7))
  half <- run(iter = 500, warmup = 300, seed = 7)
  expect_false(identical(run(iter = 500, warmup = 300, seed = 8)$draws, half$draws))
  thinned <- run(iter = 500, warmup = 300, seed = 7, thin = 2)
  expect_equal(as.numeric(thinned$draws), as.numeric(half$draws[seq(2, 200, 2), , ]))
  expect_identical(dim(denoise(thinned, ~ x:y)), c(100L, 2L, 4L))
  expect_identical(dim(denoise(extend(half, 50), ~ x:y + z)), c(250L, 2L, 6L))
  start <- stats::setNames(rep(1 / 8, 8), half$bound$parameters)
  expect_false(identical(run(iter = 500, warmup = 300, seed = 7, init = start)$draws, half$draws))
  expect_output(print(half), "table of z, x, y, saturated, 8 cells")
  expect_output(print(half), "moves the totals, not the records \\(exact\\)")
  expect_output(print(acceptance(half)), "transfers between two cells: accepted 0")
  expect_named(acceptance(half), c("chain", "mean", "pair", "swap", "contrast"))
})

test_that("margins that cross cliques are refused with the terms that they need", {
  # with more records than can be drawn one by one
  rel <- as_release(rep(1, 12), cube_statistics$pairs, mech_laplace(scale = 1), 1e7)
  expect_error(sample_posterior(rel, model_table(~ x:y + y:z), method = "collapse"), "variables of `x:z`.*10,000,000.*cover all of them: `[xyz]:[xyz]:[xyz]`", class = "noiseaware_error_method")
  size <- c(9, 16, 7, 15, 6, 5, 2, 2)
  levels <- stats::setNames(lapply(size, seq_len), paste0("v", 1:8))
  all_pairs <- stats::reformulate(utils::combn(names(levels), 2L, paste, collapse = ":"))
  st <- stat_counts(all_pairs, levels)
  wide <- as_release(rep(1, length(st$components)), st, mech_gaussian(sd = 1), 1e7)
  chain <- stats::reformulate(paste0("v", 1:7, ":v", 2:8))
  expect_error(sample_posterior(wide, model_table(chain), method = "collapse"), "1,814,400 cells \\(the limit is 100,000\\), and one of them has 8 variables",
               class = "noiseaware_error_method")
  # a cycle of five is closed by two chords
  cycle <- list(c("a", "b"), c("b", "c"), c("c", "d"), c("d", "e"), c("e", "a"))
  expect_identical(sort(lengths(internal("chordal_cliques")(cycle))), rep(3L, 3L))
  expect_error(model_table(stats::reformulate(vapply(internal("chordal_cliques")(cycle), paste, "", collapse = ":"))), NA)
})

test_that("what cannot be is refused", {
  skip_on_cran()
  st <- cube_statistics$pairs
  rel <- as_release(rep(1, 12), st, mech_laplace(scale = 1), 4)
  fit <- function(...) sample_posterior(rel, model_table(...), chains = 1, iter = 20)
  made <- suppressWarnings(sample_posterior(rel, flat_table(), chains = 1, iter = 20, seed = 1))
  other <- sample_posterior(rel, model_naive_bayes("x"), method = "augment", chains = 1, iter = 20, seed = 1) |> suppressWarnings()
  slow <- sample_posterior(rel, flat_table(), method = "augment", chains = 1, iter = 20, seed = 1) |> suppressWarnings()
  refusals("formula", expression(model_table(y ~ x), model_table("x"), model_table(~ x + foo(y)), model_table(~ x:y + y:z + z:x), model_table(~ x:y + y:z + z:w + w:x), model_table(~.), denoise(made, x ~ y)))
  refusals("prior", expression(model_table(prior = 1), model_table(prior = prior_beta()), fit(prior = prior_dirichlet(1:7)), model_table(~ x + y, prior_dirichlet(1:2))))
  refusals("variables", expression(fit(~ x:y:w), denoise(made, ~ x:w)))
  refusals("zeros", expression(model_table(zeros = "x"), model_table(zeros = data.frame()), model_table(zeros = x ~ y), fit(zeros = ~ x == "a" | x == "b"),
                               fit(zeros = ~ w == "a"), fit(zeros = ~ x), fit(zeros = data.frame(w = "a")), fit(zeros = data.frame(x = c("a", "c"))), model_table(~ x:y + z, zeros = ~ x == y)))
  refusals("argument", expression(denoise(other, ~ x), denoise(slow, ~ x), denoise(made, ~ x, 1)[1])[1:2])
  many <- stat_counts(~ v, list(v = 1:1000))
  wide <- as_release(rep(1, 2000), list(a = many, b = stat_counts(~ w, list(w = 1:1000))), list(a = mech_laplace(scale = 1), b = mech_laplace(scale = 1)), 50)
  refusals("size", expression(sample_posterior(wide, model_table(), chains = 1)))
  refusals("argument", expression(denoise(suppressWarnings(sample_posterior(as_release(c(2, 2, 2, 2), stat_counts(~ x + y, cube[1:2]), mech_laplace(scale = 1), 4),
                                                                            model_table(~ x + y), chains = 1, iter = 20)), ~ x:y)))
  refusals("method", expression(
    sample_posterior(as_release(rep(1, 12), st, mech_laplace(scale = 1), 1e7), model_table(~ x:y + y:z), method = "collapse"),
    sample_posterior(as_release(list(a = rep(1, 4), b = rep(0:1, 2)), list(a = stat_counts(~ x:y, cube[1:2]), b = stat_records(~ z, levels = cube["z"])),
                                list(a = mech_laplace(scale = 1), b = mech_randomized_response(epsilon = 1)), 4), model_table(), method = "collapse")))
  expect_output(print(flat_table(~ x * y, zeros = ~ x == "a")), "variables  x, y")
  expect_output(print(flat_table(~ x * y + y * z)), "cliques    x:y, y:z")
  expect_output(print(flat_table(zeros = data.frame(x = "a"))), "1 combination")
})

test_that("denoise() refuses margins that the fit has no counts of", {
  few <- function(...) suppressWarnings(sample_posterior(..., chains = 1, iter = 20, warmup = 10, seed = 1))
  st <- stat_counts(~ a:b + b:c, levels = list(a = c("p", "q"), b = c("u", "v"), c = c("k", "l")))
  release <- suppressMessages(as_release(c(10, 12, 9, 11, 12, 10, 9, 11), st, mech_laplace(scale = 2), n = 42))
  fit <- few(release, flat_table(~ a:b + b:c), method = "collapse")
  expect_identical(posterior::variables(denoise(fit, ~ a + b:c)), c("a=p", "a=q", "b=u:c=k", "b=u:c=l", "b=v:c=k", "b=v:c=l"))
  expect_error(denoise(fit, ~ a:c), "inside a clique of the model.*`a:b` and `b:c`", class = "noiseaware_error_argument")
  expect_error(denoise(fit, ~ a:z), "`z` is not", class = "noiseaware_error_variables")
  imputed <- few(release, flat_table(~ a:b + b:c), method = "augment")
  expect_error(denoise(imputed, ~ a), "\"augment\" does not store a table", class = "noiseaware_error_argument")
  plain <- few(as_release(c("a=p" = 40, "a=q" = 52), stat_counts(~ a, levels = list(a = c("p", "q"))), mech_laplace(scale = 2), n = 92), model_bernoulli())
  expect_error(denoise(plain, ~ a), "not `model_table\\(\\)`", class = "noiseaware_error_argument")
})
