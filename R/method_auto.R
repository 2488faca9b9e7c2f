# Method "auto": which one to run.

# Record updates, n x iterations x chains, beyond which "augment" is not begun:
# about ten minutes.
most_record_updates <- 1e10

# Counts: "collapse" is exact and free of n. Else "augment", exact whatever the
# bounds, up to a number of records; beyond it what is free of n. A user who sets
# the number of passes wants the records.
auto_method <- function(release, bound, run, control, call = caller_env()) {
  if (!is.null(bound$moments)) {
    cli::cli_inform("Method {.val clt} was chosen, which is approximate: no other takes covariates known by their moments alone.",
                    class = "noiseaware_message_method")
    return("clt")
  }
  if (inherits(bound, "bound_categorical") && is.null(control$passes) && collapse_serves(release, bound)) return("collapse")
  updates <- as.double(release$n) * run$iter * run$chains
  if (updates <= most_record_updates) return("augment")
  time <- format_time(updates * 5e-8)
  clt <- clt_serves(release, bound)
  if (collapse_serves(release, bound)) {
    # "clt" knows what bounds do to one variable, though not in a regression
    outside <- if (clt && !inherits(bound, "bound_lm")) try_outside(release, bound) else 0
    if (outside <= likely_outside) {
      say_method("collapse", "It is exact if no record lies outside the bounds: see the fit's print for the probability of that.", time)
      return("collapse")
    }
  }
  if (clt) {
    say_method("clt", "It is approximate: a normal law for the statistic.", time)
    return("clt")
  }
  cli::cli_inform(c("Method {.val augment} takes about {time} for {format_size(release$n)} records.", i = "No other method serves this pair."),
                  class = "noiseaware_message_method")
  "augment"
}

# probability of a record outside the bounds, from a short run of "collapse"
try_outside <- function(release, bound) {
  run <- list(chains = 2, iter = 600, warmup = 300, thin = 1, seed = 1L)
  outside_bounds(sample_collapse(release, bound, run, NULL, list()))[["any"]]
}

say_method <- function(method, what, time) {
  cli::cli_inform(c("Method {.val {method}} was chosen. {what}", i = "Method {.val augment} is exact, but would take about {time}."),
                  class = "noiseaware_message_method")
}

# seconds as text
format_time <- function(seconds) {
  unit <- if (seconds < 1) c(1e-3, "milliseconds") else if (seconds < 90) c(1, "seconds") else
    if (seconds < 5400) c(60, "minutes") else if (seconds < 172800) c(3600, "hours") else c(86400, "days")
  paste(format_number(seconds / as.numeric(unit[1L]), 2), unit[2L])
}

format_size <- function(n) format(n, big.mark = ",", scientific = FALSE)

collapse_serves <- function(release, bound) without_refusal(collapse_law(release, bound, check = TRUE))

clt_serves <- function(release, bound) {
  release$n >= 2 && without_refusal({
    clt_law(bound, release, NULL)
    clt_noise(release, NULL)
  })
}

without_refusal <- function(code) {
  tryCatch({
    force(code)
    TRUE
  }, noiseaware_error_method = function(e) FALSE)
}
