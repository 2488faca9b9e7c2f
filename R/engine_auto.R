# Method "auto": chooses a method by its expected cost (R/engine_cost.R).

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
auto_method <- function(release, bound, run, control, prior_n = NULL, limits = auto_limits, independent = NULL, call = caller_env()) {
  alone <- Filter(Negate(is.null), ask_engines(sampling_methods, engine_alone, release, bound))
  if (length(alone)) return(chosen(names(alone)[1L], run, alone[[1L]]))
  able <- able_methods(release, bound, control)
  is_right <- unlist(ask_engines(able, engine_exact, bound))
  exact <- able[is_right %in% TRUE]
  if (length(exact) == 0L) return(choose_only_clt(bound, run))
  costs <- ask_engines(able, engine_cost, release, bound, control, prior_n, call)
  about <- vapply(costs, function(cost) about_time(cost$thousand), "")
  thousand <- pmax(vapply(costs, `[[`, 0, "thousand"), no_time)
  best <- exact[which.min(thousand[exact])]
  is_exact <- sprintf("%sexpected to take %s for 1,000 effective draws", if (is_approximate(release)) "" else "exact, ", about[[best]])
  if (thousand[[best]] <= limits$soon) return(chosen(best, run, is_exact))

  others <- setdiff(able[thousand < thousand[[best]]], exact)
  trial <- NULL
  left_out <- character()
  for (method in others[is.na(is_right[others])]) if (thousand[[method]] + trial_iterations * costs[[method]]$iteration < thousand[[best]]) {
    trial <- try_method(release, bound, method, prior_n)
    if (engine_valid(engine_of(trial), trial)) return(chosen(method, run, why_if_inside(about, method, best)))
    left_out <- sprintf("\"%s\" (%s) ignores clamping, expected to touch %s of the records", method, about[[method]], format_share(outside_bounds(trial)))
  }
  if (thousand[[best]] <= limits$affordable) return(chosen(best, run, c(is_exact, left_out)))
  if (!is.null(independent)) return(c(auto_method(release, independent, run, control, prior_n, limits, call = call), list(bound = independent)))
  for (method in others[is_right[others] %in% FALSE]) {
    doubtful <- engine_doubtful(as_engine(method), bound)
    if (doubtful) trial <- try_method(release, bound, method, prior_n)
    if (!doubtful || engine_valid(engine_of(trial), trial)) {
      warn_method(c("Method {.val {method}} was chosen, which is approximate: it uses a normal approximation for the statistic.",
                    i = "Method {.val {best}} is exact, but would take {about[[best]]} for 1,000 effective draws."))
      return(chosen(method, run, why_approximate(about, method, best)))
    }
    left_out <- c(left_out, sprintf("\"%s\" (%s) does not account for clamping, or not for so much: %s of the records", method, about[[method]],
                                    format_share(outside_bounds(trial))))
  }
  choose_long(best, release, run, trial, costs[[best]]$iteration, limits, is_exact, left_out, others)
}

# What is exact, though it takes long: with fewer iterations where the draws of a `trial` are a good start.
choose_long <- function(method, release, run, trial, iteration, limits, is_exact, left_out, others) {
  shorter <- if (is.null(trial)) run else shorten_run(run, iteration, limits$longest)
  tell_long(method, release, run, shorter, iteration, left_out, others)
  chosen(method, shorter, c(is_exact, left_out), if (shorter$iter < run$iter) start_at_draws(trial, run$chains))
}

choose_only_clt <- function(bound, run) {
  covered <- if (is.null(bound$moments)) "this model and release" else "covariates known only by their moments"
  warn_method("Method {.val clt} was chosen, which is approximate: no other method is available for {covered}.")
  chosen("clt", run, paste("approximate; the only method for", covered))
}

why_if_inside <- function(about, method, exact) {
  c(sprintf("exact if no record is outside the bounds, and likely none is; expected to take %s for 1,000 effective draws", about[[method]]),
    sprintf("\"%s\", exact in any case, would take %s", exact, about[[exact]]))
}

why_approximate <- function(about, method, exact) {
  c(sprintf("approximate, expected to take %s for 1,000 effective draws", about[[method]]), sprintf("\"%s\", which is exact, would take %s", exact, about[[exact]]))
}

format_share <- function(outside) paste0(format_number(100 * outside[["share"]], 2), "%")

# `seconds` of the machine that was measured; in words, of this one
about_time <- function(seconds) {
  here <- seconds * slower_machine()
  if (here > no_time) paste("about", rough_time(here)) else "under 0.1 seconds"
}

chosen <- function(method, run, why, init = NULL) list(method = method, run = run, why = why, init = init)

# what the engines of some methods answer, by name
ask_engines <- function(methods, ask, ...) lapply(stats::setNames(nm = methods), function(method) ask(as_engine(method), ...))

# The methods that can fit, those free of n first and approximate ones last. A user who sets the number of passes wants the records.
able_methods <- function(release, bound, control) {
  able <- Filter(function(method) method_serves(method, release, bound), sampling_methods)
  of_records <- vapply(ask_engines(able, engine_imputes), isTRUE, TRUE)
  able <- able[order(vapply(ask_engines(able, engine_exact, bound), isFALSE, TRUE), of_records)]
  if (!is.null(control$passes) && "augment" %in% able) return("augment")
  # by "augment" the parameters of such tables walk, and do not get far; nor do they with answers that say little; sums of bits are slow there
  bits <- any(vapply(release_parts(release), function(p) is_unary(p$mechanism), TRUE))
  if ((moves_theta(bound) || has_answers(release) || bits) && "collapse" %in% able) "collapse" else able
}

# An unknown number of records is called n, and factors that depend on each other need it.
method_serves <- function(method, release, bound) {
  (!is.null(release$n) || !"n" %in% bound$parameters && !isTRUE(bound$dependent)) && engine_serves(as_engine(method), release, bound)
}

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
  time <- function(run) format_time(iteration * run$iter * run$chains * slower_machine())
  size <- if (is.null(release$n)) "the" else format_size(release$n)
  why <- if (length(left_out)) stats::setNames(paste0(left_out, "."), rep("i", length(left_out))) else c(i = "No faster method is available for this model and release.")
  if (run$iter == asked$iter) {
    cli::cli_inform(c("Method {.val {method}} takes about {time(run)} for {size} records.", why), class = "noiseaware_message_method")
    return(invisible())
  }
  warn_method(c(paste("Method {.val {method}} runs {run$iter} iterations per chain ({run$warmup} of them warmup, thin {run$thin}) instead of {asked$iter}:",
                      "{size} records take about {time(run)}."),
                why,
                i = paste("For all {asked$iter} iterations set {.arg method} to {.val {method}} (about {time(asked)});",
                          "for a fast approximate answer, to {.or {.val {others}}}.")))
}

warn_method <- function(message, .envir = parent.frame()) {
  cli::cli_warn(message, class = "noiseaware_warning_method", .envir = .envir)
}

# a short run of a method whose time is free of n
try_method <- function(release, bound, method, prior_n) {
  run <- list(chains = 2, iter = trial_iterations / 2, warmup = trial_iterations / 4, thin = 1, seed = 1L)
  without_progress(sample_method(method, release, bound, run, prior_n = prior_n))
}

trial_iterations <- 1200

# to one digit: what a prediction is good for
rough_time <- function(seconds) {
  if (seconds < 0.95) return(paste(signif(seconds, 1), "seconds"))
  unit <- if (seconds < 95) c(1, "second") else if (seconds < 5700) c(60, "minute") else if (seconds < 1.3e5) c(3600, "hour") else c(86400, "day")
  count <- signif(seconds / as.numeric(unit[1L]), 1)
  paste0(format_number(count), " ", unit[2L], if (count != 1) "s")
}
