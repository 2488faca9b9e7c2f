# The evidence of a release under a model of normal records, by bridge sampling over their totals with the parameters
# integrated out (vignette "Algorithms", "collapse"): src/totals/normal_totals_chain.c has the density, up to constants that are here.

totals_evidence <- function(fit, draws, seed, call) {
  problem <- fit$problem
  places <- totals_places(fit, draws)
  at <- fit$chains[[1L]]$state
  bridged <- with_seed(seed, bridge_mixture(places, function(q) apply(q, 1L, function(x) .Call(ffi_collapse_density, problem, at, x)[1L])))
  value <- bridged$value + log_totals_constant(fit$bound, problem$n) + log_kernel_constant(problem, fit$release, call)
  new_evidence(value, bridged$error, join_notes(totals_note(fit), bridged$note))
}

# A fit that has a density: the fit itself, or for "augment" another of the same; for "clt" with a latent cross-table one
# that leaves clamping out.
density_fit <- function(engine, fit, seed, call) UseMethod("density_fit")

#' @export
density_fit.engine <- function(engine, fit, seed, call) check_totals_problem(fit, call)

#' @export
density_fit.engine_clt <- function(engine, fit, seed, call) fit

#' @export
density_fit.engine_clt_totals <- function(engine, fit, seed, call) {
  if (length(fit$bound$levels) == 0L) return(check_totals_problem(fit, call))
  cli::cli_inform(paste("There is no density to integrate for totals together with a cross-table of factors:",
                        "the evidence is computed by method {.val clt}, which then ignores clamping."), class = "noiseaware_message_evidence")
  run_clt(fit$release, fit$bound, seed, call)
}

# Of the same model and release, by another method.
#' @export
density_fit.engine_augment <- function(engine, fit, seed, call) {
  release <- fit$release
  bound <- fit$bound
  of_totals <- without_refusal({
    check_totals(release, bound, call)
    collapse_distribution(release, bound, check = TRUE)
  })
  other <- if (of_totals) run_totals(release, bound, totals_method(release, bound), seed, call) else {
    if (!clt_serves(release, bound)) check_totals(release, bound, call) # says why
    run_clt(release, bound, seed, call)
  }
  # of one variable only "clt" by its moments knows of the bounds
  if (inherits(engine_of(other), "engine_collapse") && outside_bounds(other)[["any"]] > likely_outside && clt_serves(release, bound)) {
    other <- run_clt(release, bound, seed, call)
  }
  cli::cli_inform("Method {.val augment} has no density to integrate: method {.val {other$method}} computes the evidence of the same model and release.",
                  class = "noiseaware_message_evidence")
  other
}

# Do chains move normal totals?
moves_totals <- function(fit) inherits(engine_of(fit), c("engine_collapse_normal", "engine_clt_totals"))

# With factors by a sampler that moves the parameters: a cross-table has no density to integrate.
run_clt <- function(release, bound, seed, call) {
  run <- list(chains = 4, iter = 1000, warmup = 500, thin = 1, seed = seed)
  moves <- function() clt_sampler(released_distribution(bound, release, call), length(bound$unknown), bound_is_cut(bound))
  control <- if (length(bound$levels)) list(sampler = moves()) else list()
  without_progress(sample_method("clt", release, bound, run, NULL, control, call = call))
}

# Can the totals' density be integrated?
check_totals <- function(release, bound, call) {
  if (has_record_noise(release)) stop_no_evidence("The noise is on every record.", call)
  if (!inherits(bound, c("bound_normal", "bound_mvnormal", "bound_lm"))) stop_no_evidence("The model is: {describe_model(bound)}.", call)
  if (is.null(release$n)) stop_no_evidence("The number of records is unknown.", call)
  if (length(bound$levels)) stop_no_evidence("The model has factors.", call)
  if (bound_is_cut(bound)) stop_no_evidence("The prior is truncated by {.arg within}.", call)
  if (release$n <= nrow(bound$columns)) stop_no_evidence("It needs more records than variables.", call)
}

check_totals_problem <- function(fit, call) {
  check_totals(fit$release, fit$bound, call)
  problem <- fit$problem
  if (!moves_totals(fit)) stop_no_evidence("Method {.val {fit$method}} has no density of the totals here.", call)
  if (!all(problem$kernel %in% c("absolute", "squared"))) stop_no_evidence("Numbers were published without noise, or were hidden or rounded.", call)
  fit
}

# The method that moves totals, "clt" where bounds matter to it.
totals_method <- function(release, bound) {
  able <- clt_takes_totals(bound) && clt_serves(release, bound) && clt_moves_totals(release, bound, list(), NULL)
  if (able) "clt" else "collapse"
}

run_totals <- function(release, bound, method, seed, call) {
  check_totals(release, bound, call)
  run <- list(chains = 4, iter = 1000, warmup = 500, thin = 1, seed = seed)
  check_totals_problem(without_progress(sample_method(method, release, bound, run, call = call)), call)
}

# Coordinates of the totals in `draws` more iterations, spread over the chains.
totals_places <- function(fit, draws) {
  problem <- fit$problem
  d <- nrow(fit$bound$columns)
  size <- d * (d + 3) / 2 + length(problem$fields$spread) / length(problem$released) + kept_parameters(fit$bound$spec)
  each <- ceiling(draws / length(fit$chains))
  run <- fit$run
  run$thin <- 1
  chains <- lapply(fit$chains, function(chain) {
    state <- .Call(ffi_duplicate, chain$state)
    iterate <- single_iterations(problem, state, run)
    t(matrix(vapply(seq_len(each), function(k) {
      iterate()
      state$store[seq_len(size)]
    }, double(size)), size))
  })
  aperm(simplify2array(chains), c(1L, 3L, 2L))
}

totals_note <- function(fit) {
  if (outside_bounds(fit)[["any"]] <= likely_outside) return(NULL)
  if (inherits(engine_of(fit), "engine_clt")) return("approximate: the effect of clamping on the totals is treated as normal")
  "NOT exact: bounds are ignored, and records may lie outside them"
}

# ---- constants -------------------------------------------------------------------------------

# Of the noise's kernels, and of the innovations of clamped totals. Method "clt" widens the noise by what it leaves out.
log_kernel_constant <- function(problem, release, call) {
  wide <- problem$fields$clamp_weight
  log_noise_constant(release, call) + (if (is.null(wide)) 0 else sum(log(wide * problem$scale))) -
    length(problem$fields$spread) / length(problem$released) / 2 * log(2 * pi)
}

# What the density in src/totals/normal_totals_chain.c leaves out of n records' totals, d columns:
#   2^d pi^((n - 1) d / 2) / Gamma_d((n - 1) / 2)
# of the totals' coordinates, and the constants of the likelihood and of the prior.
log_totals_constant <- function(bound, n) {
  d <- nrow(bound$columns)
  d * log(2) + (n - 1) * d / 2 * log(pi) - log_multigamma(d, (n - 1) / 2) + log_marginal_constant(bound$spec, n)
}

log_multigamma <- function(p, x) p * (p - 1) / 4 * log(pi) + sum(lgamma(x - (seq_len(p) - 1) / 2))

# of the hook marginal() of a model
log_marginal_constant <- function(spec, n) {
  switch(spec$name, normal = normal_marginal_constant(spec$fields, n), mvnormal = covariates_marginal_constant(spec$fields, n),
         lm = covariates_marginal_constant(spec$fields, n) + lm_marginal_constant(spec$fields, n))
}

# How many of a model's coordinates its marginal() keeps.
kept_parameters <- function(spec) {
  fields <- spec$fields
  if (spec$name == "normal") return(as.integer(keeps_sd(fields)))
  if (spec$name != "lm") return(0L)
  (if (is.null(fields[["beta_df"]])) 0L else length(fields[["centre"]])) + keeps_sigma(fields)
}

keeps_sd <- function(fields) is.null(fields[["sd"]]) && is.null(fields[["mean"]]) && fields[["nig"]] == 0

keeps_sigma <- function(fields) {
  is.null(fields[["sigma"]]) && (is.null(fields[["sigma_inverse_gamma"]]) || !is.null(fields[["beta_df"]]) || (is.null(fields[["beta"]]) && fields[["beta_nig"]] == 0))
}

normal_marginal_constant <- function(fields, n) {
  mean <- if (is.null(fields[["mean"]])) log(fields[["prior_precision"]]) / 2 else 0
  sd <- if (!is.null(fields[["sd"]])) 0 else
    inverse_gamma_constant(fields[["shape"]], fields[["rate"]]) + if (keeps_sd(fields)) log(2) else lgamma(fields[["shape"]] + n / 2)
  mean + sd - n / 2 * log(2 * pi)
}

covariates_marginal_constant <- function(fields, n) {
  p <- length(fields[["continuous"]])
  if (p == 0L) return(0)
  mean <- if (is.null(fields[["mean"]])) p / 2 * (log(fields[["mean_kappa"]]) - log(fields[["mean_kappa"]] + n)) else 0
  if (!is.null(fields[["cov_chol"]])) {
    return(mean - n * sum(log(abs(diag(matrix(fields[["cov_chol"]], p))))) - n * p / 2 * log(2 * pi))
  }
  df <- fields[["cov_df"]]
  mean + df / 2 * log_determinant(matrix(fields[["cov_scale"]], p)) - log_multigamma(p, df / 2) + log_multigamma(p, (df + n) / 2) - n * p / 2 * log(pi)
}

lm_marginal_constant <- function(fields, n) {
  k <- length(fields[["centre"]])
  coefficients <- if (!is.null(fields[["beta_df"]])) sum(log_student_constant(fields[["beta_df"]], fields[["beta_scale"]])) else
    if (is.null(fields[["beta"]])) log_determinant(matrix(fields[["beta_precision"]], k)) / 2 else 0
  sigma <- if (!is.null(fields[["sigma"]]) || keeps_sigma(fields)) log_scale_constant(fields) else
    inverse_gamma_constant(fields[["sigma_inverse_gamma"]][1L], fields[["sigma_inverse_gamma"]][2L]) + lgamma(fields[["sigma_inverse_gamma"]][1L] + n / 2)
  coefficients + sigma - n / 2 * log(2 * pi)
}
