# Processing of noisy numbers before they were published. The mechanism keeps its class, its name and its budget. Its kernel is "published", and `after` lists
# the processing: threshold, round, lower, upper (NULL: not done) and listed.
#
# A processed number implies that the noisy number was in an interval, published_interval(). The likelihood is the probability of this interval,
# computed in src/contract/published.c.

#' Noisy numbers that were hidden, rounded or truncated
#'
#' Publishers may hide small noisy numbers, round numbers, or set negative ones to 0. None of this costs privacy budget, because it only uses the noisy numbers.
#' But a posterior that treats the results as plain noisy totals is wrong. Here, the likelihood accounts for each step exactly.
#'
#' @param mechanism How noise was added: [mech_laplace()], [mech_gaussian()], [mech_discrete_laplace()] or
#'   [mech_discrete_gaussian()]. Or [mech_exact()] for counts without noise, if small ones were suppressed or all were rounded.
#'   Or a function such as `mech_laplace` itself, for a data frame with a column of the noise.
#' @param ... Must be empty: the other arguments must be named.
#' @param threshold `NULL`, or a number: noisy numbers below it are hidden. They are `NA` in the release.
#' @param round `NULL`, or a positive number: noisy numbers are rounded to multiples of it, halves to the even multiple as in [round()].
#' @param lower,upper `NULL`, or numbers: values below `lower` are set to `lower`, values above `upper` to `upper`.
#' @param listed With a threshold: `TRUE` if it is known which numbers are hidden, because the list of cells is public. `FALSE` if only the shown numbers are
#'   listed, and the set of possible other numbers is unknown.
#'
#' @details
#' The steps are applied in the order of the arguments: first the threshold, then rounding, then the limits.
#'
#' **The likelihood.** Let s be the exact total and r = s + noise. A hidden number implies that r was below the threshold. A rounded number implies that r was
#' within half a multiple of it, and a number at a limit implies that r was at or beyond the limit. The likelihood is the probability of that event under the
#' noise, in closed form or from sums over the tails of discrete noise. With `listed = FALSE`, the likelihood of a number is its density divided by the
#' probability that it is shown, and numbers that are not listed carry no information.
#'
#' **A component that is `NA`** was hidden. With `listed = TRUE`, a component that is absent from `value` in [as_release()] is an error. With `listed = FALSE`
#' it carries no information; the same holds for components that the statistic leaves out ([stat_subset()]).
#'
#' **Without noise.** `published(mech_exact(), threshold = 10)` is plain cell suppression, for counts and other whole numbers: the posterior covers all tables
#' that agree with the shown numbers. It is computed with discrete Laplace noise of scale 0.05, which differs from 0 less than once in 10^8 draws. Suppression
#' gives no differential privacy guarantee: [privacy()] reports none, and [release()] does not accept it.
#'
#' **Where it works.** Method `"augment"` always supports it, and `"collapse"` for counts and for totals of Poisson and exponential records; both are exact.
#' Other methods do not, because they need the noisy numbers. It applies to totals and counts, not to [stat_records()].
#'
#' @return A mechanism that includes these steps: an object of the mechanism's class and of class `mech_published`. For a function:
#'   a function with the argument `scale` or `sd` of that function, which returns such a mechanism.
#' @section Errors: `noiseaware_error_mechanism`; `noiseaware_error_value` from [as_release()] with numbers that these steps cannot produce.
#' @family published numbers
#' @examples
#' mech_laplace(epsilon = 1) |> published(threshold = 10)
#'
#' # counts below 10 are not shown
#' counted <- stat_counts(~ x, levels = list(x = c("a", "b", "c", "d")))
#' hidden <- mech_discrete_laplace(epsilon = 1) |> published(threshold = 10)
#' rel <- as_release(c(a = 55, b = 28, c = 13, d = NA), counted, hidden, n = 100)
#' rel
#' denoise(sample_posterior(rel, model_categorical(), chains = 2, iter = 400, seed = 1))
#'
#' # the same without noise: the hidden counts add up to 100 - 55 - 28 - 13
#' published(mech_exact(), threshold = 10)
#' @concept suppression
#' @concept suppressed counts
#' @concept small cells
#' @concept rounded counts
#' @export
published <- function(mechanism, ..., threshold = NULL, round = NULL, lower = NULL, upper = NULL, listed = TRUE) {
  check_given()
  check_all_named(...)
  if (is.function(mechanism)) {
    return(published_function(mechanism, function(made) published(made, threshold = threshold, round = round, lower = lower, upper = upper, listed = listed)))
  }
  check_mechanism(mechanism)
  if (is_exact(mechanism)) mechanism <- exact_counts()
  if (!mechanism$kernel %in% c("absolute", "squared")) {
    shown <- if (!is.null(mechanism$after)) "published() already" else format(mechanism)
    stop_argument("mechanism", "Laplace or Gaussian noise, continuous or discrete", shown, "mechanism")
  }
  after <- list(threshold = threshold, round = round, lower = lower, upper = upper)
  after <- after[!vapply(after, is.null, TRUE)]
  if (length(after) == 0L) {
    stop_classed("mechanism", "At least one of {.arg threshold}, {.arg round}, {.arg lower} and {.arg upper} must be given.")
  }
  for (name in names(after)) after[[name]] <- check_step(after[[name]], name)
  check_flag(listed, "listed")
  if (!listed && is.null(threshold)) stop_classed("mechanism", "{.arg listed} needs a {.arg threshold}: without one nothing is hidden.")
  least <- max(after$lower, -Inf)
  if (!is.null(upper) && after$upper <= least) {
    stop_argument("upper", paste0("larger than `lower` (", format_number(least), ")"), describe(upper), "mechanism")
  }
  mechanism$after <- c(after, list(listed = listed))
  mechanism$kernel <- "published"
  structure(mechanism, class = c("mech_published", class(mechanism)))
}

# Of a function such as mech_laplace: a function of its `scale` or `sd`. A first call finds what is wrong with the steps.
published_function <- function(mechanism, process, call = caller_env()) {
  takes <- size_argument(mechanism, call)
  make <- function(size) process(do.call(mechanism, stats::setNames(list(size), takes)))
  make(1)
  if (takes == "sd") function(sd) make(sd) else function(scale) make(scale)
}

# Counts without noise: discrete Laplace noise so narrow that all that is drawn is 0, but for once in 10^8.
exact_counts <- function() {
  mechanism <- mech_discrete_laplace(scale = 0.05)
  mechanism$noiseless <- TRUE
  structure(mechanism, class = c("mech_noiseless", class(mechanism)))
}

#' @export
format.mech_noiseless <- function(x, ...) "exact counts, without noise"

#' @export
guarantee_of.mech_noiseless <- function(x, ...) privacy_row(Inf, 0, Inf, Inf)

#' @export
add_noise.mech_noiseless <- function(mechanism, statistic, total, uniform, scale) total

check_step <- function(x, name, call = caller_env()) {
  if (name == "round") check_positive(x, name, "mechanism", call) else check_number(x, name, "NULL or a finite number", kind = "mechanism", call = call)
}

# what is known of noisy numbers that went through it
publish <- function(after, value) {
  hidden <- value < (after$threshold %||% -Inf)
  if (!is.null(after$round)) value <- round(value / after$round) * after$round
  value <- pmin(pmax(value, after$lower %||% -Inf), after$upper %||% Inf)
  replace(value, hidden, NA_real_)
}

# may numbers be NA, as they were hidden?
hides <- function(mechanism) !is.null(mechanism$after$threshold)

# Of each number of a part: the noise's family and scale, the interval in which the noisy number was, the least that was listed, and the table of tabulated noise.
published_interval <- function(part) {
  mechanism <- part$mechanism
  if (is_unary(mechanism)) return(unary_interval(part, match(mechanism$name, published_families) - 1))
  after <- mechanism$after
  value <- part$value
  discrete <- is_discrete(mechanism)
  ends <- rounded_from(value, after, discrete)
  threshold <- after$threshold %||% -Inf
  if (discrete) threshold <- ceiling(threshold)
  hidden <- is.na(value)
  data.frame(family = match(mechanism$name, published_families) - 1, scale = part$scale,
             lower = ifelse(hidden, -Inf, pmax(ends$lower, threshold)), upper = ifelse(hidden, threshold - discrete, ends$upper),
             least = if (isFALSE(after$listed)) threshold else -Inf, records = 0,
             table = I(rep(list(noise_points(mechanism)), length(value))))
}

# of tabulated noise, as C reads it: see src/contract/tabulated.h
noise_points <- function(mechanism) UseMethod("noise_points")

#' @export
noise_points.default <- function(mechanism) NULL

# enum published_family in C
published_families <- c("laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "tabulated", "unary_encoding")

# From where to where a noisy number was that is shown as `value`: rounded, clipped, or itself.
rounded_from <- function(value, after, discrete) {
  lower <- upper <- value
  unit <- after$round
  at_lower <- !is.null(after$lower) & value == (after$lower %||% 0)
  at_upper <- !is.null(after$upper) & value == (after$upper %||% 0)
  if (!is.null(unit)) {
    # a limit need not be a multiple: it holds what is rounded to the next one inside, and all beyond
    first <- ifelse(at_upper, ceiling(value / unit - 1e-9), round(value / unit))
    last <- ifelse(at_lower, floor(value / unit + 1e-9), round(value / unit))
    lower <- (first - 0.5) * unit
    upper <- (last + 0.5) * unit
  }
  if (discrete) {
    # halves are rounded to even multiples
    odd <- function(multiple) if (is.null(unit)) FALSE else multiple %% 2 == 1
    whole <- function(x) abs(x - round(x)) < 1e-9
    lower <- ifelse(whole(lower), round(lower) + odd(if (!is.null(unit)) first), ceiling(lower))
    upper <- ifelse(whole(upper), round(upper) - odd(if (!is.null(unit)) last), floor(upper))
  }
  list(lower = ifelse(at_lower, -Inf, lower), upper = ifelse(at_upper, Inf, upper))
}

# of a whole statistic of which the components `at` were published: nothing is known of the others
fill_interval <- function(interval, at, size) {
  known <- match(seq_len(size), at)
  whole <- interval[known, ]
  unknown <- is.na(known)
  whole[unknown, 1:6] <- list(0, 1, -Inf, Inf, -Inf, 0)
  whole
}

# log probability of what was published, for exact totals, a row each
published_density <- function(interval, total) .Call(ffi_density, published_spec(interval), matrix(-as.double(total), nrow(total)))

published_spec <- function(interval) {
  tables <- unique(interval$table)
  of <- vapply(interval$table, function(table) which(vapply(tables, identical, TRUE, table))[1L], 0L)
  fields <- lapply(interval[names(interval) != "table"], as.double)
  list(name = "published", fields = c(fields, list(table = as.double(unlist(tables)), table_at = cumsum(c(0, lengths(tables)))[of])))
}

# ---- what the owner and simulations do ---------------------------------------------------

#' @export
add_noise.mech_published <- function(mechanism, statistic, total, uniform, scale) {
  after <- mechanism$after
  if (after$listed) return(publish(after, NextMethod()))
  # Noise given that the number is shown. It is symmetric: minus the noise is at most total - threshold.
  reach <- total - if (is_discrete(mechanism)) ceiling(after$threshold) else after$threshold
  below <- noise_cumulative(mechanism, reach, scale)
  noise <- -mechanism_noise(mechanism, pmax(uniform * below, 1e-300), scale)
  publish(after, pmax(total + noise, after$threshold))
}

# the distribution function of the noise
noise_cumulative <- function(mechanism, x, scale) {
  switch(mechanism$name,
    laplace = ifelse(x < 0, exp(x / scale) / 2, 1 - exp(-x / scale) / 2),
    gaussian = stats::pnorm(x, 0, scale),
    discrete_laplace = pdiscrete_laplace(x, 0, scale),
    discrete_gaussian = pdiscrete_gaussian(x, 0, scale))
}

#' @export
check_pair.mech_published <- function(statistic, mechanism, call) {
  if (statistic$kind == "records") {
    by <- if (is.null(mechanism$after)) "mech_tabulated" else "published"
    stop_classed("mechanism", c("{.fn {by}} is for totals, which are single numbers.", x = "The statistic is {describe_statistic(statistic)}."), call = call)
  }
  NextMethod()
}

#' @export
check_noisy.mech_published <- function(mechanism, statistic, value, call = caller_env()) {
  after <- mechanism$after
  interval <- published_interval(list(mechanism = mechanism, value = value, scale = rep(1, length(value))))
  hidden <- is.na(value)
  if (any(hidden) && !after$listed) {
    stop_argument("value", "numbers that were shown, because hidden ones are not listed", "NA", "value", call)
  }
  off_grid <- !is.null(after$round) & abs(value - round(value / (after$round %||% 1)) * (after$round %||% 1)) > 1e-9 * pmax(1, abs(value))
  off_grid <- off_grid & !value %in% c(after$lower, after$upper)
  outside <- value < (after$lower %||% -Inf) | value > (after$upper %||% Inf)
  bad <- !hidden & (off_grid | outside | interval$lower > interval$upper)
  if (any(bad)) stop_argument("value", paste("numbers that were", describe_published(mechanism)), describe_bad(value, bad), "value", call)
}

# in words
describe_published <- function(mechanism) {
  after <- mechanism$after
  shown <- lapply(after[names(after) != "listed"], format_number, digits = 15)
  parts <- c(if (!is.null(after$threshold)) paste0("hidden below ", shown$threshold, if (!after$listed) " (only shown numbers are listed)"),
             if (!is.null(after$round)) paste("rounded to multiples of", shown$round),
             if (!is.null(after$lower)) paste("raised to", shown$lower, "where below"),
             if (!is.null(after$upper)) paste("lowered to", shown$upper, "where above"))
  paste(parts, collapse = ", ")
}

#' @export
format.mech_published <- function(x, ...) paste0(NextMethod(), "; ", describe_published(x))

# ---- what methods ask ---------------------------------------------------------------------

#' @export
augment_part.mech_published <- function(part, bound, n) {
  statistic <- part$statistic
  spec <- statistic_spec(statistic)
  size <- length(statistic$components)
  c(spec, list(kind = "totals", kernel = "density", density = published_spec(part$interval), column = match(statistic$columns$name, bound$columns$name) - 1L,
               index = part$index, at = part$at, released = numeric(size), scale = rep(1, size)))
}

#' @export
log_noise.mech_published <- function(part, data) {
  published_density(published_interval(part), t(statistic_total(part$statistic, data, empty = TRUE)))
}

# for methods that need the noisy numbers
check_as_noise_left <- function(part, method, call) {
  if (part$mechanism$kernel != "published") return(invisible())
  if (is_unary(part$mechanism)) {
    stop_classed("method", c("Method {.val {method}} needs noise whose distribution is the same for all totals.",
                             x = "The release has {format(part$mechanism)}.", i = "Method {.val augment} can use them."), call = call)
  }
  if (is.null(part$mechanism$after)) {
    stop_classed("method", c("Method {.val {method}} needs Laplace or Gaussian noise.", x = "The mechanism is {format(part$mechanism)}.",
                             i = "Method {.val augment} can use it."), call = call)
  }
  stop_classed("method", c("Method {.val {method}} needs the noisy numbers without further processing.",
                           x = "They are {describe_published(part$mechanism)}.", i = "Method {.val augment} can use them."), call = call)
}

# The least and the largest that the noisy numbers of a part can have been.
noisy_ends <- function(part) {
  if (part$mechanism$kernel != "published") return(list(lower = part$value, upper = part$value))
  published_interval(part)[c("lower", "upper")]
}
