# Chains of a problem, whatever the method: see src/contract/run.c and src/r/chains.c.

#' @export
engine_sample.engine <- function(engine, release, bound, run, init = NULL, control = list(), prior_n = NULL, call = caller_env()) {
  words <- with_seed(run$seed, seed_words())
  problem <- engine_problem(engine, release, bound, control, words, run$chains, prior_n, call)
  if (isTRUE(problem$independent) && !is.null(init)) say_init_unused(engine$method)
  sample_chains(problem, release, bound, run, init, words, call)
}

sample_chains <- function(problem, release, bound, run, init, words, call = caller_env()) {
  chains <- run_chains(run$chains, function(k, report) {
    with_callback_seed(bound, chain_seed(words, k), {
      state <- start_chain(problem, bound, words, k, init[[k]], call)
      run_blocks(problem, state, run$iter, run, report)
    })
  }, run$iter * run$chains, call)
  fit_from_chains(chains, release, bound, run, problem, words)
}

# chain k owns the stream after k - 1 jumps
start_chain <- function(problem, bound, words, k, theta, call = caller_env()) {
  stream <- new_stream(words, k - 1L)
  problem$given <- !is.null(theta)
  if (is.null(theta)) {
    prior <- .Call(ffi_model_prior, bound$spec, stream, 1L)
    theta <- begin_within(bound, prior$theta)
    stream <- prior$state
  }
  new_state(problem, theta, stream, call)
}

# A start, which may be anywhere, of covariates whose means are between the bounds and do not depend on factors: from a draw of the prior that puts
# most records far beyond the bounds, a chain with factors takes a thousand iterations and more to come back, since such records hardly change levels.
begin_within <- function(bound, theta) {
  theta <- begin_response(bound, theta)
  if (length(unknown_at(bound, "effect")) == 0L) return(theta)
  theta[unknown_at(bound, "effect")] <- 0
  of <- sub("^mean\\[(.*)\\]$", "\\1", grep("^mean\\[", bound$parameters, value = TRUE))
  column <- bound$columns[match(of, bound$columns$name), ]
  means <- unknown_at(bound, "mean")
  if (length(means) == length(of)) theta[means] <- pmin(pmax(theta[means], column$lower), column$upper)
  theta
}

# The same of a response under the default prior, whose slopes are independent of the residual sd: slopes that put most responses beyond the bounds, and a
# small sd about them, hold a chain for long.
begin_response <- function(bound, theta) {
  if (!identical(bound$model$prior, prior_normal()) || !identical(bound$model$sigma, prior_lognormal())) return(theta)
  slopes <- unknown_at(bound, "coefficients")[-1L]
  sigma <- unknown_at(bound, "sigma")
  theta[slopes] <- theta[slopes] / 4
  theta[sigma] <- pmax(theta[sigma], log(half_of_response(bound$columns) / 4))
  theta
}

# places in theta
unknown_at <- function(bound, block) {
  row <- bound$coordinates[bound$coordinates$block == block & !bound$coordinates$known, ]
  row$offset + seq_len(sum(row$length))
}

# one that the release is possible for
new_state <- function(problem, theta, stream, call) {
  state <- .Call(ffi_start, problem, as.double(theta), stream)
  if (is.null(state)) stop_impossible(call)
  state
}

# Runs a chain on, in blocks short enough for progress and interrupts. `state`
# belongs to this call: C changes it, and the block, in place. Status: 0 done,
# 1 interrupted, 2 failed, 3 full: goes on with a state that has more room. A block ends where warmup does, so that `report` hears
# what iterations after it take. C hears an interrupt between two iterations, a
# user's R function anywhere: then the block is undone.
run_blocks <- function(problem, state, iterations, run, report, call = caller_env()) {
  schedule <- lapply(run[c("warmup", "thin")], as.double)
  user_code <- any(rapply(problem, is.function, how = "unlist"))
  if ("running" %in% names(problem$model)) problem$model$running <- integer(1L) # C writes to it
  limit <- min(most_iterations(problem), ceiling(iterations / 20)) # so that a forecast comes early
  most <- if (user_code) 1 else limit
  blocks <- list()
  status <- 0L
  tryCatch({
    left <- iterations
    while (left > 0 && status == 0L) {
      ahead <- run$warmup - state$iteration
      count <- min(left, most, if (ahead > 0) ahead)
      at <- seq_len(count) - ahead
      began <- elapsed_seconds()
      if (user_code) before <- list(state = .Call(ffi_duplicate, state), seed = globalenv()$.Random.seed)
      block <- .Call(ffi_block, problem, as.integer(count), sum(at > 0 & at %% run$thin == 0))
      blocks[[length(blocks) + 1L]] <- block
      rethrow_user_error(problem, .Call(ffi_run, problem, state, block, schedule))
      status <- block$made$status
      count <- as.double(block$made$iterations)
      left <- left - count
      seconds <- elapsed_seconds() - began
      if (user_code) most <- max(1, min(limit, 2 * most, floor(count * 0.2 / max(seconds, 1e-3)))) # so much may be undone
      report(count, seconds, ahead > 0)
      if (status == 3L) { # full
        state <- give_room(state, problem)
        status <- 0L
      }
    }
  }, interrupt = function(i) status <<- 1L)
  if (user_code && status == 1L) state <- undo_block(blocks, before, state)
  diagnostics <- .Call(ffi_chain_diagnostics, problem, state, schedule)
  chain <- join_blocks(blocks, problem$where, problem$times[problem$summed], problem$tracked)
  # tabulated noise that no move could make possible: see src/contract/tabulated.c
  if (has_tables(problem) && any(chain$log_noise < -5e8)) stop_impossible(call)
  c(chain, list(diagnostics = diagnostics, state = state, status = status))
}

# The state before the last block, and R's seed, if it made no iteration.
undo_block <- function(blocks, before, state) {
  if (length(blocks) == 0L || blocks[[length(blocks)]]$made$iterations > 0L) return(state)
  if (!is.null(before$seed)) assign(".Random.seed", before$seed, envir = globalenv())
  before$state
}

# Is there tabulated noise anywhere? Other noise may have so small a density without being impossible, if there is hardly any.
has_tables <- function(problem) {
  is.list(problem) && (length(problem[["table_at"]]) > 0L && length(problem[["table"]]) > 0L || any(vapply(problem, has_tables, TRUE)))
}

# A function that takes a chain on by one iteration, `state` in place, and returns the block of it, the same each time. For
# those who look at the state after every iteration, of a problem without user's R functions.
single_iterations <- function(problem, state, run) {
  schedule <- lapply(run[c("warmup", "thin")], as.double)
  block <- .Call(ffi_block, problem, 1L, 1L)
  function() {
    .Call(ffi_run, problem, state, block, schedule)
    block
  }
}

# A state of method "augment" with room for twice as many records at each site where their number is not known: `x` has a column for each
# variable of a site, one site after the other.
give_room <- function(state, problem) {
  sites <- unname(problem$sites %||% list(problem))
  room <- state$room
  more <- ifelse(vapply(sites, function(site) is.null(site$size_prior), TRUE), 0, room)
  check_room(sum(room + more))
  widen <- function(values) {
    columns <- length(values) / sum(room)
    one <- function(end, room, more) {
      rbind(matrix(values[end - room * columns + seq_len(room * columns)], room), matrix(vector(typeof(values), more * columns), more, columns))
    }
    unlist(Map(one, cumsum(room * columns), room, more), use.names = FALSE)
  }
  state[c("x", "accepted", "room")] <- list(widen(state$x), widen(state$accepted), room + more)
  state
}

most_imputed <- 2^28

check_room <- function(room, known = FALSE, call = caller_env()) {
  if (room <= most_imputed) return(invisible())
  stop_classed("size", c(paste("Method {.val augment} can impute at most {format_size(most_imputed)} records, but",
                               if (known) "there are {format_size(room)}." else "their number is unknown and may be larger."),
                         i = if (!known) "Set {.arg prior_n} to a prior with fewer records."), call = call)
}

# `where` the release's components stand among the components of the blocks' statistic; after them there are `tracked` counts of a table
join_blocks <- function(blocks, where, times = NULL, tracked = NULL) {
  if (length(blocks) == 0L) return(NULL)
  names <- setdiff(names(blocks[[1L]]), "made")
  chain <- lapply(stats::setNames(nm = names), function(name) bind_blocks(blocks, name))
  chain$work <- sum(vapply(blocks, function(block) block$made$work, 0))
  if (!is.null(tracked) && tracked > 0) chain$table <- chain$statistic[, length(where) + seq_len(tracked), drop = FALSE]
  if (!identical(where, seq_len(ncol(chain$statistic)))) chain$statistic <- chain$statistic[, where, drop = FALSE]
  if (!is.null(times)) chain$statistic <- chain$statistic * rep(times, each = nrow(chain$statistic))
  chain
}

# a block has `acceptance` for each iteration, the rest for each draw (matrices: one a column)
bind_blocks <- function(blocks, name) {
  part <- if (name == "acceptance") "iterations" else "draws"
  values <- lapply(blocks, function(b) {
    all <- b[[name]]
    made <- b$made[[part]]
    if (made == if (is.matrix(all)) ncol(all) else length(all)) return(all)
    if (is.matrix(all)) all[, seq_len(made), drop = FALSE] else all[seq_len(made)]
  })
  if (is.matrix(values[[1L]])) t(do.call(cbind, values)) else do.call(c, values)
}

# how many iterations a block has at most
most_iterations <- function(problem) {
  floor(max(1, switch(problem$method, augment = min(5e6 / problem$n, 1000), clt = min(1e9 / length(problem$released)^3, 10000),
                      pool_records = min(5e6 / problem$n, 1000), collapse = 1000, pool = 1000)))
}

# A user's R functions draw from R's generator: a chain has a seed of its own
# there too, and what the generator was at its end goes into the state.
chain_seed <- function(words, k) as.integer((words[1L] + 7919 * k) %% 2^31)

with_callback_seed <- function(bound, seed, code) {
  if (!isTRUE(bound$callbacks)) return(code)
  with_seed(seed, {
    result <- code
    if (is.list(result$state)) result$state$r_seed <- globalenv()$.Random.seed
    result
  })
}

elapsed_seconds <- function() proc.time()[["elapsed"]]

# Hears of each block of a chain, its seconds, and whether it was of warmup. Tells the progress bar; and the user, if it is long, what
# time is left for `iterations`, of this chain and those that run after it: after a twentieth of them or 3 seconds, when what it goes by is well
# above a tick of the clock; and again after warmup, if iterations take another time there by half or more.
reporter <- function(progress, iterations, told = FALSE) {
  done <- 0
  all <- later <- c(count = 0, seconds = 0)
  said <- NULL # seconds per iteration that were reported
  tell <- function(clock, what) {
    rate <- clock[["seconds"]] / clock[["count"]]
    near <- !is.null(said) && abs(log(rate / said)) < log(1.5)
    if (!near && tell_forecast((iterations - done) * rate, what)) said <<- rate
  }
  begun <- FALSE
  function(amount, seconds, warmup = FALSE) {
    progress(amount = amount)
    done <<- done + amount
    if (told) return(invisible())
    all <<- all + c(amount, seconds)
    if (!warmup) later <<- later + c(amount, seconds)
    if (later[["seconds"]] >= 0.1) {
      told <<- TRUE
      tell(later, "Warmup has finished; about")
    } else if (!begun && all[["seconds"]] >= 0.1 && (done >= iterations / 20 || all[["seconds"]] >= 3)) {
      begun <<- TRUE
      tell(all, "Judging by the first iterations, about")
    }
    invisible()
  }
}

# Was it worth a message?
tell_forecast <- function(seconds, what) {
  if (seconds < 10) return(FALSE)
  time <- format_time(seconds)
  cli::cli_inform("{what} {time} left.", class = c("noiseaware_message_forecast", "immediateCondition"))
  TRUE
}

# Calls chain(k, report) for every chain, each in a future. An interrupt ends
# the run; what is there by then is returned. Under a sequential plan no future
# is made: that would cost more than a short chain.
run_chains <- function(count, chain, total, call = caller_env()) {
  progress <- progress_in_steps(total)
  here <- plan_is_sequential()
  rounds <- if (here) count else ceiling(count / future::nbrOfWorkers())
  report <- function(k) reporter(progress, rounds * total / count, told = k > 1L)
  futures <- list()
  values <- list()
  interrupted <- FALSE
  lost <- 0L # chains whose worker died
  tryCatch({
    if (here) {
      while (length(values) < count && (length(values) == 0L || values[[length(values)]]$status == 0L)) {
        values[[length(values) + 1L]] <- chain(length(values) + 1L, report(length(values) + 1L))
      }
    } else {
      for (k in seq_len(count)) {
        heard <- report(k)
        futures[[k]] <- future::future(chain(k, heard), seed = NULL, packages = "noiseaware")
      }
      values <- lapply(futures, function(f) tryCatch(future::value(f), FutureError = function(e) NULL))
      lost <- sum(vapply(values, is.null, TRUE))
      values <- Filter(Negate(is.null), values)
    }
  }, interrupt = function(i) interrupted <<- TRUE)
  if (interrupted && length(futures)) {
    finished <- Filter(function(f) future::resolved(f), futures)
    values <- lapply(finished, function(f) tryCatch(future::value(f), error = function(e) NULL))
    values <- Filter(Negate(is.null), values)
  }
  status <- vapply(values, function(v) v$status, 0L)
  if (any(status == 2L)) {
    stop_classed("numerical", c("The update of the parameters failed: a matrix is not positive definite, or a number is not finite.",
                                i = "Is the prior's scale far from the bounds'?",
                                i = "{.fn debug_model} tests your own model, function by function."), call = call)
  }
  incomplete <- interrupted || any(status == 1L) || length(values) < count
  values <- Filter(function(v) NROW(v$draws) > 0L, values)
  if (incomplete) warn_interrupted(values, count, lost, call)
  values
}

warn_interrupted <- function(values, count, lost, call) {
  if (lost > 0L) {
    message <- c("{lost} of {count} chain{?s} {?was/were} lost with the process that ran {?it/them}.", i = "Was the process killed, or out of memory?")
    if (length(values) == 0L) stop_classed("worker", message, call = call)
    return(cli::cli_warn(c(message, i = "The draws come from the other chains."), class = "noiseaware_warning_worker", call = call))
  }
  if (length(values) == 0L) {
    stop_classed("interrupted", "Interrupted during warmup: there are no draws yet.", call = call)
  }
  draws <- sum(vapply(values, function(v) nrow(v$draws), 0L))
  cli::cli_warn(c("The run was interrupted: {length(values)} of {count} chain{?s}, with {draws} draw{?s}.",
                  i = "{.fn extend} continues these chains."),
                class = "noiseaware_warning_interrupted", call = call)
}
