# Sums of bits that every person answered at random. Given the exact counts N of n persons, the sum of level j is Bin(N_j, p) + Bin(n - N_j, q), independently
# of the others. A release has (sum - n q) / (p - q), which has the count for its mean, and the kernel "published" with that distribution
# (src/contract/published.c).

#' Unary encoding and local hashing
#'
#' Local privacy for a variable of many levels: unary encoding (RAPPOR without memory, Erlingsson et al. 2014; optimised: Wang et al. 2017) and local hashing.
#' Every person sends a bit for each level, which is 1 with probability p at the person's own level and with probability q at the others. The sum of these bits
#' over all persons is published for each level.
#'
#' @param ... Must be empty: the other arguments must be named.
#' @param epsilon Privacy budget per person, a positive number; or give `p` and `q`.
#' @param encoding With `epsilon`: `"optimised"` unary encoding has p = 1/2 and q = 1 / (e^epsilon + 1). `"symmetric"` (basic RAPPOR) flips each bit with the
#'   same probability, q = 1 - p and p = 1 / (1 + e^(-epsilon/2)). `"hashing"` is optimised local hashing to g = e^epsilon + 1 values, rounded, with
#'   p = e^epsilon / (e^epsilon + g - 1) and q = 1 / g; a bit says whether a person's report supports the level.
#' @param p,q Probabilities that a bit is 1 at a person's own level, and at others, 0 < q < p < 1.
#' @param shared Whether many persons share a hash function, as in a count-mean sketch. Fits are then approximate, see below.
#'
#' @details
#' Use it with [stat_counts()] of one margin. [as_release()] takes the sums as whole numbers named by levels, and needs the number of persons, `n`. The release
#' holds the unbiased estimates of the counts, (sum - n q) / (p - q), and so does its file. If only these estimates were published, enter estimate * (p - q) + n q,
#' rounded.
#'
#' **Exact.** Given the exact counts, each sum is the sum of two binomial numbers, independently of the others. Methods `"collapse"` and `"augment"` use this
#' distribution. The cost does not depend on `n`, except that binomial probabilities are summed at some counts, over a number of terms that grows with the
#' square root of `n`. Between these counts the log probability is interpolated, to within 1e-8.
#'
#' With local hashing, this is exact if each person has a hash function of their own, drawn so that its values at different levels are independent. In a
#' count-mean sketch many persons share a hash function, so levels that collide rise and fall together. This distribution, with a q that includes collisions, is
#' only an approximation there. Say so with `shared = TRUE`: printed fits and reports then do not call it exact.
#'
#' `epsilon` is log(p (1 - q) / (q (1 - p))) for bits, because two of a person's bits change with the level; for hashing it is the given `epsilon`.
#' [release()] does not draw bits, because every person draws their own; [simulate_release()] does.
#'
#' @return A mechanism: an object of class `mech_unary_encoding`.
#' @section Errors: `noiseaware_error_mechanism`, also from [as_release()] with another statistic or an unknown number of persons; `noiseaware_error_value` for
#'   sums that are not whole numbers from 0 to `n`.
#' @references
#' Erlingsson, U., Pihur, V. and Korolova, A. (2014). RAPPOR: randomized aggregatable privacy-preserving ordinal response. \doi{10.48550/arXiv.1407.6981}
#'
#' Wang, T., Blocki, J., Li, N. and Jha, S. (2017). Locally differentially private protocols for frequency estimation. \doi{10.48550/arXiv.1705.04421}
#' @family mechanisms
#' @examples
#' port <- stat_counts(~ port, levels = list(port = c("S", "C", "Q")))
#' rappor <- mech_unary_encoding(p = 0.75, q = 0.25)
#' rel <- as_release(c(S = 570, C = 320, Q = 290), port, rappor, n = 891)
#' sample_posterior(rel, model_categorical(), chains = 2, iter = 400, seed = 1)
#' @export
mech_unary_encoding <- function(..., epsilon = NULL, encoding = c("optimised", "symmetric", "hashing"), p = NULL, q = NULL, shared = FALSE) {
  check_all_named(...)
  check_flag(shared, "shared")
  given <- check_one_of(list(epsilon = epsilon, `p and q` = c(p, q)))
  hashed <- NULL
  if (given == "epsilon") {
    epsilon <- check_positive(epsilon, "epsilon", "mechanism")
    encodings <- c("optimised", "symmetric", "hashing")
    encoding <- if (identical(encoding, encodings)) "optimised" else check_choice(encoding, "encoding", encodings, "mechanism")
    g <- max(2, round(exp(epsilon)) + 1)
    chances <- switch(encoding, optimised = c(0.5, 1 / (exp(epsilon) + 1)), symmetric = stats::plogis(c(0.5, -0.5) * epsilon),
                      hashing = c(1 / (1 + (g - 1) * exp(-epsilon)), 1 / g))
    if (encoding == "hashing") hashed <- epsilon
    p <- chances[1L]
    q <- chances[2L]
  }
  p <- check_number(p, "p", "a probability between 0 and 1", 0, 1, strict = TRUE, kind = "mechanism")
  q <- check_number(q, "q", "a probability between 0 and 1", 0, 1, strict = TRUE, kind = "mechanism")
  if (!(p - q > 1e-6)) stop_argument("q", paste0("less than `p` (", format_number(p), ")"), describe(q), "mechanism")
  mechanism <- new_mechanism("unary_encoding", "published", p = p, q = q, class = c("mech_unary_encoding", "mech_published"))
  mechanism$hashed <- hashed
  if (shared) mechanism$shared <- TRUE
  mechanism
}

is_unary <- function(mechanism) inherits(mechanism, "mech_unary_encoding")

# Of the estimate of a count: the largest that it may be, whatever the count; not known before n is.
#' @export
mechanism_scale.mech_unary_encoding <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  most <- max(mechanism$p * (1 - mechanism$p), mechanism$q * (1 - mechanism$q))
  rep(sqrt((mechanism[["n"]] %||% NA_real_) * most) / (mechanism$p - mechanism$q), length(statistic$components))
}

#' @export
mechanism_sd.mech_unary_encoding <- function(mechanism, scale) scale

#' @export
guarantee_of.mech_unary_encoding <- function(x, ...) {
  epsilon <- x$hashed %||% (stats::qlogis(x$p) - stats::qlogis(x$q))
  privacy_row(epsilon = epsilon, delta = 0, rho = epsilon^2 / 2)
}

#' @export
format.mech_unary_encoding <- function(x, ...) {
  sprintf("sums of bits, 1 with probability %s at the own level and %s at others, epsilon = %s%s", format_number(x$p), format_number(x$q),
          format_number(privacy(x)$epsilon), if (isTRUE(x[["shared"]])) "; hash functions are shared, so this noise is approximate" else "")
}

#' @export
check_pair.mech_unary_encoding <- function(statistic, mechanism, call) {
  if (inherits(statistic, "stat_counts") && length(statistic$margins) == 1L) return(invisible())
  stop_classed("mechanism", c("{.fn mech_unary_encoding} is for {.fn stat_counts} of one margin, in which every person has one level.",
                              x = "The statistic is {describe_statistic(statistic)}."), call = call)
}

#' @export
mechanism_takes.mech_unary_encoding <- function(mechanism, statistic, kinds) inherits(statistic, "stat_counts")

# The mechanism with the number of persons, which its noise depends on.
sized_mechanism <- function(mechanism, n, neighbours, call = caller_env()) {
  if (!is.object(mechanism)) return(lapply(mechanism, sized_mechanism, n, neighbours, call))
  if (!is_unary(mechanism)) return(mechanism)
  if (is.null(n) || !identical(neighbour_kind(neighbours), "replace")) {
    stop_classed("mechanism", "{.fn mech_unary_encoding} needs the number of persons: {.arg n} must be known, and {.arg neighbours} {.val replace}.", call = call)
  }
  mechanism$n <- as.double(n)
  mechanism
}

# estimates of counts from sums of bits, and back
unary_estimates <- function(mechanism, sums) (sums - mechanism$n * mechanism$q) / (mechanism$p - mechanism$q)
unary_sums <- function(mechanism, estimates) estimates * (mechanism$p - mechanism$q) + mechanism$n * mechanism$q

#' @export
check_noisy.mech_unary_encoding <- function(mechanism, statistic, value, call = caller_env()) {
  sums <- unary_sums(mechanism, value)
  bad <- abs(sums - round(sums)) > 1e-6 * pmax(1, sqrt(mechanism$n)) | round(sums) < 0 | round(sums) > mechanism$n
  if (any(bad)) stop_argument("value", "sums of bits, whole numbers from 0 to `n`", describe_bad(sums, bad), "value", call)
}

#' @export
simulated_part.mech_unary_encoding <- function(part, data, call, uniform = stats::runif, total = part_total(part, data, call)) {
  mechanism <- sized_mechanism(part$mechanism, nrow(data), part$neighbours, call)
  own <- stats::qbinom(uniform(length(total)), total, mechanism$p)
  others <- stats::qbinom(uniform(length(total)), mechanism$n - total, mechanism$q)
  list(value = unname(unary_estimates(mechanism, own + others)), scale = mechanism_scale(mechanism, part$statistic, call), unit = numeric(length(total)))
}

unary_interval <- function(part, family) {
  mechanism <- part$mechanism
  data.frame(family = family, scale = mechanism$p, lower = part$value, upper = part$value, least = mechanism$q,
             records = mechanism$n, table = I(rep(list(NULL), length(part$value))))
}
