# Covariates that depend on each other: src/model/covariates_joint.c. Against enumeration of all tables, joint distributions with records and with totals,
# the limit of independence, natural values, refusals.

joint_bounds <- list(y = c(-2, 3), x = c(-1, 1), z = c(0, 2), g = c("a", "b", "c"), h = c("u", "v"))
joint_statistic <- function(formula = y ~ x + g + z + h) stat_crossprod(formula, joint_bounds[all.vars(formula)])
joint_lm <- function(...) model_lm(..., factors = "dependent")

# all ways to spread n over four cells
four_cells <- function(n) {
  tables <- as.matrix(expand.grid(rep(list(0:n), 4)))
  unname(tables[rowSums(tables) == n, ])
}

test_that("the hooks pass debug_model(), products of covariates and lone ones too", {
  skip_on_cran() # takes long; `make test` runs it
  models <- list(joint_lm(), joint_lm(y ~ x * g + z + h), joint_lm(covariates = list(prior_niw(), z = covariate_beta())),
                 joint_lm(covariates = list(mean = prior_niw(0.2, 2), cov = fixed(diag(c(1, 2))))), joint_lm(covariates = fixed(list(mean = c(0, 1), cov = diag(2)))))
  for (model in models) {
    result <- with_trials(1000L, debug_model(model, joint_statistic(), n = 200))
    expect_false(any(result$ok %in% FALSE))
  }
})

test_that("two factors have the posterior of all tables enumerated", {
  skip_on_cran()
  n <- 4
  tables <- four_cells(n) # a:u, b:u, a:v, b:v
  released <- c(gb = 1, hv = 2.5, `gb:hv` = 2)
  sd <- 0.8
  log_likelihood <- rowSums(vapply(1:3, function(j) dnorm(released[j], drop(tables %*% cbind(c(0, 1, 0, 1), c(0, 0, 1, 1), c(0, 0, 0, 1))[, j]), sd, log = TRUE),
                                   double(nrow(tables))))
  # a grid of the levels' shares and of the concentration: midpoints, and quantiles
  at <- (1:24 - 0.5) / 24
  grid <- expand.grid(g = at, h = at, a = exp(qnorm(at, log(4), 1.5)))
  shares <- with(grid, cbind((1 - g) * (1 - h), g * (1 - h), (1 - g) * h, g * h))
  log_weight <- vapply(seq_len(nrow(tables)), function(t) {
    rising <- lgamma(grid$a * shares + rep(tables[t, ], each = nrow(grid))) - lgamma(grid$a * shares)
    rowSums(rising) + lgamma(grid$a) - lgamma(grid$a + n) - sum(lfactorial(tables[t, ])) + log_likelihood[t]
  }, double(nrow(grid)))
  weight <- exp(log_weight - max(log_weight))
  expected <- vapply(1:4, function(c) {
    sum(weight * outer(grid$a * shares[, c], tables[, c], `+`) / (grid$a + n)) / sum(weight)
  }, 0)
  st <- stat_subset(stat_crossprod(y ~ g + h, list(y = c(-60, 60), g = c("a", "b"), h = c("u", "v")), rescale = FALSE), names(released))
  model <- joint_lm(prior = fixed(c(0, 1, 2)), sigma = fixed(1))
  for (method in c("collapse", "augment")) {
    fit <- sample_posterior(as_release(released, st, mech_gaussian(sd = sd), n), model, method = method, chains = 2, iter = 2500, warmup = 700, seed = 1)
    cells <- paste0("prob[", c("g=a:h=u", "g=b:h=u", "g=a:h=v", "g=b:h=v"), "]")
    for (c in 1:4) expect_same_mean(parameter_draws(fit, cells[c]), expected[c])
    expect_same_mean(parameter_draws(fit, "prob[g=b]"), expected[2] + expected[4])
    expect_same_mean(parameter_draws(fit, "base[g=b]"), sum(weight * grid$g) / sum(weight))
    expect_same_mean(parameter_draws(fit, "concentration")^-1, sum(weight / grid$a) / sum(weight))
  }
})

test_that("a number has the mean of its level: normal given each table", {
  skip_on_cran()
  n <- 4
  variance <- 1.5
  released <- c(x = 2, gb = 1.4, `x:gb` = 3)
  sd <- 0.7
  prior <- diag(variance / c(1 / 16, 0.04)) # of the mean of the first level, and of the effect
  exact <- vapply(0:n, function(count) {
    design <- rbind(c(n, count), c(count, count)) # the totals x and x:gb, given both
    cov <- design %*% prior %*% t(design) + variance * design + diag(sd^2, 2)
    gain <- prior %*% t(design) %*% solve(cov)
    values <- released[c("x", "x:gb")] - design %*% c(1, 0)
    effects <- c(1, 0) + drop(gain %*% values)
    share <- (1 + count) / (2 + n)
    log_weight <- log_normal(released[c("x", "x:gb")], drop(design %*% c(1, 0)), cov) + dnorm(released["gb"], count, sd, log = TRUE)
    c(log_weight, share, effects[2], effects[1] + share * effects[2])
  }, double(4))
  weight <- exp(exact[1, ] - max(exact[1, ])) # tables of n are equally likely
  st <- stat_subset(stat_crossprod(y ~ x + g, list(y = c(-60, 60), x = c(-40, 42), g = c("a", "b")), rescale = FALSE), names(released))
  model <- joint_lm(prior = fixed(c(0, 1, 2)), sigma = fixed(1), covariates = list(mean = prior_niw(1), cov = fixed(variance)))
  for (method in c("collapse", "augment")) {
    fit <- sample_posterior(as_release(released, st, mech_gaussian(sd = sd), n), model, method = method, chains = 2, iter = 5000, warmup = 1000, seed = 1)
    expect_same_mean(parameter_draws(fit, "prob[g=b]"), weighted.mean(exact[2, ], weight))
    expect_same_mean(parameter_draws(fit, "effect[x,g=b]"), weighted.mean(exact[3, ], weight))
    expect_same_mean(parameter_draws(fit, "mean[x]"), weighted.mean(exact[4, ], weight))
  }
})

test_that("the joint distribution with clamped records is right", {
  skip_on_cran()
  set.seed(3)
  st <- joint_statistic(y ~ x + g + h)
  model <- joint_lm(prior = prior_normal(0, 0.5), sigma = fixed(0.7), covariates = prior_niw(0.2, 2, 1, 6))
  exact <- prior_draws(model, st)
  expect_prior(geweke(model, st, mech_laplace(scale = 2), 8, 4200, NULL, warmup = 300L), exact)
  expect_prior(geweke(model, st, mech_laplace(scale = 2), 5, 1800, 2), exact)
})

test_that("a large concentration without effects is independence", {
  skip_on_cran()
  set.seed(4)
  st <- joint_statistic(y ~ x + g + h)
  release <- simulate_release(model_lm(factors = "independent"), st, mech_laplace(epsilon = 3), n = 40)
  bound <- internal("bind_model")(joint_lm(), st)
  bound$spec$fields[c("effect_kappa", "cells_log_mean", "cells_log_sd")] <- list(1e10, log(1e8), 1e-3)
  run <- list(chains = 2, iter = 1100, warmup = 500, thin = 1, seed = 1)
  shown <- c("x", "gb", "gc", "hv", "sigma", "mean[x]", "cov[x,x]", "prob[g=a]", "prob[g=b]", "prob[h=u]")
  for (method in c("augment", "collapse")) {
    draws <- lapply(list(bound, internal("bind_model")(model_lm(factors = "independent"), st)), function(b) {
      posterior::subset_draws(internal("sample_method")(method, release, b, run)$draws, variable = shown)
    })
    expect_same_quantiles(draws[[1]], draws[[2]])
  }
})

test_that("a dependence that records have is found", {
  skip_on_cran()
  set.seed(5)
  g <- factor(sample(c("a", "b", "c"), 300, TRUE), c("a", "b", "c"))
  h <- factor(ifelse(runif(300) < c(0.1, 0.5, 0.9)[g], "u", "v"), c("u", "v"))
  x <- rnorm(300, c(-0.5, 0, 0.5)[g], 0.2)
  data <- data.frame(y = rnorm(300, 0.5 + x + (h == "v"), 0.3), x = x, g = g, h = h)
  st <- joint_statistic(y ~ x + g + h)
  release <- simulate_release(data, st, mech_laplace(epsilon = 20))
  fit <- suppressWarnings(sample_posterior(release, joint_lm(), method = "augment", chains = 2, iter = 800, seed = 1))
  truth <- c(coef(lm(y ~ x + g + h, data)), "mean[x]" = mean(x), "prob[g=b:h=u]" = mean(g == "b" & h == "u"), "effect[x,g=c]" = unname(coef(lm(x ~ g + h))[3]))
  for (v in names(truth)) {
    draws <- parameter_draws(fit, v)
    expect_lt(abs(mean(draws) - truth[[v]]) / sd(draws), 4)
  }
})

test_that("gradients are those of finite differences", {
  set.seed(6)
  for (model in list(joint_lm(prior = prior_nig()), joint_lm(covariates = list(mean = prior_niw(), cov = fixed(diag(c(0.5, 0.7))))))) {
    release <- simulate_release(joint_lm(), joint_statistic(), mech_gaussian(sd = 0.1), n = 30)
    bound <- internal("bind_model")(model, release$statistic)
    problem <- internal("collapse_problem")(release, bound)
    state <- internal("start_chain")(problem, bound, c(1, 2), 1, NULL)
    density <- function(q) .Call(internal("ffi_collapse_density"), problem, state, q)
    q <- state$store[seq_len(4 * 3 + 6 + !inherits(model$prior, "prior_nig"))] + 0.01
    expect_equal(density(q)[-1], difference_slopes(function(q) density(q)[1], q, 1e-5), tolerance = 1e-5)
  }
})

test_that("a run goes on as if it had not stopped", {
  skip_on_cran()
  set.seed(7)
  release <- simulate_release(joint_lm(), joint_statistic(), mech_laplace(epsilon = 5), n = 30)
  for (method in c("augment", "collapse")) {
    expect_extends(function(iter) suppressWarnings(sample_posterior(release, joint_lm(), method = method, chains = 2, iter = iter, warmup = 200, seed = 7)))
  }
})

test_that("natural values are levels' and cells' probabilities and the mean over the cells; what is left out follows", {
  st <- stat_crossprod(y ~ x + g + h, list(y = c(0, 1), x = c(0, 1), g = c("a", "b"), h = c("u", "v")))
  bound <- internal("bind_model")(joint_lm(), st)
  some <- c("(Intercept)" = 1, x = 1, gb = 0, hv = 1, sigma = 1, "mean[x]" = 0.4, "cov[x,x]" = 1, "prob[g=a]" = 0.2, "prob[g=b]" = 0.8, "prob[h=u]" = 0.4,
            "prob[h=v]" = 0.6)
  all <- internal("reported")(bound, internal("bound_theta")(bound, some))[1, ]
  expect_equal(all[names(some)], some)
  expect_equal(unname(all[c("prob[g=b:h=u]", "base[h=v]", "effect[x,g=b]", "concentration")]), c(0.32, 0.6, 0, 4))
  cells <- c("prob[g=a:h=u]" = 0.1, "prob[g=b:h=u]" = 0.2, "prob[g=a:h=v]" = 0.3, "prob[g=b:h=v]" = 0.4)
  more <- c(some[1:7], cells, "effect[x,g=b]" = 2, "effect[x,h=v]" = -1)
  theta <- internal("bound_theta")(bound, more)
  all <- internal("reported")(bound, theta)[1, ]
  expect_equal(all[names(more)], more)
  expect_equal(all[["prob[g=b]"]], 0.6)
  records <- .Call(internal("ffi_model_records"), bound$spec, theta, 40000L, internal("new_stream")())$records
  expect_lt(abs(mean(records[, 2]) - 0.4), 0.03)
  expect_lt(abs(mean(records[records[, 3] == 1 & records[, 4] == 0, 2]) - (0.4 - (2 * 0.6 - 0.7) + 2)), 0.05)
  expect_error(simulate_release(joint_lm(), st, mech_laplace(epsilon = 1), n = 5, parameters = c(some, cells)), "sum of the probabilities",
               class = "noiseaware_error_argument")
})

test_that("what has independent factors alone says so, or refuses", {
  skip_on_cran()
  st <- joint_statistic(y ~ x + g)
  set.seed(8)
  release <- simulate_release(joint_lm(), st, mech_laplace(epsilon = 5), n = 50)
  expect_error(model_lm(factors = "no"), class = "noiseaware_error_prior")
  expect_error(sample_posterior(release, model_lm(factors = "dependent"), method = "clt"), "independent", class = "noiseaware_error_method")
  expect_error(sample_posterior(list(a = release, b = simulate_release(model_lm(), st, mech_laplace(epsilon = 5), n = 50)), model_lm(factors = "dependent"), pool = "complete"),
               "independent", class = "noiseaware_error_method")
  fit <- suppressWarnings(sample_posterior(release, model_lm(), method = "clt", chains = 1, iter = 200, seed = 1))
  expect_output(suppressWarnings(print(fit)), "assumed to be independent")
  expect_false(any(grepl("effect", posterior::variables(fit$draws))))
  own <- suppressWarnings(sample_posterior(release, model_lm(factors = "independent"), method = "clt", chains = 1, iter = 200, seed = 1))
  expect_identical(own$draws, fit$draws)
    expect_false(any(grepl("assumed", capture.output(suppressWarnings(print(own))))))
  within <- model_lm(covariates = prior_niw(within = TRUE), factors = "dependent")
  expect_error(internal("bind_model")(within, st), "within", class = "noiseaware_error_prior")
  many <- stats::setNames(rep(list(paste0("l", 1:20)), 4), letters[1:4])
  large <- stat_crossprod(y ~ a + b + c + d, bounds = c(list(y = c(0, 1)), many))
  expect_error(internal("bind_model")(model_lm(factors = "dependent"), large), "160,000 cells", class = "noiseaware_error_prior")
  expect_error(sample_posterior(as_release(release$value, st, mech_laplace(epsilon = 5), NULL), joint_lm()), "number of records(.|\n)*independent factors do not",
               class = "noiseaware_error_method")
})

# ---- starts --------------------------------------------------------------------------------

test_that("chains start with means between the bounds and without effects of factors", {
  bound <- internal("bind_settled")(joint_lm(prior = prior_nig()), joint_statistic(), "augment")
  drawn <- .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(c(1, 2)), 200L)$theta
  begun <- apply(drawn, 2L, internal("begin_within"), bound = bound)
  natural <- internal("reported")(bound, begun)
  expect_true(all(natural[, grep("^effect", colnames(natural))] == 0))
  expect_equal(natural[, "mean[x]"], pmin(pmax(drawn[bound$coordinates$offset[bound$coordinates$block == "mean"] + 1L, ], -1), 1))
  expect_equal(range(natural[, "mean[z]"]), c(0, 2))
  same <- setdiff(seq_len(nrow(drawn)), unlist(Map(function(offset, length) offset + seq_len(length), bound$coordinates$offset, bound$coordinates$length)[
    bound$coordinates$block %in% c("mean", "effect")]))
  expect_identical(begun[same, ], drawn[same, ])
  free <- internal("bind_settled")(model_lm(prior = prior_nig()), stat_crossprod(y ~ x, joint_bounds[1:2]), "augment")
  expect_identical(internal("begin_within")(free, drawn[1:4, 1]), drawn[1:4, 1])
})

test_that("a factor and two numbers, one with its square, clamped: chains meet within warmup", {
  skip_on_cran()
  set.seed(1)
  n <- 300
  woman <- runif(n) < 0.46
  educ <- round(pmin(pmax(rnorm(n, 13, 2.6), 2), 18))
  exper <- pmin(pmax(rnorm(n, 17 + 2 * woman, 12), 0), 55)
  data <- data.frame(wage = exp(0.6 + 0.09 * educ + 0.035 * exper - 0.0005 * exper^2 - 0.25 * woman + rnorm(n, 0, 0.43)), educ, exper, sex = c("m", "f")[woman + 1])
  st <- stat_crossprod(log(wage) ~ educ + exper + I(exper^2) + sex, list(wage = c(1, 45), educ = c(2, 18), exper = c(0, 55), sex = c("m", "f")))
  fit <- suppressMessages(suppressWarnings(sample_posterior(simulate_release(data, st, mech_laplace(epsilon = 20)), model_lm(), iter = 1400, seed = 1)))
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.05)
})
