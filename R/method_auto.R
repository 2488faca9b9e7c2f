# Method "auto": which one to run.

# Record updates, n x iterations x chains, beyond which "augment" does not run as
# many iterations as were asked for: about ten minutes.
most_record_updates <- 1e10

# A run shortened to that many updates keeps at least so many iterations.
least_iterations <- 200

# A list: `method`; `run`, shorter than asked for if need be, and then `init`, where
# its chains start: at draws of the short run, since such a run has no time to find
# its way from the prior.
#
# Counts: "collapse" is exact and free of n; a user who sets the number of passes
# wants the records. Else "augment", exact whatever the bounds, as long as its time
# is bearable. Beyond that, what is free of n, if it leaves out nothing that
# matters: "collapse" where a short run of it finds no record outside the bounds;
# "clt" where it accounts for what bounds do to records, or none is outside. Else
# "augment" with fewer iterations: rough but right, rather than sharp but wrong.
auto_method <- function(release, bound, run, control, most = most_record_updates) {
  if (!is.null(bound$moments)) {
    warn_method("Method {.val clt} was chosen, which is approximate: it is the only one for covariates known only by their moments.")
    return(chosen("clt", run))
  }
  if (collapse_is_exact(bound) && is.null(control$passes) && collapse_serves(release, bound)) return(chosen("collapse", run))
  if (record_updates(release, run) <= most) return(chosen("augment", run))
  large_method(release, bound, run, most)
}

chosen <- function(method, run, init = NULL) list(method = method, run = run, init = init)

# where "augment" would take too long
large_method <- function(release, bound, run, most) {
  time <- augment_time(release, run)
  others <- c(if (collapse_serves(release, bound)) "collapse", if (clt_serves(release, bound)) "clt")
  outside <- NULL
  if ("collapse" %in% others) {
    trial <- try_method(release, bound, "collapse")
    outside <- outside_bounds(trial)
    if (outside[["any"]] <= likely_outside) {
      cli::cli_inform(c("Method {.val collapse} was chosen: a short run finds that no record is likely to lie outside the bounds.",
                        i = "Method {.val augment} would take about {time}."), class = "noiseaware_message_method")
      return(chosen("collapse", run))
    }
  }
  if ("clt" %in% others) {
    clamped <- clt_leaves_out_bounds(bound) || clt_takes_totals(bound)
    if (clamped) {
      trial <- try_method(release, bound, "clt")
      outside <- outside_bounds(trial)
    }
    if (!clamped || clt_is_valid(trial)) {
      warn_method(c("Method {.val clt} was chosen, which is approximate: it uses a normal distribution for the statistic.",
                    i = "Method {.val augment} is exact, but would take about {time}."))
      return(chosen("clt", run))
    }
  }
  if (is.null(outside)) {
    cli::cli_inform(c("Method {.val augment} takes about {time} for {format_size(release$n)} records.", i = "No other method is available for this model and release."),
                    class = "noiseaware_message_method")
    return(chosen("augment", run))
  }
  shorter <- shorten_run(run, release$n, most)
  tell_augment(release, run, shorter, outside[["share"]], others)
  chosen("augment", shorter, if (shorter$iter < run$iter) start_at_draws(trial, run$chains))
}

# starting points for chains: draws of a fit, evenly spread
start_at_draws <- function(fit, chains) lapply(values_of_draws(fit, chains), function(values) bound_theta(fit$bound, values))

# The same shares of warmup and kept draws, with as many iterations as the limit
# of record updates leaves.
shorten_run <- function(run, n, most) {
  iter <- min(run$iter, max(least_iterations, floor(most / (n * run$chains))))
  part <- iter / run$iter
  warmup <- floor(run$warmup * part)
  utils::modifyList(run, list(iter = iter, warmup = warmup, thin = min(max(1, floor(run$thin * part)), iter - warmup)))
}

tell_augment <- function(release, asked, run, share, others) {
  why <- c(i = "Faster methods ignore that records outside the bounds are clamped, and about {format_number(100 * share, 2)}% are expected to be outside.")
  if (run$iter == asked$iter) {
    cli::cli_inform(c("Method {.val augment} takes about {augment_time(release, run)} for {format_size(release$n)} records.", why),
                    class = "noiseaware_message_method")
    return(invisible())
  }
  warn_method(c(paste("Method {.val augment} runs {run$iter} iterations a chain ({run$warmup} of them warmup, thin {run$thin}) instead of {asked$iter}:",
                      "{format_size(release$n)} records take about {augment_time(release, run)}."),
                why,
                i = paste("For all {asked$iter} iterations set {.arg method} to {.val augment} (about {augment_time(release, asked)});",
                          "for a fast answer that is not exact, to {.or {.val {others}}}.")))
}

warn_method <- function(message, .envir = parent.frame()) {
  cli::cli_warn(message, class = "noiseaware_warning_method", .envir = .envir)
}

record_updates <- function(release, run) as.double(release$n) * run$iter * run$chains

# about 50 ns an update
augment_time <- function(release, run) format_time(5e-8 * record_updates(release, run))

# a short run of a method whose time is free of n
try_method <- function(release, bound, method) {
  run <- list(chains = 2, iter = 600, warmup = 300, thin = 1, seed = 1L)
  sample <- switch(method, collapse = sample_collapse, clt = sample_clt)
  progressr::without_progress(sample(release, bound, run, NULL, list()))
}

# seconds as text
format_time <- function(seconds) {
  unit <- if (seconds < 1) c(1e-3, "milliseconds") else if (seconds < 90) c(1, "seconds") else
    if (seconds < 5400) c(60, "minutes") else if (seconds < 172800) c(3600, "hours") else c(86400, "days")
  paste(format_number(seconds / as.numeric(unit[1L]), 2), unit[2L])
}

format_size <- function(n) format(n, big.mark = ",", scientific = FALSE)

collapse_serves <- function(release, bound) without_refusal(collapse_distribution(release, bound, check = TRUE))

clt_serves <- function(release, bound) {
  known <- !is.null(release$n)
  if (!known) release <- without_size(release, 2)
  release$n >= 2 && without_refusal({
    distribution <- released_distribution(bound, release, NULL)
    clt_noise(release_parts(release), NULL)
    check_size_sampler(clt_sampler(distribution, length(bound$unknown), known), known, NULL)
  })
}

without_refusal <- function(code) {
  tryCatch({
    force(code)
    TRUE
  }, noiseaware_error_method = function(e) FALSE)
}
