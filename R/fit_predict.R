#' Predict from a fit
#'
#' The expected response for given covariates, or a new record's response, with intervals.
#'
#' @param object A fit of [model_lm()], [model_glm()], [model_survival()] or [model_table()]; or of a model of one variable without covariates:
#'   [model_bernoulli()], [model_poisson()], [model_exponential()] or [model_normal()].
#' @param newdata A data frame with the covariates. By default the public ones ([public_covariates]), or the groups. Without covariates: one prediction, or the
#'   same one for each row. For a table: a formula such as `~ a | b`, for the distribution of `a` given each level of `b`, or `~ a:b`. See [table_measures()].
#' @param type `"mean"`: posterior mean of the expected response; `"draws"`: a
#'   matrix of predictive draws, one row per posterior draw. `"expected"`: a matrix of draws of the expected response (the probability of 1 for a binary
#'   response, the rate for a count); `"link"`: posterior mean of the linear predictor; `"response"` is a synonym for `"mean"`. For [model_survival()]:
#'   `"survival"`, `"hazard"`, `"median"` or `"rmst"`, the restricted mean survival time; see [survival_measures()], also for `times`.
#' @param interval `"none"`; `"credible"`: interval of the expected response;
#'   `"predictive"`: interval of a new record's response. `"confidence"` and `"prediction"`, as in [stats::predict.lm()], are synonyms for these two.
#' @param level Probability inside the interval.
#' @param seed Fixes predictive draws; see [sample_posterior()].
#' @param times For [model_survival()]: the times for survival probabilities and hazards, by default the breaks, and the end times for restricted means, by
#'   default the last break.
#' @param ... Must be empty.
#' @details
#' **Tables, survival, and responses with several levels.** Their results have other shapes:
#'
#' | model | argument | value |
#' | --- | --- | --- |
#' | [model_table()] | `type = "expected"` | a draws x rows matrix |
#' | | otherwise | a data frame with a column for each variable, `fit` and, with an interval, `lower`, `upper` and `mcse` |
#' | [model_survival()] | any | a data frame with the groups, `time`, `fit`, `lower` and `upper` |
#' | response with several levels | default | a rows x levels matrix of the levels' probabilities |
#' | | `interval = "credible"` | a rows x (`fit`, `lower`, `upper`) x levels array of them |
#' | | `interval = "predictive"` | a data frame with the columns `fit`, `set` and `probability` |
#' | | `type = "expected"` | a draws x rows x levels array of the levels' probabilities |
#' | | `type = "draws"` | the numbers of the levels; the attribute `levels` has their names |
#'
#' **Several sites or groups** have further arguments, such as `site`: see [pool_methods].
#'
#' **Natural limits** (`outside = "none"`) are known to the release, not to the model: predictions of a normal response, and intervals, may lie beyond them, and
#' nothing is cut off. A message says so, and whether `newdata` has covariates beyond their natural limits.
#'
#' For [model_survival()], `fit` is the posterior mean, or the posterior median for a median time.
#'
#' **Sets of levels.** With `interval = "predictive"`, `fit` is the most probable level, `set` a list of sets of levels, and `probability` the probability of each
#' set. A set is the smallest one that contains a new response with at least probability `level` (with adjacent levels for an ordered response).
#' @return A vector; with an interval, a matrix with the columns `fit`, `lower`, `upper` and `mcse`, the Monte Carlo standard error of `fit`. With
#'   `type = "draws"` or `"expected"`, it is a draws x rows matrix. Details describes the shapes for [model_table()], [model_survival()] and responses with several
#'   levels.
#' @section Errors: `noiseaware_error_data`, `noiseaware_error_missing`,
#'   `noiseaware_error_levels`, `noiseaware_error_argument`; for a table, the errors of [table_measures()].
#' @section Messages: `noiseaware_message_limits`: see Details.
#' @family summaries of fits
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' predict(fit, data.frame(age = c(20, 30)), interval = "predictive")
#' @export
predict.noiseaware_fit <- function(object, newdata, type = c("mean", "draws", "expected", "link", "survival", "hazard", "median", "rmst"),
                                   interval = c("none", "credible", "predictive"), level = 0.95,
                                   seed = NULL, ..., times = NULL) {
  check_no_dots(...)
  of_survival <- inherits(object$bound, "bound_survival")
  types <- c("mean", "draws", "expected", "link", survival_types)
  type <- predicted(if (!missing(type)) type, "type", if (of_survival) union("survival", types) else types)
  interval <- predicted(if (!missing(interval)) interval, "interval", c("none", "credible", "predictive"))
  level <- check_number(level, "level", "a number between 0 and 1", 0, 1, strict = TRUE)
  if (type == "link") check_link(object$bound, interval)
  newdata <- if (missing(newdata)) default_newdata(object) else newdata
  check_newdata(newdata)
  seed <- check_seed(seed)
  if (of_survival && !inherits(newdata, "formula")) {
    remind_troubles(object)
    return(predict_survival(object, newdata, type, interval, level, times))
  }
  if (type %in% survival_types) stop_argument("type", "one of \"mean\", \"draws\", \"expected\" and \"link\", except for a fit of model_survival()", describe(type))
  if (!is.null(times)) stop_argument("times", "NULL, except for a fit of model_survival()", describe(times))
  if (inherits(newdata, "formula")) return(predict_table(object, newdata, type, interval, level))
  expected <- if (type == "link") linear_predictor(object, newdata) else expected_response(object, newdata)
  remind_troubles(object)
  if (type == "expected") return(expected)
  found <- with_seed(seed, if (type == "draws") add_residual(object, expected) else predict_expected(object, expected, interval, level))
  tell_limits(object, newdata, found)
  found
}

default_newdata <- function(fit, call = caller_env()) {
  if (!is.null(value_of(fit$bound))) return(data.frame(row.names = 1L))
  if (!inherits(fit$bound, "bound_table")) regression_of(fit, call)
  if (are_public(fit$bound$model)) fit$bound$model$covariates$public
}

predict_expected <- function(fit, expected, interval, level) {
  if (length(dim(expected)) == 3L) return(predict_categories(expected, interval, level, fit$bound$model))
  if (interval == "none") return(colMeans(expected))
  tails <- draws_interval(if (interval == "credible") expected else add_residual(fit, expected), level)
  cbind(fit = colMeans(expected), lower = tails[1L, ], upper = tails[2L, ], mcse = column_errors(expected, fit))
}

check_link <- function(bound, interval, call = caller_env()) {
  if (inherits(bound, c("bound_survival", "bound_table")) || !is.null(value_of(bound))) {
    stop_argument("type", "a type other than \"link\": only regressions by `model_lm()` and `model_glm()` have a linear predictor", "\"link\"", call = call)
  }
  if (interval == "predictive") stop_argument("interval", "\"none\" or \"credible\" with `type = \"link\"`", describe(interval), call = call)
}

# one of the choices, also as predict.lm() and predict.glm() call it; the first where there is none
predicted <- function(x, name, choices, call = caller_env()) {
  if (is.null(x)) return(choices[1L])
  if (rlang::is_string(x)) x <- switch(x, response = "mean", prediction = "predictive", confidence = "credible", x)
  check_choice(x, name, choices, call = call)
}

# of a response of several levels: rows x levels, or rows x (fit, lower, upper) x levels
predict_categories <- function(expected, interval, level, model) {
  fit <- colMeans(expected)
  if (interval == "predictive") return(predictive_sets(fit, level, is_ordered_family(model)))
  if (interval == "none") return(fit)
  tails <- draws_interval(matrix(expected, nrow(expected)), level)
  found <- aperm(array(c(fit, tails[1L, ], tails[2L, ]), c(dim(fit), 3L)), c(1L, 3L, 2L))
  dimnames(found) <- list(NULL, c("fit", "lower", "upper"), dimnames(expected)[[3L]])
  found
}

# The fewest levels that hold a new response with probability `level`; of an ordered one they are next to each other. `p`: rows x levels.
predictive_sets <- function(p, level, ordered) {
  labels <- colnames(p)
  count <- length(labels)
  runs <- expand.grid(from = seq_len(count), to = seq_len(count))
  runs <- runs[runs$from <= runs$to, ]
  smallest <- function(row) {
    if (!ordered) {
      by_size <- order(-row)
      return(sort(by_size[seq_len(which(cumsum(row[by_size]) >= level - 1e-12)[1L])]))
    }
    held <- mapply(function(from, to) sum(row[from:to]), runs$from, runs$to)
    best <- order(held < level - 1e-12, runs$to - runs$from, -held)[1L]
    runs$from[best]:runs$to[best]
  }
  sets <- lapply(seq_len(nrow(p)), function(i) smallest(p[i, ]))
  told <- data.frame(fit = factor(labels[max.col(p, "first")], labels, ordered = ordered))
  told$set <- lapply(sets, function(at) labels[at])
  told$probability <- vapply(seq_along(sets), function(i) sum(p[i, sets[[i]]]), 0)
  told
}

check_newdata <- function(newdata, call = caller_env()) {
  if (is.null(newdata)) stop_argument("newdata", "a data frame: a release has no records to predict for", "missing", "data", call)
}

add_residual <- function(fit, expected) {
  alone <- value_of(fit$bound)
  if (is.null(alone)) return(response_of(fit$bound)$draw(fit, expected))
  matrix(alone$draw(expected, own_parameters(fit)), nrow(expected))
}

#' Simulate databases from the posterior predictive distribution
#'
#' Each database has its own parameters, a draw from the posterior.
#'
#' @param object A fit.
#' @param nsim Number of databases.
#' @param seed Fixes the draws; see [sample_posterior()].
#' @param ... Must be empty.
#' @return A list of `nsim` data frames, each with as many rows as there are records; an unknown number of records is drawn from its posterior.
#' @section Messages: `noiseaware_message_limits`: values lie beyond the natural limits that the release declares, which the model does not know.
#' @family summaries of fits
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' head(simulate(fit, seed = 2)[[1]])
#' @importFrom stats simulate
#' @export
simulate.noiseaware_fit <- function(object, nsim = 1, seed = NULL, ...) {
  check_no_dots(...)
  nsim <- check_count(nsim, "nsim")
  sets <- unlist(with_seed(check_seed(seed), of_simulated(object, nsim, split_sets)), recursive = FALSE)
  beyond <- simulated_beyond(object, sets)
  if (!is.null(beyond)) cli::cli_inform("Simulated: {beyond}.", class = "noiseaware_message_limits")
  sets
}

# new records with these parameters
simulated_records <- function(fit, draw, n = size_of_draw(fit, draw)) raw_records(named_records(fit, drawn_records(fit, draw, n)))

drawn_records <- function(fit, draw, n) .Call(ffi_model_records, fit$bound$spec, bound_theta(fit$bound, draw[fit$bound$parameters]), n, new_stream())$records

named_records <- function(fit, records) record_frame(records, fit$bound$columns, data_levels(fit$bound))

# What `of(data, sizes)` makes of simulated data sets, whose rows follow each other in `data`: a list with an element for each million records.
of_simulated <- function(fit, count, of) {
  if (are_public(fit$bound$model)) {
    sets <- simulate_responses(fit, count)
    return(list(of(stack_sets(sets), vapply(sets, nrow, 0L))))
  }
  check_records_distribution(fit$bound)
  draws <- all_parameters(fit)
  of_drawn(fit, draws[sample.int(nrow(draws), count, replace = TRUE), , drop = FALSE], of)
}

# Of a data set for each row of `draws`. A million records are drawn and named at a time, as both cost far more of many small sets.
of_drawn <- function(fit, draws, of, most = 1e6) {
  sizes <- if (has_drawn_size(fit, draws)) draws[, "n"] else rep(nobs(fit), nrow(draws))
  of_piece <- function(piece) {
    theta <- draws_theta(fit$bound, draws[piece, fit$bound$parameters, drop = FALSE])
    seeds <- vapply(piece, function(i) seed_words(), numeric(2L))
    records <- .Call(ffi_record_sets, fit$bound$spec, theta, as.double(sizes[piece]), seeds)
    of(raw_records(named_records(fit, records)), sizes[piece])
  }
  unname(lapply(split(seq_along(sizes), cumsum(sizes) %/% most), of_piece))
}

# how many records there are: one of the parameters if it is not known
size_of_draw <- function(fit, draw) if (has_drawn_size(fit, t(draw))) draw[["n"]] else nobs(fit)

has_drawn_size <- function(fit, draws) "n" %in% setdiff(colnames(draws), fit$bound$parameters)

# new responses given public covariates
simulate_responses <- function(fit, nsim) {
  public <- fit$bound$model$covariates$public
  response <- fit$bound$columns$variable[1L]
  draws <- posterior::as_draws_matrix(fit$draws)
  fit$draws <- posterior::as_draws_array(draws[sample.int(nrow(draws), nsim, replace = TRUE), ])
  values <- add_residual(fit, expected_response(fit, public))
  levels <- fit$bound$levels[[response]]
  first <- if (is.null(attr(values, "levels"))) 0 else 1
  lapply(seq_len(nsim), function(i) {
    value <- unname(values[i, ])
    data.frame(stats::setNames(list(if (is.null(levels)) value else factor(levels[value + 1 - first], levels)), response), public, check.names = FALSE)
  })
}

refit <- function(fit, given) {
  asked <- c(list(release = fit$whole %||% fit$problem$groups$release %||% fit$release), fit$asked)
  asked[names(given)] <- given
  # warnings show the call: with names, not a whole release
  eval(as.call(c(quote(sample_posterior), lapply(stats::setNames(nm = names(asked)), as.name))), asked)
}

# Chains start at draws, unless `init` is given; a method that draws independently needs none.
refit_from_draws <- function(fit, given) {
  if ("init" %in% names(given)) return(refit(fit, given))
  given$init <- values_of_draws(fit, given$chains %||% fit$asked$chains)
  withCallingHandlers(refit(fit, given), noiseaware_message_init = function(m) invokeRestart("muffleMessage"))
}

# `times` databases of as many records as the release has, or may have
check_simulated_size <- function(times, name, fit, call = caller_env()) {
  n <- nobs(fit)
  if (is.na(n)) n <- mean(parameter_matrix(fit)[, "n"])
  if (times * n > 1e8) {
    stop_classed("argument", "{.arg {name}} times the number of records must be at most 10^8, but is {format(times * n)}.", call = call)
  }
}
