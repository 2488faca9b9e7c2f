# Parametric survival of grouped times: against the likelihood written in R, enumeration of all tables of a few records with the parameters
# summed over draws of their prior, survreg(), and method "augment".

arms <- list(arm = c("a", "b"))
short <- c(0, 1, 3)
distributions <- c("weibull", "exponential", "piecewise")

survival_fit <- function(release, model, ..., chains = 2, iter = 1500, warmup = 400) {
  fit <- suppressWarnings(sample_posterior(release, model, method = "collapse", chains = chains, iter = iter, warmup = warmup, seed = 1, ...))
  expect_identical(fit$problem$family, "table")
  expect_true(fit$exact)
  fit
}

# A model of two arms and what R says of it: cumulative hazards from the definitions on the help page.
cumulative_hazard <- function(theta, distribution, breaks, group, time) {
  last <- breaks[length(breaks)]
  base <- switch(distribution, exponential = exp(theta[, "(Intercept)"]) * time,
                 weibull = exp(theta[, "(Intercept)"]) * last * (time / last)^theta[, "shape"],
                 piecewise = rowSums(sapply(seq_along(breaks[-1]), function(j) {
                   theta[, sprintf("hazard[%g,%g)", breaks[j], breaks[j + 1])] * min(max(time - breaks[j], 0), breaks[j + 1] - breaks[j])
                 })))
  base * exp(if (group == "b") theta[, "armb"] else 0)
}

# log probabilities of the cells, arms the slowest, a row a draw
log_exits_of <- function(theta, distribution, breaks, censored = function(group, j) theta[, sprintf("censored[%g,%g)", breaks[j], breaks[j + 1])]) {
  do.call(cbind, lapply(arms$arm, function(group) {
    entered <- log(theta[, sprintf("prob[arm=%s]", group)])
    cells <- NULL
    for (j in seq_along(breaks[-1])) {
      d <- cumulative_hazard(theta, distribution, breaks, group, breaks[j + 1]) - cumulative_hazard(theta, distribution, breaks, group, breaks[j])
      g <- -log1p(-censored(group, j))
      cells <- cbind(cells, entered + log(d / (d + g) * -expm1(-d - g)), entered + log(g / (d + g) * -expm1(-d - g)))
      entered <- entered - d - g
    }
    cbind(cells, entered)
  }))
}

exit_table <- function(breaks = short) stat_counts(~ arm:exit, c(arms, list(exit = internal("exit_levels")(breaks))))

# of all parameters, by weights of draws from the prior
expect_weighted <- function(fit, distribution, tables, log_p, breaks = short, draws = 15000, log_exits = function(theta) log_exits_of(theta, distribution, breaks)) {
  set.seed(5)
  theta <- internal("reported")(fit$bound, .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), draws)$theta)
  ways <- lfactorial(rowSums(tables)) - rowSums(lfactorial(tables)) + log_p
  weight <- drop(exp(log_exits(theta) %*% t(tables)) %*% exp(ways))
  share <- weight / sum(weight)
  for (name in fit$bound$parameters) {
    of <- if (startsWith(name, "hazard")) function(x) log(x) else identity # a hazard has a long tail
    for (power in 1:2) {
      exact <- sum(share * of(theta[, name])^power)
      error <- sqrt(sum(share^2 * (of(theta[, name])^power - exact)^2))
      found <- of(parameter_draws(fit, name))^power
      expect_estimated_mean(found, exact, error, label = paste(distribution, name, power))
    }
  }
}

test_that("probabilities are the model's, sum to 1, and densities have their slopes", {
  for (breaks in list(c(0.5, 1, 2.5, 4), c(0.5, 2))) for (distribution in distributions) {
    counts <- exit_table(breaks)
    cells <- 2 * (2 * length(breaks) - 1)
    rel <- as_release(rep(3, cells), counts, mech_gaussian(sd = 2), 3 * cells)
    fit <- survival_fit(rel, model_survival(distribution = distribution), chains = 1, iter = 40, warmup = 20)
    q <- ncol(t(fit$chains[[1L]]$state$theta))
    set.seed(3)
    theta <- cbind(stats::rnorm(q), stats::rnorm(q, sd = 3), replace(stats::rnorm(q), q - 1L, 40))
    expect_identical(internal("plot_variables")(fit, NULL), c("(Intercept)", "armb", if (distribution == "weibull") "shape"))
    natural <- internal("reported")(fit$bound, theta)
    found <- t(.Call(internal("ffi_model_cells"), fit$bound$spec, theta))
    expect_equal(rowSums(found), rep(1, 3))
    direct <- log_exits_of(natural, distribution, breaks)
    expect_equal(log(found)[1:2, ], direct[1:2, ], ignore_attr = TRUE)
    expect_equal(internal("cell_probabilities")(fit$bound, natural)[1:2, ], found[1:2, ])
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    for (k in 1:2) expect_equal(at(theta[, k])[-1], difference_slopes(at, theta[, k], 1e-5), tolerance = 1e-6, label = distribution)
  }
})

test_that("all tables of one, two and three records, for every distribution", {
  skip_on_cran() # takes long; `make test` runs it
  cells <- 10L
  statistic <- stat_survival(~ arm, short, arms)
  # components by hand: events of both intervals, by arm, then censored, then after
  hand <- matrix(0, cells, 10L)
  hand[cbind(c(1, 6, 3, 8, 2, 7, 4, 9, 5, 10), 1:10)] <- 1
  z <- c(1.1, 0.2, -0.3, 0.9, 0.4, 0.1, 0.3, -0.6, 0.8, 0.5)
  for (k in seq_along(distributions)) {
    tables <- all_tables(k, cells)
    rel <- as_release(z, statistic, mech_laplace(scale = 0.7), k)
    priors <- c(list(prior = prior_normal(c(`(Intercept)` = -1), c(`(Intercept)` = 1, armb = 1)), censoring = prior_beta(1.5, 3), shares = prior_dirichlet(2)),
                if (distributions[k] == "weibull") list(shape = prior_gamma(6, 5)))
    fit <- survival_fit(rel, do.call(model_survival, c(distribution = distributions[k], priors)))
    expect_weighted(fit, distributions[k], tables, log_noise("absolute", 0.7, z, tables %*% hand))
  }
})

test_that("unknown n, hidden numbers and exact sizes of the arms, by enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- exit_table()
  z <- c(1.4, 0.3, 0.2, 0.6, 1.1, 0.9, -0.2, 0.1, 0.5, 0.4)
  tables <- do.call(rbind, lapply(0:3, all_tables, k = 10L))
  rel <- as_release(z, counts, mech_laplace(scale = 0.8), NULL, neighbours = "add_remove")
  fit <- survival_fit(rel, model_survival(prior = prior_normal(c(`(Intercept)` = -1), 1)), prior_n = prior_n("uniform", lower = 0, upper = 3))
  expect_weighted(fit, "weibull", tables, log_noise("absolute", 0.8, z, tables))
  # counts below 1 are not shown
  tables <- all_tables(3, 10L)
  hidden <- z < 0.5
  rel <- as_release(replace(z, hidden, NA), counts, published(mech_laplace(scale = 0.8), threshold = 0.5), 3)
  fit <- survival_fit(rel, model_survival(distribution = "exponential", prior = prior_normal(sd = 1)))
  below <- function(s) ifelse(s < 0.5, 1 - exp(-(0.5 - s) / 0.8) / 2, exp((0.5 - s) / 0.8) / 2)
  log_p <- log_noise("absolute", 0.8, z[!hidden], tables[, !hidden]) + rowSums(log(below(tables[, hidden])))
  expect_weighted(fit, "exponential", tables, log_p)
  # two people in arm a
  rel <- as_release(list(noisy = z, exact = c(2, 1)), list(noisy = counts, exact = stat_counts(~ arm, arms)), list(noisy = mech_laplace(scale = 0.8), exact = mech_exact()), 3)
  fit <- survival_fit(rel, model_survival(distribution = "piecewise", prior = prior_normal(sd = 1), baseline = prior_gamma_process(8)))
  expect_weighted(fit, "piecewise", tables, log_noise("absolute", 0.8, z, tables) + ifelse(rowSums(tables[, 1:5]) == 2, 0, -Inf))
})

test_that("wide noise gives the prior; little noise and many records the grouped likelihood's maximum, and survreg()", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- exit_table()
  for (distribution in distributions) {
    model <- model_survival(distribution = distribution, prior = prior_normal(sd = 1))
    fit <- survival_fit(as_release(rep(0, 10), counts, mech_gaussian(sd = 1e5), 12), model, iter = 1100)
    set.seed(2)
    expect_prior(posterior::as_draws_matrix(fit$draws), prior_draws(model, counts))
  }
  set.seed(4)
  n <- 2e4
  arm <- sample(arms$arm, n, TRUE)
  time <- 2 * stats::rweibull(n, 1.4) * exp(0.3 * (arm == "b"))
  censored <- stats::rexp(n, 0.15)
  data <- data.frame(arm, time = pmin(time, censored), event = time <= censored)
  breaks <- seq(0, 4, by = 0.5)
  known <- survival::survreg(survival::Surv(time, event) ~ arm, data)
  k <- 1 / known$scale
  exits <- survival_exits(data, Surv(time, event) ~ arm, breaks, arms)
  statistic <- stat_survival(~ arm, breaks, arms)
  rel <- as_release(internal("statistic_total")(statistic, exits), statistic, mech_gaussian(sd = 1), n)
  fit <- survival_fit(rel, model_survival(), iter = 1000)
  draws <- posterior::as_draws_matrix(fit$draws)[, c("(Intercept)", "armb", "shape")]
  # the estimates from the exact times, in this parameterisation; three standard deviations, since the times are grouped
  expected <- c(-k * stats::coef(known)[[1]] + (k - 1) * log(4), -k * stats::coef(known)[[2]], k)
  sd <- apply(draws, 2, stats::sd)
  expect_lt(max(abs(colMeans(draws) - expected) / sd), 3)
  expect_lt(abs(sd[["armb"]] / (k * sqrt(stats::vcov(known)[2, 2])) - 1), 0.15)
  # and the maximum of the likelihood of the grouped times, written in R
  cells <- as.vector(t(unclass(table(exits$arm, exits$exit))))
  labels <- fit$bound$parameters
  censoring <- grepl("^censored", labels)
  minus <- function(q) {
    theta <- matrix(c(q[1:2], exp(q[3]), stats::plogis(q[-(1:3)]), table(arm) / n), 1L, dimnames = list(NULL, labels))
    -sum(cells * log_exits_of(theta, "weibull", breaks))
  }
  best <- stats::optim(c(expected[1:2], log(k), stats::qlogis(colMeans(posterior::as_draws_matrix(fit$draws)[, censoring]))), minus, method = "BFGS",
                       control = list(maxit = 200, reltol = 1e-14))$par
  expect_lt(max(abs(colMeans(draws) - c(best[1:2], exp(best[3]))) / sd), 0.3)
})

test_that("the draws are those of augment; each arm's own censoring", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- exit_table()
  rel <- as_release(c(6.2, 1.1, 5.4, 4.8, 2.7, 3.9, 4.1, 1.8, 5.2, 4.9), counts, mech_laplace(scale = 2), 40)
  model <- model_survival(prior = prior_normal(sd = 1), censoring_by = ~ arm)
  fast <- survival_fit(rel, model)
  expect_true(all(c("censored[0,1):arm=a", "censored[1,3):arm=b") %in% fast$bound$parameters))
  theta <- posterior::as_draws_matrix(fast$draws)
  theta <- matrix(theta, nrow(theta), dimnames = list(NULL, colnames(theta)))
  own <- function(group, j) theta[, sprintf("censored[%g,%g):arm=%s", short[j], short[j + 1], group)]
  expect_equal(log(internal("cell_probabilities")(fast$bound, theta)), log_exits_of(theta, "weibull", short, own), ignore_attr = TRUE)
  slow <- suppressWarnings(sample_posterior(rel, model, method = "augment", chains = 2, iter = 4700, warmup = 1200, seed = 2))
  for (name in fast$bound$parameters) expect_agreement(parameter_draws(fast, name), parameter_draws(slow, name), label = name)
})

test_that("the joint distribution is left as it is", {
  skip_on_cran() # takes long; `make test` runs it
  for (distribution in c("weibull", "piecewise")) {
    model <- model_survival(distribution = distribution, prior = prior_normal(sd = 1))
    set.seed(6)
    expect_prior(geweke_totals(model, exit_table(), mech_laplace(scale = 1), 8, 1700), prior_draws(model, exit_table()))
  }
})

test_that("calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_survival(~ arm, c(0, 1, 2, 4), arms)
  for (n in c(30, 300)) {
    model <- model_survival(distribution = if (n == 30) "weibull" else "piecewise", prior = prior_normal(sd = 1))
    cal <- calibrate(model, statistic, mech_discrete_laplace(epsilon = 1), n = n, replicates = 20, chains = 1, iter = 200, warmup = 80, seed = 3)
    expect_false(any(cal$runs$failed))
    expect_gt(min(summary(cal)$p.value), 1e-4)
  }
})

# ---- processes -----------------------------------------------------------------------------------

# a model with a process for each arm, or for both, of the breaks `short`
process_models <- function() {
  ask <- function(...) model_survival(prior = prior_normal(sd = 1), censoring = prior_beta(1.5, 3), shares = prior_dirichlet(2), ...)
  list(learned_beta = ask(~ arm, "discrete", baseline = prior_beta_process(3)), declared_gamma = ask(~ 1, "discrete", baseline = prior_gamma_process(4, rate = 0.4), baseline_by = ~ arm),
       piecewise_beta = ask(~ arm, "piecewise", baseline = prior_beta_process(c(3, 5), rate = c(0.4, 0.7))), learned_strata = ask(~ 1, "piecewise", baseline_by = ~ arm))
}

# what the intervals' cumulative hazards grow by in an arm, from the reported parameters; then as log_exits_of(), for a model of process_models()
process_growth <- function(theta, model, group, j) {
  hazard <- theta[, sprintf("hazard[%g,%g)%s", short[j], short[j + 1], if (length(model$baseline_by)) paste0(":arm=", group) else "")]
  ratio <- if (group == "b" && "armb" %in% colnames(theta)) exp(theta[, "armb"]) else 1
  ratio * if (model$distribution == "discrete") -log1p(-hazard) else hazard * diff(short)[j]
}

log_process_exits <- function(theta, model) {
  do.call(cbind, lapply(arms$arm, function(group) {
    entered <- log(theta[, sprintf("prob[arm=%s]", group)])
    cells <- NULL
    for (j in 1:2) {
      d <- process_growth(theta, model, group, j)
      g <- -log1p(-theta[, sprintf("censored[%g,%g)", short[j], short[j + 1])])
      ways <- if (model$distribution == "discrete") cbind(log1p(-exp(-d)), log1p(-exp(-g)) - d) else log(cbind(d, g) / (d + g)) + log1p(-exp(-d - g))
      cells <- cbind(cells, entered + ways)
      entered <- entered - d - g
    }
    pmax(cbind(cells, entered), -700) # a hazard may be rounded to 1
  }))
}

test_that("processes: probabilities are the model's, densities have their slopes, and priors are beta and gamma", {
  models <- process_models()
  for (name in names(models)) {
    model <- models[[name]]
    fit <- survival_fit(as_release(rep(3, 10), exit_table(), mech_gaussian(sd = 2), 30), model, chains = 1, iter = 40, warmup = 20)
    q <- ncol(t(fit$chains[[1L]]$state$theta))
    set.seed(3)
    theta <- cbind(stats::rnorm(q), stats::rnorm(q, sd = 2), stats::rnorm(q))
    natural <- internal("reported")(fit$bound, theta)
    found <- t(.Call(internal("ffi_model_cells"), fit$bound$spec, theta))
    expect_equal(log(found), log_process_exits(natural, model), ignore_attr = TRUE, label = name)
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    for (k in 1:2) expect_equal(at(theta[, k])[-1], difference_slopes(at, theta[, k], 1e-5), tolerance = 1e-6, label = name)
    far <- replace(theta[, 1], 2, 45)
    expect_true(all(is.finite(at(far))), label = name)
    draws <- internal("reported")(fit$bound, .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), 2000)$theta)
    growth <- -log(1 - draws[, grep("^hazard.1,3", colnames(draws))[1]])
    if (model$distribution == "piecewise") growth <- 2 * draws[, grep("^hazard.1,3", colnames(draws))[1]]
    mean <- 2 * if (is.null(model$baseline$rate)) exp(draws[, "(Intercept)"]) else rep_len(model$baseline$rate, 2)[2]
    u <- if (inherits(model$baseline, "prior_beta_process")) {
      c <- rep_len(model$baseline$concentration, 2)[2]
      stats::pbeta(1 - exp(-growth), c * (1 - exp(-mean)), c * exp(-mean))
    } else {
      a <- (if (is.null(model$baseline$concentration)) 4 else model$baseline$concentration) * 2 / 3
      stats::pgamma(growth / mean, a, a)
    }
    expect_gt(stats::ks.test(u, "punif")$p.value, 1e-4, label = name)
  }
})

test_that("processes: all tables of two records", {
  skip_on_cran() # takes long; `make test` runs it
  tables <- all_tables(2, 10L)
  z <- c(1.1, 0.2, -0.3, 0.9, 0.4, 0.1, 0.3, -0.6, 0.8, 0.5)
  models <- process_models()
  for (name in names(models)) {
    fit <- survival_fit(as_release(z, exit_table(), mech_laplace(scale = 0.7), 2), models[[name]], iter = 1500)
    expect_weighted(fit, name, tables, log_noise("absolute", 0.7, z, tables), log_exits = function(theta) log_process_exits(theta, models[[name]]))
  }
})

# P(parameter < q) for quantiles q that are known
expect_quantiles <- function(fit, name, known, share = c(0.01, 0.05, 0.3, 0.7, 0.95, 0.99), label = name) {
  for (k in seq_along(share)) {
    below <- parameter_draws(fit, name) < known[k]
    expect_lt(abs(mean(below) - share[k]) / posterior::mcse_mean(below + 0), 5, label = paste(label, share[k]))
  }
}

test_that("a beta process: the intercept's tails are those of the hazards integrated out", {
  skip_on_cran() # takes long; `make test` runs it
  share <- c(0.01, 0.05, 0.3, 0.7, 0.95, 0.99)
  alone <- stat_counts(~ exit, list(exit = internal("exit_levels")(short)))
  grid <- seq(-12, 12, by = 0.005)
  counts <- c(3, 0, 0, 0, 1)
  log_p <- stats::dnorm(grid, log = TRUE, sd = 2)
  for (j in 1:2) {
    mean <- exp(grid) * diff(short)[j] / 3
    events <- counts[2 * j - 1]
    a <- -4 * expm1(-mean)
    b <- pmax(4 * exp(-mean), 1e-300)
    log_p <- log_p + lbeta(a + events, b + sum(counts[-seq_len(2 * j - 1)])) - lbeta(a, b)
  }
  mass <- cumsum(exp(log_p - max(log_p)))
  known <- grid[findInterval(share * mass[length(mass)], mass) + 1L] - log(3)
  fit <- survival_fit(as_release(counts, alone, mech_exact(), 4), model_survival(distribution = "discrete"), iter = 2400)
  expect_quantiles(fit, "(Intercept)", known, share, "exact numbers")
  # nothing known but the prior
  for (model in list(model_survival(distribution = "discrete"), model_survival(distribution = "piecewise", baseline = prior_beta_process()))) {
    fit <- survival_fit(as_release(rep(0, 5), alone, mech_gaussian(sd = 1e5), 2), model, iter = 1500)
    expect_quantiles(fit, "(Intercept)", stats::qnorm(share, -log(3), 2), share, model$distribution)
    expect_identical(internal("trajectory_counts")(fit)$divergent, 0)
  }
})

test_that("a beta process: some hazards held by data, one that is open, by quadrature", {
  counts <- c(12, 0, 1, 0, 14)
  process <- prior_beta_process(3)
  ask <- model_survival(distribution = "piecewise", prior = prior_normal(sd = 2), baseline = process, censoring = prior_beta(1.5, 3))
  statistic <- stat_counts(~ exit, list(exit = internal("exit_levels")(short)))
  fit <- survival_fit(as_release(counts, statistic, mech_exact(), 27), ask, iter = 2400)
  # of a hazard and of censoring, both as logits, given the intercept
  t <- seq(-12, 12, by = 0.1)
  d <- log1p(exp(t))
  s <- outer(d, d, `+`)
  of_censoring <- stats::dbeta(stats::plogis(t), 1.5, 3) * stats::dlogis(t)
  of_data <- lapply(1:2, function(j) drop(exp(counts[2 * j - 1] * log(d / s * -expm1(-s)) - s * sum(counts[-seq_len(2 * j)])) %*% of_censoring))
  level <- seq(-5, 4, by = 0.01)
  density <- vapply(level, function(a) {
    prod(vapply(1:2, function(j) {
      chance <- 1 - exp(-exp(a) * diff(short)[j] / 3)
      sum(stats::dbeta(stats::plogis(t), 3 * chance, 3 * (1 - chance)) * stats::dlogis(t) * of_data[[j]])
    }, 0)) * stats::dnorm(a, sd = 2)
  }, 0)
  mass <- cumsum(density) / sum(density)
  share <- c(0.01, 0.05, 0.3, 0.7, 0.95, 0.99)
  expect_quantiles(fit, "(Intercept)", level[findInterval(share, mass) + 1L] - log(3), share, "held by data")
})

test_that("a beta process with coefficients: exact counts, by weights of draws from the prior", {
  skip_on_cran() # takes long; `make test` runs it
  counts <- c(1, 0, 0, 1, 2, 5, 0, 1, 0, 0)
  for (distribution in c("discrete", "piecewise")) {
    model <- model_survival(~ arm, distribution, prior = prior_normal(sd = c(`(Intercept)` = 2, armb = 1)), baseline = prior_beta_process(3),
                            censoring = prior_beta(1.5, 3), shares = prior_dirichlet(2))
    fit <- survival_fit(as_release(counts, exit_table(), mech_exact(), 10), model, iter = 2400)
    set.seed(5)
    theta <- internal("reported")(fit$bound, .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), 3e5)$theta)
    weight <- drop(log_process_exits(theta, model) %*% counts)
    for (name in c("(Intercept)", "armb", "hazard[0,1)", "hazard[1,3)")) {
      draws <- parameter_draws(fit, name)
      for (q in stats::quantile(draws, c(0.05, 0.5, 0.95, 0.99))) expect_weighted_mean((draws < q) + 0, (theta[, name] < q) + 0, weight, label = paste(distribution, name))
    }
  }
})

test_that("a beta process without noise is the beta posterior of events and people at risk, and survfit() where it has no weight", {
  skip_on_cran()
  lung <- survival::lung
  breaks <- 365.25 * c(0, 0.25, 0.5, 0.75, 1, 1.5, 2)
  sexes <- list(sex = c("1", "2"))
  exits <- survival_exits(lung, Surv(time, status == 2) ~ sex, breaks, sexes)
  statistic <- stat_counts(~ exit:sex, list(exit = levels(exits$exit), sex = sexes$sex))
  total <- internal("statistic_total")(statistic, exits)
  rate <- 0.001 * (1:6)
  process <- function(concentration) model_survival(~ 1, "discrete", baseline = prior_beta_process(concentration, rate), baseline_by = ~ sex)
  fit <- survival_fit(as_release(total, statistic, mech_exact(), nrow(lung)), process(20), iter = 1200, warmup = 200)
  cells <- table(exits$exit, exits$sex)
  events <- cells[seq(1, 11, 2), ]
  entered <- apply(cells, 2, function(k) rev(cumsum(rev(k)))[seq(1, 11, 2)])
  chance <- 1 - exp(-rate * diff(breaks))
  for (s in 1:2) for (j in 1:6) {
    draws <- parameter_draws(fit, grep("^hazard", fit$bound$parameters, value = TRUE)[6 * (s - 1) + j])
    a <- 20 * chance[j] + events[j, s]
    b <- 20 * (1 - chance[j]) + entered[j, s] - events[j, s]
    expect_distribution(draws, function(p) stats::qbeta(p, a, b), a / (a + b))
  }
  # everybody who is censored in an interval is at risk until its end
  fit <- survival_fit(as_release(total, statistic, mech_exact(), nrow(lung)), process(0.5), iter = 800, warmup = 200)
  end <- breaks[-1][pmin(findInterval(lung$time, breaks), 6)]
  late <- lung$time >= breaks[7]
  known <- summary(survival::survfit(survival::Surv(end, lung$status == 2 & !late) ~ lung$sex), times = breaks[2:6])
  means <- colMeans(posterior::as_draws_matrix(survival_measures(fit, "survival")))
  expect_equal(unname(means[c(1:5, 7:11)]), known$surv, tolerance = 0.03)
  hazards <- predict(fit, data.frame(sex = c("1", "2")), type = "hazard")
  expect_equal(hazards$fit, as.vector(events / entered), tolerance = 0.05)
  expect_identical(hazards$time[1:6], breaks[1:6])
  expect_error(predict(fit, data.frame(sex = "1"), type = "hazard", times = 30), class = "noiseaware_error_argument")
})

test_that("processes: wide noise gives the prior; calibrated; the joint distribution is left as it is", {
  skip_on_cran() # takes long; `make test` runs it
  models <- process_models()
  fit <- survival_fit(as_release(rep(0, 10), exit_table(), mech_gaussian(sd = 1e5), 12), models$piecewise_beta, iter = 1400)
  set.seed(2)
  expect_prior(posterior::as_draws_matrix(fit$draws), prior_draws(models$piecewise_beta, exit_table()))
  set.seed(6)
  expect_prior(geweke_totals(models$learned_beta, exit_table(), mech_laplace(scale = 1), 8, 1700), prior_draws(models$learned_beta, exit_table()))
  cal <- calibrate(models$declared_gamma, stat_survival(~ arm, short, arms), mech_discrete_laplace(epsilon = 1), n = 60, replicates = 22, chains = 1, iter = 200, warmup = 80, seed = 3)
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("curves, medians, restricted means and hazards are integrals of the model's", {
  skip_on_cran() # takes long; `make test` runs it
  breaks <- c(0.5, 1, 2.5, 4)
  rel <- as_release(c(2, 1, 8, 3, 7, 2, 4, 1, 1, 6, 2, 9, 1, 6), exit_table(breaks), mech_gaussian(sd = 1), 53)
  for (distribution in distributions) {
    fit <- survival_fit(rel, model_survival(distribution = distribution), chains = 2, iter = 40, warmup = 30)
    theta <- internal("parameter_matrix")(fit)
    times <- if (distribution == "piecewise") c(0.5, 0.9, 1, 2.7, 4) else c(0.5, 0.9, 2.7, 4, 6)
    end <- max(times)
    for (group in arms$arm) {
      of <- function(measure, ...) {
        draws <- posterior::as_draws_matrix(survival_measures(fit, measure, ...))
        unclass(draws[, endsWith(colnames(draws), paste0("|arm=", group))])
      }
      chance <- function(t) exp(-(cumulative_hazard(theta, distribution, breaks, group, t) - cumulative_hazard(theta, distribution, breaks, group, 0.5)))
      expect_equal(of("survival", times = times), sapply(times, chance), ignore_attr = TRUE)
      slope <- function(t) (log(chance(t - 1e-5)) - log(chance(t + 1e-5))) / 2e-5
      expect_equal(of("hazard", times = times[2:3] + 0.01), sapply(times[2:3] + 0.01, slope), tolerance = 1e-5, ignore_attr = TRUE)
      half <- drop(of("median"))
      by_root <- sapply(seq_along(half), function(i) {
        at <- function(t) chance(t)[i] - 0.5
        if (distribution == "piecewise" && at(4) > 0) Inf else stats::uniroot(at, c(0.5, 1e4), tol = 1e-10)$root
      })
      expect_equal(half, by_root, tolerance = 1e-6, ignore_attr = TRUE)
      grid <- seq(0.5, end, length.out = 1501)
      step <- sapply(grid, chance)
      expect_equal(drop(of("restricted_mean", times = end)), rowSums(step[, -1] + step[, -1501]) / 2 * diff(grid[1:2]), tolerance = 1e-5, ignore_attr = TRUE)
    }
    expect_equal(unclass(posterior::as_draws_matrix(survival_measures(fit, "hazard_ratio"))), exp(theta[, "armb", drop = FALSE]), ignore_attr = TRUE)
    told <- predict(fit, data.frame(arm = c("b", "a")), type = "rmst", interval = "credible", level = 0.8)
    expect_identical(names(told), c("arm", "time", "fit", "lower", "upper"))
    mean_b <- posterior::as_draws_matrix(survival_measures(fit, "restricted_mean"))[, "restricted_mean|arm=b"]
    expect_equal(told$fit[1], mean(mean_b))
    expect_equal(told$lower[1], quantile(mean_b, 0.1, type = 6), ignore_attr = TRUE)
    data <- survival_data(fit, times = times)
    expect_equal(data$mean[data$arm == "a"], predict(fit, data.frame(arm = "a"), times = times)$fit)
    expect_silent(ggplot2::ggplot_build(plot(fit, "survival")))
  }
})

test_that("several groups with interactions have the coefficients of model.matrix(), and no groups have none", {
  levels <- list(arm = c("a", "b", "c"), sex = c("f", "m"))
  statistic <- stat_survival(~ sex + arm, short, levels)
  rel <- as_release(rep(3, length(statistic$components)), statistic, mech_laplace(scale = 1), 90)
  bound <- function(model) internal("bind_model")(model, statistic)
  expect_identical(bound(model_survival(~ arm * sex))$coefficients, c("(Intercept)", "armb", "armc", "sexm", "armb:sexm", "armc:sexm"))
  expect_identical(bound(model_survival(Surv(time, event) ~ sex))$coefficients, c("(Intercept)", "sexm"))
  expect_setequal(bound(model_survival())$coefficients, c("(Intercept)", "sexm", "armb", "armc"))
  fit <- survival_fit(rel, model_survival(~ sex), chains = 1, iter = 60, warmup = 50)
  curves <- survival_data(fit)
  expect_equal(curves$mean[curves$sex == "m" & curves$arm == "a"], curves$mean[curves$sex == "m" & curves$arm == "c"])
  expect_identical(nrow(predict(fit, data.frame(sex = "f"), type = "median")), 1L)
  one <- stat_survival(~ 1, short)
  alone <- survival_fit(as_release(c(5, 4, 1, 2, 8), one, mech_laplace(scale = 1), 20), model_survival(distribution = "piecewise"), chains = 1, iter = 60, warmup = 50)
  expect_identical(names(predict(alone, data.frame(), type = "median")), "fit")
  expect_identical(alone$bound$parameters, c("(Intercept)", "hazard[0,1)", "hazard[1,3)", "censored[0,1)", "censored[1,3)"))
  expect_error(survival_measures(alone, "hazard_ratio"), class = "noiseaware_error_argument")
})

test_that("what follows from a fit; a chain cut in two", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_survival(~ arm, short, arms)
  rel <- as_release(c(6, 5, 4, 7, 2, 1, 3, 4, 5, 6), statistic, mech_laplace(scale = 1), 43)
  ask <- function(iter) suppressWarnings(sample_posterior(rel, model_survival(), chains = 2, iter = iter, warmup = 100, seed = 1))
  expect_extends(ask)
  fit <- ask(200)
  expect_identical(fit$method, "collapse")
  expect_output(print(fit), "Weibull survival, 2 intervals, 2 groups", fixed = TRUE)
  expect_output(print(model_survival(~ arm, "piecewise", censoring_by = ~ arm)), "by arm")
  expect_equal(sum(posterior::as_draws_matrix(denoise(fit, ~ exit:arm))[1, ]), 43)
  said <- rstantools::prior_summary(fit)
  expect_identical(said$prior[said$variable == "shape"], "gamma(2, 2)")
  expect_identical(said$prior[said$variable == "(Intercept)"], paste0("normal(", internal("format_number")(-log(3)), ", 2)"))
  expect_error(log_evidence(fit), "not integrated out", class = "noiseaware_error_method")
  expect_identical(names(coef(fit)), c("(Intercept)", "armb"))
  expect_identical(rownames(confint(fit)), c("(Intercept)", "armb"))
  expect_identical(generics::tidy(fit)$term, c("(Intercept)", "armb"))
  expect_equal(generics::tidy(fit, exponentiate = TRUE)$conf.low[2], exp(confint(fit)["armb", 1]))
  expect_error(contrast(fit), "survival_measures", class = "noiseaware_error_argument")
  none <- sample_posterior(as_release(c(6, 5, 4, 7, 2), stat_survival(~ 1, short), mech_laplace(scale = 1), 24), model_survival(~ 1, "piecewise", baseline = prior_gamma_process(rate = 0.3)),
                           chains = 1, iter = 100, seed = 1) |> suppressWarnings()
  expect_true(all(c("hazard[0,1)", "censored[0,1)") %in% names(coef(none))))
  expect_identical(rownames(supported("survival", "counts")), as.character(seq_len(nrow(supported("survival", "counts")))))
})

test_that("bad input is refused", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_survival(~ arm, short, arms)
  rel <- as_release(c(6, 5, 4, 7, 2, 1, 3, 4, 5, 6), statistic, mech_laplace(scale = 1), 43)
  fit <- survival_fit(rel, model_survival(), chains = 1, iter = 60, warmup = 50)
  pieces <- survival_fit(rel, model_survival(distribution = "piecewise"), chains = 1, iter = 60, warmup = 50)
  other <- as_release(c(3, 5), stat_counts(~ x, list(x = c("a", "b"))), mech_laplace(epsilon = 1), 8)
  ask <- function(release, model) sample_posterior(release, model, chains = 1, iter = 10)
  refusals("argument", expression(model_survival(distribution = "gompertz"), survival_measures(fit, times = -1), survival_measures(pieces, times = 4), plot(fit, "survival", times = "a"),
                                  predict(fit, data.frame(arm = "a"), type = "draws"), predict(fit, data.frame(arm = "a"), interval = "predictive")))
  refusals("formula", expression(model_survival(~ age^2), model_survival(~ log(age)), model_survival(time ~ arm), model_survival(3), model_survival(censoring_by = ~ I(arm)), model_survival(baseline_by = ~ arm)))
  expect_error(ask(rel, model_survival(distribution = "discrete", baseline = prior_beta_process(rate = 1:3))), class = "noiseaware_error_prior")
  refusals("prior", expression(model_survival(prior = prior_beta()), model_survival(shape = prior_gamma(2)), model_survival(distribution = "exponential", shape = prior_gamma(1, 1)), model_survival(baseline = prior_gamma()), model_survival(baseline = prior_beta_process()), prior_beta_process(-1), prior_gamma_process(rate = 0),
                              
                               model_survival(censoring = prior_gamma()), model_survival(shares = prior_dirichlet(1:2)), prior_gamma_process(0)))
  expect_error(ask(rel, model_survival(prior = prior_normal(sd = c(age = 1)))), class = "noiseaware_error_prior")
  expect_error(ask(rel, model_survival(~ age)), "age", class = "noiseaware_error_variables")
  expect_error(ask(rel, model_survival(censoring_by = ~ age)), class = "noiseaware_error_variables")
  expect_error(ask(other, model_survival()), "survival_exits", class = "noiseaware_error_variables")
  refusals("levels", expression(predict(fit, data.frame(arm = "c"))))
  refusals("data", expression(predict(fit, data.frame(x = 1)), predict(fit, 3)))
})

test_that("medians of times are medians of draws, which a mean is far from", {
  rel <- as_release(c(2, 1, 8, 3, 7, 2, 4, 1, 1, 6, 2, 9, 1, 6), exit_table(c(0.5, 1, 2.5, 4)), mech_gaussian(sd = 1), 53)
  fit <- survival_fit(rel, model_survival(distribution = "weibull"), chains = 1, iter = 60, warmup = 50)
  draws <- posterior::as_draws_matrix(survival_measures(fit, "median"))
  told <- predict(fit, data.frame(arm = "a"), type = "median", interval = "credible")
  expect_equal(told$fit, median(draws[, "median|arm=a"]))
  expect_gt(abs(told$fit - mean(draws[, "median|arm=a"])), 1e-6)
  curves <- survival_data(fit, times = c(1, 2))
  of_survival <- posterior::as_draws_matrix(survival_measures(fit, "survival", times = c(1, 2)))
  a <- of_survival[, endsWith(colnames(of_survival), "|arm=a")]
  expect_equal(curves$median[curves$arm == "a"], apply(a, 2, median), ignore_attr = TRUE)
  expect_equal(curves$mean[curves$arm == "a"], colMeans(a), ignore_attr = TRUE)
})

test_that("quantile() of a survival fit says what gives the median time", {
  skip_on_cran()
  st <- stat_survival(~ 1, c(0, 1, 2))
  rel <- as_release(stats::setNames(c(10, 5, 12, 6, 20)[seq_along(st$components)], st$components), st, mech_laplace(scale = 1), n = 53)
  for (model in list(model_survival(distribution = "piecewise"), model_table())) {
    fit <- suppressWarnings(sample_posterior(rel, model, chains = 1, iter = 100, seed = 1))
    expect_error(quantile(fit), 'survival_measures(fit, "median")', fixed = TRUE, class = "noiseaware_error_argument")
    expect_no_error(suppressWarnings(survival_measures(fit, "median")))
  }
})
