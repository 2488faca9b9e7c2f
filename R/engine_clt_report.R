# Method "clt" as an engine: what it supports, what it costs, what its fits report. engine_clt_totals moves the totals themselves if that is possible.

clt_serves <- function(release, bound) {
  if (length(clt_statistics(bound$model)) == 0L) return(FALSE) # an error would take longer than a short chain
  if (is.null(release$n)) release <- without_size(release, 2)
  release$n >= 2 && without_refusal({
    check_independent(bound)
    released_distribution(bound, release, NULL)
    clt_noise(release_parts(release), NULL)
  })
}

#' @export
engine_serves.engine_clt <- function(engine, release, bound) !has_record_noise(release) && clt_serves(release, bound)

#' @export
engine_pairs.engine_clt <- function(engine, model, statistic, mechanism) {
  if (!inherits(mechanism, c("mech_custom", "mech_record_noise", "mech_tabulated")) && inherits(statistic, clt_statistics(model))) FALSE
}

#' @export
engine_clamps.engine_clt <- function(engine, bound) !clt_leaves_out_bounds(bound)

#' @export
engine_clamps.engine_clt_totals <- function(engine, bound) TRUE

#' @export
engine_doubtful.engine_clt <- function(engine, bound) clt_leaves_out_bounds(bound) || clt_takes_totals(bound)

#' @export
engine_fewest.engine_clt <- function(engine, bound) 2

#' @export
engine_fewest.engine_clt_totals <- function(engine, bound) least_size(bound)

#' @export
engine_control.engine_clt <- function(engine) {
  list(
  passes = list(default = "depends on the sampler", must = "a whole number from 1", check = function(x, name, call) check_count(x, name, call = call),
    help = c("moves of the parameters per iteration. By default 3 for \"marginal\" (1 with more than 8 published values), and for",
             "\"noncentred\" three for each unknown parameter, fewer if they would dominate the cost.")),
  sampler = list(default = "depends on the model", must = "\"totals\", \"marginal\", \"noncentred\", \"nuts\" or \"gibbs\"",
    check = function(x, name, call) check_choice(x, name, c("totals", .Call(ffi_registry)$samplers), call = call),
    help = c("how the parameters move. \"totals\" moves the totals before clamping. It is available only in linear regressions with",
             "normal covariates, and is the default there. \"marginal\" has moves with the statistic integrated out. \"noncentred\" has moves with",
             "the statistic's innovations fixed. It is available only in linear regressions, and is the default in the others with up to 40",
             "unknown parameters. \"nuts\" is the No-U-Turn sampler in the parameters and the innovations, the default in other regressions.",
             "\"gibbs\" is the sampler of Bernstein & Sheldon, which has no such moves.")),
  conjugate = list(default = "TRUE", must = "TRUE or FALSE", check = function(x, name, call) check_flag(x, name, call = call),
    help = c("`FALSE` omits the update of the parameters given the imputed statistic, so that draws follow the",
             "normal approximation alone.")))
}

#' @export
engine_size.engine_clt <- function(engine, release, sized, bound, control, prior_n) {
  row <- clt_row(sized, bound, control, prior_n)
  columns <- bound$sizes$columns
  list(engine = row, size = counted_size(bound) %||%
    switch(row, marginal = length(sized$value), "clamped cross-table" = columns * prod(lengths(bound$levels)), columns))
}

clt_row <- function(release, bound, control, prior_n) {
  if (clt_moves_totals(release, bound, control, prior_n)) return(if (length(bound$levels)) "clamped cross-table" else "clamped totals")
  distribution <- released_distribution(bound, release, caller_env())
  sampler <- control$sampler %||% clt_sampler(distribution, length(bound$unknown), bound_is_cut(bound))
  if (sampler == "nuts" && bound$by_records) "nuts of responses" else sampler
}

#' @export
engine_announce.engine_clt <- function(engine, release, bound, control, prior_n) tell_many_cells(release, bound, control, prior_n)

# What clamping does is worked out in each cell of the factors' cross-table: with hundreds of them
# that takes longer than a person expects of a method whose time is free of n.
tell_many_cells <- function(release, bound, control, prior_n, limits = auto_limits) {
  if (!length(bound$levels) || !clt_moves_totals(release, bound, control, prior_n)) return(invisible())
  time <- predict_cost(cost_features("clt", release, bound, control, prior_n))$thousand
  if (time <= limits$affordable) return(invisible())
  cells <- prod(lengths(bound$levels))
  cli::cli_inform(c("Method {.val clt} is expected to take {about_time(time)} for 1,000 effective draws.",
                    i = "It computes the effect of clamping for each of the {cells} combinations of levels; fewer factors or levels make it faster."),
                  class = "noiseaware_message_method")
}

# ---- what the fit has to report -------------------------------------------------

#' @export
engine_title.engine_clt <- function(engine) "clt: normal approximation for the statistic (approximate; improves with more records)"

#' @export
engine_diagnostics.engine_clt <- function(engine, fit, told) clt_diagnostics(fit, told)

clt_diagnostics <- function(fit, told) {
  trajectories <- fit$problem$sampler == "nuts"
  data.frame(mean = share_of(told$accepted, told$made), passes = if (fit$problem$sampler == "gibbs") 0 else fit$problem$passes,
             divergent = if (trajectories) told$divergent else NA_real_, deepest = if (trajectories) told$deepest else NA_real_)
}

#' @export
engine_diagnostics.engine_clt_totals <- function(engine, fit, told) engine_diagnostics.engine_collapse_normal(engine, fit, told)

#' @export
engine_moves.engine_clt <- function(engine, fit, rows) clt_moves(fit, rows)

clt_moves <- function(fit, rows) {
  how <- switch(fit$problem$sampler, marginal = "%d per iteration with the statistic integrated out, accepted %s",
                noncentred = "%d per iteration that move the statistic with the parameters, accepted %s",
                nuts = "%d NUTS transition per iteration, mean acceptance probability %s")
  paste0("moves    ", if (is.null(how)) "none: the Gibbs sampler of Bernstein & Sheldon" else sprintf(how, fit$problem$passes, format_number(mean(rows$mean), 2)))
}

#' @export
engine_moves.engine_clt_totals <- function(engine, fit, rows) engine_moves.engine_collapse_normal(engine, fit, rows)

#' @export
engine_lines.engine_clt <- function(engine, fit) clt_lines(fit)

clt_lines <- function(fit) {
  told <- as.list(Reduce(`+`, lapply(fit$chains, `[[`, "diagnostics")))
  iterations <- sum(vapply(fit$chains, function(c) length(c$acceptance) - fit$run$warmup, 0))
  share <- function(x) paste0(format_number(100 * x / max(iterations, 1), 2), "%")
  c(if (clt_leaves_out_bounds(fit$bound)) outside_lines(fit, "valid"),
    if (told$leapfrogs > 0) {
      sprintf("  NUTS       %s gradients an iteration, %s of the transitions kept, divergent %s, deepest trees %s",
              format_number(told$leapfrogs / max(iterations, 1), 2), share(told$kept), share(told$divergent), share(told$deepest))
    },
    if (told$impossible > 0) sprintf("  statistic  impossible draws in %s of the iterations, projected in %s", share(told$impossible), share(told$projected)),
    if (isTRUE(fit$bound$moments$projected)) "  covariates the released moments are impossible for any covariates; moved to valid ones",
    if (fit$problem$drowned) "  noise      dominates the release: expect the prior",
    if (any(fit$problem$ridge > 0)) "  noise      too small to distinguish from none; raised to a millionth of the sampling sd")
}

#' @export
engine_lines.engine_clt_totals <- function(engine, fit) {
  if (isTRUE(fit$bound$natural)) return(c(outside_lines(fit), hamiltonian_lines(diagnostics_of(fit))))
  verdict <- if (engine_valid(engine, fit)) "records outside are accounted for, by a normal approximation" else
    "NOT valid: most values are outside the bounds"
  c(paste("  bounds    ", verdict), share_line(fit), hamiltonian_lines(diagnostics_of(fit)))
}

# Up to this share of a variable's values outside the bounds intervals were found to be calibrated
# (bench/calibrate_engines.R).
most_clamped <- 0.3

#' @export
engine_valid.engine_clt_totals <- function(engine, fit) outside_bounds(fit)[["summed"]] <= most_clamped * sum(is.na(fit$bound$design$level))

#' @export
engine_offer.engine_clt <- function(engine, bound) {
  paste0("has a cost that does not grow with n, but is approximate: it uses a normal approximation for the totals",
         if (clt_leaves_out_bounds(bound) && !clt_takes_totals(bound)) " of records inside the bounds", ".")
}

# What else could move its parameters. Moves of totals alone account for clamping, so nothing else is named for them.
#' @export
engine_samplers.engine_clt_totals <- function(engine, fit) NULL

#' @export
engine_samplers.engine_clt <- function(engine, fit) {
  sampler <- fit$problem$sampler
  if (clt_moves_totals(fit$release, fit$bound, list(), fit$problem$prior_n)) return("Without control$sampler the totals are moved, which accounts for clamping.")
  release <- if (is.null(fit$release$n)) without_size(fit$release, 2) else fit$release
  distribution <- released_distribution(fit$bound, release, NULL)
  usual <- clt_sampler(distribution, length(fit$bound$unknown), bound_is_cut(fit$bound))
  if (sampler != usual) return(sprintf("Without control$sampler \"%s\" moves the parameters.", usual))
  serves <- function(other) {
    tryCatch({
      check_sampler_serves(other, distribution, NULL)
      TRUE
    }, noiseaware_error = function(e) FALSE)
  }
  others <- Filter(serves, setdiff(c("nuts", "noncentred", "marginal"), sampler))
  if (length(others)) sprintf("control = list(sampler = \"%s\") moves the parameters in another way.", others[1L])
}
