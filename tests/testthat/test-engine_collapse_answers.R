# Records answered by randomised response, counted, by method "collapse": against quadrature, sums over all confidential records with
# the parameters drawn from their prior, and method "augment".

answer_levels <- list(y = c("low", "mid", "high"), g = c("a", "b"))

answers_of <- function(codes, levels, epsilon, formula = stats::reformulate(c("1", names(levels)[-1L]), names(levels)[1L])) {
  as_release(as.matrix(codes), stat_records(formula, levels = levels), mech_randomized_response(epsilon = epsilon), nrow(codes))
}

# by NUTS, or by independent draws, `family` "row", if that is expected
answers_fit <- function(release, model, ..., chains = 2, iter = 1000, warmup = 500, family = "answers") {
  ask <- function() suppressWarnings(sample_posterior(release, model, method = "collapse", chains = chains, iter = iter, warmup = warmup, seed = 1, ...))
  fit <- if (family == "row") ask() else by_moves(ask())
  expect_identical(fit$problem$family, family)
  expect_true(fit$exact)
  fit
}

# P(answer | level), a row an answer
response_matrix <- function(levels, epsilon) {
  m <- matrix(1, levels, levels)
  diag(m) <- exp(epsilon)
  m / (exp(epsilon) + levels - 1)
}

test_that("one factor without covariates: quadrature", {
  n <- c(12, 3, 9)
  epsilon <- 0.8
  codes <- data.frame(y = rep(0:2, n))
  grid <- expand.grid(mid = seq(-9, 9, length.out = 200), high = seq(-9, 9, length.out = 200))
  of_noise <- response_matrix(3, epsilon)
  prior <- dnorm(grid$mid, 0.2, 1.3, log = TRUE) + dnorm(grid$high, 0.2, 1.3, log = TRUE)
  p <- cbind(1, exp(as.matrix(grid))) / (1 + exp(grid$mid) + exp(grid$high))
  weight <- exp(prior + drop(log(p %*% t(of_noise)) %*% n) - 40)
  weight <- weight / sum(weight)
  fit <- answers_fit(answers_of(codes, answer_levels["y"], epsilon), model_glm(y ~ 1, "categorical", prior = prior_normal(0.2, 1.3)))
  for (v in c("mid", "high")) for (power in 1:2) {
    found <- parameter_draws(fit, sprintf("(Intercept)[%s]", v))^power
    expect_lt(abs(mean(found) - sum(weight * grid[[v]]^power)) / posterior::mcse_mean(found), 5)
  }
  # how many there are of each level
  level_given <- function(r) p * rep(of_noise[r, ], each = nrow(p)) / drop(p %*% of_noise[r, ])
  expected <- Reduce(`+`, lapply(1:3, function(r) n[r] * colSums(weight * level_given(r))))
  tables <- do.call(rbind, lapply(fit$chains, `[[`, "table"))
  expect_true(all(rowSums(tables) == sum(n)))
  sd <- apply(tables, 2, function(x) posterior::mcse_mean(matrix(x, ncol = 2)))
  expect_lt(max(abs(colMeans(tables) - expected) / sd), 5)
  # the log likelihood of each draw
  eta <- sapply(c("mid", "high"), function(v) as.vector(parameter_draws(fit, sprintf("(Intercept)[%s]", v))))
  of_draw <- cbind(1, exp(eta)) / (1 + rowSums(exp(eta)))
  expect_equal(unlist(lapply(fit$chains, `[[`, "log_noise")), drop(log(of_draw %*% t(of_noise)) %*% n))
})

test_that("densities have their slopes; the likelihood is that of mixed probabilities, for every family and tables without some cells", {
  set.seed(2)
  codes <- data.frame(y = sample(0:2, 40, TRUE), g = sample(0:1, 40, TRUE))
  rel <- answers_of(codes, answer_levels, 3)
  binary <- answers_of(data.frame(y = codes$y > 0, g = codes$g), list(y = c("no", "yes"), g = c("a", "b")), 2)
  zeros <- data.frame(y = "high", g = "a")
  cases <- list(list(rel, model_glm(family = "cumulative")), list(rel, model_glm(family = "cumulative_probit")), list(rel, model_glm(y ~ g, "categorical")),
                list(binary, model_logistic()), list(rel, model_table(~ y + g, prior_normal())), list(rel, model_table(~ y:g, prior_normal(), zeros = zeros)))
  for (case in cases) {
    fit <- answers_fit(case[[1]], case[[2]], chains = 1, iter = 20, warmup = 10)
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    table <- internal("as_table")(fit$bound)
    levels <- lengths(table$levels)
    mixing <- Reduce(kronecker, lapply(levels, response_matrix, epsilon = case[[1]]$mechanism$epsilon / 2))
    grid <- function(codes) drop(codes %*% c(levels[2], 1)) + 1
    answered <- matrix(case[[1]]$value, 40)[, match(names(levels), c("y", "g"))]
    own <- grid(table$parts[[1L]]$codes)
    q <- asplit(.Call(internal("ffi_model_prior"), fit$problem$model, internal("new_stream")(), 2L)$theta, 2)
    one <- function(q) {
      p <- numeric(prod(levels))
      p[own] <- .Call(internal("ffi_model_cells"), fit$problem$model, matrix(q))[, 1]
      sum(log((mixing %*% p)[grid(answered)]))
    }
    prior <- function(q) .Call(internal("ffi_model_log_prior"), fit$problem$model, matrix(q))
    for (k in 1:2) expect_equal(at(q[[k]])[-1], difference_slopes(at, q[[k]], 1e-5), tolerance = 1e-6)
    expect_equal(at(q[[1]])[1] - at(q[[2]])[1], one(q[[1]]) - one(q[[2]]) + prior(q[[1]]) - prior(q[[2]]), tolerance = 1e-9)
  }
})

test_that("a covariate: draws of the prior, weighted; answers of each factor with noise of their own", {
  skip_on_cran() # takes long; `make test` runs it
  codes <- data.frame(y = c(0, 2, 1, 2, 2, 0), g = c(0, 1, 1, 1, 0, 0))
  statistics <- list(response = stat_records(~ y, levels = answer_levels["y"]), group = stat_records(~ g, levels = answer_levels["g"]))
  rel <- as_release(list(response = codes$y, group = codes$g), statistics,
                    list(response = mech_randomized_response(epsilon = 2), group = mech_randomized_response(epsilon = 3)), 6)
  for (family in list("cumulative", "categorical")) {
    fit <- answers_fit(rel, model_glm(y ~ g, family, prior = prior_normal(0, 1.2)))
    set.seed(5)
    theta <- .Call(internal("ffi_model_prior"), fit$bound$spec, internal("new_stream")(), 20000L)$theta
    p <- t(.Call(internal("ffi_model_cells"), fit$problem$model, theta)) # g, then y the faster
    mixed <- p %*% t(kronecker(response_matrix(2, 3), response_matrix(3, 2)))
    weight <- exp(rowSums(log(mixed[, codes$g * 3 + codes$y + 1])))
    share <- weight / sum(weight)
    natural <- internal("reported")(fit$bound, theta)
    for (name in fit$bound$parameters) for (power in 1:2) {
      exact <- sum(share * natural[, name]^power)
      error <- sqrt(sum(share^2 * (natural[, name]^power - exact)^2))
      found <- parameter_draws(fit, name)^power
      expect_lt(abs(mean(found) - exact) / sqrt(posterior::mcse_mean(found)^2 + error^2), 5, label = paste(name, power))
    }
  }
})

test_that("the draws are those of augment", {
  skip_on_cran() # takes long; `make test` runs it
  set.seed(3)
  model <- model_glm(y ~ g, "cumulative")
  rel <- simulate_release(model, stat_records(y ~ g, levels = answer_levels), mech_randomized_response(epsilon = 5), n = 60)
  fast <- answers_fit(rel, model)
  slow <- suppressWarnings(sample_posterior(rel, model, method = "augment", chains = 2, iter = 2400, warmup = 500, seed = 2))
  expect_identical(fast$bound$parameters, slow$bound$parameters)
  for (name in fast$bound$parameters) expect_agreement(parameter_draws(fast, name), parameter_draws(slow, name), label = name)
})

test_that("calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  for (family in list("cumulative", "categorical")) {
    cal <- calibrate(model_glm(family = family, prior = prior_normal(0, 1)), stat_records(y ~ g, levels = answer_levels), mech_randomized_response(epsilon = 4),
                     n = 50, replicates = 22, chains = 1, iter = 500, warmup = 200, seed = 3)
    expect_false(any(cal$runs$failed))
    expect_gt(min(summary(cal)$p.value), 1e-4)
  }
})

test_that("auto takes it; a chain cut in two, prints, and what is refused", {
  skip_on_cran()
  set.seed(4)
  codes <- data.frame(y = sample(0:2, 30, TRUE), g = sample(0:1, 30, TRUE))
  rel <- answers_of(codes, answer_levels, 4)
  ask <- function(iter) suppressWarnings(sample_posterior(rel, model_glm(family = "categorical"), chains = 2, iter = iter, warmup = 100, seed = 1))
  fit <- ask(400)
  longer <- extend(ask(150), 250)
  expect_identical(longer$draws, fit$draws)
  expect_identical(longer$chains[[2]]$table, fit$chains[[2]]$table)
  expect_identical(longer$chains[[2]]$state, fit$chains[[2]]$state)
  expect_identical(fit$method, "collapse")
  expect_identical(names(acceptance(fit)), c("chain", "mean", "steps", "divergent", "deepest"))
  expect_output(print(acceptance(fit)), "answers   counted")
  expect_output(print(fit), "(exact)", fixed = TRUE)
  expect_error(denoise(fit), class = "noiseaware_error_argument")
  table <- suppressWarnings(sample_posterior(rel, model_table(~ y:g, prior_normal()), chains = 1, iter = 40, seed = 1))
  expect_true(all(rowSums(posterior::as_draws_matrix(denoise(table, ~ g))) == 30))
  beside <- as_release(list(answers = as.matrix(codes), counts = c(12, 20)), list(answers = stat_records(y ~ g, levels = answer_levels), counts = stat_counts(~ g, answer_levels["g"])),
                       list(answers = mech_randomized_response(epsilon = 4), counts = mech_laplace(epsilon = 1)), 30)
  refused <- function(rel, model) sample_posterior(rel, model, method = "collapse")
  expect_error(refused(beside, model_glm(y ~ g, "categorical")), "cannot combine", class = "noiseaware_error_method")
  twice <- as_release(list(a = as.matrix(codes), b = codes$g), list(a = stat_records(y ~ g, levels = answer_levels), b = stat_records(~ g, levels = answer_levels["g"])),
                      list(a = mech_randomized_response(epsilon = 4), b = mech_randomized_response(epsilon = 1)), 30)
  expect_error(refused(twice, model_glm(y ~ g, "categorical")), "twice", class = "noiseaware_error_method")
  expect_error(refused(rel, model_table(~ y + g)), "saturated", class = "noiseaware_error_method")
})

# ---- dependent factors -------------------------------------------------------------------

crossed_levels <- list(y = c("no", "yes"), g = c("a", "b"), h = c("k", "l"))

test_that("dependent factors: all confidential tables of a few records, shares and concentration by quadrature, by both methods", {
  skip_on_cran() # takes long; `make test` runs it
  codes <- cbind(y = c(1, 0, 1, 1), g = c(0, 0, 1, 1), h = c(0, 1, 1, 1))
  n <- nrow(codes)
  rel <- answers_of(codes, crossed_levels, 6)
  model <- model_logistic(prior = prior_normal(0.3, 1)) # dependent by default
  fits <- list(answers_fit(rel, model, iter = 2000), suppressWarnings(sample_posterior(rel, model, "augment", chains = 2, iter = 2800, warmup = 700, seed = 2)))
  cells <- expand.grid(h = 0:1, g = 0:1, y = 0:1)
  each <- sapply(1:n, function(i) Reduce(`*`, lapply(names(crossed_levels), function(v) response_matrix(2, 2)[codes[i, v] + 1, cells[[v]] + 1])))
  records <- as.matrix(expand.grid(rep(list(1:8), n)))
  tables <- t(apply(records, 1, tabulate, 8))
  key <- apply(tables, 1, paste, collapse = " ")
  density <- tapply(apply(records, 1, function(r) prod(each[cbind(r, 1:n)])), key, sum)
  tables <- tables[match(names(density), key), ]
  counts <- tables[, 1:4] + tables[, 5:8] # of (h, g)
  # the coefficients, which are independent of the rest given the table: draws of their prior
  set.seed(5)
  beta <- internal("reported")(fits[[1]]$bound, .Call(internal("ffi_model_prior"), fits[[1]]$bound$spec, internal("new_stream")(), 30000L)$theta)[, 1:3]
  eta <- beta %*% rbind(1, cells$g, cells$h)
  of_beta <- exp(plogis(sweep(eta, 2, 2 * cells$y - 1, `*`), log.p = TRUE) %*% t(tables))
  # shares of the levels and the concentration; the cells' probabilities are integrated out
  at <- (1:20 - 0.5) / 20
  grid <- expand.grid(g = at, h = at, a = exp(qnorm(at, log(4), 1.5)))
  weights <- with(grid, a * cbind((1 - g) * (1 - h), (1 - g) * h, g * (1 - h), g * h))
  of_grid <- sapply(seq_len(nrow(counts)), function(t) {
    exp(rowSums(lgamma(weights + rep(counts[t, ], each = nrow(grid))) - lgamma(weights)) + lgamma(grid$a) - lgamma(grid$a + n))
  })
  share <- density * colMeans(of_beta) * colSums(of_grid)
  share <- share / sum(share)
  mean_of <- function(values, of) drop(values %*% sweep(of, 2, colSums(of), `/`) %*% share)
  expected <- c(mean_of(t(beta), of_beta), mean_of(rbind(grid$g, grid$h, log(grid$a)), of_grid),
                vapply(1:4, function(c) sum(share * colSums(of_grid * (weights[, c] + rep(counts[, c], each = nrow(grid))) / (grid$a + n)) / colSums(of_grid)), 0))
  names <- c("(Intercept)", "gb", "hl", "base[g=b]", "base[h=l]", "concentration", sprintf("prob[g=%s:h=%s]", c("a", "a", "b", "b"), c("k", "l", "k", "l")))
  error <- c(apply(beta, 2, sd) / sqrt(nrow(beta)), numeric(7))
  for (fit in fits) for (k in seq_along(names)) {
    found <- parameter_draws(fit, names[k])
    if (names[k] == "concentration") found <- log(found)
    expect_lt(abs(mean(found) - expected[k]) / sqrt(posterior::mcse_mean(found)^2 + error[k]^2), 5, label = paste(fit$method, names[k]))
  }
  drawn <- do.call(rbind, lapply(fits[[1]]$chains, `[[`, "table"))
  error <- apply(drawn, 2, function(x) posterior::mcse_mean(matrix(x, ncol = 2)))
  of_table <- order(cells$g, cells$h, cells$y) # the model's: the response is the fastest
  expect_lt(max(abs(colMeans(drawn) - colSums(as.vector(share) * tables)[of_table]) / error), 5)
  # the log likelihood of each draw
  p <- sapply(names[7:10], function(v) as.vector(parameter_draws(fits[[1]], v)))
  eta <- sapply(names[1:3], function(v) as.vector(parameter_draws(fits[[1]], v))) %*% rbind(1, cells$g, cells$h)
  likelihood <- (p[, c(1:4, 1:4)] * plogis(sweep(eta, 2, 2 * cells$y - 1, `*`))) %*% each
  expect_equal(unlist(lapply(fits[[1]]$chains, `[[`, "log_noise")), rowSums(log(likelihood)), tolerance = 1e-9)
})

test_that("dependent factors: densities have their slopes in the coordinates that move, with few records and many", {
  levels <- list(y = c("lo", "mid", "hi"), g = c("a", "b", "c"), h = c("k", "l"))
  set.seed(2)
  for (case in list(list(5, "categorical", 1), list(400, "cumulative", 9))) {
    codes <- sapply(levels, function(l) sample(seq_along(l) - 1, case[[1]], TRUE))
    fit <- answers_fit(answers_of(codes, levels, case[[3]]), model_glm(family = case[[2]]), chains = 1, iter = 20, warmup = 10)
    expect_true(fit$bound$dependent)
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    size <- nrow(.Call(internal("ffi_model_prior"), fit$problem$model, internal("new_stream")(), 1L)$theta)
    for (scale in c(0.5, 2)) {
      q <- rnorm(size, 0, scale)
      expect_equal(at(q)[-1], difference_slopes(at, q, 1e-5), tolerance = 1e-6)
    }
  }
})

test_that("dependent factors: calibrated, and what follows from a fit", {
  skip_on_cran() # takes long; `make test` runs it
  model <- model_logistic(prior = prior_normal(0, 1))
  st <- stat_records(y ~ g + h, levels = crossed_levels)
  cal <- calibrate(model, st, mech_randomized_response(epsilon = 5), n = 80, replicates = 28, chains = 1, iter = 600, warmup = 300, seed = 3)
  expect_false(any(cal$runs$failed))
  expect_true("concentration" %in% summary(cal)$variable)
  expect_gt(min(summary(cal)$p.value), 1e-4)
  # many records, nearly without noise: the records' own cross-table and glm()
  set.seed(6)
  p <- c(0.35, 0.05, 0.1, 0.5)
  cell <- sample(0:3, 40000, TRUE, p)
  data <- data.frame(g = factor(c("a", "b")[1 + cell %/% 2]), h = factor(c("k", "l")[1 + cell %% 2]))
  data$y <- factor(rbinom(40000, 1, plogis(-0.5 + 1.5 * (data$g == "b") - (data$h == "l"))), labels = crossed_levels$y)
  known <- stats::glm(y ~ g + h, stats::binomial(), data)
  set.seed(7)
  ask <- function(iter) suppressWarnings(sample_posterior(rel, model_logistic(), chains = 2, iter = iter, warmup = 300, seed = 1))
  rel <- release(data, st, mech_randomized_response(epsilon = 24))
  fit <- ask(900)
  longer <- extend(ask(500), 400)
  expect_identical(longer$draws, fit$draws)
  expect_identical(longer$chains[[2]]$state, fit$chains[[2]]$state)
  found <- posterior::as_draws_matrix(fit$draws)
  expect_lt(max(abs(colMeans(found)[1:3] - stats::coef(known)) / sqrt(diag(stats::vcov(known)))), 0.5)
  expect_equal(mean(found[, "prob[g=b:h=k]"]), mean(data$g == "b" & data$h == "k"), tolerance = 0.02)
  new <- expand.grid(g = c("a", "b"), h = c("k", "l"))
  expect_equal(colMeans(rstantools::posterior_epred(fit, new)), unname(stats::predict(known, new, type = "response")), tolerance = 0.02)
  made <- synthesize(fit, m = 2, seed = 1)[[1L]]
  expect_equal(mean(made$g == "b" & made$h == "k"), mean(data$g == "b" & data$h == "k"), tolerance = 0.1)
})

# ---- any public matrix -------------------------------------------------------------------

# rows are levels; an answer that is no level, one that is never given at a level, unequal odds
channel3 <- rbind(low = c(mid = 0.2, low = 0.6, high = 0.1, refused = 0.1), high = c(0.1, 0, 0.6, 0.3), mid = c(0.5, 0.25, 0.05, 0.2))
channel2 <- rbind(a = c(a = 0.7, b = 0.3), b = c(a = 0.1, b = 0.9))
# each answer is more likely at one level at most; high is never a lie
told3 <- rbind(low = c(low = 0.6, mid = 0.1, high = 0, refused = 0.3), mid = c(0.2, 0.5, 0, 0.3), high = c(0.2, 0.1, 0.4, 0.3))
asked <- list(y = channel3[answer_levels$y, c(answer_levels$y, "refused")], g = channel2)

matrix_answers <- function(codes, channels, formula = stats::reformulate(names(codes))) {
  as_release(as.matrix(codes), stat_records(formula, levels = answer_levels[names(codes)]), mech_randomized_response(matrix = channels), nrow(codes))
}

# All confidential records, with the density of the answers given them: codes of cells, and the density
all_records <- function(codes, channels) {
  cells <- as.matrix(expand.grid(rev(lapply(channels, function(m) seq_len(nrow(m)) - 1)))[rev(seq_along(channels))])
  each <- sapply(seq_len(nrow(codes)), function(i) Reduce(`*`, lapply(names(channels), function(v) channels[[v]][cells[, v] + 1, codes[i, v] + 1])))
  records <- as.matrix(expand.grid(rep(list(seq_len(nrow(cells))), nrow(codes))))
  list(counts = t(apply(records, 1, tabulate, nrow(cells))), density = apply(records, 1, function(r) prod(each[cbind(r, seq_along(r))])))
}

test_that("a matrix: with few records the posterior is the mixture over all confidential records, by both methods", {
  skip_on_cran()
  codes <- data.frame(y = c(3, 0, 1, 2, 3, 1), g = c(0, 1, 1, 0, 1, 1))
  cases <- list(list(codes["y"], model_categorical(prior = prior_dirichlet(c(1, 2, 0.8))), c(1, 2, 0.8), "answers"),
                list(codes["g"], model_bernoulli(prior = prior_beta(2, 1)), c(1, 2), "row"),
                list(codes["y"], model_categorical(prior = prior_dirichlet(c(0.3, 2, 0.8))), c(0.3, 2, 0.8), "row", list(y = told3)),
                list(codes["y"], model_table(~ y, prior_dirichlet(0.2)), rep(0.2, 3), "row", list(y = told3)),
                list(codes[1:4, ], model_table(~ y:g, prior_dirichlet(0.7)), rep(0.7, 6), "answers"))
  for (case in cases) {
    variables <- names(case[[1]])
    channels <- if (length(case) > 4L) case[[5]] else asked[variables]
    rel <- matrix_answers(case[[1]], channels)
    exact <- all_records(case[[1]], channels)
    alpha <- case[[3]]
    weight <- exact$density * exp(rowSums(lgamma(sweep(exact$counts, 2, alpha, "+"))))
    weight <- weight / sum(weight)
    fits <- c(lapply(unique(c("answers", case[[4]])), function(family) answers_fit(rel, case[[2]], iter = 1300, family = family)),
              list(suppressWarnings(sample_posterior(rel, case[[2]], "augment", chains = 2, iter = 2600, seed = 2))))
    for (fit in fits) for (l in if (inherits(case[[2]], "model_bernoulli")) 2 else seq_along(alpha)) {
      draws <- parameter_draws(fit, tail(fit$bound$parameters, length(alpha))[if (length(fit$bound$parameters) == 1L) 1 else l])
      a <- alpha[l] + exact$counts[, l]
      b <- sum(alpha) + nrow(case[[1]]) - a
      cdf <- function(p) sum(weight * pbeta(p, a, b))
      expect_distribution(draws, function(p) uniroot(function(x) cdf(x) - p, 0:1, tol = 1e-12)$root, sum(weight * a / (a + b)))
    }
    for (fit in fits[-length(fits)]) {
      tables <- do.call(rbind, lapply(fit$chains, `[[`, "table"))
      error <- apply(tables, 2, function(x) posterior::mcse_mean(matrix(x, ncol = 2)))
      expect_lt(max(abs(colMeans(tables) - colSums(weight * exact$counts)) / error), 5)
    }
  }
})

test_that("a matrix: the density is that of mixed probabilities, its slopes too, for every model that is served", {
  set.seed(2)
  codes <- data.frame(y = sample(0:3, 40, TRUE), g = sample(0:1, 40, TRUE))
  rel <- matrix_answers(codes, list(g = channel2, y = channel3), y ~ g)
  ones <- matrix_answers(codes["y"], channel3)
  cases <- list(list(rel, model_glm(y ~ g, "cumulative")), list(rel, model_glm(y ~ g, "categorical")), list(rel, model_table(~ y:g, prior_normal())),
                list(rel, flat_table(~ y:g, zeros = data.frame(y = "high", g = "a"))), list(rel, model_logistic(g ~ y)), list(ones, flat_categorical()))
  for (case in cases) {
    fit <- answers_fit(case[[1]], case[[2]], chains = 1, iter = 20, warmup = 10)
    at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
    table <- internal("as_table")(fit$bound)
    channels <- asked[names(table$levels)]
    place <- function(codes, size) drop(codes %*% rev(cumprod(c(1, rev(size))))[-1L]) + 1
    answered <- place(as.matrix(codes[names(channels)]), vapply(channels, ncol, 1L))
    own <- place(internal("part_codes")(table$parts[[1L]], lengths(table$levels)), lengths(table$levels))
    q <- asplit(.Call(internal("ffi_model_prior"), fit$problem$model, internal("new_stream")(), 2L)$theta, 2)
    one <- function(q) {
      p <- numeric(prod(lengths(table$levels)))
      p[own] <- .Call(internal("ffi_model_cells"), fit$problem$model, matrix(q))[, 1]
      sum(log(drop(p %*% Reduce(kronecker, channels)))[answered])
    }
    prior <- function(q) .Call(internal("ffi_model_log_prior"), fit$problem$model, matrix(q))
    for (k in 1:2) expect_equal(at(q[[k]])[-1], difference_slopes(at, q[[k]], 1e-5), tolerance = 1e-6)
    expect_equal(at(q[[1]])[1] - at(q[[2]])[1], one(q[[1]]) - one(q[[2]]) + prior(q[[1]]) - prior(q[[2]]), tolerance = 1e-9)
  }
})

test_that("a matrix with equal odds is the same as a budget, and a singular one leaves the prior", {
  set.seed(6)
  codes <- data.frame(y = sample(0:2, 40, TRUE))
  same <- t(response_matrix(3, 0.9))
  dimnames(same) <- list(answer_levels$y, answer_levels$y)
  at <- function(rel, q) {
    fit <- answers_fit(rel, flat_categorical(), chains = 1, iter = 20, warmup = 10)
    .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
  }
  expect_equal(at(matrix_answers(codes, same), c(0.3, -1)), at(answers_of(codes, answer_levels["y"], 0.9), c(0.3, -1)), tolerance = 1e-12)
  # mid and high are answered alike: what they have together is known, how it is divided is not
  alike <- rbind(low = c(low = 0.8, other = 0.2), mid = c(0.1, 0.9), high = c(0.1, 0.9))
  rel <- as_release(c(low = 500, other = 800), stat_records(~ y, levels = answer_levels["y"]), mech_randomized_response(matrix = alike))
  draws <- internal("parameter_matrix")(answers_fit(rel, flat_categorical(), iter = 2400))
  share <- draws[, "prob[mid]"] / (draws[, "prob[mid]"] + draws[, "prob[high]"])
  expect_distribution(matrix(share, ncol = 2), qunif, 0.5)
})

# ---- independent draws: k-ary randomised response -------------------------------------------

test_that("k-ary: three levels by quadrature, whatever the budget, the number of records and the weights", {
  skip_on_cran() # takes long; `make test` runs it
  at <- (1:400 - 0.5) / 400
  grid <- expand.grid(first = qbeta(at, 0.6, 1), second = at) # the first one's share, and the second one's of what is left
  p <- cbind(grid$first, (1 - grid$first) * grid$second, (1 - grid$first) * (1 - grid$second))
  jacobian <- (1 - grid$first) / dbeta(grid$first, 0.6, 1)
  for (case in list(list(c(4, 0, 9), 0.5, c(0.6, 1, 1)), list(c(40, 25, 300), 3, c(0.6, 1, 2)), list(c(1300, 1250, 1100), 1, c(0.6, 3, 1)))) {
    answered <- case[[1]]
    alpha <- case[[3]]
    log_p <- drop(log(p %*% response_matrix(3, case[[2]])) %*% answered) + drop(log(p) %*% (alpha - 1)) + log(jacobian)
    weight <- exp(log_p - max(log_p))
    weight <- weight / sum(weight)
    rel <- as_release(stats::setNames(answered, answer_levels$y), stat_records(~ y, levels = answer_levels["y"]), mech_randomized_response(epsilon = case[[2]]))
    fit <- answers_fit(rel, model_categorical(prior = prior_dirichlet(alpha)), iter = 12000, warmup = 0, family = "row")
    draws <- sapply(answer_levels$y, function(l) parameter_draws(fit, sprintf("prob[%s]", l)), simplify = "array")
    for (k in 1:3) for (l in seq_len(k)) expect_same_mean(draws[, , k] * draws[, , l], sum(weight * p[, k] * p[, l]))
    for (k in 1:3) expect_same_mean(draws[, , k], sum(weight * p[, k]))
    likelihood <- drop(log(matrix(draws, ncol = 3) %*% response_matrix(3, case[[2]])) %*% answered)
    expect_equal(unlist(lapply(fit$chains, `[[`, "log_noise")), likelihood)
    expect_gt(posterior::ess_bulk(draws[, , 1]), 0.8 * 24000)
  }
})

test_that("k-ary: many levels, the draws are those of NUTS; a fit goes on, and prints", {
  skip_on_cran() # takes long; `make test` runs it
  levels <- list(y = sprintf("l%02d", 1:20))
  st <- stat_records(~ y, levels = levels)
  set.seed(8)
  share <- rgamma(20, 0.5)
  for (case in list(c(0.5, 300), c(2, 5000), c(5, 1e5))) {
    answered <- rmultinom(1, case[2], response_matrix(20, case[1]) %*% (share / sum(share)))[, 1]
    rel <- as_release(stats::setNames(answered, levels$y), st, mech_randomized_response(epsilon = case[1]))
    at_once <- answers_fit(rel, flat_categorical(), family = "row")
    moved <- answers_fit(rel, flat_categorical(), iter = 1800)
    for (name in at_once$bound$parameters) expect_agreement(parameter_draws(at_once, name), parameter_draws(moved, name), label = name)
    for (l in 1:20) expect_agreement(sapply(at_once$chains, function(c) c$table[, l]), sapply(moved$chains, function(c) c$table[, l]), label = levels$y[l])
    expect_identical(unique(unlist(lapply(at_once$chains, function(c) rowSums(c$table)))), case[2])
  }
  ask <- function(iter) suppressWarnings(sample_posterior(rel, flat_categorical(), chains = 2, iter = iter, warmup = 100, seed = 1))
  fit <- ask(400)
  longer <- extend(ask(150), 250)
  expect_identical(longer$draws, fit$draws)
  expect_identical(longer$chains[[2]]$table, fit$chains[[2]]$table)
  expect_output(print(acceptance(fit)), "independent draws, all counts at once")
  expect_output(print(fit), "(exact)", fixed = TRUE)
})

test_that("k-ary: what each answer tells, and what is left to moves", {
  st <- stat_records(~ y, levels = answer_levels["y"])
  family <- function(matrix, value = c(low = 30, mid = 10, high = 20)) {
    rel <- as_release(value, st, mech_randomized_response(matrix = matrix))
    suppressWarnings(sample_posterior(rel, flat_categorical(), chains = 1, iter = 20, warmup = 10, seed = 1))$problem$family
  }
  named <- function(matrix) matrix(matrix, 3, dimnames = answer_levels[c("y", "y")])
  # rows sum to 1 nearly
  expect_identical(family(named(matrix(0.1111115, 3, 3) + diag(0.666666, 3))), "row")
  expect_identical(family(named(c(0.6, 0.2, 0.2, 0.1, 0.5, 0.2, 0.3, 0.3, 0.6))), "answers")
  # two answers for one level, of which one was not given
  both <- cbind(named(c(0.6, 0.2, 0.2, 0.1, 0.5, 0.1, 0.2, 0.2, 0.6)), no = c(0.1, 0.1, 0.1))
  expect_identical(family(both, c(low = 30, mid = 10, high = 20, no = 3)), "row")
  both[1, c("low", "no")] <- c(0.4, 0.3)
  expect_identical(family(both, c(low = 30, mid = 10, high = 20, no = 3)), "answers")
  expect_identical(family(both, c(low = 30, mid = 10, high = 20, no = 0)), "row")
})

test_that("k-ary: calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate(flat_categorical(), stat_records(~ y, levels = answer_levels["y"]), mech_randomized_response(epsilon = 2), n = 60, replicates = 70,
                   chains = 1, iter = 700, warmup = 0, seed = 3)
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})

test_that("with a matrix it is calibrated", {
  skip_on_cran() # takes long; `make test` runs it
  cal <- calibrate(flat_table(~ y:g), stat_records(~ y + g, levels = answer_levels), mech_randomized_response(matrix = list(y = channel3, g = channel2)),
                   n = 40, replicates = 42, chains = 1, iter = 700, warmup = 200, seed = 3)
  expect_false(any(cal$runs$failed))
  expect_gt(min(summary(cal)$p.value), 1e-4)
})
