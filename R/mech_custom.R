#' Noise with a density of your own
#'
#' Any noise with a log density that you can write as an R function: for example heavy-tailed noise, noise that is correlated between components, or noise with
#' a distribution that depends on the totals.
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param log_density `function(noise)` or `function(z, s)`: the log density of the
#'   published value, up to a constant that depends neither on the data nor on the
#'   parameters. `noise` (that is z - s) and `s` are matrices with one candidate per row and the statistic's components as named columns; `z` is the published
#'   value in a matrix of the same shape. Returns one number for each row, -Inf for impossible values.
#' @param r `function(s)`: draws a published value given the named vector s of true totals, using R's generator. It is needed by [simulate_release()] and by the
#'   functions that simulate releases: [calibrate()], [design()] and `bayesplot::pp_check()`.
#' @param sd Standard deviation of the noise, one number or one per component. It is used only by [noise_sd()] and in printed output.
#'
#' @details As in [stat_custom()], the functions are kept without their source references and their environment. They may use R's own functions and
#'   `package::function`, and constants must be written in their code. A function that uses variables from an enclosing function is an error.
#'
#'   **Noise of bounded support.** Chains must start at records for which the published value is possible. To find them, records are drawn, and kept if they
#'   bring the totals closer to zero noise, or to noise drawn by `r` if zero noise is impossible. If the search fails, sampling stops with an error. No draw has
#'   density 0.
#'
#'   **Cost.** Each acceptance decision needs the density at the current totals, so in general the density cannot be evaluated for all records at once. The
#'   sampler predicts which of the next records will be accepted, evaluates the density along that path in one call, and follows the path as long as the
#'   decisions agree with the prediction. This is exact. It costs about 1 microsecond per record at an acceptance rate of 98 per cent and 5 at 70 per cent
#'   (measured with a cheap density). The built-in mechanisms are much faster. With [stat_records()] (`function(noise)` only), one call covers a block of
#'   records.
#'
#'   The package does not know the privacy guarantee of such noise. [release()] does not accept it, because noise in published numbers must come from the
#'   operating system's entropy.
#'
#' @return A mechanism: an object of class `mech_custom`.
#' @section Errors: `noiseaware_error_custom`: not a function of one or two
#'   arguments, or not self-contained. Also, when the function is first used: its value is not one number for each row, is NA or Inf, or differs when rows are
#'   evaluated one by one. An error in the function is shown with its own message. A value of NA or Inf is shown with the totals or the noise that led to it.
#'   `noiseaware_error_impossible`: no starting records were found for which the published value is possible. `noiseaware_error_mechanism` from [release()], and
#'   from [simulate_release()] without `r`.
#' @family mechanisms
#' @examples
#' # Cauchy noise of scale 2
#' cauchy <- mech_custom(log_density = function(noise) rowSums(dcauchy(noise, scale = 2, log = TRUE)),
#'   r = function(s) s + rcauchy(length(s), scale = 2))
#' cauchy
#' st <- stat_sums(~ time, bounds = list(time = c(0, 10)))
#' rel <- as_release(c(time = 71), st, cauchy, n = 40)
#' sample_posterior(rel, model_exponential(), chains = 2, iter = 400, seed = 1)
#' @export
mech_custom <- function(..., log_density, r = NULL, sd = NULL) {
  check_all_named(...)
  check_given("custom")
  arguments <- if (is.function(log_density) && !is.primitive(log_density)) density_arguments(log_density)
  if (is.null(arguments)) stop_argument("log_density", "a function of the noise, or of z and s", describe(log_density), "custom")
  if (!is.null(r) && (!is.function(r) || is.primitive(r) || !accepts_arguments(r, 1L))) {
    stop_argument("r", "NULL or a function of the true totals", describe(r), "custom")
  }
  if (!is.null(sd)) sd <- check_scale(sd, "sd")
  log_density <- keep_alone(log_density, "log_density")
  if (!is.null(r)) r <- keep_alone(r, "r")
  new_custom_mechanism(log_density, arguments, r, sd)
}

new_custom_mechanism <- function(log_density, arguments, r = NULL, sd = NULL) {
  new_mechanism("custom", "density", log_density = log_density, arguments = arguments, r = r, sd = sd, class = "mech_custom")
}

# 1: of the noise; 2: of z and s; NULL: neither
density_arguments <- function(f) {
  needed <- length(needed_arguments(f))
  if (needed %in% 1:2) needed
}

#' @export
mechanism_scale.mech_custom <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  if (!is.null(mechanism$sd)) expand_scale(mechanism$sd, statistic, "sd", call)
  rep(1, length(statistic$components)) # the density knows its own
}

#' @export
mechanism_sd.mech_custom <- function(mechanism, scale) {
  sd <- mechanism$sd %||% NA_real_
  rep(unname(sd), each = length(scale) / length(sd))
}

#' @export
add_noise.mech_custom <- function(mechanism, statistic, total, uniform, scale) {
  if (is.null(mechanism$r)) {
    stop_classed("mechanism", "{.fn mech_custom} needs {.arg r} to simulate a release, as {.fn calibrate} and {.fn bayesplot::pp_check} do.", call = caller_env())
  }
  value <- call_user(mechanism$r, "r", total)
  if (!is.numeric(value) || length(value) != length(total) || !all(is.finite(value))) {
    stop_custom("r", paste(length(total), if (length(total) == 1L) "finite number" else "finite numbers"), value)
  }
  as.double(value)
}

#' @export
check_pair.mech_custom <- function(statistic, mechanism, call) {
  if (statistic$kind == "records" && mechanism$arguments != 1L) {
    stop_classed("mechanism", "With {.fn stat_records} the {.arg log_density} of {.fn mech_custom} must be a function of the noise only.",
                 call = call)
  }
}

#' @export
guarantee_of.mech_custom <- function(x, ...) privacy_row()

#' @export
format.mech_custom <- function(x, ...) "noise with a custom density, an R function (slower than built-in noise)"

#' @export
log_noise.mech_custom <- function(part, data) {
  density <- checked_density(part$mechanism, part$statistic, part$value)
  total <- statistic_total(part$statistic, data)
  sum(density(matrix(part$value - total, ncol = length(part$statistic$components))))
}

# A list: `fun`, the user's function as the sampler calls it, of a matrix of noise; `near`, noise that is possible, 0 if none is
# found; `range`, how far a record can move each component.
custom_density <- function(mechanism, statistic, released, n, call = caller_env()) {
  limits <- component_limits(statistic)
  range <- if (is.null(limits)) rep(1, length(statistic$components)) else limits[, 2L] - limits[, 1L]
  fun <- checked_density(mechanism, statistic, released, n, call)
  list(name = "custom", fun = fun, near = as.double(near_noise(mechanism, statistic, released, fun)), range = ifelse(range > 0, range, 1))
}

# Noise that the density allows: none, or as `r` draws it.
near_noise <- function(mechanism, statistic, released, fun) {
  none <- numeric(length(statistic$components))
  if (fun(t(none)) > -Inf || is.null(mechanism$r) || statistic$kind == "records") return(none)
  total <- stats::setNames(as.double(released), statistic$components)
  drawn <- with_seed(1L, t(vapply(1:20, function(k) call_user(mechanism$r, "r", total) - total, none)))
  dim(drawn) <- c(20L, length(none))
  possible <- which(fun(drawn) > -Inf)
  if (length(possible)) drawn[possible[1L], ] else none
}

# The user's function of a matrix of noise: what it
# returns is checked, and shifted to 0 where there is no noise, as the built-in
# kernels are. Totals that it sees are those that n records can have: what rounding moves beyond is put back.
checked_density <- function(mechanism, statistic, released, n = NULL, call = caller_env()) {
  user <- mechanism$log_density
  arguments <- mechanism$arguments
  components <- statistic$components
  limits <- if (arguments == 2L && !is.null(n)) component_limits(statistic)
  if (statistic$kind != "records" && !is.null(limits)) limits <- n * limits
  shift <- 0
  totals <- function(noise) {
    s <- matrix(released, nrow(noise), length(components), byrow = TRUE, dimnames = list(NULL, components)) - noise
    if (is.null(limits)) return(s)
    lower <- rep(limits[, 1L], each = nrow(s))
    upper <- rep(limits[, 2L], each = nrow(s))
    # pmin() and pmax() would take as long as a density
    below <- which(s < lower)
    above <- which(s > upper)
    s[below] <- lower[below]
    s[above] <- upper[above]
    s
  }
  evaluate <- function(noise) {
    value <- if (arguments == 1L) {
      colnames(noise) <- components
      call_user(user, "log_density", noise)
    } else {
      s <- totals(noise)
      z <- matrix(released, nrow(s), length(components), byrow = TRUE, dimnames = list(NULL, components))
      call_user(user, "log_density", z, s)
    }
    if (!is.numeric(value) || length(value) != nrow(noise)) {
      stop_custom("log_density", paste("one number for each of", nrow(noise), "rows"), value)
    }
    bad <- which(is.na(value) | value == Inf)
    if (length(bad)) {
      at <- if (arguments == 1L) noise else s
      stop_density(value[bad[1L]], stats::setNames(at[bad[1L], ], components), if (arguments == 1L) "noise" else "s")
    }
    as.double(value) - shift
  }
  # three candidates: the value itself, one above it, one below
  trial <- matrix(c(0, -1, 0.5), 3L, length(components))
  together <- evaluate(trial)
  alone <- vapply(1:3, function(i) evaluate(trial[i, , drop = FALSE]), 0)
  if (!isTRUE(all.equal(together, alone))) {
    stop_classed("custom", "{.fn log_density} must treat each row separately, but its values depend on other rows.", call = call)
  }
  # published numbers that no records have may have a density so small that all others would round to the same number
  if (abs(together[1L]) < largest_shift) shift <- together[1L]
  evaluate
}

largest_shift <- 1e9

stop_density <- function(value, at, name) {
  shown <- paste(names(at), "=", format_number(at, 6), collapse = ", ")
  stop_classed("custom", "{.fn log_density} must return finite numbers or -Inf, but returned {value} for {.arg {name}} = {shown}.", call = caller_env())
}

# After a search that found no records under which the noise is possible.
stop_impossible <- function(call) {
  stop_classed("impossible", c("No records were found for which the release is possible: the noise has density 0 at all totals that were tried.",
                               i = "Can this noise connect the published values with totals of so many records within the bounds?",
                               i = paste("Give {.arg init}, parameters of possible records, or a longer {.arg warmup}. {.fn mech_custom} can have an {.arg r},",
                                         "which draws plausible noise.")), call = call)
}
