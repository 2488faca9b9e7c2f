# Method "auto": which one to run, by what each is expected to cost (R/engine_cost.R).

# Seconds: up to `soon` to 1,000 effective draws an exact method runs without more ado; up to
# `affordable` it is preferred to an approximate one; and `longest` is the time of a whole run
# beyond which an exact method makes fewer iterations than were asked for, where another would be
# wrong.
auto_limits <- list(soon = 2, affordable = 300, longest = 600)

# A run shortened to that time keeps at least so many iterations.
least_iterations <- 200

# Below so many seconds methods cost the same: the first of them then, which is free of n.
no_time <- 0.1

# A list: `method`; `why`, lines for the print; `run`, shorter than asked for if need be, and then
# `init`, where its chains start: at draws of the short run, since such a run has no time to find
# its way from the prior.
#
# The exact method that is expected to take least for 1,000 effective draws, as long as that is
# bearable; but "collapse" where it takes less and a short run of it finds no record outside
# the bounds. Beyond that "clt", if it leaves out nothing that matters: where it accounts for what
# bounds do to records, or none is outside. Else the exact method with fewer iterations: rough but
# right, rather than sharp but wrong.
#
# `independent`: the model with factors that do not depend on each other, where the user has not said that they do; and then `bound`, if it is to be
# fitted. It is where dependent ones would take longer than is bearable, since "clt" has independent ones alone.
auto_method <- function(release, bound, run, control, records = NULL, limits = auto_limits, independent = NULL, call = caller_env()) {
  able <- able_methods(release, bound, control)
  only <- why_only_collapse(release, bound)
  if (!is.null(only)) return(chosen("collapse", run, only))
  exact <- able[vapply(able, always_exact, TRUE, bound = bound)]
  if (length(exact) == 0L) return(choose_only_clt(bound, run))
  costs <- lapply(stats::setNames(nm = able), expected_cost, release, bound, control, records, call)
  thousand <- pmax(vapply(costs, `[[`, 0, "thousand"), no_time)
  best <- exact[which.min(thousand[exact])]
  about <- vapply(thousand, about_time, "")
  is_exact <- sprintf("exact, expected to take %s for 1,000 effective draws", about[[best]])
  if (thousand[[best]] <= limits$soon) return(chosen(best, run, is_exact))

  others <- setdiff(able[thousand < thousand[[best]]], exact)
  trial <- NULL
  left_out <- character()
  if ("collapse" %in% others && thousand[["collapse"]] + trial_iterations * costs$collapse$iteration < thousand[[best]]) {
    trial <- try_method(release, bound, "collapse", records)
    outside <- outside_bounds(trial)
    if (outside[["any"]] <= likely_outside) return(chosen("collapse", run, why_collapse(about, best)))
    left_out <- sprintf("\"collapse\" (%s) ignores clamping, expected to touch %s of the records", about[["collapse"]], format_share(outside))
  }
  if (thousand[[best]] <= limits$affordable) return(chosen(best, run, c(is_exact, left_out)))
  if (!is.null(independent)) return(c(auto_method(release, independent, run, control, records, limits, call = call), list(bound = independent)))
  if ("clt" %in% others) {
    clamped <- clt_leaves_out_bounds(bound) || clt_takes_totals(bound)
    if (clamped) trial <- try_method(release, bound, "clt", records)
    if (!clamped || clt_is_valid(trial)) {
      warn_method(c("Method {.val clt} was chosen, which is approximate: it uses a normal distribution for the statistic.",
                    i = "Method {.val {best}} is exact, but would take {about[[best]]} for 1,000 effective draws."))
      return(chosen("clt", run, why_clt(about, best)))
    }
    left_out <- c(left_out, sprintf("\"clt\" (%s) does not account for clamping, or not for so much: %s of the records", about[["clt"]],
                                    format_share(outside_bounds(trial))))
  }
  shorter <- if (is.null(trial)) run else shorten_run(run, costs[[best]]$iteration, limits$longest)
  tell_long(best, release, run, shorter, costs[[best]]$iteration, left_out, others)
  chosen(best, shorter, c(is_exact, left_out), if (shorter$iter < run$iter) start_at_draws(trial, run$chains))
}

choose_only_clt <- function(bound, run) {
  served <- if (is.null(bound$moments)) "this model and release" else "covariates known only by their moments"
  warn_method("Method {.val clt} was chosen, which is approximate: it is the only one for {served}.")
  chosen("clt", run, paste("approximate; the only method for", served))
}

# where no other method can serve the release
why_only_collapse <- function(release, bound) {
  if (has_record_noise(release)) return("exact for noise on every record")
  if (!has_exact(release)) return(NULL)
  check_keeps_exact(release, bound)
  "keeps exact numbers"
}

why_collapse <- function(about, exact) {
  c(sprintf("exact if no record is outside the bounds, and likely none is; expected to take %s for 1,000 effective draws", about[["collapse"]]),
    sprintf("\"%s\", exact in any case, would take %s", exact, about[[exact]]))
}

why_clt <- function(about, exact) {
  c(sprintf("approximate, expected to take %s for 1,000 effective draws", about[["clt"]]), sprintf("\"%s\", which is exact, would take %s", exact, about[[exact]]))
}

format_share <- function(outside) paste0(format_number(100 * outside[["share"]], 2), "%")

about_time <- function(seconds) if (seconds > no_time) paste("about", rough_time(seconds)) else "under 0.1 seconds"

chosen <- function(method, run, why, init = NULL) list(method = method, run = run, why = why, init = init)

# Those that serve, what is free of n first. A user who sets the number of passes wants the records.
able_methods <- function(release, bound, control) {
  if (has_record_noise(release)) return("collapse")
  if (is.null(release$n)) {
    able <- size_methods(release, bound)
  } else {
    able <- c(if (collapse_serves(release, bound)) "collapse", if (without_refusal(check_records_distribution(bound)) && !has_exact(release)) "augment",
              if (clt_serves(release, bound)) "clt")
  }
  if (!is.null(control$passes) && "augment" %in% able) return("augment")
  # by "augment" the parameters of such tables walk, and do not get far
  if (moves_theta(bound) && "collapse" %in% able) "collapse" else able
}

expected_cost <- function(method, release, bound, control, records, call) {
  cost <- predict_cost(cost_features(method, release, bound, control, records))
  if (method == "augment" && calls_r(release, bound)) with_r_functions(cost, release, bound, control, records, call) else cost
}

# What an R function costs is not known before it is called: a few iterations are timed, unless even without it they take long.
# Then it is taken for cheap.
timed_iterations <- 4
worth_timing <- 0.02 # seconds
cheap_call <- 5e-6 # seconds a record

with_r_functions <- function(cost, release, bound, control, records, call) {
  iteration <- if (cost$iteration <= worth_timing) time_iteration(release, bound, control, records, call) else
    cost$iteration + cheap_call * (release$n %||% 0)
  slower <- max(1, iteration / cost$iteration)
  list(iteration = slower * cost$iteration, thousand = slower * cost$thousand)
}

time_iteration <- function(release, bound, control, records, call) {
  run <- list(warmup = timed_iterations, thin = 1)
  with_callback_seed(bound, 1L, {
    words <- with_seed(1L, seed_words())
    problem <- augment_problem(release, bound, control$passes, words, 1L, records, call)
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

# whatever the bounds
always_exact <- function(method, bound) switch(method, augment = TRUE, collapse = collapse_is_exact(bound), FALSE)

# starting points for chains: draws of a fit, evenly spread
start_at_draws <- function(fit, chains) lapply(values_of_draws(fit, chains), function(values) bound_theta(fit$bound, values))

# The same shares of warmup and kept draws, with as many iterations as the time leaves.
shorten_run <- function(run, iteration, longest) {
  iter <- min(run$iter, max(least_iterations, floor(longest / (iteration * run$chains))))
  part <- iter / run$iter
  warmup <- floor(run$warmup * part)
  utils::modifyList(run, list(iter = iter, warmup = warmup, thin = min(max(1, floor(run$thin * part)), iter - warmup)))
}

# a run of an exact method that takes long, or that was shortened because others are wrong
tell_long <- function(method, release, asked, run, iteration, left_out, others) {
  time <- function(run) format_time(iteration * run$iter * run$chains)
  size <- if (is.null(release$n)) "the" else format_size(release$n)
  why <- if (length(left_out)) stats::setNames(paste0(left_out, "."), rep("i", length(left_out))) else c(i = "No faster method is available for this model and release.")
  if (run$iter == asked$iter) {
    cli::cli_inform(c("Method {.val {method}} takes about {time(run)} for {size} records.", why), class = "noiseaware_message_method")
    return(invisible())
  }
  warn_method(c(paste("Method {.val {method}} runs {run$iter} iterations a chain ({run$warmup} of them warmup, thin {run$thin}) instead of {asked$iter}:",
                      "{size} records take about {time(run)}."),
                why,
                i = paste("For all {asked$iter} iterations set {.arg method} to {.val {method}} (about {time(asked)});",
                          "for a fast answer that is not exact, to {.or {.val {others}}}.")))
}

# What clamping does is worked out in each cell of the factors' cross-table: with hundreds of them
# that takes longer than a person expects of a method whose time is free of n.
tell_many_cells <- function(release, bound, control, records, limits = auto_limits) {
  if (!length(bound$levels) || !clt_moves_totals(release, bound, control, records)) return(invisible())
  time <- predict_cost(cost_features("clt", release, bound, control, records))$thousand
  if (time <= limits$affordable) return(invisible())
  cells <- prod(lengths(bound$levels))
  cli::cli_inform(c("Method {.val clt} is expected to take {about_time(time)} for 1,000 effective draws.",
                    i = "It works out what bounds do to the records of each of the {cells} combinations of levels; fewer factors or levels make it faster."),
                  class = "noiseaware_message_method")
}

warn_method <- function(message, .envir = parent.frame()) {
  cli::cli_warn(message, class = "noiseaware_warning_method", .envir = .envir)
}

# a short run of a method whose time is free of n
try_method <- function(release, bound, method, records) {
  run <- list(chains = 2, iter = trial_iterations / 2, warmup = trial_iterations / 4, thin = 1, seed = 1L)
  sample <- switch(method, collapse = sample_collapse, clt = sample_clt)
  progressr::without_progress(sample(release, bound, run, NULL, list(), records))
}

trial_iterations <- 1200

# to one digit: what a prediction is good for
rough_time <- function(seconds) {
  if (seconds < 0.95) return(paste(signif(seconds, 1), "seconds"))
  unit <- if (seconds < 95) c(1, "second") else if (seconds < 5700) c(60, "minute") else if (seconds < 1.3e5) c(3600, "hour") else c(86400, "day")
  count <- signif(seconds / as.numeric(unit[1L]), 1)
  paste0(format_number(count), " ", unit[2L], if (count != 1) "s")
}

clt_serves <- function(release, bound) {
  if (length(clt_statistics(bound$model)) == 0L) return(FALSE) # an error would take longer than a short chain
  if (is.null(release$n)) release <- without_size(release, 2)
  release$n >= 2 && without_refusal({
    check_independent(bound)
    released_distribution(bound, release, NULL)
    clt_noise(release_parts(release), NULL)
  })
}

# methods that take n for unknown, the best first
size_methods <- function(release, bound) {
  methods <- if (collapse_is_exact(bound)) c("collapse", "augment", "clt") else c("augment", "clt", "collapse")
  Filter(function(method) takes_unknown_size(method, release, bound), methods)
}

takes_unknown_size <- function(method, release, bound) {
  !"n" %in% bound$parameters && !isTRUE(bound$dependent) &&
    switch(method, collapse = collapse_serves(release, bound), augment = !whole_at_once(release, bound) && !has_exact(release), clt = clt_serves(release, bound), FALSE)
}
