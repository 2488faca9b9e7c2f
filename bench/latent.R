# What latent variables could gain where coefficients walk given the records: in ordered and categorical responses and in
# counts with a shape (Albert & Chib 1993; Polson, Scott & Windle 2013). An update by latent variables draws coefficients that
# depend on those before it through the latent variables; at best it is a draw that does not depend on them at all. So:
#
#   gain in draws   effective draws an iteration of a chain that makes `MORE` further updates of the parameters after each iteration,
#                   so that coefficients are all but independent given the records, over those of the chain as it is;
#   walks           share of an iteration that its own update takes, mostly densities of all records;
#   most            gain in effective draws a second of such draws at no cost: gain in draws / (1 - walks);
#   likely          the same if they cost what the latent variables of a binary response take of the same covariates and records,
#                   in the package: one a record for ordered responses (truncated normals), for categorical ones one a record
#                   and level but one (Polya-Gamma), for counts one a record. It is too good: a Polya-Gamma variable of a count y is the
#                   sum of about y + shape of them, thresholds of ordered responses mix badly given latent variables (Cowles 1996),
#                   levels of categorical ones are drawn one given the others.
#
# Both chains go on from the same warmed-up state, with one round an iteration. Binary responses, which have latent variables, are
# there to compare: "walks" is their update by them. The last column, effective draws per update given records that stay (those
# where the chain ended), says how far updates are from independent.
#
#   Rscript bench/latent.R [quick]

if (!exists("bench_result")) source("bench/helpers.R")

MORE <- 12L

latent_records <- function(response, n) {
  set.seed(1)
  x <- matrix(stats::rnorm(3 * n), n, dimnames = list(NULL, paste0("x", 1:3)))
  eta <- drop(x %*% c(0.6, -0.4, 0.2))
  levels <- c("none", "some", "much", "most")
  y <- switch(response,
    binary = stats::runif(n) < stats::plogis(eta),
    ordered = cut(eta + stats::rlogis(n), c(-Inf, -1, 0.2, 1.2, Inf), levels),
    categorical = levels[max.col(cbind(0, eta, 0.3 - eta, 0.5 * eta - 0.5) - log(-log(stats::runif(4 * n))))],
    counts = stats::rnbinom(n, size = 2, mu = exp(0.5 + eta)))
  data.frame(y = y, x)
}

latent_bounds <- list(binary = c(FALSE, TRUE), ordered = c("none", "some", "much", "most"), categorical = c("none", "some", "much", "most"), counts = c(0, 20))

latent_problems <- list(
  list(response = "binary", family = stats::binomial("logit"), epsilon = 1),
  list(response = "binary", family = stats::binomial("probit"), epsilon = 10),
  list(response = "ordered", family = cumulative("logit"), epsilon = 1),
  list(response = "ordered", family = cumulative("logit"), epsilon = 10),
  list(response = "ordered", family = cumulative("probit"), epsilon = 1),
  list(response = "ordered", family = cumulative("probit"), epsilon = 10),
  list(response = "categorical", family = categorical(), epsilon = 1),
  list(response = "categorical", family = categorical(), epsilon = 10),
  list(response = "counts", family = negative_binomial(), epsilon = 1),
  list(response = "counts", family = negative_binomial(), epsilon = 10)
)

# `draws` of theta given the records of a chain, `steps` updates for each
updated <- function(bound, state, draws, steps) {
  records <- matrix(state$x, state$room)
  walk <- if (bound$walks > 0) state$update
  noiseaware:::gibbs(bound, records, nrow(records), list(theta = state$theta, state = state$rng, walk = walk), c(draws, steps))
}

# Draws of the parameters, each after an iteration and `more` updates.
latent_chain <- function(fit, chain, iterations, more) {
  state <- .Call(noiseaware:::ffi_duplicate, chain$state)
  schedule <- lapply(fit$run[c("warmup", "thin")], as.double)
  block <- .Call(noiseaware:::ffi_block, fit$problem, 1L, 1L)
  theta <- matrix(0, length(state$theta), iterations)
  for (k in seq_len(iterations)) {
    .Call(noiseaware:::ffi_run, fit$problem, state, block, schedule)
    if (more > 0) {
      after <- updated(fit$bound, state, 1L, more)
      state$theta <- as.double(after$theta)
      state$rng <- after$state
    }
    theta[, k] <- state$theta
  }
  noiseaware:::reported(fit$bound, theta)
}

# a fit whose iterations make one round each
latent_fit <- function(release, model, quick) {
  fit <- suppressWarnings(sample_posterior(release, model, method = "augment", chains = 4, iter = if (quick) 200 else 2500, warmup = if (quick) 100 else 1500, seed = 1))
  for (k in seq_along(fit$chains)) if (length(fit$chains[[k]]$state$rounds)) fit$chains[[k]]$state$rounds[1L] <- 1
  fit
}

# seconds of an update of the parameters
update_seconds <- function(fit, quick) {
  force(fit) # is not to be timed
  updates <- if (quick) 200L else 2000L
  seconds(updated(fit$bound, fit$chains[[1L]]$state, updates, 1L)) / updates
}

latent_release <- function(response, epsilon) {
  x <- paste0("x", 1:3)
  statistic <- stat_crossprod(stats::reformulate(x, "y"), c(list(y = latent_bounds[[response]]), stats::setNames(rep(list(c(-4, 4)), 3L), x)))
  simulate_release(latent_records(response, 1000), statistic, mech_laplace(epsilon = epsilon))
}

# what the latent variables of a binary response of the same link take, one a record, with the draw given them
latent_seconds <- function(link, quick) {
  family <- stats::binomial(if (link == "probit") "probit" else "logit")
  update_seconds(latent_fit(latent_release("binary", 1), model_glm(family = family), quick), quick)
}

latent_row <- function(problem, costs, quick) {
  link <- problem$family$link
  say("%s, %s link, epsilon %g", problem$response, link, problem$epsilon)
  release <- latent_release(problem$response, problem$epsilon)
  fit <- latent_fit(release, model_glm(family = problem$family), quick)
  coefficients <- grep("^(mean|cov)\\[", fit$bound$parameters, value = TRUE, invert = TRUE)
  iterations <- if (quick) 100L else 1000L
  effective <- function(more) {
    chains <- as_chains(lapply(fit$chains, function(chain) latent_chain(fit, chain, iterations, more)))
    vapply(coefficients, function(v) posterior::ess_bulk(posterior::extract_variable_matrix(chains, v)), 0) / (4 * iterations)
  }
  usual <- effective(0L)
  most <- effective(MORE)
  gain <- min(most) / min(usual)
  updates <- if (quick) 50L else 500L
  iteration <- seconds_extended(fit, updates, 3L) / (4 * updates)
  walks <- update_seconds(fit, quick) / iteration
  each <- if (problem$response == "categorical") 3 else 1 # levels but one
  latent <- each * costs[[if (link == "probit") "probit" else "logit"]] / iteration
  known <- updated(fit$bound, fit$chains[[1L]]$state, 4L * iterations, 1L)$theta[seq_along(coefficients), ]
  data.frame(response = problem$response, link = link, epsilon = problem$epsilon, `as it is` = min(usual), independent = min(most), `gain in draws` = gain,
             `mean gain` = exp(mean(log(most / usual))), walks = walks, most = gain / (1 - walks), likely = gain / (1 - walks + latent),
             `given records` = min(apply(known, 1L, posterior::ess_mean)) / ncol(known), check.names = FALSE)
}

bench_latent <- function(quick = FALSE) {
  costs <- list(logit = latent_seconds("logit", quick), probit = latent_seconds("probit", quick))
  rows <- do.call(rbind, lapply(latent_problems, latent_row, costs, quick))
  walked <- !rows$response == "binary"
  bench_result(
    list(figure("gain in effective draws a second by latent variables that cost nothing, at best", "ordered, categorical, counts", max(rows$most[walked])),
         figure("the same at the cost of a binary response's", "ordered, categorical, counts", max(rows$likely[walked]))),
    list("3 covariates, n = 1,000, Laplace noise, coefficients" = rows),
    c("As it is, independent: the least effective draws an iteration (bulk) of all coefficients, one round an iteration; mean gain: geometric, over coefficients.",
      "Binary responses have latent variables: there \"walks\" is the update by these, and \"given records\" what they make of the draws."))
}

run_alone(bench_latent)
