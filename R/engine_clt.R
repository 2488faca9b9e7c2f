#' Method "clt": a normal distribution for the statistic
#'
#' By the central limit theorem, the confidential totals are approximately normal, with a mean and a covariance determined by the model and the public bounds
#' (Bernstein & Sheldon 2018, 2019). Given this approximation, the noise is accounted for exactly. An iteration costs the same for a thousand records as for a
#' billion.
#'
#' @details
#' **Availability.** `subset(supported(), method == "clt")`: counts under models of factors; clamped or dropped powers under the Poisson, exponential and normal
#' models and any [model_expfam()]; cross-products under [model_lm()], also of a smooth, and, for numeric covariates, [model_glm()].
#'
#' **One iteration.** The parameters move, by random walks and by the proposals of Kamatani (2018), with the confidential totals integrated out (the published
#' values are normal given the parameters and the variances of the noise). Then the totals are drawn, and the parameters are updated given the totals. Laplace
#' noise is a scale mixture of normals; its variances are updated in the same way.
#'
#' Linear regressions with modelled covariates use a better algorithm (`"totals"`). The totals of the records before clamping have a known distribution. They
#' move by Hamiltonian Monte Carlo with the parameters integrated out, like the totals in method `"collapse"`. With factors, their cross-table moves in the same
#' way. Given the unclamped totals, the published totals are treated as normal, with the mean and covariance that result from clamping. So only the effect of
#' clamping is approximated; if no record lies outside the bounds, the algorithm is exact. Without factors, an unknown number of records is also sampled; it
#' must exceed the number of variables.
#'
#' In other regressions, with [covariate_moments()], or with factors and an unknown number of records, the totals are drawn first, and the parameters move with
#' the totals' standard normal innovations fixed. This is nearly as efficient as integrating them out, at a fraction of the cost. With more than 40 unknown
#' parameters, and for a binary response, a count or a smooth, the No-U-Turn sampler moves parameters and innovations jointly instead. It uses coordinates in which the
#' posterior is approximately standard normal. There is no other update, so the draws rely only on the normal approximation, as with `conjugate = FALSE`. Its
#' chains start at draws from a normal approximation. With a truncated prior (`within`) and up to 40 parameters the previous moves are used, because
#' trajectories would stop at the bounds. Without the No-U-Turn sampler, a chain without `init` starts at one of up to 200 draws from the prior, chosen by the
#' density of the release. The Gibbs sampler of the papers, `control = list(sampler = "gibbs")`, has neither the moves nor this choice of starting values, and
#' is slow if the noise is large. `control = list(conjugate = FALSE)` omits the update given the totals. Setting `conjugate` or `passes` selects a sampler other
#' than "totals".
#'
#' **Accuracy.** The table shows total variation distances to the exact posterior for Bernoulli records and epsilon = 1 (`inst/replication/clt_accuracy.R`; the
#' entries themselves have an error of 0.003):
#'
#' | n | share | default | `conjugate = FALSE` | Gibbs |
#' | ---: | ---: | ---: | ---: | ---: |
#' | 10 | 0.50 | 0.010 | 0.010 | 0.009 |
#' | 100 | 0.50 | 0.003 | 0.007 | 0.003 |
#' | 1,000 | 0.50 | 0.003 | 0.006 | 0.003 |
#' | 10,000 | 0.50 | 0.002 | 0.005 | 0.003 |
#' | 10 | 0.03 | 0.143 | 0.033 | 0.158 |
#' | 100 | 0.03 | 0.009 | 0.038 | 0.012 |
#' | 1,000 | 0.03 | 0.003 | 0.021 | 0.003 |
#' | 10,000 | 0.03 | 0.005 | 0.009 | 0.005 |
#'
#' The approximation is visibly wrong for a handful of records with a count near 0; use an exact method there.
#'
#' **Clamping** is accounted for in counts, in powers of one variable, and in regressions by "totals". In the latter, the expected totals of clamped records
#' follow from bivariate normal distributions (Mehler's series), with factors separately for each cell of their cross-table. The covariance of the clamped
#' totals given the unclamped totals is estimated once before the chains run, at the mean of a short run. There its variances are exact, and its correlations
#' come from simulated records. Directions with less than 2 per cent of the noise's variance are absorbed into the noise. An example has three covariates,
#' Laplace noise with epsilon = 10, 500 records and bounds at 2 or 1.5 standard deviations. There, 95 per cent intervals covered the truth in 93.0 to 97.0
#' per cent of 500 replicates. No test rejected uniform ranks, for any parameter or for the noise's log density (`bench/calibrate_engines.R`). The printed
#' fit shows the expected share of records outside the bounds, and says so if more than 30 per cent of the variables' values are outside: then use
#' `"augment"`.
#'
#' The other samplers for regressions ignore clamping. This includes regressions with [covariate_moments()], with binary responses or counts, and with factors
#' and an unknown number of records. More records make the error worse, not better. The table shows the coverage of 90 per cent intervals in 300 replicates of a
#' linear regression by `sampler = "noncentred"`, with Laplace noise and epsilon = 1 (`inst/replication/clt_calibration.R`). Values from 0.87 to 0.93 are within
#' Monte Carlo error.
#'
#' | | n = 20 | n = 200 | n = 2,000 |
#' | --- | ---: | ---: | ---: |
#' | slope, bounds 8, a prior that keeps records inside | 0.90 | 0.90 | 0.90 |
#' | sigma, the same | 0.91 | 0.91 | 0.92 |
#' | slope, bounds 8, a prior that expects one response in nine outside | 0.88 | 0.84 | 0.68 |
#' | sigma, the same | 0.89 | 0.85 | 0.73 |
#'
#' The printed fit of such a regression shows the posterior expectation of the share of records outside; if it says that the draws are not valid, use
#' `"augment"`.
#'
#' Normal draws are not whole numbers. With discrete noise at a scale of a few units, the imputed counts from [denoise()] can therefore differ from the truth by
#' a fraction of one; the parameters are not affected.
#'
#' **Many parameters.** Random walks mix more slowly as the number of unknown parameters grows; Hamiltonian Monte Carlo does not. The table shows the
#' smallest number of effective draws per second after warmup. It is for a regression with normal covariates of unknown mean and covariance, 100,000
#' records and epsilon = 1 (`bench/clt_regression.R`). Sampler "totals" takes somewhat longer than `"collapse"` (`bench/dimension.R`):
#'
#' | coefficients | unknown parameters | NUTS | noncentred | marginal | Gibbs | `"collapse"` |
#' | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
#' | 5 | 20 | | 8,700 | 490 | 200 | 5,800 |
#' | 10 | 65 | 260 | 390 | 1.6 | 2.2 | 190 |
#' | 20 | 230 | 41 | 0.6 | | | |
#'
#' With covariates known by their moments, only the coefficients and sigma move, which improves mixing. With factors and more than 1,000 unknown parameters, the
#' Gibbs sampler is the default.
#'
#' **Binary responses and counts.** With normal covariates the linear predictor is one normal variable. All joint moments of the response and the covariates
#' follow from four expectations over it (Stein's identity). They have a closed form for a probit link and are computed to rounding error by the trapezoidal
#' rule for the others. Counts need four such expectations for each of their powers up to the fourth, after clamping at the upper bound, which is thus accounted
#' for. Factors among the covariates are not supported: use `"augment"`.
#'
#' **Factors** among the covariates of a regression have moments that follow from the probabilities of their levels, which are unknown with the prior `levels`
#' of [model_lm()]. They are independent of the other covariates. With [covariate_moments()] factors are not supported, because their joint moments with the
#' other covariates would be needed.
#'
#' **Impossible draws.** Except in "totals", the normal approximation can draw totals that no records could have, such as a negative count. They are redrawn, up
#' to 20 times, and then moved to the nearest possible totals; the printed fit says how often. Noise below a millionth of the sampling standard deviation is
#' raised to that value, to avoid problems with a singular covariance (counts add up to n).
#'
#' @references
#' Bernstein, G. and Sheldon, D. (2018). Differentially private Bayesian
#' inference for exponential families. *Advances in Neural Information
#' Processing Systems* 31. \doi{10.48550/arXiv.1809.02188}
#'
#' Bernstein, G. and Sheldon, D. (2019). Differentially private Bayesian linear
#' regression. *Advances in Neural Information Processing Systems* 32.
#' \doi{10.48550/arXiv.1910.13153}
#'
#' Kamatani, K. (2018). Efficient strategy for the Markov chain Monte Carlo in high-dimension with
#' heavy-tailed target probability distribution. *Bernoulli* 24, 3711-3750.
#' @seealso [sample_posterior()]
#' @family methods
#' @examples
#' st <- stat_sums(~ x, bounds = list(x = c(0, 20)))
#' rel <- as_release(5.02e9, st, mech_laplace(epsilon = 0.01), n = 1e9)
#' sample_posterior(rel, model_poisson(), method = "clt", chains = 1, iter = 1000, seed = 1)
#' @name method_clt
NULL

# Method "clt": see src/clt/clt_chain.c. Here the moments of a pair are looked up, a
# problem is set up, and chains are run as those of "augment".

#' @export
engine_problem.engine_clt <- function(engine, release, bound, control, words, chains, prior_n, call) {
  check_noise_on_totals("clt", release, call)
  check_no_quantiles(release_parts(release), "clt", call)
  if ((release$n %||% size_range(prior_n)[2L]) < 2) {
    stop_classed("method", c("Method {.val clt} needs at least two records: it uses a normal approximation for a total.",
                             i = "Method {.val augment} is exact for any number."), call = call)
  }
  if (clt_moves_totals(release, bound, control, prior_n)) return(clt_totals_problem(release, bound, words, chains, prior_n, call))
  clt_problem(release, bound, control, words, chains, prior_n, call)
}

# Records that are normal given the parameters and their factors: their totals before bounds clamp them move as
# those of "collapse" do (src/totals/normal_totals_chain.c), and the normal distribution is that of what the
# bounds do.
clt_moves_totals <- function(release, bound, control, prior_n) {
  # what only another sampler has a use for asks for one
  default <- if (is.null(control$passes) && is.null(control$conjugate)) "totals" else "another"
  possible <- is.null(prior_n) || size_range(prior_n)[2L] >= least_size(bound)
  clt_takes_totals(bound) && possible && identical(control$sampler %||% default, "totals") &&
    (!has_queries(release) && !length(bound$levels) || collapse_serves(release, bound))
}

clt_totals_problem <- function(release, bound, words, chains, prior_n, call) {
  released_distribution(bound, if (is.null(prior_n)) release else without_size(release, 2), call) # or a refusal
  problem <- collapse_problem(release, bound, prior_n, call)
  problem[c("method", "engine", "sampler", "exact")] <- list("clt", "collapse", "totals", FALSE)
  problem$fields[c("clamp_weight", "spread")] <- list(1 / problem$scale, double())
  if (tells_scatter(problem, bound)) problem$fields$scatter <- 1
  problem$fields$bend <- collapse_bend(problem, bound, clamped = is.finite(problem$fields$lower))
  spread <- clt_spread(problem, bound, words, chains)
  problem$fields[names(spread)] <- spread
  problem
}

# How clamped totals vary given the totals of the same records before clamping: the covariance of the residuals of simulated records' contributions, with the variances
# that src/totals/clamped_moments.c knows. `spread`: its factor, in the directions in which its variance is more
# than a share `drowned` of the noise's; the rest widens the noise, `clamp_weight`.
clt_spread <- function(problem, bound, words, chains, drowned = 0.02) {
  complete <- clt_reference(problem, bound, words, chains)
  left <- .Call(ffi_collapse_clamped, problem, complete * problem$n)$left
  weight <- 1 / problem$scale
  noise <- noise_variance(problem$kernel, 1) / weight^2
  residuals <- function() with_seed(chain_seed(words, chains + 2L), clamping_residuals(problem, bound, complete))
  # that cells differ by more than what is known of them adds to what is left in each
  residual <- if (length(bound$levels)) residuals()
  if (!is.null(residual)) left <- pmax(left, problem$n * colMeans(residual^2))
  share <- left / noise
  rest <- share
  spread <- double()
  if (max(share) > drowned) {
    residual <- residual %||% residuals()
    unit <- sqrt(colSums(residual^2))
    cov <- crossprod(residual) * outer(sqrt(share) / unit, sqrt(share) / unit)
    cov[!is.finite(cov)] <- 0
    root <- suppressWarnings(chol(cov, pivot = TRUE, tol = drowned))
    rank <- attr(root, "rank")
    root <- root[seq_len(rank), order(attr(root, "pivot")), drop = FALSE]
    rest <- pmax(share - colSums(root^2), 0)
    spread <- as.double(t(root) * sqrt(noise))
  }
  list(clamp_weight = weight / sqrt(1 + rest), spread = spread)
}

# About what the records' means and products are, and their shares of the factors' cross-table, one
# record's share: from a short run. About one start in a thousand is caught far off, where all records lie beyond the bounds and the
# density is flat; there the released numbers are many times their noise away, `far` in its units. Then others are tried.
clt_reference <- function(problem, bound, words, chains, starts = 3L, far = 3) {
  runs <- list()
  for (k in seq_len(starts)) {
    runs[[k]] <- short_totals_run(problem, bound, words, chains + 1L + k)
    if (isTRUE(runs[[k]]$log_noise > -far * sum(problem$kernel != "exact"))) break
  }
  runs[[order(vapply(runs, `[[`, 0, "log_noise"), decreasing = TRUE)[1L]]]$complete
}

short_totals_run <- function(problem, bound, words, k, warmup = 200, visits = 20L) {
  state <- start_chain(problem, bound, words, k, NULL)
  go_on <- function(iterations) run_blocks(problem, state, iterations, list(warmup = warmup, thin = 1), function(...) NULL)
  go_on(warmup)
  complete <- log_noise <- 0
  for (visit in seq_len(visits)) {
    run <- go_on(5)
    complete <- complete + .Call(ffi_collapse_complete, problem, state) / (run$records[5L] %||% problem$n)
    log_noise <- log_noise + mean(run$log_noise)
  }
  list(complete = complete / visits, log_noise = log_noise / visits)
}

# Residuals of what simulated records contribute to the components on what is known of them: their
# cells in the factors' cross-table, each column for each level, and products of two columns. Columns
# count from their origin.
clamping_residuals <- function(problem, bound, complete) {
  columns <- nrow(bound$columns)
  dummy <- !is.na(bound$design$level)
  pairs <- which(lower.tri(diag(columns), TRUE), arr.ind = TRUE)
  product <- matrix(0, columns, columns)
  product[pairs] <- product[pairs[, 2:1]] <- complete[columns + seq_len(nrow(pairs))]
  design <- rbind(c(1, complete[seq_len(columns)][dummy]), cbind(complete[seq_len(columns)][dummy], product[dummy, dummy]))
  total <- rbind(complete[seq_len(columns)][!dummy], product[dummy, !dummy, drop = FALSE])
  slope <- solve_semi(design, total)
  cov <- product[!dummy, !dummy, drop = FALSE] - crossprod(total, slope)

  terms <- matrix(problem$fields$terms, 6L)
  # tails decide, so many; but the work is that of one matrix product of the components
  count <- max(8 * ncol(terms), min(20000, ceiling(2e8 / ncol(terms)^2)))
  root <- semi_root(cov)
  cells <- cell_dummies(bound)
  cell <- if (nrow(cells) > 1L) sample.int(nrow(cells), count, TRUE, complete[-seq_len(columns + nrow(pairs))]) else rep(1L, count)
  w <- matrix(0, count, columns)
  w[, dummy] <- cells[cell, ]
  w[, !dummy] <- cbind(1, w[, dummy]) %*% slope + tcrossprod(matrix(stats::rnorm(count * ncol(root)), count), root)
  origin <- collapse_origin(bound)
  bounds <- lapply(problem$fields[c("lower", "upper")], function(b) rep(b - origin, each = count))
  seen <- pmin(pmax(w, bounds$lower), bounds$upper)
  dim(seen) <- dim(w)
  i <- terms[1L, ] + 1
  j <- terms[2L, ] + 1
  scaled <- function(x, by) x * rep(by, each = count)
  value <- scaled(seen[, i], terms[4L, ]) + scaled(seen[, j], terms[5L, ]) + scaled(seen[, i] * seen[, j], terms[6L, ])
  own <- w[, !dummy, drop = FALSE]
  of_levels <- lapply(which(dummy), function(v) own * w[, v])
  both <- pairs[!dummy[pairs[, 1L]] & !dummy[pairs[, 2L]], , drop = FALSE]
  basis <- within_cells(do.call(cbind, c(list(own), of_levels, list(w[, both[, 1L]] * w[, both[, 2L]]))), cell)
  basis <- scale(basis, center = FALSE)
  basis <- basis[, colSums(is.finite(basis)) == count, drop = FALSE]
  value <- within_cells(value, cell)
  root <- suppressWarnings(chol(crossprod(basis), pivot = TRUE))
  kept <- attr(root, "pivot")[seq_len(attr(root, "rank"))]
  root <- root[seq_along(kept), seq_along(kept), drop = FALSE]
  basis <- basis[, kept, drop = FALSE]
  value - basis %*% backsolve(root, backsolve(root, crossprod(basis, value), transpose = TRUE))
}

# less the mean of each cell
within_cells <- function(x, cell) x - (rowsum(x, cell) / as.vector(table(cell)))[as.character(cell), , drop = FALSE]

# a^-1 b of a symmetric matrix, 0 where a row depends on those before
solve_semi <- function(a, b) {
  root <- suppressWarnings(chol(a, pivot = TRUE, tol = 1e-10 * max(diag(a))))
  kept <- attr(root, "pivot")[seq_len(attr(root, "rank"))]
  root <- root[seq_along(kept), seq_along(kept), drop = FALSE]
  out <- matrix(0, nrow(b), ncol(b))
  out[kept, ] <- backsolve(root, backsolve(root, b[kept, , drop = FALSE], transpose = TRUE))
  out
}

# The dummies of each cell of the factors' cross-table, in the order of src/totals/cross_table.c:
# the first factor's levels change fastest.
cell_dummies <- function(bound) {
  if (length(bound$levels) == 0L) return(matrix(0, 1L, 0L)) # all records are in one
  levels <- expand.grid(lapply(bound$levels, seq_along))
  do.call(cbind, lapply(seq_along(bound$levels), function(f) outer(levels[[f]], seq_along(bound$levels[[f]])[-1L], `==`) + 0))
}

# What the C code needs to know; see struct clt.
clt_problem <- function(release, bound, control, words, chains, prior_n, call) {
  size <- clt_size(release, prior_n)
  all <- names(release$value)
  release <- without_size(release, size$n)
  distribution <- released_distribution(bound, release, call)
  index <- distribution$index
  noise <- clt_noise(release_parts(release), call, index)
  moving <- length(bound$unknown)
  sampler <- control$sampler %||% clt_sampler(distribution, moving, bound_is_cut(bound))
  check_sampler_serves(sampler, distribution, call)
  problem <- list(method = "clt", prior_n = prior_n, model = bound$spec, moments = distribution$spec,
                  sampler = sampler, conjugate = as.double(has_update(distribution) && (sampler == "gibbs" || !isFALSE(control$conjugate))),
                  passes = as.double(control$passes %||% clt_passes(distribution, sampler, moving)), move_sd = prior_sd(bound, words, chains),
                  search = clt_search(distribution, sampler), where = seq_along(index), summed = match(names(release$value)[index], all))
  problem <- c(problem, noise, size)
  c(problem, clt_expectation(problem, bound, words, chains, call))
}

# n; where it is unknown about where it is, and what is released of it
clt_size <- function(release, prior_n) {
  if (is.null(prior_n)) return(list(n = as.double(release$n), size_prior = NULL))
  size <- typical_size(release, prior_n)
  parts <- Filter(function(p) inherits(p$statistic, "stat_size"), release_parts(release))
  list(n = max(size$n, 2), size_prior = size_prior_spec(prior_n), size_spread = size$sd, size_noise = clt_noise(parts))
}

# The shape of moves of more parameters can be neither learned nor stored.
most_moving <- 1000L

# "nuts" where many parameters move (bench/clt_regression.R), or no update is to be had; but its trajectories end at the bounds of a prior that is `cut` off,
# where random walks go on along them
clt_sampler <- function(distribution, moving, cut = FALSE) {
  walks <- isTRUE(distribution$innovations) && moving <= most_walked
  if (cut && walks) return("noncentred")
  if (!has_update(distribution)) return("nuts")
  if (moving > most_moving) return("gibbs")
  if (!isTRUE(distribution$innovations)) return("marginal")
  if (walks) "noncentred" else "nuts"
}

most_walked <- 40L

# Do the totals determine what the model's update needs?
has_update <- function(distribution) !isFALSE(distribution$update)

# Which totals are made of innovations, with gradients.
check_sampler_serves <- function(sampler, distribution, call) {
  if (sampler == "totals") {
    stop_classed("argument", c("{.arg control$sampler} can be {.val totals} only in a linear regression.",
                               i = paste("Its covariates must have a distribution, and factors need a known number of records and a cross-table that method",
                                         "{.val collapse} could move.")), call = call)
  }
  if (sampler %in% c("noncentred", "nuts") && !isTRUE(distribution$innovations)) {
    stop_classed("argument", "{.arg control$sampler} can be {.val {sampler}} only in a regression: other totals have no innovations.", call = call)
  }
  if (sampler == "gibbs" && !has_update(distribution)) {
    stop_classed("argument", "{.arg control$sampler} cannot be {.val gibbs} in a generalised linear model: its totals do not determine the update of the coefficients.",
                 call = call)
  }
}

# Moves in an iteration: bench/clt.R, bench/clt_regression.R. Where there are many components
# a marginal move costs as much as all else.
clt_passes <- function(distribution, sampler, moving) {
  size <- length(distribution$index)
  if (sampler == "nuts") return(1)
  if (sampler != "noncentred") return(if (size <= 8L) 3 else 1)
  # a few for each parameter, as long as they cost but a few Cholesky factors
  regressors <- length((distribution$spec$of %||% distribution$spec)$fields$scale)
  ceiling(min(3 * moving, 1000, max(50, size^3 / (6 * regressors^3 + moving^2 / 2))))
}

# Draws from the prior that a chain may start at: 200, fewer where an evaluation costs
# more (by R's integration routines, or many components).
clt_search <- function(distribution, sampler) {
  if (sampler == "gibbs") return(0)
  if (sampler == "nuts") return(200)
  floor(min(if (isTRUE(distribution$integrates)) 20 else 200, 5e7 / (2000 + length(distribution$index)^3)))
}

# the noise of every component
clt_noise <- function(parts, call = caller_env(), ...) {
  if (any(vapply(parts, function(p) p$mechanism$kernel == "density", TRUE))) {
    stop_classed("method", "Method {.val clt} needs noise from a built-in mechanism, not {.fn mech_custom}.", call = call)
  }
  check_no_exact(parts, "clt", call)
  for (p in parts) check_as_noise_left(p, "clt", call)
  noise_fields(parts, ...)
}

# Where the noise is below a millionth of the sampling standard deviation that
# the prior expects, it is raised to that: z could not be distinguished from a singular
# normal distribution.
# `drowned`: the noise is ten times what the totals differ by under the prior.
clt_expectation <- function(problem, bound, words, chains, call) {
  theta <- with_callback_seed(bound, chain_seed(words, chains + 1L), {
    .Call(ffi_model_prior, bound$spec, new_stream(words, chains + 1L), 5L)
  })$theta
  at <- seq_along(problem$released)
  # one covariance at a time: they may be large
  moments <- Filter(Negate(is.null), lapply(seq_len(ncol(theta)), function(k) {
    distribution <- .Call(ffi_clt_moments, problem$moments, theta[, k, drop = FALSE])[[1L]]
    if (!is.null(distribution)) list(mean = distribution$mean[at], variance = pmax(diag(distribution$cov)[at], 0)) # rounding, where it is none
  }))
  if (length(moments) == 0L) {
    stop_classed("numerical", c("The statistic has no finite moments under the prior.", i = "Is the prior's scale far from the bounds'?"),
                 call = call)
  }
  over_draws <- function(name, summary) apply(matrix(unlist(lapply(moments, `[[`, name)), length(at)), 1L, summary)
  variance <- problem$n * over_draws("variance", stats::median)
  spread <- problem$n * over_draws("mean", function(v) diff(range(v)))
  list(ridge = as.double(ifelse(problem$scale^2 < 1e-12 * variance, 1e-12 * variance, 0)),
       drowned = all(problem$scale > 10 * (spread + sqrt(variance))))
}

# Of queries, the moments of whole statistics and the queries of these: src/clt/linear_queries.c.
released_distribution <- function(bound, release, call) {
  release <- release_for(bound, release)
  if (!has_queries(release)) return(clt_distribution(bound, release, call))
  distribution <- clt_distribution(bound, whole_release(release), call)
  queries <- release_queries(release)
  # some statistics have no part in the distribution
  queries <- queries[queries$column %in% distribution$index, ]
  index <- unique(queries$row)
  fields <- list(first = c(0, cumsum(tabulate(match(queries$row, index)))), column = match(queries$column, distribution$index) - 1, weight = queries$weight)
  distribution$spec <- list(name = distribution$spec$name, of = distribution$spec, fields = lapply(fields, as.double))
  distribution$index <- index
  distribution
}

# The moments of a release under a model: `spec` for the C plug-in, and `index`,
# the release's components that it describes, in its order. Two things that it may say of
# itself: `innovations`, a total can be made of them; `integrates`, an evaluation is expensive.
clt_distribution <- function(bound, release, call) UseMethod("clt_distribution")

#' @export
clt_distribution.default <- function(bound, release, call) refuse_clt(bound, release, call)

# ---- which pairs it supports --------------------------------------------------------

# Classes of the statistics whose moments under the model are known. Each stands
# next to its clt_distribution().
clt_statistics <- function(model) UseMethod("clt_statistics")

#' @export
clt_statistics.default <- function(model) character()

# Do the moments leave out what bounds do to records?
clt_leaves_out_bounds <- function(bound) UseMethod("clt_leaves_out_bounds")

#' @export
clt_leaves_out_bounds.default <- function(bound) FALSE

# Are records normal given their factors, so that their totals can be moved? Bounds then are accounted for.
clt_takes_totals <- function(bound) UseMethod("clt_takes_totals")

#' @export
clt_takes_totals.default <- function(bound) FALSE
