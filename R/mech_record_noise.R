# Noise on every record's values, kernel "records": the totals are those of noisy records. Method "collapse" relates them to the confidential ones
# (src/totals/noisy_records.c).

#' Noise on every record
#'
#' Normal noise with a known standard deviation for each variable was added to each record's values before anything was summed: measurement error, or people who
#' perturb their numbers before they report them. The noisy records may be public. An ordinary regression of one noisy variable on another is then biased: its
#' slopes are attenuated. The posterior accounts for the noise; Evans and King (2023) correct the estimates instead.
#'
#' @param ... Must be empty: the other argument must be named.
#' @param sd Standard deviations: a vector named by numeric variables. Variables that are not named, or have the value 0, have no noise.
#' @param answers `NULL`, or how the levels of factors were perturbed: [mech_randomized_response()] for all factors, each with an equal share of epsilon, or a
#'   list of such mechanisms, named by factors. Factors that are not named are exact.
#'
#' @details
#' [as_release()] accepts the noisy records themselves, with [stat_records()] without bounds, and keeps only their totals and the totals of their products: see
#' the examples. They may be a data frame, [record_source()], or a database table or query (through dbplyr), which is read in one pass, in chunks. The totals
#' are also accepted, with [stat_crossprod()].
#'
#' **Exact at a cost independent of the number of records** under [model_lm()] and [model_mvnormal()]: the totals of the noisy records are sufficient, because
#' the confidential values are normal given the parameters and the noisy values. Given these, method `"collapse"` draws the totals of the confidential records.
#' Nothing is clamped: the statistic's bounds only scale the default priors. [as_release()] sets the bounds to the mean plus and minus three standard
#' deviations. Both are computed from the noisy values, after subtracting the noise's variance, so they are as public as the noisy values. The
#' default prior of sigma in [model_lm()] is `prior_half_normal()` here: noise on covariates may leave open whether sigma is near 0,
#' which the usual default excludes.
#'
#' **Products and powers of noisy variables** have no sufficient totals. If the formula of [stat_records()] contains any, as in `y ~ x * z + I(x^2)`,
#' [as_release()] keeps both the noisy records and their totals, and method `"collapse"` imputes the confidential values of each record under [model_lm()]. This
#' is also exact, at a cost proportional to the number of records. Such a release cannot be written to a file.
#'
#' **Factors with randomised response** can be combined with noisy numbers. With `answers`, [as_release()] also keeps the records, and [model_lm()] imputes the
#' confidential level of each factor given the rest of its record, with or without products. [pp_check.noiseaware_fit()] is not available for such a fit.
#'
#' *Distributional assumptions matter.* Imputed levels and curvature depend on the shape of the residuals' distribution, which is assumed to be normal, as are
#' numeric covariates. The tail of a skewed response, such as wages, can be mistaken for the effect of a level or a square. Take its logarithm.
#'
#' If every `sd` is 0, and without `answers`, the draws follow [nonprivate_posterior()] under the same prior. Method `"naive"` treats the noisy values as true.
#'
#' **No guarantee** is computed. Normal noise on values in a declared range does have a guarantee: use [stat_records()] with bounds and [mech_gaussian()], which
#' method `"augment"` accounts for record by record.
#' @return A mechanism: an object of class `mech_record_noise`.
#' @section Errors: `noiseaware_error_mechanism`; `noiseaware_error_method` from methods that need noise on totals.
#' @references
#' Evans, G. and King, G. (2023). Statistically valid inferences from differentially private data releases, with application to
#' the Facebook URLs dataset. *Political Analysis* 31, 1-21. \doi{10.1017/pan.2022.1}
#' @seealso [stat_records()]
#' @family mechanisms
#' @examples
#' set.seed(1)
#' noisy <- MASS::birthwt
#' noisy$lwt <- noisy$lwt + rnorm(nrow(noisy), sd = 20)
#' rel <- as_release(noisy, stat_records(bwt ~ age + lwt), mech_record_noise(sd = c(lwt = 20)))
#' rel
#' sample_posterior(rel, model_lm(), chains = 2, iter = 1000, seed = 1)
#'
#' # smoking by randomised response: one answer in four is flipped
#' noisy$smoke <- ifelse(runif(nrow(noisy)) < 0.25, 1 - noisy$smoke, noisy$smoke)
#' mech <- mech_record_noise(sd = c(lwt = 20), answers = mech_randomized_response(epsilon = log(3)))
#' st <- stat_records(bwt ~ lwt + smoke, levels = list(smoke = c("0", "1")))
#' sample_posterior(as_release(noisy, st, mech), model_lm(), chains = 2, iter = 400, seed = 1)
#' @export
mech_record_noise <- function(..., sd, answers = NULL) {
  check_all_named(...)
  check_given("mechanism")
  must <- "non-negative numbers, named by variables"
  if (!is.numeric(sd) || length(sd) == 0L) stop_argument("sd", must, describe(sd), "mechanism")
  if (!checkmate::test_names(names(sd), "unique")) stop_argument("sd", must, "numbers without unique names", "mechanism")
  bad <- !is.finite(sd) | sd < 0
  if (any(bad)) stop_argument("sd", must, describe_bad(sd, bad), "mechanism")
  mechanism <- new_mechanism("record_noise", "records", sd = stats::setNames(as.double(sd), names(sd)), class = "mech_record_noise")
  if (!is.null(answers)) mechanism$answers <- check_answers(answers)
  mechanism
}

check_answers <- function(answers, call = caller_env()) {
  randomised <- function(m) inherits(m, "mech_randomized_response")
  several <- is.list(answers) && !is.object(answers) && length(answers) > 0L && checkmate::test_names(names(answers), "unique") && all(vapply(answers, randomised, TRUE))
  if (randomised(answers) || several) return(answers)
  stop_argument("answers", "NULL, mech_randomized_response() or a list of such named by factors", describe(answers), "mechanism", call)
}

# of each factor of the statistic that has them
answer_channels <- function(mechanism, levels) {
  answers <- mechanism$answers
  if (is.null(answers)) return(NULL)
  one <- inherits(answers, "mech_randomized_response")
  named <- if (one) names(levels) else intersect(names(answers), names(levels))
  lapply(stats::setNames(nm = named), function(f) {
    if (one) channel_of(answers, f, levels[[f]], length(levels)) else channel_of(answers[[f]], f, levels[[f]])
  })
}

# The records hold the levels that were answered, so an answer must be a level.
check_answer_levels <- function(mechanism, levels, call) {
  answers <- mechanism$answers
  one <- inherits(answers, "mech_randomized_response")
  for (f in if (one) names(levels) else names(answers)) {
    of_factor <- if (one) answers else answers[[f]]
    if (!is.null(of_factor$epsilon)) next
    if (is.list(of_factor$matrix) && !f %in% names(of_factor$matrix)) {
      stop_classed("mechanism", "{.arg matrix} of {.arg answers} must have an entry for {.var {f}}.", call = call)
    }
    check_channel_levels(of_factor, f, levels[[f]], "matrix", call)
    strange <- setdiff(colnames(channel_of(of_factor, f, levels[[f]])), levels[[f]])
    if (length(strange)) {
      stop_classed("mechanism", c("Noisy records have levels for answers, but {.val {strange}} {?is not a level/are not levels} of {.var {f}}.",
                                  i = "Other answers need {.fn mech_randomized_response} without noisy numbers."), call = call)
    }
  }
}

has_noisy_records <- function(parts) any(vapply(parts, function(p) p$mechanism$kernel == "records", TRUE))

check_record_noise_alone <- function(parts, neighbours, call) {
  if (!has_noisy_records(parts)) return(invisible())
  if (length(parts) > 1L) {
    stop_classed("mechanism", "{.fn mech_record_noise} must be the only mechanism: noisy records cannot be combined with another statistic of them.", call = call)
  }
  if (neighbours != "replace") {
    stop_classed("neighbours", "{.fn mech_record_noise} has no guarantee that depends on {.arg neighbours}: leave it at {.val replace}.", call = call)
  }
}

# Totals of noisy records that were summed elsewhere.
check_record_noise_totals <- function(parts, n, call) {
  if (!has_noisy_records(parts)) return(invisible())
  if (is.null(n)) stop_argument("n", "the number of noisy records, which is public because they are", "NULL", call = call)
  if (!inherits(parts[[1L]]$statistic, "stat_crossprod")) {
    stop_classed("value", c("Noise on every record needs all totals and products of the noisy records.",
                            x = "{.arg value} has only {length(parts[[1L]]$statistic$components)} of them."), call = call)
  }
}

# of each column of the statistic or of a bound model
record_sd <- function(mechanism, columns) {
  sd <- unname(mechanism$sd[columns$name])
  sd[is.na(sd)] <- 0
  sd
}

# the totals have no noise of a scale of their own
#' @export
mechanism_scale.mech_record_noise <- function(mechanism, statistic, call = caller_env(), unit = 0, neighbours = "replace") {
  rep(NA_real_, length(statistic$components))
}

#' @export
mechanism_sd.mech_record_noise <- function(mechanism, scale) scale

#' @export
guarantee_of.mech_record_noise <- function(x, ...) privacy_row(NA_real_, NA_real_, NA_real_, NA_real_)

#' @export
format.mech_record_noise <- function(x, ...) {
  answers <- if (is.object(x$answers)) list(factors = x$answers) else x$answers
  told <- vapply(names(answers), function(name) paste0("; ", name, " by ", format(answers[[name]])), "")
  paste0("Gaussian noise on every record, sd ", shorten_list(paste(names(x$sd), format_number(x$sd)), 4L), paste(told, collapse = ""))
}

#' @export
mechanism_takes.mech_record_noise <- function(mechanism, statistic, kinds) inherits(statistic, c("stat_crossprod", "stat_records"))

#' @export
check_pair.mech_record_noise <- function(statistic, mechanism, call) {
  if (!is_unbounded(statistic) && !inherits(statistic, "stat_crossprod")) {
    stop_classed("mechanism", c("{.fn mech_record_noise} is for {.code stat_records(formula)} without bounds, or {.fn stat_crossprod}.",
                                x = "The statistic is {describe_statistic(statistic)}."), call = call)
  }
  numbers <- setdiff(unique(statistic$columns$variable), names(statistic$levels))
  strange <- setdiff(names(mechanism$sd), numbers)
  if (length(strange)) {
    stop_classed("mechanism", c("{.arg sd} must be named by numeric variables; {.val {strange}} {?is/are} not.", i = "Numbers: {.var {numbers}}."), call = call)
  }
  if (is.null(mechanism$answers)) return(invisible())
  if (!is_unbounded(statistic)) {
    stop_classed("mechanism", "{.arg answers} need the noisy records themselves: {.fn stat_records} without bounds.", call = call)
  }
  factors <- names(statistic$levels)
  strange <- if (!is.object(mechanism$answers)) setdiff(names(mechanism$answers), factors)
  if (length(strange) || length(factors) == 0L) {
    stop_classed("mechanism", c("{.arg answers} must name factors of the statistic.", x = if (length(strange)) "{.val {strange}} {?is/are} not among them.",
                                i = if (length(factors)) "Factors: {.var {factors}}." else "It has none: give {.fn stat_records} their {.arg levels}."), call = call)
  }
  check_answer_levels(mechanism, statistic$levels, call)
}

#' @export
simulated_part.mech_record_noise <- function(part, data, call, uniform = stats::runif, total) {
  statistic <- part$statistic
  x <- record_matrix(data, statistic$columns, statistic$levels, call)
  for (j in which(record_sd(part$mechanism, statistic$columns) > 0)) {
    x[, j] <- x[, j] + record_sd(part$mechanism, statistic$columns)[j] * stats::qnorm(uniform(nrow(x)))
  }
  value <- products_of_moments(statistic, crossprod(cbind(1, x)))
  list(value = value, scale = rep(NA_real_, length(value)), unit = numeric(length(value)))
}

# the way back of crossprod_moments()
products_of_moments <- function(statistic, moments) {
  fields <- statistic_fields(statistic)
  units <- diag(c(1, fields$scale))
  units[-1L, 1L] <- fields$shift
  moments <- units %*% moments %*% t(units)
  at <- cbind(statistic$pairs$first, statistic$pairs$second) + 1L
  unname(c(moments[1L, -1L], moments[at]))
}

# the noisy records themselves are not in a release of their totals
#' @export
log_noise.mech_record_noise <- function(part, data) 0

check_unbounded <- function(statistic, mechanism, call) {
  if (!is_unbounded(statistic) || mechanism$kernel == "records") return(invisible())
  stop_classed("mechanism", c("Noisy records without bounds need {.fn mech_record_noise}, which describes the noise of each variable.",
                              x = "The mechanism is {format(mechanism)}.", i = "Noise from a budget needs {.arg bounds}."), call = call)
}

# ---- method "collapse" -----------------------------------------------------------------------

# Noise on the covariates may leave open whether sigma is near 0, where the default prior has no mass, and a half-normal one does.
noisy_records_prior <- function(model, mechanism) {
  noisy <- inherits(mechanism, "noiseaware_mechanism") && mechanism$kernel == "records"
  if (noisy && inherits(model, "model_lm") && identical(model$sigma, prior_lognormal())) model$sigma <- prior_half_normal()
  model
}
