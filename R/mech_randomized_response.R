#' Randomised response
#'
#' Local privacy for categories. For each record, the true level is published with probability e^epsilon / (e^epsilon + k - 1), where k is the number of levels.
#' Otherwise one of the others is published, each with the same probability (Warner 1965; k-ary: Kairouz, Oh & Viswanath 2014). This gives pure
#' epsilon-differential privacy, and if every person randomises their own answer, the guarantee also holds against those who collect the data.
#'
#' **Other descriptions.** Suppose that an answer is true with probability t, and that otherwise one of the k levels is drawn at random, by a coin if there are
#' two. Then epsilon = log(1 + k t / (1 - t)), which is log(7) for t = 0.75 and two levels. If a level is kept with probability p,
#' epsilon = log((k - 1) p / (1 - p)).
#' If only the number of answers of each level was published, enter them in any order: `as_release(rep(0:1, c(169, 131)), ...)`, codes from 0 on.
#'
#' Use it with [stat_records()] of factors. Several factors in one statistic have equal shares of epsilon; for other shares, use separate statistics with one
#' mechanism each.
#'
#' **Exact at a cost independent of the number of records** if all variables are factors, for [model_glm()] with a binary response or one of several levels, and
#' for [model_table()] with [prior_normal()]. Method `"collapse"` counts the records with the same answers and sums over their true levels. Other models impute
#' the records.
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget per record, a positive number.
#' @return A mechanism: an object of class `mech_randomized_response`.
#' @section Errors: `noiseaware_error_mechanism`, also from [release()] and
#'   [as_release()] with any other statistic; `noiseaware_error_value` from
#'   [as_release()] with published values that are not codes 0, 1, ..., k - 1.
#' @references
#' Warner, S. (1965). Randomized response: a survey technique for eliminating
#' evasive answer bias. \doi{10.1080/01621459.1965.10480775}
#'
#' Kairouz, P., Oh, S. and Viswanath, P. (2014). Extremal mechanisms for local
#' differential privacy. \doi{10.48550/arXiv.1407.1338}
#' @family mechanisms
#' @examples
#' st <- stat_records(~ smoke, levels = list(smoke = c("0", "1")))
#' rel <- release(MASS::birthwt, st, mech_randomized_response(epsilon = 1))
#' sample_posterior(rel, model_bernoulli(), chains = 2, iter = 400, seed = 1)
#' @export
mech_randomized_response <- function(..., epsilon) {
  check_all_named(...)
  check_given("mechanism")
  epsilon <- check_positive(epsilon, "epsilon", "mechanism")
  new_mechanism("randomized_response", "match", epsilon = epsilon, class = "mech_randomized_response")
}

# one over the log of the odds of the true level against another
#' @export
mechanism_scale.mech_randomized_response <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  expand_scale(length(statistic$components) / mechanism$epsilon, statistic, "epsilon", call)
}

# a level differs or not: there is no size of the noise
#' @export
mechanism_sd.mech_randomized_response <- function(mechanism, scale) rep(NA_real_, length(scale))

#' @export
add_noise.mech_randomized_response <- function(mechanism, statistic, total, uniform, scale) {
  levels <- levels_of_each(statistic, length(total))
  others <- (levels - 1) * exp(-1 / scale)
  change <- others / (1 + others)
  # the lowest uniforms change the level, each other one by an equal share
  shift <- pmin(1 + floor(uniform / change * (levels - 1)), levels - 1)
  unname((total + (uniform < change) * shift) %% levels)
}

#' @rdname privacy
#' @export
privacy.mech_randomized_response <- function(x, ...) privacy_row(epsilon = x$epsilon, delta = 0, rho = x$epsilon^2 / 2)

#' @export
format.mech_randomized_response <- function(x, ...) paste0("randomised response, epsilon = ", format_number(x$epsilon))

#' @export
check_pair.mech_randomized_response <- function(statistic, mechanism, call) {
  if (statistic$kind != "records") {
    stop_classed("mechanism", c("Randomised response changes the levels of individual records; it cannot be added to totals.",
                                x = "The statistic is {describe_statistic(statistic)}.",
                                i = "Use {.fn stat_records}, or another mechanism."), call = call)
  }
  numbers <- setdiff(statistic$columns$variable, names(statistic$levels))
  if (length(numbers)) {
    stop_classed("mechanism", c("Randomised response is for factors, but {.var {numbers}} {?is a number/are numbers}.",
                                i = "Use {.fn mech_laplace} or {.fn mech_gaussian}, or release the numbers as a separate statistic."),
                 call = call)
  }
}

#' @export
check_noisy.mech_randomized_response <- function(mechanism, statistic, value, call = caller_env()) {
  last <- rep(statistic$columns$upper, each = length(value) / nrow(statistic$columns))
  bad <- value != floor(value) | value < 0 | value > last
  if (any(bad)) stop_argument("value", "codes of levels, 0 for the first", describe_bad(value, bad), "value", call)
}

# how many levels there are, for each of the values
levels_of_each <- function(statistic, values) rep(unname(lengths(statistic$levels[statistic$columns$variable])), each = values / nrow(statistic$columns))

# In integers, see src/release/exact_noise.c; of the budget at most what the last bits of a double
# may have added is left unspent.
exact_response <- function(part, data, call) {
  codes <- statistic_total(part$statistic, data, call)
  scale <- mechanism_scale(part$mechanism, part$statistic, call)
  scale <- rep(scale, each = length(codes) / length(scale))
  epsilon <- pmin((1 - 2^-40) / scale, 2^52)
  value <- .Call(ffi_exact_response, as.double(codes), as.double(levels_of_each(part$statistic, length(codes))), epsilon)
  list(value = value %||% stop_entropy(call), scale = scale, unit = numeric(length(codes)))
}

#' @export
mechanism_takes.mech_randomized_response <- function(mechanism, statistic, kinds) inherits(statistic, "stat_records") && "code" %in% kinds
