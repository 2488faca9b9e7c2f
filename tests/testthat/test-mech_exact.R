# Exact numbers: against enumeration of all tables that have them, and refused where nothing keeps them.

# all tables of n records in `cells` cells
tables_of <- function(n, cells) {
  all <- as.matrix(expand.grid(rep(list(0:n), cells)))
  unname(all[rowSums(all) == n, , drop = FALSE])
}

# log probability of each table with the probabilities integrated out
log_dirichlet <- function(tables, alpha) {
  tables <- matrix(tables, ncol = length(alpha))
  n <- rowSums(tables)
  lgamma(sum(alpha)) - lgamma(sum(alpha) + n) + lgamma(n + 1) +
    rowSums(sweep(lgamma(sweep(tables, 2, alpha, "+")), 2, lgamma(alpha)) - lgamma(tables + 1))
}

four <- stat_counts(~ g, levels = list(g = c("a", "b", "c", "d")))
upper <- stat_linear(four, list(ab = c("g=a", "g=b")))
alpha4 <- c(0.7, 2, 1, 1.3)
z4 <- c(0.4, 2.9, 2.2, -0.6)

expect_counts <- function(fit, tables, weight, names) {
  p <- exp(weight - max(weight))
  p <- p / sum(p)
  draws <- denoise(fit)
  for (k in seq_along(names)) {
    of <- posterior::extract_variable_matrix(draws, names[k])
    if (length(unique(tables[, k])) == 1L) {
      expect_true(all(of == tables[1, k]))
      next
    }
    expect_same_mean(of, sum(p * tables[, k]))
    expect_same_mean(of^2, sum(p * tables[, k]^2))
  }
  p
}

test_that("one variable: every table that has the exact numbers, and no other", {
  skip_on_cran() # takes long; `make test` runs it
  all <- tables_of(6, 4)
  components <- paste0("counts: ", four$components)
  cases <- list(
    list(exact = upper, value = 4, keep = rowSums(all[, 1:2]) == 4, moves = FALSE),
    list(exact = stat_subset(four, "g=b"), value = 2, keep = all[, 2] == 2, moves = FALSE),
    list(exact = stat_subset(four, "g=b"), value = 2, keep = all[, 2] == 2, moves = TRUE),
    list(exact = stat_subset(four, c("g=a", "g=c")), value = c(0, 3), keep = all[, 1] == 0 & all[, 3] == 3, moves = TRUE),
    # the same given twice
    list(exact = stat_linear(four, list(ab = c("g=a", "g=b"), cd = c("g=c", "g=d"))), value = c(1, 5), keep = rowSums(all[, 1:2]) == 1, moves = FALSE)
  )
  for (case in cases) {
    rel <- as_release(list(law = stats::setNames(case$value, case$exact$components), counts = z4), list(law = case$exact, counts = four),
                      list(law = mech_exact(), counts = mech_laplace(scale = 1.4)), n = 6)
    draw <- function() sample_posterior(rel, model_categorical(prior = prior_dirichlet(alpha4)), chains = 2, iter = 4400, warmup = 600, seed = 1)
    fit <- if (case$moves) by_moves(draw()) else draw()
    expect_true(fit$exact)
    expect_identical(fit$method, "collapse")
    tables <- all[case$keep, ]
    weight <- log_dirichlet(tables, alpha4) - rowSums(abs(sweep(tables, 2, z4))) / 1.4
    p <- expect_counts(fit, tables, weight, components)
    expect_same_mean(parameter_draws(fit, "prob[b]"), sum(p * (2 + tables[, 2]) / 11))
    law <- posterior::as_draws_matrix(denoise(fit))[, paste0("law: ", case$exact$components)]
    expect_true(all(t(law) == case$value))
  }
})

test_that("a class with a feature: exact classes by moves, exact cells where all counts are drawn at once", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("a", "b", "c"), x = c("u", "v"))
  counts <- stat_counts(~ y:x, levels)
  all <- tables_of(5, 6) # y=a:x=u, y=a:x=v, y=b:x=u, ...
  classes <- cbind(rowSums(all[, 1:2]), rowSums(all[, 3:4]), rowSums(all[, 5:6]))
  prior <- log_dirichlet(classes, c(1, 2, 0.5)) + log_dirichlet(all[, 1:2], c(1, 1)) + log_dirichlet(all[, 3:4], c(1, 1)) + log_dirichlet(all[, 5:6], c(1, 1))
  z <- c(1.2, 0.1, 2.5, 0.7, -1, 1.5)
  of_class <- stat_subset(stat_counts(~ y, levels["y"]), "y=b")
  of_cell <- stat_subset(counts, "y=b:x=u")
  model <- model_naive_bayes("y", prior = prior_dirichlet(c(1, 2, 0.5)), conditional = list(x = prior_dirichlet(1)))
  released <- function(exact, value) {
    as_release(list(law = stats::setNames(value, exact$components), counts = z), list(law = exact, counts = counts),
               list(law = mech_exact(), counts = mech_gaussian(sd = 1.1)), n = 5)
  }
  ask <- function(rel) sample_posterior(rel, model, chains = 2, iter = 4400, warmup = 600, seed = 1)
  for (moves in c(FALSE, TRUE)) {
    fit <- if (moves) by_moves(ask(released(of_class, 3))) else ask(released(of_class, 3))
    keep <- classes[, 2] == 3
    expect_counts(fit, all[keep, ], (prior - rowSums(sweep(all, 2, z)^2) / 2 / 1.1^2)[keep], paste0("counts: ", counts$components))
  }
  keep <- all[, 3] == 2
  fit <- ask(released(of_cell, 2))
  expect_counts(fit, all[keep, ], (prior - rowSums(sweep(all, 2, z)^2) / 2 / 1.1^2)[keep], paste0("counts: ", counts$components))
  expect_error(by_moves(ask(released(of_cell, 2))), "exact numbers only of the class", class = "noiseaware_error_method")
})

test_that("an unknown number of records: births and deaths leave the exact numbers alone", {
  skip_on_cran() # takes long; `make test` runs it
  st <- list(law = upper, counts = four, size = stat_size())
  noise <- list(law = mech_exact(), counts = mech_laplace(scale = 1.4), size = mech_gaussian(sd = 2))
  rel <- as_release(list(law = c(ab = 3), counts = z4, size = 5), st, noise, n = NULL, neighbours = "add_remove")
  prior <- prior_n("poisson", mean = 5)
  fit <- sample_posterior(rel, model_categorical(prior = prior_dirichlet(alpha4)), prior_n = prior, chains = 2, iter = 11200, warmup = 1000, seed = 1)
  all <- do.call(rbind, lapply(3:22, function(n) {
    split <- expand.grid(a = 0:3, c = 0:(n - 3))
    cbind(split$a, 3 - split$a, split$c, n - 3 - split$c)
  }))
  n <- rowSums(all)
  weight <- log_dirichlet(all, alpha4) + dpois(n, 5, log = TRUE) - rowSums(abs(sweep(all, 2, z4))) / 1.4 - (n - 5)^2 / 8
  p <- expect_counts(fit, all, weight, paste0("counts: ", four$components))
  expect_same_mean(parameter_draws(fit, "n"), sum(p * n))
  expect_true(all(posterior::extract_variable_matrix(denoise(fit), "law: ab") == 3))
  short <- sample_posterior(rel, model_categorical(), prior_n = prior, chains = 1, iter = 300, warmup = 100, seed = 1)
  long <- sample_posterior(rel, model_categorical(), prior_n = prior, chains = 1, iter = 400, warmup = 100, seed = 1)
  expect_identical(extend(short, 100)$draws, long$draws)
  expect_error(sample_posterior(rel, model_categorical(), prior_n = prior_n("uniform", lower = 0, upper = 2)), class = "noiseaware_error_argument")
})

test_that("posteriors given exact numbers are calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  st <- list(law = upper, counts = four)
  noise <- list(law = mech_exact(), counts = mech_discrete_laplace(scale = 4))
  cal <- calibrate(model_categorical(), st, noise, n = 30, replicates = 90, chains = 1, iter = 900, warmup = 300, seed = 2)
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("releases are made, written, read and printed with what is outside of the guarantee", {
  data <- data.frame(g = factor(rep(c("a", "b", "c", "d"), c(3, 8, 5, 9)), c("a", "b", "c", "d")))
  st <- list(law = upper, counts = four)
  noise <- list(law = mech_exact(), counts = mech_laplace(epsilon = 1))
  account <- budget(epsilon = 1.5)
  rel <- release(data, st, noise, budget = account)
  expect_identical(unname(rel$value[1]), 11)
  expect_equal(privacy(rel)$epsilon, privacy(release(data, four, noise$counts))$epsilon)
  expect_equal(summary(account)$epsilon, privacy(rel)$epsilon)
  expect_identical(unname(noise_sd(rel)[1]), 0)
  shown <- paste(capture.output(print(rel)), collapse = "\n")
  expect_match(shown, "mechanism  law: exact numbers, without noise")
  expect_match(shown, "only for the noisy numbers: the exact ones \\(law\\) are outside it")
  expect_s3_class(plot(rel), "ggplot")
  path <- write_release(rel, withr::local_tempfile())
  expect_identical(read_release(path), rel)
  expect_error(release(data, four, mech_exact()), class = "noiseaware_error_mechanism")
  # all of them exact is what the records say
  alone <- as_release(c(3, 8, 5, 9), four, mech_exact(), n = 25)
  expect_match(paste(capture.output(print(alone)), collapse = "\n"), "guarantee  none: there is no noise")
  fit <- sample_posterior(alone, model_categorical(prior = prior_dirichlet(alpha4)), chains = 2, iter = 1800, seed = 1)
  expect_same_mean(parameter_draws(fit, "prob[b]"), 10 / 30)
  set.seed(1)
  expect_identical(unname(simulate_release(data, st, noise)$value[1]), 11)
  expect_identical(nrow(check_of(sample_posterior(rel, model_categorical(), chains = 1, iter = 200, seed = 1), draws = 5)), 5L)
  # a second release of the same records
  joined <- add_release(as_release(c(3, 8, 5, 9) + 0.5, four, mech_laplace(scale = 2), 25), as_release(c(ab = 11), upper, mech_exact(), 25))
  expect_true(all(posterior::extract_variable_matrix(denoise(sample_posterior(joined, model_categorical(), chains = 1, iter = 200, seed = 1)), "second: ab") == 11))
  expect_error(add_release(joined, as_release(c(ab = 12), upper, mech_exact(), 25)), "second: ab = 11 and third: ab = 12", class = "noiseaware_error_value")
})

# ---- totals of normal records ------------------------------------------------------------------

squares <- stat_sums(~ x + I(x^2), list(x = c(-1000, 1000)), rescale = FALSE)
nig <- model_normal(prior = prior_nig(0, 1, 3, 4))

# log density of a total and of the squares about the mean, of 12 records, the parameters integrated out
log_totals <- function(total, scatter, n = 12) {
  rate <- 4 + scatter / 2 + n * (total / n)^2 / (2 * (1 + n))
  ifelse(scatter > 0, (n - 3) / 2 * log(pmax(scatter, 1e-300)) - (3 + n / 2) * log(rate), -Inf)
}

squares_release <- function(exact, value, noise) {
  st <- list(law = stat_subset(squares, exact), noisy = stat_subset(squares, setdiff(squares$components, exact)))
  as_release(list(law = stats::setNames(value[1], exact), noisy = stats::setNames(value[2], setdiff(squares$components, exact))), st,
             list(law = mech_exact(), noisy = noise), n = 12)
}

test_that("an exact total or an exact sum of squares of normal records: quadrature", {
  cases <- list(
    # total 20, squares about 90
    list(exact = "x", value = c(20, 90), noise = mech_gaussian(sd = 30), grid = seq(20^2 / 12, 500, length.out = 20001),
         weight = function(g) log_totals(20, g - 20^2 / 12) - (g - 90)^2 / 2 / 30^2),
    list(exact = "x", value = c(20, 90), noise = mech_laplace(scale = 25), grid = seq(20^2 / 12, 700, length.out = 20001),
         weight = function(g) log_totals(20, g - 20^2 / 12) - abs(g - 90) / 25),
    # squares 90, total about 25
    list(exact = "x^2", value = c(90, 25), noise = mech_gaussian(sd = 9), grid = seq(-32.8, 32.8, length.out = 20001),
         weight = function(g) log_totals(g, 90 - g^2 / 12) - (g - 25)^2 / 2 / 9^2)
  )
  for (case in cases) {
    fit <- sample_posterior(squares_release(case$exact, case$value, case$noise), nig, chains = 2, iter = 2300, warmup = 600, seed = 1)
    expect_identical(fit$method, "collapse")
    weight <- case$weight(case$grid)
    density <- exp(weight - max(weight))
    noisy <- setdiff(squares$components, case$exact)
    draws <- posterior::extract_variable_matrix(denoise(fit), paste0("noisy: ", noisy))
    expect_distribution(draws, grid_quantile(case$grid, density))
    expect_true(all(posterior::extract_variable_matrix(denoise(fit), paste0("law: ", case$exact)) == case$value[1]))
    total <- if (case$exact == "x") 20 else case$grid
    expect_same_mean(parameter_draws(fit, "mean"), sum(density * total / 13) / sum(density))
  }
})

test_that("all totals exact: the posterior given the records", {
  rel <- as_release(c(20, 90), squares, mech_exact(), n = 12)
  fit <- sample_posterior(rel, nig, chains = 2, iter = 2300, warmup = 600, seed = 1)
  rate <- 4 + (90 - 20^2 / 12) / 2 + 12 * (20 / 12)^2 / 26
  expect_distribution(parameter_draws(fit, "mean"), function(p) 20 / 13 + qt(p, 18) * sqrt(rate / 9 / 13))
  expect_distribution(parameter_draws(fit, "sd"), function(p) sqrt(rate / qgamma(1 - p, 9)))
})

test_that("a regression with exact totals: the limit of small noise, and the density's gradient", {
  skip_on_cran()
  bounds <- list(y = c(-50, 50), x1 = c(-50, 50), x2 = c(-50, 50))
  st <- stat_crossprod(y ~ x1 + x2, bounds)
  set.seed(3)
  data <- data.frame(x1 = rnorm(60, 1), x2 = rnorm(60, -1, 2))
  data$y <- 2 + data$x1 - data$x2 + rnorm(60)
  value <- simulate_release(data, st, mech_gaussian(sd = 1e-9))$value
  law <- c("x2", "x2^2", "x1^2", "y")
  rest <- setdiff(st$components, law)
  # where bounds are far, chains under noise as small as below do not get near from all draws of the default prior
  model <- model_lm(prior = prior_nig(shape = 2, rate = 12.5^2), covariates = prior_niw(kappa = 1 / 4, scale = 12.5^2, df = 4))
  ask <- function(mechanism) {
    st2 <- list(law = stat_subset(st, law), noisy = stat_subset(st, rest))
    rel <- as_release(list(law = value[law], noisy = value[rest]), st2, list(law = mechanism, noisy = mech_gaussian(sd = 0.05)), n = 60)
    sample_posterior(rel, model, method = "collapse", chains = 2, iter = 2200, warmup = 900, seed = 1)
  }
  exact <- ask(mech_exact())
  expect_same_quantiles(exact$draws, ask(mech_gaussian(sd = 1e-4))$draws)
  expect_true(all(posterior::extract_variable_matrix(denoise(exact), "law: x1^2") == value["x1^2"]))
  problem <- exact$problem
  state <- internal("start_chain")(problem, exact$bound, c(1, 2), 1, NULL)
  internal("run_blocks")(problem, state, 50, list(warmup = 50, thin = 1), function(...) NULL)
  size <- 3 + 6
  q <- rep(c(0.3, -0.2, 0.1), 3)
  q[1:3] <- sqrt(60) * c(0.05, 0.02, -0.02)
  at <- function(q) .Call(internal("ffi_collapse_density"), problem, state, q)
  told <- at(q)
  expect_true(is.finite(told[1]))
  expect_equal(told[-1], difference_slopes(at, q, 1e-5), tolerance = 1e-4)
  # the complete-data statistic has what is exact
  c <- .Call(internal("ffi_collapse_complete"), problem, state)
  expect_true(all(is.finite(c)))
})

test_that("posteriors given exact totals of normal records are calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  st <- list(law = stat_subset(squares, "x^2"), noisy = stat_subset(squares, "x"))
  cal <- calibrate(nig, st, list(law = mech_exact(), noisy = mech_laplace(scale = 10)), n = 20, replicates = 90, method = "collapse",
                   chains = 1, iter = 1000, warmup = 300, seed = 2)
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("exact totals that no normal records have, or that cannot be kept, are refused", {
  ask <- function(st, value, n = 12, ...) sample_posterior(as_release(value, st, mech_exact(), n = n), nig, ...)
  expect_error(ask(squares, c(60, 90)), "No 12 different records", class = "noiseaware_error_value")
  expect_error(ask(stat_subset(squares, "x^2"), c(`x^2` = 90), n = 1), "more than 1 records", class = "noiseaware_error_method")
  expect_error(ask(stat_subset(squares, "x^2"), c(`x^2` = 90), n = NULL), "number is known", class = "noiseaware_error_method")
  two <- stat_crossprod(y ~ x, list(y = c(-5, 5), x = c(-5, 5)))
  product <- as_release(c(`y:x` = 3), two, mech_exact(), n = 20)
  expect_error(sample_posterior(product, model_lm()), "not of products of two", class = "noiseaware_error_method")
})

test_that("contradictions are told", {
  skip_on_cran()
  both <- function(first, second, n, one = upper, two = four) {
    as_release(list(a = first, b = second), list(a = one, b = two), list(a = mech_exact(), b = mech_exact()), n = n)
  }
  expect_error(both(c(ab = 60), c(10, 10, 20, 60), 100), "a: ab = 60, b: g=a = 10, and b: g=b = 10", class = "noiseaware_error_value")
  expect_error(both(c(ab = 20), c(10, 10, 20, 61), 100), "number of records = 100", class = "noiseaware_error_value")
  expect_error(both(c(ab = 5), c(`g=a` = 6), 100), "a: ab = 5 and b: g=a = 6", class = "noiseaware_error_value")
  expect_error(both(c(ab = 20), c(10, 10.5, 20, 60), NULL), "10.5: it must be a whole number", class = "noiseaware_error_value")
  expect_error(both(c(ab = 20), c(10, 10, 20, 60), NULL), "exact numbers determine it: 100", class = "noiseaware_error_argument")
  expect_error(as_release(c(ab = -1), upper, mech_exact(), n = NULL), "any records give from 0", class = "noiseaware_error_value")
  expect_error(as_release(c(ab = 101), upper, mech_exact(), n = 100), "100 records give from 0 to 100", class = "noiseaware_error_value")
  expect_error(both(c(n = 50), c(10, 10, 20, 60), 100, stat_size(), four), class = "noiseaware_error")
  # margins of two variables
  levels <- list(g = c("a", "b"), h = c("u", "v"))
  expect_error(both(c(`g=a` = 7), c(`g=a:h=u` = 5, `g=a:h=v` = 3), 20, stat_subset(stat_counts(~ g, levels["g"]), "g=a"), stat_counts(~ g:h, levels)),
               "a: g=a = 7, b: g=a:h=u = 5, and b: g=a:h=v = 3", class = "noiseaware_error_value")
  # of many numbers only that they do
  many <- stat_counts(~ g, levels = list(g = as.character(1:400)))
  expect_error(as_release(rep(2, 400), many, mech_exact(), n = 801), "must not contradict", class = "noiseaware_error_value")
  expect_s3_class(as_release(rep(2, 400), many, mech_exact(), n = 800), "noiseaware_release")
  expect_error(as_release(140, stat_sums(~ x, list(x = c(0, 10))), mech_exact(), n = 12), "from 0 to 120", class = "noiseaware_error_value")
})

test_that("methods that cannot keep exact numbers say so", {
  rel <- as_release(list(law = c(ab = 4), counts = z4), list(law = upper, counts = four), list(law = mech_exact(), counts = mech_laplace(scale = 1)), n = 6)
  for (method in c("augment", "clt")) {
    expect_error(sample_posterior(rel, model_categorical(), method = method), "cannot respect exact numbers", class = "noiseaware_error_method")
  }
  total <- as_release(14, stat_sums(~ x, list(x = c(0, 10))), mech_exact(), n = 12)
  expect_error(sample_posterior(total, model_poisson()), "cannot respect exact numbers", class = "noiseaware_error_method")
  bins <- stat_histogram(~ x, breaks = c(-Inf, 0, 1, Inf))
  counted <- as_release(list(law = c(`x=(-Inf,0)` = 3), counts = c(4, 3, 3)), list(law = stat_subset(bins, "x=(-Inf,0)"), counts = bins),
                        list(law = mech_exact(), counts = mech_laplace(scale = 1)), n = 10)
  told <- expect_error(sample_posterior(counted, model_normal()), "No method can respect the exact numbers", class = "noiseaware_error_method")
  expect_false(grepl("augment", conditionMessage(told)))
  # an exact number of records with noisy counts is n
  sized <- as_release(list(size = 10, counts = z4), list(size = stat_size(), counts = four), list(size = mech_exact(), counts = mech_laplace(scale = 1)),
                      n = 10, neighbours = "add_remove")
  fit <- sample_posterior(sized, model_categorical(), chains = 1, iter = 100, seed = 1)
  expect_true(all(posterior::extract_variable_matrix(denoise(fit), "size: n") == 10))
  # groups that the numbers leave open
  chain <- stat_linear(four, list(ab = c("g=a", "g=b"), bc = c("g=b", "g=c")))
  open <- as_release(list(law = c(ab = 4, bc = 3), counts = z4), list(law = chain, counts = four), list(law = mech_exact(), counts = mech_laplace(scale = 1)), n = 6)
  expect_error(sample_posterior(open, model_categorical()), "4 such groups, but 3 independent", class = "noiseaware_error_method")
  expect_error(as_release(1, stat_records(~ x, list(x = c(0, 1))), mech_exact(), n = 1), class = "noiseaware_error_mechanism")
  expect_error(mech_exact(3), class = "noiseaware_error_mechanism")
})
