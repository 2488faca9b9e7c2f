# Regressions of a binary response, or one of several levels, on factors by the table engine: against enumeration of all tables of a few
# records with the parameters summed over draws of their prior, and against method "augment".

factor_levels <- list(y = c("no", "yes"), g = c("a", "b", "c"), h = c("k", "l"))
links <- list(logit = stats::binomial(), probit = stats::binomial("probit"), cloglog = stats::binomial("cloglog"))
several_levels <- list(y = c("low", "mid", "high"), g = c("a", "b", "c"), h = c("k", "l"))
level_families <- list(logit = family_object("cumulative"), probit = family_object("cumulative_probit"), categorical = family_object("categorical"))

factor_fit <- function(release, model, ..., chains = 2, iter = 2200, warmup = 400) {
  fit <- suppressWarnings(sample_posterior(release, model, method = "collapse", chains = chains, iter = iter, warmup = warmup, seed = 1, ...))
  expect_identical(fit$problem$family, "table")
  expect_true(fit$exact)
  fit
}

# combinations of covariates' levels, the last fastest, each with the levels of the response
cells_with <- function(levels) {
  covariates <- levels[-1L]
  expand.grid(rev(c(covariates, levels[1L])), stringsAsFactors = FALSE)[, c(names(covariates), names(levels)[1L])]
}

# log probabilities of the cells given the parameters as they are reported, a row a draw; `formula`: of the predictors
log_cells_of <- function(theta, cells, levels, family, formula = stats::reformulate(c("1", names(levels)[-1L]))) {
  covariates <- names(levels)[-1L]
  frame <- transform(cells, one = 1)
  frame[covariates] <- Map(factor, cells[covariates], levels[covariates])
  x <- stats::model.matrix(formula, frame)
  log_p <- 0
  joint <- do.call(paste, c(Map(paste0, covariates, "=", cells[covariates]), sep = ":"))
  if ("concentration" %in% colnames(theta)) log_p <- log(theta[, sprintf("prob[%s]", joint)]) else for (v in covariates) for (l in levels[[v]]) log_p <- log_p + outer(log(theta[, sprintf("prob[%s=%s]", v, l)]), as.numeric(cells[[v]] == l))
  answers <- levels[[1L]]
  at <- match(cells[[names(levels)[1L]]], answers)
  last <- length(answers)
  if (family$family == "categorical") {
    eta <- lapply(answers[-1L], function(l) theta[, sprintf("%s[%s]", colnames(x), l)] %*% t(x))
    total <- 1 + Reduce(`+`, lapply(eta, exp))
    return(log_p + vapply(seq_along(at), function(k) (if (at[k] > 1L) eta[[at[k] - 1L]][, k] else 0) - log(total[, k]), numeric(nrow(theta))))
  }
  ordered <- family$family == "cumulative"
  eta <- if (ordered) theta[, colnames(x)[-1L]] %*% t(x[, -1L]) else theta[, colnames(x)] %*% t(x)
  below <- function(k, cell) {
    if (k == 0L || k == last) return(as.numeric(k > 0L))
    if (!ordered) return(1 - family$linkinv(eta[, cell]))
    family$linkinv(theta[, paste(answers[k], answers[k + 1L], sep = "|")] - eta[, cell])
  }
  log_p + log(vapply(seq_along(at), function(k) below(at[k], k) - below(at[k] - 1L, k), numeric(nrow(theta))))
}

# of all parameters, by weights of draws from the prior; `log_noise`: of tables, `tables`, a row each
expect_prior_weighted <- function(fit, tables, log_p, cells, levels, draws = 15000) {
  set.seed(5)
  theta <- internal("reported")(fit$bound, .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), draws)$theta)
  log_cell <- pmax(log_cells_of(theta, cells, levels, internal("stats_family")(fit$bound$model)), -1e4) # 0 times the log of 0 is 0
  ways <- lfactorial(rowSums(tables)) - rowSums(lfactorial(tables)) + log_p
  weight <- drop(exp(log_cell %*% t(tables)) %*% exp(ways))
  share <- weight / sum(weight)
  for (name in fit$bound$parameters) for (power in 1:2) {
    exact <- sum(share * theta[, name]^power)
    error <- sqrt(sum(share^2 * (theta[, name]^power - exact)^2))
    found <- parameter_draws(fit, name)^power
    expect_estimated_mean(found, exact, error, label = paste(name, power))
  }
}

test_that("the probabilities of the cells are the model's, and densities have their slopes, for every link", {
  for (link in names(links)) {
    st <- stat_crossprod(y ~ g + h, factor_levels)
    rel <- as_release(rep(4, length(st$components)), st, mech_gaussian(sd = 3), 30)
    model <- model_glm(family = links[[link]], prior = prior_normal(0.1, 1.5), factors = "independent")
    fit <- factor_fit(rel, model, chains = 1, iter = 40, warmup = 20)
    spec <- fit$problem$model
    theta <- matrix(c(0.3, -1, 0.8, 2, 0.4, -0.2, 1.1, 12, -9, 3, 0, 5, -3, 0.1), ncol = 2L)
    natural <- internal("reported")(fit$bound, theta)
    cells <- cells_with(factor_levels)
    found <- .Call(internal("ffi_model_cells"), spec, theta)
    expect_equal(rowSums(t(found)), c(1, 1))
    expect_equal(log(t(found)[1, ]), log_cells_of(natural, cells, factor_levels, links[[link]])[1, ], ignore_attr = TRUE)
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    set.seed(2)
    for (k in 1:3) {
      q <- stats::rnorm(7)
      expect_equal(at(q)[-1], difference_slopes(at, q, 1e-5), tolerance = 1e-6, label = link)
    }
  }
})

test_that("all tables of a few records, for every link, noise and kind of statistic", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("no", "yes"), g = c("a", "b", "c"))
  tables <- all_tables(5, 6)
  cells <- cells_with(levels)
  is <- function(v, l) 2 * (cells[[v]] == l) - 1 # rescaled
  products <- tables %*% cbind(is("y", "yes"), is("g", "b"), is("g", "c"), is("y", "yes") * is("g", "b"), is("y", "yes") * is("g", "c"))
  z <- c(2.6, 1.2, 2.9, 0.4, 2.2)
  cases <- list(list(links$logit, mech_laplace(scale = 0.8)), list(links$probit, mech_gaussian(sd = 0.9)), list(links$cloglog, mech_laplace(scale = 1.2)))
  for (case in cases) {
    st <- stat_crossprod(y ~ g, levels)
    rel <- as_release(z, st, case[[2]], 5)
    fit <- factor_fit(rel, model_glm(y ~ g, case[[1]], prior = prior_normal(0, 1.2), levels = prior_dirichlet(1.5)))
    scale <- unname(rel$scale)
    expect_prior_weighted(fit, tables, log_noise(case[[2]]$kernel, scale, z, products), cells, levels)
  }
})

test_that("unknown n and exact numbers, by enumeration", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("no", "yes"), g = c("a", "b"))
  cells <- cells_with(levels)
  counts <- stat_counts(~ g:y, levels)
  z <- c(1.4, 0.3, 2.2, 1.9)
  tables <- do.call(rbind, lapply(0:7, all_tables, k = 4L))
  rel <- as_release(z, counts, mech_laplace(scale = 1), NULL, neighbours = "add_remove")
  fit <- factor_fit(rel, model_glm(y ~ g), prior_n = prior_n("uniform", lower = 0, upper = 7))
  expect_prior_weighted(fit, tables, log_noise("absolute", rep(1, 4), z, tables), cells, levels)
  # how many there are of each g is exact
  tables <- all_tables(6, 4)
  rel <- as_release(list(noisy = z, exact = c(2, 4)), list(noisy = counts, exact = stat_counts(~ g, levels["g"])),
                    list(noisy = mech_laplace(scale = 1), exact = mech_exact()), 6)
  fit <- factor_fit(rel, model_glm(y ~ g))
  kept <- ifelse(rowSums(tables[, 1:2]) == 2, 0, -Inf)
  expect_prior_weighted(fit, tables, kept + log_noise("absolute", rep(1, 4), z, tables), cells, levels)
})

test_that("dependent factors: all tables of a few records, and the probabilities of their cells", {
  skip_on_cran() # takes long; `make test` runs it
  dummies <- list(y = c("no", "yes"), g = c("a", "b"), h = c("k", "l"))
  codes <- replace(dummies, "g", list(c("a", "b", "c")))
  for (st in list(stat_crossprod(y ~ g + h, dummies), stat_counts(~ g:h + y:g, codes))) {
    levels <- st$levels[c("y", "g", "h")]
    cells <- cells_with(levels)
    tables <- all_tables(3, nrow(cells))
    model <- model_glm(y ~ g + h, prior = prior_normal(0, 1))
    fit <- factor_fit(as_release(seq(-1.5, 3, length.out = length(st$components)), st, mech_laplace(scale = 1.5), n = 3), model)
    expect_true("concentration" %in% fit$bound$parameters)
    # what a record of each cell adds: to counts, or dummies on [-1, 1] and their products
    each <- if (inherits(st, "stat_counts")) {
      vapply(strsplit(st$components, ":"), function(name) rowSums(vapply(strsplit(name, "="), function(l) cells[[l[1L]]] == l[2L], logical(nrow(cells)))) == 2, logical(nrow(cells)))
    } else t(apply(cells, 1L, function(cell) {
      dummy <- unlist(lapply(names(levels), function(v) 2 * (levels[[v]][-1L] == cell[[v]]) - 1))
      of <- rep(names(levels), lengths(levels) - 1L)
      pairs <- utils::combn(length(dummy), 2L)
      c(dummy, (dummy[pairs[1L, ]] * dummy[pairs[2L, ]])[of[pairs[1L, ]] != of[pairs[2L, ]]])
    }))
    expect_prior_weighted(fit, tables, log_noise("absolute", rep(1.5, ncol(each)), fit$release$value, tables %*% each), cells, levels)
    theta <- .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), 2L)$theta
    found <- t(.Call(internal("ffi_model_cells"), fit$problem$model, theta))
    expect_equal(log(found), log_cells_of(internal("reported")(fit$bound, theta), cells, levels, links$logit), ignore_attr = TRUE)
    # densities have their slopes, but for what is drawn given the counts
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    own <- seq_len(1 + sum(lengths(levels[-1L]) - 1L))
    expect_equal(at(theta[, 1L])[1L + own], difference_slopes(at, theta[, 1L], 1e-5)[own], tolerance = 1e-6)
  }
})

test_that("the draws are those of augment, whatever the form of the response and of the release", {
  skip_on_cran() # takes long; `make test` runs it
  number <- list(y = c(0, 1), g = c("a", "b", "c"), h = c("k", "l"))
  cases <- list(list(stat_crossprod(y ~ g + h, number), mech_laplace(scale = 4), y ~ g + h, "dependent"),
                list(stat_crossprod(y ~ g + h, factor_levels), mech_gaussian(sd = 5), y ~ h + g, "dependent"),
                list(stat_counts(~ y:g + y:h, factor_levels), published(mech_laplace(scale = 3), threshold = 6), y ~ g + h, "independent"))
  for (case in cases) {
    set.seed(3)
    model <- model_glm(case[[3]], prior = prior_normal(0, 1), factors = case[[4]])
    rel <- simulate_release(model, case[[1]], case[[2]], n = 50)
    fast <- factor_fit(rel, model, iter = 1000)
    slow <- suppressWarnings(sample_posterior(rel, model, method = "augment", chains = 2, iter = 1000, warmup = 400, seed = 2))
    expect_identical(fast$bound$parameters, slow$bound$parameters)
    for (name in fast$bound$parameters) expect_agreement(parameter_draws(fast, name), parameter_draws(slow, name), label = name)
  }
})

test_that("millions of records with little noise: the coefficients of glm()", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(4)
  n <- 4e6
  shares <- prop.table(c(4, 2, 3, 1, 2, 5))
  cells <- expand.grid(h = factor_levels$h, g = factor_levels$g)
  eta <- -0.5 + 0.7 * (cells$g == "b") - 0.3 * (cells$g == "c") + 0.4 * (cells$h == "l")
  size <- stats::rmultinom(1, n, shares)[, 1]
  yes <- stats::rbinom(6, size, stats::plogis(eta))
  known <- stats::glm(cbind(yes, size - yes) ~ g + h, stats::binomial(), cells)
  st <- stat_counts(~ g:h:y, factor_levels)
  rel <- as_release(as.vector(rbind(size - yes, yes)), st, mech_gaussian(sd = 2), n)
  fit <- factor_fit(rel, model_glm(y ~ g + h), iter = 1500, warmup = 500)
  draws <- posterior::as_draws_matrix(fit$draws)[, names(stats::coef(known))]
  sd <- sqrt(diag(stats::vcov(known)))
  expect_lt(max(abs(colMeans(draws) - stats::coef(known)) / sd), 0.25)
  expect_lt(max(abs(apply(draws, 2, stats::sd) / sd - 1)), 0.12)
  expect_lt(max(acceptance(fit)$steps), 8) # the metric is the inverse of the information
})

test_that("calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_glm(prior = prior_normal(0, 1))
  cal <- calibrate(model, stat_crossprod(y ~ g + h, replace(factor_levels, "g", list(c("a", "b")))), mech_laplace(epsilon = 1), n = 60, replicates = 30, chains = 1, iter = 180,
                   warmup = 80, seed = 3, method = "collapse")
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("what follows from a fit; a chain cut in two", {
  skip_on_cran()
  rel <- as_release(c(20, 15, 9, 18, 8, 4, 11, 6, 3), stat_crossprod(y ~ g + h, factor_levels), mech_laplace(scale = 3), 45)
  ask <- function(iter) suppressWarnings(sample_posterior(rel, model_glm(), method = "collapse", chains = 2, iter = iter, warmup = 60, seed = 1))
  expect_extends(ask)
  fit <- ask(120)
  expect_identical(names(acceptance(fit)), c("chain", "mean", "pair", "swap", "contrast", "steps", "acceptance", "divergent", "deepest"))
  expect_output(print(acceptance(fit)), "coefficients Hamiltonian")
  expect_output(print(fit), "(exact)", fixed = TRUE)
  expect_identical(dim(as.matrix(predict(fit, data.frame(g = "b", h = c("k", "l")), interval = "credible"))), c(2L, 4L))
  expect_error(log_evidence(fit), class = "noiseaware_error")
  expect_identical(update(fit, iter = 120)$draws, fit$draws)
})

test_that("what is no table is refused, and left to others", {
  st <- stat_crossprod(y ~ g + x, list(y = c("no", "yes"), g = c("a", "b"), x = c(0, 5)))
  rel <- as_release(rep(3, length(st$components)), st, mech_laplace(scale = 3), 20)
  expect_error(sample_posterior(rel, model_glm(), method = "collapse"), class = "noiseaware_error_method")
  one <- as_release(rep(3, 9), stat_crossprod(y ~ g + h, factor_levels), mech_laplace(scale = 3), 20)
  known <- model_glm(y ~ g + h, prior = fixed(c(0.1, 0.2, 0.3, 0.4)))
  expect_error(sample_posterior(one, known, method = "collapse"), class = "noiseaware_error_method")
})

test_that("several levels: the probabilities of the cells are the model's, and densities have their slopes, with products and without", {
  skip_on_cran() # takes long; `make test` runs it
  # two cuts beyond the first
  levels <- replace(several_levels, "y", list(c("none", several_levels$y)))
  st <- stat_counts(~ y:g:h, levels)
  rel <- as_release(rep(2, 24), st, mech_gaussian(sd = 3), 48)
  cells <- cells_with(levels)
  for (name in names(level_families)) for (formula in list(y ~ g + h, y ~ g * h)) {
    family <- level_families[[name]]
    fit <- factor_fit(rel, model_glm(formula, family, prior = prior_normal(0.1), factors = "independent"), chains = 1, iter = 40, warmup = 20)
    spec <- fit$problem$model
    # far out, too
    for (spread in c(1, 12)) {
      set.seed(6)
      theta <- spread * .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), 2L)$theta
      found <- t(.Call(internal("ffi_model_cells"), spec, theta))
      expect_equal(rowSums(found), c(1, 1))
      if (spread > 1) next
      expect_equal(log(found), log_cells_of(internal("reported")(fit$bound, theta), cells, levels, family, formula[-2L]), ignore_attr = TRUE, label = name)
    }
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    for (k in 1:3) {
      q <- stats::rnorm(nrow(theta), sd = k / 2)
      expect_equal(at(q)[-1], difference_slopes(at, q, 1e-5), tolerance = 1e-6, label = name)
    }
  }
})

test_that("several levels: all tables of a few records", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = c("low", "mid", "high"), g = c("a", "b"))
  tables <- all_tables(4, 6)
  cells <- cells_with(levels)
  is <- function(v, l) 2 * (cells[[v]] == l) - 1 # rescaled
  g <- is("g", "b")
  products <- tables %*% cbind(is("y", "mid"), is("y", "high"), g, is("y", "mid") * g, is("y", "high") * g)
  z <- c(-0.5, 1.2, 0.9, 0.4, -1.1)
  cases <- list(list(level_families$logit, mech_laplace(scale = 0.8)), list(level_families$probit, mech_gaussian(sd = 0.9)),
                list(level_families$categorical, mech_laplace(scale = 1.2)))
  for (case in cases) {
    st <- stat_crossprod(y ~ g, levels)
    rel <- as_release(z, st, case[[2]], 4)
    fit <- factor_fit(rel, model_glm(y ~ g, case[[1]], prior = prior_normal(0, 1.2), levels = prior_dirichlet(1.5)), iter = 2600)
    expect_prior_weighted(fit, tables, log_noise(case[[2]]$kernel, unname(rel$scale), z, products), cells, levels)
  }
  # an unknown number of records, an exact count of a level, and no covariate
  counts <- stat_counts(~ y, levels["y"])
  tables <- do.call(rbind, lapply(1:7, all_tables, k = 3L))
  z <- c(1.4, 0.3, 2.2)
  rel <- as_release(list(noisy = z, exact = c("y=mid" = 1)), list(noisy = counts, exact = stat_subset(counts, "y=mid")),
                    list(noisy = mech_laplace(scale = 1), exact = mech_exact()), NULL, neighbours = "add_remove")
  fit <- factor_fit(rel, model_glm(y ~ 1, "categorical"), prior_n = prior_n("uniform", lower = 1, upper = 7))
  kept <- ifelse(tables[, 2] == 1, 0, -Inf)
  expect_prior_weighted(fit, tables, kept + log_noise("absolute", rep(1, 3), z, tables), data.frame(y = levels$y), levels["y"])
})

test_that("several levels: the draws are those of augment, whatever the form of the release", {
  skip_on_cran() # takes long; `make test` runs it
  cases <- list(list(stat_crossprod(y ~ g + h, several_levels), mech_laplace(scale = 4), y ~ g + h, "cumulative", "dependent"),
                list(stat_counts(~ y:g + y:h, several_levels), published(mech_laplace(scale = 3), threshold = 6), y ~ g * h, "categorical", "independent"))
  for (case in cases) {
    set.seed(3)
    model <- model_glm(case[[3]], case[[4]], factors = case[[5]])
    rel <- simulate_release(model, case[[1]], case[[2]], n = 45)
    fast <- factor_fit(rel, model, iter = 1000)
    slow <- suppressWarnings(sample_posterior(rel, model, method = "augment", chains = 2, iter = 1000, warmup = 400, seed = 2))
    expect_identical(fast$bound$parameters, slow$bound$parameters)
    for (name in fast$bound$parameters) expect_agreement(parameter_draws(fast, name), parameter_draws(slow, name), label = name)
  }
})

test_that("several levels: calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  for (name in c("logit", "categorical")) {
    cal <- calibrate(model_glm(family = level_families[[name]], prior = prior_normal(0, 1)), stat_crossprod(y ~ g, several_levels[1:2]), mech_laplace(epsilon = 2), n = 50,
                     replicates = 20, chains = 1, iter = 180, warmup = 80, seed = 4, method = "collapse")
    expect_false(any(cal$runs$failed))
    expect_gt(min(summary(cal)$p.value), 1e-4, label = name)
  }
})

test_that("several levels: millions of records with little noise have the coefficients of MASS::polr(), and log ratios of counts", {
  skip_if_not_installed("MASS")
  set.seed(4)
  cells <- cells_with(several_levels[c("y", "g")])
  count <- stats::rmultinom(1, 4e6, c(4, 2, 3, 1, 2, 5, 3, 3, 1))[, 1]
  rel <- as_release(count, stat_counts(~ g:y, several_levels[c("y", "g")]), mech_gaussian(sd = 2), sum(count))
  data <- transform(cells, y = factor(y, several_levels$y, ordered = TRUE), count = count)
  polr <- MASS::polr(y ~ g, data, weights = count, start = c(0, 0, -1, 1), Hess = TRUE)
  ratio <- log(matrix(count, 3))
  ratio <- sweep(ratio[-1, ], 2, ratio[1, ])
  near <- list(cumulative = c(polr$zeta, stats::coef(polr)), categorical = as.vector(t(cbind(ratio[, 1], ratio[, 2:3] - ratio[, 1]))))
  for (family in level_families[c("logit", "categorical")]) {
    fit <- factor_fit(rel, model_glm(y ~ g, family), chains = 1, iter = 1200, warmup = 400)
    draws <- posterior::as_draws_matrix(fit$draws)[, internal("coefficients_of")(fit$bound)]
    sd <- apply(draws, 2, stats::sd)
    expect_lt(max(abs(colMeans(draws) - near[[family$family]]) / sd), 0.25)
    expect_lt(max(acceptance(fit)$steps), 8) # the metric is the inverse of the information
    if (family$family == "cumulative") expect_equal(unname(sd), unname(sqrt(diag(stats::vcov(polr)))[c("low|mid", "mid|high", "gb", "gc")]), tolerance = 0.12)
  }
})
