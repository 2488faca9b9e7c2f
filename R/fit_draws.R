#' @rdname fit_methods
#' @rawNamespace S3method(posterior::as_draws,noiseaware_fit)
as_draws.noiseaware_fit <- function(x, ...) x$draws

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::as_draws_array,noiseaware_fit)
as_draws_array.noiseaware_fit <- function(x, ...) x$draws

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::as_draws_df,noiseaware_fit)
as_draws_df.noiseaware_fit <- function(x, ...) posterior::as_draws_df(x$draws, ...)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::as_draws_list,noiseaware_fit)
as_draws_list.noiseaware_fit <- function(x, ...) posterior::as_draws_list(x$draws, ...)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::as_draws_matrix,noiseaware_fit)
as_draws_matrix.noiseaware_fit <- function(x, ...) posterior::as_draws_matrix(x$draws, ...)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::as_draws_rvars,noiseaware_fit)
as_draws_rvars.noiseaware_fit <- function(x, ...) posterior::as_draws_rvars(x$draws, ...)

#' @rdname fit_methods
#' @export
as.array.noiseaware_fit <- function(x, ...) {
  chains <- paste0("chain:", seq_len(dim(x$draws)[2L]))
  array(as.double(x$draws), dim(x$draws), list(iterations = NULL, chains = chains, parameters = posterior::variables(x$draws)))
}

#' @rdname fit_methods
#' @export
as.matrix.noiseaware_fit <- function(x, ...) parameter_matrix(x)

#' @rdname fit_methods
#' @export
as.data.frame.noiseaware_fit <- function(x, row.names = NULL, optional = FALSE, ..., stringsAsFactors = FALSE) { # of data.frame()
  check_no_dots(...)
  as.data.frame(parameter_matrix(x), row.names = row.names, optional = TRUE)
}

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::variables,noiseaware_fit)
variables.noiseaware_fit <- function(x, ...) posterior::variables(x$draws)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::nvariables,noiseaware_fit)
nvariables.noiseaware_fit <- function(x, ...) posterior::nvariables(x$draws)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::ndraws,noiseaware_fit)
ndraws.noiseaware_fit <- function(x) posterior::ndraws(x$draws)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::nchains,noiseaware_fit)
nchains.noiseaware_fit <- function(x) posterior::nchains(x$draws)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::niterations,noiseaware_fit)
niterations.noiseaware_fit <- function(x) posterior::niterations(x$draws)

#' @rdname fit_methods
#' @rawNamespace S3method(bayesplot::rhat,noiseaware_fit)
#' @rawNamespace S3method(posterior::rhat,noiseaware_fit)
rhat.noiseaware_fit <- function(x, ...) each_variable(x, posterior::rhat)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::ess_bulk,noiseaware_fit)
ess_bulk.noiseaware_fit <- function(x, ...) each_variable(x, posterior::ess_bulk)

#' @rdname fit_methods
#' @rawNamespace S3method(posterior::ess_tail,noiseaware_fit)
ess_tail.noiseaware_fit <- function(x, ...) each_variable(x, posterior::ess_tail)

#' @rdname fit_methods
#' @rawNamespace S3method(bayesplot::neff_ratio,noiseaware_fit)
neff_ratio.noiseaware_fit <- function(object, ...) each_variable(object, posterior::ess_bulk) / posterior::ndraws(object$draws)

# of the draws of each, iterations x chains; named
each_variable <- function(fit, diagnostic) {
  vapply(posterior::variables(fit$draws), function(v) as.double(diagnostic(posterior::extract_variable_matrix(fit$draws, v))), 0)
}

# draws x parameters
prior_draws <- function(fit, draws) {
  theta <- reported(fit$bound, .Call(ffi_model_prior, fit$bound$spec, new_stream(), as.integer(draws))$theta)[, reported_parameters(fit$bound), drop = FALSE]
  prior_n <- fit$problem$prior_n
  if (inherits(fit, "noiseaware_pool") && fit$pool == "partial") return(cbind(theta, priors_between_sites(fit$problem, draws)$draws))
  if (is.null(prior_n)) theta else cbind(theta, n = replicate(draws, draw_size(prior_n)))
}

weights_line <- function(told) {
  paste0(sprintf("%s of %s draws effective", format_size(round(told$effective)), format_size(told$draws)),
         if (is.finite(told$k)) paste(", Pareto k", format_number(told$k, 2)))
}

# log hazard ratios are coefficients of a model without a response
has_coefficients <- function(bound) !is.null(response_of(bound)) || inherits(bound, "bound_survival") && length(bound$coefficients) > 0L

# the variables of a fit that are coefficients, including its sites' coefficients; NULL where there are none
coefficient_terms <- function(fit) {
  if (!has_coefficients(fit$bound)) return(NULL)
  names <- posterior::variables(fit$draws)
  own <- coefficients_of(fit$bound)
  found <- names[names %in% c(own, if (inherits(fit, "noiseaware_pool")) outer(own, names(fit$release), site_variables))]
  if (length(found)) found
}

# Variables to show: those to show by default, or those that were asked for
plot_variables <- function(fit, variables, call = caller_env()) {
  all <- posterior::variables(fit$draws)
  if (!is.null(variables)) return(check_names_of(variables, "variables", "variables of the fit", all, call))
  main <- intersect(c(coefficients_of(fit$bound), "sigma", "df", "cv", "shape"), all)
  if (length(main) && inherits(fit, "noiseaware_pool") && fit$pool == "partial") main <- c(main, grep("^sd\\[", all, value = TRUE))
  if (length(main) && !is.null(fit$problem$prior_n)) main <- c(main, "n")
  if (length(main)) main else setdiff(all, mirrored(parameter_matrix(fit)))
}
