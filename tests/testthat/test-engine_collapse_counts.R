# Method "collapse" for counts: against enumeration of all databases, against
# method "augment", at sizes that no record-level method reaches.

# independent draws or moves, whatever the size
counts_fit <- function(release, model, moves, ...) {
  sample <- function() sample_posterior(release, model, method = "collapse", ...)
  fit <- if (moves) by_moves(sample()) else sample()
  expect_identical(fit$problem$family, if (moves) "counts" else if (length(fit$bound$levels) == 1L) "row" else "recursion")
  expect_true(fit$exact)
  fit
}

# All sequences of n records of a class and features, their statistic and log
# probability under the prior: the predictive distribution of each record given those
# before it, so no formula of the package's is used. `alpha`: weights of the class,
# then for each feature a matrix with a row for each class; `known` likewise
# probabilities, or NULL.
enumerate_records <- function(n, levels, alpha, known) {
  types <- as.matrix(do.call(expand.grid, lapply(lengths(levels), seq_len)))
  sequences <- as.matrix(do.call(expand.grid, rep(list(seq_len(nrow(types))), n)))
  value <- function(i, v) types[sequences[, i], v]
  log_p <- numeric(nrow(sequences))
  for (i in seq_len(n)) {
    # all sequences at once; of the records before, those with the value of this one
    same <- function(v) vapply(seq_len(i - 1L), function(j) value(j, v) == value(i, v), logical(nrow(sequences)))
    y <- value(i, 1L)
    of_class <- same(1L)
    log_p <- log_p + log(if (is.null(known[[1]])) (alpha[[1]][y] + rowSums(of_class)) / (sum(alpha[[1]]) + i - 1) else known[[1]][y])
    for (v in seq_along(levels)[-1]) {
      cell <- cbind(y, value(i, v))
      log_p <- log_p + log(if (is.null(known[[v]])) (alpha[[v]][cell] + rowSums(of_class & same(v))) / (rowSums(alpha[[v]])[y] + rowSums(of_class)) else known[[v]][cell])
    }
  }
  list(types = types, sequences = sequences, log_p = log_p)
}

# released counts of every sequence, in the statistic's order
enumerated_counts <- function(statistic, all, levels) {
  counts <- lapply(statistic$margins, function(margin) {
    v <- match(margin, names(levels))
    cells <- as.matrix(rev(do.call(expand.grid, rev(lapply(lengths(levels[v]), seq_len))))) # last variable fastest
    vapply(seq_len(nrow(cells)), function(cell) {
      is_in <- apply(all$types[, v, drop = FALSE], 1, function(t) all(t == cells[cell, ]))
      rowSums(matrix(is_in[all$sequences], nrow(all$sequences)))
    }, numeric(nrow(all$sequences)))
  })
  do.call(cbind, counts)
}

check_enumerated <- function(fit, counts, weight) {
  p <- exp(weight - max(weight))
  p <- p / sum(p)
  d <- denoise(fit)
  for (k in seq_along(posterior::variables(d))) {
    draws <- posterior::extract_variable_matrix(d, posterior::variables(d)[k])
    for (value in unique(counts[, k])) {
      exact <- sum(p[counts[, k] == value])
      if (exact > 0.01 && exact < 0.99) expect_same_mean((draws == value) + 0, exact)
    }
    expect_true(all(draws %in% counts[p > 0, k]))
  }
  # a moment that sees how the counts hang together
  for (k in seq_len(ncol(counts))[-1]) {
    both <- posterior::extract_variable_matrix(d, posterior::variables(d)[1]) * posterior::extract_variable_matrix(d, posterior::variables(d)[k])
    if (stats::sd(both) > 0) expect_same_mean(both, sum(p * counts[, 1] * counts[, k]))
  }
  p
}

levels2 <- list(y = c("a", "b"), x1 = c("u", "v"), x2 = c("u", "v", "w"))
alpha2 <- list(c(1.5, 0.8), matrix(c(2, 0.6, 1, 3), 2), matrix(1.2, 2, 3))

bayes_model <- function(alpha, fixed_feature = NULL) {
  dirichlet <- function(rows) list(a = prior_dirichlet(rows[1, ]), b = prior_dirichlet(rows[2, ]))
  model_naive_bayes("y", prior = prior_dirichlet(alpha[[1]]),
                    conditional = list(x1 = if (is.null(fixed_feature)) dirichlet(alpha[[2]]) else fixed(fixed_feature), x2 = dirichlet(alpha[[3]])))
}

test_that("naive Bayes: every database of three records enumerated", {
  skip_on_cran() # takes long; `make test` runs it
  all <- enumerate_records(3, levels2, alpha2, list(NULL, NULL, NULL))
  known <- matrix(c(0.3, 0.9, 0.7, 0.1), 2)
  with_known <- enumerate_records(3, levels2, alpha2, list(NULL, known, NULL))
  cases <- list(
    list(~ y:x1 + y:x2, mech_laplace(scale = 1.5), FALSE), list(~ y:x1 + y:x2, mech_laplace(scale = 1.5), TRUE),
    list(~ x1:y + x2 + y, mech_gaussian(sd = 1.2), TRUE), list(~ y + x2:y, mech_discrete_gaussian(sd = 1), FALSE),
    list(~ x1 + x2, mech_discrete_laplace(scale = 1), TRUE)
  )
  for (case in cases) {
    for (fixed_feature in list(NULL, known)) {
      st <- stat_counts(case[[1]], levels2[unique(all.vars(case[[1]]))])
      if (!"x1" %in% names(st$levels) || !"y" %in% names(st$levels)) next
      these <- if (is.null(fixed_feature)) all else with_known
      set.seed(4)
      z <- round(runif(length(st$components), -1, 3))
      rel <- as_release(z, st, case[[2]], 3)
      model <- bayes_model(alpha2, fixed_feature)
      if (!"x2" %in% names(st$levels)) next
      counts <- enumerated_counts(st, these, levels2)
      kernel <- log_noise(case[[2]]$kernel, unname(rel$scale), unname(rel$value), counts)
      fit <- counts_fit(rel, model, case[[3]], chains = 2, iter = 2500, warmup = 600, seed = 1)
      p <- check_enumerated(fit, counts, these$log_p + kernel)
      # theta given the records, averaged over them
      b <- rowSums(matrix(these$types[these$sequences, 1] == 2, nrow(these$sequences)))
      expect_same_mean(parameter_draws(fit, "prob[y=b]"), sum(p * (0.8 + b) / (2.3 + 3)))
      w <- rowSums(matrix(these$types[these$sequences, 1] == 2 & these$types[these$sequences, 3] == 3, nrow(these$sequences)))
      expect_same_mean(parameter_draws(fit, "prob[x2=w|y=b]"), sum(p * (1.2 + w) / (3.6 + b)))
    }
  }
})

test_that("several releases of the same counts", {
  skip_on_cran() # takes long; `make test` runs it
  all <- enumerate_records(3, levels2, alpha2, list(NULL, NULL, NULL))
  st <- list(one = stat_counts(~ y:x1, levels2[1:2]), two = stat_counts(~ y:x2 + x1, levels2), three = stat_counts(~y, levels2[1]))
  mechanism <- list(one = mech_laplace(scale = 2), two = mech_gaussian(sd = 1.5), three = mech_laplace(scale = 1))
  set.seed(5)
  rel <- as_release(round(runif(14, 0, 2), 1), st, mechanism, 3)
  counts <- do.call(cbind, lapply(st, enumerated_counts, all, levels2))
  at <- list(1:4, 5:12, 13:14)
  kernel <- Reduce(`+`, Map(function(m, i) log_noise(m$kernel, unname(rel$scale[i]), unname(rel$value[i]), counts[, i]), mechanism, at))
  fit <- counts_fit(rel, bayes_model(alpha2), TRUE, chains = 2, iter = 2100, warmup = 400, seed = 1)
  check_enumerated(fit, counts, all$log_p + kernel)
  expect_identical(posterior::variables(denoise(fit)), names(rel$value))
})

test_that("categorical and Bernoulli: every table of twelve records", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 12
  for (moves in c(TRUE, FALSE)) {
    st <- stat_counts(~y, list(y = c("a", "b", "c")))
    alpha <- c(0.4, 2, 1)
    rel <- as_release(c(1, 8, 6), st, mech_laplace(scale = 2), n)
    counts <- as.matrix(subset(expand.grid(0:n, 0:n, 0:n), Var1 + Var2 + Var3 == n))
    weight <- rowSums(lgamma(t(alpha + t(counts))) - lgamma(counts + 1)) + log_noise("absolute", unname(rel$scale), unname(rel$value), counts)
    fit <- counts_fit(rel, model_categorical(prior = prior_dirichlet(alpha)), moves, chains = 2, iter = 4400, warmup = 600, seed = 2)
    p <- check_enumerated(fit, counts, weight)
    expect_same_mean(parameter_draws(fit, "prob[a]"), sum(p * (0.4 + counts[, 1]) / (3.4 + n)))
    st <- stat_counts(~y, list(y = c("a", "b")))
    rel <- as_release(c(11.4, 2.3), st, mech_gaussian(sd = 3), n)
    counts <- cbind(n:0, 0:n)
    weight <- lbeta(2 + counts[, 2], 1.5 + counts[, 1]) + lchoose(n, counts[, 1]) + log_noise("squared", unname(rel$scale), unname(rel$value), counts)
    fit <- counts_fit(rel, model_bernoulli(prior = prior_beta(2, 1.5)), moves, chains = 2, iter = 4400, warmup = 600, seed = 2)
    p <- check_enumerated(fit, counts, weight)
    theta <- seq(0, 1, length.out = 2001)
    density <- vapply(theta, function(t) sum(p * dbeta(t, 2 + counts[, 2], 1.5 + counts[, 1])), 0)
    expect_distribution(parameter_draws(fit, "prob[b]"), grid_quantile(theta, density))
  }
})

# what is far from the release has no weight that a double could hold
test_that("millions of records: the posterior of a count", {
  st <- stat_counts(~y, list(y = c("a", "b")))
  for (n in c(1e6, 1e9)) {
    for (mechanism in list(mech_laplace(scale = 40), mech_gaussian(sd = 60))) {
      rel <- as_release(c(0.7 * n + 30, 0.3 * n + 21), st, mechanism, n)
      k <- round(0.3 * n) + -1500:1500
      # (n - k + 1)^(b - 1) and k^(a - 1) within a part in n, lgamma() would lose the digits
      weight <- 29 * log(k + 14.5) + 1 * log(n - k + 1) + log_noise(mechanism$kernel, unname(rel$scale), unname(rel$value), cbind(n - k, k))
      p <- exp(weight - max(weight))
      p <- p / sum(p)
      for (moves in c(TRUE, FALSE)) {
        fit <- counts_fit(rel, model_bernoulli(prior = prior_beta(30, 2)), moves, chains = 2, iter = 4700, warmup = 1200, seed = 3)
        draws <- posterior::extract_variable_matrix(denoise(fit), "y=b")
        expect_distribution(draws, function(q) k[findInterval(q, cumsum(p)) + 1] - 0.5, sum(p * k), probabilities = numeric())
        expect_same_mean((draws - 0.3 * n)^2, sum(p * (k - 0.3 * n)^2))
        expect_equal(mean(parameter_draws(fit, "prob[b]")), 0.3, tolerance = 1e-3)
      }
    }
  }
})

# Laplace noise draws two cells afresh; with Gaussian noise they only walk.
test_that("joint-distribution test", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(32)
  model <- bayes_model(alpha2)
  st <- stat_counts(~ y:x1 + y:x2 + x2, levels2)
  prior <- prior_draws(model, st)
  for (case in list(list(12, mech_laplace(scale = 3)), list(40, mech_laplace(scale = 15)), list(30, mech_gaussian(sd = 8)))) {
    expect_prior(by_moves(geweke_totals(model, st, case[[2]], case[[1]], 2500)), prior)
  }
})

test_that("the posterior is that of imputed records", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("a", "b", "c"), x1 = c("u", "v"), x2 = c("u", "v", "w"))
  model <- model_naive_bayes("y", prior = prior_dirichlet(2), conditional = prior_dirichlet(2))
  set.seed(8)
  for (moves in c(TRUE, FALSE)) {
    st <- stat_counts(if (moves) ~ y:x1 + x2:y + x1 else ~ y:x1 + x2:y, levels)
    rel <- simulate_release(model, st, if (moves) mech_laplace(epsilon = 2) else mech_gaussian(mu = 1), n = 40)
    exact <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 3500, warmup = 400, seed = 1)
    fit <- sample_posterior(rel, model, method = "collapse", chains = 2, iter = 1600, warmup = 400, seed = 2)
    expect_identical(fit$problem$family, if (moves) "counts" else "recursion")
    for (name in posterior::variables(fit$draws)) {
      a <- parameter_draws(fit, name)
      b <- parameter_draws(exact, name)
      keep <- function(draws) as.vector(draws)[unique(round(seq(1, length(draws), length.out = posterior::ess_basic(draws) / 3)))]
      expect_gt(suppressWarnings(stats::ks.test(keep(a), keep(b)))$p.value, 1e-6, label = name)
      expect_agreement(a, b, spread = FALSE, label = name)
    }
  }
})

# Features known so well that a class can grow only in their proportions: moves
# that split their units over the cells.
test_that("known probabilities and wide noise", {
  n <- 1e5
  p <- rbind(c(0.2, 0.8), c(0.6, 0.4))
  levels <- list(y = c("a", "b"), x1 = c("u", "v"))
  st <- stat_counts(~ y:x1, levels)
  rel <- as_release(n * c(0.5 * p[1, ], 0.5 * p[2, ]), st, mech_gaussian(sd = 3e3), n)
  model <- model_naive_bayes("y", prior = prior_dirichlet(1), conditional = list(x1 = fixed(p)))
  fit <- sample_posterior(rel, model, method = "collapse", chains = 2, iter = 2900, warmup = 1200, seed = 1)
  share <- parameter_draws(fit, "prob[y=a]")
  # the class's share is what the four counts say of it: a normal distribution
  direction <- c(p[1, ], -p[2, ])
  sd <- 3e3 / n / sqrt(sum(direction^2))
  expect_lt(posterior::rhat(share), 1.02)
  expect_gt(posterior::ess_bulk(share), 500)
  expect_same_mean(share, 0.5)
  expect_same_mean((share - 0.5)^2 / sd^2, 1, errors = 6)
})

test_that("restarts, seeds, thin, init", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("a", "b"), x1 = c("u", "v", "w"))
  model <- model_naive_bayes("y")
  set.seed(1)
  for (n in c(30, 5000)) {
    rel <- simulate_release(model, stat_counts(~ y:x1, levels), mech_laplace(epsilon = 1), n = n)
    run <- function(...) sample_posterior(rel, model, method = "collapse", chains = 2, ...)
    whole <- run(iter = 800, warmup = 300, seed = 7)
    expect_identical(whole$problem$family, if (n == 30) "recursion" else "counts")
    half <- run(iter = 500, warmup = 300, seed = 7)
    expect_extends(function(iter) run(iter = iter, warmup = 200, seed = 7))
    expect_false(identical(run(iter = 500, warmup = 300, seed = 8)$draws, half$draws))
    expect_equal(as.numeric(run(iter = 500, warmup = 300, seed = 7, thin = 2)$draws), as.numeric(half$draws[seq(2, 200, 2), , ]))
    start <- c("prob[y=a]" = 0.9, "prob[y=b]" = 0.1, setNames(rep(1 / 3, 6), whole$bound$parameters[3:8]))
    if (n > 30) expect_false(identical(run(iter = 500, warmup = 300, seed = 7, init = start)$draws, half$draws)) else
      expect_message(run(iter = 500, warmup = 300, seed = 7, init = start), "not used", class = "noiseaware_message_init")
    expect_error(run(control = list(passes = 2)), "must be empty", class = "noiseaware_error_argument")
    expect_output(print(whole), "moves the totals, not the records \\(exact\\)")
    expect_output(print(acceptance(whole)), if (n == 30) "independent draws" else "within a class: accepted 0")
    expect_named(acceptance(whole), if (n == 30) c("chain", "mean") else c("chain", "mean", "within", "between"))
    # the table adds up, whole numbers
    d <- unclass(posterior::as_draws_matrix(denoise(whole)))
    expect_true(all(rowSums(d) == n) && all(d == round(d)) && all(d >= 0))
  }
})

test_that("what the table does not determine is refused", {
  model <- model_naive_bayes("y")
  refuse <- function(formula, statistic = stat_counts(formula, levels2)) {
    rel <- as_release(rep(1, length(statistic$components)), statistic, mech_laplace(epsilon = 1), 5)
    expect_error(sample_posterior(rel, model, method = "collapse"), "class crossed with at most one feature", class = "noiseaware_error_method")
  }
  refuse(~ y + x1:x2)
  refuse(~ y:x1:x2)
  both <- stat_records(~ y + u, levels = list(y = c("no", "yes"), u = c("k", "l")))
  expect_error(sample_posterior(as_release(c(0, 1, 1, 0), both, mech_randomized_response(epsilon = 1), 2), model_naive_bayes("y"), method = "collapse"),
               "supports answers by randomised response for one categorical variable", class = "noiseaware_error_method")
})

# ---- the number of records is unknown ----------------------------------------------

# all databases of `sizes` records, with the mass of n in their weights; `size` is released as well
unknown_cases <- function(sizes, log_mass, st, levels, alpha, known = vector("list", length(levels))) {
  parts <- lapply(seq_along(sizes), function(k) {
    n <- sizes[k]
    if (n == 0) return(list(counts = matrix(0, 1, length(st$components)), weight = log_mass[k], n = 0, b = 0))
    all <- enumerate_records(n, levels, alpha, known)
    list(counts = enumerated_counts(st, all, levels), weight = all$log_p + log_mass[k], n = rep(n, length(all$log_p)),
         b = rowSums(matrix(all$types[all$sequences, 1] == 2, nrow(all$sequences))))
  })
  list(counts = do.call(rbind, lapply(parts, `[[`, "counts")), weight = unlist(lapply(parts, `[[`, "weight")),
       n = unlist(lapply(parts, `[[`, "n")), b = unlist(lapply(parts, `[[`, "b")))
}

# the same prior up to 6 records
up_to_six <- function(prior) {
  prior$upper <- 6
  prior
}

test_that("unknown n: every database of up to six records enumerated", {
  skip_on_cran() # takes long; `make test` runs it
  two <- levels2[1:2]
  known <- list(NULL, matrix(c(0.3, 0.9, 0.7, 0.1), 2))
  model <- function(fixed_feature) {
    conditional <- if (fixed_feature) fixed(known[[2]]) else
      list(a = prior_dirichlet(alpha2[[2]][1, ]), b = prior_dirichlet(alpha2[[2]][2, ]))
    model_naive_bayes("y", prior = prior_dirichlet(alpha2[[1]]), conditional = list(x1 = conditional))
  }
  cases <- list(
    list(~ y:x1, mech_laplace(scale = 1.5), mech_laplace(scale = 1), up_to_six(prior_n("poisson", mean = 3.5)), 0:6, dpois(0:6, 3.5, log = TRUE), FALSE),
    list(~ y + x1, mech_gaussian(sd = 1.2), NULL, up_to_six(prior_n("negative_binomial", mean = 3, size = 1.5)), 0:6, dnbinom(0:6, 1.5, mu = 3, log = TRUE), FALSE),
    list(~ y + x1:y, mech_discrete_gaussian(sd = 1), mech_gaussian(sd = 2), prior_n("uniform", lower = 2, upper = 5), 2:5, numeric(4), FALSE),
    list(~ y:x1, mech_laplace(scale = 2), mech_discrete_laplace(scale = 2), prior_n("log_uniform", upper = 6), 1:6, -log(1:6), TRUE)
  )
  for (case in cases) {
    counted <- stat_counts(case[[1]], two)
    all <- unknown_cases(case[[5]], case[[6]], counted, two, alpha2[1:2], if (case[[7]]) known else list(NULL, NULL))
    set.seed(4)
    z <- round(runif(length(counted$components), -1, 3))
    sized <- !is.null(case[[3]])
    st <- if (sized) list(counted = counted, size = stat_size()) else counted
    noise <- if (sized) list(counted = case[[2]], size = case[[3]]) else case[[2]]
    rel <- as_release(if (sized) list(counted = z, size = 4) else z, st, noise, n = NULL, neighbours = "add_remove")
    kernel <- log_noise(case[[2]]$kernel, unname(rel$scale)[seq_along(z)], z, all$counts)
    if (sized) kernel <- kernel + log_noise(case[[3]]$kernel, tail(unname(rel$scale), 1), 4, cbind(all$n))
    fit <- sample_posterior(rel, model(case[[7]]), prior_n = case[[4]], chains = 2, iter = 2300, warmup = 600, seed = 1)
    expect_identical(fit$problem$family, "counts")
    expect_true(fit$exact)
    counts <- if (sized) cbind(all$counts, all$n) else all$counts
    p <- check_enumerated(fit, counts, all$weight + kernel)
    expect_same_mean(parameter_draws(fit, "n"), sum(p * all$n))
    expect_same_mean(parameter_draws(fit, "n")^2, sum(p * all$n^2))
    expect_same_mean(parameter_draws(fit, "prob[y=b]"), sum(p * (0.8 + all$b) / (2.3 + all$n)))
    if (sized) expect_identical(as.vector(posterior::extract_variable_matrix(denoise(fit), "size: n")), as.vector(parameter_draws(fit, "n")))
  }
})

test_that("unknown n: counts drawn again one by one, or all at once, against all tables", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ g, list(g = c("a", "b", "c")))
  alpha <- c(0.7, 1.5, 4)
  z <- c(2.3, 9.6, 15.2)
  all <- as.matrix(expand.grid(a = 0:45, b = 0:55, c = 0:60))
  n <- rowSums(all)
  given_n <- lgamma(n + 1) - lgamma(sum(alpha) + n) + rowSums(lgamma(t(alpha + t(all))) - lgamma(all + 1))
  cases <- list(
    list(noise = 1.5, size = NULL, prior = prior_n("poisson", mean = 20), log_mass = dpois(n, 20, log = TRUE)),
    list(noise = 2, size = 4, prior = prior_n("negative_binomial", mean = 12, size = 3), log_mass = dnbinom(n, 3, mu = 12, log = TRUE)),
    list(noise = 3, size = 30, prior = prior_n("uniform", lower = 20, upper = 30), log_mass = ifelse(n >= 20 & n <= 30, 0, -Inf))
  )
  for (case in cases) {
    sized <- !is.null(case$size)
    rel <- if (!sized) as_release(z, st, mech_laplace(scale = case$noise), n = NULL, neighbours = "add_remove") else
      as_release(list(counted = z, size = 24), list(counted = st, size = stat_size()), n = NULL, neighbours = "add_remove",
                 mechanism = list(counted = mech_laplace(scale = case$noise), size = mech_gaussian(sd = case$size)))
    weight <- case$log_mass + given_n + log_noise("absolute", case$noise, z, all)
    if (sized) weight <- weight - (24 - n)^2 / (2 * case$size^2)
    p <- exp(weight - max(weight))
    p <- p / sum(p)
    ask <- function() sample_posterior(rel, model_categorical(prior = prior_dirichlet(alpha)), prior_n = case$prior, chains = 2, iter = 1800, warmup = 400, seed = 1)
    for (fit in list(by_moves(ask()), ask())) {
      counted <- denoise(fit)
      expect_same_mean(parameter_draws(fit, "n"), sum(p * n))
      expect_same_mean(parameter_draws(fit, "n")^2, sum(p * n^2))
      for (k in 1:3) {
        count <- posterior::extract_variable_matrix(counted, posterior::variables(counted)[k])
        expect_same_mean(count, sum(p * all[, k]))
        expect_same_mean(count^2, sum(p * all[, k]^2))
      }
      expect_same_mean(parameter_draws(fit, "prob[c]"), sum(p * (alpha[3] + all[, 3]) / (sum(alpha) + n)))
    }
  }
})

test_that("unknown n: what no release tells of is the prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- stat_counts(~ y, levels2["y"])
  rel <- as_release(c(30, 90), st, mech_gaussian(sd = 1e9), n = NULL)
  mass <- list(list(prior_n("poisson", mean = 70), 0:400, dpois(0:400, 70)), list(prior_n("negative_binomial", mean = 30, size = 2), 0:2000, dnbinom(0:2000, 2, mu = 30)),
               list(prior_n("uniform", lower = 5, upper = 40), 5:40, rep(1, 36)), list(prior_n("log_uniform", upper = 200), 1:200, 1 / (1:200)))
  for (case in mass) {
    p <- case[[3]] / sum(case[[3]])
    # with nearly known probabilities the cells hang together: all of them move at once
    for (model in list(model_bernoulli(prior = prior_beta(2, 1)), model_categorical(prior = prior_dirichlet(c(2e4, 8e4))))) {
      fit <- by_moves(sample_posterior(rel, model, prior_n = case[[1]], chains = 2, iter = 2000, warmup = 400, seed = 1))
      expect_sizes(parameter_draws(fit, "n"), case[[2]], p)
    }
    set.seed(1)
    drawn <- replicate(4000, internal("draw_size")(case[[1]]))
    expect_true(all(drawn %in% case[[2]]))
    expect_lt(abs(mean(drawn) - sum(p * case[[2]])) / (sd(drawn) / sqrt(4000)), 5)
    expect_lt(abs(mean(log1p(drawn)) - sum(p * log1p(case[[2]]))) / (sd(log1p(drawn)) / sqrt(4000)), 5)
  }
})

test_that("unknown n: one cell alone leaves a tail like 1 / n^2, and default chains reach into it", {
  skip_on_cran()
  rel <- as_release(c("g=b" = 34.2), stat_counts(~ g, list(g = c("a", "b"))), mech_laplace(scale = 2), n = NULL, neighbours = "add_remove")
  fit <- sample_posterior(rel, model_bernoulli(), seed = 1)
  n <- posterior::extract_variable_matrix(fit$draws, "n")
  # p(n) is proportional to 1 / n, and the cell uniform on 0, ..., n given n
  size <- 1:2e6
  inside <- cumsum(exp(-abs(0:200 - 34.2) / 2))[pmin(size, 200) + 1]
  mass <- inside / (size * (size + 1))
  beyond <- inside[2e6] / 2e6
  for (p in c(0.5, 0.9, 0.975)) {
    at <- size[which(cumsum(mass) >= p * (sum(mass) + beyond))[1]]
    tail <- 1 - sum(mass[size <= at]) / (sum(mass) + beyond)
    above <- (n > at) + 0
    expect_lt(abs(mean(above) - tail) / posterior::mcse_mean(above), 5)
  }
})

test_that("unknown n: with hardly any noise on it the draws are those of n known", {
  counted <- stat_counts(~ y:x1, levels2[1:2])
  z <- c(21, 4, 40, 9)
  st <- list(counted = counted, size = stat_size())
  rel <- as_release(list(counted = z, size = 75), st, list(counted = mech_laplace(scale = 6), size = mech_gaussian(sd = 0.01)), n = NULL,
                    neighbours = "add_remove")
  unknown <- sample_posterior(rel, model_naive_bayes("y"), prior_n = prior_n("negative_binomial", mean = 50, size = 1), chains = 2, iter = 3800, warmup = 600, seed = 1)
  known <- sample_posterior(as_release(z, counted, mech_laplace(scale = 6), 75), model_naive_bayes("y"), chains = 2, iter = 3800, warmup = 600, seed = 2)
  expect_true(all(parameter_draws(unknown, "n") == 75))
  for (name in known$bound$parameters) {
    expect_agreement(parameter_draws(unknown, name), parameter_draws(known, name))
  }
})

test_that("unknown n: joint-distribution test by calibration, n drawn too", {
  skip_on_cran() # takes long; `make test` runs it
  st <- list(counted = stat_counts(~ y:x1 + y:x2, levels2), size = stat_size())
  noise <- list(counted = mech_laplace(scale = 3), size = mech_discrete_laplace(scale = 4))
  cal <- calibrate(model_naive_bayes("y"), st, noise, n = prior_n("negative_binomial", mean = 20, size = 3), replicates = 45, chains = 1, iter = 400,
                   warmup = 300, seed = 3, neighbours = "add_remove")
  expect_false(any(cal$runs$failed))
  expect_true("n" %in% cal$results$variable)
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("unknown n: restarts, prints, what follows from a fit", {
  skip_on_cran() # takes long; `make test` runs it
  st <- list(counted = stat_counts(~ y:x1, levels2[1:2]), size = stat_size())
  rel <- as_release(list(counted = c(21, 4, 40, 9), size = 80), st, list(counted = mech_laplace(scale = 6), size = mech_laplace(scale = 5)), n = NULL,
                    neighbours = "add_remove")
  ask <- function(iter) sample_posterior(rel, model_naive_bayes("y"), prior_n = prior_n("poisson", mean = 70), chains = 2, iter = iter, warmup = 300, seed = 1)
  short <- ask(500)
  expect_identical(extend(short, 300)$draws, ask(800)$draws)
  expect_identical(update(short, iter = 500, warmup = 300)$draws, short$draws)
  expect_identical(posterior::variables(short$draws), c(short$bound$parameters, "n"))
  shown <- paste(capture.output(print(short)), collapse = "\n")
  expect_match(shown, "not known \\(n\\); prior poisson\\(mean = 70\\)")
  expect_identical(nobs(short), NA_real_)
  expect_identical(names(coef(short)), short$bound$parameters)
  expect_true("n" %in% rownames(confint(short)))
  expect_true("records" %in% names(acceptance(short)))
  simulated <- simulate(short, 20, seed = 1)
  expect_true(length(unique(vapply(simulated, nrow, 0L))) > 5)
  expect_s3_class(plot(short), "ggplot")
  expect_true("n" %in% prior_data(short)$variable)
  expect_identical(nrow(check_of(short, draws = 5)), 5L)
})

test_that("unknown n: what must know it says so, and what can do without", {
  skip_on_cran() # takes long; `make test` runs it
  counted <- stat_counts(~ y, levels2["y"])
  rel <- as_release(c(30, 50), counted, mech_laplace(scale = 3), n = NULL)
  expect_error(sample_posterior(rel, model_bernoulli(), method = "naive"), "collapse", class = "noiseaware_error_method")
  own <- stat_custom(function(r) pmin(pmax(r[, "x"], 0), 1), "x", 1, list(x = c(0, 1)))
  expect_error(sample_posterior(as_release(4, own, mech_laplace(scale = 3), n = NULL), model_normal()), class = "noiseaware_error_method")
  known <- as_release(c(30, 50), counted, mech_laplace(scale = 3), n = 80)
  expect_error(sample_posterior(known, model_bernoulli(), prior_n = prior_n("poisson", mean = 80)), class = "noiseaware_error_argument")
  expect_error(sample_posterior(rel, model_bernoulli(), prior_n = 80), class = "noiseaware_error_argument")
  expect_error(calibrate(model_bernoulli(), counted, mech_laplace(scale = 3), n = prior_n("poisson", mean = 80), replicates = 1), class = "noiseaware_error_neighbours")
  expect_error(as_release(5, stat_size(), mech_laplace(scale = 1), n = NULL), class = "noiseaware_error_neighbours")
  expect_error(release(data.frame(y = "a"), stat_size(), mech_laplace(epsilon = 1)), class = "noiseaware_error_neighbours")
  expect_error(prior_n("poisson", mean = -1), class = "noiseaware_error_prior")
  expect_error(prior_n("uniform", lower = 5, upper = 4), class = "noiseaware_error_prior")
  expect_error(prior_n("uniform", lower = -1, upper = 4), class = "noiseaware_error_prior")
  expect_error(prior_n("negative_binomial", mean = 3), class = "noiseaware_error_prior")
  expect_error(prior_n("log_uniform", upper = 0), class = "noiseaware_error_prior")
  expect_error(prior_n("normal", mean = 3), "`distribution` must be one of", class = "noiseaware_error_prior")
  expect_identical(prior_n("poisson", 50), prior_n("poisson", mean = 50))
  expect_error(prior_n("poisson", lower = 50), "`lower` is not an argument of `prior_n\\(\"poisson\"\\)`", class = "noiseaware_error_prior")
  expect_error(prior_n("uniform", lower = 5), "needs `upper`", class = "noiseaware_error_prior")
  expect_identical(format(prior_n("uniform", lower = 5, upper = 7)), "uniform(lower = 5, upper = 7)")
})

test_that("unknown n: one cell published, and n beside it", {
  st <- list(one = stat_subset(stat_counts(~ y, levels2["y"]), "y=b"), size = stat_size())
  rel <- as_release(list(one = 4, size = 9), st, list(one = mech_laplace(scale = 2), size = mech_gaussian(sd = 3)), n = NULL, neighbours = "add_remove")
  fit <- sample_posterior(rel, model_bernoulli(prior = prior_beta(2, 1.5)), prior_n = prior_n("poisson", mean = 8), chains = 2, iter = 4400, warmup = 600, seed = 1)
  all <- subset(expand.grid(b = 0:60, n = 0:60), b <= n)
  weight <- dpois(all$n, 8, log = TRUE) + lchoose(all$n, all$b) + lbeta(2 + all$b, 1.5 + all$n - all$b) - abs(4 - all$b) / 2 - (9 - all$n)^2 / 18
  p <- check_enumerated(fit, as.matrix(all), weight)
  expect_same_mean(parameter_draws(fit, "prob[b]"), sum(p * (2 + all$b) / (3.5 + all$n)))
  expect_same_mean(parameter_draws(fit, "n")^2, sum(p * all$n^2))
})
