# R squared without records: for given rows, or for the population that the model describes.

#' R squared of a regression
#'
#' The share of the response's variance that the covariates explain, for each draw of the fit (Gelman et al. 2019). It is the variance of the expected response,
#' divided by the sum of this variance and the mean residual variance.
#'
#' @param object A fit of [model_lm()] or [model_glm()].
#' @param newdata A data frame with the covariates and at least two rows, over which variances are computed. `NULL`: the public covariates, if the fit has any.
#'   Otherwise the variances are those in the population: for each draw of the parameters, `records` rows are drawn from the covariates' distribution.
#'   For groups, `newdata` must name the group of each row.
#' @param records Number of these rows; more rows reduce the Monte Carlo error of each draw, which is about `R2 (1 - R2) sqrt(2 / records)`.
#' @param seed Fixes these rows; see [sample_posterior()].
#' @param ... Must be empty.
#' @return A vector with a value for each draw.
#' @details The generic is from rstantools. A release has no records, so the usual R squared of the observed records is not available. The population R
#'   squared hardly differs from it unless there are few records. If all variables are normal, [regress()] has the exact value, as the variable `R2`.
#'
#' For several sites or groups, the population is their union: each counts by its number of records, and has its own coefficients. Differences between sites
#' are therefore part of the explained variance, as in brms.
#' @section Errors: `noiseaware_error_method` for a model that is not a regression, or has a response with several levels; `noiseaware_error_pool` for groups
#'   without draws of their covariates, which need `newdata`; `noiseaware_error_argument`; the errors of [predict()][predict.noiseaware_fit] for `newdata`.
#' @references Gelman, A., Goodrich, B., Gabry, J. and Vehtari, A. (2019). R-squared for Bayesian regression models. *The American Statistician* 73(3), 307-309.
#'   \doi{10.1080/00031305.2018.1549100}.
#' @family package interfaces
#' @examples
#' st <- stat_crossprod(bwt ~ age, bounds = list(bwt = c(500, 5500), age = c(14, 50)))
#' set.seed(1)
#' rel <- simulate_release(MASS::birthwt, st, mech_laplace(epsilon = 2))
#' fit <- sample_posterior(rel, model_lm(), chains = 2, iter = 400, seed = 1)
#' if (requireNamespace("rstantools", quietly = TRUE)) summary(rstantools::bayes_R2(fit, seed = 1))
#' @exportS3Method rstantools::bayes_R2
bayes_R2.noiseaware_fit <- function(object, newdata = NULL, records = 500, seed = NULL, ...) {
  check_no_dots(...)
  response <- regression_of(object)
  if (is.na(response$binary)) stop_classed("method", "A response with several levels has no variance, and so no R squared.")
  records <- check_count(records, "records", lower = 2)
  seed <- check_seed(seed)
  several <- inherits(object, "noiseaware_pool") && object$pool != "complete"
  if (is.null(newdata) && several) check_covariate_draws(object)
  remind_troubles(object)
  if (is.null(newdata) && are_public(object$bound$model)) newdata <- object$bound$model$covariates$public
  if (!is.null(newdata) && NROW(newdata) < 2L) stop_argument("newdata", "a data frame with at least two rows", describe_shape(newdata))
  made <- with_seed(seed, if (!several) expected_of_one(object, newdata, records) else
    if (is.null(newdata)) expected_of_sites(object, records) else expected_in_groups(object, newdata))
  weight <- made$weight %||% array(1 / ncol(made$expected), dim(made$expected))
  explained <- rowSums(weight * (made$expected - rowSums(weight * made$expected))^2) * ncol(weight) / (ncol(weight) - 1)
  explained / (explained + rowSums(weight * made$residual))
}

# draws x rows: the expected response and its residual variance; where rows do not count alike, also their `weight`, which add up to one
expected_of_one <- function(fit, newdata, records) {
  expected <- if (is.null(newdata)) expected_of_population(fit, records) else expected_response(fit, newdata)
  list(expected = expected, residual = array(response_of(fit$bound)$variance(fit, expected), dim(expected)))
}

check_covariate_draws <- function(fit) {
  if (fit$pool == "none" || length(fit$problem$drawn)) return(invisible())
  several <- if (is_of_groups(fit)) "groups" else "sites"
  stop_classed("pool", c("R squared of a population needs draws of the covariates' distribution, which this fit of several {several} does not have.",
                         i = if (is_of_groups(fit)) "{.arg newdata} gives records of these groups.", i = "{.code pool = \"none\"} draws it."), call = caller_env())
}

# The same of all sites together: rows from each, which count by the number of its records.
expected_of_sites <- function(fit, records) {
  sites <- names(fit$release)
  call <- caller_env()
  size <- vapply(sites, function(site) rep_len(as.vector(site_size_draws(fit, site)) %||% fit$release[[site]]$n, posterior::ndraws(fit$draws)),
                 numeric(posterior::ndraws(fit$draws)))
  share <- size / rowSums(size)
  rows <- pmax(2, ceiling(records * colMeans(share)))
  each <- Map(function(site, m) expected_of_one(as_fit_of_site(fit, site, call), NULL, m), sites, rows)
  bind <- function(part) do.call(cbind, lapply(unname(each), `[[`, part))
  list(expected = bind("expected"), residual = bind("residual"), weight = (share / rep(rows, each = nrow(share)))[, rep(seq_along(sites), rows)])
}

# The same for rows that name their group.
expected_in_groups <- function(fit, newdata) {
  call <- caller_env()
  if (!is_of_groups(fit)) stop_argument("newdata", "NULL for a fit of several sites", describe_shape(newdata), call = call)
  expected <- predict_in_groups(fit, newdata, FALSE, FALSE, NULL, type = "expected", call = call)
  variable <- fit$problem$groups$variable
  group <- as.character(derived_variables(newdata, variable, call, "newdata")[[variable]])
  residual <- expected
  for (g in unique(group)) {
    of_group <- expected[, group == g, drop = FALSE]
    residual[, group == g] <- response_of(fit$bound)$variance(site_fit(fit, g, call = call), of_group)
  }
  list(expected = expected, residual = residual)
}

# draws x records; each draw has covariates of its own, which are made in blocks of draws
expected_of_population <- function(fit, records, call = caller_env()) {
  bound <- fit$bound
  if (!is.null(bound$moments)) {
    stop_argument("newdata", "given: the covariates have moments only, and no distribution to draw them from", "NULL", call = call)
  }
  draws <- own_parameters(fit)
  beta <- coefficient_values(fit)
  mean <- response_of(bound)$mean
  state <- new_stream()
  blocks <- split(seq_len(nrow(draws)), (seq_len(nrow(draws)) - 1L) %/% 200L)
  do.call(rbind, lapply(blocks, function(rows) {
    made <- do.call(rbind, lapply(rows, function(i) {
      one <- .Call(ffi_model_records, bound$spec, bound_theta(bound, draws[i, ]), records, state)
      state <<- one$state
      one$records
    }))
    x <- covariate_values(fit, raw_records(record_frame(made, bound$columns, data_levels(bound))), call)
    eta <- rowSums(cbind(1, term_values(bound, x)) * beta[rep(rows, each = records), , drop = FALSE]) + (offset_values(bound, x) %||% 0)
    matrix(mean(eta), length(rows), byrow = TRUE)
  }))
}
