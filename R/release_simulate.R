# Releases for studies, from R's generator: noise by inversion, in floating-point arithmetic.

#' Simulate a release for a study
#'
#' Simulates a release quickly, with R's random number generator: **not for publication**.
#'
#' @param x A model, or a data frame of records.
#' @param statistic,mechanism,neighbours,public As in [release()].
#' @param n For a model: number of records to simulate.
#' @param parameters For a model: a vector of all or some of its unknown parameters, named as in `names(coef(fit))` and in the draws. The others are drawn from
#'   the prior, ignoring the given ones. `NULL` draws all of them.
#' @param ... Must be empty.
#' @return A release; with `neighbours = "add_remove"` it does not contain the number of records. With a model, its attribute `truth` is a list of `parameters`
#'   (named vector) and `data` (the simulated records); it is not written by [write_release()].
#' @section Errors: The errors of [release()]; `noiseaware_error_mechanism` for noisy records without bounds.
#' @family evaluation
#' @examples
#' st <- stat_crossprod(y ~ x, bounds = list(y = c(-10, 10), x = c(-10, 10)))
#' set.seed(1)
#' rel <- simulate_release(model_lm(), st, mech_gaussian(mu = 1), n = 100)
#' attr(rel, "truth")$parameters
#' @export
simulate_release <- function(x, statistic, mechanism, ...) UseMethod("simulate_release")

#' @rdname simulate_release
#' @export
simulate_release.data.frame <- function(x, statistic, mechanism, ..., neighbours = c("replace", "add_remove"), public = NULL) {
  check_given()
  check_no_dots(...)
  # records that were simulated from a release's model have no persons
  if (inherits(neighbours, "noiseaware_persons")) check_person_named(match_neighbours(neighbours))
  neighbours <- match_neighbours(neighbours)
  beside <- public_of_formula(x, public, statistic, mechanism)
  if (!is.null(beside)) statistic <- as_whole(statistic, mechanism)
  check_design(statistic, mechanism, neighbours)
  check_has_bounds(statistic, mechanism)
  x <- limit_contributions(x, statistic, neighbours, stats::runif)
  with_public(make_release(x, statistic, mechanism, neighbours, simulated_part, "simulation"), beside)
}

# Bounds of noisy records are about what was seen, and there is nothing to see yet.
check_has_bounds <- function(statistic, mechanism, call = caller_env()) {
  if (!any(vapply(design_parts(statistic, mechanism), function(p) is_unbounded(p$statistic), TRUE))) return(invisible())
  stop_classed("mechanism", c("Releases of noisy records without bounds cannot be simulated.",
                              i = "Use {.fn stat_crossprod}, or add the noise to the records and give them to {.fn as_release}."), call = call)
}

#' @rdname simulate_release
#' @export
simulate_release.noiseaware_model <- function(x, statistic, mechanism, n, parameters = NULL, ..., neighbours = c("replace", "add_remove")) {
  check_given()
  check_no_dots(...)
  neighbours <- match_neighbours(neighbours)
  check_design(statistic, mechanism, neighbours)
  check_has_bounds(statistic, mechanism)
  n <- check_count(n, "n", lower = if (replaces(neighbours)) 1 else 0)
  for (p in design_parts(statistic, mechanism)) mechanism_scale(p$mechanism, p$statistic, neighbours = neighbours) # refuses before anything is drawn
  noisy <- has_noisy_records(design_parts(statistic, mechanism))
  bound <- bind_settled(noisy_records_prior(x, mechanism), statistic, noisy_records = noisy)
  check_records_distribution(bound)
  if (!is.null(parameters)) check_some_parameters(parameters, bound)
  truth <- draw_truth(bound, parameters, new_stream())
  theta <- truth$theta
  records <- .Call(ffi_model_records, bound$spec, theta, n, truth$state)$records
  data <- record_frame(records, bound$columns, data_levels(bound))
  result <- make_release(data, as_simulated(settled_statistic(statistic)), mechanism, neighbours, simulated_part, "simulation")
  result$statistic <- statistic
  attr(result, "truth") <- list(parameters = reported(bound, theta)[1L, ], data = data)
  result
}

#' @export
simulate_release.default <- function(x, statistic, mechanism, ...) {
  check_given()
  stop_classed("argument", "{.arg x} must be a model or a data frame, but is {describe_shape(x)}.")
}

# theta with the given parameters, the others from the prior; the stream's state
draw_truth <- function(bound, parameters, stream, call = caller_env()) {
  complete <- complete_joint(parameters, bound, "parameters", call)
  if (!is.null(parameters) && length(complete) == length(bound$parameters)) return(list(theta = bound_theta(bound, complete, call), state = stream))
  prior <- .Call(ffi_model_prior, bound$spec, stream, 1L)
  theta <- drop(prior$theta)
  if (!is.null(parameters)) {
    values <- replace_parameters(reported(bound, theta)[1L, ], parameters, bound)
    theta <- bound_theta(bound, values, call)
  }
  list(theta = theta, state = prior$state)
}

# the levels that are factors in the data; a 0/1 variable is a number there
data_levels <- function(bound) if (!isTRUE(bound$number)) bound$levels

# confidential records as the model sees them
model_records <- function(bound, data, call = caller_env()) {
  records <- record_matrix(data, bound$columns, data_levels(bound), call)
  if (isTRUE(bound$number) && !all(records %in% 0:1)) {
    stop_classed("data", "{.arg data} must have 0 or 1 in {.var {bound$columns$name}}, but has other values in {rows_text(which(!records %in% 0:1))}.", call = call)
  }
  records
}

# a data frame of numeric records, codes and dummy columns turned back into
# factors
record_frame <- function(records, columns, levels) {
  out <- lapply(stats::setNames(nm = unique(columns$variable)), function(v) {
    at <- which(columns$variable == v)
    if (is.null(levels[[v]])) return(records[, at])
    code <- if (is.na(columns$level[at[1L]])) records[, at] else drop(records[, at, drop = FALSE] %*% seq_along(at))
    structure(as.integer(1 + code), levels = as.character(levels[[v]]), class = "factor") # as factor() makes it, in a tenth of the time
  })
  list2DF(out, nrow(records))
}
