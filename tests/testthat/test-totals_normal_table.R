# Method "collapse" of a regression with factors: their latent cross-table. Against enumeration of
# all tables, against the records of "augment", gradients, limits, restarts, refusals.

table_bounds <- function(p = 0) {
  c(list(y = c(-60, 60)), if (p > 0) list(x = c(-40, 40)), list(g = c("a", "b", "c"), h = c("u", "v")))
}

table_statistic <- function(p = 0) {
  stat_crossprod(if (p > 0) y ~ x + g + h else y ~ g + h, table_bounds(p), rescale = FALSE)
}

# all ways to spread n over so many cells, a row each
all_tables <- function(n, cells) {
  if (cells == 1L) return(matrix(n))
  do.call(rbind, lapply(0:n, function(first) cbind(first, all_tables(n - first, cells - 1L), deparse.level = 0)))
}

test_that("with the coefficients known, the levels' probabilities are those of all tables enumerated", {
  skip_on_cran() # takes long; `make test` runs it
  n <- 6
  beta <- c(0.5, 2, -1, 1.5) # at a and u; b, c, v more
  sigma <- 0.8
  model <- model_lm(prior = fixed(beta), sigma = fixed(sigma), levels = prior_dirichlet(1.5), factors = "independent")
  cell <- expand.grid(g = 1:3, h = 1:2)
  dummies <- cbind(1, cell$g == 2, cell$g == 3, cell$h == 2)
  tables <- all_tables(n, 6L)
  alpha <- 1.5
  counts <- function(variable, level) rowSums(tables[, cell[[variable]] == level, drop = FALSE])
  of_factor <- function(variable, levels) rowSums(vapply(levels, function(l) lgamma(alpha + counts(variable, l)), double(nrow(tables))))
  log_prior <- of_factor("g", 1:3) + of_factor("h", 1:2) - rowSums(lgamma(tables + 1))

  # given the table every total but that of y^2 is normal
  st <- stat_subset(table_statistic(), c("y", "gb", "gc", "hv", "y:gb", "y:gc", "y:hv", "gb:hv", "gc:hv"))
  sd <- 1.2
  columns <- cbind(1, cell$g == 2, cell$g == 3, cell$h == 2) # what y is multiplied by: 1, gb, gc, hv
  set.seed(4)
  for (released in list(c(y = 6, gb = 2, gc = 1, hv = 3, `y:gb` = 5, `y:gc` = -1, `y:hv` = 5, `gb:hv` = 1, `gc:hv` = 1),
                        c(y = 3, gb = -1, gc = 0, hv = 0.5, `y:gb` = 0, `y:gc` = 0, `y:hv` = 1, `gb:hv` = 0.2, `gc:hv` = -1))) {
    log_likelihood <- apply(tables, 1L, function(count) {
      of_counts <- c(sum(count * columns[, 2]), sum(count * columns[, 3]), sum(count * columns[, 4]),
                     sum(count * columns[, 2] * columns[, 4]), sum(count * columns[, 3] * columns[, 4]))
      gram <- crossprod(columns, count * columns)
      cov <- sigma^2 * gram + diag(sd^2, 4)
      log_normal(released[c("y", "y:gb", "y:gc", "y:hv")], drop(gram %*% beta), cov) +
        sum(dnorm(released[c("gb", "gc", "hv", "gb:hv", "gc:hv")], of_counts, sd, log = TRUE))
    })
    weight <- exp(log_prior + log_likelihood - max(log_prior + log_likelihood))
    weight <- weight / sum(weight)
    fit <- sample_posterior(as_release(released, st, mech_gaussian(sd = sd), n), model, method = "collapse", chains = 2, iter = 4000, warmup = 800, seed = 1)
    told <- posterior::summarise_draws(fit$draws, "mean", "mcse_mean", "rhat")
    expect_lt(max(told$rhat), 1.01)
    exact <- c(vapply(1:3, function(l) sum(weight * (alpha + counts("g", l))) / (3 * alpha + n), 0),
               vapply(1:2, function(l) sum(weight * (alpha + counts("h", l))) / (2 * alpha + n), 0))
    expect_lt(max(abs(told$mean - exact) / told$mcse_mean), 4)
    # the cross-table itself, not its margins alone
    imputed <- posterior::summarise_draws(denoise(fit), "mean", "mcse_mean")
    imputed <- imputed[imputed$variable == "gb:hv", ]
    expect_lt(abs(imputed$mean - sum(weight * tables[, 5])) / imputed$mcse_mean, 4)
  }
})

test_that("with all unknown it agrees with the records of \"augment\", empty levels included", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_lm(prior = prior_nig(0.3, 1, 4, 5), covariates = prior_niw(0.2, 2, 2, 5))
  student <- model_lm(prior = prior_student_t(6, 0, 0.8), sigma = prior_half_t(6, 1.5), covariates = prior_niw(0.2, 2, 2, 5))
  set.seed(2)
  data <- data.frame(y = rnorm(40, 1, 1.5), x = rnorm(40), g = factor(sample(c("a", "b", "c"), 40, TRUE, c(0.7, 0.2, 0.1)), c("a", "b", "c")),
                     h = factor(sample(c("u", "v"), 40, TRUE), c("u", "v")))
  for (case in list(list(7, mech_laplace(scale = 3), model), list(40, mech_gaussian(sd = 4), model), list(20, mech_gaussian(sd = 2), student))) {
    rel <- simulate_release(data[seq_len(case[[1]]), ], table_statistic(1), case[[2]])
    fit <- sample_posterior(rel, case[[3]], method = "collapse", chains = 2, iter = 3000, warmup = 800, seed = 2)
    records <- sample_posterior(rel, case[[3]], method = "augment", chains = 2, iter = 1400, warmup = 600, seed = 3)
    expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.02)
    expect_same_quantiles(fit$draws, records$draws)
  }
})

test_that("under wide noise a square does not tell whether a level is empty", {
  skip_on_cran()
  model <- model_lm(prior = prior_normal(0, 0.1), sigma = fixed(1), covariates = fixed(list(mean = 0, cov = matrix(1))), levels = prior_dirichlet(1),
                    factors = "independent")
  statistic <- table_statistic(1)
  rel <- as_release(stats::setNames(numeric(length(statistic$components)), statistic$components), statistic, mech_laplace(scale = 1000), n = 7)
  totals <- denoise(suppressMessages(suppressWarnings(sample_posterior(rel, model, method = "collapse", chains = 2, iter = 3000, warmup = 800, seed = 1))))
  empty <- posterior::extract_variable_matrix(totals, "gb") < 0.5
  away <- posterior::extract_variable_matrix(totals, "x^2") - 7 # its mean, whatever the table
  for (values in list(empty - exp(lbeta(1, 9) - lbeta(1, 2)), away * empty, away * !empty)) {
    expect_lt(abs(mean(values)) / posterior::mcse_mean(values), 4)
  }
})

test_that("gradients are those of finite differences, with levels that have no records", {
  set.seed(5)
  for (n in c(7, 30)) {
    data <- data.frame(y = rnorm(n), x = rnorm(n), g = factor(rep("a", n), c("a", "b", "c")), h = factor(rep(c("u", "v"), length.out = n), c("u", "v")))
    rel <- simulate_release(data, table_statistic(1), mech_gaussian(sd = 1e-3))
    setup <- list(bound = internal("bind_model")(model_lm(prior = prior_nig()), rel$statistic), words = c(1, 2))
    setup$problem <- internal("collapse_problem")(rel, setup$bound)
    state <- internal("start_chain")(setup$problem, setup$bound, setup$words, 1, NULL)
    # then scale and tries of three kinds of moves of two factors, and the units of idle rows
    table <- utils::tail(state$store, 6 + 12 + 2)[1:6]
    expect_equal(sum(table), n)
    size <- 4 * 2 + 3
    q <- state$store[seq_len(size)] + 0.01
    density <- function(q) .Call(internal("ffi_collapse_density"), setup$problem, state, q)
    slope <- vapply(seq_along(q), function(j) {
      h <- 1e-5 * (seq_along(q) == j)
      (density(q + h)[1] - density(q - h)[1]) / 2e-5
    }, 0)
    expect_equal(density(q)[-1], slope, tolerance = 1e-5)
  }
})

test_that("with next to no noise the posterior is that of the data", {
  skip_on_cran() # takes long; `make test` runs it
  data <- data.frame(y = MASS::birthwt$bwt / 1000, x = (MASS::birthwt$lwt - 130) / 30, g = factor(c("a", "b", "c")[MASS::birthwt$race]),
                     h = factor(c("u", "v")[MASS::birthwt$smoke + 1]))
  set.seed(4) # with others a chain may move a level's coefficient slowly, and then warns
  rel <- simulate_release(data, table_statistic(1), mech_gaussian(sd = 0.02))
  model <- model_lm(prior = prior_nig(shape = 2, rate = 10^2), covariates = prior_niw(kappa = 1, scale = (40 / 3)^2, df = 3), factors = "independent")
  fit <- sample_posterior(rel, model, method = "collapse", chains = 2, iter = 2200, warmup = 1000, seed = 2)
  known <- nonprivate_posterior(data, model, table_statistic(1), iter = 2400, seed = 1)
  told <- posterior::summarise_draws(fit$draws, "mean", "sd", "mcse_mean")
  exact <- posterior::summarise_draws(known$draws, "mean", "sd", "mcse_mean")
  expect_lt(max(abs(told$mean - exact$mean) / exact$sd), 0.15)
  expect_equal(told$sd, exact$sd, tolerance = 0.15)
})

test_that("a run goes on as if it had not stopped, from a start of the user's too", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  rel <- simulate_release(model_lm(), table_statistic(1), mech_laplace(epsilon = 5), n = 40)
  expect_extends(function(iter) sample_posterior(rel, model_lm(), method = "collapse", chains = 2, iter = iter, warmup = 200, seed = 7))
  start <- c("(Intercept)" = 1, x = 1, gb = 0, gc = 0, hv = 1, sigma = 1, "mean[x]" = 0, "cov[x,x]" = 1, "prob[g=a]" = 0.2, "prob[g=b]" = 0.3,
             "prob[g=c]" = 0.5, "prob[h=u]" = 0.5, "prob[h=v]" = 0.5)
  fit <- sample_posterior(rel, model_lm(), method = "collapse", chains = 2, iter = 500, seed = 1, init = list(start, start))
  expect_lt(max(abs(fit$draws[1, , "prob[g=a]"])), 1)
  counts <- acceptance(fit)
  expect_true(all(counts$table > 0.1 & counts$table < 0.9))
})

test_that("the share of records outside the bounds is that of all cells", {
  st <- stat_crossprod(y ~ g, bounds = list(y = c(-2, 4), g = c("a", "b")))
  rel <- as_release(c(y = 3, gb = -2, `y^2` = 9, `y:gb` = 4), st, mech_laplace(epsilon = 5), 40)
  fit <- suppressWarnings(sample_posterior(rel, model_lm(), method = "collapse", chains = 1, iter = 600, warmup = 300, seed = 1))
  expect_true(all(fit$chains[[1]]$outside > 0))
  d <- posterior::as_draws_df(fit)
  tails <- function(mean) pnorm(-2, mean, d$sigma) + pnorm(4, mean, d$sigma, lower.tail = FALSE)
  share <- cbind(tails(d[["(Intercept)"]]), tails(d[["(Intercept)"]] + d$gb))
  expect_true(all(fit$chains[[1]]$outside > pmin(share[, 1], share[, 2]) - 1e-12 & fit$chains[[1]]$outside < pmax(share[, 1], share[, 2]) + 1e-12))
})

test_that("what it cannot serve it refuses, with the reason", {
  st <- stat_crossprod(y ~ g, bounds = list(y = c(0, 1), g = c("a", "b")))
  refused <- function(release) sample_posterior(release, model_lm(), method = "collapse")
  expect_error(refused(as_release(c(1, 2, 3, 4), st, mech_laplace(epsilon = 1), 2)), "at least 3 are needed", class = "noiseaware_error_method")
  expect_error(refused(as_release(c(1, 2, 3, 4), st, mech_laplace(epsilon = 1), NULL)), "needs the number of records",
               class = "noiseaware_error_method")
  many <- stats::setNames(rep(list(paste0("l", 1:20)), 4), letters[1:4])
  st <- stat_crossprod(y ~ a + b + c + d, bounds = c(list(y = c(0, 1)), many))
  expect_error(refused(as_release(numeric(length(st$components)), st, mech_laplace(epsilon = 1), 500)), "160,000 cells",
               class = "noiseaware_error_method")
})
