# Shared by the tests of samplers: Monte Carlo comparisons and exact answers.

internal <- function(name) getFromNamespace(name, "noiseaware")

# the family object of a name that model_glm() takes
family_object <- function(name) internal("stats_family")(model_glm(family = name))

# another value for a constant of the package; the old one
set_constant <- function(name, value) {
  namespace <- asNamespace("noiseaware")
  old <- get(name, namespace)
  unlockBinding(name, namespace)
  assign(name, value, namespace)
  lockBinding(name, namespace)
  old
}

# a release of one quantile of values; their names are the persons
released_quantile <- function(x, probability, bounds, epsilon, steps = 10000, budget = NULL, neighbours = "replace") {
  data <- data.frame(x = unname(x))
  if (!is.null(names(x))) data$id <- names(x)
  release(data, stat_quantiles(~ x, bounds, probability, steps), mech_exponential(epsilon = epsilon), budget, neighbours)
}

# counts by moves, not by independent draws, whatever the size
by_moves <- function(code) {
  row <- set_constant("most_row", list(work = -1, size = 0, n = 0))
  recursion <- set_constant("most_recursion_work", -1)
  told <- set_constant("most_told", list(work = -1, size = 0, n = 0))
  on.exit({
    set_constant("most_told", told)
    set_constant("most_row", row)
    set_constant("most_recursion_work", recursion)
  })
  code
}

# debug_model() with so many replicates of the joint distribution in place of 2000: large faults show in few
with_trials <- function(replicates, code) {
  joint <- internal("trial_joint")
  on.exit(set_constant("trial_joint", joint))
  set_constant("trial_joint", `formals<-`(joint, value = replace(formals(joint), "replicates", replicates)))
  code
}

# code that may warn of doubtful fits: see setup.R
told <- function(code) {
  session <- internal("session")
  before <- session$quiet
  on.exit(session$quiet <- before)
  session$quiet <- FALSE
  code
}

# Slopes of the first number of at(q), by central differences; `step` one for all, or one a coordinate.
difference_slopes <- function(at, q, step) {
  step <- rep_len(step, length(q))
  vapply(seq_along(q), function(j) {
    e <- replace(numeric(length(q)), j, step[j])
    (at(q + e)[1L] - at(q - e)[1L]) / (2 * step[j])
  }, 0)
}

# Monte Carlo errors if all draws were as good as posterior ever counts them, S log10(S) of S draws: the real ones are larger. To count
# effective draws takes long, and is needed only for what is further away than these.
most_effective <- function(draws) length(draws) * log10(length(draws))
least_error <- list(
  mean = function(draws) stats::sd(draws) / sqrt(most_effective(draws)),
  sd = function(draws) {
    square <- (draws - base::mean(draws))^2
    sqrt((base::mean(square^2) - base::mean(square)^2) / most_effective(draws) / base::mean(square) / 4)
  },
  quantiles = function(draws, probabilities) {
    size <- length(draws)
    below <- most_effective(draws) * probabilities
    one_sd <- function(p, round) pmin(pmax(round(size * stats::qbeta(p, below + 1, most_effective(draws) - below + 1)), 1), size)
    draws <- sort(as.numeric(draws))
    (draws[one_sd(0.8413447, ceiling)] - draws[one_sd(0.1586553, floor)]) / 2
  })

# The mean of draws is `exact`, up to so many Monte Carlo errors, each `least` or more.
expect_near_mean <- function(draws, exact, errors = 5, least = NULL) {
  away <- abs(mean(draws) - exact)
  if (isTRUE(away < errors * least_error$mean(draws))) return(passed(away))
  expect_lt(away / max(posterior::mcse_mean(draws), least, na.rm = !is.null(least)), errors)
}

# |estimate - exact| in Monte Carlo standard errors, for means and for the
# shares below the exact quantiles. `draws` is iterations x chains.
expect_distribution <- function(draws, quantile, mean = NULL, probabilities = c(0.05, 0.25, 0.5, 0.75, 0.95), errors = 5) {
  draws <- as.matrix(draws)
  for (p in probabilities) expect_near_mean((draws <= quantile(p)) + 0, p, errors, least = 1e-4)
  if (!is.null(mean)) expect_near_mean(draws, mean, errors)
}

# The mean of draws is `exact`, known up to an error of its own.
expect_estimated_mean <- function(draws, exact, error, errors = 5, label = NULL) {
  away <- abs(mean(draws) - exact)
  if (isTRUE(away < errors * sqrt(least_error$mean(draws)^2 + error^2))) return(passed(away))
  expect_lt(away / sqrt(posterior::mcse_mean(draws)^2 + error^2), errors, label = label)
}

expect_same_mean <- function(draws, exact, errors = 5) expect_near_mean(as.matrix(draws), exact, errors)

# The mean of draws, a column for each chain, is that of `values` drawn from the prior, weighted by a density.
expect_weighted_mean <- function(draws, values, log_weight, errors = 5, label = NULL) {
  weight <- exp(log_weight - max(log_weight))
  expect_gt(sum(weight)^2 / sum(weight^2), 2000)
  exact <- sum(weight * values) / sum(weight)
  error <- sqrt(sum((weight * (values - exact))^2)) / sum(weight)
  expect_estimated_mean(draws, exact, error, errors, label)
}

# two samplers of one distribution: their means, and standard deviations, up to Monte Carlo error
expect_agreement <- function(a, b, spread = TRUE, errors = 5, label = NULL) {
  agree <- function(of, least, mcse) {
    away <- abs(of(a) - of(b))
    if (isTRUE(away < errors * sqrt(least(a)^2 + least(b)^2))) return(passed(away))
    expect_lt(away / sqrt(mcse(a)^2 + mcse(b)^2), errors, label = label)
  }
  agree(base::mean, least_error$mean, posterior::mcse_mean)
  if (spread) agree(stats::sd, least_error$sd, posterior::mcse_sd)
}

# The same for quantiles of all variables of two samplers' draws.
expect_same_quantiles <- function(a, b, probabilities = c(0.1, 0.5, 0.9), errors = 5) {
  both <- lapply(list(a, b), posterior::as_draws_array)
  stopifnot(dim(both[[1L]])[3L] == dim(both[[2L]])[3L])
  far <- vapply(seq_len(dim(both[[1L]])[3L]), function(j) {
    away <- Reduce(`-`, lapply(both, function(draws) stats::quantile(draws[, , j], probabilities, names = FALSE)))
    least <- lapply(both, function(draws) least_error$quantiles(draws[, , j], probabilities))
    !isTRUE(all(abs(away) < errors * sqrt(least[[1L]]^2 + least[[2L]]^2)))
  }, TRUE)
  if (!any(far)) return(passed(both))
  told <- function(draws) {
    as.matrix(posterior::summarise_draws(draws[, , far], ~ posterior::quantile2(.x, probabilities, names = FALSE),
                                         ~ posterior::mcse_quantile(.x, probabilities, names = FALSE))[-1])
  }
  of_a <- told(both[[1L]])
  of_b <- told(both[[2L]])
  k <- seq_along(probabilities)
  expect_lt(max(abs(of_a[, k] - of_b[, k]) / sqrt(of_a[, -k]^2 + of_b[, -k]^2)), errors)
}

parameter_draws <- function(fit, name) {
  matrix(posterior::as_draws_array(fit)[, , name], ncol = posterior::nchains(fit$draws))
}

# log density of a multivariate normal distribution
log_normal <- function(x, mean, cov) {
  as.numeric(-0.5 * determinant(2 * pi * cov)$modulus - 0.5 * sum((x - mean) * solve(cov, x - mean)))
}

# quantile function of a density given on a grid
grid_quantile <- function(grid, density) {
  cumulative <- cumsum((density[-1] + density[-length(density)]) / 2 * diff(grid))
  cumulative <- c(0, cumulative) / cumulative[length(cumulative)]
  function(p) stats::approx(cumulative, grid, p, ties = "ordered")$y
}

# log eta(z | s) of a mechanism, for rows of s
log_noise <- function(kernel, scale, z, s) {
  r <- sweep(s, 2, z)
  r <- sweep(r, 2, scale, "/")
  if (kernel == "absolute") -rowSums(abs(r)) else -rowSums(r^2) / 2
}

# released components of records, computed without the package's C code
r_components <- function(statistic, x) {
  columns <- statistic$columns
  v <- sapply(seq_len(nrow(columns)), function(j) {
    clamped <- pmin(pmax(x[, j], columns$lower[j]), columns$upper[j])
    if (statistic$rescale) 2 * (clamped - columns$lower[j]) / (columns$upper[j] - columns$lower[j]) - 1 else clamped
  })
  v <- matrix(v, ncol = nrow(columns))
  cbind(v, v[, statistic$pairs$first, drop = FALSE] * v[, statistic$pairs$second, drop = FALSE])
}

draw_stream <- function(stream, kind, n, parameter = 0) .Call(internal("ffi_rng_draw"), stream, kind, as.integer(n), parameter)

lm_problem <- function(p = 1, ...) {
  variables <- c("y", paste0("x", seq_len(p)))[seq_len(p + 1)]
  formula <- stats::as.formula(if (p == 0) "y ~ 1" else paste("y ~", paste(variables[-1], collapse = " + ")))
  stat_crossprod(formula, stats::setNames(rep(list(c(-10, 10)), p + 1), variables), ...)
}

# Joint-distribution test (Geweke 2004). Alternate the sampler with redrawing z: theta then follows its prior.
# With a warmup, moves are learned from a first release and then frozen; after that `kinds` of them are made in an
# iteration (in the order of enum pass_kind), half of the iterations keep half of the innovations, and a sweep is spread over two of them,
# whatever warmup found of their worth. `prepare` may change what else warmup learned.
geweke <- function(model, statistic, mechanism, n, iterations, passes, warmup = 0L, kinds = NULL, prepare = function(state, problem) state) {
  bound <- internal("bind_model")(model, statistic)
  rel <- simulate_release(model, statistic, mechanism, n = n)
  words <- internal("seed_words")()
  problem <- internal("augment_problem")(rel, bound, passes, words, 1)
  state <- internal("start_chain")(problem, bound, words, 1, NULL)
  if (warmup > 0L) {
    .Call(internal("ffi_run"), problem, state, .Call(internal("ffi_block"), problem, warmup, 0L), list(warmup = warmup, thin = 1))
    if (!is.null(kinds)) state$adapt[1:7] <- c(kinds, 1, 0.5, 2)
    state <- prepare(state, problem)
  }
  inside <- problem$where
  d <- length(inside)
  draws <- matrix(0, iterations, length(bound$parameters), dimnames = list(NULL, bound$parameters))
  noise <- noise_matrix(mechanism, rel$scale, d, iterations)
  run_on <- internal("ffi_run")
  run <- list(warmup = warmup, thin = 1)
  block <- .Call(internal("ffi_block"), problem, 1L, 1L) # filled again by each iteration
  for (i in seq_len(iterations)) {
    .Call(run_on, problem, state, block, run)
    draws[i, ] <- block$draws
    problem$released[inside] <- block$statistic[inside] + noise[, i]
    state$residual[inside] <- noise[, i] * (1 / problem$scale[inside])
  }
  draws
}

# components x draws
noise_matrix <- function(mechanism, scale, components, draws) {
  noise <- internal("add_noise")(mechanism, NULL, numeric(components * draws), runif(components * draws), rep(rep_len(scale, components), draws))
  matrix(noise, components, draws)
}

# The same for method "collapse", of one release. `prepare` may change what warmup learned.
geweke_totals <- function(model, statistic, mechanism, n, iterations, prepare = identity, fields = list()) {
  rel <- simulate_release(model, statistic, mechanism, n = n)
  bound <- internal("bind_model")(model, statistic)
  words <- internal("seed_words")()
  problem <- internal("collapse_problem")(rel, bound)
  problem$fields[names(fields)] <- fields
  state <- internal("start_chain")(problem, bound, words, 1, NULL)
  run <- list(warmup = 600, thin = 1)
  invisible(internal("run_blocks")(problem, state, 600, run, function(...) NULL))
  state <- prepare(state)
  scale <- problem$scale
  draws <- matrix(0, iterations, length(bound$parameters), dimnames = list(NULL, bound$parameters))
  noise <- noise_matrix(mechanism, scale, length(scale), iterations)
  run_on <- internal("ffi_run")
  block <- .Call(internal("ffi_block"), problem, 1L, 1L) # filled again by each iteration
  for (i in seq_len(iterations)) {
    .Call(run_on, problem, state, block, run)
    draws[i, ] <- block$draws
    problem$released <- block$statistic[seq_along(scale)] + noise[, i] # a table's counts come behind
  }
  draws
}

prior_draws <- function(model, statistic, draws = 20000L) {
  bound <- internal("bind_model")(model, statistic)
  internal("reported")(bound, .Call(internal("ffi_model_prior"), bound$spec, internal("new_stream")(), draws)$theta)
}

# draws of an unknown number of records against these sizes' probabilities p
expect_sizes <- function(n, sizes, p) {
  expect_same_mean(n, sum(p * sizes))
  for (share in c(0.1, 0.5, 0.9)) {
    at <- sizes[which(cumsum(p) >= share)[1]]
    expect_same_mean((n <= at) + 0, sum(p[sizes <= at]))
  }
  expect_true(all(n %in% sizes))
}

# draws x parameters against draws from the prior, at some of its quantiles
expect_prior <- function(draws, prior, probabilities = c(0.1, 0.5, 0.9)) {
  for (name in colnames(draws)) {
    at <- quantile(prior[, name], probabilities)
    for (j in seq_along(probabilities)) expect_near_mean((draws[, name] <= at[[j]]) + 0, probabilities[[j]])
  }
}

# discrete noise, by inversion
rdiscrete_laplace <- function(n, location = 0, scale) internal("qdiscrete_laplace")(runif(n), location, scale)
rdiscrete_gaussian <- function(n, location = 0, sd) internal("qdiscrete_gaussian")(runif(n), location, sd)

# Under a uniform prior many posteriors of tables can be written down.
flat_table <- function(...) model_table(..., prior = prior_dirichlet(1))
flat_categorical <- function(...) model_categorical(..., prior = prior_dirichlet(1))
flat_naive_bayes <- function(...) model_naive_bayes(..., prior = prior_dirichlet(1), conditional = prior_dirichlet(1))
