#' Test a model hook by hook
#'
#' Calls each hook (or R function) of a model outside the sampler and checks its results: shapes and finite values, reproducibility, and the distributions that
#' the exact sampler relies on. It is meant for your own models, from [model_compiled()] or [model_custom()], but accepts any model.
#'
#' @param model A model.
#' @param statistic A statistic (or a release, or a list of statistics) with the variables that the model describes.
#' @param n Number of records to draw for a check.
#' @param seed A whole number. R's generator is left as it was.
#'
#' @details The checks:
#' * `rprior`, `report`: the number of values written is the number that the model declares.
#' * `rrecords`, `move`, `refresh`: nothing is written outside a block.
#' * `rprior`, `rrecords`, `report`: finite values; the same stream gives the same
#'   draws.
#' * `set`: the records depend on theta.
#' * `invert`: recovers theta from the reported values.
#' * `add`: two parts sum to the whole.
#' * `rtheta`: theta from the prior, records from theta, theta from its update: the
#'   last has the distribution of the first (Geweke 2004).
#' * `log_density`: two parts sum to the whole; and the check of `rtheta` with random walks using `log_density` instead of the update, which detects a density
#'   that does not match the records.
#' * `curve`, `prior_curve`: their slopes agree with finite differences of `log_density` and `dprior`. The package's regressions have these hooks.
#' * `dprior`: Metropolis steps with it leave the distribution of prior draws unchanged; this detects a forgotten Jacobian.
#' * `move`: a move to the same theta returns the same records; a move from theta to theta' returns records from theta'.
#' * `from_innovations`: returns the records that `rrecords` draws from the same numbers.
#' * `refresh`: rho = 1 returns the same records; rho = 0.5 leaves their distribution unchanged.
#'
#' Distributions are compared by Kolmogorov-Smirnov tests. For theta before and after an update, and for the records' log density at both, the mean change of
#' ranks is also tested. A p-value below 1e-6 is a failure. For [model_custom()], hooks are printed under the names of its arguments: `r_prior`, `r_records`,
#' `r_theta` and `log_prior`.
#'
#' @return A data frame of class `model_debug`: `hook`, `check`, `ok` (`NA` if the model has no such hook), `detail`.
#' @section Errors: The errors of [sample_posterior()] about the model and its variables.
#' @references
#' Geweke, J. (2004). Getting it right: joint distribution tests of posterior
#' simulators. *Journal of the American Statistical Association* 99, 799-804.
#' \doi{10.1198/016214504000001132}
#' @family models of your own
#' @examples
#' debug_model(model_exponential(), stat_sums(~ time, bounds = list(time = c(0, 10))))
#' @export
debug_model <- function(model, statistic, n = 500, seed = 1) {
  check_given()
  check_model(model)
  if (inherits(statistic, "noiseaware_release")) statistic <- statistic$statistic
  for (s in if (is.list(statistic) && is_several(statistic)) statistic else list(statistic)) check_statistic(s)
  n <- check_count(n, "n", lower = 10)
  seed <- check_seed(seed) %||% 1L
  bound <- bind_model(model, statistic)
  written <- trial_written(bound, seed)
  unsafe <- any(written == 1L)
  trial <- if (unsafe) list() else model_trial(bound, n, seed)
  checks <- list(
    list("rprior", "writes its values", function() written_result(written[1L])), list("report", "writes its values", function() written_result(written[2L])),
    list("rrecords", "stays in its block", trial$records_stay), list("move", "stays in its block", trial$move_stays),
    list("refresh", "stays in its block", trial$refresh_stays),
    list("rprior", "finite", trial$prior_finite), list("rprior", "repeatable", trial$prior_repeatable),
    list("report", "finite", trial$report_finite), list("invert", "inverts report", trial$inverts),
    list("rrecords", "finite", trial$records_finite), list("rrecords", "repeatable", trial$records_repeatable),
    list("set", "records depend on theta", trial$theta_matters),
    list("from_innovations", "makes the records of rrecords", trial$from_innovations),
    list("add", "sums over parts", trial$add_parts),
    list("rtheta", "leaves the joint distribution", trial$joint),
    list("log_density", "sums over parts", trial$density_parts), list("log_density", "is the density of rrecords", trial$record_density),
    list("curve", "has the slopes of log_density", trial$curve), list("prior_curve", "has the slopes of dprior", trial$prior_curve),
    list("dprior", "finite", trial$density_finite), list("dprior", "is the density of rprior", trial$density_distribution),
    list("move", "to the same theta", trial$move_same), list("move", "repeatable", trial$move_repeatable),
    list("move", "gives the new distribution", trial$move_distribution),
    list("refresh", "rho = 1 changes nothing", trial$refresh_same), list("refresh", "leaves the distribution", trial$refresh_distribution)
  )
  rows <- lapply(seq_along(checks), function(k) {
    check <- checks[[k]]
    result <- if (unsafe && k > 2L) not_tried else with_seed(seed, tryCatch(check[[3L]](), error = function(e) failed_check(one_line(e))))
    unsafe <<- unsafe || identical(result, overrun_seen)
    data.frame(hook = check[[1L]], check = check[[2L]], ok = result$ok, detail = result$detail)
  })
  structure(do.call(rbind, rows), label = describe_model(bound), functions = isTRUE(bound$callbacks), class = c("model_debug", "data.frame"))
}

# What a model made of R functions calls the hooks that it may have; the others are not printed of it.
hook_functions <- c(rprior = "r_prior", rrecords = "r_records", rtheta = "r_theta", dprior = "log_prior", log_density = "log_density", move = "move",
                    report = "report", invert = "invert", set = "set")

check_result <- function(ok, detail = "") list(ok = ok, detail = detail)
failed_check <- function(detail) check_result(FALSE, detail)
no_hook <- check_result(NA, "not available")
overrun_seen <- failed_check("writes outside the block: the other hooks are not tried")
not_tried <- check_result(NA, "not tried")

# what rprior() and report() write: 0, their values; 1, more; 2, fewer
trial_written <- function(bound, seed) {
  stream <- new_stream(c(seed %% 2^31, 0), 10L)
  if (isTRUE(bound$callbacks)) return(with_seed(seed %% 2^31, .Call(ffi_model_written, bound$spec, stream)))
  .Call(ffi_model_written, bound$spec, stream)
}

written_result <- function(written) {
  if (written == 0L) return(check_result(TRUE))
  failed_check(if (written == 1L) "writes more values than the model declares: the other hooks are not tried" else "leaves some of its values unwritten")
}

#' @export
print.model_debug <- function(x, ...) {
  failed <- sum(!x$ok, na.rm = TRUE)
  cat(sprintf("<debug> %s: %d checks, %s\n", attr(x, "label"), sum(!is.na(x$ok)), if (failed) paste(failed, "FAILED") else "all passed"))
  if (isTRUE(attr(x, "functions"))) x <- name_functions(x)
  mark <- ifelse(is.na(x$ok), "-", ifelse(x$ok, "ok", "FAILED"))
  cat(paste0("  ", format(x$hook), "  ", format(x$check), "  ", format(mark), "  ", x$detail), sep = "\n")
  invisible(x)
}

name_functions <- function(x) {
  x <- x[x$hook %in% names(hook_functions), ]
  for (hook in names(hook_functions))
    for (text in c("check", "detail")) x[[text]] <- sub(paste0("\\b", hook, "$"), hook_functions[[hook]], x[[text]])
  x$hook <- hook_functions[x$hook]
  x
}

# The checks as functions without arguments, each with its own copy of the
# streams. theta has a prior draw in each column.
model_trial <- function(bound, n, seed) {
  spec <- bound$spec
  stream <- function(k) new_stream(c(seed %% 2^31, 0), k)
  # an R model draws from R's generator: it has streams there too
  call <- function(k, ...) if (isTRUE(bound$callbacks)) with_seed((seed + k) %% 2^31, .Call(...)) else .Call(...)
  prior <- function(draws, k = 0L) call(k, ffi_model_prior, spec, stream(k), as.integer(draws))$theta
  records <- function(theta, k = 1L) call(k, ffi_model_records, spec, theta, as.integer(n), stream(k))$records
  theta <- prior(200)
  from <- theta[, 1L]
  to <- theta[, 2L]
  moves <- bound$moves
  move <- function(to, x, k = 2L) call(k, ffi_model_move, spec, from, to, x, stream(k))
  refresh <- function(rho, x) call(3L, ffi_model_refresh, spec, from, rho, x, stream(3L))$records
  overrun <- function(which) function() {
    over <- call(4L, ffi_model_overrun, spec, from, to, 5L, stream(4L))[which]
    if (is.na(over)) no_hook else if (over) overrun_seen else check_result(TRUE)
  }
  complete <- function(x) call(0L, ffi_model_complete, spec, x)
  shape <- .Call(ffi_model_shape, spec)
  can_refresh <- shape$can_refresh
  c(density_trials(bound, shape, call, prior, theta, function() records(from), stream(9L)), list(
    prior_finite = function() finite(theta),
    prior_repeatable = function() same(prior(200), theta, 0),
    report_finite = function() finite(reported(bound, theta)),
    inverts = function() {
      if (!shape$can_invert) return(no_hook)
      values <- reported(bound, theta[, 1:20, drop = FALSE])
      back <- matrix(apply(values, 1L, function(v) bound_theta(bound, stats::setNames(v, bound$parameters))), nrow(theta))
      # coordinates of cells' probabilities that underflow cannot come back
      if (isTRUE(bound$dependent) && any(values[, startsWith(bound$parameters, "prob[")] < 1e-300)) return(same(reported(bound, back), values, 1e-6))
      same(back, theta[, 1:20, drop = FALSE], 1e-6)
    },
    records_finite = function() finite(records(from)),
    records_repeatable = function() same(records(from), records(from), 0),
    records_stay = overrun(1L), refresh_stays = overrun(2L), move_stays = overrun(3L),
    theta_matters = function() {
      check_result(any(vapply(2:6, function(k) !identical(records(theta[, k]), records(from)), TRUE)))
    },
    from_innovations = function() {
      m <- 150L # within a block
      formed <- call(6L, ffi_model_formed, spec, from, m, stream(6L))
      if (is.null(formed)) no_hook else same(formed, call(6L, ffi_model_records, spec, from, m, stream(6L))$records)
    },
    add_parts = function() {
      x <- records(from)
      if (length(complete(x)) == 0L) return(no_hook)
      half <- seq_len(n) <= n / 2
      same(complete(x[half, , drop = FALSE]) + complete(x[!half, , drop = FALSE]), complete(x))
    },
    joint = function() {
      if (!bound$updates) return(no_hook)
      trial_joint(bound, function(n, replicates) call(6L, ffi_model_joint, spec, n, replicates, stream(6L)))
    },
    curve = function() {
      seen <- curve_at(bound, from, records(from))
      if (is.null(seen)) no_hook else both(same(seen$curve, seen$log_density), same(seen$gradient, seen$slopes, 1e-6))
    },
    prior_curve = function() {
      seen <- curve_at(bound, from, records(from)[1L, , drop = FALSE])
      if (is.null(seen)) no_hook else same(seen$prior_gradient, seen$prior_slopes, 1e-6)
    },
    move_same = function() {
      x <- records(from)
      if (is.null(moves)) no_hook else same(move(from, x), x)
    },
    move_repeatable = function() if (is.null(moves)) no_hook else same(move(to, records(from)), move(to, records(from)), 0),
    move_distribution = function() {
      if (is.null(moves)) return(no_hook)
      end <- replace(from, moves, to[moves]) # known and other coordinates stay
      same_distribution(move(end, records(from)), records(end, 5L))
    },
    refresh_same = function() {
      if (!can_refresh) return(no_hook)
      x <- records(from)
      same(refresh(1, x), x)
    },
    refresh_distribution = function() if (can_refresh) same_distribution(refresh(0.5, records(from)), records(from, 5L)) else no_hook
  ))
}

# The checks of log_density and dprior; `records()` draws some given the first theta.
density_trials <- function(bound, shape, call, prior, theta, records, stream) {
  spec <- bound$spec
  prior_right <- NULL # what density_distribution() found
  density_distribution <- function() {
    prior_right <<- prior_right %||% if (!shape$has_prior) no_hook else trial_density(bound, call, prior)
    prior_right
  }
  list(
    density_parts = function() {
      if (!shape$has_density) return(no_hook)
      x <- records()
      all <- seq_len(nrow(x))
      density <- function(rows, at) call(0L, ffi_model_log_density, spec, theta[, at, drop = FALSE], x[rows, , drop = FALSE])
      # up to a constant, as at two thetas: the second is one that may have made the records
      at <- c(1L, 1L + which(is.finite(density(all, 2:20)))[1L])
      if (anyNA(at)) return(check_result(NA, "not tried"))
      half <- all <= length(all) / 2
      same(diff(density(half, at)) + diff(density(!half, at)), diff(density(all, at)))
    },
    record_density = function() {
      if (!shape$has_density) return(no_hook)
      # a wrong prior density would look like a wrong density of records
      if (identical(density_distribution()$ok, FALSE)) return(check_result(NA, "not tried: first fix dprior"))
      walked <- if (length(bound$walks)) bound$walks else bound$unknown
      sd <- apply(theta[walked, , drop = FALSE], 1L, stats::mad)
      trial_joint(bound, function(n, replicates) call(9L, ffi_model_walk_joint, spec, n, replicates, stream, sd))
    },
    density_finite = function() if (!shape$has_prior) no_hook else finite(call(0L, ffi_model_log_prior, spec, theta)),
    density_distribution = density_distribution
  )
}

finite <- function(x) check_result(all(is.finite(x)), if (all(is.finite(x))) "" else "not finite")

same <- function(a, b, tolerance = 1e-8) {
  worst <- max(abs(a - b) / (1 + abs(b)), 0)
  equal <- is.finite(worst) && worst <= tolerance
  check_result(equal, if (equal) "" else paste("differ by", format_number(worst)))
}

both <- function(a, b) if (a$ok) b else a

# What the hooks curve() and prior_curve() say of records at one theta, with log_density(), and slopes by differences
# (of fourth order) of log_density() and dprior(); NULL if there are none.
curve_at <- function(bound, theta, x) {
  at <- .Call(ffi_model_curve, bound$spec, cbind(theta), x)
  if (is.null(at)) return(NULL)
  walked <- seq_len(nrow(at$gradient))
  step <- 1e-3
  slopes <- function(f) {
    vapply(walked, function(j) {
      moved <- vapply(c(-2, -1, 1, 2) * step, function(by) replace(theta, j, theta[j] + by), theta)
      sum(c(1, -8, 8, -1) * f(moved)) / (12 * step)
    }, 0)
  }
  lapply(c(at, list(slopes = slopes(function(theta) .Call(ffi_model_curve, bound$spec, theta, x)$log_density),
                    prior_slopes = slopes(function(theta) .Call(ffi_model_log_prior, bound$spec, theta)))), drop)
}

# two samples, column by column
ks_p <- function(a, b) {
  min(vapply(seq_len(ncol(a)), function(v) suppressWarnings(stats::ks.test(a[, v], b[, v], exact = FALSE)$p.value), 0))
}

# Two samples of one distribution in pairs, a row each: neither ranks nor their distances from the middle grow on average.
change_p <- function(before, after) {
  of_column <- function(v) {
    rank <- rank(c(before[, v], after[, v])) / (2 * nrow(before) + 1) - 0.5
    half <- seq_len(nrow(before))
    vapply(list(rank, rank^2), function(value) {
      change <- value[-half] - value[half]
      if (all(change == 0)) 1 else 2 * stats::pnorm(-abs(mean(change)) / stats::sd(change) * sqrt(length(change)))
    }, 0)
  }
  min(vapply(seq_len(ncol(before)), of_column, numeric(2)))
}

ks_result <- function(p) check_result(min(p) > 1e-6, if (min(p) < 1e-6) "p below 1e-6" else paste("p =", format_number(min(p), 2)))

same_distribution <- function(a, b) ks_result(ks_p(a, b))

# few records leave the prior's width to the update, many the likelihood's
trial_joint <- function(bound, joint, replicates = 2000L) {
  p <- vapply(bound$model$records %||% c(2L, 20L), function(n) {
    run <- joint(as.integer(n), 2L * replicates)
    if (is.null(run) || !all(is.finite(run$after))) return(NaN)
    before <- reported(bound, run$before)
    after <- reported(bound, run$after)
    # two halves, so that the samples are independent; and the changes of all, which see smaller faults
    first <- seq_len(replicates)
    min(ks_p(after[first, , drop = FALSE], before[-first, , drop = FALSE]),
        change_p(cbind(before, run$density[, 1L]), cbind(after, run$density[, 2L])))
  }, 0)
  if (anyNA(p)) failed_check("the update failed, or is not finite") else ks_result(p)
}

trial_density <- function(bound, call, prior, draws = 1000L, steps = 10L) {
  moves <- bound$unknown
  start <- theta <- prior(draws, 7L)
  fresh <- prior(2L * draws, 8L)[, draws + seq_len(draws), drop = FALSE]
  scale <- apply(theta[moves, , drop = FALSE], 1L, stats::mad)
  density <- call(0L, ffi_model_log_prior, bound$spec, theta)
  if (!all(is.finite(density))) return(failed_check("not finite"))
  for (k in seq_len(steps)) {
    proposed <- theta
    proposed[moves, ] <- proposed[moves, ] + scale * stats::rnorm(length(moves) * draws)
    new <- call(0L, ffi_model_log_prior, bound$spec, proposed)
    if (anyNA(new)) return(failed_check("neither a number nor -Inf at some theta"))
    accept <- log(stats::runif(draws)) < new - density
    theta[, accept] <- proposed[, accept]
    density[accept] <- new[accept]
  }
  walked <- t(theta[moves, , drop = FALSE])
  ks_result(min(ks_p(walked, t(fresh[moves, , drop = FALSE])), change_p(t(start[moves, , drop = FALSE]), walked)))
}
