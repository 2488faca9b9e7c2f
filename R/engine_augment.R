# Method "augment": see src/records/. This file sets up the problem for engine_chains.R.

#' @export
engine_problem.engine_augment <- function(engine, release, bound, control, words, chains, prior_n, call) {
  check_records_distribution(bound, call)
  check_noise_on_totals("augment", release, call)
  augment_problem(release, bound, control$passes, words, chains, prior_n, call)
}

# What the C code needs to know; see struct augment.
augment_problem <- function(release, bound, passes, words, chains, prior_n = NULL, call = caller_env()) {
  release <- uncounted(release)
  layout <- augment_parts(release, bound, call)
  parts <- component_parts(release)
  size <- augment_size(release, prior_n)
  c(size, list(method = "augment", exact = TRUE, model = bound$spec, move_sd = move_sd(bound, words, chains), theta_sd = walk_sd(bound, words, chains),
         surrogate = if (is.null(passes)) surrogate_fields(bound, parts, size$n, !is.null(prior_n), layout) else list(),
         reflect = if (is.null(prior_n)) record_maps(bound, parts), cross = if (is.null(prior_n)) hole_crossings(bound, parts, size$n),
         passes = as.double(passes %||% -1), times = released_times(parts)), layout)
}

# What was published of the records: see struct part.
augment_parts <- function(release, bound, call) {
  parts <- component_parts(uncounted(release))
  check_no_exact(parts, "augment", call)
  c(layout_parts(lapply(lapply(parts, fill_part), augment_part, bound = bound, n = release$n)), list(hold = held_bounds(bound, parts), far = farthest_walk(parts)))
}

# The bounds of a normal variable of which sums alone were published, without squares: see src/records/held_total.c. Otherwise none.
held_bounds <- function(bound, parts) {
  if (!bound$spec$name %in% c("normal", "lm", "mvnormal") || nrow(bound$columns) != 1L || !identical(as.integer(bound$unknown), 1:2)) return(double())
  totals <- parts[vapply(parts, function(p) p$statistic$kind == "totals" && !inherits(p$statistic, "stat_size"), TRUE)]
  sums <- vapply(totals, function(p) {
    degrees <- monomial_degrees(p$statistic)
    !is.null(degrees) && all(is.na(degrees$second[p$at]))
  }, TRUE)
  if (length(totals) == 0L || !all(sums)) return(double())
  bounds <- clamping_bounds(bound$columns$name, totals)
  if (bounds$same) as.double(c(bounds$lower, bounds$upper)) else double()
}

# births and deaths at once, at most: where the release tells n well, and where it tells nothing
least_most_born <- 256
most_born <- 2048

# n; where it is unknown about where it is, and the room that a state has at first
augment_size <- function(release, prior_n) {
  if (is.null(prior_n)) check_room(release$n, known = TRUE)
  if (is.null(prior_n)) return(list(n = release$n, prior_n = NULL, size_prior = NULL))
  size <- typical_size(release, prior_n)
  # many sites of some hundred records each need little room
  born <- min(max(16 * ceiling(size$sd), least_most_born), most_born)
  room <- min(size$n + 6 * size$sd, size_range(prior_n)[2L]) + 8 * born
  check_room(room)
  list(n = size$n, prior_n = prior_n, size_prior = size_prior_spec(prior_n), size_spread = size$sd, most_born = born, room = ceiling(room / 64) * 64)
}

# A component that was not published has noise without limit: weight 0. So the loops over records know nothing of it.
fill_part <- function(part) {
  size <- length(part$statistic$components)
  if (part$statistic$kind == "records" || length(part$at) == size) return(part)
  part$value <- replace(numeric(size), part$at, part$value)
  part$scale <- replace(rep(Inf, size), part$at, part$scale)
  if (part$mechanism$kernel == "published") part$interval <- fill_interval(part$interval, part$at, size)
  part
}

augment_part <- function(part, bound, n) UseMethod("augment_part", part$mechanism)

#' @export
augment_part.default <- function(part, bound, n) {
  statistic <- part$statistic
  spec <- statistic_spec(statistic)
  kernel <- part$mechanism$kernel
  # a density of its own sees all counts at once
  spec$kind <- if (kernel == "density" && statistic$kind == "cells") "totals" else statistic$kind
  spec$kernel <- kernel
  if (kernel == "density") spec$density <- custom_density(part$mechanism, statistic, part$value, n)
  spec$column <- match(statistic$columns$name, bound$columns$name) - 1L
  spec$index <- part$index
  spec$at <- part$at
  spec$released <- as.double(part$value)
  spec$scale <- as.double(part$scale)
  if (statistic$kind == "records") spec$scale <- spec$scale[seq(1, length(spec$scale), by = n)] # one a component
  spec
}

# The parts, the noise of their components in the order of C (augment_lay_out() in
# src/records/augment_chain.c), and `where` among those the release's components are that are
# totals, `summed`.
layout_parts <- function(parts) {
  laid <- .Call(ffi_augment_layout, parts)
  where <- integer()
  for (k in seq_along(parts)) if (length(laid$where[[k]])) where[parts[[k]]$index] <- laid$where[[k]][parts[[k]]$at]
  summed <- which(!is.na(where))
  c(laid[c("released", "scale", "kernel", "untold")], list(parts = parts, where = where[summed], summed = summed, dense = laid$dense))
}

# Spread of the prior, robust to heavy tails, for each place in theta: where
# the non-centred proposals start from. Its stream is the one after the chains'.
move_sd <- function(bound, words, chains) {
  if (is.null(bound$moves)) return(numeric())
  sd <- numeric(max(bound$moves))
  replace(sd, bound$moves, prior_sd(bound, words, chains))
}

# where random walks given the records start from; NULL: none
walk_sd <- function(bound, words, chains) if (length(bound$walks)) prior_sd(bound, words, chains)[match(bound$walks, bound$unknown)]

#' @export
engine_serves.engine_augment <- function(engine, release, bound) {
  if (has_record_noise(release) || has_exact(release)) return(FALSE)
  if (is.null(release$n)) !whole_at_once(release, bound) else without_refusal(check_records_distribution(bound))
}

#' @export
engine_exact.engine_augment <- function(engine, bound) TRUE

#' @export
engine_pairs.engine_augment <- function(engine, model, statistic, mechanism) if (!inherits(mechanism, "mech_record_noise")) TRUE

#' @export
engine_clamps.engine_augment <- function(engine, bound) TRUE

#' @export
engine_imputes.engine_augment <- function(engine) TRUE

#' @export
engine_control.engine_augment <- function(engine) {
  list(passes = list(default = "learned in warmup", must = "a whole number from 0", check = function(x, name, call) check_count(x, name, lower = 0, call = call),
    help = c("non-centred moves between two sweeps over the records. Warmup tunes their number, by effective draws per unit of",
             "work. It also tunes their kinds, the share of a record's innovation that a sweep keeps, and the number of",
             "iterations that a sweep is spread over (see [acceptance()]). With 0 this is the plain sampler of Ju et al. 2022. Setting a number also",
             "turns off the moves of all records at once, see [method_augment].")))
}

# ---- what it costs -----------------------------------------------------------------------

#' @export
engine_size.engine_augment <- function(engine, release, sized, bound, control, prior_n) {
  list(engine = augment_row(sized, bound, control, is.null(release$n)), size = counted_size(bound) %||% bound$sizes$columns)
}

augment_row <- function(release, bound, control, unknown) {
  if (bound$by_records) return(records_engine(bound))
  if (inherits(bound, "bound_smooth")) return("smooth")
  design <- if (is.null(control$passes)) surrogate_columns(bound, component_parts(release), release$n, unknown)
  if (any(design$role == "free")) "shape" else "sweeps"
}

# where surrogates of totals do not move the records
records_engine <- function(bound) if (inherits(bound, "bound_categories")) "levels" else if (bound$by_records) "responses" else "sweeps"

#' @export
engine_cost.engine_augment <- function(engine, release, bound, control, prior_n, call) {
  cost <- with_quantiles(NextMethod(), release)
  if (calls_r(release, bound)) with_r_functions(cost, release, bound, control, prior_n, call) else cost
}

# What an R function costs is not known before it is called: a few iterations are timed, unless even without it they take long.
# Then it is taken for cheap.
timed_iterations <- 4
worth_timing <- 0.02 # seconds
cheap_call <- 5e-6 # seconds a record

with_r_functions <- function(cost, release, bound, control, prior_n, call) {
  iteration <- if (cost$iteration <= worth_timing) time_iteration(release, bound, control, prior_n, call) else
    cost$iteration + cheap_call * (release$n %||% 0)
  slower <- max(1, iteration / cost$iteration)
  list(iteration = slower * cost$iteration, thousand = slower * cost$thousand)
}

time_iteration <- function(release, bound, control, prior_n, call) {
  run <- list(warmup = timed_iterations, thin = 1)
  with_callback_seed(bound, 1L, {
    words <- with_seed(1L, seed_words())
    problem <- augment_problem(release, bound, control$passes, words, 1L, prior_n, call)
    state <- start_chain(problem, bound, words, 1L, NULL, call)
    began <- elapsed_seconds()
    run_blocks(problem, state, timed_iterations, run, function(...) NULL)
    list(seconds = elapsed_seconds() - began)
  })$seconds / timed_iterations
}

# Does method "augment" call R functions of the model's, the statistics' or the noise's?
calls_r <- function(release, bound) {
  whole_at_once(release, bound) || any(vapply(release_parts(release), function(part) inherits(part$mechanism, "mech_custom"), TRUE))
}

# ---- what the fit has to report ----------------------------------------------------------

#' @export
engine_title.engine_augment <- function(engine) "augment: imputes the records"

#' @export
engine_lines.engine_augment <- function(engine, fit) {
  c(if (is.null(fit$bound$moves)) "  moves      none: the model has no move, mixing may be slow", cost_line(fit))
}

#' @export
engine_diagnostics.engine_augment <- function(engine, fit, told) {
  guarantee <- design_privacy(release_parts(fit$release)) # of the numbers that are used
  statistics <- lapply(release_parts(fit$release), `[[`, "statistic")
  # imputed records that may lie beyond natural limits may change the totals by more than records did
  bounded <- identical(guarantee$delta, 0) && !any(unlist(lapply(statistics, natural_limits)))
  augment_counts(told, if (bounded) exp(-guarantee$epsilon) else NA_real_)
}

# `bound`: of the acceptance probability
augment_counts <- function(told, bound) {
  first <- seq_len(match("least", names(told)))
  data.frame(told[first], bound = bound, told[-first])
}

#' @export
engine_moves.engine_augment <- function(engine, fit, rows) acceptance_lines(fit, rows)

#' @export
engine_advice.engine_augment <- function(engine, fit) {
  if (is.null(fit$bound$moves)) return("Giving the model a `move` would help.")
  if (fit$problem$passes == 0) return("Leave control$passes unset, so that warmup tunes it.")
  if (fit$run$warmup < 500) "A longer warmup tunes the moves better."
}

#' @export
engine_offer.engine_augment <- function(engine, bound) "imputes the records: exact, at a cost that grows with n."

acceptance_lines <- function(fit, a) {
  bound <- if (is.na(a$bound[1L])) "" else sprintf("; least probability %s, bound exp(-epsilon) %s",
                                                   format_number(min(a$least), 2), format_number(a$bound[1L], 2))
  kept <- if (all(a$kept == 0)) "" else
    sprintf("; up to %s of the sweeps keep %s of a record's innovation", format_percent(max(a$share)),
            format_range(a$kept[a$kept > 0]))
  parts <- if (all(a$parts == 1)) "" else sprintf("; all are visited in %s iterations", format_range(a$parts))
  rounds <- if (all(a$rounds == 1)) "" else sprintf("; an iteration has %s rounds", format_range(a$rounds))
  c(sprintf("updates  accepted %s%s%s%s%s", format_number(mean(a$mean), 3), bound, kept, parts, rounds),
    paste0("moves    non-centred: ", move_line(fit, a)),
    if (!all(is.na(a$moved))) sprintf("         of all records at once: accepted %s, %s leapfrog steps each%s",
                                      format_number(mean(a$moved), 2), format_number(mean(a$steps), 2), coefficients_line(a)),
    if (!all(is.na(a$regrouped))) sprintf("         of records between levels: accepted %s", format_number(mean(a$regrouped), 2)),
    if (!all(is.na(a$newton))) sprintf("         of the coefficients given the records, by Newton steps: accepted %s", format_number(mean(a$newton, na.rm = TRUE), 2)))
}

coefficients_line <- function(a) {
  if (all(is.na(a$responded))) "" else sprintf("; of the coefficients with the responses: accepted %s", format_number(mean(a$responded, na.rm = TRUE), 2))
}

# Seconds of an iteration. Counted work is about the nanoseconds of one machine; it knows nothing of R functions that the sampler calls.
counted_seconds <- function(fit) 1e-9 * mean(vapply(fit$chains, function(chain) sum(chain$work) / length(chain$acceptance), 0))

calls_r_functions <- function(fit) {
  releases <- if (inherits(fit, "noiseaware_pool")) fit$release else list(fit$release)
  isTRUE(fit$bound$callbacks) || any(vapply(releases, function(release) !is.null(release) && calls_r(release, fit$bound), TRUE))
}

# What was expected before the run may be far from it: see R/engine_cost.R.
cost_line <- function(fit) {
  if (calls_r_functions(fit)) return(NULL)
  seconds <- counted_seconds(fit)
  effective <- min(apply(unclass(fit$draws), 3L, posterior::ess_bulk))
  made <- fit$run$iter * dim(fit$draws)[2L]
  sprintf("  time       about %s%s for 1,000 iterations of a chain", if (is.finite(effective))
    sprintf("%s for 1,000 effective draws of each parameter, ", format_time(1000 * seconds * made / effective)) else "", format_time(1000 * seconds))
}

move_line <- function(fit, a) {
  if (is.null(fit$bound$moves)) return("none; the model has no move, mixing may be slow")
  if (all(a$passes == 0)) return("none")
  rates <- colMeans(a[.Call(ffi_registry)$passes], na.rm = TRUE)
  rates <- rates[is.finite(rates)]
  each <- paste(gsub("_", " ", names(rates)), format_number(rates, 2), collapse = ", ")
  paste0(format_range(a$passes), " an iteration", if (length(rates)) paste0("; accepted: ", each))
}
