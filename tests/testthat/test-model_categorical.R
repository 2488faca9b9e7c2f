# Models of categorical variables: the hooks one by one, then the sampler against
# exact posteriors by enumeration.

bind <- function(model, statistic) internal("bind_model")(model, statistic)
stream <- function(a = 1, b = 2) internal("new_stream")(c(a, b))
prior_theta <- function(bound, draws, seed = 1) .Call(internal("ffi_model_prior"), bound$spec, stream(seed), as.integer(draws))$theta
draw_records <- function(bound, theta, n, from = stream(3)) .Call(internal("ffi_model_records"), bound$spec, theta, as.integer(n), from)
reported <- function(bound, theta) internal("reported")(bound, theta)

one <- function(levels) stat_counts(~ y, list(y = levels))
pair_levels <- list(y = c("a", "b"), x1 = c("u", "v"), x2 = c("r", "s", "t"))
pair <- stat_counts(~ y:x1 + y:x2, pair_levels)
many <- as.character(1:40) # more than are looked at one by one

discrete_cases <- list(
  bernoulli = list(model_bernoulli(prior = prior_beta(2, 5)), one(c("no", "yes"))),
  three = list(model_categorical(prior = prior_dirichlet(c(0.7, 2, 3))), one(letters[1:3])),
  five = list(flat_categorical("y"), one(letters[1:5])),
  many = list(model_categorical(prior = prior_dirichlet(0.5)), one(many)),
  bayes = list(model_naive_bayes("y", prior = prior_dirichlet(c(2, 1)), conditional = prior_dirichlet(1.5)), pair),
  by_class = list(model_naive_bayes("y", c("x2", "x1"), conditional = list(
    x1 = list(b = prior_dirichlet(c(4, 1)), a = prior_dirichlet(2)), x2 = prior_dirichlet(c(1, 2, 3)))), pair),
  class_known = list(model_naive_bayes("y", prior = fixed(c(0.3, 0.7))), pair),
  feature_known = list(model_naive_bayes("y", conditional = list(
    x1 = prior_dirichlet(2), x2 = fixed(rbind(c(0.1, 0.2, 0.7), c(0.5, 0.4, 0.1))))), pair),
  eight = list(model_naive_bayes("y", conditional = prior_dirichlet(1.5)),
               stat_counts(~ y:x1 + y:x2 + y:x3, list(y = letters[1:8], x1 = letters[1:2], x2 = letters[1:5], x3 = many[1:16]))),
  wide = list(model_naive_bayes("y", conditional = prior_dirichlet(0.8)),
              stat_counts(~ y:x1 + y:x2 + y:x3, list(y = many[1:20], x1 = many, x2 = letters[1:4], x3 = letters[1:7])))
)

# all rows of probabilities, also known ones: list of rows x levels matrices, class first
all_rows <- function(bound, theta) {
  probability <- bound$probability
  values <- reported(bound, theta)[1, ]
  probability[utils::tail(which(is.na(probability)), length(values))] <- values
  probability[is.na(probability)] <- 1 - sum(probability, na.rm = TRUE)
  levels <- lengths(bound$levels)
  rows <- c(1, rep(levels[1], length(levels) - 1))
  Map(function(p, l) matrix(p, ncol = l, byrow = TRUE), split(probability, rep(seq_along(levels), rows * levels)), levels)
}

# length of each row
row_lengths <- function(bound) {
  levels <- lengths(bound$levels)
  rep(levels, c(1, rep(levels[1], length(levels) - 1)))
}

# logit of each level against those after it
sticks_of <- function(p) {
  later <- rev(cumsum(rev(p)))[-1]
  utils::head(log(p), -1) - log(later)
}

# ---- hooks -------------------------------------------------------------------------

test_that("draws report probabilities by name, and bound_theta inverts them", {
  skip_on_cran() # takes long; `make test` runs it
  expected <- list(bernoulli = "prob[yes]", three = paste0("prob[", letters[1:3], "]"),
                   class_known = c("prob[x1=u|y=a]", "prob[x1=v|y=a]", "prob[x1=u|y=b]", "prob[x1=v|y=b]", "prob[x2=r|y=a]", "prob[x2=s|y=a]", "prob[x2=t|y=a]",
                                   "prob[x2=r|y=b]", "prob[x2=s|y=b]", "prob[x2=t|y=b]"),
                   feature_known = c("prob[y=a]", "prob[y=b]", "prob[x1=u|y=a]", "prob[x1=v|y=a]", "prob[x1=u|y=b]", "prob[x1=v|y=b]"))
  for (name in names(discrete_cases)) {
    bound <- bind(discrete_cases[[name]][[1]], discrete_cases[[name]][[2]])
    if (!is.null(expected[[name]])) expect_identical(bound$parameters, expected[[name]])
    expect_s3_class(bound, c("bound_categorical", "noiseaware_bound"), exact = FALSE)
    theta <- prior_theta(bound, 4)
    for (i in 1:4) {
      values <- reported(bound, theta[, i])[1, ]
      expect_identical(names(values), bound$parameters)
      expect_true(all(values > 0 & values < 1))
      for (rows in all_rows(bound, theta[, i])) expect_equal(rowSums(rows), rep(1, nrow(rows)))
      expect_equal(internal("bound_theta")(bound, rev(values)), theta[, i], tolerance = 1e-8)
    }
  }
  expect_identical(bind(discrete_cases$by_class[[1]], pair)$columns$name, c("y", "x2", "x1"))
})

test_that("known probabilities stay, and only unknown ones move", {
  for (name in c("class_known", "feature_known")) {
    bound <- bind(discrete_cases[[name]][[1]], pair)
    theta <- prior_theta(bound, 3)
    known <- setdiff(seq_len(nrow(theta)), bound$moves)
    expect_identical(known, if (name == "class_known") 1L else 4:7)
    expect_identical(theta[known, 2], theta[known, 1])
    expect_true(all(theta[bound$moves, 2] != theta[bound$moves, 1]))
    rows <- all_rows(bound, theta[, 1])
    if (name == "class_known") expect_equal(rows[[1]][1, ], c(0.3, 0.7))
    else expect_equal(rows[[3]], rbind(c(0.1, 0.2, 0.7), c(0.5, 0.4, 0.1)))
  }
})

test_that("prior draws have their beta marginals", {
  bound <- bind(discrete_cases$bernoulli[[1]], discrete_cases$bernoulli[[2]])
  expect_gt(ks.test(reported(bound, prior_theta(bound, 20000)), "pbeta", 2, 5)$p.value, 1e-6)
  bound <- bind(discrete_cases$three[[1]], discrete_cases$three[[2]])
  draws <- reported(bound, prior_theta(bound, 20000))
  for (l in 1:3) expect_gt(ks.test(draws[, l], "pbeta", c(0.7, 2, 3)[l], 5.7 - c(0.7, 2, 3)[l])$p.value, 1e-6)
  bound <- bind(discrete_cases$by_class[[1]], pair)
  draws <- reported(bound, prior_theta(bound, 20000))
  expect_gt(ks.test(draws[, "prob[y=b]"], "pbeta", 1, 1)$p.value, 1e-6)
  expect_gt(ks.test(draws[, "prob[x1=u|y=a]"], "pbeta", 2, 2)$p.value, 1e-6)
  expect_gt(ks.test(draws[, "prob[x1=u|y=b]"], "pbeta", 4, 1)$p.value, 1e-6)
  expect_gt(ks.test(draws[, "prob[x2=t|y=b]"], "pbeta", 3, 3)$p.value, 1e-6)
  expect_lt(abs(cor(draws[, "prob[x1=u|y=a]"], draws[, "prob[x1=u|y=b]"])), 0.04)
})

test_that("weights near zero underflow nowhere", {
  for (alpha in c(0.05, 1e-3, 1e-8)) {
    bound <- bind(model_categorical(prior = prior_dirichlet(alpha)), one(letters[1:4]))
    theta <- prior_theta(bound, 2000)
    expect_true(all(is.finite(theta)))
    expect_true(all(is.finite(.Call(internal("ffi_model_log_prior"), bound$spec, theta))))
    draws <- reported(bound, theta)
    expect_equal(rowSums(draws), rep(1, 2000))
    # nearly all of the mass on one level, each of them as often
    expect_gt(chisq.test(table(factor(max.col(draws), 1:4)))$p.value, 1e-6)
    records <- draw_records(bound, theta[, 1], 1000)$records
    expect_true(all(records %in% 0:3))
    expect_true(all(is.finite(internal("bound_theta")(bound, draws[1, ]))))
  }
  # with a small weight the log scale and the plain one agree in distribution
  bound <- bind(model_categorical(prior = prior_dirichlet(c(0.05, 0.5, 2))), one(letters[1:3]))
  draws <- reported(bound, prior_theta(bound, 20000))
  expect_gt(ks.test(draws[, 2], "pbeta", 0.5, 2.05)$p.value, 1e-6)
  expect_gt(ks.test(draws[, 3], "pbeta", 2, 0.55)$p.value, 1e-6)
})

test_that("the prior density in theta's coordinates is Dirichlet times the Jacobian", {
  for (case in discrete_cases[c("bernoulli", "three", "five", "bayes", "by_class", "class_known", "feature_known")]) {
    bound <- bind(case[[1]], case[[2]])
    levels <- lengths(bound$levels)
    unknown <- is.na(bound$probability)
    row <- rep(seq_along(row_lengths(bound)), row_lengths(bound))
    last <- !duplicated(row, fromLast = TRUE)
    all_of <- function(th) unlist(lapply(all_rows(bound, th), function(r) t(r)))
    theta <- prior_theta(bound, 5)
    expected <- apply(theta, 2, function(th) {
      free <- function(th) all_of(th)[unknown & !last]
      jacobian <- sapply(bound$moves, function(j) {
        h <- replace(numeric(length(th)), j, 1e-5)
        (free(th + h) - free(th - h)) / 2e-5
      })
      sum((bound$spec$fields$alpha[unknown] - 1) * log(all_of(th)[unknown])) + determinant(as.matrix(jacobian))$modulus
    })
    got <- .Call(internal("ffi_model_log_prior"), bound$spec, theta)
    expect_equal(diff(got), diff(as.numeric(expected)), tolerance = 1e-5)
  }
})

# expected probability of every combination of codes, as rows of `cells`
joint_distribution <- function(rows) {
  cells <- as.matrix(expand.grid(lapply(rows, function(r) seq_len(ncol(r)) - 1)))
  p <- rows[[1]][1, cells[, 1] + 1]
  for (k in seq_along(rows)[-1]) p <- p * rows[[k]][cbind(cells[, 1] + 1, cells[, k] + 1)]
  list(cells = cells, p = unname(p))
}

# p-value of observed records against a distribution; rare combinations are joined
fit_distribution <- function(records, distribution) {
  radix <- cumprod(c(1, apply(distribution$cells, 2, max) + 1))[seq_len(ncol(distribution$cells))]
  code <- function(x) drop(x %*% radix)
  counts <- tabulate(match(code(records), code(distribution$cells)), length(distribution$p))
  expect_identical(sum(counts[distribution$p == 0]), 0L)
  group <- ifelse(distribution$p * nrow(records) < 10, 0, seq_along(distribution$p))
  counts <- tapply(counts, group, sum)
  expected <- tapply(distribution$p, group, sum) * nrow(records)
  if (names(expected)[1] == "0" && expected[1] < 5) { # too rare, all of them together
    expect_lt(counts[1], 30)
    counts <- counts[-1]
    expected <- expected[-1]
  }
  if (length(expected) < 2) return(1)
  chisq.test(counts, p = expected / sum(expected))$p.value
}

test_that("records follow the model, moved ones too", {
  n <- 40000
  for (name in setdiff(names(discrete_cases), "wide")) {
    bound <- bind(discrete_cases[[name]][[1]], discrete_cases[[name]][[2]])
    theta <- prior_theta(bound, 2, seed = 5)
    distribution <- joint_distribution(all_rows(bound, theta[, 1]))
    drawn <- draw_records(bound, theta[, 1], n)
    expect_gt(fit_distribution(drawn$records, distribution), 1e-6)
    moved <- .Call(internal("ffi_model_move"), bound$spec, theta[, 1], theta[, 2], drawn$records, stream(9))
    expect_gt(fit_distribution(moved, joint_distribution(all_rows(bound, theta[, 2]))), 1e-6)
  }
  # tables that are searched
  bound <- bind(discrete_cases$wide[[1]], discrete_cases$wide[[2]])
  theta <- prior_theta(bound, 2, seed = 6)
  drawn <- draw_records(bound, theta[, 1], n)
  moved <- .Call(internal("ffi_model_move"), bound$spec, theta[, 1], theta[, 2], drawn$records, stream(9))
  for (k in 2:4) {
    expect_gt(fit_distribution(drawn$records[, c(1, k)], joint_distribution(all_rows(bound, theta[, 1])[c(1, k)])), 1e-6)
    expect_gt(fit_distribution(moved[, c(1, k)], joint_distribution(all_rows(bound, theta[, 2])[c(1, k)])), 1e-6)
  }
})

test_that("a level is exact beyond the bits that are looked at first", {
  skip_on_cran() # takes long; `make test` runs it
  bound <- bind(discrete_cases$bayes[[1]], pair)
  rows <- list(c(0.5, 0.5), c(5e-6, 1 - 5e-6), c(1, 2) / 3, c(1e-5, 6e-6, 1 - 1.6e-5), c(1, 3, 5) / 9)
  theta <- unlist(lapply(rows, sticks_of))
  n <- 1e6
  counts <- 0
  from <- stream(31)
  for (part in 1:8) {
    drawn <- draw_records(bound, theta, n, from)
    from <- drawn$state
    x <- drawn$records
    counts <- counts + c(sum(x[, 1] == 0 & x[, 2] == 0), sum(x[, 1] == 0 & x[, 3] == 0), sum(x[, 1] == 0 & x[, 3] == 1))
  }
  expected <- 8 * n * 0.5 * c(5e-6, 1e-5, 6e-6)
  expect_true(all(ppois(counts, expected) > 1e-6 & ppois(counts - 1, expected, lower.tail = FALSE) > 1e-6))
})

test_that("a move holds the innovations: levels go where their intervals lie", {
  overlap <- function(p, q) { # of the intervals of levels, from the last one up
    upper <- function(v) rev(cumsum(rev(v)))
    outer(seq_along(p), seq_along(q), function(i, j) {
      pmax(0, pmin(upper(p)[i], upper(q)[j]) - pmax(upper(p)[i] - p[i], upper(q)[j] - q[j]))
    })
  }
  n <- 40000
  for (name in c("bernoulli", "five", "many", "bayes", "feature_known")) {
    bound <- bind(discrete_cases[[name]][[1]], discrete_cases[[name]][[2]])
    theta <- prior_theta(bound, 2, seed = 8)
    drawn <- draw_records(bound, theta[, 1], n)$records
    move <- function(from, to, x, s = stream(4)) .Call(internal("ffi_model_move"), bound$spec, from, to, x, s)
    moved <- move(theta[, 1], theta[, 2], drawn)
    expect_identical(move(theta[, 1], theta[, 2], drawn), moved)
    expect_identical(move(theta[, 1], theta[, 1], drawn), drawn)
    old <- all_rows(bound, theta[, 1])
    new <- all_rows(bound, theta[, 2])
    flow <- overlap(old[[1]][1, ], new[[1]][1, ])
    distribution <- list(cells = as.matrix(expand.grid(seq_len(nrow(flow)) - 1, seq_len(ncol(flow)) - 1)), p = as.vector(flow))
    expect_gt(fit_distribution(cbind(drawn[, 1], moved[, 1]), distribution), 1e-6)
    if (ncol(drawn) == 1) next
    for (k in 2:3) for (from in 0:1) for (to in 0:1) {
      at <- drawn[, 1] == from & moved[, 1] == to
      flow <- overlap(old[[k]][from + 1, ], new[[k]][to + 1, ])
      distribution <- list(cells = as.matrix(expand.grid(seq_len(nrow(flow)) - 1, seq_len(ncol(flow)) - 1)), p = as.vector(flow))
      if (sum(at) > 50) expect_gt(fit_distribution(cbind(drawn[at, k], moved[at, k]), distribution), 1e-6)
    }
  }
})

test_that("a move of one feature's distribution leaves the other columns alone", {
  bound <- bind(discrete_cases$bayes[[1]], pair)
  theta <- prior_theta(bound, 1)
  drawn <- draw_records(bound, theta, 1000)$records
  for (at in list(2:3, 4:7)) {
    other <- theta
    other[at, ] <- other[at, ] + 1
    moved <- .Call(internal("ffi_model_move"), bound$spec, theta, other, drawn, stream(5))
    changed <- if (at[1] == 2) 2 else 3
    expect_identical(moved[, -changed], drawn[, -changed])
    expect_false(identical(moved[, changed], drawn[, changed]))
  }
})

test_that("a move keeps a level whose probability is below the resolution of a double", {
  bound <- bind(flat_categorical(), one(letters[1:3]))
  theta <- sticks_of(c(1e-20, 1e-19, 1 - 1.1e-19))
  for (level in 0:2) {
    moved <- .Call(internal("ffi_model_move"), bound$spec, theta, theta + 1, matrix(as.double(level), 100, 1), stream(1))
    expect_true(all(moved %in% 0:2))
  }
})

test_that("the complete-data statistic counts", {
  for (name in c("three", "many", "bayes", "by_class", "eight", "wide")) {
    bound <- bind(discrete_cases[[name]][[1]], discrete_cases[[name]][[2]])
    for (n in c(1, 3, 4, 257, 1000)) {
      x <- draw_records(bound, prior_theta(bound, 1), n)$records
      levels <- lengths(bound$levels)
      coded <- as.data.frame(Map(function(v, l) factor(x[, v], seq_len(l) - 1), seq_along(levels), levels))
      expected <- c(table(coded[1]), unlist(lapply(seq_along(levels)[-1], function(k) table(coded[c(k, 1)]))))
      added <- .Call(internal("ffi_model_complete"), bound$spec, x)
      expect_identical(added, unname(as.double(expected)))
    }
  }
})

test_that("theta given the records is the conjugate posterior", {
  bound <- bind(discrete_cases$by_class[[1]], pair)
  x <- draw_records(bound, prior_theta(bound, 1), 15)$records
  complete <- .Call(internal("ffi_model_complete"), bound$spec, x)
  start <- list(theta = prior_theta(bound, 1), state = stream(2))
  draws <- reported(bound, internal("gibbs")(bound, complete, 15, start, c(20000L, 1L), NULL)$theta)
  b <- sum(x[, 1] == 1)
  expect_gt(ks.test(draws[, "prob[y=b]"], "pbeta", 1 + b, 1 + 15 - b)$p.value, 1e-6)
  n_bt <- sum(x[, 1] == 1 & x[, 2] == 2)
  expect_gt(ks.test(draws[, "prob[x2=t|y=b]"], "pbeta", 3 + n_bt, 3 + b - n_bt)$p.value, 1e-6)
  n_au <- sum(x[, 1] == 0 & x[, 3] == 0)
  expect_gt(ks.test(draws[, "prob[x1=u|y=a]"], "pbeta", 2 + n_au, 2 + 15 - b - n_au)$p.value, 1e-6)
  # and what nonprivate_posterior() gives for the same records
  data <- internal("record_frame")(x, bound$columns, bound$levels)
  fit <- nonprivate_posterior(data, discrete_cases$by_class[[1]], pair, chains = 2, iter = 1800, seed = 1)
  expect_same_mean(parameter_draws(fit, "prob[x2=t|y=b]"), (3 + n_bt) / (6 + b))
})

# ---- exact posteriors --------------------------------------------------------------------

all_samplers <- function(release, model, iter = 3000) {
  lapply(list(plain = list(passes = 0), learned = list(), interwoven = list(passes = 2)), function(control) {
    sample_posterior(release, model, method = "augment", chains = 2, iter = iter, warmup = 1000, seed = 11, control = control)
  })
}

# a mixture of beta distributions: quantiles, mean; the grid is finer towards 0 and 1
beta_mixture <- function(weight, a, b) {
  distribution <- match(paste(a, b), paste(a, b))
  a <- a[sort(unique(distribution))]
  b <- b[sort(unique(distribution))]
  weight <- as.vector(rowsum(weight, distribution)) / sum(weight)
  half <- seq(0, 1, length.out = 501)^5 / 2
  grid <- c(half, rev(1 - half)[-1])
  cdf <- rowSums(mapply(function(w, a, b) w * pbeta(grid, a, b), weight, a, b))
  list(quantile = function(p) stats::approx(cdf / max(cdf), grid, p, ties = "ordered")$y, mean = sum(weight * a / (a + b)))
}

expect_mixture <- function(fits, name, weight, a, b) {
  exact <- beta_mixture(weight, a, b)
  for (fit in fits) expect_distribution(parameter_draws(fit, name), exact$quantile, exact$mean, probabilities = c(0.05, 0.5, 0.95))
}

# all tables of counts that add up to n
compositions <- function(n, levels) {
  grid <- as.matrix(expand.grid(rep(list(0:n), levels - 1)))
  grid <- grid[rowSums(grid) <= n, , drop = FALSE]
  unname(cbind(grid, n - rowSums(grid)))
}

expect_categorical <- function(release, model, alpha, names, fits = all_samplers(release, model)) {
  counts <- compositions(release$n, length(alpha))
  shape <- sweep(counts, 2, alpha, "+")
  log_weight <- rowSums(lgamma(shape) - lgamma(counts + 1)) +
    log_noise(release$mechanism$kernel, unname(release$scale), unname(release$value), counts)
  weight <- exp(log_weight - max(log_weight))
  for (l in which(!is.na(names))) {
    expect_mixture(fits, names[l], weight, shape[, l], rowSums(shape) - shape[, l])
    # the confidential counts themselves
    for (fit in fits) {
      expect_same_mean(posterior::extract_variable_matrix(denoise(fit), names(release$value)[l]), sum(weight * counts[, l]) / sum(weight))
    }
  }
}

noisy_counts <- list(
  inside = list(n = 20, two = c(13.6, 5.1), three = c(9.2, 1.7, 7.4)),
  negative = list(n = 20, two = c(24.3, -6.2), three = c(17.1, -3.8, 2.2))
)

for (mechanism in list(mech_laplace(epsilon = 1), mech_gaussian(sd = 2))) {
  for (name in names(noisy_counts)) {
    test_that(paste("Bernoulli and categorical,", format(mechanism), name), {
      z <- noisy_counts[[name]]
      rel <- as_release(z$two, one(c("no", "yes")), mechanism, z$n)
      expect_categorical(rel, model_bernoulli(prior = prior_beta(2, 3)), c(3, 2), c(NA, "prob[yes]"))
      rel <- as_release(z$three, one(letters[1:3]), mechanism, z$n)
      expect_categorical(rel, model_categorical(prior = prior_dirichlet(c(1, 0.5, 2))), c(1, 0.5, 2), paste0("prob[", letters[1:3], "]"))
    })
  }
}

test_that("a scale for each count, and one record", {
  skip_on_cran() # takes long; `make test` runs it
  rel <- as_release(c(9.2, 1.7, 7.4), one(letters[1:3]), mech_laplace(scale = c(1, 3, 0.5)), 20)
  expect_categorical(rel, flat_categorical(), c(1, 1, 1), paste0("prob[", letters[1:3], "]"))
  rel <- as_release(c(0.9, 0.4, -0.8), one(letters[1:3]), mech_gaussian(sd = 0.7), 1)
  expect_categorical(rel, flat_categorical(), c(1, 1, 1), paste0("prob[", letters[1:3], "]"))
})

# Posterior of naive Bayes by enumeration of all databases. `alpha`: list of rows
# x levels weights, or of known probabilities where `known`; class first.
expect_naive_bayes <- function(release, model, alpha, known = rep(FALSE, length(alpha)), fits = all_samplers(release, model)) {
  bound <- bind(model, release$statistic)
  levels <- lengths(bound$levels)
  cells <- as.matrix(expand.grid(lapply(levels, function(l) seq_len(l) - 1)))
  n <- release$n
  databases <- as.matrix(expand.grid(rep(list(seq_len(nrow(cells))), n)))
  parts <- internal("release_parts")(release)
  log_weight <- numeric(nrow(databases))
  for (p in parts) {
    each <- .Call(internal("ffi_stat_eval"), internal("statistic_spec")(p$statistic), cells[, p$statistic$columns$name, drop = FALSE])
    total <- Reduce(`+`, lapply(seq_len(n), function(i) each[databases[, i], , drop = FALSE]))
    log_weight <- log_weight + log_noise(p$mechanism$kernel, p$scale, p$value, total)
  }
  counts <- list() # per variable: databases x rows x levels
  for (v in seq_along(levels)) {
    rows <- nrow(alpha[[v]])
    counts[[v]] <- array(0, c(nrow(databases), rows, levels[v]))
    for (i in seq_len(n)) {
      code <- cells[databases[, i], , drop = FALSE]
      at <- cbind(seq_len(nrow(databases)), if (v == 1) 1 else code[, 1] + 1, code[, v] + 1)
      counts[[v]][at] <- counts[[v]][at] + 1
    }
    for (r in seq_len(rows)) {
      count <- matrix(counts[[v]][, r, ], nrow(databases))
      a <- alpha[[v]][r, ]
      log_weight <- log_weight + if (known[v]) drop(count %*% log(a)) else
        rowSums(lgamma(sweep(count, 2, a, "+"))) - lgamma(sum(a) + rowSums(count))
    }
  }
  weight <- exp(log_weight - max(log_weight))
  names <- internal("naive_bayes_names")(bound$levels)
  for (v in which(!known)) {
    for (r in seq_len(nrow(alpha[[v]]))) {
      shape <- sweep(matrix(counts[[v]][, r, ], nrow(databases)), 2, alpha[[v]][r, ], "+")
      l <- ncol(shape) # the last level of each row, and of the class
      expect_mixture(fits, names[[v]][(r - 1) * l + l], weight, shape[, l], rowSums(shape) - shape[, l])
    }
  }
}

both <- function(row) rbind(row, row)

for (mechanism in list(mech_laplace(scale = 0.6), mech_gaussian(sd = 0.6))) {
  test_that(paste("naive Bayes,", format(mechanism)), {
    model <- model_naive_bayes("y", prior = prior_dirichlet(c(2, 1)), conditional = prior_dirichlet(1.5))
    alpha <- list(rbind(c(2, 1)), both(c(1.5, 1.5)), both(c(1.5, 1.5, 1.5)))
    z <- c(1.3, -0.4, 0.9, 1.2, 1.4, -0.7, 0.2, 0.3, 1.8, 0.1)
    expect_naive_bayes(as_release(z, pair, mechanism, 3), model, alpha)
    expect_naive_bayes(as_release(z - 0.3, pair, mechanism, 1), model, alpha)
  })
}

test_that("naive Bayes with weights by class, with known probabilities", {
  skip_on_cran() # takes long; `make test` runs it
  z <- c(1.3, -0.4, 0.9, 1.2, 1.4, -0.7, 0.2, 0.3, 1.8, 0.1)
  rel <- as_release(z, pair, mech_laplace(scale = 0.8), 2)
  # the model's order of features is not the statistic's
  expect_naive_bayes(rel, discrete_cases$by_class[[1]], list(rbind(c(1, 1)), both(c(1, 2, 3)), rbind(c(2, 2), c(4, 1))))
  expect_naive_bayes(rel, discrete_cases$class_known[[1]], list(rbind(c(0.3, 0.7)), both(c(1, 1)), both(rep(2 / 3, 3))), c(TRUE, FALSE, FALSE))
  expect_naive_bayes(rel, discrete_cases$feature_known[[1]],
                     list(rbind(c(1, 1)), both(c(2, 2)), rbind(c(0.1, 0.2, 0.7), c(0.5, 0.4, 0.1))), c(FALSE, FALSE, TRUE))
})

test_that("naive Bayes from other margins, from scales that differ, from two statistics", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_naive_bayes("y", conditional = prior_dirichlet(2))
  alpha <- list(rbind(c(1, 1)), both(c(2, 2)), both(c(2, 2, 2)))
  single <- stat_counts(~ x2 + y, pair_levels[c("y", "x2")])
  three <- stat_counts(~ y:x1:x2, pair_levels)
  expect_naive_bayes(as_release(c(0.2, 1.1, 1.9, -0.6, 0.8, -0.1, 2.1, 0.3, 1.4, -1.2, 0.5, 0.6), three, mech_gaussian(sd = 0.8), 2), model, alpha)
  z <- c(1.3, -0.4, 0.9, 1.2, 1.4, -0.7, 0.2, 0.3, 1.8, 0.1)
  expect_naive_bayes(as_release(z, pair, mech_laplace(scale = seq(0.4, 1.3, 0.1)), 2), model, alpha)
  two <- as_release(c(z, 1.2, 0.1, 0.9, 1.4, 0.7), list(a = pair, b = single),
                    list(a = mech_laplace(scale = 0.9), b = mech_gaussian(sd = 0.7)), 2)
  expect_naive_bayes(two, model, alpha)
})

# ---- limits, running statistics, acceptance -------------------------------------------------

test_that("without noise it is the conjugate posterior, with endless noise the prior", {
  skip_on_cran() # takes long; `make test` runs it
  st <- one(letters[1:3])
  model <- model_categorical(prior = prior_dirichlet(c(1, 2, 3)))
  rel <- as_release(c(5, 0, 7), st, mech_laplace(scale = 0.02), 12)
  for (fit in all_samplers(rel, model, iter = 7200)) {
    for (l in 1:3) {
      shape <- c(1, 2, 3)[l] + c(5, 0, 7)[l]
      expect_distribution(parameter_draws(fit, paste0("prob[", letters[l], "]")), function(p) qbeta(p, shape, 18 - shape), shape / 18)
    }
    expect_equal(unique(round(matrix(denoise(fit), ncol = 3), 9)), rbind(c(5, 0, 7)))
  }
  model <- discrete_cases$by_class[[1]]
  rel <- as_release(rep(0, 10), pair, mech_gaussian(sd = 1e9), 6)
  for (fit in all_samplers(rel, model)) {
    expect_distribution(parameter_draws(fit, "prob[y=a]"), function(p) qbeta(p, 1, 1))
    expect_distribution(parameter_draws(fit, "prob[x2=t|y=a]"), function(p) qbeta(p, 3, 3))
    expect_distribution(parameter_draws(fit, "prob[x1=u|y=b]"), function(p) qbeta(p, 4, 1))
  }
})

# more margins than stay in registers: see `variants` in src/records/accept_pass.c
nine_levels <- c(list(y = letters[1:2]), stats::setNames(rep(list(c("u", "v")), 9), paste0("x", 1:9)))
nine_margins <- stat_counts(stats::reformulate(paste0("y:x", 1:9)), nine_levels)

test_that("nine margins of one record, enumerated", {
  model <- model_naive_bayes("y", prior = prior_dirichlet(c(1, 2)), conditional = prior_dirichlet(1.5))
  set.seed(5)
  z <- matrix(stats::rnorm(36, 0.3, 0.6), 4) # a column a margin: (a, u), (a, v), (b, u), (b, v)
  kernels <- list(function(r) abs(r) / 0.7, function(r) r^2 / (2 * 0.7^2))
  for (k in 1:2) {
    # given y the margins are independent; a column for each, a row for each level
    given <- function(y) vapply(1:9, function(j) vapply(1:2, function(x) exp(-sum(kernels[[k]](z[, j] - (seq_len(4) == y + x)))), 0), c(0, 0))
    weight <- c(1, 2) * c(prod(colMeans(given(0))), prod(colMeans(given(2))))
    exact <- weight[2] / sum(weight) * t(given(2)) / colSums(given(2))
    rel <- as_release(as.vector(z), nine_margins, if (k == 1) mech_laplace(scale = 0.7) else mech_gaussian(sd = 0.7), 1)
    fit <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 4400, warmup = 600, seed = 2, control = list(passes = 0))
    counts <- denoise(fit)
    for (j in c(1, 8, 9)) for (x in 1:2) expect_same_mean(counts[, , sprintf("y=b:x%d=%s", j, c("u", "v")[x])], exact[j, x])
  }
})

test_that("running residuals equal their recomputation after many updates", {
  levels <- list(y = letters[1:5], x1 = c("u", "v", "w"), x2 = c("u", "v", "w"))
  three <- stat_counts(~ y:x1 + y:x2 + x1, levels)
  model <- model_naive_bayes("y")
  set.seed(4)
  cases <- list(list(three, mech_laplace(epsilon = 3)), list(three, mech_gaussian(sd = 2)), list(three, mech_laplace(scale = runif(33, 1, 2))),
                list(nine_margins, mech_laplace(scale = 3)), list(nine_margins, mech_gaussian(sd = 3)))
  for (case in cases) {
    st <- case[[1]]
    rel <- simulate_release(model, st, case[[2]], n = 103)
    for (passes in list(0, 3)) {
      fit <- sample_posterior(rel, model, method = "augment", chains = 1, iter = 600, warmup = 100, seed = 3, control = list(passes = passes))
      state <- fit$chains[[1]]$state
      x <- matrix(state$x, ncol = length(st$levels))[1:103, ]
      total <- .Call(internal("ffi_stat_total"), internal("statistic_spec")(st), x)
      expect_equal(state$residual, unname((rel$value - total) / rel$scale), tolerance = 1e-9)
      expect_equal(as.numeric(posterior::subset_draws(denoise(fit), iteration = 500)), total, tolerance = 1e-9)
      expect_equal(sum(state$accepted) / (103 * 500), acceptance(fit)$mean)
      expect_lt(acceptance(fit)$mean, 1)
    }
  }
})

test_that("no acceptance probability falls below exp(-epsilon), and some come near", {
  set.seed(5)
  for (case in discrete_cases[c("bernoulli", "three", "bayes")]) {
    rel <- simulate_release(case[[1]], case[[2]], mech_laplace(epsilon = 2), n = 30)
    a <- acceptance(sample_posterior(rel, case[[1]], method = "augment", chains = 2, iter = 1800, warmup = 100, seed = 2))
    expect_equal(a$bound, rep(exp(-2), 2))
    expect_true(all(a$least >= a$bound * (1 - 1e-9)))
    expect_lt(min(a$least), exp(-1.5))
    expect_true(all(a$mean < 1) && all(a$lowest > 0))
  }
})

test_that("a run continues bit for bit, and fits simulate", {
  set.seed(6)
  model <- discrete_cases$bayes[[1]]
  rel <- simulate_release(model, pair, mech_laplace(epsilon = 1), n = 40)
  for (control in list(list(), list(passes = 0), list(passes = 2))) {
    whole <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 600, warmup = 300, seed = 7, control = control)
    half <- sample_posterior(rel, model, method = "augment", chains = 2, iter = 400, warmup = 300, seed = 7, control = control)
    expect_identical(extend(half, 200)$draws, whole$draws)
    expect_identical(extend(half, 200)$chains[[2]]$state, whole$chains[[2]]$state)
  }
  data <- simulate(whole, seed = 1)[[1]]
  expect_identical(lapply(data, levels), pair_levels)
  expect_identical(nrow(data), 40L)
})

# ---- what cannot be is refused -----------------------------------------------------------------

test_that("priors and arguments that cannot be are refused", {
  skip_on_cran() # takes long; `make test` runs it
  for (call in alist(
    prior_beta(0, 1), prior_beta(1, -1), prior_beta("a"), prior_beta(c(1, 2), 1), prior_beta(NA, 1), prior_beta(Inf, 1),
    model_bernoulli(prior = prior_dirichlet(1)), model_bernoulli(prior = 1), model_bernoulli(prior = fixed(0.5)),
    model_categorical(prior = prior_beta(1, 1)), model_categorical(prior = NULL),
    model_naive_bayes("y", prior = prior_beta(1, 1)), model_naive_bayes("y", conditional = 1), model_naive_bayes("y", conditional = list()),
    model_naive_bayes("y", conditional = list(prior_dirichlet(1))), model_naive_bayes("y", conditional = list(x = 1)),
    model_naive_bayes("y", conditional = list(x = list(a = fixed(1)))), model_naive_bayes("y", conditional = fixed(0.5)),
    model_naive_bayes("y", prior = fixed(c(0.5, 0.5)), conditional = list(x = fixed(diag(2))))
  )) expect_error(eval(call), class = "noiseaware_error_prior", label = deparse(call))
  for (call in alist(
    model_bernoulli(1), model_bernoulli(c("a", "b")), model_bernoulli(""), flat_categorical(NA_character_), model_naive_bayes(),
    model_naive_bayes(NULL), model_naive_bayes("y", 1), model_naive_bayes("y", character()), model_naive_bayes("y", c("x", "x")),
    model_naive_bayes("y", c("x", "y")), model_naive_bayes("y", c("x", NA))
  )) expect_error(eval(call), class = "noiseaware_error_argument", label = deparse(call))
})

test_that("models that do not fit the release are refused", {
  skip_on_cran()
  two <- one(c("no", "yes"))
  number <- stat_crossprod(y ~ 1, list(y = c(0, 2)))
  mixed <- stat_crossprod(y ~ g, list(y = c(0, 1), g = c("a", "b")))
  none <- stat_counts(~ y, list(y = c("a", "b")))
  variables <- list(list(model_bernoulli(), one(letters[1:3])), list(model_bernoulli("x"), two), list(model_bernoulli(), pair),
                    list(flat_categorical(), pair), list(flat_categorical("z"), two), list(flat_categorical(), number),
                    list(model_bernoulli(), number), list(model_naive_bayes("g"), mixed), list(model_naive_bayes("y"), none),
                    list(model_naive_bayes("z"), pair), list(model_naive_bayes("y", "x1"), pair),
                    list(model_naive_bayes("y", c("x1", "x2", "x3")), pair))
  for (case in variables) expect_error(bind(case[[1]], case[[2]]), class = "noiseaware_error_variables")
  nb <- function(...) model_naive_bayes("y", ...)
  priors <- list(list(model_categorical(prior = prior_dirichlet(c(1, 2))), one(letters[1:3])),
                 list(nb(prior = prior_dirichlet(c(1, 2, 3))), pair), list(nb(conditional = prior_dirichlet(c(1, 2))), pair),
                 list(nb(prior = fixed(0.5)), pair), list(nb(prior = fixed(c(0.5, 0.6))), pair), list(nb(prior = fixed(c(1.5, -0.5))), pair),
                 list(nb(conditional = list(x1 = prior_dirichlet(1))), pair),
                 list(nb(conditional = list(x1 = prior_dirichlet(1), x2 = prior_dirichlet(1), x3 = prior_dirichlet(1))), pair),
                 list(nb(conditional = list(x1 = prior_dirichlet(1), x2 = prior_dirichlet(c(1, 1)))), pair),
                 list(nb(conditional = list(x1 = list(a = prior_dirichlet(1)), x2 = prior_dirichlet(1))), pair),
                 list(nb(conditional = list(x1 = fixed(diag(3)), x2 = prior_dirichlet(1))), pair),
                 list(nb(conditional = list(x1 = fixed(matrix(0.4, 2, 2)), x2 = prior_dirichlet(1))), pair),
                 list(nb(conditional = list(x1 = fixed(list(a = 1)), x2 = prior_dirichlet(1))), pair))
  for (case in priors) expect_error(bind(case[[1]], case[[2]]), class = "noiseaware_error_prior")
  expect_error(bind(nb(conditional = list(x1 = prior_dirichlet(1), x2 = prior_dirichlet(c(1, 1)))), pair), "conditional\\$x2\\$alpha")
})

test_that("starting values that are no probabilities are refused", {
  rel <- as_release(c(12.2, 7.5, 1.1), one(letters[1:3]), mech_laplace(epsilon = 1), 20)
  start <- function(...) sample_posterior(rel, flat_categorical(), chains = 1, iter = 10, init = c(...))
  for (p in list(c(0.5, 0.5, 0.5), c(1.5, -0.5, 0), c(0, 0, 0))) {
    expect_error(start("prob[a]" = p[1], "prob[b]" = p[2], "prob[c]" = p[3]), class = "noiseaware_error_argument")
  }
  expect_error(start("prob[a]" = 1), class = "noiseaware_error_argument")
  expect_s3_class(suppressMessages(start("prob[c]" = 0, "prob[a]" = 0.25, "prob[b]" = 0.75)), "noiseaware_fit")
})

test_that("models print, and fits say what was modelled", {
  expect_identical(format(model_bernoulli()), c("<model> Bernoulli", "  variable  the release's", "  prob      beta(a = 1, b = 1)"))
  expect_identical(format(flat_categorical("y"))[2], "  variable  y")
  expect_identical(format(discrete_cases$by_class[[1]])[2:4],
                   c("  class        y, dirichlet(weights that sum to 2)", "  features     x2, x1",
                     "  conditional  x1 by class, x2 dirichlet(alpha = (1, 2, 3))"))
  describe <- function(case) internal("describe_model")(bind(case[[1]], case[[2]]))
  expect_identical(describe(discrete_cases$bernoulli), "Bernoulli y")
  expect_identical(describe(discrete_cases$three), "categorical y, 3 levels")
  expect_identical(describe(discrete_cases$bayes), "naive Bayes, x1, x2 given y")
})

test_that("default weights have the sum 2, and are at most 1", {
  alpha <- function(model, levels, formula) {
    weights <- internal("bind_model")(model, stat_counts(formula, levels))$spec$fields$alpha
    c(range(weights), sum(weights))
  }
  two <- list(x = c("a", "b"), y = c("u", "v", "w"), z = c("p", "q"))
  expect_equal(alpha(model_categorical(), two["y"], ~ y), c(2 / 3, 2 / 3, 2))
  expect_equal(alpha(model_categorical(), two["x"], ~ x), c(1, 1, 2))
  expect_equal(alpha(model_table(), two, ~ x:y:z), c(1 / 6, 1 / 6, 2))
  expect_equal(alpha(model_table(zeros = ~ x == "a" & y == "u"), two[1:2], ~ x:y), c(2 / 5, 2 / 5, 2))
  # the margin of the first clique, and of the second given y: each clique has the sum 2
  expect_equal(alpha(model_table(~ x:y + y:z), two, ~ x:y + y:z), c(1 / 3, 1 / 3, 4))
  # of the class, and of two features in each of two classes
  expect_equal(alpha(model_naive_bayes("x"), two, ~ x:y + x:z), c(2 / 3, 1, 2 + 2 * 2 + 2 * 2))
  # of the combinations of a life table's groups, and of a mixture's components
  life <- internal("bind_model")(model_survival(~ x), stat_survival(~ x + y, c(0, 1, 2), levels = two[1:2]))
  expect_equal(life$spec$fields$prior_share, rep(2 / 6, 6))
  expect_equal(covariate_mixture(4, prior_dirichlet())$weights, prior_dirichlet(1 / 2))
  expect_identical(format(model_table())[3], "  prob       dirichlet(weights that sum to 2)")
  expect_identical(format(model_table(~ x:y + y:z))[3], "  prob       hyper-Dirichlet, weights of each clique that sum to 2")
  expect_identical(format(prior_dirichlet(1)), "dirichlet(alpha = 1)")
  # hardly any noise: the means are (count + weight) / (n + 2)
  release <- as_release(c(7, 3, 0, 0, 1, 9), stat_counts(~ x:y, two[1:2]), mech_gaussian(sd = 0.01), n = 20)
  fit <- sample_posterior(release, model_table(), chains = 2, iter = 2000, seed = 1)
  for (k in 1:6) expect_same_mean(posterior::extract_variable_matrix(fit$draws, names(coef(fit))[k]), (c(7, 3, 0, 0, 1, 9)[k] + 1 / 3) / 22)
})
