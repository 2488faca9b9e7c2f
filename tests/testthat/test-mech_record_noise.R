# Noise on every record: exact answers where there are some, else importance sampling from the prior, whose weights are the
# density of the noisy records with the confidential ones integrated out.

noisy_data <- function(n, sd = c(y = 0, x = 0.7, w = 1.2), seed = 1) {
  set.seed(seed)
  x <- rnorm(n)
  w <- 0.5 * x + rnorm(n)
  true <- data.frame(y = 1 + 2 * x - w + rnorm(n), x = x, w = w, g = factor(sample(c("a", "b", "c"), n, TRUE), c("a", "b", "c")))
  true$y <- true$y + c(0, 1, -1)[true$g]
  seen <- true
  for (v in names(sd)) seen[[v]] <- true[[v]] + rnorm(n, sd = sd[[v]])
  list(true = true, seen = seen)
}

# as noisy records have factors
independent <- function(model) {
  model$factors <- "independent"
  model
}

noisy_release_of <- function(data, formula, sd, levels = NULL) as_release(data, stat_records(formula, levels = levels), mech_record_noise(sd = sd))

# log density of noisy records, a row of theta each, confidential ones integrated out
log_seen <- function(bound, theta, x, noise) {
  natural <- internal("reported")(bound, theta)
  names <- bound$columns$name[-1]
  p <- length(names)
  betas <- natural[, c("(Intercept)", names)]
  means <- natural[, paste0("mean[", names, "]"), drop = FALSE]
  variances <- natural[, "sigma"]^2
  covs <- natural[, outer(seq_len(p), seq_len(p), function(i, j) sprintf("cov[%s,%s]", names[pmax(i, j)], names[pmin(i, j)])), drop = FALSE]
  noise <- diag(noise^2)
  x <- t(x)
  vapply(seq_len(nrow(natural)), function(k) {
    slopes <- betas[k, -1]
    cov <- matrix(covs[k, ], p)
    across <- drop(cov %*% slopes)
    all <- rbind(c(sum(slopes * across) + variances[[k]], across), cbind(across, cov)) + noise
    centre <- c(betas[k, 1] + sum(slopes * means[k, ]), means[k, ])
    factor <- chol(all)
    -sum(backsolve(factor, x - centre, transpose = TRUE)^2) / 2 - ncol(x) * sum(log(diag(factor)))
  }, 0)
}

test_that("the density of parameters is that of the noisy records, confidential ones integrated out, and its slopes are those of differences", {
  sd <- c(y = 0.3, x = 0.8, w = 0.4)
  seen <- noisy_data(12, sd)$seen
  release <- noisy_release_of(seen, y ~ x + w, sd)
  fit <- suppressWarnings(sample_posterior(release, model_lm(prior = prior_normal(0, 2)), chains = 1, iter = 20, warmup = 10, seed = 1))
  at <- function(q) .Call(internal("ffi_collapse_density"), fit$problem, fit$chains[[1L]]$state, q)
  q <- .Call(internal("ffi_model_prior"), fit$problem$model, internal("with_seed")(1L, internal("new_stream")()), 3L)$theta
  exact <- log_seen(fit$bound, q, as.matrix(seen[c("y", "x", "w")]), sd) + .Call(internal("ffi_model_log_prior"), fit$problem$model, q)
  told <- apply(q, 2, at)
  expect_equal(diff(told[1L, ]), diff(exact))
  for (k in 1:3) expect_equal(told[-1L, k], difference_slopes(at, q[, k], 1e-5), tolerance = 1e-6)
})

test_that("with few records the posterior is that of the prior weighted by the density of the noisy records", {
  skip_on_cran() # takes long; `make test` runs it
  sd <- c(y = 0.3, x = 0.8)
  prior <- list(prior = prior_normal(0, 2), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(mean = 0, kappa = 1, df = 6, scale = 3))
  model <- do.call(model_lm, prior)
  for (n in 1:3) {
    data <- noisy_data(max(n, 2), sd)$seen[seq_len(n), ]
    statistic <- stat_crossprod(y ~ x, list(y = c(-6, 6), x = c(-4, 4)), rescale = FALSE)
    value <- internal("products_of_moments")(statistic, crossprod(cbind(1, as.matrix(data[c("y", "x")]))))
    release <- as_release(value, statistic, mech_record_noise(sd = sd), n)
    bound <- internal("bind_model")(model, statistic)
    theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("with_seed")(3L, internal("new_stream")()), 15000L)$theta
    log_weight <- log_seen(bound, theta, as.matrix(data[c("y", "x")]), unname(sd))
    natural <- internal("reported")(bound, theta)
    fit <- sample_posterior(release, model, chains = 4, iter = 800, seed = n)
    draws <- internal("parameter_matrix")(fit)
    bounded <- function(v) cbind(tanh(v[, c("(Intercept)", "x", "mean[x]")]), v[, c("sigma", "cov[x,x]")] / (1 + v[, c("sigma", "cov[x,x]")]))
    exact <- bounded(natural)
    got <- bounded(draws)
    for (name in colnames(exact)) expect_weighted_mean(matrix(got[, name], ncol = 4), exact[, name], log_weight, label = paste(name, "with", n))
  }
})

test_that("the totals drawn are those of records imputed one by one", {
  # the parameters are as good as known
  known <- matrix(c(2, 0.6, 0.3, 0.6, 1.5, -0.4, 0.3, -0.4, 1), 3)
  centre <- c(1, -1, 0.5)
  sd <- c(a = 0.7, b = 0, c = 1.5)
  model <- model_mvnormal(prior = list(mean = prior_niw(mean = centre, kappa = 1e14), cov = fixed(known)))
  for (n in c(1, 2, 4, 30)) {
    set.seed(n)
    seen <- matrix(rnorm(3 * n, centre, 1.5), n, byrow = TRUE, dimnames = list(NULL, names(sd)))
    statistic <- stat_crossprod(a ~ b + c, list(a = c(-9, 9), b = c(-9, 9), c = c(-9, 9)), rescale = FALSE)
    value <- internal("products_of_moments")(statistic, crossprod(cbind(1, seen)))
    fit <- sample_posterior(as_release(value, statistic, mech_record_noise(sd = sd), n), model, chains = 1, iter = 2600, warmup = 400, seed = 1)
    totals <- internal("parameter_matrix")(list(draws = denoise(fit)))
    noisy <- c(1, 3)
    # a and c given what is seen: mean and covariance of a record
    precision <- solve(known)[noisy, noisy] + diag(1 / sd[noisy]^2)
    cov <- solve(precision)
    given <- t(apply(seen, 1, function(r) {
      drop(centre[noisy] + known[noisy, ] %*% solve(known + diag(sd^2), r - centre))
    }))
    if (n == 1) given <- matrix(given, 1)
    b <- seen[, "b"]
    moments <- list(a = c(sum(given[, 1]), n * cov[1, 1]), c = c(sum(given[, 2]), n * cov[2, 2]), `a:b` = c(sum(given[, 1] * b), sum(b^2) * cov[1, 1]),
                    `c^2` = c(sum(given[, 2]^2 + cov[2, 2]), sum(2 * cov[2, 2]^2 + 4 * given[, 2]^2 * cov[2, 2])),
                    `a:c` = c(sum(given[, 1] * given[, 2] + cov[1, 2]),
                              sum(cov[1, 1] * cov[2, 2] + cov[1, 2]^2 + given[, 1]^2 * cov[2, 2] + given[, 2]^2 * cov[1, 1] + 2 * given[, 1] * given[, 2] * cov[1, 2])))
    for (name in names(moments)) {
      draws <- totals[, name]
      expect_lt(abs(mean(draws) - moments[[name]][1]) / sqrt(moments[[name]][2] / length(draws)), 5, label = paste(name, "with", n))
      spread <- (draws - moments[[name]][1])^2
      expect_lt(abs(mean(spread) - moments[[name]][2]) / (stats::sd(spread) / sqrt(length(draws))), 5, label = paste("variance of", name, "with", n))
    }
    expect_equal(unname(totals[1, c("b", "b^2")]), c(sum(b), sum(b^2)))
  }
})

test_that("the gradient is that of finite differences", {
  data <- noisy_data(50)$seen
  cases <- list(list(model = model_lm(), formula = y ~ x + w, levels = NULL),
                list(model = model_lm(prior = prior_student_t()), formula = y ~ x + g, levels = list(g = c("a", "b", "c"))),
                list(model = model_lm(sigma = fixed(1), prior = prior_normal()), formula = y ~ x, levels = NULL),
                list(model = model_lm(prior = prior_nig(mean = 1)), formula = y ~ g + w, levels = list(g = c("a", "b", "c"))),
                list(model = model_mvnormal(), formula = ~ y + x + w, levels = NULL))
  for (case in cases) {
    sd <- c(y = 0.5, x = 0.7, w = 1.2)[intersect(c("y", "x", "w"), all.vars(case$formula))]
    release <- noisy_release_of(data, case$formula, sd, case$levels)
    fit <- sample_posterior(release, case$model, chains = 1, iter = 60, warmup = 50, seed = 1)
    problem <- fit$problem
    state <- fit$chains[[1]]$state
    at <- function(q) .Call(internal("ffi_collapse_density"), problem, state, q)
    coordinates <- fit$bound$coordinates
    kept <- unlist(Map(function(offset, length, transform, known) if (!known && transform != "sticks") offset + seq_len(length),
                       coordinates$offset, coordinates$length, coordinates$transform, coordinates$known))
    q <- state$theta[kept] + rep_len(c(0.02, -0.03, 0.01), length(kept))
    expect_equal(at(q)[-1], difference_slopes(at, q, 1e-6), tolerance = 1e-5)
  }
})

test_that("without noise the draws are those of the records themselves", {
  data <- noisy_data(60)$true
  release <- noisy_release_of(data, y ~ x + g, c(x = 0), list(g = c("a", "b", "c")))
  model <- model_lm(prior = prior_normal(0, 3), sigma = prior_half_normal(2))
  fit <- sample_posterior(release, model, chains = 2, iter = 800, seed = 1)
  expect_identical(denoise(fit)[1, 1, , drop = TRUE], release$value)
  known <- nonprivate_posterior(data, independent(model), release$statistic, chains = 2, iter = 800, seed = 2)
  for (name in posterior::variables(fit$draws)) expect_agreement(parameter_draws(fit, name), parameter_draws(known, name), label = name)
  expect_output(print(acceptance(fit)), "exact: no variable has noise")
  expect_identical(range(fit$chains[[1]]$acceptance), c(1, 1))
})

test_that("much noise leaves slopes right that the noisy values attenuate", {
  data <- noisy_data(20000, c(y = 0, x = 1, w = 1.5))
  release <- noisy_release_of(data$seen, y ~ x + w + g, c(x = 1, w = 1.5), list(g = c("a", "b", "c")))
  fit <- sample_posterior(release, model_lm(), seed = 1)
  truth <- coef(lm(y ~ x + w + g, data$true))
  z <- (coef(fit) - truth) / sqrt(diag(vcov(fit)))
  expect_lt(max(abs(z)), 3.5)
  naive <- sample_posterior(release, model_lm(), method = "naive", seed = 1)
  expect_gt(abs(coef(naive)[["x"]] - truth[["x"]]) / sqrt(vcov(naive)["x", "x"]), 10)
  expect_identical(fit$method, "collapse")
  expect_true(fit$exact)
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.02)
})

test_that("ranks of truths are uniform", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_crossprod(y ~ x + w, list(y = c(-6, 6), x = c(-4, 4), w = c(-4, 4)), rescale = FALSE)
  study <- calibrate(model_lm(prior = prior_normal()), statistic, mech_record_noise(sd = c(y = 0.5, x = 1, w = 2)), n = 25, replicates = 22,
                     chains = 1, iter = 800, seed = 5)
  expect_gt(min(summary(study)$p.value) * nrow(summary(study)), 0.01)
  expect_false("log_eta" %in% summary(study)$variable)
})

test_that("a default prior is the same for noisy records, simulated ones and the records themselves", {
  skip_on_cran() # takes long; `make test` runs it
  statistic <- stat_crossprod(y ~ x, list(y = c(-6, 6), x = c(-4, 4)), rescale = FALSE)
  noise <- mech_record_noise(sd = c(x = 0))
  study <- function(method) calibrate(model_lm(), statistic, noise, n = 25, method = method, replicates = 22, chains = 1, iter = 800, seed = 5)
  # without noise both have the same posterior of the same records
  imputed <- study("collapse")$results
  known <- study("nonprivate")$results
  expect_identical(imputed$truth, known$truth)
  expect_lt(mean(abs(imputed$quantile - known$quantile)), 0.03)
})

test_that("a predictive picture shows no bounds, which are not those of the records", {
  fit <- sample_posterior(noisy_release_of(noisy_data(60)$seen, y ~ x + w, c(x = 0.7)), model_lm(), chains = 1, iter = 200, seed = 1)
  plot <- plot(fit, "predictive", covariate = "x")
  expect_identical(plot$labels$subtitle, "95% bands")
  expect_match(plot$labels$caption, "w held at the mean of the noisy values")
})

test_that("its totals have no limits, and no other method is named", {
  release <- noisy_release_of(noisy_data(40)$seen, y ~ x, c(x = 0.7))
  table <- as.data.frame(release)
  expect_true(all(is.na(c(table$lower, table$upper, table$noise_sd))))
  bound <- internal("bind_model")(model_lm(), release$statistic)
  expect_identical(internal("able_methods")(release, bound, list()), "collapse")
})

test_that("a run goes on as if it had not stopped", {
  release <- noisy_release_of(noisy_data(40)$seen, y ~ x + w, c(x = 0.7, w = 1.2))
  long <- sample_posterior(release, model_lm(), chains = 2, iter = 400, warmup = 200, seed = 1)
  short <- sample_posterior(release, model_lm(), chains = 2, iter = 300, warmup = 200, seed = 1)
  expect_identical(extend(short, 100)$draws, long$draws)
})

# ---- noisy records in, totals out -----------------------------------------------------------------

test_that("a release has the totals of noisy records, wherever these are", {
  data <- noisy_data(500)$seen
  levels <- list(g = c("a", "b", "c"))
  sd <- c(x = 0.7, w = 1.2)
  release <- noisy_release_of(data, y ~ x + w + g, sd, levels)
  x <- cbind(y = data$y, x = data$x, w = data$w, gb = data$g == "b", gc = data$g == "c")
  expect_equal(release$value[colnames(x)], colSums(x))
  expect_equal(release$value[["x:gc"]], sum(data$x * (data$g == "c")))
  expect_equal(release$value[["w^2"]], sum(data$w^2))
  expect_identical(release$n, 500)
  bounds <- release$statistic$columns
  expect_equal(bounds$upper[2] - bounds$lower[2], 6 * sqrt(mean((data$x - mean(data$x))^2) - 0.49))

  at <- 0
  chunks <- record_source(function() if (at < 500) data[(at <<- at + 125) + (-124:0), ])
  expect_equal(noisy_release_of(chunks, y ~ x + w + g, sd, levels), release)
  file <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(data, file, row.names = FALSE)
  expect_equal(noisy_release_of(record_source(file, rows = 90), y ~ x + w + g, sd, levels), release)
  expect_equal(noisy_release_of(as.matrix(data[c("y", "x", "w")]), y ~ x + w, sd), noisy_release_of(data, y ~ x + w, sd))

  path <- withr::local_tempfile(fileext = ".json")
  write_release(release, path)
  expect_equal(read_release(path), release)
})

test_that("noisy records are read from a database", {
  for (package in c("DBI", "RSQLite", "dbplyr", "dplyr")) skip_if_not_installed(package)
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con))
  data <- noisy_data(12000)$seen # several times what is read at once
  names(data)[2] <- "select"
  DBI::dbWriteTable(con, "noisy records", transform(data, g = as.character(g)))
  stored <- dplyr::tbl(con, "noisy records")
  levels <- list(g = c("a", "b", "c"))
  sd <- c(select = 0.7, w = 1.2)
  formula <- y ~ select + w + g
  expect_equal(noisy_release_of(stored, formula, sd, levels), noisy_release_of(data, formula, sd, levels))
  expect_equal(noisy_release_of(dplyr::filter(stored, w > 0), formula, sd, levels), noisy_release_of(data[data$w > 0, ], formula, sd, levels))
  expect_error(noisy_release_of(dplyr::select(stored, y, w), y ~ select, sd[1]), "Missing: `select`", class = "noiseaware_error_data")
  expect_error(noisy_release_of(dplyr::filter(stored, w > 1e6), formula, sd, levels), "at least one record", class = "noiseaware_error_data")
  DBI::dbExecute(con, "UPDATE `noisy records` SET w = NULL WHERE w > 1")
  expect_error(noisy_release_of(stored, formula, sd, levels), class = "noiseaware_error_missing")
  DBI::dbExecute(con, "DROP TABLE `noisy records`")
  expect_error(noisy_release_of(stored, formula, sd, levels), class = "noiseaware_error_database")
})

test_that("the prints say what it is", {
  data <- MASS::birthwt
  show(capture.output(print(stat_records(bwt ~ age + lwt))))
  release <- noisy_release_of(data, bwt ~ age, c(age = 2.5))
  show(capture.output(print(release)))
})

test_that("bad input is refused", {
  skip_on_cran()
  data <- noisy_data(30)$seen
  statistic <- stat_records(y ~ x)
  noise <- mech_record_noise(sd = c(x = 0.7))
  expect_error(mech_record_noise(), "sd.*must be given", class = "noiseaware_error_mechanism")
  expect_error(mech_record_noise(sd = "a"), class = "noiseaware_error_mechanism")
  bounded <- stat_records(~ x, bounds = list(x = c(-9, 9)))
  expect_error(as_release(data, bounded, mech_record_noise(sd = c(x = 1))), "leave `bounds` out", class = "noiseaware_error_mechanism")
  expect_error(mech_record_noise(sd = c(0.3, 0.2)), "without unique names", class = "noiseaware_error_mechanism")
  expect_error(mech_record_noise(sd = c(x = -1)), "non-negative", class = "noiseaware_error_mechanism")
  expect_error(mech_record_noise(sd = c(x = Inf)), class = "noiseaware_error_mechanism")
  expect_error(as_release(data, statistic, mech_record_noise(sd = c(z = 1))), "z.* is not", class = "noiseaware_error_mechanism")
  expect_error(as_release(data, statistic, mech_gaussian(sd = 1)), "mech_record_noise", class = "noiseaware_error_mechanism")
  expect_error(as_release(data, statistic, noise, n = 3), "determines? their number", class = "noiseaware_error_argument")
  expect_error(as_release(data["y"], statistic, noise), "Missing: `x`", class = "noiseaware_error_data")
  expect_error(as_release(3, statistic, noise), "noisy records", class = "noiseaware_error_data")
  expect_error(as_release(data[0, ], statistic, noise), "at least one row", class = "noiseaware_error_data")
  expect_error(as_release(transform(data, x = 1), statistic, noise), "`x` must differ", class = "noiseaware_error_data")
  expect_error(as_release(transform(data, x = c(1e200, -1e200, rep(0, nrow(data) - 2))), statistic, noise), "`x` must differ", class = "noiseaware_error_data")
  expect_error(as_release(transform(data, x = ifelse(x > 1, NA, x)), statistic, noise), "missing", class = "noiseaware_error_missing")
  expect_error(as_release(record_source(function() NULL), statistic, noise), "at least one record", class = "noiseaware_error_data")
  expect_error(release(data, statistic, noise), class = "noiseaware_error_mechanism")
  expect_error(release(data, statistic, mech_laplace(epsilon = 1)), "needs? .*bounds", class = "noiseaware_error_mechanism")
  bounded <- stat_crossprod(y ~ x, list(y = c(-6, 6), x = c(-4, 4)))
  expect_error(simulate_release(data, list(a = bounded, b = stat_sums(~ x, list(x = c(0, 1)))), list(a = noise, b = mech_laplace(epsilon = 1))),
               "only mechanism", class = "noiseaware_error_mechanism")
  expect_error(simulate_release(data, stat_sums(~ x, list(x = c(0, 1))), noise), "stat_crossprod", class = "noiseaware_error_mechanism")
  rel <- as_release(data, statistic, noise)
  for (method in c("augment", "clt")) expect_error(sample_posterior(rel, model_lm(), method), "noise on totals", class = "noiseaware_error_method")
  expect_error(sample_posterior(as_release(data, stat_records(~ x), noise), model_normal()), "normal given", class = "noiseaware_error_method")
  totals <- stat_crossprod(y ~ x, list(y = c(-6, 6), x = c(-4, 4)), rescale = FALSE)
  expect_error(as_release(rel$value, totals, noise, n = NULL), "number of noisy records", class = "noiseaware_error_argument")
  expect_error(as_release(rel$value[1:3], totals, noise, n = 30), "all totals", class = "noiseaware_error_value")
  expect_error(as_release(rel$value, totals, noise, n = 30, neighbours = "add_remove"), "no guarantee", class = "noiseaware_error_neighbours")
  expect_error(add_release(rel, rel), "only mechanism", class = "noiseaware_error_mechanism")
  expect_error(test_hypothesis(rel, "x"), "noise is on every record", class = "noiseaware_error_method")
  expect_error(log_evidence(sample_posterior(rel, model_lm(), chains = 1, iter = 100, seed = 1)), "noise is on every record", class = "noiseaware_error_method")
  expect_error(stan_program(rel, model_lm()), "noise is on every record", class = "noiseaware_error_method")
  expect_error(plot(rel), "no noise that could be drawn", class = "noiseaware_error_release")
  expect_error(sample_posterior(list(a = rel, b = noisy_release_of(data[-1, ], y ~ x, c(x = 0.7))), model_lm(), pool = "complete"),
               "cannot be pooled", class = "noiseaware_error_pool")
})

# ---- products and powers of noisy variables: the records are kept ---------------------------------

curved_data <- function(n, sd, seed = 1) {
  set.seed(seed)
  x <- rnorm(n, 0.5)
  z <- 0.5 * x + rnorm(n)
  true <- data.frame(y = 1 + x - z + 0.5 * x^2 + 0.7 * x * z + rnorm(n), x = x, z = z, g = factor(sample(c("a", "b"), n, TRUE), c("a", "b")))
  seen <- true
  for (v in names(sd)) seen[[v]] <- true[[v]] + rnorm(n, sd = sd[[v]])
  list(true = true, seen = seen)
}

curved_prior <- list(prior = prior_normal(0, 2), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(mean = 0, kappa = 1, df = 6, scale = 3))

# Log density of noisy records of y and x under rows of natural values, where y depends on x and its square: over the
# confidential x given the noisy one, normal, by quadrature.
log_curved <- function(natural, records, sd, nodes = seq(-7, 7, length.out = 71)) {
  variance <- natural[, "cov[x,x]"]
  left <- variance * sd[["x"]]^2 / (variance + sd[["x"]]^2)
  total <- numeric(nrow(natural))
  for (i in seq_len(nrow(records))) {
    centre <- left * (natural[, "mean[x]"] / variance + records$x[i] / sd[["x"]]^2)
    of_y <- 0
    for (node in nodes) {
      x <- centre + sqrt(left) * node
      of_y <- of_y + dnorm(node) * dnorm(records$y[i], natural[, "(Intercept)"] + natural[, "x"] * x + natural[, "I(x^2)"] * x^2,
                                         sqrt(natural[, "sigma"]^2 + sd[["y"]]^2))
    }
    total <- total + dnorm(records$x[i], natural[, "mean[x]"], sqrt(variance + sd[["x"]]^2), log = TRUE) + log(of_y * (nodes[2] - nodes[1]))
  }
  total
}

test_that("with squares the posterior of few records is the prior weighted by their density, by quadrature", {
  skip_on_cran() # takes long; `make test` runs it
  model <- do.call(model_lm, curved_prior)
  for (n in 2:3) for (sd in list(c(y = 0.5, x = 0.8), c(y = 0, x = 0.3))) {
    release <- noisy_release_of(curved_data(n, sd)$seen, y ~ x + I(x^2), sd)
    bound <- internal("bind_model")(model, release$statistic)
    theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("with_seed")(3L, internal("new_stream")()), 18000L)$theta
    natural <- internal("reported")(bound, theta)
    log_weight <- log_curved(natural, as.data.frame(release$records), sd)
    draws <- internal("parameter_matrix")(sample_posterior(release, model, chains = 2, iter = 800, seed = n))
    bounded <- function(v) cbind(tanh(v[, c("(Intercept)", "x", "I(x^2)", "mean[x]")]), v[, c("sigma", "cov[x,x]")] / (1 + v[, c("sigma", "cov[x,x]")]))
    exact <- bounded(natural)
    got <- bounded(draws)
    for (name in colnames(exact)) expect_weighted_mean(matrix(got[, name], ncol = 2), exact[, name], log_weight, label = paste(name, "with", n, "and sd", sd[["x"]]))
  }
})

test_that("products without noise give the draws of the records themselves", {
  data <- curved_data(60, c(x = 0))$true
  formula <- y ~ x * z + I(x^2) + g
  release <- noisy_release_of(data, formula, c(x = 0), list(g = c("a", "b")))
  model <- model_lm(prior = prior_normal(0, 3), sigma = prior_half_normal(2))
  fit <- sample_posterior(release, model, chains = 2, iter = 1000, seed = 1)
  known <- nonprivate_posterior(data, independent(model), release$statistic, chains = 2, iter = 1000, seed = 2)
  for (name in posterior::variables(fit$draws)) expect_agreement(parameter_draws(fit, name), parameter_draws(known, name), label = name)
})

test_that("noise on products leaves coefficients right that the noisy values attenuate", {
  skip_on_cran() # takes long; `make test` runs it
  sd <- c(x = 0.6, z = 0.6)
  formula <- y ~ x * z + I(x^2) + g
  data <- curved_data(1000, sd)
  release <- noisy_release_of(data$seen, formula, sd, list(g = c("a", "b")))
  fit <- sample_posterior(release, model_lm(), chains = 2, iter = 400, seed = 1)
  truth <- c("(Intercept)" = 1, x = 1, z = -1, "I(x^2)" = 0.5, gb = 0, "x:z" = 0.7)
  expect_lt(max(abs(coef(fit)[names(truth)] - truth) / sqrt(diag(vcov(fit)))[names(truth)]), 3.5)
  expect_gt(max(abs(coef(lm(formula, data$seen))[names(truth)] - truth) / sqrt(diag(vcov(fit)))[names(truth)]), 4)
  expect_true(fit$exact)
  expect_output(print(fit), "imputes")
  expect_output(print(acceptance(fit)), "proposals of each record")
  expect_identical(extend(sample_posterior(release, model_lm(), chains = 1, iter = 30, warmup = 20, seed = 1), 10)$draws,
                   sample_posterior(release, model_lm(), chains = 1, iter = 40, warmup = 20, seed = 1)$draws)
})

test_that("products of noisy variables need the records, and what cannot be served is refused", {
  data <- curved_data(40, c(x = 0.5))$seen
  noise <- mech_record_noise(sd = c(x = 0.5))
  totals <- as_release(data, stat_records(y ~ x + z), noise)
  expect_null(totals$records)
  expect_error(sample_posterior(totals, model_lm(y ~ x * z)), "need the noisy records", class = "noiseaware_error_method")
  kept <- as_release(data, stat_records(y ~ x * z), noise)
  expect_identical(unname(kept$records), unname(as.matrix(data[c("y", "x", "z")])))
  expect_identical(kept$value, totals$value)
  expect_error(write_release(kept, tempfile(fileext = ".json")), "cannot be written", class = "noiseaware_error_file")
  # without products the totals are sufficient
  expect_identical(sample_posterior(kept, model_lm(y ~ x + z), chains = 1, iter = 20, seed = 1)$draws,
                   sample_posterior(totals, model_lm(), chains = 1, iter = 20, seed = 1)$draws)
  expect_error(stat_records(y ~ x + offset(z)), "offset", class = "noiseaware_error_formula")
  expect_error(stat_records(y ~ x * z, bounds = list(y = 0:1, x = 0:1, z = 0:1)), class = "noiseaware_error_formula")
})

# ---- factors with randomised response as well -----------------------------------------------------

answered_prior <- list(prior = prior_normal(0, 2), sigma = prior_inverse_gamma(3, 2), covariates = prior_niw(mean = 0, kappa = 1, df = 6, scale = 3))
three <- list(g = c("a", "b", "c"))

# Log density of noisy records of y and x and answers g, given rows of natural values: over the levels by enumeration, over x by normal distributions.
log_answered <- function(natural, records, sd, channel) {
  variance <- natural[, "cov[x,x]"]
  total <- numeric(nrow(natural))
  for (i in seq_len(nrow(records))) {
    of_x <- variance + sd[["x"]]^2
    of_y <- natural[, "x"]^2 * variance + natural[, "sigma"]^2 + sd[["y"]]^2
    both <- natural[, "x"] * variance
    away <- records$x[i] - natural[, "mean[x]"]
    chance <- 0
    for (level in three$g) {
      mean <- natural[, "(Intercept)"] + natural[, "x"] * natural[, "mean[x]"] + if (level == "a") 0 else natural[, paste0("g", level)]
      answered <- channel[level, as.character(records$g[i])]
      chance <- chance + natural[, sprintf("prob[g=%s]", level)] * answered * dnorm(records$y[i], mean + both / of_x * away, sqrt(of_y - both^2 / of_x))
    }
    total <- total + dnorm(away, 0, sqrt(of_x), log = TRUE) + log(chance)
  }
  total
}

test_that("answers: with few records the posterior is the prior weighted by their density, levels enumerated", {
  skip_on_cran() # takes long; `make test` runs it
  model <- do.call(model_lm, answered_prior)
  sd <- c(y = 0.3, x = 0.8)
  records <- noisy_data(8, sd)$seen
  of_budget <- function(epsilon) matrix(1, 3, 3, dimnames = list(three$g, three$g)) + diag(exp(epsilon) - 1, 3)
  unequal <- rbind(c = c(a = 0.1, b = 0.3, c = 0.6), a = c(0.6, 0.4, 0), b = c(0.2, 0.7, 0.1))
  for (case in list(list(2, 0.7), list(3, 2), list(4, 1), list(3, NULL))) {
    n <- case[[1]]
    epsilon <- case[[2]]
    answers <- mech_randomized_response(epsilon = epsilon, matrix = if (is.null(epsilon)) unequal)
    channel <- if (is.null(epsilon)) unequal else of_budget(epsilon) / (exp(epsilon) + 2)
    release <- as_release(records[seq_len(n), ], stat_records(y ~ x + g, levels = three), mech_record_noise(sd = sd, answers = answers))
    bound <- internal("bind_model")(model, release$statistic)
    theta <- .Call(internal("ffi_model_prior"), bound$spec, internal("with_seed")(3L, internal("new_stream")()), 20000L)$theta
    natural <- internal("reported")(bound, theta)
    log_weight <- log_answered(natural, records[seq_len(n), ], sd, channel)
    draws <- internal("parameter_matrix")(sample_posterior(release, model, chains = 2, iter = 1000, seed = n))
    bounded <- function(v) cbind(tanh(v[, c("(Intercept)", "x", "gb", "gc", "mean[x]")]), v[, c("prob[g=a]", "prob[g=b]")], v[, c("sigma", "cov[x,x]")] / (1 + v[, c("sigma", "cov[x,x]")]))
    exact <- bounded(natural)
    got <- bounded(draws)
    for (name in colnames(exact)) expect_weighted_mean(matrix(got[, name], ncol = 2), exact[, name], log_weight, label = paste(name, "with", n))
  }
})

test_that("answers: true levels give the records' posterior, and false ones leave coefficients right", {
  skip_on_cran() # takes long; `make test` runs it
  data <- noisy_data(60)$true
  st <- stat_records(y ~ x + g, levels = three)
  model <- model_lm(prior = prior_normal(0, 3), sigma = prior_half_normal(2))
  release <- as_release(data, st, mech_record_noise(sd = c(x = 0), answers = list(g = mech_randomized_response(epsilon = 60))))
  fit <- sample_posterior(release, model, chains = 2, iter = 800, seed = 1)
  known <- nonprivate_posterior(data, independent(model), release$statistic, chains = 2, iter = 800, seed = 2)
  for (name in posterior::variables(fit$draws)) expect_agreement(parameter_draws(fit, name), parameter_draws(known, name), label = name)
  data <- noisy_data(3000, c(x = 0.6))
  data <- lapply(data, function(d) d[data$true$g == "a" | seq_len(3000) %% 4 == 0, ]) # levels are not equally frequent
  set.seed(4)
  lie <- stats::runif(nrow(data$seen)) < 0.5
  data$seen$g[lie] <- sample(three$g, sum(lie), TRUE) # the true level against another: (0.5 + 0.5 / 3) / (0.5 / 3)
  ask <- function(answers, iter = 400) sample_posterior(as_release(data$seen, st, mech_record_noise(sd = c(x = 0.6), answers = answers)), model_lm(), chains = 2, iter = iter, seed = 1)
  fit <- ask(mech_randomized_response(epsilon = log(4)))
  truth <- c("(Intercept)" = 1, x = 2 - 0.5, gb = 1, gc = -1) # y also depends on w, which has the slope 0.5 on x
  expect_lt(max(abs(coef(fit)[names(truth)] - truth) / sqrt(diag(vcov(fit)))[names(truth)]), 3.5)
  share <- parameter_draws(fit, "prob[g=a]")
  expect_lt(abs(mean(share) - mean(data$true$g == "a")) / stats::sd(share), 3.5)
  naive <- suppressWarnings(ask(NULL))
  expect_gt(max(abs(coef(naive)[names(truth)] - truth) / sqrt(diag(vcov(naive)))[names(truth)]), 4)
  expect_output(print(fit), "g by randomised response|factors by randomised response")
})

test_that("answers: the totals and the noise's energy that a chain keeps are those of the records that it keeps", {
  sd <- c(y = 0.3, x = 0.8)
  seen <- noisy_data(40, sd)$seen
  release <- as_release(seen, stat_records(y ~ x + g, levels = three), mech_record_noise(sd = sd, answers = mech_randomized_response(epsilon = 0.5)))
  fit <- suppressWarnings(sample_posterior(release, model_lm(), chains = 1, iter = 12, warmup = 6, seed = 1))
  store <- fit$chains[[1L]]$state$store
  totals <- length(store) - 1L - 3L * 40L
  records <- matrix(store[-seq_len(totals + 1L)], 40L) # y, x and the place of g's level
  level <- records[, 3L]
  expect_equal(store[seq_len(totals)], .Call(internal("ffi_model_complete"), fit$bound$spec, cbind(records[, 1:2], level == 1, level == 2)))
  answer <- match(seen$g, three$g) - 1
  expect_gt(sum(level != answer), 0)
  away <- (records[, 1:2] - as.matrix(seen[c("y", "x")])) / rep(sd, each = 40L)
  expect_equal(store[totals + 1L], sum(away^2) / 2 + 0.5 * sum(level != answer))
})

test_that("answers: a chain cut in two, and what cannot be served is refused", {
  data <- noisy_data(30)$seen
  st <- stat_records(y ~ x + g, levels = three)
  answers <- list(g = mech_randomized_response(epsilon = 1))
  release <- as_release(data, st, mech_record_noise(sd = c(x = 0.5), answers = answers))
  ask <- function(iter) sample_posterior(release, model_lm(y ~ x * g), chains = 1, iter = iter, warmup = 20, seed = 1)
  expect_identical(extend(ask(30), 10)$draws, ask(40)$draws)
  expect_error(check_of(ask(30)), "simulated again", class = "noiseaware_error_argument")
  refusals("mechanism", expression(mech_record_noise(sd = c(x = 1), answers = 3), mech_record_noise(sd = c(x = 1), answers = list(mech_randomized_response(epsilon = 1))),
                                   mech_record_noise(sd = c(x = 1), answers = list(g = mech_laplace(epsilon = 1))),
                                   as_release(data, st, mech_record_noise(sd = c(x = 1), answers = list(x = mech_randomized_response(epsilon = 1)))),
                                   as_release(data, st, mech_record_noise(sd = c(x = 1), answers = mech_randomized_response(matrix = cbind(diag(3), none = 0) |>
                                     `dimnames<-`(list(three$g, c(three$g, "none")))))),
                                   as_release(data, stat_records(y ~ x), mech_record_noise(sd = c(x = 1), answers = mech_randomized_response(epsilon = 1))),
                                   as_release(1, stat_crossprod(y ~ g, list(y = c(0, 1), g = three$g)), mech_record_noise(sd = c(y = 1), answers = answers), 9)))
  expect_error(write_release(release, tempfile(fileext = ".json")), "cannot be written", class = "noiseaware_error_file")
})

test_that("products of rescaled columns are those of the records, wherever the bounds are", {
  set.seed(3)
  data <- data.frame(y = runif(30, 2, 9), x = runif(30, -1, 5))
  for (rescale in c(TRUE, FALSE)) {
    statistic <- stat_crossprod(y ~ x, list(y = c(2, 9), x = c(-1, 5)), rescale = rescale)
    expect_equal(internal("products_of_moments")(statistic, crossprod(cbind(1, as.matrix(data)))), unname(internal("statistic_total")(statistic, data)))
  }
})

test_that("releases of noisy records without bounds are not simulated", {
  noise <- mech_record_noise(sd = c(x = 0.3))
  for (st in list(stat_records(y ~ x), stat_records(~ x), stat_records(y ~ x + I(x^2)))) {
    expect_error(simulate_release(data.frame(y = c(1, 2, 4), x = c(0, 1, 3)), st, noise), "cannot be simulated", class = "noiseaware_error_mechanism")
    expect_error(simulate_release(model_lm(y ~ x), st, noise, n = 20), "cannot be simulated", class = "noiseaware_error_mechanism")
  }
})
